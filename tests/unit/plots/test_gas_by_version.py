"""The figure shows the numbers of the frame, honestly, and whatever the labels are."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import toolkit
from tests.unit.plots import synthetic_run
from tests.unit.plots.synthetic_hostile import HOSTILE, drawn_texts, literal
from toolkit.errors import InputError
from toolkit.frames._columns import frame_of_rows
from toolkit.frames._schema import STEPS
from toolkit.gas._observations import Cause
from toolkit.gas._series import CallSeries, series_of
from toolkit.plots import gas_by_version
from toolkit.plots._gas_by_version import LEVEL_COLUMNS, _joined, _level_name, _marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pytestmark = pytest.mark.usefixtures("figures")
ROOT = Path(__file__).resolve().parents[3]


def artists(ax: Axes, gid: str) -> list:
    """The artists of one kind."""
    return ax.findobj(lambda artist: artist.get_gid() == gid)


def reading(versions: list[int], gas: list[float]) -> CallSeries:
    """A series of readings that succeeded where they have gas."""
    known = np.asarray(gas, dtype=float)
    return CallSeries(
        "call", "view@version", "", "call", 0, np.asarray(versions, dtype=float), known, ~np.isnan(known), ""
    )


def test_line_steps_between_adjacent_versions_and_is_interrupted_between_others() -> None:
    """A change between neighbours is drawn where it was; elsewhere nothing joins the readings."""
    series = reading([0, 10, 11, 20, 30, 40], [5, 5, 50, 80, 90, 90])
    x, y = series.line()
    assert list(x) == [0, 10, 11, 11, 20, 20, 30, 30, 40]
    assert [None if np.isnan(gas) else gas for gas in y] == [5, 5, 5, 50, None, 80, None, 90, 90]
    assert list(series.alone) == [False, False, False, True, False, False]


def test_levels_step_at_the_change_and_are_flat_until_then() -> None:
    """A change in between is where the line steps; without one, or with two, the line is interrupted."""
    ends, gas = np.array([(0.0, 90.0), (120.0, 300.0)]), np.array([(5.0, 5.0), (50.0, 50.0)])
    x, y = _joined(ends, gas, [100.0])
    assert list(zip(x, y, strict=True)) == [(0, 5), (90, 5), (100, 5), (100, 50), (120, 50), (300, 50)]
    for changes in ([], [95.0, 100.0]):
        assert np.isnan(_joined(ends, gas, changes)[1]).tolist() == [False, False, True, False, False]


def test_a_level_steps_only_at_a_change_of_its_own_stratum() -> None:
    """What moved another stratum of the call need not have moved this one."""
    made = synthetic_run.observations()
    row = made[made["source"] == "committed"].iloc[[0]]
    frame = pd.concat([row.assign(label="call", ledger_version=at) for at in (0, 300)], ignore_index=True)
    kinds = ("few", 5.0, 50.0), ("many", 7.0, 70.0)
    ends = (0, 90, 0), (120, 300, 1)
    rows = [("call", kind[0], first, last, *2 * [kind[1 + at]], 9) for kind in kinds for first, last, at in ends]
    levels = pd.DataFrame(rows, columns=list(LEVEL_COLUMNS))
    step = (
        synthetic_run.steps()
        .iloc[[0]]
        .assign(
            label="call", stratum="many", version_before=99, version_after=100, exact=True, gas_before=7, gas_after=70
        )
    )
    lines = artists(gas_by_version(frame, steps=step, levels=levels), "level-line")
    assert [bool(np.isnan(line.get_ydata()).any()) for line in lines] == [True, False]


def test_levels_of_many_strata_are_named_by_their_calls() -> None:
    """Nine lines of three calls have three names; the six of two calls have one each."""
    versions = list(range(0, 100, 10))
    made = synthetic_run.observations()
    row = made[made["source"] == "committed"].iloc[[0]]
    frame = pd.concat(
        [row.assign(label=f"call {n}", ledger_version=at, gas_used=100 * (n + 1)) for n in range(3) for at in versions],
        ignore_index=True,
    )
    levels = pd.DataFrame(
        [
            (f"call {n}", f"kind {kind}", 0, 90, 100.0 * n + kind, 100.0 * n + kind, 9 - kind)
            for n in range(3)
            for kind in range(3)
        ],
        columns=list(LEVEL_COLUMNS),
    )
    ax = gas_by_version(frame, levels=levels)
    assert [text.get_text() for text in artists(ax, "end-label")] == ["call 0", "call 1", "call 2"]
    ax = gas_by_version(frame, levels=levels, calls=["call 0", "call 1"])
    ends = [text.get_text() for text in artists(ax, "end-label")]
    assert ends == [f"call {n}, kind {kind}" for n in range(2) for kind in range(3)]
    levels.loc[levels["label"] == "call 0", "version_last"] = 40
    ax = gas_by_version(frame, levels=levels)  # one that ends early has a name, too
    assert {text.get_text() for text in artists(ax, "end-label")} == {"call 0", "call 1", "call 2"}
    head = made[made["source"] == "simulate@now"].iloc[[0]].assign(label="simulated", ledger_version=1000)
    levels["version_last"] = [90, 88, 86] * 3
    ax = gas_by_version(pd.concat([frame, head]), levels=levels, calls=["call 1", "simulated"])  # long after the lines
    assert [text.get_text() for text in artists(ax, "end-label")][1:] == [f"call 1, kind {kind}" for kind in range(3)]


def test_axes_do_not_go_below_zero_or_one_for_marks() -> None:
    """Marks of failures and of the ledger are below the axes, on a linear scale and on a logarithmic one."""
    frame = synthetic_run.observations()
    for calls, least in ((["order book depth", "chain id"], 1), (["order book depth"], 0)):
        ax = gas_by_version(frame, calls=calls, steps=synthetic_run.steps(), timeline=timeline())
        ax.figure.draw_without_rendering()
        assert ax.get_ylim()[0] >= least
        (bar,) = artists(ax, "failures")
        assert max(bar.get_ydata()) < 0


def test_of_many_calls_those_that_vary_most_have_rows() -> None:
    """There are sixteen, or as many as low axes have room for but at least seven lines, and the title says so."""
    frame = synthetic_run.observations()
    view = frame[frame["label"] == "vault total"]
    many = pd.concat([view.assign(label=f"call {n}", gas_used=view["gas_used"] * (n + 1)) for n in range(20)])
    many["gas_used"] = many["gas_used"].where(many["label"] != "call 3", 50)  # its gas never changes
    for size, count in ((None, 16), ((4, 3), 12), ((4, 2), 7)):
        ax = gas_by_version(many, figsize=size)
        assert len(artists(ax, "gas-line")) == count
        assert f"{count} of 20" in ax.get_title()
        assert bool(ax.get_ylabel()) == (count == 7)
    names = [text.get_text() for text in gas_by_version(many).get_yticklabels()]
    assert (len(names), "call 3" in names) == (16, False)


def test_calls_without_space_for_their_names_have_rows() -> None:
    """Each has its name, its colour and the range of its gas; steps are in the row of their call."""
    frame = synthetic_run.observations()
    view = frame[frame["label"] == "vault total"]
    names = [f"call {n}" for n in range(12)]
    many = pd.concat([view.assign(label=name, gas_used=view["gas_used"] * (n + 1)) for n, name in enumerate(names)])
    steps = synthetic_run.steps()
    steps = steps[steps["label"] == "vault total"].assign(label="call 7")
    ax = gas_by_version(many, steps=steps, calls=names, figsize=(4, 3))
    ax.figure.draw_without_rendering()
    assert [name.get_text() for name in ax.get_yticklabels()] == names
    lines = artists(ax, "gas-line")
    assert len({line.get_color() for line in lines}) == 12
    assert all(abs(np.nanmean(line.get_ydata()) - row) < 0.5 for row, line in enumerate(lines))
    assert [text.get_text() for text in artists(ax, "range")][:2] == ["14 to 140", "28 to 280"]
    marks = np.concatenate([mark.get_xydata() for mark in ax.lines if (mark.get_gid() or "").startswith("change-")])
    assert set(np.round(marks[:, 1])) == {7}
    assert set(names).isdisjoint(text.get_text() for text in ax.get_legend().get_texts()) if ax.get_legend() else True
    more = pd.concat([many, *(many.assign(label=many["label"] + text) for text in (" again", " once more"))])
    ax = gas_by_version(more, calls=[*more["label"].unique()], figsize=(4, 3))
    ax.figure.draw_without_rendering()
    places = [name.get_window_extent() for name in ax.get_yticklabels()]
    assert len(places) == 12
    assert all(above.y0 >= below.y1 - 1 for above, below in pairwise(places))
    assert ax.get_title().endswith("the 12 of 36 calls that vary most")


def test_line_leaves_out_equal_neighbours_and_breaks_at_failures() -> None:
    """Long runs of equal readings are two vertices; a failure interrupts the line."""
    x, y = reading(list(range(6)), [1, 1, 1, float("nan"), float("nan"), 1]).line()
    assert list(x) == [0, 2, 3, 4, 5]
    assert np.isnan(y[2:4]).all()


def test_failures_are_runs_of_neighbouring_readings() -> None:
    """Each run is given by its first and last failing version."""
    nan = float("nan")
    assert reading([0, 5, 9, 12, 20], [nan, nan, 3, nan, 4]).failures() == [(0, 5), (12, 12)]


def test_lines_hold_the_gas_of_the_frame() -> None:
    """Every vertex of every line is a reading, or the corner of a step."""
    observations = synthetic_run.observations()
    ax = gas_by_version(observations, calls=["vault total"])
    (line,) = artists(ax, "gas-line")
    frame = observations[observations["label"] == "vault total"]
    known = dict(zip(frame["ledger_version"].tolist(), frame["gas_used"].tolist(), strict=True))
    for version, gas in zip(*line.get_data(), strict=True):
        assert gas in {known[int(version)], known.get(int(version) - 1)}
    assert {gas for _, gas in zip(*line.get_data(), strict=True)} == {14, 140, 60, 48}


def test_axes_carry_units_and_the_figure_says_gas_is_a_models() -> None:
    """Both axes have units, and model gas is labelled, but no other gas."""
    observations = synthetic_run.observations()
    ax = gas_by_version(observations, calls=["chain id"])
    assert ax.get_xlabel() == "ledger version"
    assert ax.get_ylabel() == "model gas (gas units)"
    ax = gas_by_version(observations.assign(model=False), calls=["chain id"])
    assert ax.get_ylabel() == "gas used (gas units)"


def test_calls_of_very_different_gas_get_a_logarithmic_axis() -> None:
    """From 2 to 998 is logarithmic; from 48 to 140 is not; a gas of 0 is still shown."""
    observations = synthetic_run.observations()
    both = ["chain id", "names registered"]
    assert gas_by_version(observations, calls=both).get_yscale() == "log"
    assert gas_by_version(observations, calls=["transfer 100"]).get_yscale() == "linear"
    zero = observations.assign(gas_used=observations["gas_used"].where(observations["label"] != "chain id", 0))
    assert gas_by_version(zero, calls=both).get_yscale() == "symlog"


def test_a_call_keeps_its_colour_whichever_are_drawn() -> None:
    """Colours go by the order of all calls of the frame."""
    observations = synthetic_run.observations()
    every = artists(gas_by_version(observations), "gas-line")
    (alone,) = artists(gas_by_version(observations, calls=["vault total"]), "gas-line")
    assert alone.get_color() == every[synthetic_run.VIEWS.index("vault total")].get_color()


def test_changes_are_marked_by_cause_at_their_version() -> None:
    """Exact changes stand at their version and gas, in the colour and shape of the cause."""
    ax = gas_by_version(synthetic_run.observations(), steps=synthetic_run.steps(), calls=["vault total"])
    (code,) = artists(ax, "change-code")
    assert [tuple(point) for point in code.get_xydata()] == [(synthetic_run.UPGRADE, 60)]
    (schedule,) = artists(ax, "change-schedule")
    assert list(schedule.get_xdata()) == [synthetic_run.TENFOLD, synthetic_run.CHEAPER]
    assert code.get_marker() != schedule.get_marker()
    assert code.get_markerfacecolor() != schedule.get_markerfacecolor()


def test_unresolved_changes_are_bands_over_their_interval() -> None:
    """Between readings the mark is hollow, and a band covers the whole interval."""
    frames = synthetic_run.observations(resolved=False), synthetic_run.steps(resolved=False)
    ax = gas_by_version(frames[0], steps=frames[1], calls=["APT supply"])
    (bands,) = artists(ax, "unresolved")
    corners = [path.vertices for path in bands.get_paths()]
    assert sorted((c[:, 0].min(), c[:, 0].max()) for c in corners) == [(2_500, 2_525), (3_900, 3_925)]
    (mark,) = artists(ax, "change-schedule")
    assert mark.get_markerfacecolor() == "#ffffff"


def test_uncertain_steps_are_hollow_and_the_legend_says_so() -> None:
    """The parts of a stratum share a mark, which is filled if one of them is sure."""
    plain = synthetic_run.steps()
    doubts = [["few"] if cause == "code" else [] for cause in plain["cause"]]
    ax = gas_by_version(synthetic_run.observations(), steps=plain.assign(uncertain=doubts))
    [code], [schedule] = artists(ax, "change-code"), artists(ax, "change-schedule")
    assert (code.get_markerfacecolor() == "#ffffff", schedule.get_markerfacecolor() == "#ffffff") == (True, False)
    assert "uncertain" in [text.get_text() for text in ax.get_legend().get_texts()]
    sure = gas_by_version(synthetic_run.observations(), steps=plain.assign(uncertain=[[]] * len(plain)))
    assert "uncertain" not in [text.get_text() for text in sure.get_legend().get_texts()]
    step = plain.iloc[[0, 0]].assign(part=["execution", "io"], stratum="s", uncertain=[["few"], []])
    assert _marks(step)["sure"].tolist() == [True]


def test_the_calls_of_a_run_at_a_version_have_rows() -> None:
    """Their last readings are at several versions; the title has the version that was asked for."""
    run = toolkit.Run.open(ROOT / "data" / "samples" / "demo")
    at = run.at(run.last_version - 1)
    assert len({*at["ledger_version"]}) > 1
    assert gas_by_version(at).get_title() == f"Gas at ledger version {run.last_version - 1:,}"


def test_captions_name_version_and_cause_without_colliding() -> None:
    """The step all calls share is captioned once, and no two captions overlap."""
    ax = gas_by_version(synthetic_run.observations(), steps=synthetic_run.steps())
    ax.figure.draw_without_rendering()
    captions = [caption for caption in artists(ax, "caption") if caption.get_visible()]
    texts = {caption.get_text() for caption in captions}
    assert {"2,503 gas schedule", "1,807 code", "3,901 gas schedule"} <= texts
    boxes = [caption.get_window_extent() for caption in captions]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


@pytest.mark.parametrize("size", [(9, 4), (7, 4), (5, 3), (4, 3)])
def test_the_legend_has_the_causes_without_a_caption(size: tuple[float, float]) -> None:
    """Captions name all causes, or else the legend has all of them, whatever the width leaves room for."""
    sample = toolkit.Run.open(ROOT / "data" / "samples" / "demo")
    views = sample.observations[sample.observations["source"] == "view@version"]
    runs = ((synthetic_run.observations(), synthetic_run.steps(), 2), (views, sample.steps, 5))
    for frame, steps, count in runs:
        ax = gas_by_version(frame, steps=steps, figsize=size)
        ax.figure.draw_without_rendering()
        marks = ax.findobj(lambda artist: (artist.get_gid() or "").startswith("change-"))
        causes = {Cause.of(mark.get_gid().removeprefix("change-")).label for mark in marks}
        seen = " ".join(text.get_text() for text in artists(ax, "caption") if text.get_visible())
        entries = {text.get_text() for text in ax.get_legend().get_texts()}
        assert len(causes) == count
        hidden = [text for text in artists(ax, "caption") if not text.get_visible()]
        assert causes & entries == (causes if hidden else set())
        assert hidden or all(cause in seen for cause in causes)


def test_a_line_under_another_is_seen_on_both_sides() -> None:
    """Where two calls have equal gas, the first is wider; elsewhere, and without equal gas, it is not."""
    frame = synthetic_run.observations()
    first, _ = artists(ax := gas_by_version(frame, calls=["chain id", "ledger time"]), "gas-line")
    (wider,) = artists(ax, "hidden-line")
    assert (wider.get_color(), wider.get_zorder() < first.get_zorder()) == (first.get_color(), True)
    assert wider.get_linewidth() > 1.5 * first.get_linewidth()
    assert set(wider.get_ydata()[~np.isnan(wider.get_ydata())]) == {2}
    assert not artists(gas_by_version(frame, calls=["APT supply", "balance of 0xb0b"]), "hidden-line")


def test_names_in_a_legend_are_whole_before_other_entries_are_there() -> None:
    """Seven calls in a small figure have their names; a name longer than the figure is cut, and stays in it."""
    frame = synthetic_run.observations()
    view = frame[frame["label"] == "vault total"]
    names = [f"{n} of the vault share" for n in range(7)]
    many = pd.concat([view.assign(label=name, gas_used=view["gas_used"] * (n + 1)) for n, name in enumerate(names)])
    ax = gas_by_version(many, steps=synthetic_run.steps(), calls=names, figsize=(4, 3))
    told = [text.get_text() for text in ax.get_legend().get_texts()]
    assert told[:7] == names
    long = [f"{'a very long name ' * 2} {n}" for n in range(2)]
    two = pd.concat([view.assign(label=name) for name in long])
    ax = gas_by_version(two, figsize=(2.5, 3))
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x1 <= ax.figure.bbox.x1


def test_a_long_name_in_a_legend_has_several_lines_at_the_usual_size() -> None:
    """A name that fits into the legend on two lines is neither cut nor small."""
    frame = synthetic_run.observations()
    view = frame[frame["label"] == "vault total"]
    names = ["short", "a name with more words than a line of it has"]
    ax = gas_by_version(pd.concat([view.assign(label=name) for name in names]), figsize=(3, 3))
    short, long = ax.get_legend().get_texts()
    assert (short.get_text(), long.get_text().replace("\n", " ")) == tuple(names)
    assert long.get_text().count("\n") == 1
    usual = gas_by_version(view.assign(label="a"), steps=synthetic_run.steps().assign(label="a"), figsize=(3, 3))
    assert {short.get_fontsize(), long.get_fontsize()} == {usual.get_legend().get_texts()[0].get_fontsize()}


def test_end_labels_name_every_series_without_colliding() -> None:
    """Each call is named once at the right, and names do not overlap."""
    frame = synthetic_run.observations()
    ax = gas_by_version(frame, calls=[*frame["label"].unique()[:7]])
    ax.figure.draw_without_rendering()
    labels = artists(ax, "end-label")
    assert len(labels) == 7
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.y0)
    heights = [(a.y0 + a.y1) / 2 for a in boxes]
    size = labels[0].get_fontsize() * ax.figure.dpi / 72
    assert min(np.diff(heights)) >= 0.95 * size


def test_failed_readings_are_bars_at_the_foot() -> None:
    """The call that did not exist yet has one bar from its first to its last failing version."""
    ax = gas_by_version(synthetic_run.observations(), calls=["order book depth", "chain id"])
    (bar,) = artists(ax, "failures")
    assert list(bar.get_xdata()) == [0, synthetic_run.BORN - 1]
    assert [text.get_text() for text in ax.texts if text.get_gid() == "failures-name"] == ["no result"]


def test_a_single_failed_reading_can_be_seen() -> None:
    """If it is far from the next result: a line from a point to itself is not drawn, so it has a mark."""
    frame = synthetic_run.observations()
    book = frame[frame["label"] == "order book depth"]
    (bar,) = artists(gas_by_version(book), "failures")
    assert bar.get_marker() == ""
    near = book[book["ledger_version"] >= synthetic_run.BORN - 1]
    assert not artists(gas_by_version(near), "failures")
    (point,) = artists(gas_by_version(near.iloc[[0, -1]]), "failures")
    assert point.get_marker() == "s"
    rows = pd.concat([near.iloc[[0, -1]].assign(label=f"call {n}") for n in range(8)])
    assert not artists(gas_by_version(rows), "failures")  # in rows, it would be under the axis


@pytest.mark.parametrize("width", [5.0])
def test_a_legend_of_many_entries_stays_in_the_figure(width: float) -> None:
    """It takes another row instead of being cut or squeezing the axes."""
    figure = plt.figure(figsize=(width, 4.4), layout="constrained")
    ax = gas_by_version(
        synthetic_run.observations(resolved=False), steps=synthetic_run.steps(resolved=False), ax=figure.subplots()
    )
    figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x1 <= figure.bbox.x1
    assert ax.get_window_extent().width >= 0.4 * figure.bbox.width


def test_failed_executions_are_crosses() -> None:
    """A simulation that aborted has gas, and is drawn as a failure."""
    frame = synthetic_run.observations()
    (mark,) = artists(gas_by_version(frame, calls=["register a taken name", "chain id"]), "gas-simulated")
    assert mark.get_marker() == "x"


def test_gas_at_a_single_version_has_a_row_for_each_call() -> None:
    """Names, gas and failures are shown, and the axis begins at 0, or at 1 if it is logarithmic."""
    frame = synthetic_run.observations()
    frame = frame[frame["source"] == "simulate@now"]
    ax = gas_by_version(frame)
    assert (ax.get_title(), ax.get_xlabel()) == ("Gas at ledger version 4,999", "model gas (gas units)")
    assert [name.get_text() for name in ax.get_yticklabels()] == ["transfer 100", "register a taken name"]
    assert [text.get_text() for text in artists(ax, "gas")] == ["998", "93 · failed"]
    assert [mark.get_marker() for mark in artists(ax, "gas-point")] == ["o", "x"]
    assert ax.get_xlim()[0] == 0
    wide = gas_by_version(frame.assign(gas_used=[1, 5_000]))
    assert (wide.get_xscale(), wide.get_xlabel()) == ("log", "model gas (gas units), logarithmic")
    assert 0.5 < wide.get_xlim()[0] < 1  # the mark at 1 is beside the axis


def test_given_axes_are_drawn_on_and_nothing_else_is_made() -> None:
    """A figure of the caller's is used, no other is left open, and global settings stay."""
    settings, before = dict(mpl.rcParams), plt.get_fignums()
    axes = Figure().subplots()
    assert gas_by_version(synthetic_run.observations(), steps=synthetic_run.steps(), ax=axes) is axes
    assert plt.get_fignums() == before
    assert dict(mpl.rcParams) == settings


def test_hostile_labels_break_nothing() -> None:
    """Saving as SVG and PNG warns of nothing, and no label is markup or mathtext."""
    observations = synthetic_run.observations(rename=HOSTILE)
    calls = list(observations["label"].unique())
    ax = gas_by_version(observations, steps=synthetic_run.steps(rename=HOSTILE), calls=calls)
    with mpl.rc_context({"svg.fonttype": "none"}):
        svg = io.StringIO()
        ax.figure.savefig(svg, format="svg")
    ax.figure.savefig(io.BytesIO(), format="png")
    assert "<script" not in svg.getvalue()
    assert "<img" not in svg.getvalue()
    assert "&lt;script&gt;" in svg.getvalue()
    assert "$x^2$" in svg.getvalue()
    drawn = drawn_texts(ax)
    assert all(any(literal(label, 44) in text for text in drawn) for label in HOSTILE.values())


def test_nothing_but_failures_is_still_a_figure() -> None:
    """The figure has no scale, and a text says so."""
    frame = synthetic_run.observations()
    frame = frame[(frame["label"] == "order book depth") & frame["gas_used"].isna()]
    ax = gas_by_version(frame)
    ax.figure.savefig(io.BytesIO(), format="png")
    assert (list(ax.get_yticks()), [text.get_text() for text in ax.texts]) == ([], ["no call returned gas"])


def test_versions_of_a_real_chain_are_written_in_full() -> None:
    """Ten-digit versions keep their digits on the axis."""
    frame = synthetic_run.observations()
    far = frame.assign(ledger_version=frame["ledger_version"] + pd.Series(3_456_789_000, index=frame.index))
    ax = gas_by_version(far.astype({"ledger_version": "uint64[pyarrow]"}))
    ax.figure.canvas.draw()
    assert "3,456,790,000" in {label.get_text() for label in ax.get_xticklabels()}


def test_several_nodes_are_several_lines() -> None:
    """Readings of two nodes are never joined into one line."""
    frame = synthetic_run.observations()
    both = pd.concat([frame, frame.assign(node="https://other.example/v1")], ignore_index=True)
    found = series_of(both, ["chain id"])
    assert [series.node for series in found] == ["embedded", "https://other.example/v1"]


def test_an_unknown_call_is_refused_with_those_there_are() -> None:
    """A typo in `calls` names the calls there are."""
    with pytest.raises(InputError, match=r"'vault totl' is not the label .*: 'chain id'"):
        gas_by_version(synthetic_run.observations(), calls=["vault totl"])


# the timeline under the series, and the axis of dates ------------------------------------------------------------------

CHANGES = [
    (synthetic_run.UPGRADE, "code", True),
    (synthetic_run.TENFOLD, "schedule", True),
    (synthetic_run.TENFOLD, "config", True),
    (4_000, "schedule", False),
    (9_000, "code", True),
]


def timeline(rows=CHANGES) -> pd.DataFrame:
    """A timeline of these changes; its versions come every 10 minutes."""
    columns = {
        "ledger_version": [version for version, _, _ in rows],
        "version_before": [version - (1 if exact else 500) for version, _, exact in rows],
        "exact": [exact for _, _, exact in rows],
        "time": [synthetic_run.EPOCH + pd.Timedelta(minutes=10 * version) for version, _, _ in rows],
        "kind": [kind for _, kind, _ in rows],
    }
    return pd.DataFrame(columns)


def test_a_timeline_is_marked_by_kind_below_the_series() -> None:
    """Each change has the mark of its cause at its version and a line up; what lies outside is left out."""
    ax = gas_by_version(synthetic_run.observations(), timeline=timeline())
    places = {kind: [list(mark.get_xdata()) for mark in artists(ax, f"timeline-{kind}")] for kind in ("code", "config")}
    assert places == {"code": [[synthetic_run.UPGRADE]], "config": [[synthetic_run.TENFOLD]]}
    assert sorted(line.get_xdata()[0] for line in artists(ax, "timeline-line")) == [
        synthetic_run.TENFOLD,
        synthetic_run.TENFOLD,
        synthetic_run.UPGRADE,
    ]
    told = {text.get_text() for text in ax.get_legend().get_texts()}
    assert {"gas schedule", "code", "configuration"} <= told


def test_marks_of_a_timeline_do_not_hide_each_other_or_the_gas() -> None:
    """Changes of one version are in rows, and the strip is below every reading."""
    ax = gas_by_version(synthetic_run.observations(), timeline=timeline())
    at = [*artists(ax, "timeline-config"), *artists(ax, "timeline-schedule"), *artists(ax, "timeline-code")]
    places = [tuple(ax.get_xaxis_transform().transform(mark.get_xydata()[0]).round(3)) for mark in at]
    assert len(set(places)) == len(places) == 4
    lowest = min(line.get_ydata()[~np.isnan(line.get_ydata())].min() for line in artists(ax, "gas-line"))
    assert max(y for _, y in places) < ax.transData.transform((0, lowest))[1]


def test_marks_of_a_timeline_fit_their_rows_in_a_small_figure() -> None:
    """Marks of two changes at one version do not overlap."""
    ax = gas_by_version(synthetic_run.observations(), timeline=timeline(), figsize=(4, 3))
    ax.figure.draw_without_rendering()
    at = [*artists(ax, "timeline-config"), *artists(ax, "timeline-schedule")]
    rows = sorted({mark.get_ydata()[0] for mark in at if mark.get_xdata()[0] == synthetic_run.TENFOLD})
    apart = (rows[1] - rows[0]) * ax.get_window_extent().height * 72 / ax.figure.dpi
    assert apart >= max(mark.get_markersize() for mark in at)


def test_an_interval_of_a_timeline_is_a_band_with_a_hollow_mark() -> None:
    """No version is claimed."""
    ax = gas_by_version(synthetic_run.observations(), timeline=timeline())
    (band,) = artists(ax, "timeline-interval")
    assert (band.get_x(), band.get_x() + band.get_width()) == (3_500, 4_000)
    hollow = [mark for mark in artists(ax, "timeline-schedule") if mark.get_markerfacecolor() == "#ffffff"]
    assert [list(mark.get_xdata()) for mark in hollow] == [[3_750]]


def test_a_frame_that_is_not_a_timeline_is_refused() -> None:
    """The missing column is named, and where the frame comes from."""
    with pytest.raises(InputError, match="timeline marks need the column 'kind'"):
        gas_by_version(synthetic_run.observations(), timeline=timeline().drop(columns="kind"))
    observations = synthetic_run.observations()
    for name in ("steps", "levels"):
        with pytest.raises(InputError, match=rf"expected run\.{name}, got run\.observations"):
            gas_by_version(observations, **{name: observations})
    steps = frame_of_rows(STEPS, [])
    with pytest.raises(InputError, match=r"got run\.steps$"):
        gas_by_version(steps)
    with pytest.raises(InputError, match=r"expected run\.levels, got run\.steps$"):
        gas_by_version(observations, levels=steps)


def shown_dates(ax: Axes) -> list[str]:
    """The texts of the ticks in the figure."""
    ax.figure.draw_without_rendering()
    return [label.get_text() for label in ax.get_xticklabels() if label.get_text()]


def test_an_axis_of_time_has_dates_and_the_places_of_the_versions() -> None:
    """The label says what is known; a version is drawn at its time, wherever its neighbours are."""
    frame = synthetic_run.observations().assign(ledger_timestamp=None)
    known = timeline([(100, "code", True), (4_900, "code", True)])
    known["time"] = [synthetic_run.EPOCH, synthetic_run.EPOCH + pd.Timedelta(days=100)]
    middle = timeline([(2_500, "code", True)]).assign(time=synthetic_run.EPOCH + pd.Timedelta(days=90))
    ax = gas_by_version(frame, timeline=pd.concat([known, middle]), x="time")
    assert ax.get_title() == "Gas by ledger time"
    assert ax.get_xlabel() == "ledger time (UTC, interpolated)"
    left, between, right = (ax.transData.transform((version, 10))[0] for version in (100, 2_500, 4_900))
    assert (between - left) / (right - left) == pytest.approx(0.9, abs=0.01)
    assert {"Jun", "Jul", "Aug"} <= set(shown_dates(ax))


def test_names_that_start_with_an_underscore_are_in_the_legend() -> None:
    """matplotlib leaves such labels out."""
    rows = synthetic_run.observations()
    kept = rows["label"].unique()[:2]
    rows = rows[rows["label"].isin(kept)].replace({"label": {kept[0]: "_size"}})
    _, ax = plt.subplots(figsize=(4, 4))
    names = [text.get_text().strip() for text in gas_by_version(rows, ax=ax).get_legend().get_texts()]
    assert "_size" in names


@pytest.mark.parametrize("x", ["time", "both"])
def test_dates_are_utc_whatever_the_settings_are(x: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of matplotlib and of the process."""
    known = timeline([(100, "code", True), (4_900, "code", True)])
    frame = synthetic_run.observations().assign(ledger_timestamp=None)
    frame = frame[frame["label"] == frame["label"].iloc[0]]
    texts = []
    for zone, days in (
        ("UTC", 100),
        ("Asia/Tokyo", 100),
        ("America/New_York", 3),
        ("UTC", 3),
        ("Asia/Tokyo", 0.1),
        ("UTC", 0.1),
    ):
        known["time"] = [synthetic_run.EPOCH, synthetic_run.EPOCH + pd.Timedelta(days=days)]
        monkeypatch.setenv("TZ", zone)
        with plt.rc_context({"timezone": zone}):
            ax = gas_by_version(frame, timeline=known, x=x)
            texts.append((shown_dates(ax), ax.xaxis.get_offset_text().get_text()))
    assert texts[0] == texts[1]
    assert texts[2] == texts[3]
    assert texts[4] == texts[5]


def test_times_of_the_observations_need_no_others() -> None:
    """Committed transactions have their own; those of 1970, of a test ledger, are drawn too."""
    versions = range(0, 600, 60)
    frame = pd.DataFrame(
        {
            "label": "bump",
            "source": "committed",
            "ledger_version": list(versions),
            "gas_used": 5,
            "ledger_timestamp": [pd.Timestamp("1970-01-01", tz="UTC") + pd.Timedelta(seconds=v) for v in versions],
        }
    )
    ax = gas_by_version(frame, x="time")
    assert ax.get_xlabel() == "ledger time (UTC)"
    assert any(":" in text for text in shown_dates(ax))


def test_without_times_an_axis_of_time_is_refused_with_the_way() -> None:
    """One known time is not an axis."""
    frame = synthetic_run.observations().assign(ledger_timestamp=None)
    with pytest.raises(InputError, match=r"at least two versions.*pass timeline="):
        gas_by_version(frame, x="time")
    with pytest.raises(InputError, match="times of at least two versions"):
        gas_by_version(frame, timeline=timeline()[:1], x="time")
    with pytest.raises(InputError, match='expected "version", "time" or "both", got \'date\''):
        gas_by_version(frame, x="date")


def test_the_ends_of_a_timeline_are_known_times() -> None:
    """A timeline without changes is enough for dates."""
    empty = timeline([])
    empty.attrs = {"first": 0, "last": 5_000, "first_time": "2026-05-01T00:00:00+00:00", "last_time": None}
    frame = synthetic_run.observations().assign(ledger_timestamp=None)
    with pytest.raises(InputError, match="at least two versions"):
        gas_by_version(frame, timeline=empty, x="time")
    empty.attrs["last_time"] = "2026-08-01T00:00:00+00:00"
    assert {"Jun", "Jul"} <= set(shown_dates(gas_by_version(frame, timeline=empty, x="time")))


def test_the_kind_of_transactions_of_a_single_call_is_not_cut() -> None:
    """A level is named by its whole kind; beside other calls also by its call."""
    kind = "failing, abort code 0x80001 (already exists), no new slots"
    level = SimpleNamespace(stratum=kind, series=SimpleNamespace(name="register", node=""))
    assert _level_name(level, named=False) == kind.replace(", ", "\n", 1)
    assert _level_name(level, named=True) == f"register\n{kind}"


def test_a_known_step_between_readings_of_a_plan_is_drawn() -> None:
    """From the gas before it to the gas after it, although the plan has neither version."""
    frame, steps = synthetic_run.observations(), synthetic_run.steps()
    planned = frame[frame["ledger_version"].isin([2_000, 2_300, 2_700, 3_000])]
    alone = gas_by_version(planned, calls=["APT supply"])
    ax = gas_by_version(planned, calls=["APT supply"], steps=steps)
    step = steps[(steps["label"] == "APT supply") & (steps["version_after"] == 2_503)].iloc[0]
    (line,) = artists(ax, "gas-line")
    points = [tuple(point) for point in line.get_xydata()]
    assert (2_503, step["gas_before"]) in points
    assert (2_503, step["gas_after"]) in points
    assert np.isnan(artists(alone, "gas-line")[0].get_ydata()).any()
    assert not np.isnan(line.get_ydata()).any()


def test_every_known_step_of_a_drift_is_in_the_line_but_a_stretch_has_no_marks() -> None:
    """Whatever the plan has of them; a stretch of one step, which has its own row in `gas_change`, has its own mark."""
    label, others = "names registered", {"source": "view@version", "exact": True, "cause": "state"}
    ends = [(2_100, 40, 44), (2_200, 44, 48), (2_300, 48, 52), (2_400, 52, 56), (2_800, 300, 306)]
    rows = [
        {"label": label, "version_before": at - 1, "version_after": at, "gas_before": low, "gas_after": high} | others
        for at, low, high in ends
    ]
    rows.append(rows[-1] | {"version_before": 2_599, "version_after": 2_600, "gas_before": 56, "gas_after": 300})
    rows[-1]["cause"] = "schedule"
    frame = synthetic_run.observations()
    planned = frame[frame["ledger_version"].isin([2_000, 3_000])]
    ax = gas_by_version(planned, calls=[label], steps=synthetic_run.frame(rows, synthetic_run.STEP_TYPES))
    (line,) = artists(ax, "gas-line")
    points = {tuple(point) for point in line.get_xydata()}
    assert points >= {(at, gas) for at, *both in ends for gas in both}
    assert [float(x) for mark in artists(ax, "change-state") for x in mark.get_xdata()] == [2_800]


def test_failed_executions_in_a_line_are_crosses_at_the_ends_of_each_stretch() -> None:
    """A call that fails at every version does not look like one that works."""
    gas = [7, 7, 7, 70, 70, 9]
    frame = pd.DataFrame({"label": "taken", "ledger_version": [0, 50, 99, 100, 200, 300], "gas_used": gas})
    ax = gas_by_version(frame.assign(source="simulate@version", success=[False] * 5 + [True]))
    marks = {line.get_marker(): line.get_xdata().tolist() for line in artists(ax, "gas-point")}
    assert marks == {"x": [0, 99, 100, 200], "o": [300]}


def test_the_name_of_a_stratum_leads_to_its_most_frequent_way() -> None:
    """Of the ways at 130, 76 and 64 gas, the one with two transactions is not labelled."""
    made = synthetic_run.observations()
    row = made[made["source"] == "committed"].iloc[[0]]
    frame = pd.concat([row.assign(label="call", ledger_version=at) for at in (0, 300)], ignore_index=True)
    ways = [("call", "one", 0, 299, 130.0, 130.0, 32), ("call", "one", 5, 300, 76.0, 76.0, 30)]
    ways += [("call", "one", 200, 250, 64.0, 64.0, 2), ("call", "two", 0, 300, 9.0, 9.0, 5)]
    ax = gas_by_version(frame, levels=pd.DataFrame(ways, columns=list(LEVEL_COLUMNS)), figsize=(4, 3))
    ax.figure.draw_without_rendering()
    labels = artists(ax, "end-label")
    assert [label.xy[1] for label in labels] == [130, 9]
    assert all(label.arrow_patch is not None for label in labels)


def test_a_mark_of_the_timeline_without_a_caption_is_in_the_legend() -> None:
    """The caption of one change of the gas schedule does not name the other."""
    frame, steps = synthetic_run.observations(), synthetic_run.steps()
    calls = [*steps.loc[steps["cause"] == "schedule", "label"].unique()[:1]]
    rows = [(at - 1, at, "schedule", True) for at in (synthetic_run.TENFOLD, 1_000)]
    timeline = pd.DataFrame(rows, columns=["version_before", "ledger_version", "kind", "exact"])
    steps = steps[steps["label"].isin(calls) & (steps["version_after"] == synthetic_run.TENFOLD)]
    both, one = (gas_by_version(frame, steps=steps, timeline=those, calls=calls) for those in (timeline, timeline[:1]))
    assert Cause.SCHEDULE.label in [text.get_text() for text in both.get_legend().get_texts()]
    assert one.get_legend() is None


def test_no_line_crosses_the_caption_above_it() -> None:
    """The lines of the timeline end below it, like the lines of steps."""
    frame, steps = synthetic_run.observations(), synthetic_run.steps()
    rows = [(at - 1, at, "schedule", True) for at in (synthetic_run.TENFOLD,)]
    timeline = pd.DataFrame(rows, columns=["version_before", "ledger_version", "kind", "exact"])
    ax = gas_by_version(frame, steps=steps, timeline=timeline)
    ax.figure.draw_without_rendering()
    captions = [text.get_window_extent() for text in artists(ax, "caption") if text.get_visible()]
    lines = [line for gid in ("timeline-line", "caption-line") for line in artists(ax, gid) if line.get_visible()]
    tops = [line.get_transform().transform(line.get_xydata())[-1] for line in lines]
    assert any(box.x0 < x < box.x1 for box in captions for x, _ in tops)
    assert all(y <= box.y0 + 1 for box in captions for x, y in tops if box.x0 < x < box.x1)


def test_the_legend_of_levels_in_small_axes_leaves_room_for_them() -> None:
    """A legend with every stratum took most of the height, and had no room for causes."""
    calls = {
        "vault share price": "0xfa17::vault::share_price",
        "desk quote": toolkit.ViewFunction("0xde5c::desk::quote", [10]),
        "order book depth": "0xb00c::order_book::depth",
        "deposits": {"committed": "0xfa17::vault::deposit", "versions": "3300:3700"},
        "registrations": {"committed": "0xcafe::registry::register", "versions": "3300:3700"},
    }
    run = toolkit.Study(calls=calls, versions=toolkit.FindSteps("0:-1")).run(progress=False)
    about = {"steps": run.steps, "levels": run.levels, "timeline": run.timeline}
    ax = gas_by_version(run.observations, **about, x="both", figsize=(4, 3))
    ax.figure.draw_without_rendering()
    legend = ax.get_legend()
    named = {text.get_text() for text in legend.get_texts()}
    assert {"vault share price", "desk quote", "order book depth", "deposits", "registrations"} <= named
    assert not any("succeeding" in name for name in named)
    drawn = {
        Cause.of(mark.get_gid().removeprefix("change-")).label for mark in ax.lines if "change-" in str(mark.get_gid())
    }
    captioned = {text.get_text().split(" ", 1)[1] for text in artists(ax, "caption") if text.get_visible()}
    assert drawn <= named | captioned
    texts = [text.get_window_extent() for text in legend.get_texts()]
    assert not any(one.overlaps(other) for n, one in enumerate(texts) for other in texts[:n])
    assert legend.get_window_extent().x1 <= ax.figure.bbox.x1
    assert legend.get_window_extent().height < 0.5 * ax.get_window_extent().height
