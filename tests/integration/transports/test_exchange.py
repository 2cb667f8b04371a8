"""One request and its answer, the same over both roads: what goes out, what comes back, what is broken."""

from __future__ import annotations

import gzip
import json
import pickle
import threading
import time

import pytest

from tests.integration.transports.conftest import KEY
from tests.integration.transports.servers import FINE, HTML_429, LATIN, dead_port
from toolkit.client import _http as http
from toolkit.client._http import Request
from toolkit.errors import ClosedError, NodeUnreachable

BROKEN = ["cut", "short", "cutchunk", "garbage", "badgzip", "brokengzip"]


def get(transport, server, where, **query):
    return transport.send(Request("GET", server.url(where, **query)))


def test_an_answer_comes_as_it_is(server, transport):
    """Status, headers under lower-case names, and bytes."""
    answer = get(transport, server, "fine")
    assert (answer.status, answer.body) == (200, FINE)
    assert answer.headers["content-type"] == "application/json"
    assert {name for name in answer.headers if name != name.lower()} == set()


def test_a_header_sent_twice_is_joined(server, transport):
    """The values are joined with a comma, as in HTTP; the case of the name does not matter."""
    assert get(transport, server, "twice").headers["x-odd"] == "one, two"


def test_a_request_goes_as_it_is(server, transport):
    """Method, query, body and headers are not touched, and nothing is added that says otherwise."""
    body = b'{"a":1}\0\xff'
    transport.send(Request("POST", server.url("fine", ledger_version=3), body, {"Content-Type": "x/y", "X-A": "b"}))
    method, where, headers, sent = server.seen[0]
    assert (method, where, sent) == ("POST", "/v1/fine?ledger_version=3", body)
    assert headers["Content-Type"] == "x/y"
    assert headers["Content-Length"] == "9"
    assert headers["X-A"] == "b"
    assert headers["User-Agent"] == "ledger-toolkit"
    assert "Expect" not in headers


def test_a_get_has_no_body_and_no_content_type(server, transport):
    """Nothing of an earlier POST sticks to the connection."""
    transport.send(Request("POST", server.url("fine"), b"body", {"Content-Type": "x/y", "X-A": "b"}))
    get(transport, server, "fine")
    method, _, headers, sent = server.seen[1]
    assert (method, sent) == ("GET", b"")
    assert {"Content-Type", "X-A", "Content-Length"} & set(headers) == set()


def test_a_large_body_goes_whole(server, transport):
    """Two megabytes, without waiting for a go-ahead."""
    body = b"0123456789" * 200_000
    assert transport.send(Request("POST", server.url("fine"), body)).status == 200
    assert server.seen[0][3] == body


def test_an_error_status_is_an_answer(server, transport):
    """A gateway's HTML 429 is an answer like any other at this seam, Retry-After included."""
    answer = get(transport, server, "page")
    assert (answer.status, answer.body, answer.headers["retry-after"]) == (429, HTML_429, "7")


def test_the_charset_is_not_believed(server, transport):
    """Bytes that are not what the header claims come through untouched."""
    assert get(transport, server, "charset").body == LATIN


def test_compression_is_unpacked(server, transport):
    """The transport offers it, and unpacks it."""
    assert get(transport, server, "gzip").body == FINE
    assert server.seen[0][2]["Accept-Encoding"] == "gzip"


BODY = FINE * 20
DAMAGED = bytearray(gzip.compress(BODY))
DAMAGED[20:40] = b"\xff" * 20


@pytest.mark.fault(
    "a compressed body that is cut off, damaged, or in an encoding that was not offered",
    "no answer, by libcurl and by `requests`; never a part of the body",
)
@pytest.mark.parametrize(
    ("encoding", "body", "is_good"),
    [
        ("identity", BODY, True),
        ("x-gzip", gzip.compress(BODY), True),
        ("GZIP", gzip.compress(BODY), True),
        ("gzip, identity", gzip.compress(BODY), True),
        ("gzip", gzip.compress(BODY[:50]) + gzip.compress(BODY[50:]), True),
        ("gzip", gzip.compress(BODY)[:-4], False),
        ("gzip", gzip.compress(BODY)[:-12], False),
        ("gzip", gzip.compress(BODY) + b"more", False),
        ("gzip", bytes(DAMAGED), False),
        ("gzip, gzip", gzip.compress(gzip.compress(BODY)), False),
        ("deflate", BODY, False),
        ("br", BODY, False),
        ("zstd", BODY, False),
        ("unknown", BODY, False),
    ],
    ids=[str(number) for number in range(14)],  # the bytes contain the time
)
def test_both_transports_take_the_same_bodies(server, transport, encoding, body, is_good):
    """A compressed body is either complete or an error; an encoding that was not offered is refused."""
    server.body = encoding, body
    if is_good:
        assert get(transport, server, "encoded").body == BODY
    else:
        with pytest.raises(NodeUnreachable, match="could not be decompressed"):
            get(transport, server, "encoded")


def test_chunks_are_joined(server, transport):
    """A chunked body is one body; its trailer is not a header."""
    answer = get(transport, server, "chunked")
    assert answer.body == FINE
    assert "x-trailer" not in answer.headers


@pytest.mark.parametrize(
    ("where", "words"),
    [
        *((where, "could not be decompressed") for where in ("badgzip", "brokengzip")),
        *((where, "cut off") for where in ("short", "cutchunk", "cut")),
    ],
)
def test_a_broken_answer_says_how(server, transport, where, words):
    """The error distinguishes a hang-up, broken compression and a node that cannot be reached."""
    with pytest.raises(NodeUnreachable, match=words):
        get(transport, server, where)


@pytest.mark.parametrize("where", BROKEN)
def test_a_broken_answer_is_unreachable_and_the_next_one_is_fine(server, transport, where):
    """Cut, shortened or garbled: no answer came, the text says where, and the transport lives on."""
    with pytest.raises(NodeUnreachable, match=rf"^GET http://127.0.0.1:{server.port}/v1/{where}: "):
        get(transport, server, where)
    assert get(transport, server, "fine").body == FINE


def test_more_than_promised_does_not_poison_the_next_answer(server, transport):
    """Bytes after the promised length belong to nobody."""
    assert get(transport, server, "long").body == FINE
    time.sleep(0.05)
    assert get(transport, server, "gzip").body == FINE


@pytest.mark.parametrize("where", ["large", "endless", "bomb"])
def test_an_oversized_answer_is_dropped(server, transport, monkeypatch, where):
    """More than the bound is not kept in memory, plain, without a length, or unpacked from five kilobytes."""
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 100_000)
    with pytest.raises(NodeUnreachable, match="larger than 100,000 bytes"):
        get(transport, server, where)
    assert len(get(transport, server, "exact").body) == 100_000


@pytest.mark.parametrize("where", ["stall", "pause"])
def test_a_server_that_stalls_is_given_up_on(server, hasty, where):
    """Before the headers or amid the body, the wait ends and the text says what to do.

    libcurl measures the rate over some seconds, so that with a short timeout_s the limit of the whole request comes first.
    """
    begun = time.monotonic()
    with pytest.raises(NodeUnreachable, match=r"(no response within 0\.4 s|longer than 4 s, .*); raise timeout_s"):
        get(hasty, server, where)
    assert time.monotonic() - begun > 0.3


def test_a_slow_answer_is_waited_for_while_bytes_come(server, open_transport):
    """The limit is for each wait, not for the whole: a drip of 6 seconds arrives. A busy machine may pause it for three."""
    assert get(open_transport(timeout_s=4), server, "drip").body == b"x" * 12


def test_a_dead_port_says_that_nothing_answers(transport):
    """Nobody there: the text gives the reason and what to check."""
    with pytest.raises(NodeUnreachable, match=r"cannot connect .*check the URL"):
        transport.send(Request("GET", f"http://127.0.0.1:{dead_port()}/v1"))


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "file:///etc/hostname", "http://"])
def test_other_schemes_are_refused(transport, url):
    """Only http and https are spoken."""
    with pytest.raises(NodeUnreachable):
        transport.send(Request("GET", url))


def test_the_api_key_goes_with_each_request(server, transport):
    """As a bearer token."""
    get(transport, server, "fine")
    get(transport, server, "fine")
    assert server.authorizations() == [f"Bearer {KEY}"] * 2


def test_a_login_is_sent_when_there_is_no_key(server, open_transport):
    """A key takes its place."""
    request = Request("GET", server.url("fine"))
    open_transport(login="user:hunter%402").send(request)
    open_transport(login="user:hunter%402", api_key=KEY).send(request)
    assert server.authorizations() == ["Basic dXNlcjpodW50ZXJAMg==", f"Bearer {KEY}"]


@pytest.mark.parametrize("text", ["b\r\nX-Evil: 1", "b\nX-Evil: 1"])
def test_a_header_cannot_write_another(server, transport, text):
    """A line break in a header is refused, not sent."""
    with pytest.raises(NodeUnreachable):
        transport.send(Request("GET", server.url("fine"), None, {"X-A": text}))
    assert server.seen == []


def test_a_netrc_is_not_read(server, open_transport, tmp_path, monkeypatch):
    """Credentials that lie around for this host go nowhere."""
    for name in ("netrc", ".netrc"):
        (tmp_path / name).write_text("machine 127.0.0.1 login user password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    get(open_transport(), server, "fine")
    assert server.authorizations() == [None]


def test_cookies_are_not_kept(server, transport):
    """What a server sets does not come back to it."""
    get(transport, server, "cookie")
    get(transport, server, "fine")
    assert "Cookie" not in server.seen[1][2]


@pytest.mark.parametrize("where", [*BROKEN, "stall"])
def test_the_key_is_in_no_error(server, hasty, where):
    """Neither the text, nor any cause behind it, nor a repr or pickle has the key or the password of the URL."""
    url = server.url(where).replace("http://", "http://user:hunter2@")
    with pytest.raises(NodeUnreachable) as caught:
        hasty.send(Request("GET", url))
    error, texts = caught.value, [repr(hasty), str(pickle.dumps(caught.value))]
    while error is not None:
        texts += [str(error), repr(error)]
        assert getattr(error, "request", None) is None  # clusters pickle whole chains, and a request has its headers
        error = error.__cause__ or error.__context__
    assert not [text for text in texts if KEY in text or "hunter2" in text]


def test_a_transport_is_not_pickled(transport):
    """It holds sockets and a key: the text says to pickle the node's settings."""
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(transport)


def test_a_closed_transport_says_so(server, transport):
    """After close nothing is sent, and the text says what to do; closing twice is fine."""
    get(transport, server, "fine")
    transport.close()
    transport.close()
    with pytest.raises(ClosedError, match=r"connect\(\) again"):
        get(transport, server, "fine")
    assert len(server.seen) == 1
    assert server.settled(0) == 0


def test_threads_one_after_another_share_a_connection(server, transport):
    """A connection is not lost with the thread that opened it."""
    for _ in range(4):
        thread = threading.Thread(target=get, args=(transport, server, "fine"))
        thread.start()
        thread.join()
    assert server.connections == 1


def test_threads_at_once_have_a_connection_each_and_close_ends_all(server, transport):
    """Four at once need four connections, and close leaves none."""
    threads = [threading.Thread(target=get, args=(transport, server, "wait"), kwargs={"s": 0.2}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.seen) == 4
    assert 1 < server.connections <= 4
    transport.close()
    assert server.settled(0) == 0


def test_a_connection_that_the_server_closed_while_idle_is_replaced(server, transport):
    """A server's keep-alive limit is not an error."""
    for _ in range(3):
        assert get(transport, server, "hangup").body == FINE
        server.settled(0)
        time.sleep(0.02)
    assert server.connections == 3


def test_a_post_on_a_connection_closed_while_idle_goes_out_again(server, transport):
    """The same for a POST."""
    get(transport, server, "hangup")
    server.settled(0)
    time.sleep(0.02)
    assert transport.send(Request("POST", server.url("fine"), b"body")).status == 200
    assert server.seen[-1][3] == b"body"


def test_the_echo_shows_the_headers_that_go_out(server, transport):
    """Nothing but what HTTP needs, the key and the toolkit's own headers."""
    told = json.loads(get(transport, server, "echo").body)
    names = {name.lower() for name in told["headers"]}
    assert names - {"connection"} == {"host", "user-agent", "accept", "accept-encoding", "authorization"}
