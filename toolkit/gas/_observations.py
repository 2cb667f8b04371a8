"""Observations: the outcome of one call as a row of the observation frame. Pure; the time is an argument."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from toolkit import __version__
from toolkit.errors import NodeError
from toolkit.frames._calls import Failure
from toolkit.frames._schema import OBSERVATIONS
from toolkit.wire import canonical_request, transaction_rows

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd

    from toolkit.client._results import Simulation, ViewResult
    from toolkit.wire import EntryFunction, LedgerState, SimulationRequest, ViewFunction

__all__ = ["NO_ANSWER", "Origin", "Source", "fingerprint", "is_no_answer", "last_observations", "row_columns"]


class Source(StrEnum):
    """How an observation was made; the values of the column ``source``."""

    VIEW = "view@version"
    SIMULATE = "simulate@now"
    COMMITTED = "committed"


NO_ANSWER = frozenset(
    {"unreachable", "rate_limited", "http_429", "http_500", "http_502", "http_503", "http_504", "internal_error"}
)
"""Error codes of calls that got no answer."""
_DIGESTED = ("resource_type", "type", "address", "module", "handle", "key", "value", "data")
"""Columns of a change that its digest covers."""
_SEQUENCE_NUMBER = "0x1::account::Account"
"""The resource with the sequence number of an account, which every simulation changes; digests leave it out."""


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

    def row(self, label: str, mark: str, source: str, version: int, observed_at: datetime) -> dict[str, Any]:
        """Return a row of the observation frame with the values that every observation has."""
        return dict.fromkeys(OBSERVATIONS.names) | {
            "label": label,
            "fingerprint": mark,
            "source": source,
            "node": self.node,
            "node_build": self.node_build,
            "model": self.model,
            "chain_id": self.chain_id,
            "ledger_version": version,
            "observed_at": observed_at,
            "toolkit_version": __version__,
        }

    def view(self, label: str, mark: str, result: ViewResult, observed_at: datetime) -> dict[str, Any]:
        """Return the row of a view that answered."""
        return self.row(label, mark, Source.VIEW, result.ledger_version, observed_at) | {
            "head_version": result.ledger.version if result.ledger else None,
            "gas_used": result.gas_used,
            "success": True,
            "value_digest": _digest(result.raw),
        }

    def failed(
        self, label: str, mark: str, source: str, version: int, *, error: Exception, observed_at: datetime
    ) -> dict[str, Any]:
        """Return the row of a call that the node refused or that got no answer."""
        failure = Failure.of(error)
        ledger = error.ledger if isinstance(error, NodeError) else None
        return self.row(label, mark, source, version, observed_at) | {
            "head_version": ledger.version if ledger else None,
            # Only a VM status means that the function ran and failed; without one it did not run.
            "success": False if failure.vm_error_code is not None else None,
            "status": failure.status,
            "error_code": failure.error_code,
            "error_message": failure.message,
        }

    def missing(
        self, label: str, mark: str, first: int, last: int, *, error: Exception, observed_at: datetime
    ) -> dict[str, Any]:
        """Return one row for committed transactions that could not be read, at the first of their versions."""
        row = self.failed(label, mark, Source.COMMITTED, first, error=error, observed_at=observed_at)
        which = f"transactions {first} to {last} were" if last > first else f"transaction {first} was"
        return row | {"error_message": f"{which} not read: {row['error_message']}"}

    def simulation(self, label: str, mark: str, result: Simulation, observed_at: datetime) -> dict[str, Any]:
        """Return the row of a simulation, whether or not the transaction would succeed."""
        _, changes, _ = transaction_rows([result.transaction])
        rows = zip(*(changes[name] for name in _DIGESTED), strict=True)
        writes = [row for row in rows if row[0] != _SEQUENCE_NUMBER]
        return (
            self.row(label, mark, Source.SIMULATE, result.ledger_version, observed_at)
            | _charged(result.transaction)
            | {
                "head_version": result.ledger.version if result.ledger else None,
                "value_digest": _digest(json.dumps(writes, sort_keys=True, default=bytes.hex)),
            }
        )

    def committed(
        self, label: str, mark: str, transaction: Any, observed_at: datetime, *, head: LedgerState | None = None
    ) -> dict[str, Any]:
        """Return the row of a committed transaction."""
        row = self.row(label, mark, Source.COMMITTED, transaction.version, observed_at) | _charged(transaction)
        return row | {"head_version": head.version if head else None}


def _charged(transaction: Any) -> dict[str, Any]:
    """Return what a transaction was charged, split if it has a FeeStatement."""
    split = transaction.gas_breakdown()
    row = {
        "gas_used": transaction.gas_used,
        "gas_unit_price": transaction.gas_unit_price,
        "success": transaction.success,
        "vm_status": transaction.vm_status,
        "ledger_timestamp": transaction.timestamp_us,
    }
    if split is not None:
        names = ("execution_gas_units", "io_gas_units", "storage_fee_octas", "storage_fee_refund_octas")
        row |= {name: getattr(split, name) for name in names}
    return row


def is_no_answer(error_code: str | None) -> bool:
    """Return whether an error code means that no answer came; such a call says nothing about the ledger."""
    return error_code in NO_ANSWER


def fingerprint(request: ViewFunction | SimulationRequest | EntryFunction, kind: str) -> str:
    """Return the digest of a request's canonical form and the kind of observation: 32 hex digits."""
    return _digest(f"{kind}\n{canonical_request(request)}")


def row_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as the columns of the observation frame."""
    return {name: [row[name] for row in rows] for name in OBSERVATIONS.names}


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def last_observations(observations: pd.DataFrame, *, version: int | None = None) -> pd.DataFrame:
    """Return the last observation of each call and source, at or before `version` if it is given."""
    if version is not None:
        observations = observations[observations["ledger_version"] <= version]
    ordered = observations.sort_values("ledger_version", kind="stable")
    return ordered.groupby(["node", "fingerprint", "source"], sort=False).tail(1).sort_index().reset_index(drop=True)
