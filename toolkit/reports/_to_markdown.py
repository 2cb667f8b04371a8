"""Reports and comparisons as Markdown, for pull requests and build logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.reports._templates import code, content, environment, prose
from toolkit.reports._verdict import verdict_markdown

if TYPE_CHECKING:
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
