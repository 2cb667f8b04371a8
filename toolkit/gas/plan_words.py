"""A plan in plain words: a table per node, then the time and the bytes with what they rest on."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from toolkit._present.notebook import literal
from toolkit._present.text import short_addresses, visible
from toolkit.gas.comparison_words import html_table
from toolkit.gas.observations import Source

if TYPE_CHECKING:
    from toolkit.gas.plan import CallPlan, NodePlan, Plan

__all__ = ["plan_html", "plan_text"]

_HEAD = ("call", "what is read", "requests")
_LONGEST_LABEL = 50
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_BYTES_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def plan_text(plan: Plan) -> str:
    """Return a plan as lines for a terminal."""
    lines = [f"Plan of {visible(plan.title)} (nothing of it has been sent)"]
    for node in plan.nodes:
        rows = [_HEAD, *_rows(node)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
        table = [f"  {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows]
        lines += ["", _node_words(node), *table, *_remarks(node)]
    return "\n".join(lines)


def plan_html(plan: Plan) -> str:
    """Return a plan as HTML for a notebook; all text in it is escaped."""
    parts = [f"<p>Plan of <b>{html.escape(visible(plan.title))}</b> (nothing of it has been sent)</p>"]
    for node in plan.nodes:
        rows = [tuple(map(html.escape, row)) for row in _rows(node)]
        parts.append(f"<p>{html.escape(_node_words(node))}</p>{html_table(_HEAD, rows)}")
        parts += [f"<p>{html.escape(line)}</p>" for line in _remarks(node)]
    return literal("".join(parts))


def _rows(node: NodePlan) -> list[tuple[str, str, str]]:
    rows = [
        (visible(short_addresses(call.label), _LONGEST_LABEL), _what(call), _range(call.requests, call.requests_most))
        for call in node.calls
    ]
    return [*rows, ("in all", "", _range(*node.requests))]


def _what(call: CallPlan) -> str:
    if call.source == Source.SIMULATE:
        return "simulation at the head"
    if call.source == Source.COMMITTED:
        return f"transactions {call.first} to {call.last}"
    if call.requests < call.requests_most:
        return f"search from {call.first} to {call.last}"
    several = f"view at {call.requests:,} versions, {call.first} to {call.last}"
    return several if call.requests > 1 else f"view at version {call.first}"


def _node_words(node: NodePlan) -> str:
    build = f", build {visible(node.node_build, 60)}" if node.node_build else ""
    model = "; its gas is a model" if node.model else ""
    held = f"holds versions {node.oldest} to {node.head}"
    return f"{visible(node.node)}: chain {node.chain_id}, {held}{build}{model}"


def _remarks(node: NodePlan) -> list[str]:
    """Say what is pruned, then the time and the bytes, each with what it rests on."""
    least, most = node.seconds
    time = f"time: {_duration_range(least, most)} ({_bound(node)})"
    size = f"bytes: {_bytes_range(*node.bytes)} (assumed: 1 kB a view, 10 kB a simulation, 540 kB for 100 transactions)"
    search = any(call.requests < call.requests_most for call in node.calls)
    steps = [f"a search reads its grid, then about {max(1, node.rounds - 1)} more versions for each step"]
    beside = (
        "not counted, in requests and in time: a few reads of each called module, and of each step to find its cause"
    )
    return [*(f"note: {visible(note, 400)}" for note in node.notes), *(steps if search else []), time, size, beside]


def _bound(node: NodePlan) -> str:
    """Say what the time rests on: the pace, the latency, or what this machine takes in."""
    measured = f"{1_000 * node.latency_s:.1f} ms measured for one answer"
    if node.per_second == node.pace:
        return f"{node.pace:g} requests a second as asked for; {measured}"
    at_once = f"{node.in_flight} at once, {measured}"
    slowest = node.in_flight / node.latency_s <= node.per_second
    return (
        at_once if slowest else f"assumed: {node.per_second:,.0f} calls a second, what one machine takes in; {at_once}"
    )


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
    unit, size = next(((unit, size) for unit, size in _BYTES_UNITS if count >= size), ("kB", 1e3))
    return f"{count / size:.3g} {unit}"
