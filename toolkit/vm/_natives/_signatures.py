"""Natives of ``ed25519``, ``multi_ed25519`` and ``secp256k1``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import Unsupported
from toolkit.vm._ed25519 import decompresses, is_small_order, verify
from toolkit.vm._features import ED25519_KEYS_OF_ANY_LENGTH
from toolkit.vm._natives._registry import NativeCall, native

if TYPE_CHECKING:
    from collections.abc import Sequence

_PRICE = "aptos_framework.signature"
_KEY, _SIGNATURE = 32, 64  # bytes
_BITMAP = 4  # bytes
_MAX_KEYS = 32
_ORDER = 2**252 + 27742317777372353535851937790883648493  # of the group of Ed25519
_SECP256K1_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_WRONG_LENGTH, _NOT_DECODABLE = 1, 0x10001  # abort codes


def _is_key(data: bytes) -> bool:
    return len(data) == _KEY and decompresses(data)


def _is_signature(data: bytes) -> bool:
    return len(data) == _SIGNATURE and int.from_bytes(data[32:], "little") < _ORDER


@native("0x1::ed25519::public_key_validate_internal")
def ed25519_validate(call: NativeCall, key: bytearray) -> tuple[bool]:
    """Whether bytes are a public key that is not of small order."""
    call.charge(call.price(_PRICE + ".base") + call.price(_PRICE + ".per_pubkey_deserialize"))
    if len(key) != _KEY and not call.feature(ED25519_KEYS_OF_ANY_LENGTH):
        raise call.abort(_WRONG_LENGTH)
    if not _is_key(bytes(key)):
        return (False,)
    call.charge(call.price(_PRICE + ".per_pubkey_small_order_check"))
    return (not is_small_order(bytes(key)),)


@native("0x1::ed25519::signature_verify_strict_internal", price=_PRICE)
def ed25519_verify(call: NativeCall, signature: bytearray, key: bytearray, message: bytearray) -> tuple[bool]:
    """Whether a signature is valid, neither key nor commitment being of small order."""
    call.charge(call.price(_PRICE + ".per_pubkey_deserialize"))
    if not _is_key(bytes(key)):
        return (False,)
    call.charge(call.price(_PRICE + ".per_sig_deserialize"))
    if not _is_signature(bytes(signature)):
        return (False,)
    call.charge(_verification(call, message))
    return (verify(bytes(key), bytes(signature), bytes(message)),)


def _verification(call: NativeCall, message: bytearray) -> int:
    return (
        call.price(_PRICE + ".per_sig_strict_verify")
        + call.price(_PRICE + ".per_msg_hashing_base")
        + call.price(_PRICE + ".per_msg_byte_hashing") * len(message)
    )


def _chunks(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data) - size + 1, size)]


def _all_valid(call: NativeCall, keys: Sequence[bytes]) -> bool:
    """Charge for each key up to the first that is not valid."""
    work = call.price(_PRICE + ".per_pubkey_deserialize") + call.price(_PRICE + ".per_pubkey_small_order_check")
    for key in keys:
        call.charge(work)
        if not _is_key(key) or is_small_order(key):
            return False
    return True


@native("0x1::multi_ed25519::public_key_validate_internal", price=_PRICE)
def multi_validate(call: NativeCall, data: bytearray) -> tuple[bool]:
    """Whether all whole keys at the start of the bytes are valid; the threshold is not looked at."""
    keys = _chunks(bytes(data), _KEY)
    return (len(keys) <= _MAX_KEYS and _all_valid(call, keys),)


@native("0x1::multi_ed25519::public_key_validate_v2_internal", price=_PRICE)
def multi_validate_v2(call: NativeCall, data: bytearray) -> tuple[bool]:
    """Whether bytes are keys and a threshold that they can reach."""
    return (_threshold(data) is not None and _all_valid(call, _chunks(bytes(data), _KEY)),)


def _threshold(data: bytearray) -> int | None:
    """Return the threshold of a public key; None if its form is wrong."""
    count, rest = divmod(len(data), _KEY)
    return data[-1] if rest == 1 and 1 <= data[-1] <= count <= _MAX_KEYS else None


@native("0x1::multi_ed25519::signature_verify_strict_internal", price=_PRICE)
def multi_verify(call: NativeCall, signature: bytearray, key: bytearray, message: bytearray) -> tuple[bool]:
    """Whether enough of the keys signed."""
    call.charge(call.price(_PRICE + ".per_pubkey_deserialize") * (len(key) // _KEY))
    keys, threshold = _chunks(bytes(key), _KEY), _threshold(key)
    if threshold is None or not all(map(_is_key, keys)):
        return (False,)
    count = len(signature) // _SIGNATURE
    call.charge(call.price(_PRICE + ".per_sig_deserialize") * count)
    if len(signature) != count * _SIGNATURE + _BITMAP or not 1 <= count <= _MAX_KEYS:
        return (False,)
    signatures = _chunks(bytes(signature[:-_BITMAP]), _SIGNATURE)
    bitmap = int.from_bytes(signature[-_BITMAP:], "big")
    signers = [place for place in range(_MAX_KEYS) if bitmap >> (_MAX_KEYS - 1 - place) & 1]
    if len(signers) != count or not all(map(_is_signature, signatures)):
        return (False,)
    call.charge(_verification(call, message) * count)
    if count < threshold or signers[-1] >= len(keys):
        return (False,)
    signed = zip(signers, signatures, strict=True)
    return (all(verify(keys[place], one, bytes(message)) for place, one in signed),)


@native("0x1::secp256k1::ecdsa_recover_internal")
def secp256k1_recover(
    call: NativeCall, message: bytearray, recovery_id: int, signature: bytearray
) -> tuple[bytearray, bool]:
    """Public key that a signature of a hash belongs to."""
    try:
        from coincurve import PublicKey
    except ImportError:
        raise Unsupported("secp256k1 without coincurve; install 'ledger-toolkit[curves]'") from None
    call.charge(call.price("aptos_framework.secp256k1.base"))
    if len(message) != 32 or recovery_id > 3 or len(signature) != _SIGNATURE or not _below_order(signature):
        raise call.abort(_NOT_DECODABLE)
    call.charge(call.price("aptos_framework.secp256k1.ecdsa_recover"))
    try:
        key = PublicKey.from_signature_and_message(bytes(signature) + bytes([recovery_id]), bytes(message), hasher=None)
    except Exception:  # noqa: BLE001 - the library raises bare exceptions
        return bytearray(), False
    return bytearray(key.format(compressed=False)[1:]), True


def _below_order(signature: bytearray) -> bool:
    halves = signature[:32], signature[32:]
    return all(int.from_bytes(half, "big") < _SECP256K1_ORDER for half in halves)
