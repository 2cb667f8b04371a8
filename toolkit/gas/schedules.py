"""Gas schedules side by side."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.wire.gas import GasSchedule

__all__ = ["schedule_words", "uniform_ratio"]

_MOST_NAMED = 3


def schedule_words(before: GasSchedule, after: GasSchedule) -> str:
    """Say how two gas schedules differ; a change that is uniform is said as such.

    Parameters
    ----------
    before, after : GasSchedule

    Returns
    -------
    str
        ``459 of 512 parameters changed, every one x10``, or the changed parameters by name.
    """
    common = before.entries.keys() & after.entries.keys()
    changed = sorted(name for name in common if before.entries[name] != after.entries[name])
    added, removed = len(after.entries.keys() - common), len(before.entries.keys() - common)
    told = []
    if changed:
        told.append(f"{len(changed)} of {len(common)} parameters changed, {_how(changed, before, after)}")
    if added or removed:
        told.append(f"{added} added and {removed} removed")
    if before.feature_version != after.feature_version:
        told.append(f"feature version {before.feature_version} to {after.feature_version}")
    return "; ".join(told) or "no parameter differs"


def uniform_ratio(before: GasSchedule, after: GasSchedule) -> Fraction | None:
    """Return the one ratio by which every changed parameter changed, None where there is no such ratio."""
    common = before.entries.keys() & after.entries.keys()
    changed = [name for name in common if before.entries[name] != after.entries[name]]
    if any(before.entries[name] == 0 for name in changed):
        return None
    ratios = {Fraction(after.entries[name], before.entries[name]) for name in changed}
    return ratios.pop() if len(ratios) == 1 else None


def _how(changed: list[str], before: GasSchedule, after: GasSchedule) -> str:
    ratio = uniform_ratio(before, after)
    if ratio is not None and len(changed) > 1:
        return f"every one x{float(ratio):g}"
    named = [f"{name} from {before.entries[name]} to {after.entries[name]}" for name in changed[:_MOST_NAMED]]
    if ratio is not None:
        return f"{named[0]} (x{float(ratio):g})"
    return "among them " + ", ".join(named) if len(changed) > _MOST_NAMED else ", ".join(named)
