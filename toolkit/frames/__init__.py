"""Decoded answers and layouts -> typed DataFrames. No I/O; never changes a frame that is passed in."""

from toolkit.frames.build import item_frame, rows_frame, view_frame
from toolkit.frames.records import Failure, TableItemRecord, ViewRecord
from toolkit.frames.schema import (
    CHANGES,
    EVENTS,
    OBSERVATIONS,
    STEPS,
    TABLE_ITEMS,
    TRANSACTIONS,
    VIEWS,
    Column,
    Schema,
)

__all__ = [
    "CHANGES",
    "EVENTS",
    "OBSERVATIONS",
    "STEPS",
    "TABLE_ITEMS",
    "TRANSACTIONS",
    "VIEWS",
    "Column",
    "Failure",
    "Schema",
    "TableItemRecord",
    "ViewRecord",
    "item_frame",
    "rows_frame",
    "view_frame",
]
