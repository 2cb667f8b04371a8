"""What the changes of a transaction cost: io for bytes, events and writes, the storage fee, deposits and refunds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.vm import _features as flags
from toolkit.vm import _gas_versions as since
from toolkit.vm._bcs import tag_bytes
from toolkit.vm._errors import MoveError
from toolkit.vm._state import WriteKind, write_order
from toolkit.wire._state_keys import key_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._features import Features
    from toolkit.vm._gas import Meter
    from toolkit.vm._schedule import Schedule
    from toolkit.vm._state import Change, Event, Overlay, StateValue
    from toolkit.wire._on_chain import Metadata

_ORDER = {WriteKind.VALUE: 0, WriteKind.DELAYED: 0, WriteKind.AGGREGATOR: 1, WriteKind.CODE: 2}  # of charging


def event_size(event: Event) -> int:
    """Return the size of an event, as it is charged."""
    key = 0 if event.key is None else len(event.key) + 8
    return key + len(tag_bytes(event.type)) + len(event.data)


def check_limits(overlay: Overlay, events: Sequence[Event], schedule: Schedule) -> None:
    """Check the number and size of writes and events.

    Raises
    ------
    MoveError
        If a limit is exceeded.
    """

    def check(amount: int, limit: str) -> None:
        if amount > schedule[f"txn.max_{limit}"] and schedule[f"txn.max_{limit}"]:
            raise MoveError("STORAGE_WRITE_LIMIT_REACHED")

    if schedule.version >= since.WRITE_LIMITS:
        check(len(overlay.changes), "write_ops_per_transaction")
    total = 0
    for key, change in overlay.changes.items():
        if change.value is not None:
            size = key_size(key) + len(change.value)
            check(size, "bytes_per_write_op")
            total += size
    check(total, "bytes_all_write_ops_per_transaction")
    for event in events:
        check(len(event.data), "bytes_per_event")
    check(sum(len(event.data) for event in events), "bytes_all_events_per_transaction")


class ChangeCharges:
    """Charges the changes of a transaction and sets the metadata of its writes.

    Parameters
    ----------
    overlay : Overlay
        Changes of the prologue and of the payload.
    events : sequence of Event
    meter : Meter
    features : Features
    now : int
        Time of the block in microseconds.
    """

    def __init__(self, overlay: Overlay, events: Sequence[Event], meter: Meter, features: Features, now: int) -> None:
        self.overlay = overlay
        self.events = events
        self.meter = meter
        self.schedule = meter.schedule
        self.features = features
        self.created = now if flags.SLOT_METADATA in features else 0
        # Nobody pays the write of an aggregator that was never read.
        priced = [key for key, change in overlay.changes.items() if change.kind is not WriteKind.DELTA]
        self.keys = sorted(priced, key=lambda key: (_ORDER[overlay.changes[key].kind], write_order(key)))

    def charge(self, size: int, price: int) -> int:
        """Charge everything; return the refund in octas.

        Parameters
        ----------
        size : int
            Size of the transaction in bytes.
        price : int
            Octas per gas unit.

        Raises
        ------
        MoveError
            If it exceeds a limit.
        """
        self._charge_io(size)
        if price == 0:
            return 0
        refundable = self.schedule.version >= since.REFUNDABLE_BYTES and flags.REFUNDABLE_BYTES in self.features
        deposited = self._refundable_deposit if refundable else self._legacy_deposit
        fee = refund = 0
        for key in self.keys:
            change, before = self.overlay.changes[key], self.overlay.base.get(key)
            old = before and before[1]
            paid, returned, metadata = 0, sum((old or (0, 0, 0))[:2]), old
            if change.value is not None:
                returned = 0
                paid, metadata = deposited(change, key_size(key) + len(change.value), before)
            facts = f"{self._facts(key)} prev={len(before[0]) if before else 0} fee={paid} refund={returned}"
            self.meter.write("STORAGE_WRITE", facts)
            self.overlay.changes[key] = change._replace(metadata=metadata)
            fee += paid
            refund += returned
        if not refundable:
            fee += self._legacy_fee(size)
        self.meter.charge_storage(fee, price)
        return refund if flags.STORAGE_REFUND in self.features else 0

    def _facts(self, key: bytes) -> str:
        value = self.overlay.changes[key].value
        return f"{key.hex()} {self.overlay.operation(key)}" + ("" if value is None else f" len={len(value)}")

    def _charge_io(self, size: int) -> None:
        prices, meter = self.schedule, self.meter
        meter.charge_io(prices["txn.storage_io_per_transaction_byte_write"] * size, "IO_TXN", f"size={size}")
        for event in self.events:
            amount = prices["txn.storage_io_per_event_byte_write"] * event_size(event)
            meter.charge_io(amount, "IO_EVENT", f"{event.type} len={len(event.data)}")
        for key in self.keys:
            meter.charge_io(self._write_price(key, self.overlay.changes[key].value), "IO_WRITE", self._facts(key))

    def _write_price(self, key: bytes, value: bytes | None) -> int:
        prices = self.schedule
        slot, byte = prices["txn.storage_io_per_state_slot_write"], prices["txn.storage_io_per_state_byte_write"]
        size = key_size(key) + len(value or b"")
        if prices.version >= since.WHOLE_SLOTS:
            return slot + byte * size
        if value is None:
            return 0
        return slot + byte * max(0, size - prices["txn.free_write_bytes_quota"])

    def _refundable_deposit(self, change: Change, size: int, before: StateValue | None) -> tuple[int, Metadata | None]:
        """Return the fee and the metadata of a write where deposits for bytes are refunded, too."""
        slot, byte = self.schedule["txn.storage_fee_per_state_slot"], self.schedule["txn.storage_fee_per_state_byte"]
        target = byte * size
        if before is None or change.value is None:
            return slot + target, (slot, target, self.created)
        for_slot, for_bytes, created = before[1] or (0, 0, 0)
        growth = len(change.value) - len(before[0])
        more = min(byte * growth, target - for_bytes) if growth > 0 and target > for_bytes else 0
        # A slot that only aggregators changed keeps its lack of metadata.
        keeps = before[1] is None and change.kind is WriteKind.DELAYED
        return more, None if keeps else (for_slot, for_bytes + more, created)

    def _legacy_deposit(self, _: Change, size: int, before: StateValue | None) -> tuple[int, Metadata | None]:
        """Return the same where slots are paid for, and bytes only above a quota."""
        legacy = self.schedule.legacy
        over = max(0, size - self.schedule["txn.free_write_bytes_quota"])
        more = legacy("storage_fee_per_excess_state_byte") * over
        if before is not None:
            return more, before[1] or (0, 0, 0)
        slot = legacy("storage_fee_per_state_slot_create")
        return more + slot, (slot if flags.SLOT_METADATA in self.features else 0, 0, self.created)

    def _legacy_fee(self, size: int) -> int:
        """Return what events and the bytes of the transaction cost, in which nothing is stored."""
        legacy, events = self.schedule.legacy, 0
        event_price = legacy("storage_fee_per_event_byte")
        for event in self.events:
            amount = event_price * event_size(event)
            events += amount
            self.meter.write("STORAGE_EVENT", f"{event.type} fee={amount}")
        discount = min(events, legacy("free_event_bytes_quota") * event_price)
        over = max(0, size - self.schedule["txn.large_transaction_cutoff"])
        whole = legacy("storage_fee_per_transaction_byte") * over
        if discount or whole:
            self.meter.write("STORAGE_OTHER", f"event_discount={discount} txn={whole}")
        return events - discount + whole
