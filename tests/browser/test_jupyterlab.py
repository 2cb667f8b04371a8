"""The builders in JupyterLab and Notebook 7, as a person uses them, on the embedded node; most tests are in `test_forms`.

All of them are in this file since a file runs in one worker, which starts JupyterLab once.
"""

from __future__ import annotations

import json
import re

import pytest

pytestmark = pytest.mark.browser

SIMULATION = "import toolkit\n\nform = toolkit.widgets.SimulationBuilder(toolkit.connect())\nform"
WORKBENCH = "import toolkit\n\nbench = toolkit.widgets.Workbench()\nbench"
READS = """import toolkit
from IPython.display import display
from toolkit import embedded
from toolkit.embedded import Module, u64, vector, view
from toolkit.embedded.teaching import Registry

class Sums(Module, address="0xcafe"):
    @view
    def total(self, rows: vector[vector[u64]]) -> u64:
        return sum(sum(row) for row in rows)

ledger = embedded.Ledger()
ledger.publish(Sums, Registry)
ledger.fund("0xa11ce", 10**9)
ledger.commit("0xcafe::registry::register", "alice", sender="0xa11ce")
server = embedded.start(ledger)
node = toolkit.connect(server.url)
total, item = toolkit.widgets.ViewBuilder(node), toolkit.widgets.TableItemBuilder(node)
display(total, item)"""
MATHEMATICS = """
import pandas as pd
import toolkit
from IPython.display import HTML, display
from toolkit._present.notebook import facts_html

def show(name, thing):
    display(HTML(f"<hr id='{name}'>"))
    display(thing)

frame = toolkit.fetch_views(toolkit.connect(), toolkit.ViewFunction(function="0x1::chain_id::get"), versions=[1, 2])
frame["text"] = pd.array(["$x^2$"] * 2, dtype="string")
class Result:
    def _repr_html_(self):
        return facts_html("call $x^2$", [("value", r"$x^2$ $$y$$ \\(z\\) &#36;w&#36;")])
show("frame", frame)
show("result", Result())
show("mathematics", pd.DataFrame({"text": ["$x^2$"]}))
"""
SAVED = """import toolkit

call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
form = toolkit.widgets.SimulationBuilder(toolkit.connect(), request=toolkit.SimulationRequest(call, sender="0xa11ce"))
form"""


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
    expect(view.locator(".ltk-error", has_text="0 to 18,446,744,073,709,551,615")).to_be_visible()
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
    expect(view.locator(".ltk-panel").first).to_contain_text(".simulation of this form")
    view.screenshot(path=shots / "lab_transfer.png")

    tab_to(view, view.locator("summary", has_text="Signers and fee payer"))
    keys.press("Enter")
    tab_to(view, view.get_by_label("Another account pays the fee"))
    keys.press("Space")
    tab_to(view, view.get_by_label("Fee payer", exact=True))
    keys.type("0xb0b")
    keys.press("Control+Enter")
    expect(view.locator(".ltk-panel").first).to_contain_text("−0.000001 APT")  # the amount alone
    expect(view.locator(".ltk-code-pane .ltk-code")).to_contain_text("fee_payer=")
    view.screenshot(path=shots / "lab_fee_payer.png")

    view.get_by_label("amount u64").focus()
    keys.press("Control+a")
    keys.type(str(2**64 - 1))
    keys.press("Control+Enter")
    expect(view.locator(".ltk-inside").get_by_text("Would fail", exact=True)).to_be_visible()
    expect(status).to_contain_text("Would fail at version 4,999")
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
    expect(gas.locator(".ltk-status")).to_have_text(
        re.compile(r"1 step in gas, from \d+ observations"), timeout=120_000
    )
    expect(gas.get_by_text("459 of 512 parameters changed").first).to_be_visible()
    view.screenshot(path=shots / "lab_workbench_dark.png")
    assert axe(view) == []


def test_a_nested_vector_and_a_table_item_in_jupyterlab(notebook, lab, shots, axe):
    """As a person: rows in rows are added and filled, the sum is read; a key is found and its item read; both are kept."""
    from playwright.sync_api import expect

    page = notebook(READS, name="reads")
    view, item = (page.locator(".ltk:not(.ltk-picture)").nth(place) for place in (0, 1))
    keys = page.keyboard
    view.get_by_role("combobox", name="Function").fill("0xcafe::sums::total", timeout=120_000)
    view.get_by_role("button", name="Add one: List").press("Enter")
    for add, number in (("one", "1"), ("another", "2")):
        view.get_by_role("button", name=f"Add {add}: List, Item 1").press("Enter")
        keys.type(number)
    view.get_by_role("button", name="Add another: List", exact=True).press("Enter")
    view.get_by_role("button", name="Add one: List, Item 2").press("Enter")
    keys.type(str(2**64))
    expect(view.locator(".ltk-error", has_text="0 to 18,446,744,073,709,551,615")).to_be_visible()
    keys.press("Control+a")
    keys.type("40")
    keys.press("Control+Enter")
    expect(view.get_by_role("tabpanel").first).to_contain_text("43")
    expect(view.locator(".ltk-code-pane .ltk-code")).to_contain_text("[[[1, 2], [40]]]")
    page.screenshot(path=shots / "lab_view.png")

    item.get_by_label("Account", exact=True).fill("0xcafe")
    expect(item.get_by_label("Table", exact=True)).to_contain_text("registry::Registry, records")
    item.get_by_text("Find keys in transactions").click()
    item.get_by_role("button", name="List keys").press("Enter")
    item.get_by_role("button", name="alice (").press("Enter")
    expect(item.get_by_label("Key String")).to_have_value("alice")
    item.get_by_label("Key String").press("Control+Enter")
    expect(item.get_by_role("tabpanel").first).to_contain_text("registered_at")
    item.get_by_label("Key String").fill("bob")
    item.get_by_label("Key String").press("Control+Enter")
    expect(item.locator(".ltk-status")).to_contain_text("No item with this key")
    page.screenshot(path=shots / "lab_table_item.png")
    assert axe(page, ".jp-Notebook .ltk") == []  # also of two forms in one notebook
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    lab.press(page, ("x", "b", "j"))
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    expect(page.locator(".jp-InputPrompt").first).to_have_text("[1]:")


def test_dollar_signs_from_the_chain_are_no_mathematics(notebook):
    """Frames and results show the dollars; a frame of the user's own is typeset as before."""
    page = notebook(MATHEMATICS, name="mathematics")
    outputs = page.locator(".jp-OutputArea-child")
    outputs.filter(has=page.locator("mjx-container")).first.wait_for(timeout=120_000)  # MathJax has been loaded and ran
    typeset = {}
    for name in ("frame", "result", "mathematics"):
        after = page.locator(f".jp-OutputArea-child:has(#{name}) + .jp-OutputArea-child")
        typeset[name] = after.locator("mjx-container").count() > 0
        assert typeset[name] or "$x^2$" in after.inner_text()
    assert typeset == {"frame": False, "result": False, "mathematics": True}


@pytest.mark.parametrize("classic", [False, True], ids=["JupyterLab", "Notebook 7"])
def test_a_reopened_notebook_shows_the_last_result(notebook, lab, browser, shots, classic):
    """Simulate and save; without the kernel, and in a new one, the picture with the result is there, and no error.

    Notebook 7, too, leaves single keys to the form: no cell is cut or added.
    """
    from playwright.sync_api import expect

    name = f"reopened{int(classic)}"
    view = notebook(SAVED, name=name, classic=classic, strict=False)
    picture = view.locator(".ltk-picture")
    view.get_by_role("button", name="Simulate", exact=True).click()
    expect(view.locator(".ltk-inside").get_by_text("Success", exact=True)).to_be_visible()
    expect(picture).to_be_hidden()
    view.wait_for_timeout(1_600)  # after which a picture without its form appears
    expect(picture).to_be_hidden()
    view.keyboard.press("Control+s")
    saved = lab.folder / f"work/{name}.ipynb"
    expect(view.locator(".jp-InputPrompt").first).to_have_text("[1]:")
    for _ in range(300):
        if "Would succeed" in saved.read_text("utf-8") or "Success" in saved.read_text("utf-8"):
            break
        view.wait_for_timeout(100)
    outputs = json.loads(saved.read_text("utf-8"))["cells"][0]["outputs"]
    lab.end_kernels(view)
    if classic:
        view.close()

    again = lab.show(browser, name, classic=classic, reload=True)
    again.set_viewport_size({"width": 1200, "height": 900})
    shown = again.locator(".ltk-picture")
    expect(shown).to_be_visible(timeout=120_000)
    expect(shown).to_contain_text("From: embedded, version 4,999")
    expect(shown).to_contain_text("Success")
    again.wait_for_timeout(3_000)
    again.screenshot(path=shots / f"{name}.png")
    expect(again.get_by_text("model not found")).to_be_hidden()
    expect(again.get_by_text("Loading widget")).to_be_hidden()
    if classic:  # in JupyterLab, other tests press keys
        again.locator(".jp-Notebook .cm-content").first.click()
        again.keyboard.press("Control+Enter")
        again.get_by_role("button", name="Simulate", exact=True).wait_for()
        cells = again.locator(".jp-Notebook .jp-Cell").count()
        lab.press(again, ("x", "b"))
        expect(again.get_by_role("button", name="Simulate", exact=True)).to_be_visible()
        assert again.locator(".jp-Notebook .jp-Cell").count() == cells
        again.close()
    assert [list(one["data"]) for one in outputs][1] == ["text/html", "text/plain"]
