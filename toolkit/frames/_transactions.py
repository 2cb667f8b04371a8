"""Frames of transactions, state changes and events; of one resource or event type; of the keys of a table."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from toolkit._present.text import number
from toolkit.dtypes import to_arrow, to_pandas
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.frames import _schema as schemas
from toolkit.frames._calls import Failure, outcome_columns
from toolkit.frames._columns import NamedColumn, inferred_column, kinds_of, plain_rows, typed_column, typed_columns
from toolkit.frames._schema import described_field
from toolkit.move import AbiMap, Layout, StructOf, Untyped, decode_bcs, decode_json, parse_type_tag, resolve_layout
from toolkit.move._codecs import is_closed
from toolkit.move._ids import parse_table_handle
from toolkit.move._json_text import parse_json
from toolkit.wire._rows import checked_rows
from toolkit.wire._transactions import ChangeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd

    from toolkit.move import AbiSource


class _Cell(NamedTuple):
    """A key or a value of a table item: its layout, its BCS, and the item in the node's JSON."""

    layout: Layout
    data: bytes | None
    decoded: Any


def transaction_frames(transactions: Sequence[Any], **options: Any) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the frames of transactions, state changes and events; for the options, see `transaction_tables`."""
    heads, changes, events = transaction_tables(transactions, **options)
    return to_pandas(heads), to_pandas(changes), to_pandas(events)


def transaction_tables(
    transactions: Sequence[Any],
    *,
    requests: Sequence[int] | None = None,
    failures: Sequence[tuple[int, Failure]] = (),
    by: Literal["request", "ledger_version"] = "request",
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Return the Arrow tables of transactions, state changes and events.

    Parameters
    ----------
    transactions : sequence
        Simulated or committed transactions, as decoded by `toolkit.wire`. A malformed transaction becomes a row with
        the error code ``schema_error``, without changes or events.
    requests : sequence of int, optional
        Position of each transaction's request in a batch; null by default.
    failures : sequence of (int, Failure), optional
        Requests or versions without a transaction. They become separate rows, sorted by the column `by`.
    by : {"request", "ledger_version"}, default "request"
        Whether the numbers of `failures` are requests or versions.

    Returns
    -------
    tuple of Table
        Shapes (n, 45), (number of changes, 14), (number of events, 9); see the data dictionary.
    """
    _, (rows, changes, events) = checked_rows(transactions)
    numbers: list[int | None] = [None] * len(transactions) if requests is None else list(requests)
    head = {name: values for name, values in rows.items() if name in schemas.TRANSACTIONS.names}
    head |= {"ledger_version": rows["version"], "timestamp": rows["timestamp_us"]}
    for name in ("code", "name", "reason"):
        head[f"abort_{name}"] = [getattr(abort, name, None) for abort in rows["abort"]]
    head["module"] = [_module(function) for function in rows["function"]]
    head["request"] = numbers
    head |= outcome_columns([problem and Failure(None, "schema_error", problem) for problem in rows["problem"]])
    if failures:
        head = _with_failures(head, failures, by)
    for part in (changes, events):
        part["request"] = [numbers[place] for place in part.pop("transaction_index")]
        part["ledger_version"] = part.pop("version")
    events["module"] = [_module(kind) for kind in events["type"]]
    return schemas.TRANSACTIONS.table(head), schemas.CHANGES.table(changes), schemas.EVENTS.table(events)


@lru_cache(maxsize=4096)
def _module(name: str | None) -> str | None:
    """Return the module of a function or type, ``address::module``, or None if it does not have a module."""
    parts = (name or "").split("::", 2)
    return "::".join(parts[:2]) if len(parts) > 2 else None  # noqa: PLR2004 - address, module and name


def failure_frame(transactions: pd.DataFrame) -> pd.DataFrame:
    """Return the failed transactions by function and reason, the most frequent first.

    Parameters
    ----------
    transactions : DataFrame
        Transactions, as returned by `transaction_frames`.

    Returns
    -------
    DataFrame, shape (functions and reasons, 11)
    """
    names = ("function", "abort_name", "abort_code", "abort_reason", "vm_status")
    called = plain_rows(transactions, [*names, "success", "sender", "gas_used", "ledger_version"])
    calls = Counter(row["function"] for row in called)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in called:
        if row["success"] is False:
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
    rows = []
    for reason, failed in sorted(groups.items(), key=lambda group: -len(group[1])):
        about = dict(zip(names, reason, strict=True))
        function, versions = about["function"], [row["ledger_version"] for row in failed]
        about |= {"count": len(failed), "senders": len({row["sender"] for row in failed})}
        about |= {
            "calls": calls[function] if function else None,
            "gas_used": sum(row["gas_used"] or 0 for row in failed),
        }
        rows.append(about | {"first_version": min(versions), "last_version": max(versions)})
    return to_pandas(schemas.FAILURES.table_of_rows(rows))


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


def rows_of_type(frame: pd.DataFrame, type_column: str, tag: str) -> pa.Table:
    """Return the rows whose payload has a given type, as an Arrow table. Deletions are omitted: they have no payload.

    Parameters
    ----------
    frame : DataFrame
        State changes or events.
    type_column : str
        Column that contains the type. Types are compared by value, not as text.
    tag : str
        Type of the payloads.
    """
    table = of_type(to_arrow(frame), type_column, tag)
    return table.filter(pc.is_valid(table["data"]))


def of_type(table: pa.Table, type_column: str, tag: str) -> pa.Table:
    """Return the rows of a type. Types are compared by value, not as text."""
    wanted, types = _canonical(tag), table[type_column]
    same = [text for text in pc.unique(types).to_pylist() if text is not None and _canonical(text) == wanted]
    return table.filter(pc.is_in(types, value_set=pa.array(same, type=types.type)))


def page_tables(page: Sequence[tuple[int, Any]]) -> tuple[pa.Table, pa.Table]:
    """Return the Arrow tables of transactions, each given with its version, and of their events."""
    # Changes are not needed, so they are neither checked nor turned into rows.
    without_changes = [structs.replace(one, changes=[]) if hasattr(one, "changes") else one for _, one in page]
    heads, _, events = transaction_tables(without_changes)
    return with_versions(heads, [version for version, _ in page]), events


def with_versions(heads: pa.Table, versions: Sequence[int]) -> pa.Table:
    """Return the table of transactions with these versions: one of an unknown kind may not include its version."""
    place = heads.schema.get_field_index("ledger_version")
    return heads.set_column(place, heads.schema.field(place), pa.array(versions, pa.int64()))


def rows_of_events(
    heads: pa.Table, events: pa.Table, tag: str, *, failures: Mapping[int, Failure] | None = None
) -> pa.Table:
    """Return the events of a type by version, with the hash of their transaction and the failure columns.

    With `failures`, the failures of versions without a transaction are rows too, as are transactions that were not read
    because they are malformed or of an unknown kind.
    """
    rows = of_type(events, "type", tag)
    places = pc.index_in(rows["ledger_version"], value_set=heads["ledger_version"].combine_chunks())
    rows = rows.append_column("hash", heads["hash"].take(places))
    found = EVENT_ROWS.completed(rows.append_column("ledger_timestamp", heads["timestamp"].take(places)))
    if failures is None:
        return found
    unread = heads.filter(pc.is_valid(heads["raw"])).select(["ledger_version", "error_message"]).to_pydict()
    reasons = zip(*unread.values(), strict=True)
    lost = {version: Failure(None, "schema_error", text or _UNKNOWN_KIND) for version, text in reasons} | dict(failures)
    outcome = outcome_columns([*lost.values()]) | {"ledger_version": [*lost]}
    return pa.concat_tables([found, EVENT_ROWS.table(outcome)]).sort_by(_EVENT_ORDER)


_UNKNOWN_KIND = "the kind of this transaction is unknown; its events were not read"
_EVENT_ORDER = [("ledger_version", "ascending"), ("event_index", "ascending")]
_FURTHER = tuple(one for one in schemas.EVENTS if one.name not in schemas.TRANSACTION_KEY.names)
EVENT_ROWS = schemas.Schema("events of a type", (*schemas.TRANSACTION_KEY, *_FURTHER, *schemas.OUTCOME))


def payload_frame(
    rows: pa.Table,
    tag: str,
    layouts: Sequence[Layout | ToolkitError],
    *,
    identity: Sequence[str],
    default: Layout,
    failed: Callable[[ToolkitError], Failure] | None = None,
) -> pd.DataFrame:
    """Return the typed frame of rows whose payloads have one type. Its layout may differ between versions.

    A struct has one column per field of any of its layouts. A field is null in rows whose layout does not have it. Each
    value is decoded with the layout of its row. A column has the newest type of its field; if an older value does not
    fit that type, there is a column per type. If the layout of a row is not known, all values are JSON as in the node's
    response.

    Parameters
    ----------
    rows : pyarrow.Table, shape (n, columns)
        Rows returned by `rows_of_type`, and possibly rows of failed reads, whose ``data`` is null.
    tag : str
        Type of the payloads.
    layouts : sequence of Layout or error, shape (n,)
        Layout of the type at the version of each row, or why it is not known.
    identity : sequence of str
        Columns that precede the fields of the payload.
    default : Layout
        Layout that determines the types of the columns if no row has a payload.
    failed : callable, optional
        Returns the failure that replaces a payload that does not fit its layout; the columns of failures then follow
        the fields. By default the error is raised.

    Returns
    -------
    DataFrame, shape (n, len(identity) + fields + columns of failures)
        A field with the same name as another column is called ``data.<field>``.

    Raises
    ------
    SchemaError
        If a payload does not fit its layout and `failed` is not given. The error states the column and row.
    """
    after = [] if failed is None else schemas.OUTCOME.names
    outcomes = {name: rows[name].to_pylist() for name in after}
    places, versions = _places(rows), rows["ledger_version"].to_pylist()
    texts = rows["data"].to_pylist()
    typed = not any(text and isinstance(layout, Untyped) for text, layout in zip(texts, layouts, strict=True))
    kinds: list[Layout | None] = [None] * len(texts)
    values: list[Any] = [None] * len(texts)
    for row, (text, layout, place) in enumerate(zip(texts, layouts, places, strict=True)):
        if text is None:
            continue
        try:
            if isinstance(layout, ToolkitError):
                raise layout
            payload = parsed_payload(text, where := f"{tag} of {place}")
            values[row] = decode_json(layout, payload, where=where) if typed else payload
            kinds[row] = layout
        except ToolkitError as error:
            if failed is None:
                raise SchemaError(str(error), column=getattr(error, "column", None), rows=[row]) from error
            for name, found in outcome_columns([failed(error)]).items():
                outcomes[name][row] = found[0]
    picked, taken = rows.select(list(identity)), {*identity, *after}
    source = f"data of {tag}"
    columns = _field_columns(kinds, values, versions, default, source) if typed else _json_columns(values, source)
    for field, array in columns:
        name = f"data.{field.name}" if field.name in taken else field.name
        picked = picked.append_column(field.with_name(name), array)
    for name in after:
        kind = rows.schema.field(name)
        picked = picked.append_column(kind, pa.array(outcomes[name], type=kind.type))
    # The fields may have the names of columns of the rows, which the schema describes.
    return to_pandas(picked.replace_schema_metadata(None))


def _places(rows: pa.Table) -> list[str]:
    """Describe in words where each row comes from."""
    kind = next((name for name in ("event_index", "change_index", "address") if name in rows.column_names), None)
    if kind is None or "ledger_version" not in rows.column_names:
        return [f"row {row}" for row in range(rows.num_rows)]
    word = kind.partition("_")[0]
    pairs = zip(rows[kind].to_pylist(), rows["ledger_version"].to_pylist(), strict=True)
    return [f"{word} {index} of version {number(version)}" for index, version in pairs]


def parsed_payload(text: str, what: str) -> Any:
    """Parse the JSON text of a payload, which must not be null."""
    if (payload := parse_json(text, what)) is None:
        raise SchemaError(f"{what}: expected data, got null")
    return payload


def _json_columns(values: Sequence[Any], source: str) -> list[NamedColumn]:
    """Return the columns of payloads as in the node's JSON."""
    given = [value for value in values if value is not None]
    if not given or not all(isinstance(value, dict) for value in given):
        return [inferred_column("data", values, source=source)]
    names = dict.fromkeys(name for value in given for name in value)
    return [inferred_column(name, [_field(value, name) for value in values], source=source) for name in names]


def _field(value: Any, name: str) -> Any:
    return None if value is None else value.get(name)


def _field_columns(
    layouts: Sequence[Layout | None],
    values: Sequence[Any],
    versions: Sequence[int | None],
    default: Layout,
    source: str,
) -> list[NamedColumn]:
    """Return the columns of the fields of payloads, or a single column if the payloads are not structs."""
    about: dict[str, Any] = {"source": source, "typing": "abi", "widen": True}
    kinds = kinds_of(layouts, versions) or [default]
    fields: dict[Layout | None, dict[str, Layout]] = {
        kind: dict(kind.fields) for kind in kinds if isinstance(kind, StructOf)
    }
    if len(fields) < len(kinds):
        return typed_columns("data", layouts, values, versions, default=default, **about)
    columns: list[NamedColumn] = []
    for name in dict.fromkeys(name for kind in reversed(kinds) for name in fields[kind]):
        own = [_field(fields.get(layout), name) for layout in layouts]
        own_values = [_field(value, name) for value in values]
        columns += typed_columns(name, own, own_values, versions, default=fields[kinds[-1]].get(name, default), **about)
    return columns


def item_rows(frame: pd.DataFrame, handle: str) -> pa.Table:
    """Return the state changes of a table's items, as an Arrow table."""
    table = to_arrow(frame)
    return table.filter(pc.and_(pc.equal(table["handle"], parse_table_handle(handle)), pc.is_valid(table["key"])))


def written_items_frame(
    rows: pa.Table, layouts: Sequence[tuple[Layout, Layout]], *, identity: Sequence[str], default: tuple[Layout, Layout]
) -> pd.DataFrame:
    """Return the typed frame of the state changes of a table's items.

    Parameters
    ----------
    rows : pyarrow.Table, shape (n, columns)
        Rows returned by `item_rows`.
    layouts : sequence of (Layout, Layout), shape (n,)
        Layouts of key and value at the version of each row.
    identity : sequence of str
        Columns that precede the others.
    default : tuple of (Layout, Layout)
        Layouts that determine the types of the columns if `rows` is empty.

    Returns
    -------
    DataFrame, shape (n, len(identity) + 4)
        ``change_index``, ``deleted``, ``key`` and ``value``; the value of a deletion is null.

    Raises
    ------
    SchemaError
        If a key or value does not fit its type. The error states the column and row.
    """
    picked = rows.select([*identity, "change_index"])
    deleted = [kind == ChangeKind.DELETE_TABLE_ITEM for kind in rows["type"].to_pylist()]
    meaning = "whether the change deletes the item"
    field = described_field("deleted", pa.bool_(), source="changes[].type", typing="schema", meaning=meaning)
    picked = picked.append_column(field, pa.array(deleted, type=pa.bool_()))
    places = _places(rows)
    pairs = zip(rows["data"].to_pylist(), places, strict=True)
    decoded = [None if text is None else parsed_payload(text, f"item of {place}") for text, place in pairs]
    for place, name in enumerate(("key", "value")):
        cells = list(map(_Cell, [pair[place] for pair in layouts], rows[name].to_pylist(), decoded))
        for column in _item_columns(name, cells, places, rows["ledger_version"].to_pylist(), default[place]):
            picked = picked.append_column(*column)
    return to_pandas(picked)


def _item_columns(
    name: str, cells: Sequence[_Cell], places: Sequence[str], versions: Sequence[int | None], default: Layout
) -> list[NamedColumn]:
    """Return the columns of keys or values, from BCS if their type is fully known, or else from the node's JSON."""
    values: list[Any] = []
    for row, cell in enumerate(cells):
        where = f"{name} of {places[row]}"
        try:
            if cell.data is None:
                values.append(None)
            elif is_closed(cell.layout):
                values.append(decode_bcs(cell.layout, cell.data, where=where))
            elif isinstance(cell.decoded, dict) and cell.decoded.get(name) is not None:
                values.append(decode_json(cell.layout, cell.decoded[name], where=where))
            else:  # an enum whose variants are not known, and no JSON
                return [_bytes_column(name, [one.data for one in cells], source=f"changes[].{name}")]
        except SchemaError as error:
            raise SchemaError(str(error), column=name, rows=[row]) from error
    kinds = [None if cell.data is None else cell.layout for cell in cells]
    source = f"changes[].{name}"
    return typed_columns(name, kinds, values, versions, default=default, source=source, typing="given", widen=True)


def _bytes_column(name: str, values: Sequence[bytes | None], *, source: str) -> NamedColumn:
    field = described_field(name, pa.binary(), source=source, typing="untyped", meaning="BCS bytes")
    return field, pa.array(values, type=pa.binary())


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    """Return a type in canonical form; text that is not a type is returned unchanged."""
    try:
        return str(parse_type_tag(text))
    except InputError:
        return text


def table_keys(source: Any, handle: str, *, key_type: str | None = None, abis: AbiSource | None = None) -> pd.DataFrame:
    """Return the keys of a table that transactions or simulations wrote or deleted.

    Nodes cannot list the keys of a table, so the result contains only keys that these transactions changed.

    Parameters
    ----------
    source : DataFrame, or an object with ``changes``
        State changes, or an object with state changes, such as a `Simulation` or the result of `fetch_transactions`.
    handle : str
        Table handle.
    key_type : str, optional
        Move type of the keys. If omitted, keys are BCS bytes.
    abis : AbiSource, optional
        Source of the ABIs of struct keys, such as ``node.abis.at(version)``.

    Returns
    -------
    DataFrame, shape (number of keys, 5)
        ``key``, then ``first_version``, ``last_version``, ``changes`` and ``deleted``; sorted by first version.

    Raises
    ------
    InputError
        If `source` contains no state changes, or the ABI of a struct in `key_type` is not known.
    SchemaError
        If a key cannot be decoded as `key_type`.

    Examples
    --------
    >>> import toolkit
    >>> with toolkit.connect() as node:
    ...     handle = node.view("0xcafe::registry::handle").value
    ...     written = toolkit.fetch_transactions(node, versions="0:999")
    ...     keys = toolkit.table_keys(written, handle, key_type="0x1::string::String")
    >>> "alice" in set(keys["key"])
    True
    """
    changes = getattr(source, "changes", source)
    if not {"handle", "key", "ledger_version", "type"} <= set(getattr(changes, "columns", ())):
        got = type(source).__name__
        raise InputError(f"source must be a frame of state changes or an object whose `changes` is one, got {got}")
    rows = item_rows(changes, handle).select(["key", "ledger_version", "type"]).to_pylist()
    found: dict[bytes, dict[str, Any]] = {}
    # The sort is stable, so the order within a version is preserved.
    for row in sorted(rows, key=lambda row: row["ledger_version"] or 0):
        entry = found.setdefault(row["key"], {"first_version": row["ledger_version"], "changes": 0})
        entry |= {"last_version": row["ledger_version"], "deleted": row["type"] == ChangeKind.DELETE_TABLE_ITEM}
        entry["changes"] += 1
    table = schemas.KEYS.table({name: [entry[name] for entry in found.values()] for name in schemas.KEYS.names})
    return to_pandas(table.add_column(0, *_key_column(list(found), key_type, abis)))


def _key_column(keys: list[bytes], key_type: str | None, abis: AbiSource | None) -> tuple[pa.Field, pa.Array]:
    if key_type is None:
        return _bytes_column("key", keys, source="changes[].key")
    layout = resolve_layout(parse_type_tag(key_type), abis or AbiMap({}))
    if not is_closed(layout):
        raise InputError(
            f"key_type {key_type!r:.200} contains a struct whose fields are not known; pass abis=node.abis.at(version)"
        )
    values = [decode_bcs(layout, key) for key in keys]
    return typed_column("key", layout, values, source="changes[].key", typing="given")
