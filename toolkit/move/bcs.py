"""Move values in BCS, both ways, and type tags in BCS. Codecs are compiled once per layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import SchemaError
from toolkit.move._mismatch import Mismatch, raise_schema_error
from toolkit.move.bcs_primitives import Reader, Writer, uleb128
from toolkit.move.bcs_reading import bcs_decoder
from toolkit.move.bcs_tags import read_type_tag, write_type_tag
from toolkit.move.bcs_writing import bcs_encoder

if TYPE_CHECKING:
    from toolkit.move.layout import Layout

__all__ = [
    "Reader",
    "Writer",
    "decode_bcs",
    "encode_bcs",
    "read_type_tag",
    "read_value",
    "uleb128",
    "write_type_tag",
]


def encode_bcs(layout: Layout, value: Any, *, where: str = "value") -> bytes:
    """Return the BCS bytes of a Python value.

    Parameters
    ----------
    layout : Layout
        What the value is.
    value : object
        Its Python form, as `toolkit.move.values.decode_json` gives it.
    where : str, default "value"
        What the value is called in an error.

    Raises
    ------
    SchemaError
        If the value does not fit, naming the path inside; or if a part of the layout has no BCS form.

    Examples
    --------
    >>> from toolkit.move.layout import String, VectorOf
    >>> encode_bcs(VectorOf(String()), ["ab"]).hex()
    '01026162'
    """
    out = bytearray()
    try:
        bcs_encoder(layout)(value, out)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)
    return bytes(out)


def decode_bcs(layout: Layout, data: bytes, *, where: str = "value") -> Any:
    """Return the Python value of BCS bytes.

    Raises
    ------
    SchemaError
        If the bytes are not this layout's, are cut off, not canonical, or go on after the value.

    Examples
    --------
    >>> from toolkit.move.layout import OptionOf, UInt
    >>> decode_bcs(OptionOf(UInt(16)), bytes.fromhex("010500"))
    5
    """
    data = bytes(data)
    try:
        value, position = bcs_decoder(layout)(data, 0)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)
    if position != len(data):
        raise SchemaError(f"{where}: byte {position}: the data goes on after the value ({len(data) - position} bytes)")
    return value


def read_value(reader: Reader, layout: Layout, *, where: str = "value") -> Any:
    """Read one value where `reader` stands, and step over it; more may follow.

    Raises
    ------
    SchemaError
        As `decode_bcs`, but for bytes that follow.
    """
    try:
        value, reader.position = bcs_decoder(layout)(reader.data, reader.position)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)
    return value
