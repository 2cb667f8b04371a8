"""Arrow tables to typed frames and back, with what is known of each column; the data dictionary of a frame.

Every column of a frame is Arrow-backed. Two choices follow from what plain ``pandas.read_parquet`` can restore
by a dtype's name: text is ``string`` (pandas' own Arrow-backed dtype with ``pd.NA``; the name
``string[pyarrow]`` of an ArrowDtype comes back as just that), times are ``timestamp[us, tz=UTC][pyarrow]``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from toolkit._present.files import open_to_read, replacing
from toolkit.dtypes.arrow import WideIntType, register_arrow_types
from toolkit.dtypes.extension import WideIntDtype
from toolkit.dtypes.storage import shown
from toolkit.errors import InputError, SchemaError, ToolkitError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

__all__ = ["describe", "read_parquet", "to_arrow", "to_pandas", "write_frame", "write_parquet"]

_ATTRS = "toolkit"
_PANDAS = b"pandas"
_SHOWN_META = ("unit", "source", "typing")
_MOST_TEXT = 2**31
"""Bytes of text that a column of Arrow's `string` holds."""

register_arrow_types()


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Turn an Arrow table into a typed frame.

    Parameters
    ----------
    table : pyarrow.Table
        Field metadata (``unit``, ``source``, ``typing``...) goes to ``frame.attrs["toolkit"]``.

    Returns
    -------
    DataFrame, shape (n, columns)
        Text as ``string``, wide integers as their dtype, all else as ``ArrowDtype``; a table that came from
        a frame gets that frame's dtypes, index and attrs back. ``attrs["toolkit"]`` is
        ``{column: {key: text}}`` and JSON-serialisable.

    Raises
    ------
    InputError
        If two columns have the same name.
    """
    names = table.schema.names
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InputError(f"columns {shown(twice)} come more than once: give each column of a table its own name")
    stored = _pandas_metadata(table.schema)
    if stored is None or not set(names) <= {column["field_name"] for column in stored["columns"]}:
        stored, table = None, table.replace_schema_metadata(None)
    frame: pd.DataFrame = table.to_pandas(types_mapper=_dtype if stored is None else _nested_dtype)
    known = {field.name: _field_metadata(field) for field in table.schema}
    known = {name: facts for name, facts in known.items() if facts}
    kept = frame.attrs.get(_ATTRS, {})
    if known or kept:
        frame.attrs[_ATTRS] = {**known, **kept}
    return frame


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """Turn a frame into an Arrow table that `to_pandas` turns back into it.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns)
        Column names are text, each once.

    Returns
    -------
    pyarrow.Table
        Fields carry ``frame.attrs["toolkit"]`` as metadata; dtypes, index and attrs are in the schema's.

    Raises
    ------
    InputError
        If a column name is no text, or comes more than once.
    SchemaError
        If a column of Python objects has no one Arrow type.
    """
    names: list[Any] = list(frame.columns)
    if not all(isinstance(name, str) for name in names) or not frame.columns.is_unique:
        raise InputError(f"columns must have unique text names to go to Arrow, got {shown(names)}")
    try:
        table = pa.Table.from_pandas(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"a column of Python objects has no one Arrow type: {error}") from error
    facts = frame.attrs.get(_ATTRS, {})
    fields = [_with_metadata(field, facts.get(field.name, {})) for field in table.schema]
    metadata = dict(table.schema.metadata)
    metadata[_PANDAS] = json.dumps(_readable(json.loads(metadata[_PANDAS]), table.schema)).encode()
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, metadata))


def describe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the data dictionary of a frame.

    Parameters
    ----------
    frame : DataFrame
        Any frame; those of this toolkit say more.

    Returns
    -------
    DataFrame, shape (columns of `frame`, 6)
        ``column``, ``type``, ``unit``, ``source``, ``typing`` (text, missing where not known) and ``nulls``
        (int64, rows).

    Raises
    ------
    InputError
        If `frame` is none.
    """
    given: Any = frame
    if not isinstance(given, pd.DataFrame):
        raise InputError(f"describe takes a DataFrame, got a {type(given).__name__}")
    facts = frame.attrs.get(_ATTRS, {})
    rows = [
        {
            "column": str(name),
            "type": _type_name(frame.dtypes.iloc[place]),
            **{key: facts.get(name, {}).get(key) for key in _SHOWN_META},
            "nulls": int(frame.iloc[:, place].isna().sum()),
        }
        for place, name in enumerate(frame.columns)
    ]
    text = [pa.field(name, pa.string()) for name in ("column", "type", *_SHOWN_META)]
    return to_pandas(pa.Table.from_pylist(rows, pa.schema([*text, pa.field("nulls", pa.int64())])))


def _type_name(dtype: Any) -> str:
    """Name a dtype as Arrow does, where it is Arrow's."""
    return str(dtype.pyarrow_dtype) if isinstance(dtype, pd.ArrowDtype) else str(dtype)


def _dtype(arrow: pa.DataType) -> Any:
    """Pandas dtype of an Arrow type; None leaves it to the type itself or to pandas."""
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return pd.StringDtype("pyarrow", na_value=pd.NA)
    if isinstance(arrow, WideIntType):
        return WideIntDtype(arrow.wide.name)
    if isinstance(arrow, pa.BaseExtensionType) or pa.types.is_dictionary(arrow):
        return None
    return pd.ArrowDtype(arrow)


def _nested_dtype(arrow: pa.DataType) -> Any:
    """Pandas dtype of the Arrow types whose names pandas cannot read back; None for all others."""
    by_name = pa.types.is_nested(arrow) or pa.types.is_decimal(arrow) or pa.types.is_fixed_size_binary(arrow)
    return pd.ArrowDtype(arrow) if by_name else None


def _pandas_metadata(schema: pa.Schema) -> dict[str, Any] | None:
    """Return what pandas wrote about a table, if it did."""
    raw = (schema.metadata or {}).get(_PANDAS)
    if raw is None:
        return None
    try:
        stored = json.loads(raw)
        return stored if all(isinstance(column["field_name"], str) for column in stored["columns"]) else None
    except (ValueError, TypeError, KeyError):
        return None


def _readable(stored: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """Let plain pandas read the table: ``object`` in place of dtype names it cannot parse or may not know."""
    for column in stored["columns"]:
        place = schema.get_field_index(column["field_name"])
        if place >= 0 and (
            _nested_dtype(schema.field(place).type) or isinstance(schema.field(place).type, WideIntType)
        ):
            column["numpy_type"] = "object"
    return stored


def _field_metadata(field: pa.Field) -> dict[str, str]:
    """Read a field's own metadata, without what Arrow and Parquet keep there."""
    facts = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    return {key: value for key, value in facts.items() if not key.startswith(("ARROW:", "PARQUET:"))}


def _with_metadata(field: pa.Field, facts: Mapping[str, Any]) -> pa.Field:
    """Return the field with what is known of its column."""
    return field.with_metadata({key: str(value) for key, value in facts.items()}) if facts else field


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
