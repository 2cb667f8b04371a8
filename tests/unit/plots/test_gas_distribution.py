"""Bars of the distribution count readings, and keep failures and sources apart."""

from __future__ import annotations

import pytest

from tests.unit.plots import synthetic_run
from tests.unit.plots.synthetic_hostile import HOSTILE, drawn_texts, literal
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


def test_the_legend_has_the_colours_of_the_bars() -> None:
    """Without failures nothing needs a legend; with failures its two patches are those of a row."""
    frame = synthetic_run.observations()
    ax = gas_distribution(frame)
    bars = [ax.findobj(lambda artist, gid=gid: artist.get_gid() == gid)[0] for gid in ("succeeded", "failed")]
    assert [patch.get_facecolor() for patch in ax.get_legend().get_patches()] == [bar.get_facecolor() for bar in bars]
    good = frame[(frame["source"] == "committed") & frame["success"].astype("boolean").fillna(value=False)]
    assert gas_distribution(good).get_legend() is None


def test_the_median_is_marked_and_said() -> None:
    """The tick stands at the median of the readings."""
    frame = synthetic_run.observations()
    median = float(frame[frame["source"] == "committed"]["gas_used"].astype(float).median())
    ax = gas_distribution(frame)
    (line,) = ax.findobj(lambda artist: artist.get_gid() == "median")
    assert set(line.get_xdata()) == {median}


def test_one_source_is_drawn_at_a_time() -> None:
    """Views and simulations do not slip into the picture of committed transactions."""
    frame = synthetic_run.observations()
    names = [label.get_text() for label in gas_distribution(frame).get_yticklabels()]
    assert names == ["registrations\n52 readings"]
    views = [label.get_text() for label in gas_distribution(frame, source="view@version").get_yticklabels()]
    assert len(views) == len(synthetic_run.VIEWS)


def test_no_readings_of_a_source_are_said() -> None:
    """An empty picture says what it has nothing of."""
    frame = synthetic_run.observations()
    ax = gas_distribution(frame[frame["source"] == "committed"], source="simulate@now")
    assert [text.get_text() for text in ax.texts] == ["no readings of simulate@now"]


def test_one_reading_and_hostile_labels_are_drawn() -> None:
    """A single value has a bar of its own; labels are shown literally."""
    frame = synthetic_run.observations(rename=HOSTILE)
    ax = gas_distribution(frame, source="simulate@now")
    assert max(heights(ax, "succeeded")) == pytest.approx(HEIGHT)
    drawn = drawn_texts(gas_distribution(frame, source="view@version"))
    assert {literal(HOSTILE[name], 30) for name in synthetic_run.VIEWS} <= set(drawn)


def test_a_missing_column_is_named() -> None:
    """A frame without gas is refused by the column it lacks."""
    with pytest.raises(InputError, match="'gas_used'"):
        gas_distribution(synthetic_run.observations().drop(columns="gas_used"))
