"""Where answers are kept."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import pytest

from toolkit.client._cache import open_cache
from toolkit.errors import InputError

MAINNET = "https://api.mainnet.aptoslabs.com/v1"
LOOPBACKS = [
    "http://127.0.0.1:8080/v1",
    "http://localhost/v1",
    "http://[::1]:80/v1",
    "http://127.1/v1",
    "http://0.0.0.0:80/v1",
    "http://192.168.1.9/v1",
]


def place_for(*given):
    """Open a cache and return its path, or None without a file."""
    cache = open_cache(*given)
    if cache is None:
        return None
    with cache:
        return Path(cache.stats().place)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    monkeypatch.delenv("LEDGER_TOOLKIT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


def test_the_own_variable_comes_first(monkeypatch, tmp_path):
    """LEDGER_TOOLKIT_CACHE names the folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    monkeypatch.setenv("LEDGER_TOOLKIT_CACHE", str(tmp_path))
    assert place_for(MAINNET) == tmp_path / "answers-1.sqlite3"


def test_the_home_in_the_variable_is_expanded(monkeypatch, tmp_path):
    """A tilde means the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LEDGER_TOOLKIT_CACHE", "~/c")
    assert place_for(MAINNET) == tmp_path / "c" / "answers-1.sqlite3"


@pytest.mark.skipif(sys.platform != "linux", reason="platformdirs names another folder")
def test_the_platform_says_where_caches_go(monkeypatch, tmp_path):
    """XDG_CACHE_HOME holds; without it the folder is below home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place_for(MAINNET) == tmp_path / ".cache" / "ledger-toolkit" / "answers-1.sqlite3"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert place_for(MAINNET) == tmp_path / "x" / "ledger-toolkit" / "answers-1.sqlite3"


@pytest.mark.parametrize("url", LOOPBACKS)
def test_a_nearby_node_is_not_kept_on_disk(url, monkeypatch, tmp_path):
    """Throw-away ledgers reuse ids, so their answers stay in memory whatever the environment says."""
    monkeypatch.setenv("LEDGER_TOOLKIT_CACHE", str(tmp_path))
    assert place_for(url) == Path("memory")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", [MAINNET, LOOPBACKS[0]])
def test_a_given_path_holds_for_every_node(url, tmp_path):
    """A path is a file, or a folder that is there; text and Path alike."""
    assert place_for(url, tmp_path / "x.db") == tmp_path / "x.db"
    assert place_for(url, str(tmp_path / "x.db")) == tmp_path / "x.db"
    assert place_for(url, tmp_path) == tmp_path / "answers-1.sqlite3"


def test_none_means_no_cache():
    """cache=None makes none, anywhere."""
    assert place_for(MAINNET, None) is None
    assert place_for(LOOPBACKS[0], None) is None


@pytest.mark.parametrize("cache", ["", True, 5, b"x", "~nobody-of-that-name/x", "a\0b"])
def test_what_is_no_place_is_refused(cache):
    """Anything else is an InputError that names the choices."""
    with pytest.raises(InputError, match="cache="):
        place_for(MAINNET, cache)


def test_without_a_home_there_is_no_cache(monkeypatch):
    """Where no home folder can be found a warning says what to set."""
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.warns(UserWarning, match="set LEDGER_TOOLKIT_CACHE"):
        assert place_for(MAINNET) is None


@pytest.mark.parametrize("kind", ["database", "text"])
def test_a_named_file_that_never_was_a_cache_is_refused_and_left_as_it_is(tmp_path, kind):
    """A slip of the pen costs nobody a file; the text names it and says what to do."""
    place = tmp_path / "other.db"
    if kind == "text":
        place.write_text("notes, not answers\n" * 100)
    else:
        db = sqlite3.connect(place)
        db.execute("create table notes (text)")
        db.close()
    before = place.read_bytes()
    with pytest.raises(InputError, match=r"other\.db'.* is not a response cache"):
        open_cache(MAINNET, place)
    assert [path.name for path in tmp_path.iterdir()] == ["other.db"]
    assert place.read_bytes() == before


@pytest.mark.parametrize("name", ["mine.db", "answers-1.sqlite3"])
def test_a_damaged_cache_of_our_own_is_set_aside(tmp_path, name):
    """Its label in the first bytes, or its name, tells that it was a cache."""
    place = tmp_path / name
    open_cache(MAINNET, place).close()
    data = place.read_bytes()
    place.write_bytes(data[:100] + b"garbage!" * (len(data) // 8) if name == "mine.db" else b"garbage!" * 64)
    with pytest.warns(UserWarning, match="damaged"):
        open_cache(MAINNET, place).close()
    assert place.with_name(f"{name}.damaged").exists()
