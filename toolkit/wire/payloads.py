"""Transaction payloads: those people build, and those read back from a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move.json_text import parse_json
from toolkit.wire.models import (
    AddressText,
    Argument,
    FunctionText,
    HexText,
    TypeText,
    WireModel,
    python_call,
    wire_argument,
)

__all__ = [
    "EntryFunction",
    "ModuleBundle",
    "Multisig",
    "Payload",
    "Script",
    "UnknownPayload",
    "parse_payload",
]

_RETIRED = (
    "module bundle payloads were removed from the ledger and every node refuses them; "
    "publish with the entry function 0x1::code::publish_package_txn instead"
)


class EntryFunction(WireModel):
    """A call of an entry function.

    Parameters
    ----------
    function : str
        ``address::module::function``.
    type_arguments : sequence of str, default ()
        Type tags, one per type parameter.
    arguments : sequence, default ()
        JSON-like values, signers left out. Without an ABI they are sent as given, and an int past 32 bits
        becomes a string.

    Raises
    ------
    InputError
        If the function id, a type or an argument cannot be used.
    """

    type: ClassVar[str] = "entry_function_payload"

    function: FunctionText
    type_arguments: tuple[TypeText, ...] = ()
    arguments: tuple[Argument, ...] = ()

    def __init__(
        self, function: str, *, type_arguments: Sequence[str] = (), arguments: Sequence[Any] = (), **unknown: Any
    ) -> None:
        self._fill({"function": function, "type_arguments": type_arguments, "arguments": arguments} | unknown)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "function": self.function,
            "type_arguments": list(self.type_arguments),
            "arguments": [wire_argument(argument) for argument in self.arguments],
        }

    def to_python(self) -> str:
        """Return the Python expression that builds this payload."""
        return python_call(self)


class Script(WireModel):
    """A script: bytecode that runs once.

    Parameters
    ----------
    bytecode : str or bytes
        Compiled script, hex or bytes.
    abi : dict, optional
        The script's function object as a node prints it; nodes ignore it in requests.
    type_arguments : sequence of str, default ()
        Type tags, one per type parameter.
    arguments : sequence, default ()
        JSON-like values, signers left out.

    Raises
    ------
    InputError
        If the bytecode is no hex, or a type or an argument cannot be used.
    """

    type: ClassVar[str] = "script_payload"

    bytecode: HexText
    abi: dict[str, Any] | None = None
    type_arguments: tuple[TypeText, ...] = ()
    arguments: tuple[Argument, ...] = ()

    def __init__(
        self,
        bytecode: str | bytes,
        *,
        abi: Mapping[str, Any] | None = None,
        type_arguments: Sequence[str] = (),
        arguments: Sequence[Any] = (),
        **unknown: Any,
    ) -> None:
        fields = {"bytecode": bytecode, "type_arguments": type_arguments, "arguments": arguments}
        self._fill(fields | {"abi": None if abi is None else dict(abi)} | unknown)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "code": {"bytecode": self.bytecode, "abi": self.abi},
            "type_arguments": list(self.type_arguments),
            "arguments": [wire_argument(argument) for argument in self.arguments],
        }

    def to_python(self) -> str:
        """Return the Python expression that builds this payload."""
        return python_call(self, prefix="toolkit.wire.")


class Multisig(WireModel):
    """A transaction of an on-chain multisig account.

    Parameters
    ----------
    multisig_address : str
        Address of the multisig account.
    transaction_payload : EntryFunction or Script, optional
        What to run; None runs the payload stored on chain. A script needs a node of 2026 or later.

    Raises
    ------
    InputError
        If the address or the inner payload cannot be used.
    """

    type: ClassVar[str] = "multisig_payload"

    multisig_address: AddressText
    transaction_payload: EntryFunction | Script | None = None

    def __init__(
        self,
        multisig_address: str,
        *,
        transaction_payload: EntryFunction | Script | None = None,
        **unknown: Any,
    ) -> None:
        fields = {"multisig_address": multisig_address, "transaction_payload": transaction_payload}
        self._fill(fields | unknown)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form; without an inner payload the key is left out."""
        wire: dict[str, Any] = {"type": self.type, "multisig_address": self.multisig_address}
        if self.transaction_payload is not None:
            wire["transaction_payload"] = self.transaction_payload.to_wire()
        return wire

    def to_python(self) -> str:
        """Return the Python expression that builds this payload."""
        return python_call(self, prefix="toolkit.wire.")


class ModuleBundle(WireModel):
    """The retired way to publish modules: read from old transactions, refused for sending.

    Parameters
    ----------
    modules : sequence of dict, default ()
        ``{"bytecode": hex, "abi": ...}`` objects as old nodes print them.
    """

    type: ClassVar[str] = "module_bundle_payload"

    modules: tuple[dict[str, Any], ...] = ()

    def __init__(self, modules: Sequence[Mapping[str, Any]] = (), **unknown: Any) -> None:
        self._fill({"modules": modules} | unknown)

    def to_wire(self) -> dict[str, Any]:
        """Refuse: no node takes this payload.

        Raises
        ------
        InputError
            Always, with the reason and the way to publish today.
        """
        raise InputError(_RETIRED)

    def to_python(self) -> str:
        """Return the Python expression that builds this payload."""
        return python_call(self, prefix="toolkit.wire.")


class UnknownPayload(WireModel):
    """A payload this package cannot build, kept as it came: genesis write sets, encrypted or future payloads.

    Parameters
    ----------
    content : dict
        The JSON object.
    """

    content: dict[str, Any]

    def __init__(self, content: Mapping[str, Any], **unknown: Any) -> None:
        self._fill({"content": dict(content)} | unknown)

    @property
    def type(self) -> str | None:
        """The object's own type, where it names one."""
        name = self.content.get("type")
        return name if isinstance(name, str) else None

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object as it came."""
        return self.content


Payload = EntryFunction | Script | Multisig | ModuleBundle | UnknownPayload


def parse_payload(json: Mapping[str, Any] | bytes | msgspec.Raw) -> Payload:
    """Read the payload of an answer.

    Parameters
    ----------
    json : mapping, bytes or msgspec.Raw
        The JSON object, parsed or not. Fields this package does not know are left out.

    Returns
    -------
    EntryFunction, Script, Multisig, ModuleBundle or UnknownPayload
        An unknown ``type`` gives an `UnknownPayload` that keeps the JSON. ``script_function_payload``, the name
        of 2022, is read as an entry function.

    Raises
    ------
    SchemaError
        If it is no JSON object, or a known type lacks what it must have.
    """
    content = parse_object(json, "payload")
    kind = content.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        return UnknownPayload(content)
    try:
        return reader(content)
    except (InputError, KeyError, TypeError, AttributeError) as error:
        reason = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise SchemaError(f"the {kind} does not have the documented shape: {reason}", column="payload") from error


def parse_object(json: Mapping[str, Any] | bytes | msgspec.Raw, what: str) -> dict[str, Any]:
    """Return a JSON object as a dict, whatever form it is in.

    Raises
    ------
    SchemaError
        If it is not a JSON object.
    """
    if isinstance(json, Mapping):
        return dict(json)
    if not isinstance(json, bytes | msgspec.Raw):
        raise SchemaError(f"the {what} is not JSON, got {shorten(json)}", column=what)
    try:
        value = parse_json(json, what)
    except SchemaError as error:
        raise SchemaError(str(error), column=what) from error
    if not isinstance(value, dict):
        raise SchemaError(f"the {what} is not a JSON object, got {shorten(value)}", column=what)
    return value


def _read_entry_function(content: Mapping[str, Any]) -> EntryFunction:
    return EntryFunction(
        content["function"],
        type_arguments=content.get("type_arguments", ()),
        arguments=content.get("arguments", ()),
    )


def _read_script(content: Mapping[str, Any]) -> Script:
    code = content["code"]
    return Script(
        code["bytecode"],
        abi=code.get("abi"),
        type_arguments=content.get("type_arguments", ()),
        arguments=content.get("arguments", ()),
    )


def _read_multisig(content: Mapping[str, Any]) -> Multisig:
    # An SDK's recordings print the inner payload as `payload`; nodes print `transaction_payload`.
    inner = content.get("transaction_payload") or content.get("payload")
    payload = None if inner is None else parse_payload(inner)
    if payload is not None and not isinstance(payload, EntryFunction | Script):
        raise InputError(f"an inner payload of type {shorten(payload.type)} is not documented")
    return Multisig(content["multisig_address"], transaction_payload=payload)


def _read_module_bundle(content: Mapping[str, Any]) -> ModuleBundle:
    return ModuleBundle(content.get("modules", ()))


_READERS: dict[str, Callable[[Mapping[str, Any]], Payload]] = {
    "entry_function_payload": _read_entry_function,
    "script_function_payload": _read_entry_function,
    "script_payload": _read_script,
    "multisig_payload": _read_multisig,
    "module_bundle_payload": _read_module_bundle,
}
