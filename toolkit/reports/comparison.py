"""A comparison and its gate as text, Markdown (for pull requests) or JSON (for programs)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from toolkit.dtypes import to_arrow
from toolkit.gas.comparison_words import HEAD, comparison_text, counts_words, gate_words, others_words, table_rows
from toolkit.reports.to_markdown import code

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.gas.comparison import Comparison
    from toolkit.gas.gate import Gate, NotJudged, Regression

__all__ = ["FORMAT", "FORMATS", "comparison_json", "comparison_markdown"]

FORMAT = 1
"""Raised when a name or a meaning changes; new names alone do not raise it."""

_EXACT_EVERYWHERE = 2**53


def comparison_markdown(comparison: Comparison, gate: Gate | None = None) -> str:
    """Return a comparison as Markdown: the verdict, what changed as a table, then the rest.

    Parameters
    ----------
    comparison : Comparison
    gate : Gate, optional

    Returns
    -------
    str
        Text from users and the chain stands in code spans only, so it is nowhere markup.
    """
    parts = [f"# {code(comparison.names[0])} compared with {code(comparison.names[1])}"]
    said = gate_words(gate, code) if gate else []
    said += [f"note: {code(note)}" for note in comparison.warnings]
    parts += ["\n".join(f"- {line}" for line in said)] if said else []
    parts.append(counts_words(comparison))
    rows = table_rows(comparison, code)
    if rows:
        rule = ("---", *["---:"] * (len(HEAD) - 1))
        parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, rule, *rows)))
    parts += ["\n".join(f"- {line}" for line in others_words(comparison, code))]
    return "\n\n".join(part for part in parts if part) + "\n"


def comparison_json(comparison: Comparison, gate: Gate | None = None) -> str:
    """Return a comparison as JSON, every call in it.

    Parameters
    ----------
    comparison : Comparison
    gate : Gate, optional

    Returns
    -------
    str
        ASCII, indented; integers beyond 2^53 are text, since many readers would round them.
    """
    told: dict[str, Any] = {
        "format": FORMAT,
        "before": comparison.names[0],
        "after": comparison.names[1],
        "warnings": list(comparison.warnings),
        "counts": comparison.counts,
        "left_out": [label for label, _ in comparison.left_out],
        "gate": None if gate is None else _gate(gate),
        "calls": [_exact(row) for row in to_arrow(comparison.calls).to_pylist()],
    }
    return json.dumps(told, indent=1, ensure_ascii=True) + "\n"


def _plain_text(comparison: Comparison, gate: Gate | None = None) -> str:
    return comparison_text(comparison, gate) + "\n"


FORMATS: dict[str, Callable[[Comparison, Gate | None], str]] = {
    "text": _plain_text,
    "markdown": comparison_markdown,
    "json": comparison_json,
}
"""Ways to write a comparison, by name."""


def _gate(gate: Gate) -> dict[str, Any]:
    limits = {label: threshold.model_dump(exclude_none=True) for label, threshold in gate.rules.own.items()}
    general = gate.rules.threshold
    return {
        "passed": gate.passed,
        "verdict": gate.verdict,
        "judged": gate.judged,
        "threshold": None if general is None else general.model_dump(exclude_none=True),
        "thresholds_of_calls": limits,
        "regressions": [_regression(one) for one in gate.regressions],
        "not_judged": [_regression(one) for one in gate.not_judged],
        "waived": [_regression(one) for one in gate.waived],
        "notes": list(gate.notes),
    }


def _regression(one: Regression | NotJudged) -> dict[str, Any]:
    waiver = None if one.waiver is None else one.waiver.model_dump(mode="json", exclude_none=True)
    return _exact(asdict(one) | {"waiver": waiver})


def _exact(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(value) if isinstance(value, int) and abs(value) > _EXACT_EVERYWHERE else value
        for name, value in row.items()
    }
