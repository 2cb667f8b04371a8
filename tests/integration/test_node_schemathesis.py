"""Schemathesis against the embedded node: requests made from the real node's OpenAPI document, well-formed and not."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolkit import embedded
from toolkit.embedded.http._reads import GETS

_RUN_S = 10
_TIMEOUT_S = 55
_POSTS = {"/tables/{table_handle}/item", "/tables/{table_handle}/raw_item", "/view", "/transactions/simulate"}
_POSTS |= {"/transactions", "/transactions/batch"}
# Left out is `positive_data_acceptance`: nearly every well-formed address, version or function names nothing there.
_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "unsupported_method",
)


def _corrected(document: dict[str, Any]) -> dict[str, Any]:
    """Return what the node serves of the document, put right where the recorded wire differs from it."""
    whole = copy.deepcopy(document)
    paths: dict[str, Any] = {}
    for path, operations in whole["paths"].items():
        kept = {verb: operations[verb] for verb in operations if path in (GETS if verb == "get" else _POSTS)}
        if kept:
            paths[path] = kept
    for operations in paths.values():
        for verb, operation in operations.items():
            if verb == "post":  # errors of the web framework, which the document does not list
                operation["responses"] |= dict.fromkeys(("411", "413", "415"), operation["responses"]["400"])
    whole["paths"] = paths
    if "/-/healthy" in paths:  # with a maximum age a healthy node with an old head answers 503, as documented
        del paths["/-/healthy"]["get"]["parameters"]
    schemas = whole["components"]["schemas"]
    # In an ABI types are also references and parameters (wire facts, 5.3); the pattern knows neither.
    schemas["MoveType"]["pattern"] = schemas["MoveType"]["pattern"].replace("^(", "^(&.+|T[0-9]+|")
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            if name not in schema.get("required", []):  # sent as null where it is absent
                schema["properties"][name] = {"nullable": True, "allOf": [field]}
    return whole


def test_schemathesis_finds_nothing(shared_data, tmp_path, capsys):
    """All requests of ten seconds, valid and broken: no 5xx, only documented answers, no malformed request accepted."""
    if importlib.util.find_spec("schemathesis") is None:
        pytest.skip("schemathesis is not installed")
    file = shared_data / "node/openapi.json"
    if not file.is_file():
        pytest.skip(f"the node's OpenAPI document {file.name} is not there")
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(_corrected(json.loads(file.read_text()))))
    command = [str(Path(sys.executable).with_name("st")), "run", str(document), "--checks", ",".join(_CHECKS)]
    command += ["--phases", "examples,coverage,fuzzing", "--max-examples", "1", "--seed", "7", "--no-color"]
    command += ["--max-time", str(_RUN_S), "--generation-database", "none"]
    with embedded.serve(embedded.Ledger.with_history(versions=400, cache=True)) as url:
        done = subprocess.run(
            [*command, "--url", url], cwd=tmp_path, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    summary = done.stdout[done.stdout.rfind("= SUMMARY =") :]
    if os.environ.get("LEDGER_TOOLKIT_TRANSCRIPT"):
        with capsys.disabled():
            print(f"\n{summary}")
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert "Test cases:" in summary, done.stdout[-2_000:]
