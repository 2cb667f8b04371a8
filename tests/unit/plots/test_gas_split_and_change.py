"""Stacked bars and dumbbells show the numbers of the frame."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import toolkit
from tests.unit.plots import synthetic_run
from tests.unit.plots.synthetic_hostile import HOSTILE, drawn_texts, literal, texts
from toolkit.plots import gas_breakdown, gas_change
from toolkit.plots._gas_breakdown import breakdown
from toolkit.plots._style import drawing

pytestmark = pytest.mark.usefixtures("figures")


def test_storage_is_shown_in_gas_units_at_the_transactions_price() -> None:
    """40,000 octas at 100 octas a unit are 400 units."""
    parts = breakdown(synthetic_run.observations()).set_index("label")
    assert parts.loc["transfer 100", "storage"] == 400
    assert parts.loc["transfer 100", ["execution", "io"]].tolist() == [398, 199]


def test_storage_is_nothing_at_price_zero() -> None:
    """Nothing is charged at price 0, and nothing is divided by it."""
    frame = synthetic_run.observations()
    parts = breakdown(frame.assign(gas_unit_price=frame["gas_unit_price"].where(frame["gas_unit_price"].isna(), 0)))
    assert (parts["storage"] == 0).all()


def test_bars_stack_the_parts_of_each_call_and_kind() -> None:
    """Widths are the parts; views have none; committed transactions have a bar for each kind, the last of it."""
    ax = gas_breakdown(synthetic_run.observations())
    widths = [[bar.get_width() for bar in container] for container in ax.containers]
    parts = breakdown(synthetic_run.observations())
    assert widths == [pytest.approx(parts[name].tolist()) for name in ("execution", "io", "storage")]
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "transfer 100",
        "register a taken name",
        "registrations\nsucceeding (last\xa0of\xa041)",
        "registrations\nfailing (last\xa0of\xa011)",
    ]
    committed = synthetic_run.observations().query("source == 'committed'")
    last = [committed[committed["success"] == good]["gas_used"].iloc[-1] for good in (True, False)]
    assert parts["total"].tolist() == [998, 93, *last]
    assert texts(ax, "total")[:2] == ["998", "93 · failed"]
    assert texts(ax, "total")[3].endswith(" · failed")
    assert "gas units" in ax.get_xlabel()
    assert len(texts(ax, "note")) == 1  # 398 and 199 and 400 are 997


def test_the_note_on_rounding_and_the_legend_are_about_what_is_drawn() -> None:
    """50 and 19 beside "68" are noted if only these parts are drawn, too; a part without a bar has no entry."""
    frame = synthetic_run.observations().query("label == 'register a taken name'")
    frame = frame.assign(gas_used=68, execution_gas_units=50, io_gas_units=19, storage_fee_octas=0)
    for parts in (None, ["execution", "io"]):
        ax = gas_breakdown(frame, parts=parts)
        assert texts(ax, "note") != []
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["execution", "io"]
    assert texts(gas_breakdown(frame.assign(gas_used=168, storage_fee_octas=10_000), parts=["io"]), "note") == []


@pytest.mark.parametrize("size", [None, (4, 3)])
def test_storage_that_dwarfs_the_rest_is_beside_it_on_its_own_scale(size: tuple[float, float] | None) -> None:
    """Every part has a number: in one bar of 4,369 units, the 44 and the 21 would be lines."""
    rows = [("register", 4_369, 44, 21, 430_400), ("release", 61, 49, 12, 0)]
    names = ["label", "gas_used", "execution_gas_units", "io_gas_units", "storage_fee_octas"]
    frame = pd.DataFrame(rows, columns=names).assign(source="simulate@now", gas_unit_price=100, success=True)
    ax = gas_breakdown(frame, figsize=size)
    main, storage = ax.figure.axes
    assert main is ax
    assert texts(ax, "part") == ["44", "49", "21", "12"]
    assert texts(ax, "total") == ["65 of 4,369", "61"]
    assert [bar.get_width() for bar in storage.patches] == [4_304, 0]
    assert texts(storage, "total") == ["4,304", ""]
    assert storage.get_ylim() == ax.get_ylim()
    assert len(gas_breakdown(frame, parts=["execution", "io", "storage"]).figure.axes) == 1


def test_dumbbells_stand_at_gas_before_and_after() -> None:
    """One row per change, those of a drift merged; ends are the readings."""
    ax = gas_change(synthetic_run.steps())
    (before,), (after,) = (ax.findobj(lambda a, g=gid: a.get_gid() == g) for gid in ("before", "after"))
    names = [label.get_text() for label in ax.get_yticklabels()]
    row = names.index("vault total · 3,204")
    assert before.get_offsets()[row].tolist() == [140, row]
    assert after.get_offsets()[row].tolist() == [60, row]
    place = names.index("names registered · 126 to 2,400")
    assert texts(ax, "change")[place] == "×5 in 16 steps"
    assert len(names) == 14


def test_a_comparison_frame_needs_only_label_and_gas() -> None:
    """Label, gas before and gas after are enough; rows with either missing are left out."""
    frame = pd.DataFrame({"label": ["a", "b"], "gas_before": [10, None], "gas_after": [11, 5]})
    ax = gas_change(frame)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a"]
    assert texts(ax, "change") == ["+10 %"]


def test_many_changes_are_cut_to_the_largest_and_it_is_said() -> None:
    """The figure stays readable and says what it leaves out."""
    frame = pd.DataFrame({"label": [f"c{n}" for n in range(100)], "gas_before": 10, "gas_after": range(10, 110)})
    ax = gas_change(frame)
    assert len(ax.get_yticklabels()) == 26
    assert ax.get_title() == "The 26 largest of 100 gas changes"
    names = ["label", "part", "stratum", "gas_before", "gas_after"]
    strata = [f"failing, abort code 0x{n:05x} (already exists), no new slots" for n in range(28)]
    ax = gas_change(pd.DataFrame([("a", "io", stratum, 5, 50) for stratum in strata], columns=names))
    assert len(ax.get_yticklabels()) == 12
    assert ax.figure.get_figheight() < 8


def test_hostile_labels_break_nothing() -> None:
    """Saving warns of nothing, and each label is drawn as its visible text."""
    split = drawn_texts(gas_breakdown(synthetic_run.observations(rename=HOSTILE)))
    simulated = [HOSTILE[name] for name in ("transfer 100", "register a taken name")]
    assert all(any(text.startswith(literal(label, 44)) for text in split) for label in simulated)
    steps = synthetic_run.steps(rename=HOSTILE)
    drawn = drawn_texts(gas_change(steps))
    changed = {label for label in HOSTILE.values() if label in set(steps["label"])}
    assert len(changed) > 1
    assert all(any(text.startswith(literal(label, 20)[:-1]) for text in drawn) for label in changed)


def test_a_figure_restores_the_parameters_of_its_style_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first figure of a notebook loads the backend, which becomes interactive; drawing does not take that back.

    Otherwise figures that the reader draws with pyplot afterwards were not shown.
    """
    before = dict(mpl.rcParams)
    monkeypatch.setitem(mpl.rcParams, "interactive", False)
    with mpl.rc_context({"text.usetex": True}), drawing(Figure().subplots(), title="", xlabel="") as axes:
        mpl.rcParams["interactive"] = True
        assert not axes.text(0, 0, r"\\input{/etc/passwd}").get_usetex()
    assert mpl.rcParams["text.usetex"] == before["text.usetex"]


def test_changes_without_causes_have_no_legend_of_causes() -> None:
    """A comparison of two versions looks for no causes: its grey has no entry; one that is known beside it has both."""
    frame = pd.DataFrame({"label": ["a", "b"], "gas_before": [3, 4], "gas_after": [30, 5], "cause": ["unknown"] * 2})
    entries = ["before", "after"]
    assert [text.get_text() for text in gas_change(frame).get_legend().get_texts()] == entries
    mixed = gas_change(frame.assign(cause=["unknown", "code"])).get_legend()
    assert [text.get_text() for text in mixed.get_texts()] == [*entries, "code", "unknown"]


def test_strata_of_changes_are_whole_and_begin_with_their_outcome_in_small_figures() -> None:
    """What several strata share is named with each; a row that is told apart by its part needs no stratum."""
    kinds = "failing, abort code 0x80001 (already exists), no new slots", "succeeding, 1 new slot"
    rows = [("registrations", "io", kind, 5, 50, 3_501, 3_502) for kind in kinds]
    rows.append(("registrations", "storage", kinds[1], 400, 4_000, 3_501, 3_502))
    names = ["label", "part", "stratum", "gas_before", "gas_after", "version_before", "version_after"]
    frame = pd.DataFrame(rows, columns=names)
    wide, small = gas_change(frame), gas_change(frame, figsize=(4, 3))
    shown = [label.get_text().replace("\n", " ") for label in wide.get_yticklabels()]
    parts = [f"registrations · {part} · 3,502" for part in ("io", "io", "storage")]
    assert shown == [f"{parts[0]} {kinds[0]}", f"{parts[1]} {kinds[1]}", parts[2]]
    assert wide.yaxis.get_tick_params()["labelsize"] == mpl.rcParams["font.size"]  # on three lines, in the usual size
    shown = [label.get_text().replace("\n", " ") for label in small.get_yticklabels()]
    assert shown == [f"{parts[0]}, {kinds[0]}", f"{parts[1]}, {kinds[1]}", parts[2]]


def intervals(ax: Axes) -> list[list[float]]:
    """Return both ends of each interval that is drawn."""
    found = ax.findobj(lambda artist: artist.get_gid() == "bounds")
    return [segment[:, 0].tolist() for lines in found for segment in lines.get_segments()]


def test_bounds_of_committed_calls_are_drawn() -> None:
    """Those of a comparison are in percent of the fee, which with a refund is not gas; those of a step are in gas."""
    names = ["label", "gas_before", "gas_after", "fee_change_low", "fee_change_high"]
    found = [("a", 100, 2_000, -98.0, 7_400.0), ("b", 10, 20, 50.0, None), ("c", 10, 20, None, None)]
    calls = pd.DataFrame(found, columns=names)
    ax = gas_change(calls)
    closed, unbounded = intervals(ax)
    assert closed == [pytest.approx(2), pytest.approx(7_500)]
    assert unbounded == [pytest.approx(15), pytest.approx(7_500)]  # to the right end, with an arrow
    refunded = calls.assign(storage_fee_refund_octas_before=[0, 0, 0], storage_fee_refund_octas_after=[500, 0, 0])
    assert len(intervals(gas_change(refunded))) == 1
    step = pd.DataFrame([("a", 5, 44, 38.0, 40.0)], columns=[*names[:3], "change_low", "change_high"])
    assert intervals(gas_change(step)) == [[43, 45]]
    assert intervals(gas_change(calls[names[:3]])) == []
    wide = gas_change(calls.iloc[:1], figsize=(4, 3))
    wide.figure.draw_without_rendering()
    assert wide.get_window_extent().x0 < 0.05 * wide.figure.bbox.width


def test_the_largest_changes_are_those_that_their_labels_call_so() -> None:
    """From 5 to 44 is both ×8.8 and, before rounding, ×9.3; a row without a percentage has what its gas says."""
    names = ["label", "part", "stratum", "gas_before", "gas_after", "change_percent"]
    found = [("a", "io", "", 5, 44, 780.0), ("b", "io", "", 5, 44, 835.0), ("c", "io", "", 0, 9, None)]
    found += [("d", "io", "", 0, 1, 2000.0)]
    frame = pd.DataFrame([*found, *[("e", "io", "", 9, 10, 11.1)] * 30], columns=names)
    axes = gas_change(frame, figsize=(7, 1.5))
    assert texts(axes, "change") == ["×21", "×9.4", "+9"]


def test_uncertain_changes_are_dashed_and_last() -> None:
    """A reader sees which changes the frame doubts, and numbers are those of the levels before rounding."""
    names = ["label", "part", "stratum", "gas_before", "gas_after", "change_percent", "uncertain"]
    found = [("a", "io", "one", 8, 86, 922.7, ["few"]), ("b", "io", "one", 5, 50, 900.0, [])]
    axes = gas_change(pd.DataFrame(found, columns=names))
    assert [label.get_text()[0] for label in axes.get_yticklabels()] == ["b", "a"]
    lines = {
        line.get_segments()[0][0][1]: line.get_linestyles() for line in axes.collections if line.get_gid() == "span"
    }
    assert lines[0] != lines[1]
    assert [text.get_text() for text in axes.texts if text.get_gid() == "change"] == ["×10", "×10.2, uncertain"]


def test_calls_without_gas_to_compare_are_counted_below() -> None:
    """A call that is not compared leaves a note, and one that may have changed by chance is uncertain."""
    names = ["label", "kind", "stratum", "gas_before", "gas_after", "change_percent"]
    found = [("a", "changed", None, 8, 12, 50.0), ("b", "not compared", None, None, None, None)]
    found += [("c", "uncertain", "all transactions", 10, 1076, 10_620.2), ("d", "unchanged", None, 4, 4, 0.0)]
    axes = gas_change(pd.DataFrame(found, columns=names))
    assert texts(axes, "change") == ["+50\u202f%", "same gas", "×107.2, uncertain"]
    assert texts(axes, "note") == ["not drawn: 1 of 4 calls, not compared"]
    assert axes.get_title() == "Gas before and after"
    calls = pd.DataFrame([*found, ("e", "removed", None, 5, None, None)], columns=names)
    calls.attrs["versions"] = (3_400, 3_900)
    axes = gas_change(calls.assign(gas_before=calls["gas_before"].fillna(1), gas_after=calls["gas_after"].fillna(2)))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "d", "e", "c"]  # whatever gas b may have
    assert gas_change(calls).get_title() == "Gas before and after: ledger versions 3,400 and 3,900"
    assert texts(gas_change(calls), "note") == ["not drawn: 2 of 5 calls, not compared or without gas"]
    nothing = gas_change(pd.DataFrame(found[1:2], columns=names))
    assert "no gas to compare" in [text.get_text() for text in nothing.texts]


def test_an_uncertain_change_below_a_unit_is_not_the_same_gas() -> None:
    """Levels that round to the same number differ by the step's change, and every row marks a doubt."""
    names = ["label", "part", "stratum", "gas_before", "gas_after", "change_percent", "uncertain"]
    found = [("a", "io", "one", 10, 10, 3.0, ["few"]), ("b", "io", "one", 0, 7, None, ["few"])]
    assert texts(gas_change(pd.DataFrame(found, columns=names)), "change") == ["+3\u202f%, uncertain", "+7, uncertain"]


def test_a_breakdown_is_drawn_again_on_its_axes() -> None:
    """The parts of the first drawing are not those of the second, and each has one entry in the legend."""
    axes = Figure().subplots()
    for _ in range(2):
        assert gas_breakdown(synthetic_run.observations(), ax=axes) is axes
    assert len(axes.containers) == 6
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["execution", "io", "storage"]


def test_a_drift_that_ends_where_it_began_spans_what_it_cost_between() -> None:
    """From 4 to 5 and back twice is not "same gas"."""
    gas = [4, 5, 4, 5, 4, 5, 4]
    frame = pd.DataFrame({"label": "a", "gas_before": gas[:-1], "gas_after": gas[1:], "cause": "state", "exact": True})
    frame = frame.assign(version_before=range(6), version_after=range(1, 7))
    axes = gas_change(frame)
    [line] = [one for one in axes.collections if one.get_gid() == "span" and len(one.get_segments())]
    assert line.get_segments()[0][:, 0].tolist() == [4, 5]


def test_committed_transactions_that_pay_for_storage_have_a_bar_of_their_own() -> None:
    """Which transaction is the last one does not decide whether storage is seen."""
    columns = ["label", "source", "ledger_version", "gas_used", "execution_gas_units", "io_gas_units"]
    paid = [("a", "committed", place, 12 + 400 * (place % 4 == 0), 8, 4) for place in range(40)]
    frame = pd.DataFrame(paid, columns=columns).assign(gas_unit_price=100, success=True)
    split = breakdown(frame.assign(storage_fee_octas=[40_000 * (place % 4 == 0) for place in range(40)]))
    assert split[["count", "storage"]].to_numpy().tolist() == [[30, 0], [10, 400]]


def test_the_versions_of_a_comparison_are_in_the_title() -> None:
    """They are those that were asked for, not those of the last readings."""
    run = toolkit.Run.open(Path(__file__).resolve().parents[3] / "data" / "samples" / "demo")
    calls = toolkit.compare(run.at(3_000), run.at(4_000)).calls
    assert gas_change(calls).get_title() == "Gas before and after: ledger versions 3,000 and 4,000"
