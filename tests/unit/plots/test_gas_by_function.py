"""The icicle of a profile: a box for each function, as wide as its gas."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import toolkit
from toolkit.embedded import Ledger
from toolkit.embedded.teaching import Vault
from toolkit.errors import InputError
from toolkit.vm._results import Call, Profile


def test_the_figure_has_a_box_for_each_function():
    """Widths add up: the first row is the whole, the coloured boxes are it again."""
    ledger = Ledger()
    ledger.publish(Vault)
    profile = ledger.profile(toolkit.EntryFunction("0xfa17::vault::deposit", [1_000]), sender="0xb0b")
    every = ["execution", "io", "storage", "rounding"]
    axes = toolkit.plots.gas_by_function(profile, categories=every, ax=Figure(figsize=(9, 4)).subplots())
    boxes = {box.get_gid(): box.get_width() for box in axes.patches}
    assert boxes["function-transaction"] == profile.gas_used
    assert sum(box.get_width() for box in axes.patches if box.get_gid() == "own") == pytest.approx(profile.gas_used)
    assert axes.get_title().endswith(" gas units")  # nothing is left out
    assert "vault::deposit" in {text.get_text().split(" ")[0] for text in axes.texts}
    without = toolkit.plots.gas_by_function(profile, ax=Figure().subplots())  # storage would hide the other boxes
    frame = profile.to_frame()
    storage = frame.loc[frame["category"] == "storage", "internal_gas"].sum() / profile.scaling
    (whole,) = (box.get_width() for box in without.patches if box.get_gid() == "function-transaction")
    assert whole == pytest.approx(profile.gas_used - storage)
    again = toolkit.plots.gas_by_function(profile.to_frame(), categories=["io"], ax=Figure().subplots())
    assert again.get_title().endswith(", io only")
    for wrong in ("io", ["gas"]):
        with pytest.raises(InputError, match="names from execution, io, storage, rounding"):
            toolkit.plots.gas_by_function(profile, categories=wrong)
    with pytest.raises(InputError, match="expected a GasProfile"):
        toolkit.plots.gas_by_function(5)
    with pytest.raises(InputError, match=r"expected a GasProfile.*a frame with the columns function"):
        toolkit.plots.gas_by_function(profile.to_frame()[["function"]])


def test_a_function_s_own_gas_is_named_if_there_is_room() -> None:
    """By category and gas, or by gas alone; a sliver has no text, and no number in the legend."""
    profile = Ledger.with_history(versions=200, cache=True).profile(
        toolkit.EntryFunction("0xcafe::registry::register", ["zoe"]), sender="0xb0b"
    )
    axes = toolkit.plots.gas_by_function(profile, figsize=(7, 3))
    axes.figure.draw_without_rendering()
    shown = {text.get_text() for text in axes.texts}
    assert {"execution 27.6", "execution 10.82"} <= shown
    assert "" in shown
    legend = {text.get_text() for text in axes.get_legend().get_texts()}
    assert all("::" in text for text in legend - {"execution", "io", "rounding"})


def test_charges_of_one_category_are_split_by_operation() -> None:
    """All of them would have one colour; each operation has its own, and the sum is the same."""
    profile = Ledger.with_history(versions=200, cache=True).profile(
        toolkit.EntryFunction("0xcafe::registry::register", ["zoe"]), sender="0xb0b"
    )
    ax = toolkit.plots.gas_by_function(profile, categories=["execution"], ax=Figure(figsize=(9, 4)).subplots())
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    names = {text for text in texts if not text[0].isdigit()}
    frame = profile.to_frame()
    known = set(frame.loc[frame["category"] == "execution", "operation"])
    assert len(names) > 1
    assert names <= known | {"other operations"}
    drawn = sum(box.get_width() for box in ax.patches if box.get_gid() == "own")
    assert drawn * profile.scaling == pytest.approx(frame.loc[frame["category"] == "execution", "internal_gas"].sum())


def test_narrow_boxes_have_numbers_and_names_stay_in_their_boxes() -> None:
    """A box without room for a name has a number, which the legend explains; the title says which gas is drawn."""
    callees = {
        name: Call(name, 1, own=gas * 1_000_000)
        for name, gas in (("0x1::coin::withdraw_everything", 50), ("0x1::a::bids", 2))
    }
    root = Call("transaction", 1, own=10_000_000, children=callees)
    ax = toolkit.plots.flame(Profile(root), figsize=(7, 3))
    ax.figure.draw_without_rendering()
    shown = [text for text in ax.texts if text.get_gid() == "name" and text.get_visible()]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1  a::bids 2", "0x1::coin", "0x1::a"]
    assert len({box.get_facecolor() for box in ax.patches}) == 3
    assert "1" in {text.get_text() for text in shown}
    assert ax.get_title().startswith("Execution and io gas by function")  # of two, neither is the whole
    for width in (4.0, 7.0):
        ax = toolkit.plots.flame(Profile(root), figsize=(width, 3))
        ax.figure.draw_without_rendering()
        boxes = [box.get_window_extent() for box in ax.patches]
        texts = [text.get_window_extent() for text in ax.texts if text.get_gid() == "name" and text.get_visible()]
        assert all(any(box.x0 <= one.x0 and one.x1 <= box.x1 for box in boxes) for one in texts)


def test_a_flame_is_drawn_from_the_top_down_without_slivers() -> None:
    """Callees are below their callers, those with less than 1 % are omitted, and the total still has their gas."""
    small = Call("0x1::a::small", 1, own=5_000, children={"0x1::a::inner": Call("0x1::a::inner", 1, own=1_000)})
    large = Call("0x1::a::large", 1, own=2_000_000)
    tree = Call("transaction", 1, own=994_000, children={one.function: one for one in (small, large)})
    ax = toolkit.plots.flame(Profile(tree))
    places = {box.get_gid(): box.get_y() for box in ax.patches}
    assert places == {"function-transaction": 0, "function-0x1::a::large": 1}
    assert ax.get_ylim() == (2, 0)
    assert ax.get_title().endswith(": 3 gas units")
    more = toolkit.plots.flame(Profile(Call("transaction", 1, own=500_000)), Profile(tree))
    assert "transaction +2.5" in {text.get_text() for text in more.texts}  # with as many decimals as in the title


def test_numbered_calls_of_one_function_differ_in_the_legend() -> None:
    """Functions with the same name show their module; calls of one function show their gas."""
    loads = {name: Call(name, 1, own=700_000) for name in ("0x1::table::load", "0x1::big::load", "0x1::big::keep")}
    below = Call(
        "0x1::shop::sell", 1, own=4_000_000, children={"0x1::table::load": Call("0x1::table::load", 1, own=800_000)}
    )
    tree = Call("transaction", 1, own=1_000_000, children=loads | {"0x1::shop::sell": below})
    ax = toolkit.plots.flame(Profile(tree), figsize=(4, 3))
    numbered = [text.get_text().split("  ")[1] for text in ax.get_legend().get_texts() if "  " in text.get_text()]
    assert sorted(numbered) == ["big::load", "keep", "table::load 0.7", "table::load 0.8"]
