"""Rows of the observation frame, from the outcomes of calls.

Nothing here reads a clock: times are arguments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit import __version__
from toolkit.errors import NodeError
from toolkit.frames._calls import Failure
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._observations import Part, digest_of, type_arguments_of
from toolkit.wire._rows import transaction_rows
from toolkit.wire._transactions import DeleteResource, DeleteTableItem

if TYPE_CHECKING:
    from datetime import datetime

    from toolkit.client._calls import ViewResult
    from toolkit.client._simulation import Simulation
    from toolkit.gas._calls import Call
    from toolkit.wire import LedgerState, UserTransaction

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
        outcome = {"gas_used": result.gas_used, "success": True, "value_digest": digest_of(result.raw)}
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
        which = f"transactions {first:,} to {last:,} were" if last > first else f"transaction {first:,} was"
        return row | {"error_message": f"{which} not read: {row['error_message']}"}

    def simulation(self, call: Call, result: Simulation, observed_at: datetime) -> dict[str, Any]:
        """Return the row of a simulation, whether or not the transaction would succeed.

        One on a fork has no head: it did not run on the node.
        """
        _, changes, _ = transaction_rows([result.transaction])
        rows = zip(*(changes[name] for name in _DIGESTED), strict=True)
        writes = [row for row in rows if row[0] != _SEQUENCE_NUMBER]
        digest = digest_of(json.dumps(writes, sort_keys=True, default=bytes.hex))
        head = None if call.at else result.ledger
        row = self.row(call, result.ledger_version, observed_at, head)
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
    abort = transaction.abort
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
