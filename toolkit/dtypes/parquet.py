"""Frames to Parquet files and back, nested columns included."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from toolkit.dtypes.frames import to_arrow, to_pandas
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

__all__ = ["read_parquet", "write_parquet"]

_MOST_TEXT = 2**31
"""Bytes of text that a column of Arrow's `string` holds."""


def write_parquet(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a frame to one Parquet file, whole or not at all.

    Plain ``pandas.read_parquet`` reads flat frames back exactly; nested columns it gives as Python objects,
    and wide ones as bytes where this package is not imported.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns)
        Column names are text, each once.
    path : path-like
        File to write; one that exists is replaced.

    Raises
    ------
    InputError
        If a column name is no text, or comes more than once.
    SchemaError
        If a column of Python objects has no one Arrow type.
    OSError
        If the file cannot be written.
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write_frame(frame, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def write_frame(frame: pd.DataFrame, place: Path) -> None:
    """Write a frame as Parquet in place; for who moves the file by themselves, else see `write_parquet`."""
    table = _narrowed(to_arrow(frame))
    pq.write_table(table, place, compression="zstd", write_page_checksum=True, **_encodings(table.schema))


def _narrowed(table: pa.Table) -> pa.Table:
    """Give text the type `string` that schemas say, where pandas holds it as `large_string` and it fits."""
    for place, field in enumerate(table.schema):
        if pa.types.is_large_string(field.type) and table.column(place).nbytes < _MOST_TEXT:
            table = table.set_column(place, field.with_type(pa.string()), table.column(place).cast(pa.string()))
    return table


def _encodings(schema: pa.Schema) -> dict[str, object]:
    """Delta-pack 64-bit numbers and times: versions, times and gas take half the space (nested frames: as usual)."""
    if any(pa.types.is_nested(field.type) for field in schema):
        return {}
    packed = [field.name for field in schema if pa.types.is_int64(field.type) or pa.types.is_uint64(field.type)]
    packed += [field.name for field in schema if pa.types.is_timestamp(field.type)]
    rest = [field.name for field in schema if field.name not in packed]
    return {"column_encoding": dict.fromkeys(packed, "DELTA_BINARY_PACKED"), "use_dictionary": rest}


def read_parquet(path: str | os.PathLike[str], *, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a frame from one Parquet file, with dtypes, index and attrs as they were written.

    Parameters
    ----------
    path : path-like
        File to read; one of another tool gives a typed frame too.
    columns : sequence of str, optional
        Columns to read; all by default.

    Returns
    -------
    DataFrame, shape (n, columns)

    Raises
    ------
    InputError
        If the file is no Parquet file, or has no such column.
    OSError
        If the file cannot be read.
    """
    try:
        with pq.ParquetFile(path) as file:
            absent = sorted(set(columns or ()) - set(file.schema_arrow.names))
            if absent:
                raise InputError(f"{path} has no column {absent}; it has {file.schema_arrow.names}")
            table = file.read(columns=None if columns is None else list(columns), use_pandas_metadata=True)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} is no readable Parquet file: {error}") from error
    return to_pandas(table)
