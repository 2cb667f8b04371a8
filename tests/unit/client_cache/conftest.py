"""What the cache's tests share: answers as a node sends them, keys, a clock that is told the time."""

from __future__ import annotations

import json

import pytest

from toolkit.client._cache import AnswerCache, key
from toolkit.client._http import Answer

LEDGER = {
    "X-APTOS-CHAIN-ID": "1",
    "X-APTOS-LEDGER-VERSION": "5000",
    "X-APTOS-LEDGER-OLDEST-VERSION": "0",
    "X-APTOS-LEDGER-TIMESTAMPUSEC": "1700000000123456",
    "X-APTOS-EPOCH": "3",
    "X-APTOS-BLOCK-HEIGHT": "2500",
    "X-APTOS-OLDEST-BLOCK-HEIGHT": "0",
}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def answer():
    """Make a 200 as a node sends it."""

    def make(body=b'["18446744073709551615"]', **headers):
        return Answer(200, {**LEDGER, **JSON, **headers}, body)

    return make


@pytest.fixture
def refusal():
    """Make an error answer as a node sends it."""

    def make(status, code, **headers):
        body = json.dumps({"message": "no", "error_code": code, "vm_error_code": None}).encode()
        return Answer(status, {**LEDGER, **JSON, **headers}, body)

    return make


@pytest.fixture
def key_of():
    """Make the key of a view at a version."""

    def make(version, body=None):
        return key(1, version, "POST", "/view", body or b'{"function": "0x1::coin::supply"}', accept="application/json")

    return make


@pytest.fixture
def clock():
    """Return a clock that tests set."""

    class Clock:
        now = 1_700_000_000.0

        def __call__(self):
            return self.now

    return Clock()


@pytest.fixture
def place(tmp_path):
    """Return where a cache file may be made."""
    return tmp_path / "below" / "answers.sqlite3"


@pytest.fixture
def opened(place):
    """Open a cache on disk, closed at the end."""
    with AnswerCache(place) as cache:
        yield cache
