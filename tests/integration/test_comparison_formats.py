"""A comparison with committed calls says the same in a terminal, a frame, a figure, Markdown and HTML."""

from __future__ import annotations

import html

import pytest
from matplotlib.figure import Figure

import toolkit
from tests.unit.plots.synthetic_hostile import texts
from toolkit._present.text import relative_change
from toolkit.frames._columns import plain_rows
from toolkit.gas._findings import Kind
from toolkit.gas._sentences import label_text
from toolkit.reports._verdict import verdict_content, verdict_html, verdict_markdown

VIEWS = {
    "price": "0xfa17::vault::share_price",
    "quote": {"view": "0xde5c::desk::quote", "arguments": [10]},
    "depth": "0xb00c::order_book::depth",
    "size": "0xcafe::registry::size",
}
COMMITTED = {
    "deposits": "0xfa17::vault::deposit",
    "registrations": "0xcafe::registry::register",
    "transfers": "0x1::aptos_account::transfer",
    "orders": "0xb00c::order_book::place",
}


def study(names, versions="3000:4000"):
    """Return a study of all views and some committed calls."""
    calls = {name: {"committed": COMMITTED[name], "versions": versions} for name in names}
    return toolkit.Study(calls=VIEWS | calls, versions=toolkit.FindSteps("0:-1"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a run over a tenfold gas schedule at version 3,502."""
    return study(COMMITTED).run(tmp_path_factory.mktemp("compared") / "run", progress=False)


def kinds(comparison):
    """Return the kind of each call."""
    return {row["label"]: row["kind"] for row in plain_rows(comparison.calls)}


def drawn(comparison):
    """Return what the figure says of each call, and its notes."""
    axes = toolkit.plots.gas_change(comparison.calls, ax=Figure(figsize=(9, 6)).subplots())
    names = [label.get_text() for label in axes.get_yticklabels()]
    return dict(zip(names, texts(axes, "change"), strict=True)), texts(axes, "note")


@pytest.mark.parametrize(("version", "left_out"), [(3_200, 0), (3_000, 4), (3_600, 2)])
def test_all_formats_agree(run, version, left_out):
    """On the kind and the change of each call, and on how many are not compared."""
    comparison = toolkit.compare(run.at(version), run.at(4_000))
    shown = comparison.shown(label_text)
    figure, notes = drawn(comparison)
    written = {"text": repr(comparison), "markdown": verdict_markdown(comparison)}
    written |= {"notebook": html.unescape(comparison._repr_html_()), "page": html.unescape(verdict_html(comparison))}
    cells = {row.call[0]: row.cells for row in (*shown.unchanged, *shown.rows) if not row.is_part}
    for row in plain_rows(comparison.calls):
        label, kind, relative = row["label"], row["kind"], cells[row["label"]][4]
        if kind == Kind.NOT_COMPARED:
            assert (relative, label in figure, row["gas_before"], row["gas_after"]) == (kind, False, None, None)
        elif kind == Kind.UNCHANGED:
            assert (relative, figure[label], row["change_percent"]) == ("", "same gas", 0)
            continue
        else:
            percent = relative_change(1.0, 1 + row["change_percent"] / 100)
            assert relative == figure[label] == percent + ", uncertain" * (kind == Kind.UNCERTAIN)
        for text in written.values():
            assert all(cell in text for cell in cells[label][1:])
    assert len(figure) == len(comparison.calls) - left_out == 8 - len(comparison.not_compared)
    assert [note.split()[2:5] for note in notes] == ([[str(left_out), "of", "8"]] if left_out else [])
    for text in written.values():
        assert shown.counts.partition(" (")[0] in text


def test_a_mean_that_may_have_risen_by_chance_is_uncertain(run):
    """It is not unchanged: its means, bounds and the doubt are shown, and the gate cannot judge it."""
    comparison = toolkit.compare(run.at(3_200), run.at(4_000))
    [row] = plain_rows(comparison.uncertain)
    assert (row["label"], row["gas_before"], round(row["gas_after"]), row["cause"]) == ("deposits", 119.625, 2125, None)
    assert row["explanation"].startswith("cause not judged: there are fewer than 16 transactions")
    assert "deposits" in comparison.shown(label_text).unexplained
    assert row["fee_change_low"] < 0 < row["fee_change_high"]
    assert comparison.counts == dict.fromkeys(Kind, 0) | {"changed": 7, "uncertain": 1}
    gate = comparison.gate("2%")
    assert [one.label for one in gate.not_judged] == ["deposits"]
    lenient = verdict_content(comparison, comparison.gate("10000%"))
    assert [(title, one[0][1][0].call[0]) for title, _, one in lenient["sections"][-1:]] == [("Uncertain", "deposits")]
    assert [row.call[0] for row in comparison.shown(label_text).rows if row.is_uncertain] == ["deposits"]


def test_a_change_of_committed_gas_is_that_before_rounding(run):
    """From 10.04 to 1,076.31 gas units is ×107.2; of 10 and 1,076 it would be ×107.6."""
    comparison = toolkit.compare(run.at(3_200), run.at(4_000))
    assert drawn(comparison)[0]["transfers"] == "×107.2"
    [percent] = comparison.calls.loc[comparison.calls["label"] == "transfers", "change_percent"]
    assert percent == pytest.approx(10_620.2, abs=0.1)


def test_a_change_of_gas_is_not_that_of_a_fee_with_refunds():
    """Whoever releases a name is refunded more than the gas costs: the fee falls, and gas rises."""
    releases = {"releases": {"committed": "0xcafe::registry::release", "versions": "3000:4999"}}
    run = toolkit.Study(calls=releases, versions=[4_999]).run(progress=False)
    comparison = toolkit.compare(run.at(3_500), run.at(4_999))
    [row] = plain_rows(comparison.changed)
    assert row["fee_after"] < row["fee_before"] < 0 < row["change"]
    good = run.observations[run.observations["success"]]
    one, two = (
        good.loc[mine, "gas_used"].mean() for mine in (good["ledger_version"] <= 3_500, good["ledger_version"] > 3_501)
    )
    assert row["change_percent"] == pytest.approx(100 * (two / one - 1))
    assert drawn(comparison)[0] == {"releases": relative_change(one, two)}
    [cells] = [row.cells for row in comparison.shown(label_text).rows if row.cells[0].startswith("fee")]
    assert cells[4].startswith("\u2212388")  # as its bounds, of what was refunded before


def test_a_call_without_a_transaction_on_a_side_is_not_new_or_gone(run, tmp_path):
    """Both studies have it, so it cannot be compared; a call that only one study has is added or missing."""
    names = ("deposits", "registrations")
    comparison = toolkit.compare(run.at(3_000), run.at(4_000))
    one = next(row for row in plain_rows(comparison.not_compared) if row["label"] == "registrations")
    assert (one["count_before"], one["count_after"], one["gas_after"]) == (0, 80, None)
    assert "3,000" in one["not_judged"]
    early = study(names, "3000:3005").run(tmp_path / "early", progress=False)
    for sides in ((early, run), (run, early)):
        found = toolkit.compare(*sides)
        assert kinds(found)["registrations"] == "not compared"
        assert "registrations" in {one.label for one in found.gate("2%").not_judged}
    assert kinds(toolkit.compare(early, run))["transfers"] == "added"
    assert kinds(toolkit.compare(run, early))["transfers"] == "removed"
    part = run.at(3_200)
    assert kinds(toolkit.compare(part[part["label"] != "transfers"], run.at(4_000)))["transfers"] == "added"
