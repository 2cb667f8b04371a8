"""What single calls return: values with their types, gas, and the versions they belong to."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from toolkit._present.text import short_addresses, visible
from toolkit.client.display import facts_html
from toolkit.frames.calls import TableItemRecord, ViewRecord
from toolkit.move import parse_type_tag

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from toolkit.client.abis import AbisAt
    from toolkit.client.companion import Companion
    from toolkit.move import Layout
    from toolkit.wire import GasBreakdown, LedgerState, SimulationRequest, UserTransaction, ViewFunction

__all__ = ["Simulation", "TableItem", "ViewResult"]


@dataclass(frozen=True, slots=True)
class ViewResult:
    """The answer of a view function.

    Attributes
    ----------
    call : ViewFunction
        What was asked.
    values : tuple
        Return values in the toolkit's Python forms.
    types : tuple of str
        Their Move types; empty where no ABI was known.
    gas_used : int or None
        Gas units, where the node says.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it answered.
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
        """The return value; a tuple where the function returns several."""
        return self.values[0] if len(self.values) == 1 else self.values

    @property
    def typing(self) -> str:
        """``abi`` where the module's ABI gave the types, ``inferred`` where JSON did."""
        return "inferred" if self.layouts is None else "abi"

    def record(self, call: str | None = None) -> ViewRecord:
        """Return the result as the record a frame is built from."""
        head = self.ledger.version if self.ledger else None
        answer = (self.gas_used, self.values, self.layouts, self.raw)
        return ViewRecord(call, self.ledger_version, head, *answer, types=self.types)

    def _repr_html_(self) -> str:
        types = ", ".join(self.types) or "unknown; inferred from JSON"
        gas = None if self.gas_used is None else f"{self.gas_used} gas units"
        facts = [("value", self.value), ("type", types), ("gas", gas), ("ledger version read", self.ledger_version)]
        return facts_html(self.call.function, facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return one row with one typed column per return value; `flatten` splits structs into their fields."""
        from toolkit.frames.calls import view_frame

        return view_frame([self.record()], flatten=flatten)


@dataclass(frozen=True, slots=True)
class TableItem:
    """One item of a table.

    Attributes
    ----------
    handle : str
        Table handle, 0x and 64 digits.
    key, value : object
        In the toolkit's Python forms.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it answered.
    """

    handle: str
    key: Any
    value: Any
    ledger_version: int
    ledger: LedgerState | None
    key_layout: Layout = field(repr=False)
    value_layout: Layout = field(repr=False)

    def record(self) -> TableItemRecord:
        """Return the item as the record a frame is built from."""
        head = self.ledger.version if self.ledger else None
        return TableItemRecord(self.key, self.ledger_version, head, self.value)

    def _repr_html_(self) -> str:
        facts = [("key", self.key), ("value", self.value), ("ledger version read", self.ledger_version)]
        return facts_html(f"item of table {self.handle}", facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return one row with the typed key and value; `flatten` splits structs into their fields."""
        from toolkit.frames.calls import item_frame

        return item_frame([self.record()], key_layout=self.key_layout, value_layout=self.value_layout, flatten=flatten)


@dataclass(frozen=True, repr=False)
class Simulation:
    """The outcome of a simulated transaction. Nothing was signed, submitted or stored.

    Attributes
    ----------
    request : SimulationRequest
        What was asked.
    transaction : UserTransaction
        The node's answer, decoded.
    ledger : LedgerState or None
        The node's head when it answered.
    """

    request: SimulationRequest
    transaction: UserTransaction
    ledger: LedgerState | None
    abis: AbisAt = field(repr=False)
    companion: Companion = field(repr=False)

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
        """Max gas amount the node filled in: what the sender can afford, not advice; None where it was given."""
        return None if self.request.max_gas_amount is not None else self.transaction.max_gas_amount

    @cached_property
    def gas(self) -> GasBreakdown | None:
        """The split of the FeeStatement event; None where there is none: it was discarded before it ran."""
        return self.transaction.gas_breakdown()

    @cached_property
    def _frames(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        from toolkit.frames.transactions import transaction_frames

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
        """Return one row per write of a resource: ``address``, then one typed column per field.

        Parameters
        ----------
        tag : str
            Struct tag, such as ``0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>``.

        Returns
        -------
        DataFrame, shape (number of writes, 1 + fields)
            Empty where the transaction writes none; a warning then names the types that may have been meant.
        """
        return self._payloads(self.changes, "resource_type", tag, identity=("address",))

    def events_of(self, event_type: str) -> pd.DataFrame:
        """Return one row per event of a type: its guid, then one typed column per field.

        Parameters
        ----------
        event_type : str
            Type of the event, such as ``0x1::transaction_fee::FeeStatement``.

        Returns
        -------
        DataFrame, shape (number of events, 4 + fields)
            Empty where there is none; a warning then names the types that may have been meant.
        """
        identity = ("event_index", "account_address", "creation_number", "sequence_number")
        return self._payloads(self.events, "type", event_type, identity=identity)

    @cached_property
    def balance_changes(self) -> pd.DataFrame:
        """One row per owner and asset whose balance moves, the fee included, in base units."""
        from toolkit.frames.balances import balance_frame

        return balance_frame(self.transaction)

    def diff(self) -> pd.DataFrame:
        """Return before and after of each resource and table item that the transaction writes or deletes.

        Returns
        -------
        DataFrame
            Resources as JSON text, table items as hex of their BCS bytes, with the fields that differ.

        Raises
        ------
        NodeError, NodeUnreachable
            If the state before cannot be read at the simulation's ledger version.
        """
        from toolkit.client.diffs import state_diff

        return state_diff(self.changes, self.companion, self.ledger_version)

    def explain(self) -> str:
        """Return plain words: what the call would do, what it costs, and why it failed."""
        from toolkit.client.explaining import explanation

        return explanation(self)

    def __repr__(self) -> str:
        from toolkit.client.explaining import headline

        said = f"{short_addresses(headline(self))} gas_used={self.gas_used}, ledger_version={self.ledger_version}"
        return f"<Simulation: {visible(said, 300)}, vm_status={visible(self.vm_status)}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Simulation holds the node it asked, for diff() and typed resources, so it cannot be pickled; "
            "pickle its frames (transactions, changes, events, balance_changes) or its transaction"
        )

    def _repr_html_(self) -> str:
        title, *lines = self.explain().splitlines()
        return facts_html(title, [("status", self.vm_status), *(("", line) for line in lines)])

    def _payloads(self, rows: pd.DataFrame, column: str, tag: str, *, identity: tuple[str, ...]) -> pd.DataFrame:
        from toolkit.frames.transactions import payload_frame

        frame = payload_frame(rows, column, tag, self.abis.layout(parse_type_tag(tag)), identity=identity)
        meant = [] if len(frame) else _alike(tag, rows[column].dropna().unique())
        if meant:
            shown = " or ".join(visible(text, 120) for text in meant)
            warnings.warn(f"this transaction has no {tag}; did you mean {shown}?", UserWarning, stacklevel=3)
        return frame


_ALIKE = 0.8
_MOST_MEANT = 3


def _alike(tag: str, types: Iterable[str]) -> list[str]:
    """Return the types that a tag may have meant: with type arguments, of another module, or misspelt."""
    names: dict[str, list[str]] = {}
    for text in types:
        names.setdefault(_struct_name(text), []).append(text)
    close = get_close_matches(_struct_name(tag), names, cutoff=_ALIKE)
    return [text for name in close for text in names[name]][:_MOST_MEANT]


def _struct_name(tag: str) -> str:
    return tag.partition("<")[0].rpartition("::")[2]
