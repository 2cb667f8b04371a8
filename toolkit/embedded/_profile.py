"""Gas profiles: the gas of a call by contract function and by kind of charge."""

from __future__ import annotations

import inspect
from collections import defaultdict
from dataclasses import dataclass
from functools import partial, wraps
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.notebook import literal
from toolkit._present.text import plural, short_addresses, visible
from toolkit.embedded._meter import Meter, Schedule, call_in_row
from toolkit.embedded._vm_status import VmError
from toolkit.wire._on_chain import EmittedEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd


CATEGORIES = ("execution", "io", "storage", "rounding")
"""Categories of charges: the parts of a FeeStatement, and the amount by which the total is rounded up."""

_GAS = CATEGORIES[:2]
_OUT_OF_GAS, _ROUNDING = "out of gas", "rounding up"
_MAX_ROWS = 12  # of the text; the frame has all

_Stack = tuple[str, ...]
_Row = tuple[_Stack, str, str]


class GasCharge(NamedTuple):
    """The charges for one operation at one point of the call stack: a row of `GasProfile.to_frame`."""

    stack: _Stack
    category: str
    operation: str
    times: int
    internal_gas: int


@dataclass(frozen=True, slots=True, repr=False)
class GasProfile:
    """The gas of a call by function and by kind of charge, as returned by `Ledger.profile`.

    The charges add up exactly to ``gas_used * scaling`` internal gas units, because the rounding of the total is a
    charge too. The cost of a write or an event, including storage, belongs to the function that first wrote the value
    or emitted the event, although it is charged at the end of the transaction.

    Parameters
    ----------
    call : str
        The function or script that was called.
    success : bool
        Whether the call succeeded.
    vm_status : str
        VM status of the call.
    gas_used : int
        Gas units used, as a simulation or a view reports them.
    ledger_version : int
        Ledger version at which the call ran.
    scaling : int
        Internal gas units per gas unit.
    charges : tuple
        The rows of `to_frame`; each ``stack`` is a tuple of functions.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit import embedded
    >>> ledger = embedded.Ledger()
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
    >>> profile = ledger.profile(call, sender="0xa11ce")
    >>> sum(charge.internal_gas for charge in profile.charges) == profile.gas_used * profile.scaling
    True
    >>> profile.to_frame().groupby("category")["times"].sum().to_dict()
    {'execution': 47, 'io': 13, 'rounding': 1}
    """

    call: str
    success: bool
    vm_status: str
    gas_used: int
    ledger_version: int
    scaling: int
    charges: tuple[GasCharge, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return the charges as a typed frame, in order of first occurrence.

        Returns
        -------
        DataFrame
            ``stack``: functions, the outermost first, joined by ``;``. Native functions such as ``0x1::table::add``
            count as functions, and so do ``loading code`` and ``intrinsic gas``. ``function``: the innermost function.
            ``category``: ``execution``, ``io``, ``storage`` or ``rounding``. ``operation``: a parameter of the gas
            schedule, ``basic blocks`` or ``loop turns`` (sums of several parameters), ``storage fee``, ``rounding up``,
            or ``out of gas`` (the remaining gas, if it was less than the charge). ``times``: number of charges.
            ``internal_gas`` (int64): internal gas units, which add up to ``gas_used * scaling``.

        Examples
        --------
        >>> import toolkit
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger.with_history(versions=200)
        >>> profile = ledger.profile(toolkit.ViewFunction("0xb00c::order_book::depth"))
        >>> profile.to_frame()["function"].unique().tolist()
        ['loading code', '0xb00c::order_book::depth', 'view']
        """
        import pyarrow as pa

        from toolkit.dtypes import to_pandas

        rows = [(";".join(charge.stack), charge.stack[-1], *charge[1:]) for charge in self.charges]
        texts = dict.fromkeys(("stack", "function", "category", "operation"), pa.string())
        kinds = texts | {"times": pa.int64(), "internal_gas": pa.int64()}
        columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds.values())]
        frame = to_pandas(pa.table(columns, names=list(kinds)))
        frame.attrs["toolkit"] = {"internal_gas": {"unit": "internal gas units"}}
        return frame

    def to_folded(self) -> str:
        """Return the charges as folded stacks, a format that speedscope.app and flamegraph.pl draw.

        Returns
        -------
        str
            One line per stack and category: functions and category joined by ``;``, then a space and the internal gas
            units.

        Examples
        --------
        >>> import toolkit
        >>> from toolkit import embedded
        >>> profile = embedded.Ledger().profile(toolkit.ViewFunction("0x1::chain_id::get"))
        >>> profile.to_folded().splitlines()[-1]
        'view;rounding 169530'
        """
        lines: dict[str, int] = defaultdict(int)
        for charge in self.charges:
            lines[";".join([*charge.stack, charge.category])] += charge.internal_gas
        return "".join(f"{line} {gas}\n" for line, gas in lines.items())

    @property
    def functions(self) -> frozenset[str]:
        """Ids of the functions that ran, such as ``0xb00c::order_book::depth``, natives included."""
        return frozenset(name for charge in self.charges for name in charge.stack if "::" in name)

    def gas_of_calls(self, calls: int) -> list[tuple[int, int]]:
        """Return the internal gas of the calls of a batch, execution and io: before them, of each, and after them.

        What a call writes is charged at the end, but counts as its own.
        """
        places = {call_in_row(position): 1 + position for position in range(calls)}
        sums = [[0, 0] for _ in range(calls + 2)]
        for charge in self.charges:
            place = places.get(charge.stack[1], 0) if len(charge.stack) > 1 else 0
            if charge.category in _GAS:
                sums[place][_GAS.index(charge.category)] += charge.internal_gas
        return [(execution, io) for execution, io in sums]

    def _title_and_table(self) -> tuple[str, pd.DataFrame]:
        """Return a title, and a table of gas units by function (largest first) and category."""
        import pandas as pd

        how = "" if self.success else f", failed ({self.vm_status})"
        gas = plural(self.gas_used, "gas unit")
        title = f"gas of {self.call}{how}: {gas} at ledger version {self.ledger_version:,}"
        rows: dict[str, dict[str, float]] = {}
        for charge in self.charges:
            own = rows.setdefault(visible(short_addresses(charge.stack[-1]), 120), dict.fromkeys(CATEGORIES, 0.0))
            own[charge.category] += charge.internal_gas / self.scaling
        table = pd.DataFrame.from_dict(rows, orient="index", columns=CATEGORIES)
        table.insert(0, "gas units", table.sum(axis=1))
        table = table.sort_values("gas units", ascending=False, kind="stable").head(_MAX_ROWS)
        return visible(short_addresses(title), 300), table

    def __repr__(self) -> str:
        title, table = self._title_and_table()
        return f"{title}\n{table.to_string(float_format='{:,.3f}'.format)}"

    def _repr_html_(self) -> str:
        title, table = self._title_and_table()
        return literal(f"<strong>{escape(title)}</strong>{table.to_html(float_format='{:,.3f}'.format)}")


class ProfilingMeter(Meter):
    """A meter that also records the functions that run when something is charged.

    Parameters
    ----------
    schedule, max_gas_units, gas_unit_price
        See `Meter`.
    root : str, default "transaction"
        Name of the outermost stack level, which contains all functions.
    """

    __slots__ = ("_items", "_origins", "_running", "rows")

    def __init__(
        self, schedule: Schedule, *, max_gas_units: int, gas_unit_price: int = 0, root: str = "transaction"
    ) -> None:
        super().__init__(schedule, max_gas_units=max_gas_units, gas_unit_price=gas_unit_price)
        self.rows: dict[_Row, list[int]] = {}  # number and gas of equal charges
        self._running = [root]
        self._origins: dict[object, _Stack] = {}
        self._items: list[object] = []  # events are found by identity, so they must live

    def _spend(self, amount: int, operation: str) -> None:
        """Charge execution gas; charges of native functions belong to the native function."""
        native = _native(operation)
        stack = self._stack() if native is None else (*self._stack(), native)
        self._record(partial(super()._spend, amount, operation), stack, operation)

    def charge_io(self, parameter: str, times: int = 1, item: object = None) -> None:
        """Charge input and output gas; the charge for a written item belongs to the function that wrote it."""
        stack = self._origins.get(_origin(item)) or self._stack()
        self._record(partial(super().charge_io, parameter, times), stack, parameter)

    def charge_storage(self, octas: int, item: object = None) -> None:
        """Charge a storage fee, which belongs to the function that wrote the item."""
        stack = self._origins.get(_origin(item)) or self._stack()
        self._record(partial(super().charge_storage, octas), stack, "storage fee")

    def linked(self, module: Any) -> None:
        """Replace the functions of a contract's instance by functions that are recorded while they run."""
        contract = type(module)
        wire_id = contract.definition.wire_id
        for owner in contract.__mro__:
            if "definition" in vars(owner):
                for name, member in vars(owner).items():
                    if inspect.isfunction(member) and name not in vars(module):
                        object.__setattr__(module, name, self.named(f"{wire_id}::{name}", getattr(module, name)))

    def named(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that is recorded under a name while it runs."""

        @wraps(function)
        def recorded(*arguments: Any, **options: Any) -> Any:
            self._running.append(name)
            try:
                return function(*arguments, **options)
            finally:
                self._running.pop()

        return recorded

    def written(self, item: object) -> None:
        """Record the first function that writes or emits an item."""
        self._items.append(item)
        self._origins.setdefault(_origin(item), self._stack())

    def _record(self, charge: Callable[[], None], stack: _Stack, operation: str) -> None:
        """Make a charge and record the gas that it used, even if the gas runs out."""
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
                    _add(self.rows, (key[0], "execution", key[2]), *self.rows.pop(key))
                parts = {"execution": balance}
            for category, amount in parts.items():
                if amount:
                    _add(self.rows, (stack, category, operation), 1, amount)

    def _stack(self) -> _Stack:
        """Return the running functions, the outermost first."""
        return tuple(self._running)


def _add(rows: dict[Any, list[int]], key: object, times: int, amount: int) -> None:
    row = rows.setdefault(key, [0, 0])
    row[0] += times
    row[1] += amount


def _native(parameter: str) -> str | None:
    """Return the native function or VM task that a parameter prices, or None for instructions."""
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


def profile_of(meter: ProfilingMeter, call: str, outcome: tuple[bool, str], version: int) -> GasProfile:
    """Return a profile of the charges that a meter recorded.

    Parameters
    ----------
    meter : ProfilingMeter
        The meter after the execution.
    call : str
        Name of the function or script that was called.
    outcome : tuple of (bool, str)
        Success and VM status.
    version : int
        Ledger version that was read.
    """
    scaling, gas_used = meter.schedule.scaling, meter.charges().total_charge_gas_units
    charges = [GasCharge(*key, *counted) for key, counted in meter.rows.items()]
    rounding = gas_used * scaling - sum(charge.internal_gas for charge in charges)
    if rounding:
        root = charges[0].stack[:1] if charges else ("transaction",)
        charges.append(GasCharge(root, "rounding", _ROUNDING, 1, rounding))
    return GasProfile(call, *outcome, gas_used, version, scaling, tuple(charges))
