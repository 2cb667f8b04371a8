"""Run views and transactions on a snapshot of the ledger, including checks, payload, storage and fees."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit._present.messages import raised_at
from toolkit._present.text import plural
from toolkit.embedded._contract import ScriptContext, find_script
from toolkit.embedded._definitions import Function, FunctionMark
from toolkit.embedded._meter import FREE, Charges, Meter, call_in_row, free_meter
from toolkit.embedded._primitives import signer_of
from toolkit.embedded._session import LedgerSnapshot, Session, load_value, store_value
from toolkit.embedded._state import StateKey, StateValue, resource_key, state_key_size
from toolkit.embedded._transaction import Output, Transaction, encode_stored
from toolkit.embedded._vm_status import EXECUTED, AbortCode, MoveAbort, VmError
from toolkit.embedded.framework._account import Account, NonceValidation, TransactionValidation
from toolkit.embedded.framework._coin import APTOS_COIN, Coin
from toolkit.embedded.framework._configuration import TransactionFee
from toolkit.embedded.framework._multisig_account import MultisigAccount
from toolkit.embedded.framework._object import ObjectModule
from toolkit.errors import ContractError, InputError, SchemaError
from toolkit.move import StructTag, decode_bcs, encode_bcs, parse_type_tag
from toolkit.move._ids import address_from_bytes, address_to_bytes
from toolkit.wire._bcs_forms import whole
from toolkit.wire._bcs_requests import MULTISIG_PAYLOAD, EncodedScript
from toolkit.wire._on_chain import SUCCESS, EmittedEvent
from toolkit.wire._state_keys import struct_tag_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolkit.embedded._code import BoundFunction, StructType
    from toolkit.embedded._meter import Schedule
    from toolkit.embedded._transaction import Executable
    from toolkit.vm._code import FunctionUse, Instruction
    from toolkit.wire._signatures import SignatureModel

NO_PAYER = "0x0"
"""The fee payer of a simulation that charges no account."""

MAX_ORDERLESS_EXPIRATION_S = 100
"""Maximum number of seconds between the ledger time and the expiration of a transaction with a nonce.

The documented limit is 60 s. The framework's prologue adds slack for clocks that differ and for nodes that lag behind:
5 s at first, 40 s since 2025 (``MAX_EXP_TIME_SECONDS_FOR_ORDERLESS_TXNS`` in ``transaction_validation.move``). The
recorded node accepts 61 s; current nodes reject 600 s.
"""

# ``error::out_of_range(PROLOGUE_ECANT_PAY_GAS_DEPOSIT)``, the abort code of the framework's epilogue.
_CANNOT_PAY = AbortCode(0x203ED, "", "PROLOGUE_ECANT_PAY_GAS_DEPOSIT")

_OBJECT = "0x1::object::Object"
_OBJECT_CORE = StructTag("0x1", "object", "ObjectCore")

# The gas parameter of each instruction of scripts that make calls in a row; calls are charged by what is called.
_PRICES = {
    "CopyLoc": "copy_loc.base",
    "MoveLoc": "move_loc.base",
    "StLoc": "st_loc.base",
    "ImmBorrowLoc": "imm_borrow_loc",
    "MutBorrowLoc": "mut_borrow_loc",
    "Pop": "pop",
    "LdU64": "ld_u64",
    "Abort": "abort",
    "Ret": "ret",
}

_NUMBER_BYTES = 8  # of a sequence number

MAX_VIEW_GAS = 2_000_000
"""Maximum number of gas units that a view may use (``max_gas_view_function`` in a node's configuration)."""


def _problems(snapshot: LedgerSnapshot, transaction: Transaction, *, check_keys: bool) -> Iterator[str]:
    """Yield the status name of each check that a transaction does not pass, in the order in which a node makes them."""
    yield from _vm_problems(snapshot.schedule, transaction)
    yield from _prologue_problems(snapshot, transaction, check_keys=check_keys)


def _vm_problems(schedule: Schedule, transaction: Transaction) -> Iterator[str]:
    """Yield the problems that the VM finds, with signers and gas."""
    price, gas = transaction.raw.gas_unit_price, transaction.raw.max_gas_amount
    if len(set(transaction.signers)) < len(transaction.signers):
        yield "SIGNERS_CONTAIN_DUPLICATES"
    if transaction.size > schedule["txn.max_transaction_size_in_bytes"]:
        yield "EXCEEDED_MAX_TRANSACTION_SIZE"
    if gas > schedule["txn.maximum_number_of_gas_units"]:
        yield "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND"
    if gas * schedule.scaling < schedule["txn.min_transaction_gas_units"]:
        yield "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"
    if price < schedule["txn.min_price_per_gas_unit"]:
        yield "GAS_UNIT_PRICE_BELOW_MIN_BOUND"
    if price > schedule["txn.max_price_per_gas_unit"]:
        yield "GAS_UNIT_PRICE_ABOVE_MAX_BOUND"


def _prologue_problems(snapshot: LedgerSnapshot, transaction: Transaction, *, check_keys: bool) -> Iterator[str]:
    """Yield the problems that the framework's prologue finds, with time, chain, keys, replay and payment."""
    raw = transaction.raw
    now = snapshot.timestamp_us // 1_000_000
    if raw.expiration_timestamp_secs <= now:
        yield "TRANSACTION_EXPIRED"
    if raw.chain_id != snapshot.chain_id:
        yield "BAD_CHAIN_ID"
    sender, *others = transaction.who.by_account(raw.sender)
    if check_keys and _has_foreign_key(snapshot, [sender]):
        yield "INVALID_AUTH_KEY"
    yield from _replay_problems(snapshot, transaction, now)
    highest_fee = raw.max_gas_amount * raw.gas_unit_price
    if transaction.payer != NO_PAYER and not _can_pay(snapshot, transaction.payer, highest_fee):
        yield "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE"
    if transaction.who.payer is not None and len(transaction.who.secondary) != len(transaction.who.addresses):
        yield "SECONDARY_KEYS_ADDRESSES_COUNT_MISMATCH"
    if check_keys and _has_foreign_key(snapshot, others):
        yield "INVALID_AUTH_KEY"
    if transaction.multisig_address is not None:
        payload = None if transaction.executable is None else encode_stored(transaction.executable)
        multisig = _free_session(snapshot).module(MultisigAccount)
        problem = multisig.find_problem(raw.sender, transaction.multisig_address, payload)
        if problem is not None:
            yield problem


def _replay_problems(snapshot: LedgerSnapshot, transaction: Transaction, now: int) -> Iterator[str]:
    """Yield the status names of checks of the nonce, or else of the sequence number; `now` is in seconds."""
    raw = transaction.raw
    if transaction.nonce is not None:
        if raw.expiration_timestamp_secs > now + MAX_ORDERLESS_EXPIRATION_S:
            yield "TRANSACTION_EXPIRATION_TOO_FAR_IN_FUTURE"
        if _free_session(snapshot).module(NonceValidation).is_used(raw.sender, transaction.nonce, now):
            yield "NONCE_ALREADY_USED"
        return
    account = find_account(snapshot, raw.sender)
    expected = 0 if account is None else int(account["sequence_number"])
    if raw.sequence_number >= 2**63:
        yield "SEQUENCE_NUMBER_TOO_BIG"
    if raw.sequence_number < expected:
        yield "SEQUENCE_NUMBER_TOO_OLD"
    if raw.sequence_number > expected:
        yield "SEQUENCE_NUMBER_TOO_NEW"


def find_account(snapshot: LedgerSnapshot, address: str) -> Mapping[str, Any] | None:
    """Return the account resource at a canonical address, or None if it has not been created."""
    return _framework_resource(snapshot, snapshot.code.struct(Account.Account, ()), address)


def _framework_resource(snapshot: LedgerSnapshot, kind: StructType, address: str) -> Mapping[str, Any] | None:
    """Return a framework resource without charging for it, or None if it does not exist."""
    value = snapshot.state.read(resource_key(address, kind.tag), snapshot.version)
    return None if value is None else snapshot.code.decoded(kind.kind.text, value.data)


def _has_foreign_key(snapshot: LedgerSnapshot, signers: Iterable[tuple[str, SignatureModel]]) -> bool:
    """Return True if the public key of a signer does not belong to its account."""
    for address, signature in signers:
        key = signature.authentication_key()
        account = None if key is None else find_account(snapshot, address)
        if key not in {None, address_to_bytes(address) if account is None else account["authentication_key"]}:
            return True
    return False


def _can_pay(snapshot: LedgerSnapshot, address: str, octas: int) -> bool:
    """Return True if an account can pay an amount; coins are read first, because they usually suffice."""
    store = _framework_resource(snapshot, snapshot.code.struct(Coin.CoinStore, (APTOS_COIN,)), address)
    coins = 0 if store is None else store["coin"]["value"]
    return coins >= octas or _free_session(snapshot).module(Coin).balance(APTOS_COIN, address) >= octas


def _free_session(snapshot: LedgerSnapshot) -> Session:
    return Session(snapshot, free_meter())


def run_executable(session: Session, transaction: Transaction) -> None:
    """Run a transaction's payload.

    Raises
    ------
    VmError
        If the payload cannot be run, or if it fails.
    """
    if transaction.multisig_address is not None:
        _run_for_multisig(session, transaction, transaction.multisig_address)
    elif transaction.executable is not None:
        _run(session, transaction.executable, transaction.signers)


def _contract_values(session: Session, function: BoundFunction, plain: Sequence[Any]) -> list[Any]:
    """Convert decoded values to the values that contract code uses."""
    return [load_value(kind, value, session) for kind, value in zip(function.parameter_kinds, plain, strict=True)]


def _check_objects(session: Session, function: BoundFunction, plain: Sequence[Any]) -> None:
    """Abort if an object among the arguments of a caller does not exist."""
    for kind, value in zip(function.parameter_kinds, plain, strict=True):
        tag = parse_type_tag(kind.text)
        if isinstance(tag, StructTag) and tag.base == _OBJECT:  # its constructor checks the object and its resource
            module = session.module(ObjectModule)
            if session.committed_resource(str(value), _OBJECT_CORE) is None:
                module.abort(module.EOBJECT_DOES_NOT_EXIST)
            [wanted] = tag.type_arguments
            if not isinstance(wanted, StructTag) or session.committed_resource(str(value), wanted) is None:
                module.abort(module.ERESOURCE_DOES_NOT_EXIST)


def call_contract(session: Session, location: str, body: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call a contract's method or a script; convert Python errors to VM errors, or add the contract's line to them.

    Raises
    ------
    VmError
        If the call aborts or fails as it would in Move.
    ContractError
        If the contract breaks a rule of the model, or its Python code fails.
    """
    try:
        returned = body(*arguments)
    except VmError as error:
        error.location = error.location or location
        raise
    except (ZeroDivisionError, OverflowError) as error:
        raise VmError("ARITHMETIC_ERROR", str(error), location=location) from None
    except IndexError:
        raise VmError("VECTOR_OPERATION_ERROR", location=location) from None
    except RecursionError:
        raise VmError("EXECUTION_STACK_OVERFLOW", location=location) from None
    except InputError as error:
        # With the traceback, in which a notebook shows the contract's own lines.
        raise ContractError(f"{location}: {error}{raised_at(error)}").with_traceback(error.__traceback__) from None
    except Exception as error:
        raise ContractError(f"{location}: {type(error).__name__}: {error}{raised_at(error)}") from error
    if session.failure is not None:  # an abort that the contract has caught with a bare except
        raise session.failure
    return returned


def _call(session: Session, bound: BoundFunction, arguments: Sequence[Any]) -> list[Any]:
    """Call a function of a contract; return its values, ready to be encoded."""
    module = session.link(bound.definition)
    method, kinds = getattr(module, bound.function.name), bound.return_kinds

    def body(*arguments: Any) -> list[Any]:
        try:
            returned = method(*arguments)
        except AssertionError as error:  # ``assert condition, self.E_CODE`` aborts with the code
            if not error.args or not isinstance(error.args[0], AbortCode | int):
                raise
            module.abort(error.args[0])
        values = [returned] if len(kinds) == 1 else list(returned or ())
        if len(values) != len(kinds):
            raise ContractError(f"expected {plural(len(kinds), 'returned value')}, got {returned!r:.80}")
        return [store_value(kind, value) for kind, value in zip(kinds, values, strict=True)]

    location = f"{bound.definition.wire_id}::{bound.function.name}"
    values: list[Any] = call_contract(session, location, body, arguments)
    return values


def _run(session: Session, executable: Executable, signers: Sequence[str]) -> None:
    """Run an entry function, a declared script, or a script that makes calls in a row."""
    if isinstance(executable, EncodedScript):
        known = find_script(executable.code)
        if known is None:
            _run_straight(session, executable, signers)
            return
        bound = session.code.script(known.function, executable.type_arguments)
        encoded = [argument.to_bcs() for argument in executable.arguments]
        body = session.meter.named(f"script {known.name}", known.body)
        run = partial(call_contract, session, "", partial(body, ScriptContext(session)))
    else:
        wanted = executable.function
        bound = session.code.function(wanted.address, wanted.module, wanted.name, executable.type_arguments)
        if not bound.function.mark.is_entry:
            raise VmError("EXECUTE_ENTRY_FUNCTION_CALLED_ON_NON_ENTRY_FUNCTION")
        encoded = list(executable.arguments)
        run = partial(_call, session, bound)
    plain = decoded_arguments(bound, encoded, signers=len(signers))
    _check_objects(session, bound, plain)
    given = map(signer_of, signers[: bound.function.signers])
    run([*bound.type_arguments, *given, *_contract_values(session, bound, plain)])


def _run_straight(session: Session, executable: EncodedScript, signers: Sequence[str]) -> None:
    """Run a script that makes calls in a row. Its locals hold decoded values, which are converted for each call."""
    # Late: the machine, of which this is the reader of scripts, is imported only for such a script.
    from toolkit.embedded._straight import read_straight, signer_count

    if executable.type_arguments:
        raise VmError("NUMBER_OF_TYPE_ARGUMENTS_MISMATCH")
    code = session.code
    script = read_straight(code, executable.code)
    count = signer_count(script)
    kinds = tuple(code.kind(parse_type_tag(str(kind))) for kind in script.main.parameters[count:])
    bound = code.script(Function("main", FunctionMark(is_entry=True), (), count, kinds, ()), ())
    plain = decoded_arguments(bound, [one.to_bcs() for one in executable.arguments], signers=len(signers))
    _check_objects(session, bound, plain)
    _call_in_row(session, script.main.code, [*signers[:count], *plain])


def _call_in_row(session: Session, instructions: Iterable[Instruction], parameters: Sequence[Any]) -> None:
    """Run the instructions of a checked script that makes calls in a row."""
    held, stack, calls = dict(enumerate(parameters)), list[Any](), 0
    for name, operand in instructions:
        if name in _PRICES:
            session.meter.charge(f"instr.{_PRICES[name]}")
        match name:
            case "MoveLoc":
                stack.append(held.pop(operand))
            case "CopyLoc" | "ImmBorrowLoc" | "MutBorrowLoc":  # a function of a contract has no parameter ``&mut T``
                stack.append(held[operand])
            case "StLoc":
                held[operand] = stack.pop()
            case "Pop":
                stack.pop()
            case "LdU64":
                stack.append(operand)
            case "Abort":
                raise MoveAbort("", AbortCode(stack.pop(), ""))
            case "Call" | "CallGeneric":
                run = session.meter.named(call_in_row(calls), _call_from_script)
                first = len(stack) - len(operand.function.parameters)
                stack[first:] = run(session, operand, stack[first:])
                calls += 1


def _call_from_script(session: Session, use: FunctionUse, plain: Sequence[Any]) -> list[Any]:
    """Call a function with decoded values; return its values, decoded."""
    module, types = use.function.module, tuple(parse_type_tag(str(one)) for one in use.arguments or ())
    bound = session.code.function(address_from_bytes(module.address), module.name, use.function.name, types)
    count = bound.function.signers
    signers, values = map(signer_of, plain[:count]), _contract_values(session, bound, plain[count:])
    return _call(session, bound, [*types, *signers, *values])


def decoded_arguments(bound: BoundFunction, encoded: Sequence[bytes], *, signers: int = 0) -> list[Any]:
    """Return the decoded arguments of a call.

    Raises
    ------
    VmError
        If the number of arguments or signers is wrong, or an argument does not have the type of its parameter.
    """
    if len(encoded) != len(bound.parameters):
        raise VmError("NUMBER_OF_ARGUMENTS_MISMATCH")
    if bound.function.signers not in {0, signers}:
        raise VmError("NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH")
    try:
        return list(map(decode_bcs, bound.parameters, encoded))
    except SchemaError:
        raise VmError("FAILED_TO_DESERIALIZE_ARGUMENT") from None


def _run_for_multisig(session: Session, transaction: Transaction, address: str) -> None:
    """Run a payload as a multisig account: the transaction's payload, or the next payload stored on chain.

    The transaction succeeds even if the payload fails: its writes are undone, and an event reports the failure.
    """
    multisig = session.module(MultisigAccount)
    executor = transaction.raw.sender
    stored = multisig.next_payload(address)
    try:
        executable = transaction.executable or whole(MULTISIG_PAYLOAD, stored)
    except SchemaError:
        raise VmError("FAILED_TO_DESERIALIZE_ARGUMENT", "Failed to deserialize multisig payload") from None
    writes, events = dict(session.writes), len(session.events)
    try:
        _run(session, executable, (address,))
    except VmError as error:
        if error.status == "OUT_OF_GAS":
            raise
        session.writes = writes
        del session.events[events:]
        multisig.record_failure(executor, address, stored, error)
    else:
        multisig.record_success(executor, address, stored)


def run_view(
    snapshot: LedgerSnapshot,
    function: BoundFunction,
    arguments: Sequence[Any],
    *,
    meter: Meter | None = None,
) -> tuple[list[Any], int]:
    """Run a view function.

    Parameters
    ----------
    snapshot : LedgerSnapshot
        Version to read.
    function : BoundFunction
        The function with its type arguments.
    arguments : sequence
        Decoded arguments.
    meter : Meter, optional
        Meter to charge; by default, a new one that allows `MAX_VIEW_GAS`.

    Returns
    -------
    values : list
        Returned values, ready to be encoded.
    gas_used : int
        Gas units used.

    Raises
    ------
    VmError
        If execution aborts, fails or runs out of gas.
    """
    meter = meter or Meter(snapshot.schedule, max_gas_units=MAX_VIEW_GAS)
    session = Session(snapshot, meter, seed=b"view")
    _check_objects(session, function, arguments)
    values = _call(session, function, [*function.type_arguments, *_contract_values(session, function, arguments)])
    return values, meter.charges().total_charge_gas_units


def run_unmetered(snapshot: LedgerSnapshot, body: Callable[[Session], None], *, seed: bytes) -> Output:
    """Run a transaction that the ledger makes (genesis or the start of a block), without charges."""
    session = Session(snapshot, free_meter(), seed=seed)
    body(session)
    writes = {key: None if data is None else StateValue(data, 0, 0) for key, data in session.writes.items()}
    events = tuple(session.events)
    return Output(status=SUCCESS, vm_status=EXECUTED, charges=FREE, writes=writes, events=events, tables=session.tables)


def execute(
    snapshot: LedgerSnapshot,
    transaction: Transaction,
    body: Callable[[Session, Transaction], None] = run_executable,
    *,
    check_keys: bool = False,
    meter: Meter | None = None,
) -> Output:
    """Run a transaction: make the checks, run the payload, and charge storage and fees.

    Parameters
    ----------
    snapshot : LedgerSnapshot
        Version to read.
    transaction : Transaction
        The signed transaction.
    body : callable, optional
        Runs the transaction in a session; by default, `run_executable`, which runs the payload.
    check_keys : bool, default False
        Whether public keys must belong to the accounts; the ledger signs its own transactions with placeholders.
    meter : Meter, optional
        A meter with the transaction's gas amount and price; a new one by default.

    Returns
    -------
    Output
        A transaction that fails a check is discarded: it uses no gas and writes nothing.
    """
    problem = next(_problems(snapshot, transaction, check_keys=check_keys), None)
    if problem is not None:  # nothing runs and nothing is charged
        return Output(
            status=VmError(problem).outcome,
            vm_status=problem,
            charges=FREE,
            writes={},
            events=(),
            discarded=True,
        )
    raw = transaction.raw
    if meter is None:
        meter = Meter(snapshot.schedule, max_gas_units=raw.max_gas_amount, gas_unit_price=raw.gas_unit_price)
    session = Session(snapshot, meter, seed=bytes.fromhex(transaction.hash[2:]))
    failure: VmError | None = None
    try:
        meter.charge("txn.min_transaction_gas_units")
        excess = transaction.size - snapshot.schedule["txn.large_transaction_cutoff"]
        if excess > 0:
            meter.charge("txn.intrinsic_gas_per_byte", excess)
        _open(session, transaction)
        body(session, transaction)
        stored = _charge_writes(session, transaction)
        meter.check_limits()
        charges = _finish(session, transaction)
    except VmError as error:
        failure, session.meter = error, meter
        meter.storage_fee = meter.refund = 0
        stored = _undo(session, transaction)
        charges = _finish(session, transaction)
    writes: dict[StateKey, StateValue | None] = {}
    for key, data in session.writes.items():
        # A value that is written only because the fee is collected keeps its deposit.
        paid = stored.get(key) or session.committed(key) or StateValue(b"", 0, 0)
        writes[key] = None if data is None else paid._replace(data=data)
    return Output(
        status=SUCCESS if failure is None else failure.outcome,
        vm_status=EXECUTED if failure is None else failure.vm_status,
        charges=charges,
        writes=writes,
        events=tuple(session.events),
        tables=session.tables,
    )


def _open(session: Session, transaction: Transaction) -> None:
    """Store the nonce of an orderless transaction, or create the account of a sender that does not have one.

    The sender pays for the storage, even if the transaction fails, and for the creation of the account.
    """
    raw, meter = transaction.raw, session.meter
    if transaction.nonce is not None:
        session.meter = free_meter()
        session.module(NonceValidation).use_nonce(raw.sender, transaction.nonce, raw.expiration_timestamp_secs)
        session.meter = meter
    elif find_account(session.snapshot, raw.sender) is None:
        session.module(Account).create_account_if_does_not_exist(raw.sender)


def _undo(session: Session, transaction: Transaction) -> dict[StateKey, StateValue]:
    """Discard the writes of a failed transaction, except those of `_open`; return the stored values with deposits."""
    session.rollback()
    try:
        _open(session, transaction)
        return _charge_writes(session, transaction) if session.writes else {}
    except VmError:  # no gas is left
        session.rollback()
        return {}


def _event_size(event: EmittedEvent) -> int:
    """Return the bytes charged for an event: type and data, and if it has a handle, the key and sequence number."""
    handle = 0 if event.key is None else len(event.key) + _NUMBER_BYTES
    return 1 + len(struct_tag_bytes(event.type)) + len(event.data) + handle


def _charge_writes(session: Session, transaction: Transaction) -> dict[StateKey, StateValue]:
    """Charge for a transaction, its events and its writes; return the values with the deposits paid for them."""
    meter, schedule, is_paid = session.meter, session.snapshot.schedule, transaction.raw.gas_unit_price > 0
    slot_price = schedule["txn.storage_fee_per_state_slot"] if is_paid else 0
    byte_price = schedule["txn.storage_fee_per_state_byte"] if is_paid else 0
    meter.charge_io("txn.storage_io_per_transaction_byte_write", transaction.size)
    for event in session.events:
        meter.charge_io("txn.storage_io_per_event_byte_write", _event_size(event), event)
    stored: dict[StateKey, StateValue] = {}
    for key, data in session.writes.items():
        before = session.committed(key)
        deposit = 0 if before is None else before.slot_deposit + before.byte_deposit
        meter.charge_io("txn.storage_io_per_state_slot_write", 1, key)
        if data is None:
            meter.refund += deposit
            continue
        size = state_key_size(key) + len(data)
        meter.charge_io("txn.storage_io_per_state_byte_write", size, key)
        if before is None:
            value = StateValue(data, slot_price, byte_price * size)
        else:  # added bytes are paid for, but the deposit never exceeds that of a new value of this size
            grown = byte_price * max(0, len(data) - len(before.data))
            added = max(0, min(grown, byte_price * size - before.byte_deposit))
            value = StateValue(data, before.slot_deposit, before.byte_deposit + added)
        meter.charge_storage(value.slot_deposit + value.byte_deposit - deposit, key)
        stored[key] = value
    return stored


def _finish(session: Session, transaction: Transaction) -> Charges:
    """Count the transaction, collect the fee and emit the fee statement as the last event, all without charges.

    Returns
    -------
    Charges
        The charges that are paid.

    Raises
    ------
    MoveAbort
        If the payer's balance is below the fee.
    """
    raw, charges = transaction.raw, session.meter.charges()
    session.meter = free_meter()
    session.module(TransactionValidation).count(raw.sender, transaction.nonce, raw.expiration_timestamp_secs)
    net = charges.total_charge_gas_units * raw.gas_unit_price - charges.storage_fee_refund_octas
    if transaction.payer != NO_PAYER and net:
        try:
            session.module(Coin).collect_fee(APTOS_COIN, transaction.payer, net)
        except MoveAbort:  # the transaction has spent what its fee needs
            raise MoveAbort("0x1::transaction_validation", _CANNOT_PAY) from None
    statement = TransactionFee.FeeStatement(**charges._asdict())
    kind = session.snapshot.code.struct(TransactionFee.FeeStatement, ())
    session.events.append(EmittedEvent(kind.kind.text, encode_bcs(kind.layout, store_value(kind.kind, statement))))
    return charges
