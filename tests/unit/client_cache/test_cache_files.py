"""What happens to the file: bounds, damage, other processes, sudden ends."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from pathlib import Path

import pytest

from toolkit.client import _cache as cache_file
from toolkit.client._cache import AnswerCache

ROOT = Path(__file__).resolve().parents[3]
WRITER = """
import sys, time
from pathlib import Path
from toolkit.client._cache import AnswerCache, key
from toolkit.client._http import Answer
sys.path.insert(0, {tests!r})
from conftest import LEDGER, JSON
def key_of(version):
    return key(1, version, "POST", "/view", b'{{"function": "0x1::coin::supply"}}', accept="application/json")
def answer(version):
    return Answer(200, {{**LEDGER, **JSON}}, b"[%d]" % version)
place, start, stop = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
"""


def run_python(code, *arguments, **options):
    """Start another Python process that has the cache, keys and answers at hand."""
    text = WRITER.format(tests=str(Path(__file__).parent)) + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", text, *map(str, arguments)], cwd=ROOT, text=True, **options
    )


def damaged(place):
    """List what was set aside."""
    return sorted(path.name for path in place.parent.glob("*.damaged*"))


def filled(place, key_of, answer, entries=300):
    """Make a cache file with answers in it."""
    with AnswerCache(place) as cache:
        for version in range(entries):
            cache.put(key_of(version), answer(b"[%d]" % version))


@pytest.mark.parametrize("moment", ["before", "within"])
def test_an_interrupted_write_loses_no_answer(place, key_of, answer, monkeypatch, moment):
    """The stop button during a write: every answer is read at once, and is in the file when the cache is closed."""
    whole, last = cache_file.AnswerCache._write, cache_file.BATCH_ROWS - 1

    def stopped(store, db):
        monkeypatch.setattr(cache_file.AnswerCache, "_write", whole)
        if moment == "within":
            monkeypatch.setattr(cache_file, "_bytes_in_use", lambda *_: signal.raise_signal(signal.SIGINT))
            with contextlib.suppress(KeyboardInterrupt):
                whole(store, db)
            monkeypatch.undo()
        raise KeyboardInterrupt

    with AnswerCache(place) as cache:
        for version in range(last):
            assert cache.put(key_of(version), answer(b"[%d]" % version))
        monkeypatch.setattr(cache_file.AnswerCache, "_write", stopped)
        with pytest.raises(KeyboardInterrupt):
            cache.put(key_of(last), answer(b"[%d]" % last))
        assert len(cache.get_many(map(key_of, range(last + 1)))) == last + 1
        assert cache.put(key_of(last + 1), answer(b"[1]"))
        assert cache.stats().entries == last + 2
    with AnswerCache(place) as cache:
        found = cache.get_many(map(key_of, range(last + 2)))
    assert [found[key_of(version)].body for version in (0, last)] == [b"[0]", b"[%d]" % last]
    assert len(found) == last + 2


def test_signals_at_any_moment_lose_no_answer(tmp_path):
    """Real interrupts: SQLite works without Python's lock, so many of them come right behind one of its statements."""
    code = """
    import itertools, os, random, signal, threading, warnings
    source, moments = random.Random(1), 0
    warnings.simplefilter("error")
    for trial in range(60):
        cache, stored = AnswerCache(None), []
        timer = threading.Timer(source.uniform(0.001, 0.03), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            for version in itertools.count():
                if cache.put(key_of(version), answer(version)):
                    stored.append(version)
        except KeyboardInterrupt:
            moments += 1
        timer.join()
        cache.flush()
        found = cache.get_many(map(key_of, stored))
        assert len(found) == len(stored), (len(stored), len(found))
        cache.close()
    print(moments)
    """
    with run_python(code, tmp_path, 0, 0, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        printed, problem = process.communicate(timeout=120)
    assert (process.returncode, printed) == (0, "60\n"), problem


def test_the_bound_holds_and_the_oldest_go_first(place, key_of, answer):
    """A full cache stays within its bound: what was written first is gone, what was written last is there."""
    source = random.Random(1)
    bodies = {version: source.randbytes(10_000) for version in range(400)}
    with AnswerCache(place, max_bytes=2**20) as cache:
        for version in range(400):
            cache.put(key_of(version), answer(bodies[version]))
        cache.flush()
        stats = cache.stats()
        assert 0.7 * 2**20 < stats.size_bytes <= 2**20
        left = {version for version in range(400) if cache.get(key_of(version)) is not None}
        assert left == set(range(min(left), 400))
        assert cache.get(key_of(399)).body == bodies[399]


def test_reading_a_warm_cache_writes_nothing(place, key_of, answer):
    """A look-up does not change the file."""
    with AnswerCache(place) as cache:
        cache.put(key_of(1), answer())
        cache.flush()
        with contextlib.closing(sqlite3.connect(place)) as other:  # its data_version counts the writes of others
            (before,) = other.execute("pragma data_version").fetchone()
            cache.get(key_of(1))
            cache.flush()
            assert other.execute("pragma data_version").fetchone() == (before,)


def test_two_processes_write_at_once(place):
    """Two processes that make and fill one file at the same time lose nothing and read each other's answers."""
    code = """
    with AnswerCache(place) as cache:
        for version in range(start, stop):
            assert cache.put(key_of(version), answer(version))
            if version % 7 == 0:
                assert cache.get(key_of(version)).body == b"[%d]" % version
    """
    writers = [run_python(code, place, start, start + 1500, stderr=subprocess.PIPE) for start in (0, 1500, 1000)]
    for writer in writers:
        assert writer.communicate(timeout=60)[1] == ""
        assert writer.returncode == 0
    assert damaged(place) == []
    code = """
    with AnswerCache(place) as cache:
        found = cache.get_many(key_of(version) for version in range(start, stop))
        assert all(found[key_of(version)].body == b"[%d]" % version for version in range(start, stop))
        print(len(found), cache.stats().entries)
    """
    reader = run_python(code, place, 0, 3000, stdout=subprocess.PIPE)
    assert reader.communicate(timeout=60)[0].split() == ["3000", "3000"]


def test_killing_a_writer_leaves_a_usable_file(place, key_of, answer):
    """After kill -9 in the middle of writing, what was committed is there, right, and the file takes more."""
    code = """
    cache = AnswerCache(place)
    print("ready", flush=True)
    version = 0
    while True:
        cache.put(key_of(version), answer(version))
        version += 1
    """
    for _ in range(3):
        writer = run_python(code, place, 0, 0, stdout=subprocess.PIPE)
        assert writer.stdout.readline() == "ready\n"
        with AnswerCache(place) as reader:
            while reader.get(key_of(200)) is None:  # it writes in batches
                assert writer.poll() is None
                time.sleep(0.01)
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=30)
        with AnswerCache(place) as cache:
            entries = cache.stats().entries
            assert entries >= 100
            found = cache.get_many(map(key_of, range(entries)))
            assert {k: a.body for k, a in found.items()} == {key_of(v): b"[%d]" % v for v in range(entries)}
            assert cache.put(key_of(10**9), answer())
        with sqlite3.connect(place) as db:
            assert db.execute("pragma integrity_check").fetchone() == ("ok",)
            db.execute("delete from answers")
        db.close()
    assert damaged(place) == []


def test_an_exit_without_closing_writes_what_waits(place, key_of):
    """A script that ends without closing its cache keeps what it read."""
    code = """
    cache = AnswerCache(place)
    cache.put(key_of(5), answer(5))
    """
    assert run_python(code, place, 0, 0).wait(timeout=60) == 0
    with AnswerCache(place) as cache:
        assert cache.get(key_of(5)).body == b"[5]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_copy_leaves_the_file_alone(place, key_of):
    """A child made by fork neither reads nor writes through its parent's connection, and does not hang."""
    code = """
    import os
    cache = AnswerCache(place)
    cache.put(key_of(1), answer(1))
    child = os.fork()
    if not child:
        kept = cache.put(key_of(2), answer(2))
        found = cache.get(key_of(1))
        cache.close()
        os._exit(0 if not kept and found is None else 3)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.get(key_of(1)) is not None
    cache.close()
    """
    assert run_python(code, place, 0, 0).wait(timeout=60) == 0


FOREIGN = {
    "format": lambda path: make_database(
        path, f"pragma application_id = {cache_file.APPLICATION_ID}", "pragma user_version = 2"
    ),
    "text": lambda path: path.write_bytes(b"Dear diary, this is not a database. " * 100),
    "short": lambda path: path.write_bytes(b"SQLite format 3\0"),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "other": lambda path: make_database(path, "create table notes (text)"),
    "narrow": lambda path: make_database(
        path,
        "create table answers (key)",
        f"pragma application_id = {cache_file.APPLICATION_ID}",
    ),
}


def make_database(path, *statements):
    """Make some other SQLite file."""
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_set_aside_unharmed(place, key_of, answer, kind):
    """A file that is not a cache is renamed with a warning, byte for byte, and a new cache begun."""
    place.parent.mkdir()
    FOREIGN[kind](place)
    before = place.read_bytes()
    with pytest.warns(UserWarning, match=r"not a usable cache .*answers.sqlite3.damaged"):
        cache = AnswerCache(place)
    assert damaged(place) == ["answers.sqlite3.damaged"]
    assert place.with_name("answers.sqlite3.damaged").read_bytes() == before
    with cache:
        assert cache.put(key_of(1), answer())
    with AnswerCache(place) as cache:
        assert cache.get(key_of(1)) is not None


def test_an_empty_file_becomes_a_cache(place, key_of, answer):
    """An empty file holds nothing to save."""
    place.parent.mkdir()
    place.touch()
    with AnswerCache(place) as cache:
        assert cache.put(key_of(1), answer())
    assert damaged(place) == []


def test_a_damaged_file_takes_the_place_of_an_earlier_one(place):
    """At most one damaged file is left beside the cache: the last."""
    place.parent.mkdir()
    for number in (1, 2, 3):
        place.write_bytes(b"no database %d " % number * 100)
        with pytest.warns(UserWarning, match="damaged"):
            AnswerCache(place).close()
    assert damaged(place) == ["answers.sqlite3.damaged"]
    assert b"no database 3" in place.with_name("answers.sqlite3.damaged").read_bytes()


def test_a_truncated_file_is_set_aside(place, key_of, answer):
    """Half a file is not a cache."""
    filled(place, key_of, answer, 2000)
    os.truncate(place, place.stat().st_size // 2 + 77)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with AnswerCache(place) as cache:
            found = cache.get_many(map(key_of, range(2000)))
            assert all(found[key_of(v)].body == b"[%d]" % v for v in range(2000) if key_of(v) in found)
            for version in range(200):
                cache.put(key_of(version), answer(b"[%d]" % version))
            cache.flush()
            assert cache.get(key_of(7)).body == b"[7]"
    assert damaged(place)


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_never_become_a_wrong_answer(place, key_of, answer, seed):
    """Whatever bytes of the file change, an answer is right or absent, and the cache works on."""
    filled(place, key_of, answer)
    source = random.Random(seed)
    data = bytearray(place.read_bytes())
    for _ in range(40 * (seed % 4 + 1)):
        data[source.randrange(0 if seed % 2 else 100, len(data))] = source.randrange(256)
    place.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with AnswerCache(place) as cache:
            for version in range(300):
                found = cache.get(key_of(version))
                assert found is None or (found.status, found.body) == (200, b"[%d]" % version)
                assert cache.put(key_of(version), answer(b"[%d]" % version))
            cache.flush()
            cache.clear()
            cache.put(key_of(1), answer(b"[1]"))
            cache.flush()
            cache.get(key_of(1))


def test_damage_found_on_the_way_begins_a_new_file(place, key_of, answer):
    """A file damaged under an open cache is set aside at the next look; the session goes on."""
    filled(place, key_of, answer)
    with AnswerCache(place) as cache:
        size = place.stat().st_size
        with place.open("r+b") as file:
            file.write(b"garbage!" * (size // 8))
        with pytest.warns(UserWarning, match="damaged"):
            assert cache.get_many(map(key_of, range(300))) == {}
        assert cache.put(key_of(1), answer())
        cache.flush()
        assert cache.get(key_of(1)) is not None


def test_a_log_beside_a_damaged_file_is_not_played_into_the_new_one(place, key_of, answer):
    """The log of a damaged file that another process holds open is removed, and that process goes on."""
    with AnswerCache(place) as holding:
        holding.put(key_of(1), answer(b"[1]"))
        holding.flush()
        with contextlib.closing(sqlite3.connect(place)) as other:
            other.execute("pragma wal_checkpoint(truncate)")
        with place.open("r+b") as file:
            file.write(b"garbage!" * 64)
        with pytest.warns(UserWarning, match="damaged"):
            cache = AnswerCache(place)
        with cache:
            assert cache.get(key_of(1)) is None
            assert cache.put(key_of(2), answer())
            cache.flush()
            assert cache.get(key_of(2)) is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            holding.put(key_of(3), answer())
            holding.flush()
            holding.get(key_of(3))
    with AnswerCache(place) as cache:
        cache.put(key_of(2), answer())
        assert cache.get(key_of(2)) is not None
    assert damaged(place) == ["answers.sqlite3.damaged"]


def test_a_place_that_cannot_be_written_means_no_cache(tmp_path, key_of, answer):
    """A folder, or a path through a file, gives a warning and a cache that keeps nothing."""
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "below.sqlite3"):
        with pytest.warns(UserWarning, match="responses are not cached"):
            cache = AnswerCache(path)
        with cache:
            assert not cache.put(key_of(1), answer())
            assert cache.get(key_of(1)) is None
            cache.clear()
            assert (cache.stats().place, cache.stats().entries) == ("nowhere", 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_full_disk_costs_entries_and_one_warning(place, key_of, answer, monkeypatch):
    """If nothing more can be written, reads go on, with one warning."""
    source, opened, connect = random.Random(1), [], sqlite3.connect

    def noted(*arguments, **options):
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    with AnswerCache(place) as cache:
        cache.put(key_of(0), answer(b"[0]"))
        cache.flush()
        opened[-1].execute("pragma max_page_count = 20")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for version in range(1, 500):
                cache.put(key_of(version), answer(source.randbytes(5000)))
            cache.flush()
        assert "full" in str(caught[0].message)
        assert len(caught) == 1
        assert cache.get(key_of(0)).body == b"[0]"
        opened[-1].execute("pragma max_page_count = 100000")
        cache.put(key_of(9), answer(b"[9]"))
        cache.flush()
        assert cache.get(key_of(9)).body == b"[9]"
    assert damaged(place) == []


def test_a_writer_that_holds_the_file_is_waited_for(place, key_of, answer):
    """Another process's transaction delays a write; it does not fail it."""
    with AnswerCache(place) as cache:
        other = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
        other.execute("begin immediate")
        release = threading.Timer(0.3, lambda: other.execute("commit"))
        release.start()
        cache.put(key_of(1), answer())
        cache.flush()
        release.join()
        other.close()
    with AnswerCache(place) as cache:
        assert cache.get(key_of(1)) is not None


def test_a_file_held_for_ever_costs_entries_not_the_session(place, key_of, answer, monkeypatch):
    """Past the busy timeout a write is dropped with a warning; nothing is set aside."""
    monkeypatch.setattr(cache_file, "BUSY_S", 0.1)
    with AnswerCache(place) as cache:
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("begin immediate")
        cache.put(key_of(1), answer())
        with pytest.warns(UserWarning, match="locked"):
            cache.flush()
        other.execute("rollback")
        other.close()
        cache.put(key_of(2), answer())
        cache.flush()
        assert cache.get(key_of(2)) is not None
    assert damaged(place) == []


def as_nobody(code, place):
    """Run Python code as a user that cannot write the file and its folder; root can write everything."""
    place.parent.chmod(0o555)
    place.chmod(0o444)
    drop = "import os\nif not os.getuid(): os.setgid(65534); os.setuid(65534)\n"
    return run_python(drop + textwrap.dedent(code), place, 0, 0, stderr=subprocess.PIPE).communicate(timeout=60)[1]


@pytest.mark.fault("a cache file on a read-only disk", "it is read; one warning that nothing is stored")
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of POSIX")
@pytest.mark.parametrize("written", [False, True], ids=["read-only disk", "written by another user"])
def test_a_file_that_cannot_be_written_is_read(key_of, answer, written):
    """One warning; nothing is stored, and clearing and closing do no harm."""
    folder = Path(tempfile.mkdtemp())  # not pytest's, which only one user can enter
    place = folder / "answers.sqlite3"
    filled(place, key_of, answer, 3)
    code = """
    import warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cache = AnswerCache(place)
    assert [str(one.message).startswith("responses are read from") for one in caught] == [True]
    assert cache.get(key_of(2)).body == b"[2]"
    assert not cache.put(key_of(7), answer(7))
    cache.set_ledger("x", 1, None)
    cache.clear()
    cache.forget_since(0)
    assert (cache.stats().entries, cache.get(key_of(2)) is None) == (3, False)
    cache.close()
    """
    with contextlib.ExitStack() as stack:
        if written:
            writer = stack.enter_context(AnswerCache(place))
            writer.put(key_of(2), answer(b"[2]"))
            writer.flush()
        assert as_nobody(code, place) == ""
    shutil.rmtree(folder)
