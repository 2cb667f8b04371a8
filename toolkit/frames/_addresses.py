"""Addresses in the form used in frames: conversion, and finding rows."""

from __future__ import annotations

import re
import warnings
from typing import Any, overload

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit._present.text import visible
from toolkit.errors import InputError
from toolkit.move import parse_address, parse_type_tag
from toolkit.move._ids import ModuleId

_MODULE = re.compile(r"[^:<>]+::\w+")
_LITERAL = re.compile(r"(?i)(?<!address\()'(0x[0-9a-f]{1,64})((?:::|%)[^']*)?'")
_MAX_SHOWN = 80  # characters: a full address with 0x, and some more, on one line of a warning


@overload
def address(value: str) -> str: ...
@overload
def address(value: pd.Series) -> pd.Series: ...
def address(value: str | pd.Series) -> str | pd.Series:
    """Return an address in the form used in frames (AIP-40): ``0x1``, or ``0x`` and 64 digits.

    Parameters
    ----------
    value : str or Series of str
        Addresses in any form: short or long, with or without ``0x``. Addresses inside module ids, function ids and
        types are converted too.

    Returns
    -------
    str or Series of str
        The converted addresses, as the same type as `value`. Missing rows remain missing.

    Raises
    ------
    InputError
        If a value is not an address, module, function or type.

    Examples
    --------
    >>> address("0xa11ce")
    '0x00000000000000000000000000000000000000000000000000000000000a11ce'
    >>> address("0x0001")
    '0x1'
    >>> address("0xcafe::registry")
    '0x000000000000000000000000000000000000000000000000000000000000cafe::registry'
    """
    if not isinstance(value, pd.Series):
        return _long_form(value)
    return value.astype("string").map(_long_form, na_action="ignore")


def _long_form(text: Any) -> str:
    # Functions have the form of types. Something other than text is refused as an address.
    if not isinstance(text, str) or "::" not in text:
        return parse_address(text)
    return str(ModuleId.parse(text) if _MODULE.fullmatch(text.strip()) else parse_type_tag(text))


def involving(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows that mention an account, module, function or type in any column of text or lists of text.

    Short, padded and long addresses match the same rows, including in payloads and other JSON text. A module matches
    its functions, events and types; an address also matches everything in its modules.

    Parameters
    ----------
    frame : DataFrame
        Any frame with text columns.
    name : str
        Address, ``address::module``, ``address::module::function``, or a type.

    Returns
    -------
    DataFrame, shape (matching rows, columns)
        The matching rows, with the index labels and columns of `frame`.

    Raises
    ------
    InputError
        If `frame` is not a DataFrame, or `name` is not an address, module, function or type.

    Warns
    -----
    UserWarning
        If no row matches; the warning lists the columns searched.

    Examples
    --------
    >>> import toolkit
    >>> transactions = toolkit.fetch_transactions(toolkit.connect(), "-1000:", progress=False).transactions
    >>> found = toolkit.involving(transactions, "0xcafe::registry")
    >>> len(found) == len(toolkit.involving(found, toolkit.address("0xcafe"))) > 100
    True
    """
    given: Any = frame
    if not isinstance(given, pd.DataFrame):
        raise InputError(f"frame must be a DataFrame, got {type(given).__name__}")
    digits, *names = _long_form(name)[2:].split("::", 1)
    rest = "".join(f"::{re.escape(part)}" for part in names)
    pattern = rf"(?:^|[^0-9A-Za-z_])0x0*{digits.lstrip('0') or '0'}{rest}(?:$|[^0-9A-Za-z_])"
    texts = {column: text for column in frame.columns if (text := _as_text(frame[column])) is not None}
    found = pd.Series(data=False, index=frame.index)
    for text in texts.values():
        found |= text.str.contains(pattern, regex=True).fillna(value=False).astype(bool)
    if len(frame) and not found.any():
        columns = visible(", ".join(map(str, texts)), 400) or "none"
        message = f"no row mentions {visible(name, _MAX_SHOWN)}; text columns searched: {columns}"
        warnings.warn(message, stacklevel=2)
    return frame[found]


def _as_text(column: pd.Series) -> pd.Series | None:
    """Return a column of text, or of lists of text joined with spaces; None for other columns."""
    if isinstance(column.dtype, pd.StringDtype):
        return column
    kind = column.dtype.pyarrow_dtype if isinstance(column.dtype, pd.ArrowDtype) else None
    if kind is None or not pa.types.is_list(kind) or not pa.types.is_string(kind.value_type):
        return None
    joined = pc.binary_join(column.array.__arrow_array__(), " ")
    return pd.Series(joined.to_pandas(types_mapper=pd.ArrowDtype).array, index=column.index).astype("string")


def warn_of_short_literals(query: str) -> None:
    """Warn the caller's caller about addresses in an SQL query in a form that never occurs in frames."""
    for given, rest in _LITERAL.findall(query):
        if (long := parse_address(given)) != given:
            more = f" || '{visible(rest, _MAX_SHOWN)}'" if rest else ""
            text = f"no value has the address {given}, which is stored as {long}; write address('{given}'){more}"
            warnings.warn(text, stacklevel=3)
