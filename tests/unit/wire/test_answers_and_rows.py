"""Answers to structs to columns: every number exact, unknown kinds a row, nothing lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.decode.generate import Generator
from tests.benchmarks.decode.plain_walk import differences
from toolkit.errors import SchemaError
from toolkit.wire import UserTransaction
from toolkit.wire._rows import CHANGE_COLUMNS, EVENT_COLUMNS, TRANSACTION_COLUMNS, transaction_rows
from toolkit.wire._transactions import (
    GenericChange,
    GenericTransaction,
    decode_simulation,
    decode_transactions,
)

U64_MAX = str(2**64 - 1)


def user(**changed: Any) -> dict[str, Any]:
    return Generator(seed=1).transaction(0) | changed


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture(scope="module")
def generated() -> bytes:
    generator = Generator(seed=11)
    return encode([generator.transaction(index) for index in range(60)])


def test_rows_equal_a_plain_walk_cell_by_cell(generated: bytes) -> None:
    """The same cells as json.loads and dictionary access give."""
    assert differences(transaction_rows(decode_transactions(generated)), generated) == []


def test_columns_are_the_contract() -> None:
    """Names and order, also without any transaction."""
    for rows in (transaction_rows([]), transaction_rows(decode_transactions(encode([user()])))):
        assert tuple(rows.transactions) == TRANSACTION_COLUMNS
        assert tuple(rows.changes) == CHANGE_COLUMNS
        assert tuple(rows.events) == EVENT_COLUMNS
    assert transaction_rows([]).transactions["version"] == []


def test_largest_numbers_stay_exact() -> None:
    """u64 max in every field, no float on the way."""
    names = ("version", "gas_used", "sequence_number", "max_gas_amount", "gas_unit_price", "expiration_timestamp_secs")
    body = encode(user(**dict.fromkeys((*names, "timestamp", "replay_protection_nonce"), U64_MAX)))
    (transaction,) = decode_transactions(body)
    assert isinstance(transaction, UserTransaction)
    rows = transaction_rows([transaction]).transactions
    for name in names:
        assert getattr(transaction, name) == 2**64 - 1
        assert rows[name] == [2**64 - 1]
    assert rows["timestamp_us"] == rows["replay_protection_nonce"] == [2**64 - 1]
    assert transaction.timestamp_us == transaction.replay_protection_nonce == 2**64 - 1


@pytest.mark.parametrize("value", ["", "-1", "1.0", "1e3", " 1", "01", "1 2", str(2**64), "9" * 5000, "\u0661", "0x1"])
@pytest.mark.parametrize("name", ["gas_used", "version", "timestamp"])
def test_what_is_no_u64_is_refused(name: str, value: str) -> None:
    """Digits are checked before anything becomes a number, one by one and by column."""
    for transactions in ([user(**{name: value})], [user(), user(**{name: value})]):
        with pytest.raises(SchemaError, match=r"\bu64\b"):
            transaction_rows(decode_transactions(encode(transactions)))


@pytest.mark.parametrize("value", [57, 57.0, None, True, [], {}])
def test_a_u64_that_is_no_string_is_refused(value: object) -> None:
    """The wire has strings; a number could have lost digits already."""
    with pytest.raises(SchemaError, match=r"Expected `str`.*gas_used"):
        decode_transactions(encode([user(gas_used=value)]))


def test_unknown_kinds_become_rows() -> None:
    """A transaction and a change of a future kind keep their JSON; the others of the answer are typed as ever."""
    future = {"type": "dream_transaction", "version": "7", "hash": "0x01", "x": [1, {"y": "é"}]}
    odd = {"type": "write_dream", "state_key_hash": "0x", "x": 1}
    mixed = user(changes=[odd, *user()["changes"]])
    body = encode([user(), future, mixed, {"type": 5, "version": "x"}, {}])
    transactions = decode_transactions(body)
    kinds = [type(transaction) for transaction in transactions]
    assert kinds == [UserTransaction, GenericTransaction, UserTransaction, GenericTransaction, GenericTransaction]
    rows = transaction_rows(transactions)
    assert rows.transactions["version"] == [1_000_000_000, 7, 1_000_000_000, None, None]
    assert rows.transactions["type"][1:4:2] == ["dream_transaction", None]
    assert json.loads(rows.transactions["raw"][1]) == future
    assert rows.transactions["raw"][0] is None
    first = rows.changes["transaction_index"].index(2)
    assert rows.changes["type"][first] == "write_dream"
    assert json.loads(rows.changes["data"][first]) == odd
    assert len(rows.changes["type"]) == 11
    assert rows.changes["type"][first + 1 :] == rows.changes["type"][:5]


def test_unknown_changes_of_a_simulation_become_rows() -> None:
    """The tolerant decoder handles what the fast one does: no type key, one transaction."""
    simulated = {name: value for name, value in user().items() if name != "type"}
    odd = {"type": "write_dream", "x": 1}
    (transaction,) = decode_simulation(encode([simulated | {"changes": [odd]}]))
    assert isinstance(transaction.changes[0], GenericChange)
    assert transaction_rows([transaction]).changes["type"] == ["write_dream"]
    assert decode_simulation(encode(simulated))[0].gas_used == int(simulated["gas_used"])


def test_payload_and_signature_are_parsed_on_demand() -> None:
    """They stay the wire's own bytes until somebody looks."""
    (transaction,) = decode_transactions(encode([user(payload={"type": "entry_function_payload"}, signature=None)]))
    assert isinstance(transaction, UserTransaction)
    assert transaction.signature is None
    with pytest.raises(SchemaError, match="field 'function' is missing"):
        _ = transaction.payload
    assert transaction_rows([transaction]).transactions["payload_type"] == ["entry_function_payload"]


def test_function_of_a_multisig_transaction_is_its_inner_one() -> None:
    """What ran is what people group by."""
    inner = {"type": "entry_function_payload", "function": "0xA::m::f", "type_arguments": [], "arguments": []}
    payload = {"type": "multisig_payload", "multisig_address": "0x9", "transaction_payload": inner}
    rows = transaction_rows(decode_transactions(encode([user(payload=payload)])))
    assert rows.transactions["function"] == ["0xa::m::f"]


def test_addresses_are_canonical_wherever_they_stand() -> None:
    """Stripped zeros of the REST API come back, so that joins work."""
    short, full = "0xabc", "0x" + "0" * 61 + "abc"
    resource = {"type": f"{short}::m::S<{short}::m::T, 0x0000001::a::B>", "data": {}}
    changes = [
        {"type": "write_resource", "address": short, "state_key_hash": "", "data": resource},
        {"type": "delete_module", "address": short, "state_key_hash": "", "module": f"{short}::m"},
        {"type": "write_table_item", "state_key_hash": "", "handle": "0x5", "key": "0x", "value": "0xff", "data": None},
    ]
    rows = transaction_rows(decode_transactions(encode([user(changes=changes, sender="0x0A")])))
    assert rows.transactions["sender"] == ["0xa"]
    assert rows.changes["address"] == [full, full, None]
    assert rows.changes["resource_type"][0] == f"{full}::m::S<{full}::m::T, 0x1::a::B>"
    assert rows.changes["module"][1] == f"{full}::m"
    assert rows.changes["handle"][2] == "0x" + "0" * 63 + "5"
    assert (rows.changes["key"][2], rows.changes["value"][2]) == (b"", b"\xff")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"type": "write_table_item", "handle": "0x5", "key": "0xz", "value": "0x"},
            "expected 0x and two hex digits per byte",
        ),
        (
            {"type": "write_table_item", "handle": "0x5", "key": "0x0 0", "value": "0x"},
            "expected 0x and two hex digits per byte",
        ),
        ({"type": "delete_table_item", "handle": "0xz", "key": "0x"}, "not a table handle: '0xz'"),
        ({"type": "delete_resource", "address": "alice", "resource": "0x1::m::S"}, "not an address: 'alice'"),
        ({"type": "delete_resource", "address": "0x1"}, "missing required field `resource`"),
        ({"type": "write_resource", "address": "0x1", "data": None}, "Expected `object`, got `null`"),
    ],
)
def test_misshapen_changes_are_schema_errors(change: dict[str, Any], text: str) -> None:
    """A known kind must hold what it is documented to hold."""
    with pytest.raises(SchemaError) as raised:
        transaction_rows(decode_transactions(encode([user(changes=[change])])))
    assert text in str(raised.value)


def test_fee_columns_come_from_the_statement() -> None:
    """For user transactions; null without a statement."""
    rows = transaction_rows(decode_transactions(encode([user(), user(events=[])]))).transactions
    statement = user()["events"][-1]["data"]
    for name, text in statement.items():
        assert rows[name] == [int(text), None]


def test_events_of_2022_are_read() -> None:
    """`key` holds creation number and address."""
    key = "0x" + (5).to_bytes(8, "little").hex() + "0" * 61 + "abc"
    old = {"key": key, "sequence_number": "3", "type": "0x1::m::E", "data": "scalar"}
    rows = transaction_rows(decode_transactions(encode([user(events=[old])]))).events
    assert rows["creation_number"] == [5]
    assert rows["account_address"] == ["0x" + "0" * 61 + "abc"]
    assert rows["data"] == ['"scalar"']
    assert rows["sequence_number"] == [3]


def test_pending_transaction_has_no_version() -> None:
    """It was not executed: what it did is null, what it asks is there."""
    names = ("hash", "sender", "sequence_number", "max_gas_amount", "gas_unit_price", "expiration_timestamp_secs")
    pending = {name: user()[name] for name in (*names, "payload", "signature")} | {"type": "pending_transaction"}
    body = encode(pending)
    rows = transaction_rows(decode_transactions(body))
    assert differences(rows, body) == []
    assert rows.transactions["version"] == rows.transactions["success"] == [None]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"5",
        b"[5]",
        b"{",
        b"[{}",
        b"\xff",
        b"[" * 100_000,
        b'{"type":"user_transaction"}',
        b'[{"type":"user_transaction","changes":5}]',
        b'[{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}]",  # Python 3.14 nests deeper than 3.13
    ],
)
def test_any_other_body_is_a_schema_error(body: bytes) -> None:
    """Whatever the bytes."""
    for decode in (decode_transactions, decode_simulation):
        with pytest.raises(SchemaError):
            decode(body)


def test_text_that_is_not_utf8_is_a_schema_error() -> None:
    """The wire is UTF-8; raw parts are looked at when they become text."""
    body = encode(
        [
            user(
                events=[
                    {"guid": {"creation_number": "0", "account_address": "0x0"}}
                    | {"sequence_number": "0", "type": "0x1::m::E", "data": "@@"}
                ]
            )
        ]
    )
    with pytest.raises(SchemaError):
        transaction_rows(decode_transactions(body.replace(b"@@", b"\xff\xfe")))


def test_headers_and_errors_do_not_load_pydantic() -> None:
    """Names of the package are imported on first use; the bulk path stays light."""
    import subprocess

    code = (
        "import sys, toolkit.wire\n"
        "from toolkit.wire._headers import parse_headers\n"
        "from toolkit.wire._responses import decode_error_body\n"
        "from toolkit.wire._rows import transaction_rows\n"
        "assert not {'pydantic', 'pandas', 'pyarrow', 'numpy'} & set(sys.modules), sorted(sys.modules)"
    )
    root = Path(__file__).resolve().parents[3]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
