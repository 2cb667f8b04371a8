"""Reports and comparisons as JSON, for programs. Integers beyond 2^53 are text, since many readers would round them."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from toolkit._present.data import json_value
from toolkit._present.text import visible
from toolkit.dtypes import to_arrow
from toolkit.gas._sentences import change_text, group_text, not_steps_sentences
from toolkit.reports._data import headline

if TYPE_CHECKING:
    from toolkit.gas._comparison import Comparison
    from toolkit.gas._gate import Gate, NotJudged, Regression
    from toolkit.gas._steps import StepGroup
    from toolkit.reports._data import ReportData

__all__ = ["FORMAT", "comparison_json", "render"]

FORMAT = 1
"""Version of the format; it increases when a name or a meaning changes, not when a name is added."""


def render(data: ReportData) -> str:
    """Return a report as JSON: the names of `ReportData`, ``format``, ``headline`` and ``not_steps``.

    Parameters
    ----------
    data : ReportData
        Its frames are left out; the Parquet files of the run have them.

    Returns
    -------
    str
        ASCII, indented. Text from users and the chain is not changed.
    """
    content: dict[str, Any] = {"format": FORMAT, "headline": headline(data, visible)}
    for entry in fields(data):
        if entry.name not in {"observations", "steps", "events"}:
            content[entry.name] = _plain(getattr(data, entry.name))
    content["events"] = [_group(group) for group in data.events]
    content["not_steps"] = not_steps_sentences(data.committed, visible)
    return json.dumps(json_value(content), indent=2, ensure_ascii=True) + "\n"


def comparison_json(comparison: Comparison, gate: Gate | None = None) -> str:
    """Return a comparison as JSON, with every call.

    Parameters
    ----------
    comparison : Comparison
    gate : Gate, optional

    Returns
    -------
    str
        ASCII, indented.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "before": comparison.names[0],
        "after": comparison.names[1],
        "warnings": list(comparison.warnings),
        "counts": comparison.counts,
        "left_out": [label for label, _ in comparison.left_out],
        "gate": None if gate is None else _gate(gate),
        "calls": json_value(to_arrow(comparison.calls).to_pylist()),
    }
    return json.dumps(content, indent=1, ensure_ascii=True) + "\n"


def _group(group: StepGroup) -> dict[str, Any]:
    """Return a group of steps with the texts of `Run.explain`."""
    changes = [asdict(change) | {"text": change_text(change, visible)} for change in group.changes]
    return asdict(group) | {"text": group_text(group, visible), "changes": changes}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, (str, int)) else asdict(value)


def _gate(gate: Gate) -> dict[str, Any]:
    limits = {label: threshold.model_dump(exclude_none=True) for label, threshold in gate.rules.own.items()}
    general = gate.rules.threshold
    return {
        "passed": gate.passed,
        "verdict": gate.verdict,
        "judged": gate.judged,
        "threshold": None if general is None else general.model_dump(exclude_none=True),
        "thresholds_of_calls": limits,
        "allow": gate.rules.allowed.model_dump(mode="json"),
        "regressions": [_regression(one) for one in gate.regressions],
        "not_judged": [_regression(one) for one in gate.not_judged],
        "allowed": [_regression(one) for one in gate.allowed],
        "waived": [_regression(one) for one in gate.waived],
        "notes": list(gate.notes),
    }


def _regression(one: Regression | NotJudged) -> Any:
    waiver = None if one.waiver is None else one.waiver.model_dump(mode="json", exclude_none=True)
    return json_value(asdict(one) | {"waiver": waiver})
