"""Frames to Parquet files and back, nested columns included."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from toolkit._present.files import open_to_read, replacing
from toolkit.dtypes.frames import to_arrow, to_pandas
from toolkit.errors import InputError, SchemaError, ToolkitError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

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
        If a column of Python objects has no one Arrow type, or holds structs without fields, which Parquet has not.
    OSError
        If the file cannot be written, or the path is a folder, a named pipe or a device.
    """
    with replacing(Path(path)) as file:
        write_frame(frame, file)


def write_frame(frame: pd.DataFrame, file: BinaryIO, *, metadata: Mapping[str, str] | None = None) -> None:
    """Write a frame as Parquet to an open file, with entries of `metadata` beside the frame's own."""
    table = _narrowed(to_arrow(frame))
    for field in table.schema:
        if _has_empty_struct(field.type):
            raise SchemaError(
                f"column {field.name!r}: Parquet cannot hold {field.type}, because a struct in it has no fields; "
                "drop the column, or write CSV or JSON lines",
                column=field.name,
            )
    if metadata:
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), **metadata})
    pq.write_table(table, file, compression="zstd", write_page_checksum=True, **_encodings(table.schema))


def _has_empty_struct(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind) and kind.num_fields == 0:
        return True
    return any(_has_empty_struct(kind.field(place).type) for place in range(kind.num_fields))


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
        If the file is not a Parquet file, is damaged, or has no such column.
    OSError
        If the file cannot be opened, or is a named pipe or a device.
    """
    with open_to_read(path) as source:
        try:
            with pq.ParquetFile(source, page_checksum_verification=True) as file:
                absent = sorted(set(columns or ()) - set(file.schema_arrow.names))
                if absent:
                    raise InputError(f"{path} has no column {absent}; it has {file.schema_arrow.names}")
                table = file.read(columns=None if columns is None else list(columns), use_pandas_metadata=True)
            return to_pandas(table)
        # Beyond its own errors, Arrow raises OSError for bytes that cannot be decoded, and damaged descriptions of a
        # frame raise whatever pandas meets in them.
        except ToolkitError:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError) as error:
            raise InputError(f"{path} is not a readable Parquet file: {error}") from error
