"""A form that simulates a transaction: an entry function, a script, or a multisig account's payload."""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from msgspec import Struct
from msgspec.structs import replace
from traitlets import Bool, Instance, Unicode

from toolkit import move, wire
from toolkit._present.messages import shorten
from toolkit._present.text import listed, plural, short_addresses
from toolkit.client._rebuilt import simulated_again
from toolkit.client._simulation import Simulation, abort_parts, failure_reason
from toolkit.client._versions import without_marks
from toolkit.errors import InputError, InvalidRequest, NotFound, ToolkitError, VersionPruned
from toolkit.move._ids import wire_address
from toolkit.widgets import _functions as functions
from toolkit.widgets import _messages as parts
from toolkit.widgets._changes import Known, read_known, records, with_layouts
from toolkit.widgets._fields import U64, Findings, read_leaf, read_version, unreadable, validated, with_short_addresses
from toolkit.widgets._html import Html, called_words, has_model_gas, origin, paragraph, safe
from toolkit.widgets._programs import programs
from toolkit.widgets._state import Answer, Answered, Pressed
from toolkit.wire import SimulationRequest
from toolkit.wire._gas import APT, APT_METADATA
from toolkit.wire._requests import SimulatedPayload, called_by, with_estimates
from toolkit.wire._signatures import PublicKeyType, parse_account_signature, parse_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.client._node import Node
    from toolkit.fork._fork import Fork


Payload = Literal["entry", "script", "multisig_entry", "multisig_script", "multisig_stored"]
_PAYLOAD_LABELS: dict[Payload, str] = {
    "entry": "an entry function",
    "script": "a script",
    "multisig_entry": "an entry function of a multisig account",
    "multisig_script": "a script of a multisig account",
    "multisig_stored": "the stored payload of a multisig account",
}
_ENTRIES = ("entry", "multisig_entry")
_SCRIPTS = ("script", "multisig_script")
_MULTISIGS = ("multisig_entry", "multisig_script", "multisig_stored")

Shape = Literal["none", "ed25519", "single_key", "json"]  # how an account signs
_SHAPE_LABELS: dict[Shape, str] = {
    "none": "no signature",
    "ed25519": "Ed25519 (legacy account)",
    "single_key": "single key",
    "json": "multiple keys or another type, as JSON",
}


class KeyDraft(Struct, frozen=True):
    """The signature of one account."""

    shape: Shape = "none"
    key: str = ""
    type: PublicKeyType = "ed25519"
    json: str = ""


class SignerDraft(Struct, frozen=True):
    """A secondary signer."""

    address: str = ""
    key: KeyDraft = KeyDraft()


class SimulationDraft(functions.FunctionDraft, frozen=True):
    """Entries for a simulation. In a link, ``kept`` is the number of calls that ran before it, which are left out."""

    sender: str = ""
    payload: Payload = "entry"
    multisig_address: str = ""
    bytecode: str = ""
    estimate_max_gas_amount: bool | None = None  # None: not chosen by the user, see `estimates_max_gas`
    max_gas_amount: str = ""
    estimate_gas_unit_price: bool = True
    gas_unit_price: str = ""
    estimate_prioritized_gas_unit_price: bool = False
    replay: Literal["sequence", "number", "nonce"] = "sequence"
    sequence_number: str = ""
    replay_protection_nonce: str = ""
    expiration_timestamp_secs: str = ""
    signature: Literal["keys", "json"] = "keys"
    signature_json: str = ""
    sender_key: KeyDraft = KeyDraft()
    has_fee_payer: bool = False
    fee_payer: str = ""
    fee_payer_key: KeyDraft = KeyDraft()
    secondary: tuple[SignerDraft, ...] = ()
    committed: str = ""
    kept: int = 0

    @property
    def calls_function(self) -> bool:
        """Whether an entry function is called, directly or by a multisig account."""
        return self.payload in _ENTRIES

    @property
    def estimates_max_gas(self) -> bool:
        """Whether the maximum gas amount is estimated: as chosen, else unless another account pays the fee.

        The value is derived here instead of being written into the draft: the browser may send its next edit before it
        has this draft, and would then send the old value back as if the user had chosen it.
        """
        pays = self.signature == "keys" and self.has_fee_payer
        return not pays if self.estimate_max_gas_amount is None else self.estimate_max_gas_amount


# fields --------------------------------------------------------------------------------------------------------------


_REPLAYS = {
    "sequence": "the sender's next sequence number",
    "number": "a sequence number",
    "nonce": "a replay protection nonce",
}
_EXPIRES = "seconds since 1970; if empty, in 10 minutes, or in 50 seconds with a nonce"
_GAS = parts.group(
    ("estimate_gas_unit_price", parts.Switch("Estimate gas unit price")),
    ("gas_unit_price", parts.mono("Gas unit price", "octas per gas unit", ("estimate_gas_unit_price", (False,)))),
    ("estimate_prioritized_gas_unit_price", parts.Switch("Use the prioritized gas unit price")),
    ("replay", parts.select("Replay protection", _REPLAYS)),
    ("sequence_number", parts.mono("Sequence number", when=("replay", ("number",)))),
    ("replay_protection_nonce", parts.mono("Nonce", when=("replay", ("nonce",)))),
    ("expiration_timestamp_secs", parts.mono("Expires", _EXPIRES)),
    label="Gas and expiration",
    fold=True,
)


def _gas_fields(draft: SimulationDraft) -> parts.Group:
    """Return the fields of gas and expiration."""
    estimated = replace(draft, estimate_max_gas_amount=None).estimates_max_gas  # unless the user chooses otherwise
    switch = parts.Switch("Estimate max gas amount", unset=estimated)
    when = ("estimate_max_gas_amount", (False,) if estimated else (False, None))
    most = parts.mono("Max gas amount", "gas units", when)
    return replace(_GAS, fields=(("estimate_max_gas_amount", switch), ("max_gas_amount", most), *_GAS.fields))


_TYPES = {kind: kind for kind in get_args(PublicKeyType)}


def _key_fields(label: str, when: parts.When = None) -> parts.Group:
    """Return the fields of a signature."""
    hint = "hex; a public key, never a private one"
    return parts.group(
        ("shape", parts.select(label, _SHAPE_LABELS)),
        ("type", parts.select("Type of key", _TYPES, when=("shape", ("single_key",)))),
        ("key", parts.mono("Public key", hint, ("shape", ("ed25519", "single_key")))),
        ("json", parts.mono("Signature", when=("shape", ("json",)), rows=4)),
        when=when,
    )


_KEYS = ("signature", ("keys",))
_PAYER = parts.group(
    ("fee_payer", parts.mono("Fee payer", "0x0 simulates without charging an account", names=True)),
    ("fee_payer_key", _key_fields("Fee payer signs with")),
    when=("has_fee_payer", (True,)),
)
_SIGNER = parts.group(("address", parts.mono("Address", names=True)), ("key", _key_fields("Signature")), label="Signer")
_FURTHER = parts.Rows("Secondary signers", item=_SIGNER, blank=SignerDraft(), when=_KEYS)
_SIGNERS = parts.group(
    ("signature", parts.select("Signatures", {"keys": "by account", "json": "whole, as JSON"})),
    ("sender_key", _key_fields("Sender signs with", _KEYS)),
    ("has_fee_payer", parts.Switch("Another account pays the fee", when=_KEYS)),
    ("", _PAYER),
    ("signature_json", parts.mono("Signature", when=("signature", ("json",)), rows=5)),
    label="Signers and fee payer",
    fold=True,
)

# writing -------------------------------------------------------------------------------------------------------------

ESTIMATES = ("estimate_max_gas_amount", "estimate_gas_unit_price", "estimate_prioritized_gas_unit_price")
_ORDERS = ("sequence_number", "replay_protection_nonce")
_NUMBERS = ("max_gas_amount", "gas_unit_price", *_ORDERS, "expiration_timestamp_secs")  # all u64


def write_request(request: SimulationRequest | None) -> SimulationDraft:
    """Return the draft for a request. The argument fields (``arguments``) are left empty."""
    if request is None:
        return SimulationDraft()
    numbers = {name: getattr(request, name) for name in _NUMBERS}
    typed: dict[str, Any] = {name: "" if number is None else str(number) for name, number in numbers.items()}
    asked = with_estimates(request)
    typed |= {name: getattr(asked, name) for name in ESTIMATES}
    if request.max_gas_amount is None:
        typed["estimate_max_gas_amount"] = request.estimate_max_gas_amount
    if request.replay_protection_nonce is not None or request.sequence_number is not None:
        typed["replay"] = "number" if request.replay_protection_nonce is None else "nonce"
    if request.signature is not None:
        typed |= {"signature": "json", "signature_json": json.dumps(request.signature.to_wire(), indent=1)}
    if request.fee_payer is not None:
        typed |= {"has_fee_payer": True, "fee_payer": wire_address(request.fee_payer)}
    keys = request.secondary_public_keys or (None,) * len(request.secondary_signers)
    signers = zip(request.secondary_signers, keys, strict=True)
    return SimulationDraft(
        **typed,
        **_write_payload(request.payload),
        sender=wire_address(request.sender),
        sender_key=_write_key(request.public_key),
        fee_payer_key=_write_key(request.fee_payer_public_key),
        secondary=tuple(SignerDraft(wire_address(address), _write_key(key)) for address, key in signers),
    )


def by_account(request: SimulationRequest) -> SimulationRequest:
    """Return the request with keys per account instead of a whole signature, if both send the same signature."""
    whole = request.signature
    if whole is None:
        return request

    def key(signature: Any) -> Any:
        return None if isinstance(signature, wire.NoAccountSignature) else signature

    made = request.replace(
        signature=None,
        public_key=key(getattr(whole, "sender", whole)),
        secondary_signers=getattr(whole, "secondary_signer_addresses", ()),
        secondary_public_keys=[key(one) for one in getattr(whole, "secondary_signers", ())],
        fee_payer=getattr(whole, "fee_payer_address", None),
        fee_payer_public_key=key(getattr(whole, "fee_payer_signer", None)),
    )
    return made if made.signature_to_send() == whole else request


def _write_payload(payload: SimulatedPayload) -> dict[str, Any]:
    match payload:
        case wire.Multisig():
            inner = payload.transaction_payload
            typed = {"payload": "stored"} if inner is None else _write_payload(inner)
            kind, address = f"multisig_{typed['payload']}", wire_address(payload.multisig_address)
            return typed | {"payload": kind, "multisig_address": address}
        case wire.Script():
            return functions.write_call(payload) | {"payload": "script", "bytecode": payload.bytecode}
        case wire.Batch():
            raise InputError("a form shows one call, not a batch; pass the batch to node.simulate")
    return functions.write_call(payload) | {"payload": "entry"}


def _write_key(key: wire.AccountSignature | None) -> KeyDraft:
    match key:
        case None | wire.NoAccountSignature():
            return KeyDraft()
        case wire.Ed25519Signature():
            draft = KeyDraft("ed25519", key=key.public_key)
        case wire.SingleKeySignature():
            draft = KeyDraft("single_key", key=key.public_key.value, type=key.public_key.type)
        case _:
            draft = KeyDraft("json")
    # JSON describes what the fields cannot: multiple keys, and other signatures.
    same = _read_key(draft, "", Findings()) == key
    return draft if same else KeyDraft("json", json=json.dumps(key.to_wire(), indent=1))


# reading -------------------------------------------------------------------------------------------------------------


def read_request(
    draft: SimulationDraft, last: SimulationRequest | None, call: functions.ResolvedCall | None, found: Findings
) -> SimulationRequest | None:
    """Return the request that a draft describes.

    Parameters
    ----------
    draft : SimulationDraft
    last : SimulationRequest or None
        The last valid request. Entries with the same meaning as in its draft keep its values.
    call : ResolvedCall or None
        The entry function with its type arguments, to check the arguments.
    found : Findings
        Receives errors and missing entries.

    Returns
    -------
    SimulationRequest or None
        None if an entry is invalid or missing.
    """
    values = _read_fields(draft, found)
    before = _read_fields(write_request(last), Findings())
    same = {name for name, value in values.items() if name in before and before[name] == value}
    kept = {} if last is None else {name: getattr(last, name) for name in same}
    values = {name: value for name, value in values.items() if name not in same} | kept
    values["payload"] = _read_payload(draft, last, call, found)
    return validated(lambda: SimulationRequest(**values), found, "signature") if found.good else None


def _read_fields(draft: SimulationDraft, found: Findings) -> dict[str, Any]:
    """Return all fields of a request except its payload."""

    def number(name: str) -> Any:
        return read_leaf(U64, getattr(draft, name), name, found)

    def address(text: str, path: str) -> Any:
        return read_leaf(move.Address(), text, path, found)

    values: dict[str, Any] = {"sender": address(draft.sender, "sender")}
    values["estimate_prioritized_gas_unit_price"] = draft.estimate_prioritized_gas_unit_price
    estimated = {"max_gas_amount": draft.estimates_max_gas, "gas_unit_price": draft.estimate_gas_unit_price}
    for name, asked in estimated.items():
        option = f"estimate_{name}"
        given = not asked and getattr(draft, name).strip()
        values |= {name: number(name), option: None} if given else {name: None, option: getattr(draft, option)}
    wanted = {"number": "sequence_number", "nonce": "replay_protection_nonce"}.get(draft.replay)
    values |= {name: number(name) if name == wanted else None for name in _ORDERS}
    expires = "expiration_timestamp_secs"
    values[expires] = number(expires) if draft.expiration_timestamp_secs.strip() else None
    if draft.signature == "json":
        return values | {"signature": _read_json(parse_signature, draft.signature_json, "signature_json", found)}
    values["public_key"] = _read_key(draft.sender_key, "sender_key", found)
    if draft.has_fee_payer:
        values["fee_payer"] = address(draft.fee_payer, "fee_payer")
        values["fee_payer_public_key"] = _read_key(draft.fee_payer_key, "fee_payer_key", found)
    signers = [(f"secondary.{place}", one) for place, one in enumerate(draft.secondary)]
    values["secondary_signers"] = [address(one.address, f"{path}.address") for path, one in signers]
    keys = [_read_key(one.key, f"{path}.key", found) for path, one in signers]
    return values | {"secondary_public_keys": keys if any(keys) else ()}


def _read_payload(
    draft: SimulationDraft, last: SimulationRequest | None, call: functions.ResolvedCall | None, found: Findings
) -> SimulatedPayload | None:
    old = None if last is None else called_by(last.payload)
    inner: wire.EntryFunction | wire.Script | None = None
    if draft.payload in _ENTRIES:
        inner = functions.read_call(draft, wire.EntryFunction, found, last=old, call=call)
    elif draft.payload in _SCRIPTS:
        inner = functions.read_call(draft, wire.Script, found, last=old)
        if inner is not None and isinstance(old, wire.Script) and inner.bytecode == old.bytecode:
            inner = inner.replace(abi=old.abi)
    if draft.payload not in _MULTISIGS:
        return inner
    address = read_leaf(move.Address(), draft.multisig_address, "multisig_address", found)
    return wire.Multisig(address, transaction_payload=inner) if found.good else None


def _read_key(draft: KeyDraft, path: str, found: Findings) -> Any:
    match draft.shape:
        case "none":
            return None
        case "json":
            return _read_json(parse_account_signature, draft.json, f"{path}.json", found)
    typed = draft.key.strip()
    if not typed:
        found.missing[f"{path}.key"] = "expected a public key as hex"
        return None
    if draft.shape == "ed25519":
        return validated(partial(wire.Ed25519Signature, typed), found, f"{path}.key")
    return validated(lambda: wire.SingleKeySignature(wire.PublicKey(typed, type=draft.type)), found, f"{path}.key")


def _read_json(parse: Callable[[dict[str, Any]], Any], typed: str, path: str, found: Findings) -> Any:
    """Return the signature in a JSON object; None if the entry is empty or invalid."""
    expected = "expected a signature as returned by nodes: a JSON object with a type"
    if not typed.strip():
        found.missing[path] = expected
        return None
    try:
        content = json.loads(typed)
    except (ValueError, RecursionError) as error:
        found.errors[path] = f"not JSON: {error}"
        return None
    if isinstance(content, dict) and isinstance(content.get("type"), str):
        return validated(partial(parse, content), found, path)
    found.errors[path] = f"{expected}, got {shorten(typed.strip())}"
    return None


# The fields that may have caused a failure, by a part of the name of the status; the first that is shown is marked.
_CAUSES = {
    "SEQUENCE_NUMBER": ("sequence_number", "replay"),
    "NONCE_ALREADY_USED": ("replay_protection_nonce", "replay"),
    "TRANSACTION_EXP": ("expiration_timestamp_secs",),
    "MAX_GAS_UNITS": ("max_gas_amount", "estimate_max_gas_amount"),
    "Out of gas": ("max_gas_amount", "estimate_max_gas_amount"),
    "GAS_UNIT_PRICE": ("gas_unit_price", "estimate_gas_unit_price"),
    "SENDING_ACCOUNT": ("sender",),
    "NOT_MULTISIG_OWNER": ("sender",),
    "GAS_PAYER_ACCOUNT_MISSING": ("fee_payer",),
    "INVALID_AUTH_KEY": ("sender_key.shape",),
    "NUMBER_OF_SIGNER": ("secondary",),
    "SIGNERS_CONTAIN": ("secondary",),
    "ACCOUNT_NOT_MULTISIG": ("multisig_address",),
    "LINKER_ERROR": ("function",),
}
_CANNOT_PAY, _BELOW_MIN = "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE", "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"


class Failure(Struct, frozen=True):
    """Why a simulation would fail.

    Attributes
    ----------
    words : str
        The reason: the contract's own message, if it has one.
    detail : str
        Status and abort code.
    path : str
        Path of the field that caused the failure; empty if no such field is shown.
    affordable : int
        Gas units that the payer can pay, of which the form offers to make the maximum; 0 if that would not help.
    """

    words: str
    detail: str
    path: str = ""
    affordable: int = 0

    def to_html(self) -> Html:
        """Return HTML with the reason as a headline, the detail in small print, and a button that limits the gas."""
        head = f'<strong class="ltk-title">{safe(self.words)}.</strong>'
        about = f'class="ltk-small" data-send="limit_gas" data-number="{self.affordable}"'
        words = f"Lower the maximum to {plural(self.affordable, 'gas unit')}"
        button = f'<p><button type="button" {about}>{words}</button></p>' if self.affordable else ""
        return Html(f"{head}{paragraph(self.detail)}{button}")


def failure_of(
    simulation: Simulation, draft: SimulationDraft, call: functions.ResolvedCall | None, known: Known, on: Node | Fork
) -> Failure | None:
    """Return why a simulation would fail, or None. If an account cannot pay, its balance is read."""
    if simulation.success:
        return None
    status, words, detail = simulation.vm_status, *reason_of(simulation)
    # A limit that was not set follows from the balance.
    if _CANNOT_PAY in status or (_BELOW_MIN in status and simulation.request.max_gas_amount is None):
        return _cannot_pay(simulation, draft, known, on)
    sentence, aborted = abort_parts(simulation.transaction.abort)
    causes = ("function",) if aborted else next((paths for name, paths in _CAUSES.items() if name in status), ())
    path = _first_shown(causes, draft)
    if not sentence:
        return Failure(words, detail, path)
    if (short := _short_amount(simulation)) is not None:
        place, units, asset = short
        sender = simulation.request.sender
        _, has = _balance(sender, asset, known, on)
        words = f"{words}: {known.name(sender)} has {has}, and the amount is {known.words(units, asset)}"
        return Failure(words, detail, f"arguments.{place}")
    alone = call is not None and len(call.layouts) == 1  # a single argument decides what the contract refuses
    return Failure(words, detail, "arguments.0" if alone else path)


def reason_of(simulation: Simulation) -> tuple[str, str]:
    """Return why a simulation would fail, in the words of the form, and the status or abort code."""
    sentence, aborted = abort_parts(simulation.transaction.abort)
    if sentence:
        return _capitalized(sentence), _capitalized(aborted)
    status = "; ".join(simulation.vm_status.splitlines())
    reason = failure_reason(simulation.request, simulation.transaction)
    if reason is None:
        return _capitalized(status), ""
    reason = short_addresses(reason)
    names = {*SimulationRequest.model_fields, *wire.Multisig.model_fields}  # their labels are the same words
    for name in sorted(names, key=len, reverse=True):
        reason = reason.replace(name, name.replace("_", " "))
    return _capitalized(reason), f"Status: {status}"


def _capitalized(words: str) -> str:
    return words[:1].upper() + words[1:]


def _first_shown(paths: Iterable[str], draft: SimulationDraft) -> str:
    """Return the first of the paths whose field is shown, or an empty string."""
    shown_when = {key: part.when for key, part in _gas_fields(draft).fields} | {"function": ("payload", _ENTRIES)}
    conditions = ((path, shown_when.get(path)) for path in paths)
    return next((path for path, when in conditions if when is None or getattr(draft, when[0]) in when[1]), "")


def _short_amount(simulation: Simulation) -> tuple[int, int, str] | None:
    """Return the position, units and asset of the amount that the balance does not cover; None for another failure."""
    abort, call = simulation.transaction.abort, called_by(simulation.request.payload)
    too_low = abort is not None and (abort.module, abort.code) in functions.BALANCE_TOO_LOW
    if not too_low or not isinstance(call, wire.EntryFunction):
        return None
    types = [str(move.parse_type_tag(name)) for name in call.type_arguments]
    amount = functions.amount_of(call.function, types, call.arguments)
    if amount is None or isinstance(units := call.arguments[amount[0]], list | tuple):
        return None
    return amount[0], int(units), amount[1]


def _balance(owner: str, asset: str, known: Known, on: Node | Fork) -> tuple[int | None, str]:
    """Return an account's balance, or None if it cannot be read, and the balance in words."""
    view, arguments, kind = "0x1::coin::balance", [owner], asset
    if "::" not in asset:
        view, arguments, kind = "0x1::primary_fungible_store::balance", [owner, asset], "0x1::fungible_asset::Metadata"
    with suppress(ToolkitError):
        balance = on.view(view, arguments, type_arguments=[kind]).value
        return balance, known.words(balance, asset)
    return None, "less"


def _cannot_pay(simulation: Simulation, draft: SimulationDraft, known: Known, on: Node | Fork) -> Failure:
    """Return a failure with the payer's balance; if the user set the limit, also with the gas that can be paid."""
    request, limit, price = simulation.request, simulation.request.max_gas_amount, simulation.transaction.gas_unit_price
    balance, has = _balance(request.payer, APT, known, on)
    words, detail = reason_of(simulation)
    path, affordable = "fee_payer" if request.fee_payer else "sender", 0
    if limit is not None:
        has += f", and the fee may be {known.words(limit * price, APT_METADATA)}"
        path, affordable = "max_gas_amount", balance // price if balance and price else 0
    words = f"{words}. It has {has}" if balance is not None else words
    return Failure(words, detail, _first_shown((path,), draft), affordable)


@dataclasses.dataclass(frozen=True)
class WantedSimulation:
    """What the form simulates: a request, on the node or on a fork of a version, where `earlier` ones ran before it."""

    request: SimulationRequest | None
    version: int | None = None
    earlier: tuple[SimulationRequest, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Simulated(Answer):
    """A simulation, and what is needed to show it.

    Attributes
    ----------
    result : Simulation
    asked : WantedSimulation
    known : Known
        Assets, names and layouts of what it writes.
    failure : Failure or None
        Why it would fail.
    before : sequence of Simulation
        What ran on the fork before it.
    base : int or None
        Version that was forked; None if the node simulated.
    diff : DataFrame or None
        The state before its changes, once it has been read.
    """

    known: Known
    failure: Failure | None = None
    before: Sequence[Simulation] = ()
    base: int | None = None
    diff: Any = None

    @property
    def where(self) -> str:
        """The state on which it ran. After other calls, this is not a version of the ledger and has no time there."""
        if self.before:
            return f"a fork of version {self.base:,}, after {plural(len(self.before), 'call')}"
        return f"version {self.result.ledger_version:,}"

    @property
    def outcome(self) -> tuple[str, str]:
        """The kind of message and the words that describe the outcome; they name earlier calls that failed."""
        at = f"{'on' if self.before else 'at'} {self.where}"
        lost = [f"{place}" for place, one in enumerate(self.before, start=1) if not one.success]
        which = "Call" if len(lost) == 1 else "Calls"
        ahead = f"{which} {listed(lost, 3)} of {len(self.before) + 1} would fail; this call: "
        if self.failure is not None:
            return "bad", f"{ahead}would fail {at}" if lost else f"Would fail {at}"
        gas = plural(self.result.gas_used, "gas unit")
        return ("mixed", f"{ahead}success, {gas} {at}") if lost else ("good", f"Success: {gas} {at}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulationState(functions.FunctionState):
    """The state of a `SimulationBuilder`.

    Attributes
    ----------
    filled : SimulationDraft
        The entries of the request that filled the form last: their sections are open.
    loaded : tuple of (SimulationRequest or None, str)
        The request of the committed transaction that was loaded last, and how the original ended.
    version : int or None
        The version on whose state the transaction is simulated; None for the node's head.
    earlier : tuple of SimulationRequest
        Requests that run before it on a fork.
    """

    entries: SimulationDraft = dataclasses.field(default_factory=SimulationDraft)
    filled: SimulationDraft = dataclasses.field(default_factory=SimulationDraft)
    loaded: tuple[SimulationRequest | None, str] = (None, "")
    version: int | None = None
    earlier: tuple[SimulationRequest, ...] = ()

    def saved(self) -> Any:
        """Return what a link keeps of the form."""
        return replace(super().saved(), kept=len(self.earlier))

    def read(self, before: functions.FunctionState, *, typed: bool = False) -> Self:
        """Return the state with what follows from its entries."""
        found = Findings(names=self.names)
        now = self.with_function(before, found, typed=typed)
        draft = now.entries
        other = draft.function != before.entries.function
        signers = tuple(one for one in draft.secondary if not other or one != SignerDraft())
        missing = now.further_signers - len(signers)
        draft = replace(draft, secondary=(*signers, *[SignerDraft()] * missing))
        request = read_request(draft, self.request, now.leading, found)
        mine = Findings(ledger=self.ledger, plans=self.plans)
        version = read_version(draft.version, mine) if draft.at == "version" else None
        found.add(mine)
        now = dataclasses.replace(now, entries=draft, findings=found, request=request or self.request, version=version)
        return dataclasses.replace(now, fields=now.controls)

    def written(self, request: SimulationRequest | None) -> Self:
        """Return the state with the entries of a request."""
        draft = replace(write_request(request), at=self.entries.at, version=self.entries.version)
        return dataclasses.replace(self.with_entries(draft), filled=draft, call=None)

    def trait(self, name: str) -> Any:
        """Return the value of a trait."""
        return self.entries.estimates_max_gas if name == "estimate_max_gas_amount" else super().trait(name)

    @property
    def has_call(self) -> bool:
        """Whether the entries have a call whose gas can be studied."""
        named = self.entries.calls_function and functions.function_name(self.entries)
        return bool(named) and not self.findings.errors and not self.looked

    @property
    def wanted(self) -> WantedSimulation:
        """What the entries ask for."""
        return WantedSimulation(self.request, self.version, self.earlier if self.version is not None else ())

    @property
    def controls(self) -> parts.Group:
        """The controls of the form."""
        scripts, known = ("payload", _SCRIPTS), ("payload", (*_ENTRIES, *_SCRIPTS))
        signers = self.further_signers
        call = parts.group(
            ("sender", parts.mono("Sender", "an address", placeholder="0xa11ce", names=True)),
            ("payload", parts.select("The transaction runs", _PAYLOAD_LABELS)),
            ("multisig_address", parts.mono("Multisig account", when=("payload", _MULTISIGS), names=True)),
            ("bytecode", parts.mono("Bytecode", "hex", scripts, rows=3)),
            *self.function_fields("0x1::aptos_account::transfer", ("payload", _ENTRIES), known),
            *([] if self.call is None else [("raw", functions.raw_field(scripts))]),
            *([("secondary", replace(_FURTHER, exactly=signers))] if signers else []),
            ("at", parts.select("Simulate on", _AT)),
            ("version", parts.mono("Version", _AT_HINT, _ON_FORK, placeholder="4000")),
            *self._earlier_calls(),
        )
        further = _SIGNERS if signers else replace(_SIGNERS, fields=(*_SIGNERS.fields, ("secondary", _FURTHER)))
        filled, blank = self.filled, SimulationDraft()
        given = {key for key in blank.__struct_fields__ if getattr(filled, key) != getattr(blank, key)}
        folds = [
            replace(part, filled=bool(given & dict(part.fields).keys()))
            for part in (_gas_fields(self.entries), further)
        ]
        return parts.group(*(("", part) for part in (_STARTER, call, *folds)))

    def _earlier_calls(self) -> list[tuple[str, parts.Part]]:
        """Return the buttons of the calls that run before this one."""
        words = [called_words(one, self.names) for one in self.earlier]
        drop = [parts.Button(f"\N{MULTIPLICATION X} {text}", place) for place, text in enumerate(words)]
        listed = parts.Actions("Calls that run before this one", do="drop_call", buttons=tuple(drop), when=_ON_FORK)
        keep = (parts.Button("Run this call first, then another"),)
        return [
            *([("", listed)] if drop else []),
            ("", parts.Actions("Sequence", do="keep_call", buttons=keep, when=_ON_FORK)),
        ]

    @property
    def further_signers(self) -> int:
        """How many signers the function requires in addition to the sender."""
        if self.function is None or not self.entries.calls_function or self.entries.signature != "keys":
            return 0
        return max(self.function.abi.signers - 1, 0)


_STARTER = parts.group(
    ("committed", parts.mono("Version or hash")),
    ("", parts.Actions("Load", do="load", buttons=(parts.Button("Load"),))),
    label="Start from a committed transaction",
    fold=True,
)
_ON_FORK = ("at", ("version",))
_AT = {"head": "the node, at its latest version", "version": "a fork, at one version"}
_AT_HINT = "a version or a date; -1 is the head. The ledger's own code runs on its state"
_MAX_VERSION = 20  # digits of the largest ledger version


class SimulationBuilder(functions.FunctionBuilder):
    """Build, check and simulate a transaction: an entry function, a script, or a multisig payload.

    Neither constructing the form nor setting its traits makes a request. In a browser, entering a function reads its
    ABI, so that each argument has its own field; from Python, `check` and `simulate` read the ABI.

    Parameters
    ----------
    node : Node
        Node that runs the simulations; available as ``node``.
    function : str or ContractFunction, optional
        The initial entry function, such as ``"0x1::coin::transfer"`` or ``node.contract("0x1::coin").transfer``.
    request : SimulationRequest, optional
        Initial content of the form.

    Raises
    ------
    InputError
        If both `function` and `request` are given, or `function` belongs to a contract but is not an entry function.

    Attributes
    ----------
    sender : str
        Sender's address, as typed.
    function : str
        Entry function, as typed: ``address::module::function``.
    type_arguments : str
        Type arguments, as typed: Move types, one per line or separated by commas.
    arguments : str
        Arguments without the signers, as typed: a JSON array.
    estimate_max_gas_amount, estimate_gas_unit_price, estimate_prioritized_gas_unit_price : bool
        Whether the node estimates these values.
    request : SimulationRequest or None
        The request built from the last valid entries. Set it to fill the form; the form can show any request.
    errors : dict of str to str
        Error messages by field, such as ``sender`` or ``arguments.1``; ``node`` holds the error that the node returned.
        Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that sends `request`; empty if the form is not a valid request. Read only.
    simulation : Simulation or None
        The last result, with its frames ``transactions``, ``changes`` and ``events``. It is kept if a later simulation
        is cancelled or rejected (see `errors`). Read only.
    busy : bool
        True while a request is in progress. Read only.

    Examples
    --------
    >>> import toolkit
    >>> builder = toolkit.widgets.SimulationBuilder(toolkit.connect())
    >>> builder.sender, builder.function = "0xa11ce", "0x1::aptos_account::transfer"
    >>> builder.arguments = '["0xb0b", 100]'
    >>> builder.simulate()
    >>> builder.simulation.success
    True

    A function of a contract opens in a form:

    >>> transfer = builder.node.contract("0x1::aptos_account").transfer
    >>> toolkit.widgets.SimulationBuilder(builder.node, transfer).function
    '0x1::aptos_account::transfer'
    """

    _form = parts.About(
        "Simulate a transaction",
        "Shows what a transaction would do and cost. Choose a sender and a function, then press Simulate.",
        actions=(("simulate", "Simulate"),),
        late=("Changes",),
    )
    _empty = SimulationState()
    _mirrored = ("sender", "function", "type_arguments", "arguments", *ESTIMATES)
    _result_name = "simulation"
    _listed: ClassVar[dict[str, str]] = {"Sender": "sender", "Function": "function", "Arguments": "arguments"}

    sender = Unicode()
    estimate_max_gas_amount = Bool(default_value=True)
    estimate_gas_unit_price = Bool(default_value=True)
    estimate_prioritized_gas_unit_price = Bool(default_value=False)
    request = Instance(SimulationRequest, allow_none=True)
    simulation = Instance(Simulation, allow_none=True, read_only=True)

    # actions -------------------------------------------------------------------------------------------

    def simulate(self) -> None:
        """Check the entries, simulate the request and show the result; sets `errors` and `simulation`."""
        with self._busy_while("Simulating"):
            wanted = self._now.wanted if self._check() else None
            if wanted is None or wanted.request is None:
                return
            self._note(unfinished=True)
            try:
                fork = None if wanted.version is None else self._asked.fork(wanted.version)
                before = [] if fork is None else [fork.execute(one) for one in wanted.earlier]
                on = self._asked if fork is None else fork
                found = on.simulate(wanted.request)
            except ToolkitError as error:
                at_fault = wanted.version is not None and isinstance(error, InputError | VersionPruned)
                self._refuse("version" if at_fault else "node", str(error))
                return
            base = None if fork is None else fork.base_version
            self._show_simulation(found, wanted, on, before=before, base=base)

    def _show_simulation(
        self,
        found: Simulation,
        wanted: WantedSimulation,
        on: Node | Fork,
        *,
        before: Sequence[Simulation] = (),
        base: int | None = None,
    ) -> None:
        """Read what is needed to show a simulation that ran on `on`, and show it."""
        known = read_known(self._asked, found, self._now.names, self._together)
        failure = failure_of(found, self._now.entries, self._now.call, known, on)
        from toolkit.widgets._results import simulation_facts  # here: a form opens sooner without pandas

        if wanted.version is None:  # the connections of a job may be closed at any time
            found = dataclasses.replace(found, _node=self.node)
        about: dict[str, Any] = {"known": known, "failure": failure, "before": before, "base": base}
        made = Simulated(result=found, asked=wanted, **about)
        called = called_by(wanted.request.payload) if wanted.request is not None else None
        words = self._now.argument_words(called.arguments) if isinstance(called, wire.EntryFunction) else ""
        facts = simulation_facts(found, known, words) | ({"Version": made.where} if before else {})
        with self._locked():
            self._apply(Answered(dataclasses.replace(made, facts=facts)))
            if failure is not None and failure.path:
                self._refuse(failure.path, f"{failure.words}.")
            kind, words = made.outcome
            original, ended = self._now.loaded
            self._say(kind, f"{words}. {ended}." if original == wanted.request else words)
            self._remember()

    def _checked_words(self) -> str:
        if self._now.entries.calls_function:
            return super()._checked_words()
        return "The entries form a valid request; only the node can check its payload."

    def start_from(self, transaction: int | str) -> None:
        """Fill the form with a committed transaction and simulate it again at the node's head.

        Signatures become zeros. Public keys that no longer match the accounts at the head are omitted, with a note in
        the form.

        Parameters
        ----------
        transaction : int or str
            Ledger version or transaction hash.

        Raises
        ------
        InputError
            If `transaction` is not a user transaction, or its payload cannot be simulated.
        NotFound, NodeError, NodeUnreachable
            If the node does not have the transaction, returns an error, or does not respond.
        """
        committed = self._asked.transaction(transaction)
        try:
            simulation, _ = simulated_again(self._asked, committed)
        except InvalidRequest as error:
            if not (has_model_gas(self.node) and isinstance(getattr(committed, "payload", None), wire.Script)):
                raise
            raise InputError("the embedded node cannot simulate this script: it runs no Move bytecode") from error
        request = by_account(simulation.request)
        with self._locked():
            self.request = request
        self._edit(at="head", committed=str(transaction))
        if self._now.entries.calls_function:
            self._look()
        how = "succeeded" if committed.success else "failed"
        words = f"The original {how} at version {committed.version:,} with {plural(committed.gas_used, 'gas unit')}"
        if _has_keys(committed.signature) and not _has_keys(request.signature_to_send()):
            words += ". Simulated without public keys: the transaction's keys do not match the accounts' keys"
        self._note(loaded=(request, words))
        self._show_simulation(dataclasses.replace(simulation, request=request), WantedSimulation(request), self._asked)

    # what the form is about ------------------------------------------------------------------------------

    def _programs_of(self, request: SimulationRequest) -> parts.Programs:
        call, now = called_by(request.payload), self._now
        arguments = None
        if isinstance(call, wire.EntryFunction) and now.call is not None and call.function == now.call.function.name:
            arguments = now.encoded(call.arguments)
            if call is request.payload and len(call.arguments) == len(now.call.layouts):
                short = map(with_short_addresses, now.call.layouts, call.arguments)
                request = request.replace(payload=call.replace(arguments=list(short)))
        return programs(request, self.node, arguments, version=now.version, earlier=now.wanted.earlier)

    def _result_pages(self, answer: Simulated) -> list[parts.Page]:
        from toolkit.widgets._results import simulation_pages  # here: a form opens sooner without pandas

        failure = "" if answer.failure is None else answer.failure.to_html()
        about: dict[str, Any] = {"model": has_model_gas(self.node), "links": self._holder is not None}
        about |= {"before": [(one, "" if one.success else reason_of(one)[0]) for one in answer.before]}
        about |= {"reason": "" if answer.failure is None else answer.failure.words}
        return simulation_pages(answer.result, answer.known, failure=failure, diff=answer.diff, **about)

    def _origin_of(self, answer: Simulated) -> str:
        ledger = (answer.before[0] if answer.before else answer.result).ledger  # of the first one: the fork's
        return origin(answer.where, None if ledger is None else ledger.timestamp)

    def _subject(self) -> str | None:
        payload = None if self.request is None else called_by(self.request.payload)
        if isinstance(payload, wire.EntryFunction):
            return move.FunctionId.parse(payload.function).wire
        return None if payload is None else f"a {type(payload).__name__} payload"

    # messages of the browser ----------------------------------------------------------------------------

    def _do_load(self, _message: parts.Message) -> None:
        self._background.start("load", partial(self._load, self._now.entries.committed))

    def _load(self, typed: str) -> None:
        text = without_marks(typed.strip())
        with self._busy_while("Loading"):
            try:
                self.start_from(int(text) if text.isdecimal() and len(text) <= _MAX_VERSION else text)
            except ToolkitError as error:
                words = None
                if isinstance(error, NotFound) and text.isdecimal():
                    words = unreadable(int(text), error.ledger)
                words = words or str(error)
                self._refuse("committed", words)
                self._say("error", self._now.named(words))

    def _do_page(self, _message: parts.Message) -> None:
        self._background.start("page", self._complete_changes, looks_up=True)

    def _complete_changes(self) -> None:
        """Read the state before the changes, and show it."""
        answer = self._now.answer
        if answer is None or answer.diff is not None:
            return
        with self._busy_while(""):
            try:
                asked = dataclasses.replace(answer.result, _node=self._node_of(answer.result))
                diff = asked.diff()
                known = with_layouts(answer.known, self._node_of(asked), asked, self._together)
            except ToolkitError as error:
                self._say("error", f"The earlier state could not be read: {error}")
                return
            with self._locked():
                if answer is self._now.answer:
                    self._note(answer=dataclasses.replace(answer, known=known, diff=diff))

    def _do_item(self, message: parts.Message) -> None:
        """Open a table item that the simulation writes in the workbench's Table item tab."""
        self._background.start("item", partial(self._open_item, message.number), looks_up=True)

    def _open_item(self, place: int) -> None:
        simulation = self.simulation
        if simulation is None or self._holder is None:
            return
        row = records(simulation.changes)[place]
        try:
            key_type, value_type = simulation.item_types(row["handle"])
            abis = self._node_of(simulation).abis.at(simulation.ledger_version)
            key = move.decode_bcs(abis.layout(move.parse_type_tag(key_type)), row["key"])
        except ToolkitError as error:
            self._say("error", str(error))
            return
        self._holder.open_item(row["handle"], wire.TableItemRequest(key, key_type=key_type, value_type=value_type))

    def _node_of(self, simulation: Simulation) -> Node:
        """Return the node that has the state of a simulation: that of its fork, or the form's for this thread."""
        own = simulation._node  # noqa: SLF001 - set by the form, or by the fork
        return self._asked if own is self.node else own  # type: ignore[return-value]

    def _do_limit_gas(self, message: parts.Message) -> None:
        """Lower the maximum gas amount to what the payer can pay."""
        self._edit(estimate_max_gas_amount=False, max_gas_amount=str(message.number))

    def _do_keep_call(self, _message: parts.Message) -> None:
        """Add the call to those that run before the next one."""
        with self._locked():
            now = self._apply(Pressed())
            if now.request is not None and not now.errors:
                self._learn(earlier=(*now.earlier, now.request))

    def _do_drop_call(self, message: parts.Message) -> None:
        """Remove a call from those that run before this one."""
        with self._locked():
            earlier = self._now.earlier
            self._learn(earlier=(*earlier[: message.number], *earlier[message.number + 1 :]))


def _has_keys(signature: wire.TransactionSignature | None) -> bool:
    parts = [] if signature is None else list(signature.parts()) or [signature]
    return any(not isinstance(part, wire.NoAccountSignature) for part in parts)
