"""Payloads: built by people, read from answers."""

from __future__ import annotations

import json
from copy import copy

import msgspec
import pytest

from toolkit.errors import InputError, SchemaError
from toolkit.wire import EntryFunction, Multisig, Script
from toolkit.wire._requests import UnknownPayload, parse_payload

CALL = EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
SCRIPT = Script("0xa11ceb0b", type_arguments=["u64"], arguments=[True])


def test_ids_and_types_are_kept_canonical() -> None:
    """Equal calls are equal however they are spelled."""
    long = "0x" + "0" * 63 + "1"
    call = EntryFunction(f"{long}::coin::transfer", type_arguments=[f"{long}::aptos_coin::AptosCoin"])
    assert call == EntryFunction("0x1::coin::transfer", type_arguments=["0x1::aptos_coin::AptosCoin"])
    assert hash(call) == hash(EntryFunction("1::coin::transfer", type_arguments=["0x1::aptos_coin::AptosCoin"]))


@pytest.mark.parametrize(
    ("argument", "wire"),
    [
        (5, 5),
        (2**32 - 1, 2**32 - 1),
        (2**32, "4294967296"),
        (2**256 - 1, str(2**256 - 1)),
        (-(2**31), -(2**31)),
        (-(2**31) - 1, "-2147483649"),
        (True, True),
        (None, None),
        ("text", "text"),
        (b"\x00\xff", "0x00ff"),
        ((1, [2**64, b""]), [1, [str(2**64), "0x"]]),
        ({"a": {"vec": [2**33]}}, {"a": {"vec": ["8589934592"]}}),
    ],
)
def test_arguments_without_an_abi_are_sent_as_given(argument: object, wire: object) -> None:
    """Only what JSON cannot hold exactly changes: large ints become text, bytes hex."""
    assert EntryFunction("0x1::m::f", arguments=[argument]).to_wire()["arguments"] == [wire]


def test_an_argument_is_a_copy() -> None:
    """Changing the caller's list later does not change the request."""
    inner = [1, 2]
    call = EntryFunction("0x1::m::f", arguments=[inner])
    inner.append(3)
    assert call.arguments == ([1, 2],)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: EntryFunction("0x1::m::f", arguments=[1.5]), "EntryFunction.arguments.0: Move does not have floating"),
        (lambda: EntryFunction("0x1::m::f", arguments=[{1: 2}]), "expected a field name as a string, got 1"),
        (lambda: EntryFunction("0x1::m::f", arguments=[object]), "expected a JSON-like value"),
        (lambda: EntryFunction("0x1::m::f", arguments="abc"), "EntryFunction.arguments: expected a list, got 'abc'"),
        (lambda: EntryFunction("0x1::m::f", typo=1), "EntryFunction.typo: EntryFunction does not have this field"),
        (lambda: EntryFunction("0x1::m"), "EntryFunction.function: not a function id: '0x1::m'"),
        (lambda: EntryFunction("0x1::m::f", type_arguments=["u65"]), "EntryFunction.type_arguments.0: type 'u65'"),
        (lambda: EntryFunction(5), "EntryFunction.function: expected a function id"),  # type: ignore[arg-type]
        (lambda: Script("0xabc"), "Script.bytecode: not hex-encoded bytes: '0xabc'"),
        (lambda: Multisig("0xg"), "Multisig.multisig_address: not an address: '0xg'"),
    ],
)
def test_what_cannot_be_used_is_refused_by_field(build, text: str) -> None:
    """An input error names the class, the field and what was expected."""
    with pytest.raises(InputError) as raised:
        build()
    assert text in str(raised.value)


def test_deep_arguments_are_refused() -> None:
    """Nesting is bounded before anything recurses."""
    deep: list = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(InputError, match=r"\b32\b"):
        EntryFunction("0x1::m::f", arguments=[deep])


@pytest.mark.parametrize(
    "payload",
    [CALL, SCRIPT, Multisig("0x9"), Multisig("0x9", transaction_payload=CALL)],
)
def test_wire_form_reads_back(payload) -> None:
    """What is sent is what is read, as mapping, bytes and raw."""
    text = json.dumps(payload.to_wire()).encode()
    assert parse_payload(payload.to_wire()) == payload
    assert parse_payload(text) == payload
    assert parse_payload(msgspec.Raw(text)) == payload


def test_multisig_without_payload_leaves_the_key_out() -> None:
    """Absent means: run the payload stored on chain."""
    assert Multisig("0x9").to_wire() == {"type": "multisig_payload", "multisig_address": "0x9"}


@pytest.mark.parametrize(
    "content",
    [
        {"type": "write_set_payload", "write_set": {"type": "direct_write_set", "changes": [], "events": []}},
        {"type": "encrypted_transaction_payload", "encrypted_state": "encrypted", "payload_hash": "0x00"},
        {"type": "module_bundle_payload", "modules": [{"bytecode": "0xa1", "abi": None}]},  # of old transactions
        {"type": "payload_of_next_year", "x": 1},
        {"type": 5},
        {},
    ],
)
def test_other_payloads_keep_their_json(content: dict) -> None:
    """A kind that cannot be built is kept whole."""
    payload = parse_payload(content)
    assert isinstance(payload, UnknownPayload)
    assert (payload, payload.to_wire()) == (UnknownPayload(content), content)


@pytest.mark.parametrize("change", [{"type": "script_function_payload"}, {"new_field": 1}])
def test_payloads_of_other_years_are_read(change: dict) -> None:
    """By the name of 2022, and with a field of a newer node: answers may grow, what people build may not."""
    assert parse_payload(CALL.to_wire() | change) == CALL


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"type": "entry_function_payload"}, "field 'function' is missing"),
        ({"type": "entry_function_payload", "function": None}, "EntryFunction.function: expected a function id"),
        ({"type": "script_payload", "code": None}, "script_payload does not have the documented shape"),
        ({"type": "script_payload", "code": {"bytecode": "zz"}}, "Script.bytecode: not hex-encoded bytes: 'zz'"),
        (
            {"type": "multisig_payload", "multisig_address": "0x1", "transaction_payload": {"type": "x"}},
            "inner payload",
        ),
        (b"[]", "the payload must be a JSON object, got []"),
        (b"{", "payload: the response is not JSON"),
        (b"[" * 100_000, "payload: the response is not JSON"),
    ],
)
def test_a_known_type_of_another_shape_is_a_schema_error(content, text: str) -> None:
    """A known type must have what it is documented to have."""
    with pytest.raises(SchemaError) as raised:
        parse_payload(content)
    assert text in str(raised.value)


def test_replace_checks_like_new() -> None:
    """A changed copy is a new payload; the old one stays."""
    assert CALL.replace(arguments=["0xb0b", 5]).arguments == ("0xb0b", 5)
    assert CALL.arguments == ("0xb0b", 100)
    with pytest.raises(InputError, match="does not have this field"):
        CALL.replace(argument=[1])


def test_an_error_names_the_fields_that_are_not_valid() -> None:
    """`InputError.problems` has the path of each, also in a copy."""
    with pytest.raises(InputError) as caught:
        EntryFunction("0x1::m", [1, 1.5])
    assert [path for path, _ in caught.value.problems] == [("function",), ("arguments", 1)]
    assert copy(caught.value).problems == caught.value.problems
