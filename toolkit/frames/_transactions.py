"""Frames of transactions, state changes and events; of one resource or event type; of the keys of a table."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from toolkit.dtypes import to_arrow, to_pandas
from toolkit.errors import InputError
from toolkit.frames._calls import Failure, outcome_columns
from toolkit.frames._columns import NamedColumn, inferred_column, plain_columns, rows_frame, typed_column
from toolkit.frames._schema import CHANGES, EVENTS, KEYS, TRANSACTIONS, described_field
from toolkit.move import (
    AbiMap,
    Layout,
    StructOf,
    Untyped,
    decode_bcs,
    decode_json,
    parse_table_handle,
    parse_type_tag,
    resolve_layout,
)
from toolkit.move._json_text import parse_json
from toolkit.wire import ChangeKind, checked_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from toolkit.move import AbiSource

__all__ = ["payload_frame", "table_keys", "transaction_frames"]


def transaction_frames(
    transactions: Sequence[Any],
    *,
    requests: Sequence[int] | None = None,
    failures: Sequence[tuple[int, Failure]] = (),
    by: Literal["request", "ledger_version"] = "request",
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the frames of transactions, state changes and events.

    Parameters
    ----------
    transactions : sequence
        As `toolkit.wire` decodes them, simulated or committed. A malformed one is a row with the error code
        ``schema_error`` and no changes or events.
    requests : sequence of int, optional
        Position of each transaction's request in a batch; null by default.
    failures : sequence of (int, Failure), optional
        Requests or versions without a transaction. They are separate rows, in the order of `by`.
    by : {"request", "ledger_version"}, default "request"
        Whether the numbers of `failures` are requests or versions.

    Returns
    -------
    tuple of DataFrame
        Shapes (n, 30), (number of changes, 14), (number of events, 8); see the data dictionary.
    """
    _, (rows, changes, events) = checked_rows(transactions)
    numbers: list[int | None] = [None] * len(transactions) if requests is None else list(requests)
    head = {name: values for name, values in rows.items() if name in TRANSACTIONS.names}
    head |= {"ledger_version": rows["version"], "timestamp": rows["timestamp_us"]}
    head["request"] = numbers
    problems = rows["problem"]
    head.update(outcome_columns([problem and Failure(None, "schema_error", problem) for problem in problems]))
    if failures:
        head = _with_failures(head, failures, by)
    for part in (changes, events):
        part["request"] = [numbers[place] for place in part.pop("transaction_index")]
        part["ledger_version"] = part.pop("version")
    return rows_frame(TRANSACTIONS, head), rows_frame(CHANGES, changes), rows_frame(EVENTS, events)


def _with_failures(
    columns: dict[str, list[Any]], failures: Sequence[tuple[int, Failure]], by: str
) -> dict[str, list[Any]]:
    """Add a row per failure, and sort all rows by request or version."""
    extra = outcome_columns([failure for _, failure in failures]) | {by: [number for number, _ in failures]}
    missing = [None] * len(failures)
    merged = {name: list(values) + extra.get(name, missing) for name, values in columns.items()}
    # A transaction of an unknown kind may have no version; it stays after the preceding one.
    numbers = list(accumulate(merged[by], lambda before, number: before if number is None else number, initial=-1))
    order = sorted(range(len(missing) + len(columns[by])), key=lambda row: numbers[row + 1])
    return {name: [values[row] for row in order] for name, values in merged.items()}


def payload_frame(
    frame: pd.DataFrame, type_column: str, tag: str, layout: Layout, *, identity: Sequence[str]
) -> pd.DataFrame:
    """Return the typed frame of the rows whose payload has one type.

    Parameters
    ----------
    frame : DataFrame
        State changes or events.
    type_column : str
        Column of the type; types are compared by value, not as text.
    tag : str
        Type of the payloads.
    layout : Layout
        Layout of the type.
    identity : sequence of str
        Columns that precede the fields of the payload.

    Returns
    -------
    DataFrame, shape (number of rows of that type, len(identity) + fields)
        A field named like an identity column is called ``data.<field>``.
    """
    table = to_arrow(frame)
    wanted = _canonical(tag)
    texts = table[type_column].to_pylist()
    rows = [row for row, text in enumerate(texts) if text is not None and _canonical(text) == wanted]
    picked = table.take(pa.array(rows, type=pa.int64())).select(list(identity))
    payloads = [parse_json(text, tag) for text in table["data"].take(pa.array(rows, type=pa.int64())).to_pylist()]
    for field, array in _payload_columns(layout, payloads, tag):
        name = f"data.{field.name}" if field.name in picked.column_names else field.name
        picked = picked.append_column(field.with_name(name), array)
    return to_pandas(picked)


def _payload_columns(layout: Layout, payloads: list[Any], tag: str) -> list[NamedColumn]:
    source = f"data of {tag}"
    if isinstance(layout, StructOf):
        values = [decode_json(layout, payload, where=tag) for payload in payloads]
        return [
            typed_column(name, inner, [value[name] for value in values], source=source, typing="abi")
            for name, inner in layout.fields
        ]
    if isinstance(layout, Untyped) and payloads and all(isinstance(payload, dict) for payload in payloads):
        names = list(dict.fromkeys(name for payload in payloads for name in payload))
        return [inferred_column(name, [payload.get(name) for payload in payloads], source=source) for name in names]
    values = [decode_json(layout, payload, where=tag) for payload in payloads]
    return [typed_column("data", layout, values, source=source, typing="abi")]


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    """Return a type in canonical form; text that is not a type is returned unchanged."""
    try:
        return str(parse_type_tag(text))
    except InputError:
        return text


def table_keys(source: Any, handle: str, *, key_type: str | None = None, abis: AbiSource | None = None) -> pd.DataFrame:
    """Return the keys of a table that transactions or simulations wrote or deleted.

    Nodes cannot list the keys of a table. The result contains only the keys that these transactions changed.

    Parameters
    ----------
    source : DataFrame, or an object with ``changes``
        State changes, or an object that has them, such as a `Simulation` or the result of `fetch_transactions`.
    handle : str
        Table handle.
    key_type : str, optional
        Move type of the keys. Without it the keys are BCS bytes.
    abis : AbiSource, optional
        Source of the ABIs of struct keys, such as ``node.abis.at(version)``.

    Returns
    -------
    DataFrame, shape (number of keys, 5)
        ``key``, then ``first_version``, ``last_version``, ``changes`` and ``deleted``; sorted by first version.

    Raises
    ------
    InputError
        If `source` does not have state changes.
    SchemaError
        If a key cannot be decoded as `key_type`.

    Examples
    --------
    >>> import toolkit
    >>> with toolkit.connect() as node:
    ...     handle = node.view("0xcafe::registry::handle").value
    ...     written = toolkit.fetch_transactions(node, versions="0:-1")
    ...     keys = toolkit.table_keys(written, handle, key_type="0x1::string::String")
    >>> "alice" in set(keys["key"])
    True
    """
    changes = getattr(source, "changes", source)
    if not {"handle", "key", "ledger_version", "type"} <= set(getattr(changes, "columns", ())):
        raise InputError(
            f"source must be a frame of state changes or an object that has one, got {type(source).__name__}"
        )
    wanted = parse_table_handle(handle)
    columns = plain_columns(changes, ["handle", "key", "ledger_version", "type"])
    found: dict[bytes, dict[str, Any]] = {}
    rows = [row for row in zip(*columns.values(), strict=True) if row[0] == wanted and row[1] is not None]
    rows.sort(key=lambda row: row[2] or 0)  # the sort is stable, so the order within a version is preserved
    for _, key, version, kind in rows:
        entry = found.setdefault(key, {"first_version": version, "changes": 0})
        entry |= {
            "last_version": version,
            "changes": entry["changes"] + 1,
            "deleted": kind == ChangeKind.DELETE_TABLE_ITEM,
        }
    table = KEYS.table({name: [entry[name] for entry in found.values()] for name in KEYS.names})
    return to_pandas(table.add_column(0, *_key_column(list(found), key_type, abis)))


def _key_column(keys: list[bytes], key_type: str | None, abis: AbiSource | None) -> tuple[pa.Field, pa.Array]:
    if key_type is None:
        field = described_field("key", pa.binary(), source="changes[].key", typing="untyped", meaning="BCS bytes")
        return field, pa.array(keys, type=pa.binary())
    layout = resolve_layout(parse_type_tag(key_type), abis or AbiMap({}))
    values = [decode_bcs(layout, key) for key in keys]
    return typed_column("key", layout, values, source="changes[].key", typing="given")
