"""The effects of transactions as typed frames: resources, events, table items, balances, and state differences."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from toolkit import frames
from toolkit._present.notebook import facts_html
from toolkit._present.text import plural, visible
from toolkit.client._accounts import declared_types
from toolkit.client._group_members import with_ended_members
from toolkit.client._http import has_model_gas
from toolkit.client._node_errors import ABSENT, NO_ITEM
from toolkit.client._reads import Reads, Reconnect, send_all
from toolkit.client._warnings import warn_caller, warn_of_similar, warn_of_types
from toolkit.errors import InputError, NotFound, SchemaError, ToolkitError, VersionPruned
from toolkit.move import Layout, TypeTag, parse_type_tag
from toolkit.move._ids import parse_table_handle
from toolkit.move._json_text import parse_json
from toolkit.move._values import tables_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    import pyarrow as pa

    from toolkit.client._http import PreparedCall
    from toolkit.frames._balances import Slot

# Columns of the transactions that a notebook shows, and the number of their rows.
_SHOWN = ("ledger_version", "type", "function", "sender", "success", "error_code", "gas_used", "changes", "events")
_ROWS_SHOWN = 6  # enough to see what the columns hold

_Change = dict[str, Any]


class _Resource(NamedTuple):
    """A resource of an account or object."""

    address: str
    resource_type: str


class _Item(NamedTuple):
    """An item of a table, identified by the BCS bytes of its key."""

    handle: str
    key: bytes


_Slot = _Resource | _Item


class Read(NamedTuple):
    """A slot, and the version at which it is read."""

    slot: _Slot
    version: int


# Where the state before a change is: a read, the row of an earlier change, or nowhere before the first version.
_Source = Read | int | None
# A resource as JSON text or the bytes of an item as hex, None if it does not exist, or why it is not known.
_State = str | ToolkitError | None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TransactionData:
    """Transactions with their state changes and events, and the frames that can be derived from them.

    Objects can be pickled. An unpickled object reconnects to its node, without secrets, when it needs to read.
    """

    _node: Reads | None = field(default=None, repr=False, compare=False)
    _layouts: dict[str, dict[int, Layout]] = field(default_factory=dict, repr=False, compare=False)
    _reconnect: Reconnect | None = field(default=None, repr=False, compare=False)
    _model: bool = field(default=False, repr=False, compare=False)  # of an unpickled object: whether gas is a model's

    # The column that identifies a transaction in its frames.
    _by: ClassVar[str] = "request"
    # The columns that precede the fields in a typed frame.
    _identity: ClassVar[tuple[str, ...]] = ()
    _committed: ClassVar[bool] = False

    @property
    def _tables(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Return the frames of transactions, state changes and events."""
        raise NotImplementedError

    def resources(self, tag: str) -> pd.DataFrame:
        """Return every write to resources of one type.

        Parameters
        ----------
        tag : str
            Struct tag, such as ``0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>``.

        Returns
        -------
        DataFrame, shape (number of writes, 1 + fields)
            ``address``, then one typed column per field. For several transactions, ``ledger_version``,
            ``ledger_timestamp`` (if committed) and ``hash`` come first; in a batch, ``request`` precedes them. If no
            transaction writes the resource, the frame is empty, and a warning suggests similar types that are written.

        Raises
        ------
        InputError
            If `tag` cannot be parsed, or an unpickled object cannot reconnect to its node.
        SchemaError
            If a value does not fit its type; the message names the version.
        NodeError, NodeUnreachable
            If the module of the type cannot be looked up.

        Notes
        -----
        Types come from the module's ABI at the version of each transaction. If the type changes between versions, each
        column has the field's newest type, and is null where the field did not exist yet. If a value does not fit that
        type, there is a column per type, such as ``field[u64]`` and ``field[u8]``, and a warning.
        """
        return self._payloads(self._tables[1], "resource_type", tag, ("address",))

    def events_of(self, event_type: str) -> pd.DataFrame:
        """Return the events of a type.

        Parameters
        ----------
        event_type : str
            Type of the event, such as ``0x1::transaction_fee::FeeStatement``.

        Returns
        -------
        DataFrame, shape (number of events, 4 + fields)
            The guid, then one typed column per field. For several transactions, ``ledger_version``,
            ``ledger_timestamp`` (if committed) and ``hash`` come first; in a batch, ``request`` precedes them. If
            nothing is found, the frame is empty, and a warning suggests similar event types.

        Raises
        ------
        InputError
            If `event_type` cannot be parsed, or an unpickled object cannot reconnect to its node.
        SchemaError
            If a value does not fit its type; the message names the version.
        NodeError, NodeUnreachable
            If the module of the type cannot be looked up.
        """
        return self._payloads(self._tables[2], "type", event_type, EVENT_IDENTITY)

    def table_items(
        self, handle: str, *, key_type: str | None = None, value_type: str | None = None, owner: str | None = None
    ) -> pd.DataFrame:
        """Return the item writes and deletions in a table.

        Parameters
        ----------
        handle : str
            Table handle.
        key_type, value_type : str, optional
            Move types. By default, as reported by the node, or else as declared by the resource that holds the table.
            That resource must belong to `owner` or be written by these transactions.
        owner : str, optional
            Account whose resources are searched for the table.

        Returns
        -------
        DataFrame, shape (number of changes, 4)
            ``change_index``, ``deleted``, ``key`` and ``value``, which is null for a deletion. For several
            transactions, ``ledger_version``, ``ledger_timestamp`` (if committed) and ``hash`` come first; in a batch,
            ``request`` precedes them.

        Raises
        ------
        InputError
            If the handle or a type cannot be parsed, or the types are neither given nor found.
        SchemaError
            If a key or value does not fit its type; the message names the version.
        NodeError, NodeUnreachable
            If a module, or a resource of `owner`, cannot be looked up.

        See Also
        --------
        toolkit.table_keys : Lists the distinct keys of a table.
        """
        rows = frames.item_rows(self._tables[1], handle)
        if key_type is None or value_type is None:
            found = self.item_types(handle, owner=owner)
            key_type, value_type = key_type or found[0], value_type or found[1]
        tags = parse_type_tag(key_type), parse_type_tag(value_type)
        versions = rows["ledger_version"].to_pylist()
        keys, values = (self._layouts_at(tag, versions) for tag in tags)
        newest = [self._newest_version()]
        [key], [value] = (self._layouts_at(tag, newest) for tag in tags)
        layouts = list(zip(keys, values, strict=True))
        typed = frames.written_items_frame(
            self._identified(rows), layouts, identity=self._identity, default=(key, value)
        )
        warn_of_types(typed, f"table {handle}")
        return typed

    @cached_property
    def balance_changes(self) -> pd.DataFrame:
        """One row per transaction, owner and asset whose balance changes, in base units, including the fee.

        Changes that no event reports, such as coins converted to a fungible asset, are found by reading the earlier
        state.
        """
        return frames.balance_frame(*self._tables, by=self._by, identity=self._identity, read=self._stores_before)

    def failures(self) -> pd.DataFrame:
        """Return the failed transactions by function and reason, most frequent first.

        Returns
        -------
        DataFrame, shape (functions and reasons, 11)
            ``function``, ``abort_name``, ``abort_code`` and ``abort_reason``; then ``count``, ``calls`` (all
            transactions of the function), ``senders``, ``gas_used``, the first and last version, and ``vm_status``.

        Examples
        --------
        >>> import toolkit
        >>> frames = toolkit.fetch_transactions(toolkit.connect(), "-1000:", progress=False)
        >>> frames.failures()["abort_name"].iloc[0]
        'E_TAKEN'
        """
        return frames.failure_frame(self._tables[0])

    def _stores_before(self, slots: Sequence[Slot]) -> list[str | None]:
        """Return the JSON text of resources before the transactions that wrote them; None if absent or not known."""
        numbers = frames.plain_columns(self._tables[0], [*dict.fromkeys([self._by, "ledger_version"])])
        # A simulation ran on the state of its version.
        ran_on = dict(zip(numbers[self._by], numbers["ledger_version"], strict=True))
        reads = [Read(_Resource(*slot), ran_on[key] - self._committed) for key, *slot in slots]
        try:
            with self._connected() as node:
                found = read_states(node, [read for read in reads if read.version >= 0])
        except ToolkitError as error:  # the node is closed, or what was unpickled cannot connect again
            found = dict.fromkeys(reads, error)
        states = [found.get(read) for read in reads]
        if failures := [state for state in states if isinstance(state, ToolkitError)]:
            warn_caller(
                "balance_changes: some changes are null because no event reports them and the earlier state could not "
                f"be read ({failures[0]})"
            )
        return [state if isinstance(state, str) else None for state in states]

    def diff(self) -> pd.DataFrame:
        """Return the state of each resource and table item that begins, changes or ends, before and after.

        Returns
        -------
        DataFrame, shape (number of changes, 8)
            Resources are JSON text, and table items are BCS bytes in hex. The fields that differ are listed. For
            several transactions, ``ledger_version``, ``ledger_timestamp`` (if committed) and ``hash`` come first (in a
            batch, after ``request``), and the failure columns last: a state that cannot be read is a row with an error
            code.

        Raises
        ------
        InputError
            If an unpickled object cannot reconnect to its node.
        NodeError, NodeUnreachable
            If the state before a single simulation cannot be read.

        Notes
        -----
        For a simulation, the earlier state is the state it ran on. For a committed transaction, it is the state at the
        previous version: read from the node, or known from an earlier change if all transactions in between are
        present. The members of a resource group that end have a row each, although nodes report only the members that
        remain: the resources of the address are listed before the change, and for committed transactions also after.
        """
        with self._connected() as node:
            changes = frames.plain_rows(self._tables[1], _CHANGE_COLUMNS)
            rows, failures = _state_diff(changes, self._runs() if self._committed else None, node)
        if not self._identity:
            if error := next((error for error in failures if error is not None), None):
                raise error.with_traceback(None)
            return frames.frame_of_rows(frames.DIFF, rows)
        columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
        columns |= frames.outcome_columns([None if error is None else frames.Failure.of(error) for error in failures])
        for name, values in self._of_transactions().items():
            columns[name] = [values.get(row[self._by]) for row in rows]
        frame = frames.rows_frame(frames.DIFFS, columns)
        return frame.drop(columns=[name for name in frames.TRANSACTION_KEY.names if name not in self._identity])

    # types and identities --------------------------------------------------------------------------------------

    def _payloads(self, frame: pd.DataFrame, column: str, tag: str, more: tuple[str, ...]) -> pd.DataFrame:
        """Return the typed frame of the state changes or events of one type."""
        parsed = parse_type_tag(tag)
        rows = frames.rows_of_type(frame, column, tag)
        layouts = self._layouts_at(parsed, rows["ledger_version"].to_pylist())
        default = layouts[-1] if layouts else self._layouts_at(parsed, [self._newest_version()])[0]
        identity = (*self._identity, *more)
        typed = frames.payload_frame(self._identified(rows), tag, layouts, identity=identity, default=default)
        warn_of_types(typed, tag)
        if not len(typed):
            subject = "these transactions have" if self._identity else "this transaction has"
            warn_of_similar(tag, frame[column].dropna().unique(), f"{subject} no {tag}")
        return typed

    def _identified(self, rows: pa.Table) -> pa.Table:
        """Add the time and the hash of the transaction to rows that are identified by them."""
        import pyarrow as pa

        keys = rows[self._by].to_pylist()
        for name, values in self._of_transactions().items():
            field = frames.TRANSACTION_KEY.arrow.field(name)
            rows = rows.append_column(field, pa.array([values.get(key) for key in keys], type=field.type))
        return rows

    def _of_transactions(self) -> dict[str, dict[int, Any]]:
        """Return the identifying columns that only the transactions frame has, by request or version."""
        names = {"ledger_timestamp": "timestamp", "hash": "hash"}
        names = {name: column for name, column in names.items() if name in self._identity}
        columns = frames.plain_columns(self._tables[0], [self._by, *names.values()])
        return {name: dict(zip(columns[self._by], columns[column], strict=True)) for name, column in names.items()}

    def _layouts_at(self, tag: TypeTag, versions: Sequence[int]) -> list[Layout]:
        """Return the layout of a type at each of some versions."""
        known = self._layouts.setdefault(str(tag), {})
        if missing := set(versions) - known.keys():
            with self._connected() as node:
                known |= typed_at(node, tag, missing)
        return [known[version] for version in versions]

    def _newest_version(self) -> int:
        """Return the newest version of the transactions; the head if the frame is empty."""
        versions = self._tables[0]["ledger_version"].dropna()
        if len(versions):
            return int(versions.max())
        with self._connected() as node:
            return node.ledger().version

    def _runs(self) -> dict[int, int]:
        """Return, for each version, the number of its unbroken range; unread versions break a range."""
        columns = frames.plain_columns(self._tables[0], ["ledger_version", "error_code", "raw"])
        read = sorted(at for at, error, raw in zip(*columns.values(), strict=True) if error is None is raw)
        return {version: version - place for place, version in enumerate(read)}

    def item_types(self, handle: str, *, owner: str | None = None) -> tuple[str, str]:
        """Return the key type and the value type of a table.

        Parameters
        ----------
        handle : str
            Table handle.
        owner : str, optional
            Account whose resources are searched for the table.

        Returns
        -------
        tuple of (str, str)
            As reported by the node, or else as declared by the resource that holds the table. That resource must belong
            to `owner` or be written by these transactions.

        Raises
        ------
        InputError
            If the handle cannot be parsed, or the types are not found.
        NodeError, NodeUnreachable
            If a module, or a resource of `owner`, cannot be looked up.

        Examples
        --------
        >>> import toolkit
        >>> names = toolkit.connect().contract("0xcafe::registry")
        >>> simulation = names.register("example", sender="0xa11ce")
        >>> key_type, value_type = simulation.item_types(names.handle())
        >>> key_type
        '0x1::string::String'
        """
        rows = frames.item_rows(self._tables[1], handle)
        pairs = zip(rows["key_type"].to_pylist(), rows["value_type"].to_pylist(), strict=True)
        if reported := [(key, value) for key, value in pairs if key is not None and value is not None]:
            return reported[-1]
        columns = frames.plain_columns(self._tables[1], ["resource_type", "data", "ledger_version"])
        wanted, digits = parse_table_handle(handle), handle.lower().removeprefix("0x").lstrip("0")
        for kind, text, version in reversed(list(zip(*columns.values(), strict=True))):
            if kind is None or text is None or digits not in text.lower():
                continue
            [layout] = self._layouts_at(parse_type_tag(kind), [version])
            for table in tables_in(layout, parse_json(text, kind)):
                if table.handle == wanted:
                    return table.key_type, table.value_type
        if owner is not None:
            with self._connected() as node:
                return declared_types(node, handle, None, None, owner=owner, version=self._newest_version())
        raise InputError(
            f"the types of table {handle} are not known: neither the node nor a resource that these transactions write "
            "declares them; pass key_type= and value_type=, or owner=, the account whose resource holds the table"
        )

    @contextmanager
    def _connected(self) -> Iterator[Reads]:
        """Provide the node that responded; an unpickled object reconnects to it while the block runs."""
        if self._node is not None:
            yield self._node
            return
        if self._reconnect is None:
            raise InputError(
                f"this {type(self).__name__} was unpickled and cannot reconnect to its node, because the node used a "
                "custom transport; call diff(), resources() and events_of() before pickling"
            )
        connect, settings = self._reconnect
        with connect(*settings) as node:
            yield node

    def __getstate__(self) -> dict[str, Any]:
        """Return the data and how to reconnect to the node, without sockets, secrets or computed values."""
        data = {one.name: self.__dict__[one.name] for one in fields(self)}
        if self._node is None:
            return data
        return data | {"_node": None, "_reconnect": self._node.reconnect, "_model": has_model_gas(self._node)}


@dataclass(frozen=True, eq=False, repr=False)
class TransactionFrames(TransactionData):
    """Committed transactions as three frames.

    Attributes
    ----------
    transactions : DataFrame, shape (transactions, 45)
    changes : DataFrame, shape (state changes, 14)
    events : DataFrame, shape (events, 9)
        The data dictionary (``data/README.md``) describes the columns.

    Examples
    --------
    >>> import toolkit
    >>> toolkit.fetch_transactions(toolkit.connect(), "4000:4020", progress=False)
    TransactionFrames(transactions: 21 rows, 0 failed on the ledger, changes: 107 rows, events: 34 rows)
    """

    transactions: pd.DataFrame
    changes: pd.DataFrame
    events: pd.DataFrame

    _by: ClassVar[str] = "ledger_version"
    _identity: ClassVar[tuple[str, ...]] = ("ledger_version", "ledger_timestamp", "hash")
    _committed: ClassVar[bool] = True

    @property
    def _tables(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        return self.transactions, self.changes, self.events

    def _facts(self) -> dict[str, str]:
        lost = self.transactions["error_code"].notna()
        failed = int((self.transactions["success"].isin([False]) & ~lost).sum())
        counts = {name: plural(len(getattr(self, name)), "row") for name in ("transactions", "changes", "events")}
        counts["transactions"] += f", {failed:,} {'failed on the ledger' if self._committed else 'would fail'}"
        counts["transactions"] += f", {int(lost.sum()):,} without a result" if lost.any() else ""
        return counts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}: {text}' for name, text in self._facts().items())})"

    def _repr_html_(self) -> str:
        first = frames.show(self.transactions, rows=_ROWS_SHOWN, columns=_SHOWN)
        return facts_html(type(self).__name__, list(self._facts().items())) + first._repr_html_()


# Columns of an event that precede the fields of its payload.
EVENT_IDENTITY = ("event_index", "account_address", "creation_number", "sequence_number")
_CHANGE_COLUMNS = (
    "request ledger_version type address resource_type handle key value data state_key_hash".split()  # noqa: SIM905
)


# types at versions ---------------------------------------------------------------------------------------------------


def typed_at(
    node: Reads, tag: TypeTag, versions: Iterable[int], *, unknown: dict[int, ToolkitError] | None = None
) -> dict[int, Layout]:
    """Return the layout of a type at each of some versions.

    Parameters
    ----------
    node : Node
    tag : TypeTag
    versions : iterable of int
    unknown : dict of int to error, optional
        Filled with the versions for which a module cannot be looked up, or the node's response is not a module; they
        are not in the result. By default, the first error is raised.

    Raises
    ------
    NodeError, NodeUnreachable, SchemaError
        If a module cannot be looked up, unless `unknown` is given.

    Warns
    -----
    UserWarning
        If the node has transactions of these versions, but no longer their modules: the type is then taken from the
        oldest of these versions at which the node has them, or from the head.
    """
    layouts: dict[int, Layout] = {}
    pruned: list[int] = []
    for version, entry in node.abis.layouts_at(tag, versions).items():
        if isinstance(entry, tuple):
            layouts[version] = entry[1]
        elif isinstance(entry, VersionPruned):
            pruned.append(version)
        elif unknown is None:
            raise entry.with_traceback(None)
        else:
            unknown[version] = entry
    if pruned:
        kept = min(layouts, default=None)
        if kept is None:
            kept = node.ledger().version
            layouts[kept] = node.abis.at(kept).layout(tag)
        warn_caller(
            f"the node has pruned the modules of versions up to {max(pruned):,}; for these versions, "
            f"{visible(str(tag), 120)} is decoded with its type at version {kept:,}"
        )
        layouts |= dict.fromkeys(pruned, layouts[kept])
    return layouts


# the state before ----------------------------------------------------------------------------------------------------


def _state_diff(
    changes: Sequence[_Change], runs: Mapping[int, int] | None, node: Reads
) -> tuple[list[_Change], list[ToolkitError | None]]:
    """Return the rows of a state diff: the changes with the states before and after, and why a state is not known.

    Parameters
    ----------
    changes : sequence of dict
        The state changes, by transaction.
    runs : mapping of int to int, or None
        The unbroken range of each version of committed transactions; None for simulations.
    node : Node
    """
    rows, unknown = with_ended_members([change for change in changes if slot_of(change) is not None], runs, node)
    written = [(slot, one["ledger_version"], one["state_key_hash"]) for one in rows if (slot := slot_of(one))]
    after = [_after(row) for row in rows]
    ran_on = [Read(slot, version) for slot, version, _ in written]  # of simulations: the state of their version
    sources: Sequence[_Source] = ran_on if runs is None else _committed_sources(written, runs)
    found = read_states(node, [source for source in sources if isinstance(source, Read)])
    before = [None if one is None else found[one] if isinstance(one, Read) else after[one] for one in sources]
    before = [unknown.get(place, state) for place, state in enumerate(before)]
    failures: list[ToolkitError | None] = []
    for row, *pair in zip(rows, before, after, strict=True):
        failures.append(next((state for state in pair if isinstance(state, ToolkitError)), None))
        one, two = (None if isinstance(state, ToolkitError) else state for state in pair)
        has_fields = row["resource_type"] is not None and failures[-1] is None
        row.update(before=one, after=two, fields_changed=_changed_fields(one, two) if has_fields else None)
    return rows, failures


def slot_of(change: _Change) -> _Slot | None:
    """Return the slot that a change writes or deletes; None for modules and unknown kinds of changes."""
    if change["resource_type"] is not None and change["address"] is not None:
        return _Resource(change["address"], change["resource_type"])
    if change["handle"] is not None and change["key"] is not None:
        return _Item(change["handle"], change["key"])
    return None


def _committed_sources(written: Sequence[tuple[_Slot, int, str]], runs: Mapping[int, int]) -> list[_Source]:
    """Return, for each change of committed transactions, where to read the state before it, or the change that left it.

    Each change is given by its slot, the version of its transaction and the hash of its state key. A node lists all
    resources of a resource group in each write of the group. A resource that a later write of its group does not list
    was therefore deleted, and its earlier change is ignored.
    """
    sources: list[_Source] = []
    last: dict[_Slot, int] = {}
    groups: dict[str, int] = {}
    for version, numbered in groupby(enumerate(written), key=lambda pair: pair[1][1]):
        members = list(numbered)
        for _, (slot, _, group) in members:
            earlier = last.get(slot)
            at = None if earlier is None else written[earlier][1]
            unbroken = at is not None and version in runs and runs.get(at) == runs[version]
            if version == 0:
                sources.append(None)
            elif unbroken and groups[group] == at:
                sources.append(earlier)
            else:
                sources.append(Read(slot, version - 1))
        for place, (slot, _, group) in members:
            last[slot], groups[group] = place, version
    return sources


def read_states(node: Reads, reads: Iterable[Read]) -> dict[Read, _State]:
    """Read the distinct slots and versions, many at a time."""
    wanted = list(dict.fromkeys(reads))

    def prepared(read: Read) -> PreparedCall[Any]:
        if isinstance(read.slot, _Resource):
            return node.prepare_resource(*read.slot, read.version)
        return node.prepare_raw_item(*read.slot, read.version)

    return {wanted[place]: _state(wanted[place].slot, outcome) for place, outcome in send_all(node, wanted, prepared)}


def _state(slot: _Slot, outcome: Any) -> _State:
    """Return the outcome of a read as a frame shows it."""
    if isinstance(outcome, NotFound):
        absent = ABSENT if isinstance(slot, _Resource) else {NO_ITEM}
        return None if outcome.error_code in absent else outcome
    if isinstance(outcome, ToolkitError):
        return outcome
    return f"0x{outcome.hex()}" if isinstance(outcome, bytes) else frames.compact_json(outcome[0])


def _after(row: _Change) -> _State:
    """Return the state after a change."""
    if str(row["type"]).startswith("delete"):
        return None
    if row["resource_type"] is None:
        return None if row["value"] is None else f"0x{row['value'].hex()}"
    try:
        return None if row["data"] is None else frames.compact_json(parse_json(row["data"], row["resource_type"]))
    except SchemaError as error:
        return error


def _changed_fields(before: str | None, after: str | None) -> list[str]:
    """Return the names of the top-level fields that differ."""
    one, two = (parse_json(text, "resource") if text else {} for text in (before, after))
    if not isinstance(one, dict) or not isinstance(two, dict):
        return []
    return [name for name in dict.fromkeys([*one, *two]) if one.get(name) != two.get(name)]
