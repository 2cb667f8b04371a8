"""Writes of a table's items on a node that does not decode them: the types come from the table's declaration."""

from __future__ import annotations

import pytest

import toolkit
from toolkit import embedded
from toolkit.embedded.teaching import Registry

REGISTRY = "0xcafe::registry"


@pytest.fixture(scope="module")
def node():
    ledger = embedded.Ledger(decoded_tables=False)
    ledger.publish(Registry)
    for account in ("0xa11ce", "0xb0b"):
        ledger.fund(account, 10**9)
    ledger.commit(f"{REGISTRY}::register", "alice", sender="0xa11ce")
    ledger.commit(f"{REGISTRY}::transfer", "alice", "0xb0b", sender="0xa11ce")
    with embedded.serve(ledger) as url, toolkit.connect(url) as node:
        yield node


def frames_of(node, function):
    """Return the committed transaction of a function."""
    found = toolkit.fetch_transactions(node, "0:-1", progress=False).transactions
    [version] = found.loc[found["function"] == toolkit.address(f"{REGISTRY}::{function}"), "ledger_version"]
    return toolkit.fetch_transactions(node, [version], progress=False)


def test_a_resource_that_is_written_too_declares_the_table(node):
    """`register` writes the resource with the table."""
    items = frames_of(node, "register").table_items(node.contract(REGISTRY).handle())
    assert items["key"].tolist() == ["alice"]
    assert items["value"].iloc[0]["owner"] == toolkit.address("0xa11ce")


def test_items_are_read_by_the_declaration(node):
    """`owner=` gives the types of an item and of a frame of items; a type that is given is not replaced."""
    handle = node.contract(REGISTRY).handle()
    item = node.table_item(handle, "alice", owner="0xcafe")
    typed = node.table_item(handle, "alice", key_type="String", value_type=f"{REGISTRY}::Record")
    assert item.value == typed.value == node.at(-1).table_item(handle, "alice", owner="0xcafe").value
    options = {"owner": "0xcafe", "versions": "0:-1", "progress": False}
    frame = toolkit.fetch_table_items(node, handle, ["alice"], **options)
    assert frame["presence"].iloc[-1] == "present"
    assert frame["value"].iloc[-1] == item.value
    with pytest.raises(toolkit.InputError, match=r"pass key_type= and value_type=, or owner="):
        node.table_item(handle, "alice")
    with pytest.raises(toolkit.InputError, match=r"no resource of 0xb0b declares table"):
        toolkit.fetch_table_items(node, handle, ["alice"], owner="0xb0b", progress=False)
    with pytest.raises(toolkit.InputError, match=r"its resources hold 0x.*\(0x1::.*, \w+\).*; give another owner"):
        node.table_item(handle, "alice", owner="0x1")
    with pytest.raises(toolkit.InputError, match="pass key_type= and value_type=, or owner="):
        node.table_item(handle, "alice", key_type="String")
    with pytest.raises(toolkit.InputError, match="table key: expected u64"):
        toolkit.fetch_table_items(node, handle, ["alice"], key_type="u64", **options)


def test_a_resource_of_the_owner_declares_the_table(node):
    """`transfer` writes the item alone: the owner's resources have the declaration, or the types are given."""
    frames, handle = frames_of(node, "transfer"), node.contract(REGISTRY).handle()
    with pytest.raises(toolkit.InputError, match=r"types of table .* are not known.*owner="):
        frames.table_items(handle)
    with pytest.raises(toolkit.InputError, match="no resource of 0xb0b declares table"):
        frames.table_items(handle, owner="0xb0b")
    items = frames.table_items(handle, owner="0xcafe")
    assert items["key"].tolist() == ["alice"]
    assert items["value"].iloc[0]["owner"] == toolkit.address("0xb0b")
    given = frames.table_items(handle, key_type="String", value_type=f"{REGISTRY}::Record")
    assert given.to_dict("records") == items.to_dict("records")
