"""Sentences about steps, causes, coverage and compared calls, for terminals, Markdown and HTML.

Text from users and from the chain is passed through a renderer that makes it safe for the output: `visible` for a
terminal, a code span for Markdown, an escaped element for HTML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from toolkit._present.text import (
    change_place,
    counted,
    listed,
    number,
    percent,
    plural,
    relative_change,
    short_addresses,
    signed,
    times,
    visible,
)
from toolkit.gas._cause_sentences import not_seen_text, unread_text
from toolkit.gas._observations import READ_AT_VERSIONS, Cause, Part, ReadAt, Source
from toolkit.gas._steps import ALL_TRANSACTIONS, Coverage, PartChange, StepChange, StepGroup, Unjudged, step_groups

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd

    from toolkit.gas._findings import Timeline
    from toolkit.gas.committed._analysis import FewCalls, Slope
    from toolkit.gas.committed._steps import CommittedCall
    from toolkit.gas.runs._manifest import EarlierRun, RunAge


Renderer = Callable[..., str]
"""Makes text from users or the chain safe for one kind of output; a second argument is the maximum length.

A function that takes `prose` uses it for sentences that may quote such text; by default, they are shown as names are.
"""
MAX_GROUPS = 60
"""Maximum number of step groups shown; if there are more, the weightiest are chosen."""
MAX_EXPLANATION = 1_000
"""Maximum number of characters of an explanation shown."""
MAX_NOTE = 400
"""Maximum number of characters of a note or a reason shown."""

_FIRST_YEAR = 2009
"""An earlier ledger time comes from a test ledger, which may count from 1970; it is not shown as a date."""
# Characters of a text from users or the chain, so that a line that quotes several is still read at a glance.
_MAX_LABEL = 80
_MAX_CELL = 60
_MAX_REASON = 160
_MAX_LINE = 2_000
# Things that one sentence lists; the frames have all of them.
_MAX_SHARES = 3
_TENFOLD = 10
_ROUNDING = " (gas is rounded up to whole units, so small figures move by less)"
_MAX_LISTED = 6


def run_lines(steps: pd.DataFrame, coverage: Coverage, committed: Sequence[CommittedCall] = ()) -> list[str]:
    """Return what a run found, as lines: steps (or a line saying there are none), notes, then calls not judged.

    Parameters
    ----------
    steps : DataFrame
        Steps as in `Run.steps`.
    coverage : Coverage
        Coverage as in `Run.coverage`.
    committed : sequence of CommittedCall
        What the analysis of committed transactions found besides steps.

    Returns
    -------
    list of str
    """
    lines = step_lines(steps) or [none_sentence(coverage, committed)]
    notes = not_located_sentences(steps) + not_compared_sentences(committed, visible)
    notes += not_steps_sentences(committed, visible) + unjudged_sentences(coverage.unjudged, visible)
    return [*lines, *(visible(note, _MAX_LINE) for note in notes)]


def not_located_sentences(steps: pd.DataFrame) -> list[str]:
    """Return one sentence on how to locate the steps of views that are not exact; empty if all are.

    Parameters
    ----------
    steps : DataFrame
        Steps as in `Run.steps`. A step that the node caused, rather than the ledger, has no transaction; only located
        steps have the cause ``state``.
    """
    located = steps["exact"].astype(bool) | steps["cause"].isin([Cause.NODE, Cause.STATE])
    inexact = ~located & steps["source"].isin(READ_AT_VERSIONS)
    if not inexact.any():
        return []
    which = plural(int(inexact.sum()), "step")
    how = "rerun with `find_steps`, or with a larger `max_requests`"
    return [f"The exact transaction of {which} was not located; {how}."]


def none_sentence(coverage: Coverage, committed: Sequence[CommittedCall]) -> str:
    """Return a sentence saying that no step was found and what was judged, or that nothing was judged."""
    if not coverage.judged:
        return "no call was judged, so no step can be found"
    judged = [call for call in committed if call.judged]
    texts = []
    if coverage.views or not judged:
        texts.append("no view's gas, success or error changed")
    if judged:
        count = sum(call.transactions for call in judged)
        limit = ", as far as they can be compared" if any(not call.all_compared for call in judged) else ""
        texts.append(f"no step was found in {plural(count, 'committed transaction')}{limit}")
    return " and ".join(texts)


def not_compared_sentences(committed: Sequence[CommittedCall], name: Renderer) -> list[str]:
    """Return which committed transactions are not compared: those not read, or too few in their stratum."""
    return _by_call(committed, name, _not_compared_of)


def not_steps_sentences(committed: Sequence[CommittedCall], name: Renderer) -> list[str]:
    """Return what changes committed gas without being a step: growth, the mix, and rounding to whole units."""
    return _by_call(committed, name, _not_steps_of)


def _by_call(
    committed: Sequence[CommittedCall], name: Renderer, texts_of: Callable[[CommittedCall, Renderer], Iterator[str]]
) -> list[str]:
    """Return the texts of each call after its label, with its node if the calls come from several nodes."""
    several = len({call.node for call in committed}) > 1
    found = []
    for call in committed:
        whose = name(call.label, _MAX_LABEL) + (f" on {name(call.node, _MAX_LABEL)}" if several else "")
        found += [f"{whose}: {text}." for text in texts_of(call, name)]
    return found


def _not_compared_of(call: CommittedCall, name: Renderer) -> Iterator[str]:
    if call.missing:
        yield f"{plural(call.missing, 'range')} of versions could not be read; transactions there are not compared"
    elif call.versions_read < call.versions:
        yield f"a sample of {call.versions_read:,} of {plural(call.versions, 'ledger version')} was read"
    for few in call.few[:_MAX_LISTED]:
        yield few_text(few, name)
    if len(call.few) > _MAX_LISTED:
        yield f"{len(call.few) - _MAX_LISTED:,} more groups of too few transactions"
    if call.small:
        yield f"not compared: {plural(call.small, 'transaction')} of kinds that have fewer than 16 transactions"


def few_text(few: FewCalls, name: Renderer) -> str:
    """Say which changes could not be judged, or distinguished, because there are too few transactions."""
    kind = _of_kind(few.stratum, name)
    places = dict.fromkeys(few.changes)  # a transaction may change several things
    versions = listed(map("{:,}".format, places), _MAX_LISTED)
    gas = "" if few.mean is None else f", gas {few.mean:,.0f}"
    if few.between:
        verb = "costs" if few.count == 1 else "cost"
        there = f"{plural(few.count, 'transaction')} between the changes {versions}{kind} {verb}"
        return f"{there} {counted(f'{few.mean or 0:,.0f}', 'gas unit')}, unlike those before and after"
    which = f"the change at version {versions}" if len(places) == 1 else f"the changes at versions {versions}"
    if few.part:
        only = f"only {plural(few.count, 'transaction')}{kind} on one side, and neighbours are alike"
        return f"{few.part} cannot be judged at {which}: {only}"
    if not few.count:
        return f"{which} cannot be judged: no transaction{kind} on one side of it"
    return f"{which} cannot be judged: only {plural(few.count, 'transaction')}{kind} on one side{gas}"


def _not_steps_of(call: CommittedCall, name: Renderer) -> Iterator[str]:
    for slope in call.growth[:_MAX_LISTED]:
        usage = any(
            one.stratum == slope.stratum
            and one.way_gas is not None  # other shares of whole strata leave the gas within each as it is
            and slope.version_first <= one.version_after
            and one.version_before <= slope.version_last
            for one in call.mix
        )
        yield growth_text(slope, _of_kind(slope.stratum, name), with_usage=usage)
    if len(call.growth) > _MAX_LISTED:
        yield f"{len(call.growth) - _MAX_LISTED:,} more slopes (see `run.growth`)"
    for (before, after), changes in groupby(call.mix, attrgetter("version_before", "version_after")):
        moved = sorted(changes, key=lambda one: -abs(one.share_after - one.share_before))[:_MAX_SHARES]
        shares = ", ".join(
            f"{name(stratum_text(one.stratum, one.way_gas) or one.stratum, _MAX_LABEL)} from "
            f"{shares_text(one.share_before, one.share_after)}"
            for one in moved
        )
        yield f"usage changed between versions {before:,} and {after:,}, not a step: {shares} of its transactions"
    if call.weak:
        places = listed((f"{one.version_before:,} to {one.version_after:,}" for one in call.weak), _MAX_LISTED)
        yield (
            f"ignored {plural(len(call.weak), 'shift')} of one gas unit: rounding of gradual growth looks the same "
            f"(versions {places})"
        )


def growth_text(slope: Slope, kind: str, *, with_usage: bool) -> str:
    """Describe gradual growth, perhaps while usage changed; `kind` is appended to the name of the part."""
    grown = slope.per_1000_versions * (slope.version_last - slope.version_first) / 1_000
    start = slope.level - grown / 2
    share = percent(100 * grown / start, "+.0f") if start > 0 else counted(_decimal(grown, sign=True), "gas unit")
    rate = _decimal(slope.per_1000_versions)
    rate = f"{counted(rate, 'gas unit')} per 1,000 versions"
    versions = f"from version {slope.version_first:,} to {slope.version_last:,}"
    what = "grows" if slope.per_1000_versions > 0 else "falls"
    over = f"{share} over {plural(slope.count, 'transaction')}"
    why = "usage changed meanwhile (see below), which may be all of it" if with_usage else "no change explains it"
    return f"{slope.part}{kind} {what} gradually, {over} {versions} ({rate}); {why}"


def shares_text(before: float, after: float) -> str:
    """Return two shares of a whole in percent."""
    return f"{100 * before:.0f} to {percent(100 * after, '.0f')}"


def stratum_text(stratum: str, way_gas: float | None = None) -> str:
    """Return a stratum, and one of its ways by its mean gas, in words; empty for all transactions of a call."""
    named = [] if stratum == ALL_TRANSACTIONS else [stratum]
    return ", ".join([*named, *([] if way_gas is None else [f"at {gas_text(way_gas)} gas"])])


def _of_kind(stratum: str, name: Renderer, way_gas: float | None = None) -> str:
    text = stratum_text(stratum, way_gas)
    return f" ({name(text, _MAX_LABEL)})" if text else ""


def gas_text(gas: float | None) -> str:
    """Return gas units as a number; below 100, a mean has one decimal, so that factors can be checked by hand."""
    return number(gas if gas is None else round(gas, 1 if gas < 100 else None))  # noqa: PLR2004 - three digits


def _decimal(value: float, *, sign: bool = False) -> str:
    """Return a number with at most 1 decimal, or 2 significant digits if it is below 1."""
    digits = ",.1f" if abs(value) >= 1 or value == 0 else ".2g"
    text = signed(value, digits).removesuffix(".0")
    return text if sign else text.removeprefix("+")


def _bounds(low: float, high: float, *, sign: bool = False) -> str:
    """Return an interval as text, or one number if both ends read the same."""
    one, two = _decimal(low, sign=sign), _decimal(high, sign=sign)
    return one if one == two else f"{one} to {two}"


def step_lines(steps: pd.DataFrame) -> list[str]:
    """Return steps as lines for a terminal: place and cause of each group, then its calls, indented.

    Parameters
    ----------
    steps : DataFrame
        Steps as in `Run.steps`.

    Returns
    -------
    list of str
        Sorted by version; an empty list without steps. Steps of a drift are merged. If there are more than 60 groups,
        the weightiest are listed, and the last line counts the others.
    """
    groups = step_groups(steps)
    shown = weightiest(groups, MAX_GROUPS)
    lines: list[str] = []
    for group in shown:
        lines.append(group_text(group, visible))
        named = zip(change_names(group.changes, visible), group.changes, strict=True)
        lines += [f"  {name}: {change_text(change, visible)}" for name, change in named]
    if len(groups) > len(shown):
        lines.append(f"... and {len(groups) - len(shown):,} more (see `run.steps`)")
    return [visible(line, _MAX_LINE) for line in lines]


def timeline_lines(timeline: Timeline, node: str) -> list[str]:
    """Return a timeline as lines for a terminal: a summary, the changes by version, and what is not known.

    Parameters
    ----------
    timeline : Timeline
    node : str
        Name of the node.

    Returns
    -------
    list of str
    """
    changes = plural(len(timeline.changes), "change") if timeline.changes else "no change"
    modules = listed(map(short_addresses, timeline.modules), _MAX_LISTED)
    about = f", the configuration and the code of {modules}" if modules else " and the configuration"
    where = f"versions {timeline.first:,} to {timeline.last:,} on {visible(node, _MAX_LABEL)}"
    lines = [f"{where}: {changes} to the gas schedule{about} ({plural(timeline.requests, 'read')})"]
    for change in timeline.changes:
        time = change.transaction.time if change.transaction else None
        place = _place_text(change.ledger_version, change.start, time, exact=change.exact)
        lines.append(short_addresses(f"  {place}: {change.what}"))
    lines += [f"could not be read, so changes may be missing: {text}" for text in map(unread_text, timeline.unread)]
    return [visible(line, _MAX_LINE) for line in [*lines, f"note: {not_seen_text(timeline.initial)}"]]


def weightiest(groups: Sequence[StepGroup], limit: int) -> tuple[StepGroup, ...]:
    """Return at most `limit` groups, those with the largest changes, in their original order."""
    chosen = sorted(range(len(groups)), key=lambda place: -groups[place].weight)[:limit]
    return tuple(groups[place] for place in sorted(chosen))


def steps_of(label: str, node: str, groups: Sequence[StepGroup]) -> list[StepGroup]:
    """Return the steps of a call, without what they changed of other calls; `groups` are sorted by version."""
    apart = ((group, tuple(change for change in group.changes if change.label == label)) for group in groups)
    return [replace(group, changes=mine) for group, mine in apart if mine and group.node in {"", node}]


def main_steps(found: Sequence[StepGroup], limit: int) -> tuple[StepGroup, ...]:
    """Return at most `limit` steps of a call that explain how its ends differ, in their order.

    If the call fails at one end only, the step that made the difference is one of them; the others are the largest.
    """
    ends = (found[0].changes[0].fails[0], found[-1].changes[0].fails[1]) if found else (False, False)
    turned = [group for group in found if group.changes[0].fails == ends][-1:] if ends[0] != ends[1] else []
    large = weightiest([group for group in found if group not in turned], limit - len(turned))
    return tuple(group for group in found if group in turned or group in large)


def group_text(group: StepGroup, name: Renderer) -> str:
    """Return the place of a group of steps, its cause and the evidence: ``at version 7, state: transaction 7 ...``."""
    node = f" on {name(group.node, _MAX_LABEL)}" if group.node else ""
    evidence = evidence_text(group)
    explanation = f": {name(evidence, MAX_EXPLANATION)}" if evidence else ""
    return f"{place_text(group)}{node}, {group.cause.label}{explanation}"


def evidence_text(group: StepGroup) -> str:
    """Return the explanation of a group of steps; empty if there is none."""
    if not group.explanation:
        return ""
    largest = "largest step: " if group.is_drift else ""
    return f"{largest}{group.explanation}{_ROUNDING if group.rounded else ''}"


def brief_lines(steps: pd.DataFrame, calls: int) -> list[str]:
    """Return one line for each of the largest changes, the largest first, and one that counts the others.

    Parameters
    ----------
    steps : DataFrame
        Steps as in `Run.steps`.
    calls : int
        Number of calls of the study.
    """
    groups = sorted(step_groups(steps), key=lambda group: (not group.sure, -group.weight))
    lines = [lead_sentence(group, calls, visible) for group in groups[:_MAX_LISTED]]
    more = len(groups) - len(lines)
    return lines + ([f"... and {more:,} more, all in the report"] if more > 0 else [])


def lead_sentence(group: StepGroup, calls: int, name: Renderer, prose: Renderer | None = None) -> str:
    """Return a sentence about the weightiest change of a report: whose gas, by how much, where, and why.

    Parameters
    ----------
    group : StepGroup
    calls : int
        Number of calls of the run.
    name : Renderer
    prose : Renderer, optional
    """
    unsure = [change for change in group.changes if change.uncertain]
    doubts = dict.fromkeys((prose or name)(why) for change in unsure for why in change.uncertain)
    doubt = "" if group.sure else f"; uncertain, because {' and '.join(doubts)}"
    first, *more = shown = min(_alike(group.changes), key=lambda found: bool(found[0].uncertain))
    labels = {change.label for change in shown}
    who = name(first.label, _MAX_LABEL) if more else change_name(first, name)
    who = f"{len(labels):,} of {calls:,} calls" if len(labels) > 1 else who
    rest = f" ({' and '.join(_counts(unsure, shown))} uncertain)" if group.sure and unsure else ""
    node = f" on {name(group.node, _MAX_LABEL)}" if group.node else ""
    return f"{who}{rest}: {_magnitude(shown)} {place_text(group)}{node}{_because(group)}{doubt}."


def change_clause(group: StepGroup) -> str:
    """Return where and why gas changed: ``at version 7, when code was published``."""
    return f"{place_text(group)}{_because(group)}"


def _alike(changes: Sequence[StepChange]) -> list[tuple[StepChange, ...]]:
    """Return changes apart by what they are: sure or not, of a call that runs on both sides, is new, or fails now."""
    kinds: dict[tuple[bool, ...], list[StepChange]] = {}
    for change in changes:
        known = change.gas_before is not None, change.gas_after is not None
        kinds.setdefault((bool(change.uncertain), *known, change.is_usage, change.turns), []).append(change)
    return [tuple(found) for found in kinds.values()]


def _counts(changes: Sequence[StepChange], shown: Sequence[StepChange]) -> dict[str, list[StepChange]]:
    """Return changes by a text that counts them, beside those shown.

    They are other parts of the gas of a shown kind of transaction, other kinds of a shown call, or other calls.
    """
    labels, strata = {change.label for change in shown}, {(change.label, change.stratum) for change in shown}
    same = [change for change in changes if (change.label, change.stratum) in strata]
    kinds = [change for change in changes if change.label in labels and change not in same]
    calls = [change for change in changes if change.label not in labels]
    others = plural(len({change.label for change in calls}), "more call")
    paid = {(change.label, change.stratum) for change in calls if change.parts}
    if len(paid) > len({label for label, _ in paid}):
        others += f" with {plural(len(paid), 'transaction kind')}"
    counts = {
        plural(len(same), "more part") + " of its gas": same,
        plural(len({(change.label, change.stratum) for change in kinds}), "more transaction kind"): kinds,
        others: calls,
    }
    return {text: found for text, found in counts.items() if found}


def others_text(group: StepGroup) -> str:
    """Return how many changes follow the first one of a group, and by how much gas moved; empty if there are none."""
    first, *others = group.changes
    texts = []
    for count, some in _counts(others, [first]).items():
        much = (f"{'uncertain: ' * bool(found[0].uncertain)}{_magnitude(found)}" for found in _alike(some))
        texts.append(f"and {count} ({listed(much, _MAX_LISTED)})")
    return " ".join(texts)


def _magnitude(changes: Sequence[StepChange]) -> str:
    """Return the change in gas, or the range from the smallest to the largest change of several calls."""
    first = changes[0]
    if first.is_usage:
        return "a way is new" if first.gas_before is None else "a way is gone"
    if first.turns:
        return "starts to fail" if first.fails[1] else "becomes available"
    sides = [
        (change.gas_before, change.gas_after)
        for change in changes
        if change.gas_before and change.gas_after is not None
    ]
    if not sides or first.gas_before is None or first.gas_after is None:
        if first.gas_after is not None:
            return "becomes available"
        return "fails differently" if first.gas_before is None else "starts to fail"
    if all(gas_text(before) == gas_text(after) for before, after in sides):
        return "same gas, different outcome" if not first.parts else "same gas, split differently"
    ordered = sorted(sides, key=lambda side: side[1] / side[0])
    low, high = relative_change(*ordered[0]), relative_change(*ordered[-1])
    return low if low == high else f"{low} to {high}"


def date_text(time: datetime | None) -> str:
    """Return a ledger time as a date; an empty string if it is not known, or the ledger is not real."""
    return f"{time:%Y-%m-%d}" if time is not None and time.year >= _FIRST_YEAR else ""


def _because(group: StepGroup) -> str:
    """Return the cause as a clause, with the factor of a schedule whose parameters all changed alike."""
    ratio = group.price_ratio
    if group.cause is Cause.SCHEDULE and ratio is not None:
        how = "rose tenfold" if ratio == _TENFOLD else f"{'rose' if ratio > 1 else 'fell'} ({times(ratio)})"
        return f", when the gas schedule {how}"
    if group.cause is Cause.CODE and any(change.gas_before is not None for change in group.changes):
        return ", when code was upgraded"
    return group.cause.because


def between_text(found: Sequence[StepGroup]) -> str:
    """Describe the steps of a call between two versions; of more than two, the one that explains most."""
    shown = found if len(found) <= 2 else main_steps(found, 1)  # noqa: PLR2004 - more would be a page, not a sentence
    causes = [f"{place_text(one)}, {one.cause.label}: {evidence_text(one)}" for one in shown]
    kinds = Counter(one.cause.label for one in found if one not in shown)
    others = " and ".join(f"{count:,} ({kind})" for kind, count in kinds.items())
    return "; then ".join(causes) + (f"; other steps: {others}" if others else "")


def change_name(change: StepChange, name: Renderer) -> str:
    """Return the label of a call, and the stratum of its committed transactions if there are several."""
    return f"{name(change.label, _MAX_LABEL)}{_of_kind(change.stratum, name, change.way_gas)}"


def change_names(changes: Sequence[StepChange], name: Renderer) -> list[str]:
    """Return the names of the changes of a group, all different."""
    labels = [name(change.label, _MAX_LABEL) for change in changes]
    kinds = [name(kind, _MAX_LABEL) for kind in kind_texts(changes)]
    return [f"{label} ({kind})" if kind else label for label, kind in zip(labels, kinds, strict=True)]


def kind_texts(changes: Sequence[StepChange]) -> list[str]:
    """Return the kind of transaction of each change of a group; of two with one kind, also the parts of its gas."""
    kinds = [stratum_text(change.stratum, change.way_gas) for change in changes]
    calls = Counter(zip((change.label for change in changes), kinds, strict=True))
    parts = [
        " and ".join(part.part for part in change.parts) if calls[change.label, kind] > 1 else ""
        for change, kind in zip(changes, kinds, strict=True)
    ]
    return [", ".join(filter(None, both)) for both in zip(kinds, parts, strict=True)]


def place_text(group: StepGroup) -> str:
    """Return the version of a group of steps, or the interval that contains it."""
    if group.is_drift:
        return f"over versions {versions_text(group)}"
    return _place_text(group.version_after, group.version_before, group.time, exact=group.exact)


def versions_text(group: StepGroup) -> str:
    """Return the version of a group of steps, or the versions between which it is, for a table."""
    return change_place(group.version_before, group.version_after, several=group.is_drift)


def _place_text(after: int, before: int | None, time: datetime | None, *, exact: bool) -> str:
    """Return a version, with its date if the ledger is a real one, or the interval that contains it."""
    if not exact:
        return f"between versions {before:,} and {after:,}"
    date = date_text(time)
    return f"at version {after:,}" + (f" ({date})" if date else "")


def change_text(change: StepChange, name: Renderer, prose: Renderer | None = None) -> str:
    """Describe how the outcome of a call changed, with gas on both sides."""
    before, after = change.gas_before, change.gas_after
    if before is not None and after is not None:
        units = _units(after)
        if change.turns:
            now, was = ("fails", "took") if change.fails[1] else ("succeeds", "failed after")
            return f"{now} from here, after {units}; before, it {was} {gas_text(before)}"
        if gas_text(before) != gas_text(after):
            return f"from {gas_text(before)} to {units} ({short_change(change, name, prose)})"
        if change.parts:
            return f"{units} in total on both sides ({short_change(change, name, prose)})"
        if change.count > 1:
            ends = f"{number(change.lowest)} to {number(change.highest)} gas units"
            return f"{ends} in {change.count:,} steps, back to {gas_text(after)}"
        return f"same gas ({units}), different outcome"
    return _usage_text(change, prose or name) if change.is_usage else _failure_text(change, name)


def _failure_text(change: StepChange, name: Renderer) -> str:
    """Describe a change whose gas is not known on both sides: usually, the call fails on one of them."""
    # A call that the node refused has no success; one that ran and failed has.
    was = "could not be called" if change.success_before is None else "failed"
    now = "cannot be called" if change.success_after is None else "fails"
    old, new = change.error_message_before or change.error_before, change.error_message_after or change.error_after
    old_error = "" if old is None else f" ({name(old, _MAX_REASON)})"
    new_error = "" if new is None else f" ({name(new, _MAX_REASON)})"
    if old_error and new_error:
        if change.success_before is None and change.success_after is not None:
            return f"can be called from here, but fails{new_error}"
        return f"{now} from here{new_error}; before, it {was}{old_error}"
    if old_error:
        return f"available from here, at {_units(change.gas_after)}"
    if new_error:
        return f"{now} from here{new_error}; before, it took {_units(change.gas_before)}"
    return f"{_units(change.gas_before)}, then {_units(change.gas_after)}"


def _usage_text(change: StepChange, prose: Renderer) -> str:
    """Describe an option that was added or removed. It does not change what others pay."""
    share = "" if change.share is None else f"{percent(100 * change.share, '.0f')} of the transactions, "
    gas = _units(change.gas_after if change.gas_before is None else change.gas_before)
    doubt = f"; uncertain, because {' and '.join(map(prose, change.uncertain))}" if change.uncertain else ""
    if change.gas_before is None:
        return f"is new: {share}{gas}{doubt}"
    return f"is gone: it was {share}{gas}; its transactions have stopped, or cost what the others do{doubt}"


def short_change(change: StepChange, name: Renderer, prose: Renderer | None = None) -> str:
    """Return a change for a context that already shows gas on both sides: the factor or percentage, and the steps.

    For committed transactions: the factor or percentage, the parts with their bounds, the numbers of transactions that
    were compared, and the reasons for caution.
    """
    if change.parts and change.gas_before is not None and change.gas_after is not None:
        same = gas_text(change.gas_before) == gas_text(change.gas_after)
        of_it = ": " if _explains(change.parts, change.gas_after - change.gas_before) else ", of which "
        moved = "" if same else f"{relative_change(change.gas_before, change.gas_after)}{of_it}"
        texts = [moved + ", ".join(_part_text(part) for part in change.parts)]
        texts.append(f"nearest {plural(change.count_before or 0, 'transaction')} before, {change.count_after:,} after")
        if change.uncertain:
            texts.append(f"uncertain, because {' and '.join(map(prose or name, change.uncertain))}")
        return "; ".join(texts)
    if change.gas_before is None or change.gas_after is None or change.gas_before == change.gas_after or change.turns:
        return change_text(change, name, prose)
    steps = f" in {change.count:,} steps" if change.count > 1 else ""
    return f"{relative_change(change.gas_before, change.gas_after)}{steps}"


def _units(gas: float | None) -> str:
    return "no gas reported" if gas is None else counted(gas_text(gas), "gas unit")


_UNJUDGED = {
    ReadAt.TRANSACTIONS: "{} were observed but not compared",
    ReadAt.HEAD: "{} run only at the latest version, so they have no history",
    ReadAt.VERSIONS: "{} with results at fewer than two ledger versions show no change",
}


def _explains(parts: Iterable[PartChange], change: float) -> bool:
    """Return whether parts may add up to the whole change of gas: others may be told apart for other transactions."""
    ends = [(part.low, part.high) for part in parts if part.part != Part.REFUND]  # a refund is no gas
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    rounding = 1  # gas unit: the node rounds the total and each part
    return sum(low for low, _ in known) - rounding <= change <= sum(high for _, high in known) + rounding


def _part_text(part: PartChange) -> str:
    if part.before is None or part.after is None or part.low is None or part.high is None:
        return part.part
    return f"{part.part} {_bounds(part.low, part.high, sign=True)}"


def unjudged_sentences(unjudged: Sequence[Unjudged], name: Renderer, prose: Renderer | None = None) -> list[str]:
    """Return one sentence for each source with calls that were observed but not judged, with the reason.

    Parameters
    ----------
    unjudged : sequence of Unjudged
    name : Renderer
    prose : Renderer, optional

    Returns
    -------
    list of str
        Empty if all calls were judged.
    """
    several = len({one.node for one in unjudged}) > 1
    order = list(_UNJUDGED)
    groups: dict[tuple[Source, str], list[str]] = {}
    for one in sorted(unjudged, key=lambda call: order.index(Source(call.source).read_at)):
        groups.setdefault((Source(one.source), one.reason), []).append(_unjudged_text(one, name, several=several))
    sentences = []
    for (source, reason), texts in groups.items():
        because = f", because {(prose or name)(reason, MAX_NOTE)}" if reason else ""
        more = [f"{len(texts) - _MAX_LISTED:,} more calls"] if len(texts) > _MAX_LISTED else []
        fact = _UNJUDGED[source.read_at].format(source.plural.capitalize())
        sentences.append(f"{fact}{because}: {'; '.join([*texts[:_MAX_LISTED], *more])}.")
    return sentences


def _unjudged_text(one: Unjudged, name: Renderer, *, several: bool) -> str:
    count = f"{one.readings:,} of " if one.source == Source.COMMITTED else ""
    where = f" on {name(one.node)}" if several else ""
    if one.min_gas is None:
        gas = "no gas"
    elif one.min_gas == one.max_gas:
        gas = f"gas {one.min_gas:,}"
    else:
        gas = f"gas from {one.min_gas:,} to {one.max_gas:,}"
    if one.source in {Source.SIMULATE, Source.SIMULATE_AT_VERSION} and one.min_gas is not None and not one.succeeded:
        gas += ", would fail"
    if one.source == Source.COMMITTED and one.failures:
        gas += f"; {plural(one.failures, 'range')} of versions could not be read"
    return f"{count}{name(one.label)}{where} ({gas})"


def label_text(text: str, limit: int = _MAX_CELL, /) -> str:
    """Return a label or other text from users and the chain on one line, with short addresses, for a terminal."""
    return visible(short_addresses(text), limit)


def age_text(age: RunAge) -> str:
    """Say up to which version a run is complete on each node, and how long ago it was read."""
    return f"run complete to {_reached_text(age)}"


def _reached_text(age: RunAge) -> str:
    several = len(age.reached) > 1
    places = [
        f"{version:,} on {visible(node, _MAX_LABEL)}" if several else f"{version:,}"
        for node, version in age.reached.items()
    ]
    reached = f"version {listed(places, _MAX_LISTED)}, read {age.read_at:%Y-%m-%d %H:%M} UTC"
    if not age.labels:  # its versions are fixed, so it does not age
        return reached
    seconds = age.since().total_seconds()
    ago = "less than a minute"
    for noun, size in (("minute", 60), ("hour", 3_600), ("day", 86_400)):
        if seconds >= size:
            ago = plural(int(seconds // size), noun)
    return f"{reached}, {ago} ago"


def earlier_sentence(earlier: EarlierRun, rows: int) -> str:
    """Say what a folder contained before its study was run again, and how many of its `rows` are new."""
    now = "still" if [*earlier.heads] == [*earlier.age.reached.values()] else "now"
    if rows > earlier.rows:
        end = f"Read {plural(rows - earlier.rows, 'new observation')}."
    elif earlier.age.labels:
        end = "Nothing new was read."
    else:
        end = "Its versions are fixed, so nothing was read; --fresh (fresh=True in Python) reads them again."
    at_head = f"the head is {now} {listed(map('{:,}'.format, earlier.heads), _MAX_LISTED)}"
    return f"The run was complete to {_reached_text(earlier.age)}; {at_head}. {end}"
