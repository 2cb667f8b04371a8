"""The results of the analysis as data: explanations of steps, timelines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.gas._observations import Cause, Part
from toolkit.move import FunctionId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gas.causes._facts import Facts, ScheduleChange


# explanations ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangingTransaction:
    """The transaction that caused an exact step; unknown fields are None."""

    version: int
    hash: str | None
    type: str | None
    sender: str | None
    function: str | None
    payload_type: str | None = None
    time: datetime | None = None

    def columns(self) -> dict[str, Any]:
        """Return the columns that describe the transaction in frames of steps and changes."""
        names = ("hash", "type", "sender", "function")
        return {f"transaction_{name}": getattr(self, name) for name in names} | {"time": self.time}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The cause of a step, with the evidence for it.

    Attributes
    ----------
    cause : Cause
    note : str
        Why the cause is unknown or is not the ledger; empty if there is evidence.
    found : mapping of Cause to Facts
        What explains the step, by cause: writes of the transaction, or differences between the ends of an interval.
    transaction : ChangingTransaction or None
        The transaction at the step; None for an interval, or if nothing was read.
    unread : mapping of str to str
        What could not be compared in an interval, and why.
    called : str
        The module whose code was compared in an interval.
    schedule : ScheduleChange or None
        The two schedules of an interval, if they differ in anything but prices and nothing else differs.
    """

    cause: Cause
    note: str = ""
    found: Mapping[Cause, Facts] = field(default_factory=dict)
    transaction: ChangingTransaction | None = None
    unread: Mapping[str, str] = field(default_factory=dict)
    called: str = ""
    schedule: ScheduleChange | None = None


NOT_LOOKED_FOR = Explanation(Cause.UNKNOWN, "the run was interrupted before causes were searched for")


# timelines ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """A change to something that gas depends on: the gas schedule, configuration, or code.

    Attributes
    ----------
    ledger_version : int
        Version of the transaction that made the change. Transactions at lower versions ran before it.
    kind : Cause
        `Cause.SCHEDULE`, `Cause.CODE` or `Cause.CONFIG`.
    what : str
        What changed, in words.
    parts : frozenset of Part
        The parts of gas that the change can affect; see `parts_of_parameters`.
    modules : frozenset of str
        Modules whose code changed, as ``0x1::coin``; empty for other kinds.
    affects : frozenset of str
        For a change of code, the requested modules that changed or depend on a changed module.
    version_before : int or None
        Last version read before the change; None if it is directly before `ledger_version`.
    transaction : ChangingTransaction or None
        The transaction that made the change, if it is known and could be read.
    price_ratio : float or None
        For a change of the gas schedule, the ratio by which all changed prices changed, if they have one in common.
    """

    ledger_version: int
    kind: Cause
    what: str = ""
    parts: frozenset[Part] = frozenset(Part)
    modules: frozenset[str] = frozenset()
    affects: frozenset[str] = frozenset()
    version_before: int | None = None
    transaction: ChangingTransaction | None = None
    price_ratio: float | None = None

    @property
    def exact(self) -> bool:
        """Whether the transaction at `ledger_version` is known to have made the change."""
        return self.start == self.ledger_version - 1

    @property
    def start(self) -> int:
        """Last version that is known to precede the change."""
        return self.ledger_version - 1 if self.version_before is None else self.version_before


def parts_of_parameters(names: Iterable[str]) -> frozenset[Part]:
    """Return the parts of gas that a change to these gas parameters can affect.

    Parameters
    ----------
    names : iterable of str
        Parameters whose values differ. A parameter of an unknown kind could affect all parts.

    Returns
    -------
    frozenset of Part

    Examples
    --------
    >>> sorted(parts_of_parameters(["instr.add", "txn.storage_io_per_state_slot_read"]))
    [<Part.EXECUTION: 'execution'>, <Part.IO: 'io'>]
    """
    found: set[Part] = set()
    for name in names:
        if "storage_io_" in name:
            found.add(Part.IO)
        elif "storage_fee" in name:
            found |= {Part.STORAGE, Part.REFUND}
        elif name.startswith(("instr.", "move_stdlib.", "aptos_framework.", "table.", "misc.")):
            found.add(Part.EXECUTION)
        else:
            return frozenset(Part)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Unread:
    """A source of changes that could not be read at every version.

    Attributes
    ----------
    name : str
        The source, in words.
    why : str
    versions : str
        The versions at which it could not be read, or between which it changed at an unknown version. Empty if nothing
        was read at all.
    """

    name: str
    why: str
    versions: str = ""


class Timeline(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes to the gas schedule, configuration and code between two versions.

    Attributes
    ----------
    first, last : int
        First and last version of the range, both included.
    changes : tuple of Change
        Sorted by version and kind.
    modules : tuple of str
        The modules whose code was examined, with all their dependencies.
    requests : int
        Number of reads.
    unread : tuple of Unread
        Sources that could not be read at every version, whose changes may be missing.
    initial : int
        Number of versions at which the schedule and the configuration were first compared.
    first_time, last_time : datetime or None
        Times of `first` and `last`.
    """

    first: int
    last: int
    changes: tuple[Change, ...] = ()
    modules: tuple[str, ...] = ()
    requests: int = 0
    unread: tuple[Unread, ...] = ()
    initial: int = 0
    first_time: datetime | None = None
    last_time: datetime | None = None

    def for_function(self, function: str) -> tuple[Change, ...]:
        """Return the changes that can affect the gas of a function, whose module the timeline must cover.

        These are changes to the gas schedule, to the configuration, and to the code of the function's module and its
        dependencies.
        """
        module = FunctionId.parse(function).module_id.wire
        return tuple(change for change in self.changes if change.kind is not Cause.CODE or module in change.affects)


# comparisons ----------------------------------------------------------------------------------------------------------


class Kind(StrEnum):
    """Kinds of calls in a comparison; the kinds that need attention come first."""

    CHANGED = "changed"
    UNCERTAIN = "uncertain"
    NOT_COMPARED = "not compared"
    ADDED = "added"
    REMOVED = "removed"
    UNCHANGED = "unchanged"
