"""Committed transactions that are simulated again: requests of every kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolkit
from tests.unit.client.fakes import user_transaction
from toolkit import embedded
from toolkit.client._rebuilt import rebuild_request
from toolkit.errors import InputError
from toolkit.wire._signatures import is_zero_padded
from toolkit.wire._transactions import decode_transactions


@pytest.fixture
def fresh():
    """Return a ledger of this test's own, and its URL."""
    ledger = embedded.Ledger()
    with embedded.serve(ledger, port=0) as url:
        yield ledger, url


def test_only_user_transactions_can_be_simulated(node):
    """Other versions are refused with what to do."""
    with pytest.raises(InputError, match=r"version 0 is a genesis_transaction"):
        rebuild_request(node.transaction(0))


def test_a_multisig_payload_keeps_its_call(fresh):
    """The inner call of a multisig transaction is rebuilt with its arguments as Python values."""
    inner = {"type": "entry_function_payload", "function": "0x1::aptos_account::transfer", "type_arguments": []}
    payload = {
        "type": "multisig_payload",
        "multisig_address": "0x5afe",
        "transaction_payload": inner | {"arguments": ["0xb0b", "7"]},
    }
    with toolkit.connect(fresh[1], cache=None) as node:
        request, _ = rebuild_request(committed(payload=payload), lambda _: node.abis.at(0))
    assert request.payload.multisig_address == toolkit.wire.Multisig("0x5afe").multisig_address
    assert request.payload.transaction_payload.arguments[1] == 7


def committed(**fields: Any) -> Any:
    """Return a committed user transaction with these fields."""
    document = user_transaction(**fields) | {"type": "user_transaction"}
    [found] = decode_transactions(json.dumps(document).encode())
    return found


ED25519 = {"type": "ed25519_signature", "public_key": "0x" + "1" * 64, "signature": "0x" + "2" * 128}
KEYS = {
    "ed25519": ("0x" + "1" * 64, "0x" + "2" * 128, "ed25519"),
    "secp256k1_ecdsa": ("0x04" + "1" * 128, "0x" + "2" * 128, "secp256k1_ecdsa"),
    "secp256r1_ecdsa": ("0x04" + "1" * 128, "0x0001" + "2" * 62, "web_authn"),
    "keyless": ("0x03616263021111", "0x" + "2" * 64, "keyless"),
}


def single(kind: str) -> dict[str, Any]:
    """Return the signature of one typed key, as a node prints that of an account."""
    key, signature, of = KEYS[kind]
    return {
        "type": "single_key_signature",
        "public_key": {"type": kind, "value": key},
        "signature": {"type": of, "value": signature},
    }


MULTI_ED25519 = {
    "type": "multi_ed25519_signature",
    "public_keys": ["0x" + "1" * 64, "0x" + "3" * 64],
    "signatures": ["0x" + "2" * 128],
    "threshold": 1,
    "bitmap": "0x40000000",
}
MULTI_KEY = {
    "type": "multi_key_signature",
    "public_keys": [single("ed25519")["public_key"], single("secp256k1_ecdsa")["public_key"]],
    "signatures": [{"index": 1, "signature": single("secp256k1_ecdsa")["signature"]}],
    "signatures_required": 1,
}
ONE_SIGNER = [
    ED25519,
    MULTI_ED25519,
    MULTI_KEY,
    *(single(kind) for kind in KEYS),
    {"type": "no_account_signature"},
]


@pytest.mark.parametrize("signature", ONE_SIGNER, ids=lambda one: f"{one['type']} {one.get('public_key', '')!s:.30}")
def test_each_shape_of_signature_is_rebuilt_with_zeros(signature):
    """Alone, beside a second signer and with a fee payer: same keys and addresses, and every signature zeros."""
    agents = {
        "sender": signature,
        "secondary_signer_addresses": ["0xb0b"],
        "secondary_signers": [signature],
    }
    payer = {"fee_payer_address": "0x5", "fee_payer_signer": signature}
    alone = (
        signature
        if signature["type"].startswith(("ed25519", "multi_ed25519"))
        else signature | {"type": "single_sender"}
    )
    for whole in (alone, agents | {"type": "multi_agent_signature"}, agents | payer | {"type": "fee_payer_signature"}):
        transaction = committed(signature=whole)
        request, caveats = rebuild_request(transaction)
        assert [caveat.text[:15] for caveat in caveats] == ["sequence number"]
        assert is_zero_padded(request.signature)
        sent, had = request.signature_to_send(), transaction.signature
        assert type(sent) is type(had)
        assert _without_signatures(sent.to_wire()) == _without_signatures(had.to_wire())
        assert "2222" not in json.dumps(sent.to_wire())


def _without_signatures(document: Any) -> Any:
    match document:
        case dict():
            left = {name: value for name, value in document.items() if name not in {"signature", "signatures"}}
            return {name: _without_signatures(value) for name, value in left.items()}
        case list():
            return [_without_signatures(value) for value in document]
    return document


def test_a_signature_of_an_unknown_kind_is_left_out():
    """The other signers and the fee payer stay, without keys; the change is named."""
    strange = {"type": "signature_of_tomorrow", "x": "0x1"}
    whole = {
        "type": "fee_payer_signature",
        "sender": ED25519,
        "secondary_signer_addresses": [],
        "secondary_signers": [],
        "fee_payer_address": "0x5",
        "fee_payer_signer": strange,
    }
    request, caveats = rebuild_request(committed(signature=whole))
    assert request.signature.to_wire()["fee_payer_address"] == toolkit.wire.Multisig("0x5").multisig_address
    assert request.signature.to_wire()["fee_payer_signer"] == {"type": "no_account_signature"}
    assert "unknown kind" in caveats[0].text
    assert rebuild_request(committed(signature=strange))[0].signature.to_wire() == {"type": "no_account_signature"}


@pytest.mark.parametrize("kind", ["module_bundle_payload", "write_set_payload", "encrypted_transaction_payload"])
def test_payloads_that_no_node_simulates_are_refused(kind):
    """Payloads of the past and encrypted ones are refused by name."""
    with pytest.raises(InputError, match=f"is a {kind}, which nodes do not simulate"):
        rebuild_request(committed(payload={"type": kind, "modules": []}))
