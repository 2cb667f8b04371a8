"""The manifest of a run, which is stored in ``run.json``, and the age of a run.

A change to a manifest creates a new record from the old one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.errors import InputError
from toolkit.gas._findings import Timeline  # noqa: TC001  # msgspec reads annotations
from toolkit.gas.committed._steps import CommittedCall, StoragePrices  # noqa: TC001  # msgspec reads annotations
from toolkit.gas.plan._plan import NodePlan, Range, calls_at_head

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.gas._study import Study

FORMAT = 1


class CommittedRead(msgspec.Struct, frozen=True, omit_defaults=True):
    """The committed transactions that a run has read on a node.

    The ranges are stored because a page may contain no transaction of the study, and so leave no row.

    Attributes
    ----------
    ranges : tuple of (int, int)
        The versions that were read, or could not be, as sorted ranges with both ends included.
    rows : int
        Number of observations in these ranges.
    missing : tuple of (int, int)
        The ranges that could not be read.
    """

    ranges: tuple[Range, ...]
    rows: int
    missing: tuple[Range, ...] = ()


class ScheduleDigest(msgspec.Struct, frozen=True):
    """A gas schedule: its version, number of parameters, and digest."""

    feature_version: int
    parameters: int
    digest: str


class ScheduleEnds(msgspec.Struct, frozen=True):
    """The gas schedules at the first and the last version of a run; None if the node does not have it."""

    first: ScheduleDigest | None
    last: ScheduleDigest | None


class ModuleEnds(msgspec.Struct, frozen=True):
    """The digests of a module's bytecode and ABI at the first and the last version of a run."""

    first: str | None
    last: str | None


class Provenance(msgspec.Struct, frozen=True):
    """The gas schedule and the called modules, by module id, at both ends of a run."""

    gas_schedule: ScheduleEnds
    modules: dict[str, ModuleEnds]


class NodeRun(NodePlan, frozen=True, kw_only=True, omit_defaults=True):
    """A study on one node: its plan, what was read, and what was found besides observations and steps.

    Attributes
    ----------
    committed_read : CommittedRead or None
    further_requests : int or None
        Number of reads that located steps between the versions of a plan.
    timeline : Timeline or None
    storage_prices : StoragePrices or None
        Prices of state in the gas schedules of the timeline; if they are not known, `timeline.unread` says why.
    committed_series : tuple of CommittedCall or None
        What the analysis of committed transactions found besides steps; None if there was none.
    provenance : Provenance or None
    """

    committed_read: CommittedRead | None = None
    further_requests: int | None = None
    timeline: Timeline | None = None
    storage_prices: StoragePrices | None = None
    committed_series: tuple[CommittedCall, ...] | None = None
    provenance: Provenance | None = None


class Counts(msgspec.Struct, frozen=True):
    """Numbers of observations of a complete run: all, those with an error, and those without a response."""

    observations: int
    failures: int
    unanswered: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="format", tag=FORMAT):
    """What a run observes, how far it has progressed, and where it was read.

    Attributes
    ----------
    study : mapping
        The content of the study file.
    study_digest : str
    fingerprints : tuple of str
        The calls in the order of the study.
    nodes : tuple of NodeRun
    complete : bool
    started_at, finished_at, checked_at : datetime or None
        When the run began; when reading ended; when the head was last seen to be the same.
    executor, environment, attempts, resumed_rows
        Where views are read, package versions, the number of attempts, and the number of rows from earlier attempts.
    counts, rows_digest
        Counts and digest of the observations when the run was completed.
    """

    study: dict[str, Any]
    study_digest: str
    fingerprints: tuple[str, ...]
    nodes: tuple[NodeRun, ...]
    complete: bool
    started_at: datetime | None = None
    finished_at: datetime | None = None
    checked_at: datetime | None = None
    executor: str | None = None
    environment: dict[str, str] | None = None
    attempts: int = 0
    resumed_rows: int | None = None
    counts: Counts | None = None
    rows_digest: str | None = None

    @property
    def extended(self) -> bool:
        """Whether the run was complete before, up to an earlier head."""
        return any(plan.extended_from is not None for plan in self.nodes)

    @property
    def committed_series(self) -> tuple[CommittedCall, ...]:
        """The calls whose committed transactions were analysed, of all nodes."""
        return tuple(call for plan in self.nodes for call in plan.committed_series or ())

    @classmethod
    def of_text(cls, text: bytes) -> Manifest:
        """Return the manifest in the text of a ``run.json``.

        Raises
        ------
        ValueError
            If the text is not JSON, or not a manifest of this format.
        """
        try:
            return _decode(text)
        except (msgspec.ValidationError, InputError) as error:
            raise ValueError(
                f"is not a run of format {FORMAT}: {error}; it was written by another version of ledger-toolkit, or by "
                "another program"
            ) from None
        except (msgspec.DecodeError, RecursionError):
            raise ValueError("is damaged: it is not JSON") from None

    def text(self) -> bytes:
        """Return the text of ``run.json``."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=1) + b"\n"


_decode = msgspec.json.Decoder(Manifest).decode


@dataclass(frozen=True, slots=True)
class RunAge:
    """When a complete run was read.

    Attributes
    ----------
    read_at : datetime
        When its reading ended, or the head was last seen to be the same.
    reached : mapping of str to int
        The last version that was read, by node.
    labels : tuple of str
        The calls that are read up to the head. The others have fixed versions, so their age does not matter.
    """

    read_at: datetime
    reached: Mapping[str, int]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, study: Study, manifest: Manifest) -> RunAge:
        """Return the age of a complete run."""
        read_at = manifest.checked_at or manifest.finished_at
        assert read_at is not None  # noqa: S101 - of a complete run
        moving = {call.name for plan in manifest.nodes for call in calls_at_head(study, plan)}
        reached = {plan.node: max(plan.range_of(call)[1] for call in study.calls) for plan in manifest.nodes}
        return cls(read_at, reached, tuple(call.name for call in study.calls if call.name in moving))

    def since(self) -> timedelta:
        """Return the time since the run was read."""
        return datetime.now(UTC) - self.read_at


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A complete run that was in the folder when its study was run again.

    Attributes
    ----------
    age : RunAge
    heads : tuple of int
        The head of each node when the study was run again.
    rows : int
        Number of observations before.
    """

    age: RunAge
    heads: tuple[int, ...]
    rows: int
