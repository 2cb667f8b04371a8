"""Figures do what a user of matplotlib expects: titles, legends, scales, colours, styles, and places beside others."""

from __future__ import annotations

import pickle
from inspect import signature
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import rgb_to_hsv, to_hex, to_rgb

import toolkit
from tests.unit.plots import synthetic_run
from tests.unit.plots.test_gas_by_version import artists, timeline
from tests.unit.plots.test_ledger_changes import changes, schedule
from toolkit import plots
from toolkit.embedded import Ledger
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("figures")

OBSERVATIONS, STEPS = synthetic_run.observations(), synthetic_run.steps()
PROFILE = Ledger.with_history(versions=200, cache=True).profile(toolkit.ViewFunction("0xb00c::order_book::depth"))
FIGURES: dict[str, Callable[..., Any]] = {
    "version": lambda **more: plots.gas_by_version(OBSERVATIONS, steps=STEPS, **more),
    "breakdown": lambda **more: plots.gas_breakdown(OBSERVATIONS, **more),
    "distribution": lambda **more: plots.gas_distribution(OBSERVATIONS, **more),
    "heatmap": lambda **more: plots.gas_heatmap(OBSERVATIONS, **more),
    "change": lambda **more: plots.gas_change(STEPS, **more),
    "function": lambda **more: plots.gas_by_function(PROFILE, **more),
    "schedule": lambda **more: plots.schedule_changes(
        schedule([("instr.add", "changed", 2, 20), ("instr.mul", "changed", 5, 2)]), **more
    ),
    "state": lambda **more: plots.state_changes(changes([("write_module", None, "0xcafe::registry", None)]), **more),
}


@pytest.fixture(params=FIGURES)
def draw(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Each figure."""
    return FIGURES[request.param]


def test_a_figure_has_one_title_and_its_size(draw: Callable[..., Any]) -> None:
    """A title replaces the default one, with the option or `set_title`; a size is of new figures alone."""
    ax = draw(figsize=(5, 4), title="mine", legend=False)
    assert (ax.get_title(), ax.get_legend()) == ("mine", None)
    assert tuple(ax.figure.get_size_inches()) == (5, 4)
    default = draw()
    default.set_title("another")
    assert {default.get_title(loc=place) for place in ("left", "center", "right")} == {"another", ""}
    with pytest.raises(InputError, match="figsize applies only to a new figure"):
        draw(ax=ax, figsize=(3, 3))


@pytest.mark.parametrize(
    ("option", "given"),
    [("ax", plt.Figure()), ("figsize", 4), ("figsize", (0, 3)), ("figsize", (4, "3")), ("colors", "nocolour")],
)
def test_a_wrong_place_size_or_colour_is_an_input_error(draw: Callable[..., Any], option: str, given: object) -> None:
    """Each figure names the option; none draws first."""
    with pytest.raises(InputError, match=f"^{option}: expected"):
        draw(**{option: given})


def test_calls_beyond_the_palette_are_grey_whatever_is_drawn() -> None:
    """No two calls have one colour but grey, and a smaller figure, which drops some, has the same."""
    rows = [(f"call {n}", v, 5 + (v > 50)) for n in range(14) for v in (0, 100)]
    frame = pd.DataFrame(rows, columns=["label", "ledger_version", "gas_used"]).assign(source="view@version")
    found = []
    for size in (None, (4, 3)):
        lines = artists(plots.gas_by_version(frame, figsize=size), "gas-point")
        found.append([to_hex(line.get_color()) for line in lines])
    assert found[0][-2:] == [to_hex("#8c959f")] * 2
    assert len({*found[0]}) == 13
    assert {*found[1]} <= {*found[0]}


def test_the_legend_of_a_user_has_every_entry(draw: Callable[..., Any]) -> None:
    """`Axes.legend` finds labelled artists, each name once; `colors` are those of its entries."""
    ax = draw()
    names = [text.get_text() for text in ax.legend().get_texts()]
    assert names
    assert len(names) == len(set(names))
    own = ax.get_legend()
    assert draw(legend=False).get_legend() is None
    assert own is ax.get_legend()


def test_the_style_of_the_user_applies(draw: Callable[..., Any]) -> None:
    """On a dark background no text is dark, whatever the figure; settings stay as they are."""
    with plt.style.context("dark_background"):
        settings = dict(mpl.rcParams)
        ax = draw()
        ax.figure.draw_without_rendering()
        assert dict(mpl.rcParams) == settings
        inside = {"part", "name"}  # on coloured bars and boxes
        texts = [text for text in ax.findobj(plt.Text) if text.get_text() and text.get_gid() not in inside]
        assert [text.get_text() for text in texts if sum(to_rgb(text.get_color())) < 1.5] == []


def test_a_call_has_one_hue_in_light_and_dark_figures() -> None:
    """In a dark style the colours are lighter, in the same order; those of another style are used as they are."""
    hues = []
    for style in ("default", "dark_background"):
        with plt.style.context(style):
            lines = artists(plots.gas_by_version(OBSERVATIONS), "gas-line")
            hues.append([rgb_to_hsv(to_rgb(line.get_color())) for line in lines if line.get_alpha() is None])
    light, dark = np.array(hues[0])[:5], np.array(hues[1])[:5]
    apart = np.abs(light[:, 0] - dark[:, 0])
    assert np.minimum(apart, 1 - apart).max() < 1 / 8
    assert not np.allclose(light, dark)
    with plt.style.context("ggplot"):
        own = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
        line, *_ = artists(plots.gas_by_version(OBSERVATIONS, calls=["vault total"]), "gas-line")
        assert line.get_color() in own


def test_figures_can_be_pickled() -> None:
    """Texts that are placed when a figure is drawn do not prevent it."""
    copy = pickle.loads(pickle.dumps(FIGURES["version"]().figure))  # noqa: S301
    copy.draw_without_rendering()


def test_colours_are_given_by_name_or_in_order() -> None:
    """A name may be that of the figure or the label; an unknown one is refused with those there are."""
    views = ["vault total", "APT supply"]
    for colors in (["k", "r"], {"vault total": "k", "APT supply": "r"}):
        lines = artists(plots.gas_by_version(OBSERVATIONS, calls=views, colors=colors), "gas-line")
        assert sorted(to_hex(line.get_color()) for line in lines) == ["#000000", "#ff0000"]
    bars = plots.gas_breakdown(OBSERVATIONS, parts=["execution", "io"], colors={"io": "k"}).containers
    assert [to_hex(bar[0].get_facecolor()) for bar in bars] == ["#0072b2", "#000000"]
    with pytest.raises(InputError, match=r"colors: 'gas' .*expected 'execution', 'io',"):
        plots.gas_breakdown(OBSERVATIONS, colors={"gas": "k"})
    with pytest.raises(InputError, match=r"parts: .*names from execution, io, storage"):
        plots.gas_breakdown(OBSERVATIONS, parts="io")


def test_names_at_the_ends_follow_their_lines() -> None:
    """After another colour, scale and limit they are where the line ends, in its colour."""
    ax = plots.gas_by_version(OBSERVATIONS, calls=["vault total", "APT supply"])
    line = artists(ax, "gas-line")[0]
    line.set_color("#123456")
    ax.set_yscale("log")
    ax.figure.draw_without_rendering()
    assert ax.get_ylim()[0] > 0
    ends = {text.get_text(): text for text in artists(ax, "end-label")}
    end = ends[line.get_label()]
    assert to_hex(end.arrow_patch.get_edgecolor()) == "#123456"
    assert end.xy[1] == line.get_ydata()[-1]


def test_beside_other_axes_and_in_a_column_the_legend_names_the_lines() -> None:
    """Nothing of a figure is drawn over its neighbours."""
    views = ["vault total", "APT supply"]
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    narrow = plt.figure(figsize=(3.3, 2.4), layout="constrained").subplots()
    for ax in (axes[0], narrow):
        plots.gas_by_version(OBSERVATIONS, steps=STEPS, calls=views, ax=ax)
        ax.figure.draw_without_rendering()
        assert artists(ax, "end-label") == []
        assert set(views) <= {text.get_text() for text in ax.get_legend().get_texts()}
    assert axes[0].get_tightbbox().x1 < axes[1].get_window_extent().x0
    assert narrow.get_window_extent().height > 0.3 * narrow.figure.bbox.height
    assert figure.axes == list(axes)


def test_rows_in_a_grid_are_named_and_fit() -> None:
    """In a grid of four, no figure is drawn over its neighbours, the axes stay wide, and no two texts overlap."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for ax, name in zip(axes.flat, ("breakdown", "change", "state", "distribution"), strict=True):
        FIGURES[name](ax=ax)
    figure.draw_without_rendering()
    for ax in axes.flat:
        box = ax.get_window_extent()
        assert box.width > 0.3 * figure.bbox.width
        rows = [text for text in (*ax.get_yticklabels(), *ax.texts) if text.get_gid() != "part" and text.get_text()]
        places = [text.get_window_extent() for text in rows]
        assert not any(a.overlaps(b) for n, a in enumerate(places) for b in places[n + 1 :])
    cells = [ax.get_tightbbox() for ax in axes.flat]
    assert not any(a.overlaps(b) for n, a in enumerate(cells) for b in cells[n + 1 :])


def test_twelve_rows_are_named_in_a_small_figure() -> None:
    """On a quarter of a slide, every row has a name; names beside low rows are cut in the middle."""
    labels = [f"balance of account {n}" for n in range(12)]
    found = pd.DataFrame({"label": labels, "gas_before": 3, "gas_after": range(4, 16)})
    ax = plots.gas_change(found, figsize=(4, 3))
    ax.figure.draw_without_rendering()
    names = [name.get_text() for name in ax.get_yticklabels()]
    assert [name[-2:].strip() for name in names] == [str(n) for n in range(12)]
    boxes = [name.get_window_extent() for name in ax.get_yticklabels()]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[n + 1 :])


def test_rows_are_fewer_if_their_names_would_look_alike() -> None:
    """In a small figure, names that differ only in the middle are above their rows."""
    labels = [f"a call of a long name with {n} in the middle of it all" for n in range(12)]
    found = pd.DataFrame({"label": labels, "gas_before": 3, "gas_after": range(4, 16)})
    ax = plots.gas_change(found, figsize=(4, 3))
    names = [name.get_text() for name in ax.get_yticklabels()]
    assert 3 <= len(names) < 12
    assert f"{len(names)} largest of 12" in ax.get_title()
    assert {name.get_horizontalalignment() for name in ax.get_yticklabels()} == {"left"}


def test_versions_have_their_dates_on_request() -> None:
    """Below each version its date, interpolated between known times; without times that is refused."""
    frame, changes = OBSERVATIONS.assign(ledger_timestamp=None), timeline()
    for draw in (plots.gas_by_version, plots.gas_heatmap):
        ax = draw(frame, timeline=changes, x="both")
        ax.figure.draw_without_rendering()
        assert "4,000\n2026-05-29" in {label.get_text() for label in ax.get_xticklabels()}
        assert ax.get_xlabel() == "ledger version, date (UTC, interpolated)"
        with pytest.raises(InputError, match="times of at least two versions"):
            draw(frame, x="both")


def test_all_figures_but_flame_have_colours_and_a_legend() -> None:
    """The page on figures of one's own says so."""
    options = {name: signature(getattr(toolkit.plots, name)).parameters.keys() for name in toolkit.plots.__all__}
    assert all({"ax", "figsize", "title"} <= names for names in options.values())
    assert [name for name, names in options.items() if not {"colors", "legend"} <= names] == ["flame"]


def test_a_single_row_has_the_height_of_its_axes() -> None:
    """Bars of one call are not a strip in the middle of a figure."""
    frame = pd.DataFrame({"label": "call", "source": "committed", "ledger_version": range(9), "gas_used": 5})
    ax = toolkit.plots.gas_distribution(frame, figsize=(7, 6))
    assert abs(ax.get_ylim()[1] - ax.get_ylim()[0]) < 1.5
