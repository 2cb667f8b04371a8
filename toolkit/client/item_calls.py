"""Table items: key and types to the wire, and the value back, in JSON or BCS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit._present.text import visible
from toolkit.client.abis import Made
from toolkit.client.connection import bcs_body, json_body, path, pinned
from toolkit.client.context import BCS, JSON, at_version
from toolkit.client.prepared import Prepared
from toolkit.client.results import TableItem
from toolkit.errors import SchemaError
from toolkit.move import (
    decode_bcs,
    decode_json,
    encode_argument,
    is_closed,
    parse_table_handle,
    parse_type_tag,
    wire_type,
)
from toolkit.move._json_text import parse_json

if TYPE_CHECKING:
    from toolkit.client.abis import AbisAt
    from toolkit.client.context import Context
    from toolkit.client.http import Answer, Request
    from toolkit.move import Layout

__all__ = ["PreparedItems"]


@dataclass(frozen=True, slots=True)
class _Form:
    """How a read travels, but for the version, and what comes back."""

    request: Request
    key_layout: Layout
    value_layout: Layout
    in_bcs: bool


class PreparedItems:
    """The read of one table item, ready to be sent at any version; what does not depend on it is done once.

    Parameters
    ----------
    context : Context
    handle : str
    key : object
    key_type, value_type : str

    Raises
    ------
    InputError
        If handle or a type cannot be read.
    """

    def __init__(self, context: Context, handle: str, key: Any, *, key_type: str, value_type: str) -> None:
        self._context = context
        self._handle, self._key = parse_table_handle(handle), key
        self._key_tag, self._value_tag = parse_type_tag(key_type), parse_type_tag(value_type)
        self._asked = f"item {visible(repr(key), 60)} of table {self._handle}"
        self._forms = Made(context.abis, self._form)

    def at(self, version: int | None) -> Prepared[TableItem]:
        """Make the read ready to be sent at a version, None being the head.

        Raises
        ------
        InputError, SchemaError
            If the key does not fit its type.
        """
        encoded_by = self._context.head() if version is None else version
        modules, form = self._forms.found(encoded_by)
        untyped = self._context.abis.failure(modules)

        def finish(answer: Answer) -> TableItem:
            return self._item(answer, form, version, encoded_by)

        return Prepared(
            pinned(form.request, version), self._asked + at_version(version), finish, version, untyped=untyped
        )

    def _form(self, abis: AbisAt) -> _Form:
        key_layout, value_layout = abis.layout(self._key_tag), abis.layout(self._value_tag)
        body = {
            "key_type": wire_type(self._key_tag),
            "value_type": wire_type(self._value_tag),
            "key": encode_argument(key_layout, self._key, where="table key"),
        }
        in_bcs = self._context.encoding == "bcs" and is_closed(value_layout)
        where = path("tables", self._handle, "item")
        request = self._context.post(where, json_body(body), accept=BCS if in_bcs else JSON)
        return _Form(request, key_layout, value_layout, in_bcs)

    def _item(self, answer: Answer, form: _Form, version: int | None, encoded_by: int) -> TableItem:
        headers = self._context.headers(answer)
        read, layout = encoded_by, form.value_layout
        if version is None and headers.ledger is not None:
            read = headers.ledger.version
            layout = self._context.abis.at(read, lenient=True).layout(self._value_tag)
        body = bcs_body(answer, self._asked) if form.in_bcs else parse_json(answer.body, self._asked)
        try:
            value = (decode_bcs if form.in_bcs else decode_json)(layout, body, where="table item")
        except SchemaError as error:
            text = f"{self._asked}: {error}" + (f"; the answer is {body[:40]!r}" if form.in_bcs else "")
            raise SchemaError(text, column="value") from None
        return TableItem(self._handle, self._key, value, read, headers.ledger, form.key_layout, layout)
