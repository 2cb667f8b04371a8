"""Compare decoders of transactions, interleaved, each run in a fresh process; print a Markdown table.

``python tests/benchmarks/decode/run.py [--rounds 5] [--count 10000]``
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT), str(HERE)]

from generate import write  # noqa: E402  # found by the line above
from variants import VARIANTS  # noqa: E402


def one(name: str, path: Path) -> dict[str, Any]:
    """Run a variant in a fresh process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(HERE / "variants.py"), name, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def report(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Print medians, best times and ratios to the package; best times are what a busy machine disturbs least."""

    def median(name: str, key: str) -> float:
        return statistics.median(run[key] for run in runs[name])

    best = {name: min(run["seconds"] for run in found) for name, found in runs.items()}
    size = runs["toolkit"][0]["file_mb"]
    print(
        "| decoder | s, median | s, best | CPU s | MB/s | peak MB | peak / bytes | median / toolkit | best / toolkit |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in sorted(best, key=best.__getitem__):
        shown = f"**{name}**" if name == "toolkit" else name.replace("_parse_only", " (*parse only*)")
        seconds, peak = median(name, "seconds"), median(name, "peak_mb")
        times = f"{seconds:.3f} | {best[name]:.3f} | {median(name, 'cpu'):.3f} | {size / seconds:.0f}"
        ratios = f"{seconds / median('toolkit', 'seconds'):.2f} | {best[name] / best['toolkit']:.2f}"
        print(f"| {shown} | {times} | {peak:.0f} | {peak / size:.1f} | {ratios} |")


def main() -> None:
    """Generate, run the rounds, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "transactions.json"
        write(options.count, path)
        print(f"{options.count} transactions, {path.stat().st_size / 1e6:.1f} MB")
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in VARIANTS}
        for _ in range(options.rounds):
            for name, found in runs.items():
                found.append(one(name, path))
    sums = {json.dumps(found[0]["sums"]) for found in runs.values() if found[0]["sums"]}
    if len(sums) != 1:
        raise SystemExit(f"the variants do not agree: {sums}")
    report(runs)


if __name__ == "__main__":
    main()
