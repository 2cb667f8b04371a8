"""A sync that is killed with -9 again and again, at any moment, then compared with one that nobody disturbed.

    python tests/benchmarks/archive/kills.py --kills 50

The embedded ledger is served by a process of its own. Prints one line of JSON.
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

TABLES = ["transactions", "events", "changes", "balances"]
EVENTS = {"fees": "0x1::transaction_fee::FeeStatement"}
VIEWS = {"clock": "0x1::timestamp::now_microseconds"}
SYNC = """
import sys, toolkit
toolkit.sync, toolkit.connect
from tests.benchmarks.archive.kills import EVENTS, TABLES, VIEWS
with toolkit.connect(sys.argv[1], cache=None) as node:
    print("started", flush=True)
    toolkit.sync(node, sys.argv[2], "0:%d" % int(sys.argv[3]), tables=TABLES, events=EVENTS, views=VIEWS,
                 partition=int(sys.argv[4]), executor=sys.argv[5] or None, progress=False)
"""


def started(url: str, folder: Path, last: int, partition: int, executor: str = "") -> subprocess.Popen:
    """Start a sync as a process, and return it once it has imported the toolkit."""
    words = [sys.executable, "-c", SYNC, url, str(folder), str(last), str(partition), executor]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)})
    process.stdout.readline()
    return process


def killed(
    url: str, folder: Path, last: int, partition: int, kills: int, *, most_s: float, seed: int, executor: str = ""
) -> list[int]:
    """Kill syncs of one folder; return the last version that the archive had after each."""
    from toolkit.archive._folder import Folder

    chance, reached = random.Random(seed), []
    while len(reached) < kills:
        process = started(url, folder, last, partition, executor)
        time.sleep(chance.random() * most_s)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        manifest = Folder(folder).manifest() if Folder(folder).exists() else None
        reached.append(-1 if manifest is None else manifest.last)
        if reached[-1] == last:
            break
    return reached


def content(folder: Path, files: Path | None = None) -> dict[str, list]:
    """Return the rows of all tables, as they are in the files, with the columns in one order."""
    import pyarrow.parquet as pq

    import toolkit

    found = {}
    for name in toolkit.Archive(folder).state()["table"]:
        places = sorted(((files or folder) / name).glob("*.parquet"))
        rows = [row for place in places for row in pq.read_table(place).to_pylist()]
        found[name] = [sorted((key, value) for key, value in row.items() if value is not None) for row in rows]
    return found


def main() -> None:
    """Print the figures."""
    import toolkit
    from toolkit import embedded

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--versions", type=int, default=5_000)
    parser.add_argument("--partition", type=int, default=100)
    parser.add_argument("--executor", default="", help="such as processes:2; the driver is killed")
    parser.add_argument("--most", type=float, default=1.0, help="seconds after which a sync is killed at the latest")
    options = parser.parse_args()
    ledger = embedded.Ledger.with_history(seed=7, versions=options.versions, cache=True)
    last = options.versions - 1
    with tempfile.TemporaryDirectory() as place, embedded.serve(ledger) as url:
        broken, whole = Path(place) / "broken", Path(place) / "whole"
        began = time.perf_counter()
        reached = killed(
            url, broken, last, options.partition, options.kills, most_s=options.most, seed=1, executor=options.executor
        )
        final = started(url, broken, last, options.partition)
        final.communicate()
        undisturbed = started(url, whole, last, options.partition)
        undisturbed.communicate()
        left = [place.name for place in broken.rglob("*") if place.name.endswith((".part", ".lock"))]
        one, other = content(broken), content(whole)
        rows = {name: len(found) for name, found in one.items()}
        state = dict(toolkit.Archive(broken).state()[["table", "rows"]].to_numpy().tolist())
        figures = {
            "kills": len(reached),
            "stopped_at": len(set(reached)),
            "seconds": round(time.perf_counter() - began),
        }
        figures |= {
            "exit": final.returncode,
            "same": one == other,
            "counted": state == rows,
            "rows": rows,
            "left": left,
        }
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
