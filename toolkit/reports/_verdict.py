"""The verdict of a gate as a page and as Markdown for a pull request: the verdict first, then the offenders and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit._present.text import plural, relative_change, version_span
from toolkit.gas._sentences import change_clause, main_steps, steps_of, versions_text, weightiest
from toolkit.gas._verdict_sentences import MAX_CAUSES, ShownRow, Why, allowed_text, cause_lines, quantile_text, why_text
from toolkit.gas.committed._fees import Verdict
from toolkit.plots._style import page_colours
from toolkit.reports._templates import chain, code, environment, prose

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Finding, Gate
    from toolkit.gas._observations import Cause
    from toolkit.gas._paired import PairedComparison
    from toolkit.gas._sentences import Renderer
    from toolkit.gas._steps import StepGroup
    from toolkit.gas._verdict_sentences import Shown

    Judged = tuple[Finding | None, list[ShownRow]]

_MAX_CAUSES = 2  # of one call in the table


def headline(gate: Gate) -> str:
    """Return the verdict in capitals, with what is allowed."""
    allowed = f" ({len(gate.not_judged):,} not judged, allowed)" if gate.not_judged else " (allowed)"
    return f"{gate.verdict.upper()}{allowed if allowed_text(gate) else ''}"


def sections(shown: Shown, gate: Gate | None, name: Renderer) -> list[tuple[str, str, list[Judged]]]:
    """Return the calls of a comparison by verdict: a title, the name of its colour, and findings with their rows.

    The largest rise is first.
    """
    rows: dict[tuple[str, str, str], list[ShownRow]] = {}
    for row in shown.rows:
        rows.setdefault(row.call, []).append(row)
    groups = {
        ("Regressed", "failed"): gate.regressions if gate else (),
        ("Not judged", "could-not-judge"): gate.not_judged if gate else (),
        ("Waived", "none"): gate.waived if gate else (),
    }
    found: list[tuple[str, str, list[Judged]]] = []
    for (title, colour), findings in groups.items():
        found.append(
            (title, colour, [(one, rows.pop(one.call, [ShownRow(one.call, (name(one.label),))])) for one in findings])
        )
    changed = "Other changed calls" if any(judged for _, _, judged in found) else "Changed"
    for title, doubted in ((changed, False), ("Uncertain", True)) if gate else (("", None),):
        mine = [(None, some) for some in rows.values() if doubted in {None, some[0].is_uncertain}]
        found.append((title, "none", [*mine]))
    return [one for one in found if one[2]]


def reason_text(one: Finding | None, name: Renderer) -> str:
    """Return why a call did not pass, and its waiver; that its gas rose is in the table."""
    return "" if one is None else why_text(one, name, rise=False)


def causes_of(call: tuple[str, str, str], steps: Sequence[StepGroup]) -> tuple[list[tuple[Cause, str]], int]:
    """Return the causes and the versions of the main steps of a call, and the number of its other steps."""
    mine = steps_of(call[0], call[2], steps)
    main = main_steps(mine, _MAX_CAUSES)
    return [(one.cause, versions_text(one)) for one in main], len(mine) - len(main)


def _lead(gate: Gate, steps: Sequence[StepGroup], name: Renderer) -> str:
    """Return how many calls regressed, by how much, where and why, and how many could not be judged.

    If it is one call, it is named.
    """
    rises = []
    way_text = ""
    for one in gate.regressions:
        if one.why is Why.FEES and (way := one.figures["judgement"].quantile):  # the mean may have fallen
            way_text = f" ({quantile_text(way, one.figures['fees'])})"
            continue
        before, after = (one.gas_before, one.gas_after) if one.fee_before is None else (one.fee_before, one.fee_after)
        if one.limit is not None and before is not None and after is not None:
            rises.append((after / max(before, 1), relative_change(before, after)))
    ends = dict.fromkeys(text for _, text in (min(rises), max(rises))) if rises else ()
    by = f" ({' to '.join(ends)})" if ends else ""
    if len(gate.regressions) == 1:
        by = way_text or by
    total, allowed = plural(len(gate.findings), "call"), allowed_text(gate)
    passed = [one for one in gate.findings if one.verdict is Verdict.PASSED]
    told = []
    if gate.regressions:
        who = _who(gate.regressions, name, f" of {total}")
        told.append(f"{who} regressed{by}{_why(gate, steps)}")
    elif gate.judged or (gate.not_judged and not allowed):
        told.append(f"{len(passed):,} of {total} passed")
        told += [f"{fell:,} fell"] if (fell := sum(one.fell for one in passed)) else []
    else:
        told.append(f"{total}: nothing to judge")
    if gate.waived:
        told.append(f"{len(gate.waived):,} waived")
    if gate.not_judged and not allowed:
        new = all(one.why in {Why.ADDED, Why.NOT_IN_SNAPSHOT} for one in gate.not_judged)
        is_new = "is new" if len(gate.not_judged) == 1 else "are new"
        told.append(f"{_who(gate.not_judged, name)} {is_new if new else 'not judged'}")
    return f"{'; '.join(told)}{allowed}."


def _who(findings: Sequence[Finding], name: Renderer, of: str = "") -> str:
    """Return the label of a call, or the number of several, with `of`."""
    return name(findings[0].label) if len(findings) == 1 else f"{len(findings):,}{of}"


def _why(gate: Gate, steps: Sequence[StepGroup]) -> str:
    """Return where and why the gas of the calls that regressed changed; of several steps, the one that made most of it.

    If none did, return how many there are.
    """
    labels = {one.label for one in gate.regressions}
    apart = [replace(step, changes=tuple(one for one in step.changes if one.label in labels)) for step in steps]
    mine = [step for step in apart if step.changes]
    if not mine:
        return ""
    [main] = weightiest(mine, 1)
    if 2 * main.weight <= sum(step.weight for step in mine):
        span = min(step.version_after for step in mine), max(step.version_after for step in mine)
        return f" in {plural(len(mine), 'step')}, {version_span(*span)}"
    return f"{', mostly' if len(mine) > 1 else ''} {change_clause(main)}"


def verdict_content(
    comparison: Comparison | PairedComparison,
    gate: Gate | None,
    name: Renderer = chain,
    said: Renderer = chain,
    max_causes: int | None = None,
) -> dict[str, Any]:
    """Return what templates show of a verdict: its headline, the name of its colour, and the calls by verdict.

    `name` makes labels safe, and `said` sentences that quote them.
    """
    shown = comparison.shown(name, gate)
    study = getattr(comparison, "study", None)
    return {
        "title": name(study.title) if study else shown.title,
        "gate": gate,
        "shown": shown,
        "headline": headline(gate) if gate else "COMPARISON",
        "state": gate.verdict.replace(" ", "-") if gate else "none",
        "lead": _lead(gate, shown.steps, name) if gate else "",
        "sections": sections(shown, gate, name),
        "unchanged": [("Unchanged", "none", [(None, [row]) for row in shown.unchanged])] if shown.unchanged else [],
        "causes": cause_lines(shown, said, max_causes),
        "notes": [*(gate.notes if gate else ()), *shown.notes],
        "causes_of": causes_of,
        "reason_text": reason_text,
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
    return page.render(verdict_content(comparison, gate), page_colours=page_colours)


def verdict_markdown(comparison: Comparison | PairedComparison, gate: Gate | None = None) -> str:
    """Return the verdict as Markdown: verdict, sides and rule, a table of calls, the other calls, and each cause once.

    Parameters
    ----------
    comparison : Comparison or PairedComparison
    gate : Gate, optional

    Returns
    -------
    str
    """
    content = verdict_content(comparison, gate, code, prose, MAX_CAUSES)
    return environment().get_template("verdict.md.j2").render(content).strip() + "\n"
