"""The edges of frames: values that do not fit, columns that are missing."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tests.unit.client.fakes import user_transaction
from toolkit.errors import SchemaError
from toolkit.frames.columns import rows_frame
from toolkit.frames.schema import OBSERVATIONS, TRANSACTIONS
from toolkit.frames.transactions import transaction_frames
from toolkit.wire import decode_simulation


@pytest.mark.parametrize("value", [2.5, 2.0**53])
def test_no_float_becomes_an_integer(value):
    """A float is refused in an integer column, whole or not."""
    with pytest.raises(SchemaError, match="gas_used"):
        rows_frame(TRANSACTIONS, {"gas_used": [1, value]})


def test_columns_of_different_lengths_are_a_schema_error():
    """Columns of different lengths are told by name."""
    with pytest.raises(SchemaError, match="gas_used"):
        rows_frame(TRANSACTIONS, {"version": [1, 2], "gas_used": [1]})


def test_a_required_column_that_is_left_out_is_said_so():
    """A required column that is left out is told by name."""
    with pytest.raises(SchemaError, match="label"):
        rows_frame(OBSERVATIONS, {"ledger_version": [1]})


def test_a_simulation_has_the_kind_its_dictionary_says():
    """The dictionary and the frame agree on a simulation's kind."""
    rows, *_ = transaction_frames(decode_simulation(json.dumps([user_transaction()]).encode()), requests=[0])
    meaning = next(column.meaning for column in TRANSACTIONS if column.name == "type")
    assert pd.isna(rows["type"][0]) == ("null for a simulation" in meaning)
