"""The data dictionary: the schemas of all frames, each column with its Arrow type, unit, meaning and source."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from toolkit.dtypes import WideIntType, i128, u128, wide_from_ints
from toolkit.errors import SchemaError


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame.

    Attributes
    ----------
    name : str
    type : pyarrow.DataType
    meaning : str
        Meaning of the column, as a phrase.
    unit : str
        Empty for text, flags and counts without a unit.
    source : str
        Origin of the value: a header, a field of a response, or a parameter of the caller.
    required : bool
        Whether nulls are not allowed in the column.
    """

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    source: str = ""
    required: bool = False

    def field(self) -> pa.Field:
        """Return the Arrow field with its metadata."""
        return described_field(
            self.name, self.type, unit=self.unit, source=self.source, typing="schema", meaning=self.meaning
        )


def described_field(name: str, kind: pa.DataType, **about: str) -> pa.Field:
    """Return an Arrow field with the non-empty entries of `about` (unit, source, typing, meaning) as metadata."""
    return pa.field(name, kind, metadata={key: text for key, text in about.items() if text})


@dataclass(frozen=True)
class Schema:
    """An ordered set of columns."""

    name: str
    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [column.name for column in self.columns]

    def table(self, values: Mapping[str, Sequence[Any]]) -> pa.Table:
        """Return an Arrow table of one sequence of Python values per column.

        Parameters
        ----------
        values : mapping of str to sequence
            Values by column name. Missing columns are null.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        SchemaError
            If a value does not fit its column. The error states the column and row.
        """
        rows = max((len(column) for column in values.values()), default=0)
        arrays = []
        for column in self.columns:
            given = values.get(column.name)
            arrays.append(pa.nulls(rows, column.type) if given is None else _built(column, given))
            if column.required and arrays[-1].null_count:
                row = arrays[-1].is_null().index(pa.scalar(value=True)).as_py()
                text = f"column {column.name!r}, row {row}: expected a value, got null"
                raise SchemaError(text, column=column.name, rows=[row])
        return pa.Table.from_arrays(arrays, schema=self.arrow)

    def completed(self, table: pa.Table) -> pa.Table:
        """Return an Arrow table with the columns of the schema. Columns that `table` does not have are null."""
        names, fields = table.column_names, self.arrow
        arrays = [table[one.name] if one.name in names else pa.nulls(len(table), one.type) for one in fields]
        return pa.Table.from_arrays(arrays, schema=fields)

    def table_of_rows(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Return an Arrow table of rows; missing fields are null."""
        return self.table({name: [row.get(name) for row in rows] for name in self.names})

    @cached_property  # a run asks for the schema of its rows for each file
    def arrow(self) -> pa.Schema:
        """The Arrow schema."""
        return pa.schema([column.field() for column in self.columns])


def _built(column: Column, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_integer(column.type) and float in set(map(type, values)):
        # pyarrow truncates 2.5 to 2 silently, and large integers are not exact as floats.
        row = next(place for place, value in enumerate(values) if type(value) is float)
        text = f"column {column.name!r}, row {row}: expected {column.type}, got {values[row]!r}, an inexact float"
        raise SchemaError(text, column=column.name, rows=[row])
    try:
        wide = isinstance(column.type, WideIntType)
        return wide_from_ints(values, column.type, column=column.name) if wide else pa.array(values, type=column.type)
    except SchemaError:
        raise
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError) as error:
        raise _misfit(column, values, error) from None


def _misfit(column: Column, values: Sequence[Any], error: Exception) -> SchemaError:
    """Return the error for the first value that does not fit."""
    for row, value in enumerate(values):
        try:
            pa.array([value], type=column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError):
            text = f"column {column.name!r}, row {row}: expected {column.type}, got {str(value)[:80]!r}"
            return SchemaError(text, column=column.name, rows=[row])
    return SchemaError(f"column {column.name!r}: expected {column.type}: {error}", column=column.name)


_PLAIN = ("binary", "bool", "double", "int64", "string", "uint8", "uint16", "uint32", "uint64")
_TYPES = {name: pa.type_for_alias(name) for name in _PLAIN}
_TYPES |= {"i128": i128(), "u128": u128(), "list": pa.list_(pa.string()), "time": pa.timestamp("us", tz="UTC")}


def _read() -> dict[str, Schema]:
    """Return the frames of ``columns.csv``: a row per column, or ``*`` for all columns of the frame that is named."""
    with Path(__file__).with_name("columns.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    frames: dict[str, tuple[Column, ...]] = {}
    for frame, name, kind, required, unit, source, meaning in rows:
        further = frames[kind] if name == "*" else (Column(name, _TYPES[kind], meaning, unit, source, bool(required)),)
        frames[frame] = (*frames.get(frame, ()), *further)
    return {frame: Schema(frame, columns) for frame, columns in frames.items()}


FRAMES = _read()

# Parts of frames ------------------------------------------------------------------------------------------------------

# Columns of failures, the same in every frame with one row per call.
OUTCOME = FRAMES["outcome of a call"]
# Columns of committed transactions; null for other sources.
STRATUM = FRAMES["kind of transaction"]
# Columns that precede those of a typed frame of several transactions.
TRANSACTION_KEY = FRAMES["transaction of a row"]

# Frames of the client -------------------------------------------------------------------------------------------------

# Besides the value columns, which follow ``head_version``.
VIEWS = FRAMES["views"]
# Of a resource over versions, besides its fields, which follow ``head_version``.
RESOURCES = FRAMES["resources"]
# Besides ``key``, which is first, and ``value``, which follows ``head_version``.
TABLE_ITEMS = FRAMES["table items"]
TRANSACTIONS = FRAMES["transactions"]
CHANGES = FRAMES["state changes"]
EVENTS = FRAMES["events"]
# One row per owner and asset whose balance a transaction changes.
BALANCES = FRAMES["balances"]
# One row per module of an account.
ACCOUNT_MODULES = FRAMES["modules of an account"]
# One row per resource of an account; the members of a resource group are separate rows.
ACCOUNT_RESOURCES = FRAMES["resources of an account"]
# One row per store of an account; followed by ``amount``, the balance in whole coins as decimals.
HOLDINGS = FRAMES["balances of an account"]
# One row per resource or table item that one simulation writes or deletes.
DIFF = FRAMES["state diff"]
# The same of several transactions.
DIFFS = FRAMES["state diffs"]
# One row per function and reason of failed transactions.
FAILURES = FRAMES["failures"]
# Columns of a table key frame, after ``key``.
KEYS = FRAMES["table keys"]
# One row per call of a batch, and of a batch that ran on a fork.
BATCH_GAS = FRAMES["gas of a batch"]
FORK_BATCH_GAS = FRAMES["internal gas of a batch"]
# One row per committed transaction that is replayed.
REPLAYS = FRAMES["replays"]
# One row per call whose transactions were replayed under a change, and one per transaction.
PAIRED_CALLS = FRAMES["paired calls"]
PAIRS = FRAMES["pairs"]
# One row per part of the gas of a replay.
REPLAY_GAS = FRAMES["replay gas"]
# One row per difference between a replay and the ledger.
REPLAY_DIFFERENCES = FRAMES["replay differences"]

# One row per table of an archive.
ARCHIVE = FRAMES["archive"]

# Frames of studies and runs -------------------------------------------------------------------------------------------

# One row per node and call of a study that has not run yet.
PLAN = FRAMES["plan"]
# One row per call, ledger version and source.
OBSERVATIONS = FRAMES["observations"]
# One row per step in gas, success or error: of a view between two neighbouring observations, of committed
# transactions per kind of transaction (stratum) and part of the gas.
STEPS = FRAMES["steps"]
# One row per stratum of committed transactions and stretch between its steps: the mean, or a line if it grows.
LEVELS = FRAMES["levels"]
# One row per slope of committed gas between two steps: growth with state is not a step.
GROWTH = FRAMES["growth"]
# One row per kind of transaction and place at which the shares of the kinds change: that is not a step.
MIX = FRAMES["mix"]
# One row per version and kind of change of the gas schedule, configuration or code.
TIMELINE = FRAMES["timeline"]
# The timelines of the nodes of a run.
RUN_TIMELINE = FRAMES["timeline of a run"]
# One row per call and source of two sides; of committed calls of two runs, one per kind of transaction.
COMPARISON = FRAMES["comparison"]
# One row per parameter that differs between two gas schedules.
SCHEDULE_DIFF = FRAMES["schedule diff"]
# One row per part of a call: what it would cost under another gas schedule.
FORECAST = FRAMES["forecast"]
