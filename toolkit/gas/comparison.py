"""Two sets of observations side by side: what was added, removed, changed, and by how much."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit._present.messages import shorten
from toolkit.errors import InputError
from toolkit.frames.columns import plain_columns, rows_frame
from toolkit.frames.schema import COMPARISON, OBSERVATIONS
from toolkit.gas.comparison_words import comparison_html, comparison_text
from toolkit.gas.gate import Gate, Rules, judge
from toolkit.gas.observations import Source, is_no_answer
from toolkit.gas.sides import Side, read_side

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    import pandas as pd

    from toolkit.gas.study import Study

__all__ = ["KINDS", "Comparison", "compare"]

KINDS = ("changed", "unreachable", "added", "removed", "unchanged")
"""Kinds of calls, what needs a look first."""

_MOST_NAMED = 5
_SOURCES = tuple(Source)
_SPLIT = ("execution_gas_units", "io_gas_units", "storage_fee_octas", "storage_fee_refund_octas")
_SIDED = {
    "ledger_version": "version",
    "gas_used": "gas",
    "success": "success",
    "error_code": "error",
    "vm_status": "vm_status",
} | dict(zip(_SPLIT, _SPLIT, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The calls of two sides and how they differ.

    Attributes
    ----------
    calls : DataFrame
        One row per call and source, by label: ``kind``, gas on either side in gas units, the change in units and
        percent of the baseline, success, error codes, and the split where it is known.
    warnings : tuple of str
        What makes the two sides hard to compare, such as different node builds.
    names : tuple of str
        How the two sides were named.
    study : Study or None
        The study of the after side, if that is a run: its thresholds and waivers are the ones to judge by.
    left_out : tuple of (str, str)
        Label and node of simulations that are not compared, since they were made after a version that was asked for.
    """

    calls: pd.DataFrame
    warnings: tuple[str, ...] = ()
    names: tuple[str, str] = ("before", "after")
    study: Study | None = None
    left_out: tuple[tuple[str, str], ...] = ()

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
        """Calls that got no answer on one side, so that nothing can be said."""
        return self._of("unreachable")

    @property
    def counts(self) -> dict[str, int]:
        """How many calls there are of each kind."""
        return {kind: int((self.calls["kind"] == kind).sum()) for kind in KINDS}

    def gate(
        self,
        threshold: Any = None,
        *,
        study: Study | None = None,
        waivers: Sequence[Any] | None = None,
        today: date | None = None,
    ) -> Gate:
        """Judge which calls regressed.

        A call regresses if its gas rises over a limit, or if it succeeded before and now fails. A gate does not pass
        either if it could not judge a call that is not waived: one that got no answer or no gas on a side; committed
        transactions, which differ in their arguments, unless the call has thresholds of its own in `study`; and
        simulations that are left out because they stand at the head only. To judge one source alone, name it:
        ``compare(a, b, source="view@version")``.

        Parameters
        ----------
        threshold : Threshold, str, int or list, optional
            Limit of calls without one of their own: ``"2%"``, ``50`` gas units, or both in a list, of which either
            counts. By default that of `study`.
        study : Study, optional
            Whose thresholds, and waivers where none are given, count; `Comparison.study` is the after run's own.
        waivers : sequence of Waiver or mapping, optional
            Calls, and sources that need not be judged, that are excused.
        today : date, optional
            Day by which waivers expire; today's date in UTC by default.

        Returns
        -------
        Gate

        Raises
        ------
        InputError
            If no call is on both sides, so that there is nothing to judge.
        """
        return judge(self.calls, Rules.of(threshold, study, waivers), left_out=self.left_out, today=today)

    def __repr__(self) -> str:
        return comparison_text(self)

    def _repr_html_(self) -> str:
        return comparison_html(self)


def compare(before: Any, after: Any, *, source: str | tuple[str, str] | None = None) -> Comparison:
    """Compare the last observation of each call on two sides.

    Parameters
    ----------
    before, after : DataFrame, Run, str or Path
        Observations, a run, the folder of one, or ``runs/x@1000``: the run as it stood at ledger version 1000. Of
        several observations of a call the last one counts.
    source : str or (str, str), optional
        Compare observations of one source only: ``view@version``, ``simulate@now`` or ``committed``. Two of them ask
        for sources to be mixed: the before side's first is then matched with the after side's second, by label.

    Returns
    -------
    Comparison
        Calls are matched by fingerprint and source, so sources are never mixed unless asked for by name.

    Raises
    ------
    InputError
        If a side is no observation frame, or a source is none.
    StudyError
        If a path holds no run, nothing at or before the version, or the version is above the run's head.

    Warns
    -----
    UserWarning
        If the node's builds, or the chains, of the two sides differ, if a run is not complete, if a version lies
        between two readings that differ, if simulations are left out because they were made after a version that is
        asked for, or if sources are mixed.
    """
    sides = read_side(before), read_side(after)
    pair = _sources(source)
    frames = [_of_source(side.last, one) for side, one in zip(sides, pair or (None, None), strict=True)]
    mixed = pair is not None and pair[0] != pair[1]
    # A side at a version cannot have simulations, which are made at the head: they are left out of the other one too.
    asked = pair is None or pair == (Source.SIMULATE, Source.SIMULATE)
    later = sides[0].later | sides[1].later if asked else frozenset()
    marks = {fingerprint for fingerprint, _, _ in later}
    frames = [frame[~((frame["source"] == Source.SIMULATE) & frame["fingerprint"].isin(marks))] for frame in frames]
    left_out = sorted({(label, where) for _, label, where in later})
    several = max(frame["node"].nunique() for frame in frames) > 1
    key = [*(["label"] if mixed else ["fingerprint", "source"]), *(["node"] if several else [])]
    first, second = (_by_key(frame, key) for frame in frames)
    rows = [_row(first.get(one), second.get(one)) for one in dict.fromkeys([*first, *second])]
    rows.sort(key=lambda row: (row["label"], row["source"], row["node"]))
    notes = _notes(sides, frames) + _left_out_words(left_out)
    if pair is not None and mixed:
        notes.append(f"{pair[0]} is compared with {pair[1]}, as asked for: their gas may differ for that alone")
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    names = sides[0].name or "before", sides[1].name or "after"
    table = {name: [row[name] for row in rows] for name in COMPARISON.names}
    return Comparison(rows_frame(COMPARISON, table), tuple(notes), names, sides[1].study, tuple(left_out))


def _sources(source: Any) -> tuple[str, str] | None:
    if source is None:
        return None
    pair = (source, source) if isinstance(source, str) else source
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not set(pair) <= set(_SOURCES):  # noqa: PLR2004 - a pair
        raise InputError(f"source is one of {', '.join(_SOURCES)}, or two of them in a tuple, got {shorten(source)}")
    return pair[0], pair[1]


def _of_source(frame: pd.DataFrame, source: str | None) -> pd.DataFrame:
    return frame if source is None else frame[frame["source"] == source]


def _left_out_words(left_out: Sequence[tuple[str, str]]) -> list[str]:
    labels = list(dict.fromkeys(label for label, _ in left_out))
    if not labels:
        return []
    more = f" and {len(labels) - _MOST_NAMED} more" if len(labels) > _MOST_NAMED else ""
    told = f"{', '.join(labels[:_MOST_NAMED])}{more}"
    return [f"not compared: {told}: simulations are made at the head, and the version asked for lies before it"]


def _by_key(frame: pd.DataFrame, names: Sequence[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the rows as plain values by what they are matched by."""
    columns = plain_columns(frame, OBSERVATIONS.names)
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
    same = all(before[name] == after[name] for name in ("gas_used", "success", "error_code"))
    return "unchanged" if same else "changed"


def _notes(sides: Sequence[Side], frames: Sequence[pd.DataFrame]) -> list[str]:
    notes = []
    for column, what in (("chain_id", "chains"), ("node_build", "node builds")):
        found = [sorted(frame[column].dropna().astype(str).unique()) for frame in frames]
        if found[0] and found[1] and found[0] != found[1]:
            one, two = (", ".join(side) for side in found)
            notes.append(f"the two sides come from different {what} ({one}; {two}): gas may differ for that alone")
    models = [set(frame["model"].astype(bool)) for frame in frames]
    if models[0] and models[1] and models[0] != models[1]:
        notes.append("one side is of the embedded node, whose gas is a model: the sides cannot be compared")
    notes += [
        f"the {name} side is a run that is not complete: calls may be missing"
        for name, side in zip(("before", "after"), sides, strict=True)
        if not side.complete
    ]
    return [*notes, *(f"{side.name}: {note}" for side in sides for note in side.notes)]
