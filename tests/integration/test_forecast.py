"""Forecasts under another gas schedule: the truth, as the embedded node charges it, lies in every interval."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import toolkit
from toolkit import embedded
from toolkit.embedded._meter import Schedule, released_schedule
from toolkit.errors import InputError
from toolkit.frames._schema import FORECAST
from toolkit.gas._forecast import proposed_schedule
from toolkit.wire import GasSchedule

GROUPS = ("instr.", "aptos_framework.", "move_stdlib.", "table.", "txn.storage_io_", "txn.storage_fee_per_state_")
SINGLE = (
    "txn.min_transaction_gas_units",
    "txn.intrinsic_gas_per_byte",
    "txn.dependency_per_module",
    "txn.dependency_per_byte",
)
CALLS = {
    "pay": ("0x1::aptos_account::transfer", ["0xb0b", 100]),
    "pay somebody new": ("0x1::aptos_account::transfer", ["0x777123", 100]),
    "pay too much": ("0x1::aptos_account::transfer", ["0xb0b", 10**18]),
    "register": ("0xcafe::registry::register", ["forecast"]),
    "release": ("0xcafe::registry::release", ["mine"]),
    "hand over": ("0xcafe::registry::transfer", ["mine", "0xb0b"]),
    "order": ("0xb00c::order_book::place", [True, 7, 3]),
    "deposit": ("0xfa17::vault::deposit", [1000]),
    "long name": ("0xcafe::registry::register", ["n" * 900]),
}
VIEWS = {
    "depth": ("0xb00c::order_book::depth", []),
    "balance": ("0xfa17::vault::balance_of", ["0xa11ce"]),
    "size": ("0xcafe::registry::size", []),
    "now": ("0x1::timestamp::now_microseconds", []),
}


class Bench:
    """A ledger whose schedule is replaced again and again, and calls that are simulated under each."""

    def __init__(self, ledger: embedded.Ledger, node: toolkit.Node) -> None:
        self.ledger, self.node = ledger, node

    def simulate(self) -> dict[str, Any]:
        """Simulate every call at the head."""
        requests = {
            name: toolkit.SimulationRequest(
                toolkit.EntryFunction(function, arguments=arguments),
                sender="0xa11ce",
                max_gas_amount=2_000_000,
                gas_unit_price=100,
                fee_payer="0x0",
            )
            for name, (function, arguments) in CALLS.items()
        }
        return {name: self.node.simulate(request) for name, request in requests.items()}

    def run(self) -> toolkit.Run:
        """Read every view at the head."""
        calls = {name: toolkit.ViewFunction(view, arguments=given) for name, (view, given) in VIEWS.items()}
        return toolkit.Study(calls=calls, versions=[self.node.ledger().version], node=self.node).run(progress=False)

    def replace(self, schedule: GasSchedule) -> None:
        """Put another schedule in force."""
        done = self.ledger.set_gas_schedule(Schedule(schedule.feature_version, schedule.entries))
        assert done.success, done.output.vm_status


@pytest.fixture(scope="module")
def bench():
    """Return a bench of this module's own ledger."""
    ledger = embedded.Ledger.with_history(seed=3, versions=600)
    ledger.fund("0xa11ce")
    ledger.commit("0xcafe::registry::register", "mine", sender="0xa11ce")
    with embedded.serve(ledger, port=0) as url, toolkit.connect(url, cache=None) as node:
        yield Bench(ledger, node)


def assert_within(frame: Any, simulation: Any) -> list[float]:
    """Check that each part of a simulation lies in its interval; return how wide the intervals are."""
    gas = simulation.gas
    truth = {
        "execution": gas.execution_gas_units,
        "io": gas.io_gas_units,
        "storage": gas.storage_fee_octas / 100,
        "refund": gas.storage_fee_refund_octas / 100,
        "total": gas.total_charge_gas_units,
    }
    widths = []
    for row in frame.to_dict("records"):
        low, high, value = row["low"], row["high"], truth[row["part"]]
        assert low <= value, (row, value)
        if not _is_null(high):
            assert value <= high, (row, value)
            widths.append(high - low)
    return widths


def _is_null(value: object) -> bool:
    return bool(pd.isna(value))


FACTORS = st.sampled_from([0.1, 0.5, 1, 1, 1, 2, 3.7, 5])
SCHEDULES = st.fixed_dictionaries(
    {group: st.one_of(FACTORS, st.lists(FACTORS, min_size=1, max_size=7)) for group in (*GROUPS, *SINGLE)}
    | {
        "txn.large_transaction_cutoff": st.sampled_from([0, 100, 600, 600, 2_000]),
        "txn.gas_unit_scaling_factor": st.sampled_from([1_000_000, 1_000_000, 500_000]),
    }
)


def drawn_schedule(base: GasSchedule, drawn: dict[str, Any]) -> GasSchedule:
    """Return a schedule: each group with one factor, or with factors that take turns over its parameters."""
    entries = dict(base.entries)
    for group, factors in drawn.items():
        if isinstance(factors, int) and group not in {*GROUPS, *SINGLE}:
            entries[group] = factors
            continue
        several = factors if isinstance(factors, list) else [factors]
        for place, name in enumerate(sorted(name for name in entries if name.startswith(group))):
            entries[name] = max(min(entries[name], 1), round(entries[name] * several[place % len(several)]))
    return GasSchedule(base.feature_version, entries)


BASE = released_schedule("v1.41.0")


@settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(before=SCHEDULES, after=SCHEDULES)
def test_the_truth_lies_in_the_interval(bench, before, after):
    """Random schedules before and after: every part of every call, and every view, is charged within its interval."""
    base = GasSchedule(BASE.feature_version, BASE.entries)
    one, two = drawn_schedule(base, before), drawn_schedule(base, after)
    bench.replace(one)
    simulations, run = bench.simulate(), bench.run()
    frames = {name: toolkit.forecast(simulation, two) for name, simulation in simulations.items()}
    views = toolkit.forecast(run, two, node=bench.node).set_index("label")
    bench.replace(two)
    for name, simulation in bench.simulate().items():
        assert simulation.vm_status == simulations[name].vm_status, name
        assert_within(frames[name], simulation)
    for name, (view, arguments) in VIEWS.items():
        gas = bench.node.view(view, arguments=arguments).gas_used
        assert views.loc[name, "low"] <= gas <= views.loc[name, "high"], (name, gas, views.loc[name].to_dict())


def test_the_same_schedule_costs_the_same(bench):
    """Without a change every interval is the amount itself, with nothing unknown."""
    simulations = bench.simulate()
    frame = toolkit.forecast(list(simulations.values()), bench.node.gas_schedule())
    assert (frame["low"] == frame["now"]).all()
    assert (frame["high"] == frame["now"]).all()
    assert frame["reasons"].map(len).eq(0).all()
    assert frame.columns.tolist() == FORECAST.names


def test_intervals_are_narrow_where_much_is_known(bench):
    """All prices x10 leave the rounding; a new intrinsic gas one unit; io and storage stay if execution changes."""
    bench.replace(GasSchedule(BASE.feature_version, BASE.entries))
    simulation = bench.simulate()["pay"]
    prices = {"instr.*": "x10", "aptos_framework.*": "x10", "move_stdlib.*": "x10", "table.*": "x10"}
    prices |= {"txn.min_transaction_gas_units": "x10", "txn.intrinsic*": "x10", "txn.dependency*": "x10"}
    prices |= {"txn.storage_io*": "x10", "txn.storage_fee_per*": "x10"}
    prices |= {"txn.keyless.*": "x10", "txn.slh_dsa*": "x10"}
    found = toolkit.forecast(simulation, prices).set_index("part")
    assert found.loc["execution", "high"] - found.loc["execution", "low"] <= 9
    assert found.loc["io", "high"] - found.loc["io", "low"] <= 9
    assert found.loc["total", "high"] - found.loc["total", "low"] <= 10
    assert found.loc["storage", "low"] == found.loc["storage", "high"] == 10 * found.loc["storage", "now"]
    cheaper = toolkit.forecast(simulation, {"txn.min_transaction_gas_units": 1_500_000}).set_index("part")
    assert cheaper.loc["execution", "high"] - cheaper.loc["execution", "low"] <= 1
    assert cheaper.loc["execution", "high"] < cheaper.loc["execution", "now"]
    work = toolkit.forecast(simulation, {"instr.*": "x10"}).set_index("part")
    for part in ("io", "storage", "refund"):
        assert work.loc[part, "low"] == work.loc[part, "high"] == work.loc[part, "now"]
    assert "x1 to x10" in " ".join(work.loc["execution", "reasons"])


def test_a_new_parameter_has_no_upper_bound(bench):
    """How often it would be charged is not known: the upper bound is null, and the reason names it."""
    simulation, now = bench.simulate()["pay"], bench.node.gas_schedule()
    new = GasSchedule(now.feature_version + 1, now.entries | {"instr.leap.base": 10})
    found = toolkit.forecast(simulation, new).set_index("part")
    assert found["high"].isna().to_dict() == {
        "execution": True,
        "io": False,
        "storage": False,
        "refund": False,
        "total": True,
    }
    assert "instr.leap.base" in found.loc["execution", "reasons"][0]
    assert "gas feature version" in found.loc["io", "reasons"][-1]
    assert found.loc["total", "low"] == found.loc["total", "now"]


def test_committed_transactions_take_the_schedule_before_them(bench):
    """A committed transaction is forecast from the schedule it ran under; without a node or a schedule it is refused."""
    bench.replace(GasSchedule(BASE.feature_version, BASE.entries))
    done = bench.ledger.commit("0x1::aptos_account::transfer", "0xb0b", 5, sender="0xa11ce")
    doubled = proposed_schedule(GasSchedule(BASE.feature_version, BASE.entries), {"instr.*": "x2"})
    bench.replace(doubled)
    transaction = bench.node.transaction(done.version)
    found = toolkit.forecast(transaction, doubled, node=bench.node).set_index("part")
    assert found.loc["execution", "high"] > found.loc["execution", "now"]
    assert toolkit.forecast(transaction, doubled, current=doubled)["high"].eq(found["now"].to_list()).all()
    with pytest.raises(InputError, match="pass node="):
        toolkit.forecast(transaction, doubled)


def test_what_has_no_gas_says_so(bench):
    """A discarded simulation and a view that fails have no interval, and why."""
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    discarded = bench.node.simulate(call, sender="0xa11ce", sequence_number=0, gas_unit_price=100, max_gas_amount=1000)
    [row] = toolkit.forecast([discarded], {"instr.*": "x2"}).to_dict("records")
    assert _is_null(row["low"])
    assert "SEQUENCE_NUMBER_TOO_OLD" in row["reasons"][0]
    starved = bench.node.simulate(call, sender="0xa11ce", fee_payer="0x0", gas_unit_price=100, max_gas_amount=4)
    assert "Out of gas" in starved.vm_status
    rows = toolkit.forecast(starved, {"instr.*": "x2"})
    assert rows["low"].isna().all()
    assert "hit a limit" in rows["reasons"].iloc[0][0]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"instr.ad": 5}, r"no parameter instr\.ad; to forecast"),
        ({"nothing.*": "x2"}, "no parameter nothing"),
        ({"instr.add": "ten"}, "expected a whole number, or a factor"),
        ({"instr.add": -1}, "expected a whole number, or a factor"),
        ({"instr.add": "x-2"}, "expected a whole number, or a factor"),
        ({"instr.add": True}, "expected a whole number, or a factor"),
        ({3: 4}, "expected the name of a parameter"),
        (5, "expected a GasSchedule"),
        ("instr.*=x10", "expected a GasSchedule"),
    ],
)
def test_schedules_that_cannot_be_used_are_refused(bench, schedule, message):
    """Misspelt names, values that are neither numbers nor factors, and other types, each in its words."""
    with pytest.raises(InputError, match=message):
        toolkit.forecast(bench.simulate()["pay"], schedule)


@pytest.mark.parametrize("observed", [5, "run", {"a": 1}, [5]])
def test_what_was_not_observed_is_refused(observed):
    """Only runs, simulations and committed transactions have gas to start from."""
    with pytest.raises(InputError, match="expected a Run, results of"):
        toolkit.forecast(observed, {"instr.*": "x2"})


def test_factors_round_to_whole_numbers():
    """A factor applies to every parameter of the pattern; later entries come after earlier ones."""
    before = GasSchedule(1, {"instr.add": 15, "instr.sub": 5, "txn.x": 1})
    assert proposed_schedule(before, {"instr.*": "x0.5", "instr.sub": 9}).entries == {
        "instr.add": 8,
        "instr.sub": 9,
        "txn.x": 1,
    }


@pytest.fixture(scope="module")
def folder(bench, tmp_path_factory):
    """Return the folder of a run of two views and a simulation."""
    where = tmp_path_factory.mktemp("forecast") / "run"
    calls = [
        {"label": "depth", "view": "0xb00c::order_book::depth"},
        {
            "label": "pay",
            "simulate": "0x1::aptos_account::transfer",
            "arguments": ["0xb0b", 1],
            "sender": "0xa11ce",
            "max_gas_amount": 10_000,
        },
        {"label": "paid", "committed": "0x1::aptos_account::transfer", "versions": "0:600"},
    ]
    study = toolkit.Study(calls=calls, versions=[100, 600], node=bench.node.url)
    study.run(where, progress=False)
    return where


def test_the_last_observation_of_each_call_of_a_run(folder, bench):
    """A view has its total, simulations and committed transactions all parts; the schedules are those of their versions."""
    run = toolkit.Run.open(folder)
    frame = toolkit.forecast(run, {"instr.*": "x2"})
    assert frame.groupby("label")["part"].agg(list).to_dict() == {
        "depth": ["total"],
        "paid": ["execution", "io", "storage", "refund", "total"],
        "pay": ["execution", "io", "storage", "refund", "total"],
    }
    last = toolkit.Run.open(folder).observations
    view = last[last["label"] == "depth"]
    assert frame.set_index("label").loc["depth", "now"] == view.sort_values("ledger_version")["gas_used"].iloc[-1]
    assert (frame["low"] <= frame["now"]).all()
    assert (frame["now"] <= frame["high"]).all()
    assert frame["node"].eq(bench.node.url).all()


def test_a_committed_call_of_a_run_ran_under_the_schedule_before_it(bench):
    """The transaction that replaced the schedule was charged by the old one: forecast under the new one, it differs."""
    now = bench.node.gas_schedule()
    new = proposed_schedule(now, {"txn.min_transaction_gas_units": "x2"})
    bench.replace(new)
    version = bench.node.ledger().version
    call = {
        "label": "replace",
        "committed": "0x1::gas_schedule::set_gas_schedule",
        "versions": f"{version - 5}:{version}",
    }
    run = toolkit.Study(calls=[call], versions=[version], node=bench.node).run(progress=False)
    found = toolkit.forecast(run, new, node=bench.node).set_index("part")
    assert found.loc["execution", "low"] > found.loc["execution", "now"]
    bench.replace(now)


def test_the_command(folder, bench, command, tmp_path):
    """Totals as a table; all parts, JSON and files on request; a schedule as pairs or a version."""
    shown = command("forecast", str(folder), "--schedule", "instr.*=x10")
    assert shown.returncode == 0, shown.stderr
    assert "total" in shown.stdout
    assert "execution" not in [line.split()[1] for line in shown.stdout.splitlines()[1:] if len(line.split()) > 2]
    one = command("forecast", str(folder), "--schedule", "instr.*=x10", "--json")
    assert one.stdout.count('"execution"') == 2
    same = command("forecast", str(folder), "--schedule", "600", "--json")
    assert same.returncode == 0, same.stderr
    out = tmp_path / "forecast.csv"
    assert command("forecast", str(folder), "--schedule", "instr.*=x10", "--out", str(out)).returncode == 0
    assert len(out.read_text("utf-8").splitlines()) == 12


@pytest.mark.parametrize("texts", [["nonsense"], ["instr.*=x10", "600"], ["/nowhere.json"], ["instr.add=ten"]])
def test_schedules_that_no_command_reads(folder, command, texts):
    """Each is one line on stderr with what was expected, and exit code 2."""
    found = command("forecast", str(folder), *(part for text in texts for part in ("--schedule", text)))
    assert found.returncode == 2
    assert "expected" in found.stderr
    assert len(found.stderr.splitlines()) == 1
