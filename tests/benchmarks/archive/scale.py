"""An archive of many transactions: time and memory of syncs, of queries, and of what comes before both.

    python tests/benchmarks/archive/scale.py --transactions 1000000
    python tests/benchmarks/archive/scale.py --transactions 100000 --latency 20 --rounds 3 --rates

A server in a process of its own answers with pages that it has made before, in which only versions and hashes differ; each phase
is a process too. Without `--rates` each line is a phase: the first sync, one more of a tenth as many versions, queries. With
it the pages are read in turn without decoding, decoded, stored, and stored by two worker processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
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

from tests.benchmarks.runs import committed  # noqa: E402 - the folder must be on the path

FUNCTION = committed.FUNCTION
PAGE = 100


class Pages(committed.Pages):
    """As the server of committed studies, but each page is joined from parts that are made once."""

    parts: ClassVar[list[list[bytes]]] = []
    latency_s = page_s = free_at = 0.0

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            target = self.buffer[:end].split(b" ", 2)[1].decode()
            self.buffer = self.buffer[end + 4 :]
            loop = asyncio.get_running_loop()
            if self.latency_s or self.page_s:  # the node makes one page after another, then each travels
                Pages.free_at = max(loop.time(), Pages.free_at) + self.page_s
                loop.call_at(Pages.free_at + self.latency_s, self.reply, target)
            else:
                self.reply(target)

    def reply(self, target):
        Pages.requests += 1
        status, body = self.answer(target)
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers(len(body)).items())
        if not self.transport.is_closing():
            self.transport.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)

    def answer(self, target):
        parts = urlsplit(target)
        if parts.path.startswith("/v1/grow/"):
            Pages.head = int(parts.path.rsplit("/", 1)[1])
            return 200, b"{}"
        if parts.path == "/v1/requests":
            Pages.requests -= 1
            return 200, str(Pages.requests).encode()
        if parts.path.rstrip("/") != "/v1/transactions":
            return super().answer(target)
        query = dict(parse_qsl(parts.query))
        first = int(query["start"])
        return 200, self.page(first, min(first + int(query["limit"]) - 1, self.head))

    def page(self, first, last):
        """Return transactions: the texts of a page with the versions filled in."""
        texts = []
        for version in range(first, last + 1):
            pieces = self.parts[version % PAGE]
            texts.append(pieces[0] + b"%08x" % version + pieces[1] + b"%d" % version + pieces[2])
        return b"[" + b",".join(texts) + b"]"


def parts(every: int) -> list[list[bytes]]:
    """Return the texts around hash and version of each transaction of a page."""
    other, called = committed.templates()
    found = []
    for place in range(PAGE):
        fields = json.loads((called if place % every == 0 else other).replace("EXECUTION", str(5 + place % 7)))
        fields |= {"gas_used": str(8 + place % 7), "sender": hex(0xA11CE + place)}
        text = json.dumps({"hash": fields.pop("hash"), "version": fields.pop("version"), **fields})
        before, after = text.split("HASH")
        found.append([part.encode() for part in (before, *after.split("VERSION"))])
    return found


async def serve(transactions: int, every: int, latency_ms: float, page_ms: float) -> None:
    """Serve a ledger with so many transactions, and print the port."""
    from tests.unit.client.fakes import function, module

    Pages.head, Pages.every = transactions - 1, every
    Pages.latency_s, Pages.page_s = latency_ms / 1_000, page_ms / 1_000
    Pages.templates, Pages.parts = committed.templates(), parts(every)
    Pages.module = module("m", functions=[function("pay", ["&signer", "u64"], is_entry=True, is_view=False)])
    server = await asyncio.get_running_loop().create_server(Pages, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


@contextmanager
def server(options: argparse.Namespace):
    """Start the server; yield its URL."""
    words = [sys.executable, __file__, "--serve", "--transactions", str(options.transactions)]
    words += ["--every", str(options.every), "--latency", str(options.latency), "--page", str(options.page)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def phase(name: str, url: str, folder: Path, last: int, tables: list[str]) -> dict:
    """Run one phase in this process; return its figures."""
    import pandas as pd  # noqa: F401 - imports are not part of the time

    import toolkit
    import toolkit.archive._sync

    found: dict = {}
    began, worked = time.perf_counter(), time.process_time()
    if name.startswith("sync"):
        with toolkit.connect(url, cache=None) as node:
            archive = toolkit.sync(
                node, folder, f"0:{last}", tables=tables, executor=name.partition(" ")[2] or None, progress=False
            )
            state = archive.state()
            found = {
                "rows": int(state["rows"].sum()),
                "mb": round(int(state["bytes"].sum()) / 1e6),
                "files": int(state["files"].sum()),
            }
    elif name in {"raw", "decoded"}:
        from toolkit.client._http import PreparedCall

        with toolkit.connect(url, cache=None) as node:
            calls = (node.prepare_transactions(first, PAGE) for first in range(0, last + 1, PAGE))
            if name == "raw":
                calls = (PreparedCall(call.request, "page", lambda answer: len(answer.body)) for call in calls)
            found = {"pages": sum(not isinstance(outcome, Exception) for _, outcome in node.many(calls))}
    elif name == "gas of one function":
        query = "select count(*) n, sum(gas_used) gas, quantile_disc(gas_used, 0.9) p90 from transactions"
        query += f" where function = '{FUNCTION}'"
        found = toolkit.Archive(folder).sql(query).astype(object).to_dict("records")[0]
    elif name == "one function, Arrow":
        import pyarrow.compute as pc

        table = (
            toolkit.Archive(folder)
            .scan("transactions")
            .to_table(columns=["gas_used"], filter=pc.field("function") == FUNCTION)
        )
        found = {"n": len(table), "gas": pc.sum(table["gas_used"]).as_py()}
    elif name == "events by type":
        found = {"rows": len(toolkit.Archive(folder).sql("select type, count(*) n from events group by 1"))}
    elif name == "1,000 versions as frames":
        middle = last // 2
        found = {"rows": len(toolkit.Archive(folder).transactions(f"{middle}:{middle + 999}").changes)}
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = round(time.perf_counter() - began, 2)
    cpu = round(time.process_time() - worked + workers.ru_utime + workers.ru_stime, 2)
    memory = round(max(workers.ru_maxrss, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024)
    return {"phase": name, "last": last, "seconds": seconds, "cpu_s": cpu, "peak_mb": memory} | {
        key: str(value) for key, value in found.items()
    }


def child(name: str, url: str, folder: Path, last: int, options: argparse.Namespace) -> dict:
    """Run one phase as a process; return its figures, with the requests that the server counted."""
    before = int(urlopen(f"{url}/v1/requests").read())
    words = [sys.executable, __file__, "--phase", name, "--url", url, "--out", str(folder), "--last", str(last)]
    words += ["--tables", options.tables]
    done = subprocess.run(
        words, check=False, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    after = int(urlopen(f"{url}/v1/requests").read())
    if done.returncode:
        return {"phase": name, "exit": done.returncode}
    return json.loads(done.stdout.splitlines()[-1]) | {"requests": after - before - 1}


def main() -> None:
    """Print one line of JSON per phase."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=10, help="one transaction in so many calls the function")
    parser.add_argument("--latency", type=float, default=0.0, help="milliseconds before each answer")
    parser.add_argument("--page", type=float, default=0.0, help="milliseconds that the node needs to make a page")
    parser.add_argument("--tables", default="transactions,events,changes")
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true")
    for name in ("--phase", "--url", "--last"):
        parser.add_argument(name)
    parser.add_argument("--out", type=Path, help="folder; a temporary one by default")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.transactions, options.every, options.latency, options.page))
        return
    if options.phase:
        print(json.dumps(phase(options.phase, options.url, options.out, int(options.last), options.tables.split(","))))
        return
    with tempfile.TemporaryDirectory(dir=options.out) as place, server(options) as url:
        folder, last = Path(place) / "archive", options.transactions - 1
        if options.rates:
            found: dict[str, list[dict]] = {"raw": [], "decoded": [], "sync": [], "sync processes:2": []}
            for _ in range(options.rounds):
                for name, rounds in found.items():
                    shutil.rmtree(folder, ignore_errors=True)
                    rounds.append(child(name, url, folder, last, options))
                    print(json.dumps(rounds[-1]), flush=True)
            for of in ("seconds", "cpu_s"):
                values = {name: statistics.median(one[of] for one in rounds) for name, rounds in found.items()}
                shares = {name: round(values[name] / values["sync"], 2) for name in found if name != "sync"}
                print(json.dumps({"median": of, **values, "share of": shares}))
            return
        print(json.dumps(child("sync", url, folder, last, options)), flush=True)
        more = last + options.transactions // 10
        urlopen(f"{url}/v1/grow/{more}").read()
        print(json.dumps(child("sync", url, folder, more, options)), flush=True)
        for name in ("gas of one function", "one function, Arrow", "events by type", "1,000 versions as frames"):
            print(json.dumps(child(name, url, folder, more, options)), flush=True)


if __name__ == "__main__":
    main()
