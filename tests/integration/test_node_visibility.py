"""Visibility, friends and constraints over HTTP, and what the client makes of them."""

from __future__ import annotations

import pytest
import requests

import toolkit
from tests.unit.embedded.test_visibility import VAULTS, Desk, Till, Vaults
from toolkit import embedded
from toolkit.errors import ToolkitError


@pytest.fixture(scope="module")
def url():
    ledger = embedded.Ledger()
    ledger.publish(Till, Desk)
    ledger.publish(Vaults)
    with embedded.serve(ledger) as address:
        yield address


def _view(url, function, *types):
    body = {"function": function, "type_arguments": list(types), "arguments": []}
    return requests.post(f"{url}/view", json=body, timeout=10)


def test_the_abi_prints_friends_visibility_and_constraints(url):
    """Friends are module ids; private functions are listed if they are entry functions."""
    till = requests.get(f"{url}/accounts/0x7111/module/till", timeout=10).json()["abi"]
    assert till["friends"] == ["0x7111::desk"]
    functions = {one["name"]: (one["visibility"], one["is_entry"]) for one in till["exposed_functions"]}
    assert functions["close"] == ("private", True)
    assert functions["discount"] == ("friend", False)
    assert "secret" not in functions
    vaults = requests.get(f"{url}/accounts/0x7113/module/vaults", timeout=10).json()["abi"]
    name_of = next(one for one in vaults["exposed_functions"] if one["name"] == "name_of")
    assert name_of["generic_type_params"] == [{"constraints": ["copy", "store"]}]
    box = next(one for one in vaults["structs"] if one["name"] == "Box")
    assert box["generic_type_params"] == [{"constraints": ["store"]}]


def test_a_generic_function_takes_a_type_argument(url):
    """In a view and in a simulation."""
    assert _view(url, f"{VAULTS}::name_of", "u8").json() == [True]
    with toolkit.connect(url) as node:
        call = toolkit.EntryFunction(f"{VAULTS}::fill", arguments=[1], type_arguments=["u64"])
        assert node.simulate(call, sender="0xb0b").success


def test_functions_that_are_not_entry_functions_are_refused(url):
    """A private or friend entry function can be simulated, another function cannot."""
    with toolkit.connect(url) as node:
        for name in ("close", "settle"):
            assert node.simulate(toolkit.EntryFunction(f"0x7111::till::{name}"), sender="0xb0b").success
        for name in ("discount", "secret"):
            with pytest.raises(ToolkitError):
                node.simulate(toolkit.EntryFunction(f"0x7111::till::{name}"), sender="0xb0b")
