"""What is typed about a simulation: its parts, and the one mapping between the texts and a `SimulationRequest`.

What is not edited keeps the value that the form was filled with: fields of the request whose texts are those that
`write_request` writes for the last request are not read again. So every request comes out of the form as it went in.
"""

from __future__ import annotations

import json
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from toolkit import wire
from toolkit._present.messages import shorten
from toolkit.move import Address
from toolkit.move._ids import parse_hex, wire_address
from toolkit.widgets import _fields
from toolkit.widgets._fields import U64, Findings, validated
from toolkit.widgets._functions import FunctionDraft, function_fields, raw_field, read_call, write_call
from toolkit.widgets._messages import Group, Rows, Switch, Use, When, group, mono, select
from toolkit.wire._account_signatures import bitmap_of, parse_account_signature
from toolkit.wire._keys import PublicKeyType
from toolkit.wire._requests import with_estimates
from toolkit.wire._transaction_signatures import parse_signature

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.widgets._functions import ResolvedCall, ResolvedFunction
    from toolkit.wire import AccountSignature


class Payload(StrEnum):
    """What a transaction runs."""

    ENTRY = "entry"
    SCRIPT = "script"
    MULTISIG_ENTRY = "multisig_entry"
    MULTISIG_SCRIPT = "multisig_script"
    MULTISIG_STORED = "multisig_stored"


_PAYLOAD_LABELS = {
    Payload.ENTRY: "Entry function",
    Payload.SCRIPT: "Script",
    Payload.MULTISIG_ENTRY: "Multisig account: entry function",
    Payload.MULTISIG_SCRIPT: "Multisig account: script",
    Payload.MULTISIG_STORED: "Multisig account: stored payload",
}
_ENTRIES = (Payload.ENTRY, Payload.MULTISIG_ENTRY)
_SCRIPTS = (Payload.SCRIPT, Payload.MULTISIG_SCRIPT)
_MULTISIGS = (Payload.MULTISIG_ENTRY, Payload.MULTISIG_SCRIPT, Payload.MULTISIG_STORED)


class Shape(StrEnum):
    """How an account signs."""

    NONE = "none"
    ED25519 = "ed25519"
    SINGLE_KEY = "single_key"
    MULTI_KEY = "multi_key"
    MULTI_ED25519 = "multi_ed25519"
    JSON = "json"


_SHAPE_LABELS = {
    Shape.NONE: "no signature",
    Shape.ED25519: "Ed25519 (legacy account)",
    Shape.SINGLE_KEY: "single key",
    Shape.MULTI_KEY: "multi-key",
    Shape.MULTI_ED25519: "multi-Ed25519",
    Shape.JSON: "other, as JSON",
}
_SEVERAL = (Shape.MULTI_KEY, Shape.MULTI_ED25519)


class TypedKey(Struct, frozen=True):
    """A public key with its type."""

    type: PublicKeyType = "ed25519"
    key: str = ""


class KeyDraft(Struct, frozen=True):
    """The signature of one account."""

    shape: Shape = Shape.NONE
    key: str = ""
    type: PublicKeyType = "ed25519"
    keys: tuple[TypedKey, ...] = ()
    ed25519_keys: tuple[str, ...] = ()
    required: str = "1"
    signing: str = ""
    json: str = ""


class SignerDraft(Struct, frozen=True):
    """A secondary signer."""

    address: str = ""
    key: KeyDraft = KeyDraft()


class SimulationDraft(FunctionDraft, frozen=True):
    """What is typed about a simulation."""

    sender: str = ""
    payload: Payload = Payload.ENTRY
    multisig_address: str = ""
    bytecode: str = ""
    estimate_max_gas_amount: bool = True
    max_gas_amount: str = ""
    estimate_gas_unit_price: bool = True
    gas_unit_price: str = ""
    estimate_prioritized_gas_unit_price: bool = False
    replay: Literal["sequence", "number", "nonce"] = "sequence"
    sequence_number: str = ""
    nonce: str = ""
    expiration: str = ""
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
        hidden = {
            "sequence_number": self.replay != "number",
            "nonce": self.replay != "nonce",
            "max_gas_amount": self.estimate_max_gas_amount,
            "gas_unit_price": self.estimate_gas_unit_price,
            "function": not self.calls_function,
        }
        return not hidden.get(path, False)


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
    ("nonce", mono("Nonce", when=("replay", ("nonce",)))),
    ("expiration", mono("Expires", "seconds since 1970; empty: in 10 minutes")),
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
_TYPED_KEY = group(("type", select("Type", _TYPES)), ("key", _KEY), label="Key")
_SHAPES = group(
    ("type", select("Type of key", _TYPES, when=("shape", (Shape.SINGLE_KEY,)))),
    ("key", replace(_KEY, when=("shape", (Shape.ED25519, Shape.SINGLE_KEY)))),
    ("keys", Rows("Keys", item=_TYPED_KEY, blank=TypedKey(), when=("shape", (Shape.MULTI_KEY,)))),
    ("ed25519_keys", Rows("Keys", item=_KEY, when=("shape", (Shape.MULTI_ED25519,)))),
    ("required", mono("Signatures required", when=("shape", _SEVERAL))),
    ("signing", mono("Keys that sign", "such as 1, 3; empty: as usual", ("shape", _SEVERAL))),
    ("json", mono("Signature", when=("shape", (Shape.JSON,)), rows=4)),
)

# writing -------------------------------------------------------------------------------------------------------------

ESTIMATES = ("estimate_max_gas_amount", "estimate_gas_unit_price", "estimate_prioritized_gas_unit_price")
_NUMBERS = {
    "max_gas_amount": "max_gas_amount",
    "gas_unit_price": "gas_unit_price",
    "sequence_number": "sequence_number",
    "nonce": "replay_protection_nonce",
    "expiration": "expiration_timestamp_secs",
}  # fields of the request, all u64, by the key of their text


def write_request(request: wire.SimulationRequest | None) -> SimulationDraft:
    """Return the draft of a request; ``arguments``, the fields of known types, are left empty."""
    if request is None:
        return SimulationDraft()
    numbers = {key: getattr(request, name) for key, name in _NUMBERS.items()}
    keys = request.secondary_public_keys or (None,) * len(request.secondary_signers)
    typed: dict[str, Any] = {key: "" if number is None else str(number) for key, number in numbers.items()}
    asked = with_estimates(request)
    typed |= {name: getattr(asked, name) for name in ESTIMATES}
    return SimulationDraft(
        **typed,
        **_write_payload(request.payload),
        sender=wire_address(request.sender),
        replay="nonce"
        if numbers["nonce"] is not None
        else "sequence"
        if numbers["sequence_number"] is None
        else "number",
        signature="keys" if request.signature is None else "json",
        signature_json="" if request.signature is None else _pretty(request.signature.to_wire()),
        sender_key=_write_key(request.public_key),
        has_fee_payer=request.fee_payer is not None,
        fee_payer="" if request.fee_payer is None else wire_address(request.fee_payer),
        fee_payer_key=_write_key(request.fee_payer_public_key),
        secondary=tuple(
            SignerDraft(wire_address(address), _write_key(key))
            for address, key in zip(request.secondary_signers, keys, strict=True)
        ),
    )


def _write_payload(payload: wire.EntryFunction | wire.Script | wire.Multisig) -> dict[str, Any]:
    match payload:
        case wire.Multisig(transaction_payload=None):
            return {"payload": Payload.MULTISIG_STORED, "multisig_address": wire_address(payload.multisig_address)}
        case wire.Multisig():
            typed = _write_payload(payload.transaction_payload)  # type: ignore[arg-type]  # None is above
            kind = Payload(f"multisig_{typed['payload']}")
            return typed | {"payload": kind, "multisig_address": wire_address(payload.multisig_address)}
        case wire.Script():
            return write_call(payload) | {"payload": Payload.SCRIPT, "bytecode": payload.bytecode}
    return write_call(payload) | {"payload": Payload.ENTRY}


def _pretty(content: Any) -> str:
    return json.dumps(content, indent=1)


def _write_key(key: AccountSignature | None) -> KeyDraft:
    match key:
        case None | wire.NoAccountSignature():
            return KeyDraft()
        case wire.Ed25519Signature():
            return KeyDraft(Shape.ED25519, key=key.public_key)
        case wire.SingleKeySignature():
            return KeyDraft(Shape.SINGLE_KEY, key=key.public_key.value, type=key.public_key.type)
        case wire.MultiKeySignature():
            keys = tuple(TypedKey(one.type, one.value) for one in key.public_keys)
            places = [entry.index for entry in key.signatures]
            draft = KeyDraft(Shape.MULTI_KEY, keys=keys, required=str(key.signatures_required))
        case wire.MultiEd25519Signature():
            bits = int.from_bytes(parse_hex(key.bitmap))
            places = [place for place in range(32) if bits >> 31 - place & 1]
            draft = KeyDraft(Shape.MULTI_ED25519, ed25519_keys=tuple(key.public_keys), required=str(key.threshold))
        case _:
            return KeyDraft(Shape.JSON, json=_pretty(key.to_wire()))
    signing = ", ".join(str(place + 1) for place in places)
    said = (one for one in (draft, replace(draft, signing=signing)) if _read_key(one, "", Findings()) == key)
    return next(said, KeyDraft(Shape.JSON, json=_pretty(key.to_wire())))  # a bitmap that the fields cannot say


# reading -------------------------------------------------------------------------------------------------------------

_SIGNER_TEXTS = (
    "signature",
    "signature_json",
    "sender_key",
    "has_fee_payer",
    "fee_payer",
    "fee_payer_key",
    "secondary",
)
_SIGNER_FIELDS = (
    "signature",
    "public_key",
    "fee_payer",
    "fee_payer_public_key",
    "secondary_signers",
    "secondary_public_keys",
)


def read_request(
    draft: SimulationDraft, last: wire.SimulationRequest | None, call: ResolvedCall | None, found: Findings
) -> wire.SimulationRequest | None:
    """Return the request of a draft.

    Parameters
    ----------
    draft : SimulationDraft
    last : SimulationRequest or None
        The last good request. Fields whose texts have not changed keep its values.
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

    def part(texts: tuple[str, ...], names: tuple[str, ...], read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if last is not None and all(getattr(draft, key) == getattr(before, key) for key in texts):
            return {name: getattr(last, name) for name in names}
        return read()

    values: dict[str, Any] = {"sender": _fields.read_leaf(Address(), draft.sender, "sender", found)}
    values["payload"] = _read_payload(draft, last, call, found)
    for name in ("max_gas_amount", "gas_unit_price"):
        texts = (name, f"estimate_{name}")
        values |= part(texts, texts, partial(_read_amount, draft, before, last, name, found))
    values["estimate_prioritized_gas_unit_price"] = draft.estimate_prioritized_gas_unit_price
    replay = ("replay", "sequence_number", "nonce")
    values |= part(replay, ("sequence_number", "replay_protection_nonce"), partial(_read_replay, draft, found))
    if draft.expiration.strip():
        values |= _read_number(draft, "expiration", found)
    values |= part(_SIGNER_TEXTS, _SIGNER_FIELDS, partial(_read_signers, draft, found))
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
        if isinstance(inner, wire.Script) and isinstance(old, wire.Script) and inner.bytecode == old.bytecode:
            inner = inner.replace(abi=old.abi)
    if draft.payload not in _MULTISIGS:
        return inner
    address = _fields.read_leaf(Address(), draft.multisig_address, "multisig_address", found)
    return wire.Multisig(address, transaction_payload=inner) if found.good else None


def _read_number(draft: SimulationDraft, key: str, found: Findings) -> dict[str, Any]:
    return {_NUMBERS[key]: _fields.read_leaf(U64, getattr(draft, key), key, found)}


def _read_replay(draft: SimulationDraft, found: Findings) -> dict[str, Any]:
    key = {"number": "sequence_number", "nonce": "nonce"}.get(draft.replay)
    return {} if key is None else _read_number(draft, key, found)


def _read_amount(
    draft: SimulationDraft, before: SimulationDraft, last: wire.SimulationRequest | None, name: str, found: Findings
) -> dict[str, Any]:
    """Return an amount and whether it is estimated. The option stays None if that has the same meaning."""
    option = f"estimate_{name}"
    if getattr(draft, option):
        own = True if last is None or not getattr(before, option) else getattr(last, option)
        return {option: None if last is None else own}
    if not getattr(draft, name).strip():
        return {option: False}
    return _read_number(draft, name, found)


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
        case Shape.NONE:
            return None
        case Shape.JSON:
            return _read_json(parse_account_signature, draft.json, f"{path}.json", found)
        case Shape.ED25519 | Shape.SINGLE_KEY if not draft.key.strip():
            found.missing[f"{path}.key"] = "expected a public key as hex"
            return None
        case Shape.ED25519:
            return validated(partial(wire.Ed25519Signature, draft.key.strip()), found, f"{path}.key")
        case Shape.SINGLE_KEY:
            key = validated(partial(wire.PublicKey, draft.key.strip(), type=draft.type), found, f"{path}.key")
            return None if key is None else wire.SingleKeySignature(key)
    several = Findings()
    made = _read_several(draft, path, several)
    found.add(several)
    return made


def _read_several(draft: KeyDraft, path: str, found: Findings) -> Any:
    """Return the signature of an account of several keys."""
    multi_key = draft.shape is Shape.MULTI_KEY
    name, last = ("keys", ".key") if multi_key else ("ed25519_keys", "")
    typed = draft.keys if multi_key else [TypedKey(key=key) for key in draft.ed25519_keys]
    if not typed:
        found.missing[f"{path}.{name}"] = "expected the public keys of the account, got none"
    required = _fields.read_leaf(U64, draft.required, f"{path}.required", found)
    keys = [
        validated(partial(wire.PublicKey, one.key.strip(), type=one.type), found, f"{path}.{name}.{place}{last}")
        for place, one in enumerate(typed)
    ]
    signing = _read_signing(draft.signing, len(keys), f"{path}.signing", found) if keys else None
    public = [key for key in keys if key is not None]
    if not found.good:
        return None
    make: Callable[..., Any] = (
        partial(wire.MultiKeySignature, public, signatures_required=required)
        if multi_key
        else partial(wire.MultiEd25519Signature, [key.value for key in public], threshold=required)
    )
    if signing is None or validated(make, found, f"{path}.required") is None:
        return validated(make, found, f"{path}.required")
    if len(signing) < required:
        found.notes[f"{path}.signing"] = f"fewer than the {required} signatures that are required"
    about: dict[str, Any] = (
        {"signatures": [wire.IndexedSignature(place, signature=public[place].zero_signature()) for place in signing]}
        if multi_key
        else {"signatures": [bytes(64)] * len(signing), "bitmap": bitmap_of(signing, length=4)}
    )
    return validated(partial(make, **about), found, f"{path}.required")


def _read_signing(typed: str, count: int, path: str, found: Findings) -> list[int] | None:
    """Return the places of the keys that sign, counted from 0; None if nothing is typed, or it cannot be read."""
    if not typed.strip():
        return None
    numbers = [part.strip().lstrip("0") for part in typed.split(",")]
    known = [str(number) for number in range(1, count + 1)]
    if not set(numbers) <= set(known):
        found.errors[path] = f"expected numbers of keys from 1 to {count}, such as 1, {max(count, 1)}"
        return None
    return sorted({known.index(number) for number in numbers})


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
