"""The bulk engine: many requests at once, driven by one thread; pace, retries and back-pressure. Knows no node."""

from __future__ import annotations

import atexit
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

from toolkit.client import forking, http
from toolkit.client.credentials import Credentials
from toolkit.client.curl_transport import Transfers
from toolkit.client.http import CLOSED, Answer, Request, redacted_url
from toolkit.client.node_errors import not_sent
from toolkit.client.retry import Pace, RetryPolicy, node_pause_s, retry_after_s
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
_EXIT_S = 2.0
"""Longest wait for the engines' threads when the interpreter exits, in seconds."""
_FORKED = "these requests began before the process was forked and stay with the parent; begin them again in the child"


class BulkEngine:
    """Sends many requests at once over libcurl, from a thread of its own; works under a running event loop.

    The thread starts with the first run and ends with `close`, with the engine itself, or with the interpreter. Several
    runs may be going on, from several threads; together they keep to the limits. A forked child starts a thread and
    connections of its own. Answers that are being received or wait to be taken have at most `MAX_BYTES_IN_FLIGHT` bytes
    together: beyond it requests are paused, except one of each run without an answer to take.

    Parameters
    ----------
    api_key : str or None
        Sent as ``Authorization: Bearer``, to the site of each request only.
    login : str, optional
        ``user:password`` as a URL has them; sent to that site if there is no API key.
    timeout_s : float
        Limit in seconds for connecting, and for each wait for bytes. A whole request ends after ten times as long.
    max_in_flight : int
        Most requests at once. A 429 halves the number in force, answers let it grow again.
    pace : Pace, optional
        Turns to wait for before each request, repeats included, and pauses that the node asks for; shared with others
        who ask the same node.
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
            raise InputError(f"max_in_flight must be 1 or more, got {max_in_flight}")
        self._ahead = _AHEAD * max_in_flight
        self._batch = min(_BATCH, max_in_flight)
        settings = {"credentials": Credentials(api_key, login), "timeout_s": timeout_s, "keep": max_in_flight}
        self._driver = _Driver(settings, Window(max_in_flight), pace or Pace(None), chance, clock)
        weakref.finalize(self, self._driver.stop).atexit = False  # `_end_all` also waits for the threads

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
            included, or why none came. `RateLimited` stands for a request that was not sent because the node asked for
            a wait beyond the budget of `retry`.

        Raises
        ------
        ClosedError
            If the engine is closed, also while a run is going on, or the process was forked since the run began.
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
                answered = run.next_results() if unanswered else _NOTHING
                while answered:
                    key, outcome = answered.popleft()
                    size = len(outcome.body) if isinstance(outcome, Answer) else 0
                    unanswered -= 1
                    yield key, outcome
                    del outcome  # a large answer must not wait here for the next one
                    run.taken += size
                self._driver.note_taken()
        finally:
            self._driver.drop(run)


_Ended = tuple[Any, "Answer | ToolkitError"]
_NOTHING: deque[_Ended] = deque()


@dataclass(eq=False, slots=True)
class _Run:
    """One call of `BulkEngine.run`, as the driver knows it.

    Attributes
    ----------
    came, taken : int
        Bytes of the answers that came, counted by the driver, and of those that were used up, counted by the caller.
    """

    retry: RetryPolicy
    also_repeat: Callable[[Request, Answer], bool] | None
    results: queue.SimpleQueue[deque[_Ended] | BaseException] = field(default_factory=queue.SimpleQueue)
    waiting: deque[_Job] = field(default_factory=deque)
    ended: deque[_Ended] = field(default_factory=deque)
    dropped: bool = False
    came: int = 0
    taken: int = 0

    @property
    def held(self) -> int:
        """Bytes of the answers that came and are not used up yet."""
        return self.came - self.taken

    def end(self, key: Any, outcome: Answer | ToolkitError) -> None:
        """Note the outcome of a job."""
        if isinstance(outcome, Answer):
            self.came += len(outcome.body)
        self.ended.append((key, outcome))

    def next_results(self) -> deque[_Ended]:
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
        """Note an answer other than a 429."""
        self._limit = min(self._most, self._limit + 1.0 / self._limit)

    def refused(self, *, started_at: float, now: float) -> None:
        """Note a 429; one for a request from before the last halving is nothing new."""
        if started_at >= self._halved_at:
            self._limit = max(1.0, self._limit / 2)
            self._halved_at = now
            _log.info("429: at most %d requests in flight from here on", self.limit)


class _Driver:
    """The part of an engine that lives in its thread; the methods of its first part are for other threads."""

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
        self._lock = forking.lock()
        self._commands: deque[list[_Job] | _Run] = deque()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._transfers: Transfers[_Job] | None = None
        self._runs: deque[_Run] = deque()
        self._delayed: list[tuple[float, int, _Job]] = []
        self._order = count()
        self._turn_at: float | None = None
        self._full = self._pausing = False
        _drivers.add(self)
        forking.register(self)

    # for other threads ------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise ClosedError if the engine was closed."""
        if self._stopped:
            raise ClosedError(CLOSED)

    def submit(self, jobs: list[_Job]) -> None:
        """Pass jobs to the thread, which is started if it does not run yet."""
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

    def note_taken(self) -> None:
        """Let the thread go on with what it paused, now that answers were taken."""
        if self._full:
            self._wake()

    def drop(self, run: _Run) -> None:
        """Forget a run and cancel what it has in flight."""
        run.dropped = True
        if self._stopped:  # also while the interpreter exits, when the thread may have gone with the lock
            return
        with self._lock:
            if self._transfers is not None and not self._stopped:
                self._commands.append(run)
                self._transfers.wake()

    def stop(self) -> None:
        """Ask the thread to end."""
        if not self._stopped:
            self._stopped = True
            self._wake()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def renew_after_fork(self) -> None:
        """Start again without thread and connections in a forked child; runs that were going on raise ClosedError."""
        if self._transfers is not None:
            self._transfers.leave_to_parent()
        for run in {*self._runs, *(_run_of(command) for command in self._commands)}:
            run.waiting, run.ended, run.results = deque(), deque(), queue.SimpleQueue()
            run.results.put(ClosedError(_FORKED))
        self._commands, self._runs, self._delayed = deque(), deque(), []
        self._transfers, self._thread, self._turn_at, self._full, self._pausing = None, None, None, False, False

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
        except BaseException as error:  # noqa: BLE001 - whoever waits for results must hear of it
            reason = error
        self._stopped = True
        with self._lock:
            self._transfers = None
            for command in self._commands:
                self._learn(command)
            self._commands.clear()
        for run in self._runs:
            run.results.put(reason)
        self._runs.clear()
        self._delayed.clear()
        transfers.close()

    def _step(self, transfers: Transfers[_Job]) -> None:
        """Move everything on once. A method of its own: while the thread waits next, no local refers to a run."""
        self._obey(transfers)
        self._balance(transfers)
        patience_s = self._start_due(transfers)
        if self._pausing and not self._full:
            self._pausing = transfers.resume_one()
            patience_s = 0.0
        for job, outcome in transfers.wait(patience_s):
            self._settle(job, outcome)
        self._deliver()

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

    def _balance(self, transfers: Transfers[_Job]) -> None:
        """Keep the answers in memory to the budget: pause what is in progress beyond it, resume it one by one."""
        room = self._room()
        if transfers.received > room and not self._full:
            self._full = True  # from here on whoever takes answers wakes this thread
            room = self._room()
        self._full = transfers.received > room
        transfers.room = room
        if self._full:
            going_on: set[_Run] = set()

            def beyond(job: _Job) -> bool:
                if job.run.held or job.run in going_on:
                    return True
                going_on.add(job.run)
                return False

            transfers.pause(beyond)
            self._pausing = True

    def _room(self) -> int:
        room = http.MAX_BYTES_IN_FLIGHT
        for run in self._runs:
            room -= run.came - run.taken
        return room

    def _start_due(self, transfers: Transfers[_Job]) -> float | None:
        """Start what may start, runs taking turns; return the seconds until more may, None if that is open."""
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
            if not run.waiting or (self._full and not self._may_begin(run, transfers)):
                self._runs.rotate(-1)
                held_up += 1
                continue
            if self._turn_at is None:  # a turn once taken is kept, so that others who ask the node starve nobody
                self._turn_at = now + pace.turn_s()
            if pace.held:  # a pause that the node asked for meanwhile
                self._turn_at = max(self._turn_at, now + pace.paused_s())
            if self._turn_at > now:
                return self._patience_s(now, self._turn_at)
            self._turn_at = None
            self._runs.rotate(-1)
            held_up = 0
            job = run.waiting.popleft()
            job.started_at = now
            transfers.start(job, job.request)
        return self._patience_s(now)

    @staticmethod
    def _may_begin(run: _Run, transfers: Transfers[_Job]) -> bool:
        """Return whether a run may begin a request although the budget is used up: its only one, nothing to take."""
        return not run.held and all(job.run is not run for job in transfers.tags())

    def _refuse_waiting(self) -> None:
        """End the requests that are not to be sent, because the node asked for a long wait."""
        for run in self._runs:
            while run.waiting:
                job = run.waiting.popleft()
                where = f"{job.request.method} {redacted_url(job.request.url)}"
                run.end(job.key, not_sent(where, self._pace.refused_s()))
        self._deliver()

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
            if outcome.status < HTTPStatus.BAD_REQUEST:
                self._window.answered()
                if self._pace.held:
                    self._pace.answered()
                run.end(job.key, outcome)
                return
            self._note_refusal(job, outcome, now)
        job.repeat += 1
        try:
            pause_s = self._pause_s(job, outcome)
        except Exception as error:  # noqa: BLE001 - the caller's `also_repeat` failed: a matter of that run only
            run.results.put(error)
            return
        if pause_s is None:
            run.end(job.key, outcome)
            return
        job.waited_s += pause_s
        heapq.heappush(self._delayed, (now + pause_s, next(self._order), job))

    def _note_refusal(self, job: _Job, answer: Answer, now: float) -> None:
        """Have the window and the pace follow what an error answer says of the node's load."""
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            self._window.refused(started_at=job.started_at, now=now)
        else:
            self._window.answered()
        node_s = node_pause_s(answer.status, answer.headers)
        if node_s is None:
            self._pace.answered()
        else:
            self._pace.hold(node_s, budget_s=job.run.retry.budget_s)

    def _pause_s(self, job: _Job, outcome: Answer | NodeUnreachable) -> float | None:
        """Return the wait before the next attempt, None if there is none."""
        retry = job.run.retry
        asked_s = None
        if isinstance(outcome, Answer):
            text = outcome.body[:_TEXT_BYTES].decode("utf-8", "replace")
            again = retry.may_repeat(outcome.status, repeat=job.repeat, text=text) or _also(job, outcome)
            asked_s = retry_after_s(outcome.headers)
        else:
            again = not isinstance(outcome, HopelessError) and retry.may_repeat(None, repeat=job.repeat)
        pause_s = retry.wait_s(repeat=job.repeat, chance=self._chance(), asked_s=asked_s)
        return pause_s if again and job.waited_s + pause_s <= retry.budget_s else None

    def _deliver(self) -> None:
        for run in self._runs:
            if run.ended:
                run.results.put(run.ended)
                run.ended = deque()


def _also(job: _Job, answer: Answer) -> bool:
    also = job.run.also_repeat
    return also is not None and job.repeat < job.run.retry.attempts and also(job.request, answer)


def _run_of(command: list[_Job] | _Run) -> _Run:
    return command if isinstance(command, _Run) else command[0].run


_drivers: weakref.WeakSet[_Driver] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """End every thread before the interpreter goes: one that is cut off amid its work would leave its lock locked."""
    drivers = list(_drivers)
    for driver in drivers:
        driver.stop()
    ends_at = time.monotonic() + _EXIT_S
    for driver in drivers:
        driver.join(max(0.0, ends_at - time.monotonic()))
