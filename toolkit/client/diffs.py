"""Before and after of what a simulation writes: the state is read at the ledger version of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.client.companion import ABSENT
from toolkit.errors import NotFound
from toolkit.frames.columns import compact_json, plain_columns, rows_frame
from toolkit.frames.schema import DIFF
from toolkit.move._json_text import parse_json

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.client.companion import Companion

__all__ = ["state_diff"]

_COLUMNS = ("type", "address", "resource_type", "handle", "key", "value", "data")


def state_diff(changes: pd.DataFrame, companion: Companion, version: int) -> pd.DataFrame:
    """Return one row per written or deleted resource and table item; see `Simulation.diff`."""
    columns = plain_columns(changes, list(_COLUMNS))
    written = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rows = [row for change in written if (row := _row(change, companion, version)) is not None]
    return rows_frame(DIFF, {name: [row[name] for row in rows] for name in DIFF.names})


def _row(change: dict[str, Any], companion: Companion, version: int) -> dict[str, Any] | None:
    """Read what was there before one change; modules have no before worth a row."""
    deleted = str(change["type"]).startswith("delete")
    row = {name: change[name] for name in ("type", "address", "resource_type", "handle", "key")}
    if change["resource_type"] is not None and change["address"] is not None:
        before = _resource(companion, change["address"], change["resource_type"], version)
        data = None if deleted else change["data"]
        after = None if data is None else compact_json(parse_json(data, change["resource_type"]))
        return row | {"before": before, "after": after, "fields_changed": _changed(before, after)}
    if change["handle"] is None or change["key"] is None:
        return None
    item = companion.raw_item(change["handle"], change["key"], version)
    after = None if deleted or change["value"] is None else "0x" + change["value"].hex()
    return row | {"before": None if item is None else "0x" + item.hex(), "after": after, "fields_changed": None}


def _resource(companion: Companion, address: str, resource: str, version: int) -> str | None:
    try:
        data, _ = companion.resource_document(address, resource, version)
    except NotFound as error:
        if error.error_code not in ABSENT:
            raise
        return None
    return compact_json(data)


def _changed(before: str | None, after: str | None) -> list[str]:
    """Return the top-level fields that differ."""
    one, two = (parse_json(text, "resource") if text else {} for text in (before, after))
    if not isinstance(one, dict) or not isinstance(two, dict):
        return []
    return [name for name in dict.fromkeys([*one, *two]) if one.get(name) != two.get(name)]
