"""What all kinds of layouts share: their interface, cached codecs, and the exception for a value that does not fit.

The codec of a layout is compiled to closures once and cached, because a sweep decodes thousands of values of the same
layout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import msgspec

from toolkit._present.messages import MAX_NAMED, cut_text, describe, shorten
from toolkit._present.text import plural
from toolkit.errors import InputError, SchemaError
from toolkit.move._bcs import uleb128_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Convert: TypeAlias = Callable[[Any], Any]


class Codec(NamedTuple):
    """The functions that convert the values of one layout. They raise `Mismatch` for a value that does not fit."""

    decode: Convert
    """From JSON, as returned by nodes, to a Python value."""
    encode: Convert
    """From a Python value to JSON as returned by nodes."""
    read: Callable[[bytes, int], tuple[Any, int]]
    """From BCS data and a position to the value and the position after it."""
    write: Callable[[Any, bytearray], None]
    """Appends a value to BCS data."""
    argument: Convert
    """From a caller's argument, in any of several forms, to JSON that a node accepts for the same value."""
    accept: Convert
    """From an argument's JSON to a Python value, if a node accepts it."""


# Layouts whose compiled codec is cached: more than the types that a ledger's events have.
_CACHE_SIZE = 8192
VARIANT = "__variant__"  # key of the variant's name in the value of an enum
MAX_NAMES = 5  # enough to recognise an object


class BaseLayout(msgspec.Struct, frozen=True, cache_hash=True):
    """Base class of layouts, which are kinds of Move types with their codecs.

    Python values are bool, int, str (canonical addresses, strings), bytes, list, and dict with the fields in declared
    order. An Option is None or its element. An Option of an Option is None or ``{"vec": [element]}``, whose element may
    be None. The value of an enum is a dict that starts with ``__variant__``.
    """

    @property
    def move_type(self) -> str:
        """The type in Move syntax, for error messages."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """The name that nodes use in error messages for the JSON form of an argument."""
        return "string<move_struct_tag_id>"

    def parts(self) -> Iterable[BaseLayout]:
        """Return the layouts that this layout contains."""
        return ()

    def closed(self) -> bool:
        """Return whether the structure of every part is known."""
        return all(map(is_closed, self.parts()))

    def unknown(self) -> Iterator[str]:
        """Yield the reason for each part whose structure is not known."""
        for part in self.parts():
            yield from part.unknown()

    def codec(self) -> Codec:
        """Return the functions that convert values; use `codec_of`, which compiles them once per layout."""
        raise NotImplementedError


codec_of: Callable[[BaseLayout], Codec] = lru_cache(_CACHE_SIZE)(methodcaller("codec"))


@lru_cache(maxsize=_CACHE_SIZE)
def is_closed(layout: BaseLayout) -> bool:
    """Return whether every part of a layout is known, so that its values have a BCS form.

    Parameters
    ----------
    layout : Layout
        The layout.

    Returns
    -------
    bool

    Examples
    --------
    >>> from toolkit.move import Bool, Untyped, VectorOf, parse_type_tag
    >>> is_closed(VectorOf(Bool())), is_closed(Untyped(parse_type_tag("0x1::m::S"), "no ABI"))
    (True, False)
    """
    return layout.closed()


class Mismatch(Exception):  # noqa: N818  # internal: never leaves this package
    """The exception for a value that does not fit its layout. Each container that it passes adds a step to its path.

    Parameters
    ----------
    text : str
        Description of the error. ``.steps`` is the path to the value, with the innermost step first.
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

    def error(self, where: str) -> InputError:
        """Return the public exception for a value that the caller passed."""
        return InputError(f"{self.located(where)}: {cut_text(self.text, MAX_NAMED)}")


def raise_schema_error(mismatch: Mismatch, where: str) -> NoReturn:
    """Raise the public exception for a value that does not fit its type.

    Raises
    ------
    SchemaError
        Always.
    """
    place = mismatch.located(where)
    raise SchemaError(f"{place}: {cut_text(mismatch.text, MAX_NAMED)}", column=place) from None


def preview(value: Any) -> str:
    """Describe an object by its keys, and any other value by its kind."""
    if isinstance(value, dict) and value:
        keys = ", ".join(shorten(key, 30) for key in list(value)[:MAX_NAMES])
        return f"object with {keys}{', ...' if len(value) > MAX_NAMES else ''}"
    return describe(value)


# reading BCS ---------------------------------------------------------------------------------------------------------


def read_index(data: bytes, position: int) -> tuple[int, int]:
    """Read a ULEB128 number; return it and the position after it."""
    try:
        return uleb128_at(data, position)
    except SchemaError as error:
        raise Mismatch(str(error)) from None


def read_length(data: bytes, position: int) -> tuple[int, int]:
    """Read a length. The number of bytes left is its upper bound, because an element takes at least one byte."""
    length, after = read_index(data, position)
    if length > len(data) - after:
        raise Mismatch(f"byte {position}: length {length} exceeds the {plural(len(data) - after, 'byte')} left")
    return length, after


def read_flag(data: bytes, position: int, what: str, expected: str) -> bool:
    """Read a byte that is 0 or 1."""
    try:
        byte = data[position]
    except IndexError:
        raise ended(data, position, f"a byte of {what}") from None
    if byte > 1:
        raise Mismatch(f"byte {position}: expected {expected}, got {byte}")
    return byte == 1


def ended(data: bytes, position: int, wanted: str) -> Mismatch:
    """Return the error for data that ends too early."""
    return Mismatch(f"byte {position}: expected {wanted}, but only {max(len(data) - position, 0)} left")
