"""A run on disk: atomic, resumable, and careful with other people's files."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.gas.observed import frame, manifest, row, table
from toolkit._present import files as opening
from toolkit.errors import StudyError
from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import OBSERVATIONS, STEPS
from toolkit.gas.runs import _store as module
from toolkit.gas.runs._store import PART_ROWS, RunStore


@pytest.fixture
def store(tmp_path):
    store = RunStore(tmp_path / "run")
    store.create(manifest(calls=("a", "b")))
    return store


def files(store):
    return sorted(str(place.relative_to(store.path)) for place in store.path.rglob("*") if place.is_file())


def many(first, count, **more):
    """Return a table of `count` rows from a version on, all alike but for the version."""
    one = table(row(first, **more))
    whole = pa.concat_tables([one] * count).combine_chunks()
    versions = pa.array(range(first, first + count), pa.int64())
    place = OBSERVATIONS.names.index("ledger_version")
    return whole.set_column(place, whole.schema.field(place), versions)


def test_a_new_run_has_its_manifest(store):
    """run.json says what the run is of, and which format it has."""
    assert store.exists()
    assert store.manifest() == manifest(calls=("a", "b"))
    assert json.loads(store.manifest().text())["format"] == 1
    assert files(store) == ["run.json"]


def test_rows_are_read_back_in_the_order_of_the_study(store):
    """What was written comes back exactly, large numbers, nulls, times and description included, by call and version."""
    store.add(table(row(2, 2**63 - 1, label="b"), row(1, error="x")))
    store.add(table(row(3, None)))
    read = store.observations()
    pd.testing.assert_frame_equal(read, frame(row(1, error="x"), row(3, None), row(2, 2**63 - 1, label="b")))
    assert read.attrs["toolkit"] == frame(row(1)).attrs["toolkit"]
    assert files(store) == ["parts/part-00000000.parquet", "run.json"]


def test_small_writes_share_a_part_until_it_is_full(store):
    """Only the last part is shorter than 10,000 rows; it is written again and again, longer each time."""
    store.add(many(0, PART_ROWS - 1))
    store.add(many(PART_ROWS - 1, 5))
    store.add(many(PART_ROWS + 4, 7))
    assert [pq.read_metadata(place).num_rows for place in store.part_files()] == [PART_ROWS + 4, 7]
    assert store.rows() == PART_ROWS + 11
    RunStore(store.path).add(many(PART_ROWS + 11, 9))
    assert [pq.read_metadata(place).num_rows for place in store.part_files()] == [PART_ROWS + 4, 16]
    assert store.observations()["ledger_version"].tolist() == list(range(PART_ROWS + 20))


def test_integers_are_delta_packed_and_texts_dictionaries(store):
    """A part is small: versions and gas as differences, each label once, all of it zstd with checksums of its pages."""
    store.add(many(10**9, PART_ROWS))
    (place,) = store.part_files()
    facts = pq.read_metadata(place).row_group(0)
    columns = {facts.column(at).path_in_schema: facts.column(at) for at in range(facts.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert "DELTA_BINARY_PACKED" in columns["ledger_version"].encodings
    assert "RLE_DICTIONARY" in columns["label"].encodings
    assert place.stat().st_size < 60_000


def test_parts_reload_with_plain_pandas(store):
    """A flat frame needs no toolkit to be read."""
    store.add(table(row(1, 2**63 - 1), row(2, error="x")))
    plain = pd.read_parquet(store.part_files()[0])
    pd.testing.assert_frame_equal(plain, store.observations())
    assert plain["gas_used"].tolist()[0] == 2**63 - 1
    assert plain["gas_used"].isna().tolist() == [False, True]


def test_parts_are_read_by_duckdb_and_polars_digit_by_digit(store):
    """The folder of parts, as it lies there, is a table for others too."""
    duckdb, polars = (
        pytest.importorskip("duckdb", reason="needs duckdb, of the test extra"),
        pytest.importorskip("polars", reason="needs polars, of the test extra"),
    )
    store.add(many(0, PART_ROWS, gas=2**63 - 1))
    store.add(table(row(2**63 - 1, 2**62 + 1, label="b"), row(7, error="x", label="b")))
    glob = str(store.path / "parts" / "*.parquet")
    wanted = list(zip(store.observations()["ledger_version"], store.observations()["gas_used"], strict=True))
    wanted = [(version, None if pd.isna(gas) else gas) for version, gas in wanted]
    relation = duckdb.read_parquet(glob).order("label, ledger_version").project("ledger_version, gas_used")
    assert relation.fetchall() == wanted
    read = polars.read_parquet(glob).sort("label", "ledger_version")
    assert list(zip(read["ledger_version"].to_list(), read["gas_used"].to_list(), strict=True)) == wanted


def test_nothing_observed_writes_nothing(store):
    """No rows, no part; the frame is empty with its schema."""
    store.add(table())
    assert store.part_files() == []
    assert list(store.observations().columns) == OBSERVATIONS.names
    assert len(store.observations()) == 0


def test_full_parts_are_never_written_over(store):
    """After a gap in the numbers the next part gets a new one, and names sort as numbers do."""
    for place in range(11):
        store.add(many(place * PART_ROWS, PART_ROWS))
    store.part_files()[1].unlink()
    store.add(table(row(10**9)))
    assert [place.name for place in store.part_files()] == [f"part-{n:08d}.parquet" for n in (0, *range(2, 12))]


def test_a_part_that_fails_leaves_nothing_behind(store, monkeypatch):
    """A full disk during a part gives an error that says so; the old part stays, and no half-written file."""
    store.add(table(row(1)))
    before = files(store)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(opening.os, "fsync", full)
    with pytest.raises(StudyError, match=r"could not be written: No space left on device"):
        store.add(table(row(2)))
    assert files(store) == before
    assert store.observations()["ledger_version"].tolist() == [1]
    monkeypatch.undo()
    store.add(table(row(2)))
    assert store.observations()["ledger_version"].tolist() == [1, 2]


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("moment", range(1, 13))
def test_a_kill_at_any_moment_of_writing_loses_and_doubles_nothing(store, monkeypatch, moment):
    """Whichever system call is the last: what was said to be written is there, once, and the rest can be written."""
    calls = itertools.count(1)

    def dying(real):
        def call(*arguments):
            if next(calls) == moment:
                raise Killed
            return real(*arguments)

        return call

    said = 0
    with monkeypatch.context() as patched:
        patched.setattr(module, "write_frame", dying(module.write_frame))
        patched.setattr(opening.os, "fsync", dying(opening.os.fsync))
        patched.setattr(Path, "replace", dying(Path.replace))
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # a killed process tidies nothing up
        with contextlib.suppress(Killed):
            for _ in range(4):
                store.add(many(said, PART_ROWS // 2 + 1))
                said += PART_ROWS // 2 + 1
    again = RunStore(store.path)
    again.mend()
    assert not list(store.path.rglob(".*"))
    found = again.observations()["ledger_version"].tolist()
    assert found == list(range(len(found)))
    assert len(found) in {said, said + PART_ROWS // 2 + 1}  # the write that was cut off may have come through
    again.add(many(len(found), 5))
    assert again.rows() == len(found) + 5


def test_a_part_cut_short_is_set_aside(store):
    """A half-written last part is renamed with a warning; it no longer counts, and its number is free."""
    store.add(many(0, PART_ROWS))
    store.add(table(row(10**6)))
    last = store.part_files()[-1]
    last.write_bytes(last.read_bytes()[:-100])
    again = RunStore(store.path)
    with pytest.warns(UserWarning, match=r"part-00000001\.parquet is damaged.*its rows will be read again"):
        again.mend()
    assert len(again.part_files()) == 1
    assert next(name for name in files(again) if "damaged" in name).startswith("parts/part-00000001.damaged-")
    again.add(table(row(10**6)))
    assert again.rows() == PART_ROWS + 1


def test_what_a_killed_writer_left_is_cleaned_up(store):
    """Temporary files go; files of the user stay."""
    store.add(table(row(1)))
    for name in (".run.json.77-0123abcd.part", "parts/.part-00000001.parquet.77-0123abcd.part"):
        (store.path / name).write_bytes(b"PAR1 half")
    for name in ("notes.part", ".notes.part"):
        (store.path / name).write_text("mine")
    assert store.observations()["ledger_version"].tolist() == [1]
    store.mend()
    kept = [".notes.part", "notes.part", "parts/part-00000000.parquet", "run.json"]
    assert files(store) == kept


def test_an_interrupt_amid_a_write_leaves_the_old_file(store, monkeypatch):
    """Ctrl-C while run.json is written: the manifest that was there stays whole."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(opening.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write_manifest(manifest(complete=True))
    monkeypatch.undo()
    assert store.manifest().complete is False
    assert files(store) == ["run.json"]


def test_steps_are_there_once_written(store):
    """None tells that the run has not come that far."""
    assert store.steps() is None
    store.write_steps(rows_frame(STEPS, {}))
    assert list(store.steps().columns) == STEPS.names


def test_steps_of_earlier_versions_have_the_types_of_now(store):
    """Earlier versions stored gas as integers."""
    known = {name: ["x"] for name in ("label", "fingerprint", "source", "node", "cause")}
    known |= {"version_before": [1], "version_after": [2], "exact": [True], "gas_before": [4], "gas_after": [36]}
    frame = rows_frame(STEPS, known)
    store.write_steps(frame.astype(dict.fromkeys(("gas_before", "gas_after"), "int64[pyarrow]")))
    pd.testing.assert_frame_equal(store.steps(), frame)
    assert store.steps()["gas_after"].tolist() == [36.0]
    store.write_steps(frame.assign(cause=[["x"]]))
    with pytest.raises(StudyError, match="cannot be read"):
        store.steps()


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


def test_a_folder_that_is_not_a_runs_is_refused(tmp_path):
    """An empty folder cannot be opened; a run is not created among other files, or at the path of a file."""
    assert not RunStore(tmp_path).exists()
    with pytest.raises(StudyError, match=r"is not a run folder: run\.json: No such file"):
        RunStore(tmp_path).manifest()
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-00000000.parquet").write_bytes(b"x")
    with pytest.raises(StudyError, match="contains 'parts' but no"):
        RunStore(tmp_path).check_unused()
    assert not (tmp_path / "run.json").exists()
    with pytest.raises(StudyError, match="cannot be created"):
        RunStore(tmp_path / "parts" / "part-00000000.parquet").create(manifest())


def test_discarding_removes_the_runs_own_files_only(store):
    """Manifest, steps and parts go; a report and notes of the user stay."""
    store.add(table(row(1)))
    store.write_steps(rows_frame(STEPS, {}))
    for name in ("notes.txt", "report.html", "parts/readme.md"):
        (store.path / name).write_text("keep me")
    store.discard()
    assert files(store) == ["notes.txt", "parts/readme.md", "report.html"]
    assert not store.exists()


def test_another_programs_folder_is_not_discarded(store):
    """Where ``run.json`` is not a manifest, everything stays."""
    store.add(table(row(1)))
    (store.path / "run.json").write_text("{}")
    before = files(store)
    with pytest.raises(StudyError):
        store.discard()
    assert files(store) == before


def test_discarding_nothing_is_no_error(tmp_path):
    """A missing folder has nothing to discard."""
    RunStore(tmp_path / "none").discard()
    assert not (tmp_path / "none").exists()


def test_a_run_without_its_parts_folder_goes_on(tmp_path):
    """A folder for parts that got lost, as an empty one does in git, is created again."""
    store = RunStore(tmp_path / "run")
    store.create(manifest())
    store.add(table(row(1)))
    shutil.rmtree(tmp_path / "run" / "parts")
    store.mend()
    store.add(table(row(1)))
    assert len(store.observations()) == 1


def test_a_file_of_the_user_is_neither_a_part_nor_discarded(tmp_path):
    """Only the store's own names are its parts."""
    store = RunStore(tmp_path / "run")
    store.create(manifest())
    store.add(table(row(1)))
    mine = tmp_path / "run" / "parts" / "part-of-my-own.parquet"
    shutil.copy(store.part_files()[0], mine)
    store.add(table(row(2)))
    assert store.observations()["ledger_version"].tolist() == [1, 2]
    store.discard()
    assert mine.exists()


def test_files_of_a_run_are_as_readable_as_any_other(tmp_path):
    """Files of a run have the permissions that any new file has."""
    store = RunStore(tmp_path / "run")
    store.create(manifest())
    (tmp_path / "other").write_text("x")
    assert (tmp_path / "run" / "run.json").stat().st_mode == (tmp_path / "other").stat().st_mode
