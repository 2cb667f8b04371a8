"""Which ledger versions a study reads: those of a plan, or those that a step search chooses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit.client._versions import FindSteps, VersionPlan
from toolkit.errors import InputError
from toolkit.gas._file_model import FileModel

if TYPE_CHECKING:
    from typing import Self

__all__ = ["VersionChoice"]


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
