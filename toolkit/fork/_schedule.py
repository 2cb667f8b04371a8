"""Changed gas schedules, in the form in which the ledger stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import InputError
from toolkit.move._bcs import Reader, Writer
from toolkit.wire import GasSchedule

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_NAMED = 3  # names in a message


def read_schedule(data: bytes) -> GasSchedule:
    """Decode the BCS of ``0x1::gas_schedule::GasScheduleV2``."""
    reader = Reader(data)
    return GasSchedule(reader.u64(), {reader.string(): reader.u64() for _ in range(reader.length())})


def changed_schedule(data: bytes, changes: GasSchedule | Mapping[str, int]) -> bytes:
    """Return the BCS of a gas schedule with changes.

    Parameters
    ----------
    data : bytes
        BCS of ``0x1::gas_schedule::GasScheduleV2``.
    changes : GasSchedule or mapping
        A whole schedule, or parameters with their new values.

    Raises
    ------
    InputError
        If a parameter does not exist, or a value is not a u64.
    """
    now = read_schedule(data)
    version, entries = now.feature_version, dict(now.entries)
    if isinstance(changes, GasSchedule):
        version, entries = changes.feature_version, dict(changes.entries)
    else:
        unknown = [name for name in changes if name not in entries]
        if unknown:
            raise InputError(
                f"the gas schedule has no parameter {', '.join(unknown[:_MAX_NAMED])}; node.gas_schedule().entries "
                "lists them"
            )
        entries |= changes
    writer = Writer()
    writer.u64(version)
    writer.uleb128(len(entries))
    for name, value in entries.items():
        writer.string(name)
        writer.u64(value)
    return bytes(writer.getvalue())
