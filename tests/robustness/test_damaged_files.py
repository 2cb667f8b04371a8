"""Files of a run that changed on the disk: never other results in silence, never a raw error, and a rerun repairs them."""

from __future__ import annotations

import random
import shutil
import warnings

import pytest

import toolkit
from tests.unit.gas.observed import change_manifest
from toolkit import reports
from toolkit.errors import RunStopped, StudyError
from toolkit.gas.runs._store import RunStore

CALLS = {
    "depth": {"view": "0xb00c::order_book::depth"},
    "size": {"view": "0xcafe::registry::size"},
    "registrations": {"committed": "0xcafe::registry::register"},
}


def results(run):
    """What a user sees of a run, but for when it was read."""
    rows = run.observations.drop(columns="observed_at")
    return run.digest, run.steps.to_csv(), rows.to_csv(), run.timeline.to_csv(), run.explain()


def opened(folder):
    """Return the results of a folder, or the one error that may come instead, which names the damaged file."""
    try:
        return results(toolkit.Run.open(folder))
    except StudyError as error:
        return error


@pytest.fixture(scope="module")
def small(honest, tmp_path_factory):
    """Return a study, the folder of its complete run and the results."""
    host, port = honest
    study = toolkit.Study(node=f"http://{host}:{port}/v1", calls=CALLS, versions="0:1499/9")
    folder = tmp_path_factory.mktemp("damaged") / "run"
    run = study.run(folder, progress=False)
    return study, folder, results(run)


def rerun(study, folder):
    """Run a study into a folder again; damage is reported by warnings, which are not errors here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return results(study.run(folder, progress=False))


def names(folder):
    return sorted(str(place.relative_to(folder)) for place in folder.rglob("*") if place.is_file())


def damaged(data, rnd):
    """Return bytes with one bit flipped, or cut short."""
    if rnd.random() < 0.25:
        return data[: rnd.randrange(len(data))]
    flipped = bytearray(data)
    flipped[rnd.randrange(len(data))] ^= 1 << rnd.randrange(8)
    return bytes(flipped)


# Every file but run.json, which is text.
FRAMES = ["parts/part-00000000.parquet", "steps.parquet"]


@pytest.mark.fault(
    "a flipped bit or a missing end in a run's Parquet file", "the same results, or a StudyError that names the file"
)
def test_a_damaged_file_never_changes_results_in_silence(small, tmp_path):
    """Opened, each file in turn gives the results as they were, or an error that names it and says what to do."""
    _, folder, whole = small
    assert names(folder) == [FRAMES[0], "run.json", *FRAMES[1:]]
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    rnd = random.Random(10)
    failed = set()
    for name in FRAMES:
        place = copy / name
        data = place.read_bytes()
        for _ in range(8):
            place.write_bytes(damaged(data, rnd))
            found = opened(copy)
            if isinstance(found, StudyError):
                assert str(place) in str(found)
                assert "run the same study into this folder" in str(found)
                failed.add(name)
            else:
                assert found == whole
        place.write_bytes(data)
    assert failed == set(FRAMES)


@pytest.mark.fault(
    "a study is run again into a folder with a damaged Parquet file",
    "whatever can be rebuilt is rebuilt, with the same rows",
)
@pytest.mark.parametrize("name", FRAMES)
def test_a_rerun_rebuilds_what_was_damaged(small, tmp_path, name):
    """Rows are read again, steps found again; then all is as it was."""
    study, folder, whole = small
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    rnd = random.Random(name)
    for _ in range(2):
        place = copy / name
        place.write_bytes(damaged(place.read_bytes(), rnd))
        assert rerun(study, copy) == whole
        assert opened(copy) == whole


@pytest.mark.fault("a damaged `run.json`", "the run cannot resume; the error says how to read its rows")
def test_a_run_without_a_manifest_says_what_is_kept(small, tmp_path):
    """Nothing is begun again on top of rows of which the ledger and plan are unknown."""
    study, folder, _ = small
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    (copy / "run.json").write_bytes((copy / "run.json").read_bytes()[:-40])
    before = names(copy)
    for act in (lambda: toolkit.Run.open(copy), lambda: study.run(copy, progress=False)):
        with pytest.raises(StudyError, match=r"run\.json is damaged: it is not JSON.*can be read with pandas"):
            act()
    assert names(copy) == before


@pytest.mark.fault("a part removed from a complete run", "observations raise an error; digest and report show the gap")
@pytest.mark.usefixtures("no_figures")
def test_the_digest_is_that_of_the_rows_that_are_there(small, tmp_path):
    """What is shown as proof is computed, not copied from run.json; a report says if the two differ."""
    _, folder, (digest, *_) = small
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    run = toolkit.Run.open(copy)
    assert run.digest == run.manifest["rows_digest"] == digest
    page = reports.write(run, tmp_path / "whole.html").read_text("utf-8")
    assert f"{digest} (computed from the rows for this report)" in page
    change_manifest(copy, rows_digest="0" * 32)
    other = reports.write(toolkit.Run.open(copy), tmp_path / "other.html").read_text("utf-8")
    assert "The rows have changed" in other
    assert f"{digest} (run.json has {'0' * 32})" in other
    (copy / "parts" / "part-00000000.parquet").unlink()
    assert run.digest != digest
    with pytest.raises(StudyError, match=r"has 0 observations, expected"):
        _ = toolkit.Run.open(copy).observations


@pytest.mark.parametrize("what", ["moved", "removed", "replaced"])
@pytest.mark.fault(
    "the run folder is moved, removed or replaced during a run", "the run stops; nothing is written elsewhere"
)
def test_a_run_stops_once_its_folder_is_gone(small, tmp_path, monkeypatch, what):
    """The folder is not made again, and another one in its place is not written to."""
    study, _, whole = small
    folder, aside = tmp_path / "run", tmp_path / "aside"
    write = RunStore.add

    def gone(store, table):
        write(store, table)
        monkeypatch.undo()
        folder.rename(aside)
        if what == "removed":
            shutil.rmtree(aside)
        if what == "replaced":
            folder.mkdir()

    monkeypatch.setattr(RunStore, "add", gone)
    with pytest.raises(RunStopped, match=r"was moved or removed.*Writing has stopped"):
        study.run(folder, progress=False)
    assert names(folder) == [] if what == "replaced" else not folder.exists()
    if what != "removed":
        assert "parts/part-00000000.parquet" in names(aside)
        assert rerun(study, aside) == whole
