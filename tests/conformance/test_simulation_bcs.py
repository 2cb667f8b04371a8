"""A simulation's answer in BCS, read by the chain's published layout registry and compared with the JSON answer."""

from __future__ import annotations

import hashlib

import pytest
import requests

from toolkit import embedded
from toolkit.move._bcs import Reader

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which jupyterlab of the dev extra installs")

BCS = {"Accept": "application/x-bcs"}
PRIMITIVES = {"U8": "u8", "U16": "u16", "U32": "u32", "U64": "u64", "U128": "u128", "BOOL": "bool", "STR": "string"}


class Registry:
    """Reads BCS by a registry of layouts: an enum is its variant's name, or (name, content)."""

    def __init__(self, text):
        self._layouts = yaml.safe_load(text)

    def read(self, name, reader):
        (kind, content), *none = self._layouts[name].items()
        assert not none
        if kind == "STRUCT":
            return self._struct(content, reader)
        if kind == "ENUM":
            (variant, inner) = next(iter(content[reader.uleb128()].items()))
            return variant if inner == "UNIT" else (variant, self._variant(inner, reader))
        assert kind == "NEWTYPESTRUCT"
        return self._value(content, reader)

    def _struct(self, fields, reader):
        return {name: self._value(kind, reader) for field in fields for name, kind in field.items()}

    def _variant(self, inner, reader):
        ((kind, content),) = inner.items()
        return self._struct(content, reader) if kind == "STRUCT" else self._value(content, reader)

    def _value(self, kind, reader):
        if isinstance(kind, str):
            return reader.bytes() if kind == "BYTES" else getattr(reader, PRIMITIVES[kind])()
        ((shape, inner),) = kind.items()
        if shape == "TYPENAME":
            return self.read(inner, reader)
        if shape == "OPTION":
            return self._value(inner, reader) if reader.bool() else None
        if shape == "SEQ":
            return [self._value(inner, reader) for _ in range(reader.uleb128())]
        if shape == "TUPLEARRAY":
            return reader.fixed(inner["SIZE"])
        assert shape == "MAP"
        return [
            (self._value(inner["KEY"], reader), self._value(inner["VALUE"], reader)) for _ in range(reader.uleb128())
        ]


@pytest.fixture(scope="module")
def registry(shared_data):
    return Registry((shared_data / "vectors/bcs_format.api.yaml").read_text())


@pytest.fixture(scope="module")
def url():
    with embedded.serve(embedded.Ledger.with_history(versions=300, cache=True)) as served:
        yield served


def _both(url, registry, function, arguments, sender="0xa11ce", **changes):
    """Simulate in JSON and in BCS; return both answers, read."""
    sequence_number = requests.get(f"{url}/accounts/{sender}", timeout=10).json()["sequence_number"]
    body = {
        "sender": sender,
        "sequence_number": sequence_number,
        "max_gas_amount": "20000",
        "gas_unit_price": "100",
        "expiration_timestamp_secs": "32503680000",
        "payload": {
            "type": "entry_function_payload",
            "function": function,
            "type_arguments": [],
            "arguments": arguments,
        },
        "signature": {"type": "no_account_signature"},
    } | changes
    simulate = f"{url}/transactions/simulate"
    (told,) = requests.post(simulate, json=body, timeout=10).json()
    answer = requests.post(simulate, json=body, headers=BCS, timeout=10)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/x-bcs"), answer.text
    assert answer.headers["X-Aptos-Gas-Used"] == told["gas_used"]
    reader = Reader(answer.content)
    read = registry.read("TransactionOnChainData", reader)
    reader.end()
    return told, read


def _info(read):
    kind, info = read["info"]
    assert kind == "V0"
    return info


def test_the_whole_answer_says_what_the_json_says(url, registry):
    """Version, sender, hash, gas, events and writes equal those of the JSON answer, and no bytes are left over."""
    told, read = _both(url, registry, "0xcafe::registry::register", ["brand-new"])
    info = _info(read)
    assert told["success"]
    assert info["status"] == "Success"
    assert (str(read["version"]), str(info["gas_used"])) == (told["version"], told["gas_used"])
    assert f"0x{info['transaction_hash']['hash'].hex()}" == told["hash"]
    kind, signed = read["transaction"]
    assert kind == "UserTransaction"
    assert signed["raw_txn"]["sender"].hex().lstrip("0") == "a11ce"
    assert [kind for kind, _ in read["events"]] == ["V2"] * len(told["events"])
    assert read["events"][-1][1]["type_tag"][1]["name"] == "FeeStatement"
    (_, writes) = read["changes"]
    hashes = {_hash(key) for key, _ in writes["write_set"]}
    assert hashes == {change["state_key_hash"] for change in told["changes"]}
    ops = {_hash(key): op for key, op in writes["write_set"]}
    items = [change for change in told["changes"] if change["type"] == "write_table_item"]
    assert len(items) == 1
    assert ops[items[0]["state_key_hash"]] == ("Creation", bytes.fromhex(items[0]["value"][2:]))
    accounts = [c for c in told["changes"] if c.get("data") and c["data"].get("type") == "0x1::account::Account"]
    assert ops[accounts[0]["state_key_hash"]][0] == "Modification"


def test_what_is_deleted_is_a_deletion(url, registry):
    """A name given back deletes its table item."""
    told, read = _both(url, registry, "0xcafe::registry::release", ["alice"])
    (gone,) = [change for change in told["changes"] if change["type"] == "delete_table_item"]
    ops = {_hash(key): op for key, op in read["changes"][1]["write_set"]}
    assert ops[gone["state_key_hash"]] == "Deletion"


def test_an_abort_names_its_module_code_and_reason(url, registry):
    """The status is structured in BCS; its parts equal those in the text of the JSON answer."""
    told, read = _both(url, registry, "0xcafe::registry::register", ["alice"])
    kind, abort = _info(read)["status"]
    location, module = abort["location"]
    assert (kind, location, module["name"], abort["code"]) == ("MoveAbort", "Module", "registry", 0x80001)
    assert abort["info"]["reason_name"] == "E_TAKEN"
    assert told["vm_status"] == f"Move abort in 0xcafe::registry: E_TAKEN(0x80001): {abort['info']['description']}"


def test_other_failures_have_a_status_number(url, registry):
    """Out of gas has a variant of its own; a prologue failure is the number of its status, and writes nothing."""
    _, read = _both(url, registry, "0xcafe::registry::register", ["brand-new"], max_gas_amount="100")
    assert _info(read)["status"] == "OutOfGas"
    _, read = _both(url, registry, "0xcafe::registry::register", ["x"], sequence_number="1000000")
    assert _info(read)["status"] == ("MiscellaneousError", 4)
    _, read = _both(url, registry, "0xcafe::registry::register", ["x"], sequence_number="18446744073709551614")
    assert _info(read)["status"] == ("MiscellaneousError", 24)
    assert (_info(read)["gas_used"], read["events"], read["changes"]) == (0, [], ("V0", {"write_set": []}))


def _hash(key):
    """Return a state key's hash from its BCS parts, as the chain hashes it."""
    kind, content = key
    salt = hashlib.sha3_256(b"APTOS::StateKey").digest()
    if kind == "TableItem":
        data = b"\x01" + content["handle"] + content["key"]
    else:
        length = len(content["path"])
        assert length < 16_384
        size = bytes([length]) if length < 128 else bytes([length & 0x7F | 0x80, length >> 7])
        data = b"\x00" + content["address"] + size + content["path"]
    return f"0x{hashlib.sha3_256(salt + data).hexdigest()}"
