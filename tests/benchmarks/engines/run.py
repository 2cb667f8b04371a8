"""Compare ways of sending many calls, in interleaved rounds against one server; prints a table of ratios.

    python tests/benchmarks/engines/run.py [--rounds 5] [--python OTHER/bin/python]

Needs `wrk` on the path. Libraries that the interpreter lacks are left out; `--python` names one that has them.
Traffic stays on 127.0.0.1. It is no timed test: read the ratios, not the rates. Without latency wrk is held up by the
server, which is Python and shares the cores, so a share of wrk is told with latency only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from variants import HEADERS, VARIANTS, body

HERE = Path(__file__).resolve().parent
SCENES = [(0, 32), (20, 64)]  # latency in ms, calls in flight
MOST_CALLS_WITH_LATENCY = 4_000


@contextlib.contextmanager
def serving(delay_ms: int):
    """Run the fixed-answer server in its own process and give its port."""
    command = [sys.executable, HERE / "server.py", str(delay_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def wrk(port: int, in_flight: int) -> dict[str, float]:
    """Return the rate of wrk, which is the limit."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f'wrk.method = "POST"\nwrk.body = [==[{body().decode()}]==]\n')
        script.writelines(f'wrk.headers["{name}"] = "{value}"\n' for name, value in HEADERS.items())
        script.flush()
        url = f"http://127.0.0.1:{port}/v1/view?ledger_version=1"
        command = ["wrk", "-t1", f"-c{in_flight}", "-d2s", "-s", script.name, url]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), "cpu": float("nan"), "rss": float("nan")}


def variant(name: str, port: int, in_flight: int, *, python: str, delay_ms: int) -> dict[str, float]:
    """Run one variant in a fresh process."""
    calls = min(VARIANTS[name][1], MOST_CALLS_WITH_LATENCY) if delay_ms else VARIANTS[name][1]
    command = [python, HERE / "variants.py", name, str(port), str(calls), str(in_flight)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    return json.loads(out)


def table(results: dict[str, list[dict[str, float]]], *, delay_ms: int) -> str:
    """Return the medians as Markdown."""
    rate = {name: statistics.median(run["rate"] for run in runs) for name, runs in results.items()}
    lines = ["| way | calls/s (min-max) | of wrk | x requests | CPU s/1000 | RSS MB |", "|---|---|---|---|---|---|"]
    for name in sorted(rate, key=rate.get, reverse=True):
        runs = results[name]
        rates = [run["rate"] for run in runs]
        share = f"{rate[name] / rate['wrk']:.0%}" if delay_ms else "-"
        cpu, rss = (statistics.median(run[key] for run in runs) for key in ("cpu", "rss"))
        lines.append(
            f"| {name} | {rate[name]:,.0f} ({min(rates):,.0f}-{max(rates):,.0f}) | {share} "
            f"| {rate[name] / rate['requests_threads']:.1f} | {cpu:.3f} | {rss:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="interpreter that has the libraries to compare")
    options = parser.parse_args()
    print(f"{options.rounds} interleaved rounds, medians; load average before: {os.getloadavg()[0]:.1f}")
    for delay_ms, in_flight in SCENES:
        results: dict[str, list[dict[str, float]]] = {}
        with serving(delay_ms) as port:
            for _ in range(options.rounds):
                results.setdefault("wrk", []).append(wrk(port, in_flight))
                for name in VARIANTS:
                    found = variant(name, port, in_flight, python=options.python, delay_ms=delay_ms)
                    if "missing" not in found:
                        results.setdefault(name, []).append(found)
        print(f"\n{delay_ms} ms latency, {in_flight} in flight\n\n{table(results, delay_ms=delay_ms)}")
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
