"""Forecasts under another gas schedule are what the embedded node then charges, to the gas unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs

import toolkit
from toolkit import embedded
from toolkit.embedded._meter import Schedule, released_schedule
from toolkit.errors import InputError
from toolkit.fork._schedule import proposed_schedule
from toolkit.frames._schema import FORECAST
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
    ledger = embedded.Ledger.with_history(versions=600, cache=True)
    ledger.fund("0xa11ce")
    ledger.commit("0xcafe::registry::register", "mine", sender="0xa11ce")
    with toolkit.connect(ledger, cache=None) as node:
        yield Bench(ledger, node)


def parts_of(simulation: Any) -> dict[str, int]:
    """Return the parts of what a simulation costs."""
    gas = simulation.gas
    parts = {"execution": gas.execution_gas_units, "io": gas.io_gas_units, "storage": gas.storage_fee_octas}
    return parts | {"refund": gas.storage_fee_refund_octas, "total": gas.total_charge_gas_units}


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
    max_examples=3,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(before=SCHEDULES, after=SCHEDULES)
def test_a_forecast_is_what_is_charged(bench, before, after):
    """Random schedules before and after: every part of every call, and every view, costs exactly what was forecast."""
    base = GasSchedule(BASE.feature_version, BASE.entries)
    one, two = drawn_schedule(base, before), drawn_schedule(base, after)
    bench.replace(one)
    simulations, run = bench.simulate(), bench.run()
    frames = {name: toolkit.forecast(simulation, two).set_index("part") for name, simulation in simulations.items()}
    views = toolkit.forecast(run, two, node=bench.node).set_index("label")
    bench.replace(two)
    for name, simulation in bench.simulate().items():
        assert frames[name]["now"].to_dict() == parts_of(simulations[name]), name
        assert frames[name]["forecast"].to_dict() == parts_of(simulation), name
        assert frames[name]["reason"].isna().all()
        assert frames[name]["outcome"].str.startswith("succeeded" if simulation.success else "failed").all()
    for name, (view, arguments) in VIEWS.items():
        assert views.loc[name, "forecast"] == bench.node.view(view, arguments=arguments).gas_used


def test_the_same_schedule_costs_the_same(bench):
    simulations = bench.simulate()
    frame = toolkit.forecast(list(simulations.values()), bench.node.gas_schedule())
    assert frame["change"].eq(0).all()
    assert frame.columns.tolist() == FORECAST.names
    assert frame["unit"].tolist() == ["gas units", "gas units", "octas", "octas", "gas units"] * len(CALLS)


def test_a_committed_transaction_runs_on_the_state_before_it(bench):
    """What it would have cost, although state and schedule have changed since; without a node it is refused."""
    bench.replace(GasSchedule(BASE.feature_version, BASE.entries))
    expected = bench.simulate()["pay"]
    done = bench.ledger.commit("0x1::aptos_account::transfer", "0xb0b", 100, sender="0xa11ce")
    doubled = proposed_schedule(GasSchedule(BASE.feature_version, BASE.entries), {"instr.*": "x2"})
    bench.replace(doubled)
    transaction = bench.node.transaction(done.version)
    found = toolkit.forecast(transaction, doubled, node=bench.node).set_index("part")
    assert found["reason"].isna().all()
    assert found.loc["total", "now"] == expected.gas_used
    assert found.loc["execution", "change"] > 0
    assert found.loc["io", "change"] == 0
    with pytest.raises(InputError, match="node="):
        toolkit.forecast(transaction, doubled)


def test_what_is_not_known_says_so(bench):
    """A view that has no gas, and an observation that is not what its state gives: no figure, but a reason."""
    calls = {"gone": toolkit.ViewFunction("0xcafe::registry::record_of", ["nobody"])}
    run = toolkit.Study(calls=calls, versions=[bench.node.ledger().version], node=bench.node).run(progress=False)
    [row] = toolkit.forecast(run, {"instr.*": "x2"}, node=bench.node).to_dict("records")
    assert pd.isna(row["forecast"])
    assert row["reason"]
    simulation = bench.simulate()["pay"]
    wrong = replace(simulation, transaction=structs.replace(simulation.transaction, gas_used_text="12345"))
    found = toolkit.forecast(wrong, {"instr.*": "x2"})
    assert found["forecast"].isna().all()
    assert found["reason"].str.contains("executed as it was").all()


def test_a_call_that_runs_out_of_gas_is_forecast_to_fail(bench):
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    tight = bench.node.simulate(call, sender="0xa11ce", gas_unit_price=100)
    limited = bench.node.simulate(call, sender="0xa11ce", gas_unit_price=100, max_gas_amount=tight.gas_used + 1)
    found = toolkit.forecast(limited, {"instr.*": "x100"})
    assert found["outcome"].str.startswith("failed").all()


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"instr.ad": 5}, r"no parameter instr\.ad \(did you mean instr\.a[dn]d\?\)"),
        ({"nothing.*": "x2"}, "no parameter nothing"),
        ({"instr.add": "ten"}, "expected a u64, or a factor"),
        ({"instr.add": -1}, "expected a u64, or a factor"),
        ({"instr.add": "x-2"}, "expected a u64, or a factor"),
        ({"instr.add": True}, "expected a u64, or a factor"),
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
    """A view has its total, simulations and committed transactions all parts."""
    run = toolkit.Run.open(folder)
    frame = toolkit.forecast(run, {"instr.*": "x2"}, node=bench.node)
    assert frame.groupby("label")["part"].agg(list).to_dict() == {
        "depth": ["total"],
        "paid": ["execution", "io", "storage", "refund", "total"],
        "pay": ["execution", "io", "storage", "refund", "total"],
    }
    view = run.observations[run.observations["label"] == "depth"]
    assert frame.set_index("label").loc["depth", "now"] == view.sort_values("ledger_version")["gas_used"].iloc[-1]
    assert frame["forecast"].notna().all(), frame["reason"].tolist()
    assert (frame["now"] <= frame["forecast"]).all()


def test_the_command(folder, bench, command, tmp_path):
    """Totals as a table; all parts, JSON and files on request; a schedule as pairs or a version."""
    shown = command("forecast", str(folder), "--schedule", "instr.*=x10")
    assert shown.returncode == 0, shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:4]] == ["depth", "pay", "paid"]
    assert "execution" not in shown.stdout
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
