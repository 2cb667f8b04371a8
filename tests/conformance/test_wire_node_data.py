"""Every recorded answer under ../shared/data/node goes through the wire package; counts are printed."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.benchmarks.decode.plain_walk import cells, differences
from toolkit.frames._columns import plain_columns
from toolkit.frames._transactions import transaction_frames
from toolkit.move import decode_module_abi
from toolkit.wire import EntryFunction, FeePayerSignature, Multisig, UserTransaction
from toolkit.wire._requests import UnknownPayload, parse_payload
from toolkit.wire._responses import (
    ERROR_CODES,
    decode_account,
    decode_block,
    decode_error_body,
    decode_gas_price_estimate,
    decode_node_info,
)
from toolkit.wire._rows import transaction_rows
from toolkit.wire._signatures import UnknownSignature, parse_account_signature, parse_signature
from toolkit.wire._transactions import Event, KnownChange, KnownTransaction, decode_simulation, decode_transactions

if TYPE_CHECKING:
    from pathlib import Path

VIEWS = ("view_function.", "option_test.")
Counts = Counter[str]
Reader = Callable[[bytes, Any, Counts], None]


def read_transactions(body: bytes, content: Any, counts: Counts) -> None:
    """Decode, compare cell by cell with a plain walk, parse payload and signature of each."""
    first = content[0] if isinstance(content, list) else content
    transactions = decode_transactions(body) if "type" in first else decode_simulation(body)
    rows = transaction_rows(transactions)
    assert differences(rows, body) == []
    assert len(transactions) == (len(content) if isinstance(content, list) else 1)
    for transaction in transactions:
        counts["transactions"] += 1
        if isinstance(transaction, UserTransaction):
            payload = transaction.payload
            assert not isinstance(payload, UnknownPayload) or payload.type == "module_bundle_payload"
            assert not isinstance(transaction.signature, UnknownSignature)
            counts["payloads and signatures parsed"] += 1
            split = transaction.gas_breakdown()
            if split is not None:
                assert split.reconciles
                assert split.total_charge_gas_units == transaction.gas_used
                counts["fee statements that reconcile"] += 1
    frames = transaction_frames(transactions)
    for frame, table in zip(frames, (rows.transactions, rows.changes, rows.events), strict=True):
        assert len(frame) == len(table["version"])
    assert plain_columns(frames[0], ["ledger_version"])["ledger_version"] == rows.transactions["version"]
    for name in ("gas_used", "sequence_number", "max_gas_amount", "gas_unit_price"):
        assert plain_columns(frames[0], [name])[name] == rows.transactions[name]
    for name in ("type", "data"):
        assert plain_columns(frames[1], [name])[name] == rows.changes[name]
    for name in ("sequence_number", "data"):
        assert plain_columns(frames[2], [name])[name] == rows.events[name]
    counts["state changes"] += len(rows.changes["version"])
    counts["events"] += len(rows.events["version"])
    counts["cells equal to a plain walk"] += cells(rows)


def read_change(body: bytes, content: Any, counts: Counts) -> None:
    """Put a recorded change into a transaction around it."""
    shell = {"version": "1", "hash": "0x", "gas_used": "0", "success": True, "vm_status": "", "changes": [content]}
    text = json.dumps(shell | {"timestamp": "1", "type": "state_checkpoint_transaction"}).encode()
    rows = transaction_rows(decode_transactions(text))
    assert differences(rows, text) == []
    counts["state changes"] += 1


def read_event(body: bytes, content: Any, counts: Counts) -> None:
    """Decode one event as the events endpoints answer it."""
    event = msgspec.json.decode(body, type=Event)
    assert json.loads(bytes(event.data)) == content["data"]
    counts["events"] += 1


def read_error(body: bytes, content: Any, counts: Counts) -> None:
    """Read error bodies, also where the recorder joined several."""
    bodies = content if isinstance(content, list) else [content]
    for one in (part for part in bodies if isinstance(part, dict)):  # one file ends with a view answer
        error = decode_error_body(json.dumps(one).encode(), "application/json")
        assert error.message == one["message"]
        assert error.error_code == one.get("error_code")
        assert error.vm_error_code == one.get("vm_error_code")
        if error.error_code is not None:
            assert error.error_code in ERROR_CODES
        counts["error bodies"] += 1


def read_signature(body: bytes, content: Any, counts: Counts) -> None:
    """Read a signature; what is sent again is what came."""
    signature = parse_signature(body)
    assert signature.to_wire() == content
    if not isinstance(signature, FeePayerSignature):
        assert parse_account_signature(body).to_wire() == content
    counts["signatures"] += 1


def read_payload(body: bytes, content: Any, counts: Counts) -> None:
    """Read a payload."""
    payload = parse_payload(body)
    inner = payload.transaction_payload if isinstance(payload, Multisig) else payload
    assert isinstance(inner, EntryFunction)
    assert list(inner.arguments) == content.get("payload", content)["arguments"]
    counts["payloads"] += 1


def read_modules(body: bytes, content: Any, counts: Counts) -> None:
    """Read the ABI of each module."""
    for module in content if isinstance(content, list) else [content]:
        abi = decode_module_abi(module["abi"])
        assert abi.name == module["abi"]["name"]
        counts["module ABIs"] += 1


def read_resources(body: bytes, content: Any, counts: Counts) -> None:
    """Resources are typed by layouts; here they are well-formed JSON with a type."""
    for resource in content if isinstance(content, list) else [content]:
        assert set(resource) == {"type", "data"}
        counts["resources"] += 1


def read_view(body: bytes, content: Any, counts: Counts) -> None:
    """A view answer is an array of values."""
    assert isinstance(content, list)
    counts["view answers"] += 1


def read_pending(body: bytes, content: Any, counts: Counts) -> None:
    """A submitted transaction is answered as a pending one, without its type."""
    text = json.dumps(content | {"type": "pending_transaction"}).encode()
    rows = transaction_rows(decode_transactions(text))
    assert differences(rows, text) == []
    counts["pending transactions"] += 1


def read_node(body: bytes, content: Any, counts: Counts) -> None:
    """GET /v1."""
    assert decode_node_info(body).ledger.version == int(content["ledger_version"])
    counts["node answers"] += 1


def read_account(body: bytes, content: Any, counts: Counts) -> None:
    """An account."""
    assert decode_account(body).sequence_number == int(content["sequence_number"])
    counts["node answers"] += 1


def read_block(body: bytes, content: Any, counts: Counts) -> None:
    """A block."""
    block = decode_block(body)
    assert (block.block_height, block.first_version) == (int(content["block_height"]), int(content["first_version"]))
    counts["node answers"] += 1


def read_estimate(body: bytes, content: Any, counts: Counts) -> None:
    """A gas price estimate."""
    assert decode_gas_price_estimate(body).gas_estimate == content["gas_estimate"]
    counts["node answers"] += 1


def read_events(body: bytes, content: Any, counts: Counts) -> None:
    """Decode an array of events."""
    events = msgspec.json.decode(body, type=list[Event])
    assert [event.sequence_number for event in events] == [int(event["sequence_number"]) for event in content]
    counts["events"] += len(events)


CHANGES = {"write_module", "delete_resource", "write_table_item", "delete_table_item"}
RULES: list[tuple[Callable[[str, Any, set[str], str], bool], Reader]] = [
    (lambda name, _, keys, __: name.startswith(VIEWS) and "error_code" not in keys, read_view),
    (lambda _, __, keys, ___: {"vm_status", "success"} <= keys, read_transactions),
    (lambda _, __, keys, ___: {"sender", "payload", "expiration_timestamp_secs"} <= keys, read_pending),
    (lambda _, content, keys, __: "guid" in keys and isinstance(content, dict), read_event),
    (lambda _, __, keys, ___: "guid" in keys, read_events),
    (lambda _, __, keys, ___: "message" in keys, read_error),
    (lambda _, __, keys, ___: "gas_estimate" in keys, read_estimate),
    (lambda _, __, keys, ___: {"ledger_version", "chain_id"} <= keys, read_node),
    (lambda _, __, keys, ___: "authentication_key" in keys, read_account),
    (lambda _, __, keys, ___: {"block_height", "first_version"} <= keys, read_block),
    (lambda _, __, keys, ___: "abi" in keys, read_modules),
    (lambda _, __, ___, kind: kind.endswith("_signature"), read_signature),
    (lambda _, __, ___, kind: kind.endswith("_payload"), read_payload),
    (lambda _, __, ___, kind: kind in CHANGES, read_change),
    (lambda _, __, keys, ___: keys == {"type", "data"}, read_resources),
]
"""What a file holds, told by its name, its first object's keys and its type: the first rule that fits."""


def reader_of(name: str, content: Any) -> Reader | None:
    """Return the reader for a file; None for what no rule fits."""
    first = content[0] if isinstance(content, list) and content else content
    keys = set(first) if isinstance(first, dict) else set()
    kind = str(first.get("type")) if isinstance(first, dict) else ""
    return next((reader for fits, reader in RULES if fits(name, content, keys, kind)), None)


def test_every_recorded_answer_is_read(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No file is left over, nothing raises, each cell equals what a plain walk of the JSON finds."""
    counts: Counts = Counter()
    unread = []
    for path in sorted((shared_data / "node").rglob("*.json")):
        if path.name == "openapi.json":
            continue  # a test of its own, below
        body = path.read_bytes()
        content = json.loads(body)
        reader = reader_of(path.name, content)
        if reader is None and content in ([], {}):
            counts["empty answers"] += 1
        elif reader is None:
            unread.append(path.name)
        else:
            reader(body, content, counts)
        counts["files"] += 1
    with capsys.disabled():
        print("\n  wire, recorded answers: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    assert unread == []
    assert counts["transactions"] > 300
    assert counts["state changes"] > 800


def test_gas_history_agrees_with_its_answers(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table of gas over the years, made by another program, has the numbers the decoder finds."""
    folder = shared_data / "node" / "history"
    with (folder / "gas_used_history.csv").open(newline="") as file:
        table = {(row["golden"], row["commit"][:8], row["index"]): row for row in csv.DictReader(file)}
    compared = 0
    for path in sorted(folder.glob("*/*.json")):
        commit = path.stem.rsplit("_", 1)[-1][:8]
        body = path.read_bytes()
        first = json.loads(body)
        first = first[0] if isinstance(first, list) else first
        transactions = decode_transactions(body) if "type" in first else decode_simulation(body)
        for index, transaction in enumerate(transactions):
            row = table.get((path.parent.name, commit, str(index)))
            if row is None or not isinstance(transaction, UserTransaction):
                continue
            assert transaction.gas_used == int(row["gas_used"])
            assert str(transaction.success) == row["success"]
            assert len(transaction.changes) == int(row["n_changes"])
            split = transaction.fee_statement()
            assert row["fs_total"] == ("" if split is None else str(split.total_charge_gas_units))
            compared += 1
    with capsys.disabled():
        print(f"\n  wire, gas history: {compared} transactions agree")
    assert compared > 0


@pytest.mark.parametrize(
    ("schema", "parse"),
    [
        ("TransactionPayload", parse_payload),
        ("TransactionSignature", parse_signature),
        ("AccountSignature", parse_account_signature),
    ],
)
def test_documented_variants_are_known(shared_data: Path, schema: str, parse: Callable[..., Any]) -> None:
    """Every variant the OpenAPI document names is one this package reads: its absence of fields is noticed."""
    document = json.loads((shared_data / "node" / "openapi.json").read_bytes())
    variants = document["components"]["schemas"][schema]["discriminator"]["mapping"]
    ignored = {"encrypted_transaction_payload", "module_bundle_payload", "no_account_signature", "single_sender"}
    unknown = []
    for name in sorted(set(variants) - ignored):
        try:
            parse({"type": name})
        except ValueError:
            continue  # a known variant misses its fields
        unknown.append(name)
    assert unknown == []


@pytest.mark.parametrize(("schema", "union"), [("Transaction", KnownTransaction), ("WriteSetChange", KnownChange)])
def test_documented_answers_are_known(shared_data: Path, schema: str, union: Any) -> None:
    """Every transaction and change the OpenAPI document names has its struct."""
    document = json.loads((shared_data / "node" / "openapi.json").read_bytes())
    variants = document["components"]["schemas"][schema]["discriminator"]["mapping"]
    assert set(variants) == {kind.__struct_config__.tag for kind in union.__args__}


def test_documented_error_codes_are_known(shared_data: Path) -> None:
    """The set of codes is the OpenAPI document's, and the one that came later."""
    document = json.loads((shared_data / "node" / "openapi.json").read_bytes())
    codes = set(document["components"]["schemas"]["AptosErrorCode"]["enum"])
    assert ERROR_CODES - codes == {"rate_limited"}
    assert codes <= ERROR_CODES
