"""Transaction payloads in JSON: those of requests, and those that nodes print.

To add a payload, write its class, add it to `_READERS`, and add its BCS form to `toolkit.wire._bcs_payloads`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from toolkit._present.messages import shorten
from toolkit.errors import InputError
from toolkit.wire._models import (
    AddressText,
    Argument,
    FunctionText,
    HexText,
    TypeText,
    WireModel,
    parse_by_type,
    wire_argument,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.wire._models import JsonObject


class EntryFunction(WireModel):
    """A call of an entry function.

    Parameters
    ----------
    function : str
        ``address::module::function``.
    type_arguments : sequence of str, default ()
        Type tags, one per type parameter.
    arguments : sequence, default ()
        JSON-like values, without the signers. Without an ABI they are sent as given, but an int of more than 32 bits
        is sent as a string.

    Raises
    ------
    InputError
        If the function id, a type or an argument cannot be used.

    Examples
    --------
    >>> call = EntryFunction("0x1::aptos_account::transfer", arguments=["0x2", 100])
    >>> call.to_wire()["arguments"]
    ['0x2', 100]
    """

    type: ClassVar[str] = "entry_function_payload"
    _package: ClassVar[str] = "toolkit"

    function: FunctionText
    type_arguments: tuple[TypeText, ...] = ()
    arguments: tuple[Argument, ...] = ()

    def __init__(
        self, function: str, arguments: Sequence[Any] = (), *, type_arguments: Sequence[str] = (), **unknown: Any
    ) -> None:
        self._fill(locals())

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> EntryFunction:
        """Return the payload of a JSON object.

        Raises
        ------
        InputError, KeyError, TypeError
            If the object does not have the documented shape.
        """
        return cls(
            content["function"],
            type_arguments=content.get("type_arguments", ()),
            arguments=content.get("arguments", ()),
        )

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "function": self.function,
            "type_arguments": list(self.type_arguments),
            "arguments": [wire_argument(argument) for argument in self.arguments],
        }


class Script(WireModel):
    """A script: bytecode that is part of the transaction.

    Parameters
    ----------
    bytecode : str or bytes
        Compiled script, as hex or bytes.
    abi : dict, optional
        Function object of the script as nodes print it; nodes ignore it in requests.
    type_arguments : sequence of str, default ()
        Type tags, one per type parameter.
    arguments : sequence, default ()
        JSON-like values, without the signers.

    Raises
    ------
    InputError
        If the bytecode is not hex, or a type or an argument cannot be used.

    Examples
    --------
    >>> Script("0xa11ceb0b", type_arguments=["u64"], arguments=["5"]).to_wire()["code"]
    {'bytecode': '0xa11ceb0b', 'abi': None}
    """

    type: ClassVar[str] = "script_payload"
    _package: ClassVar[str] = "toolkit"

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
        abi = None if abi is None else dict(abi)
        self._fill(locals())

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Script:
        """Return the payload of a JSON object.

        Raises
        ------
        InputError, KeyError, TypeError, AttributeError
            If the object does not have the documented shape.
        """
        code = content["code"]
        return cls(
            code["bytecode"],
            abi=code.get("abi"),
            type_arguments=content.get("type_arguments", ()),
            arguments=content.get("arguments", ()),
        )

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "code": {"bytecode": self.bytecode, "abi": self.abi},
            "type_arguments": list(self.type_arguments),
            "arguments": [wire_argument(argument) for argument in self.arguments],
        }


class Multisig(WireModel):
    """A transaction of an on-chain multisig account.

    Parameters
    ----------
    multisig_address : str
        Address of the multisig account.
    transaction_payload : EntryFunction or Script, optional
        Payload to run; None runs the payload stored on chain. Nodes before 2026 do not accept a script.

    Raises
    ------
    InputError
        If the address or the inner payload cannot be used.

    Examples
    --------
    >>> call = EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    >>> Multisig("0x5afe", transaction_payload=call).transaction_payload.function
    '0x1::aptos_account::transfer'
    """

    type: ClassVar[str] = "multisig_payload"
    _package: ClassVar[str] = "toolkit"

    multisig_address: AddressText
    transaction_payload: EntryFunction | Script | None = None

    def __init__(
        self,
        multisig_address: str,
        *,
        transaction_payload: EntryFunction | Script | None = None,
        **unknown: Any,
    ) -> None:
        self._fill(locals())

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Multisig:
        """Return the payload of a JSON object.

        Raises
        ------
        InputError, SchemaError, KeyError, TypeError
            If the object does not have the documented shape.
        """
        # Recordings of an SDK name the inner payload `payload`; nodes name it `transaction_payload`.
        inner = content.get("transaction_payload") or content.get("payload")
        payload = None if inner is None else parse_payload(inner)
        if payload is not None and not isinstance(payload, EntryFunction | Script):
            raise InputError(f"expected an entry function or script as inner payload, got type {shorten(payload.type)}")
        return cls(content["multisig_address"], transaction_payload=payload)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form; without an inner payload the key is omitted."""
        wire: dict[str, Any] = {"type": self.type, "multisig_address": self.multisig_address}
        if self.transaction_payload is not None:
            wire["transaction_payload"] = self.transaction_payload.to_wire()
        return wire


class UnknownPayload(WireModel):
    """A payload of another type with its JSON.

    For example a genesis write set, modules to publish (which nodes no longer accept), or an encrypted payload.

    Parameters
    ----------
    content : dict
        The JSON object.

    Examples
    --------
    >>> from toolkit.wire._payloads import UnknownPayload, parse_payload
    >>> payload = parse_payload({"type": "a_future_payload"})
    >>> isinstance(payload, UnknownPayload), payload.type
    (True, 'a_future_payload')
    """

    content: dict[str, Any]

    @property
    def type(self) -> str | None:
        """The type in the JSON object, or None if it has none."""
        name = self.content.get("type")
        return name if isinstance(name, str) else None

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object."""
        return self.content


Payload = EntryFunction | Script | Multisig | UnknownPayload


def parse_payload(json: JsonObject) -> Payload:
    """Decode the payload of a transaction.

    Parameters
    ----------
    json : mapping, bytes or msgspec.Raw
        The JSON object, parsed or not. Unknown fields are ignored.

    Returns
    -------
    EntryFunction, Script, Multisig, ModuleBundle or UnknownPayload
        An `UnknownPayload` with the JSON if the ``type`` is unknown. ``script_function_payload``, the name used in
        2022, is an entry function.

    Raises
    ------
    SchemaError
        If the JSON is not an object, or does not have the documented shape of its type.

    Examples
    --------
    >>> parse_payload({"type": "entry_function_payload", "function": "0x1::m::f", "arguments": ["7"]}).arguments
    ('7',)
    """
    return parse_by_type(json, _READERS, UnknownPayload, "payload")  # type: ignore[no-any-return]  # by table


_READERS = {kind.type: kind.from_wire for kind in (EntryFunction, Script, Multisig)} | {
    "script_function_payload": EntryFunction.from_wire
}
