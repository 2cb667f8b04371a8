"""Steps of committed series against the truth of generated histories: ``python tests/benchmarks/series/run.py``.

Three kinds of histories: those of ``tests/unit/gas/committed_histories.py``, and, if they are beside the checkout,
those of two scripts that somebody else wrote: ``../shared/bench/committed_series_sim.py`` and, with ways and gates,
``../shared/bench/committed_paths_sim.py``. Arguments: how many histories of each kind (1,000) and the first seed
(400,000). It fails if a rate misses its bar. The rule was shaped on seeds below 100,000 and some from 500,000 and
1,000,000 on; those are not a fair measure.
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
from tests.unit.gas.committed_paths import PATH_BARS, path_rates, score_path  # noqa: E402
from tests.unit.gas.committed_scores import BARS, rates, score  # noqa: E402
from toolkit.gas._findings import Change  # noqa: E402
from toolkit.gas._observations import Cause, Part  # noqa: E402
from toolkit.gas.committed._analysis import analyse  # noqa: E402

SCRIPTS = ROOT.parent / "shared" / "bench"
KINDS = {
    "schedule": Cause.SCHEDULE,
    "code": Cause.CODE,
    "dependency": Cause.CODE,
    "features": Cause.CONFIG,
}


def script(name):
    """Return a script of the folder as a module."""
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def of_script():
    """Return a function that makes the history of a seed with the first script of others."""
    module = script("committed_series_sim")

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
    return show(name, rates(tally), BARS)


def show(name, measured, bars):
    """Print rates with their bars; return the names of those that miss theirs."""
    missed = []
    for what, (cases, of) in measured.items():
        rate = cases / max(1, of)
        low, high = bars.get(what, (0.0, 1.0))
        bar = "" if what not in bars else f"   (bar {low:.0%})" if low else f"   (bar {high:.0%})"
        print(f"  {what:48} {cases:6,} of {of:6,} = {rate:6.1%}{bar}")
        if not low <= rate <= high:
            missed.append(f"{name}: {what}")
    return missed


def measure_paths(seeds):
    """Print the rates over the histories with ways, each kind with all seeds; return the names of missed bars."""
    module = script("committed_paths_sim")
    tally, started = Counter(), time.perf_counter()
    for kind in module.KINDS:
        for seed in seeds:
            score_path(module.paths(seed, kind), tally)
    spent = 1e3 * (time.perf_counter() - started) / (len(seeds) * len(module.KINDS))
    print(
        f"ways, {len(seeds):,} histories of each kind from seed {seeds[0]:,}: {spent:.0f} ms a history with its gates"
    )
    return show("ways", path_rates(tally), PATH_BARS)


def main(count=1_000, first=400_000):
    """Measure all kinds of histories."""
    seeds = range(first, first + count)
    missed = measure("own generator", history, seeds)
    if SCRIPTS.is_dir():
        missed += measure("script of others", of_script(), seeds)
        missed += measure_paths(seeds)
    sys.exit(f"bars missed: {'; '.join(missed)}" if missed else None)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
