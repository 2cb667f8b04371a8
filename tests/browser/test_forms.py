"""Forms on a bare page: the real Python widget and its real front end, without Jupyter; keys are pressed, not simulated."""

from __future__ import annotations

import re
import socket
import threading

import pytest

import toolkit

pytestmark = pytest.mark.browser

TRANSFER = "0x1::aptos_account::transfer"
CALL = toolkit.EntryFunction(TRANSFER, arguments=["0xb0b", 100])
REGISTER = toolkit.EntryFunction("0xcafe::registry::register", ["fresh-name"])


@pytest.fixture
def form(node, bare):
    """Return a function that shows a builder; it is closed after the test."""
    builders = []

    def show(request=None, **about):
        builder = toolkit.widgets.SimulationBuilder(node, request=request)
        builders.append(builder)
        return builder, bare(builder, **about)

    yield show
    for builder in builders:
        builder.close()


def request(**fields):
    return toolkit.SimulationRequest(CALL, sender="0xa11ce", **fields)


def test_a_transfer_from_the_keyboard_alone(form, shots):
    """Tab leads to every control, arrows choose a function, Ctrl+Enter simulates, arrows turn the pages."""
    from playwright.sync_api import expect

    builder, shown = form()
    page, keys = shown.page, shown.page.keyboard
    page.get_by_label("Sender", exact=True).focus()
    keys.type("0xa11ce")
    keys.press("Tab")
    expect(page.get_by_label("The transaction runs")).to_be_focused()
    keys.press("Tab")
    keys.type("0x1::aptos_account::tr")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text(
        "transfer (to: address, amount: u64)"
    )
    page.screenshot(path=shots / "form_search.png")
    keys.type("ansfer_coins")  # the only match needs no arrow
    expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(1)
    keys.press("Enter")
    expect(page.get_by_role("combobox", name="Function")).to_have_value("0x1::aptos_account::transfer_coins")
    keys.press("ControlOrMeta+A")
    keys.type("0x1::aptos_account::tr")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text("transfer (")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(page.get_by_role("combobox", name="Function")).to_have_value(TRANSFER)
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(page.get_by_label("to address")).to_be_visible()
    keys.press("Tab")
    keys.type("0xb0b")
    keys.press("Tab")
    keys.type("1_00")
    keys.press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("Success")
    assert builder.simulation.request == request()
    page.get_by_role("tab", name="Outcome").focus()
    for name, words in [
        ("Gas", "Execution"),
        ("Changes", "sequence_number"),
        ("Events", "FeeStatement"),
    ]:
        keys.press("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(page.get_by_role("tabpanel").first).to_contain_text(words)
    page.screenshot(path=shots / "form_answered.png", full_page=True)
    page.get_by_role("combobox", name="Function").fill("")
    shown.settled()
    page.get_by_label("Sender", exact=True).focus()
    keys.press("Tab")
    keys.press("Tab")  # functions used last are offered before anything is typed
    expect(page.get_by_role("listbox")).to_contain_text("Recently used, or start from")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_be_visible()
    page.screenshot(path=shots / "form_recent.png")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(page.get_by_role("combobox", name="Function")).to_have_value(TRANSFER)


def test_keys_pressed_before_their_fields_arrive_are_theirs(form):
    """Tab leaves the function before its arguments are there: what is typed next goes into the arguments, and runs."""
    from playwright.sync_api import expect

    builder, shown = form()
    page, keys = shown.page, shown.page.keyboard
    page.get_by_label("Sender", exact=True).focus()
    keys.type("alice")
    page.get_by_role("combobox", name="Function").focus()
    keys.insert_text(TRANSFER)
    keys.press("Tab")
    keys.type("bob")
    keys.press("Tab")
    keys.type("1007")
    keys.press("Backspace")
    keys.press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("Success")
    assert builder.simulation.request == request()


def test_a_function_is_found_by_browsing(form, shots):
    """Before anything is typed places are offered; a place leads to its modules, a module to its functions."""
    from playwright.sync_api import expect

    builder, shown = form()
    page, keys = shown.page, shown.page.keyboard
    page.get_by_role("combobox", name="Function").focus()
    hits = page.get_by_role("listbox").get_by_role("option")
    page.locator("[data-name='0x1::']").click()
    module = page.locator("[data-name='0x1::aptos_account::']")
    expect(module).to_contain_text("functions")
    page.screenshot(path=shots / "form_browse.png")
    module.click()
    page.locator(f"[data-name='{TRANSFER}']").click()
    expect(page.get_by_label("amount u64")).to_be_visible()
    assert builder.function == TRANSFER
    page.get_by_role("combobox", name="Function").fill("transfer coin")
    expect(hits.first).to_contain_text("coin::transfer")
    keys.press("Escape")


def test_contracts_of_the_ledger_are_browsed_and_found_by_any_word(form):
    """A word finds contracts of all known accounts; Browse lists the accounts, whatever is typed."""
    from playwright.sync_api import expect

    builder, shown = form(request())
    shown.settled()
    page = shown.page
    field = page.get_by_role("combobox", name="Function")
    hits = page.get_by_role("listbox").get_by_role("option")
    for word, found in [("vault", "0xfa17::vault::"), ("register", "registry::register (name: String)")]:
        field.fill(word)
        expect(hits.filter(has_text=found).first).to_be_visible()
    page.get_by_role("button", name="Browse").click()
    page.locator("[data-name='0xfa17::']").click()
    module = page.locator("[data-name='0xfa17::vault::']")
    expect(module).to_contain_text("package")
    module.click()
    expect(page.locator("[data-name='0xfa17::vault::deposit']")).to_contain_text("(amount: u64)")
    page.locator("[data-name='0xfa17::vault::deposit']").click()
    expect(page.get_by_label("amount u64")).to_be_visible()
    assert builder.function == "0xfa17::vault::deposit"


def test_a_field_is_not_wrong_while_its_list_is_open(form):
    """An emptied field is an error after Simulate; Browse offers what to choose, and closing the list says it again."""
    from playwright.sync_api import expect

    _, shown = form(request())
    shown.settled()
    page = shown.page
    field = page.get_by_role("combobox", name="Function")
    field.fill("")
    page.get_by_role("button", name="Simulate", exact=True).click()
    expect(field).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Browse").click()
    expect(page.locator("[data-name='0xfa17::']")).to_be_visible()
    expect(field).not_to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Escape")
    expect(field).to_have_attribute("aria-invalid", "true")


def test_the_name_of_an_account_becomes_its_address(form):
    """On leaving the field, and when Ctrl+Enter is pressed in it."""
    from playwright.sync_api import expect

    builder, shown = form(request())
    shown.settled()
    page, keys = shown.page, shown.page.keyboard
    sender = page.get_by_label("Sender", exact=True)
    sender.fill("Bob")
    keys.press("Tab")
    expect(sender).to_have_value("0xb0b")
    page.get_by_label("to address").fill("alice")
    keys.press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("Success")
    assert (builder.sender, builder.request.payload.arguments[0]) == ("0xb0b", "0xa11ce")


def test_the_first_pick_is_incomplete_and_not_out_of_date(form):
    """Before the first complete request, no code exists that could be out of date."""
    from playwright.sync_api import expect

    _, shown = form()
    page = shown.page
    page.get_by_label("Sender", exact=True).fill("0xa11ce")
    page.get_by_role("combobox", name="Function").fill(TRANSFER)
    shown.settled()
    expect(page.get_by_label("amount u64")).to_be_visible()
    expect(page.get_by_text("out of date")).to_have_count(0)
    expect(page.get_by_text("Choose a sender and a function")).to_be_visible()


def test_calls_run_in_order_on_a_fork(form, shots):
    """A version is chosen, a call is kept, another is entered: the pages have the sequence and the gas by function."""
    from playwright.sync_api import expect

    _, shown = form(
        toolkit.SimulationRequest(toolkit.EntryFunction("0xfa17::vault::deposit", [1000]), sender="0xa11ce")
    )
    shown.settled()
    page = shown.page
    page.get_by_label("Simulate on").select_option("version")
    page.get_by_label("Version", exact=True).fill("3000")
    page.get_by_role("button", name="Run this call first, then another").click()
    before = page.get_by_role("group", name="Calls that run before this one").get_by_role("button")
    expect(before).to_contain_text("0xfa17::vault::deposit(1000) from alice")
    page.get_by_role("tab", name="curl").click()
    expect(page.get_by_role("button", name=re.compile("^Copy"))).to_have_count(0)  # there is only a reason
    page.get_by_label("amount u64").fill("7")
    page.get_by_label("amount u64").press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("on a fork of version 3,000, after 1 call")
    page.get_by_role("tab", name="Sequence (2)").click()
    expect(page.get_by_role("tabpanel").first.get_by_text("Success")).to_have_count(2)
    page.get_by_role("tab", name="Gas", exact=True).click()
    expect(page.get_by_role("tabpanel").first).to_contain_text("0xfa17::vault::deposit")
    page.screenshot(path=shots / "form_sequence.png", full_page=True)


def test_keys_pressed_in_the_form_stay_there(form):
    """A notebook that reads single keys gets none from any control; shortcuts with Ctrl still reach it.

    JupyterLab reads them when they come up to the document, Notebook 7 when they go down, unless the element is marked.
    """
    builder, shown = form(request())
    shown.settled()
    builder.simulate()
    shown.flush()
    page = shown.page
    page.evaluate("() => { window.heard = []; document.addEventListener('keydown', e => heard.push(e.key)); }")
    down = "e => e.target.hasAttribute('data-lm-suppress-shortcuts') || heard.push('down ' + e.key)"
    page.evaluate(f"() => document.addEventListener('keydown', {down}, true)")
    for summary in page.locator(".ltk summary:not(.ltk-origin)").all():
        summary.click()
    controls = page.locator(".ltk :is(input, select, textarea, button, summary, pre)").all()
    assert len(controls) > 25
    for control in controls:
        if control.is_visible():
            control.focus()
            for key in ("x", "b", "j"):
                page.keyboard.press(key)
            page.keyboard.press("Escape")
    assert page.evaluate("heard") == []
    page.keyboard.press("Control+b")
    assert page.evaluate("heard") == ["down Control", "Control", "down b", "b"]


def test_json_of_the_arguments_is_cleared_and_typed_again(form):
    """Select all, delete, type: the text that was deleted does not come back, and the fields follow."""
    from playwright.sync_api import expect

    builder, shown = form(request())
    shown.settled()
    page = shown.page
    page.get_by_text("Arguments as JSON").first.click()
    text = page.locator(".ltk-form textarea").last
    text.focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    shown.settled()
    expect(text).to_have_value("")
    expect(page.get_by_label("amount u64")).to_have_value("")
    page.keyboard.type('["0xb0b", 7]')
    shown.settled()
    expect(text).to_have_value('["0xb0b", 7]')
    expect(page.get_by_label("amount u64")).to_have_value("7")
    assert builder.arguments == '["0xb0b", 7]'


def test_the_state_before_is_read_for_each_simulation(form):
    """With the page of the changes open, each of several equal simulations shows what differs from before."""
    from playwright.sync_api import expect

    builder, shown = form(request())
    shown.settled()
    page = shown.page
    simulate = page.get_by_role("button", name="Simulate", exact=True)
    simulate.click()
    page.get_by_role("tab", name="Changes").click()
    for number in range(1, 4):
        shown.settled()
        assert builder._serial == number
        expect(page.get_by_role("tabpanel").first).to_contain_text("(+0.000001 APT)")
        simulate.click()
        expect(page.get_by_role("status").first).to_contain_text("Success")


def test_changes_are_filtered_unfolded_and_copied(form, shots, axe):
    """By words of addresses, types and values and by kind; equal fields on demand; the full address on a click."""
    from playwright.sync_api import expect

    _, shown = form(toolkit.SimulationRequest(REGISTER, sender="0xa11ce"))
    shown.settled()
    page = shown.page
    page.get_by_role("button", name="Simulate", exact=True).click()
    page.get_by_role("tab", name="Changes").click()
    shown.settled()
    items = page.locator(".ltk-state")
    expect(items.filter(has_text="created").first).to_contain_text("item fresh-name of table")
    kind = page.get_by_label("Kind of change")
    kind.select_option("created")
    assert all(
        "created" in one
        for one in items.locator("visible=true").locator("summary").all_inner_texts()
        if "equal" not in one
    )
    kind.select_option("")
    page.get_by_label("Filter", exact=True).fill("account a11ce")
    assert items.locator("visible=true").count() == 1
    fold = page.locator(".ltk-state:visible summary", has_text="equal field")
    fold.click()
    expect(page.locator(".ltk-state:visible")).to_contain_text("guid_creation_num")
    page.evaluate("document.execCommand = () => (window.copied = document.activeElement.value)")
    page.locator(".ltk-state:visible .ltk-tree .ltk-id").first.click()
    assert len(page.evaluate("window.copied")) == 66
    page.screenshot(path=shots / "form_changes.png", full_page=True)
    assert axe(page) == []


def test_an_edit_that_crosses_the_fields_on_their_way_keeps_them(node, bare):
    """The page edits before the answer of a look-up has reached it: the fields of the arguments are drawn."""
    from playwright.sync_api import expect

    builder, begin = toolkit.widgets.SimulationBuilder(node, request=request()), threading.Event()
    look = builder._look
    builder._look = lambda: (begin.wait(30), look())
    shown = bare(builder)
    shown.page.evaluate("() => { window.late = []; window.now = receive; window.receive = (news) => late.push(news); }")
    begin.set()
    shown.page.wait_for_function("() => late.flat().some(([, news]) => news._spec)")
    shown.page.get_by_label("Simulate on").select_option("version")
    shown.settled()
    shown.page.evaluate("""async () => {
      window.receive = now;
      for (const news of late) await new Promise((shown) => (receive(news), setTimeout(shown, 0)));
    }""")
    expect(shown.page.get_by_label("amount u64")).to_have_value("100")
    builder.close()


def test_an_account_that_cannot_pay_is_helped(form, shots):
    """It says what it has and needs; a button lowers the maximum."""
    from playwright.sync_api import expect

    poor = request(max_gas_amount=2_000_000, gas_unit_price=1_000_000)
    builder, shown = form(poor)
    shown.settled()
    page = shown.page
    page.get_by_role("button", name="Simulate", exact=True).click()
    expect(page.locator(".ltk-title").last).to_have_text(
        re.compile(r"cannot afford 2,000,000 gas units .* It has [\d,.]+ APT, and the fee may be 20,000 APT")
    )
    page.screenshot(path=shots / "form_cannot_pay.png", full_page=True)
    page.get_by_role("button", name="Lower the maximum").click()
    shown.settled()
    assert builder.request.max_gas_amount < 2_000_000
    page.get_by_role("button", name="Simulate", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Success")


def test_the_contracts_own_sentence_comes_first(form):
    """It is the headline, code and status are below; the argument that it is about is marked."""
    from playwright.sync_api import expect

    call = toolkit.EntryFunction("0xcafe::registry::register", ["ash-669"])
    _, shown = form(toolkit.SimulationRequest(call, sender="0xa11ce"))
    shown.settled()
    page = shown.page
    page.get_by_role("button", name="Simulate", exact=True).click()
    panel = page.get_by_role("tabpanel").first
    expect(panel.locator("strong.ltk-title")).to_have_text("The name is registered already.")
    expect(panel).to_contain_text("E_TAKEN, code 0x80001")
    expect(page.get_by_label("name String")).to_have_attribute("aria-invalid", "true")


def test_a_result_of_other_entries_is_dimmed_folded_and_named(form, shots):
    """An edit folds the result, which says so; undone, the result is back. Code of other entries cannot be copied."""
    from playwright.sync_api import expect

    builder, shown = form(request())
    shown.settled()
    page = shown.page
    page.get_by_role("button", name="Simulate", exact=True).click()
    verdict, origin = page.locator(".ltk-badge"), page.locator("summary.ltk-origin")
    expect(verdict).to_be_visible()
    expect(origin).to_have_text("From version 4,999, ledger time 2026-06-28 22:04:48 UTC")
    amount, copy = page.get_by_label("amount u64"), page.get_by_role("button", name="Copy Python")
    builder._lock.acquire()  # Python is at work: the page does not wait for it
    try:
        page.evaluate("window.toPython = async () => ({ news: [], idle: true })")
        amount.fill("300")
        expect(verdict).to_be_hidden()
        expect(copy).to_be_disabled()
    finally:
        builder._lock.release()
    expect(origin).to_have_text("From before your last change")
    expect(origin).to_be_in_viewport()
    page.screenshot(path=shots / "form_stale.png", full_page=True)
    origin.click()
    expect(verdict).to_be_visible()
    assert (
        page.locator(".ltk-result.ltk-old .ltk-panel").evaluate("one => getComputedStyle(one).filter") == "grayscale(1)"
    )


def test_an_edit_that_is_undone_brings_the_result_back(form):
    """The result is open again, and code that is the request's can be copied again."""
    from playwright.sync_api import expect

    _, shown = form(request())
    shown.settled()
    page = shown.page
    page.get_by_role("button", name="Simulate", exact=True).click()
    expect(page.locator(".ltk-badge")).to_be_visible()
    note, copy = page.get_by_text("This code is out of date"), page.get_by_role("button", name="Copy curl")
    page.get_by_role("tab", name="curl").click()
    page.get_by_label("amount u64").fill("abc")
    expect(page.locator(".ltk-badge")).to_be_hidden()
    expect(note).to_be_visible()
    expect(copy).to_be_disabled()
    page.get_by_label("amount u64").fill("100")
    expect(page.locator(".ltk-badge")).to_be_visible()
    expect(note).to_be_hidden()
    expect(copy).to_be_enabled()


@pytest.mark.parametrize("version", [3000, 4555])
def test_a_committed_transaction_ends_as_when_simulated_again(form, node, version):
    """Keys that the account does not have are left out with a note; Simulate gives the same result again."""
    from playwright.sync_api import expect

    from toolkit.client._rebuilt import simulated_again

    expected, _ = simulated_again(node, node.transaction(version))
    builder, shown = form()
    page = shown.page
    page.get_by_text("Start from a committed transaction").click()
    page.get_by_label("Version or hash").fill(str(version))
    page.get_by_label("Version or hash").press("Enter")
    status = page.locator(".ltk-status")
    expect(status).to_contain_text("Simulated without public keys")
    expect(status).to_contain_text(f"at version {version:,} with")
    shown.settled()
    for _ in range(2):
        found = builder.simulation
        assert (found.vm_status, found.gas_used) == (expected.vm_status, expected.gas_used)
        assert builder._stale == ""
        page.get_by_role("button", name="Simulate", exact=True).click()
        shown.settled()


def test_one_page_has_one_scrollbar(form, shots):
    """In a narrow and low window nothing scrolls inside of the page but a list of functions, which is in reach."""
    from playwright.sync_api import expect

    builder, shown = form(request(), width=400, height=490)
    shown.settled()
    page = shown.page
    page.get_by_role("button", name="Simulate", exact=True).click()
    page.get_by_role("tab", name="Changes").click()
    shown.settled()
    inner = """() => [...document.querySelectorAll(".ltk *")].filter((one) => one.scrollHeight > one.clientHeight + 1
      && ["auto", "scroll"].includes(getComputedStyle(one).overflowY)).map((one) => one.className)"""
    assert page.evaluate(inner) == []
    page.evaluate("window.scrollTo(0, 0)")
    edge = page.locator(".ltk-inside").bounding_box()
    height, width = page.evaluate("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]")
    assert height <= edge["y"] + edge["height"] + 20
    assert width == 400
    builder.request = request().replace(payload=toolkit.EntryFunction("0x1::a::b"))
    shown.flush()
    field = page.get_by_role("combobox", name="Function")
    field.fill("0x1::co")
    last = page.get_by_role("listbox").get_by_role("option").last
    expect(last).to_contain_text("account")
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
    page.screenshot(path=shots / "form_narrow.png")


def test_pages_are_filled_again_after_each_simulation(form):
    """Simulate, open a page, simulate again: the page stays open and has the new answer."""
    from playwright.sync_api import expect

    _, shown = form(request())
    shown.settled()
    page = shown.page
    for amount in ("200", "300", "400"):
        page.get_by_label("amount u64").fill(amount)
        page.get_by_role("button", name="Simulate", exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text("Success")
        page.get_by_role("tab", name="Outcome").click()
        expect(page.get_by_role("tabpanel").first).to_contain_text(f"+0.00000{amount[0]} APT")


def test_a_node_that_never_answers_is_cancelled(bare, shots):
    """Cancel appears while the node is waited for; entries can be typed meanwhile; after it the form is as before."""
    from playwright.sync_api import expect

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        with toolkit.connect(url, cache=None) as node:
            builder = toolkit.widgets.SimulationBuilder(node, request=request())
            shown = bare(builder)
            page = shown.page
            cancel, status = page.get_by_role("button", name="Cancel"), page.locator(".ltk-status")
            expect(cancel).to_be_visible()  # the function is looked up
            expect(status).to_have_text("Waiting for the node\u2026")
            cancel.click()
            expect(cancel).to_be_hidden()
            expect(status).to_have_text("Cancelled.")
            page.get_by_role("button", name="Simulate", exact=True).press("Enter")
            expect(status).to_have_text("Simulating\u2026")
            page.keyboard.press("Control+Enter")  # is not lost without a word
            expect(status).to_contain_text("Cancel first")
            page.get_by_label("Sender", exact=True).fill("0xca7")
            page.screenshot(path=shots / "form_waits.png")
            cancel.press("Enter")
            expect(page.get_by_role("button", name="Simulate", exact=True)).to_be_focused()
            expect(cancel).to_be_hidden()
            assert (builder.sender, builder.simulation, builder.errors) == ("0xca7", None, {})
            builder.close()


def test_the_result_comes_into_view(form):
    """On a small screen the result is below the form; after Simulate it is in view."""
    from playwright.sync_api import expect

    _, shown = form(request(), width=400, height=500)
    shown.settled()
    page = shown.page
    page.get_by_label("amount u64").press("Control+Enter")
    expect(page.get_by_role("tab", name="Outcome")).to_be_in_viewport()


def test_an_estimate_unticked_has_a_field(form):
    """The amount and the price can be said; what is typed is in the request."""
    builder, shown = form(request())
    shown.settled()
    page = shown.page
    page.get_by_text("Gas and expiration").click()
    assert not page.get_by_label("Gas unit price", exact=True).is_visible()
    page.get_by_label("Estimate gas unit price").uncheck()
    page.get_by_label("Gas unit price", exact=True).fill("150")
    page.get_by_label("Estimate max gas amount").uncheck()
    page.get_by_label("Max gas amount", exact=True).fill("0x1388")
    shown.settled()
    assert builder.request == request(gas_unit_price=150, max_gas_amount=5000)


def test_a_nested_vector_row_by_row(form):
    """Rows are added, moved and removed by keyboard; the focus goes where the next key belongs."""
    from playwright.sync_api import expect

    builder, shown = form()
    page, keys = shown.page, shown.page.keyboard
    page.get_by_label("Sender", exact=True).fill("0xa11ce")
    page.get_by_role("combobox", name="Function").fill("0x1::code::publish_package_txn")
    shown.settled()
    page.get_by_role("group", name=re.compile("^metadata_serialized")).get_by_role("textbox").fill("0x01")
    page.get_by_role("button", name="Add one: code").focus()
    keys.press("Enter")
    expect(page.get_by_label("code, Item 1, Bytes")).to_be_focused()
    keys.type("0xaa")
    page.get_by_role("button", name="Add another: code").press("Enter")
    keys.type("words")
    expect(page.locator(".ltk-error", has_text="two hex digits per byte")).to_be_visible()
    page.get_by_label("code, Item 2, Written as").select_option("text")
    shown.settled()
    assert builder.request.payload.arguments == ("0x01", ["0xaa", "0x776f726473"])
    page.get_by_role("button", name="Move up code 2").press("Enter")
    shown.settled()
    assert builder.request.payload.arguments[1] == ["0x776f726473", "0xaa"]
    page.get_by_role("button", name="Remove code 1").press("Enter")
    expect(page.get_by_label("code, Item 1, Bytes")).to_be_focused()
    shown.settled()
    assert builder.request.payload.arguments[1] == ["0xaa"]


def test_what_is_typed_while_python_answers_is_kept(form):
    """Forty keys, faster than the answers: none is lost, and the caret stays."""
    from playwright.sync_api import expect

    builder, shown = form(request())
    shown.settled()
    field = shown.page.get_by_label("amount u64")
    field.fill("")
    digits = "1234567890" * 4
    field.press_sequentially(digits)
    expect(field).to_have_value(digits)
    expect(field).to_be_focused()
    shown.settled()
    assert "0 to 18,446,744,073,709,551,615" in builder.errors["arguments.1"]


def test_the_first_wrong_field_has_the_focus(form):
    """After Simulate with wrong entries the first of them is focused, and read out with its sentence."""
    from playwright.sync_api import expect

    builder, shown = form()
    page = shown.page
    page.get_by_role("combobox", name="Function").fill(TRANSFER)
    shown.settled()
    assert page.locator(".ltk-error:not(:empty)").count() == 0
    page.get_by_role("button", name="Simulate", exact=True).click()
    sender = page.get_by_label("Sender", exact=True)
    expect(sender).to_be_focused()
    expect(sender).to_have_attribute("aria-invalid", "true")
    expect(sender).to_have_accessible_description(
        "enter an address: 0x and 1 to 64 hex digits, or the name of an account an address, or the name of an account"
    )
    assert set(builder.errors) == {"sender", "arguments.0", "arguments.1"}


def test_no_list_covers_the_message_at_a_function(form):
    """The form sets the focus there after Simulate; the list opens when it is asked for."""
    from playwright.sync_api import expect

    _, shown = form()
    page = shown.page
    page.get_by_label("Sender", exact=True).fill("alice")
    function = page.get_by_role("combobox", name="Function")
    function.focus()
    page.get_by_role("button", name="Simulate", exact=True).click()
    expect(function).to_be_focused()
    expect(page.get_by_text("choose a function, or enter")).to_be_visible()
    shown.settled()
    expect(page.get_by_role("listbox")).to_be_hidden()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("listbox")).to_be_visible()
    function.fill("vault")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(page.locator(".ltk-message.ltk-error").first).to_contain_text("vault")
    shown.settled()
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_a_failure_opens_the_page_that_says_why(form):
    """Whatever page was open."""
    from playwright.sync_api import expect

    register = toolkit.EntryFunction("0xcafe::registry::register", ["zoe"])
    _, shown = form(toolkit.SimulationRequest(register, sender="0xb0b"))
    page = shown.page
    page.get_by_role("button", name="Simulate", exact=True).click()
    page.get_by_role("tab", name=re.compile("^Events")).click()
    page.get_by_label(re.compile("^name")).fill("alice")
    page.get_by_role("button", name="Simulate", exact=True).click()
    expect(page.get_by_role("tab", name="Outcome")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel").first).to_contain_text("registered already")


def test_a_fee_payer_and_a_second_signer_by_name(form, shots):
    """The shapes of signatures are chosen by name; the request has them."""
    builder, shown = form(request())
    shown.settled()
    page = shown.page
    page.get_by_text("Signers and fee payer").click()
    page.get_by_label("Another account pays the fee").check()
    page.get_by_label("Fee payer", exact=True).fill("0xfee")
    page.get_by_label("Sender signs with").select_option("ed25519")
    page.get_by_label("Public key").first.fill("0x" + "11" * 32)
    page.get_by_role("button", name="Add one: Secondary signers").click()
    page.get_by_label("Secondary signers, Signer 1, Address").fill("0xca7")
    shown.settled()
    expected = request(fee_payer="0xfee", public_key="0x" + "11" * 32, secondary_signers=["0xca7"])
    assert builder.request == expected
    page.screenshot(path=shots / "form_signers.png", full_page=True)


def test_a_request_set_in_python_is_shown(form):
    """Whatever is set fills the fields, once the function is looked up; sections that it fills are open."""
    from playwright.sync_api import expect

    builder, shown = form()
    payer = shown.page.get_by_label("Fee payer", exact=True)
    builder.request = request()
    shown.flush()
    expect(shown.page.get_by_text("Sender signs with")).to_be_hidden()
    builder.request = request(fee_payer="0x0")
    shown.flush()
    shown.settled()
    expect(shown.page.get_by_label("to address")).to_have_value("0xb0b")
    expect(payer).to_be_visible()
    assert builder.request == request(fee_payer="0x0")
    shown.page.get_by_text("Signers and fee payer").click()
    shown.page.get_by_label("amount u64").fill("7")
    shown.settled()
    expect(payer).to_be_hidden()


def test_a_form_of_thirty_fields_is_small(node, bare):
    """What is sent to the browser for thirty fields stays under 20 kB, besides the code and the style of all forms."""
    names = [{"name": f"f{place}", "type": "u64"} for place in range(30)]
    abi = toolkit.move.decode_module_abi(
        {
            "address": "0xfa18",
            "name": "many",
            "exposed_functions": [{"name": "f", "is_entry": True, "params": ["0xfa18::many::S"]}],
            "structs": [{"name": "S", "fields": names}],
        }
    )
    with toolkit.connect(node.url, abis={("0xfa18", "many"): abi}) as other:
        builder = toolkit.widgets.SimulationBuilder(other)
        builder.sender, builder.function = "0xa11ce", "0xfa18::many::f"
        builder.check()
        shown = bare(builder)
        assert shown.page.locator("input[type=text]").count() >= 31
        own = {name: value for name, value in builder.get_state().items() if name not in {"_esm", "_css"}}
        assert len(str(own)) < 20_000
        builder.close()


def test_a_failure_of_the_sender_is_shown_while_it_has_the_focus(form):
    """After a run; while an address is typed, it is incomplete and not wrong."""
    from playwright.sync_api import expect

    _, shown = form(request())
    sender = shown.page.get_by_label("Sender", exact=True)
    sender.fill("0xdead")
    sender.press("Control+Enter")
    expect(sender).to_have_attribute("aria-invalid", "true")
    expect(sender).to_be_focused()
    sender.fill("0xdead beef")
    shown.settled()
    assert sender.get_attribute("aria-invalid") is None


def test_a_python_that_does_not_answer_is_said(form, shots):
    """An edit removes the messages about the last result and the last entry; after 5 s the form says why nothing follows."""
    from playwright.sync_api import expect

    _, shown = form(request())
    page, status = shown.page, shown.page.locator(".ltk-status")
    amount = page.get_by_label("amount u64")
    amount.press("Control+Enter")
    expect(status).to_contain_text("Success")
    expect(page.get_by_text("= 0.000001 APT")).to_be_visible()
    shown.settled()
    page.evaluate("[window.answered, window.tell] = [window.tell, () => {}]")
    amount.fill("77")
    expect(status).to_be_empty()
    expect(page.get_by_text("= 0.000001 APT")).to_have_count(0)
    expect(status).to_contain_text("No answer from Python")
    expect(status).to_have_class(re.compile("ltk-error"))
    page.screenshot(path=shots / "form_silent.png", full_page=True)
    page.evaluate("window.tell = window.answered")
    amount.press("Control+Enter")
    expect(status).to_contain_text("Success")
    expect(page.get_by_text("= 0.00000077 APT")).to_be_visible()


def test_a_finished_form_on_a_saved_page_is_a_picture_until_it_is_used(form):
    """A page that never hears from Python doubts no result; a button that has no effect says so."""
    from playwright.sync_api import expect

    _, shown = form(request())
    page = shown.page
    page.get_by_label("amount u64").press("Control+Enter")
    expect(page.locator(".ltk-status")).to_contain_text("Success")
    shown.settled()
    page.evaluate("() => { window.tell = () => {}; again(); }")
    status = page.locator(".ltk-status").last
    expect(status).to_contain_text("picture of the form")
    page.get_by_role("button", name="Simulate").last.click()
    expect(status).to_contain_text("No answer from Python yet")


def test_a_form_in_two_cells_hears_the_answers_of_both(form):
    """An answer to the other copy leaves nothing to wait for."""
    from playwright.sync_api import expect

    _, shown = form(request())
    shown.settled()
    shown.page.evaluate("again()")
    expect(shown.page.locator(".ltk-status")).to_have_count(2)
    shown.settled()  # also the 5 s after which a form says that nothing answers
    expect(shown.page.get_by_text("No answer from Python")).to_have_count(0)


def test_copied_is_said_for_a_moment(form):
    """It is beside the button, and gone after 2 s."""
    from playwright.sync_api import expect

    _, shown = form(request())
    shown.settled()
    copy = shown.page.get_by_role("button", name="Copy Python")
    copy.click()
    said = copy.locator("xpath=following-sibling::*[1]")
    expect(said).to_have_text("Copied.")
    assert said.evaluate("one => getComputedStyle(one).marginLeft") == "8px"
    expect(said).to_be_empty()


def test_an_exported_picture_has_no_style_of_its_page(form):
    """The page that nbconvert writes gives code a grey ground."""
    builder, shown = form(request())
    grey = ".out :not(pre) > code { background-color: #eee; padding: 1px 5px; }"
    shown.page.set_content(f"<style>{grey}</style><div class=out>{builder._bundle()['text/html']}</div>")
    code = shown.page.locator(".ltk-picture").evaluate("""picture => {
      const here = picture.appendChild(document.createElement("p")).appendChild(document.createElement("code"));
      return [getComputedStyle(here).backgroundColor, getComputedStyle(here).padding];
    }""")
    assert code == ["rgba(0, 0, 0, 0)", "0px"]


def test_a_restarted_kernel_is_said(form):
    """A form whose kernel is gone says what to do, instead of doing nothing."""
    from playwright.sync_api import expect

    _, shown = form()
    note = shown.page.get_by_role("alert")
    expect(note).to_have_count(0)
    shown.page.evaluate("fire('comm_live_update')")  # what the widget manager does with every model then
    expect(note).to_contain_text("run this cell again to use the form")
