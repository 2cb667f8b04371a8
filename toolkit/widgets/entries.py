"""What people type into a form, read into values and written back. Pure: no widget, no node."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import InputError, SchemaError
from toolkit.move.address import parse_address, wire_address
from toolkit.move.ids import FunctionId
from toolkit.move.tags import parse_type_tag, wire_type
from toolkit.wire.payloads import EntryFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.widgets.known_call import KnownCall
    from toolkit.wire.requests import SimulationRequest

__all__ = ["FIELDS", "Estimates", "Reading", "estimates_of", "read_entries", "write_entries"]

FIELDS = {
    "sender": "Sender",
    "function": "Function",
    "type_arguments": "Type arguments",
    "arguments": "Arguments",
}
"""The entries that are typed, with their labels."""

_NEEDED = {
    "sender": "expected the sender's address, such as 0xa11ce",
    "function": "expected address::module::function, such as 0x1::aptos_account::transfer",
}
_EXAMPLE = 'expected a JSON array, such as ["0xb0b", 100]'


class Estimates(NamedTuple):
    """Which of its three estimates a node is asked for."""

    max_gas_amount: bool
    gas_unit_price: bool
    prioritized_gas_unit_price: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """Entries as they were read.

    Attributes
    ----------
    sender : str or None
        Canonical address.
    payload : EntryFunction or None
        Present where function, type arguments and arguments could be read.
    errors : dict of str to str
        What is wrong, by field.
    missing : dict of str to str
        What is needed and still empty, by field.
    """

    sender: str | None = None
    payload: EntryFunction | None = None
    errors: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def read_entries(texts: Mapping[str, str], known: KnownCall | None = None) -> Reading:
    """Read the typed entries of an entry function's form.

    Parameters
    ----------
    texts : mapping of str to str
        One text per field of `FIELDS`.
    known : KnownCall, optional
        What the ABI says; arguments are checked by it where it is about the same call.

    Returns
    -------
    Reading
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
    return Reading(values.get("sender"), payload, errors, missing)


def _read_types(text: str) -> tuple[str, ...]:
    return tuple(str(parse_type_tag(line)) for line in _split_types(text))


def _split_types(text: str) -> list[str]:
    """Split at line ends, and at commas outside of angle brackets."""
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
        raise InputError(f"nested too deeply; {_EXAMPLE}") from None
    except ValueError as error:  # a number of thousands of digits, or NaN
        raise InputError(f"{error}; {_EXAMPLE}") from None
    if not isinstance(values, list):
        kind = {dict: "an object", str: "a string", bool: "a boolean", type(None): "null"}.get(type(values), "a number")
        raise InputError(f"got {kind}; {_EXAMPLE}")
    try:
        return EntryFunction("0x1::any::any", arguments=values).arguments
    except InputError as error:
        raise InputError(str(error).replace("EntryFunction.arguments", "arguments")) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def write_entries(request: SimulationRequest) -> dict[str, str]:
    """Return the texts from which `read_entries` reads the sender and the payload of a request.

    Parameters
    ----------
    request : SimulationRequest
        Of an entry function.

    Returns
    -------
    dict of str to str
        One text per field of `FIELDS`.

    Raises
    ------
    InputError
        If the payload is no entry function, which is what the form can show.
    """
    payload = request.payload
    if not isinstance(payload, EntryFunction):
        raise InputError(
            f"this builder edits entry functions; the request has a {type(payload).__name__} payload, "
            "simulate it with node.simulate(request)"
        )
    arguments = json.dumps(list(payload.arguments), ensure_ascii=False, default=lambda value: "0x" + value.hex())
    return {
        "sender": wire_address(request.sender),
        "function": FunctionId.parse(payload.function).wire,
        "type_arguments": "\n".join(wire_type(parse_type_tag(text)) for text in payload.type_arguments),
        "arguments": arguments if payload.arguments else "",
    }


def estimates_of(request: SimulationRequest | None) -> Estimates:
    """Return which estimates a request asks for: an option left open asks where the amount is open too."""
    if request is None:
        return Estimates(max_gas_amount=True, gas_unit_price=True, prioritized_gas_unit_price=False)
    max_gas, price = request.estimate_max_gas_amount, request.estimate_gas_unit_price
    return Estimates(
        max_gas_amount=(request.max_gas_amount is None and request.fee_payer is None) if max_gas is None else max_gas,
        gas_unit_price=request.gas_unit_price is None if price is None else price,
        prioritized_gas_unit_price=request.estimate_prioritized_gas_unit_price,
    )
