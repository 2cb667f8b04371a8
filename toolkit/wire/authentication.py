"""Authentication keys: what a chain compares with an account's own, derived from the public keys of a signature."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolkit.move.bcs import Writer
from toolkit.wire.bcs_signatures import write_public_key
from toolkit.wire.signatures import (
    Ed25519Signature,
    MultiEd25519Signature,
    MultiKeySignature,
    SingleKeySignature,
    SingleSenderSignature,
)

if TYPE_CHECKING:
    from toolkit.wire.signatures import AccountSignature, TransactionSignature

__all__ = ["authentication_key"]

_ED25519, _MULTI_ED25519, _SINGLE_KEY, _MULTI_KEY = range(4)


def authentication_key(signature: AccountSignature | TransactionSignature) -> bytes | None:
    """Return the authentication key that one signer's public keys stand for.

    An account's address is the authentication key it was made with; rotation changes the key, not the address.

    Parameters
    ----------
    signature : AccountSignature or TransactionSignature
        Of one signer; nothing but its public keys is read.

    Returns
    -------
    bytes or None
        32 bytes, or None where there is no key to derive one from (no signature, abstract ones, several signers).

    Notes
    -----
    SHA3-256 of the keys and one byte for the scheme: 0 the ed25519 key; 1 all ed25519 keys and the threshold;
    2 BCS of the typed key; 3 BCS of the list of typed keys and the number of signatures required.

    Examples
    --------
    >>> from toolkit.wire.signatures import Ed25519Signature, NoAccountSignature
    >>> authentication_key(Ed25519Signature(bytes(32))).hex()[:8]
    'dc33296e'
    >>> authentication_key(NoAccountSignature()) is None
    True
    """
    writer = Writer()
    match signature:
        case SingleSenderSignature(sender=sender):
            return authentication_key(sender)
        case Ed25519Signature(public_key=key):
            writer.fixed(_data(key))
            writer.u8(_ED25519)
        case MultiEd25519Signature(public_keys=keys, threshold=threshold):
            writer.fixed(b"".join(map(_data, keys)))
            writer.u8(threshold)
            writer.u8(_MULTI_ED25519)
        case SingleKeySignature(public_key=typed):
            write_public_key(writer, typed)
            writer.u8(_SINGLE_KEY)
        case MultiKeySignature(public_keys=typed_keys, signatures_required=required):
            writer.uleb128(len(typed_keys))
            for typed in typed_keys:
                write_public_key(writer, typed)
            writer.u8(required)
            writer.u8(_MULTI_KEY)
        case _:
            return None
    return hashlib.sha3_256(writer.getvalue()).digest()


def _data(hex_text: str) -> bytes:
    return bytes.fromhex(hex_text[2:])
