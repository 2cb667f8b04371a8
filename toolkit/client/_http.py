"""HTTP without connections: base URLs, requests and answers, redirects and limits.

Shared by both transports, `toolkit.client._transport` and `toolkit.client._curl_transport`, so that they behave alike.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec
import requests

from toolkit.errors import InputError, SchemaError
from toolkit.wire._headers import parse_headers
from toolkit.wire._responses import decode_error_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolkit.client._credentials import Credentials
    from toolkit.embedded import Ledger as Ledger  # noqa: PLC0414 - for typing only, here and in `connect`
    from toolkit.errors import NodeError, NodeUnreachable
    from toolkit.wire._headers import AnswerHeaders
    from toolkit.wire._responses import ErrorBody

T = TypeVar("T")

# Name of a node for a `Ledger` that the user holds; only that object can be read again.
OWN_LEDGER = "embedded ledger"
# End of the host of a ledger that is not served but answered inside of this process.
IN_PROCESS = ".in-process.localhost"
# Base URLs of public nodes by network name. Source: the network tables of the published SDKs.
NETWORKS = {
    "mainnet": "https://api.mainnet.aptoslabs.com/v1",
    "testnet": "https://api.testnet.aptoslabs.com/v1",
    "devnet": "https://api.devnet.aptoslabs.com/v1",
    "local": "http://127.0.0.1:8080/v1",
}

_SCHEME = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:[/\\]+)?")
_EXTRAS = re.compile(r"[?#]")
_BELOW_BASE = re.compile(r"/v1/(?:-|accounts|blocks|estimate_gas_price|spec|tables|transactions|view)(?:/|$)")
_NEARBY_DOMAINS = frozenset({"localhost", "local"})

# Maximum size of an answer's body in bytes, decompressed. Larger pages of transactions are read as smaller pages.
MAX_ANSWER_BYTES = 64 * 1024 * 1024

# Maximum number of bytes of answers that a transport holds at once, being received or waiting for the caller.
# At the limit each run still receives one answer, so the peak is this plus `MAX_ANSWER_BYTES` per run.
MAX_BYTES_IN_FLIGHT = 256 * 1024 * 1024

# Limit of a whole request as a multiple of `timeout_s`.
TOTAL_TIMEOUTS = 10

# Headers of every request; headers of the request itself take precedence.
COMMON_HEADERS = {"User-Agent": "ledger-toolkit", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}

CLOSED = "this node client is closed; connect() again"
CUT_OFF = "the answer was cut off ({}); try again"
NO_ANSWER = "no answer within {:g} s; raise timeout_s or try again later"
NOT_COMPLETE = "the answer was not complete within {:g} s, ten times timeout_s; raise timeout_s"
NOT_HTTP = "the response is not HTTP ({}); check the URL"
NOT_THERE = "cannot connect ({}); check the URL and that the node runs"
NOT_TRUSTED = (
    "the certificate of the node, or of the https proxy to it, is not trusted ({}); "
    "set REQUESTS_CA_BUNDLE or SSL_CERT_FILE to the file of its certificate authority and connect() again"
)
NO_PROXY = (
    "the proxy set in the environment could not be used; "
    "check HTTP(S)_PROXY and NO_PROXY, and connect() again after a change"
)
NO_TLS = "the TLS handshake failed ({}); check that this port speaks https"
NOT_UNPACKED = "the answer could not be decompressed; try again"

# Maximum length of a text of a server or a library in an error message.
MAX_SHOWN = 120


def base_url(target: str) -> str:
    """Return the base URL, which ends in ``/v1``, for a network name or an http(s) URL.

    Parameters
    ----------
    target : str
        ``mainnet``, ``testnet``, ``devnet``, ``local``, or an http(s) URL with or without ``/v1`` and trailing slash.

    Returns
    -------
    str
        URL that the paths of the service are appended to.

    Raises
    ------
    InputError
        If `target` is neither a network name nor an http(s) URL with a host.

    Examples
    --------
    >>> base_url("local"), base_url("https://node.example")
    ('http://127.0.0.1:8080/v1', 'https://node.example/v1')
    """
    if not isinstance(target, str):
        raise InputError(f"node must be a str or a toolkit.embedded.Ledger, got {type(target).__name__}")
    if target in NETWORKS:
        return NETWORKS[target]
    shown = repr(redacted_target(target))
    choices = f"expected one of embedded, {', '.join(NETWORKS)}, or an http(s) URL"
    try:
        parts = urlsplit(target.strip())
        host, _ = parts.hostname, parts.port  # raises for an invalid port
    except ValueError:  # its message may quote a password
        raise InputError(f"node {shown} is not a usable URL: its host or port is invalid; {choices}") from None
    if parts.scheme not in {"http", "https"} or not host:
        meant = get_close_matches(target.strip().lower(), ["embedded", *NETWORKS], n=1)
        hint = f"; did you mean {meant[0]!r}?" if meant else ""
        raise InputError(f"node {shown} is neither a known network nor an http(s) URL; {choices}{hint}")
    if parts.query or parts.fragment:
        raise InputError(f"node {shown} has a query or a fragment; pass the base URL only")
    if "@" in parts.path:
        raise InputError(
            f"node {shown} has '@' after its host; in a user name or password, encode / as %2F and ? as %3F"
        )
    if _BELOW_BASE.search(parts.path):
        raise InputError(f"node {shown} continues after /v1; pass the base URL only, which ends in /v1")
    path = parts.path.rstrip("/")
    if not path.endswith("/v1"):
        path += "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def environment_key() -> str | None:
    """Return the API key that ``LEDGER_TOOLKIT_API_KEY`` holds, or None."""
    return os.environ.get("LEDGER_TOOLKIT_API_KEY") or None


def redacted_url(url: str) -> str:
    """Return a URL without user name, password, query and fragment, as messages, frames and reports show it.

    Examples
    --------
    >>> redacted_url("https://user:secret@node.example/v1?key=1")
    'https://node.example/v1'
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def is_public_network(target: str) -> bool:
    """Return whether the name of a node is that of one of `NETWORKS`, or its URL, over TLS."""
    url = base_url(target) if target not in {"embedded", OWN_LEDGER} else ""
    return url.startswith("https:") and redacted_url(url) in NETWORKS.values()


def login_of(url: str) -> str | None:
    """Return the ``user:password`` part of a URL, percent-encoded as it is there, or None."""
    return urlsplit(url).netloc.rpartition("@")[0] or None


def redacted_target(target: str) -> str:
    """Return `target`, which need not be a valid URL, without login, query and fragment, for messages."""
    start = _SCHEME.match(target)
    scheme = start.group() if start else ""
    login, _, rest = target[len(scheme) :].rpartition("@")
    # If ? or # comes before the @, both sides may be part of the password, so neither is shown.
    return scheme + ("..." if _EXTRAS.search(login) else _EXTRAS.split(rest)[0])


def is_nearby(url: str) -> bool:
    """Return whether a URL is on this machine or its local network, where ledgers are often reset.

    True for loopback, private, link-local and unspecified addresses in any notation, and for names that end in
    ``.localhost`` or ``.local``. Names are not resolved.
    """
    host = (urlsplit(url).hostname or "").removesuffix(".")
    try:
        address = ip_address(host)
    except ValueError:
        try:
            address = ip_address(socket.inet_aton(host))  # notations such as 127.1 and 2130706433
        except (OSError, ValueError):
            return host.rpartition(".")[2] in _NEARBY_DOMAINS
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_private or address.is_loopback or address.is_link_local or address.is_unspecified


@cache
def embedded_ledger() -> Ledger:
    """Return the ledger of the embedded node, which is made once per process."""
    from toolkit import embedded

    return embedded.Ledger.with_history(cache=True)


def embedded_node(target: object) -> tuple[str, str] | None:
    """Return URL and name of the embedded node that a target means: ``embedded`` or a ledger; None for other targets.

    Each ledger is served once per process, until the interpreter exits.
    """
    if target == "embedded":
        return embedded_url(embedded_ledger()), "embedded"
    if isinstance(target, str):
        return None
    from toolkit import embedded

    if not isinstance(target, embedded.Ledger):
        return None
    is_default = embedded_ledger.cache_info().currsize and target is embedded_ledger()
    return embedded_url(target), "embedded" if is_default else OWN_LEDGER


@cache
def embedded_url(ledger: Ledger) -> str:
    """Serve a ledger and return its URL; without a web server, return a URL that `LedgerTransport` answers."""
    try:
        from toolkit.embedded import start
    except ImportError:
        url = f"http://ledger-{len(_served)}{IN_PROCESS}/v1"
    else:
        url = start(ledger).url
    _served[url] = ledger
    return url


# The ledgers of `embedded_url`, by URL.
_served: dict[str, Ledger] = {}


def served_ledger(url: str) -> Ledger | None:
    """Return the ledger of `embedded_url` at a URL; None for the URL of any other node."""
    return _served.get(url)


def in_process_ledger(url: str) -> Ledger | None:
    """Return the ledger of a URL that is answered in this process without a socket; None for any other URL.

    Raises
    ------
    InputError
        If the ledger of such a URL is in another process.
    """
    if not (urlsplit(url).hostname or "").endswith(IN_PROCESS):
        return None
    if url not in _served:
        raise InputError(
            f"{url} is a ledger inside another process, without a socket: install uvicorn there, "
            "so that connect() serves it to other processes"
        )
    return _served[url]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, without credentials: the transport adds those.

    Attributes
    ----------
    method : str
        ``GET`` or ``POST``.
    url : str
        Absolute URL, query included.
    body : bytes or None
        Body as sent.
    headers : mapping of str to str
        Content type, accepted types and others.
    """

    method: str
    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """Method and URL without query, for error messages."""
        return f"{self.method} {redacted_url(self.url)}"

    def pinned(self, version: int | None) -> Request:
        """Return the request, whose URL must not have a query, at a ledger version; None is the head."""
        return self if version is None else replace(self, url=f"{self.url}?ledger_version={version}")


# Characters of a URL that an answer names; a longer one is not that of a node.
_MAX_URL = 300


class _Pruned(msgspec.Struct):
    """What the body of an answer to a pruned read may name."""

    archival_endpoint: str | None = None


@dataclass(frozen=True)
class Answer:
    """One HTTP answer.

    Attributes
    ----------
    status : int
    headers : mapping of str to str
        Names in lower case; values of a repeated header are joined by commas.
    body : bytes
        Decompressed, at most `MAX_ANSWER_BYTES`.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @cached_property
    def parsed(self) -> AnswerHeaders:
        """The documented headers."""
        return parse_headers(self.headers)

    @cached_property
    def error(self) -> ErrorBody:
        """The body of an answer with an error status."""
        return decode_error_body(self.body, self.content_type)

    @property
    def is_good(self) -> bool:
        """Whether a node answered: it has no other status for success, and 202 or 206 is not the whole answer."""
        return self.status == HTTPStatus.OK

    @property
    def is_page(self) -> bool:
        """Whether the body is an HTML page, as gateways send it."""
        kind = self.content_type.lower()
        return "html" in kind or ("bcs" not in kind and "octet" not in kind and self.body.lstrip()[:1] == b"<")

    def header(self, wanted: str) -> str:
        """Return a header by its lower-case name; empty without it."""
        return next((value for name, value in self.headers.items() if name.lower() == wanted), "")

    @property
    def content_type(self) -> str:
        """The content type; empty without one."""
        return self.header("content-type")

    @property
    def location(self) -> str:
        """Where a redirect leads to, without login and query; empty without one."""
        return redacted_target(self.header("location"))

    @property
    def archive(self) -> str | None:
        """The base URL of the archive that an answer to a pruned read names; None if it names none over https."""
        named = self.header("x-aptos-archival-endpoint") or None
        if named is None:
            with suppress(msgspec.DecodeError, UnicodeError):
                named = msgspec.json.decode(self.body, type=_Pruned).archival_endpoint
        if named is None or len(named) > _MAX_URL or not named.isascii() or not named.isprintable():
            return None
        try:
            url = redacted_url(base_url(named))
        except InputError:
            return None
        return url if url.startswith("https://") else None

    @property
    def retry_after_s(self) -> float | None:
        """The seconds of a ``Retry-After`` header, or None if it is missing or invalid."""
        return retry_after_s(self.header("retry-after"))

    def bcs(self, what: str) -> bytes:
        """Return the body of a BCS answer; `what` names the call in messages.

        Raises
        ------
        SchemaError
            If the answer has another content type.
        """
        kind = self.content_type
        if kind.partition(";")[0].strip().lower() not in {"", "application/x-bcs", "application/octet-stream"}:
            raise SchemaError(f"{what}: expected a BCS answer, got {kind[:60]!r}; it starts with {self.body[:60]!r}")
        return self.body


@dataclass(frozen=True, slots=True)
class PreparedCall(Generic[T]):
    """A request and the function that reads its answer; it can be sent alone or among thousands.

    Attributes
    ----------
    request : Request
        Without credentials, which the transport adds.
    asked : str
        The call in words, for messages: ``view 0x1::coin::supply at version 12``.
    finish : callable
        Takes an answer of status 2xx and returns the result.
    pinned : int or None
        Ledger version that is read. Such an answer never changes, so it may be stored. None reads the head.
    gas : bool
        Whether the answer has the gas used, which also depends on the build of the node.
    untyped : NodeError, NodeUnreachable or None
        Why types are not known, if the look-up of a module failed: the call is encoded and read without them.
    """

    request: Request
    asked: str
    finish: Callable[[Answer], T]
    pinned: int | None = None
    gas: bool = False
    untyped: NodeError | NodeUnreachable | None = None


_MAX_DIGITS = 9  # more seconds than `MAX_RETRY_AFTER_S` in any case
# Maximum wait read from a ``Retry-After`` header, in seconds.
MAX_RETRY_AFTER_S = 366 * 86_400


def retry_after_s(text: str, *, now: datetime | None = None) -> float | None:
    """Return the seconds of a ``Retry-After`` header, or None if it is empty or invalid.

    Parameters
    ----------
    text : str
        The value of the header.
    now : datetime, optional
        Reference for the date form; the current time by default.

    Returns
    -------
    float or None
        From 0 to 366 days; 0 for a date in the past, None for a negative number.

    Examples
    --------
    >>> retry_after_s("7")
    7.0
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        text = text.lstrip("0") or "0"  # int() raises for thousands of digits
        return float(min(int(text), MAX_RETRY_AFTER_S) if len(text) <= _MAX_DIGITS else MAX_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return min(max(0.0, (when - (now or datetime.now(UTC))).total_seconds()), MAX_RETRY_AFTER_S)


class Transport(Protocol):
    """Sends single requests. `SessionTransport` is the default; tests pass others."""

    def send(self, request: Request) -> Answer:
        """Send one request and return the answer, whatever its status; raise NodeUnreachable if there is none."""
        ...

    def close(self) -> None:
        """Release the sockets; later requests raise ClosedError."""
        ...


def path(*parts: str | int) -> str:
    """Return a path of segments, each percent-encoded as a whole, so that no value can change the path.

    Raises
    ------
    InputError
        If a segment is empty, ``.`` or ``..``.
    """
    texts = [str(part) for part in parts]
    for text in texts:
        if text in {".", "..", ""}:
            raise InputError(f"{text!r} is not a valid name: it would change the path of the request")
    return "/" + "/".join(quote(text, safe="") for text in texts)


def json_body(value: Any) -> bytes:
    """Return a value as a JSON body.

    Raises
    ------
    InputError
        If a text in it cannot be encoded in UTF-8.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise InputError(f"text {error.object[:40]!r} cannot be sent: it cannot be encoded in UTF-8") from None


def ascii_url(url: str) -> str:
    """Return a URL with its host in ASCII (IDNA), as `requests` sends it; ValueError if it has no such form."""
    if url.isascii():
        return url
    prepared = requests.PreparedRequest()
    prepared.prepare_url(url, None)
    return prepared.url or url


def too_large() -> str:
    """Return the message for an answer above `MAX_ANSWER_BYTES`."""
    return f"the answer is larger than {MAX_ANSWER_BYTES:,} bytes and was dropped"


def lowered(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by lower-case name; values of a repeated header are joined by commas."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        known = name.lower()
        headers[known] = f"{headers[known]}, {value}" if known in headers else value
    return headers


def reason_text(text: str, credentials: Credentials) -> str:
    """Return a library's message about a request, masked, cut and in ASCII."""
    return ascii(credentials.mask(text)[:MAX_SHOWN])[1:-1]
