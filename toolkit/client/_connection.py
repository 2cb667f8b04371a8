"""The connection to one node, which sends all requests of the client and handles caching, retries and rate limits."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlencode

import msgspec

from toolkit import __version__, errors
from toolkit.client import _http as http
from toolkit.client._cache import CachedAnswer, NodeCache
from toolkit.client._node_errors import extended, misread, refusal
from toolkit.client._threads import MAX_WAIT_S, run_in_threads
from toolkit.wire._headers import ledger_headers
from toolkit.wire._responses import ErrorCode, decode_node_info, encode_node_info

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from toolkit.client._engine import BulkEngine
    from toolkit.client._http import Transport
    from toolkit.wire import LedgerState, NodeInfo

_log = logging.getLogger("toolkit.client")
T = TypeVar("T")
_Error = TypeVar("_Error", bound=errors.ToolkitError)
# Position of a call, the call, and the key of its answer in the cache.
_Tag = tuple[int, Any, bytes | None]
_Job = tuple[_Tag, http.Request | http.Answer | errors.ToolkitError]

_NOT_OFFERED = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
# Requests whose answer, or refusal, has the ledger state in its headers.
_HEADER_PROBES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/view", {"function": "0x1::chain_id::get", "type_arguments": [], "arguments": []}),
    ("/tables/0x1/item", {"key_type": "u8", "value_type": "u8", "key": 0}),
)
_CLOCK = http.json_body({"function": "0x1::timestamp::now_microseconds", "type_arguments": [], "arguments": []})
# Requests whose answer at a version identifies a ledger: method, path and body.
_FINGERPRINTS: tuple[tuple[str, str, bytes | None], ...] = (
    ("GET", "/transactions/by_version/{}", None),
    ("POST", "/view", _CLOCK),
)
# Number of calls that are looked up in the cache together; it bounds the memory of long fetches.
_LOOKUP_SIZE = 256
_NOT_DESCRIBED = (
    "neither GET /v1 nor the headers of POST operations describe the node's ledger. Expected headers: X-*-CHAIN-ID, "
    "X-*-LEDGER-VERSION, X-*-LEDGER-OLDEST-VERSION, X-*-LEDGER-TIMESTAMPUSEC, X-*-EPOCH, X-*-BLOCK-HEIGHT and "
    "X-*-OLDEST-BLOCK-HEIGHT"
)
_MISSED = "{}: this node is offline and the response is not in the cache; connect without offline=True"


class _ThisThread(threading.local):
    """The settings of a connection for each thread, and the number of its single requests, without repeats."""

    use_cache = True
    repeats = True
    sent = 0


class Connection:
    """Sends calls to one node: looks them up in the cache, retries failed requests, and raises the node's errors.

    Parameters
    ----------
    url : str
        Base URL, which ends in ``/v1``.
    transport : Transport
        Sends the requests. A `BulkEngine` repeats failed ones and sends many at once; with any other transport, the
        connection does so itself, in threads.
    cache : NodeCache, optional
        Cache of responses to pinned reads.
    retry : RetryPolicy, optional
    pace : Pace, optional
        Rate limit and pauses of all requests; a `BulkEngine` must share it. Cached responses do not count.
    max_in_flight : int, default 64
        Maximum number of requests at once.
    archive : callable (url) -> Transport, optional
        Opens a transport to the archive node that the response to a pruned read advertises. Without it, the error only
        names the archive node.
    credentials : Credentials
        Sent to the node; masked in errors and in stored error responses.
    sleep : callable, optional
        Waits for a number of seconds; replaced in tests. By default, `close` ends the wait.
    clock : callable, optional
        Returns the monotonic time in seconds; replaced in tests.
    """

    def __init__(
        self,
        url: str,
        transport: Transport | BulkEngine,
        *,
        cache: NodeCache | None = None,
        retry: http.RetryPolicy | None = None,
        pace: http.Pace | None = None,
        max_in_flight: int = 64,
        archive: Callable[[str], Transport | BulkEngine] | None = None,
        credentials: http.Credentials = http.NO_CREDENTIALS,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url, self._transport = url, transport
        # The only transport with `run`; an import of its class would need pycurl.
        self._engine = cast("BulkEngine", transport) if hasattr(transport, "run") else None
        self.credentials, self._archive, self._max_in_flight = credentials, archive, max_in_flight
        self.cache = cache or NodeCache(url, None)
        self._retry, self._pace = retry or http.RetryPolicy(), pace or http.Pace(None)
        self.closing = threading.Event()
        self._sleep = sleep or self._rest
        self._pid = os.getpid()
        # The ledger state with the highest head of all answers of the node so far.
        self.newest: LedgerState | None = None
        self._chain_id: int | None = None
        self.here = _ThisThread()
        self._archives: dict[str, Transport | BulkEngine] = {}
        self._archive_outages: http.Outages[str] = http.Outages(clock)

    def request(
        self,
        method: str,
        where: str,
        *,
        body: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        content: str = "application/json",
        accept: str = "application/json",
    ) -> http.Request:
        """Return a request to a path below the base URL; query parameters that are None are omitted."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        where = f"{where}?{urlencode(given)}" if given else where
        headers = {"Accept": accept, "x-aptos-client": f"ledger-toolkit/{__version__}"}
        if body is not None:
            headers["Content-Type"] = content
        return http.Request(method, self.url + where, body, headers, given.get("ledger_version"))

    def perform(self, prepared: http.PreparedCall[T]) -> T:
        """Return the result of a call, from the cache or from the node.

        Raises
        ------
        NodeError
            If the node rejects the call; the subclass depends on the status.
        NodeUnreachable
            If the node does not respond; `OfflineMiss` if nothing is sent because of ``offline=True``.
        SchemaError
            If the response does not fit the call's type; such a response is not cached.
        LedgerChanged
            If the response comes from another chain than earlier responses.
        ClosedError
            If the connection is closed.
        """
        self.check_open()
        [((_, _, key), wanted)] = self._jobs([prepared])
        if isinstance(wanted, errors.ToolkitError):
            raise wanted
        answer = self._send(wanted, prepared.asked) if isinstance(wanted, http.Request) else wanted
        return self._finished(prepared, key, answer)

    def describe(self) -> NodeInfo:
        """Return the description of the node, which is stored for offline sessions.

        It comes from ``GET /v1`` or, if the node does not offer that, from the headers of a POST operation; the node
        role is then empty, and the build missing.
        """
        self.check_open()
        asked = http.PreparedCall(self.request("GET", ""), "node info", lambda answer: decode_node_info(answer.body))
        if self.cache.offline:
            return asked.finish(self.cache.description())
        answer = self._send(asked.request, asked.asked)
        if answer.status in _NOT_OFFERED and (found := self._described_by_headers()) is not None:
            answer = found
        try:
            info = self._finished(asked, None, answer)
        except errors.NodeError as error:
            raise (extended(error, _NOT_DESCRIBED) if answer.status in _NOT_OFFERED else error) from None
        self._note_ledger(info.ledger)
        self.cache.note_description(answer)
        return info

    def fingerprint(self, version: int) -> str | None:
        """Return a text that another ledger does not have at a version: the hash of the transaction.

        If the node does not offer transactions, it is the time of the ledger, which a view reads.

        Returns
        -------
        str or None
            None if the node does not have the version, or offers neither.
        """
        asked = f"fingerprint of version {version:,}"
        for method, where, body in _FINGERPRINTS:
            query = None if body is None else {"ledger_version": version}
            request = self.request(method, where.format(version), body=body, query=query)
            answer = self._send(request, asked)
            self.expect_chain(answer.parsed.chain_id, asked)
            if answer.is_good:
                return _fingerprint(answer.body)
            if answer.status not in _NOT_OFFERED:
                error = refusal(asked, answer, self.credentials, self.url)
                if http.is_outage(error):
                    raise error
        return None

    def perform_many(self, calls: Iterable[http.Sendable[T]]) -> http.Outcomes[T]:
        """Send many calls at once and yield (position, result or error) in the order of completion.

        Parameters
        ----------
        calls : iterable of PreparedCall, or error
            Consumed lazily, as results are taken. An error, for a call that could not be prepared, is yielded
            unchanged.

        Yields
        ------
        tuple of (int, result or error)
            One per call.
        """
        self.check_open()
        jobs: Iterator[_Job] = self._jobs(calls)
        sent: Generator[tuple[_Tag, http.Answer | errors.ToolkitError], None, None]
        if self._engine is not None:
            sent = self._engine.run(jobs, retry=self._retry, also_repeat=self._lags)
        else:
            sent = (found for _, found in run_in_threads(jobs, self._outcome, in_flight=self._max_in_flight))
        with closing(sent) as outcomes:
            for (number, call, key), outcome in outcomes:
                result = self._result(call, key, outcome)
                del outcome  # do not hold a large answer while waiting for the next one
                yield number, result

    def _jobs(self, calls: Iterable[http.Sendable[T]]) -> Iterator[_Job]:
        """Yield each call with its request, or with its outcome if that is known without a request."""
        numbered = enumerate(calls)
        while chunk := list(islice(numbered, _LOOKUP_SIZE if self.cache.answers else 1)):
            keys = [None if isinstance(call, errors.ToolkitError) else self._key(call) for _, call in chunk]
            stored = self.cache.find(keys)
            for (number, call), key in zip(chunk, keys, strict=True):
                wanted: http.Request | http.Answer | errors.ToolkitError
                if isinstance(call, errors.ToolkitError):
                    wanted = call
                elif key is not None and key in stored:
                    wanted = stored[key]
                else:
                    wanted = errors.OfflineMiss(_MISSED.format(call.asked)) if self.cache.offline else call.request
                yield (number, call, key), wanted

    def _result(self, call: Any, key: bytes | None, outcome: http.Answer | errors.ToolkitError) -> Any:
        """Return the result of a call or its error, so that one failed call does not end the others."""
        if isinstance(outcome, errors.ToolkitError):
            return outcome
        if not isinstance(outcome, CachedAnswer):
            self._note_ledger(outcome.parsed.ledger)
        try:
            return self._finished(call, key, outcome)
        except (errors.NodeError, errors.NodeUnreachable, errors.SchemaError) as error:
            return _without_frames(error)

    def _finished(self, call: http.PreparedCall[T], key: bytes | None, answer: http.Answer) -> T:
        """Return the result of a response, or raise its error; a response that cannot be decoded is not cached."""
        if not isinstance(answer, CachedAnswer):
            self.expect_chain(answer.parsed.chain_id, call.asked)
        if not answer.is_good:
            error = refusal(call.asked, answer, self.credentials, self.url)
            archived = self._archived(call, error)
            if archived is None:
                masked = {name: getattr(error, name) for name in ("message", "error_code", "vm_error_code")}
                self.cache.store(key, replace(answer, body=http.json_body(masked)), version=call.pinned)
                raise error
            answer = archived
        try:
            result = call.finish(answer)
        except errors.SchemaError as misfit:
            raise misread(call.asked, answer, misfit, self.credentials, self.url) from None
        self.cache.store(key, answer, version=call.pinned)
        return result

    def expect_chain(self, chain_id: int | None, asked: str) -> None:
        """Check a chain id against the first one received from this node; None is ignored.

        Raises
        ------
        LedgerChanged
            If the two differ.
        """
        if chain_id is None or chain_id == self._chain_id:
            return
        if self._chain_id is not None:
            raise errors.LedgerChanged(
                f"{asked}: expected chain id {self._chain_id}, as in earlier responses, got {chain_id}; {self.url} now "
                "serves another ledger. Connect again to read it, and keep the results of the two ledgers apart"
            )
        self._chain_id = chain_id

    def close(self) -> None:
        """Release the sockets and the cache; calls in progress raise ClosedError."""
        if self._pid != os.getpid():  # the sockets belong to the parent process
            return
        self.closing.set()
        self._transport.close()
        for transport in self._archives.values():
            transport.close()
        if self.cache.answers is not None:
            self.cache.answers.close()

    def check_open(self) -> None:
        """Raise ClosedError if the connection is closed, or was opened before this process was forked."""
        if self.closing.is_set():
            raise errors.ClosedError(http.CLOSED)
        if self._pid != os.getpid():
            raise errors.ClosedError(
                "this node was opened before the process forked; call connect() again in the child"
            )

    @contextmanager
    def fresh(self, *, repeats: bool = True) -> Iterator[None]:
        """Bypass the cache while the block runs, to see the node's current data.

        Applies to the thread that runs the block; other threads use the cache.

        Parameters
        ----------
        repeats : bool, default True
            Whether failed requests are retried.
        """
        here = self.here
        before = here.use_cache, here.repeats
        here.use_cache, here.repeats = False, repeats
        try:
            yield
        finally:
            here.use_cache, here.repeats = before

    def _key(self, call: http.PreparedCall[Any]) -> bytes | None:
        return self.cache.key_of(call, self.describe, self.fingerprint) if self.here.use_cache else None

    def _described_by_headers(self) -> http.Answer | None:
        """Rebuild the response to ``GET /v1`` from the headers of a POST operation; None if a header is missing."""
        for where, body in _HEADER_PROBES:
            answer = self._send(self.request("POST", where, body=http.json_body(body)), "ledger headers")
            if (ledger := answer.parsed.ledger) is not None:
                content = {"Content-Type": "application/json"} | ledger_headers(ledger)
                return http.Answer(HTTPStatus.OK, content, encode_node_info(ledger))
        return None

    def _archived(self, call: http.PreparedCall[Any], error: errors.NodeError) -> http.Answer | None:
        """Return the response of the archive node that an error names, or None if it cannot provide the version.

        Raises
        ------
        NodeUnreachable
            If the archive node does not respond. No request is then sent to it for some time.
        """
        url = error.archive
        if self._archive is None or url is None:
            return None
        if url not in self._archives:
            _log.warning("reading pruned versions from the archive node %s", url)
            self._archives[url] = self._archive(url)
        failure: errors.ToolkitError | None = self._archive_outages.resting(url)
        if failure is None:
            there = replace(call.request, url=url + call.request.url.removeprefix(self.url))
            try:
                with self._archive_outages.noted(url):
                    found = self._archives[url].send(there)
            except errors.NodeUnreachable as unreachable:
                failure = unreachable
            else:
                self.expect_chain(found.parsed.chain_id, call.asked)
                return found if found.is_good else None
        raise errors.NodeUnreachable(
            f"the node has pruned this version, and its archive {url} does not respond: {failure}"
        )

    def _send(self, request: http.Request, asked: str) -> http.Answer:
        """Send a request at its turn, with retries; return the last response, which may have an error status.

        Raises
        ------
        RateLimited
            If the node asked for a pause longer than the budget.
        NodeUnreachable
            If the node does not respond.
        """
        self.here.sent += 1
        pace, repeat, waited_s = self._pace, 0, 0.0
        while True:
            for turn_s in (pace.turn_s, pace.paused_s):  # the node may have asked for a pause meanwhile
                if (wait_s := turn_s()) > 0:
                    self._sleep(wait_s)
            if refused_s := pace.refused_s():
                raise http.not_sent(asked, refused_s)
            outcome: http.Answer | errors.NodeUnreachable
            try:
                outcome = self._transport.send(request)
                self._note_ledger(outcome.parsed.ledger)
                pace.note_answer(outcome, budget_s=self._retry.budget_s)
                if outcome.is_good or not self.here.repeats:
                    return outcome
            except errors.NodeUnreachable as unreachable:
                if not self.here.repeats:
                    raise
                outcome = unreachable
            repeat += 1
            chance, lags = random.random(), partial(self._lags, request)  # noqa: S311 - jitter
            pause_s = self._retry.pause_s(outcome, repeat=repeat, waited_s=waited_s, chance=chance, also_repeat=lags)
            if pause_s is None:
                if isinstance(outcome, http.Answer):
                    return outcome
                raise outcome
            _log.info("%s: attempt %d failed; next attempt in %.2f s", asked, repeat, pause_s)
            waited_s += pause_s
            self._sleep(pause_s)

    def _rest(self, seconds: float) -> None:
        """Wait for some seconds, or until the connection is closed."""
        ends_at = time.monotonic() + seconds
        while (left_s := ends_at - time.monotonic()) > 0 and not self.closing.wait(min(left_s, MAX_WAIT_S)):
            pass

    def _lags(self, request: http.Request, answer: http.Answer) -> bool:
        """Return whether a response is a 404 from a backend that lags behind the highest head seen on this host."""
        ledger, newest, asked = answer.parsed.ledger, self.newest, request.ledger_version
        if ledger is None or newest is None or asked is None or answer.status != HTTPStatus.NOT_FOUND:
            return False
        behind = ledger.version < newest.version and asked <= newest.version
        return behind and answer.error.error_code == ErrorCode.VERSION_NOT_FOUND

    def _note_ledger(self, ledger: LedgerState | None) -> None:
        if ledger is not None and (self.newest is None or ledger.version >= self.newest.version):
            self.newest = ledger

    def _outcome(self, job: _Job) -> tuple[_Tag, http.Answer | errors.ToolkitError]:
        tag, request = job
        if not isinstance(request, http.Request):
            return tag, request
        try:
            return tag, self._send(request, tag[1].asked)
        except (errors.NodeUnreachable, errors.RateLimited) as error:
            return tag, _without_frames(error)


class _Hashed(msgspec.Struct):
    hash: str


def _fingerprint(body: bytes) -> str | None:
    """Return the hash of a transaction, or the text of a view's answer; None if the body is neither."""
    try:
        found = msgspec.json.decode(body, type=_Hashed | list[str])
    except (msgspec.DecodeError, UnicodeError):
        return None
    return found.hash if isinstance(found, _Hashed) else ",".join(found)


def _without_frames(error: _Error) -> _Error:
    """Return an error without its traceback and its causes' tracebacks: their frames hold whole responses."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
    return error
