"""Which ledger versions a study reads: those of a plan, or those that a step search chooses.

A step search treats the outcome of a call as a step function of the version. It starts with an even grid and halves
every pair of neighbours whose outcomes differ, all pairs of a round at once, down to adjacent versions or the request
limit. A change that is reverted between two versions of the grid is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit.client._versions import FindSteps, VersionPlan, evenly
from toolkit.errors import InputError
from toolkit.gas._file_model import FileModel

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable
    from typing import Self

__all__ = ["VersionChoice", "next_round", "open_pairs"]

_MAX_UNANSWERED = 8
"""Number of reads without an answer between two versions after which the interval is not halved further."""


class VersionChoice(FileModel):
    """Which ledger versions the views are read at: either `plan` or `find_steps`."""

    plan: str | list[int] | None = None
    """A version plan, such as "0:-1/200" for 200 evenly spaced versions (-1 is the head), or a list of versions."""
    find_steps: str | None = None
    """A range such as "0:-1", in which only the versions that are needed to find every step in gas are read."""
    initial: int = 33
    """Number of versions of the search's first, even grid."""
    max_requests: int = 2000
    """Maximum number of requests of the search per call; steps that are not resolved then are reported as intervals."""

    @field_validator("plan", mode="before")
    @classmethod
    def _text_or_versions(cls, plan: Any) -> Any:
        whole = isinstance(plan, list) and all(hasattr(one, "__index__") and not isinstance(one, bool) for one in plan)
        if plan is None or isinstance(plan, str) or whole:
            return plan
        raise ValueError(f"expected a version plan such as '0:-1/200' or a list of whole numbers, got {shorten(plan)}")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.plan is None) == (self.find_steps is None):
            raise ValueError("give either plan or find_steps, not both")
        if isinstance(self.plan, str):
            VersionPlan.parse(self.plan)
        _ = self.search
        return self

    @property
    def search(self) -> FindSteps | None:
        """The step search, or None if the versions are those of a plan."""
        if self.find_steps is None:
            return None
        return FindSteps(self.find_steps, initial=self.initial, max_requests=self.max_requests)

    @classmethod
    def of(cls, versions: Any) -> VersionChoice:
        """Return a choice from any form of the Python interface.

        Parameters
        ----------
        versions : VersionChoice, FindSteps, mapping, str or iterable of int

        Raises
        ------
        InputError
            If it is none of these.
        """
        if isinstance(versions, cls):
            return versions
        if isinstance(versions, FindSteps):
            return cls(find_steps=versions.versions, initial=versions.initial, max_requests=versions.max_requests)
        if isinstance(versions, Mapping):
            return cls.model_validate(dict(versions))
        if isinstance(versions, str):
            return cls(plan=versions)
        if not isinstance(versions, Iterable):
            raise InputError(
                "expected a version plan such as '0:-1/200', FindSteps, or a list or range of whole numbers, "
                f"got {shorten(versions)}"
            )
        return cls(plan=list(versions))


def open_pairs(
    outcomes: Mapping[int, Hashable | None], grid: Collection[int] = ()
) -> list[tuple[tuple[int, int], int]]:
    """Return neighbouring answered versions with different outcomes, each with the version to read next between them.

    Parameters
    ----------
    outcomes : mapping of version to outcome
        An outcome of None is a read without an answer; its version is not read again.
    grid : collection of int, optional
        Versions of the first grid. Reads without an answer there say nothing about the versions around.

    Returns
    -------
    list of ((int, int), int)
        Widest first. A pair is left out if no version between its two is unread, or many reads there got no answer.
    """
    found: list[tuple[tuple[int, int], int]] = []
    known = sorted(outcomes)
    answered = [place for place, version in enumerate(known) if outcomes[version] is not None]
    for low, high in pairwise(answered):
        between = known[low : high + 1]
        if outcomes[between[0]] == outcomes[between[-1]]:
            continue
        if sum(version not in grid for version in between[1:-1]) >= _MAX_UNANSWERED:
            continue
        # Versions without an answer may be between the two: the widest gap is halved.
        left, right = max(pairwise(between), key=lambda gap: gap[1] - gap[0])
        if right - left > 1:
            found.append(((between[0], between[-1]), (left + right) // 2))
    return sorted(found, key=lambda pair: (pair[0][0] - pair[0][1], pair[0]))


def next_round(
    outcomes: Mapping[int, Hashable | None], *, first: int, last: int, initial: int, limit: int
) -> list[int]:
    """Return the versions to read next for one call; an empty list if the search is complete.

    Parameters
    ----------
    outcomes : mapping of version to outcome
        The outcomes so far, compared by equality; None is a read without an answer.
    first, last : int
        The range of the search, both ends included.
    initial : int
        Number of versions of the first grid.
    limit : int
        Maximum number of versions that are read.

    Returns
    -------
    list of int
        Sorted, without versions that are in `outcomes`.

    Notes
    -----
    For a function with s steps, none of them hidden within a cell of the grid, a search reads at most ``initial + s *
    ceil(log2(cell))`` versions, in ``1 + ceil(log2(cell))`` rounds, if every read is answered.

    Examples
    --------
    >>> outcomes = {0: 10, 8: 10, 16: 25}
    >>> next_round(outcomes, first=0, last=16, initial=3, limit=100)
    [12]
    """
    grid = dict.fromkeys(evenly(first, last, min(initial, limit)))
    missing = [version for version in grid if version not in outcomes]
    if missing:
        return missing
    room = max(0, limit - len(outcomes))
    # Widest first, so that all intervals are narrow if the limit ends the search.
    return sorted(middle for _, middle in open_pairs(outcomes, grid)[:room])
