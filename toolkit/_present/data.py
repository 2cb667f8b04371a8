"""Values and Arrow tables as JSON and CSV: no integer is rounded by a reader, no text is run by a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from toolkit._present.text import csv_text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MAX_EXACT_INTEGER", "cell_text", "csv_table", "json_rows", "json_value"]

MAX_EXACT_INTEGER = 2**53
"""Largest integer that every JSON reader holds exactly: many read numbers as 64-bit floats (RFC 8259, section 6)."""
_REPEATING = frozenset({"string", "bool", "uint8", "uint16", "uint32", "uint64", "int64", "timestamp[us, tz=UTC]"})
"""Types of columns in which values repeat, such as labels, gas and error codes; the text of each is made once."""


def json_value(value: Any) -> Any:
    """Return a value as JSON can hold it, containers included.

    Parameters
    ----------
    value : object
        Integers beyond 2^53 and decimals become text, bytes hex, times ISO 8601, tuples lists, keys text.

    Returns
    -------
    object

    Examples
    --------
    >>> json_value({"gas": 7, "supply": 2**64, "key": b"x01"})
    {'gas': 7, 'supply': '18446744073709551616', 'key': '0x783031'}
    """
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value) if _is_integer(value) and abs(value) > MAX_EXACT_INTEGER else value


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON can hold them.

    Parameters
    ----------
    table : pyarrow.Table

    Returns
    -------
    list of dict
        A column has one type in all rows: text if an integer in it is beyond 2^53 or its type is wider than 64 bits.
    """
    columns = [_json_column(table[name]) for name in table.column_names]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def csv_table(table: pa.Table) -> str:
    r"""Return a table as CSV with one line of column names.

    Parameters
    ----------
    table : pyarrow.Table

    Returns
    -------
    str
        Lines end in ``\r\n`` (RFC 4180). Integers have all digits, times are ISO 8601, lists and structs are JSON,
        missing values are empty. Text that a spreadsheet would run as a formula has an apostrophe in front.
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


def _json_column(column: pa.ChunkedArray) -> list[Any]:
    values = column.to_pylist()
    # The extension types of the toolkit are the integers of 128 and 256 bits; their text is a stable type.
    wide = hasattr(column.type, "storage_type") and any(map(_is_integer, values))
    if wide or any(_is_integer(value) and abs(value) > MAX_EXACT_INTEGER for value in values):
        return [None if value is None else str(value) for value in values]
    return [json_value(value) for value in values]


def _csv_column(column: pa.ChunkedArray) -> list[str]:
    if column.null_count == len(column):
        return [""] * len(column)
    if str(column.type) in _REPEATING:
        codes = column.combine_chunks().dictionary_encode()
        cells = [*map(_csv_cell, codes.dictionary.to_pylist()), ""]
        return [cells[code] for code in codes.indices.fill_null(len(cells) - 1).to_pylist()]
    return ["" if value is None else _csv_cell(value) for value in column.to_pylist()]


def _csv_cell(value: Any) -> str:
    return str(value) if isinstance(value, int | float) else csv_text(cell_text(json_value(value)))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
