"""Timelines of the ledger that a real node recorded: exactly what its INDEX says happened."""

from __future__ import annotations

import pytest

import toolkit
from tests.conformance.conftest import AT_315
from tests.conformance.recorded_node import RecordedNode
from toolkit.gas._observations import Cause, Part
from toolkit.gas._timeline import find_timeline

CODE, SCHEDULE = Cause.CODE, Cause.SCHEDULE
UPGRADED = "same functions, different code"
EARLY = [
    (53, CODE, "published module"),
    (56, CODE, "published module"),
    (137, CODE, UPGRADED),
    (158, CODE, "added fresh"),
    (179, SCHEDULE, "117 of 508 parameters changed, every one ×10"),
]
LATE = [(503, CODE, "added walk"), (707, SCHEDULE, "117 of 508 parameters changed, every one ×0.1")]


@pytest.fixture(scope="module")
def modules(recordings):
    """Return (lab, weights), the modules of the recorded ledger."""
    found = {name: f"{address:#x}::{name}" for _, address, name in recordings.longer_history.places("module")}
    return found["lab"], found["weights"]


def found_over(exchanges, history, modules, *, evidence=None):
    """Return the timeline of a recorded ledger, which answers every read except raw state values."""
    with RecordedNode(exchanges, history).serving() as served, toolkit.connect(served.url, cache=None) as node:
        found = find_timeline(node, 0, history.head, modules, evidence=evidence)
        # Which functions of a module changed is read from its bytecode. The record lacks it; the changes are the same.
        assert {one.path.partition("?")[0] for one in served.unanswered} <= {"/v1/experimental/state_values/raw"}
    assert found.unread == ()
    return found


@pytest.fixture(scope="module")
def early(recordings, modules):
    """Return the timeline of the first 316 versions."""
    return found_over(recordings.of(*AT_315), recordings.history, modules)


@pytest.fixture(scope="module")
def longer(recordings, modules):
    """Return the timeline of all 1,072 versions."""
    return found_over(recordings.of("series"), recordings.longer_history, modules)


def check(changes, expected):
    """Compare changes with (version, kind, words)."""
    assert [(change.ledger_version, change.kind) for change in changes] == [row[:2] for row in expected]
    assert all(words in change.what for change, (_, _, words) in zip(changes, expected, strict=True))
    assert all(change.exact and change.transaction.type == "user_transaction" for change in changes)


def test_the_first_versions_have_the_changes_of_the_index(early):
    """Two modules published and upgraded, and one gas schedule; flag 61 was off before 193, so nothing changed there."""
    check(early.changes, EARLY)


def test_the_longer_series_adds_an_upgrade_and_the_schedule_back(longer):
    """503 and 707, though the schedule of the end is that of the beginning."""
    check(longer.changes, EARLY + LATE)


def test_the_schedule_can_move_execution_only(longer):
    """Instructions alone changed; the storage gas moved too, but this gas feature version does not charge by it."""
    [tenfold, back] = [change for change in longer.changes if change.kind is SCHEDULE]
    assert "0x1::storage_gas::StorageGas (per_item_create)" in tenfold.what
    assert tenfold.parts == back.parts == {Part.EXECUTION}
    assert tenfold.transaction.sender == "0x" + "a550c18".zfill(64)


def test_an_upgrade_of_the_dependency_is_a_change_of_its_caller(early, modules):
    """`lab` calls `weights`: 137 can move both, 158 only `lab`; what was published before `lab` cannot move it."""
    lab, weights = modules
    versions = {name: [c.ledger_version for c in early.for_function(f"{name}::f")] for name in modules}
    assert versions == {lab: [56, 137, 158, 179], weights: [53, 137, 179]}
    assert [change.modules for change in early.changes][2:4] == [{weights}, {lab}]


def test_times_are_those_of_the_ledger(early):
    """The recorded ledger starts in 1970."""
    assert [change.transaction.time.isoformat() for change in early.changes][-1] == "1970-01-01T00:00:30+00:00"


def test_reads_grow_with_the_changes_and_the_logarithm_of_the_range(early, longer):
    """Fewer reads than the sources' grids, the bisections, and five for each change."""
    configuration = 6 * 17
    for found, depth in ((early, 9), (longer, 11)):
        assert found.requests <= configuration + 3 * 2 + (len(found.changes) + 1) * (depth + 5)
