"""A node on loopback that answers what a real node answered, and nothing else.

Requests are looked up among the recorded ones by method, path and body. Transactions, blocks, modules, resources and
raw table items at any version follow from the recorded pages, whose write sets are a whole ledger. What was not
recorded is 404 with the error code ``not_recorded``, and is listed in `RecordedNode.unanswered`.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.conformance.plain_bcs import call, signed_bytes

JSON, BCS = "application/json", "application/x-bcs"
NOT_RECORDED = "not_recorded"
SIGNED = "application/x.aptos.signed_transaction+bcs"
VIEW = "application/x.aptos.view_function+bcs"
IN_BCS = {"/v1/view": VIEW, "/v1/transactions/simulate": SIGNED}
"""Operations whose body may be BCS, and how it is called."""


@dataclass(frozen=True)
class Exchange:
    """One recorded request with its answer."""

    group: str
    place: int
    """Line of the recording's file, from 0."""
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    status: int
    answer_headers: dict[str, str]
    answer: bytes

    @classmethod
    def of(cls, place: int, line: dict[str, Any]) -> Exchange:
        headers = {name.lower(): value for name, value in line["headers"].items()}
        sent, answered = _data(line["body"]), _data(line["answer"])
        about = {name.lower(): value for name, value in line["answer_headers"].items()}
        return cls(line["group"], place, line["method"], line["path"], headers, sent, line["status"], about, answered)

    def __str__(self) -> str:
        return f"{self.group}[{self.place}] {self.method} {self.path} {self.body[:200]!r}"

    @property
    def head(self) -> int | None:
        """The node's head when it answered."""
        text = self.answer_headers.get("x-aptos-ledger-version")
        return None if text is None else int(text)

    @property
    def in_bcs(self) -> bool:
        """Whether the answer is BCS."""
        return self.answer_headers.get("content-type", "").startswith(BCS)

    @property
    def json(self) -> Any:
        return json.loads(self.answer)

    @property
    def sent(self) -> Any:
        """The JSON body that was sent; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def _data(recorded: dict[str, str] | None) -> bytes:
    if not recorded:
        return b""
    return bytes.fromhex(recorded["hex"]) if "hex" in recorded else recorded.get("text", "").encode()


class Recordings:
    """The files of a folder of recordings, each a list of exchanges."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, list[Exchange]] = {}
        for place in sorted(folder.glob("*.jsonl.gz")):
            with gzip.open(place, "rt", encoding="utf-8") as lines:
                self.files[place.name.split(".")[0]] = [
                    Exchange.of(i, json.loads(line)) for i, line in enumerate(lines)
                ]

    def __iter__(self) -> Iterator[Exchange]:
        for exchanges in self.files.values():
            yield from exchanges

    def of(self, *files: str) -> list[Exchange]:
        """Return the exchanges of some files."""
        return [exchange for file in files for exchange in self.files[file]]

    @cached_property
    def history(self) -> History:
        """The ledger of 316 versions that most files are about."""
        return History(_pages(self.files["history"]))

    @cached_property
    def longer_history(self) -> History:
        """The same ledger up to the end of the longer series."""
        return History(_pages(self.files["history"]) | _pages(self.files["series"]))

    @cached_property
    def simulations(self) -> list[Exchange]:
        """Every request to simulate, of all files."""
        return [e for e in self if e.method == "POST" and e.path.split("?")[0] == "/v1/transactions/simulate"]


def _pages(exchanges: Iterable[Exchange]) -> dict[int, dict[str, Any]]:
    """Return the committed transactions of pages by version."""
    return {
        int(transaction["version"]): transaction
        for exchange in exchanges
        if exchange.path.startswith("/v1/transactions?") and exchange.status == 200
        for transaction in exchange.json
    }


def number_of(address: str) -> int:
    """Return an address as a number, however it is spelled."""
    return int(address, 16)


def plain_type(text: str) -> str:
    """Spell every address in a type without leading zeros, and leave out spaces."""
    return re.sub(r"0x0*([0-9a-fA-F]+)", lambda match: "0x" + match[1].lower(), text.replace(" ", ""))


class History:
    """State at any version of a ledger, out of what its transactions wrote.

    Parameters
    ----------
    transactions : dict of int to dict
        Every transaction from version 0 on, as a node prints it.
    """

    def __init__(self, transactions: dict[int, dict[str, Any]]) -> None:
        self.transactions = [transactions[version] for version in sorted(transactions)]
        assert [int(one["version"]) for one in self.transactions] == list(range(len(self.transactions)))
        self._writes: defaultdict[tuple[Any, ...], list[tuple[int, Any]]] = defaultdict(list)
        groups: dict[tuple[str, str], set[tuple[Any, ...]]] = {}
        for version, transaction in enumerate(self.transactions):
            listed: defaultdict[tuple[str, str], set[tuple[Any, ...]]] = defaultdict(set)
            for change in transaction["changes"]:
                key, value = self._write(change)
                self._writes[key].append((version, value))
                if key[0] == "resource":
                    members = listed[change["address"], change["state_key_hash"]]
                    members |= set() if value is None else {key}
            for place, members in listed.items():  # what a key no longer contains has ended
                for key in groups.get(place, set()) - members:
                    if self._writes[key][-1][0] < version:
                        self._writes[key].append((version, None))
                groups[place] = members
        self.blocks = self._blocks()

    @staticmethod
    def _write(change: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
        """Return what a change writes, and the value; None deletes it."""
        match change["type"]:
            case "write_module":
                key = ("module", number_of(change["address"]), change["data"]["abi"]["name"])
                return key, change["data"]
            case "write_resource":
                return ("resource", number_of(change["address"]), plain_type(change["data"]["type"])), change["data"]
            case "delete_resource":
                return ("resource", number_of(change["address"]), plain_type(change["resource"])), None
            case "write_table_item":
                return ("item", number_of(change["handle"]), change["key"]), change["value"]
            case "delete_table_item":
                return ("item", number_of(change["handle"]), change["key"]), None
        raise AssertionError(f"a change of an unknown kind: {change['type']}")

    def _blocks(self) -> list[dict[str, Any]]:
        blocks = [{"block_height": "0", "block_hash": "0x" + "0" * 64, "block_timestamp": "0", "first_version": "0"}]
        for transaction in self.transactions:
            if transaction["type"] == "block_metadata_transaction":
                blocks.append(
                    {
                        "block_height": str(len(blocks)),
                        "block_hash": transaction["id"],
                        "block_timestamp": transaction["timestamp"],
                        "first_version": transaction["version"],
                    }
                )
        for block, following in pairwise(blocks):
            block["last_version"] = str(int(following["first_version"]) - 1)
        blocks[-1]["last_version"] = str(self.head)
        return [block | {"transactions": None} for block in blocks]

    @property
    def head(self) -> int:
        return len(self.transactions) - 1

    def value(self, kind: str, place: int, name: str, version: int) -> Any:
        """Return what is written at a place as of a version; None if there is nothing."""
        writes = self._writes.get((kind, place, name), [])
        at = bisect_right(writes, version, key=lambda write: write[0])
        return writes[at - 1][1] if at else None

    def places(self, kind: str) -> list[tuple[Any, ...]]:
        """Return every place of a kind that was ever written: kind, address and name."""
        return [key for key in self._writes if key[0] == kind]

    def module(self, address: str, name: str, version: int) -> Any:
        return self.value("module", number_of(address), name, version)

    def resource(self, address: str, tag: str, version: int) -> Any:
        return self.value("resource", number_of(address), plain_type(tag), version)

    def resources(self, address: str, version: int) -> list[Any]:
        """Return all resources of an address."""
        places = [key for key in self.places("resource") if key[1] == number_of(address)]
        return [found for key in places if (found := self.value(*key, version)) is not None]

    def struct(self, identifier: str, version: int) -> dict[str, Any] | None:
        """Return the ABI of a struct by its address, module and name."""
        address, module, name = identifier.split("::")
        found = self.module(address, module, version)
        structs = found["abi"]["structs"] if found else []
        return next((struct for struct in structs if struct["name"] == name), None)

    def function(self, identifier: str, version: int) -> dict[str, Any] | None:
        """Return the ABI of an exposed function."""
        address, module, name = identifier.split("::")
        found = self.module(address, module, version)
        exposed = found["abi"]["exposed_functions"] if found else []
        return next((function for function in exposed if function["name"] == name), None)

    def block_at(self, version: int) -> dict[str, Any]:
        return next(block for block in reversed(self.blocks) if int(block["first_version"]) <= version)


@dataclass(frozen=True)
class Received:
    """A request that the node got, and whether a recording answered it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    exchange: Exchange | None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class RecordedNode:
    """A server over some exchanges and a history.

    Attributes
    ----------
    url : str
        Where it answers while it is served.
    received : list of Received
        The POST requests that a recording answered, and every request that nothing answered.
    """

    exchanges: list[Exchange]
    history: History
    url: str = ""
    received: list[Received] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._verbatim: dict[tuple[Any, ...], Exchange] = {}
        self._exact: dict[tuple[Any, ...], Exchange] = {}
        self._loose: dict[tuple[Any, ...], Exchange] = {}
        self._meant: dict[tuple[Any, ...], Exchange] = {}
        for exchange in self.exchanges:
            head, body = _head(exchange.method, exchange.path, exchange.headers, exchange.head), exchange.body
            self._verbatim.setdefault(_verbatim(exchange.method, exchange.path, exchange.headers, body), exchange)
            self._exact.setdefault((*head, _content(exchange.headers), _value(exchange.headers, body)), exchange)
            self._loose.setdefault((*head, _loosely(body)), exchange)
            meant = self.meaning(exchange.method, exchange.path, exchange.headers, body)
            if meant is not None:
                self._meant.setdefault((*head, meant), exchange)
        latest = max((e for e in self.exchanges if e.head == self.history.head), key=lambda e: e.place)
        self._headers = {
            name: value
            for name, value in latest.answer_headers.items()
            if name.startswith("x-aptos-") and name != "x-aptos-gas-used"
        }

    @property
    def unanswered(self) -> list[Received]:
        """The requests that no recording answered."""
        return [one for one in self.received if one.exchange is None]

    def meaning(self, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes | None:
        """Return the BCS of a view call or a transaction to simulate, however it is sent; None for other requests."""
        where = urlsplit(path).path
        if method != "POST" or where not in IN_BCS or _content(headers) not in {JSON, IN_BCS[where]}:
            return None
        if _content(headers) != JSON:
            return body
        try:
            document = json.loads(body)
            if where == "/v1/view":
                return call(document, self._parameters)
            return signed_bytes(document, self._parameters, int(self._chain_id))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError):
            return None

    @property
    def _chain_id(self) -> str:
        return self.exchanges[0].answer_headers.get("x-aptos-chain-id", "4")

    def _parameters(self, function: str) -> list[str]:
        found = self.history.function(function, self.history.head)
        if found is None:
            raise KeyError(function)
        return list(found["params"])

    def find(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Exchange | None:
        """Return the recorded exchange whose request means the same."""
        head = _head(method, path, headers, self.history.head)
        found = self._verbatim.get(_verbatim(method, path, headers, body))
        found = found or self._exact.get((*head, _content(headers), _value(headers, body)))
        found = found or self._loose.get((*head, _loosely(body)))
        meant = self.meaning(method, path, headers, body) if found is None else None
        return found if meant is None else self._meant.get((*head, meant))

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer."""
        exchange = self.find(method, path, headers, body)
        if exchange is not None:
            self._note(method, path, headers, body, exchange)
            return exchange.status, exchange.answer_headers, exchange.answer
        parts = urlsplit(path)
        made = self._made(method, unquote(parts.path), dict(parse_qsl(parts.query)), headers, body)
        if made is not None:
            return made
        self._note(method, path, headers, body, None)
        return self._refusal(404, NOT_RECORDED, f"not recorded: {method} {path} {body[:300]!r}")

    def _note(self, method: str, path: str, headers: dict[str, str], body: bytes, found: Exchange | None) -> None:
        if method == "POST" or found is None:
            self.received.append(Received(method, path, headers, body, found))

    def _made(  # noqa: PLR0911  # one case per kind of answer
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes] | None:
        """Return an answer that follows from the history; None if none does."""
        history, steps = self.history, path.strip("/").split("/")[1:]
        version = int(query.get("ledger_version", history.head))
        if version > history.head:
            return self._refusal(404, "version_not_found", f"Ledger version not found by Ledger version({version})")
        match method, *steps:
            case "GET", "accounts", address, ("module" | "resource") as kind, name:
                named = f"{'Module name' if kind == 'module' else 'Struct tag'}({name})"
                found = (history.module if kind == "module" else history.resource)(address, name, version)
                missing = f"{kind.capitalize()} not found by Address({address}), {named} and Ledger version({version})"
                return self._refusal(404, f"{kind}_not_found", missing) if found is None else self._json(found)
            case "GET", "accounts", address, "resources" if "limit" not in query:
                return self._json(history.resources(address, version))
            case "GET", "transactions", "by_version", text if text.isdigit() and int(text) <= history.head:
                return self._json(history.transactions[int(text)])
            case ["GET", "transactions"] if "start" in query:
                start = int(query["start"])
                return self._json(history.transactions[start : start + min(int(query.get("limit", 25)), 100)])
            case "GET", "blocks", "by_version", text if text.isdigit() and int(text) <= history.head:
                return self._json(history.block_at(int(text)))
            case "GET", "blocks", "by_height", text if text.isdigit() and int(text) < len(history.blocks):
                return self._json(history.blocks[int(text)])
            case "POST", "tables", handle, "raw_item" if _wants_bcs(headers):
                key = json.loads(body)["key"]
                found = history.value("item", number_of(handle), key, version)
                if found is not None:
                    return 200, self._headers | {"content-type": BCS}, bytes.fromhex(found[2:])
                where = f"Table handle({handle}), Table key({key}) and Ledger version({version})"
                return self._refusal(404, "table_item_not_found", f"Table Item not found by {where}")
        return None

    def _json(self, value: Any) -> tuple[int, dict[str, str], bytes]:
        body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        return 200, self._headers | {"content-type": f"{JSON}; charset=utf-8"}, body

    def _refusal(self, status: int, code: str, message: str) -> tuple[int, dict[str, str], bytes]:
        _, headers, body = self._json({"message": message, "error_code": code, "vm_error_code": None})
        return status, headers, body

    @contextlib.contextmanager
    def serving(self) -> Iterator[RecordedNode]:
        """Answer on loopback, at `url`."""
        server = _Server(self)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _verbatim(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[Any, ...]:
    return method, path, headers.get("accept"), headers.get("content-type"), body


def _head(method: str, path: str, headers: dict[str, str], head: int | None) -> tuple[Any, ...]:
    """Return method, path, query and the form of the answer; parameters that mean the default are left out."""
    parts = urlsplit(path)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = sorted(pair for pair in pairs if pair[1] != "false" and pair != ("ledger_version", str(head)))
    steps = plain_type(re.sub("/(?=[0-9a-fA-F]{64}(/|$))", "/0x", unquote(parts.path)))
    return method, steps, tuple(query), _wants_bcs(headers)


def _wants_bcs(headers: dict[str, str]) -> bool:
    return headers.get("accept", "").startswith(BCS)


def _content(headers: dict[str, str]) -> str:
    return headers.get("content-type", "").split(";")[0]


def _value(headers: dict[str, str], body: bytes) -> str | bytes:
    """Return a JSON body without the order of its fields and its spacing; other bodies as they are."""
    if _content(headers) != JSON:
        return body
    try:
        return json.dumps(json.loads(body), sort_keys=True)
    except ValueError:
        return body


def _loosely(body: bytes) -> Any:
    """Return a JSON body with short forms of everything that may be an address."""
    try:
        document = json.loads(body)
    except ValueError:
        return body
    return json.dumps(_short(document), sort_keys=True)


def _short(value: Any) -> Any:
    match value:
        case dict():
            return {name: _short(item) for name, item in value.items()}
        case list():
            return [_short(item) for item in value]
        case str():
            return plain_type(value) if value.startswith("0x") else value
    return value


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, node: RecordedNode) -> None:
        self.node = node
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a connection in a thread of its own, until the client or `server_close` ends the connection."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that has ended."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """End the threads, which wait for requests of clients that keep their connections."""
        super().server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def _serve(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        status, answered, data = self.server.node.answer(self.command, self.path, headers, body)
        self.send_response_only(status)
        for name, value in answered.items():
            if name not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_OPTIONS = _serve  # noqa: N815  # names that http.server calls

    def log_message(self, *_: Any) -> None:
        """Print nothing."""
