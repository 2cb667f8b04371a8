"""The simulation builder in JupyterLab, as a person uses it, on the embedded node; most tests are in `test_forms`."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser

SOURCE = "import toolkit\n\nform = toolkit.widgets.SimulationBuilder(toolkit.connect())\nform"
PNG = b"\x89PNG\r\n"


@pytest.fixture
def page(lab, browser, request):
    """Return a page with the builder on it; errors of its scripts fail the test."""
    opened, errors = [], []

    def start(theme="JupyterLab Light"):
        lab.theme(theme)
        page = lab.open(browser, SOURCE, name=request.node.name, errors=errors)
        opened.append(page)
        page.get_by_role("button", name="Simulate", exact=True).wait_for(timeout=60_000)
        return page

    yield start
    for page in opened:
        page.close()
    assert errors == []


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_a_transfer_is_simulated_from_the_keyboard(page, shots, theme):
    """A label leads to its entry, Tab to the next, Ctrl+Enter simulates and does not run the cell again."""
    from playwright.sync_api import expect

    view = page(theme)
    keys = view.keyboard
    view.get_by_text("Sender", exact=True).click()  # a label that is tied puts the focus into its entry
    keys.type("0xa11ce")
    view.get_by_role("combobox", name="Function").focus()
    keys.type("0x1::aptos_account::transfer")
    expect(view.get_by_label("Argument 2")).to_be_visible(timeout=20_000)
    view.get_by_label("Argument 1").fill("0xb0b")
    keys.press("Tab")
    keys.type("100")
    keys.press("Control+Enter")
    expect(view.get_by_text("Success", exact=True)).to_be_visible(timeout=20_000)
    expect(view.locator(".ltk-status")).to_contain_text(re.compile(r"Success: [1-9][\d,]* gas units"))
    expect(view.locator(".jp-InputPrompt").first).to_have_text("[1]:")
    expect(view.get_by_role("tab", name="Outcome")).to_be_in_viewport()
    expect(view.locator(".ltk-panel").first).to_contain_text("form.simulation.transactions")
    file = shots / f"simulation_builder_{theme.split()[1].lower()}.png"
    view.screenshot(path=file)
    assert file.read_bytes().startswith(PNG)
    view.get_by_label("Keep in the notebook as").fill("paid")
    view.get_by_role("button", name="Keep").click()
    expect(view.locator(".ltk-status")).to_contain_text("paid.changes is a frame")


def test_keys_pressed_on_any_control_leave_the_notebook_alone(page):
    """``x`` would cut the cell and the form with it, ``b`` would add one, arrows would leave it."""
    from playwright.sync_api import expect

    view = page()
    for summary in view.locator(".ltk summary").all():
        summary.click()
    cells = view.locator(".jp-Notebook .jp-Cell").count()
    for control in view.locator(".ltk :is(input, select, textarea, button, summary)").all():
        if not control.is_visible():
            continue
        control.focus()
        for key in ("x", "b", "j", "ArrowDown"):
            view.keyboard.press(key)
    expect(view.get_by_role("button", name="Simulate", exact=True)).to_be_visible()
    assert view.locator(".jp-Notebook .jp-Cell").count() == cells


def test_a_bad_entry_is_said_at_its_field(page):
    """A value that the type does not take: a sentence under the field, while it is typed; nothing is simulated."""
    from playwright.sync_api import expect

    view = page()
    view.get_by_label("Sender", exact=True).fill("0xa11ce")
    view.get_by_role("combobox", name="Function").fill("0x1::aptos_account::transfer")
    view.get_by_label("Argument 1").fill("0xb0b", timeout=20_000)
    view.get_by_label("Argument 2").fill(str(2**64))
    expect(view.locator(".ltk-error")).to_contain_text("outside 0..18446744073709551615")
    view.get_by_role("button", name="Simulate", exact=True).click()
    expect(view.locator(".ltk-status")).to_contain_text("1 entry needs attention")
    expect(view.get_by_label("Argument 2")).to_be_focused()
    expect(view.locator(".ltk-badge")).to_have_count(0)


def test_a_restarted_kernel_says_what_to_do(page, shots):
    """The form stays on the page when the kernel is restarted, and says that its cell must be run again."""
    from playwright.sync_api import expect

    view = page()
    view.get_by_label("Sender", exact=True).fill("0xa11ce")
    view.get_by_role("menuitem", name="Kernel", exact=True).click()
    view.get_by_role("menuitem", name=re.compile(r"^Restart Kernel")).first.click()
    view.locator(".jp-Dialog .jp-mod-warn, .jp-Dialog .jp-mod-accept").last.click()
    note = view.get_by_text("The kernel was restarted: run this cell again to use the form.")
    expect(note).to_be_visible(timeout=30_000)
    view.screenshot(path=shots / "form_kernel_restarted.png")
