"""The bulk engine: many requests at once from one thread, with pace, retries and back-pressure."""

from __future__ import annotations

import atexit
import heapq
import logging
import os
import queue
import random
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from toolkit.client import _http as http
from toolkit.client._credentials import NO_CREDENTIALS
from toolkit.client._curl_transport import Transfers
from toolkit.client._http import CLOSED, Answer, Request
from toolkit.client._retry import Pace, RetryPolicy, not_sent
from toolkit.client._routes import Routes
from toolkit.errors import ClosedError, InputError, NodeUnreachable, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolkit.client._credentials import Credentials

_Key = TypeVar("_Key")

_log = logging.getLogger("toolkit.client")
# Maximum number of jobs taken from the caller at a time.
_MAX_BATCH = 8
# Maximum number of jobs taken and not yet answered, as a multiple of `max_in_flight`.
_MAX_AHEAD = 3
# Maximum wait for the threads of all engines when the interpreter exits, in seconds.
_MAX_EXIT_S = 2.0


class BulkEngine:
    """Sends many requests at once over libcurl, from its own thread, so it works under a running event loop too.

    The thread starts with the first run and ends with `close`, when the engine is freed, or when the interpreter exits.
    Several threads may run requests at the same time; the limits apply to all runs together. In a forked child it is
    closed. Answers that are being received, or wait for the caller, have at most `MAX_BYTES_IN_FLIGHT` bytes together:
    above that requests are put off, except one of each run whose caller has no answer to take.

    Parameters
    ----------
    credentials : Credentials, optional
        Sent with every request.
    timeout_s : float
        Limit in seconds for connecting, and for each wait for bytes. A whole request may take ten times as long.
    max_in_flight : int
        Maximum number of requests at once. A 429 halves the current number, other answers let it grow again.
    pace : Pace, optional
        Rate limit and pauses; pass the pace that other users of the same node share.
    routes : Routes, optional
        Pass the routes that other transports to the same node share.
    chance : callable, optional
        Returns a random number in [0, 1) for the jitter of waits; tests pass their own.
    clock : callable, optional
        Monotonic time in seconds; tests pass their own.
    open_transfers : callable, optional
        Creates the `Transfers` that send the requests; tests pass their own.

    Raises
    ------
    InputError
        If `max_in_flight` is below 1.
    """

    def __init__(
        self,
        credentials: Credentials = NO_CREDENTIALS,
        *,
        timeout_s: float = 30.0,
        max_in_flight: int = 64,
        pace: Pace | None = None,
        routes: Routes | None = None,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        open_transfers: Callable[..., Transfers[Any]] = Transfers,
    ) -> None:
        if max_in_flight < 1:
            raise InputError(f"max_in_flight must be at least 1, got {max_in_flight}")
        self._ahead = _MAX_AHEAD * max_in_flight
        self._batch = min(_MAX_BATCH, max_in_flight)
        routes = routes or Routes(timeout_s)
        connect = partial(open_transfers, credentials, timeout_s=timeout_s, keep=max_in_flight, routes=routes)
        self._driver = _Driver(connect, Window(max_in_flight), pace or Pace(None), chance, clock)
        weakref.finalize(self, self._driver.stop).atexit = False  # `_stop_all` also waits for the threads

    def __reduce__(self) -> NoReturn:
        raise TypeError("a bulk engine holds sockets and credentials and cannot be pickled; pickle the node instead")

    def run(
        self,
        jobs: Iterable[tuple[_Key, Request | Answer | ToolkitError]],
        *,
        retry: RetryPolicy | None = None,
        also_repeat: Callable[[Request, Answer], bool] | None = None,
    ) -> Iterator[tuple[_Key, Answer | ToolkitError]]:
        """Send requests and yield their outcomes in the order of completion.

        Close the iterator (``contextlib.closing``) to cancel the requests in flight: an exception in the caller's loop
        cancels them only once the iterator is freed.

        Parameters
        ----------
        jobs : iterable of (key, Request, Answer or error)
            Consumed in the caller's thread, at most three times `max_in_flight` ahead of the outcomes taken. Answers
            and errors are outcomes that are already known; they are yielded as they are.
        retry : RetryPolicy, optional
            Which requests are sent again, and after which wait. Other requests go on meanwhile.
        also_repeat : callable (Request, Answer) -> bool, optional
            Error answers that are repeated besides those of `retry`, within its attempts and budget. Called in the
            engine's thread, so it must be quick.

        Yields
        ------
        tuple of (key, Answer or error)
            One per job: the last answer after all repeats, which may have an error status, or why none was received.
            `RateLimited` if the request was not sent because the node asked for a pause longer than the budget of
            `retry`.

        Raises
        ------
        ClosedError
            If the engine is or gets closed; a fork closes it in the child.
        """
        self._driver.check_open()
        return self._results(_Run(retry or RetryPolicy(), also_repeat), iter(jobs))

    @property
    def bytes_in_flight(self) -> int:
        """Bytes of the answers that are being received or wait for their caller."""
        return self._driver.bytes_in_flight

    def close(self) -> None:
        """Cancel all requests, end the thread and close every connection; runs raise ClosedError."""
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
                answered = self._answered(run) if unanswered else _NOTHING
                while answered:
                    key, outcome = answered.popleft()
                    size = len(outcome.body) if isinstance(outcome, Answer) else 0
                    unanswered -= 1
                    yield key, outcome
                    del outcome  # do not hold a large answer while waiting for the next one
                    run.taken += size
                self._driver.note_taken()
        finally:
            self._driver.drop(run)

    def _answered(self, run: _Run) -> deque[_Ended]:
        """Wait for outcomes; raise the error that ended the run, if one did."""
        while True:
            try:
                found = run.results.get(timeout=1.0)  # Ctrl-C cannot interrupt an endless wait on every platform
            except queue.Empty:
                if not self._driver.lives:  # in a forked child
                    raise ClosedError(CLOSED) from None
                continue
            if isinstance(found, BaseException):
                raise found
            return found


_Ended = tuple[Any, "Answer | ToolkitError"]
_NOTHING: deque[_Ended] = deque()


@dataclass(eq=False, slots=True)
class _Run:
    """One call of `BulkEngine.run`.

    Attributes
    ----------
    received, taken : int
        Bytes of the answers received, counted by the driver, and of those the caller is done with, counted by the
        caller.
    """

    retry: RetryPolicy
    also_repeat: Callable[[Request, Answer], bool] | None
    results: queue.SimpleQueue[deque[_Ended] | BaseException] = field(default_factory=queue.SimpleQueue)
    waiting: deque[_Job] = field(default_factory=deque)
    ended: deque[_Ended] = field(default_factory=deque)
    dropped: bool = False
    received: int = 0
    taken: int = 0

    @property
    def held(self) -> int:
        """Bytes of the answers received that the caller is not done with."""
        return self.received - self.taken

    def end(self, key: Any, outcome: Answer | ToolkitError) -> None:
        """Record the outcome of a job."""
        if isinstance(outcome, Answer):
            self.received += len(outcome.body)
        self.ended.append((key, outcome))


@dataclass(eq=False, slots=True)
class _Job:
    """One request of a run, with its number of repeats and the sum of its waits."""

    run: _Run
    key: Any
    request: Request
    repeat: int = 0
    waited_s: float = 0.0
    started_at: float = 0.0


class Window:
    """The number of requests that may be in flight: halved by a 429 or too many bytes, else grown by one per round.

    Parameters
    ----------
    max_in_flight : int
        Initial and maximum number.

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
        """The current number."""
        return int(self._limit)

    def answered(self) -> None:
        """Record an answer other than a 429."""
        self._limit = min(self._max_in_flight, self._limit + 1.0 / self._limit)

    def refused(self, *, started_at: float, now: float) -> None:
        """Halve the number; a 429 is ignored if its request was sent before the last halving."""
        if started_at >= self._halved_at:
            self._limit = max(1.0, self._limit / 2)
            self._halved_at = now
            _log.info("at most %d requests in flight from now on", self.limit)


class _Driver:
    """The engine's thread and its state. Other threads call the methods of the first part only."""

    def __init__(
        self,
        connect: Callable[[], Transfers[_Job]],
        window: Window,
        pace: Pace,
        chance: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._connect = connect
        self._window, self._pace, self._chance, self._clock = window, pace, chance, clock
        self._lock = threading.RLock()
        self._commands: deque[list[_Job] | _Run] = deque()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._transfers: Transfers[_Job] | None = None
        self._runs: deque[_Run] = deque()
        self._delayed: list[tuple[float, int, _Job]] = []
        self._order = count()
        self._turn_at: float | None = None
        self._full = False
        _drivers.add(self)

    # called by other threads ------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise ClosedError if the engine is closed."""
        if self._stopped:
            raise ClosedError(CLOSED)

    @property
    def bytes_in_flight(self) -> int:
        """Bytes of the answers that are being received, or that the callers are not done with."""
        received = 0 if self._transfers is None else self._transfers.received
        return received + sum(run.held for run in self._runs.copy())

    @property
    def lives(self) -> bool:
        """Whether the thread runs; a forked child does not have it."""
        return self._thread is not None and self._thread.is_alive()

    def submit(self, jobs: list[_Job]) -> None:
        """Pass jobs to the thread; start the thread if it does not run yet."""
        with self._lock:
            self.check_open()
            if self._transfers is None:
                self._transfers = self._connect()
                self._thread = threading.Thread(
                    target=self._drive, args=(self._transfers,), name="toolkit-bulk", daemon=True
                )
                self._thread.start()
            self._commands.append(jobs)
            self._transfers.wake()

    def note_taken(self) -> None:
        """Let the thread start further requests after answers were taken."""
        if self._full:
            self._wake()

    def drop(self, run: _Run) -> None:
        """Cancel the requests of a run."""
        run.dropped = True
        if self._stopped:  # at exit of the interpreter, the thread may have ended while it held the lock
            return
        with self._lock:
            if self._transfers is not None and not self._stopped:
                self._commands.append(run)
                self._transfers.wake()

    def stop(self) -> None:
        """Make the thread end."""
        if not self._stopped:
            self._stopped = True
            self._wake()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def leave_to_parent(self) -> None:
        """Close the engine in a forked child without its thread, and without touching the parent's connections."""
        self._stopped = True
        if self._transfers is not None:
            self._transfers.leave_to_parent()

    def _wake(self) -> None:
        with self._lock:
            if self._transfers is not None and self._thread is not None and self._thread.is_alive():
                self._transfers.wake()

    # the thread -------------------------------------------------------------------------------------------------

    def _drive(self, transfers: Transfers[_Job]) -> None:
        reason: BaseException = ClosedError(CLOSED)
        try:
            while not self._stopped:
                self._step(transfers)
        except BaseException as error:  # noqa: BLE001 - it is raised to the callers that wait for outcomes
            reason = error
        self._stopped = True
        with self._lock:
            self._transfers = None
            for command in self._commands:
                self._apply(command)
            self._commands.clear()
        for run in self._runs:
            run.results.put(reason)
        self._runs.clear()
        self._delayed.clear()
        transfers.close()

    def _step(self, transfers: Transfers[_Job]) -> None:
        """Do one round of work. A separate method, so that no local refers to a run while the thread waits."""
        self._execute_commands(transfers)
        self._balance(transfers)
        wait_s = self._start_due(transfers)
        for job, outcome in transfers.wait(wait_s):
            self._settle(job, outcome)
        self._deliver()

    def _execute_commands(self, transfers: Transfers[_Job]) -> None:
        while self._commands:
            command = self._commands.popleft()
            self._apply(command)
            if isinstance(command, _Run):
                transfers.cancel(lambda job, run=command: job.run is run)  # type: ignore[misc]
                self._delayed = [entry for entry in self._delayed if entry[2].run is not command]
                heapq.heapify(self._delayed)

    def _apply(self, command: list[_Job] | _Run) -> None:
        if isinstance(command, _Run):
            if command in self._runs:
                self._runs.remove(command)
        elif command:
            run = command[0].run
            if run not in self._runs:
                self._runs.append(run)
            run.waiting.extend(command)

    def _balance(self, transfers: Transfers[_Job]) -> None:
        """Limit the bytes of answers in memory: above the budget, requests are cancelled and put back."""
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

    def _start_due(self, transfers: Transfers[_Job]) -> float | None:
        """Start requests, the runs in turn; return the seconds until more may start, or None if no time is known."""
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            job = heapq.heappop(self._delayed)[2]
            job.run.waiting.appendleft(job)
        pace = self._pace
        if pace.held and pace.refused_s():
            self._refuse_waiting()
        held_up = 0
        while len(transfers) < self._window.limit and held_up < len(self._runs):
            run = self._runs[0]
            if not run.waiting or (self._full and not self._may_start(run, transfers)):
                self._runs.rotate(-1)
                held_up += 1
                continue
            if self._turn_at is None:  # a turn is taken once, so that other users of the pace cannot starve this one
                self._turn_at = now + pace.turn_s()
            if pace.held:  # the node may have asked for a pause meanwhile
                self._turn_at = max(self._turn_at, now + pace.paused_s())
            if self._turn_at > now:
                return self._wait_s(now, self._turn_at)
            self._turn_at = None
            self._runs.rotate(-1)
            held_up = 0
            job = run.waiting.popleft()
            job.started_at = now
            transfers.start(job, job.request)
        return self._wait_s(now)

    @staticmethod
    def _may_start(run: _Run, transfers: Transfers[_Job]) -> bool:
        """Return whether a run may exceed the budget: it has no request in flight and no answer waiting."""
        return not run.held and all(job.run is not run for job in transfers.tags())

    def _refuse_waiting(self) -> None:
        """End the waiting requests with RateLimited, because the node asked for a long pause."""
        for run in self._runs:
            while run.waiting:
                job = run.waiting.popleft()
                run.end(job.key, not_sent(job.request.where, self._pace.refused_s()))
        self._deliver()

    def _wait_s(self, now: float, turn_at: float | None = None) -> float | None:
        dues = [self._delayed[0][0]] if self._delayed else []
        if turn_at is not None:
            dues.append(turn_at)
        return max(0.0, min(dues) - now) if dues else None

    def _settle(self, job: _Job, outcome: Answer | NodeUnreachable) -> None:
        """Record the outcome of a job, or schedule its repeat."""
        run, now = job.run, self._clock()
        if run.dropped:
            return
        if isinstance(outcome, Answer):
            if outcome.status < HTTPStatus.BAD_REQUEST:
                self._window.answered()
                if self._pace.held:
                    self._pace.answered()
                run.end(job.key, outcome)
                return
            if outcome.status == HTTPStatus.TOO_MANY_REQUESTS:
                self._window.refused(started_at=job.started_at, now=now)
            else:
                self._window.answered()
            self._pace.note_answer(outcome, budget_s=run.retry.budget_s)
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

    def _deliver(self) -> None:
        for run in self._runs:
            if run.ended:
                run.results.put(run.ended)
                run.ended = deque()


_drivers: weakref.WeakSet[_Driver] = weakref.WeakSet()


def _leave_all_to_parent() -> None:
    for driver in list(_drivers):
        driver.leave_to_parent()
    _drivers.clear()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_leave_all_to_parent)


@atexit.register
def _stop_all() -> None:
    """End all threads before the interpreter exits: a thread that is killed would leave its lock locked."""
    drivers = list(_drivers)
    for driver in drivers:
        driver.stop()
    ends_at = time.monotonic() + _MAX_EXIT_S
    for driver in drivers:
        driver.join(max(0.0, ends_at - time.monotonic()))
