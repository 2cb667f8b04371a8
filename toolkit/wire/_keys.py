"""Typed public keys and signatures in JSON and BCS, and the zeros that simulations send in place of signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move._bcs import Reader
from toolkit.wire._bcs_forms import read_index
from toolkit.wire._models import HexText, WireModel, unhex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.move._bcs import Writer

    _Skip = Callable[[Reader], object]


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
_MAX_BYTES = 16_384  # of keys and signatures of variable length; the node's own limits are lower


def _parts(*parts: _Skip) -> _Skip:
    return lambda reader: [part(reader) for part in parts]


def _one_of(what: str, *parts: _Skip) -> _Skip:
    return lambda reader: parts[read_index(reader, len(parts), what)](reader)


def _maybe(part: _Skip) -> _Skip:
    return lambda reader: part(reader) if reader.bool() else None


def _fixed(size: int) -> _Skip:
    return lambda reader: reader.fixed(size)


# Structures in BCS, which are skipped to find their end; all other keys and signatures are bytes of one length.
_KEYLESS_KEY = _parts(Reader.string, Reader.bytes)  # issuer, identity commitment
# By secp256r1: signature, authenticator data, client data.
_WEB_AUTHN = _one_of("assertion signature", _parts(Reader.bytes, Reader.bytes, Reader.bytes))
_EPHEMERAL_SIGNATURE = _one_of("ephemeral signature", Reader.bytes, _WEB_AUTHN)  # ed25519, WebAuthn
# Groth16 proof, horizon, extra field, override of the audience, training wheels.
_PROOF = _parts(
    _one_of("zero-knowledge proof", _fixed(32 + 64 + 32)),
    Reader.u64,
    _maybe(Reader.string),
    _maybe(Reader.string),
    _maybe(_EPHEMERAL_SIGNATURE),
)
# JWT signature and payload, name of the user id, blinder, pepper, audience.
_OPEN_ID = _parts(Reader.bytes, Reader.string, Reader.string, Reader.bytes, _fixed(31), _maybe(Reader.string))
_KEYLESS = _parts(
    _one_of("keyless certificate", _PROOF, _OPEN_ID),
    Reader.string,  # JWT header
    Reader.u64,  # expiry
    _one_of("ephemeral key", Reader.bytes, Reader.bytes),  # ed25519, secp256r1
    _EPHEMERAL_SIGNATURE,
)

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

_SIGNATURE_OF_KEY: dict[str, SignatureType] = {
    "ed25519": "ed25519",
    "secp256k1_ecdsa": "secp256k1_ecdsa",
    "secp256r1_ecdsa": "web_authn",
    "keyless": "keyless",
    "federated_keyless": "keyless",
    "slh_dsa__sha2_128s": "slh_dsa__sha2_128s",
}


class _Typed(WireModel):
    """Base of keys and signatures: bytes with a type."""

    # By type, in the order of the indices in BCS: the number of bytes, or how a structure is skipped.
    _kinds: ClassVar[Mapping[str, int | _Skip]]
    _what: ClassVar[str]

    value: HexText
    type: str = "ed25519"

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        size = self._kinds[self.type]
        check_length(self.value, size if isinstance(size, int) else None, f"a {self._what} of type {self.type}")
        return self

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Self:
        """Return the key or signature of a JSON object.

        Raises
        ------
        InputError, KeyError, TypeError
            If the object does not have the documented shape.
        """
        return cls(value=content["value"], type=content["type"])

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"value": self.value, "type": self.type}

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read the key or signature from BCS.

        Raises
        ------
        SchemaError
            If the bytes are not a typed key or signature.
        InputError
            If it does not have the length of its type.
        """
        kind = list(cls._kinds)[read_index(reader, len(cls._kinds), cls._what)]
        start, skip = reader.position, cls._kinds[kind]
        if isinstance(skip, int):
            data = reader.bytes()
        else:
            skip(reader)
            data = reader.data[start : reader.position]
        return cls(value=f"0x{data.hex()}", type=kind)

    def write(self, writer: Writer) -> None:
        """Append the key or signature in BCS."""
        writer.uleb128(list(self._kinds).index(self.type))
        if isinstance(self._kinds[self.type], int):
            writer.bytes(unhex(self.value))
        else:  # a structure, not bytes with a length
            writer.fixed(unhex(self.value))


class PublicKey(_Typed):
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

    _kinds = {  # noqa: RUF012  # a class variable of the base
        "ed25519": ED25519_KEY_BYTES,
        "secp256k1_ecdsa": 65,
        "secp256r1_ecdsa": 65,
        "keyless": _KEYLESS_KEY,
        "federated_keyless": _parts(Reader.address, _KEYLESS_KEY),
        "slh_dsa__sha2_128s": 32,
    }
    _what = "public key"

    type: PublicKeyType = "ed25519"

    @model_validator(mode="after")
    def _check_structure(self) -> Self:
        skip = self._kinds[self.type]
        if isinstance(skip, int):
            return self
        reader = Reader(unhex(self.value))
        try:
            skip(reader)
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


class Signature(_Typed):
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

    _kinds = {  # noqa: RUF012  # a class variable of the base
        "ed25519": ED25519_SIGNATURE_BYTES,
        "secp256k1_ecdsa": 64,
        "web_authn": _WEB_AUTHN,
        "keyless": _KEYLESS,
        "slh_dsa__sha2_128s": 7856,
    }
    _what = "signature"

    type: SignatureType = "ed25519"

    @field_validator("type", mode="before")
    @classmethod
    def _take_key_names(cls, value: object) -> object:
        # The API documentation lists the key types for signatures too; nodes print one name for each.
        return {"secp256r1_ecdsa": "web_authn", "federated_keyless": "keyless"}.get(str(value), value)

    @classmethod
    def zero(cls, kind: SignatureType) -> Signature:
        """Return a signature of zeros of the given type, with the length of that type."""
        size = cls._kinds[kind]
        data = bytes(size) if isinstance(size, int) else _ZEROS[kind]
        return cls(f"0x{data.hex()}", type=kind)

    @property
    def is_zero(self) -> bool:
        """Whether the signature is all zeros."""
        data = unhex(self.value)
        return not any(data) or data == _ZEROS.get(self.type)


def check_length(hex_text: str, expected: int | None, what: str) -> str:
    """Return hex text if it has `expected` bytes; None allows any length up to a limit.

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
    return hex_text
