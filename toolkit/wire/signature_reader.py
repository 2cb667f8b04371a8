"""Signatures of answers, from their JSON; every documented spelling is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from toolkit.errors import InputError, SchemaError
from toolkit.wire.keys import PublicKey, Signature
from toolkit.wire.payloads import parse_object
from toolkit.wire.signatures import (
    AbstractSignature,
    AccountSignature,
    Ed25519Signature,
    FeePayerSignature,
    IndexedSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    NoAccountSignature,
    SingleKeySignature,
    SingleSenderSignature,
    TransactionSignature,
    UnknownSignature,
)

__all__ = ["parse_account_signature", "parse_signature"]

Json = Mapping[str, Any] | bytes | msgspec.Raw


def parse_signature(json: Json) -> TransactionSignature:
    """Read the signature of a transaction.

    Parameters
    ----------
    json : mapping, bytes or msgspec.Raw
        The JSON object, parsed or not.

    Returns
    -------
    TransactionSignature
        An unknown ``type`` gives an `UnknownSignature` that keeps the JSON.

    Raises
    ------
    SchemaError
        If it is no JSON object, or a known type lacks what it must have.
    """
    return _read(parse_object(json, "signature"), _TRANSACTION_READERS)  # type: ignore[no-any-return]  # by table


def parse_account_signature(json: Json) -> AccountSignature:
    """Read the signature of one account, as found inside a transaction's.

    Parameters
    ----------
    json : mapping, bytes or msgspec.Raw
        The JSON object, parsed or not.

    Returns
    -------
    AccountSignature
        An unknown ``type`` gives an `UnknownSignature` that keeps the JSON.

    Raises
    ------
    SchemaError
        If it is no JSON object, or a known type lacks what it must have.
    """
    return _read(parse_object(json, "account signature"), _ACCOUNT_READERS)  # type: ignore[no-any-return]  # by table


def _read(content: dict[str, Any], readers: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> Any:
    kind = content.get("type")
    reader = readers.get(kind) if isinstance(kind, str) else None
    if reader is None:
        return UnknownSignature(content)
    try:
        return reader(content)
    except (InputError, KeyError, TypeError, AttributeError) as error:
        reason = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise SchemaError(f"the {kind} does not have the documented shape: {reason}", column="signature") from error


def _typed_key(content: Mapping[str, Any]) -> PublicKey:
    return PublicKey(content["value"], type=content["type"])


def _typed_signature(content: Mapping[str, Any]) -> Signature:
    return Signature(content["value"], type=content["type"])


def _ed25519(content: Mapping[str, Any]) -> Ed25519Signature:
    return Ed25519Signature(content["public_key"], signature=content["signature"])


def _multi_ed25519(content: Mapping[str, Any]) -> MultiEd25519Signature:
    return MultiEd25519Signature(
        content["public_keys"],
        threshold=content["threshold"],
        signatures=content["signatures"],
        bitmap=content["bitmap"],
    )


def _single_key(content: Mapping[str, Any]) -> SingleKeySignature:
    return SingleKeySignature(_typed_key(content["public_key"]), signature=_typed_signature(content["signature"]))


def _multi_key(content: Mapping[str, Any]) -> MultiKeySignature:
    # The wire says signatures_required and indexes its signatures; the service's description says threshold and
    # lists them plainly.
    required = content["signatures_required"] if "signatures_required" in content else content["threshold"]
    signatures = []
    for position, entry in enumerate(content["signatures"]):
        if "signature" in entry:
            indexed = IndexedSignature(entry["index"], signature=_typed_signature(entry["signature"]))
        else:
            indexed = IndexedSignature(position, signature=_typed_signature(entry))
        signatures.append(indexed)
    keys = [_typed_key(key) for key in content["public_keys"]]
    return MultiKeySignature(keys, signatures_required=required, signatures=signatures)


def _no_account(content: Mapping[str, Any]) -> NoAccountSignature:
    del content  # nothing in it is of interest
    return NoAccountSignature()


def _abstract(content: Mapping[str, Any]) -> AbstractSignature:
    # The service's description knows one hex field without naming it.
    auth_data = content["auth_data"] if "auth_data" in content else content["signature"]
    return AbstractSignature(content.get("function_info"), auth_data=auth_data)


def _multi_agent(content: Mapping[str, Any]) -> MultiAgentSignature:
    return MultiAgentSignature(
        parse_account_signature(content["sender"]),
        secondary_signer_addresses=content["secondary_signer_addresses"],
        secondary_signers=[parse_account_signature(signer) for signer in content["secondary_signers"]],
    )


def _fee_payer(content: Mapping[str, Any]) -> FeePayerSignature:
    return FeePayerSignature(
        parse_account_signature(content["sender"]),
        secondary_signer_addresses=content["secondary_signer_addresses"],
        secondary_signers=[parse_account_signature(signer) for signer in content["secondary_signers"]],
        fee_payer_address=content["fee_payer_address"],
        fee_payer_signer=parse_account_signature(content["fee_payer_signer"]),
    )


def _single_sender(content: Mapping[str, Any]) -> SingleSenderSignature | UnknownSignature:
    """Tell the inner kind from the shape: wrapper and account signature share the key `type`, the outer wins."""
    if isinstance(content.get("sender"), Mapping):
        return SingleSenderSignature(parse_account_signature(content["sender"]))
    if "function_info" in content or "auth_data" in content:
        return SingleSenderSignature(_abstract(content))
    if "public_keys" in content:
        inner = _multi_ed25519 if "bitmap" in content else _multi_key
        return SingleSenderSignature(inner(content))
    if "public_key" in content:
        return SingleSenderSignature(
            _ed25519(content) if isinstance(content["public_key"], str) else _single_key(content)
        )
    if set(content) == {"type"}:
        return SingleSenderSignature(NoAccountSignature())
    return UnknownSignature(content)


_ACCOUNT_READERS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "ed25519_signature": _ed25519,
    "multi_ed25519_signature": _multi_ed25519,
    "single_key_signature": _single_key,
    "multi_key_signature": _multi_key,
    "no_account_signature": _no_account,
    "abstract_signature": _abstract,
    "abstraction_signature": _abstract,
}
_TRANSACTION_READERS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "ed25519_signature": _ed25519,
    "multi_ed25519_signature": _multi_ed25519,
    "multi_agent_signature": _multi_agent,
    "fee_payer_signature": _fee_payer,
    "single_sender": _single_sender,
    "no_account_signature": _no_account,
}
