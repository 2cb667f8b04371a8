"""How a site is reached: the proxy, the trusted certificate authorities, the address of ``localhost``.

The environment is read here and nowhere else, and both transports obey the `Route` that they are given. Left to itself,
each library decides differently: libcurl tries ::1 for ``localhost`` whatever the resolver says, `requests` does not
verify an https proxy in front of an http node, and the two send different logins for ``user@proxy``.
"""

from __future__ import annotations

import base64
import os
import re
import socket
import ssl
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import getproxies

from requests.utils import DEFAULT_CA_BUNDLE_PATH, select_proxy, should_bypass_proxies

from toolkit._present.messages import escape
from toolkit.client import _http as http
from toolkit.errors import HopelessError, NodeUnreachable

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
        Scheme, host and port, without the login: neither library gets to quote it.
    login : (str, str) or None
        User name and password, percent-decoded; bytes that are not UTF-8 are surrogates. The password may be empty.
    """

    url: str
    login: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def is_socks(self) -> bool:
        return self.url.startswith("socks")

    @property
    def headers(self) -> dict[str, str]:
        """Headers for the proxy alone."""
        if self.login is None or self.is_socks:
            return {}
        sent = ":".join(self.login).encode("utf-8", "surrogateescape")
        return {"Proxy-Authorization": f"Basic {base64.b64encode(sent).decode()}"}


@dataclass(frozen=True, slots=True)
class Authorities:
    """Certificate authorities that are trusted, for a node and for an https proxy.

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
        None if no part of the way uses TLS.
    opened : (str, int)
        Host and port that the connection is opened to: of the proxy if there is one, else of the site.
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
        Limit in seconds for the check that finds the address of ``localhost``.

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
        self.logins = tuple(_logins(self._proxies))

    def to(self, url: str) -> Route:
        """Return the route to the site of a URL; it is decided at the first use.

        Raises
        ------
        HopelessError
            If the URL, the proxy or the trusted authorities cannot be used.
        NodeUnreachable
            If no address of ``localhost`` accepts connections. The next use looks again.
        """
        scheme, _, rest = url.partition("://")
        host = rest.partition("/")[0]
        if scheme not in _PORTS or not host:
            raise HopelessError("this is not an http(s) URL")
        site = f"{scheme}://{host}"
        route = self._routes.get(site)
        if route is None:
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
        name, path = self._bundle or ("the bundle of requests", str(DEFAULT_CA_BUNDLE_PATH))
        found = Path(path)
        if not found.exists():
            raise HopelessError(
                f"{name} is set to {path!r}, which does not exist; expected a file or folder of trusted authorities"
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # As libcurl does: an intermediate or a server's own certificate in the bundle is enough.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(**{"capath" if found.is_dir() else "cafile": path})
        except OSError as error:  # SSLError is one
            raise HopelessError(
                f"{name} is set to {path!r}, which cannot be read as trusted authorities ({escape(error)}); "
                "expected certificates in PEM"
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


def _logins(proxies: dict[str, str]) -> Iterator[str]:
    """Yield the login of each proxy, also of those whose URL is not valid."""
    for given in proxies.values():
        login, at, _ = given.rpartition("@")
        if at:
            yield login.rpartition("://")[2]


def _parsed_proxy(given: str) -> tuple[Proxy, tuple[str, int]]:
    """Return a proxy, with its host and port.

    Raises
    ------
    HopelessError
        If it is not a URL of a proxy. Neither the message nor an error behind it quotes the text: it may be a password.
    """
    found = _PROXY.fullmatch(given.strip())
    scheme = ((found and found["scheme"]) or "http").lower()
    port = int((found and found["port"]) or _PORTS.get(scheme, _SOCKS_PORT))
    host = _ascii_host(found["host"]) if found else None
    login = None
    if found and found["user"] is not None and (found["user"] or found["password"]):
        login = _unquoted(found["user"]), _unquoted(found["password"] or "")
    if scheme not in _PROXY_SCHEMES or host is None or not 0 < port <= _MAX_PORT or (login and "\0" in "".join(login)):
        raise HopelessError(_BAD_PROXY.format(_where_set(given)))
    if scheme.startswith("socks") and find_spec("socks") is None:
        raise HopelessError("the environment sets a SOCKS proxy, which needs PySocks; pip install 'requests[socks]'")
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


def _where_set(proxy: str) -> str:
    """Return the environment variables that have a proxy as their value."""
    names = [name for name, value in os.environ.items() if value == proxy and name.lower().endswith("_proxy")]
    return " and ".join(names) or "the system settings"
