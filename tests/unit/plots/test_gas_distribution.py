"""Bars of the distribution count readings, and keep failures and sources apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from tests.unit.plots import synthetic_run
from toolkit.errors import InputError
from toolkit.plots import gas_distribution
from toolkit.plots._gas_by_call import HEIGHT

pytestmark = pytest.mark.usefixtures("figures")


def heights(ax: object, gid: str) -> list[float]:
    """Heights of the bars of one kind."""
    found = ax.findobj(lambda artist: artist.get_gid() == gid and hasattr(artist, "get_height"))
    return [-bar.get_height() for bar in found]


def test_bars_count_succeeded_and_failed_executions() -> None:
    """52 committed transactions, a fifth of them failed, are all in the bars."""
    frame = synthetic_run.observations()
    committed = frame[frame["source"] == "committed"]
    ax = gas_distribution(frame)
    good, failed = heights(ax, "succeeded"), heights(ax, "failed")
    tallest = max(a + b for a, b in zip(good, failed, strict=True))
    assert tallest == pytest.approx(HEIGHT)
    share = sum(failed) / (sum(good) + sum(failed))
    assert share == pytest.approx(float((~committed["success"].astype(bool)).mean()))


def test_small_figures_have_a_row_for_each_schedule_of_three_calls() -> None:
    """Without room for all, the title says how many calls are drawn."""
    every = synthetic_run.observations()
    committed = every[every["source"] == "committed"]
    names = ["0xfa17::vault::deposit", "0xcafe::registry::register", "0x1::aptos_account::transfer"]
    middle = int(committed["ledger_version"].median())
    about = {"timeline": pd.DataFrame({"ledger_version": [middle], "kind": ["schedule"]}), "figsize": (4, 3)}
    ax = gas_distribution(pd.concat([committed.assign(label=name) for name in names]), **about)
    assert len(ax.get_yticklabels()) == 6
    ax = gas_distribution(pd.concat([committed.assign(label=name) for name in [*names, "a::b"]]), **about)
    assert "of 4 calls" in ax.get_title()


def test_the_legend_has_the_colours_of_the_bars() -> None:
    """Without failures nothing needs a legend; with failures its two patches are those of a row."""
    frame = synthetic_run.observations()
    ax = gas_distribution(frame)
    bars = [ax.findobj(lambda artist, gid=gid: artist.get_gid() == gid)[0] for gid in ("succeeded", "failed")]
    assert [patch.get_facecolor() for patch in ax.get_legend().get_patches()] == [bar.get_facecolor() for bar in bars]
    good = frame[(frame["source"] == "committed") & frame["success"].astype("boolean").fillna(value=False)]
    assert gas_distribution(good).get_legend() is None


def test_the_legend_of_several_calls_has_no_colour_of_one() -> None:
    """Grey stands for each call's colour; without room for its number, the median is in the legend."""
    frame = synthetic_run.observations()
    two = pd.concat([frame, frame.assign(label="others")])
    ax = gas_distribution(two)
    bars = {bar.get_facecolor() for bar in ax.findobj(lambda one: one.get_gid() in {"succeeded", "failed"})}
    assert not {patch.get_facecolor() for patch in ax.get_legend().get_patches()} & bars
    told = [
        {text.get_text() for text in one.get_legend().get_texts()}
        for one in (ax, gas_distribution(two, figsize=(4, 3)))
    ]
    assert told == [{"succeeded", "execution failed"}, {"median", "succeeded", "execution failed"}]


def test_the_median_is_marked_and_said() -> None:
    """It is that of pandas, also of an even number of transactions."""
    frame = synthetic_run.observations()
    paid = frame[frame["source"] == "committed"]["gas_used"].astype(float)
    assert sorted(paid)[25] != sorted(paid)[26]
    (line,) = gas_distribution(frame).findobj(lambda artist: artist.get_gid() == "median")
    assert set(line.get_xdata()) == {paid.median()}


def test_readings_of_a_view_stand_for_versions() -> None:
    """Dense readings at a step weigh no more: of versions 0 to 99, gas is 4 in 90, also if one reading has none."""
    rows = [(0, 4), (88, 4), (89, 4), (90, 30), (91, 30), (92, 30), (95, None), (96, 40), (99, 30)]
    frame = pd.DataFrame(rows, columns=["ledger_version", "gas_used"]).assign(label="a", source="view@version")
    ax = gas_distribution(frame)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a\n8 readings, median 4"]
    assert [text.get_text() for text in ax.texts if text.get_gid() == "share"] == ["91 %"]  # 90 of 99
    assert sum(heights(ax, "succeeded")) / HEIGHT == pytest.approx(99 / 90)
    alike = frame.head(2).assign(ledger_version=[7, 8], gas_used=[4, 9])
    assert gas_distribution(alike).get_yticklabels()[0].get_text() == "a\n2 readings, median 6.5"
    change = pd.DataFrame({"ledger_version": [50], "kind": ["schedule"]})
    ax = gas_distribution(frame.iloc[[0, 3]].assign(gas_used=[4, 30]), timeline=change)
    assert [text.get_text() for text in ax.texts if text.get_gid() == "share"] == ["100 %", "100 %"]


def test_the_share_of_the_tallest_bar_is_beside_it() -> None:
    """Three of four transactions have the same gas."""
    frame = synthetic_run.observations()
    four = frame[frame["source"] == "committed"].head(4)
    ax = gas_distribution(four.assign(gas_used=[50, 50, 50, 90], success=True))
    assert [text.get_text() for text in ax.texts if text.get_gid() == "share"] == ["75 %"]


def test_a_change_of_the_gas_schedule_begins_a_row() -> None:
    """Its median is that of the readings from the change on; other changes, and those outside, begin none."""
    frame = synthetic_run.observations()
    rows = [(synthetic_run.TENFOLD, "schedule"), (synthetic_run.UPGRADE, "code"), (9_000, "schedule")]
    ax = gas_distribution(frame, timeline=pd.DataFrame(rows, columns=["ledger_version", "kind"]))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [
        "registrations\n26 transactions, median 63, before 2,503",
        "registrations\n26 transactions, median 600, from 2,503",
    ]
    late = frame[(frame["source"] == "committed") & (frame["ledger_version"] >= synthetic_run.TENFOLD)]
    medians = [line.get_xdata()[0] for line in ax.findobj(lambda artist: artist.get_gid() == "median")]
    assert medians[1] == late["gas_used"].astype(float).median()
    with pytest.raises(InputError, match="need the column 'kind'"):
        gas_distribution(frame, timeline=frame)


def test_one_source_is_drawn_at_a_time() -> None:
    """Views and simulations do not slip into the picture of committed transactions."""
    frame = synthetic_run.observations()
    names = [label.get_text() for label in gas_distribution(frame).get_yticklabels()]
    assert names == ["registrations\n52 transactions, median 273"]
    views = [label.get_text() for label in gas_distribution(frame, source="view@version").get_yticklabels()]
    assert len(views) == len(synthetic_run.VIEWS)


def test_one_reading_is_drawn() -> None:
    """A single value has a bar of its own."""
    ax = gas_distribution(synthetic_run.observations(), source="simulate@now")
    assert max(heights(ax, "succeeded")) == pytest.approx(HEIGHT)


@pytest.mark.parametrize("gas", [[5, 5, 8, 300], [60, 72, 75, 75]])
def test_bars_are_at_their_values(gas: list[int]) -> None:
    """The middle of a bar of equal values is that value, on both scales, and the axis does not begin below 1 or 0."""
    frame = pd.DataFrame({"label": "call", "source": "committed", "ledger_version": range(4), "gas_used": gas})
    ax = gas_distribution(frame)
    scale = ax.xaxis.get_transform()
    bars = [bar for bar in ax.patches if bar.get_height()]
    left, width = (np.array([getattr(bar, f"get_{what}")() for bar in bars]) for what in ("x", "width"))
    middle = scale.inverted().transform((scale.transform(left) + scale.transform(left + width)) / 2)
    assert sorted(middle) == pytest.approx(sorted(set(gas)))
    low = gas_distribution(frame.assign(gas_used=[1, 2, 3, 400]))
    assert low.get_xlim()[0] >= 1
    assert gas_distribution(frame.assign(gas_used=[0, 1, 2, 3])).get_xlim()[0] >= 0


@pytest.mark.parametrize(("source", "kept"), [("view@version", "rare"), ("committed", "often")])
def test_calls_are_drawn_whole_or_not_at_all(source: str, kept: str) -> None:
    """Views are chosen by how much they vary, because their number of reads is arbitrary; other calls by frequency."""
    rows = [("often", at, 5) for at in range(100)] + [("rare", at, 4 if at < 50 else 36) for at in range(0, 100, 20)]
    frame = pd.DataFrame(rows, columns=["label", "ledger_version", "gas_used"]).assign(source=source, success=True)
    timeline = pd.DataFrame({"ledger_version": [50], "kind": ["schedule"]})
    ax = gas_distribution(frame, timeline=timeline, figsize=(7, 1.5))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert [name.split()[0] for name in names] == [kept] * 2


def test_failed_executions_can_be_seen_in_the_dark() -> None:
    """On black, their bars have a contrast of 2.2 or more, in each of the first colours, and are not those of others."""
    calls = [f"call {n}" for n in range(7)]
    rows = [(name, at, 5, bool(at)) for name in calls for at in range(2)]
    frame = pd.DataFrame(rows, columns=["label", "ledger_version", "gas_used", "success"]).assign(source="committed")
    with plt.style.context("dark_background"):
        ax = gas_distribution(frame)
    shown = {bar.get_facecolor()[:3] for bar in ax.findobj(lambda artist: artist.get_gid() == "failed")}
    assert len(shown) == 7
    linear = [
        np.where(np.array(one) <= 0.04045, np.array(one) / 12.92, ((np.array(one) + 0.055) / 1.055) ** 2.4)
        for one in shown
    ]
    assert min(np.dot(one, (0.2126, 0.7152, 0.0722)) / 0.05 + 1 for one in linear) > 2.2
