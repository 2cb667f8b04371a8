"""Parsing of JSON text from a node, and of u64 numbers, which are strings of decimal digits in JSON.

Hostile, malformed and deeply nested input raises SchemaError and no other exception.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import msgspec

from toolkit._present.messages import escape, shorten
from toolkit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence


_T = TypeVar("_T")

# Deepest nesting of arrays and objects. A Move value has at most 128 levels, some of which are two levels in JSON.
MAX_DEPTH = 256

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Any)
_RAW_LIST: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_INTS: msgspec.json.Decoder[list[int]] = msgspec.json.Decoder(list[int])
_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeError, RecursionError)
_ESCAPE = re.compile(
    rb"(?s)(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
# The end of a string is optional, so that a text without one is searched once and not once per quote.
_TOKEN = re.compile(rb'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]')


def parse_json(text: bytes | str | msgspec.Raw, what: str) -> Any:
    r"""Parse JSON of any shape.

    Parameters
    ----------
    text : bytes, str or msgspec.Raw
        The JSON.
    what : str
        Name of the text in error messages, such as ``resource 0x1::m::R``.

    Returns
    -------
    object
        The parsed value. A lone surrogate (``"\ud800"``), which cannot be encoded as UTF-8, is replaced by U+FFFD.

    Raises
    ------
    SchemaError
        If the text is not JSON or not UTF-8, nests deeper than `MAX_DEPTH`, or contains a number that is too long.

    Examples
    --------
    >>> parse_json(b'{"a": [1, "x"]}', "example")
    {'a': [1, 'x']}
    """
    body = text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)
    try:
        value = decode_with(_ANY, body)
    except SchemaError as error:
        raise SchemaError(f"{what}: the response is not JSON ({error}); it starts with {body[:60]!r}") from None
    if len(body) > 2 * MAX_DEPTH and body.count(b"[") + body.count(b"{") > MAX_DEPTH and _is_deep(value):
        raise SchemaError(
            f"{what}: expected at most {MAX_DEPTH} levels of nesting, got more; it starts with {body[:60]!r}"
        )
    return value


def decode_with(decoder: msgspec.json.Decoder[_T], text: bytes | msgspec.Raw) -> _T:
    """Decode JSON of a known shape; lone surrogates are replaced by U+FFFD.

    Raises
    ------
    SchemaError
        If the text is not JSON, not UTF-8, nested too deeply, or has another shape.
    """
    try:
        return decoder.decode(text)
    except _DECODE_ERRORS as error:
        problem = error
    body = bytes(text)
    cleaned = body
    if rb"\ud" in body.lower():
        cleaned = _ESCAPE.sub(lambda found: rb"\ufffd" if found["lone"] else found[0], body)
    if cleaned != body:
        try:
            return decoder.decode(cleaned)
        except _DECODE_ERRORS as error:
            problem = error
    raise SchemaError(escape(problem)) from problem


def elements(body: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """Split a JSON array into its elements without parsing them; a malformed element does not affect the others.

    Raises
    ------
    SchemaError
        If the text is not an array, or its brackets and strings do not match.

    Examples
    --------
    >>> [bytes(element) for element in elements(b'[1, tru, {"a": 2}]')]
    [b'1', b'tru', b'{"a": 2}']
    """
    try:
        return _RAW_LIST.decode(body)
    except _DECODE_ERRORS as error:
        problem = error
    text = bytes(body).strip()  # an element may be malformed, so the elements are found by brackets and strings only
    parts: list[msgspec.Raw] = []
    start, depth = 1, 0
    for token in _TOKEN.finditer(text):
        mark = token[0][:1]
        if mark in b"[{":
            depth += 1
        elif mark in b"]}":
            depth -= 1
        if (mark == b"," and depth == 1) or depth == 0:
            parts.append(msgspec.Raw(text[start : token.start()].strip()))
            start = token.end()
        if depth == 0:
            break
    if text[:1] != b"[" or depth or start != len(text):
        raise SchemaError(escape(problem)) from problem
    return parts


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(MAX_DEPTH):
        inner = (child for one in level for child in (one.values() if isinstance(one, dict) else one))
        level = [child for child in inner if isinstance(child, list | dict)]
        if not level:
            return False
    return True


U64_MAX = 2**64 - 1
_CANONICAL = re.compile(r"0|[1-9][0-9]{0,19}")


def is_u64(text: object) -> TypeGuard[str]:
    """Return whether `text` is a canonical u64 string: digits without a sign, spaces or leading zeros."""
    return isinstance(text, str) and _CANONICAL.fullmatch(text) is not None and int(text) <= U64_MAX


def parse_u64(text: object, where: str) -> int:
    """Parse a u64 string.

    Parameters
    ----------
    text : object
        Value from the response, expected to be a string of digits without a sign, spaces or leading zeros.
    where : str
        Path of the value, for error messages.

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
    """Parse a column of u64 strings.

    Parameters
    ----------
    texts : sequence of str, shape (n,)
        Decimal strings.
    where : str
        Name of the column, for error messages.

    Returns
    -------
    list of int, shape (n,)

    Raises
    ------
    SchemaError
        If a string is not a canonical u64. The message and ``.rows`` state the first such row.
    """
    if not texts:
        return []
    joined = ",".join(texts)
    # JSON numbers of digits only are canonical, and a text with a comma would be more than one. One decoding of the
    # joined texts is much faster than a regular expression per row; if it fails, the loop below finds the row.
    if joined.isascii() and joined.replace(",", "").isdigit():
        with suppress(msgspec.MsgspecError):
            values = _INTS.decode(f"[{joined}]")
            if len(values) == len(texts) and max(values) <= U64_MAX:
                return values
    return [_parse_row(text, where, row) for row, text in enumerate(texts)]


def _parse_row(text: str, where: str, row: int) -> int:
    try:
        return parse_u64(text, where)
    except SchemaError as error:
        raise SchemaError(f"row {row}: {error}", column=where, rows=(row,)) from None
