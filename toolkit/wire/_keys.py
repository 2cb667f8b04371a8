"""Typed public keys and signatures in JSON and BCS, their zeros for simulations, and the base of all signatures."""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from pydantic import field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move import Reader
from toolkit.wire._models import HexText, WireModel, unhex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.move import Writer


# Both in the order of their indices in BCS.
PublicKeyType = Literal[
    "ed25519",
    "secp256k1_ecdsa",
    "secp256r1_ecdsa",
    "keyless",
    "federated_keyless",
    "slh_dsa__sha2_128s",
]
SignatureType = Literal["ed25519", "secp256k1_ecdsa", "web_authn", "keyless", "slh_dsa__sha2_128s"]

MAX_KEYS = 32
"""Largest number of keys of one account."""
ED25519_KEY_BYTES = 32
ED25519_SIGNATURE_BYTES = 64
_KEY_BYTES = {"ed25519": ED25519_KEY_BYTES, "secp256k1_ecdsa": 65, "secp256r1_ecdsa": 65, "slh_dsa__sha2_128s": 32}
_SIGNATURE_BYTES = {"ed25519": ED25519_SIGNATURE_BYTES, "secp256k1_ecdsa": 64, "slh_dsa__sha2_128s": 7856}
_KEYLESS = ("keyless", "federated_keyless")
_MAX_BYTES = 16_384  # of keys and signatures of variable length; the node's own limits are lower
_SIGNATURE_OF_KEY: dict[str, SignatureType] = {
    "ed25519": "ed25519",
    "secp256k1_ecdsa": "secp256k1_ecdsa",
    "secp256r1_ecdsa": "web_authn",
    "keyless": "keyless",
    "federated_keyless": "keyless",
    "slh_dsa__sha2_128s": "slh_dsa__sha2_128s",
}

# BCS of the two signatures that are structures, with zeros in every field that a signer fills in.
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


class AuthenticationScheme(IntEnum):
    """Byte of the scheme in an authentication key."""

    ED25519 = 0
    MULTI_ED25519 = 1
    SINGLE_KEY = 2
    MULTI_KEY = 3


class SignatureModel(WireModel):
    """Base of account and transaction signatures."""

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> SignatureModel:
        """Return the signature of a JSON object.

        Raises
        ------
        InputError, KeyError, TypeError, AttributeError
            If the object does not have the documented shape.
        """
        raise NotImplementedError

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        raise NotImplementedError

    @classmethod
    def read(cls, reader: Reader) -> SignatureModel:
        """Read the signature from BCS, without the index of its kind.

        Raises
        ------
        SchemaError, InputError
            If the bytes are not a signature of this kind.
        """
        raise NotImplementedError

    def write(self, writer: Writer) -> None:
        """Append the signature in BCS, without the index of its kind.

        Raises
        ------
        InputError
            If the signature does not have a BCS form.
        """
        raise NotImplementedError

    def zero_padded(self) -> Self:
        """Return the same signature with zeros of the same length in place of every signature.

        Raises
        ------
        InputError
            If the kind is unknown.
        """
        raise NotImplementedError

    def authentication_key(self) -> bytes | None:
        """Return the authentication key of the public keys, 32 bytes, or None if it cannot be derived."""
        return None

    @property
    def has_json_form(self) -> bool:
        """Whether nodes accept the JSON form; they accept every signature in BCS."""
        return True


class PublicKey(WireModel):
    """A public key and its type.

    Parameters
    ----------
    value : str or bytes
        The key as hex or bytes: 32 bytes for ed25519, 65 (uncompressed) for secp256k1 and secp256r1, the BCS of the
        key for keyless.
    type : str, default "ed25519"
        One of `PublicKeyType`.

    Raises
    ------
    InputError
        If the type is unknown, or `value` does not have the length or, for keyless, the structure of the type.

    Examples
    --------
    >>> PublicKey(bytes(32)).zero_signature().is_zero
    True
    """

    value: HexText
    type: PublicKeyType = "ed25519"

    def __init__(self, value: str | bytes, *, type: str = "ed25519", **unknown: Any) -> None:  # noqa: A002  # the REST API's name
        self._fill({"value": value, "type": type} | unknown)

    @model_validator(mode="after")
    def _check_length(self) -> PublicKey:
        check_length(self.value, _KEY_BYTES.get(self.type), f"a public key of type {self.type}")
        if self.type in _KEYLESS:
            reader = Reader(unhex(self.value))
            try:
                _skip_keyless_key(reader, self.type)
                reader.end()
            except SchemaError as error:
                parts = "issuer and identity commitment"
                parts = parts if self.type == "keyless" else f"address of the issuer's keys, {parts}"
                raise InputError(
                    f"expected the BCS of a {self.type} public key ({parts}), got {shorten(self.value)}: {error}"
                ) from error
        return self

    @property
    def signature_type(self) -> SignatureType:
        """Type of the signatures that this key verifies."""
        return _SIGNATURE_OF_KEY[self.type]

    def zero_signature(self) -> Signature:
        """Return a signature of zeros of the type and length that this key verifies."""
        return Signature.zero(self.signature_type)

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> PublicKey:
        """Return the key of a JSON object.

        Raises
        ------
        InputError, KeyError, TypeError
            If the object does not have the documented shape.
        """
        return cls(content["value"], type=content["type"])

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"value": self.value, "type": self.type}

    @classmethod
    def read(cls, reader: Reader) -> PublicKey:
        """Read a typed key from BCS.

        Raises
        ------
        SchemaError
            If the bytes are not a typed key.
        InputError
            If the key does not have the length of its type.
        """
        kind = _read_kind(reader, get_args(PublicKeyType), "public key")
        start = reader.position
        if kind in _KEYLESS:
            _skip_keyless_key(reader, kind)
            return cls(reader.data[start : reader.position], type=kind)
        return cls(reader.bytes(), type=kind)

    def write(self, writer: Writer) -> None:
        """Append the typed key in BCS."""
        writer.uleb128(get_args(PublicKeyType).index(self.type))
        if self.type in _KEYLESS:  # a structure, not bytes with a length
            writer.fixed(unhex(self.value))
        else:
            writer.bytes(unhex(self.value))


class Signature(WireModel):
    """A signature and its type.

    Parameters
    ----------
    value : str or bytes
        The signature as hex or bytes: 64 bytes for ed25519 and secp256k1, the BCS of the structure for web_authn and
        keyless.
    type : str, default "ed25519"
        One of `SignatureType`.

    Raises
    ------
    InputError
        If the type is unknown, or `value` does not have the length of the type.

    Examples
    --------
    >>> Signature(bytes(64)).is_zero
    True
    """

    value: HexText
    type: SignatureType = "ed25519"

    def __init__(self, value: str | bytes, *, type: str = "ed25519", **unknown: Any) -> None:  # noqa: A002  # the REST API's name
        self._fill({"value": value, "type": type} | unknown)

    @field_validator("type", mode="before")
    @classmethod
    def _take_key_names(cls, value: object) -> object:
        # The API documentation lists the key types for signatures too; nodes print one name for each.
        return {"secp256r1_ecdsa": "web_authn", "federated_keyless": "keyless"}.get(str(value), value)

    @model_validator(mode="after")
    def _check_length(self) -> Signature:
        check_length(self.value, _SIGNATURE_BYTES.get(self.type), f"a signature of type {self.type}")
        return self

    @classmethod
    def zero(cls, kind: SignatureType) -> Signature:
        """Return a signature of zeros of the given type, with the length of that type."""
        length = _SIGNATURE_BYTES.get(kind)
        return cls(_ZEROS[kind] if length is None else bytes(length), type=kind)

    @property
    def is_zero(self) -> bool:
        """Whether this is a signature of zeros, which nobody made."""
        data = unhex(self.value)
        return not any(data) or data == _ZEROS.get(self.type)

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Signature:
        """Return the signature of a JSON object.

        Raises
        ------
        InputError, KeyError, TypeError
            If the object does not have the documented shape.
        """
        return cls(content["value"], type=content["type"])

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"value": self.value, "type": self.type}

    @classmethod
    def read(cls, reader: Reader) -> Signature:
        """Read a typed signature from BCS.

        Raises
        ------
        SchemaError
            If the bytes are not a typed signature.
        InputError
            If the signature does not have the length of its type.
        """
        kind = _read_kind(reader, get_args(SignatureType), "signature")
        start = reader.position
        if kind == "web_authn":
            _skip_web_authn(reader)
        elif kind == "keyless":
            _skip_keyless(reader)
        else:
            return cls(reader.bytes(), type=kind)
        return cls(reader.data[start : reader.position], type=kind)

    def write(self, writer: Writer) -> None:
        """Append the typed signature in BCS."""
        writer.uleb128(get_args(SignatureType).index(self.type))
        if self.type in ("web_authn", "keyless"):  # a structure, not bytes with a length
            writer.fixed(unhex(self.value))
        else:
            writer.bytes(unhex(self.value))


def check_length(hex_text: str, expected: int | None, what: str) -> None:
    """Check that hex text has `expected` bytes; None allows any length up to a limit.

    Raises
    ------
    InputError
        If it has another length.
    """
    length = len(hex_text) // 2 - 1
    if expected is None and not 0 < length <= _MAX_BYTES:
        raise InputError(f"expected 1 to {_MAX_BYTES} bytes of {what}, got {length}")
    if expected is not None and length != expected:
        raise InputError(f"expected {expected} bytes of {what}, got {length}: {shorten(hex_text)}")


def bitmap_of(indices: Sequence[int], *, length: int) -> bytes:
    """Return `length` bytes with bit i set for each index, counted from the most significant bit of byte 0."""
    bits = bytearray(length)
    for index in indices:
        bits[index // 8] |= 0x80 >> index % 8
    return bytes(bits)


def hash_keys(data: bytes, scheme: AuthenticationScheme) -> bytes:
    """Return the authentication key of the bytes of public keys."""
    return hashlib.sha3_256(data + bytes((scheme,))).digest()


def _read_kind(reader: Reader, kinds: tuple[str, ...], what: str) -> str:
    start = reader.position
    index = reader.uleb128()
    if index >= len(kinds):
        raise SchemaError(f"byte {start}: unknown {what} {index}")
    return kinds[index]


def _skip_keyless_key(reader: Reader, kind: str) -> None:
    if kind == "federated_keyless":
        reader.address()  # of the issuer's keys
    reader.string()  # issuer
    reader.bytes()  # identity commitment


def _skip_web_authn(reader: Reader) -> None:
    _read_kind(reader, ("secp256r1_ecdsa",), "assertion signature")
    reader.bytes()  # signature
    reader.bytes()  # authenticator data
    reader.bytes()  # client data


def _skip_keyless(reader: Reader) -> None:
    if _read_kind(reader, ("zero_knowledge", "open_id"), "keyless certificate") == "zero_knowledge":
        _read_kind(reader, ("groth16",), "zero-knowledge proof")
        reader.fixed(32 + 64 + 32)
        reader.u64()  # horizon
        _skip_option(reader, Reader.string)  # extra field
        _skip_option(reader, Reader.string)  # override of the audience
        _skip_option(reader, _skip_ephemeral_signature)  # training wheels
    else:
        reader.bytes()  # JWT signature
        reader.string()  # JWT payload
        reader.string()  # name of the user id
        reader.bytes()  # blinder
        reader.fixed(31)  # pepper
        _skip_option(reader, Reader.string)  # audience
    reader.string()  # JWT header
    reader.u64()  # expiry
    _read_kind(reader, ("ed25519", "secp256r1_ecdsa"), "ephemeral key")
    reader.bytes()
    _skip_ephemeral_signature(reader)


def _skip_ephemeral_signature(reader: Reader) -> None:
    if _read_kind(reader, ("ed25519", "web_authn"), "ephemeral signature") == "web_authn":
        _skip_web_authn(reader)
    else:
        reader.bytes()


def _skip_option(reader: Reader, skip: Callable[[Reader], object]) -> None:
    if reader.bool():
        skip(reader)
