"""State differences list every resource that begins or ends, those of resource groups included."""

from __future__ import annotations

import json
import re
import warnings

import pytest

import toolkit
from toolkit import embedded
from toolkit.client import _group_members
from toolkit.embedded import Module, Resource, Struct, entry, signer, u64
from toolkit.errors import Forbidden, NodeError
from toolkit.move import decode_module_abi
from toolkit.move._module_metadata import resource_groups


class Shelf(Module, address="0x5e1f"):
    """Two resources of one group, and one that is stored by itself."""

    class Group(Struct, abilities=""):
        """The container."""

    class Label(Resource, group="0x5e1f::shelf::Group"):
        value: u64

    class Size(Resource, group="0x5e1f::shelf::Group"):
        value: u64

    class Alone(Resource):
        value: u64

    @entry
    def make(self, account: signer) -> None:
        self.move_to(account, Shelf.Label(value=7))
        self.move_to(account, Shelf.Size(value=9))
        self.move_to(account, Shelf.Alone(value=1))

    @entry
    def relabel(self, account: signer) -> None:
        with self.borrow_mut(Shelf.Label, account) as label:
            label.value = 8

    @entry
    def unlabel(self, account: signer) -> None:
        self.move_from(Shelf.Label, account)

    @entry
    def burn(self, account: signer) -> None:
        self.move_from(Shelf.Label, account)
        self.move_from(Shelf.Size, account)

    @entry
    def burn_all(self, account: signer) -> None:
        self.move_from(Shelf.Label, account)
        self.move_from(Shelf.Size, account)
        self.move_from(Shelf.Alone, account)


@pytest.fixture
def ledger() -> embedded.Ledger:
    made = embedded.Ledger()
    made.publish(Shelf)
    return made


EXPECTED = {
    "make": {"Label": (None, "7"), "Size": (None, "9"), "Alone": (None, "1")},
    "relabel": {"Label": ("7", "8"), "Size": ("9", "9")},
    "unlabel": {"Label": ("7", None), "Size": ("9", "9")},
    "burn": {"Label": ("7", None), "Size": ("9", None)},
    "burn_all": {"Label": ("7", None), "Size": ("9", None), "Alone": ("1", None)},
}


def shelf_of(frame) -> dict[str, tuple[str | None, str | None]]:
    """Return the values before and after of each resource of the module; each has one row."""
    rows = frame[frame["resource_type"].fillna("").str.contains("::shelf::")]
    assert rows["resource_type"].is_unique
    assert ((rows["type"] == "delete_resource") == rows["after"].isna()).all()
    values = [
        [
            None if text is None else json.loads(text)["value"]
            for text in rows[name].astype(object).where(rows[name].notna(), None)
        ]
        for name in ("before", "after")
    ]
    names = [kind.rpartition("::")[2] for kind in rows["resource_type"]]
    return dict(zip(names, zip(*values, strict=True), strict=True))


@pytest.mark.parametrize("name", EXPECTED)
def test_one_row_for_each_resource(ledger, name):
    """For a simulation, a committed transaction, and a transaction that follows another in a frame."""
    node = toolkit.connect(ledger)
    if name != "make":
        ledger.commit("0x5e1f::shelf::make", sender="0xa11ce")
    simulated = node.simulate(toolkit.EntryFunction(f"0x5e1f::shelf::{name}"), sender="0xa11ce").diff()
    assert shelf_of(simulated) == EXPECTED[name]
    version = ledger.commit(f"0x5e1f::shelf::{name}", sender="0xa11ce").version
    alone = toolkit.fetch_transactions(node, f"{version}:{version}", progress=False).diff()
    assert shelf_of(alone) == EXPECTED[name]
    whole = toolkit.fetch_transactions(node, "0:-1", progress=False).diff()
    assert shelf_of(whole[whole["ledger_version"] == version]) == EXPECTED[name]
    assert not whole["error_code"].notna().any()


def test_no_row_is_null_before_and_after(ledger):
    """In a whole history, null means that there was nothing: no change goes from nothing to nothing."""
    ledger.commit("0x5e1f::shelf::make", sender="0xa11ce")
    ledger.commit("0x5e1f::shelf::burn", sender="0xa11ce")
    frame = toolkit.fetch_transactions(toolkit.connect(ledger), "0:-1", progress=False).diff()
    assert not (frame["before"].isna() & frame["after"].isna()).any()


def test_a_node_that_does_not_list_resources_says_so(ledger, monkeypatch):
    """The members that remain have their rows, with a warning; of a deleted group nothing can be said."""
    ledger.commit("0x5e1f::shelf::make", sender="0xa11ce")
    node = toolkit.connect(ledger)

    def refuse(*_):
        raise Forbidden("resources are not offered", status=403)

    monkeypatch.setattr(_group_members, "account_resources", refuse)
    with pytest.warns(UserWarning, match="resources that ended"):
        frame = node.simulate(toolkit.EntryFunction("0x5e1f::shelf::unlabel"), sender="0xa11ce").diff()
    assert shelf_of(frame) == {"Size": ("9", "9")}
    burn = node.simulate(toolkit.EntryFunction("0x5e1f::shelf::burn"), sender="0xa11ce")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(NodeError):
            burn.diff()


def test_the_bytecode_states_the_groups(ledger):
    """The metadata of a module names the group of each member; anything that is not a module is refused."""
    answer = toolkit.connect(ledger).module_answer("0x5e1f", "shelf", ledger.head)
    code = bytes.fromhex(json.loads(answer)["bytecode"][2:])
    assert resource_groups(code) == dict.fromkeys(("Label", "Size"), "0x5e1f::shelf::Group")
    assert decode_module_abi(answer).struct("Label") is not None
    for wrong in (b"", code[:3], b"\0" * 40, code[:9]):
        with pytest.raises(toolkit.errors.SchemaError, match=re.compile("expected")):
            resource_groups(wrong)
