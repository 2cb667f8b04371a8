"""The embedded node answers recorded requests as the real node did: kind of answer, and text where it is stable."""

from __future__ import annotations

import json
import re
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

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
RUST_DEBUG = re.compile(r"Reference \{")
STRUCTURAL = re.compile("Simulated transaction invalid: |^parse request payload error: ")
"""Texts about a request alone, whose function and sender do not matter."""


@pytest.fixture(scope="module")
def host():
    with embedded.serve(embedded.Ledger.with_history(seed=7, versions=500)) as url:
        yield urlsplit(url).netloc


def ask(host, exchange):
    """Send a recorded request and return status, header names and body."""
    connection = HTTPConnection(host, timeout=10)
    headers = {name: value for name, value in exchange.headers.items() if name != "content-length"}
    connection.request(exchange.method, exchange.path, exchange.body if exchange.method == "POST" else None, headers)
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


def plain(text):
    """Return a text without its numbers and addresses."""
    return re.sub(r"\d+(\.\d+)?", "N", re.sub(r"0x[0-9a-fA-F]+|[0-9a-f]{64}", "H", text))


def test_every_recorded_request_is_answered_with_the_same_kind_and_text(recordings, host):
    """Requests that do not depend on the recorded ledger differ in no status, code, ledger header or stable text."""
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
        elif text and not RUST_DEBUG.search(text) and plain(text) != plain(message_of(answer[2])):
            differing.append((str(exchange), text, message_of(answer[2])))
    assert not differing, differing[:5]
    assert compared > 130, compared
