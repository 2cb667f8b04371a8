"""Arrow types and columns of layouts, and the way back. The one module here that imports pyarrow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from toolkit import dtypes
from toolkit.errors import SchemaError, ToolkitError
from toolkit.move._mismatch import Mismatch
from toolkit.move.address import parse_address
from toolkit.move.json_reading import VARIANT, integer_range
from toolkit.move.json_writing import json_encoder
from toolkit.move.layout import (
    Address,
    Bool,
    Bytes,
    EnumOf,
    FunctionValue,
    Int,
    Layout,
    ObjectOf,
    OptionOf,
    String,
    StructOf,
    UInt,
    Untyped,
    VectorOf,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["arrow_type", "column", "field_columns", "from_column"]

_WIDEST_NATIVE = 64
_ROWS_NAMED = 5
_REFUSALS = (
    Mismatch,
    ToolkitError,
    pa.ArrowException,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""All a value of the wrong shape can raise on its way into a column; the slow road then says what was wrong."""
_VEC = "vec"


def arrow_type(layout: Layout, *, nested: bool = False) -> pa.DataType:  # noqa: PLR0911  # one case per kind
    """Return the Arrow type of a column of a layout.

    Parameters
    ----------
    layout : Layout
        What the values are.
    nested : bool, default False
        Whether the column stands inside a list or struct: integers wider than 64 bits are decimal strings there.

    Returns
    -------
    pyarrow.DataType
        Integers of their own width and sign, wide ones as the toolkit's extension types; addresses and texts as
        string, ``vector<u8>`` as binary, vectors as list, structs as struct, an Option as its element's type, an
        enum as a struct of all variants' fields after ``__variant__``, anything untyped as string (JSON text).
    """
    match layout:
        case Bool():
            return pa.bool_()
        case UInt() | Int():
            return _integer_type(layout, nested=nested)
        case Bytes():
            return pa.binary()
        case VectorOf(element):
            return pa.list_(arrow_type(element, nested=True))
        case OptionOf(OptionOf(element)):
            # An Option inside an Option keeps its {"vec": ..}: two kinds of nothing need two places.
            return pa.struct([pa.field(_VEC, pa.list_(_kept_type(element)))])
        case OptionOf(element):
            return arrow_type(element, nested=nested)
        case StructOf(_, fields):
            return pa.struct([pa.field(name, arrow_type(inner, nested=True)) for name, inner in fields])
        case EnumOf():
            fields_of = [pa.field(name, arrow_type(inner, nested=True)) for name, inner, _ in _enum_columns(layout)]
            return pa.struct([pa.field(VARIANT, pa.string()), *fields_of])
        case Address() | ObjectOf() | String() | FunctionValue() | Untyped():
            return pa.string()


def _kept_type(element: Layout) -> pa.DataType:
    """Return the type of what a kept ``{"vec": [x]}`` holds."""
    if isinstance(element, OptionOf):
        return pa.struct([pa.field(_VEC, pa.list_(_kept_type(element.element)))])
    return arrow_type(element, nested=True)


def _integer_type(layout: UInt | Int, *, nested: bool) -> pa.DataType:
    name = f"{'u' if isinstance(layout, UInt) else 'i'}{layout.bits}"
    if layout.bits > _WIDEST_NATIVE:
        return pa.string() if nested else dtypes.wide_type(name)
    return pa.type_for_alias(name.replace("u", "uint") if isinstance(layout, UInt) else name.replace("i", "int"))


def _enum_columns(layout: EnumOf) -> list[tuple[str, Layout, dict[str, str]]]:
    """Return the columns of an enum: name, layout, and which field it is of which variant.

    Variants share a column where a field has the same name and the same layout in each; else the variant's name
    stands before it.
    """
    layouts: dict[str, set[Layout]] = {}
    for _, fields in layout.variants:
        for name, inner in fields:
            layouts.setdefault(name, set()).add(inner)
    columns: dict[str, tuple[Layout, dict[str, str]]] = {}
    for variant, fields in layout.variants:
        for name, inner in fields:
            key = name if len(layouts[name]) == 1 else f"{variant}.{name}"
            columns.setdefault(key, (inner, {}))[1][variant] = name
    return [(key, inner, owners) for key, (inner, owners) in columns.items()]


def column(layout: Layout, values: Sequence[Any]) -> pa.Array:
    """Build the column of Python values that share a layout.

    Parameters
    ----------
    layout : Layout
        What the values are.
    values : sequence
        Python values as `toolkit.move.values.decode_json` gives them; None is null.

    Returns
    -------
    pyarrow.Array, shape (len(values),)
        Of type ``arrow_type(layout)``.

    Raises
    ------
    SchemaError
        If a value does not fit; ``.rows`` are the first rows that do not.
    """
    values = list(values)
    try:
        return _build(layout, values, nested=False)
    except _REFUSALS:
        raise _explained(layout, values) from None


def _explained(layout: Layout, values: list[Any]) -> SchemaError:
    """Return the error for a column that could not be built: the slow road, value by value."""
    encode = json_encoder(layout)
    rows: list[int] = []
    text = f"the values are no column of {arrow_type(layout)}"
    for row, value in enumerate(values):
        if value is None:
            continue
        try:
            encode(value)
        except Mismatch as mismatch:
            if not rows:
                text = f"row {row}: {mismatch.located('value')}: {mismatch.text}"
            rows.append(row)
            if len(rows) == _ROWS_NAMED:
                break
    return SchemaError(text, rows=rows)


def _only(values: Iterable[Any], *kinds: type) -> None:
    """Refuse values of other types: Arrow would turn a float into an integer by cutting it."""
    others = set(map(type, values)) - {*kinds, type(None)}
    if others:
        raise TypeError


def _build(layout: Layout, values: list[Any], *, nested: bool) -> pa.Array:  # noqa: C901, PLR0911  # one case per kind
    match layout:
        case Bool():
            _only(values, bool)
            return pa.array(values, pa.bool_())
        case UInt() | Int():
            return _integers(layout, values, nested=nested)
        case Address() | ObjectOf():
            return pa.array([None if v is None else parse_address(v) for v in values], pa.string())
        case Bytes():
            _only(values, bytes, bytearray)
            return pa.array(values, pa.binary())
        case String():
            _only(values, str)
            return pa.array(values, pa.string())
        case VectorOf(element):
            _only(values, list, tuple)
            return _lists(element, values)
        case OptionOf(OptionOf(element)):
            return _kept_options(element, values)
        case OptionOf(element):
            return _build(element, values, nested=nested)
        case StructOf(_, fields):
            return _structs(fields, values)
        case EnumOf():
            return _enums(layout, values)
        case FunctionValue() | Untyped():
            return pa.array([None if v is None else _json_text(v) for v in values], pa.string())


def _json_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _integers(layout: UInt | Int, values: list[Any], *, nested: bool) -> pa.Array:
    _only(values, int)
    kind = _integer_type(layout, nested=nested)
    if layout.bits <= _WIDEST_NATIVE:
        return pa.array(values, kind)
    if not nested:
        return dtypes.wide_from_ints(values, kind)
    low, high = integer_range(layout)
    present = [value for value in values if value is not None]
    if present and not (low <= min(present) and max(present) <= high):
        raise ValueError
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _child(layout: Layout, values: list[Any], missing: int) -> pa.Array:
    """Build a column inside another; only an Option, or a row that is not there, may be null."""
    child = _build(layout, values, nested=True)
    if child.null_count != missing and not isinstance(layout, (OptionOf, Untyped, FunctionValue)):
        raise ValueError
    return child


def _lists(element: Layout, values: list[Any]) -> pa.ListArray:
    flat = [item for value in values if value is not None for item in value]
    return _list_array(_child(element, flat, 0), [None if value is None else len(value) for value in values])


def _list_array(child: pa.Array, lengths: list[int | None]) -> pa.ListArray:
    """Put items back into lists of these lengths; None is a null list."""
    sizes = pa.array(lengths, pa.int32())
    ends = pc.cumulative_sum(sizes.fill_null(0))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.ListArray.from_arrays(offsets, child, mask=sizes.is_null() if sizes.null_count else None)


def _kept_options(element: Layout, values: list[Any]) -> pa.StructArray:
    """Build the column of ``{"vec": [...]}``, for an Option inside an Option."""
    inner = [None if value is None else value[_VEC] for value in values]
    _only(inner, list)
    if any(value is not None and (len(value) != 1 or len(value[_VEC]) > 1) for value in values):
        raise ValueError
    flat = [item for items in inner if items is not None for item in items]
    if isinstance(element, OptionOf):
        child: pa.Array = _kept_options(element.element, flat)
        if child.null_count:
            raise ValueError
    else:
        child = _child(element, flat, 0)
    lists = _list_array(child, [None if items is None else len(items) for items in inner])
    return _struct_array([(_VEC, lists)], values)


def _struct_array(children: list[tuple[str, pa.Array]], values: list[Any]) -> pa.StructArray:
    """Put columns side by side; rows that are None become null."""
    fields = [pa.field(name, child.type) for name, child in children]
    if not fields:
        return pa.array([None if value is None else {} for value in values], pa.struct([]))
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays([child for _, child in children], fields=fields, mask=mask)


def _structs(fields: tuple[tuple[str, Layout], ...], values: list[Any]) -> pa.StructArray:
    _only(values, dict)
    if any(value is not None and len(value) != len(fields) for value in values):
        raise ValueError
    missing = values.count(None)
    children = [
        (name, _child(layout, [None if value is None else value[name] for value in values], missing))
        for name, layout in fields
    ]
    return _struct_array(children, values)


def _enums(layout: EnumOf, values: list[Any]) -> pa.StructArray:
    _only(values, dict)
    names = [None if value is None else value[VARIANT] for value in values]
    sizes = {name: len(fields) + 1 for name, fields in layout.variants}
    if any(value is not None and len(value) != sizes[value[VARIANT]] for value in values):
        raise ValueError
    children = [(VARIANT, pa.array(names, pa.string()))]
    for key, inner, owners in _enum_columns(layout):
        cells = [
            value[owners[name]] if value is not None and name in owners else None
            for value, name in zip(values, names, strict=True)
        ]
        missing = sum(name not in owners for name in names)
        children.append((key, _child(inner, cells, missing)))
    return _struct_array(children, values)


def field_columns(layout: Layout, array: pa.StructArray) -> list[tuple[str, pa.Array]]:
    """Return the fields of a column of structs or enums as columns of their own.

    Parameters
    ----------
    layout : Layout
        What the structs are.
    array : pyarrow.StructArray, shape (n,)
        A column that `column` built.

    Returns
    -------
    list of (str, pyarrow.Array)
        Name and column of shape (n,) of each field, null where the struct is; wide integers, which are decimal
        strings inside a struct, are the toolkit's extension types.
    """
    match layout:
        case OptionOf(OptionOf()):
            return [(_VEC, array.flatten()[0])]
        case OptionOf(element):
            return field_columns(element, array)
        case StructOf(_, fields):
            inner = [kind for _, kind in fields]
        case EnumOf():
            inner = [String(), *(kind for _, kind, _ in _enum_columns(layout))]
        case _:
            raise TypeError(f"a column of {array.type} has no fields")
    names = [field.name for field in array.type]
    return [(name, _widened(*pair)) for name, *pair in zip(names, inner, array.flatten(), strict=True)]


def _widened(layout: Layout, array: pa.Array) -> pa.Array:
    """Return a field's column as it is outside of a struct."""
    wanted = arrow_type(layout)
    return dtypes.wide_from_text(array, wanted) if isinstance(wanted, dtypes.WideIntType) else array


def from_column(layout: Layout, array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the Python values of a column that `column` built, None for nulls.

    Parameters
    ----------
    layout : Layout
        What the values are.
    array : pyarrow.Array or ChunkedArray
        Of type ``arrow_type(layout)``, perhaps read back from Parquet.

    Returns
    -------
    list
        Equal to the values the column was built from.

    Raises
    ------
    SchemaError
        If the column has another type.
    """
    wanted = arrow_type(layout)
    if array.type != wanted:
        raise SchemaError(f"a column of {array.type} holds no values of {wanted}")
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in _read(layout, chunk)]
    return _read(layout, array)


def _read(layout: Layout, array: pa.Array) -> list[Any]:  # noqa: PLR0911  # one case per kind
    """Return the Python values of one array, which may be nested."""
    match layout:
        case UInt(bits) | Int(bits) if bits > _WIDEST_NATIVE:
            if pa.types.is_string(array.type):
                return [None if text is None else int(text) for text in array.to_pylist()]
            return dtypes.wide_to_ints(array)
        case VectorOf(element):
            return _regrouped(_read(element, array.flatten()), array)
        case OptionOf(OptionOf(element)):
            return _read_kept(element, array)
        case OptionOf(element):
            return _read(element, array)
        case StructOf(_, fields):
            children = [_read(inner, child) for (_, inner), child in zip(fields, array.flatten(), strict=True)]
            names = [name for name, _ in fields]
            rows = zip(*children, strict=True) if children else ((),) * len(array)
            return _present(array, [dict(zip(names, row, strict=True)) for row in rows])
        case EnumOf():
            return _read_enums(layout, array)
        case FunctionValue() | Untyped():
            return [None if text is None else json.loads(text) for text in array.to_pylist()]
        case _:
            return list(array.to_pylist())


def _present(array: pa.Array, values: list[Any]) -> list[Any]:
    """Put None where the array is null."""
    if not array.null_count:
        return values
    valid = array.is_valid().to_pylist()
    return [value if there else None for value, there in zip(values, valid, strict=True)]


def _regrouped(flat: list[Any], array: pa.ListArray) -> list[Any]:
    """Cut the items of a list column back into its lists."""
    out: list[Any] = []
    start = 0
    for length in pc.list_value_length(array).to_pylist():
        if length is None:
            out.append(None)
        else:
            out.append(flat[start : start + length])
            start += length
    return out


def _read_kept(element: Layout, array: pa.StructArray) -> list[Any]:
    (lists,) = array.flatten()
    items = lists.flatten()
    flat = _read_kept(element.element, items) if isinstance(element, OptionOf) else _read(element, items)
    return _present(array, [{_VEC: group} for group in _regrouped(flat, lists)])


def _read_enums(layout: EnumOf, array: pa.StructArray) -> list[Any]:
    names, *children = array.flatten()
    columns = {key: _read(inner, child) for (key, inner, _), child in zip(_enum_columns(layout), children, strict=True)}
    places: dict[str, dict[str, str]] = {name: {} for name, _ in layout.variants}
    for key, _, owners in _enum_columns(layout):
        for variant, field in owners.items():
            places[variant][field] = key
    declared = dict(layout.variants)
    out: list[Any] = []
    for row, name in enumerate(names.to_pylist()):
        if name is None:
            out.append(None)
            continue
        fields = {field: columns[places[name][field]][row] for field, _ in declared[name]}
        out.append({VARIANT: name, **fields})
    return out
