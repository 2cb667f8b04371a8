"""Sweep a view by the toolkit, `requests`, both official SDKs and wrk: interleaved, each run in a fresh process.

    python tests/benchmarks/sweep.py [--rounds 5] [--install]

Needs nginx and wrk. `--install` puts the SDKs into throw-away folders below `--peers` first; those that are missing are
left out with a note. All traffic stays on 127.0.0.1. It is no timed test: read the ratios, not the rates.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = Path(__file__).resolve().parent / "sweep"
sys.path.insert(0, str(PARTS))

from answers import BODY  # noqa: E402  # found by the line above
from servers import nginx, slow  # noqa: E402

PEERS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ledger-toolkit-bench"
PYTHON_SDK, TYPESCRIPT_SDK = "aptos-sdk==0.11.0", "@aptos-labs/ts-sdk@6.3.1"
SCENES = [(0, 32), (20, 64)]  # latency in ms, calls in flight
CALLS = {  # enough for one to four seconds: without latency, with it
    "toolkit": (20_000, 10_000),
    "requests": (800, 900),
    "python_sdk": (300, 300),
    "typescript_sdk": (1_500, 2_500),
}
CACHED_ROWS = 20_000
IMPORT_RUNS = 7


def install(peers: Path) -> None:
    """Make the throw-away environments of the SDKs."""
    python = peers / "python-sdk"
    subprocess.run([sys.executable, "-m", "venv", python], check=True)
    subprocess.run([python / "bin" / "python", "-m", "pip", "install", "--quiet", PYTHON_SDK], check=True)
    (peers / "ts").mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", TYPESCRIPT_SDK]
    subprocess.run(command, cwd=peers / "ts", check=True)


def commands(peers: Path) -> dict[str, list[str | Path]]:
    """Return how each variant is started, without those that are missing."""
    found: dict[str, list[str | Path]] = {name: [sys.executable, PARTS / "variants.py", name] for name in CALLS}
    python = peers / "python-sdk" / "bin" / "python"
    found["python_sdk"][0] = python
    if not python.exists():
        del found["python_sdk"]
        print(f"left out: {PYTHON_SDK} (--install puts it into {peers})")
    script = peers / "ts" / "typescript_sdk.mjs"
    if (peers / "ts" / "node_modules" / "@aptos-labs" / "ts-sdk").exists() and shutil.which("node"):
        shutil.copyfile(PARTS / script.name, script)
        found["typescript_sdk"] = ["node", script]
    else:
        del found["typescript_sdk"]
        print(f"left out: {TYPESCRIPT_SDK} (--install puts it into {peers}; node must be there)")
    return found


def run(command: list[str | Path], *numbers: int) -> dict[str, float]:
    """Run one variant in a fresh process."""
    line = [*command, *map(str, numbers)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, line))} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def wrk(port: int, in_flight: int) -> dict[str, float]:
    """Return the rate of wrk, which is the limit."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f'wrk.method = "POST"\nwrk.body = [==[{BODY}]==]\n')
        script.write('wrk.headers["Content-Type"] = "application/json"\n')
        script.flush()
        url = f"http://127.0.0.1:{port}/v1/view?ledger_version=1"
        command = ["wrk", "-t1", f"-c{in_flight}", "-d2s", "-s", script.name, url]
        out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    if "Non-2xx" in out:
        raise SystemExit(f"the server refuses the call:\n{out}")
    return {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), "cpu": float("nan")}


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """Return the medians as Markdown."""
    rate = {name: statistics.median(one["rate"] for one in found) for name, found in results.items()}
    lines = [
        "| way | rows/s (min-max) | of wrk | toolkit is x times | client CPU s per 1,000 |",
        "|---|---|---|---|---|",
    ]
    for name in sorted(rate, key=rate.get, reverse=True):
        rates = [one["rate"] for one in results[name]]
        cpu = statistics.median(one["cpu"] for one in results[name])
        lines.append(
            f"| {name} | {rate[name]:,.0f} ({min(rates):,.0f}-{max(rates):,.0f}) | {rate[name] / rate['wrk']:.1%} "
            f"| {rate['toolkit'] / rate[name]:.2f} | {'-' if name == 'wrk' else f'{cpu:.3f}'} |"
        )
    return "\n".join(lines)


def sweeps(rounds: int, peers: Path) -> None:
    """Run the interleaved rounds of each scene and print its table."""
    found = commands(peers)
    for delay_ms, in_flight in SCENES:
        results: dict[str, list[dict[str, float]]] = {}
        with slow(delay_ms) if delay_ms else nginx() as port:
            for _ in range(rounds):
                results.setdefault("wrk", []).append(wrk(port, in_flight))
                for name, command in found.items():
                    calls = CALLS[name][bool(delay_ms)]
                    results.setdefault(name, []).append(run(command, port, calls, in_flight))
        print(f"\n{delay_ms} ms latency, {in_flight} in flight\n\n{table(results)}", flush=True)


def cached(rounds: int) -> None:
    """Print the rate of pinned reads that the cache on disk holds."""
    command = [sys.executable, PARTS / "variants.py", "toolkit_cached"]
    with nginx() as port:
        rates = [run(command, port, CACHED_ROWS, 64)["rate"] for _ in range(rounds)]
    spread = f"{min(rates):,.0f}-{max(rates):,.0f}"
    print(f"\ncached pinned reads: {statistics.median(rates):,.0f} rows/s ({spread}), {CACHED_ROWS:,} rows a run")


def imports() -> None:
    """Print what `import toolkit` and ``--help`` take above a bare interpreter."""
    ways = {
        "bare": ["-c", "pass"],
        "import toolkit": ["-c", "import toolkit"],
        "ledger-toolkit --help": ["-m", "toolkit", "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(IMPORT_RUNS):
        for name, arguments in ways.items():
            begun = time.perf_counter()
            subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - begun)
    bare = statistics.median(times["bare"])
    for name in list(ways)[1:]:
        print(f"{name}: {statistics.median(times[name]) - bare:.3f} s over a bare interpreter ({bare:.3f} s)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--install", action="store_true", help="put the SDKs into throw-away folders first")
    parser.add_argument("--peers", type=Path, default=PEERS, help="where those folders are")
    options = parser.parse_args()
    if options.install:
        install(options.peers)
    print(f"{options.rounds} interleaved rounds, medians; load average before: {os.getloadavg()[0]:.1f}")
    sweeps(options.rounds, options.peers)
    cached(options.rounds)
    imports()
    print(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
