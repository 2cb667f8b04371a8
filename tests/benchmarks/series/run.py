"""Steps of committed series against the truth of generated histories: ``python tests/benchmarks/series/run.py``.

Two kinds of histories: those of ``tests/unit/gas/committed_histories.py``, and, if it is beside the checkout, those of
the script ``../shared/bench/committed_series_sim.py``, which somebody else wrote. Arguments: how many histories of each
kind (1,000) and the first seed (400,000). It fails if a rate misses its bar. The rule was shaped
on seeds below 100,000; those are not a fair measure.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.unit.gas.committed_histories import History, history  # noqa: E402  # the path comes first
from tests.unit.gas.committed_scores import BARS, rates, score  # noqa: E402
from toolkit.gas._observations import Cause, Change, Part  # noqa: E402
from toolkit.gas.committed._analysis import analyse  # noqa: E402

SCRIPT = ROOT.parent / "shared" / "bench" / "committed_series_sim.py"
KINDS = {
    "schedule": Cause.SCHEDULE,
    "code": Cause.CODE,
    "dependency": Cause.CODE,
    "features": Cause.CONFIG,
}


def of_script(path):
    """Return a function that makes the history of a seed with the script of others."""
    spec = importlib.util.spec_from_file_location("committed_series_sim", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)

    def make(seed):
        made = module.history(seed)
        data = made.data
        frame = pd.DataFrame(
            {
                "ledger_version": data["version"],
                **{part.column: data[part.value].astype(np.int64) for part in Part if part is not Part.REFUND},
                "gas_unit_price": data["price"],
                "success": data["success"],
                "slots_created": data["slots_created"].astype(np.int64),
                "payload_bytes": data["size"],
            }
        )
        changes = [
            Change(change["version"], KINDS[change["kind"]], str(number), frozenset(map(Part, change["may_touch"])))
            for number, change in enumerate(made.timeline)
        ]
        truth = [row | {"part": Part(row["part"]), "kind": row["stratum"]} for row in made.truth]
        return History(frame, changes, data["stratum"], truth, made.notes)

    return make


def measure(name, make, seeds):
    """Print the rates over the histories of some seeds; return the names of those that miss their bar."""
    tally, seconds = Counter(), []
    for seed in seeds:
        made = make(seed)
        started = time.perf_counter()
        analysis = analyse(made.frame, made.changes)
        seconds.append(time.perf_counter() - started)
        score(made, analysis, tally)
    spent = f"{1e3 * np.mean(seconds):.0f} ms a history, at most {1e3 * max(seconds):.0f} ms"
    print(f"{name}, {len(seeds):,} histories from seed {seeds[0]:,}: {spent}")
    missed = []
    for what, (cases, of) in rates(tally).items():
        rate = cases / max(1, of)
        low, high = BARS.get(what, (0.0, 1.0))
        bar = "" if what not in BARS else f"   (bar {low:.0%})" if low else f"   (bar {high:.0%})"
        print(f"  {what:40} {cases:6,} of {of:6,} = {rate:6.1%}{bar}")
        if not low <= rate <= high:
            missed.append(f"{name}: {what}")
    return missed


def main(count=1_000, first=400_000):
    """Measure both kinds of histories."""
    seeds = range(first, first + count)
    missed = measure("own generator", history, seeds)
    if SCRIPT.is_file():
        missed += measure("script of others", of_script(SCRIPT), seeds)
    sys.exit(f"bars missed: {'; '.join(missed)}" if missed else None)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
