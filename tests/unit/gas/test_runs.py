"""Studies run against a node in memory: what is read, what is written, what is resumed."""

from __future__ import annotations

import gc
import itertools
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import toolkit
from tests.unit.client.fakes import URL, FakeNode, answer, function, info, ledger, module, refused, user_transaction
from toolkit.client._node import Node
from toolkit.client._versions import FindSteps
from toolkit.errors import InputError, StudyError
from toolkit.gas._study import Run, Study
from toolkit.gas.runs import _reader
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction

HEAD = 10_000
RISE, UPGRADE = 3_337, 7_001
SCHEDULE = "GET /accounts/0x1/resource/0x1%3A%3Agas_schedule%3A%3AGasScheduleV2"
COUNT = ViewFunction("0x1::m::count")
PAY = SimulationRequest(EntryFunction("0x1::m::pay", arguments=[5]), sender="0xa11ce")
OLD = module(
    "m",
    functions=[
        function("count", [], ["u64"]),
        function("dead"),
        function("pay", ["&signer", "u64"], is_entry=True, is_view=False),
    ],
)
NEW = module(
    "m",
    functions=[
        function("count", [], ["u64"]),
        function("more"),
        function("dead"),
        function("pay", ["&signer", "u64"], is_entry=True, is_view=False),
    ],
    code="0x02",
)


def at(query):
    return int(query["ledger_version"])


def schedule(query, _):
    entries = [{"key": "a", "val": "10" if at(query) < RISE else "100"}, {"key": "b", "val": "7"}]
    return answer({"type": "0x1::gas_schedule::GasScheduleV2", "data": {"feature_version": "1", "entries": entries}})


def gas_at(version):
    return 10 if version < RISE else 100 if version < UPGRADE else 60


def write(kind, **data):
    return {"address": "0x1", "state_key_hash": "0x01", "type": kind, "data": data}


def transaction_at(version):
    changes = []
    if version == RISE:
        changes = [write("write_resource", type="0x1::gas_schedule::GasScheduleV2", data={})]
    if version == UPGRADE:
        changes = [write("write_module", bytecode="0x02", abi=NEW["abi"])]
    return user_transaction(
        version,
        type="user_transaction",
        changes=changes,
        function="0x1::m::pay" if version % 2 else "0x1::m::other",
        payload={
            "type": "entry_function_payload",
            "function": "0x1::m::pay" if version % 2 else "0x1::m::other",
            "type_arguments": [],
            "arguments": [],
        },
    )


def page(query, _):
    start, limit = int(query["start"]), int(query["limit"])
    return answer([transaction_at(version) for version in range(start, start + limit)])


def made_node(routes=None, *, head=HEAD, oldest=0, chain_id=None):
    """Return a node whose schedule changes at RISE and whose module is upgraded at UPGRADE, and its transport."""
    state = ledger(head, oldest=oldest)
    fake = FakeNode(head=state)
    account = {"sequence_number": "7", "authentication_key": "0x" + "0" * 64}
    fake.routes |= {
        "GET /accounts/0x1/module/m": lambda query, _: answer(OLD if at(query) < UPGRADE else NEW, head=state),
        "POST /view": lambda query, _: answer(["1"], gas=gas_at(at(query)), head=state),
        SCHEDULE: schedule,
        "GET /transactions": page,
        "GET /accounts/0xa11ce": answer(account),
        "POST /transactions/simulate": answer([user_transaction(head)], head=state, gas=9),
        **{f"GET /transactions/by_version/{v}": answer(transaction_at(v), head=state) for v in (RISE, UPGRADE)},
    }
    if chain_id is not None:
        fake.routes["GET "] = answer(info(state) | {"chain_id": chain_id})
    fake.routes |= routes or {}
    return Node(URL, transport=fake), fake


def run(
    out, *, node=None, versions="0:-1/21", calls=None, title="t", executor=None, thresholds=None, progress=False, **more
):
    node = node or made_node()[0]
    calls = calls or {"count": COUNT}
    study = Study(node=node, calls=calls, versions=versions, title=title, thresholds=thresholds)
    return study.run(out, progress=progress, executor=executor, **more)


def rows(found):
    frame = found.observations
    return list(zip(frame["label"].tolist(), frame["ledger_version"].tolist(), frame["gas_used"].tolist(), strict=True))


def planned(fake):
    """Return the versions of ``0:-1/21`` and coarser plans that a node was asked for, without those of a bisection."""
    return [at(query) for query, _ in fake.sent("POST /view") if at(query) % 500 == 0]


def test_a_plan_is_read_once_per_version(tmp_path):
    """One observation per planned version, with the gas that the node reported; further readings locate the two steps."""
    node, fake = made_node()
    found = run(tmp_path / "run", node=node)
    versions = [500 * n for n in range(21)]
    assert rows(found) == [("count", version, gas_at(version)) for version in versions]
    again = [RISE - 1, RISE, UPGRADE - 1, UPGRADE]  # both ends of each step are read twice
    assert sorted(planned(fake)) == sorted(versions + [one for one in again if one % 500 == 0])
    further = [at(query) for query, _ in fake.sent("POST /view") if at(query) % 500]
    assert all(further.count(one) == 2 for one in again if one % 500)
    assert len(set(further)) == found.manifest["nodes"][0]["further_requests"] <= 2 * 9
    assert found.complete
    assert found.observations["head_version"].tolist() == [HEAD] * 21
    assert found.observations["success"].tolist() == [True] * 21
    assert found.observations["source"].unique().tolist() == ["view@version"]


def test_every_step_is_found_with_its_cause(tmp_path):
    """A search over 10,001 versions: both steps, exact, each with why and by which transaction."""
    node, fake = made_node()
    steps = run(tmp_path / "run", node=node, versions=FindSteps("0:-1", initial=9, max_requests=200)).steps
    assert steps["version_after"].tolist() == [RISE, UPGRADE]
    assert steps["exact"].tolist() == [True, True]
    assert steps["change"].tolist() == [90, -40]
    assert steps["cause"].tolist() == ["schedule", "code"]
    assert "a from 10 to 100 (×10)" in steps["explanation"].tolist()[0]
    assert "upgraded the called module" in steps["explanation"].tolist()[1]
    assert "added more" in steps["explanation"].tolist()[1]
    assert steps["transaction_hash"].tolist() == [f"0x{version:064x}" for version in (RISE, UPGRADE)]
    assert len(fake.sent("POST /view")) <= 9 + 2 * 11 + 4


def test_a_search_reads_the_module_of_a_call_once(tmp_path, monkeypatch):
    """Its bisection is over all versions of the plan, so that no later round of the search needs another."""
    read = []
    monkeypatch.setattr(_reader, "learn_module", lambda _node, call, versions: read.append((call.label, versions)))
    found = run(tmp_path / "run", node=made_node()[0], versions=FindSteps("0:-1", initial=9, max_requests=200))
    assert len(found.observations) > 9
    assert [versions for _, versions in read] == [found.record.nodes[0].whole]


def test_an_interval_is_never_told_as_a_point(tmp_path, monkeypatch):
    """If nothing between two readings is answered, the ends are compared, no transaction is named, and a rerun advised."""
    monkeypatch.setattr("toolkit.client._http.RetryPolicy.wait_s", lambda *_, **__: 0.0)

    def view(query, _):
        gone = at(query) % 500
        return refused(503, "internal_error") if gone else answer(["1"], gas=gas_at(at(query)), head=ledger(HEAD))

    found = run(tmp_path / "run", node=made_node({"POST /view": view})[0])
    steps = found.steps
    assert list(zip(steps["version_before"], steps["version_after"], strict=True)) == [(3_000, 3_500), (7_000, 7_500)]
    assert steps["exact"].tolist() == [False, False]
    assert steps["cause"].tolist() == ["schedule", "code"]
    assert steps["transaction_hash"].isna().all()
    said = "The exact transaction of 2 steps was not located; rerun with `find_steps`, or with a larger `max_requests`."
    assert found.explain().count("locate") == 1
    assert said in found.explain().splitlines()


def test_a_run_that_was_broken_off_goes_on(tmp_path):
    """Interrupted anywhere and started again: every row once, the rows written before not read again."""
    whole = rows(run(tmp_path / "whole", versions="0:2500"))
    out, asked = tmp_path / "run", itertools.count()

    def breaking(query, body):
        if next(asked) == 1_700:
            raise KeyboardInterrupt
        return answer(["1"], gas=gas_at(at(query)), head=ledger(HEAD))

    with pytest.raises(KeyboardInterrupt, match=r"stopped; [\d,]+ observations are stored in"):
        run(out, node=made_node({"POST /view": breaking})[0], versions="0:2500")
    left = Run.open(out)
    assert not left.complete
    kept = len(left.observations)
    assert 600 < kept < 1_800  # all that was checked before the interrupt
    node, fake = made_node()
    found = run(out, node=node, versions="0:2500")
    assert rows(found) == whole
    assert len(fake.sent("POST /view")) == 2_501 - kept
    assert found.complete
    assert found.manifest["resumed_rows"] == kept
    assert found.manifest["attempts"] == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("ours")], ids=["interrupted", "failed"])
def test_a_run_without_a_folder_that_ends_early_says_where_it_is(error):
    """Nobody named a folder, so a message or a note names the one to go on with."""
    node = made_node({"POST /view": lambda *_: (_ for _ in ()).throw(error)})[0]
    with pytest.raises(type(error)) as stopped:
        run(None, node=node)
    told = "\n".join([str(stopped.value), *getattr(stopped.value, "__notes__", ())])
    assert "stopped; 0 observations are stored in " in told
    place = Path(re.search("'(.*ledger-toolkit-run-.*)'", told)[1])
    assert run(place).complete
    shutil.rmtree(place)


def test_a_search_that_was_broken_off_goes_on(tmp_path):
    """Rounds that were written are not read again, and the end is the same."""
    versions = FindSteps("0:-1", initial=9, max_requests=200)
    whole = run(tmp_path / "whole", versions=versions)
    asked = itertools.count()

    def breaking(query, body):
        if next(asked) == 20:
            raise KeyboardInterrupt
        return answer(["1"], gas=gas_at(at(query)), head=ledger(HEAD))

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", node=made_node({"POST /view": breaking})[0], versions=versions)
    node, fake = made_node()
    found = run(tmp_path / "run", node=node, versions=versions)
    assert sorted(rows(found)) == sorted(rows(whole))
    assert found.steps["version_after"].tolist() == [RISE, UPGRADE]
    assert len(fake.sent("POST /view")) < len(rows(whole))


def test_a_run_of_which_the_head_moved_keeps_its_plan(tmp_path):
    """What -1 meant at the start holds to the end, also when the run is resumed later."""
    interrupted = made_node({"POST /view": lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)})[0]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", node=interrupted)
    found = run(tmp_path / "run", node=made_node(head=2 * HEAD)[0])
    assert found.observations["ledger_version"].max() == HEAD


def test_a_complete_run_reads_nothing_again(tmp_path):
    """The same study in the same folder is the run that is there."""
    first = run(tmp_path / "run")
    node, fake = made_node()
    again = run(tmp_path / "run", node=node)
    assert rows(again) == rows(first)
    assert fake.sent("POST /view") == []


def test_a_function_is_called_with_the_progress(tmp_path):
    """Each call and each cause counts; an error of the function stops the run, and what was read is stored."""
    seen = []

    def note(what, done, total):
        seen.append((what, done, total))
        if what == "finding causes":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path, progress=note)
    observing = [(done, total) for what, done, total in seen if what == "observing"]
    assert observing == sorted(observing)
    assert observing[-1][0] == observing[-1][1] == len(Run(tmp_path).observations) > 0
    assert seen[-1][0] == "finding causes"
    assert not Run(tmp_path).complete
    assert run(tmp_path).complete


def test_another_study_does_not_mix(tmp_path):
    """A folder with a run of another study is refused, and stays as it was."""
    run(tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(StudyError, match=r"has a run of another study .*--fresh"):
        run(tmp_path / "run", versions="0:9")
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_a_title_may_change(tmp_path):
    """It is not observed: the complete run goes on under the new title."""
    run(tmp_path)
    again = run(tmp_path, title="another")
    assert (again.earlier is not None, again.study.title) == (True, "another")


def test_a_run_is_not_made_among_other_files(tmp_path):
    """They could be taken for its own; what a killed run left is not one of them."""
    for name in ("run.lock", ".run.json.7-0123abcd.part", "notes.txt"):
        (tmp_path / name).touch()
    with pytest.raises(StudyError, match=r"contains 'notes\.txt' but no run\.json"):
        run(tmp_path)
    (tmp_path / "notes.txt").unlink()
    assert run(tmp_path).complete


def test_another_chain_does_not_mix(tmp_path):
    """The same study on another chain is refused."""
    run(tmp_path / "run")
    with pytest.raises(StudyError, match=r"another ledger: .*expected chain id 4, got 2"):
        run(tmp_path / "run", node=made_node(chain_id=2)[0])


def test_failures_are_rows(tmp_path):
    """A call that is refused at some versions is observed there with its code; where the VM failed, success is False."""

    def view(query, body):
        if at(query) < 5_000:
            return refused(400, "invalid_input", "function not found", head=ledger(HEAD))
        body = {"message": "Move abort", "error_code": "vm_error", "vm_error_code": 4016}
        return answer(["1"], gas=5) if at(query) < 9_000 else answer(body, status=400)

    found = run(tmp_path / "run", node=made_node({"POST /view": view})[0], versions="0:-1/5")
    frame = found.observations
    assert frame["error_code"].fillna("-").tolist() == ["invalid_input", "invalid_input", "-", "-", "vm_error"]
    assert frame["success"].astype(object).where(frame["success"].notna(), None).tolist() == [
        None,
        None,
        True,
        True,
        False,
    ]
    assert frame["gas_used"].isna().tolist() == [True, True, False, False, True]
    assert len(found.steps) == 2
    assert found.manifest["counts"] == {"observations": 5, "failures": 3, "unanswered": 0}


def test_versions_at_which_the_function_took_other_arguments_are_rows(tmp_path):
    """The arguments fit the code at the end; where an older one differs, that reading says so and the run goes on."""
    old = module("m", functions=[function("count", ["u64"], ["u64"])])
    code = {"GET /accounts/0x1/module/m": lambda query, _: answer(old if at(query) < UPGRADE else NEW)}
    found = run(tmp_path / "run", node=made_node(code)[0], versions="0:-1/5")
    assert found.observations["error_code"].fillna("-").tolist() == ["input_error"] * 3 + ["-"] * 2
    assert "expected 1 argument (u64), got 0" in found.observations["error_message"].iloc[0]
    assert found.complete


def test_calls_that_never_worked_are_named(tmp_path):
    """A note for each call of which every reading failed, and none for one that answered once."""

    def view(query, body):
        if body["function"].endswith("::dead"):
            return refused(400, "invalid_input" if at(query) else "module_not_found", "no", head=ledger(HEAD))
        return answer(["1"], gas=5) if at(query) == HEAD else refused(400, "invalid_input", "no", head=ledger(HEAD))

    calls = {"alive": COUNT, "dead": {"view": "0x1::m::dead"}}
    found = run(tmp_path / "run", node=made_node({"POST /view": view})[0], versions="0:-1/5", calls=calls)
    (note,) = found.notes
    assert note.startswith("every read of 'dead' failed (")
    assert "4 invalid_input" in note
    assert "1 module_not_found" in note
    assert run(tmp_path / "good").notes == ()


def test_a_pruned_start_is_noted(tmp_path):
    """What was clipped is in the run."""
    found = run(tmp_path / "run", node=made_node(oldest=5_000)[0], versions="0:-1/3")
    assert found.observations["ledger_version"].tolist() == [5_000, 7_500, 10_000]
    assert "versions 0 to 4,999 are pruned" in found.manifest["nodes"][0]["notes"][0]


def test_simulations_run_once_at_the_head(tmp_path):
    """Whatever the plan, a simulation is one observation, with its split, at a fixed price."""
    node, fake = made_node()
    frame = run(tmp_path / "run", node=node, calls={"pay": PAY}).observations
    ((query, body),) = fake.sent("POST /transactions/simulate")
    assert body["gas_unit_price"] == "100"
    assert "estimate_gas_unit_price" not in query
    row = frame.iloc[0]
    assert len(frame) == 1
    assert (row["source"], row["ledger_version"], row["gas_used"], row["io_gas_units"]) == ("simulate@now", HEAD, 9, 3)
    assert (row["gas_unit_price"], row["storage_fee_octas"]) == (100, 100)


def test_committed_transactions_of_a_function_are_read_in_pages(tmp_path):
    """Every transaction of that function in the plan's range, and no other."""
    node, fake = made_node()
    frame = run(
        tmp_path / "run", node=node, calls={"paid": {"committed": "0x1::m::pay"}}, versions="100:349"
    ).observations
    assert frame["ledger_version"].tolist() == list(range(101, 350, 2))
    assert frame["source"].unique().tolist() == ["committed"]
    assert len(fake.sent("GET /transactions")) == 3


def test_what_a_run_knows_of_itself(tmp_path):
    """Path, study, state and the last observations at a version."""
    run(tmp_path / "run")
    found = Run.open(tmp_path / "run")
    assert "complete" in repr(found)
    assert found.study.calls[0].request == COUNT
    assert found.at(3_600)["ledger_version"].tolist() == [3_500]
    assert len(found.at(10**9)) == 1
    with pytest.raises(InputError, match="expected a ledger version such as 1000, got 'size'"):
        found.at("size")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["complete"] is True


def test_without_a_folder_a_run_is_temporary():
    """It can be used as long as it is held, and leaves nothing."""
    found = run(None)
    path = found.path
    assert len(found.observations) == 21
    assert path.is_dir()
    del found
    gc.collect()
    assert not path.exists()


def test_outages_to_the_end_are_rows_and_not_an_abort(tmp_path, monkeypatch):
    """A node that stays unreachable for some versions leaves rows that say so."""
    monkeypatch.setattr("toolkit.client._http.RetryPolicy.wait_s", lambda *_, **__: 0.0)
    busy = lambda query, _: (  # noqa: E731
        refused(503, "internal_error", head=ledger(HEAD)) if at(query) == 5_000 else answer(["1"], gas=5)
    )
    found = run(tmp_path / "run", node=made_node({"POST /view": busy})[0], versions="0:-1/3")
    assert found.observations["status"].fillna(0).tolist() == [0, 503, 0]
    assert found.observations["gas_used"].fillna(0).tolist() == [5, 0, 5]


def test_gas_beyond_its_column_is_absent_and_not_judged(tmp_path):
    """A node that reports more than 2^63 - 1 gas units reports none: no number wraps, and the gate cannot judge."""
    told = {4_999: 9, 5_000: 2**63 - 1, 5_001: 2**63, 5_002: 2**64 - 1}
    view = {"POST /view": lambda query, _: answer(["1"], gas=told[at(query)], head=ledger(HEAD))}
    found = run(tmp_path, node=made_node(view)[0], versions=[4_999, 5_000, 5_001, 5_002])
    gas = [None if row is pd.NA else row for row in found.observations["gas_used"]]
    assert gas == [9, 2**63 - 1, None, None]
    gate = toolkit.compare(found.at(4_999), found.at(5_002)).gate("10%")
    assert (gate.verdict, gate.judged) == ("could not judge", 0)
