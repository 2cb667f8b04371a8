"""The seam to the network: a request in; status, headers and bytes out. Foreign errors are translated here only."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import requests

from toolkit.client.targets import redacted_url
from toolkit.errors import ClosedError, NodeUnreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answer", "Request", "SessionTransport", "Transport"]

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""Largest body read from a node, in bytes; a node's largest documented page is far below it."""

_CHUNK = 64 * 1024


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


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """What the client needs of the network."""

    def send(self, request: Request) -> Answer:
        """Send one request and return the answer, whatever its status; NodeUnreachable where none came."""
        ...

    def close(self) -> None:
        """Release sockets; sending afterwards raises ClosedError."""
        ...


class SessionTransport:
    """Transport over `requests`, one session per thread.

    Proxies and TLS settings of the environment hold. A ``.netrc`` does not: credentials go to a node
    only when the caller names them.

    Parameters
    ----------
    api_key : str or None
        Sent as ``Authorization: Bearer``; `requests` drops that header on a redirect to another host.
    timeout_s : float
        Limit in seconds for connecting, and for each wait for bytes.
    """

    def __init__(self, *, api_key: str | None = None, timeout_s: float = 30.0) -> None:
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._local = threading.local()
        self._sessions: list[requests.Session] = []
        self._lock = threading.Lock()
        self._closed = False

    def send(self, request: Request) -> Answer:
        """Send one request; see `Transport.send`."""
        where = f"{request.method} {redacted_url(request.url)}"
        try:
            with self._session().request(
                request.method,
                request.url,
                data=request.body,
                headers=dict(request.headers),
                timeout=self._timeout_s,
                stream=True,
            ) as response:
                body = self._bounded_body(response, where)
                return Answer(response.status_code, response.headers, body)
        except (requests.RequestException, OSError, ValueError) as error:
            raise NodeUnreachable(self._text(where, error)) from error

    def close(self) -> None:
        """Close every session; later sends raise ClosedError."""
        with self._lock:
            self._closed = True
            for session in self._sessions:
                session.close()
            self._sessions.clear()

    def _session(self) -> requests.Session:
        if self._closed:
            raise ClosedError("this node client is closed; connect() again")
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            session.auth = self._authorize  # being set, it also keeps .netrc out
            with self._lock:
                self._sessions.append(session)
            self._local.session = session
        return session

    def _authorize(self, prepared: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._api_key is not None:
            prepared.headers["Authorization"] = f"Bearer {self._api_key}"
        return prepared

    @staticmethod
    def _bounded_body(response: requests.Response, where: str) -> bytes:
        chunks, size = [], 0
        for chunk in response.iter_content(_CHUNK):
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise NodeUnreachable(f"{where}: the answer is larger than {MAX_ANSWER_BYTES:,} bytes and was dropped")
            chunks.append(chunk)
        return b"".join(chunks)

    def _text(self, where: str, error: Exception) -> str:
        if isinstance(error, NodeUnreachable):
            return str(error)
        if isinstance(error, requests.ConnectTimeout | requests.ReadTimeout):
            return f"{where}: no answer within {self._timeout_s:g} s; raise timeout_s or try again later"
        if isinstance(error, requests.exceptions.SSLError):
            return f"{where}: the TLS handshake failed; check the certificate and REQUESTS_CA_BUNDLE"
        if isinstance(error, requests.exceptions.ProxyError):
            return f"{where}: the proxy of this environment could not be used; check HTTP(S)_PROXY and NO_PROXY"
        if isinstance(error, requests.ConnectionError):
            return f"{where}: nothing answers there ({_cause(error)}); check the URL and that the node runs"
        return f"{where}: {type(error).__name__}: {_cause(error)}"


def _cause(error: BaseException) -> str:
    """Return the innermost reason, which is what a reader can act on, in at most 120 characters."""
    while True:
        inner = error.__cause__ or error.__context__
        if inner is None:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            return str(reason)[:120]
        error = inner
