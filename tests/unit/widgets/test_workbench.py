"""The workbench: builders on tabs, a node for all of them, and the state of its ledger."""

from __future__ import annotations

import socket
import threading

import msgspec
import pytest
from ipywidgets.widgets.widget import _instances

import toolkit
from toolkit.client._node import Node
from toolkit.widgets import Workbench
from toolkit.widgets._messages import NodeShown, Status
from toolkit.widgets._workbench import _BUILDERS


@pytest.fixture
def workbench(node):
    """Return a workbench on the fake node, closed after the test."""
    made = Workbench(node)
    yield made
    made.close()


def message(workbench, **content):
    """Send what the browser would."""
    workbench._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})
    while workbench._background is not None and not workbench._background.idle:
        workbench._background.wait()


def test_nothing_is_asked_and_nothing_is_made_before_it_is_needed(workbench, memory):
    """Neither the workbench nor its tabs ask the node; a builder is made when its tab or attribute is first used."""
    assert workbench._children == {}
    message(workbench, do="open", tab="simulation")
    assert list(workbench._children) == ["simulation"]
    builder = workbench.simulation_builder
    assert workbench._children["simulation"] == f"anywidget:{builder.model_id}"
    assert workbench.simulation_builder is builder
    assert memory.asked == []


@pytest.mark.parametrize("tab", _BUILDERS)
def test_a_form_knows_its_attribute(workbench, tab):
    """Its result says where it is in Python."""
    builder = workbench._builder(tab)
    assert getattr(workbench, builder._held_as) is builder
    assert hasattr(builder, builder._result_name)


def test_the_state_is_read_while_a_form_reads(workbench):
    """After a reload, the forms look up their functions while the workbench reads the same node."""
    workbench.simulation_builder.set_trait("busy", value=True)
    message(workbench, do="refresh")
    assert (workbench.error, workbench.info.ledger.version) == ("", 4999)


def test_the_state_of_the_ledger_is_read_when_it_is_asked_for(workbench):
    """Chain id, head and its time, oldest version, block height and kind of node."""
    message(workbench, do="refresh")
    assert dict(workbench._facts) == {
        "Chain id": "4",
        "Head version": "4,999",
        "Ledger time": "2026-06-30 08:38:24 UTC",
        "Oldest version": "0",
        "Kind of node": "embedded (model gas)",
    }
    assert workbench.info.ledger.version == 4999
    assert not workbench.busy


def test_another_node_is_given_to_every_builder(workbench, memory):
    """The entries stay; the state of the ledger before is gone until it is read again."""
    builder = workbench.simulation_builder
    builder.sender = "0xa11ce"
    workbench.refresh()
    with Node("http://127.0.0.1:2/v1", transport=memory, name="other") as other:
        workbench.node = other
        assert builder.node is other
        assert builder.sender == "0xa11ce"
        assert workbench._facts == []
        assert workbench.info is None
        assert workbench._node == NodeShown("other", "")


def test_a_builder_at_work_stays_with_its_node(workbench, memory):
    """While a builder is busy the node cannot be changed, and a sentence says so."""
    workbench.simulation_builder.set_trait("busy", value=True)
    message(workbench, do="connect", target="embedded")
    assert workbench.error == "the Simulation tab is busy; wait for it to finish, or stop it"
    assert workbench._status == Status("error", workbench.error)


@pytest.mark.parametrize(
    ("target", "words"),
    [("ftp://host", "http"), ("http://127.0.0.1:9/v1", "127.0.0.1:9")],
)
def test_a_node_that_cannot_be_reached_is_a_sentence(workbench, node, target, words):
    """The workbench says why, and stays with its node."""
    message(workbench, do="connect", target=target)
    assert words in workbench.error
    assert "Traceback" not in workbench.error
    assert workbench.node is node


def test_a_url_with_a_password_is_not_in_the_state_of_the_widget(workbench):
    """What was typed is not stored: a saved notebook has no credentials."""
    message(workbench, do="connect", target="https://me:secret@127.0.0.1:9/v1?x=1")
    assert "has a query" in workbench.error
    assert "secret" not in str(workbench.get_state())


def test_connect_owns_its_node_and_closes_it():
    """A node that the workbench connected to is closed with it, or when another one takes its place."""
    workbench = Workbench()
    with pytest.raises(toolkit.InputError, match=r"connect\('embedded'\)"):
        _ = workbench.simulation_builder
    workbench.connect("embedded")
    first = workbench.node
    assert workbench._node == NodeShown("embedded", "embedded")
    workbench.connect("embedded")
    with pytest.raises(toolkit.ToolkitError, match="closed"):
        first.info()
    second = workbench.node
    second.info()
    workbench.close()
    with pytest.raises(toolkit.ToolkitError, match="closed"):
        second.info()


def test_a_closed_workbench_leaves_no_model(node):
    """Neither the workbench nor its builders stay among the widgets."""
    before = set(_instances)
    workbench = Workbench(node)
    for name in ("simulation_builder", "view_builder", "table_item_builder", "gas_explorer"):
        assert getattr(workbench, name).node is node
    workbench.close()
    assert set(_instances) == before


def test_a_saved_notebook_shows_what_it_was(workbench):
    """Without a kernel: the node, its ledger, and the open builder."""
    workbench.simulation_builder.sender = "0xa11ce"
    workbench.refresh()
    html = workbench._bundle()["text/html"]
    for words in ("Workbench", "embedded", "4,999", "Simulate a transaction", "0xa11ce"):
        assert words in html
    assert html.count("This is a picture of the form") == 1


def test_a_node_that_does_not_answer_can_be_given_up(workbench, node):
    """Connect becomes Cancel; after it the workbench is idle, with the node it had, and no thread is left."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        content = {"do": "connect", "target": f"http://127.0.0.1:{silent.getsockname()[1]}/v1"}
        workbench._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})
        here, _ = silent.accept()
        with here:
            here.recv(1000)
            assert workbench.busy
            message(workbench, do="cancel")
        assert not workbench.busy
        assert workbench.error == ""
        assert workbench.node is node
        workbench._background.close()
        assert [one for one in threading.enumerate() if one.name == "toolkit-form"] == []


TRANSFER = "0x1::aptos_account::transfer"
SUPPLY = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
EXISTS = toolkit.ViewFunction("0x1::account::exists_at", ["0xb0b"])


def test_a_call_is_opened_in_the_tab_gas(workbench):
    """A view or the function of a simulation is added to the study, once; versions and title of the study stay."""
    message(workbench, do="gas")
    assert not workbench._has_call
    assert "Simulation" in workbench.error
    workbench.simulation_builder.request = toolkit.SimulationRequest(
        toolkit.EntryFunction(TRANSFER, ["0xb0b", 1]), sender="0xa11ce"
    )
    assert workbench._has_call
    message(workbench, do="gas")
    assert workbench.selected == "gas"
    explorer = workbench.gas_explorer
    assert (explorer.study.calls[0].committed, explorer.study.calls[0].versions) == (TRANSFER, "0:-1/200")
    explorer.study = toolkit.Study(calls=[SUPPLY], versions="100:200/5", title="Mine")
    workbench.view_builder.request = EXISTS
    for _ in range(2):
        workbench.selected = "view"
        message(workbench, do="gas")
        assert [call.view for call in explorer.study.calls] == [SUPPLY.function, EXISTS.function]
        assert (explorer.study.title, explorer.study.versions.plan) == ("Mine", "100:200/5")
        assert explorer.function == "0x1::account::exists_at"
    workbench.view_builder.request = SUPPLY
    workbench.selected = "view"
    message(workbench, do="gas")
    assert explorer._draft.chosen == "0"
    assert len(explorer.study.calls) == 2


def test_the_first_call_of_a_study_brings_its_versions(workbench):
    """A later call is added with a note, and the study keeps its versions."""
    view = workbench.view_builder
    view.request, view.versions = EXISTS, "1000, 4000"
    workbench.selected = "view"
    message(workbench, do="gas")
    explorer = workbench.gas_explorer
    assert (explorer.study.versions.plan, explorer._status) == ([1000, 4000], Status())
    view.request, view.versions = SUPPLY, "1:2"
    workbench.selected = "view"
    message(workbench, do="gas")
    assert (explorer.study.versions.plan, len(explorer.study.calls)) == ([1000, 4000], 2)
    assert explorer._status.text


def test_why_a_node_was_not_reached_goes_with_keep(workbench, node):
    """The message of a failed connection does not stay beside the node that is kept."""
    message(workbench, do="connect", target="http://127.0.0.1:9/v1")
    assert workbench._status.kind == "error"
    message(workbench, do="cancel")
    assert (workbench._status, workbench.error, workbench.node) == (Status(), "", node)


def test_each_message_is_acknowledged_once_it_is_handled(workbench):
    """By its id, in the workbench and in its forms."""
    message(workbench, do="open", tab="view", id="1")
    assert (workbench._heard, list(workbench._children)) == ("1", ["view"])
    view = workbench.view_builder
    draft = msgspec.to_builtins(msgspec.structs.replace(view._draft, seq=view._draft.seq + 1, function="0x1::m::f"))
    message(view, do="draft", draft=draft, id="2")
    assert (view._heard, view.function) == ("2", "0x1::m::f")


def test_a_form_with_errors_does_not_lead_on(workbench):
    """The last valid request is not opened in the place of the entries that are shown; the entries' errors are said."""
    view = workbench.view_builder
    view.request = EXISTS
    view.arguments = '["0xb0b"'
    workbench.selected = "view"
    message(workbench, do="gas")
    assert workbench.selected == "view"
    assert "View" in workbench.error
    assert not workbench._has_call
    workbench.simulation_builder.function = "0x1::account"
    workbench.selected = "simulation"
    message(workbench, do="gas")
    assert workbench.selected == "simulation"
    assert "Simulation" in workbench.error


def test_an_answer_is_not_shown_under_the_name_of_another_node(workbench, node, memory):
    """Another node that is set while the state of the one before is read gives up that reading."""
    asked, go = threading.Event(), threading.Event()

    class Slow:
        def send(self, request):
            asked.set()
            assert go.wait(30)
            return memory.send(request)

        def close(self):
            """There is nothing to close."""

    with (
        Node("http://127.0.0.1:3/v1", transport=Slow(), name="slow") as slow,
        Node("http://127.0.0.1:2/v1", transport=memory, name="other") as other,
    ):
        workbench.node = slow
        content = {"do": "refresh"}
        workbench._handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})
        assert asked.wait(30)
        workbench.node = other
        assert not workbench.busy
        go.set()
        workbench._background.close()
        assert workbench._node.name == "other"
        assert workbench._facts == []
        assert workbench.info is None
