"""Account and transaction signatures: one class per kind. The fields of a class define how it is read and written.

The type of each field has a `FieldCodec` for JSON and BCS, and a signature is its fields in order. A class for which
one of the two forms differs overrides the methods of this form. If the API documentation and nodes differ
(`abstraction_signature`, the `threshold` of a multi-key signature), both forms are accepted, and the form that nodes
return is sent. To add a kind, write its class and add it to the union, whose order is that of the indices in BCS. This
package sends only all-zero signatures.
"""

from __future__ import annotations

import hashlib
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, field_validator, model_validator

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move._bcs import Reader, Writer
from toolkit.wire import _models as models
from toolkit.wire._bcs_forms import ADDRESS, FUNCTION, U8, BcsForm, encoded, read_index, sequence, variants
from toolkit.wire._models import AddressText, FunctionText, HexText, WireModel, function_id, parse_by_type, unhex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from toolkit.wire._models import JsonObject

    _Skip = Callable[[Reader], object]  # moves the reader past a value

PublicKeyType = Literal[
    "ed25519", "secp256k1_ecdsa", "secp256r1_ecdsa", "keyless", "federated_keyless", "slh_dsa__sha2_128s"
]
SignatureType = Literal["ed25519", "secp256k1_ecdsa", "web_authn", "keyless", "slh_dsa__sha2_128s"]

ED25519_KEY_BYTES = 32
ED25519_SIGNATURE_BYTES = 64
MAX_KEYS = 32  # of one account; the limit of the network
_BITMAP_BYTES = 4  # of a multi-ed25519 signature: one bit for each of `MAX_KEYS`
_MAX_BYTES = 16_384  # of keys and signatures of variable length; the node's own limits are lower
_ZERO_ED25519 = "0x" + bytes(ED25519_SIGNATURE_BYTES).hex()


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
_ZERO_KEYLESS = bytes(2 + 128 + 8 + 3) + bytes(1 + 8) + b"\x00\x20" + bytes(32) + b"\x00\x40" + bytes(64)
_ZEROS = {"web_authn": _ZERO_WEB_AUTHN, "keyless": _ZERO_KEYLESS}

# Signature types whose names differ from the types of their keys.
_SIGNATURE_OF_KEY = {"secp256r1_ecdsa": "web_authn", "federated_keyless": "keyless"}


class _Typed(WireModel):
    """Base class of public keys and signatures, which are bytes with a type."""

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
        """Create the key or signature from its JSON form.

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
            If the length does not match the type.
        """
        kind = list(cls._kinds)[read_index(reader, len(cls._kinds), cls._what)]
        skip = cls._kinds[kind]
        if isinstance(skip, int):
            data = reader.bytes()
        else:
            start = reader.position
            skip(reader)
            data = reader.data[start : reader.position]
        return cls(value=f"0x{data.hex()}", type=kind)

    def write(self, writer: Writer) -> None:
        """Write the key or signature as BCS."""
        writer.uleb128(list(self._kinds).index(self.type))
        if isinstance(self._kinds[self.type], int):
            writer.bytes(unhex(self.value))
        else:  # a structure, which has no length of its own
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
        If the type is unknown, or `value` does not have the length or (for keyless) the structure that it requires.

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
        if not isinstance(skip, int):
            reader = Reader(unhex(self.value))
            try:
                skip(reader)
                reader.end()
            except SchemaError as error:
                got = shorten(self.value)
                raise InputError(f"expected the BCS of a {self.type} public key, got {got}: {error}") from error
        return self

    def zero_signature(self) -> Signature:
        """Return an all-zero signature of the type and length that this key verifies."""
        return Signature.zero(_SIGNATURE_OF_KEY.get(self.type, self.type))


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
        If the type is unknown, or `value` does not have the length that it requires.

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
        # The API documentation lists the key types for signatures too; nodes return one name for each.
        return _SIGNATURE_OF_KEY.get(str(value), value)

    @classmethod
    def zero(cls, kind: str) -> Signature:
        """Return an all-zero signature of the given type."""
        size = cls._kinds[kind]
        data = bytes(size) if isinstance(size, int) else _ZEROS[kind]
        return cls(f"0x{data.hex()}", type=kind)  # type: ignore[arg-type]  # checked by the model

    @property
    def is_zero(self) -> bool:
        """Whether the signature is the all-zero signature of its type."""
        data = unhex(self.value)
        return not any(data) or data == _ZEROS.get(self.type)


def check_length(hex_text: str, expected: int | None, what: str) -> str:
    """Return `hex_text` if it encodes `expected` bytes; None allows any length from one byte up to a limit.

    Raises
    ------
    InputError
        If the length is not allowed.
    """
    length = len(hex_text) // 2 - 1
    if expected is None and not 0 < length <= _MAX_BYTES:
        raise InputError(f"expected 1 to {_MAX_BYTES:,} bytes of {what}, got {length:,}")
    if expected is not None and length != expected:
        raise InputError(f"expected {expected} bytes of {what}, got {length}: {shorten(hex_text)}")
    return hex_text


def _same(value: Any) -> Any:
    return value


class FieldCodec(NamedTuple):
    """How a field is read and written, in BCS and in JSON, and how signatures in it are replaced by zeros."""

    bcs: BcsForm
    parse: Callable[[Any], Any] = _same
    to_wire: Callable[[Any], Any] = _same
    zero: Callable[[Any], Any] | None = None

    def many(self) -> FieldCodec:
        """Return the codec of a list of these values."""
        zero = self.zero
        return FieldCodec(
            bcs=sequence(self.bcs),
            parse=lambda items: [self.parse(item) for item in items],
            to_wire=lambda items: [self.to_wire(item) for item in items],
            zero=None if zero is None else lambda items: [zero(item) for item in items],
        )


def _typed_key(value: Any) -> Any:
    return PublicKey(value) if isinstance(value, str | bytes) else value  # type: ignore[arg-type]  # bytes become hex


_check_ed25519_key = partial(check_length, expected=ED25519_KEY_BYTES, what="an ed25519 public key")
_check_ed25519_signature = partial(check_length, expected=ED25519_SIGNATURE_BYTES, what="an ed25519 signature")
_check_bitmap = partial(check_length, expected=_BITMAP_BYTES, what="the bitmap of a multi-ed25519 signature")
_HEX = FieldCodec(BcsForm(Reader.bytes, lambda writer, text: writer.bytes(unhex(text))))
_KEY = FieldCodec(
    BcsForm(PublicKey.read, lambda writer, key: key.write(writer)), PublicKey.from_wire, PublicKey.to_wire
)
_SIGNATURE = FieldCodec(
    BcsForm(Signature.read, lambda writer, one: one.write(writer)),
    Signature.from_wire,
    Signature.to_wire,
    lambda one: Signature.zero(one.type),
)
# Types of fields with their codecs.
_Hex = Annotated[HexText, _HEX]
_U8 = Annotated[StrictInt, FieldCodec(U8)]
_Address = Annotated[AddressText, FieldCodec(ADDRESS)]
_Ed25519KeyBytes = Annotated[HexText, AfterValidator(_check_ed25519_key), _HEX]
_Ed25519Bytes = Annotated[
    HexText, AfterValidator(_check_ed25519_signature), _HEX._replace(zero=lambda _: _ZERO_ED25519)
]
_TypedKey = Annotated[PublicKey, BeforeValidator(_typed_key), _KEY]
_TypedSignature = Annotated[Signature, _SIGNATURE]


class SignatureModel(WireModel):
    """Base class of account and transaction signatures."""

    # The last byte of what an authentication key is the hash of; empty if the kind does not have one.
    _scheme: ClassVar[bytes] = b""

    @classmethod
    @cache
    def _codecs(cls) -> dict[str, FieldCodec]:
        """Return the codecs of the fields, in BCS order. The names of the fields are those of the REST API."""
        found = {}
        for name, field in cls.model_fields.items():
            is_list = get_origin(field.annotation) is tuple
            # Pydantic moves the metadata of a field to `field.metadata`; that of a list's items stays at their type.
            marks = get_args(field.annotation)[0].__metadata__ if is_list else field.metadata
            for mark in marks:
                if isinstance(mark, FieldCodec):
                    found[name] = mark.many() if is_list else mark
        return found

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Self | UnknownSignature:
        """Create the signature from its JSON form.

        Raises
        ------
        InputError, KeyError, TypeError, AttributeError
            If the object does not have the documented shape.
        """
        return cls(**{name: codec.parse(content[name]) for name, codec in cls._codecs().items()})

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        own = {name: codec.to_wire(getattr(self, name)) for name, codec in self._codecs().items()}
        return {"type": getattr(self, "type", None)} | own

    @classmethod
    def read(cls, reader: Reader) -> SignatureModel:
        """Read the signature from BCS, starting after the variant index.

        Raises
        ------
        SchemaError, InputError
            If the bytes are not a signature of this kind.
        """
        return cls(**{name: codec.bcs.read(reader) for name, codec in cls._codecs().items()})

    def write(self, writer: Writer) -> None:
        """Write the signature as BCS, without the variant index.

        Raises
        ------
        InputError
            If the signature does not have a BCS form.
        """
        for name, codec in self._codecs().items():
            codec.bcs.write(writer, getattr(self, name))

    def zero_padded(self) -> Self:
        """Return a copy in which every signature is replaced by an all-zero one of the same type.

        Raises
        ------
        InputError
            If the kind is unknown.
        """
        zeros = {name: codec.zero for name, codec in self._codecs().items() if codec.zero is not None}
        return self.replace(**{name: zero(getattr(self, name)) for name, zero in zeros.items()})

    def authentication_key(self) -> bytes | None:
        """Return the 32-byte authentication key derived from the public keys, or None if it cannot be derived."""
        return hashlib.sha3_256(self._key_bytes() + self._scheme).digest() if self._scheme else None

    def _key_bytes(self) -> bytes:
        return b""

    @property
    def has_json_form(self) -> bool:
        """Whether nodes accept the signature as JSON; as BCS, they accept every signature."""
        return all(part.has_json_form for part in self.parts())

    def parts(self) -> Iterator[SignatureModel]:
        """Yield the account signatures that this signature contains."""
        for name in self._codecs():
            value = getattr(self, name)
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, SignatureModel):
                    yield one


def _form(kind: type[SignatureModel]) -> BcsForm:
    def read(reader: Reader) -> SignatureModel:
        start = reader.position - 1  # of the index of the kind
        try:
            return kind.read(reader)
        except InputError as error:
            raise SchemaError(f"byte {start}: {error}") from None

    return BcsForm(read, lambda writer, signature: signature.write(writer), kind)


class NoAccountSignature(SignatureModel):
    """An absent signature, for simulating a transaction without a key.

    Examples
    --------
    >>> from toolkit.wire import NoAccountSignature
    >>> NoAccountSignature().to_wire()
    {'type': 'no_account_signature'}
    """

    type: ClassVar[str] = "no_account_signature"


class Ed25519Signature(SignatureModel):
    """An ed25519 key and its signature.

    Parameters
    ----------
    public_key : str or bytes
        The key: 32 bytes, as hex or bytes.
    signature : str or bytes, default zeros
        The signature: 64 bytes, as hex or bytes.

    Raises
    ------
    InputError
        If the key or the signature has the wrong length.

    Examples
    --------
    >>> Ed25519Signature(bytes(32)).authentication_key().hex()[:8]
    'dc33296e'
    """

    type: ClassVar[str] = "ed25519_signature"
    _scheme = b"\0"

    public_key: _Ed25519KeyBytes
    signature: _Ed25519Bytes = _ZERO_ED25519

    def _key_bytes(self) -> bytes:
        return unhex(self.public_key)


class MultiEd25519Signature(SignatureModel):
    """Several ed25519 keys, `threshold` of which must sign.

    Parameters
    ----------
    public_keys : sequence of str or bytes
        1 to 32 keys of 32 bytes each.
    threshold : int
        Number of signatures required.
    signatures : sequence of str or bytes, optional
        Signatures of 64 bytes each, in the order of the bits set in `bitmap`; by default, zeros for every key. In JSON,
        nodes require one signature for every key.
    bitmap : str or bytes, optional
        4 bytes; bit i, counted from the most significant bit of byte 0, is set if key i signed. By default, the bits of
        the first ``len(signatures)`` keys are set.

    Raises
    ------
    InputError
        If a key or signature has the wrong length, there are not 1 to 32 keys, `threshold` is not between 1 and the
        number of keys, or there are more signatures than keys.

    Examples
    --------
    >>> from toolkit.wire import MultiEd25519Signature
    >>> signature = MultiEd25519Signature([bytes(32), bytes(32)], threshold=1)
    >>> len(signature.signatures), signature.bitmap
    (2, '0xc0000000')
    """

    type: ClassVar[str] = "multi_ed25519_signature"
    _scheme = b"\1"

    public_keys: tuple[_Ed25519KeyBytes, ...]
    threshold: _U8
    signatures: tuple[_Ed25519Bytes, ...] = Field(
        default_factory=lambda fields: (_ZERO_ED25519,) * len(fields.get("public_keys", ()))
    )
    bitmap: Annotated[HexText, AfterValidator(_check_bitmap), _HEX] = Field(
        default_factory=lambda fields: _first_bits(len(fields.get("signatures", ())))
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        keys, signatures = len(self.public_keys), len(self.signatures)
        _check_counts(keys, self.threshold, "threshold")
        if signatures > keys:
            raise InputError(f"expected at most one signature per key ({keys}), got {signatures}")
        return self

    @classmethod
    def read(cls, reader: Reader) -> MultiEd25519Signature:
        keys, signatures = reader.bytes(), reader.bytes()
        return cls(
            _chunks(keys, ED25519_KEY_BYTES, 1, "a multi-ed25519 key"),
            threshold=keys[-1],
            signatures=_chunks(signatures, ED25519_SIGNATURE_BYTES, _BITMAP_BYTES, "a multi-ed25519 signature"),
            bitmap="0x" + signatures[-_BITMAP_BYTES:].hex(),
        )

    def write(self, writer: Writer) -> None:
        writer.bytes(self._key_bytes())
        writer.bytes(b"".join(map(unhex, (*self.signatures, self.bitmap))))

    def _key_bytes(self) -> bytes:
        return b"".join(map(unhex, self.public_keys)) + bytes([self.threshold])

    @property
    def has_json_form(self) -> bool:
        """Whether nodes accept the signature as JSON, which requires one signature for every key."""
        return len(self.signatures) == len(self.public_keys)


class AbstractSignature(SignatureModel):
    """A signature that a Move function checks.

    Parameters
    ----------
    function_info : str or None
        Function that authenticates the account, ``address::module::function``; None if a response does not contain it.
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

    function_info: Annotated[
        FunctionText | None, FieldCodec(BcsForm(Reader.string, Writer.string))
    ]  # `read` and `write` differ
    auth_data: _Hex

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Self:
        # The API documentation has one hex field, without its name.
        auth_data = content["auth_data"] if "auth_data" in content else content["signature"]
        return cls(content.get("function_info"), auth_data=auth_data)

    @classmethod
    def read(cls, reader: Reader) -> AbstractSignature:
        function = FUNCTION.read(reader)
        start = reader.position
        _skip_auth_data(reader)
        return cls(function, auth_data="0x" + reader.data[start : reader.position].hex())

    def write(self, writer: Writer) -> None:
        if self.function_info is None:
            raise InputError("an abstract signature without `function_info` has no BCS form")
        FUNCTION.write(writer, function_id(self.function_info))
        writer.fixed(unhex(self.auth_data))

    def zero_padded(self) -> Self:
        data = unhex(self.auth_data)
        if not any(data):  # nobody signed, and zeros need not be valid BCS of authentication data
            return self
        reader = Reader(data)
        try:
            start, end = _skip_auth_data(reader)
            reader.end()
        except SchemaError as error:
            raise InputError(f"the authentication data of an abstract signature is not valid BCS: {error}") from None
        return self.replace(auth_data=data[:start] + bytes(end - start) + data[end:])


class SingleKeySignature(SignatureModel):
    """A typed key and its typed signature.

    Parameters
    ----------
    public_key : PublicKey or str
        The key; a string is an ed25519 key.
    signature : Signature, optional
        By default, an all-zero signature of the type that the key verifies.

    Raises
    ------
    InputError
        If the key or the signature is not valid.

    Examples
    --------
    >>> from toolkit.wire import PublicKey, SingleKeySignature
    >>> signature = SingleKeySignature(PublicKey(bytes(32)))
    >>> signature.signature.type, signature.signature.is_zero
    ('ed25519', True)
    """

    type: ClassVar[str] = "single_key_signature"
    _scheme = b"\2"

    public_key: _TypedKey
    signature: _TypedSignature = Field(default_factory=lambda fields: _zero_for(fields.get("public_key")))

    def _key_bytes(self) -> bytes:
        return encoded(_KEY.bcs, self.public_key)

    @property
    def has_json_form(self) -> bool:
        """Whether nodes accept the signature as JSON. They misread a federated keyless key as a plain keyless key."""
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
        If `index` is not an int, or `signature` is not a `Signature`.

    Examples
    --------
    >>> from toolkit.wire import IndexedSignature, Signature
    >>> IndexedSignature(1, signature=Signature(bytes(64))).index
    1
    """

    index: StrictInt
    signature: Signature

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"index": self.index, "signature": self.signature.to_wire()}


def _zero_for(key: PublicKey | None) -> Signature:
    """Return an all-zero signature for a key, which is None if it was invalid (the error is reported separately)."""
    return Signature.zero("ed25519") if key is None else key.zero_signature()


def _zero_signatures(fields: Mapping[str, Any]) -> list[IndexedSignature]:
    """Return an all-zero signature for each of the first `signatures_required` keys."""
    signing = fields.get("public_keys", ())[: max(fields.get("signatures_required", 0), 0)]
    return [IndexedSignature(index, signature=key.zero_signature()) for index, key in enumerate(signing)]


_KEYS = sequence(_KEY.bcs)
_SIGNATURES = sequence(_SIGNATURE.bcs)
_Indexed = Annotated[
    IndexedSignature, FieldCodec(_SIGNATURE.bcs, to_wire=IndexedSignature.to_wire)
]  # `from_wire`, `read` and `write` differ


class MultiKeySignature(SignatureModel):
    """Several typed keys, `signatures_required` of which must sign.

    Parameters
    ----------
    public_keys : sequence of PublicKey or str
        1 to 32 keys; a string is an ed25519 key.
    signatures_required : int
        Number of signatures required (`threshold` in the API documentation).
    signatures : sequence of IndexedSignature, optional
        By default, zeros for the first `signatures_required` keys.
    bitmap : str or bytes, optional
        The bitmap of the BCS form, needed only if it is longer than the number of keys requires. By default, it is
        derived from the indices.

    Raises
    ------
    InputError
        If there are not 1 to 32 keys, `signatures_required` is not between 1 and the number of keys, or the indices of
        the signatures are not strictly increasing positions of keys.

    Examples
    --------
    >>> from toolkit.wire import MultiKeySignature, PublicKey
    >>> signature = MultiKeySignature([PublicKey(bytes(32)), PublicKey(bytes(32))], signatures_required=1)
    >>> [one.index for one in signature.signatures]
    [0]
    """

    type: ClassVar[str] = "multi_key_signature"
    _scheme = b"\3"

    public_keys: tuple[_TypedKey, ...]
    signatures_required: _U8
    signatures: tuple[_Indexed, ...] = Field(default_factory=lambda fields: tuple(_zero_signatures(fields)))
    bitmap: HexText | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        count = len(self.public_keys)
        _check_counts(count, self.signatures_required, "signatures_required")
        indices = [signature.index for signature in self.signatures]
        if indices != sorted(set(indices)) or (indices and not 0 <= indices[0] <= indices[-1] < count):
            raise InputError(f"expected strictly increasing signature indices below {count}, got {indices[:MAX_KEYS]}")
        return self

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Self:
        # Nodes print signatures_required and indexed signatures; the API documentation has threshold and a plain list.
        required = content["signatures_required"] if "signatures_required" in content else content["threshold"]
        signatures = [
            IndexedSignature(one.get("index", place), signature=Signature.from_wire(one.get("signature", one)))
            for place, one in enumerate(content["signatures"])
        ]
        keys = _KEY.many().parse(content["public_keys"])
        return cls(keys, signatures_required=required, signatures=tuple(signatures))

    @classmethod
    def read(cls, reader: Reader) -> MultiKeySignature:
        keys, required = _KEYS.read(reader), reader.u8()
        signatures, bitmap = _SIGNATURES.read(reader), reader.bytes()
        indices = [index for index in range(8 * len(bitmap)) if bitmap[index // 8] & 0x80 >> index % 8]
        if len(indices) != len(signatures):
            raise InputError(f"expected one signature per set bit of `bitmap` ({len(indices)}), got {len(signatures)}")
        entries = tuple(IndexedSignature(index, signature=one) for index, one in zip(indices, signatures, strict=True))
        stored_bitmap = None if len(bitmap) == _bitmap_length(len(keys)) else "0x" + bitmap.hex()
        return cls(keys, signatures_required=required, signatures=entries, bitmap=stored_bitmap)

    def write(self, writer: Writer) -> None:
        writer.fixed(self._key_bytes())
        _SIGNATURES.write(writer, [entry.signature for entry in self.signatures])
        if self.bitmap is None:
            indices = [entry.index for entry in self.signatures]
            writer.bytes(bitmap_of(indices, length=_bitmap_length(len(self.public_keys))))
        else:
            writer.bytes(unhex(self.bitmap))

    def zero_padded(self) -> Self:
        zeros = [entry.replace(signature=Signature.zero(entry.signature.type)) for entry in self.signatures]
        return self.replace(signatures=zeros)

    def _key_bytes(self) -> bytes:
        return encoded(_KEYS, self.public_keys) + bytes([self.signatures_required])


class UnknownSignature(models.UnknownModel, SignatureModel):
    """A signature of an unknown kind, stored as JSON.

    Parameters
    ----------
    content : dict
        The JSON object.

    Examples
    --------
    >>> from toolkit.wire._signatures import UnknownSignature, parse_account_signature
    >>> signature = parse_account_signature({"type": "a_future_signature"})
    >>> isinstance(signature, UnknownSignature), signature.type
    (True, 'a_future_signature')
    """

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
_ACCOUNT_KINDS: tuple[type[SignatureModel], ...] = get_args(AccountSignature)[:-1]
_ACCOUNT_READERS = {kind.type: kind.from_wire for kind in _ACCOUNT_KINDS}  # type: ignore[attr-defined]  # each has a type
_ACCOUNT_READERS["abstraction_signature"] = AbstractSignature.from_wire
ACCOUNT_SIGNATURE = variants("account authenticator", *map(_form, _ACCOUNT_KINDS))


def parse_account_signature(json: JsonObject) -> AccountSignature:
    """Decode an account signature, as contained in a transaction signature.

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


_ACCOUNT = FieldCodec(
    ACCOUNT_SIGNATURE, parse_account_signature, lambda signer: signer.to_wire(), lambda signer: signer.zero_padded()
)
_Account = Annotated[AccountSignature, _ACCOUNT]


class _SeveralSigners(SignatureModel):
    """Base class of the signatures of a sender and secondary signers."""

    sender: _Account
    secondary_signer_addresses: tuple[_Address, ...] = ()
    secondary_signers: tuple[_Account, ...] = ()

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        addresses, signers = len(self.secondary_signer_addresses), len(self.secondary_signers)
        if signers != addresses:
            raise InputError(f"expected one secondary signer per address ({addresses}), got {signers}")
        return self


class MultiAgentSignature(_SeveralSigners):
    """Signatures of the sender and the secondary signers.

    Parameters
    ----------
    sender : AccountSignature
        Signature of the sender.
    secondary_signer_addresses : sequence of str
        Addresses of the secondary signers.
    secondary_signers : sequence of AccountSignature
        Signatures of the secondary signers, in the same order.

    Raises
    ------
    InputError
        If no secondary signer is given, or there is not exactly one signature per address.

    Examples
    --------
    >>> from toolkit.wire import MultiAgentSignature, NoAccountSignature
    >>> nobody = NoAccountSignature()
    >>> signature = MultiAgentSignature(
    ...     nobody, secondary_signer_addresses=["0xb0b"], secondary_signers=[nobody]
    ... )
    >>> signature.secondary_signer_addresses
    ('0x0000000000000000000000000000000000000000000000000000000000000b0b',)
    """

    type: ClassVar[str] = "multi_agent_signature"

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if not self.secondary_signers:
            raise InputError("expected at least one secondary signer in a multi-agent signature")
        return self


class FeePayerSignature(_SeveralSigners):
    """Signatures of the sender, the secondary signers and the fee payer.

    Parameters
    ----------
    sender : AccountSignature
        Signature of the sender.
    fee_payer_address : str
        Address of the fee payer; ``0x0`` charges nobody.
    fee_payer_signer : AccountSignature
        Signature of the fee payer.
    secondary_signer_addresses : sequence of str, default ()
        Addresses of the secondary signers.
    secondary_signers : sequence of AccountSignature, default ()
        Signatures of the secondary signers, in the same order.

    Raises
    ------
    InputError
        If an address is not valid, or there is not exactly one signature per secondary signer.

    Examples
    --------
    >>> from toolkit.wire import FeePayerSignature, NoAccountSignature
    >>> nobody = NoAccountSignature()
    >>> FeePayerSignature(nobody, fee_payer_address="0xb0b", fee_payer_signer=nobody).fee_payer_address
    '0x0000000000000000000000000000000000000000000000000000000000000b0b'
    """

    type: ClassVar[str] = "fee_payer_signature"

    fee_payer_address: _Address  # type: ignore[misc]  # in the order of BCS
    fee_payer_signer: _Account  # type: ignore[misc]


class SingleSenderSignature(SignatureModel):
    """A transaction signature that consists of one account signature. Nodes print it in JSON but accept it only in BCS.

    Parameters
    ----------
    sender : AccountSignature
        Signature of the account.

    Raises
    ------
    InputError
        If `sender` is not an account signature.

    Examples
    --------
    >>> from toolkit.wire import NoAccountSignature, SingleSenderSignature
    >>> SingleSenderSignature(NoAccountSignature()).to_wire()["type"]
    'single_sender'
    """

    type: ClassVar[str] = "single_sender"

    sender: _Account

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> SingleSenderSignature | UnknownSignature:
        """Create the signature from its JSON form.

        Nodes merge the account signature into the object and set ``type`` to the type of the transaction signature. The
        kind of account signature is therefore recognized by its fields.
        """
        if isinstance(content.get("sender"), dict):
            return cls(parse_account_signature(content["sender"]))
        if set(content) == {"type"}:
            return cls(NoAccountSignature())
        kind: type[SignatureModel]
        if "auth_data" in content:
            kind = AbstractSignature
        elif "public_keys" in content:
            kind = MultiEd25519Signature if "bitmap" in content else MultiKeySignature
        elif "public_key" in content:
            kind = Ed25519Signature if isinstance(content["public_key"], str) else SingleKeySignature
        else:
            return UnknownSignature(dict(content))
        return cls(kind.from_wire(content))

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form returned by nodes: the fields of the account signature with the outer type."""
        return self.sender.to_wire() | {"type": self.type}

    def authentication_key(self) -> bytes | None:
        return self.sender.authentication_key()

    @property
    def has_json_form(self) -> bool:
        """Whether nodes accept the signature as JSON; always False."""
        return False


TransactionSignature = (
    Ed25519Signature
    | MultiEd25519Signature
    | MultiAgentSignature
    | FeePayerSignature
    | SingleSenderSignature
    | NoAccountSignature
    | UnknownSignature
)

# In the order of their indices in BCS, in which an absent signature is of a single sender, and an unknown one has none.
_KINDS: tuple[type[SignatureModel], ...] = get_args(TransactionSignature)[:-2]
_READERS = {kind.type: kind.from_wire for kind in (*_KINDS, NoAccountSignature)}  # type: ignore[attr-defined]  # each has a type
_KNOWN_SIGNATURE = variants("transaction authenticator", *map(_form, _KINDS))
_S = TypeVar("_S", bound=SignatureModel)


def _write_signature(writer: Writer, signature: TransactionSignature) -> None:
    if isinstance(signature, NoAccountSignature | UnknownSignature):
        signature = SingleSenderSignature(signature)  # in BCS, an absent signature is a single-sender signature
    _KNOWN_SIGNATURE.write(writer, signature)


SIGNATURE = BcsForm(_KNOWN_SIGNATURE.read, _write_signature)


def parse_signature(json: JsonObject) -> TransactionSignature:
    """Decode the signature of a transaction.

    Parameters
    ----------
    json : mapping, bytes or msgspec.Raw
        The JSON object, parsed or not.

    Returns
    -------
    TransactionSignature
        An `UnknownSignature` with the JSON if the ``type`` is unknown.

    Raises
    ------
    SchemaError
        If the JSON is not an object, or does not have the documented shape of its type.

    Examples
    --------
    >>> parse_signature(b'{"type": "no_account_signature"}')
    NoAccountSignature()
    """
    return parse_by_type(json, _READERS, UnknownSignature, "signature")  # type: ignore[no-any-return]  # by table


def zero_padded(signature: _S) -> _S:
    """Return a copy of a signature with the same kind, keys and addresses, but with all-zero signatures.

    Parameters
    ----------
    signature : TransactionSignature or AccountSignature
        Any signature.

    Returns
    -------
    signature of the same class

    Raises
    ------
    InputError
        If the kind is unknown, or the authentication data of an abstract signature is not valid BCS.

    Examples
    --------
    >>> from toolkit.wire import Ed25519Signature
    >>> real = Ed25519Signature(bytes(32), signature=b"s" * 64)
    >>> is_zero_padded(real), is_zero_padded(zero_padded(real))
    (False, True)
    """
    return signature.zero_padded()


def is_zero_padded(signature: SignatureModel) -> bool:
    """Return whether every signature in a transaction or account signature is all zeros or absent.

    Parameters
    ----------
    signature : TransactionSignature or AccountSignature
        Any signature; the result is False if its kind is unknown.

    Returns
    -------
    bool

    Examples
    --------
    >>> from toolkit.wire import Ed25519Signature
    >>> from toolkit.wire._signatures import is_zero_padded
    >>> key = bytes(32)
    >>> is_zero_padded(Ed25519Signature(key)), is_zero_padded(Ed25519Signature(key, signature=bytes([1]) * 64))
    (True, False)
    """
    try:
        return signature.zero_padded() == signature
    except InputError:
        return False


def _check_counts(keys: int, required: int, name: str) -> None:
    if not 1 <= keys <= MAX_KEYS:
        raise InputError(f"expected 1 to {MAX_KEYS} public keys, got {keys}")
    if not 1 <= required <= keys:
        raise InputError(f"{name}: expected 1 to {keys}, the number of public keys, got {required}")


def bitmap_of(indices: Sequence[int], *, length: int) -> bytes:
    """Return `length` bytes with bit i set for each index, counted from the most significant bit of byte 0."""
    bits = bytearray(length)
    for index in indices:
        bits[index // 8] |= 0x80 >> index % 8
    return bytes(bits)


def _first_bits(count: int) -> str:
    return "0x" + bitmap_of(range(min(count, MAX_KEYS)), length=_BITMAP_BYTES).hex()


def _chunks(data: bytes, size: int, rest: int, what: str) -> tuple[str, ...]:
    """Split `data`, except for its last `rest` bytes, into chunks of `size` bytes, as hex."""
    if len(data) < rest or (len(data) - rest) % size:
        raise InputError(f"expected {what} of n * {size} + {rest} bytes, got length {len(data)}")
    return tuple("0x" + data[start : start + size].hex() for start in range(0, len(data) - rest, size))


def _skip_auth_data(reader: Reader) -> tuple[int, int]:
    """Skip abstract authentication data; return the start and end of the signature that it contains."""
    if (variant := reader.uleb128()) not in (0, 1):
        raise SchemaError(f"expected variant 0 or 1 of abstract authentication data, got {variant}")
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
