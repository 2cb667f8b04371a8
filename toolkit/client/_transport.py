"""The transport without pycurl: requests are sent over a session of `requests`, many at once in threads.

The session reads proxies and certificates from the environment, as users of `requests` expect.
"""

from __future__ import annotations

import ssl
import time
from http.client import HTTPException
from http.cookiejar import DefaultCookiePolicy

import requests
import urllib3
from requests.adapters import HTTPAdapter

from toolkit.client import _http as http
from toolkit.client._http import NO_CREDENTIALS, Answer, Credentials, Request
from toolkit.errors import ClosedError, HopelessError, NodeUnreachable

_CHUNK = 64 * 1024  # bytes; larger ones are not faster
# Maximum number of idle connections per host.
_MAX_IDLE = 64
# Transfer encodings that http.client decodes; a body in another one would be taken as it is.
_DECODED = frozenset({"", "chunked", "identity"})

# Message, and the classes of `requests`, urllib3 and http.client for which it is used. The first match counts.
_MESSAGES: tuple[tuple[str, tuple[type[Exception], ...]], ...] = (
    # The URL of a node is valid, so that an invalid one is that of a proxy.
    (http.NO_PROXY, (requests.exceptions.ProxyError, requests.exceptions.InvalidURL, urllib3.exceptions.ProxyError)),
    (http.NO_TLS, (requests.exceptions.SSLError, ssl.SSLError)),
    (http.CUT_OFF, (urllib3.exceptions.ProtocolError, ConnectionResetError, BrokenPipeError)),
    (http.NOT_HTTP, (HTTPException,)),
    (http.NOT_THERE, (requests.ConnectionError,)),
)


# A TypeError is what `requests` raises for a proxy URL without a host.
_FAILURES = (requests.RequestException, urllib3.exceptions.HTTPError, HTTPException, OSError, ValueError, TypeError)


class _Signed(requests.auth.AuthBase):
    """Adds the node's credentials, and keeps `requests` from looking for others in ``.netrc``."""

    def __init__(self, authorization: str | None) -> None:
        self._authorization = authorization

    def __call__(self, prepared: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._authorization is not None:
            prepared.headers["Authorization"] = self._authorization
        return prepared


class _Adapter(HTTPAdapter):
    """Verifies certificates as the pool of connections says."""

    def cert_verify(self, *_: object, **__: object) -> None:
        """Do nothing: `requests` would switch the verification of an https proxy off if the node has an http URL."""


class SessionTransport:
    """Transport over a session of `requests`, which follows no redirects and stores no cookies.

    Threads may share it. `close` does not interrupt the requests in progress; they end with ClosedError.

    Parameters
    ----------
    credentials : Credentials, optional
        Sent with every request.
    timeout_s : float
        Time limit in seconds for connecting, and for each wait for data. The body may take ten times as long.
    """

    def __init__(self, credentials: Credentials = NO_CREDENTIALS, *, timeout_s: float = 30.0) -> None:
        self._credentials, self._timeout_s = credentials, timeout_s
        self._closed = False
        self._session = session = requests.Session()
        session.auth = _Signed(credentials.authorization)
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        session.headers.clear()
        session.headers.update(http.COMMON_HEADERS)
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Adapter(pool_maxsize=_MAX_IDLE))

    def send(self, request: Request) -> Answer:
        """Send one request and return the response, whatever its status; redirects are not followed.

        Raises
        ------
        NodeUnreachable
            If the node does not respond; `HopelessError` if sending the request again cannot help.
        ClosedError
            If the transport is closed.
        """
        try:
            answer = self._answer(request)
        except NodeUnreachable as error:
            failure = error
        except _FAILURES as error:
            failure = self._translated(error)
        else:
            return answer
        # Not inside a handler: the library's error, which would be its context, may quote a secret.
        raise type(failure)(f"{request.where}: {failure}")

    def close(self) -> None:
        """Close every idle connection; later requests raise ClosedError."""
        self._closed = True
        self._session.close()

    def _answer(self, request: Request) -> Answer:
        self._check_open()
        ends_at = time.monotonic() + http.TOTAL_TIMEOUTS * self._timeout_s
        with self._session.request(
            request.method,
            request.url,
            data=request.body,
            headers=dict(request.headers),
            stream=True,
            timeout=self._timeout_s,
            allow_redirects=False,
            verify=http.authorities() if request.url.startswith("https:") else None,
        ) as response:
            body = http.Body(http.lowered(response.raw.headers.items()))
            if body.headers.get("transfer-encoding", "").strip().lower() not in _DECODED:
                raise NodeUnreachable(http.NOT_UNPACKED)
            while chunk := response.raw.read1(_CHUNK, decode_content=False):
                body.feed(chunk)
                if time.monotonic() >= ends_at:
                    raise HopelessError(http.NOT_COMPLETE.format(http.TOTAL_TIMEOUTS * self._timeout_s))
            content = body.finish()
        self._check_open()  # closing may have truncated the response
        return Answer(response.status_code, body.headers, content)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(http.CLOSED)

    def _translated(self, error: Exception) -> NodeUnreachable:
        cause = _innermost(error)
        if isinstance(error, requests.Timeout) or isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError):
            return NodeUnreachable(http.NO_ANSWER.format(self._timeout_s))
        said = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        reason = http.reason_text(str(said), self._credentials)
        if isinstance(cause, ssl.SSLCertVerificationError):
            return HopelessError(http.NOT_TRUSTED.format(reason))
        texts = (text for text, kinds in _MESSAGES if isinstance(error, kinds) or isinstance(cause, kinds))
        unusable = isinstance(error, ValueError) and isinstance(
            error, requests.RequestException
        )  # URL, proxy or header
        return (HopelessError if unusable else NodeUnreachable)(next(texts, "{}").format(reason))


def _innermost(error: BaseException) -> BaseException:
    """Return the root cause of an error, which is what a reader can act on."""
    quoted = (part for part in error.args if isinstance(part, BaseException))  # urllib3 wraps without raising
    behind = error.__cause__ or error.__context__ or next(quoted, None)
    return error if behind is None else _innermost(behind)
