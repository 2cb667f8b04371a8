"""Recorded transactions of the real machine are served by a node on loopback and replayed through it."""

from __future__ import annotations

from collections import Counter

import pytest

import toolkit
from tests.conformance import recorded_executions as recorded
from tests.conformance.state_node import Sent, StateNode, access_key, text, u64
from toolkit.client._abis import function_abi, parameter_layouts
from toolkit.move import Bytes, VectorOf, decode_bcs
from toolkit.move._bcs import Reader
from toolkit.vm._bcs import read_tag, tag_bytes
from toolkit.vm._types import parse
from toolkit.wire import SignedTransaction
from toolkit.wire._bcs_requests import EncodedEntryFunction

pytestmark = pytest.mark.skipif(
    not recorded.FOLDER.is_dir(),
    reason="the recorded executions are not beside this checkout (../shared/data/executions)",
)

# Of the files that `test_machine_executions` compares whole, every fifth transaction: here is tested how they are read.
FILES = {"transactions": 5, "transactions-2": 5, "state": 5, "scenarios": 1}


def location_bcs(location):
    if location == "script":
        return b"\1"
    address, name = location.split("::")
    return b"\0" + int(address, 16).to_bytes(32, "big") + text(name)


def status_bcs(status):
    match status["kept"]:
        case "success":
            return b"\0"
        case "out_of_gas":
            return b"\1"
        case "abort":
            info = status["info"]
            told = b"\0" if info is None else b"\1" + text(info["reason"]) + text(info["description"])
            return b"\2" + location_bcs(status["location"]) + u64(status["code"]) + told
        case "execution_failure":
            place = status["function"].to_bytes(2, "little") + status["offset"].to_bytes(2, "little")
            return b"\3" + location_bcs(status["location"]) + place
    return b"\4\1" + u64(status["number"])


def sent_of(record):
    """Return a recorded transaction as a node has it; None if the ledger does not: it was discarded."""
    output = record["output"]
    if record["kind"] != "transaction" or "discard" in output["status"]:
        return None
    events = [
        (None if key is None else bytes.fromhex(key), number, tag_bytes(parse(kind)), recorded.value_of(data))
        for kind, key, number, data in output["events"]
    ]
    writes = [
        (bytes.fromhex(key), op, recorded.value_of(value), metadata) for key, op, value, metadata in output["write_set"]
    ]
    state = {}
    for key, value, metadata in record["reads"]:
        found = recorded.value_of(value)
        state[bytes.fromhex(key)] = None if found is None else (found, metadata)
    transaction = recorded.value_of(record["transaction"])
    raw = SignedTransaction.from_bcs(transaction).raw
    function = raw.payload.function.wire if isinstance(raw.payload, EncodedEntryFunction) else None
    status = status_bcs(output["status"])
    index = record.get("transaction_index") or 1
    return Sent(transaction, status, output["gas_used"], events, writes, state, function, raw.sender, index)


@pytest.fixture(scope="module")
def node():
    records = [record for name, step in FILES.items() for record in recorded.lines(name)[::step]]
    sent = [one for record in records if (one := sent_of(record)) is not None]
    with StateNode(sent=sent).serving() as served, toolkit.connect(served.url) as client:
        client.served = served
        yield client


def test_recorded_transactions_are_replayed_over_http(node):
    """Each is verified to the last write and its metadata, or is a row that says what the machine does not implement."""
    found = toolkit.replay(node, "0:-1", progress=False)
    assert len(found) == len(node.served.sent)
    reasons = Counter(found["error_message"].dropna())
    replayed = found[found["error_code"].isna()]
    print(f"\n{len(found)} replayed, {int(replayed['verified'].sum())} verified; the rest: {dict(reasons)}")
    assert set(found["error_code"].dropna()) <= {"unsupported"}
    assert replayed["verified"].all(), replayed.loc[~replayed["verified"], ["ledger_version", "differences"]]
    assert len(replayed) >= 0.98 * len(found)
    for name in ("gas_used", "execution_gas_units", "io_gas_units", "storage_fee_octas", "storage_fee_refund_octas"):
        assert replayed[name].fillna(-1).eq(replayed[f"replayed_{name}"].fillna(-1)).all()


def test_without_raw_state_values_all_but_refunds_and_fees_of_existing_slots_is_exact():
    """Groups are assembled from resources, and amounts that need slot metadata are reported as unknown."""
    sent = [one for record in recorded.lines("scenarios") if (one := sent_of(record)) is not None]
    with StateNode(sent=sent, raw=False).serving() as served, toolkit.connect(served.url) as node:
        assert not node.probe().offers["raw state values"]
        found = toolkit.replay(node, "0:-1", progress=False)
        assert found["error_code"].isna().all(), found["error_message"].dropna().tolist()
        first = int(found["ledger_version"].iloc[0])
        replay = node.fork(first - 1).replay(first)
    assert not replay.has_metadata
    assert "metadata" in replay.explain()
    for name in ("execution_gas_units", "io_gas_units"):
        assert found[name].eq(found[f"replayed_{name}"]).all()
    print(f"\n{len(found)} replayed without metadata, {int(found['verified'].sum())} verified")
    assert found["verified"].mean() > 0.5


def called(signed, fork):
    """Return a recorded call as a request with Python values, typed by the bytecode of the fork."""
    raw = signed.raw
    abis = fork.node.abis.at(fork.ledger_version)
    function, types = raw.payload.function, [str(one) for one in raw.payload.type_arguments]
    layouts = parameter_layouts(function_abi(str(function), abis), types, abis)
    values = [decode_bcs(layout, data) for layout, data in zip(layouts, raw.payload.arguments, strict=True)]
    return toolkit.SimulationRequest(
        toolkit.EntryFunction(str(function), values, type_arguments=types),
        sender=raw.sender,
        max_gas_amount=raw.max_gas_amount,
        gas_unit_price=raw.gas_unit_price,
        sequence_number=raw.sequence_number,
        expiration_timestamp_secs=raw.expiration_timestamp_secs,
    )


@pytest.fixture(scope="module")
def whole_node():
    """Return a node over recorded scenarios whose state also has what only types need: every module."""
    start = {}
    for package in recorded.lines("packages"):
        for address, name, _, code in package["modules"]:
            where = int(address, 16).to_bytes(32, "big")
            start[access_key(where, b"\0" + where + text(name))] = (bytes.fromhex(code), None)
    sent = [one for record in recorded.lines("scenarios") if (one := sent_of(record)) is not None]
    for one in sent:
        one.state = start | one.state
    with StateNode(sent=sent).serving() as served, toolkit.connect(served.url) as client:
        client.served = served
        yield client


def test_simulations_on_a_fork_foretell_what_was_charged(whole_node):
    """Calls of recorded scenarios, simulated on the state before them: the success, gas and events of the ledger."""
    node, equal, different = whole_node, 0, []
    for version, sent in zip(node.served.versions, node.served.sent, strict=True):
        signed = SignedTransaction.from_bcs(sent.transaction)
        if not isinstance(signed.raw.payload, EncodedEntryFunction) or "publish" in sent.function:
            continue
        if type(signed.signature).__name__ != "Ed25519Signature":
            continue
        fork = node.fork(version - 1)
        try:
            done = fork.simulate(called(signed, fork))
        except (AttributeError, ValueError):  # calls that no ABI fits, recorded to see them fail
            continue
        same = done.success == (sent.status == b"\0")
        same &= done.gas_used == sent.gas_used
        same &= [one.type for one in done.transaction.events] == [
            str(read_tag(Reader(tag))) for _, _, tag, _ in sent.events
        ]
        equal += same
        if not same:
            different.append((version, sent.function, done.vm_status, done.gas_used, sent.gas_used))
    print(f"\n{equal} simulated as charged; {different}")
    assert equal > 30
    assert len(different) < 0.1 * equal


def test_a_recorded_upgrade_is_published_on_a_fork(tmp_path):
    """The folder of a package is published as it was on the ledger, and an incompatible one is refused as it was."""
    wanted = {"tx-0232": None, "tx-0236": "BACKWARD_INCOMPATIBLE_MODULE_UPDATE"}
    for record in recorded.lines("transactions-2"):
        if record["id"] not in wanted:
            continue
        one = sent_of(record)
        metadata, codes = SignedTransaction.from_bcs(one.transaction).raw.payload.arguments
        folder = tmp_path / record["id"]
        (folder / "bytecode_modules").mkdir(parents=True)
        (folder / "package-metadata.bcs").write_bytes(decode_bcs(Bytes(), metadata))
        for at, code in enumerate(decode_bcs(VectorOf(Bytes()), codes)):
            (folder / "bytecode_modules" / f"{at}.mv").write_bytes(code)
        with StateNode(sent=[one]).serving() as served, toolkit.connect(served.url) as node:
            fork = node.fork(1)
            if wanted[record["id"]] is None:
                done = fork.publish(folder)
                assert done.success
                assert len(done.changes[done.changes["type"] == "write_module"]) == len(list(folder.rglob("*.mv")))
            else:
                with pytest.raises(toolkit.InputError, match=wanted[record["id"]]):
                    fork.publish(folder)
