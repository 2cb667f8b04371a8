"""A transaction from prologue to epilogue.

`execute` reads the transaction and the configuration of the ledger; `_Run` is one visible sequence of steps. Each step
is a session of the machine. Its changes go to an overlay, so that a failed payload is dropped by forgetting it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolkit.errors import SchemaError, Unsupported
from toolkit.move._ids import address_to_bytes
from toolkit.vm import _features as flags
from toolkit.vm._arguments import is_signer, make_arguments, may_be_sent
from toolkit.vm._bcs import write_text
from toolkit.vm._charges import ChangeCharges, check_limits
from toolkit.vm._checks import check_calls
from toolkit.vm._code import PUBLIC
from toolkit.vm._context import CalledFunction, PublishRequest, TransactionContext
from toolkit.vm._environment import MAINNET, Environment, boundary, framework_resource
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Meter, Unmetered
from toolkit.vm._interpreter import Machine
from toolkit.vm._loader import Loader
from toolkit.vm._metadata import RANDOMNESS, is_unstable
from toolkit.vm._module import read_script, version_of
from toolkit.vm._natives._publishing import Requests
from toolkit.vm._publish import charge_bundle, check_bundle, check_code, initializer, read_bundle
from toolkit.vm._results import SUCCESS, EmittedEvent, Execution, Fee, Status, Write, status_of
from toolkit.vm._signers import signers_of
from toolkit.vm._state import Change, Overlay, Session, module_key, resource_key, session_hash, write_order
from toolkit.vm._straight import check_straight, is_straight
from toolkit.vm._types import FRAMEWORK, ModuleId, Reference, Type, from_tag, struct, struct_modules, substituted
from toolkit.vm._values import option, signer
from toolkit.wire import SignedTransaction
from toolkit.wire import _bcs_forms as bcs
from toolkit.wire import _bcs_requests as requests
from toolkit.wire import _signatures as signatures
from toolkit.wire._models import unhex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._code import FunctionDefinition
    from toolkit.vm._compile import CompiledFunction
    from toolkit.vm._state import Event, Read
    from toolkit.vm._values import Value

_VALIDATION = ModuleId(FRAMEWORK, "transaction_validation")
_MULTISIG = ModuleId(FRAMEWORK, "multisig_account")
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
_PAYER_CANNOT_PAY = (2 << 16) + 1005  # in the epilogue
_SIMULATED_RANDOMNESS = bytes(16) + b"\1\x20" + bytes(32)  # epoch, round and seed


class _SessionKind(NamedTuple):
    """A kind of session: its number in session ids, for transactions with a sequence number and orderless ones."""

    plain: int
    orderless: int
    counter: int  # byte of the monotonic counter; 5 more if orderless


_PROLOGUE = _SessionKind(plain=3, orderless=10, counter=25)
_PAYLOAD = _SessionKind(plain=0, orderless=9, counter=35)
_ON_ABORT = _SessionKind(plain=6, orderless=12, counter=45)
_EPILOGUE = _SessionKind(plain=4, orderless=11, counter=55)


class _DiscardedError(Exception):
    """The transaction is not part of the ledger."""

    def __init__(self, error: MoveError) -> None:
        super().__init__(error)
        self.error = error


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
        return _Run(signed, environment, simulate=simulate, log=log, transaction_index=transaction_index).run()


class _Run:
    """The steps of a transaction."""

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
        self.sender = address_to_bytes(raw.sender)
        self.signers = signers_of(signed.signature)
        self.payer = self.signers.payer_address or self.sender
        self.payload: Any = raw.payload
        self.executable = cast("requests.EncodedEntryFunction | requests.EncodedScript | None", None)
        self.multisig: bytes | None = None
        self.nonce: int | None = None
        self._read_payload()
        code = self.executable.code if isinstance(self.executable, requests.EncodedScript) else b""
        self.script_hash = hashlib.sha3_256(code).digest() if code else b""
        if simulate:
            environment.replace("randomness::PerBlockRandomness", _SIMULATED_RANDOMNESS)
        self.loader = Loader(environment.base, self.schedule, self.features)
        self.meter = Meter(self.schedule, raw.max_gas_amount, log=log)
        self.trace: list[tuple[CompiledFunction, int, int, int]] | None = [] if log else None
        self.state = Overlay(environment.base)
        self.events: list[Event] = []
        self.refund = 0
        self.published: dict[bytes, bytes] = {}
        self.context = self._context(None if simulate else transaction_index)
        self.account_is_new = False

    def _read_payload(self) -> None:
        match self.payload:
            case requests.EncodedPayloadV2():
                self.executable = self.payload.executable
                self.nonce = self.payload.replay_protection_nonce
                address = self.payload.multisig_address
                self.multisig = address_to_bytes(address) if address is not None else None
            case requests.EncodedMultisig():
                self.executable = self.payload.payload
                self.multisig = address_to_bytes(self.payload.multisig_address)
            case requests.EncodedEntryFunction() | requests.EncodedScript():
                self.executable = self.payload

    def _context(self, transaction_index: int | None) -> TransactionContext:
        function = None
        if isinstance(self.executable, requests.EncodedEntryFunction):
            function = _called(self.executable)
        inner = self.multisig is not None
        return TransactionContext(
            sender=self.sender,
            secondary_signers=self.signers.addresses,
            gas_payer=self.payer,
            max_gas_amount=self.raw.max_gas_amount,
            gas_unit_price=self.raw.gas_unit_price,
            chain_id=self.raw.chain_id,
            script_hash=self.script_hash,
            entry_function=None if inner else function,
            multisig_address=self.multisig,
            multisig_function=function if inner else None,
            transaction_index=transaction_index,
        )

    # The sequence.

    def run(self) -> Execution:
        """Run all steps."""
        try:
            self._prologue()
            try:
                status = self._run_payload()
            except MoveError as failure:
                status = self._failed(failure)
            return self._result(status)
        except _DiscardedError as discarded:
            error = discarded.error
        except MoveError as failure:  # outside of the payload
            error = failure
        status = Status("discard", error.status, message=error.message, sub_status=error.sub_status)
        return Execution(self.meter, self.trace, status)

    def _prologue(self) -> None:
        """Check the transaction; what the prologue writes stays, whatever happens later."""
        if not self.simulate and not self.signers.are_valid(self.signed.signing_message()):
            raise _discarded("INVALID_SIGNATURE")
        everyone = (self.sender, *self.signers.addresses)
        if len(set(everyone)) != len(everyone):
            raise _discarded("SIGNERS_CONTAIN_DUPLICATES")
        if len(self.signers.addresses) != len(self.signers.secondary):
            raise _discarded("NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH_IN_PROOF")
        self._authenticate()
        self._check_payload_kind()
        self._check_gas()
        if self.executable is None and self.multisig is None:
            raise _discarded("EMPTY_PAYLOAD_PROVIDED")
        if isinstance(self.executable, requests.EncodedScript) and self.multisig is not None:
            message = "Script payload not yet supported for multisig transactions"
            raise _DiscardedError(MoveError("FEATURE_UNDER_GATING", message))
        session = self._session(_PROLOGUE)
        machine = self._machine(session, metered=False)
        self._run_or_discard(machine, _VALIDATION, *self._prologue_call(), aborts=_PROLOGUE_ABORTS)
        if self.multisig is not None and (not self.simulate or flags.SIMULATION_ENHANCEMENT in self.features):
            provided = bytearray(self._provided_payload())
            arguments = [_reference(signer(self.sender)), self.multisig, provided]
            self._run_or_discard(
                machine, _MULTISIG, "validate_multisig_transaction", arguments, aborts=_MULTISIG_ABORTS
            )
        self.state.apply(session.changes())
        self.events += session.events
        check_limits(self.state, self.events, self.schedule)

    def _run_payload(self) -> Status:
        """Run the payload and charge its changes; return the status of the epilogue."""
        session = self._session(_PAYLOAD)
        machine = self._machine(session)
        if self.account_is_new:
            try:
                self._create_account(machine)
            except MoveError as error:
                raise _DiscardedError(error) from None
        self._charge_intrinsic()
        if self.multisig is not None:
            return self._run_multisig(machine)
        if isinstance(self.executable, requests.EncodedScript):
            self._run_script(machine, self.executable)
        else:
            assert self.executable is not None  # noqa: S101 - the prologue has seen to it
            function = _called(self.executable)
            self._run_entry(machine, function, [self.sender, *self.signers.addresses])
        self._publish(machine)
        state, events = self._charged(session)
        return self._finish(state, events)

    def _finish(self, state: Overlay, events: list[Event]) -> Status:
        """Run the epilogue on the changes of a success."""
        try:
            self.state, self.events = self._epilogue(state, events)
        except MoveError as error:
            if error.location == _VALIDATION and error.sub_status == _PAYER_CANNOT_PAY:
                return self._failed(error)
            raise _discarded("UNEXPECTED_ERROR_FROM_KNOWN_MOVE_FUNCTION") from None
        return SUCCESS

    def _failed(self, error: MoveError) -> Status:
        """Drop what the payload did, and charge for it."""
        status = status_of(error, self.features, self.schedule.version, self.loader.attributes)
        if status.kind == "discard":
            raise _DiscardedError(error)
        self.refund = 0
        if self.account_is_new:
            self._create_account_again()
        try:
            self.state, self.events = self._epilogue(self.state, self.events)
        except MoveError:
            raise _discarded("UNEXPECTED_ERROR_FROM_KNOWN_MOVE_FUNCTION") from None
        return status

    def _epilogue(self, state: Overlay, events: list[Event]) -> tuple[Overlay, list[Event]]:
        """Take the gas, raise the sequence number and emit the fee statement."""
        session = self._session(_EPILOGUE, state)
        machine = self._machine(session, metered=False)
        name, arguments = self._epilogue_call()
        self._run_framework(machine, _VALIDATION, name, arguments)
        if flags.EMIT_FEE_STATEMENT in self.features and flags.MODULE_EVENTS in self.features:
            statement = [self.gas_used, *self.fee]
            self._run_framework(machine, ModuleId(FRAMEWORK, "transaction_fee"), "emit_fee_statement", [statement])
        final = state.copy()
        final.apply(session.changes())
        events = events + session.events
        check_limits(final, events, self.schedule)
        return final, events

    # Parts of the prologue.

    def _authenticate(self) -> None:
        """Let Move code check abstract signatures, on a part of the gas: the rest is taken away meanwhile."""
        signed = [(self.sender, self.signers.sender), *zip(self.signers.addresses, self.signers.secondary, strict=True)]
        if self.signers.payer is not None:
            signed.append((self.payer, self.signers.payer))
        abstract = [(address, one) for address, one in signed if isinstance(one, signatures.AbstractSignature)]
        if not abstract:
            return
        for _, one in abstract:
            derivable = unhex(one.auth_data)[:1] == b"\1"
            needed = flags.DERIVABLE_ACCOUNT_ABSTRACTION if derivable else flags.ACCOUNT_ABSTRACTION
            if needed not in self.features:
                raise _discarded("FEATURE_UNDER_GATING")
        most = self.schedule["txn.max_aa_gas"]
        held = self.raw.max_gas_amount - min(most, self.raw.max_gas_amount)
        self.meter.add_budget(-held)
        for address, one in abstract:
            machine = self._machine(self._session(_PROLOGUE))
            module = ModuleId(FRAMEWORK, "account_abstraction")
            try:
                self._run_authenticate(machine, module, address, one)
            except MoveError as error:
                if error.status == "OUT_OF_GAS":
                    raise _discarded("ACCOUNT_AUTHENTICATION_GAS_LIMIT_EXCEEDED") from None
                raise _DiscardedError(error) from None
        self.meter.add_budget(held)

    def _run_authenticate(
        self, machine: Machine, module: ModuleId, address: bytes, signature: signatures.AbstractSignature
    ) -> None:
        function = self.loader.function(module, "authenticate")
        assert signature.function_info is not None  # noqa: S101 - BCS has it
        place, name, method = signature.function_info.split("::")
        info = bytearray(address_to_bytes(place))
        write_text(name, info)
        write_text(method, info)
        data = unhex(signature.auth_data)
        values = [signer(address)]
        for kind, raw in zip(function.parameters[1:], (bytes(info), data), strict=True):
            values.append(machine.serializing_layout(kind).decode(raw))
        machine.run(self.loader.code(function, ()), values)

    def _check_payload_kind(self) -> None:
        if isinstance(self.payload, requests.EncodedPayloadV2):
            if flags.PAYLOAD_V2 not in self.features:
                raise _discarded("FEATURE_UNDER_GATING")
            if self.nonce is not None and flags.ORDERLESS not in self.features:
                raise _discarded("FEATURE_UNDER_GATING")
        if isinstance(self.payload, requests.EncodedModuleBundle):
            raise _discarded("FEATURE_UNDER_GATING")

    def _check_gas(self) -> None:
        """Check size, gas limit and price, before anything runs; find out whether the account is new."""
        schedule, raw = self.schedule, self.raw
        if self.size > schedule["txn.max_transaction_size_in_bytes"]:
            raise _discarded("EXCEEDED_MAX_TRANSACTION_SIZE")
        if raw.max_gas_amount > schedule["txn.maximum_number_of_gas_units"]:
            raise _discarded("MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND")
        if raw.max_gas_amount < -(-(self._intrinsic() + self._keyless()) // schedule.unit):
            raise _discarded("MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS")
        if raw.gas_unit_price < schedule["txn.min_price_per_gas_unit"]:
            raise _discarded("GAS_UNIT_PRICE_BELOW_MIN_BOUND")
        if raw.gas_unit_price > schedule["txn.max_price_per_gas_unit"]:
            raise _discarded("GAS_UNIT_PRICE_ABOVE_MAX_BOUND")
        self.account_is_new = self._must_create_account()
        if not self.account_is_new or (raw.gas_unit_price == 0 and flags.DEFAULT_ACCOUNT_RESOURCE in self.features):
            return
        # As nodes estimate it: ten gas units to run, and what is stored, which is the account and perhaps its coins.
        slots = 1 if flags.NEW_ACCOUNTS_TO_STORE in self.features else 2
        if raw.gas_unit_price * raw.max_gas_amount < 10 * raw.gas_unit_price + slots * self._account_fee():
            raise _discarded("MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS")

    def _intrinsic(self) -> int:
        schedule = self.schedule
        over = max(0, self.size - schedule["txn.large_transaction_cutoff"])
        return schedule["txn.min_transaction_gas_units"] + schedule["txn.intrinsic_gas_per_byte"] * over

    def _keyless(self) -> int:
        return self.schedule["txn.keyless.base"] if self.signers.any_is_keyless else 0

    def _account_fee(self) -> int:
        """Return what a slot of a new account costs: a node expects at most 300 bytes in it."""
        schedule = self.schedule
        if schedule.version >= 13 and flags.REFUNDABLE_BYTES in self.features:
            return schedule["txn.storage_fee_per_state_slot"] + 300 * schedule["txn.storage_fee_per_state_byte"]
        return schedule.legacy("storage_fee_per_state_slot_create")

    def _must_create_account(self) -> bool:
        """Return whether the sender's account is made by this transaction."""
        lazily = flags.DEFAULT_ACCOUNT_RESOURCE in self.features
        lazily |= flags.FEE_PAYER_ACCOUNT in self.features and self.signers.payer_address is not None
        if not lazily or self.nonce is not None or self.raw.sequence_number != 0:
            return False
        return self.environment.base.get(resource_key(self.sender, _ACCOUNT)) is None

    @property
    def _is_unified(self) -> bool:
        return flags.ACCOUNT_ABSTRACTION in self.features or flags.DERIVABLE_ACCOUNT_ABSTRACTION in self.features

    def _prologue_call(self) -> tuple[str, list[Value]]:
        """Return the name of the prologue and its arguments."""
        raw, who = self.raw, self.signers
        key, others = who.sender.authentication_key(), [one.authentication_key() for one in who.secondary]
        payer_key = who.payer.authentication_key() if who.payer is not None else None
        addresses = list(who.addresses)
        limits = [raw.gas_unit_price, raw.max_gas_amount, raw.expiration_timestamp_secs, raw.chain_id]
        if self._is_unified:
            arguments: list[Value] = [signer(self.sender)]
            suffix = ""
            if who.payer_address is not None:
                arguments += [signer(self.payer), self._option(key), self._option(payer_key)]
                suffix = "_fee_payer"
            else:
                arguments.append(self._option(key))
            protector: Value = raw.sequence_number
            if flags.PAYLOAD_V2 in self.features:
                protector = [1, raw.sequence_number] if self.nonce is None else [0, self.nonce]
                suffix += "_v2"
            arguments += [protector, addresses, [self._option(one) for one in others], *limits, self.simulate]
            return f"unified_prologue{suffix}", arguments
        extended = flags.SIMULATION_ENHANCEMENT in self.features
        arguments = [signer(self.sender), raw.sequence_number, bytearray(key or b"")]
        keys = [bytearray(one or b"") for one in others]
        name = "script_prologue"
        if who.payer_address is not None:
            name = "fee_payer_script_prologue"
            arguments += [addresses, keys, self.payer, bytearray(payer_key or b"")]
        elif addresses:
            name = "multi_agent_script_prologue"
            arguments += [addresses, keys]
        arguments += limits
        if name == "script_prologue":
            arguments.append(bytearray(self.script_hash))
        if extended:
            arguments.append(self.simulate)
        return name + "_extended" * extended, arguments

    def _option(self, value: bytes | None) -> Value:
        held = None if value is None else bytearray(value)
        return option(held, is_enum=flags.ENUM_OPTION in self.features)

    def _provided_payload(self) -> bytes:
        """Return the payload that a multisig transaction carries, in the form that is stored on the ledger."""
        if self.executable is None:
            return b"" if flags.MULTISIG_PAYLOAD_MATCH in self.features else b"\0"
        return bcs.encoded(requests.MULTISIG_PAYLOAD, self.executable)

    # Parts of the payload.

    def _create_account(self, machine: Machine) -> None:
        self._run_framework(machine, ModuleId(FRAMEWORK, "account"), "create_account_if_does_not_exist", [self.sender])

    def _create_account_again(self) -> None:
        """Make the sender's account after a failure; without gas if what is left does not suffice."""
        session = self._session(_ON_ABORT)
        try:
            self._create_account(self._machine(session))
        except MoveError:
            session = self._session(_ON_ABORT)
            self._create_account(self._machine(session, metered=False))
        state = self.state.copy()
        state.apply(session.changes())
        events = self.events + session.events
        charges = ChangeCharges(state, events, self.meter, self.features, self._now())
        try:
            self.refund = charges.charge(self.size, self.raw.gas_unit_price)
        except MoveError:
            self.refund = 0
        self.state, self.events = state, events

    def _charge_intrinsic(self) -> None:
        self.meter.charge(self._intrinsic(), "INTRINSIC", f"size={self.size}")
        if keyless := self._keyless():
            self.meter.charge(keyless, "KEYLESS")

    def _run_entry(self, machine: Machine, called: CalledFunction, signers: Sequence[bytes]) -> None:
        loader, meter = self.loader, self.meter
        self._visit([called.module], called.types)
        function = loader.function(called.module, called.name)
        loader.check_constraints(called.types, function.type_parameters)
        if function.is_native:
            raise MoveError("USER_DEFINED_NATIVE_NOT_ALLOWED")
        attributes = loader.module(called.module).attributes
        if function.visibility != PUBLIC and attributes.of_function(called.name, RANDOMNESS) is not None:
            machine.session.unbiasable = True
        values = self._values(machine, function, called.types, called.arguments, signers)
        if not function.is_entry:
            raise MoveError("EXECUTE_ENTRY_FUNCTION_CALLED_ON_NON_ENTRY_FUNCTION")
        machine.meter = meter
        machine.run(loader.code(function, called.types), values)

    def _visit(self, modules: Sequence[ModuleId], types: Sequence[Type]) -> None:
        """Charge the module of an entry function, or those that a script uses, and those of type arguments."""
        loader, meter = self.loader, self.meter
        if loader.lazy:
            loader.visit_lazily([*modules, *struct_modules(types)], meter)
        else:
            loader.visit_all(modules, meter)
            if self.schedule.version >= 31:
                loader.visit_all(struct_modules(types), meter)

    def _run_script(self, machine: Machine, script: requests.EncodedScript) -> None:
        loader = self.loader
        serialized = any(one.kind == "serialized" for one in script.arguments)
        if serialized and flags.SERIALIZED_SCRIPT_ARGUMENTS not in self.features:
            raise MoveError("FEATURE_UNDER_GATING").at("script")
        self._check_format(script.code)
        self._refuse_governance()
        try:
            code = read_script(script.code)
        except MoveError as error:
            message = f"[VM] deserializer for script returned error: {error.message}"
            raise MoveError("CODE_DESERIALIZATION_ERROR", message) from None
        if is_straight(code.main):
            check_straight(code.main, code.struct_handles)
        types = tuple(map(from_tag, script.type_arguments))
        self._visit(code.dependencies, types)
        if self.environment.chain_id == MAINNET and is_unstable(code.metadata):
            raise MoveError("UNSTABLE_BYTECODE_REJECTED")
        if any(str(one.module) == "0x1::event" and one.name == "emit" for one in code.handles):
            raise MoveError("INVALID_OPERATION_IN_SCRIPT")
        check_calls(loader, None, code.handles)
        loader.check_constraints(types, code.main.type_parameters)
        arguments = tuple(argument.to_bcs() for argument in script.arguments)
        values = self._values(machine, code.main, types, arguments, [self.sender, *self.signers.addresses])
        machine.run(loader.code(code.main, types), values)

    def _check_format(self, code: bytes) -> None:
        """Check that the ledger accepts the version of the binary format."""
        newest = max((version for version, flag in flags.FORMATS.items() if flag in self.features), default=5)
        if version_of(code) > newest:
            raise MoveError("CODE_DESERIALIZATION_ERROR", f"bytecode version {version_of(code)}")

    def _refuse_governance(self) -> None:
        """Refuse scripts that a vote has approved: they have limits of their own."""
        approved = framework_resource(self.environment.base, "aptos_governance::ApprovedExecutionHashes")
        if approved is not None and self.script_hash in approved:
            raise Unsupported("scripts that governance has approved")

    def _values(
        self,
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
        values = [_signer_for(kind, address) for kind, address in zip(kinds[:count], signers, strict=False)]
        return values + make_arguments(machine, rest, arguments)

    def _run_multisig(self, machine: Machine) -> Status:
        """Run what a multisig account has approved. If that fails, the transaction succeeds nevertheless."""
        assert self.multisig is not None  # noqa: S101 - it is a multisig transaction
        arguments = [self.multisig, bytearray(self._provided_payload())]
        stored = bytes(self._run_framework(machine, _MULTISIG, "get_next_transaction_payload", arguments)[0])
        try:
            payload = bcs.whole(requests.MULTISIG_PAYLOAD, stored)
        except SchemaError:
            raise MoveError("FAILED_TO_DESERIALIZE_ARGUMENT") from None
        if not isinstance(payload, requests.EncodedEntryFunction):
            raise MoveError("FAILED_TO_DESERIALIZE_ARGUMENT")
        state, events = self.state, self.events
        cleanup = "successful_transaction_execution_cleanup"
        outcome: list[Value] = [self.sender, self.multisig, bytearray(stored)]
        try:
            self._run_entry(machine, _called(payload), [self.multisig])
            self._publish(machine)
            state, events = self._charged(machine.session)
        except MoveError as error:
            cleanup = "failed_transaction_execution_cleanup"
            outcome.append(_multisig_error(error))
        session = self._session(_EPILOGUE, state)
        self._run_framework(self._machine(session, metered=False), _MULTISIG, cleanup, outcome)
        state = state.copy()
        state.apply(session.changes())
        return self._finish(state, events + session.events)

    def _publish(self, machine: Machine) -> None:
        """Publish the modules that the payload has requested, and initialize the new ones."""
        publishing = machine.session.context(Requests)
        request: PublishRequest | None = publishing.request
        if request is None:
            return
        publishing.closed = True
        for code in request.codes:
            self._check_format(code)
        modules = read_bundle(request)
        charge_bundle(modules, self.loader, self.meter)
        check_bundle(request, modules, self.loader, self.environment.chain_id, self.meter)
        new = [module for module in modules if self.loader.find(module.id) is None]
        staged = self.loader.staged(modules)
        check_code(modules, staged)
        for module in new:
            function = initializer(module)
            if function is not None:
                initializing = self._machine(machine.session, loader=staged)
                argument = _signer_for(function.parameters[0], request.address)
                initializing.run(staged.code(function, ()), [argument])
        self.published = dict(zip((module_key(module.id) for module in modules), request.codes, strict=True))

    def _charged(self, session: Session) -> tuple[Overlay, list[Event]]:
        """Charge the changes of the prologue and the payload; return the state and the events with them."""
        state = self.state.copy()
        state.apply(session.changes())
        state.apply({key: Change(code, kind="code") for key, code in self.published.items()})
        events = self.events + session.events
        check_limits(state, events, self.schedule)
        charges = ChangeCharges(state, events, self.meter, self.features, self._now())
        self.refund = charges.charge(self.size, self.raw.gas_unit_price)
        return state, events

    # Parts of the epilogue.

    @property
    def gas_used(self) -> int:
        """Gas units that have been used."""
        return self.raw.max_gas_amount - self.meter.units

    @property
    def fee(self) -> Fee:
        """Parts of the fee, so far."""
        meter, unit = self.meter, self.schedule.unit
        return Fee(-(-meter.execution // unit), -(-meter.io // unit), meter.fee, self.refund)

    def _epilogue_call(self) -> tuple[str, list[Value]]:
        """Return the name of the epilogue and its arguments."""
        raw = self.raw
        rest = [self.refund, raw.gas_unit_price, raw.max_gas_amount, self.meter.units]
        if self._is_unified:
            arguments = [signer(self.sender), signer(self.payer), *rest, self.simulate]
            if flags.PAYLOAD_V2 in self.features:
                return "unified_epilogue_v2", [*arguments, self.nonce is not None]
            return "unified_epilogue", arguments
        extended = flags.SIMULATION_ENHANCEMENT in self.features
        name, who = "epilogue", [signer(self.sender)]
        if self.signers.payer_address is not None:
            name, who = "epilogue_gas_payer", [signer(self.sender), self.payer]
        more = [self.simulate] if extended else []
        return name + "_extended" * extended, [*who, *rest, *more]

    def _result(self, status: Status) -> Execution:
        writes = {}
        for key in sorted(self.state.changes, key=write_order):
            change, op = self.state.changes[key], self.state.operation(key)
            metadata = change.metadata
            # No deposit for what is not charged: what the epilogue creates, and all of it at a gas price of 0.
            if op == "create" and metadata is None and change.kind != "delta":
                metadata = (0, 0, self._now())
            writes[key] = Write(op, change.value, metadata)
        events = [EmittedEvent(str(event.type), event.key, event.sequence_number, event.data) for event in self.events]
        return Execution(self.meter, self.trace, status, self.gas_used, self.fee, events, writes)

    # Sessions and calls.

    def _session(self, kind: _SessionKind, state: Overlay | None = None) -> Session:
        raw = self.raw
        orderless = self.nonce is not None
        index = kind.orderless if orderless else kind.plain
        key = bytearray((index,)) + self.sender
        if self.nonce is not None:
            key += self.nonce.to_bytes(8, "little") + raw.expiration_timestamp_secs.to_bytes(8, "little")
        else:
            key += raw.sequence_number.to_bytes(8, "little")
        key += bytes((len(self.script_hash),)) + self.script_hash
        return Session(state or self.state, session_hash(bytes(key)), kind.counter + 5 * orderless)

    def _machine(self, session: Session, *, metered: bool = True, loader: Loader | None = None) -> Machine:
        meter = self.meter if metered else Unmetered(self.schedule)
        trace = self.trace if metered else None
        return Machine(
            loader or self.loader, session, meter, environment=self.environment, context=self.context, trace=trace
        )

    def _run_framework(self, machine: Machine, module: ModuleId, name: str, arguments: list[Value]) -> list[Value]:
        """Run a function of the framework."""
        function = self.loader.function(module, name)
        return machine.run(self.loader.code(function, ()), arguments)

    def _run_or_discard(
        self, machine: Machine, module: ModuleId, name: str, arguments: list[Value], *, aborts: dict[int, str]
    ) -> None:
        """Run a function of the framework whose aborts discard the transaction."""
        try:
            self._run_framework(machine, module, name, arguments)
        except MoveError as error:
            code = aborts.get(error.sub_status or 0) if error.status == "ABORTED" else None
            raise _discarded(code or "UNEXPECTED_ERROR_FROM_KNOWN_MOVE_FUNCTION") from None

    def _now(self) -> int:
        time = framework_resource(self.environment.base, "timestamp::CurrentTimeMicroseconds")
        return int.from_bytes(time[:8], "little") if time is not None else 0


def _discarded(status: str) -> _DiscardedError:
    return _DiscardedError(MoveError(status))


def _reference(value: Value) -> Value:
    return [value], 0, None


def _signer_for(kind: Type, address: bytes) -> Value:
    """Return a signer as a parameter of this type takes it: as a value or a reference."""
    return _reference(signer(address)) if isinstance(kind, Reference) else signer(address)


def _called(function: requests.EncodedEntryFunction) -> CalledFunction:
    name = function.function
    module = ModuleId(address_to_bytes(name.address), name.module)
    return CalledFunction(module, name.name, tuple(map(from_tag, function.type_arguments)), function.arguments)


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
