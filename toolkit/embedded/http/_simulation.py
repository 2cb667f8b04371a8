"""``POST /v1/transactions/simulate``: execute a transaction at the head and return its output.

A simulated transaction must not have a valid signature. Signatures of ed25519, multi-ed25519 and secp256k1 keys are
verified; keyless, passkey and abstract signatures count as not valid.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.embedded import _render as render
from toolkit.embedded._execution import run_view
from toolkit.embedded._render import simulation_bcs
from toolkit.embedded._transaction import Transaction
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.framework._coin import APTOS_COIN
from toolkit.embedded.http._messages import BCS, JSON, HttpAnswer, encode, error_context, invalid_input
from toolkit.embedded.http._parsing import (
    Fields,
    bcs_problem,
    bind,
    boolean_query,
    check_transaction_nesting,
    check_types,
    hex_problem,
    json_body,
    media_type,
    plain_arguments,
    shown,
    type_tag,
)
from toolkit.embedded.http._reads import gas_estimate
from toolkit.errors import ToolkitError
from toolkit.move import encode_bcs, parse_hex
from toolkit.wire import (
    Ed25519Signature,
    EncodedEntryFunction,
    EncodedMultisig,
    EncodedPayloadV2,
    EncodedScript,
    FeePayerSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    NoAccountSignature,
    RawTransaction,
    SignedTransaction,
    SingleKeySignature,
    SingleSenderSignature,
    is_zero_padded,
    parse_signature,
)

if TYPE_CHECKING:
    from toolkit.embedded.http._messages import HttpCall
    from toolkit.embedded.http._node import EmbeddedNode
    from toolkit.move import FunctionId
    from toolkit.wire import AccountSignature, EncodedPayload, PublicKey, Signature, TransactionSignature

__all__ = ["SIGNED_TRANSACTION_BCS", "has_valid_signature", "signed_from_json", "simulate"]

SIGNED_TRANSACTION_BCS = "application/x.aptos.signed_transaction+bcs"


_INVALID = "Simulated transaction invalid"
_TYPE = "string(MoveType)"
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64
_BITMAP_BYTES = 4
_MAX_KEYS = 32
# Kinds of a public key and of its signature that belong together.
_PAIRS = {
    ("ed25519", "ed25519"),
    ("secp256k1_ecdsa", "secp256k1_ecdsa"),
    ("secp256r1_ecdsa", "web_authn"),
    ("keyless", "keyless"),
    ("federated_keyless", "keyless"),
}
# Kinds of a transaction's signature that nodes read in JSON.
_SIGNATURES = {
    kind.type
    for kind in (
        Ed25519Signature,
        MultiEd25519Signature,
        MultiAgentSignature,
        FeePayerSignature,
        NoAccountSignature,
    )
}
_SECP256K1_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_SCALAR_BYTES = 32
_U64_MAX = 2**64 - 1
_MODEL = "SubmitTransactionRequest"
_CONTEXT = "Failed to create SignedTransaction from SubmitTransactionRequest: Failed to parse transaction payload: "


class _Overrides(NamedTuple):
    """The three options of the query."""

    max_gas: bool
    price: bool
    prioritized: bool


def simulate(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/transactions/simulate``: execute a transaction at the head without committing it."""
    node.access.check_simulation()
    node.access.check_output(call, "Simulate transaction")
    overrides = _Overrides(
        boolean_query(call, "estimate_max_gas_amount"),
        boolean_query(call, "estimate_gas_unit_price"),
        boolean_query(call, "estimate_prioritized_gas_unit_price"),
    )
    if media_type(call, JSON, SIGNED_TRANSACTION_BCS) == JSON:
        signed = signed_from_json(node, call)
    else:
        signed = _from_bcs(call.body)
    node.access.check_sender(signed.raw.sender)
    if has_valid_signature(signed):
        invalid_input("Simulated transactions must not have a valid signature")
    try:
        transaction = Transaction(_override(node, signed, overrides))
    except ToolkitError as error:
        invalid_input(f"{_INVALID}: {error}")
    if transaction.executable is None and transaction.multisig_address is None:
        invalid_input(f"{_INVALID}: an empty payload needs a multisig address")
    version = node.chain.head
    output = node.ledger.simulate(transaction, check_keys=True)
    gas_used = output.charges.total_charge_gas_units
    if call.wants_bcs():
        encoded = simulation_bcs(transaction, output, state=node.chain.state, version=version)
        return HttpAnswer(encoded, media_type=BCS, gas_used=gas_used)
    answer = render.simulation_json(
        node.chain.code_at(version),
        transaction,
        output,
        version=version,
        timestamp_us=node.chain.blocks[-1].timestamp_us,
        tables=node.chain.tables,
    )
    return HttpAnswer(encode([answer]), gas_used=gas_used)


def _from_bcs(body: bytes) -> SignedTransaction:
    try:
        signed = SignedTransaction.from_bcs(body)
        check_transaction_nesting(signed.raw.payload)
    except ToolkitError as error:
        invalid_input(f"Failed to deserialize input into SignedTransaction: {bcs_problem(error)}")
    return signed


def _override(node: EmbeddedNode, signed: SignedTransaction, overrides: _Overrides) -> SignedTransaction:
    """Replace gas unit price and maximum gas if requested; the maximum is what the sender can pay."""
    raw = signed.raw
    if overrides.price or overrides.prioritized:
        estimate = gas_estimate(node)
        price = estimate["prioritized_gas_estimate" if overrides.prioritized else "gas_estimate"]
        raw = replace(raw, gas_unit_price=price)
    if overrides.max_gas:
        schedule = node.chain.schedule_at(node.chain.head)
        lowest = -(-schedule["txn.min_transaction_gas_units"] // schedule.scaling)
        affordable = _balance(node, raw.sender) // max(1, raw.gas_unit_price)
        limit = min(max(affordable, lowest), schedule["txn.maximum_number_of_gas_units"])
        raw = replace(raw, max_gas_amount=limit)
    return replace(signed, raw=raw)


def _balance(node: EmbeddedNode, address: str) -> int:
    """Return the sender's balance, read with the same view as on a node."""
    head = node.chain.head
    bound = node.chain.code_at(head).function("0x1", "coin", "balance", (APTOS_COIN,))
    try:
        values, _ = run_view(node.chain.snapshot(head), bound, [address], (APTOS_COIN,))
    except VmError as error:
        return invalid_input(error.view_message, vm_error_code=error.vm_error_code)
    return int(values[0])


def has_valid_signature(signed: SignedTransaction) -> bool:
    """Return True if all signatures of a transaction are valid."""
    # Signatures of zeros are the usual case and never valid.
    if is_zero_padded(signed.signature):
        return False
    message = signed.signing_message()
    return all(_is_valid(one, message) for one in _account_signatures(signed.signature))


def _account_signatures(signature: TransactionSignature) -> list[AccountSignature | TransactionSignature]:
    if isinstance(signature, SingleSenderSignature):
        return [signature.sender]
    if isinstance(signature, FeePayerSignature):
        return [signature.sender, *signature.secondary_signers, signature.fee_payer_signer]
    if isinstance(signature, MultiAgentSignature):
        return [signature.sender, *signature.secondary_signers]
    return [signature]


def _is_valid(signature: AccountSignature | TransactionSignature, message: bytes) -> bool:
    match signature:
        case Ed25519Signature(public_key=key, signature=value):
            return _ed25519(_data(key), _data(value), message)
        case MultiEd25519Signature():
            return _multi_ed25519(signature, message)
        case SingleKeySignature(public_key=key, signature=value):
            return _any_key(key, value, message)
        case MultiKeySignature(public_keys=keys, signatures=signatures, signatures_required=required):
            return len(signatures) >= required and all(
                _any_key(keys[one.index], one.signature, message) for one in signatures
            )
        case _:
            return False


def _any_key(key: PublicKey, signature: Signature, message: bytes) -> bool:
    if key.type == signature.type == "ed25519":
        return _ed25519(_data(key.value), _data(signature.value), message)
    if key.type == signature.type == "secp256k1_ecdsa":
        return _secp256k1(_data(key.value), _data(signature.value), message)
    return False


def _multi_ed25519(signature: MultiEd25519Signature, message: bytes) -> bool:
    """Verify each signature with the key of its bit in the bitmap, most significant bit first."""
    bits = int.from_bytes(_data(signature.bitmap), "big")
    signers = [index for index in range(32) if bits >> (31 - index) & 1]
    if len(signers) < signature.threshold or len(signers) != len(signature.signatures):
        return False
    keys = signature.public_keys
    return all(
        index < len(keys) and _ed25519(_data(keys[index]), _data(value), message)
        for index, value in zip(signers, signature.signatures, strict=True)
    )


def _ed25519(key: bytes, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _secp256k1(key: bytes, signature: bytes, message: bytes) -> bool:
    """Verify 64 bytes of r and s over the message's SHA3-256; a high s is not canonical, hence not valid."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    r = int.from_bytes(signature[:_SCALAR_BYTES], "big")
    s = int.from_bytes(signature[_SCALAR_BYTES:], "big")
    if s > _SECP256K1_HALF_ORDER:
        return False
    try:
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), key)
        digest = hashlib.sha3_256(message).digest()
        scheme = ec.ECDSA(utils.Prehashed(hashes.SHA3_256()))
        public.verify(utils.encode_dss_signature(r, s), digest, scheme)
    except (InvalidSignature, ValueError):
        return False
    return True


def _data(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


class _Call(NamedTuple):
    """An entry function payload of a body."""

    function: FunctionId
    type_arguments: list[str]
    arguments: list[Any]


class _ScriptCall(NamedTuple):
    """A script payload of a body; its arguments need the ABI in the bytecode, which the embedded node cannot read."""

    bytecode: bytes
    type_arguments: list[str]


class _MultisigCall(NamedTuple):
    """A multisig payload of a body."""

    address: str
    call: _Call | _ScriptCall | None


class _Bundle(NamedTuple):
    """A payload that nodes no longer run."""

    type_arguments: tuple[str, ...] = ()


def signed_from_json(node: EmbeddedNode, call: HttpCall) -> SignedTransaction:
    """Return the transaction of a JSON body; its chain id is that of the node.

    A node first parses the body, then checks payload and signature, and only then reads the ledger.
    """
    body = json_body(call, _MODEL)
    fields = Fields(body.value, ("UserTransactionRequestInner", _MODEL))
    sender, sequence_number = fields.address("sender"), fields.u64("sequence_number")
    max_gas_amount, gas_unit_price = fields.u64("max_gas_amount"), fields.u64("gas_unit_price")
    expiration = fields.u64("expiration_timestamp_secs")
    payload = _payload(fields)
    nonce = fields.optional_u64("replay_protection_nonce")
    unchecked = _signature_object(Fields(body.value, (_MODEL,)))
    _check_payload(payload)
    signature = _signature(Fields(body.value, (_MODEL,)), unchecked)
    with error_context(_CONTEXT):
        encoded = _encoded(node, payload)
    if nonce is not None:  # orderless: the sequence number is not used, and the payload has its newer form
        sequence_number = _U64_MAX
        if isinstance(encoded, EncodedMultisig):
            encoded = EncodedPayloadV2(encoded.payload, encoded.multisig_address, nonce)
        elif isinstance(encoded, EncodedEntryFunction | EncodedScript):
            encoded = EncodedPayloadV2(encoded, None, nonce)
    raw = RawTransaction(
        sender=sender,
        sequence_number=sequence_number,
        payload=encoded,
        max_gas_amount=max_gas_amount,
        gas_unit_price=gas_unit_price,
        expiration_timestamp_secs=expiration,
        chain_id=node.chain.chain_id,
    )
    return SignedTransaction(raw, signature)


def signature_problem(value: dict[str, Any]) -> str | None:
    """Return the fault in the structure of a signature in JSON, in the words of a node, or None.

    Raises
    ------
    KeyError, TypeError, AttributeError
        If the value does not have the documented shape.
    """
    kind = value["type"]
    if kind in {MultiAgentSignature.type, FeePayerSignature.type}:
        parts = [value["sender"], *value["secondary_signers"]]
        name = "MultiAgent" if kind == MultiAgentSignature.type else "FeePayer"
        addresses, signers = len(value["secondary_signer_addresses"]), len(value["secondary_signers"])
        problem = _first(
            (name == "MultiAgent" and not addresses, "MultiAgent signature has no secondary signer addresses"),
            (name == "MultiAgent" and not signers, "MultiAgent signature has no secondary signatures"),
            (addresses != signers, f"{name} signatures don't match addresses length"),
        )
        parts += [value["fee_payer_signer"]] if name == "FeePayer" else []
        found = (signature_problem(part) for part in parts)
        return problem or next((one for one in found if one is not None), None)
    if kind == Ed25519Signature.type:
        return _ed25519_problem(value["public_key"], value["signature"])
    if kind == MultiEd25519Signature.type:
        return _multi_ed25519_problem(value)
    if kind == SingleKeySignature.type:
        key, signature = value["public_key"], value["signature"]
        if (key["type"], signature["type"]) not in _PAIRS:
            return "Invalid public key, signature match."
        return _ed25519_problem(key["value"], signature["value"]) if key["type"] == "ed25519" else None
    return _multi_key_problem(value) if kind == MultiKeySignature.type else None


def _first(*checks: tuple[bool, str]) -> str | None:
    return next((text for failed, text in checks if failed), None)


def _ed25519_problem(key: str, signature: str) -> str | None:
    found, signed = len(_data(key)), len(_data(signature))
    wrong = "an invalid number of bytes, should be"
    return _first(
        (found != _KEY_BYTES, f"Ed25519 signature's public key is {wrong} {_KEY_BYTES} bytes but found {found}"),
        (
            signed != _SIGNATURE_BYTES,
            f"Ed25519 signature length is {wrong} {_SIGNATURE_BYTES} bytes but found {signed}",
        ),
    )


def _multi_ed25519_problem(value: dict[str, Any]) -> str | None:
    keys, signatures, threshold = value["public_keys"], value["signatures"], value["threshold"]
    bitmap = len(_data(value["bitmap"]))
    name = "MultiEd25519 signature"
    return _first(
        *_number_checks(name, keys, signatures),
        (len(keys) != len(signatures), f"{name} does not have the same number of signatures as public keys"),
        (len(signatures) < threshold, f"{name} does not have enough signatures to pass the threshold"),
        (threshold == 0, f"{name} threshold must be greater than 0"),
        (
            any(len(_data(one)) != _SIGNATURE_BYTES for one in signatures),
            f"{name} has a signature with the wrong signature length",
        ),
        (
            any(len(_data(one)) != _KEY_BYTES for one in keys),
            f"{name} has a public key with the wrong public key length",
        ),
        (bitmap != _BITMAP_BYTES, f"{name} has an invalid number of bitmap bytes {bitmap} expected {_BITMAP_BYTES}"),
    )


def _multi_key_problem(value: dict[str, Any]) -> str | None:
    keys, signatures, required = value["public_keys"], value["signatures"], value["signatures_required"]
    return _first(
        *_number_checks("MultiKey signature", keys, signatures),
        (len(signatures) != required, "MultiKey signature does not the number of signatures required"),  # as on nodes
        (required == 0, "MultiKey signature threshold must be greater than 0"),
    )


def _number_checks(name: str, keys: list[Any], signatures: list[Any]) -> list[tuple[bool, str]]:
    return [
        (not keys, f"{name} has no public keys"),
        (not signatures, f"{name} has no signatures"),
        (len(keys) > _MAX_KEYS, f"{name} has over the maximum number of public keys {_MAX_KEYS}"),
        (len(signatures) > _MAX_KEYS, f"{name} has over the maximum number of signatures {_MAX_KEYS}"),
    ]


def _signature_object(fields: Fields) -> dict[str, Any]:
    """Return the signature of a body after checking that its kind can be sent in JSON."""
    value = dict(fields.object("signature", "TransactionSignature").value)
    kind = value.get("type")
    if kind == SingleSenderSignature.type:  # the node takes its type for that of the account signature
        fields.named("TransactionSignature").unexpected("AccountSignature", value)
    if kind not in _SIGNATURES:
        fields.unexpected("TransactionSignature", value)
    return value


def _signature(fields: Fields, value: dict[str, Any]) -> TransactionSignature:
    """Return a signature after checking its structure."""
    try:
        problem = signature_problem(value)
    except (KeyError, TypeError, AttributeError):  # not of the documented shape, which the parser reports
        problem = None
    if problem is not None:
        invalid_input(f"{_INVALID}: {problem}", with_ledger=False)
    try:
        return parse_signature(value)
    except ToolkitError as error:
        return fields.fail(shown(error))


def _payload(fields: Fields) -> _Call | _ScriptCall | _MultisigCall | _Bundle:
    """Return the payload of a body, parsed without the ledger."""
    payload = fields.object("payload", "TransactionPayload")
    kind = payload.value.get("type")
    if kind == "module_bundle_payload":
        return _Bundle()
    if kind != "multisig_payload":
        return _executable(fields, payload, "TransactionPayload")
    own = payload.named("MultisigPayload")
    address = own.address("multisig_address")
    if payload.value.get("transaction_payload") is None:
        return _MultisigCall(address, None)
    inner = own.object("transaction_payload", "MultisigTransactionPayload")
    return _MultisigCall(address, _executable(own, inner, "MultisigTransactionPayload"))


def _executable(outer: Fields, payload: Fields, union: str) -> _Call | _ScriptCall:
    kind = payload.value.get("type")
    if kind == "entry_function_payload":
        fields = payload.named("EntryFunctionPayload")
        function = fields.function("function")
        return _Call(function, fields.texts("type_arguments", _TYPE), fields.array("arguments", "[Value]"))
    if kind != "script_payload":
        outer.unexpected(union, payload.value)
    fields = payload.named("ScriptPayload")
    code = fields.object("code", "MoveScriptBytecode")
    text = code.text("bytecode", "string(HexEncodedBytes)")
    try:
        bytecode = parse_hex(text)
    except ToolkitError:
        code.fail(f'failed to parse "string(HexEncodedBytes)": {hex_problem(text)}')
    call = _ScriptCall(bytecode, fields.texts("type_arguments", _TYPE))
    fields.array("arguments", "[Value]")
    return call


def _check_payload(payload: _Call | _ScriptCall | _MultisigCall | _Bundle) -> None:
    """Check what a node checks before it reads the ledger."""
    if isinstance(payload, _Bundle):
        invalid_input(f"{_INVALID}: Module bundle payload has been removed", with_ledger=False)
    call = payload.call if isinstance(payload, _MultisigCall) else payload
    if call is not None:
        check_types(call.type_arguments, _INVALID)


def _encoded(node: EmbeddedNode, payload: _Call | _ScriptCall | _MultisigCall | _Bundle) -> EncodedPayload:
    """Return a payload in BCS form: calls need the function's parameter types."""
    if isinstance(payload, _MultisigCall):
        inner = None if payload.call is None else _encoded(node, payload.call)
        return EncodedMultisig(payload.address, inner)  # type: ignore[arg-type]  # only calls are inside a multisig payload
    if isinstance(payload, _ScriptCall):
        if not payload.bytecode:
            invalid_input("Script payload bytecode must not be empty")
        invalid_input("invalid transaction script bytecode")
    if isinstance(payload, _Bundle):
        invalid_input("Module bundle payload has been removed")
    function = payload.function
    tags = tuple(map(type_tag, payload.type_arguments))
    bound = bind(node.chain.code_at(node.chain.head), function, tags, kind="entry")
    if not bound.function.mark.is_entry:
        invalid_input(f"could not find entry function by {function.wire}")
    plain = plain_arguments(bound, payload.arguments)
    return EncodedEntryFunction(function, tags, tuple(map(encode_bcs, bound.parameters, plain)))
