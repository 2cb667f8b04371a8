"""What a simulation costs across ledger versions: a source of studies, frames and figures."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import toolkit
from tests.unit.fork import small_node
from toolkit.embedded import Ledger
from toolkit.errors import StudyError, VersionPruned
from toolkit.gas._observations import Source
from toolkit.gas._snapshot import check_snapshot, compare_snapshot, read_snapshot, snapshot_text, taken

PLACE = {"simulate": "0xb00c::order_book::place", "arguments": [True, 100, 5], "sender": "0xa11ce"}
AT_VERSIONS = PLACE | {"at": "version"}
REQUEST = toolkit.SimulationRequest(toolkit.EntryFunction(PLACE["simulate"], [True, 100, 5]), sender="0xa11ce")
BUMP = toolkit.SimulationRequest(
    toolkit.EntryFunction("0xcafe::counter::bump", ["0xaa"]), sender="0xaa", gas_unit_price=1, max_gas_amount=100_000
)


@pytest.fixture(scope="module")
def node():
    with toolkit.connect(Ledger.with_history(versions=600, cache=True)) as one:
        yield one


def test_a_frame_has_a_row_per_request_and_version(node):
    other = REQUEST.replace(sender="0xb0b")
    frames = toolkit.fetch_simulations(node, [REQUEST, other], [5, 100, 400], progress=False)
    rows = frames.transactions
    assert rows["request"].tolist() == [0, 0, 0, 1, 1, 1]
    assert rows["ledger_version"].tolist() == [5, 100, 400, 5, 100, 400]
    assert rows["error_code"].isna().tolist() == [False, True, True, False, True, True]  # published at version 10
    assert frames.changes["ledger_version"].isin([100, 400]).all()
    assert set(frames.events["request"]) == {0, 1}
    for at, version in enumerate((100, 400), start=1):
        alone = node.fork(version).simulate(REQUEST)
        assert (alone.gas_used, alone.ledger_version) == (rows["gas_used"].iloc[at], version)
    assert len(frames.results) == 6


def test_a_study_finds_the_steps_of_a_simulation_to_the_transaction(node, tmp_path):
    """The exact step, with its cause, as for a view; and the head gives what the node itself simulates."""
    study = toolkit.Study(calls={"place": AT_VERSIONS, "now": PLACE}, versions="0:-1/20", node=node)
    run = study.run(progress=False)
    rows = run.observations
    mine = rows[rows["source"] == Source.SIMULATE_AT_VERSION]
    assert len(mine) == 20
    assert mine["head_version"].isna().all()
    at_head = rows[rows["source"] == Source.SIMULATE].iloc[0]
    assert mine["gas_used"].iloc[-1] == at_head["gas_used"]
    assert mine["value_digest"].iloc[-1] == at_head["value_digest"]
    steps = run.steps
    assert set(steps["source"]) == {Source.SIMULATE_AT_VERSION}
    published = steps[steps["version_after"] == 10].iloc[0]
    assert (published["cause"], bool(published["exact"])) == ("code", True)
    exact = steps[steps["exact"] & steps["success_before"].fillna(value=False)]
    assert len(exact) > 0
    request = REQUEST.replace(gas_unit_price=100)
    for row in exact.itertuples():
        ends = [node.fork(at).simulate(request).gas_used for at in (row.version_before, row.version_after)]
        assert ends == [row.gas_before, row.gas_after]
    found = toolkit.compare(run.at(9), run.at(599), source="simulate@version")
    assert found.calls["label"].tolist() == ["place"]
    axes = toolkit.plots.gas_by_version(run.observations, steps=run.steps, ax=Figure().subplots())
    assert [line.get_gid() for line in axes.lines].count("gas-line") == 1
    frames = toolkit.fetch_simulations(node, REQUEST, "0:-1/9", progress=False)
    axes = toolkit.plots.gas_by_version(frames, ax=Figure().subplots())
    [line] = [line for line in axes.lines if line.get_gid() == "gas-line"]
    assert len(set(line.get_ydata()[1:])) >= 1
    page = toolkit.reports.write(run, tmp_path / "report.html").read_text("utf-8")
    assert "place" in page


def test_a_step_search_reads_what_it_needs(node):
    study = toolkit.Study(calls={"place": AT_VERSIONS}, versions=toolkit.FindSteps("0:-1", initial=5), node=node)
    run = study.run(progress=False)
    assert run.steps["exact"].all()
    assert 10 in run.steps["version_after"].tolist()
    assert len(run.observations) < 200


def test_a_study_file_says_at_which_versions(tmp_path, node):
    study = toolkit.Study(calls={"place": AT_VERSIONS}, versions="0:-1/3")
    assert toolkit.Study.load(study.save(tmp_path / "study.toml")) == study
    assert study != toolkit.Study(calls={"place": PLACE}, versions="0:-1/3")
    assert 'at = "version"' in study.to_toml()
    with pytest.raises(StudyError, match="`at`"):
        toolkit.Study(calls={"read": {"view": "0x1::chain_id::get", "at": "version"}})
    with pytest.raises(StudyError, match="at"):
        toolkit.Study(calls={"place": PLACE | {"at": "yesterday"}})


def test_a_run_continues_and_takes_an_executor(tmp_path, node):
    study = toolkit.Study(
        calls={"place": AT_VERSIONS, "depth": "0xb00c::order_book::depth"}, versions="100:599:50", node=node
    )
    alone = study.run(tmp_path / "a", progress=False)
    pooled = study.run(tmp_path / "b", executor="threads:2", progress=False)
    assert pooled.digest == alone.digest

    def stop(_, done, __):
        if done > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path / "c", progress=stop)
    assert study.run(tmp_path / "c", progress=False).digest == alone.digest


def test_bytecode_runs_on_the_state_of_each_version():
    """On a node with bytecode; what the state lacks is a row."""
    with small_node.node().serving() as served, toolkit.connect(served.url, cache=None) as node:
        served.oldest = 3
        rows = toolkit.fetch_simulations(node, BUMP, [2, 3, 4, 5, 9], progress=False).transactions
        assert rows["error_code"].tolist()[0] == "version_pruned"
        assert rows["success"].tolist()[1:] == [True] * 4
        committed = toolkit.replay(node, [4], progress=False)
        assert rows["gas_used"].iloc[1] == committed["gas_used"].iloc[0]
        with pytest.raises(VersionPruned):
            node.fork(2).simulate(BUMP)
        calls = {
            "bump": {"simulate": "0xcafe::counter::bump", "arguments": ["0xaa"], "sender": "0xaa", "at": "version"}
        }
        calls["bump"] |= {"gas_unit_price": 1, "max_gas_amount": 100_000}
        alone = toolkit.Study(calls=calls, versions="3:12", node=served.url).run(progress=False)
        assert alone.observations["success"].all()
        pooled = toolkit.Study(calls=calls, versions="3:12", node=served.url).run(executor="threads:2", progress=False)
        assert pooled.digest == alone.digest


def test_a_snapshot_has_simulations_at_versions(tmp_path, node):
    """At the last version of the run; a call that costs more, or fails otherwise, does not pass."""
    calls = {"place": AT_VERSIONS, "early": AT_VERSIONS | {"sender": "0xb0b"}}
    study = toolkit.Study(calls=calls, versions=[300, 599], node=node, thresholds="2%")
    run = study.run(progress=False)
    text = snapshot_text(taken(run))
    (tmp_path / "gas.toml").write_text(text)
    assert "[nodes.simulate_at_version]" in text
    gate = check_snapshot(compare_snapshot(read_snapshot(tmp_path / "gas.toml"), run))
    assert (gate.verdict, gate.judged) == ("passed", 2)
    cost = int(run.at(599).set_index("label").loc["place", "gas_used"])
    (tmp_path / "gas.toml").write_text(text.replace(f'"place" = {cost}', '"place" = 1'))
    gate = check_snapshot(compare_snapshot(read_snapshot(tmp_path / "gas.toml"), run))
    assert [one.label for one in gate.regressions] == ["place"]


def test_a_plan_says_what_it_does_not_count():
    """On a node with bytecode, an execution reads more than one value."""
    call = {"simulate": "0xcafe::counter::bump", "arguments": ["0xaa"], "sender": "0xaa", "at": "version"}
    with small_node.node().serving() as served:
        plan = toolkit.Study(calls={"bump": call}, versions="3:12", node=served.url).plan()
    assert plan.requests == (10, 10)
    assert "state values" in repr(plan)
