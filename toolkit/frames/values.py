"""Columns of Move values: from layouts where they are known, inferred from JSON where not. No I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from toolkit.errors import SchemaError
from toolkit.frames.schema import described_field
from toolkit.move.arrow import column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.move.layout import Layout

__all__ = ["JSON_TEXT", "compact_json", "flattened", "inferred_column", "text_column", "typed_column"]

JSON_TEXT = "JSON text"

NamedColumn = tuple[pa.Field, pa.Array]


def typed_column(name: str, layout: Layout, values: Sequence[Any], *, source: str, typing: str) -> NamedColumn:
    """Build a column of values that share a layout; None is null."""
    try:
        array = column(layout, values)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}", column=error.column or name, rows=error.rows) from error
    return described_field(name, array.type, source=source, typing=typing), array


def inferred_column(name: str, values: Sequence[Any], *, source: str) -> NamedColumn:
    """Build a column of JSON values of no known type: digit strings stay strings, what disagrees becomes JSON text."""
    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        array = pa.array([None if value is None else compact_json(value) for value in values], type=pa.string())
        return described_field(name, array.type, source=source, typing="inferred", meaning=JSON_TEXT), array
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    return described_field(name, array.type, source=source, typing="inferred"), array


def text_column(name: str, texts: Sequence[str | None], *, source: str) -> NamedColumn:
    """Build a column of JSON text."""
    array = pa.array(texts, type=pa.string())
    return described_field(name, array.type, source=source, typing="untyped", meaning=JSON_TEXT), array


def flattened(columns: list[NamedColumn]) -> list[NamedColumn]:
    """Replace each struct column by one column per field, named ``column.field``."""
    flat: list[NamedColumn] = []
    for field, array in columns:
        if not pa.types.is_struct(field.type):
            flat.append((field, array))
            continue
        parts = pa.StructArray.flatten(array)
        about = field.metadata or {}
        for child, part in zip(field.type, parts, strict=True):
            flat.append((pa.field(f"{field.name}.{child.name}", child.type, metadata=about), part))
    return flat


def compact_json(value: Any) -> str:
    """Return a JSON value as text without spaces, keys as they stand."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
