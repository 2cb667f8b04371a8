"""Changed gas schedules, as people write them and in the form in which the ledger stores them."""

from __future__ import annotations

import re
from difflib import get_close_matches
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import TYPE_CHECKING

from toolkit._present.text import visible
from toolkit.errors import InputError
from toolkit.move._bcs import Reader
from toolkit.vm._bcs import listed, text_bytes
from toolkit.wire import GasSchedule

if TYPE_CHECKING:
    from collections.abc import Mapping

_FACTOR = re.compile(r"\s*[xX×*](\d{1,9}(?:\.\d{1,9})?)\s*", re.ASCII)
_MAX_VALUE = (1 << 64) - 1


def read_schedule(data: bytes) -> GasSchedule:
    """Decode the BCS of ``0x1::gas_schedule::GasScheduleV2``."""
    reader = Reader(data)
    return GasSchedule(reader.u64(), {reader.string(): reader.u64() for _ in range(reader.length())})


def proposed_schedule(schedule: GasSchedule, changes: GasSchedule | Mapping[str, int | str]) -> GasSchedule:
    """Return a gas schedule with changed parameters.

    Parameters
    ----------
    schedule : GasSchedule
    changes : GasSchedule or mapping of str to int or str
        A whole schedule; or a value, or a factor such as ``"x10"`` or ``"x0.5"`` (rounded to whole numbers), by the
        name of a parameter or by a pattern with ``*`` and ``?``. Entries are applied in order.

    Returns
    -------
    GasSchedule

    Raises
    ------
    InputError
        If a name is not in the schedule, or a value is not a u64 or a factor.
    """
    if isinstance(changes, GasSchedule):
        return changes
    entries = dict(schedule.entries)
    for name, value in changes.items():
        if not isinstance(name, str):
            raise InputError(f"schedule: expected the name of a parameter, such as 'instr.add', got {name!r:.60}")
        found = [one for one in entries if fnmatchcase(one, name)] if set(name) & set("*?[") else [name]
        if not found or found[0] not in entries:
            close = get_close_matches(name, entries, n=1)
            groups = ", ".join(sorted({f"{one.partition('.')[0]}." for one in entries}))
            raise InputError(
                f"schedule: the gas schedule in force has no parameter {visible(name, 80)}"
                f"{f' (did you mean {close[0]}?)' if close else ''}; its names begin with {visible(groups, 200)}"
            )
        factor = _FACTOR.fullmatch(value) if isinstance(value, str) else None
        if factor is None and (type(value) is not int or not 0 <= value <= _MAX_VALUE):
            raise InputError(
                f'schedule: {visible(name, 80)}: expected a u64, or a factor such as "x10", got {value!r:.60}'
            )
        for one in found:
            entries[one] = min(_MAX_VALUE, round(entries[one] * Fraction(factor[1]))) if factor else int(value)
    return GasSchedule(schedule.feature_version, entries)


def changed_schedule(data: bytes, changes: GasSchedule | Mapping[str, int | str]) -> bytes:
    """Return the BCS of a gas schedule with changes.

    Parameters
    ----------
    data : bytes
        BCS of ``0x1::gas_schedule::GasScheduleV2``.
    changes : GasSchedule or mapping
        As for `proposed_schedule`.

    Raises
    ------
    InputError
        If a parameter does not exist, or a value is not a u64 or a factor.
    """
    changed = proposed_schedule(read_schedule(data), changes)
    entries = (text_bytes(name) + value.to_bytes(8, "little") for name, value in changed.entries.items())
    return changed.feature_version.to_bytes(8, "little") + listed(entries)
