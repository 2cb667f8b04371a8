"""The engine: sends requests, one or many at once, from one thread over libcurl, and limits their rate and memory.

The environment (proxies, certificates) is read once for each engine. libcurl parses what it names.
"""

from __future__ import annotations

import atexit
import contextlib
import heapq
import logging
import os
import queue
import random
import selectors
import socket
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache, partial
from http import HTTPStatus
from itertools import count, islice
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import pycurl  # type: ignore[import-untyped] # it ships no types

from toolkit.client import _http as http
from toolkit.client._http import CLOSED, NO_CREDENTIALS, Answer, Credentials, Pace, Request, RetryPolicy, not_sent
from toolkit.client._threads import join_begun
from toolkit.errors import ClosedError, HopelessError, NodeUnreachable, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from toolkit.client._http import AlsoRepeat


_PROXY_FAILED = 97  # CURLE_PROXY, for which pycurl has no constant
_PORTS = {"http": 80, "https": 443}
_MIN_ERROR_STATUS = 400  # of a proxy's answer to CONNECT
_PROXY_ERRORS = frozenset({pycurl.E_COULDNT_RESOLVE_PROXY, _PROXY_FAILED})
_CONNECT_ERRORS = frozenset({pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_CONNECT})
# The errors of each message.
_MESSAGES = {
    http.CUT_OFF: {pycurl.E_PARTIAL_FILE, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR, pycurl.E_GOT_NOTHING},
    http.NOT_HTTP: {pycurl.E_UNSUPPORTED_PROTOCOL, pycurl.E_FTP_WEIRD_SERVER_REPLY},  # the latter for any server
    http.NOT_THERE: _CONNECT_ERRORS,
    http.NO_TLS: {pycurl.E_SSL_CONNECT_ERROR},
}
# Sockets handled before finished requests are returned; with more, requests come and go in bursts.
_MAX_SOCKETS_PER_WAIT = 16
# Seconds after which a single request looks whether the engine was closed. It also bounds the delay of an interrupt
# that arrives just before the wait, and does not end it.
_MAX_SELECT_S = 0.1
# Header lines of up to this many bytes are parsed once: most of them repeat in each answer of a node.
_MAX_CACHED_LINE = 200
# Options for a file and for a folder of CA certificates: for the node, and for an https proxy.
_TRUSTED = ((pycurl.CAINFO, pycurl.CAPATH), (pycurl.PROXY_CAINFO, pycurl.PROXY_CAPATH))


class Surroundings:
    """How libcurl reaches a site: proxies and certificate authorities of the environment, and addresses of localhost.

    Parameters
    ----------
    timeout_s : float
        Time limit in seconds for finding the address of ``localhost``.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._proxies = getproxies()
        self._found: dict[str, dict[int, Any]] = {}

    def options(self, site: str) -> dict[int, Any]:
        """Return the options of a handle for a site: scheme, host and port of a URL.

        Raises
        ------
        HopelessError
            If the site or the certificate authorities are not valid.
        NodeUnreachable
            If no address of ``localhost`` accepts connections. The next use looks again.
        """
        if site in self._found:
            return self._found[site]
        parts = urlsplit(site)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise HopelessError("this is not an http(s) URL")
        proxy = ""  # with an empty text, libcurl does not look at the environment itself
        if not proxy_bypass(parts.hostname):
            proxy = self._proxies.get(parts.scheme) or self._proxies.get("all") or ""
        options: dict[int, Any] = {
            pycurl.PROXY: os.fsencode(proxy),
            pycurl.NOPROXY: os.fsencode(self._proxies.get("no", "")),
        }
        if parts.scheme == "https" or proxy.lower().startswith("https:"):
            path = http.authorities()
            is_folder = os.path.isdir(path)  # noqa: PTH112 - str in, str out
            for file, folder in _TRUSTED:  # None also removes a folder that libcurl was built with
                options[file] = None if is_folder else os.fsencode(path)
                options[folder] = os.fsencode(path) if is_folder else None
        try:
            opened = parts if not proxy else urlsplit(proxy if "://" in proxy else f"http://{proxy}")
            place = opened.hostname or "", opened.port or _PORTS[parts.scheme]
        except ValueError:  # its message may quote a password
            raise HopelessError(http.NO_PROXY) from None
        options[pycurl.RESOLVE] = self._local_address(*place)
        return self._found.setdefault(site, options)

    def _local_address(self, host: str, port: int) -> list[str]:
        """Return the first address of a ``localhost`` name that accepts a connection, for RESOLVE; [] for other names.

        Another process may listen on the same port of another loopback address. libcurl tries ::1 first, whatever the
        resolver says, and does so for each connection, so that the API key could go to that process.
        """
        if host.removesuffix(".").rpartition(".")[2] != "localhost":
            return []
        try:  # by RFC 6761 all of these names are the loopback, and resolvers differ
            with socket.create_connection(("localhost", port), self._timeout_s) as probe:
                return [f"{host}:{port}:{probe.getpeername()[0]}"]
        except OSError as error:
            failure = http.NOT_THERE.format(error.strerror or error)
        raise NodeUnreachable(failure)


# What a forked child shares with its parent: freed before the child exits, it would end the parent's connections.
_left_to_parent: list[Any] = []


class _Slot:
    """A libcurl easy handle, reused for many requests, and its current request.

    Its user passes the bytes of the body to `write`, as libcurl's callback or otherwise.
    """

    def __init__(self, credentials: Credentials, timeout_s: float, surroundings: Surroundings) -> None:
        self._credentials, self._timeout_s, self._surroundings = credentials, timeout_s, surroundings
        self.handle = handle = pycurl.Curl()
        self.problem: NodeUnreachable | None = None
        self.tag: Any = None
        self._request: Request | None = None
        self._lines: list[bytes] = []
        self._body: http.Body | None = None  # until it begins
        self._sent_headers: Mapping[str, str] | None = None
        self._site = ""
        self._is_proxied = False
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        handle.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, round(timeout_s * 1000)))
        handle.setopt(pycurl.TIMEOUT_MS, max(1, round(http.TOTAL_TIMEOUTS * timeout_s * 1000)))
        handle.setopt(pycurl.LOW_SPEED_LIMIT, 1)  # byte per second, for whole seconds
        handle.setopt(pycurl.LOW_SPEED_TIME, ceil(timeout_s))
        handle.setopt(pycurl.HEADERFUNCTION, self._lines.append)

    def load(self, tag: Any, request: Request) -> None:
        """Set up the handle for a request; raise NodeUnreachable if it cannot be sent."""
        self.tag, self._request = tag, request
        try:
            self._set_options(request)
        except NodeUnreachable as error:
            failure = type(error)(f"{request.where}: {error}")
        except (ValueError, TypeError, pycurl.error) as error:
            failure = HopelessError(f"{request.where}: {http.reason_text(str(error), self._credentials)}")
        else:
            return
        raise failure  # not inside a handler: the library's error may quote a secret

    def _set_options(self, request: Request) -> None:
        handle, url = self.handle, request.url
        if request.headers != self._sent_headers:
            handle.setopt(pycurl.HTTPHEADER, _header_lines(request.headers, self._credentials.authorization))
            self._sent_headers = request.headers
        handle.setopt(pycurl.URL, url)
        if (site := url[: url.find("/", len("https://"))]) != self._site:
            options = self._surroundings.options(site)
            for option, value in options.items():
                handle.setopt(option, value)
            self._site, self._is_proxied = site, bool(options[pycurl.PROXY])
        if request.method == "POST":
            handle.setopt(pycurl.POST, 1)
            handle.setopt(pycurl.POSTFIELDS, request.body or b"")
        else:
            handle.setopt(pycurl.HTTPGET, 1)

    @property
    def size(self) -> int:
        """Number of bytes of the body so far."""
        return 0 if self._body is None else self._body.size

    def write(self, data: bytes) -> int | None:
        """Add bytes to the body; return -1, with which libcurl ends the transfer, if they are not acceptable."""
        if self._body is None:
            self._body = http.Body(_headers(self._lines))
        try:
            self._body.feed(data)
        except NodeUnreachable as problem:
            self.problem = problem
            return -1
        return None  # all of the bytes were taken

    def outcome(self, code: int = 0, message: str = "") -> Answer | NodeUnreachable:
        """Return the outcome of the request, which libcurl has ended, with an error code if it failed."""
        try:
            if self.problem is not None:
                raise self.problem
            if code:
                raise self._failure(code, http.reason_text(message or f"libcurl error {code}", self._credentials))
            body = self._body or http.Body(_headers(self._lines))
            return Answer(self.handle.getinfo(pycurl.RESPONSE_CODE), body.headers, body.finish())
        except NodeUnreachable as error:
            return type(error)(f"{self._request.where if self._request else ''}: {error}")

    def unload(self) -> None:
        """Free the slot for another request."""
        self._lines.clear()
        self._body = self.problem = None
        self.tag = self._request = None  # a tag refers to the whole run and its caller

    def _failure(self, code: int, reason: str) -> NodeUnreachable:
        if code == pycurl.E_OPERATION_TIMEDOUT:
            total_s = http.TOTAL_TIMEOUTS * self._timeout_s
            if self.handle.getinfo(pycurl.TOTAL_TIME) >= total_s:
                return HopelessError(http.NOT_COMPLETE.format(total_s))
            return NodeUnreachable(http.NO_ANSWER.format(self._timeout_s))
        if code in {pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CACERT_BADFILE}:
            return HopelessError(http.NOT_TRUSTED.format(reason))
        refused = self.handle.getinfo(pycurl.HTTP_CONNECTCODE) >= _MIN_ERROR_STATUS
        if code in _PROXY_ERRORS or refused or (self._is_proxied and code in _CONNECT_ERRORS):
            return NodeUnreachable(http.NO_PROXY)
        text = next((text for text, codes in _MESSAGES.items() if code in codes), "{}")
        return NodeUnreachable(text.format(reason))


class _Exchange:
    """A handle whose requests run in the thread that sends them.

    libcurl calls no Python code here: an interrupt might be raised in it, and older releases of pycurl print and drop
    the exceptions of callbacks.
    """

    def __init__(self, slot: _Slot) -> None:
        self._slot = slot
        self._received: list[bytes] = []
        self._multi = pycurl.CurlMulti()
        slot.handle.setopt(pycurl.WRITEFUNCTION, self._received.append)

    def send(self, request: Request, check_open: Callable[[], None]) -> Answer | NodeUnreachable:
        """Send a request and return its outcome; `check_open` is called about ten times per second meanwhile."""
        slot, multi = self._slot, self._multi
        slot.load(None, request)
        multi.add_handle(slot.handle)
        while True:
            _, active = multi.perform()
            for data in self._received:
                slot.write(data)
            self._received.clear()
            if not active or slot.problem is not None:
                break
            multi.select(_MAX_SELECT_S)
            check_open()
        _, _, failed = multi.info_read()
        outcome = slot.outcome(*failed[0][1:]) if failed else slot.outcome()
        multi.remove_handle(slot.handle)
        slot.unload()
        return outcome

    def close(self) -> None:
        """End the request and close the connection."""
        self._slot.handle.close()
        self._multi.close()


class Transfers:
    """Requests in progress over libcurl's multi interface. Only `wake` may be called from other threads.

    Parameters
    ----------
    open_slot : callable
        Creates a `_Slot`.
    keep : int
        Maximum number of idle connections.

    Attributes
    ----------
    room : int
        Number of received bytes above which `wait` returns early, so that its caller can cancel requests. Set by the
        caller.
    received : int
        Bytes of the bodies that are being received.
    """

    def __init__(self, open_slot: Callable[[], _Slot], *, keep: int) -> None:
        self._open_slot = open_slot
        self.room = 2**63
        self.received = 0
        self._free: list[_Slot] = []
        self._busy: dict[pycurl.Curl, _Slot] = {}
        self._timer_at: float | None = None
        self._selector = selectors.DefaultSelector()
        self._ready: deque[tuple[selectors.SelectorKey, int]] = deque()
        self._watched: set[int] = set()
        self._waker, self._alarm = socket.socketpair()
        self._waker.settimeout(0)
        self._alarm.settimeout(0)
        self._selector.register(self._alarm, selectors.EVENT_READ)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, keep)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    def __len__(self) -> int:
        """Return the number of requests in progress."""
        return len(self._busy)

    def tags(self) -> Iterator[_Job]:
        """Return the tags of the requests in progress, oldest first."""
        return (slot.tag for slot in self._busy.values())

    def start(self, tag: _Job, request: Request) -> NodeUnreachable | None:
        """Start a request, whose outcome `wait` returns with its tag; return the error if it cannot be sent."""
        if self._free:
            slot = self._free.pop()
        else:
            slot = self._open_slot()
            slot.handle.setopt(pycurl.WRITEFUNCTION, partial(self._receive, slot))
        try:
            slot.load(tag, request)
        except NodeUnreachable as error:
            slot.handle.close()
            return error
        self._multi.add_handle(slot.handle)
        self._busy[slot.handle] = slot
        return None

    def cancel(self, which: Callable[[_Job], bool]) -> list[_Job]:
        """Cancel the requests whose tags `which` selects, and return their tags; `wait` does not return them."""
        slots = [slot for slot in self._busy.values() if which(slot.tag)]
        tags = [slot.tag for slot in slots]
        for slot in slots:
            self._release(slot)
        return tags

    def wake(self) -> None:
        """Make the current or next `wait` return early. Any thread may call this."""
        with contextlib.suppress(OSError):  # it is full, or closed
            self._waker.send(b"\0")

    def wait(self, seconds: float | None) -> list[tuple[_Job, Answer | NodeUnreachable]]:
        """Process the requests for at most `seconds`, and return the outcomes of those that ended."""
        if not self._ready:
            limits = [] if seconds is None else [seconds]
            if self._timer_at is not None:
                limits.append(self._timer_at - time.monotonic())
            self._ready.extend(self._selector.select(max(0.0, min(limits)) if limits else None))
        for _ in range(min(_MAX_SOCKETS_PER_WAIT, len(self._ready))):
            key, events = self._ready.popleft()
            if key.fileobj is self._alarm:
                self._alarm.recv(4096)
            elif key.fd in self._watched:  # it may have been closed since
                self._multi.socket_action(key.fd, events)
                if self.received > self.room:
                    break
        now = time.monotonic()
        if self._timer_at is not None and now >= self._timer_at:
            self._timer_at = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return self._ended()

    def close(self) -> None:
        """Cancel the requests in progress and close every connection."""
        for slot in list(self._busy.values()):
            self._release(slot)
        for slot in self._free:
            slot.handle.close()
        self._multi.close()
        self._selector.close()
        self._waker.close()
        self._alarm.close()

    def forget_sockets(self) -> None:
        """Leave the poll alone that a forked child shares with its parent, also when this object is freed."""
        self._watched.clear()

    def _receive(self, slot: _Slot, data: bytes) -> int | None:
        before = slot.size
        taken = slot.write(data)
        self.received += slot.size - before
        return taken

    def _release(self, slot: _Slot) -> None:
        del self._busy[slot.handle]
        self._multi.remove_handle(slot.handle)
        self.received -= slot.size
        self._free.append(slot)
        slot.unload()

    def _ended(self) -> list[tuple[_Job, Answer | NodeUnreachable]]:
        """Return the outcomes of the transfers that libcurl has finished."""
        ended, left = [], 1
        while left:
            left, succeeded, failed = self._multi.info_read()
            for handle, *why in (*failed, *((handle,) for handle in succeeded)):
                slot = self._busy[handle]
                ended.append((slot.tag, slot.outcome(*why)))
                self._release(slot)
        return ended

    def _on_timer(self, milliseconds: int) -> None:
        self._timer_at = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    def _on_socket(self, event: int, number: int, *_: object) -> None:
        # libcurl and selectors have the same numbers for reading, writing and both.
        if event == pycurl.POLL_REMOVE:
            if number in self._watched:
                self._watched.remove(number)
                self._selector.unregister(number)
        elif number in self._watched:
            self._selector.modify(number, event)
        else:
            self._watched.add(number)
            self._selector.register(number, event)


def _header_lines(headers: Mapping[str, str], authorization: str | None) -> list[str]:
    """Return the header lines for libcurl; a line without a value removes a header that libcurl sends by default."""
    wanted = {name.lower(): (name, value) for name, value in {**http.COMMON_HEADERS, **headers}.items()}
    if authorization is not None:
        wanted["authorization"] = ("Authorization", authorization)
    lines = [f"{name}: {value}" if value else f"{name};" for name, value in wanted.values()]
    if any("\r" in line or "\n" in line or "\0" in line for line in lines):
        raise ValueError("a header contains a line break")
    return lines + [f"{name}:" for name in ("Content-Type", "Expect") if name.lower() not in wanted]


def _headers(lines: list[bytes]) -> dict[str, str]:
    """Return the headers of the final response, without those of a proxy or a 1xx response, and without trailers."""
    headers: dict[str, str] = {}
    ended = True
    for line in lines:
        if line.startswith(b"HTTP/"):
            headers, ended = {}, False
        elif not ended:
            pair = _cached_pair(line) if len(line) <= _MAX_CACHED_LINE else _pair(line)
            if pair is None:
                ended = True
            else:
                name, value = pair
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _pair(line: bytes) -> tuple[str, str] | None:
    """Return the name and value of a header line, or None if the line is not a header."""
    name, colon, value = line.decode("latin-1").partition(":")
    return (name.lower(), value.strip()) if colon else None


_cached_pair = lru_cache(maxsize=512)(_pair)


_Key = TypeVar("_Key")

_log = logging.getLogger("toolkit.client")
# Maximum number of jobs taken from the caller at a time.
_MAX_BATCH = 8
# Maximum number of jobs taken and not yet answered, as a multiple of `max_in_flight`.
_MAX_AHEAD = 3
# Maximum wait for the threads of all engines when the interpreter exits, in seconds.
_MAX_EXIT_S = 2.0


class BulkEngine:
    """Sends requests over libcurl, one or many at once. Many are sent by a thread, even under a running event loop.

    The thread starts with the first run and ends with `close`, when the engine is freed, or when the interpreter exits.
    Several threads may run requests at the same time; the limits apply to all runs together. In a forked child, the
    engine is closed. Responses that are being received, or that the caller has yet to take, are limited to
    `MAX_BYTES_IN_FLIGHT` bytes in total. Above this limit, requests are delayed, except for one request of each run
    whose caller has no response to take.

    Parameters
    ----------
    credentials : Credentials, optional
        Sent with every request.
    timeout_s : float
        Time limit in seconds for connecting, and for each wait for data. A whole request may take ten times as long.
    max_in_flight : int
        Maximum number of requests at once. A 429 halves the current maximum; other responses increase it again.
    pace : Pace, optional
        Rate limit and pauses; pass the pace that other users of the same node share.
    chance : callable, optional
        Returns a random number in [0, 1) for the jitter of waits; replaced in tests.
    clock : callable, optional
        Returns the monotonic time in seconds; replaced in tests.
    open_transfers : callable, optional
        Creates the `Transfers` that send the requests; replaced in tests.
    """

    def __init__(
        self,
        credentials: Credentials = NO_CREDENTIALS,
        *,
        timeout_s: float = 30.0,
        max_in_flight: int = 64,
        pace: Pace | None = None,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        open_transfers: Callable[..., Transfers] = Transfers,
    ) -> None:
        self._ahead = _MAX_AHEAD * max_in_flight
        self._batch = min(_MAX_BATCH, max_in_flight)
        self._open_slot = partial(_Slot, credentials, timeout_s, Surroundings(timeout_s))
        connect = partial(open_transfers, self._open_slot, keep=max_in_flight)
        self._driver = _Driver(connect, Window(max_in_flight), pace or Pace(None), chance, clock)
        weakref.finalize(self, self._driver.stop).atexit = False  # `_stop_all` also waits for the threads

    def run(
        self,
        jobs: Iterable[tuple[_Key, Request | Answer | ToolkitError]],
        *,
        retry: RetryPolicy | None = None,
        also_repeat: AlsoRepeat | None = None,
    ) -> Generator[tuple[_Key, Answer | ToolkitError], None, None]:
        """Send requests and yield their outcomes in the order of completion.

        Close the iterator (``contextlib.closing``) to cancel the requests in flight: an exception in the caller's loop
        cancels them only once the iterator is freed.

        Parameters
        ----------
        jobs : iterable of (key, Request, Answer or error)
            Consumed in the caller's thread, at most three times `max_in_flight` ahead of the outcomes taken. A response
            or an error is an outcome that is already known, and is yielded unchanged.
        retry : RetryPolicy, optional
            Determines which requests are retried, and after how long. Meanwhile, other requests continue.
        also_repeat : callable (Request, Answer) -> bool, optional
            Further error responses to retry besides those that `retry` covers, within its attempts and budget. Called
            in the engine's thread, so it must be quick.

        Yields
        ------
        tuple of (key, Answer or error)
            One per job. The outcome is the last response after all retries, which may have an error status, or the
            reason why none was received. It is `RateLimited` if the request was not sent because the node asked for a
            longer pause than the budget of `retry` allows.

        Raises
        ------
        ClosedError
            If the engine is closed, before or during the run; in a forked child, it is always closed.
        """
        self._driver.check_open()
        return self._results(_Run(retry or RetryPolicy(), also_repeat), iter(jobs))

    def send(self, request: Request) -> Answer:
        """Send one request in the thread of the caller, and return the response, whatever its status.

        Raises
        ------
        NodeUnreachable
            If the node does not respond; `HopelessError` if sending the request again cannot help.
        ClosedError
            If the engine is closed, also by another thread meanwhile.
        """
        driver = self._driver
        driver.check_open()
        try:
            exchange = driver.idle.pop()
        except IndexError:
            exchange = _Exchange(self._open_slot())
        try:
            outcome = exchange.send(request, driver.check_open)
        except BaseException:  # an interrupt, too
            exchange.close()
            raise
        driver.idle.append(exchange)
        if isinstance(outcome, NodeUnreachable):
            raise outcome
        return outcome

    def close(self) -> None:
        """Cancel all requests, end the thread and close every connection; runs raise ClosedError."""
        self._driver.stop()
        self._driver.join()

    def _results(
        self, run: _Run, jobs: Iterator[tuple[_Key, Request | Answer | ToolkitError]]
    ) -> Generator[tuple[_Key, Answer | ToolkitError], None, None]:
        more, unanswered = True, 0
        try:
            while more or unanswered:
                while more and unanswered + self._batch <= self._ahead:
                    pulled = list(islice(jobs, self._batch))
                    more = len(pulled) == self._batch
                    batch = [_Job(run, key, job) for key, job in pulled if isinstance(job, Request)]
                    self._driver.submit(run, batch)
                    unanswered += len(batch)
                    if len(batch) < len(pulled):
                        yield from ((key, job) for key, job in pulled if not isinstance(job, Request))
                    if not run.results.empty():
                        break
                if unanswered:
                    key, outcome, size = self._answered(run)
                    unanswered -= 1
                    yield key, outcome
                    del outcome  # do not hold a large answer while waiting for the next one
                    run.taken += size
                    self._driver.note_taken()
        finally:
            self._driver.drop(run)

    def _answered(self, run: _Run) -> tuple[Any, Answer | ToolkitError, int]:
        """Wait for an outcome; raise the error if one has ended the run."""
        while True:
            try:
                found = run.results.get(timeout=1.0)  # Ctrl-C cannot interrupt an endless wait on every platform
            except queue.Empty:
                self._driver.check_open()  # in a forked child no thread answers
                continue
            if isinstance(found, BaseException):
                raise found
            return found


@dataclass(eq=False, slots=True)
class _Run:
    """One call of `BulkEngine.run`.

    Attributes
    ----------
    results : queue of (key, outcome, bytes of its body)
        An exception instead ends the run.
    received, taken : int
        Number of bytes of the responses that were received, counted by the driver, and of the responses that the caller
        has processed, counted by the caller.
    """

    retry: RetryPolicy
    also_repeat: AlsoRepeat | None
    results: queue.SimpleQueue[tuple[Any, Answer | ToolkitError, int] | BaseException] = field(
        default_factory=queue.SimpleQueue
    )
    waiting: deque[_Job] = field(default_factory=deque)
    received: int = 0
    taken: int = 0

    @property
    def held(self) -> int:
        """Number of bytes of the responses that were received and that the caller has not processed yet."""
        return self.received - self.taken

    def end(self, key: Any, outcome: Answer | ToolkitError) -> None:
        """Pass the outcome of a job to the caller."""
        size = len(outcome.body) if isinstance(outcome, Answer) else 0
        self.received += size
        self.results.put((key, outcome, size))


@dataclass(eq=False, slots=True)
class _Job:
    """One request of a run, with the number of its retries and the sum of its waits."""

    run: _Run
    key: Any
    request: Request
    repeat: int = 0
    waited_s: float = 0.0
    started_at: float = 0.0


class Window:
    """The maximum number of requests in flight: halved by a 429 or too many bytes, and increased by other responses.

    Parameters
    ----------
    max_in_flight : int
        Initial and largest value of the maximum.

    Examples
    --------
    >>> window = Window(8)
    >>> window.refused(started_at=0.0, now=1.0)
    >>> window.limit
    4
    """

    def __init__(self, max_in_flight: int) -> None:
        self._max_in_flight = max_in_flight
        self._limit = float(max_in_flight)
        self._halved_at = float("-inf")

    @property
    def limit(self) -> int:
        """The current maximum."""
        return int(self._limit)

    def answered(self) -> None:
        """Record a response other than a 429."""
        self._limit = min(self._max_in_flight, self._limit + 1.0 / self._limit)

    def refused(self, *, started_at: float, now: float) -> None:
        """Halve the maximum, unless the refused request was sent before the maximum was last halved."""
        if started_at >= self._halved_at:
            self._limit = max(1.0, self._limit / 2)
            self._halved_at = now
            _log.info("at most %d requests in flight from now on", self.limit)


class _Driver:
    """The engine's thread and its state, which only the thread changes: other threads give it orders."""

    def __init__(
        self,
        connect: Callable[[], Transfers],
        window: Window,
        pace: Pace,
        chance: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._connect = connect
        self._window, self._pace, self._chance, self._clock = window, pace, chance, clock
        self._starting = threading.Lock()
        self._stopped = False
        self._failure: BaseException | None = None  # the error that ended the thread
        self._thread: threading.Thread | None = None
        self._transfers: Transfers | None = None
        self._orders: deque[tuple[_Run, list[_Job] | None]] = deque()  # jobs to send, or None: cancel the run
        self._runs: deque[_Run] = deque()
        self._delayed: list[tuple[float, int, _Job]] = []
        self._order = count()
        self._turn_at: float | None = None
        self._full = False
        # For requests in the threads of their callers; one that ends after `stop` is freed with the engine.
        self.idle: list[_Exchange] = []
        _drivers.add(self)

    # called by other threads ------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise ClosedError if the engine is closed, or the error that ended its thread."""
        if self._stopped:
            raise self._failure or ClosedError(CLOSED)

    def submit(self, run: _Run, jobs: list[_Job]) -> None:
        """Pass jobs of a run to the thread; start it if it is not running yet."""
        if not jobs:
            return
        self.check_open()  # before the lock, which a forked child may have inherited locked
        with self._starting:
            if self._thread is None:
                self._transfers = transfers = self._connect()
                self._thread = threading.Thread(target=self._drive, args=(transfers,), name="toolkit-bulk", daemon=True)
                try:
                    self._thread.start()
                except Exception:  # not for an interrupt, which comes while the new thread begins to run
                    self._thread = self._transfers = None
                    transfers.close()
                    raise
        self._give(run, jobs)

    def note_taken(self) -> None:
        """Let the thread start further requests after responses were taken."""
        if self._full:
            self._wake()

    def drop(self, run: _Run) -> None:
        """Cancel the requests of a run."""
        self._give(run, None)

    def stop(self) -> None:
        """Make the thread end, and close idle connections."""
        if not self._stopped:
            self._stopped = True
            self._wake()
            self.idle.clear()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None and self._thread is not threading.current_thread():
            join_begun(self._thread, timeout_s)

    def leave_to_parent(self) -> None:
        """Close the engine in a forked child, which has no thread, without affecting the parent's connections."""
        self._stopped = True
        _left_to_parent.append((self.idle, self._transfers))
        if self._transfers is not None:
            self._transfers.forget_sockets()
            self._transfers = None

    def _give(self, run: _Run, jobs: list[_Job] | None) -> None:
        if self._transfers is not None:
            self._orders.append((run, jobs))
            self._wake()

    def _wake(self) -> None:
        if (transfers := self._transfers) is not None:  # the thread may end at any moment
            transfers.wake()

    # the thread -------------------------------------------------------------------------------------------------

    def _drive(self, transfers: Transfers) -> None:
        try:
            while not self._stopped:
                self._step(transfers)
        except BaseException as error:  # noqa: BLE001 - it is raised to the callers that wait for outcomes
            self._failure = error
        self._stopped, self._transfers = True, None
        reason = self._failure or ClosedError(CLOSED)
        for run in self._runs:
            run.results.put(reason)
        while self._orders:  # a run that is told twice reads the first
            self._orders.popleft()[0].results.put(reason)
        self._runs.clear()
        self._delayed.clear()
        transfers.close()

    def _step(self, transfers: Transfers) -> None:
        """Do one round of work. This is a separate method so that no local variable keeps a run alive during a wait."""
        self._follow_orders(transfers)
        self._balance(transfers)
        for job, outcome in transfers.wait(self._start_due(transfers)):
            self._settle(job, outcome)

    def _follow_orders(self, transfers: Transfers) -> None:
        while self._orders:
            run, jobs = self._orders.popleft()
            if jobs is None:
                self._forget(run, transfers)
                continue
            run.waiting.extend(jobs)
            if run not in self._runs:
                self._runs.append(run)

    def _forget(self, run: _Run, transfers: Transfers) -> None:
        if run in self._runs:
            self._runs.remove(run)
        transfers.cancel(lambda job: job.run is run)
        self._delayed = [entry for entry in self._delayed if entry[2].run is not run]
        heapq.heapify(self._delayed)

    def _balance(self, transfers: Transfers) -> None:
        """Limit the bytes of responses in memory: above the limit, cancel requests and send them again later."""
        self._full = True  # from here on, callers that take answers wake this thread
        transfers.room = http.MAX_BYTES_IN_FLIGHT - sum(run.held for run in self._runs)
        self._full = transfers.received > transfers.room
        if self._full:
            active: set[_Run] = set()

            def is_excess(job: _Job) -> bool:
                excess = bool(job.run.held) or job.run in active
                active.add(job.run)
                return excess

            for job in transfers.cancel(is_excess):
                job.run.waiting.appendleft(job)
                self._window.refused(started_at=job.started_at, now=self._clock())

    def _start_due(self, transfers: Transfers) -> float | None:
        """Start requests; return the seconds until more may start, or None if not known."""
        now, pace, due_at = self._clock(), self._pace, list[float]()
        while self._delayed and self._delayed[0][0] <= now:
            job = heapq.heappop(self._delayed)[2]
            job.run.waiting.appendleft(job)
        if pace.refused_s():
            self._refuse_waiting()
        while len(transfers) < self._window.limit and (run := self._next_run(transfers)) is not None:
            if self._turn_at is None:  # a turn is taken once, so that other users of the pace cannot starve this one
                self._turn_at = now + pace.turn_s()
            # the node may have asked for a pause meanwhile
            self._turn_at = max(self._turn_at, now + pace.paused_s())
            if self._turn_at > now:
                due_at.append(self._turn_at)
                break
            self._turn_at = None
            self._runs.remove(run)  # only now: a run keeps its place until it starts a request
            self._runs.append(run)
            job = run.waiting.popleft()
            job.started_at = now
            if (failure := transfers.start(job, job.request)) is not None:
                self._settle(job, failure)
        due_at += [at for at, _, _ in self._delayed[:1]]
        return max(0.0, min(due_at) - now) if due_at else None

    def _next_run(self, transfers: Transfers) -> _Run | None:
        """Return the run that started its last request longest ago, of those that may start one."""
        for run in self._runs:
            # A run may exceed the budget if it has no request in flight and no answer waiting.
            held_back = self._full and (run.held or any(job.run is run for job in transfers.tags()))
            if run.waiting and not held_back:
                return run
        return None

    def _refuse_waiting(self) -> None:
        """End the waiting requests with RateLimited, because the node asked for a long pause."""
        for run in self._runs:
            while run.waiting:
                job = run.waiting.popleft()
                run.end(job.key, not_sent(job.request.where, self._pace.refused_s()))

    def _settle(self, job: _Job, outcome: Answer | NodeUnreachable) -> None:
        """Record the outcome of a job, or schedule its retry."""
        run, now = job.run, self._clock()
        if isinstance(outcome, Answer):
            self._pace.note_answer(outcome, budget_s=run.retry.budget_s)
            if outcome.status == HTTPStatus.TOO_MANY_REQUESTS:
                self._window.refused(started_at=job.started_at, now=now)
            else:
                self._window.answered()
            if outcome.status < HTTPStatus.BAD_REQUEST:
                run.end(job.key, outcome)
                return
        job.repeat += 1
        also = None if run.also_repeat is None else partial(run.also_repeat, job.request)
        try:
            pause_s = run.retry.pause_s(
                outcome, repeat=job.repeat, waited_s=job.waited_s, chance=self._chance(), also_repeat=also
            )
        except Exception as error:  # noqa: BLE001 - `also_repeat` of the caller failed, which ends its run only
            run.results.put(error)
            return
        if pause_s is None:
            run.end(job.key, outcome)
            return
        job.waited_s += pause_s
        heapq.heappush(self._delayed, (now + pause_s, next(self._order), job))


_drivers: weakref.WeakSet[_Driver] = weakref.WeakSet()


def _leave_all_to_parent() -> None:
    for driver in list(_drivers):
        driver.leave_to_parent()
    _drivers.clear()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_leave_all_to_parent)


@atexit.register
def _stop_all() -> None:
    """End all threads before the interpreter exits, because one that is killed amid a call of libcurl may crash."""
    drivers = list(_drivers)
    for driver in drivers:
        driver.stop()
    ends_at = time.monotonic() + _MAX_EXIT_S
    for driver in drivers:
        driver.join(max(0.0, ends_at - time.monotonic()))
