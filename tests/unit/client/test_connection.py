"""Retries, pace and paths of one connection, over a transport in memory and a sleep that is a recorder."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import URL, FakeNode, Script, answer, get, ledger, refused
from toolkit.client import _http as http
from toolkit.client._connection import Connection
from toolkit.client._http import Pace, PreparedCall, RetryPolicy, path
from toolkit.client._node import Node
from toolkit.errors import InputError, InvalidRequest, NodeError, NodeUnreachable, NotFound, RateLimited, Unavailable

GOOD = answer({"fine": True})
CUT = NodeUnreachable("cut")
BUSY = refused(503, "internal_error")


class Clock:
    """A clock that moves only when somebody sleeps."""

    def __init__(self):
        self.now = 100.0
        self.slept = []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


def connected(*outcomes, per_second=None, **options):
    """Return a connection, its transport and its clock."""
    transport, clock = Script(*outcomes), Clock()
    return Connection(URL, transport, sleep=clock.sleep, pace=Pace(per_second, clock), **options), transport, clock


def test_a_good_answer_is_returned_at_once():
    """One request, no sleep, the answer as it came."""
    connection, transport, clock = connected(GOOD)
    assert get(connection, "/x", asked="x") is GOOD
    assert len(transport.requests) == 1
    assert clock.slept == []


@pytest.mark.parametrize(
    "trouble", [CUT, BUSY, refused(502, "x"), refused(504, "x"), refused(429, "x"), refused(500, "x")]
)
def test_trouble_that_passes_is_not_seen(trouble):
    """After one outage the answer comes, and one jittered wait was slept."""
    connection, transport, clock = connected(trouble, GOOD, retry=RetryPolicy(base_s=1.0))
    assert get(connection, "/x", asked="x") is GOOD
    assert len(transport.requests) == 2
    assert len(clock.slept) == 1
    assert 0.5 <= clock.slept[0] <= 1.0


def test_waits_grow_until_the_attempts_are_used_up():
    """Five requests in all, four waits that double within their jitter, then the last error."""
    connection, transport, clock = connected(BUSY, retry=RetryPolicy(base_s=1.0, cap_s=4.0))
    with pytest.raises(Unavailable):
        get(connection, "/x", asked="x")
    assert len(transport.requests) == 5
    assert [low <= wait <= 2 * low for wait, low in zip(clock.slept, (0.5, 1, 2, 2), strict=True)] == [True] * 4


def test_a_repeated_request_is_the_same_request():
    """POST bodies, URL and headers do not change between attempts."""
    connection, transport, _ = connected(CUT, BUSY, GOOD)
    request = connection.request("POST", "/view", body=b"{}", query={"ledger_version": 3})
    assert connection.perform(PreparedCall(request, "x", lambda found: found)) is GOOD
    assert transport.requests == [request] * 3


def test_unreachable_to_the_end_is_raised_as_such():
    """The transport's own error is what the caller sees."""
    connection, transport, _ = connected(CUT, retry=RetryPolicy(attempts=3))
    with pytest.raises(NodeUnreachable, match="cut"):
        get(connection, "/x", asked="x")
    assert len(transport.requests) == 3


@pytest.mark.parametrize("status", [400, 403, 404, 410, 413, 507])
def test_a_refusal_is_raised_at_once(status):
    """What the node refuses is not asked again."""
    connection, transport, clock = connected(refused(status, "some_code"))
    with pytest.raises(NodeError):
        get(connection, "/x", asked="x")
    assert len(transport.requests) == 1
    assert clock.slept == []


def test_retry_after_is_obeyed():
    """The wait is what the node asks for where that is longer than the own one."""
    connection, _, clock = connected(refused(429, "x", retry_after="7"), GOOD)
    get(connection, "/x", asked="x")
    assert clock.slept == [7.0]


@pytest.mark.parametrize(
    ("status", "after", "kind", "slept"),
    [
        pytest.param(429, "3600", RateLimited, [], id="a gateway that asks for an hour gets no hour"),
        pytest.param(503, "20", Unavailable, [20.0, 20.0, 20.0], id="repeats end where the next wait would exceed it"),
    ],
)
def test_the_budget_bounds_the_sum_of_waits(status, after, kind, slept):
    """Then the error comes at once, with the wait that was asked for."""
    connection, transport, clock = connected(
        refused(status, "x", retry_after=after), retry=RetryPolicy(attempts=50, budget_s=60.0)
    )
    with pytest.raises(kind) as caught:
        get(connection, "/x", asked="x")
    assert caught.value.retry_after_s == float(after)
    assert len(transport.requests) == 1 + len(slept)
    assert clock.slept == slept


def test_a_backend_behind_the_head_seen_is_asked_again():
    """A 404 for a version that this host has shown before comes from a lagging backend."""
    ahead = answer([], head=ledger(1_000))
    behind = refused(404, "version_not_found", head=ledger(990))
    connection, transport, _ = connected(ahead, behind, behind, GOOD)
    get(connection, "/x", asked="x")
    assert get(connection, "/x", asked="x", query={"ledger_version": 995}) is GOOD
    assert len(transport.requests) == 4


@pytest.mark.parametrize(
    ("version", "refusal", "requests"),
    [
        pytest.param(1_001, refused(404, "version_not_found", head=ledger(990)), 1, id="above every head seen"),
        pytest.param(995, refused(404, "version_not_found", head=ledger(1_000)), 1, id="the backend is not behind"),
        pytest.param(995, refused(404, "version_not_found", head=None), 1, id="the backend says nothing"),
        pytest.param(5, refused(404, "table_item_not_found", head=ledger(990)), 1, id="an item, which is no lag"),
        pytest.param(995, refused(404, "version_not_found", head=ledger(990)), 3, id="a backend that stays behind"),
    ],
)
def test_any_other_404_is_final(version, refusal, requests):
    """Only a version that this host has shown before is asked for again, and not for ever."""
    connection, transport, _ = connected(answer([], head=ledger(1_000)), refusal, retry=RetryPolicy(attempts=3))
    get(connection, "/x", asked="x")
    with pytest.raises(NotFound):
        get(connection, "/x", asked="x", query={"ledger_version": version})
    assert len(transport.requests) == 1 + requests


def test_requests_are_evenly_paced():
    """At 4 per second each request after the first waits for its turn."""
    connection, _, clock = connected(GOOD, per_second=4.0)
    for _ in range(4):
        get(connection, "/x", asked="x")
    assert clock.slept == [0.25, 0.25, 0.25]


def test_time_that_passed_anyway_counts_for_the_pace():
    """Who comes late enough does not wait, and saves up no turns either."""
    connection, _, clock = connected(GOOD, per_second=4.0)
    get(connection, "/x", asked="x")
    clock.now += 10
    get(connection, "/x", asked="x")
    get(connection, "/x", asked="x")
    assert clock.slept == [0.25]


def test_repeats_are_paced_too():
    """A repeated request takes a turn of its own."""
    connection, _, clock = connected(CUT, GOOD, per_second=0.5, retry=RetryPolicy(base_s=0.1))
    get(connection, "/x", asked="x")
    assert len(clock.slept) == 2
    assert sum(clock.slept) == pytest.approx(2.0)


def test_a_body_goes_with_its_type():
    """A body says what it is and what may come back; None in a query is left out."""
    connection, _, _ = connected(GOOD)
    request = connection.request(
        "POST", "/view", body=b"\x00", query={"ledger_version": None}, content="a/b", accept="c/d"
    )
    assert (request.method, request.url, request.body) == ("POST", f"{URL}/view", b"\x00")
    assert request.headers["Content-Type"] == "a/b"
    assert request.headers["Accept"] == "c/d"
    assert request.headers["x-aptos-client"].startswith("ledger-toolkit/")


def test_without_a_body_there_is_no_content_type():
    """A GET asks for JSON and sends nothing."""
    connection, transport, _ = connected(GOOD)
    get(connection, "/x", asked="x")
    assert transport.requests[0].headers["Accept"] == "application/json"
    assert "Content-Type" not in transport.requests[0].headers
    assert transport.requests[0].body is None


def test_queries_are_part_of_the_url():
    """Query values are encoded; version 0 is a version."""
    connection, transport, _ = connected(GOOD)
    get(connection, "/x", asked="x", query={"ledger_version": 0, "cursor": "a&b=c"})
    assert transport.requests[0].url == f"{URL}/x?ledger_version=0&cursor=a%26b%3Dc"


def test_a_value_cannot_change_the_path():
    """Slashes, questions and type brackets are encoded within their segment."""
    assert path("accounts", "0x1", "resource", "0x1::m::S<0x1::a::B, u8>") == (
        "/accounts/0x1/resource/0x1%3A%3Am%3A%3AS%3C0x1%3A%3Aa%3A%3AB%2C%20u8%3E"
    )
    assert path("tables", "a/../b?c#d", "item") == "/tables/a%2F..%2Fb%3Fc%23d/item"
    assert path("blocks", "by_version", 7) == "/blocks/by_version/7"


def test_texts_say_what_was_asked():
    """The words of the caller begin the text of an error."""
    connection, _, _ = connected(refused(400, "invalid_input", "bad"))
    with pytest.raises(InvalidRequest, match=r"^view 0x1::coin::supply at version 3: the node answered 400"):
        get(connection, "/x", asked="view 0x1::coin::supply at version 3")


def test_closing_closes_the_transport():
    """Sockets are the transport's."""
    connection, transport, _ = connected(GOOD)
    connection.close()
    assert transport.closed


@pytest.mark.parametrize("part", ["..", "."])
def test_dots_are_no_way_up_the_path(part):
    """A segment of dots, which HTTP libraries resolve, never gets into a path."""
    with pytest.raises(InputError):
        path("accounts", "0x1", "module", part)


def test_the_headers_of_an_answer_are_parsed_once(monkeypatch):
    """Whoever looks at them: the head, the chain id, the gas and the error."""
    parsed = []
    parse = http.parse_headers
    monkeypatch.setattr(http, "parse_headers", lambda headers: parsed.append(headers) or parse(headers))
    there = FakeNode({"POST /view": lambda *_: answer(["7"], gas=5), "GET /x": refused(404, "x", head=ledger())})
    node = Node(URL, transport=there)
    assert node.view("0x1::m::f").gas_used == 5
    assert node.view("0x1::m::f", ledger_version=5).ledger.version == 1_000
    with pytest.raises(NotFound):
        node.account("0xb")
    assert len(parsed) <= len(there.asked)
