"""Time per instruction of the Move machine against a Python loop, and a transfer from prologue to epilogue.

``python tests/benchmarks/vm/run.py [--rounds 7]``: interleaved rounds, processor time, medians. The loop needs nothing
but this repository; the transfer is a recorded one, from ``../shared/data/executions``, and is left out without it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.conformance import recorded_executions as recorded  # noqa: E402
from tests.unit.vm.small_ledger import call, state, u64  # noqa: E402
from toolkit import vm  # noqa: E402

TURNS = 20_000
INSTRUCTIONS_PER_TURN = 9
TRANSFERS = 20


def python_loop() -> None:
    """Add integers in as many turns."""
    total = 0
    for one in range(TURNS * INSTRUCTIONS_PER_TURN):
        total += one


def machine_loop() -> None:
    """Count to TURNS in Move, with gas."""
    ledger = state(**{"txn.max_execution_gas": 10**12})
    done = vm.execute(call("loop", u64(TURNS), max_gas=2_000_000), ledger.get, simulate=True)
    assert done.status.kind == "success", done.status


def transfer() -> Callable[[], None]:
    """Return a recorded transfer between accounts that exist."""
    record = next(one for one in recorded.lines("transactions") if "transfer" in one["note"])
    transaction, read = recorded.value_of(record["transaction"]), recorded.reader(record)
    index = record["transaction_index"]

    def run() -> None:
        for _ in range(TRANSFERS):
            vm.execute(transaction, read, transaction_index=index)

    return run


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    whats = {"python": python_loop, "machine": machine_loop}
    if recorded.FOLDER.is_dir():
        whats["transfer"] = transfer()
    taken: dict[str, list[float]] = {name: [] for name in whats}
    for _ in range(rounds + 1):
        for name, run in whats.items():
            start = time.process_time()
            run()
            taken[name].append(time.process_time() - start)
    median = {name: statistics.median(times[1:]) for name, times in taken.items()}  # the first round fills caches
    count = TURNS * INSTRUCTIONS_PER_TURN
    print(f"a turn of the Python loop    {median['python'] / count * 1e9:8.1f} ns")
    ratio = median["machine"] / median["python"]
    speed = count / median["machine"] / 1e6
    print(f"an instruction with gas      {median['machine'] / count * 1e9:8.1f} ns  {ratio:.1f} turns, {speed:.1f} M/s")
    if "transfer" in median:
        print(f"a transfer                   {median['transfer'] / TRANSFERS * 1e3:8.2f} ms")


if __name__ == "__main__":
    main()
