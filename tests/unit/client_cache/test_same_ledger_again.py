"""A cache in a file answers only if the node still has the ledger that the responses come from."""

from __future__ import annotations

import json

import pytest

from tests.unit.client.fakes import FakeNode, answer, function, info, ledger, module, refused, user_transaction
from toolkit.client._cache import AnswerCache
from toolkit.client._fetch import fetch_views
from toolkit.client._http import RetryPolicy
from toolkit.client._node import Node
from toolkit.errors import LedgerChanged, OfflineMiss, Unavailable
from toolkit.wire import ViewFunction

COUNT = ViewFunction("0x1::m::count")
HOSTS = ["http://vm/v1", "https://node.example/v1", "http://127.0.0.1:8080/v1"]


class Ledger(FakeNode):
    """A node whose transactions and views say which ledger it has; it offers transactions from `oldest` on."""

    def __init__(self, name, *, version=1_000, oldest=0, transactions=True):
        super().__init__(head=ledger(version, oldest=oldest))
        self.name, self.transactions, self.fingerprints = name, transactions, 0
        self.routes |= {
            "GET ": lambda *_: answer(info(self.head), head=self.head),
            "GET /accounts/0x1/module/m": answer(module("m", functions=[function("count", [], ["u64"])])),
            "POST /view": self.view,
        }

    def send(self, request):
        if "/transactions/by_version/" not in request.url:
            return super().send(request)
        self.fingerprints += 1
        version = int(request.url.rpartition("/")[2])
        if not self.transactions:
            return refused(403, "api_disabled", head=self.head)
        if version > self.head.version:
            return refused(404, "transaction_not_found", head=self.head)
        if version < self.head.oldest_version:
            return refused(410, "version_pruned", head=self.head)
        made = user_transaction(version, type="user_transaction") | {"hash": f"0x{self.name:0>2}{version:062x}"}
        return answer(made, head=self.head)

    def view(self, query, body):
        version = int(query["ledger_version"])
        if body["function"].endswith("::now_microseconds"):
            return answer([f"{self.name}{version}"], head=self.head)
        return answer([f"{self.name}{version}"], head=self.head, gas=3)


@pytest.fixture
def read(tmp_path):
    """Return a function that reads one view in a session of its own; it returns the value, and the views sent."""

    def session(node, *, url=HOSTS[0], version=500, **options):
        with Node(url, transport=node, cache=tmp_path / "answers.sqlite3", **options) as one:
            value = one.view(COUNT, ledger_version=version).value
        asked = [body for _, body in node.sent("POST /view") if body["function"] == COUNT.function]
        return value, len(asked)

    return session


@pytest.mark.fault(
    "a network that was reset and kept its chain id, read with a cache on disk",
    "its own values: cached responses of the earlier ledger are not used",
)
@pytest.mark.parametrize("url", HOSTS)
def test_a_ledger_with_the_same_chain_id_is_told_apart(read, url):
    """Whatever the host is called: the second ledger is asked, and so is the first one when it is back."""
    assert read(Ledger("1"), url=url) == (1500, 1)
    assert read(Ledger("1"), url=url) == (1500, 0)
    assert read(Ledger("2"), url=url) == (2500, 1)
    assert read(Ledger("2"), url=url) == (2500, 0)
    assert read(Ledger("1"), url=url) == (1500, 1)


def test_the_ledger_may_have_grown(read):
    """The fingerprint moves on with the head, so that the node may prune the first one."""
    assert read(Ledger("1")) == (1500, 1)
    assert read(Ledger("1", version=2_000)) == (1500, 0)
    assert read(Ledger("1", version=3_000, oldest=1_500)) == (1500, 0)


def test_a_ledger_that_cannot_be_confirmed_is_read_again(read):
    """The version of the fingerprint was pruned, or the ledger is shorter now."""
    assert read(Ledger("1")) == (1500, 1)
    assert read(Ledger("1", version=9_000, oldest=1_001)) == (1500, 1)
    assert read(Ledger("1", version=700)) == (1500, 1)


def test_a_node_without_transactions_is_compared_by_its_time(read):
    """As a node that offers only views, table items and simulations."""
    assert read(Ledger("1", transactions=False)) == (1500, 1)
    assert read(Ledger("1", transactions=False)) == (1500, 0)
    assert read(Ledger("2", transactions=False)) == (2500, 1)


def test_an_outage_is_an_error_and_no_answer(read):
    """The node says 503 for the transaction: nothing of the cache is used, and nothing of it is lost."""
    read(Ledger("1"))
    busy = Ledger("1")
    busy.send = lambda request: refused(503, "x") if "by_version" in request.url else Ledger.send(busy, request)
    with pytest.raises(Unavailable):
        read(busy, retry=RetryPolicy(attempts=1))
    assert read(Ledger("1")) == (1500, 0)


def test_the_comparison_costs_two_requests_a_session(tmp_path):
    """Not one for each read; and none with a cache in memory or without one."""
    for cache, requests in ((tmp_path / "answers.sqlite3", 1), (tmp_path / "answers.sqlite3", 2), (None, 0)):
        node = Ledger("1")
        with Node(HOSTS[0], transport=node, cache=cache) as one:
            for version in range(500, 520):
                one.view(COUNT, ledger_version=version)
        assert node.fingerprints == requests


def test_offline_the_last_ledger_is_read(read):
    """It cannot be confused with another one; and a node without a fingerprint can be read offline, too."""
    read(Ledger("1"))
    read(Ledger("2"))
    assert read(Ledger("2"), offline=True) == (2500, 0)
    with pytest.raises(OfflineMiss):
        read(Ledger("2"), offline=True, version=501)


def test_nodes_of_one_name_are_compared(read):
    """Two hosts share their responses only if they have the same ledger."""
    assert read(Ledger("1"), url=HOSTS[0], cache_name="net") == (1500, 1)
    assert read(Ledger("1"), url=HOSTS[1], cache_name="net") == (1500, 0)
    assert read(Ledger("2"), url=HOSTS[2], cache_name="net") == (2500, 1)


@pytest.mark.parametrize("cache", ["file", "memory"])
def test_after_a_change_within_a_session_nothing_of_the_first_ledger_is_left(tmp_path, monkeypatch, cache):
    """The fetch that notices raises; the session then reads from the new ledger."""
    monkeypatch.setattr("toolkit.client._reads._PAUSES_S", ())
    node = Ledger("1")
    place = tmp_path / "answers.sqlite3" if cache == "file" else None
    with Node(HOSTS[2], transport=node, cache=place) as one:
        if cache == "memory":
            one._connection.cache.answers = AnswerCache(None)
        assert fetch_views(one, COUNT, versions=[400, 500], progress=False)["value"].tolist() == [1400, 1500]
        node.name = "2"
        with pytest.raises(LedgerChanged):
            fetch_views(one, COUNT, versions=[400, 500], progress=False)
        assert json.loads(one.view(COUNT, ledger_version=400).raw) == "2400"
