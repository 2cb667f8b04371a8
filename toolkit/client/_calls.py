"""Views and table items: calls that are prepared at a version, and their results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

from toolkit import frames
from toolkit._present.notebook import facts_html
from toolkit._present.text import plural, short_addresses, visible, without_padding
from toolkit.client._abis import CachedByModules, encode_arguments, function_abi, parameter_layouts
from toolkit.client._http import Answer, PreparedCall, Request, json_body, path
from toolkit.client._node_errors import needed_for
from toolkit.errors import NodeError, NodeUnreachable, NotFound, SchemaError, VersionPruned
from toolkit.move import Primitive, Vector, parse_type_tag
from toolkit.move._codecs import is_closed
from toolkit.move._ids import parse_table_handle
from toolkit.move._json_text import parse_json
from toolkit.move._type_tags import SIGNED, Reference, StructTag, TypeParameter, substitute, wire_type
from toolkit.move._values import decode_bcs, decode_json, encode_argument, encode_json
from toolkit.wire._bcs_requests import decode_view_answer, encode_view_request
from toolkit.wire._models import function_id, wire_argument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import pandas as pd

    from toolkit.client._abis import AbisAt
    from toolkit.client._reads import Reads
    from toolkit.move import FunctionAbi, Layout, TypeTag
    from toolkit.wire import EntryFunction, LedgerState, ViewFunction

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class ViewResult:
    """The result of a view function.

    Attributes
    ----------
    call : ViewFunction
    values : tuple
        The values that the function returned, as Python values.
    types : tuple of str
        Move types of the values; empty if the module's ABI is not known.
    gas_used : int or None
        Gas units; None if the node does not report them.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it responded.
    layouts : tuple of Layout or None
        The layouts of the values; None if the module's ABI is not known.
    raw : str
        The values as JSON text.

    Examples
    --------
    >>> import toolkit
    >>> result = toolkit.connect().at(4_000).view("0x1::timestamp::now_seconds")
    >>> result.types, result.ledger_version
    (('u64',), 4000)
    """

    call: ViewFunction
    values: tuple[Any, ...]
    types: tuple[str, ...]
    gas_used: int | None
    ledger_version: int
    ledger: LedgerState | None
    layouts: tuple[Layout, ...] | None = field(repr=False)
    raw: str = field(repr=False)

    @property
    def value(self) -> Any:
        """The return value, or a tuple if the function does not return exactly one."""
        return self.values[0] if len(self.values) == 1 else self.values

    @property
    def typing(self) -> str:
        """Source of the types: ``abi``, or ``inferred`` (from JSON) if the module's ABI is not known."""
        return "inferred" if self.layouts is None else "abi"

    def __repr__(self) -> str:
        gas = "" if self.gas_used is None else f", {plural(self.gas_used, 'gas unit')}"
        value = visible(short_addresses(repr(self.value)), 200)
        return f"<ViewResult {short_addresses(self.call.function)}: {value}{gas}, version {self.ledger_version:,}>"

    def _repr_html_(self) -> str:
        types = ", ".join(self.types) or "unknown; inferred from JSON"
        gas = None if self.gas_used is None else plural(self.gas_used, "gas unit")
        facts = [("value", self.value), ("type", types), ("gas", gas), ("ledger version read", self.ledger_version)]
        return facts_html(self.call.function, facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return the result as a frame.

        Parameters
        ----------
        flatten : bool, default False
            Replace struct columns with one column per field.

        Returns
        -------
        DataFrame, shape (1, 8 + return values)
            One typed column per return value.

        Raises
        ------
        SchemaError
            If a value does not fit the type of its column.
        """
        from toolkit.client._accounts import note_amounts

        record = frames.ViewRecord.of(None, self.ledger_version, self)
        frame = frames.view_frame([record], flatten=flatten, times=_times(self.ledger))
        note_amounts(frame, {"": self.call})
        return frame


@dataclass(frozen=True, slots=True, repr=False)
class TableItem:
    """One item of a table.

    Attributes
    ----------
    handle : str
        Table handle: 0x and 64 hex digits.
    key, value : object
        The key and the value as Python values.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it responded.
    key_layout, value_layout : Layout
        Layouts of the key and the value.

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect()
    >>> handle = node.view("0xcafe::registry::handle").value
    >>> item = node.table_item(handle, "alice", owner="0xcafe")
    >>> item.key, item.value["registered_at"], item.ledger_version
    ('alice', 1767334464, 4999)
    """

    handle: str
    key: Any
    value: Any
    ledger_version: int
    ledger: LedgerState | None
    key_layout: Layout = field(repr=False)
    value_layout: Layout = field(repr=False)

    def __repr__(self) -> str:
        key, value = (visible(short_addresses(repr(one)), 200) for one in (self.key, self.value))
        return f"<TableItem of {short_addresses(self.handle)}: {key} -> {value}, version {self.ledger_version:,}>"

    def _repr_html_(self) -> str:
        facts = [("key", self.key), ("value", self.value), ("ledger version read", self.ledger_version)]
        return facts_html(f"item of table {self.handle}", facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return the item as a frame.

        Parameters
        ----------
        flatten : bool, default False
            Replace struct columns with one column per field.

        Returns
        -------
        DataFrame, shape (1, >= 10)
            The key and the value are typed.

        Raises
        ------
        SchemaError
            If a value does not fit the type of its column.
        """
        record = frames.TableItemRecord.of(self.key, self.ledger_version, self)
        about: dict[str, Any] = {"key_layout": self.key_layout, "value_layout": self.value_layout, "flatten": flatten}
        return frames.item_frame([record], **about, times=_times(self.ledger))


def _times(ledger: LedgerState | None) -> dict[int, datetime]:
    """Return the time of the only version whose time a response has: the head's."""
    return {} if ledger is None else {ledger.version: ledger.timestamp}


Encoding = Literal["json", "bcs"]
JSON = "application/json"
_BCS = "application/x-bcs"
_OBJECT = "0x1::object::Object"


# encodings -----------------------------------------------------------------------------------------------------------


def fit_bcs(layouts: Sequence[Layout] | None) -> bool:
    """Return whether values can be sent in BCS, that is, whether every part of every type is known."""
    return layouts is not None and all(map(is_closed, layouts))


def only_in_bcs(call: ViewFunction | EntryFunction, function: FunctionAbi) -> bool:
    """Return whether nodes accept a call only in BCS, regardless of the connection's encoding.

    In JSON requests, nodes treat a value whose type is a type parameter as an address, which fails or yields a wrong
    value, and reject signed integers as type arguments. An ``Object<T>`` parameter is an address whatever ``T`` is.
    """
    values = [tag for tag in function.parameters if not (isinstance(tag, StructTag) and tag.base == _OBJECT)]
    generic = any(_mentions(tag, TypeParameter) for tag in (*values, *function.results))
    return generic or any(_mentions(parse_type_tag(text), Primitive) for text in call.type_arguments)


def _mentions(tag: TypeTag, kind: type[TypeParameter | Primitive]) -> bool:
    """Return whether a type contains a type parameter or a signed integer, whichever `kind` selects."""
    match tag:
        case Vector(inner) | Reference(inner, _):
            return _mentions(inner, kind)
        case StructTag(type_arguments=parts):
            return any(_mentions(part, kind) for part in parts)
        case Primitive(name):
            return kind is Primitive and name in SIGNED
    return kind is TypeParameter


def json_arguments(call: ViewFunction | EntryFunction, function: FunctionAbi | None, abis: AbisAt) -> Sequence[Any]:
    """Return the arguments of a call as JSON values."""
    if function is None:
        return wire_argument(list(call.arguments))  # type: ignore[no-any-return]  # a list gives a list
    return encode_arguments(function, call.type_arguments, call.arguments, abis, where=function_id(call.function).wire)


def _json_values(function: str, answer: Answer, layouts: tuple[Layout, ...] | None) -> tuple[tuple[Any, ...], str]:
    """Decode the JSON response of a view; return the values and their JSON text."""
    items = parse_json(answer.body, function)
    if not isinstance(items, list):
        got = f"{type(items).__name__}: {answer.body[:60]!r}"
        raise SchemaError(f"{function}: expected a JSON array of return values, got {got}")
    raw = answer.body.decode("utf-8", "replace").strip()
    raw = raw[1:-1].strip() if len(items) == 1 else raw
    if layouts is None:
        return tuple(items), raw
    if len(layouts) != len(items):
        expected = f"expected {plural(len(layouts), 'return value')} according to its ABI"
        raise SchemaError(f"{function}: {expected}, but the response has {len(items)}")
    places = enumerate(zip(layouts, items, strict=True))
    try:
        return tuple(decode_json(*pair, where=f"value {place}") for place, pair in places), raw
    except SchemaError as error:
        raise SchemaError(f"{function} return {error}", column=error.column) from None


def _bcs_values(function: str, answer: Answer, layouts: tuple[Layout, ...] | None) -> tuple[tuple[Any, ...], str]:
    """Decode the BCS response of a view whose types are all known; return the values and their JSON text."""
    layouts, body = layouts or (), answer.bcs(function)
    try:
        values = tuple(decode_view_answer(body, layouts))
    except SchemaError as error:
        which = ": " if error.column is None else " return "  # of all values, or of one of them
        raise SchemaError(f"{function}{which}{error}; the response is {body[:40]!r}", column=error.column) from None
    shown = [encode_json(layout, value) for layout, value in zip(layouts, values, strict=True)]
    return values, msgspec.json.encode(shown[0] if len(shown) == 1 else shown).decode()


# views and table items -----------------------------------------------------------------------------------------------


Types = TypeVar("Types")


@dataclass(frozen=True, slots=True)
class _Template(Generic[Types]):
    """The request of a call without its version, and its types: the same at all versions that have the same modules."""

    request: Request
    answers_bcs: bool
    types: Types


class _PreparedRead(Generic[T, Types]):
    """A read of state that is prepared once and can be sent at any version."""

    _gas = False  # `PreparedCall.gas`: only the responses of views include it

    def __init__(self, node: Reads, asked: str) -> None:
        self._node, self._asked = node, asked
        self._templates = CachedByModules(node.abis, self._template)

    def at(self, version: int | None) -> PreparedCall[T]:
        """Prepare the call at a version; None is the head.

        Raises
        ------
        InputError, SchemaError
            If the call does not fit its types.
        NodeError, NodeUnreachable
            If a module cannot be looked up.
        """
        encoded_by = (self._node.newest or self._node.ledger()).version if version is None else version
        try:
            _, template = self._templates.at(encoded_by)
        except (VersionPruned, NotFound) as error:  # the lookup of a module at a version that cannot be read
            raise needed_for(self._asked, error) from None
        except (NodeError, NodeUnreachable):
            if (untyped := self._untyped()) is None:
                raise
            template = untyped
        request = template.request
        if version is not None:
            url = f"{request.url}?ledger_version={version}"  # the URLs of reads have no query
            request = replace(request, url=url, ledger_version=version)
        asked = self._asked if version is None else f"{self._asked} at version {version:,}"
        finish = partial(self._finished, template, version, encoded_by)
        return PreparedCall(request, asked, finish, version, self._gas)

    def _finished(self, template: _Template[Types], version: int | None, encoded_by: int, answer: Answer) -> T:
        ledger, types, read = answer.parsed.ledger, template.types, encoded_by
        if version is None and ledger is not None and ledger.version != read:
            read = ledger.version
            types = self._types(self._node.abis.at(read))
        return self._result(answer, types, read, bcs=template.answers_bcs)

    def _untyped(self) -> _Template[Types] | None:
        """Return the template of the call without its types, or None if it needs them."""
        return None

    def _template(self, abis: AbisAt) -> _Template[Types]:
        raise NotImplementedError

    def _types(self, abis: AbisAt) -> Types:
        raise NotImplementedError

    def _result(self, answer: Answer, types: Types, version: int, *, bcs: bool) -> T:
        raise NotImplementedError


class _Signature(NamedTuple):
    """The ABI and the return types of a view; `function` and `layouts` are None if no ABI is known."""

    function: FunctionAbi | None = None
    types: tuple[str, ...] = ()
    layouts: tuple[Layout, ...] | None = None


class PreparedView(_PreparedRead[ViewResult, _Signature]):
    """A view that can be sent at any version.

    Parameters
    ----------
    node : Reads
    call : ViewFunction
    typed : bool, default True
        If False, a call without arguments is also sent if its module cannot be looked up: for its gas, and its JSON.
    """

    _gas = True

    def __init__(self, node: Reads, call: ViewFunction, *, typed: bool = True) -> None:
        super().__init__(node, f"view {call.function}")
        self._call, self._typed = call, typed

    def layouts(self, version: int) -> tuple[Layout, ...] | None:
        """Return the layouts of the return values at a version, or None if no ABI is known."""
        return self._types(self._node.abis.at(version)).layouts

    def _untyped(self) -> _Template[_Signature] | None:
        if self._typed or self._call.arguments:
            return None
        body = self._call.to_wire() | {"function": function_id(self._call.function).wire}
        return _Template(self._node.request("POST", "/view", body=json_body(body)), False, _Signature())  # noqa: FBT003

    def _template(self, abis: AbisAt) -> _Template[_Signature]:
        call, signature = self._call, self._types(abis)
        function, returned, asks_bcs, answers_bcs = signature.function, signature.layouts or (), False, False
        parameters: list[Layout] = []
        if function is not None:
            needed = only_in_bcs(call, function)
            parameters = parameter_layouts(function, call.type_arguments, abis)
            answers_bcs = (needed or self._node.encoding == "bcs") and fit_bcs((*parameters, *returned))
            # What cannot be read from BCS, such as an enum without its variants, a node may still print in JSON.
            asks_bcs = (needed or answers_bcs) and fit_bcs(parameters)
        arguments = json_arguments(call, function, abis)  # also for a call in BCS: it checks them
        if asks_bcs:
            content, body = "application/x.aptos.view_function+bcs", encode_view_request(call, parameters)
        else:
            types = [wire_type(parse_type_tag(text)) for text in call.type_arguments]
            called = {"function": function_id(call.function).wire, "type_arguments": types, "arguments": arguments}
            content, body = JSON, json_body(called)
        accept = _BCS if answers_bcs else JSON
        request = self._node.request("POST", "/view", body=body, content=content, accept=accept)
        return _Template(request, answers_bcs, signature)

    def _types(self, abis: AbisAt) -> _Signature:
        if (function := function_abi(self._call.function, abis)) is None:
            return _Signature()
        given = tuple(parse_type_tag(text) for text in self._call.type_arguments)
        tags = [substitute(tag, given) for tag in function.results]
        return _Signature(function, tuple(map(str, tags)), tuple(map(abis.layout, tags)))

    def _result(self, answer: Answer, types: _Signature, version: int, *, bcs: bool) -> ViewResult:
        values, raw = (_bcs_values if bcs else _json_values)(self._call.function, answer, types.layouts)
        gas, ledger = answer.parsed.gas_used, answer.parsed.ledger
        return ViewResult(self._call, values, types.types, gas, version, ledger, types.layouts, raw)


class PreparedItem(_PreparedRead[TableItem, tuple["Layout", "Layout"]]):
    """A read of a table item that can be sent at any version.

    Raises
    ------
    InputError
        If the handle or a type cannot be parsed.
    """

    def __init__(self, node: Reads, handle: str, *, key: Any, key_type: str, value_type: str) -> None:
        self._handle, self._key = parse_table_handle(handle), key
        self._key_tag, self._value_tag = parse_type_tag(key_type), parse_type_tag(value_type)
        super().__init__(node, f"item {visible(repr(key), 60)} of table {without_padding(self._handle)}")

    def _template(self, abis: AbisAt) -> _Template[tuple[Layout, Layout]]:
        key_layout, value_layout = types = self._types(abis)
        key = encode_argument(key_layout, self._key, where="table key")
        body = {"key_type": wire_type(self._key_tag), "value_type": wire_type(self._value_tag), "key": key}
        bcs = self._node.encoding == "bcs" and fit_bcs([value_layout])
        where, accept = path("tables", self._handle, "item"), _BCS if bcs else JSON
        return _Template(self._node.request("POST", where, body=json_body(body), accept=accept), bcs, types)

    def _types(self, abis: AbisAt) -> tuple[Layout, Layout]:
        return abis.layout(self._key_tag), abis.layout(self._value_tag)

    def _result(self, answer: Answer, types: tuple[Layout, Layout], version: int, *, bcs: bool) -> TableItem:
        body = answer.bcs(self._asked) if bcs else answer.body
        document: Any = body if bcs else parse_json(body, self._asked)
        try:
            value = (decode_bcs if bcs else decode_json)(types[1], document, where="table item")
        except SchemaError as error:
            end = f"; the response is {body[:40]!r}" if bcs else ""
            raise SchemaError(f"{self._asked}: {error}{end}", column=error.column) from None
        return TableItem(self._handle, self._key, value, version, answer.parsed.ledger, *types)
