"""Running one view or one transaction over a snapshot of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.embedded.checks import NOBODY, find_refusal
from toolkit.embedded.framework.account import TransactionValidation
from toolkit.embedded.framework.aptos_coin import APTOS_COIN
from toolkit.embedded.framework.coin import Coin
from toolkit.embedded.framework.configuration import TransactionFee
from toolkit.embedded.meter import FREE, Charges, FreeMeter, Meter
from toolkit.embedded.payloads import call_function, lift_arguments, run_executable
from toolkit.embedded.session import EmittedEvent, Session, store_value
from toolkit.embedded.state import StateValue, state_key_bytes
from toolkit.embedded.transaction import Output
from toolkit.embedded.vm_status import EXECUTED, SUCCESS, VmError
from toolkit.move import encode_bcs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.embedded.checks import LedgerSnapshot
    from toolkit.embedded.code import BoundFunction
    from toolkit.embedded.state import StateKey
    from toolkit.embedded.transaction import Transaction
    from toolkit.move import TypeTag

__all__ = ["MAX_VIEW_GAS", "execute", "run_unmetered", "run_view"]

#: Gas units one view may use (``max_gas_view_function`` of a node's configuration).
MAX_VIEW_GAS = 2_000_000


def run_view(
    snapshot: LedgerSnapshot,
    function: BoundFunction,
    arguments: Sequence[Any],
    type_arguments: Sequence[TypeTag] = (),
    *,
    max_gas: int = MAX_VIEW_GAS,
) -> tuple[list[Any], int]:
    """Run a view function.

    Returns
    -------
    tuple
        Plain values returned, and gas units used.

    Raises
    ------
    VmError
        If execution aborts, fails or runs out of gas.
    """
    meter = Meter(snapshot.schedule, max_gas_units=max_gas)
    session = Session(snapshot.state, snapshot.version, snapshot.code, meter, seed=b"view")
    returned = call_function(session, function, [*type_arguments, *lift_arguments(session, function, arguments)])
    kinds = function.return_kinds
    values = [returned] if len(kinds) == 1 else list(returned or ())
    plain = [store_value(kind, value) for kind, value in zip(kinds, values, strict=True)]
    return plain, meter.charges().total_charge_gas_units


def run_unmetered(snapshot: LedgerSnapshot, body: Callable[[Session], None], *, seed: bytes) -> Output:
    """Run what the ledger does by itself (genesis, a block's begin); it costs nothing and cannot fail."""
    session = Session(snapshot.state, snapshot.version, snapshot.code, FreeMeter(snapshot.schedule), seed=seed)
    body(session)
    writes = {key: _stored(data) for key, data in session.writes.items()}
    return Output(success=True, vm_status=EXECUTED, charges=FREE, writes=writes, events=tuple(session.events))


def execute(
    snapshot: LedgerSnapshot,
    transaction: Transaction,
    body: Callable[[Session, Transaction], None] = run_executable,
    *,
    check_keys: bool = False,
) -> Output:
    """Run a transaction: checks, the call, storage, fees.

    Parameters
    ----------
    snapshot : LedgerSnapshot
        What is read.
    transaction : Transaction
        What is asked for.
    body : callable, optional
        Runs what is asked for in a session; by default what the payload says.
    check_keys : bool, default False
        Whether public keys must be those of the accounts; the ledger itself signs with stand-ins.

    Returns
    -------
    Output
        A transaction whose checks fail is discarded: gas 0, nothing written.
    """
    refusal = find_refusal(snapshot, transaction, check_keys=check_keys)
    if refusal is not None:
        return Output(
            success=False,
            vm_status=refusal,
            charges=FREE,
            writes={},
            events=(),
            discarded=True,
            execution_status=VmError(refusal).execution_status,
        )
    raw = transaction.raw
    meter = Meter(snapshot.schedule, max_gas_units=raw.max_gas_amount, gas_unit_price=raw.gas_unit_price)
    seed = bytes.fromhex(transaction.hash[2:])
    session = Session(snapshot.state, snapshot.version, snapshot.code, meter, seed=seed)
    stored: dict[StateKey, StateValue | None] = {}
    vm_status, success, status = EXECUTED, True, SUCCESS
    try:
        _charge_intrinsic(meter, transaction.size)
        body(session, transaction)
        stored = _charge_writes(snapshot, session, paid=raw.gas_unit_price > 0)
        meter.check_limits()
    except VmError as error:
        session.rollback()
        stored = {}
        vm_status, success, status = error.vm_status, False, error.execution_status
        meter.storage_fee = meter.refund = 0
    charges = meter.charges()
    _finish(session, snapshot, transaction, charges)
    writes = {key: _kept(snapshot, stored, key, data) for key, data in session.writes.items()}
    return Output(success, vm_status, charges, writes, tuple(session.events), execution_status=status)


def _charge_intrinsic(meter: Meter, size: int) -> None:
    meter.charge("txn.min_transaction_gas_units")
    excess = size - meter.schedule["txn.large_transaction_cutoff"]
    if excess > 0:
        meter.charge("txn.intrinsic_gas_per_byte", excess)
    meter.charge_io("txn.storage_io_per_transaction_byte_write", size)


def _charge_writes(snapshot: LedgerSnapshot, session: Session, *, paid: bool) -> dict[StateKey, StateValue | None]:
    """Charge writing what a session wrote; return it with the deposits paid for it."""
    meter, schedule = session.meter, snapshot.schedule
    for event in session.events:
        meter.charge_io("txn.storage_io_per_event_byte_write", len(event.type) + len(event.data))
    stored: dict[StateKey, StateValue | None] = {}
    for key, data in session.writes.items():
        before = snapshot.state.read(key, snapshot.version)
        if data is None:
            meter.charge_io("txn.storage_io_per_state_slot_write")
            if before is not None:
                meter.refund += before.slot_deposit + before.byte_deposit
            stored[key] = None
            continue
        size = len(state_key_bytes(key)) + len(data)
        meter.charge_io("txn.storage_io_per_state_slot_write")
        meter.charge_io("txn.storage_io_per_state_byte_write", size)
        slot, per_byte = schedule["txn.storage_fee_per_state_slot"], schedule["txn.storage_fee_per_state_byte"]
        if before is None:
            slot_deposit, byte_deposit = (slot, per_byte * size) if paid else (0, 0)
            meter.charge_storage(slot_deposit + byte_deposit)
        else:
            grown = per_byte * max(0, len(data) - len(before.data)) if paid else 0
            slot_deposit, byte_deposit = before.slot_deposit, before.byte_deposit + grown
            meter.charge_storage(grown)
        stored[key] = StateValue(data, slot_deposit, byte_deposit)
    return stored


def _finish(session: Session, snapshot: LedgerSnapshot, transaction: Transaction, charges: Charges) -> None:
    """Count the transaction, take the fee, and state it as the last event; none of it is charged."""
    session.meter = FreeMeter(snapshot.schedule)
    raw = transaction.raw
    session.module(TransactionValidation).count(raw.sender, transaction.nonce, raw.expiration_timestamp_secs)
    net = charges.total_charge_gas_units * raw.gas_unit_price - charges.storage_fee_refund_octas
    if transaction.payer != NOBODY and net:
        session.module(Coin).collect_fee(APTOS_COIN, transaction.payer, net)
    statement = TransactionFee.FeeStatement(**charges._asdict())
    kind = snapshot.code.struct(TransactionFee.FeeStatement, ())
    session.events.append(EmittedEvent(kind.kind.text, encode_bcs(kind.layout, store_value(kind.kind, statement))))


def _kept(
    snapshot: LedgerSnapshot, stored: dict[StateKey, StateValue | None], key: StateKey, data: bytes | None
) -> StateValue | None:
    """Return a written value with its deposit; what only the fee's collection wrote keeps the one it had."""
    if data is None:
        return None
    paid = stored.get(key) or snapshot.state.read(key, snapshot.version)
    return _stored(data) if paid is None else paid._replace(data=data)


def _stored(data: bytes | None) -> StateValue | None:
    return None if data is None else StateValue(data, 0, 0)
