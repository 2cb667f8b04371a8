"""The data dictionary as Markdown, made from the schemas themselves."""

from __future__ import annotations

from toolkit.frames import schema

__all__ = ["data_dictionary"]

_SCHEMAS = (
    schema.VIEWS,
    schema.TABLE_ITEMS,
    schema.TRANSACTIONS,
    schema.CHANGES,
    schema.EVENTS,
    schema.BALANCES,
    schema.DIFF,
    schema.KEYS,
    schema.PLAN,
    schema.OBSERVATIONS,
    schema.STEPS,
    schema.COMPARISON,
    schema.SCHEDULE_DIFF,
)


def data_dictionary() -> str:
    """Return every frame's columns with type, unit, meaning and source, as Markdown tables.

    Returns
    -------
    str
        One section per frame, in the order of the layers.
    """
    return "\n".join(_section(one) for one in _SCHEMAS)


def _section(one: schema.Schema) -> str:
    rows = [
        f"| `{column.name}` | {column.type} | {column.unit} | {column.meaning} | {column.source} |" for column in one
    ]
    head = [
        f"## {one.name.capitalize()}",
        "",
        "| column | Arrow type | unit | meaning | source |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])
