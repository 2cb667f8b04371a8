"""Signatures of one account: one class per kind, with a table of its fields in JSON and in BCS.

A kind that is its fields has only the table `_fields`; the others say what differs. If the API documentation and nodes
differ (`abstraction_signature`, the `threshold` of a multi-key signature), both forms are read and the form of the
nodes is sent. To add a kind, write its class and add it to the union and to the table of indices below it.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import BeforeValidator, StrictInt, model_validator

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move._bcs import Reader, Writer
from toolkit.wire._bcs_forms import U8, Form, encoded, sequence, variants
from toolkit.wire._keys import ED25519_KEY_BYTES, ED25519_SIGNATURE_BYTES, PublicKey, Signature, check_length
from toolkit.wire._models import FunctionText, HexText, WireModel, parse_by_type, unhex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from toolkit.wire._models import JsonObject


MAX_KEYS = 32  # of one account; the limit of the network
_MULTI_ED25519_BITMAP_BYTES = 4
_ZERO_ED25519 = bytes(ED25519_SIGNATURE_BYTES)
_ZERO_ED25519_HEX = "0x" + _ZERO_ED25519.hex()


class AuthenticationScheme(IntEnum):
    """Byte of the scheme in an authentication key."""

    ED25519 = 0
    MULTI_ED25519 = 1
    SINGLE_KEY = 2
    MULTI_KEY = 3


def _same(value: Any) -> Any:
    return value


class Field(NamedTuple):
    """How a field is read and written, in BCS and in JSON, and for a signature, how it is replaced by zeros."""

    bcs: Form
    parse: Callable[[Any], Any] = _same
    to_wire: Callable[[Any], Any] = _same
    zero: Callable[[Any], Any] | None = None

    def many(self) -> Field:
        """Return the field of a list of such values."""
        zero = self.zero
        return Field(
            sequence(self.bcs),
            lambda items: [self.parse(item) for item in items],
            lambda items: [self.to_wire(item) for item in items],
            None if zero is None else lambda items: [zero(item) for item in items],
        )


_HEX = Field(Form(Reader.bytes, lambda writer, text: writer.bytes(unhex(text))))
_ED25519 = _HEX._replace(zero=lambda _: _ZERO_ED25519_HEX)
_NUMBER = Field(U8)
_KEY = Field(
    Form(PublicKey.read, lambda writer, key: key.write(writer)), PublicKey.from_wire, lambda key: key.to_wire()
)
_SIGNATURE = Field(
    Form(Signature.read, lambda writer, one: one.write(writer)),
    Signature.from_wire,
    lambda one: one.to_wire(),
    lambda one: Signature.zero(one.type),
)


class SignatureModel(WireModel):
    """Base of account and transaction signatures."""

    # In the order of BCS; the names are those of the REST API.
    _fields: ClassVar[Mapping[str, Field]] = {}

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Self | UnknownSignature:
        """Return the signature of a JSON object.

        Raises
        ------
        InputError, KeyError, TypeError, AttributeError
            If the object does not have the documented shape.
        """
        return cls(**{name: field.parse(content[name]) for name, field in cls._fields.items()})

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        own = {name: field.to_wire(getattr(self, name)) for name, field in self._fields.items()}
        return {"type": getattr(self, "type", None)} | own

    @classmethod
    def read(cls, reader: Reader) -> SignatureModel:
        """Read the signature from BCS, without the index of its kind.

        Raises
        ------
        SchemaError, InputError
            If the bytes are not a signature of this kind.
        """
        return cls(**{name: field.bcs.read(reader) for name, field in cls._fields.items()})

    def write(self, writer: Writer) -> None:
        """Append the signature in BCS, without the index of its kind.

        Raises
        ------
        InputError
            If the signature does not have a BCS form.
        """
        for name, field in self._fields.items():
            field.bcs.write(writer, getattr(self, name))

    def zero_padded(self) -> Self:
        """Return the same signature with zeros of the same length in place of every signature.

        Raises
        ------
        InputError
            If the kind is unknown.
        """
        zeros = {name: field.zero for name, field in self._fields.items() if field.zero is not None}
        return self.replace(**{name: zero(getattr(self, name)) for name, zero in zeros.items()})

    def authentication_key(self) -> bytes | None:
        """Return the authentication key of the public keys, 32 bytes, or None if it cannot be derived."""
        return None

    @property
    def has_json_form(self) -> bool:
        """Whether nodes accept the JSON form; they accept every signature in BCS."""
        return all(part.has_json_form for part in self.parts())

    def parts(self) -> Iterator[SignatureModel]:
        """Yield the signatures of accounts in this one."""
        for name in self._fields:
            value = getattr(self, name)
            yield from (
                one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, SignatureModel)
            )


def signature_form(kind: type[SignatureModel]) -> Form:
    def read(reader: Reader) -> SignatureModel:
        start = reader.position - 1  # of the index of the kind
        try:
            return kind.read(reader)
        except InputError as error:
            raise SchemaError(f"byte {start}: {error}") from None

    return Form(read, lambda writer, signature: signature.write(writer), kind)


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
        self._fill(locals())


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
    _fields = {"public_key": _HEX, "signature": _ED25519}  # noqa: RUF012  # a class variable of the base

    public_key: HexText
    signature: HexText = _ZERO_ED25519_HEX

    def __init__(self, public_key: str | bytes, *, signature: str | bytes = _ZERO_ED25519, **unknown: Any) -> None:
        self._fill(locals())

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_length(self.public_key, ED25519_KEY_BYTES, "an ed25519 public key")
        check_length(self.signature, ED25519_SIGNATURE_BYTES, "an ed25519 signature")
        return self

    def authentication_key(self) -> bytes:
        return _hash_keys(unhex(self.public_key), AuthenticationScheme.ED25519)


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
    _fields = {  # noqa: RUF012  # a class variable of the base
        "public_keys": _HEX.many(),
        "signatures": _ED25519.many(),
        "threshold": _NUMBER,
        "bitmap": _HEX,
    }

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
        self._fill(locals())

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

    def authentication_key(self) -> bytes:
        keys = b"".join(map(unhex, self.public_keys))
        return _hash_keys(keys + bytes([self.threshold]), AuthenticationScheme.MULTI_ED25519)

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
    _fields = {"function_info": _HEX, "auth_data": _HEX}  # noqa: RUF012  # a class variable of the base; BCS is below

    function_info: FunctionText | None
    auth_data: HexText

    def __init__(self, function_info: str | None, *, auth_data: str | bytes, **unknown: Any) -> None:
        self._fill(locals())

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Self:
        # The API documentation has one hex field, without its name.
        auth_data = content["auth_data"] if "auth_data" in content else content["signature"]
        return cls(content.get("function_info"), auth_data=auth_data)

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


def _typed_key(value: Any) -> Any:
    return PublicKey(value) if isinstance(value, str | bytes) else value


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
    _fields = {"public_key": _KEY, "signature": _SIGNATURE}  # noqa: RUF012  # a class variable of the base

    public_key: _TypedKey
    signature: Signature

    def __init__(self, public_key: PublicKey | str, *, signature: Signature | None = None, **unknown: Any) -> None:
        public_key = _typed_key(public_key)
        if signature is None and isinstance(public_key, PublicKey):
            signature = public_key.zero_signature()
        self._fill(locals())

    def implied_fields(self) -> dict[str, Any]:
        """Return the fields that can be omitted, with the values that they then have."""
        return {"signature": self.public_key.zero_signature()}

    def authentication_key(self) -> bytes:
        return _hash_keys(encoded(_KEY.bcs, self.public_key), AuthenticationScheme.SINGLE_KEY)

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
        self._fill(locals())

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
    _fields = {  # noqa: RUF012  # a class variable of the base; BCS is below
        "public_keys": _KEY.many(),
        "signatures": _SIGNATURE.many(),
        "signatures_required": _NUMBER,
    }

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
        public_keys = [_typed_key(key) for key in public_keys]
        if signatures is None:
            signatures = _zero_signatures(public_keys[: max(signatures_required, 0)])
        self._fill(locals())

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
        zeros = _zero_signatures(self.public_keys[: self.signatures_required])
        return {"signatures": tuple(zeros), "bitmap": None}

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Self:
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
        return _hash_keys(writer.getvalue(), AuthenticationScheme.MULTI_KEY)

    def _write_keys(self, writer: Writer) -> None:
        _KEYS.write(writer, self.public_keys)
        writer.u8(self.signatures_required)


_KEYS, _SIGNATURES = _KEY.many().bcs, _SIGNATURE.many().bcs


class UnknownSignature(SignatureModel):
    """A signature of an unknown kind, with its JSON.

    Parameters
    ----------
    content : dict
        The JSON object.

    Examples
    --------
    >>> from toolkit.wire._account_signatures import UnknownSignature, parse_account_signature
    >>> signature = parse_account_signature({"type": "a_future_signature"})
    >>> isinstance(signature, UnknownSignature), signature.type
    (True, 'a_future_signature')
    """

    content: dict[str, Any]

    def __init__(self, content: Mapping[str, Any], **unknown: Any) -> None:
        content = dict(content)
        self._fill(locals())

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
_ACCOUNT_KINDS: tuple[type[SignatureModel], ...] = (
    Ed25519Signature,
    MultiEd25519Signature,
    SingleKeySignature,
    MultiKeySignature,
    NoAccountSignature,
    AbstractSignature,
)
_ACCOUNT_READERS = {kind.type: kind.from_wire for kind in _ACCOUNT_KINDS}  # type: ignore[attr-defined]  # each has a type
_ACCOUNT_READERS["abstraction_signature"] = AbstractSignature.from_wire
_KNOWN_ACCOUNT_SIGNATURE = variants("account authenticator", *map(signature_form, _ACCOUNT_KINDS))


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
    return parse_by_type(json, _ACCOUNT_READERS, UnknownSignature, "account signature")  # type: ignore[no-any-return]  # by table


def _write_account_signature(writer: Writer, signature: AccountSignature) -> None:
    if isinstance(signature, UnknownSignature):
        signature.write(writer)  # raises
    _KNOWN_ACCOUNT_SIGNATURE.write(writer, signature)


ACCOUNT_SIGNATURE = Form(_KNOWN_ACCOUNT_SIGNATURE.read, _write_account_signature)
ACCOUNT = Field(
    ACCOUNT_SIGNATURE, parse_account_signature, lambda signer: signer.to_wire(), lambda signer: signer.zero_padded()
)


def _zero_signatures(keys: Sequence[Any]) -> list[IndexedSignature]:
    """Return a signature of zeros for each key; what is not a key is refused when the model is checked."""
    found = [(index, key) for index, key in enumerate(keys) if isinstance(key, PublicKey)]
    return [IndexedSignature(index, signature=key.zero_signature()) for index, key in found]


def bitmap_of(indices: Sequence[int], *, length: int) -> bytes:
    """Return `length` bytes with bit i set for each index, counted from the most significant bit of byte 0."""
    bits = bytearray(length)
    for index in indices:
        bits[index // 8] |= 0x80 >> index % 8
    return bytes(bits)


def _hash_keys(data: bytes, scheme: AuthenticationScheme) -> bytes:
    """Return the authentication key of the bytes of public keys."""
    return hashlib.sha3_256(data + bytes((scheme,))).digest()


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


def _bitmap_length(keys: int) -> int:
    return (keys + 7) // 8
