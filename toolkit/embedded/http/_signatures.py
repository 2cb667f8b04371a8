"""Signatures of a request: their shape in JSON, their structure, and whether they are valid.

Signatures of ed25519, multi-ed25519 and secp256k1 keys are verified; keyless, passkey and abstract signatures count as
not valid.
"""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from toolkit._present.messages import not_installed
from toolkit.embedded.http._messages import Address, ApiError, Hex, body_decoder, decoded, invalid_input
from toolkit.errors import InputError, ToolkitError
from toolkit.move import parse_address
from toolkit.wire import (
    Ed25519Signature,
    FeePayerSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    SingleKeySignature,
)
from toolkit.wire._signatures import is_zero_padded, parse_account_signature, parse_signature

if TYPE_CHECKING:
    from toolkit.wire import PublicKey, Signature, SignedTransaction, TransactionSignature
    from toolkit.wire._signatures import SignatureModel

_SECP256K1_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_SCALAR_BYTES = 32

_U8 = Annotated[int, msgspec.Meta(ge=0, le=255)]


def _shape(kind: str, **fields: Any) -> type[msgspec.Struct]:
    """Return the shape of a signature whose kind is its field ``type``."""
    return msgspec.defstruct(kind, list(fields.items()), tag_field="type", tag=kind)


class _Key(msgspec.Struct):
    type: Literal["ed25519", "secp256k1_ecdsa", "secp256r1_ecdsa", "keyless", "federated_keyless"]
    value: Hex


class _KeySignature(msgspec.Struct):
    type: Literal["ed25519", "secp256k1_ecdsa", "web_authn", "keyless"]
    value: Hex


class _IndexedSignature(msgspec.Struct):
    index: _U8
    signature: _KeySignature


_HEXES, _NONE = list[Hex], _shape("no_account_signature")
_ED25519 = _shape("ed25519_signature", public_key=Hex, signature=Hex)
_MULTI_ED25519 = _shape("multi_ed25519_signature", public_keys=_HEXES, signatures=_HEXES, threshold=_U8, bitmap=Hex)
_ACCOUNT: Any = (
    _NONE
    | _ED25519
    | _MULTI_ED25519
    | _shape("single_key_signature", public_key=_Key, signature=_KeySignature)
    | _shape("multi_key_signature", public_keys=list[_Key], signatures=list[_IndexedSignature], signatures_required=_U8)
    | _shape("abstract_signature", function_info=str, auth_data=Hex)
)
_AGENTS: dict[str, Any] = {
    "sender": _ACCOUNT,
    "secondary_signer_addresses": list[Address],
    "secondary_signers": list[_ACCOUNT],
}
_MULTI_AGENT = _shape("multi_agent_signature", **_AGENTS)
_FEE_PAYER = _shape("fee_payer_signature", **_AGENTS, fee_payer_address=Address, fee_payer_signer=_ACCOUNT)
# What the JSON of a transaction can have; a node takes single-key signatures only as one of several signers.
_SHAPE: msgspec.json.Decoder[Any] = body_decoder(_NONE | _ED25519 | _MULTI_ED25519 | _MULTI_AGENT | _FEE_PAYER)  # type: ignore[arg-type]  # a union


def read_signature(data: msgspec.Raw, context: str) -> TransactionSignature:
    """Return the signature of a body.

    Raises
    ------
    ApiError
        That of the web framework if the JSON is not that of a signature; that of an invalid input, with `context`, if
        its lengths and numbers are wrong.
    """
    decoded(_SHAPE, data)
    value = msgspec.json.decode(data)
    try:
        signature = _pairless(value) or parse_signature(value)
        # As many signatures as keys, or as are required: the BCS form may have others.
        for one in _account_signatures(signature):
            if isinstance(one, MultiEd25519Signature) and not one.has_json_form:
                raise InputError("MultiEd25519 signature does not have the same number of signatures as public keys")
            if isinstance(one, MultiKeySignature) and len(one.signatures) != one.signatures_required:
                raise InputError("MultiKey signature does not have the number of signatures required")
    except ToolkitError as error:
        invalid_input(f"{context}: {error}", with_ledger=False)
    return signature


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


def has_valid_signature(signed: SignedTransaction) -> bool:
    """Return True if all signatures of a transaction are valid."""
    # Signatures of zeros are the usual case and never valid.
    if is_zero_padded(signed.signature):
        return False
    if find_spec("cryptography") is None:
        reason = not_installed("checking a signature that is not zeros", "cryptography", "signatures")
        raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", reason)
    message = signed.signing_message()
    return all(_is_valid(one, message) for one in _account_signatures(signed.signature))


def _account_signatures(signature: TransactionSignature) -> list[SignatureModel]:
    return [*signature.parts()] or [signature]


def _is_valid(signature: SignatureModel, message: bytes) -> bool:
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
