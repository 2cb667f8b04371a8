"""Conversion of frames to Arrow tables and Parquet files, with metadata for each column.

Every column of a frame is Arrow-backed. ``pandas.read_parquet`` without this package restores dtypes by their names, so
text has the dtype ``string`` (the name ``string[pyarrow]`` of an ArrowDtype would be read as that dtype, too), and
times have ``timestamp[us, tz=UTC][pyarrow]``.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pandas.api.types import is_integer_dtype

from toolkit._present.excel import MAX_ROWS, write_workbook
from toolkit._present.files import open_to_read, replacing
from toolkit._present.messages import shorten
from toolkit._present.text import visible
from toolkit.dtypes._arrow import KINDS, WideIntType, shown, wide_from_text, wide_to_text, wide_type
from toolkit.dtypes._extension import WideIntDtype
from toolkit.errors import InputError, SchemaError, ToolkitError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence


Wide = Literal["text", "decimal", "native"]  # forms of wide integers in tables and files

_ATTRS = "toolkit"
_PANDAS = b"pandas"
_WIDE = b"wide"  # key of the metadata of a field that was a column of wide integers: the name of its dtype
_DECIMAL = pa.decimal128(38, 0)
# Arrow types in which wide integers are stored; null is the type of a column without values.
_DIGITS = frozenset(
    {_DECIMAL.id, pa.decimal256(76, 0).id, *(kind().id for kind in (pa.string, pa.large_string, pa.null))}
)
_SHOWN_META = ("unit", "source", "typing")


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Convert an Arrow table to a typed frame.

    Parameters
    ----------
    table : pyarrow.Table
        The table. Field metadata (``unit``, ``source``, ``typing``...) is stored in ``frame.attrs["toolkit"]``. Wide
        integers that `to_arrow` wrote as text or decimals become wide integers again.

    Returns
    -------
    DataFrame, shape (n, columns)
        Text has the dtype ``string``, wide integers a `WideIntDtype`, and other columns an ``ArrowDtype``. If the table
        was created from a frame, the dtypes, index and attrs of that frame are restored. ``attrs["toolkit"]`` is
        ``{column: {key: text}}`` and JSON-serializable.

    Raises
    ------
    InputError
        If two columns have the same name.
    SchemaError
        If a column that is marked as wide integers contains other values.

    Examples
    --------
    >>> from toolkit import dtypes
    >>> import pandas as pd
    >>> table = dtypes.to_arrow(pd.DataFrame({"supply": pd.Series([2**100], dtype="u128")}))
    >>> dtypes.to_pandas(table)["supply"].tolist() == [2**100]
    True
    """
    names = table.schema.names
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InputError(f"column names must be unique, got {shown(twice)} more than once")
    table = _widened(table)
    stored = _pandas_metadata(table.schema)
    if stored is None or not set(names) <= {column["field_name"] for column in stored["columns"]}:
        stored, table = None, table.replace_schema_metadata(None)
    frame: pd.DataFrame = table.to_pandas(types_mapper=_dtype if stored is None else _nested_dtype)
    if stored is not None:
        frame.index = _with_wide_levels(frame.index, table, stored)
    known = {field.name: facts for field in table.schema if (facts := _field_metadata(field))}
    if known := known | frame.attrs.get(_ATTRS, {}):
        frame.attrs[_ATTRS] = _ColumnFacts(known)
    return frame


def _with_wide_levels(index: pd.Index, table: pa.Table, stored: Mapping[str, Any]) -> pd.Index:
    """Return the index of a table with the wide integers in its levels restored; pyarrow converts them to bytes."""
    names = [name for name in stored["index_columns"] if isinstance(name, str)]  # a range is a dict
    kinds = [table.schema.field(name).type for name in names]
    if not any(isinstance(kind, WideIntType) for kind in kinds):
        return index
    levels = [
        pd.Index(WideIntDtype(kind.wide.name).__from_arrow__(table[name]))
        if isinstance(kind, WideIntType)
        else index.get_level_values(place)
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    return levels[0].rename(index.name) if len(levels) == 1 else pd.MultiIndex.from_arrays(levels, names=index.names)


def to_arrow(frame: pd.DataFrame, *, wide: Wide = "native") -> pa.Table:
    """Convert a frame to an Arrow table; `to_pandas` converts it back.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns)
        Frame whose column names are unique strings.
    wide : {"native", "text", "decimal"}, default "native"
        Form of u128, u256, i128 and i256 columns: "native" for this package's Arrow extension types, which other tools
        read as bytes; "text" for decimal digits, which any reader can convert; "decimal" for ``decimal128(38, 0)``.

    Returns
    -------
    pyarrow.Table
        Field metadata comes from ``frame.attrs["toolkit"]``; schema metadata contains dtypes, index and attrs.

    Raises
    ------
    InputError
        If column names are not unique strings, or `wide` is not valid.
    SchemaError
        If a column of Python objects has no common Arrow type, or a number has more than 38 digits and `wide` is
        "decimal".

    Examples
    --------
    >>> import pandas as pd
    >>> supply = pd.DataFrame({"supply": pd.array([2**100], dtype="u128")})
    >>> to_arrow(supply, wide="text").to_pydict()
    {'supply': ['1267650600228229401496703205376']}
    """
    if wide not in get_args(Wide):
        raise InputError(f"wide: expected 'text', 'decimal' or 'native', got {shown(wide)}")
    names: list[Any] = list(frame.columns)
    if not all(isinstance(name, str) for name in names) or not frame.columns.is_unique:
        raise InputError(f"column names must be unique strings, got {shown(names)}")
    try:
        table = pa.Table.from_pandas(_with_extension_arrays(frame))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"a column of Python objects has no common Arrow type: {error}") from None
    metadata = dict(table.schema.metadata)
    stored = json.loads(metadata[_PANDAS])
    for column in stored["columns"]:
        if column["numpy_type"] in KINDS:  # a level of the index, as text
            place = table.schema.get_field_index(column["field_name"])
            level = wide_from_text(table.column(place), wide_type(column["numpy_type"]))
            table = table.set_column(place, pa.field(column["field_name"], level.type), level)
    facts = frame.attrs.get(_ATTRS, {})
    fields = [_with_metadata(field, facts.get(field.name, {})) for field in table.schema]
    metadata[_PANDAS] = json.dumps(_readable(stored, table.schema)).encode()
    table = pa.Table.from_arrays(table.columns, schema=pa.schema(fields, metadata))
    return table if wide == "native" else without_extensions(table, wide)


def _with_extension_arrays(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose wide columns have Arrow extension types, because Arrow would otherwise request text."""
    frame = frame.copy(deep=False)
    for place, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, WideIntDtype):
            array: Any = frame.iloc[:, place].array
            frame.isetitem(place, pd.arrays.ArrowExtensionArray(pa.chunked_array([array.extension_array()])))
    return frame


class _ColumnFacts(dict[str, Any]):
    """The metadata of columns: a plain dict that is cheap to copy.

    pandas makes a deep copy of ``attrs`` whenever it returns a column or selects rows. A general deep copy for a
    hundred columns takes longer than most selections. This copy is just as independent, because all metadata is text.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> _ColumnFacts:
        copies = (facts.copy() if type(facts) is dict else deepcopy(facts, memo) for facts in self.values())
        return _ColumnFacts(zip(self, copies, strict=True))

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)  # a pickle can be read without this package


def without_extensions(table: pa.Table, wide: Wide) -> pa.Table:
    """Convert wide columns to text or decimals; their field metadata contains the name of the dtype."""
    for place, field in enumerate(table.schema):
        if not isinstance(field.type, WideIntType):
            continue
        column = pa.chunked_array([wide_to_text(chunk) for chunk in table.column(place).chunks], pa.string())
        if wide == "decimal":
            column = _decimals(column, field.name)
        metadata = {**(field.metadata or {}), _WIDE: field.type.wide.name.encode()}
        table = table.set_column(place, pa.field(field.name, column.type, field.nullable, metadata), column)
    return table


def _decimals(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Convert integers in text form to decimals of 38 digits."""
    digits = pc.utf8_length(pc.utf8_ltrim(column, "-"))
    long = pc.index(pc.greater(digits, _DECIMAL.precision), value=True).as_py()
    if long >= 0:
        raise SchemaError(
            f"column {name!r}, row {long}: {column[long]} has more than {_DECIMAL.precision} digits, the maximum "
            'for a decimal that all readers support; use wide="text"',
            column=name,
            rows=[long],
        )
    return column.cast(_DECIMAL)


def _widened(table: pa.Table) -> pa.Table:
    """Convert text and decimal columns that are marked as wide integers to wide integers."""
    for place, field in enumerate(table.schema):
        if _WIDE not in (field.metadata or {}):
            continue
        name = field.metadata[_WIDE].decode(errors="replace")
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if name not in KINDS or kind.id not in _DIGITS:
            raise SchemaError(
                f"column {shown(field.name)}: marked as wide integers of dtype {shown(name)}, but its type is "
                f"{str(field.type)[:80]}; expected one of {', '.join(KINDS)}, as text or decimals",
                column=field.name,
            )
        metadata = {key: value for key, value in field.metadata.items() if key != _WIDE}
        try:
            column = wide_from_text(table.column(place).cast(pa.string()).combine_chunks(), wide_type(name))
        except SchemaError as error:
            raise SchemaError(f"column {shown(field.name)}: {error}", column=field.name, rows=error.rows) from None
        table = table.set_column(place, pa.field(field.name, column.type, field.nullable, metadata), column)
    return table


def describe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the data dictionary of a frame.

    Parameters
    ----------
    frame : DataFrame
        Any frame; frames created by this toolkit have more metadata.

    Returns
    -------
    DataFrame, shape (columns of `frame`, 7)
        ``column``, ``type``, ``unit``, ``source``, ``typing`` (text, missing if not known), ``nulls`` (int64, number of
        rows) and ``meaning`` (text).

    Raises
    ------
    InputError
        If `frame` is not a DataFrame.

    Examples
    --------
    >>> import pandas as pd
    >>> describe(pd.DataFrame({"gas_used": pd.array([5, None], dtype="u128")}))[["column", "type", "nulls"]]
         column  type  nulls
    0  gas_used  u128      1
    """
    given: Any = frame
    if not isinstance(given, pd.DataFrame):
        raise InputError(f"frame must be a DataFrame, got {type(given).__name__}")
    facts = frame.attrs.get(_ATTRS, {})
    rows = [
        {
            "column": str(name),
            "type": str(getattr(dtype, "pyarrow_dtype", dtype)),
            **{key: facts.get(name, {}).get(key) for key in _SHOWN_META},
            "nulls": int(frame.iloc[:, place].isna().sum()),
            "meaning": facts.get(name, {}).get("meaning"),
        }
        for place, (name, dtype) in enumerate(frame.dtypes.items())
    ]
    text = [pa.field(name, pa.string()) for name in ("column", "type", *_SHOWN_META)]
    more = [pa.field("nulls", pa.int64()), pa.field("meaning", pa.string())]
    described = to_pandas(pa.Table.from_pylist(rows, pa.schema([*text, *more])))
    described.attrs[_ATTRS] = {}  # notebooks show it as they show the toolkit's frames: with whole sentences
    return described


def _dtype(arrow: pa.DataType) -> Any:
    """Return the pandas dtype of an Arrow type; None leaves the choice to the type or to pandas."""
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return pd.StringDtype("pyarrow")
    if isinstance(arrow, WideIntType):
        return WideIntDtype(arrow.wide.name)
    if isinstance(arrow, pa.BaseExtensionType) or pa.types.is_dictionary(arrow):
        return None
    return pd.ArrowDtype(arrow)


def _nested_dtype(arrow: pa.DataType) -> Any:
    """Return the pandas dtype of Arrow types whose names pandas cannot parse; None for others."""
    by_name = pa.types.is_nested(arrow) or pa.types.is_decimal(arrow) or pa.types.is_fixed_size_binary(arrow)
    return pd.ArrowDtype(arrow) if by_name else None


def _pandas_metadata(schema: pa.Schema) -> dict[str, Any] | None:
    """Return the metadata that pandas stored in a schema, or None."""
    if (raw := (schema.metadata or {}).get(_PANDAS)) is None:
        return None
    try:
        stored = json.loads(raw)
        return stored if all(isinstance(column["field_name"], str) for column in stored["columns"]) else None
    except (ValueError, TypeError, KeyError):
        return None


def _readable(stored: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """Replace dtype names that plain pandas cannot parse with ``object``, so that it can read the table."""
    kinds = {field.name: field.type for field in schema}
    for column in stored["columns"]:
        kind = kinds.get(column["field_name"])
        if kind is not None and (_nested_dtype(kind) or isinstance(kind, WideIntType)):
            column["numpy_type"] = "object"
    return stored


def _field_metadata(field: pa.Field) -> dict[str, str]:
    """Return the metadata of a field, without entries of Arrow and Parquet."""
    facts = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    return {key: value for key, value in facts.items() if not key.startswith(("ARROW:", "PARQUET:"))}


def _with_metadata(field: pa.Field, facts: Mapping[str, Any]) -> pa.Field:
    """Return the field with metadata of its column."""
    return field.with_metadata({key: str(value) for key, value in facts.items()}) if facts else field


def write_parquet(frame: pd.DataFrame, path: str | os.PathLike[str], *, wide: Wide = "text") -> None:
    """Write a frame to a Parquet file, atomically.

    `read_parquet` restores the frame exactly, whatever the value of `wide`. Without this package,
    ``pandas.read_parquet`` restores flat frames, but returns nested columns as Python objects and wide columns in the
    form chosen with `wide`.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns)
        Frame whose column names are unique strings.
    path : path-like
        File to write; an existing file is replaced.
    wide : {"text", "decimal", "native"}, default "text"
        Form of u128, u256, i128 and i256 columns in the file. Text can be read by every tool, and cast to ``UHUGEINT``
        in DuckDB or ``Int128`` in Polars. "decimal" is ``decimal128(38, 0)``: DuckDB, Polars and pyarrow read it as
        numbers of up to 38 digits. The native form is the smallest; other tools read it as bytes.

    Raises
    ------
    InputError
        If column names are not unique strings, `wide` is not valid, or the file cannot be written, for example because
        its folder does not exist.
    SchemaError
        If a column of Python objects has no common Arrow type; if a column has structs without fields, which Parquet
        does not support; or if a number has more than 38 digits and `wide` is "decimal".

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> supply = pd.DataFrame({"version": [1, 2], "supply": pd.array([2**100, 2**100 + 1], dtype="u128")})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(supply, f"{folder}/supply.parquet")
    ...     read_parquet(f"{folder}/supply.parquet").equals(supply)
    True
    """
    with _written(path) as file:
        write_frame(frame, file, wide=wide)


@contextmanager
def _written(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    try:
        with replacing(Path(path)) as file:
            yield file
    except OSError as error:
        raise InputError(f"{visible(path)} cannot be written: {error.strerror or error}") from None


def write_frame(frame: pd.DataFrame, file: BinaryIO, *, wide: Wide = "text") -> None:
    """Write a frame as Parquet to an open file."""
    write_table(to_arrow(frame, wide=wide), file)


def write_table(table: pa.Table, file: BinaryIO) -> None:
    """Write an Arrow table without extension types as Parquet to an open file."""
    for place, field in enumerate(table.schema):
        # pandas stores text as `large_string`; the schemas have `string`, which holds less than 2 GB.
        if pa.types.is_large_string(field.type) and table.column(place).nbytes < 2**31:
            table = table.set_column(place, field.with_type(pa.string()), table.column(place).cast(pa.string()))
    try:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True, **_encodings(table.schema))
    except pa.ArrowNotImplementedError as error:  # a struct without fields
        raise SchemaError(f"Parquet cannot store this frame: {error} Drop the column, or write CSV or JSON.") from None


def write_excel(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a frame to an Excel workbook (``.xlsx``), atomically. Requires ledger-toolkit[excel].

    ``DataFrame.to_excel`` rejects times with a time zone, which all times in the toolkit have, and rounds integers of
    more than 15 digits. `write_excel` writes times in UTC, and writes columns with such integers as text. The levels of
    the index, such as the keys of groups, are the first columns, unless it is an unnamed index of integers.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns)
        Frame whose column names are unique strings.
    path : path-like
        File to write; an existing file is replaced.

    Raises
    ------
    InputError
        If openpyxl is not installed, the name does not end in ``.xlsx``, the frame has more rows than a sheet can hold,
        or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import toolkit
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     toolkit.write_excel(pd.DataFrame({"version": [1, 2]}), f"{folder}/versions.xlsx")
    """
    name = Path(path).name
    if not name.lower().endswith(".xlsx"):
        raise InputError(f"{shorten(name)}: Excel opens a workbook only if its name ends in .xlsx; add it to the name")
    with _written(path) as file:
        write_excel_file(frame, file)


def write_excel_file(frame: pd.DataFrame, file: BinaryIO) -> None:
    """Write a frame as a workbook to an open file. Levels of its index, such as the keys of groups, become columns."""
    if any(name is not None for name in frame.index.names) or not is_integer_dtype(frame.index.dtype):
        frame = frame.reset_index(allow_duplicates=True)
    else:
        frame = frame.reset_index(drop=True)
    if len(frame) > MAX_ROWS:
        raise InputError(
            f"the frame has {len(frame):,} rows, more than the {MAX_ROWS:,} that a sheet can hold; write Parquet or CSV"
        )
    try:
        write_workbook(to_arrow(frame), file)
    except ImportError:
        raise InputError("Excel workbooks require openpyxl: pip install 'ledger-toolkit[excel]'") from None


def _encodings(schema: pa.Schema) -> dict[str, object]:
    """Return encodings that store 64-bit numbers and times as deltas, in half the space, for flat schemas."""
    if any(pa.types.is_nested(field.type) for field in schema):
        return {}
    packed = [field.name for field in schema if pa.types.is_int64(field.type) or pa.types.is_uint64(field.type)]
    packed += [field.name for field in schema if pa.types.is_timestamp(field.type)]
    rest = [field.name for field in schema if field.name not in packed]
    return {"column_encoding": dict.fromkeys(packed, "DELTA_BINARY_PACKED"), "use_dictionary": rest}


def read_parquet(path: str | os.PathLike[str], *, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a frame from a Parquet file, and restore its dtypes, index and attrs.

    Parameters
    ----------
    path : path-like
        File to read. Files written by other tools also become typed frames.
    columns : sequence of str, optional
        Columns to read; all by default.

    Returns
    -------
    DataFrame, shape (n, columns)

    Raises
    ------
    InputError
        If the file cannot be opened, is not a Parquet file, is damaged, or does not have these columns.
    SchemaError
        If a column that is marked as wide integers contains other values.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(pd.DataFrame({"version": [1, 2], "value": [True, False]}), f"{folder}/values.parquet")
    ...     read_parquet(f"{folder}/values.parquet", columns=["version"])["version"].tolist()
    [1, 2]
    """
    try:
        opened = open_to_read(path)
    except OSError as error:
        raise InputError(f"{visible(path)} cannot be read: {error.strerror or error}") from None
    with opened as source:
        try:
            with pq.ParquetFile(source, page_checksum_verification=True) as file:
                if absent := sorted(set(columns or ()) - set(file.schema_arrow.names)):
                    missing, known = (", ".join(map(repr, some)) for some in (absent, file.schema_arrow.names))
                    raise InputError(f"{path}: expected columns among {known}, got {missing}")
                table = file.read(columns=None if columns is None else list(columns), use_pandas_metadata=True)
            return to_pandas(table)
        # Arrow also raises OSError for invalid bytes, and pandas raises many kinds of errors for damaged metadata.
        except ToolkitError:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, MemoryError) as error:
            raise InputError(f"{path} is not a readable Parquet file: {error}") from None
