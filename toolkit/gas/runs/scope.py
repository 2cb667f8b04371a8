"""Shards: one study split over several machines, so that their runs merge into the run of one. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from toolkit.client.versions import VersionPlan
from toolkit.errors import InputError, StudyError
from toolkit.gas.observing import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.gas.study import Study

__all__ = ["WHOLE", "Shard", "check_shardable"]

T = TypeVar("T")
_FORM = re.compile(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*")


class Shard(NamedTuple):
    """Which part of a study a run reads, counted from 1.

    Planned views and committed transactions are split into contiguous ranges of versions; step searches and
    simulations go whole to one shard each.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, given: Any) -> Shard:
        """Read a shard as ``(2, 5)`` or ``"2/5"``; None is the whole study.

        Raises
        ------
        InputError
            If it has neither form, or its number is not among 1 to the number of shards.
        """
        if given is None:
            return WHOLE
        if isinstance(given, str) and (match := _FORM.fullmatch(given)):
            given = (int(match[1]), int(match[2]))
        if not isinstance(given, list | tuple) or [type(one) for one in given] != [int, int]:
            raise InputError(f"a shard is written (2, 5) or 2/5, the second of five, got {given!r}")
        shard = cls(*given)
        if not 1 <= shard.number <= shard.of:
            raise InputError(f"shard {shard}: the number is from 1 to {max(shard.of, 1)}")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def slice(self, versions: Sequence[T]) -> Sequence[T]:
        """Return the shard's own versions of sorted ones; all shards together have each once."""
        return versions[len(versions) * (self.number - 1) // self.of : len(versions) * self.number // self.of]

    def has(self, place: int) -> bool:
        """Tell whether the call at a place of the study is read whole by this shard."""
        return place % self.of == self.number - 1


WHOLE = Shard(1, 1)


def check_shardable(study: Study, plans: Sequence[Mapping[str, Any]]) -> None:
    """Make sure that every machine resolves the study to the same versions.

    Parameters
    ----------
    study : Study
    plans : sequence of mapping
        The study as resolved on each of its nodes.

    Raises
    ------
    StudyError
        If the versions depend on the head, or a bound was clipped: shards would then read different ranges.
    """
    if all(call.source == Source.SIMULATE for call in study.calls):
        return
    ranges = [call.versions for call in study.calls if call.versions is not None]
    choices = [study.versions.find_steps or study.versions.plan, *ranges]
    wanted = next((choice for choice in choices if _counts_from_head(choice)), None)
    for plan in plans:
        held = f"{plan['node']} holds {plan['oldest']} to {plan['head']} now"
        if wanted is not None:
            raise StudyError(
                f"shards have to agree on the versions, but {wanted!r} counts from the head, which moves; write both "
                f"bounds as numbers, such as {plan['first']}:{plan['last']} ({held})"
            )
        if plan["notes"]:
            raise StudyError(
                f"shards have to agree on the versions, but {'; '.join(plan['notes'])}; write bounds that "
                f"every machine can read ({held})"
            )


def _counts_from_head(wanted: str | Sequence[int] | None) -> bool:
    if isinstance(wanted, str):
        parsed = VersionPlan.parse(wanted)
        return any(isinstance(bound, int) and bound < 0 for bound in (parsed.first, parsed.last))
    return wanted is not None and any(version < 0 for version in wanted)
