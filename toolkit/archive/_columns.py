"""Columns that have one type in all files of a table, however the types of the ledger change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import pyarrow as pa


def with_columns_of(before: pa.Schema, added: pa.Schema) -> pa.Schema:
    """Return the columns of an earlier file, then the columns that only the added rows have.

    A column whose type has changed is added under another name, such as ``name[type]``, so that each column has the
    same type in all files. See `in_columns`.
    """
    fields = {field.name: field for field in before}
    for field in added:
        name = _name_among(fields, field)
        fields.setdefault(name, field.with_name(name))
    return pa.schema(list(fields.values()))


def in_columns(schema: pa.Schema, table: pa.Table) -> pa.Table:
    """Return rows in the columns of `with_columns_of`; columns that they lack are null."""
    fields = {field.name: field for field in schema}
    columns = {_name_among(fields, field): table[field.name] for field in table.schema}
    arrays = [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def with_all_columns(parts: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of tables whose columns differ."""
    schema = parts[0].schema
    for part in parts[1:]:
        schema = with_columns_of(schema, part.schema)
    return pa.concat_tables([in_columns(schema, part) for part in parts])


def _name_among(fields: Mapping[str, pa.Field], field: pa.Field) -> str:
    """Return the name under which a column is stored: the first that is free or has its type."""
    return next(name for name in _labels(field) if _kind(fields.get(name, field)) == _kind(field))


def _labels(field: pa.Field) -> Iterator[str]:
    """Yield possible names for a column, in order of preference."""
    yield field.name
    if not pa.types.is_nested(field.type):
        wide, kind = _kind(field)
        yield f"{field.name}[{wide or kind}]"
    yield from (f"{field.name}[#{number}]" for number in count(2))  # the text of a struct is as long as its fields


def _kind(field: pa.Field) -> tuple[str, pa.DataType]:
    """Return the type of a column; for wide integers stored as text, also the integer type."""
    return (field.metadata or {}).get(b"wide", b"").decode(), _stored_type(field.type)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """Return a type in the one form in which files have it: pandas and Arrow name the items of lists differently."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _stored_type(field.type)) for field in kind])
    if pa.types.is_nested(kind):  # a list, of whichever layout
        return pa.list_(pa.field("element", _stored_type(kind.value_type)))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return kind
