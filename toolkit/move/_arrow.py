"""Arrow types and columns for layouts. No other module of `toolkit.move` imports pyarrow."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

import pyarrow as pa

from toolkit import dtypes
from toolkit.dtypes._arrow import wide_type
from toolkit.errors import SchemaError
from toolkit.move._codecs import VARIANT, Mismatch, codec_of
from toolkit.move._containers import EnumOf, FunctionValue, Layout, OptionOf, StructOf, Untyped, VectorOf
from toolkit.move._scalars import Address, Bool, Bytes, Int, ObjectOf, String, UInt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    _Cell: TypeAlias = Callable[[Any], Any]


_MAX_NATIVE_BITS = 64  # Arrow's integers end there
_MAX_ROWS = 5  # misfits that one error names
_VEC = "vec"


def arrow_type(layout: Layout, *, nested: bool = False) -> pa.DataType:
    """Return the Arrow type of a column whose values have a layout.

    Parameters
    ----------
    layout : Layout
        Layout of the values.
    nested : bool, default False
        Whether the column is inside a list or struct, where integers wider than 64 bits are decimal strings.

    Returns
    -------
    pyarrow.DataType
        Integers retain their width and sign; those wider than 64 bits have an extension type of the toolkit. Addresses
        and strings are strings, ``vector<u8>`` is binary, other vectors are lists, and structs are structs. An Option
        has the type of its element. An enum is a struct of ``__variant__`` and the fields of all variants. Untyped
        values are strings of JSON text.

    Examples
    --------
    >>> from toolkit.move import OptionOf, String, UInt, VectorOf
    >>> arrow_type(OptionOf(UInt(64))), arrow_type(VectorOf(String()))
    (DataType(uint64), ListType(list<item: string>))
    """
    return _form(layout, nested=nested)[0]


def _form(layout: Layout, *, nested: bool = True) -> tuple[pa.DataType, _Cell | None]:  # noqa: C901, PLR0911 - one per kind
    """Return the Arrow type, and the function that converts a value (not None) to Arrow input, or None without one."""
    match layout:
        case Bool():
            return pa.bool_(), None
        case UInt() | Int() if layout.bits > _MAX_NATIVE_BITS:
            return (pa.string(), str) if nested else (wide_type(layout.move_type), None)
        case UInt() | Int():
            return pa.type_for_alias(f"{'u' if isinstance(layout, UInt) else ''}int{layout.bits}"), None
        case Bytes():
            return pa.binary(), None
        case Address() | ObjectOf() | String():
            return pa.string(), None
        case FunctionValue() | Untyped():
            return pa.string(), _json_text
        case VectorOf(element):
            kind, cell = _form(element)
            return pa.list_(kind), cell and partial(_list_cells, cell)
        case OptionOf(OptionOf() as element):
            # An Option inside an Option needs a struct: null cannot represent both kinds of "none".
            return _struct_form([(_VEC, VectorOf(element))])
        case OptionOf(element):
            return _form(element, nested=nested)
        case StructOf(_, fields):
            return _struct_form(fields)
        case EnumOf():
            return _enum_form(layout)
        case _:
            assert_never(layout)


def _struct_form(fields: Iterable[tuple[str, Layout]]) -> tuple[pa.DataType, _Cell | None]:
    forms = [(name, *_form(inner)) for name, inner in fields]
    cells = [(name, cell) for name, _, cell in forms if cell]
    return pa.struct([(name, kind) for name, kind, _ in forms]), partial(_struct_cells, cells) if cells else None


def _enum_form(layout: EnumOf) -> tuple[pa.DataType, _Cell]:
    kinds = [(VARIANT, pa.string())]
    cells_of: dict[str, dict[str, tuple[str, _Cell]]] = {name: {} for name, _ in layout.variants}
    for key, inner, owners in _enum_columns(layout):
        kind, cell = _form(inner)
        kinds.append((key, kind))
        for variant, name in owners.items():
            cells_of[variant][name] = key, cell or _same
    return pa.struct(kinds), partial(_enum_cells, cells_of)


def _enum_columns(layout: EnumOf) -> list[tuple[str, Layout, dict[str, str]]]:
    """Return the columns of an enum. Each has a name, a layout, and the name of its field in each variant that has it.

    Variants share a column for a field that has the same name and layout in all of them. Otherwise, the name of the
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


def column(layout: Layout, values: Sequence[Any], *, decoded: bool = False) -> pa.Array:
    """Build an Arrow column from Python values that share a layout.

    Parameters
    ----------
    layout : Layout
        Layout of the values.
    values : sequence, shape (n,)
        Python values, as returned by `decode_json` and `decode_bcs`. None becomes null.
    decoded : bool, default False
        Whether the values were decoded with this layout, which means that they fit it.

    Returns
    -------
    pyarrow.Array, shape (n,)
        Of type ``arrow_type(layout)``.

    Raises
    ------
    SchemaError
        If a value does not fit the layout. The message describes the first such value; ``.rows`` lists up to five rows.

    Examples
    --------
    >>> from toolkit.move import UInt, VectorOf
    >>> column(VectorOf(UInt(128)), [[1, 2**127], None]).to_pylist()
    [['1', '170141183460469231731687303715884105728'], None]
    """
    if not decoded:
        _check(layout, values)
    kind, cell = _form(layout, nested=False)
    cells = values if cell is None else [None if value is None else cell(value) for value in values]
    try:
        return dtypes.wide_from_ints(cells, kind) if isinstance(kind, dtypes.WideIntType) else pa.array(cells, kind)
    except (pa.ArrowException, ValueError):  # text that is not Unicode, or values of another layout
        _check(layout, values)
        raise SchemaError(f"the values do not fit a column of type {kind}") from None


def _check(layout: Layout, values: Sequence[Any]) -> None:
    """Raise SchemaError for values that do not fit, because Arrow would convert floats and bools to integers."""
    encode, found = codec_of(layout).encode, dict[int, str]()
    for row, value in enumerate(values):
        try:
            if value is not None and len(found) < _MAX_ROWS:
                encode(value)
        except Mismatch as mismatch:
            found[row] = f"row {row}: {mismatch.located('value')}: {mismatch.text}"
    if found:
        raise SchemaError(next(iter(found.values())), rows=list(found))


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        raise SchemaError(f"the values do not fit a column of type {pa.string()}") from None


def _same(value: Any) -> Any:
    return value


def _list_cells(cell: _Cell, value: Sequence[Any]) -> list[Any]:
    return [None if item is None else cell(item) for item in value]


def _struct_cells(cells: list[tuple[str, _Cell]], value: dict[str, Any]) -> dict[str, Any]:
    value = value.copy()
    for name, cell in cells:
        if (inner := value[name]) is not None:
            value[name] = cell(inner)
    return value


def _enum_cells(cells_of: dict[str, dict[str, tuple[str, _Cell]]], value: dict[str, Any]) -> dict[str, Any]:
    """Return an enum value whose keys are the names of its columns; the columns of other variants are null."""
    fields = {VARIANT: value[VARIANT]}
    for name, (key, cell) in cells_of[value[VARIANT]].items():
        fields[key] = None if value[name] is None else cell(value[name])
    return fields


def field_columns(layout: Layout, array: pa.StructArray) -> list[tuple[str, pa.Array]]:
    """Return the fields of a column of structs or enums as separate columns.

    Parameters
    ----------
    layout : Layout
        Layout of the structs.
    array : pyarrow.StructArray, shape (n,)
        A column built by `column`.

    Returns
    -------
    list of (str, pyarrow.Array)
        Name and column, of shape (n,), of each field. The column is null in rows in which the struct is null. Wide
        integers, which are decimal strings inside a struct, have an extension type of the toolkit.

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
    found = []
    for name, kind, part in zip(names, inner, array.flatten(), strict=True):
        wanted = arrow_type(kind)  # the type outside of a struct
        wide = isinstance(wanted, dtypes.WideIntType)
        found.append((name, dtypes.wide_from_text(part, wanted) if wide else part))
    return found
