"""The road over `requests`, against a server that cuts, stalls, floods and redirects."""

from __future__ import annotations

import threading
import time

import pytest

from tests.unit.client.hostile import HTML, dead_port, hostile_server
from toolkit.client import transport as road
from toolkit.client.connect import connect
from toolkit.client.transport import Request, SessionTransport
from toolkit.errors import ClosedError, NodeUnreachable, ToolkitError, Unavailable


def get(transport, server, where, **options):
    return transport.send(Request("GET", server.url(where, **options)))


def authorizations(server):
    return [headers.get("Authorization") for _, _, headers, _ in server.seen]


def test_an_answer_comes_as_it_is(server, transport):
    """Status, headers in any case, and bytes."""
    answer = get(transport, server, "fine")
    assert (answer.status, answer.body) == (200, b'{"fine": true}')
    assert answer.headers["content-type"] == "application/json"


def test_a_request_goes_as_it_is(server, transport):
    """Method, query, body and headers are not touched."""
    body = b'{"a":1}'
    request = Request(
        "POST", server.url("fine?ledger_version=3"), body, {"Content-Type": "application/json", "X-A": "b"}
    )
    transport.send(request)
    method, where, headers, sent = server.seen[0]
    assert (method, where, sent) == ("POST", "/v1/fine?ledger_version=3", body)
    assert headers["Content-Type"] == "application/json"
    assert headers["Content-Length"] == "7"
    assert headers["X-A"] == "b"


def test_an_error_status_is_an_answer(server, transport):
    """A gateway's page is an answer like any other at this seam."""
    answer = get(transport, server, "page")
    assert (answer.status, answer.body) == (503, HTML)


def test_gzip_is_unpacked(server, transport):
    """Compression is the transport's business."""
    assert get(transport, server, "gzip").body == b'{"fine": true}'
    assert "gzip" in server.seen[0][2]["Accept-Encoding"]


@pytest.mark.parametrize("where", ["cut", "short", "garbage", "notgzip"])
def test_a_broken_answer_is_unreachable(server, transport, where):
    """Cut, shortened or garbled: no answer came, and the text says where."""
    with pytest.raises(NodeUnreachable, match=rf"^GET http://127.0.0.1:{server.port}/v1/{where}: "):
        get(transport, server, where)


@pytest.mark.parametrize("where", ["slow", "pause"])
def test_a_server_that_stalls_is_given_up_on(server, transport, where):
    """After timeout_s without a byte, before the headers or amid the body, the wait ends."""
    begun = time.monotonic()
    with pytest.raises(NodeUnreachable):
        get(transport, server, where)
    assert time.monotonic() - begun < 2


def test_a_slow_server_tells_which_setting_to_raise(server, transport):
    """The text names the limit and its setting."""
    with pytest.raises(NodeUnreachable, match=r"no answer within 0\.3 s; raise timeout_s"):
        get(transport, server, "slow")


def test_a_dead_port_says_that_nothing_answers(transport):
    """Nobody there: the text gives the reason and what to check."""
    with pytest.raises(NodeUnreachable, match=r"nothing answers there .*refused.*check the URL"):
        transport.send(Request("GET", f"http://127.0.0.1:{dead_port()}/v1"))


def test_tls_to_a_plain_port_is_unreachable(server, transport):
    """A wrong scheme is said to be TLS trouble."""
    with pytest.raises(NodeUnreachable, match="TLS"):
        transport.send(Request("GET", f"https://127.0.0.1:{server.port}/v1"))


def test_an_oversized_answer_is_dropped(server, transport, monkeypatch):
    """More than the bound is not kept in memory; the bound itself passes."""
    monkeypatch.setattr(road, "MAX_ANSWER_BYTES", 100_000)
    with pytest.raises(NodeUnreachable, match="larger than 100,000 bytes"):
        get(transport, server, "large")
    assert len(get(transport, server, "exact").body) == 100_000


def test_the_bound_holds_for_what_gzip_unpacks_to(server, transport, monkeypatch):
    """Five kilobytes that unpack to five megabytes are five megabytes."""
    monkeypatch.setattr(road, "MAX_ANSWER_BYTES", 100_000)
    with pytest.raises(NodeUnreachable, match="larger than 100,000 bytes"):
        get(transport, server, "bomb")


def test_the_transport_lives_on_after_trouble(server, transport):
    """After each kind of trouble the next request is answered."""
    for where in ("cut", "short", "garbage", "notgzip"):
        with pytest.raises(NodeUnreachable):
            get(transport, server, where)
        assert get(transport, server, "fine").status == 200


def test_the_api_key_goes_to_its_host(server, transport):
    """As a bearer token, with each request."""
    get(transport, server, "fine")
    assert authorizations(server) == ["Bearer topsecret"]


def test_without_a_key_nothing_is_sent(server):
    """No key, no header."""
    transport = SessionTransport()
    get(transport, server, "fine")
    transport.close()
    assert authorizations(server) == [None]


def test_a_redirect_on_the_same_host_keeps_the_request(server, transport):
    """307 is followed with method, body and key."""
    server.redirect_to = server.url("fine")
    answer = transport.send(Request("POST", server.url("away"), b"body"))
    assert answer.status == 200
    assert [(method, body) for method, _, _, body in server.seen] == [("POST", b"body")] * 2
    assert authorizations(server) == ["Bearer topsecret"] * 2


def test_a_redirect_to_another_host_loses_the_key(server, transport):
    """The key is for the host it was given for; another name or port is another host."""
    with hostile_server() as other:
        for target in (other.url("fine"), server.url("fine", host="localhost")):
            server.seen.clear()
            other.seen.clear()
            server.redirect_to = target
            assert get(transport, server, "away").status == 200
            seen = authorizations(server) + authorizations(other)
            assert seen == ["Bearer topsecret", None]


def test_a_redirect_loop_ends(server, transport):
    """A server that redirects to itself is unreachable after a bounded number of requests."""
    with pytest.raises(NodeUnreachable):
        get(transport, server, "loop")
    assert len(server.seen) < 50


@pytest.mark.parametrize("where", ["cut", "short", "notgzip", "loop", "slow"])
def test_the_key_is_in_no_error(server, transport, where):
    """Neither the text, nor any cause behind it, nor a repr has the key or the password of the URL."""
    url = server.url(where).replace("http://", "http://user:hunter2@")
    with pytest.raises(NodeUnreachable) as caught:
        transport.send(Request("GET", url))
    error, texts = caught.value, [repr(transport)]
    while error is not None:
        texts += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    assert not [text for text in texts if "topsecret" in text or "hunter2" in text]


def test_a_node_does_not_show_its_key(server):
    """Node, its parts and its errors keep the key to themselves."""
    with connect(server.url(""), api_key="topsecret") as node:
        assert "topsecret" not in repr(node) + repr(vars(node)) + str(node.name) + node.url


def test_the_key_of_the_environment_is_used(server, monkeypatch):
    """LEDGER_TOOLKIT_API_KEY stands in where no key is passed; one that is passed wins."""
    monkeypatch.setenv("LEDGER_TOOLKIT_API_KEY", "from-environment")
    for api_key in (None, "passed"):
        with connect(server.url(""), api_key=api_key) as node:
            node._connection.get("/fine", asked="x")
    assert authorizations(server) == ["Bearer from-environment", "Bearer passed"]


def test_a_netrc_is_not_read(server, tmp_path, monkeypatch):
    """Credentials that lie around for this host go nowhere."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password hunter2\n")
    monkeypatch.setenv("NETRC", str(netrc))
    transport = SessionTransport()
    get(transport, server, "fine")
    transport.close()
    assert authorizations(server) == [None]


def test_a_closed_transport_says_so(server):
    """After close nothing is sent, and the text says what to do."""
    transport = SessionTransport()
    get(transport, server, "fine")
    transport.close()
    with pytest.raises(ClosedError, match=r"connect\(\) again"):
        get(transport, server, "fine")
    assert len(server.seen) == 1


def test_closing_closes_every_threads_sockets(server):
    """Sessions of other threads are closed too."""
    transport = SessionTransport()
    before = server.open_after_settling()
    threads = [threading.Thread(target=get, args=(transport, server, "fine")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    transport.close()
    assert server.open_after_settling() <= before


def test_connections_are_kept_alive(server, transport):
    """Requests of one thread share one connection."""
    before = server.open_after_settling()
    for _ in range(5):
        get(transport, server, "fine")
    assert server.open_after_settling() <= before + 1


def test_a_gateways_page_becomes_unavailable_at_the_node(server, monkeypatch):
    """Through the whole client: an HTML 503 is repeated, then raised as Unavailable without its tags."""
    monkeypatch.setenv("NO_PROXY", "*")
    with connect(server.url("")) as node:
        waits = []
        monkeypatch.setattr(node._connection, "_sleep", waits.append)
        with pytest.raises(Unavailable, match="No server is available") as caught:
            node._connection.get("/page", asked="page")
    assert "<" not in str(caught.value)
    assert len(waits) == 4
    assert len(server.seen) == 5


@pytest.mark.parametrize("key", ["topsecret\n", "top\nsecret", "topsecret\u2026"])
def test_a_key_that_is_no_header_value_is_refused_without_showing_it(server, key):
    """A line end or a non-latin letter in a key is told without the key itself, and not as the node's fault."""

    def send():
        transport = SessionTransport(api_key=key)
        try:
            transport.send(Request("GET", server.url("fine")))
        finally:
            transport.close()

    with pytest.raises(ToolkitError) as caught:
        send()
    assert not isinstance(caught.value, NodeUnreachable)
    texts, error = [], caught.value
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    assert not [text for text in texts if "secret" in text]


def test_credentials_of_the_url_are_sent(server):
    """User and password written into the URL go as basic authentication."""
    transport = SessionTransport()
    url = server.url("fine").replace("http://", "http://user:hunter2@")
    transport.send(Request("GET", url))
    transport.close()
    assert (server.seen[0][2].get("Authorization") or "").startswith("Basic ")


def test_a_netrc_is_not_read_on_a_redirect_either(server, tmp_path, monkeypatch):
    """Credentials that lie around for the host it goes on to stay where they are."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login user password hunter2\n")
    monkeypatch.setenv("NETRC", str(netrc))
    server.redirect_to = server.url("fine", host="localhost")
    transport = SessionTransport(api_key="topsecret")
    transport.send(Request("GET", server.url("away")))
    transport.close()
    assert [headers.get("Authorization") for _, _, headers, _ in server.seen] == ["Bearer topsecret", None]


def test_threads_that_ended_leave_no_connections(server):
    """Each fetch has new threads: the sessions of the old ones do not pile up."""
    transport = SessionTransport()
    before = server.open_after_settling()
    for _ in range(5):
        threads = [
            threading.Thread(target=transport.send, args=(Request("GET", server.url("fine")),)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    left = server.open_after_settling() - before
    transport.close()
    assert left <= 8
