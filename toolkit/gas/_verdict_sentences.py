"""Sentences about compared calls and verdicts, and what a comparison shows as text, Markdown and HTML."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum, member
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.notebook import literal
from toolkit._present.tables import NO_TERMINAL, fitted_columns, html_table, text_table, wrapped
from toolkit._present.text import (
    PERCENT,
    counted,
    listed,
    number,
    percent,
    plural,
    relative_change,
    signed,
    times,
    version_range,
    visible,
)
from toolkit.frames._columns import plain_rows
from toolkit.gas._findings import Kind
from toolkit.gas._observations import Cause, Part, Source
from toolkit.gas._sentences import MAX_NOTE, Renderer, group_text, label_text, main_steps, shares_text, steps_of
from toolkit.gas.committed._fees import Reason, Verdict
from toolkit.gas.committed._levels import MIN_SURE_CALLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Finding, Gate
    from toolkit.gas._paired import PairedComparison
    from toolkit.gas._rules import Threshold
    from toolkit.gas._steps import StepGroup
    from toolkit.gas.committed._fees import FeeChange, Fees, Judgement

_HEAD = ("call", "before", "after", "change", "relative", "versions")
_PAIRED_HEAD = (
    "call",
    "transactions",
    "judged",
    "cheaper",
    "same",
    "dearer",
    "fail now",
    "least change",
    "median",
    "most",
)
_PAIRED_COUNTS = ("transactions", "judged", "cheaper", "same", "dearer", "fails_now")
_PAIRED_COLUMNS = (*_PAIRED_COUNTS, "change_least", "change_median", "change_most")
_MAX_STATUS = 24  # characters of a status in a cell, which are not wrapped
MAX_NAME = 200  # characters of the name of a side
MAX_CAUSES = 6  # steps between the sides; the reports of the runs have all
_MAX_OUTCOMES = 3  # in one reason
_MAX_NAMED = 5  # labels in one note; the frames have all
_ALIKE = (Kind.UNCHANGED, Kind.UNCERTAIN)
# Decimals shown of a column of a row: gas units may be means, and octas are shown whole.
_DECIMALS = {"gas": 2} | {part.column: 0 if part.in_octas else 2 for part in Part}


def quoted(labels: Iterable[str]) -> str:
    """Return labels in quotation marks, each once."""
    return ", ".join(repr(label) for label in dict.fromkeys(labels))


# what a comparison shows ----------------------------------------------------------------------------------------------


class ShownRow(NamedTuple):
    """A row of the table: the label, source and node of its call; it may be a part of the row above, or uncertain.

    `part` is the part of the gas that the row shows, and `counts` what a line says of a committed call without a row.
    In a table without room for its longest cell, the row has the cells `narrow` and lines of text `below` them; empty
    if its cells are not long.
    `is_named` tells that another line names the call, if it has no row.
    """

    call: tuple[str, str, str]
    cells: tuple[str, ...]
    is_part: bool = False
    is_uncertain: bool = False
    part: Part | None = None
    counts: str = ""
    narrow: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a comparison in each format: its sides, counts, a table, and lines on what it leaves out.

    `sides` are the baseline and the candidate, `steps` those in between. `unchanged` are the rows of the calls whose
    gas is the same, which only a page has room for. `regressed` are the labels of the calls that regressed, and
    `unexplained` says why the cause of a call that changed is not known, by its name.
    """

    title: str
    sides: tuple[str, str]
    counts: str
    head: tuple[str, ...]
    rows: list[ShownRow]
    lines: list[str]
    notes: tuple[str, ...] = ()
    steps: tuple[StepGroup, ...] = ()
    unchanged: tuple[ShownRow, ...] = ()
    regressed: frozenset[str] = frozenset()
    unexplained: Mapping[str, str] = field(default_factory=dict)

    @property
    def table_notes(self) -> list[str]:
        """Of which transactions the means are, why parts do not add up, and what versions committed calls have."""
        means = "means: of the transactions that succeeded"
        rounded = "execution and io are rounded up, so all parts may exceed the total by up to 2 gas units"
        parts = f"parts: only those that changed; {rounded}"
        versions = "versions of committed calls: where the transactions of each side end"
        counted, split = any(row.counts for row in self.rows), any(row.part for row in self.rows)
        return [means] * counted + [parts] * split + [versions] * (counted and "versions" in self.head)

    @property
    def all_lines(self) -> list[str]:
        """The lines, those on the columns of the table, and those that name the calls that are unchanged."""
        calls = [row for row in self.unchanged if not row.is_part and not row.is_named]
        labels = ", ".join(dict.fromkeys(row.cells[0] for row in calls if not row.counts))
        counted = [f"{row.cells[0]}: {row.counts}" for row in calls if row.counts]
        unchanged = [f"{Kind.UNCHANGED}: {text}" for text in (labels, *counted) if text]
        return [*self.table_notes, *self.lines, *unchanged]


def shown_calls(comparison: Comparison, name: Renderer, gate: Gate | None = None) -> Shown:
    """Return what a comparison shows, without the reasons and the notes that `gate` states.

    `name` makes text from users and the chain safe for the format.
    """
    before, after = (name(side, MAX_NAME) for side in comparison.names)
    failed = {one.call for one in gate.regressions} if gate else set()
    failing = {one.call for one in gate.findings if one.verdict is Verdict.FAILS_AS_LISTED} if gate else set()
    calls = [
        # A committed call may fail although its mean moved within chance.
        {**row, "kind": Kind.CHANGED if row["kind"] in _ALIKE and call_of(row) in failed else row["kind"]}
        for row in plain_rows(comparison.calls)
        if call_of(row) not in failing  # the verdict counts them, and a note names them
    ]
    kinds = Counter(row["kind"] for row in calls)
    counts = ", ".join(f"{kinds[kind]:,} {kind}" for kind in Kind if kinds[kind])
    model = " (gas of the embedded node is a model)" if any(row["model"] for row in calls) else ""
    named = {one.call for one in (*gate.regressions, *gate.not_judged, *gate.waived)} if gate else set()
    both = zip(comparison.names, comparison.about, strict=True)
    one, two = (name(f"{side}{about}", MAX_NAME) for side, about in both)
    title, lines = f"{before} compared with {after}", [*_lines(calls, name, named, comparison.fees)]
    alone = {name(row["label"]): name(row["explanation"], MAX_NOTE) for row in calls if _is_unexplained(row)}
    counts = f"{counts or 'no calls'}{model}"
    several = len({row["node"] for row in calls}) > 1
    table: list[ShownRow] = []
    alike: list[ShownRow] = []
    for row in by_size(calls):
        cells = _rows(row, comparison.fees.get((row["fingerprint"], row["node"])), name, several=several)
        if row["kind"] in {Kind.CHANGED, Kind.UNCERTAIN, Kind.NOT_COMPARED} or call_of(row) in named:
            table += cells
        elif row["kind"] == Kind.UNCHANGED:
            alike += cells
    notes = comparison.notes if gate else comparison.warnings
    regressed = frozenset(label for label, *_ in failed)
    steps, unchanged = comparison.steps, tuple(alike)
    return Shown(title, (one, two), counts, _HEAD, table, lines, notes, steps, unchanged, regressed, alone)


def shown_pairs(comparison: PairedComparison, name: Renderer) -> Shown:
    """Return what a comparison of replayed transactions shows."""
    before, after = (name(side, MAX_NAME) for side in comparison.names)
    title = f"committed transactions of {before}, replayed as they were and under {after}"
    sides = f"committed transactions of {before}, replayed as they were", f"the same transactions under {after}"
    counts = ", ".join(f"{count:,} {pair}" for pair, count in comparison.counts.items() if count)
    calls = plain_rows(comparison.calls)
    cells = [(name(row["label"]), *(number(row[column]) for column in _PAIRED_COLUMNS)) for row in calls]
    rows = [ShownRow(call_of(row), mine) for row, mine in zip(calls, cells, strict=True)]
    return Shown(title, sides, counts or "no transactions", _PAIRED_HEAD, rows, [], comparison.warnings)


def _is_unexplained(row: Mapping[str, Any]) -> bool:
    return row["cause"] is None and row["explanation"] is not None


def left_out_text(left_out: Iterable[tuple[str, str, str]]) -> str:
    """Return the note on simulations that are excluded because they were made after a requested version."""
    labels = listed(dict.fromkeys(label for label, *_ in left_out), _MAX_NAMED)
    return f"not compared: {labels}: simulations run at the head, which is after the requested version"


def call_of(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what identifies a call of a comparison: its label, source and node."""
    return row["label"], row["source"], row["node"]


def comparison_text(
    comparison: Comparison | PairedComparison, gate: Gate | None = None, *, width: int = NO_TERMINAL
) -> str:
    """Return a comparison, and the verdict of its gate, for a terminal; if it is narrow, versions have no column."""
    here = comparison.shown(label_text, gate)
    lines = [here.title, *(gate_lines(gate, label_text) if gate else [])]
    lines += [f"note: {visible(note, MAX_NOTE)}" for note in here.notes]
    columns, narrow = _columns(here), False
    if sum(2 + max(map(len, column)) for column in columns) > width:
        here = replace(here, head=here.head[:-1])
        columns = _columns(here)
        if narrow := sum(2 + max(map(len, column)) for column in columns) > width:
            here = replace(here, rows=[row._replace(cells=row.narrow or row.cells) for row in here.rows])
            columns = _columns(here)
    fitted = fitted_columns(columns, width - 2, right=range(1, len(columns)), needed=len(columns))
    head, *cells = text_table(zip(*fitted.values(), strict=True), numbers_from=1, indent="  ")
    table = [head]
    for row, line in zip(here.rows, cells, strict=True):
        more = row.below if narrow else ()  # across the columns, as a cell would be cut
        table += [line, *(wrapped(f"{'  ' * (2 + row.is_part)}{text}", width) for text in more)]
    causes = cause_lines(here, label_text)
    causes = ["causes:", *(f"  {line}" for line in causes)] if causes else []
    above, below = (wrapped("\n".join(some), width) for some in ([*lines, "", here.counts], [*causes, *here.all_lines]))
    return "\n".join(filter(None, [above, *(table if here.rows else ()), below]))


def _columns(here: Shown) -> list[tuple[str, ...]]:
    """Return the columns of the text table of a comparison that are in its head."""
    rows = [(f"{'  ' * row.is_part}{row.cells[0]}", *row.cells[1:]) for row in here.rows]
    return [*zip(here.head, *(row[: len(here.head)] for row in rows), strict=True)]


def comparison_html(comparison: Comparison | PairedComparison) -> str:
    """Return a comparison for a notebook."""
    here = comparison.shown(label_text)
    rows = [("&emsp;" * row.is_part + html.escape(row.cells[0]), *map(html.escape, row.cells[1:])) for row in here.rows]
    table = html_table(rows, head=here.head, numbers_from=1) if rows else ""
    notes = [f"note: {visible(note, MAX_NOTE)}" for note in here.notes]
    causes = cause_lines(here, label_text)
    above, below = (
        "".join(f"<p>{html.escape(line)}</p>" for line in some)
        for some in ([*notes, here.counts], [*(["causes:"] if causes else []), *causes, *here.all_lines])
    )
    return literal(f"{above}{table}{below}")


def _rows(row: Mapping[str, Any], paid: FeeChange | None, name: Renderer, *, several: bool) -> Iterator[ShownRow]:
    """Yield the rows of a call in the table, with its node if there are several."""
    known = [number(count) for side in ("before", "after") if (count := row[f"count_{side}"]) is not None]
    mean = "" if row["fee_before"] is row["fee_after"] is None else f", mean of {' and '.join(known)}"
    exact = all(side.means for side in (paid.before, paid.after)) if paid is not None else not mean
    gas = row["gas_before"], row["gas_after"]  # before rounding, as in `change_percent`
    columns = {f"{name}_{side}": digits for name, digits in _DECIMALS.items() for side in ("before", "after")}
    row = {**row, **{name: round(row[name], digits) for name, digits in columns.items() if row[name] is not None}}
    source = "" if row["source"] == Source.VIEW else f"{name(row['source'].partition('@')[0])}{mean}"
    about = [text for text in (source, name(row["node"]) if several else "") if text]
    change = None if row["change"] is None else row["gas_after"] - row["gas_before"]
    outcomes = [_outcome_text(row, side, name, paid) for side in ("before", "after")]
    moved = "" if change is None or row["kind"] == Kind.UNCHANGED else _difference(change)
    # Of whole means, as a snapshot stores them, the percentage would be wrong; that of the fee is not.
    ends = gas if exact else (row["fee_before"], row["fee_after"])
    relative = relative_change(*ends) if change is not None and moved and ends[0] else ""
    relative = "not compared" if row["not_judged"] else relative
    if uncertain := row["kind"] == Kind.UNCERTAIN:
        relative = ", ".join(filter(None, (relative, row["kind"])))
    read = [row[f"version_{side}"] for side in ("before", "after") if row[f"version_{side}"] is not None]
    versions = version_range(read[0], read[-1]) if read else ""
    call = call_of(row)
    counts = "" if paid is None else _counts_text(paid.before, paid.after, bounds_text(100 * paid.low, 100 * paid.high))
    label, cells = name(row["label"]), (*outcomes, moved, relative, versions)
    whole = (" ".join([label, *(f"({text})" for text in about)]), *cells)
    named = row["kind"] == Kind.UNCHANGED and bool(row["value_changed"])
    yield ShownRow(
        call, whole, is_uncertain=uncertain, counts=counts, narrow=(label, *cells), below=tuple(about), is_named=named
    )
    if change is not None and row["fee_before"] is not None and row["fee_after"] is not None:
        fees = [round(row[f"fee_{side}"]) for side in ("before", "after")]
        rise = signed(fees[1] - fees[0])  # of what is shown
        price = f"fee, octas (price {row['fee_price']:,})"
        ratio = relative_change(row["fee_before"], row["fee_after"])
        bounds = bounds_text(row["fee_change_low"], row["fee_change_high"])
        cells = (price, *map(number, fees), rise)
        alone = bounds in {"", ratio}
        relative = ratio if alone else f"{ratio} ({bounds})"
        below = () if alone else (f"interval {bounds}",)
        yield ShownRow(call, (*cells, relative, ""), is_part=True, narrow=(*cells, ratio, ""), below=below)
    for part in Part:
        column = part.column
        before, after = row[f"{column}_before"], row[f"{column}_after"]
        if change is not None and before is not None and after is not None and before != after:
            unit = "octas" if part.in_octas else "gas"
            whole = (f"{part}, {unit}", number(before), number(after), _difference(after - before), "", "")
            yield ShownRow(call, whole, is_part=True, part=part)


def _difference(value: float) -> str:
    """Format the difference of two figures that have at most two decimals."""
    return signed(value, ",.2f").rstrip("0").rstrip(".")


def by_size(calls: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of a comparison: those that fail now, by the relative rise, uncertain, and not compared."""

    def order(row: Mapping[str, Any]) -> tuple[bool, bool, bool, float]:
        failed = row["error_after"] is not None or row["success_after"] is False
        rise = row["change_percent"]
        sure = row["kind"] != Kind.UNCERTAIN
        return row["kind"] != Kind.NOT_COMPARED, sure, failed, rise if rise is not None else float(row["change"] or 0)

    return sorted(calls, key=order, reverse=True)


def _outcome_text(row: Mapping[str, Any], side: str, name: Renderer, paid: FeeChange | None) -> str:
    error, gas = row[f"error_{side}"], row[f"gas_{side}"]
    if error is not None:
        return f"{'refused' if row[f'success_{side}'] is None else 'fails'} ({name(error)})"
    if row["kind"] == (Kind.ADDED if side == "before" else Kind.REMOVED):
        return ""
    if row["not_judged"]:
        if paid is None:
            return ""
        fees = paid.before if side == "before" else paid.after
        return f"{len(fees.octas):,} succeeded" if fees.count else "not called"
    text = "no gas reported" if gas is None else number(gas)
    if row[f"success_{side}"] is not False:
        return text
    status = row[f"vm_status_{side}"]  # what never ran has used no gas
    return f"refused ({name(status, _MAX_STATUS)})" if gas == 0 and status else f"{text} (fails)"


def cause_lines(here: Shown, name: Renderer, limit: int | None = MAX_CAUSES) -> list[str]:
    """Return a line for each of the main steps between the two sides, and one that counts the others.

    Steps of calls that regressed come first. The step that explains most of a call comes before larger ones that
    explain less.
    """
    calls = {(change.label, step.node) for step in here.steps for change in step.changes}
    main = {(one.version_after, one.cause) for call in calls for one in main_steps(steps_of(*call, here.steps), 1)}

    def order(one: StepGroup) -> tuple[bool, bool, float]:
        regressed = any(change.label in here.regressed for change in one.changes)
        return not regressed, (one.version_after, one.cause) not in main, -one.weight

    shown = sorted(here.steps, key=order)[:limit]
    lines = []
    for step in shown:
        labels = ", ".join(dict.fromkeys(name(change.label) for change in step.changes))
        lines.append(f"{labels}: {group_text(step, name)}")
    rest = len(here.steps) - len(shown)
    lines += [f"... and {plural(rest, 'more step')}"] if rest else []
    return [*lines, *(f"{call}: {why}" for call, why in here.unexplained.items())]


def _lines(
    calls: Sequence[Mapping[str, Any]],
    name: Renderer,
    said: set[tuple[str, str, str]],
    fees: Mapping[tuple[str, str], FeeChange],
) -> Iterator[str]:
    """Yield lines about calls without a row in the table, and calls whose comparison has little meaning.

    Of the calls in `said`, the verdict states why they are not compared.
    """

    def labels(some: Iterable[Mapping[str, Any]]) -> str:
        return ", ".join(dict.fromkeys(name(row["label"]) for row in some))

    rest = [row for row in calls if call_of(row) not in said]
    for kind in (Kind.ADDED, Kind.REMOVED):
        if alike := [row for row in rest if row["kind"] == kind]:
            yield f"{kind}: {labels(alike)}"
    for row in (row for row in rest if row["not_judged"]):
        yield f"not compared: {labels([row])}: {name(row['not_judged'], MAX_NOTE)}"
    if other := [row for row in calls if row["kind"] == Kind.UNCHANGED and row["value_changed"]]:
        yield f"same gas: {labels(other)} (the returned value{'s' if len(other) > 1 else ''} changed)"
    for row in rest:
        paid = fees.get((row["fingerprint"], row["node"]))
        if paid is not None and paid.fails_more:
            shares = shares_text(paid.before.failing, paid.after.failing)
            yield f"{labels([row])}: the share of transactions that fail rose from {shares}"


# the verdict ----------------------------------------------------------------------------------------------------------


def gate_lines(gate: Gate, name: Renderer) -> list[str]:
    """Return whether a gate passed, its rules, and the calls that regressed, could not be judged, or are waived.

    Parameters
    ----------
    gate : Gate
    name : Renderer

    Returns
    -------
    list of str
    """
    verdict = {
        "passed": "passed",
        "failed": f"FAILED: {plural(len(gate.regressions), 'regression')}",
        "could not judge": f"COULD NOT JUDGE {plural(len(gate.not_judged), 'call') if gate.not_judged else 'any call'}",
    }[gate.verdict]
    lines = [f"gate {verdict}; {plural(gate.judged, 'call')} judged{_rest_text(gate)}{allowed_text(gate)}"]
    lines.append(f"rules: {name(str(gate.rules), MAX_NOTE)}")
    groups = {"regression": gate.regressions, "not judged": gate.not_judged, "waived": gate.waived}
    for what, found in groups.items():
        for one in found:
            cause = f" ({Cause.of(one.cause).label})" if one.cause and one.verdict is not Verdict.NOT_JUDGED else ""
            lines.append(f"{what}: {name(one.label)}: {why_text(one, name)}{cause}")
    if not gate.judged and not gate.not_judged and not gate.regressions:
        why = "every call is waived" if gate.waived else "no call is on both sides"
        lines.append(f"{why}, but a gate needs at least one call to judge")
    return [*lines, *(f"note: {name(note, MAX_NOTE)}" for note in gate.notes)]


def within_text(gate: Gate) -> str:
    """Return what a gate found within one run, for a command that does not exit with its verdict."""
    silent = f"; {len(gate.not_judged):,} not judged" if gate.not_judged else ""
    found = f"{plural(len(gate.regressions), 'regression')} in {plural(gate.judged, 'judged call')}"
    judges = "`compare` and `snapshot --check` judge with an exit code"
    return f"From the run's beginning to its end: {found}{_rest_text(gate)}{silent}. {judges}."


def _rest_text(gate: Gate) -> str:
    """Return how many calls have no baseline or are waived; empty if there are none."""
    counts = Counter(one.verdict for one in gate.without_baseline)
    rest = ((Verdict.FAILS_AS_LISTED, "failing as before"), (Verdict.NO_BASELINE, "without a baseline"))
    said = [f"; {counts[verdict]:,} {what}" for verdict, what in rest if counts[verdict]]
    return "".join([*said, *([f"; {len(gate.waived):,} waived"] if gate.waived else [])])


def why_text(one: Finding, name: Renderer, *, rise: bool = True) -> str:
    """Return why a call did not pass, and its waiver; `rise` is false if a table shows that its gas rose."""
    reason = name(one.reason, MAX_NOTE) if rise or one.why is not Why.RISE else ""
    waiver = one.waiver
    until = "" if waiver is None else f'"{name(waiver.reason, MAX_NOTE)}" until {waiver.expires}'
    return ": ".join(filter(None, (until, reason)))


def allowed_text(gate: Gate) -> str:
    """Return that ``--allow-unjudged`` accepts the calls that could not be judged; empty if it does not."""
    if not gate.unjudged_allowed or gate.regressions or (gate.judged and not gate.not_judged):
        return ""
    what = f"{plural(len(gate.not_judged), 'call')} not judged" if gate.not_judged else "no call was judged"
    return f"; {what}, which --allow-unjudged accepts"


def bounds_text(low: float | None, high: float | None) -> str:
    """Return the bounds of a rise in percent, or the lower one alone; empty if they are not known."""
    if low is None or not math.isfinite(low):
        return ""
    high = high if high is not None and math.isfinite(high) else None
    factor = low >= 100  # noqa: PLR2004 - percent; as in `relative_change`, a factor from a doubling on
    known = [low] if high is None else [low, high]
    ends = [times(round(1 + end / 100, 1)) if factor else percent(round(end, 2), "+.3g") for end in known]
    if high is None:
        return f"at least {ends[0]}"
    if factor:
        return " to ".join(dict.fromkeys(ends))
    return ends[0] if ends[0] == ends[1] else f"{ends[0].removesuffix(PERCENT)} to {ends[1]}"


# reasons --------------------------------------------------------------------------------------------------------------


def _no_response_text(before: str | None, after: str | None) -> tuple[str, str]:
    codes = {"before": before, "after": after}
    silent = ", ".join(f"the {side} side: {code}" for side, code in codes.items() if code)
    return f"no response on {silent}", "run the study again"


def _no_gas_text(before: int | None, after: int | None) -> tuple[str, str]:
    silent = [side for side, gas in (("before", before), ("after", after)) if gas is None]
    return f"the node reported no gas on the {' and the '.join(silent)} side", "use another node"


def _too_old_text(max_age: timedelta) -> tuple[str, str]:
    days = max_age / timedelta(days=1)
    count = "1 day" if days == 1 else f"{days:g} days"
    why = f"it was read more than {count} ago and its versions end at the head"
    return why, "run the study into the folder again"


def _read_later_text(version: int) -> tuple[str, str]:
    return f"its first reading is at version {version:,}, after both sides", "compare it from there on"


def _rise_text(before: int, after: int, limit: Threshold) -> str:
    """Say by how much gas rose over a limit."""
    relative = f", {relative_change(before, after)}" if before else ""
    return f"from {before:,} to {plural(after, 'gas unit')} ({signed(after - before)}{relative}) is over {limit}"


def _fees_text(judgement: Judgement, fees: FeeChange, limit: Threshold | None) -> str:
    """Say what committed transactions show: a proved rise, or why nobody can tell; empty if they pass."""
    one, two = fees.before, fees.after
    if judgement.verdict is Verdict.PASSED:
        return ""
    if judgement.reason is Reason.FEW:
        return few_text(fees)
    failed = judgement.verdict is Verdict.FAILED
    if judgement.reason is Reason.FAILURES:
        counts = f"{one.failed:,} of {one.count:,}, then {two.failed:,} of {two.count:,}"
        rose = f"the share of transactions that fail rose from {shares_text(one.failing, two.failing)} ({counts})"
        return rose if failed else f"more transactions fail ({counts}), which may be chance; {two.more}"
    means = _means_text(one, two, bounds_text(100 * fees.low, 100 * fees.high))
    if judgement.reason is Reason.WAY:
        return f"{quantile_text(judgement.quantile, fees)}, a rise over {limit}, although {means}"
    if failed:
        return f"{means}, a rise over {limit}"
    more = f"about {judgement.more:,} more would do: {two.more}"
    more = more if judgement.more else f"more on the after side alone would not do: {one.more}"
    return f"{means}, which may be over the limit or not; {more}"


_QUANTILES = {"p10": "10th percentile of the fee", "p50": "median fee", "p95": "95th percentile of the fee"}


def quantile_text(quantile: str, fees: FeeChange) -> str:
    """Say by how much a quantile of the fee rose."""
    before, after = (side.quantile(quantile) for side in (fees.before, fees.after))
    rose = f"rose from {number(before)} to {plural(after, 'octa')} ({relative_change(before, after)})"
    return f"the {_QUANTILES[quantile]} {rose}"


def few_text(fees: FeeChange) -> str:
    """Say that too few transactions succeeded to compare them."""
    counts = f"{len(fees.before.octas):,} before and {len(fees.after.octas):,} after"
    few = fees.before if len(fees.before.octas) < MIN_SURE_CALLS else fees.after
    return f"fewer than {MIN_SURE_CALLS} transactions succeeded on a side ({counts}); {few.more}"


def _means_text(one: Fees, two: Fees, bounds: str) -> str:
    means = f"from {one.mean:,.0f} to {counted(f'{two.mean:,.0f}', 'octa')}"
    return f"the mean fee went {means} ({_counts_text(one, two, bounds)})"


def _counts_text(one: Fees, two: Fees, bounds: str) -> str:
    counts = f"{len(one.octas):,} and {plural(len(two.octas), 'transaction')}"
    return f"{bounds}; {counts}" if bounds else counts


def _not_called_text(first: int, last: int) -> str:
    if first > last:  # what the change replaces was written by the last transaction
        return f"nobody has called it since version {last:,}, where what the change replaces was last written"
    return f"nobody called it in versions {first:,} to {last:,}; search a wider range"


def _not_replayed_text(count: int, total: int, reasons: str) -> str:
    return f"{count:,} of {plural(total, 'transaction')} cannot be judged: {reasons}"


def _not_run_text(total: int) -> str:
    return f"none of its {plural(total, 'transaction')} runs the changed code; judge a function that does"


def _pairs_fail_text(judged: int, failing: Sequence[Mapping[str, Any]]) -> str:
    outcomes = Counter(pair["changed_outcome"] for pair in failing)
    how = listed((f"{count}: {outcome}" for outcome, count in outcomes.most_common()), _MAX_OUTCOMES)
    first = f"the first at version {failing[0]['ledger_version']:,}"
    return f"{len(failing):,} of {plural(judged, 'transaction')} succeeded and now fail ({how}; {first})"


def _pairs_fail_alike_text(judged: int) -> str:
    return f"{plural(judged, 'transaction')} fail with and without the change: no cost to compare; replay more of them"


def _pairs_rise_text(judged: int, over: int, worst: Mapping[str, Any], limit: Threshold) -> str:
    rise = "rises" if over == 1 else "rise"
    fees = f"from {number(worst['fee_before'])} to {plural(worst['fee_after'], 'octa')}"
    most = f"at version {worst['ledger_version']:,}, {fees}"
    return f"{over:,} of {plural(judged, 'transaction')} {rise} over {limit}: the most {most}"


class Why(Enum):
    """What a gate found of a call that did not pass; the value is the wording, or the function that writes it.

    A pair is the reason and what to do.
    """

    REMOVED = "missing from the after side"
    NOT_IN_STUDY = "no longer in the study", "write the snapshot again, or waive the call"
    ADDED = "not in the baseline", "take a new baseline, or waive the call"
    NOT_IN_SNAPSHOT = "new, so not in the snapshot", "write the snapshot again, or waive the call"
    READ_ONCE = "it was read once, so nothing can be compared", "read two versions or more"
    SUCCEEDED_AT_THE_END = "it succeeds only where the run ends, so nothing can be compared", "read later versions"
    NOT_OBSERVED = "the study names this call, but neither side observed it", "run the study again"
    READ_LATER = member(_read_later_text)
    NOT_COMPARED = "{text}"
    AT_THE_HEAD = "simulations run at the head only", "compare the ends of two runs, or only the source view@version"
    TOO_OLD = member(_too_old_text)
    NO_RESPONSE = member(_no_response_text)
    NO_GAS = member(_no_gas_text)
    FAILED_BEFORE = "failed before, so it has no baseline", "take a new baseline, or waive the call"
    FAILED_ON_BOTH = "failed before and fails now, so it has no baseline", "mend the call, or waive it"
    FAILS_AS_LISTED = "fails as the snapshot says", "mend the call, or waive it"
    FAILS = "succeeded before and now fails: {code}"
    GONE = "existed before and can no longer be called: {problem}"
    RISE = member(_rise_text)
    NO_FEES = "committed transactions are compared only with committed transactions", "give one source"
    FEES = member(_fees_text)
    NOT_CALLED = member(_not_called_text)
    NOT_REPLAYED = member(_not_replayed_text)
    NOT_RUN = member(_not_run_text)
    PAIRS_FAIL = member(_pairs_fail_text)
    PAIRS_FAIL_ALIKE = member(_pairs_fail_alike_text)
    PAIRS_RISE = member(_pairs_rise_text)

    def text(self, figures: Mapping[str, Any], *, advised: bool = True) -> str:
        """Return the reason in words, and what to do unless it is not `advised`."""
        said: Any = self.value(**figures) if callable(self.value) else self.value
        if isinstance(said, tuple):
            return "; ".join(said if advised else said[:1])
        return str(said) if callable(self.value) else str(said.format(**figures))
