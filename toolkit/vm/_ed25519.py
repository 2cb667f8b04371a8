"""Ed25519 signatures as a node verifies them: strictly, without the cofactor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.wire import Ed25519Signature, SingleKeySignature
from toolkit.wire._models import unhex
from toolkit.wire._signers import account_signatures

if TYPE_CHECKING:
    from toolkit.wire._signatures import SignatureModel

_PRIME = 2**255 - 19
_D = -121665 * pow(121666, -1, _PRIME) % _PRIME
# The y coordinates of the eight points of small order: 0, 1 and -1, and two of order 8.
_Y8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
_SMALL_ORDER = frozenset({0, 1, _PRIME - 1, _Y8, _PRIME - _Y8})


def _y(key: bytes) -> int:
    """Return the y coordinate of an encoded point; its highest bit is the sign of x."""
    return int.from_bytes(key, "little") % (1 << 255) % _PRIME


def decompresses(key: bytes) -> bool:
    """Return whether 32 bytes are a point of the curve."""
    square = _y(key) ** 2
    ratio = (square - 1) * (_D * square + 1) % _PRIME  # x^2 is a square exactly if numerator times denominator is
    return pow(ratio, (_PRIME - 1) // 2, _PRIME) in {0, 1}


def is_small_order(key: bytes) -> bool:
    """Return whether a point of the curve is one of the eight of small order."""
    return _y(key) in _SMALL_ORDER


def verify(key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether a signature is valid.

    Parameters
    ----------
    key : bytes
        32 bytes.
    signature : bytes
        64 bytes.
    message : bytes
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if is_small_order(key) or is_small_order(signature[:32]):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def are_valid(signature: SignatureModel, message: bytes) -> bool:
    """Return whether all Ed25519 signatures of a transaction are valid. Those of other schemes are not checked."""
    for one in account_signatures(signature):
        match one:
            case Ed25519Signature():
                key, signed = one.public_key, one.signature
            case SingleKeySignature() if one.public_key.type == "ed25519" == one.signature.type:
                key, signed = one.public_key.value, one.signature.value
            case _:
                continue
        if not verify(unhex(key), unhex(signed), message):
            return False
    return True
