"""Reports and comparisons as Markdown, for pull requests and build logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gas._sentences import MAX_NOTE
from toolkit.reports._templates import code, content, environment, prose
from toolkit.reports._verdict import verdict_markdown

if TYPE_CHECKING:
    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Gate
    from toolkit.gas._paired import PairedComparison
    from toolkit.reports._data import ReportData


_MAX_ROWS, _MAX_NOTES, _MAX_CELL = 10, 4, 160  # of a comment that reviewers read whole


def render_markdown(data: ReportData) -> str:
    """Return a report as Markdown for a pull request: the largest change, a table of changes, and notes.

    Parameters
    ----------
    data : ReportData

    Returns
    -------
    str
    """
    limits = {"max_rows": _MAX_ROWS, "max_notes": _MAX_NOTES, "max_cell": _MAX_CELL}
    verdict = verdict_markdown(*data.verdict) if data.verdict else ""
    made = environment().get_template("report.md.j2").render(content(data, code, prose), verdict=verdict, **limits)
    return made.rstrip("\n") + "\n"


def comparison_markdown(comparison: Comparison | PairedComparison, gate: Gate | None = None) -> str:
    """Return a comparison as Markdown: the verdict, the changed calls as a table, then the other calls.

    Parameters
    ----------
    comparison : Comparison or PairedComparison
    gate : Gate, optional

    Returns
    -------
    str
    """
    shown = comparison.shown(code, gate)
    notes = [f"note: {prose(note, MAX_NOTE)}" for note in (*(gate.notes if gate else ()), *shown.notes)]
    return verdict_markdown(comparison, gate, [*shown.all_lines, *notes]) + "\n"
