"""Step search against a dense sweep: which of a long history's steps the demo study finds, and for how many requests.

Run with ``python tests/benchmarks/steps/run.py [versions] [seed]``; not part of the timed suite. The sweep asks the
ledger object itself at every version; the study asks a real server over HTTP. Bars: every step exact with its right
cause, in fewer than 5 % of the sweep's requests for 5,000 versions and fewer than 0.5 % for 200,000.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import toolkit
from tests.integration.truth import Counting, dense_steps, true_kind
from toolkit import embedded
from toolkit.gas._observations import Source

BARS = {5_000: 5.0, 200_000: 0.5}


def views_of_demo(node):
    """Return the demo study on a node, its views alone: simulations and committed transactions have no steps."""
    demo = toolkit.Study.load("demo")
    views = [call for call in demo.calls if call.source == Source.VIEW]
    return toolkit.Study(title=demo.title, node=node, calls=views, versions=demo.versions)


def sweep(ledger, calls):
    """Return the true steps of each call by label, and the seconds it took."""
    started = time.perf_counter()
    return {call.name: dense_steps(ledger, call) for call in calls}, time.perf_counter() - started


def table(run, truth, ledger):
    """Print a line per call; return how many steps there are, and how many were found exactly with their cause."""
    print("| call | true steps | exact, right cause | wrong cause | missed | intervals | reads |")
    print("|---|---|---|---|---|---|---|")
    reads = run.observations.groupby("label").size()
    total = right = 0
    for label, steps in truth.items():
        rows = run.steps[run.steps["label"] == label]
        exact = rows[rows["exact"]].set_index("version_after")["cause"].to_dict()
        good = sum(exact.get(version) == true_kind(ledger, version) for version in steps)
        missed = len(steps.keys() - exact.keys())
        wrong = len(exact) - good
        print(f"| {label} | {len(steps)} | {good} | {wrong} | {missed} | {(~rows['exact']).sum()} | {reads[label]} |")
        total, right = total + len(steps), right + good
    return total, right


def main():
    """Build, sweep, search, compare."""
    versions = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    started = time.perf_counter()
    ledger = embedded.Ledger.with_history(seed=seed, versions=versions)
    print(f"history of {versions:,} versions, seed {seed}: {time.perf_counter() - started:.1f} s")
    counting = Counting()
    with (
        embedded.serve(ledger, port=0, faults=counting) as url,
        toolkit.connect(url) as node,
        tempfile.TemporaryDirectory() as out,
    ):
        study = views_of_demo(node)
        started = time.perf_counter()
        run = study.run(Path(out) / "run", progress=False)
        seconds = time.perf_counter() - started
        truth, swept_s = sweep(ledger, study.calls)
        total, right = table(run, truth, ledger)
    dense = len(study.calls) * versions
    reads, asked = len(run.observations), counting.requests
    print(f"{right} of {total} steps found exactly with their right cause")
    print(f"{reads:,} reads of views; with causes and all {asked:,} HTTP requests, counted by the server:")
    print(f"{100 * asked / dense:.3f} % of the sweep's {dense:,} (the bar is {BARS.get(versions, 0.5)} %)")
    print(f"study {seconds:.1f} s, sweep without HTTP {swept_s:.1f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB with ledger and server")


if __name__ == "__main__":
    main()
