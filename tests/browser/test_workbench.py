"""The workbench on a bare page: its tabs and its choice of a node, by keyboard."""

from __future__ import annotations

import re
import socket

import pytest

import toolkit

pytestmark = pytest.mark.browser


@pytest.fixture
def bench(bare):
    """Return a workbench without a node, and its page."""
    made = toolkit.widgets.Workbench()
    yield made, bare(made)
    made.close()


def test_a_node_is_connected_to_and_changed_from_the_keyboard(bench):
    """Connect shows the ledger and the first builder; another node leaves what was typed, and so does one that fails."""
    from playwright.sync_api import expect

    made, shown = bench
    page, keys = shown.page, shown.page.keyboard
    expect(page.get_by_text("Choose a node and press Connect.")).to_be_visible()
    expect(page.get_by_role("tablist")).to_have_count(0)
    assert made.node is None
    page.get_by_label("Node").focus()
    keys.press("Tab")
    keys.press("Enter")
    expect(page.locator(".ltk-facts")).to_contain_text("4,999")
    page.get_by_label("Sender", exact=True).fill("0xa11ce")
    page.get_by_role("combobox", name="Function").fill("0x1::aptos_account::transfer")
    page.get_by_label("amount u64").fill("1_0")
    page.get_by_label("Node").select_option("Another URL")
    page.get_by_label("URL").fill("ftp://host")
    keys.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("ftp")
    assert page.locator(".ltk-forms").get_attribute("inert") is not None  # nothing runs on the node of before
    expect(page.get_by_text("The forms wait until you connect.")).to_be_visible()
    page.get_by_role("button", name="Keep using embedded").click()
    assert page.locator(".ltk-forms").get_attribute("inert") is None
    expect(page.get_by_role("status").first).to_be_empty()
    page.get_by_label("Node").select_option("Another URL")
    page.get_by_label("URL").fill(made.node.url)
    keys.press("Enter")
    expect(page.get_by_role("status").first).to_be_empty()
    shown.settled()
    assert made.simulation_builder.node.name == made.node.url
    expect(page.get_by_label("amount u64")).to_have_value("1_0")
    expect(page.get_by_label("Sender", exact=True)).to_have_value("0xa11ce")


def test_a_view_leads_to_its_gas(bench, shots):
    """The link under the tabs opens the other tab with the same call; Home goes back to the first."""
    from playwright.sync_api import expect

    made, shown = bench
    made.connect("embedded")
    shown.flush()
    page, keys = shown.page, shown.page.keyboard
    page.get_by_role("tab", name="Simulation", exact=True).focus()
    keys.press("ArrowRight")
    view = page.get_by_role("tabpanel", name="View")
    view.get_by_role("combobox", name="Function").fill("0xcafe::registry::size")
    leads_on = page.get_by_role("button", name="Open this call in Gas")
    expect(leads_on).to_be_enabled()
    leads_on.press("Enter")
    gas = page.get_by_role("tabpanel", name="Gas")
    expect(gas.get_by_role("combobox", name="Function")).to_have_value("0xcafe::registry::size")
    expect(view).to_be_hidden()
    page.screenshot(path=shots / "workbench_gas.png", full_page=True)
    page.get_by_role("tab", name="Gas", exact=True).press("Home")
    expect(page.get_by_role("tab", name="Simulation", exact=True)).to_be_focused()
    # The gas of a simulation over versions is that of the function's committed transactions, by all senders.
    leads_on = page.get_by_role("button", name="Gas of this function's transactions")
    page.screenshot(path=shots / "workbench_simulation.png", full_page=True)
    expect(leads_on).to_be_disabled()  # this form has no call yet


def test_a_changed_item_opens_in_its_form(bench):
    """One click leads from a change of a simulation to the item, its table and its types filled in."""
    from playwright.sync_api import expect

    made, shown = bench
    made.connect("embedded")
    call = toolkit.EntryFunction("0xcafe::registry::transfer", ["alice", "0xb0b"])
    made.simulation_builder.request = toolkit.SimulationRequest(call, sender="0xa11ce")
    shown.flush()
    page = shown.page
    page.get_by_role("button", name="Simulate", exact=True).click()
    expect(page.get_by_text("Success", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Changes").click()
    shown.settled()
    page.get_by_role("button", name="Read this item at other versions").first.click()
    items = page.get_by_role("tabpanel", name="Table item")
    expect(items.get_by_label("Key String")).to_have_value("alice")
    items.get_by_role("button", name="Read", exact=True).click()
    expect(items).to_contain_text("registered_at")


def test_connecting_can_be_cancelled(bench):
    """A node that never answers: seconds are counted, Cancel ends it, and the forms are those of the node before."""
    from playwright.sync_api import expect

    made, shown = bench
    made.connect("embedded")
    shown.flush()
    page = shown.page
    with socket.create_server(("127.0.0.1", 0)) as silent:
        page.get_by_label("Node").select_option("Another URL")
        page.get_by_label("URL").fill(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        page.get_by_role("button", name="Connect").click()
        expect(page.get_by_role("status").first).to_have_text(re.compile(r"Connecting\u2026 [1-9] s"))
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("button", name="Connect")).to_be_visible()
    page.get_by_role("button", name="Keep using embedded").click()
    assert made.node.name == "embedded"


def test_ctrl_enter_on_a_tab_runs_its_form(bench):
    """Also on the menu of nodes, unless another node is selected; the result names its place in Python."""
    from playwright.sync_api import expect

    made, shown = bench
    made.connect("embedded")
    made.view_builder.function = "0xcafe::registry::size"
    made.selected = "view"
    shown.flush()
    page, keys = shown.page, shown.page.keyboard
    view = page.get_by_role("tabpanel", name="View")
    page.get_by_role("tab", name="View", exact=True).focus()
    keys.press("Control+Enter")
    expect(view).to_contain_text("652")
    expect(view.locator(".ltk-python code")).to_have_text(".view_builder.result")
    shown.settled()
    before = made.view_builder._serial
    page.get_by_label("Node").select_option("Testnet")
    page.get_by_label("Node").press("Control+Enter")
    shown.settled()
    page.get_by_label("Node").select_option("Embedded node")
    assert made.view_builder._serial == before
    page.get_by_label("Node").press("Control+Enter")
    shown.settled()
    assert made.view_builder._serial == before + 1
