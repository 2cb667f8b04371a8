"""Recorded requests to simulate as the toolkit's own requests."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import toolkit
from tests.conformance.recorded_node import Exchange
from toolkit.move import AbiMap, decode_bcs, parse_type_tag, resolve_layout
from toolkit.wire import SignedTransaction
from toolkit.wire._requests import parse_payload
from toolkit.wire._signatures import parse_signature

NUMBERS = (
    "sequence_number",
    "max_gas_amount",
    "gas_unit_price",
    "expiration_timestamp_secs",
    "replay_protection_nonce",
)


def request_of(exchange: Exchange, abis: AbiMap) -> toolkit.SimulationRequest:
    """Return the request that was sent, in JSON or BCS.

    Raises
    ------
    InputError, SchemaError
        If the toolkit refuses to make it.
    KeyError, TypeError
        If the body is not a request.
    """
    query = dict(parse_qsl(urlsplit(exchange.path).query))
    estimates = {name: value == "true" for name, value in query.items() if name.startswith("estimate_")}
    if exchange.sent is None:
        return _from_bcs(SignedTransaction.from_bcs(exchange.body), abis, estimates)
    sent = exchange.sent
    if not isinstance(sent, dict):
        raise TypeError(f"a request is an object: {exchange}")
    numbers = {name: int(sent[name]) for name in NUMBERS if sent.get(name) is not None}
    payload, signature = parse_payload(sent["payload"]), parse_signature(sent["signature"])
    return toolkit.SimulationRequest(payload, sender=sent["sender"], signature=signature, **numbers, **estimates)


def _from_bcs(signed: SignedTransaction, abis: AbiMap, estimates: dict[str, Any]) -> toolkit.SimulationRequest:
    raw = signed.raw
    call = getattr(raw.payload, "executable", raw.payload)
    module = abis.module_abi(call.function.address, call.function.module)
    kinds = [text for text in module.function(call.function.name).params if text not in {"&signer", "signer"}]
    layouts = [resolve_layout(parse_type_tag(text, abi=True), abis) for text in kinds]
    arguments = [decode_bcs(*pair) for pair in zip(layouts, call.arguments, strict=True)]
    payload = toolkit.EntryFunction(
        str(call.function), type_arguments=[str(tag) for tag in call.type_arguments], arguments=arguments
    )
    numbers = {name: getattr(raw, name, None) for name in NUMBERS}
    numbers["replay_protection_nonce"] = getattr(raw.payload, "replay_protection_nonce", None)
    return toolkit.SimulationRequest(payload, sender=raw.sender, signature=signed.signature, **numbers, **estimates)
