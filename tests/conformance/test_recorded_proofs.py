"""Steps of committed transactions on the recorded framework: their cause is proved, or disproved, by executing them."""

from __future__ import annotations

import pytest

import toolkit
from tests.conformance import long_ledger
from tests.conformance import recorded_executions as recorded
from toolkit.gas._findings import Change
from toolkit.gas._observations import Cause
from toolkit.gas._steps import ALL_TRANSACTIONS
from toolkit.gas.causes._executed import proved_rows

pytestmark = pytest.mark.skipif(
    not recorded.FOLDER.is_dir(),
    reason="the recorded executions are not beside this checkout (../shared/data/executions)",
)
COUNT = 24


@pytest.fixture(scope="module")
def made():
    return long_ledger.ledger(COUNT)


def test_the_cause_of_a_step_of_a_study_is_proved(made):
    """The same transactions, executed with the old schedule and with the new one, cost what was paid on either side."""
    with made.serving() as served, toolkit.connect(served.url, cache=None) as node:
        calls = {"pay": {"committed": "0x1::gas_coin::transfer"}}
        run = toolkit.Study(calls=calls, versions="0:-1", node=node).run(progress=False)
        replayed = toolkit.replay(node, "0:-1", progress=False)
    [row] = run.steps.to_dict("records")
    print(f"\n{run.explain()}")
    assert (row["part"], row["cause"], row["proved"], row["executed"]) == ("execution", Cause.SCHEDULE, True, 16)
    assert row["version_after"] == made.versions[COUNT - 1]
    old, new = (int(replayed["execution_gas_units"].iloc[place]) for place in (0, -1))
    assert (row["gas_before"], row["gas_after"]) == (old, new)
    assert f"old gas schedule: {old}; with the new: {new}" in row["explanation"]
    # All but the transfer that is made to change the schedule, which no transfer does.
    assert int(replayed["verified"].sum()) == 2 * COUNT - 1


def test_a_change_that_moves_nothing_is_not_the_cause():
    """A step that coincides with a change of prices that the calls do not pay is not explained by it."""
    made = long_ledger.ledger(10, {"*bls12381*": "x50"})
    at = made.versions[9]
    change = Change(at, Cause.SCHEDULE, "changed the gas schedule")
    row = {"part": "execution", "stratum": ALL_TRANSACTIONS, "change_low": 2.0, "change_high": 3.0, "cause": "schedule"}
    versions = [version for version in made.versions if version != at]
    with made.serving() as served, toolkit.connect(served.url, cache=None) as node:
        [told] = proved_rows(node, [((change,), row)], {ALL_TRANSACTIONS: versions}, unit=100)
    assert (told["cause"], told["proved"], told["cause_parts"]) == (Cause.UNEXPLAINED, False, [])
    assert told["executed"] > 0


def test_of_two_changes_the_one_that_moves_the_gas_is_named(made):
    """Two changes that observations cannot distinguish: a schedule, and code at a version that wrote none."""
    at = made.versions[COUNT - 1]
    causes = (Change(at, Cause.SCHEDULE, "changed the gas schedule"), Change(at, Cause.CODE, "upgraded a module"))
    row = {"part": "execution", "stratum": ALL_TRANSACTIONS, "change_low": 5.0, "change_high": 7.0, "cause": "mixed"}
    versions = [version for version in made.versions if version != at]
    with made.serving() as served, toolkit.connect(served.url, cache=None) as node:
        [told] = proved_rows(node, [(causes, row)], {ALL_TRANSACTIONS: versions}, unit=100)
    assert "proved" not in told  # the code was not executed, so it is not excluded
    assert told["cause"] == "mixed"
