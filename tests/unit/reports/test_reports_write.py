"""A report is written whole, equal for equal input, and harmless whatever the chain says."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import io
import json
import re
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from matplotlib import pyplot as plt

import toolkit
from tests.unit.plots import synthetic_run
from tests.unit.plots.synthetic_hostile import HOSTILE
from toolkit._present.tables import csv_table
from toolkit.dtypes import to_arrow
from toolkit.errors import InputError
from toolkit.gas._observations import Cause
from toolkit.gas._steps import StepChange, StepGroup
from toolkit.plots import gas_by_version
from toolkit.plots._gas_by_version import LEVEL_COLUMNS
from toolkit.plots._style import inline_svg
from toolkit.reports import _to_html as to_html
from toolkit.reports import _to_programs as to_programs
from toolkit.reports import build, write
from toolkit.reports._data import ReportData
from toolkit.reports._templates import code, prose
from toolkit.reports._to_html import overview_calls
from toolkit.reports._to_markdown import render_markdown

DEMO = Path(__file__).resolve().parents[3] / "data" / "samples" / "demo"
VOID = {"meta", "br", "wbr", "link", "img", "input"}
MANIFEST = {"study_digest": "sha256:0f3c", "started_at": datetime(2026, 5, 1, 12, tzinfo=UTC)}


class Page(HTMLParser):
    """Elements, attributes and text of a page; fails where tags do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def made_up(*, hostile: bool = False) -> synthetic_run.Run:
    """The made-up run, with labels nobody should trust if asked."""
    rename = HOSTILE if hostile else {}
    steps = synthetic_run.steps(rename=rename)
    study = synthetic_run.Study("Demo")
    manifest = dict(MANIFEST)
    if hostile:
        steps["explanation"] = steps["explanation"] + "</style><script>alert(2)</script>\n# x | y"
        study = synthetic_run.Study("<script>alert('t')</script> $a$ \u202e")
        manifest["environment"] = {"<b>x</b>": "<img src=x onerror=alert(1)>"}
    return synthetic_run.Run(synthetic_run.observations(rename=rename), steps, study, synthetic_run.record(**manifest))


@cache
def built() -> ReportData:
    """The data of the made-up run, which tests only read."""
    return build(made_up())


@pytest.fixture(scope="module")
def page() -> str:
    """The report of the made-up run."""
    return to_html.render(built())


@pytest.fixture(scope="module")
def hostile_page() -> str:
    """The report of the run with hostile text."""
    return to_html.render(build(made_up(hostile=True)))


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_write_says_where_the_report_is(tmp_path: Path, ending: str) -> None:
    """The ending chooses the format, folders are made, and only the report is left."""
    path = write(made_up(), tmp_path / "new" / f"report.{ending}")
    assert path == tmp_path / "new" / f"report.{ending}"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert "Gas changed for 5 of 10 calls" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", ["md", "json"])
def test_equal_runs_give_equal_bytes(tmp_path: Path, ending: str) -> None:
    """The same input written twice is the same file."""
    digests = set()
    for place in ("a", "b"):
        path = write(made_up(), tmp_path / place / f"report.{ending}")
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_equal_runs_give_equal_pages_whatever_the_reader_has_set(tmp_path: Path, page: str) -> None:
    """The page written is the one rendered before, byte for byte, and a notebook's matplotlib settings change nothing."""
    theirs = {
        "font.size": 30,
        "axes.grid": True,
        "svg.hashsalt": "mine",
        "lines.linewidth": 9,
        "timezone": "Asia/Tokyo",
    }
    before = plt.get_fignums()
    with plt.rc_context(theirs | {"axes.formatter.use_locale": True, "axes.unicode_minus": False}):
        assert write(made_up(), tmp_path / "report.html").read_bytes() == page.encode()
    assert plt.get_fignums() == before


def test_an_unknown_ending_is_refused_with_those_there_are(tmp_path: Path) -> None:
    """The message names the endings, and nothing is written."""
    with pytest.raises(InputError, match=r"\.html, \.md or \.json, got '\.pdf'"):
        write(made_up(), tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said_and_left_clean(tmp_path: Path) -> None:
    """A folder in the way gives one clear error, and no half file stays."""
    (tmp_path / "report.md").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write(made_up(), tmp_path / "report.md")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.md"]


def test_a_failing_write_keeps_the_report_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk leaves the old report and no temporary file."""
    path = write(made_up(), tmp_path / "report.md")
    old = path.read_bytes()

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="No space left on device"):
        write(made_up(hostile=True), path)
    assert path.read_bytes() == old
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.md"]


def test_the_page_opens_with_the_answer(page: str) -> None:
    """What changed comes before anything else a reader reads."""
    text = " ".join(
        "".join(
            Page(page[page.index("<body>") :].removesuffix("</html>\n").removesuffix("</body>\n") + "</body>").words
        ).split()
    )
    assert text.startswith("Gas report · model gas of the embedded node Demo 5 of 10 calls: ×10 at version 2,503, when")
    assert text.index("Ledger version") < text.index("All changes, largest first") < text.index("Model gas.")
    assert page.index("</h1>") < page.index("<svg") < page.index('<table class="top cards">') < page.index("<main>")


def test_the_page_is_one_file_that_fetches_nothing(page: str) -> None:
    """No handlers, no address to fetch from; only data to save, and the one script that the policy of the page names."""
    tags = Page(page).tags
    assert not {"iframe", "object", "embed", "link", "img", "base", "form"} & {tag for tag, _ in tags}
    for _, attributes in tags:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert (attributes.get("href") or "#").startswith(("#", "data:application/gzip;"))
    assert not re.search(r"url\((?!#)|@import", page)
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    assert [tag for tag, _ in tags].count("script") == len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    policy = next(attributes["content"] for tag, attributes in tags if "http-equiv" in attributes)
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert not re.search(r"fetch\(|XMLHttpRequest|import|innerHTML|eval|http", scripts[0])


def test_ids_are_unique_and_every_reference_is_there(page: str) -> None:
    """Figures in one page do not take each other's clip paths."""
    tags = Page(page).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page))
    assert used <= set(ids)


def test_figures_take_their_colours_from_the_page(page: str) -> None:
    """No colour but a bar's own text is fixed, so figures read light and dark."""
    figures = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert set(re.findall(r"#[0-9a-f]{6}\b", figures)) <= {"#1f2329"}
    assert "stroke: var(--call-6)" in figures  # the seventh call's
    strata = ("succeeding", "failing")  # two lines of one colour have numbers in that colour
    levels = pd.DataFrame(
        [("registrations", kind, 0, 4_999, gas, gas, 9) for kind, gas in zip(strata, (60, 50), strict=True)],
        columns=LEVEL_COLUMNS,
    )
    seen = synthetic_run.observations().query("source == 'committed'")
    svg = inline_svg("two", (4, 3), "", lambda ax: gas_by_version(seen, levels=levels, ax=ax))
    assert svg.count("fill: var(--call-0)") >= 2
    assert re.findall(r"#[0-9a-f]{6}\b", svg) == []
    css = page[page.index("<style>") : page.index("</style>")]
    named = set(re.findall(r"var\(--([a-z0-9-]+)\)", figures))
    for part in re.split(r"@media screen and \(prefers-color-scheme: dark\)", css):
        assert named <= set(re.findall(r"--([a-z0-9-]+):", part))


def test_pages_are_printed_light_and_ranges_of_versions_stay_on_a_line(page: str) -> None:
    """A dark page on paper would be white on white; a range is read as one."""
    assert "@media (prefers-color-scheme" not in page
    assert re.search(r'<span class="nowrap">[\d,]+ to [\d,]+</span>', page)


def test_there_is_a_figure_for_each_call_that_was_swept(page: str) -> None:
    """Each is drawn once, in a size for all pages: an overview, a split, and a figure per call that moved; one is flat."""
    assert page.count("<svg ") == 1 + 1 + 7
    assert ">2,503 gas schedule</text>" in page


@pytest.mark.usefixtures("no_figures")
def test_the_kind_of_transaction_follows_the_call_that_it_is_of() -> None:
    """In the short table, how many others changed comes after it."""
    one = StepChange("a", "committed", 1, 10, 100, stratum="one slot")
    changes = one, dataclasses.replace(one, label="b")
    group = StepGroup(6, 7, True, Cause.CODE, "", None, changes)
    table = to_html.render(dataclasses.replace(built(), events=(group,))).partition("</table>")[0]
    assert table.index(">a<") < table.index("one slot") < table.index("1 more call")


def test_figures_tell_their_values_on_hover(page: str) -> None:
    """Each flat piece of a line has its call, gas and versions, and each dot its own."""
    assert "<title>APT supply: 3 gas units, versions 0 to 2,502</title>" in page
    assert re.search(r"<use [^<>]*><title>registrations: \d+ gas units at version \d+</title></use>", page)


def test_the_gas_on_hover_is_that_of_every_version_it_names(tmp_path: Path) -> None:
    """No range of the demo's page reaches into the next step: it agrees with the frame at both of its ends."""
    run = toolkit.Run.open(DEMO)
    page = write(run, tmp_path / "report.html").read_text("utf-8")
    found = re.findall(r"<title>([^:<]+): ([\d,]+) gas units?, versions? ([\d,]+)(?: to ([\d,]+))?</title>", page)
    steps = run.steps[run.steps["source"] == "view@version"]
    checked = set()
    for label, *numbers in found:
        gas, first, last = (int(text.replace(",", "")) for text in [*numbers[:2], numbers[2] or numbers[1]])
        mine = steps[steps["label"] == label].sort_values("version_after")
        for version in (first, last) if len(mine) else ():
            assert mine[mine["version_after"] <= version].iloc[-1:]["gas_after"].tolist() in ([gas], []), (
                label,
                version,
            )
            assert mine[mine["version_after"] > version].iloc[:1]["gas_before"].tolist() in ([gas], []), (
                label,
                version,
            )
            checked.add((label, version))
    assert len(checked) > 40


@pytest.mark.usefixtures("no_figures")
def test_the_page_says_gas_is_a_models_only_where_it_is(page: str) -> None:
    """The notice is for the embedded node's gas."""
    assert "not from a Move VM" in page
    real = made_up()
    data = build(dataclasses.replace(real, observations=real.observations.assign(model=False)))
    assert "model gas" not in to_html.render(data).lower()
    assert "model gas" not in render_markdown(data).lower()


@pytest.mark.usefixtures("no_figures")
def test_an_unfinished_run_says_so() -> None:
    """A report of half a run does not look like a whole one."""
    data = build(dataclasses.replace(made_up(), record=synthetic_run.record(complete=False)))
    assert "This run is not complete." in to_html.render(data)
    assert "**This run is not complete:**" in render_markdown(data)


def test_an_empty_run_is_written_in_every_format(tmp_path: Path) -> None:
    """Nothing read yet is a report too."""
    run = made_up()
    empty = dataclasses.replace(run, observations=run.observations.iloc[:0], steps=run.steps.iloc[:0])
    for ending in ("html", "md", "json"):
        assert "cannot show a gas change" in write(empty, tmp_path / f"r.{ending}").read_text(encoding="utf-8")


def test_hostile_text_is_text_in_the_page(page: str, hostile_page: str) -> None:
    """Markup from the chain makes no element and no attribute, in tables, figures or the title."""
    tags = Page(hostile_page).tags
    kinds = {tag for tag, _ in Page(page).tags}
    assert {tag for tag, _ in tags} <= kinds
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    assert "\u202e" not in hostile_page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hostile_page


def test_hostile_text_in_a_figure_is_never_recoloured(hostile_page: str) -> None:
    """Only tags are rewritten: text that looks like a style stays as it is."""
    text = "".join(Page(hostile_page).words)
    assert 'style="fill: #0072b2"' in text


def test_hostile_text_is_text_in_markdown() -> None:
    """A Markdown renderer makes no element, link, heading or cell of it."""
    rendered = [
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .render(render_markdown(build(made_up(hostile=hostile))))
        for hostile in (False, True)
    ]
    plain, hostile = ([re.match(r"</?\w+", tag)[0] for tag in re.findall(r"<[^>]+>", html)] for html in rendered)
    assert "<script" not in hostile
    assert "<a" not in hostile
    for tag in ("<h1", "<h2", "<table", "<tr", "<td", "<th"):
        assert hostile.count(tag) == plain.count(tag)


@pytest.mark.parametrize("text", ["", "`", "``x", "a`b``c", "|", "\\|", "x\\", "\n# h", " "])
def test_code_spans_hold_anything(text: str) -> None:
    """Whatever the text, a renderer sees one code span, also inside a table cell."""
    html = MarkdownIt("commonmark").enable("table").render(f"| a | b |\n| - | - |\n| {code(text)} | z |\n")
    assert html.count("<code>") == 1
    assert "<td>z</td>" in html


@pytest.mark.parametrize(
    "text",
    [
        "**bold** _a b_",
        "`a b`",
        "[x](http://e.io)",
        "https://e.io, www.e.io",
        "a@b.io @me #12 GH-12",
        "<b>",
        "a|b",
        "![i](u)",
    ],
)
def test_sentences_hold_no_markup(text: str) -> None:
    """What may be markup in a quoted text is in code spans; words, figures and their punctuation are not."""
    shown = f"a rise ({text}) over 2 % since 2026-06-01, or 'names of {text}'."
    html = MarkdownIt("gfm-like", {"linkify": False}).render(f"| a | b |\n| - | - |\n| {prose(shown)} | z |\n")
    outside = re.sub(r"<code>.*?</code>", "", html)
    assert set(re.findall(r"</?(\w+)", outside)) == {"table", "thead", "tbody", "tr", "th", "td"}
    assert not re.search(r"[@#\[_*`]|http|www|GH-", outside)
    assert prose("at 2 %, 'size' of 0x1::m (×3): f() ran") == "at 2 %, 'size' of `0x1::m` (×3): `f()` ran"
    # GitHub makes nothing of an underscore within a word; of a list of names, all look alike.
    assert prose("no `sizes`; functions handle, record_of, size") == "no `sizes`; functions handle, record_of, size"
    names = "published 0x1::m (with size, record_of, mul_div_u64)"  # names of functions are all alike
    assert prose(names) == "published `0x1::m` (with size, record_of, mul_div_u64)"
    assert [prose(name) for name in ("_a_", "__a", "a__b", "0xa_b")] == ["`_a_`", "`__a`", "`a__b`", "0xa_b"]


def test_json_has_the_same_facts() -> None:
    """Format number, headline, events, calls, splits and failures, with exact integers."""
    told = json.loads(to_programs.render(build(made_up(hostile=True))))
    assert told["format"] == 1
    assert len(told["events"]) == 7
    assert told["calls"][2]["label"] == "<script>alert(1)</script>"
    assert told["splits"][0]["storage_fee_octas"] == 40_000
    assert told["provenance"]["model"] is True


def test_downloads_hold_the_frames_exactly(page: str) -> None:
    """The CSV in the page has every row and digit of the frames."""
    links = [attributes for tag, attributes in Page(page).tags if tag == "a"]
    assert [link["download"] for link in links] == ["observations.csv.gz", "steps.csv.gz"]
    assert [link["data-csv"] for link in links] == ["observations.csv", "steps.csv"]
    text = gzip.decompress(base64.b64decode(links[0]["href"].partition(",")[2])).decode()
    assert text == csv_table(to_arrow(built().observations))
    frame = synthetic_run.observations()
    read = pd.read_csv(io.StringIO(text), dtype="string")
    assert list(read.columns) == list(frame.columns)
    assert len(read) == len(frame)
    assert sorted(read["gas_used"].dropna().map(int)) == sorted(map(int, frame["gas_used"].dropna()))


@pytest.mark.usefixtures("no_figures")
def test_a_frame_too_large_for_a_page_is_only_spoken_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page names the option that writes it beside the page instead."""
    monkeypatch.setattr("toolkit.reports._to_html.MAX_CSV_ROWS", 100)
    text = to_html.render(built())
    assert "observations.csv is too large for this page" in text
    assert "in the Parquet files of the run" in text
    assert 'download="steps.csv.gz"' in text


def test_a_page_of_committed_calls_alone_shows_what_their_gas_was_spent_on() -> None:
    """Each kind is a bar; a simulation is not needed."""
    made = made_up()
    frame = made.observations[made.observations["source"] == "committed"]
    page = to_html.render(build(dataclasses.replace(made, observations=frame, steps=made.steps.iloc[:0])))
    assert "What gas is spent on" in page
    assert "registrations, succeeding (last\xa0of\xa041)" in page
    assert "Net cost" not in page


@pytest.mark.usefixtures("no_figures")
def test_storage_has_a_figure_of_its_own_where_it_dwarfs_the_rest() -> None:
    """From more than 5 times the other parts on: their bars would be shorter than their numbers."""
    data = built()
    paid = data.paid.assign(execution_gas_units=6, io_gas_units=4, gas_unit_price=100)
    alone = dataclasses.replace(data, paid=paid.assign(storage_fee_octas=5_001))
    together = dataclasses.replace(data, paid=paid.assign(storage_fee_octas=5_000))
    assert [len(to_html.spent_on(one)) for one in (alone, together)] == [2, 1]
    assert "Storage is far larger than the other parts" in to_html.render(alone)


@pytest.mark.usefixtures("no_figures")
def test_of_many_calls_the_first_figure_has_those_that_changed_most() -> None:
    """Lines of all would hide each other; every call has a figure of its own below."""
    made = made_up()
    vault = made.observations[made.observations["label"] == "vault total"]
    still = vault.assign(gas_used=pd.Series(5, index=vault.index, dtype=vault["gas_used"].dtype))
    many = pd.concat([made.observations, *(still.assign(label=f"still {place}") for place in range(20))])
    data = build(dataclasses.replace(made, observations=many))
    shown = overview_calls(data)
    assert len(shown) == 7
    assert set(shown) >= set(data.changed)
    assert "The 7 calls whose gas changed most" in to_html.render(data)


def test_a_simulation_after_the_judged_versions_is_not_in_the_first_figures() -> None:
    """At the head, far behind them, it would leave them a part of the axis."""
    data = dataclasses.replace(built(), events=())
    last, head = data.span[1], "transfer"
    late = dataclasses.replace(data.calls[-1], label=head, first_version=last + 1, last_version=last + 1, judged=False)
    assert head not in overview_calls(dataclasses.replace(data, calls=(*data.calls[:2], late)))
    level = dataclasses.replace(late, first_version=last, last_version=last)
    assert head in overview_calls(dataclasses.replace(data, calls=(*data.calls[:2], level)))
