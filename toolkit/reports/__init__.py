"""Reports on a run, collected as data and then written as HTML, Markdown or JSON."""

from toolkit.reports._data import ReportData, build
from toolkit.reports._to_html import write

__all__ = ["ReportData", "build", "write"]


def __dir__() -> list[str]:
    return sorted(__all__)
