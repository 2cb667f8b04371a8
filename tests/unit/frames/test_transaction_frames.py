"""Transactions, state changes and events as frames, recorded ones and refused ones."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tests.unit.client.fakes import FEE_STATEMENT, user_transaction
from toolkit.errors import SchemaError
from toolkit.frames._calls import Failure
from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import CHANGES, EVENTS, FAILURES, TRANSACTIONS
from toolkit.frames._transactions import failure_frame, payload_frame, rows_of_type, transaction_frames
from toolkit.move import AbiMap, StructOf, UInt, Untyped, parse_type_tag, resolve_layout
from toolkit.wire._transactions import decode_simulation, decode_transactions

PURSE = parse_type_tag("0x1::m::Purse")
PURSE_LAYOUT = StructOf(PURSE, (("total", UInt(128)),))


def simulated(*transactions):
    return decode_simulation(json.dumps(list(transactions)).encode())


def committed(*transactions):
    return decode_transactions(json.dumps(list(transactions)).encode())


def writes_of(changes, tag, layout):
    rows = rows_of_type(changes, "resource_type", tag)
    return payload_frame(rows, tag, [layout] * rows.num_rows, identity=("address",), default=layout)


def plain(series):
    return [None if value is None or value is pd.NA else value for value in series.tolist()]


def test_a_simulation_is_a_row_with_its_split():
    """Gas, split, sender and function of one simulation."""
    rows, changes, events = transaction_frames(simulated(user_transaction()), requests=[0])
    row = rows.iloc[0]
    assert (row["request"], row["ledger_version"], row["gas_used"], row["success"]) == (0, 1_000, 9, True)
    assert (row["execution_gas_units"], row["io_gas_units"], row["storage_fee_octas"]) == (5, 3, 100)
    assert row["function"] == "0x1::aptos_account::transfer"
    assert row["payload_type"] == "entry_function_payload"
    assert (row["changes"], row["events"]) == (1, 1)
    assert plain(changes["resource_type"]) == ["0x1::m::Purse"]
    assert plain(events["type"]) == [FEE_STATEMENT]


def test_aborts_are_columns_and_groups():
    """Code, name and reason of a Move abort; the reason is the contract's sentence, else what is known of the code."""
    statuses = {
        "Move abort in 0xcafe::registry: E_TAKEN(0x80001): The name is registered already.": 3,
        "Move abort in 0x1::table: 0x6407": 1,
        "Move abort: code 0x10004": 1,
        "Out of gas": 1,
    }
    failed = [{"success": False, "vm_status": status} for status, count in statuses.items() for _ in range(count)]
    rows, _, events = transaction_frames(
        simulated(user_transaction(), *({**user_transaction(), **one} for one in failed))
    )
    assert plain(rows["abort_code"])[:1] + plain(rows["abort_code"])[3:] == [None, 0x80001, 0x6407, 0x10004, None]
    assert plain(rows["abort_name"])[3:5] == ["E_TAKEN", None]
    assert plain(rows["abort_reason"])[3:] == [
        "The name is registered already",
        "the table already has an item with this key",
        "invalid argument",
        None,
    ]
    assert set(rows["module"]) == {"0x1::aptos_account"}
    assert set(events["module"]) == {"0x1::transaction_fee"}
    groups = failure_frame(rows)
    assert groups["count"].tolist() == [3, 1, 1, 1]
    assert groups["calls"].tolist() == [7] * 4
    assert groups["gas_used"].tolist() == [27, 9, 9, 9]
    assert groups["vm_status"].tolist() == list(statuses)
    assert list(failure_frame(rows.iloc[:1]).columns) == FAILURES.names


def test_frames_have_their_documented_columns():
    """With rows or without, the three schemas hold."""
    for frames in (transaction_frames([]), transaction_frames(simulated(user_transaction()))):
        assert [list(frame.columns) for frame in frames] == [TRANSACTIONS.names, CHANGES.names, EVENTS.names]
    assert [frame.dtypes.tolist() for frame in transaction_frames([])] == [
        frame.dtypes.tolist() for frame in transaction_frames(simulated(user_transaction()))
    ]


def test_refused_requests_stand_where_they_were_asked():
    """Failures are put between the answers, in the order of the batch."""
    failures = [(0, Failure(400, "vm_error", "first", 5)), (2, Failure(None, "unreachable", "third"))]
    rows, changes, events = transaction_frames(
        simulated(user_transaction(7), user_transaction(8)), requests=[1, 3], failures=failures
    )
    assert plain(rows["request"]) == [0, 1, 2, 3]
    assert plain(rows["ledger_version"]) == [None, 7, None, 8]
    assert plain(rows["error_message"]) == ["first", None, "third", None]
    assert plain(rows["vm_error_code"]) == [5, None, None, None]
    assert plain(rows["status"]) == [400, None, None, None]
    assert plain(changes["request"]) == [1, 3]
    assert plain(events["request"]) == [1, 3]


def test_only_refused_requests_are_rows_all_the_same():
    """A batch that failed as a whole has a row per request and no changes."""
    rows, changes, events = transaction_frames([], requests=[], failures=[(0, Failure(503, "x", "y"))])
    assert (len(rows), len(changes), len(events)) == (1, 0, 0)
    assert plain(rows["error_code"]) == ["x"]


def test_numbers_up_to_the_last_u64_are_exact():
    """A sequence number of 2^64 - 1 marks an orderless transaction, and stays it."""
    rows, *_ = transaction_frames(
        simulated(user_transaction(sequence_number=str(2**64 - 1), gas_unit_price=str(2**63)))
    )
    assert plain(rows["sequence_number"]) == [2**64 - 1]
    assert plain(rows["gas_unit_price"]) == [2**63]


def test_an_unknown_kind_of_transaction_is_a_row():
    """What a newer node answers is kept whole as JSON text."""
    odd = {"type": "brand_new_transaction", "version": "5", "hash": "0x1", "surprise": [1]}
    rows, *_ = transaction_frames(committed(user_transaction(4, type="user_transaction"), odd))
    assert plain(rows["type"]) == ["user_transaction", "brand_new_transaction"]
    assert json.loads(rows["raw"].tolist()[1])["surprise"] == [1]


def test_a_typed_frame_of_one_resource():
    """Rows of that type only, fields as typed columns, types compared by value."""
    other = {
        "address": "0x2",
        "state_key_hash": "0x02",
        "data": {"type": "0x1::m::Other", "data": {"x": "1"}},
        "type": "write_resource",
    }
    transaction = user_transaction()
    transaction["changes"].append(other)
    _, changes, _ = transaction_frames(simulated(transaction))
    frame = writes_of(changes, "0x0001::m::Purse", PURSE_LAYOUT)
    assert list(frame.columns) == ["address", "total"]
    assert plain(frame["total"]) == [2**128 - 1]
    assert str(frame["total"].dtype) == "u128"
    assert int(frame["address"].tolist()[0], 16) == 0xA11CE


def test_no_rows_of_a_type_give_its_typed_columns():
    """A resource that was not written is an empty frame with the fields of the type."""
    _, changes, _ = transaction_frames(simulated(user_transaction(changes=[])))
    frame = writes_of(changes, "0x1::m::Purse", PURSE_LAYOUT)
    assert list(frame.columns) == ["address", "total"]
    assert len(frame) == 0
    assert str(frame["total"].dtype) == "u128"


def test_without_a_layout_fields_are_inferred():
    """Fields become columns all the same, digits as text."""
    _, changes, _ = transaction_frames(simulated(user_transaction()))
    untyped = resolve_layout(PURSE, AbiMap())
    assert isinstance(untyped, Untyped)
    frame = writes_of(changes, "0x1::m::Purse", untyped)
    assert plain(frame["total"]) == [str(2**128 - 1)]


def test_a_field_named_like_an_identity_column_is_renamed():
    """`address` of the payload does not hide the address of the account."""
    change = {
        "address": "0xa",
        "state_key_hash": "0x01",
        "data": {"type": "0x1::m::Purse", "data": {"address": "5"}},
        "type": "write_resource",
    }
    _, changes, _ = transaction_frames(simulated(user_transaction(changes=[change])))
    layout = StructOf(PURSE, (("address", UInt(64)),))
    frame = writes_of(changes, "0x1::m::Purse", layout)
    assert list(frame.columns) == ["address", "data.address"]
    assert plain(frame["data.address"]) == [5]


def test_a_payload_that_does_not_fit_its_type_is_a_schema_error():
    """A write that is not what the ABI says is refused by name."""
    _, changes, _ = transaction_frames(simulated(user_transaction()))
    layout = StructOf(PURSE, (("total", UInt(64)),))
    with pytest.raises(SchemaError, match="total"):
        writes_of(changes, "0x1::m::Purse", layout)


def test_recorded_transactions_of_every_kind_become_frames(shared_data):
    """Real answers: one row each, and as many changes and events as the answer has."""
    files = sorted((shared_data / "node" / "recorded").glob("gosdk.transactions.Transaction_*.json"))
    assert len(files) >= 5
    for place in files:
        document = json.loads(place.read_text())
        rows, changes, events = transaction_frames(committed(document))
        assert len(rows) == 1
        assert plain(rows["ledger_version"]) == [int(document["version"])]
        assert plain(rows["gas_used"]) == [int(document["gas_used"])]
        assert len(changes) == len(document.get("changes", []))
        assert len(events) == len(document.get("events", []))


def test_types_are_compared_by_value_on_both_sides():
    """A frame from elsewhere may spell a type as a node does: it is the same type."""
    changes = rows_frame(
        CHANGES,
        {
            "address": ["0x5", "0x6", "0x7"],
            "resource_type": ["0x0001::m::Purse", "0x1::m::Other", None],
            "data": ['{"total":"5"}', "{}", None],
        },
    )
    frame = writes_of(changes, "0x1::m::Purse", PURSE_LAYOUT)
    assert plain(frame["address"]) == ["0x5"]
    assert plain(frame["total"]) == [5]


def test_a_simulation_has_the_kind_its_dictionary_says():
    """The dictionary and the frame agree on a simulation's kind."""
    rows, *_ = transaction_frames(simulated(user_transaction()), requests=[0])
    meaning = next(column.meaning for column in TRANSACTIONS if column.name == "type")
    assert pd.isna(rows["type"][0]) == ("null for a simulation" in meaning)
