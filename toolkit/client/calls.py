"""View functions: a call by its ABI to the wire in JSON or BCS, and the answer back into typed Python values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.client.abis import Made
from toolkit.client.arguments import encode_arguments, parameter_layouts
from toolkit.client.connection import bcs_body, json_body, pinned
from toolkit.client.context import BCS, JSON, at_version, function_abi
from toolkit.client.prepared import Prepared
from toolkit.client.results import ViewResult
from toolkit.errors import SchemaError
from toolkit.move import FunctionId, decode_json, encode_json, is_closed, parse_type_tag, substitute, wire_type
from toolkit.move._json_text import parse_json
from toolkit.wire import decode_view_answer, encode_view_request
from toolkit.wire._models import wire_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client.abis import AbisAt
    from toolkit.client.context import Context
    from toolkit.client.http import Answer, Request
    from toolkit.move import FunctionAbi, Layout
    from toolkit.wire import ViewFunction

__all__ = ["PreparedViews"]

_BCS_REQUEST = "application/x.aptos.view_function+bcs"


@dataclass(frozen=True, slots=True)
class _Returns:
    """What a view returns; no layouts where no ABI is known."""

    types: tuple[str, ...] = ()
    layouts: tuple[Layout, ...] | None = None

    @property
    def fit_bcs(self) -> bool:
        """BCS can be read only where every part of every type is known."""
        return self.layouts is not None and all(is_closed(layout) for layout in self.layouts)


@dataclass(frozen=True, slots=True)
class _Form:
    """How a call travels, but for the version, and what comes back."""

    request: Request
    returns: _Returns
    in_bcs: bool


class PreparedViews:
    """One view call, ready to be sent at any version; what does not depend on the version is done once.

    Parameters
    ----------
    context : Context
    call : ViewFunction
    """

    def __init__(self, context: Context, call: ViewFunction) -> None:
        self._context = context
        self._call = call
        self._forms = Made(context.abis, self._form)

    def at(self, version: int | None) -> Prepared[ViewResult]:
        """Make the call ready to be sent at a version, None being the head.

        Raises
        ------
        InputError, SchemaError
            If the call does not fit the function's ABI.
        """
        encoded_by = self._context.head() if version is None else version
        modules, form = self._forms.found(encoded_by)
        untyped = self._context.abis.failure(modules)

        def finish(answer: Answer) -> ViewResult:
            return self._result(answer, form, version, encoded_by)

        asked = f"view {self._call.function}{at_version(version)}"
        return Prepared(pinned(form.request, version), asked, finish, version, gas=True, untyped=untyped)

    def layouts(self) -> tuple[Layout, ...] | None:
        """Return the layouts of what the call returns by the ABI at the highest head seen, None where none is known."""
        abis = self._context.abis.at(self._context.head())
        return _returns(self._call, function_abi(self._call.function, abis), abis).layouts

    def _form(self, abis: AbisAt) -> _Form:
        call = self._call
        function = function_abi(call.function, abis)
        returns = _returns(call, function, abis)
        layouts = _bcs_parameters(call, function, abis) if self._context.encoding == "bcs" else None
        if layouts is not None and returns.fit_bcs:
            body, content, accept = encode_view_request(call, layouts), _BCS_REQUEST, BCS
        else:
            body, content, accept = _json_body(call, function, abis), JSON, JSON
        request = self._context.post("/view", body, content=content, accept=accept)
        return _Form(request, returns, in_bcs=accept == BCS)

    def _result(self, answer: Answer, form: _Form, version: int | None, encoded_by: int) -> ViewResult:
        headers = self._context.headers(answer)
        read, returns, call = encoded_by, form.returns, self._call
        if version is None and headers.ledger is not None and headers.ledger.version != read:
            read = headers.ledger.version
            then = self._context.abis.at(read, lenient=True)
            returns = _returns(call, function_abi(call.function, then), then)
        values, raw = (_bcs_values if form.in_bcs else _json_values)(call, answer, returns)
        return ViewResult(call, values, returns.types, headers.gas_used, read, headers.ledger, returns.layouts, raw)


def _bcs_parameters(call: ViewFunction, function: FunctionAbi | None, abis: AbisAt) -> list[Layout] | None:
    """Return the layouts of the parameters, None where a part of them is not known, so that JSON has to do."""
    if function is None:
        return None
    layouts = parameter_layouts(function, call.type_arguments, abis)
    return layouts if all(is_closed(layout) for layout in layouts) else None


def _json_body(call: ViewFunction, function: FunctionAbi | None, abis: AbisAt) -> bytes:
    """Encode by the ABI where there is one; without it the node gets the arguments as given and judges them."""
    arguments: Sequence[Any]
    if function is None:
        arguments = wire_argument(list(call.arguments))
    else:
        arguments = encode_arguments(function, call.type_arguments, call.arguments, abis, where=call.function)
    return json_body(
        {
            "function": FunctionId.parse(call.function).wire,
            "type_arguments": [wire_type(parse_type_tag(text)) for text in call.type_arguments],
            "arguments": arguments,
        }
    )


def _returns(call: ViewFunction, function: FunctionAbi | None, abis: AbisAt) -> _Returns:
    if function is None:
        return _Returns()
    given = tuple(parse_type_tag(text) for text in call.type_arguments)
    tags = [substitute(tag, given) for tag in function.results]
    return _Returns(tuple(str(tag) for tag in tags), tuple(abis.layout(tag) for tag in tags))


def _json_values(call: ViewFunction, answer: Answer, returns: _Returns) -> tuple[tuple[Any, ...], str]:
    items = parse_json(answer.body, call.function)
    if not isinstance(items, list):
        got = f"{type(items).__name__}: {answer.body[:60]!r}"
        raise SchemaError(f"{call.function}: expected a JSON array of return values, got {got}")
    raw = answer.body.decode("utf-8", "replace").strip()
    raw = raw[1:-1].strip() if len(items) == 1 else raw
    if returns.layouts is None:
        return tuple(items), raw
    if len(returns.layouts) != len(items):
        expected = len(returns.layouts)
        raise SchemaError(f"{call.function}: the ABI tells {expected} return values, the answer has {len(items)}")
    places = enumerate(zip(returns.layouts, items, strict=True))
    try:
        return tuple(decode_json(*pair, where=f"value {place}") for place, pair in places), raw
    except SchemaError as error:
        raise _misfit(call, error, len(items)) from None


def _misfit(call: ViewFunction, error: SchemaError, width: int, more: str = "") -> SchemaError:
    """Say of which call, and of which column of its frame, a value does not fit; others name no column."""
    if error.column is None:
        return SchemaError(f"{call.function}: {error}{more}")
    root = error.column.partition(".")[0].partition("[")[0]  # "value 0", then the path inside it
    column = "value" if width == 1 else root.replace(" ", "_")
    return SchemaError(f"{call.function} return {error}{more}", column=column)


def _bcs_values(call: ViewFunction, answer: Answer, returns: _Returns) -> tuple[tuple[Any, ...], str]:
    layouts, body = returns.layouts or (), bcs_body(answer, call.function)
    try:
        values = tuple(decode_view_answer(body, layouts))
    except SchemaError as error:
        raise _misfit(call, error, len(layouts), f"; the answer is {body[:40]!r}") from None
    shown = [encode_json(layout, value) for layout, value in zip(layouts, values, strict=True)]
    return values, msgspec.json.encode(shown[0] if len(shown) == 1 else shown).decode()
