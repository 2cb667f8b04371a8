"""Messages of a node about arguments that it refuses, and the checks that have them.

Kinds are named as the node's JSON library names them (``invalid type: number, expected a string``).
"""

from __future__ import annotations

import json
from typing import Any

from toolkit.move._codecs import Mismatch

_MAX_QUOTED = 200  # nodes quote values whole; ours are cut, since a request may have megabytes of them


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
    """Return text in quotes as a node prints it, shortened."""
    return json.dumps(text[:_MAX_QUOTED], ensure_ascii=False)


def expect_text(value: Any) -> str:
    """Return a JSON string; raise the node's message for another kind."""
    if type(value) is str:
        return value
    raise Mismatch(f"invalid type: {json_kind(value)}, expected a string")


def expect_map(value: Any) -> dict[str, Any]:
    """Return a JSON object; raise the node's message for another kind."""
    if type(value) is dict:
        return value
    raise Mismatch("Expecting a JSON Map for struct.")


def member(fields: dict[str, Any], name: str) -> Any:
    """Return a field of a JSON object; raise the node's message if it does not have the field."""
    if name in fields:
        return fields[name]
    raise Mismatch(f"field {name} not found.")
