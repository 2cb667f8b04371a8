"""Links of the app: what is typed, and never a key."""

from __future__ import annotations

import threading

import msgspec
import pytest

import toolkit
from toolkit.errors import InputError
from toolkit.widgets._simulation_builder import write_request
from toolkit.widgets._workbench import Link, read_link, write_link

KEY = "0x" + "11" * 32


@pytest.fixture
def workbench():
    """Return a workbench on the embedded node."""
    with toolkit.connect() as node:
        made = toolkit.widgets.Workbench(node)
        yield made
        made.close()


def test_a_link_opens_the_same_request(workbench):
    """Another workbench has the same entries, and the same tab is open."""
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 2**63])
    request = toolkit.SimulationRequest(call, sender="0xa11ce", max_gas_amount=9, fee_payer="0x0")
    workbench.simulation_builder.request = request
    other = toolkit.widgets.Workbench(workbench.node)
    other.selected = "view"
    other._open_link(workbench._link)
    assert (other.selected, other.simulation_builder.request) == ("simulation", request)
    workbench.selected = "gas"
    workbench.gas_explorer.study = toolkit.Study(calls=[toolkit.ViewFunction("0xcafe::registry::size")], versions="5:9")
    other._open_link(workbench._link)
    assert other.gas_explorer.python == workbench.gas_explorer.python
    other.close()


def test_no_key_is_in_a_link():
    """Keys and signatures of all accounts are left out, whatever their shape."""
    call = toolkit.EntryFunction("0x1::a::b")
    keys = {"public_key": KEY, "fee_payer": "0x2", "fee_payer_public_key": KEY}
    keys |= {"secondary_signers": ["0x3"], "secondary_public_keys": [KEY]}
    request = toolkit.SimulationRequest(call, sender="0x1", **keys)
    whole = toolkit.SimulationRequest(call, sender="0x1", signature=request.signature_to_send())
    for one in (request, whole):
        link = read_link(write_link("simulation", "embedded", {"simulation": write_request(one)}))
        assert "11111111" not in str(link)
        assert link.forms["simulation"]["sender"] == "0x1"


@pytest.mark.parametrize(
    "fragment",
    [
        "x",
        "%%%",
        "[]",
        "%ff",
        msgspec.json.encode(Link("elsewhere")).decode(),
        msgspec.json.encode(Link("view", "", {"view": {"at": 5}})).decode(),
    ],
)
def test_a_damaged_link_is_an_error(workbench, fragment):
    """The workbench says so, and the entries stay."""
    workbench.simulation_builder.sender = "0xa11ce"
    workbench._open_link(fragment)
    assert workbench.error.startswith("the link ")
    assert (workbench.selected, workbench.simulation_builder.sender) == ("simulation", "0xa11ce")
    with pytest.raises(InputError):
        read_link("x")


@pytest.mark.parametrize(
    "draft",
    [
        *({"chosen": chosen} for chosen in ("7", "-1", "abc", "", 0)),
        *({"calls": calls} for calls in ([], ["nope"], ["0"], ["{}"], [5], 5, None)),
    ],
)
def test_a_link_whose_calls_do_not_fit_is_an_error(workbench, draft):
    """A call that is chosen exists, and each one can be read."""
    workbench.gas_explorer.study = study = toolkit.Study(calls=["0x1::chain_id::get"], node=workbench.node)
    workbench._open_link(msgspec.json.encode(Link("gas", "", {"gas": draft})).decode())
    assert workbench.error.startswith("the link does not fit this form: ")
    assert "Error" not in workbench.error
    assert (workbench.gas_explorer.study, workbench.gas_explorer.errors) == (study, {})


def test_requests_of_a_form_go_out_together(workbench):
    """None waits for another one; how many have ended is shown, and one that fails does not end the others."""
    form, seen = workbench.view_builder, []
    form.observe(lambda change: seen.append(change["new"].text), "_progress")
    meet = threading.Barrier(3, timeout=20)

    def refused():
        raise InputError("no")

    form._together([meet.wait, meet.wait, meet.wait, refused])
    assert seen == ["1 of 4", "2 of 4", "3 of 4", "4 of 4", ""]


def test_a_link_has_the_entries_of_all_tabs(workbench):
    """Also those that are not complete: their fields are filled as soon as the function is looked up."""
    form = workbench.simulation_builder
    form.sender, form.function = "0xa11ce", "0x1::aptos_account::transfer"
    form.check()
    form._edit(arguments=("0xb0b", ""), lead="fields")
    workbench.view_builder.function = "0xcafe::registry::size"
    workbench.selected = "view"
    other = toolkit.widgets.Workbench(workbench.node)
    other._open_link(workbench._link)
    assert (other.selected, other.view_builder.function) == ("view", "0xcafe::registry::size")
    assert other.simulation_builder.sender == "0xa11ce"
    for tab, title in (("simulation", "Simulate"), ("view", "Read")):  # a link has no results
        assert title in other._builder(tab)._status.text
    other.simulation_builder._look()
    assert other.simulation_builder._draft.arguments == ("0xb0b", "")
    other.close()
