"""Observations wait until they are worth a write, and are written however the reading ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.unit.client.fakes import Clock
from tests.unit.gas.observed import manifest, row, table
from toolkit.client._progress import progress_bar
from toolkit.errors import LedgerChanged, NodeUnreachable, RunStopped
from toolkit.gas.runs._collector import Collector
from toolkit.gas.runs._store import RunStore


def take_and_raise(collector, error):
    """Take one row, and fail before it is written."""
    with collector:
        collector.take(row(1))
        raise error


@pytest.fixture
def store(tmp_path):
    store = RunStore(tmp_path / "run")
    store.create(manifest())
    return store


@pytest.fixture
def bar():
    with progress_bar(0, "test", show=False) as bar:
        yield bar


def test_rows_are_written_by_the_thousand(store, bar):
    """999 wait, the thousandth writes them all; the rest is written at the end."""
    with Collector(store, bar, clock=Clock()) as collector:
        for version in range(999):
            collector.take(row(version))
        assert store.rows() == 0
        collector.take(row(999))
        assert store.rows() == 1_000
        collector.take(row(1_000))
        collector.take_table(table(row(1_001), row(1_002)))
        assert store.rows() == 1_000
    assert store.observations()["ledger_version"].tolist() == list(range(1_003))


def test_rows_of_a_slow_node_are_written_in_time(store, bar):
    """What came is never older than two seconds when a kill comes."""
    clock = Clock()
    with Collector(store, bar, clock=clock) as collector:
        collector.take(row(1))
        clock.now = 1.7
        collector.take(row(2))
        assert store.rows() == 0
        clock.now = 2.0
        collector.take(row(3))
        assert store.rows() == 3


def test_an_interrupt_after_a_write_doubles_nothing(store, bar, monkeypatch):
    """Ctrl-C between the writing of rows and the next line: they are not written a second time."""
    add = store.add

    def interrupted(table):
        add(table)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "add", interrupted)

    def read():
        with Collector(store, bar, clock=Clock()) as collector:
            for version in range(1_000):
                collector.take(row(version))

    with pytest.raises(KeyboardInterrupt):
        read()
    assert store.observations()["ledger_version"].tolist() == list(range(1_000))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_rows_that_wait_at_an_error_are_read_again(store, bar, error):
    """They were not compared with the ledger, and a node that is silent would delay the end of the run."""
    with pytest.raises(error):
        take_and_raise(Collector(store, bar), error)
    assert store.rows() == 0


def test_a_full_disk_ends_the_reading(store, bar, monkeypatch):
    """The error of the write is raised."""

    def full(*_):
        raise RunStopped("no space")

    monkeypatch.setattr(store, "add", full)
    with pytest.raises(RunStopped, match="no space"), Collector(store, bar) as collector:
        collector.take(row(1))


def test_progress_tells_rate_failures_and_time_left(store, capsys):
    """On a terminal: how many of how many, what is left at this rate, and how many calls have no result so far."""
    from tqdm import tqdm

    from toolkit.client._progress import Progress

    with tqdm(total=0, desc="observing", unit="call", mininterval=0, ascii=True) as shown:
        bar = Progress(shown)
        bar.expect(10, found=5)
        with Collector(store, bar) as collector:
            for version in range(4):
                collector.take(row(version, error="x" if version < 3 else None))
        assert (shown.n, shown.total, shown.initial) == (9, 15, 5)
        shown.refresh()
    text = capsys.readouterr().err
    assert "observing" in text
    assert "9/15" in text
    assert "3 without a result" in text
    assert "call/s" in text


class Guard:
    """Answers as the test sets it (True, False or an error), and counts the questions."""

    def __init__(self, *says):
        self.says, self.looks, self.checks = says, 0, 0
        self.node = SimpleNamespace(name="node")

    def confirms(self):
        said = self.says[min(self.looks, len(self.says) - 1)]
        self.looks += 1
        if isinstance(said, Exception):
            raise said
        return said

    def check(self):
        self.checks += 1
        if not self.confirms():
            raise NodeUnreachable("no answer")


def taken(collector, versions):
    """Take rows and leave the block."""
    with collector:
        for version in versions:
            collector.take(row(version))


def test_rows_are_written_once_the_ledger_is_confirmed(store, bar):
    """First 10, then twice as many, up to 1,000; while the node does not say, they wait for as many more."""
    guard = Guard(True, True, False, True)
    with Collector(store, bar, guard=guard, clock=Clock()) as collector:
        written = [store.rows()]
        for version in range(5_000):
            collector.take(row(version))
            if version % 10 == 9 and store.rows() != written[-1]:
                written.append(store.rows())
        assert written == [0, 10, 30, 110, 190, 350, 670, 1_310, 2_310, 3_310, 4_310]
    assert store.rows() == 5_000
    assert guard.checks == 1


def test_rows_read_since_the_last_good_check_are_dropped(store, bar):
    """Another ledger: what was confirmed stays, nothing else is written, here or at the end."""
    collector = Collector(store, bar, guard=Guard(True, LedgerChanged("another")), clock=Clock())
    with pytest.raises(LedgerChanged):
        taken(collector, range(2_500))
    assert store.observations()["ledger_version"].tolist() == list(range(10))


def test_the_ledger_is_checked_at_the_end_also_without_rows(store, bar):
    """Pages that held nothing wanted count as read only if they were of the ledger."""
    with pytest.raises(LedgerChanged):
        taken(Collector(store, bar, guard=Guard(LedgerChanged("another")), clock=Clock()), [])


def test_rows_do_not_wait_for_ever(store, bar):
    """At 10,000 rows that the node does not confirm the run stops, and they are dropped."""
    with pytest.raises(NodeUnreachable, match="when its ledger was checked"):
        taken(Collector(store, bar, guard=Guard(False), clock=Clock()), range(20_000))
    assert store.rows() == 0
