"""Proxies, certificates and localhost: what must hold over both transports, and what libcurl does besides."""

from __future__ import annotations

import base64
import pickle
import socket
import ssl
import traceback
from contextlib import ExitStack

import pytest

import toolkit
from tests.integration.transports import certificates
from tests.integration.transports.conftest import KEY
from tests.integration.transports.servers import FINE, Proxy, Server, dead_port, serving
from toolkit import embedded
from toolkit.client._http import Request
from toolkit.errors import HopelessError, NodeError, NodeUnreachable

LOGINS = {"me:pass%40word@": b"me:pass@word", "me:@": b"me:", "": None}
"""Logins as the environment has them, and what is sent."""
LIBCURL_LOGINS = {
    ":pass@": b":pass",
    "m\u00e9:\u03c0\u03b1\u03c3@": "m\u00e9:\u03c0\u03b1\u03c3".encode(),
    "m%C3%A9:%CF%80@": "m\u00e9:\u03c0".encode(),
    "me:%FF%20+@": b"me:\xff +",
    "me:\udcff@": b"me:\xff",
}
"""Further logins that libcurl sends; `requests` sends those in Latin-1 only."""

SECRET = "hunter22"  # noqa: S105 - of no real proxy
BAD_PROXIES = [
    f"http://me:{SECRET}@127.0.0.1:99999",
    f"http://me:{SECRET}@127.0.0.1:0",
    f"http://me:{SECRET}@127.0.0.1:port",
    f"http://me:{SECRET}@",
    f"http://me:{SECRET}",
    f"http://me:{SECRET}/x@127.0.0.1:80",
    f"http://me:{SECRET}#x@127.0.0.1:80",
    f"http://me:80/{SECRET}@127.0.0.1:80",
    f"http://me:{SECRET}@[::1",
    f"http://me:{SECRET}@ho st:80",
    f"http://me:{SECRET}@h\u00a0ost:80",
    f"http://me:{SECRET}@h\udcffost:80",
    f"http://me:{SECRET}@a..b:80",
    f"gopher://me:{SECRET}@127.0.0.1:80",
    f"me:{SECRET}:80",
    f"//me:{SECRET}@127.0.0.1:1",
    f"http://me:{SECRET}%00@127.0.0.1:1",
]


@pytest.fixture
def both_loopbacks():
    """Return servers on 127.0.0.1 and ::1 at the same port."""
    with ExitStack() as stack:
        here = stack.enter_context(serving(Server()))
        try:
            there = stack.enter_context(serving(Server(at=("::1", here.port))))
        except OSError as error:
            pytest.skip(f"::1 cannot be used: {error}")
        yield here, there


@pytest.fixture
def resolver(monkeypatch):
    """Let a list decide what `localhost` means to Python; libcurl has its own opinion."""
    addresses, real = [], socket.getaddrinfo

    def resolve(host, port, *args, **options):
        if host != "localhost":
            return real(host, port, *args, **options)
        return [entry for address in addresses for entry in real(address, port, *args, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return addresses


@pytest.fixture
def servers(server, tls_server):
    """Return a server over http and one over https."""
    return server, tls_server


@pytest.fixture
def open_behind(open_transport, monkeypatch):
    """Return a function that opens a transport with a key, behind a proxy of the environment."""

    def open_it(proxy):
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy)
        return open_transport(api_key=KEY)

    return open_it


only_libcurl = pytest.mark.parametrize("open_transport", ["engine"], indirect=True)


def chain(error):
    """Return everything that an error and the errors behind it may show, also pickled."""
    shown = "".join(traceback.format_exception(error))
    behind, raw = error, b""
    while behind is not None:
        shown += f"{behind} {behind!r} {vars(behind)} {behind.args}"
        raw += pickle.dumps(behind.args)
        behind = behind.__cause__ or behind.__context__
    return shown + raw.decode("latin-1")


@only_libcurl
@pytest.mark.parametrize("host", ["localhost", "LocalHost", "localhost.", "node.localhost"])
@pytest.mark.parametrize("resolved", [["127.0.0.1"], ["::1", "127.0.0.1"], ["127.0.0.1", "::1"]])
def test_localhost_is_the_first_address_that_the_resolver_names(
    both_loopbacks, resolver, open_transport, host, resolved
):
    """The key goes to one process, also if another listens on the same port of the other loopback address."""
    resolver[:] = resolved
    assert open_transport(api_key=KEY).send(Request("GET", both_loopbacks[0].url("echo", host=host))).status == 200
    reached = ["127.0.0.1" if both_loopbacks[0].seen else "::1"]
    assert reached == resolved[:1]
    assert sum(len(server.seen) for server in both_loopbacks) == 1
    [seen] = [server.seen[0][2] for server in both_loopbacks if server.seen]
    assert seen["Host"].lower().removesuffix(f":{both_loopbacks[0].port}").rstrip(".") == host.lower().rstrip(".")


def test_an_address_of_localhost_that_refuses_is_passed_over(server, resolver, open_transport):
    """The next one is used; if none accepts, the node is not reachable, and is reached once it runs."""
    resolver[:] = ["::1", "127.0.0.1"]
    transport, port = open_transport(), dead_port()
    assert transport.send(Request("GET", server.url("fine", host="localhost"))).body == FINE
    request = Request("GET", f"http://localhost:{port}/v1/fine")
    with pytest.raises(NodeUnreachable, match=r"cannot connect \(Connection refused\)") as caught:
        transport.send(request)
    assert not isinstance(caught.value, HopelessError)
    with serving(Server(at=("127.0.0.1", port))):
        assert transport.send(request).body == FINE


def test_single_and_bulk_calls_of_a_node_reach_one_process(resolver):
    """Another process that appears on ::1 later gets neither a request nor the key, and forges no row."""
    resolver[:] = ["::1", "127.0.0.1"]
    with embedded.serve(embedded.Ledger(chain_id=4)) as url:
        node = toolkit.connect(url.replace("127.0.0.1", "localhost"), api_key=KEY)
        assert node.ledger().chain_id == 4
        port = int(url.removesuffix("/v1").rpartition(":")[2])
        with serving(Server(at=("::1", port))) as other:
            frame = toolkit.fetch_views(node, "0x1::chain_id::get", [0], progress=False)
            assert (list(frame["value"]), other.seen) == ([4], [])


def test_a_proxy_on_localhost_is_one_process_too(server, resolver, open_transport, monkeypatch):
    """Its login, and the key in requests over http, go to the process that the resolver names."""
    resolver[:] = ["127.0.0.1", "::1"]
    with serving(Proxy()) as proxy, serving(Server(at=("::1", proxy.port))) as other:
        monkeypatch.setenv("http_proxy", f"http://me:pass@localhost:{proxy.port}")
        assert open_transport(api_key=KEY).send(Request("GET", server.url("fine"))).body == FINE
        assert (len(proxy.seen), other.seen) == (1, [])


def logins_sent(servers, proxy, transport):
    """Return what a proxy is sent with a plain request and for a tunnel; the nodes are sent nothing of it."""
    for one in servers:
        assert transport.send(Request("GET", one.url("fine"))).body == FINE
        assert "Proxy-Authorization" not in one.seen[0][2]
    return [headers.get("Proxy-Authorization") for _, _, headers, _ in proxy.seen]


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.usefixtures("trusted")
def test_the_login_of_a_proxy(servers, proxy, open_behind, login):
    """It is sent in plain requests and for tunnels, never to the node."""
    wanted = LOGINS[login] and f"Basic {base64.b64encode(LOGINS[login]).decode()}"
    transport = open_behind(f"http://{login}127.0.0.1:{proxy.port}/")
    assert logins_sent(servers, proxy, transport) == [wanted, wanted]


@only_libcurl
@pytest.mark.parametrize("scheme", ["http://", ""])
@pytest.mark.parametrize("login", LIBCURL_LOGINS)
@pytest.mark.usefixtures("trusted")
def test_the_login_of_a_proxy_in_other_alphabets(servers, proxy, open_behind, login, scheme):
    """In UTF-8, whether it is percent-encoded or not; the scheme may be missing."""
    wanted = f"Basic {base64.b64encode(LIBCURL_LOGINS[login]).decode()}"
    transport = open_behind(f"{scheme}{login}127.0.0.1:{proxy.port}/")
    assert logins_sent(servers, proxy, transport) == [wanted, wanted]


@pytest.mark.usefixtures("trusted")
def test_an_https_proxy_is_verified(servers, certificate, open_behind):
    """Both plain requests and tunnels pass through it, with the authorities of the environment."""
    with serving(Proxy(tls=certificate[1])) as proxy:
        transport = open_behind(f"https://me:pass@127.0.0.1:{proxy.port}")
        for one in servers:
            assert transport.send(Request("POST", one.url("large"), b"x" * 100_000)).body == b"x" * 300_000
            assert one.authorizations() == [f"Bearer {KEY}"]
        assert [method for method, *_ in proxy.seen] == ["POST", "CONNECT"]
        assert proxy.seen[1][2].get("Authorization") is None


@pytest.mark.parametrize("kind", ["another name", "unknown authority"])
def test_an_https_proxy_that_is_not_trusted_gets_nothing(servers, certificate, open_behind, monkeypatch, kind):
    """Neither the request nor the login of the proxy is sent."""
    if kind == "another name":
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate[0]))
    with serving(Proxy(tls=certificate[2 if kind == "another name" else 1])) as proxy:
        transport = open_behind(f"https://me:pass@127.0.0.1:{proxy.port}")
        for one in servers:
            with pytest.raises(HopelessError, match="the certificate of the node, or of the https proxy to it, is not"):
                transport.send(Request("GET", one.url("fine")))
        assert [one.seen for one in (proxy, *servers)] == [[], [], []]


def test_a_node_behind_an_https_proxy_is_verified(certificate, trusted, open_transport, monkeypatch):
    """A certificate for another name is the node's here."""
    with serving(Proxy(tls=certificate[1])) as proxy, serving(Server(tls=certificate[2])) as misnamed:
        monkeypatch.setenv("https_proxy", f"https://127.0.0.1:{proxy.port}")
        with pytest.raises(HopelessError, match="the certificate of the node, or of the https proxy to it, is not"):
            open_transport().send(Request("GET", misnamed.url("fine")))
        assert misnamed.seen == []


@only_libcurl
@pytest.mark.parametrize("kind", ["folder", "leaf"])
def test_bundles_of_other_kinds(tmp_path, open_transport, monkeypatch, kind):
    """A folder of hashed names, and a bundle that has only the server's own certificate."""
    bundle = certificates.make_chain(tmp_path)[kind]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    with serving(Server(tls=context)) as server:
        assert open_transport().send(Request("GET", server.url("fine"))).body == FINE


def test_the_first_bundle_of_the_environment_counts(tls_server, certificate, tmp_path, open_transport, monkeypatch):
    """REQUESTS_CA_BUNDLE comes first; with a file without certificates nothing is sent."""
    (tmp_path / "empty.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "empty.pem"))
    with pytest.raises(NodeUnreachable, match=r"is not trusted|TLS"):
        open_transport().send(Request("GET", tls_server.url("fine")))
    assert tls_server.seen == []


@pytest.mark.parametrize("given", BAD_PROXIES)
def test_a_proxy_that_is_not_a_url(server, open_transport, monkeypatch, caplog, given):
    """The password is in no message, no error behind it, and no log."""
    caplog.set_level("DEBUG")
    monkeypatch.setenv("HTTP_PROXY", given)
    with pytest.raises(NodeUnreachable) as caught:
        open_transport().send(Request("GET", server.url("fine")))
    assert SECRET not in chain(caught.value) + caplog.text
    assert server.seen == []


@pytest.mark.parametrize("scheme", ["http", "https", "socks9"])
def test_a_proxy_that_fails_does_not_show_its_password(server, open_transport, monkeypatch, caplog, scheme):
    """Also in what the libraries log."""
    caplog.set_level("DEBUG")
    monkeypatch.setenv("http_proxy", f"{scheme}://me:{SECRET}@127.0.0.1:{dead_port()}")
    with pytest.raises(NodeUnreachable, match=r"the proxy set in|SOCKS") as caught:
        open_transport().send(Request("GET", server.url("fine")))
    assert SECRET not in chain(caught.value) + caplog.text


def test_a_proxy_that_echoes_its_login_is_masked(server, monkeypatch):
    """A proxy's error page may quote what was sent to it, plain or in base64; neither kind of call shows it."""
    coded = base64.b64encode(f"me:{SECRET}".encode()).decode()
    with serving(Server()) as page:
        monkeypatch.setenv("http_proxy", f"http://me:{SECRET}@127.0.0.1:{page.port}")
        page.failures_left = 10**6
        node = toolkit.connect(server.url("status", code=407, text=f"{SECRET} {coded}").partition("/v1/")[0])
        request = Request("GET", f"{server.url('status', code=407, text=f'{SECRET} {coded}')}")
        monkeypatch.setattr(node._connection, "request", lambda *_, **__: request)
        with pytest.raises(NodeError, match="407") as caught:
            node.ledger()
    assert SECRET not in chain(caught.value)
    assert coded not in chain(caught.value)


@only_libcurl
def test_the_environment_is_read_once(server, proxy, open_transport, monkeypatch):
    """The transport of a node does not follow later changes."""
    transport = open_transport()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    assert transport.send(Request("GET", server.url("fine"))).body == FINE
    assert proxy.seen == []
