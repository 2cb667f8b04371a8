"""Requests in BCS: view requests and their responses, and simulations as signed transactions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

from toolkit._present.messages import shorten
from toolkit._present.text import plural
from toolkit.errors import InputError, SchemaError
from toolkit.move._bcs import Reader, Writer
from toolkit.move._ids import FunctionId, wire_address
from toolkit.move._json_text import U64_MAX
from toolkit.move._scalars import Address, Bool, Bytes, Int, Integer, ObjectOf, UInt
from toolkit.move._type_tags import parse_type_tag
from toolkit.move._values import decode_argument, encode_argument, encode_bcs, read_value
from toolkit.wire import _bcs_forms as bcs
from toolkit.wire._models import unhex
from toolkit.wire._requests import Batch, Multisig, Script, called_by, own_or
from toolkit.wire._signatures import SIGNATURE, FeePayerSignature, MultiAgentSignature, TransactionSignature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.move import Layout, TypeTag
    from toolkit.wire._requests import EntryFunction, SimulatedPayload, SimulationRequest, ViewFunction


@dataclass(frozen=True, slots=True)
class EncodedEntryFunction:
    """A call to an entry function, as encoded in a signed transaction.

    Parameters
    ----------
    function : FunctionId
        Id of the function.
    type_arguments : tuple of TypeTag, default ()
        Type arguments of the call.
    arguments : tuple of bytes, default ()
        Arguments of the call, each as BCS.

    Examples
    --------
    >>> from toolkit.move import FunctionId, UInt, encode_bcs
    >>> from toolkit.wire._bcs_requests import EncodedEntryFunction
    >>> call = EncodedEntryFunction(FunctionId.parse("0xcafe::shop::buy"), arguments=(encode_bcs(UInt(64), 7),))
    >>> call.arguments[0].hex()
    '0700000000000000'
    """

    function: FunctionId
    type_arguments: tuple[TypeTag, ...] = ()
    arguments: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptArgument:
    """An argument of a script.

    Parameters
    ----------
    kind : str
        ``u8`` to ``u256``, ``i8`` to ``i256``, ``address``, ``bool``, ``bytes`` (vector<u8>), or ``serialized`` (BCS
        of any value).
    value : int, bool, str or bytes
        The argument: str for an address, bytes for ``bytes`` and ``serialized``.

    Examples
    --------
    >>> from toolkit.wire._bcs_requests import ScriptArgument
    >>> ScriptArgument("u64", 7).to_bcs().hex()
    '0700000000000000'
    """

    kind: str
    value: Any

    def to_bcs(self) -> bytes:
        """Return the BCS of the value, without the kind."""
        return bytes(self.value) if self.kind == "serialized" else bcs.encoded(_ARGUMENTS[self.kind], self.value)


# In the order of their indices in BCS.
_ARGUMENTS: dict[str, bcs.BcsForm] = {
    "u8": bcs.value_of(UInt(8)),
    "u64": bcs.value_of(UInt(64)),
    "u128": bcs.value_of(UInt(128)),
    "address": bcs.ADDRESS,
    "bytes": bcs.BYTES,
    "bool": bcs.value_of(Bool()),
    "u16": bcs.value_of(UInt(16)),
    "u32": bcs.value_of(UInt(32)),
    "u256": bcs.value_of(UInt(256)),
    "serialized": bcs.BYTES,
}
_ARGUMENTS |= {f"i{bits}": bcs.value_of(Int(bits)) for bits in (8, 16, 32, 64, 128, 256)}


def _read_argument(reader: Reader) -> ScriptArgument:
    kind = list(_ARGUMENTS)[bcs.read_index(reader, len(_ARGUMENTS), "script argument")]
    return ScriptArgument(kind, _ARGUMENTS[kind].read(reader))


def _write_argument(writer: Writer, argument: ScriptArgument) -> None:
    if argument.kind not in _ARGUMENTS:
        kinds = ", ".join(_ARGUMENTS)
        raise InputError(f"unknown script argument kind {shorten(argument.kind)}; expected one of {kinds}")
    writer.uleb128(list(_ARGUMENTS).index(argument.kind))
    _ARGUMENTS[argument.kind].write(writer, argument.value)


def script_argument_json(argument: ScriptArgument) -> Any:
    """Return the JSON form of a script argument. Its kind determines the form, because a script has no ABI."""
    value = argument.value
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if argument.kind == "address":
        return wire_address(value)
    return str(value) if argument.kind not in {"u8", "u16", "u32", "i8", "i16", "i32", "bool"} else value


@dataclass(frozen=True, slots=True)
class EncodedScript:
    """A script in a signed transaction.

    Parameters
    ----------
    code : bytes
        Compiled script.
    type_arguments : tuple of TypeTag, default ()
        Type arguments of the script.
    arguments : tuple of ScriptArgument, default ()
        Arguments of the script.

    Examples
    --------
    >>> from toolkit.wire._bcs_requests import EncodedScript, ScriptArgument
    >>> EncodedScript(bytes.fromhex("a11ceb0b"), arguments=(ScriptArgument("bool", True),)).arguments
    (ScriptArgument(kind='bool', value=True),)
    """

    code: bytes
    type_arguments: tuple[TypeTag, ...] = ()
    arguments: tuple[ScriptArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedModuleBundle:
    """A payload that publishes modules. Nodes no longer accept it.

    Parameters
    ----------
    codes : tuple of bytes
        Compiled modules.

    Examples
    --------
    >>> from toolkit.wire._bcs_requests import EncodedModuleBundle
    >>> len(EncodedModuleBundle((bytes.fromhex("a11ceb0b"),)).codes)
    1
    """

    codes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class EncodedMultisig:
    """A payload that an on-chain multisig account runs.

    Parameters
    ----------
    multisig_address : str
        Canonical address.
    payload : EncodedEntryFunction, EncodedScript or None, default None
        Payload to run; None runs the payload stored on chain.

    Examples
    --------
    >>> from toolkit.wire._bcs_requests import EncodedMultisig
    >>> EncodedMultisig("0xcafe").payload is None  # runs the payload stored on chain
    True
    """

    multisig_address: str
    payload: EncodedEntryFunction | EncodedScript | None = None


@dataclass(frozen=True, slots=True)
class EncodedPayloadV2:
    """A payload with an optional multisig address and an optional replay protection nonce.

    Parameters
    ----------
    executable : EncodedEntryFunction, EncodedScript or None
        Function or script to run; None runs the payload that a multisig account stores on chain.
    multisig_address : str or None, default None
        Canonical address of the multisig account.
    replay_protection_nonce : int or None, default None
        Nonce (u64) that makes the transaction orderless.

    Examples
    --------
    >>> from toolkit.move import FunctionId
    >>> from toolkit.wire._bcs_requests import EncodedEntryFunction, EncodedPayloadV2
    >>> call = EncodedEntryFunction(FunctionId.parse("0xcafe::shop::open"))
    >>> EncodedPayloadV2(call, replay_protection_nonce=5).replay_protection_nonce
    5
    """

    executable: EncodedEntryFunction | EncodedScript | None
    multisig_address: str | None = None
    replay_protection_nonce: int | None = None


EncodedPayload = EncodedEntryFunction | EncodedScript | EncodedModuleBundle | EncodedMultisig | EncodedPayloadV2


class PayloadParts(NamedTuple):
    """What a payload runs (None if it is stored, or a module bundle), for which multisig account, by which nonce."""

    executable: EncodedEntryFunction | EncodedScript | None
    multisig_address: str | None = None
    nonce: int | None = None


def payload_parts(payload: EncodedPayload) -> PayloadParts:
    """Return the parts of a payload, whatever its form."""
    match payload:
        case EncodedPayloadV2():
            return PayloadParts(payload.executable, payload.multisig_address, payload.replay_protection_nonce)
        case EncodedMultisig():
            return PayloadParts(payload.payload, payload.multisig_address)
        case EncodedModuleBundle():
            return PayloadParts(None)
    return PayloadParts(payload)


def _refuse_encrypted(reader: Reader) -> NoReturn:
    start = reader.position - 1  # of the index
    raise SchemaError(f"byte {start}: the payload is encrypted; encrypted payloads cannot be simulated or decoded")


_TYPE_TAGS, _BYTE_STRINGS = bcs.sequence(bcs.TYPE_TAG), bcs.sequence(bcs.BYTES)
# The form of entry functions and of view requests.
FUNCTION_CALL = bcs.record(
    EncodedEntryFunction, function=bcs.FUNCTION, type_arguments=_TYPE_TAGS, arguments=_BYTE_STRINGS
)
_SCRIPT = bcs.record(
    EncodedScript,
    code=bcs.BYTES,
    type_arguments=_TYPE_TAGS,
    arguments=bcs.sequence(bcs.BcsForm(_read_argument, _write_argument)),
)
MULTISIG_PAYLOAD = bcs.variants("multisig payload", FUNCTION_CALL, _SCRIPT)
# In the order of their indices in BCS.
PAYLOAD = bcs.variants(
    "transaction payload",
    _SCRIPT,
    bcs.record(EncodedModuleBundle, codes=_BYTE_STRINGS),
    FUNCTION_CALL,
    bcs.record(EncodedMultisig, multisig_address=bcs.ADDRESS, payload=bcs.option(MULTISIG_PAYLOAD)),
    bcs.record(
        EncodedPayloadV2,
        executable=bcs.versioned("payload", bcs.variants("executable", _SCRIPT, FUNCTION_CALL, bcs.NOTHING)),
        multisig_address=bcs.versioned("extra configuration", bcs.option(bcs.ADDRESS)),
        replay_protection_nonce=bcs.option(bcs.U64),
    ),
    bcs.BcsForm(_refuse_encrypted, bcs.NOTHING.write),
)


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
        Sequence number of the sender (u64); 2^64 - 1 if a nonce makes the transaction orderless.
    payload : EncodedPayload
        Function or script to run.
    max_gas_amount : int
        Maximum number of gas units.
    gas_unit_price : int
        Octas per gas unit.
    expiration_timestamp_secs : int
        Expiration time in seconds since 1970-01-01 UTC.
    chain_id : int
        Chain id of the ledger (u8).

    Examples
    --------
    >>> from toolkit.move import FunctionId
    >>> from toolkit.wire import RawTransaction
    >>> from toolkit.wire._bcs_requests import EncodedEntryFunction
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
    def from_bcs(cls, data: bytes) -> Self:
        """Decode a raw transaction.

        Parameters
        ----------
        data : bytes
            One raw transaction as BCS.

        Returns
        -------
        RawTransaction

        Raises
        ------
        SchemaError
            If the data is not a raw transaction, or has trailing bytes.
        """
        return bcs.whole(RAW_TRANSACTION, data)  # type: ignore[no-any-return]  # by table

    def to_bcs(self) -> bytes:
        """Encode the transaction as BCS.

        Raises
        ------
        InputError, SchemaError
            If a number is out of range, or a part cannot be represented in BCS.
        """
        return bcs.encoded(RAW_TRANSACTION, self)


RAW_TRANSACTION = bcs.record(
    RawTransaction,
    sender=bcs.ADDRESS,
    sequence_number=bcs.U64,
    payload=PAYLOAD,
    max_gas_amount=bcs.U64,
    gas_unit_price=bcs.U64,
    expiration_timestamp_secs=bcs.U64,
    chain_id=bcs.U8,
)


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """A transaction with its signature, in the BCS form that the simulate endpoint accepts.

    Parameters
    ----------
    raw : RawTransaction
        The transaction.
    signature : TransactionSignature
        The signature; zeros or absent if this package created it.

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
            One signed transaction as BCS.

        Returns
        -------
        SignedTransaction
            Its ``to_bcs()`` returns `data`.

        Raises
        ------
        SchemaError
            If the data is not a signed transaction, or has trailing bytes.
        """
        return bcs.whole(SIGNED_TRANSACTION, data)  # type: ignore[no-any-return]  # by table

    def to_bcs(self) -> bytes:
        """Encode the transaction as BCS.

        Raises
        ------
        InputError, SchemaError
            If a number is out of range, or a part cannot be represented in BCS.
        """
        return bcs.encoded(SIGNED_TRANSACTION, self)

    def signing_message(self) -> bytes:
        """Return the bytes that each signer of this transaction signs: a prefix, then the transaction as BCS.

        Raises
        ------
        InputError, SchemaError
            If a number is out of range, or a part cannot be represented in BCS.
        """
        raw = self.raw.to_bcs()
        if not isinstance(self.signature, MultiAgentSignature | FeePayerSignature):
            return _RAW_PREFIX + raw
        writer = Writer()
        writer.uleb128(1 if isinstance(self.signature, FeePayerSignature) else 0)
        writer.fixed(raw)
        bcs.sequence(bcs.ADDRESS).write(writer, self.signature.secondary_signer_addresses)
        if isinstance(self.signature, FeePayerSignature):
            writer.address(self.signature.fee_payer_address)
        return _RAW_WITH_DATA_PREFIX + writer.getvalue()


SIGNED_TRANSACTION = bcs.record(SignedTransaction, raw=RAW_TRANSACTION, signature=SIGNATURE)


def encode_view_request(call: ViewFunction, layouts: Sequence[Layout] | None = None) -> bytes:
    """Encode the body of a view request as BCS.

    Parameters
    ----------
    call : ViewFunction
        The call to encode.
    layouts : sequence of Layout, optional
        Layout of each parameter. If omitted, the arguments of the call must be BCS bytes.

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
    return bcs.encoded(FUNCTION_CALL, _encoded_call(call, layouts))


def decode_view_answer(data: bytes, layouts: Sequence[Layout]) -> list[Any]:
    """Decode the body of a view response from BCS.

    Parameters
    ----------
    data : bytes
        The body.
    layouts : sequence of Layout, shape (n,)
        Layout of each return value.

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
    if (count := reader.uleb128()) != len(layouts):
        raise SchemaError(f"expected {plural(len(layouts), 'return value')}, got {count:,}")
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
    """Convert a simulation request to a signed transaction, which is the BCS form of the request.

    Parameters
    ----------
    request : SimulationRequest
        The request. Numbers that it sets take precedence over the parameters below.
    chain_id : int
        Chain id of the node (u8). Only the BCS form contains it.
    sequence_number, max_gas_amount, gas_unit_price, expiration_timestamp_secs : int
        Values for the fields that the request leaves as None: the sender's sequence number, gas units, octas per gas
        unit, and seconds since 1970-01-01 UTC.
    layouts : sequence of Layout, optional
        Layout of each parameter of the function or script, except signers. If omitted, the arguments must be BCS bytes.

    Returns
    -------
    SignedTransaction
        Has an all-zero signature or no signature.

    Raises
    ------
    InputError
        If an argument cannot be encoded.

    Examples
    --------
    >>> from toolkit.wire import EntryFunction, SimulationRequest
    >>> from toolkit.wire._bcs_requests import signed_transaction
    >>> request = SimulationRequest(EntryFunction("0xcafe::shop::open"), sender="0xa", gas_unit_price=150)
    >>> signed = signed_transaction(
    ...     request, chain_id=4, sequence_number=3, max_gas_amount=10, gas_unit_price=100, expiration_timestamp_secs=0
    ... )
    >>> signed.raw.gas_unit_price, signed.raw.sequence_number
    (150, 3)
    """
    nonce = request.replay_protection_nonce
    raw = RawTransaction(
        sender=request.sender,
        # An orderless transaction has no sequence number; the network represents that by the largest one.
        sequence_number=U64_MAX if nonce is not None else own_or(request.sequence_number, sequence_number),
        payload=encoded_payload(request.payload, nonce, layouts),
        max_gas_amount=own_or(request.max_gas_amount, max_gas_amount),
        gas_unit_price=own_or(request.gas_unit_price, gas_unit_price),
        expiration_timestamp_secs=own_or(request.expiration_timestamp_secs, expiration_timestamp_secs),
        chain_id=chain_id,
    )
    return SignedTransaction(raw, request.signature_to_send())


def _encode_arguments(arguments: Sequence[Any], layouts: Sequence[Layout] | None) -> tuple[bytes, ...]:
    """Encode each argument as BCS; without layouts, the arguments must already be BCS bytes."""
    if layouts is None:
        for position, argument in enumerate(arguments):
            if not isinstance(argument, bytes):
                raise InputError(
                    f"arguments[{position}]: without an ABI, arguments must be BCS bytes, got {shorten(argument)}"
                )
        return tuple(arguments)
    return tuple(map(encode_bcs, layouts, _values(arguments, layouts)))


def _values(arguments: Sequence[Any], layouts: Sequence[Layout]) -> list[Any]:
    """Convert arguments to Python values, by way of the JSON that a node accepts."""
    if len(layouts) != len(arguments):
        raise InputError(f"expected {plural(len(layouts), 'argument')} (without signers), got {len(arguments)}")
    places = enumerate(zip(layouts, arguments, strict=True))
    return [_value(layout, argument, f"arguments[{position}]") for position, (layout, argument) in places]


def _value(layout: Layout, argument: Any, where: str) -> Any:
    try:
        return decode_argument(layout, encode_argument(layout, argument, where=where), where=where)
    except SchemaError as error:
        raise InputError(str(error)) from None


def encoded_literal(layout: Layout, argument: Any, where: str) -> bytes:
    """Encode an argument as BCS; `where` is its place in the message of an InputError."""
    return encode_bcs(layout, _value(layout, argument, where))


def encoded_payload(payload: SimulatedPayload, nonce: int | None, layouts: Sequence[Layout] | None) -> EncodedPayload:
    """Convert a payload to its BCS form, with its arguments encoded as in `signed_transaction`."""
    inner = called_by(payload)
    if isinstance(inner, Batch):
        raise InputError("a batch must be composed from the modules of a node: pass node.compose(batch)")
    executable: EncodedEntryFunction | EncodedScript | None = None
    if inner is not None:
        executable = (_encoded_script if isinstance(inner, Script) else _encoded_call)(inner, layouts)  # type: ignore[arg-type]
    address = payload.multisig_address if isinstance(payload, Multisig) else None
    if nonce is not None:
        return EncodedPayloadV2(executable, address, nonce)
    if address is not None:
        return EncodedMultisig(address, executable)
    assert executable is not None  # noqa: S101 - only the payload of a multisig account may be empty
    return executable


def _encoded_script(script: Script, layouts: Sequence[Layout] | None) -> EncodedScript:
    tags = tuple(parse_type_tag(text) for text in script.type_arguments)
    if layouts is None:
        arguments = tuple(ScriptArgument("serialized", one) for one in _encode_arguments(script.arguments, None))
    else:
        arguments = script_arguments(layouts, _values(script.arguments, layouts))
    return EncodedScript(unhex(script.bytecode), tags, arguments)


def _encoded_call(call: EntryFunction | ViewFunction, layouts: Sequence[Layout] | None) -> EncodedEntryFunction:
    tags = tuple(parse_type_tag(text) for text in call.type_arguments)
    return EncodedEntryFunction(FunctionId.parse(call.function), tags, _encode_arguments(call.arguments, layouts))


def script_arguments(layouts: Sequence[Layout], values: Sequence[Any]) -> tuple[ScriptArgument, ...]:
    """Convert Python values to script arguments: simple types by kind, all other types as serialized BCS."""
    return tuple(map(_script_argument, layouts, values))


def _script_argument(layout: Layout, value: Any) -> ScriptArgument:
    match layout:
        case Integer() | Bool():
            return ScriptArgument(layout.move_type, value)
        case Address() | ObjectOf():
            return ScriptArgument("address", value)
        case Bytes():
            return ScriptArgument("bytes", value)
        case _:
            return ScriptArgument("serialized", encode_bcs(layout, value))
