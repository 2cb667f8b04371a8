"""Natives of ``hash`` and ``aptos_hash``."""

from __future__ import annotations

import hashlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolkit.errors import Unsupported
from toolkit.vm._natives._registry import NativeCall, native

if TYPE_CHECKING:
    from collections.abc import Callable

_SIP_KEYS = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_WORD = (1 << 64) - 1


def _pycryptodome(name: str) -> Any:
    """Return a module of hashes that Python does not have everywhere."""
    try:
        return import_module(f"Crypto.Hash.{name}")
    except ImportError:
        raise Unsupported(f"hashes by {name} without pycryptodome; install 'ledger-toolkit[curves]'") from None


def _hash(name: str, price: str, digest: Callable[[bytes], bytes]) -> None:
    """Register a hash function: bytes in, bytes out, priced by length."""

    @native(name)
    def hashed(call: NativeCall, data: bytearray) -> tuple[bytearray]:
        call.charge_base(price, "per_byte", len(data))
        return (bytearray(digest(bytes(data))),)


_hash("0x1::hash::sha2_256", "move_stdlib.hash.sha2_256", lambda data: hashlib.sha256(data).digest())
_hash("0x1::hash::sha3_256", "move_stdlib.hash.sha3_256", lambda data: hashlib.sha3_256(data).digest())
_OWN = "0x1::aptos_hash::"
_PRICES = "aptos_framework.hash."
_hash(
    _OWN + "keccak256",
    _PRICES + "keccak256",
    lambda data: _pycryptodome("keccak").new(digest_bits=256, data=data).digest(),
)
_hash(_OWN + "sha2_512_internal", _PRICES + "sha2_512", lambda data: hashlib.sha512(data).digest())
_hash(_OWN + "sha3_512_internal", _PRICES + "sha3_512", lambda data: hashlib.sha3_512(data).digest())
_hash(_OWN + "ripemd160_internal", _PRICES + "ripemd160", lambda data: _pycryptodome("RIPEMD160").new(data).digest())
_hash(
    _OWN + "blake2b_256_internal", _PRICES + "blake2b_256", lambda data: hashlib.blake2b(data, digest_size=32).digest()
)


@native("0x1::aptos_hash::sip_hash")
def sip_hash(call: NativeCall, data: bytearray) -> tuple[int]:
    """SipHash-2-4 with a key of zeros."""
    call.charge_base("aptos_framework.hash.sip_hash", "per_byte", len(data))
    return (_siphash24(bytes(data)),)


def _siphash24(data: bytes) -> int:
    """SipHash-2-4 under the key 0 (Aumasson, Bernstein: SipHash, a fast short-input PRF, 2012)."""
    state = list(_SIP_KEYS)
    whole = len(data) // 8 * 8
    last = data[whole:].ljust(7, b"\0") + bytes([len(data) & 0xFF])
    for start in range(0, whole + 8, 8):
        word = int.from_bytes(data[start : start + 8] if start < whole else last, "little")
        state[3] ^= word
        _sip_rounds(state, 2)
        state[0] ^= word
    state[2] ^= 0xFF
    _sip_rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_rounds(state: list[int], count: int) -> None:
    v0, v1, v2, v3 = state
    for _ in range(count):
        v0 = (v0 + v1) & _WORD
        v1 = _rotated(v1, 13) ^ v0
        v0 = _rotated(v0, 32)
        v2 = (v2 + v3) & _WORD
        v3 = _rotated(v3, 16) ^ v2
        v0 = (v0 + v3) & _WORD
        v3 = _rotated(v3, 21) ^ v0
        v2 = (v2 + v1) & _WORD
        v1 = _rotated(v1, 17) ^ v2
        v2 = _rotated(v2, 32)
    state[:] = v0, v1, v2, v3


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & _WORD
