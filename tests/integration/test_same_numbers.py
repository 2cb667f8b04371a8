"""Steps, failures and gas of a run are the same numbers in the frame, terminal, report, form and figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import Markup

import toolkit
from toolkit import reports
from toolkit._present.text import visible
from toolkit.cli import _studies as studies
from toolkit.gas._observations import failures_of
from toolkit.gas._sentences import brief_lines
from toolkit.gas._study_file import write_starter
from toolkit.reports._data import headline
from toolkit.widgets._gas_explorer import _outcome

RUN = Path(__file__).resolve().parents[2] / "data" / "samples" / "demo"


@pytest.fixture(scope="module")
def demo():
    """The demo study, as `make demo` runs it."""
    return toolkit.Run.open(RUN)


@pytest.fixture(scope="module", params=["demo", "starter"])
def run(request, tmp_path_factory):
    """The demo study, or the starter study, which has other sources and a plan."""
    if request.param == "demo":
        return request.getfixturevalue("demo")
    folder = tmp_path_factory.mktemp("run")
    study = toolkit.Study.load(write_starter(folder / "study.toml"))
    return study.run(out=folder / "run", progress=False)


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    """The report as a page, without figures: the numbers are in its tables, and those of figures are read from figures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit.reports._to_html._svg", lambda *_, **__: Markup("<svg></svg>"))
        return reports.write(run, tmp_path_factory.mktemp("page") / "report.html").read_text("utf-8")


def of_calls(page, name):
    """Return a column of the table of all calls, by label; calls without a number are left out."""
    table = page[page.index('<h2 id="calls">') :]
    rows = re.findall(r"<tr><td class=\"title\">(.*?)</tr>", table[: table.index("</table>")], re.DOTALL)
    found = {}
    for row in rows:
        label = re.search(r"<bdi>(.*?)</bdi>", row)[1]
        cell = re.search(rf'data-name="{name}">([\d,]+)<', row)
        if cell:
            found[label] = int(cell[1].replace(",", ""))
    return found


def test_steps_are_the_rows_of_the_frame(run, page, capsys):
    """In the terminal, in the page and in JSON."""
    studies._print_run(run, {}, as_json=False)
    assert f"{len(run.steps)} steps in {len(run.observations):,} observations" in capsys.readouterr().out
    by_call = run.steps.groupby("label").size().to_dict()
    assert {label: count for label, count in of_calls(page, "steps").items() if count} == by_call
    studies._print_run(run, {}, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["steps"]) == len(run.steps)
    assert sum(call.steps for call in reports.build(run).calls) == len(run.steps)
    assert re.match(rf"{len(run.steps)} steps\b", _outcome(run)[1])


def test_failures_are_reads_with_an_error_and_executions_that_failed(run, page, capsys):
    """A simulation that would abort is one, and so is a transaction that did."""
    frame = run.observations
    failed = frame["error_code"].notna() | ~frame["success"].fillna(value=True).astype(bool)
    assert failed.sum() > frame["error_code"].notna().sum() > 0
    studies._print_run(run, {}, as_json=False)
    kinds = failures_of(frame, run.steps).counts
    assert sum(kinds.values()) == failed.sum()
    assert f"({', '.join(f'{count:,} {kind}' for kind, count in kinds.items())})" in capsys.readouterr().out
    assert (
        of_calls(page, "failures")
        == frame[failed].groupby("label").size().reindex(frame["label"].unique(), fill_value=0).to_dict()
    )
    assert run.manifest["counts"]["failures"] == failed.sum()
    groups = reports.build(run).failures
    of_report = pd.Series([group.count for group in groups])
    assert of_report.groupby([group.failure.value for group in groups]).sum().to_dict() == kinds
    assert re.findall(r"; ([\d,]+) ([a-z ]+?)(?: before [^;]*|\.)?(?=;|$)", _outcome(run)[1]) == [
        (f"{count:,}", kind) for kind, count in kinds.items()
    ]
    facts = dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", run._repr_html_()))
    assert {kind: f"{count:,}" for kind, count in kinds.items()}.items() <= facts.items()


def test_gas_of_a_call_is_that_of_its_last_observation(run, page):
    """In the table and at the end of the line in the figure."""
    known = run.observations[run.observations["gas_used"].notna()].sort_values("ledger_version", kind="stable")
    last = known.groupby("label")["gas_used"].last().to_dict()
    assert of_calls(page, "last gas") == last
    axes = toolkit.plots.gas_by_version(run.observations, calls=["APT supply", "order book depth"])
    ends = {line.get_label(): line.get_ydata()[-1] for line in axes.lines if line.get_gid() == "gas-line"}
    assert ends == {label: last[label] for label in ("APT supply", "order book depth")}


def test_bars_end_with_the_gas_used(run):
    """With all parts, or with some; the total still includes the parts that are not drawn."""
    used = {f"{gas:,}" for gas in run.observations["gas_used"].dropna()}
    for parts in (None, ["execution", "io"], ["storage"]):
        axes = toolkit.plots.gas_breakdown(run.observations, parts=parts)
        ends = [text.get_text() for text in axes.texts if text.get_gid() == "total"]
        assert ends
        assert {re.split(r"[ (]", end.rpartition(" of ")[2])[0] for end in ends} <= used


def test_the_demo_prints_at_most_twelve_lines(demo):
    """What was found, and where the report is; a line about several calls is true of each."""
    lines = brief_lines(demo.steps, len(demo.study.calls))
    assert lines[1].startswith("vault share price: ")  # the same transaction made another call available
    assert len(lines) <= 8  # four are left for what is built and where the report is
    assert "×7 to ×10 at version 3,502 (2026-05-06)" in lines[0]


def test_every_figure_of_the_embedded_node_says_model_gas(demo):
    """Also of frames without a column that says so: steps, transactions, views and simulations."""
    node = toolkit.connect()
    paid = toolkit.fetch_transactions(node, "-50:", progress=False)
    views = toolkit.fetch_views(node, "0xcafe::registry::size", "-20:", progress=False)
    sent = node.simulate(toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100]), sender="0xa11ce")
    plots = toolkit.plots
    labels = [
        plots.gas_change(demo.steps).get_xlabel(),
        plots.gas_by_version(views).get_ylabel(),
        *(draw(frame).get_xlabel() for draw in (plots.gas_distribution, plots.gas_breakdown) for frame in (paid, sent)),
    ]
    assert {re.sub(r",\slogarithmic$", "", label) for label in labels} == {"model gas (gas units)"}


def test_factors_and_counts_of_committed_calls_are_those_of_the_frame(tmp_path):
    """In `explain()`, the headline, the rows and the count; uncertain changes are in all of them, and named so."""
    calls = {
        "registrations": {"committed": "0xcafe::registry::register"},
        "transfers": {"committed": "0x1::aptos_account::transfer"},
        "price": "0xfa17::vault::share_price",
    }
    run = toolkit.Study(calls=calls, versions="3000:4000").run(tmp_path / "run", progress=False)
    steps = run.steps[run.steps["part"].notna()]
    changes = [change for group in reports.build(run).events for change in group.changes]
    means = {(one.label, one.stratum): (one.gas_before, one.gas_after) for one in changes if one.parts}
    totals = steps.set_index(["label", "stratum"])[["total_before", "total_after"]]
    assert means == {key: tuple(row) for key, row in zip(totals.index, totals.to_numpy(), strict=True)}
    factors = {key: f"×{round(after / before, 1):g}" for key, (before, after) in means.items()}
    assert factors["transfers", "succeeding, no new slots"] == "×9.9"  # of 10 and 102 it would be ×10.2
    lines = {line.strip().partition(": ")[0]: line for line in run.explain().splitlines()}
    assert all(f"({factor}:" in lines[f"{label} ({stratum})"] for (label, stratum), factor in factors.items())
    first, second = headline(reports.build(run), visible)
    assert first.startswith("2 of 3 calls (1 more call uncertain): ×9 to ×10 ")
    assert second.startswith("Gas changed for 3 of 3 calls (1 of them uncertain) ")
    assert set(run.steps["label"]) == set(calls)
