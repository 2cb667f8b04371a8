"""A node in memory for client tests: answers by path, every request recorded; and short ways to build its answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from toolkit.client._connection import Connection
from toolkit.client._http import Answer, PreparedCall, Request
from toolkit.wire import LedgerState
from toolkit.wire._headers import ledger_headers

URL = "http://node.test/v1"
TIME = datetime(2026, 5, 1, tzinfo=UTC)


def ledger(version: int = 1_000, *, oldest: int = 0) -> LedgerState:
    """Return the state of a head."""
    return LedgerState(4, version, oldest, TIME, 7, version // 10, oldest // 10)


def answer(value: Any, *, status: int = 200, head: LedgerState | None = None, gas: int | None = None) -> Answer:
    """Return a JSON answer with the headers of a node."""
    state = ledger() if head is None else head
    return Answer(status, ledger_headers(state, gas_used=gas), json.dumps(value).encode())


def refused(status: int, code: str, message: str = "no", *, head: LedgerState | None = None, **headers: str) -> Answer:
    """Return the documented error; headers are named with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"message": message, "error_code": code, "vm_error_code": None}
    return Answer(status, (ledger_headers(head) if head else {}) | named, json.dumps(body).encode())


def info(head: LedgerState, *, git_hash: str | None = "abc") -> dict[str, Any]:
    """Return the body of ``GET /v1``."""
    return {
        "chain_id": head.chain_id,
        "epoch": str(head.epoch),
        "ledger_version": str(head.version),
        "oldest_ledger_version": str(head.oldest_version),
        "ledger_timestamp": str(head.timestamp_us),
        "node_role": "full_node",
        "oldest_block_height": str(head.oldest_block_height),
        "block_height": str(head.block_height),
        "git_hash": git_hash,
    }


def function(name: str, params: list[str] | None = None, returns: list[str] | None = None, **more: Any) -> dict:
    """Return a function as module ABIs have it."""
    return {
        "name": name,
        "visibility": "public",
        "is_entry": False,
        "is_view": True,
        "generic_type_params": [],
        "params": params or [],
        "return": returns or [],
    } | more


def struct(name: str, fields: dict[str, str], **more: Any) -> dict:
    """Return a struct as module ABIs have it."""
    shown = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"name": name, "is_native": False, "abilities": [], "generic_type_params": [], "fields": shown} | more


def module(name: str, *, address: str = "0x1", functions: Any = (), structs: Any = (), code: str = "0x01") -> dict:
    """Return the ``{bytecode, abi}`` answer of a module."""
    abi = {
        "address": address,
        "name": name,
        "friends": [],
        "exposed_functions": list(functions),
        "structs": list(structs),
    }
    return {"bytecode": code, "abi": abi}


def get(connection: Connection, where: str, *, asked: str, query: dict[str, Any] | None = None) -> Answer:
    """GET a path over a connection and return the answer as it is."""
    request = connection.request("GET", where, query=query)
    return connection.perform(PreparedCall(request, asked, lambda found: found))


class Script:
    """A transport that gives prepared outcomes in order, the last one for ever; an exception is raised."""

    def __init__(self, *outcomes: Answer | Exception) -> None:
        self.outcomes = outcomes
        self.requests: list[Request] = []
        self.closed = False

    def send(self, request: Request) -> Answer:
        outcome = self.outcomes[min(len(self.requests), len(self.outcomes) - 1)]
        self.requests.append(request)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self) -> None:
        self.closed = True


Handler = Callable[[dict[str, str], Any], Answer]


class Clock:
    """A clock that stands until a test moves it."""

    now = 0.0

    def __call__(self):
        return self.now


class FakeNode:
    """A transport that answers by method and path; a handler gets the query and the decoded body.

    Attributes
    ----------
    asked : list of (str, dict, object)
        ``METHOD /path`` below ``/v1``, query and body of every request, in order; a body in BCS as bytes.
    accepted : list of str
        What each request accepts.
    """

    def __init__(self, routes: dict[str, Handler | Answer] | None = None, *, head: LedgerState | None = None) -> None:
        self.head = head or ledger()
        self.routes: dict[str, Handler | Answer] = {"GET ": lambda *_: answer(info(self.head), head=self.head)}
        self.routes |= routes or {}
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.accepted: list[str] = []
        self._lock = threading.Lock()

    def send(self, request: Request) -> Answer:
        parts = urlsplit(request.url)
        where = f"{request.method} {parts.path.removeprefix('/v1')}"
        query = dict(parse_qsl(parts.query))
        in_json = request.headers.get("Content-Type") == "application/json"
        body = json.loads(request.body) if request.body is not None and in_json else request.body
        with self._lock:
            self.asked.append((where, query, body))
            self.accepted.append(request.headers["Accept"])
        route = self.routes.get(where)
        if route is None:
            code = "module_not_found" if "/module/" in where else "account_not_found"
            if "/module/" in where and not any("/module/" in known for known in self.routes):
                return refused(403, "api_disabled", head=self.head)  # a node without any module does not offer them
            return refused(404, code, f"nothing at {where}", head=self.head)
        return route if isinstance(route, Answer) else route(query, body)

    def close(self) -> None:
        pass

    def sent(self, where: str) -> list[tuple[dict[str, str], Any]]:
        """Return query and body of each request to one place."""
        return [(query, body) for place, query, body in self.asked if place == where]


FEE_STATEMENT = "0x1::transaction_fee::FeeStatement"
V2_EVENT = {"creation_number": "0", "account_address": "0x0"}


def user_transaction(
    version: int = 1_000, *, function: str = "0x1::aptos_account::transfer", gas: int = 9, **more: Any
) -> dict[str, Any]:
    """Return a simulated user transaction as the wire has it; a committed one with ``type=...``."""
    fee = {
        "total_charge_gas_units": str(gas),
        "execution_gas_units": "5",
        "io_gas_units": "3",
        "storage_fee_octas": "100",
        "storage_fee_refund_octas": "0",
    }
    return {
        "version": str(version),
        "hash": f"0x{version:064x}",
        "gas_used": str(gas),
        "success": True,
        "vm_status": "Executed successfully",
        "changes": [
            {
                "address": "0xa11ce",
                "state_key_hash": "0x01",
                "data": {"type": "0x1::m::Purse", "data": {"total": "340282366920938463463374607431768211455"}},
                "type": "write_resource",
            }
        ],
        "events": [{"guid": V2_EVENT, "sequence_number": "0", "type": FEE_STATEMENT, "data": fee}],
        "timestamp": "1777593600000000",
        "sender": "0xa11ce",
        "sequence_number": "7",
        "max_gas_amount": "200",
        "gas_unit_price": "100",
        "expiration_timestamp_secs": "1777594200",
        "payload": {
            "type": "entry_function_payload",
            "function": function,
            "type_arguments": [],
            "arguments": ["0xb0b", "100"],
        },
        "signature": {"type": "no_account_signature"},
    } | more


# The transaction at the head, which a node with a cache in a file reads to compare ledgers.
HEAD_TRANSACTION = {"GET /transactions/by_version/1000": answer(user_transaction(1_000, type="user_transaction"))}
