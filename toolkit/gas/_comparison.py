"""Comparison of two sets of observations: which calls were added, removed or changed, and by how much."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toolkit._present.files import checked_path
from toolkit._present.messages import shorten
from toolkit._present.text import listed
from toolkit.client._http import NETWORKS
from toolkit.client._versions import as_version
from toolkit.dtypes import to_arrow
from toolkit.errors import InputError, StudyError
from toolkit.frames._columns import plain_columns, rows_frame
from toolkit.frames._schema import COMPARISON, OBSERVATIONS
from toolkit.gas._gate import MAX_AGE, QUANTILES, Gate, Rules, judge
from toolkit.gas._observations import EARLIER_COLUMNS, Cause, Source, is_no_answer, last_observations
from toolkit.gas._sentences import (
    CAUSE_LABELS,
    age_text,
    comparison_html,
    comparison_text,
    growth_text,
    place_text,
    too_old_text,
    unlike_text,
)
from toolkit.gas._steps import ALL_TRANSACTIONS, OUTCOME_COLUMNS, step_groups
from toolkit.gas._study import AT_VERSION, Run
from toolkit.gas.committed._sides import compare_sides
from toolkit.gas.committed._steps import columns_read, series_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date, timedelta

    from toolkit.gas._steps import StepGroup
    from toolkit.gas._study import Study
    from toolkit.gas.committed._sides import WayDifference, WaySide


KINDS = ("changed", "unreachable", "added", "removed", "unchanged")
"""Kinds of calls, those that need attention first."""

_MAX_NAMED = 5
_AT_VERSION = re.compile(r"(.+)@([^@/\\]*)")
_VERSION = re.compile(r"\d{1,20}")
_CALL_KEY = ["node", "fingerprint"]
_SPLIT = ("execution_gas_units", "io_gas_units", "storage_fee_octas", "storage_fee_refund_octas")
_SIDED = {
    "ledger_version": "version",
    "gas_used": "gas",
    "success": "success",
    "error_code": "error",
    "vm_status": "vm_status",
} | dict(zip(_SPLIT, _SPLIT, strict=True))


@dataclass(frozen=True, slots=True)
class Unlike:
    """A difference between the sides because of which the calls of a node cannot be judged.

    Attributes
    ----------
    node : str
    what : str
        What differs: ``chains``, ``nodes``, ``gas models`` or ``heads``.
    before, after : str
        What the sides have; ``none`` for a node that a side does not have.
    """

    node: str
    what: str
    before: str
    after: str


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The calls of two sides and their differences.

    Attributes
    ----------
    calls : DataFrame
        One row per call and source, by label: ``kind``, gas on each side in gas units, the change in gas units and in
        percent of the baseline, success, error codes, and the split of gas if it is known. Committed calls of two runs
        have a row for all transactions and one per way (``stratum``), with the 95 % bounds of the change. The mean
        of the after side is at the shares of the before side, unless use changed with the code. ``cause`` and
        ``explanation`` are those of the steps between the two versions, if a run has them.
    warnings : tuple of str
        What makes the two sides hard to compare, such as different node builds.
    names : tuple of str
        Names of the two sides.
    study : Study or None
        The study of the after side, if that is a run; its thresholds and waivers are those to judge by.
    left_out : tuple of (str, str)
        Label and node of simulations that are not compared, because they were made after a requested version.
    explained_by : Run or None
        The run of the after side if both sides are of one ledger, so that its steps explain the changes.
    one_run : bool
        Whether both sides are of one run, so that its steps are all there are.
    unlike : tuple of Unlike
        What makes the sides of a node impossible to judge.
    sources : frozenset of str
        The sources that are compared.
    after : Run or None
        The run of the after side, if that is a run at its end.
    """

    calls: pd.DataFrame
    warnings: tuple[str, ...] = ()
    names: tuple[str, str] = ("before", "after")
    study: Study | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    explained_by: Run | None = None
    one_run: bool = False
    unlike: tuple[Unlike, ...] = ()
    sources: frozenset[str] = frozenset(Source)
    after: Run | None = None

    def _of(self, kind: str) -> pd.DataFrame:
        return self.calls[self.calls["kind"] == kind].reset_index(drop=True)

    @property
    def added(self) -> pd.DataFrame:
        """Calls of the after side only."""
        return self._of("added")

    @property
    def removed(self) -> pd.DataFrame:
        """Calls of the before side only."""
        return self._of("removed")

    @property
    def changed(self) -> pd.DataFrame:
        """Calls whose gas, success or error differs."""
        return self._of("changed")

    @property
    def unchanged(self) -> pd.DataFrame:
        """Calls with the same gas, success and error on both sides."""
        return self._of("unchanged")

    @property
    def unreachable(self) -> pd.DataFrame:
        """Calls that cannot be compared: no answer on a side, or too few committed transactions of a kind."""
        return self._of("unreachable")

    @property
    def counts(self) -> dict[str, int]:
        """Number of calls of each kind."""
        return {kind: int((self.calls["kind"] == kind).sum()) for kind in KINDS}

    def gate(
        self,
        threshold: Any = None,
        *,
        study: Study | None = None,
        waivers: Sequence[Any] | None = None,
        allow: Any = None,
        today: date | None = None,
    ) -> Gate:
        """Judge which calls regressed.

        A call regresses if its gas rises over a limit, if it succeeded before and fails now, or if it disappeared. The
        gate does not pass either if it judged no call, or if there is a call that it cannot judge and that is not
        waived: a call of sides of different chains, nodes or gas models, or of a run that is not complete; a call
        without an answer or without gas on a side; a call that the study names and that failed before, or is on the
        after side only, or on neither; a kind of committed transactions of which a side has too few; committed
        transactions of sides that are not two judged runs, unless there are limits of a quantile or `study` has
        thresholds for the call; and simulations that are left out because they are made at the head only. To judge one
        source alone, name it: ``compare(a, b, source="view@version")``.

        Names on this machine, ``embedded`` and URLs of loopback, do not identify a node: a ledger that begins again
        there is judged if its chain id and gas model are the same, and `warnings` says so if it is known to be another.

        Of committed calls each kind of transaction is judged. A change by one gas unit that rounding can make is noted
        and does not fail the gate; a rise over a limit that may be chance cannot be judged. A kind that is on one side
        only is noted, since the mix may change, and cannot be judged if other kinds are on the other side only.

        A rise is allowed by its cause only if every step of the call between the two sides has an allowed cause, and
        these steps lead from the gas of the before side to that of the after side. A rise without a known cause, and a
        call that fails now, are never allowed.

        Parameters
        ----------
        threshold : Threshold, str, int or list, optional
            Limit of calls without a limit of their own: ``"2%"``, ``50`` gas units, ``"p90:5%"`` of a quantile, or
            several in a list, each of which applies. By default that of `study`.
        study : Study, optional
            Source of thresholds, and of waivers if `waivers` is None. `Comparison.study` is that of the after run.
        waivers : sequence of Waiver or mapping, optional
            Calls that are excused, and sources that need not be judged; a text that is not the label of a call is a
            pattern.
        allow : mapping, optional
            ``causes`` (``schedule``, ``state``) of a rise, and labels or patterns of calls that may disappear,
            ``removed``. By default those of `study`, key by key.
        today : date, optional
            Day by which waivers expire; today's date in UTC by default.

        Returns
        -------
        Gate

        Raises
        ------
        InputError
            If no call is on both sides, so that there is nothing to judge, or the threshold is not valid.
        StudyError
            If a waiver or `allow` is not valid, or the steps of a run are damaged.
        """
        rules = Rules.of(threshold, study, waivers, allow)
        return self.judged_by(rules if study else replace(rules, named=Rules.of(study=self.study).named), today=today)

    def judged_by(self, rules: Rules, *, today: date | None = None, max_age: timedelta | None = None) -> Gate:
        """Return the verdict by rules; see `gate`.

        Parameters
        ----------
        rules : Rules
        today : date, optional
        max_age : timedelta, optional
            Age from which on what the after run read up to the head cannot be judged. By default no age is too old,
            and an age of a day or more is noted.
        """
        steps = self.explained_by.steps if self.explained_by is not None and rules.allowed.causes else None
        named = {label: source for label, source in rules.named.items() if source in self.sources}
        age = None if self.after is None else self.after.age
        limit = MAX_AGE if max_age is None else max_age
        old = age is not None and bool(age.labels) and age.since() >= limit
        gate = judge(
            self.calls,
            replace(rules, named=named),
            left_out=self.left_out,
            unlike={one.node: unlike_text(one) for one in self.unlike},
            too_old=dict.fromkeys(age.labels, too_old_text(limit)) if age and old and max_age is not None else {},
            steps=steps,
            one_run=self.one_run,
            today=today,
        )
        if age is None or not (old or max_age is not None):
            return gate
        return replace(gate, notes=(age_text(age), *gate.notes))

    def __repr__(self) -> str:
        return comparison_text(self)

    def _repr_html_(self) -> str:
        return comparison_html(self)


def compare(before: Any, after: Any, *, source: str | tuple[str, str] | None = None) -> Comparison:
    """Compare the last observation of each call on two sides; of committed calls, each kind of transaction.

    Of the committed transactions of two runs, those under the newest code and schedule of either side are compared, in
    the mean and by way; what both sides have counts for the before side only. Other sides have their last transaction
    only.

    Parameters
    ----------
    before, after : DataFrame, Run, str or Path
        Observations, a run, the folder of a run, or ``runs/x@1000``: the run at ledger version 1000. The last
        observation of each call is compared. A frame of `Run.at` is the run at that version while the folder of the run
        exists and no observation in it was changed.
    source : str or (str, str), optional
        Compare observations of one source only: ``view@version``, ``simulate@now`` or ``committed``. Two of them mix
        sources: the first of the before side is then matched with the second of the after side, by label.

    Returns
    -------
    Comparison
        Calls are matched by fingerprint and source, so sources are never mixed unless that is requested.

    Raises
    ------
    InputError
        If a side is not an observation frame, a run or a folder, or `source` is not a source.
    StudyError
        If a folder is not that of a run, the run has no observation at or before the version, or the version is above
        the head of the run.

    Warns
    -----
    UserWarning
        If the node builds or the chains of the two sides differ, if a run is not complete, if a version is between two
        readings that differ, if simulations are left out because they were made after a requested version, or if
        sources are mixed.

    Examples
    --------
    >>> import toolkit
    >>> study = toolkit.Study(
    ...     title="supply", versions="3501:3502", calls=[toolkit.ViewFunction("0xfa17::vault::share_price")]
    ... )
    >>> run = study.run(progress=False)
    >>> toolkit.compare(run.at(3501), run.at(3502)).changed[["gas_before", "gas_after", "cause"]].to_numpy().tolist()
    [[4, 36, 'schedule']]
    """
    found = compared(before, after, source=source)
    for note in found.warnings:
        warnings.warn(note, UserWarning, stacklevel=2)
    return found


def compared(before: Any, after: Any, *, source: str | tuple[str, str] | None = None) -> Comparison:
    """Return the comparison of `compare`; its warnings are only in the result."""
    sides = _read_side(before), _read_side(after)
    pair = _sources(source)
    frames = [_of_source(side.last, one) for side, one in zip(sides, pair or (None, None), strict=True)]
    mixed = pair is not None and pair[0] != pair[1]
    # Simulations are made at the head, so a side at a version has none; they are left out of the other side too.
    with_simulations = pair is None or pair == (Source.SIMULATE, Source.SIMULATE)
    later = sides[0].later | sides[1].later if with_simulations else frozenset()
    marks = {fingerprint for fingerprint, _, _ in later}
    frames = [frame[~((frame["source"] == Source.SIMULATE) & frame["fingerprint"].isin(marks))] for frame in frames]
    left_out = sorted({(label, where) for _, label, where in later})
    several = max(frame["node"].nunique() for frame in frames) > 1
    key = [*(["label"] if mixed else ["fingerprint", "source"]), *(["node"] if several else [])]
    first, second = (_rows_by(frame, key) for frame in frames)
    rows = [_row(first.get(one), second.get(one)) for one in dict.fromkeys([*first, *second])]
    rows.sort(key=lambda row: (row["label"], row["source"], row["node"]))
    unlike = tuple(_unlike(sides, frames, several=several))
    notes = _notes(sides, frames, unlike) + _left_out_notes(left_out)
    if pair is not None and mixed:
        notes.append(f"{pair[0]} is compared with {pair[1]}, as requested: their gas may differ for that alone")
    names = sides[0].name or "before", sides[1].name or "after"
    of_sides = _quantiles(sides, pair, key)
    for row in rows:
        place = tuple(row[name] for name in key)
        for side, known in zip(("before", "after"), of_sides, strict=True):
            row |= {f"{name}_{side}": value for name, value in known.get(place, _NO_QUANTILES).items()}
    if not mixed:
        rows = [one for row in rows for one in _of_ways(row, sides)]
    rows = [row | _causes_between(row, sides) for row in rows]
    table = {name: [row.get(name) for row in rows] for name in COMPARISON.names}
    first_run, run = sides[0].run, sides[1].run
    return Comparison(
        rows_frame(COMPARISON, table),
        tuple(notes),
        names,
        sides[1].study,
        tuple(left_out),
        explained_by=run if first_run is not None and run is not None and _one_ledger(first_run, run) else None,
        one_run=_one_run(first_run, run),
        unlike=unlike,
        sources=frozenset(pair or Source),
        after=run if sides[1].until is None else None,
    )


def _unlike(sides: Sequence[_Side], frames: Sequence[pd.DataFrame], *, several: bool) -> Iterator[Unlike]:
    """Yield what makes the sides of a node impossible to judge; each node by itself if a side has several."""
    if not several and any(frame.empty for frame in frames):
        return
    states = ["complete" if side.complete else "not complete" for side in sides]
    for node in dict.fromkeys(node for frame in frames for node in frame["node"]):
        before, after = (_identity(frame[frame["node"] == node] if several else frame) for frame in frames)
        different = [Unlike(node, what, before[what], after[what]) for what in before if before[what] != after[what]]
        if "not complete" in states:
            different.append(Unlike(node, "states", *states))
        yield from different[:1]


def _identity(side: pd.DataFrame) -> dict[str, str]:
    """Return what identifies the gas of a side."""
    found = {
        "nodes": {"this machine" if is_local(node) else NETWORKS.get(node, node) for node in side["node"]},
        "chains": set(side["chain_id"].dropna().astype(str)),
        "gas models": set(side["model"].astype(str)),
    }
    return {what: ", ".join(sorted(texts)) or "none" for what, texts in found.items()}


def is_local(node: str) -> bool:
    """Return whether a node is the embedded node or has a URL on this machine.

    Such a name does not identify a ledger: it is that of whatever runs there at the time, often at a free port.
    """
    return _LOCAL.fullmatch(NETWORKS.get(node, node)) is not None


_LOCAL = re.compile(r"https?://(localhost|127(\.\d+){3}|\[::1\])([:/].*)?|embedded( ledger)?")


_NO_QUANTILES = {"count": 0} | dict.fromkeys(QUANTILES)


def _quantiles(
    sides: Sequence[_Side], pair: tuple[str, str] | None, key: Sequence[str]
) -> list[dict[tuple[Any, ...], dict[str, int | None]]]:
    """Return for each side the number of successful observations of each call, and the quantiles of their gas.

    Of one run at two versions, the after side has the observations since the before side, so that none counts twice.
    """
    every = [side.every for side in sides]
    first, last = sides
    if _one_run(first.run, last.run) and first.until is not None and (last.until is None or last.until > first.until):
        every[1] = every[1][every[1]["ledger_version"] > first.until]
    frames = (_of_source(frame, one) for frame, one in zip(every, pair or (None, None), strict=True))
    return [quantiles_of(frame, key) for frame in frames]


def quantiles_of(frame: pd.DataFrame, key: Sequence[str]) -> dict[tuple[Any, ...], dict[str, int | None]]:
    """Return the count and the quantiles by the values of `key`: the smallest gas that enough observations reach."""
    good = frame[frame["success"].fillna(value=False).astype(bool) & frame["gas_used"].notna()]
    found: dict[tuple[Any, ...], dict[str, int | None]] = {}
    for place, gas in good.groupby(list(key), sort=False)["gas_used"]:
        values = np.sort(gas.to_numpy(dtype=np.uint64))
        ranks = {name: -(-int(name[1:]) * len(values) // 100) - 1 for name in QUANTILES}
        found[place] = {"count": len(values), **{name: int(values[rank]) for name, rank in ranks.items()}}
    return found


def _one_run(before: Run | None, after: Run | None) -> bool:
    return before is not None and after is not None and before.path.resolve() == after.path.resolve()


def _one_ledger(before: Run, after: Run) -> bool:
    """Return whether two runs are of the same nodes and chains, and of the same history as far as their anchors say."""
    if _one_run(before, after):
        return True
    chains = [{plan.node: plan.chain_id for plan in run.record.nodes} for run in (before, after)]
    return chains[0] == chains[1] and not _other_ledgers(before, after)


def _other_ledgers(before: Run, after: Run) -> list[str]:
    """Return the nodes that are known to have served two ledgers: another transaction is at the same version."""
    plans = [{plan.node: plan for plan in run.record.nodes} for run in (before, after)]
    found = []
    for node in plans[0].keys() & plans[1].keys():
        one, other = (plan[node].anchor for plan in plans)
        if one and other and one.version == other.version and one != other:
            found.append(node)
    return sorted(found)


_NOTHING_NEW = "no transactions of the after side ran since those of the before side"


def _of_ways(row: dict[str, Any], sides: Sequence[_Side]) -> list[dict[str, Any]]:
    """Return what a call's committed transactions cost in the mean, and by way; the row itself if that is not known."""
    if row["source"] != Source.COMMITTED or row["kind"] in {"added", "removed"}:
        return [row]
    regimes = [_newest_regime(row, side) for side in sides]
    if regimes[0] is None or regimes[1] is None:
        return [row]
    (one, started), (two, latest) = regimes[0], regimes[1]
    first, last = (side.run for side in sides)
    one_ledger = first is not None and last is not None and _one_ledger(first, last)
    if one_ledger:
        same = _one_run(first, last) and sides[0].until == sides[1].until
        # Transactions that both sides have would hide what changed between them.
        ends = [int(frame["ledger_version"].max()) for frame in (one, two)]
        if not same and ends[1] >= ends[0]:
            two = two[two["ledger_version"] > ends[0]]
        elif not same:
            one = one[one["ledger_version"] > ends[1]]
    if one.empty or two.empty:
        return [row | {"stratum": ALL_TRANSACTIONS, "kind": "unreachable", "not_judged": _NOTHING_NEW}]
    same_code = one_ledger and started == latest
    return [row | _way_columns(way) for way in compare_sides(one, two, same_code=same_code)] or [row]


def _newest_regime(row: Mapping[str, Any], side: _Side) -> tuple[pd.DataFrame, int] | None:
    """Return a call's transactions under the newest code and schedule of a side, and the version of the newest change.

    None if the changes are not known.
    """
    calls = () if side.run is None or not side.complete else side.run.record.committed_series
    mine = [call for call in calls if call.fingerprint == row["fingerprint"]]
    call = mine[0] if len(mine) == 1 else next((one for one in mine if one.node == row["node"]), None)
    if call is None or not call.judged or side.run is None:
        return None
    plan = next(plan for plan in side.run.record.nodes if plan.node == call.node)
    every = side.run.observations
    rows = every.loc[every["fingerprint"] == call.fingerprint, columns_read()]
    frame = series_frame([to_arrow(rows)], call.node, call.fingerprint, plan.known_prices)
    if side.until is not None:
        frame = frame[frame["ledger_version"] <= side.until]
    if frame.empty:
        return None
    start = max((at for at in call.changed_at if at <= frame["ledger_version"].max()), default=0)
    return frame[frame["ledger_version"] >= start], start


def _way_columns(one: WayDifference) -> dict[str, Any]:
    """Return the columns of a row that are of one way, or of all."""
    row: dict[str, Any] = {"stratum": one.stratum, "not_judged": one.not_judged or None, "value_changed": None}
    row |= {"change_low": one.low, "change_high": one.high, "change": None, "change_percent": None}
    for side, way in (("before", one.before), ("after", one.after)):
        columns = dict.fromkeys(_OF_SIDE) | {"count": 0} if way is None else _side_columns(way)
        row |= {f"{name}_{side}": value for name, value in columns.items()}
    if one.failing is not None:
        row["vm_status_after"] = f"{one.failing[1]:.0%} of the transactions, {one.failing[0]:.0%} before"
    if one.before is None or one.after is None:
        return row | {"kind": "added" if one.before is None else "removed"}
    row["change"] = row["gas_after"] - row["gas_before"]
    mean = one.before.mean
    row["change_percent"] = 100 * (one.after.mean - mean) / mean if mean else None
    return row | {"kind": "unreachable" if one.not_judged else "changed" if one.changed else "unchanged"}


_OF_SIDE = (*_SIDED.values(), "count", *QUANTILES)


def _side_columns(way: WaySide) -> dict[str, Any]:
    """Return the columns of a side that are about one way, or all."""
    gas = np.sort(way.gas)
    columns: dict[str, Any] = dict.fromkeys(_OF_SIDE) | {"count": len(gas), "success": way.success}
    columns |= {"version": int(way.rows["ledger_version"].iloc[-1]), "gas": round(way.mean)}
    columns |= {part: round(float(way.rows[part].mean())) for part in _SPLIT if part in way.rows.columns}
    return columns | {name: int(gas[-(-int(name[1:]) * len(gas) // 100) - 1]) for name in QUANTILES}


def _causes_between(row: Mapping[str, Any], sides: Sequence[_Side]) -> dict[str, Any]:
    """Return the causes of the steps of a changed call between its two versions, as the runs found them."""
    first, last = row["version_before"], row["version_after"]
    runs = [side.run for side in sides if side.run is not None]
    if row["kind"] != "changed" or first is None or last is None or not runs:
        return {}
    if len(runs) == len(sides) and not _one_ledger(runs[0], runs[1]):
        return {}
    groups: dict[tuple[Any, ...], StepGroup] = {}
    for run in {run.path.resolve(): run for run in runs}.values():
        steps = run.steps
        mine = (steps["fingerprint"] == row["fingerprint"]) & (steps["node"] == row["node"])
        there = mine & (steps["version_after"] > first) & (steps["version_after"] <= last)
        groups |= {(one.version_before, one.version_after, one.cause): one for one in step_groups(steps[there])}
    if not groups:
        return _growth_between(row, runs)
    ordered = [groups[key] for key in sorted(groups)]
    causes = {group.cause for group in ordered}
    texts = [f"{place_text(group)}, {CAUSE_LABELS[group.cause]}: {group.explanation}" for group in ordered]
    cause = ordered[0].cause if len(causes) == 1 else Cause.MIXED
    return {"cause": cause, "explanation": listed(texts, _MAX_NAMED)}


def _growth_between(row: Mapping[str, Any], runs: Sequence[Run]) -> dict[str, Any]:
    """Return that a kind of committed transactions grows, if it does so between its two versions."""
    calls = [
        call
        for run in runs
        for call in run.record.committed_series
        if (call.node, call.fingerprint) == (row["node"], row["fingerprint"])
    ]
    if any(row["version_before"] < at <= row["version_after"] for call in calls for at in call.changed_at):
        return {}  # growth explains nothing across a change of code or schedule
    slopes = [
        slope
        for call in calls
        for slope in call.growth
        if slope["stratum"] == row.get("stratum")
        and slope["version_first"] < row["version_after"]
        and slope["version_last"] > row["version_before"]
    ]
    if not slopes:
        return {}
    return {"cause": Cause.STATE, "explanation": f"without a step between the two, {growth_text(slopes[0])}"}


def _sources(source: Any) -> tuple[str, str] | None:
    if source is None:
        return None
    pair = (source, source) if isinstance(source, str) else source
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not set(pair) <= set(Source):  # noqa: PLR2004 - a pair
        raise InputError(f"source must be one of {', '.join(Source)}, or two of them in a tuple, got {shorten(source)}")
    return pair[0], pair[1]


def _of_source(frame: pd.DataFrame, source: str | None) -> pd.DataFrame:
    return frame if source is None else frame[frame["source"] == source]


def _left_out_notes(left_out: Sequence[tuple[str, str]]) -> list[str]:
    labels = list(dict.fromkeys(label for label, _ in left_out))
    if not labels:
        return []
    names = listed(labels, _MAX_NAMED)
    return [f"not compared: {names}: simulations are made at the head, which is after the requested version"]


def _rows_by(frame: pd.DataFrame, names: Sequence[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the rows as plain values, keyed by columns."""
    columns = plain_columns(frame, [name for name in OBSERVATIONS.names if name in frame.columns])
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return {tuple(row[name] for name in names): row for row in rows}


def _row(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> dict[str, Any]:
    known: Mapping[str, Any] = after or before or {}
    sides = {"before": before or {}, "after": after or {}}
    row = {name: known[name] for name in ("label", "fingerprint", "source", "node", "model")}
    row["kind"] = _kind(before, after)
    if before and after and before["source"] != after["source"]:
        row["source"] = f"{before['source']} to {after['source']}"
    for column, name in _SIDED.items():
        for side, values in sides.items():
            row[f"{name}_{side}"] = values.get(column)
    gas_before, gas_after = row["gas_before"], row["gas_after"]
    change = None if gas_before is None or gas_after is None else gas_after - gas_before
    row["change"] = change
    row["change_percent"] = 100.0 * change / gas_before if change is not None and gas_before else None
    digests = [values.get("value_digest") for values in sides.values()]
    row["value_changed"] = None if None in digests else digests[0] != digests[1]
    return row


def _kind(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    if is_no_answer(before["error_code"]) or is_no_answer(after["error_code"]):
        return "unreachable"
    same = all(before[name] == after[name] for name in OUTCOME_COLUMNS)
    return "unchanged" if same else "changed"


def _notes(sides: Sequence[_Side], frames: Sequence[pd.DataFrame], unlike: Sequence[Unlike]) -> list[str]:
    notes = list(dict.fromkeys(map(unlike_text, unlike)))
    builds = [", ".join(sorted(frame["node_build"].dropna().unique())) for frame in frames]
    if all(builds) and builds[0] != builds[1]:
        one, two = builds
        notes.append(f"the two sides come from different node builds ({one}; {two}): gas may differ for that alone")
    before, after = (side.run for side in sides)
    if before is not None and after is not None and not _one_run(before, after):
        notes += [
            f"the two sides are of different ledgers of {node}: code and state may differ for that alone"
            for node in _other_ledgers(before, after)
        ]
    return [*notes, *(f"{side.name}: {note}" for side in sides for note in side.notes)]


@dataclass(frozen=True, eq=False)
class _Side:
    """One side of a comparison.

    Attributes
    ----------
    name : str
        The path, if the side was given as one.
    last : DataFrame
        The last observation of each call and source.
    every : DataFrame
        Every observation of the side.
    complete : bool
        False for a run that was interrupted.
    study : Study or None
        The study of a run.
    notes : tuple of str
        What makes the side less certain than it seems.
    later : frozenset of (str, str, str)
        Fingerprint, label and node of simulations of the run that were made after the requested version.
    run : Run or None
        The run, if the side is one.
    until : int or None
        The requested version; None for the run at its end.
    """

    name: str
    last: pd.DataFrame
    every: pd.DataFrame
    complete: bool = True
    study: Study | None = None
    notes: tuple[str, ...] = ()
    later: frozenset[tuple[str, str, str]] = frozenset()
    run: Run | None = None
    until: int | None = None


def _read_side(side: Any) -> _Side:
    """Open a side of a comparison: a frame, a run, or the folder of a run, with a version as in ``runs/x@1000``."""
    if isinstance(side, str | Path):
        return _side_of_path(str(side))
    if isinstance(side, pd.DataFrame) and (found := _side_of_frame(side)) is not None:
        return found
    frame = side if isinstance(side, pd.DataFrame) else getattr(side, "observations", None)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"compare takes observation frames, runs or run folders, got {type(side).__name__}")
    missing = [name for name in EARLIER_COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(f"compare needs observation frames; columns {missing} are missing")
    name = "" if frame is side else str(side.path)
    complete, study = getattr(side, "complete", True), getattr(side, "study", None)
    run = side if isinstance(side, Run) else None
    return _Side(name, last_observations(frame), frame, complete, study, run=run)


def _side_of_frame(frame: pd.DataFrame) -> _Side | None:
    """Return a frame of `Run.at` as a side with its run, or None for other frames and for changed observations."""
    about = frame.attrs.get(AT_VERSION)
    if not isinstance(about, dict):
        return None
    try:
        run, given = Run.load(str(about.get("path"))), as_version(about.get("version"))
        there = run.at(given)
    except (InputError, StudyError):  # the folder of a temporary run has been removed
        return None
    key = [*_CALL_KEY, "source", "ledger_version", *OUTCOME_COLUMNS]
    if not set(key) <= set(frame.columns) or len(frame.merge(there[key], on=key)) < len(frame):
        return None
    version = min(given, _head(run))
    every = run.observations[run.observations["ledger_version"] <= version]
    notes = tuple(_unsettled_notes(run, frame, version))
    return _Side(f"run.at({given})", frame, every, run.complete, None, notes, run=run, until=version)


def _side_of_path(path: str) -> _Side:
    try:
        there = checked_path(path).exists()
    except OSError as error:
        raise InputError(f"{shorten(path)}: not the folder of a run: {error.strerror}") from None
    found = None if there else _AT_VERSION.fullmatch(path)  # the name of a folder may contain an @
    if found is None:
        run = Run.load(path)
        every = run.observations
        return _Side(path, last_observations(every), every, run.complete, run.study, run=run)
    if not _VERSION.fullmatch(found[2]):
        raise InputError(
            f"{shorten(path)}: expected a ledger version after the @, a whole number such as {found[1]}@1000, "
            f"got {shorten(found[2])}; the folder alone is the run at its end"
        )
    run, version = Run.load(found[1]), int(found[2])
    last = run.at(version)
    if not len(last):
        first = run.observations["ledger_version"].min() if len(run.observations) else None
        since = "it has no observations" if first is None else f"its first version is {first}"
        raise StudyError(f"{shorten(path)}: the run has no observation at or before version {version}; {since}")
    head = _head(run)
    if version > head:
        raise StudyError(
            f"{shorten(path)}: the run has no data of version {version}: the head was {head} when it was read; "
            "give a version up to that, or the folder alone for the run at its end"
        )
    simulations = run.observations[run.observations["source"] == Source.SIMULATE]
    later = simulations[~simulations["fingerprint"].isin(last["fingerprint"])]
    notes = tuple(_unsettled_notes(run, last, version))
    named = frozenset(zip(*plain_columns(later, ["fingerprint", "label", "node"]).values(), strict=True))
    every = run.observations[run.observations["ledger_version"] <= version]
    return _Side(path, last, every, run.complete, run.study, notes, named, run, version)


def _head(run: Run) -> int:
    """Return the newest ledger version that the nodes of a run had when they answered."""
    heads = run.observations["head_version"].dropna()
    planned = max(plan.head for plan in run.record.nodes)
    return max(planned, int(heads.max())) if len(heads) else int(planned)


def _unsettled_notes(run: Run, last: pd.DataFrame, version: int) -> list[str]:
    """Name the views that changed between their last reading and a version that was not read itself."""
    steps = run.steps[(run.steps["source"] == Source.VIEW) & (run.steps["version_before"] < version)]
    found = steps.merge(last[[*_CALL_KEY, "ledger_version"]], on=_CALL_KEY)
    found = found[found["version_before"] >= found["ledger_version"]]
    columns = plain_columns(found, ["label", "version_before", "version_after", "exact"])
    changed = [
        f"{label!r} ({f'changed at {after}' if exact else f'{before} to {after}'})"
        for label, before, after, exact in zip(*columns.values(), strict=True)
    ]
    if not changed:
        return []
    names = listed(changed, _MAX_NAMED)
    return [f"version {version} is between two readings that differ; the earlier one is compared: {names}"]
