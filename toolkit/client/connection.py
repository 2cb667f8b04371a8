"""One node behind a transport: paths, retries and pace. Every request of the client passes here."""

from __future__ import annotations

import logging
import random
import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from toolkit import __version__
from toolkit.client import forking
from toolkit.client.batch import run_in_threads
from toolkit.client.cache import CachedAnswer, Keeper, Place
from toolkit.client.credentials import NO_CREDENTIALS, Credentials
from toolkit.client.http import CLOSED, Answer, Request
from toolkit.client.node_errors import advertised_archive, masked_refusal, not_sent, refusal
from toolkit.client.retry import Outages, Pace, RetryPolicy, node_pause_s, retry_after_s
from toolkit.errors import (
    ClosedError,
    HopelessError,
    InputError,
    LedgerChanged,
    NodeError,
    NodeUnreachable,
    OfflineMiss,
    RateLimited,
    SchemaError,
    ToolkitError,
)
from toolkit.wire import decode_error_body, decode_node_info

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from toolkit.client.calls import PreparedCall
    from toolkit.client.engine import BulkEngine
    from toolkit.client.http import Transport
    from toolkit.wire import LedgerState

__all__ = ["Connection", "bcs_body", "json_body", "path", "pinned"]

_log = logging.getLogger("toolkit.client")
T = TypeVar("T")
_Error = TypeVar("_Error", bound=ToolkitError)
_Tag = tuple[int, Any, Place | None]
"""Position of a call, the call, and the place of its answer in the cache."""
_Job = tuple[_Tag, Request | Answer | ToolkitError]

_CHUNK = 256
"""Calls whose kept answers are looked up together; what bounds the memory of a long sweep."""
_MISSED = "{}: offline, and the cache does not hold the answer; connect without offline=True"
_TEXT_BYTES = 4096
"""As much of an error's body as is looked at before it is sent again."""


def path(*parts: str | int) -> str:
    """Join path segments, each percent-encoded whole, so that no value can change the path."""
    texts = [str(part) for part in parts]
    for text in texts:
        if text in {".", "..", ""}:
            raise InputError(f"{text!r} cannot be a name here: it would lead to another path")
    return "/" + "/".join(quote(text, safe="") for text in texts)


class _ThisThread(threading.local):
    """What each thread that uses a connection has for itself."""

    use_kept = True
    repeats = True
    sent = 0


def pinned(request: Request, version: int | None) -> Request:
    """Return a request that reads at a ledger version; the same one for None, the head. It must have no query yet."""
    if version is None:
        return request
    return Request(request.method, f"{request.url}?ledger_version={version}", request.body, request.headers)


class Connection:
    """Sends requests to one node, repeats what may be repeated, and raises what the node refuses.

    Parameters
    ----------
    url : str
        Base URL that ends in ``/v1``.
    transport : Transport
        For single requests.
    engine : BulkEngine, optional
        For many at once; without one they go over the transport, in threads.
    keeper : Keeper, optional
        Answers to pinned reads that are kept.
    retry : RetryPolicy, optional
    pace : Pace, optional
        Turns to wait for before each request; what is kept costs none. The engine has to share it.
    max_in_flight : int, default 64
        Most requests at once.
    archive : callable (url) -> Transport, optional
        A road to an archive that a pruned answer advertises; without one archives are named, not followed.
    credentials : Credentials
        What the node is sent: no error shows it, and no stored error answer holds it.
    sleep : callable, optional
        Replaced in tests; by default a wait that `close` ends.
    """

    def __init__(
        self,
        url: str,
        transport: Transport,
        *,
        engine: BulkEngine | None = None,
        keeper: Keeper | None = None,
        retry: RetryPolicy | None = None,
        pace: Pace | None = None,
        max_in_flight: int = 64,
        archive: Callable[[str], Transport] | None = None,
        credentials: Credentials = NO_CREDENTIALS,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.url = url
        self._transport = transport
        self._engine = engine
        self._keeper = keeper or Keeper(url, None)
        self._retry = retry or RetryPolicy()
        self._max_in_flight = max_in_flight
        self._pace = pace or Pace(None)
        self._closing = threading.Event()
        self._sleep = sleep or self._wait
        self._newest: LedgerState | None = None
        self._chain_id: int | None = None
        self._here = _ThisThread()
        self._archive = archive
        self._credentials = credentials
        self._archives: dict[str, Transport] = {}
        self._archive_outages: Outages[str] = Outages()
        forking.register(self)

    def renew_after_fork(self) -> None:
        """Replace the event of closing, whose lock another thread may have held."""
        closed = self._closing.is_set()
        self._closing = threading.Event()
        if closed:
            self._closing.set()

    def request(
        self,
        method: str,
        where: str,
        *,
        body: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        content: str = "application/json",
        accept: str = "application/json",
    ) -> Request:
        """Return a request to a path below the base URL; query entries that are None are left out."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {"Accept": accept, "x-aptos-client": f"ledger-toolkit/{__version__}"}
        if body is not None:
            headers["Content-Type"] = content
        return Request(method, f"{self.url}{where}?{urlencode(given)}" if given else self.url + where, body, headers)

    @property
    def keeper(self) -> Keeper:
        """The answers that are kept."""
        return self._keeper

    def perform(self, prepared: PreparedCall[T]) -> T:
        """Return the result of a call: of the kept answer, or sent until one is there or the policy gives up.

        Raises
        ------
        NodeError
            Of the class the status means.
        NodeUnreachable
            If no answer came; `OfflineMiss` where none was asked for.
        SchemaError
            If the answer is not of the call's type; such an answer is not kept.
        """
        self.check_open()
        place = self._place(prepared)
        answer = None if place is None else self._keeper.find([place]).get(place.key)
        if answer is None:
            answer = self._archived(prepared.request, self._exchanged(prepared.request, prepared.asked))
        return self._finished(prepared, place, answer)

    def perform_many(
        self, calls: Iterable[PreparedCall[T] | ToolkitError]
    ) -> Generator[tuple[int, T | ToolkitError], None, None]:
        """Send many prepared calls at once and yield (position, result or error) as they come.

        Parameters
        ----------
        calls : iterable of PreparedCall, or error
            Pulled as answers are taken, so it may be long. An error stands for a call that could not be prepared; it
            is passed on.

        Yields
        ------
        tuple of (int, result or error)
            One per call.
        """
        self.check_open()
        with closing(self._sent(self._jobs(calls))) as outcomes:
            for (number, call, place), outcome in outcomes:
                result = self._result(call, place, outcome)
                del outcome  # a large answer must not wait here for the next one
                yield number, result

    def _jobs(self, calls: Iterable[PreparedCall[T] | ToolkitError]) -> Iterator[_Job]:
        """Yield each call with its request, or with what is known of its outcome without one."""
        numbered = enumerate(calls)
        while chunk := list(islice(numbered, _CHUNK if self._keeper.cache else 1)):
            places = [None if isinstance(call, ToolkitError) else self._place(call) for _, call in chunk]
            stored = self._keeper.find(places)
            for (number, call), place in zip(chunk, places, strict=True):
                job = (number, call, place)
                if isinstance(call, ToolkitError):
                    yield job, call
                elif place is not None and place.key in stored:
                    yield job, stored[place.key]
                else:
                    yield job, OfflineMiss(_MISSED.format(call.asked)) if self._keeper.offline else call.request

    def _result(self, call: Any, place: Place | None, outcome: Answer | ToolkitError) -> Any:
        """Return the result of a call, or the error it ended with: one answer does not end the others."""
        if isinstance(outcome, ToolkitError):
            return outcome
        try:
            if not isinstance(outcome, CachedAnswer):
                self._note_ledger(outcome.parsed.ledger)
                outcome = self._archived(call.request, outcome)
            return self._finished(call, place, outcome)
        except (NodeError, NodeUnreachable, SchemaError) as error:
            return _without_frames(error)

    def _finished(self, call: PreparedCall[T], place: Place | None, answer: Answer) -> T:
        """Return the result of an answer, or raise what it refuses; only what could be read as a result is stored."""
        if not isinstance(answer, CachedAnswer):
            self.expect_chain(answer.parsed.chain_id, call.asked)
        if not _is_good(answer):
            self._keeper.store(place, answer if place is None else masked_refusal(answer, self._credentials))
            raise refusal(call.asked, answer, self._credentials)
        try:
            result = call.finish(answer)
        except SchemaError as error:
            self._credentials.mask_error(error)  # it quotes the answer
            raise
        self._keeper.store(place, answer)
        return result

    def mask(self, text: str) -> str:
        """Return a text that quotes an answer without what it shows of credentials."""
        return self._credentials.mask(text)

    def expect_chain(self, chain_id: int | None, asked: str) -> None:
        """Compare a chain id with the first one known of this node; None is not compared.

        Raises
        ------
        LedgerChanged
            If it is another one.
        """
        if chain_id is None or chain_id == self._chain_id:
            return
        if self._chain_id is not None:
            raise LedgerChanged(
                f"{asked}: expected an answer of chain id {self._chain_id}, as before, got one of chain id {chain_id}; "
                f"{self.url} serves another ledger now. Connect again to read that one, and do not mix the two"
            )
        self._chain_id = chain_id

    def close(self) -> None:
        """Release sockets and the cache; calls in progress raise ClosedError."""
        self._closing.set()
        self._transport.close()
        if self._engine is not None:
            self._engine.close()
        for transport in self._archives.values():
            transport.close()
        self._keeper.close()

    @property
    def newest(self) -> LedgerState | None:
        """The ledger state with the highest head of all answers of the node so far; None before the first one."""
        return self._newest

    def head(self) -> int:
        """Return the highest head seen so far; the node is asked for it if there was no answer yet."""
        if self._newest is None:
            info = decode_node_info(self._description().body)
            self._note_ledger(info.ledger)
            return info.ledger.version
        return self._newest.version

    @property
    def closing(self) -> bool:
        """Whether the connection is closed or being closed."""
        return self._closing.is_set()

    def check_open(self) -> None:
        """Raise ClosedError if the connection was closed."""
        if self.closing:
            raise ClosedError(CLOSED)

    @property
    def sent(self) -> int:
        """Requests that this thread has sent one by one so far, repeats included."""
        return self._here.sent

    @contextmanager
    def fresh(self, *, repeats: bool = True) -> Iterator[None]:
        """Ask the node for everything while the block runs: the cache does not know what the node holds now.

        Holds for the thread that runs the block; others go on using the cache.

        Parameters
        ----------
        repeats : bool, default True
            False sends each request once, whatever comes back.
        """
        self._here.use_kept, self._here.repeats = False, repeats
        try:
            yield
        finally:
            self._here.use_kept = self._here.repeats = True

    def _place(self, call: PreparedCall[Any]) -> Place | None:
        if not self._here.use_kept:
            return None
        return self._keeper.place(call.request, call.pinned, gas=call.gas, describe=self._description)

    def _description(self) -> Answer:
        """Read what the node says of itself; the keeper notes it."""
        request, asked = self.request("GET", ""), "node info"
        answer = self._exchanged(request, asked)
        if not isinstance(answer, CachedAnswer):
            self.expect_chain(answer.parsed.chain_id, asked)
        if not _is_good(answer):
            raise refusal(asked, answer, self._credentials)
        try:
            decode_node_info(answer.body)
        except SchemaError as error:
            self._credentials.mask_error(error)  # it quotes the answer
            raise
        return answer

    def _exchanged(self, request: Request, asked: str) -> Answer:
        """Ask the node, unless the session is offline; what it says of itself is remembered for such sessions."""
        if self._keeper.offline:
            if self._keeper.is_description(request):
                return self._keeper.description()
            raise OfflineMiss(_MISSED.format(asked))
        answer = self._repeated(request, asked)
        if self._keeper.is_description(request) and _is_good(answer):
            self._keeper.note_description(answer)
        return answer

    def _archived(self, request: Request, answer: Answer) -> Answer:
        """Return the archive's answer to a request that is pruned here, if archives are to be followed.

        Raises
        ------
        NodeUnreachable
            If the archive gives no answer; it is then not asked again for a while.
        """
        if self._archive is None or answer.status != HTTPStatus.GONE:
            return answer
        url = advertised_archive(answer, self._credentials)
        if url is None:
            return answer
        if url not in self._archives:
            _log.warning("following the archive %s", url)
            self._archives[url] = self._archive(url)
        there = replace(request, url=url + request.url.removeprefix(self.url))
        failure: ToolkitError | None = self._archive_outages.resting(url)
        if failure is None:
            try:
                with self._archive_outages.noted(url):
                    found = self._archives[url].send(there)
            except NodeUnreachable as error:
                failure = error
            else:
                return found if _is_good(found) else answer
        text = f"the version is pruned here, and the archive {url} gives no answer: {failure}"
        raise NodeUnreachable(text) from failure

    def _repeated(self, request: Request, asked: str) -> Answer:
        """Send until an answer is there that is not to be repeated; an error status may be one."""
        repeat, waited = 0, 0.0
        while True:
            self._wait_for_turn(asked)
            outcome = self._attempt(request)
            if isinstance(outcome, Answer) and _is_good(outcome):
                return outcome
            repeat += 1
            again = self._here.repeats and self._may_repeat(request, outcome, repeat)
            asked_s = retry_after_s(outcome.headers) if isinstance(outcome, Answer) else None
            pause = self._retry.wait_s(repeat=repeat, chance=random.random(), asked_s=asked_s)  # noqa: S311 - jitter  # nosec B311
            if not again or waited + pause > self._retry.budget_s:
                if isinstance(outcome, Answer):
                    return outcome
                raise outcome
            _log.info("%s: attempt %d failed; again in %.2f s", asked, repeat, pause)
            waited += pause
            self._sleep_for(pause)

    def _wait_for_turn(self, asked: str) -> None:
        """Wait until a request may be sent.

        Raises
        ------
        RateLimited
            If the node asked for a longer wait than calls have patience for.
        """
        self._sleep_for(self._pace.turn_s())
        self._sleep_for(self._pace.paused_s())  # a pause that the node asked for meanwhile
        refused_s = self._pace.refused_s()
        if refused_s:
            raise not_sent(asked, refused_s)

    def _attempt(self, request: Request) -> Answer | NodeUnreachable:
        """Send once; an error is returned rather than raised, since it may be repeated."""
        self._here.sent += 1
        try:
            answer = self._transport.send(request)
        except NodeUnreachable as unreachable:
            return unreachable
        self._note_ledger(answer.parsed.ledger)
        node_s = node_pause_s(answer.status, answer.headers)
        if node_s is None:
            self._pace.answered()
        else:
            self._pace.hold(node_s, budget_s=self._retry.budget_s)
        return answer

    def _may_repeat(self, request: Request, outcome: Answer | NodeUnreachable, repeat: int) -> bool:
        if isinstance(outcome, NodeUnreachable):
            return not isinstance(outcome, HopelessError) and self._retry.may_repeat(None, repeat=repeat)
        text = outcome.body[:_TEXT_BYTES].decode("utf-8", "replace")
        lags = repeat < self._retry.attempts and self._lags(request, outcome)
        return lags or self._retry.may_repeat(outcome.status, repeat=repeat, text=text)

    def _lags(self, request: Request, answer: Answer) -> bool:
        """Tell whether a 404 comes from a backend behind the head that this host has shown before."""
        if answer.status != HTTPStatus.NOT_FOUND:
            return False
        ledger, newest = answer.parsed.ledger, self._newest
        if ledger is None or newest is None or decode_error_body(answer.body).error_code != "version_not_found":
            return False
        return ledger.version < newest.version and _version_asked(request.url) <= newest.version

    def _note_ledger(self, ledger: LedgerState | None) -> None:
        if ledger is not None and (self._newest is None or ledger.version >= self._newest.version):
            self._newest = ledger

    def _sent(self, jobs: Iterator[_Job]) -> Generator[tuple[_Tag, Answer | ToolkitError], None, None]:
        """Send requests at once, over the engine where there is one, else over the transport in threads."""
        if self._engine is not None:
            yield from self._engine.run(jobs, retry=self._retry, also_repeat=self._lags)
        else:
            yield from (found for _, found in run_in_threads(jobs, self._outcome, in_flight=self._max_in_flight))

    def _outcome(self, job: _Job) -> tuple[_Tag, Answer | ToolkitError]:
        tag, request = job
        if not isinstance(request, Request):
            return tag, request
        try:
            return tag, self._repeated(request, tag[1].asked)
        except (NodeUnreachable, RateLimited) as error:
            return tag, _without_frames(error)

    def _wait(self, seconds: float) -> None:
        self._closing.wait(seconds)

    def _sleep_for(self, seconds: float) -> None:
        if seconds > 0:
            self._sleep(seconds)


def _without_frames(error: _Error) -> _Error:
    """Return an error without tracebacks, also of the errors behind it: their frames hold whole answers."""
    behind: BaseException | None = error
    while behind is not None:
        behind.__traceback__ = None
        behind = behind.__cause__ or behind.__context__
    return error


def _is_good(answer: Answer) -> bool:
    return HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES


def _version_asked(url: str) -> int:
    """Return the ledger version in a URL's query; one that is missing or unreadable counts as beyond every head."""
    _, _, tail = url.partition("ledger_version=")
    digits = tail.partition("&")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else 2**64


def json_body(value: Any) -> bytes:
    """Return a JSON body; text that has no UTF-8 form is the caller's mistake."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise InputError(f"text {error.object[:40]!r} has no UTF-8 form, so it cannot be sent") from None


def bcs_body(answer: Answer, what: str) -> bytes:
    """Return the BCS of an answer; one that says it is something else raises SchemaError with its beginning."""
    kind = next((value for name, value in answer.headers.items() if name.lower() == "content-type"), "")
    if kind.partition(";")[0].strip().lower() not in {"", "application/x-bcs", "application/octet-stream"}:
        raise SchemaError(f"{what}: the answer is not BCS but {kind[:60]!r}; it starts {answer.body[:60]!r}")
    return answer.body
