"""Requests and answers in BCS: view requests and their answers, simulation requests as signed transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move.argument_decoding import decode_argument
from toolkit.move.argument_encoding import encode_argument
from toolkit.move.bcs import Reader, Writer
from toolkit.move.bcs_values import encode_bcs, read_value
from toolkit.move.ids import FunctionId
from toolkit.move.layouts import Address, Bool, Bytes, Int, ObjectOf, UInt
from toolkit.move.type_tags import parse_type_tag
from toolkit.wire.bcs_payloads import (
    EncodedEntryFunction,
    EncodedMultisig,
    EncodedPayloadV2,
    EncodedScript,
    ScriptArgument,
    read_function_call,
    write_function_call,
)
from toolkit.wire.payloads import EntryFunction, Multisig, Script
from toolkit.wire.transactions import RawTransaction, SignedTransaction
from toolkit.wire.u64 import U64_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.move.layouts import Layout
    from toolkit.wire.bcs_payloads import EncodedPayload
    from toolkit.wire.requests import SimulationRequest, ViewFunction

__all__ = [
    "decode_view_answer",
    "decode_view_request",
    "encode_arguments",
    "encode_view_answer",
    "encode_view_request",
    "signed_transaction",
]


def encode_arguments(arguments: Sequence[Any], layouts: Sequence[Layout] | None) -> tuple[bytes, ...]:
    """Return the BCS of each argument.

    Parameters
    ----------
    arguments : sequence
        As people write them; bytes where no layouts are given, and then they are BCS already.
    layouts : sequence of Layout, optional
        One per parameter, signers left out.

    Returns
    -------
    tuple of bytes

    Raises
    ------
    InputError
        If an argument does not fit its layout, their numbers differ, or there is no layout to encode one by.
    """
    if layouts is None:
        for position, argument in enumerate(arguments):
            if not isinstance(argument, bytes):
                raise InputError(
                    f"arguments[{position}]: without an ABI an argument must be its BCS bytes, got {shorten(argument)}"
                )
        return tuple(arguments)
    if len(layouts) != len(arguments):
        raise InputError(f"the function takes {len(layouts)} arguments (signers left out), got {len(arguments)}")
    pairs = enumerate(zip(layouts, arguments, strict=True))
    return tuple(encode_bcs(layout, _value(layout, argument, position)) for position, (layout, argument) in pairs)


def encode_view_request(call: ViewFunction, layouts: Sequence[Layout] | None = None) -> bytes:
    """Return the body of a view request in BCS.

    Parameters
    ----------
    call : ViewFunction
        What to call.
    layouts : sequence of Layout, optional
        One per parameter; without them the call's arguments must be BCS bytes.

    Returns
    -------
    bytes

    Raises
    ------
    InputError
        If an argument cannot be encoded.
    """
    writer = Writer()
    write_function_call(writer, _encoded_call(call, layouts))
    return writer.getvalue()


def decode_view_request(data: bytes) -> EncodedEntryFunction:
    """Read the body of a view request in BCS.

    Raises
    ------
    SchemaError
        If it is none, or bytes follow.
    """
    reader = Reader(data)
    call = read_function_call(reader)
    reader.end()
    return call


def encode_view_answer(values: Sequence[Any], layouts: Sequence[Layout]) -> bytes:
    """Return the body of a view answer in BCS: the number of values, then each without a length of its own.

    Parameters
    ----------
    values : sequence
        Python forms of the return values.
    layouts : sequence of Layout
        One per value.

    Returns
    -------
    bytes

    Raises
    ------
    SchemaError
        If a value does not fit its layout.
    """
    writer = Writer()
    writer.uleb128(len(values))
    for layout, value in zip(layouts, values, strict=True):
        writer.fixed(encode_bcs(layout, value))
    return writer.getvalue()


def decode_view_answer(data: bytes, layouts: Sequence[Layout]) -> list[Any]:
    """Read the body of a view answer in BCS.

    Parameters
    ----------
    data : bytes
        BCS.
    layouts : sequence of Layout
        One per return value.

    Returns
    -------
    list
        Python forms of the return values.

    Raises
    ------
    SchemaError
        If the bytes are not of these layouts.
    """
    reader = Reader(data)
    count = reader.uleb128()
    if count != len(layouts):
        raise SchemaError(f"the function returns {len(layouts)} values, the answer holds {count}")
    values = [read_value(reader, layout, where=f"value {place}") for place, layout in enumerate(layouts)]
    reader.end()
    return values


def signed_transaction(
    request: SimulationRequest,
    *,
    chain_id: int,
    sequence_number: int,
    max_gas_amount: int,
    gas_unit_price: int,
    expiration_timestamp_secs: int,
    layouts: Sequence[Layout] | None = None,
) -> SignedTransaction:
    """Turn a simulation request into the signed transaction that is its BCS form.

    Parameters
    ----------
    request : SimulationRequest
        What to simulate; its own numbers win over those below.
    chain_id : int
        u8 of the node's chain; BCS holds it, JSON does not.
    sequence_number, max_gas_amount, gas_unit_price, expiration_timestamp_secs : int
        Used where the request has None: of the sender; gas units; octas per gas unit; seconds since 1970-01-01 UTC.
    layouts : sequence of Layout, optional
        One per parameter of the function or script, signers left out; without them the arguments must be BCS bytes.

    Returns
    -------
    SignedTransaction
        Its signature is zeros or absent.

    Raises
    ------
    InputError
        If an argument cannot be encoded.
    """
    nonce = request.replay_protection_nonce
    own = request.sequence_number
    raw = RawTransaction(
        sender=request.sender,
        # An orderless transaction has no number; the network marks it with the largest.
        sequence_number=U64_MAX if nonce is not None else _or(own, sequence_number),
        payload=_encoded_payload(request.payload, nonce, layouts),
        max_gas_amount=_or(request.max_gas_amount, max_gas_amount),
        gas_unit_price=_or(request.gas_unit_price, gas_unit_price),
        expiration_timestamp_secs=_or(request.expiration_timestamp_secs, expiration_timestamp_secs),
        chain_id=chain_id,
    )
    return SignedTransaction(raw, request.signature_to_send())


def _or(own: int | None, default: int) -> int:
    return default if own is None else own


def _value(layout: Layout, argument: Any, position: int) -> Any:
    """Return the Python form of an argument, by way of the JSON that a node would take for it."""
    where = f"arguments[{position}]"
    try:
        return decode_argument(layout, encode_argument(layout, argument, where=where), where=where)
    except SchemaError as error:
        raise InputError(str(error)) from error


def _encoded_payload(
    payload: EntryFunction | Script | Multisig, nonce: int | None, layouts: Sequence[Layout] | None
) -> EncodedPayload:
    inner = payload.transaction_payload if isinstance(payload, Multisig) else payload
    encoded = None if inner is None else _encoded_executable(inner, layouts)
    address = payload.multisig_address if isinstance(payload, Multisig) else None
    if nonce is not None:
        return EncodedPayloadV2(encoded, address, nonce)
    if address is not None:
        return EncodedMultisig(address, encoded)
    assert encoded is not None  # noqa: S101 - only a multisig payload may be empty  # nosec B101
    return encoded


def _encoded_executable(
    payload: EntryFunction | Script, layouts: Sequence[Layout] | None
) -> EncodedEntryFunction | EncodedScript:
    if isinstance(payload, EntryFunction):
        return _encoded_call(payload, layouts)
    tags = tuple(parse_type_tag(text) for text in payload.type_arguments)
    encoded = encode_arguments(payload.arguments, layouts)
    if layouts is None:
        arguments = tuple(ScriptArgument("serialized", data) for data in encoded)
    else:
        triples = zip(layouts, payload.arguments, encoded, strict=True)
        arguments = tuple(
            _script_argument(layout, argument, data, position)
            for position, (layout, argument, data) in enumerate(triples)
        )
    return EncodedScript(bytes.fromhex(payload.bytecode[2:]), tags, arguments)


def _encoded_call(call: EntryFunction | ViewFunction, layouts: Sequence[Layout] | None) -> EncodedEntryFunction:
    tags = tuple(parse_type_tag(text) for text in call.type_arguments)
    return EncodedEntryFunction(FunctionId.parse(call.function), tags, encode_arguments(call.arguments, layouts))


def _script_argument(layout: Layout, argument: Any, data: bytes, position: int) -> ScriptArgument:
    """Scripts name the kind of a simple argument; all others go as serialized BCS."""
    match layout:
        case UInt(bits):
            kind = f"u{bits}"
        case Int(bits):
            kind = f"i{bits}"
        case Bool():
            kind = "bool"
        case Address() | ObjectOf():
            kind = "address"
        case Bytes():
            kind = "bytes"
        case _:
            return ScriptArgument("serialized", data)
    return ScriptArgument(kind, _value(layout, argument, position))
