"""Taking up a run: the same study, ledger and parts, or not at all."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import answer, ledger, refused
from tests.unit.gas.observed import change_manifest
from tests.unit.gas.test_runs import (
    COUNT,
    HEAD,
    NEW,
    PAY,
    RISE,
    SCHEDULE,
    UPGRADE,
    at,
    made_node,
    planned,
    rows,
    run,
    transaction_at,
)
from toolkit import FindSteps
from toolkit.archive._lock import locked
from toolkit.errors import StudyError
from toolkit.gas._study import Run


def hashed(mark):
    """Return a route to the transaction at the head with a hash of one's own."""
    found = answer(transaction_at(HEAD) | {"hash": "0x" + mark * 64}, head=ledger(HEAD))
    return {f"GET /transactions/by_version/{HEAD}": found}


def broken(out, **more):
    """Leave a run that was interrupted at its first reading."""
    stop = {"POST /view": lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)}
    with pytest.raises(KeyboardInterrupt):
        run(out, node=made_node(stop | more)[0])


def test_a_ledger_that_began_anew_is_noticed(tmp_path, monkeypatch):
    """The same chain id, another transaction at the last version: the histories do not mix."""
    monkeypatch.setattr("toolkit.client._reads._PAUSES_S", ())
    broken(tmp_path, **hashed("a"))
    with pytest.raises(StudyError, match=r"expected transaction 10,000 to be 0xa+, got"):
        run(tmp_path, node=made_node(hashed("b"))[0])
    with pytest.raises(StudyError, match=r"expected transaction 10,000 to be 0xa+, but it is missing"):
        run(
            tmp_path, node=made_node({f"GET /transactions/by_version/{HEAD}": refused(404, "transaction_not_found")})[0]
        )
    assert run(tmp_path, node=made_node(hashed("a"))[0]).complete


@pytest.mark.parametrize("then", [refused(410, "version_pruned"), refused(403, "api_disabled")])
def test_a_history_that_cannot_be_looked_at_is_no_reason_to_stop(tmp_path, then):
    """Pruned meanwhile, or not offered: nothing speaks against going on."""
    broken(tmp_path, **hashed("a"))
    assert run(tmp_path, node=made_node({f"GET /transactions/by_version/{HEAD}": then})[0]).complete


def test_a_run_broken_off_before_its_first_row_does_not_block_the_folder(tmp_path):
    """Another study in the folder does not lose anything: it starts a new run."""
    broken(tmp_path)
    node, fake = made_node()
    other = run(tmp_path, node=node, versions="0:-1/5")
    assert (other.complete, len(other.observations)) == (True, 5)
    assert other.manifest["attempts"] == 1
    assert sorted(version for version in planned(fake) if version % 2_500 == 0) == [0, 2_500, 5_000, 7_500, 10_000]


def test_a_part_that_was_lost_is_read_again(tmp_path):
    """Whether the run is complete or not, only the missing rows are read again."""
    first = run(tmp_path)
    (place,) = (tmp_path / "parts").glob("*.parquet")
    place.unlink()
    node, fake = made_node()
    again = run(tmp_path, node=node)
    assert rows(again) == rows(first)
    assert again.digest == first.digest
    assert len(planned(fake)) == 21
    assert again.manifest["attempts"] == 2


def test_committed_transactions_of_a_lost_part_are_read_again(tmp_path):
    """How far pages were read is noted; where fewer rows are there than were found, that counts for nothing."""
    calls = {"paid": {"committed": "0x1::m::pay"}}
    first = run(tmp_path, calls=calls, versions="100:349")
    assert first.manifest["nodes"][0]["committed_read"] == {"ranges": [[100, 349]], "rows": 125}
    (place,) = (tmp_path / "parts").glob("*.parquet")
    place.unlink()
    node, fake = made_node()
    again = run(tmp_path, node=node, calls=calls, versions="100:349")
    assert len(fake.sent("GET /transactions")) == 3
    assert again.digest == first.digest


def test_pages_that_were_read_are_not_read_again(tmp_path):
    """A run broken off after its committed transactions goes on behind them."""
    calls = {"paid": {"committed": "0x1::m::pay"}}
    first = run(tmp_path, calls=calls, versions="100:349")
    change_manifest(tmp_path, complete=False)
    node, fake = made_node()
    assert run(tmp_path, node=node, calls=calls, versions="100:349").digest == first.digest
    assert fake.sent("GET /transactions") == []


def test_a_run_says_where_it_was_made(tmp_path):
    """Digests, environment, executor, anchor: what a reader needs to trust or repeat it."""
    manifest = run(tmp_path, node=made_node(hashed("a"))[0]).manifest
    assert manifest["nodes"][0]["anchor"] == {"version": HEAD, "transaction_hash": "0x" + "a" * 64}
    assert manifest["executor"] == "in this process"
    assert {"ledger-toolkit", "python", "platform", "pandas", "pyarrow"} <= manifest["environment"].keys()
    assert len(manifest["rows_digest"]) == len(manifest["study_digest"]) == 32
    assert (manifest["resumed_rows"], manifest["attempts"]) == (0, 1)


def test_a_folder_that_a_failed_start_made_is_not_left(tmp_path):
    """A plan that cannot be read leaves nothing behind, and a folder that was there stays."""
    from toolkit.errors import InputError

    for out in (tmp_path / "new", tmp_path / "there"):
        if out.name == "there":
            out.mkdir()
        with pytest.raises(InputError):
            run(out, versions="99999999:")
    assert [place.name for place in tmp_path.iterdir()] == ["there"]


# a complete run -----------------------------------------------------------------------------------------------


def versions_of(found):
    return found.observations["ledger_version"].tolist()


@pytest.mark.parametrize(
    ("versions", "head", "before", "new"),
    [
        ("-1", 10_500, [10_000], [10_500]),
        ("9998:-1", 10_002, [9_998, 9_999, 10_000], [10_001, 10_002]),
        ("0:-1/3", 12_000, [0, 5_000, 10_000], [12_000]),
        ("0:-1:3000", 12_500, [0, 3_000, 6_000, 9_000], [12_000]),
        ("0:-1:3000", 10_001, [0, 3_000, 6_000, 9_000], []),
        ("-2:", 20_000, [9_999, 10_000], [19_999, 20_000]),
        ([5, -1], 12_000, [5, 10_000], [12_000]),
        ("5000:11000:2000", 12_000, [5_000, 7_000, 9_000], [11_000]),
        ("0:100:50", 12_000, [0, 50, 100], []),
        ([5, 7], 12_000, [5, 7], []),
    ],
)
def test_a_complete_run_is_read_on_to_the_head(tmp_path, versions, head, before, new):
    """Rows that were read stay, only new versions are read, and what was there is reported; again changes nothing."""
    assert versions_of(run(tmp_path, versions=versions)) == before
    for wanted in (new, []):
        node, fake = made_node(head=head)
        found = run(tmp_path, node=node, versions=versions)
        assert (found.complete, versions_of(found)) == (True, [*before, *new])
        asked = [at(query) for query, _ in fake.sent("POST /view")]
        further = found.manifest["nodes"][0].get("further_requests", 0) if wanted else 0
        assert set(asked) >= set(wanted)
        assert not set(asked) & set(before)
        assert len(asked) - len(wanted) == further
        reached = before[-1] if wanted == new else [*before, *new][-1]
        assert (found.earlier.heads, [*found.earlier.age.reached.values()]) == ((head,), [reached])
        assert len(found.observations) - found.earlier.rows == len(wanted)
        assert Run.open(tmp_path).digest == found.manifest["rows_digest"]


def test_a_run_that_is_interrupted_while_it_is_read_on_is_continued(tmp_path):
    """Interrupted at any view, each row is stored once, for the versions of the first attempt, however far the head moves."""
    run(tmp_path, versions="9000:-1:500")
    broken_at = [0]

    def breaking(query, _):
        broken_at[0] += 1
        if broken_at[0] == 3:
            raise KeyboardInterrupt
        return answer(["1"], gas=5, head=ledger(12_000))

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, node=made_node({"POST /view": breaking}, head=12_000)[0], versions="9000:-1:500")
    assert not Run.open(tmp_path).complete
    found = run(tmp_path, node=made_node(head=13_000)[0], versions="9000:-1:500")
    assert versions_of(found) == list(range(9_000, 12_001, 500))
    assert versions_of(run(tmp_path, node=made_node(head=13_000)[0], versions="9000:-1:500"))[-1] == 13_000


def test_a_step_search_searches_what_is_new(tmp_path):
    """With a grid of its own from the last version on: the new step is exact, and the known ones are not sought again."""

    def view(query, _):
        version = int(query["ledger_version"])
        return answer(["1"], gas=33 if version >= 12_345 else 10, head=ledger(20_000))

    search = FindSteps("0:-1", initial=5, max_requests=100)
    first = run(tmp_path, node=made_node({"POST /view": view})[0], versions=search)
    assert first.steps.empty
    node, fake = made_node({"POST /view": view}, head=20_000)
    found = run(tmp_path, node=node, versions=search)
    assert found.steps[["version_before", "version_after"]].to_numpy().tolist() == [[12_344, 12_345]]
    assert len(fake.sent("POST /view")) <= 4 + 12 + 2  # a grid, a bisection, and both ends of the step again
    assert found.manifest["nodes"][0]["searches"] == [[0, 10_000], [10_000, 20_000]]


def test_a_simulation_is_made_again_at_the_head(tmp_path):
    """For every plan of the views, the old row stays, and the last row is of the current head."""
    calls = {"pay": PAY, "count": COUNT}
    first = run(tmp_path, calls=calls, versions="0:100:50")
    assert first.age.labels == ("pay",)
    node, fake = made_node(head=12_000)
    found = run(tmp_path, node=node, calls=calls, versions="0:100:50")
    assert len(fake.sent("POST /view")) == 0
    simulated = found.observations.query("source == 'simulate@now'")
    assert simulated["ledger_version"].tolist() == [10_000, 12_000]
    found = run(tmp_path, node=made_node(head=12_000)[0], calls=calls, versions="0:100:50")
    assert len(found.observations) == 5


def test_committed_transactions_are_read_on(tmp_path):
    """Only new pages are read; a window that has moved away from what was read is refused, and the run stays as it is."""
    calls = {"paid": {"committed": "0x1::m::pay"}}
    run(tmp_path / "a", calls=calls, versions="9800:-1")
    node, fake = made_node(head=10_250)
    found = run(tmp_path / "a", node=node, calls=calls, versions="9800:-1")
    assert len(fake.sent("GET /transactions")) == 3
    assert versions_of(found) == list(range(9_801, 10_250, 2))
    assert found.manifest["nodes"][0]["committed_read"]["ranges"] == [[9_800, 10_250]]
    assert found.manifest["nodes"][0]["timeline"]["last"] == 10_250
    own = {"paid": {"committed": "0x1::m::pay", "versions": "-100:"}}
    first = run(tmp_path / "b", calls=own, versions="0:10")
    with pytest.raises(
        StudyError, match=r"'paid': the run has transactions 9,901 to 10,000, .* 19,901 to 20,000, .*--fresh"
    ):
        run(tmp_path / "b", node=made_node(head=20_000)[0], calls=own, versions="0:10")
    assert Run.open(tmp_path / "b").complete
    again = run(tmp_path / "b", node=made_node(head=20_000)[0], calls=own, versions="0:10", fresh=True)
    assert (again.earlier, len(again.observations)) == (None, len(first.observations))


def test_causes_of_early_steps_outlive_their_evidence(tmp_path):
    """What explains a step may be pruned when the run is read on: its cause stays."""
    search = FindSteps("0:-1", initial=9, max_requests=200)
    first = run(tmp_path, versions=search)
    gone = refused(410, "version_pruned")
    routes = dict.fromkeys([SCHEDULE, *(f"GET /transactions/by_version/{at}" for at in (RISE, UPGRADE))], gone)
    routes["GET /accounts/0x1/module/m"] = lambda query, _: gone if int(query["ledger_version"]) < HEAD else answer(NEW)
    found = run(tmp_path, node=made_node(routes, head=10_100)[0], versions=search)
    assert found.steps["cause"].tolist() == first.steps["cause"].tolist() == ["schedule", "code"]


def test_a_run_is_started_over_if_that_is_asked_for(tmp_path):
    """Not before the node has answered; then a run of any study is replaced."""
    run(tmp_path, versions="0:100:50")
    gone = {"GET ": lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)}
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, node=made_node(gone)[0], versions="0:100:50", fresh=True)
    assert len(Run.open(tmp_path).observations) == 3
    with locked(tmp_path), pytest.raises(StudyError, match="in use by another run"):
        run(tmp_path, versions="0:100:50", fresh=True)
    assert len(Run.open(tmp_path).observations) == 3
    node, fake = made_node()
    found = run(tmp_path, node=node, versions="0:100:25", title="other", fresh=True)
    assert (found.earlier, versions_of(found), len(fake.sent("POST /view"))) == (None, [0, 25, 50, 75, 100], 5)
    assert found.manifest["attempts"] == 1
