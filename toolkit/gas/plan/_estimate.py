"""Estimates of what a run of a study sends to each node and how long it takes, as numbers and as text."""

from __future__ import annotations

import html
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from math import ceil, log2
from time import perf_counter
from typing import TYPE_CHECKING, Any

from toolkit._present.notebook import literal
from toolkit._present.tables import text_table
from toolkit._present.text import short_addresses, version_range, visible
from toolkit.client._versions import evenly
from toolkit.frames._columns import frame_of_rows
from toolkit.frames._schema import PLAN
from toolkit.gas._observations import ReadAt, Source
from toolkit.gas.plan._plan import NodePlan, calls_read, joined_ranges, page_numbers, pages_of, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.gas._calls import Call
    from toolkit.gas._study import Study

# Maximum number of pages around the changes of the timeline that are read for all sampled calls together.
MAX_PAGES_AROUND = 4_096
# Maximum number of reads that locate the steps of a view, besides its version plan. A step between two readings a
# million versions apart takes 20 of them. A call that drifts has a step between nearly all its readings, so without a
# limit it would be read at nearly every version.
MAX_FURTHER_READS = 400
# Maximum rate at which one machine turns answers into rows; a distant node is slower, due to its latency.
MAX_CALLS_PER_SECOND = 2_000.0


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """One call of a study on one node.

    Attributes
    ----------
    label : str
    source : Source
    first, last : int
        First and last ledger version that is read.
    requests, requests_most : int
        Minimum and maximum number of requests; they differ for a step search, and for a sample of committed
        transactions, since it is not known how many changes there are to read around.
    further_requests : int
        Maximum number of further requests that locate steps between two versions of a plan. The other numbers do not
        include them, since a call without steps needs none.
    """

    label: str
    source: Source
    first: int
    last: int
    requests: int
    requests_most: int
    further_requests: int = 0


@dataclass(frozen=True, slots=True)
class NodeEstimate:
    """A study on one node.

    Attributes
    ----------
    node : str
    node_build : str or None
    model : bool
        True for the embedded node, whose gas is a model.
    chain_id, head, oldest : int
        Chain id, and newest and oldest ledger version of the node.
    latency_s : float
        Measured time of one ``GET /v1`` in seconds.
    in_flight : int
        Maximum number of requests in flight.
    pace : float or None
        Maximum requests per second, as configured.
    rounds : int
        Maximum number of rounds of a step search, each of which needs the results of the one before; 0 without a
        search.
    pages, pages_most : int
        Minimum and maximum number of pages of committed transactions, which all committed calls share.
    calls : tuple of CallEstimate
    notes : tuple of str
        The versions that are pruned or do not exist yet.
    """

    node: str
    node_build: str | None
    model: bool
    chain_id: int
    head: int
    oldest: int
    latency_s: float
    in_flight: int
    pace: float | None
    rounds: int
    pages: int
    pages_most: int
    calls: tuple[CallEstimate, ...]
    notes: tuple[str, ...]

    @property
    def per_second(self) -> float:
        """Expected requests per second: limited by the pace, by the latency, or by this machine."""
        return min(self.pace or MAX_CALLS_PER_SECOND, self.in_flight / max(self.latency_s, 1e-6), MAX_CALLS_PER_SECOND)

    @property
    def requests(self) -> tuple[int, int]:
        """Minimum and maximum number of requests; calls of committed transactions share their pages."""
        own = [call for call in self.calls if call.source.read_at is not ReadAt.TRANSACTIONS]
        least, most = sum(call.requests for call in own), sum(call.requests_most for call in own)
        return least + self.pages, most + self.pages_most

    @property
    def further_requests(self) -> int:
        """Maximum number of requests, beyond `requests`, to locate steps between two versions of a plan."""
        return sum(call.further_requests for call in self.calls)

    @property
    def seconds(self) -> tuple[float, float]:
        """Minimum and maximum duration in seconds."""
        least, most = (count / self.per_second for count in self.requests)
        return least, most + self.rounds * self.latency_s


@dataclass(frozen=True, repr=False)
class Plan:
    """The requests that a study would send to each node.

    Attributes
    ----------
    title : str
    nodes : tuple of NodeEstimate

    Examples
    --------
    >>> from toolkit import Study, ViewFunction
    >>> supply = ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    >>> plan = Study(calls=[supply], versions="0:-1/50").plan()
    >>> plan.requests, plan.further_requests
    ((50, 50), 400)
    """

    title: str
    nodes: tuple[NodeEstimate, ...]

    @property
    def requests(self) -> tuple[int, int]:
        """Minimum and maximum total number of requests."""
        least, most = zip(*(node.requests for node in self.nodes), strict=True)
        return sum(least), sum(most)

    @property
    def further_requests(self) -> int:
        """Maximum number of requests, beyond `requests`, to locate steps between two versions of a plan."""
        return sum(node.further_requests for node in self.nodes)

    @property
    def seconds(self) -> tuple[float, float]:
        """Minimum and maximum duration in seconds; nodes are read one after another."""
        least, most = zip(*(node.seconds for node in self.nodes), strict=True)
        return sum(least), sum(most)

    @property
    def notes(self) -> tuple[str, ...]:
        """For each node, the versions that are pruned or do not exist yet."""
        return tuple(f"{node.node}: {note}" for node in self.nodes for note in node.notes)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per node and call: versions, minimum and maximum number of requests."""
        return frame_of_rows(PLAN, [{"node": node.node, **asdict(call)} for node in self.nodes for call in node.calls])

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON-serializable values."""

        def sums(of: Plan | NodeEstimate) -> dict[str, Any]:
            seconds = [round(one, 3) for one in of.seconds]
            return {"requests": [*of.requests], "further_requests": of.further_requests, "seconds": seconds}

        return {"title": self.title, **sums(self), "nodes": [asdict(node) | sums(node) for node in self.nodes]}

    def __repr__(self) -> str:
        lines = [f"Plan of {visible(self.title)} (nothing has been sent yet)"]
        for node in self.nodes:
            rows = [*map(_row, node.calls), ("total", "", _range(*node.requests))]
            build = f", build {visible(node.node_build, 60)}" if node.node_build else ""
            model = "; its gas is a model" if node.model else ""
            stored = f"holds versions {node.oldest:,} to {node.head:,}"
            lines += ["", f"{visible(node.node)}: chain {node.chain_id}, {stored}{build}{model}"]
            lines += text_table(rows, head=("call", "what is read", "requests"), numbers_from=2, indent="  ")
            lines += _notes(node)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return literal(f"<pre>{html.escape(repr(self))}</pre>")


def estimate(study: Study) -> Plan:
    """Return what a run of a study would send; see `Study.plan`."""
    with ExitStack() as stack:
        return Plan(study.title, tuple(_of_node(study, node) for node in study.connect(stack)))


def _of_node(study: Study, node: Node) -> NodeEstimate:
    latency_s = _latency_s(node)
    plan, search = resolve(study, node), study.versions.search
    cell = (plan.last - plan.first + 1) / max(1, search.initial - 1) if search else 1
    pages, pages_most = _page_counts(plan, calls_read(study, ReadAt.TRANSACTIONS))
    names = ("node", "node_build", "model", "chain_id", "head", "oldest", "notes")
    shared = {name: getattr(plan, name) for name in names}
    return NodeEstimate(
        **shared,
        latency_s=latency_s,
        in_flight=node.max_in_flight,
        pace=node.requests_per_second,
        rounds=1 + ceil(log2(max(1, cell))) if search else 0,
        pages=pages,
        pages_most=pages_most,
        calls=tuple(_of_call(study, call, plan) for call in study.calls),
    )


def _page_counts(plan: NodePlan, calls: Sequence[Call]) -> tuple[int, int]:
    """Return the minimum and maximum number of pages that some calls of committed transactions read together."""
    least = len(pages_of(joined_ranges(one for call in calls for one in plan.ranges_of(call))))
    if not any(plan.is_sampled(call) for call in calls):
        return least, least
    whole = joined_ranges(plan.range_of(call) for call in calls)
    return least, max(least, min(sum(len(page_numbers(*one)) for one in whole), least + MAX_PAGES_AROUND))


def _latency_s(node: Node) -> float:
    """Measure the time of one response. A node with a rate limit is asked once: later times would include the limit."""
    times = []
    for _ in range(1 if node.requests_per_second else 3):
        began = perf_counter()
        node.info()
        times.append(perf_counter() - began)
    return min(times)


def _of_call(study: Study, call: Call, plan: NodePlan) -> CallEstimate:
    first, last = plan.range_of(call)
    search, further = study.versions.search, 0
    if call.source.read_at is ReadAt.HEAD:
        least = most = 1
    elif call.source.read_at is ReadAt.TRANSACTIONS:
        least, most = _page_counts(plan, [call])
    elif search is not None:
        least = len(evenly(first, last, search.initial))
        most = min(search.max_requests, last + 1 - first)
    else:
        least = most = len(plan.planned())
        further = min(MAX_FURTHER_READS, last + 1 - first - least)
    return CallEstimate(call.name, call.source, first, last, least, most, further)


_UNITS_OF_TIME = (("days", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def _row(call: CallEstimate) -> tuple[str, str, str]:
    label = visible(short_addresses(call.label), 50)
    return label, _reading_text(call), _range(call.requests, call.requests_most)


def _reading_text(call: CallEstimate) -> str:
    if call.source.read_at is ReadAt.HEAD:
        return call.source.label
    if call.source.read_at is ReadAt.TRANSACTIONS:
        read = f"transactions {version_range(call.first, call.last)}"
        sample = f", a sample of {_range(call.requests, call.requests_most)} pages"
        return read + sample * (call.requests < call.requests_most)
    if call.requests < call.requests_most:
        return f"search from {call.first:,} to {call.last:,}"
    several = f"{call.source.label} at {call.requests:,} versions, {version_range(call.first, call.last)}"
    return several if call.requests > 1 else f"{call.source.label} at version {call.first:,}"


def _notes(node: NodeEstimate) -> Iterator[str]:
    """Yield notes on what is pruned, then the time and what it does not include."""
    yield from (f"note: {visible(note, 400)}" for note in node.notes)
    if node.rounds:
        yield f"a step search reads its grid, then about {max(1, node.rounds - 1)} more versions for each step"
    if node.pages < node.pages_most:
        yield "a sample has evenly spaced pages, and pages around each change to the schedule, code or configuration"
    if not node.model and any(call.source is Source.SIMULATE_AT_VERSION for call in node.calls):
        yield (
            "a simulation at a version counts as one request; it reads a few dozen state values, which are not included"
        )
    if node.further_requests:
        yield (
            f"locating steps between these versions takes at most {node.further_requests:,} more requests, which are "
            "not included"
        )
    least, most = map(_in_time, node.seconds)
    measured = f"{1_000 * node.latency_s:.1f} ms measured for one response"
    limit = "the configured pace" if node.per_second == node.pace else measured
    time = f"about {most}" if least == most else f"{least} to {most}"
    yield f"time: {time} ({node.per_second:,.0f} requests per second; {limit})"
    timeline = ", and about a hundred reads for the timeline of committed transactions" if node.pages else ""
    yield f"not included: a few reads of each called module, a few to find the cause of each step{timeline}"


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _in_time(seconds: float) -> str:
    """Return a duration in the largest unit that it reaches; less than a second counts as one second."""
    unit, size = next(((unit, size) for unit, size in _UNITS_OF_TIME if seconds >= size), _UNITS_OF_TIME[-1])
    return f"{max(1.0, seconds / size):.3g} {unit}"
