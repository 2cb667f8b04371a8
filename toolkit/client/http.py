"""HTTP without a connection: base URLs, requests, answers, redirects, limits, and what the environment configures."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Protocol
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

import requests
from requests.utils import get_environ_proxies, requote_uri, select_proxy

from toolkit.client.credentials import NO_CREDENTIALS, Credentials
from toolkit.errors import HopelessError, InputError
from toolkit.wire import parse_headers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.wire import AnswerHeaders

__all__ = [
    "NETWORKS",
    "Answer",
    "Hop",
    "Request",
    "Transport",
    "base_url",
    "embedded_url",
    "environment_key",
    "is_nearby",
    "is_public_network",
    "login_of",
    "redacted_url",
    "told",
]

NETWORKS = {
    "mainnet": "https://api.mainnet.aptoslabs.com/v1",
    "testnet": "https://api.testnet.aptoslabs.com/v1",
    "devnet": "https://api.devnet.aptoslabs.com/v1",
    "local": "http://127.0.0.1:8080/v1",
}
"""Public fullnode addresses by name. Source: the published SDKs' network tables."""

_SCHEME = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:[/\\]+)?")
_EXTRAS = re.compile(r"[?#]")
_BELOW_BASE = re.compile(r"/v1/(?:-|accounts|blocks|estimate_gas_price|spec|tables|transactions|view)(?:/|$)")
_NEARBY_NAMES = ("localhost", "local")


MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Largest body read from a node, in bytes after unpacking; pages of transactions above it are read in smaller ones."""

MAX_BYTES_IN_FLIGHT = 256 * 1024 * 1024
"""Most bytes of answers in memory at once per transport: being received, or received and not yet taken.

At the bound one answer per run still goes on, so the peak is this plus `MAX_ANSWER_BYTES` for each run.
"""

TOTAL_TIMEOUTS = 10
"""A request ends, complete or not, after `timeout_s` times this; redirects are part of it."""

MAX_REDIRECTS = 5
"""Most redirects followed for one request."""

COMMON_HEADERS = {"User-Agent": "ledger-toolkit", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
"""Sent by both transports if the request does not say otherwise."""

CLOSED = "this node client is closed; connect() again"
CUT_OFF = "the answer was cut off ({}); try again"
NO_ANSWER = "no answer within {:g} s; raise timeout_s or try again later"
NOT_COMPLETE = "the answer was not complete within {:g} s, ten times timeout_s; raise timeout_s"
NOT_HTTP = "what came is no HTTP answer ({}); check the URL"
NOT_THERE = "nothing answers there ({}); check the URL and that the node runs"
NOT_TRUSTED = (
    "the certificate of the server is not trusted ({}); "
    "name its authority's file in REQUESTS_CA_BUNDLE or SSL_CERT_FILE"
)
NO_PROXY = "the proxy of this environment could not be used; check HTTP(S)_PROXY and NO_PROXY"
NO_TLS = "the TLS handshake failed ({}); check that this port speaks https"
NOT_UNPACKED = "the answer's compression cannot be unpacked; try again"

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEP_BODY = frozenset({307, 308})
SHOWN = 120
_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


def base_url(target: str) -> str:
    """Turn a network name or an http(s) URL into the base URL that ends in ``/v1``.

    Parameters
    ----------
    target : str
        ``mainnet``, ``testnet``, ``devnet``, ``local``, or an http(s) URL with or without ``/v1`` and trailing slash.

    Returns
    -------
    str
        The URL every path of the service is appended to.

    Raises
    ------
    InputError
        If `target` is neither a known name nor an http(s) URL with a host.
    """
    if not isinstance(target, str):
        raise InputError(f"a node is named by text, got {type(target).__name__}")
    if target in NETWORKS:
        return NETWORKS[target]
    shown = repr(told(target))
    choices = f"expected one of embedded, {', '.join(NETWORKS)}, or an http(s) URL"
    try:
        parts = urlsplit(target.strip())
        host, _ = parts.hostname, parts.port  # a bad port raises here, not at the first request
    except ValueError:  # its text may hold a part of a password
        raise InputError(f"node {shown} is not a usable URL: host or port cannot be read; {choices}") from None
    if parts.scheme not in {"http", "https"} or not host:
        meant = get_close_matches(target.strip().lower(), ["embedded", *NETWORKS], n=1)
        hint = f"; did you mean {meant[0]!r}?" if meant else ""
        raise InputError(f"node {shown} is neither a known network nor an http(s) URL; {choices}{hint}")
    if parts.query or parts.fragment:
        raise InputError(f"node {shown} has a query or fragment; give the base URL only")
    if "@" in parts.path:
        raise InputError(f"node {shown} has '@' after its host; in a user name or password write / as %2F, ? as %3F")
    if _BELOW_BASE.search(parts.path):
        raise InputError(f"node {shown} goes on after /v1; give the base URL only, up to and with /v1")
    path = parts.path.rstrip("/")
    if not path.endswith("/v1"):
        path += "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def environment_key() -> str | None:
    """Return the API key of the environment, None where there is none."""
    return os.environ.get("LEDGER_TOOLKIT_API_KEY") or None


def redacted_url(url: str) -> str:
    """Return `url` without user name and password, for texts, frames and reports."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def is_public_network(target: str) -> bool:
    """Return whether a name or URL that `base_url` accepts is that of a public network of `NETWORKS`, over TLS."""
    url = base_url(target) if target != "embedded" else ""
    return url.startswith("https:") and redacted_url(url) in NETWORKS.values()


def login_of(url: str) -> str | None:
    """Return the ``user:password`` in a URL as it stands there, None where there is none."""
    return urlsplit(url).netloc.rpartition("@")[0] or None


def told(target: str) -> str:
    """Return what a text may show of `target`, which need not be a URL: no login, no query, no fragment."""
    start = _SCHEME.match(target)
    scheme = start.group() if start else ""
    login, _, rest = target[len(scheme) :].rpartition("@")
    # With a ? before the @ either may be the secret's, so neither side is shown.
    return scheme + ("..." if _EXTRAS.search(login) else _EXTRAS.split(rest)[0])


def is_nearby(url: str) -> bool:
    """Tell whether `url` points at this machine or its own network, where ledgers are thrown away and begun anew.

    Loopback, private, link-local and unspecified addresses in any spelling, and names that end in ``.localhost`` or
    ``.local``. No name is looked up.
    """
    host = (urlsplit(url).hostname or "").removesuffix(".")
    try:
        address = ip_address(host)
    except ValueError:
        try:
            address = ip_address(socket.inet_aton(host))  # 127.1 and 2130706433 are addresses too
        except (OSError, ValueError):
            return host.rpartition(".")[2] in _NEARBY_NAMES
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_private or address.is_loopback or address.is_link_local or address.is_unspecified


@cache
def embedded_url() -> str:
    """Start the embedded node, once per process, and return its URL. The one place where the client knows of it."""
    import atexit

    from toolkit import embedded

    server = embedded.start(embedded.Ledger.with_history())
    atexit.register(server.stop)
    return server.url


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, without anything secret in it.

    Attributes
    ----------
    method : str
        ``GET`` or ``POST``.
    url : str
        Absolute URL, query included.
    body : bytes or None
        Body as it goes on the wire.
    headers : mapping of str to str
        Content type, accept and the like; credentials are the transport's business.
    """

    method: str
    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Answer:
    """One HTTP answer as it came.

    Attributes
    ----------
    status : int
    headers : mapping of str to str
        Names in lower case; a header that came several times is joined by commas.
    body : bytes
        Unpacked, of at most `MAX_ANSWER_BYTES`.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    _parsed: AnswerHeaders | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def parsed(self) -> AnswerHeaders:
        """The documented headers, parsed at the first use."""
        if self._parsed is None:
            object.__setattr__(self, "_parsed", parse_headers(self.headers))
        return self._parsed  # type: ignore[return-value]  # set above


class Transport(Protocol):
    """What the client needs of the network."""

    def send(self, request: Request) -> Answer:
        """Send one request and return the answer, whatever its status; NodeUnreachable where none came."""
        ...

    def close(self) -> None:
        """Release sockets; sending afterwards raises ClosedError."""
        ...


@dataclass(frozen=True, slots=True)
class Hop:
    """One step on the way of a request: what goes out, and with which credentials.

    Attributes
    ----------
    request : Request
        Without user name and password in its URL.
    authorization : str or None
        Value of the ``Authorization`` header. It is for the site of the first hop and lost on leaving it.
    number : int
        Redirects behind it.
    credentials : Credentials
        What no error message may show, whichever site repeats it.
    """

    request: Request
    authorization: str | None = field(default=None, repr=False)
    number: int = 0
    credentials: Credentials = NO_CREDENTIALS

    @classmethod
    def first(cls, request: Request, credentials: Credentials) -> Hop:
        """Return the first hop, with the credentials; a login in the URL is used if there is no API key."""
        if "@" in request.url:
            parts = urlsplit(request.url)
            credentials = Credentials(credentials.api_key, login_of(request.url) or credentials.login)
            request = replace(request, url=urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])))
        return cls(request, credentials.authorization, credentials=credentials)

    @property
    def where(self) -> str:
        """Method and URL for error messages, without credentials and query."""
        url = redacted_url(self.request.url)
        return f"{self.request.method} {self.credentials.mask(url) if self.number else url}"

    def after(self, status: int, headers: Mapping[str, str]) -> Hop | None:
        """Return the next hop, None where the answer is no redirect.

        Raises
        ------
        HopelessError
            If the redirect would lose the body, leave https, lead nowhere, or be one too many.
        """
        if status not in _REDIRECTS or "location" not in headers:
            return None
        here, there = urlsplit(self.request.url), self._target(headers["location"])
        if self.request.method != "GET" and status not in _KEEP_BODY:
            raise self._refused(f"a redirect ({status}) on which a {self.request.method} would lose its body", there)
        if here.scheme == "https" and there.scheme == "http":
            raise self._refused("a redirect from https to http, which would give up TLS", there)
        if self.number >= MAX_REDIRECTS:
            raise self._refused(f"more than {MAX_REDIRECTS} redirects, the last one", there)
        same_site = _site(here) == _site(there)
        moved = replace(self.request, url=requote_uri(urlunsplit(there)))
        return Hop(moved, self.authorization if same_site else None, self.number + 1, self.credentials)

    def _target(self, location: str) -> SplitResult:
        try:
            parts = urlsplit(urljoin(self.request.url, location))
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            shown = ascii(self.credentials.mask(location)[:SHOWN])
            raise HopelessError(f"{self.where}: the server redirects to {shown}, which is no http(s) URL")
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")

    def _refused(self, what: str, there: SplitResult) -> HopelessError:
        shown = ascii(self.credentials.mask(redacted_url(urlunsplit(there)))[:SHOWN])
        return HopelessError(
            f"{self.where}: the server answers {what}, to {shown}; use the new address, if it is right"
        )


def _site(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)


def ascii_url(url: str) -> str:
    """Return a URL whose host is written in ASCII (IDNA), as `requests` does; ValueError where it cannot be."""
    if url.isascii():
        return url
    prepared = requests.PreparedRequest()
    prepared.prepare_url(url, None)
    return prepared.url or url


def environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL, None where it is reached directly."""
    return select_proxy(url, get_environ_proxies(url, None))


def environment_bundle() -> str:
    """Return the file or folder of trusted authorities: the environment's, else the one `requests` brings."""
    for name in _BUNDLES:
        path = os.environ.get(name)
        if path and not os.path.exists(path):  # noqa: PTH110 - the text shows the path as it was written
            raise HopelessError(
                f"{name} names {path!r} as trusted authorities, but nothing is there; correct or unset it"
            )
        if path:
            return path
    return str(requests.utils.DEFAULT_CA_BUNDLE_PATH)


def too_large() -> str:
    """Return the text for an answer above the bound."""
    return f"the answer is larger than {MAX_ANSWER_BYTES:,} bytes and was dropped"


def lowered(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by lower-case name; values of one name are joined by commas."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        known = name.lower()
        headers[known] = f"{headers[known]}, {value}" if known in headers else value
    return headers


def reason_text(text: str, credentials: Credentials) -> str:
    """Return the words of a library about an exchange, masked, cut and in ASCII."""
    return ascii(credentials.mask(text)[:SHOWN])[1:-1]
