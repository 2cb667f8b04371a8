"""Fields of a form, made from layouts: what the browser shows, the draft that is typed, and the value it stands for.

Four functions describe a layout: `field` (a JSON object that the browser draws), `blank` (the draft of an untouched
field), `read` (draft to value, with a sentence for each part that does not fit) and `write` (value to draft). A draft
is JSON: text at the leaves, every integer included, since JavaScript rounds numbers. What fits a type is decided by
`encode_argument` alone. Holds no widget.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import TYPE_CHECKING, Any

from toolkit._present.messages import shorten
from toolkit.errors import InputError
from toolkit.move import (
    Address,
    Bool,
    Bytes,
    EnumOf,
    Int,
    Layout,
    ObjectOf,
    OptionOf,
    String,
    StructOf,
    UInt,
    VectorOf,
    parse_address,
)
from toolkit.move._containers import option_items
from toolkit.move._ids import format_hex, parse_hex, wire_address
from toolkit.move._values import encode_argument

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_ROWS = 50
"""A longer vector is shown as one JSON text."""
_MAX_PARTS = 400
"""A field with more parts is shown as one JSON text; the deepest structs of the framework have fewer."""
_GROUPED = 7
"""Integers of this many digits are also shown with separators."""
_VARIANT = "variant"
"""Key of the chosen variant in the draft of an enum; names of variants start with an upper-case letter."""
_INTEGER = re.compile(r"(-?)(?:0[xX]([0-9a-fA-F]+)|([0-9]+))")
_MAX_DIGITS = 100


@dataclass
class Findings:
    """What was found while drafts were read, by path: steps joined by dots.

    Attributes
    ----------
    errors : dict of str to str
        Sentences about what does not fit.
    missing : dict of str to str
        What to enter, for required fields that are empty.
    notes : dict of str to str
        The value in another form: the canonical address with its name, digits in groups, the number of bytes.
    names : mapping of str to str
        Names of addresses that are known, by canonical address.
    """

    errors: dict[str, str] = attribute(default_factory=dict)
    missing: dict[str, str] = attribute(default_factory=dict)
    notes: dict[str, str] = attribute(default_factory=dict)
    names: Mapping[str, str] = attribute(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether everything that was read has a value."""
        return not self.errors and not self.missing


# what the browser draws ----------------------------------------------------------------------------------------------


def text(label: str, **about: Any) -> dict[str, Any]:
    """Return a text field, the kind that is not named: most fields are."""
    return {"label": label} | about


def switch(label: str, **about: Any) -> dict[str, Any]:
    """Return a checkbox."""
    return {"kind": "switch", "label": label} | about


def select(label: str, options: dict[str, str], **about: Any) -> dict[str, Any]:
    """Return a choice of one value; `options` maps values to words."""
    return {"kind": "select", "label": label, "options": [list(pair) for pair in options.items()]} | about


def actions(label: str, do: str, buttons: list[tuple[str, dict[str, Any]]], **about: Any) -> dict[str, Any]:
    """Return buttons that send the message `do`, each with its text and further content of the message."""
    return {"kind": "actions", "label": label, "do": do, "buttons": [list(one) for one in buttons]} | about


def group(label: str, fields: list[tuple[str | int, dict[str, Any]]], **about: Any) -> dict[str, Any]:
    """Return a group of fields by the key of their drafts; an empty key stands for the draft of the group itself."""
    return {"kind": "group", "label": label, "fields": [list(pair) for pair in fields]} | about


def field(layout: Layout, label: str) -> dict[str, Any]:  # noqa: C901, PLR0911  # one case per kind of layout
    """Return the field of a layout.

    Parameters
    ----------
    layout : Layout
    label : str
        Such as ``Argument 2``.

    Returns
    -------
    dict
        JSON: ``kind`` is switch, select, group or rows, absent for text; ``type`` the Move type.
    """
    about: dict[str, Any] = {"type": short_type(layout)}
    if _parts(layout) > _MAX_PARTS:
        return text(label, rows=4, mono=True, hint="JSON", **about)
    match layout:
        case Bool():
            return switch(label, **about)
        case UInt() | Int():
            return text(label, mono=True, hint=_range_words(layout), **about)
        case Address() | ObjectOf():
            return text(label, mono=True, hint="0x and 1 to 64 hex digits", **about)
        case Bytes():
            form = select("Written as", {"hex": "hex", "text": "text (UTF-8)"}, short=True)
            return group(label, [("text", text("Bytes", mono=True)), ("as", form)], inline=True, **about)
        case String():
            return text(label, hint="may be empty", **about)
        case OptionOf(element):
            has = switch("has a value")
            inner = field(element, "Value") | {"when": ["some", [True]]}
            return group(label, [("some", has), ("value", inner)], **about)
        case VectorOf(element):
            item = field(element, "Item")
            return {"kind": "rows", "label": label, "item": item, "blank": blank(element)} | about
        case StructOf(_, fields):
            return group(label, [(name, field(inner, name)) for name, inner in fields], **about)
        case EnumOf(_, variants):
            chosen = select("Variant", {name: name for name, _ in variants})
            drafts: list[tuple[str | int, dict[str, Any]]] = [
                (name, field(StructOf(layout.tag, fields), name) | {"when": [_VARIANT, [name]]})
                for name, fields in variants
                if fields
            ]
            return group(label, [(_VARIANT, chosen), *drafts], **about)
    return text(label, rows=2, mono=True, hint="JSON", **about)


def short_type(layout: Layout) -> str:
    """Return the Move type of a layout, without the module of the types that everybody knows."""
    name = layout.move_type
    for known in ("0x1::string::", "0x1::option::", "0x1::object::"):
        name = name.replace(known, "")
    return name


def _range_words(layout: UInt | Int) -> str:
    low, high = layout.range
    if layout.bits <= 64:  # noqa: PLR2004  # what fits on a line
        return f"{low:,} to {high:,}"
    power = layout.bits - isinstance(layout, Int)
    return f"{'0' if low == 0 else f'-2^{power}'} to 2^{power} - 1"


def _parts(layout: Layout) -> int:
    match layout:
        case VectorOf(element) | OptionOf(element):
            return 1 + _parts(element)
        case StructOf(_, fields):
            return 1 + sum(_parts(inner) for _, inner in fields)
        case EnumOf(_, variants):
            return 1 + sum(_parts(inner) for _, fields in variants for _, inner in fields)
    return 1


# drafts --------------------------------------------------------------------------------------------------------------


def blank(layout: Layout) -> Any:  # noqa: PLR0911  # one case per kind of layout
    """Return the draft of a field that nobody has touched."""
    if _parts(layout) > _MAX_PARTS:
        return ""
    match layout:
        case Bool():
            return False
        case Bytes():
            return {"text": "", "as": "hex"}
        case OptionOf(element):
            return {"some": False, "value": blank(element)}
        case VectorOf():
            return []
        case StructOf(_, fields):
            return {name: blank(inner) for name, inner in fields}
        case EnumOf(tag, variants):
            drafts = {name: blank(StructOf(tag, fields)) for name, fields in variants}
            return {_VARIANT: variants[0][0] if variants else ""} | drafts
    return ""


def write(layout: Layout, value: Any) -> Any:  # noqa: C901, PLR0911  # one case per kind of layout
    """Return the draft of a value.

    Parameters
    ----------
    layout : Layout
    value : JSON value
        As `encode_argument` returns it.
    """
    if _parts(layout) > _MAX_PARTS:
        return _dumped(value)
    match layout:
        case Bool():
            return value
        case UInt() | Int():
            return str(value)
        case Address() | ObjectOf():
            return wire_address(value["inner"] if isinstance(value, dict) else value)
        case Bytes():
            return {"text": value, "as": "hex"}
        case String():
            return value
        case OptionOf(element):
            items = option_items(value, element)
            return {"some": bool(items), "value": write(element, items[0]) if items else blank(element)}
        case VectorOf(element):
            if len(value) > MAX_ROWS:
                return {"json": _dumped(value)}
            return [write(element, item) for item in value]
        case StructOf(_, fields):
            return {name: write(inner, value[name]) for name, inner in fields}
        case EnumOf(tag, variants):
            (name, fields), *_ = value.items()
            return blank(layout) | {_VARIANT: name, name: write(StructOf(tag, dict(variants)[name]), fields)}
    return _dumped(value)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# values --------------------------------------------------------------------------------------------------------------


def read(layout: Layout, draft: Any, path: str, found: Findings) -> Any:
    """Return the value of a draft.

    Parameters
    ----------
    layout : Layout
    draft : JSON value
    path : str
        Of the field, such as ``arguments.1``.
    found : Findings
        Receives a sentence for each part that does not fit or is missing; the value cannot be used then.

    Returns
    -------
    object
        A value that `encode_argument` accepts: int, str, bool, None, list or dict.
    """
    try:
        return _read(layout, draft, path, found)
    except (KeyError, TypeError, AttributeError, IndexError):  # from a browser with an older form
        found.errors[path] = f"expected a draft of {short_type(layout)}; open the form again"
        return None


def _read(layout: Layout, draft: Any, path: str, found: Findings) -> Any:  # noqa: PLR0911  # one case per kind of layout
    if _parts(layout) > _MAX_PARTS:
        return read_json(layout, draft, path, found)
    match layout:
        case Bool():
            return bool(draft)
        case UInt() | Int() | Address() | ObjectOf() | String():
            return read_leaf(layout, draft, path, found)
        case Bytes():
            return _read_bytes(draft, f"{path}.text", found)
        case OptionOf(element):
            return _read_option(element, draft, path, found)
        case VectorOf(element):
            if isinstance(draft, dict):
                return read_json(layout, draft["json"], path, found)
            return [_read(element, item, f"{path}.{place}", found) for place, item in enumerate(draft)]
        case StructOf(_, fields):
            return {name: _read(inner, draft[name], f"{path}.{name}", found) for name, inner in fields}
        case EnumOf(tag, variants):
            name = draft[_VARIANT]
            return {name: _read(StructOf(tag, dict(variants)[name]), draft[name], f"{path}.{name}", found)}
    return read_json(layout, draft, path, found)


def _read_option(element: Layout, draft: dict[str, Any], path: str, found: Findings) -> Any:
    """Return None or the element; an Option of an Option is in the form ``{"vec": [element]}``."""
    if not draft["some"]:
        return None
    value = _read(element, draft["value"], f"{path}.value", found)
    return {"vec": [value]} if isinstance(element, OptionOf) else value


def read_leaf(layout: Layout, draft: str, path: str, found: Findings) -> Any:
    """Return the value of a text."""
    if isinstance(layout, String):
        return draft
    typed = draft.strip()
    if not typed:
        hint = _range_words(layout) if isinstance(layout, UInt | Int) else "0x and 1 to 64 hex digits"
        found.missing[path] = f"expected {short_type(layout)}: {hint}"
        return None
    value = _integer(typed) if isinstance(layout, UInt | Int) else typed
    if isinstance(layout, UInt | Int) and isinstance(value, str):
        found.errors[path] = f"expected {short_type(layout)}: digits, or 0x and hex digits, got {shorten(value)}"
        return None
    if _fits(layout, value, path, found):
        if isinstance(value, int) and len(str(abs(value))) >= _GROUPED:
            found.notes[path] = f"= {value:,}"
        elif isinstance(value, str):
            address = parse_address(value)
            shown = [] if address == value else [address]
            if address in found.names:
                shown.append(found.names[address])
            if shown:
                found.notes[path] = f"= {', '.join(shown)}"
    return value


def _integer(typed: str) -> int | str:
    """Return the integer of digits with or without separators, or of hex; the text itself if it is neither."""
    plain = typed.replace("_", "").replace(",", "")
    match = _INTEGER.fullmatch(plain) if len(plain) <= _MAX_DIGITS else None
    if match is None:
        return typed
    sign, digits, decimal = match.groups()
    number = int(digits, 16) if digits else int(decimal)
    return -number if sign else number


def _read_bytes(draft: dict[str, str], path: str, found: Findings) -> str | None:
    if draft["as"] == "text":
        data = draft["text"].encode("utf-8", "surrogatepass")
    else:
        typed = draft["text"].strip()
        try:
            data = parse_hex(typed or "0x")
        except InputError as error:
            found.errors[path] = str(error)
            return None
    found.notes[path] = f"{len(data):,} byte{'' if len(data) == 1 else 's'}"
    return format_hex(data)


def read_json(layout: Layout, draft: str, path: str, found: Findings) -> Any:
    """Return the value of a JSON text, if it fits the layout."""
    if not draft.strip():
        found.missing[path] = f"expected {short_type(layout)} as JSON"
        return None
    try:
        value = json.loads(draft)
    except (ValueError, RecursionError) as error:
        found.errors[path] = f"expected {short_type(layout)} as JSON: {error}"
        return None
    _fits(layout, value, path, found)
    return value


def _fits(layout: Layout, value: Any, path: str, found: Findings) -> bool:
    try:
        encode_argument(layout, value, where="value")
    except InputError as error:
        found.errors[path] = str(error).removeprefix("value").removeprefix(": ")
        return False
    return True
