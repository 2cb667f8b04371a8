"""Text for messages: a hostile or huge value shown short and escaped."""

from __future__ import annotations

from typing import Any

__all__ = ["kind_of", "shown"]

_LIMIT = 80
_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    bytes: "bytes",
    list: "array",
    tuple: "array",
    dict: "object",
}


def shown(value: Any, limit: int = _LIMIT) -> str:
    """Return `value` escaped for a message, at most about `limit` characters long."""
    if isinstance(value, str):
        text = ascii(value[:limit])
        return f"{text[:limit]}... ({len(value)} characters)" if len(value) > limit else text
    if isinstance(value, (bytes, bytearray, memoryview)):
        head = bytes(value[: limit // 2]).hex()
        return f"0x{head}... ({len(value)} bytes)" if len(value) > limit // 2 else f"0x{head}"
    if isinstance(value, int) and value.bit_length() > 4 * limit:
        # Python refuses to print integers of more than some thousand digits.
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (list, tuple, dict)):
        return f"{type(value).__name__} of {len(value)}"
    text = ascii(value) if isinstance(value, (int, float, type(None))) else type(value).__name__
    return f"{text[:limit]}..." if len(text) > limit else text


def kind_of(value: Any) -> str:
    """Name the JSON kind of `value` and show it: ``number 5``, ``string 'x'``, ``null``."""
    if value is None:
        return "null"
    kind = _KINDS.get(type(value))
    if kind is None:
        return f"a Python {type(value).__name__}"
    if isinstance(value, bool):
        return "boolean true" if value else "boolean false"
    if isinstance(value, (list, tuple, dict)):
        return f"{kind} of {len(value)}"
    return f"{kind} {shown(value)}"
