"""The gas explorer as a person uses it, on a bare page; in JupyterLab it is used as a tab of the workbench."""

from __future__ import annotations

import re

import pytest

import toolkit
from tests.faults import faulty
from toolkit import embedded

pytestmark = pytest.mark.browser

SUPPLY = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
SIZE = toolkit.ViewFunction("0xcafe::registry::size")


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


def test_a_study_is_made_run_and_read_from_the_keyboard(form, node, shots):
    """Two calls are added and chosen by keys; a few steps are open at once."""
    from playwright.sync_api import expect

    explorer, shown = form()
    page, keys = shown.page, shown.page.keyboard
    page.get_by_role("combobox", name="Function").focus()
    keys.type("0xcafe::registry::size")
    keys.press("Escape")
    page.get_by_role("button", name="Add a call").focus()
    keys.press("Enter")
    expect(page.get_by_label("Call to edit")).to_have_value("1")
    page.get_by_role("combobox", name="Function").focus()
    keys.type("0x1::coin::supply")
    keys.press("Escape")
    page.get_by_label("coin_type").fill("0x1::aptos_coin::AptosCoin")
    page.get_by_label("Label").fill("supply")
    page.get_by_label("Call to edit").focus()
    keys.press("ArrowUp")
    expect(page.get_by_role("combobox", name="Function")).to_have_value("0xcafe::registry::size")
    expect(page.get_by_label("Call to edit")).to_be_focused()
    page.get_by_label("Read", exact=True).focus()
    keys.press("ArrowDown")
    page.get_by_label("Versions", exact=True).fill("3490:3510")
    keys.press("Control+Enter")
    shown.page.wait_for_function("() => window.sent === 0")
    assert [call.name for call in explorer.study.calls] == ["registry::size", "supply"]
    expect(page.get_by_role("status").first).to_contain_text("2 steps in gas at 1 version, from 42 observations.")
    expect(page.get_by_text("The function takes no arguments.")).to_be_visible()
    page.screenshot(path=shots / "gas_explorer_keyboard.png", full_page=True)
    step = page.locator("details.ltk-step[open]")
    expect(step).to_contain_text(
        "changed the gas schedule: 459 of 512 parameters changed, every one \N{MULTIPLICATION SIGN}10"
    )
    expect(step).to_contain_text("2026-05-06 06:43:12 UTC")
    row = page.get_by_role("row", name="registry::size 3 21 \N{MULTIPLICATION SIGN}7")
    expect(row.first).to_be_visible()
    for width, is_first in ((1280, True), (600, False)):  # below the fields, or after the result
        shown.look("light", width)
        code, steps = (page.locator(one).bounding_box()["y"] for one in (".ltk-code-pane", "details.ltk-step[open]"))
        assert (code < steps) is is_first


@pytest.fixture
def falling_silent():
    """Return a client of a node that answers 900 requests and then none: a run cannot end before it is cancelled."""
    with (
        embedded.serve(embedded.Ledger.with_history(cache=True)) as url,
        faulty(url) as node,
        toolkit.connect(node.node_url, cache=None) as made,
    ):
        node.schedule([None] * 900 + ["hang"] * 5_000)
        yield made


def test_progress_is_shown_and_cancel_leaves_what_was_read(falling_silent, bare):
    """A bar and words while it runs, and Cancel; the readings until then are shown."""
    from playwright.sync_api import expect

    explorer = toolkit.widgets.GasExplorer(falling_silent, study=study(falling_silent, versions="0:-1/900"))
    shown = bare(explorer)
    shown.settled()
    page = shown.page
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_text("calls read")).to_contain_text(re.compile(r"^\D*[1-9]\d\d of about 1,800"))
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status").first).to_contain_text(re.compile(r"Stopped after [\d,]+ observations"))
    expect(page.get_by_role("progressbar")).to_be_hidden()
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    said = re.search(r"Stopped after ([\d,]+)", page.get_by_role("status").first.inner_text())[1]
    assert 0 < len(explorer.result.observations) == int(said.replace(",", "")) < 1800
    explorer.close()
