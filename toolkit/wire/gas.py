"""Gas numbers of transactions: the fee statement, its split, and the gas schedule on chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import msgspec

from toolkit._present.messages import shorten
from toolkit.errors import SchemaError
from toolkit.move.json_text import decode_with
from toolkit.wire.u64 import parse_u64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.wire.structs import Event

__all__ = ["FEE_STATEMENT", "FeeStatement", "GasBreakdown", "GasSchedule", "decode_fee_statement", "find_fee_statement"]

#: Type of the event that splits a transaction's gas.
FEE_STATEMENT = "0x1::transaction_fee::FeeStatement"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeeStatement:
    """The event of that name, the last of a transaction.

    Parameters
    ----------
    total_charge_gas_units : int
        Gas units charged, storage included; equals ``gas_used``.
    execution_gas_units, io_gas_units : int
        Gas units of running code, and of reading and writing.
    storage_fee_octas, storage_fee_refund_octas : int
        Octas for new storage, and given back for freed storage.
    """

    total_charge_gas_units: int
    execution_gas_units: int
    io_gas_units: int
    storage_fee_octas: int
    storage_fee_refund_octas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GasBreakdown:
    """How the gas of one transaction splits, with the price it was charged at.

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
        """Join a fee statement with the transaction's gas unit price (octas per gas unit)."""
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
        """Octas charged less the storage refund; negative where more came back than was paid."""
        return self.fee_octas - self.storage_fee_refund_octas

    @property
    def reconciles(self) -> bool:
        """Whether the parts add up to the total, within rounding.

        Notes
        -----
        A node keeps gas in millionths of a unit and rounds execution, io and the total up to whole units, each by
        itself; storage divided by the price is a fraction. So ``total - (execution + io + storage / price)`` lies
        in (-2, 1): two parts rounded up at most lower it by less than 2, the total rounded up raises it by less
        than 1. Recorded: 0, -1, and -0.6 to -1.2. It is compared in octas, in whole numbers. With a price of 0
        storage is not charged, and the units alone must add up.
        """
        price = self.gas_unit_price
        units = self.total_charge_gas_units - self.execution_gas_units - self.io_gas_units
        if price == 0:
            return self.storage_fee_octas == 0 and units in (-1, 0)
        return -2 * price < units * price - self.storage_fee_octas < price


class FeeStatementTexts(msgspec.Struct, gc=False):
    """The event as the wire has it: digits, in the order of `FeeStatement`."""

    total_charge_gas_units: str
    execution_gas_units: str
    io_gas_units: str
    storage_fee_octas: str
    storage_fee_refund_octas: str = "0"  # absent before refunds came in 2023


_DECODER: msgspec.json.Decoder[FeeStatementTexts] = msgspec.json.Decoder(FeeStatementTexts)


def decode_fee_statement(data: bytes | msgspec.Raw) -> FeeStatement:
    """Read the ``data`` of a fee statement event.

    Parameters
    ----------
    data : bytes or msgspec.Raw
        JSON object.

    Returns
    -------
    FeeStatement

    Raises
    ------
    SchemaError
        If it does not have that shape.
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
    """Return the fee statement among a transaction's events, None where there is none.

    Raises
    ------
    SchemaError
        If the event does not have the documented shape.
    """
    for event in reversed(events):  # it is the last one
        if event.type == FEE_STATEMENT:
            return decode_fee_statement(event.data)
    return None


@dataclass(frozen=True, slots=True, repr=False)
class GasSchedule:
    """The gas schedule a ledger charges by.

    Parameters
    ----------
    feature_version : int
        Gas feature version; 0 for the first form of the resource, which has none.
    entries : dict of str to int
        Parameter name to value, in the order of the resource. Values are internal gas units (a millionth of a gas
        unit) unless the name says otherwise.
    """

    feature_version: int
    entries: dict[str, int]

    def __repr__(self) -> str:
        return f"GasSchedule(feature_version={self.feature_version}, {len(self.entries)} parameters)"

    @classmethod
    def from_resource(cls, data: Any) -> Self:
        """Read the data of ``0x1::gas_schedule::GasScheduleV2`` or ``GasSchedule``.

        Parameters
        ----------
        data : mapping
            JSON or Python form: ``{"feature_version", "entries": [{"key", "val"}]}``.

        Returns
        -------
        GasSchedule

        Raises
        ------
        SchemaError
            If it does not have that shape, or names a parameter twice.
        """
        rows = data.get("entries") if isinstance(data, Mapping) else None
        if not isinstance(rows, list | tuple):
            raise SchemaError(f"entries: expected a list, got {shorten(rows)}", column="entries")
        entries: dict[str, int] = {}
        for position, row in enumerate(rows):
            where = f"entries[{position}]"
            key = row.get("key") if isinstance(row, dict) else None
            if not isinstance(key, str) or key in entries:
                raise SchemaError(f"{where}: expected a parameter of its own, got {shorten(row)}", column=where)
            entries[key] = _number(row.get("val"), f"{where}.val")
        return cls(_number(data.get("feature_version", 0), "feature_version"), entries)


def _number(value: object, where: str) -> int:
    """Read a u64 in JSON form (digits) or as the Python int a layout gives."""
    return parse_u64(str(value) if isinstance(value, int) and not isinstance(value, bool) else value, where)
