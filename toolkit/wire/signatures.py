"""Transaction signatures and account signatures as the wire has them; this package sends them zero-padded only.

Where the service's description and the wire differ (`abstraction_signature`, a multi-key `threshold`), both are
read and the wire's name is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, StrictInt, model_validator

from toolkit.errors import InputError
from toolkit.wire.keys import ED25519_KEY_BYTES, ED25519_SIGNATURE_BYTES, PublicKey, Signature, check_length
from toolkit.wire.models import AddressText, FunctionText, HexText, WireModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "AbstractSignature",
    "AccountSignature",
    "Ed25519Signature",
    "FeePayerSignature",
    "IndexedSignature",
    "MultiAgentSignature",
    "MultiEd25519Signature",
    "MultiKeySignature",
    "NoAccountSignature",
    "SingleKeySignature",
    "SingleSenderSignature",
    "TransactionSignature",
    "UnknownSignature",
    "has_json_form",
]

_MAX_KEYS = 32
_ZERO_ED25519 = bytes(ED25519_SIGNATURE_BYTES)
_ZERO_ED25519_HEX = "0x" + _ZERO_ED25519.hex()


def _typed_key(value: object) -> object:
    return value if isinstance(value, PublicKey) or not isinstance(value, str | bytes) else PublicKey(value)


TypedKey = Annotated[PublicKey, BeforeValidator(_typed_key)]


class NoAccountSignature(WireModel):
    """No signature at all: the way to simulate without any key."""

    type: ClassVar[str] = "no_account_signature"

    def __init__(self, **unknown: Any) -> None:
        self._fill(unknown)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type}


class Ed25519Signature(WireModel):
    """One ed25519 key and its signature.

    Parameters
    ----------
    public_key : str or bytes
        32 bytes.
    signature : str or bytes, default zeros
        64 bytes.
    """

    type: ClassVar[str] = "ed25519_signature"

    public_key: HexText
    signature: HexText = _ZERO_ED25519_HEX

    def __init__(self, public_key: str | bytes, *, signature: str | bytes = _ZERO_ED25519, **unknown: Any) -> None:
        self._fill({"public_key": public_key, "signature": signature} | unknown)

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_length(self.public_key, ED25519_KEY_BYTES, "an ed25519 public key")
        check_length(self.signature, ED25519_SIGNATURE_BYTES, "an ed25519 signature")
        return self

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "public_key": self.public_key, "signature": self.signature}


class MultiEd25519Signature(WireModel):
    """Several ed25519 keys of which `threshold` sign.

    Parameters
    ----------
    public_keys : sequence of str or bytes
        1 to 32 keys of 32 bytes.
    threshold : int
        Number of signatures required.
    signatures : sequence of str or bytes, optional
        64 bytes each, in the order of the set bits; zeros for every key where left out (a node takes JSON with
        as many signatures as keys only).
    bitmap : str or bytes, optional
        4 bytes, bit i from the most significant of byte 0 says that key i signed; the first
        ``len(signatures)`` keys where left out.
    """

    type: ClassVar[str] = "multi_ed25519_signature"

    public_keys: tuple[HexText, ...]
    threshold: StrictInt
    signatures: tuple[HexText, ...]
    bitmap: HexText

    def __init__(
        self,
        public_keys: Sequence[str | bytes],
        *,
        threshold: int,
        signatures: Sequence[str | bytes] | None = None,
        bitmap: str | bytes | None = None,
        **unknown: Any,
    ) -> None:
        if signatures is None:
            signatures = [_ZERO_ED25519] * len(public_keys)
        if bitmap is None:
            bitmap = bitmap_of(range(min(len(signatures), _MAX_KEYS)), length=4)
        fields = {"public_keys": public_keys, "threshold": threshold, "signatures": signatures, "bitmap": bitmap}
        self._fill(fields | unknown)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 1 <= len(self.public_keys) <= _MAX_KEYS:
            raise InputError(f"expected 1 to {_MAX_KEYS} public keys, got {len(self.public_keys)}")
        if len(self.signatures) > len(self.public_keys):
            raise InputError(f"{len(self.signatures)} signatures for {len(self.public_keys)} public keys")
        if not 1 <= self.threshold <= len(self.public_keys):
            raise InputError(f"expected a threshold from 1 to {len(self.public_keys)}, got {self.threshold}")
        for key in self.public_keys:
            check_length(key, ED25519_KEY_BYTES, "an ed25519 public key")
        for signature in self.signatures:
            check_length(signature, ED25519_SIGNATURE_BYTES, "an ed25519 signature")
        check_length(self.bitmap, 4, "the bitmap of a multi-ed25519 signature")
        return self

    def implied_fields(self) -> dict[str, Any]:
        """Return the fields that need not be written, with the values they take when left out."""
        every_key = [_ZERO_ED25519_HEX] * len(self.public_keys)
        bitmap = "0x" + bitmap_of(range(len(self.signatures)), length=4).hex()
        return {"signatures": tuple(every_key), "bitmap": bitmap}

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "public_keys": list(self.public_keys),
            "signatures": list(self.signatures),
            "threshold": self.threshold,
            "bitmap": self.bitmap,
        }


class SingleKeySignature(WireModel):
    """One typed key and its typed signature.

    Parameters
    ----------
    public_key : PublicKey or str
        The key; text is taken as an ed25519 key.
    signature : Signature, optional
        Zeros of the key's kind where left out.
    """

    type: ClassVar[str] = "single_key_signature"

    public_key: TypedKey
    signature: Signature

    def __init__(self, public_key: PublicKey | str, *, signature: Signature | None = None, **unknown: Any) -> None:
        key = _typed_key(public_key)
        if signature is None and isinstance(key, PublicKey):
            signature = key.zero_signature()
        self._fill({"public_key": key, "signature": signature} | unknown)

    def implied_fields(self) -> dict[str, Any]:
        """Return the fields that need not be written, with the values they take when left out."""
        return {"signature": self.public_key.zero_signature()}

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "public_key": self.public_key.to_wire(),
            "signature": self.signature.to_wire(),
        }


class IndexedSignature(WireModel):
    """A signature and which of the keys made it.

    Parameters
    ----------
    index : int
        Position of the key.
    signature : Signature
        The signature.
    """

    index: StrictInt
    signature: Signature

    def __init__(self, index: int, *, signature: Signature, **unknown: Any) -> None:
        self._fill({"index": index, "signature": signature} | unknown)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"index": self.index, "signature": self.signature.to_wire()}


class MultiKeySignature(WireModel):
    """Several typed keys of which `signatures_required` sign.

    Parameters
    ----------
    public_keys : sequence of PublicKey or str
        1 to 32 keys; text is taken as an ed25519 key.
    signatures_required : int
        Number of signatures required (the service's description calls it `threshold`).
    signatures : sequence of IndexedSignature, optional
        Zeros for the first `signatures_required` keys where left out.
    bitmap : str or bytes, optional
        As read from BCS where it is longer than the keys need; otherwise it follows from the indices.
    """

    type: ClassVar[str] = "multi_key_signature"

    public_keys: tuple[TypedKey, ...]
    signatures_required: StrictInt
    signatures: tuple[IndexedSignature, ...]
    bitmap: HexText | None = None

    def __init__(
        self,
        public_keys: Sequence[PublicKey | str],
        *,
        signatures_required: int,
        signatures: Sequence[IndexedSignature] | None = None,
        bitmap: str | bytes | None = None,
        **unknown: Any,
    ) -> None:
        keys = [_typed_key(key) for key in public_keys]
        if signatures is None:
            first = enumerate(keys[: max(signatures_required, 0)])
            signatures = [
                IndexedSignature(index, signature=key.zero_signature())
                for index, key in first
                if isinstance(key, PublicKey)
            ]
        fields = {
            "public_keys": keys,
            "signatures_required": signatures_required,
            "signatures": signatures,
            "bitmap": bitmap,
        }
        self._fill(fields | unknown)

    @model_validator(mode="after")
    def _check(self) -> Self:
        count = len(self.public_keys)
        if not 1 <= count <= _MAX_KEYS:
            raise InputError(f"expected 1 to {_MAX_KEYS} public keys, got {count}")
        if not 1 <= self.signatures_required <= count:
            raise InputError(f"expected 1 to {count} signatures_required, got {self.signatures_required}")
        indices = [signature.index for signature in self.signatures]
        if indices != sorted(set(indices)) or (indices and not 0 <= indices[0] <= indices[-1] < count):
            raise InputError(f"signature indices must rise and lie below {count}, got {indices[:_MAX_KEYS]}")
        return self

    def implied_fields(self) -> dict[str, Any]:
        """Return the fields that need not be written, with the values they take when left out."""
        first = enumerate(self.public_keys[: self.signatures_required])
        zeros = (IndexedSignature(index, signature=key.zero_signature()) for index, key in first)
        return {"signatures": tuple(zeros), "bitmap": None}

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "public_keys": [key.to_wire() for key in self.public_keys],
            "signatures": [signature.to_wire() for signature in self.signatures],
            "signatures_required": self.signatures_required,
        }


class AbstractSignature(WireModel):
    """A signature checked by a Move function.

    Parameters
    ----------
    function_info : str or None
        ``address::module::function`` that authenticates; None where an answer does not say.
    auth_data : str or bytes
        BCS of the authentication data.
    """

    type: ClassVar[str] = "abstract_signature"

    function_info: FunctionText | None
    auth_data: HexText

    def __init__(self, function_info: str | None, *, auth_data: str | bytes, **unknown: Any) -> None:
        self._fill({"function_info": function_info, "auth_data": auth_data} | unknown)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type, "function_info": self.function_info, "auth_data": self.auth_data}


class UnknownSignature(WireModel):
    """A signature of a kind this package does not know, kept as it came.

    Parameters
    ----------
    content : dict
        The JSON object.
    """

    content: dict[str, Any]

    def __init__(self, content: Mapping[str, Any], **unknown: Any) -> None:
        self._fill({"content": dict(content)} | unknown)

    @property
    def type(self) -> str | None:
        """The object's own type, where it names one."""
        name = self.content.get("type")
        return name if isinstance(name, str) else None

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object as it came."""
        return self.content


AccountSignature = (
    Ed25519Signature
    | MultiEd25519Signature
    | SingleKeySignature
    | MultiKeySignature
    | NoAccountSignature
    | AbstractSignature
    | UnknownSignature
)


class MultiAgentSignature(WireModel):
    """Signatures of a sender and of secondary signers.

    Parameters
    ----------
    sender : AccountSignature
        The sender's.
    secondary_signer_addresses : sequence of str
        Addresses of the others.
    secondary_signers : sequence of AccountSignature
        Theirs, in the same order.
    """

    type: ClassVar[str] = "multi_agent_signature"

    sender: AccountSignature
    secondary_signer_addresses: tuple[AddressText, ...]
    secondary_signers: tuple[AccountSignature, ...]

    def __init__(
        self,
        sender: AccountSignature,
        *,
        secondary_signer_addresses: Sequence[str],
        secondary_signers: Sequence[AccountSignature],
        **unknown: Any,
    ) -> None:
        fields = {
            "sender": sender,
            "secondary_signer_addresses": secondary_signer_addresses,
            "secondary_signers": secondary_signers,
        }
        self._fill(fields | unknown)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_pairs(self.secondary_signer_addresses, self.secondary_signers)
        if not self.secondary_signers:
            raise InputError("a multi-agent signature needs at least one secondary signer")
        return self

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "sender": self.sender.to_wire(),
            "secondary_signer_addresses": list(self.secondary_signer_addresses),
            "secondary_signers": [signer.to_wire() for signer in self.secondary_signers],
        }


class FeePayerSignature(WireModel):
    """Signatures of a sender, of secondary signers and of the account that pays the fee.

    Parameters
    ----------
    sender : AccountSignature
        The sender's.
    fee_payer_address : str
        Who pays; 0x0 where nobody is charged.
    fee_payer_signer : AccountSignature
        The payer's.
    secondary_signer_addresses : sequence of str, default ()
        Addresses of the secondary signers.
    secondary_signers : sequence of AccountSignature, default ()
        Theirs, in the same order.
    """

    type: ClassVar[str] = "fee_payer_signature"

    sender: AccountSignature
    secondary_signer_addresses: tuple[AddressText, ...] = ()
    secondary_signers: tuple[AccountSignature, ...] = ()
    fee_payer_address: AddressText
    fee_payer_signer: AccountSignature

    def __init__(
        self,
        sender: AccountSignature,
        *,
        fee_payer_address: str,
        fee_payer_signer: AccountSignature,
        secondary_signer_addresses: Sequence[str] = (),
        secondary_signers: Sequence[AccountSignature] = (),
        **unknown: Any,
    ) -> None:
        fields = {
            "sender": sender,
            "secondary_signer_addresses": secondary_signer_addresses,
            "secondary_signers": secondary_signers,
            "fee_payer_address": fee_payer_address,
            "fee_payer_signer": fee_payer_signer,
        }
        self._fill(fields | unknown)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_pairs(self.secondary_signer_addresses, self.secondary_signers)
        return self

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "sender": self.sender.to_wire(),
            "secondary_signer_addresses": list(self.secondary_signer_addresses),
            "secondary_signers": [signer.to_wire() for signer in self.secondary_signers],
            "fee_payer_address": self.fee_payer_address,
            "fee_payer_signer": self.fee_payer_signer.to_wire(),
        }


class SingleSenderSignature(WireModel):
    """One account signature as a transaction's; nodes print it, but take it in BCS only.

    Parameters
    ----------
    sender : AccountSignature
        The account's signature.
    """

    type: ClassVar[str] = "single_sender"

    sender: AccountSignature

    def __init__(self, sender: AccountSignature, **unknown: Any) -> None:
        self._fill({"sender": sender} | unknown)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form as nodes print it: the account signature's fields under the outer type."""
        return self.sender.to_wire() | {"type": self.type}


TransactionSignature = (
    Ed25519Signature
    | MultiEd25519Signature
    | MultiAgentSignature
    | FeePayerSignature
    | SingleSenderSignature
    | NoAccountSignature
    | UnknownSignature
)


def bitmap_of(indices: Sequence[int] | range, *, length: int) -> bytes:
    """Return `length` bytes with bit i set for each index, counted from the most significant bit of byte 0."""
    bits = bytearray(length)
    for index in indices:
        bits[index // 8] |= 0x80 >> index % 8
    return bytes(bits)


def has_json_form(signature: TransactionSignature | AccountSignature) -> bool:
    """Return whether a node reads the JSON form of a signature; BCS it always reads.

    A single sender's wrapper cannot be parsed, a federated keyless key is taken for a keyless one, and a
    multi-ed25519 signature must have as many signatures as keys.
    """
    if isinstance(signature, MultiEd25519Signature):
        return len(signature.signatures) == len(signature.public_keys)
    if isinstance(signature, SingleKeySignature):
        return signature.public_key.type != "federated_keyless"
    if isinstance(signature, MultiAgentSignature):
        return all(map(has_json_form, (signature.sender, *signature.secondary_signers)))
    if isinstance(signature, FeePayerSignature):
        parts = (signature.sender, *signature.secondary_signers, signature.fee_payer_signer)
        return all(map(has_json_form, parts))
    return not isinstance(signature, SingleSenderSignature)


def _check_pairs(addresses: Sequence[object], signers: Sequence[object]) -> None:
    if len(addresses) != len(signers):
        raise InputError(f"{len(addresses)} secondary signer addresses but {len(signers)} secondary signers")
