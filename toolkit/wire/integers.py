"""u64 as the wire has it, decimal text: checked digit by digit before it becomes a number; texts for messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeGuard

from toolkit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["U64_MAX", "clip", "is_u64", "parse_u64", "parse_u64_column", "shorten"]

U64_MAX = 2**64 - 1
_LEADING_ZERO = re.compile(" 0[0-9]")
_CANONICAL = re.compile(r"0|[1-9][0-9]{0,19}")
_SHOWN = 60
_CLIPPED = 200


def shorten(value: object, *, length: int = _SHOWN) -> str:
    """Return a repr that is safe in a message: control characters escaped, cut to `length` characters."""
    if isinstance(value, str | bytes | list | tuple):
        value = value[: length + 1]  # no need to spell out a megabyte
    try:
        text = ascii(value)
    except (ValueError, RecursionError):  # an int of thousands of digits, or nested past all bounds
        text = f"a {type(value).__name__}"
    return text if len(text) <= length else text[: length - 3] + "..."


def clip(error: Exception) -> str:
    """Return a library's error text, which may quote hostile text, escaped and cut."""
    return ascii(str(error))[1:-1][:_CLIPPED]


def is_u64(text: object) -> TypeGuard[str]:
    """Return whether `text` is a u64 in the wire's only spelling."""
    return isinstance(text, str) and _CANONICAL.fullmatch(text) is not None and int(text) <= U64_MAX


def parse_u64(text: object, where: str) -> int:
    """Return the number a u64 string stands for.

    Parameters
    ----------
    text : object
        What the answer holds; a u64 is a string of decimal digits without sign, spaces or leading zeros.
    where : str
        Path of the value, for the message.

    Returns
    -------
    int

    Raises
    ------
    SchemaError
        If it is no such string, or past 2^64 - 1.
    """
    if is_u64(text):
        return int(text)
    raise SchemaError(f"{where}: expected a u64 as a string of digits, got {shorten(text)}", column=where)


def parse_u64_column(texts: Sequence[str], where: str) -> list[int]:
    """Return the numbers of a whole column of u64 strings.

    Parameters
    ----------
    texts : sequence of str, shape (n,)
        Decimal strings.
    where : str
        Name of the column, for the message.

    Returns
    -------
    list of int, shape (n,)

    Raises
    ------
    SchemaError
        If one of them is no canonical u64, naming the first rows that fail.
    """
    if not texts:
        return []
    joined = f" {' '.join(texts)}"
    digits = joined.replace(" ", "")
    # A few looks at the joined text stand for one at each: only ASCII digits, and no number that starts with a zero.
    # What hides from them (an empty text, a space inside one) int() refuses, or the row by row check below.
    if digits.isascii() and digits.isdigit() and not _LEADING_ZERO.search(joined):
        try:
            values = list(map(int, texts))
        except ValueError:
            values = []
        if values and max(values) <= U64_MAX and len(joined) == len(digits) + len(texts):
            return values
    return [_parse_row(text, where, row) for row, text in enumerate(texts)]


def _parse_row(text: str, where: str, row: int) -> int:
    try:
        return parse_u64(text, where)
    except SchemaError as error:
        raise SchemaError(f"row {row}: {error}", column=where, rows=(row,)) from None
