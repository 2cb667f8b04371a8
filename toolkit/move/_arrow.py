"""Arrow types and columns of layouts. The only module of the package that imports pyarrow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from toolkit import dtypes
from toolkit.dtypes._arrow import wide_type
from toolkit.errors import SchemaError, ToolkitError
from toolkit.move._codecs import VARIANT, Mismatch, json_encoder
from toolkit.move._containers import EnumOf, Fields, FunctionValue, Layout, OptionOf, StructOf, Untyped, VectorOf
from toolkit.move._ids import parse_address
from toolkit.move._scalars import Address, Bool, Bytes, Int, ObjectOf, String, UInt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_MAX_NATIVE_BITS = 64
_MAX_ROWS = 5
# What building a column raises for a value of the wrong shape; `_column_error` then finds the value.
_BUILD_ERRORS = (
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
_VEC = "vec"


def arrow_type(layout: Layout, *, nested: bool = False) -> pa.DataType:  # noqa: PLR0911  # one case per kind
    """Return the Arrow type of a column of a layout.

    Parameters
    ----------
    layout : Layout
        Layout of the values.
    nested : bool, default False
        Whether the column is inside a list or struct, where integers wider than 64 bits are decimal strings.

    Returns
    -------
    pyarrow.DataType
        Integers have their own width and sign, wide ones an extension type of the toolkit; addresses and strings are
        string, ``vector<u8>`` is binary, a vector is a list, a struct is a struct, an Option has the type of its
        element, an enum is a struct of ``__variant__`` and the fields of all variants, and untyped values are string
        (JSON text).

    Examples
    --------
    >>> from toolkit.move import OptionOf, String, UInt, VectorOf
    >>> arrow_type(OptionOf(UInt(64))), arrow_type(VectorOf(String()))
    (DataType(uint64), ListType(list<item: string>))
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
        case OptionOf(OptionOf() as element):
            # An Option inside an Option needs a struct: null cannot represent both kinds of "none".
            return pa.struct([pa.field(_VEC, pa.list_(arrow_type(element, nested=True)))])
        case OptionOf(element):
            return arrow_type(element, nested=nested)
        case StructOf(_, fields):
            return pa.struct([pa.field(name, arrow_type(inner, nested=True)) for name, inner in fields])
        case EnumOf():
            fields_of = [pa.field(name, arrow_type(inner, nested=True)) for name, inner, _ in _enum_columns(layout)]
            return pa.struct([pa.field(VARIANT, pa.string()), *fields_of])
        case Address() | ObjectOf() | String() | FunctionValue() | Untyped():
            return pa.string()
        case _:
            assert_never(layout)


def _integer_type(layout: UInt | Int, *, nested: bool) -> pa.DataType:
    name = layout.move_type
    if layout.bits > _MAX_NATIVE_BITS:
        return pa.string() if nested else wide_type(name)
    return pa.type_for_alias(name.replace("u", "uint") if isinstance(layout, UInt) else name.replace("i", "int"))


def _enum_columns(layout: EnumOf) -> list[tuple[str, Layout, dict[str, str]]]:
    """Return the columns of an enum: name, layout, and the field of each variant that it contains.

    Variants share a column if a field has the same name and the same layout in all of them; otherwise the name of the
    column starts with the name of the variant.
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
    """Build a column of Python values that share a layout.

    Parameters
    ----------
    layout : Layout
        Layout of the values.
    values : sequence, shape (n,)
        Python values as `decode_json` and `decode_bcs` return them; None is null.

    Returns
    -------
    pyarrow.Array, shape (n,)
        Of type ``arrow_type(layout)``.

    Raises
    ------
    SchemaError
        If a value does not fit the layout; the message names the first one, ``.rows`` the first five rows.

    Examples
    --------
    >>> from toolkit.move import UInt, VectorOf
    >>> column(VectorOf(UInt(128)), [[1, 2**127], None]).to_pylist()
    [['1', '170141183460469231731687303715884105728'], None]
    """
    values = list(values)
    try:
        return _build(layout, values, nested=False)
    except _BUILD_ERRORS:
        raise _column_error(layout, values) from None


def _column_error(layout: Layout, values: list[Any]) -> SchemaError:
    """Return the error for a column that could not be built, after checking value by value."""
    encode = json_encoder(layout)
    rows: list[int] = []
    text = f"the values do not fit a column of {arrow_type(layout)}"
    for row, value in enumerate(values):
        if value is None:
            continue
        try:
            encode(value)
        except Mismatch as mismatch:
            if not rows:
                text = f"row {row}: {mismatch.located('value')}: {mismatch.text}"
            rows.append(row)
            if len(rows) == _MAX_ROWS:
                break
    return SchemaError(text, rows=rows)


def _check_types(values: Iterable[Any], *kinds: type) -> None:
    """Raise for values of other types; Arrow truncates a float to an integer."""
    others = set(map(type, values)) - {*kinds, type(None)}
    if others:
        raise TypeError


def _build(layout: Layout, values: list[Any], *, nested: bool) -> pa.Array:  # noqa: C901, PLR0911  # one case per kind
    match layout:
        case Bool():
            _check_types(values, bool)
            return pa.array(values, pa.bool_())
        case UInt() | Int():
            return _integers(layout, values, nested=nested)
        case Address() | ObjectOf():
            return pa.array([None if v is None else parse_address(v) for v in values], pa.string())
        case Bytes():
            _check_types(values, bytes, bytearray)
            return pa.array(values, pa.binary())
        case String():
            _check_types(values, str)
            return pa.array(values, pa.string())
        case VectorOf(element):
            _check_types(values, list, tuple)
            return _lists(element, values)
        case OptionOf(OptionOf()):
            return _nested_options(layout, values)
        case OptionOf(element):
            return _build(element, values, nested=nested)
        case StructOf(_, fields):
            return _structs(fields, values)
        case EnumOf():
            return _enums(layout, values)
        case FunctionValue() | Untyped():
            return pa.array([None if v is None else _json_text(v) for v in values], pa.string())
        case _:
            assert_never(layout)


def _json_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _integers(layout: UInt | Int, values: list[Any], *, nested: bool) -> pa.Array:
    _check_types(values, int)
    kind = _integer_type(layout, nested=nested)
    if layout.bits <= _MAX_NATIVE_BITS:
        return pa.array(values, kind)
    if not nested:
        return dtypes.wide_from_ints(values, kind)
    low, high = layout.range
    present = [value for value in values if value is not None]
    if present and not (low <= min(present) and max(present) <= high):
        raise ValueError
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _child(layout: Layout, values: list[Any], missing: int) -> pa.Array:
    """Build a column inside another; only an Option, or a row that is null in the outer column, may be null."""
    child = _build(layout, values, nested=True)
    if child.null_count != missing and not isinstance(layout, (OptionOf, Untyped, FunctionValue)):
        raise ValueError
    return child


def _lists(element: Layout, values: list[Any]) -> pa.ListArray:
    flat = [item for value in values if value is not None for item in value]
    return _list_array(_child(element, flat, 0), [None if value is None else len(value) for value in values])


def _list_array(child: pa.Array, lengths: list[int | None]) -> pa.ListArray:
    """Return a list column of the items, cut into lists of the given lengths; None is a null list."""
    sizes = pa.array(lengths, pa.int32())
    ends = pc.cumulative_sum(sizes.fill_null(0))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.ListArray.from_arrays(offsets, child, mask=sizes.is_null() if sizes.null_count else None)


def _nested_options(layout: OptionOf, values: list[Any]) -> pa.StructArray:
    """Build the column of an Option of an Option, whose values are None or ``{"vec": [element]}``."""
    child = _build(layout.element, [layout.some(value) for value in values if value is not None], nested=True)
    lists = _list_array(child, [None if value is None else 1 for value in values])
    return _struct_array([(_VEC, lists)], values)


def _struct_array(children: list[tuple[str, pa.Array]], values: list[Any]) -> pa.StructArray:
    """Return a struct column of the given columns; rows that are None are null."""
    fields = [pa.field(name, child.type) for name, child in children]
    if not fields:
        return pa.array([None if value is None else {} for value in values], pa.struct([]))
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays([child for _, child in children], fields=fields, mask=mask)


def _structs(fields: Fields, values: list[Any]) -> pa.StructArray:
    _check_types(values, dict)
    if any(value is not None and len(value) != len(fields) for value in values):
        raise ValueError
    missing = values.count(None)
    children = [
        (name, _child(layout, [None if value is None else value[name] for value in values], missing))
        for name, layout in fields
    ]
    return _struct_array(children, values)


def _enums(layout: EnumOf, values: list[Any]) -> pa.StructArray:
    _check_types(values, dict)
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
    """Return the fields of a column of structs or enums as separate columns.

    Parameters
    ----------
    layout : Layout
        Layout of the structs.
    array : pyarrow.StructArray, shape (n,)
        A column that `column` built.

    Returns
    -------
    list of (str, pyarrow.Array)
        Name and column of shape (n,) of each field, null in the rows in which the struct is null. Wide integers, which
        are decimal strings inside a struct, have an extension type of the toolkit.

    Raises
    ------
    TypeError
        If the layout is not a struct or an enum.

    Examples
    --------
    >>> from toolkit.move import StructOf, UInt, parse_type_tag
    >>> layout = StructOf(parse_type_tag("0x1::m::S"), (("n", UInt(8)),))
    >>> [(name, array.to_pylist()) for name, array in field_columns(layout, column(layout, [{"n": 5}, None]))]
    [('n', [5, None])]
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
            raise TypeError(f"expected a column of structs or enums, got {array.type}")
    names = [field.name for field in array.type]
    return [(name, _widened(*pair)) for name, *pair in zip(names, inner, array.flatten(), strict=True)]


def _widened(layout: Layout, array: pa.Array) -> pa.Array:
    """Return the column of a field with the type that it has outside of a struct."""
    wanted = arrow_type(layout)
    return dtypes.wide_from_text(array, wanted) if isinstance(wanted, dtypes.WideIntType) else array
