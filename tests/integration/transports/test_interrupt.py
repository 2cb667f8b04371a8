"""A real interrupt (Ctrl-C) while an answer is waited for: it is raised at once and nothing is left in a bad state."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import threading
import time

import pytest

from tests.integration.transports.servers import FINE
from toolkit.client._engine import BulkEngine, Transfers
from toolkit.client._http import Request

LIMIT_S = 60


@contextlib.contextmanager
def interrupted(server, requests):
    """Send this process the signal of Ctrl-C once requests hang, and expect it long before the limit on an answer."""

    def interrupt():
        while len(server.seen) < requests:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    begun = time.monotonic()
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    thread.join()
    assert time.monotonic() - begun < LIMIT_S / 2


@pytest.mark.parametrize("where", ["stall", "pause"])
def test_a_transport_can_be_interrupted_and_used_again(server, open_transport, where):
    """Before the headers or amid the body; the half-read answer does not meet the next request."""
    transport = open_transport(timeout_s=LIMIT_S)
    with interrupted(server, 1):
        transport.send(Request("GET", server.url(where)))
    assert transport.send(Request("GET", server.url("fine"))).body == FINE


def test_a_bulk_run_can_be_interrupted_and_the_engine_used_again(server):
    """While all requests hang: what is in flight is cancelled, what had not begun never begins."""
    engine = BulkEngine(timeout_s=LIMIT_S, max_in_flight=4)
    stalled = ((key, Request("GET", server.url("stall"))) for key in range(50))
    with interrupted(server, 4), contextlib.closing(engine.run(stalled)) as answers:
        list(answers)
    server.released.set()
    assert server.settled(0) == 0
    assert len(server.seen) == 4
    assert len(list(engine.run([(0, Request("GET", server.url("fine")))]))) == 1
    engine.close()


def test_an_interrupt_while_the_thread_is_woken_does_not_stop_later_wakes():
    """At whichever line it comes."""
    transfers = Transfers(None, keep=1)
    earlier = sys.gettrace()
    at, is_interrupted = 0, True
    while is_interrupted:

        def trace(frame, event, _, at=at, lines=itertools.count()):  # noqa: B008 - one count for each function
            if frame.f_code is not Transfers.wake.__code__:
                return None
            if event == "line" and next(lines) == at:
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            transfers.wake()
            is_interrupted = False
        except KeyboardInterrupt:
            at += 1
        finally:
            sys.settrace(earlier)
        transfers.wake()
        begun = time.monotonic()
        transfers.wait(LIMIT_S / 6)
        assert time.monotonic() - begun < LIMIT_S / 12
    transfers.close()
    assert at
