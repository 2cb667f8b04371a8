"""Who signs a transaction, and whether the signatures are valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolkit.move._ids import address_to_bytes
from toolkit.vm._ed25519 import verify
from toolkit.wire import _signatures as signatures
from toolkit.wire._models import unhex

if TYPE_CHECKING:
    from toolkit.wire._signatures import SignatureModel

_KEYLESS = {"keyless", "federated_keyless"}


class Signers(NamedTuple):
    """Addresses of a transaction, with the signatures of the accounts."""

    sender: SignatureModel
    addresses: tuple[bytes, ...]  # secondary signers
    secondary: tuple[SignatureModel, ...]
    payer_address: bytes | None
    payer: SignatureModel | None

    @property
    def everyone(self) -> list[SignatureModel]:
        """The signatures of all accounts."""
        return [one for one in (self.sender, *self.secondary, self.payer) if one is not None]

    @property
    def any_is_keyless(self) -> bool:
        """Whether an account signs with a keyless key, which costs more."""
        return any(map(_is_keyless, self.everyone))

    def are_valid(self, message: bytes) -> bool:
        """Return whether all Ed25519 signatures of a message are valid. Those of other schemes are not checked."""
        for one in self.everyone:
            match one:
                case signatures.Ed25519Signature():
                    key, signature = one.public_key, one.signature
                case signatures.SingleKeySignature() if one.public_key.type == "ed25519" == one.signature.type:
                    key, signature = one.public_key.value, one.signature.value
                case _:
                    continue
            if not verify(unhex(key), unhex(signature), message):
                return False
        return True


def signers_of(signature: SignatureModel) -> Signers:
    """Return who signs, from the signature of a transaction."""
    match signature:
        case signatures.FeePayerSignature():
            addresses = tuple(map(address_to_bytes, signature.secondary_signer_addresses))
            payer = address_to_bytes(signature.fee_payer_address)
            return Signers(signature.sender, addresses, signature.secondary_signers, payer, signature.fee_payer_signer)
        case signatures.MultiAgentSignature():
            addresses = tuple(map(address_to_bytes, signature.secondary_signer_addresses))
            return Signers(signature.sender, addresses, signature.secondary_signers, None, None)
        case signatures.SingleSenderSignature():
            return Signers(signature.sender, (), (), None, None)
    return Signers(signature, (), (), None, None)


def _is_keyless(signature: SignatureModel) -> bool:
    match signature:
        case signatures.SingleKeySignature():
            return signature.public_key.type in _KEYLESS
        case signatures.MultiKeySignature():
            return any(key.type in _KEYLESS for key in signature.public_keys)
    return False
