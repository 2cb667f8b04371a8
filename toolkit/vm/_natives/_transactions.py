"""Natives that report on the transaction and the ledger: ``transaction_context``, ``randomness`` and others."""

from __future__ import annotations

import hashlib
from operator import attrgetter
from typing import TYPE_CHECKING

from toolkit.errors import Unsupported
from toolkit.vm._natives._registry import NativeCall, native

if TYPE_CHECKING:
    from toolkit.vm._transaction import CalledFunction, TransactionRun
    from toolkit.vm._values import Value

_NO_TRANSACTION, _COUNTER_OVERFLOW, _NO_INDEX = 0x30001, 0x30002, 0x30005
_UNIQUE_ADDRESS = b"\xfb"  # last byte of what such an address is the hash of
_NOT_UNBIASABLE = 1
_NEWEST_CONSENSUS_CONFIG = 4
_MAX_U16 = 0xFFFF
_PRICE = "aptos_framework.transaction_context."


class Counters:
    """Counters of a session."""

    def __init__(self) -> None:
        self.addresses = self.monotonic = self.random = 0


def _transaction(call: NativeCall, name: str) -> TransactionRun:
    call.charge_base(_PRICE + name)
    transaction = call.machine.transaction
    if transaction is None:
        raise call.abort(_NO_TRANSACTION)
    return transaction


@native("0x1::transaction_context::get_txn_hash", price=_PRICE + "get_txn_hash")
def get_txn_hash(call: NativeCall) -> tuple[Value]:
    """Hash of the session."""
    return (bytearray(call.machine.session.hash),)


@native("0x1::transaction_context::get_script_hash", price=_PRICE + "get_script_hash")
def get_script_hash(call: NativeCall) -> tuple[Value]:
    """Hash of the script, or nothing."""
    transaction = call.machine.transaction
    return (bytearray(transaction.script_hash if transaction else b""),)


@native("0x1::transaction_context::generate_unique_address", price=_PRICE + "generate_unique_address")
def generate_unique_address(call: NativeCall) -> tuple[Value]:
    """Address that no other call gets."""
    counters = call.context(Counters)
    counters.addresses += 1
    raw = call.machine.session.hash + counters.addresses.to_bytes(8, "little") + _UNIQUE_ADDRESS
    return (hashlib.sha3_256(raw).digest(),)


def _register_fact(name: str, place: str) -> None:
    """Register a native that returns a fact of the transaction."""

    @native(f"0x1::transaction_context::{name}_internal")
    def fact(call: NativeCall) -> tuple[Value]:
        return (attrgetter(place)(_transaction(call, "fee_payer" if name == "gas_payer" else name)),)


_register_fact("sender", "sender")
_register_fact("gas_payer", "payer")
for _name in ("max_gas_amount", "gas_unit_price", "chain_id"):
    _register_fact(_name, f"raw.{_name}")


@native("0x1::transaction_context::secondary_signers_internal")
def secondary_signers(call: NativeCall) -> tuple[Value]:
    """Addresses of the other signers."""
    addresses = list(_transaction(call, "secondary_signers").cosigners)
    call.charge(call.price(f"{_PRICE}secondary_signers.per_signer") * len(addresses))
    return (addresses,)


def _payload(call: NativeCall, name: str, function: CalledFunction) -> Value:
    types = [str(kind).encode() for kind in function.types]
    size = 32 + len(function.module.name) + len(function.name)
    size += sum(map(len, types)) + sum(map(len, function.arguments))
    call.charge(call.price(f"{_PRICE}{name}.per_abstract_memory_unit") * size)
    return [
        function.module.address,
        [bytearray(function.module.name.encode())],
        [bytearray(function.name.encode())],
        [[bytearray(one)] for one in types],
        [bytearray(one) for one in function.arguments],
    ]


@native("0x1::transaction_context::entry_function_payload_internal")
def entry_function_payload(call: NativeCall) -> tuple[Value]:
    """Entry function that the transaction calls."""
    name = "entry_function_payload"
    transaction = _transaction(call, name)
    called = transaction.called if transaction.multisig is None else None
    return (call.option(called and _payload(call, name, called)),)


@native("0x1::transaction_context::multisig_payload_internal")
def multisig_payload(call: NativeCall) -> tuple[Value]:
    """Multisig account, and the function that it is asked to call."""
    name = "multisig_payload"
    transaction = _transaction(call, name)
    if transaction.multisig is None:
        return (call.option(None),)
    called = transaction.called
    return (call.option([transaction.multisig, call.option(called and _payload(call, name, called))]),)


@native("0x1::transaction_context::monotonically_increasing_counter_internal")
def monotonic_counter(call: NativeCall, timestamp_us: int) -> tuple[Value]:
    """Return a number that rises from call to call and from transaction to transaction."""
    index = _transaction(call, "monotonically_increasing_counter").transaction_index
    if index is None:
        raise call.abort(_NO_INDEX)
    counters = call.context(Counters)
    if counters.monotonic >= _MAX_U16:
        raise call.abort(_COUNTER_OVERFLOW)
    counters.monotonic += 1
    # From the high bits: time, index of the transaction, kind of session, number of the call.
    place = index << 24 | call.machine.session.counter << 16 | counters.monotonic
    return (timestamp_us << 56 | place,)


@native("0x1::randomness::fetch_and_increment_txn_counter")
def random_counter(call: NativeCall) -> tuple[Value]:
    """Counter of random draws, as bytes."""
    if not call.machine.session.unbiasable:
        raise call.abort(_NOT_UNBIASABLE)
    call.charge(call.price("aptos_framework.randomness.fetch_and_inc_counter"))
    counters = call.context(Counters)
    counters.random += 1
    return (bytearray((counters.random - 1).to_bytes(8, "little")),)


@native("0x1::randomness::is_unbiasable")
def is_unbiasable(call: NativeCall) -> tuple[Value]:
    """Whether the caller may use randomness."""
    return (call.machine.session.unbiasable,)


@native("0x1::state_storage::get_state_storage_usage_only_at_epoch_beginning")
def storage_usage(call: NativeCall) -> tuple[Value]:
    """Items and bytes of the whole state."""
    call.charge_base("aptos_framework.state_storage.get_usage")
    usage = call.machine.environment.usage
    if usage is None:
        raise Unsupported("the storage usage of the state; pass usage=(items, bytes)")
    return (list(usage),)


@native("0x1::consensus_config::validator_txn_enabled_internal")
def validator_transactions_enabled(_: NativeCall, config: bytearray) -> tuple[Value]:
    """Whether a consensus configuration allows validator transactions."""
    # Its first byte is the version; which of those are real is all that is decided here.
    if config and config[0] <= _NEWEST_CONSENSUS_CONFIG:
        raise Unsupported(
            "native function 0x1::consensus_config::validator_txn_enabled_internal for this configuration"
        )
    return (False,)
