"""Signatures of zeros: what a simulation carries instead of a real signature."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move.bcs import Reader
from toolkit.wire.bcs_signatures import skip_auth_data
from toolkit.wire.keys import ED25519_SIGNATURE_BYTES, zero_signature
from toolkit.wire.signatures import (
    AbstractSignature,
    Ed25519Signature,
    FeePayerSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    NoAccountSignature,
    SingleKeySignature,
    SingleSenderSignature,
    UnknownSignature,
)

if TYPE_CHECKING:
    from toolkit.wire.signatures import AccountSignature, TransactionSignature

    AnySignature = TransactionSignature | AccountSignature

__all__ = ["is_zero_padded", "zero_padded"]

_S = TypeVar("_S", bound="AnySignature")
_ZERO_ED25519 = "0x" + bytes(ED25519_SIGNATURE_BYTES).hex()


def zero_padded(signature: _S) -> _S:
    """Return a signature of the same shape, keys and addresses, with zeros of the right lengths for signatures.

    Parameters
    ----------
    signature : transaction or account signature
        Real or zero already.

    Returns
    -------
    signature of the same class

    Raises
    ------
    InputError
        If the kind is unknown, so that there is no telling what in it is a signature.
    """
    padded: _S = _padded(signature)
    return padded


def is_zero_padded(signature: AnySignature) -> bool:
    """Return whether every signature in a shape is zeros (or absent), so that it is nobody's.

    Parameters
    ----------
    signature : transaction or account signature
        Any shape; one of an unknown kind never counts as zeros.

    Returns
    -------
    bool
    """
    if isinstance(signature, UnknownSignature):
        return False
    try:
        return zero_padded(signature) == signature
    except InputError:
        return False


@singledispatch
def _padded(signature: Any) -> Any:
    kind = getattr(signature, "type", type(signature).__name__)
    raise InputError(f"a signature of the unknown type {shorten(kind)} cannot be zero-padded")


@_padded.register
def _(signature: NoAccountSignature) -> NoAccountSignature:
    return signature


@_padded.register
def _(signature: Ed25519Signature) -> Ed25519Signature:
    return signature.replace(signature=_ZERO_ED25519)


@_padded.register
def _(signature: MultiEd25519Signature) -> MultiEd25519Signature:
    return signature.replace(signatures=[_ZERO_ED25519] * len(signature.signatures))


@_padded.register
def _(signature: SingleKeySignature) -> SingleKeySignature:
    return signature.replace(signature=zero_signature(signature.signature.type))


@_padded.register
def _(signature: MultiKeySignature) -> MultiKeySignature:
    zeros = [entry.replace(signature=zero_signature(entry.signature.type)) for entry in signature.signatures]
    return signature.replace(signatures=zeros)


@_padded.register
def _(signature: AbstractSignature) -> AbstractSignature:
    return signature.replace(auth_data=_zero_auth_data(bytes.fromhex(signature.auth_data[2:])))


@_padded.register
def _(signature: SingleSenderSignature) -> SingleSenderSignature:
    return signature.replace(sender=_padded(signature.sender))


@_padded.register
def _(signature: MultiAgentSignature) -> MultiAgentSignature:
    signers = [_padded(signer) for signer in signature.secondary_signers]
    return signature.replace(sender=_padded(signature.sender), secondary_signers=signers)


@_padded.register
def _(signature: FeePayerSignature) -> FeePayerSignature:
    return signature.replace(
        sender=_padded(signature.sender),
        secondary_signers=[_padded(signer) for signer in signature.secondary_signers],
        fee_payer_signer=_padded(signature.fee_payer_signer),
    )


def _zero_auth_data(data: bytes) -> bytes:
    """Zero the signature inside BCS authentication data; digest and key stay. What is all zeros is nobody's already."""
    if not any(data):
        return data
    reader = Reader(data)
    try:
        start, end = skip_auth_data(reader)
        reader.end()
    except SchemaError as error:
        raise InputError(f"the authentication data of an abstract signature is no BCS: {error}") from error
    return data[:start] + bytes(end - start) + data[end:]
