"""Signatures of one account: each kind is a class with its JSON form, its BCS form and its zero-padded form.

If the API documentation and nodes differ (`abstraction_signature`, the `threshold` of a multi-key signature), both
forms are read and the form of the nodes is sent. To add a kind, write its class and add it to `_KINDS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import StrictInt, model_validator

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move import Reader
from toolkit.wire._key_signatures import MultiKeySignature, SingleKeySignature
from toolkit.wire._keys import (
    ED25519_KEY_BYTES,
    ED25519_SIGNATURE_BYTES,
    MAX_KEYS,
    AuthenticationScheme,
    SignatureModel,
    bitmap_of,
    check_length,
    hash_keys,
)
from toolkit.wire._models import FunctionText, HexText, parse_by_type, unhex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.move import Writer
    from toolkit.wire._models import JsonObject


_MULTI_ED25519_BITMAP_BYTES = 4
_ZERO_ED25519 = bytes(ED25519_SIGNATURE_BYTES)
_ZERO_ED25519_HEX = "0x" + _ZERO_ED25519.hex()


class NoAccountSignature(SignatureModel):
    """The absence of a signature, which allows a simulation without any key.

    Examples
    --------
    >>> from toolkit.wire import NoAccountSignature
    >>> NoAccountSignature().to_wire()
    {'type': 'no_account_signature'}
    """

    type: ClassVar[str] = "no_account_signature"

    def __init__(self, **unknown: Any) -> None:
        self._fill(unknown)

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> NoAccountSignature:  # noqa: ARG003  # nothing in it is needed
        return cls()

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.type}

    @classmethod
    def read(cls, reader: Reader) -> NoAccountSignature:  # noqa: ARG003
        return cls()

    def write(self, writer: Writer) -> None:
        """Append nothing: the BCS form is empty."""

    def zero_padded(self) -> Self:
        return self


class Ed25519Signature(SignatureModel):
    """One ed25519 key and its signature.

    Parameters
    ----------
    public_key : str or bytes
        32 bytes.
    signature : str or bytes, default zeros
        64 bytes.

    Raises
    ------
    InputError
        If the key or the signature has another length.

    Examples
    --------
    >>> Ed25519Signature(bytes(32)).authentication_key().hex()[:8]
    'dc33296e'
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

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Ed25519Signature:
        return cls(content["public_key"], signature=content["signature"])

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.type, "public_key": self.public_key, "signature": self.signature}

    @classmethod
    def read(cls, reader: Reader) -> Ed25519Signature:
        return cls(reader.bytes(), signature=reader.bytes())

    def write(self, writer: Writer) -> None:
        writer.bytes(unhex(self.public_key))
        writer.bytes(unhex(self.signature))

    def zero_padded(self) -> Self:
        return self.replace(signature=_ZERO_ED25519_HEX)

    def authentication_key(self) -> bytes:
        return hash_keys(unhex(self.public_key), AuthenticationScheme.ED25519)


class MultiEd25519Signature(SignatureModel):
    """Several ed25519 keys, `threshold` of which sign.

    Parameters
    ----------
    public_keys : sequence of str or bytes
        1 to 32 keys of 32 bytes.
    threshold : int
        Number of signatures required.
    signatures : sequence of str or bytes, optional
        64 bytes each, in the order of the set bits; by default zeros for every key. Nodes accept JSON only with as
        many signatures as keys.
    bitmap : str or bytes, optional
        4 bytes; bit i, counted from the most significant bit of byte 0, says that key i signed. By default the first
        ``len(signatures)`` keys.

    Raises
    ------
    InputError
        If a key or signature has a wrong length, or the numbers of keys and signatures and the threshold do not fit.

    Examples
    --------
    >>> from toolkit.wire import MultiEd25519Signature
    >>> signature = MultiEd25519Signature([bytes(32), bytes(32)], threshold=1)
    >>> len(signature.signatures), signature.bitmap
    (2, '0xc0000000')
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
            bitmap = bitmap_of(range(min(len(signatures), MAX_KEYS)), length=_MULTI_ED25519_BITMAP_BYTES)
        fields = {"public_keys": public_keys, "threshold": threshold, "signatures": signatures, "bitmap": bitmap}
        self._fill(fields | unknown)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 1 <= len(self.public_keys) <= MAX_KEYS:
            raise InputError(f"expected 1 to {MAX_KEYS} public keys, got {len(self.public_keys)}")
        if len(self.signatures) > len(self.public_keys):
            raise InputError(
                f"expected at most {len(self.public_keys)} signatures, one per key, got {len(self.signatures)}"
            )
        if not 1 <= self.threshold <= len(self.public_keys):
            raise InputError(f"expected a threshold from 1 to {len(self.public_keys)}, got {self.threshold}")
        for key in self.public_keys:
            check_length(key, ED25519_KEY_BYTES, "an ed25519 public key")
        for signature in self.signatures:
            check_length(signature, ED25519_SIGNATURE_BYTES, "an ed25519 signature")
        check_length(self.bitmap, _MULTI_ED25519_BITMAP_BYTES, "the bitmap of a multi-ed25519 signature")
        return self

    def implied_fields(self) -> dict[str, Any]:
        """Return the fields that can be omitted, with the values that they then have."""
        every_key = [_ZERO_ED25519_HEX] * len(self.public_keys)
        bitmap = "0x" + bitmap_of(range(len(self.signatures)), length=_MULTI_ED25519_BITMAP_BYTES).hex()
        return {"signatures": tuple(every_key), "bitmap": bitmap}

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> MultiEd25519Signature:
        return cls(
            content["public_keys"],
            threshold=content["threshold"],
            signatures=content["signatures"],
            bitmap=content["bitmap"],
        )

    def to_wire(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "public_keys": list(self.public_keys),
            "signatures": list(self.signatures),
            "threshold": self.threshold,
            "bitmap": self.bitmap,
        }

    @classmethod
    def read(cls, reader: Reader) -> MultiEd25519Signature:
        keys, signatures = reader.bytes(), reader.bytes()
        rest = _MULTI_ED25519_BITMAP_BYTES
        return cls(
            _chunks(keys, ED25519_KEY_BYTES, 1, "a multi-ed25519 key"),
            threshold=keys[-1],
            signatures=_chunks(signatures, ED25519_SIGNATURE_BYTES, rest, "a multi-ed25519 signature"),
            bitmap=signatures[-rest:],
        )

    def write(self, writer: Writer) -> None:
        writer.bytes(b"".join(map(unhex, self.public_keys)) + bytes([self.threshold]))
        writer.bytes(b"".join(map(unhex, (*self.signatures, self.bitmap))))

    def zero_padded(self) -> Self:
        return self.replace(signatures=[_ZERO_ED25519_HEX] * len(self.signatures))

    def authentication_key(self) -> bytes:
        keys = b"".join(map(unhex, self.public_keys))
        return hash_keys(keys + bytes([self.threshold]), AuthenticationScheme.MULTI_ED25519)

    @property
    def has_json_form(self) -> bool:
        """Whether nodes accept the JSON form: only with as many signatures as keys."""
        return len(self.signatures) == len(self.public_keys)


class AbstractSignature(SignatureModel):
    """A signature that a Move function checks.

    Parameters
    ----------
    function_info : str or None
        ``address::module::function`` that authenticates; None if a response does not contain it.
    auth_data : str or bytes
        BCS of the authentication data.

    Raises
    ------
    InputError
        If `function_info` is not a function id or `auth_data` is not hex.

    Examples
    --------
    >>> from toolkit.wire import AbstractSignature
    >>> AbstractSignature("0xcafe::wallet::authenticate", auth_data=b"").function_info
    '0x000000000000000000000000000000000000000000000000000000000000cafe::wallet::authenticate'
    """

    type: ClassVar[str] = "abstract_signature"

    function_info: FunctionText | None
    auth_data: HexText

    def __init__(self, function_info: str | None, *, auth_data: str | bytes, **unknown: Any) -> None:
        self._fill({"function_info": function_info, "auth_data": auth_data} | unknown)

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> AbstractSignature:
        # The API documentation has one hex field, without its name.
        auth_data = content["auth_data"] if "auth_data" in content else content["signature"]
        return cls(content.get("function_info"), auth_data=auth_data)

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.type, "function_info": self.function_info, "auth_data": self.auth_data}

    @classmethod
    def read(cls, reader: Reader) -> AbstractSignature:
        function = f"{reader.address()}::{reader.string()}::{reader.string()}"
        start = reader.position
        _skip_auth_data(reader)
        return cls(function, auth_data=reader.data[start : reader.position])

    def write(self, writer: Writer) -> None:
        if self.function_info is None:
            raise InputError("an abstract signature without its function has no BCS form")
        address, module, name = self.function_info.split("::")
        writer.address(address)
        writer.string(module)
        writer.string(name)
        writer.fixed(unhex(self.auth_data))

    def zero_padded(self) -> Self:
        data = unhex(self.auth_data)
        if not any(data):  # not a signature of anybody
            return self
        reader = Reader(data)
        try:
            start, end = _skip_auth_data(reader)
            reader.end()
        except SchemaError as error:
            raise InputError(f"the authentication data of an abstract signature is not BCS: {error}") from None
        return self.replace(auth_data=data[:start] + bytes(end - start) + data[end:])


class UnknownSignature(SignatureModel):
    """A signature of an unknown kind, with its JSON.

    Parameters
    ----------
    content : dict
        The JSON object.

    Examples
    --------
    >>> from toolkit.wire import UnknownSignature, parse_account_signature
    >>> signature = parse_account_signature({"type": "a_future_signature"})
    >>> isinstance(signature, UnknownSignature), signature.type
    (True, 'a_future_signature')
    """

    content: dict[str, Any]

    def __init__(self, content: Mapping[str, Any], **unknown: Any) -> None:
        self._fill({"content": dict(content)} | unknown)

    @property
    def type(self) -> str | None:
        """The type in the JSON object, or None if it has none."""
        name = self.content.get("type")
        return name if isinstance(name, str) else None

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object."""
        return self.content

    def write(self, writer: Writer) -> None:  # noqa: ARG002
        raise InputError(f"a signature of type {self.type!r} has no BCS form")

    def zero_padded(self) -> Self:
        raise InputError(f"a signature of the unknown type {shorten(self.type)} cannot be zero-padded")


AccountSignature = (
    Ed25519Signature
    | MultiEd25519Signature
    | SingleKeySignature
    | MultiKeySignature
    | NoAccountSignature
    | AbstractSignature
    | UnknownSignature
)

# In the order of their indices in BCS.
_KINDS: tuple[type[SignatureModel], ...] = (
    Ed25519Signature,
    MultiEd25519Signature,
    SingleKeySignature,
    MultiKeySignature,
    NoAccountSignature,
    AbstractSignature,
)
_READERS = {kind.type: kind.from_wire for kind in _KINDS} | {"abstraction_signature": AbstractSignature.from_wire}  # type: ignore[attr-defined]  # each has a type


def parse_account_signature(json: JsonObject) -> AccountSignature:
    """Decode the signature of one account, as it occurs inside the signature of a transaction.

    Parameters
    ----------
    json : mapping, bytes or msgspec.Raw
        The JSON object, parsed or not.

    Returns
    -------
    AccountSignature
        An `UnknownSignature` with the JSON if the ``type`` is unknown.

    Raises
    ------
    SchemaError
        If the JSON is not an object, or does not have the documented shape of its type.

    Examples
    --------
    >>> parse_account_signature({"type": "no_account_signature"})
    NoAccountSignature()
    """
    return parse_by_type(json, _READERS, UnknownSignature, "account signature")  # type: ignore[no-any-return]  # by table


def read_account_signature(reader: Reader) -> AccountSignature:
    """Read an account authenticator from BCS.

    Raises
    ------
    SchemaError
        If the bytes are not an account authenticator.
    """
    return read_variant(reader, _KINDS, "account authenticator")  # type: ignore[return-value]  # by table


def write_account_signature(writer: Writer, signature: AccountSignature) -> None:
    """Append an account authenticator in BCS.

    Raises
    ------
    InputError
        If the signature does not have a BCS form.
    """
    if not isinstance(signature, UnknownSignature):
        writer.uleb128(_KINDS.index(type(signature)))
    signature.write(writer)


def read_variant(reader: Reader, kinds: Sequence[type[SignatureModel]], what: str) -> SignatureModel:
    """Read an index and the signature of the kind at that index.

    Raises
    ------
    SchemaError
        If the index is unknown, or the bytes are not a signature of that kind.
    """
    start = reader.position
    variant = reader.uleb128()
    if variant >= len(kinds):
        raise SchemaError(f"byte {start}: unknown {what} {variant}")
    try:
        return kinds[variant].read(reader)
    except InputError as error:
        raise SchemaError(f"byte {start}: {error}") from None


def _chunks(data: bytes, size: int, rest: int, what: str) -> list[bytes]:
    """Split `data` into chunks of `size` bytes, but for the last `rest` bytes."""
    if len(data) < rest or (len(data) - rest) % size:
        raise InputError(f"expected a multiple of {size}, and {rest}, bytes of {what}, got {len(data)}")
    return [data[start : start + size] for start in range(0, len(data) - rest, size)]


def _skip_auth_data(reader: Reader) -> tuple[int, int]:
    """Skip abstract authentication data; return the start and the end of the signature in it."""
    variant = reader.uleb128()
    if variant not in (0, 1):
        raise SchemaError(f"unknown abstract authentication data {variant}")
    reader.bytes()  # digest of the signing message
    length = reader.length()
    start = reader.position
    reader.fixed(length)
    end = reader.position
    if variant == 1:
        reader.bytes()  # the public key of a derivable account
    return start, end
