"""Signatures of the shape a transaction needs; nobody holds keys here, so they are hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.wire import Ed25519Signature, FeePayerSignature, MultiAgentSignature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.embedded.chain import Chain
    from toolkit.wire import TransactionSignature

__all__ = ["stand_in_signature"]


def stand_in_signature(
    chain: Chain, sender: str, sequence_number: int, *, others: Sequence[str], fee_payer: str | None
) -> TransactionSignature:
    """Return a signature for a sender, secondary signers and a fee payer (canonical addresses)."""

    def sign(address: str) -> Ed25519Signature:
        first = chain.digest("signature", address, sequence_number)
        return Ed25519Signature(chain.digest("key", address), signature=first + chain.digest("signature", first))

    if fee_payer is not None:
        return FeePayerSignature(
            sign(sender),
            secondary_signer_addresses=others,
            secondary_signers=[sign(address) for address in others],
            fee_payer_address=fee_payer,
            fee_payer_signer=sign(fee_payer),
        )
    if others:
        signers = [sign(address) for address in others]
        return MultiAgentSignature(sign(sender), secondary_signer_addresses=others, secondary_signers=signers)
    return sign(sender)
