"""The sentences and numbers of a report, the same in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gas.judged import unjudged_words
from toolkit.plots.gas_change import change_text
from toolkit.plots.style import DASH, MINUS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.reports.data import Change, Event, FailureGroup, ReportData
    from toolkit.reports.provenance import ScheduleAtEnds

__all__ = [
    "CAUSES",
    "amount",
    "apt",
    "digest",
    "failed_how",
    "gas",
    "headline",
    "no_steps",
    "place",
    "schedule_at_ends",
    "share",
    "short_hash",
    "span",
    "where",
]

CAUSES = {
    "schedule": "gas schedule",
    "code": "code",
    "config": "configuration",
    "state": "state",
    "mixed": "several causes",
    "node": "node build",
    "unexplained": "unexplained",
    "unknown": "unknown",
}
"""Causes in words."""

MOST_EVENTS = 60
"""Places of change told in a report for readers; all are in its data."""

FOREMOST = 3
"""Places of change told in the first lines."""

SOURCES = {"view@version": "view", "simulate@now": "simulation at the head", "committed": "committed"}


def headline(data: ReportData, name: Callable[[str], str]) -> list[str]:
    """Say in a few sentences which calls' gas changed, where, by how much and why: the weightiest first.

    The last sentences say what was observed but not judged.

    Parameters
    ----------
    data : ReportData
        What the report says.
    name : callable
        Renders text that came from a user or the chain, harmlessly in the format wanted. All other text
        returned is plain words and numbers.

    Returns
    -------
    list of str
    """
    return [*_changes(data, name), *unjudged_words(data.unjudged, name)]


def no_steps(data: ReportData) -> str:
    """Say that no step was found, and in how many calls steps were looked for."""
    count = len(data.swept)
    return (
        f"No step was found in the {_views(count)} that {'was' if count == 1 else 'were'} judged."
        if count
        else ("Nothing was judged for steps, so this says nothing about changes.")
    )


def _changes(data: ReportData, name: Callable[[str], str]) -> list[str]:
    swept, changed, span = data.swept, data.changed, data.span
    if not swept or span is None:
        return ["No view was answered at two ledger versions or more, so no change of gas can be seen."]
    there = f"ledger versions {span[0]:,} to {span[1]:,}"
    if not changed:
        return [f"No view's gas changed: {_views(len(swept))} read at {there}."]
    same = len(swept) - len(changed)
    kept = f"; {same:,} stayed the same" if same else ""
    of = f"{len(changed):,} of {_views(len(swept))}"
    first = f"Gas changed for {of} read at {there}: {_list(changed, name)}{kept}."
    foremost = sorted(data.events, key=lambda event: -event.weight)[:FOREMOST]
    sentences = [first, *(_sentence(event, name) for event in foremost)]
    more = len(data.events) - len(foremost)
    return [*sentences, f"{more:,} more {'is' if more == 1 else 'are'} listed below."] if more else sentences


def _sentence(event: Event, name: Callable[[str], str]) -> str:
    change = event.changes[0]
    others = len(event.changes) - 1
    too = f"; {_calls(others, 'other')} changed there too" if others else ""
    why = CAUSES.get(event.cause, "unknown")
    cause = f"Cause ({why}): {name(event.explanation)}" if event.explanation else f"Cause: {why}"
    return f"At {where(event)}: {name(change.label)} {amount(change)}{too}. {cause}."


def _list(labels: Sequence[str], name: Callable[[str], str]) -> str:
    few = 7
    names = [name(label) for label in labels[:few]]
    if len(labels) > few:
        names.append(_calls(len(labels) - few, "other"))
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _calls(count: int, kind: str = "") -> str:
    return f"{count:,} {kind + ' ' if kind else ''}call{'' if count == 1 else 's'}"


def _views(count: int) -> str:
    return f"{count:,} view{'' if count == 1 else 's'}"


def where(event: Event) -> str:
    """Say at which version, or between which, an event was."""
    return ("version " if event.exact else "versions ") + place(event)


def place(event: Event) -> str:
    """Write the version of an event, or the interval it is in."""
    return f"{event.version_after:,}" if event.exact else span(event.version_before, event.version_after)


def span(first: int, last: int) -> str:
    """Write ledger versions from first to last."""
    return f"{first:,}" if first == last else f"{first:,}{DASH}{last:,}"


def short_hash(text: str) -> str:
    """Cut the middle out of a hash: its ends are what people compare."""
    ends = 10
    return text if len(text) <= 2 * ends else f"{text[:ends]}…{text[2 - ends :]}"


def amount(change: Change) -> str:
    """Say a change of gas with both readings, the share, and the steps it took."""
    if change.gas_before is None or change.gas_after is None:
        return _comes_or_goes(change)
    steps = f" in {change.count:,} steps" if change.count > 1 else ""
    return f"from {change.gas_before:,} to {_units(change.gas_after)} ({share(change)}){steps}"


def _comes_or_goes(change: Change) -> str:
    if change.gas_after is not None:
        return f"starts to answer, with {_units(change.gas_after)}"
    if change.gas_before is not None:
        return f"stops answering; it took {_units(change.gas_before)}"
    return "fails in another way"


def _units(amount: int) -> str:
    return f"{amount:,} gas unit{'' if amount == 1 else 's'}"


def share(change: Change) -> str:
    """Say a change in short: times ten, per cent, or that the call starts or stops answering."""
    if change.gas_before is None or change.gas_after is None:
        return _comes_or_goes(change).partition(",")[0].partition(";")[0]
    if change.gas_before == change.gas_after:
        return "same gas, other outcome"
    return change_text(change.gas_before, change.gas_after)


def gas(value: float | None) -> str:
    """Write gas units; a dash where there are none."""
    if value is None:
        return DASH
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".removesuffix(".00")


def apt(octas: int) -> str:
    """Write an amount of octas in APT (10^8 octas), exactly."""
    whole, rest = divmod(abs(octas), 10**8)
    digits = f"{rest:08d}".rstrip("0")
    return (MINUS if octas < 0 else "") + f"{whole:,}" + (f".{digits}" if digits else "")


def schedule_at_ends(schedule: ScheduleAtEnds) -> str:
    """Say which gas schedule stood at the first and the last version of a run."""
    one, two = (
        f"feature version {'not said' if feature is None else f'{feature:,}'}, digest {digest(mark)}"
        for feature, mark in zip(schedule.feature_versions, schedule.digests, strict=True)
    )
    first, last = schedule.versions
    if one == two:
        return f"{one}, at {first:,} and at {last:,}"
    return f"at {first:,} {one}; at {last:,} {two}"


def digest(text: str | None) -> str:
    """Write a digest; plain words where there is none."""
    return "not there, or not said" if text is None else text


def failed_how(group: FailureGroup) -> str:
    """Say whether the node ran a call that failed, refused it, or did not answer."""
    if group.executed:
        return "execution failed"
    return "no answer" if group.status is None else f"refused (HTTP {group.status})"
