"""Frames for reading: tables with short addresses, grouped digits and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from textwrap import fill
from typing import Any

import pandas as pd
import pyarrow as pa
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

from toolkit._present.messages import did_you_mean
from toolkit._present.notebook import literal
from toolkit._present.tables import MAX_FACT, fact_text, fitted_columns, html_table, terminal_width, text_table
from toolkit._present.text import ELLIPSIS, distinct_addresses, listed, plural, visible
from toolkit.errors import InputError

# Characters of a column name and of a cell: a row with longer ones does not fit a screen.
_MAX_NAME = 60
_MAX_NAMED = 5  # columns without values, and columns that there is no room for
_MAX_HTML = 20  # columns of a table in HTML, as many as pandas shows
_MAX_UNIT = 20  # characters of a line of a unit, which is no reason for a wide column
# Characters of digests, of which the beginning is enough to compare rows, and of sentences that are read whole.
_LIMITS = {"fingerprint": 13, "value_digest": 13, "explanation": 2_000}
# What frames are about, by kind: a frame with all of these columns begins with them, because terminals have no room for
# the last ones. The first kind that applies counts.
FIRST = {
    "comparison": ("label", "kind", "gas_before", "gas_after", "change_percent", "cause", "change", "explanation"),
    "steps": (
        *("label", "part", "gas_before", "gas_after", "cause", "version_after", "stratum", "change_percent", "way_gas"),
        *("uncertain", "explanation", "change", "time"),
    ),
    "levels": ("label", "gas_first", "gas_last", "version_first", "stratum", "way_gas", "count"),
    "growth": ("label", "stratum", "part", "per_1000_versions"),
    "mix": ("label", "stratum", "way_gas", "share_before", "share_after"),
    "timeline": ("ledger_version", "time", "kind", "what"),
    "observations": ("label", "ledger_version", "gas_used", "success", "error_code", "source", "ledger_timestamp"),
    "forecast": ("label", "part", "now", "forecast", "change", "unit", "outcome"),
    "paired calls": ("label", "transactions", "cheaper", "same", "dearer", "fails_now"),
    "pairs": ("ledger_version", "pair", "gas_before", "gas_after", "change", "changed_outcome"),
    "replays": ("ledger_version", "function", "verified", "gas_used", "changed_gas_used", "changed_outcome"),
    "transactions": (
        "ledger_version",
        "success",
        "error_code",
        "abort_name",
        "gas_used",
        "function",
        "sender",
        "timestamp",
        "arguments",
        "error_message",
        *("execution_gas_units", "io_gas_units", "storage_fee_octas"),
    ),
    "values of a table": ("key", "value", "ledger_version", "presence", "error_code"),
    "items written": ("ledger_version", "key", "value", "deleted"),
    "failures": ("function", "abort_name", "count", "abort_code", "abort_reason"),
    "state diffs": ("ledger_version", "type", "address", "resource_type", "fields_changed"),
    "state diff": ("type", "address", "resource_type", "fields_changed"),
    "state changes": ("ledger_version", "type", "address", "resource_type", "data"),
    "balance changes": ("ledger_version", "owner", "asset", "change", "balance_after", "ledger_timestamp"),
    "balances": ("owner", "asset", "change", "balance_after"),
    "balances of an account": ("symbol", "amount", "balance", "asset"),
    "gas of a model": ("function", "category", "operation", "internal_gas", "times"),
    "descriptions": ("column", "type", "unit", "meaning"),
}
# The last of the first columns that always have room, by kind: with fewer, rows look the same or say nothing.
_NEEDED_TO = {"steps": "version_after", "levels": "stratum"}
# What a table shows in a column for rows without a value in it, from which other column: the first one with a value.
_INSTEAD = {
    "resource_type": {"module": "module ", "handle": "table "},
    "function": {"type": ""},
    "abort_name": {"abort_reason": "", "vm_status": ""},
}
# Identifiers, and what repeats other columns.
_LAST = (
    *("version_before", "exact", "head_version", "chain_id", "chain_success", "status", "vm_status", "vm_error_code"),
    "hash",
    *("state_key_hash", "account_address", "creation_number", "sequence_number", "max_gas_amount"),
    *("expiration_timestamp_secs", "payload_type", "payload", "payload_bytes", "orderless", "signature_type", "module"),
    *("node", "node_build", "source", "model", "fingerprint", "value_digest", "observed_at", "toolkit_version"),
    *("nulls", "typing"),
)


@dataclass(frozen=True, repr=False)
class ShownFrame:
    """A frame that `show` formatted as a table for reading, in a notebook or as text.

    Attributes
    ----------
    columns : tuple of str
    rows : tuple of tuple of str
        The cells; a row of ellipses replaces the omitted rows.
    counts : str
        Number of rows, and how many of them failed or are uncertain.
    why : str
        The column that says why they did or are; empty if none did or is.
    empty : tuple of str
        The columns omitted because they are empty.
    numbers : frozenset of int
        Positions of the columns of numbers, which are right-aligned.
    facts : tuple of dict
        Unit and meaning of each column, if they are known. Notebooks display them.
    needed : int
        Number of leading columns that are always displayed: all, if the caller chose them.
    one_line : frozenset of int
        Positions of columns that HTML does not wrap: they are not what the frame is about.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    counts: str
    why: str = ""
    empty: tuple[str, ...] = ()
    numbers: frozenset[int] = frozenset()
    facts: tuple[dict[str, str], ...] = ()
    needed: int = 1
    one_line: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return self.fitted(terminal_width())

    def fitted(self, width: int) -> str:
        """Return the table as text of so many characters a line, without the columns that do not fit."""
        columns = [*zip(self.columns, *self.rows, strict=True)]
        kept = fitted_columns(columns, width, right=self.numbers, needed=self.needed)
        note = self._note([name for place, name in enumerate(self.columns) if place not in kept])
        right = {n for n, place in enumerate(kept) if place in self.numbers}
        return "\n".join([*text_table(zip(*kept.values(), strict=True), right=right), fill(f"[{note}]", width)])

    @property
    def note(self) -> str:
        """The counts, and the columns omitted because they are empty."""
        return self._note(())

    def _note(self, rest: Sequence[str]) -> str:
        """Return the note of a table without some columns, which refers only to columns that the table has."""
        see = f", see {self.why}" if self.why in self.columns and self.why not in rest else ""
        left_out = {"without values": self.empty, "not shown": rest}
        return self.counts + see + "".join(f"; {what}: {listed(x, _MAX_NAMED)}" for what, x in left_out.items() if x)

    def _repr_html_(self) -> str:
        most = max(self.needed, _MAX_HTML)
        rows = [[escape(cell) for cell in row[:most]] for row in self.rows]
        heads = [_head(name, facts) for name, facts in zip(self.columns[:most], self.facts[:most], strict=True)]
        table = html_table(rows, head=heads, right=self.numbers, one_line=self.one_line)
        return literal(f'{table}<div style="opacity:.7">{escape(self._note(self.columns[most:]))}</div>')


def _head(name: str, facts: dict[str, str]) -> str:
    """Return the HTML of a column's name, with its unit below and its meaning on hover."""
    unit = facts.get("unit", "")
    wrapped = f";display:inline-block;white-space:normal;max-width:{_MAX_UNIT}ch" if len(unit) > _MAX_UNIT else ""
    below = f'<br><span style="font-weight:normal;opacity:.7{wrapped}">{escape(unit)}</span>' if unit else ""
    text = escape(name)
    return (f'<span title="{escape(facts["meaning"])}">{text}</span>' if facts.get("meaning") else text) + below


def show(frame: pd.DataFrame, *, rows: int = 20, columns: Sequence[str] | None = None) -> ShownFrame:
    """Format a frame as a table for reading.

    Addresses are without leading zeros, such as ``0xb0b``; long ones are shortened to as many leading and trailing
    digits as are needed to distinguish the addresses in the table. Numbers have thousands separators; codes and chain
    ids have none. The most important columns come first, and empty columns are omitted. Named index levels become
    columns. A transaction without a function shows its type there, a failed one without an abort name its reason or
    status, and a state change without a resource type its table or module. The frame itself is not modified; to find
    the rows of a short address, use `involving` or `address`. Notebooks and IPython display the toolkit's frames in
    this way; see `set_display`.

    Parameters
    ----------
    frame : DataFrame
    rows : int, default 20
        Maximum number of rows to show, taken from both ends of the frame; a line of ellipses stands for the others,
        unless it would stand for only one.
    columns : sequence of str, optional
        The columns to show, in this order; by default, all columns that are not empty.

    Returns
    -------
    ShownFrame
        Displayed as HTML in notebooks, and as text by ``print``. Of more than 20 columns, HTML has the first ones, and
        text in a terminal has those that fit; columns that you choose are all displayed.

    Raises
    ------
    InputError
        If `frame` is not a DataFrame, `rows` is not an int of at least 2, or a column does not exist.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ledger_version": [1234, 1235], "octas": [1234567, 5], "note": [None, None]})
    >>> show(frame)
    ledger_version      octas
             1,234  1,234,567
             1,235          5
    [2 rows; without values: note]
    """
    given: Any = frame
    if not isinstance(given, pd.DataFrame):
        raise InputError(f"frame must be a DataFrame, got {type(given).__name__}")
    most: object = rows
    if isinstance(most, bool) or not isinstance(most, int) or most < len((ELLIPSIS, ELLIPSIS)):
        raise InputError(f"rows must be an int of at least 2, got {visible(repr(rows), 60)}")
    facts = frame.attrs.get("toolkit", {})
    levels = frame.index.nlevels if any(name is not None for name in frame.index.names) else 0
    levels = levels or int(not is_integer_dtype(frame.index.dtype))
    if levels:
        frame = frame.reset_index(allow_duplicates=True)
    part = frame if len(frame) <= rows + 1 else pd.concat([frame.iloc[: (rows + 1) // 2], frame.iloc[-(rows // 2) :]])
    part = _filled(part)
    places = [*range(levels), *(place for place in _places(frame, columns) if place >= levels)]
    decoded = {place for place in places if facts.get(frame.columns[place], {}).get("typing", "schema") != "schema"}
    empty = [
        place
        for place in places
        if columns is None
        and len(frame)
        and all(_is_empty(one.iloc[:, place], decoded=place in decoded) for one in (part, frame))
    ]
    places = [place for place in places if place not in empty]
    labels: list[Any] = frame.columns.tolist()
    flat = [" ".join(map(str, label)).strip() if isinstance(label, tuple) else label for label in labels]
    names = [visible(label, _MAX_NAME) for label in flat]
    values = [part.iloc[:, place].tolist() for place in places]
    texts = [
        [
            "" if value is pd.NA or none(value) else fact_text(name, value, _LIMITS.get(name, MAX_FACT))
            for value in column
        ]
        for column, place, name in zip(values, places, [str(frame.columns[place]) for place in places], strict=True)
        for none in [partial(_is_nothing, decoded=place in decoded)]
    ]
    short = distinct_addresses(text for column in texts for text in column)
    shortened = [  # bytes are not an address, even if there are 32 of them: their zeros count
        [short(text, padded=isinstance(value, bytes)) for value, text in zip(*both, strict=True)]
        for both in zip(values, texts, strict=True)
    ]
    lines = list(zip(*shortened, strict=True))
    if len(part) < len(frame):
        lines.insert((rows + 1) // 2, (ELLIPSIS,) * len(places))
    shown = f"{len(part):,} of {len(frame):,} rows" if len(part) < len(frame) else plural(len(frame), "row")
    failed, uncertain = _failed(frame), _uncertain(frame)
    why = "error_message" if failed else "uncertain"
    kind = _kind(names)
    last, first = _NEEDED_TO.get(kind), FIRST.get(kind, names)
    if _look_alike(frame):
        last = "stratum"
    ends = [n for n, place in enumerate(places, 1) if columns is not None or names[place] == last]
    types = [frame.dtypes.iloc[place] for place in places]
    return ShownFrame(
        columns=tuple(names[place] for place in places),
        rows=tuple(lines),
        counts=shown + failed + uncertain,
        why=why if failed or uncertain else "",
        empty=tuple(names[place] for place in empty),
        numbers=frozenset(n for n, kind in enumerate(types) if is_numeric_dtype(kind) and not is_bool_dtype(kind)),
        facts=tuple(facts.get(frame.columns[place], {}) for place in places),
        needed=max(ends, default=1),
        one_line=frozenset(n for n, place in enumerate(places) if columns is None and names[place] not in first),
    )


def _filled(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of the toolkit in which columns without a value have those of other columns; see `_INSTEAD`."""
    there = {*frame.attrs.get("toolkit", {})} & {*frame.columns[~frame.columns.duplicated(keep=False)]}
    for name in there & _INSTEAD.keys():
        column = frame[name].astype("string")
        known = column.notna()
        if name == "abort_name":  # the status of a success is no reason
            known |= frame["success"].isin([True]) if "success" in there else not there.issuperset(FIRST["failures"])
        for other in (one for one in _INSTEAD[name] if one in there):
            column = column.where(known | column.notna(), _INSTEAD[name][other] + frame[other].astype("string"))
        frame = frame.assign(**{name: column})
    return frame


def _is_nothing(value: Any, *, decoded: bool) -> bool:
    """Return whether a value is a list without items or an empty text, unless it was decoded: then it is a value."""
    return not decoded and isinstance(value, list | str) and not value


def _is_empty(column: pd.Series[Any], *, decoded: bool) -> bool:
    """Return whether a column has no values."""
    return all(_is_nothing(value, decoded=decoded) for value in column.dropna())


def _failed(frame: pd.DataFrame) -> str:
    """Return the part of the counts on the rows that failed; empty if none did."""
    if "error_code" not in frame.columns:
        return ""
    failed = frame["error_code"].notna()
    if "presence" in frame.columns:  # an absent item is an answer, not a failure
        failed &= ~frame["presence"].isin(["missing", "deleted"])
    counts = frame["error_code"][failed].value_counts()
    if "success" in frame.columns:
        failed |= frame["success"].isin([False])
    codes = ", ".join(f"{count:,} {visible(code, _MAX_NAME)}" for code, count in counts.items())
    codes = f" ({codes})" if codes else ""
    return f"; {int(failed.sum()):,} of {len(frame):,} failed{codes}" if failed.any() else ""


def _uncertain(frame: pd.DataFrame) -> str:
    """Return the part of the counts on the steps with reasons for caution; empty if there are none."""
    if _kind(list(map(str, frame.columns))) != "steps":
        return ""
    count = sum(map(bool, frame["uncertain"].dropna()))
    return f"; {count:,} of {len(frame):,} uncertain" if count else ""


def _kind(names: Sequence[str]) -> str:
    """Return what a frame with these columns is about, as in `FIRST`; empty if that is not known."""
    return next((kind for kind, begin in FIRST.items() if set(begin) <= set(names)), "")


def _look_alike(frame: pd.DataFrame) -> bool:
    """Return whether some steps look the same without their stratum, which then comes before their version."""
    first = FIRST["steps"][: FIRST["steps"].index("stratum")]
    return _kind(list(map(str, frame.columns))) == "steps" and bool(frame[[*first]].astype(str).duplicated().any())


def _places(frame: pd.DataFrame, columns: Sequence[str] | None) -> list[int]:
    """Return the positions of the columns to show, in order: what the frame is about, the others, identifiers."""
    names = list(map(str, frame.columns))
    if columns is not None:
        wanted = [columns] if isinstance(columns, str) else list(columns)
        if absent := [name for name in wanted if name not in names]:
            meant = did_you_mean(str(absent[0]), names)
            hint = f"; {meant} It has " if meant else "; it has "
            raise InputError(f"the frame has no column {absent[0]!r}{hint}{', '.join(names)}")
        return [names.index(name) for name in wanted]
    first = FIRST.get(_kind(names), ())
    if _look_alike(frame):
        place = first.index("version_after")
        first = (*first[:place], "stratum", *(name for name in first[place:] if name != "stratum"))
    facts = frame.attrs.get("toolkit", {})  # a field of a resource or an event is not an identifier of the toolkit's
    last = [name for name in _LAST if facts.get(name, {}).get("typing", "schema") == "schema"]
    request = frame.iloc[:, names.index("request")] if "request" in names else None
    if request is not None and is_integer_dtype(request.dtype) and len(request.unique()) > 1:  # else, it is always 0
        first = ("request", *(name for name in first if name != "ledger_version"))
        last = ["ledger_version", *last]  # the head, in all rows
    if "ledger_timestamp" in names and frame.iloc[:, names.index("ledger_timestamp")].isna().mean() > 1 / 2:
        last = ["ledger_timestamp", *last]  # often only the time of the newest version is known
    begin, end = ([names.index(name) for name in part if name in names] for part in (first, [*last, "request"]))
    end = [place for place in end if place not in begin]
    rest = [place for place in range(len(names)) if place not in {*begin, *end}]
    if "error_message" in names:  # structs and lists are wide: the other values, and whether there are any, come first
        kinds = [getattr(kind, "pyarrow_dtype", pa.null()) for kind in frame.dtypes]
        rest.sort(key=lambda place: pa.types.is_nested(kinds[place]) or (names[place] == "error_message"))
    return [*begin, *rest, *end]
