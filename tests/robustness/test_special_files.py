"""Pipes, sockets, devices and links where a file is expected: refused at once, and never written through."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

import toolkit
from tests.unit.gas.observed import frame, manifest, row, table
from tests.unit.plots import synthetic_run
from toolkit import embedded, reports
from toolkit._present.files import open_descriptor, read_file, replacing
from toolkit.archive._lock import locked
from toolkit.cli._console import write_frame, write_text
from toolkit.errors import StudyError, ToolkitError
from toolkit.gas._forecast import read_schedule
from toolkit.gas._snapshot import read_snapshot
from toolkit.gas._study_file import write_starter
from toolkit.gas.runs._store import RunStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="named pipes and links of POSIX")

SPECIAL = ["pipe", "socket", "device"]


def make(place: Path, kind: str) -> Path:
    """Put something other than a regular file at a path; a device is reached over a link, as /dev/stdout is."""
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            before = Path.cwd()
            os.chdir(place.parent)  # names of sockets are short
            try:
                one.bind(place.name)
            finally:
                os.chdir(before)
    else:
        place.symlink_to("/dev/zero")
    return place


def run_folder(folder: Path) -> RunStore:
    store = RunStore(folder)
    store.create(manifest())
    store.add(table(row(1)))
    return store


READERS = {
    "study file": toolkit.Study.load,
    "Parquet": toolkit.read_parquet,
    "ledger": embedded.Ledger.load,
    "snapshot": read_snapshot,
}
# Of other paths than those of one file: folders, and files that need not be regular.
OTHERS = {
    "cache": lambda place: toolkit.connect("http://127.0.0.1:9/v1", cache=place),
    "run": toolkit.Run.load,
    "run to write": lambda place: RunStore(Path(place)).make_folder(),
    "side of a comparison": lambda place: toolkit.compare(str(place), frame(row(1))),
    "schedule": lambda place: read_schedule([str(place)], int),
}
WRITERS = {
    "Parquet": (".parquet", lambda place: toolkit.write_parquet(frame(row(1)), place)),
    "--out Parquet": (".parquet", lambda place: write_frame(frame(row(1)), place)),
    "--out CSV": (".csv", lambda place: write_frame(frame(row(1)), place)),
    "--out JSON lines": (".jsonl", lambda place: write_frame(frame(row(1)), place)),
    "--out text": (".md", lambda place: write_text("x", place)),
    "starter study": (".toml", write_starter),
    "study": (".toml", lambda place: toolkit.Study(calls={"x": "0x1::m::f"}, versions="1:2").save(place)),
    "ledger": ("", lambda place: embedded.Ledger().save(place)),
    "report": (
        ".md",
        lambda place: reports.write(synthetic_run.Run(synthetic_run.observations(), synthetic_run.steps()), place),
    ),
}


@pytest.mark.fault("a pipe, socket or device as an input file", "rejected at once")
@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("reader", READERS)
def test_special_files_are_not_read(tmp_path, kind, reader):
    """A pipe without a writer would be waited for, a device never ends."""
    place = make(tmp_path / "x", kind)
    with pytest.raises(ToolkitError, match="expected a regular file"):
        READERS[reader](place)


@pytest.mark.fault("a pipe, socket or device as an output file", "rejected at once, and left unchanged")
@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("writer", WRITERS)
def test_special_files_are_not_replaced(tmp_path, kind, writer):
    """`--out /dev/stdout` does not put a file in the place of the device."""
    ending, write = WRITERS[writer]
    place = make(tmp_path / f"x{ending}", kind)
    before = place.lstat()
    with pytest.raises(ToolkitError, match=r"expected a regular file|already exists"):
        write(place)
    assert os.path.samestat(before, place.lstat())
    assert [one.name for one in tmp_path.iterdir()] == [place.name]


IMPOSSIBLE = {
    "long name": "x" * 300,
    "long path": "y/" * 3_000 + "x",
    "NUL": "a\0b",
    "NUL in a folder": "a\0b/c",
    "lone surrogate": "\ud800",
}


@pytest.mark.fault("an impossible path: too long, or with a NUL or a lone surrogate", "an error from the toolkit")
@pytest.mark.parametrize("path", IMPOSSIBLE)
@pytest.mark.parametrize("user", [*READERS, *WRITERS, *OTHERS])
def test_impossible_paths_are_errors_of_the_toolkit(tmp_path, user, path):
    """Not an OSError, and not a ValueError without the path; nothing is created."""
    ending, use = WRITERS.get(user) or ("", READERS.get(user) or OTHERS[user])
    with pytest.raises(ToolkitError):
        use(tmp_path / f"{IMPOSSIBLE[path]}{ending}")
    assert not [one for one in tmp_path.iterdir() if one.is_file()]


@pytest.mark.fault("a pipe, socket or device as `cache=`", "rejected at once, and left unchanged")
@pytest.mark.parametrize("kind", SPECIAL)
def test_a_cache_is_a_regular_file(tmp_path, kind):
    """The file is named by the user, so it is an error and not a warning."""
    place = make(tmp_path / "answers", kind)
    before = place.lstat()
    with pytest.raises(ToolkitError, match=r"cache=.*expected a regular file"):
        toolkit.connect("http://127.0.0.1:1/v1", cache=place)
    assert os.path.samestat(before, place.lstat())


@pytest.mark.fault("a pipe, socket or device in a run folder", "a StudyError that names it, at once")
@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("name", ["run.json", "steps.parquet", "parts/part-00000000.parquet", "run.lock"])
def test_special_files_in_a_run_folder_are_refused(tmp_path, kind, name):
    """Whichever it is, opening the run and writing to it end with an error that names it."""
    store = run_folder(tmp_path / "run")
    place = tmp_path / "run" / name
    place.unlink(missing_ok=True)
    make(place, kind)

    def use():
        again = RunStore(store.path)
        with again.locked():
            again.manifest()
            again.steps()
            again.observations()

    with pytest.raises(StudyError, match=f"{place.name}.*(expected a regular file|symbolic link)"):
        use()
    assert not place.is_file()


@pytest.mark.fault("`run.lock` is a link to someone else's file", "rejected; the file is neither emptied nor removed")
@pytest.mark.parametrize("link", ["symbolic", "hard", "dangling", "none"])
def test_a_lock_never_touches_a_file_of_others(tmp_path, link):
    """A link leads elsewhere, and a file that no run wrote belongs to someone."""
    folder, other = tmp_path / "run", tmp_path / "precious"
    folder.mkdir()
    lock = folder / "run.lock"
    if link == "none":
        lock.write_text("my own notes")
    elif link == "dangling":
        lock.symlink_to(other)
    else:
        other.write_text("precious")
        lock.symlink_to(other) if link == "symbolic" else os.link(other, lock)
    with (
        pytest.raises(StudyError, match=r"symbolic link|is not a lock file of this toolkit"),
        locked(folder),
    ):
        pass
    assert lock.is_symlink() or lock.exists()
    assert other.exists() == (link in {"symbolic", "hard"})
    if link == "none":
        assert lock.read_text() == "my own notes"
    elif link != "dangling":
        assert other.read_text() == "precious"


def test_a_lock_that_was_replaced_is_not_removed(tmp_path):
    """What lies there when the run ends is somebody else's by then."""
    lock = tmp_path / "run.lock"
    with locked(tmp_path):
        lock.unlink()
        lock.write_text("my own notes")
    assert lock.read_text() == "my own notes"


@pytest.mark.fault("a link planted in place of a file or its temporary file", "the link's target is not written")
def test_writing_never_follows_a_link(tmp_path, monkeypatch):
    """The file beside its place is new; a link in the place is replaced."""
    other, place = tmp_path / "precious", tmp_path / "x.txt"
    other.write_text("precious")
    place.symlink_to(other)
    with replacing(place) as file:
        file.write(b"new")
    assert (place.is_symlink(), place.read_text(), other.read_text()) == (False, "new", "precious")
    monkeypatch.setattr("secrets.token_hex", lambda _: "00000000")
    planted = tmp_path / f".x.txt.{os.getpid()}-00000000.part"
    planted.symlink_to(other)
    with pytest.raises(OSError, match="symbolic link"), replacing(place) as file:
        file.write(b"newer")
    assert (place.read_text(), other.read_text()) == ("new", "precious")


@pytest.mark.fault("a process killed while writing a file", "a write a day later removes its leftovers")
def test_a_later_write_removes_what_killed_writers_left(tmp_path):
    """The unfinished file of a writer that may live stays, as do files and links that only look like one."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    link, mine = tmp_path / ".x.txt.1-00000000.part", tmp_path / ".notes.part"
    link.symlink_to(precious)
    mine.write_text("mine")
    left, fresh = (tmp_path / f".killed.txt.{number}-00000000.part" for number in (1, 2))
    for place in (left, fresh):
        place.write_text("half")
    for place in (link, mine, left):
        os.utime(place, (0, 0), follow_symlinks=False)
    with replacing(tmp_path / "x.txt") as file:
        file.write(b"whole")
    names = {"precious", link.name, mine.name, fresh.name, "x.txt"}
    assert {place.name for place in tmp_path.iterdir()} == names


def test_regular_files_are_opened_as_ever(tmp_path):
    """Over a link too, where one may be followed; a folder and a missing file are the errors that they were."""
    place, link = tmp_path / "x", tmp_path / "link"
    place.write_bytes(b"12345")
    link.symlink_to(place)
    assert read_file(link) == b"12345"
    assert read_file(place, limit=2) == b"12"
    for wrong, error in ((tmp_path, IsADirectoryError), (tmp_path / "none", FileNotFoundError)):
        with pytest.raises(error):
            read_file(wrong)
    with pytest.raises(OSError, match="symbolic link"):
        open_descriptor(link, os.O_RDONLY, follow=False)
