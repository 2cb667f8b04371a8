"""Transaction payloads in BCS, with encoded arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move import FunctionId, Writer, read_type_tag, write_type_tag

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.move import Reader, TypeTag


_SCRIPT, _MODULE_BUNDLE, _ENTRY_FUNCTION, _MULTISIG, _PAYLOAD_V2, _ENCRYPTED = range(6)
_ARGUMENT_KINDS = (
    "u8",
    "u64",
    "u128",
    "address",
    "bytes",
    "bool",
    "u16",
    "u32",
    "u256",
    "serialized",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "i256",
)


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
    >>> from toolkit.wire import EncodedEntryFunction
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
    >>> from toolkit.wire import ScriptArgument
    >>> ScriptArgument("u64", 7).to_bcs().hex()
    '0700000000000000'
    """

    kind: str
    value: Any

    def to_bcs(self) -> bytes:
        """Return the BCS of the value, without the kind."""
        if self.kind == "serialized":
            return bytes(self.value)
        writer = Writer()
        getattr(writer, self.kind)(self.value)
        return writer.getvalue()


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
    >>> from toolkit.wire import EncodedScript, ScriptArgument
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
    >>> from toolkit.wire import EncodedModuleBundle
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
    >>> from toolkit.wire import EncodedMultisig
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
    >>> from toolkit.wire import EncodedEntryFunction, EncodedPayloadV2
    >>> call = EncodedEntryFunction(FunctionId.parse("0xcafe::shop::open"))
    >>> EncodedPayloadV2(call, replay_protection_nonce=5).replay_protection_nonce
    5
    """

    executable: EncodedEntryFunction | EncodedScript | None
    multisig_address: str | None = None
    replay_protection_nonce: int | None = None


EncodedPayload = EncodedEntryFunction | EncodedScript | EncodedModuleBundle | EncodedMultisig | EncodedPayloadV2


def read_payload(reader: Reader) -> EncodedPayload:
    """Read a transaction payload.

    Raises
    ------
    SchemaError
        If the bytes are not a payload, or an encrypted one, which only validators can decrypt.
    """
    start = reader.position
    variant = reader.uleb128()
    if variant == _ENCRYPTED:
        raise SchemaError(f"byte {start}: the payload is encrypted, which neither simulations nor this reader support")
    if variant >= len(_READERS):
        raise SchemaError(f"byte {start}: unknown transaction payload {variant}")
    return _READERS[variant](reader)


def write_payload(writer: Writer, payload: EncodedPayload) -> None:
    """Append a transaction payload.

    Raises
    ------
    InputError, SchemaError
        If a part of the payload does not have a BCS form.
    """
    match payload:
        case EncodedScript():
            writer.uleb128(_SCRIPT)
            _write_script(writer, payload)
        case EncodedModuleBundle(codes):
            writer.uleb128(_MODULE_BUNDLE)
            _write_byte_strings(writer, codes)
        case EncodedEntryFunction():
            writer.uleb128(_ENTRY_FUNCTION)
            write_function_call(writer, payload)
        case EncodedMultisig(address, inner):
            writer.uleb128(_MULTISIG)
            writer.address(address)
            _write_option(writer, inner, write_multisig_payload)
        case EncodedPayloadV2():
            writer.uleb128(_PAYLOAD_V2)
            _write_v2(writer, payload)
        case _:
            assert_never(payload)


def read_function_call(reader: Reader) -> EncodedEntryFunction:
    """Read module, function, type arguments and arguments, the form of entry functions and of view requests.

    Raises
    ------
    SchemaError
        If the bytes are not a function call.
    """
    start = reader.position
    address, module, name = reader.address(), reader.string(), reader.string()
    try:
        function = FunctionId(address, module, name)
    except InputError as error:
        raise SchemaError(f"byte {start}: {error}") from None
    return EncodedEntryFunction(function, _read_type_tags(reader), _read_byte_strings(reader))


def write_function_call(writer: Writer, call: EncodedEntryFunction) -> None:
    """Append module, function, type arguments and arguments, the form of entry functions and of view requests.

    Raises
    ------
    InputError
        If a type argument does not have a BCS form.
    """
    writer.address(call.function.address)
    writer.string(call.function.module)
    writer.string(call.function.name)
    _write_type_tags(writer, call.type_arguments)
    _write_byte_strings(writer, call.arguments)


def _read_type_tags(reader: Reader) -> tuple[TypeTag, ...]:
    return tuple(read_type_tag(reader) for _ in range(reader.length()))


def _write_type_tags(writer: Writer, tags: tuple[TypeTag, ...]) -> None:
    writer.uleb128(len(tags))
    for tag in tags:
        write_type_tag(writer, tag)


def _read_byte_strings(reader: Reader) -> tuple[bytes, ...]:
    return tuple(reader.bytes() for _ in range(reader.length()))


def _write_byte_strings(writer: Writer, items: tuple[bytes, ...]) -> None:
    writer.uleb128(len(items))
    for item in items:
        writer.bytes(item)


def _read_script(reader: Reader) -> EncodedScript:
    code = reader.bytes()
    tags = _read_type_tags(reader)
    return EncodedScript(code, tags, tuple(_read_argument(reader) for _ in range(reader.length())))


def _write_script(writer: Writer, script: EncodedScript) -> None:
    writer.bytes(script.code)
    _write_type_tags(writer, script.type_arguments)
    writer.uleb128(len(script.arguments))
    for argument in script.arguments:
        _write_argument(writer, argument)


def _read_argument(reader: Reader) -> ScriptArgument:
    start = reader.position
    variant = reader.uleb128()
    if variant >= len(_ARGUMENT_KINDS):
        raise SchemaError(f"byte {start}: unknown script argument {variant}")
    kind = _ARGUMENT_KINDS[variant]
    # The methods of Reader and Writer have the names of the kinds; a serialized argument is bytes.
    read: Callable[[], Any] = getattr(reader, _method(kind))
    return ScriptArgument(kind, read())


def _write_argument(writer: Writer, argument: ScriptArgument) -> None:
    if argument.kind not in _ARGUMENT_KINDS:
        kinds = ", ".join(_ARGUMENT_KINDS)
        raise InputError(f"unknown kind {shorten(argument.kind)} of a script argument; expected one of {kinds}")
    writer.uleb128(_ARGUMENT_KINDS.index(argument.kind))
    getattr(writer, _method(argument.kind))(argument.value)


def _method(kind: str) -> str:
    return "bytes" if kind == "serialized" else kind


def _read_module_bundle(reader: Reader) -> EncodedModuleBundle:
    return EncodedModuleBundle(_read_byte_strings(reader))


def _read_multisig(reader: Reader) -> EncodedMultisig:
    return EncodedMultisig(reader.address(), _read_option(reader, read_multisig_payload))


def read_multisig_payload(reader: Reader) -> EncodedEntryFunction | EncodedScript:
    """Read a multisig transaction payload.

    Raises
    ------
    SchemaError
        If the bytes are not such a payload.
    """
    start = reader.position
    variant = reader.uleb128()
    if variant == 0:
        return read_function_call(reader)
    if variant == 1:
        return _read_script(reader)
    raise SchemaError(f"byte {start}: unknown multisig payload {variant}")


def write_multisig_payload(writer: Writer, inner: EncodedEntryFunction | EncodedScript) -> None:
    """Append a multisig transaction payload."""
    if isinstance(inner, EncodedScript):
        writer.uleb128(1)
        _write_script(writer, inner)
    else:
        writer.uleb128(0)
        write_function_call(writer, inner)


def _read_v2(reader: Reader) -> EncodedPayloadV2:
    _expect_v1(reader, "payload")
    start = reader.position
    variant = reader.uleb128()
    executable: EncodedEntryFunction | EncodedScript | None
    if variant == 0:
        executable = _read_script(reader)
    elif variant == 1:
        executable = read_function_call(reader)
    elif variant == 2:  # noqa: PLR2004  # the variant index of an empty executable
        executable = None
    else:
        raise SchemaError(f"byte {start}: unknown executable {variant}")
    _expect_v1(reader, "extra configuration")
    address = _read_option(reader, lambda inner: inner.address())
    return EncodedPayloadV2(executable, address, _read_option(reader, lambda inner: inner.u64()))


def _write_v2(writer: Writer, payload: EncodedPayloadV2) -> None:
    writer.uleb128(0)
    match payload.executable:
        case EncodedScript() as script:
            writer.uleb128(0)
            _write_script(writer, script)
        case EncodedEntryFunction() as call:
            writer.uleb128(1)
            write_function_call(writer, call)
        case None:
            writer.uleb128(2)
    writer.uleb128(0)
    _write_option(writer, payload.multisig_address, lambda inner, address: inner.address(address))
    _write_option(writer, payload.replay_protection_nonce, lambda inner, nonce: inner.u64(nonce))


def _expect_v1(reader: Reader, what: str) -> None:
    start = reader.position
    variant = reader.uleb128()
    if variant != 0:
        raise SchemaError(f"byte {start}: unknown {what} version {variant + 1}")


def _read_option(reader: Reader, read: Callable[[Reader], Any]) -> Any:
    return read(reader) if reader.bool() else None


def _write_option(writer: Writer, value: Any, write: Callable[[Writer, Any], None]) -> None:
    writer.bool(value is not None)
    if value is not None:
        write(writer, value)


_READERS: tuple[Callable[[Reader], EncodedPayload], ...] = (
    _read_script,
    _read_module_bundle,
    read_function_call,
    _read_multisig,
    _read_v2,
)
