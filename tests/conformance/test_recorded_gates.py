"""Packages and prices that are not deployed, judged on recorded transactions of the real machine before they are."""

from __future__ import annotations

import pytest

import toolkit
from tests.conformance import recorded_executions as recorded
from tests.conformance.scenario_node import node_of, package_of, scenario
from toolkit.gas._paired import Pair
from toolkit.move import Bytes, decode_bcs
from toolkit.wire import SignedTransaction

pytestmark = pytest.mark.skipif(
    not recorded.FOLDER.is_dir(),
    reason="the recorded executions are not beside this checkout (../shared/data/executions)",
)

PUT = "0x7655c025e1fcc782efffa0678c0c735712b87e9bff72f5d427e161653c6af286::m::put"
TEACH = "0x479c9363b5abbbe9ca0068a55990e620b408f46af52df8d9f5b467eb59c79af1::robot::teach"


def test_a_package_is_judged_before_it_is_deployed(tmp_path):
    """The upgrade that the ledger made at step 10, on the ledger as it was before: the same call, exactly paired."""
    sent = scenario("upgrades and newcomers")
    [upgrade] = [one for one in sent if one.function == "0x1::code::publish_package_txn" and one.gas_used == 512]
    before = sent[: sent.index(upgrade)]
    build = tmp_path / "build" / "Up"
    (build / "bytecode_modules").mkdir(parents=True)
    for at, code in enumerate(package_of("up2")):
        (build / "bytecode_modules" / f"{at}.mv").write_bytes(code)
    metadata = SignedTransaction.from_bcs(upgrade.transaction).raw.payload.arguments[0]
    (build / "package-metadata.bcs").write_bytes(decode_bcs(Bytes(), metadata))
    with node_of([*before, upgrade]).serving() as served, toolkit.connect(served.url, cache=None) as node:
        versions = f"0:{served.versions[-2]}"
        found = toolkit.compare(node, code=build, functions=PUT, versions=versions, progress=False)
        gate = found.gate("2%")
        print(f"\n{found!r}\n{gate!r}")
        # The package adds a function; less than a gas unit of it is loading the larger module.
        assert found.counts == {pair.value: int(pair is Pair.SAME) for pair in Pair}
        row = found.transactions.iloc[0]
        assert row["verified"]
        assert row["gas_before"] == 435
        assert row["loaded"]
        again = toolkit.replay(node, [row["ledger_version"]], code=build, progress=False)
        assert again["changed_gas_used"].tolist() == [row["gas_after"]]
        assert gate.passed
        # After the upgrade, nobody has called it yet: nothing before counts.
        silent = toolkit.compare(node, code=build, functions=PUT, versions="0:-1", progress=False)
        assert silent.gate("2%").verdict == "could not judge"


def test_prices_are_judged_on_the_last_calls():
    with node_of(scenario("robot")).serving() as served, toolkit.connect(served.url, cache=None) as node:
        found = toolkit.compare(
            node, gas_schedule={"instr.*": "x1000"}, functions=TEACH, last=4, versions="0:-1", progress=False
        )
        print(f"\n{found!r}")
        row = found.calls.iloc[0]
        assert (row["transactions"], row["judged"]) == (4, 4)
        assert 0 < row["change_least"] <= row["change_median"] <= row["change_most"]
        assert found.gate("1%").verdict == "failed"
        same = toolkit.compare(node, gas_schedule={"instr.*": "x1"}, functions=TEACH, versions="0:-1", progress=False)
        assert same.counts[Pair.SAME] == same.calls["judged"].sum() == 6
        assert same.gate("0%").passed


def test_a_forecast_of_committed_transactions_is_their_replay_under_the_schedule():
    prices = {"instr.*": "x1000", "txn.storage_io_*": "x10"}
    with node_of(scenario("robot")).serving() as served, toolkit.connect(served.url, cache=None) as node:
        versions = served.versions[:6]
        transactions = [node.transaction(version) for version in versions]
        frame = toolkit.forecast(transactions, prices, node=node)
        found = frame[frame["part"] == "total"]
        replayed = toolkit.replay(node, versions, gas_schedule=prices, progress=False)
    assert found["ledger_version"].tolist() == versions
    assert found["forecast"].tolist() == replayed["changed_gas_used"].tolist()
    assert found["now"].tolist() == replayed["gas_used"].tolist()
    assert (found["change"] > 0).all()
    with served.serving(), toolkit.connect(served.url, cache=None) as node:
        transaction = node.transaction(versions[0])
        with pytest.raises(toolkit.InputError, match="no_such"):
            toolkit.forecast(transaction, {"no_such": 1}, node=node)
    served.sent[0].gas_used += 1
    with served.serving(), toolkit.connect(served.url, cache=None) as node:
        frame = toolkit.forecast(node.transaction(versions[0]), prices, node=node)
    assert frame["forecast"].isna().all()
    assert frame["reason"].notna().all()
