"""``POST /v1/transactions/simulate`` (wire facts, section 4): execute at the head, answer what would happen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from toolkit.embedded import render
from toolkit.embedded.execution import run_view
from toolkit.embedded.http.bodies import signed_from_json
from toolkit.embedded.http.messages import BCS, JSON, HttpAnswer, encode, invalid_input
from toolkit.embedded.http.nesting import check_transaction_nesting
from toolkit.embedded.http.parsing import boolean_query, media_type, shown
from toolkit.embedded.http.reads import gas_estimate
from toolkit.embedded.http.verification import has_valid_signature
from toolkit.embedded.on_chain_data import simulation_bcs
from toolkit.embedded.transaction import Transaction
from toolkit.embedded.vm_status import VmError
from toolkit.errors import ToolkitError
from toolkit.move import parse_address, parse_type_tag
from toolkit.wire import SignedTransaction

if TYPE_CHECKING:
    from toolkit.embedded.http.messages import HttpCall
    from toolkit.embedded.http.node import EmbeddedNode

__all__ = ["SIGNED_TRANSACTION_BCS", "simulate"]

SIGNED_TRANSACTION_BCS = "application/x.aptos.signed_transaction+bcs"
_APT = parse_type_tag("0x1::aptos_coin::AptosCoin")


class _Overrides(NamedTuple):
    """The three options of the query."""

    max_gas: bool
    price: bool
    prioritized: bool


def simulate(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """Execute a transaction at the head; nothing is kept."""
    node.access.check_simulation()
    node.access.check_output(call, "Simulate transaction")
    overrides = _Overrides(
        boolean_query(call, "estimate_max_gas_amount"),
        boolean_query(call, "estimate_gas_unit_price"),
        boolean_query(call, "estimate_prioritized_gas_unit_price"),
    )
    if media_type(call, JSON, SIGNED_TRANSACTION_BCS) == JSON:
        signed = signed_from_json(node, call)
    else:
        signed = _from_bcs(call.body)
    node.access.check_sender(signed.raw.sender)
    if has_valid_signature(signed):
        invalid_input("Simulated transactions must not have a valid signature")
    try:
        transaction = Transaction(_override(node, signed, overrides))
    except ToolkitError as error:
        invalid_input(f"Simulated transaction invalid: {error}")
    if transaction.executable is None and transaction.multisig_address is None:
        invalid_input("Simulated transaction invalid: an empty payload needs a multisig address")
    version = node.chain.head
    output = node.ledger.simulate(transaction, check_keys=True)
    gas_used = output.charges.total_charge_gas_units
    if call.wants_bcs():
        encoded = simulation_bcs(transaction, output, state=node.chain.state, version=version)
        return HttpAnswer(encoded, media_type=BCS, gas_used=gas_used)
    answer = render.simulation_json(
        node.chain.code_at(version),
        transaction,
        output,
        version=version,
        timestamp_us=node.chain.blocks[-1].timestamp_us,
    )
    return HttpAnswer(encode([answer]), gas_used=gas_used)


def _from_bcs(body: bytes) -> SignedTransaction:
    try:
        signed = SignedTransaction.from_bcs(body)
        check_transaction_nesting(signed.raw.payload)
    except ToolkitError as error:
        invalid_input(f"Failed to deserialize input into SignedTransaction: {shown(error)}")
    return signed


def _override(node: EmbeddedNode, signed: SignedTransaction, overrides: _Overrides) -> SignedTransaction:
    """Replace price and gas limit where asked; the limit is what the sender could pay for."""
    raw = signed.raw
    if overrides.price or overrides.prioritized:
        estimate = gas_estimate(node)
        price = estimate["prioritized_gas_estimate" if overrides.prioritized else "gas_estimate"]
        raw = replace(raw, gas_unit_price=price)
    if overrides.max_gas:
        schedule = node.chain.schedule_at(node.chain.head)
        lowest = -(-schedule["txn.min_transaction_gas_units"] // schedule.scaling)
        affordable = _balance(node, raw.sender) // max(1, raw.gas_unit_price)
        limit = min(max(affordable, lowest), schedule["txn.maximum_number_of_gas_units"])
        raw = replace(raw, max_gas_amount=limit)
    return replace(signed, raw=raw)


def _balance(node: EmbeddedNode, address: str) -> int:
    """Return the sender's balance, by the view a node asks."""
    head = node.chain.head
    bound = node.chain.code_at(head).function(parse_address("0x1"), "coin", "balance", (_APT,))
    try:
        values, _ = run_view(node.chain.snapshot(head), bound, [address], (_APT,))
    except VmError as error:
        return invalid_input(error.view_message, vm_error_code=error.vm_error_code)
    return int(values[0])
