"""The verdict of a gate as a page and as Markdown for a pull request: the verdict first, then the offenders and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gas import _verdict_sentences as sentences
from toolkit.gas._observations import Cause
from toolkit.gas._sentences import MAX_NOTE
from toolkit.reports._templates import chain, environment

if TYPE_CHECKING:
    from typing import Any

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Finding, Gate
    from toolkit.gas._paired import PairedComparison
    from toolkit.gas._sentences import Renderer

HEADLINES = {"passed": "PASS", "failed": "FAIL", "could not judge": "COULD NOT JUDGE"}


def groups(gate: Gate) -> list[tuple[str, str, tuple[Finding, ...]]]:
    """Return the calls that keep a gate from passing, and those that a waiver excuses: a title, a colour, and calls."""
    found = [
        ("Regressed", "failed", gate.regressions),
        ("Could not be judged", "could-not-judge", gate.not_judged),
        ("Waived", "none", gate.waived),
    ]
    return [group for group in found if group[-1]]


def verdict_content(gate: Gate | None) -> dict[str, Any]:
    """Return what templates show of a verdict: its headline, the name of its colour, and the calls that it names."""
    return {
        "gate": gate,
        "headline": HEADLINES[gate.verdict] if gate else "COMPARISON",
        "state": gate.verdict.replace(" ", "-") if gate else "none",
        "groups": groups(gate) if gate else [],
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
    return page.render(shown=comparison.shown(chain, gate), notes=notes, **verdict_content(gate))


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
