"""Gas of transactions: the fee statement, its parts, and the gas schedule on chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import msgspec

from toolkit._present.messages import shorten
from toolkit.errors import SchemaError
from toolkit.move._json_text import decode_with
from toolkit.wire._u64 import parse_u64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.wire._transactions import Event

__all__ = ["FEE_STATEMENT", "FeeStatement", "GasBreakdown", "GasSchedule", "decode_fee_statement", "find_fee_statement"]

#: Type of the event that contains the parts of the gas of a transaction.
FEE_STATEMENT = "0x1::transaction_fee::FeeStatement"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeeStatement:
    """The parts of the gas of a transaction, from the event ``0x1::transaction_fee::FeeStatement``.

    Parameters
    ----------
    total_charge_gas_units : int
        Gas units charged, including storage; equals ``gas_used``.
    execution_gas_units, io_gas_units : int
        Gas units of execution, and of reading and writing state.
    storage_fee_octas, storage_fee_refund_octas : int
        Octas for new storage, and octas refunded for freed storage.
    """

    total_charge_gas_units: int
    execution_gas_units: int
    io_gas_units: int
    storage_fee_octas: int
    storage_fee_refund_octas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GasBreakdown:
    """The parts of the gas of a transaction with the gas unit price.

    Parameters
    ----------
    total_charge_gas_units, execution_gas_units, io_gas_units : int
        Gas units.
    storage_fee_octas, storage_fee_refund_octas : int
        Octas.
    gas_unit_price : int
        Octas per gas unit.
    """

    total_charge_gas_units: int
    execution_gas_units: int
    io_gas_units: int
    storage_fee_octas: int
    storage_fee_refund_octas: int
    gas_unit_price: int

    @classmethod
    def from_statement(cls, statement: FeeStatement, *, gas_unit_price: int) -> Self:
        """Return a fee statement with the gas unit price of its transaction, in octas per gas unit."""
        return cls(
            total_charge_gas_units=statement.total_charge_gas_units,
            execution_gas_units=statement.execution_gas_units,
            io_gas_units=statement.io_gas_units,
            storage_fee_octas=statement.storage_fee_octas,
            storage_fee_refund_octas=statement.storage_fee_refund_octas,
            gas_unit_price=gas_unit_price,
        )

    @property
    def fee_octas(self) -> int:
        """Octas charged: total gas units times the price."""
        return self.total_charge_gas_units * self.gas_unit_price

    @property
    def net_octas(self) -> int:
        """Octas charged minus the storage refund; negative if the refund is larger than the charge."""
        return self.fee_octas - self.storage_fee_refund_octas

    @property
    def reconciles(self) -> bool:
        """Whether the parts add up to the total, within rounding.

        Notes
        -----
        A node counts gas in millionths of a unit and rounds execution, io and the total up to whole units separately;
        storage divided by the price is a fraction. So ``total - (execution + io + storage / price)`` is in (-2, 1): two
        parts rounded up lower it by less than 2, the total rounded up raises it by less than 1. Recorded values are 0,
        -1, and -0.6 to -1.2. The comparison is in octas, with integers. With a price of 0 storage is not charged, and
        the units alone must add up.
        """
        price = self.gas_unit_price
        units = self.total_charge_gas_units - self.execution_gas_units - self.io_gas_units
        if price == 0:
            return self.storage_fee_octas == 0 and units in (-1, 0)
        return -2 * price < units * price - self.storage_fee_octas < price


class FeeStatementTexts(msgspec.Struct, gc=False):
    """The event as nodes print it: strings of digits, in the order of `FeeStatement`."""

    total_charge_gas_units: str
    execution_gas_units: str
    io_gas_units: str
    storage_fee_octas: str
    storage_fee_refund_octas: str = "0"  # absent before 2023, when refunds were introduced


_DECODER: msgspec.json.Decoder[FeeStatementTexts] = msgspec.json.Decoder(FeeStatementTexts)


def decode_fee_statement(data: bytes | msgspec.Raw) -> FeeStatement:
    """Decode the ``data`` of a fee statement event.

    Parameters
    ----------
    data : bytes or msgspec.Raw
        The JSON object.

    Returns
    -------
    FeeStatement

    Raises
    ------
    SchemaError
        If the data does not have the documented shape.

    Examples
    --------
    >>> parts = {"execution_gas_units": "4", "io_gas_units": "3", "storage_fee_octas": "0"}
    >>> statement = decode_fee_statement(msgspec.json.encode({"total_charge_gas_units": "7"} | parts))
    >>> GasBreakdown.from_statement(statement, gas_unit_price=100).fee_octas
    700
    """
    try:
        wire = decode_with(_DECODER, data)
    except SchemaError as error:
        raise SchemaError(f"the fee statement does not have the documented shape: {error}") from error
    return FeeStatement(
        total_charge_gas_units=parse_u64(wire.total_charge_gas_units, "total_charge_gas_units"),
        execution_gas_units=parse_u64(wire.execution_gas_units, "execution_gas_units"),
        io_gas_units=parse_u64(wire.io_gas_units, "io_gas_units"),
        storage_fee_octas=parse_u64(wire.storage_fee_octas, "storage_fee_octas"),
        storage_fee_refund_octas=parse_u64(wire.storage_fee_refund_octas, "storage_fee_refund_octas"),
    )


def find_fee_statement(events: Sequence[Event]) -> FeeStatement | None:
    """Return the fee statement among the events of a transaction, or None if there is none.

    Parameters
    ----------
    events : sequence of Event
        The events of one transaction.

    Returns
    -------
    FeeStatement or None

    Raises
    ------
    SchemaError
        If the event does not have the documented shape.
    """
    for event in reversed(events):  # it is the last event
        if event.type == FEE_STATEMENT:
            return decode_fee_statement(event.data)
    return None


@dataclass(frozen=True, slots=True, repr=False)
class GasSchedule:
    """The gas schedule of a ledger.

    Parameters
    ----------
    feature_version : int
        Gas feature version; 0 for the first form of the resource, which does not have it.
    entries : dict of str to int
        Values by parameter name, in the order of the resource, in internal gas units (millionths of a gas unit) unless
        the name states another unit.

    Examples
    --------
    >>> GasSchedule.from_resource({"feature_version": "44", "entries": [{"key": "txn.min", "val": "2760000"}]})
    GasSchedule(feature_version=44, 1 parameters)
    """

    feature_version: int
    entries: dict[str, int]

    def __repr__(self) -> str:
        return f"GasSchedule(feature_version={self.feature_version}, {len(self.entries)} parameters)"

    @classmethod
    def from_resource(cls, data: Any) -> Self:
        """Return the schedule in the data of ``0x1::gas_schedule::GasScheduleV2`` or ``GasSchedule``.

        Parameters
        ----------
        data : mapping
            The data from JSON or as a Python value: ``{"feature_version", "entries": [{"key", "val"}]}``.

        Returns
        -------
        GasSchedule

        Raises
        ------
        SchemaError
            If the data does not have this shape, or contains a parameter twice.
        """
        rows = data.get("entries") if isinstance(data, Mapping) else None
        if not isinstance(rows, list | tuple):
            raise SchemaError(f"entries: expected a list, got {shorten(rows)}", column="entries")
        entries: dict[str, int] = {}
        for position, row in enumerate(rows):
            where = f"entries[{position}]"
            key = row.get("key") if isinstance(row, dict) else None
            if not isinstance(key, str) or key in entries:
                raise SchemaError(f"{where}: expected a parameter that occurs once, got {shorten(row)}", column=where)
            entries[key] = _number(row.get("val"), f"{where}.val")
        return cls(_number(data.get("feature_version", 0), "feature_version"), entries)


def _number(value: object, where: str) -> int:
    """Return a u64 given as digits (from JSON) or as int (a Python value)."""
    return parse_u64(str(value) if isinstance(value, int) and not isinstance(value, bool) else value, where)
