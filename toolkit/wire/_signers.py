"""Who signs a transaction: the accounts, each with its signature."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolkit.move import parse_address
from toolkit.wire._signatures import (
    FeePayerSignature,
    MultiAgentSignature,
    MultiKeySignature,
    SingleKeySignature,
    SingleSenderSignature,
)

if TYPE_CHECKING:
    from toolkit.wire._signatures import SignatureModel

_KEYLESS = {"keyless", "federated_keyless"}


class Signers(NamedTuple):
    """The signature of the sender, and addresses and signatures of all others; addresses are canonical."""

    sender: SignatureModel
    addresses: tuple[str, ...] = ()
    secondary: tuple[SignatureModel, ...] = ()
    payer_address: str | None = None
    payer: SignatureModel | None = None

    def by_account(self, sender: str) -> list[tuple[str, SignatureModel]]:
        """Return (address, signature) for the sender, the secondary signers and the fee payer, in this order.

        Execution refuses a transaction that does not have one signature per address.
        """
        found = [(sender, self.sender), *zip(self.addresses, self.secondary, strict=False)]
        if self.payer_address is not None and self.payer is not None:
            found.append((self.payer_address, self.payer))
        return found


def signers_of(signature: SignatureModel) -> Signers:
    """Return who signs, from the signature of a transaction."""
    if isinstance(signature, SingleSenderSignature):
        return Signers(signature.sender)
    if not isinstance(signature, MultiAgentSignature | FeePayerSignature):
        return Signers(signature)
    others = tuple(map(parse_address, signature.secondary_signer_addresses)), signature.secondary_signers
    if isinstance(signature, MultiAgentSignature):
        return Signers(signature.sender, *others)
    return Signers(signature.sender, *others, parse_address(signature.fee_payer_address), signature.fee_payer_signer)


def account_signatures(signature: SignatureModel) -> list[SignatureModel]:
    """Return the signatures of all accounts in the signature of a transaction."""
    return [*signature.parts()] or [signature]


def any_is_keyless(signature: SignatureModel) -> bool:
    """Return whether an account signs with a keyless key, which costs more."""
    for one in account_signatures(signature):
        match one:
            case SingleKeySignature(public_key=key) if key.type in _KEYLESS:
                return True
            case MultiKeySignature(public_keys=keys) if any(key.type in _KEYLESS for key in keys):
                return True
    return False
