"""Rows of the heatmap say how gas compares with a call's first reading, and where nothing is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.unit.plots import synthetic_run
from tests.unit.plots.synthetic_hostile import texts
from toolkit.errors import InputError
from toolkit.plots import gas_heatmap

pytestmark = pytest.mark.usefixtures("figures")


def cells(ax: object, gid: str = "gas-cells") -> np.ma.MaskedArray:
    """Values of one mesh, a row per call."""
    (mesh,) = ax.findobj(lambda artist: artist.get_gid() == gid)
    return np.ma.masked_invalid(mesh.get_array())


def column(ax: object, version: int) -> int:
    """Column of the mesh that holds a ledger version."""
    (mesh,) = ax.findobj(lambda artist: artist.get_gid() == "gas-cells")
    edges = mesh.get_coordinates()[0, :, 0]
    return int(np.searchsorted(edges, version, side="right") - 1)


def views(rows: list[tuple[int, int | None]]) -> pd.DataFrame:
    """Readings of one view."""
    made = [
        {"label": "one", "source": "view@version", "node": "embedded", "ledger_version": v, "gas_used": g,
         "success": g is not None, "error_code": None if g is not None else "invalid_input"}
        for v, g in rows
    ]  # fmt: skip
    return synthetic_run.frame(made, synthetic_run.OBSERVATION_TYPES)


def test_a_cell_is_the_log_ratio_to_the_first_reading() -> None:
    """Ten times as dear is log2(10); the rows of calls that did not change are zero."""
    ax = gas_heatmap(synthetic_run.observations())
    names = [label.get_text() for label in ax.get_yticklabels()]
    grid = cells(ax)
    at = column(ax, synthetic_run.TENFOLD + 200)
    assert grid[names.index("APT supply"), at] == pytest.approx(np.log2(10))
    assert np.ma.abs(grid[names.index("chain id")]).max() == 0
    assert names == list(synthetic_run.VIEWS)


def test_where_a_call_does_not_answer_the_cells_are_grey_and_have_no_gas() -> None:
    """Before the module is published the row is a failure, not a zero."""
    ax = gas_heatmap(synthetic_run.observations())
    row = list(synthetic_run.VIEWS).index("order book depth")
    failed = cells(ax, "failed-cells")
    before, after = column(ax, synthetic_run.BORN - 500), column(ax, synthetic_run.BORN + 500)
    assert failed[row, before] == 1
    assert failed.mask[row, after]
    assert cells(ax).mask[row, before]


def test_between_readings_that_differ_nothing_is_claimed() -> None:
    """Half of the range lies between 10 and 20 gas units: it stays blank."""
    ax = gas_heatmap(views([(0, 10), (250, 10), (750, 20), (1_000, 20)]))
    grid = cells(ax)
    assert grid[0, column(ax, 100)] == 0
    assert grid.mask[0, column(ax, 500)]
    assert grid[0, column(ax, 900)] == 1


def test_a_call_that_never_answers_and_a_single_reading_are_drawn() -> None:
    """Neither raises, warns, nor invents gas."""
    nothing = gas_heatmap(views([(0, None), (100, None)]))
    assert ([text.get_text() for text in nothing.texts], len(nothing.figure.axes)) == (["no call returned gas"], 1)
    one = gas_heatmap(views([(5, 3)]))
    assert (cells(one).tolist(), len(one.figure.axes)) == ([[0]], 1)
    assert [tick for tick in one.get_xticks() if one.get_xlim()[0] <= tick <= one.get_xlim()[1]] == [5]


def test_a_lone_reading_is_a_tick() -> None:
    """It has the colour of its gas and the width of a few columns; after a call's last reading the row is empty."""
    frame = pd.concat([views([(0, 10), (500, 20), (700, 40)]), views([(0, 7), (1_000, 7)]).assign(label="other")])
    ax = gas_heatmap(frame)
    grid = cells(ax)
    assert [grid[0, column(ax, version)] for version in (0, 500, 700)] == [0, 1, 2]
    assert all(grid.mask[0, column(ax, version)] for version in (250, 600, 900))
    assert not grid.mask[1].any()


def test_the_tick_just_beyond_the_last_version_is_drawn() -> None:
    """A history of 5,000 versions ends at 4,999; its axis ends with 5,000."""
    ax = gas_heatmap(synthetic_run.observations())
    assert ax.get_xlim()[1] > 5_000
    assert 5_000 in ax.get_xticks()
    assert ax.get_xlim()[0] == 0 <= min(ax.get_xticks())


def test_rows_without_room_for_their_names_are_left_out_and_it_is_said() -> None:
    """Those that vary most stay."""
    many = pd.concat([views([(0, 5), (50, 5 + n)]).assign(label=f"call {n}") for n in range(30)])
    ax = gas_heatmap(many, figsize=(4, 3))
    names = [name.get_text() for name in ax.get_yticklabels()]
    assert (len(names), names[-1]) == (12, "call 29")
    assert ax.get_title().endswith("the 12 of 30 calls that vary most")
    assert len(gas_heatmap(many).get_yticklabels()) == 30


def test_calls_that_are_not_drawn_are_counted_below() -> None:
    """Committed transactions and simulations at the head are not read at versions; with and without a legend."""
    frame = views([(0, 5), (50, 6)])
    others = [frame.assign(label=label, source="committed") for label in ("pay", "sell")]
    others.append(frame.assign(label="try", source="simulate@now"))
    for legend in (True, False):
        ax = gas_heatmap(pd.concat([frame, *others]), legend=legend)
        assert texts(ax, "note") == ["not drawn: 2 committed calls and 1 simulation"]
        assert texts(gas_heatmap(frame, legend=legend), "note") == []


def test_an_unknown_call_is_refused() -> None:
    """The error names the unknown label."""
    with pytest.raises(InputError, match="'nothing' is not the label of a call"):
        gas_heatmap(synthetic_run.observations(), calls=["nothing"])
    label = synthetic_run.observations()["label"].iloc[0]
    with pytest.raises(InputError, match=f"did you mean `{label}`"):
        gas_heatmap(synthetic_run.observations(), calls=[label[:-1]])


def test_a_timeline_is_marked_below_the_rows() -> None:
    """With the shapes of causes, named above; the rows keep their places."""
    frame = views([(0, 5), (50, 5), (100, 50)])
    changes = pd.DataFrame(
        {"ledger_version": [60, 100], "version_before": [59, 99], "exact": True, "kind": ["code", "schedule"]}
    )
    ax = gas_heatmap(frame, timeline=changes)
    marks = [ax.findobj(lambda one, kind=kind: one.get_gid() == f"timeline-{kind}") for kind in ("code", "schedule")]
    assert [[list(mark.get_xdata()) for mark in group] for group in marks] == [[[60]], [[100]]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["code", "gas schedule"]
    bottom = ax.get_xaxis_transform().transform(marks[0][0].get_xydata()[0])[1]
    assert bottom < ax.transData.transform((0, 0.5))[1]


def test_a_stretch_too_narrow_to_see_has_no_entry_in_the_legend() -> None:
    """A call that does not answer at the first version only has a speck."""
    frame = pd.DataFrame({"label": "call", "source": "view@version", "ledger_version": range(0, 5_000, 25)})
    told = []
    for born in (1, 100):
        gas = frame.assign(gas_used=[None] * born + [5] * (200 - born), success=frame.index >= born)
        legend = gas_heatmap(gas).get_legend()
        told.append([text.get_text() for text in legend.get_texts()] if legend else [])
    assert told == [[], ["no result"]]
