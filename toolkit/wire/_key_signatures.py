"""Account signatures of typed keys: one key, or several keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, StrictInt, model_validator

from toolkit.errors import InputError
from toolkit.move import Writer
from toolkit.wire._keys import (
    MAX_KEYS,
    AuthenticationScheme,
    PublicKey,
    Signature,
    SignatureModel,
    bitmap_of,
    hash_keys,
)
from toolkit.wire._models import HexText, WireModel, unhex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.move import Reader


def _typed_key(value: object) -> object:
    return value if isinstance(value, PublicKey) or not isinstance(value, str | bytes) else PublicKey(value)


_TypedKey = Annotated[PublicKey, BeforeValidator(_typed_key)]


class SingleKeySignature(SignatureModel):
    """One typed key and its typed signature.

    Parameters
    ----------
    public_key : PublicKey or str
        The key; a string is an ed25519 key.
    signature : Signature, optional
        By default zeros of the type that the key verifies.

    Raises
    ------
    InputError
        If the key or the signature cannot be used.

    Examples
    --------
    >>> from toolkit.wire import PublicKey, SingleKeySignature
    >>> signature = SingleKeySignature(PublicKey(bytes(32)))
    >>> signature.signature.type, signature.signature.is_zero
    ('ed25519', True)
    """

    type: ClassVar[str] = "single_key_signature"

    public_key: _TypedKey
    signature: Signature

    def __init__(self, public_key: PublicKey | str, *, signature: Signature | None = None, **unknown: Any) -> None:
        key = _typed_key(public_key)
        if signature is None and isinstance(key, PublicKey):
            signature = key.zero_signature()
        self._fill({"public_key": key, "signature": signature} | unknown)

    def implied_fields(self) -> dict[str, Any]:
        """Return the fields that can be omitted, with the values that they then have."""
        return {"signature": self.public_key.zero_signature()}

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> SingleKeySignature:
        key = PublicKey.from_wire(content["public_key"])
        return cls(key, signature=Signature.from_wire(content["signature"]))

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.type, "public_key": self.public_key.to_wire(), "signature": self.signature.to_wire()}

    @classmethod
    def read(cls, reader: Reader) -> SingleKeySignature:
        return cls(PublicKey.read(reader), signature=Signature.read(reader))

    def write(self, writer: Writer) -> None:
        self.public_key.write(writer)
        self.signature.write(writer)

    def zero_padded(self) -> Self:
        return self.replace(signature=Signature.zero(self.signature.type))

    def authentication_key(self) -> bytes:
        writer = Writer()
        self.public_key.write(writer)
        return hash_keys(writer.getvalue(), AuthenticationScheme.SINGLE_KEY)

    @property
    def has_json_form(self) -> bool:
        """Whether nodes accept the JSON form; they read a federated keyless key as a keyless one."""
        return self.public_key.type != "federated_keyless"


class IndexedSignature(WireModel):
    """A signature and the position of its key.

    Parameters
    ----------
    index : int
        Position of the key.
    signature : Signature
        The signature.

    Raises
    ------
    InputError
        If the index is not an int or the signature not a `Signature`.

    Examples
    --------
    >>> from toolkit.wire import IndexedSignature, Signature
    >>> IndexedSignature(1, signature=Signature(bytes(64))).index
    1
    """

    index: StrictInt
    signature: Signature

    def __init__(self, index: int, *, signature: Signature, **unknown: Any) -> None:
        self._fill({"index": index, "signature": signature} | unknown)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"index": self.index, "signature": self.signature.to_wire()}


class MultiKeySignature(SignatureModel):
    """Several typed keys, `signatures_required` of which sign.

    Parameters
    ----------
    public_keys : sequence of PublicKey or str
        1 to 32 keys; a string is an ed25519 key.
    signatures_required : int
        Number of signatures required (`threshold` in the API documentation).
    signatures : sequence of IndexedSignature, optional
        By default zeros for the first `signatures_required` keys.
    bitmap : str or bytes, optional
        The bitmap of the BCS form if it is longer than the number of keys requires; otherwise it follows from the
        indices.

    Raises
    ------
    InputError
        If the numbers of keys and of signatures do not fit, or the indices do not rise.

    Examples
    --------
    >>> from toolkit.wire import MultiKeySignature, PublicKey
    >>> signature = MultiKeySignature([PublicKey(bytes(32)), PublicKey(bytes(32))], signatures_required=1)
    >>> [one.index for one in signature.signatures]
    [0]
    """

    type: ClassVar[str] = "multi_key_signature"

    public_keys: tuple[_TypedKey, ...]
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
        if not 1 <= count <= MAX_KEYS:
            raise InputError(f"expected 1 to {MAX_KEYS} public keys, got {count}")
        if not 1 <= self.signatures_required <= count:
            raise InputError(f"expected 1 to {count} signatures_required, got {self.signatures_required}")
        indices = [signature.index for signature in self.signatures]
        if indices != sorted(set(indices)) or (indices and not 0 <= indices[0] <= indices[-1] < count):
            raise InputError(f"expected rising signature indices below {count}, got {indices[:MAX_KEYS]}")
        return self

    def implied_fields(self) -> dict[str, Any]:
        """Return the fields that can be omitted, with the values that they then have."""
        first = enumerate(self.public_keys[: self.signatures_required])
        zeros = (IndexedSignature(index, signature=key.zero_signature()) for index, key in first)
        return {"signatures": tuple(zeros), "bitmap": None}

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> MultiKeySignature:
        # Nodes print signatures_required and indexed signatures; the API documentation has threshold and a plain list.
        required = content["signatures_required"] if "signatures_required" in content else content["threshold"]
        signatures = [
            IndexedSignature(entry["index"], signature=Signature.from_wire(entry["signature"]))
            if "signature" in entry
            else IndexedSignature(position, signature=Signature.from_wire(entry))
            for position, entry in enumerate(content["signatures"])
        ]
        keys = [PublicKey.from_wire(key) for key in content["public_keys"]]
        return cls(keys, signatures_required=required, signatures=signatures)

    def to_wire(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "public_keys": [key.to_wire() for key in self.public_keys],
            "signatures": [signature.to_wire() for signature in self.signatures],
            "signatures_required": self.signatures_required,
        }

    @classmethod
    def read(cls, reader: Reader) -> MultiKeySignature:
        keys = [PublicKey.read(reader) for _ in range(reader.length())]
        required = reader.u8()
        signatures = [Signature.read(reader) for _ in range(reader.length())]
        bitmap = reader.bytes()
        indices = [index for index in range(8 * len(bitmap)) if bitmap[index // 8] & 0x80 >> index % 8]
        if len(indices) != len(signatures):
            raise InputError(f"expected {len(indices)} signatures, one per bit of the bitmap, got {len(signatures)}")
        entries = [IndexedSignature(index, signature=one) for index, one in zip(indices, signatures, strict=True)]
        usual = len(bitmap) == _bitmap_length(len(keys))
        return cls(keys, signatures_required=required, signatures=entries, bitmap=None if usual else bitmap)

    def write(self, writer: Writer) -> None:
        self._write_keys(writer)
        writer.uleb128(len(self.signatures))
        for entry in self.signatures:
            entry.signature.write(writer)
        if self.bitmap is None:
            indices = [entry.index for entry in self.signatures]
            writer.bytes(bitmap_of(indices, length=_bitmap_length(len(self.public_keys))))
        else:
            writer.bytes(unhex(self.bitmap))

    def zero_padded(self) -> Self:
        zeros = [entry.replace(signature=Signature.zero(entry.signature.type)) for entry in self.signatures]
        return self.replace(signatures=zeros)

    def authentication_key(self) -> bytes:
        writer = Writer()
        self._write_keys(writer)
        return hash_keys(writer.getvalue(), AuthenticationScheme.MULTI_KEY)

    def _write_keys(self, writer: Writer) -> None:
        writer.uleb128(len(self.public_keys))
        for key in self.public_keys:
            key.write(writer)
        writer.u8(self.signatures_required)


def _bitmap_length(keys: int) -> int:
    return (keys + 7) // 8
