"""A node that goes away amid a run: the run stops, keeps its answers, and what got none is read again."""

from __future__ import annotations

import itertools
import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tests.unit.client.fakes import URL, answer, ledger, refused
from tests.unit.gas.observed import manifest, row, table
from tests.unit.gas.test_runs import HEAD, RISE, UPGRADE, at, gas_at, made_node, planned, rows, run
from toolkit.cli._studies import _print_run
from toolkit.client._node import Node
from toolkit.client._versions import FindSteps
from toolkit.errors import NodeUnreachable, StudyError
from toolkit.gas._calls import Call
from toolkit.gas._origin import Origin
from toolkit.gas._study import Run
from toolkit.gas.runs._collector import heard
from toolkit.gas.runs._reader import _observe_range
from toolkit.gas.runs._store import RunStore

SEARCH = FindSteps("0:-1", initial=9, max_requests=200)
GONE = refused(503, "internal_error", head=ledger(HEAD))


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch):
    monkeypatch.setattr("toolkit.client._http.RetryPolicy.wait_s", lambda *_, **__: 0.0)


def dying(after, *, max_in_flight=64):
    """Return a node that answers so many views, then nothing at all, and its transport."""
    _, fake = made_node()
    node = Node(URL, transport=fake, max_in_flight=max_in_flight)
    views = itertools.count()

    def view(query, _):
        if next(views) < after:
            return answer(["1"], gas=gas_at(at(query)), head=ledger(HEAD))
        fake.routes |= {where: GONE for where in fake.routes if where != "POST /view"}
        return GONE

    fake.routes["POST /view"] = view
    return node, fake


def refusing(*versions):
    """Return a node that is there but gives no answer at some versions."""
    view = lambda query, _: GONE if at(query) in versions else answer(["1"], gas=gas_at(at(query)), head=ledger(HEAD))  # noqa: E731
    return made_node({"POST /view": view})[0]


@pytest.fixture(scope="module")
def whole_digest(tmp_path_factory):
    """Return the digest of the run that no outage stopped."""
    return run(tmp_path_factory.mktemp("whole") / "run", versions="0:2500").digest


@pytest.mark.parametrize(("executor", "in_flight"), [(None, 1), (None, 64), ("threads:2", 64)])
def test_a_node_that_dies_stops_the_run(tmp_path, monkeypatch, whole_digest, executor, in_flight):
    """A plan of 2,501 readings: the run stops soon, what was checked is kept, and the same call completes it."""
    monkeypatch.setattr(Node, "with_share", lambda node, _: nullcontext(node))
    node, fake = dying(900, max_in_flight=in_flight)
    with pytest.raises(NodeUnreachable, match=r"no longer responds .*run the same study into"):
        run(tmp_path / "run", node=node, versions="0:2500", executor=executor)
    assert len(fake.sent("POST /view")) < 2_000
    left = Run.open(tmp_path / "run")
    assert not left.complete
    if executor is None:
        assert 600 < len(left.observations) <= 900 + 99 * (in_flight > 1)  # up to the last check of the ledger
    found = run(tmp_path / "run", versions="0:2500")
    assert (found.complete, found.digest, found.manifest["attempts"]) == (True, whole_digest, 2)


def test_a_range_does_not_begin_on_a_node_that_is_gone(monkeypatch):
    """What still waited for a worker ends at once: no call asks for its module, one after the other."""
    monkeypatch.setattr(Node, "with_share", lambda node, _: nullcontext(node))
    node, fake = made_node({"GET ": GONE, "GET /accounts/0x1/module/m": GONE})
    call = Call(view="0x1::m::count")
    with pytest.raises(NodeUnreachable, match=r"no longer responds \(before reading a range of calls\)"):
        _observe_range(node, Origin("n", "abc", model=False, chain_id=4), [(call, version) for version in range(100)])
    assert fake.sent("POST /view") == []
    assert len(fake.sent("GET /accounts/0x1/module/m")) < 20


def test_a_search_whose_node_dies_is_not_sealed(tmp_path):
    """Few readings and no long stretch of silence: the last ones and the node itself tell."""
    whole = run(tmp_path / "whole", versions=SEARCH)
    with pytest.raises(NodeUnreachable, match="got no response"):
        run(tmp_path / "run", node=dying(12)[0], versions=SEARCH)
    assert not Run.open(tmp_path / "run").complete
    found = run(tmp_path / "run", versions=SEARCH)
    assert found.digest == whole.digest
    assert found.steps["cause"].tolist() == ["schedule", "code"]


def test_what_got_no_answer_is_read_again(tmp_path, capsys):
    """A complete run with rows of an outage says so; the same call replaces only these rows."""
    whole = run(tmp_path / "whole")
    first = run(tmp_path / "run", node=refusing(0, 5_000))
    assert first.complete
    assert first.manifest["counts"] == {"observations": 21, "failures": 2, "unanswered": 2}
    _print_run(first, {}, as_json=False)
    assert "2 calls got no response; repeat the command" in capsys.readouterr().out
    node, fake = made_node()
    again = run(tmp_path / "run", node=node)
    assert planned(fake) == [0, 5_000]
    assert rows(again) == rows(whole)
    assert (again.digest, again.manifest["resumed_rows"]) == (whole.digest, 19)
    _print_run(again, {}, as_json=False)
    assert "no answer" not in capsys.readouterr().out


def test_pages_that_got_no_answer_are_read_again(tmp_path):
    """Committed transactions too: the rows of failed pages go, and nothing is there twice."""
    calls = {"paid": {"committed": "0x1::m::pay"}}
    whole = run(tmp_path / "whole", calls=calls, versions="100:349")
    down = made_node({"GET /transactions": GONE})[0]
    assert run(tmp_path / "run", node=down, calls=calls, versions="100:349").manifest["counts"]["unanswered"] == 3
    found = run(tmp_path / "run", calls=calls, versions="100:349")
    assert (rows(found), found.digest) == (rows(whole), whole.digest)


def test_a_node_that_dies_before_causes_are_told_completes_nothing(tmp_path):
    """All rows are there, no cause is: the run is not complete, and going on reads steps and causes alone."""
    node, fake = made_node()
    down = {where: GONE for where in fake.routes if where not in {"POST /view", "GET /accounts/0x1/module/m"}}

    def first_cause(*_):
        fake.routes |= down
        return GONE

    # Without its transaction a step has no cause at all, whatever the other step has read by then.
    fake.routes[f"GET /transactions/by_version/{RISE}"] = first_cause
    with pytest.raises(NodeUnreachable, match="causes of steps cannot be found"):
        run(tmp_path, node=node)
    node, fake = made_node()
    assert run(tmp_path, node=node).steps["cause"].tolist() == ["schedule", "code"]
    assert planned(fake) == [UPGRADE - 1]  # the steps were not stored, so both ends of each are read twice


def test_rows_that_could_not_be_confirmed_are_read_again(tmp_path):
    """The node dies after its last answer, so it is not known whether it was still the same ledger: nothing is kept."""
    whole = run(tmp_path / "whole")
    node, fake = made_node()
    fake.routes["POST /view"] = lambda query, _: (
        fake.routes.update({"GET ": GONE}) or answer(["1"], gas=gas_at(at(query)), head=ledger(HEAD))
    )
    with pytest.raises(NodeUnreachable, match=r"when its ledger was checked.*run the same study into"):
        run(tmp_path / "run", node=node)
    assert len(Run.open(tmp_path / "run").observations) == 0
    assert run(tmp_path / "run", node=made_node()[0]).digest == whole.digest


def test_unknown_causes_of_a_complete_run_are_looked_for_again(tmp_path):
    """The reads that would show the cause failed; once they work, the same call finds the causes without reading a view."""
    silent = {f"GET /transactions/by_version/{version}": GONE for version in (RISE, UPGRADE)}
    first = run(tmp_path, node=made_node(silent)[0], versions=SEARCH)
    assert first.complete
    assert first.steps["cause"].tolist() == ["unknown", "unknown"]
    node, fake = made_node()
    again = run(tmp_path, node=node, versions=SEARCH)
    assert again.steps["cause"].tolist() == ["schedule", "code"]
    assert fake.sent("POST /view") == []
    assert again.digest == first.digest


@pytest.mark.parametrize("silent", [[3], [3, 4, 9], list(range(3, 60)), list(range(60))])
def test_silence_of_a_node_that_is_there_is_passed_on(silent):
    """Rows without an answer are rows like others, in their order, as long as the node says what it is."""
    told = [row(version, error="http_503" if version in silent else None) for version in range(60)]
    assert list(heard(told, SimpleNamespace(info=lambda: None))) == told


def test_rows_without_an_answer_are_dropped_part_by_part(tmp_path, monkeypatch):
    """A part of nothing else goes, one without any stays as it is, and what is written next is not lost."""
    monkeypatch.setattr("toolkit.gas.runs._store.PART_ROWS", 2)
    store = RunStore(tmp_path)
    store.create(manifest())
    for first, second in ((None, None), (None, "http_503"), ("unreachable", "http_429"), ("vm_error", "unreachable")):
        start = store.rows()
        store.add(table(row(start, error=first), row(start + 1, error=second)))
    before = store.part_files()[0].stat().st_mtime_ns
    store.drop_unanswered()
    assert store.observations()["ledger_version"].tolist() == [0, 1, 2, 6]
    assert len(store.part_files()) == 3
    assert store.part_files()[0].stat().st_mtime_ns == before
    store.add(table(row(7), row(8)))
    assert store.observations()["ledger_version"].tolist() == [0, 1, 2, 6, 7, 8]


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_lost_steps_are_found_again(tmp_path, damage):
    """A complete run whose steps.parquet is gone or damaged says what to do, and that mends it."""
    first = run(tmp_path)
    place = tmp_path / "steps.parquet"
    if damage == "missing":
        place.unlink()
        told = Run.open(tmp_path).steps["explanation"].tolist()
        assert told == ["steps.parquet is missing; run the same study into the folder to find the causes again"] * 2
        again = run(tmp_path)
    else:
        place.write_bytes(place.read_bytes()[:-50])
        with pytest.raises(StudyError, match=r"steps.parquet cannot be read.*run the same study"):
            _ = Run.open(tmp_path).steps
        with pytest.warns(UserWarning, match="steps.parquet is damaged"):
            again = run(tmp_path)
    assert again.steps.equals(first.steps)
    assert again.digest == first.digest


def test_new_thresholds_reach_a_complete_run(tmp_path):
    """They are written, nothing is read, and the gate of a comparison knows them."""
    run(tmp_path)
    before = json.loads((tmp_path / "run.json").read_text())
    node, fake = made_node()
    again = run(tmp_path, node=node, thresholds={"percent": 2})
    assert fake.sent("POST /view") == []
    assert again.study.thresholds.percent == 2
    after = json.loads((tmp_path / "run.json").read_text())
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"study", "checked_at"}  # the head was looked at, and nothing new was there
