"""A simulated transaction as BCS: the chain's ``TransactionOnChainData``, with the write set as it would be stored.

Written values carry no metadata: the chain keeps there when a slot was made, which a model does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.embedded.state import state_key_bytes
from toolkit.move import Writer, address_to_bytes, parse_type_tag, write_type_tag

if TYPE_CHECKING:
    from toolkit.embedded.session import EmittedEvent
    from toolkit.embedded.state import StateKey, StateValue, VersionedState
    from toolkit.embedded.transaction import Output, Transaction

__all__ = ["simulation_bcs"]

_NO_HASH = bytes(32)  # a simulation changes no state, so there is nothing to hash
_CREATION, _MODIFICATION, _DELETION = range(3)


def simulation_bcs(request: Transaction, output: Output, *, state: VersionedState, version: int) -> bytes:
    """Return a simulation's answer in BCS.

    Parameters
    ----------
    request : Transaction
        What was simulated.
    output : Output
        What came of it.
    state : VersionedState
        Tells what is new and what is changed.
    version : int
        Ledger version it ran at.

    Notes
    -----
    ``TransactionOnChainData``: version, transaction (variant 0, by a user), info, events, accumulator root hash,
    changes. One of them, not a vector.
    """
    writer = Writer()
    writer.u64(version)
    writer.uleb128(0)
    writer.fixed(request.signed.to_bcs())
    _write_info(writer, request, output)
    writer.uleb128(len(output.events))
    for event in output.events:
        _write_event(writer, event)
    writer.fixed(_NO_HASH)
    _write_changes(writer, output, state, version)
    return writer.getvalue()


def _write_info(writer: Writer, request: Transaction, output: Output) -> None:
    writer.uleb128(0)  # V0
    writer.u64(output.charges.total_charge_gas_units)
    writer.fixed(output.execution_status)
    writer.fixed(bytes.fromhex(request.hash[2:]))
    writer.fixed(_NO_HASH)  # event root
    writer.fixed(_NO_HASH)  # state change
    writer.bool(False)  # no state checkpoint
    writer.bool(False)  # no auxiliary info


def _write_event(writer: Writer, event: EmittedEvent) -> None:
    writer.uleb128(1)  # V2, without a handle
    write_type_tag(writer, parse_type_tag(event.type))
    writer.bytes(event.data)


def _write_changes(writer: Writer, output: Output, state: VersionedState, version: int) -> None:
    """Append the write set: a map, in the order of its keys' bytes."""
    writer.uleb128(0)  # V0
    writer.uleb128(len(output.writes))
    for data, key in sorted((_key_bytes(key), key) for key in output.writes):
        writer.fixed(data)
        _write_op(writer, output.writes[key], new=state.read(key, version) is None)


def _key_bytes(key: StateKey) -> bytes:
    """Return BCS of a state key; only a table's differs from what the chain hashes: its bytes have a length."""
    if key.kind != "table":
        return state_key_bytes(key)
    writer = Writer()
    writer.uleb128(1)
    writer.fixed(address_to_bytes(key.owner))
    writer.bytes(key.name if isinstance(key.name, bytes) else key.name.encode())
    return writer.getvalue()


def _write_op(writer: Writer, value: StateValue | None, *, new: bool) -> None:
    if value is None:
        writer.uleb128(_DELETION)
        return
    writer.uleb128(_CREATION if new else _MODIFICATION)
    writer.bytes(value.data)
