"""What an execution reads from the state before anything runs: features, gas schedule, chain, time."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from toolkit.errors import SchemaError, Unsupported
from toolkit.move._bcs import Reader
from toolkit.vm import _features as flags
from toolkit.vm._schedule import Schedule
from toolkit.vm._state import Base, ReadError, resource_key
from toolkit.vm._types import FRAMEWORK, struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.vm._state import Read

MAINNET, TESTNET, TEST_CHAIN = 1, 2, 4
_HOUR = 3_600_000_000
MAX_FEATURE = 104  # a later one may change anything

# The machine runs at the state's time, not at today's, so it must know when the node's rules changed.
# Days on which timed features start on the public networks. On other chains they are on, but for two that start one
# hour after 1970 on the test chain: memory tracking, and the refusal to capture options (of which no day is known).
FIX_MEMORY_TRACKING = {MAINNET: datetime(2025, 3, 11, tzinfo=UTC), TESTNET: datetime(2025, 3, 7, tzinfo=UTC)}
FIX_TABLE_MEMORY = {MAINNET: datetime(2025, 10, 21, tzinfo=UTC), TESTNET: datetime(2025, 10, 16, tzinfo=UTC)}
NO_CAPTURED_OPTIONS: dict[int, datetime] = {}
CHARGE_BYTES_FOR_PRINTS = {MAINNET: datetime(2025, 3, 11, tzinfo=UTC), TESTNET: datetime(2025, 3, 7, tzinfo=UTC)}


class Environment:
    """Configuration of the ledger, read from the state.

    Attributes
    ----------
    base : Base
    features : Features
    schedule : Schedule
    chain_id : int
    last_reconfiguration : int
        Microseconds since 1970.
    usage : (int, int) or None
        Items and bytes of the whole state, which no key has.
    """

    def __init__(self, read: Read, usage: tuple[int, int] | None = None) -> None:
        self.base = Base(read)
        self.usage = usage
        try:
            # The length of the flags, as of any vector, comes before them; they fit in 127 bytes.
            self.features = flags.read_features(_needed_resource(self.base, "features::Features")[1:])
            self.chain_id = _needed_resource(self.base, "chain_id::ChainId")[0]
            reconfiguration = Reader(_needed_resource(self.base, "reconfiguration::Configuration"))
            reconfiguration.fixed(8)  # the epoch
            self.last_reconfiguration = reconfiguration.u64()
            self.schedule = Schedule.from_bcs(_needed_resource(self.base, "gas_schedule::GasScheduleV2"))
        except (SchemaError, IndexError):
            raise Unsupported("a state whose configuration cannot be decoded") from None
        if (latest := max(self.features, default=0)) > MAX_FEATURE:
            raise Unsupported(f"feature {latest}; features up to {MAX_FEATURE} are known")
        if flags.ENUM_OPTION in self.features and flags.FRAMEWORK_OPTION not in self.features:
            raise Unsupported("feature 101 without feature 103: the node's built-in option and mem modules")

    def timed(self, starts: dict[int, datetime]) -> bool:
        """Return whether a timed feature is on.

        Raises
        ------
        Unsupported
            On the day it starts, whose hour is not known.
        """
        if self.chain_id == TEST_CHAIN and (starts is FIX_MEMORY_TRACKING or starts is NO_CAPTURED_OPTIONS):
            return self.last_reconfiguration >= _HOUR
        if self.chain_id not in starts:
            return True
        start = starts[self.chain_id]
        now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=min(self.last_reconfiguration, 10**17))
        if start <= now < start + timedelta(days=1):
            raise Unsupported(f"the day on which a timed feature starts, {start:%Y-%m-%d}")
        return now >= start


@contextmanager
def boundary() -> Iterator[None]:
    """Let errors of the caller's `read` pass as they are, and name what is nested too deeply for Python."""
    try:
        yield
    except RecursionError:
        raise Unsupported("values or types that are nested this deeply") from None
    except ReadError as failure:
        raise failure.args[0] from None


def framework_resource(base: Base, name: str) -> bytes | None:
    """Return the BCS of a resource of ``0x1`` stored at ``0x1``; None if it is absent."""
    found = base.get(resource_key(FRAMEWORK, struct(f"0x1::{name}")))
    return None if found is None else found[0]


def _needed_resource(base: Base, name: str) -> bytes:
    found = framework_resource(base, name)
    if found is None:
        raise Unsupported(f"a state without 0x1::{name}")
    return found
