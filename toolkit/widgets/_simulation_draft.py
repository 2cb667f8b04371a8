"""What is typed about a simulation: its parts, and the one mapping between the texts and a `SimulationRequest`.

What is not edited keeps the value that the form was filled with: fields of the request whose texts are those that
`write_request` writes for the last request are not read again. So every request comes out of the form as it went in.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from toolkit import wire
from toolkit._present.messages import shorten
from toolkit.move import Address
from toolkit.move._ids import wire_address
from toolkit.widgets import _fields
from toolkit.widgets._fields import U64, Findings, validated
from toolkit.widgets._functions import FunctionDraft, function_fields, raw_field, read_call, write_call
from toolkit.widgets._messages import Group, Rows, Switch, Use, When, group, mono, select
from toolkit.wire._keys import PublicKeyType
from toolkit.wire._requests import with_estimates
from toolkit.wire._signatures import parse_account_signature, parse_signature

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.widgets._functions import ResolvedCall, ResolvedFunction
    from toolkit.wire import AccountSignature


Payload = Literal["entry", "script", "multisig_entry", "multisig_script", "multisig_stored"]
_PAYLOAD_LABELS: dict[Payload, str] = {
    "entry": "Entry function",
    "script": "Script",
    "multisig_entry": "Multisig account: entry function",
    "multisig_script": "Multisig account: script",
    "multisig_stored": "Multisig account: stored payload",
}
_ENTRIES = ("entry", "multisig_entry")
_SCRIPTS = ("script", "multisig_script")
_MULTISIGS = ("multisig_entry", "multisig_script", "multisig_stored")

Shape = Literal["none", "ed25519", "single_key", "json"]  # how an account signs
_SHAPE_LABELS: dict[Shape, str] = {
    "none": "no signature",
    "ed25519": "Ed25519 (legacy account)",
    "single_key": "single key",
    "json": "several keys or other, as JSON",
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


class SimulationDraft(FunctionDraft, frozen=True):
    """What is typed about a simulation."""

    sender: str = ""
    payload: Payload = "entry"
    multisig_address: str = ""
    bytecode: str = ""
    estimate_max_gas_amount: bool = True
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

    @property
    def calls_function(self) -> bool:
        """Whether an entry function is called, alone or by a multisig account."""
        return self.payload in _ENTRIES

    def shows(self, path: str) -> bool:
        """Return whether a field is shown."""
        match path:
            case "sequence_number":
                return self.replay == "number"
            case "replay_protection_nonce":
                return self.replay == "nonce"
            case "max_gas_amount" | "gas_unit_price":
                return not getattr(self, f"estimate_{path}")
        return path != "function" or self.calls_function


# fields --------------------------------------------------------------------------------------------------------------


def form_fields(function: ResolvedFunction | None, call: ResolvedCall | None, filled: SimulationDraft) -> Group:
    """Return what the browser draws.

    Parameters
    ----------
    function : ResolvedFunction or None
        The function that the draft names, if its ABI is known.
    call : ResolvedCall or None
        The same with its type arguments, if these are good: then each argument has a field.
    filled : SimulationDraft
        The draft that the form was filled with: sections with more than an empty form has are open.
    """
    blank = SimulationDraft()
    folds = [
        replace(
            part, filled=any(getattr(filled, str(key)) != getattr(blank, str(key)) for key, _ in part.fields if key)
        )
        for part in (_GAS, _SIGNERS)
    ]
    return Group(fields=tuple(("", part) for part in (_call_fields(function, call), *folds)), shared={"key": _SHAPES})


def _call_fields(function: ResolvedFunction | None, call: ResolvedCall | None) -> Group:
    scripts, known = ("payload", _SCRIPTS), ("payload", (*_ENTRIES, *_SCRIPTS))
    example = "0x1::aptos_account::transfer"
    return group(
        ("sender", mono("Sender", "an address; no key is needed", placeholder="0xa11ce")),
        ("payload", select("Runs", _PAYLOAD_LABELS)),
        ("multisig_address", mono("Multisig account", when=("payload", _MULTISIGS))),
        ("bytecode", mono("Bytecode", "hex", scripts, rows=3)),
        *function_fields(function, call, placeholder=example, when=("payload", _ENTRIES), unknown_when=known),
        *([] if call is None else [("raw", raw_field(scripts))]),
    )


_REPLAYS = {
    "sequence": "the sender's next sequence number",
    "number": "a sequence number",
    "nonce": "a replay protection nonce",
}
_GAS = group(
    ("estimate_max_gas_amount", Switch("Estimate max gas amount")),
    ("max_gas_amount", mono("Max gas amount", "gas units", ("estimate_max_gas_amount", (False,)))),
    ("estimate_gas_unit_price", Switch("Estimate gas unit price")),
    ("gas_unit_price", mono("Gas unit price", "octas per gas unit", ("estimate_gas_unit_price", (False,)))),
    ("estimate_prioritized_gas_unit_price", Switch("Use the prioritized gas unit price")),
    ("replay", select("Replay protection", _REPLAYS)),
    ("sequence_number", mono("Sequence number", when=("replay", ("number",)))),
    ("replay_protection_nonce", mono("Nonce", when=("replay", ("nonce",)))),
    ("expiration_timestamp_secs", mono("Expires", "seconds since 1970; empty: in 10 minutes")),
    label="Gas and expiration",
    fold=True,
)


def _key_fields(label: str, when: When = None) -> Group:
    """Return the fields of a signature; what they have in common is sent to the browser once."""
    return group(("shape", select(label, _SHAPE_LABELS)), ("", Use(use="key")), when=when)


_KEYS = ("signature", ("keys",))
_PAYER = group(
    ("fee_payer", mono("Fee payer", "0x0 estimates without charging anybody")),
    ("fee_payer_key", _key_fields("Fee payer signs with")),
    when=("has_fee_payer", (True,)),
)
_SIGNER = group(("address", mono("Address")), ("key", _key_fields("Signature")), label="Signer")
_SIGNERS = group(
    ("signature", select("Signatures", {"keys": "by account", "json": "whole, as JSON"})),
    ("sender_key", _key_fields("Sender signs with", _KEYS)),
    ("has_fee_payer", Switch("Another account pays the fee", when=_KEYS)),
    ("", _PAYER),
    ("secondary", Rows("Secondary signers", item=_SIGNER, blank=SignerDraft(), when=_KEYS)),
    ("signature_json", mono("Signature", when=("signature", ("json",)), rows=5)),
    label="Signers and fee payer",
    fold=True,
)
_KEY = mono("Public key", "hex; a public key, never a private one")
_TYPES = {kind: kind for kind in get_args(PublicKeyType)}
_SHAPES = group(
    ("type", select("Type of key", _TYPES, when=("shape", ("single_key",)))),
    ("key", replace(_KEY, when=("shape", ("ed25519", "single_key")))),
    ("json", mono("Signature", when=("shape", ("json",)), rows=4)),
)

# writing -------------------------------------------------------------------------------------------------------------

ESTIMATES = ("estimate_max_gas_amount", "estimate_gas_unit_price", "estimate_prioritized_gas_unit_price")
_NUMBERS = (
    *("max_gas_amount", "gas_unit_price"),
    *("sequence_number", "replay_protection_nonce", "expiration_timestamp_secs"),
)  # all u64


def write_request(request: wire.SimulationRequest | None) -> SimulationDraft:
    """Return the draft of a request; ``arguments``, the fields of known types, are left empty."""
    if request is None:
        return SimulationDraft()
    numbers = {name: getattr(request, name) for name in _NUMBERS}
    typed: dict[str, Any] = {name: "" if number is None else str(number) for name, number in numbers.items()}
    asked = with_estimates(request)
    typed |= {name: getattr(asked, name) for name in ESTIMATES}
    if request.replay_protection_nonce is not None or request.sequence_number is not None:
        typed["replay"] = "number" if request.replay_protection_nonce is None else "nonce"
    if request.signature is not None:
        typed |= {"signature": "json", "signature_json": _pretty(request.signature.to_wire())}
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


def by_account(request: wire.SimulationRequest) -> wire.SimulationRequest:
    """Return the request with keys by account instead of one signature, if that sends the same signature."""
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


def _write_payload(payload: wire.EntryFunction | wire.Script | wire.Multisig) -> dict[str, Any]:
    match payload:
        case wire.Multisig():
            inner = payload.transaction_payload
            typed = {"payload": "stored"} if inner is None else _write_payload(inner)
            kind, address = f"multisig_{typed['payload']}", wire_address(payload.multisig_address)
            return typed | {"payload": kind, "multisig_address": address}
        case wire.Script():
            return write_call(payload) | {"payload": "script", "bytecode": payload.bytecode}
    return write_call(payload) | {"payload": "entry"}


def _pretty(content: Any) -> str:
    return json.dumps(content, indent=1)


def _write_key(key: AccountSignature | None) -> KeyDraft:
    match key:
        case None | wire.NoAccountSignature():
            return KeyDraft()
        case wire.Ed25519Signature():
            draft = KeyDraft("ed25519", key=key.public_key)
        case wire.SingleKeySignature():
            draft = KeyDraft("single_key", key=key.public_key.value, type=key.public_key.type)
        case _:
            draft = KeyDraft("json")
    # JSON says what the fields cannot: several keys, and other signatures.
    same = _read_key(draft, "", Findings()) == key
    return draft if same else KeyDraft("json", json=_pretty(key.to_wire()))


# reading -------------------------------------------------------------------------------------------------------------


def read_request(
    draft: SimulationDraft, last: wire.SimulationRequest | None, call: ResolvedCall | None, found: Findings
) -> wire.SimulationRequest | None:
    """Return the request of a draft.

    Parameters
    ----------
    draft : SimulationDraft
    last : SimulationRequest or None
        The last good request. Entries that mean the same as in its draft keep its values.
    call : ResolvedCall or None
        Checks the arguments of the entry function.
    found : Findings
        Receives what does not fit or is missing.

    Returns
    -------
    SimulationRequest or None
        None if something does not fit or is missing.
    """
    before = write_request(last)

    def edited(read: Callable[[SimulationDraft, Findings], dict[str, Any]]) -> dict[str, Any]:
        values = read(draft, found)
        if values != read(before, Findings()):
            return values
        return {} if last is None else {name: getattr(last, name) for name in values}

    values: dict[str, Any] = {"sender": _fields.read_leaf(Address(), draft.sender, "sender", found)}
    values["payload"] = _read_payload(draft, last, call, found)
    for name in ("max_gas_amount", "gas_unit_price"):
        values |= edited(partial(_read_amount, name))
    values["estimate_prioritized_gas_unit_price"] = draft.estimate_prioritized_gas_unit_price
    values |= edited(_read_replay)
    if draft.expiration_timestamp_secs.strip():
        values |= _read_number("expiration_timestamp_secs", draft, found)
    values |= edited(_read_signers)
    return validated(lambda: wire.SimulationRequest(**values), found, "signature") if found.good else None


def _read_payload(
    draft: SimulationDraft, last: wire.SimulationRequest | None, call: ResolvedCall | None, found: Findings
) -> wire.EntryFunction | wire.Script | wire.Multisig | None:
    payload = None if last is None else last.payload
    old = payload.transaction_payload if isinstance(payload, wire.Multisig) else payload
    inner: wire.EntryFunction | wire.Script | None = None
    if draft.payload in _ENTRIES:
        inner = read_call(draft, wire.EntryFunction, found, last=old, call=call)
    elif draft.payload in _SCRIPTS:
        inner = read_call(draft, wire.Script, found, last=old, named="bytecode")
        if inner is not None and isinstance(old, wire.Script) and inner.bytecode == old.bytecode:
            inner = inner.replace(abi=old.abi)
    if draft.payload not in _MULTISIGS:
        return inner
    address = _fields.read_leaf(Address(), draft.multisig_address, "multisig_address", found)
    return wire.Multisig(address, transaction_payload=inner) if found.good else None


def _read_number(name: str, draft: SimulationDraft, found: Findings) -> dict[str, Any]:
    return {name: _fields.read_leaf(U64, getattr(draft, name), name, found)}


def _read_replay(draft: SimulationDraft, found: Findings) -> dict[str, Any]:
    values: dict[str, Any] = {"sequence_number": None, "replay_protection_nonce": None}
    name = {"number": "sequence_number", "nonce": "replay_protection_nonce"}.get(draft.replay)
    return values if name is None else values | _read_number(name, draft, found)


def _read_amount(name: str, draft: SimulationDraft, found: Findings) -> dict[str, Any]:
    """Return an amount and whether it is estimated; of an amount, the option stays open."""
    option = f"estimate_{name}"
    if getattr(draft, option) or not getattr(draft, name).strip():
        return {name: None, option: getattr(draft, option)}
    return {option: None} | _read_number(name, draft, found)


def _read_signers(draft: SimulationDraft, found: Findings) -> dict[str, Any]:
    if draft.signature == "json":
        return {"signature": _read_json(parse_signature, draft.signature_json, "signature_json", found)}
    values = {"public_key": _read_key(draft.sender_key, "sender_key", found)}
    if draft.has_fee_payer:
        values["fee_payer"] = _fields.read_leaf(Address(), draft.fee_payer, "fee_payer", found)
        values["fee_payer_public_key"] = _read_key(draft.fee_payer_key, "fee_payer_key", found)
    signers = [(f"secondary.{place}", one) for place, one in enumerate(draft.secondary)]
    addresses = [_fields.read_leaf(Address(), one.address, f"{path}.address", found) for path, one in signers]
    keys = [_read_key(one.key, f"{path}.key", found) for path, one in signers]
    return values | {"secondary_signers": addresses, "secondary_public_keys": keys if any(keys) else ()}


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
    """Return the signature of a JSON object; None if nothing is typed, or it is something else."""
    expected = "expected a JSON object with a type, as nodes print signatures"
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
