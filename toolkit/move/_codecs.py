"""What the codecs of Move values share: type names, checks, and the exception for a value that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, assert_never

from toolkit._present.messages import MAX_NAMED, cut_text, describe, shorten
from toolkit.errors import SchemaError
from toolkit.move._layouts import (
    Address,
    Bool,
    Bytes,
    EnumOf,
    FunctionValue,
    Int,
    Layout,
    ObjectOf,
    OptionOf,
    String,
    StructOf,
    UInt,
    Untyped,
    VectorOf,
)
from toolkit.move._type_tags import FunctionType, Primitive, Reference, TypeTag, Vector

if TYPE_CHECKING:
    from toolkit.errors import InputError
    from toolkit.move._type_tags import StructTag


Codec: TypeAlias = Callable[[Any], Any]
"""A function from JSON to a Python value, or back; it raises `Mismatch`."""

CODEC_CACHE_SIZE = 8192
"""Number of layouts whose compiled codec is cached, per direction and encoding."""
MAX_NUMBER_BITS = 32
"""Widest integers that are JSON numbers; wider ones are strings."""
VARIANT = "__variant__"
"""Key of the variant's name in the value of an enum."""
_MAX_NAMES = 5  # enough to recognise an object


class Mismatch(Exception):  # noqa: N818  # internal: never leaves this package
    """A value does not fit its layout. Each container that the exception passes adds its step to the path.

    Parameters
    ----------
    text : str
        What is wrong. ``.steps`` is the path to the value, innermost step first.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.steps: list[str | int] = []

    def at(self, step: str | int) -> Mismatch:
        """Add the field name or index of the value to the path."""
        self.steps.append(step)
        return self

    def located(self, where: str) -> str:
        """Return `where` followed by the path inside the value."""
        path = (f"[{step}]" if isinstance(step, int) else f".{cut_text(step, 80)}" for step in reversed(self.steps))
        return where + "".join(path)

    def error(self, kind: type[InputError], where: str) -> InputError:
        """Return the public exception for a value that the caller passed."""
        return kind(f"{self.located(where)}: {cut_text(self.text, MAX_NAMED)}")


def raise_schema_error(mismatch: Mismatch, where: str) -> NoReturn:
    """Raise the public exception for a value that does not fit its type.

    Raises
    ------
    SchemaError
        Always.
    """
    place = mismatch.located(where)
    raise SchemaError(f"{place}: {cut_text(mismatch.text, MAX_NAMED)}", column=place) from None


def type_words(of: Layout | TypeTag) -> str:  # noqa: C901, PLR0911  # one case per kind of type
    """Return the name that nodes give to the JSON form of a type in their error messages.

    Parameters
    ----------
    of : Layout or TypeTag
        A layout, or the type of a parameter in an ABI.

    Returns
    -------
    str
        ``boolean``, ``integer<u8>``, ``string<u64>``, ``string<address>``, ``string<hex>``, ``array<..>``,
        ``string<move_function_id>``, or for every struct ``string<move_struct_tag_id>``.

    Examples
    --------
    >>> type_words(VectorOf(UInt(64)))
    'array<string<u64>>'
    """
    match of:
        case Bool() | Primitive("bool"):
            return "boolean"
        case UInt(bits) | Int(bits):
            return f"{'integer' if bits <= MAX_NUMBER_BITS else 'string'}<{integer_name(of)}>"
        case Primitive(name) if name[1:].isdigit():
            return f"{'integer' if int(name[1:]) <= MAX_NUMBER_BITS else 'string'}<{name}>"
        case Address() | Primitive():
            return "string<address>"
        case Bytes() | Vector(Primitive("u8")):
            return "string<hex>"
        case VectorOf(element):
            return f"array<{type_words(element)}>"
        case Vector(tag):
            return f"array<{type_words(tag)}>"
        case Reference(tag, _):
            return type_words(tag)
        case Untyped(tag, _) if not isinstance(tag, FunctionType):
            return type_words(tag)  # a vector of unknown structs is still an array
        case FunctionValue() | FunctionType():
            return "string<move_function_id>"
        case _:
            return "string<move_struct_tag_id>"


def move_type(layout: Layout) -> str:  # noqa: PLR0911  # one case per kind of layout
    """Return a layout's type as Move writes it, for messages to people.

    Examples
    --------
    >>> move_type(OptionOf(VectorOf(UInt(64))))
    '0x1::option::Option<vector<u64>>'
    """
    match layout:
        case Bool():
            return "bool"
        case UInt() | Int():
            return integer_name(layout)
        case Address():
            return "address"
        case ObjectOf():
            return "0x1::object::Object"
        case Bytes():
            return "vector<u8>"
        case String():
            return "0x1::string::String"
        case VectorOf(element):
            return f"vector<{move_type(element)}>"
        case OptionOf(element):
            return f"0x1::option::Option<{move_type(element)}>"
        case StructOf(tag) | EnumOf(tag) | FunctionValue(tag) | Untyped(tag):
            return str(tag)
        case _:
            assert_never(layout)


def integer_name(layout: UInt | Int) -> str:
    """Return the Move name of an integer type, such as ``u64``."""
    return f"{'u' if isinstance(layout, UInt) else 'i'}{layout.bits}"


def integer_range(layout: UInt | Int) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type."""
    if isinstance(layout, UInt):
        return 0, (1 << layout.bits) - 1
    half = 1 << (layout.bits - 1)
    return -half, half - 1


def hex_bytes(value: Any) -> bytes:
    """Return the bytes of a ``0x`` string as nodes print it; raise `Mismatch` for anything else."""
    if type(value) is str and value[:2] == "0x":
        try:
            data = bytes.fromhex(value[2:])
        except ValueError:
            data = b""
        # fromhex() skips white space; the comparison of lengths finds that, and an odd digit.
        if len(data) * 2 == len(value) - 2:
            return data
    raise Mismatch(f"expected string<hex>, got {describe(value)}")


def option_items(value: Any, element: Layout) -> list[Any]:
    """Return the list in ``{"vec": [...]}``, of at most one element; raise `Mismatch` for anything else."""
    if type(value) is dict and len(value) == 1:
        items = value.get("vec")
        if type(items) is str and element == UInt(8):
            # A node that treats Option as a plain struct prints its vector<u8> as hex.
            items = list(hex_bytes(items))
        if type(items) is list and len(items) <= 1:
            return items
    raise Mismatch(f'expected an Option, as {{"vec": []}} or {{"vec": [x]}}, got {preview(value)}')


def some_element(value: Any, element: Layout) -> Any:
    """Return the element of an Option that is not empty, from its Python form.

    That form is the element itself. An element that is an Option too is wrapped, as ``{"vec": [element]}``, because its
    None would equal the empty outer Option.
    """
    if not isinstance(element, OptionOf):
        return value
    if type(value) is dict and len(value) == 1 and type(value.get("vec")) is list and len(value["vec"]) == 1:
        return value["vec"][0]
    raise Mismatch(f'expected an Option of an Option, as None or {{"vec": [x]}}, got {preview(value)}')


def preview(value: Any) -> str:
    """Return text that shows an object by its keys and anything else by its kind."""
    if isinstance(value, dict) and value:
        keys = ", ".join(shorten(key, 30) for key in list(value)[:_MAX_NAMES])
        return f"object with {keys}{', ...' if len(value) > _MAX_NAMES else ''}"
    return describe(value)


def unknown_fields(tag: StructTag, value: dict[Any, Any], known: dict[str, Any]) -> str:
    """Return the message for a value with fields that its struct does not have."""
    names = [shorten(key, 30) for key in value if key not in known]
    return f"{tag.base} has no field {', '.join(names[:_MAX_NAMES])}; it has {', '.join(known) or 'none'}"
