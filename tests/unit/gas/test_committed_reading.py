"""Committed transactions of a study: samples, pages around changes, filters, the stored timeline, resuming."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.fakes import FEE_STATEMENT, V2_EVENT, answer, user_transaction
from tests.unit.gas.observed import plan
from tests.unit.gas.test_runs import HEAD, RISE, made_node
from toolkit.gas._calls import Call
from toolkit.gas._study import Run, Study
from toolkit.gas.plan._estimate import MAX_PAGES_AROUND
from toolkit.gas.plan._plan import joined_ranges, pages_of, within, without
from toolkit.gas.runs import _committed as module
from toolkit.gas.runs._committed import noted, sample_size
from toolkit.gas.runs._manifest import CommittedRead

SCHEDULE = "GET /accounts/0x1/resource/0x1%3A%3Agas_schedule%3A%3AGasScheduleV2"
REGISTRY = "GET /accounts/0x1/resource/0x1%3A%3Acode%3A%3APackageRegistry"
PAGES = "GET /transactions"
PAY = "0x1::m::pay"
SLOT = 40_000


def schedule(query, _):
    """Answer a gas schedule that changes at RISE."""
    unit = "10" if int(query["ledger_version"]) < RISE else "100"
    entries = [{"key": "instr.add", "val": unit}, {"key": "txn.storage_fee_per_state_slot", "val": str(SLOT)}]
    return answer({"type": "0x1::gas_schedule::GasScheduleV2", "data": {"feature_version": "1", "entries": entries}})


def packages(*_):
    """Answer a registry with one package that is never upgraded."""
    package = {"name": "P", "upgrade_number": "0", "source_digest": "", "modules": [{"name": "m"}], "deps": []}
    return answer({"type": "0x1::code::PackageRegistry", "data": {"packages": [package]}})


def paid(version, *, execution=5, storage=0, function=PAY, types=(), **more):
    """Return a committed transaction with the parts of its gas."""
    fee = {
        "total_charge_gas_units": str(execution + 3 + storage // 100),
        "execution_gas_units": str(execution),
        "io_gas_units": "3",
        "storage_fee_octas": str(storage),
        "storage_fee_refund_octas": "0",
    }
    payload = {
        "type": "entry_function_payload",
        "function": function,
        "type_arguments": list(types),
        "arguments": ["0xb0b", "100"],
    }
    event = {"guid": V2_EVENT, "sequence_number": "0", "type": FEE_STATEMENT, "data": fee}
    return user_transaction(version, type="user_transaction", events=[event], changes=[], payload=payload, **more)


def odd(version):
    """Return a transaction of the function at odd versions, of another one at even versions."""
    return paid(version, function=PAY if version % 2 else "0x1::m::other")


def node_of(made=odd, **routes):
    """Return a node with these transactions, and its transport."""

    def page(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        return answer([made(version) for version in range(start, start + limit)])

    return made_node({PAGES: page, SCHEDULE: schedule, REGISTRY: packages} | routes)


def study_of(node, *, versions=f"0:{HEAD - 1}/10", **call):
    """Return a study of one call of committed transactions."""
    return Study(node=node, calls={"paid": {"committed": PAY, "versions": versions, **call}}, versions="0:9")


def starts(fake):
    return sorted(int(query["start"]) for query, _ in fake.sent(PAGES))


def committed_read(run):
    return run.manifest["nodes"][0]["committed_read"]


def test_a_sample_is_evenly_spaced_pages_and_pages_around_the_change():
    """Ten pages from the first to the last, and sixteen on each side of the change, whose page counts on both."""
    node, fake = node_of()
    study = study_of(node)
    run = study.run(progress=False)
    even = [0, 1100, 2200, 3300, 4400, 5500, 6600, 7700, 8800, 9900]
    around = range(3300 - 1500, 3300 + 1600, 100)
    assert starts(fake) == sorted({*even, *around})
    assert run.complete
    versions = len(starts(fake)) * 100
    assert len(run.observations) == versions // 2
    assert committed_read(run)["rows"] == versions // 2
    assert sample_size(run.record.nodes[0], study.calls[0]) == (versions, HEAD, 0)
    assert f"a sample of {versions:,} of {HEAD:,} ledger versions was read" in run.explain()


def noisy(version):
    """Return a transaction whose execution has a relative spread of a third."""
    return paid(version, execution=100 + (version * 7919) % 100, function=PAY if version % 2 else "0x1::m::other")


def test_no_page_is_read_beyond_the_end_of_the_range():
    """A side ends at the range's end."""
    node, fake = node_of(lambda version: paid(version, function="0x1::m::other"))
    run = study_of(node, versions="3200:9000/1").run(progress=False)
    assert starts(fake) == [*range(3200, 4900, 100), 9000]
    assert run.complete
    assert len(run.observations) == 0


def test_pages_around_changes_are_limited_in_all(monkeypatch):
    """Many changes share the limit: each side has fewer pages."""
    monkeypatch.setattr(module, "MAX_PAGES_AROUND", 10)
    node, fake = node_of(lambda version: paid(version, function="0x1::m::other"))
    study_of(node, versions=f"0:{HEAD - 1}/2").run(progress=False)
    assert starts(fake) == [0, *range(2900, 3800, 100), 9900]


def test_a_sample_as_large_as_its_range_is_the_range():
    """Then nothing is left to read around changes."""
    node, fake = node_of()
    study = study_of(node, versions="0:999/50")
    assert study.plan().requests == (10, 10)
    study.run(progress=False)
    assert len(starts(fake)) == 10


def test_the_plan_has_the_least_and_the_most_pages():
    """The evenly spaced ones, and those that the changes may add, which are not known before."""
    node, _ = node_of()
    plan = study_of(node).plan()
    [call] = plan.nodes[0].calls
    assert (call.requests, call.requests_most) == (10, 100) == (plan.nodes[0].pages, plan.nodes[0].pages_most)
    assert plan.requests == (10, 100)
    assert "a sample of 10 to 100 pages" in repr(plan)
    assert MAX_PAGES_AROUND > 100


def interrupted(after, made=odd):
    """Return a node that is interrupted after some pages."""
    left = iter(range(after))

    def page(query, _):
        if next(left, None) is None:
            raise KeyboardInterrupt
        start, limit = int(query["start"]), int(query["limit"])
        return answer([made(version) for version in range(start, start + limit)])

    return node_of(made, **{PAGES: page})


@pytest.fixture(scope="module")
def whole_sample():
    """Return the run of a sample that was not interrupted."""
    return study_of(node_of(noisy)[0], versions=f"0:{HEAD - 1}/4").run(progress=False)


@pytest.mark.parametrize("after", [1, 13])
def test_an_interrupted_sample_reads_the_rest(tmp_path, monkeypatch, whole_sample, after):
    """Among the evenly spaced pages or around the change: the same rows in the end, and no page read a second time."""
    monkeypatch.setattr(module, "_PAGES", 1)
    node, fake = interrupted(after, noisy)
    with pytest.raises(KeyboardInterrupt):
        study_of(node, versions=f"0:{HEAD - 1}/4").run(tmp_path, progress=False)
    first = [int(query["start"]) for query, _ in fake.sent(PAGES)][:after]
    node, fake = node_of(noisy)
    run = study_of(node, versions=f"0:{HEAD - 1}/4").run(tmp_path, progress=False)
    assert run.digest == whole_sample.digest
    assert committed_read(run) == committed_read(whole_sample)
    assert not set(starts(fake)) & set(first)
    assert len(fake.sent(SCHEDULE)) <= 2  # of the provenance: the timeline is not found again


def test_missing_pages_of_a_sample_are_read_again(tmp_path):
    """Pages that fail are rows; the same command reads these pages and no other."""

    def page(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        if start in {2200, 3300}:
            return answer({"message": "x", "error_code": "internal_error"}, status=403)
        return answer([odd(version) for version in range(start, start + limit)])

    node, _ = node_of(**{PAGES: page})
    run = study_of(node).run(tmp_path, progress=False)
    assert committed_read(run)["missing"] == [[2200, 2299], [3300, 3399]]
    assert sample_size(run.record.nodes[0], run.study.calls[0])[0] == 3_600
    node, fake = node_of()
    again = study_of(node).run(tmp_path, progress=False)
    assert starts(fake) == [2200, 3300]
    assert "missing" not in committed_read(again)


# filters --------------------------------------------------------------------------------------------------------------

ALICE, BOB = "0xa11ce", "0xb0b"


def of_every_kind(version):
    """Return transactions of two senders, two types, and both outcomes."""
    return paid(
        version,
        sender=(ALICE, "0x" + "0" * 61 + "b0b")[version // 4 % 2],
        types=(["0x1::m::A"], ["0x01::m::B"])[version // 2 % 2],
        success=version % 2 == 0,
    )


FILTERS = {
    "all": {},
    "of alice": {"sender": "0x000a11ce"},
    "of bob": {"sender": BOB},
    "with A": {"type_arguments": ["0x1::m::A"]},
    "with B": {"type_arguments": ["0x0001::m::B"]},
    "good": {"success": True},
    "bad": {"success": False},
    "good of bob with B": {"sender": BOB, "type_arguments": ["0x1::m::B"], "success": True},
}


def test_calls_of_one_function_differ_in_their_filters():
    """Each has its own fingerprint and rows, and all share the pages; addresses and types in any form are the same."""
    node, fake = node_of(of_every_kind)
    calls = {label: {"committed": PAY, **filters} for label, filters in FILTERS.items()}
    study = Study(node=node, calls=calls, versions="0:79")
    assert len({call.fingerprint for call in study.calls}) == len(calls)
    assert study.plan().requests == (1, 1)
    run = study.run(progress=False)
    assert len(fake.sent(PAGES)) == 1
    found = {label: rows["ledger_version"].tolist() for label, rows in run.observations.groupby("label")}
    every = range(80)
    assert found == {
        "all": list(every),
        "of alice": [at for at in every if at // 4 % 2 == 0],
        "of bob": [at for at in every if at // 4 % 2],
        "with A": [at for at in every if at // 2 % 2 == 0],
        "with B": [at for at in every if at // 2 % 2],
        "good": [at for at in every if at % 2 == 0],
        "bad": [at for at in every if at % 2],
        "good of bob with B": [at for at in every if at // 4 % 2 and at // 2 % 2 and at % 2 == 0],
    }
    again = Study.from_document(study.document(), use_api_key=False)
    assert [call.fingerprint for call in again.calls] == [call.fingerprint for call in study.calls]


def test_a_filter_of_types_passes_no_transaction_whose_types_cannot_be_read():
    """What cannot be read is not of these types."""
    call = Call(committed=PAY, type_arguments=("u8",))
    node, _ = node_of(lambda version: paid(version, types=(["u8"], ["?!"], [])[version % 3]))
    rows = Study(node=node, calls=[call], versions="0:8").run(progress=False).observations
    assert rows["ledger_version"].tolist() == [0, 3, 6]


# the timeline ---------------------------------------------------------------------------------------------------------


def test_a_run_has_the_timeline_of_its_committed_calls(tmp_path):
    """Found once, stored with its requests and what could not be read, and given as a frame."""
    node, fake = node_of()
    run = study_of(node).run(tmp_path, progress=False)
    assert run.timeline[["ledger_version", "kind"]].values.tolist() == [[RISE, "schedule"]]
    assert run.timeline["node"].tolist() == [run.manifest["nodes"][0]["node"]]
    facts = run.manifest["nodes"][0]["timeline"]
    assert facts["requests"] == run.timeline.attrs["requests"] > 17
    assert run.timeline.attrs["unread"] == facts.get("unread", [])
    before = len(fake.asked)
    assert Run.open(tmp_path).timeline.equals(run.timeline)
    assert len(fake.asked) == before


def test_a_study_without_committed_calls_has_no_timeline(tmp_path):
    """No requests, an empty frame."""
    node, fake = node_of()
    run = Study(node=node, calls={"count": {"view": "0x1::m::count"}}, versions="0:3").run(tmp_path, progress=False)
    assert run.timeline.empty
    assert fake.sent(SCHEDULE)[0][0]["ledger_version"] in {"0", "3"}  # of the provenance alone


# ranges ---------------------------------------------------------------------------------------------------------------

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda one: (one[0], sum(one))), max_size=8)


def versions_of(ranges):
    return {version for first, last in ranges for version in range(first, last + 1)}


@given(RANGES, RANGES)
def test_ranges_are_sets_of_versions(ranges, others):
    """Joining, subtracting and clipping ranges is that of sets, and results are sorted and disjoint."""
    joined = joined_ranges(ranges)
    assert versions_of(joined) == versions_of(ranges)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(joined))
    left = without(ranges, others)
    assert versions_of(left) == versions_of(ranges) - versions_of(others)
    assert left == joined_ranges(left)
    assert versions_of(within(ranges, 10, 30)) == versions_of(ranges) & set(range(10, 31))
    pages = pages_of(left)
    assert sum(size for _, size in pages) == len(versions_of(left))


@given(st.integers(0, 5_000), st.integers(0, 5_000), st.integers(1, 80))
def test_the_pages_of_a_sample_are_in_its_range(first, length, count):
    """As many as asked for, or all; the first and the last version are in them if there are two or more."""
    call = Call(committed=PAY)
    mark = call.fingerprint
    sampled = plan(committed={mark: (first, first + length)}, committed_sample={mark: count})
    ranges = sampled.ranges_of(call)
    every = (first + length) // 100 - first // 100 + 1
    assert len(ranges) == (count if count < every else 1)
    assert versions_of(ranges) <= set(range(first, first + length + 1))
    assert max(last for _, last in ranges) == first + length
    assert count == 1 or min(low for low, _ in ranges) == first


def test_rows_that_are_not_there_make_the_progress_void():
    """Fewer rows than were noted: everything is read again."""
    call = Call(committed=PAY)
    there = plan(last=99, committed_read=CommittedRead(((0, 99),), 3))
    known = {call.fingerprint: np.array([1, 5, 200], np.int64)}
    assert noted(there, [call], known) == CommittedRead((), 0)
    known = {call.fingerprint: np.array([1, 5, 7, 200], np.int64)}
    assert noted(there, [call], known).ranges == ((0, 99),)
