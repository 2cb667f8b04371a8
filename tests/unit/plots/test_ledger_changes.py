"""State changes are counted by what was written; schedule changes stand at their factor."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pytest

from tests.unit.plots.synthetic_hostile import drawn_texts, literal, texts
from toolkit.plots import schedule_changes, state_changes

pytestmark = pytest.mark.usefixtures("figures")

COIN = "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>"


def changes(rows: list[tuple[str, str | None, str | None, str | None]]) -> pd.DataFrame:
    """A frame of state changes."""
    return pd.DataFrame(rows, columns=["type", "resource_type", "module", "handle"]).astype("string[pyarrow]")


def test_rows_are_what_is_written_the_most_written_first() -> None:
    """Two coin stores, a module and a table of which one item is deleted."""
    frame = changes([
        ("write_table_item", None, None, "0x" + "ab" * 32),
        ("delete_table_item", None, None, "0x" + "ab" * 32),
        ("write_resource", COIN, None, None),
        ("write_resource", COIN, None, None),
        ("write_resource", COIN, None, None),
        ("write_module", None, "0xcafe::registry", None),
    ])  # fmt: skip
    ax = state_changes(frame)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [COIN, "table 0xababab…abab", "module 0xcafe::registry"]
    assert texts(ax, "total") == ["3", "2", "1"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "write resource", "write table item", "write module", "delete table item"
    ]  # fmt: skip


def test_what_there_is_no_room_for_is_counted() -> None:
    """Thirty tables: 24 are drawn, of 30."""
    rows = [("write_table_item", None, None, f"0x{n:064x}") for n in range(1, 31)]
    ax = state_changes(changes(rows))
    assert len(ax.get_yticks()) == 24
    assert ax.get_title() == "State changes: the 24 largest of 30 rows"


def test_hostile_types_are_shown_literally() -> None:
    """Text of the chain is drawn as its visible text, without mathtext."""
    tag = "0x1::a::$\\frac{x}{0}$\u202eB"
    drawn = drawn_texts(state_changes(changes([("write_resource", tag, None, None)])))
    assert literal(tag, 52) in drawn
    assert "$\\frac{x}{0}$" in literal(tag, 52)


def schedule(rows: list[tuple[str, str, int | None, int | None]]) -> pd.DataFrame:
    """A diff of two gas schedules."""
    frame = pd.DataFrame(rows, columns=["name", "kind", "before", "after"])
    return frame.astype({"before": "uint64[pyarrow]", "after": "uint64[pyarrow]"})


def test_parameters_stand_at_their_factor_in_the_row_of_their_part() -> None:
    """A uniform tenfold increase of one part is one circle labelled x10; changes without a factor are counted next to it."""
    ax = schedule_changes(schedule([
        ("instr.add", "changed", 588, 5880),
        ("instr.mul", "changed", 588, 5880),
        ("instr.new", "added", None, 7),
        ("txn.max", "changed", 0, 5),
        ("txn.min", "changed", 10, 5),
    ]))  # fmt: skip
    circles = ax.findobj(lambda artist: artist.get_gid() == "factor")
    assert [circle.get_offsets().tolist() for circle in circles] == [[[10, 0]], [[0.5, 1]]]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["instr (3)", "txn (2)"]
    assert texts(ax, "change") == ["×10, 1 added", "×0.5, 1 from or to zero"]
    assert ax.get_title() == "Gas schedule: 4 parameters changed, 1 added"


def test_ticks_are_factors_both_ways() -> None:
    """A reader sees a tenth and ten, not powers."""
    ax = schedule_changes(schedule([("instr.add", "changed", 588, 5880)]))
    ax.figure.canvas.draw()
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert {"×0.1", "×1", "×10"} <= set(labels)


@pytest.mark.parametrize("size", [None, (4, 3)])
def test_labels_of_factors_do_not_overlap(size: tuple[float, float] | None) -> None:
    """From a tenth to a thousand times the value; there are at least two, and one is that of no change."""
    rows = [(f"instr.p{n}", "changed", 1_000, round(1_000 * factor)) for n, factor in enumerate((0.1, 0.2, 5, 1_000))]
    ax = schedule_changes(schedule(rows), figsize=size)
    ax.figure.draw_without_rendering()
    shown = [label for label, tick in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True) if 0.05 < tick < 5_000]
    boxes = [label.get_window_extent() for label in shown]
    assert "×1" in [label.get_text() for label in shown]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_a_schedule_without_factors_tells_what_it_has() -> None:
    """Equal values are not changes; without a factor the figure has no axis and states what was added."""
    ax = schedule_changes(schedule([("txn.a", "changed", 3, 3), ("txn.b", "unchanged", 1, 1)]))
    assert ax.get_title() == "Gas schedule: 0 parameters changed"
    ax = schedule_changes(schedule([("txn.a", "added", None, 3), ("txn.b", "added", None, 1)]))
    assert ax.get_title() == "Gas schedule: 2 parameters added"
    assert (texts(ax, "summary"), list(ax.get_xticks())) == (["all 2 parameters added"], [])
    ax = schedule_changes(schedule([("txn.a", "added", None, 3), ("txn.b", "removed", 1, None)]))
    assert texts(ax, "summary") == ["1 added, 1 removed"]


def test_changes_of_one_each_are_a_list_of_their_kinds() -> None:
    """Bars of equal length would not show anything, so neither bars nor an axis are drawn."""
    rows = [("write_resource", COIN, None, None), ("delete_table_item", None, None, "0x" + "ab" * 32)]
    ax = state_changes(changes(rows))
    assert texts(ax, "kind") == ["write resource", "delete table item"]
    assert (ax.containers, list(ax.get_xticks())) == ([], [])
    assert ax.get_legend() is None


@pytest.mark.parametrize(("after", "said"), [(20, ["all 2 changed parameters ×10"]), (30, [])])
def test_one_factor_of_all_parameters_is_said(after: int, said: list[str]) -> None:
    """Circles at one place would show nothing; two factors are drawn."""
    ax = schedule_changes(schedule([("instr.add", "changed", 1, 10), ("txn.min", "changed", 2, after)]))
    assert texts(ax, "summary") == said
    assert bool(ax.collections) == (not said)
