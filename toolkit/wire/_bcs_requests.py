"""Requests in BCS: view requests and their answers, and simulations as signed transactions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move import (
    Address,
    Bool,
    Bytes,
    FunctionId,
    Int,
    ObjectOf,
    Reader,
    UInt,
    Writer,
    decode_argument,
    encode_argument,
    encode_bcs,
    parse_type_tag,
    read_value,
)
from toolkit.move._json_text import U64_MAX
from toolkit.wire._bcs_payloads import (
    EncodedEntryFunction,
    EncodedMultisig,
    EncodedPayloadV2,
    EncodedScript,
    ScriptArgument,
    read_payload,
    write_function_call,
    write_payload,
)
from toolkit.wire._models import unhex
from toolkit.wire._payloads import EntryFunction, Multisig, Script
from toolkit.wire._transaction_signatures import FeePayerSignature, MultiAgentSignature, read_signature, write_signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.move import Layout
    from toolkit.wire._bcs_payloads import EncodedPayload
    from toolkit.wire._requests import SimulationRequest, ViewFunction
    from toolkit.wire._transaction_signatures import TransactionSignature


_RAW_PREFIX = hashlib.sha3_256(b"APTOS::RawTransaction").digest()
_RAW_WITH_DATA_PREFIX = hashlib.sha3_256(b"APTOS::RawTransactionWithData").digest()


@dataclass(frozen=True, slots=True)
class RawTransaction:
    """A transaction without its signature.

    Parameters
    ----------
    sender : str
        Canonical address.
    sequence_number : int
        u64; 2^64 - 1 if a nonce makes the transaction orderless.
    payload : EncodedPayload
        Function or script to run.
    max_gas_amount : int
        Largest number of gas units.
    gas_unit_price : int
        Octas per gas unit.
    expiration_timestamp_secs : int
        Seconds since 1970-01-01 UTC.
    chain_id : int
        u8.

    Examples
    --------
    >>> from toolkit.move import FunctionId
    >>> from toolkit.wire import EncodedEntryFunction, RawTransaction
    >>> raw = RawTransaction(
    ...     sender="0xa",
    ...     sequence_number=0,
    ...     payload=EncodedEntryFunction(FunctionId.parse("0xcafe::shop::open")),
    ...     max_gas_amount=1_000,
    ...     gas_unit_price=100,
    ...     expiration_timestamp_secs=0,
    ...     chain_id=4,
    ... )
    >>> RawTransaction.from_bcs(raw.to_bcs()) == raw
    True
    """

    sender: str
    sequence_number: int
    payload: EncodedPayload
    max_gas_amount: int
    gas_unit_price: int
    expiration_timestamp_secs: int
    chain_id: int

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read a raw transaction at the position of `reader`, which is advanced past it.

        Raises
        ------
        SchemaError
            If the bytes are not a raw transaction.
        """
        return cls(
            sender=reader.address(),
            sequence_number=reader.u64(),
            payload=read_payload(reader),
            max_gas_amount=reader.u64(),
            gas_unit_price=reader.u64(),
            expiration_timestamp_secs=reader.u64(),
            chain_id=reader.u8(),
        )

    def write(self, writer: Writer) -> None:
        """Append this transaction in BCS.

        Raises
        ------
        InputError, SchemaError
            If a number is out of range, or a part does not have a BCS form.
        """
        writer.address(self.sender)
        writer.u64(self.sequence_number)
        write_payload(writer, self.payload)
        writer.u64(self.max_gas_amount)
        writer.u64(self.gas_unit_price)
        writer.u64(self.expiration_timestamp_secs)
        writer.u8(self.chain_id)

    @classmethod
    def from_bcs(cls, data: bytes) -> Self:
        """Decode a raw transaction.

        Parameters
        ----------
        data : bytes
            The BCS of one raw transaction.

        Returns
        -------
        RawTransaction

        Raises
        ------
        SchemaError
            If the data is not a raw transaction, or continues after it.
        """
        reader = Reader(data)
        raw = cls.read(reader)
        reader.end()
        return raw

    def to_bcs(self) -> bytes:
        """Return the transaction in BCS.

        Raises
        ------
        InputError, SchemaError
            If a number is out of range, or a part does not have a BCS form.
        """
        writer = Writer()
        self.write(writer)
        return writer.getvalue()


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """A transaction with its signature, as the simulate endpoint accepts it in BCS.

    Parameters
    ----------
    raw : RawTransaction
        The transaction.
    signature : TransactionSignature
        The signature; zeros or absent if this package made it.

    Examples
    --------
    >>> from toolkit.wire import EntryFunction, SimulationRequest
    >>> request = SimulationRequest(EntryFunction("0x1::m::f"), sender="0xa")
    >>> signed = signed_transaction(
    ...     request, chain_id=1, sequence_number=0, max_gas_amount=1000, gas_unit_price=100, expiration_timestamp_secs=0
    ... )
    >>> data = signed.to_bcs()
    >>> SignedTransaction.from_bcs(data).to_bcs() == data
    True
    """

    raw: RawTransaction
    signature: TransactionSignature

    @classmethod
    def from_bcs(cls, data: bytes) -> Self:
        """Decode a signed transaction.

        Parameters
        ----------
        data : bytes
            The BCS of one signed transaction.

        Returns
        -------
        SignedTransaction
            Its ``to_bcs()`` returns `data`.

        Raises
        ------
        SchemaError
            If the data is not a signed transaction, or continues after it.
        """
        reader = Reader(data)
        signed = cls(RawTransaction.read(reader), read_signature(reader))
        reader.end()
        return signed

    def to_bcs(self) -> bytes:
        """Return the transaction in BCS.

        Raises
        ------
        InputError, SchemaError
            If a number is out of range, or a part does not have a BCS form.
        """
        writer = Writer()
        self.raw.write(writer)
        write_signature(writer, self.signature)
        return writer.getvalue()

    def signing_message(self) -> bytes:
        """Return the bytes that every signer of this transaction signs: a prefix and the BCS.

        Raises
        ------
        InputError, SchemaError
            If a number is out of range, or a part does not have a BCS form.
        """
        raw = self.raw.to_bcs()
        if not isinstance(self.signature, MultiAgentSignature | FeePayerSignature):
            return _RAW_PREFIX + raw
        writer = Writer()
        writer.uleb128(1 if isinstance(self.signature, FeePayerSignature) else 0)
        writer.fixed(raw)
        writer.uleb128(len(self.signature.secondary_signer_addresses))
        for address in self.signature.secondary_signer_addresses:
            writer.address(address)
        if isinstance(self.signature, FeePayerSignature):
            writer.address(self.signature.fee_payer_address)
        return _RAW_WITH_DATA_PREFIX + writer.getvalue()


def encode_view_request(call: ViewFunction, layouts: Sequence[Layout] | None = None) -> bytes:
    """Return the body of a view request in BCS.

    Parameters
    ----------
    call : ViewFunction
        The call.
    layouts : sequence of Layout, optional
        One per parameter; without them the arguments of the call must be BCS bytes.

    Returns
    -------
    bytes

    Raises
    ------
    InputError
        If an argument cannot be encoded.

    Examples
    --------
    >>> from toolkit.move import UInt
    >>> from toolkit.wire import ViewFunction
    >>> encode_view_request(ViewFunction("0x1::m::f", arguments=[5]), [UInt(8)]).hex()[-12:]
    '016600010105'
    """
    writer = Writer()
    write_function_call(writer, _encoded_call(call, layouts))
    return writer.getvalue()


def decode_view_answer(data: bytes, layouts: Sequence[Layout]) -> list[Any]:
    """Decode the body of a view answer in BCS.

    Parameters
    ----------
    data : bytes
        The body.
    layouts : sequence of Layout, shape (n,)
        One per return value.

    Returns
    -------
    list, shape (n,)
        The return values as Python values.

    Raises
    ------
    SchemaError
        If the data does not fit the layouts.

    Examples
    --------
    >>> from toolkit.move import UInt
    >>> decode_view_answer(bytes.fromhex("0105"), [UInt(8)])
    [5]
    """
    reader = Reader(data)
    count = reader.uleb128()
    if count != len(layouts):
        raise SchemaError(f"expected {len(layouts)} return values, got {count}")
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
    """Return the signed transaction that is the BCS form of a simulation request.

    Parameters
    ----------
    request : SimulationRequest
        The request; its own numbers take precedence over the following ones.
    chain_id : int
        Chain id of the node, u8; it is part of the BCS form only.
    sequence_number, max_gas_amount, gas_unit_price, expiration_timestamp_secs : int
        Used if the request has None: sequence number of the sender; gas units; octas per gas unit; seconds since
        1970-01-01 UTC.
    layouts : sequence of Layout, optional
        One per parameter of the function or script, without signers; without them the arguments must be BCS bytes.

    Returns
    -------
    SignedTransaction
        With a signature of zeros or without a signature.

    Raises
    ------
    InputError
        If an argument cannot be encoded.

    Examples
    --------
    >>> from toolkit.wire import EntryFunction, SimulationRequest, signed_transaction
    >>> request = SimulationRequest(EntryFunction("0xcafe::shop::open"), sender="0xa", gas_unit_price=150)
    >>> signed = signed_transaction(
    ...     request, chain_id=4, sequence_number=3, max_gas_amount=10, gas_unit_price=100, expiration_timestamp_secs=0
    ... )
    >>> signed.raw.gas_unit_price, signed.raw.sequence_number
    (150, 3)
    """
    nonce = request.replay_protection_nonce
    own = request.sequence_number
    raw = RawTransaction(
        sender=request.sender,
        # An orderless transaction has no sequence number; the network represents that by the largest one.
        sequence_number=U64_MAX if nonce is not None else _or(own, sequence_number),
        payload=_encoded_payload(request.payload, nonce, layouts),
        max_gas_amount=_or(request.max_gas_amount, max_gas_amount),
        gas_unit_price=_or(request.gas_unit_price, gas_unit_price),
        expiration_timestamp_secs=_or(request.expiration_timestamp_secs, expiration_timestamp_secs),
        chain_id=chain_id,
    )
    return SignedTransaction(raw, request.signature_to_send())


def _encode_arguments(arguments: Sequence[Any], layouts: Sequence[Layout] | None) -> tuple[bytes, ...]:
    """Return the BCS of each argument; without layouts the arguments must be BCS bytes."""
    if layouts is None:
        for position, argument in enumerate(arguments):
            if not isinstance(argument, bytes):
                raise InputError(
                    f"arguments[{position}]: without an ABI an argument must be BCS bytes, got {shorten(argument)}"
                )
        return tuple(arguments)
    if len(layouts) != len(arguments):
        raise InputError(f"expected {len(layouts)} arguments (without signers), got {len(arguments)}")
    pairs = enumerate(zip(layouts, arguments, strict=True))
    return tuple(encode_bcs(layout, _value(layout, argument, position)) for position, (layout, argument) in pairs)


def _or(own: int | None, default: int) -> int:
    return default if own is None else own


def _value(layout: Layout, argument: Any, position: int) -> Any:
    """Return the Python value of an argument, converted by way of the JSON that a node accepts."""
    where = f"arguments[{position}]"
    try:
        return decode_argument(layout, encode_argument(layout, argument, where=where), where=where)
    except SchemaError as error:
        raise InputError(str(error)) from None


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
    assert encoded is not None  # noqa: S101 - only the payload of a multisig account may be empty  # nosec B101
    return encoded


def _encoded_executable(
    payload: EntryFunction | Script, layouts: Sequence[Layout] | None
) -> EncodedEntryFunction | EncodedScript:
    if isinstance(payload, EntryFunction):
        return _encoded_call(payload, layouts)
    tags = tuple(parse_type_tag(text) for text in payload.type_arguments)
    encoded = _encode_arguments(payload.arguments, layouts)
    if layouts is None:
        arguments = tuple(ScriptArgument("serialized", data) for data in encoded)
    else:
        triples = zip(layouts, payload.arguments, encoded, strict=True)
        arguments = tuple(
            _script_argument(layout, argument, data, position)
            for position, (layout, argument, data) in enumerate(triples)
        )
    return EncodedScript(unhex(payload.bytecode), tags, arguments)


def _encoded_call(call: EntryFunction | ViewFunction, layouts: Sequence[Layout] | None) -> EncodedEntryFunction:
    tags = tuple(parse_type_tag(text) for text in call.type_arguments)
    return EncodedEntryFunction(FunctionId.parse(call.function), tags, _encode_arguments(call.arguments, layouts))


def _script_argument(layout: Layout, argument: Any, data: bytes, position: int) -> ScriptArgument:
    """Return the argument of a script: simple types by kind, all others as serialized BCS."""
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
