"""Steps are described by the same words in `run.explain()`, in each format of the report, and in figures."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from matplotlib.figure import Figure

import toolkit
from toolkit import plots, reports

STUDY = """
title = "same words"
node = "embedded"
[versions]
find_steps = "0:-1"
initial = 33
[[call]]
label = "supply"
view = "0x1::coin::supply"
type_arguments = ["0x1::aptos_coin::AptosCoin"]
[[call]]
label = "price"
view = "0xfa17::vault::share_price"
[[call]]
label = "depth"
view = "0xb00c::order_book::depth"
"""
PLACE = re.compile(
    r"(?:at version ([\d,]+)(?: \(\d{4}-\d\d-\d\d\))?|(?:between|over) versions ([\d,]+) (?:and|to) ([\d,]+)), "
    r"([a-z ]+): (.*)"
)
AMOUNT = re.compile(r"from [\d,]+ to [\d,]+ gas units? \((.*)\)")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with steps of the gas schedule, code, configuration, state and several causes, and a drift."""
    folder = tmp_path_factory.mktemp("same")
    (folder / "study.toml").write_text(STUDY)
    return toolkit.Study.load(folder / "study.toml").run(folder / "run", progress=False)


def steps_of_lines(lines):
    """Read lines of `explain()` as {(place, call): (cause, explanation, change)}."""
    found, group = {}, ("", "", "")
    for line in lines:
        if match := PLACE.fullmatch(line):
            group = match[1] or f"{match[2]} to {match[3]}", match[4], match[5]
        elif line.startswith("  "):
            call, _, change = line.strip().partition(": ")
            size = AMOUNT.fullmatch(change)
            found[group[0], call] = (*group[1:], size[1] if size else change)
    return found


@pytest.fixture(scope="module")
def explained(run):
    """What `explain()` says of each step; the text is what the others are compared with."""
    return steps_of_lines(run.explain().splitlines())


def test_the_run_has_steps_of_many_causes(explained):
    """The comparison is not empty: five causes, factors and percentages, and a merged drift."""
    causes = {cause for cause, _, _ in explained.values()}
    assert {"gas schedule", "code", "configuration", "state", "several causes"} <= causes
    changes = {change for _, _, change in explained.values()}
    assert "×10" in changes
    assert "−66.7 %" in changes
    assert any(change.endswith(" steps") for change in changes)


def test_markdown_has_the_words_of_explain(run, explained, tmp_path):
    """Each row of the table is a step of `explain()`, with the same place, cause, explanation and change."""
    text = reports.write(run, tmp_path / "report.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if line[:1] == "|"]
    assert len(rows) == 12
    for place, call, _, _, change, why in rows[2:]:
        cause, _, explanation = why.partition(": ")
        key = place.partition(" (")[0], call.partition(" and ")[0].strip("`")
        known = explained[key]
        assert (cause, change.replace("`", "")) == (known[0], known[2])
        assert known[1].startswith(explanation.replace("`", "").rstrip("…"))


def test_json_has_the_lines_of_explain(run, explained, tmp_path):
    """The texts of events and changes are the lines of `explain()`."""
    events = json.loads(reports.write(run, tmp_path / "report.json").read_text("utf-8"))["events"]
    lines = []
    for event in events:
        lines += [event["text"], *(f"  {change['label']}: {change['text']}" for change in event["changes"])]
    assert lines == run.explain().splitlines()[: len(lines)]
    assert steps_of_lines(lines) == explained


@pytest.mark.usefixtures("no_figures")
def test_html_has_the_words_of_explain(run, explained, tmp_path):
    """Each row of the table in the page is a step of `explain()`."""
    page = reports.write(run, tmp_path / "report.html").read_text("utf-8")
    table = page[page.index('<table class="events cards">') :]
    found = {}
    for body in re.findall(r"<tbody>(.*?)</tbody>", table[: table.index("</table>")], re.DOTALL):
        place = re.sub(r"( ≈)? 2026-..-..( to 2026-..-..)?| somewhere between", "", cells(body, "at")[0])
        label = text_of(re.search(r'<span class="cause [a-z]+">(.*?)</span>', body)[1])
        why = cells(body, "why")[0].removeprefix(label).partition("hash 0x")[0].strip()
        for call, change in zip(cells(body, "who"), cells(body, "much"), strict=True):
            found[place, call] = (label, why, change)
    assert found == explained


def cells(html, name):
    """Return the texts of the cells of a class."""
    return [text_of(cell) for cell in re.findall(rf'<t[dh][^>]* class="{name}"[^>]*>(.*?)</t[dh]>', html, re.DOTALL)]


def text_of(html):
    return re.sub(r"[ \n]+", " ", unescape(re.sub(r"<[^>]+>", " ", html.replace("<wbr>", "")))).strip()


def test_figures_have_the_words_of_explain(run, explained):
    """Rows of `gas_change` have the place and the change of `explain()`; captions and legends have its causes."""
    ax = plots.gas_change(run.steps, ax=Figure(figsize=(9, 6)).subplots())
    names = [tuple(reversed(label.get_text().split(" · "))) for label in ax.get_yticklabels()]
    changes = [text.get_text() for text in ax.texts if text.get_gid() == "change"]
    answered = {step: change for step, (_, _, change) in explained.items() if not change.startswith("available")}
    assert dict(zip(names, changes, strict=True)) == answered
    causes = {cause for cause, _, change in explained.values() if not change.startswith("available")}
    assert {text.get_text() for text in ax.get_legend().get_texts()} - {"before", "after"} == causes
    ax = plots.gas_by_version(run.observations, steps=run.steps, ax=Figure(figsize=(9, 6)).subplots())
    captions = {text.get_text().partition(" · ")[0] for text in ax.texts if text.get_gid() == "caption"}
    assert captions
    assert captions <= {f"{place} {cause}" for (place, _), (cause, _, _) in explained.items()}
