"""The recorded node itself: what it makes follows from what was recorded."""

from __future__ import annotations

import json
from collections import Counter

from tests.conformance.recorded_node import NOT_RECORDED, Exchange, RecordedNode

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


def test_every_recorded_exchange_is_there(recordings):
    """Each file has as many exchanges as its index says, and no two have the same place."""
    assert {name: len(exchanges) for name, exchanges in recordings.files.items()} == FILES
    assert sum(FILES.values()) == 3_549


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
        elif exchange.path.split("?")[0].endswith("/resources"):  # in the order of the node's keys
            assert sorted(json.loads(body), key=_type_of) == sorted(exchange.json, key=_type_of), exchange
        else:
            assert json.loads(body) == exchange.json, exchange
        counts[exchange.path.split("/")[2].split("?")[0]] += 1
    assert counts == {"transactions": 27, "blocks": 28, "accounts": 69, "recorded only": 9}
    print(dict(counts))  # counts in the output


def _type_of(resource):
    return resource["type"]


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
