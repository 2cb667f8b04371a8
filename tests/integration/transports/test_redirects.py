"""Redirects over both roads: the request keeps its shape, the key stays at home, TLS is not given up."""

from __future__ import annotations

import pytest

from tests.integration.transports.conftest import KEY
from tests.integration.transports.servers import FINE, Server, serving
from toolkit.client._http import Request
from toolkit.errors import HopelessError


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_get_follows(server, transport, code):
    """All five, relative or absolute, with the key on the same site."""
    for to in ("fine", "/v1/fine?a=1", server.url("fine")):
        server.seen.clear()
        assert transport.send(Request("GET", server.url("redirect", code=code, to=to))).body == FINE
        assert [method for method, *_ in server.seen] == ["GET", "GET"]
        assert server.authorizations() == [f"Bearer {KEY}"] * 2


@pytest.mark.parametrize("code", [307, 308])
def test_a_post_keeps_method_body_and_headers(server, transport, code):
    """These two codes mean: the same again, there."""
    headers = {"Content-Type": "x/y"}
    answer = transport.send(Request("POST", server.url("redirect", code=code, to="fine"), b"body", headers))
    assert answer.body == FINE
    assert [(method, sent, head["Content-Type"]) for method, _, head, sent in server.seen] == [
        ("POST", b"body", "x/y")
    ] * 2


@pytest.mark.parametrize("code", [301, 302, 303])
def test_a_post_is_not_turned_into_a_get(server, transport, code):
    """A redirect that would drop the body is refused, with what to do."""
    with pytest.raises(HopelessError, match=rf"{code}.*would lose its body.*connect to the new address"):
        transport.send(Request("POST", server.url("redirect", code=code, to="fine"), b"body"))
    assert len(server.seen) == 1


def test_another_port_does_not_get_the_key(server, other, transport):
    """Another port is another site; coming back does not bring the key back."""
    back = server.url("fine")
    away = other.url("redirect", code=307, to=back)
    assert transport.send(Request("GET", server.url("redirect", code=302, to=away))).body == FINE
    assert server.authorizations() == [f"Bearer {KEY}", None]
    assert other.authorizations() == [None]


def test_another_name_does_not_get_the_key(server, transport):
    """localhost is not 127.0.0.1."""
    to = server.url("fine", host="localhost")
    assert transport.send(Request("GET", server.url("redirect", code=307, to=to))).body == FINE
    assert server.authorizations() == [f"Bearer {KEY}", None]


def test_another_scheme_does_not_get_the_key(server, tls_server, trusted, transport):
    """From http to https the redirect is followed without the key."""
    to = tls_server.url("fine")
    assert transport.send(Request("GET", server.url("redirect", code=308, to=to))).body == FINE
    assert tls_server.authorizations() == [None]


def test_credentials_in_a_location_are_not_used(server, other, transport):
    """A server cannot make the client log in somewhere."""
    to = other.url("fine").replace("//", "//user:password@")
    assert transport.send(Request("GET", server.url("redirect", code=307, to=to))).body == FINE
    assert other.authorizations() == [None]


def test_the_password_of_the_url_stays_at_its_site(server, other, open_transport):
    """Like a key."""
    url = server.url("redirect", code=307, to=other.url("fine")).replace("//127", "//user:hunter2@127", 1)
    open_transport().send(Request("GET", url))
    assert server.authorizations() == ["Basic dXNlcjpodW50ZXIy"]
    assert other.authorizations() == [None]


def test_tls_is_not_given_up(tls_server, other, trusted, transport):
    """https to http is refused before anything is sent there."""
    with pytest.raises(HopelessError, match="from https to http"):
        transport.send(Request("GET", tls_server.url("redirect", code=307, to=other.url("fine"))))
    assert other.seen == []


@pytest.mark.parametrize("to", ["file:///etc/hostname", "ftp://127.0.0.1/x", "http://[broken", "http://"])
def test_a_redirect_to_no_usable_url_is_refused(server, transport, to):
    """Only http and https are followed."""
    with pytest.raises(HopelessError, match="redirect"):
        transport.send(Request("GET", server.url("redirect", code=302, to=to)))


def test_five_redirects_are_followed_and_no_more(server, transport):
    """The sixth is an error."""
    assert transport.send(Request("GET", server.url("countdown", n=5))).body == FINE
    server.seen.clear()
    with pytest.raises(HopelessError, match="more than 5 redirects"):
        transport.send(Request("GET", server.url("countdown", n=6)))
    assert len(server.seen) == 6


def test_a_redirect_without_a_location_is_an_answer(server, transport):
    """The caller's mapping of errors speaks of it."""
    assert transport.send(Request("GET", server.url("nowhere"))).status == 302


def test_hostile_text_in_a_location_is_shown_short_and_harmless(server, transport):
    """Neither control characters nor a flood reach the text."""
    to = "gopher://x/\x1b[31m" + "a" * 5000
    with pytest.raises(HopelessError) as caught:
        transport.send(Request("GET", server.url("redirect", code=302, to=to)))
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_redirect_to_a_dead_end_names_the_dead_end(server, transport):
    """The text says which address failed."""
    with serving(Server()) as gone:
        to = gone.url("fine")
    with pytest.raises(Exception, match=rf"GET http://127.0.0.1:{gone.port}/v1/fine: cannot connect"):
        transport.send(Request("GET", server.url("redirect", code=302, to=to)))
