"""The routes to sites, and the transports of single requests: over `requests`, and to a ledger in this process.

The environment (proxies, certificates, the address of ``localhost``) is read only here, and both transports follow the
`Route` that they are given. On their own, the two HTTP libraries would behave differently: libcurl tries ::1 for
``localhost`` whatever the resolver says, `requests` does not verify an https proxy in front of an http node, and the
two send different logins for ``user@proxy``. Threads may share a transport.
"""

from __future__ import annotations

import base64
import contextlib
import io
import logging
import os
import re
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse, IncompleteRead
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import getproxies

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH, select_proxy, should_bypass_proxies

from toolkit._present.messages import escape
from toolkit.client import _http as http
from toolkit.client._http import NO_CREDENTIALS, Answer, Credentials, Request
from toolkit.errors import ClosedError, HopelessError, NodeUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterator


_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PORTS = {"http": 80, "https": 443}
_SOCKS_PORT = 1080  # registered for SOCKS
_PROXY_SCHEMES = frozenset({*_PORTS, "socks4", "socks4a", "socks5", "socks5h"})
_MAX_PORT = 65535  # a u16
# An @ after the host is refused: what is before it may then be part of a password that contains a slash.
_PROXY = re.compile(
    r"""(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?
        (?:(?P<user>[^/?\#:]*)(?::(?P<password>[^/?\#]*))?@)?
        (?P<host>\[[0-9a-f:.]+\]|[^\[\]@:/?\#%\\\s\x00-\x20]+)
        (?::(?P<port>[0-9]{1,5}))?
        (?:/[^@]*)?""",
    re.VERBOSE | re.IGNORECASE,
)
_BAD_PROXY = (
    "the proxy set in {} is not a usable URL; expected http://[user:password@]host[:port] (or https, socks4, socks4a, "
    "socks5, socks5h), with / ? # : and @ in the login percent-encoded"
)


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy server.

    Attributes
    ----------
    url : str
        Scheme, host and port, without the login, so that neither library can quote it.
    login : (str, str) or None
        User name and password, percent-decoded; bytes that are not UTF-8 are surrogates. The password may be empty.
    """

    url: str
    login: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def is_socks(self) -> bool:
        return self.url.startswith("socks")


@dataclass(frozen=True, slots=True)
class Authorities:
    """The certificate authorities that are trusted for a node and for an https proxy.

    Attributes
    ----------
    path : str
        A file, or a folder of files named by hash.
    context : ssl.SSLContext
        Trusts the same authorities as libcurl does with `path`.
    """

    path: str
    context: ssl.SSLContext = field(repr=False)


@dataclass(frozen=True, slots=True)
class Route:
    """How one site is reached.

    Attributes
    ----------
    proxy : Proxy or None
    authorities : Authorities or None
        None if no part of the route uses TLS.
    opened : (str, int)
        Host and port to which the connection is opened: those of the proxy if there is one, else those of the site.
    address : str or None
        Address to use for the host of `opened`; None if the libraries look it up.
    """

    proxy: Proxy | None
    authorities: Authorities | None
    opened: tuple[str, int]
    address: str | None


class Routes:
    """The routes of one node, shared by its transports: a site has one route for as long as the node is connected.

    Parameters
    ----------
    timeout_s : float
        Time limit in seconds for finding the address of ``localhost``.

    Attributes
    ----------
    logins : tuple of str
        Logins of all proxies that the environment names, as written there, to be masked in messages.
    """

    def __init__(self, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s
        self._proxies = getproxies()
        self._bundle = next(((name, path) for name in _BUNDLES if (path := os.environ.get(name))), None)
        self._routes: dict[str, Route] = {}
        divided = (given.rpartition("@") for given in self._proxies.values())  # also of URLs that are not valid
        self.logins = tuple(login.rpartition("://")[2] for login, at, _ in divided if at)

    def to(self, url: str) -> Route:
        """Return the route to the site of a URL, which is determined at the first use.

        Raises
        ------
        HopelessError
            If the URL, the proxy or the CA certificates are not valid.
        NodeUnreachable
            If no address of ``localhost`` accepts connections. The next use looks again.
        """
        scheme, _, rest = url.partition("://")
        host = rest.partition("/")[0]
        if scheme not in _PORTS or not host:
            raise HopelessError("this is not an http(s) URL")
        site = f"{scheme}://{host}"
        if (route := self._routes.get(site)) is None:
            # The transports use different threads. The first decision holds for both.
            route = self._routes.setdefault(site, self._decided(http.ascii_url(url)))
        return route

    def _decided(self, url: str) -> Route:
        parts = urlsplit(url)
        scheme, opened = parts.scheme, (parts.hostname or "", parts.port or _PORTS[parts.scheme])
        given = None if should_bypass_proxies(url, no_proxy=None) else select_proxy(url, self._proxies)
        proxy = None
        if given:
            proxy, opened = _parsed_proxy(given)
            scheme = "https" if proxy.url.startswith("https:") else scheme
        authorities = self._authorities() if scheme == "https" else None
        return Route(proxy, authorities, opened, self._local_address(*opened, proxied=proxy is not None))

    def _authorities(self) -> Authorities:
        name, path = self._bundle or ("the certificate bundle of the requests library", str(DEFAULT_CA_BUNDLE_PATH))
        found = Path(path)
        if not found.exists():
            raise HopelessError(
                f"{name} is set to {path!r}, which does not exist; expected a file or folder of CA certificates"
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # As libcurl does: an intermediate or a server's own certificate in the bundle is enough.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(**{"capath" if found.is_dir() else "cafile": path})
        except OSError as error:  # SSLError is one
            raise HopelessError(
                f"{name} is set to {path!r}, which cannot be read as CA certificates ({escape(error)}); "
                "expected certificates in PEM format"
            ) from None
        return Authorities(path, context)

    def _local_address(self, host: str, port: int, *, proxied: bool) -> str | None:
        """Return the first address of a ``localhost`` name that accepts a connection; None for other names.

        Another process may listen on the same port of another loopback address, so the transports must not choose
        independently: one of them would send the API key there.
        """
        name = host.lower().removesuffix(".")
        if name.endswith(".localhost"):
            name = "localhost"  # by RFC 6761, and resolvers differ
        if name.partition(".")[0] != "localhost":
            return None
        failure: OSError = OSError(f"{host} has no address")
        try:
            known = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except OSError as error:
            failure, known = error, []
        for family, kind, protocol, _, place in known:
            try:
                with socket.socket(family, kind, protocol) as probe:
                    probe.settimeout(self._timeout_s)
                    probe.connect(place)
            except OSError as error:
                failure = error
            else:
                return str(place[0])
        reason = escape(failure.strerror or failure)
        raise NodeUnreachable(http.NO_PROXY if proxied else http.NOT_THERE.format(reason))


def _parsed_proxy(given: str) -> tuple[Proxy, tuple[str, int]]:
    """Parse a proxy URL; return the proxy, with its host and port.

    Raises
    ------
    HopelessError
        If the text is not a proxy URL. Neither the message nor its cause quotes the text, which may contain a password.
    """
    found = _PROXY.fullmatch(given.strip())
    scheme = ((found and found["scheme"]) or "http").lower()
    port = int((found and found["port"]) or _PORTS.get(scheme, _SOCKS_PORT))
    host = _ascii_host(found["host"]) if found else None
    login = None
    if found and found["user"] is not None and (found["user"] or found["password"]):
        login = _unquoted(found["user"]), _unquoted(found["password"] or "")
    if scheme not in _PROXY_SCHEMES or host is None or not 0 < port <= _MAX_PORT or (login and "\0" in "".join(login)):
        set_by = [name for name, value in os.environ.items() if value == given and name.lower().endswith("_proxy")]
        raise HopelessError(_BAD_PROXY.format(" and ".join(set_by) or "the system settings"))
    if scheme.startswith("socks") and find_spec("socks") is None:
        raise HopelessError("the environment sets a SOCKS proxy, which needs PySocks: pip install 'requests[socks]'")
    return Proxy(f"{scheme}://{host}:{port}", login), (host.strip("[]"), port)


def _ascii_host(host: str) -> str | None:
    """Return a host name in ASCII, or None if it has no such form."""
    try:
        name = urlsplit(http.ascii_url(f"http://{host}")).netloc
        name.encode("idna")  # refuses empty and overlong labels
    except ValueError:
        return None
    return name


def _unquoted(part: str) -> str:
    return unquote_to_bytes(part.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


_CHUNK = 64 * 1024  # bytes; larger ones are not faster
# Maximum number of idle connections per host.
_MAX_IDLE = 64

# The classes of each message: those of an error of `requests` or of its root cause. The first match is used.
_KINDS: dict[str, type[Exception] | tuple[type[Exception], ...]] = {
    http.NO_TLS: requests.exceptions.SSLError,
    http.NO_PROXY: requests.exceptions.ProxyError,
    http.NOT_UNPACKED: requests.exceptions.ContentDecodingError,
    http.CUT_OFF: (requests.exceptions.ChunkedEncodingError, ConnectionResetError, BrokenPipeError, IncompleteRead),
    http.NOT_HTTP: HTTPException,
    http.NOT_THERE: requests.ConnectionError,
}


class SessionTransport:
    """Transport over `requests`, without its sessions.

    A session would read proxies, certificates and ``.netrc`` from the environment, store cookies, and follow redirects,
    possibly sending the API key along. Here `Routes` decides how a site is reached, and a node receives only the
    credentials that the caller passes. Several threads may share a transport.

    Parameters
    ----------
    credentials : Credentials, optional
        Sent with every request.
    timeout_s : float
        Time limit in seconds for connecting, and for each wait for data. A whole request may take ten times as long.
    routes : Routes, optional
        Pass the routes that other transports to the same node share.
    """

    def __init__(
        self, credentials: Credentials = NO_CREDENTIALS, *, timeout_s: float = 30.0, routes: Routes | None = None
    ) -> None:
        self._routes = routes or Routes(timeout_s)
        self._credentials, self._timeout_s = credentials, timeout_s
        self._lock = threading.Lock()
        self._closed = False
        self._adapters: dict[Route, _Adapter] = {}
        self._exchanges: set[_Exchange] = set()

    def send(self, request: Request) -> Answer:
        """Send one request and return the response, whatever its status; redirects are not followed.

        Raises
        ------
        NodeUnreachable
            If the node does not respond; `HopelessError` if sending the request again cannot help.
        ClosedError
            If the transport is closed.
        """
        headers = {**http.COMMON_HEADERS, **request.headers}
        if self._credentials.authorization is not None:
            headers["Authorization"] = self._credentials.authorization
        try:
            with self._exchange():
                prepared = requests.Request(request.method, request.url, headers, data=request.body).prepare()
                with self._adapter(request.url).sent(prepared, timeout_s=self._timeout_s) as response:
                    body = _bounded_body(response)
                    if self._closed:  # closing may have truncated the answer
                        raise ClosedError(http.CLOSED)
                    return Answer(response.status_code, http.lowered(response.headers.items()), body)
        except NodeUnreachable as error:
            failure = error.with_traceback(None)
        except (requests.RequestException, OSError, ValueError) as error:
            if self._closed:
                raise ClosedError(http.CLOSED) from None
            failure = self._translated(error)
        # Not inside a handler: the library's error, which would be its context, may quote a secret.
        raise type(failure)(f"{request.where}: {failure}")

    def close(self) -> None:
        """Close every connection; requests in progress and later ones raise ClosedError."""
        with self._lock:
            self._closed = True
            adapters, exchanges = list(self._adapters.values()), list(self._exchanges)
        for adapter in adapters:
            adapter.close()
        for exchange in exchanges:
            exchange.break_off()

    def _adapter(self, url: str) -> _Adapter:
        """Return the adapter that sends to the site of a URL."""
        route = self._routes.to(url)
        with self._lock:
            if self._closed:
                raise ClosedError(http.CLOSED)
            if (adapter := self._adapters.get(route)) is None:
                adapter = self._adapters[route] = _Adapter(route)
            return adapter

    @contextlib.contextmanager
    def _exchange(self) -> Iterator[None]:
        """Start the time limit of a request, and register the request so that `close` can end it."""
        exchange = _Exchange(time.monotonic() + http.TOTAL_TIMEOUTS * self._timeout_s)
        with self._lock:
            if self._closed:
                raise ClosedError(http.CLOSED)
            self._exchanges.add(exchange)
        _this_exchange.exchange = exchange
        try:
            yield
        finally:
            _this_exchange.exchange = None
            with self._lock:
                self._exchanges.discard(exchange)

    def _translated(self, error: Exception) -> NodeUnreachable:
        innermost = _innermost(error)
        if isinstance(innermost, _TotalTimeoutError):
            return HopelessError(http.NOT_COMPLETE.format(http.TOTAL_TIMEOUTS * self._timeout_s))
        if isinstance(error, requests.Timeout) or isinstance(innermost, TimeoutError):
            return NodeUnreachable(http.NO_ANSWER.format(self._timeout_s))
        said = getattr(innermost, "strerror", None) or str(innermost) or type(innermost).__name__
        reason = http.reason_text(str(said), self._credentials)
        if isinstance(innermost, ssl.SSLCertVerificationError):
            return HopelessError(http.NOT_TRUSTED.format(reason))
        texts = (text for text, kinds in _KINDS.items() if isinstance(error, kinds) or isinstance(innermost, kinds))
        return NodeUnreachable(next(texts, "{}").format(reason))


class LedgerTransport:
    """Transport to a ledger in this process, without a socket: the thread that sends a request also handles it.

    It is used if no web server is installed. It does not simulate latency and faults, which only the web server does.

    Parameters
    ----------
    ledger : Ledger
        The ledger, which may grow while the transport is in use.
    """

    def __init__(self, ledger: http.Ledger) -> None:
        from toolkit.embedded.http._dispatch import answer_request
        from toolkit.embedded.http._node import EmbeddedNode

        self._answer_request = answer_request
        self._node = EmbeddedNode(ledger)
        self._closed = False

    def __reduce__(self) -> NoReturn:
        raise TypeError("a transport to a ledger in this process cannot be pickled")

    def send(self, request: Request) -> Answer:
        """Handle one request.

        Raises
        ------
        ClosedError
            If the transport is closed.
        """
        if self._closed:
            raise ClosedError(http.CLOSED)
        parts = urlsplit(request.url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        status, lines, body = self._answer_request(self._node, request.method, target, request.headers, request.body)
        headers = http.lowered((name.decode("latin-1"), value.decode("latin-1")) for name, value in lines)
        return Answer(status, headers, body)

    def close(self) -> None:
        """Reject further requests: they raise ClosedError."""
        self._closed = True


class _TotalTimeoutError(TimeoutError):
    """The time limit of a whole request has passed."""


class _Exchange:
    """A request in progress: its deadline and its socket."""

    def __init__(self, ends_at: float) -> None:
        self._ends_at = ends_at
        self._socket: socket.socket | None = None
        self._broken_off = False

    def watch(self, connection: socket.socket) -> None:
        """Set the socket that the response is read from."""
        self._socket = getattr(connection, "socket", connection)  # TLS inside the TLS of a proxy wraps the socket
        if self._broken_off:  # requested before the socket was known
            self.break_off()

    def check(self) -> None:
        """Raise TimeoutError if the time limit has passed."""
        if time.monotonic() >= self._ends_at:
            raise _TotalTimeoutError

    def break_off(self) -> None:
        """Wake the thread that waits for bytes of this request, and make it raise an error."""
        self._broken_off = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # SSLSocket.shutdown would drop the SSL object that the other thread is reading with.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _TimedResponse(HTTPResponse):
    """A response whose status line, headers, body and trailers are read within the time limit of the request."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        if (exchange := _this_exchange.exchange) is not None:
            exchange.watch(sock)
            raw: Any = self.fp.raw
            read = raw.readinto

            def read_in_time(buffer: Any) -> int | None:
                exchange.check()
                return read(buffer)  # type: ignore[no-any-return]

            raw.readinto = read_in_time


class _Connection(urllib3.connection.HTTPConnection):
    response_class = _TimedResponse

    def _new_conn(self) -> socket.socket:
        """Open the connection to the address of the route; TLS and the Host header still use the host name."""
        if (address := _this_exchange.address) is None:
            return super()._new_conn()
        name, self._dns_host = self._dns_host, address
        try:
            return super()._new_conn()
        finally:
            self._dns_host = name


class _TlsConnection(_Connection, urllib3.connection.HTTPSConnection):
    """A connection over TLS; `_Connection` comes first, so that its methods override urllib3's."""


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _Adapter(HTTPAdapter):
    """An adapter of `requests` that sends over one route, and whose connections read `_TimedResponse`."""

    def __init__(self, route: Route) -> None:
        self.route = route
        super().__init__(pool_maxsize=_MAX_IDLE)

    def sent(self, prepared: requests.PreparedRequest, *, timeout_s: float) -> requests.Response:
        """Send a request and return the response, whose body is not read yet."""
        proxy = self.route.proxy
        _this_exchange.address = self.route.address
        proxies = {} if proxy is None else {"all": proxy.url}  # decides whether the whole URL is sent
        return self.send(prepared, stream=True, timeout=timeout_s, proxies=proxies)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:  # noqa: FBT001, FBT002 - as in requests
        proxy, authorities = self.route.proxy, self.route.authorities
        options |= {"num_pools": connections, "maxsize": maxsize, "block": block}
        if authorities is not None:
            options["ssl_context"] = authorities.context
        manager: Any
        if proxy is None:
            manager = urllib3.PoolManager(**options)
        elif proxy.is_socks:
            from urllib3.contrib.socks import SOCKSProxyManager  # it needs PySocks

            manager = SOCKSProxyManager(proxy.url, *(proxy.login or ()), **options)
        else:
            # Without a context of its own, the certificate of a proxy is not verified for http nodes.
            options["proxy_ssl_context"] = options.get("ssl_context")
            login = base64.b64encode(":".join(proxy.login or ()).encode("utf-8", "surrogateescape")).decode()
            headers = {"Proxy-Authorization": f"Basic {login}"} if proxy.login is not None else {}
            manager = urllib3.ProxyManager(proxy.url, proxy_headers=headers, **options)
        if proxy is None or not proxy.is_socks:
            manager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
        self.poolmanager = manager

    def get_connection_with_tls_context(self, request: requests.PreparedRequest, *_: object, **__: object) -> Any:
        """Return the connection pool for a request; the route determines the proxy and the certificates."""
        parts = urlsplit(str(request.url))
        return self.poolmanager.connection_from_host(parts.hostname, parts.port, parts.scheme)

    def cert_verify(self, *_: object, **__: object) -> None:
        """Do nothing: the TLS context of the route verifies certificates."""


def _bounded_body(response: requests.Response) -> bytes:
    body = io.BytesIO()
    for chunk in response.iter_content(_CHUNK):
        body.write(chunk)
        if body.tell() > http.MAX_ANSWER_BYTES:
            raise HopelessError(http.TOO_LARGE.format(http.MAX_ANSWER_BYTES))
    return body.getvalue()


def _innermost(error: BaseException) -> BaseException:
    """Return the root cause of an error, which is what a reader can act on."""
    quoted = (part for part in error.args if isinstance(part, BaseException))  # urllib3 wraps without raising
    behind = error.__cause__ or error.__context__ or next(quoted, None)
    return error if behind is None else _innermost(behind)


class _ThisExchange(threading.local):
    """The request that a thread is sending, for code that `requests` calls below `send`."""

    exchange: _Exchange | None = None
    address: str | None = None


_this_exchange = _ThisExchange()


# The record about header lines that cannot be parsed quotes them, and a gateway may echo the key there.
logging.getLogger("urllib3.connection").addFilter(lambda record: "parse headers" not in str(record.msg))
