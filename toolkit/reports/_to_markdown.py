"""Reports and comparisons as Markdown, for pull requests and build logs.

Text from users and the chain is in code spans only, so that it is never markup.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit._present.tables import markdown_table
from toolkit._present.text import number, octas_as_apt, version_range, visible
from toolkit.gas._observations import Source
from toolkit.gas._sentences import (
    COMPARISON_HEAD,
    MAX_EXPLANATION,
    MAX_GROUPS,
    change_name,
    comparison_lines,
    comparison_rows,
    counts_text,
    gate_lines,
    not_steps_sentences,
    short_change,
    weightiest,
)
from toolkit.gas._series import MODEL_NOTICE
from toolkit.reports._data import failure_kind, headline, place_cell
from toolkit.reports._provenance import digest_text, schedule_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gas._comparison import Comparison
    from toolkit.gas._gate import Gate
    from toolkit.gas._observations import Cause
    from toolkit.reports._data import ReportData


def render(data: ReportData) -> str:
    """Return a report as Markdown, with the tables of GitHub.

    Parameters
    ----------
    data : ReportData

    Returns
    -------
    str
    """
    parts = [
        f"# {code(data.title)}",
        *_headline(data),
        *_notices(data),
        *_changes(data),
        *_calls(data),
        *_splits(data),
        *_failures(data),
        *_provenance(data),
    ]
    return "\n\n".join(parts) + "\n"


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
    parts = [f"# {code(comparison.names[0])} compared with {code(comparison.names[1])}"]
    lines = gate_lines(gate, code) if gate else []
    lines += [f"note: {code(note)}" for note in comparison.warnings]
    parts += ["\n".join(f"- {line}" for line in lines)] if lines else []
    parts.append(counts_text(comparison))
    rows = comparison_rows(comparison, code)
    if rows:
        parts.append(markdown_table(rows, head=COMPARISON_HEAD, numbers_from=1))
    parts += ["\n".join(f"- {line}" for line in comparison_lines(comparison, code))]
    return "\n\n".join(part for part in parts if part) + "\n"


def code(text: object, limit: int = 300, /) -> str:
    """Return text from users or the chain as a code span, which no renderer reads as markup.

    A pipe becomes a broken bar, since no escape of it in a table is understood by all renderers.
    """
    shown = visible(text, limit).strip().replace("|", "¦") or " "
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _headline(data: ReportData) -> Iterator[str]:
    first, *others = headline(data, code)
    yield first
    if others:
        yield "\n".join(f"- {sentence}" for sentence in others)


def _notices(data: ReportData) -> Iterator[str]:
    if not data.complete:
        yield "**This run is not complete:** the report has what was read so far."
    for warning in data.warnings:
        yield f"**{warning}**"
    if data.provenance.model:
        yield f"*Model gas. {MODEL_NOTICE}*"


def _cause(cause: Cause, explanation: str) -> str:
    return cause.label + (f": {code(explanation, MAX_EXPLANATION)}" if explanation else "")


def _changes(data: ReportData) -> Iterator[str]:
    notes = not_steps_sentences(data.committed, code)
    if not data.events and not notes:
        return
    yield "## What changed"
    if data.events:
        yield from _change_table(data)
    if notes:
        yield "Not steps, though they move the gas of committed transactions:"
        yield "\n".join(f"- {note}" for note in notes)


def _change_table(data: ReportData) -> Iterator[str]:
    rows = [
        [
            place_cell(group),
            change_name(change, code) + (f" on {code(group.node)}" if group.node else ""),
            number(change.gas_before),
            number(change.gas_after),
            short_change(change, code),
            _cause(group.cause, group.explanation),
        ]
        for group in weightiest(data.events, MAX_GROUPS)
        for change in group.changes
    ]
    yield markdown_table(rows, head=["ledger version", "call", "gas before", "gas after", "change", "cause"])
    if len(data.events) > MAX_GROUPS:
        yield f"The {MAX_GROUPS} largest of {len(data.events):,} changes."


def _calls(data: ReportData) -> Iterator[str]:
    yield "## Calls"
    rows = [
        [
            code(call.label) + (f" on {code(call.node)}" if call.node else ""),
            next((source.label for source in Source if source == call.source), code(call.source)),
            *(number(value) for value in (call.first_gas, call.last_gas, call.min_gas, call.max_gas)),
            f"{call.steps:,}" if call.judged else "not judged",
            f"{call.failures:,}",
            f"{call.readings:,}",
        ]
        for call in data.calls
    ]
    head = ["call", "source", "first gas", "last gas", "min", "max", "steps", "failures", "readings"]
    yield markdown_table(rows, head=head, numbers_from=2)


def _splits(data: ReportData) -> Iterator[str]:
    if not data.splits:
        return
    yield "## What simulations spend gas on"
    rows = [
        [
            code(split.label),
            "success" if split.success else code(split.vm_status),
            *(number(value) for value in (split.gas_used, split.execution_gas_units, split.io_gas_units)),
            f"{number(split.storage_gas_units)} ({split.storage_fee_octas:,} octas)",
            f"{split.storage_fee_refund_octas:,} octas",
            f"{octas_as_apt(split.net_octas)} APT",
        ]
        for split in data.splits
    ]
    head = ["call", "outcome", "gas units", "execution", "io", "storage", "storage refund", "net cost"]
    yield markdown_table(rows, head=head, numbers_from=2)


def _failures(data: ReportData) -> Iterator[str]:
    if not data.failures:
        return
    yield "## Failures"
    rows = [
        [
            code(group.error_code),
            failure_kind(group),
            ", ".join(map(code, group.labels)),
            f"{group.count:,}",
            version_range(group.first_version, group.last_version),
            code(group.example) if group.example else "",
        ]
        for group in data.failures
    ]
    yield markdown_table(rows, head=["error", "kind", "calls", "readings", "ledger versions", "message"])


def _provenance(data: ReportData) -> Iterator[str]:
    facts = data.provenance
    yield "## Where this comes from"
    rows = [
        ["node", ", ".join(map(code, facts.nodes))],
        ["node build", ", ".join(map(code, facts.node_builds)) or "not reported"],
        ["chain id", ", ".join(map(str, facts.chain_ids))],
        ["readings", f"{facts.readings:,} at {facts.versions:,} ledger versions"],
        ["head when read", f"{facts.head_version or number(None)}"],
        ["toolkit version", ", ".join(map(code, facts.toolkit_versions))],
        *(["gas schedule", code(schedule_text(schedule))] for schedule in facts.schedules),
        *(
            [f"code of {code(one.module)}", code(" to ".join(dict.fromkeys(map(digest_text, one.digests))))]
            for one in facts.modules
        ),
        *([code(name), code(text)] for name, text in facts.manifest),
    ]
    yield markdown_table(rows, head=["what", "value"])
