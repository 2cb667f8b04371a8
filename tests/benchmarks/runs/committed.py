"""A study of the committed transactions of one function: requests, memory and time, whole and as a sample, and kill -9.

    python tests/benchmarks/runs/committed.py --transactions 1000000

A server in a process of its own makes pages of transactions of 5.4 kB, one in `--every` of which calls the function; its gas
schedule changes in the middle. Each phase is a process too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl, urlsplit
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

FUNCTION = "0x1::m::pay"
SLOT = 40_000


class Pages(asyncio.Protocol):
    """Answers GET requests: the ledger, its gas schedule, one module and its package, and transactions."""

    head = 0
    every = 1
    requests = 0
    templates: tuple[str, str] = ("", "")
    module: ClassVar[dict] = {}

    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            line = self.buffer[:end].split(b"\r\n", 1)[0].decode()
            self.buffer = self.buffer[end + 4 :]
            Pages.requests += 1
            status, body = self.answer(line.split()[1])
            head = "".join(f"{name}: {value}\r\n" for name, value in self.headers(len(body)).items())
            self.transport.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)

    def headers(self, length):
        ledger = {"VERSION": self.head, "OLDEST-VERSION": 0, "TIMESTAMPUSEC": 1_790_000_000_000_000}
        block = {"X-APTOS-EPOCH": 7, "X-APTOS-BLOCK-HEIGHT": 9, "X-APTOS-OLDEST-BLOCK-HEIGHT": 0, "X-APTOS-CHAIN-ID": 4}
        more = {"Content-Type": "application/json", "Content-Length": length}
        return {f"X-APTOS-LEDGER-{name}": value for name, value in ledger.items()} | block | more

    def answer(self, target):
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query))
        path = parts.path.removeprefix("/v1").rstrip("/")
        status, found = 200, None
        if path == "/requests":
            Pages.requests -= 1
            found = Pages.requests
        elif path == "/transactions":
            start, limit = int(query["start"]), int(query["limit"])
            return 200, f"[{','.join(map(self.transaction, range(start, min(start + limit, self.head + 1))))}]".encode()
        elif path.startswith("/transactions/by_version/"):
            return 200, self.transaction(int(path.rsplit("/", 1)[1])).encode()
        elif not path:
            found = self.state()
        elif path.endswith("GasScheduleV2"):
            found = self.schedule(int(query["ledger_version"]))
        elif path.endswith("/module/m"):
            found = self.module
        elif path.endswith("PackageRegistry"):
            package = {"name": "P", "upgrade_number": "0", "modules": [{"name": "m"}], "deps": []}
            found = {"type": "0x1::code::PackageRegistry", "data": {"packages": [package]}}
        else:
            status, found = 404, {"message": "not here", "error_code": "resource_not_found", "vm_error_code": None}
        return status, json.dumps(found).encode()

    def state(self):
        times = {"epoch": "7", "ledger_timestamp": "1790000000000000", "block_height": "9", "oldest_block_height": "0"}
        versions = {"ledger_version": str(self.head), "oldest_ledger_version": "0"}
        return {"chain_id": 4, "node_role": "full_node", "git_hash": "abc", **versions, **times}

    def schedule(self, version):
        price = "10" if version < self.head // 2 else "20"
        entries = [{"key": "instr.add", "val": price}, {"key": "txn.storage_fee_per_state_slot", "val": str(SLOT)}]
        return {"type": "0x1::gas_schedule::GasScheduleV2", "data": {"feature_version": "30", "entries": entries}}

    def transaction(self, version):
        execution = (5 if version < self.head // 2 else 9) + version * 7919 % 3
        template = self.templates[version % self.every == 0]
        filled = template.replace("HASH", f"{version:08x}").replace("VERSION", str(version))
        return filled.replace("EXECUTION", str(execution))


def templates():
    """Return the JSON of a transaction of another function, and of the function, 5.4 kB each."""
    from tests.unit.client.fakes import FEE_STATEMENT, V2_EVENT, user_transaction

    fee = {"total_charge_gas_units": "12", "execution_gas_units": "EXECUTION", "io_gas_units": "3"}
    fee |= {"storage_fee_octas": "0", "storage_fee_refund_octas": "0"}
    event = {"guid": V2_EVENT, "sequence_number": "0", "type": FEE_STATEMENT, "data": fee}
    change = {"address": "0xa11ce", "state_key_hash": "0x" + "1" * 64, "type": "write_resource"}
    change |= {"data": {"type": "0x1::m::Purse", "data": {"total": "9" * 39, "note": "n" * 180}}}
    made = []
    for function in ("0x1::m::other", FUNCTION):
        payload = {"type": "entry_function_payload", "function": function, "type_arguments": [], "arguments": ["7"]}
        signature = {"type": "ed25519_signature", "public_key": "0x" + "2" * 64, "signature": "0x" + "3" * 128}
        fields = {"type": "user_transaction", "payload": payload, "signature": signature, "events": [event]}
        one = user_transaction(0, **fields) | {"version": "VERSION", "hash": "0x" + "0" * 56 + "HASH"}
        size = len(json.dumps(change)) + 2
        one["changes"] = [change] * max(1, (5_400 - len(json.dumps(one | {"changes": []}))) // size)
        made.append(json.dumps(one))
    return tuple(made)


async def serve(transactions: int, every: int) -> None:
    """Serve a ledger with so many transactions, and print the port."""
    from tests.unit.client.fakes import function, module

    Pages.head, Pages.every, Pages.templates = transactions - 1, every, templates()
    Pages.module = module("m", functions=[function("pay", ["&signer", "u64"], is_entry=True, is_view=False)])
    server = await asyncio.get_running_loop().create_server(Pages, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def run(url: str, versions: str, out: str) -> None:
    """Run the study, and print its figures."""
    import toolkit

    began = time.perf_counter()
    with toolkit.connect(url, cache=None) as node:
        calls = {"paid": {"committed": FUNCTION, "versions": versions}}
        found = toolkit.Study(node=node, calls=calls, versions="0:0").run(out, progress=False)
    entry = found.manifest["nodes"][0]["committed_read"]
    figures = {
        "seconds": round(time.perf_counter() - began, 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "transactions_read": sum(last + 1 - first for first, last in entry["ranges"]),
        "rows": entry["rows"],
        "resumed_rows": found.manifest["resumed_rows"],
        "timeline_requests": found.timeline.attrs["requests"],
        "steps": found.steps[["version_after", "part", "gas_before", "gas_after"]].values.tolist(),
        "digest": found.manifest["rows_digest"],
    }
    print(json.dumps(figures))


@contextmanager
def server(options: argparse.Namespace):
    """Start the server; yield its URL."""
    words = [sys.executable, __file__, "--serve", "--transactions", str(options.transactions)]
    words += ["--every", str(options.every)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def child(url: str, versions: str, out: Path, *, until: int | None = None) -> dict:
    """Run the study as a process; with `until`, kill it with -9 once so many rows are written."""
    from toolkit.gas.runs._store import RunStore

    words = [sys.executable, __file__, "--url", url, "--versions", versions, "--out", str(out)]
    before = int(urlopen(f"{url}/v1/requests").read())
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as process:
        while until is not None and process.poll() is None:
            if RunStore(out).rows() >= until:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.1)
        lines = process.communicate()[0].splitlines()
    found = {"versions": versions, "killed": process.returncode == -signal.SIGKILL}
    found["requests"] = int(urlopen(f"{url}/v1/requests").read()) - before
    for line in lines:
        found |= json.loads(line)
    return found


def main() -> None:
    """Print one line of JSON per phase."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=1, help="one transaction in so many calls the function")
    parser.add_argument("--sample", type=int, default=200, help="evenly spaced pages of the sample")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--url")
    parser.add_argument("--versions")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.transactions, options.every))
    elif options.url:
        run(options.url, options.versions, str(options.out))
    else:
        last = options.transactions - 1
        with tempfile.TemporaryDirectory() as folder, server(options) as url:
            whole, sample = f"0:{last}", f"0:{last}/{options.sample}"
            print(child(url, sample, Path(folder) / "sample"), flush=True)
            print(child(url, whole, Path(folder) / "whole"), flush=True)
            until = options.transactions // options.every // 2
            print(child(url, whole, Path(folder) / "killed", until=until), flush=True)
            print(child(url, whole, Path(folder) / "killed"), flush=True)


if __name__ == "__main__":
    main()
