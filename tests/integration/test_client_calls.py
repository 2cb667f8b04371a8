"""Views, table items and simulations on the embedded node: encodings, header brands, pace, signatures, ABIs."""

from __future__ import annotations

import msgspec
import pytest

import toolkit
from toolkit import embedded
from toolkit.client._http import Pace
from toolkit.wire import (
    Ed25519Signature,
    MultiEd25519Signature,
    MultiKeySignature,
    PublicKey,
    SingleKeySignature,
)

APT = "0x1::aptos_coin::AptosCoin"
TRANSFER = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
VIEWS = [
    toolkit.ViewFunction("0x1::coin::supply", type_arguments=[APT]),
    toolkit.ViewFunction("0x1::coin::balance", type_arguments=[APT], arguments=["0xa11ce"]),
    toolkit.ViewFunction("0x1::coin::name", type_arguments=[APT]),
    toolkit.ViewFunction("0x1::coin::decimals", type_arguments=[APT]),
    toolkit.ViewFunction("0x1::account::exists_at", arguments=["0xa11ce"]),
    toolkit.ViewFunction("0x1::timestamp::now_microseconds"),
    toolkit.ViewFunction("0x1::chain_id::get"),
    toolkit.ViewFunction("0xcafe::registry::size"),
    toolkit.ViewFunction("0xb00c::order_book::depth"),
]
KEY, OTHER = "0x" + "ab" * 32, "0x" + "cd" * 32
SECP = PublicKey("0x04" + "ab" * 64, type="secp256k1_ecdsa")
SHAPES = {
    "nothing": {},
    "ed25519 key": {"public_key": KEY},
    "ed25519": {"public_key": Ed25519Signature(KEY)},
    "multi ed25519": {"public_key": MultiEd25519Signature([KEY, OTHER], threshold=1)},
    "single key": {"public_key": SingleKeySignature(SECP)},
    "key with a kind": {"public_key": SECP},
    "multi key": {"public_key": MultiKeySignature([PublicKey(KEY), SECP], signatures_required=1)},
    "multi agent": {"secondary_signers": ["0xb0b"]},
    "multi agent with keys": {
        "public_key": KEY,
        "secondary_signers": ["0xb0b"],
        "secondary_public_keys": [SingleKeySignature(SECP)],
    },
    "fee payer": {"fee_payer": "0xb0b"},
    "fee payer with keys": {"public_key": KEY, "fee_payer": "0xb0b", "fee_payer_public_key": OTHER},
    "fee payer and second signer": {"fee_payer": "0xb0b", "secondary_signers": ["0xb0b"]},
    "nobody pays": {"fee_payer": "0x0"},
    "orderless": {"replay_protection_nonce": 77},
    "prioritised": {"estimate_prioritized_gas_unit_price": True},
    "everything given": {
        "sequence_number": 10**6,
        "max_gas_amount": 5_000,
        "gas_unit_price": 150,
        "expiration_timestamp_secs": 4_000_000_000,
    },
}


@pytest.fixture(scope="module")
def server():
    with embedded.start(embedded.Ledger.with_history(seed=7, versions=800, cache=True)) as running:
        yield running


@pytest.fixture(scope="module")
def node(server):
    with toolkit.connect(server.url) as one:
        yield one


def test_missing_deleted_and_pruned_items_are_told_apart():
    """One key that never was, one that was removed, and versions that are gone."""
    ledger = embedded.Ledger.with_history(seed=7, versions=800, cache=True)
    with embedded.serve(ledger, port=0) as url, toolkit.connect(url) as node:
        handle = node.resource("0xcafe", "0xcafe::registry::Registry")["records"]["handle"]
        keys = toolkit.table_keys(
            toolkit.fetch_transactions(node, versions="0:", progress=False), handle, key_type="0x1::string::String"
        )
        removed = keys[keys["deleted"]].iloc[0]
        before, after = int(removed["first_version"]), int(removed["last_version"])
        asked = {"key_type": "0x1::string::String", "value_type": "0xcafe::registry::Record", "progress": False}
        options = {"keys": [removed["key"], "never there"], "versions": [before - 1, before, after, 799]}
        frame = toolkit.fetch_table_items(node, handle, **options, **asked)
        assert frame["presence"].tolist() == ["missing", "present", "deleted", "deleted", *["missing"] * 4]
    ledger = embedded.Ledger.with_history(seed=7, versions=800, window=100, cache=True)
    with embedded.serve(ledger, port=0) as url, toolkit.connect(url) as node:
        frame = toolkit.fetch_table_items(node, handle, **options, **asked)
    assert frame["presence"].tolist() == [*["pruned"] * 3, "missing"] * 2  # of the last one nothing earlier is known


def test_the_brand_of_the_headers_does_not_matter():
    """A node of another maker is read as any: head, gas and types."""
    ledger = embedded.Ledger.with_history(versions=200, cache=True)
    with embedded.serve(ledger, port=0, brand="SVC") as url, toolkit.connect(url) as node:
        assert node.ledger().version == 199
        result = node.view(VIEWS[0], ledger_version=150)
        assert result.gas_used > 0
        assert result.ledger.version == 199
        frame = toolkit.fetch_views(node, VIEWS[0], versions="100:110", progress=False)
    assert frame["gas_used"].notna().all()
    assert set(frame["head_version"]) == {199}


def test_what_is_kept_waits_for_no_turn(server, monkeypatch):
    """The pace is below the cache: only what is asked takes turns, by both roads from one pace."""
    with toolkit.connect(server.url, requests_per_second=10_000) as node:
        toolkit.fetch_views(node, VIEWS[1], versions="700:719", progress=False)
        node.view(VIEWS[1], ledger_version=720)
        turns = []
        monkeypatch.setattr(Pace, "turn_s", lambda self: turns.append(self) or 0.0)
        toolkit.fetch_views(node, VIEWS[1], versions=list(range(700, 721)), progress=False)
        assert [node.view(VIEWS[1], ledger_version=version).ledger_version for version in (700, 720)] == [700, 720]
        kept = len(turns)
        toolkit.fetch_views(node, VIEWS[1], versions=list(range(721, 731)), progress=False)
        node.view(VIEWS[1], ledger_version=731)
    assert kept == 4  # the head for the plan, the anchor of the fetch before, the own anchor, and that again at the end
    assert len(turns) >= kept + 12
    assert len(set(map(id, turns))) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_signature_is_simulated(node, shape):
    """Signatures without a JSON form are sent as BCS automatically; the outcome is the transaction's, not a refusal."""
    sim = node.simulate(toolkit.SimulationRequest(TRANSFER, sender="0xa11ce", **SHAPES[shape]))
    if shape == "everything given":
        assert (sim.success, sim.vm_status) == (False, "SEQUENCE_NUMBER_TOO_NEW")
        assert sim.affordable_max_gas is None
    elif "key" in shape or "ed25519" in shape:  # understood, and judged: these invented keys are not the account's
        assert (sim.success, sim.vm_status) == (False, "INVALID_AUTH_KEY")
    elif "second" in shape or "agent" in shape:
        assert sim.transaction.sender.endswith("a11ce")
    else:
        assert sim.success, sim.vm_status
        assert sim.gas.reconciles
        assert {name[-5:] for name in sim.balance_changes["owner"]} >= {"a11ce", "00b0b"}


def test_abis_of_ones_own_come_first(server):
    """What a given ABI does not tell, a private view say, is called as given, and its answer is untyped."""
    with toolkit.connect(server.url) as node:
        true = node.module("0xcafe", "registry")
    hidden = {("0xcafe", "registry"): msgspec.structs.replace(true, exposed_functions=())}
    with toolkit.connect(server.url, abis=hidden) as node:
        result = node.view("0xcafe::registry::size", ledger_version=700)
        assert result.typing == "inferred"
        assert result.types == ()
        assert isinstance(result.value, str)
        frame = toolkit.fetch_views(
            node, toolkit.ViewFunction("0xcafe::registry::size"), versions=[700], progress=False
        )
    assert str(frame["value"].dtype) == "string"


def test_fetch_functions_take_the_same_options():
    """Versions are positional or a keyword; the times of events are always known."""
    with toolkit.connect(cache=None) as node:
        types = {"key_type": "u64", "value_type": "bool", "progress": False}
        placed = toolkit.fetch_table_items(node, "0xa", [1], [5, 6], **types)
        named = toolkit.fetch_table_items(node, "0xa", [1], versions=[5, 6], **types)
        assert placed["ledger_version"].tolist() == named["ledger_version"].tolist() == [5, 6]
        fees = "0x1::transaction_fee::FeeStatement"
        events = toolkit.fetch_events(node, fees, versions="4000:4010", progress=False)
        assert events["ledger_timestamp"].notna().all()
