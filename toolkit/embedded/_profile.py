"""Profiles: which function of a contract, and which kind of charge, the gas of a call is spent on."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from toolkit._present.notebook import literal
from toolkit._present.tables import Listing, html_table, text_table
from toolkit._present.text import short_addresses, visible
from toolkit.embedded._contract import Code, Module
from toolkit.embedded._meter import Meter
from toolkit.embedded._session import EmittedEvent
from toolkit.embedded._vm_status import VmError
from toolkit.errors import InputError
from toolkit.move import parse_type_tag
from toolkit.move._ids import wire_address
from toolkit.move._type_tags import wire_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    import pandas as pd

    from toolkit.embedded._meter import Schedule
    from toolkit.embedded._session import TableTypes
    from toolkit.embedded._state import StateKey


CATEGORIES = ("execution", "io", "storage", "rounding")
"""Kinds of charges: the parts of a FeeStatement, and what the total is rounded up by."""

_OUT_OF_GAS, _ROUNDING = "out of gas", "rounding up"
_CONTRACT_MODULES = {"toolkit.embedded._contract", "toolkit.embedded._compiler"}
_BOUNDARY = ("toolkit.embedded._execution", {"execute", "run_view"})
_MAX_ROWS = 12
_TEXTS = {"stack", "function", "category", "operation", "item"}

_Stack = tuple[str, ...]
_Row = tuple[_Stack, str, str, object]


@dataclass(frozen=True, slots=True)
class GasCharge:
    """One kind of charge in one place of a call, as listed by `GasProfile.charges`.

    Parameters
    ----------
    stack : tuple of str
        Functions from the outermost in, such as ``("transaction", "0xcafe::registry::register")``. Native functions,
        such as ``0x1::table::add``, are functions too, and so are ``loading code`` and ``intrinsic gas``.
    category : {"execution", "io", "storage", "rounding"}
        Part of the fee.
    operation : str
        Parameter of the gas schedule, ``basic blocks`` or ``loop turns`` (sums of several parameters), ``storage fee``,
        or ``out of gas``: the rest of the gas, which was too little for the charge.
    item : str
        Type of the resource, table item or event that was read, written or emitted; empty for others.
    times : int
        Number of charges.
    internal_gas : int
        Internal gas units; 1,000,000 of them are one gas unit.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit.embedded import Ledger
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xcafe", 5])
    >>> profile = Ledger().profile(call, sender="0xb0b")
    >>> charge = profile.charges[0]
    >>> charge.stack[0], charge.category, charge.times
    ('transaction', 'execution', 1)
    """

    stack: tuple[str, ...]
    category: str
    operation: str
    item: str
    times: int
    internal_gas: int


@dataclass(frozen=True, slots=True, repr=False)
class GasProfile:
    """The gas of a call by function and by kind of charge; `Ledger.profile` returns one.

    The charges add up exactly: their sum in internal gas units is ``gas_used * scaling``, because rounding up the total
    is a charge too. The cost of a write, an event or its storage is attributed to the function that first wrote or
    emitted it, although it is charged at the end of the transaction.

    Parameters
    ----------
    call : str
        The function or script that was called.
    success : bool
        Whether it succeeded.
    vm_status : str
        How execution ended.
    gas_used : int
        Gas units, as a simulation or a view reports them.
    ledger_version : int
        The version whose state was read.
    scaling : int
        Internal gas units in a gas unit.
    charges : tuple of GasCharge
        The charges, in order of first occurrence.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit import embedded
    >>> ledger = embedded.Ledger()
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
    >>> profile = ledger.profile(call, sender="0xa11ce")
    >>> sum(charge.internal_gas for charge in profile.charges) == profile.gas_used * profile.scaling
    True
    >>> profile.to_frame(by="category")["category"].tolist()
    ['execution', 'io', 'rounding']
    """

    call: str
    success: bool
    vm_status: str
    gas_used: int
    ledger_version: int
    scaling: int
    charges: Listing[GasCharge] = field(repr=False)

    def to_frame(self, by: Literal["charge", "function", "category"] = "charge") -> pd.DataFrame:
        """Return the charges as a typed frame.

        Parameters
        ----------
        by : {"charge", "function", "category"}, default "charge"
            One row per charge, per function (by own gas, largest first), or per category.

        Returns
        -------
        DataFrame
            ``internal_gas`` (uint64) adds up to ``gas_used * scaling`` in each form; per charge also ``stack`` (joined
            by ``;``), ``function``, ``category``, ``operation``, ``item`` and ``times``; per function also
            ``with_callees`` (including the functions it calls), ``execution``, ``io``, ``storage`` and ``rounding``;
            per category also ``times``.

        Raises
        ------
        InputError
            If `by` is not valid.

        Examples
        --------
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger.with_history(versions=200)
        >>> import toolkit
        >>> profile = ledger.profile(toolkit.ViewFunction("0xb00c::order_book::depth"))
        >>> profile.to_frame(by="function")["function"].tolist()
        ['loading code', '0xb00c::order_book::depth', 'view']
        """
        import pyarrow as pa

        from toolkit.dtypes import to_pandas

        charges = self.charges
        rows: list[tuple[Any, ...]]
        if by == "charge":
            names = ["stack", "function", "category", "operation", "item", "times", "internal_gas"]
            rows = [
                (";".join(c.stack), c.stack[-1], c.category, c.operation, c.item or None, c.times, c.internal_gas)
                for c in charges
            ]
        elif by == "function":
            names = ["function", "internal_gas", "with_callees", *CATEGORIES]
            rows = [(name, own, whole, *parts) for name, own, whole, parts in self._functions()]
        elif by == "category":
            names = ["category", "times", "internal_gas"]
            totals: dict[str, list[int]] = {}
            for c in sorted(charges, key=lambda c: CATEGORIES.index(c.category)):
                _add(totals, c.category, c.times, c.internal_gas)
            rows = [(category, *total) for category, total in totals.items()]
        else:
            raise InputError(f"by must be 'charge', 'function' or 'category', got {by!r:.80}")
        columns: list[Any] = list(zip(*rows, strict=True)) or [()] * len(names)
        kinds = [pa.string() if name in _TEXTS else pa.uint64() for name in names]
        return to_pandas(pa.table(list(map(pa.array, columns, kinds)), names=names))

    def to_folded(self) -> str:
        """Return the charges as folded stacks, which speedscope.app and flamegraph.pl draw.

        Returns
        -------
        str
            One line per charge: functions and the kind of charge, joined by ``;``, a space, and internal gas units.

        Examples
        --------
        >>> import toolkit
        >>> from toolkit import embedded
        >>> profile = embedded.Ledger().profile(toolkit.ViewFunction("0x1::chain_id::get"))
        >>> profile.to_folded().splitlines()[-1]
        'view;rounding up 169530'
        """
        lines: dict[str, int] = defaultdict(int)
        for charge in self.charges:
            last = charge.operation if charge.category == "rounding" else f"{charge.category} {charge.item}".strip()
            lines[";".join([*charge.stack, last])] += charge.internal_gas
        return "".join(f"{line} {gas}\n" for line, gas in lines.items())

    def _functions(self) -> list[tuple[str, int, int, list[int]]]:
        """Return name, own gas, gas with callees, and own gas by category of each function, largest first."""
        own: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(CATEGORIES, 0))
        whole: dict[str, int] = defaultdict(int)
        for charge in self.charges:
            own[charge.stack[-1]][charge.category] += charge.internal_gas
            for name in set(charge.stack):  # a function that calls itself is counted once
                whole[name] += charge.internal_gas
        rows = [(name, sum(own[name].values()), gas, list(own[name].values())) for name, gas in whole.items()]
        return sorted(rows, key=lambda row: -row[1])

    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        """Return the title, the head and the rows of functions, in gas units."""
        how = "" if self.success else f", failed ({self.vm_status})"
        title = f"gas of {self.call}{how}: {self.gas_used:,} gas units at ledger version {self.ledger_version}"
        every = self._functions()
        rows = [
            [name, f"{own / self.scaling:,.3f}", f"{whole / self.scaling:,.3f}", *self._shown(parts)]
            for name, own, whole, parts in every[:_MAX_ROWS]
        ]
        if len(every) > _MAX_ROWS:
            rest = every[_MAX_ROWS:]
            rows.append([f"{len(rest)} more", f"{sum(row[1] for row in rest) / self.scaling:,.3f}", "", "", "", "", ""])
        head = ["function", "gas units", "with callees", *CATEGORIES]
        return visible(short_addresses(title), 300), head, [[visible(short_addresses(c), 120) for c in r] for r in rows]

    def _shown(self, parts: list[int]) -> list[str]:
        return [f"{part / self.scaling:,.3f}" if part else "" for part in parts]

    def __repr__(self) -> str:
        title, head, rows = self._table()
        return "\n".join([title, *text_table(rows, head=head, numbers_from=1)])

    def _repr_html_(self) -> str:
        from html import escape

        title, head, rows = self._table()
        cells = [[escape(cell) for cell in row] for row in rows]
        return literal(f"<strong>{escape(title)}</strong>{html_table(cells, head=head, right=range(1, len(head)))}")


class ProfilingMeter(Meter):
    """A meter that also records which function each charge belongs to, found on the Python stack.

    Parameters
    ----------
    schedule, max_gas_units, gas_unit_price
        As for `Meter`.
    root : str, default "transaction"
        Name of what is outside of all functions.
    """

    __slots__ = ("_items", "_origins", "_root", "rows")

    def __init__(
        self, schedule: Schedule, *, max_gas_units: int, gas_unit_price: int = 0, root: str = "transaction"
    ) -> None:
        super().__init__(schedule, max_gas_units=max_gas_units, gas_unit_price=gas_unit_price)
        self.rows: dict[_Row, list[int]] = {}  # number and gas of equal charges
        self._root = root
        self._origins: dict[object, _Stack] = {}
        self._items: list[object] = []  # events are found by identity, so they must live

    def _spend(self, amount: int, operation: str) -> None:
        """Charge execution gas; a parameter of a native function is charged in it."""
        native = _native(operation)
        stack = self._stack() if native is None else (*self._stack(), native)
        self._record(partial(super()._spend, amount, operation), stack, operation)

    def charge_io(self, parameter: str, times: int = 1, item: object = None) -> None:
        """Charge input and output gas; for a written item, in the function that wrote it."""
        stack = self._origins.get(_origin(item)) or self._stack()
        self._record(partial(super().charge_io, parameter, times), stack, parameter, item)

    def charge_storage(self, octas: int, item: object = None) -> None:
        """Charge a storage fee in the function that wrote the item."""
        stack = self._origins.get(_origin(item)) or self._stack()
        self._record(partial(super().charge_storage, octas), stack, "storage fee", item)

    def use_up(self) -> None:
        """Charge the rest of the gas."""
        self._record(super().use_up, self._stack(), _OUT_OF_GAS)

    def written(self, item: object) -> None:
        """Record the function that writes or emits an item; the first one counts."""
        self._items.append(item)
        self._origins.setdefault(_origin(item), self._stack())

    def _record(self, charge: Callable[[], None], stack: _Stack, operation: str, item: object = None) -> None:
        """Make a charge and record what it changed, also if it uses up the gas."""
        execution, io, balance = self._execution, self._io, self._balance
        try:
            charge()
        except VmError:
            operation = _OUT_OF_GAS
            raise
        finally:
            parts = {"execution": self._execution - execution, "io": self._io - io}
            parts["storage"] = balance - self._balance - parts["execution"] - parts["io"]
            if parts["storage"] < 0:  # out of gas: storage charged so far counts as execution
                for key in [key for key in self.rows if key[1] == "storage"]:
                    _add(self.rows, (key[0], "execution", *key[2:]), *self.rows.pop(key))
                parts = {"execution": balance}
            for category, amount in parts.items():
                if amount:
                    _add(self.rows, (stack, category, operation, item), 1, amount)

    def _stack(self) -> _Stack:
        """Return the functions that run, from the outermost in."""
        return (self._root, *reversed(list(_functions(sys._getframe(1)))))  # noqa: SLF001 - it has no public name


def _add(rows: dict[Any, list[int]], key: object, times: int, amount: int) -> None:
    row = rows.setdefault(key, [0, 0])
    row[0] += times
    row[1] += amount


def _functions(frame: FrameType | None) -> Iterator[str]:
    """Yield the contract functions of a Python stack, innermost first, up to the start of the execution."""
    counted = False  # whether the frame that this one called is a function
    while frame is not None:
        module, code = frame.f_globals.get("__name__"), frame.f_code
        if module == _BOUNDARY[0] and code.co_name in _BOUNDARY[1]:
            return
        owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        name = code.co_name if isinstance(owner, Code) else None
        if name is not None and module in _CONTRACT_MODULES:
            # The wrapper of a marked function, which charges the call before the function has a frame.
            name = frame.f_locals["function"].__name__ if name == "called" and not counted else None
        if name is not None:
            yield f"{owner.definition.wire_id}::{name}" if isinstance(owner, Module) else f"script {name}"
        counted = name is not None
        frame = frame.f_back


def _native(parameter: str) -> str | None:
    """Return the native function, or the work of the VM, that a parameter prices; None for instructions."""
    group, *names = parameter.split(".")
    if group == "txn" and names[0].startswith("dependency_"):
        return "loading code"
    if parameter in {"txn.min_transaction_gas_units", "txn.intrinsic_gas_per_byte"}:
        return "intrinsic gas"
    if group == "table":
        return f"0x1::table::{'load' if names[0] == 'common' else names[0].removesuffix('_box')}"
    return f"0x1::{names[0]}::{names[1]}" if group in {"aptos_framework", "move_stdlib"} else None


def _origin(item: object) -> object:
    return id(item) if isinstance(item, EmittedEvent) else item


def profile_of(
    meter: ProfilingMeter,
    call: str,
    outcome: tuple[bool, str, int],
    *,
    version: int,
    tables: Mapping[str, TableTypes],
) -> GasProfile:
    """Return the profile of what a meter recorded.

    Parameters
    ----------
    meter : ProfilingMeter
        The meter after the execution.
    call : str
        Name of what was called.
    outcome : tuple of (bool, str, int)
        Success, VM status and gas used.
    version : int
        Ledger version that was read.
    tables : mapping of str to TableTypes
        Types of tables by handle.
    """
    scaling = meter.schedule.scaling
    found: dict[tuple[_Stack, str, str, str], list[int]] = {}
    for (stack, category, operation, item), (times, amount) in meter.rows.items():
        _add(found, (stack, category, operation, _item_text(item, tables)), times, amount)
    charges = [GasCharge(*key, times=times, internal_gas=amount) for key, (times, amount) in found.items()]
    rounding = outcome[2] * scaling - sum(charge.internal_gas for charge in charges)
    if rounding:
        root = charges[0].stack[:1] if charges else ("transaction",)
        charges.append(GasCharge(root, "rounding", _ROUNDING, "", 1, rounding))
    return GasProfile(call, *outcome, version, scaling, Listing(charges))


def _item_text(item: Any, tables: Mapping[str, TableTypes]) -> str:
    """Return the type of a state item or event."""
    if item is None:
        return ""
    if isinstance(item, EmittedEvent):
        return item.type
    key: StateKey = item
    if key.kind == "table":
        types = tables.get(key.owner)
        return f"table {wire_address(key.owner)}" if types is None else f"table {types.key} -> {types.value}"
    if key.kind == "module":
        return f"code of {wire_address(key.owner)}::{key.name!s}"
    return wire_type(parse_type_tag(str(key.name)))
