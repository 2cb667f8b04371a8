"""What the environment says about proxies and certificates holds on both roads."""

from __future__ import annotations

import pytest

from tests.integration.transports.conftest import KEY
from tests.integration.transports.servers import FINE, Server, dead_port, serving
from toolkit.client._http import Request
from toolkit.errors import HopelessError, NodeUnreachable


@pytest.fixture(params=["http_proxy", "HTTP_PROXY"])
def proxied(request, proxy, monkeypatch):
    """Name the proxy, in lower or upper case."""
    monkeypatch.setenv(request.param, f"http://127.0.0.1:{proxy.port}")
    return proxy


def test_http_goes_through_the_proxy(server, proxied, open_transport):
    """The proxy sees the whole URL; the node's key is for the node and passes through to it."""
    answer = open_transport(api_key=KEY).send(Request("POST", server.url("fine", a=1), b"body"))
    assert (answer.body, answer.headers["via"]) == (FINE, "1.1 test")
    assert proxied.seen[0][:2] == ("POST", server.url("fine", a=1))
    assert server.authorizations() == [f"Bearer {KEY}"]


@pytest.mark.parametrize("excepted", ["127.0.0.1", "*", "127.0.0.0/8"])
def test_no_proxy_is_honoured(server, proxied, open_transport, monkeypatch, excepted):
    """An excepted host is reached directly."""
    monkeypatch.setenv("no_proxy", excepted)
    assert open_transport().send(Request("GET", server.url("fine"))).body == FINE
    assert proxied.seen == []


def test_https_goes_through_a_tunnel_without_the_key(tls_server, proxy, open_transport, monkeypatch, trusted):
    """The proxy receives the host and port, and nothing else."""
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
    answer = open_transport(api_key=KEY).send(Request("GET", tls_server.url("fine")))
    assert (answer.status, answer.body) == (200, FINE)
    assert proxy.seen[0][:2] == ("CONNECT", f"127.0.0.1:{tls_server.port}")
    assert KEY not in str(proxy.seen)
    assert tls_server.authorizations() == [f"Bearer {KEY}"]


def test_the_proxys_own_password_goes_to_the_proxy_only(server, proxy, open_transport, monkeypatch):
    """It is in the proxy's URL, and percent-encoded there."""
    monkeypatch.setenv("http_proxy", f"http://me:pass%40word@127.0.0.1:{proxy.port}")
    open_transport().send(Request("GET", server.url("fine")))
    assert proxy.seen[0][2]["Proxy-Authorization"] == "Basic bWU6cGFzc0B3b3Jk"
    assert "Proxy-Authorization" not in server.seen[0][2]


def test_a_dead_proxy_says_so_without_its_password(server, open_transport, monkeypatch):
    """The text points at the environment."""
    monkeypatch.setenv("http_proxy", f"http://me:hunter2@127.0.0.1:{dead_port()}")
    with pytest.raises(NodeUnreachable, match=r"proxy .*HTTP_PROXY, HTTPS_PROXY") as caught:
        open_transport().send(Request("GET", server.url("fine")))
    error, texts = caught.value, []
    while error is not None:
        texts += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    assert "hunter2" not in "".join(texts)


def test_a_proxy_that_refuses_the_tunnel_says_so(tls_server, proxy, open_transport, monkeypatch, trusted):
    """403 of the proxy is not the node's."""
    proxy.refuses = True
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
    with pytest.raises(NodeUnreachable, match="the proxy set in the environment"):
        open_transport().send(Request("GET", tls_server.url("fine")))
    assert tls_server.seen == []


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_an_authority_of_the_environment_is_trusted(tls_server, certificate, open_transport, monkeypatch, name):
    """Each of the usual names works over both transports, by address and by name."""
    monkeypatch.setenv(name, str(certificate[0]))
    transport = open_transport(timeout_s=5)
    assert transport.send(Request("GET", tls_server.url("fine"))).body == FINE
    assert transport.send(Request("GET", tls_server.url("fine", host="localhost"))).body == FINE


def test_an_untrusted_certificate_is_refused(tls_server, transport):
    """The text says that it is not trusted and what to set; nothing was sent."""
    with pytest.raises(HopelessError, match=r"is not trusted.*REQUESTS_CA_BUNDLE"):
        transport.send(Request("GET", tls_server.url("fine")))
    assert tls_server.seen == []


def test_a_certificate_for_another_name_is_refused(certificate, trusted, transport):
    """A trusted authority vouches for some other host, not for this one."""
    with serving(Server(tls=certificate[2])) as misnamed:
        with pytest.raises(HopelessError, match="is not trusted"):
            transport.send(Request("GET", misnamed.url("fine")))
        assert misnamed.seen == []


def test_a_bundle_that_is_not_there_is_named(tls_server, open_transport, monkeypatch, tmp_path):
    """The text names the variable and the file."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(HopelessError, match=r"SSL_CERT_FILE.*missing\.pem"):
        open_transport().send(Request("GET", tls_server.url("fine")))


def test_a_bundle_that_is_not_there_does_not_matter_for_http(server, open_transport, monkeypatch, tmp_path):
    """Plain http needs no authority."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    assert open_transport().send(Request("GET", server.url("fine"))).body == FINE


def test_tls_to_a_plain_port_is_unreachable(server, transport):
    """The error for a wrong scheme mentions TLS."""
    with pytest.raises(NodeUnreachable, match="TLS handshake failed"):
        transport.send(Request("GET", server.url("fine").replace("http:", "https:")))


def test_tls_connections_are_kept_alive(tls_server, trusted, transport):
    """One handshake for many requests."""
    for _ in range(4):
        transport.send(Request("GET", tls_server.url("fine")))
    assert tls_server.connections == 1


def test_a_broken_answer_over_tls_is_cut_off(tls_server, trusted, transport):
    """The same texts as without TLS."""
    with pytest.raises(NodeUnreachable, match="cut off"):
        transport.send(Request("GET", tls_server.url("short")))
