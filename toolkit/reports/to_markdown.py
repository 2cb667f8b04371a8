"""Report data as Markdown, for pull requests and build logs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit._present.text import visible
from toolkit.plots.style import MODEL_NOTE
from toolkit.reports import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolkit.reports.data import ReportData

__all__ = ["code", "render"]


def render(data: ReportData) -> str:
    """Return the report as Markdown (tables as on GitHub).

    Parameters
    ----------
    data : ReportData
        What the report says.

    Returns
    -------
    str
        Text from users and the chain stands in code spans only, so it is nowhere markup.
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


def code(text: object, limit: int = 300) -> str:
    """Return text from users or the chain as a code span, which no renderer reads as markup.

    A pipe becomes a broken bar: inside a table there is no escape for it that all renderers know.
    """
    shown = visible(text, limit).strip().replace("|", "¦") or " "
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers_from: int) -> str:
    rule = ["---" if place < numbers_from else "---:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _headline(data: ReportData) -> Iterator[str]:
    first, *others = words.headline(data, code)
    yield first
    if others:
        yield "\n".join(f"- {sentence}" for sentence in others)


def _notices(data: ReportData) -> Iterator[str]:
    if not data.complete:
        yield "**This run is not complete:** the report tells what was read so far."
    for warning in data.warnings:
        yield f"**{warning}**"
    if data.provenance.model:
        yield f"*{MODEL_NOTE[0].upper()}{MODEL_NOTE[1:]}.*"


def _changes(data: ReportData) -> Iterator[str]:
    if not data.events:
        return
    yield "## What changed"
    rows = [
        [
            words.where(event),
            code(change.label),
            words.gas(change.gas_before),
            words.gas(change.gas_after),
            words.share(change),
            words.CAUSES.get(event.cause, "unknown") + (f": {code(event.explanation)}" if event.explanation else ""),
        ]
        for event in data.weightiest(words.MOST_EVENTS)
        for change in event.changes
    ]
    yield _table(["at", "call", "gas before", "gas after", "change", "cause"], rows, numbers_from=6)
    if len(data.events) > words.MOST_EVENTS:
        yield f"The {words.MOST_EVENTS} of {len(data.events):,} changes that matter most."


def _calls(data: ReportData) -> Iterator[str]:
    yield "## Calls"
    rows = [
        [
            code(call.label) + (f" on {code(call.node)}" if call.node else ""),
            words.SOURCES.get(call.source, code(call.source)),
            *(words.gas(value) for value in (call.first_gas, call.last_gas, call.min_gas, call.max_gas)),
            f"{call.steps:,}" if call.judged else "not judged",
            f"{call.failures:,}",
            f"{call.readings:,}",
        ]
        for call in data.calls
    ]
    head = ["call", "source", "first gas", "last gas", "min", "max", "steps", "failures", "readings"]
    yield _table(head, rows, numbers_from=2)


def _splits(data: ReportData) -> Iterator[str]:
    if not data.splits:
        return
    yield "## What simulations spend gas on"
    rows = [
        [
            code(split.label),
            "success" if split.success else code(split.vm_status),
            *(words.gas(value) for value in (split.gas_used, split.execution_gas_units, split.io_gas_units)),
            f"{words.gas(split.storage_gas_units)} ({split.storage_fee_octas:,} octas)",
            f"{split.storage_fee_refund_octas:,} octas",
            f"{words.apt(split.net_octas)} APT",
        ]
        for split in data.splits
    ]
    head = ["call", "outcome", "gas units", "execution", "io", "storage", "storage refund", "net cost"]
    yield _table(head, rows, numbers_from=2)


def _failures(data: ReportData) -> Iterator[str]:
    if not data.failures:
        return
    yield "## Failures"
    rows = [
        [
            code(group.error_code),
            words.failed_how(group),
            ", ".join(map(code, group.labels)),
            f"{group.count:,}",
            words.span(group.first_version, group.last_version),
            code(group.example) if group.example else "",
        ]
        for group in data.failures
    ]
    yield _table(["error", "kind", "calls", "readings", "ledger versions", "message"], rows, numbers_from=9)


def _provenance(data: ReportData) -> Iterator[str]:
    facts = data.provenance
    yield "## Where this comes from"
    rows = [
        ["node", ", ".join(map(code, facts.nodes))],
        ["node build", ", ".join(map(code, facts.node_builds)) or "not said"],
        ["chain id", ", ".join(map(str, facts.chain_ids))],
        ["readings", f"{facts.readings:,} at {facts.versions:,} ledger versions"],
        ["head when read", words.gas(facts.head_version)],
        ["toolkit version", ", ".join(map(code, facts.toolkit_versions))],
        *(["gas schedule", code(words.schedule_at_ends(schedule))] for schedule in facts.schedules),
        *(
            [f"code of {code(one.module)}", code(" to ".join(dict.fromkeys(map(words.digest, one.digests))))]
            for one in facts.modules
        ),
        *([code(name), code(text)] for name, text in facts.manifest),
    ]
    yield _table(["what", "value"], rows, numbers_from=2)
