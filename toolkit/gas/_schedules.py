"""Comparison of gas schedules: as a frame and as text."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from toolkit._present.text import plural, times, visible
from toolkit.errors import InputError
from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import SCHEDULE_DIFF
from toolkit.wire import GasSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


_MAX_NAMED = 3
_MAJORITY = 0.5


def schedule_diff(before: GasSchedule, after: GasSchedule) -> pd.DataFrame:
    """Compare two gas schedules, parameter by parameter.

    Parameters
    ----------
    before, after : GasSchedule
        As ``node.gas_schedule(ledger_version)`` returns.

    Returns
    -------
    DataFrame, shape (n, 6)
        One row per parameter that differs, by name: ``name``, ``kind`` (added, removed or changed), ``before`` and
        ``after`` (uint64; internal gas units unless the name says otherwise), ``change`` (i128, exact) and ``ratio``
        (float64, after divided by before; null if a side is missing or before is 0). Empty if nothing differs.

    Raises
    ------
    InputError
        If a side is not a gas schedule.

    See Also
    --------
    toolkit.plots.schedule_changes : Draws the frame.

    Examples
    --------
    >>> from toolkit.wire._gas import GasSchedule
    >>> before, after = GasSchedule(1, {"a": 2, "b": 5}), GasSchedule(1, {"a": 20, "c": 1})
    >>> schedule_diff(before, after)["kind"].tolist()
    ['changed', 'removed', 'added']
    """
    sides_given: tuple[object, ...] = (before, after)
    for side in sides_given:
        if not isinstance(side, GasSchedule):
            got = type(side).__name__
            raise InputError(f"schedule_diff takes two gas schedules, as node.gas_schedule(version) returns; got {got}")
    names = [
        name
        for name in sorted(before.entries.keys() | after.entries.keys())
        if before.entries.get(name) != after.entries.get(name)
    ]
    sides = [[side.entries.get(name) for name in names] for side in (before, after)]
    pairs = list(zip(*sides, strict=True))
    columns: dict[str, Sequence[Any]] = {
        "name": names,
        "kind": [_kind(*pair) for pair in pairs],
        "before": sides[0],
        "after": sides[1],
        "change": [None if None in pair else pair[1] - pair[0] for pair in pairs],
        "ratio": [None if None in pair or not pair[0] else float(Fraction(pair[1], pair[0])) for pair in pairs],
    }
    return rows_frame(SCHEDULE_DIFF, columns)


def schedule_words(before: GasSchedule, after: GasSchedule) -> str:
    """Return how two gas schedules differ, as text; a uniform change is described as one.

    Parameters
    ----------
    before, after : GasSchedule

    Returns
    -------
    str
        ``459 of 512 parameters changed, every one x10``, or the changed parameters by name.
    """
    common = before.entries.keys() & after.entries.keys()
    parts = []
    changed = _changed(before, after)
    if changed:
        parts.append(f"{len(changed)} of {len(common)} parameters changed, {_how(changed, before, after)}")
    for done, names in (("added", after.entries.keys() - common), ("removed", before.entries.keys() - common)):
        if names:
            named = f" ({', '.join(map(_shown, sorted(names)))})" if len(names) <= _MAX_NAMED else ""
            parts.append(f"{plural(len(names), 'parameter')} {done}{named}")
    if before.feature_version != after.feature_version:
        parts.append(f"gas feature version {before.feature_version} to {after.feature_version}")
    return "; ".join(parts) or "no parameter differs"


def uniform_ratio(before: GasSchedule, after: GasSchedule) -> Fraction | None:
    """Return the ratio by which every changed parameter changed; None if there is not one for all."""
    ratios = _ratios(_changed(before, after), before, after)
    return next(iter(ratios)) if len(ratios) == 1 else None


def _changed(before: GasSchedule, after: GasSchedule) -> list[str]:
    common = before.entries.keys() & after.entries.keys()
    return sorted(name for name in common if before.entries[name] != after.entries[name])


def _ratios(changed: Sequence[str], before: GasSchedule, after: GasSchedule) -> Counter[Fraction | None]:
    """Count the ratios by which parameters changed; None for a parameter that was 0."""
    sides = ((before.entries[name], after.entries[name]) for name in changed)
    return Counter(Fraction(new, old) if old else None for old, new in sides)


def _how(changed: Sequence[str], before: GasSchedule, after: GasSchedule) -> str:
    (ratio, count), *others = _ratios(changed, before, after).most_common()
    if ratio is not None and not others and len(changed) > 1:
        return f"every one {times(float(ratio))}"
    named = [_change(name, before.entries[name], after.entries[name]) for name in changed[:_MAX_NAMED]]
    if len(changed) <= _MAX_NAMED:
        return ", ".join(named)
    if ratio is not None and count > _MAJORITY * len(changed):
        return f"{count} of them {times(float(ratio))}"
    return "among them " + ", ".join(named)


def _change(name: str, before: int, after: int) -> str:
    share = f" ({times(after / before)})" if before else ""
    return f"{_shown(name)} from {before} to {after}{share}"


def _shown(name: str) -> str:
    """Return the name of a parameter, which is text from the chain, safe for a terminal."""
    return visible(name, 80)


def _kind(before: int | None, after: int | None) -> str:
    if before is None:
        return "added"
    return "removed" if after is None else "changed"
