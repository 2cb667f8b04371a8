"""Time and size of the report of 50 calls at 1,000 versions each, and of its parts.

    python tests/benchmarks/runs/report.py --calls 50 --versions 1000 [--profile]

The run is made up: every call has steps of its own by three causes, and a third of them grow with state.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.unit.plots import synthetic_run as made  # noqa: E402


def gas(call: int, version: int, count: int) -> int:
    """Return the gas of a call at a version."""
    price = 1 if version < count // 2 else 10
    upgrade = 1 + (version >= count * (call % 7 + 2) // 10) * (call % 5)
    return (3 + call + (version // 40 if call % 3 == 0 else 0)) * price * upgrade


def run(calls: int, count: int) -> made.Run:
    """Return a run."""
    labels = [f"0x{'cafe' * 16}::module_{call}::view_{call}" for call in range(calls)]
    rows, steps = [], []
    for call, label in enumerate(labels):
        series = [gas(call, version, count) for version in range(count)]
        about = {"label": label, "fingerprint": f"{call:032x}", "source": "view@version"}
        facts = {"node": "embedded", "node_build": "1", "model": True, "chain_id": 4, "head_version": count - 1}
        facts |= {"observed_at": made.EPOCH, "toolkit_version": "0", "success": True, "value_digest": "0" * 32}
        rows += [about | facts | {"ledger_version": at, "gas_used": value} for at, value in enumerate(series)]
        for at in range(1, count):
            before, after = series[at - 1 : at + 1]
            if before != after:
                cause = "schedule" if at == count // 2 else "code" if after > 1.5 * before else "state"
                side = {"version_before": at - 1, "version_after": at, "exact": True, "change": after - before}
                values = {"gas_before": before, "gas_after": after, "success_before": True, "success_after": True}
                steps.append(about | side | values | {"cause": cause, "explanation": f"{cause} at {at}"})
    return made.Run(made.frame(rows, made.OBSERVATION_TYPES), made.frame(steps, made.STEP_TYPES))


def main() -> None:
    """Print seconds and bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--versions", type=int, default=1_000)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    from toolkit import reports

    found = run(options.calls, options.versions)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        profile = cProfile.Profile()
        for turn in range(2):  # the first one loads fonts
            began, used = time.perf_counter(), time.process_time()
            if options.profile and turn:
                profile.enable()
            reports.write(found, page)
            profile.disable()
            wall, cpu = time.perf_counter() - began, time.process_time() - used
            size = page.stat().st_size
            print(
                {
                    "seconds": round(wall, 2),
                    "cpu": round(cpu, 2),
                    "megabytes": round(size / 1e6, 2),
                    "steps": len(found.steps),
                }
            )
        if options.profile:
            pstats.Stats(profile).sort_stats("cumulative").print_stats(60)


if __name__ == "__main__":
    main()
