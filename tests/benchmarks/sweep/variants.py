"""One way of sweeping a view, in a fresh process.  variants.py NAME PORT CALLS IN_FLIGHT -> one line of JSON

`toolkit` ends with a typed frame; the others end with a list of parsed values, which is less work.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from answers import BODY, COIN, FUNCTION, OWNER, VALUE

VERSION = "x-aptos-ledger-version"


def _frame(node, calls: int):
    import toolkit

    call = toolkit.ViewFunction(FUNCTION, type_arguments=[COIN], arguments=[OWNER])
    frame = toolkit.fetch_views(node, call, versions=range(1, calls + 1), progress=False)
    if str(frame["value"].dtype) != "uint64[pyarrow]":
        raise SystemExit(f"the frame is not typed: {frame['value'].dtype}")
    return frame


def by_toolkit(port: int, in_flight: int):
    """Sweep to a typed frame, nothing cached."""
    import toolkit

    node = toolkit.connect(f"http://127.0.0.1:{port}/v1", cache=None, max_in_flight=in_flight)
    return lambda calls: _frame(node, calls)["value"].tolist()


def by_toolkit_cached(port: int, in_flight: int):
    """Fill a cache on disk once; what is measured then reads it."""
    import toolkit

    place = Path(tempfile.mkdtemp()) / "answers.sqlite3"
    node = toolkit.connect(f"http://127.0.0.1:{port}/v1", cache=place, max_in_flight=in_flight)
    return lambda calls: _frame(node, calls)["value"].tolist()


def by_requests(port: int, in_flight: int):
    """Post from threads over one session, as people do."""
    import requests

    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=in_flight))

    def call(version):
        where = f"http://127.0.0.1:{port}/v1/view"
        answer = session.post(where, json=json.loads(BODY), params={"ledger_version": version})
        _ = answer.headers[VERSION]
        return int(answer.json()[0])

    def run(calls):
        with ThreadPoolExecutor(in_flight) as pool:
            return list(pool.map(call, range(1, calls + 1)))

    return run


def by_python_sdk(port: int, in_flight: int):
    """Use the official Python SDK with as many tasks as calls in flight."""
    from aptos_sdk.async_client import RestClient

    loop = asyncio.new_event_loop()

    async def opened():
        return RestClient(f"http://127.0.0.1:{port}/v1")

    client = loop.run_until_complete(opened())

    async def work(versions, found):
        for version in versions:
            answer = await client.view(FUNCTION, [COIN], [OWNER], version)
            found[version] = int(json.loads(answer)[0])

    async def sweep(calls):
        versions, found = iter(range(1, calls + 1)), {}
        await asyncio.gather(*[work(versions, found) for _ in range(in_flight)])
        return [found[version] for version in range(1, calls + 1)]

    return lambda calls: loop.run_until_complete(sweep(calls))


VARIANTS = {
    "toolkit": by_toolkit,
    "toolkit_cached": by_toolkit_cached,
    "requests": by_requests,
    "python_sdk": by_python_sdk,
}


def main() -> None:
    name, (port, calls, in_flight) = sys.argv[1], map(int, sys.argv[2:])
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    run = VARIANTS[name](port, in_flight)
    run(calls if name == "toolkit_cached" else in_flight)  # imports and connections (there: the cache) do not count
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    values = run(calls)
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
    if values != [VALUE] * calls:
        raise SystemExit("an answer differs")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"rate": calls / seconds, "cpu": cpu / calls * 1000}))


if __name__ == "__main__":
    main()
