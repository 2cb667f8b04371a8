"""Forms that read state, on a bare page, and both once in JupyterLab: pressed keys, the widget and its front end."""

from __future__ import annotations

import pytest

import toolkit

pytestmark = pytest.mark.browser

CELL = """import toolkit
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


@pytest.fixture
def form(bare):
    """Return a function that shows a builder; it is closed after the test."""
    builders = []

    def show(builder, **about):
        builders.append(builder)
        return bare(builder, **about)

    yield show
    for builder in builders:
        builder.close()


def test_a_view_over_versions_from_the_keyboard_alone(form, node, shots):
    """The function is found as it is typed, an argument has its field, a plan its note; Ctrl+Enter shows the figure."""
    from playwright.sync_api import expect

    builder = toolkit.widgets.ViewBuilder(node)
    shown = form(builder)
    page, keys = shown.page, shown.page.keyboard
    page.get_by_role("combobox", name="Function").focus()
    keys.type("0xcafe::registry::si")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text("size ()")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(page.get_by_text("The function takes no arguments.")).to_be_visible()
    page.get_by_label("Read at").focus()
    keys.type("many")
    keys.press("Tab")
    expect(page.get_by_label("Versions", exact=True)).to_be_focused()
    keys.type("0:-1/x")
    expect(page.locator(".ltk-error", has_text="is not understood")).to_be_visible()
    keys.press("Backspace")
    keys.type("9")
    keys.press("Control+Enter")
    figure = page.get_by_role("img", name="9 reads, versions 0 to 4,999; 1 failed")
    expect(figure).to_be_visible()
    assert figure.evaluate("image => image.naturalWidth") > 300
    expect(page.get_by_role("status").first).to_contain_text("9 reads")
    page.get_by_role("tab", name="Figure").press("ArrowRight")
    expect(page.get_by_role("tabpanel").first).to_contain_text("ledger_version")
    page.get_by_role("tab", name="Rows").press("ArrowRight")
    expect(page.get_by_role("tabpanel").first).to_contain_text("can't be found")
    page.screenshot(path=shots / "view_failed_versions.png", full_page=True)
    assert len(builder.result) == 9


def test_a_view_that_aborts_is_said_at_its_argument(form, node):
    """The sentence of the contract is under the argument, which has the focus."""
    from playwright.sync_api import expect

    shown = form(toolkit.widgets.ViewBuilder(node, function="0xcafe::registry::record_of"))
    page = shown.page
    page.get_by_label("name String").fill("nobody")
    page.get_by_label("name String").press("Control+Enter")
    expect(page.locator(".ltk-message.ltk-error")).to_contain_text("Nobody registered this name")
    expect(page.get_by_label("name String")).to_be_focused()
    page.get_by_label("name String").fill("alice")
    page.get_by_label("name String").press("Control+Enter")
    expect(page.get_by_role("tabpanel").first).to_contain_text("registered_at")


def test_an_item_from_the_account_that_has_its_table(form, node, shots):
    """Typing the account lists its tables; a key that a transaction changed is chosen; the item is there at a version."""
    from playwright.sync_api import expect

    builder = toolkit.widgets.TableItemBuilder(node)
    shown = form(builder)
    page, keys = shown.page, shown.page.keyboard
    page.get_by_label("Account", exact=True).focus()
    keys.type("0xcafe")
    expect(page.get_by_label("Table", exact=True)).to_contain_text("registry::Registry, records: Table<String, Record>")
    page.get_by_text("Find keys in transactions").click()
    page.get_by_label("Transactions at versions").fill("-300:")
    page.get_by_role("button", name="List keys").press("Enter")
    found = page.get_by_role("group", name="Keys, most recently changed first").get_by_role("button")
    expect(found.first).to_be_visible()
    name = builder.found_keys["key"][~builder.found_keys["deleted"]].iloc[0]
    found.filter(has_text=f"{name} (").press("Enter")
    expect(page.get_by_label("Key String")).to_have_value(name)
    page.get_by_label("Read at").select_option("version")
    page.get_by_label("Version", exact=True).fill("4,999")
    keys.press("Control+Enter")
    expect(page.get_by_role("tabpanel").first).to_contain_text("registered_at")
    assert builder.result == node.table_item(builder.handle, name, owner="0xcafe", ledger_version=4999)
    page.get_by_label("Key String").fill("nobody")
    page.get_by_label("Key String").press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("No item with this key at version 4,999")
    page.screenshot(path=shots / "item_missing.png", full_page=True)


def test_a_nested_vector_and_a_table_item_in_jupyterlab(notebook, lab, shots, axe):
    """As a person: rows in rows are added and filled, the sum is read; a key is found and its item read; both are kept."""
    from playwright.sync_api import expect

    page = notebook(CELL, name="reads")
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
    expect(view.locator(".ltk-error", has_text="0 to 18,446,744,073,709,551,615, got")).to_be_visible()
    keys.press("Control+a")
    keys.type("40")
    keys.press("Control+Enter")
    expect(view.get_by_role("tabpanel").first).to_contain_text("43")
    expect(view.locator(".ltk-code")).to_contain_text("[[[1, 2], [40]]]")
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
