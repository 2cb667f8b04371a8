"""Recorded executions of the real machine, run again and compared to the last entry of the gas log.

As a script, it prints the table of groups: ``python tests/conformance/recorded_executions.py [--differences] [ID ...]``.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from toolkit import vm

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "executions"
FILES = [
    "opcodes",
    "opcodes_more",
    "bytecode",
    "natives",
    "state",
    "transactions",
    "transactions-2",
    "features",
    "simulations",
    "gas",
    "gas_more",
    "scenarios",
    "types",
    "edges",
    "system",
]


def lines(name: str) -> list[dict[str, Any]]:
    """Return the records of a file."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@cache
def _shared_values() -> tuple[dict[str, bytes], dict[str, bytes]]:
    modules = {one["sha256"]: bytes.fromhex(one["bytecode"]) for one in lines("modules")}
    blobs = {one["sha256"]: bytes.fromhex(one["hex"]) for one in lines("blobs")}
    return modules, blobs


def value_of(value: Any) -> bytes | None:
    """Return a value of a recording: hex, a module or a blob."""
    modules, blobs = _shared_values()
    if isinstance(value, dict):
        return blobs[value["blob"]] if "blob" in value else modules[value["module"]]
    return None if value is None else bytes.fromhex(value)


def reader(record: dict[str, Any]) -> Any:
    """Return the state that an execution read; anything else is an error of the machine."""
    state = {}
    for key, value, metadata in record["reads"]:
        raw = value_of(value)
        state[bytes.fromhex(key)] = None if raw is None else (raw, metadata)

    def read(key: bytes) -> tuple[bytes, Any] | None:
        if key not in state:
            raise LookupError(f"the recorded execution did not read {key[33:].decode('ascii', 'replace')}")
        return state[key]

    return read


def run(record: dict[str, Any], *, log: bool = True) -> Any:
    """Run a recorded execution."""
    if record["kind"] == "view":
        call = record["view"]
        arguments = [bytes.fromhex(one) for one in call["args"]]
        usage = record.get("usage")
        return vm.run_view(
            call["function"],
            call["type_arguments"],
            arguments,
            reader(record),
            max_gas=record["max_gas"],
            log=log,
            usage=usage and tuple(usage),
        )
    if record["kind"] not in {"transaction", "simulation"}:
        raise vm.Unsupported(f"{record['kind']} transactions")
    return vm.execute(
        value_of(record["transaction"]),
        reader(record),
        simulate=record["kind"] == "simulation",
        log=log,
        transaction_index=record.get("transaction_index"),
    )


def expanded(entries: list[str]) -> list[str]:
    """Return log lines without the counts of repeated lines."""
    found = []
    for line in entries:
        count, _, rest = line.partition(" ")
        if count.endswith("x") and count[:-1].isdigit():
            found += [rest] * int(count[:-1])
        else:
            found.append(line)
    return found


def _status(status: Any) -> dict[str, Any]:
    if status.kind == "discard":
        return {"discard": status.code}
    found = {"kept": status.kind}
    if status.kind == "abort":
        info = {"reason": status.reason, "description": status.description} if status.reason else None
        found |= {"location": status.location, "code": status.code, "info": info}
    elif status.kind == "execution_failure":
        found |= {"location": status.location, "function": status.function, "offset": status.offset}
    elif status.kind == "miscellaneous_error":
        found["code"] = status.code
    return found


def differences(record: dict[str, Any], done: Any) -> list[str]:
    """Return what an execution did differently."""
    output, found = record["output"], []

    def compare(what: str, got: Any, want: Any) -> None:
        if got != want:
            found.append(f"{what}: got {str(got)[:300]}, want {str(want)[:300]}")

    if record["kind"] == "view":
        _compare_view(compare, output, done)
    else:
        want = {key: value for key, value in output["status"].items() if key != "number"}
        compare("status", _status(done.status), want)
        events = [
            [one.type, one.key.hex() if one.key is not None else None, one.sequence_number, one.data.hex()]
            for one in done.events
        ]
        wanted = [[*event[:3], _hex(event[3])] for event in output.get("events", [])]
        compare("events", events, wanted)
        writes = [
            [key.hex(), one.op, one.value.hex() if one.value is not None else None, one.metadata and list(one.metadata)]
            for key, one in done.writes.items()
        ]
        wanted = [[key, op, _hex(value), metadata] for key, op, value, metadata in output.get("write_set", [])]
        for got, want in zip(writes, wanted, strict=False):
            compare("write", got, want)
        compare("writes", len(writes), len(wanted))
    compare("gas used", done.gas_used, output["gas_used"])
    if record.get("gas_log"):
        _compare_log(compare, record["gas_log"], done)
    return found


def _hex(value: Any) -> str | None:
    raw = value_of(value)
    return None if raw is None else raw.hex()


def _compare_view(compare: Any, output: dict[str, Any], done: Any) -> None:
    status = output.get("status")
    compare("values", [one.hex() for one in done.values], output.get("values", []))
    if status is None:
        compare("status", done.status.kind, "success")
    elif "execution" in status:
        compare("status", _status(done.status), status["execution"])
    else:
        # Where the node's text is a backtrace, only the code can be compared.
        compare("status", done.status.code, status["code"])
        if "backtrace" not in status["message"]:
            compare("message", done.status.message, status["message"])


def _compare_log(compare: Any, log: dict[str, Any], done: Any) -> None:
    got, want = [str(entry) for entry in done.log], expanded(log["ops"])
    for at, (mine, theirs) in enumerate(zip(got, want, strict=False)):
        if mine != theirs:
            compare(f"log line {at}", mine, theirs)
            break
    compare("log lines", len(got), len(want))
    totals = log["totals"]
    compare("memory left", done.memory_left, totals["memory_quota_left"])
    if hasattr(done, "fee"):
        compare("storage fee", done.fee.storage_fee_octas, totals["storage_fee_octas"])


def outcome(record: dict[str, Any], *, log: bool = True) -> tuple[str, str]:
    """Return ``equal``, ``unsupported`` or ``different``, and why."""
    try:
        done = run(record, log=log)
    except vm.Unsupported as error:
        return "unsupported", str(error)
    except Exception as error:  # noqa: BLE001 - an error of the machine is a difference
        import traceback

        place = traceback.extract_tb(error.__traceback__)[-1]
        return "different", f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
    found = differences(record if log else {**record, "gas_log": None}, done)
    return ("different", "; ".join(found)) if found else ("equal", "")


def main(arguments: list[str]) -> None:
    """Print the table of groups, and the differences if asked to."""
    show = "--differences" in arguments
    wanted = [one for one in arguments if not one.startswith("--")]
    table: dict[str, Counter[str]] = {}
    for name in FILES:
        for record in lines(name):
            if wanted and record["id"] not in wanted and name not in wanted:
                continue
            kind, why = outcome(record)
            table.setdefault(record["group"], Counter())[kind] += 1
            if show and kind != "equal":
                print(record["id"], kind, record["note"][:60], "|", why[:700], flush=True)
    print(f"{'group':14} {'all':>5} {'equal':>6} {'unsupported':>11} {'different':>9}")
    for group, counts in table.items():
        print(f"{group:14} {counts.total():5} {counts['equal']:6} {counts['unsupported']:11} {counts['different']:9}")
    whole = sum(table.values(), Counter())
    print(f"{'all':14} {whole.total():5} {whole['equal']:6} {whole['unsupported']:11} {whole['different']:9}")


if __name__ == "__main__":
    main(sys.argv[1:])
