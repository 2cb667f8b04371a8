"""Natives of ``bls12381``: keys in G1, signatures in G2, as the draft of the IRTF names them (minimal key size)."""

from __future__ import annotations

import sys
from functools import cache, reduce
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import Unsupported
from toolkit.vm._natives._registry import NativeCall, native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.vm._values import Value

_PRICE = "aptos_framework.bls12381"
_SIGNATURE_SUITE = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_"
_POSSESSION_SUITE = b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_"
_COORDINATE = 48  # bytes
_COMPRESSED, _INFINITY, _FLAGS = 0x80, 0x40, 0xE0  # bits of the first byte

Point = Any  # of py_ecc: projective coordinates


class _Group(NamedTuple):
    """Keys or signatures: the points of one of the two curves."""

    word: str  # in the names of prices
    size: int  # of a compressed point, in bytes
    zero: Point
    curve: Any
    field: Callable[[Sequence[int]], Any]  # a coordinate of its numbers
    decompress: Callable[[Any], Point]
    compress: Callable[[Point], bytes]


class _Library(NamedTuple):
    """The modules of py_ecc, and the two groups."""

    curves: Any
    in_group: Callable[[Point], bool]
    hashed: Callable[..., Point]
    keys: _Group
    signatures: _Group


@cache
def _library() -> _Library:
    """Import the library when the first native runs: it takes a tenth of a second."""
    # py_ecc raises the recursion limit of the whole process when it is imported. JSON that is nested too deeply,
    # which any node may send, would then overflow the C stack and end the process. These functions do not need it.
    limit = sys.getrecursionlimit()
    try:
        from py_ecc import optimized_bls12_381
        from py_ecc.bls import g2_primitives, hash_to_curve, point_compression
    except ImportError:
        raise Unsupported("bls12381 without py_ecc; install 'ledger-toolkit[curves]'") from None
    finally:
        sys.setrecursionlimit(limit)
    curves: Any = optimized_bls12_381
    keys = _Group(
        "pubkey",
        _COORDINATE,
        curves.Z1,
        curves.b,
        lambda numbers: curves.FQ(*numbers),
        lambda numbers: point_compression.decompress_G1(*numbers),
        g2_primitives.G1_to_pubkey,
    )
    signatures = _Group(
        "sig",
        2 * _COORDINATE,
        curves.Z2,
        curves.b2,
        lambda numbers: curves.FQ2(numbers[::-1]),  # the imaginary part comes first
        lambda numbers: point_compression.decompress_G2(tuple(numbers)),  # type: ignore[arg-type]  # a pair
        g2_primitives.G2_to_signature,
    )
    return _Library(curves, g2_primitives.subgroup_check, hash_to_curve.hash_to_G2, keys, signatures)


class _NotAPointError(Exception):
    """Bytes are not a point: nearly all natives return False then."""


def _native(name: str) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
    """Register a native that returns whether something holds; it does not if something is not a point."""

    def register(function: Callable[..., bool]) -> Callable[..., bool]:
        @native(f"0x1::bls12381::{name}_internal", price=_PRICE)
        def answer(call: NativeCall, *arguments: Value) -> tuple[bool]:
            try:
                return (function(call, *arguments),)
            except _NotAPointError:
                return (False,)

        return function

    return register


def _point(group: _Group, data: bytes) -> Point:
    """Return a point of a curve, compressed or not."""
    curves = _library().curves
    numbers = [int.from_bytes(data[start : start + _COORDINATE], "big") for start in range(0, len(data), _COORDINATE)]
    if len(data) == group.size and data[0] & _COMPRESSED:
        try:
            return group.decompress(numbers)
        except ValueError:
            raise _NotAPointError from None
    if len(data) == 2 * group.size and data[0] == _INFINITY and not any(data[1:]):
        return group.zero
    if len(data) != 2 * group.size or data[0] & _FLAGS or max(numbers) >= curves.field_modulus:
        raise _NotAPointError
    x, y = group.field(numbers[: len(numbers) // 2]), group.field(numbers[len(numbers) // 2 :])
    point = x, y, x.one()
    if not curves.is_on_curve(point, group.curve):
        raise _NotAPointError
    return point


def _is_valid(signature: Point, keys: Sequence[Point], messages: Sequence[bytes], suite: bytes) -> bool:
    """Return whether a signature, which must be in its group, is the sum of those of keys over messages."""
    library, curves = _library(), _library().curves
    if any(map(curves.is_inf, keys)) or not library.in_group(signature):
        return False
    product = curves.pairing(signature, curves.neg(curves.G1), final_exponentiate=False)
    for key, message in zip(keys, messages, strict=True):
        product *= curves.pairing(library.hashed(message, suite, sha256), key, final_exponentiate=False)
    return bool(curves.final_exponentiate(product) == curves.FQ12.one())


def _charge(call: NativeCall, name: str, count: int = 1) -> None:
    call.charge(call.price(f"{_PRICE}.{name}") * count)


def _decoded(call: NativeCall, group: _Group, data: bytearray) -> Point:
    _charge(call, f"per_{group.word}_deserialize")
    return _point(group, bytes(data))


def _sum(call: NativeCall, group: _Group, items: Sequence[Value]) -> tuple[bytearray, bool]:
    try:
        points = [_decoded(call, group, item[0]) for item in items]
    except _NotAPointError:
        points = []
    if not points:
        return bytearray(), False
    _charge(call, f"per_{group.word}_aggregate", len(points))
    return bytearray(group.compress(reduce(_library().curves.add, points))), True


@native("0x1::bls12381::aggregate_pubkeys_internal", price=_PRICE)
def aggregate_keys(call: NativeCall, keys: list[Value]) -> tuple[bytearray, bool]:
    """Sum of keys, which need not be in the group."""
    return _sum(call, _library().keys, keys)


@native("0x1::bls12381::aggregate_signatures_internal", price=_PRICE)
def aggregate_signatures(call: NativeCall, signatures: list[Value]) -> tuple[bytearray, bool]:
    """Sum of signatures, which need not be in the group."""
    return _sum(call, _library().signatures, signatures)


@_native("validate_pubkey")
def validate_key(call: NativeCall, data: bytearray) -> bool:
    """Whether bytes are a key in the group other than infinity."""
    library = _library()
    key = _decoded(call, library.keys, data)
    _charge(call, "per_pubkey_deserialize")  # a node charges the check of the group by this price
    return not library.curves.is_inf(key) and bool(library.in_group(key))


@_native("signature_subgroup_check")
def signature_in_group(call: NativeCall, data: bytearray) -> bool:
    """Whether bytes are a signature in the group."""
    signature = _decoded(call, _library().signatures, data)
    _charge(call, "per_sig_subgroup_check")
    return bool(_library().in_group(signature))


@_native("verify_normal_signature")
def verify_normal(call: NativeCall, data: bytearray, key_data: bytearray, message: bytearray) -> bool:
    """Whether a signature is valid for a key in the group."""
    key = _decoded(call, _library().keys, key_data)
    _charge(call, "per_pubkey_deserialize")
    return bool(_library().in_group(key)) and _verify(call, data, key, message)


@_native("verify_multisignature")
@_native("verify_signature_share")
def verify_share(call: NativeCall, data: bytearray, key_data: bytearray, message: bytearray) -> bool:
    """Whether a signature is valid for a key that was checked before, when possession of it was proved."""
    return _verify(call, data, _decoded(call, _library().keys, key_data), message)


def _verify(call: NativeCall, data: bytearray, key: Point, message: bytearray) -> bool:
    signature = _decoded(call, _library().signatures, data)
    work = call.price(f"{_PRICE}.per_sig_verify") + call.price(f"{_PRICE}.per_msg_hashing")
    call.charge(work + call.price(f"{_PRICE}.per_byte_hashing") * len(message))
    return _is_valid(signature, [key], [bytes(message)], _SIGNATURE_SUITE)


@_native("verify_aggregate_signature")
def verify_aggregate(call: NativeCall, data: bytearray, keys: list[Value], messages: list[bytearray]) -> bool:
    """Whether a signature is the sum of those of keys, each over a message of its own."""
    count = len(messages)
    if not keys or len(keys) != count:
        return False
    points = [_decoded(call, _library().keys, key[0]) for key in keys]
    signature = _decoded(call, _library().signatures, data)
    pairings, hashes = call.price(f"{_PRICE}.per_pairing"), call.price(f"{_PRICE}.per_msg_hashing")
    hashed = call.price(f"{_PRICE}.per_byte_hashing") * sum(map(len, messages))
    call.charge(pairings * (count + 1) + hashes * count + hashed)
    return _is_valid(signature, points, list(map(bytes, messages)), _SIGNATURE_SUITE)


@_native("verify_proof_of_possession")
def verify_possession(call: NativeCall, key_data: bytearray, proof: bytearray) -> bool:
    """Whether whoever made a proof has the secret key."""
    library = _library()
    key, signature = _decoded(call, library.keys, key_data), _decoded(call, library.signatures, proof)
    _charge(call, "per_pop_verify")
    # A key that is not in the group has no proof.
    message = bytes(library.keys.compress(key))
    return bool(library.in_group(key)) and _is_valid(signature, [key], [message], _POSSESSION_SUITE)
