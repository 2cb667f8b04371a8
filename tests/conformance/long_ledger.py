"""A ledger of many transfers by one account on the recorded framework, in whose middle the gas schedule changes.

The account has a key of our own, so its transactions are signed and run on the machine as any others.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.conformance.scenario_node import WholeState, scenario
from tests.conformance.state_node import Sent, StateNode
from toolkit import vm
from toolkit.fork._ledger import GAS_SCHEDULE
from toolkit.fork._schedule import changed_schedule
from toolkit.move import FunctionId
from toolkit.vm._bcs import tag_bytes
from toolkit.vm._types import parse
from toolkit.wire import Ed25519Signature, RawTransaction, SignedTransaction
from toolkit.wire._bcs_requests import EncodedEntryFunction

TRANSFER = FunctionId.parse("0x1::gas_coin::transfer")
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
SENDER = "0x" + hashlib.sha3_256(PUBLIC + b"\0").hexdigest()
PRICES = {"instr.*": "x50"}


def transfer(sender: str, to: bytes, amount: int, number: int) -> SignedTransaction:
    """Return a transfer that is signed by our key."""
    raw = RawTransaction(
        sender=sender,
        sequence_number=number,
        payload=EncodedEntryFunction(TRANSFER, (), (to, amount.to_bytes(8, "little"))),
        max_gas_amount=100_000,
        gas_unit_price=100,
        expiration_timestamp_secs=1_700_000_606,
        chain_id=4,
    )
    message = SignedTransaction(raw, Ed25519Signature(bytes(32))).signing_message()
    return SignedTransaction(raw, Ed25519Signature(PUBLIC, KEY.sign(message)))


def ledger(count: int, prices: dict[str, Any] = PRICES) -> StateNode:
    """Return a node whose ledger has `count` transfers before the schedule changes, and as many after."""
    [funding, *_] = [one for one in scenario("upgrades and newcomers") if one.function == str(TRANSFER.wire)]
    rich = SignedTransaction.from_bcs(funding.transaction)
    now: Any = WholeState(funding.state)
    payload = replace(rich.raw.payload, arguments=(bytes.fromhex(SENDER[2:]), (10**9).to_bytes(8, "little")))
    funded = vm.execute(replace(rich, raw=replace(rich.raw, payload=payload)).to_bcs(), now.__getitem__, simulate=True)
    assert funded.status.success, funded.status
    now = _applied(now, [(key, one.op, one.value, one.metadata) for key, one in funded.writes.items()])
    sent, to = [], bytes.fromhex(rich.raw.sender[2:])
    for at in range(2 * count):
        one = transfer(SENDER, to, 1 + at % 7, at)
        done = vm.execute(one.to_bcs(), now.__getitem__, transaction_index=1)
        assert done.status.success, done.status
        events = [(made.key, made.sequence_number, tag_bytes(parse(made.type)), made.data) for made in done.events]
        writes = [(key, made.op, made.value, made.metadata) for key, made in done.writes.items()]
        if at == count - 1:  # this one also changes the schedule, as a proposal does
            value, metadata = now[GAS_SCHEDULE]
            writes.append((GAS_SCHEDULE, "modify", changed_schedule(value, prices), metadata))
        sent.append(Sent(one.to_bcs(), b"\0", done.gas_used, events, writes, now, TRANSFER.wire, SENDER))
        now = _applied(now, writes)
    return StateNode(sent=sent, package=("gas_coin",))


def _applied(state: Any, writes: Any) -> WholeState:
    now = WholeState(state)
    for key, op, value, metadata in writes:
        now[key] = None if op == "delete" else (value, metadata)
    return now
