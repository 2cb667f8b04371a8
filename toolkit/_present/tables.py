"""Tables as text and HTML, and values and Arrow tables as JSON and CSV.

The caller must make the cells of text and HTML tables safe for the output. JSON and CSV are written so that
readers do not round integers and spreadsheets do not run text as formulas.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from contextlib import suppress
from dataclasses import fields
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from html import unescape
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit._present.text import ELLIPSIS, MINUS, csv_text, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pyarrow as pa

_Entry = TypeVar("_Entry")
MAX_FACT = 200
# Names of numbers that do not count anything; they are written without separators, as codes are.
_IDENTIFIERS = frozenset({"chain_id", "nonce", "expiration_timestamp_secs"})
NO_TERMINAL = 10_000  # characters of a line, more than any table has
_MIN_TEXT = 22  # characters of a shortened cell: times and short addresses stay whole, and most names can be recognised
_MIN_DATA = 16  # the same, of JSON and bytes, in which only a short address has to stay whole
_MIN_NEEDED = 8  # the same, of all but times in columns that must all be there


class Listing(tuple[_Entry, ...]):
    """A tuple of instances of one dataclass, shown as a table in a notebook and as text.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Pet:
    ...     name: str
    ...     legs: int
    >>> Listing([Pet("rex", 4)])
    name  legs
    rex      4
    """

    __slots__ = ()

    def _cells(self) -> tuple[list[str], list[list[str]], set[int]]:
        """Return the column names, the rows and the positions of the columns of numbers."""
        entry: Any = self[0]
        names = [one.name for one in fields(entry)]
        values = [[getattr(entry, name) for name in names] for entry in self]
        rows = [[visible(_cell(one), 120) for one in row] for row in values]
        right = {place for place, value in enumerate(values[0]) if _is_integer(value)}
        return [name.replace("_", " ") for name in names], rows, right

    def __repr__(self) -> str:
        if not self:
            return "()"
        head, rows, right = self._cells()
        return "\n".join(text_table(rows, head=head, right=right))

    def _repr_html_(self) -> str:
        from html import escape

        from toolkit._present.notebook import literal

        if not self:
            return literal("none")
        head, rows, right = self._cells()
        return literal(html_table([[escape(cell) for cell in row] for row in rows], head=head, right=right))


def _cell(value: Any) -> str:
    """Return a value as text."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if _is_integer(value) else str(value)


def text_table(
    rows: Iterable[Sequence[str]],
    *,
    head: Sequence[str] = (),
    numbers_from: int | None = None,
    right: Collection[int] = (),
    indent: str = "",
) -> list[str]:
    r"""Return a table as lines for a terminal, in columns two spaces apart.

    Parameters
    ----------
    rows : iterable of sequence of str
        Rows of equal length.
    head : sequence of str, optional
        Column names, as the first line.
    numbers_from : int, optional
        Position of the first right-aligned column. By default, all columns are left-aligned.
    right : collection of int, optional
        Positions of other right-aligned columns.
    indent : str, optional
        Text in front of each line.

    Returns
    -------
    list of str
        Without trailing spaces.

    Examples
    --------
    >>> print("\n".join(text_table([["coin::supply", "7"], ["x", "1,200"]], head=["call", "gas"], numbers_from=1)))
    call            gas
    coin::supply      7
    x             1,200
    """
    columns = list(zip(*([head] if head else []), *rows, strict=True))
    start = len(columns) if numbers_from is None else numbers_from
    padded = []
    for place, column in enumerate(columns):
        width, left = max(map(len, column)), place < start and place not in right
        padded.append([cell.ljust(width) if left else cell.rjust(width) for cell in column])
    return [indent + "  ".join(line).rstrip() for line in zip(*padded, strict=True)]


def terminal_width(*, piped: bool = False) -> int:
    """Return the columns of the terminal, or COLUMNS if it is set; notebooks, and pipes without it, get tables whole.

    With `piped`, COLUMNS applies to whatever has taken the place of stdout, too.
    """
    # A kernel replaces stdout. It inherits COLUMNS from the terminal that Jupyter runs in, and the terminal's size.
    terminal = piped or sys.stdout is sys.__stdout__
    with suppress(AttributeError, ValueError):  # a program may have replaced stdout, or closed it
        terminal = terminal or sys.stdout.isatty()
    return get_terminal_size((NO_TERMINAL, 24)).columns if terminal else NO_TERMINAL


def wrapped(text: str, width: int) -> str:
    """Return text whose lines end between words; what continues a line is indented.

    >>> print(wrapped("note: some calls have no gas", 18))
    note: some calls
      have no gas
    """
    how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    indents = ((line, " " * (len(line) - len(line.lstrip()) + 2)) for line in text.splitlines())
    return "\n".join(fill(line, width, subsequent_indent=indent, **how) for line, indent in indents)


def fitted_columns(
    columns: Sequence[Sequence[str]], width: int, *, right: Collection[int] = (), needed: int = 1
) -> dict[int, list[str]]:
    """Return the columns that fit in a terminal, by position, with long texts shortened.

    Columns are left out from the right, but for later ones that fit in what is left of the line. Numbers are never
    shortened; names lose their beginning, and other texts their end. Names keep a quarter of the line, and the
    longest sentences half, rather than make room for more columns.

    Parameters
    ----------
    columns : sequence of sequence of str
        Columns, each with its name as the first cell.
    width : int
        Characters of a line.
    right : collection of int, optional
        Positions of the columns of numbers.
    needed : int, default 1
        Number of leading columns that are never left out; if they alone do not fit, texts are shortened further.

    Returns
    -------
    dict of int to list of str

    Examples
    --------
    >>> fitted_columns([["gas", "7"], ["function", "0x1::aptos_account::transfer"]], 29, right={0})
    {0: ['gas', '7'], 1: ['function', '…aptos_account::transfer']}
    """
    kept = {place: list(column) for place, column in enumerate(columns)}
    data = {place for place, column in kept.items() if any(map(_is_data, column))}
    fewest = [_MIN_DATA if place in data else max(_MIN_TEXT, width // 4) for place in kept]
    longest = {place: max(column, key=len) for place, column in kept.items() if place not in data}
    sentences = {place for place, text in longest.items() if place and " " in text and len(text) > fewest[place]}
    while True:
        if 1 < len(kept) <= needed:
            times = {place for place, column in kept.items() if any(cell[:1].isdigit() for cell in column)}
            fewest = [_MIN_TEXT if place in times - data else _MIN_NEEDED for place in range(len(columns))]
            sentences = set()
        widths = {place: max(map(len, column)) for place, column in kept.items()}
        over = sum(widths.values()) + 2 * (len(widths) - 1) - width
        least = {place: max(fewest[place], len(kept[place][0])) for place in widths if place not in right}
        among = sentences & least.keys()
        if among and (place := max(among, key=lambda place: len(longest[place]))) != max(kept):
            least[place] = max(least[place], width // 2)
        while over > 0 and (long := [place for place, fewest in least.items() if widths[place] > fewest]):
            widths[max(long, key=widths.__getitem__)] -= 1
            over -= 1
        if over <= 0 or len(kept) <= max(needed, 1):
            break
        del kept[max(kept)]
    for place, cells in enumerate(columns):
        if place not in kept and over + 2 + (needed := max(map(len, cells))) <= 0:
            kept[place], widths[place], over = list(cells), needed, over + 2 + needed
    return {place: [_shortened(cell, widths[place]) for cell in column] for place, column in kept.items()}


def _is_data(text: str) -> bool:
    """Return whether a text is JSON or the hex digits of bytes, of which the beginning says enough."""
    return text.startswith(("{", "[")) or (text.startswith("0x") and "::" not in text)


def _shortened(text: str, width: int) -> str:
    """Return a text in a number of characters: a name with parts without its beginning, any other text without its end.

    A generic type keeps its own name, because its arguments may be those of other types.

    >>> _shortened("0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>", 24)
    '…CoinStore<…AptosCoin>'
    """
    if len(text) <= width:
        return text
    outer, _, inner = text.partition("<")
    name = ELLIPSIS + outer.rpartition("::")[2]
    if inner and "::" in outer and " " not in outer and len(name) + 3 <= width:
        inner = _shortened(inner, width - len(name) - 1)
        return f"{_shortened(outer, max(len(name), width - len(inner) - 1))}<{inner}"
    if " " in text or _is_data(text) or not {*":._"}.intersection(text):
        return text[: width - 1].rstrip(ELLIPSIS) + ELLIPSIS
    start = len(text) - width + 1
    between = text.find("::", start - 2)  # half an address would look like another one
    word = min((place + 1 for mark in "._" if (place := text.find(mark, start - 1)) >= 0), default=start)
    return ELLIPSIS + text[word if between < 0 else between + 2 :]


_MAX_LINE = 40  # characters
_WRAPPED = 60  # the same, of text that is wrapped: an explanation has three lines
# Browsers would break names at hyphens and dashes to fit a wide table into a page, and long texts after each word.
_SHORT = "white-space:nowrap"
_CUT = f"max-width:{_MAX_LINE}ch;overflow:hidden;text-overflow:ellipsis;{_SHORT}"
# For hosts whose style sheet gives tables no padding, such as marimo's; that of Jupyter is more specific.
_STYLE = (
    "<style>:where(.mathjax_ignore) :is(th,td){padding:2px 8px}"
    # Paper does not scroll: all columns have to fit, and only numbers stay whole.
    "@media print{.mathjax_ignore>div>table :is(th,td){font-size:7px;padding:2px;white-space:normal!important;"
    "min-width:5ch!important;max-width:none!important;overflow-wrap:anywhere}"
    ".mathjax_ignore>div>table td[style*=right]{overflow-wrap:normal}"
    ".mathjax_ignore>div:has(>table)+div{font-size:10px}}</style>"
)


def _html_cell(cell: str, side: str, *, whole: bool) -> str:
    """Return a cell: long JSON has one line, and so has a text not to be shown whole, which is whole on hover."""
    text = unescape(cell)
    if len(text) <= _MAX_LINE:
        return f'<td style="text-align:{side};{_SHORT}">{cell}</td>'
    if whole and not _is_data(text):
        least = min(len(text), _WRAPPED)
        return f'<td style="text-align:{side};min-width:{least}ch;overflow-wrap:anywhere">{cell}</td>'
    return f'<td title="{cell}" style="text-align:{side};{_CUT}">{cell}</td>'


def html_table(
    rows: Iterable[Sequence[str]],
    *,
    head: Sequence[str],
    numbers_from: int | None = None,
    right: Collection[int] = (),
    one_line: Collection[int] = (),
) -> str:
    """Return a table as an HTML element.

    Parameters
    ----------
    rows : iterable of sequence of str
        Rows of text, escaped with quotes.
    head : sequence of str
        Column names, escaped.
    numbers_from : int, optional
        Position of the first right-aligned column. By default, all columns are left-aligned.
    right : collection of int, optional
        Positions of other right-aligned columns.
    one_line : collection of int, optional
        Positions of columns whose long texts are not wrapped, so that rows stay low; they are shown whole on hover.

    Returns
    -------
    str
    """
    start = len(head) if numbers_from is None else numbers_from

    sides = ["left" if place < start and place not in right else "right" for place in range(len(head))]
    names = (f'<th style="text-align:{side};{_SHORT}">{name}</th>' for side, name in zip(sides, head, strict=True))
    lines = (
        "".join(
            _html_cell(cell, side, whole=place not in one_line)
            for place, (side, cell) in enumerate(zip(sides, row, strict=True))
        )
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'{_STYLE}<div style="overflow-x:auto"><table><tr>{"".join(names)}</tr>{body}</table></div>'


# Largest integer that every JSON reader holds exactly: many read numbers as 64-bit floats (RFC 8259, section 6).
MAX_EXACT_INTEGER = 2**53
# Types of columns in which values repeat, such as labels, gas and error codes; the text of each is made once.
_REPEATING = frozenset({"string", "bool", "uint8", "uint16", "uint32", "uint64", "int64", "timestamp[us, tz=UTC]"})


def json_value(value: Any) -> Any:
    """Convert a value, including the items of containers, to a JSON value.

    Parameters
    ----------
    value : object
        Decimals and keys become text, bytes become hex, dates and times become ISO 8601 text, and tuples become lists.
        NaN and infinity, which JSON does not have, become None, as in JavaScript and pandas. Integers become text if
        one of them is beyond 2^53: all those of a list, and those of a key in all objects of a list.

    Returns
    -------
    object

    Examples
    --------
    >>> json_value({"gas": 7, "supply": 2**64, "key": b"x01"})
    {'gas': 7, 'supply': '18446744073709551616', 'key': '0x783031'}
    >>> json_value([3, 2**64])
    ['3', '18446744073709551616']
    """
    return _json(value, (), _large(value))


_Place = tuple[str | None, ...]  # keys from the outside in; None for the items of a list


def _large(value: Any, place: _Place = ()) -> set[_Place]:
    """Return the places in a value that have integers beyond 2^53."""
    if isinstance(value, dict):
        return {one for key, item in value.items() for one in _large(item, (*place, str(key)))}
    if isinstance(value, list | tuple):
        return {one for item in value for one in _large(item, (*place, None))}
    return {place} if _is_integer(value) and abs(value) > MAX_EXACT_INTEGER else set()


def _json(value: Any, place: _Place, texts: Collection[_Place]) -> Any:
    """Convert a value as `json_value` does, with integers at some places as text."""
    if isinstance(value, dict):
        return {str(key): _json(item, (*place, str(key)), texts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item, (*place, None), texts) for item in value]
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, float | Decimal):
        finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
        shown = value if isinstance(value, float) else f"{value:f}"
        return shown if finite else None
    if isinstance(value, date | clock_time):  # a datetime is a date
        return value.isoformat() if value == value else None  # noqa: PLR0124 - pandas' NaT
    as_text = isinstance(value, timedelta) or (_is_integer(value) and place in texts)
    return str(value) if as_text else value


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON values.

    Parameters
    ----------
    table : pyarrow.Table

    Returns
    -------
    list of dict
        A column has the same type in all rows, and so has each part of a nested one. Integers are text if one of them
        is beyond 2^53, or if their type is wider than 64 bits.
    """
    columns = [json_column(table[name]) for name in table.column_names]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def csv_table(table: pa.Table) -> str:
    r"""Return a table as CSV with a header line.

    Parameters
    ----------
    table : pyarrow.Table

    Returns
    -------
    str
        Lines end in ``\r\n`` (RFC 4180). Integers have all digits, times are ISO 8601, lists and structs are JSON, and
        missing values are empty. Text that a spreadsheet would run as a formula starts with an apostrophe.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(map(csv_text, table.column_names))
    writer.writerows(zip(*(_csv_column(table[name]) for name in table.column_names), strict=True))
    return out.getvalue()


def cell_text(value: Any) -> str:
    """Return a value of `json_value` as the text of a table cell: containers as JSON, None as a dash."""
    if value is None:
        return "-"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def fact_text(name: str, value: Any, limit: int = MAX_FACT) -> str:  # noqa: PLR0911  # one return per kind of value
    """Return a value as text: times to the second, with an offset unless they are UTC; quantities with separators."""
    if value is None or value != value:  # NaN and pandas' NaT differ from themselves  # noqa: PLR0124
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        plain = name in _IDENTIFIERS or name.endswith("_code")
        return str(value) if plain else f"{value:,}".replace("-", MINUS)
    if isinstance(value, float):
        form = ",.4g" if abs(value) < 1 else ",.0f" if value.is_integer() else ",.2f"
        return f"{value:{form}}".replace("-", MINUS)
    if isinstance(value, Decimal):
        text = f"{value:,f}".replace("-", MINUS)
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}{f'{value:%z}' if value.utcoffset() else ''}"
    return visible(cell_text(json_value(value)), limit)


def json_column(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as JSON values; see `json_rows`."""
    values = column.to_pylist()
    # The extension types of the toolkit are the integers of 128 and 256 bits; their text is a stable type.
    texts: set[_Place] = {()} if hasattr(column.type, "storage_type") else set().union(*map(_large, values))
    return [_json(value, (), texts) for value in values]


def _csv_column(column: pa.ChunkedArray) -> list[str]:
    if column.null_count == len(column):
        return [""] * len(column)
    if column.type.num_fields:  # a list or a struct
        return ["" if value is None else csv_text(cell_text(value)) for value in json_column(column)]
    if str(column.type) in _REPEATING:
        codes = column.combine_chunks().dictionary_encode()
        cells = [*map(_csv_cell, codes.dictionary.to_pylist()), ""]
        return [cells[code] for code in codes.indices.fill_null(len(cells) - 1).to_pylist()]
    return ["" if value is None else _csv_cell(value) for value in column.to_pylist()]


def _csv_cell(value: Any) -> str:
    if isinstance(value, int | float | Decimal):  # not text: a minus is not the start of a formula
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    return csv_text(cell_text(json_value(value)))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
