"""Forms that read state, on a bare page: pressed keys, the widget and its front end."""

from __future__ import annotations

import pytest

import toolkit

pytestmark = pytest.mark.browser


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
    expect(page.locator(".ltk-wrong .ltk-hint", has_text="100:200")).to_be_visible()  # the forms of a plan
    keys.press("Backspace")
    keys.type("9")
    keys.press("Control+Enter")
    figure = page.get_by_role("img", name="value: 81 at version 624, 652 at version 4,999")
    expect(figure).to_be_visible()
    assert figure.evaluate("image => image.naturalWidth") > 300
    expect(page.get_by_role("status").first).to_contain_text("9 reads")
    page.get_by_role("tab", name="Figure").press("ArrowRight")
    expect(page.get_by_role("tabpanel").first).to_contain_text("ledger version")
    expect(page.get_by_role("tab", name="Not available (1)")).to_be_visible()
    page.get_by_role("tab", name="Rows").press("ArrowRight")
    expect(page.get_by_role("tabpanel").first).to_contain_text("can't be found")
    page.screenshot(path=shots / "view_failed_versions.png", full_page=True)
    assert len(builder.result) == 9
    page.get_by_label("Versions", exact=True).fill("1,000, 9,999")
    keys.press("Tab")  # the field says what it understood
    expect(page.get_by_text("= versions 1,000 and 9,999; version 9,999 does not exist yet")).to_be_visible()
    assert builder.versions == [1000, 9999]


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


def test_another_function_leaves_nothing_of_the_last_one(form, node):
    """Its name is typed over at once: no argument stays, unseen, in the request, the code or the message."""
    from playwright.sync_api import expect

    builder = toolkit.widgets.ViewBuilder(node, function="0xcafe::registry::record_of")
    shown = form(builder)
    page, keys = shown.page, shown.page.keyboard
    page.get_by_label("name String").fill("elm-828")
    page.get_by_label("name String").press("Control+Enter")
    expect(page.get_by_role("tabpanel").first).to_contain_text("registered_at")
    function = page.get_by_role("combobox", name="Function")
    function.focus()
    keys.press("Control+a")
    keys.press("Backspace")
    keys.type("share_price")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text("share_price")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(page.get_by_text("The function takes no arguments.")).to_be_visible()
    function.press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("Returned 1 value")
    assert (builder.errors, builder.request) == ({}, toolkit.ViewFunction("0xfa17::vault::share_price"))
    assert "elm-828" not in builder.python


def test_a_field_of_another_function_is_new(form, node):
    """An argument that was left empty is an error; that of the next function, at the same place, is not yet."""
    from playwright.sync_api import expect

    shown = form(toolkit.widgets.ViewBuilder(node, function="0xcafe::registry::record_of"))
    page, keys = shown.page, shown.page.keyboard
    name = page.get_by_label("name String")
    name.fill("elm-828")
    name.fill("")
    keys.press("Tab")
    name.fill("")
    expect(page.get_by_role("combobox", name="Function")).to_be_visible()
    page.get_by_role("combobox", name="Function").fill("0x1::account::exists_at")
    keys.press("Tab")
    expect(page.get_by_label("address", exact=False).first).to_be_visible()
    shown.settled()
    expect(page.locator("[aria-invalid=true]")).to_have_count(0)


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
    assert found.count() > 3
    page.get_by_label("Filter").press_sequentially(name)
    expect(found).to_have_count(1)
    expect(page.get_by_label("Filter")).to_have_value(name)
    page.get_by_label("Filter").press("Enter")  # chooses the first
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
