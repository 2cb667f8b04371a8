"""A sync that is killed with -9 again and again, at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

ROOT = Path(__file__).resolve().parents[2]

TABLES = ["transactions", "events", "changes", "balances"]
EVENTS = {"fees": "0x1::transaction_fee::FeeStatement", "blocks": "0x1::block::NewBlock"}  # blocks have lists
VIEWS = {"clock": "0x1::timestamp::now_microseconds"}
SYNC = """
import sys, toolkit
toolkit.sync, toolkit.connect
from tests.integration.killed_syncs import EVENTS, TABLES, VIEWS
with toolkit.connect(sys.argv[1], cache=None) as node:
    print("started", flush=True)
    toolkit.sync(node, sys.argv[2], "0:%d" % int(sys.argv[3]), tables=TABLES, events=EVENTS, views=VIEWS,
                 partition=int(sys.argv[4]), executor=sys.argv[5] or None, files=sys.argv[6] or None, progress=False)
"""


def started(
    url: str, folder: Path, last: int, partition: int, *, executor: str = "", files: str = ""
) -> subprocess.Popen:
    """Start a sync as a process, and return it once it has imported the toolkit."""
    words = [sys.executable, "-c", SYNC, url, str(folder), str(last), str(partition), executor, files]
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
        process = started(url, folder, last, partition, executor=executor)
        time.sleep(chance.random() * most_s)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        manifest = Folder(folder).manifest() if Folder(folder).exists() else None
        reached.append(-1 if manifest is None else manifest.last)
        if reached[-1] == last:
            break
    return reached


def content(folder: Path, files: str | None = None) -> dict[str, list]:
    """Return the rows of all tables, as they are in the files, with the columns in one order."""
    import pyarrow.parquet as pq

    import toolkit

    found = {}
    for name in toolkit.Archive(folder, files=files).state()["table"]:
        places = sorted((Path(url2pathname(urlsplit(files).path) if files else folder) / name).glob("*.parquet"))
        rows = [row for place in places for row in pq.read_table(place).to_pylist()]
        found[name] = [sorted((key, value) for key, value in row.items() if value is not None) for row in rows]
    return found
