"""Single requests over the bulk engine, so that both ways to the network are tested by the same tests."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from toolkit.client._engine import BulkEngine
from toolkit.client._http import NO_CREDENTIALS, Answer, Credentials, Request, RetryPolicy

ONCE = RetryPolicy(attempts=1)


class EngineTransport:
    """A transport that sends each request over a `BulkEngine`, without repeats."""

    def __init__(self, credentials: Credentials = NO_CREDENTIALS, **settings: Any) -> None:
        self._engine = BulkEngine(credentials, **settings)

    def send(self, request: Request) -> Answer:
        with closing(self._engine.run([(None, request)], retry=ONCE)) as outcomes:
            [(_, outcome)] = outcomes
        if isinstance(outcome, Answer):
            return outcome
        raise outcome

    def close(self) -> None:
        self._engine.close()
