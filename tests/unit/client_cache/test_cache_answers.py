"""What is kept, what is not, and how it comes back."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.client._cache import AnswerCache, CachedAnswer
from toolkit.client._http import Answer
from toolkit.errors import ClosedError
from toolkit.wire._headers import parse_headers

from .conftest import JSON, LEDGER


def test_an_answer_comes_back_as_it_came(opened, key_of, answer, clock):
    """Status, body and the documented headers are kept, before and after they reach the file."""
    given_ = answer(b'["1"]', **{"X-APTOS-GAS-USED": "7", "X-APTOS-CURSOR": "0xab"})
    assert opened.get(key_of(1)) is None
    assert opened.put(key_of(1), given_)
    waiting = opened.get(key_of(1))
    opened.flush()
    for back in (waiting, opened.get(key_of(1))):
        assert isinstance(back, CachedAnswer)
        assert (back.status, back.body) == (200, b'["1"]')
        assert parse_headers(back.headers) == parse_headers(given_.headers)
        assert back.headers["Content-Type"] == "application/json"


def test_another_object_and_another_time_find_it(place, key_of, answer):
    """What was put before closing is there after opening again."""
    with AnswerCache(place) as cache:
        cache.put(key_of(1), answer(b"[1]"))
    with AnswerCache(place) as cache:
        assert cache.get(key_of(1)).body == b"[1]"


@given(body=st.binary(max_size=2000), times=st.integers(1, 50))
def test_every_body_survives(body, times):
    """Bodies are bytes: packed or not, they come back equal."""
    with AnswerCache(None) as cache:
        cache.put(b"k", Answer(200, {**LEDGER, **JSON}, body * times))
        cache.flush()
        assert cache.get(b"k").body == body * times


def test_many_at_once(opened, key_of, answer):
    """Of many keys, the stored ones come back, each with its own answer, even if it is still waiting to be written."""
    for version in range(1250):
        opened.put(key_of(version), answer(b"[%d]" % version))
    found = opened.get_many([key_of(version) for version in range(0, 3000, 2)])
    assert {k: a.body for k, a in found.items()} == {key_of(v): b"[%d]" % v for v in range(0, 1250, 2)}
    assert opened.get_many([]) == {}


def test_repeated_keys_count_once(opened, key_of, answer):
    """A key asked for twice in one go is one hit."""
    opened.put(key_of(1), answer())
    assert len(opened.get_many([key_of(1), key_of(1), key_of(2)])) == 1
    assert (opened.stats().hits, opened.stats().misses) == (1, 1)


@pytest.mark.parametrize("code", ["table_item_not_found", "resource_not_found", "module_not_found"])
def test_a_missing_thing_is_kept(opened, key_of, refusal, code):
    """The absence of an item, resource or module at a version does not change."""
    given_ = refusal(404, code)
    assert opened.put(key_of(1), given_)
    back = opened.get(key_of(1))
    assert (back.status, back.body) == (404, given_.body)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "version_not_found"),
        (404, "account_not_found"),
        (404, "web_framework_error"),
        (400, "vm_error"),
        (400, "table_item_not_found"),
        (403, "rejected_by_filter"),
        (410, "version_pruned"),
        (429, "rate_limited"),
        (500, "internal_error"),
        (503, "health_check_failed"),
    ],
)
def test_no_other_error_is_kept(opened, key_of, refusal, status, code):
    """What may be otherwise next time is not kept."""
    assert not opened.put(key_of(1), refusal(status, code))
    assert opened.get(key_of(1)) is None


@pytest.mark.parametrize(
    "unkept",
    [
        Answer(404, {"Content-Type": "text/html"}, b"<html>table_item_not_found</html>"),
        Answer(200, {"Content-Type": "text/html"}, b"<html>Log in to this hotel's network</html>"),
        Answer(204, {**LEDGER, **JSON}, b""),
        Answer(206, {**LEDGER, **JSON}, b"[1"),
        Answer(302, {**LEDGER, **JSON}, b""),
    ],
)
def test_what_no_node_sent_is_not_kept(opened, key_of, unkept):
    """A gateway's page, a part of an answer, or a 200 without the ledger headers is not kept."""
    assert not opened.put(key_of(1), unkept)


def test_secrets_are_nowhere_in_the_file(place, answer):
    """Neither request nor answer headers leave a secret in the bytes of the file or its log."""
    from toolkit.client._cache import key

    secret = "s3cr3t-t0k3n"  # noqa: S105 - made up
    with AnswerCache(place) as cache:
        body = secret.encode()
        made = key(1, 2, "POST", f"/view?api_key={secret}", body, build=secret, accept=secret)
        echoing = answer(Authorization=f"Bearer {secret}", **{"Set-Cookie": secret, "X-APTOS-GAS-USED": secret})
        assert cache.put(made, echoing)
        cache.flush()
        assert cache.get(made) is not None
        assert secret not in repr(cache)
        found = [path.read_bytes() for path in place.parent.iterdir()]
        assert any(b"LEDGER-VERSION" in data for data in found)
        assert not any(secret.encode() in data or b"uthorization" in data for data in found)


def test_an_answer_that_would_push_out_the_rest_is_not_kept(key_of, answer):
    """One answer may take an eighth of the bound at most."""
    import random

    with AnswerCache(None, max_bytes=2**20) as cache:
        assert not cache.put(key_of(1), answer(random.Random(1).randbytes(200_000)))
        assert cache.put(key_of(2), answer(b"0" * 200_000)), "what counts is the size as kept"


def test_clear_forgets_everything(opened, key_of, answer, place):
    """After clear nothing is found, written or waiting, and the space is given back."""
    for version in range(150):
        opened.put(key_of(version), answer(bytes(range(256)) * 40))
    opened.flush()
    full = opened.stats().size_bytes
    opened.put(key_of(999), answer())
    opened.clear()
    assert opened.get_many([key_of(v) for v in [*range(150), 999]]) == {}
    assert opened.stats().entries == 0
    assert place.stat().st_size < full / 2
    opened.put(key_of(1), answer(b"[2]"))
    assert opened.get(key_of(1)).body == b"[2]"


def test_a_hundred_answers_are_written_by_themselves(place, opened, key_of, answer):
    """A full buffer reaches the file without a flush."""
    for version in range(100):
        opened.put(key_of(version), answer())
    with AnswerCache(place) as other:
        assert len(other.get_many([key_of(v) for v in range(100)])) == 100


def test_answers_are_written_after_a_while(place, key_of, answer, clock):
    """The first answer after a second writes those that wait, so a slow session loses little if it is killed."""
    with AnswerCache(place, clock=clock) as cache, AnswerCache(place) as other:
        cache.put(key_of(1), answer())
        assert other.get(key_of(1)) is None
        clock.now += 1
        cache.put(key_of(2), answer())
        assert len(other.get_many([key_of(1), key_of(2)])) == 2


def test_what_waits_is_written_when_the_cache_is_forgotten(place, key_of, answer):
    """A cache that nobody closed writes its last answers when it goes."""
    cache = AnswerCache(place)
    cache.put(key_of(1), answer())
    del cache
    with AnswerCache(place) as other:
        assert other.get(key_of(1)) is not None


def test_a_closed_cache_says_so(opened, key_of, answer):
    """Every use after closing raises ClosedError; closing again does not."""
    opened.close()
    opened.close()
    for use in (
        lambda: opened.get(key_of(1)),
        lambda: opened.put(key_of(1), answer()),
        opened.flush,
        opened.clear,
        opened.stats,
    ):
        with pytest.raises(ClosedError, match="this cache is closed"):
            use()


def test_two_threads_may_close_one_cache(opened):
    """As after an interrupt, when the main thread and a worker close one node: neither raises."""
    errors = []

    def close():
        try:
            opened.close()
        except ClosedError as error:
            errors.append(error)

    threads = [threading.Thread(target=close) for _ in range(4)]
    with opened._lock:
        for thread in threads:
            thread.start()
        opened.close()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_cache_is_not_pickled(opened):
    """A cache holds a file and locks; its path is what travels."""
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(opened)


def test_threads_share_one_cache(opened, key_of, answer):
    """Eight threads that read and write at once each see their own answers, and none is lost."""
    wrong = []

    def work(number):
        for version in range(number * 200, number * 200 + 200):
            opened.put(key_of(version), answer(b"[%d]" % version))
            back = opened.get(key_of(version))
            if back is None or back.body != b"[%d]" % version:
                wrong.append(version)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert opened.stats().entries == 1600
    assert len(opened.get_many(map(key_of, range(1600)))) == 1600


def test_stats_count(opened, key_of, answer, refusal, place):
    """Hits, misses and entries are counted; a refused answer is not."""
    opened.put(key_of(1), answer())
    opened.put(key_of(2), refusal(500, "internal_error"))
    opened.get(key_of(1))
    opened.get(key_of(2))
    stats = opened.stats()
    assert (stats.place, stats.entries, stats.hits, stats.misses, stats.kept) == (str(place), 1, 1, 1, 1)
    assert stats.max_bytes == 2 * 1024**3
    assert 0 < stats.size_bytes < 100_000


def test_memory_caches_share_nothing(key_of, answer):
    """Each cache in memory is its own."""
    with AnswerCache(None) as left, AnswerCache(None) as right:
        left.put(key_of(1), answer())
        left.flush()
        assert right.get(key_of(1)) is None
        assert left.stats().place == "memory"


def test_the_file_and_its_folders_are_made(tmp_path):
    """A path below folders that are not there works."""
    path = tmp_path / "a b" / "c" / "x.sqlite3"
    AnswerCache(path).close()
    assert Path(path).is_file()
