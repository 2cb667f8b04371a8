"""What a run reads: the whole study or one shard of it, and which part of that has been read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from toolkit.client._versions import VersionPlan, next_round
from toolkit.errors import InputError, StudyError
from toolkit.gas._observations import Source
from toolkit.gas._plan import is_sampled, planned_versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.gas._calls import Call
    from toolkit.gas._study import Study
    from toolkit.gas.runs._rows import Outcome

__all__ = [
    "WHOLE",
    "Shard",
    "check_shardable",
    "next_versions",
    "planned_of",
    "shard_calls",
    "shard_range",
]

T = TypeVar("T")
_FORM = re.compile(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*")


class Shard(NamedTuple):
    """The part of a study that a run reads.

    Views of a version plan and committed transactions are split into contiguous ranges of versions. Each step search
    and each simulation belongs to one shard.

    Attributes
    ----------
    number : int
        From 1 to `of`.
    of : int
        Number of shards.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, given: Any) -> Shard:
        """Return a shard from ``(2, 5)`` or ``"2/5"``; None is the whole study.

        Raises
        ------
        InputError
            If it has neither form, or its number is not between 1 and the number of shards.
        """
        if given is None:
            return WHOLE
        if isinstance(given, str) and (match := _FORM.fullmatch(given)):
            given = (int(match[1]), int(match[2]))
        if not isinstance(given, list | tuple) or [type(one) for one in given] != [int, int]:
            raise InputError(f"shard: expected a form such as (2, 5) or 2/5, the second of five, got {given!r}")
        shard = cls(*given)
        if not 1 <= shard.number <= shard.of:
            raise InputError(f"shard {shard}: the first number must be from 1 to {max(shard.of, 1)}")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def slice(self, versions: Sequence[T]) -> Sequence[T]:
        """Return the part of sorted versions that the shard reads; each version belongs to exactly one shard."""
        return versions[len(versions) * (self.number - 1) // self.of : len(versions) * self.number // self.of]

    def has(self, place: int) -> bool:
        """Return whether the call at a position of the study belongs to this shard."""
        return place % self.of == self.number - 1


WHOLE = Shard(1, 1)


def check_shardable(study: Study, plans: Sequence[Mapping[str, Any]]) -> None:
    """Check that every machine resolves the study to the same versions.

    Parameters
    ----------
    study : Study
    plans : sequence of mapping
        The study as resolved on each of its nodes.

    Raises
    ------
    StudyError
        If the versions depend on the head, or a bound was clipped: shards would then read different ranges. If a sample
        of committed transactions is read, since what is read around a change depends on what was found there.
    """
    if all(call.source == Source.SIMULATE for call in study.calls):
        return
    for call in study.calls:
        if any(is_sampled(plan, call) for plan in plans):
            raise StudyError(
                f"call {call.name!r} reads a sample of its transactions, {call.versions!r}, which cannot be divided "
                "into shards: a sample is small, so run the study whole, or give the call a range without /N"
            )
    ranges = [call.versions for call in study.calls if call.versions is not None]
    choices = [study.versions.find_steps or study.versions.plan, *ranges]
    wanted = next((choice for choice in choices if _counts_from_head(choice)), None)
    for plan in plans:
        held = f"{plan['node']} has versions {plan['oldest']} to {plan['head']} now"
        if wanted is not None:
            raise StudyError(
                f"all shards must read the same versions, but {wanted!r} counts from the head, which moves; write "
                f"both bounds as numbers, such as {plan['first']}:{plan['last']} ({held})"
            )
        if plan["notes"]:
            raise StudyError(
                f"all shards must read the same versions, but {'; '.join(plan['notes'])}; write bounds that every "
                f"machine can read ({held})"
            )


def _counts_from_head(wanted: str | Sequence[int] | None) -> bool:
    if isinstance(wanted, str):
        parsed = VersionPlan.parse(wanted)
        return any(isinstance(bound, int) and bound < 0 for bound in (parsed.first, parsed.last))
    return wanted is not None and any(version < 0 for version in wanted)


def shard_calls(study: Study, shard: Shard, source: str) -> list[Call]:
    """Return the calls of a source that belong to a shard as a whole."""
    return [call for place, call in enumerate(study.calls) if call.source == source and shard.has(place)]


def planned_of(plan: Mapping[str, Any], shard: Shard) -> Sequence[int]:
    """Return the versions of a resolved plan that a shard reads for each view, sorted and without duplicates."""
    versions = planned_versions(plan)
    return shard.slice(versions if isinstance(versions, range) and versions.step > 0 else sorted(set(versions)))


def shard_range(plan: Mapping[str, Any], shard: Shard) -> Sequence[int]:
    """Return the range of versions in which a shard reads committed transactions."""
    first, last = plan.get("committed_span") or (plan["first"], plan["last"])
    return shard.slice(range(first, last + 1))


def next_versions(study: Study, plan: Mapping[str, Any], outcomes: Mapping[int, Outcome | None]) -> list[int]:
    """Return the versions that the step search of a call reads next; an empty list if the search is complete."""
    search = study.versions.search
    assert search is not None  # noqa: S101 - only called for studies with a step search  # nosec B101
    return next_round(
        outcomes, first=plan["first"], last=plan["last"], initial=search.initial, limit=search.max_requests
    )
