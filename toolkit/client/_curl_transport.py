"""Transfers over libcurl: many requests in progress in one thread, for the bulk engine."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import selectors
import socket
import time
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pycurl  # type: ignore[import-untyped] # it ships no types

from toolkit.client import _http as http
from toolkit.client._http import Answer, Request
from toolkit.errors import HopelessError, NodeUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolkit.client._credentials import Credentials
    from toolkit.client._routes import Route, Routes

_Tag = TypeVar("_Tag")

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_EVENTS = {pycurl.POLL_IN: _READ, pycurl.POLL_OUT: _WRITE, pycurl.POLL_INOUT: _READ | _WRITE}
_ACTIONS = {
    _READ: pycurl.CSELECT_IN,
    _WRITE: pycurl.CSELECT_OUT,
    _READ | _WRITE: pycurl.CSELECT_IN | pycurl.CSELECT_OUT,
}

_PROXY_FAILED = 97  # CURLE_PROXY, for which pycurl has no constant
_MIN_ERROR_STATUS = 400  # of a proxy's answer to CONNECT
_PROXY_ERRORS = frozenset({pycurl.E_COULDNT_RESOLVE_PROXY, _PROXY_FAILED})
_CONNECT_ERRORS = frozenset({pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_CONNECT})
_MESSAGES = {
    pycurl.E_PARTIAL_FILE: http.CUT_OFF,
    pycurl.E_RECV_ERROR: http.CUT_OFF,
    pycurl.E_SEND_ERROR: http.CUT_OFF,
    pycurl.E_GOT_NOTHING: http.CUT_OFF,
    pycurl.E_UNSUPPORTED_PROTOCOL: http.NOT_HTTP,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: http.NOT_HTTP,  # despite its name, for servers of any kind
    pycurl.E_COULDNT_RESOLVE_HOST: http.NOT_THERE,
    pycurl.E_COULDNT_CONNECT: http.NOT_THERE,
    pycurl.E_BAD_CONTENT_ENCODING: http.NOT_UNPACKED,
    pycurl.E_WRITE_ERROR: http.NOT_UNPACKED,  # answers above the size limit are reported separately
    pycurl.E_SSL_CONNECT_ERROR: http.NO_TLS,
}
# Sockets handled before finished requests are returned; with more, requests come and go in bursts.
_MAX_SOCKETS_PER_WAIT = 16
# Header lines of up to this many bytes are parsed once: most of them repeat in each answer of a node.
_MAX_CACHED_LINE = 200
# Options for a file and for a folder of trusted authorities: of the node, and of an https proxy.
_TRUSTED = ((pycurl.CAINFO, pycurl.CAPATH), (pycurl.PROXY_CAINFO, pycurl.PROXY_CAPATH))
# How often requests are checked for progress, per `timeout_s`.
_CHECKS_PER_TIMEOUT = 8


class _Meter:
    """Counts the bytes of all bodies that are being received."""

    bytes = 0


class _Slot:
    """A libcurl easy handle and the request on it; reused for many requests."""

    def __init__(self, timeout_s: float, meter: _Meter) -> None:
        self.handle = handle = pycurl.Curl()
        self.lines: list[bytes] = []
        self.body = io.BytesIO()
        self.size = 0
        self.meter = meter
        self.began_at = 0.0
        self.tag: Any = None
        self.request: Request | None = None
        self.progress: tuple[int, ...] = ()
        self.progress_at = 0.0
        self.route: Route | None = None
        self._headers: Mapping[str, str] | None = None
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        handle.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, round(timeout_s * 1000)))
        handle.setopt(pycurl.ACCEPT_ENCODING, http.COMMON_HEADERS["Accept-Encoding"])
        handle.setopt(pycurl.NOPROXY, "")  # the route decides about the proxy, not the environment
        handle.setopt(pycurl.HEADERFUNCTION, self.lines.append)
        handle.setopt(pycurl.WRITEFUNCTION, self._write)

    def load(self, tag: Any, request: Request, route: Route, authorization: str | None, *, began_at: float) -> None:
        """Set up the handle for a request that started at `began_at`."""
        self.tag, self.request, self.began_at = tag, request, began_at
        self.progress, self.progress_at = (), 0.0
        handle = self.handle
        if request.headers != self._headers:
            handle.setopt(pycurl.HTTPHEADER, _header_lines(request.headers, authorization))
            self._headers = request.headers
        handle.setopt(pycurl.URL, http.ascii_url(request.url))
        if route is not self.route:
            self._follow(route)
        if request.method == "POST":
            handle.setopt(pycurl.POST, 1)
            handle.setopt(pycurl.POSTFIELDS, request.body or b"")
        else:
            handle.setopt(pycurl.HTTPGET, 1)

    def _follow(self, route: Route) -> None:
        """Set every option that decides where the handle connects to and whom it trusts."""
        setopt, proxy = self.handle.setopt, route.proxy
        setopt(pycurl.PROXY, "" if proxy is None else proxy.url)  # empty: libcurl does not look at the environment
        login = (proxy and proxy.login) or (None, None)
        for option, part in zip((pycurl.PROXYUSERNAME, pycurl.PROXYPASSWORD), login, strict=True):
            setopt(option, None if part is None else part.encode("utf-8", "surrogateescape"))
        host, port = route.opened
        setopt(pycurl.RESOLVE, [] if route.address is None else [f"{host}:{port}:{route.address}"])
        path = None if route.authorities is None else route.authorities.path
        is_folder = path is not None and os.path.isdir(path)  # noqa: PTH112 - str in, str out
        for file, folder in _TRUSTED:  # None also removes a folder that libcurl was built with
            setopt(file, None if is_folder else path)
            setopt(folder, path if is_folder else None)
        self.route = route

    def unload(self) -> tuple[int, list[bytes], bytes]:
        """Return status, header lines and body, and reset the slot for another request."""
        status = self.handle.getinfo(pycurl.RESPONSE_CODE)
        received = status, self.lines.copy(), self.body.getvalue()
        self.lines.clear()
        self.body = io.BytesIO()
        self.meter.bytes -= self.size
        self.size = 0
        self.tag = self.request = None  # a tag refers to the whole run and its caller
        return received

    def failure(self, text: str, kind: type[NodeUnreachable] = NodeUnreachable) -> NodeUnreachable:
        """Return the error that ends the request."""
        return kind(f"{self.request.where if self.request else ''}: {text}")

    def idle_s(self, now: float) -> float:
        """Return the seconds without a byte in either direction; connecting has a limit of its own."""
        connected = self.handle.getinfo(pycurl.PRETRANSFER_TIME_T) > 0
        progress = (len(self.lines), self.size, self.handle.getinfo(pycurl.SIZE_UPLOAD_T))
        if progress != self.progress or not connected:
            self.progress, self.progress_at = progress, now
        return now - self.progress_at

    def _write(self, data: bytes) -> int:
        size = len(data)
        self.size += size
        self.meter.bytes += size
        if self.size > http.MAX_ANSWER_BYTES:
            return 0  # libcurl then ends the transfer
        self.body.write(data)
        return size


class Transfers(Generic[_Tag]):
    """Requests in progress over libcurl's multi interface. Use it from one thread; only `wake` is safe for others.

    Parameters
    ----------
    credentials : Credentials
        Sent to the site of each request only.
    timeout_s : float
        Limit in seconds for connecting, and for each wait for bytes. A whole request may take ten times as long.
    keep : int
        Maximum number of idle connections.
    routes : Routes
        How each site is reached.

    Attributes
    ----------
    room : int
        Number of received bytes above which `wait` returns early, so that its caller can cancel requests. The caller
        sets it.
    """

    def __init__(self, credentials: Credentials, *, timeout_s: float, keep: int, routes: Routes) -> None:
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._routes = routes
        self.room = 2**63
        self._meter = _Meter()
        self._free: list[_Slot] = []
        self._busy: dict[pycurl.Curl, _Slot] = {}
        self._failed: list[tuple[_Tag, Answer | NodeUnreachable]] = []
        self._next_check = 0.0
        self._timer_at: float | None = None
        self._selector = selectors.DefaultSelector()
        self._ready: deque[tuple[selectors.SelectorKey, int]] = deque()
        self._watched: dict[int, int] = {}
        self._waker, self._alarm = socket.socketpair()
        self._waker.settimeout(0)
        self._alarm.settimeout(0)
        self._woken = False
        self._selector.register(self._alarm, _READ)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, keep)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    def __len__(self) -> int:
        """Return the number of requests in progress."""
        return len(self._busy)

    @property
    def received(self) -> int:
        """Bytes of the bodies that are being received."""
        return self._meter.bytes

    def tags(self) -> Iterator[_Tag]:
        """Return the tags of the requests in progress, oldest first."""
        return (slot.tag for slot in self._busy.values())

    def start(self, tag: _Tag, request: Request) -> None:
        """Start a request; `wait` returns its outcome with its tag."""
        slot = self._free.pop() if self._free else _Slot(self._timeout_s, self._meter)
        try:
            route, authorization = self._routes.to(request.url), self._credentials.authorization
            slot.load(tag, request, route, authorization, began_at=time.monotonic())
            self._multi.add_handle(slot.handle)
        except (NodeUnreachable, ValueError, TypeError, pycurl.error) as error:
            slot.handle.close()
            kind, text = (type(error), str(error)) if isinstance(error, NodeUnreachable) else (HopelessError, "")
            reason = text or http.reason_text(str(error), self._credentials)
            self._failed.append((tag, kind(f"{request.where}: {reason}")))
        else:
            self._busy[slot.handle] = slot

    def cancel(self, which: Callable[[_Tag], bool]) -> list[_Tag]:
        """Cancel the requests whose tags `which` selects, and return these tags; `wait` does not return them."""
        slots = [slot for slot in self._busy.values() if which(slot.tag)]
        tags = [slot.tag for slot in slots]
        for slot in slots:
            self._release(slot)
        self._failed = [(tag, error) for tag, error in self._failed if not which(tag)]
        return tags

    def wake(self) -> None:
        """Make the current or next `wait` return early. Any thread may call this."""
        if not self._woken:
            self._woken = True
            with contextlib.suppress(BlockingIOError):
                self._waker.send(b"\0")

    def wait(self, seconds: float | None) -> list[tuple[_Tag, Answer | NodeUnreachable]]:
        """Process the requests and return the outcomes of those that ended, if any, after at most `seconds`."""
        if not self._ready:
            self._ready.extend(self._selector.select(0 if self._failed else self._patience_s(seconds)))
        for _ in range(min(_MAX_SOCKETS_PER_WAIT, len(self._ready))):
            key, events = self._ready.popleft()
            if key.fileobj is self._alarm:
                self._alarm.recv(4096)
                self._woken = False
            elif key.fd in self._watched:  # it may have been closed since
                self._multi.socket_action(key.fd, _ACTIONS[events])
                if self._meter.bytes > self.room:
                    break
        now = time.monotonic()
        if self._timer_at is not None and now >= self._timer_at:
            self._timer_at = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        ended, self._failed = self._failed, []
        self._collect(ended)
        if self._busy and now >= self._next_check:
            self._end_overdue(now, ended)
        return ended

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

    def leave_to_parent(self) -> None:
        """Never free this object: in a forked child that would act on the parent's sockets and polls."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def _release(self, slot: _Slot) -> tuple[int, list[bytes], bytes]:
        del self._busy[slot.handle]
        self._multi.remove_handle(slot.handle)
        self._free.append(slot)
        return slot.unload()

    def _collect(self, ended: list[tuple[_Tag, Answer | NodeUnreachable]]) -> None:
        """Add the outcomes of finished transfers to `ended`."""
        left = 1
        while left:
            left, succeeded, failed = self._multi.info_read()
            for handle, code, message in failed:
                slot = self._busy[handle]
                ended.append((slot.tag, self._translated(slot, code, message)))
                self._release(slot)
            for handle in succeeded:
                slot = self._busy[handle]
                tag = slot.tag
                status, lines, body = self._release(slot)
                ended.append((tag, Answer(status, _headers(lines), body)))

    def _end_overdue(self, now: float, ended: list[tuple[_Tag, Answer | NodeUnreachable]]) -> None:
        """End the requests that have waited for bytes, or run, for too long."""
        self._next_check = now + self._timeout_s / _CHECKS_PER_TIMEOUT
        total_s = http.TOTAL_TIMEOUTS * self._timeout_s
        for slot in list(self._busy.values()):
            if slot.idle_s(now) >= self._timeout_s:
                ended.append((slot.tag, slot.failure(http.NO_ANSWER.format(self._timeout_s))))
            elif now - slot.began_at >= total_s:
                ended.append((slot.tag, slot.failure(http.NOT_COMPLETE.format(total_s), HopelessError)))
            else:
                continue
            self._release(slot)

    def _translated(self, slot: _Slot, code: int, message: str) -> NodeUnreachable:
        reason = http.reason_text(message, self._credentials)
        if slot.size > http.MAX_ANSWER_BYTES:
            return slot.failure(http.too_large(), HopelessError)
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return slot.failure(http.NO_ANSWER.format(self._timeout_s))
        if code == pycurl.E_PEER_FAILED_VERIFICATION:
            return slot.failure(http.NOT_TRUSTED.format(reason), HopelessError)
        proxied = slot.route is not None and slot.route.proxy is not None
        refused = slot.handle.getinfo(pycurl.HTTP_CONNECTCODE) >= _MIN_ERROR_STATUS
        if code in _PROXY_ERRORS or (proxied and (refused or code in _CONNECT_ERRORS)):
            return slot.failure(http.NO_PROXY)
        return slot.failure(_MESSAGES.get(code, "{}").format(reason))

    def _patience_s(self, seconds: float | None) -> float | None:
        now = time.monotonic()
        limits = [] if seconds is None else [seconds]
        if self._timer_at is not None:
            limits.append(self._timer_at - now)
        if self._busy:
            limits.append(self._next_check - now)
        return max(0.0, min(limits)) if limits else None

    def _on_timer(self, milliseconds: int) -> None:
        self._timer_at = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    def _on_socket(self, event: int, number: int, *_: object) -> None:
        if event == pycurl.POLL_REMOVE:
            if self._watched.pop(number, None) is not None:
                self._selector.unregister(number)
        elif number in self._watched:
            self._selector.modify(number, _EVENTS[event])
        else:
            self._watched[number] = event
            self._selector.register(number, _EVENTS[event])


def _header_lines(headers: Mapping[str, str], authorization: str | None) -> list[str]:
    """Return the header lines for libcurl; a line without a value removes a header that libcurl sends by default."""
    wanted = {name.lower(): (name, value) for name, value in {**http.COMMON_HEADERS, **headers}.items()}
    del wanted["accept-encoding"]  # the handle's own option, so that it also unpacks
    if authorization is not None:
        wanted["authorization"] = ("Authorization", authorization)
    lines = [f"{name}: {value}" if value else f"{name};" for name, value in wanted.values()]
    if any("\r" in line or "\n" in line or "\0" in line for line in lines):
        raise ValueError("a header has a line break")
    return lines + [f"{name}:" for name in ("Content-Type", "Expect") if name.lower() not in wanted]


def _headers(lines: list[bytes]) -> dict[str, str]:
    """Return the headers of the last answer; others may precede it (of a proxy, 1xx), and a trailer may follow."""
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
    """Return name and value of a header line, or None if it is not one."""
    name, colon, value = line.decode("latin-1").partition(":")
    return (name.lower(), value.strip()) if colon else None


_cached_pair = lru_cache(maxsize=512)(_pair)
