"""Signatures of a request: their shape and structure in JSON, with the texts of a node, and whether they are valid.

A node parses the JSON, then checks lengths and numbers (`structure_problem`), and converts keys and signatures last.
Signatures of ed25519, multi-ed25519 and secp256k1 keys are verified; keyless, passkey and abstract signatures count as
not valid.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from toolkit.embedded.http._messages import invalid_input
from toolkit.errors import ToolkitError
from toolkit.move import parse_address
from toolkit.wire import (
    AbstractSignature,
    Ed25519Signature,
    FeePayerSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    NoAccountSignature,
    SingleKeySignature,
    SingleSenderSignature,
)
from toolkit.wire._account_signatures import parse_account_signature
from toolkit.wire._transaction_signatures import is_zero_padded, parse_signature

if TYPE_CHECKING:
    from toolkit.embedded.http._parsing import Fields
    from toolkit.wire import AccountSignature, PublicKey, Signature, SignedTransaction, TransactionSignature


# Names of the models of a node by `type`.
_ACCOUNT_MODELS = {
    Ed25519Signature.type: "Ed25519Signature",
    MultiEd25519Signature.type: "MultiEd25519Signature",
    SingleKeySignature.type: "SingleKeySignature",
    MultiKeySignature.type: "MultiKeySignature",
    NoAccountSignature.type: "NoAccountSignature",
    AbstractSignature.type: "AbstractSignature",
}
_TRANSACTION_MODELS = {
    Ed25519Signature.type: "Ed25519Signature",
    MultiEd25519Signature.type: "MultiEd25519Signature",
    MultiAgentSignature.type: "MultiAgentSignature",
    FeePayerSignature.type: "FeePayerSignature",
    NoAccountSignature.type: "NoAccountSignature",
}
_KEY_MODELS = {
    "ed25519": "Ed25519",
    "secp256k1_ecdsa": "Secp256k1Ecdsa",
    "secp256r1_ecdsa": "Secp256r1Ecdsa",
    "keyless": "Keyless",
    "federated_keyless": "FederatedKeyless",
}
_SIGNATURE_MODELS = {
    "ed25519": "Ed25519",
    "secp256k1_ecdsa": "Secp256k1Ecdsa",
    "web_authn": "WebAuthn",
    "keyless": "Keyless",
}
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64
_SECP256K1_KEY_BYTES = 65
_SECP256R1_KEY_BYTES = 65
_MAX_WEBAUTHN_BYTES = 1024
_MAX_KEYLESS_KEY_BYTES = 238
_MAX_KEYLESS_SIGNATURE_BYTES = 4_000
_BITMAP_BYTES = 4
_MAX_KEYS = 32
_SECP256K1_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_SCALAR_BYTES = 32
_CONVERSION = (
    "Failed to create SignedTransaction from SubmitTransactionRequest: Failed to parse transaction when building "
    "SignedTransaction from SubmitTransactionRequest: "
)


def check_shape(fields: Fields) -> dict[str, Any]:
    """Return the signature of a body after checking its kind and the kinds of its fields.

    Raises
    ------
    ApiError
        With the text of the node's web framework if the JSON is not that of a signature.
    """
    own = fields.object("signature", "TransactionSignature")
    value = dict(own.value)
    kind = value.get("type")
    if kind == SingleSenderSignature.type:  # a node takes its type for that of the account signature
        own.unexpected("AccountSignature", value)
    model = own.variant("TransactionSignature", _TRANSACTION_MODELS)
    if kind not in {MultiAgentSignature.type, FeePayerSignature.type}:
        _check_fields(model)
        return value
    _check_account(model.object("sender", "AccountSignature"))
    model.addresses("secondary_signer_addresses")
    for signer in model.objects("secondary_signers", "AccountSignature"):
        _check_account(signer)
    if kind == FeePayerSignature.type:
        model.address("fee_payer_address")
        _check_account(model.object("fee_payer_signer", "AccountSignature"))
    return value


def _check_account(own: Fields) -> None:
    """Check the kind and the fields of an account signature."""
    _check_fields(own.variant("AccountSignature", _ACCOUNT_MODELS))


def _check_fields(fields: Fields) -> None:
    kind = fields.value["type"]
    if kind == Ed25519Signature.type:
        fields.hex("public_key")
        fields.hex("signature")
    elif kind == MultiEd25519Signature.type:
        fields.hexes("public_keys")
        fields.hexes("signatures")
        fields.integer("threshold", bits=8)
        fields.hex("bitmap")
    elif kind == SingleKeySignature.type:
        fields.object("public_key", "PublicKey").variant("PublicKey", _KEY_MODELS).hex("value")
        fields.object("signature", "Signature").variant("Signature", _SIGNATURE_MODELS).hex("value")
    elif kind == MultiKeySignature.type:
        for key in fields.objects("public_keys", "PublicKey"):
            key.variant("PublicKey", _KEY_MODELS).hex("value")
        for one in fields.objects("signatures", "IndexedSignature"):
            one.integer("index", bits=8)
            one.object("signature", "Signature").variant("Signature", _SIGNATURE_MODELS).hex("value")
        fields.integer("signatures_required", bits=8)
    elif kind == AbstractSignature.type:
        if not isinstance(fields.value.get("function_info"), str):
            fields.unexpected("string", fields.value.get("function_info"))
        fields.hex("auth_data")


def signature_of(value: dict[str, Any]) -> TransactionSignature:
    """Return a signature of checked shape and structure.

    Raises
    ------
    ApiError
        If a key or signature cannot be converted.
    """
    try:
        return _pairless(value) or parse_signature(value)
    except ToolkitError as error:
        return invalid_input(f"{_CONVERSION}{error}")


def _pairless(value: dict[str, Any]) -> FeePayerSignature | None:
    """Return a fee payer signature that does not have one signature per address, which only execution refuses."""
    addresses, signers = value.get("secondary_signer_addresses", ()), value.get("secondary_signers", ())
    if value["type"] != FeePayerSignature.type or len(addresses) == len(signers):
        return None
    return FeePayerSignature.model_construct(  # the class requires pairs
        sender=parse_account_signature(value["sender"]),
        secondary_signer_addresses=tuple(map(parse_address, addresses)),
        secondary_signers=tuple(map(parse_account_signature, signers)),
        fee_payer_address=parse_address(value["fee_payer_address"]),
        fee_payer_signer=parse_account_signature(value["fee_payer_signer"]),
    )


def structure_problem(value: dict[str, Any]) -> str | None:
    """Return the fault in the structure of a signature of checked shape, in the words of a node, or None."""
    kind = value["type"]
    if kind == MultiAgentSignature.type:
        addresses, signers = len(value["secondary_signer_addresses"]), len(value["secondary_signers"])
        return (
            structure_problem(value["sender"])
            or _first(
                (not addresses, "MultiAgent signature has no secondary signer addresses"),
                (not signers, "MultiAgent signature has no secondary signatures"),
                (addresses != signers, "MultiAgent signatures don't match addresses length"),
            )
            or _first_problem(value["secondary_signers"])
        )
    if kind == FeePayerSignature.type:
        return _first_problem([value["sender"], *value["secondary_signers"], value["fee_payer_signer"]])
    if kind == Ed25519Signature.type:
        return _ed25519_problem(value["public_key"], value["signature"])
    if kind == MultiEd25519Signature.type:
        return _multi_ed25519_problem(value)
    if kind == SingleKeySignature.type:
        return _single_key_problem(value["public_key"], value["signature"])
    return _multi_key_problem(value) if kind == MultiKeySignature.type else None


def _first_problem(values: list[dict[str, Any]]) -> str | None:
    return next((found for found in map(structure_problem, values) if found is not None), None)


def _first(*checks: tuple[bool, str]) -> str | None:
    return next((text for failed, text in checks if failed), None)


def _lengths(key: tuple[str, int, int], signature: tuple[str, int, int]) -> str | None:
    """Return which of two (name, expected bytes, found bytes) is wrong."""
    return next(
        (
            f"{name} an invalid number of bytes, should be {wanted} bytes but found {found}"
            for name, wanted, found in (key, signature)
            if wanted != found
        ),
        None,
    )


def _ed25519_problem(key: str, signature: str) -> str | None:
    return _lengths(
        ("Ed25519 signature's public key is", _KEY_BYTES, len(_data(key))),
        ("Ed25519 signature length is", _SIGNATURE_BYTES, len(_data(signature))),
    )


def _single_key_problem(key: dict[str, Any], signature: dict[str, Any]) -> str | None:
    found, signed = len(_data(key["value"])), len(_data(signature["value"]))
    too_long = "length is greater than the maximum number of"
    match key["type"], signature["type"]:
        case "ed25519", "ed25519":
            return _ed25519_problem(key["value"], signature["value"])
        case "secp256k1_ecdsa", "secp256k1_ecdsa":
            return _lengths(
                ("Secp256k1Ecdsa signature's public key is", _SECP256K1_KEY_BYTES, found),
                ("Secp256k1Ecdsa signature length is", _SIGNATURE_BYTES, signed),
            )
        case "secp256r1_ecdsa", "web_authn":
            wrong = _lengths(("The public key provided is", _SECP256R1_KEY_BYTES, found), ("", 0, 0))
            note = "Note WebAuthn signatures only support Secp256r1Ecdsa at this time."
            return _first(
                (wrong is not None, f"{wrong}. {note}"),
                (
                    signed > _MAX_WEBAUTHN_BYTES,
                    f"The WebAuthn signature {too_long} {_MAX_WEBAUTHN_BYTES} bytes: found {signed} bytes.",
                ),
            )
        case "keyless" | "federated_keyless", "keyless":
            return _first(
                (
                    found > _MAX_KEYLESS_KEY_BYTES,
                    f"Keyless public key {too_long} {_MAX_KEYLESS_KEY_BYTES} bytes: found {found} bytes",
                ),
                (
                    signed > _MAX_KEYLESS_SIGNATURE_BYTES,
                    f"Keyless signature {too_long} {_MAX_KEYLESS_SIGNATURE_BYTES} bytes: found {signed} bytes",
                ),
            )
    return "Invalid public key, signature match."


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
    problem = _first(
        *_number_checks("MultiKey signature", keys, signatures),
        (len(signatures) != required, "MultiKey signature does not the number of signatures required"),  # as on nodes
        (required == 0, "MultiKey signature threshold must be greater than 0"),
    )
    if problem is not None:
        return problem
    try:
        parse_account_signature(value)
    except ToolkitError as error:
        return str(error)
    return None


def _number_checks(name: str, keys: list[Any], signatures: list[Any]) -> list[tuple[bool, str]]:
    return [
        (not keys, f"{name} has no public keys"),
        (not signatures, f"{name} has no signatures"),
        (len(keys) > _MAX_KEYS, f"{name} has over the maximum number of public keys {_MAX_KEYS}"),
        (len(signatures) > _MAX_KEYS, f"{name} has over the maximum number of signatures {_MAX_KEYS}"),
    ]


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
