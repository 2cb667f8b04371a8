"""Typed columns, and frames with a fixed schema; types come from layouts or, if not known, from JSON."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from toolkit.dtypes import to_arrow, to_pandas
from toolkit.errors import SchemaError
from toolkit.frames._schema import Schema, described_field
from toolkit.move._arrow import column, field_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from toolkit.move import Layout


JSON_TEXT = "JSON text"
# Key of the metadata of columns of values whose type changes within a frame: the name that they would share.
OF = "of"
_OF_ONE_TYPE = "values of one of several types; null in the rows of the other types"

NamedColumn = tuple[pa.Field, pa.Array]


def typed_column(
    name: str, layout: Layout, values: Sequence[Any], *, source: str, typing: str, of: str = "", decoded: bool = False
) -> NamedColumn:
    """Return a column of values of one layout. None becomes null; `decoded` values were decoded with the layout.

    The ``meaning`` names the parts whose structure is not known, such as enums without variants in the ABI.
    """
    try:
        array = column(layout, values, decoded=decoded)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}", column=error.column or name, rows=error.rows) from None
    reasons = dict.fromkeys(layout.unknown())
    untyped = f"as in the node's JSON, numbers above 32 bits as text: {'; '.join(reasons)}" if reasons else ""
    meaning = "; ".join(filter(None, [_OF_ONE_TYPE if of else "", untyped]))
    return described_field(name, array.type, source=source, typing=typing, meaning=meaning, of=of), array


def kinds_of(layouts: Sequence[Layout | None], versions: Sequence[int | None]) -> list[Layout]:
    """Return the distinct layouts of rows, from the oldest version to the newest."""
    kinds = {layout for layout in layouts if layout is not None}
    if len(kinds) <= 1:  # nearly always, and a sweep has thousands of rows to sort
        return list(kinds)
    newest_last = sorted(range(len(layouts)), key=lambda row: versions[row] or 0)
    ordered = dict.fromkeys(layouts[row] for row in newest_last)
    return [layout for layout in ordered if layout is not None]


def typed_columns(
    name: str,
    layouts: Sequence[Layout | None],
    values: Sequence[Any],
    versions: Sequence[int | None],
    *,
    default: Layout,
    source: str,
    typing: str,
    of: str = "",
    widen: bool = False,
    flatten: bool = False,
) -> list[NamedColumn]:
    """Return the columns of values whose type may change from version to version.

    Parameters
    ----------
    name : str
        Name of the column, if there is only one.
    layouts : sequence of Layout or None, shape (n,)
        Layout of each value; None for a row without a value.
    values : sequence, shape (n,)
        The values. None becomes null.
    versions : sequence of int or None, shape (n,)
        Ledger version of each row.
    default : Layout
        Layout of the column if no row has a value.
    source, typing : str
        Metadata of the columns.
    of : str, optional
        The name that the column would have if all values of the frame had one type.
    widen : bool, default False
        Whether to return a single column of the newest type if every value fits it, such as a u64 in a u128. Structs
        and enums with the same name always share a column if they can, because an upgrade may add a variant.
    flatten : bool, default False
        Whether to replace struct columns with one column per field.

    Returns
    -------
    list of (Field, Array)
        One column, or one column ``name[type]`` per type, which is null in the rows of other types. A second struct of
        the same name is ``name[type #2]``.
    """
    kinds = kinds_of(layouts, versions) or [default]
    names = [kind.move_type for kind in kinds]
    single = len(kinds) == 1
    if single or (len(set(map(type, kinds))) == 1 and (widen or len(set(names)) == 1)):
        with nullcontext() if single else suppress(SchemaError):
            named = typed_column(name, kinds[-1], values, decoded=single, source=source, typing=typing, of=of)
            return flattened(named, kinds[-1]) if flatten else [named]
    columns: list[NamedColumn] = []
    about: dict[str, Any] = {"source": source, "typing": typing, "of": name, "flatten": flatten}
    for text in dict.fromkeys(names):
        group = [kind for kind, its_name in zip(kinds, names, strict=True) if its_name == text]
        parts = [group] if len(group) < len(kinds) else [[kind] for kind in group]
        for number, part in enumerate(parts, 1):
            own = [layout if layout in part else None for layout in layouts]
            own_values = [None if layout is None else value for layout, value in zip(own, values, strict=True)]
            label = f"{name}[{text} #{number}]" if number > 1 else f"{name}[{text}]"
            columns += typed_columns(label, own, own_values, versions, default=part[0], **about)
    return columns


def inferred_column(name: str, values: Sequence[Any], *, source: str) -> NamedColumn:
    """Return a column of JSON values of unknown type.

    Strings of digits remain strings. Values without a common type, or with fractions, which Move values do not have,
    become JSON text.
    """
    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        array = None
    if array is None or _has_floats(array.type):
        array = pa.array([None if value is None else compact_json(value) for value in values], type=pa.string())
        return described_field(name, array.type, source=source, typing="inferred", meaning=JSON_TEXT), array
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    return described_field(name, array.type, source=source, typing="inferred"), array


def _has_floats(kind: pa.DataType) -> bool:
    parts = [kind.field(place).type for place in range(kind.num_fields)]
    return pa.types.is_floating(kind) or any(map(_has_floats, parts))


def flattened(named: NamedColumn, layout: Layout | None) -> list[NamedColumn]:
    """Return a struct column as one column per field, named ``column.field``; return other columns unchanged."""
    field, array = named
    if not pa.types.is_struct(field.type):
        return [named]
    if layout is None:
        parts = [(child.name, part) for child, part in zip(field.type, array.flatten(), strict=True)]
    else:
        parts = field_columns(layout, array)
    return [(pa.field(f"{field.name}.{name}", part.type, metadata=field.metadata), part) for name, part in parts]


def compact_json(value: Any) -> str:
    """Return a JSON value as text without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def rows_frame(schema: Schema, values: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return a frame with all columns of a schema, even if it has no rows; columns without values are null."""
    return to_pandas(schema.table(values))


def frame_of_rows(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as a frame with all columns of a schema; missing fields are null."""
    return to_pandas(schema.table_of_rows(rows))


def plain_columns(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return columns of a frame as lists of Python values, with exact ints, and None for missing values."""
    table = to_arrow(frame[list(names)])
    return {name: table[name].to_pylist() for name in names}


def plain_rows(frame: pd.DataFrame, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a frame, or some of its columns, as Python values, like `plain_columns`."""
    columns = plain_columns(frame, list(frame.columns) if names is None else names)
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
