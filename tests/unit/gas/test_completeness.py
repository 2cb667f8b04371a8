"""Shards become one run: the run that one machine would have made, or a refusal that says why."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest

from tests.unit.client.fakes import answer, ledger
from tests.unit.gas.observed import change_manifest
from tests.unit.gas.test_runs import COUNT, HEAD, PAY, RISE, UPGRADE, made_node, transaction_at
from toolkit.client._versions import FindSteps
from toolkit.dtypes import read_parquet, write_parquet
from toolkit.errors import StudyError
from toolkit.gas._study import Run, Study
from toolkit.gas.runs._scan import rows_digest
from toolkit.gas.runs._store import RunStore
from toolkit.wire import ViewFunction

CALLS = {"count": COUNT, "more": ViewFunction("0x1::m::more"), "pay": PAY, "paid": {"committed": "0x1::m::pay"}}


def study(versions="0:9999/101", *, calls=None, node=None, title="t"):
    return Study(node=node or made_node()[0], calls=calls or CALLS, versions=versions, title=title)


def shards(tmp_path, of=3, **more):
    """Run every shard, as on a machine of its own."""
    return [
        study(**more).run(tmp_path / f"shard-{number}", shard=(number, of), progress=False).path
        for number in range(1, of + 1)
    ]


@pytest.mark.parametrize(
    ("versions", "of"),
    [
        ("0:9999/101", 2),
        ("0:9999:100", 5),
        ([5, 7, 6, 5, 9_000], 5),  # a shard without a version
        (FindSteps("0:9999", initial=9, max_requests=99), 5),  # a shard without a call
    ],
)
def test_merged_shards_are_the_run_of_one_machine(tmp_path, versions, of):
    """The same rows, in the same order, and the same steps; given in any order."""
    calls = CALLS if isinstance(versions, FindSteps) else {"count": COUNT, "pay": PAY}
    whole = study(versions, calls=calls).run(tmp_path / "whole", progress=False)
    merged = Run.merge(reversed(shards(tmp_path, of, versions=versions, calls=calls)), tmp_path / "merged")
    assert merged.complete
    assert merged.digest == whole.digest
    assert merged.manifest["counts"] == whole.manifest["counts"]
    assert merged.observations.drop(columns="observed_at").equals(whole.observations.drop(columns="observed_at"))
    told = ["label", "version_before", "version_after", "gas_before", "gas_after"]
    if merged.manifest["steps_between_shards"]:  # neither shard could locate them
        merged = study(versions, calls=calls).run(tmp_path / "merged", progress=False)
    assert merged.steps[told].equals(whole.steps[told])
    assert merged.steps.columns.tolist() == whole.steps.columns.tolist()
    assert len(merged.manifest["shards"]) == of


def test_the_cause_of_a_step_between_shards_is_found_when_the_node_is_asked(tmp_path):
    """The merge asks nobody and says so; the study run into the merged folder finds it and reads nothing again."""
    border = [RISE - 1, RISE, UPGRADE - 1, UPGRADE]
    paths = shards(tmp_path, 4, versions=border, calls={"count": COUNT})
    merged = Run.merge(paths, tmp_path / "merged")
    assert merged.steps["cause"].tolist() == ["unknown"] * 2
    assert "between two shards" in merged.steps["explanation"][0]
    assert merged.manifest["steps_between_shards"] == 2
    node, fake = made_node()
    asked = study(border, calls={"count": COUNT}, node=node).run(tmp_path / "merged", progress=False)
    assert fake.sent("POST /view") == []
    assert asked.steps["cause"].tolist() == ["schedule", "code"]
    assert "steps_between_shards" not in asked.manifest
    assert asked.digest == merged.digest


def test_causes_that_a_shard_found_are_kept(tmp_path):
    """A step within a shard needs no asking."""
    merged = Run.merge(
        shards(tmp_path, 1 + 1, versions=[RISE - 1, RISE, 9_000, 9_001], calls={"count": COUNT}), tmp_path / "m"
    )
    assert merged.steps["cause"].tolist() == ["schedule", "unknown"]


def test_a_missing_shard_is_named(tmp_path):
    """Nothing is merged that is not all there."""
    paths = shards(tmp_path, 4, calls={"count": COUNT})
    with pytest.raises(StudyError, match="shards are missing: 2/4, 4/4"):
        Run.merge([paths[0], paths[2]], tmp_path / "m")
    with pytest.raises(StudyError, match="got none"):
        Run.merge([], tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_shard_given_twice_is_named(tmp_path):
    """The same shard, from a copy: nothing is doubled."""
    paths = shards(tmp_path, 2, calls={"count": COUNT})
    shutil.copytree(paths[0], tmp_path / "copy")
    with pytest.raises(StudyError, match=r"are both shard 1/2"):
        Run.merge([*paths, tmp_path / "copy"], tmp_path / "m")


def test_shards_of_other_divisions_studies_and_histories_are_refused(tmp_path):
    """Thirds and halves, two titles, two ledgers: said, with the folders."""
    halves = shards(tmp_path / "halves", 2, calls={"count": COUNT})
    thirds = shards(tmp_path / "thirds", 3, calls={"count": COUNT})
    with pytest.raises(StudyError, match="some of 2, some of 3"):
        Run.merge([halves[0], thirds[1]], tmp_path / "m")
    other = shards(tmp_path / "titled", 2, calls={"count": COUNT}, title="another")
    with pytest.raises(StudyError, match="are shards of different studies"):
        Run.merge([halves[0], other[1]], tmp_path / "m")
    changed = answer(transaction_at(9_999) | {"hash": "0x" + "c" * 64}, head=ledger(HEAD))
    node = made_node({"GET /transactions/by_version/9999": changed})[0]
    reset = study(calls={"count": COUNT}, node=node).run(tmp_path / "reset", shard=(2, 2), progress=False)
    with pytest.raises(StudyError, match="cannot be merged: anchor of"):
        Run.merge([halves[0], reset.path], tmp_path / "m")


def test_runs_that_are_no_shards_or_not_complete_are_refused(tmp_path):
    """With what to do."""
    whole = study(calls={"count": COUNT}).run(tmp_path / "whole", progress=False)
    with pytest.raises(StudyError, match=r"is not the run of a shard, .*--shard 2/5"):
        Run.merge([whole.path], tmp_path / "m")
    paths = shards(tmp_path, 2, calls={"count": COUNT})
    change_manifest(paths[1], complete=False)
    with pytest.raises(StudyError, match=r"shard-2 is not complete; run its shard 2/2 again"):
        Run.merge(paths, tmp_path / "m")


@pytest.mark.parametrize("harm", ["row lost", "row doubled", "digit changed"])
def test_rows_that_are_not_those_of_the_shard_are_refused(tmp_path, harm):
    """A shard whose parts were changed on the way here does not pass."""
    paths = shards(tmp_path, 2, calls={"count": COUNT})
    (part,) = (paths[1] / "parts").glob("*.parquet")
    rows = read_parquet(part)
    if harm == "row lost":
        rows = rows.iloc[1:]
    elif harm == "row doubled":
        rows = rows.iloc[[0, *range(len(rows))]]
    else:
        rows["gas_used"] = rows["gas_used"].where(rows.index != 3, 11)
    write_parquet(rows.reset_index(drop=True), part)
    with pytest.raises(StudyError, match="shard-2 does not have the rows with which it was completed"):
        Run.merge(paths, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    assert sorted(place.name for place in tmp_path.iterdir()) == ["shard-1", "shard-2"]


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("lost", "1 observations of 'count' are missing"),
        ("doubled", "1 observations of 'count' are there more than once"),
        ("strange", "1 observations of 'count' are not in its plan"),
    ],
)
def test_shards_that_lie_about_their_rows_do_not_pass_the_plan(tmp_path, harm, words):
    """The whole is proved by the plan, whatever the shards say of themselves."""
    paths = shards(tmp_path, 2, calls={"count": COUNT})
    first, second = (read_parquet(next((path / "parts").glob("*.parquet"))) for path in paths)
    other = first.iloc[:1].assign(ledger_version=second["ledger_version"].iloc[:1] + 1)
    rows = {
        "lost": lambda: second.iloc[1:],
        "doubled": lambda: pd.concat([second, first.iloc[:1]]),
        "strange": lambda: pd.concat([second, other]),
    }[harm]()
    write_parquet(rows.reset_index(drop=True), next((paths[1] / "parts").glob("*.parquet")))
    change_manifest(paths[1], rows_digest=rows_digest(RunStore(paths[1])))
    with pytest.raises(StudyError, match=words):
        Run.merge(paths, tmp_path / "m")


def test_a_folder_with_something_in_it_is_not_taken(tmp_path):
    """An empty folder is; anything else stays as it is."""
    paths = shards(tmp_path, 2, calls={"count": COUNT})
    (tmp_path / "m").mkdir()
    assert Run.merge(paths, tmp_path / "m").complete
    with pytest.raises(StudyError, match="is not empty; choose another folder"):
        Run.merge(paths, tmp_path / "m")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StudyError, match="is not empty"):
        Run.merge(paths, tmp_path / "file")
