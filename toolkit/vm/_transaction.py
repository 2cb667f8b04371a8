"""A transaction from prologue to epilogue.

`execute` reads the transaction and the configuration of the ledger, and is one visible sequence of steps. Each step is
a session of the machine. Its changes go to an overlay, so that a failed payload is dropped by forgetting it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from toolkit.errors import SchemaError, Unsupported
from toolkit.vm import _features as flags
from toolkit.vm import _gas_versions as since
from toolkit.vm._arguments import is_signer, make_arguments, may_be_sent
from toolkit.vm._binary import version_of
from toolkit.vm._charges import ChangeCharges, check_limits
from toolkit.vm._code import PUBLIC
from toolkit.vm._environment import MAINNET, Environment, boundary, framework_resource
from toolkit.vm._errors import MoveError
from toolkit.vm._interpreter import Machine
from toolkit.vm._metadata import RANDOMNESS, is_unstable
from toolkit.vm._module import read_module, read_script
from toolkit.vm._natives._publishing import Requests
from toolkit.vm._prologue import intrinsic_gas, keyless_gas, provided_payload, run_prologue
from toolkit.vm._publish import charge_bundle, check_bundle, check_calls, check_code, initializer
from toolkit.vm._results import SUCCESS, EmittedEvent, Execution, Status, Write, status_of
from toolkit.vm._state import Change, WriteKind, module_key, write_order
from toolkit.vm._straight import check_straight, is_straight
from toolkit.vm._transaction_run import (
    EPILOGUE,
    MULTISIG,
    ON_ABORT,
    PAYLOAD,
    VALIDATION,
    CalledFunction,
    TransactionRun,
    called_function,
    signer_for,
)
from toolkit.vm._types import FRAMEWORK, ModuleId, Type, from_tag, struct_modules, substituted
from toolkit.vm._values import signer
from toolkit.wire import SignedTransaction
from toolkit.wire import _bcs_forms as bcs
from toolkit.wire import _bcs_requests as requests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._code import FunctionDefinition
    from toolkit.vm._state import Event, Overlay, Read
    from toolkit.vm._values import Value

_PAYER_CANNOT_PAY = (2 << 16) + 1005  # in the epilogue


def execute(
    transaction: bytes,
    read: Read,
    *,
    simulate: bool = False,
    log: bool = False,
    transaction_index: int | None = None,
    usage: tuple[int, int] | None = None,
) -> Execution:
    """Execute a transaction.

    Ed25519 signatures are checked, with the library cryptography. Those of other schemes are not: the ledger has
    checked them.

    Parameters
    ----------
    transaction : bytes
        BCS of a signed transaction.
    read : callable
        Takes a state key (BCS) and returns None if it is absent, or (value, metadata) with metadata (slot deposit,
        bytes deposit, creation time in microseconds) or None.
    simulate : bool, default False
        Whether to run as nodes simulate: keys and the fee payer may be missing, the transaction has no index, and
        the seed of randomness, which a node draws for each simulation, is zeros.
    log : bool, default False
        Whether to log every charge; needed for `log`, `profile` and `trace` of the result.
    transaction_index : int, optional
        Index in its block; only the monotonic counter shows it.
    usage : (int, int), optional
        Items and bytes of the whole state, for code that asks for them.

    Returns
    -------
    Execution

    Raises
    ------
    Unsupported
        If something is needed that the machine does not implement; the message names it.
    InputError, SchemaError
        If the bytes are not a transaction.

    Examples
    --------
    The state must have the configuration of a ledger:

    >>> from toolkit import vm
    >>> from toolkit.wire import EntryFunction, SimulationRequest
    >>> from toolkit.wire._bcs_requests import signed_transaction
    >>> request = SimulationRequest(EntryFunction("0xcafe::shop::open"), sender="0xa")
    >>> numbers = {"chain_id": 4, "sequence_number": 0, "max_gas_amount": 9, "gas_unit_price": 100}
    >>> transaction = signed_transaction(request, **numbers, expiration_timestamp_secs=0).to_bcs()
    >>> vm.execute(transaction, {}.get, simulate=True)
    Traceback (most recent call last):
        ...
    toolkit.errors.Unsupported: a state without 0x1::features::Features
    """
    signed = SignedTransaction.from_bcs(transaction)
    with boundary():
        environment = Environment(read, usage)
        run = TransactionRun(signed, environment, simulate=simulate, log=log, transaction_index=transaction_index)
        return _run_all(run)


def _run_all(run: TransactionRun) -> Execution:
    """Run all steps; an error outside of the payload discards the transaction."""
    try:
        run_prologue(run)
        machine = run.machine(PAYLOAD)
        if run.account_is_new:
            _create_account(machine, run.sender)
        return _result(run, _run_payload(run, machine))
    except MoveError as error:
        status = Status("discard", error.status, message=error.message, sub_status=error.sub_status)
    return Execution(run.meter, run.trace, status)


def _run_payload(run: TransactionRun, machine: Machine) -> Status:
    """Run the payload, charge its changes and run the epilogue."""
    try:
        _charge_intrinsic(run)
        if run.multisig is not None:
            state, events = _run_multisig(run, machine, run.multisig)
        else:
            if isinstance(run.executable, requests.EncodedScript):
                run_script(run, machine, run.executable)
            else:
                assert run.called is not None  # noqa: S101 - the prologue has seen to it
                run_entry(run, machine, run.called, [run.sender, *run.signers.addresses])
            state, events = _published_and_charged(run, machine)
    except MoveError as error:
        return _failed(run, error)
    try:
        run.state, run.events = _epilogue(run, state, events)
    except MoveError as error:
        if error.location == VALIDATION and error.sub_status == _PAYER_CANNOT_PAY:
            return _failed(run, error)
        raise MoveError("UNEXPECTED_ERROR_FROM_KNOWN_MOVE_FUNCTION") from None
    return SUCCESS


def _failed(run: TransactionRun, error: MoveError) -> Status:
    """Drop what the payload did, and charge for it."""
    status = status_of(error, run.features, run.schedule.version, run.loader.attributes)
    if status.kind == "discard":
        raise error
    run.refund = 0
    if run.account_is_new:
        _create_account_again(run)
    try:
        run.state, run.events = _epilogue(run, run.state, run.events)
    except MoveError:
        raise MoveError("UNEXPECTED_ERROR_FROM_KNOWN_MOVE_FUNCTION") from None
    return status


def _epilogue(run: TransactionRun, state: Overlay, events: list[Event]) -> tuple[Overlay, list[Event]]:
    """Take the gas, raise the sequence number and emit the fee statement."""
    machine = run.machine(EPILOGUE, state, metered=False)
    machine.run_named(VALIDATION, *_epilogue_call(run))
    if flags.EMIT_FEE_STATEMENT in run.features and flags.MODULE_EVENTS in run.features:
        statement = [run.gas_used, *run.fee]
        machine.run_named(ModuleId(FRAMEWORK, "transaction_fee"), "emit_fee_statement", [statement])
    final, events = state.after(machine.session.changes()), events + machine.session.events
    check_limits(final, events, run.schedule)
    return final, events


def _create_account(machine: Machine, address: bytes) -> None:
    machine.run_named(ModuleId(FRAMEWORK, "account"), "create_account_if_does_not_exist", [address])


def _create_account_again(run: TransactionRun) -> None:
    """Make the sender's account after a failure; without gas if what is left does not suffice."""
    machine = run.machine(ON_ABORT)
    try:
        _create_account(machine, run.sender)
    except MoveError:
        machine = run.machine(ON_ABORT, metered=False)
        _create_account(machine, run.sender)
    run.state = run.state.after(machine.session.changes())
    run.events = run.events + machine.session.events
    with suppress(MoveError):
        run.refund = _charge_changes(run, run.state, run.events)


def _charge_intrinsic(run: TransactionRun) -> None:
    run.meter.charge(intrinsic_gas(run), "INTRINSIC", f"size={run.size}")
    if keyless := keyless_gas(run):
        run.meter.charge(keyless, "KEYLESS")


def _run_multisig(run: TransactionRun, machine: Machine, account: bytes) -> tuple[Overlay, list[Event]]:
    """Run what a multisig account has approved. If that fails, the transaction succeeds nevertheless."""
    arguments = [account, bytearray(provided_payload(run))]
    stored = bytes(machine.run_named(MULTISIG, "get_next_transaction_payload", arguments)[0])
    try:
        payload = bcs.whole(requests.MULTISIG_PAYLOAD, stored)
    except SchemaError:
        payload = None
    if not isinstance(payload, requests.EncodedEntryFunction):
        raise MoveError("FAILED_TO_DESERIALIZE_ARGUMENT")
    state, events = run.state, run.events
    cleanup = "successful_transaction_execution_cleanup"
    outcome: list[Value] = [run.sender, account, bytearray(stored)]
    try:
        run_entry(run, machine, called_function(payload), [account])
        state, events = _published_and_charged(run, machine)
    except MoveError as error:
        cleanup = "failed_transaction_execution_cleanup"
        outcome.append(_multisig_error(error))
    cleaning = run.machine(EPILOGUE, state, metered=False)
    cleaning.run_named(MULTISIG, cleanup, outcome)
    return state.after(cleaning.session.changes()), events + cleaning.session.events


def _published_and_charged(run: TransactionRun, machine: Machine) -> tuple[Overlay, list[Event]]:
    """Publish what the payload asks for and charge all changes; return the state and the events with them."""
    publish(run, machine)
    state = run.state.after(machine.session.changes())
    state.apply({key: Change(code, WriteKind.CODE) for key, code in run.published.items()})
    events = run.events + machine.session.events
    check_limits(state, events, run.schedule)
    run.refund = _charge_changes(run, state, events)
    return state, events


def _charge_changes(run: TransactionRun, state: Overlay, events: list[Event]) -> int:
    charges = ChangeCharges(state, events, run.meter, run.features, run.now())
    return charges.charge(run.size, run.raw.gas_unit_price)


def _epilogue_call(run: TransactionRun) -> tuple[str, list[Value]]:
    """Return the name of the epilogue and its arguments."""
    raw = run.raw
    rest = [run.refund, raw.gas_unit_price, raw.max_gas_amount, run.meter.units]
    if run.is_unified:
        arguments = [signer(run.sender), signer(run.payer), *rest, run.simulate]
        if flags.PAYLOAD_V2 in run.features:
            return "unified_epilogue_v2", [*arguments, run.nonce is not None]
        return "unified_epilogue", arguments
    extended = flags.SIMULATION_ENHANCEMENT in run.features
    name, who = "epilogue", [signer(run.sender)]
    if run.signers.payer_address is not None:
        name, who = "epilogue_gas_payer", [signer(run.sender), run.payer]
    more = [run.simulate] if extended else []
    return name + "_extended" * extended, [*who, *rest, *more]


def _result(run: TransactionRun, status: Status) -> Execution:
    writes = {}
    for key in sorted(run.state.changes, key=write_order):
        change, op = run.state.changes[key], run.state.operation(key)
        metadata = change.metadata
        # No deposit for what is not charged: what the epilogue creates, and all of it at a gas price of 0.
        if op == "create" and metadata is None and change.kind is not WriteKind.DELTA:
            metadata = (0, 0, run.now())
        writes[key] = Write(op, change.value, metadata)
    events = [EmittedEvent(str(event.type), event.key, event.sequence_number, event.data) for event in run.events]
    return Execution(run.meter, run.trace, status, run.gas_used, run.fee, events, writes)


def _multisig_error(error: MoveError) -> Value:
    """Return the error of a multisig payload as the cleanup takes it: location, type and code."""
    location, kind, code = "", "VMError", error.number
    if error.location is not None:
        module = error.location
        where = f"{module.address.hex()}::{module.name}" if isinstance(module, ModuleId) else "Script"
        if error.status == "ABORTED" and error.sub_status is not None:
            location, kind, code = where, "MoveAbort", error.sub_status
        elif 4000 <= error.number < 5000 and error.offset is not None:
            location, kind = where, "MoveExecutionFailure"
    return [[bytearray(location.encode())], [bytearray(kind.encode())], code]


def run_entry(run: TransactionRun, machine: Machine, called: CalledFunction, signers: Sequence[bytes]) -> None:
    loader, meter = run.loader, run.meter
    _charge_modules(run, [called.module], called.types)
    function = loader.function(called.module, called.name)
    loader.check_constraints(called.types, function.type_parameters)
    if function.is_native:
        raise MoveError("USER_DEFINED_NATIVE_NOT_ALLOWED")
    attributes = loader.module(called.module).attributes
    if function.visibility != PUBLIC and attributes.of_function(called.name, RANDOMNESS) is not None:
        machine.session.unbiasable = True
    values = _call_values(machine, function, called.types, called.arguments, signers)
    if not function.is_entry:
        raise MoveError("EXECUTE_ENTRY_FUNCTION_CALLED_ON_NON_ENTRY_FUNCTION")
    machine.meter = meter
    machine.run(loader.code(function, called.types), values)


def _charge_modules(run: TransactionRun, modules: Sequence[ModuleId], types: Sequence[Type]) -> None:
    """Charge the module of an entry function, or those that a script uses, and those of type arguments."""
    loader, meter = run.loader, run.meter
    if loader.lazy:
        loader.visit_lazily([*modules, *struct_modules(types)], meter)
    else:
        loader.visit_all(modules, meter)
        if run.schedule.version >= since.TYPE_ARGUMENTS:
            loader.visit_all(struct_modules(types), meter)


def run_script(run: TransactionRun, machine: Machine, script: requests.EncodedScript) -> None:
    loader = run.loader
    serialized = any(one.kind == "serialized" for one in script.arguments)
    if serialized and flags.SERIALIZED_SCRIPT_ARGUMENTS not in run.features:
        raise MoveError("FEATURE_UNDER_GATING").at("script")
    _check_format(run, script.code)
    _refuse_governance(run)
    try:
        code = read_script(script.code)
    except MoveError as error:
        message = f"[VM] deserializer for script returned error: {error.message}"
        raise MoveError("CODE_DESERIALIZATION_ERROR", message) from None
    if is_straight(code.main):
        check_straight(code.main, code.struct_handles)
    types = tuple(map(from_tag, script.type_arguments))
    _charge_modules(run, code.dependencies, types)
    if run.environment.chain_id == MAINNET and is_unstable(code.metadata):
        raise MoveError("UNSTABLE_BYTECODE_REJECTED")
    if any(str(one.module) == "0x1::event" and one.name == "emit" for one in code.handles):
        raise MoveError("INVALID_OPERATION_IN_SCRIPT")
    check_calls(loader, None, code.handles)
    loader.check_constraints(types, code.main.type_parameters)
    arguments = tuple(argument.to_bcs() for argument in script.arguments)
    values = _call_values(machine, code.main, types, arguments, [run.sender, *run.signers.addresses])
    machine.run(loader.code(code.main, types), values)


def _check_format(run: TransactionRun, code: bytes) -> None:
    """Check that the ledger accepts the version of the binary format."""
    newest = max((version for version, flag in flags.FORMATS.items() if flag in run.features), default=5)
    if version_of(code) > newest:
        raise MoveError("CODE_DESERIALIZATION_ERROR", f"bytecode version {version_of(code)}")


def _refuse_governance(run: TransactionRun) -> None:
    """Refuse scripts that a vote has approved: they have limits of their own."""
    approved = framework_resource(run.environment.base, "aptos_governance::ApprovedExecutionHashes")
    if approved is not None and run.script_hash in approved:
        raise Unsupported("scripts that governance has approved")


def _call_values(
    machine: Machine,
    function: FunctionDefinition,
    types: tuple[Type, ...],
    arguments: tuple[bytes, ...],
    signers: Sequence[bytes],
) -> list[Value]:
    """Return the arguments of a function: the signers, then what the transaction carries."""
    if function.results:
        raise MoveError("INVALID_MAIN_FUNCTION_SIGNATURE")
    kinds = substituted(function.parameters, types)
    count = sum(map(is_signer, kinds))
    rest = kinds[count:]
    if not all(may_be_sent(machine, kind) for kind in rest):
        raise MoveError("INVALID_MAIN_FUNCTION_SIGNATURE")
    if len(rest) != len(arguments):
        raise MoveError("NUMBER_OF_ARGUMENTS_MISMATCH")
    if count and count != len(signers):
        raise MoveError("NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH")
    # A function without signers does not see who signs.
    values = [signer_for(kind, address) for kind, address in zip(kinds[:count], signers, strict=False)]
    return values + make_arguments(machine, rest, arguments)


def publish(run: TransactionRun, machine: Machine) -> None:
    """Publish the modules that the payload has requested, and initialize the new ones."""
    publishing = machine.session.context(Requests)
    request = publishing.request
    if request is None:
        return
    publishing.closed = True
    for code in request.codes:
        _check_format(run, code)
    modules = [read_module(code) for code in request.codes]
    charge_bundle(modules, run.loader, run.meter)
    check_bundle(request, modules, run.loader, run.environment.chain_id, run.meter)
    new = [module for module in modules if run.loader.find(module.id) is None]
    staged = run.loader.staged(modules)
    check_code(modules, staged)
    for module in new:
        function = initializer(module)
        if function is not None:
            initializing = Machine(staged, machine.session, run.meter, transaction=run, trace=run.trace)
            argument = signer_for(function.parameters[0], request.address)
            initializing.run(staged.code(function, ()), [argument])
    run.published = dict(zip((module_key(module.id) for module in modules), request.codes, strict=True))
