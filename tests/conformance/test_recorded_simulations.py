"""Every recorded request to simulate: built with the toolkit, sent as the real node got it, and answered with frames."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
import pytest

import toolkit
from tests.benchmarks.decode.plain_walk import JSON_COLUMNS, walk
from tests.conformance.plain_values import records
from tests.conformance.recorded_node import NOT_RECORDED, Exchange, Received
from tests.conformance.recorded_requests import request_of
from toolkit.errors import InputError, InvalidRequest, NodeError, SchemaError
from toolkit.move import parse_type_tag, resolve_layout
from toolkit.wire import SignedTransaction
from toolkit.wire._bcs_requests import signed_transaction


class Sent(NamedTuple):
    """A recorded exchange, the request that the toolkit sent for it, and what came of it."""

    exchange: Exchange
    received: Received
    result: toolkit.Simulation


@pytest.fixture(scope="session")
def outcomes(recordings, recorded_node, node, abis):
    """Send every recorded request with the toolkit; return what was answered, and why the others were not."""
    answered: list[Sent] = []
    others: list[tuple[Exchange, Exception]] = []
    for exchange in recordings.simulations:
        try:
            request = request_of(exchange, abis(exchange.head or 315))
            result = node.simulate(request)
        except (InputError, SchemaError, NodeError, KeyError, TypeError) as error:
            others.append((exchange, error))
            continue
        answered.append(Sent(exchange, recorded_node.received[-1], result))
    return answered, others


def query_of(path: str) -> set[tuple[str, str]]:
    """Return the estimates that a query asks for; false is the default, and other parameters mean nothing."""
    pairs = parse_qsl(urlsplit(path).query)
    return {pair for pair in pairs if pair[0].startswith("estimate_") and pair[1] == "true"}


def test_requests_are_sent_as_recorded(outcomes, recorded_node):
    """Each request that a node ran and the toolkit can make has the recorded meaning, as the bytes that BCS gives it.

    Two were not answered: a signature that is not zeros, which the toolkit never sends, and one that was recorded with
    its answer in BCS alone.
    """
    answered, others = outcomes
    kinds: Counter[str] = Counter()
    for exchange, received, _ in answered:
        if exchange.status != 200:
            continue
        wanted = recorded_node.meaning(exchange.method, exchange.path, exchange.headers, exchange.body)
        assert wanted is not None, exchange
        assert recorded_node.meaning(received.method, received.path, received.headers, received.body) == wanted, (
            exchange
        )
        assert query_of(received.path) == query_of(exchange.path), exchange
        kinds["in JSON" if exchange.sent else "in BCS"] += 1
    left = {(one.group, one.place): str(error) for one, error in others if one.status == 200}
    assert sorted(left) == [("raw", 71), ("simulations", 27)]
    assert "not all zeros" in left["raw", 71]
    assert NOT_RECORDED in left["simulations", 27]
    assert kinds == {"in JSON": 80, "in BCS": 34}
    print(dict(kinds))  # counts in the output


def test_what_is_left_open_is_filled_from_the_node(recordings, recorded_node, node):
    """Sequence number and expiration come from the node's account and ledger time, so the request is the recorded one."""
    recorded = recordings.files["simulations"][3]
    sender = recorded.sent["sender"]
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 1])
    result = node.simulate(call, sender=sender, max_gas_amount=200_000, gas_unit_price=100)
    received = recorded_node.received[-1]
    assert received.exchange is recorded
    sent = ("sequence_number", "expiration_timestamp_secs")
    assert [received.json[name] for name in sent] == [recorded.sent[name] for name in sent] == ["67", "652"]
    assert (result.success, result.gas_used) == (True, 12)


def test_requests_in_bcs_are_the_recorded_bytes(recordings, abis):
    """What the SDKs sent in BCS is read and written unchanged, and built again from its parts byte for byte."""
    recorded = [exchange for exchange in recordings.simulations if exchange.sent is None]
    orderless = 0
    for exchange in recorded:
        known = abis(exchange.head)
        assert SignedTransaction.from_bcs(exchange.body).to_bcs() == exchange.body, exchange
        request = request_of(exchange, known)
        function = known.module_abi(*request.payload.function.split("::")[:2]).function(
            request.payload.function.split("::")[2]
        )
        layouts = [_layout(text, known) for text in function.params if text not in {"&signer", "signer"}]
        numbers = dict.fromkeys(("sequence_number", "max_gas_amount", "gas_unit_price", "expiration_timestamp_secs"), 0)
        built = signed_transaction(request, chain_id=4, layouts=layouts, **numbers)
        if request.replay_protection_nonce is None:
            assert built.to_bcs() == exchange.body, exchange
        else:  # nodes ignore the sequence number of an orderless transaction
            assert _without_sequence_number(built.to_bcs()) == _without_sequence_number(exchange.body), exchange
            orderless += 1
    assert (len(recorded), orderless) == (34, 2)


def _without_sequence_number(transaction: bytes) -> bytes:
    return transaction[:32] + transaction[40:]


def _layout(text, known):
    return resolve_layout(parse_type_tag(text, abi=True), known)


def test_refused_requests(outcomes):
    """What a node refused raises its message, is refused before it is sent, or is sent in the form that nodes accept."""
    answered, others = outcomes
    kinds: Counter[str] = Counter()
    for exchange, _, result in answered:
        if exchange.status == 200:
            continue
        message = exchange.json["message"]
        right = (
            "expected a string" in message,
            "SubmitTransactionRequest" in message,
            "estimate_gas_unit_price" in message,
        )
        assert any(right) or "single_sender" in message, exchange
        assert result.transactions["ledger_version"].tolist() == [315]
        kinds["sent in the form that nodes accept"] += 1
    for exchange, error in others:
        if exchange.status == 200:
            continue
        if isinstance(error, InvalidRequest):
            wanted = exchange.json
            assert (error.status, error.error_code, error.vm_error_code) == (
                400,
                wanted["error_code"],
                wanted["vm_error_code"],
            )
            assert wanted["message"][:120].split("\n")[0] in str(error), exchange
            kinds["raised as the node says"] += 1
        elif isinstance(error, NodeError):
            assert error.error_code == NOT_RECORDED, exchange
            kinds["sent in another form than recorded"] += 1
        else:
            kinds["not a request" if isinstance(error, KeyError | TypeError) else "refused before it is sent"] += 1
    print(dict(kinds))  # counts in the output
    assert kinds == {
        "sent in the form that nodes accept": 7,
        "raised as the node says": 1,
        "sent in another form than recorded": 2,
        "refused before it is sent": 27,
        "not a request": 2,
    }


def plain(frame, name: str) -> list:
    """Return a column as Python values."""
    return pa.array(frame[name].array).to_pylist()


def test_answers_are_frames_of_the_recorded_cells(outcomes):
    """Transactions, changes and events of each answer: every cell that the walk of the JSON has."""
    answered, _ = outcomes
    count = 0
    for exchange, received, result in answered:
        body = (received.exchange if exchange.in_bcs or exchange.status != 200 else exchange).answer
        for frame, expected in zip((result.transactions, result.changes, result.events), walk(body), strict=True):
            columns = {
                name: values for name, values in expected.items() if name in frame.columns and name != "timestamp_us"
            }
            for name, values in columns.items():
                got = plain(frame, name)
                if name in JSON_COLUMNS:
                    got = [None if text is None else json.loads(text) for text in got]
                assert got == values, (exchange, name)
                count += len(values)
            assert len(columns) >= len(expected) - 4, sorted(set(expected) - set(columns))
    print(f"{len(answered)} simulations, {count} cells")  # counts in the output


def test_a_batch_is_the_frames_of_its_answers(outcomes, node):
    """`fetch_simulations` of all requests at once: every row is in the place of its request, with the recorded hash."""
    answered = [sent for sent in outcomes[0] if sent.exchange.status == 200 and not sent.exchange.in_bcs]
    frames = toolkit.fetch_simulations(node, [sent.result.request for sent in answered], progress=False)
    transactions = [sent.exchange.json[0] for sent in answered]
    assert plain(frames.transactions, "request") == list(range(len(answered)))
    assert plain(frames.transactions, "gas_used") == [int(one["gas_used"]) for one in transactions]
    assert plain(frames.transactions, "vm_status") == [one["vm_status"] for one in transactions]
    wanted = [(place, change["type"]) for place, one in enumerate(transactions) for change in one["changes"]]
    assert list(zip(plain(frames.changes, "request"), plain(frames.changes, "type"), strict=True)) == wanted
    wanted = [(place, event["data"]) for place, one in enumerate(transactions) for event in one["events"]]
    data = map(json.loads, plain(frames.events, "data"))
    assert list(zip(plain(frames.events, "request"), data, strict=True)) == wanted
    print(f"{len(answered)} requests in one batch")  # counts in the output


def test_gas_is_the_recorded_fee_statement(outcomes):
    """Gas used, its split and what is left to pay follow from the FeeStatement; a discarded transaction has none."""
    answered, _ = outcomes
    discarded = 0
    for exchange, received, result in answered:
        (transaction,) = (received.exchange if exchange.in_bcs or exchange.status != 200 else exchange).json
        assert result.gas_used == int(transaction["gas_used"])
        assert (result.success, result.vm_status) == (transaction["success"], transaction["vm_status"])
        events = transaction["events"]
        fees = [event["data"] for event in events if event["type"] == "0x1::transaction_fee::FeeStatement"]
        if not fees:
            assert result.gas is None
            discarded += 1
            continue
        wanted = {name: int(text) for name, text in fees[-1].items()}
        got = {name: getattr(result.gas, name) for name in wanted if name != "storage_fee_refund_octas"}
        assert got == {name: value for name, value in wanted.items() if name != "storage_fee_refund_octas"}
        assert result.gas.storage_fee_refund_octas == wanted["storage_fee_refund_octas"]
        price = int(transaction["gas_unit_price"])
        assert result.gas.net_octas == wanted["total_charge_gas_units"] * price - wanted["storage_fee_refund_octas"]
    print(f"{discarded} of {len(answered)} were discarded before they ran")  # counts in the output


def test_resources_and_events_are_typed(outcomes, recorded_node):
    """`resources` and `events_of` of each simulation have a row per write and event of the type."""
    answered, _ = outcomes
    seen: Counter[str] = Counter()
    for exchange, _, result in answered:
        if exchange.status != 200 or exchange.in_bcs or exchange.group != "simulations":
            continue
        (transaction,) = exchange.json
        written = Counter(c["data"]["type"] for c in transaction["changes"] if c["type"] == "write_resource")
        emitted = Counter(event["type"] for event in transaction["events"])
        for tag, number in written.items():
            assert len(result.resources(tag)) == number, (exchange, tag)
        for tag, number in emitted.items():
            assert len(result.events_of(tag)) == number, (exchange, tag)
        seen.update(written.keys() | emitted.keys())
    print(f"{len(seen)} types")  # counts in the output


def test_diffs_read_the_state_before(outcomes, recordings):
    """`diff` has a row per resource and table item written: before is the recorded state, after what is written."""
    answered, _ = outcomes
    history, seen = recordings.history, Counter()
    wanted = {7, 8, 14, 16, 17, 21}  # put, drop_item, note, a failure, an enum and a payment
    for exchange, _, result in answered:
        if exchange.group != "simulations" or exchange.place not in wanted:
            continue
        changes = exchange.json[0]["changes"]
        with warnings.catch_warnings():  # of a group whose members are not known: the recording masks the code
            warnings.filterwarnings("ignore", "diff: resources that ended")
            rows = records(result.diff())
        assert len(rows) == len(changes), exchange
        for row, change in zip(rows, changes, strict=True):
            assert row["type"] == change["type"]
            if change["type"] == "write_resource":
                state = history.resource(change["address"], change["data"]["type"], 315)
                assert _json(row["before"]) == (None if state is None else state["data"]), exchange
                assert _json(row["after"]) == change["data"]["data"], exchange
            else:
                state = history.value("item", int(change["handle"], 16), change["key"], 315)
                assert row["before"] == (None if state is None else state), exchange
                assert row["after"] == change.get("value"), exchange
            seen[change["type"]] += 1
    assert set(seen) == {"write_resource", "write_table_item", "delete_table_item"}
    print(dict(seen))  # counts in the output


def _json(text):
    return json.loads(text) if isinstance(text, str) else None


@pytest.mark.parametrize("places", [(25, 3), (26, 6), (28, 7)], ids=["transfer", "coin", "put"])
def test_requests_in_bcs_have_the_same_frames(places, recordings, recorded_node, bcs_node, abis):
    """With ``encoding="bcs"`` a simulation is sent in BCS and answered in JSON, as a request in JSON is."""
    place, in_json = places
    recorded = recordings.files["simulations"]
    result = bcs_node.simulate(request_of(recorded[place], abis(315)))
    received = recorded_node.received[-1]
    assert received.headers["content-type"] == "application/x.aptos.signed_transaction+bcs"
    assert received.headers["accept"] == "application/json"
    assert received.exchange is recorded[in_json]
    assert result.success
    expected = walk(recorded[in_json].answer)
    for frame, columns in zip((result.transactions, result.changes, result.events), expected, strict=True):
        for name, values in columns.items():
            if name not in frame.columns or name == "timestamp_us":
                continue
            got = plain(frame, name)
            if name in JSON_COLUMNS:
                got = [None if text is None else json.loads(text) for text in got]
            assert got == values, name
