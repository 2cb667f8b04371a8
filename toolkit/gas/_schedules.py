"""Comparison of gas schedules, parameter by parameter and in words."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from toolkit._present.text import listed, plural, times, visible
from toolkit.errors import InputError
from toolkit.frames._columns import frame_of_rows
from toolkit.frames._schema import SCHEDULE_DIFF
from toolkit.wire import GasSchedule

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import pandas as pd


# Parameters that a sentence names; more make it longer than anybody reads.
_MAX_NAMED = 3
# Characters of a parameter's name in a sentence. Names come from the node.
_MAX_NAME = 80
# A ratio is stated if more than this share of the changed parameters have it in common.
_MAJORITY = 0.5


def schedule_diff(before: GasSchedule, after: GasSchedule) -> pd.DataFrame:
    """Compare two gas schedules, parameter by parameter.

    Parameters
    ----------
    before, after : GasSchedule
        As returned by ``node.gas_schedule(ledger_version)``.

    Returns
    -------
    DataFrame, shape (n, 6)
        One row per parameter that differs, sorted by name: ``name``, ``kind`` (added, removed or changed), ``before``
        and ``after`` (uint64; internal gas units unless the name says otherwise), ``change`` (i128, exact) and
        ``ratio`` (float64, after divided by before; null if a value is missing or before is 0). Empty if nothing
        differs.

    Raises
    ------
    InputError
        If `before` or `after` is not a gas schedule.

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
    given: list[Any] = [before, after]
    for schedule in given:
        if not isinstance(schedule, GasSchedule):
            got = type(schedule).__name__
            raise InputError(f"schedule_diff takes two schedules returned by node.gas_schedule(version), got {got}")
    rows: list[dict[str, Any]] = []
    for name in sorted(before.entries.keys() | after.entries.keys()):
        old, new = before.entries.get(name), after.entries.get(name)
        if old is None:
            rows.append({"name": name, "kind": "added", "after": new})
        elif new is None:
            rows.append({"name": name, "kind": "removed", "before": old})
        elif old != new:
            # Dividing two ints rounds once, even beyond 2**53, where each would lose digits as a float.
            ratio = new / old if old else None
            changed = {"kind": "changed", "before": old, "after": new, "change": new - old, "ratio": ratio}
            rows.append({"name": name} | changed)
    return frame_of_rows(SCHEDULE_DIFF, rows)


def changed_ratios(before: GasSchedule, after: GasSchedule) -> dict[str, Fraction | None]:
    """Return the ratio of each parameter that both schedules have with different values; None if it was 0 before."""
    ratios: dict[str, Fraction | None] = {}
    for name in sorted(before.entries.keys() & after.entries.keys()):
        old, new = before.entries[name], after.entries[name]
        if new != old:
            ratios[name] = Fraction(new, old) if old else None
    return ratios


def schedule_words(before: GasSchedule, after: GasSchedule) -> str:
    """Describe the difference between two schedules, such as ``459 of 512 parameters changed, every one ×10``."""
    common = before.entries.keys() & after.entries.keys()
    parts = []
    if ratios := changed_ratios(before, after):
        parts.append(f"{len(ratios)} of {len(common)} parameters changed, {_ratios_text(ratios, before, after)}")
    if added := after.entries.keys() - common:
        same = "" if ratios else ", no price changed"
        parts.append(f"{plural(len(added), 'parameter')} added{_names_text(added)}{same}")
    if removed := before.entries.keys() - common:
        parts.append(f"{plural(len(removed), 'parameter')} removed{_names_text(removed)}")
    if before.feature_version != after.feature_version:
        parts.append(f"gas feature version {before.feature_version} to {after.feature_version}")
    return "; ".join(parts) or "no parameter differs"


def _names_text(names: Collection[str]) -> str:
    """Return the names in parentheses, or nothing if there are too many."""
    if len(names) > _MAX_NAMED:
        return ""
    return f" ({listed((visible(name, _MAX_NAME) for name in sorted(names)), _MAX_NAMED)})"


def _ratios_text(ratios: Mapping[str, Fraction | None], before: GasSchedule, after: GasSchedule) -> str:
    """Return the ratio that all or most changed parameters share; otherwise, the first parameters by name."""
    commonest, count = Counter(ratios.values()).most_common(1)[0]
    if commonest is not None and count == len(ratios) > 1:
        return f"every one {times(float(commonest))}"
    if commonest is not None and count > _MAJORITY * len(ratios) and len(ratios) > _MAX_NAMED:
        return f"{count} of them {times(float(commonest))}"
    parts = []
    for name, ratio in list(ratios.items())[:_MAX_NAMED]:
        factor = "" if ratio is None else f" ({times(float(ratio))})"
        parts.append(f"{visible(name, _MAX_NAME)} from {before.entries[name]} to {after.entries[name]}{factor}")
    named = ", ".join(parts)
    return named if len(ratios) <= _MAX_NAMED else f"among them {named}"
