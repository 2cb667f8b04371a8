"""Transaction payloads in BCS, with encoded arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move._ids import FunctionId
from toolkit.move._scalars import Bool, Int, UInt
from toolkit.wire import _bcs_forms as bcs

if TYPE_CHECKING:
    from toolkit.move import TypeTag
    from toolkit.move._bcs import Reader, Writer


@dataclass(frozen=True, slots=True)
class EncodedEntryFunction:
    """A call of an entry function in a signed transaction.

    Parameters
    ----------
    function : FunctionId
        The function.
    type_arguments : tuple of TypeTag, default ()
        Its type arguments.
    arguments : tuple of bytes, default ()
        BCS of each argument.

    Examples
    --------
    >>> from toolkit.move import FunctionId, UInt, encode_bcs
    >>> from toolkit.wire._bcs_payloads import EncodedEntryFunction
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
        A str for an address; bytes for ``bytes`` and ``serialized``.

    Examples
    --------
    >>> from toolkit.wire._bcs_payloads import ScriptArgument
    >>> ScriptArgument("u64", 7).to_bcs().hex()
    '0700000000000000'
    """

    kind: str
    value: Any

    def to_bcs(self) -> bytes:
        """Return the BCS of the value, without the kind."""
        return bytes(self.value) if self.kind == "serialized" else bcs.encoded(_ARGUMENTS[self.kind], self.value)


# In the order of their indices in BCS.
_ARGUMENTS: dict[str, bcs.Form] = {
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
        raise InputError(f"unknown kind {shorten(argument.kind)} of a script argument; expected one of {kinds}")
    writer.uleb128(list(_ARGUMENTS).index(argument.kind))
    _ARGUMENTS[argument.kind].write(writer, argument.value)


@dataclass(frozen=True, slots=True)
class EncodedScript:
    """A script in a signed transaction.

    Parameters
    ----------
    code : bytes
        Compiled script.
    type_arguments : tuple of TypeTag, default ()
        Its type arguments.
    arguments : tuple of ScriptArgument, default ()
        Its arguments.

    Examples
    --------
    >>> from toolkit.wire._bcs_payloads import EncodedScript, ScriptArgument
    >>> EncodedScript(bytes.fromhex("a11ceb0b"), arguments=(ScriptArgument("bool", True),)).arguments
    (ScriptArgument(kind='bool', value=True),)
    """

    code: bytes
    type_arguments: tuple[TypeTag, ...] = ()
    arguments: tuple[ScriptArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedModuleBundle:
    """Modules to publish, a payload that nodes no longer accept.

    Parameters
    ----------
    codes : tuple of bytes
        Compiled modules.

    Examples
    --------
    >>> from toolkit.wire._bcs_payloads import EncodedModuleBundle
    >>> len(EncodedModuleBundle((bytes.fromhex("a11ceb0b"),)).codes)
    1
    """

    codes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class EncodedMultisig:
    """A transaction of an on-chain multisig account.

    Parameters
    ----------
    multisig_address : str
        Canonical address.
    payload : EncodedEntryFunction, EncodedScript or None, default None
        Payload to run; None runs the payload stored on chain.

    Examples
    --------
    >>> from toolkit.wire._bcs_payloads import EncodedMultisig
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
        u64; makes the transaction orderless.

    Examples
    --------
    >>> from toolkit.move import FunctionId
    >>> from toolkit.wire._bcs_payloads import EncodedEntryFunction, EncodedPayloadV2
    >>> call = EncodedEntryFunction(FunctionId.parse("0xcafe::shop::open"))
    >>> EncodedPayloadV2(call, replay_protection_nonce=5).replay_protection_nonce
    5
    """

    executable: EncodedEntryFunction | EncodedScript | None
    multisig_address: str | None = None
    replay_protection_nonce: int | None = None


EncodedPayload = EncodedEntryFunction | EncodedScript | EncodedModuleBundle | EncodedMultisig | EncodedPayloadV2


def _refuse_encrypted(reader: Reader) -> NoReturn:
    start = reader.position - 1  # of the index
    raise SchemaError(f"byte {start}: the payload is encrypted, which neither simulations nor this reader support")


_TYPE_TAGS, _BYTE_STRINGS = bcs.sequence(bcs.TYPE_TAG), bcs.sequence(bcs.BYTES)
_FUNCTION = bcs.record(FunctionId, address=bcs.ADDRESS, module=bcs.STRING, name=bcs.STRING)
# The form of entry functions and of view requests.
FUNCTION_CALL = bcs.record(EncodedEntryFunction, function=_FUNCTION, type_arguments=_TYPE_TAGS, arguments=_BYTE_STRINGS)
_SCRIPT = bcs.record(
    EncodedScript,
    code=bcs.BYTES,
    type_arguments=_TYPE_TAGS,
    arguments=bcs.sequence(bcs.Form(_read_argument, _write_argument)),
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
    bcs.Form(_refuse_encrypted, bcs.NOTHING.write),
)
