"""Frames of view calls and table items, from one record per call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from toolkit.dtypes import to_pandas
from toolkit.errors import InputError, NodeError, SchemaError, ToolkitError
from toolkit.frames._columns import JSON_TEXT, NamedColumn, flattened, inferred_column, typed_column, typed_columns
from toolkit.frames._schema import TABLE_ITEMS, VIEWS, described_field
from toolkit.move import Bool, Layout
from toolkit.move._codecs import is_closed
from toolkit.move._json_text import parse_json
from toolkit.move._values import decode_argument, encode_argument
from toolkit.wire._models import wire_argument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import pandas as pd


# HTTP status for a pruned version.
_GONE = 410


class Presence(StrEnum):
    """Whether a table item exists at a version."""

    PRESENT = "present"
    MISSING = "missing"
    DELETED = "deleted"  # present at an earlier version that was read
    PRUNED = "pruned"


# Error codes of calls that got no response.
NO_ANSWER = frozenset(
    {"unreachable", "rate_limited", "http_429", "http_500", "http_502", "http_503", "http_504", "internal_error"}
)


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call failed."""

    status: int | None
    error_code: str
    message: str
    vm_error_code: int | None = None

    @property
    def answered(self) -> bool:
        """Whether the node responded. A rejection is an outcome of the call, but an outage says nothing about it."""
        return self.error_code not in NO_ANSWER

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Create the failure for an error. If the node did not send an error code, the code is the kind of error.

        Other errors than those of nodes, connections and inputs are answers that could not be decoded.
        """
        if isinstance(error, NodeError):
            code = error.error_code or f"http_{error.status}"
            return cls(error.status, code, error.message or str(error), error.vm_error_code)
        if isinstance(error, ConnectionError):
            return cls(None, "unreachable", str(error))
        return cls(None, "input_error" if isinstance(error, InputError) else "schema_error", str(error))


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """One view call at one version.

    Attributes
    ----------
    call : str or None
        Name of the call.
    ledger_version : int or None
        Version that was read; None if the head was requested and the node did not respond.
    head_version : int or None
    gas_used : int or None
    values : tuple or None
        Return values in their Python form; None if the call failed.
    layouts : tuple of Layout, or None
        Layouts of the return values; None if no ABI is known.
    raw : str or None
        Response as JSON text.
    failure : Failure or None
    """

    call: str | None
    ledger_version: int | None
    head_version: int | None
    gas_used: int | None = None
    values: tuple[Any, ...] | None = None
    layouts: tuple[Layout, ...] | None = None
    raw: str | None = None
    failure: Failure | None = None

    @classmethod
    def of(cls, call: str | None, version: int, outcome: Any) -> ViewRecord:
        """Create the record of a call from its `ViewResult` or error."""
        if isinstance(outcome, ToolkitError):
            return cls(call, version, _head_of(outcome), failure=Failure.of(outcome))
        head, gas_used = _head_of(outcome), outcome.gas_used
        return cls(call, version, head, gas_used, values=outcome.values, layouts=outcome.layouts, raw=outcome.raw)


@dataclass(frozen=True, slots=True)
class TableItemRecord:
    """One table item at one version. `value` is None after a failure, and `layout` is None if the type is not known."""

    key: Any
    ledger_version: int | None
    head_version: int | None
    value: Any = None
    failure: Failure | None = None
    layout: Layout | None = None

    @classmethod
    def of(cls, key: Any, version: int, outcome: Any) -> TableItemRecord:
        """Create the record of an item from its `TableItem` or error."""
        if isinstance(outcome, ToolkitError):
            return cls(key, version, _head_of(outcome), failure=Failure.of(outcome))
        return cls(key, version, _head_of(outcome), outcome.value, layout=outcome.value_layout)


def _head_of(outcome: Any) -> int | None:
    """Return the node's head when it responded with a result or an error, if it reported it."""
    ledger = getattr(outcome, "ledger", None)
    return None if ledger is None else int(ledger.version)


def outcome_columns(failures: Sequence[Failure | None]) -> dict[str, list[Any]]:
    """Return the ``OUTCOME`` columns of the data dictionary, given the failure of each row or None."""
    return {
        "status": [failure and failure.status for failure in failures],
        "error_code": [failure and failure.error_code for failure in failures],
        "vm_error_code": [failure and failure.vm_error_code for failure in failures],
        "error_message": [failure and failure.message for failure in failures],
    }


def view_frame(
    records: Sequence[ViewRecord],
    *,
    typed: bool = True,
    flatten: bool = False,
    named: bool = False,
    layouts: Mapping[str | None, tuple[Layout, ...]] | None = None,
    times: Mapping[int, datetime] | None = None,
) -> pd.DataFrame:
    """Return the frame of view calls, one row per record in the same order.

    Parameters
    ----------
    records : sequence of ViewRecord
    typed : bool, default True
        If False, the return values are one ``value`` column of JSON text.
    flatten : bool, default False
        Replace struct columns with one column per field, ``value.field``.
    named : bool, default False
        Put the ``call`` column first.
    layouts : mapping of call to tuple of Layout, optional
        Layouts of the return values, for calls without a response.
    times : mapping of version to datetime, optional
        Times of versions, as far as they are known.

    Returns
    -------
    DataFrame, shape (n, 8 + number of value columns), and ``call`` if `named`
        ``ledger_version``, ``ledger_timestamp``, ``head_version``, then ``value`` (or ``value_0``, ``value_1``, ...),
        then ``gas_used`` and the columns of failures. If the calls return different types, each has its own value
        columns, ``value[call]``, which are null in the rows of other calls. If an upgrade changes the return type of a
        call, the call has a column per type, ``value[u64]`` and ``value[u128]``, or ``value[call][u64]`` and
        ``value[call][u128]``.

    Raises
    ------
    SchemaError
        If a value does not fit the layout of its record.
    """
    names = ("call", "ledger_version", "head_version", "gas_used")
    columns = {name: list(map(attrgetter(name), records)) for name in names}
    columns["ledger_timestamp"] = list(map((times or {}).get, columns["ledger_version"]))
    table = VIEWS.table(columns | outcome_columns([record.failure for record in records]))
    if typed:
        values = _columns_by_call(records, layouts or {}, flatten=flatten)
    else:
        array = pa.array([record.raw for record in records], type=pa.string())
        about = {"source": "return values", "typing": "untyped", "meaning": JSON_TEXT}
        values = [(described_field("value", array.type, **about), array)]
    table = _inserted(table, values)
    if named:
        return to_pandas(table)
    frame = to_pandas(table.drop_columns(["call"]))
    if records and records[0].call is not None:
        frame.attrs["toolkit"]["gas_used"]["call"] = records[0].call  # for figures, which name the call
    return frame


def item_frame(
    records: Sequence[TableItemRecord],
    *,
    key_layout: Layout,
    value_layout: Layout,
    flatten: bool = False,
    earlier: Sequence[TableItemRecord] = (),
    times: Mapping[int, datetime] | None = None,
) -> pd.DataFrame:
    """Return the frame of table items, one row per record.

    Parameters
    ----------
    records : sequence of TableItemRecord
    key_layout, value_layout : Layout
        Layouts of keys and values. A record's value may have a different layout.
    flatten : bool, default False
        Replace struct columns with one column per field.
    earlier : sequence of TableItemRecord, optional
        Reads that do not become rows, but show whether a missing item existed before.
    times : mapping of version to datetime, optional
        Times of versions, as far as they are known.

    Returns
    -------
    DataFrame, shape (n, >= 10)
        ``key``, ``ledger_version``, ``ledger_timestamp``, ``head_version``, ``value``, ``presence``, then the columns
        of failures.
    """
    known = {name: list(map(attrgetter(name), records)) for name in ("ledger_version", "head_version")}
    known["ledger_timestamp"] = list(map((times or {}).get, known["ledger_version"]))
    known |= outcome_columns([record.failure for record in records])
    table = TABLE_ITEMS.table(known | {"presence": _presence([*earlier, *records])[len(earlier) :]})
    layouts = [None if record.failure else record.layout or value_layout for record in records]
    about: dict[str, Any] = {"source": "table item value", "typing": "given", "flatten": flatten}
    values, versions = [record.value for record in records], known["ledger_version"]
    columns = typed_columns("value", layouts, values, versions, default=value_layout, **about)
    table = _inserted(table, columns)
    return to_pandas(table.add_column(0, *_key_column(key_layout, [record.key for record in records])))


def _key_column(layout: Layout, keys: Sequence[Any]) -> NamedColumn:
    """Return the column of keys, which may have the form that requests accept, such as a struct's number as text."""
    try:
        if is_closed(layout):
            keys = [decode_argument(layout, encode_argument(layout, key)) for key in keys]
        return typed_column("key", layout, keys, source="table item key", typing="given")
    except (InputError, SchemaError):  # a key of another version's type
        return inferred_column("key", [wire_argument(key) for key in keys], source="table item key")


def _presence(records: Sequence[TableItemRecord]) -> list[Presence | None]:
    """Return the presence of each item, or None if it cannot be determined from the node's response."""
    first_seen: dict[str, int] = {}
    for record in records:
        if record.failure is None and record.ledger_version is not None:
            key = repr(record.key)
            first_seen[key] = min(first_seen.get(key, record.ledger_version), record.ledger_version)
    found: list[Presence | None] = []
    for record in records:
        if record.failure is None:
            found.append(Presence.PRESENT)
        elif record.failure.status == _GONE:
            found.append(Presence.PRUNED)
        elif record.failure.error_code == "table_item_not_found":
            before = first_seen.get(repr(record.key), inf) < (record.ledger_version or 0)
            found.append(Presence.DELETED if before else Presence.MISSING)
        else:
            found.append(None)
    return found


def _columns_by_call(
    records: Sequence[ViewRecord], declared: Mapping[str | None, tuple[Layout, ...]], *, flatten: bool
) -> list[NamedColumn]:
    """Return one set of value columns if all calls return the same types, or else one set per call."""
    types: dict[str | None, set[tuple[Layout, ...]]] = {record.call: set() for record in records}
    widths: dict[str | None, set[int]] = {}  # numbers of values
    for record in records:
        if record.values is not None:
            widths.setdefault(record.call, set()).add(len(record.values))
            if record.layouts is not None:
                types[record.call].add(record.layouts)
    for call, layouts in declared.items():
        types.setdefault(call, set()).add(layouts)
    # Calls are compared by their types; a call without known types, by the number of its values.
    signatures = [signature for call in types if (signature := types[call] or widths.get(call))]
    if all(signature == signatures[0] for signature in signatures):
        return _value_columns(records, next(iter(declared.values()), None), flatten=flatten)
    columns: list[NamedColumn] = []
    for call in types:
        own = [record if record.call == call else replace(record, values=None) for record in records]
        columns += _value_columns(own, declared.get(call), flatten=flatten, of=f"[{call}]")
    return columns


def _value_columns(
    records: Sequence[ViewRecord], default: tuple[Layout, ...] | None, *, flatten: bool, of: str = ""
) -> list[NamedColumn]:
    answered = [record for record in records if record.values is not None]
    inferred = any(record.layouts is None for record in answered) or not (answered or default)
    if inferred and any(record.layouts is not None for record in answered):
        # A column has one form: JSON, if the types of some values are not known.
        records = [replace(record, values=_json_values(record)) for record in records]
    width = max((len(record.values or ()) for record in answered), default=1 if default is None else len(default))
    columns: list[NamedColumn] = []
    for position in range(width):  # an upgrade may change how many there are
        name = f"value{of}" if width == 1 else f"value_{position}{of}"
        source = f"return value {position}"
        values = [_at(record.values, position) for record in records]
        if inferred:
            named = inferred_column(name, values, source=source)
            columns += flattened(named, None) if flatten else [named]
        else:
            layouts = [None if record.values is None else _at(record.layouts, position) for record in records]
            versions = [record.ledger_version for record in records]
            # Without a default there are values.
            about: dict[str, Any] = {"default": _at(default, position) or Bool(), "typing": "abi", "flatten": flatten}
            columns += typed_columns(name, layouts, values, versions, source=source, **about)
    return columns


def _at(items: tuple[Any, ...] | None, position: int) -> Any:
    return items[position] if items is not None and position < len(items) else None


def _json_values(record: ViewRecord) -> tuple[Any, ...] | None:
    if record.values is None or record.raw is None:
        return record.values
    text = f"[{record.raw}]" if len(record.values) == 1 else record.raw
    return tuple(parse_json(text, "return values"))


def _inserted(table: pa.Table, columns: list[NamedColumn]) -> pa.Table:
    place = table.schema.get_field_index("head_version") + 1
    for offset, (field, array) in enumerate(columns):
        table = table.add_column(place + offset, field, array)
    return table
