"""A run on disk: atomic, resumable, and careful with other people's files."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.unit.gas.observed import columns, frame, row
from toolkit.errors import StudyError
from toolkit.frames.schema import OBSERVATIONS, STEPS
from toolkit.gas import store as module
from toolkit.gas.store import RunStore

MANIFEST = {"study": {"title": "mine"}, "study_digest": "d", "nodes": [], "complete": False}


@pytest.fixture
def store(tmp_path):
    store = RunStore(tmp_path / "run")
    store.create(MANIFEST)
    return store


def files(store):
    return sorted(str(place.relative_to(store.path)) for place in store.path.rglob("*") if place.is_file())


def test_a_new_run_has_its_manifest(store):
    """run.json says what the run is of, and which format it has."""
    assert store.exists()
    assert store.manifest() == MANIFEST | {"format": 1}
    assert files(store) == ["run.json"]


def test_parts_are_read_back_in_their_order(store):
    """What was written comes back exactly, large numbers, nulls, times and description included."""
    first, second = [row(2, 2**64 - 1), row(1, error="x")], [row(3, None)]
    store.add_part(columns(*first))
    store.add_part(columns(*second))
    read = store.observations()
    pd.testing.assert_frame_equal(read, frame(*first, *second))
    assert read.attrs["toolkit"] == frame(row(1)).attrs["toolkit"]
    assert files(store) == ["parts/part-00000000.parquet", "parts/part-00000001.parquet", "run.json"]


def test_parts_reload_with_plain_pandas(store):
    """A flat frame needs no toolkit to be read."""
    store.add_part(columns(row(2, 2**64 - 1), row(1, error="x")))
    plain = pd.read_parquet(store.part_files()[0], dtype_backend="pyarrow")
    assert plain["gas_used"].tolist()[0] == 2**64 - 1
    assert plain["gas_used"].isna().tolist() == [False, True]


def test_nothing_observed_writes_nothing(store):
    """No rows, no part; the frame is empty with its schema."""
    store.add_part(columns())
    assert store.part_files() == []
    assert list(store.observations().columns) == OBSERVATIONS.names
    assert len(store.observations()) == 0


def test_a_part_after_a_gap_gets_a_new_number(store):
    """No part is ever written over."""
    for version in range(3):
        store.add_part(columns(row(version)))
    store.part_files()[1].unlink()
    store.add_part(columns(row(9)))
    assert [place.name for place in store.part_files()] == [f"part-{n:08d}.parquet" for n in (0, 2, 3)]


def test_more_than_ten_parts_keep_their_order(store):
    """Names are padded, so sorting by name is sorting by number."""
    for version in range(12):
        store.add_part(columns(row(version)))
    assert store.observations()["ledger_version"].tolist() == list(range(12))


def test_a_part_that_fails_leaves_nothing_behind(store, monkeypatch):
    """A full disk amid a part: an error that says so, the old parts, no half file."""
    store.add_part(columns(row(1)))
    before = files(store)

    def full(_, place):
        place.write_bytes(b"PAR1 half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_parquet", full)
    with pytest.raises(StudyError, match="could not be written: No space left on device"):
        store.add_part(columns(row(2)))
    assert files(store) == before
    assert store.observations()["ledger_version"].tolist() == [1]


def test_an_interrupt_amid_a_write_leaves_the_old_file(store, monkeypatch):
    """Ctrl-C while run.json is written: the manifest that was there stays whole."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write_manifest(MANIFEST | {"complete": True})
    monkeypatch.undo()
    assert store.manifest()["complete"] is False
    assert files(store) == ["run.json"]


def test_a_file_left_by_a_killed_write_is_not_a_part(store):
    """What was never moved into place does not count."""
    store.add_part(columns(row(1)))
    (store.path / "parts" / ".writing-abc").write_bytes(b"PAR1 half")
    assert store.observations()["ledger_version"].tolist() == [1]


def test_steps_are_there_once_written(store):
    """None tells that the run has not come that far."""
    assert store.steps() is None
    store.write_steps({name: [] for name in STEPS.names})
    assert list(store.steps().columns) == STEPS.names


def test_a_part_that_cannot_be_read_is_named(store):
    """A damaged file is said by name, with the way out."""
    store.add_part(columns(row(1)))
    store.part_files()[0].write_bytes(b"not parquet")
    with pytest.raises(StudyError, match=r"part-00000000\.parquet cannot be read.*move it away"):
        store.observations()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "not a run of format 1"),
        ('{"format": 2}', "not a run of format 1"),
        ("{}", "format 1"),
        ('"x"', "format 1"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_said_so(store, text, words):
    """Damaged, foreign or of a later format: never taken for a run."""
    (store.path / "run.json").write_text(text)
    with pytest.raises(StudyError, match=words):
        store.manifest()


def test_a_folder_without_a_run_says_so(tmp_path):
    """An empty folder is no run."""
    assert not RunStore(tmp_path).exists()
    with pytest.raises(StudyError, match=r"holds no run: run\.json: No such file"):
        RunStore(tmp_path).manifest()


def test_parts_without_a_manifest_are_not_taken_over(tmp_path):
    """Somebody's parts in the folder: nothing is mixed."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-00000000.parquet").write_bytes(b"x")
    with pytest.raises(StudyError, match="choose another folder"):
        RunStore(tmp_path).create(MANIFEST)
    assert not (tmp_path / "run.json").exists()


def test_a_file_where_the_folder_should_be_is_refused(tmp_path):
    """A path that is a file cannot become a folder."""
    (tmp_path / "run").write_text("x")
    with pytest.raises(StudyError, match="cannot be made"):
        RunStore(tmp_path / "run").create(MANIFEST)


def test_discarding_removes_the_runs_own_files_only(store):
    """Manifest, steps and parts go; a report and notes of the user stay."""
    store.add_part(columns(row(1)))
    store.write_steps({name: [] for name in STEPS.names})
    for name in ("notes.txt", "report.html", "parts/readme.md"):
        (store.path / name).write_text("keep me")
    store.discard("mine")
    assert files(store) == ["notes.txt", "parts/readme.md", "report.html"]
    assert not store.exists()


def test_another_studys_run_is_not_discarded(store):
    """A run of another title stays whole."""
    store.add_part(columns(row(1)))
    before = files(store)
    store.discard("another")
    assert files(store) == before


def test_discarding_nothing_is_no_error(tmp_path):
    """A missing folder has nothing to discard."""
    RunStore(tmp_path / "none").discard("mine")
    assert not (tmp_path / "none").exists()


def test_the_manifest_is_readable_json(store):
    """Keys sorted, one per line: it can be read and compared by eye."""
    text = (store.path / "run.json").read_text()
    assert json.loads(text)["format"] == 1
    assert text.endswith("}\n")
    assert text.count("\n") > 4
