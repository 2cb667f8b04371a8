"""Many replays: executors, hostile nodes, and values that are shared only where nothing wrote them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import toolkit
from tests.conformance.state_node import stored_value
from tests.unit.fork import small_node
from tests.unit.vm import small_ledger as small
from toolkit.errors import InputError, NodeError, NodeUnreachable, SchemaError, StudyError, VersionPruned
from toolkit.fork import _sweep
from toolkit.fork._replay import read_committed
from toolkit.fork._sweep import Timeline, _hash_of
from toolkit.wire._aborts import VM_STATUS_CODES
from toolkit.wire._bcs_forms import encoded, whole
from toolkit.wire._on_chain import _STATUS, STATE_VALUE


@pytest.fixture
def served():
    with small_node.node().serving() as one:
        yield one


def test_an_executor_gives_the_same_rows(served):
    with toolkit.connect(served.url) as node:
        alone = toolkit.replay(node, "0:-1", progress=False)
        done = []
        shared = toolkit.replay(node, "0:-1", executor="threads:2", progress=lambda *told: done.append(told[1]))
    assert shared.equals(alone)
    assert done[-1] == served.head + 1


def test_a_value_is_shared_until_it_is_written():
    """Not across a write, and not across versions that nobody has seen."""
    key, timeline = b"\0key", Timeline()
    for version, written in [(10, []), (11, [_hash_of(key)]), (12, []), (20, [])]:
        timeline.see(version, written)
    before = timeline.mark(key, 9)
    assert timeline.mark(key, 10) == before
    assert timeline.mark(key, 11) != before
    assert timeline.mark(key, 19) not in {before, timeline.mark(key, 11)}
    timeline.values[before] = (b"1", None)
    timeline.forget()
    timeline.see(21, [])
    assert timeline.mark(key, 20) == timeline.mark(key, 20)


@pytest.mark.parametrize("cut", [0, 1, 9, 60, 200, -40, -1])
def test_a_transaction_that_is_cut_off_is_refused(served, cut):
    data = served.sent[1].to_bcs(4)
    with pytest.raises(SchemaError):
        read_committed(data[:cut])


def test_what_is_not_a_committed_transaction_is_the_fault_of_the_node():
    """Whatever stands where a committed transaction has its kind: no version was chosen wrongly."""
    with pytest.raises(SchemaError):
        read_committed(b"\x01" * 40)
    with pytest.raises(InputError, match="version 5 is not a user transaction"):
        read_committed(b"\0" + (5).to_bytes(8, "little") + b"\x02")


@pytest.mark.parametrize("number", [None, 0, 1, 12_345, 2**64 - 1, VM_STATUS_CODES["ARITHMETIC_ERROR"]])
def test_a_status_of_any_number_is_written_as_it_was_read(number):
    data = b"\4" + (b"\0" if number is None else b"\1" + number.to_bytes(8, "little"))
    status = whole(_STATUS, data)
    assert encoded(_STATUS, status) == data
    assert status.code is None if number is None else isinstance(status.code, str)


@pytest.mark.parametrize("data", [b"", b"\x02\x00", b"\x00\x05abc", b"\x00\x01a\x00", b"\x01\x00\x02"])
def test_a_value_that_no_node_stores_is_refused(data):
    with pytest.raises(SchemaError):
        whole(STATE_VALUE, data)


def test_values_have_the_metadata_of_their_slots():
    for metadata in (None, (5, 0, 7), (5, 6, 7)):
        assert whole(STATE_VALUE, stored_value(b"abc", metadata)) == (b"abc", metadata)


def test_a_node_that_lies_about_state_gives_rows_not_errors(served):
    """If bytes are not a module, the transactions that need them are rows that say so, and the others are verified."""
    lied = dict(served.sent[1].state)
    lied[small_node.module_key(small.COUNTER)] = (b"\xa1\x1c\xeb\x0bnonsense", None)
    served.sent[1].state = lied
    with toolkit.connect(served.url) as node:
        found = toolkit.replay(node, "0:-1", progress=False).set_index("ledger_version")
    assert len(found) == len(served.sent)
    assert not bool(found["verified"].fillna(value=False).loc[4])
    assert found["verified"].drop([4, 6]).fillna(value=False).sum() >= 1


# resumed replays ------------------------------------------------------------------------------------------------------

MANY = [("start",), *[("bump", small.ALICE)] * 150]


@pytest.fixture(scope="module")
def many():
    with small_node.node(MANY).serving() as one:
        yield one


@pytest.fixture
def small_groups(monkeypatch):
    """Rows are stored every 100 versions, so that a short ledger has several groups."""
    monkeypatch.setattr(_sweep, "_TASK", 100)


@pytest.mark.usefixtures("small_groups")
def test_an_interrupted_replay_continues_without_a_row_lost_or_doubled(many, tmp_path):
    out = tmp_path / "replays"
    with toolkit.connect(many.url, cache=None) as node:
        whole = toolkit.replay(node, "0:-1", progress=False)

        def stop(_, done, __):
            if done >= 200:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            toolkit.replay(node, "0:-1", out=out, progress=stop)
        stored = {one.name: one.stat().st_mtime_ns for one in out.glob("*.parquet")}
        assert 0 < len(stored) < 4
        seen = []
        found = toolkit.replay(node, "0:-1", out=out, progress=lambda *told: seen.append(told[1]))
        assert found.equals(whole)
        assert seen[-1] == many.head + 1
        assert all((out / name).stat().st_mtime_ns == at for name, at in stored.items())
        before = many.reads
        assert toolkit.replay(node, "0:-1", out=out, executor="threads:2", progress=False).equals(whole)
        assert many.reads == before
        assert not list(out.glob("*.tmp"))


@pytest.mark.usefixtures("small_groups")
def test_what_is_damaged_or_unanswered_is_replayed_again(many, tmp_path):
    out = tmp_path / "replays"
    with toolkit.connect(many.url, cache=None) as node:
        whole = toolkit.replay(node, "0:-1", out=out, progress=False)
        first, second, *_ = sorted(out.glob("*.parquet"))
        first.write_bytes(first.read_bytes()[:100])
        second.unlink()
        assert toolkit.replay(node, "0:-1", out=out, progress=False).equals(whole)


def test_a_folder_of_something_else_is_refused(many, tmp_path):
    out = tmp_path / "replays"
    with toolkit.connect(many.url, cache=None) as node:
        toolkit.replay(node, "0:9", out=out, progress=False)
        with pytest.raises(StudyError, match="function"):
            toolkit.replay(node, "0:9", function="0x1::a::b", out=out, progress=False)
        with pytest.raises(StudyError, match="change"):
            toolkit.replay(node, "0:9", gas_schedule={"instr.add": 1}, out=out, progress=False)
        with pytest.raises(StudyError, match="plan"):
            toolkit.replay(node, [0, 4, 9], out=out, progress=False)
        listed = tmp_path / "listed"
        assert len(toolkit.replay(node, [2, 4, 8], out=listed, progress=False)) == 3
        with pytest.raises(StudyError, match="plan"):
            toolkit.replay(node, [2, 6, 8], out=listed, progress=False)
        (out / "replays.json").write_text("{}")
        with pytest.raises(StudyError, match="damaged"):
            toolkit.replay(node, "0:9", out=out, progress=False)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "notes.txt").write_text("mine")
        with pytest.raises(StudyError, match=r"contains 'notes\.txt' but no"):
            toolkit.replay(node, "0:9", out=tmp_path / "other", progress=False)
        with pytest.raises(StudyError, match="not a folder"):
            toolkit.replay(node, "0:9", out=tmp_path / "other" / "notes.txt", progress=False)


def test_a_folder_of_another_ledger_is_refused(many, tmp_path):
    out = tmp_path / "replays"
    with toolkit.connect(many.url, cache=None) as node:
        toolkit.replay(node, "0:9", out=out, progress=False)
    plan = (out / "replays.json").read_text()
    (out / "replays.json").write_text(plan.replace(f"0x{9:064x}", f"0x{77:064x}"))
    with toolkit.connect(many.url, cache=None) as node, pytest.raises(StudyError, match="another ledger"):
        toolkit.replay(node, "0:9", out=out, progress=False)


@pytest.mark.usefixtures("small_groups")
def test_a_node_that_goes_away_ends_the_replay_and_is_resumed(many, tmp_path):
    """The rows that it answered are stored; the others are replayed when it is back."""
    out = tmp_path / "replays"

    def away(_, done, __):
        many.gone = done >= 100

    try:
        with toolkit.connect(many.url, cache=None, timeout_s=1) as node, pytest.raises((NodeError, NodeUnreachable)):
            toolkit.replay(node, "0:-1", out=out, progress=away)
    finally:
        many.gone = False
    assert 0 < len(list(out.glob("*.parquet"))) < 4
    with toolkit.connect(many.url, cache=None) as node:
        found = toolkit.replay(node, "0:-1", out=out, progress=False)
        assert found.equals(toolkit.replay(node, "0:-1", progress=False))


SCRIPT = """
import sys, toolkit
with toolkit.connect(sys.argv[1], cache=None) as node:
    toolkit.replay(node, "0:-1", out=sys.argv[2], progress=False)
"""


def test_a_killed_replay_continues(tmp_path):
    """kill -9 at any time leaves whole groups, and no lock."""
    out = tmp_path / "replays"
    made = small_node.node([("start",), *[("bump", small.ALICE)] * 300], latency_s=0.002)
    with made.serving() as served:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, served.url, str(out)], env=environment)
        try:
            deadline = time.monotonic() + 60
            while not list(out.glob("*.parquet")) and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        stored = len(list(out.glob("*.parquet")))
        assert stored >= 1
        with toolkit.connect(served.url, cache=None) as node:
            found = toolkit.replay(node, "0:-1", out=out, progress=False)
    assert found["ledger_version"].tolist() == served.versions
    assert found["verified"].all()


def test_processes_replay_as_this_one(many):
    with toolkit.connect(many.url, cache=None) as node:
        alone = toolkit.replay(node, "0:29", gas_schedule={"instr.add": "x10"}, progress=False)
        pooled = toolkit.replay(node, "0:29", gas_schedule={"instr.add": "x10"}, executor="processes:1", progress=False)
    assert pooled.equals(alone)
    assert pooled["changed_gas_used"].notna().all()


# bad input ------------------------------------------------------------------------------------------------------------


def test_pruned_versions_are_rows_and_a_fork_says_so(many):
    many.oldest = 6
    try:
        with toolkit.connect(many.url, cache=None) as node:
            found = toolkit.replay(node, [4, 6, 8], progress=False)
            assert found["error_code"].fillna("").tolist() == ["version_pruned", "version_pruned", ""]
            with pytest.raises(VersionPruned):
                node.fork(5).replay(6)
    finally:
        many.oldest = 0


def test_a_missing_module_is_a_row_or_a_failed_call(served):
    """The ledger says that the call succeeded, so a state without its code does not verify; a fork says what is missing."""
    lacking = dict(served.sent[1].state) | {small_node.module_key(small.COUNTER): None}
    served.sent[1].state = lacking
    with toolkit.connect(served.url, cache=None) as node:
        found = toolkit.replay(node, [4], progress=False)
        assert not found["verified"].fillna(value=False).any()
        call = toolkit.EntryFunction("0xcafe::counter::bump", ["0xaa"])
        with pytest.raises(InputError, match="0xcafe"):
            node.fork(3).simulate(call, sender="0xaa")


def test_a_node_without_the_state_endpoint_or_bcs_transactions(served):
    """Without raw state values, metadata is unknown; without transactions in BCS, there is nothing to replay."""
    served.raw = False
    with toolkit.connect(served.url, cache=None) as node:
        found = toolkit.replay(node, [4], progress=False)
    assert found["error_code"].isna().all()
    served.only_json = True
    with toolkit.connect(served.url, cache=None) as node:
        found = toolkit.replay(node, [4], progress=False)
    assert found["error_code"].tolist() == ["schema_error"]


def test_a_fork_of_a_state_that_lies_says_what_is_wrong(served):
    """Code that is not bytecode is a worded error about the node's data, for every reader."""
    key = small_node.module_key(small.COUNTER)
    for sent in served.sent:
        sent.state = type(sent.state)(sent.state | {key: (b"\xa1\x1c\xeb\x0b\x06\0\0\0\x01\x07\xff", None)})
    call = toolkit.EntryFunction("0xcafe::counter::bump", ["0xaa"])
    with toolkit.connect(served.url, cache=None) as node:
        fork = node.fork(3)
        with pytest.raises(toolkit.ToolkitError, match="0xcafe::counter is not bytecode"):
            fork.simulate(call, sender="0xaa")
        with pytest.raises(toolkit.ToolkitError, match="not bytecode"):
            fork.set_resource("0xaa", "0xcafe::counter::Value", {"value": 1})
        request = toolkit.SimulationRequest(call, sender="0xaa")
        rows = toolkit.fetch_simulations(node, request, [3, 5], progress=False).transactions
    assert rows["error_code"].notna().all()


def test_a_closed_node_ends_a_replay(many):
    """It is not an error of a row."""

    def close(_, done, __):
        if done:
            node.close()

    node = toolkit.connect(many.url, cache=None)
    with pytest.raises(toolkit.errors.ClosedError):
        toolkit.replay(node, "0:-1", progress=close)
