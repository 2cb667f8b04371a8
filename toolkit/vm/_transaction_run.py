"""The state of a transaction while it runs: its parts, its sessions and its machines."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolkit.move._ids import address_to_bytes
from toolkit.vm import _features as flags
from toolkit.vm._context import CalledFunction, TransactionContext
from toolkit.vm._environment import Environment, framework_resource
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Meter, Unmetered
from toolkit.vm._interpreter import Machine
from toolkit.vm._loader import Loader
from toolkit.vm._results import Fee
from toolkit.vm._signers import signers_of
from toolkit.vm._state import Overlay, Session, session_hash
from toolkit.vm._types import FRAMEWORK, ModuleId, Reference, Type, from_tag
from toolkit.vm._values import signer
from toolkit.wire import SignedTransaction
from toolkit.wire import _bcs_requests as requests

if TYPE_CHECKING:
    from toolkit.vm._state import Event
    from toolkit.vm._trace import TraceStep
    from toolkit.vm._values import Value

VALIDATION = ModuleId(FRAMEWORK, "transaction_validation")
MULTISIG = ModuleId(FRAMEWORK, "multisig_account")
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


class DiscardedError(Exception):
    """The transaction is not part of the ledger."""

    def __init__(self, error: MoveError) -> None:
        super().__init__(error)
        self.error = error


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
        self.trace: list[TraceStep] | None = [] if log else None
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
            function = called_function(self.executable)
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

    @property
    def is_unified(self) -> bool:
        return flags.ACCOUNT_ABSTRACTION in self.features or flags.DERIVABLE_ACCOUNT_ABSTRACTION in self.features

    @property
    def gas_used(self) -> int:
        """Gas units that have been used."""
        return self.raw.max_gas_amount - self.meter.units

    @property
    def fee(self) -> Fee:
        """Parts of the fee, so far."""
        meter, unit = self.meter, self.schedule.unit
        return Fee(-(-meter.execution // unit), -(-meter.io // unit), meter.fee, self.refund)

    def session(self, kind: SessionKind, state: Overlay | None = None) -> Session:
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

    def machine(self, session: Session, *, metered: bool = True, loader: Loader | None = None) -> Machine:
        meter = self.meter if metered else Unmetered(self.schedule)
        trace = self.trace if metered else None
        return Machine(
            loader or self.loader, session, meter, environment=self.environment, context=self.context, trace=trace
        )

    def run_framework(self, machine: Machine, module: ModuleId, name: str, arguments: list[Value]) -> list[Value]:
        """Run a function of the framework."""
        function = self.loader.function(module, name)
        return machine.run(self.loader.code(function, ()), arguments)

    def now(self) -> int:
        time = framework_resource(self.environment.base, "timestamp::CurrentTimeMicroseconds")
        return int.from_bytes(time[:8], "little") if time is not None else 0


def discarded(status: str) -> DiscardedError:
    return DiscardedError(MoveError(status))


def reference(value: Value) -> Value:
    return [value], 0, None


def signer_for(kind: Type, address: bytes) -> Value:
    """Return a signer as a parameter of this type takes it: as a value or a reference."""
    return reference(signer(address)) if isinstance(kind, Reference) else signer(address)


def called_function(function: requests.EncodedEntryFunction) -> CalledFunction:
    name = function.function
    module = ModuleId(address_to_bytes(name.address), name.module)
    return CalledFunction(module, name.name, tuple(map(from_tag, function.type_arguments)), function.arguments)
