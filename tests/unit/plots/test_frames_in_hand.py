"""Figures take the frames and results that the toolkit returns, with labels that tell calls apart."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from matplotlib import pyplot as plt

import toolkit
from tests.unit.plots import synthetic_run
from tests.unit.plots.synthetic_hostile import HOSTILE, drawn_texts, literal, texts
from toolkit.errors import InputError, NotFound
from toolkit.frames._columns import plain_rows
from toolkit.gas._series import as_observations
from toolkit.plots import (
    gas_breakdown,
    gas_by_version,
    gas_change,
    gas_distribution,
    gas_heatmap,
    schedule_changes,
    state_changes,
)
from toolkit.plots._gas_breakdown import breakdown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

pytestmark = pytest.mark.usefixtures("figures")

SUPPLY = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
TRANSFER = "0x1::aptos_account::transfer"


@pytest.fixture(scope="module")
def node() -> Iterator[toolkit.Node]:
    """The embedded node."""
    with toolkit.connect() as connected:
        yield connected


@pytest.fixture(scope="module")
def paid(node: toolkit.Node) -> Any:
    """Transactions of the second half of the history."""
    return toolkit.fetch_transactions(node, "2500:3300", progress=False)


def bars(ax: Axes) -> list[str]:
    """Names of the bars."""
    return [label.get_text() for label in ax.get_yticklabels()]


def transfer(to: str, octas: int = 100, sender: str = "0xa11ce") -> toolkit.SimulationRequest:
    """A request."""
    return toolkit.SimulationRequest(toolkit.EntryFunction(TRANSFER, arguments=[to, octas]), sender=sender)


def test_a_frame_of_one_view_is_named_by_its_function(node: toolkit.Node) -> None:
    """The frame has no column for the call, and the figure still says which it is, also after a selection of rows."""
    frame = toolkit.fetch_views(node, SUPPLY, "0:-1/20", progress=False)
    assert "call" not in frame.columns
    assert gas_by_version(frame).get_title() == "Gas of coin::supply by ledger version"
    ax = gas_by_version(frame[frame["ledger_version"] > 1_000])
    assert ax.get_title() == "Gas of coin::supply by ledger version"
    (line,) = ax.findobj(lambda artist: artist.get_gid() == "gas-line")
    assert {gas for gas in line.get_ydata() if gas == gas} <= set(frame["gas_used"].astype(float))  # noqa: PLR0124


def test_views_of_one_function_are_told_apart_by_their_arguments(node: toolkit.Node) -> None:
    """The frame has them in the names of the calls, and so has the figure, with short addresses."""
    accounts = ["0x" + "ab" * 31 + "01", "0x" + "ab" * 31 + "02"]
    calls = [toolkit.ViewFunction("0x1::account::exists_at", [one]) for one in accounts]
    frame = toolkit.fetch_views(node, calls, "0:-1/5", progress=False)
    assert frame["call"].unique().tolist() == [f"0x1::account::exists_at({one})" for one in accounts]
    names = texts(gas_by_version(frame), "end-label")
    assert len(set(names)) == 2
    assert all(name.startswith("account::exists_at(0xab") and len(name) < 44 for name in names)
    assert bars(gas_heatmap(frame)) == names
    assert texts(gas_by_version(frame, calls=[names[1]]), "end-label") == []


def test_a_mapping_of_frames_is_named_by_its_keys(node: toolkit.Node) -> None:
    """Frames of calls that were fetched apart are drawn together."""
    frames = {
        "coins": toolkit.fetch_views(node, SUPPLY, "0:-1/10", progress=False),
        "time": toolkit.fetch_views(node, "0x1::timestamp::now_seconds", "0:-1/10", progress=False),
    }
    assert texts(gas_by_version(frames), "end-label") == ["coins", "time"]


def test_simulations_are_named_by_the_arguments_that_differ(node: toolkit.Node) -> None:
    """A bar for each request, in order; what is equal in all is not written."""
    batch = toolkit.fetch_simulations(node, [transfer("0xb0b"), transfer("0xca401")], progress=False)
    for given in (batch, batch.transactions, batch.results, list(batch.results)):
        ax = gas_breakdown(given)
        assert bars(ax) == ["aptos_account::transfer(0xb0b)", "aptos_account::transfer(0xca401)"]
        totals = [text.split(" of ")[-1].split(" ")[0] for text in texts(ax, "total")]
        assert totals == [f"{one.gas_used:,}" for one in batch.results]
    senders = toolkit.fetch_simulations(node, [transfer("0xcafe"), transfer("0xcafe", sender="0xb0b")], progress=False)
    assert bars(gas_breakdown(senders)) == ["aptos_account::transfer by 0xa11ce", "aptos_account::transfer by 0xb0b"]
    assert bars(gas_breakdown({"a": batch.results[0], "b": batch.results[1]})) == ["a", "b"]
    assert gas_by_version(batch).get_xlabel().startswith("model gas (gas units)")


def test_gas_of_forks_of_an_embedded_node_is_model_gas(node: toolkit.Node) -> None:
    """For a simulation on a fork, simulations at versions, and views of a fork."""
    request = transfer("0xb0b")
    fork = node.fork(300)
    assert gas_breakdown(fork.simulate(request)).get_xlabel() == "model gas (gas units)"
    at = toolkit.fetch_simulations(node, request, [300, 400], progress=False)
    assert gas_by_version(at).get_ylabel() == "model gas (gas units)"
    views = toolkit.fetch_views(fork.node, SUPPLY, [100, 300], progress=False)
    assert gas_by_version(views).get_ylabel() == "model gas (gas units)"


def test_errors_among_simulations_are_left_out(node: toolkit.Node) -> None:
    """A refused request has no gas."""
    good = node.simulate(transfer("0xb0b").payload, sender="0xa11ce")
    refused = toolkit.fetch_simulations(node, [transfer("0xb0b", octas=-1)], progress=False)
    assert bars(gas_breakdown([good, refused.results[0]])) == ["aptos_account::transfer"]
    assert bars(gas_breakdown(refused)) == []


def test_long_arguments_that_look_the_same_have_numbers(node: toolkit.Node) -> None:
    """Two names that would be cut to the same text stay different."""
    names = [f"{'a' * 60}{place}" for place in range(3)]
    calls = [toolkit.EntryFunction("0xcafe::registry::register", [name]) for name in names]
    batch = toolkit.fetch_simulations(
        node, [toolkit.SimulationRequest(call, sender="0xb0b") for call in calls], progress=False
    )
    assert len(set(as_observations(batch, figure="x")["label"])) == 3
    assert [name[-3:] for name in bars(gas_breakdown(batch))] == [" #1", " #2", " #3"]


def test_simulations_of_a_function_are_one_row_of_the_distribution(node: Any) -> None:
    """Their arguments do not divide them: a row for each would have one reading."""
    requests = [
        toolkit.SimulationRequest(toolkit.EntryFunction("0x1::aptos_account::transfer", [to, 1]), sender="0xa11ce")
        for to in ("0xb0b", "0x5e1f")
    ]
    ax = gas_distribution(toolkit.fetch_simulations(node, requests, progress=False))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["aptos_account::transfer\n2 readings, median 5,022"]
    assert len([bar for bar in ax.patches if bar.get_gid() == "succeeded"]) == 2


def test_committed_transactions_are_one_series_a_function(paid: Any) -> None:
    """Those that pay nothing are left out; the gas is that of the frame."""
    made = as_observations(paid, figure="x")
    users = paid.transactions[paid.transactions["type"] == "user_transaction"]
    assert made["gas_used"].tolist() == users["gas_used"].tolist()
    assert set(made["source"]) == {"committed"}
    assert {"registry::register", "aptos_account::transfer", "registry::transfer"} <= set(made["label"])
    for figure in (gas_by_version, gas_distribution):
        for given in (paid, paid.transactions):
            assert figure(given, calls=["registry::register"]).get_xlabel()
    one = gas_by_version(paid, calls=["registry::register"])
    assert one.get_title() == "Gas of registry::register by ledger version"


def test_committed_transactions_have_a_bar_for_each_kind(paid: Any) -> None:
    """One that failed and one that succeeded are not one bar."""
    made = as_observations(paid, figure="x")
    mine = made[made["label"] == "aptos_account::transfer"]
    kinds = breakdown(mine)
    usual = mine[mine["success"] & (mine["storage_fee_octas"] == 0)]
    [row] = plain_rows(kinds[kinds["kind"] == "succeeding"])
    assert (row["total"], row["count"]) == (usual["gas_used"].iloc[-1], len(usual))
    assert set(kinds["success"]) == {True, False}
    assert len(bars(gas_breakdown(mine))) == len(kinds)


def test_of_many_bars_those_of_most_gas_are_drawn(node: toolkit.Node) -> None:
    """And the figure says of how many."""
    frame = toolkit.fetch_simulations(node, [transfer("0xb0b")], progress=False).transactions
    many = pd.concat([frame] * 50, ignore_index=True)
    payloads = [payload.replace('"100"', f'"{place}"') for place, payload in enumerate(many["payload"])]
    ax = gas_breakdown(many.assign(payload=payloads, gas_used=range(50)))
    assert len(bars(ax)) == 40
    assert "aptos_account::transfer(49)" in bars(ax)
    assert ax.get_title() == "What the gas was spent on: the 40 largest of 50 bars"


def test_state_changes_take_what_has_them(node: toolkit.Node, paid: Any) -> None:
    """A simulation and the result of a fetch are as good as their frame."""
    simulation = node.simulate(transfer("0xb0b").payload, sender="0xa11ce")
    assert bars(state_changes(simulation)) == bars(state_changes(simulation.changes))
    assert bars(state_changes(paid)) == bars(state_changes(paid.changes))


def test_resources_of_addresses_that_differ_in_the_middle_are_not_counted_together() -> None:
    """Their short forms would be equal."""
    types = [f"0x{'a' * 20}{middle}{'b' * 20}::m::R" for middle in "12"]
    frame = pd.DataFrame({"type": "write_resource", "resource_type": types, "module": None, "handle": None})
    assert len(set(bars(state_changes(frame)))) == 2


OBSERVATIONS = synthetic_run.observations()
VIEWS = OBSERVATIONS[OBSERVATIONS["source"] == "view@version"]
SIMULATIONS = OBSERVATIONS[OBSERVATIONS["source"] == "simulate@now"]
CHANGES = pd.DataFrame(columns=["type", "resource_type", "module", "handle"], dtype="string[pyarrow]")


@pytest.mark.parametrize(
    ("figure", "frame", "words"),
    [
        (gas_by_version, OBSERVATIONS.iloc[:0], "no observations"),
        (gas_heatmap, VIEWS.iloc[:0], "no observations"),
        (gas_breakdown, VIEWS.iloc[:0], "no simulations or committed transactions"),
        (gas_distribution, VIEWS.iloc[:0], "no observations with the source committed"),
        (gas_change, synthetic_run.steps().iloc[:0], "no changes"),
        (gas_change, pd.DataFrame(columns=["label", "gas_before", "gas_after"]), "no changes"),
        (state_changes, CHANGES, "no state changes"),
        (schedule_changes, pd.DataFrame(columns=["name", "kind", "before", "after"]), "no parameter differs"),
    ],
)
def test_nothing_to_draw_is_said(figure: Any, frame: pd.DataFrame, words: str) -> None:
    """An empty frame, or one without the kind of rows that the figure shows, is a figure with a sentence."""
    assert [text.get_text() for text in figure(frame).texts] == [words]


def test_a_heat_map_without_versions_is_refused() -> None:
    """Simulations of the current state have no row."""
    with pytest.raises(InputError, match=r"^gas_heatmap: expected views"):
        gas_heatmap(SIMULATIONS)


def test_a_breakdown_of_views_is_refused() -> None:
    """The response to a view does not split its gas."""
    with pytest.raises(InputError, match=r"^gas_breakdown: expected simulations"):
        gas_breakdown(VIEWS)


@pytest.mark.parametrize(
    ("figure", "column"),
    [(gas_by_version, "gas_used"), (gas_distribution, "gas_used"), (gas_breakdown, "io_gas_units")],
)
def test_a_missing_column_is_named(figure: Any, column: str) -> None:
    """A frame of observations that lacks what the figure draws is refused by the column."""
    with pytest.raises(InputError, match=f"the column '{column}' is missing from a frame with the columns label, "):
        figure(OBSERVATIONS.drop(columns=column))


@pytest.mark.parametrize("figure", [partial(gas_distribution, source="view@version"), gas_heatmap])
def test_hostile_labels_are_shown_literally(figure: Any) -> None:
    """Each is drawn as its visible text, without mathtext."""
    frame = synthetic_run.observations(rename=HOSTILE)
    drawn = drawn_texts(figure(frame))
    assert {literal(HOSTILE[name], 44) for name in synthetic_run.VIEWS} <= set(drawn)


@pytest.mark.parametrize("figure", [gas_by_version, gas_breakdown, gas_distribution, gas_heatmap])
def test_something_else_is_refused_with_what_is_expected(figure: Any, paid: Any) -> None:
    """The message names the figure, the frames that it takes, and what it got."""
    for given, got in (
        (paid.events, "a frame with the columns request, "),
        ("0x1::m::f", "'0x1::m::f'"),
        ([1, 2], "list"),
        ([], "list"),
        ([NotFound("x", status=404)], "list"),
        (None, "NoneType"),
        (synthetic_run.steps(), "a frame with the columns "),
    ):
        with pytest.raises(InputError, match=f"^{figure.__name__}: expected run.observations, a frame of fetch_views"):
            figure(given)
        with pytest.raises(InputError) as error:
            figure(given)
        assert got in str(error.value)


def test_figures_of_changes_say_what_they_expect(paid: Any) -> None:
    """A frame of readings is not one of changes."""
    for figure, expected in (
        (gas_change, "run.steps"),
        (schedule_changes, "toolkit.schedule_diff"),
        (state_changes, "fetch_simulations"),
    ):
        with pytest.raises(InputError, match=f"^{figure.__name__}: expected .*{expected}"):
            figure(paid.transactions)


# many calls -----------------------------------------------------------------------------------------------------------


def many(count: int) -> pd.DataFrame:
    """Readings of so many calls, each with a step."""
    rows = [
        {
            "label": f"call {call}",
            "source": "view@version",
            "ledger_version": version,
            "gas_used": call + 2 + version // 50,
        }
        for call in range(count)
        for version in range(0, 100, 5)
    ]
    return pd.DataFrame(rows)


def test_names_of_twelve_calls_do_not_overlap() -> None:
    """Twelve calls have rows, and no two have the same colour."""
    frame = many(12)
    ax = gas_by_version(frame, calls=list(frame["label"].unique()))
    ax.figure.canvas.draw()
    boxes = [name.get_window_extent() for name in ax.get_yticklabels()]
    assert len(boxes) == 12
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    lines = ax.findobj(lambda artist: artist.get_gid() == "gas-line")
    assert len({line.get_color() for line in lines}) == 12


def test_of_many_calls_those_that_changed_most_are_drawn() -> None:
    """The title says how many; calls that are asked for are all drawn."""
    frame = many(30)
    moved = frame["label"].isin(["call 7", "call 29"]) & (frame["ledger_version"] > frame["ledger_version"].min())
    ax = gas_by_version(frame.assign(gas_used=frame["gas_used"].where(~moved, 900)))
    assert ax.get_title() == "Gas by ledger version: the 16 of 30 calls that vary most"
    drawn = {name.get_text() for name in ax.get_yticklabels()}
    assert len(drawn & set(frame["label"])) == 16
    assert drawn >= {"call 7", "call 29"}
    named = gas_by_version(frame, calls=list(frame["label"].unique()))
    assert len(named.findobj(lambda artist: artist.get_gid() == "gas-line")) == 30
    plt.close("all")


@pytest.mark.parametrize(("count", "colours", "dashes"), [(1, 2, 1), (2, 2, 2)])
def test_nodes_are_told_apart(count: int, colours: int, dashes: int) -> None:
    """One call of two nodes has two colours; of several calls, the nodes differ by their dashes."""
    frame = many(count)
    both = pd.concat([frame.assign(node="mainnet"), frame.assign(node="testnet")], ignore_index=True)
    lines = gas_by_version(both).findobj(lambda artist: artist.get_gid() == "gas-line")
    assert len(lines) == 2 * count
    assert len({line.get_color() for line in lines}) == colours
    assert len({str(line._dash_pattern) for line in lines}) >= dashes
    assert len({(line.get_color(), str(line._dash_pattern)) for line in lines}) == 2 * count
    if count == 1:
        red = gas_by_version(both, colors={"testnet": "r"}).findobj(lambda artist: artist.get_gid() == "gas-line")
        assert [line.get_color() for line in red][1] == "r"
    plt.close("all")


def test_calls_of_a_named_frame_stay_apart(node):
    """A name for a frame of several calls is put before theirs."""
    calls = {"depth": "0xb00c::order_book::depth", "size": "0xcafe::registry::size"}
    frame = toolkit.fetch_views(node, calls, "-2:", progress=False)
    alone = toolkit.fetch_views(node, calls["size"], "-2:", progress=False)
    found = as_observations({"a": frame, "b": alone}, figure="gas_by_version")
    assert found["label"].unique().tolist() == ["a: depth", "a: size", "b"]
    assert found["gas_used"].tolist() == [*frame["gas_used"], *alone["gas_used"]]
