"""Natives of ``object``, ``account``, ``create_signer`` and ``permissioned_signer``."""

from __future__ import annotations

import hashlib

from toolkit.vm._features import PERMISSIONED_SIGNER
from toolkit.vm._natives._registry import NativeCall, native
from toolkit.vm._types import Struct
from toolkit.vm._values import Ref, Value, read_ref, signer

_DERIVED_OBJECT = b"\xfc"  # last byte of what such an address is the hash of
_NOT_ENABLED, _NOT_PERMISSIONED = 9, 3


@native("0x1::create_signer::create_signer", "0x1::account::create_signer", "0x1::genesis::create_signer")
def create_signer(call: NativeCall, address: bytes) -> tuple[Value]:
    """Signer of an account."""
    call.charge_base("aptos_framework.account.create_signer")
    return (signer(address),)


@native("0x1::account::create_address", price="aptos_framework.account.create_address")
def create_address(call: NativeCall, raw: bytearray) -> tuple[Value]:
    """Address of 32 bytes."""
    if len(raw) != 32:
        raise call.abort(2)
    return (bytes(raw),)


@native("0x1::object::exists_at")
def exists_at(call: NativeCall, address: bytes) -> tuple[Value]:
    """Whether a resource is there. It is loaded, at prices of its own."""
    name = "aptos_framework.object.exists_at"
    call.charge_base(name)
    machine, kind = call.machine, call.types[0]
    assert isinstance(kind, Struct)  # noqa: S101 - has the ability key
    slot = machine.session.resources.get((address, kind))
    if slot is None:
        slot, size = machine.fetch(address, kind)
        call.charge(call.price(f"{name}.per_item_loaded") + call.price(f"{name}.per_byte_loaded") * size)
    return (slot.cell[0] is not None,)


@native("0x1::object::create_user_derived_object_address_impl", price="aptos_framework.object.user_derived_address")
def derived_address(_: NativeCall, source: bytes, derive_from: bytes) -> tuple[Value]:
    """Address of an object that belongs to an account and an object."""
    return (hashlib.sha3_256(source + derive_from + _DERIVED_OBJECT).digest(),)


def _permissioned(call: NativeCall, name: str) -> None:
    if not call.feature(PERMISSIONED_SIGNER):
        raise call.abort(_NOT_ENABLED)
    call.charge_base(f"aptos_framework.permissioned_signer.{name}")


@native("0x1::permissioned_signer::is_permissioned_signer_impl", "0x1::permissioned_signer::is_permissioned_signer")
def is_permissioned_signer(call: NativeCall, who: Ref) -> tuple[Value]:
    """Whether a signer is a permissioned one."""
    _permissioned(call, "is_permissioned_signer")
    return (read_ref(who)[0] == 1,)


@native("0x1::permissioned_signer::permission_address")
def permission_address(call: NativeCall, who: Ref) -> tuple[Value]:
    """Where the permissions of a permissioned signer are stored."""
    _permissioned(call, "permission_address")
    value = read_ref(who)
    if value[0] != 1:
        raise call.abort(_NOT_PERMISSIONED)
    return (value[2],)


@native("0x1::permissioned_signer::signer_from_permissioned_handle_impl")
def permissioned_signer(call: NativeCall, master: bytes, permission: bytes) -> tuple[Value]:
    """Permissioned signer of an account."""
    _permissioned(call, "signer_from_permissioned_handle")
    return (signer(master, permission),)
