"""Estimates of what calls would cost under another gas schedule: intervals derived from what they cost now.

A transaction pays a price for each instruction, slot and byte. A node reports the sums by part, not the counts. If
prices change, the new sum of a part lies between its old sum times the smallest ratio and its old sum times the largest
ratio of the parameters that can contribute to it. Two amounts are treated separately: the intrinsic gas of a
transaction, which is known exactly, and storage, which is charged in octas for whole slots and bytes. Sums in gas units
are rounded up, so each is known only to within one unit.

All arithmetic is exact, in internal gas units (``txn.gas_unit_scaling_factor`` of them are one gas unit).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any

from toolkit._present.text import listed, times, visible
from toolkit.client._fetch import checked_node
from toolkit.client._simulation import Simulation
from toolkit.errors import InputError, ToolkitError
from toolkit.frames._columns import frame_of_rows, plain_rows
from toolkit.frames._schema import FORECAST
from toolkit.gas._observations import Part, Source, last_observations
from toolkit.gas._study import Run
from toolkit.wire import GasBreakdown, GasSchedule, UserTransaction

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.client._reads import Reads


_SCALE = "txn.gas_unit_scaling_factor"
_INTRINSIC = "txn.min_transaction_gas_units"
_PER_BYTE = "txn.intrinsic_gas_per_byte"
_MAX_EXECUTION, _MAX_IO, _MAX_STORAGE = "txn.max_execution_gas", "txn.max_io_gas", "txn.max_storage_fee"
_MIN_PRICE = "txn.min_price_per_gas_unit"
_CUTOFF = "txn.large_transaction_cutoff"
_SLOT, _BYTE = "txn.storage_fee_per_state_slot", "txn.storage_fee_per_state_byte"
_DEFAULT_SCALE = 1_000_000  # internal gas units per gas unit in all recorded schedules
# Internal gas units by which storage fees can be rounded up in sum, if a price does not divide the scaling factor.
_ROUNDING_OF_CHARGES = 4_096
# Sizes of values; they multiply the parameters that price a unit of such a size.
_SIZES = "misc.abs_val."
_PER_SIZE = ("per_abs_mem_unit", "per_abs_val_unit", "per_abstract_memory_unit", "per_abstract_value_unit")
# Prefixes of the parameters of each part. Loads of table items are execution; parameters without a prefix can be in
# both parts.
_IO = ("txn.storage_io_", "txn.load_data.")
_EXECUTION = (
    *("instr.", "move_stdlib.", "aptos_framework.", "table.", "misc."),
    *(_PER_BYTE, "txn.dependency_", "txn.keyless.", "txn.slh_dsa"),
)
_READS = ("txn.storage_io_per_state_slot_read", "txn.storage_io_per_state_byte_read")
# Parameters that are limits, or that are handled apart: no gas is a count times one of them.
_LIMITS = ("txn.max", "txn.min_price", "txn.memory_quota", "txn.free_", "txn.legacy_", "txn.storage_fee_")
_NOT_CHARGED = (*_LIMITS, _SCALE, _CUTOFF, _INTRINSIC, _SIZES)
_FACTOR = re.compile(r"\s*[xX×*](\d{1,9}(?:\.\d{1,9})?)\s*", re.ASCII)
_OUT_OF_GAS = ("out of gas", "out_of_gas", "limit_reached")
_TOTAL = "total"
# Parameters that one reason names: more make it longer than anybody reads.
_MAX_NAMED = 3


# the public function -------------------------------------------------------------------------------------------------


def forecast(
    observed: Run | Simulation | UserTransaction | Iterable[Any],
    schedule: GasSchedule | Mapping[str, int | str],
    *,
    node: Node | None = None,
    current: GasSchedule | None = None,
) -> pd.DataFrame:
    """Estimate what calls would cost under another gas schedule, as intervals.

    Parameters
    ----------
    observed : Run, Simulation, UserTransaction or iterable of these
        A run (the last observation of each call), results of ``node.simulate`` or ``fetch_simulations(...).results``,
        or committed transactions from ``node.transaction``. Errors in the iterable are ignored.
    schedule : GasSchedule or mapping
        A complete schedule from ``node.gas_schedule(version)``; or a mapping of parameter name or pattern to a new
        value, or to a factor as text, such as ``{"instr.*": "x10", "txn.min_transaction_gas_units": 2_000_000}``.
    node : Node, optional
        Node from which to read the schedule in force at each observation; by default, the node that was observed.
        Committed transactions require `node` or `current`.
    current : GasSchedule, optional
        The schedule that was in force at all observations. If given, no schedule is read.

    Returns
    -------
    DataFrame, shape (5 or 1 per call, 12)
        One row per part (execution, io, storage, refund, total); views have only a total. ``now``, ``low`` and ``high``
        are in gas units; ``high`` is null if no upper bound is known. ``reasons`` lists what is not known. The gas unit
        price is assumed to stay the same. See the data dictionary.

    Raises
    ------
    InputError
        If an argument is not valid, or the schedule in force is needed but neither `node` nor `current` is given.
    NodeError, NodeUnreachable
        If the schedule in force cannot be read.

    Notes
    -----
    The interval assumes the same work on the same state with enough gas. It accounts for rounding of the parts, but not
    for charges that a new gas feature version computes differently; if there are any, ``reasons`` says so.

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect()
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    >>> simulation = node.simulate(call, sender="0xa11ce")
    >>> frame = toolkit.forecast(simulation, {"instr.*": "x10"})
    >>> frame["part"].tolist()
    ['execution', 'io', 'storage', 'refund', 'total']
    >>> bool((frame["low"] <= frame["high"]).all())
    True
    """
    if node is not None:
        checked_node(node)
    if not isinstance(schedule, GasSchedule | Mapping):
        raise InputError(
            "schedule: expected a GasSchedule, as returned by node.gas_schedule(version), or a mapping of parameters "
            f'to values or factors, such as {{"instr.*": "x10"}}, got {type(schedule).__name__}'
        )
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:

        @cache
        def read(source: Callable[[ExitStack], Reads], version: int) -> GasSchedule:
            return (node or source(stack)).gas_schedule(version)

        for call in _calls(observed):
            if current is None and node is None and call.connect is None:
                raise InputError(
                    "the gas schedule in force is not known: pass node= to read it, or pass the GasSchedule as current="
                )
            # A committed transaction ran on the version before its own.
            ran_at = call.version - (call.source == Source.COMMITTED)
            before = current or read(call.connect if node is None else None, ran_at)
            after = schedule if isinstance(schedule, GasSchedule) else proposed_schedule(before, schedule)
            rows += _rows(call, before, after)
    return frame_of_rows(FORECAST, rows)


def proposed_schedule(schedule: GasSchedule, changes: Mapping[str, int | str]) -> GasSchedule:
    """Return a gas schedule with changed parameters.

    Parameters
    ----------
    schedule : GasSchedule
    changes : mapping of str to int or str
        A value, or a factor such as ``"x10"`` or ``"x0.5"`` (rounded to whole numbers), by the name of a parameter or
        by a pattern with ``*`` and ``?``. Entries are applied in order.

    Returns
    -------
    GasSchedule

    Raises
    ------
    InputError
        If a name is not in the schedule, or a value is not valid.
    """
    entries = dict(schedule.entries)
    for name, value in changes.items():
        if not isinstance(name, str):
            raise InputError(f"schedule: expected the name of a parameter, such as 'instr.add', got {name!r:.60}")
        found = [one for one in entries if fnmatchcase(one, name)] if set(name) & set("*?[") else [name]
        if not found or found[0] not in entries:
            raise InputError(
                f"schedule: the gas schedule in force has no parameter {visible(name, 80)}; to forecast a schedule "
                "with new parameters, pass the whole schedule: toolkit.wire.GasSchedule(feature_version, entries)"
            )
        factor = _FACTOR.fullmatch(value) if isinstance(value, str) else None
        if factor is None and (type(value) is not int or value < 0):
            raise InputError(
                f'schedule: {visible(name, 80)}: expected a whole number, or a factor such as "x10", got {value!r:.60}'
            )
        for one in found:
            entries[one] = round(entries[one] * Fraction(factor[1])) if factor else int(value)
    return GasSchedule(schedule.feature_version, entries)


def read_schedule(texts: Sequence[str], of_version: Callable[[str], GasSchedule]) -> GasSchedule | dict[str, int | str]:
    """Return the schedule given on the command line.

    Parameters
    ----------
    texts : sequence of str
        One or more ``NAME=VALUE`` or ``PATTERN=xFACTOR``, or a single ledger version.
    of_version : callable
        Returns the schedule of a ledger version.

    Returns
    -------
    GasSchedule or dict

    Raises
    ------
    InputError
        If a text has another form.
    """
    if len(texts) == 1 and texts[0].isascii() and texts[0].isdigit():
        return of_version(texts[0])
    changes: dict[str, int | str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--schedule: expected NAME=VALUE, such as 'instr.*=x10', or a ledger version, got {text}")
        changes[name.strip()] = int(value) if value.strip().isdecimal() else value
    return changes


# what was observed ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    """One observation: what the call cost, and the version and node whose schedule was in force.

    `split` is None if the parts are not known, as for a view.
    """

    label: str
    source: str
    node: str | None
    version: int
    gas_used: int | None
    connect: Callable[[ExitStack], Reads] | None
    split: GasBreakdown | None
    price: int | None
    status: str
    max_gas: int | None = None

    @property
    def problem(self) -> str | None:
        """Why the call cannot be forecast; None if it can."""
        if self.gas_used is None:
            return f"no gas was reported: {self.status or 'the call failed'}"
        if any(text in self.status.lower() for text in _OUT_OF_GAS):
            return f"it hit a limit ({self.status}), so its full cost is not known"
        if self.split is None and self.source != Source.VIEW:
            return "it has no fee statement, so its split by part is not known"
        return None


def _calls(observed: Any) -> Iterator[_Call]:
    if isinstance(observed, Run):
        yield from _of_run(observed)
    elif isinstance(observed, Simulation):
        yield _of_transaction(observed.transaction, observed)
    elif isinstance(observed, UserTransaction):
        yield _of_transaction(observed, None)
    elif isinstance(observed, Iterable) and not isinstance(observed, str | bytes | Mapping):
        for one in observed:
            if not isinstance(one, ToolkitError):
                yield from _calls(one)
    else:
        raise InputError(
            "expected a Run, results of node.simulate, or committed user transactions of node.transaction, got "
            f"{type(observed).__name__}"
        )


def _of_run(run: Run) -> Iterator[_Call]:
    connected = cache(lambda name: cache(lambda stack: stack.enter_context(run.connect(name))))
    names = ("gas_unit_price", *(part.column for part in Part))
    for row in plain_rows(last_observations(run.observations)):
        split = None
        if all(row[name] is not None for name in (*names, "gas_used")):
            split = GasBreakdown(**{name: row[name] for name in names}, total_charge_gas_units=row["gas_used"])
        yield _Call(
            **{name: row[name] for name in ("label", "source", "node", "gas_used")},
            version=row["ledger_version"],
            connect=connected(row["node"]),
            split=split,
            price=row["gas_unit_price"],
            status=row["vm_status"] or row["error_message"] or "",
        )


def _of_transaction(transaction: UserTransaction, simulation: Simulation | None) -> _Call:
    gas = transaction.gas_breakdown()
    inner = getattr(transaction.payload, "transaction_payload", None) or transaction.payload
    discarded = gas is None and simulation is not None  # else it is older than fee statements
    return _Call(
        label=getattr(inner, "function", None) or str(inner.type),
        source=(Source.COMMITTED if simulation is None else Source.SIMULATE).value,
        node=None,
        version=transaction.version,
        gas_used=None if discarded else transaction.gas_used,
        connect=None if simulation is None else lambda stack: stack.enter_context(simulation._connected()),  # noqa: SLF001
        split=gas,
        price=transaction.gas_unit_price,
        status=transaction.vm_status,
        max_gas=transaction.max_gas_amount,
    )


# intervals -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Interval:
    """Bounds of an amount, or of the ratio by which it changes; `high` is None if unbounded above."""

    low: Fraction
    high: Fraction | None
    reasons: tuple[str, ...] = ()

    @classmethod
    def exactly(cls, value: int) -> _Interval:
        return cls(Fraction(value), Fraction(value))

    def plus(self, other: _Interval) -> _Interval:
        """Return the bounds of the sum of two amounts."""
        high = None if self.high is None or other.high is None else self.high + other.high
        return _Interval(self.low + other.low, high, tuple(dict.fromkeys((*self.reasons, *other.reasons))))

    def less(self, other: _Interval) -> _Interval:
        """Return the bounds of an amount minus another; an amount is never negative."""
        high = None if self.high is None else self.high - other.low
        return _Interval(max(Fraction(0), self.low - (other.high or 0)), high, self.reasons)

    def times(self, ratio: _Interval) -> _Interval:
        """Return the bounds of an amount times a ratio."""
        high = None if self.high is None or ratio.high is None else self.high * ratio.high
        return _Interval(self.low * ratio.low, high, ratio.reasons)

    def limited(self, limit: int | None, what: str) -> _Interval:
        """Return the interval, with a further reason if the amount could or would exceed a limit."""
        if limit is None or (self.high is not None and self.high <= limit):
            return self
        return replace(self, reasons=(*self.reasons, f"it {'would' if self.low > limit else 'could'} {what}"))

    def within(self, other: _Interval) -> _Interval:
        """Return the intersection of both intervals, or this interval if they are disjoint."""
        low, highs = max(self.low, other.low), [one for one in (self.high, other.high) if one is not None]
        high = min(highs, default=None)
        return self if high is not None and low > high else replace(self, low=low, high=high)


def _either(one: _Interval, other: _Interval) -> _Interval:
    """Return the bounds of a ratio that lies between two others."""
    high = None if one.high is None or other.high is None else max(one.high, other.high)
    return _Interval(min(one.low, other.low), high, tuple(dict.fromkeys((*one.reasons, *other.reasons))))


def _ratio_of(names: Iterable[str], before: Mapping[str, int], after: Mapping[str, int]) -> _Interval:
    """Return the smallest and the largest ratio by which a sum over these parameters can change."""

    def ratio(name: str) -> Fraction:
        return Fraction(after.get(name, 0), before[name])

    sizes = [name for name in {*before, *after} if name.startswith(_SIZES)]
    every = {name for name in names if before.get(name) or after.get(name)}
    new = {name for name in (*every, *sizes) if not before.get(name) and after.get(name)}
    of_sizes = [Fraction(1), *(ratio(name) for name in sizes if before.get(name))]
    ratios = [
        ratio(name) * size
        for name in every - new
        for size in ((min(of_sizes), max(of_sizes)) if name.endswith(_PER_SIZE) else (1,))
    ]
    low, high = min(ratios, default=Fraction(1)), max(ratios, default=Fraction(1))
    reasons = []
    if new:
        named = listed((visible(name, 80) for name in sorted(new)), _MAX_NAMED)
        reasons.append(f"no upper bound: {named} is 0 or absent now, so it is not known how often it would be charged")
    if low != high:
        ends = f"{times(float(low))} to {times(float(high))}"
        reasons.append(f"it is not known which parameters were charged; they change by {ends}")
    if not low == high == 1 or new:
        reasons.append("gas units are rounded up, so the exact amount may be up to one unit lower")
    return _Interval(low, None if new else high, tuple(reasons))


class _Model:
    """Two schedules, and by how much the parts of one call can change between them."""

    def __init__(self, call: _Call, before: GasSchedule, after: GasSchedule) -> None:
        self.before, self.after = before.entries, after.entries
        self.scale = self.before.get(_SCALE) or _DEFAULT_SCALE
        self.scale_after = self.after.get(_SCALE) or _DEFAULT_SCALE
        charged = {name for name in {*self.before, *self.after} if not name.startswith(_NOT_CHARGED)}
        if call.source == Source.VIEW:
            writes = {name for name in charged if name.startswith("txn.storage_io_") and name not in _READS}
            charged -= {_PER_BYTE, *writes}
        io = {name for name in charged if not name.startswith(_EXECUTION)}
        self.execution = _ratio_of((one for one in charged if not one.startswith(_IO)), self.before, self.after)
        self.io = _ratio_of(io, self.before, self.after)
        cutoff, cutoff_after = self.before.get(_CUTOFF, 0), self.after.get(_CUTOFF, 0)
        if call.source != Source.VIEW and cutoff != cutoff_after:  # of its bytes, those beyond the cutoff are charged
            low, high = (Fraction(0), self.execution.high) if cutoff_after > cutoff else (self.execution.low, None)
            reason = f"it is not known by how much the transaction exceeds {_CUTOFF}"
            self.execution = _Interval(low, high, (*self.execution.reasons, reason))

    def limited(self, found: _Interval, parameter: str) -> _Interval:
        """Return the interval of a part, with a further reason if it could or would reach its new limit."""
        return found.limited(self.after.get(parameter), f"reach the limit {parameter} and fail")

    def units(self, found: _Interval) -> _Interval:
        """Convert bounds in internal gas units of the new schedule to whole gas units, rounded up."""
        high = None if found.high is None else Fraction(ceil(found.high / self.scale_after))
        return _Interval(Fraction(ceil(found.low / self.scale_after)), high, found.reasons)


def _rows(call: _Call, before: GasSchedule, after: GasSchedule) -> Iterator[dict[str, Any]]:
    """Yield the rows of one call: one for each part, or only for the total if the parts are not known."""
    found: Mapping[str, _Interval | None]
    if call.problem is not None:
        found = dict.fromkeys((_TOTAL,) if call.split is None else (*Part, _TOTAL))
    else:
        model = _Model(call, before, after)
        found = {_TOTAL: _of_view(call, model)} if call.split is None else _of_parts(call, call.split, model)
    common = []
    if before.feature_version != after.feature_version:
        versions = f"gas feature version {before.feature_version} to {after.feature_version}"
        common = [f"{versions}: the interval does not cover charges whose formula changes"]
    price, least = call.price, after.entries.get(_MIN_PRICE, 0)
    if price is not None and price < least:
        common.append(f"the gas unit price {price} is below the new minimum {least}")
    for part, interval in found.items():
        bounds = (interval.low, interval.high) if interval else (None, None)
        now = call.gas_used if part == _TOTAL else getattr(call.split, Part(part).column)
        reasons = [*(interval.reasons if interval else [call.problem]), *common]
        row: dict[str, Any] = {"label": call.label, "source": call.source, "node": call.node, "part": str(part)}
        row |= {"ledger_version": call.version, "reasons": reasons}
        for name, value in zip(("now", "low", "high"), (now, *bounds), strict=True):
            if value is not None and part in {Part.STORAGE, Part.REFUND}:
                row |= {name: float(Fraction(value, price)) if price else None, f"{name}_octas": int(value)}
            elif value is not None:
                row |= {name: float(value), f"{name}_octas": None if price is None else int(value) * price}
        yield row


def _unrounded(units: int, scale: int) -> _Interval:
    """Return the bounds of a sum of internal gas units that is rounded up to this number of gas units."""
    return _Interval(Fraction((units - 1) * scale + 1 if units else 0), Fraction(units * scale))


def _of_view(call: _Call, model: _Model) -> _Interval:
    """Return the interval of a view, which reports its total only."""
    ratio = _either(model.execution, model.io)
    if not ratio.low == ratio.high == 1:
        reason = "a view reports only its total, so its split into execution and reads is not known"
        ratio = replace(ratio, reasons=(reason, *ratio.reasons))
    total = _unrounded(call.gas_used or 0, model.scale).times(ratio)
    return model.units(model.limited(total, _MAX_EXECUTION))


def _of_parts(call: _Call, split: GasBreakdown, model: _Model) -> dict[str, _Interval]:
    """Return the intervals of execution, io, storage, refund and total."""
    intrinsic, intrinsic_after = (_Interval.exactly(one.get(_INTRINSIC, 0)) for one in (model.before, model.after))
    if split.execution_gas_units * model.scale < intrinsic.low:
        raise InputError(
            f"{visible(call.label, 80)} at version {call.version} used {split.execution_gas_units:,} gas units for "
            f"execution, less than the intrinsic gas ({intrinsic.low} / {model.scale}); the schedule in force must "
            "have been a different one"
        )
    price, fee = split.gas_unit_price, _Interval.exactly(split.storage_fee_octas)
    storage = _storage(split, model)
    execution = _unrounded(split.execution_gas_units, model.scale).less(intrinsic).times(model.execution)
    io = _unrounded(split.io_gas_units, model.scale).times(model.io)
    # The rounded total bounds both together more closely than the two rounded parts do.
    both = _unrounded(call.gas_used or 0, model.scale).less(intrinsic).less(_as_gas(fee, price, model.scale))
    work = execution.plus(io).within(both.times(_either(model.execution, model.io)))
    total = model.units(work.plus(intrinsic_after).plus(_as_gas(storage, price, model.scale_after)))
    return {
        Part.EXECUTION: model.units(model.limited(execution.plus(intrinsic_after), _MAX_EXECUTION)),
        Part.IO: model.units(model.limited(io, _MAX_IO)),
        Part.STORAGE: model.limited(storage, _MAX_STORAGE),
        Part.REFUND: _refund(split, model),
        _TOTAL: total.limited(call.max_gas, f"run out of gas: its max_gas_amount is {call.max_gas}"),
    }


def _as_gas(octas: _Interval, price: int, scale: int) -> _Interval:
    """Convert storage fees to internal gas units; each charge may have been rounded up."""
    if not price:
        return _Interval.exactly(0)
    rounding = 0 if scale % price == 0 or not octas.high else _ROUNDING_OF_CHARGES
    high = None if octas.high is None else octas.high * scale / price + rounding
    return _Interval(octas.low * scale / price, high, octas.reasons)


def _storage(split: GasBreakdown, model: _Model) -> _Interval:
    """Return the interval of the storage fee in octas: an unknown mix of slots and bytes, at new prices."""
    octas = _Interval.exactly(split.storage_fee_octas)
    before, after = ([side.get(name, 0) for name in (_SLOT, _BYTE)] for side in (model.before, model.after))
    if before == after or not split.gas_unit_price:
        return octas
    if not all(before):
        return _Interval(Fraction(0), None, ("the schedule in force lacks a price for slots or bytes",))
    ratios = [Fraction(new, old) for new, old in zip(after, before, strict=True)]
    reasons = []
    if octas.low and ratios[0] != ratios[1]:
        reasons.append("the split of the fee into slots and bytes is not known")
    low = min(ratios)
    if ratios[1] > 1:
        reasons.append("state that grows may cost more if its deposit was paid at an earlier, higher price")
    elif octas.low and ratios[1] < 1:
        low = Fraction(0)
        reasons.append("added bytes may be covered by deposits paid at the higher price")
    return octas.times(_Interval(low, max(ratios), tuple(reasons)))


def _refund(split: GasBreakdown, model: _Model) -> _Interval:
    """Return the interval of the refund in octas: paid deposits, and their excess over a lower price per byte."""
    octas = Fraction(split.storage_fee_refund_octas)
    byte, byte_after = model.before.get(_BYTE, 0), model.after.get(_BYTE, 0)
    if byte == byte_after or not split.gas_unit_price:
        return _Interval(octas, octas)
    if byte_after > byte:
        reason = "it is not known how much of the refund is for deleted state and how much for state that shrinks"
        return _Interval(Fraction(0), octas, (reason,) if octas else ())
    return _Interval(octas, None, ("written state refunds the part of its deposit above the lower price",))
