"""Draw the verdict of gates over generated histories with ways: ``python tests/benchmarks/series/gates.py gates.png``.

Each of 200 histories of an upgrade is judged with one limit, between a fifth and three times its largest true rise (of
the mean at the same use, or of a way). Points above the diagonal have to pass, those below it have to fail.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from run import script  # noqa: E402  # the path comes first

from tests.unit.gas.committed_paths import STEPS, calls_of, path_frame, true_rises  # noqa: E402
from toolkit.gas._gate import judge, rules_of  # noqa: E402

COLOURS = {"passed": "tab:green", "failed": "tab:red", "could not judge": "tab:gray"}


def main(out="gates.png", count=200, first=700_000):
    """Judge the histories and draw them."""
    module, random = script("committed_paths_sim"), np.random.default_rng(0)
    points = []
    for seed in range(first, first + count):
        made = module.paths(seed, str(random.choice(STEPS)))
        largest = max(true_rises(made))
        if largest < 0.5:
            continue
        limit = largest * float(np.exp(random.uniform(np.log(0.2), np.log(3))))
        verdict = judge(calls_of(path_frame(made), made.change["position"]), rules_of(f"{limit:.4f}%")).verdict
        points.append((largest, limit, verdict))
    axes = Figure(figsize=(7, 5.5), layout="constrained").subplots()
    for verdict, colour in COLOURS.items():
        mine = np.array([point[:2] for point in points if point[2] == verdict]).reshape(-1, 2)
        axes.scatter(mine[:, 0], mine[:, 1], s=18, color=colour, label=f"{verdict} ({len(mine)})")
    ends = [0.8, 300]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="largest true rise (%)", ylabel="limit of the gate (%)")
    axes.set_title(f"Verdicts of {len(points)} gates over committed transactions")
    axes.legend(frameon=False)
    axes.figure.savefig(out, dpi=120)
    wrong = sum((verdict == "passed") != (limit > rise) for rise, limit, verdict in points)
    print(f"{len(points)} gates, {wrong} on the wrong side of the diagonal: {out}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
