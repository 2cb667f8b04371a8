"""What calls would cost under another gas schedule, as intervals that follow from what they cost now.

A transaction pays the sum of counts times parameters: so many instructions, slots and bytes. A node reports the sums by
part, not the counts. If parameters change, the new sum of a part is at least its old sum times the smallest ratio of
the parameters that can be in it, and at most that times the largest ratio. What is known exactly is taken out first:
the intrinsic gas of a transaction; storage, which is charged in octas for whole slots and bytes. Sums in gas units are
rounded up, so each is only known to less than one unit, and the rounded total narrows the parts together.

All arithmetic is exact, in internal gas units (``txn.gas_unit_scaling_factor`` of them are one gas unit).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from math import ceil, gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit._present.text import listed, times, visible
from toolkit.client._node import Node
from toolkit.client._simulation import Simulation
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.frames._columns import plain_rows, rows_frame
from toolkit.frames._schema import FORECAST
from toolkit.gas._observations import Part, Source, last_observations
from toolkit.gas._study import Run
from toolkit.wire import GasBreakdown, GasSchedule, UserTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from toolkit.client._reads import Reads


_SCALE = "txn.gas_unit_scaling_factor"
_INTRINSIC = "txn.min_transaction_gas_units"
_PER_BYTE = "txn.intrinsic_gas_per_byte"
_CUTOFF = "txn.large_transaction_cutoff"
_MAX_EXECUTION, _MAX_IO, _MAX_STORAGE = "txn.max_execution_gas", "txn.max_io_gas", "txn.max_storage_fee"
_SLOT, _BYTE = "txn.storage_fee_per_state_slot", "txn.storage_fee_per_state_byte"
_MIN_PRICE = "txn.min_price_per_gas_unit"
_DEFAULT_SCALE = 1_000_000
_MIN_KEY_BYTES = 32
"""Every new slot pays for the bytes of its key too: at least those of an address or a table handle."""
_ROUNDING_OF_CHARGES = 4_096
"""Internal gas units by which storage fees can be rounded up in sum, if a price does not divide the scaling factor."""
_SIZES = "misc.abs_val."
"""Sizes of values; they multiply the parameters that price a unit of such a size."""
_PER_SIZE = ("per_abs_mem_unit", "per_abs_val_unit", "per_abstract_memory_unit", "per_abstract_value_unit")
_IO = ("txn.storage_io_", "txn.load_data.")
_EXECUTION = (
    "instr.",
    "move_stdlib.",
    "aptos_framework.",
    "table.",
    "misc.",
    "txn.intrinsic_gas_per_byte",
    "txn.dependency_",
    "txn.keyless.",
    "txn.slh_dsa",
)
"""Prefixes of the parameters of each part, of which loads of table items are execution. Others can be in both."""
_READS = ("txn.storage_io_per_state_slot_read", "txn.storage_io_per_state_byte_read")
_STORAGE = ("txn.storage_fee_", "txn.legacy_storage_fee_", "txn.free_")
_KEY_CHECKS = ("txn.keyless.", "txn.slh_dsa")
_NO_KEY_CHECKS = frozenset(
    {
        "ed25519_signature",
        "multi_ed25519_signature",
        "single_sender",
        "single_sender:ed25519",
        "single_sender:secp256k1_ecdsa",
        "single_sender:secp256r1_ecdsa",
    }
)
"""Kinds of signatures that pay nothing beside the intrinsic gas."""
_LIMITS = (
    "txn.max",
    "txn.min_price",
    "txn.memory_quota",
    "txn.free_",
    "txn.legacy_",
    "txn.storage_fee_",
    _SCALE,
    _CUTOFF,
)
"""Parameters that are limits, or that are handled apart: no gas is a count times one of them."""
_OUT_OF_GAS = ("out of gas", "out_of_gas", "limit_reached")
_TOTAL = "total"
_PARTS = (*(part.value for part in Part), _TOTAL)
_MAX_NAMED = 3  # parameters in one reason; more make it longer than anybody reads


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
        or committed transactions from ``node.transaction``. Errors in an iterable are ignored.
    schedule : GasSchedule or mapping
        A whole schedule, as ``node.gas_schedule(version)`` returns; or the parameters that change, by name or pattern:
        a value, or a factor as text, such as ``{"instr.*": "x10", "txn.min_transaction_gas_units": 2_000_000}``.
    node : Node, optional
        Node from which to read the schedule in force at each observation. By default the node that was observed;
        committed transactions require `node` or `current`.
    current : GasSchedule, optional
        The schedule that was in force at all observations, instead of reading it.

    Returns
    -------
    DataFrame, shape (5 or 1 per call, 12)
        One row per part (execution, io, storage, refund, total); a view has its total only. ``now``, ``low`` and
        ``high`` are gas units; ``high`` is null without an upper bound. ``reasons`` says what is not known. The
        gas unit price stays the same. See the data dictionary.

    Raises
    ------
    InputError
        If an argument cannot be used, or the schedule in force is needed but neither node nor schedule is given.
    NodeError, NodeUnreachable
        If the schedule in force cannot be read.

    Notes
    -----
    The interval assumes the same work on the same state with enough gas. It includes the rounding of the parts, but not
    charges that a new gas feature version computes differently; ``reasons`` then says so.

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
    options = (("node", node, Node, "toolkit.connect"), ("current", current, GasSchedule, "node.gas_schedule"))
    for name, given, kind, function in options:
        if given is not None and not isinstance(given, kind):
            raise InputError(
                f"{name}: expected a {kind.__name__}, as {function} returns it, got {type(given).__name__}"
            )
    if not isinstance(schedule, GasSchedule | Mapping):
        raise InputError(
            "schedule: expected a GasSchedule, as node.gas_schedule(version) returns it, or a mapping of parameters to "
            f'values or factors, such as {{"instr.*": "x10"}}, got {type(schedule).__name__}'
        )
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        schedules = _Schedules(node, current, stack)
        for call in _calls(observed):
            before = schedules.of(call)
            after = schedule if isinstance(schedule, GasSchedule) else proposed_schedule(before, schedule)
            rows += _rows(call, before, after)
    return rows_frame(FORECAST, {name: [row[name] for row in rows] for name in FORECAST.names})


def proposed_schedule(schedule: GasSchedule, changes: Mapping[str, int | str]) -> GasSchedule:
    """Return a gas schedule with changed parameters.

    Parameters
    ----------
    schedule : GasSchedule
    changes : mapping of str to int or str
        A value, or a factor such as ``"x10"`` or ``"x0.5"`` (rounded to whole numbers), by the name of a parameter or
        by a pattern with ``*`` and ``?``. Later entries come after earlier ones.

    Returns
    -------
    GasSchedule

    Raises
    ------
    InputError
        If a name is not in the schedule, or a value cannot be used.
    """
    entries = dict(schedule.entries)
    for name, value in changes.items():
        if not isinstance(name, str):
            raise InputError(f"schedule: expected parameters by name, got {name!r:.60}")
        found = [one for one in entries if fnmatchcase(one, name)] if set(name) & set("*?[") else [name]
        if not found or found[0] not in entries:
            close = get_close_matches(name, entries, n=_MAX_NAMED)
            more = f" (did you mean {' or '.join(close)}?)" if close else ""
            raise InputError(
                f"schedule: the gas schedule in force has no parameter {visible(name, 80)}{more}; to forecast a "
                "schedule with new parameters pass all of it: toolkit.wire.GasSchedule(feature_version, entries)"
            )
        factor = _factor(name, value)
        for one in found:
            entries[one] = round(entries[one] * factor) if factor is not None else int(value)
    return GasSchedule(schedule.feature_version, entries)


def read_schedule(texts: Sequence[str], of_version: Callable[[str], GasSchedule]) -> GasSchedule | dict[str, int | str]:
    """Return the schedule that a command names.

    Parameters
    ----------
    texts : sequence of str
        ``NAME=VALUE`` or ``PATTERN=xFACTOR``, several of them; or the name of one JSON file, with a schedule as in the
        resource ``0x1::gas_schedule::GasScheduleV2`` or with values and factors by name; or one ledger version.
    of_version : callable
        Returns the schedule of a ledger version.

    Returns
    -------
    GasSchedule or dict

    Raises
    ------
    InputError
        If a text is none of these, or the file cannot be used.
    """
    if len(texts) == 1 and texts[0].isascii() and texts[0].isdigit():
        return of_version(texts[0])
    if len(texts) == 1 and "=" not in texts[0]:
        return _read_file(texts[0])
    changes: dict[str, int | str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(
                f"--schedule: expected NAME=VALUE, such as 'instr.*=x10', a JSON file or a version, got {text}"
            )
        changes[name.strip()] = int(value) if value.strip().isdecimal() else value
    return changes


def _read_file(name: str) -> GasSchedule | dict[str, int | str]:
    try:
        content = json.loads(Path(name).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"--schedule {name}: expected NAME=VALUE, a JSON file or a ledger version: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"--schedule {name}: expected a JSON object, got {type(content).__name__}")
    data = content.get("data", content)
    try:
        return GasSchedule.from_resource(data) if isinstance(data, dict) and "entries" in data else content
    except SchemaError as error:
        raise InputError(f"--schedule {name}: {error}") from None


def _factor(name: str, value: object) -> Fraction | None:
    """Return a factor that is written as x and a number; None for a value."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return None
    text = value.strip().lower() if isinstance(value, str) else ""
    try:
        if text[:1] in {"x", "*"}:
            factor = Fraction(text[1:])
            if factor >= 0:
                return factor
    except (ValueError, ZeroDivisionError):
        pass
    raise InputError(
        f'schedule: {visible(name, 80)}: expected a whole number, or a factor such as "x10", got {value!r:.60}'
    )


# what was observed ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    """One observation: what the call cost, and the version and node whose schedule was in force.

    `split` is None if the parts are not known, as of a view. `key_checks` is whether signatures of a kind that is
    charged apart can be among its own.
    """

    label: str
    source: str
    node: str | None
    version: int
    gas_used: int | None
    connect: Callable[[ExitStack], Reads] | None
    split: GasBreakdown | None = None
    price: int | None = None
    status: str = ""
    max_gas: int | None = None
    key_checks: bool = True

    @property
    def is_view(self) -> bool:
        return self.source == Source.VIEW

    @property
    def ran_at(self) -> int:
        """The version of the state: a committed transaction ran on the one before its own."""
        return self.version - (self.source == Source.COMMITTED)


class _Schedules:
    """The gas schedules in force, each read once; `current` if the caller gives it."""

    def __init__(self, node: Node | None, current: GasSchedule | None, stack: ExitStack) -> None:
        self._node, self._current, self._stack = node, current, stack
        self._read: dict[tuple[Any, int], GasSchedule] = {}

    def of(self, call: _Call) -> GasSchedule:
        """Return the schedule that was in force at an observation."""
        if self._current is not None:
            return self._current
        source: Any = self._node or call.connect
        if source is None:
            raise InputError(
                "the gas schedule in force is not known: pass node=, from which it is read, or current=, a GasSchedule"
            )
        if (source, call.ran_at) not in self._read:
            node = self._node or source(self._stack)
            self._read[source, call.ran_at] = node.gas_schedule(call.ran_at)
        return self._read[source, call.ran_at]


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
    @cache
    def connected(name: str) -> Callable[[ExitStack], Node]:
        return cache(lambda stack: stack.enter_context(run.connect(name)))

    names = ("gas_unit_price", *(part.column for part in Part))
    for row in plain_rows(last_observations(run.observations)):
        split = None
        if all(row[name] is not None for name in (*names, "gas_used")):
            split = GasBreakdown(**{name: row[name] for name in names}, total_charge_gas_units=row["gas_used"])
        yield _Call(
            label=row["label"],
            source=row["source"],
            node=row["node"],
            version=row["ledger_version"],
            gas_used=row["gas_used"],
            connect=connected(row["node"]),
            split=split,
            price=row["gas_unit_price"],
            status=row["vm_status"] or row["error_message"] or "",
            # Simulations of a study are sent without keys.
            key_checks=row["source"] == Source.COMMITTED and row["authenticator"] not in _NO_KEY_CHECKS,
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
        key_checks=any(kind in bytes(transaction.signature_raw) for kind in (b"keyless", b"slh_dsa")),
    )


# intervals -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Interval:
    """Bounds of a part in whole gas units or octas; `high` is None if there is none."""

    low: int
    high: int | None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Ratios:
    """By which factor a sum over parameters can change; `high` is None if a parameter is new or was 0."""

    low: Fraction
    high: Fraction | None
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str], before: Mapping[str, int], after: Mapping[str, int]) -> _Ratios:
        """Return the range of the ratios of the parameters that can be in a sum."""
        sizes = [name for name in {*before, *after} if name.startswith(_SIZES)]
        sizes_low, sizes_high, new = _range(sizes, before, after)
        least: list[Fraction] = []
        most: list[Fraction] = []
        for name in (one for one in names if before.get(one, 0) or after.get(one, 0)):
            low, high, added = _range([name], before, after)
            sized = name.endswith(_PER_SIZE)
            new += added
            least += [] if added else [low * min(sizes_low, Fraction(1)) if sized else low]
            most += [] if added else [high * max(sizes_high, Fraction(1)) if sized else high]
        low, high = min(least, default=Fraction(1)), max(most, default=Fraction(1))
        reasons = []
        if new:
            named = listed((visible(name, 80) for name in sorted(new)), _MAX_NAMED)
            reasons.append(
                f"how often {named} would be charged is not known (0 or absent now), which leaves no upper bound"
            )
        if low != high:
            ends = f"{times(float(low))} to {times(float(high))}"
            reasons.append(f"which parameters its gas is made of is not known: they change by {ends}")
        if not low == high == 1 or new:
            reasons.append("gas units are rounded up, so up to one less was used")
        return cls(low, None if new else high, tuple(reasons))

    @property
    def is_one(self) -> bool:
        return self.low == 1 == self.high


def _range(
    names: Sequence[str], before: Mapping[str, int], after: Mapping[str, int]
) -> tuple[Fraction, Fraction, list[str]]:
    """Return the smallest and the largest ratio of parameters, and those that would be charged for the first time."""
    ratios = [Fraction(after.get(name, 0), before[name]) for name in names if before.get(name, 0)]
    new = [name for name in names if not before.get(name, 0) and after.get(name, 0)]
    return min(ratios, default=Fraction(1)), max(ratios, default=Fraction(1)), new


class _Model:
    """Two schedules, and what changes between them for one call."""

    def __init__(self, call: _Call, before: GasSchedule, after: GasSchedule) -> None:
        self.before, self.after = before.entries, after.entries
        self.scale = self.before.get(_SCALE) or _DEFAULT_SCALE
        self.scale_after = self.after.get(_SCALE) or _DEFAULT_SCALE
        charged = {name for name in {*self.before, *self.after} if not name.startswith((*_LIMITS, _SIZES, _INTRINSIC))}
        io = {name for name in charged if name.startswith(_IO) or not name.startswith(_EXECUTION)}
        execution = {name for name in charged if name.startswith(_EXECUTION) or not name.startswith(_IO)}
        if not call.key_checks:
            execution = {name for name in execution if not name.startswith(_KEY_CHECKS)}
        if call.is_view:
            execution -= {_PER_BYTE}
            io -= {name for name in io if name.startswith("txn.storage_io_") and name not in _READS}
        self.intrinsic = (0, 0) if call.is_view else (self.before.get(_INTRINSIC, 0), self.after.get(_INTRINSIC, 0))
        self.execution = _Ratios.of(execution, self.before, self.after)
        self.io = _Ratios.of(io, self.before, self.after)
        self.every = _Ratios.of(execution | io, self.before, self.after)
        cutoff, cutoff_after = self.before.get(_CUTOFF, 0), self.after.get(_CUTOFF, 0)
        self.more_bytes = 0
        """Internal gas units of bytes that are charged for only after the change, at most."""
        if not call.is_view and cutoff != cutoff_after:
            self.more_bytes = max(0, cutoff - cutoff_after) * self.after.get(_PER_BYTE, 0)
            reasons = (*self.execution.reasons, f"by how much the transaction exceeds {_CUTOFF} is not known")
            low = Fraction(0) if cutoff_after > cutoff else self.execution.low
            self.execution = replace(self.execution, low=low, reasons=reasons)

    def limited(self, found: _Interval, part: str, parameter: str) -> _Interval:
        """Return an interval with the limit of the new schedule that it could reach, or would."""
        limit = self.after.get(parameter)
        scale = 1 if part == Part.STORAGE else self.scale_after
        if limit is None or (found.high is not None and found.high * scale <= limit):
            return found
        how = "would" if (found.low - 1) * scale > limit else "could"
        return replace(found, reasons=(*found.reasons, f"it {how} reach the limit {parameter} and fail"))

    def units(self, low: Fraction, high: Fraction | None, reasons: tuple[str, ...]) -> _Interval:
        """Return bounds in internal gas units of the new schedule as whole gas units, rounded up."""
        top = None if high is None else ceil(high / self.scale_after)
        return _Interval(max(0, ceil(low / self.scale_after)), top, reasons)


def _rows(call: _Call, before: GasSchedule, after: GasSchedule) -> Iterator[dict[str, Any]]:
    """Yield the rows of one call: one for each part, or only for the total if the parts are not known."""
    common, model = _common_reasons(call, before, after), _Model(call, before, after)
    stopped = any(text in call.status.lower() for text in _OUT_OF_GAS)
    if call.split is None:
        found = {_TOTAL: None if stopped or call.gas_used is None else _total_alone(call, model)}
    else:
        found = dict.fromkeys(_PARTS) if stopped else _split(call, call.split, model)
    for part, interval in found.items():
        in_octas = part in {Part.STORAGE, Part.REFUND}
        now = call.gas_used if part == _TOTAL else getattr(call.split, Part(part).column)
        row: dict[str, Any] = {"label": call.label, "source": call.source, "node": call.node, "part": part}
        row["ledger_version"] = call.version
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        for name, value in (("now", now), ("low", low), ("high", high)):
            octas = value if in_octas else None if value is None or call.price is None else value * call.price
            units = value if not in_octas else None if value is None or not call.price else value / call.price
            row |= {name: None if units is None else float(units), f"{name}_octas": octas}
        yield row | {"reasons": [*(interval.reasons if interval else [_problem(call)]), *common]}


def _problem(call: _Call) -> str:
    """Return why nothing can be said of a call."""
    if call.gas_used is None:
        return f"it has no gas: {call.status or 'the call failed'}"
    return f"it ended by a limit ({call.status}), so what it would need is not known"


def _common_reasons(call: _Call, before: GasSchedule, after: GasSchedule) -> list[str]:
    reasons = []
    if before.feature_version != after.feature_version:
        reasons.append(
            f"gas feature version {before.feature_version} to {after.feature_version}: charges that are computed in "
            "a different way are not in the interval"
        )
    least = after.entries.get(_MIN_PRICE, 0)
    if call.price is not None and call.price < least:
        reasons.append(f"the gas unit price {call.price} is below the new minimum {least}")
    return reasons


def _total_alone(call: _Call, model: _Model) -> _Interval:
    """Return the interval of a total that is not split: of a view, or of a transaction without fee statement."""
    used = call.gas_used or 0
    low, high = _unrounded(used, model.scale)
    if call.is_view:
        reason = "a view reports its total only, so how much of it is execution and how much reads is not known"
        ratios = replace(model.every, reasons=(reason, *model.every.reasons) if not model.every.is_one else ())
        total = model.units(low * ratios.low, None if ratios.high is None else high * ratios.high, ratios.reasons)
        return model.limited(total, _TOTAL, _MAX_EXECUTION)
    storage_names = [name for name in {*model.before, *model.after} if name.startswith(_STORAGE)]
    storage = _Ratios.of(storage_names, model.before, model.after)
    intrinsic, intrinsic_after = model.intrinsic if high >= model.intrinsic[0] else (0, 0)
    parts = (model.execution, model.io, storage)
    least, top = min(part.low for part in parts), [part.high for part in parts if part.high is not None]
    low, high = max(low, Fraction(intrinsic)) - intrinsic, high - intrinsic
    most = high * max(top) + model.more_bytes if len(top) == len(parts) else None
    reason = "it has no fee statement, so its parts are not known"
    return model.units(
        low * least + intrinsic_after, None if most is None else most + intrinsic_after, (reason, *model.every.reasons)
    )


def _unrounded(units: int, scale: int) -> tuple[Fraction, Fraction]:
    """Return the smallest and the largest sum of internal gas units that is rounded up to this number of gas units."""
    return Fraction((units - 1) * scale + 1 if units else 0), Fraction(units * scale)


def _split(call: _Call, split: GasBreakdown, model: _Model) -> dict[str, _Interval | None]:
    """Return the intervals of execution, io, storage, refund and total."""
    used = split.execution_gas_units, split.io_gas_units
    storage, price = _storage(split, model), split.gas_unit_price
    intrinsic, intrinsic_after = model.intrinsic
    if used[0] * model.scale < intrinsic:
        raise InputError(
            f"{visible(call.label, 80)} of version {call.version} used {used[0]} gas units for execution, less than "
            f"the intrinsic gas, {intrinsic} of {model.scale}: this is not the schedule that was in force"
        )
    # Bounds of execution without the intrinsic gas, of io, and of both together, as the rounded total has them.
    (e_low, e_high), (i_low, i_high) = (_unrounded(one, model.scale) for one in used)
    e_low, e_high = max(e_low - intrinsic, Fraction(0)), e_high - intrinsic
    fee, fee_slack = _as_gas(split.storage_fee_octas, price, model.scale)
    t_low, t_high = _unrounded(call.gas_used or 0, model.scale)
    t_low, t_high = t_low - intrinsic - fee - fee_slack, t_high - intrinsic - fee
    if e_low + i_low <= t_high and e_high + i_high >= t_low:
        e_low, e_high = max(e_low, t_low - i_high), min(e_high, t_high - i_low)
        i_low, i_high = max(i_low, t_low - e_high), min(i_high, t_high - e_low)
    else:
        t_low, t_high = e_low + i_low, e_high + i_high
    e, i = model.execution, model.io
    execution = model.units(
        e_low * e.low + intrinsic_after,
        None if e.high is None else e_high * e.high + intrinsic_after + model.more_bytes,
        e.reasons,
    )
    io = model.units(i_low * i.low, None if i.high is None else i_high * i.high, i.reasons)
    least = _extreme((e.low, e_low, e_high), (i.low, i_low, i_high), max(t_low, e_low + i_low), sign=1)
    most = None
    if e.high is not None and i.high is not None and storage.high is not None:
        most = _extreme((e.high, e_low, e_high), (i.high, i_low, i_high), min(t_high, e_high + i_high), sign=-1)
        fee, fee_slack = _as_gas(storage.high, price, model.scale_after)
        most += intrinsic_after + model.more_bytes + fee + fee_slack
    fee, _ = _as_gas(storage.low, price, model.scale_after)
    reasons = tuple(dict.fromkeys((*e.reasons, *i.reasons, *storage.reasons)))
    total = model.units(least + intrinsic_after + fee, most, reasons)
    if call.max_gas is not None and (total.high is None or total.high > call.max_gas):
        certain = "would run" if total.low > call.max_gas else "could run"
        total = replace(
            total, reasons=(*total.reasons, f"it {certain} out of gas: its max_gas_amount is {call.max_gas}")
        )
    return {
        Part.EXECUTION.value: model.limited(execution, Part.EXECUTION, _MAX_EXECUTION),
        Part.IO.value: model.limited(io, Part.IO, _MAX_IO),
        Part.STORAGE.value: model.limited(storage, Part.STORAGE, _MAX_STORAGE),
        Part.REFUND.value: _refund(split, model),
        _TOTAL: total,
    }


def _extreme(
    one: tuple[Fraction, Fraction, Fraction], two: tuple[Fraction, Fraction, Fraction], together: Fraction, *, sign: int
) -> Fraction:
    """Return the least (`sign` 1) or greatest (-1) sum of two amounts times their ratios.

    Each of `one` and `two` is the ratio, the least and the greatest amount; the amounts add up to `together`, which is
    the least sum they can have, or the greatest one.
    """
    (cheap, cheap_low, cheap_high), (dear, dear_low, _) = sorted((one, two), key=lambda given: sign * given[0])
    amount = min(cheap_high, together - dear_low)
    amount = max(amount, cheap_low)
    return cheap * amount + dear * (together - amount)


def _as_gas(octas: int, price: int, scale: int) -> tuple[Fraction, int]:
    """Return storage fees as internal gas units, and by how much they can be rounded up."""
    if not price:
        return Fraction(0), 0
    return Fraction(octas * scale, price), 0 if scale % price == 0 or not octas else _ROUNDING_OF_CHARGES


def _storage(split: GasBreakdown, model: _Model) -> _Interval:
    """Return the interval of the storage fee in octas: so many slots and bytes, both whole, at new prices."""
    octas = split.storage_fee_octas
    before, after = model.before, model.after
    slot, byte = before.get(_SLOT, 0), before.get(_BYTE, 0)
    slot_after, byte_after = after.get(_SLOT, 0), after.get(_BYTE, 0)
    if (slot, byte) == (slot_after, byte_after) or not split.gas_unit_price:
        return _Interval(octas, octas)
    reasons: list[str] = []
    if byte_after > byte:
        reasons.append("state that grows and holds a deposit of an earlier, higher price can cost more")
    if not slot or not byte:
        return _Interval(0, None, ("the schedule in force does not price both slots and bytes",))
    found = _whole_slots(octas, slot, byte)
    if not found:
        ratios = _Ratios.of([_SLOT, _BYTE], before, after)
        reasons.append("the fee is not made of whole slots and bytes at the prices in force")
        return _Interval(0, ceil(octas * (ratios.high or 0)), tuple(reasons))
    lows, highs = [], []
    for slots in found:
        count = (octas - slots * slot) // byte
        highs.append(slots * slot_after + count * byte_after)
        # At a lower price per byte, state that grows pays from its deposit first: bytes beyond the keys may be free.
        certain = count if byte_after >= byte else slots * _MIN_KEY_BYTES
        lows.append(slots * slot_after + certain * byte_after)
    low, high = min(lows), max(highs)
    if low != high:
        reasons.insert(0, "how much of the fee is for new slots and how much for bytes is not known")
        if byte_after < byte:
            reasons.append("bytes that state grows by can be paid from deposits of the higher price")
    return _Interval(low, high, tuple(reasons) if octas or byte_after > byte else ())


def _whole_slots(octas: int, slot: int, byte: int) -> list[int]:
    """Return the least and the greatest number of new slots of which a fee can be; empty if there is none."""
    most = octas // (slot + _MIN_KEY_BYTES * byte)
    period = byte // gcd(slot, byte)
    fits = [count for count in range(min(most + 1, period)) if (octas - count * slot) % byte == 0]
    return [fits[0], most - (most - fits[0]) % period] if fits else []


def _refund(split: GasBreakdown, model: _Model) -> _Interval:
    """Return the interval of the refund in octas: deposits that were paid, and what exceeds the price of less bytes."""
    octas = split.storage_fee_refund_octas
    byte, byte_after = model.before.get(_BYTE, 0), model.after.get(_BYTE, 0)
    if byte == byte_after or not split.gas_unit_price:
        return _Interval(octas, octas)
    if byte_after > byte:
        reason = "deleted state refunds its deposit, state that shrinks less than now; how much is which is not known"
        return _Interval(0, octas, (reason,) if octas else ())
    return _Interval(octas, None, ("state that is written refunds what its deposit exceeds the lower price by",))
