"""A node on loopback for calls with values of every type: recorded calls, and functions that return what they get.

What crosses the wire is made by `plain_bcs` and `plain_values`, so that nothing of the package decides what is right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.conformance.plain_bcs import bound, call, sequence, signed_bytes, value
from tests.conformance.recorded_node import BCS, JSON, Received, RecordedNode, _content, _wants_bcs

CHAIN, HEAD = 4, 222
HEADERS = {
    "x-aptos-chain-id": str(CHAIN),
    "x-aptos-ledger-version": str(HEAD),
    "x-aptos-ledger-oldest-version": "0",
    "x-aptos-ledger-timestampusec": "1795390453625577",
    "x-aptos-epoch": "5",
    "x-aptos-block-height": "76",
    "x-aptos-oldest-block-height": "0",
}
LEDGER = {
    "chain_id": CHAIN,
    "epoch": "5",
    "ledger_version": str(HEAD),
    "oldest_ledger_version": "0",
    "ledger_timestamp": HEADERS["x-aptos-ledger-timestampusec"],
    "node_role": "full_node",
    "oldest_block_height": "0",
    "block_height": "76",
    "git_hash": None,
}


@dataclass
class Known:
    """A view call and what a node answers: a status, and a JSON body."""

    sent: dict[str, Any]
    status: int
    answer: Any


def exact(document: Any) -> str:
    """Return JSON without the order of its fields and its spacing."""
    return json.dumps(document, sort_keys=True)


@dataclass
class TypesNode(RecordedNode):
    """A server over module ABIs and view calls; a call that it does not know is 404 ``not_recorded``.

    Attributes
    ----------
    modules : dict
        ABIs by address and name.
    calls, in_json, in_bcs : dict
        Known calls, those that work in JSON by their JSON, and by the BCS of the request.
    items : dict
        Table items: by the JSON of the request.
    """

    modules: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    calls: dict[str, Known] = field(default_factory=dict)
    in_json: dict[str, Known] = field(default_factory=dict)
    in_bcs: dict[bytes, Known] = field(default_factory=dict)
    items: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index nothing: there is no history."""

    def add_module(self, abi: dict[str, Any]) -> None:
        self.modules[int(abi["address"], 16), abi["name"]] = abi

    def add_call(self, sent: dict[str, Any], answer: Any, *, status: int = 200, only_bcs: bool = False) -> None:
        """Take a call with the answer of a node in JSON."""
        known = self.calls[exact(sent)] = Known(sent, status, answer)
        if not only_bcs:
            self.in_json[exact(sent)] = known
        try:
            self.in_bcs[call(sent, self.parameters, self.struct)] = known
        except (ValueError, TypeError, KeyError, AttributeError):
            assert status != 200, sent

    def known(self, recorded: dict[str, Any]) -> Known:
        """Return the answer to a recorded call."""
        return self.calls[exact({name: recorded[name] for name in ("function", "type_arguments", "arguments")})]

    def parameters(self, function: str) -> list[str]:
        return list(self.function_abi(function)["params"])

    def function_abi(self, function: str) -> dict[str, Any]:
        where, module, name = function.split("::")
        exposed = self.modules[int(where, 16), module]["exposed_functions"]
        return next(one for one in exposed if one["name"] == name)

    def struct(self, identifier: str) -> dict[str, Any] | None:
        where, module, name = identifier.split("::")
        abi = self.modules.get((int(where, 16), module))
        return None if abi is None else next(one for one in abi["structs"] if one["name"] == name)

    def signed(self, document: dict[str, Any]) -> bytes:
        """Return a transaction that is sent in JSON as it is sent in BCS."""
        return signed_bytes(document, self.parameters, CHAIN, self.struct)

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        steps = urlsplit(path).path.strip("/").split("/")[1:]
        self.received.append(Received(method, path, headers, body, None))
        match method, *steps:
            case ["GET"]:
                return self._sent(200, LEDGER)
            case "GET", "accounts", where, "module", name if (int(where, 16), name) in self.modules:
                return self._sent(200, {"bytecode": "0x00", "abi": self.modules[int(where, 16), name]})
            case "POST", "view":
                calls = self.in_json if _content(headers) == JSON else self.in_bcs
                known = calls.get(exact(json.loads(body)) if _content(headers) == JSON else body)
                if known is not None:
                    return self._viewed(known, bcs=_wants_bcs(headers))
            case "POST", "tables", _, "item" if exact(json.loads(body)) in self.items:
                item, stored = json.loads(body), self.items[exact(json.loads(body))]
                if _wants_bcs(headers):
                    return 200, HEADERS | {"content-type": BCS}, value(item["value_type"], stored, self.struct)
                return self._sent(200, stored)
        return self._sent(404, _error("not_recorded", f"not recorded: {method} {unquote(path)} {body[:300]!r}"))

    def _viewed(self, known: Known, *, bcs: bool) -> tuple[int, dict[str, str], bytes]:
        if known.status != 200 or not bcs:
            return self._sent(known.status, known.answer)
        returned = [
            bound(one, known.sent["type_arguments"]) for one in self.function_abi(known.sent["function"])["return"]
        ]
        body = sequence([value(*pair, self.struct) for pair in zip(returned, known.answer, strict=True)])
        return 200, HEADERS | {"content-type": BCS, "x-aptos-gas-used": "5"}, body

    def _sent(self, status: int, document: Any) -> tuple[int, dict[str, str], bytes]:
        gas = {"x-aptos-gas-used": "5"} if status == 200 else {}
        return status, HEADERS | gas | {"content-type": JSON}, json.dumps(document).encode()


def _error(code: str, message: str) -> dict[str, Any]:
    return {"message": message, "error_code": code, "vm_error_code": None}


# values of every type ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """One value: as a node accepts it, as a node prints it, and in Python."""

    accepted: Any
    printed: Any
    python: Any


LONG = "0x24ec7088e8c9f8185ae6ca05d84e7d0885bd59f26791fc3570d7af2d76a379c7"
LEAVES: dict[str, list[Sample]] = {
    "bool": [Sample(True, True, True), Sample(False, False, False)],
    "address": [Sample(LONG, LONG, LONG), Sample("0x1", "0x1", "0x1")],
    "0x1::string::String": [Sample('\u00e9"\\', '\u00e9"\\', '\u00e9"\\'), Sample("", "", "")],
    "vector<u8>": [Sample("0x00ff", "0x00ff", b"\x00\xff"), Sample("0x", "0x", b"")],
    "0x1::object::Object<0x1::object::ObjectCore>": [Sample({"inner": LONG}, {"inner": LONG}, LONG)],
}
for _bits in (8, 16, 32, 64, 128, 256):
    for _sign, _low, _high in (("u", 0, 2**_bits - 1), ("i", -(2 ** (_bits - 1)), 2 ** (_bits - 1) - 1)):
        LEAVES[f"{_sign}{_bits}"] = [
            Sample(*([number if _bits <= 32 else str(number)] * 2), number) for number in (_high, _low)
        ]
MODULE = "0xcafe::m"
STRUCTS = [
    {
        "name": "Pair",
        "generic_type_params": [{"constraints": []}, {"constraints": []}],
        "fields": [{"name": "z", "type": "T0"}, {"name": "a", "type": "vector<T1>"}],
    },
    {
        "name": "Shape",
        "is_enum": True,
        "generic_type_params": [{"constraints": []}],
        "fields": [],
        "variants": [
            {"name": "Dot", "fields": []},
            {"name": "Round", "fields": [{"name": "r", "type": "T0"}, {"name": "_0", "type": "u8"}]},
        ],
    },
]
for _struct in STRUCTS:
    _struct |= {"is_native": False, "is_event": False, "abilities": ["copy", "drop", "store"]}


def wrapped(inner: str) -> dict[str, Callable[[list[Sample]], list[Sample]]]:
    """Return the types around a type, and how their samples are made."""

    def vector(samples: list[Sample]) -> list[Sample]:
        if inner == "u8":
            return LEAVES["vector<u8>"]
        lists = [list(part) for part in zip(*[(one.accepted, one.printed, one.python) for one in samples], strict=True)]
        return [Sample(*lists), Sample([], [], [])]

    def option(samples: list[Sample]) -> list[Sample]:
        nested = inner.startswith("0x1::option::Option<")
        found = [
            Sample(
                {"vec": f"0x{one.accepted:02x}" if inner == "u8" else [one.accepted]},
                {"vec": [one.printed]},
                {"vec": [one.python]} if nested else one.python,
            )
            for one in samples
        ]
        return [*found, Sample({"vec": "0x" if inner == "u8" else []}, {"vec": []}, None)]

    def pair(samples: list[Sample]) -> list[Sample]:
        one, listed = samples[0], vector(samples)[0]
        forms = ("accepted", "printed", "python")
        return [Sample(*({"z": getattr(one, form), "a": getattr(listed, form)} for form in forms))]

    def shape(samples: list[Sample]) -> list[Sample]:
        first = samples[0]
        made = Sample(
            {"Round": {"r": first.accepted, "_0": 7}},
            {"__variant__": "Round", "_0": 7, "r": first.printed},
            {"__variant__": "Round", "r": first.python, "_0": 7},
        )
        return [made, Sample({"Dot": {}}, {"__variant__": "Dot"}, {"__variant__": "Dot"})]

    return {
        f"vector<{inner}>": vector,
        f"0x1::option::Option<{inner}>": option,
        f"{MODULE}::Pair<{inner}, {inner}>": pair,
        f"{MODULE}::Shape<{inner}>": shape,
    }


def samples(depth: int) -> dict[str, list[Sample]]:
    """Return samples of every type, each nested in each other, so many levels deep."""
    found = level = dict(LEAVES)
    for _ in range(depth):
        level = {outer: make(given) for inner, given in level.items() for outer, make in wrapped(inner).items()}
        found = found | level
        # Integers nest alike; u8 and Object do not, so that deeper levels are made of these.
        level = {
            kind: given for kind, given in level.items() if re.search(r"(u8>+|Object<0x1::object::ObjectCore>>)$", kind)
        }
    return found
