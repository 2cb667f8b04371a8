"""What the command line prints and writes: facts, frames, files. Text from a node is made harmless."""

from __future__ import annotations

import io
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from toolkit._present.files import replacing
from toolkit._present.text import csv_text, visible
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pandas as pd

__all__ = [
    "JSON_FORMAT",
    "argument",
    "check_suffix",
    "print_facts",
    "print_frame",
    "print_json",
    "write_frame",
    "write_text",
]

JSON_FORMAT = 1
"""Number of the shape that ``--json`` prints; it goes up when the shape changes."""

_EXACT_EVERYWHERE = 2**53
_MOST_ROWS = 40
_SHOWN = 40


def argument(text: str) -> Any:
    """Return an argument as JSON if it is JSON, else as text, so that addresses and names need no quotes.

    Raises
    ------
    InputError
        If it is JSON that nests deeper than Python reads.
    """
    try:
        return json.loads(text, parse_float=str, parse_constant=str)  # Move has no fractions, and a float would round
    except ValueError:
        return text
    except RecursionError:
        raise InputError(f"argument {text[:_SHOWN]!r}... is nested too deeply") from None


def print_facts(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print named values, one a line."""
    if as_json:
        print_json(facts)
        return
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        shown = json.dumps(plain(value), ensure_ascii=False) if isinstance(value, list | dict) else plain(value)
        print(f"{name:<{width}}  {visible(shown, 2000)}")


def print_json(content: Mapping[str, Any]) -> None:
    """Print ASCII only, so that text from the chain cannot steer a terminal."""
    print(json.dumps({"format": JSON_FORMAT, **plain(dict(content))}, indent=1, ensure_ascii=True))


def print_frame(frame: pd.DataFrame, *, as_json: bool, whole: bool = False) -> None:
    """Print a frame: as JSON whole, as text its columns that are not empty, at most 40 rows unless `whole`."""
    if as_json:
        print_json({"rows": records(frame)})
        return
    told = [name for name in frame.columns if frame[name].notna().any()]
    rows = records(frame[told])
    shown = rows if whole or len(rows) <= _MOST_ROWS else [*rows[: _MOST_ROWS // 2], *rows[-_MOST_ROWS // 2 :]]
    cells = [told, *([visible(_cell(row[name]), 60) for name in told] for row in shown)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(told))]
    for line in cells:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    if len(shown) < len(rows):
        print(f"{len(rows)} rows; the first and last {_MOST_ROWS // 2} are shown. --out writes all of them.")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as JSON can hold them: a column with an integer beyond 2^53 has text in all its rows."""
    from toolkit.dtypes import to_arrow

    table = to_arrow(frame)
    columns = [_json_column(table[name].to_pylist(), wide=_is_wide(table[name].type)) for name in table.column_names]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _is_wide(kind: Any) -> bool:
    from toolkit.dtypes import WideIntType

    return isinstance(kind, WideIntType)


def _json_column(values: list[Any], *, wide: bool) -> list[Any]:
    """Return a column's values for JSON: one type for all its integers, wide ones always text."""
    integers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if wide or any(abs(value) > _EXACT_EVERYWHERE for value in integers):
        return [None if value is None else str(value) for value in values]
    return [plain(value) for value in values]


def check_suffix(place: Path | None) -> None:
    """Refuse a file that could not be written for its name, before anything is asked of a node."""
    if place is not None and place.suffix.lower() not in _WRITERS:
        raise InputError(f"--out {place}: the name ends in {', '.join(_WRITERS)}, got {place.suffix or 'no ending'!r}")


def write_frame(frame: pd.DataFrame, place: Path) -> None:
    """Write a frame whole as Parquet, CSV or JSON lines, by the ending of the file's name.

    Raises
    ------
    InputError
        If the ending is none of ``.parquet``, ``.csv``, ``.jsonl``, or the file cannot be written.
    """
    check_suffix(place)
    write = _WRITERS[place.suffix.lower()]
    _put(place, lambda file: write(frame, file))


def write_text(text: str, place: Path) -> None:
    """Write text to a file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    _put(place, lambda file: file.write(text.encode()))


def _put(place: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file whole or not at all."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as file:
            write(file)
    except OSError as error:
        raise InputError(f"--out {place}: cannot be written ({error.strerror or error})") from None


def _write_parquet(frame: pd.DataFrame, file: BinaryIO) -> None:
    from toolkit.dtypes.parquet import write_frame

    write_frame(frame, file)


def _write_csv(frame: pd.DataFrame, file: BinaryIO) -> None:
    import csv

    from toolkit.dtypes import to_arrow

    out = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(out)
    writer.writerow(map(csv_text, frame.columns))
    writer.writerows([_csv_cell(value) for value in row.values()] for row in to_arrow(frame).to_pylist())
    out.detach()  # flushes, and leaves the file open


def _csv_cell(value: Any) -> str:
    """Return a cell that no spreadsheet runs as a formula."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else csv_text(_cell(plain(value)))


def _write_lines(frame: pd.DataFrame, file: BinaryIO) -> None:
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in records(frame)]
    file.write("".join(f"{line}\n" for line in lines).encode())


_WRITERS: dict[str, Callable[[pd.DataFrame, BinaryIO], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_lines,
}


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; integers beyond 2^53 become text, since many readers would round them."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT_EVERYWHERE:
        return str(value)
    return value
