"""Drafts of requests: every request there is comes out of the form as it went in."""

from __future__ import annotations

import gzip
import json
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from msgspec.structs import replace

import toolkit
from toolkit.errors import InputError
from toolkit.gas._calls import Call
from toolkit.widgets import SimulationBuilder
from toolkit.widgets._fields import Findings
from toolkit.widgets._messages import NoProgram
from toolkit.widgets._programs import programs, request_as_study
from toolkit.widgets._simulation_builder import KeyDraft, SimulationDraft, read_request, write_request
from toolkit.wire import (
    AbstractSignature,
    Ed25519Signature,
    FeePayerSignature,
    IndexedSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    Multisig,
    NoAccountSignature,
    PublicKey,
    Script,
    SignedTransaction,
    SimulationRequest,
    SingleKeySignature,
    zero_padded,
)
from toolkit.wire._requests import parse_payload
from toolkit.wire._signatures import parse_signature

ALICE = "0xa11ce"
CALL = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
SCRIPT = Script("0xa11ceb0b", abi={"name": "main"}, type_arguments=["u64"], arguments=["5", b"\x01"])
KEY = "0x" + "11" * 32
NO_SIGNATURES = ["{}", "[]", "null", "0", '""', '{"type": 1}']
K1 = PublicKey("0x04" + "22" * 64, type="secp256k1_ecdsa")


def request(payload=CALL, **fields):
    return SimulationRequest(payload, sender=ALICE, **fields)


REQUESTS = {
    "entry function": request(),
    "types and bytes": request(
        toolkit.EntryFunction(
            "0x1::m::f", type_arguments=["vector<0x1::a::B<u8, T>>".replace("T", "u64")], arguments=[b"\x00", None, [1]]
        )
    ),
    "numbers as text": request(CALL.replace(arguments=("0xb0b", "100"))),
    "script": request(SCRIPT),
    "multisig entry": request(Multisig("0x5afe", transaction_payload=CALL)),
    "multisig script": request(Multisig("0x5afe", transaction_payload=SCRIPT)),
    "multisig stored": request(Multisig("0x5afe")),
    "sequence number": request(sequence_number=7),
    "nonce": request(replay_protection_nonce=2**64 - 1),
    "nonce and number": request(replay_protection_nonce=1, sequence_number=2),
    "expiration": request(expiration_timestamp_secs=1),
    "gas": request(max_gas_amount=5000, gas_unit_price=100),
    "gas and estimates": request(max_gas_amount=5000, estimate_max_gas_amount=True, estimate_gas_unit_price=False),
    "prioritized": request(estimate_prioritized_gas_unit_price=True, gas_unit_price=0),
    "fee payer": request(fee_payer="0x0"),
    "fee payer and amount": request(fee_payer="0xfee", fee_payer_public_key=KEY, max_gas_amount=9),
    "secondary": request(secondary_signers=["0xb0b", "0xca7"]),
    "secondary keys": request(secondary_signers=["0xb0b", "0xca7"], secondary_public_keys=[None, KEY]),
    "ed25519": request(public_key=KEY),
    "single key": request(public_key=PublicKey(KEY)),
    "single key secp256k1": request(public_key=K1),
    "multi-key": request(public_key=MultiKeySignature([PublicKey(KEY), K1], signatures_required=2)),
    "multi-key, the second signs": request(
        public_key=MultiKeySignature(
            [PublicKey(KEY), K1], signatures_required=1, signatures=[IndexedSignature(1, signature=K1.zero_signature())]
        )
    ),
    "multi-ed25519": request(public_key=MultiEd25519Signature([KEY, KEY], threshold=1)),
    "multi-ed25519, one signs": request(
        public_key=MultiEd25519Signature([KEY, KEY], threshold=1, signatures=[bytes(64)])
    ),
    "multi-ed25519, the second signs": request(
        public_key=MultiEd25519Signature([KEY, KEY], threshold=1, signatures=[bytes(64)], bitmap="0x40000000")
    ),
    "multi-ed25519, with a bit too many": request(
        public_key=MultiEd25519Signature([KEY, KEY], threshold=1, signatures=[bytes(64)], bitmap="0x60000000")
    ),
    "abstract": request(public_key=AbstractSignature("0x1::m::authenticate", auth_data="0x00")),
    "no signature, said": request(public_key=NoAccountSignature()),
    "whole signature": request(signature=Ed25519Signature(KEY)),
    "whole fee payer signature": request(
        signature=FeePayerSignature(
            SingleKeySignature(K1), fee_payer_address="0xfee", fee_payer_signer=Ed25519Signature(KEY)
        )
    ),
}


def filled_again(made):
    """Return the request of a draft that somebody else typed: nothing is known but the texts."""
    found = Findings()
    draft = msgspec.json.decode(msgspec.json.encode(write_request(made)), type=SimulationDraft)
    again = read_request(draft, None, None, found)
    assert (found.errors, found.missing) == ({}, {})
    return again


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_comes_out_of_the_form_as_it_went_in(node, memory, name):
    """Setting the request fills the form, and the form makes that request; nothing is asked of the node."""
    builder = SimulationBuilder(node)
    builder.request = REQUESTS[name]
    assert builder.request == REQUESTS[name]
    assert (builder.errors, memory.asked) == ({}, [])
    builder.set_state({"_draft": msgspec.to_builtins(builder._draft) | {"seq": 99, "expiration_timestamp_secs": "5"}})
    assert builder.request == REQUESTS[name].replace(expiration_timestamp_secs=5)
    builder.set_state({"_draft": msgspec.to_builtins(builder._draft) | {"seq": 100, "sender": "bob"}})
    assert builder.request == REQUESTS[name].replace(expiration_timestamp_secs=5)
    assert "sender" in builder.errors
    builder.close()


@pytest.mark.parametrize("name", REQUESTS)
def test_the_texts_of_the_form_make_a_request_that_sends_the_same(name):
    """Typed into an empty form, the texts give the same signature, payload and numbers."""
    made = REQUESTS[name]
    again = filled_again(made)
    assert again.sender == made.sender
    assert again.signature_to_send() == made.signature_to_send()
    assert again.query() == made.query() or made.estimate_gas_unit_price is False or made.query() == {}
    assert (again.max_gas_amount or made.max_gas_amount) == made.max_gas_amount
    assert again.payload.to_wire()["type"] == made.payload.to_wire()["type"]


@pytest.mark.parametrize("name", REQUESTS)
def test_the_python_executed_sends_an_equal_request(node, name):
    """What is copied is what is simulated, for every kind of request."""
    program = programs(REQUESTS[name], node)["Python"]
    made = program.replace("node = toolkit.connect()", "").rpartition("simulation =")[0]
    space = {}
    exec(compile(made, "copied", "exec"), space)  # noqa: S102
    assert space["request"] == REQUESTS[name]


@pytest.mark.parametrize("name", REQUESTS)
def test_the_json_is_what_is_sent(node, name):
    """The body parses; payload and signature are those of the request."""
    body = json.loads(programs(REQUESTS[name], node)["JSON"])
    assert body["signature"] == REQUESTS[name].signature_to_send().to_wire()
    assert body["payload"] == REQUESTS[name].payload.to_wire()


@pytest.mark.parametrize("name", REQUESTS)
def test_the_call_of_a_study_is_the_same_request(tmp_path, name):
    """The text is a study's call that simulates the request; or there is the reason why a study cannot describe it."""
    text = request_as_study(REQUESTS[name])
    if isinstance(text, NoProgram):
        with pytest.raises(InputError):
            Call.of(REQUESTS[name])
        return
    file = tmp_path / "study.toml"
    file.write_text(f'title = "x"\n\n[versions]\nplan = "0:1"\n\n{text}\n', "utf-8")
    [call] = toolkit.Study.load(file).calls
    made = call.request
    expected = Call.of(REQUESTS[name]).request
    assert made.replace(payload=CALL) == expected.replace(payload=CALL)
    assert made.payload.function == expected.payload.function


def recorded(shared_data, *names):
    """Return the requests of recorded simulations: of JSON bodies and of BCS ones."""
    for name in names:
        for line in gzip.decompress((shared_data / "oracle" / f"{name}.jsonl.gz").read_bytes()).splitlines():
            exchange = json.loads(line)
            if "/transactions/simulate" in exchange["path"] and exchange["body"]:
                yield exchange


def of_json(exchange):
    body = json.loads(exchange["body"]["text"])
    query = parse_qs(urlsplit(exchange["path"]).query)
    numbers = (
        "sequence_number",
        "max_gas_amount",
        "gas_unit_price",
        "expiration_timestamp_secs",
        "replay_protection_nonce",
    )
    estimates = {option: True for option, (value,) in query.items() if value == "true"}
    return SimulationRequest(
        parse_payload(body["payload"]),
        sender=body["sender"],
        signature=zero_padded(parse_signature(body["signature"])),
        **{name: int(body[name]) for name in numbers if body.get(name) is not None},
        **estimates,
    )


def of_bcs(exchange):
    """Return the request of a recorded BCS body; its arguments stay the bytes that they are."""
    signed = SignedTransaction.from_bcs(bytes.fromhex(exchange["body"]["hex"].removeprefix("0x")))
    raw = signed.raw
    types = [str(tag) for tag in raw.payload.type_arguments]
    call = toolkit.EntryFunction(str(raw.payload.function), type_arguments=types, arguments=raw.payload.arguments)
    return SimulationRequest(
        call,
        sender=raw.sender,
        signature=zero_padded(signed.signature),
        max_gas_amount=raw.max_gas_amount,
        gas_unit_price=raw.gas_unit_price,
        expiration_timestamp_secs=raw.expiration_timestamp_secs,
    )


def test_every_recorded_simulation_loads_and_comes_out_equal(shared_data, node, memory):
    """Requests of a real session: each fills the form, and the form makes an equal request, also after an edit."""
    builder, seen = SimulationBuilder(node), 0
    for exchange in recorded(shared_data, "simulations", "raw", "python_sdk", "ts_sdk"):
        try:
            made = of_json(exchange) if "text" in exchange["body"] else of_bcs(exchange)
        except (toolkit.errors.ToolkitError, KeyError, ValueError, TypeError, AttributeError):
            continue  # requests that were meant to be refused, and payloads that are not calls
        builder.request = made
        assert builder.request == made, exchange["id"]
        assert builder.errors == {}, exchange["id"]
        builder.set_state(
            {"_draft": msgspec.to_builtins(builder._draft) | {"seq": builder._draft.seq + 1, "sender": "0x7"}}
        )
        assert builder.request == made.replace(sender="0x7"), exchange["id"]
        again = filled_again(made)
        sent = dict.fromkeys(("sequence_number", "max_gas_amount", "gas_unit_price", "expiration_timestamp_secs"), 0)
        assert again.body(**sent)["signature"] == made.body(**sent)["signature"], exchange["id"]
        seen += 1
    builder.close()
    assert memory.asked == []
    assert seen > 120


@pytest.mark.parametrize("text", NO_SIGNATURES)
def test_a_signature_that_cannot_be_made_is_said_at_its_field(text):
    """Text that is not a signature is reported where it is typed; it is not dropped."""
    found = Findings()
    draft = replace(write_request(request()), sender_key=KeyDraft("json", json=text))
    assert read_request(draft, None, None, found) is None
    [(place, words)] = (found.errors | found.missing).items()
    assert place == "sender_key.json"
    assert "JSON object with a type" in words


@pytest.mark.parametrize("text", NO_SIGNATURES)
def test_json_that_is_not_a_signature_is_said(text):
    """A signature for the whole transaction is not dropped either."""
    found = Findings()
    draft = replace(write_request(request()), signature="json", signature_json=text)
    assert read_request(draft, None, None, found) is None
    assert "JSON object with a type" in found.errors["signature_json"]
