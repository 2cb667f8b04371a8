"""Rows per second of cached pinned reads in bulk, beside raw SQLite in the same interleaved rounds.

Run with ``python tests/benchmarks/cache/run.py [entries]``; not part of the timed suite. The bar is 15,000 typed rows
a second: keys taken, answers found, JSON decoded by layout, one typed frame at the end.
"""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import msgspec

from toolkit.client._cache import AnswerCache, key
from toolkit.client._http import Answer
from toolkit.frames._calls import ViewRecord, view_frame
from toolkit.move import UInt, decode_json
from toolkit.wire._headers import parse_headers

READ = 10_000
ROUNDS = 5
LEDGER = {
    "X-APTOS-CHAIN-ID": "1",
    "X-APTOS-LEDGER-VERSION": "2500000000",
    "X-APTOS-LEDGER-OLDEST-VERSION": "0",
    "X-APTOS-LEDGER-TIMESTAMPUSEC": "1700000000123456",
    "X-APTOS-EPOCH": "9000",
    "X-APTOS-BLOCK-HEIGHT": "250000000",
    "X-APTOS-OLDEST-BLOCK-HEIGHT": "0",
    "X-APTOS-GAS-USED": "7",
    "Content-Type": "application/json",
}
BODY = json.dumps(
    {
        "function": "0x1::coin::balance",
        "type_arguments": ["0x1::aptos_coin::AptosCoin"],
        "arguments": ["0x" + "3f" * 32],
    }
).encode()
U64 = UInt(64)


def key_of(version):
    """Take the key the way the client does: from the bytes on the wire."""
    return key(
        1, version, "POST", "/view", BODY, content_type="application/json", build="4f2", accept="application/json"
    )


def answer_of(version):
    """Make a node's answer."""
    return Answer(200, LEDGER, b'["%d"]' % (version * 1_000_003))


def typed(versions, found):
    """Turn answers into a typed frame, the way the client does."""
    records = []
    for version, answer in zip(versions, found, strict=True):
        headers = parse_headers(answer.headers)
        values = (decode_json(U64, msgspec.json.decode(answer.body)[0]),)
        records.append(
            ViewRecord(
                None, version, headers.ledger.version, headers.gas_used, values, (U64,), answer.body.decode(), None
            )
        )
    return view_frame(records)


def raw_file(path, versions):
    """Fill the plainest SQLite cache there is: the limit to compare with."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute("create table c (k blob primary key, body blob) without rowid")
    db.execute("begin")
    db.executemany("insert into c values (?, ?)", ((key_of(v), answer_of(v).body) for v in versions))
    db.execute("commit")
    return db


def timed(times, name, function):
    """Call once, keep the seconds, return the result."""
    start = time.perf_counter()
    result = function()
    times.setdefault(name, []).append(time.perf_counter() - start)
    return result


def one_round(times, cache, db, versions):
    """Read the same versions each way, and check what came."""
    keys = timed(times, "keys", lambda: [key_of(v) for v in versions])
    raw = timed(times, "raw", lambda: [db.execute("select body from c where k = ?", (k,)).fetchone()[0] for k in keys])
    single = timed(times, "get", lambda: [cache.get(k) for k in keys])
    many = timed(times, "get_many", lambda: cache.get_many(keys))

    def whole():
        found = cache.get_many(wanted := [key_of(v) for v in versions])
        return typed(versions, [found[k] for k in wanted])

    frame = timed(times, "typed frame", whole)
    expected = [answer_of(v).body for v in versions]
    if raw != expected or [a.body for a in single] != expected or [many[k].body for k in keys] != expected:
        raise SystemExit("an answer differs")
    if frame["value"].tolist() != [v * 1_000_003 for v in versions] or str(frame["value"].dtype) != "uint64[pyarrow]":
        raise SystemExit("the frame differs")


def main(entries):
    """Print one line a way: rows/s, median of the rounds with the least and the most."""
    with tempfile.TemporaryDirectory() as folder, AnswerCache(Path(folder) / "answers.sqlite3") as cache:
        start = time.perf_counter()
        for version in range(entries):
            cache.put(key_of(version), answer_of(version))
        cache.flush()
        put = entries / (time.perf_counter() - start)
        size = cache.stats().size_bytes / entries
        times = {}
        with closing(raw_file(Path(folder) / "raw.db", range(entries))) as db:
            for number in range(ROUNDS):
                sample = sorted(random.Random(number).sample(range(entries), READ))
                one_round(times, cache, db, sample)
    print(
        f"{entries:,} entries, {size:.0f} bytes each, put {put:,.0f}/s (keys included); {READ:,} read, {ROUNDS} rounds"
    )
    base = statistics.median(times["raw"])
    for name, found in times.items():
        middle = statistics.median(found)
        speeds = f"{READ / middle:10,.0f} rows/s ({READ / max(found):,.0f}-{READ / min(found):,.0f})"
        print(f"  {name:12} {speeds:40} {base / middle:5.2f} x raw SQLite, one select a key")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
