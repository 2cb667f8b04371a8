"""Reports and comparisons as Markdown, for pull requests and build logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit._present.tables import markdown_table
from toolkit.gas import _sentences as sentences
from toolkit.reports._templates import code, content, environment
from toolkit.reports._verdict import verdict_lines

if TYPE_CHECKING:
    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Gate
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
    blocks = verdict_lines(*data.verdict, code) if data.verdict else []
    made = environment().get_template("report.md.j2").render(content(data, code), verdict_blocks=blocks, **limits)
    return made.rstrip("\n") + "\n"


def comparison_markdown(comparison: Comparison, gate: Gate | None = None) -> str:
    """Return a comparison as Markdown: the verdict, the changed calls as a table, then the other calls.

    Parameters
    ----------
    comparison : Comparison
    gate : Gate, optional

    Returns
    -------
    str
    """
    title = f"# {code(comparison.names[0])} compared with {code(comparison.names[1])}"
    verdict = verdict_lines(comparison, gate, code) if gate else []
    notes = [*(gate.notes if gate else ()), *comparison.warnings]
    about = ([f"note: {code(note)}" for note in notes], sentences.comparison_lines(comparison.calls, code))
    above, below = ("\n".join(f"- {line}" for line in those) for those in about)
    rows = sentences.comparison_rows(comparison.calls, code)
    table = markdown_table(rows, head=sentences.COMPARISON_HEAD, numbers_from=1) if rows else ""
    parts = [*verdict[:1], title, *verdict[1:], above, sentences.counts_text(comparison.calls), table, below]
    return "\n\n".join(part for part in parts if part) + "\n"
