"""Results of single reads: values with their types, gas and ledger versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolkit._present.notebook import facts_html
from toolkit._present.text import short_addresses, visible

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.frames._calls import TableItemRecord, ViewRecord
    from toolkit.move import Layout
    from toolkit.wire import LedgerState, ViewFunction


@dataclass(frozen=True, slots=True, repr=False)
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
        Gas units; None if the node does not report them.
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

    def __repr__(self) -> str:
        gas = "" if self.gas_used is None else f", {self.gas_used:,} gas units"
        value = visible(short_addresses(repr(self.value)), 200)
        return f"<ViewResult {short_addresses(self.call.function)}: {value}{gas}, version {self.ledger_version}>"

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
        from toolkit.client._amounts import note_amounts
        from toolkit.frames._calls import view_frame

        frame = view_frame([self.record()], flatten=flatten)
        note_amounts(frame, {"": self.call}, None, self.ledger_version)
        return frame


@dataclass(frozen=True, slots=True, repr=False)
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

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect()
    >>> handle = node.view("0xcafe::registry::handle").value
    >>> item = node.table_item(handle, "alice", owner="0xcafe")
    >>> item.key, item.value["registered_at"], item.ledger_version
    ('alice', 1767334464, 4999)
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
        return TableItemRecord(self.key, self.ledger_version, head, self.value, layout=self.value_layout)

    def __repr__(self) -> str:
        key, value = (visible(short_addresses(repr(one)), 200) for one in (self.key, self.value))
        return f"<TableItem of {short_addresses(self.handle)}: {key} -> {value}, version {self.ledger_version}>"

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
