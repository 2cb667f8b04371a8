"""The three operations: a call by its ABI to the wire, and the answer back into typed Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.client.arguments import encode_arguments, untyped_argument
from toolkit.client.connection import Connection, path
from toolkit.client.results import Simulation, TableItem, ViewResult, view_result
from toolkit.errors import NotFound, SchemaError
from toolkit.move.ids import FunctionId, parse_table_handle
from toolkit.move.tags import parse_type_tag, substitute, wire_type
from toolkit.move.values import decode_json, encode_argument
from toolkit.wire.answers import decode_simulation
from toolkit.wire.gas import GasSchedule
from toolkit.wire.headers import parse_headers
from toolkit.wire.payloads import EntryFunction

if TYPE_CHECKING:
    from toolkit.client.abis import AbisAt, AbiStore
    from toolkit.client.companion import Companion
    from toolkit.move.abi import FunctionAbi
    from toolkit.move.layout import Layout
    from toolkit.wire.headers import AnswerHeaders
    from toolkit.wire.requests import SimulationRequest, ViewFunction

__all__ = ["Caller"]

EXPIRATION_MARGIN_S = 600
"""Seconds after the ledger's time at which a simulated transaction expires, unless the request says."""

_PLACEHOLDER_PRICE = 100
_PLACEHOLDER_MAX_GAS = 2_000_000
"""Sent where the node is asked to put its own estimate in; octas per gas unit, and gas units."""

_GAS_SCHEDULE = "0x1::gas_schedule::GasScheduleV2"


class Caller:
    """Runs views, table item reads and simulations over one connection."""

    def __init__(self, connection: Connection, companion: Companion, abis: AbiStore) -> None:
        self._connection = connection
        self._companion = companion
        self._abis = abis
        self._head_seen: int | None = None

    # views ----------------------------------------------------------------------------------------------------

    def view(self, call: ViewFunction, version: int | None) -> ViewResult:
        """Run a view function; see `Node.view`."""
        before = self._abis.at(self._head() if version is None else version)
        answer = self._connection.post(
            "/view",
            self._view_body(call, before),
            asked=f"view {call.function}{_at(version)}",
            query={"ledger_version": version},
        )
        headers = self._noted(parse_headers(answer.headers))
        read = before.version if version is None else version
        if version is None and headers.ledger is not None:
            read = headers.ledger.version
        types, layouts = self._returns(call, self._abis.at(read))
        return view_result(
            call,
            answer.body,
            types,
            layouts,
            gas_used=headers.gas_used,
            ledger_version=read,
            ledger=headers.ledger,
        )

    def _view_body(self, call: ViewFunction, abis: AbisAt) -> dict[str, Any]:
        function = _function_abi(call.function, abis)
        return {
            "function": FunctionId.parse(call.function).wire,
            "type_arguments": [wire_type(parse_type_tag(text)) for text in call.type_arguments],
            "arguments": _arguments(call.function, function, call.type_arguments, call.arguments, abis),
        }

    def _returns(self, call: ViewFunction, abis: AbisAt) -> tuple[tuple[str, ...], tuple[Layout, ...] | None]:
        """Return the types and layouts of what a call returns; no layouts where no ABI is known."""
        function = _function_abi(call.function, abis)
        if function is None:
            return (), None
        given = tuple(parse_type_tag(text) for text in call.type_arguments)
        tags = [substitute(tag, given) for tag in function.results]
        return tuple(str(tag) for tag in tags), tuple(abis.layout(tag) for tag in tags)

    # table items ----------------------------------------------------------------------------------------------

    def table_item(self, handle: str, key: Any, key_type: str, value_type: str, version: int | None) -> TableItem:
        """Read one table item; see `Node.table_item`."""
        handle = parse_table_handle(handle)
        key_tag, value_tag = parse_type_tag(key_type), parse_type_tag(value_type)
        before = self._abis.at(self._head() if version is None else version)
        body = {
            "key_type": wire_type(key_tag),
            "value_type": wire_type(value_tag),
            "key": encode_argument(before.layout(key_tag), key, where="table key"),
        }
        answer = self._connection.post(
            path("tables", handle, "item"),
            body,
            asked=f"item {str(key)[:60]!r} of table {handle}{_at(version)}",
            query={"ledger_version": version},
        )
        headers = self._noted(parse_headers(answer.headers))
        read = before.version if version is None else version
        if version is None and headers.ledger is not None:
            read = headers.ledger.version
        layout = self._abis.at(read).layout(value_tag)
        value = decode_json(layout, _json(answer.body, "table item"), where="table item")
        return TableItem(handle, key, value, read, headers.ledger, before.layout(key_tag), layout)

    # simulations ----------------------------------------------------------------------------------------------

    def simulate(self, request: SimulationRequest) -> Simulation:
        """Simulate a transaction; see `Node.simulate`."""
        ledger = self._companion.info().ledger
        abis = self._abis.at(ledger.version)
        encoded = _with_estimates(request).replace(payload=self._payload(request.payload, abis))
        body = encoded.body(
            sequence_number=self._sequence_number(request),
            max_gas_amount=_PLACEHOLDER_MAX_GAS,
            gas_unit_price=_PLACEHOLDER_PRICE,
            expiration_timestamp_secs=int(ledger.timestamp.timestamp()) + EXPIRATION_MARGIN_S,
        )
        answer = self._connection.post(
            "/transactions/simulate",
            body,
            asked=f"simulate {_payload_name(request.payload)} from {request.sender}",
            query=encoded.query(),
        )
        headers = self._noted(parse_headers(answer.headers))
        transactions = decode_simulation(answer.body)
        if len(transactions) != 1:
            raise SchemaError(f"a simulation answers one transaction, this answer has {len(transactions)}")
        abis = self._abis.at(transactions[0].version)
        return Simulation(request, transactions[0], headers.ledger, abis, self._companion)

    def _payload(self, payload: Any, abis: AbisAt) -> Any:
        """Return the payload with its arguments in the node's JSON forms, where it is one that has an ABI."""
        if not isinstance(payload, EntryFunction):
            return payload
        function = _function_abi(payload.function, abis)
        arguments = _arguments(payload.function, function, payload.type_arguments, payload.arguments, abis)
        return EntryFunction(payload.function, type_arguments=payload.type_arguments, arguments=tuple(arguments))

    def _sequence_number(self, request: SimulationRequest) -> int:
        if request.sequence_number is not None:
            return request.sequence_number
        if request.replay_protection_nonce is not None:
            return 0
        try:
            return self._companion.account(request.sender).sequence_number
        except NotFound:
            return 0

    # resources ------------------------------------------------------------------------------------------------

    def resource(self, address: str, tag: str, version: int | None) -> Any:
        """Read a resource as a Python value; see `Node.resource`."""
        parsed = parse_type_tag(tag)
        body, head = self._companion.resource_answer(address, wire_type(parsed), version)
        read = version if version is not None else head
        document = _json(body, f"resource {tag}")
        if not isinstance(document, dict) or "data" not in document:
            raise SchemaError(f"resource {tag}: expected an object with `type` and `data`, got {body[:60]!r}")
        if read is None:
            return document["data"]
        return decode_json(self._abis.at(read).layout(parsed), document["data"], where=tag)

    def gas_schedule(self, version: int | None) -> GasSchedule:
        """Read the on-chain gas schedule; see `Node.gas_schedule`."""
        body, _ = self._companion.resource_answer("0x1", _GAS_SCHEDULE, version)
        document = _json(body, _GAS_SCHEDULE)
        if not isinstance(document, dict) or "data" not in document:
            raise SchemaError(f"{_GAS_SCHEDULE}: expected an object with `type` and `data`, got {body[:60]!r}")
        return GasSchedule.from_resource(document["data"])

    # the head -------------------------------------------------------------------------------------------------

    def _head(self) -> int:
        """Return the highest head seen; an ABI there serves to encode a call that reads the head."""
        if self._head_seen is None:
            self._head_seen = self._companion.info().ledger.version
        return self._head_seen

    def _noted(self, headers: AnswerHeaders) -> AnswerHeaders:
        if headers.ledger is not None:
            self._head_seen = max(self._head_seen or 0, headers.ledger.version)
        return headers


def _with_estimates(request: SimulationRequest) -> SimulationRequest:
    """Ask the node for the price and max gas that the request leaves open.

    The max gas estimate is made from the sender's balance even where another account pays, so it is not asked
    for then: the placeholder, which every chain's schedule allows, stands.
    """
    filled: dict[str, bool] = {}
    if request.estimate_gas_unit_price is None:
        filled["estimate_gas_unit_price"] = request.gas_unit_price is None
    if request.estimate_max_gas_amount is None:
        filled["estimate_max_gas_amount"] = request.max_gas_amount is None and request.fee_payer is None
    return request.replace(**filled)


def _function_abi(name: str, abis: AbisAt) -> FunctionAbi | None:
    function = FunctionId.parse(name)
    module = abis.module_abi(function.address, function.module)
    return None if module is None else module.function(function.name)


def _arguments(name: str, function: FunctionAbi | None, type_arguments: Any, arguments: Any, abis: AbisAt) -> list[Any]:
    """Encode by the ABI where there is one; without it the node gets the arguments as given and judges them."""
    if function is None:
        return [untyped_argument(value) for value in arguments]
    return encode_arguments(function, type_arguments, arguments, abis, where=name)


def _payload_name(payload: Any) -> str:
    return payload.function if isinstance(payload, EntryFunction) else f"a {type(payload).__name__} payload"


def _json(body: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaError(f"{what}: the answer is not JSON ({error}); it starts {body[:60]!r}") from None


def _at(version: int | None) -> str:
    return "" if version is None else f" at version {version}"
