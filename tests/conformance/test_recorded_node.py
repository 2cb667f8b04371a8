"""The recorded node itself: it answers what was recorded, makes what follows from it, and refuses everything else."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from urllib.parse import urlsplit

import pytest

from tests.conformance.recorded_node import NOT_RECORDED, Exchange, RecordedNode, _data

FILES = {
    "history": 114,
    "items": 63,
    "limits": 6,
    "python_sdk": 40,
    "raw": 97,
    "series": 19,
    "simulations": 100,
    "sweep": 2_844,
    "ts_sdk": 179,
    "views": 87,
}


def asked(node: RecordedNode, method: str, path: str, headers: dict[str, str], body: bytes = b""):
    """Send a request over HTTP and return status, content type and body."""
    connection = http.client.HTTPConnection(urlsplit(node.url).netloc, timeout=10)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("content-type"), answer.read()
    finally:
        connection.close()


def test_every_recorded_exchange_is_there(recordings):
    """Each file has as many exchanges as its index says, and no two have the same place."""
    assert {name: len(exchanges) for name, exchanges in recordings.files.items()} == FILES
    assert sum(FILES.values()) == 3_549


def test_recorded_requests_are_answered_as_recorded(recorded_node):
    """The same method, path, headers and body give the recorded status, headers and bytes."""
    for exchange in recorded_node.exchanges:
        found = recorded_node.find(exchange.method, exchange.path, exchange.headers, exchange.body)
        assert found is not None, exchange
        assert (found.status, found.answer) == (exchange.status, exchange.answer), exchange


def test_one_of_each_kind_goes_over_http(recorded_node):
    """JSON, BCS and an error come over the socket as recorded."""
    sent = [next(e for e in recorded_node.exchanges if e.status == status and e.in_bcs is bcs and e.body and e.method == "POST")
            for status, bcs in ((200, False), (200, True), (400, False))]  # fmt: skip
    for one in sent:
        headers = {name: value for name, value in one.headers.items() if name != "content-length"}
        got = asked(recorded_node, one.method, one.path, headers, one.body)
        assert got == (one.status, one.answer_headers["content-type"], one.answer)


def test_what_was_not_recorded_is_refused_and_listed(recordings):
    """404 with a code of its own; the node has a list of such requests."""
    with RecordedNode(recordings.of("raw"), recordings.history).serving() as node:
        wanted = b'{"function":"0x1::coin::nothing_like_it","type_arguments":[],"arguments":[]}'
        status, _, body = asked(node, "POST", "/v1/view", {"content-type": "application/json"}, wanted)
        assert (status, json.loads(body)["error_code"]) == (404, NOT_RECORDED)
        assert [one.body for one in node.unanswered] == [wanted]


@pytest.mark.parametrize(
    ("sent", "recorded"),
    [
        (b'{"arguments":[],"function":"0x1::m::f"}', b'{"function": "0x1::m::f", "arguments": []}'),
        (b'{"function":"0x01::m::f","arguments":["0x0b0b"]}', b'{"function":"0x1::m::f","arguments":["0xb0b"]}'),
    ],
)
def test_requests_of_one_meaning_are_one(recordings, sent, recorded):
    """The order of fields, spacing and leading zeros of addresses do not matter."""
    headers = {"content-type": "application/json"}
    exchange = Exchange("made", 0, "POST", "/v1/view", headers, recorded, 200, {"x-aptos-ledger-version": "315"}, b"[]")
    node = RecordedNode([exchange], recordings.history)
    assert node.find("POST", "/v1/view", headers, sent) is exchange
    assert node.find("POST", "/v1/view", headers, sent.replace(b"::f", b"::g")) is None
    assert node.find("POST", "/v1/view?ledger_version=1", headers, sent) is None
    assert node.find("POST", "/v1/view", headers | {"accept": "application/x-bcs"}, sent) is None


def test_made_answers_equal_the_recorded_ones(recordings):
    """Transactions, blocks, modules and resources made from the write sets equal every recorded read of them."""
    counts: Counter[str] = Counter()
    for exchange in recordings.of("history", "series"):
        history = recordings.longer_history if exchange.group == "series" else recordings.history
        base = Exchange("made", 0, "GET", "/v1", {}, b"", 200, {"x-aptos-ledger-version": str(history.head)}, b"{}")
        node = RecordedNode([base], history)
        status, _, body = node.answer(exchange.method, exchange.path, exchange.headers, exchange.body)
        code = exchange.json.get("error_code") if exchange.status >= 400 else None
        if code is not None:
            assert (status, json.loads(body)["error_code"]) == (exchange.status, code), exchange
        elif status == 404 and json.loads(body)["error_code"] == NOT_RECORDED:
            counts["recorded only"] += 1
            continue
        else:
            assert json.loads(body) == exchange.json, exchange
        counts[exchange.path.split("/")[2].split("?")[0]] += 1
    assert counts == {"transactions": 27, "blocks": 28, "accounts": 68, "recorded only": 10}
    print(dict(counts))  # counts in the output


def test_modules_and_schedule_change_at_the_versions_of_the_index(recordings):
    """`weights` from 53 and 137, `lab` from 56, 158 and 503, the schedule from 179 and 707; nothing else changes them."""
    history = recordings.longer_history
    places = {"lab": "0x34bf7e2d17674feb234371a7ea58efd715f0e56ba20ebf13789480d9d643afaf",
              "weights": "0x5312c76580194734d0aeac1dc9c670e647d6ff8cb4ae9c0a9570b3d7cb98d5e1"}  # fmt: skip
    found = {name: _changes(lambda at, n=name: history.module(places[n], n, at), history.head) for name in places}
    assert found == {"lab": [56, 158, 503], "weights": [53, 137]}
    schedule = _changes(lambda at: history.resource("0x1", "0x1::gas_schedule::GasScheduleV2", at), history.head)
    assert schedule == [0, 179, 707]


def _changes(read, head):
    """Return the versions at which what is read differs from the version before."""
    values = [None, *(read(version) for version in range(head + 1))]
    return [version for version in range(head + 1) if values[version] != values[version + 1]]


def test_no_request_is_recorded_with_two_answers(recorded_node):
    """Requests that are equal byte by byte, headers included, have one answer, so the order of files does not matter."""
    answers: dict[object, set[object]] = {}
    for e in recorded_node.exchanges:
        key = (e.method, e.path, e.headers.get("accept"), e.headers.get("content-type"), e.body)
        answers.setdefault(key, set()).add((e.status, e.answer))
    assert all(len(found) == 1 for found in answers.values())


def test_bodies_are_read_as_text_or_hex():
    """A recorded body is text, hex or nothing."""
    assert [_data(one) for one in ({"text": "é"}, {"hex": "00ff"}, None)] == ["é".encode(), b"\x00\xff", b""]
