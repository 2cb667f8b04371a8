"""Studies over pools and clusters of real processes: the same rows, also where workers die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

import toolkit
from toolkit.gas.runs._store import RunStore

CALLS = {
    "size": toolkit.ViewFunction("0xcafe::registry::size"),
    "supply": {"view": "0x1::coin::supply", "type_arguments": ["0x1::aptos_coin::AptosCoin"]},
}
# Two steps of one, which is published and deleted, and one of the other.
SEARCHED = {"size": CALLS["size"], "greeting": toolkit.ViewFunction("0xcafe::trial::greeting")}
VERSIONS = "100:299"


@pytest.fixture(scope="module")
def whole(url, tmp_path_factory):
    """Return the run without an executor."""
    with toolkit.connect(url) as node:
        return toolkit.Study(node=node, calls=CALLS, versions=VERSIONS).run(
            tmp_path_factory.mktemp("whole"), progress=False
        )


@pytest.fixture
def slow_study(url):
    """Return the study at a pace that leaves time to kill a worker."""
    with toolkit.connect(url, requests_per_second=50) as node:  # a kill may come seconds late on a busy machine
        yield toolkit.Study(node=node, calls=CALLS, versions=VERSIONS)


@pytest.fixture(scope="module")
def cluster():
    """Return a Dask client of two workers, each a process."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def kill_when_rows_come(out, process_id):
    """Kill a process as soon as the first rows are written, from a thread of its own."""

    def kill():
        deadline = time.monotonic() + 60
        while RunStore(out).rows() < 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(process_id, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_a_cluster_worker_that_dies_loses_nothing(whole, cluster, slow_study, tmp_path):
    """Dask, by its address as on the command line; a worker killed amid the run: the others read its ranges."""
    victim = next(iter(cluster.run(os.getpid).values()))
    killer = kill_when_rows_come(tmp_path / "run", victim)
    run = slow_study.run(tmp_path / "run", executor=cluster.scheduler.address, max_tasks=4, progress=False)
    killer.join()
    assert victim not in cluster.run(os.getpid).values()
    assert run.complete
    assert run.digest == whole.digest
    assert run.observations.drop(columns="observed_at").equals(whole.observations.drop(columns="observed_at"))
    assert run.manifest["executor"] == "distributed.cfexecutor.ClientExecutor, at most 4 ranges at once"


def test_a_pool_whose_worker_dies_says_so_and_the_run_goes_on(whole, slow_study, tmp_path):
    """A broken pool cannot be mended: the error says to run again, what came is kept, and then it completes."""
    out = tmp_path / "run"
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        victim = pool.submit(os.getpid).result()
        killer = kill_when_rows_come(out, victim)
        with pytest.raises(
            toolkit.errors.RunStopped,
            match=r"BrokenProcessPool.*repeat the call",
        ):
            slow_study.run(out, executor=pool, max_tasks=4, progress=False)
        killer.join()
    kept = RunStore(out).rows()
    assert 0 < kept < 400
    run = slow_study.run(out, executor="threads:2", max_tasks=2, progress=False)
    assert run.manifest["resumed_rows"] == kept
    assert run.digest == whole.digest


def test_a_search_over_threads_finds_the_same_steps(url, tmp_path):
    """Rounds of a step search go to the executor too."""
    versions = toolkit.FindSteps("0:999", initial=9)
    with toolkit.connect(url) as node:
        study = toolkit.Study(node=node, calls=SEARCHED, versions=versions)
        here, there = study.run(progress=False), study.run(executor="threads:2", progress=False)
    assert there.digest == here.digest
    assert there.steps.equals(here.steps)
    assert len(here.steps) >= 2
