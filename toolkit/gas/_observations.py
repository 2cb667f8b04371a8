"""The kinds of observations, parts of gas and causes, and what identifies a call."""

from __future__ import annotations

import hashlib
import json
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from toolkit.errors import SchemaError
from toolkit.frames._calls import NO_ANSWER
from toolkit.wire._requests import canonical_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from toolkit.wire import EntryFunction, SimulationRequest, UserTransaction, ViewFunction


class ReadAt(Enum):
    """Where the calls of a source are read. Plans, step searches, reports and figures ask for this, not for the source.

    Steps of calls that are read at versions are found by comparing the outcomes at neighbouring versions.
    """

    VERSIONS = auto()
    """At the versions that the study lists or that its step search chooses."""
    HEAD = auto()
    """Once, at the head of the node, whatever the study's versions."""
    TRANSACTIONS = auto()
    """In all transactions of a range, or in a sample of its pages."""


class Source(StrEnum):
    """How an observation was made: the values of the column ``source``."""

    label: str
    plural: str
    read_at: ReadAt

    def __new__(cls, value: str, label: str = "", plural: str = "", read_at: ReadAt = ReadAt.VERSIONS) -> Self:
        member = str.__new__(cls, value)
        member._value_, member.label, member.plural, member.read_at = value, label, plural, read_at
        return member

    VIEW = "view@version", "view", "views", ReadAt.VERSIONS
    SIMULATE = "simulate@now", "simulation at the head", "simulations", ReadAt.HEAD
    SIMULATE_AT_VERSION = "simulate@version", "simulation", "simulations at versions", ReadAt.VERSIONS
    COMMITTED = "committed", "committed", "committed transactions", ReadAt.TRANSACTIONS

    @property
    def key(self) -> str:
        """The key of snapshots, and of study files except for `SIMULATE_AT_VERSION`, that has calls of the source."""
        return "simulate_at_version" if self is Source.SIMULATE_AT_VERSION else self.partition("@")[0]


# The sources whose calls are read at versions, as values of the column ``source``.
READ_AT_VERSIONS = tuple(source.value for source in Source if source.read_at is ReadAt.VERSIONS)


class Part(StrEnum):
    """A part of what a transaction pays, with its column in the observations."""

    column: str

    def __new__(cls, value: str, column: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.column = value, column
        return member

    EXECUTION = "execution", "execution_gas_units"
    IO = "io", "io_gas_units"
    STORAGE = "storage", "storage_fee_octas"
    REFUND = "refund", "storage_fee_refund_octas"

    @property
    def in_octas(self) -> bool:
        """Whether the part is an exact amount of octas. Other parts are whole gas units, rounded up."""
        return self in {Part.STORAGE, Part.REFUND}


class Cause(StrEnum):
    """Kind of cause of a step; the values of the column ``cause``."""

    label: str
    because: str

    def __new__(cls, value: str, label: str = "", because: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.label, member.because = value, label, because
        return member

    SCHEDULE = "schedule", "gas schedule", ", when the gas schedule changed"
    CODE = "code", "code", ", when code was published"
    CONFIG = "config", "configuration", ", when the configuration changed"
    STATE = "state", "state", ", when state changed (probably what it reads)"
    MIXED = "mixed", "several causes", ", for several causes"
    NODE = "node", "node build", ", because the node changed, not the ledger"
    UNEXPLAINED = "unexplained", "unexplained", "; no cause was found"
    UNKNOWN = "unknown", "unknown"

    @classmethod
    def of(cls, value: object) -> Cause:
        """Return the cause in a cell; `UNKNOWN` for a missing value or a value that is not a cause."""
        return next((cause for cause in cls if cause == str(value)), cls.UNKNOWN)


def type_arguments_of(transaction: UserTransaction) -> tuple[str, ...] | None:
    """Return the type arguments of the call that a transaction ran; None if its payload does not show them."""
    try:
        return transaction.call().type_arguments
    except SchemaError:
        return None


PRUNED = frozenset({"version_pruned", "block_pruned"})
# Error codes that result from the history and the rules of a node, not from the ledger.
MADE_BY_NODE = PRUNED | {"api_disabled", "rejected_by_filter", "version_not_found"}


# Error code of a call at a version that was not read, between two readings that differ.
NOT_READ = "not_read"


def is_no_answer(error_code: str | None) -> bool:
    """Return whether an error code means that the node did not respond; such a call says nothing about the ledger."""
    return error_code in NO_ANSWER or error_code == NOT_READ


def failed(observations: pd.DataFrame) -> pd.Series[bool]:
    """Return which observations failed: the read has an error, or the call ran and its execution failed."""
    return observations["error_code"].notna() | ~observations["success"].fillna(value=True).astype(bool)


class Failure(StrEnum):
    """How an observation failed, in the words of forms, terminals and reports."""

    NOT_AVAILABLE = "not available"  # a read from before the code that made the call available
    READ = "failed"  # any other read without a result
    SIMULATION = "would fail"
    TRANSACTION = "failed on the ledger"


class Failures(NamedTuple):
    """The observations of a run that failed.

    Attributes
    ----------
    rows : dict of Failure to DataFrame
        The observations, without the kinds that do not occur.
    available_since : tuple of int
        The versions whose code made calls available, of those with reads from before.
    """

    rows: dict[Failure, pd.DataFrame]
    available_since: tuple[int, ...]

    @property
    def counts(self) -> dict[str, int]:
        """The number of observations of each kind."""
        return {kind.value: len(rows) for kind, rows in self.rows.items()}


def failures_of(observations: pd.DataFrame, steps: pd.DataFrame) -> Failures:
    """Return which observations failed, and how; `steps` are those of a complete run, else empty."""
    lost = observations[failed(observations)]
    ran, committed = lost["error_code"].isna(), lost["source"] == Source.COMMITTED
    early = ran & False
    since: set[int] = set()
    if len(lost) and len(steps):
        code = steps[(steps["cause"] == Cause.CODE) & steps["exact"] & steps["error_after"].isna()]
        first = code[code["error_before"].notna()].set_index("label")[["version_after", "error_before"]]
        at = lost.join(first[~first.index.duplicated()], on="label")
        before = (at["ledger_version"] < at["version_after"]) & (at["error_code"] == at["error_before"])
        early = before.fillna(value=False).astype(bool)
        since = set(map(int, at["version_after"][early]))
    kinds = {
        Failure.NOT_AVAILABLE: early,
        Failure.READ: ~ran & ~early,
        Failure.SIMULATION: ran & ~committed,
        Failure.TRANSACTION: ran & committed,
    }
    return Failures({kind: lost[chosen] for kind, chosen in kinds.items() if chosen.any()}, tuple(sorted(since)))


def fingerprint(
    request: ViewFunction | SimulationRequest | EntryFunction, kind: str, filters: Mapping[str, Any] | None = None
) -> str:
    """Return the digest of a request's canonical form, the kind of observation and its filters: 32 hex digits."""
    more = f"\n{json.dumps(filters, sort_keys=True)}" if filters else ""
    return digest_of(f"{kind}\n{canonical_request(request)}{more}")


def digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def last_observations(observations: pd.DataFrame, *, version: int | None = None) -> pd.DataFrame:
    """Return the last observation of each call and source, at or before `version` if it is given."""
    if version is not None:
        # pandas cannot compare Arrow integers with one of 2^63 or more.
        observations = observations[observations["ledger_version"].to_numpy(dtype=np.int64) <= np.int64(version)]
    ordered = observations.sort_values("ledger_version", kind="stable")
    return ordered.groupby(["node", "fingerprint", "source"], sort=False).tail(1).sort_index().reset_index(drop=True)
