"""Resource groups and fungible assets: several resources of one address behind one state key."""

from __future__ import annotations

import pytest

from toolkit import embedded
from toolkit.embedded import Module, Resource, Struct, entry, signer, u64
from toolkit.embedded._code import decode_group, encode_group
from toolkit.embedded._render import changes_json
from toolkit.embedded.teaching import Gold

METADATA = ["0x1::fungible_asset::Metadata"]


@pytest.fixture
def ledger() -> embedded.Ledger:
    fresh = embedded.Ledger()
    fresh.publish(Gold)
    fresh.commit("0x901d::gold::mint", "0xa11ce", 500, sender="0x901d")
    return fresh


@pytest.fixture
def gold(ledger) -> str:
    return ledger.view("0x901d::gold::metadata")[0][0]


def test_a_group_is_a_map_sorted_by_key_bytes():
    """Members are read back in any order in which they were given; without members, no group exists."""
    members = {"0x1::object::ObjectCore": b"core", "0x1::fungible_asset::Metadata": b"", "0x2::m::A<u8>": b"a"}
    data = encode_group(members)
    assert decode_group(data) == members
    assert encode_group(dict(reversed(members.items()))) == data
    assert encode_group({}) is None
    assert decode_group(None) == {}


def test_members_are_read_one_by_one(ledger, gold):
    """Each resource of the object reads by its own type, at any version."""
    assert ledger.resource(gold, "0x1::fungible_asset::Metadata")["symbol"] == "GOLD"
    assert ledger.resource(gold, "0x1::fungible_asset::Supply") == {"current": 500, "maximum": None}
    assert ledger.resource(gold, "0x1::object::ObjectCore")["owner"].endswith("901d")
    assert ledger.resource(gold, "0x1::fungible_asset::FungibleStore") is None


def test_a_transfer_makes_the_receivers_store(ledger, gold):
    """Balances move, the supply stays; a store is at the address that owner and asset give."""
    done = ledger.commit(
        "0x1::primary_fungible_store::transfer", gold, "0xb0b", 120, sender="0xa11ce", type_arguments=METADATA
    )
    assert done.success, done.vm_status
    held = [
        ledger.view("0x1::primary_fungible_store::balance", [who, gold], METADATA)[0][0] for who in ("0xa11ce", "0xb0b")
    ]
    assert held == [380, 120]
    assert ledger.view("0x1::fungible_asset::supply", [gold], METADATA)[0] == [500]
    store = ledger.view("0x1::primary_fungible_store::primary_store_address", ["0xb0b", gold], METADATA)[0][0]
    assert ledger.resource(store, "0x1::fungible_asset::FungibleStore") == {
        "metadata": gold,
        "balance": 120,
        "frozen": False,
    }


def test_too_large_a_transfer_aborts_as_on_chain(ledger, gold):
    """The abort is the framework's own."""
    done = ledger.commit(
        "0x1::primary_fungible_store::transfer", gold, "0xb0b", 501, sender="0xa11ce", type_arguments=METADATA
    )
    assert done.vm_status == (
        "Move abort in 0x1::fungible_asset: EINSUFFICIENT_BALANCE(0x10004): "
        "Insufficient balance to withdraw or transfer."
    )


def test_one_written_group_shows_as_all_its_members(ledger, gold):
    """Also a member that did not change is shown, under the group's one hash."""
    done = ledger.commit("0x901d::gold::mint", "0xb0b", 1, sender="0x901d")
    changes = [
        change
        for change in changes_json(ledger.chain.code_at(done.version), done.output, ledger.chain.tables)
        if change.get("address") == gold
    ]
    assert {change["data"]["type"].split("::", 1)[1] for change in changes} == {
        "object::ObjectCore",
        "fungible_asset::Metadata",
        "fungible_asset::Supply",
        "primary_fungible_store::DeriveRefPod",
    }
    assert len({change["state_key_hash"] for change in changes}) == 1


def test_objects_change_hands(ledger, gold):
    """The owner may give the asset's object away, nobody else may."""
    give = "0x1::object::transfer"
    refused = ledger.commit(give, gold, "0xb0b", sender="0xa11ce", type_arguments=METADATA)
    assert refused.vm_status.startswith("Move abort in 0x1::object: ENOT_OBJECT_OWNER(0x50004)")
    assert ledger.commit(give, gold, "0xb0b", sender="0x901d", type_arguments=METADATA).success
    assert ledger.view("0x1::object::is_owner", [gold, "0xb0b"], METADATA)[0] == [True]


class Boxes(Module, address="0x7116"):
    """A group of its own with two members."""

    class Group(Struct, abilities=""):
        """The group."""

    class Left(Resource, group="0x7116::boxes::Group"):
        n: u64

    class Right(Resource, group="0x7116::boxes::Group"):
        n: u64

    @entry
    def put(self, account: signer) -> None:
        self.move_to(account, Boxes.Left(n=1))
        self.move_to(account, Boxes.Right(n=2))

    @entry
    def take_left(self, account: signer) -> None:
        self.move_from(Boxes.Left, account)

    @entry
    def take_right(self, account: signer) -> None:
        self.move_from(Boxes.Right, account)


def test_a_group_is_deleted_with_its_last_member():
    """Before, the change lists the members that are left; then the group itself, and its slot is refunded."""
    ledger = embedded.Ledger()
    ledger.publish(Boxes)

    def changes(name):
        done = ledger.commit(f"0x7116::boxes::{name}", sender="0xb0b")
        assert done.success, done.vm_status
        shown = changes_json(ledger.chain.code_at(done.version), done.output, ledger.chain.tables)
        return done.output.charges, [change for change in shown if "boxes" in str(change)]

    _, put = changes("put")
    assert [change["data"]["type"] for change in put] == ["0x7116::boxes::Left", "0x7116::boxes::Right"]
    charges, left = changes("take_left")
    assert [change["data"] for change in left] == [{"type": "0x7116::boxes::Right", "data": {"n": "2"}}]
    assert charges.storage_fee_refund_octas == 0
    charges, gone = changes("take_right")
    assert [(change["type"], change["resource"]) for change in gone] == [("delete_resource", "0x7116::boxes::Group")]
    assert {change["state_key_hash"] for change in put + left + gone} == {put[0]["state_key_hash"]}
    assert charges.storage_fee_refund_octas > 0
