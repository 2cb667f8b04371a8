"""The records that define a run: what a study asks for, and its versions on one node."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.client._http import OWN_LEDGER
from toolkit.client._node import Node, connect
from toolkit.client._reads import PAGE, Anchor
from toolkit.client._versions import FindSteps, evenly, next_round
from toolkit.errors import StudyError
from toolkit.gas._observations import ReadAt
from toolkit.gas._origin import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import ExitStack

    from toolkit.gas._calls import Call
    from toolkit.gas._study_file import VersionChoice
    from toolkit.gas.runs._rows import Outcome


Range = tuple[int, int]


def joined_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges of versions sorted, with those that overlap or touch joined."""
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def without(ranges: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """Return the versions in `ranges` that are not in `others`, as joined ranges."""
    taken = joined_ranges(others)
    found: list[Range] = []
    for first, last in joined_ranges(ranges):
        start = first
        for low, high in taken:
            if high < start or low > last:
                continue
            if low > start:
                found.append((start, low - 1))
            start = high + 1
        if start <= last:
            found.append((start, last))
    return found


def within(ranges: Iterable[Range], first: int, last: int) -> list[Range]:
    """Return the parts of ranges that are between two versions."""
    clipped = ((max(low, first), min(high, last)) for low, high in ranges)
    return [one for one in clipped if one[0] <= one[1]]


def page_numbers(first: int, last: int) -> range:
    """Return the numbers of the pages that contain a range; pages begin at multiples of 100."""
    return range(first // PAGE, last // PAGE + 1)


def pages_of(ranges: Iterable[Range]) -> list[tuple[int, int]]:
    """Return the pages (first version, number of versions) that contain every version of some ranges, each once."""
    pages: list[tuple[int, int]] = []
    reached = -1
    for first, last in sorted(ranges):
        pages += [(start, min(PAGE, last + 1 - start)) for start in range(max(first, reached + 1), last + 1, PAGE)]
        reached = max(reached, last)
    return pages


# Keys that do not change what is observed: the rules of the gate and the pace may change while a run is resumed.
# Labels do not either; an unlabelled call has the label that its run has, which depends on the toolkit's version.
_NOT_OBSERVED = frozenset({"thresholds", "waiver", "allow", "requests_per_second", "label"})


def study_digest(document: Mapping[str, Any]) -> str:
    """Return the digest of what a study observes, from its document: 32 hex digits."""

    def observed(table: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in table.items() if name not in _NOT_OBSERVED}

    calls = [observed(call) for call in document.get("call", ())]
    text = json.dumps(observed(document) | {"call": calls}, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class StudySpec:
    """What a study asks for. It is created once, so planning and reading do not depend on the study object.

    Attributes
    ----------
    title, digest : str
    document : mapping
        The content of the study file.
    calls : tuple of Call
    versions : VersionChoice
    node : Node or None
        The only node to read, if the study was given a `Node` object.
    connections : tuple of mapping
        The arguments of `connect` for each named node; they contain secrets.
    """

    title: str
    digest: str
    document: Mapping[str, Any]
    calls: tuple[Call, ...]
    versions: VersionChoice
    node: Node | None
    connections: tuple[Mapping[str, Any], ...]

    @property
    def search(self) -> FindSteps | None:
        """The step search, or None if views are read at the versions of a plan."""
        return self.versions.search

    @property
    def committed(self) -> list[Call]:
        """The calls that observe committed transactions."""
        return self.calls_read(ReadAt.TRANSACTIONS)

    @property
    def functions(self) -> dict[str, str]:
        """The function of each call, by fingerprint."""
        return {call.fingerprint: call.function for call in self.calls}

    def calls_read(self, at: ReadAt) -> list[Call]:
        """Return the calls that are read at versions, at the head, or in committed transactions."""
        return [call for call in self.calls if call.source.read_at is at]

    def labelled_as(self, document: Mapping[str, Any]) -> StudySpec:
        """Return a copy with the labels that an earlier run stored, because its rows contain them."""
        labels = [{"label": call["label"]} for call in document["call"]]
        calls = tuple(call.model_copy(update=label) for call, label in zip(self.calls, labels, strict=True))
        contents = [{**call, **label} for call, label in zip(self.document["call"], labels, strict=True)]
        return replace(self, calls=calls, document={**self.document, "call": contents})

    def connect(self, stack: ExitStack) -> list[Node]:
        """Return the nodes of the study; closing the stack closes the connections to named nodes."""
        if self.node is not None:
            return [self.node]
        if any(settings["target"] == OWN_LEDGER for settings in self.connections):
            raise StudyError(
                f"the study reads an {OWN_LEDGER}, which exists only in the process that created it; make the study "
                "again with node=ledger, a toolkit.embedded.Ledger"
            )
        return [stack.enter_context(connect(**settings)) for settings in self.connections]


class NodePlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A study resolved on one node: what is read there. The plan stays the same when the run is resumed.

    Attributes
    ----------
    node : str
    node_build : str or None
    model : bool
        True for the embedded node, whose gas is a model.
    chain_id, head, oldest : int
        Chain id, and newest and oldest ledger version of the node.
    oldest_claimed : int or None
        The oldest version that the node reports; a probe may have found a later one.
    first, last : int
        First and last version at which views are read.
    versions : tuple of int or None
        The versions at which views are read, if the study lists them. Otherwise, a range with a `step` or a step search
        determines them.
    step : int or None
    searches : tuple of (int, int)
        The ranges of an extended step search, one for each extension.
    committed : dict of str to (int, int)
        The ranges of committed calls that have their own, by fingerprint.
    committed_sample : dict of str to int
        The number of pages of each call of which a sample is read, by fingerprint.
    committed_span : (int, int) or None
        The first and the last version of all these ranges; None in runs of earlier toolkit versions.
    notes : tuple of str
        Which versions were clipped, and which cannot be read.
    anchor : Anchor or None
        None if the transaction could not be read.
    extended_from : int or None
        The head up to which the run was complete before it was extended.
    """

    node: str
    node_build: str | None
    model: bool
    chain_id: int
    head: int
    oldest: int
    first: int
    last: int
    versions: tuple[int, ...] | None
    step: int | None
    committed: dict[str, Range]
    notes: tuple[str, ...]
    anchor: Anchor | None
    oldest_claimed: int | None = None
    searches: tuple[Range, ...] = ()
    committed_sample: dict[str, int] = {}
    committed_span: Range | None = None
    extended_from: int | None = None

    @property
    def origin(self) -> Origin:
        """What all observations of the node share."""
        return Origin(self.node, self.node_build, self.model, self.chain_id)

    def planned(self) -> Sequence[int]:
        """Return the versions of a version plan, at which each view is read, sorted and without duplicates."""
        if self.versions is not None:
            return sorted(set(self.versions))
        return range(self.first, self.last + 1)[:: self.step]

    def next_versions(self, search: FindSteps, outcomes: Mapping[int, Outcome | None]) -> list[int]:
        """Return the versions that the step search of a call reads next; an empty list if the search is complete."""
        for first, last in self.searches or [(self.first, self.last)]:
            inside = {version: outcome for version, outcome in outcomes.items() if first <= version <= last}
            if found := next_round(inside, first=first, last=last, initial=search.initial, limit=search.max_requests):
                return found
        return []

    def range_of(self, call: Call) -> Range:
        """Return the first and last version at which a run reads a call, or of the transactions that it observes."""
        if call.source.read_at is ReadAt.HEAD:
            return self.head, self.head
        return self.committed.get(call.fingerprint, (self.first, self.last))

    def span_of(self, calls: Sequence[Call]) -> Range | None:
        """Return the first and last version of the ranges of committed calls; None if there are none."""
        ranges = [self.range_of(call) for call in calls]
        return (min(first for first, _ in ranges), max(last for _, last in ranges)) if ranges else None

    def is_sampled(self, call: Call) -> bool:
        """Return whether only a sample of the transactions of a committed call's range is read."""
        count = self.committed_sample.get(call.fingerprint)
        return count is not None and count < len(page_numbers(*self.range_of(call)))

    def ranges_of(self, call: Call) -> list[Range]:
        """Return the versions that a committed call always reads: its range, or the evenly spaced pages of a sample.

        The pages of samples begin at multiples of 100, so that all calls share them.
        """
        first, last = self.range_of(call)
        if not self.is_sampled(call):
            return [(first, last)]
        numbers = page_numbers(first, last)
        chosen = evenly(numbers[0], numbers[-1], self.committed_sample[call.fingerprint])
        return [(max(first, number * PAGE), min(last, number * PAGE + PAGE - 1)) for number in chosen]
