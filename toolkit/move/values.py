"""Move values in JSON, both ways: what a node prints, and what it takes as an argument or a table key.

Python forms: bool, int, str (canonical addresses, texts), bytes, list, dict in declared field order, and for an
Option None or the value itself; an Option directly inside an Option keeps its ``{"vec": [...]}``. An enum value is
a dict with ``__variant__`` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError, SchemaError
from toolkit.move._mismatch import Mismatch, raise_schema_error
from toolkit.move.argument_reading import argument_decoder
from toolkit.move.argument_writing import write_argument
from toolkit.move.json_reading import json_decoder
from toolkit.move.json_writing import json_encoder
from toolkit.move.words import type_words

if TYPE_CHECKING:
    from toolkit.move.layout import Layout

__all__ = ["decode_argument", "decode_json", "encode_argument", "encode_json", "type_words"]


def decode_json(layout: Layout, value: Any, *, where: str = "value") -> Any:
    """Turn JSON as a node prints it into the Python value.

    Parameters
    ----------
    layout : Layout
        What the value is.
    value : JSON value
        As decoded from JSON, integers as int.
    where : str, default "value"
        What the value is called in an error.

    Returns
    -------
    object
        The Python form of the value.

    Raises
    ------
    SchemaError
        If the JSON does not fit, naming the path inside; ``.column`` is that path.

    Examples
    --------
    >>> from toolkit.move.layout import OptionOf, UInt
    >>> decode_json(OptionOf(UInt(64)), {"vec": ["18446744073709551615"]})
    18446744073709551615
    """
    try:
        return json_decoder(layout)(value)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)


def encode_json(layout: Layout, value: Any, *, where: str = "value") -> Any:
    """Turn a Python value into the JSON a node prints: short addresses, fields sorted by name.

    Raises
    ------
    SchemaError
        If the value does not fit the layout, naming the path inside.

    Examples
    --------
    >>> from toolkit.move.layout import UInt, VectorOf
    >>> encode_json(VectorOf(UInt(64)), [1, 2])
    ['1', '2']
    """
    try:
        return json_encoder(layout)(value)
    except Mismatch as mismatch:
        raise_schema_error(mismatch, where)


def encode_argument(layout: Layout, value: Any, *, where: str = "arguments[0]") -> Any:
    """Turn what a caller wrote into the JSON a node takes as an argument or a table key.

    Parameters
    ----------
    layout : Layout
        The type of the parameter.
    value : object
        A Python value, or the JSON a node takes or prints: an int or its digits, bytes or 0x-hex, None or a value
        or ``{"vec": [...]}`` for an Option, an enum as ``{"__variant__": "Name", ...}`` or ``{"Name": {...}}``.
    where : str, default "arguments[0]"
        What the argument is called in an error.

    Returns
    -------
    JSON value
        Integers up to 32 bits as numbers, wider ones as strings; an Object itself as its address, inside others as
        ``{"inner": ..}``; an enum as ``{"Name": {...}}``.

    Raises
    ------
    InputError
        If the argument does not fit, naming the path inside.

    Examples
    --------
    >>> from toolkit.move.layout import UInt
    >>> encode_argument(UInt(64), 5), encode_argument(UInt(8), 5)
    ('5', 5)
    """
    try:
        return write_argument(layout, value)
    except Mismatch as mismatch:
        raise mismatch.error(InputError, where) from None
    except RecursionError:
        raise InputError(f"{where}: the value nests too deeply") from None


def decode_argument(layout: Layout, value: Any, *, where: str = "arguments[0]") -> Any:
    """Read JSON as a node reads an argument or a table key, with the node's strictness and its words.

    Parameters
    ----------
    layout : Layout
        The type of the parameter.
    value : JSON value
        As decoded from the request.
    where : str, default "arguments[0]"
        The name in the text; empty for a table key, whose text is the cause alone.

    Returns
    -------
    object
        The Python form of the value.

    Raises
    ------
    SchemaError
        "parse arguments[0] failed, expect string<u64>, caused by error: ..."

    Examples
    --------
    >>> from toolkit.move.layout import Address
    >>> decode_argument(Address(), 5)
    Traceback (most recent call last):
    ...
    toolkit.errors.SchemaError: parse arguments[0] failed, expect string<address>, caused by error: \
invalid type: number, expected a string
    """
    try:
        return argument_decoder(layout, top=True)(value)
    except Mismatch as mismatch:
        if not where:
            raise SchemaError(mismatch.text) from None
        text = f"parse {where} failed, expect {type_words(layout)}, caused by error: {mismatch.text}"
        raise SchemaError(text, column=where) from None
