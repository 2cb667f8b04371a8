"""Signatures in BCS: account and transaction authenticators, typed keys and signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError, SchemaError
from toolkit.move.bcs import Reader
from toolkit.wire.keys import ED25519_KEY_BYTES, ED25519_SIGNATURE_BYTES, PublicKey, Signature
from toolkit.wire.signatures import (
    AbstractSignature,
    Ed25519Signature,
    FeePayerSignature,
    IndexedSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    NoAccountSignature,
    SingleKeySignature,
    SingleSenderSignature,
    bitmap_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.move.bcs import Writer
    from toolkit.wire.signatures import AccountSignature, TransactionSignature

__all__ = [
    "read_account_signature",
    "read_signature",
    "write_account_signature",
    "write_public_key",
    "write_signature",
]

_KEY_TYPES = (
    "ed25519",
    "secp256k1_ecdsa",
    "secp256r1_ecdsa",
    "keyless",
    "federated_keyless",
    "slh_dsa__sha2_128s",
)
_SIGNATURE_TYPES = ("ed25519", "secp256k1_ecdsa", "web_authn", "keyless", "slh_dsa__sha2_128s")
_MULTI_ED25519_BITMAP_BYTES = 4


def read_signature(reader: Reader) -> TransactionSignature:
    """Read a transaction authenticator.

    Raises
    ------
    SchemaError
        If the bytes are none.
    """
    return _read_variant(reader, _TRANSACTION_READERS, "transaction authenticator")  # type: ignore[no-any-return]  # by table


def read_account_signature(reader: Reader) -> AccountSignature:
    """Read an account authenticator.

    Raises
    ------
    SchemaError
        If the bytes are none.
    """
    return _read_variant(reader, _ACCOUNT_READERS, "account authenticator")  # type: ignore[no-any-return]  # by table


def write_signature(writer: Writer, signature: TransactionSignature) -> None:
    """Append a transaction authenticator; no signature at all is a single sender's.

    Raises
    ------
    InputError
        If the signature is of a kind without a BCS form.
    """
    if isinstance(signature, Ed25519Signature | MultiEd25519Signature):
        write_account_signature(writer, signature)  # the same variants and fields
    elif isinstance(signature, MultiAgentSignature):
        writer.uleb128(2)
        _write_agents(writer, signature)
    elif isinstance(signature, FeePayerSignature):
        writer.uleb128(3)
        _write_agents(writer, signature)
        writer.address(signature.fee_payer_address)
        write_account_signature(writer, signature.fee_payer_signer)
    else:
        writer.uleb128(4)
        sender = signature.sender if isinstance(signature, SingleSenderSignature) else signature
        write_account_signature(writer, sender)


def write_account_signature(writer: Writer, signature: AccountSignature) -> None:
    """Append an account authenticator.

    Raises
    ------
    InputError
        If the signature is of a kind without a BCS form.
    """
    entry = _ACCOUNT_WRITERS.get(type(signature))
    if entry is None:
        raise InputError(f"a signature of type {signature.type!r} has no BCS form")
    variant, write = entry
    writer.uleb128(variant)
    write(writer, signature)


def _read_variant(reader: Reader, readers: tuple[Callable[[Reader], Any], ...], what: str) -> Any:
    start = reader.position
    variant = reader.uleb128()
    if variant >= len(readers):
        raise SchemaError(f"byte {start}: unknown {what} {variant}")
    try:
        return readers[variant](reader)
    except InputError as error:
        raise SchemaError(f"byte {start}: {error}") from error


def _data(hex_text: str) -> bytes:
    return bytes.fromhex(hex_text[2:])


def _read_ed25519(reader: Reader) -> Ed25519Signature:
    return Ed25519Signature(reader.bytes(), signature=reader.bytes())


def _write_ed25519(writer: Writer, signature: Ed25519Signature) -> None:
    writer.bytes(_data(signature.public_key))
    writer.bytes(_data(signature.signature))


def _chunks(data: bytes, size: int, rest: int, what: str) -> list[bytes]:
    """Split n chunks of `size` bytes off `data`, which ends with `rest` bytes of something else."""
    if len(data) < rest or (len(data) - rest) % size:
        raise InputError(f"{what} of {len(data)} bytes; expected a multiple of {size}, and {rest}")
    return [data[start : start + size] for start in range(0, len(data) - rest, size)]


def _read_multi_ed25519(reader: Reader) -> MultiEd25519Signature:
    keys, signatures = reader.bytes(), reader.bytes()
    key_list = _chunks(keys, ED25519_KEY_BYTES, 1, "a multi-ed25519 key")
    rest = _MULTI_ED25519_BITMAP_BYTES
    return MultiEd25519Signature(
        key_list,
        threshold=keys[-1],
        signatures=_chunks(signatures, ED25519_SIGNATURE_BYTES, rest, "a multi-ed25519 signature"),
        bitmap=signatures[-rest:],
    )


def _write_multi_ed25519(writer: Writer, signature: MultiEd25519Signature) -> None:
    writer.bytes(b"".join(map(_data, signature.public_keys)) + bytes([signature.threshold]))
    writer.bytes(b"".join(map(_data, (*signature.signatures, signature.bitmap))))


def _read_single_key(reader: Reader) -> SingleKeySignature:
    return SingleKeySignature(_read_key(reader), signature=_read_any_signature(reader))


def _write_single_key(writer: Writer, signature: SingleKeySignature) -> None:
    write_public_key(writer, signature.public_key)
    _write_any_signature(writer, signature.signature)


def _read_multi_key(reader: Reader) -> MultiKeySignature:
    keys = [_read_key(reader) for _ in range(reader.length())]
    required = reader.u8()
    signatures = [_read_any_signature(reader) for _ in range(reader.length())]
    bitmap = reader.bytes()
    indices = [index for index in range(8 * len(bitmap)) if bitmap[index // 8] & 0x80 >> index % 8]
    if len(indices) != len(signatures):
        raise InputError(f"{len(signatures)} signatures, but the bitmap names {len(indices)}")
    entries = [IndexedSignature(index, signature=one) for index, one in zip(indices, signatures, strict=True)]
    usual = len(bitmap) == _bitmap_length(len(keys))
    return MultiKeySignature(keys, signatures_required=required, signatures=entries, bitmap=None if usual else bitmap)


def _write_multi_key(writer: Writer, signature: MultiKeySignature) -> None:
    writer.uleb128(len(signature.public_keys))
    for key in signature.public_keys:
        write_public_key(writer, key)
    writer.u8(signature.signatures_required)
    writer.uleb128(len(signature.signatures))
    for entry in signature.signatures:
        _write_any_signature(writer, entry.signature)
    indices = [entry.index for entry in signature.signatures]
    length = _bitmap_length(len(signature.public_keys))
    writer.bytes(bitmap_of(indices, length=length) if signature.bitmap is None else _data(signature.bitmap))


def _bitmap_length(keys: int) -> int:
    return (keys + 7) // 8


def _read_no_account(reader: Reader) -> NoAccountSignature:
    del reader  # it has no content
    return NoAccountSignature()


def _write_no_account(writer: Writer, signature: NoAccountSignature) -> None:
    """Append nothing: it has no content."""


def _read_abstract(reader: Reader) -> AbstractSignature:
    function = f"{reader.address()}::{reader.string()}::{reader.string()}"
    start = reader.position
    skip_auth_data(reader)
    return AbstractSignature(function, auth_data=reader.data[start : reader.position])


def skip_auth_data(reader: Reader) -> tuple[int, int]:
    """Step over abstract authentication data; return where the signature in it starts and ends.

    Raises
    ------
    SchemaError
        If it is no documented variant.
    """
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


def _write_abstract(writer: Writer, signature: AbstractSignature) -> None:
    if signature.function_info is None:
        raise InputError("an abstract signature without its function has no BCS form")
    address, module, name = signature.function_info.split("::")
    writer.address(address)
    writer.string(module)
    writer.string(name)
    writer.fixed(_data(signature.auth_data))


def _read_key(reader: Reader) -> PublicKey:
    kind = _kind(reader, _KEY_TYPES, "public key")
    start = reader.position
    if kind == "federated_keyless":
        reader.address()
    if kind in ("keyless", "federated_keyless"):
        reader.string()  # issuer
        reader.bytes()  # identity commitment
        return PublicKey(reader.data[start : reader.position], type=kind)
    return PublicKey(reader.bytes(), type=kind)


def write_public_key(writer: Writer, key: PublicKey) -> None:
    """Append a typed public key."""
    writer.uleb128(_KEY_TYPES.index(key.type))
    if key.type in ("keyless", "federated_keyless"):  # a structure, not bytes with a length
        writer.fixed(_data(key.value))
    else:
        writer.bytes(_data(key.value))


def _read_any_signature(reader: Reader) -> Signature:
    kind = _kind(reader, _SIGNATURE_TYPES, "signature")
    start = reader.position
    if kind == "web_authn":
        _skip_web_authn(reader)
    elif kind == "keyless":
        _skip_keyless(reader)
    else:
        return Signature(reader.bytes(), type=kind)
    return Signature(reader.data[start : reader.position], type=kind)


def _write_any_signature(writer: Writer, signature: Signature) -> None:
    writer.uleb128(_SIGNATURE_TYPES.index(signature.type))
    if signature.type in ("web_authn", "keyless"):  # a structure, not bytes with a length
        writer.fixed(_data(signature.value))
    else:
        writer.bytes(_data(signature.value))


def _kind(reader: Reader, kinds: tuple[str, ...], what: str) -> str:
    start = reader.position
    index = reader.uleb128()
    if index >= len(kinds):
        raise SchemaError(f"byte {start}: unknown {what} {index}")
    return kinds[index]


def _skip_web_authn(reader: Reader) -> None:
    _kind(reader, ("secp256r1_ecdsa",), "assertion signature")
    reader.bytes()  # signature
    reader.bytes()  # authenticator data
    reader.bytes()  # client data


def _skip_keyless(reader: Reader) -> None:
    if _kind(reader, ("zero_knowledge", "open_id"), "keyless certificate") == "zero_knowledge":
        _kind(reader, ("groth16",), "zero-knowledge proof")
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
    _kind(reader, ("ed25519", "secp256r1_ecdsa"), "ephemeral key")
    reader.bytes()
    _skip_ephemeral_signature(reader)


def _skip_ephemeral_signature(reader: Reader) -> None:
    if _kind(reader, ("ed25519", "web_authn"), "ephemeral signature") == "web_authn":
        _skip_web_authn(reader)
    else:
        reader.bytes()


def _skip_option(reader: Reader, skip: Callable[[Reader], object]) -> None:
    if reader.bool():
        skip(reader)


def _read_agents(reader: Reader) -> tuple[AccountSignature, list[str], list[AccountSignature]]:
    sender = read_account_signature(reader)
    addresses = [reader.address() for _ in range(reader.length())]
    return sender, addresses, [read_account_signature(reader) for _ in range(reader.length())]


def _write_agents(writer: Writer, signature: MultiAgentSignature | FeePayerSignature) -> None:
    write_account_signature(writer, signature.sender)
    writer.uleb128(len(signature.secondary_signer_addresses))
    for address in signature.secondary_signer_addresses:
        writer.address(address)
    writer.uleb128(len(signature.secondary_signers))
    for signer in signature.secondary_signers:
        write_account_signature(writer, signer)


def _read_multi_agent(reader: Reader) -> MultiAgentSignature:
    sender, addresses, signers = _read_agents(reader)
    return MultiAgentSignature(sender, secondary_signer_addresses=addresses, secondary_signers=signers)


def _read_fee_payer(reader: Reader) -> FeePayerSignature:
    sender, addresses, signers = _read_agents(reader)
    return FeePayerSignature(
        sender,
        secondary_signer_addresses=addresses,
        secondary_signers=signers,
        fee_payer_address=reader.address(),
        fee_payer_signer=read_account_signature(reader),
    )


def _read_single_sender(reader: Reader) -> SingleSenderSignature:
    return SingleSenderSignature(read_account_signature(reader))


_ACCOUNT_READERS: tuple[Callable[[Reader], Any], ...] = (
    _read_ed25519,
    _read_multi_ed25519,
    _read_single_key,
    _read_multi_key,
    _read_no_account,
    _read_abstract,
)
_TRANSACTION_READERS: tuple[Callable[[Reader], Any], ...] = (
    _read_ed25519,
    _read_multi_ed25519,
    _read_multi_agent,
    _read_fee_payer,
    _read_single_sender,
)
_ACCOUNT_WRITERS: dict[type, tuple[int, Callable[[Writer, Any], None]]] = {
    Ed25519Signature: (0, _write_ed25519),
    MultiEd25519Signature: (1, _write_multi_ed25519),
    SingleKeySignature: (2, _write_single_key),
    MultiKeySignature: (3, _write_multi_key),
    NoAccountSignature: (4, _write_no_account),
    AbstractSignature: (5, _write_abstract),
}
