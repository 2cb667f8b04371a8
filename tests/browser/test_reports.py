"""A report opened as a file in Chromium: its data is saved as CSV, offline, also by a browser without the script."""

from __future__ import annotations

import gzip

import pytest

from tests.unit.plots import synthetic_run
from toolkit import reports
from toolkit._present.tables import csv_table
from toolkit.dtypes import to_arrow

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Write the report of the made-up run; return its path, and the frames as CSV."""
    run = synthetic_run.Run(synthetic_run.observations(), synthetic_run.steps(), synthetic_run.Study("Demo"))
    data = reports.build(run)
    texts = [csv_table(to_arrow(frame)).encode() for frame in (data.observations, data.steps)]
    return reports.write(run, tmp_path_factory.mktemp("report") / "report.html"), texts


def opened(browser, path, **options):
    """Open a page as a file, without a network; return it and the list of what went wrong on it."""
    context = browser.new_context(offline=True, accept_downloads=True, **options)
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(path.as_uri())
    return page, wrong


def saved(page, link):
    with page.expect_download() as download:
        link.click()
    path = download.value.path()
    return download.value.suggested_filename, path.read_bytes()


def test_the_data_of_a_report_is_saved_as_csv(browser, report):
    """Every byte of both frames, under their names, twice in a row, and without a request or a complaint."""
    path, texts = report
    page, wrong = opened(browser, path)
    for _ in range(2):
        for link, name, text in zip(
            page.locator("a[download]").all(), ("observations.csv", "steps.csv"), texts, strict=True
        ):
            assert saved(page, link) == (name, text)
    assert wrong == []
    page.context.close()


@pytest.mark.parametrize("missing", ["scripts", "DecompressionStream", "a working DecompressionStream"])
def test_without_the_script_the_data_is_saved_compressed(browser, report, missing):
    """Readers who switch scripts off, or have an old browser, get the same data as .csv.gz."""
    path, texts = report
    context = browser.new_context(offline=True, accept_downloads=True, java_script_enabled=missing != "scripts")
    page = context.new_page()
    if missing == "DecompressionStream":
        page.add_init_script("delete window.DecompressionStream")
    elif missing != "scripts":
        page.add_init_script("window.DecompressionStream = function () { throw new TypeError('no gzip') }")
    page.goto(path.as_uri())
    name, content = saved(page, page.locator("a[download]").first)
    assert name == "observations.csv.gz"
    assert gzip.decompress(content) == texts[0]
    context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 390)])
def test_a_report_fits_its_window(browser, report, scheme, width):
    """Light, dark, and as narrow as a phone: nothing is wider than the window, except what scrolls in its own frame."""
    page, wrong = opened(browser, report[0], color_scheme=scheme, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.evaluate(
        """[...document.querySelectorAll("figure svg")].flatMap(svg => [...svg.querySelectorAll("text")].map(text =>
          parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))"""
    )
    assert 9 <= min(sizes) <= max(sizes) <= 16  # the figures' text can be read, and is not larger than the page's
    assert wrong == []
    page.context.close()


@pytest.mark.parametrize(("width", "scripts", "folded"), [(390, True, True), (390, False, False), (1200, True, False)])
def test_a_phone_folds_the_list_of_all_changes(browser, report, width, scripts, folded):
    """A click opens it there; elsewhere, and without the script, it is open and stays open."""
    page, _ = opened(browser, report[0], viewport={"width": width, "height": 900}, java_script_enabled=scripts)
    assert page.locator("table.events").is_visible() is not folded
    page.locator("#changed").click(force=True)
    assert page.locator("table.events").is_visible() is (folded or width > 390)
    page.context.close()


def test_on_a_phone_a_change_is_a_card(browser, report):
    """Call, before, after, change and cause are all within the window; so is the figure, with text that can be read."""
    page, _ = opened(browser, report[0], viewport={"width": 390, "height": 900})
    for cell in page.locator(".top tbody tr").first.locator("td").all():
        box = cell.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    sizes = page.locator(".overview svg text:not(:empty)").evaluate_all(
        "texts => texts.map(text => text.getBoundingClientRect())"
    )
    assert sizes
    assert all(0 <= size["left"] < size["right"] <= 390 and size["height"] >= 9 for size in sizes)
    page.context.close()
