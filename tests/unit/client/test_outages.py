"""Modules or archives that give no answer: nobody waits for them call by call, and nothing is lost."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import URL, Clock, FakeNode, answer, function, get, module, refused
from toolkit.client._abis import AbiStore
from toolkit.client._connection import Connection
from toolkit.client._fetch import fetch_table_items, fetch_views
from toolkit.client._http import Answer, RetryPolicy
from toolkit.client._node import Node
from toolkit.errors import FailedReadsWarning, NodeError, NodeUnreachable
from toolkit.wire import ViewFunction

M = module("m", functions=[function("count", [], ["u64"]), function("scaled", ["u64"], ["u64"])])
MODULE = "GET /accounts/0x1/module/m"
COUNT = ViewFunction("0x1::m::count")
FAILING = refused(503, "internal_error", "no modules now")


class Modules:
    """A module endpoint that fails until it is mended; `sent` counts its requests."""

    def __init__(self, failures=10**9, after=FAILING):
        self.failures, self.after = failures, after
        self.sent = 0

    def __call__(self, *_):
        self.sent += 1
        if self.sent > self.failures:
            return answer(M)
        if isinstance(self.after, Exception):
            raise self.after
        return self.after


def a_node(modules, routes=None, *, clock=None, **options):
    """Return a node over a fake that asks once and never sleeps."""
    view = {"POST /view": lambda query, _: answer([query.get("ledger_version", "1000")], gas=3)}
    fake = FakeNode({MODULE: modules} | view | (routes or {}))
    calm = {"retry": RetryPolicy(attempts=2), "sleep": lambda _: None, "clock": clock or Clock()}
    return Node(URL, transport=fake, cache=None, **calm, **options), fake


OUTAGES = [FAILING, refused(500, "internal_error"), refused(429, "rate_limited"), NodeUnreachable("cut")]
CODES = ["internal_error", "internal_error", "rate_limited", "unreachable"]


@pytest.mark.fault(
    "a module endpoint that answers 503 while views work",
    "views are rows with the error of one look-up, nothing is sent",
)
@pytest.mark.parametrize(
    ("failure", "code"), list(zip(OUTAGES, CODES, strict=True)), ids=["503", "500", "429", "unreachable"]
)
def test_a_sweep_does_not_wait_for_a_module_call_by_call(failure, code):
    """200 views of a module that cannot be looked up cost one look-up, whose error is in each row."""
    modules = Modules(after=failure)
    node, fake = a_node(modules)
    with pytest.warns(FailedReadsWarning, match="all 200 views failed"):
        frame = fetch_views(node, COUNT, versions="0:199", progress=False)
    assert modules.sent == 2, "one look-up of two attempts"
    assert fake.sent("POST /view") == []
    assert frame["error_code"].tolist() == [code] * 200


def test_views_are_read_once_the_module_answers():
    """After its rest, the module is looked up again, and the views are sent with their types."""
    modules, clock = Modules(failures=2), Clock()
    node, _ = a_node(modules, clock=clock)
    with pytest.warns(FailedReadsWarning):
        fetch_views(node, COUNT, versions="0:199", progress=False)
    clock.now = 31.0
    frame = fetch_views(node, COUNT, versions="0:199", progress=False)
    assert frame["value"].dtype == "uint64[pyarrow]"
    assert frame["value"].tolist() == list(range(200))


def test_single_views_raise_what_failed_without_waiting_each():
    """A value without its type would be taken for another value; 20 calls cost one look-up."""
    modules = Modules()
    node, fake = a_node(modules)
    for version in range(20):
        with pytest.raises(NodeError, match="503"):
            node.view(COUNT, ledger_version=version)
    assert modules.sent == 2, "one look-up of two attempts"
    assert fake.sent("POST /view") == []


def test_items_whose_struct_cannot_be_looked_up_are_rows():
    """None is sent: a value without its type would be taken for another value."""
    handle = "0x" + "0" * 61 + "abc"
    node, fake = a_node(Modules(), {f"POST /tables/{handle}/item": answer({"a": "7"})})
    types = {"key_type": "u64", "value_type": "0x1::m::R"}
    with pytest.warns(FailedReadsWarning):
        frame = fetch_table_items(node, handle, keys=[1, 2, 3], **types, versions=[5], progress=False)
    assert frame["error_code"].tolist() == ["internal_error"] * 3
    assert fake.sent(f"POST /tables/{handle}/item") == []


def test_a_module_that_failed_is_asked_again_after_its_rest():
    """After 30 s one look-up is tried; what it took counts ten times, so that slow failures are tried less often."""
    clock, asked = Clock(), []

    def fetch(address, name, version):
        asked.append(version)
        clock.now += took
        raise NodeUnreachable("no answer")

    store = AbiStore(fetch, clock=clock)
    took = 1.0
    for now, times in ((0.0, 1), (20.0, 1), (30.9, 1), (31.0, 2)):
        clock.now = now
        with pytest.raises(NodeUnreachable):
            store.at(5).lookup("0x1", "m")
        assert len(asked) == times
    took, clock.now = 100.0, 1_000.0
    for now, times in ((1_000.0, 3), (2_099.0, 3), (2_100.0, 4)):
        clock.now = now
        with pytest.raises(NodeUnreachable):
            store.at(5).lookup("0x1", "m")
        assert len(asked) == times


def test_many_modules_that_fail_are_not_tried_one_by_one():
    """After three modules that cannot be looked up the others wait as well."""
    asked = []

    def fetch(address, name, version):
        asked.append(name)
        raise NodeUnreachable("no answer")

    store = AbiStore(fetch, clock=Clock())
    for number in range(50):
        with pytest.raises(NodeUnreachable):
            store.at(5).lookup("0x1", f"m{number}")
    assert len(asked) == 3


def test_what_needs_the_module_itself_raises():
    """A module, and a type read by itself, are not taken for absent."""
    node, _ = a_node(Modules())
    for _ in range(2):
        with pytest.raises(NodeError, match="503"):
            node.module("0x1", "m", ledger_version=5)
        with pytest.raises(NodeError, match="503"):
            node.abis.at(5).module_abi("0x1", "m")


def pruned():
    body = refused(410, "version_pruned").body
    headers = {"X-Aptos-Archival-Endpoint": "https://archive.test"}
    return Answer(410, dict(answer(0).headers) | headers, body)


@pytest.mark.fault("an archive that cannot be reached", "pruned versions become rows; the archive is tried once")
def test_an_archive_that_cannot_be_reached_is_a_row_and_is_asked_once(monkeypatch):
    """50 pruned versions of a sweep cost one try of the archive; the others are read."""
    tried = []

    class Away:
        def send(self, request):
            tried.append(request.url)
            raise NodeUnreachable("cannot connect")

        def close(self):
            pass

    def view(query, _):
        return pruned() if int(query["ledger_version"]) < 50 else answer([query["ledger_version"]])

    monkeypatch.setattr("toolkit.client._node._open_transport", lambda *_, **__: Away())
    clock = Clock()
    node, _ = a_node(lambda *_: answer(M), {"POST /view": view}, clock=clock, archive=True)
    frame = fetch_views(node, COUNT, versions="0:99", progress=False)
    assert frame["error_code"].tolist()[:50] == ["unreachable"] * 50
    assert frame["error_message"][0].startswith(
        "the node has pruned this version, and its archive https://archive.test/v1"
    )
    assert frame["value"].tolist()[50:] == list(range(50, 100))
    assert len(tried) == 1
    clock.now = 31.0
    fetch_views(node, COUNT, versions=[5], progress=False)
    assert len(tried) == 2


def test_a_single_read_names_the_archive_that_failed():
    """NodeUnreachable with the archive and the reason."""

    class Away:
        def send(self, request):
            raise NodeUnreachable("cannot connect")

        def close(self):
            pass

    class Pruned:
        def send(self, request):
            return pruned()

    following = Connection(URL, Pruned(), archive=lambda _: Away())
    with pytest.raises(NodeUnreachable, match=r"https://archive\.test/v1"):
        get(following, "/view", asked="x")
