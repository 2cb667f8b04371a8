"""Frames for reading: addresses in the form of frames, and tables with short addresses and grouped digits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING, Any, overload

import pandas as pd

from toolkit._present.messages import did_you_mean
from toolkit._present.notebook import literal
from toolkit._present.tables import cell_text, html_table, json_value, text_table
from toolkit._present.text import ELLIPSIS, distinct_addresses, plural, visible
from toolkit.errors import InputError
from toolkit.move import parse_address, parse_type_tag

if TYPE_CHECKING:
    from collections.abc import Sequence


# Characters of a column name and of a cell: a row with longer ones does not fit a screen.
_MAX_NAME = 60
_MAX_CELL = 200
# Columns whose numbers are identifiers, written without separators as ledger versions are.
_IDENTIFIERS = frozenset({"chain_id", "epoch", "round", "block_height", "sequence_number", "creation_number", "nonce"})
_FIRST = (
    "label",
    "stratum",
    "part",
    "ledger_version",
    "version_before",
    "version_after",
    "time",
    "gas_before",
    "gas_after",
    "change",
    "change_percent",
    "cause",
    "explanation",
)
_LAST = ("node", "node_build", "source", "model", "fingerprint", "value_digest", "observed_at", "toolkit_version")


@overload
def address(value: str) -> str: ...
@overload
def address(value: pd.Series) -> pd.Series: ...
def address(value: str | pd.Series) -> str | pd.Series:
    """Return an address in the form that frames use (AIP-40): ``0x1``, or ``0x`` and 64 digits.

    Parameters
    ----------
    value : str or Series of str
        Addresses in any form: short, long, with or without ``0x``; or functions and types, whose addresses are written
        in that form.

    Returns
    -------
    str or Series of str
        As given; missing rows stay missing.

    Raises
    ------
    InputError
        If a value is neither an address, a function nor a type.

    Examples
    --------
    >>> address("0xa11ce")
    '0x00000000000000000000000000000000000000000000000000000000000a11ce'
    >>> address("0x0001")
    '0x1'
    >>> address("0xcafe::registry::register")
    '0x000000000000000000000000000000000000000000000000000000000000cafe::registry::register'
    """
    if not isinstance(value, pd.Series):
        return _long_form(value)
    return value.astype("string").map(_long_form, na_action="ignore")


def _long_form(text: Any) -> str:
    # Functions have the form of types. Something other than text is refused as an address.
    return str(parse_type_tag(text)) if isinstance(text, str) and "::" in text else parse_address(text)


@dataclass(frozen=True, repr=False)
class Table:
    """A frame as a table for reading, in a notebook or as text; made by `show`.

    Attributes
    ----------
    columns : tuple of str
    rows : tuple of tuple of str
        The cells; a row of ellipses is in place of the rows that are left out.
    note : str
        Number of rows, whether all of them have an error, and the columns that are left out because they have no
        values.
    numbers : frozenset of int
        Positions of the columns of numbers, which are aligned to the right.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    numbers: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return "\n".join([*text_table(self.rows, head=self.columns, right=self.numbers), f"[{self.note}]"])

    def _repr_html_(self) -> str:
        rows = [[escape(cell) for cell in row] for row in self.rows]
        table = html_table(rows, head=[escape(name) for name in self.columns], right=self.numbers)
        return literal(f'{table}<div style="opacity:.7">{escape(self.note)}</div>')


def show(frame: pd.DataFrame, *, rows: int = 20, columns: Sequence[str] | None = None) -> Table:
    """Return a frame as a table for reading.

    Long addresses are shortened to their first and last digits, as many as distinguish the addresses in the table.
    Quantities have thousands separators; ledger versions and other identifiers have none. The columns that matter most
    come first, and columns without any value are left out. The frame itself is not changed.

    Parameters
    ----------
    frame : DataFrame
    rows : int, default 20
        Maximum number of rows shown: the first and the last ones.
    columns : sequence of str, optional
        The columns to show, in this order; by default all that have a value.

    Returns
    -------
    Table
        Shown by a notebook as HTML; ``print`` writes it as text.

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
              1234  1,234,567
              1235          5
    [2 rows; without values: note]
    """
    given: Any = frame
    if not isinstance(given, pd.DataFrame):
        raise InputError(f"frame must be a DataFrame, got {type(given).__name__}")
    most: object = rows
    if isinstance(most, bool) or not isinstance(most, int) or most < len((ELLIPSIS, ELLIPSIS)):
        raise InputError(f"rows must be an int of at least 2, got {visible(repr(rows), 60)}")
    places = _places(frame, columns)
    empty = [place for place in places if columns is None and len(frame) and frame.iloc[:, place].isna().all()]
    places = [place for place in places if place not in empty]
    names = [visible(name, _MAX_NAME) for name in frame.columns]
    part = frame if len(frame) <= rows else pd.concat([frame.iloc[: (rows + 1) // 2], frame.iloc[-(rows // 2) :]])
    texts = [[_cell(str(frame.columns[place]), value) for value in part.iloc[:, place].tolist()] for place in places]
    short = distinct_addresses(text for column in texts for text in column)
    lines = [tuple(short(text) for text in row) for row in zip(*texts, strict=True)]
    if len(part) < len(frame):
        lines.insert((rows + 1) // 2, (ELLIPSIS,) * len(places))
    left_out = f"; without values: {', '.join(names[place] for place in empty)}" if empty else ""
    shown = f"{len(part):,} of {len(frame):,} rows" if len(part) < len(frame) else plural(len(frame), "row")
    shown += _all_failed(frame)
    return Table(
        columns=tuple(names[place] for place in places),
        rows=tuple(lines),
        note=shown + left_out,
        numbers=frozenset(n for n, place in enumerate(places) if _is_number(frame.dtypes.iloc[place])),
    )


def _all_failed(frame: pd.DataFrame) -> str:
    """Return the part of a note about a frame of which every row has an error."""
    if "error_code" not in frame.columns or not len(frame) or frame["error_code"].isna().any():
        return ""
    counts = frame["error_code"].value_counts()
    codes = ", ".join(f"{count:,} {visible(code, _MAX_NAME)}" for code, count in counts.items())
    return f"; all of them failed ({codes}), see error_message"


def _places(frame: pd.DataFrame, columns: Sequence[str] | None) -> list[int]:
    """Return the positions of the columns to show, in order."""
    names = list(map(str, frame.columns))
    if columns is not None:
        wanted = [columns] if isinstance(columns, str) else list(columns)
        if absent := [name for name in wanted if name not in names]:
            meant = did_you_mean(str(absent[0]), names)
            hint = f"; {meant} It has " if meant else "; it has "
            raise InputError(f"the frame has no column {absent[0]!r}{hint}{', '.join(names)}")
        return [names.index(name) for name in wanted]
    # Labels and causes decide what matters: in other frames the order is that of the frame.
    first = [names.index(name) for name in _FIRST if name in names] if "explanation" in names else []
    last = [names.index(name) for name in _LAST if name in names]
    return [*first, *(place for place in range(len(names)) if place not in {*first, *last}), *last]


def _is_number(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def _cell(column: str, value: Any) -> str:  # noqa: PLR0911  # one return per kind of value
    """Return a value as text: times to the second, quantities with separators, nothing for missing values."""
    if not isinstance(value, list | dict | tuple) and pd.isna(value):
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value) if column in _IDENTIFIERS or "version" in column else f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1 else f"{value:,.2f}"
    if isinstance(value, Decimal):
        text = f"{value:,f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return visible(cell_text(json_value(value)), _MAX_CELL)
