"""u64 numbers as the REST API writes them: strings of decimal digits, checked before they become ints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeGuard

from toolkit._present.messages import shorten
from toolkit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["U64_MAX", "is_u64", "parse_u64", "parse_u64_column"]

U64_MAX = 2**64 - 1
_LEADING_ZERO = re.compile(" 0[0-9]")
_CANONICAL = re.compile(r"0|[1-9][0-9]{0,19}")


def is_u64(text: object) -> TypeGuard[str]:
    """Return whether `text` is a string of a u64 in canonical form: digits without sign, spaces or leading zeros."""
    return isinstance(text, str) and _CANONICAL.fullmatch(text) is not None and int(text) <= U64_MAX


def parse_u64(text: object, where: str) -> int:
    """Return the number that a u64 string represents.

    Parameters
    ----------
    text : object
        Value from the response; expected to be a string of digits without sign, spaces or leading zeros.
    where : str
        Path of the value, for the message.

    Returns
    -------
    int

    Raises
    ------
    SchemaError
        If `text` is not such a string, or the number is larger than 2^64 - 1.

    Examples
    --------
    >>> parse_u64("18446744073709551615", "gas_used")
    18446744073709551615
    """
    if is_u64(text):
        return int(text)
    raise SchemaError(f"{where}: expected a u64 as a string of digits, got {shorten(text)}", column=where)


def parse_u64_column(texts: Sequence[str], where: str) -> list[int]:
    """Return the numbers of a column of u64 strings.

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
        If a text is not a canonical u64; the message and ``.rows`` name the first such row.
    """
    if not texts:
        return []
    joined = f" {' '.join(texts)}"
    digits = joined.replace(" ", "")
    # One check of the joined text is much faster than a regular expression per row: only ASCII digits, and no number
    # with a leading zero. It misses an empty text and a space inside a text; those fail in int() or in the length
    # comparison, and the loop below finds the row.
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
