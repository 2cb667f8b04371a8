"""The verdict of a gate as a page and as Markdown for a pull request: the verdict first, then the offenders and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.frames._columns import plain_rows
from toolkit.gas import _sentences as sentences
from toolkit.gas._observations import Cause
from toolkit.reports._templates import chain, environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Gate
    from toolkit.gas._rules import NotJudged

HEADLINES = {"passed": "PASS", "failed": "FAIL", "could not judge": "COULD NOT JUDGE"}


@dataclass(frozen=True, slots=True)
class Offender:
    """A call that keeps a gate from passing, or that a waiver excuses.

    Attributes
    ----------
    label, source, node, reason : str
    unit : str
        What `before` and `after` count.
    before, after : str
        The fee in octas, or gas in gas units; empty if unknown.
    bounds : str
        Bounds of the rise in percent; empty if it is exact or unknown.
    cause, explanation : str
        Why the call changed, if a run explains it.
    waiver : str
        Why the call is excused; empty if it is not.
    """

    label: str
    source: str
    node: str
    reason: str
    unit: str = ""
    before: str = ""
    after: str = ""
    bounds: str = ""
    cause: str = ""
    explanation: str = ""
    waiver: str = ""


def offenders(comparison: Comparison, found: Sequence[NotJudged]) -> list[Offender]:
    """Return the calls that a gate names, with what they cost on both sides."""
    rows = {(row["label"], row["source"], row["node"]): row for row in plain_rows(comparison.calls)}
    return [_offender(one, rows.get((one.label, one.source, one.node), {})) for one in found]


def _offender(one: NotJudged, row: Mapping[str, Any]) -> Offender:
    fees = row.get("fee_before") is not None or row.get("fee_after") is not None
    sides = [row.get(f"{'fee' if fees else 'gas'}_{side}") for side in ("before", "after")]
    before, after = ("" if side is None else f"{side:,.0f}" for side in sides)
    return Offender(
        one.label,
        one.source,
        one.node,
        one.reason,
        unit="octas per transaction" if fees else "gas units" if any(sides) else "",
        before=before,
        after=after,
        bounds=sentences.fee_bounds(row) if fees else "",
        cause=Cause.of(row["cause"]).label if row.get("cause") else "",
        explanation=row.get("explanation") or "",
        waiver="" if one.waiver is None else f"until {one.waiver.expires}: {one.waiver.reason}",
    )


def shown(comparison: Comparison, gate: Gate) -> dict[str, Any]:
    """Return what templates show of a verdict: its headline, the name of its colour, and the calls that it names."""
    groups = [
        ("Over the limit", offenders(comparison, gate.regressions)),
        ("Could not be judged", offenders(comparison, gate.not_judged)),
        ("Waived", offenders(comparison, gate.waived)),
    ]
    return {
        "headline": HEADLINES[gate.verdict],
        "state": gate.verdict.replace(" ", "-"),
        "groups": [(name, those) for name, those in groups if those],
    }


def verdict_html(comparison: Comparison, gate: Gate | None = None) -> str:
    """Return the verdict of a gate as an HTML page; without a gate, the page shows the comparison only.

    Parameters
    ----------
    comparison : Comparison
    gate : Gate, optional

    Returns
    -------
    str
        One file without scripts and external content, readable from 390 px on, in light and dark mode.
    """
    cells = sentences.comparison_rows(comparison.calls, str)
    return (
        environment()
        .get_template("verdict.html.j2")
        .render(
            comparison=comparison,
            gate=gate,
            **({"headline": "COMPARISON", "state": "none", "groups": []} if gate is None else shown(comparison, gate)),
            counts=sentences.counts_text(comparison.calls),
            head=sentences.COMPARISON_HEAD,
            rows=cells,
            lines=sentences.comparison_lines(comparison.calls, chain),
        )
    )


def verdict_lines(comparison: Comparison, gate: Gate, name: sentences.Renderer) -> list[str]:
    """Return the verdict as Markdown blocks: the verdict, the rule, then each call that keeps the gate from passing."""
    blocks = [f"**{HEADLINES[gate.verdict]}**: {name(str(gate.rules), sentences.MAX_NOTE)}"]
    named = [("over the limit", gate.regressions), ("could not be judged", gate.not_judged), ("waived", gate.waived)]
    items = []
    for what, found in named:
        for one in offenders(comparison, found):
            values = f", from {one.before} to {one.after} {one.unit}" if one.before and one.after else ""
            bounds = f" ({one.bounds})" if one.bounds else ""
            cause = f"; cause: {one.cause}, {name(one.explanation, sentences.MAX_NOTE)}" if one.cause else ""
            waiver = f"; waived {name(one.waiver, sentences.MAX_NOTE)}" if one.waiver else ""
            reason = name(one.reason, sentences.MAX_NOTE)
            items.append(f"- {what}: {name(one.label)}{values}{bounds}: {reason}{cause}{waiver}")
    return [*blocks, "\n".join(items)] if items else blocks
