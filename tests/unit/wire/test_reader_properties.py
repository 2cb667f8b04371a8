"""Readers of `move` and `wire`: any JSON, bytes or text is read, or raises a ToolkitError."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.errors import ToolkitError
from toolkit.move import (
    Address,
    Bool,
    Bytes,
    FunctionId,
    Int,
    OptionOf,
    String,
    UInt,
    VectorOf,
    decode_bcs,
    decode_json,
    parse_address,
    parse_type_tag,
)
from toolkit.move._bcs import Reader
from toolkit.move._ids import ModuleId, parse_hex, parse_table_handle
from toolkit.move._values import decode_argument, encode_argument
from toolkit.wire import (
    EntryFunction,
    GasSchedule,
    Multisig,
    RawTransaction,
    Script,
    SignedTransaction,
    SimulationRequest,
    TableItemRequest,
    ViewFunction,
)
from toolkit.wire._bcs_requests import FUNCTION_CALL, decode_view_answer
from toolkit.wire._headers import parse_headers
from toolkit.wire._requests import parse_payload
from toolkit.wire._responses import (
    decode_account,
    decode_block,
    decode_error_body,
    decode_gas_price_estimate,
    decode_node_info,
)
from toolkit.wire._rows import transaction_rows
from toolkit.wire._signatures import parse_account_signature, parse_signature
from toolkit.wire._transactions import decode_simulation, decode_transactions

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
TYPES = st.sampled_from(
    [
        "user_transaction",
        "genesis_transaction",
        "block_metadata_transaction",
        "pending_transaction",
        "write_resource",
        "write_table_item",
        "delete_resource",
        "entry_function_payload",
        "script_payload",
        "multisig_payload",
        "module_bundle_payload",
        "ed25519_signature",
        "multi_ed25519_signature",
        "multi_agent_signature",
        "fee_payer_signature",
        "single_sender",
        "single_key_signature",
        "multi_key_signature",
        "abstract_signature",
        "no_account_signature",
    ]
)
NAMES = st.sampled_from(
    [
        "version",
        "hash",
        "gas_used",
        "success",
        "vm_status",
        "changes",
        "events",
        "timestamp",
        "sender",
        "sequence_number",
        "max_gas_amount",
        "gas_unit_price",
        "expiration_timestamp_secs",
        "payload",
        "signature",
        "function",
        "type_arguments",
        "arguments",
        "code",
        "bytecode",
        "abi",
        "multisig_address",
        "transaction_payload",
        "modules",
        "public_key",
        "public_keys",
        "signatures",
        "threshold",
        "signatures_required",
        "bitmap",
        "secondary_signer_addresses",
        "secondary_signers",
        "fee_payer_address",
        "fee_payer_signer",
        "function_info",
        "auth_data",
        "value",
        "index",
        "address",
        "data",
        "resource",
        "module",
        "handle",
        "key",
        "guid",
        "creation_number",
        "account_address",
        "message",
        "error_code",
        "entries",
    ]
)
PLAUSIBLE = st.sampled_from(
    ["0", "7", "0x1", "0x" + "11" * 32, "0x" + "22" * 64, "0x1::m::f", "u64", "true", "18446744073709551616", "ed25519"]
)
SHAPED = st.recursive(
    SCALARS | PLAUSIBLE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=12)
        | st.builds(lambda kind, rest: {**rest, "type": kind}, TYPES, st.dictionaries(NAMES, inner, max_size=12))
    ),
    max_leaves=30,
)
LAYOUTS = [Bool(), UInt(8), UInt(64), UInt(256), Int(128), Address(), Bytes(), String()]
LAYOUTS += [VectorOf(UInt(64)), OptionOf(Bytes()), VectorOf(VectorOf(OptionOf(Address())))]
BODY_READERS = [
    lambda body: transaction_rows(decode_transactions(body)),
    lambda body: transaction_rows(decode_simulation(body)),
    decode_node_info,
    decode_account,
    decode_block,
    decode_gas_price_estimate,
    decode_error_body,
    parse_payload,
    parse_signature,
    parse_account_signature,
    SignedTransaction.from_bcs,
    RawTransaction.from_bcs,
    lambda body: FUNCTION_CALL.read(Reader(body)),
    lambda body: decode_view_answer(body, [UInt(64), VectorOf(String())]),
    *(lambda body, layout=layout: decode_bcs(layout, body) for layout in LAYOUTS),
]
VALUE_READERS = [
    EntryFunction,
    lambda value: EntryFunction("0x1::m::f", arguments=[value]),
    lambda value: EntryFunction("0x1::m::f", type_arguments=[value]),
    lambda value: EntryFunction("0x1::m::f", arguments=value),
    Script,
    Multisig,
    lambda value: ViewFunction("0x1::m::f", type_arguments=value),
    lambda value: TableItemRequest(value, key_type="u64", value_type="u64"),
    lambda value: TableItemRequest(0, key_type=value, value_type="u64"),
    lambda value: SimulationRequest(value, sender="0x1"),
    lambda value: SimulationRequest(EntryFunction("0x1::m::f"), sender=value),
    lambda value: SimulationRequest(EntryFunction("0x1::m::f"), sender="0x1", sequence_number=value),
    lambda value: SimulationRequest(EntryFunction("0x1::m::f"), sender="0x1", public_key=value),
    lambda value: SimulationRequest(EntryFunction("0x1::m::f"), sender="0x1", secondary_signers=value),
    parse_payload,
    parse_signature,
    parse_account_signature,
    lambda value: GasSchedule.from_resource(value if isinstance(value, dict) else {"entries": value}),
    *(lambda value, layout=layout: decode_json(layout, value) for layout in LAYOUTS),
    *(lambda value, layout=layout: decode_argument(layout, value) for layout in LAYOUTS),
    *(lambda value, layout=layout: encode_argument(layout, value) for layout in LAYOUTS),
]
TEXT_READERS = [parse_address, parse_hex, parse_table_handle, parse_type_tag, FunctionId.parse, ModuleId.parse]
TYPE_TEXT = st.text(alphabet="u8<>, :0x1aT&|vector()", max_size=40)


def only_our_errors(read: Any, value: Any) -> None:
    """Call a reader; any error but the package's own fails the test."""
    text = "fine"
    try:
        read(value)
    except ToolkitError as error:
        text = str(error)
    assert 0 < len(text) < 5_000  # the node quotes values in its own words; everything else is shorter by far


@given(st.binary(max_size=300))
@example(b"[" * 100_000)
@example(b'{"a":' * 50_000)
@example(b"\xef\xbb\xbf[]")
@example(b"\x00" * 300)
@example(b"\xff" * 300)
def test_arbitrary_bytes(body: bytes) -> None:
    """Whatever a gateway sends."""
    for read in BODY_READERS:
        only_our_errors(read, body)


@given(JSON | SHAPED)
def test_arbitrary_json(value: object) -> None:
    """Well-formed JSON of any shape, also with the wire's own names in the wrong places."""
    body = json.dumps(value).encode()
    for read in BODY_READERS:
        only_our_errors(read, body)
    for read in VALUE_READERS:
        only_our_errors(read, value)


@given(st.text(max_size=60) | TYPE_TEXT)
@example("vector<" * 5_000)
@example("0x1::m::S<" * 5_000)
@example("&" * 5_000)
@example("|" * 5_000)
def test_arbitrary_text(text: str) -> None:
    """Types, ids, addresses, handles, hex."""
    for read in TEXT_READERS:
        only_our_errors(read, text)


@given(st.dictionaries(st.text(max_size=30) | st.just("x-aptos-ledger-oldest-version"), st.text(max_size=30)))
def test_arbitrary_headers(headers: dict[str, str]) -> None:
    """Headers never raise at all."""
    parse_headers(headers)


@given(st.integers(min_value=0, max_value=2**64 - 1), st.integers(min_value=0, max_value=10_000_000))
def test_mutated_transactions_in_bcs(seed: int, place: int) -> None:
    """A flipped byte gives another transaction or an error, and what is read is written back the same."""
    call = EntryFunction("0x1::m::f", arguments=[b"\x01" * (seed % 50)])
    request = SimulationRequest(call, sender=f"{seed:x}", fee_payer="0x2", public_key="0x" + "11" * 32)
    from toolkit.wire._bcs_requests import signed_transaction

    numbers = {"sequence_number": seed, "max_gas_amount": 1, "gas_unit_price": 1, "expiration_timestamp_secs": 1}
    data = bytearray(signed_transaction(request, chain_id=1, **numbers).to_bcs())
    data[place % len(data)] ^= 1 << place % 8
    try:
        read = SignedTransaction.from_bcs(bytes(data))
    except ToolkitError:
        return
    assert read.to_bcs() == bytes(data)


@pytest.mark.parametrize("value", [10**5_000, [[10**5_000]], {"type": 10**5_000}, -(10**5_000)], ids="abcd")
def test_integers_of_thousands_of_digits(value: object) -> None:
    """Python refuses to print them; the messages do without."""
    for read in VALUE_READERS:
        only_our_errors(read, value)


def test_a_message_never_carries_a_whole_hostile_text() -> None:
    """Texts are cut and escaped: a megabyte or an escape sequence does not reach the terminal."""
    hostile = "\x1b[31m" + "x" * 1_000_000
    for read in (EntryFunction, Script, Multisig, VALUE_READERS[2], VALUE_READERS[10], *TEXT_READERS):
        with pytest.raises(ToolkitError) as raised:
            read(hostile)
        assert len(str(raised.value)) < 500
        assert "\x1b" not in str(raised.value)
