"""Whether a transaction worked and what it called: of multisig accounts, whose ledger says so only in an event."""

from __future__ import annotations

import json

import pytest

import toolkit
from toolkit import embedded
from toolkit.move import Address, UInt, encode_bcs

SAFE_EVENT = "0x1::multisig_account::TransactionExecution"
CODE = 0x10004  # of a store without enough coins


def stored_transfer(receiver: str, amount: int) -> bytes:
    """Return the stored form of a transfer."""

    def text(name: str) -> bytes:
        return bytes([len(name)]) + name.encode()

    arguments = [encode_bcs(Address(), receiver), encode_bcs(UInt(64), amount)]
    call = encode_bcs(Address(), "0x1") + text("aptos_account") + text("transfer") + b"\0" + bytes([len(arguments)])
    return b"\0" + call + b"".join(bytes([len(one)]) + one for one in arguments)


class Safe:
    """A ledger with a multisig account that runs stored transfers, the second of which fails."""

    def __init__(self) -> None:
        self.ledger = embedded.Ledger()
        self.node = toolkit.connect(self.ledger)
        made = self.ledger.commit("0x1::multisig_account::create_with_owners", [], 1, [], [], sender="0xa11ce").version
        changes = toolkit.fetch_transactions(self.node, f"{made}:{made}", progress=False).changes
        mine = changes[changes["resource_type"] == "0x1::multisig_account::MultisigAccount"]
        self.address = mine["address"].iloc[0]
        self.ledger.fund(self.address, 100)
        self.versions = [self.run(amount) for amount in (60, 60, 30)]

    def propose(self, amount: int) -> None:
        propose = "0x1::multisig_account::create_transaction"
        self.ledger.commit(propose, self.address, stored_transfer("0xb0b", amount), sender="0xa11ce")

    def run(self, amount: int) -> int:
        self.propose(amount)
        return self.ledger.execute(toolkit.Multisig(self.address), sender="0xa11ce").version


@pytest.fixture(scope="module")
def safe() -> Safe:
    return Safe()


@pytest.fixture(scope="module")
def frames(safe):
    return toolkit.fetch_transactions(safe.node, safe.versions, progress=False)


def test_a_payload_that_fails_is_a_failure(safe, frames):
    """The outcome is the payload's, with its abort; the ledger's own flag is beside it."""
    heads = frames.transactions
    assert heads["success"].tolist() == [True, False, True]
    assert heads["chain_success"].tolist() == [True, True, True]
    assert heads["abort_code"].fillna(0).tolist() == [0, CODE, 0]
    failures = frames.failures()
    assert failures[["function", "abort_code", "count", "calls"]].values.tolist() == [
        ["0x1::aptos_account::transfer", CODE, 1, 3]
    ]


def test_a_stored_payload_has_its_function_and_arguments(frames):
    """They come from the event of the execution, in the stored form."""
    heads = frames.transactions
    assert set(heads["payload_type"]) == {"multisig_payload"}
    assert set(heads["function"]) == {"0x1::aptos_account::transfer"}
    assert heads["type_arguments"].tolist() == ["", "", ""]
    assert [json.loads(text)[1] for text in heads["arguments"]] == ["0x" + UINT[amount] for amount in (60, 60, 30)]


UINT = {amount: amount.to_bytes(8, "little").hex() for amount in (60, 30)}


def test_balances_of_a_payload_that_fails(safe, frames):
    """It moves nothing but the fee of the sender."""
    moved = frames.balance_changes
    of_safe = moved[moved["owner"] == safe.address]
    assert dict(zip(of_safe["ledger_version"], of_safe["change"], strict=True)) == {
        safe.versions[0]: -60,
        safe.versions[2]: -30,
    }


def test_a_simulation_of_a_payload_that_fails(safe):
    """Every answer to whether it works says no, and why."""
    safe.propose(1_000)
    sim = safe.node.simulate(toolkit.Multisig(safe.address), sender="0xa11ce")
    assert (sim.success, sim.chain_success, sim.transaction.abort.code) == (False, True, CODE)
    why = next(line for line in sim.explain().splitlines() if line.startswith("Why: "))
    assert "0x10004" in why
    assert len(sim.failures()) == 1
    request = toolkit.SimulationRequest(toolkit.Multisig(safe.address), sender="0xa11ce")
    batch = toolkit.fetch_simulations(safe.node, [request], progress=False)
    assert batch.transactions["success"].tolist() == [False]
    assert batch.transactions["abort_code"].tolist() == [CODE]


def test_a_study_selects_stored_payloads_and_their_outcomes(safe):
    """Committed calls of the function that ran: three, one of which failed with its code."""
    last = safe.versions[-1]
    call = {"committed": "0x1::aptos_account::transfer", "versions": f"{safe.versions[0]}:{last}", "label": "pay"}
    seen = toolkit.Study(calls=[call], node=safe.node).run(progress=False).observations
    seen = seen[seen["ledger_version"].isin(safe.versions)]
    assert seen["success"].tolist() == [True, False, True]
    assert [int(code) for code in seen["abort_code"].dropna()] == [CODE]
    good = toolkit.Study(calls=[call | {"success": True}], node=safe.node).run(progress=False).observations
    assert set(good["ledger_version"]) & set(safe.versions) == {safe.versions[0], last}


def test_an_archive_has_the_same_rows(safe, tmp_path):
    """Outcomes, calls, signers and the facts of blocks, in SQL and as frames."""
    archive = toolkit.sync(safe.node, tmp_path / "archive", "0:-1", progress=False)
    live = toolkit.fetch_transactions(safe.node, "0:-1", progress=False).transactions
    kept = archive.transactions("0:-1").transactions
    for column in ("success", "chain_success", "vm_status", "function", "arguments", "key_type", "proposer", "round",
                   "block_end_info", "details"):  # fmt: skip
        assert kept[column].astype(object).where(kept[column].notna(), None).tolist() == (
            live[column].astype(object).where(live[column].notna(), None).tolist()
        ), column
    blocks = live[live["type"] == "block_metadata_transaction"]
    assert blocks["proposer"].notna().all()
    assert blocks["round"].notna().all()
    call = {"committed": "0x1::aptos_account::transfer", "versions": f"{safe.versions[0]}:{safe.versions[-1]}"}
    seen = toolkit.Study(calls=[call], node=archive.node).run(progress=False).observations
    assert seen[seen["ledger_version"].isin(safe.versions)]["success"].tolist() == [True, False, True]
