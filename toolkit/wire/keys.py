"""Typed public keys and signatures, and the zeros that stand for a signature nobody made."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit.errors import InputError
from toolkit.wire.models import HexText, WireModel

__all__ = ["PublicKey", "PublicKeyType", "Signature", "SignatureType"]

PublicKeyType = Literal[
    "ed25519",
    "secp256k1_ecdsa",
    "secp256r1_ecdsa",
    "keyless",
    "federated_keyless",
    "slh_dsa__sha2_128s",
]
SignatureType = Literal["ed25519", "secp256k1_ecdsa", "web_authn", "keyless", "slh_dsa__sha2_128s"]

ED25519_KEY_BYTES = 32
ED25519_SIGNATURE_BYTES = 64
_KEY_BYTES = {"ed25519": ED25519_KEY_BYTES, "secp256k1_ecdsa": 65, "secp256r1_ecdsa": 65, "slh_dsa__sha2_128s": 32}
_SIGNATURE_BYTES = {"ed25519": ED25519_SIGNATURE_BYTES, "secp256k1_ecdsa": 64, "slh_dsa__sha2_128s": 7856}
_MAX_BYTES = 16_384  # of the keys and signatures whose length varies; the node's own limits are lower
_SIGNATURE_OF_KEY: dict[str, SignatureType] = {
    "ed25519": "ed25519",
    "secp256k1_ecdsa": "secp256k1_ecdsa",
    "secp256r1_ecdsa": "web_authn",
    "keyless": "keyless",
    "federated_keyless": "keyless",
    "slh_dsa__sha2_128s": "slh_dsa__sha2_128s",
}

# BCS of the two signatures that are structures, every field that a signer would fill set to zero or empty.
# web_authn: variant 0 (secp256r1), 64 zero bytes, empty authenticator data, empty client data.
_ZERO_WEB_AUTHN = b"\x00\x40" + bytes(64) + b"\x00\x00"
# keyless: zero-knowledge certificate (Groth16 of 32 + 64 + 32 zero bytes, horizon 0, three absent options),
# empty JWT header, expiry 0, ephemeral ed25519 key and signature of zeros.
_ZERO_KEYLESS = b"".join(
    (
        b"\x00\x00" + bytes(128) + bytes(8) + b"\x00\x00\x00",
        b"\x00" + bytes(8),
        b"\x00\x20" + bytes(32),
        b"\x00\x40" + bytes(64),
    )
)
_ZEROS = {"web_authn": _ZERO_WEB_AUTHN, "keyless": _ZERO_KEYLESS}


class PublicKey(WireModel):
    """A public key with its kind.

    Parameters
    ----------
    value : str or bytes
        The key, hex or bytes: 32 bytes for ed25519, 65 (uncompressed) for secp256k1 and secp256r1, BCS of the
        key for keyless.
    type : str, default "ed25519"
        Kind of key.

    Raises
    ------
    InputError
        If the kind is unknown or the length is not the kind's.
    """

    value: HexText
    type: PublicKeyType = "ed25519"

    def __init__(self, value: str | bytes, *, type: str = "ed25519", **unknown: Any) -> None:  # noqa: A002  # the wire's name
        self._fill({"value": value, "type": type} | unknown)

    @model_validator(mode="after")
    def _check_length(self) -> PublicKey:
        check_length(self.value, _KEY_BYTES.get(self.type), f"a public key of type {self.type}")
        return self

    @property
    def signature_type(self) -> SignatureType:
        """Kind of the signatures this key verifies."""
        return _SIGNATURE_OF_KEY[self.type]

    def zero_signature(self) -> Signature:
        """Return the signature of zeros that has the right length for this key."""
        return zero_signature(self.signature_type)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"value": self.value, "type": self.type}


class Signature(WireModel):
    """A signature with its kind.

    Parameters
    ----------
    value : str or bytes
        The signature, hex or bytes: 64 bytes for ed25519 and secp256k1, BCS of the structure for web_authn
        and keyless.
    type : str, default "ed25519"
        Kind of signature.

    Raises
    ------
    InputError
        If the kind is unknown or the length is not the kind's.
    """

    value: HexText
    type: SignatureType = "ed25519"

    def __init__(self, value: str | bytes, *, type: str = "ed25519", **unknown: Any) -> None:  # noqa: A002  # the wire's name
        self._fill({"value": value, "type": type} | unknown)

    @field_validator("type", mode="before")
    @classmethod
    def _take_key_names(cls, value: object) -> object:
        # The service's description lists the key kinds for signatures too; the wire has one name for each.
        return {"secp256r1_ecdsa": "web_authn", "federated_keyless": "keyless"}.get(str(value), value)

    @model_validator(mode="after")
    def _check_length(self) -> Signature:
        check_length(self.value, _SIGNATURE_BYTES.get(self.type), f"a signature of type {self.type}")
        return self

    @property
    def is_zero(self) -> bool:
        """Whether this is zeros, and so no one's signature."""
        data = bytes.fromhex(self.value[2:])
        return not any(data) or data == _ZEROS.get(self.type)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"value": self.value, "type": self.type}


def zero_signature(kind: SignatureType) -> Signature:
    """Return the signature of zeros of a kind, of the right length."""
    length = _SIGNATURE_BYTES.get(kind)
    return Signature(_ZEROS[kind] if length is None else bytes(length), type=kind)


def check_length(hex_text: str, expected: int | None, what: str) -> None:
    """Refuse hex of another length than `expected` bytes (None: any up to a limit).

    Raises
    ------
    InputError
        Naming both lengths.
    """
    length = len(hex_text) // 2 - 1
    if expected is None and not 0 < length <= _MAX_BYTES:
        raise InputError(f"{what} has 1 to {_MAX_BYTES} bytes, got {length}")
    if expected is not None and length != expected:
        raise InputError(f"{what} has {expected} bytes, got {length}: {shorten(hex_text)}")
