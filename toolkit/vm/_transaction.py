"""A transaction from prologue to epilogue.

`execute` reads the transaction and the configuration of the ledger, and is one visible sequence of steps: the checks of
the machine and of the framework, the payload, the charges for its changes, and the epilogue. Each step is a session of
the machine. Its changes go to an overlay, so that a failed payload is dropped by forgetting it.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from toolkit.errors import SchemaError, Unsupported
from toolkit.move._ids import address_to_bytes
from toolkit.vm import _features as flags
from toolkit.vm import _gas_versions as since
from toolkit.vm._arguments import is_signer, make_arguments, may_be_sent
from toolkit.vm._batch import check_straight, is_straight
from toolkit.vm._bcs import text_bytes
from toolkit.vm._binary import version_of
from toolkit.vm._charges import ChangeCharges, check_limits
from toolkit.vm._code import PUBLIC
from toolkit.vm._ed25519 import are_valid
from toolkit.vm._environment import MAINNET, Environment, boundary, framework_resource
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Meter, Unmetered
from toolkit.vm._interpreter import Machine
from toolkit.vm._loader import Loader
from toolkit.vm._module import RANDOMNESS, is_unstable, read_module, read_script
from toolkit.vm._natives._publishing import Requests
from toolkit.vm._publish import charge_bundle, check_bundle, check_calls, check_code, initializer
from toolkit.vm._results import Execution, Fee, status_of
from toolkit.vm._state import Change, Overlay, Session, WriteKind, module_key, resource_key, session_hash, write_order
from toolkit.vm._types import FRAMEWORK, ModuleId, Reference, Type, from_tag, struct, struct_modules, substituted
from toolkit.vm._values import option, signer
from toolkit.wire import SignedTransaction
from toolkit.wire import _bcs_forms as bcs
from toolkit.wire import _bcs_requests as requests
from toolkit.wire import _signatures as signatures
from toolkit.wire._models import unhex
from toolkit.wire._on_chain import SUCCESS, EmittedEvent, Status, Write
from toolkit.wire._signers import any_is_keyless, signers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._code import FunctionDefinition
    from toolkit.vm._results import TraceStep
    from toolkit.vm._state import Event, Read
    from toolkit.vm._values import Value

VALIDATION = ModuleId(FRAMEWORK, "transaction_validation")
MULTISIG = ModuleId(FRAMEWORK, "multisig_account")
_RANDOMNESS = resource_key(FRAMEWORK, struct("0x1::randomness::PerBlockRandomness"))
_SIMULATED_RANDOMNESS = bytes(16) + b"\1\x20" + bytes(32)  # epoch, round and seed


class SessionKind(NamedTuple):
    """A kind of session: its number in session ids, for transactions with a sequence number and orderless ones."""

    plain: int
    orderless: int
    counter: int  # byte of the monotonic counter; 5 more if orderless


PROLOGUE = SessionKind(plain=3, orderless=10, counter=25)
PAYLOAD = SessionKind(plain=0, orderless=9, counter=35)
ON_ABORT = SessionKind(plain=6, orderless=12, counter=45)
EPILOGUE = SessionKind(plain=4, orderless=11, counter=55)
_PAYER_CANNOT_PAY = (2 << 16) + 1005  # in the epilogue
_ACCOUNT = struct("0x1::account::Account")

# Status codes for aborts of the prologue, and of the check of a multisig transaction.
_PROLOGUE_ABORTS = {
    (1 << 16) + 1001: "INVALID_AUTH_KEY",
    (1 << 16) + 1002: "SEQUENCE_NUMBER_TOO_OLD",
    (1 << 16) + 1003: "SEQUENCE_NUMBER_TOO_NEW",
    (1 << 16) + 1004: "SENDING_ACCOUNT_DOES_NOT_EXIST",
    (1 << 16) + 1005: "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE",
    (1 << 16) + 1006: "TRANSACTION_EXPIRED",
    (1 << 16) + 1007: "BAD_CHAIN_ID",
    (1 << 16) + 1009: "SECONDARY_KEYS_ADDRESSES_COUNT_MISMATCH",
    (1 << 16) + 1010: "GAS_PAYER_ACCOUNT_MISSING",
    (1 << 16) + 1012: "NONCE_ALREADY_USED",
    (1 << 16) + 1013: "TRANSACTION_EXPIRATION_TOO_FAR_IN_FUTURE",
    (2 << 16) + 1008: "SEQUENCE_NUMBER_TOO_BIG",
    (3 << 16) + 1011: "INSUFFICIENT_BALANCE_FOR_REQUIRED_DEPOSIT",
}
_MULTISIG_ABORTS = {
    (3 << 16) + 2002: "NOT_MULTISIG_ACCOUNT",
    (5 << 16) + 2003: "NOT_MULTISIG_OWNER",
    (6 << 16) + 2006: "MULTISIG_TRANSACTION_NOT_FOUND",
    (1 << 16) + 2009: "MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS",
    (1 << 16) + 2008: "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH_HASH",
    (1 << 16) + 2010: "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH",
}


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


class TransactionRun:
    """A transaction while it runs."""

    def __init__(
        self,
        signed: SignedTransaction,
        environment: Environment,
        *,
        simulate: bool,
        log: bool,
        transaction_index: int | None,
    ) -> None:
        self.signed = signed
        self.raw = raw = signed.raw
        self.size = len(raw.to_bcs())
        self.environment = environment
        self.features = environment.features
        self.schedule = environment.schedule
        self.simulate = simulate
        self.transaction_index = None if simulate else transaction_index
        self.sender = address_to_bytes(raw.sender)
        self.signers = signers_of(signed.signature)
        self.cosigners = tuple(map(address_to_bytes, self.signers.addresses))
        self.payer = address_to_bytes(self.signers.payer_address or raw.sender)
        self.executable, multisig, self.nonce = requests.payload_parts(raw.payload)
        self.multisig = None if multisig is None else address_to_bytes(multisig)
        self.script_hash, self.called = b"", None
        if isinstance(self.executable, requests.EncodedEntryFunction):
            self.called = called_function(self.executable)
        elif self.executable is not None and self.executable.code:
            self.script_hash = hashlib.sha3_256(self.executable.code).digest()
        if simulate:
            environment.base.replaced[_RANDOMNESS] = _SIMULATED_RANDOMNESS
        self.loader = Loader(environment)
        self.meter = Meter(self.schedule, raw.max_gas_amount, log=log)
        self.trace: list[TraceStep] | None = [] if log else None
        self.state = Overlay(environment.base)
        self.events: list[Event] = []
        self.refund = 0
        self.published: dict[bytes, bytes] = {}
        self.account_is_new = False

    @property
    def is_unified(self) -> bool:
        return flags.ACCOUNT_ABSTRACTION in self.features or flags.DERIVABLE_ACCOUNT_ABSTRACTION in self.features

    @property
    def is_orderless(self) -> bool:
        return self.nonce is not None

    @property
    def gas_used(self) -> int:
        """Gas units that have been used."""
        return self.raw.max_gas_amount - self.meter.units

    @property
    def fee(self) -> Fee:
        """Parts of the fee, so far."""
        meter, unit = self.meter, self.schedule.unit
        return Fee(-(-meter.execution // unit), -(-meter.io // unit), meter.fee, self.refund)

    def machine(self, kind: SessionKind, state: Overlay | None = None, *, metered: bool = True) -> Machine:
        """Return a machine for a new session."""
        session = Session(state or self.state, self._session_hash(kind), kind.counter + 5 * self.is_orderless)
        meter = self.meter if metered else Unmetered(self.schedule)
        return Machine(self.loader, session, meter, transaction=self, trace=self.trace if metered else None)

    def _session_hash(self, kind: SessionKind) -> bytes:
        raw = self.raw
        key = bytearray((kind.orderless if self.is_orderless else kind.plain,)) + self.sender
        if self.nonce is not None:
            key += self.nonce.to_bytes(8, "little") + raw.expiration_timestamp_secs.to_bytes(8, "little")
        else:
            key += raw.sequence_number.to_bytes(8, "little")
        return session_hash(bytes(key + bytes((len(self.script_hash),)) + self.script_hash))

    def now(self) -> int:
        time = framework_resource(self.environment.base, "timestamp::CurrentTimeMicroseconds")
        return int.from_bytes(time[:8], "little") if time is not None else 0


def reference(value: Value) -> Value:
    return [value], 0, None


def signer_for(kind: Type, address: bytes) -> Value:
    """Return a signer as a parameter of this type takes it: as a value or a reference."""
    return reference(signer(address)) if isinstance(kind, Reference) else signer(address)


class CalledFunction(NamedTuple):
    """An entry function with its arguments."""

    module: ModuleId
    name: str
    types: tuple[Type, ...]
    arguments: tuple[bytes, ...]


def called_function(function: requests.EncodedEntryFunction) -> CalledFunction:
    name = function.function
    module = ModuleId(address_to_bytes(name.address), name.module)
    return CalledFunction(module, name.name, tuple(map(from_tag, function.type_arguments)), function.arguments)


def _run_all(run: TransactionRun) -> Execution:
    """Run all steps; an error outside of the payload discards the transaction."""
    try:
        _run_prologue(run)
        machine = run.machine(PAYLOAD)
        if run.account_is_new:
            _create_account(machine, run.sender)
        return _result(run, _run_payload(run, machine))
    except MoveError as error:
        status = Status("discard", error.status, message=error.message, sub_status=error.sub_status)
    return Execution(run.meter, run.trace, status)


# The prologue.


def _run_prologue(run: TransactionRun) -> None:
    """Check the transaction; what the prologue writes stays, whatever happens later.

    Raises
    ------
    MoveError
        If the transaction is discarded.
    """
    if not run.simulate and not are_valid(run.signed.signature, run.signed.signing_message()):
        raise MoveError("INVALID_SIGNATURE")
    everyone = (run.sender, *run.cosigners)
    _refuse(
        SIGNERS_CONTAIN_DUPLICATES=len(set(everyone)) != len(everyone),
        NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH_IN_PROOF=len(run.cosigners) != len(run.signers.secondary),
    )
    _authenticate(run)
    payload, features = run.raw.payload, run.features
    gated = isinstance(payload, requests.EncodedPayloadV2) and flags.PAYLOAD_V2 not in features
    gated |= run.nonce is not None and flags.ORDERLESS not in features
    _refuse(FEATURE_UNDER_GATING=gated or isinstance(payload, requests.EncodedModuleBundle))
    _check_gas(run)
    _refuse(EMPTY_PAYLOAD_PROVIDED=run.executable is None and run.multisig is None)
    if isinstance(run.executable, requests.EncodedScript) and run.multisig is not None:
        raise MoveError("FEATURE_UNDER_GATING", "Script payload not yet supported for multisig transactions")
    machine = run.machine(PROLOGUE, metered=False)
    _validate(machine, VALIDATION, *_prologue_call(run), aborts=_PROLOGUE_ABORTS)
    if run.multisig is not None and (not run.simulate or flags.SIMULATION_ENHANCEMENT in run.features):
        provided = bytearray(_provided_payload(run))
        arguments = [reference(signer(run.sender)), run.multisig, provided]
        _validate(machine, MULTISIG, "validate_multisig_transaction", arguments, aborts=_MULTISIG_ABORTS)
    run.state.apply(machine.session.changes())
    run.events += machine.session.events
    check_limits(run.state, run.events, run.schedule)


def _refuse(**wrong: bool) -> None:
    """Raise the first status that holds."""
    for status, holds in wrong.items():
        if holds:
            raise MoveError(status)


def _authenticate(run: TransactionRun) -> None:
    """Let Move code check abstract signatures, on a part of the gas: the rest is taken away meanwhile."""
    signed = run.signers.by_account(run.raw.sender)
    abstract = [(address_to_bytes(at), one) for at, one in signed if isinstance(one, signatures.AbstractSignature)]
    if not abstract:
        return
    for _, one in abstract:
        derivable = unhex(one.auth_data)[:1] == b"\1"
        needed = flags.DERIVABLE_ACCOUNT_ABSTRACTION if derivable else flags.ACCOUNT_ABSTRACTION
        _refuse(FEATURE_UNDER_GATING=needed not in run.features)
    most = run.schedule["txn.max_aa_gas"]
    held = run.raw.max_gas_amount - min(most, run.raw.max_gas_amount)
    run.meter.add_budget(-held)
    for address, one in abstract:
        try:
            _run_authenticate(run, address, one)
        except MoveError as error:
            if error.status == "OUT_OF_GAS":
                raise MoveError("ACCOUNT_AUTHENTICATION_GAS_LIMIT_EXCEEDED") from None
            raise
    run.meter.add_budget(held)


def _run_authenticate(run: TransactionRun, address: bytes, signature: signatures.AbstractSignature) -> None:
    machine = run.machine(PROLOGUE)
    function = run.loader.function(ModuleId(FRAMEWORK, "account_abstraction"), "authenticate")
    assert signature.function_info is not None  # noqa: S101 - BCS has it
    place, name, method = signature.function_info.split("::")
    info = address_to_bytes(place) + text_bytes(name) + text_bytes(method)
    data = unhex(signature.auth_data)
    values = [signer(address)]
    for kind, raw in zip(function.parameters[1:], (info, data), strict=True):
        values.append(machine.serializing_layout(kind).decode(raw))
    machine.run(run.loader.code(function, ()), values)


def _check_gas(run: TransactionRun) -> None:
    """Check size, gas limit and price, before anything runs; find out whether the account is new."""
    schedule, raw = run.schedule, run.raw
    needed = -(-(_intrinsic_gas(run) + _keyless_gas(run)) // schedule.unit)
    _refuse(
        EXCEEDED_MAX_TRANSACTION_SIZE=run.size > schedule["txn.max_transaction_size_in_bytes"],
        MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND=raw.max_gas_amount > schedule["txn.maximum_number_of_gas_units"],
        MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS=raw.max_gas_amount < needed,
        GAS_UNIT_PRICE_BELOW_MIN_BOUND=raw.gas_unit_price < schedule["txn.min_price_per_gas_unit"],
        GAS_UNIT_PRICE_ABOVE_MAX_BOUND=raw.gas_unit_price > schedule["txn.max_price_per_gas_unit"],
    )
    run.account_is_new = _must_create_account(run)
    if not run.account_is_new or (raw.gas_unit_price == 0 and flags.DEFAULT_ACCOUNT_RESOURCE in run.features):
        return
    # As nodes estimate it: ten gas units to run, and what is stored, which is the account and perhaps its coins.
    slots = 1 if flags.NEW_ACCOUNTS_TO_STORE in run.features else 2
    least = 10 * raw.gas_unit_price + slots * _account_fee(run)
    _refuse(MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS=raw.gas_unit_price * raw.max_gas_amount < least)


def _intrinsic_gas(run: TransactionRun) -> int:
    schedule = run.schedule
    over = max(0, run.size - schedule["txn.large_transaction_cutoff"])
    return schedule["txn.min_transaction_gas_units"] + schedule["txn.intrinsic_gas_per_byte"] * over


def _keyless_gas(run: TransactionRun) -> int:
    return run.schedule["txn.keyless.base"] if any_is_keyless(run.signed.signature) else 0


def _account_fee(run: TransactionRun) -> int:
    """Return what a slot of a new account costs: a node expects at most 300 bytes in it."""
    schedule = run.schedule
    if schedule.version >= since.REFUNDABLE_BYTES and flags.REFUNDABLE_BYTES in run.features:
        return schedule["txn.storage_fee_per_state_slot"] + 300 * schedule["txn.storage_fee_per_state_byte"]
    return schedule.legacy("storage_fee_per_state_slot_create")


def _must_create_account(run: TransactionRun) -> bool:
    """Return whether the sender's account is made by this transaction."""
    lazily = flags.DEFAULT_ACCOUNT_RESOURCE in run.features
    lazily |= flags.FEE_PAYER_ACCOUNT in run.features and run.signers.payer_address is not None
    if not lazily or run.nonce is not None or run.raw.sequence_number != 0:
        return False
    return run.environment.base.get(resource_key(run.sender, _ACCOUNT)) is None


def _prologue_call(run: TransactionRun) -> tuple[str, list[Value]]:
    """Return the name of the prologue and its arguments."""
    raw, who = run.raw, run.signers
    key, others = who.sender.authentication_key(), [one.authentication_key() for one in who.secondary]
    payer_key = who.payer.authentication_key() if who.payer is not None else None
    addresses = list(run.cosigners)
    limits = [raw.gas_unit_price, raw.max_gas_amount, raw.expiration_timestamp_secs, raw.chain_id]
    if run.is_unified:
        arguments: list[Value] = [signer(run.sender)]
        suffix = ""
        if who.payer_address is not None:
            arguments += [signer(run.payer), _option_of(run, key), _option_of(run, payer_key)]
            suffix = "_fee_payer"
        else:
            arguments.append(_option_of(run, key))
        protector: Value = raw.sequence_number
        if flags.PAYLOAD_V2 in run.features:
            protector = [1, raw.sequence_number] if run.nonce is None else [0, run.nonce]
            suffix += "_v2"
        arguments += [protector, addresses, [_option_of(run, one) for one in others], *limits, run.simulate]
        return f"unified_prologue{suffix}", arguments
    extended = flags.SIMULATION_ENHANCEMENT in run.features
    arguments = [signer(run.sender), raw.sequence_number, bytearray(key or b"")]
    keys = [bytearray(one or b"") for one in others]
    name = "script_prologue"
    if who.payer_address is not None:
        name = "fee_payer_script_prologue"
        arguments += [addresses, keys, run.payer, bytearray(payer_key or b"")]
    elif addresses:
        name = "multi_agent_script_prologue"
        arguments += [addresses, keys]
    arguments += limits
    if name == "script_prologue":
        arguments.append(bytearray(run.script_hash))
    if extended:
        arguments.append(run.simulate)
    return name + "_extended" * extended, arguments


def _option_of(run: TransactionRun, value: bytes | None) -> Value:
    held = None if value is None else bytearray(value)
    return option(held, is_enum=flags.ENUM_OPTION in run.features)


def _provided_payload(run: TransactionRun) -> bytes:
    """Return the payload that a multisig transaction carries, in the form that is stored on the ledger."""
    if run.executable is None:
        return b"" if flags.MULTISIG_PAYLOAD_MATCH in run.features else b"\0"
    return bcs.encoded(requests.MULTISIG_PAYLOAD, run.executable)


def _validate(machine: Machine, module: ModuleId, name: str, arguments: list[Value], *, aborts: dict[int, str]) -> None:
    """Run a function of the framework whose aborts stand for status codes."""
    try:
        machine.run_named(module, name, arguments)
    except MoveError as error:
        status = aborts.get(error.sub_status or 0) if error.status == "ABORTED" else None
        raise MoveError(status or "UNEXPECTED_ERROR_FROM_KNOWN_MOVE_FUNCTION") from None


# The payload.


def _run_payload(run: TransactionRun, machine: Machine) -> Status:
    """Run the payload, charge its changes and run the epilogue."""
    try:
        run.meter.charge(_intrinsic_gas(run), "INTRINSIC", f"size={run.size}")
        if keyless := _keyless_gas(run):
            run.meter.charge(keyless, "KEYLESS")
        if run.multisig is not None:
            state, events = _run_multisig(run, machine, run.multisig)
        else:
            if isinstance(run.executable, requests.EncodedScript):
                _run_script(run, machine, run.executable)
            else:
                assert run.called is not None  # noqa: S101 - the prologue has seen to it
                _run_entry(run, machine, run.called, [run.sender, *run.cosigners])
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
    status = status_of(error, run.loader)
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


def _run_entry(run: TransactionRun, machine: Machine, called: CalledFunction, signers: Sequence[bytes]) -> None:
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
    run.loader.load(modules, run.meter)
    if run.loader.lazy or run.schedule.version >= since.TYPE_ARGUMENTS:
        run.loader.load(struct_modules(types), run.meter)


def _run_script(run: TransactionRun, machine: Machine, script: requests.EncodedScript) -> None:
    loader = run.loader
    serialized = any(one.kind == "serialized" for one in script.arguments)
    if serialized and flags.SERIALIZED_SCRIPT_ARGUMENTS not in run.features:
        raise MoveError("FEATURE_UNDER_GATING").at("script")
    _check_format(run, script.code)
    approved = framework_resource(run.environment.base, "aptos_governance::ApprovedExecutionHashes")
    if approved is not None and run.script_hash in approved:  # they have limits of their own
        raise Unsupported("scripts that governance has approved")
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
    values = _call_values(machine, code.main, types, arguments, [run.sender, *run.cosigners])
    machine.run(loader.code(code.main, types), values)


def _check_format(run: TransactionRun, code: bytes) -> None:
    """Check that the ledger accepts the version of the binary format."""
    newest = max((version for version, flag in flags.FORMATS.items() if flag in run.features), default=5)
    if version_of(code) > newest:
        raise MoveError("CODE_DESERIALIZATION_ERROR", f"bytecode version {version_of(code)}")


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


def _run_multisig(run: TransactionRun, machine: Machine, account: bytes) -> tuple[Overlay, list[Event]]:
    """Run what a multisig account has approved. If that fails, the transaction succeeds nevertheless."""
    arguments = [account, bytearray(_provided_payload(run))]
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
        _run_entry(run, machine, called_function(payload), [account])
        state, events = _published_and_charged(run, machine)
    except MoveError as error:
        cleanup = "failed_transaction_execution_cleanup"
        outcome.append(_multisig_error(error))
    cleaning = run.machine(EPILOGUE, state, metered=False)
    cleaning.run_named(MULTISIG, cleanup, outcome)
    return state.after(cleaning.session.changes()), events + cleaning.session.events


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


def _publish_requested(run: TransactionRun, machine: Machine) -> None:
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


def _published_and_charged(run: TransactionRun, machine: Machine) -> tuple[Overlay, list[Event]]:
    """Publish what the payload asks for and charge all changes; return the state and the events with them."""
    _publish_requested(run, machine)
    state = run.state.after(machine.session.changes())
    state.apply({key: Change(code, WriteKind.CODE) for key, code in run.published.items()})
    events = run.events + machine.session.events
    check_limits(state, events, run.schedule)
    run.refund = _charge_changes(run, state, events)
    return state, events


def _charge_changes(run: TransactionRun, state: Overlay, events: list[Event]) -> int:
    charges = ChangeCharges(state, events, run.meter, run.features, run.now())
    return charges.charge(run.size, run.raw.gas_unit_price)


# The epilogue.


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
    events = [EmittedEvent(str(event.type), event.data, event.key, event.sequence_number) for event in run.events]
    return Execution(run.meter, run.trace, status, run.gas_used, run.fee, events, writes)
