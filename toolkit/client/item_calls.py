"""Table items: key and types to the wire, and the value back, in JSON or BCS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.client.connection import json_body, parsed_json, path
from toolkit.client.context import BCS, JSON, Context, at_version
from toolkit.client.prepared import Prepared
from toolkit.client.results import TableItem
from toolkit.frames.text import visible
from toolkit.move.bcs import decode_bcs
from toolkit.move.ids import parse_table_handle
from toolkit.move.layout import is_closed
from toolkit.move.tags import parse_type_tag, wire_type
from toolkit.move.values import decode_json, encode_argument

if TYPE_CHECKING:
    from toolkit.client.transport import Answer

__all__ = ["prepare_item"]


def prepare_item(
    context: Context, handle: str, key: Any, *, key_type: str, value_type: str, version: int | None
) -> Prepared[TableItem]:
    """Make the read of a table item ready to be sent.

    Raises
    ------
    InputError, SchemaError
        If handle or a type cannot be read, or the key does not fit its type.
    """
    handle = parse_table_handle(handle)
    key_tag, value_tag = parse_type_tag(key_type), parse_type_tag(value_type)
    abis = context.abis_for(version)
    key_layout, value_layout = abis.layout(key_tag), abis.layout(value_tag)
    use_bcs = context.encoding == "bcs" and is_closed(value_layout)
    body = {
        "key_type": wire_type(key_tag),
        "value_type": wire_type(value_tag),
        "key": encode_argument(key_layout, key, where="table key"),
    }

    def finish(answer: Answer) -> TableItem:
        headers = context.headers(answer)
        read, layout = abis.version if version is None else version, value_layout
        if version is None and headers.ledger is not None:
            read = headers.ledger.version
            layout = context.abis.at(read).layout(value_tag)
        if use_bcs:
            value = decode_bcs(layout, answer.body)
        else:
            value = decode_json(layout, parsed_json(answer.body, "table item"), where="table item")
        return TableItem(handle, key, value, read, headers.ledger, key_layout, layout)

    where = path("tables", handle, "item")
    query = {"ledger_version": version}
    request = context.post(where, json_body(body), query=query, accept=BCS if use_bcs else JSON)
    asked = f"item {visible(repr(key), 60)} of table {handle}{at_version(version)}"
    return Prepared(request, asked, finish, version)
