"""The ledger of a fork: the state of a node at a version, and what was written on top of it, version by version.

It answers the requests of a client, so that a `Node` reads and simulates on it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from toolkit.client._calls import JSON
from toolkit.client._http import Answer
from toolkit.errors import ClosedError, InputError, SchemaError, Unsupported
from toolkit.fork._render import StateAbis, parsed_module, status_text, transaction_json, value_json
from toolkit.fork._state import BCS
from toolkit.move import FunctionId, decode_json, encode_bcs, parse_address, parse_type_tag
from toolkit.move._bcs import Reader
from toolkit.move._ids import address_to_bytes
from toolkit.vm import Execution, View, execute, run_view
from toolkit.vm._arguments import make_arguments
from toolkit.vm._bcs import listed, struct_tag_bytes
from toolkit.vm._environment import Environment
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Unmetered
from toolkit.vm._interpreter import Machine
from toolkit.vm._loader import Loader
from toolkit.vm._schedule import Schedule
from toolkit.vm._state import Group, Overlay, Session, group_key, item_key, module_key, resource_key
from toolkit.vm._types import FRAMEWORK, ModuleId, Struct, from_tag, struct
from toolkit.wire import LedgerState, SignedTransaction
from toolkit.wire._bcs_forms import whole
from toolkit.wire._bcs_requests import FUNCTION_CALL
from toolkit.wire._gas import APT
from toolkit.wire._headers import ledger_headers, timestamp_from_us
from toolkit.wire._responses import encode_node_info

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.client._http import Request
    from toolkit.fork._state import NodeState
    from toolkit.vm._state import Read, StateValue

_ACCOUNT = struct("0x1::account::Account")
TIMESTAMP = resource_key(FRAMEWORK, struct("0x1::timestamp::CurrentTimeMicroseconds"))
GAS_SCHEDULE = resource_key(FRAMEWORK, struct("0x1::gas_schedule::GasScheduleV2"))
_CHAIN_ID = resource_key(FRAMEWORK, struct("0x1::chain_id::ChainId"))
_RECONFIGURATION = resource_key(FRAMEWORK, struct("0x1::reconfiguration::Configuration"))
_DEFAULT_PRICE = 100  # octas, if the schedule does not set a minimum
_DEFAULT_MAX_GAS = 2_000_000


class ForkLedger:
    """Versions of a state: those up to the fork are the node's, each later one adds changes.

    Parameters
    ----------
    base : NodeState

    Attributes
    ----------
    version : int
        The head.
    """

    def __init__(self, base: NodeState) -> None:
        self.base, self.version = base, base.version
        self._history: dict[bytes, tuple[list[int], list[StateValue | None]]] = {}

    def at(self, version: int) -> Read:
        """Return the state at a version as a function of state keys.

        Raises
        ------
        InputError
            If the fork does not have the version.
        """
        if not self.base.version <= version <= self.version:
            span = f"{self.base.version:,} to {self.version:,}"
            raise InputError(f"version {version:,} is not on this fork, which has versions {span}; ask its node")

        def read(key: bytes) -> StateValue | None:
            versions, values = self._history.get(key, ((), ()))
            place = bisect_right(versions, version)
            return values[place - 1] if place else self.base(key)

        return read

    def commit(self, values: Mapping[bytes, StateValue | None]) -> None:
        """Add a version with changes."""
        self.version += 1
        for key, value in values.items():
            versions, held = self._history.setdefault(key, ([], []))
            versions.append(self.version)
            held.append(value)

    def value(self, key: bytes) -> bytes:
        """Return a value of the framework at the head.

        Raises
        ------
        Unsupported
            If the state does not have it.
        """
        found = self.at(self.version)(key)
        if found is None:
            raise Unsupported(f"a state without {key[34:].decode('utf-8', 'replace')!r}")
        return found[0]

    def place(self, address: str, kind: Struct, version: int) -> tuple[bytes, bytes | None]:
        """Return the state key of a resource, and its tag in the group if it is a member of one."""
        where = address_to_bytes(address)
        code = self.at(version)(module_key(kind.module))
        group = None if code is None else parsed_module(code[0], str(kind.module)).group(kind.name)
        if group is None:
            return resource_key(where, kind), None
        return group_key(where, group), struct_tag_bytes(kind)

    def resource(self, address: str, kind: Any, version: int) -> bytes | None:
        """Return the BCS of a resource; None if it is absent."""
        key, tag = self.place(address, kind, version)
        found = self.at(version)(key)
        if found is None or tag is None:
            return None if found is None else found[0]
        return Group(found[0]).members.get(tag)

    # Facts about the head.

    def timestamp_us(self) -> int:
        """Return the time of the ledger in microseconds since 1970."""
        return int.from_bytes(self.value(TIMESTAMP)[:8], "little")

    @property
    def schedule(self) -> Schedule:
        """The gas schedule."""
        return Schedule.from_bcs(self.value(GAS_SCHEDULE))

    @property
    def price(self) -> int:
        """The lowest gas unit price that is accepted."""
        return self.schedule["txn.min_price_per_gas_unit"] or _DEFAULT_PRICE

    @property
    def max_gas(self) -> int:
        """The largest gas limit of a transaction."""
        return self.schedule["txn.maximum_number_of_gas_units"] or _DEFAULT_MAX_GAS

    @property
    def state(self) -> LedgerState:
        """The state of the ledger, as nodes report it.

        Raises
        ------
        SchemaError
            If its time is after the year 9999.
        """
        timestamp = timestamp_from_us(self.timestamp_us())
        if timestamp is None:
            raise SchemaError(f"expected the time of the ledger in microseconds, got {self.timestamp_us():,}")
        epoch = int.from_bytes(self.value(_RECONFIGURATION)[:8], "little")
        chain_id = self.value(_CHAIN_ID)[0]
        return LedgerState(chain_id, self.version, self.base.version, timestamp, epoch, 0, 0)


def call_framework(read: Read, function: str, arguments: Sequence[bytes]) -> dict[bytes, StateValue | None]:
    """Run a function without type arguments, whatever its visibility, and return what it writes.

    Raises
    ------
    InputError
        If the function does not exist or fails.
    """
    environment = Environment(read)
    loader = Loader(environment)
    salt = hashlib.sha3_256(function.encode() + b"".join(arguments)).digest()
    session = Session(Overlay(environment.base), salt)
    machine = Machine(loader, session, Unmetered(environment.schedule))
    name = FunctionId.parse(function)
    try:
        definition = loader.function(ModuleId(address_to_bytes(name.address), name.module), name.name)
        machine.run(loader.code(definition, ()), make_arguments(machine, definition.parameters, arguments))
        state = session.state
        state.apply(session.changes())
    except MoveError as error:
        raise InputError(f"{function} fails on this ledger: {error.status} {error.message or ''}".rstrip()) from None
    return {
        key: None if change.value is None else (change.value, change.metadata) for key, change in state.changes.items()
    }


_MAX_HELD = 64  # executions that nobody has asked for
_MAX_VIEW_GAS = 2_000_000  # gas units; what nodes allow


class _Refused(Exception):  # noqa: N818 - not an error of the package: it becomes a response
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class ForkTransport:
    """Answers requests from a fork's state, in the thread that sends them.

    Parameters
    ----------
    ledger : ForkLedger
    """

    def __init__(self, ledger: ForkLedger) -> None:
        self._ledger = ledger
        self._lock = threading.RLock()
        self._closed = False
        self._abis: dict[int, StateAbis] = {}
        # What simulations did, by the hash of their transaction, for the result that is made of the response.
        self.executions: OrderedDict[str, Execution] = OrderedDict()

    def close(self) -> None:
        """Reject further requests: they raise ClosedError."""
        self._closed = True

    def send(self, request: Request) -> Answer:
        """Answer one request.

        Raises
        ------
        Unsupported
            If the machine does not implement something that the code needs.
        NodeError, NodeUnreachable
            If the state that the code needs cannot be read from the node.
        """
        if self._closed:
            raise ClosedError("the fork is closed")
        parts = urlsplit(request.url)
        query = dict(parse_qsl(parts.query))
        steps = [unquote(one) for one in parts.path.split("/")[2:] if one]
        with self._lock:
            try:
                return self._answer(request, steps, query)
            except _Refused as refused:
                return self._error(refused.status, refused.code, str(refused))
            except (InputError, SchemaError) as error:
                return self._error(HTTPStatus.BAD_REQUEST, "invalid_input", str(error))

    def _error(self, status: int, code: str, message: str) -> Answer:
        return self._json({"message": message, "error_code": code, "vm_error_code": None}, status=status)

    def _answer(  # noqa: PLR0911 - a case per endpoint
        self, request: Request, steps: list[str], query: dict[str, str]
    ) -> Answer:
        version = int(query.get("ledger_version", self._ledger.version))
        match request.method, *steps:
            case ["GET"]:
                return self._sent(encode_node_info(self._ledger.state, node_role="fork"), JSON)
            case "GET", "estimate_gas_price":
                return self._json({"gas_estimate": self._ledger.price})
            case "GET", "accounts", address:
                return self._account(address, version)
            case "GET", "accounts", address, "module", name:
                found = self.abis(version).answer(parse_address(address), name)
                if found is None:
                    raise _Refused(404, "module_not_found", f"no module {address}::{name} at version {version}")
                return self._json(found)
            case "GET", "accounts", address, "resource", tag:
                return self._resource(address, tag, version, bcs=_wants_bcs(request))
            case "POST", "view":
                return self._view(request, version)
            case "POST", "tables", handle, ("item" | "raw_item") as kind:
                return self._item(request, handle, version, raw=kind == "raw_item")
            case "POST", "transactions", "simulate":
                return self._simulate(request, query)
        raise _Refused(404, "web_framework_error", "a fork does not offer this; ask its node")

    def abis(self, version: int) -> StateAbis:
        """Return the ABIs of the modules at a version."""
        if version not in self._abis:
            self._abis[version] = StateAbis(self._ledger.at(version))
        return self._abis[version]

    # Responses.

    def _sent(self, body: bytes, kind: str, status: int = 200, gas: int | None = None) -> Answer:
        headers = ledger_headers(self._ledger.state, gas_used=gas)
        return Answer(status, headers | {"Content-Type": kind}, body)

    def _json(self, document: Any, *, status: int = 200) -> Answer:
        return self._sent(json.dumps(document).encode(), JSON, status)

    def _account(self, address: str, version: int) -> Answer:
        found = self._ledger.at(version)(resource_key(address_to_bytes(address), _ACCOUNT))
        if found is None:
            raise _Refused(404, "account_not_found", f"no account {address} at version {version}")
        source = Reader(found[0])
        key = source.bytes()
        number = source.u64()
        return self._json({"sequence_number": str(number), "authentication_key": f"0x{key.hex()}"})

    def _resource(self, address: str, text: str, version: int, *, bcs: bool) -> Answer:
        tag = parse_type_tag(text)
        data = self._ledger.resource(address, from_tag(tag), version)
        if data is None:
            raise _Refused(404, "resource_not_found", f"no resource {text} of {address} at version {version}")
        if bcs:
            return self._sent(data, BCS)
        return self._json({"type": text, "data": value_json(data, tag, self.abis(version))})

    def _item(self, request: Request, handle: str, version: int, *, raw: bool) -> Answer:
        body, abis = json.loads(request.body or b"{}"), self.abis(version)
        if raw:
            key = bytes.fromhex(body["key"].removeprefix("0x"))
        else:
            layout = abis.layout(parse_type_tag(body["key_type"]))
            key = encode_bcs(layout, decode_json(layout, body["key"]))
        found = self._ledger.at(version)(item_key(address_to_bytes(handle), key))
        if found is None:
            raise _Refused(404, "table_item_not_found", f"no such item of table {handle} at version {version}")
        if raw or _wants_bcs(request):
            return self._sent(found[0], BCS)
        return self._json(value_json(found[0], parse_type_tag(body["value_type"]), abis))

    def _view(self, request: Request, version: int) -> Answer:
        if "bcs" not in request.headers.get("Content-Type", "") or not _wants_bcs(request):
            raise _Refused(415, "invalid_input", "a fork runs views whose types are known")
        view = self.run_view(request.body, version)
        if not view.status.success:
            message = view.status.message or status_text(view.status, self.abis(version))
            raise _Refused(400, "invalid_input", message)
        return self._sent(listed(view.values), BCS, gas=view.gas_used)

    def run_view(self, body: bytes | None, version: int, *, max_gas: int = _MAX_VIEW_GAS) -> View:
        """Run a view, given as the body of a request in BCS."""
        call = whole(FUNCTION_CALL, body or b"")
        types, read = list(map(str, call.type_arguments)), self._ledger.at(version)
        return run_view(str(call.function), types, call.arguments, read, max_gas=max_gas)

    # Simulations.

    def _simulate(self, request: Request, query: dict[str, str]) -> Answer:
        if "bcs" not in request.headers.get("Content-Type", ""):
            raise _Refused(415, "invalid_input", "a fork simulates calls whose argument types are known")
        signed, version = SignedTransaction.from_bcs(request.body or b""), self._ledger.version
        raw = signed.raw
        if query.get("estimate_gas_unit_price") == "true" or query.get("estimate_prioritized_gas_unit_price") == "true":
            raw = replace(raw, gas_unit_price=self._ledger.price)
        if query.get("estimate_max_gas_amount") == "true":
            raw = replace(raw, max_gas_amount=self._affordable(raw.sender, raw.gas_unit_price, version))
        signed = replace(signed, raw=raw)
        read = self._ledger.at(version)
        execution = execute(signed.to_bcs(), read, simulate=True, log=True)
        answer = transaction_json(
            signed, execution, self.abis(version), version=version, timestamp_us=self._ledger.timestamp_us()
        )
        self.executions[answer["hash"]] = execution
        while len(self.executions) > _MAX_HELD:
            self.executions.popitem(last=False)
        return self._json([answer])

    def _affordable(self, sender: str, price: int, version: int) -> int:
        """Return the largest gas limit that the sender's balance covers, up to that of the network."""
        limit = self._ledger.max_gas
        view = None
        if price:
            view = run_view("0x1::coin::balance", [APT], [address_to_bytes(sender)], self._ledger.at(version))
        if view is None or not view.status.success:
            return limit
        return min(limit, int.from_bytes(view.values[0], "little") // price)


def _wants_bcs(request: Request) -> bool:
    return "bcs" in request.headers.get("Accept", "")
