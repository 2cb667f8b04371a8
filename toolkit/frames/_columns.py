"""Typed columns and frames of a fixed schema; types come from layouts if known, else they are inferred from JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from toolkit.dtypes import to_arrow, to_pandas
from toolkit.errors import SchemaError
from toolkit.frames._schema import described_field
from toolkit.move import EnumOf, OptionOf, StructOf, Untyped, VectorOf, column, field_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from toolkit.frames._schema import Schema
    from toolkit.move import Layout

__all__ = [
    "JSON_TEXT",
    "compact_json",
    "flattened",
    "inferred_column",
    "plain_columns",
    "rows_frame",
    "text_column",
    "typed_column",
]

JSON_TEXT = "JSON text"

NamedColumn = tuple[pa.Field, pa.Array]


def typed_column(name: str, layout: Layout, values: Sequence[Any], *, source: str, typing: str) -> NamedColumn:
    """Return a column of values of one layout; None becomes null.

    The field's ``meaning`` names the parts whose structure is not known, such as enums without variants in the ABI.
    """
    try:
        array = column(layout, values)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}", column=error.column or name, rows=error.rows) from None
    return described_field(name, array.type, source=source, typing=typing, meaning=_untyped_parts(layout)), array


def _untyped_parts(layout: Layout) -> str:
    """Return a note about the parts of a layout that are not known; empty if all are."""
    reasons = dict.fromkeys(_reasons(layout))
    return f"as in the node's JSON, numbers above 32 bits as text: {'; '.join(reasons)}" if reasons else ""


def _reasons(layout: Layout) -> Iterator[str]:
    match layout:
        case Untyped(_, reason):
            yield reason
        case VectorOf(element) | OptionOf(element):
            yield from _reasons(element)
        case StructOf(_, fields):
            for _, inner in fields:
                yield from _reasons(inner)
        case EnumOf(_, variants):
            for _, fields in variants:
                for _, inner in fields:
                    yield from _reasons(inner)


def inferred_column(name: str, values: Sequence[Any], *, source: str) -> NamedColumn:
    """Return a column of JSON values of unknown type.

    Strings of digits stay strings. Values without a common type, or with fractions, which Move values do not have,
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


def text_column(name: str, texts: Sequence[str | None], *, source: str) -> NamedColumn:
    """Return a column of JSON text."""
    array = pa.array(texts, type=pa.string())
    return described_field(name, array.type, source=source, typing="untyped", meaning=JSON_TEXT), array


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


def plain_columns(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return columns of a frame as lists of Python values, with exact ints, and None for missing values."""
    table = to_arrow(frame[list(names)])
    return {name: table[name].to_pylist() for name in names}
