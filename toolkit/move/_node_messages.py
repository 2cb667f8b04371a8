"""A node's messages about arguments that it rejects, and the checks that raise them.

The wording is that of the node's JSON library for kinds (``invalid type: number, expected a string``) and of its
standard library for digits (``invalid digit found in string``).
"""

from __future__ import annotations

import json
import re
from typing import Any

from toolkit.move._codecs import Mismatch

_HEX = re.compile("[0-9a-fA-F]*")
# Nodes print whole values; ours are cut, since a request may have megabytes of them.
_MAX_DEBUG = 2000
_MAX_DEBUG_DEPTH = 8
_MAX_DEBUG_ITEMS = 100
_MAX_QUOTED = 200
_MAX_PRINTED_BITS = 128  # as wide as the node's JSON library reads integers


def json_debug(value: Any) -> str:
    """Return a JSON value as it appears in a node's messages.

    Examples
    --------
    >>> json_debug({"a": [1, "x", None]})
    'Object {"a": Array [Number(1), String("x"), Null]}'
    """
    text = _debug(value, 0)
    return text if len(text) <= _MAX_DEBUG else f"{text[:_MAX_DEBUG]}..."


def _debug(value: Any, depth: int) -> str:  # noqa: PLR0911  # one return per kind of JSON
    if value is None:
        return "Null"
    if isinstance(value, bool):
        return f"Bool({'true' if value else 'false'})"
    if isinstance(value, str):
        return f"String({json.dumps(value[:_MAX_DEBUG], ensure_ascii=False)})"
    if depth > _MAX_DEBUG_DEPTH:
        return ".."
    if isinstance(value, list):
        return f"Array [{', '.join(_debug(item, depth + 1) for item in value[:_MAX_DEBUG_ITEMS])}]"
    if isinstance(value, dict):
        items = list(value.items())[:_MAX_DEBUG_ITEMS]
        return f"Object {{{', '.join(f'{quoted(key)}: {_debug(item, depth + 1)}' for key, item in items)}}}"
    # Python does not print integers of thousands of digits.
    long = isinstance(value, int) and value.bit_length() > _MAX_PRINTED_BITS
    return f"Number({'number' if long else repr(value)})"


def json_kind(value: Any) -> str:
    """Return the kind of a JSON value as the node's JSON library names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"boolean `{'true' if value else 'false'}`"
    if isinstance(value, str):
        return f"string {quoted(value)}"
    if isinstance(value, list):
        return "sequence"
    return "map" if isinstance(value, dict) else "number"


def quoted(text: str) -> str:
    """Return text, truncated and in quotes, as a node prints it."""
    return json.dumps(text[:_MAX_QUOTED], ensure_ascii=False)


def hex_problem(text: str) -> str:
    """Return the node's message about the first character that is not a hex digit; empty if all are hex digits."""
    match = _HEX.match(text)
    end = match.end() if match else 0
    return "" if end == len(text) else f"Invalid character {text[end]!r} at position {end}"


def expect_text(value: Any) -> str:
    """Return `value` if it is a JSON string; otherwise, raise the node's error."""
    if type(value) is str:
        return value
    raise Mismatch(f"invalid type: {json_kind(value)}, expected a string")


def expect_map(value: Any) -> dict[str, Any]:
    """Return `value` if it is a JSON object; otherwise, raise the node's error."""
    if type(value) is dict:
        return value
    raise Mismatch("Expecting a JSON Map for struct.")


def member(fields: dict[str, Any], name: str) -> Any:
    """Return a field of a JSON object; raise the node's error if the object does not have the field."""
    if name in fields:
        return fields[name]
    raise Mismatch(f"field {name} not found.")
