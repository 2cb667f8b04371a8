"""Simulations: what a request leaves open is filled from the node; signatures without a JSON form go as BCS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.client.arguments import encode_arguments, parameter_layouts
from toolkit.client.connection import json_body
from toolkit.client.context import JSON, Context, function_abi
from toolkit.client.prepared import Prepared
from toolkit.client.results import Simulation
from toolkit.errors import Forbidden, NotFound, SchemaError
from toolkit.wire import EntryFunction, Multisig, decode_simulation, signed_transaction
from toolkit.wire._models import wire_argument
from toolkit.wire._rows import check_transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client.abis import AbisAt
    from toolkit.client.http import Answer
    from toolkit.move import Layout
    from toolkit.wire import LedgerState, SimulationRequest

__all__ = ["prepare_simulation"]

EXPIRATION_MARGIN_S = 600
"""Seconds after the ledger's time at which a simulated transaction expires, unless the request says."""

_BCS_REQUEST = "application/x.aptos.signed_transaction+bcs"
_PLACEHOLDER_PRICE = 100
_PLACEHOLDER_MAX_GAS = 2_000_000
"""Sent where the node is asked to put its own estimate in; octas per gas unit, and gas units."""


def prepare_simulation(context: Context, request: SimulationRequest) -> Prepared[Simulation]:
    """Make a simulation ready to be sent; reads the node's head and, where needed, the sender's sequence number.

    Raises
    ------
    InputError, SchemaError
        If the request does not fit the function's ABI.
    """
    ledger = context.companion.info().ledger
    abis = context.abis.at(ledger.version)
    asking = _with_estimates(request)
    numbers = {
        "sequence_number": _sequence_number(context, request),
        "max_gas_amount": _PLACEHOLDER_MAX_GAS,
        "gas_unit_price": _PLACEHOLDER_PRICE,
        "expiration_timestamp_secs": int(ledger.timestamp.timestamp()) + EXPIRATION_MARGIN_S,
    }
    if request.needs_bcs:
        body, content = _bcs_body(asking, abis, ledger, numbers), _BCS_REQUEST
    else:
        encoded = asking.replace(payload=_json_payload(request.payload, abis))
        body, content = json_body(encoded.body(**numbers)), JSON

    def finish(answer: Answer) -> Simulation:
        headers = context.headers(answer)
        transactions = decode_simulation(answer.body)
        if len(transactions) != 1:
            raise SchemaError(f"a simulation answers one transaction, this answer has {len(transactions)}")
        check_transaction(transactions[0])
        then = context.abis.at(transactions[0].version)
        return Simulation(request, transactions[0], headers.ledger, then, context.companion)

    sent = context.post("/transactions/simulate", body, query=asking.query(), content=content)
    return Prepared(sent, f"simulate {_payload_name(request.payload)} from {request.sender}", finish)


def _with_estimates(request: SimulationRequest) -> SimulationRequest:
    """Ask the node for the price and max gas that the request leaves open.

    The max gas estimate is made from the sender's balance even where another account pays, so it is not asked
    for then: the placeholder, which every chain's schedule allows, stands.
    """
    filled: dict[str, bool] = {}
    if request.estimate_gas_unit_price is None:
        filled["estimate_gas_unit_price"] = request.gas_unit_price is None
    if request.estimate_max_gas_amount is None:
        filled["estimate_max_gas_amount"] = request.max_gas_amount is None and request.fee_payer is None
    return request.replace(**filled)


def _sequence_number(context: Context, request: SimulationRequest) -> int:
    if request.sequence_number is not None:
        return request.sequence_number
    if request.replay_protection_nonce is not None:
        return 0
    try:
        return context.companion.account(request.sender).sequence_number
    except (NotFound, Forbidden):  # no such account yet, or the node does not offer the read: the number of a first one
        return 0


def _json_payload(payload: Any, abis: AbisAt) -> Any:
    """Return the payload with its arguments in the node's JSON forms, where it calls a function with an ABI."""
    if isinstance(payload, Multisig) and isinstance(payload.transaction_payload, EntryFunction):
        return payload.replace(transaction_payload=_json_payload(payload.transaction_payload, abis))
    if not isinstance(payload, EntryFunction):
        return payload
    function = function_abi(payload.function, abis)
    if function is None:
        arguments = wire_argument(list(payload.arguments))
    else:
        arguments = encode_arguments(function, payload.type_arguments, payload.arguments, abis, where=payload.function)
    return payload.replace(arguments=tuple(arguments))


def _bcs_body(request: SimulationRequest, abis: AbisAt, ledger: LedgerState, numbers: dict[str, int]) -> bytes:
    layouts = _payload_layouts(request.payload, abis)
    return signed_transaction(request, chain_id=ledger.chain_id, layouts=layouts, **numbers).to_bcs()


def _payload_layouts(payload: Any, abis: AbisAt) -> Sequence[Layout] | None:
    inner = payload.transaction_payload if isinstance(payload, Multisig) else payload
    if not isinstance(inner, EntryFunction):
        return None
    function = function_abi(inner.function, abis)
    return None if function is None else parameter_layouts(function, inner.type_arguments, abis)


def _payload_name(payload: Any) -> str:
    return payload.function if isinstance(payload, EntryFunction) else f"a {type(payload).__name__} payload"
