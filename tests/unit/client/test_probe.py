"""What a node really answers: the oldest readable version, gas, companions; and plans that start from it."""

from __future__ import annotations

from itertools import count

import pytest

import toolkit
from tests.unit.client.fakes import URL, FakeNode, answer, function, ledger, module, refused
from toolkit import embedded
from toolkit.client._fetch import fetch_transactions, fetch_views, plan_versions
from toolkit.client._node import Node, Probe
from toolkit.errors import FailedReadsWarning, NodeUnreachable
from toolkit.wire import ViewFunction

HEAD = 1_000_000
CLOCK = ViewFunction("0x1::timestamp::now_microseconds")
TIMESTAMP = module("timestamp", functions=[function("now_microseconds", [], ["u64"])])
MODULE = "GET /accounts/0x1/module/timestamp"
RESOURCE = "GET /accounts/0x1/resource/0x1%3A%3Atimestamp%3A%3ACurrentTimeMicroseconds"


def gateway(*, oldest: int = 0, claimed: int = 0, gas=lambda: 4, routes=None):
    """Return a node whose views answer from `oldest` on, and the fake behind it."""
    head = ledger(HEAD, oldest=claimed)

    def view(query, _):
        if int(query["ledger_version"]) < oldest:
            return refused(410, "version_pruned", "gone", head=head)
        return answer(["1777593600000000"], head=head, gas=gas())

    fake = FakeNode(head=head)
    fake.routes |= {MODULE: lambda *_: answer(TIMESTAMP, head=head), "POST /view": view} | (routes or {})
    return Node(URL, transport=fake), fake


def test_a_node_that_answers_what_it_claims():
    """The claimed oldest version is asked first, and then no other."""
    node, fake = gateway(oldest=500, claimed=500)
    found = node.probe()
    assert (found.head, found.claimed_oldest, found.oldest_readable) == (HEAD, 500, 500)
    assert len(fake.sent("POST /view")) == 4
    assert (found.node, found.chain_id) == ("http://node.test/v1", 4)


@pytest.mark.parametrize("oldest", [1, 500_000, 900_000, HEAD - 1, HEAD])
def test_an_oldest_version_that_does_not_answer_is_searched(oldest):
    """By halving: what is found answers, and is within a thousandth of the range."""
    node, fake = gateway(oldest=oldest)
    found = node.probe()
    assert found.claimed_oldest == 0
    assert oldest <= found.oldest_readable <= oldest + HEAD // 1_000
    assert found.requests <= 25
    assert len(fake.sent("POST /view")) <= 14


def test_a_small_range_is_found_exactly():
    """Few versions need few halvings."""
    head = ledger(300, oldest=0)

    def view(query, _):
        if int(query["ledger_version"]) < 123:
            return refused(404, "version_not_found", "not here", head=head)
        return answer(["1"], head=head)

    fake = FakeNode({MODULE: answer(TIMESTAMP, head=head), "POST /view": view}, head=head)
    found = Node(URL, transport=fake).probe()
    assert found.oldest_readable == 123


def test_a_node_without_views_has_no_readable_version():
    """Where even the head does not answer there is nothing to search."""
    node, fake = gateway(routes={"POST /view": refused(403, "forbidden", "views are off")})
    found = node.probe()
    assert (found.oldest_readable, found.gas_header, found.gas_stable) == (None, False, None)
    assert len(fake.sent("POST /view")) == 3


@pytest.mark.parametrize(
    ("gas", "header", "stable"),
    [
        pytest.param([4] * 5, True, True, id="the same in three reads"),
        pytest.param([4, 5, 6, 7, 8], True, False, id="backends of different builds"),
        pytest.param([None] * 5, False, None, id="no header"),
        pytest.param([4, None, 4, 4, 4], False, None, id="one answer without the header"),
    ],
)
def test_gas_is_told_and_stable_or_not(gas, header, stable):
    """Three reads at one version tell: whether there is a header, and whether its gas can be relied on."""
    told = iter(gas)
    found = gateway(gas=lambda: next(told))[0].probe()
    assert (found.gas_header, found.gas_stable) == (header, stable)


def test_companions_that_are_refused_are_named():
    """403, 404 and an HTML page each are a no; what answers is a yes."""
    node, _ = gateway(
        routes={
            RESOURCE: answer({"type": "0x1::timestamp::CurrentTimeMicroseconds", "data": {"microseconds": "1"}}),
            "GET /estimate_gas_price": answer({"gas_estimate": 100}),
            "GET /accounts/0x1": refused(403, "forbidden", "off"),
        }
    )
    offers = node.probe().offers
    assert {name for name, there in offers.items() if there} == {
        "node info",
        "module",
        "resource",
        "gas price estimate",
    }
    assert len(offers) == 9


def test_modules_that_are_refused_do_not_stop_the_probe():
    """A gateway without modules: types are inferred, the rest is found out."""
    found = gateway(oldest=10, routes={MODULE: refused(403, "forbidden", "modules are off")})[0].probe()
    assert not found.offers["module"]
    assert found.oldest_readable is not None


def test_a_node_that_is_not_there_raises():
    """There is nothing to tell of it."""

    class Dead(FakeNode):
        def send(self, request):
            raise NodeUnreachable(f"{request.url}: refused")

    node = Node(URL, transport=Dead(), sleep=lambda _: None)
    with pytest.raises(NodeUnreachable):
        node.probe()
    assert node.probed is None


def test_facts_are_what_a_command_prints():
    """Names of what is offered and what is not, all of it."""
    found = Probe("n", 4, 9, 0, 1, gas_header=True, gas_stable=True, offers={"a": True, "b": False}, requests=12)
    facts = found.facts()
    assert (facts["offers"], facts["does_not_offer"], facts["requests"]) == (["a"], ["b"], 12)
    assert (facts["oldest_readable"], facts["head"], facts["claimed_oldest"]) == (1, 9, 0)


def test_plans_start_from_what_was_found():
    """After a probe open bounds begin where views answer, and the plan says so."""
    node, _ = gateway(oldest=900_000)
    assert min(plan_versions(node, "0:-1/11")[0].versions) == 0
    oldest = node.probe().oldest_readable
    with pytest.warns(UserWarning, match=f"versions 0 to {oldest - 1:,} are below the oldest"):
        frame = fetch_views(node, CLOCK, versions="0:-1/11", progress=False)
    assert frame["ledger_version"].min() == oldest
    assert frame["error_code"].isna().all()
    assert node.oldest_readable(node.ledger()) == oldest


def test_transactions_are_not_clipped_by_what_views_answer(recwarn):
    """Views and transactions are pruned separately, so a probe of one does not apply to the other."""
    node, fake = gateway(oldest=900_000)
    node.probe()
    frames = fetch_transactions(node, versions="0:2", progress=False)
    assert fake.sent("GET /transactions")[-1][0] == {"start": "0", "limit": "3"}
    assert frames.transactions["ledger_version"].tolist() == [0, 1, 2]
    assert [one.category for one in recwarn] == [FailedReadsWarning]  # nothing about clipped versions


def test_a_node_that_prunes_on_is_not_read_below_its_claim():
    """What was found once is a lower end; a newer claim above it holds."""
    node, _ = gateway(oldest=500, claimed=500)
    node.probe()
    assert node.oldest_readable(ledger(HEAD, oldest=700)) == 700
    assert node.oldest_readable(ledger(HEAD, oldest=3)) == 500


def test_a_probe_that_found_nothing_leaves_plans_alone():
    """Without a readable version the claim is all there is."""
    node, _ = gateway(claimed=40, routes={"POST /view": refused(403, "forbidden")})
    node.probe()
    assert node.oldest_readable(node.ledger()) == 40


def test_the_embedded_node_with_a_window():
    """The oldest version it claims is the oldest it answers; all companions but raw state values are there."""
    history = embedded.Ledger.with_history(seed=7, versions=400, window=200, cache=True)
    with embedded.serve(history, port=0) as url, toolkit.connect(url) as node:
        found = node.probe()
    assert found.claimed_oldest == found.oldest_readable == history.oldest_version > 0
    assert (found.gas_header, found.gas_stable, found.head) == (True, True, history.head)
    assert [name for name, there in found.offers.items() if not there] == ["raw state values"]
    assert found.requests < 25


class TestAskingTheNode:
    """A probe is about the node, so it must ask the node."""

    def test_gas_is_asked_for_each_time(self, tmp_path):
        """With answers kept, three reads of one version are still three requests."""
        numbers = count(4)
        head = ledger()
        routes = {
            MODULE: answer(TIMESTAMP),
            "POST /view": lambda *_: answer(["1"], head=head, gas=next(numbers)),
        }
        with Node(URL, transport=FakeNode(routes), cache=tmp_path / "a.sqlite3") as node:
            assert node.probe().gas_stable is False

    def test_a_version_that_was_pruned_meanwhile_is_not_readable(self, tmp_path):
        """A cached answer does not show that the node still has the version."""
        oldest = 0

        def view(query, _):
            if int(query["ledger_version"]) < oldest:
                return refused(410, "version_pruned", head=ledger())
            return answer(["1"], gas=1)

        routes = {MODULE: answer(TIMESTAMP), "POST /view": view}
        with Node(URL, transport=FakeNode(routes), cache=tmp_path / "a.sqlite3") as node:
            assert node.probe().oldest_readable == 0
            oldest = 500
            assert node.probe().oldest_readable == 500

    def test_all_requests_are_counted(self):
        """What the probe says it took is what was sent."""
        routes = {MODULE: answer(TIMESTAMP), "POST /view": answer(["1"], gas=1)}
        fake = FakeNode(routes)
        assert Node(URL, transport=fake).probe().requests == len(fake.asked)
