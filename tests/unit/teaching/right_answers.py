"""Right answers to the exercises that are judged by state."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.teaching._answers import answer_of

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"
APT = 100_000_000

sys.path.insert(0, str(NOTEBOOKS / "solutions"))
try:
    import mutants
finally:
    sys.path.pop(0)


def contract(source):
    return mutants.contract(source)


def requests(*calls):
    return mutants.requests(*((who, function, list(rest)) for who, function, *rest in calls))


def solved(name):
    return contract(mutants.solved(name))


RIGHT = {
    "06.4": requests(
        ("0xb0b", "0xcafe::registry::transfer", "bob", "0xa11ce"),
        ("0xa11ce", "0xcafe::registry::transfer", "alice", "0xb0b"),
    ),
    "08.4": requests(*(("0xa11ce", "0xcafe::registry::release", f"alice-{number}") for number in (3, 1, 2))),
    "14.4": answer_of("50%"),
    "16.1": requests(("0xbad", "0x5afe::vault::withdraw", "0xa11ce", 50 * APT)),
    "16.3": requests(("0xbad", "0x9001::pool::deposit", 1), ("0xbad", "0x9001::pool::reward", 60 * APT)),
    "17.3": answer_of(
        {"calls": {"Bob": ["0x4aff1e::raffle::tickets_of", ["0xb0b"]]}, "thresholds": {"percent": 5, "gas_units": 2}}
    ),
}
