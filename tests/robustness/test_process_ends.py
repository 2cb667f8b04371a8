"""Forks, forgotten nodes, iterators left standing, interrupts, and parents that are killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from proxy import DROP

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system")

_READ = """
import gc, os, sys, threading, warnings
warnings.simplefilter("ignore")
import toolkit
from toolkit.client._calls import PreparedView
node = toolkit.connect(sys.argv[1], cache=None)
call = toolkit.ViewFunction("0xcafe::registry::size")
def read(node, *versions):
    return toolkit.fetch_views(node, call, versions=list(versions), progress=False)["value"].tolist()
"""
_FORK = """
before = read(node, 100, 900)
ready = PreparedView(node, call)
begun = node.many(ready.at(version) for version in range(100, 400))
next(begun)
def told(ask):
    try:
        return ask()
    except toolkit.errors.ClosedError as error:
        return "connect() again" in str(error)
child = os.fork()
if child == 0:
    refused = [told(lambda: read(node, 100, 900)), told(lambda: node.view(call)), told(lambda: list(begun))]
    with node:  # closes it in the child only
        pass
    with toolkit.connect(sys.argv[1], cache=None) as again:
        print(refused, read(again, 100, 900) == before, flush=True)
    sys.exit()
os.waitpid(child, 0)
print(len(list(begun)), read(node, 100, 900) == before, node.view(call, ledger_version=900).value == before[1], flush=True)
os._exit(0)
"""
_FORGET = """
def used():
    return sum(thread.name == "toolkit-bulk" for thread in threading.enumerate()), len(os.listdir("/proc/self/fd"))
read(node, 100)
gc.collect()
before = used()
for _ in range(30):
    one = toolkit.connect(sys.argv[1], cache=None)
    read(one, 100, 101)
    one.view(call, ledger_version=102)
del one
gc.collect()
for _ in range(500):
    if used() <= before:
        break
    threading.Event().wait(0.01)
print(before, used())
"""
_LEAVE = """
ready = PreparedView(node, call)
rows = node.many(ready.at(version) for version in range(100, 500))
for row in rows:
    break
print("left", flush=True)
"""
_STUDY = """
title = "Interrupted"
node = "{url}"
requests_per_second = 150
[versions]
plan = "0:-1"
[[call]]
label = "size"
view = "0xcafe::registry::size"
"""


@pytest.fixture(scope="module")
def url(honest):
    return f"http://{honest[0]}:{honest[1]}"


def script(text, url, timeout=60):
    """Run a script in an interpreter of its own and return what it prints."""
    command = [sys.executable, "-c", _READ + text, url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.fault("a fork after a bulk fetch", "the child reconnects; the parent is unaffected")
def test_a_forked_child_connects_again(url):
    """In the child every use of the node raises, also what began before; the parent's requests in flight are answered."""
    assert script(_FORK, url).splitlines() == ["[True, True, True] True", "299 True True"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors by /proc")
@pytest.mark.fault("nodes that are dropped without `close`", "their threads and descriptors are freed")
def test_forgotten_nodes_leave_nothing(url):
    """30 nodes, each used for many calls and for one: threads and descriptors are as before."""
    before, after = script(_FORGET, url).replace(") (", ")|(").split("|")
    assert before == after


@pytest.mark.fault("an iterator of answers that is never finished", "the interpreter exits")
def test_an_iterator_that_is_left_standing_does_not_hang_the_exit(url):
    """Several interpreters at once, each left amid a sweep."""
    command = [sys.executable, "-c", _READ + _LEAVE, url]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        assert [process.communicate(timeout=60)[0] for process in running] == ["left\n"] * 3
        assert [process.returncode for process in running] == [0] * 3
    finally:
        for process in running:
            process.kill()


@contextlib.contextmanager
def running_study(url, tmp_path, executor):
    """Run a study over an executor as a process of its own, until its first rows are written."""
    place, out = tmp_path / "study.toml", tmp_path / "run"
    place.write_text(_STUDY.format(url=url))
    study = ["-m", "toolkit", "study", "run", str(place), "--out", str(out), "--executor", executor]
    command = [sys.executable, "-X", "faulthandler", *study]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 180  # a busy machine may take a minute to import the toolkit
            while not rows_in(out):
                assert process.poll() is None
                assert time.monotonic() < deadline, "the run writes nothing"
                time.sleep(0.1)
            yield process
        finally:
            process.kill()


def told_at_the_end(process, seconds):
    """Return what a process writes until it ends; one that does not end fails with where its threads stand."""
    try:
        return process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # `faulthandler` writes the stacks
        pytest.fail(f"the process did not end in {seconds} s:\n{process.communicate(timeout=30)[1]}")


def rows_in(out):
    from toolkit.gas.runs._store import RunStore

    return RunStore(out).rows()


def children_of(process_id):
    """Return the ids of the worker processes of a process."""
    found = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    return [int(one) for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def alive(process_id):
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.fault(
    "Ctrl-C while threads or processes read a study", "the study stops at once; rows are kept, workers end"
)
@pytest.mark.parametrize("executor", ["threads:3", "processes:2"])
def test_an_interrupt_stops_an_executor(url, tmp_path, executor):
    """Code 130 and one line, long before the ranges in flight would be read; no worker is left."""
    with running_study(url, tmp_path, executor) as process:
        workers = children_of(process.pid) if executor.startswith("processes") else []
        process.send_signal(signal.SIGINT)
        words = told_at_the_end(process, 60)
        assert process.returncode == 130, words
        assert f"{rows_in(tmp_path / 'run'):,} observations are stored" in words
        assert "Traceback" not in words
    assert rows_in(tmp_path / "run") >= 100
    assert not [worker for worker in workers if alive(worker)]
    assert bool(workers) == executor.startswith("processes")


@pytest.mark.fault("Ctrl-C while a node does not answer", "waiting threads end")
def test_an_interrupt_ends_threads_that_wait_for_a_silent_node(proxy, tmp_path):
    """The node falls silent amid the run: an interrupt does not wait for its timeout of 30 s."""
    silent = []

    async def say_nothing(request, honest):
        silent.append(request)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return DROP

    with running_study(proxy.url, tmp_path, "threads:3") as process:
        proxy.change = say_nothing
        deadline = time.monotonic() + 30
        while not silent and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        words = told_at_the_end(process, 25)
        assert process.returncode == 130, words
        assert "observations are stored" in words


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds workers by /proc")
@pytest.mark.fault("kill -9 of the parent of worker processes", "the workers end")
def test_workers_end_with_their_parent(url, tmp_path):
    """A killed parent cannot end its workers, so they watch it."""
    with running_study(url, tmp_path, "processes:2") as process:
        workers = children_of(process.pid)
        assert workers
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    deadline = time.monotonic() + 30
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [worker for worker in workers if alive(worker)]


SENDING = """
import contextlib, threading
from toolkit.client._executors import opened_executor

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt), opened_executor("processes:2") as pool:
        sent = [pool.submit(bytes, 20_000_000) for _ in range(40)]
        sent[0].result()
        raise KeyboardInterrupt
    print([thread.name for thread in threading.enumerate()])
"""


@pytest.mark.fault("Ctrl-C while a worker process sends a large result", "the program ends")
def test_an_interrupt_amid_a_large_result_ends_the_program(tmp_path):
    """Half a result is in the pipe when its worker ends; nobody waits for the rest, and no thread of the pool is left."""
    (tmp_path / "sending.py").write_text(SENDING)
    command = [sys.executable, str(tmp_path / "sending.py")]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"['MainThread']\n")
