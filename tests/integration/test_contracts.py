"""Contracts as objects over the embedded node, and the command `module`."""

from __future__ import annotations

import json
import re

import pytest

import toolkit
from toolkit.widgets._changes import Known, changes_page


@pytest.fixture
def registry(node):
    return node.contract("0xcafe::registry")


def test_the_first_session_with_a_contract(node, registry):
    """Values at the head and at a version, frames over versions, simulations, requests: one line each."""
    record = registry.record_of("alice")
    assert record == node.view("0xcafe::registry::record_of", ["alice"]).value
    assert record["owner"] == toolkit.address("0xa11ce")
    assert registry.size.at(1_000) == registry.at(1_000).size() == node.at(1_000).view("0xcafe::registry::size").value
    assert registry.record_of.at(1_000, "alice") == registry.at(1_000).record_of("alice") == record
    frame = registry.size.over("0:-1/200", progress=False)
    assert len(frame) == 200
    assert str(frame["value"].dtype) == "uint64[pyarrow]"
    assert registry.record_of.over("1000:-1/3", "alice", progress=False)["value"].notna().all()
    flat = registry.record_of.over("1000:1001", "alice", flatten=True, times=True, progress=False)
    assert {"value.owner", "value.registered_at"} <= set(flat)
    assert flat["ledger_timestamp"].notna().all()
    simulation = registry.register("carol", sender="0xb0b")
    assert simulation.success
    assert simulation.events_of("0xcafe::registry::Registered")["name"].tolist() == ["carol"]
    requests = [registry.register.request(name, sender="0xb0b") for name in ("carol", "alice")]
    batch = toolkit.fetch_simulations(node, requests, progress=False)
    assert batch.transactions["success"].tolist() == [True, False]
    steps = registry.size.over(toolkit.FindSteps("1000:1300"), progress=False)
    assert steps["ledger_version"].is_monotonic_increasing


def test_the_size_before_the_module_existed_is_a_row_and_an_error(node, registry):
    """A frame has failed reads as rows if any can succeed; a single read says that the module does not exist."""
    with pytest.raises(toolkit.NotFound, match=r"0xcafe::registry does not exist at version 0"):
        registry.size.at(0)
    with pytest.raises(toolkit.NotFound, match="does not exist at version 0"):
        node.at(0).contract("0xcafe::registry")
    assert registry.size.over([0, 4_999], progress=False)["error_code"].notna().tolist() == [True, False]
    with pytest.warns(toolkit.errors.FailedReadsWarning, match="registry"):
        assert registry.size.over([0], progress=False)["error_code"].tolist() == ["invalid_input"]


def test_the_form_shows_a_simulation_that_deletes_an_item(registry, node):
    """The node's data of a deletion has a key and no value."""
    form = toolkit.widgets.SimulationBuilder(node, request=registry.release.request("alice", sender="0xa11ce"))
    form.simulate()
    assert form.simulation.success
    for diff in (None, form.simulation.diff()):
        page = changes_page(form.simulation, Known(), diff, links=False)
        assert 'data-kind="deleted"' in page
        assert "alice" in page
    form.close()


def test_the_form_shows_the_state_of_a_table_item_before_decoded(registry, node):
    """The value before comes as bytes; its type is known from the item that the node decodes: fields that differ."""
    form = toolkit.widgets.SimulationBuilder(
        node, request=registry.transfer.request("alice", "0xb0b", sender="0xa11ce")
    )
    form.simulate()
    form._complete_changes()
    page = next(one.html for one in form._pages if one.title == "Changes")
    assert re.search(
        r"owner</span><div><del><code[^>]*>0xa11ce</code>[^<]*</del> \S <ins><code[^>]*>0xb0b</code>", page
    )
    assert "BCS" not in page
    form.close()


def test_the_command_prints_the_table_of_the_object(command, url, registry):
    """As text and as JSON; at a version too."""
    done = command("module", "0xcafe::registry", "--node", url)
    assert done.returncode == 0
    assert done.stdout == f"{registry}\n"
    assert re.search(r"record_of +view +\(0x1::string::String\): Record", done.stdout)
    done = command("module", "0xcafe::registry", "--node", url, "--ledger-version", "1000", "--json")
    content = json.loads(done.stdout)
    assert (content["module"], content["ledger_version"]) == ("0xcafe::registry", 1_000)
    assert {one["name"]: one["kind"] for one in content["functions"]}["register"] == "entry"
    assert content["structs"][0]["fields"][0] == {"name": "owner", "type": "address"}
    assert content["errors"][0] == {"code": 1, "name": "E_TAKEN", "description": "The name is registered already"}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["0xcafe::registri"], r"does not exist at version 4,999 of .*; did you mean `registry`\?"),
        (["0xcafe::registry", "--ledger-version", "0"], "does not exist at version 0"),
        (["0xcafe::registry", "--ledger-version", "9999999"], "at version 9,999,999: .*version_not_found"),
    ],
)
def test_errors_of_the_command_are_one_line(command, url, given, text):
    """With the exit codes of the other commands."""
    done = command("module", *given, "--node", url)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(text, done.stderr)
    assert len(done.stderr.splitlines()) == 1
