"""Gas schedules: the published figures by release, and one schedule as the meter reads it.

The figures are real; what the meter does with them (`toolkit.embedded.meter`) is a model.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Schedule", "release_names", "released_schedule"]


class Schedule:
    """Parameters of one gas schedule, by their on-chain names.

    Parameters
    ----------
    feature_version : int
        Gas feature version.
    entries : mapping of str to int
        Value of each parameter: internal gas units unless its name says otherwise (octas, bytes, counts).
    """

    __slots__ = ("entries", "feature_version", "scaling")

    def __init__(self, feature_version: int, entries: Mapping[str, int]) -> None:
        self.feature_version = feature_version
        self.entries = dict(entries)
        self.scaling = self.entries.get("txn.gas_unit_scaling_factor", 1_000_000)

    def __getitem__(self, name: str) -> int:
        """Return a parameter; one the schedule does not have costs nothing, as on chain before it existed."""
        return self.entries.get(name, 0)

    @classmethod
    def from_resource(cls, data: Mapping[str, Any]) -> Schedule:
        """Read a ``0x1::gas_schedule::GasScheduleV2`` value."""
        return cls(data["feature_version"], {entry["key"]: entry["val"] for entry in data["entries"]})

    def to_resource(self) -> dict[str, Any]:
        """Return the ``0x1::gas_schedule::GasScheduleV2`` value, parameters in order of name."""
        entries = [{"key": name, "val": value} for name, value in sorted(self.entries.items())]
        return {"feature_version": self.feature_version, "entries": entries}


def release_names() -> tuple[str, ...]:
    """Return the releases whose schedules are known, oldest first."""
    return tuple(_releases())


def released_schedule(release: str) -> Schedule:
    """Return the gas schedule a release published.

    Parameters
    ----------
    release : str
        For example ``"v1.41.1"``; `release_names` lists them.

    Raises
    ------
    InputError
        If no such release is known.
    """
    try:
        return _releases()[release]
    except KeyError:
        known = ", ".join(release_names())
        raise InputError(f"no gas schedule of release {release[:40]!r} is known; there are: {known}") from None


@cache
def _releases() -> dict[str, Schedule]:
    """Rebuild every release's schedule from the table of changes."""
    text = (files("toolkit.embedded") / "data" / "gas_schedules.csv").read_text(encoding="utf-8")
    schedules: dict[str, Schedule] = {}
    entries: dict[str, int] = {}
    release, feature_version = "", 0
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        if row["release"] != release and release:
            schedules[release] = Schedule(feature_version, entries)
        release, feature_version = row["release"], int(row["feature_version"])
        if not row["parameter"]:  # a release that changed no parameter
            continue
        if row["value"]:
            entries[row["parameter"]] = int(row["value"])
        else:
            entries.pop(row["parameter"], None)
    schedules[release] = Schedule(feature_version, entries)
    return schedules
