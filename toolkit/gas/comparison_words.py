"""A comparison and its gate in plain words: the verdict first, then what changed, for a terminal or a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from toolkit._present.notebook import literal
from toolkit._present.text import short_addresses, visible
from toolkit.frames.columns import plain_columns
from toolkit.gas.observations import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from toolkit.gas.comparison import Comparison
    from toolkit.gas.gate import Gate, NotJudged, Regression

__all__ = [
    "HEAD",
    "comparison_html",
    "comparison_text",
    "counts_words",
    "gate_words",
    "label_text",
    "others_words",
    "table_rows",
]

HEAD = ("call", "before", "after", "change", "percent", "versions")
"""Heads of the table of what changed."""

_LONGEST_LABEL = 60
_LONGEST_REASON = 300
_SPLIT = {
    "execution_gas_units": "execution",
    "io_gas_units": "io",
    "storage_fee_octas": "storage (octas)",
    "storage_fee_refund_octas": "refund (octas)",
}
MODEL = "gas of the embedded node is a model"


def comparison_text(comparison: Comparison, gate: Gate | None = None) -> str:
    """Return a comparison, and what it was judged to be, as lines for a terminal."""
    lines = [f"{visible(comparison.names[0])} compared with {visible(comparison.names[1])}"]
    lines += gate_words(gate, label_text) if gate else []
    lines += [f"note: {visible(note, 400)}" for note in comparison.warnings]
    lines += ["", counts_words(comparison)]
    rows = table_rows(comparison, label_text)
    if rows:
        cells = [HEAD, *rows]
        widths = [max(len(row[place]) for row in cells) for place in range(len(HEAD))]
        lines += ["  " + "  ".join(_padded(row, widths)).rstrip() for row in cells]
    return "\n".join([*lines, *others_words(comparison, label_text)])


def comparison_html(comparison: Comparison) -> str:
    """Return a comparison as HTML for a notebook; all text in it is escaped."""

    def name(label: str, limit: int = _LONGEST_LABEL) -> str:
        return html.escape(label_text(label, limit))

    said = [*(f"note: {visible(note, 400)}" for note in comparison.warnings), counts_words(comparison)]
    parts = [f"<p>{html.escape(line)}</p>" for line in said]
    rows = table_rows(comparison, name)
    if rows:
        parts.append(html_table(HEAD, rows))
    return literal("".join([*parts, *(f"<p>{line}</p>" for line in others_words(comparison, name))]))


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are numbers; cells are escaped already."""

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ("left", *["right"] * (len(cells) - 1))
        told = (f'<{tag} style="text-align:{side}">{cell}</{tag}>' for side, cell in zip(sides, cells, strict=True))
        return f"<tr>{''.join(told)}</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def label_text(text: str, limit: int = _LONGEST_LABEL) -> str:
    """Return a label, or other text from users and the chain, on one line and harmless for a terminal."""
    return visible(short_addresses(text), limit)


def gate_words(gate: Gate, name: Callable[..., str]) -> list[str]:
    """Say whether a gate passed, by what rules, and what regressed, could not be judged or is waived.

    Parameters
    ----------
    gate : Gate
    name : callable
        Renders text from users and the chain harmlessly for where it is shown; takes a text and the longest size.

    Returns
    -------
    list of str
    """
    count, silent = len(gate.regressions), len(gate.not_judged)
    verdict = {
        "passed": "passed",
        "failed": f"FAILED: {count} regression{'' if count == 1 else 's'}",
        "could not judge": f"COULD NOT JUDGE {silent} call{'' if silent == 1 else 's'}",
    }[gate.verdict]
    lines = [f"gate {verdict}; {gate.judged} call{'' if gate.judged == 1 else 's'} judged"]
    lines.append(f"rules: {name(str(gate.rules), _LONGEST_REASON)}")
    lines += [f"regression: {_regression_words(one, name)}" for one in gate.regressions]
    lines += [f"could not judge: {_regression_words(one, name)}" for one in gate.not_judged]
    if gate.not_judged:
        lines.append(
            "to judge without them: name the source to compare (--source view@version), or waive the call or its "
            'source in the study ([[waiver]] with `call`, or `source = "committed"`)'
        )
    for one in gate.waived:
        until = f"waived until {one.waiver.expires}: {name(one.waiver.reason, _LONGEST_REASON)}" if one.waiver else ""
        lines.append(f"waived: {_regression_words(one, name)} ({until})")
    return [*lines, *(f"note: {name(note, _LONGEST_REASON)}" for note in gate.notes)]


def counts_words(comparison: Comparison) -> str:
    """Say how many calls there are of each kind."""
    told = ", ".join(f"{count} {kind}" for kind, count in comparison.counts.items() if count)
    model = f" ({MODEL})" if len(comparison.calls) and comparison.calls["model"].any() else ""
    return f"{told or 'no calls'}{model}"


def table_rows(comparison: Comparison, name: Callable[..., str]) -> list[tuple[str, ...]]:
    """Return the rows of the table of changed and unreachable calls, the largest rise first; splits stand below."""
    calls = comparison.calls[comparison.calls["kind"].isin(["changed", "unreachable"])]
    columns = plain_columns(calls, list(calls.columns))
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    rows.sort(key=_weight, reverse=True)
    several = len({row["node"] for row in rows}) > 1
    cells: list[tuple[str, ...]] = []
    for row in rows:
        kind = "" if row["source"] == Source.VIEW else f" ({name(row['source'].removesuffix('@now'))})"
        where = f" ({name(row['node'])})" if several else ""
        cells.append((f"{name(row['label'])}{kind}{where}", *_numbers(row, name)))
        cells += [
            (f"of which {what}", f"{before:,}", f"{after:,}", f"{after - before:+,}", "", "")
            for column, what in _SPLIT.items()
            if (before := row[f"{column}_before"]) is not None
            and (after := row[f"{column}_after"]) is not None
            and before != after
        ]
    return cells


def others_words(comparison: Comparison, name: Callable[..., str]) -> list[str]:
    """Name the calls that did not change, or are on one side only, and those whose comparison says little."""
    lines = []
    for kind in ("added", "removed", "unchanged"):
        rows = comparison.calls[comparison.calls["kind"] == kind]
        if len(rows):
            lines.append(f"{kind}: {', '.join(map(name, dict.fromkeys(rows['label'].tolist())))}")
    same = comparison.unchanged
    other = same[same["value_changed"].fillna(value=False).astype(bool)]
    if len(other):
        lines.append(f"same gas, another result: {', '.join(map(name, dict.fromkeys(other['label'].tolist())))}")
    calls = comparison.calls
    committed = calls[calls["source"].str.contains(Source.COMMITTED, regex=False)]
    if len(committed):
        labels = ", ".join(map(name, dict.fromkeys(committed["label"].tolist())))
        lines.append(f"the last committed transaction on either side, whose arguments may differ: {labels}")
    return lines


def _regression_words(one: Regression | NotJudged, name: Callable[..., str]) -> str:
    return f"{name(one.label)}: {name(one.reason, _LONGEST_REASON)}"


def _weight(row: Mapping[str, Any]) -> tuple[bool, float]:
    """Order rows: calls that fail now or got no answer first, then by the relative rise."""
    failed = row["error_after"] is not None or row["success_after"] is False
    rise = row["change_percent"]
    return failed, rise if rise is not None else float(row["change"] or 0)


def _numbers(row: Mapping[str, Any], name: Callable[..., str]) -> tuple[str, ...]:
    change, percent = row["change"], row["change_percent"]
    return (
        _outcome(row, "before", name),
        _outcome(row, "after", name),
        "" if change is None else f"{change:+,}",
        "" if percent is None else f"{percent:+.1f} %",
        " to ".join(f"{row[f'version_{side}']}" for side in ("before", "after")),
    )


def _outcome(row: Mapping[str, Any], side: str, name: Callable[..., str]) -> str:
    error, gas = row[f"error_{side}"], row[f"gas_{side}"]
    if error is not None:
        return name(error)
    told = "no gas told" if gas is None else f"{gas:,}"
    return f"{told} (aborts)" if row[f"success_{side}"] is False else told


def _padded(row: tuple[str, ...], widths: list[int]) -> list[str]:
    first, *others = (
        f"{cell:<{width}}" if place == 0 else f"{cell:>{width}}"
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return [first, *others]
