"""The base class of requests, payloads and signatures, and the types of their fields.

The models are frozen pydantic models that reject unknown fields. `parse_by_type` reads them from JSON.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self, TypeAlias, dataclass_transform

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from toolkit._present.messages import refusal, shorten
from toolkit._present.text import plural
from toolkit.errors import InputError, SchemaError
from toolkit.move import FunctionId, parse_address, parse_type_tag
from toolkit.move._ids import parse_hex
from toolkit.move._json_text import U64_MAX, parse_json

JsonObject: TypeAlias = Mapping[str, Any] | bytes | msgspec.Raw  # a JSON object, parsed or not

_MAX_DEPTH = 32  # of nested arguments; Move values have at most 128, ABIs of entry functions far fewer
_MAX_BITS = 256  # of the largest integer of Move
# Nodes read JSON numbers in these bounds; other integers are sent as digits.
_I32_MIN, _U32_MAX = -(2**31), 2**32 - 1
_MAX_ERRORS = 3  # problems in one message
_MAX_PATH = 120  # characters of the place of a problem


@dataclass_transform(kw_only_default=False, field_specifiers=(Field,))
class WireModel(BaseModel):
    """Base class of requests, payloads and signatures. By default, fields are also positional parameters, in order."""

    _package: ClassVar[str] = "toolkit.wire"
    """Package name that `to_python` writes before the name of the class."""

    # Validators are built when a class is first used, so that `connect` does not wait for the validators of 20 classes.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    def __init__(self, *given: Any, **fields: Any) -> None:
        known, name_of_class = type(self).model_fields, type(self).__name__
        placed = dict(zip(known, given, strict=False))
        if len(given) > len(known) or placed.keys() & fields.keys():
            raise TypeError(f"{name_of_class} takes each of its fields at most once: {', '.join(known)}")
        fields |= placed
        if missing := [name for name, field in known.items() if field.is_required() and name not in fields]:
            raise TypeError(f"{name_of_class} is missing {', '.join(missing)}")
        self._fill(**fields)

    def _fill(self, **fields: Any) -> None:
        """Initialise this instance from its fields.

        Raises
        ------
        InputError
            If a field is unknown or its value is not valid; the message names the field.
        """
        try:
            BaseModel.__init__(self, **fields)
        except ValidationError as error:
            raise _refused(type(self).__name__, error) from None
        except TypeError as error:  # pydantic passes a dict to the class of the field, which has other names
            parts = [name for name, value in fields.items() if isinstance(value, dict)]
            where = ".".join((type(self).__name__, *parts[:1]))
            raise InputError(f"{where}: expected an instance of a toolkit.wire class, got a dict ({error})") from None

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield the fields that differ from their defaults."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if field.is_required() or value != field.get_default(call_default_factory=True, validated_data=vars(self)):
                yield name, value

    def to_python(self) -> str:
        """Return a Python expression that builds an equal object, without the fields that have their default value."""
        first, given = next(iter(type(self).model_fields), ""), self.__repr_args__()
        parts = [("" if name == first else f"{name}=") + _python_value(value) for name, value in given]
        return f"{self._package}.{type(self).__name__}({', '.join(parts)})"

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed.

        Parameters
        ----------
        **changes
            Values by field name.

        Raises
        ------
        InputError
            If a field is unknown or a value is not valid.
        """
        return type(self)(**({name: getattr(self, name) for name in type(self).model_fields} | changes))


class UnknownModel(WireModel):
    """Base class of payloads and signatures of an unknown type, which are stored as JSON."""

    content: dict[str, Any]

    @property
    def type(self) -> str | None:
        """The ``type`` of the JSON object, or None if the object does not have a type."""
        name = self.content.get("type")
        return name if isinstance(name, str) else None

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object."""
        return self.content


# arguments that only calls in a batch can have ---------------------------------------------------------------------


class Use(StrEnum):
    """How a call takes a result of an earlier call."""

    DEFAULT = ""  # a copy if the type has copy and drop, else a move
    MOVE = "move"
    COPY = "copy"
    BORROW = "borrow"
    BORROW_MUT = "borrow_mut"


@dataclass(frozen=True, slots=True, repr=False)
class BatchSigner:
    """A signer of the transaction: 0 is the sender, 1 the first secondary signer."""

    index: int

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form, from which fingerprints are made."""
        return {"signer": self.index}

    def __repr__(self) -> str:
        return f"toolkit.Batch.signer({self.index})"


@dataclass(frozen=True, slots=True, repr=False)
class BatchResult:
    """A result of an earlier call of a batch.

    Attributes
    ----------
    call, value : int
        Position of the call in the batch, and of the value among its results; both count from 0.
    use : Use
    """

    call: int
    value: int = 0
    use: Use = Use.DEFAULT

    def copy(self) -> BatchResult:
        """Return the argument that copies the result; its type must have the ability copy."""
        return replace(self, use=Use.COPY)

    def move(self) -> BatchResult:
        """Return the argument that moves the result, although its type could be copied."""
        return replace(self, use=Use.MOVE)

    def borrow(self) -> BatchResult:
        """Return the argument for a parameter ``&T``."""
        return replace(self, use=Use.BORROW)

    def borrow_mut(self) -> BatchResult:
        """Return the argument for a parameter ``&mut T``."""
        return replace(self, use=Use.BORROW_MUT)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form, from which fingerprints are made."""
        return {"result": [self.call, self.value]} | ({"use": str(self.use)} if self.use else {})

    def __repr__(self) -> str:
        value = f", {self.value}" if self.value else ""
        return f"toolkit.Batch.result({self.call}{value})" + (f".{self.use}()" if self.use else "")


BatchArgument = BatchSigner | BatchResult


def check_position(name: str, value: object) -> int:
    """Return a position that counts from 0.

    Raises
    ------
    InputError
        If it is not one.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{name} must be a whole number from 0, got {shorten(value)}")
    return value


# the types of fields ------------------------------------------------------------------------------------------------


def _refused(name: str, error: ValidationError) -> InputError:
    """Return the error for a class of the given name whose fields are not valid."""
    found = error.errors(include_url=False, include_input=True)
    # A default that depends on a refused field is not a second problem.
    details = [detail for detail in found if detail["type"] != "default_factory_not_called"]
    problems = []
    for detail in details[:_MAX_ERRORS]:
        why = refusal(detail, {"tuple_type": "expected a list"})
        if detail["type"] == "extra_forbidden":
            why = f"{name} does not have this field"
        elif detail["type"] == "tuple_type" and isinstance(detail["input"], str | int):
            why += f"; write [{shorten(detail['input'])}]"
        problems.append((detail["loc"], why))
    lines = [f"{'.'.join((name, *map(str, path)))[:_MAX_PATH]}: {why}" for path, why in problems]
    if len(details) > _MAX_ERRORS:
        lines.append(f"and {plural(len(details) - _MAX_ERRORS, 'more error')}")
    refused = InputError("; ".join(lines))
    refused.problems = tuple(problems)
    return refused


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"expected {what} as a string, got {shorten(value)}")
    return value


def _address(value: object) -> str:
    return parse_address(_text(value, "an address"))


def _function(value: object) -> str:
    what = "a function id (address::module::function)"
    return str(value if isinstance(value, FunctionId) else function_id(_text(value, what)))


@lru_cache(maxsize=1024)
def function_id(text: str) -> FunctionId:
    """Parse a function id; cached, because programs call a few functions many times."""
    return FunctionId.parse(text)


def _type_text(value: object) -> str:
    return str(parse_type_tag(value if isinstance(value, str) else str(value)))  # `str` of an enum is its name


def _hex(value: object) -> str:
    return "0x" + (value if isinstance(value, bytes | bytearray) else parse_hex(_text(value, "hex digits"))).hex()


def u64(value: object) -> int:
    """Return a u64 that is given as an int or as digits; raise InputError for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(U64_MAX)):
        number: int | None = int(value)
    else:
        number = None if isinstance(value, bool) else _whole(value)
    if number is None:
        raise InputError(f"expected an integer, got {shorten(value)}")
    if not 0 <= number <= U64_MAX:
        raise InputError(f"expected an integer from 0 to 2^64 - 1, got {shorten(number)}")
    return number


def _argument(value: object, depth: int = 0) -> Any:
    """Copy a JSON-like value, so that the request does not change when the caller modifies the original."""
    if depth > _MAX_DEPTH:
        raise InputError(f"expected an argument with at most {_MAX_DEPTH} levels of nesting, got more")
    if value is None or isinstance(value, bool | str) or (isinstance(value, BatchArgument) and not depth):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, list | tuple):
        return [_argument(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_text(key, "a field name"): _argument(item, depth + 1) for key, item in value.items()}
    if (number := _whole(value)) is not None:
        if number.bit_length() > _MAX_BITS:
            raise InputError(f"expected an integer of at most {_MAX_BITS} bits, got one of {number.bit_length()} bits")
        return number
    if isinstance(value, float):
        raise InputError(f"Move does not have floating point numbers, got {value!r}; pass an int or a string of digits")
    expected = "a JSON-like value (int, str, bool, None, list, dict or bytes; convert arrays with .tolist())"
    raise InputError(f"expected {expected}, got {shorten(value)}")


def _whole(value: Any) -> int | None:
    """Return any integer as an int, and any other value as None. Arrays have an ``__index__`` that raises."""
    try:
        return operator.index(value)
    except TypeError:
        return None


AddressText = Annotated[str, BeforeValidator(_address)]
FunctionText = Annotated[str, BeforeValidator(_function)]
TypeText = Annotated[str, BeforeValidator(_type_text)]
HexText = Annotated[str, BeforeValidator(_hex)]
U64 = Annotated[int, BeforeValidator(u64)]
Argument = Annotated[Any, BeforeValidator(_argument)]


def unhex(text: str) -> bytes:
    """Decode a `HexText`."""
    return bytes.fromhex(text[2:])


def _parse_object(json: JsonObject, what: str) -> dict[str, Any]:
    if isinstance(json, Mapping):
        return dict(json)
    if not isinstance(json, bytes | msgspec.Raw):
        raise SchemaError(f"the {what} must be a JSON object, got {shorten(json)}", column=what)
    try:
        value = parse_json(json, what)
    except SchemaError as error:
        raise SchemaError(str(error), column=what) from None
    if not isinstance(value, dict):
        raise SchemaError(f"the {what} must be a JSON object, got {shorten(value)}", column=what)
    return value


def parse_by_type(
    json: JsonObject,
    readers: Mapping[str, Callable[[Mapping[str, Any]], Any]],
    unknown: Callable[[dict[str, Any]], Any],
    what: str,
) -> Any:
    """Create the model of a JSON object, depending on its ``type``.

    Parameters
    ----------
    json : mapping, bytes or msgspec.Raw
        The JSON object, parsed or not.
    readers : mapping of str to callable
        For each type, a function that creates the model from the object.
    unknown : callable
        Creates the model of an object of any other type.
    what : str
        Name of the object in error messages.

    Raises
    ------
    SchemaError
        If `json` is not a JSON object, or does not have the documented shape of its type.
    """
    content = _parse_object(json, what)
    kind = content.get("type")
    reader = readers.get(kind) if isinstance(kind, str) else None
    if reader is None:
        return unknown(content)
    try:
        return reader(content)
    except (InputError, KeyError, TypeError, AttributeError) as error:
        reason = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
        column = what.rpartition(" ")[2]
        raise SchemaError(f"the {kind} does not have the documented shape: {reason}", column=column) from None


def wire_argument(value: Any, *, digits: bool = False, batch: bool = False) -> Any:
    """Return the JSON form of an argument, without an ABI.

    Parameters
    ----------
    value : JSON-like
        The argument, as stored in a request.
    digits : bool, default False
        Write every int as a string, so that ``7`` and ``"7"`` have the same form.
    batch : bool, default False
        Whether the argument may be one that only calls in a batch can have.

    Returns
    -------
    JSON value
        Bytes become 0x hex. An int of more than 32 bits becomes a string of digits, because JSON readers may round it.

    Raises
    ------
    InputError
        If the argument belongs to a batch, which has no JSON form.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if digits or not _I32_MIN <= value <= _U32_MAX else value
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, list):
        return [wire_argument(item, digits=digits) for item in value]
    if isinstance(value, dict):
        return {key: wire_argument(item, digits=digits) for key, item in value.items()}
    if isinstance(value, BatchArgument):
        if not batch:
            raise InputError(f"{value!r} can be an argument of a call in a toolkit.Batch only")
        return value.to_wire()
    return value


def _python_value(value: Any) -> str:
    if isinstance(value, WireModel):
        return value.to_python()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_python_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_python_value(item)}" for key, item in value.items()) + "}"
    return repr(value)
