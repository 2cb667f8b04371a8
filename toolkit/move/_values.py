"""Decoding and encoding of values as JSON, as BCS and as arguments, and the tables that values contain."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import InputError, SchemaError
from toolkit.move import _codecs as codecs
from toolkit.move._codecs import Mismatch
from toolkit.move._containers import EnumOf, Layout, OptionOf, StructOf, VectorOf
from toolkit.move._ids import parse_table_handle
from toolkit.move._scalars import ADDRESS, ObjectOf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.move._bcs import Reader


def decode_json(layout: Layout, value: Any, *, where: str = "value") -> Any:
    """Decode a Python value from the JSON that nodes return.

    Parameters
    ----------
    layout : Layout
        Layout of the value.
    value : JSON value
        The parsed JSON, with integers as int.
    where : str, default "value"
        Name of the value in error messages.

    Returns
    -------
    object
        The Python value: bool, int, str, bytes, list, or dict with the fields in declared order. An Option is None or
        its element; a nested Option is None or ``{"vec": [element]}``. An enum's dict starts with ``__variant__``.

    Raises
    ------
    SchemaError
        If the JSON does not fit the layout. The message and ``.column`` state the path of the value.

    Examples
    --------
    >>> from toolkit.move import OptionOf, UInt
    >>> decode_json(OptionOf(UInt(64)), {"vec": ["18446744073709551615"]})
    18446744073709551615
    """
    try:
        return codecs.codec_of(layout).decode(value)
    except Mismatch as mismatch:
        codecs.raise_schema_error(mismatch, where)


def encode_json(layout: Layout, value: Any, *, where: str = "value") -> Any:
    """Encode a Python value as the JSON that nodes return: addresses without leading zeros, fields sorted by name.

    Parameters
    ----------
    layout : Layout
        Layout of the value.
    value : object
        The value in the form that `decode_json` and `decode_bcs` return.
    where : str, default "value"
        Name of the value in error messages.

    Returns
    -------
    JSON value

    Raises
    ------
    SchemaError
        If the value does not fit the layout. The message states the path.

    Examples
    --------
    >>> from toolkit.move import UInt, VectorOf
    >>> encode_json(VectorOf(UInt(64)), [1, 2])
    ['1', '2']
    """
    try:
        return codecs.codec_of(layout).encode(value)
    except Mismatch as mismatch:
        codecs.raise_schema_error(mismatch, where)


def encode_bcs(layout: Layout, value: Any, *, where: str = "value") -> bytes:
    """Encode a Python value as BCS.

    Parameters
    ----------
    layout : Layout
        Layout of the value.
    value : object
        The value in the form that `decode_json` and `decode_bcs` return.
    where : str, default "value"
        Name of the value in error messages.

    Returns
    -------
    bytes

    Raises
    ------
    SchemaError
        If the value does not fit the layout, or a part of the layout has no BCS form. The message states the path.

    Examples
    --------
    >>> from toolkit.move import String, VectorOf
    >>> encode_bcs(VectorOf(String()), ["ab"]).hex()
    '01026162'
    """
    out = bytearray()
    try:
        codecs.codec_of(layout).write(value, out)
    except Mismatch as mismatch:
        codecs.raise_schema_error(mismatch, where)
    return bytes(out)


def decode_bcs(layout: Layout, data: bytes, *, where: str = "value") -> Any:
    """Decode a Python value from BCS.

    Parameters
    ----------
    layout : Layout
        Layout of the value.
    data : bytes
        One value as BCS.
    where : str, default "value"
        Name of the value in error messages.

    Returns
    -------
    object
        Equal to the result of `decode_json` for the same value.

    Raises
    ------
    SchemaError
        If the data does not fit the layout, ends early, is not canonical, or has trailing bytes.

    Examples
    --------
    >>> from toolkit.move import OptionOf, UInt
    >>> decode_bcs(OptionOf(UInt(16)), bytes.fromhex("010500"))
    5
    """
    data = bytes(data)
    try:
        value, position = codecs.codec_of(layout).read(data, 0)
    except Mismatch as mismatch:
        codecs.raise_schema_error(mismatch, where)
    if trailing := len(data) - position:
        raise SchemaError(f"{where}: byte {position}: expected the end of the data; trailing bytes: {trailing}")
    return value


def read_value(reader: Reader, layout: Layout, *, where: str = "value") -> Any:
    """Decode one value at the position of `reader`, which is advanced past it; more data may follow.

    Parameters
    ----------
    reader : Reader
        The reader of the data.
    layout : Layout
        Layout of the value.
    where : str, default "value"
        Name of the value in error messages.

    Returns
    -------
    object

    Raises
    ------
    SchemaError
        If the data does not fit the layout, ends early, or is not canonical.

    Examples
    --------
    >>> from toolkit.move import UInt
    >>> from toolkit.move._bcs import Reader
    >>> from toolkit.move._values import read_value
    >>> reader = Reader(bytes([5, 1, 0]))
    >>> read_value(reader, UInt(8)), read_value(reader, UInt(16))
    (5, 1)
    """
    try:
        value, reader.position = codecs.codec_of(layout).read(reader.data, reader.position)
    except Mismatch as mismatch:
        codecs.raise_schema_error(mismatch, where)
    return value


def encode_argument(layout: Layout, value: Any, *, where: str = "arguments[0]") -> Any:
    """Encode an argument or a table key as the JSON that a node accepts.

    Parameters
    ----------
    layout : Layout
        Layout of the parameter's type.
    value : object
        A Python value, or the JSON that a node accepts or prints. An integer may be an int or its digits, and bytes may
        be 0x hex. An Option may be None, the element or ``{"vec": [...]}``. An enum may be
        ``{"__variant__": "Name", ...}`` or ``{"Name": {...}}``.
    where : str, default "arguments[0]"
        Name of the argument in error messages.

    Returns
    -------
    JSON value
        Integers of up to 32 bits are numbers, and wider integers are strings. An Object is its address, or
        ``{"inner": address}`` inside other types. An enum is ``{"Name": {...}}``.

    Raises
    ------
    InputError
        If the value does not fit the layout. The message states the path.

    Examples
    --------
    >>> from toolkit.move import UInt
    >>> encode_argument(UInt(64), 5), encode_argument(UInt(8), 5)
    ('5', 5)
    """
    try:
        # Only an Object that is the argument itself is written as its address.
        return codecs.codec_of(ADDRESS if isinstance(layout, ObjectOf) else layout).argument(value)
    except Mismatch as mismatch:
        raise mismatch.error(where) from None
    except RecursionError:
        raise InputError(f"{where}: the value is nested too deeply") from None


def decode_argument(layout: Layout, value: Any, *, where: str = "arguments[0]") -> Any:
    """Decode the JSON of an argument or a table key as a node does.

    Parameters
    ----------
    layout : Layout
        Layout of the parameter's type.
    value : JSON value
        Value from the request.
    where : str, default "arguments[0]"
        Name of the argument in error messages.

    Returns
    -------
    object
        The Python value, as returned by `decode_json`.

    Raises
    ------
    SchemaError
        If a node would reject the value. The message states the path.

    Examples
    --------
    >>> from toolkit.move import Address
    >>> decode_argument(Address(), 5)
    Traceback (most recent call last):
    ...
    toolkit.errors.SchemaError: arguments[0]: expected string<address>, got number 5
    """
    try:
        return codecs.codec_of(ADDRESS if isinstance(layout, ObjectOf) else layout).accept(value)
    except Mismatch as mismatch:
        codecs.raise_schema_error(mismatch, where)


# tables --------------------------------------------------------------------------------------------------------------


class DeclaredTable(NamedTuple):
    """A table inside a value.

    Attributes
    ----------
    handle : str
        0x and 64 hex digits.
    key_type, value_type : str
        Move types of the keys and values, as declared.
    field : str
        Path of the field that contains the table, such as ``records`` or ``pools[0].orders``.
    """

    handle: str
    key_type: str
    value_type: str
    field: str


def tables_in(layout: Layout, value: Any, field: str = "") -> Iterator[DeclaredTable]:
    """Yield the tables in a JSON value, in declared order. Parts that do not fit the layout are omitted."""
    inner: list[tuple[Layout, Any, str]] = []
    dot = f"{field}." if field else ""
    match layout:
        case StructOf(tag, fields) if isinstance(value, dict):
            # Every table of the framework is one of these, or has one inside.
            if tag.base == "0x1::table::Table" and len(tag.type_arguments) == 2:  # noqa: PLR2004
                with suppress(InputError):
                    handle, (key, item) = parse_table_handle(value.get("handle", "")), tag.type_arguments
                    yield DeclaredTable(handle, str(key), str(item), field)
                return
            inner = [(kind, value.get(name), f"{dot}{name}") for name, kind in fields]
        case EnumOf(_, variants) if isinstance(value, dict):
            chosen = dict(variants).get(str(value.get(codecs.VARIANT)), ())
            inner = [(kind, value.get(name), f"{dot}{name}") for name, kind in chosen]
        case OptionOf(element) if isinstance(value, dict) and isinstance(value.get("vec"), list):
            inner = [(element, item, field) for item in value["vec"]]
        case VectorOf(element) if isinstance(value, list):
            inner = [(element, item, f"{field}[{place}]") for place, item in enumerate(value)]
    for kind, item, name in inner:
        yield from tables_in(kind, item, name)
