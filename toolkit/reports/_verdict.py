"""The verdict of a gate as a page and as Markdown for a pull request: the verdict first, then the offenders and why."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from toolkit._present.text import plural, relative_change
from toolkit.gas import _verdict_sentences as sentences
from toolkit.gas._observations import Cause
from toolkit.gas._sentences import MAX_NOTE
from toolkit.gas._verdict_sentences import Why
from toolkit.plots._style import page_colours
from toolkit.reports._templates import chain, environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Finding, Gate
    from toolkit.gas._paired import PairedComparison
    from toolkit.gas._sentences import Renderer

HEADLINES = {"passed": "PASS", "failed": "FAIL", "could not judge": "COULD NOT JUDGE"}


def groups(gate: Gate) -> list[tuple[str, str, list[Finding]]]:
    """Return the calls that keep a gate from passing, and those that a waiver excuses: a title, a colour, and calls.

    The largest rise is first.
    """
    found = [
        ("Regressed", "failed", gate.regressions),
        ("Could not be judged", "could-not-judge", gate.not_judged),
        ("Waived", "none", gate.waived),
    ]
    return [(title, colour, sorted(calls, key=_rise, reverse=True)) for title, colour, calls in found if calls]


def _costs(one: Finding) -> tuple[float | None, float | None]:
    """Return what a call costs before and after, in octas for committed transactions, else in gas units."""
    return (one.gas_before, one.gas_after) if one.fee_before is None else (one.fee_before, one.fee_after)


def _rise(one: Finding) -> float:
    """Return the factor of a rise; calls that fail now, or whose rise is not known, are first."""
    before, after = _costs(one)
    return math.inf if before is None or after is None else after / max(before, 1)


def _cards(calls: Sequence[Finding]) -> list[list[Finding]]:
    """Return the calls of a group in sets of one cause, or of one reason if there is no cause.

    That gas rose is not a reason to state: the costs before and after say it.
    """
    cards: dict[tuple[str, ...], list[Finding]] = {}
    for one in calls:
        stated = one.explanation or one.why is Why.RISE
        cards.setdefault((one.explanation or "", "" if stated else one.reason), []).append(one)
    return list(cards.values())


def _lead(gate: Gate) -> str:
    """Return how many calls regressed, and by how much, or could not be judged."""
    rose = sorted((one for one in gate.regressions if one.limit is not None and math.isfinite(_rise(one))), key=_rise)
    ends = [_costs(one) for one in (*rose[:1], *rose[-1:])]
    rises = [relative_change(round(before or 0), round(after or 0)) for before, after in ends]
    by = f" ({' to '.join(dict.fromkeys(rises))})" if rises else ""
    counts = {f"regressed{by}": gate.regressions, "could not be judged": gate.not_judged, "waived": gate.waived}
    told = ", ".join(f"{len(calls):,} {what}" for what, calls in counts.items() if calls)
    return f"{plural(len(gate.findings), 'call')}: {told or ('none regressed' if gate.judged else 'nothing to judge')}."


def verdict_content(gate: Gate | None) -> dict[str, Any]:
    """Return what templates show of a verdict: its headline, the name of its colour, and the calls that it names."""
    return {
        "gate": gate,
        "headline": HEADLINES[gate.verdict] if gate else "COMPARISON",
        "state": gate.verdict.replace(" ", "-") if gate else "none",
        "lead": _lead(gate) if gate else "",
        "groups": [(title, colour, _cards(calls)) for title, colour, calls in groups(gate)] if gate else [],
    }


def verdict_html(comparison: Comparison | PairedComparison, gate: Gate | None = None) -> str:
    """Return the verdict of a gate as an HTML page; without a gate, the page shows the comparison only.

    Parameters
    ----------
    comparison : Comparison or PairedComparison
    gate : Gate, optional

    Returns
    -------
    str
        One file without scripts and external content, readable from 390 px on, in light and dark mode.
    """
    page = environment().get_template("verdict.html.j2")
    notes = [*(gate.notes if gate else ()), *comparison.warnings]
    shown = comparison.shown(chain, gate)
    return page.render(shown=shown, notes=notes, page_colours=page_colours, **verdict_content(gate))


def verdict_lines(gate: Gate, name: Renderer) -> list[str]:
    """Return the verdict as Markdown blocks: the verdict, the rule, then each call that keeps the gate from passing."""
    blocks = [f"**{HEADLINES[gate.verdict]}**: {name(str(gate.rules), MAX_NOTE)}"]
    items = []
    for what, _, found in groups(gate):
        for one in found:
            cause = f"; cause: {Cause.of(one.cause).label}, {name(one.explanation, MAX_NOTE)}" if one.cause else ""
            waiver = sentences.waiver_text(one, name)
            items.append(f"- {what.lower()}: {name(one.label)}: {name(one.reason, MAX_NOTE)}{cause}{waiver}")
    return [*blocks, "\n".join(items)] if items else blocks
