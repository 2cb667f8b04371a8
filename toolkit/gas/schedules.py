"""Gas schedules side by side."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.wire.gas import GasSchedule

__all__ = ["schedule_words"]

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


def _how(changed: list[str], before: GasSchedule, after: GasSchedule) -> str:
    ratios = {Fraction(after.entries[name], before.entries[name]) if before.entries[name] else None for name in changed}
    if len(ratios) == 1 and (ratio := next(iter(ratios))) is not None:
        if len(changed) > 1:
            return f"every one x{float(ratio):g}"
        name = changed[0]
        return f"{name} from {before.entries[name]} to {after.entries[name]} (x{float(ratio):g})"
    named = [f"{name} from {before.entries[name]} to {after.entries[name]}" for name in changed[:_MOST_NAMED]]
    return "among them " + ", ".join(named) if len(changed) > _MOST_NAMED else ", ".join(named)
