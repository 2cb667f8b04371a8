"""``POST /v1/transactions/simulate`` (wire facts, section 4): execute at the head, answer what would happen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.embedded import render
from toolkit.embedded.execution import run_view
from toolkit.embedded.http.answers import Answer, encode, explained, invalid_input
from toolkit.embedded.http.calls import bind, plain_arguments, type_tag
from toolkit.embedded.http.parsing import Fields, boolean_query, json_body, shown
from toolkit.embedded.http.reads import gas_estimate
from toolkit.embedded.outcomes import VmError
from toolkit.embedded.transaction import EntryCall, Transaction
from toolkit.errors import ToolkitError
from toolkit.move import parse_address, parse_type_tag
from toolkit.move.bcs import encode_bcs
from toolkit.wire.signature_reader import parse_signature
from toolkit.wire.signatures import FeePayerSignature, MultiAgentSignature, UnknownSignature

if TYPE_CHECKING:
    from toolkit.embedded.http.answers import Call
    from toolkit.embedded.http.node import Node

__all__ = ["simulate"]

_INVALID = "Failed to create SignedTransaction from SubmitTransactionRequest: "
_APT = parse_type_tag("0x1::aptos_coin::AptosCoin")
_MODEL = "SubmitTransactionRequest"


def simulate(node: Node, call: Call) -> Answer:
    """Execute a transaction at the head; nothing is kept."""
    body = json_body(call, _MODEL)
    inner = Fields(body.value, ("UserTransactionRequestInner", _MODEL))
    overrides = _Overrides(
        boolean_query(call, "estimate_max_gas_amount"),
        boolean_query(call, "estimate_gas_unit_price"),
        boolean_query(call, "estimate_prioritized_gas_unit_price"),
    )
    transaction = _override(node, _transaction(node, inner), overrides)
    version = node.chain.head
    output, hash_ = node.ledger.simulate(transaction)
    answer = render.simulation_json(
        node.chain.code_at(version),
        transaction,
        output,
        version=version,
        hash_=hash_,
        timestamp_us=node.chain.blocks[-1].timestamp_us,
    )
    return Answer(encode([answer]), gas_used=output.charges.total_charge_gas_units)


def _transaction(node: Node, fields: Fields) -> Transaction:
    """Read the body: shape first, then what it means."""
    sender = fields.address("sender")
    sequence_number = fields.u64("sequence_number")
    max_gas_amount = fields.u64("max_gas_amount")
    gas_unit_price = fields.u64("gas_unit_price")
    expiration = fields.u64("expiration_timestamp_secs")
    payload = fields.object("payload", "TransactionPayload")
    nonce = fields.optional_u64("replay_protection_nonce")
    signature = fields.object("signature", "TransactionSignature").value
    signers, fee_payer = _signers(fields, signature)
    return Transaction(
        sender=sender,
        sequence_number=sequence_number,
        payload=_entry_call(node, payload),
        max_gas_amount=max_gas_amount,
        gas_unit_price=gas_unit_price,
        expiration_timestamp_secs=expiration,
        chain_id=node.chain.chain_id,
        replay_protection_nonce=nonce,
        secondary_signers=signers,
        fee_payer=fee_payer,
        signature=dict(signature),
    )


def _entry_call(node: Node, payload: Fields) -> EntryCall:
    """Read a payload that calls an entry function."""
    kind = payload.text("type", "string")
    if kind == "module_bundle_payload":
        invalid_input(f"{_INVALID}Failed to parse transaction payload: Module bundle payload has been removed")
    if kind != "entry_function_payload":
        payload.fail(f'Expected input type "TransactionPayload", found {shown(encode(payload.value).decode())}.')
    payload = Fields(
        payload.value, ("EntryFunctionPayload", "TransactionPayload", "UserTransactionRequestInner", _MODEL)
    )
    function = payload.function("function")
    texts = payload.texts("type_arguments", "string(MoveType)")
    arguments = payload.array("arguments", "[Value]")
    with explained(f"{_INVALID}Failed to parse transaction payload: "):
        tags = tuple(type_tag(text) for text in texts)
        bound = bind(node.chain.code_at(node.chain.head), function, tags, kind="entry")
        if not bound.function.mark.is_entry:
            invalid_input(f"could not find entry function by {function.wire}")
        plain = plain_arguments(bound, arguments)
    encoded = tuple(map(encode_bcs, bound.parameters, plain))
    return EntryCall(function.address, function.module, function.name, tags, encoded)


def _signers(fields: Fields, signature: Any) -> tuple[tuple[str, ...], str | None]:
    """Return secondary signers and fee payer; the signature's structure is checked on the way."""
    try:
        parsed = parse_signature(signature)
    except ToolkitError as error:
        return invalid_input(f"Simulated transaction invalid: {error}")
    if isinstance(parsed, UnknownSignature):
        fields.fail(f'Expected input type "TransactionSignature", found {shown(encode(signature).decode())}.')
    if isinstance(parsed, FeePayerSignature | MultiAgentSignature):
        others = tuple(parse_address(address) for address in parsed.secondary_signer_addresses)
        payer = parse_address(parsed.fee_payer_address) if isinstance(parsed, FeePayerSignature) else None
        return others, payer
    return (), None


class _Overrides(NamedTuple):
    """The three options of a simulation's query."""

    max_gas: bool
    price: bool
    prioritized: bool


def _override(node: Node, transaction: Transaction, overrides: _Overrides) -> Transaction:
    """Replace price and gas limit where asked; the limit is what the sender could pay for."""
    if overrides.price or overrides.prioritized:
        estimate = gas_estimate(node)
        price = estimate["prioritized_gas_estimate" if overrides.prioritized else "gas_estimate"]
        transaction = replace(transaction, gas_unit_price=price)
    if overrides.max_gas:
        schedule = node.chain.schedule_at(node.chain.head)
        lowest = -(-schedule["txn.min_transaction_gas_units"] // schedule.scaling)
        affordable = _balance(node, transaction.sender) // max(1, transaction.gas_unit_price)
        limit = min(max(affordable, lowest), schedule["txn.maximum_number_of_gas_units"])
        transaction = replace(transaction, max_gas_amount=limit)
    return transaction


def _balance(node: Node, address: str) -> int:
    """Return the sender's balance, by the view a node asks."""
    head = node.chain.head
    bound = node.chain.code_at(head).function(parse_address("0x1"), "coin", "balance", (_APT,))
    try:
        values, _ = run_view(node.chain.snapshot(head), bound, [address], (_APT,))
    except VmError as error:
        return invalid_input(error.view_message, vm_error_code=error.vm_error_code)
    return int(values[0])
