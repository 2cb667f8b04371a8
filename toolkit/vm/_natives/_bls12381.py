"""Natives of ``bls12381``: keys in G1, signatures in G2, as the draft of the IRTF names them (minimal key size)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from toolkit.errors import Unsupported
from toolkit.vm._natives._registry import NativeCall, native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.vm._values import Value

_PRICE = "aptos_framework.bls12381."
_SIGNATURE_SUITE = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_"
_POSSESSION_SUITE = b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_"
_COORDINATE = 48  # bytes
_COMPRESSED, _INFINITY, _FLAGS = 0x80, 0x40, 0xE0  # bits of the first byte

Point = Any  # of py_ecc: projective coordinates


class _Curve:
    """The library's functions, imported when the first native runs: it takes a tenth of a second."""

    def __init__(self) -> None:
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
        self.group: Any = optimized_bls12_381
        self.points: Any = g2_primitives
        self.hashing: Any = hash_to_curve
        self.compression: Any = point_compression

    def key(self, data: bytes) -> Point | None:
        """Return a point of G1's curve, compressed or not; None if the bytes are not one."""
        if len(data) == _COORDINATE and data[0] & _COMPRESSED:
            return _or_none(self.compression.decompress_G1, int.from_bytes(data, "big"))
        numbers = self._coordinates(data, 2)
        if numbers is None:
            return None
        if not numbers:
            return self.group.Z1
        x, y = map(self.group.FQ, numbers)
        return self._on_curve((x, y, self.group.FQ.one()), self.group.b)

    def signature(self, data: bytes) -> Point | None:
        """Return a point of G2's curve, compressed or not; None if the bytes are not one."""
        if len(data) == 2 * _COORDINATE and data[0] & _COMPRESSED:
            return _or_none(self.compression.decompress_G2, tuple(_numbers(data)))
        numbers = self._coordinates(data, 4)
        if numbers is None:
            return None
        if not numbers:
            return self.group.Z2
        # Of each coordinate the imaginary part comes first.
        x, y = self.group.FQ2((numbers[1], numbers[0])), self.group.FQ2((numbers[3], numbers[2]))
        return self._on_curve((x, y, self.group.FQ2.one()), self.group.b2)

    def _coordinates(self, data: bytes, count: int) -> list[int] | None:
        """Return the numbers of a point that is not compressed: none of them for infinity; None if it is not valid."""
        if len(data) != _COORDINATE * count:
            return None
        if data[0] & _FLAGS:
            return [] if data[0] == _INFINITY and not any(data[1:]) else None
        numbers = _numbers(data)
        return numbers if max(numbers) < self.group.field_modulus else None

    def _on_curve(self, point: Point, curve: Any) -> Point | None:
        return point if self.group.is_on_curve(point, curve) else None

    def verify(self, signature: Point, keys: Sequence[Point], messages: Sequence[bytes], suite: bytes) -> bool:
        """Return whether a signature, which must be in its group, is the sum of those of keys over messages."""
        from hashlib import sha256

        group = self.group
        if any(group.is_inf(key) for key in keys) or not self.points.subgroup_check(signature):
            return False
        product = group.pairing(signature, group.neg(group.G1), final_exponentiate=False)
        for key, message in zip(keys, messages, strict=True):
            hashed = self.hashing.hash_to_G2(message, suite, sha256)
            product *= group.pairing(hashed, key, final_exponentiate=False)
        return bool(group.final_exponentiate(product) == group.FQ12.one())

    def sum(self, points: Sequence[Point]) -> Point:
        """Return the sum of points."""
        total, *rest = points
        for one in rest:
            total = self.group.add(total, one)
        return total


def _numbers(data: bytes) -> list[int]:
    return [int.from_bytes(data[start : start + _COORDINATE], "big") for start in range(0, len(data), _COORDINATE)]


def _or_none(decompress: Callable[[Any], Point], data: Any) -> Point | None:
    try:
        return decompress(data)
    except ValueError:
        return None


def _charge(call: NativeCall, name: str, count: int = 1) -> None:
    call.charge(call.price(_PRICE + name) * count)


def _decoded(call: NativeCall, items: Sequence[Value], decode: Callable[[bytes], Point | None], price: str) -> Any:
    """Return the points of serialized items, each charged; None at the first that is not a point."""
    points = []
    for item in items:
        _charge(call, price)
        points.append(decode(bytes(item[0])))
        if points[-1] is None:
            return None
    return points


def _key(call: NativeCall, curve: _Curve, data: bytearray) -> Point | None:
    _charge(call, "per_pubkey_deserialize")
    return curve.key(bytes(data))


def _signature(call: NativeCall, curve: _Curve, data: bytearray) -> Point | None:
    _charge(call, "per_sig_deserialize")
    return curve.signature(bytes(data))


@native("0x1::bls12381::aggregate_pubkeys_internal")
def aggregate_keys(call: NativeCall, keys: list[Value]) -> tuple[bytearray, bool]:
    """Sum of keys, which need not be in the group."""
    curve = call.context(_Curve)
    _charge(call, "base")
    points = _decoded(call, keys, curve.key, "per_pubkey_deserialize")
    if not points:
        return bytearray(), False
    _charge(call, "per_pubkey_aggregate", len(points))
    return bytearray(curve.points.G1_to_pubkey(curve.sum(points))), True


@native("0x1::bls12381::aggregate_signatures_internal")
def aggregate_signatures(call: NativeCall, signatures: list[Value]) -> tuple[bytearray, bool]:
    """Sum of signatures, which need not be in the group."""
    curve = call.context(_Curve)
    _charge(call, "base")
    points = _decoded(call, signatures, curve.signature, "per_sig_deserialize")
    if not points:
        return bytearray(), False
    _charge(call, "per_sig_aggregate", len(points))
    return bytearray(curve.points.G2_to_signature(curve.sum(points))), True


@native("0x1::bls12381::validate_pubkey_internal")
def validate_key(call: NativeCall, data: bytearray) -> tuple[bool]:
    """Whether bytes are a key in the group other than infinity."""
    curve = call.context(_Curve)
    _charge(call, "base")
    key = _key(call, curve, data)
    if key is None:
        return (False,)
    _charge(call, "per_pubkey_deserialize")  # a node charges the check of the group by this price
    return (not curve.group.is_inf(key) and bool(curve.points.subgroup_check(key)),)


@native("0x1::bls12381::signature_subgroup_check_internal")
def signature_in_group(call: NativeCall, data: bytearray) -> tuple[bool]:
    """Whether bytes are a signature in the group."""
    curve = call.context(_Curve)
    _charge(call, "base")
    signature = _signature(call, curve, data)
    if signature is None:
        return (False,)
    _charge(call, "per_sig_subgroup_check")
    return (bool(curve.points.subgroup_check(signature)),)


@native("0x1::bls12381::verify_normal_signature_internal")
def verify_normal(call: NativeCall, data: bytearray, key_data: bytearray, message: bytearray) -> tuple[bool]:
    """Whether a signature is valid for a key in the group."""
    return (_verify(call, data, key_data, message, in_group=True),)


@native("0x1::bls12381::verify_multisignature_internal", "0x1::bls12381::verify_signature_share_internal")
def verify_share(call: NativeCall, data: bytearray, key_data: bytearray, message: bytearray) -> tuple[bool]:
    """Whether a signature is valid for a key that was checked before, when possession of it was proved."""
    return (_verify(call, data, key_data, message, in_group=False),)


def _verify(call: NativeCall, data: bytearray, key_data: bytearray, message: bytearray, *, in_group: bool) -> bool:
    curve = call.context(_Curve)
    _charge(call, "base")
    key = _key(call, curve, key_data)
    if key is None:
        return False
    if in_group:
        _charge(call, "per_pubkey_deserialize")
        if not curve.points.subgroup_check(key):
            return False
    signature = _signature(call, curve, data)
    if signature is None:
        return False
    prices = ("per_sig_verify", "per_msg_hashing")
    work = sum(call.price(_PRICE + name) for name in prices)
    call.charge(work + call.price(_PRICE + "per_byte_hashing") * len(message))
    return curve.verify(signature, [key], [bytes(message)], _SIGNATURE_SUITE)


@native("0x1::bls12381::verify_aggregate_signature_internal")
def verify_aggregate(call: NativeCall, data: bytearray, keys: list[Value], messages: list[bytearray]) -> tuple[bool]:
    """Whether a signature is the sum of those of keys, each over a message of its own."""
    curve = call.context(_Curve)
    _charge(call, "base")
    if not keys or len(keys) != len(messages):
        return (False,)
    points = _decoded(call, keys, curve.key, "per_pubkey_deserialize")
    if points is None:
        return (False,)
    signature = _signature(call, curve, data)
    if signature is None:
        return (False,)
    count = len(messages)
    pairings, hashes = call.price(_PRICE + "per_pairing"), call.price(_PRICE + "per_msg_hashing")
    hashed = call.price(_PRICE + "per_byte_hashing") * sum(map(len, messages))
    call.charge(pairings * (count + 1) + hashes * count + hashed)
    return (curve.verify(signature, points, list(map(bytes, messages)), _SIGNATURE_SUITE),)


@native("0x1::bls12381::verify_proof_of_possession_internal")
def verify_possession(call: NativeCall, key_data: bytearray, proof: bytearray) -> tuple[bool]:
    """Whether whoever made a proof has the secret key."""
    curve = call.context(_Curve)
    _charge(call, "base")
    key = _key(call, curve, key_data)
    if key is None:
        return (False,)
    signature = _signature(call, curve, proof)
    if signature is None:
        return (False,)
    _charge(call, "per_pop_verify")
    message = bytes(curve.points.G1_to_pubkey(key))
    # A key that is not in the group has no proof.
    valid = curve.points.subgroup_check(key) and curve.verify(signature, [key], [message], _POSSESSION_SUITE)
    return (bool(valid),)
