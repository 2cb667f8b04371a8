"""Sweeps over an upgrade that changes what a function returns, and keys as requests take them, on the embedded node."""

from __future__ import annotations

import pytest

import toolkit
from toolkit import embedded
from toolkit.embedded import Module, Resource, String, Struct, Table, address, friend, signer, u64, u128, view
from toolkit.frames._columns import plain_columns


class Pool(Module, address="0x9001", name="pool"):
    """A pool with a table by market; only friends may call `depth`, so an upgrade may change its signature."""

    class Market(Struct, abilities="copy drop store"):
        """A market."""

        number: u64
        owner: address

    class Markets(Resource):
        """The volume of each market."""

        volumes: Table[Pool.Market, u64]

    def init_module(self, account: signer) -> None:
        """Store one market."""
        self.move_to(account, Pool.Markets(volumes=self.new_table()))
        with self.borrow_mut(Pool.Markets, account) as markets:
            markets.volumes.add(Pool.Market(number=7, owner="0xb0b"), 500)

    @friend
    @view
    def depth(self) -> u64:
        """Return a number of 64 bits."""
        return 2**64 - 1

    @friend
    @view
    def best(self) -> u64:
        """Return one value."""
        return 5


class WidePool(Pool, revision=2):
    """The pool after its upgrade."""

    @friend
    @view
    def depth(self) -> u128:
        """Return a number of 128 bits."""
        return 2**100

    @friend
    @view
    def best(self) -> tuple[String, u64]:
        """Return two values."""
        return "bid", 6


@pytest.fixture(scope="module")
def upgraded():
    """Return a ledger, and the version from which it has the upgrade."""
    ledger = embedded.Ledger()
    ledger.publish(Pool)
    return ledger, ledger.publish(WidePool).version


def test_beside_other_calls_each_call_has_its_own_columns(upgraded):
    """Also if the number of values changes; a call that keeps its type has one column."""
    ledger, upgrade = upgraded
    node = toolkit.connect(ledger, cache=None)
    calls = {"depth": "0x9001::pool::depth", "best": "0x9001::pool::best", "chain": "0x1::chain_id::get"}
    with pytest.warns(UserWarning, match="a call changes type"):
        frame = toolkit.fetch_views(node, calls, [upgrade - 1, upgrade], progress=False)
    values = {
        name: [one for one in column if one is not None]
        for name, column in plain_columns(frame, [name for name in frame if name.startswith("value")]).items()
    }
    assert values == {
        "value[depth][u64]": [2**64 - 1],
        "value[depth][u128]": [2**100],
        "value_0[best][u64]": [5],
        "value_0[best][0x1::string::String]": ["bid"],
        "value_1[best]": [6],
        "value[chain]": [4, 4],
    }
    assert frame["error_code"].isna().all()


@pytest.mark.parametrize(
    "key", [{"number": 7, "owner": "0xb0b"}, {"number": "7", "owner": "0x" + "0" * 61 + "b0b"}], ids=["int", "text"]
)
def test_many_items_take_the_keys_of_one(upgraded, key):
    """A struct key with numbers as ints or decimal text; both give the same typed column of keys."""
    ledger, upgrade = upgraded
    node = toolkit.connect(ledger, cache=None)
    handle = node.resource("0x9001", "0x9001::pool::Markets")["volumes"]["handle"]
    types = {"key_type": "0x9001::pool::Market", "value_type": "u64"}
    item = node.table_item(handle, key, **types)
    missing = key | {"number": "8"}
    frame = toolkit.fetch_table_items(
        node, handle, [key, missing], **types, versions=[upgrade - 1, upgrade], progress=False
    )
    owner = "0x" + "0" * 61 + "b0b"
    shown = [{"number": number, "owner": owner} for number in (7, 7, 8, 8)]
    assert plain_columns(frame, ["key", "value"]) == {"key": shown, "value": [500, 500, None, None]}
    assert item.to_frame()["key"].tolist() == shown[:1]
    assert frame["presence"].tolist() == ["present"] * 2 + ["missing"] * 2
