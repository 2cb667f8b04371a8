"""Typed DataFrames from decoded answers, without I/O. Frames that are passed in are never modified."""

from toolkit.frames._calls import Failure, TableItemRecord, ViewRecord, item_frame, view_frame
from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import (
    BALANCES,
    CHANGES,
    COMPARISON,
    DIFF,
    EVENTS,
    GROWTH,
    KEYS,
    MIX,
    OBSERVATIONS,
    SCHEDULE_DIFF,
    STEPS,
    TABLE_ITEMS,
    TIMELINE,
    TRANSACTIONS,
    VIEWS,
    Column,
    Schema,
)

__all__ = [
    "BALANCES",
    "CHANGES",
    "COMPARISON",
    "DIFF",
    "EVENTS",
    "GROWTH",
    "KEYS",
    "MIX",
    "OBSERVATIONS",
    "SCHEDULE_DIFF",
    "STEPS",
    "TABLE_ITEMS",
    "TIMELINE",
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
