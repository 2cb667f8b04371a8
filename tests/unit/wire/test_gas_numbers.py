"""Fee statements, their split, gas schedules."""

from __future__ import annotations

import pytest

from toolkit.errors import SchemaError
from toolkit.wire import GasBreakdown, GasSchedule
from toolkit.wire._gas import decode_fee_statement

STATEMENT = b"""{"execution_gas_units":"7","io_gas_units":"11","storage_fee_octas":"3960",
"storage_fee_refund_octas":"500","total_charge_gas_units":"57"}"""


def breakdown(total: int, execution: int, io: int, storage: int, *, price: int = 100, refund: int = 0) -> GasBreakdown:
    return GasBreakdown(
        total_charge_gas_units=total,
        execution_gas_units=execution,
        io_gas_units=io,
        storage_fee_octas=storage,
        storage_fee_refund_octas=refund,
        gas_unit_price=price,
    )


def test_fee_and_net_are_in_octas() -> None:
    """Fee is units times price; the refund comes off it."""
    split = GasBreakdown.from_statement(decode_fee_statement(STATEMENT), gas_unit_price=100)
    assert (split.fee_octas, split.net_octas) == (5700, 5200)
    assert breakdown(1, 1, 0, 0, refund=500).net_octas == -400


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        (breakdown(57, 7, 11, 3960), True),  # recorded: parts exceed the total by 0.6
        (breakdown(10, 4, 6, 0), True),
        (breakdown(10, 5, 6, 0), True),  # by one, as in half of the recordings
        (breakdown(10, 6, 6, 0), False),  # by two: more than two roundings explain
        (breakdown(10, 6, 5, 99), True),  # by 1.99
        (breakdown(10, 4, 5, 1), True),  # short of the total by 0.99
        (breakdown(10, 4, 5, 0), False),
        (breakdown(9, 5, 4, 0, price=0), True),
        (breakdown(9, 5, 5, 0, price=0), True),
        (breakdown(9, 5, 3, 0, price=0), False),
        (breakdown(9, 5, 4, 400, price=0), False),  # without a price there is no storage charge
        (breakdown(2**64 - 1, 2**63, 2**63 - 1, 0, price=2**64 - 1), True),
    ],
)
def test_parts_reconcile_within_rounding(split: GasBreakdown, *, expected: bool) -> None:
    """Two parts rounded up by less than one each, the total by less than one: no float decides."""
    assert split.reconciles is expected


def test_statement_without_refund_is_read() -> None:
    """Statements of early 2023 have no refund."""
    early = STATEMENT.replace(b'"storage_fee_refund_octas":"500",', b"")
    assert decode_fee_statement(early).storage_fee_refund_octas == 0


@pytest.mark.parametrize("bad", [b'"57.5"', b"57", b'""', b'"-1"', b'"18446744073709551616"', b"null"])
def test_statement_numbers_are_checked(bad: bytes) -> None:
    """A number that is not a u64 string is refused."""
    with pytest.raises(SchemaError):
        decode_fee_statement(STATEMENT.replace(b'"57"', bad))


def test_gas_schedule_keeps_order_and_exact_values() -> None:
    """From the JSON form and from Python values alike."""
    rows = [{"key": "instr.nop", "val": "36"}, {"key": "txn.large", "val": "18446744073709551615"}]
    schedule = GasSchedule.from_resource({"feature_version": "43", "entries": rows})
    assert schedule.feature_version == 43
    assert list(schedule.entries.items()) == [("instr.nop", 36), ("txn.large", 2**64 - 1)]
    python = [{"key": row["key"], "val": int(row["val"])} for row in rows]
    assert GasSchedule.from_resource({"feature_version": 43, "entries": python}) == schedule


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({}, "entries: expected a list, got None"),
        ({"entries": [{"key": "a", "val": 1.5}]}, "entries[0].val: expected a u64 as a string of digits, got 1.5"),
        ({"entries": [{"val": "1"}]}, "entries[0]: expected a `key` that occurs once, got {'val': '1'}"),
        ({"entries": [{"key": "a", "val": "1"}] * 2}, "entries[1]: expected a `key` that occurs once"),
        ({"entries": [], "feature_version": True}, "feature_version: expected a u64"),
    ],
)
def test_misshapen_schedule_names_the_entry(data: dict, text: str) -> None:
    """A schedule that is read half is worse than none."""
    with pytest.raises(SchemaError) as raised:
        GasSchedule.from_resource(data)
    assert text in str(raised.value)
