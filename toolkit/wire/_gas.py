"""The gas of transactions (the fee statement and its parts), the gas schedule, and the on-chain feature flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import msgspec

from toolkit._present.messages import shorten
from toolkit._present.notebook import facts_html
from toolkit._present.text import plural
from toolkit.errors import InputError, SchemaError
from toolkit.move._ids import parse_hex
from toolkit.move._json_text import decode_with, parse_u64
from toolkit.wire._aborts import numbered_names

#: Type of the event that contains the parts of the gas of a transaction.
FEE_STATEMENT = "0x1::transaction_fee::FeeStatement"
#: What gas is paid in: the coin, and the fungible asset that it is paired with.
APT = "0x1::aptos_coin::AptosCoin"
APT_METADATA = "0xa"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeeStatement:
    """The parts of a transaction's gas, from the event ``0x1::transaction_fee::FeeStatement``.

    Parameters
    ----------
    total_charge_gas_units : int
        Gas units charged, including storage; equals ``gas_used``.
    execution_gas_units, io_gas_units : int
        Gas units for execution, and for reading and writing state.
    storage_fee_octas, storage_fee_refund_octas : int
        Octas charged for new storage, and octas refunded for freed storage.

    Examples
    --------
    >>> from toolkit.wire import FeeStatement
    >>> statement = FeeStatement(
    ...     total_charge_gas_units=12,
    ...     execution_gas_units=8,
    ...     io_gas_units=4,
    ...     storage_fee_octas=0,
    ...     storage_fee_refund_octas=0,
    ... )
    >>> statement.total_charge_gas_units == statement.execution_gas_units + statement.io_gas_units
    True
    """

    total_charge_gas_units: int
    execution_gas_units: int
    io_gas_units: int
    storage_fee_octas: int
    storage_fee_refund_octas: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GasBreakdown(FeeStatement):
    """The parts of a transaction's gas, with its gas unit price.

    Parameters
    ----------
    total_charge_gas_units, execution_gas_units, io_gas_units : int
        Gas units in total, for execution, and for reading and writing state.
    storage_fee_octas, storage_fee_refund_octas : int
        Octas charged for new storage, and octas refunded for freed storage.
    gas_unit_price : int
        Octas per gas unit.

    Examples
    --------
    >>> from toolkit.wire import GasBreakdown
    >>> gas = GasBreakdown(
    ...     total_charge_gas_units=62,
    ...     execution_gas_units=8,
    ...     io_gas_units=4,
    ...     storage_fee_octas=5_000,
    ...     storage_fee_refund_octas=2_000,
    ...     gas_unit_price=100,
    ... )
    >>> gas.fee_octas, gas.net_octas, gas.reconciles
    (6200, 4200, True)
    """

    gas_unit_price: int

    @classmethod
    def from_statement(cls, statement: FeeStatement, *, gas_unit_price: int) -> Self:
        """Create the breakdown from a fee statement and its transaction's gas unit price, in octas per gas unit."""
        return cls(**asdict(statement), gas_unit_price=gas_unit_price)

    def __repr__(self) -> str:
        units = f"{plural(self.total_charge_gas_units, 'gas unit')} at {plural(self.gas_unit_price, 'octa')}"
        parts = ", ".join(f"{name} {value}" for name, value in self._parts() if value is not None)
        return f"<GasBreakdown {units}, {plural(self.fee_octas, 'octa')}: {parts}>"

    def _repr_html_(self) -> str:
        total = f"{plural(self.total_charge_gas_units, 'gas unit')} at {plural(self.gas_unit_price, 'octa')} each"
        facts = [("charged", f"{total}: {plural(self.fee_octas, 'octa')}"), *self._parts()]
        net = plural(self.net_octas, "octa") if self.storage_fee_refund_octas else None
        return facts_html("gas", [*facts, ("net of the refund", net)])

    def _parts(self) -> list[tuple[str, str | None]]:
        """Return the names and values of the parts; None for a refund of 0."""
        refund = self.storage_fee_refund_octas
        return [
            ("execution", plural(self.execution_gas_units, "gas unit")),
            ("io", plural(self.io_gas_units, "gas unit")),
            ("storage", plural(self.storage_fee_octas, "octa")),
            ("refund", plural(refund, "octa") if refund else None),
        ]

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
        A node counts gas in millionths of a unit. It rounds execution, io and the total up to whole units separately,
        but not storage divided by the price. Therefore, ``total - (execution + io + storage / price)`` is greater than
        -2 and less than 1: rounding up two parts lowers it by less than 2, and rounding up the total raises it by less
        than 1. In recorded transactions, it is 0, -1, or between -1.2 and -0.6. The comparison uses integer octas. At a
        price of 0, storage is not charged, and the units alone must add up.
        """
        price = self.gas_unit_price
        units = self.total_charge_gas_units - self.execution_gas_units - self.io_gas_units
        if price == 0:
            return self.storage_fee_octas == 0 and units in (-1, 0)
        return -2 * price < units * price - self.storage_fee_octas < price


class FeeStatementTexts(msgspec.Struct, gc=False):
    """The event as returned by nodes: the fields of `FeeStatement`, in the same order, as strings of digits."""

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
        The ``data`` as a JSON object.

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
        raise SchemaError(f"the fee statement does not have the documented shape: {error}") from None
    return FeeStatement(**{name: parse_u64(text, name) for name, text in msgspec.structs.asdict(wire).items()})


def find_fee_statement(events: Sequence[Any]) -> FeeStatement | None:
    """Return the fee statement from a transaction's events, or None if no event contains it.

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

    Examples
    --------
    >>> import msgspec
    >>> from toolkit.wire._gas import find_fee_statement
    >>> from toolkit.wire._transactions import Event
    >>> body = (
    ...     b'{"type": "0x1::transaction_fee::FeeStatement", "sequence_number": "0", "data": {'
    ...     b'"total_charge_gas_units": "12", "execution_gas_units": "8", "io_gas_units": "4"'
    ...     b', "storage_fee_octas": "0", "storage_fee_refund_octas": "0"}}'
    ... )
    >>> find_fee_statement([msgspec.json.decode(body, type=Event)]).total_charge_gas_units
    12
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
        Gas feature version; 0 for the original resource ``GasSchedule``, which does not have this field.
    entries : dict of str to int
        Values by parameter name, in the order of the resource, in internal gas units (millionths of a gas unit) unless
        the name states another unit.

    Examples
    --------
    >>> GasSchedule.from_resource({"feature_version": "44", "entries": [{"key": "txn.min", "val": "2760000"}]})
    GasSchedule(feature_version=44, 1 parameter)
    """

    feature_version: int
    entries: dict[str, int]

    def __repr__(self) -> str:
        return f"GasSchedule(feature_version={self.feature_version}, {plural(len(self.entries), 'parameter')})"

    @classmethod
    def from_resource(cls, data: Any) -> Self:
        """Create the schedule from the resource ``0x1::gas_schedule::GasScheduleV2`` or ``GasSchedule``.

        Parameters
        ----------
        data : mapping
            Data of the resource, as parsed JSON or as a Python value. Its form is
            ``{"feature_version", "entries": [{"key", "val"}]}``.

        Returns
        -------
        GasSchedule

        Raises
        ------
        SchemaError
            If the data has a different shape, or contains a parameter twice.
        """
        rows = data.get("entries") if isinstance(data, Mapping) else None
        if not isinstance(rows, list | tuple):
            raise SchemaError(f"entries: expected a list, got {shorten(rows)}", column="entries")
        entries: dict[str, int] = {}
        for position, row in enumerate(rows):
            where = f"entries[{position}]"
            key = row.get("key") if isinstance(row, dict) else None
            if not isinstance(key, str) or key in entries:
                raise SchemaError(f"{where}: expected a `key` that occurs once, got {shorten(row)}", column=where)
            entries[key] = _number(row.get("val"), f"{where}.val")
        return cls(_number(data.get("feature_version", 0), "feature_version"), entries)


def _number(value: object, where: str) -> int:
    """Return a u64, given as a string of digits (in JSON) or as an int (in a Python value)."""
    return parse_u64(str(value) if isinstance(value, int) and not isinstance(value, bool) else value, where)


# Source: the ``FeatureFlag`` enum of the node software.
_FEATURES = dict(numbered_names("features.csv"))


def feature_name(number: int) -> str | None:
    """Return the name of a feature flag.

    Parameters
    ----------
    number : int
        Number of the flag, starting at 1.

    Returns
    -------
    str or None
        None for an unknown number.

    Examples
    --------
    >>> feature_name(1), feature_name(9999)
    ('CODE_DEPENDENCY_CHECK', None)
    """
    return _FEATURES.get(number)


def enabled_features(data: Any) -> frozenset[int]:
    """Return the numbers of the enabled feature flags.

    Parameters
    ----------
    data : mapping
        Data of the resource ``0x1::features::Features``, as parsed JSON or as a Python value. ``features`` is hex or
        bytes, in which bit n % 8 of byte n // 8 is flag n.

    Returns
    -------
    frozenset of int

    Raises
    ------
    SchemaError
        If the data does not have this shape.

    Examples
    --------
    >>> sorted(enabled_features({"features": "0x0600"}))
    [1, 2]
    """
    bits = data.get("features") if isinstance(data, Mapping) else None
    try:
        flags = bits if isinstance(bits, bytes) else parse_hex(str(bits))
    except InputError:
        raise SchemaError(f"features: expected bytes or hex digits, got {shorten(bits)}", column="features") from None
    return frozenset(8 * place + bit for place, byte in enumerate(flags) for bit in range(8) if byte >> bit & 1)
