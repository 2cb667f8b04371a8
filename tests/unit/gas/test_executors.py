"""Executors by name, what goes over them, and what their failures mean."""

from __future__ import annotations

import sys
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from tests.unit.gas.observed import row, table
from toolkit.client._executors import executor_failure, max_ranges, opened_executor
from toolkit.client._node import Node
from toolkit.errors import InputError, NodeUnreachable, RunStopped, StudyError
from toolkit.gas._calls import Call
from toolkit.gas._origin import Origin
from toolkit.gas.runs import _reader as views
from toolkit.gas.runs._runner import executor_name

ORIGIN = Origin("n", "abc", model=False, chain_id=4)
CALL = Call(view="0x1::m::count")


class Recorder(Executor):
    """Runs what is submitted at once, and records it; or leaves it waiting, so that what is in flight can be counted."""

    def __init__(self, *, fail_at=None):
        self.ranges, self.nodes, self.in_flight, self.most = [], [], 0, 0
        self.fail_at = fail_at

    def submit(self, function, node, origin, tasks):
        self.ranges.append([version for _, version in tasks])
        self.nodes.append(node)
        self.most = max(self.most, len(self.ranges) - len(taken))
        future = Future()
        if self.fail_at == len(self.ranges):
            future.set_exception(BrokenExecutor("a process died"))
        else:
            future.set_result(function(node, origin, tasks))
        return future


taken = []


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    taken.clear()
    monkeypatch.setattr(views, "_observe_range", lambda _, __, tasks: table(*(row(at) for _, at in tasks)))


def observe(executor, count, *, max_tasks=4, **settings):
    node = Node("http://node.test/v1", **settings)
    tasks = ((CALL, version) for version in range(count))
    views.observe_elsewhere(executor, node, ORIGIN, tasks, count=count, max_tasks=max_tasks, take=taken.append)
    node.close()


@pytest.mark.parametrize(
    ("count", "size"), [(1, 1), (99, 99), (1_000, 100), (1_601, 101), (10_000, 625), (100_000, 1_000)]
)
def test_ranges_are_worth_their_task(count, size):
    """100 calls at the least where there are as many, 1,000 at the most, several for each task in flight; each once."""
    executor = Recorder()
    observe(executor, count)
    assert {len(some) for some in executor.ranges[:-1]} <= {size}
    assert len(executor.ranges[-1]) <= size
    assert [version for some in executor.ranges for version in some] == list(range(count))
    assert sum(map(len, taken)) == count


def test_no_more_ranges_are_in_flight_than_were_asked_for():
    """`max_tasks` bounds what a scheduler holds, however long the plan."""
    executor = Recorder()
    observe(executor, 20_000, max_tasks=3)
    assert executor.most <= 3
    assert len(executor.ranges) > 3


@pytest.mark.parametrize(("count", "tasks"), [(10_000, 4), (150, 2), (50, 1)])
def test_each_range_has_its_share_of_the_pace(count, tasks):
    """Together the ranges keep to the node's rate and requests in flight; a single one has them all."""
    executor = Recorder()
    observe(executor, count, requests_per_second=80.0, max_in_flight=64)
    (share,) = {(node.requests_per_second, node.max_in_flight) for node in executor.nodes}
    assert share == (80.0 / tasks, 64 // tasks)


@pytest.mark.parametrize(
    ("fail_at", "count", "tasks", "rows"), [(3, 1_000, 1, 500), (1, 1_600, 4, 300)], ids=["before it", "beside it"]
)
def test_what_came_before_or_beside_a_failure_is_taken(fail_at, count, tasks, rows):
    """The ranges that ended count; the error says that the executor failed and to run again."""
    with pytest.raises(StudyError, match=r"BrokenExecutor: a process died.*repeat the call"):
        observe(Recorder(fail_at=fail_at), count, max_tasks=tasks)
    assert sum(map(len, taken)) == rows


def test_a_failure_of_the_run_itself_is_not_blamed_on_the_executor():
    """The error says that the disk is full."""

    def full(_):
        raise StudyError("no space left")

    node = Node("http://node.test/v1")
    with pytest.raises(StudyError, match=r"^no space left$"):
        views.observe_elsewhere(Recorder(), node, ORIGIN, [(CALL, 1)], count=1, max_tasks=1, take=full)
    node.close()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        *(
            (error, RunStopped)
            for error in (BrokenExecutor("x"), CancelledError(), OSError("x"), ImportError("no toolkit"))
        ),
        *(
            (error, type(None))
            for error in (NodeUnreachable("x"), StudyError("x"), RuntimeError("ours"), KeyError("ours"))
        ),
    ],
    ids=repr,
)
def test_failures_of_executors_stop_a_run(error, kind):
    """Workers that die, clusters that go away, workers without this package; other errors stay what they are."""
    assert type(executor_failure(error)) is kind


@pytest.mark.parametrize(("text", "kind"), [("threads:3", ThreadPoolExecutor), ("processes:2", ProcessPoolExecutor)])
def test_pools_are_opened_by_name_and_closed(text, kind):
    """Threads or processes, as many as said; gone when the run ends."""
    with opened_executor(text) as pool:
        assert isinstance(pool, kind)
        assert pool._max_workers == int(text[-1])
        assert kind.__name__ in executor_name(pool, 2)
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(int)


@pytest.mark.parametrize(("given", "tasks"), [("threads:2", 2), ("processes:64", 8), ("tcp://x:1", 8), (None, 8)])
def test_a_named_pool_divides_the_pace_by_its_workers(given, tasks):
    """Ranges that only wait for a worker would leave their share of the pace unused."""
    assert max_ranges(given, 8) == tasks


def test_an_executor_of_the_callers_is_left_open():
    """Who made it closes it."""
    with ThreadPoolExecutor(1) as pool:
        with opened_executor(pool) as same:
            assert same is pool
        assert pool.submit(int).result() == 0
    with opened_executor(None) as none:
        assert none is None


@pytest.mark.parametrize("text", ["threads", "threads:0", "threads:-1", "process:4", "http://x", "", "tcp:"])
def test_a_name_that_is_no_executor_is_refused_with_the_forms(text):
    """With every form that there is."""
    with (
        pytest.raises(InputError, match=r"expected threads:8, processes:4, or .* tcp://host:8786"),
        opened_executor(text),
    ):
        pass


def test_without_dask_the_text_names_the_extra(monkeypatch):
    """What to install, and where else."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(InputError, match=r"pip install 'ledger-toolkit\[dask\]' here and on the workers"),
        opened_executor("tcp://x:1"),
    ):
        pass
