"""A run as a report: frozen data, then HTML, Markdown or JSON, then a file."""

from toolkit.reports.data import ReportData, build
from toolkit.reports.write import write

__all__ = ["ReportData", "build", "write"]
