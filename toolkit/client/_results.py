"""Results of single calls: values with their types, gas, ledger versions; of a simulation all that it would do."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolkit._present.notebook import facts_html
from toolkit._present.text import short_addresses, visible
from toolkit.client._failures import failure_reason
from toolkit.errors import InputError
from toolkit.move import parse_type_tag
from toolkit.move._json_text import parse_json
from toolkit.wire import EntryFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pandas as pd

    from toolkit.client._node import Node  # for typing only: a Node returns these results
    from toolkit.frames._calls import TableItemRecord, ViewRecord
    from toolkit.move import Layout, TypeTag
    from toolkit.wire import GasBreakdown, LedgerState, SimulationRequest, UserTransaction, ViewFunction

__all__ = ["Simulation", "TableItem", "ViewResult"]

OCTAS_PER_APT = 10**8
_SIMILAR = 0.8
_MAX_SUGGESTIONS = 3
_MAX_BALANCES = 8


@dataclass(frozen=True, slots=True)
class ViewResult:
    """The answer of a view function.

    Attributes
    ----------
    call : ViewFunction
    values : tuple
        Return values as Python values.
    types : tuple of str
        Their Move types; empty if the module's ABI is not known.
    gas_used : int or None
        Gas units; None if the node does not say.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it answered.
    layouts : tuple of Layout or None
        The layouts of the values.
    raw : str
        The values as JSON text.

    Examples
    --------
    >>> import toolkit
    >>> result = toolkit.connect().at(4_000).view("0x1::timestamp::now_seconds")
    >>> result.types, result.ledger_version
    (('u64',), 4000)
    """

    call: ViewFunction
    values: tuple[Any, ...]
    types: tuple[str, ...]
    gas_used: int | None
    ledger_version: int
    ledger: LedgerState | None
    layouts: tuple[Layout, ...] | None = field(repr=False)
    raw: str = field(repr=False)

    @property
    def value(self) -> Any:
        """The return value; a tuple if the function does not return exactly one."""
        return self.values[0] if len(self.values) == 1 else self.values

    @property
    def typing(self) -> str:
        """Where the types come from: ``abi``, or ``inferred`` from JSON if the module's ABI is not known."""
        return "inferred" if self.layouts is None else "abi"

    def record(self, call: str | None = None) -> ViewRecord:
        """Return the record that a frame is built from."""
        from toolkit.frames._calls import ViewRecord

        head = self.ledger.version if self.ledger else None
        answer = (self.gas_used, self.values, self.layouts, self.raw)
        return ViewRecord(call, self.ledger_version, head, *answer, types=self.types)

    def _repr_html_(self) -> str:
        types = ", ".join(self.types) or "unknown; inferred from JSON"
        gas = None if self.gas_used is None else f"{self.gas_used} gas units"
        facts = [("value", self.value), ("type", types), ("gas", gas), ("ledger version read", self.ledger_version)]
        return facts_html(self.call.function, facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return the result as a frame.

        Parameters
        ----------
        flatten : bool, default False
            Replace struct columns by one column per field.

        Returns
        -------
        DataFrame, shape (1, 8 + return values)
            With one typed column per return value.

        Raises
        ------
        SchemaError
            If a value does not fit the type of its column.
        """
        from toolkit.frames._calls import view_frame

        return view_frame([self.record()], flatten=flatten)


@dataclass(frozen=True, slots=True)
class TableItem:
    """One item of a table.

    Attributes
    ----------
    handle : str
        Table handle: 0x and 64 hex digits.
    key, value : object
        As Python values.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it answered.
    key_layout, value_layout : Layout
        Their layouts.
    """

    handle: str
    key: Any
    value: Any
    ledger_version: int
    ledger: LedgerState | None
    key_layout: Layout = field(repr=False)
    value_layout: Layout = field(repr=False)

    def record(self) -> TableItemRecord:
        """Return the record that a frame is built from."""
        from toolkit.frames._calls import TableItemRecord

        head = self.ledger.version if self.ledger else None
        return TableItemRecord(self.key, self.ledger_version, head, self.value)

    def _repr_html_(self) -> str:
        facts = [("key", self.key), ("value", self.value), ("ledger version read", self.ledger_version)]
        return facts_html(f"item of table {self.handle}", facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return the item as a frame.

        Parameters
        ----------
        flatten : bool, default False
            Replace struct columns by one column per field.

        Returns
        -------
        DataFrame, shape (1, >= 10)
            With the typed key and value.

        Raises
        ------
        SchemaError
            If a value does not fit the type of its column.
        """
        from toolkit.frames._calls import item_frame

        return item_frame([self.record()], key_layout=self.key_layout, value_layout=self.value_layout, flatten=flatten)


@dataclass(frozen=True, repr=False)
class Simulation:
    """The outcome of a simulated transaction. Nothing was signed, submitted or stored.

    A simulation is data: it can be pickled and compared. Only `diff`, and `resources` and `events_of` for types that
    were not used before, read from the node; an unpickled simulation connects to it again for that, without secrets.

    Attributes
    ----------
    request : SimulationRequest
    transaction : UserTransaction
        The node's answer, decoded.
    ledger : LedgerState or None
        The node's head when it answered.

    Examples
    --------
    >>> import toolkit
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0x2", 100])
    >>> simulation = toolkit.connect().simulate(call, sender="0x1")
    >>> simulation.success, len(simulation.transactions)
    (True, 1)
    """

    request: SimulationRequest
    transaction: UserTransaction
    ledger: LedgerState | None
    _node: Node | None = field(default=None, repr=False, compare=False)
    _layouts: dict[str, Layout] = field(default_factory=dict, repr=False, compare=False)
    _reconnect: tuple[Callable[..., Node], tuple[Any, ...]] | None = field(default=None, repr=False, compare=False)

    @property
    def success(self) -> bool:
        """Whether the transaction would succeed."""
        return self.transaction.success

    @property
    def vm_status(self) -> str:
        """How execution ended, in the node's words."""
        return self.transaction.vm_status

    @property
    def gas_used(self) -> int:
        """Gas units that would be charged."""
        return self.transaction.gas_used

    @property
    def ledger_version(self) -> int:
        """The version whose state the simulation ran on: the node's head at that moment."""
        return self.transaction.version

    @property
    def affordable_max_gas(self) -> int | None:
        """Max gas amount that the node filled in, which is what the sender can afford; None if the request has one."""
        return None if self.request.max_gas_amount is not None else self.transaction.max_gas_amount

    @cached_property
    def gas(self) -> GasBreakdown | None:
        """The gas by kind, from the FeeStatement event; None if the transaction was discarded before it ran."""
        return self.transaction.gas_breakdown()

    @cached_property
    def _frames(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        from toolkit.frames._transactions import transaction_frames

        return transaction_frames([self.transaction], requests=[0])

    @property
    def transactions(self) -> pd.DataFrame:
        """One row: the simulated transaction."""
        return self._frames[0]

    @property
    def changes(self) -> pd.DataFrame:
        """One row per state change."""
        return self._frames[1]

    @property
    def events(self) -> pd.DataFrame:
        """One row per event."""
        return self._frames[2]

    def resources(self, tag: str) -> pd.DataFrame:
        """Return the writes of a resource.

        Parameters
        ----------
        tag : str
            Struct tag, such as ``0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>``.

        Returns
        -------
        DataFrame, shape (number of writes, 1 + fields)
            ``address``, then one typed column per field. Empty if the transaction writes none; a warning then names
            similar types that it writes.

        Raises
        ------
        InputError
            If `tag` cannot be parsed, or an unpickled simulation cannot connect to its node again.
        NodeError, NodeUnreachable
            If the module of the type cannot be looked up.
        """
        return self._payloads(self.changes, "resource_type", tag, identity=("address",))

    def events_of(self, event_type: str) -> pd.DataFrame:
        """Return the events of a type.

        Parameters
        ----------
        event_type : str
            Type of the event, such as ``0x1::transaction_fee::FeeStatement``.

        Returns
        -------
        DataFrame, shape (number of events, 4 + fields)
            The guid, then one typed column per field. Empty if there is none; a warning then names similar types of
            events.

        Raises
        ------
        InputError
            If `event_type` cannot be parsed, or an unpickled simulation cannot connect to its node again.
        NodeError, NodeUnreachable
            If the module of the type cannot be looked up.
        """
        identity = ("event_index", "account_address", "creation_number", "sequence_number")
        return self._payloads(self.events, "type", event_type, identity=identity)

    @cached_property
    def balance_changes(self) -> pd.DataFrame:
        """One row per owner and asset whose balance changes, the fee included, in base units."""
        from toolkit.frames._balances import balance_frame

        return balance_frame(self.transaction)

    def diff(self) -> pd.DataFrame:
        """Return the state before and after of each resource and table item that the transaction writes or deletes.

        Returns
        -------
        DataFrame, shape (number of changes, 8)
            Resources as JSON text, table items as hex of their BCS bytes, with the fields that differ.

        Raises
        ------
        InputError
            If an unpickled simulation cannot connect to its node again.
        NodeError, NodeUnreachable
            If the state before cannot be read at the simulation's ledger version.
        """
        with self._connected() as node:
            return _state_diff(self.changes, node, self.ledger_version)

    def explain(self) -> str:
        """Return in plain words what the call would do, what it costs, and why it fails."""
        lines = [_headline(self), *_failure_lines(self), _cost_line(self), *_balance_lines(self), _writes_line(self)]
        lines.append(
            f"Nothing was signed, submitted or stored; the state is that of ledger version {self.ledger_version}."
        )
        return "\n".join(visible(short_addresses(line), 400) for line in lines)

    def __repr__(self) -> str:
        text = f"{short_addresses(_headline(self))} gas_used={self.gas_used}, ledger_version={self.ledger_version}"
        return f"<Simulation: {visible(text, 300)}, vm_status={visible(self.vm_status)}>"

    def _repr_html_(self) -> str:
        title, *lines = self.explain().splitlines()
        return facts_html(title, [("status", self.vm_status), *(("", line) for line in lines)])

    def __getstate__(self) -> dict[str, Any]:
        """Return the data, and how to connect to the node again; no sockets, no secrets, no frames."""
        data = {name: self.__dict__[name] for name in ("request", "transaction", "ledger", "_layouts")}
        reconnect = self._reconnect if self._node is None else self._node.reconnect
        return data | {"_node": None, "_reconnect": reconnect}

    @contextmanager
    def _connected(self) -> Iterator[Node]:
        """Use the node that answered; an unpickled simulation connects to it again while the block runs."""
        if self._node is not None:
            yield self._node
            return
        if self._reconnect is None:
            raise InputError(
                "this Simulation was unpickled, and its node cannot be connected to again, since it used a transport "
                "of its own; call diff(), resources() and events_of() before pickling"
            )
        connect, settings = self._reconnect
        with connect(*settings) as node:
            yield node

    def _layout(self, tag: TypeTag) -> Layout:
        name = str(tag)
        if name not in self._layouts:
            with self._connected() as node:
                self._layouts[name] = node.abis.at(self.ledger_version).layout(tag)
        return self._layouts[name]

    def _payloads(self, rows: pd.DataFrame, column: str, tag: str, *, identity: tuple[str, ...]) -> pd.DataFrame:
        from toolkit.frames._transactions import payload_frame

        frame = payload_frame(rows, column, tag, self._layout(parse_type_tag(tag)), identity=identity)
        similar = [] if len(frame) else _similar(tag, rows[column].dropna().unique())
        if similar:
            shown = " or ".join(visible(text, 120) for text in similar)
            warnings.warn(f"this transaction has no {tag}; did you mean {shown}?", UserWarning, stacklevel=3)
        return frame


def _similar(tag: str, types: Iterable[str]) -> list[str]:
    """Return types with a similar name: with other type arguments, of another module, or misspelt."""
    names: dict[str, list[str]] = {}
    for text in types:
        names.setdefault(_struct_name(text), []).append(text)
    close = get_close_matches(_struct_name(tag), names, cutoff=_SIMILAR)
    return [text for name in close for text in names[name]][:_MAX_SUGGESTIONS]


def _struct_name(tag: str) -> str:
    return tag.partition("<")[0].rpartition("::")[2]


# a simulation in words -----------------------------------------------------------------------------------------------


def _headline(simulation: Simulation) -> str:
    payload = simulation.request.payload
    what = payload.function if isinstance(payload, EntryFunction) else f"the {type(payload).__name__} payload"
    return f"{what} from {simulation.request.sender} would {'succeed' if simulation.success else 'fail'}."


def _failure_lines(simulation: Simulation) -> list[str]:
    """Return why a transaction would fail: the meaning of the status, then the status, which may be long."""
    if simulation.success:
        return []
    why = failure_reason(simulation.request, simulation.transaction)
    return [*([f"Why: {why}."] if why else []), f"Status: {simulation.vm_status}"]


def _cost_line(simulation: Simulation) -> str:
    gas = simulation.gas
    if gas is None:
        return "It was discarded before it ran, so nothing would be charged."
    whole, octas = divmod(abs(gas.net_octas), OCTAS_PER_APT)
    net = f"{'' if gas.net_octas >= 0 else 'a refund of '}{whole}.{octas:08d} APT"
    parts = f"execution {gas.execution_gas_units}, reads and writes {gas.io_gas_units} gas units"
    storage = f"storage {gas.storage_fee_octas} octas, refund {gas.storage_fee_refund_octas} octas"
    return (
        f"It costs {gas.total_charge_gas_units} gas units at {gas.gas_unit_price} octas each, {net} net "
        f"({parts}, {storage})."
    )


def _balance_lines(simulation: Simulation) -> list[str]:
    from toolkit.frames._columns import plain_columns

    columns = plain_columns(simulation.balance_changes, ["owner", "asset", "change"])
    rows = list(zip(*columns.values(), strict=True))
    lines = [f"{owner}: {change:+d} of {asset}." for owner, asset, change in rows[:_MAX_BALANCES]]
    more = len(rows) - _MAX_BALANCES
    return [*lines, f"{more} more {'balance' if more == 1 else 'balances'}."] if more > 0 else lines


def _writes_line(simulation: Simulation) -> str:
    from toolkit.frames._columns import plain_columns

    kinds = plain_columns(simulation.changes, ["type"])["type"]
    counts = ", ".join(f"{kinds.count(kind)} {str(kind).replace('_', ' ')}" for kind in dict.fromkeys(kinds))
    return f"State changes: {counts or 'none'}. Events: {len(simulation.events)}."


# the state before a simulation ---------------------------------------------------------------------------------------


def _state_diff(changes: pd.DataFrame, node: Node, version: int) -> pd.DataFrame:
    """Return one row per written or deleted resource and table item; see `Simulation.diff`."""
    from toolkit.frames._columns import plain_columns, rows_frame
    from toolkit.frames._schema import DIFF

    columns = plain_columns(changes, ["type", "address", "resource_type", "handle", "key", "value", "data"])
    written = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rows = [row for change in written if (row := _diff_row(change, node, version)) is not None]
    return rows_frame(DIFF, {name: [row[name] for row in rows] for name in DIFF.names})


def _diff_row(change: dict[str, Any], node: Node, version: int) -> dict[str, Any] | None:
    """Read the state before one change; None for changes of modules."""
    from toolkit.frames._columns import compact_json

    deleted = str(change["type"]).startswith("delete")
    row = {name: change[name] for name in ("type", "address", "resource_type", "handle", "key")}
    if change["resource_type"] is not None and change["address"] is not None:
        found = node.resource_json(change["address"], change["resource_type"], version)
        before = None if found is None else compact_json(found)
        data = None if deleted else change["data"]
        after = None if data is None else compact_json(parse_json(data, change["resource_type"]))
        return row | {"before": before, "after": after, "fields_changed": _changed_fields(before, after)}
    if change["handle"] is None or change["key"] is None:
        return None
    item = node.table_item_bytes(change["handle"], change["key"], version)
    after = None if deleted or change["value"] is None else "0x" + change["value"].hex()
    return row | {"before": None if item is None else "0x" + item.hex(), "after": after, "fields_changed": None}


def _changed_fields(before: str | None, after: str | None) -> Sequence[str]:
    """Return the top-level fields that differ."""
    one, two = (parse_json(text, "resource") if text else {} for text in (before, after))
    if not isinstance(one, dict) or not isinstance(two, dict):
        return []
    return [name for name in dict.fromkeys([*one, *two]) if one.get(name) != two.get(name)]
