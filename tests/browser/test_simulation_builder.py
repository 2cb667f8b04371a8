"""The builders in JupyterLab, as a person uses them, on the embedded node; most tests are in `test_forms`."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser

SIMULATION = "import toolkit\n\nform = toolkit.widgets.SimulationBuilder(toolkit.connect())\nform"
WORKBENCH = "import toolkit\n\nbench = toolkit.widgets.Workbench()\nbench"


def tab_to(view, control):
    """Press Tab until a control has the focus.

    It is waited for first: on a busy machine Tab would lead past the form before the control is there.
    """
    control.wait_for()
    for _ in range(60):
        if control.count() and control.evaluate("element => element === document.activeElement"):
            return
        view.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {control}")


def test_simulations_by_keyboard_alone(notebook, lab, shots, axe):
    """A bad entry, a transfer, a fee payer, a failing call, without the mouse; single keys change no cell; a restart."""
    from playwright.sync_api import expect

    view = notebook(SIMULATION, name="simulations")
    keys, status = view.keyboard, view.locator(".ltk-status")
    view.get_by_label("Sender", exact=True).focus()
    keys.type("0xa11ce")
    tab_to(view, view.get_by_role("combobox", name="Function"))
    keys.type("0x1::aptos_account::transfer")
    expect(view.get_by_label("amount u64")).to_be_visible()
    tab_to(view, view.get_by_label("to address"))
    keys.type("0xb0b")
    tab_to(view, view.get_by_label("amount u64"))
    keys.type(str(2**64))
    expect(view.locator(".ltk-error", has_text="0 to 18,446,744,073,709,551,615, got")).to_be_visible()
    keys.press("Control+Enter")
    expect(status).to_contain_text("1 entry needs attention")
    expect(view.locator(".ltk-badge")).to_have_count(0)
    expect(view.get_by_label("amount u64")).to_be_focused()

    keys.press("Control+a")
    keys.type("100")
    keys.press("Control+Enter")  # simulates, and does not run the cell again
    expect(view.locator(".ltk-inside").get_by_text("Success", exact=True)).to_be_visible()
    expect(status).to_contain_text(re.compile(r"Success: [1-9][\d,]* gas units"))
    expect(view.get_by_role("tab", name="Outcome")).to_be_in_viewport()
    expect(view.locator(".ltk-panel").first).to_contain_text(".simulation.transactions")
    view.screenshot(path=shots / "lab_transfer.png")

    tab_to(view, view.locator("summary", has_text="Signers and fee payer"))
    keys.press("Enter")
    tab_to(view, view.get_by_label("Another account pays the fee"))
    keys.press("Space")
    tab_to(view, view.get_by_label("Fee payer", exact=True))
    keys.type("0xb0b")
    keys.press("Control+Enter")
    expect(view.locator(".ltk-panel").first).to_contain_text("−0.000001 APT")  # the amount alone
    expect(view.locator(".ltk-inside .ltk-code")).to_contain_text("fee_payer=")
    view.screenshot(path=shots / "lab_fee_payer.png")

    view.get_by_label("amount u64").focus()
    keys.press("Control+a")
    keys.type(str(2**64 - 1))
    keys.press("Control+Enter")
    expect(view.locator(".ltk-inside").get_by_text("Would fail", exact=True)).to_be_visible()
    expect(status).to_contain_text("Would fail: ")
    view.screenshot(path=shots / "lab_failing.png")

    cells = view.locator(".jp-Notebook .jp-Cell").count()
    assert axe(view) == []
    lab.press(view, ("x", "b", "j", "ArrowDown"))
    expect(view.get_by_role("button", name="Simulate", exact=True)).to_be_visible()
    assert view.locator(".jp-Notebook .jp-Cell").count() == cells
    expect(view.locator(".jp-InputPrompt").first).to_have_text("[1]:")

    view.get_by_role("menuitem", name="Kernel", exact=True).click()
    view.get_by_role("menuitem", name=re.compile("^Restart Kernel")).first.click()
    view.locator(".jp-Dialog .jp-mod-warn, .jp-Dialog .jp-mod-accept").last.click()
    gone = view.get_by_text("The kernel was restarted: run this cell again to use the form.")
    expect(gone).to_be_visible()
    view.screenshot(path=shots / "lab_restarted.png")
    view.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for(timeout=120_000)


def test_the_workbench_by_keyboard_alone(notebook, shots, axe):
    """A node, a nested vector of a simulation, a view, a table item and a study, in the dark theme."""
    from playwright.sync_api import expect

    view = notebook(WORKBENCH, name="workbench", theme="Dark")
    keys = view.keyboard
    tab_to(view, view.get_by_role("button", name="Connect"))
    keys.press("Enter")
    tab = view.get_by_role("tab", name="Simulation", exact=True)
    expect(tab).to_be_visible()
    expect(view.locator(".ltk-facts")).to_contain_text("4,999")
    tab_to(view, view.get_by_role("combobox", name="Function"))
    keys.type("0x1::code::publish_package_txn")
    expect(view.get_by_role("button", name="Add one: code")).to_be_visible()
    for value in ("0xaa", "0xbb"):
        tab_to(view, view.get_by_role("button", name=re.compile("Add (one|another): code")))
        keys.press("Enter")
        keys.type(value)
    expect(view.get_by_label("code, Item 2, Bytes")).to_have_value("0xbb")
    tab.focus()
    keys.press("ArrowRight")
    expect(view.get_by_role("tab", name="View", exact=True)).to_be_focused()
    field = view.get_by_role("tabpanel", name="View").get_by_role("combobox", name="Function")
    expect(field).to_be_visible()
    tab_to(view, field)
    keys.type("0xcafe::registry::size")
    keys.press("Control+Enter")
    expect(view.get_by_role("tabpanel", name="View")).to_contain_text("652")
    view.get_by_role("tab", name="View", exact=True).focus()
    keys.press("ArrowRight")
    items = view.get_by_role("tabpanel", name="Table item")
    tab_to(view, items.get_by_label("Account", exact=True))
    keys.type("0xcafe")
    tab_to(view, items.get_by_label("Key String"))
    keys.type("alice")
    keys.press("Control+Enter")
    expect(items).to_contain_text("registered_at")
    view.get_by_role("tab", name="Table item", exact=True).focus()
    keys.press("ArrowRight")
    gas = view.get_by_role("tabpanel", name="Gas")
    tab_to(view, gas.get_by_role("combobox", name="Function"))
    keys.type("0xcafe::registry::size")
    expect(gas.get_by_text("The function takes no arguments.")).to_be_visible()
    gas.get_by_label("Versions", exact=True).fill("3000:4000")
    keys.press("Control+Enter")
    expect(gas.locator(".ltk-status")).to_have_text(re.compile(r"1 step found in \d+ observations\."), timeout=120_000)
    gas.get_by_role("tabpanel", name="Steps").locator("details.ltk-step summary").press("Enter")
    expect(gas.get_by_text("459 of 512 parameters changed").first).to_be_visible()
    view.screenshot(path=shots / "lab_workbench_dark.png")
    assert axe(view) == []
