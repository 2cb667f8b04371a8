"""Fields for arguments, created from layouts, and the conversion of typed text to values and models.

`field` returns the control that the browser draws for a layout. `read` converts the draft of a control to a value and
reports each invalid part; `write` converts a value to a draft. A draft is JSON with text at the leaves, including
integers, since JavaScript rounds numbers. `encode_argument` alone decides which values fit a type, and the model alone
which values it accepts (`validated`). This module defines no widgets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs
from pydantic import ValidationError

from toolkit import move
from toolkit._present.messages import did_you_mean
from toolkit._present.text import plural, visible
from toolkit.client._versions import VersionPlan, as_version, listed_versions, moment, out_of_reach, without_marks
from toolkit.errors import InputError, SchemaError
from toolkit.move._containers import option_items
from toolkit.move._ids import format_hex, parse_hex, wire_address
from toolkit.move._values import encode_argument
from toolkit.widgets._messages import Group, Part, Rows, Switch, Text, blank_of, select

if TYPE_CHECKING:
    from toolkit.client._versions import ResolvedPlan
    from toolkit.move._codecs import BaseLayout
    from toolkit.wire import LedgerState

Model = TypeVar("Model")

MAX_ROWS = 50  # a longer vector is edited as one JSON text
_MAX_PARTS = 400  # a field with more parts is one JSON text; the deepest structs of the framework have fewer
_GROUPED = 7  # integers of this many digits are also shown with separators
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_ADDRESS_DIGITS = 64
_MAX_DIGITS = 100  # more than any integer of Move has, few enough for int()
U64 = move.UInt(64)


@dataclass
class Findings:
    """The findings from reading drafts, by field path (steps joined by dots).

    Attributes
    ----------
    errors : dict of str to str
        Error messages for invalid entries.
    missing : dict of str to str
        What to enter, for required fields that are empty.
    notes : dict of str to str
        The value in another form: the name of an address, grouped digits, or the number of bytes.
    names : mapping of str to str
        Known account names by canonical address.
    ledger : LedgerState or None
        The versions that the node has, if they are known.
    plans : mapping of str to ResolvedPlan
        The versions of times that were typed.
    """

    errors: dict[str, str] = attribute(default_factory=dict)
    missing: dict[str, str] = attribute(default_factory=dict)
    notes: dict[str, str] = attribute(default_factory=dict)
    names: Mapping[str, str] = attribute(default_factory=dict)
    ledger: LedgerState | None = None
    plans: Mapping[str, ResolvedPlan] = attribute(default_factory=dict)

    def address(self, typed: str) -> str | None:
        """Return the canonical address of a typed address or account name; None if it is neither.

        A short address needs ``0x``: without it, ``fee`` is more likely a name that was mistyped than 0xfee.
        """
        typed = typed.strip()
        for address, name in self.names.items():
            if name.lower() == typed.lower():
                return address
        with suppress(InputError):
            if typed.startswith("0x") or len(typed) == _ADDRESS_DIGITS:
                return move.parse_address(typed)
        return None

    @property
    def good(self) -> bool:
        """Whether all entries are valid and none is missing."""
        return not self.errors and not self.missing

    def add(self, other: Findings) -> None:
        """Add the errors, missing entries and notes of other findings; the first error at a path stays."""
        self.errors = other.errors | self.errors
        self.missing |= other.missing
        self.notes |= other.notes


def field_text(error: Exception) -> str:
    """Return the message of an error at its field, whose hint has the accepted forms."""
    return (isinstance(error, InputError) and error.reason) or str(error)


def validated(
    make: Callable[[], Model], found: Findings, at: str, fields: Mapping[str, str] | None = None
) -> Model | None:
    """Return the model created by `make`, or None; rejected values are reported at their fields.

    Parameters
    ----------
    make : callable
        Creates the model.
    found : Findings
        Receives the errors.
    at : str
        Path for errors that concern no field in `fields`.
    fields : mapping of str to str, optional
        Form paths by field name of the model. If a path ends in a dot, the index of the rejected item is appended.
    """
    try:
        return make()
    except (InputError, SchemaError, ValidationError) as error:
        # request models raise InputError with pydantic's error as its context, which has the locations needed here
        cause = error if isinstance(error, ValidationError) else error.__context__
        if not isinstance(cause, ValidationError):
            found.errors[at] = field_text(error)
            return None
        for detail in cause.errors(include_url=False):
            name, place = map(str, (*detail["loc"], "", "")[:2])
            path = (fields or {}).get(name, at)
            # a check of our own raised the error in the context; its message has no prefix
            words = str(detail.get("ctx", {}).get("error", detail["msg"]))
            found.errors.setdefault(path + place * path.endswith("."), words)
        return None


# what the browser draws ----------------------------------------------------------------------------------------------


def field(layout: move.Layout, label: str) -> Part:  # noqa: PLR0911  # one case per kind of layout
    """Return the control for a layout, with a label such as ``Argument 2``."""
    kind = short_type(layout)
    if _parts(layout) > _MAX_PARTS:
        return Text(label, rows=4, mono=True, hint="JSON", type=kind)
    match layout:
        case move.Bool():
            return Switch(label, type=kind)
        case move.UInt() | move.Int() | move.Address() | move.ObjectOf():
            return Text(label, mono=True, hint=_takes(layout), type=kind, names=isinstance(layout, move.Address))
        case move.Bytes():
            form = select("Written as", {"hex": "hex", "text": "text (UTF-8)"}, short=True)
            return Group(label, fields=(("text", Text("Bytes", mono=True)), ("as", form)), inline=True, type=kind)
        case move.String():
            return Text(label, placeholder="may be empty", type=kind)
        case move.OptionOf(element):
            inner = structs.replace(field(element, "Value"), when=("some", (True,)))
            return Group(label, fields=(("some", Switch("has a value")), ("value", inner)), type=kind)
        case move.VectorOf(element):
            item = field(element, "Item")
            return Rows(label, item=item, blank=blank_of(item), type=kind)
        case move.StructOf(_, fields):
            return Group(label, fields=tuple((name, field(inner, name)) for name, inner in fields), type=kind)
    return Text(label, rows=2, mono=True, hint="JSON", type=kind)


def blank(layout: move.Layout) -> Any:
    """Return the draft of an untouched field."""
    return blank_of(field(layout, ""))


def short_type(layout: move.Layout) -> str:
    """Return the Move type of a layout, without the modules of well-known types."""
    return short_name(layout.move_type)


def short_name(kind: object) -> str:
    """Return a Move type as text, without the modules of well-known types."""
    name = str(kind)
    for known in ("0x1::string::", "0x1::option::", "0x1::object::"):
        name = name.replace(known, "")
    return name


def type_word(tag: move.TypeTag) -> str:
    """Return a word for values of a type, which labels an argument without a name."""
    match tag:
        case move.Vector():
            return "Bytes" if str(tag) == "vector<u8>" else "List"
        case move.StructTag():
            return tag.name
        case move.Primitive():
            return {"address": "Address", "bool": "Yes or no"}.get(str(tag), "Number")
    return "Value"


def _takes(layout: move.Layout) -> str:
    """Return the accepted range of an integer, or the accepted form of an address, as a hint."""
    if not isinstance(layout, move.UInt | move.Int):
        return "0x and 1 to 64 hex digits"
    low, high = layout.range
    if layout.bits <= 64:  # noqa: PLR2004  # what fits on a line
        return f"{low:,} to {high:,}"
    power = layout.bits - isinstance(layout, move.Int)
    return f"{'0' if low == 0 else f'-2^{power}'} to 2^{power} - 1"


def _parts(layout: BaseLayout) -> int:
    return 1 + sum(map(_parts, layout.parts()))


# drafts --------------------------------------------------------------------------------------------------------------


def write(layout: move.Layout, value: Any) -> Any:  # noqa: PLR0911  # one case per kind of layout
    """Return the draft for a value.

    Parameters
    ----------
    layout : Layout
    value : JSON value
        In the form that `encode_argument` returns.
    """
    if _parts(layout) > _MAX_PARTS:
        return _dumped(value)
    match layout:
        case move.Bool() | move.String():
            return value
        case move.UInt() | move.Int():
            return str(value)
        case move.Address() | move.ObjectOf():
            return wire_address(value["inner"] if isinstance(value, dict) else value)
        case move.Bytes():
            return {"text": value, "as": "hex"}
        case move.OptionOf(element):
            items = option_items(value, element)
            return {"some": bool(items), "value": write(element, items[0]) if items else blank(element)}
        case move.VectorOf(element):
            if len(value) > MAX_ROWS:
                return {"json": _dumped(value)}
            return [write(element, item) for item in value]
        case move.StructOf(_, fields):
            return {name: write(inner, value[name]) for name, inner in fields}
    return _dumped(value)


def with_short_addresses(layout: move.Layout, value: Any) -> Any:
    """Return an argument whose addresses are in their short form, as the fields show them."""
    match layout, value:
        case (move.Address() | move.ObjectOf(), str()):
            with suppress(InputError):
                return wire_address(move.parse_address(value))
        case (move.VectorOf(element), list() | tuple()):
            return [with_short_addresses(element, one) for one in value]
    return value


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# values --------------------------------------------------------------------------------------------------------------


def read(layout: move.Layout, draft: Any, path: str, found: Findings) -> Any:  # noqa: PLR0911  # one case per kind of layout
    """Return the value of a draft.

    Parameters
    ----------
    layout : Layout
    draft : JSON value
    path : str
        Path of the field, such as ``arguments.1``.
    found : Findings
        Receives a message for each part that is invalid or missing; in that case, do not use the value.

    Returns
    -------
    object
        A value that `encode_argument` accepts: int, str, bool, None, list or dict.
    """
    if _parts(layout) > _MAX_PARTS:
        return read_json(layout, draft, path, found)
    match layout:
        case move.Bool():
            return bool(draft)
        case move.UInt() | move.Int() | move.Address() | move.ObjectOf() | move.String():
            return read_leaf(layout, draft, path, found)
        case move.Bytes():
            return _read_bytes(draft, f"{path}.text", found)
        case move.OptionOf(element):
            value = read(element, draft["value"], f"{path}.value", found) if draft["some"] else None
            wrapped = isinstance(element, move.OptionOf | move.StructOf)  # a struct may have a field "vec", too
            return {"vec": [value]} if draft["some"] and wrapped else value
        case move.VectorOf(element):
            if isinstance(draft, dict):
                return read_json(layout, draft["json"], path, found)
            return [read(element, item, f"{path}.{place}", found) for place, item in enumerate(draft)]
        case move.StructOf(_, fields):
            return {name: read(inner, draft[name], f"{path}.{name}", found) for name, inner in fields}
    return read_json(layout, draft, path, found)


def are_drafts(layouts: Sequence[move.Layout], drafts: Sequence[Any]) -> bool:
    """Return whether drafts, which may come from elsewhere, can be read by these layouts."""
    try:
        for layout, draft in zip(layouts, drafts, strict=True):
            read(layout, draft, "", Findings())
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return True


def read_leaf(layout: move.Layout, draft: str, path: str, found: Findings) -> Any:
    """Return the value of the text typed for an integer, address or string."""
    if isinstance(layout, move.String):
        return draft
    typed = draft.strip()
    if not typed:
        word = "a whole number" if isinstance(layout, move.UInt | move.Int) else "an address"
        accounts = ", or the name of an account" if found.names and isinstance(layout, move.Address) else ""
        found.missing[path] = f"enter {word}: {_takes(layout)}{accounts}"
        return None
    if isinstance(layout, move.UInt | move.Int):
        return _read_integer(layout, typed, path, found)
    address = found.address(typed)
    if address is None:
        meant = did_you_mean(typed, list(found.names.values()))
        hint = f"; {meant}" if meant else ""
        found.errors[path] = f"{_quoted(typed)} is not an address: enter {_takes(layout)}, or choose an account{hint}"
        return typed
    short = wire_address(address)
    if address in found.names:
        found.notes[path] = f"= {found.names[address] if typed.startswith('0x') else short}"
    return typed if typed.startswith("0x") else short


def _quoted(typed: str) -> str:
    """Return a typed text as messages quote it: as it was typed, but for invisible characters."""
    return f"'{visible(typed, 80)}'"


def _read_integer(layout: move.UInt | move.Int, typed: str, path: str, found: Findings) -> int | str:
    """Return the integer that digits, with or without separators, or hex digits write; any other text unchanged."""
    plain = without_marks(typed)
    if not _INTEGER.fullmatch(plain):
        marked = re.search(r"\d[ ,_]\d", typed)
        how = "write spaces and commas only between groups of three" if marked else "enter digits, or 0x and hex digits"
        found.errors[path] = f"{_quoted(typed)} is not a whole number: {how}"
        return typed
    value = int(plain[:_MAX_DIGITS], 16 if "x" in plain.lower() else 10)  # of more digits, as much too large
    low, high = layout.range
    if not low <= value <= high:
        size = "large" if value > high else "small"
        found.errors[path] = f"{visible(plain, 40)} is too {size} for {short_type(layout)}: enter {_takes(layout)}"
    elif len(plain) >= _GROUPED and plain == typed:  # the typed digits are hard to count
        found.notes[path] = f"= {value:,}"
    return value


def read_version(typed: str, found: Findings) -> int | None:
    """Return the ledger version that was typed into the field ``version``; negative versions count from the head."""
    typed = typed.strip()
    plain = without_marks(typed)
    if not plain:
        found.missing["version"] = _VERSION
        return None
    if is_time(typed):
        if typed not in found.plans:
            found.missing["version"] = "the version at this time is looked up when the field is left"
            return None
        version = found.plans[typed].versions[0]
        found.notes["version"] = f"= {version:,}, the last version until then"
        return version
    if not re.fullmatch(r"-?(?!0\d)\d{1,20}", plain):
        found.errors["version"] = f"{_VERSION}, got {_quoted(typed)}"
        return None
    given = int(plain)
    if (words := unreadable(given, found.ledger)) is not None:
        found.errors["version"] = words
        return None
    if given < 0 and found.ledger is not None:
        found.notes["version"] = f"= version {from_start(given, found.ledger):,}"
    return validated(lambda: as_version(given, least=LEAST_VERSION), found, "version")


def from_start(version: int, ledger: LedgerState) -> int:
    """Return the number of a version, of which a negative one counts from the head."""
    return version if version >= 0 else ledger.version + 1 + version


def unreadable(version: int, ledger: LedgerState | None) -> str | None:
    """Return why a node cannot read a version, of which a negative one counts from the head; None if it can."""
    if ledger is None:
        return None
    at = from_start(version, ledger)
    if at < 0:
        return f"version {version:,} is before version 0: the head is version {ledger.version:,}"
    if ledger.oldest_version <= at <= ledger.version:
        return None
    return out_of_reach(at, at, oldest=ledger.oldest_version, head=ledger.version)


def is_time(typed: str) -> bool:
    """Return whether a text is a date, or a date and time."""
    with suppress(InputError):
        return "-" in typed.strip()[1:] and bool(moment(typed))
    return False


def has_times(typed: str) -> bool:
    """Return whether a text has times to look up: listed, or a range's; a plan with periods has too many."""
    with suppress(InputError):
        if (listed := listed_versions(typed)) is not None:
            return not all(isinstance(one, int) for one in listed)
        plan = VersionPlan.parse(typed)
        return plan.every is None and not plan.months and (type(plan.first), type(plan.last)) != (int, int)
    return False


_VERSION = "expected a ledger version, such as 4000, a date, or -1 for the head"
LEAST_VERSION = -(2**64)  # for checks without a node, whose head is not known


def _read_bytes(draft: dict[str, str], path: str, found: Findings) -> str | None:
    typed, is_text = draft["text"], draft["as"] == "text"
    try:
        data = typed.encode("utf-8", "surrogatepass") if is_text else parse_hex(typed.strip() or "0x")
    except InputError as error:
        found.errors[path] = f"{error}, or choose text (UTF-8)"
        return None
    found.notes[path] = plural(len(data), "byte")
    return format_hex(data)


def read_json(layout: move.Layout, draft: str, path: str, found: Findings) -> Any:
    """Return the value of a JSON text and report an error if it does not fit the layout."""
    if not draft.strip():
        found.missing[path] = f"expected {short_type(layout)} as JSON"
        return None
    try:
        value = json.loads(draft)
    except (ValueError, RecursionError) as error:
        found.errors[path] = f"expected {short_type(layout)} as JSON: {error}"
        return None
    try:
        encode_argument(layout, value, where="value")
    except InputError as error:
        found.errors[path] = str(error)
    return value
