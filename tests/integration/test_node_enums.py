"""Enums over HTTP, in JSON and BCS, and as values and frames of the client."""

from __future__ import annotations

import pytest
import requests

import toolkit
from tests.unit.embedded.test_enums import Lamps
from toolkit import embedded

MODE = "0x1a4b::lamps::Mode"
ON = {"__variant__": "On", "level": 9, "color": {"__variant__": "Mixed", "red": 1, "green": 2}}
ON_BCS = bytes.fromhex("0109010102")
SWITCH = toolkit.EntryFunction("0x1a4b::lamps::switch", arguments=[9])


def _ledger(**options):
    ledger = embedded.Ledger(**options)
    ledger.publish(Lamps)
    ledger.commit("0x1a4b::lamps::switch", 9, sender="0xb0b")
    return ledger


@pytest.fixture(scope="module")
def url():
    """A node that prints ABIs as the recorded one does, without variants."""
    with embedded.serve(_ledger()) as address:
        yield address


@pytest.fixture(scope="module")
def newer_url():
    """A node that lists the variants of enums."""
    with embedded.serve(_ledger(enum_variants=True)) as address:
        yield address


def test_views_and_resources_are_answered_in_json_and_bcs(url):
    """A value is an object with ``__variant__``; in BCS the variant's index and its fields."""
    body = {"function": "0x1a4b::lamps::mode", "type_arguments": [], "arguments": []}
    bcs = {"accept": "application/x-bcs"}
    assert requests.post(f"{url}/view", json=body, timeout=10).json() == [ON]
    assert requests.post(f"{url}/view", json=body, headers=bcs, timeout=10).content == b"\x01" + ON_BCS
    place = f"{url}/accounts/0x1a4b/resource/{MODE}"
    assert requests.get(place, timeout=10).json() == {"type": MODE, "data": ON}
    assert requests.get(place, headers=bcs, timeout=10).content == ON_BCS
    listed = requests.get(f"{url}/accounts/0x1a4b/resources", timeout=10).json()
    assert {"type": MODE, "data": ON} in listed


def test_modules_print_enums_as_the_recorded_node_does(url, newer_url):
    """No fields; variants only on newer nodes."""
    old, new = (
        {struct["name"]: struct for struct in answer["abi"]["structs"]}
        for answer in (
            requests.get(f"{one}/accounts/0x1a4b/module/lamps", timeout=10).json() for one in (url, newer_url)
        )
    )
    assert old["Mode"]["is_enum"]
    assert old["Mode"]["fields"] == []
    assert all("variants" not in struct for struct in old.values())
    assert [variant["name"] for variant in new["Mode"]["variants"]] == ["Off", "On", "Pair"]


def test_arguments_are_an_object_with_the_name_of_the_variant(url):
    """The input form differs from the output form: ``{"On": {...}}``."""
    argument = {"On": {"level": 5, "color": {"White": {}}}}
    body = {"function": "0x1a4b::lamps::describe", "type_arguments": [], "arguments": [argument]}
    assert requests.post(f"{url}/view", json=body, timeout=10).json() == ["5"]
    refused = requests.post(f"{url}/view", json=body | {"arguments": [{"Dim": {}}]}, timeout=10)
    assert (refused.status_code, refused.json()["error_code"]) == (400, "invalid_input")


@pytest.mark.parametrize("encoding", ["json", "bcs"])
def test_the_client_decodes_enums_whose_variants_are_listed(newer_url, encoding):
    """Values, frames of views and the changes of simulations, the same from JSON and from BCS."""
    with toolkit.connect(newer_url, encoding=encoding) as node:
        assert node.view("0x1a4b::lamps::mode").value == ON
        assert node.view("0x1a4b::lamps::describe", arguments=[ON]).value == 9
        calls = [toolkit.ViewFunction("0x1a4b::lamps::mode")]
        frame = toolkit.fetch_views(node, calls=calls, versions="-2:", progress=False)
        resources = node.simulate(SWITCH, sender="0xb0b").resources(MODE)
    for values in (frame["value"], resources["data"]):
        value = values.iloc[-1]
        assert {name: part for name, part in value.items() if part is not None} == ON
        assert set(value) == {"__variant__", "level", "color", "_0", "_1"}


def test_without_variants_the_client_passes_json_through(url):
    """The ABI has no variants, so numbers keep the form that they have in JSON; BCS cannot be decoded."""
    with toolkit.connect(url) as node:
        assert node.view("0x1a4b::lamps::mode").value == ON
        assert node.simulate(SWITCH, sender="0xb0b").success
