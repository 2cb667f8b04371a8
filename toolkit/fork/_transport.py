"""Answers the requests of a client from the state of a fork, so that a `Node` reads and simulates on it."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from toolkit.client._http import Answer
from toolkit.errors import ClosedError, InputError, SchemaError
from toolkit.fork._render import StateAbis, status_text, transaction_json, value_json
from toolkit.fork._state import BCS
from toolkit.move import decode_json, encode_bcs, parse_address, parse_type_tag
from toolkit.move._bcs import Reader, uleb128
from toolkit.move._ids import address_to_bytes
from toolkit.vm import Execution, execute, run_view
from toolkit.vm._state import item_key, resource_key
from toolkit.vm._types import from_tag, struct
from toolkit.wire import SignedTransaction
from toolkit.wire._bcs_forms import whole
from toolkit.wire._bcs_requests import FUNCTION_CALL
from toolkit.wire._gas import APT

if TYPE_CHECKING:
    from toolkit.client._http import Request
    from toolkit.fork._ledger import ForkLedger

_ACCOUNT = struct("0x1::account::Account")
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
                return self._json(self._ledger.facts() | {"node_role": "fork", "git_hash": None})
            case "GET", "estimate_gas_price":
                price = self._ledger.price
                return self._json({"gas_estimate": price})
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
        headers = self._ledger.headers() | {"content-type": kind}
        if gas is not None:
            headers["x-aptos-gas-used"] = str(gas)
        return Answer(status, headers, body)

    def _json(self, document: Any, *, status: int = 200, gas: int | None = None) -> Answer:
        return self._sent(json.dumps(document).encode(), "application/json", status, gas)

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
        call = whole(FUNCTION_CALL, request.body or b"")
        types, read = list(map(str, call.type_arguments)), self._ledger.at(version)
        view = run_view(str(call.function), types, call.arguments, read, max_gas=_MAX_VIEW_GAS)
        if not view.status.success:
            message = view.status.message or status_text(view.status, self.abis(version))
            raise _Refused(400, "invalid_input", message)
        return self._sent(uleb128(len(view.values)) + b"".join(view.values), BCS, gas=view.gas_used)

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
