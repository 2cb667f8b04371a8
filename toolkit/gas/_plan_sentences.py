"""Sentences about plans: what a study would send, how long that takes, and what is not counted."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from toolkit._present.notebook import literal
from toolkit._present.tables import html_table, text_table
from toolkit._present.text import version_range, visible
from toolkit.gas._observations import Source
from toolkit.gas._sentences import label_text

if TYPE_CHECKING:
    from toolkit.gas._plan import CallPlan, NodePlan, Plan

_MAX_NOTE = 400
_PLAN_HEAD = ("call", "what is read", "requests")
_MAX_PLAN_LABEL = 50
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_BYTE_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def plan_text(plan: Plan) -> str:
    """Return a plan as lines for a terminal."""
    lines = [f"Plan of {visible(plan.title)} (nothing of it has been sent)"]
    for node in plan.nodes:
        table = text_table(_plan_rows(node), head=_PLAN_HEAD, numbers_from=2, indent="  ")
        lines += ["", _plan_node_text(node), *table, *_plan_notes(node)]
    return "\n".join(lines)


def plan_html(plan: Plan) -> str:
    """Return a plan as HTML for a notebook; all text in it is escaped."""
    parts = [f"<p>Plan of <b>{html.escape(visible(plan.title))}</b> (nothing of it has been sent)</p>"]
    for node in plan.nodes:
        rows = [tuple(map(html.escape, row)) for row in _plan_rows(node)]
        table = html_table(rows, head=_PLAN_HEAD, numbers_from=2)
        parts.append(f"<p>{html.escape(_plan_node_text(node))}</p>{table}")
        parts += [f"<p>{html.escape(line)}</p>" for line in _plan_notes(node)]
    return literal("".join(parts))


def _plan_rows(node: NodePlan) -> list[tuple[str, str, str]]:
    rows = [
        (label_text(call.label, _MAX_PLAN_LABEL), _plan_call_text(call), _range(call.requests, call.requests_most))
        for call in node.calls
    ]
    return [*rows, ("in all", "", _range(*node.requests))]


def _plan_call_text(call: CallPlan) -> str:
    if call.source == Source.SIMULATE:
        return "simulation at the head"
    if call.source == Source.COMMITTED:
        sample = f", a sample of {_range(call.requests, call.requests_most)} pages"
        return f"transactions {call.first} to {call.last}{sample if call.requests < call.requests_most else ''}"
    if call.requests < call.requests_most:
        return f"search from {call.first} to {call.last}"
    several = f"view at {call.requests:,} versions, {version_range(call.first, call.last)}"
    return several if call.requests > 1 else f"view at version {call.first}"


def _plan_node_text(node: NodePlan) -> str:
    build = f", build {visible(node.node_build, 60)}" if node.node_build else ""
    model = "; its gas is a model" if node.model else ""
    stored = f"holds versions {node.oldest} to {node.head}"
    return f"{visible(node.node)}: chain {node.chain_id}, {stored}{build}{model}"


def _plan_notes(node: NodePlan) -> list[str]:
    """Return what is pruned, then the time and the bytes, each with its assumptions."""
    least, most = node.seconds
    time = f"time: {_duration_range(least, most)} ({_pace_text(node)})"
    size = f"bytes: {_bytes_range(*node.bytes)} (assumed: 1 kB a view, 10 kB a simulation, 540 kB for 100 transactions)"
    steps = []
    if node.rounds:
        steps.append(f"a search reads its grid, then about {max(1, node.rounds - 1)} more versions for each step")
    if node.pages < node.pages_most:
        steps.append(
            "a sample reads its evenly spaced pages, then pages around each change of schedule, code and configuration"
        )
    if node.further_requests:
        steps.append(
            f"to locate the transactions of steps between these versions: at most {node.further_requests:,} further "
            "requests, not counted here"
        )
    timeline = ", and about a hundred reads for the timeline of committed transactions" if node.pages else ""
    left_out = (
        "not counted, in requests and in time: a few reads of each called module, and of each step to find its "
        f"cause{timeline}"
    )
    notes = [f"note: {visible(note, _MAX_NOTE)}" for note in node.notes]
    return [*notes, *steps, time, size, left_out]


def _pace_text(node: NodePlan) -> str:
    """Return what limits the pace: the rate asked for, the latency, or the speed of this machine."""
    measured = f"{1_000 * node.latency_s:.1f} ms measured for one answer"
    if node.per_second == node.pace:
        return f"{node.pace:g} requests a second as asked for; {measured}"
    at_once = f"{node.in_flight} at once, {measured}"
    if node.in_flight / node.latency_s <= node.per_second:
        return at_once
    return f"assumed: {node.per_second:,.0f} calls a second, the most one machine can process; {at_once}"


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _duration_range(least: float, most: float) -> str:
    one, two = _duration(least), _duration(most)
    if one == two:
        return one if most < 1 else f"about {one}"
    return f"{one} to {two}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than 1 s"
    for unit, size, limit in (("s", 1, _MINUTE * 2), ("min", _MINUTE, _HOUR * 2), ("h", _HOUR, _DAY * 2)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / _DAY:.0f} days"


def _bytes_range(least: int, most: int) -> str:
    one, two = _bytes(least), _bytes(most)
    return f"about {one}" if one == two else f"{one} to {two}"


def _bytes(count: int) -> str:
    unit, size = next(((unit, size) for unit, size in _BYTE_UNITS if count >= size), ("kB", 1e3))
    return f"{count / size:.3g} {unit}"
