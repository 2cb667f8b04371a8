"""The embedded node answers recorded requests as the real node did: kind of answer, status, error code and ledger headers."""

from __future__ import annotations

import json
import re
from collections import Counter
from http.client import HTTPConnection
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.conformance.lab import ALICE, Lab, LaterLab, Weights
from toolkit import embedded

HEADERS = (
    "chain-id",
    "ledger-version",
    "ledger-oldest-version",
    "ledger-timestampusec",
    "epoch",
    "block-height",
    "oldest-block-height",
    "gas-used",
)
OF_THE_RECORDED_LEDGER = re.compile(r"0x(34bf7e2d|5312c765)")
NOT_SERVED = re.compile(r"/v1/(transactions($|\?$|/encode_submission|/wait)|spec)|/events/|^/$")
OF_A_REAL_VM = "EXECUTION_LIMIT_REACHED"
"""The gas of loops is that of a VM; the embedded model is calibrated elsewhere."""
STRUCTURAL = re.compile("Simulated transaction invalid: |^parse request payload error: ")
"""Texts about a request alone, whose function and sender do not matter."""

HANDLES = ("4e1b9a69", "c46e7189", "84cf7cdd")
"""Starts of the recorded handles of the tables `items`, `by_key` and `names`."""
FIRST, ITEMS, SECOND, HEAD = 56, 59, 158, 315
"""Recorded versions at which `lab` was published, got items and was upgraded, and the head."""


class Served(NamedTuple):
    """An embedded node, and where the recorded ledger's versions and tables are on it."""

    host: str
    versions: dict[int, int]
    handles: tuple[str, ...]

    def path(self, exchange):
        """Return a recorded path for this node: with its versions and handles."""
        path = exchange.path
        asked = re.search(r"ledger_version=(\d+)$", path)
        if asked and int(asked[1]) <= HEAD:
            before = max(version for version in self.versions if version <= int(asked[1]))
            path = path.replace(asked[0], f"ledger_version={self.versions[before]}")
        elif asked:
            path = path.replace(asked[0], "ledger_version=1000000000")
        for recorded, handle in zip(HANDLES, self.handles, strict=True):
            path = re.sub(rf"(?i)/tables/(0x)?{recorded}[0-9a-f]+/", f"/tables/{handle}/", path)
        return path


@pytest.fixture(scope="module")
def served():
    ledger = embedded.Ledger.with_history(seed=7, versions=400, cache=True)
    versions = {0: 0}
    ledger.publish(Weights)
    versions[FIRST] = ledger.publish(Lab).version
    versions[ITEMS] = ledger.commit(f"{ALICE}::lab::put", 2, "name2", sender=ALICE).version
    versions[SECOND] = ledger.publish(LaterLab).version
    tables = ledger.resource(ALICE, f"{ALICE}::lab::Lab")
    handles = tuple(tables[name]["handle"] for name in ("items", "by_key", "names"))
    with embedded.serve(ledger) as url:
        yield Served(urlsplit(url).netloc, versions, handles)


@pytest.fixture
def host(served):
    return served.host


def ask(host, exchange, path=None):
    """Send a recorded request and return status, header names and body."""
    connection = HTTPConnection(host, timeout=10)
    headers = {name: value for name, value in exchange.headers.items() if name != "content-length"}
    connection.request(
        exchange.method, path or exchange.path, exchange.body if exchange.method == "POST" else None, headers
    )
    answer = connection.getresponse()
    names = {name.lower() for name, _ in answer.getheaders()}
    body = answer.read()
    connection.close()
    return answer.status, names, body


def message_of(body):
    """Return the message of an error body, or None."""
    try:
        content = json.loads(body)
    except ValueError:
        return None
    return content.get("message") if isinstance(content, dict) and "error_code" in content else None


def kind_of(status, names, body):
    """Return the kind of an answer: status, error code, whether there is a VM code, and which ledger headers came."""
    error = None
    if message_of(body) is not None:
        content = json.loads(body)
        error = content["error_code"], content["vm_error_code"] is not None
    return status, error, tuple(name for name in HEADERS if any(one.endswith(f"-{name}") for one in names))


def test_every_recorded_request_is_answered_with_the_same_kind(recordings, host):
    """Requests that do not depend on the recorded ledger differ in no status, error code or ledger header."""
    compared, differing = 0, []
    for exchange in recordings.of("raw", "limits", "simulations", "views", "items"):
        local = OF_THE_RECORDED_LEDGER.search(exchange.path + exchange.body.decode("latin-1"))
        text = message_of(exchange.answer)
        if exchange.method == "OPTIONS" or NOT_SERVED.search(exchange.path):
            continue
        if local and not (text and STRUCTURAL.search(text)):
            continue
        if "/tables/" in exchange.path and exchange.status in {200, 404, 500}:
            continue  # what a recorded table holds
        real = kind_of(exchange.status, set(exchange.answer_headers), exchange.answer)
        answer = ask(host, exchange)
        compared += 1
        if real != kind_of(*answer):
            differing.append((str(exchange), real, kind_of(*answer)))
    assert not differing, differing[:5]
    assert compared > 130, compared


def test_every_recorded_refusal_has_the_same_kind(recordings, served):
    """Of 936 refusals 652 are of the same kind.

    Not compared: 279 limits of a real VM, and five submitted transactions, which the embedded node does not accept.
    """
    compared = Counter()
    for exchange in recordings:
        text = message_of(exchange.answer)
        if text is None:
            continue
        if OF_A_REAL_VM in text:
            compared["limits"] += 1
            continue
        if exchange.path == "/v1/transactions":
            compared["submissions"] += 1
            continue
        real = kind_of(exchange.status, set(exchange.answer_headers), exchange.answer)
        answer = ask(served.host, exchange, served.path(exchange))
        assert kind_of(*answer) == real, (str(exchange), answer[2])
        compared["kinds"] += 1
    print(dict(compared))  # counts in the output
    assert compared == {"kinds": 652, "limits": 279, "submissions": 5}
