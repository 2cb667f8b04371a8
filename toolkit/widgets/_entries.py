"""Text typed into a form: read into values, checked by the ABI, and written back. Holds no widget."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.client._abis import encode_arguments, parameter_layouts
from toolkit.errors import InputError, SchemaError
from toolkit.move import FunctionId, parse_address, parse_type_tag, substitute, wire_address, wire_type
from toolkit.wire import EntryFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.client._abis import AbisAt
    from toolkit.client._node import Node
    from toolkit.move import FunctionAbi, ModuleAbi
    from toolkit.wire import Payload, SimulationRequest

__all__ = [
    "FIELDS",
    "Entries",
    "Estimates",
    "ResolvedCall",
    "ResolvedFunction",
    "estimates_of",
    "find_function",
    "read_entries",
    "write_entries",
]

FIELDS = {
    "sender": "Sender",
    "function": "Function",
    "type_arguments": "Type arguments",
    "arguments": "Arguments",
}
"""Labels of the text entries, by name."""

_NEEDED = {
    "sender": "expected the sender's address, such as 0xa11ce",
    "function": "expected address::module::function, such as 0x1::aptos_account::transfer",
}
_EXAMPLE = 'expected a JSON array, such as ["0xb0b", 100]'


class Estimates(NamedTuple):
    """Which of its three estimates the node is asked for."""

    max_gas_amount: bool
    gas_unit_price: bool
    prioritized_gas_unit_price: bool


@dataclass(frozen=True, slots=True)
class Entries:
    """The values of the text entries.

    Attributes
    ----------
    sender : str or None
        Canonical address; None if the text is not an address.
    payload : EntryFunction or None
        None if function, type arguments or arguments cannot be read.
    errors : dict of str to str
        Error messages by field.
    missing : dict of str to str
        What to enter, by required field that is empty.
    """

    sender: str | None = None
    payload: EntryFunction | None = None
    errors: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def read_entries(texts: Mapping[str, str], known: ResolvedCall | None = None) -> Entries:
    """Read the text entries.

    Parameters
    ----------
    texts : mapping of str to str
        One text per field of `FIELDS`.
    known : ResolvedCall, optional
        Checks the arguments if the texts name the same function and type arguments.

    Returns
    -------
    Entries
    """
    errors: dict[str, str] = {}
    missing = {name: text for name, text in _NEEDED.items() if not texts[name].strip()}
    readers: dict[str, Callable[[str], Any]] = {
        "sender": parse_address,
        "function": lambda text: str(FunctionId.parse(text)),
        "type_arguments": _read_types,
        "arguments": _read_arguments,
    }
    values: dict[str, Any] = {}
    for name, reader in readers.items():
        if name in missing:
            continue
        try:
            values[name] = reader(texts[name].strip())
        except InputError as error:
            errors[name] = str(error)
    payload = None
    if {"function", "type_arguments", "arguments"} <= values.keys():
        call = EntryFunction(values["function"], type_arguments=values["type_arguments"], arguments=values["arguments"])
        try:
            if known is not None and known.is_about(call):
                known.encode(call.arguments)
        except (InputError, SchemaError) as error:
            errors["arguments"] = str(error)
        else:
            payload = call
    return Entries(values.get("sender"), payload, errors, missing)


def _read_types(text: str) -> tuple[str, ...]:
    return tuple(str(parse_type_tag(line)) for line in _split_types(text))


def _split_types(text: str) -> list[str]:
    """Split at line breaks and at commas outside angle brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "<") - (character == ">")
        if character == "\n" or (character == "," and depth == 0):
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _read_arguments(text: str) -> tuple[Any, ...]:
    if not text:
        return ()
    try:
        values = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InputError(
            f"line {error.lineno}, column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}; {_EXAMPLE}"
        ) from None
    except RecursionError:
        raise InputError(f"too many nested brackets; {_EXAMPLE}") from None
    except ValueError as error:  # thousands of digits, or NaN
        raise InputError(f"{error}; {_EXAMPLE}") from None
    if not isinstance(values, list):
        kind = {dict: "an object", str: "a string", bool: "a boolean", type(None): "null"}.get(type(values), "a number")
        raise InputError(f"got {kind}; {_EXAMPLE}")
    try:
        return EntryFunction("0x1::any::any", arguments=values).arguments
    except InputError as error:
        raise InputError(str(error).replace("EntryFunction.arguments", "arguments")) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def write_entries(request: SimulationRequest) -> dict[str, str]:
    """Return the texts of a request: the inverse of `read_entries`.

    Parameters
    ----------
    request : SimulationRequest
        Its payload must be an `EntryFunction`.

    Returns
    -------
    dict of str to str
        One text per field of `FIELDS`.

    Raises
    ------
    InputError
        If the payload is not an `EntryFunction`.
    """
    payload = request.payload
    if not isinstance(payload, EntryFunction):
        raise InputError(
            f"the payload must be an EntryFunction, got {type(payload).__name__}; "
            "simulate other payloads with node.simulate(request)"
        )
    arguments = json.dumps(list(payload.arguments), ensure_ascii=False, default=lambda value: "0x" + value.hex())
    return {
        "sender": wire_address(request.sender),
        "function": FunctionId.parse(payload.function).wire,
        "type_arguments": "\n".join(wire_type(parse_type_tag(text)) for text in payload.type_arguments),
        "arguments": arguments if payload.arguments else "",
    }


def estimates_of(request: SimulationRequest | None) -> Estimates:
    """Return the estimates a request asks for. An option of None asks for an estimate if the amount is None too."""
    if request is None:
        return Estimates(max_gas_amount=True, gas_unit_price=True, prioritized_gas_unit_price=False)
    max_gas, price = request.estimate_max_gas_amount, request.estimate_gas_unit_price
    return Estimates(
        max_gas_amount=(request.max_gas_amount is None and request.fee_payer is None) if max_gas is None else max_gas,
        gas_unit_price=request.gas_unit_price is None if price is None else price,
        prioritized_gas_unit_price=request.estimate_prioritized_gas_unit_price,
    )


_MAX_NAMES = 8


@dataclass(frozen=True, slots=True)
class ResolvedFunction:
    """An entry function with its ABI at one ledger version."""

    name: str
    abi: FunctionAbi
    abis: AbisAt

    def with_types(self, type_arguments: Sequence[str]) -> ResolvedCall:
        """Substitute type arguments and resolve the layouts of the parameters.

        Later checks of arguments then need no request.

        Raises
        ------
        InputError
            If the number of type arguments is wrong, or one of them is not a Move type.
        """
        expected, got = len(self.abi.generic_type_params), len(type_arguments)
        if expected != got:
            raise InputError(f"{self.name} takes {expected} type argument{'s' * (expected != 1)}, got {got}")
        given = tuple(parse_type_tag(text) for text in type_arguments)
        types = tuple(str(substitute(tag, given)) for tag in self.abi.parameters)
        parameter_layouts(self.abi, type_arguments, self.abis)  # caches the layouts in the ABI store
        return ResolvedCall(self, tuple(type_arguments), types)


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """An entry function with its type arguments.

    Attributes
    ----------
    function : ResolvedFunction
    type_arguments : tuple of str
    parameter_types : tuple of str
        Move types of the arguments, signers left out.
    """

    function: ResolvedFunction
    type_arguments: tuple[str, ...]
    parameter_types: tuple[str, ...]

    @property
    def ledger_version(self) -> int:
        """Ledger version of the ABI."""
        return self.function.abis.version

    @property
    def signature(self) -> str:
        """Name and parameter types: ``transfer(address, u64)``."""
        return f"{self.function.abi.name}({', '.join(self.parameter_types)})"

    def is_about(self, payload: Payload) -> bool:
        """Return True if `payload` calls this function with these type arguments."""
        return (
            isinstance(payload, EntryFunction)
            and payload.function == self.function.name
            and payload.type_arguments == self.type_arguments
        )

    def encode(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments as the node reads them from JSON.

        Raises
        ------
        InputError, SchemaError
            If the number of arguments is wrong, or one does not fit its type.
        """
        if len(arguments) != len(self.parameter_types):
            words = ", ".join(self.parameter_types) or "none"
            raise InputError(f"expected {len(self.parameter_types)} ({words}), got {len(arguments)}")
        function = self.function
        return encode_arguments(function.abi, self.type_arguments, arguments, function.abis, where=function.abi.name)


def find_function(node: Node, name: str) -> ResolvedFunction | None:
    """Read the ABI of an entry function at the node's head.

    Parameters
    ----------
    node : Node
    name : str
        ``address::module::function``.

    Returns
    -------
    ResolvedFunction or None
        None if the node returns no ABI of the module; it may still run the function.

    Raises
    ------
    InputError
        If the module has no function of that name, or the function is not an entry function.
    NodeError, NodeUnreachable
        If the head or the module cannot be read.
    """
    wanted = FunctionId.parse(name)
    abis = node.abis.at(node.ledger().version)
    module = abis.module_abi(wanted.address, wanted.module)
    if module is None:
        return None
    function = module.function(wanted.name)
    if function is None or not function.is_entry:
        raise InputError(_unknown_function(module, wanted, function))
    return ResolvedFunction(name, function, abis)


def _unknown_function(module: ModuleAbi, wanted: FunctionId, found: FunctionAbi | None) -> str:
    entries = [function.name for function in module.exposed_functions if function.is_entry]
    where = f"{wanted.address}::{wanted.module}"
    if found is not None:
        kind = "a view function, see node.view" if found.is_view else "not an entry function"
        return f"{where}::{found.name} is {kind}; {_choices(where, entries)}"
    close = get_close_matches(wanted.name, entries, n=1)
    hint = f"did you mean {close[0]}?" if close else _choices(where, entries)
    return f"{where} has no function {wanted.name!r}; {hint}"


def _choices(where: str, entries: list[str]) -> str:
    if not entries:
        return f"{where} has no entry functions"
    more = f" and {len(entries) - _MAX_NAMES} more" if len(entries) > _MAX_NAMES else ""
    return f"entry functions are {', '.join(entries[:_MAX_NAMES])}{more}"
