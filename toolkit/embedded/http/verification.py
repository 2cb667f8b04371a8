"""Whether somebody really signed a transaction: a simulation must not carry a valid signature.

Verified for ed25519, multi-ed25519 and secp256k1 keys; keyless, passkey and abstract signatures count as not valid.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolkit.wire import (
    Ed25519Signature,
    FeePayerSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    SingleKeySignature,
    SingleSenderSignature,
    is_zero_padded,
)

if TYPE_CHECKING:
    from toolkit.wire import AccountSignature, PublicKey, Signature, SignedTransaction, TransactionSignature

__all__ = ["has_valid_signature"]

_SECP256K1_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_SCALAR_BYTES = 32


def has_valid_signature(signed: SignedTransaction) -> bool:
    """Tell whether every signer of a transaction really signed it."""
    # Zeros are the usual case, and nobody's signature.
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
    """Check each signature against the key its bit of the bitmap names, most significant bit first."""
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
    """Check 64 bytes of r and s over the message's SHA3-256; a high s is not canonical and not valid."""
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
