"""The base of what people build (pydantic: frozen, unknown keys refused) and the checked types of its fields."""

from __future__ import annotations

import operator
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from toolkit._present.messages import shorten
from toolkit.errors import InputError
from toolkit.move.address import parse_address
from toolkit.move.ids import FunctionId, parse_hex
from toolkit.move.type_tags import parse_type_tag
from toolkit.wire.u64 import U64_MAX

__all__ = [
    "U64",
    "AddressText",
    "Argument",
    "FunctionText",
    "HexText",
    "TypeText",
    "WireModel",
    "python_call",
    "wire_argument",
]


_MAX_DEPTH = 32
_U32_MAX = 2**32 - 1
_WIDEST_BITS = 256
_I32_MIN = -(2**31)
_SHOWN_ERRORS = 3
_SHOWN_PATH = 120


class WireModel(BaseModel):
    """Base of the requests, payloads and signatures people build."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def _fill(self, fields: dict[str, Any]) -> None:
        """Validate `fields` into this instance; a failure names the field."""
        try:
            BaseModel.__init__(self, **fields)
        except ValidationError as error:
            raise InputError(_describe(type(self).__name__, error)) from error
        except TypeError as error:  # a part was given as a dict, and its class takes other names
            parts = [name for name, value in fields.items() if isinstance(value, dict)]
            where = ".".join((type(self).__name__, *parts[:1]))
            raise InputError(
                f"{where}: expected an object made by a class of toolkit.wire, not a dict ({error})"
            ) from None

    def implied_fields(self) -> dict[str, Any]:
        """Return the fields that need not be written, with the values they take when left out."""
        fields = type(self).model_fields.items()
        return {name: field.get_default() for name, field in fields if not field.is_required()}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, checked like a new one.

        Raises
        ------
        InputError
            If a field is unknown or a value cannot be used.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**(fields | changes))


def _describe(name: str, error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=True)
    lines = []
    for detail in details[:_SHOWN_ERRORS]:
        where = ".".join((name, *(str(part) for part in detail["loc"])))[:_SHOWN_PATH]
        what = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            what = f"there is no such field in {name}"
        elif detail["type"] == "tuple_type":
            what = f"expected a list, got {shorten(detail['input'])}"
        elif detail["type"] != "value_error":
            what = f"{what.replace('Input should be', 'expected')}, got {shorten(detail['input'])}"
        lines.append(f"{where}: {what}")
    if len(details) > _SHOWN_ERRORS:
        lines.append(f"and {len(details) - _SHOWN_ERRORS} more")
    return "; ".join(lines)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"expected {what} as text, got {shorten(value)}")
    return value


def _address(value: object) -> str:
    return parse_address(_text(value, "an address"))


def _function(value: object) -> str:
    if isinstance(value, FunctionId):
        return str(value)
    return str(FunctionId.parse(_text(value, "a function id (address::module::function)")))


def _type_text(value: object) -> str:
    # A type tag object prints itself as the text it was parsed from.
    text = value if isinstance(value, str) else str(value)
    return str(parse_type_tag(text))


def _hex(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return "0x" + bytes(value).hex()
    return "0x" + parse_hex(_text(value, "hex digits")).hex()


def _u64(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(U64_MAX)):
        number = int(value)
    else:
        whole = None if isinstance(value, bool) else _whole(value)
        if whole is None:
            raise InputError(f"expected a whole number, got {shorten(value)}")
        number = whole
    if not 0 <= number <= U64_MAX:
        raise InputError(f"expected a whole number from 0 to 2^64 - 1, got {shorten(number)}")
    return number


def _argument(value: object, depth: int = 0) -> Any:
    """Return a copy of a JSON-like value, so that later changes of a caller's list do not reach a request."""
    if depth > _MAX_DEPTH:
        raise InputError(f"an argument may nest {_MAX_DEPTH} levels, this one is deeper")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, list | tuple):
        return [_argument(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_text(key, "a field name"): _argument(item, depth + 1) for key, item in value.items()}
    number = _whole(value)
    if number is not None:
        if number.bit_length() > _WIDEST_BITS:
            raise InputError(f"no Move integer has more than {_WIDEST_BITS} bits, got {number.bit_length()}")
        return number
    if isinstance(value, float):
        raise InputError(f"Move has no floating point numbers, got {value!r}; write an int or a string of digits")
    expected = "JSON-like values (int, str, bool, None, list, dict, bytes; an array as its .tolist())"
    raise InputError(f"expected {expected}, got {shorten(value)}")


def _whole(value: Any) -> int | None:
    """Return an int of any kind as one; None for what is none, such as an array, which has ``__index__`` too."""
    try:
        return operator.index(value)
    except TypeError:
        return None


AddressText = Annotated[str, BeforeValidator(_address)]
FunctionText = Annotated[str, BeforeValidator(_function)]
TypeText = Annotated[str, BeforeValidator(_type_text)]
HexText = Annotated[str, BeforeValidator(_hex)]
U64 = Annotated[int, BeforeValidator(_u64)]
Argument = Annotated[Any, BeforeValidator(_argument)]


def wire_argument(value: Any, *, digits: bool = False) -> Any:
    """Return the JSON form of an argument that no ABI has encoded.

    Parameters
    ----------
    value : JSON-like
        As kept by a request.
    digits : bool, default False
        Write every int as a string, for a form in which ``7`` and ``"7"`` are the same.

    Returns
    -------
    JSON value
        Bytes become 0x hex; an int past 32 bits becomes a string of digits, as JSON readers need it.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return str(value) if digits or not _I32_MIN <= value <= _U32_MAX else value
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, list):
        return [wire_argument(item, digits=digits) for item in value]
    if isinstance(value, dict):
        return {key: wire_argument(item, digits=digits) for key, item in value.items()}
    return value


def python_call(model: WireModel, *, prefix: str = "toolkit.") -> str:
    """Return a Python expression that builds an equal model; fields at their default are left out."""
    parts = []
    implied = model.implied_fields()
    for position, name in enumerate(type(model).model_fields):
        value = getattr(model, name)
        if name in implied and value == implied[name]:
            continue
        text = _python_value(value)
        parts.append(text if position == 0 else f"{name}={text}")
    return f"{prefix}{type(model).__name__}({', '.join(parts)})"


def _python_value(value: Any) -> str:
    if isinstance(value, WireModel):
        to_python = getattr(value, "to_python", None)
        return str(to_python()) if to_python is not None else python_call(value, prefix="toolkit.wire.")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_python_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_python_value(item)}" for key, item in value.items()) + "}"
    return repr(value)
