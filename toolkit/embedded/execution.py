"""Running one view or one transaction over a snapshot of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.embedded.framework.account import Account, TransactionValidation
from toolkit.embedded.framework.aptos_coin import APTOS_COIN
from toolkit.embedded.framework.coin import Coin
from toolkit.embedded.framework.configuration import TransactionFee
from toolkit.embedded.meter import FREE, Charges, FreeMeter, Meter
from toolkit.embedded.outcomes import EXECUTED, VmError
from toolkit.embedded.session import EmittedEvent, Session, load_value, store_value
from toolkit.embedded.state import StateValue, resource_key, state_key_bytes
from toolkit.embedded.transaction import Output
from toolkit.move.bcs import decode_bcs, encode_bcs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolkit.embedded.code import BoundFunction, CodeSet
    from toolkit.embedded.schedule import Schedule
    from toolkit.embedded.state import StateKey, VersionedState
    from toolkit.embedded.transaction import Transaction
    from toolkit.move import TypeTag

__all__ = ["MAX_VIEW_GAS", "Snapshot", "execute", "run_payload", "run_unmetered", "run_view"]

#: Gas units one view may use (``max_gas_view_function`` of a node's configuration).
MAX_VIEW_GAS = 2_000_000

_NOBODY = "0x0"
_MICROSECONDS = 1_000_000
# Bytes of a signed transaction besides its payload: sender, four u64, chain id, an ed25519 authenticator.
_ENVELOPE_BYTES = 32 + 4 * 8 + 1 + 1 + 33 + 65


class Snapshot(NamedTuple):
    """One version of the ledger, as an execution reads it."""

    state: VersionedState
    version: int
    code: CodeSet
    schedule: Schedule
    timestamp_us: int
    chain_id: int


def run_view(
    snapshot: Snapshot,
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
    returned = _call(session, function, [*type_arguments, *_lifted(session, function, arguments)])
    kinds = function.return_kinds
    values = [returned] if len(kinds) == 1 else list(returned or ())
    plain = [store_value(kind, value) for kind, value in zip(kinds, values, strict=True)]
    return plain, meter.charges().total_charge_gas_units


def run_unmetered(snapshot: Snapshot, body: Callable[[Session], None], *, seed: bytes) -> Output:
    """Run what the ledger does by itself (genesis, a block's begin); it costs nothing and cannot fail."""
    session = Session(snapshot.state, snapshot.version, snapshot.code, FreeMeter(snapshot.schedule), seed=seed)
    body(session)
    writes = {key: _stored(data) for key, data in session.writes.items()}
    return Output(success=True, vm_status=EXECUTED, charges=FREE, writes=writes, events=tuple(session.events))


def execute(snapshot: Snapshot, transaction: Transaction, body: Callable[[Session], None], *, seed: bytes) -> Output:
    """Run a transaction: checks, the call, storage, fees.

    Parameters
    ----------
    snapshot : Snapshot
        What is read.
    transaction : Transaction
        What is asked for.
    body : callable
        Runs the payload in a session.
    seed : bytes
        What new addresses are derived from: the transaction's hash.

    Returns
    -------
    Output
        A transaction whose checks fail is discarded: gas 0, nothing written.
    """
    refusal = _refusal(snapshot, transaction)
    if refusal is not None:
        return Output(success=False, vm_status=refusal, charges=FREE, writes={}, events=(), discarded=True)
    meter = Meter(
        snapshot.schedule, max_gas_units=transaction.max_gas_amount, gas_unit_price=transaction.gas_unit_price
    )
    session = Session(snapshot.state, snapshot.version, snapshot.code, meter, seed=seed)
    deposits: dict[StateKey, StateValue | None] = {}
    vm_status, success = EXECUTED, True
    try:
        _charge_intrinsic(meter, _transaction_bytes(transaction))
        body(session)
        deposits = _charge_writes(snapshot, session, paid=transaction.gas_unit_price > 0)
        meter.check_limits()
    except VmError as error:
        session.rollback()
        deposits = {}
        vm_status, success = error.vm_status, False
        meter.storage_fee = meter.refund = 0
    charges = meter.charges()
    _finish(session, snapshot, transaction, charges)
    writes = {key: _kept(snapshot, deposits, key, data) for key, data in session.writes.items()}
    return Output(success, vm_status, charges, writes, tuple(session.events))


def run_payload(session: Session, function: BoundFunction, transaction: Transaction) -> None:
    """Run an entry function with its signers and the arguments of a transaction's payload.

    Raises
    ------
    VmError
        If the function is no entry function, an argument does not decode, or execution fails.
    """
    wanted = function.function
    if not wanted.mark.is_entry:
        raise VmError("INVALID_MAIN_FUNCTION_SIGNATURE", "function is not an entry function")
    call = transaction.payload
    if len(call.arguments) != len(function.parameters):
        raise VmError("NUMBER_OF_ARGUMENTS_MISMATCH")
    try:
        plain = [decode_bcs(layout, data) for layout, data in zip(function.parameters, call.arguments, strict=True)]
    except ValueError:
        raise VmError("FAILED_TO_DESERIALIZE_ARGUMENT") from None
    signers = [transaction.sender, *transaction.secondary_signers]
    if wanted.signers > len(signers):
        raise VmError("NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH")
    arguments = [*call.type_arguments, *signers[: wanted.signers], *_lifted(session, function, plain)]
    _call(session, function, arguments)


def _lifted(session: Session, function: BoundFunction, plain: Sequence[Any]) -> list[Any]:
    kinds = function.parameter_kinds
    return [load_value(kind, value, session) for kind, value in zip(kinds, plain, strict=True)]


def _call(session: Session, function: BoundFunction, arguments: Sequence[Any]) -> Any:
    """Call a contract's method; Python's own arithmetic errors are the VM's."""
    module = session.link(function.definition)
    try:
        return getattr(module, function.function.name)(*arguments)
    except (ZeroDivisionError, OverflowError) as error:
        raise VmError("ARITHMETIC_ERROR", str(error), location=function.definition.wire_id) from None


def _refusal(snapshot: Snapshot, transaction: Transaction) -> str | None:
    """Return the status name of the first check a transaction fails, or None."""
    return next((status for failed, status in _checks(snapshot, transaction) if failed), None)


def _checks(snapshot: Snapshot, transaction: Transaction) -> Iterator[tuple[bool, str]]:
    """Yield the checks before execution, in order: whether it fails, and the status it fails with."""
    schedule, price, gas = snapshot.schedule, transaction.gas_unit_price, transaction.max_gas_amount
    yield gas > schedule["txn.maximum_number_of_gas_units"], "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND"
    too_little = gas * schedule.scaling < schedule["txn.min_transaction_gas_units"]
    yield too_little, "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"
    yield price < schedule["txn.min_price_per_gas_unit"], "GAS_UNIT_PRICE_BELOW_MIN_BOUND"
    yield price > schedule["txn.max_price_per_gas_unit"], "GAS_UNIT_PRICE_ABOVE_MAX_BOUND"
    size_limit = schedule["txn.max_transaction_size_in_bytes"]
    yield _transaction_bytes(transaction) > size_limit, "EXCEEDED_MAX_TRANSACTION_SIZE"
    yield transaction.chain_id != snapshot.chain_id, "BAD_CHAIN_ID"
    expires_us = transaction.expiration_timestamp_secs * _MICROSECONDS
    yield expires_us <= snapshot.timestamp_us, "TRANSACTION_EXPIRED"
    if transaction.replay_protection_nonce is None:
        expected = _sequence_number(snapshot, transaction.sender)
        yield transaction.sequence_number < expected, "SEQUENCE_NUMBER_TOO_OLD"
        yield transaction.sequence_number > expected, "SEQUENCE_NUMBER_TOO_NEW"
    payer = transaction.fee_payer or transaction.sender
    too_poor = payer != _NOBODY and _balance(snapshot, payer) < gas * price
    yield too_poor, "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE"


def _sequence_number(snapshot: Snapshot, address: str) -> int:
    kind = snapshot.code.struct(Account.Account, ())
    value = snapshot.state.read(resource_key(address, kind.tag), snapshot.version)
    return 0 if value is None else int(decode_bcs(kind.layout, value.data)["sequence_number"])


def _balance(snapshot: Snapshot, address: str) -> int:
    kind = snapshot.code.struct(Coin.CoinStore, (APTOS_COIN,))
    value = snapshot.state.read(resource_key(address, kind.tag), snapshot.version)
    return 0 if value is None else int(decode_bcs(kind.layout, value.data)["coin"]["value"])


def _transaction_bytes(transaction: Transaction) -> int:
    """Return about how many bytes the signed transaction has."""
    call = transaction.payload
    names = len(call.module) + len(call.function) + 2
    types = sum(len(str(argument)) for argument in call.type_arguments)
    return _ENVELOPE_BYTES + 33 + names + types + sum(len(data) + 2 for data in call.arguments)


def _charge_intrinsic(meter: Meter, size: int) -> None:
    meter.charge("txn.min_transaction_gas_units")
    excess = size - meter.schedule["txn.large_transaction_cutoff"]
    if excess > 0:
        meter.charge("txn.intrinsic_gas_per_byte", excess)
    meter.charge_io("txn.storage_io_per_transaction_byte_write", size)


def _charge_writes(snapshot: Snapshot, session: Session, *, paid: bool) -> dict[StateKey, StateValue | None]:
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


def _finish(session: Session, snapshot: Snapshot, transaction: Transaction, charges: Charges) -> None:
    """Count the transaction, take the fee, and state it as the last event; none of it is charged."""
    session.meter = FreeMeter(snapshot.schedule)
    session.module(TransactionValidation).count(
        transaction.sender, orderless=transaction.replay_protection_nonce is not None
    )
    payer = transaction.fee_payer or transaction.sender
    net = charges.total_charge_gas_units * transaction.gas_unit_price - charges.storage_fee_refund_octas
    if payer != _NOBODY and net:
        session.module(Coin).collect_fee(APTOS_COIN, payer, net)
    statement = TransactionFee.FeeStatement(**charges._asdict())
    kind = snapshot.code.struct(TransactionFee.FeeStatement, ())
    session.events.append(EmittedEvent(kind.kind.text, encode_bcs(kind.layout, store_value(kind.kind, statement))))


def _kept(
    snapshot: Snapshot, deposits: dict[StateKey, StateValue | None], key: StateKey, data: bytes | None
) -> StateValue | None:
    """Return a written value with its deposit; what only the fee's collection wrote keeps the one it had."""
    if data is None:
        return None
    paid = deposits.get(key) or snapshot.state.read(key, snapshot.version)
    return _stored(data) if paid is None else paid._replace(data=data)


def _stored(data: bytes | None) -> StateValue | None:
    return None if data is None else StateValue(data, 0, 0)
