"""Taking up a run: the same study, shard, ledger and parts, or not at all."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import answer, ledger, refused
from tests.unit.gas.observed import change_manifest
from tests.unit.gas.test_runs import COUNT, HEAD, made_node, rows, run, transaction_at
from toolkit.errors import StudyError
from toolkit.gas._study import Run, Study


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
    monkeypatch.setattr("toolkit.client._same_ledger._PAUSES_S", ())
    broken(tmp_path, **hashed("a"))
    with pytest.raises(
        StudyError, match=r"of another ledger: .*expected transaction 10000 to be 0xa+, got 0xb+.*another folder"
    ):
        run(tmp_path, node=made_node(hashed("b"))[0])
    with pytest.raises(StudyError, match=r"expected transaction 10000 to be 0xa+, but it is missing"):
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
    """Nothing is lost by another study there: it begins anew."""
    broken(tmp_path)
    node, fake = made_node()
    other = run(tmp_path, node=node, versions="0:-1/5")
    assert (other.complete, len(other.observations)) == (True, 5)
    assert other.manifest["attempts"] == 1
    assert len(fake.sent("POST /view")) == 5


def test_a_part_that_was_lost_is_read_again(tmp_path):
    """Complete or not: what is not there any more is read again, and only that."""
    first = run(tmp_path)
    (place,) = (tmp_path / "parts").glob("*.parquet")
    place.unlink()
    node, fake = made_node()
    again = run(tmp_path, node=node)
    assert rows(again) == rows(first)
    assert again.digest == first.digest
    assert len(fake.sent("POST /view")) == 21
    assert again.manifest["attempts"] == 2


def test_a_part_cut_short_is_read_again(tmp_path):
    """Half a file, also of a complete run: set aside with a warning, its rows read again."""
    first = run(tmp_path)
    (place,) = (tmp_path / "parts").glob("*.parquet")
    place.write_bytes(place.read_bytes()[:-50])
    with pytest.raises(StudyError, match=r"cannot be read.*run the same study into this folder"):
        _ = Run.open(tmp_path).observations
    with pytest.warns(UserWarning, match="is damaged or truncated"):
        again = run(tmp_path)
    assert again.digest == first.digest


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


def test_another_shard_does_not_mix(tmp_path):
    """A folder with one shard refuses another, and the whole."""
    study = Study(node=made_node()[0], calls={"count": COUNT}, versions="0:100")
    study.run(tmp_path / "one", shard="1/2", progress=False)
    for other, name in (("2/2", "2/2"), (None, "1/1")):
        with pytest.raises(StudyError, match=f"has shard 1/2, not shard {name}"):
            study.run(tmp_path / "one", shard=other, progress=False)
    study.run(tmp_path / "whole", progress=False)
    with pytest.raises(StudyError, match="has a run of the whole study, not shard 1/2"):
        study.run(tmp_path / "whole", shard=(1, 2), progress=False)


def test_a_run_says_where_it_was_made(tmp_path):
    """Digests, environment, executor, anchor: what a reader needs to trust or repeat it."""
    manifest = run(tmp_path, node=made_node(hashed("a"))[0]).manifest
    assert manifest["nodes"][0]["anchor"] == {"version": HEAD, "transaction_hash": "0x" + "a" * 64}
    assert manifest["executor"] == "in this process"
    assert {"ledger-toolkit", "python", "platform", "pandas", "pyarrow"} <= manifest["environment"].keys()
    assert len(manifest["rows_digest"]) == len(manifest["study_digest"]) == 32
    assert (manifest["resumed_rows"], manifest["attempts"], manifest["shard"]) == (0, 1, None)


def test_a_folder_that_a_failed_start_made_is_not_left(tmp_path):
    """A plan that cannot be read leaves nothing behind, and a folder that was there stays."""
    from toolkit.errors import InputError

    for out in (tmp_path / "new", tmp_path / "there"):
        if out.name == "there":
            out.mkdir()
        with pytest.raises(InputError):
            run(out, versions="99999999:")
    assert [place.name for place in tmp_path.iterdir()] == ["there"]
