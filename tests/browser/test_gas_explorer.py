"""The gas explorer as a person uses it: in JupyterLab once, otherwise on a bare page."""

from __future__ import annotations

import re

import pytest

import toolkit
from toolkit import embedded

pytestmark = pytest.mark.browser

SOURCE = "import toolkit\n\nexplorer = toolkit.widgets.GasExplorer(toolkit.connect())\nexplorer"
SUPPLY = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
SIZE = toolkit.ViewFunction("0xcafe::registry::size")


@pytest.fixture(scope="module")
def node():
    """Return the embedded node."""
    with toolkit.connect() as made:
        yield made


@pytest.fixture
def form(node, bare):
    """Return a function that shows an explorer; it is closed after the test."""
    made = []

    def show(study=None, **about):
        made.append(toolkit.widgets.GasExplorer(node, study=study))
        return made[-1], bare(made[-1], **about)

    yield show
    for explorer in made:
        explorer.close()


def study(node, calls=(SUPPLY, SIZE), **more):
    return toolkit.Study(node=node, calls=list(calls), **{"versions": "3490:3510"} | more)


def run(shown):
    """Press Run, and wait until the run has ended."""
    shown.page.get_by_role("button", name="Run", exact=True).click()
    shown.page.wait_for_function("() => window.sent === 0", timeout=120_000)


def test_a_step_is_found_in_jupyterlab(lab, browser, shots):
    """Open, type a function, run, click the mark of the release at 3502, and read why the gas rose."""
    from playwright.sync_api import expect

    errors = []
    view = lab.open(browser, SOURCE, name="gas_explorer", errors=errors, width=1280)
    keys = view.keyboard
    view.get_by_role("combobox", name="Function").click()
    keys.type("0xcafe::registry::si", delay=20)
    view.get_by_role("option", name=re.compile("size")).click(timeout=20_000)
    expect(view.get_by_text("The function takes no arguments.")).to_be_visible(timeout=20_000)
    view.get_by_label("First version").fill("3000")
    view.get_by_label("Last version").fill("4000")
    view.get_by_label("First grid").fill("9")
    keys.press("Tab")
    view.get_by_role("button", name="Run", exact=True).click()
    expect(view.locator(".ltk-status")).to_have_text(re.compile(r"1 step found in \d+ readings\."), timeout=120_000)
    mark = view.get_by_role("button", name="Step at 3502, gas schedule")
    mark.click()
    why = view.get_by_text("changed the gas schedule: 459 of 512 parameters changed, every one x10")
    expect(why.first).to_be_in_viewport()
    row = view.get_by_role("row", name="0xcafe::registry::size 3 21 x7")
    expect(row.first).to_be_visible()
    view.screenshot(path=shots / "gas_explorer_step.png")
    view.get_by_role("tab", name="Explain").click()
    expect(view.get_by_role("region", name="What was found, in words")).to_contain_text("at version 3502 (2026-05-06)")
    view.get_by_label("Keep in the notebook as").fill("found")
    view.get_by_role("button", name="Keep").click()
    expect(view.locator(".ltk-status")).to_contain_text("found.steps and found.observations are frames")
    view.close()
    assert errors == []


def test_a_study_is_made_run_and_read_from_the_keyboard(form, node, shots):
    """Two calls are added and chosen by keys; the marks are reached by Tab, and Enter shows the cause."""
    from playwright.sync_api import expect

    explorer, shown = form()
    page, keys = shown.page, shown.page.keyboard
    page.get_by_role("combobox", name="Function").focus()
    keys.type("0xcafe::registry::size")
    keys.press("Escape")
    page.get_by_role("button", name="Add a call").focus()
    keys.press("Enter")
    expect(page.get_by_role("radio", name="no function yet")).to_be_checked()
    page.get_by_role("combobox", name="Function").focus()
    keys.type("0x1::coin::supply")
    keys.press("Escape")
    page.get_by_label("Type 1").fill("0x1::aptos_coin::AptosCoin")
    page.get_by_label("Label").fill("supply")
    page.get_by_role("radio", name="supply").focus()
    keys.press("ArrowUp")
    expect(page.get_by_role("radio", name="0xcafe::registry::size")).to_be_focused()
    expect(page.get_by_role("combobox", name="Function")).to_have_value("0xcafe::registry::size")
    page.get_by_label("Read at").focus()
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    expect(page.get_by_label("Step", exact=True)).to_have_value("1")
    page.get_by_label("First version").fill("3490")
    page.get_by_label("Last version").fill("3510")
    keys.press("Control+Enter")
    shown.page.wait_for_function("() => window.sent === 0")
    assert [call.name for call in explorer.study.calls] == ["0xcafe::registry::size", "supply"]
    expect(page.get_by_role("status").first).to_contain_text("1 step found in 42 readings.")
    expect(page.get_by_text("The function takes no arguments.")).to_be_visible()
    page.get_by_role("tab", name="Figure").focus()
    for _ in range(3):
        keys.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "Step at 3502, gas schedule":
            break
    keys.press("Enter")
    expect(page.locator("[data-part]:visible")).to_contain_text("At version 3502 (2026-05-06), gas schedule")
    expect(page.locator("[data-part]:visible").get_by_role("row")).to_have_count(2 + 1 + 2)
    page.screenshot(path=shots / "gas_explorer_keyboard.png", full_page=True)
    page.get_by_role("tab", name="Figure").press("ArrowRight")
    page.locator("details.ltk-step summary").first.press("Enter")
    expect(page.locator("details.ltk-step[open]")).to_contain_text("every one x10")


def test_a_mark_lies_over_the_step_that_it_shows(form, node):
    """The buttons are where the figure has its marks, wide and narrow; a click on one shows its part."""
    from playwright.sync_api import expect

    _, shown = form(study(node, calls=[SUPPLY]))
    shown.settled()
    run(shown)
    page = shown.page
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 900})
        distance = page.evaluate("""() => {
          const middle = (one) => { const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; };
          const [x, y] = middle(document.querySelector("[data-open]"));
          const marks = [...document.querySelectorAll(".ltk-figure svg use")].filter((one) => /vermillion/.test(one.getAttribute("style")));
          return Math.min(...marks.map(middle).map(([a, b]) => Math.hypot(a - x, b - y)));
        }""")
        assert distance < 3
    page.get_by_role("button", name="Step at 3502").click()
    expect(page.locator("[data-part]:visible")).to_have_count(1)


@pytest.fixture
def falling_silent():
    """Return a client of a node that answers 900 requests and then none: a run cannot end before it is cancelled."""
    with (
        embedded.start(embedded.Ledger.with_history(cache=True)) as server,
        toolkit.connect(server.url, cache=None) as made,
    ):
        server.faults.schedule([None] * 900 + ["hang"] * 5_000)
        yield made


def test_progress_is_shown_and_cancel_leaves_what_was_read(falling_silent, bare):
    """A bar and words while it runs, the figure so far, and Cancel; the readings until then are shown."""
    from playwright.sync_api import expect

    explorer = toolkit.widgets.GasExplorer(falling_silent, study=study(falling_silent, versions="0:-1/900"))
    shown = bare(explorer)
    shown.settled()
    page = shown.page
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("progressbar")).to_be_hidden()
    expect(page.get_by_text("readings so far")).to_be_visible(timeout=20_000)
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_text("calls read")).to_contain_text(re.compile(r"^\D*[1-9]\d\d of about 1,800"), timeout=20_000)
    expect(page.locator(".ltk-figure svg")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status").first).to_contain_text(re.compile(r"Stopped after [\d,]+ readings"))
    expect(page.get_by_role("progressbar")).to_be_hidden()
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    page.get_by_role("tab", name="Observations").click()
    expect(page.get_by_role("tabpanel").first).to_contain_text("First 100 of")
    assert 100 < len(explorer.result.observations) < 1800
    explorer.close()


def test_a_study_file_is_saved_from_the_page(form, node, tmp_path):
    """Where the user says; a second time only after the box was ticked."""
    from playwright.sync_api import expect

    explorer, shown = form(study(node))
    shown.settled()
    page, place = shown.page, tmp_path / "mine.toml"
    page.get_by_role("tab", name="Study").click()
    page.get_by_label("Save the study as").fill(str(place))
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Saved as")
    assert toolkit.Study.load(place) == explorer.study
    page.get_by_label("Save the study as").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("already exists")
    page.get_by_label("Replace a file that is there already").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Saved as")
