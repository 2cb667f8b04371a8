"""Requests: bodies in the wire's order, signatures of zeros, snippets that build the same request."""

from __future__ import annotations

import json
import pickle

import pytest

import toolkit
from toolkit.errors import InputError
from toolkit.wire import (
    Ed25519Signature,
    EntryFunction,
    FeePayerSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    Multisig,
    NoAccountSignature,
    PublicKey,
    Script,
    SimulationRequest,
    SingleKeySignature,
    SingleSenderSignature,
    TableItemRequest,
    ViewFunction,
)
from toolkit.wire._requests import UnknownPayload, canonical_request
from toolkit.wire._signatures import is_zero_padded

KEY = "0x" + "11" * 32
ACE = "0x" + "0" * 59 + "a11ce"
CALL = EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
PLAIN = SimulationRequest(CALL, sender="0xa11ce")
NUMBERS = {
    "sequence_number": 1,
    "max_gas_amount": 2_000,
    "gas_unit_price": 100,
    "expiration_timestamp_secs": 1_800_000_000,
}
REQUESTS = [
    PLAIN,
    SimulationRequest(CALL, sender="0x1", public_key=KEY),
    SimulationRequest(CALL, sender="0x1", public_key=PublicKey("0x04" + "22" * 64, type="secp256k1_ecdsa")),
    SimulationRequest(CALL, sender="0x1", public_key=MultiEd25519Signature([KEY] * 3, threshold=2)),
    SimulationRequest(CALL, sender="0x1", public_key=MultiKeySignature([PublicKey(KEY)] * 2, signatures_required=1)),
    SimulationRequest(CALL, sender="0x1", fee_payer="0x0"),
    SimulationRequest(CALL, sender="0x1", fee_payer="0x2", fee_payer_public_key=KEY, secondary_signers=["0x3"]),
    SimulationRequest(CALL, sender="0x1", secondary_signers=["0x3", "0x4"], secondary_public_keys=[None, KEY]),
    SimulationRequest(CALL, sender="0x1", signature=Ed25519Signature(KEY)),
    SimulationRequest(Script("0xa1", arguments=[b"\x00", 2**70]), sender="0x1", replay_protection_nonce=2**64 - 1),
    SimulationRequest(Multisig("0x9"), sender="0x1", sequence_number=7, max_gas_amount=5, gas_unit_price=6),
    SimulationRequest(
        Multisig("0x9", transaction_payload=CALL),
        sender="0x1",
        expiration_timestamp_secs=8,
        estimate_max_gas_amount=True,
        estimate_gas_unit_price=False,
        estimate_prioritized_gas_unit_price=True,
    ),
]


@pytest.mark.parametrize("request_", [*REQUESTS, CALL, ViewFunction("0x1::m::f", type_arguments=["u8"])])
def test_the_snippet_builds_the_same_request(request_) -> None:
    """What the button copies, run, equals the request."""
    assert eval(request_.to_python(), {"toolkit": toolkit}) == request_  # noqa: S307  # our own text


def test_the_snippet_leaves_defaults_out() -> None:
    """Short enough to read."""
    assert PLAIN.to_python() == (
        "toolkit.SimulationRequest(toolkit.EntryFunction('0x1::aptos_account::transfer', arguments=['0xb0b', 100]), "
        f"sender='{ACE}')"
    )


def test_hostile_text_stays_inside_its_quotes() -> None:
    """A snippet is code: text in it is a literal, whatever it holds."""
    call = EntryFunction("0x1::m::f", arguments=["'); import os #", "\x00\n\u202e", {"'": b"'"}])
    assert eval(call.to_python(), {"toolkit": toolkit}) == call  # noqa: S307  # that it stays a literal is the claim


def test_body_is_in_the_wires_order_and_has_no_key() -> None:
    """u64 are strings, the signature is the one without a key, and no other field is sent."""
    body = PLAIN.body(**NUMBERS)
    assert list(body) == [
        "sender",
        "sequence_number",
        "max_gas_amount",
        "gas_unit_price",
        "expiration_timestamp_secs",
        "payload",
        "signature",
    ]
    assert body["sequence_number"] == "1"
    assert body["expiration_timestamp_secs"] == "1800000000"
    assert body["signature"] == {"type": "no_account_signature"}
    assert json.loads(json.dumps(body)) == body


def test_own_numbers_win_and_the_nonce_stands_before_the_signature() -> None:
    """What a request says is not filled in."""
    request = SimulationRequest(CALL, sender="0x1", sequence_number=0, gas_unit_price="150", replay_protection_nonce=3)  # type: ignore[arg-type]  # digits are read too
    body = request.body(**NUMBERS)
    assert (body["sequence_number"], body["gas_unit_price"], body["max_gas_amount"]) == ("0", "150", "2000")
    assert list(body)[-2:] == ["replay_protection_nonce", "signature"]
    assert body["replay_protection_nonce"] == "3"


@pytest.mark.parametrize("request_", REQUESTS)
def test_whatever_is_sent_is_zeros(request_: SimulationRequest) -> None:
    """No request can carry a signature that is somebody's."""
    assert is_zero_padded(request_.signature_to_send())


@pytest.mark.parametrize(
    ("index", "kind", "needs_bcs"),
    [
        (0, NoAccountSignature, False),
        (1, Ed25519Signature, False),
        (2, SingleSenderSignature, True),
        (3, MultiEd25519Signature, False),
        (4, SingleSenderSignature, True),
        (5, FeePayerSignature, False),
        (6, FeePayerSignature, False),
        (7, MultiAgentSignature, False),
    ],
)
def test_signers_and_keys_make_the_shape(index: int, kind: type, *, needs_bcs: bool) -> None:
    """A fee payer, secondary signers and the kind of key decide; a signature without a JSON form is an error that says so."""
    request = REQUESTS[index]
    assert type(request.signature_to_send()) is kind
    assert request.needs_bcs is needs_bcs


def test_shapes_that_json_cannot_say_need_bcs() -> None:
    """A federated keyless key, or fewer multi-ed25519 signatures than keys, even inside another shape."""
    federated = PublicKey(bytes(32) + b"\x03iss\x20" + bytes(32), type="federated_keyless")
    fewer = MultiEd25519Signature([KEY, KEY], threshold=1, signatures=["0x" + "00" * 64])
    for key in (federated, SingleKeySignature(federated), fewer):
        assert SimulationRequest(CALL, sender="0x1", fee_payer="0x2", fee_payer_public_key=key).needs_bcs
        assert SimulationRequest(CALL, sender="0x1", secondary_signers=["0x3"], secondary_public_keys=[key]).needs_bcs


def test_missing_keys_are_no_signatures_in_order() -> None:
    """Each secondary signer keeps its place."""
    signature = REQUESTS[7].signature_to_send()
    assert isinstance(signature, MultiAgentSignature)
    assert signature.secondary_signer_addresses == ("0x3", "0x4")
    assert signature.secondary_signers == (NoAccountSignature(), Ed25519Signature(KEY))


def test_query_has_the_options_that_are_on() -> None:
    """Under the node's own names."""
    assert PLAIN.query() == {}
    assert REQUESTS[-1].query() == {
        "estimate_max_gas_amount": "true",
        "estimate_prioritized_gas_unit_price": "true",
    }


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (
            lambda: SimulationRequest(CALL, sender="0x1", secondary_signers=[hex(one) for one in range(2, 42)]),
            "expected at most 31 secondary signers (32 signers including the sender), got 40",
        ),
        (lambda: SimulationRequest(UnknownPayload({"type": "x"}), sender="0x1"), "expected an EntryFunction"),
        (
            lambda: SimulationRequest("0x1::m::f", sender="0x1"),
            "expected an EntryFunction, Script, Multisig or Batch, got",
        ),
        (lambda: SimulationRequest(CALL, sender="alice"), "SimulationRequest.sender: not an address: 'alice'"),
        (lambda: SimulationRequest(CALL, sender="0x1", gas_unit_price=-1), "gas_unit_price: expected an integer"),
        (lambda: SimulationRequest(CALL, sender="0x1", gas_unit_price=2**64), "from 0 to 2^64 - 1, got 184467"),
        (lambda: SimulationRequest(CALL, sender="0x1", gas_unit_price=1.0), "expected an integer, got 1.0"),
        (lambda: SimulationRequest(CALL, sender="0x1", gas_unit_price=True), "expected an integer, got True"),
        (lambda: SimulationRequest(CALL, sender="0x1", estimate_gas_unit_price="yes"), "estimate_gas_unit_price"),
        (lambda: SimulationRequest(CALL, sender="0x1", chain_id=1), "SimulationRequest.chain_id: SimulationRequest"),
        (
            lambda: SimulationRequest(CALL, sender="0x1", public_key=Ed25519Signature(KEY, signature="0x" + "01" * 64)),
            "contains a signature that is not all zeros",
        ),
        (
            lambda: SimulationRequest(CALL, sender="0x1", signature=Ed25519Signature(KEY, signature="0x" + "01" * 64)),
            "contains a signature that is not all zeros",
        ),
        (lambda: SimulationRequest(CALL, sender="0x1", public_key=5), "public_key: expected an ed25519 key in hex"),
        (
            lambda: SimulationRequest(CALL, sender="0x1", secondary_signers=["0x2"], secondary_public_keys=[KEY, KEY]),
            "expected 1 secondary_public_keys, one for each of the secondary_signers",
        ),
        (lambda: SimulationRequest(CALL, sender="0x1", fee_payer_public_key=KEY), "requires fee_payer"),
        (
            lambda: SimulationRequest(CALL, sender="0x1", fee_payer="0x2", signature=Ed25519Signature(KEY)),
            "cannot be combined with keys",
        ),
        (
            lambda: TableItemRequest("k", key_type="u64", value_type="vector<"),
            "TableItemRequest.value_type: type 'vector<'",
        ),
        (lambda: TableItemRequest(1.5, key_type="u64", value_type="u8"), "TableItemRequest.key: Move does not have"),
        (lambda: ViewFunction("0x1::m::f<u8>"), "pass type arguments in type_arguments"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_field(build, text: str) -> None:
    """Before anything is sent, with the field's name."""
    with pytest.raises(InputError) as raised:
        build()
    assert text in str(raised.value)


def test_table_item_and_view_bodies() -> None:
    """Field names are the wire's."""
    item = TableItemRequest({"a": b"\x01"}, key_type="0x1::guid::ID", value_type="vector< u8 >")
    assert item.to_wire() == {"key_type": "0x1::guid::ID", "value_type": "vector<u8>", "key": {"a": "0x01"}}
    view = ViewFunction("0x01::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    assert view.to_wire() == {
        "function": "0x1::coin::supply",
        "type_arguments": ["0x1::aptos_coin::AptosCoin"],
        "arguments": [],
    }


def test_canonical_form_leaves_out_what_changes_by_itself() -> None:
    """Expiration, sequence number and which nonce it was do not make another request; all else does."""
    same = [
        PLAIN.replace(sequence_number=5),
        PLAIN.replace(expiration_timestamp_secs=5),
        SimulationRequest(CALL.replace(arguments=["0xb0b", "100"]), sender="a11ce"),
    ]
    assert {canonical_request(request) for request in same} == {canonical_request(PLAIN)}
    nonces = {canonical_request(PLAIN.replace(replay_protection_nonce=nonce)) for nonce in (1, 2)}
    others = {canonical_request(request) for request in REQUESTS[1:]}
    assert len(nonces) == 1
    assert (
        len({canonical_request(PLAIN)} | nonces | others) == 1 + 1 + len(REQUESTS) - 1 - 1
    )  # one shape is spelled twice


def test_canonical_form_tells_the_kinds_apart() -> None:
    """A view and an entry function of one name are two requests."""
    view = ViewFunction(CALL.function, arguments=CALL.arguments)
    item = TableItemRequest("k", key_type="u64", value_type="u8")
    texts = [canonical_request(request) for request in (view, CALL, PLAIN, item)]
    assert len(set(texts)) == 4
    assert [json.loads(text)["kind"] for text in texts] == ["view", "entry_function", "simulation", "table_item"]


@pytest.mark.parametrize("request_", REQUESTS)
def test_requests_travel_to_other_processes(request_: SimulationRequest) -> None:
    """A study's tasks are pickled by executors."""
    assert pickle.loads(pickle.dumps(request_)) == request_  # noqa: S301  # our own bytes


def test_requests_are_frozen() -> None:
    """Nobody changes a request behind another's back."""
    with pytest.raises(ValueError, match="frozen"):
        PLAIN.sender = "0x2"  # type: ignore[misc]  # that it fails is the claim
