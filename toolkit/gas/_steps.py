"""Steps: changes of a call's gas, success or error between neighbouring observations; drifts and groups of steps.

A frame of observations becomes steps (`steps_of`); steps of a drift are merged (`merge_drift`) and steps with one cause
at one place on the ledger are grouped (`step_groups`). Reports, figures and ``run.explain()`` all show the groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.frames._calls import NO_ANSWER
from toolkit.frames._columns import plain_rows
from toolkit.gas._observations import NOT_READ, READ_AT_VERSIONS, Cause, Source, is_no_answer
from toolkit.gas._series import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray


# Two observations of a call differ if one of these columns differs.
OUTCOME_COLUMNS = ("gas_used", "success", "error_code")
Outcome = tuple[Any, ...]
# What all observations of a call have in common, and what each has, in the order of the fields of `Step`.
_OF_CALL = ("node", "label", "fingerprint", "source")
_OF_ENDS = ("ledger_version", *OUTCOME_COLUMNS, "node_build", "error_message")
# What identifies a call of a run.
_CALL = ["node", "fingerprint"]
# Columns of the observation frame that `steps_of` needs; messages, which may all differ, are read at steps alone.
COMPARED = (*_OF_CALL, *_OF_ENDS[:-1])
# Columns of the steps frame that figures and reports need.
STEP_COLUMNS = ("label", "version_before", "version_after", "exact", "gas_before", "gas_after", "cause")
# Columns of the observation frame that `coverage_of` needs.
COVERAGE_COLUMNS = ("node", "label", "source", "gas_used", "error_code", "success")

# Name of the stratum of a call whose committed transactions are all of one kind.
ALL_TRANSACTIONS = "all transactions"

# Why committed transactions of an incomplete run were not judged.
NOT_ANALYSED = "the run is not complete; run its study into its folder to have them judged"

# Small steps of one call with one cause that are shown one by one; more are a drift, which would fill a screen.
MAX_SINGLE_STEPS = 4
# Share of the smaller side. Growing state moves gas by less between two readings, so a larger step is an event.
_LARGE_CHANGE = 0.5
# An option that is new or gone ranks like a change by a quarter; a call that stopped answering ranks above most.
_NEW_OPTION_SIZE = 0.25
_STOPPED_CALL_SIZE = log(4)
# Two answers are the fewest that can differ.
_MIN_ANSWERS = 2
_CALL_KEY = ["node", "label", "source"]
# Each text is stored once: a million rows of three texts take 100 MB otherwise.
_CODED = pa.dictionary(pa.int32(), pa.string())


def outcome_of(values: Iterable[Any]) -> Outcome | None:
    """Return the values by which two observations are compared; None if the call got no response."""
    outcome = tuple(values)
    return None if is_no_answer(outcome[-1]) else outcome


@dataclass(frozen=True, slots=True)
class Step:
    """A change of a call's outcome between two ledger versions that were read.

    Attributes
    ----------
    node, label, fingerprint, source : str
    version_before, version_after : int
        Last version with the old outcome, first version with the new one.
    gas_before, gas_after : int or None
        Gas units; None if the call failed.
    success_before, success_after : bool or None
    error_before, error_after : str or None
    build_before, build_after : str or None
        Build of the node at each reading.
    error_message_before, error_message_after : str or None
        What the node says went wrong.
    """

    node: str
    label: str
    fingerprint: str
    source: str
    version_before: int
    version_after: int
    gas_before: int | None
    gas_after: int | None
    success_before: bool | None
    success_after: bool | None
    error_before: str | None
    error_after: str | None
    build_before: str | None = None
    build_after: str | None = None
    error_message_before: str | None = None
    error_message_after: str | None = None

    @property
    def exact(self) -> bool:
        """Whether the two versions are adjacent, so that a single transaction caused the step."""
        return self.version_after == self.version_before + 1

    @property
    def outcomes(self) -> dict[int, Outcome | None]:
        """The outcomes at its two ends, by version."""
        before = self.gas_before, self.success_before, self.error_before
        return {self.version_before: before, self.version_after: (self.gas_after, self.success_after, self.error_after)}

    @property
    def change(self) -> int | None:
        """Gas after minus gas before, in gas units; None if the call fails on one side."""
        if self.gas_before is None or self.gas_after is None or self.success_before != self.success_after:
            return None
        return self.gas_after - self.gas_before

    @property
    def change_percent(self) -> float | None:
        """Change as a percentage of the gas before; None if the latter is 0 or unknown."""
        return None if self.change is None or not self.gas_before else 100.0 * self.change / self.gas_before


def steps_of(observations: pa.Table) -> list[Step]:
    """Return the steps of calls that were read at several versions.

    Parameters
    ----------
    observations : pyarrow.Table
        Observations with at least the columns `COMPARED`, and messages if there are any. Only those that are read
        at versions are compared: a simulation at the head has no past, and committed transactions differ in their
        arguments.

    Returns
    -------
    list of Step
        Sorted by call, in the order in which they first appear, then by version.
    """
    views = pc.is_in(observations["source"].cast(pa.string()), pa.array(READ_AT_VERSIONS))
    silent = pc.is_in(observations["error_code"].cast(pa.string()), pa.array(sorted({*NO_ANSWER, NOT_READ})))
    compared = pc.and_not(views, silent)
    known = observations.select([name for name in (*_OF_CALL, *_OF_ENDS) if name in observations.column_names])
    if not pc.all(compared).as_py():  # a filter copies all rows
        known = known.filter(compared)
    # Not by their codes: dictionaries are in the order in which parts of a run were read, not in that of the rows.
    calls = pd.DataFrame({name: _codes(known[name]) for name in _CALL}).groupby(_CALL, sort=False).ngroup()
    order = np.lexsort((known["ledger_version"].to_numpy(), calls.to_numpy()))

    def unchanged(names: Sequence[str]) -> NDArray[np.bool_]:
        columns = (_codes(known[name])[order] for name in names)
        return np.asarray(np.logical_and.reduce([codes[1:] == codes[:-1] for codes in columns]))

    differing = unchanged(_CALL) & ~unchanged(OUTCOME_COLUMNS)
    ends = [known.take(pa.array(side[differing])).to_pylist() for side in (order[:-1], order[1:])]
    return [_step(*pair) for pair in zip(*ends, strict=True)]


def _step(before: Mapping[str, Any], after: Mapping[str, Any]) -> Step:
    return Step(*(before[name] for name in _OF_CALL), *(end.get(name) for name in _OF_ENDS for end in (before, after)))


def _codes(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a number for each value, in any order; null is a value, too."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return np.asarray(coded.unify_dictionaries().combine_chunks().indices.fill_null(-1))


@dataclass(frozen=True, slots=True)
class PartChange:
    """How one part of the gas of committed transactions changed, in gas units.

    Attributes
    ----------
    part : str
        ``execution``, ``io``, ``storage`` or ``refund``.
    before, after : float or None
        Means; None if the way exists on the other side only.
    low, high : float or None
        95 % confidence bounds on the change, including rounding.
    """

    part: str
    before: float | None
    after: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class StepChange:
    """How one call changed: one step, the steps of one stretch of a drift, or a step of one stratum.

    Attributes
    ----------
    label, source : str
        As in the steps frame.
    count : int
        Number of steps; more than 1 for a drift.
    gas_before, gas_after : float or None
        Gas units; None if the call failed. Of committed transactions, the mean of those compared.
    error_before, error_after : str or None
        Error code if the call failed.
    error_message_before, error_message_after : str or None
        What the node says went wrong.
    success_before, success_after : bool or None
        False if the execution failed; None if the call was rejected and therefore not executed.
    stratum : str
        Stratum of committed transactions; empty for views.
    way_gas : float or None
        Mean gas of the way of the stratum that was compared; None if the stratum is not divided into ways.
    lowest, highest : float or None
        Least and most gas of a drift.
    parts : tuple of PartChange
        The parts of committed gas that changed.
    count_before, count_after : int or None
        Number of committed transactions compared.
    uncertain : tuple of str
        Reasons for caution.
    share : float or None
        Share of the transactions that take a way which exists on one side only.
    """

    label: str
    source: str
    count: int
    gas_before: float | None
    gas_after: float | None
    error_before: str | None = None
    error_after: str | None = None
    error_message_before: str | None = None
    error_message_after: str | None = None
    success_before: bool | None = None
    success_after: bool | None = None
    stratum: str = ""
    way_gas: float | None = None
    lowest: float | None = None
    highest: float | None = None
    parts: tuple[PartChange, ...] = ()
    count_before: int | None = None
    count_after: int | None = None
    uncertain: tuple[str, ...] = ()
    share: float | None = None

    @property
    def is_usage(self) -> bool:
        """Whether an option was added or removed: nobody could choose it on the other side."""
        return bool(self.parts) and (self.gas_before is None or self.gas_after is None)

    @property
    def fails(self) -> tuple[bool, bool]:
        """Whether the call fails before and after the change."""
        before = self.error_before is not None or self.success_before is False
        return before, self.error_after is not None or self.success_after is False

    @property
    def turns(self) -> bool:
        """Whether the call fails on one side only: what a failure uses is not compared with what a success costs."""
        return self.fails[0] != self.fails[1]

    @property
    def size(self) -> float:
        """Absolute logarithm of the ratio of gas; a call that stops returning a result counts as a factor of 4."""
        if self.is_usage:
            return _NEW_OPTION_SIZE
        if self.gas_after is None or (self.turns and self.fails[1]):
            return _STOPPED_CALL_SIZE if self.gas_before is not None else 0.0
        if self.gas_before is None or self.turns:  # a call that became available is below every rise and fall
            return 0.0
        return abs(log(max(self.gas_after, 1) / max(self.gas_before, 1)))


@dataclass(frozen=True)
class StepGroup:
    """Steps at one place on the ledger that have the same cause and the same explanation.

    Attributes
    ----------
    version_before, version_after : int
        Last version read with the old outcome, and first version read with the new one.
    exact : bool
        Whether the two are adjacent, so that the transaction at `version_after` is the cause.
    cause : Cause
    explanation : str
        Evidence, in words.
    transaction_hash : str or None
        Hash of the transaction at `version_after`, if it was read.
    time : datetime or None
        Time of the transaction at `version_after`, if it was read.
    rounded : bool
        Whether gas did not change by the ratio of the prices, because it is rounded up to whole units.
    price_ratio : float or None
        Ratio by which all changed prices of the gas schedule changed, if they have one in common.
    changes : tuple of StepChange
        Largest first.
    node : str
        Empty if all steps of the frame come from one node.
    """

    version_before: int
    version_after: int
    exact: bool
    cause: Cause
    explanation: str
    transaction_hash: str | None
    changes: tuple[StepChange, ...]
    node: str = ""
    time: datetime | None = None
    rounded: bool = False
    price_ratio: float | None = None

    @property
    def is_drift(self) -> bool:
        """Whether the group is a stretch of a drift, whose explanation is that of its largest step."""
        return any(change.count > 1 for change in self.changes)

    @property
    def weight(self) -> float:
        """Sum of the sizes of the changes, by which groups are chosen if there are too many to show."""
        return sum(change.size for change in self.changes)

    @property
    def sure(self) -> bool:
        """Whether a change of the group is sure: a headline is made of these."""
        return any(not change.uncertain for change in self.changes)


def step_groups(steps: pd.DataFrame) -> tuple[StepGroup, ...]:
    """Merge the steps of drifts and group the others by place, cause and explanation.

    Parameters
    ----------
    steps : DataFrame
        Steps as in `Run.steps`.

    Returns
    -------
    tuple of StepGroup
        Sorted by version.

    Raises
    ------
    InputError
        If a column of `STEP_COLUMNS` is missing.
    """
    rows = plain_rows(merge_drift(steps))
    several = len({row.get("node") for row in rows}) > 1
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        node = str(row.get("node") or "") if several else ""
        text = row.get("explanation") or ""
        # Stretches of two drifts may have the same ends and nothing else in common.
        drift = row["label"] if row["count"] > 1 else ""
        place = row["version_before"], row["version_after"], node
        groups.setdefault((*place, Cause.of(row["cause"]), text, drift), []).append(row)
    return tuple(_group(key[2], key[3], key[4], groups[key]) for key in sorted(groups))


def _group(node: str, cause: Cause, text: str, rows: Sequence[Mapping[str, Any]]) -> StepGroup:
    first = rows[0]
    kinds: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for number, row in enumerate(rows):
        # Parts that were judged on different transactions do not add up to one total.
        key = (row["label"], *(row.get(name) for name in _COMPARED_GAS)) if row.get("part") else (number,)
        kinds.setdefault(key, []).append(row)
    return StepGroup(
        version_before=first["version_before"],
        version_after=first["version_after"],
        exact=bool(first["exact"]),
        cause=cause,
        explanation=text,
        rounded=any(row.get("rounded") for row in rows),
        price_ratio=first.get("price_ratio"),
        transaction_hash=first.get("transaction_hash"),
        changes=tuple(sorted(map(_change, kinds.values()), key=lambda change: (bool(change.uncertain), -change.size))),
        node=node,
        time=first.get("time"),
    )


def _change(rows: Sequence[Mapping[str, Any]]) -> StepChange:
    """Return the change of a call from its row, or of a stratum from the rows of its parts."""
    if not rows[0].get("part"):
        known = {name: rows[0].get(name) for name in _OF_VIEWS}
        return StepChange(**known | {"source": known["source"] or Source.VIEW.value})
    first = rows[0]
    return StepChange(
        **{name: first[name] for name in ("label", "source", "stratum", "count_before", "count_after")},
        count=1,
        way_gas=first.get("way_gas"),
        gas_before=first["total_before"],
        gas_after=first["total_after"],
        share=first.get("share"),
        parts=tuple(PartChange(*(row[name] for name in _OF_PARTS)) for row in rows),
        uncertain=tuple(dict.fromkeys(why for row in rows for why in row["uncertain"] or ())),
    )


_OUTCOMES = [f"{what}_{side}" for what in ("gas", "error", "error_message", "success") for side in ("before", "after")]
_OF_VIEWS = ["label", "source", "count", "lowest", "highest", *_OUTCOMES]
_COMPARED_GAS = ("stratum", "way_gas", "count_before", "count_after", "total_before", "total_after")
_OF_PARTS = ("part", "gas_before", "gas_after", "change_low", "change_high")


def is_drift(steps: pd.DataFrame) -> pd.Series:
    """Mark the steps that are part of a drift: more than 4 small steps of a call with the same cause.

    If a call reads growing state, its gas changes at nearly every observation. A step is small if the call succeeds
    before and after it and the gas changes by less than half of the smaller value. Steps of committed transactions are
    never part of a drift: growth is removed before they are found.

    Parameters
    ----------
    steps : DataFrame
        Columns ``label``, ``cause``, ``gas_before`` and ``gas_after`` (gas units); ``part`` if present.

    Returns
    -------
    Series of bool
        True for steps of a drift, with the index of `steps`.
    """
    if steps.empty:
        return pd.Series(data=False, index=steps.index, dtype=bool)
    before, after = (steps[f"gas_{side}"].to_numpy(dtype=np.float64, na_value=np.nan) for side in ("before", "after"))
    small = pd.Series(np.abs(after - before) < _LARGE_CHANGE * np.fmin(before, after), index=steps.index)
    if "part" in steps.columns:
        small &= steps["part"].isna()
    group = small.groupby([steps["label"], steps["cause"]], dropna=False)
    return small & (group.transform("sum") > MAX_SINGLE_STEPS)


def merge_drift(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the steps with each stretch of a drift merged into one row.

    A stretch ends where the call has a step with a different cause, so that no merged row mixes causes.

    Parameters
    ----------
    steps : DataFrame
        Steps as in `Run.steps`; the frame is not modified.

    Returns
    -------
    DataFrame
        The columns of `steps`, ``count`` (int64, number of steps), and ``lowest`` and ``highest`` (gas units; null if
        the call fails on both sides). A merged row spans the first to the last of its steps, is not ``exact``, has the
        explanation of the largest step, and has no change or transaction. Calls keep their order; the rows of each call
        are sorted by version.

    Raises
    ------
    InputError
        If a column of `STEP_COLUMNS` is missing.
    """
    require(steps, STEP_COLUMNS, what="summaries of changes", source="run.steps")
    if steps.empty:
        return steps.assign(count=pd.Series(dtype="int64"))
    keys = ["label", *(name for name in ("source", "node") if name in steps.columns)]
    order = {label: place for place, label in enumerate(steps["label"].unique())}
    rows = steps.assign(_call=steps["label"].map(order).astype("int64"), _drift=is_drift(steps))
    rows = rows.sort_values(["_call", *keys[1:], "version_after"], kind="stable")
    kinds = rows[[*keys, "cause", "_drift"]].astype(object)
    new = (kinds != kinds.shift()).any(axis=1).to_numpy() | ~rows["_drift"].to_numpy(dtype=np.bool_)
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(rows)) - 1
    rows = rows.drop(columns=["_call", "_drift"])
    result = rows.iloc[starts].reset_index(drop=True).assign(count=(ends - starts + 1).astype("int64"))
    for name in [name for name in rows.columns if name.endswith("_after")]:
        result[name] = rows[name].iloc[ends].array
    gas = rows[["gas_before", "gas_after"]].astype("Float64")
    result["lowest"] = gas.min(axis=1).groupby(np.cumsum(new)).min().array
    result["highest"] = gas.max(axis=1).groupby(np.cumsum(new)).max().array
    single = result["count"] == 1
    result["exact"] = result["exact"].where(single, other=False)
    for name in {"change", "change_percent", "transaction_hash", "time"}.intersection(rows.columns):
        result[name] = result[name].where(single, other=None)
    if "explanation" in rows.columns:
        before, after = (rows[name].to_numpy(dtype=np.float64, na_value=0) for name in ("gas_before", "gas_after"))
        moved = np.abs(after - before)
        largest = [a + int(moved[a : b + 1].argmax()) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        for name in {"explanation", "rounded", "price_ratio"}.intersection(rows.columns):
            result[name] = rows[name].iloc[largest].array
    return result


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A call that was observed but not judged for steps.

    Attributes
    ----------
    label, source, node : str
        As in the observation frame.
    readings : int
        Number of observations with gas.
    failures : int
        Number of observations without gas. For committed transactions, each is a range of versions that could not be
        read.
    min_gas, max_gas : int or None
        Gas units; None if no observation has gas.
    succeeded : bool
        Whether any execution succeeded.
    reason : str
        Why committed transactions were not judged; empty for other sources.
    """

    label: str
    source: str
    node: str
    readings: int
    failures: int
    min_gas: int | None
    max_gas: int | None
    succeeded: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which calls of a run were judged.

    Attributes
    ----------
    judged : int
        Number of calls, per node, whose steps are looked for: views with results at two or more ledger versions, and
        committed transactions whose timeline was read.
    unjudged : tuple of Unjudged
        The other calls, in the order of the observations.
    views : int
        Number of views among the judged calls.
    """

    judged: int
    unjudged: tuple[Unjudged, ...]
    views: int = 0


def coverage_of(tables: Iterable[pa.Table], committed: Mapping[tuple[str, str], str] | None = None) -> Coverage:
    """Return which calls of a run were judged for steps, and which were only observed.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        Observations with at least the columns `COVERAGE_COLUMNS`.
    committed : mapping of (str, str) to str, optional
        Why the committed transactions of a node and label were not judged; an empty string if they were. Calls that are
        missing here were not judged.

    Returns
    -------
    Coverage
    """
    known = committed or {}
    unjudged, judged = [], []
    seen = _counted(tables)
    for node, label, source, low, high, readings, answered, count, succeeded in seen.values():
        why = known.get((node, label), NOT_ANALYSED) if source == Source.COMMITTED else ""
        if (source == Source.COMMITTED and not why) or (source in READ_AT_VERSIONS and answered >= _MIN_ANSWERS):
            judged.append(source)
        else:
            unjudged.append(Unjudged(label, source, node, readings, count - readings, low, high, succeeded, why))
    unjudged += [
        Unjudged(label, Source.COMMITTED.value, node, readings=0, failures=0, min_gas=None, max_gas=None, reason=why)
        for (node, label), why in known.items()
        if why and (node, label, Source.COMMITTED) not in seen
    ]
    return Coverage(len(judged), tuple(unjudged), sum(source in READ_AT_VERSIONS for source in judged))


def _counted(tables: Iterable[pa.Table]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """Return each call, its least and most gas, numbers of rows (with gas, answered, all), and if any succeeded."""
    parts = []
    for table in tables:
        silent = pc.is_in(table["error_code"].cast(pa.string()), pa.array(sorted(NO_ANSWER)))
        part = table.select(_CALL_KEY).cast(pa.schema([(name, _CODED) for name in _CALL_KEY]))
        part = part.append_column("gas", table["gas_used"]).append_column("answered", pc.invert(silent))
        parts.append(part.append_column("success", pc.fill_null(table["success"], fill_value=False)))
    if not parts:
        return {}
    every = pa.concat_tables(parts).unify_dictionaries().group_by(_CALL_KEY, use_threads=False)
    how = [("gas", "min"), ("gas", "max"), ("gas", "count"), ("answered", "sum"), ("answered", "count")]
    how.append(("success", "any"))
    rows = every.aggregate(how).select([*_CALL_KEY, *(f"{name}_{one}" for name, one in how)]).to_pylist()
    return {tuple(row[name] for name in _CALL_KEY): tuple(row.values()) for row in rows}
