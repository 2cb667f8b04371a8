"""Keys of a table, collected from state changes, since nodes cannot list them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from toolkit.dtypes import to_pandas
from toolkit.errors import InputError
from toolkit.frames._columns import plain_columns, typed_column
from toolkit.frames._schema import KEYS, described_field
from toolkit.move import AbiMap, decode_bcs, parse_table_handle, parse_type_tag, resolve_layout
from toolkit.wire import ChangeKind

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.move import AbiSource

__all__ = ["table_keys"]


def table_keys(source: Any, handle: str, *, key_type: str | None = None, abis: AbiSource | None = None) -> pd.DataFrame:
    """Return the keys of a table that transactions or simulations wrote or deleted.

    Nodes cannot list the keys of a table. The result contains only the keys that these transactions changed.

    Parameters
    ----------
    source : DataFrame, or an object with ``changes``
        State changes, or an object that has them, such as a `Simulation` or the result of `fetch_transactions`.
    handle : str
        Table handle.
    key_type : str, optional
        Move type of the keys. Without it the keys are BCS bytes.
    abis : AbiSource, optional
        Source of the ABIs of struct keys, such as ``node.abis.at(version)``.

    Returns
    -------
    DataFrame, shape (number of keys, 5)
        ``key``, then ``first_version``, ``last_version``, ``changes`` and ``deleted``; sorted by first version.

    Raises
    ------
    InputError
        If `source` does not have state changes.
    SchemaError
        If a key cannot be decoded as `key_type`.

    Examples
    --------
    >>> import toolkit
    >>> with toolkit.connect() as node:
    ...     handle = node.view("0xcafe::registry::handle").value
    ...     written = toolkit.fetch_transactions(node, versions="0:-1")
    ...     keys = toolkit.table_keys(written, handle, key_type="0x1::string::String")
    >>> "alice" in set(keys["key"])
    True
    """
    changes = getattr(source, "changes", source)
    if not {"handle", "key", "version", "type"} <= set(getattr(changes, "columns", ())):
        raise InputError(
            f"source must be a frame of state changes or an object that has one, got {type(source).__name__}"
        )
    wanted = parse_table_handle(handle)
    columns = plain_columns(changes, ["handle", "key", "version", "type"])
    found: dict[bytes, dict[str, Any]] = {}
    rows = [row for row in zip(*columns.values(), strict=True) if row[0] == wanted and row[1] is not None]
    rows.sort(key=lambda row: row[2] or 0)  # the sort is stable, so the order within a version is preserved
    for _, key, version, kind in rows:
        entry = found.setdefault(key, {"first_version": version, "changes": 0})
        entry |= {
            "last_version": version,
            "changes": entry["changes"] + 1,
            "deleted": kind == ChangeKind.DELETE_TABLE_ITEM,
        }
    table = KEYS.table({name: [entry[name] for entry in found.values()] for name in KEYS.names})
    return to_pandas(table.add_column(0, *_key_column(list(found), key_type, abis)))


def _key_column(keys: list[bytes], key_type: str | None, abis: AbiSource | None) -> tuple[pa.Field, pa.Array]:
    if key_type is None:
        field = described_field("key", pa.binary(), source="changes[].key", typing="untyped", meaning="BCS bytes")
        return field, pa.array(keys, type=pa.binary())
    layout = resolve_layout(parse_type_tag(key_type), abis or AbiMap({}))
    values = [decode_bcs(layout, key) for key in keys]
    return typed_column("key", layout, values, source="changes[].key", typing="given")
