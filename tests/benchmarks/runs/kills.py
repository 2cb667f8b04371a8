"""A study over HTTP, killed with -9 at random moments, against the same study undisturbed, and over a Dask cluster.

    python tests/benchmarks/runs/kills.py --calls 40 --versions 5000 --kills 5 --dask

Ends with an error if the rows differ, or if a run was begun anew instead of being resumed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def study_file(place: Path, url: str, *, calls: int, versions: int) -> Path:
    """Write a study of so many balances at so many versions."""
    lines = ['title = "Kills"', f'node = "{url}"', "[versions]", f'plan = "0:{versions - 1}"']
    for number in range(calls):
        lines += ["[[call]]", f'label = "balance {number}"', 'view = "0x1::coin::balance"']
        lines += ['type_arguments = ["0x1::aptos_coin::AptosCoin"]', f'arguments = ["0x{number + 1:x}"]']
    place.write_text("\n".join(lines) + "\n")
    return place


def run(study: Path, out: Path, *options: str, kill_at: int | None = None) -> float:
    """Run a study as a process; with `kill_at`, kill it once so many rows are written. Return the seconds."""
    from toolkit.gas.runs._store import RunStore

    words = [sys.executable, "-m", "toolkit", "study", "run", str(study), "--out", str(out), "--quiet", *options]
    began = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        while process.poll() is None:
            if kill_at is not None and RunStore(out).rows() >= kill_at:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.05 if kill_at else 0.5)
    if process.returncode not in {0, -signal.SIGKILL}:
        raise SystemExit(f"the run ended with {process.returncode}")
    return time.monotonic() - began


def manifest(out: Path) -> dict:
    """Read run.json."""
    return json.loads((out / "run.json").read_text())


def main() -> None:
    """Print what each run did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--versions", type=int, default=5_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dask", action="store_true")
    options = parser.parse_args()
    rows = options.calls * options.versions
    chance = random.Random(options.seed)
    served = [sys.executable, "-m", "toolkit", "node", "--port", "0", "--versions", str(options.versions)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(served, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as node,
    ):
        try:
            url = node.stdout.readline().split()[-1]
            study = study_file(Path(folder) / "study.toml", url, calls=options.calls, versions=options.versions)
            whole, killed = Path(folder) / "whole", Path(folder) / "killed"
            print({"undisturbed_s": round(run(study, whole), 1), "rows": manifest(whole)["counts"]["observations"]})
            for moment in sorted(chance.randrange(rows) for _ in range(options.kills)):
                run(study, killed, kill_at=max(1, moment))
                print({"killed_at": moment, "attempt": manifest(killed)["attempts"]}, flush=True)
            last = run(study, killed)
            facts = manifest(killed)
            print(
                {"last_attempt_s": round(last, 1), "resumed_rows": facts["resumed_rows"], "attempts": facts["attempts"]}
            )
            same = facts["rows_digest"] == manifest(whole)["rows_digest"]
            print({"same_rows": same, "digest": facts["rows_digest"]}, flush=True)
            if options.dask:
                same &= over_dask(study, Path(folder) / "dask") == facts["rows_digest"]
        finally:
            node.terminate()
    if not same or facts["attempts"] != options.kills + 1 or not facts["resumed_rows"]:
        raise SystemExit("the rows differ, or a run was begun anew")


def over_dask(study: Path, out: Path) -> str:
    """Run the study over a cluster of two worker processes and return the digest of its rows."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        seconds = run(study, out, "--executor", cluster.scheduler_address, "--max-tasks", "2")
    print({"dask_s": round(seconds, 1), "digest": manifest(out)["rows_digest"]}, flush=True)
    return manifest(out)["rows_digest"]


if __name__ == "__main__":
    main()
