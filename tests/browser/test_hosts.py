"""Forms on pages of other hosts than JupyterLab: in rows and narrow columns, on paper, and on dark pages."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolkit
from toolkit.widgets import SimulationBuilder, ViewBuilder

pytestmark = pytest.mark.browser

SAMPLE = Path(__file__).resolve().parents[2] / "data/samples/demo"
MIN_WIDTH = 300  # pixels
MIN_CONTRAST = 4.5
CONTRAST = """element => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  let box = element;
  while (getComputedStyle(box).backgroundColor === "rgba(0, 0, 0, 0)" && box.parentElement) box = box.parentElement;
  const light = (text) => {
    const [r, g, b] = channels(text).map((one) => (one / 255 <= 0.04045 ? one / 3294.6 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const pair = [light(getComputedStyle(element).color), light(getComputedStyle(box).backgroundColor)].sort((a, b) => b - a);
  return pair[0] / pair[1];
}"""


@pytest.fixture(scope="module")
def form(node):
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
    with_result = SimulationBuilder(node, request=toolkit.SimulationRequest(call, sender="0xa11ce"))
    with_result.simulate()
    yield with_result
    with_result.close()


@pytest.fixture(scope="module")
def view(node):
    with_figure = ViewBuilder(node, "0xb00c::order_book::depth")
    with_figure.versions = "0:-1/20"
    with_figure.read()
    yield with_figure
    with_figure.close()


@pytest.fixture
def page(pages):
    taken = pages.take(1000, 900)
    yield taken
    taken.emulate_media(media="null")
    pages.give_back(taken)


def test_a_form_in_a_row_keeps_a_width(bare, form, shots):
    """As in an HBox: its neighbours leave no room, and a form that fills a container has no width of its own."""
    shown = bare(form)
    shown.page.evaluate("""() => {
      const here = document.getElementById("here"), row = document.createElement("div");
      row.style.display = "flex";
      here.replaceWith(row);
      row.append(here, Object.assign(document.createElement("p"), { textContent: "beside it ".repeat(200) }));
    }""")
    assert shown.page.locator(".ltk-inside").bounding_box()["width"] >= MIN_WIDTH
    shown.page.screenshot(path=shots / "row.png")
    shown.look("light", 330)
    assert shown.page.locator(".ltk-inside").bounding_box()["width"] >= MIN_WIDTH


def test_forms_in_a_row_go_on_below(bare, form, shots):
    """As in an HBox of three, which has room for two: none is cut, and there is a gap between them."""
    shown = bare(form)
    shown.look("light", 800)
    shown.page.evaluate("""() => {
      const here = document.getElementById("here"), row = document.createElement("div");
      row.className = "widget-hbox";
      row.style.display = "flex";
      here.replaceWith(row);
      row.append(here, here.cloneNode(true), here.cloneNode(true));
    }""")
    one, two, three = (each.bounding_box() for each in shown.page.locator(".widget-hbox > .ltk").all())
    assert one["x"] + one["width"] < two["x"]
    assert two["x"] + two["width"] <= 800
    assert three["y"] > one["y"] + one["height"]
    shown.page.screenshot(path=shots / "hbox.png")
    shown.look("light", 250)  # as beside JupyterLab's file browser in a small window: no wider than its container
    assert all(each.bounding_box()["width"] <= 250 for each in shown.page.locator(".widget-hbox > .ltk").all())


def test_a_form_is_not_wider_than_its_cell(bare, form):
    """As beside JupyterLab's file browser in a small window."""
    shown = bare(form, width=240)
    assert shown.page.locator(".ltk-inside").bounding_box()["width"] <= 240


def test_a_printed_page_shows_the_picture_at_once(page, form, shots):
    """On a screen it appears once a widget had the time to hide it, which a page that is printed does not wait for."""
    page.emulate_media(media="print")
    page.set_content(form._bundle()["text/html"])
    assert page.locator(".ltk-picture").bounding_box()["height"] > 200
    assert page.locator(".ltk-picture").is_visible()
    page.screenshot(path=shots / "print.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_dark_page_without_the_colours_of_jupyter_is_readable(page, form, scheme, shots):
    """Whether the page says that it is dark or only looks so."""
    page.set_content(
        f"<body style='background: #101418; color: #eee; color-scheme: {scheme}'>{form._bundle()['text/html']}"
    )
    page.locator(".ltk-picture").wait_for(state="visible")
    page.wait_for_timeout(1_600)
    for name in ("strong", "th", "td", "p", "pre", ".ltk-good", ".ltk-note"):
        for found in page.locator(f".ltk-picture {name}").all()[:5]:
            assert found.evaluate(CONTRAST) >= MIN_CONTRAST, (name, found.inner_text())
    page.screenshot(path=shots / f"dark-{scheme}.png")


def test_a_form_on_a_dark_page_without_the_colours_of_jupyter_is_readable(bare, form, shots):
    """Marimo's dark theme, for example."""
    shown = bare(form)
    shown.page.evaluate("""() => {
      delete document.body.dataset.jpThemeLight;
      Object.assign(document.body.style, { background: "#101418", colorScheme: "dark" });
    }""")
    for name in (".ltk-title", "label", "input[type=text]", "button", ".ltk-status", "td", "pre"):
        for found in shown.page.locator(f".ltk-inside {name}:visible").all()[:5]:
            assert found.evaluate(CONTRAST) >= MIN_CONTRAST, (name, found.inner_text())
    shown.page.screenshot(path=shots / "dark-form.png", full_page=True)


@pytest.mark.parametrize(
    ("jupyter", "scheme", "drawn"),
    [
        ("true", "light", (False, "rgba(0, 0, 0, 0)")),
        ("false", "dark", (True, "rgba(0, 0, 0, 0)")),
        (None, "light", (False, "rgba(0, 0, 0, 0)")),
        (None, "dark", (False, "rgb(255, 255, 255)")),
    ],
)
def test_a_figure_is_readable_on_any_page(bare, view, jupyter, scheme, drawn):
    """Its ink is black and it has no background: in Jupyter's dark theme it is inverted, on other dark pages on white."""
    shown = bare(view)
    shown.page.evaluate(
        """([jupyter, scheme]) => {
          if (jupyter) document.body.dataset.jpThemeLight = jupyter;
          else delete document.body.dataset.jpThemeLight;
          Object.assign(document.body.style, { background: scheme === "dark" ? "#101418" : "#fff", colorScheme: scheme });
        }""",
        [jupyter, scheme],
    )
    figure = shown.page.locator("img.ltk-plot")
    style = figure.evaluate("one => [getComputedStyle(one).filter, getComputedStyle(one).backgroundColor]")
    assert ("invert" in style[0], style[1]) == drawn


def test_a_saved_page_does_not_report_an_error(bare, node):
    """The page never had a kernel, so it neither reports an ended one nor asks to run a cell."""
    from playwright.sync_api import expect

    form = ViewBuilder(node)
    shown = bare(form)
    shown.page.evaluate("window.tell = () => {}")
    shown.page.get_by_role("button", name="Read", exact=True).click()
    status = shown.page.locator(".ltk-status")
    expect(status).not_to_be_empty(timeout=10_000)
    expect(status).to_have_class("ltk-status ltk-hint")
    form.close()


def test_a_wide_frame_is_whole_on_paper(page, shots):
    """On an A4 page without its margins, with 20 columns: a number that is cut is another number."""
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 1000})
    steps = toolkit.Run.open(SAMPLE).steps
    page.set_content(toolkit.show(steps)._repr_html_())
    box = page.locator("table").locator("..").bounding_box()
    heads = page.get_by_role("columnheader")
    assert heads.count() == 20
    last = heads.last.bounding_box()
    assert last["x"] + last["width"] <= box["x"] + box["width"] + 1
    gas = page.locator("td[style*=right]").first
    assert gas.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
    page.screenshot(path=shots / "print-frame.png")


@pytest.mark.parametrize("width", [1280, 900, 600, 390])
def test_the_balances_fit_the_form(bare, form, width):
    """No column is cut."""
    shown = bare(form, width=width)
    table = shown.page.locator(".ltk-panel .ltk-scroll")
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_what_opens_and_what_is_listed_is_marked_on_pages_that_reset_styles(bare, form, view):
    """Triangles of sections, as on pages of nbclassic; arrows of choices, on Solara's; bullets of lists, on marimo's."""
    shown = bare(form)
    shown.page.add_style_tag(content="summary { display: block; } select { appearance: none; }")
    assert shown.page.locator(".ltk summary").first.evaluate("one => getComputedStyle(one).display") == "list-item"
    assert shown.page.locator(".ltk select").first.evaluate("one => getComputedStyle(one).appearance") == "auto"
    other = bare(view)
    other.page.add_style_tag(content="ul { list-style: none; }")
    assert other.page.locator(".ltk-panel ul").evaluate("one => getComputedStyle(one).listStyleType") == "disc"
