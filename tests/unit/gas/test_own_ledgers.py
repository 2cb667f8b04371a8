"""Runs of a ledger that only this process has: a new one, and one that was saved and loaded."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

import toolkit
from toolkit.embedded import Ledger
from toolkit.errors import InputError, StudyError
from toolkit.gas._snapshot import check_snapshot, compare_snapshot, taken

VAULT = "0xfa17::vault::share_price"


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory) -> dict[str, Ledger]:
    new = Ledger.with_history(versions=400, cache=True)
    return {"new": new, "saved": Ledger.load(new.save(tmp_path_factory.mktemp("saved") / "ledger"))}


def study(node: object) -> toolkit.Study:
    return toolkit.Study(calls=[VAULT], versions="0:-1/20", node=node)


@pytest.mark.parametrize("name", ["new", "saved"])
@pytest.mark.usefixtures("no_figures")
def test_a_run_is_opened_continued_compared_and_reported(name, ledgers, tmp_path):
    """The run does not need the ledger; only the study does, to continue it."""
    before = study(ledgers[name]).run(tmp_path / "run", progress=False)
    run = toolkit.Run.open(tmp_path / "run")
    assert len(run.steps)
    assert "transaction" in run.explain()
    again = study(toolkit.connect(ledgers[name])).run(tmp_path / "run", progress=False)
    assert again.earlier.rows == len(run.observations)
    assert again.digest == before.digest
    assert toolkit.compare(run.at(100), run).gate("1000%").passed
    assert check_snapshot(compare_snapshot(taken(run), run)).passed
    report = toolkit.reports.write(run, tmp_path / "report.html").read_text()
    assert "embedded ledger" in report
    assert run.record.nodes[0].anchor.transaction_hash in report
    for needs_ledger in (run.study.run, lambda: run.connect("embedded ledger")):
        with pytest.raises((InputError, StudyError), match="which exists only in the process that created it; "):
            needs_ledger()


def test_a_ledger_that_grows_is_read_on_and_another_is_refused(ledgers, tmp_path):
    """The head may move; the transactions that were read may not."""
    ledger = ledgers["saved"]
    first = study(ledger).run(tmp_path / "run", progress=False)
    versions = set(first.observations["ledger_version"])
    ledger.fund("0xb0b", 1)
    again = study(ledger).run(tmp_path / "run", progress=False)
    assert again.earlier.heads == (ledger.head,) > (first.record.nodes[0].head,)
    assert set(again.observations["ledger_version"]) > versions
    with pytest.raises(StudyError, match="a run of another ledger"):
        study(Ledger.with_history(seed=4, versions=500)).run(tmp_path / "run", progress=False)


def test_the_dataset_of_a_run_has_its_observations(tmp_path):
    """Filters and columns apply as in the query; calling the method again sees newer rows."""
    run = toolkit.Study(calls=[VAULT], versions="3490:3510", node="embedded").run(tmp_path, progress=False)
    data = run.scan()
    assert data.schema.names == list(run.observations.columns)
    found = data.to_table(columns=["ledger_version"], filter=pc.field("gas_used") > 30)
    assert found["ledger_version"].to_pylist() == list(range(3502, 3511))
