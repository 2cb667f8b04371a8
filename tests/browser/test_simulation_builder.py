"""The simulation builder in JupyterLab, from the keyboard, on the embedded node."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser

SOURCE = "import toolkit\n\nbuilder = toolkit.widgets.SimulationBuilder(toolkit.connect())\nbuilder"
PNG = b"\x89PNG\r\n"
CONTRAST = """element => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = text => rgb(text).slice(0, 3)
    .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  let ground = element;
  while (ground && (rgb(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
  const [a, b] = [light(getComputedStyle(element).color), light(getComputedStyle(ground).backgroundColor)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""
CUT_OFF = """element => element.scrollWidth > element.clientWidth + 1"""


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


def test_a_transfer_is_simulated_from_the_keyboard(page, shots):
    """Labels lead to entries, Tab from one to the next, Enter simulates, arrow keys turn the pages."""
    from playwright.sync_api import expect

    view = page()
    keys = view.keyboard
    view.get_by_text("Sender", exact=True).click()  # a label that is tied puts the focus into its entry
    keys.type("0xa11ce")
    keys.press("Tab")
    keys.type("0x1::aptos_account::transfer")
    keys.press("Tab")
    keys.press("Tab")
    keys.type('["0xb0b", 100]')
    expect(view.get_by_label("Arguments", exact=True)).to_have_value('["0xb0b", 100]')
    expect(view.get_by_label("The request as Python").first).to_contain_text("arguments=['0xb0b', 100]")
    for _ in range(4):  # past the three estimate options
        keys.press("Tab")
    expect(view.get_by_role("button", name="Simulate", exact=True)).to_be_focused()
    keys.press("Enter")
    expect(view.get_by_text("Success", exact=True)).to_be_visible(timeout=20_000)
    expect(view.locator(".ltk-page").first).to_contain_text(re.compile(r"Gas used\s*[1-9][\d,]* gas units"))
    file = shots / "simulation_builder_light.png"
    view.screenshot(path=file)
    assert file.read_bytes().startswith(PNG)

    view.get_by_role("tab", name="Summary").focus()
    for title, words in [("Gas", "Execution"), ("State changes", "write resource"), ("Events", "FeeStatement")]:
        keys.press("ArrowRight")
        keys.press("Enter")
        expect(view.get_by_role("tab", name=title)).to_have_attribute("aria-selected", "true")
        expect(view.get_by_role("region", name=words).or_(view.get_by_text(words)).first).to_be_visible()


def test_a_bad_entry_is_told_under_it(page):
    """What cannot be read, and what the ABI refuses, stands at the entry; the kernel's request stays."""
    from playwright.sync_api import expect

    view = page()
    view.get_by_label("Sender").fill("0xa11ce")
    view.get_by_label("Function").fill("0x1::aptos_account::transfer")
    arguments = view.locator(".ltk-field").filter(has=view.get_by_label("Arguments", exact=True))
    arguments.locator("textarea").fill('["0xb0b", ')
    expect(arguments.locator(".ltk-error")).to_contain_text("expected a JSON array")
    arguments.locator("textarea").fill('["0xb0b", "many"]')
    expect(arguments.locator(".ltk-error")).to_have_count(0)
    view.get_by_role("button", name="Simulate", exact=True).click()
    expect(arguments.locator(".ltk-error")).to_contain_text("string 'many'", timeout=20_000)
    expect(view.locator(".ltk-badge")).to_have_count(0)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_all_words_can_be_read(page, shots, theme):
    """In either theme words stand out from their ground (WCAG AA), and no label or button is cut off."""
    from playwright.sync_api import expect

    view = page(theme)
    view.get_by_label("Sender").fill("0xa11ce")
    view.get_by_label("Function").fill("0x1::aptos_account::transfer")
    view.get_by_label("Arguments", exact=True).fill('["0xb0b", 100]')
    view.get_by_role("button", name="Simulate", exact=True).click()
    expect(view.locator(".ltk-badge")).to_be_visible(timeout=20_000)
    view.get_by_label("Sender").fill("alice")
    expect(view.locator(".ltk-error")).to_be_visible()
    view.screenshot(path=shots / f"simulation_builder_{theme.split()[1].lower()}_error.png")
    words = (
        ".ltk-title, .ltk-title span, .ltk .widget-label, .ltk-hint, .ltk-ok, .ltk-error, .ltk-code, .ltk th, .ltk td"
    )
    for element in view.locator(words).all():
        if element.is_visible() and element.inner_text().strip():
            assert element.evaluate(CONTRAST) >= 4.5, element.inner_text()
    for element in view.locator(".ltk .widget-label, .ltk button, .ltk .lm-TabBar-tabLabel").all():
        if element.is_visible():
            assert not element.evaluate(CUT_OFF), element.inner_text()
