"""Judge histories that somebody else made: ``python tests/benchmarks/series/judge.py FOLDER [--gate 5%]``.

``FOLDER/NAME.parquet`` has a row a transaction, with the columns of ``usage_histories``; ``FOLDER/NAME.json`` has
``{"changes": [{"version": 1234, "kind": "code"}]}``. Prints a line of JSON a history: its steps, how many shifts no
change explains, and, with a limit, the verdict of a gate for which the first change separates the two sides. A history
that cannot be judged as it is written is named on stderr, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from toolkit.gas._findings import Change  # noqa: E402  # the path comes first
from toolkit.gas._observations import Cause, Part  # noqa: E402
from toolkit.gas._rules import Threshold  # noqa: E402
from toolkit.gas.committed._analysis import analyse  # noqa: E402
from toolkit.gas.committed._fees import FeeChange, Fees  # noqa: E402
from toolkit.gas.committed._strata import octas_per_unit  # noqa: E402

# Columns that are counted with, if a history has them, and what keeps their products within 64 bits.
NUMBERS = ("ledger_version", "gas_used", "gas_unit_price", *(part.column for part in Part))
MAX_NUMBER = 10**15

# Names of kinds in the generators; others are the toolkit's own.
KINDS = {"dependency": Cause.CODE, "features": Cause.CONFIG}


def changes_of(document):
    """Return the changes of a history; one that names the parts it can affect is limited to them."""
    return [
        Change(
            int(one["version"]),
            KINDS.get(one["kind"]) or Cause(one["kind"]),
            parts=frozenset(map(Part, one.get("parts", Part))),
        )
        for one in document["changes"]
    ]


def read_history(path):
    """Return the rows and the changes of a history; ValueError says what is wrong with it."""
    frame = pd.read_parquet(path)
    for name in (name for name in NUMBERS if name in frame):
        one = frame[name]
        whole = pd.api.types.is_numeric_dtype(one) and (one.astype("Float64").abs() <= MAX_NUMBER).fillna(value=False)
        if not np.all(whole) or (one % 1 != 0).any():
            raise ValueError(f"column {name}: expected a whole number up to {MAX_NUMBER:,} in every row")
        frame[name] = one.astype("int64")
    if "gas_used" not in frame:
        storage = -(-frame["storage_fee_octas"] // frame["gas_unit_price"])
        frame["gas_used"] = frame["execution_gas_units"] + frame["io_gas_units"] + storage
    document = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    try:
        return frame, changes_of(document)
    except KeyError as error:
        raise ValueError(f"changes: expected `version` and `kind` of each, missing {error}") from None


def judged(frame, changes, limit=None):
    """Return the findings in a history as a mapping, and the verdict under a limit."""
    found = analyse(frame, changes)
    steps = {(change.ledger_version, step.part.value, step.sure) for step in found.steps for change in step.causes}
    verdict = None
    if limit is not None and changes:
        at = min(change.ledger_version for change in changes)
        before, after = frame[frame["ledger_version"] < at], frame[frame["ledger_version"] >= at]
        price = round(octas_per_unit(before))
        fees = FeeChange.of(Fees.of(before, price), Fees.of(after, price), price)
        verdict = fees.judged(Threshold.of(limit)).verdict.value
    return {
        "steps": [{"version": version, "part": part, "sure": sure} for version, part, sure in sorted(steps)],
        "unexplained": len({step.version_after for step in found.unexplained if not step.weak}),
        "verdict": verdict,
    }


def main():
    """Judge the histories of a folder, by name, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gate", help="limit of a gate, such as 5%%")
    given = parser.parse_args()
    wrong = False
    for path in sorted(given.folder.glob("*.parquet")):
        try:
            found = judged(*read_history(path), given.gate)
        except (OSError, ValueError) as error:  # the toolkit's errors of input are ValueErrors, too
            print(f"{path}: {error}", file=sys.stderr)
            wrong = True
        else:
            print(json.dumps({"name": path.stem} | found), flush=True)
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
