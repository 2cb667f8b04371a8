"""The bulk engine over scripted transfers: window, repeats, pauses, byte budget, order and cancellation.

`tests/integration/transports/test_engine.py` tests the same engine over libcurl and a server.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import deque
from contextlib import closing

import pytest

from toolkit.client import _http as http
from toolkit.client._engine import BulkEngine, Window
from toolkit.client._http import Answer, Pace, Request, RetryPolicy
from toolkit.errors import ClosedError, HopelessError, InputError, NodeUnreachable, RateLimited

URL = "http://node.test/v1"
FINE = Answer(200, {}, b"fine")
TOO_MANY = Answer(429, {}, b"")
AT_ONCE = RetryPolicy(base_s=0.0)


class Clock:
    """A clock that moves on only when a transfer waits for a time to pass."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Transfers:
    """Transfers that a test script answers: `reply` gets (URL, number of the attempt) and returns the outcome.

    A reply of None leaves the request in progress until `release` of its URL.
    """

    def __init__(self, reply, clock):
        self.reply, self.clock = reply, clock
        self.attempts = {}
        self.started = []
        self.busy = {}
        self.max_busy = 0
        self.cancelled = []
        self.received = 0
        self.room = 2**63
        self.closed = threading.Event()
        self.finished = deque()
        self.released = {}
        self.wakes = 0
        self._woken = threading.Event()

    def __call__(self, open_slot, *, keep):
        self.keep = keep
        return self

    def __len__(self):
        return len(self.busy)

    def tags(self):
        return iter(self.busy)

    def start(self, tag, request):
        self.attempts[request.url] = number = self.attempts.get(request.url, 0) + 1
        self.started.append((request.url, self.clock()))
        self.busy[tag] = request
        self.max_busy = max(self.max_busy, len(self.busy))
        outcome = self.reply(request.url, number)
        if outcome is not None:
            self.finished.append((tag, outcome))

    def release(self, url, outcome=FINE):
        """End the request to a URL, now or once it is in progress. For the test's thread."""
        self.released[url] = outcome
        self._woken.set()

    def wake(self):
        self.wakes += 1
        self._woken.set()

    def cancel(self, which):
        tags = [tag for tag in self.busy if which(tag)]
        for tag in tags:
            self.cancelled.append(self.busy.pop(tag).url)
        self.finished = deque((tag, outcome) for tag, outcome in self.finished if not which(tag))
        return tags

    def wait(self, seconds):
        ready = self.finished or any(request.url in self.released for request in self.busy.values())
        if not ready and seconds != 0.0 and not self._woken.wait(0.0 if seconds else 5.0):
            self.clock.now += seconds or 0.0
        self._woken.clear()
        self.finished += [
            (tag, self.released[request.url]) for tag, request in self.busy.items() if request.url in self.released
        ]
        ended = list({tag: (tag, outcome) for tag, outcome in self.finished if tag in self.busy}.values())
        self.finished.clear()
        for tag, _ in ended:
            del self.busy[tag]
        return ended

    def close(self):
        self.closed.set()


@pytest.fixture
def engine_of():
    """Return a function that makes an engine over scripted transfers; the engines are closed."""
    made = []

    def make(reply=lambda *_: FINE, **options):
        clock = Clock()
        transfers = Transfers(reply, clock)
        pace = Pace(options.pop("per_second", None), clock)
        made.append(
            BulkEngine(clock=clock, chance=lambda: 0.0, pace=pace, open_transfers=transfers, **options),
        )
        return made[-1], transfers

    yield make
    for engine in made:
        engine.close()


def jobs(count, first=0):
    return [(key, Request("GET", f"{URL}/{key}")) for key in range(first, first + count)]


def urls(transfers):
    return [int(url.rpartition("/")[2]) for url, _ in transfers.started]


class TestWindow:
    """The number of requests in flight."""

    def test_a_429_halves_it_and_answers_let_it_grow_to_its_maximum(self):
        """8, then 4; a round of answers adds one; never more than 8, never less than 1."""
        window = Window(8)
        window.refused(started_at=0.0, now=1.0)
        assert window.limit == 4
        for _ in range(5):
            window.answered()
        assert window.limit == 5
        for _ in range(1_000):
            window.answered()
        assert window.limit == 8
        for at in range(10):
            window.refused(started_at=10.0 + at, now=10.0 + at)
        assert window.limit == 1

    def test_the_429s_of_one_burst_count_once(self):
        """Requests that were sent before the halving do not halve it again."""
        window = Window(64)
        for _ in range(30):
            window.refused(started_at=0.0, now=1.0)
        assert window.limit == 32

    def test_no_more_requests_are_in_flight(self, engine_of):
        """`max_in_flight` is the limit of all runs together."""
        engine, transfers = engine_of(max_in_flight=3)
        assert len(list(engine.run(jobs(40)))) == 40
        assert transfers.max_busy == 3

    def test_a_429_shrinks_it_while_a_run_goes_on(self, engine_of):
        """Eight requests are refused at once; from then on four are in progress."""
        engine, transfers = engine_of(lambda _, attempt: TOO_MANY if attempt == 1 else None, max_in_flight=8)
        with closing(engine.run(jobs(8), retry=AT_ONCE)) as outcomes:
            transfers.release(f"{URL}/0")
            assert next(outcomes) == (0, FINE)
            assert transfers.max_busy == 8
            assert len(transfers) <= 4


class TestRepeats:
    """Which outcomes are repeated, and when."""

    @pytest.mark.parametrize("outcome", [TOO_MANY, Answer(503, {}, b""), NodeUnreachable("cut of")])
    def test_what_may_succeed_is_sent_again(self, engine_of, outcome):
        """The caller sees the answer of the third attempt only."""
        engine, transfers = engine_of(lambda _, attempt: FINE if attempt == 3 else outcome)
        assert list(engine.run(jobs(1), retry=AT_ONCE)) == [(0, FINE)]
        assert len(transfers.started) == 3

    @pytest.mark.parametrize("outcome", [Answer(400, {}, b""), Answer(404, {}, b""), HopelessError("refused")])
    def test_what_fails_again_is_not_sent_again(self, engine_of, outcome):
        """The outcome of the first attempt is the result."""
        engine, transfers = engine_of(lambda *_: outcome)
        assert list(engine.run(jobs(1), retry=AT_ONCE)) == [(0, outcome)]
        assert len(transfers.started) == 1

    def test_attempts_are_limited(self, engine_of):
        """After three attempts the last answer is the result."""
        engine, transfers = engine_of(lambda *_: TOO_MANY)
        assert list(engine.run(jobs(1), retry=RetryPolicy(attempts=3, base_s=0.0))) == [(0, TOO_MANY)]
        assert len(transfers.started) == 3

    def test_waits_double(self, engine_of):
        """With the smallest jitter: 0.5, 1 and 2 s for a base of 1 s, by the engine's clock."""
        engine, transfers = engine_of(lambda _, attempt: FINE if attempt == 4 else Answer(502, {}, b""))
        list(engine.run(jobs(1), retry=RetryPolicy(base_s=1.0)))
        times = [at for _, at in transfers.started]
        assert [after - before for before, after in itertools.pairwise(times)] == pytest.approx([0.5, 1.0, 2.0])

    def test_the_sum_of_waits_is_limited(self, engine_of):
        """A wait that would exceed the budget is not begun."""
        engine, transfers = engine_of(lambda *_: Answer(502, {"retry-after": "40"}, b""))
        [(_, answer)] = engine.run(jobs(1), retry=RetryPolicy(budget_s=60.0))
        assert (answer.status, len(transfers.started)) == (502, 2)

    def test_the_caller_may_have_other_answers_repeated(self, engine_of):
        """`also_repeat` sees request and answer, and stays within the attempts."""
        lagging = Answer(404, {}, b"behind")
        engine, transfers = engine_of(lambda *_: lagging)
        seen = []
        policy = RetryPolicy(attempts=4, base_s=0.0)
        result = list(engine.run(jobs(1), retry=policy, also_repeat=lambda *pair: seen.append(pair) or True))
        assert result == [(0, lagging)]
        assert len(transfers.started) == 4
        assert {(request.url, answer.body) for request, answer in seen} == {(f"{URL}/0", b"behind")}

    def test_an_error_of_also_repeat_ends_its_run_only(self, engine_of):
        """It is raised to the caller; the engine goes on."""
        engine, _ = engine_of(lambda url, _: Answer(404, {}, b"") if url.endswith("/0") else FINE)
        with pytest.raises(ZeroDivisionError):
            list(engine.run(jobs(1), also_repeat=lambda *_: bool(1 // 0)))
        assert list(engine.run(jobs(1, first=5))) == [(5, FINE)]


class TestPauses:
    """What the node and the rate limit ask for."""

    @pytest.mark.parametrize("status", [429, 503])
    def test_a_retry_after_holds_back_all_requests(self, engine_of, status):
        """Requests that were not sent before the refusal start after it."""
        pause = Answer(status, {"retry-after": "7"}, b"")
        first = f"{URL}/0"
        engine, transfers = engine_of(
            lambda url, attempt: pause if (url, attempt) == (first, 1) else FINE, max_in_flight=1
        )
        assert dict(engine.run(jobs(20), retry=AT_ONCE)) == dict.fromkeys(range(20), FINE)
        later = [at for url, at in transfers.started[1:]]
        assert min(later) >= 107.0

    def test_a_pause_beyond_the_budget_refuses_the_rest(self, engine_of):
        """Nothing more is sent; the other requests end with RateLimited and the time of the pause."""
        engine, transfers = engine_of(lambda *_: Answer(429, {"retry-after": "3600"}, b""), max_in_flight=1)
        outcomes = dict(engine.run(jobs(3), retry=RetryPolicy(budget_s=60.0)))
        assert len(transfers.started) == 1
        assert outcomes[0].status == 429
        assert [type(outcomes[key]) for key in (1, 2)] == [RateLimited] * 2

    def test_starts_are_evenly_spaced(self, engine_of):
        """Four requests per second start 0.25 s apart."""
        engine, transfers = engine_of(per_second=4.0)
        list(engine.run(jobs(4)))
        assert [at - 100.0 for _, at in transfers.started] == pytest.approx([0.0, 0.25, 0.5, 0.75])


class TestByteBudget:
    """Answers in memory."""

    def test_few_requests_start_while_nobody_takes_the_answers(self, engine_of, monkeypatch):
        """Afterwards all are answered."""
        monkeypatch.setattr(http, "MAX_BYTES_IN_FLIGHT", 1_000)
        large = Answer(200, {}, b"x" * 600)
        engine, transfers = engine_of(lambda *_: large, max_in_flight=4)
        with closing(engine.run(jobs(30))) as outcomes:
            taken = [next(outcomes)]
            assert len(transfers.started) < 30
            taken += list(outcomes)
        assert sorted(key for key, _ in taken) == list(range(30))

    def test_received_bytes_above_it_put_off_all_but_one_request_of_each_run(self, engine_of, monkeypatch):
        """One request of a run without answers goes on, so that the run cannot stop; the others are sent again."""
        monkeypatch.setattr(http, "MAX_BYTES_IN_FLIGHT", 1_000)
        engine, transfers = engine_of(lambda _, attempt: FINE if attempt == 2 else None, max_in_flight=8)
        with closing(engine.run([("known", FINE), *jobs(4)])) as outcomes:
            assert next(outcomes) == ("known", FINE)  # the requests are sent then
            while len(transfers.busy) < 4:
                time.sleep(0.001)
            transfers.received = 2_000
            transfers.wake()
            while len(transfers.cancelled) < 3:
                time.sleep(0.001)
            transfers.received = 0
            transfers.release(f"{URL}/0")
            assert sorted(key for key, _ in outcomes) == [0, 1, 2, 3]
        assert transfers.attempts == {f"{URL}/{key}": 1 + (key > 0) for key in range(4)}


class TestOrder:
    """Keys, turns and what is known without a request."""

    def test_outcomes_come_in_the_order_of_completion(self, engine_of):
        """A request that hangs holds up no other."""
        engine, transfers = engine_of(lambda url, _: None if url.endswith("/0") else FINE)
        with closing(engine.run(jobs(6))) as outcomes:
            assert sorted(key for key, _ in itertools.islice(outcomes, 5)) == [1, 2, 3, 4, 5]
            transfers.release(f"{URL}/0")
            assert next(outcomes) == (0, FINE)

    def test_known_outcomes_are_passed_on_without_a_request(self, engine_of):
        """Answers and errors among the jobs are yielded as they are."""
        engine, transfers = engine_of()
        known = [("a", Answer(200, {}, b"cached")), ("b", InputError("not valid"))]
        outcomes = dict(engine.run([*known, *jobs(2)]))
        assert [outcomes[key] for key in ("a", "b")] == [outcome for _, outcome in known]
        assert len(transfers.started) == 2

    def test_jobs_are_taken_as_outcomes_are(self, engine_of):
        """From an endless source at most three times `max_in_flight` jobs are taken ahead."""
        engine, _ = engine_of(max_in_flight=8)
        pulled = itertools.count()
        source = ((key, Request("GET", f"{URL}/{key}")) for key in pulled)
        with closing(engine.run(source)) as outcomes:
            for taken, _ in enumerate(itertools.islice(outcomes, 100), 1):
                assert int(repr(pulled)[6:-1]) <= taken + 24 + 1

    def test_runs_take_turns(self, engine_of):
        """With one request at a time, a second run does not wait for the end of the first."""
        engine, transfers = engine_of(lambda *_: None, max_in_flight=1)
        results = queue.SimpleQueue()

        def run(wanted):
            results.put(dict(engine.run(wanted)))

        threads = [threading.Thread(target=run, args=(wanted,)) for wanted in (jobs(3), jobs(1, first=100))]
        for number, thread in enumerate(threads, 1):
            thread.start()
            while transfers.wakes < number:  # until its jobs have reached the engine
                thread.join(0.001)
        for key in (0, 1, 2, 100):
            transfers.release(f"{URL}/{key}")
        for thread in threads:
            thread.join()
        assert [len(results.get()) for _ in threads] in ([1, 3], [3, 1])
        assert urls(transfers).index(100) < urls(transfers).index(2)

    def test_a_run_keeps_its_turn_while_the_pace_lets_nothing_start(self, engine_of):
        """The engine looks for the next run twice for each request: before and after the wait."""
        both = threading.Event()

        def reply(*_):
            both.wait(5.0)

        engine, transfers = engine_of(reply, per_second=50.0)
        threads = [threading.Thread(target=list, args=(engine.run(jobs(8, first=first)),)) for first in (0, 100)]
        threads[0].start()
        while not transfers.started:
            time.sleep(0.001)
        threads[1].start()
        while transfers.wakes < 2:  # until its jobs have reached the engine
            time.sleep(0.001)
        both.set()
        while len(transfers.started) < 16:
            time.sleep(0.001)
        for number in urls(transfers):
            transfers.release(f"{URL}/{number}")
        for thread in threads:
            thread.join()
        assert urls(transfers) == [0, *itertools.chain(*zip(range(1, 8), range(100, 107), strict=True)), 107]

    def test_the_limit_reaches_the_transfers(self, engine_of):
        """They are opened once, with one idle connection per request in flight."""
        engine, transfers = engine_of(max_in_flight=5)
        list(engine.run(jobs(1)))
        assert transfers.keep == 5


class TestCancellation:
    """Ends before all is answered."""

    def test_closing_the_iterator_cancels_what_is_in_flight(self, engine_of):
        """The requests of that run end, those of the next run are sent."""
        engine, transfers = engine_of(lambda url, _: None if int(url.rpartition("/")[2]) in range(1, 8) else FINE)
        outcomes = engine.run(jobs(8))
        assert next(outcomes) == (0, FINE)
        outcomes.close()
        assert list(engine.run(jobs(1, first=9))) == [(9, FINE)]
        assert sorted(transfers.cancelled) == [f"{URL}/{key}" for key in range(1, 8)]

    def test_an_error_of_the_source_cancels_too(self, engine_of):
        """It is raised in the caller's thread."""

        def failing():
            yield from jobs(8)
            raise LookupError("no more")

        engine, _ = engine_of()
        with pytest.raises(LookupError, match="no more"):
            list(engine.run(failing()))
        assert list(engine.run(jobs(1))) == [(0, FINE)]

    def test_closing_the_engine_ends_its_runs(self, engine_of):
        """A caller that waits for an answer gets ClosedError, and so does a later run."""
        engine, transfers = engine_of(lambda *_: None)

        def close():
            while not transfers.started:
                threading.Event().wait(0.001)
            engine.close()

        closer = threading.Thread(target=close)
        closer.start()
        with pytest.raises(ClosedError, match="closed"):
            list(engine.run(jobs(1)))
        closer.join()
        assert transfers.closed.is_set()
        with pytest.raises(ClosedError):
            engine.run(jobs(1))

    def test_an_error_of_the_thread_ends_its_runs(self, engine_of):
        """Each caller gets it, also one whose jobs the thread has not taken yet, and each later one."""
        engine, transfers = engine_of(lambda *_: None)
        given, wait = threading.Event(), transfers.wait

        def failing(seconds):
            if not transfers.busy:
                return wait(seconds)
            given.wait(5.0)
            raise MemoryError

        transfers.wait = failing
        caught = queue.SimpleQueue()

        def run(wanted):
            try:
                list(engine.run(wanted))
            except MemoryError as error:
                caught.put(error)

        threads = [threading.Thread(target=run, args=(jobs(1, first=first),)) for first in (0, 100)]
        threads[0].start()
        while not transfers.started:
            time.sleep(0.001)
        threads[1].start()
        while transfers.wakes < 2:
            time.sleep(0.001)
        begun = time.monotonic()
        given.set()
        assert [type(caught.get(timeout=5.0)) for _ in threads] == [MemoryError] * 2
        assert time.monotonic() - begun < 0.9  # without waiting for the next look whether the engine is closed
        assert transfers.closed.wait(5.0)
        with pytest.raises(MemoryError):
            engine.run(jobs(1))

    def test_a_thread_that_cannot_start_is_an_error_of_its_run_only(self, engine_of, monkeypatch):
        """A later run starts the thread."""

        def failing(_):
            raise RuntimeError("can't start new thread")

        engine, transfers = engine_of()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", failing)
            with pytest.raises(RuntimeError, match="thread"):
                list(engine.run(jobs(1)))
        assert transfers.closed.is_set()
        with closing(engine.run(jobs(1))) as outcomes:
            assert next(outcomes) == (0, FINE)

    def test_an_engine_can_be_closed_while_its_thread_is_starting(self, engine_of, monkeypatch):
        """As Ctrl-C does when another thread begins its first bulk read: Python refuses to join such a thread."""
        start = threading.Thread.start

        def closing_first(thread):
            engine.close()
            start(thread)

        engine, transfers = engine_of()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", closing_first)
            with pytest.raises(ClosedError):
                list(engine.run(jobs(1)))
        assert transfers.closed.wait(5.0)
