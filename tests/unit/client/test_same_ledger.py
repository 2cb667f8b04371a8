"""A node is compared with its anchor: chain id, one transaction, head and oldest version."""

from __future__ import annotations

import time

import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, info, ledger, refused, user_transaction
from toolkit.client import _reads
from toolkit.client._fetch import fetch_simulations, fetch_transactions, fetch_views
from toolkit.client._node import Node
from toolkit.client._reads import _PAUSES_S, Anchor, LedgerAnchor, LedgerGuard
from toolkit.errors import LedgerChanged, NodeUnreachable
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction
from toolkit.wire._headers import ledger_headers, parse_headers

WHERE = "GET /transactions/by_version/900"
GONE = refused(503, "internal_error")


def transaction(mark="a", *, head=1_000, oldest=5):
    document = user_transaction(900, type="user_transaction") | {"hash": "0x" + mark * 64}
    return answer(document, head=ledger(head, oldest=oldest))


def described(head=1_000, *, oldest=5, chain_id=4):
    state = ledger(head, oldest=oldest)
    return answer(info(state) | {"chain_id": chain_id}, head=state)


class FakeTime:
    """A clock that stands, and waits that pass at once."""

    def __init__(self):
        self.now, self.waits = 0.0, []
        self.time = time.time

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.waits.append(seconds)


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch):
    monkeypatch.setattr("toolkit.client._http.RetryPolicy.wait_s", lambda *_, **__: 0.0)
    monkeypatch.setattr("toolkit.client._reads.time", FakeTime())


class Watched:
    """A node with its anchor taken, its guard, and the clock of the module."""

    def __init__(self, first=None, description=None, **options):
        self.fake = FakeNode({WHERE: first or transaction(), "GET ": description or described()})
        self.node = Node(URL, transport=self.fake, **options)
        self.clock = _reads.time
        self.anchor = LedgerAnchor.taken(self.node, 900)
        self.guard = LedgerGuard(self.node, self.anchor)

    def answers(self, *answers, where=WHERE):
        """Answer in turn, the last one for ever."""
        given = iter(answers)
        self.fake.routes[where] = lambda *_: next(given, answers[-1])


def test_the_anchor_is_a_transaction_head_and_oldest_version():
    """All of one request."""
    watched = Watched()
    assert watched.anchor == LedgerAnchor(4, 1_000, 5, Anchor(900, "0x" + "a" * 64))
    watched.guard.check()
    assert [where for where, _, _ in watched.fake.asked] == [WHERE] * 2


@pytest.mark.parametrize("first", [refused(403, "api_disabled"), refused(404, "x", head=ledger(1_000, oldest=5)), GONE])
def test_without_transactions_the_numbers_are_left(first):
    """The anchor then has no transaction; the chain id still identifies the ledger."""
    watched = Watched(first=first)
    assert watched.anchor == LedgerAnchor(4, 1_000, 5)
    watched.guard.check()
    watched.answers(described(chain_id=7), where="GET ")
    with pytest.raises(LedgerChanged, match=r"chain id 4\b.*\b7\b"):
        watched.guard.check()


def test_another_transaction_is_another_ledger_at_once():
    """Nothing is waited for."""
    watched = Watched()
    watched.answers(transaction("b"))
    with pytest.raises(LedgerChanged, match=rf"\b900\b.*0x{'a' * 64}.*0x{'b' * 64}"):
        watched.guard.check()
    assert watched.clock.waits == []


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (transaction(head=990), "expected a head of 1,000 or later, got 990"),
        (transaction(oldest=4), "expected an oldest version of 5 or later, got 4"),
        (refused(404, "transaction_not_found", head=ledger(890, oldest=5)), "it is missing"),
        (refused(404, "version_not_found", head=ledger(5_000, oldest=5)), "it is missing"),
    ],
)
def test_what_went_back_counts_if_it_stays_back(later, words):
    """A backend that lags is looked at for about eight seconds; then it is another ledger."""
    watched = Watched()
    watched.answers(later, later, transaction())
    watched.guard.check()
    assert watched.clock.waits == list(_PAUSES_S[:2])
    watched.answers(later)
    assert not watched.guard.confirms()
    with pytest.raises(LedgerChanged, match=words):
        watched.guard.check()
    assert 5 < sum(_PAUSES_S) < 10


@pytest.mark.parametrize("later", [refused(410, "version_pruned"), refused(403, "api_disabled"), GONE])
def test_an_anchor_that_cannot_be_read_any_more_leaves_the_numbers(later):
    """Pruned meanwhile, or no longer offered: the node's description is compared."""
    watched = Watched()
    watched.answers(later)
    watched.guard.check()
    watched.answers(described(900), where="GET ")
    with pytest.raises(LedgerChanged, match=r"head.*\b1,000\b"):
        watched.guard.check()


def test_a_node_that_is_gone_confirms_nothing():
    """`confirms` does not repeat its reads; `check` raises."""
    watched = Watched()
    watched.answers(GONE)
    watched.answers(GONE, where="GET ")
    before = len(watched.fake.asked)
    assert not watched.guard.confirms()
    assert len(watched.fake.asked) == before + 2
    with pytest.raises(Exception, match="503"):
        watched.guard.check()


def test_the_cache_says_nothing_of_the_node(tmp_path):
    """Each check asks the node, although a transaction never changes; and what a changed node answered is forgotten."""
    watched = Watched(cache=tmp_path / "cache")
    assert watched.node.transaction(900).hash == "0x" + "a" * 64
    assert watched.node.cache.stats().entries == 2  # with the node's description
    watched.answers(transaction("b"))
    with pytest.raises(LedgerChanged):
        watched.guard.check()
    assert watched.node.cache.stats().entries == 0
    watched.node.close()


def test_a_fetch_checks_every_minute():
    """A minute after the last check, not before; a node that does not answer then is asked a minute later."""
    watched = Watched()
    asked = lambda: len(watched.fake.sent(WHERE))  # noqa: E731
    for now, count in ((59.0, 1), (60.0, 2), (119.0, 2), (120.0, 3)):
        watched.clock.now = now
        watched.guard.check_if_due()
        assert asked() == count
    watched.answers(GONE)
    watched.answers(GONE, where="GET ")
    watched.clock.now = 180.0
    watched.guard.check_if_due()
    watched.answers(transaction("b"))
    watched.clock.now = 239.0
    watched.guard.check_if_due()
    watched.clock.now = 240.0
    with pytest.raises(LedgerChanged):
        watched.guard.check_if_due()


def test_a_fetch_whose_node_goes_away_at_the_end_keeps_its_frame():
    """It warns that the ledger could not be compared with the one of the beginning."""
    answers = iter([described()])
    routes = {
        "GET ": lambda *_: next(answers, GONE),
        "POST /view": answer(["5"]),
        "GET /transactions/by_version/7": GONE,
    }
    node = Node(URL, transport=FakeNode(routes))
    with pytest.warns(UserWarning, match="could not check that .* still serves the ledger"):
        frame = fetch_views(node, ViewFunction("0x1::m::f"), versions=[5, 7], progress=False)
    assert len(frame) == 2


def other(value=("5",)):
    """Return an answer of another chain."""
    found = answer(list(value))
    return type(found)(found.status, found.headers | {"X-APTOS-CHAIN-ID": "9"}, found.body)


def test_an_answer_of_another_chain_is_an_error_of_its_own_and_no_row():
    """For single calls, sweeps, pages and simulations."""
    account = answer({"sequence_number": "7", "authentication_key": "0x" + "0" * 64})
    fake = FakeNode(
        {
            "POST /view": other(),
            "GET /transactions": other(()),
            "POST /transactions/simulate": other(),
            "GET /accounts/0xa11ce": account,
        }
    )
    call, request = ViewFunction("0x1::m::f"), SimulationRequest(EntryFunction("0x1::m::pay"), sender="0xa11ce")
    reads = [
        lambda node: node.view(call),
        lambda node: fetch_views(node, call, versions=[5, 7], progress=False),
        lambda node: fetch_transactions(node, versions="5:7", progress=False),
        lambda node: fetch_simulations(node, [request], progress=False),
    ]
    for read in reads:
        node = Node(URL, transport=fake)
        node.ledger()
        with pytest.raises(LedgerChanged, match=r"chain id 4\b.*\b9\b"):
            read(node)


def test_a_refusal_of_another_chain_counts_too():
    """Whatever the status of the answer."""
    node = Node(URL, transport=FakeNode({"POST /view": refused(400, "x", head=None, X_APTOS_CHAIN_ID="9")}))
    node.ledger()
    with pytest.raises(LedgerChanged):
        node.view("0x1::m::f")


def test_a_chain_that_is_expected_is_expected_of_the_first_answer():
    """What workers of an executor do."""
    node = Node(URL, transport=FakeNode({}))
    node.expect_chain(7)
    with pytest.raises(LedgerChanged, match=r"chain id 7\b.*\b4\b"):
        node.ledger()


@pytest.mark.parametrize(
    ("headers", "chain_id"),
    [
        (ledger_headers(ledger()), 4),
        ({"x-aptos-chain-id": "77"}, 77),
        ({"X-Other-Brand-Chain-Id": "1"}, 1),
        (ledger_headers(ledger()) | {"X-GATEWAY-CHAIN-ID": "9"}, 4),
        ({"X-GATEWAY-CHAIN-ID": "9"} | ledger_headers(ledger()), 4),
        ({"x-aptos-chain-id": "256"}, None),
        ({"x-aptos-chain-id": "-4"}, None),
        ({"chain-id": "4"}, None),
        ({}, None),
    ],
)
def test_the_chain_id_of_an_answer(headers, chain_id):
    """By the node's own header, whichever other headers are missing or present."""
    assert parse_headers(headers).chain_id == chain_id


def test_an_unreachable_node_has_no_anchor():
    """Nothing to compare with, so the fetch does not begin."""

    def gone(*_):
        raise NodeUnreachable("refused")

    with pytest.raises(NodeUnreachable):
        LedgerAnchor.taken(Node(URL, transport=FakeNode({"GET ": gone, WHERE: gone})), 900)
