"""Every recorded committed transaction as the request that simulates it again, and recorded pairs of both."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

import toolkit
from tests.conformance.plain_bcs import signed_bytes
from tests.conformance.recorded_node import Exchange
from toolkit.client._abis import function_abi, parameter_layouts
from toolkit.client._rebuilt import rebuild_request, simulated_again
from toolkit.move import AbiMap, resolve_layout
from toolkit.wire import RawTransaction, Script, SignedTransaction, TransactionSignature, UserTransaction, zero_padded
from toolkit.wire._bcs_requests import signed_transaction
from toolkit.wire._signatures import is_zero_padded
from toolkit.wire._transactions import decode_transactions

OTHER_NONCE = 1 << 63


@dataclass(frozen=True)
class Modules:
    """The modules of a version as the client looks them up."""

    abis: AbiMap

    def module_abi(self, address: str, name: str) -> Any:
        return self.abis.module_abi(address, name)

    def layout(self, tag: Any) -> Any:
        return resolve_layout(tag, self.abis)


def as_sent(request: toolkit.SimulationRequest, document: dict[str, Any], modules: Modules) -> SignedTransaction:
    """Return a rebuilt request in BCS, with the committed sequence number, expiration and nonce."""
    payload = request.payload
    function = function_abi(payload.function, modules)
    assert function is not None
    layouts = parameter_layouts(function, payload.type_arguments, modules)
    nonce = document["replay_protection_nonce"]
    numbers = {"sequence_number": int(document["sequence_number"]), "replay_protection_nonce": nonce and int(nonce)}
    # The others are the request's own: it must have them.
    return signed_transaction(
        request.replace(expiration_timestamp_secs=int(document["expiration_timestamp_secs"]), **numbers),
        chain_id=4,
        sequence_number=0,
        max_gas_amount=0,
        gas_unit_price=0,
        expiration_timestamp_secs=0,
        layouts=layouts,
    )


def without_signatures(document: Any) -> Any:
    """Return the JSON of a signature with zeros."""
    match document:
        case dict():
            zeros = {"signature": "0x" + "0" * 128} if isinstance(document.get("signature"), str) else {}
            return {name: without_signatures(value) for name, value in document.items()} | zeros
        case list():
            return [without_signatures(value) for value in document]
    return document


def committed(exchange: Exchange) -> list[dict[str, Any]]:
    """Return the committed user transactions of an answer."""
    if exchange.method != "GET" or exchange.status != 200 or not exchange.path.startswith("/v1/transactions"):
        return []
    found = exchange.json
    return [one for one in (found if isinstance(found, list) else [found]) if one["type"] == "user_transaction"]


def test_every_committed_transaction_is_rebuilt_with_the_meaning_it_had(recordings, abis):
    """Payload, sender, limits and shape of the signature are those committed, byte by byte, with zeros as signatures.

    The bytes come from the slow and obvious way, which has nothing of the package in it; scripts and typed keys, which
    that leaves out, are compared by their parts.
    """
    documents = {
        one["hash"]: one for exchange in recordings.of("history", "series", "ts_sdk") for one in committed(exchange)
    }
    kinds: Counter[str] = Counter()
    for document in documents.values():
        [transaction] = decode_transactions(json.dumps(document).encode())
        version = transaction.version
        modules = Modules(abis(version))
        request, caveats = rebuild_request(transaction, lambda version: Modules(abis(version)))
        assert [caveat.parts for caveat in caveats] == [frozenset()]
        assert request.signature is not None
        assert is_zero_padded(request.signature)
        assert (request.sequence_number, request.expiration_timestamp_secs) == (None, None)
        zeroed = document | {"signature": without_signatures(document["signature"])}
        if document["replay_protection_nonce"] is not None:
            zeroed["sequence_number"] = str(2**64 - 1)  # how the toolkit and a node print that there is none
        kinds[document["signature"]["type"]] += 1
        if document["payload"]["type"] == "script_payload":
            kinds["script"] += 1
            assert isinstance(request.payload, Script)
            assert request.payload.to_wire() == document["payload"]
            sent = request.body(sequence_number=1, max_gas_amount=1, gas_unit_price=1, expiration_timestamp_secs=1)
            assert {name: sent[name] for name in ("max_gas_amount", "gas_unit_price")} == {
                name: document[name] for name in ("max_gas_amount", "gas_unit_price")
            }
            continue
        sent = as_sent(request, document, modules)
        if document["signature"]["type"] == "single_sender":
            assert sent.signature == zero_padded(transaction.signature)
            absent = {"type": "no_account_signature"}
            zeroed["signature"], sent = absent, SignedTransaction(sent.raw, toolkit.wire.NoAccountSignature())
        parameters = partial(_parameters, recordings.longer_history, version)
        assert sent.to_bcs() == signed_bytes(zeroed, parameters, 4), document["version"]
        if document["replay_protection_nonce"] is not None:
            kinds["orderless"] += 1
            assert request.replay_protection_nonce == int(document["replay_protection_nonce"]) ^ OTHER_NONCE
    assert kinds["ed25519_signature"] > 700
    assert kinds["multi_agent_signature"] == 1
    assert min(kinds[name] for name in ("fee_payer_signature", "single_sender", "orderless", "script")) >= 1


def with_any_number(raw: RawTransaction) -> RawTransaction:
    """Return a transaction as a node reads it: beside a nonce the sequence number means nothing."""
    orderless = getattr(raw.payload, "replay_protection_nonce", None) is not None
    return replace(raw, sequence_number=0) if orderless else raw


def _parameters(history: Any, version: int, function: str) -> list[str]:
    found = history.function(function, version)
    if found is None:
        raise KeyError(function)
    return list(found["params"])


class Pair:
    """A simulation that was recorded just before the same transaction was submitted, and what was committed."""

    def __init__(self, simulated: Exchange, submitted: Exchange, document: dict[str, Any]) -> None:
        self.simulated, self.submitted, self.document = simulated, submitted, document

    @property
    def transaction(self) -> UserTransaction:
        [found] = decode_transactions(json.dumps(self.document).encode())
        assert isinstance(found, UserTransaction)
        return found


@pytest.fixture(scope="session")
def pairs(recordings) -> list[Pair]:
    """Return what the published SDK simulated, then submitted, and what the node committed."""
    exchanges = recordings.of("ts_sdk")
    documents = {one["hash"]: one for exchange in exchanges for one in committed(exchange)}
    found, last = [], None
    for exchange in exchanges:
        if exchange.path.startswith("/v1/transactions/simulate"):
            last = exchange
        if exchange.path == "/v1/transactions" and exchange.status == 202 and last is not None:
            document = documents.get(exchange.json["hash"])
            if document is not None:
                found.append(Pair(last, exchange, document))
            last = None
    return found


def test_what_is_rebuilt_is_what_was_submitted(pairs, abis):
    """From the committed JSON alone, the bytes that the SDK submitted come back, but for the signatures."""
    assert len(pairs) >= 21
    for pair in pairs:
        submitted = SignedTransaction.from_bcs(pair.submitted.body)
        version = pair.transaction.version
        request, _ = rebuild_request(pair.transaction, lambda version: Modules(abis(version)))
        sent = as_sent(request, pair.document, Modules(abis(version)))
        assert with_any_number(sent.raw) == with_any_number(submitted.raw), pair.document["version"]
        assert in_json(sent.signature) == in_json(zero_padded(submitted.signature)), pair.document["version"]


def in_json(signature: TransactionSignature) -> Any:
    """Return a signature as JSON, which does not have the length of the bitmap of several keys."""
    return signature.to_wire()


def test_a_recorded_transaction_through_the_client(recordings, recorded_node, node):
    """The request goes out as rebuilt, and a node that refuses it raises its own words."""
    version = next(
        int(one["version"])
        for one in recordings.history.transactions
        if one["type"] == "user_transaction" and one["signature"]["type"] == "ed25519_signature"
    )
    transaction = node.transaction(version)
    request, _ = rebuild_request(transaction, node.abis.at)
    with pytest.raises(toolkit.NotFound, match="not recorded"):  # nobody simulated it again while it was recorded
        simulated_again(node, transaction)
    sent = recorded_node.received[-1].json
    assert sent["payload"] == request.payload.to_wire() | {
        "arguments": recordings.history.transactions[version]["payload"]["arguments"]
    }
    assert sent["max_gas_amount"] == recordings.history.transactions[version]["max_gas_amount"]
