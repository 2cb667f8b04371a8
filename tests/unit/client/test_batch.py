"""Many tasks at once: every task ends once, early failures too, and an interrupt ends the rest."""

from __future__ import annotations

import threading
import time

import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, function, ledger, module, refused
from toolkit.client._fetch import fetch_views
from toolkit.client._node import Node
from toolkit.client._reads import send_all
from toolkit.client._threads import run_in_threads
from toolkit.errors import NodeUnreachable, NotFound, SchemaError, VersionPruned
from toolkit.wire import ViewFunction

M = module("m", functions=[function("count", [], ["u64"])])
COUNT = ViewFunction("0x1::m::count")
FRAMEWORK = {"GET /accounts/0x1/module/m": answer(M)}


def counting(query, _):
    """Answer the version itself."""
    return answer([query["ledger_version"]], gas=1)


def node_with(routes=None, **options):
    fake = FakeNode(FRAMEWORK | {"POST /view": counting} | (routes or {}))
    return Node(URL, transport=fake, **options), fake


def at(node):
    """Return what prepares the count at a version."""
    return lambda version: node.prepare_view(COUNT, version)


def interrupt(*, at, now):
    """Press Ctrl-C at a count."""
    if at is not None and now >= at:
        raise KeyboardInterrupt


def test_every_task_ends_once():
    """Whatever the order of answers, each position comes once with its own result."""

    def late(query, body):
        time.sleep(0.002 * (int(query["ledger_version"]) % 3))
        return counting(query, body)

    node, _ = node_with({"POST /view": late})
    found = dict(send_all(node, range(100, 160), at(node)))
    assert sorted(found) == list(range(60))
    assert [found[place].value for place in range(60)] == list(range(100, 160))


def test_no_task_gives_nothing():
    """An empty sweep asks nothing."""
    node, fake = node_with()
    assert list(send_all(node, [], at(node))) == []
    assert fake.asked == []


def test_a_task_that_cannot_be_prepared_ends_with_its_error():
    """Errors on the way to the request stand at the position of their task; the others are answered."""
    node, fake = node_with()
    pruned = VersionPruned("gone", status=410, error_code="version_pruned")

    def prepare(version):
        if version % 2:
            raise pruned
        return node.prepare_view(COUNT, version)

    found = dict(send_all(node, range(100, 110), prepare))
    assert sorted(found) == list(range(10))
    assert [found[place] is pruned for place in range(10)] == [False, True] * 5
    assert [found[place].value for place in range(0, 10, 2)] == [100, 102, 104, 106, 108]
    assert len(fake.sent("POST /view")) == 5


@pytest.mark.parametrize("error", [NodeUnreachable("cut"), NotFound("no", status=404)])
def test_a_sweep_in_which_nothing_can_be_prepared_ends(error):
    """All errors, one per task, without a request."""
    node, fake = node_with()

    def prepare(_):
        raise error

    assert sorted(place for place, outcome in send_all(node, range(7), prepare) if outcome is error) == list(range(7))
    assert fake.asked == []


def test_a_misfit_of_one_answer_is_an_outcome():
    """An answer that is not a u64 does not end the others."""

    def odd(query, body):
        return answer(["many"]) if query["ledger_version"] == "102" else counting(query, body)

    node, _ = node_with({"POST /view": odd})
    found = dict(send_all(node, range(100, 105), at(node)))
    assert isinstance(found[2], SchemaError)
    assert "count" in str(found[2])
    assert [found[place].value for place in (0, 1, 3, 4)] == [100, 101, 103, 104]


def test_a_programming_error_is_not_an_outcome(monkeypatch):
    """Only what an answer holds is a row: an error of the toolkit's own code ends the sweep."""

    def broken(*_):
        raise TypeError("a fault of the toolkit")

    node, _ = node_with({"POST /view": answer(["5"])})
    monkeypatch.setattr("toolkit.client._calls._json_values", broken)
    with pytest.raises(TypeError, match="a fault of the toolkit"):
        fetch_views(node, COUNT, versions="100:110", progress=False)


def test_refusals_and_lost_connections_are_outcomes():
    """A 400 and a cut connection each end their own task only."""

    def mixed(query, body):
        if query["ledger_version"] == "101":
            return refused(400, "invalid_input", head=ledger())
        return counting(query, body)

    node, _ = node_with({"POST /view": mixed})
    found = dict(send_all(node, range(100, 103), at(node)))
    assert [getattr(found[place], "error_code", None) for place in range(3)] == [None, "invalid_input", None]


def test_an_interrupt_in_the_loop_ends_the_sweep():
    """Ctrl-C while results are taken interrupts the sweep, and requests soon stop."""
    gate = threading.Semaphore(30)

    def slow(query, body):
        gate.acquire(timeout=20)
        return counting(query, body)

    node, fake = node_with({"POST /view": slow}, max_in_flight=4)

    def consume():
        for place, _ in send_all(node, range(100, 1_000), at(node)):
            interrupt(at=20, now=place)

    with pytest.raises(KeyboardInterrupt):
        consume()
    asked = len(fake.sent("POST /view"))
    gate.release(1_000)
    time.sleep(0.2)
    assert len(fake.sent("POST /view")) <= asked + 4
    assert asked <= 30 + 4


def test_an_interrupt_does_not_wait_for_what_is_in_flight():
    """Ctrl-C interrupts a request that hangs."""
    gate, began = threading.Event(), threading.Event()

    def read(task):
        if task:
            began.set()
            gate.wait(20)
        else:
            began.wait(20)

    results = run_in_threads([0, 1], read, in_flight=2)
    try:
        assert next(results)[0] == 0
        with pytest.raises(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)
        assert not gate.is_set()
        assert any(thread.name.startswith("toolkit-fetch") for thread in threading.enumerate())
    finally:
        gate.set()
