"""The bulk engine: many requests at once, driven by one thread; pace, retries and back-pressure. Knows no node."""

from __future__ import annotations

import heapq
import logging
import queue
import random
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from toolkit.client.credentials import Credentials
from toolkit.client.curl_transport import Transfers
from toolkit.client.pace import Pace
from toolkit.client.retry import RetryPolicy, retry_after_s
from toolkit.client.transport import CLOSED, Answer, Request
from toolkit.errors import ClosedError, HopelessError, InputError, NodeUnreachable, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["BulkEngine", "Window"]

_Key = TypeVar("_Key")

_log = logging.getLogger("toolkit.client")
_BATCH = 8
"""Most jobs pulled and handed over at a time."""
_AHEAD = 3
"""Most jobs pulled and not yet answered, in multiples of the most in flight."""
_TEXT_BYTES = 4096
"""As much of an error's body as is looked at before it is sent again."""


class BulkEngine:
    """Sends many requests at once over libcurl, from a thread of its own; works under a running event loop.

    The thread starts with the first run and ends with `close` (or with the engine itself). Several runs may
    be going on, from several threads; together they keep to the limits.

    Parameters
    ----------
    api_key : str or None
        Sent as ``Authorization: Bearer``, to the site of each request only.
    login : str, optional
        ``user:password`` as a URL has them; sent to that site where there is no API key.
    timeout_s : float
        Limit in seconds for connecting, and for each wait for bytes.
    max_in_flight : int
        Most requests at once. A 429 halves the number in force, answers let it grow again.
    pace : Pace, optional
        Turns to wait for before each request, repeats included; shared with others who ask the same node.
    chance : callable, optional
        Random number in [0, 1) for the jitter of waits; replaced in tests.
    clock : callable, optional
        Seconds that only grow; replaced in tests.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        login: str | None = None,
        timeout_s: float = 30.0,
        max_in_flight: int = 64,
        pace: Pace | None = None,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_in_flight < 1:
            raise InputError(f"max_in_flight is 1 or more, got {max_in_flight}")
        self._ahead = _AHEAD * max_in_flight
        self._batch = min(_BATCH, max_in_flight)
        settings = {"credentials": Credentials(api_key, login), "timeout_s": timeout_s, "keep": max_in_flight}
        self._driver = _Driver(settings, Window(max_in_flight), pace or Pace(None), chance, clock)
        weakref.finalize(self, self._driver.stop)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a bulk engine holds sockets and a key: it cannot be pickled; pickle the node's settings")

    def run(
        self,
        jobs: Iterable[tuple[_Key, Request | Answer | ToolkitError]],
        *,
        retry: RetryPolicy | None = None,
        also_repeat: Callable[[Request, Answer], bool] | None = None,
    ) -> Iterator[tuple[_Key, Answer | ToolkitError]]:
        """Send requests and yield their answers as they come.

        Close the iterator (``contextlib.closing``) to cancel what is in flight: an exception in the caller's
        own loop does that only when the iterator dies with it.

        Parameters
        ----------
        jobs : iterable of (key, Request, Answer or error)
            Pulled in the caller's thread, at most three times `max_in_flight` ahead of the answers taken. What is no
            request is an outcome that is known without one: it is passed on, so that one iterable can hold both.
        retry : RetryPolicy, optional
            What is sent again, and after which wait; waiting holds up nothing else.
        also_repeat : callable (Request, Answer) -> bool, optional
            Error answers to send again beyond those of `retry`, within its attempts and budget. Called in the
            engine's thread, so it must be quick.

        Yields
        ------
        tuple of (key, Answer or error)
            One per job, in the order of completion: the last answer after all repeats, an error status
            included, or why none came.

        Raises
        ------
        ClosedError
            If the engine is closed, also while a run is going on.
        """
        self._driver.check_open()
        return self._results(_Run(retry or RetryPolicy(), also_repeat), iter(jobs))

    def close(self) -> None:
        """Cancel everything, end the thread and close every connection; runs raise ClosedError."""
        self._driver.stop()
        self._driver.join()

    def _results(
        self, run: _Run, jobs: Iterator[tuple[_Key, Request | Answer | ToolkitError]]
    ) -> Iterator[tuple[_Key, Answer | ToolkitError]]:
        more, unanswered = True, 0
        try:
            while more or unanswered:
                while more and unanswered + self._batch <= self._ahead:
                    pulled = list(islice(jobs, self._batch))
                    more = len(pulled) == self._batch
                    batch = [_Job(run, key, job) for key, job in pulled if isinstance(job, Request)]
                    if batch:
                        self._driver.submit(batch)
                        unanswered += len(batch)
                    if len(batch) < len(pulled):
                        yield from ((key, job) for key, job in pulled if not isinstance(job, Request))
                    if not run.results.empty():
                        break
                for answered in run.next_results() if unanswered else ():
                    unanswered -= 1
                    yield answered
        finally:
            self._driver.drop(run)


@dataclass(eq=False, slots=True)
class _Run:
    """One call of `BulkEngine.run`, as the driver knows it."""

    retry: RetryPolicy
    also_repeat: Callable[[Request, Answer], bool] | None
    results: queue.SimpleQueue[list[tuple[Any, Answer | NodeUnreachable]] | BaseException] = field(
        default_factory=queue.SimpleQueue
    )
    waiting: deque[_Job] = field(default_factory=deque)
    ended: list[tuple[Any, Answer | NodeUnreachable]] = field(default_factory=list)
    dropped: bool = False

    def next_results(self) -> list[tuple[Any, Answer | NodeUnreachable]]:
        """Wait for results, or raise why there will be none."""
        while True:
            try:
                found = self.results.get(timeout=1.0)  # an endless wait could not be interrupted everywhere
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            return found


@dataclass(eq=False, slots=True)
class _Job:
    """One request of a run, and how often and how long it has been put off."""

    run: _Run
    key: Any
    request: Request
    repeat: int = 0
    waited_s: float = 0.0
    started_at: float = 0.0


class Window:
    """How many requests may be in flight: halved when the node says 429, grown by one per round of answers.

    Parameters
    ----------
    most : int
        Upper end.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._halved_at = float("-inf")

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return int(self._limit)

    def answered(self) -> None:
        """Note an answer that was no 429."""
        self._limit = min(self._most, self._limit + 1.0 / self._limit)

    def refused(self, *, started_at: float, now: float) -> None:
        """Note a 429; one for a request from before the last halving tells nothing new."""
        if started_at >= self._halved_at:
            self._limit = max(1.0, self._limit / 2)
            self._halved_at = now
            _log.info("429: at most %d requests in flight from here on", self.limit)


class _Driver:
    """The part of an engine that lives in its thread. `submit`, `drop`, `stop`, `join` are for other threads."""

    def __init__(
        self,
        settings: dict[str, Any],
        window: Window,
        pace: Pace,
        chance: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._window, self._pace, self._chance, self._clock = window, pace, chance, clock
        self._lock = threading.Lock()
        self._commands: deque[list[_Job] | _Run] = deque()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._transfers: Transfers[_Job] | None = None
        self._runs: deque[_Run] = deque()
        self._delayed: list[tuple[float, int, _Job]] = []
        self._order = count()
        self._turn_at: float | None = None

    # for other threads ------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise ClosedError where the engine was closed."""
        if self._stopped:
            raise ClosedError(CLOSED)

    def submit(self, jobs: list[_Job]) -> None:
        """Hand jobs over, starting the thread where it does not run yet."""
        with self._lock:
            self.check_open()
            if self._transfers is None:
                self._transfers = Transfers(**self._settings)
                self._thread = threading.Thread(
                    target=self._drive, args=(self._transfers,), name="toolkit-bulk", daemon=True
                )
                self._thread.start()
            self._commands.append(jobs)
            self._transfers.wake()

    def drop(self, run: _Run) -> None:
        """Forget a run and cancel what it has in flight."""
        run.dropped = True
        with self._lock:
            if self._transfers is not None and not self._stopped:
                self._commands.append(run)
                self._transfers.wake()

    def stop(self) -> None:
        """Ask the thread to end."""
        with self._lock:
            if not self._stopped:
                self._stopped = True
                if self._transfers is not None:
                    self._transfers.wake()

    def join(self) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    # the thread -------------------------------------------------------------------------------------------------

    def _drive(self, transfers: Transfers[_Job]) -> None:
        reason: BaseException = ClosedError(CLOSED)
        try:
            while not self._stopped:
                self._obey(transfers)
                patience_s = self._start_due(transfers)
                for job, outcome in transfers.wait(patience_s):
                    self._settle(job, outcome)
                self._deliver()
        except BaseException as error:  # noqa: BLE001 - whoever waits for results must hear of it
            reason = error
        with self._lock:
            self._stopped = True
            for command in self._commands:
                self._learn(command)
            self._commands.clear()
            transfers.close()
        for run in self._runs:
            run.results.put(reason)

    def _obey(self, transfers: Transfers[_Job]) -> None:
        while self._commands:
            command = self._commands.popleft()
            self._learn(command)
            if isinstance(command, _Run):
                transfers.cancel(lambda job, run=command: job.run is run)  # type: ignore[misc]
                self._delayed = [entry for entry in self._delayed if entry[2].run is not command]
                heapq.heapify(self._delayed)

    def _learn(self, command: list[_Job] | _Run) -> None:
        if isinstance(command, _Run):
            if command in self._runs:
                self._runs.remove(command)
        elif command:
            run = command[0].run
            if run not in self._runs:
                self._runs.append(run)
            run.waiting.extend(command)

    def _start_due(self, transfers: Transfers[_Job]) -> float | None:
        """Start what may start, runs taking turns; return the seconds until more may, None where that is open."""
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            job = heapq.heappop(self._delayed)[2]
            job.run.waiting.appendleft(job)
        held_up = 0
        while len(transfers) < self._window.limit and held_up < len(self._runs):
            run = self._runs[0]
            if not run.waiting:
                self._runs.rotate(-1)
                held_up += 1
                continue
            if self._turn_at is None:  # a turn once taken is kept, so that others who ask the node starve nobody
                self._turn_at = now + self._pace.turn_s()
            if self._turn_at > now:
                return self._patience_s(now, self._turn_at)
            self._turn_at = None
            self._runs.rotate(-1)
            held_up = 0
            job = run.waiting.popleft()
            job.started_at = now
            transfers.start(job, job.request)
        return self._patience_s(now)

    def _patience_s(self, now: float, turn_at: float | None = None) -> float | None:
        dues = [self._delayed[0][0]] if self._delayed else []
        if turn_at is not None:
            dues.append(turn_at)
        return max(0.0, min(dues) - now) if dues else None

    def _settle(self, job: _Job, outcome: Answer | NodeUnreachable) -> None:
        """Pass an outcome on, or put its job off."""
        run, now = job.run, self._clock()
        if run.dropped:
            return
        if isinstance(outcome, Answer):
            if outcome.status == HTTPStatus.TOO_MANY_REQUESTS:
                self._window.refused(started_at=job.started_at, now=now)
            else:
                self._window.answered()
            if outcome.status < HTTPStatus.BAD_REQUEST:
                run.ended.append((job.key, outcome))
                return
        job.repeat += 1
        try:
            pause_s = self._pause_s(job, outcome)
        except Exception as error:  # noqa: BLE001 - the caller's `also_repeat` failed: a matter of that run only
            run.results.put(error)
            return
        if pause_s is None:
            run.ended.append((job.key, outcome))
            return
        job.waited_s += pause_s
        heapq.heappush(self._delayed, (now + pause_s, next(self._order), job))

    def _pause_s(self, job: _Job, outcome: Answer | NodeUnreachable) -> float | None:
        """Return the wait before the next attempt, None where there is none."""
        retry = job.run.retry
        if isinstance(outcome, Answer):
            text = outcome.body[:_TEXT_BYTES].decode("utf-8", "replace")
            again = retry.may_repeat(outcome.status, repeat=job.repeat, text=text) or _also(job, outcome)
            asked_s = retry_after_s(outcome.headers)
        else:
            again = not isinstance(outcome, HopelessError) and retry.may_repeat(None, repeat=job.repeat)
            asked_s = None
        pause_s = retry.wait_s(repeat=job.repeat, chance=self._chance(), asked_s=asked_s)
        return pause_s if again and job.waited_s + pause_s <= retry.budget_s else None

    def _deliver(self) -> None:
        for run in self._runs:
            if run.ended:
                run.results.put(run.ended)
                run.ended = []


def _also(job: _Job, answer: Answer) -> bool:
    also = job.run.also_repeat
    return also is not None and job.repeat < job.run.retry.attempts and also(job.request, answer)
