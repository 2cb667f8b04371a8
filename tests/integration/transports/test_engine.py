"""The bulk engine against a local server: all answered, bounded, paced, repeated, cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
import time
import warnings

import pytest

from tests.integration.transports.conftest import KEY
from tests.integration.transports.servers import FINE
from toolkit.client._engine import BulkEngine
from toolkit.client._http import Answer, Credentials, Pace, Request
from toolkit.errors import ClosedError, HopelessError


@pytest.fixture
def engine():
    made = BulkEngine(Credentials(KEY), timeout_s=30, max_in_flight=8)
    yield made
    made.close()


def jobs(server, number, where="fine", **query):
    return [(key, Request("GET", server.url(where, key=key, **query))) for key in range(number)]


EARLIER: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def earlier_threads():
    """Note the engines that other tests of this process have left running: nodes live until they are collected."""
    EARLIER.clear()
    EARLIER.update(threading.enumerate())


def bulk_threads():
    return [thread for thread in threading.enumerate() if thread.name == "toolkit-bulk" and thread not in EARLIER]


def ended_within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_each_job_is_answered_once(server, engine):
    """Five hundred jobs over at most eight connections, five hundred answers, each under its key."""
    answers = list(engine.run(jobs(server, 500)))
    assert sorted(key for key, _ in answers) == list(range(500))
    assert {answer.body for _, answer in answers} == {FINE}
    assert len(server.seen) == 500
    assert server.connections <= 8
    assert set(server.authorizations()) == {f"Bearer {KEY}"}


def test_each_answer_is_its_own_requests(server, engine):
    """Bodies and keys are not mixed up in any order of completion."""
    posts = ((n, Request("POST", server.url("echo", n=n), b"x" * n)) for n in range(100))
    for key, answer in engine.run(posts):
        assert f'?n={key}"' in answer.body.decode()
        assert f'"Content-Length": "{key}"' in answer.body.decode()


def test_an_unread_run_sends_nothing(server, engine):
    """Jobs are pulled when the first answer is asked for."""
    engine.run(jobs(server, 5)).close()
    assert server.seen == []


def test_closing_cancels_what_is_in_flight(server, engine):
    """Eight requests hang; closing does not wait for them, their connections end, and the engine serves on."""
    answers = engine.run([*jobs(server, 1), *jobs(server, 20, "stall")])
    assert next(answers)[1].body == FINE
    assert ended_within(20, lambda: server.open >= 7)
    answers.close()
    assert not server.released.is_set()
    server.released.set()
    assert server.settled(1) <= 1
    assert len(list(engine.run(jobs(server, 20)))) == 20


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ZeroDivisionError])
def test_an_exception_in_the_loop_cancels(server, engine, kind):
    """With `closing` around it, whatever ends the loop ends the run; what had not begun never begins."""

    def interrupted():
        with contextlib.closing(engine.run([*jobs(server, 1), *jobs(server, 400, "stall")])) as answers:
            for _ in answers:
                while len(server.seen) < 9:  # the answered request's connection waits for the ninth, and has it then
                    time.sleep(0.01)
                raise kind

    with pytest.raises(kind):
        interrupted()
    server.released.set()
    assert server.settled(0) == 0
    assert len(server.seen) == 9
    assert len(list(engine.run(jobs(server, 20)))) == 20


def test_runs_of_several_threads_go_on_together(server, engine):
    """Each gets its own answers, within the common limit."""
    got = {}

    def work(name):
        got[name] = sorted(key for key, _ in engine.run(jobs(server, 50, "wait", s=0.005)))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(got.values()) == [list(range(50))] * 4
    assert server.most_open <= 8
    assert len(bulk_threads()) == 1


def test_it_works_under_a_running_loop(server, engine):
    """As in a notebook, where a loop is running already."""

    async def cell():
        return len(list(engine.run(jobs(server, 20))))

    assert asyncio.run(cell()) == 20


def test_unusable_requests_are_results(server, engine):
    """An invalid URL and a header that cannot be sent each give an outcome, and the other requests go on."""
    broken = [
        (100, Request("GET", "file:///etc/hostname")),
        (101, Request("GET", server.url("fine"), None, {"A": "b\nc"})),
    ]
    outcomes = dict(engine.run([*broken, *jobs(server, 10)]))
    assert [type(outcomes[key]) for key in (100, 101)] == [HopelessError] * 2
    assert sum(isinstance(outcome, Answer) for outcome in outcomes.values()) == 10


def paced(server, per_second):
    """Return an engine with a pace, and the pace."""
    pace = Pace(per_second)
    return BulkEngine(timeout_s=30, max_in_flight=8, pace=pace), pace


def test_turns_taken_elsewhere_are_waited_for(server):
    """An engine that shares its pace with single calls comes after the turns that they have taken."""
    engine, pace = paced(server, 50)
    begun = time.monotonic()
    with contextlib.closing(engine):
        for _ in range(10):
            pace.turn_s()
        assert len(list(engine.run(jobs(server, 2)))) == 2
    assert time.monotonic() - begun >= 0.219


def test_a_closed_engine_says_so(server, engine):
    """After close no run begins, the thread is gone and no connection is left; closing twice is fine."""
    list(engine.run(jobs(server, 5)))
    engine.close()
    engine.close()
    with pytest.raises(ClosedError, match=r"connect\(\) again"):
        engine.run(jobs(server, 1))
    assert bulk_threads() == []
    assert server.settled(0) == 0


def test_an_engine_never_used_has_no_thread():
    """The thread starts with the first request."""
    engine = BulkEngine()
    assert bulk_threads() == []
    engine.close()


def test_single_requests_run_in_the_thread_that_sends_them(server):
    """No thread is started; one connection serves them in turn, and each thread that waits has its own."""
    engine = BulkEngine(timeout_s=5)
    for _ in range(3):
        assert engine.send(Request("GET", server.url("fine"))).body == FINE
    assert (bulk_threads(), server.connections) == ([], 1)
    threads = [threading.Thread(target=engine.send, args=(Request("GET", server.url("wait", s=0.2)),)) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.connections == 2
    engine.close()
    assert server.settled(0) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a POSIX system")
def test_a_forked_child_leaves_the_connection_of_single_requests_alone(tls_server, trusted):
    """The child frees the engine, which would end the TLS connection; the parent's next request still goes over it."""
    engine = BulkEngine(timeout_s=5)
    request = Request("GET", tls_server.url("fine"))
    engine.send(request)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the server has threads, which the child does not use
        child = os.fork()
    if child == 0:
        with contextlib.suppress(ClosedError):
            engine.send(request)
        del engine
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert engine.send(request).body == FINE
    assert tls_server.connections == 1
    engine.close()


def test_an_engine_that_is_forgotten_ends_its_thread(server):
    """No thread and no socket outlives the last reference."""
    engine = BulkEngine()
    list(engine.run(jobs(server, 5)))
    assert len(bulk_threads()) == 1
    assert bulk_threads()[0].daemon
    del engine
    gc.collect()
    assert ended_within(20, lambda: not bulk_threads())
    assert server.settled(0) == 0
