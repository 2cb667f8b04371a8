"""One way of sending many calls, in a fresh process.  variants.py NAME PORT CALLS IN_FLIGHT -> one line of JSON

Each call is a POST whose body is made from a dict; of each answer the body is parsed and one header read. All but
`engine` are bare loops without retries, pace or bounds, so the comparison favours them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
import threading
import time
from pathlib import Path

HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
VERSION = "x-aptos-ledger-version"


def url(port: int, number: int) -> str:
    return f"http://127.0.0.1:{port}/v1/view?ledger_version={number}"


def body() -> bytes:
    call = {
        "function": "0x1::coin::balance",
        "type_arguments": ["0x1::aptos_coin::AptosCoin"],
        "arguments": ["0xa11ce"],
    }
    return json.dumps(call).encode()


def in_threads(call, calls: int, in_flight: int) -> None:
    numbers, lock = iter(range(calls)), threading.Lock()

    def work():
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            call(number)

    threads = [threading.Thread(target=work) for _ in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def engine(port: int, calls: int, in_flight: int) -> None:
    from toolkit.client._engine import BulkEngine
    from toolkit.client._http import Request

    jobs = ((number, Request("POST", url(port, number), body(), HEADERS)) for number in range(calls))
    bulk = BulkEngine(max_in_flight=in_flight)
    with contextlib.closing(bulk.run(jobs)) as answers:
        for _, answer in answers:
            json.loads(answer.body)
            _ = answer.headers[VERSION]
    bulk.close()


def pyqwest_threads(port: int, calls: int, in_flight: int) -> None:
    import pyqwest

    client = pyqwest.SyncClient()

    def call(number):
        answer = client.post(url(port, number), headers=HEADERS, content=body())
        json.loads(bytes(answer.content))
        _ = answer.headers[VERSION]

    in_threads(call, calls, in_flight)


def aiohttp_loop(port: int, calls: int, in_flight: int, runner=asyncio) -> None:
    import aiohttp

    numbers = iter(range(calls))

    async def work(session):
        for number in numbers:
            async with session.post(url(port, number), data=body(), headers=HEADERS) as answer:
                json.loads(await answer.read())
                _ = answer.headers[VERSION]

    async def main():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:
            await asyncio.gather(*[work(session) for _ in range(in_flight)])

    runner.run(main())


def aiohttp_uvloop(port: int, calls: int, in_flight: int) -> None:
    import uvloop

    aiohttp_loop(port, calls, in_flight, uvloop)


def requests_threads(port: int, calls: int, in_flight: int) -> None:
    import requests

    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=in_flight))

    def call(number):
        answer = session.post(url(port, number), data=body(), headers=HEADERS)
        json.loads(answer.content)
        _ = answer.headers[VERSION]

    in_threads(call, calls, in_flight)


# How many calls each gets: enough for about a second without latency.
VARIANTS = {
    "engine": (engine, 12_000),
    "pyqwest_threads": (pyqwest_threads, 6_000),
    "aiohttp_uvloop": (aiohttp_uvloop, 5_000),
    "aiohttp_loop": (aiohttp_loop, 4_000),
    "requests_threads": (requests_threads, 600),
}


def main() -> None:
    name, (port, calls, in_flight) = sys.argv[1], map(int, sys.argv[2:])
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    run = VARIANTS[name][0]
    try:
        run(port, in_flight, in_flight)  # imports and connections are not what is measured
    except ImportError as error:
        print(json.dumps({"missing": str(error.name)}))
        return
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    run(port, calls, in_flight)
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"rate": calls / seconds, "cpu": cpu / calls * 1000, "rss": after.ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
