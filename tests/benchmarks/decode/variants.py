"""One decoder in a fresh process: ``python variants.py NAME FILE`` prints its time, its peak memory and its sums as JSON.

Every variant turns the file into three Arrow tables with exact integers, every ``data`` kept whole; those marked
parse only give what the parser alone costs. Imports and the reading of the file are not counted.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

CHANGE_KEYS = ("tx", "ix", "type", "address", "state_key_hash", "handle", "resource", "key", "value", "data")
U64 = ("version", "gas_used", "max_gas_amount", "gas_unit_price", "sequence_number", "timestamp", "creation_number")


def import_arrow() -> None:
    """Import what building arrays imports: the first `pyarrow.array` of a list imports pandas, if it is there."""
    import pyarrow as pa

    pa.array(["x"])


def load_toolkit() -> Any:
    """The package: rows of 27, 14 and 8 columns, addresses canonical, hex as bytes, gas split, typed Arrow tables."""
    import_arrow()
    from toolkit.frames._schema import CHANGES, EVENTS, TRANSACTIONS
    from toolkit.wire._rows import transaction_rows
    from toolkit.wire._transactions import decode_transactions

    schemas = (TRANSACTIONS, CHANGES, EVENTS)

    def run(body: bytes, path: str) -> list[Any]:
        rows = transaction_rows(decode_transactions(body))
        rows.transactions["timestamp"] = rows.transactions.pop("timestamp_us")
        return [
            schema.table({name: part[name] for name in schema.names if name in part})
            for schema, part in zip(schemas, rows, strict=True)
        ]

    return run


def load_msgspec_parse_only() -> Any:
    """The typed decoding alone, no rows."""
    from toolkit.wire._transactions import decode_transactions

    return lambda body, _: [decode_transactions(body)]


def load_json_normalize() -> Any:
    """What a user of pandas would write; its many columns stay text but for the u64 ones."""
    import pandas as pd

    def run(body: bytes, path: str) -> list[Any]:
        parsed = json.loads(body)
        nested = ("changes", "events", "signature")
        t = pd.json_normalize([{k: v for k, v in x.items() if k not in nested} for x in parsed])
        c = pd.json_normalize(
            [{"tx": i, "ix": j, **v} for i, x in enumerate(parsed) for j, v in enumerate(x["changes"])]
        )
        e = pd.json_normalize(
            [{"tx": i, "ix": j, **v} for i, x in enumerate(parsed) for j, v in enumerate(x["events"])]
        )
        for name in U64[:-1]:
            t[name] = t[name].astype("uint64")
        for name in ("sequence_number", "guid.creation_number"):
            e[name] = e[name].astype("uint64")
        return [t, c, e]

    return run


def load_duckdb() -> Any:
    """read_json with explicit columns, data as JSON, two threads, from the file of one transaction a line."""
    import duckdb

    change = ", ".join(f'"{name}" VARCHAR' for name in ("type", *CHANGE_KEYS[3:-1]))
    columns = {
        **dict.fromkeys(("version", "gas_used", "max_gas_amount", "gas_unit_price"), "UBIGINT"),
        **dict.fromkeys(("sequence_number", "timestamp"), "UBIGINT"),
        **dict.fromkeys(("hash", "vm_status", "sender"), "VARCHAR"),
        "success": "BOOLEAN",
        "payload": 'STRUCT("function" VARCHAR)',
        "changes": f"STRUCT({change}, data JSON)[]",
        "events": (
            "STRUCT(guid STRUCT(creation_number UBIGINT, account_address VARCHAR), "
            'sequence_number UBIGINT, "type" VARCHAR, data JSON)[]'
        ),
    }
    spelled = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
    write = "c.type = 'write_resource'"

    def run(body: bytes, path: str) -> list[Any]:
        connection = duckdb.connect()
        connection.execute("SET threads = 2")
        connection.execute(
            "CREATE TEMP TABLE r AS SELECT row_number() OVER () - 1 AS tx, * "  # noqa: S608  # a path of ours
            f"FROM read_json('{path}.nd', format = 'newline_delimited', maximum_object_size = 67108864, "
            f"columns = {{{spelled}}})"
        )

        def table(query: str) -> Any:
            return connection.sql(query).to_arrow_table()

        return [
            table("SELECT * EXCLUDE (changes, events, payload), payload.function FROM r ORDER BY tx"),
            table(
                "WITH x AS (SELECT tx, unnest(changes) c, generate_subscripts(changes, 1) - 1 AS ix FROM r) "  # noqa: S608  # constants
                "SELECT tx, ix, c.type, c.address, c.state_key_hash, c.handle, "
                f"coalesce(c.resource, CASE WHEN {write} THEN c.data->>'$.type' END) resource, c.key, c.value, "
                f"CASE WHEN {write} THEN c.data->'$.data' ELSE c.data END AS data FROM x"
            ),
            table(
                "WITH x AS (SELECT tx, unnest(events) e, generate_subscripts(events, 1) - 1 AS ix FROM r) "
                "SELECT tx, ix, e.guid.creation_number, e.guid.account_address, e.sequence_number, e.type, e.data FROM x"
            ),
        ]

    return run


VARIANTS = {name.removeprefix("load_"): load for name, load in list(globals().items()) if name.startswith("load_")}


def sums(result: list[Any]) -> list[int] | None:
    """Return row counts and an exact sum, by which variants are compared; None for what parses only."""
    if len(result) != 3:
        return None
    gas = result[0]["gas_used"]
    values = gas.to_pylist() if hasattr(gas, "to_pylist") else gas.tolist()
    return [len(part) for part in result] + [sum(values)]


def peak_kib(*, reset: bool = False) -> int:
    """Return the peak of resident memory in KiB; `reset` sets it to what is resident now, where the system can."""
    if reset and sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(name: str, path: str) -> dict[str, Any]:
    """Run one variant once."""
    run = VARIANTS[name]()
    body = Path(path).read_bytes()
    before = peak_kib(reset=True)
    started, started_cpu = time.perf_counter(), time.process_time()
    result = run(body, path)
    seconds, cpu = time.perf_counter() - started, time.process_time() - started_cpu
    peak_mb = (peak_kib() - before) * 1024 / 1e6
    return {"seconds": seconds, "cpu": cpu, "peak_mb": peak_mb, "file_mb": len(body) / 1e6, "sums": sums(result)}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2])))
