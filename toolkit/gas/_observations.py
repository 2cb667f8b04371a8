"""Observations: the outcome of a call as a row of the observation frame, the parts of gas, and the kinds of causes.

Nothing here reads a clock: times are arguments.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from toolkit import __version__
from toolkit.errors import NodeError
from toolkit.frames._calls import NO_ANSWER, Failure
from toolkit.frames._schema import OBSERVATIONS, STRATUM
from toolkit.wire._aborts import Abort
from toolkit.wire._requests import canonical_request
from toolkit.wire._rows import transaction_rows
from toolkit.wire._transactions import DeleteResource, DeleteTableItem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import pandas as pd

    from toolkit.client._calls import ViewResult
    from toolkit.client._simulation import Simulation
    from toolkit.gas._calls import Call
    from toolkit.wire import EntryFunction, LedgerState, SimulationRequest, UserTransaction, ViewFunction


class _Labelled(StrEnum):
    """The possible values of a column, each with a label for display."""

    label: str

    def __new__(cls, value: str, label: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.label = value, label
        return member


class Source(_Labelled):
    """How an observation was made: the values of the column ``source``."""

    VIEW = "view@version", "view"
    SIMULATE = "simulate@now", "simulation at the head"
    COMMITTED = "committed", "committed"


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


class Cause(_Labelled):
    """Kind of cause of a step; the values of the column ``cause``."""

    SCHEDULE = "schedule", "gas schedule"
    CODE = "code", "code"
    CONFIG = "config", "configuration"
    STATE = "state", "state"
    MIXED = "mixed", "several causes"
    NODE = "node", "node build"
    UNEXPLAINED = "unexplained", "unexplained"
    UNKNOWN = "unknown", "unknown"

    @classmethod
    def of(cls, value: object) -> Cause:
        """Return the cause in a cell; `UNKNOWN` for a missing value or a value that is not a cause."""
        return next((cause for cause in cls if cause == str(value)), cls.UNKNOWN)


# The columns of observations written before the columns for committed transactions existed.
EARLIER_COLUMNS = [name for name in OBSERVATIONS.names if name not in {column.name for column in STRATUM}]
# Columns of a change that its digest covers.
_DIGESTED = ("resource_type", "type", "address", "module", "handle", "key", "value", "data")
# The resource with the sequence number of an account, which every simulation changes; digests leave it out.
_SEQUENCE_NUMBER = "0x1::account::Account"


@dataclass(frozen=True, slots=True)
class Origin:
    """What all observations of one run and node share.

    Attributes
    ----------
    node : str
    node_build : str or None
    model : bool
        True for the embedded node, whose gas is a model.
    chain_id : int
    """

    node: str
    node_build: str | None
    model: bool
    chain_id: int

    def row(self, call: Call, version: int, observed_at: datetime, head: LedgerState | None) -> dict[str, Any]:
        """Return a row of the observation frame with the values that every observation has."""
        what = {"label": call.name, "fingerprint": call.fingerprint, "source": call.source}
        where = {"node": self.node, "node_build": self.node_build, "model": self.model, "chain_id": self.chain_id}
        when = {"ledger_version": version, "head_version": head.version if head else None, "observed_at": observed_at}
        return dict.fromkeys(OBSERVATIONS.names) | what | where | when | {"toolkit_version": __version__}

    def view(self, call: Call, result: ViewResult, observed_at: datetime) -> dict[str, Any]:
        """Return the row of a view that returned a result."""
        outcome = {"gas_used": result.gas_used, "success": True, "value_digest": _digest(result.raw)}
        return self.row(call, result.ledger_version, observed_at, result.ledger) | outcome

    def failed(self, call: Call, version: int, error: Exception, observed_at: datetime) -> dict[str, Any]:
        """Return the row of a call that the node rejected or did not respond to."""
        failure = Failure.of(error)
        row = self.row(call, version, observed_at, error.ledger if isinstance(error, NodeError) else None)
        # Only a VM status means that the function ran and failed; without one it did not run.
        row["success"] = False if failure.vm_error_code is not None else None
        return row | {"status": failure.status, "error_code": failure.error_code, "error_message": failure.message}

    def missing(self, call: Call, first: int, last: int, error: Exception, observed_at: datetime) -> dict[str, Any]:
        """Return one row for committed transactions that could not be read, at the first of their versions."""
        row = self.failed(call, first, error, observed_at)
        which = f"transactions {first} to {last} were" if last > first else f"transaction {first} was"
        return row | {"error_message": f"{which} not read: {row['error_message']}"}

    def simulation(self, call: Call, result: Simulation, observed_at: datetime) -> dict[str, Any]:
        """Return the row of a simulation, whether or not the transaction would succeed."""
        _, changes, _ = transaction_rows([result.transaction])
        rows = zip(*(changes[name] for name in _DIGESTED), strict=True)
        writes = [row for row in rows if row[0] != _SEQUENCE_NUMBER]
        digest = _digest(json.dumps(writes, sort_keys=True, default=bytes.hex))
        row = self.row(call, result.ledger_version, observed_at, result.ledger)
        return row | _charged(result.transaction) | {"value_digest": digest}

    def committed(
        self, call: Call, transaction: Any, observed_at: datetime, *, head: LedgerState | None = None
    ) -> dict[str, Any]:
        """Return the row of a committed transaction."""
        row = self.row(call, transaction.version, observed_at, head)
        return row | _charged(transaction) | stratum_columns(transaction)


def _charged(transaction: Any) -> dict[str, Any]:
    """Return what a transaction was charged, split if it has a FeeStatement."""
    split = transaction.gas_breakdown()
    row = {name: getattr(transaction, name) for name in ("gas_used", "gas_unit_price", "success", "vm_status")}
    row["ledger_timestamp"] = transaction.timestamp_us
    if split is not None:
        row |= {part.column: getattr(split, part.column) for part in Part}
    return row


class _Signature(msgspec.Struct):
    type: str | None = None
    public_key: Any = None
    public_keys: Any = None


class _Function(msgspec.Struct):
    type_arguments: tuple[str, ...] | None = None
    transaction_payload: _Function | None = None


_decode_function = msgspec.json.Decoder(_Function).decode
_decode_signature = msgspec.json.Decoder(_Signature).decode


def stratum_columns(transaction: UserTransaction) -> dict[str, Any]:
    """Return the columns of a committed transaction that describe what it did.

    Parameters
    ----------
    transaction : UserTransaction

    Returns
    -------
    dict
        The columns ``STRATUM`` of the observation frame; None for values that cannot be determined.
    """
    types = type_arguments_of(transaction)
    abort = None if transaction.success else Abort.find(transaction.vm_status)
    deleted = sum(isinstance(change, DeleteResource | DeleteTableItem) for change in transaction.changes)
    return {
        "payload_bytes": len(msgspec.json.format(transaction.payload_raw, indent=-1)),
        "slots_deleted": deleted,
        "authenticator": _authenticator(transaction.signature_raw),
        "orderless": transaction.replay_protection_nonce_text is not None,
        "type_arguments": None if types is None else ", ".join(types),
        "abort_code": None if abort is None else abort.code,
    }


def _authenticator(signature: msgspec.Raw) -> str | None:
    """Return the kind of a signature, with the kind of key for a single sender."""
    if bytes(signature) == b"null":
        return None
    try:
        found = _decode_signature(signature)
    except msgspec.DecodeError:
        return None
    if found.type != "single_sender":
        return found.type
    key = found.public_key.get("type") if isinstance(found.public_key, dict) else None
    kind = "multi_key" if found.public_keys is not None else key
    return f"{found.type}:{kind}" if isinstance(kind, str) else found.type


def type_arguments_of(transaction: UserTransaction) -> tuple[str, ...] | None:
    """Return the type arguments of a transaction's function; None if its payload does not show them.

    For a multisig payload, these are the type arguments of the inner function.
    """
    try:
        found = _decode_function(transaction.payload_raw)
    except msgspec.DecodeError:
        return None
    if found.type_arguments is None and found.transaction_payload is not None:
        return found.transaction_payload.type_arguments
    return found.type_arguments


PRUNED = frozenset({"version_pruned", "block_pruned"})
# Error codes that result from the history and the rules of a node, not from the ledger.
MADE_BY_NODE = PRUNED | {"api_disabled", "rejected_by_filter", "version_not_found"}


def is_no_answer(error_code: str | None) -> bool:
    """Return whether an error code means that the node did not respond; such a call says nothing about the ledger."""
    return error_code in NO_ANSWER


def fingerprint(
    request: ViewFunction | SimulationRequest | EntryFunction, kind: str, filters: Mapping[str, Any] | None = None
) -> str:
    """Return the digest of a request's canonical form, the kind of observation and its filters: 32 hex digits."""
    more = f"\n{json.dumps(filters, sort_keys=True)}" if filters else ""
    return _digest(f"{kind}\n{canonical_request(request)}{more}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def last_observations(observations: pd.DataFrame, *, version: int | None = None) -> pd.DataFrame:
    """Return the last observation of each call and source, at or before `version` if it is given."""
    if version is not None:
        # pandas cannot compare Arrow integers with one of 2^63 or more.
        observations = observations[observations["ledger_version"].to_numpy(dtype=np.uint64) <= np.uint64(version)]
    ordered = observations.sort_values("ledger_version", kind="stable")
    return ordered.groupby(["node", "fingerprint", "source"], sort=False).tail(1).sort_index().reset_index(drop=True)
