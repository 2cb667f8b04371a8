"""Report data as JSON, for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from toolkit._present.text import visible
from toolkit.reports import words

if TYPE_CHECKING:
    from toolkit.reports.data import ReportData

__all__ = ["FORMAT", "render"]

FORMAT = 1
"""Raised when a name or a meaning changes; new names alone do not raise it."""


def render(data: ReportData) -> str:
    """Return the report as JSON: the names of `ReportData`, ``format`` and ``headline``.

    Parameters
    ----------
    data : ReportData
        What the report says; its frames are left out, the run's Parquet files hold them.

    Returns
    -------
    str
        ASCII, indented; text as it came, escaped as JSON does.
    """
    told: dict[str, Any] = {"format": FORMAT, "headline": words.headline(data, visible)}
    for entry in fields(data):
        if entry.name not in {"observations", "steps"}:
            told[entry.name] = _plain(getattr(data, entry.name))
    return json.dumps(told, indent=2, ensure_ascii=True) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, (str, int)) else asdict(value)
