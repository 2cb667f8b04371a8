"""The parts of HTTP that need no connection: credentials, base URLs, requests, responses, limits and retry rules.

`toolkit.client._engine` sends requests over libcurl; without pycurl, `toolkit.client._transport` does over `requests`.
"""

from __future__ import annotations

import base64
import html
import io
import math
import os
import re
import socket
import threading
import time
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import getproxies

import msgspec

from toolkit import errors
from toolkit._present.messages import did_you_mean
from toolkit._present.text import ELLIPSIS
from toolkit.wire._headers import AnswerHeaders, parse_headers
from toolkit.wire._responses import ErrorBody, decode_error_body

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    import pandas as pd

    from toolkit.embedded import Ledger as Ledger  # noqa: PLC0414 - for typing only, here and in `connect`

MASK = "*** (not shown: it quotes the credentials)"

# Shorter secrets are not masked: that would hide plain words.
_MIN_SECRET = 4
# Any this many successive characters of a secret are a part of it; of a shorter secret, all of it.
_FRAGMENT = 8
# Maximum number of characters that are searched; the rest of a text is cut off.
_MAX_TEXT = 20_000
# Maximum number of times a text is decoded: an answer may quote JSON inside JSON inside a URL.
_MAX_LAYERS = 4
# The mark at the end of a text that was cut; see `toolkit._present.messages.cut_text`.
_CUT = re.compile(rf"{ELLIPSIS}(?: \([0-9,]+ more characters\))?\Z")
_ESCAPE = re.compile(r"""\\(?:u([0-9a-fA-F]{4})|(["'/\\]))""")
_URL_SAFE = str.maketrans("+/", "-_")


class Credentials:
    """An API key, or the login in a URL, for one node. The repr hides both, and the object cannot be pickled.

    Parameters
    ----------
    api_key : str, optional
        Sent as a bearer token.
    login : str, optional
        ``user:password``, percent-encoded as in a URL; sent if there is no API key.
    unsent : bool, default False
        Whether the environment has an API key that is not sent to this node.
    proxies : iterable of str
        Logins of proxies, percent-encoded as in a URL. They are not sent, only masked, because a proxy's error page may
        echo them.

    Raises
    ------
    InputError
        If the API key cannot be sent in a header. The message does not show it.

    Examples
    --------
    >>> Credentials("secret-key").mask("the node answered: unknown key secret-key")
    '*** (not shown: it quotes the credentials)'
    """

    def __init__(
        self, api_key: str | None = None, login: str | None = None, *, unsent: bool = False, proxies: Iterable[str] = ()
    ) -> None:
        if api_key is not None and not (
            api_key.isascii() and api_key.isprintable() and api_key.strip() == api_key != ""
        ):
            raise errors.InputError(
                "api_key contains a line break, surrounding space or another character that cannot be sent in a header"
            )
        self.api_key = api_key
        self.login = login
        self.unsent = unsent
        self.proxies = tuple(proxies)

    def __repr__(self) -> str:
        kind = "an API key" if self.api_key is not None else "a login" if self.login is not None else "none"
        return f"<Credentials: {kind}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials cannot be pickled; pickle the node instead")

    @cached_property
    def authorization(self) -> str | None:
        """Value of the ``Authorization`` header, or None if no credentials are set."""
        if self.api_key is not None:
            return f"Bearer {self.api_key}"
        return None if self.login is None else f"Basic {_base64(unquote(self.login))}"

    def mask(self, text: str) -> str:
        r"""Return a text, or `MASK` instead if it quotes a secret or part of one.

        Secrets are found in any case, percent-encoded, with JSON escapes (``\u0041``, ``\/``) or HTML entities, with
        several of these encodings combined, in base64 and base64url (also of ``user:password``), and in pieces of 8 or
        more characters, which truncated texts may contain. Texts of more than 20,000 characters are truncated.

        Parameters
        ----------
        text : str
            Text of a response, or of a library that quotes one. Not for the toolkit's own texts, in which a short
            password may be a common word.

        Returns
        -------
        str
        """
        if not self._pieces:
            return text
        shown = layer = text[:_MAX_TEXT] + ELLIPSIS if len(text) > _MAX_TEXT else text
        for _ in range(_MAX_LAYERS):
            folded = layer.lower()
            # A text may have been cut within a secret.
            if any(piece in folded for piece in self._pieces) or _CUT.sub("", folded).endswith(self._beginnings):
                return MASK
            before, layer = layer, _decoded(layer)
            if layer == before:
                break
        return shown

    def mask_error(self, error: errors.SchemaError) -> errors.SchemaError:
        """Mask the message and the column of an error that quotes a response, in place; return the error.

        Its causes, which also quote the response, are removed: tracebacks do not show them, but Dask pickles them.
        """
        error.args = tuple(self.mask(part) if isinstance(part, str) else part for part in error.args)
        error.column = None if error.column is None else self.mask(error.column)
        error.__cause__ = error.__context__ = None
        return error

    @cached_property
    def _forms(self) -> set[str]:
        """Every form in which a decoded text may contain one of the secrets."""
        found = {*_secrets(self.api_key, self.login)}.union(*(_secrets(None, login) for login in self.proxies))
        for _ in range(_MAX_LAYERS):  # a secret that contains an escape such as %41 is decoded with the text around it
            found |= {decoded for secret in found if len(decoded := _decoded(secret)) >= _MIN_SECRET}
        return {secret.lower() for secret in found}

    @cached_property
    def _pieces(self) -> list[str]:
        size = _FRAGMENT
        return sorted({one[at : at + size] for one in self._forms for at in range(max(1, len(one) - size + 1))})

    @cached_property
    def _beginnings(self) -> tuple[str, ...]:
        return tuple({one[:size] for one in self._forms for size in range(_MIN_SECRET, min(_FRAGMENT, len(one)))})


def _secrets(api_key: str | None, login: str | None) -> Iterable[str]:
    """Yield the secrets, plain and in base64: the key, the password or, if there is none, the user name."""
    user, _, password = (login or "").partition(":")
    plain = [secret for secret in (api_key or "", unquote(password or user)) if len(secret) >= _MIN_SECRET]
    whole = [unquote(login)] if login is not None and len(login) >= _MIN_SECRET else []
    yield from plain
    yield from (secret.replace(" ", "+") for secret in plain)
    for encoded in (_base64(secret).rstrip("=") for secret in (*plain, *whole)):
        yield encoded
        yield encoded.translate(_URL_SAFE)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")


def _decoded(text: str) -> str:
    """Decode the HTML entities, the percent-encoding, and the JSON and Python escapes of a text once."""
    plain = unquote(html.unescape(text).replace("\\x", "%"))
    found = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[2], plain)
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # pairs of \\u escapes are one character


NO_CREDENTIALS = Credentials()


T = TypeVar("T")

# Name of a node for a `Ledger` that the user holds; only that object can be read again.
OWN_LEDGER = "embedded ledger"
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

# Maximum size of an answer's body in bytes, decompressed. Larger pages of transactions are read as smaller pages.
MAX_ANSWER_BYTES = 64 * 1024 * 1024

# Maximum number of bytes of answers that a transport holds at once, being received or waiting for the caller.
# At the limit each run still receives one answer, so the peak is this plus `MAX_ANSWER_BYTES` per run.
MAX_BYTES_IN_FLIGHT = 256 * 1024 * 1024

# Limit of a whole request as a multiple of `timeout_s`.
TOTAL_TIMEOUTS = 10

# Headers of every request; headers of the request itself take precedence.
COMMON_HEADERS = {"User-Agent": "ledger-toolkit", "Accept": "*/*", "Accept-Encoding": "gzip"}

CLOSED = "this node client is closed; call connect() again"
CUT_OFF = "the response was cut off ({}); try again"
NO_ANSWER = "no response within {:g} s; raise timeout_s or try again later"
NOT_COMPLETE = "the response took longer than {:g} s, ten times timeout_s; raise timeout_s"
NOT_HTTP = "the response is not HTTP ({}); check the URL"
NOT_THERE = "cannot connect ({}); check the URL, and whether the node is running"
NOT_TRUSTED = (
    "the certificate of the node, or of the https proxy to it, is not trusted ({}); "
    "set REQUESTS_CA_BUNDLE to the file of its certificate authority and call connect() again"
)
NO_PROXY = (
    "the proxy set in the environment could not be used; "
    "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY, then call connect() again"
)
NO_TLS = "the TLS handshake failed ({}); check that the server uses https on this port"
NOT_UNPACKED = "the response could not be decompressed; try again"
TOO_LARGE = "the response is larger than {:,} bytes and was dropped"

# Maximum length of a text of a server or a library in an error message.
MAX_SHOWN = 120

# Values of Content-Encoding that change nothing.
_NOT_ENCODED = frozenset({"", "identity", "none"})
# Environment variables that name certificate authorities, for users of `requests`, curl and OpenSSL.
_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


def base_url(target: str) -> str:
    """Return the base URL, which ends in ``/v1``, for a network name or an http(s) URL.

    Parameters
    ----------
    target : str
        ``mainnet``, ``testnet``, ``devnet``, ``local``, or an http(s) URL with or without ``/v1`` and trailing slash.

    Returns
    -------
    str
        URL to which the paths of the REST API are appended.

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
        raise errors.InputError(f"node must be a str or a toolkit.embedded.Ledger, got {type(target).__name__}")
    if target in NETWORKS:
        return NETWORKS[target]
    shown = repr(redacted_target(target))
    choices = f"expected one of embedded, {', '.join(NETWORKS)}, or an http(s) URL"
    try:
        parts = urlsplit(target.strip())
        host, _ = parts.hostname, parts.port  # raises for an invalid port
    except ValueError:  # its message may quote a password
        raise errors.InputError(f"node {shown} is not a usable URL: its host or port is invalid; {choices}") from None
    if parts.scheme not in {"http", "https"} or not host:
        hint = f"; {meant}" if (meant := did_you_mean(target.strip(), ["embedded", *NETWORKS])) else ""
        raise errors.InputError(f"node {shown} is not known; {choices}{hint}")
    if parts.query or parts.fragment:
        raise errors.InputError(f"node {shown} has a query or a fragment; pass the base URL only")
    if "@" in parts.path:
        raise errors.InputError(
            f"node {shown} has '@' after its host; in a user name or password, encode / as %2F and ? as %3F"
        )
    if _BELOW_BASE.search(parts.path):
        raise errors.InputError(f"node {shown} continues after /v1; pass only the base URL, which ends in /v1")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1") + "/v1", "", ""))


def environment_key() -> str | None:
    """Return the API key in ``LEDGER_TOOLKIT_API_KEY``, or None if it is not set."""
    return os.environ.get("LEDGER_TOOLKIT_API_KEY") or None


def proxy_logins() -> tuple[str, ...]:
    """Return the logins of all proxies that the environment names, as written there, to be masked in messages."""
    divided = (given.rpartition("@") for given in getproxies().values())  # also of URLs that are not valid
    return tuple(login.rpartition("://")[2] for login, at, _ in divided if at)


def authorities() -> str:
    """Return the file or folder of the certificate authorities to trust: of the environment, or that of certifi.

    Raises
    ------
    HopelessError
        If the environment names one that does not exist.
    """
    for name in _BUNDLES:
        if path := os.environ.get(name):
            if Path(path).exists():
                return path
            raise errors.HopelessError(
                f"{name} is set to {path!r}, which does not exist; expected a file or folder of CA certificates"
            )
    import certifi

    return certifi.where()


def redacted_url(url: str) -> str:
    """Return a URL without user name, password, query and fragment, as messages, frames and reports show it.

    Examples
    --------
    >>> redacted_url("https://user:secret@node.example/v1?key=1")
    'https://node.example/v1'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_public_network(target: str) -> bool:
    """Return whether a node's name is the name or the TLS URL of one of `NETWORKS`."""
    url = base_url(target) if target not in {"embedded", OWN_LEDGER} else ""
    return url.startswith("https:") and redacted_url(url) in NETWORKS.values()


def login_of(url: str) -> str | None:
    """Return the ``user:password`` part of a URL, still percent-encoded, or None."""
    return urlsplit(url).netloc.rpartition("@")[0] or None


def redacted_target(target: str) -> str:
    """Return `target` without login, query and fragment, for messages; it need not be a valid URL."""
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
    try:  # `inet_aton` reads notations such as 127.1 and 2130706433 too
        address = ip_address(host if ":" in host else socket.inet_aton(host))
    except (OSError, ValueError):
        return host.rpartition(".")[2] in {"localhost", "local"}
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_private or address.is_loopback or address.is_link_local or address.is_unspecified


@cache
def embedded_ledger() -> Ledger:
    """Return the ledger of the embedded node, which is created once per process."""
    from toolkit import embedded

    return embedded.Ledger.with_history(cache=True)


def embedded_node(target: object) -> tuple[str, str] | None:
    """Return the URL and name of the embedded node if the target is ``embedded`` or a ledger, else None.

    Each ledger is served once per process, until the interpreter exits.
    """
    ledger = embedded_ledger() if target == "embedded" else target
    if isinstance(ledger, str):
        return None
    from toolkit import embedded

    if not isinstance(ledger, embedded.Ledger):
        return None
    is_default = embedded_ledger.cache_info().currsize and ledger is embedded_ledger()
    return embedded_url(ledger), "embedded" if target == "embedded" or is_default else OWN_LEDGER


@cache
def embedded_url(ledger: Ledger) -> str:
    """Serve a ledger and return its URL."""
    from toolkit.embedded import start

    url = start(ledger).url
    _served[url] = ledger
    return url


# The ledgers of `embedded_url`, by URL.
_served: dict[str, Ledger] = {}


def served_ledger(url: str) -> Ledger | None:
    """Return the ledger that `embedded_url` serves at a URL, or None for the URL of any other node."""
    return _served.get(url)


# URL of forks of embedded nodes, which no request is sent to.
EMBEDDED_FORK = "http://embedded-fork.invalid/v1"


def has_model_gas(node: Any) -> bool:
    """Return whether a node's gas comes from the model of an embedded node in this process, or of a fork of one."""
    url = getattr(node, "url", "")
    return url == EMBEDDED_FORK or served_ledger(url) is not None


def mark_model(frame: pd.DataFrame, node: Any, *, known: bool = False) -> None:
    """Note in the metadata of a frame that its gas comes from the model of an embedded node, for figures."""
    if known or has_model_gas(node):
        frame.attrs["toolkit"]["gas_used"]["model"] = "embedded node"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, without credentials, which the transport adds.

    Attributes
    ----------
    method : str
        ``GET`` or ``POST``.
    url : str
        Absolute URL, query included.
    body : bytes or None
        The encoded body.
    headers : mapping of str to str
        Content type, accepted types and others.
    ledger_version : int or None
        The parameter of this name in the query.
    """

    method: str
    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    ledger_version: int | None = None

    @property
    def where(self) -> str:
        """Method and URL without query, for error messages."""
        return f"{self.method} {redacted_url(self.url)}"


# Characters of a URL that an answer names; nodes do not send longer ones.
_MAX_URL = 300


class _Pruned(msgspec.Struct):
    """The archive node that the body of a response to a pruned read may name."""

    archival_endpoint: str | None = None


@dataclass(frozen=True)
class Answer:
    """One HTTP response.

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
        """The documented headers, decoded."""
        return parse_headers(self.headers)

    @cached_property
    def error(self) -> ErrorBody:
        """The body of a response with an error status, decoded."""
        return decode_error_body(self.body, self.content_type)

    @property
    def is_good(self) -> bool:
        """Whether the status is 200, the only status with which nodes report success."""
        return self.status == HTTPStatus.OK

    @property
    def is_page(self) -> bool:
        """Whether the body is an HTML page, such as a gateway's error page."""
        kind = self.content_type.lower()
        return "html" in kind or ("bcs" not in kind and "octet" not in kind and self.body.lstrip()[:1] == b"<")

    def header(self, wanted: str) -> str:
        """Return a header by its lower-case name; an empty string if it is missing."""
        return next((value for name, value in self.headers.items() if name.lower() == wanted), "")

    @property
    def content_type(self) -> str:
        """The content type; an empty string if it is missing."""
        return self.header("content-type")

    @property
    def archive(self) -> str | None:
        """The https base URL of the archive node that a response to a pruned read names, or None."""
        named = self.header("x-aptos-archival-endpoint") or None
        if named is None:
            with suppress(msgspec.DecodeError, UnicodeError):
                named = msgspec.json.decode(self.body, type=_Pruned).archival_endpoint
        if named is None or len(named) > _MAX_URL or not named.isascii() or not named.isprintable():
            return None
        try:
            url = redacted_url(base_url(named))
        except errors.InputError:
            return None
        return url if url.startswith("https://") else None

    @property
    def retry_after_s(self) -> float | None:
        """The seconds of a ``Retry-After`` header, or None if it is missing or invalid.

        A date is compared with the ``Date`` of the response, because the clock of this machine may be wrong.
        """
        return retry_after_s(self.header("retry-after"), now=_http_date(self.header("date")))

    def bcs(self, what: str) -> bytes:
        """Return the body of a BCS response; `what` names the call in messages.

        Raises
        ------
        SchemaError
            If the response has another content type.
        """
        kind = self.content_type
        if kind.partition(";")[0].strip().lower() not in {"", "application/x-bcs", "application/octet-stream"}:
            raise errors.SchemaError(
                f"{what}: expected a BCS response, got {kind[:60]!r}; it starts with {self.body[:60]!r}"
            )
        return self.body


@dataclass(frozen=True, slots=True)
class PreparedCall(Generic[T]):
    """A request and the function that decodes its response; it can be sent alone or among thousands.

    Attributes
    ----------
    request : Request
        Without credentials, which the transport adds.
    asked : str
        The call in words, for messages: ``view 0x1::coin::supply at version 12``.
    finish : callable
        Takes a successful response and returns the result.
    pinned : int or None
        Ledger version that is read. Such a response never changes, so it may be stored. None reads the head.
    gas : bool
        Whether the response includes the gas used, which also depends on the build of the node.
    """

    request: Request
    asked: str
    finish: Callable[[Answer], T]
    pinned: int | None = None
    gas: bool = False


# A call to send, or the error that is its outcome because it could not be prepared.
Sendable: TypeAlias = "PreparedCall[T] | errors.ToolkitError"
# The position of each call with its result or its error, in the order of completion.
Outcomes: TypeAlias = "Generator[tuple[int, T | errors.ToolkitError], None, None]"


# Maximum wait read from a ``Retry-After`` header, in seconds.
MAX_RETRY_AFTER_S = 366 * 86_400


def retry_after_s(text: str, *, now: datetime | None = None) -> float | None:
    """Return the seconds of a ``Retry-After`` header, or None if it is empty or invalid.

    Parameters
    ----------
    text : str
        The value of the header.
    now : datetime, optional
        Reference for the date form; the time of this machine by default.

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
        first_digits = text.lstrip("0")[:10] or "0"  # int() raises for thousands of digits
        return float(min(int(first_digits), MAX_RETRY_AFTER_S))
    if (when := _http_date(text)) is None:
        return None
    return min(max(0.0, (when - (now or datetime.now(UTC))).total_seconds()), MAX_RETRY_AFTER_S)


def _http_date(text: str) -> datetime | None:
    """Parse a date of a header; UTC if it has no offset, None if it is not a date."""
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


class Transport(Protocol):
    """Sends single requests: `BulkEngine`, `SessionTransport`, `LedgerTransport`, or one of a test."""

    def send(self, request: Request) -> Answer:
        """Send one request and return the response, whatever its status; raise NodeUnreachable without a response."""
        ...

    def close(self) -> None:
        """Release the sockets; later requests raise ClosedError."""
        ...


AlsoRepeat: TypeAlias = "Callable[[Request, Answer], bool]"


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
            raise errors.InputError(f"{text!r} is not a valid name: it would change the path of the request")
    return "/" + "/".join(quote(text, safe="") for text in texts)


def json_body(value: Any) -> bytes:
    """Encode a value as a JSON request body.

    Raises
    ------
    InputError
        If a text in it cannot be encoded in UTF-8.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise errors.InputError(
            f"text {error.object[:40]!r} cannot be sent, because it cannot be encoded in UTF-8"
        ) from None


def lowered(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by lower-case name; values of a repeated header are joined by commas."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        known = name.lower()
        headers[known] = f"{headers[known]}, {value}" if known in headers else value
    return headers


class Body:
    """The body of one response, decompressed as it arrives, so that its size in memory is bounded.

    The transports do this here, because libcurl and urllib3 differ in what they decompress, and both accept a gzip body
    whose end is missing.

    Parameters
    ----------
    headers : mapping of str to str
        Headers of the response, by lower-case name.

    Attributes
    ----------
    size : int
        Number of decompressed bytes so far.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        given = [name.strip() for name in headers.get("content-encoding", "").lower().split(",")]
        self._encoding = ",".join(name for name in given if name not in _NOT_ENCODED)
        self._stream: Any = None
        self._content = io.BytesIO()  # not a list: a piece of 2 bytes would take 40 times its size
        self.size = 0

    def feed(self, data: bytes) -> None:
        """Add the next bytes.

        Raises
        ------
        NodeUnreachable
            If the bytes are damaged or in an unknown encoding; `HopelessError` if the body is too large.
        """
        unpacked = self._unpacked(data) if self._encoding else data
        self.size += len(unpacked)
        if self.size > MAX_ANSWER_BYTES:
            raise errors.HopelessError(TOO_LARGE.format(MAX_ANSWER_BYTES))
        self._content.write(unpacked)

    def finish(self) -> bytes:
        """Return the body; raise NodeUnreachable if it is not complete."""
        if self._stream is not None and not self._stream.eof:
            raise errors.NodeUnreachable(NOT_UNPACKED)
        return self._content.getvalue()

    def _unpacked(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        room = MAX_ANSWER_BYTES + 1 - self.size
        try:
            while data and room > 0:
                if self._stream is None or self._stream.eof:  # gzip allows one member after another
                    self._stream = self._opened()
                parts.append(self._stream.decompress(data, room))
                room -= len(parts[-1])
                data = self._stream.unused_data
        except zlib.error:
            raise errors.NodeUnreachable(NOT_UNPACKED) from None
        return b"".join(parts)

    def _opened(self) -> Any:
        if self._encoding not in {"gzip", "x-gzip"}:
            raise zlib.error
        return zlib.decompressobj(16 + zlib.MAX_WBITS)


def reason_text(text: str, credentials: Credentials) -> str:
    """Return a library's message about a request, masked, truncated and in ASCII."""
    return ascii(credentials.mask(text)[:MAX_SHOWN])[1:-1]


ALWAYS = frozenset({429, 502, 503, 504})
# Number of bytes of an error's body that are searched for reasons not to send the request again.
_MAX_TEXT_BYTES = 4096
K = TypeVar("K")
# Minimum time for which something that failed is not tried again, in seconds.
_MIN_REST_S = 30.0
# The rest as a multiple of the duration of the failure, so that trying again costs at most a tenth of the time.
_REST_PER_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Decides which failed requests are retried, and after how long.

    The wait before retry n (counted from 1) is uniform in [0.5, 1] times ``min(cap_s, base_s * 2**(n - 1))``, or the
    node's ``Retry-After`` if that is longer. The ``Retry-After`` of a 429 or 503 applies to all requests to the node:
    up to `budget_s`, they wait; above it, they are refused until that time.

    Parameters
    ----------
    attempts : int
        Maximum number of times that a request is sent.
    base_s, cap_s : float
        The first and the longest wait, in seconds.
    budget_s : float
        Maximum sum of the waits of one request, in seconds.

    Examples
    --------
    >>> [RetryPolicy().pause_s(Answer(status, {}, b""), repeat=2, chance=0.0) for status in (503, 404)]
    [0.25, None]
    """

    attempts: int = 5
    base_s: float = 0.25
    cap_s: float = 8.0
    budget_s: float = 60.0

    def pause_s(
        self,
        outcome: Answer | errors.NodeUnreachable,
        *,
        repeat: int,
        chance: float,
        waited_s: float = 0.0,
        also_repeat: Callable[[Answer], bool] | None = None,
    ) -> float | None:
        """Return the wait before a failed request is retried, or None if it must not be retried.

        Parameters
        ----------
        outcome : Answer or NodeUnreachable
            An error response, or the reason why none was received.
        repeat : int
            Number of the retry, counted from 1.
        waited_s : float
            Sum of the waits of this request so far, in seconds.
        chance : float
            A random number in [0, 1), for the jitter.
        also_repeat : callable (Answer) -> bool, optional
            Further error responses to retry, within the same attempts and budget.

        Returns
        -------
        float or None
            In seconds.
        """
        if repeat >= self.attempts:
            return None
        asked_s = None
        if isinstance(outcome, errors.NodeUnreachable):
            again = not isinstance(outcome, errors.HopelessError)
        else:
            asked_s = outcome.retry_after_s
            again = outcome.status in ALWAYS or (repeat == 1 and _is_mishap(outcome))
            again = again or (also_repeat is not None and also_repeat(outcome))
        if not again:
            return None
        pause_s = max(self.wait_s(repeat=repeat, chance=chance), asked_s or 0.0)
        return pause_s if waited_s + pause_s <= self.budget_s else None

    def wait_s(self, *, repeat: int, chance: float) -> float:
        """Return the wait in seconds before retry number `repeat`, if the node did not ask for a longer one."""
        return min(self.cap_s, self.base_s * 2.0 ** (repeat - 1)) * (0.5 + 0.5 * chance)


def _is_mishap(answer: Answer) -> bool:
    """Return whether a response is a 500 that may not occur again, as one about deserialization would."""
    text = answer.body[:_MAX_TEXT_BYTES].lower()
    return answer.status == HTTPStatus.INTERNAL_SERVER_ERROR and b"deseriali" not in text


def resume_time(wait_s: float, *, now: datetime | None = None) -> str:
    """Return when a wait ends, for messages: ``2026-05-01 12:00:07 UTC``."""
    return f"{(now or datetime.now(UTC)) + timedelta(seconds=wait_s + 1):%Y-%m-%d %H:%M:%S} UTC"


class Pace:
    """Decides when requests to one node are sent: evenly spaced, and not during the pauses that the node asks for.

    Several threads may share it.

    Parameters
    ----------
    per_second : float, optional
        Maximum number of requests per second; None for no limit.
    clock : callable, optional
        Returns the monotonic time in seconds; replaced in tests.
    """

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap_s = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._next = 0.0
        self._paused_until = self._refused_until = float("-inf")
        self._asked_since: float | None = None
        self._lock = threading.Lock()

    def turn_s(self) -> float:
        """Take the next turn to send a request; return the seconds to wait, including pauses."""
        if not self._gap_s:
            return self.paused_s()
        with self._lock:
            now = self._clock()
            turn = max(self._next, now, self._paused_until)
            self._next = turn + self._gap_s
            return turn - now

    def hold(self, seconds: float, *, budget_s: float) -> None:
        """Hold back all requests, because the node asked for a pause.

        Parameters
        ----------
        seconds : float
            Length of the pause.
        budget_s : float
            Maximum total length of successive pauses without a response in between. Up to this length, requests wait;
            above it, they are refused until the pause ends; see `refused_s`.
        """
        with self._lock:
            now = self._clock()
            if self._asked_since is None:
                self._asked_since = now
            until = now + seconds
            if until - self._asked_since <= budget_s:
                self._paused_until = max(self._paused_until, until)
            else:
                self._refused_until = max(self._refused_until, until)

    def answered(self) -> None:
        """Record a response that does not ask for a pause."""
        self._asked_since = None

    def note_answer(self, answer: Answer, *, budget_s: float) -> None:
        """Record a response; if it is a 429 or 503 with a ``Retry-After``, `hold` back all requests."""
        if answer.status in {429, 503} and (node_s := answer.retry_after_s):
            self.hold(node_s, budget_s=budget_s)
        else:
            self.answered()

    def paused_s(self) -> float:
        """Return the seconds for which requests have to wait."""
        return max(0.0, self._paused_until - self._clock())

    def refused_s(self) -> float:
        """Return the seconds for which requests are refused because the pause is too long, or 0."""
        return max(0.0, self._refused_until - self._clock())


def is_outage(error: Exception) -> bool:
    """Return whether an error means that the node cannot respond now: 429, 5xx or no response."""
    if isinstance(error, errors.NodeError):
        if isinstance(error, errors.VersionPruned):
            return False
        return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == HTTPStatus.TOO_MANY_REQUESTS
    return isinstance(error, errors.NodeUnreachable) and not isinstance(error, errors.OfflineMiss)


class Outages(Generic[K]):
    """Remembers failures by key, so that calls that depend on the same key do not all wait for its retries.

    Parameters
    ----------
    clock : callable, optional
        Returns the monotonic time in seconds; replaced in tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[K, tuple[errors.NodeError | errors.NodeUnreachable, float]] = {}

    @contextmanager
    def noted(self, key: K) -> Iterator[None]:
        """Record an outage if the block raises one; if the block succeeds, the outage of `key` has ended."""
        started = self._clock()
        try:
            yield
        except (errors.NodeError, errors.NodeUnreachable) as error:
            if is_outage(error):
                ended = self._clock()
                self._failed[key] = error, ended + max(_MIN_REST_S, _REST_PER_WAIT * (ended - started))
            raise
        self._failed.pop(key, None)

    def resting(self, key: K, *, limit: float = math.inf) -> errors.NodeError | errors.NodeUnreachable | None:
        """Return the outage that keeps `key` from being tried now: its own, or any if `limit` keys are not tried."""
        now = self._clock()
        found = {failed: error for failed, (error, until) in list(self._failed.items()) if now < until}
        return found.get(key) or (next(iter(found.values())) if len(found) >= limit else None)

    def clear(self) -> None:
        """Allow every key to be tried again at once."""
        self._failed.clear()


def not_sent(what: str, wait_s: float) -> errors.RateLimited:
    """Return the exception for a call that was not sent, because the node asked for a long wait.

    Parameters
    ----------
    what : str
        The call or its address, for the message.
    wait_s : float
        Remaining seconds of the wait.
    """
    message = f"the node asked clients to back off until {resume_time(wait_s)} (Retry-After)"
    return errors.RateLimited(
        f"{what}: not sent because {message}; retry then, or call connect() again to try sooner",
        status=HTTPStatus.TOO_MANY_REQUESTS,
        error_code="rate_limited",
        message=f"not sent: {message}",
        retry_after_s=wait_s,
    )
