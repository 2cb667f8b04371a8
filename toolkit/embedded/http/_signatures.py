"""Signatures of simulated transactions in JSON. None is verified: nothing can be submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.embedded.http._messages import framework_error, invalid_input
from toolkit.errors import InputError, ToolkitError
from toolkit.wire import (
    Ed25519Signature,
    FeePayerSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    NoAccountSignature,
)
from toolkit.wire._signatures import UnknownSignature, parse_signature

if TYPE_CHECKING:
    from toolkit.wire import TransactionSignature

# A node takes the other kinds only as those of one of several signers.
_ALONE = NoAccountSignature | Ed25519Signature | MultiEd25519Signature | MultiAgentSignature | FeePayerSignature


def read_signature(data: dict[str, Any], context: str) -> TransactionSignature:
    """Return the signature of a body.

    Raises
    ------
    ApiError
        That of the web framework if the kind is not one of a transaction; that of an invalid input, with `context`, for
        another mistake.
    """
    try:
        signature = parse_signature(data)
        parts = [*signature.parts()]
        if not isinstance(signature, _ALONE) or any(isinstance(one, UnknownSignature) for one in parts):
            raise framework_error("parse request payload error: expected the signature of a transaction")
        # As many signatures as keys, or as are required: the BCS form may have others.
        for one in parts or [signature]:
            if isinstance(one, MultiEd25519Signature) and not one.has_json_form:
                raise InputError("MultiEd25519 signature does not have the same number of signatures as public keys")
            if isinstance(one, MultiKeySignature) and len(one.signatures) != one.signatures_required:
                raise InputError("MultiKey signature does not have the number of signatures required")
    except ToolkitError as error:
        invalid_input(f"{context}: {error}", with_ledger=False)
    return signature
