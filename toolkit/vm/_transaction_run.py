"""The state of a transaction while it runs: its parts, its sessions and its machines."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from toolkit.move._ids import address_to_bytes
from toolkit.vm import _features as flags
from toolkit.vm._ed25519 import verify
from toolkit.vm._environment import Environment, framework_resource
from toolkit.vm._gas import Meter, Unmetered
from toolkit.vm._interpreter import Machine
from toolkit.vm._loader import Loader
from toolkit.vm._results import Fee
from toolkit.vm._state import Overlay, Session, resource_key, session_hash
from toolkit.vm._types import FRAMEWORK, ModuleId, Reference, Type, from_tag, struct
from toolkit.vm._values import signer
from toolkit.wire import SignedTransaction
from toolkit.wire import _bcs_requests as requests
from toolkit.wire import _signatures as signatures
from toolkit.wire._models import unhex

if TYPE_CHECKING:
    from toolkit.vm._state import Event
    from toolkit.vm._trace import TraceStep
    from toolkit.vm._values import Value
    from toolkit.wire._signatures import SignatureModel

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


_KEYLESS = {"keyless", "federated_keyless"}


class Signers(NamedTuple):
    """Addresses of a transaction, with the signatures of the accounts."""

    sender: SignatureModel
    addresses: tuple[bytes, ...]  # secondary signers
    secondary: tuple[SignatureModel, ...]
    payer_address: bytes | None
    payer: SignatureModel | None

    @property
    def everyone(self) -> list[SignatureModel]:
        """The signatures of all accounts."""
        return [one for one in (self.sender, *self.secondary, self.payer) if one is not None]

    @property
    def any_is_keyless(self) -> bool:
        """Whether an account signs with a keyless key, which costs more."""
        return any(map(_is_keyless, self.everyone))

    def are_valid(self, message: bytes) -> bool:
        """Return whether all Ed25519 signatures of a message are valid. Those of other schemes are not checked."""
        for one in self.everyone:
            match one:
                case signatures.Ed25519Signature():
                    key, signature = one.public_key, one.signature
                case signatures.SingleKeySignature() if one.public_key.type == "ed25519" == one.signature.type:
                    key, signature = one.public_key.value, one.signature.value
                case _:
                    continue
            if not verify(unhex(key), unhex(signature), message):
                return False
        return True


def signers_of(signature: SignatureModel) -> Signers:
    """Return who signs, from the signature of a transaction."""
    match signature:
        case signatures.FeePayerSignature():
            addresses = tuple(map(address_to_bytes, signature.secondary_signer_addresses))
            payer = address_to_bytes(signature.fee_payer_address)
            return Signers(signature.sender, addresses, signature.secondary_signers, payer, signature.fee_payer_signer)
        case signatures.MultiAgentSignature():
            addresses = tuple(map(address_to_bytes, signature.secondary_signer_addresses))
            return Signers(signature.sender, addresses, signature.secondary_signers, None, None)
        case signatures.SingleSenderSignature():
            return Signers(signature.sender, (), (), None, None)
    return Signers(signature, (), (), None, None)


def _is_keyless(signature: SignatureModel) -> bool:
    match signature:
        case signatures.SingleKeySignature():
            return signature.public_key.type in _KEYLESS
        case signatures.MultiKeySignature():
            return any(key.type in _KEYLESS for key in signature.public_keys)
    return False


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
        self.payer = self.signers.payer_address or self.sender
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
