"""Every kind of answer of the embedded node against the OpenAPI document of the real one."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

from toolkit import embedded

NONE = {"type": "no_account_signature"}
SIMULATION = {
    "sender": "0xa11ce",
    "sequence_number": "0",
    "max_gas_amount": "200000",
    "gas_unit_price": "100",
    "expiration_timestamp_secs": "32503680000",
    "payload": {
        "type": "entry_function_payload",
        "function": "0x1::aptos_account::transfer",
        "type_arguments": [],
        "arguments": ["0xb0b", "1"],
    },
    "signature": NONE,
}


def draft4(schema: dict[str, Any]) -> Any:
    """Return the validator of a schema; jsonschema takes a while to import, so it waits for its first use."""
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema, of the test extra")
    return jsonschema.Draft4Validator(schema)


@pytest.fixture(scope="module")
def document(shared_data) -> dict[str, Any]:
    """Return the OpenAPI document, its 3.0 spellings turned into JSON Schema."""
    whole = json.loads((shared_data / "node/openapi.json").read_text())
    return _as_json_schema(whole)


def _as_json_schema(node: Any) -> Any:
    if isinstance(node, list):
        return [_as_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _as_json_schema(value) for key, value in node.items() if key not in {"example", "discriminator"}}
    # A reference with siblings is a reference in 3.0; its siblings are notes.
    if "$ref" in plain:
        return {"$ref": plain["$ref"]}
    # The document's patterns are those of an earlier wire (type tags lack u16, u32, u256): not validated.
    plain.pop("pattern", None)
    plain.pop("format", None)
    # A missing optional field is sent as null by the real node too.
    if "properties" in plain:
        required = plain.get("required", [])
        for name, schema in plain["properties"].items():
            if name not in required:
                plain["properties"][name] = {"anyOf": [schema, {"type": "null"}]}
    return plain


@pytest.fixture(scope="module")
def url():
    with embedded.serve(embedded.Ledger.with_history(versions=400, cache=True)) as served:
        yield served


def _schema_of(document, method, path, status):
    responses = document["paths"][path][method]["responses"]
    return responses[str(status)]["content"]["application/json"]["schema"]


def _check(document, answer, method, path):
    schema = _schema_of(document, method, path, answer.status_code)
    validator = draft4({**schema, "components": document["components"]})
    body = answer.json()
    if isinstance(body, list) and body and body[0].get("signature") == {"type": "single_sender"}:
        body[0]["signature"] = NONE  # the document does not have the form that nodes print
    problems = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator.iter_errors(body)]
    assert problems == [], (answer.url, problems[:5])


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("/", "/"),
        ("/-/healthy", "/-/healthy"),
        ("/accounts/{address}", "/accounts/0xa11ce"),
        ("/accounts/{address}", "/accounts/0xzz"),
        ("/accounts/{address}/resources", "/accounts/0x1/resources"),
        ("/accounts/{address}/modules", "/accounts/0x1/modules"),
        ("/accounts/{address}/resource/{resource_type}", "/accounts/0x1/resource/0x1::block::BlockResource"),
        ("/accounts/{address}/resource/{resource_type}", "/accounts/0x1/resource/0x1::block::Nothing"),
        ("/accounts/{address}/module/{module_name}", "/accounts/0xcafe/module/registry"),
        ("/accounts/{address}/module/{module_name}", "/accounts/0xcafe/module/nothing"),
        ("/blocks/by_height/{block_height}", "/blocks/by_height/3?with_transactions=true"),
        ("/blocks/by_version/{version}", "/blocks/by_version/30"),
        ("/blocks/by_version/{version}", "/blocks/by_version/300000"),
        ("/transactions", "/transactions?start=0&limit=100"),
        ("/transactions", "/transactions?start=200&limit=100"),
        ("/transactions", "/transactions?limit=0"),
        ("/transactions/by_version/{txn_version}", "/transactions/by_version/0"),
        ("/transactions/by_hash/{txn_hash}", f"/transactions/by_hash/0x{'0' * 64}"),
        ("/estimate_gas_price", "/estimate_gas_price"),
    ],
)
def test_a_read_answers_as_documented(document, url, template, path):
    """The body fits the schema of its status."""
    _check(document, requests.get(url + path, timeout=20), "get", template)


@pytest.mark.parametrize(
    ("template", "path", "body"),
    [
        ("/view", "/view", {"function": "0xcafe::registry::record_of", "type_arguments": [], "arguments": ["alice"]}),
        ("/view", "/view", {"function": "0xcafe::registry::record_of", "type_arguments": [], "arguments": ["x"]}),
        ("/view", "/view", {}),
        (
            "/tables/{table_handle}/item",
            "/tables/0x5/item",
            {"key_type": "u64", "value_type": "u64", "key": "1"},
        ),
        ("/transactions/simulate", "/transactions/simulate", SIMULATION | {"sequence_number": "1"}),
        ("/transactions/simulate", "/transactions/simulate", SIMULATION | {"payload": {}}),
        (
            "/transactions/simulate",
            "/transactions/simulate?estimate_max_gas_amount=true",
            SIMULATION
            | {
                "replay_protection_nonce": "5",
                "signature": {
                    "type": "fee_payer_signature",
                    "sender": NONE,
                    "secondary_signer_addresses": [],
                    "secondary_signers": [],
                    "fee_payer_address": "0x0",
                    "fee_payer_signer": NONE,
                },
            },
        ),
    ],
)
def test_an_operation_answers_as_documented(document, url, template, path, body):
    """The body fits the schema of its status, success or not."""
    _check(document, requests.post(url + path, json=body, timeout=20), "post", template)


def test_the_schemas_notice_what_is_missing(document, url):
    """A transaction without its hash does not fit: the check above is a real one."""
    transaction = requests.get(f"{url}/transactions/by_version/5", timeout=10).json()
    del transaction["hash"]
    schema = {"$ref": "#/components/schemas/Transaction", "components": document["components"]}
    assert not draft4(schema).is_valid(transaction)
