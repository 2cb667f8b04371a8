"""The form of a simulation request: its fields, and its draft read into a request and written from one.

A draft is one JSON object. What is not edited keeps the value that the form was filled with: a part whose draft is
what `write_request` would write for the last request is not read again. So every request comes out of the form as it
went in.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move import Address, FunctionId, UInt, parse_type_tag
from toolkit.move._ids import parse_hex, wire_address
from toolkit.move._type_tags import wire_type
from toolkit.widgets import _fields
from toolkit.widgets._fields import Findings, group, select, switch, text
from toolkit.widgets._functions import arguments_text, function_fields, parse_arguments, raw_field, read_types
from toolkit.wire import (
    Ed25519Signature,
    EntryFunction,
    IndexedSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    Multisig,
    NoAccountSignature,
    PublicKey,
    Script,
    SimulationRequest,
    SingleKeySignature,
)
from toolkit.wire._account_signatures import bitmap_of, parse_account_signature
from toolkit.wire._keys import PublicKeyType
from toolkit.wire._transaction_signatures import parse_signature

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.widgets._functions import ResolvedCall, ResolvedFunction
    from toolkit.wire import AccountSignature


PAYLOADS = {
    "entry": "Entry function",
    "script": "Script",
    "multisig_entry": "Multisig account: entry function",
    "multisig_script": "Multisig account: script",
    "multisig_stored": "Multisig account: stored payload",
}
_ENTRIES = ["entry", "multisig_entry"]
_SCRIPTS = ["script", "multisig_script"]
_MULTISIGS = ["multisig_entry", "multisig_script", "multisig_stored"]

SHAPES = {
    "none": "no signature",
    "ed25519": "Ed25519 (legacy account)",
    "single_key": "single key",
    "multi_key": "multi-key",
    "multi_ed25519": "multi-Ed25519",
    "json": "other, as JSON",
}
"""The signatures of an account by name."""
_SEVERAL = ["multi_key", "multi_ed25519"]

_BLANK_KEY: dict[str, Any] = {
    "shape": "none",
    "key": "",
    "type": "ed25519",
    "keys": [],
    "ed25519_keys": [],
    "required": "1",
    "signing": "",
    "json": "",
}
BLANK: dict[str, Any] = {
    "seq": 0,
    "sender": "",
    "payload": "entry",
    "multisig_address": "",
    "function": "",
    "type_arguments": [],
    "arguments": [],
    "raw": "",
    "lead": "raw",
    "bytecode": "",
    "estimate_max_gas_amount": True,
    "max_gas_amount": "",
    "estimate_gas_unit_price": True,
    "gas_unit_price": "",
    "estimate_prioritized_gas_unit_price": False,
    "replay": "sequence",
    "sequence_number": "",
    "nonce": "",
    "expiration": "",
    "signature": "keys",
    "signature_json": "",
    "sender_key": _BLANK_KEY,
    "has_fee_payer": False,
    "fee_payer": "",
    "fee_payer_key": _BLANK_KEY,
    "secondary": [],
    "committed": "",
}
"""The draft of an empty form. ``seq`` counts edits; ``lead`` names what was edited last: ``raw`` or ``fields``."""

_OF_A_MODEL = re.compile(r"^[A-Z]\w+(?:\.\w+)*: ")
_U64 = UInt(64)


class Estimates(NamedTuple):
    """Which of its three estimates the node is asked for."""

    max_gas_amount: bool
    gas_unit_price: bool
    prioritized_gas_unit_price: bool


def estimates_of(request: SimulationRequest | None) -> Estimates:
    """Return the estimates a request asks for. An option of None asks for an estimate if the amount is None too."""
    if request is None:
        return Estimates(max_gas_amount=True, gas_unit_price=True, prioritized_gas_unit_price=False)
    max_gas, price = request.estimate_max_gas_amount, request.estimate_gas_unit_price
    return Estimates(
        max_gas_amount=(request.max_gas_amount is None and request.fee_payer is None) if max_gas is None else max_gas,
        gas_unit_price=request.gas_unit_price is None if price is None else price,
        prioritized_gas_unit_price=request.estimate_prioritized_gas_unit_price,
    )


# fields --------------------------------------------------------------------------------------------------------------


def form_fields(
    function: ResolvedFunction | None, call: ResolvedCall | None, filled: dict[str, Any] = BLANK
) -> dict[str, Any]:
    """Return what the browser draws.

    Parameters
    ----------
    function : ResolvedFunction or None
        The function that the draft names, if its ABI is known.
    call : ResolvedCall or None
        The same with its type arguments, if these are good: then each argument has a field.
    filled : dict, optional
        The draft that the form was filled with: sections with more than an empty form has are open.
    """
    folds = [part | {"filled": True} if _differs(part, filled) else part for part in (_gas_fields(), _signer_fields())]
    return group("", [("", part) for part in (_call_fields(function, call), *folds)], shared={"key": _shape_fields()})


def _differs(part: dict[str, Any], draft: dict[str, Any]) -> bool:
    return any(draft[key] != BLANK[key] for key, _ in part["fields"] if key)


def _call_fields(function: ResolvedFunction | None, call: ResolvedCall | None) -> dict[str, Any]:
    scripts = {"when": ["payload", _SCRIPTS]}
    fields: list[tuple[str | int, dict[str, Any]]] = [
        ("sender", text("Sender", mono=True, placeholder="0xa11ce", hint="an address; no key is needed")),
        ("payload", select("Runs", PAYLOADS)),
        ("multisig_address", text("Multisig account", mono=True, when=["payload", _MULTISIGS])),
        ("bytecode", text("Bytecode", mono=True, rows=3, hint="hex", **scripts)),
        *function_fields(
            function,
            call,
            placeholder="0x1::aptos_account::transfer",
            when=["payload", _ENTRIES],
            unknown_when=["payload", [*_ENTRIES, *_SCRIPTS]],
        ),
    ]
    return group("", fields if call is None else [*fields, ("raw", raw_field() | scripts)])


def _gas_fields() -> dict[str, Any]:
    amount = text("Max gas amount", mono=True, when=["estimate_max_gas_amount", [False]], hint="gas units")
    price = text("Gas unit price", mono=True, when=["estimate_gas_unit_price", [False]], hint="octas per gas unit")
    replay = {
        "sequence": "the sender's next sequence number",
        "number": "a sequence number",
        "nonce": "a replay protection nonce",
    }
    return group(
        "Gas and expiration",
        [
            ("estimate_max_gas_amount", switch("Estimate max gas amount")),
            ("max_gas_amount", amount),
            ("estimate_gas_unit_price", switch("Estimate gas unit price")),
            ("gas_unit_price", price),
            ("estimate_prioritized_gas_unit_price", switch("Use the prioritized gas unit price")),
            ("replay", select("Replay protection", replay)),
            ("sequence_number", text("Sequence number", mono=True, when=["replay", ["number"]])),
            ("nonce", text("Nonce", mono=True, when=["replay", ["nonce"]])),
            (
                "expiration",
                text("Expires", mono=True, hint="seconds since 1970; empty: in 10 minutes"),
            ),
        ],
        fold=True,
    )


def _signer_fields() -> dict[str, Any]:
    keys = {"when": ["signature", ["keys"]]}
    signer = group("Signer", [("address", text("Address", mono=True)), ("key", _key_fields("Signature"))])
    fields: list[tuple[str | int, dict[str, Any]]] = [
        ("signature", select("Signatures", {"keys": "by account", "json": "whole, as JSON"})),
        ("sender_key", _key_fields("Sender signs with") | keys),
        ("has_fee_payer", switch("Another account pays the fee") | keys),
        (
            "",
            group(
                "",
                [
                    ("fee_payer", text("Fee payer", mono=True, hint="0x0 estimates without charging anybody")),
                    ("fee_payer_key", _key_fields("Fee payer signs with")),
                ],
                when=["has_fee_payer", [True]],
            ),
        ),
        (
            "secondary",
            {
                "kind": "rows",
                "label": "Secondary signers",
                "item": signer,
                "blank": {"address": "", "key": _BLANK_KEY},
            }
            | keys,
        ),
        ("signature_json", text("Signature", mono=True, rows=5, when=["signature", ["json"]])),
    ]
    return group("Signers and fee payer", fields, fold=True)


def _key_fields(label: str) -> dict[str, Any]:
    """Return the fields of a signature; what they have in common is sent to the browser once."""
    return group("", [("shape", select(label, SHAPES)), ("", {"use": "key"})])


def _shape_fields() -> dict[str, Any]:
    key = text("Public key", mono=True, hint="hex; a public key, never a private one")
    kinds = {kind: kind for kind in get_args(PublicKeyType)}
    typed = group("Key", [("type", select("Type", kinds)), ("key", key)])
    blank = {"type": "ed25519", "key": ""}
    return group(
        "",
        [
            ("type", select("Type of key", kinds, when=["shape", ["single_key"]])),
            ("key", key | {"when": ["shape", ["ed25519", "single_key"]]}),
            (
                "keys",
                {"kind": "rows", "label": "Keys", "item": typed, "blank": blank, "when": ["shape", ["multi_key"]]},
            ),
            (
                "ed25519_keys",
                {"kind": "rows", "label": "Keys", "item": key, "blank": "", "when": ["shape", ["multi_ed25519"]]},
            ),
            ("required", text("Signatures required", mono=True, when=["shape", _SEVERAL])),
            (
                "signing",
                text("Keys that sign", mono=True, hint="such as 1, 3; empty: as usual", when=["shape", _SEVERAL]),
            ),
            ("json", text("Signature", mono=True, rows=4, when=["shape", ["json"]])),
        ],
    )


# writing -------------------------------------------------------------------------------------------------------------


def write_request(request: SimulationRequest | None) -> dict[str, Any]:
    """Return the draft of a request; ``arguments``, the fields of known types, are left empty."""
    if request is None:
        return dict(BLANK)
    estimates = estimates_of(request)._asdict()
    draft = BLANK | {f"estimate_{name}": asked for name, asked in estimates.items()}
    draft |= _write_payload(request.payload)
    nonce, number = request.replay_protection_nonce, request.sequence_number
    return draft | {
        "sender": wire_address(request.sender),
        "max_gas_amount": _number_text(request.max_gas_amount),
        "gas_unit_price": _number_text(request.gas_unit_price),
        "replay": "nonce" if nonce is not None else "sequence" if number is None else "number",
        "sequence_number": _number_text(number),
        "nonce": _number_text(nonce),
        "expiration": _number_text(request.expiration_timestamp_secs),
        "signature": "keys" if request.signature is None else "json",
        "signature_json": "" if request.signature is None else _pretty(request.signature.to_wire()),
        "sender_key": _write_key(request.public_key),
        "has_fee_payer": request.fee_payer is not None,
        "fee_payer": "" if request.fee_payer is None else wire_address(request.fee_payer),
        "fee_payer_key": _write_key(request.fee_payer_public_key),
        "secondary": [
            {"address": wire_address(address), "key": _write_key(key)}
            for address, key in zip(
                request.secondary_signers,
                request.secondary_public_keys or (None,) * len(request.secondary_signers),
                strict=True,
            )
        ],
    }


def _write_payload(payload: EntryFunction | Script | Multisig | None) -> dict[str, Any]:
    if isinstance(payload, Multisig):
        inner = payload.transaction_payload
        kind = "stored" if inner is None else "entry" if isinstance(inner, EntryFunction) else "script"
        about = {"payload": f"multisig_{kind}", "multisig_address": wire_address(payload.multisig_address)}
        return _write_payload(inner) | about
    if payload is None:
        return {}
    draft: dict[str, Any] = {
        "type_arguments": [wire_type(parse_type_tag(name)) for name in payload.type_arguments],
        "raw": arguments_text(payload.arguments),
    }
    if isinstance(payload, Script):
        return draft | {"payload": "script", "bytecode": payload.bytecode}
    return draft | {"payload": "entry", "function": FunctionId.parse(payload.function).wire}


def _number_text(number: int | None) -> str:
    return "" if number is None else str(number)


def _pretty(content: Any) -> str:
    return json.dumps(content, indent=1)


def _write_key(key: AccountSignature | None) -> dict[str, Any]:
    match key:
        case None | NoAccountSignature():
            about: dict[str, Any] = {}
        case Ed25519Signature():
            about = {"shape": "ed25519", "key": key.public_key}
        case SingleKeySignature():
            about = {"shape": "single_key", "key": key.public_key.value, "type": key.public_key.type}
        case MultiKeySignature():
            keys = [{"type": one.type, "key": one.value} for one in key.public_keys]
            about = {"shape": "multi_key", "keys": keys, "required": str(key.signatures_required)}
            if key.replace(signatures=key.implied_fields()["signatures"]) != key:
                about["signing"] = ", ".join(str(entry.index + 1) for entry in key.signatures)
        case MultiEd25519Signature():
            about = {
                "shape": "multi_ed25519",
                "ed25519_keys": list(key.public_keys),
                "required": str(key.threshold),
            }
            if MultiEd25519Signature(key.public_keys, threshold=key.threshold) != key:
                bits = int.from_bytes(parse_hex(key.bitmap))
                about["signing"] = ", ".join(str(n) for n in range(1, 33) if bits >> 32 - n & 1)
        case _:
            about = {"shape": "json", "json": _pretty(key.to_wire())}
    draft = _BLANK_KEY | about
    if key is None or "signing" not in about or _read_key(draft, "", Findings()) == key:
        return draft
    return _BLANK_KEY | {"shape": "json", "json": _pretty(key.to_wire())}  # a bitmap that the fields cannot say


# reading -------------------------------------------------------------------------------------------------------------


def calls_function(draft: dict[str, Any]) -> bool:
    """Return whether the draft calls an entry function, alone or by a multisig account."""
    return draft["payload"] in _ENTRIES


def read_request(
    draft: dict[str, Any], last: SimulationRequest | None, call: ResolvedCall | None, found: Findings
) -> SimulationRequest | None:
    """Return the request of a draft.

    Parameters
    ----------
    draft : dict
    last : SimulationRequest or None
        The last good request. Parts whose draft has not changed keep its values.
    call : ResolvedCall or None
        Checks the arguments of the entry function.
    found : Findings
        Receives what does not fit or is missing.

    Returns
    -------
    SimulationRequest or None
        None if something does not fit or is missing.
    """
    shadow = write_request(last) if last is not None else {}

    def kept(*keys: str) -> bool:
        return last is not None and all(draft[key] == shadow[key] for key in keys)

    fields: dict[str, Any] = {"sender": _read_address(draft["sender"], "sender", found)}
    fields["payload"] = _read_payload(draft, last, shadow, call, found)
    for name in ("max_gas_amount", "gas_unit_price"):
        fields |= _read_amount(draft, last, shadow, name, found)
    fields["estimate_prioritized_gas_unit_price"] = draft["estimate_prioritized_gas_unit_price"]
    if last is not None and kept("replay", "sequence_number", "nonce"):
        fields |= {name: getattr(last, name) for name in ("sequence_number", "replay_protection_nonce")}
    elif draft["replay"] == "number":
        fields["sequence_number"] = _read_number(draft["sequence_number"], "sequence_number", found)
    elif draft["replay"] == "nonce":
        fields["replay_protection_nonce"] = _read_number(draft["nonce"], "nonce", found)
    if draft["expiration"].strip():
        fields["expiration_timestamp_secs"] = _read_number(draft["expiration"], "expiration", found)
    signers = ("signature", "signature_json", "sender_key", "has_fee_payer", "fee_payer", "fee_payer_key", "secondary")
    if last is not None and kept(*signers):
        names = ("signature", "public_key", "fee_payer", "fee_payer_public_key", "secondary_signers")
        fields |= {name: getattr(last, name) for name in (*names, "secondary_public_keys")}
    else:
        fields |= _read_signers(draft, found)
    if not found.good:
        return None
    try:
        return SimulationRequest(**fields)
    except InputError as error:
        found.errors["signature"] = words_of(error)
        return None


def _read_payload(
    draft: dict[str, Any],
    last: SimulationRequest | None,
    shadow: dict[str, Any],
    call: ResolvedCall | None,
    found: Findings,
) -> Any:
    kind = draft["payload"]
    old: Any = None if last is None else last.payload
    inner_old: Any = old.transaction_payload if isinstance(old, Multisig) else old
    inner: Any = None
    if kind in _ENTRIES or kind in _SCRIPTS:
        common: dict[str, Any] = {}
        if inner_old is not None and draft["raw"] == shadow.get("raw"):
            common["arguments"] = inner_old.arguments
        else:
            common["arguments"] = parse_arguments(draft["raw"], found)
        common["type_arguments"] = read_types(draft["type_arguments"], found)
        if kind in _ENTRIES:
            inner = _entry_function(draft, common, call, found)
        else:
            abi = inner_old.abi if isinstance(inner_old, Script) and draft["bytecode"] == inner_old.bytecode else None
            inner = _script(draft, common, abi, found)
    if kind not in _MULTISIGS:
        return inner
    address = _read_address(draft["multisig_address"], "multisig_address", found)
    return Multisig(address, transaction_payload=inner) if address is not None and found.good else None


def _entry_function(
    draft: dict[str, Any], common: dict[str, Any], call: ResolvedCall | None, found: Findings
) -> EntryFunction | None:
    name = draft["function"].strip()
    if not name:
        found.missing["function"] = "expected address::module::function, such as 0x1::aptos_account::transfer"
        return None
    try:
        function = str(FunctionId.parse(name))
    except InputError as error:
        found.errors["function"] = str(error)
        return None
    if call is not None and common["arguments"] is not None and common["type_arguments"] == call.type_arguments:
        try:
            call.encode(common["arguments"])
        except (InputError, SchemaError) as error:
            found.errors["arguments"] = str(error)
            return None
    return _made(lambda: EntryFunction(function, **common), "arguments", found) if _complete(common) else None


def _complete(common: dict[str, Any]) -> bool:
    return None not in common.values()


def _script(
    draft: dict[str, Any], common: dict[str, Any], abi: dict[str, Any] | None, found: Findings
) -> Script | None:
    code = draft["bytecode"].strip()
    if not code:
        found.missing["bytecode"] = "expected the bytecode of the compiled script as hex"
        return None
    return _made(lambda: Script(code, abi=abi, **common), "bytecode", found) if _complete(common) else None


def _made(make: Callable[[], Any], path: str, found: Findings) -> Any:
    """Return what `make` returns; an InputError goes to `path`."""
    try:
        return make()
    except (InputError, SchemaError) as error:
        found.errors[path] = words_of(error)
        return None


def words_of(error: Exception) -> str:
    """Return the message of an error without the name of the class that raised it."""
    return _OF_A_MODEL.sub("", str(error))


def _read_address(typed: str, path: str, found: Findings) -> str | None:
    value: str | None = _fields.read_leaf(Address(), typed, path, found)
    return value


def _read_number(typed: str, path: str, found: Findings) -> int | None:
    value: int | None = _fields.read_leaf(_U64, typed, path, found)
    return value


def _read_amount(
    draft: dict[str, Any], last: SimulationRequest | None, shadow: dict[str, Any], name: str, found: Findings
) -> dict[str, Any]:
    """Return an amount and whether it is estimated. The option stays None if that has the same meaning."""
    option = f"estimate_{name}"
    estimated = draft[option]
    if last is not None and estimated == shadow[option] and draft[name] == shadow[name]:
        return {name: getattr(last, name), option: getattr(last, option)}
    if estimated:
        as_before = last is not None and shadow[option]
        return {name: None, option: getattr(last, option) if as_before else None if last is None else True}
    if not draft[name].strip():
        return {name: None, option: False}
    return {name: _read_number(draft[name], name, found), option: None}


def _read_signers(draft: dict[str, Any], found: Findings) -> dict[str, Any]:
    if draft["signature"] == "json":
        content = _read_object(draft["signature_json"], "signature_json", found)
        if content is None:
            return {}
        return {"signature": _made(partial(parse_signature, content), "signature_json", found)}
    fields: dict[str, Any] = {"public_key": _read_key(draft["sender_key"], "sender_key", found)}
    if draft["has_fee_payer"]:
        fields["fee_payer"] = _read_address(draft["fee_payer"], "fee_payer", found)
        fields["fee_payer_public_key"] = _read_key(draft["fee_payer_key"], "fee_payer_key", found)
    signers = list(enumerate(draft["secondary"]))
    fields["secondary_signers"] = [
        _read_address(one["address"], f"secondary.{place}.address", found) for place, one in signers
    ]
    keys = [_read_key(one["key"], f"secondary.{place}.key", found) for place, one in signers]
    fields["secondary_public_keys"] = keys if any(keys) else ()
    return fields


def _read_key(draft: dict[str, Any], path: str, found: Findings) -> Any:
    shape = draft["shape"]
    if shape == "none":
        return None
    if shape == "json":
        content = _read_object(draft["json"], f"{path}.json", found)
        return None if content is None else _made(partial(parse_account_signature, content), f"{path}.json", found)
    if shape in ("ed25519", "single_key"):
        typed = draft["key"].strip()
        if not typed:
            found.missing[f"{path}.key"] = "expected a public key as hex"
            return None
        if shape == "ed25519":
            return _made(lambda: Ed25519Signature(typed), f"{path}.key", found)
        return _made(lambda: SingleKeySignature(PublicKey(typed, type=draft["type"])), f"{path}.key", found)
    return _read_several(draft, path, found)


def _read_several(draft: dict[str, Any], path: str, found: Findings) -> Any:
    """Return the signature of an account of several keys."""
    several, multi_key = Findings(), draft["shape"] == "multi_key"
    name = "keys" if multi_key else "ed25519_keys"
    typed = draft["keys"] if multi_key else [{"key": key, "type": "ed25519"} for key in draft["ed25519_keys"]]
    if not typed:
        several.missing[f"{path}.{name}"] = "expected the public keys of the account, got none"
    required = _read_number(draft["required"], f"{path}.required", several)
    keys = [
        _made(
            partial(PublicKey, one["key"].strip(), type=one["type"]),
            f"{path}.{name}.{place}{'.key' * multi_key}",
            several,
        )
        for place, one in enumerate(typed)
    ]
    signing = _read_signing(draft.get("signing", ""), len(keys), f"{path}.signing", several) if keys else None
    key: Any = None
    if several.good and required is not None:
        values = [one.value for one in keys]
        make: Callable[[], Any] = (
            partial(MultiKeySignature, keys, signatures_required=required)
            if multi_key
            else partial(MultiEd25519Signature, values, threshold=required)
        )
        key = _made(make, f"{path}.required", several)
    if key is not None and signing is not None:
        about: dict[str, Any] = (
            {"signatures": [IndexedSignature(place, signature=keys[place].zero_signature()) for place in signing]}
            if multi_key
            else {"signatures": [bytes(64)] * len(signing), "bitmap": bitmap_of(signing, length=4)}
        )
        key = _made(partial(make, **about), f"{path}.required", several)
        if required is not None and len(signing) < required:
            several.notes[f"{path}.signing"] = f"fewer than the {required} signatures that are required"
    found.errors |= several.errors
    found.missing |= several.missing
    found.notes |= several.notes
    return key


def _read_signing(typed: str, count: int, path: str, found: Findings) -> list[int] | None:
    """Return the places of the keys that sign, counted from 0; None if nothing is typed, or it cannot be read."""
    if not typed.strip():
        return None
    numbers = [part.strip() for part in typed.split(",")]
    known = {str(number) for number in range(1, count + 1)}
    if not all(number.lstrip("0") in known for number in numbers):
        found.errors[path] = f"expected numbers of keys from 1 to {count}, such as 1, {max(count, 1)}"
        return None
    return sorted({int(number.lstrip("0")) - 1 for number in numbers})


def _read_object(typed: str, path: str, found: Findings) -> dict[str, Any] | None:
    """Return the JSON object of a signature; None if nothing is typed, or it is something else."""
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
        return content
    found.errors[path] = f"{expected}, got {shorten(typed.strip())}"
    return None
