"""What the forms that read state let people copy, run as they would run it in a shell; and reads that are cancelled."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time

import pytest
from ipywidgets import Widget

import toolkit
from tests.faults import faulty
from toolkit import embedded
from toolkit.widgets import SimulationBuilder, TableItemBuilder, ViewBuilder
from toolkit.widgets._messages import NoProgram

SIZE = "0xcafe::registry::size"


@pytest.fixture(scope="module")
def node():
    """Return the embedded node."""
    with toolkit.connect() as made:
        yield made


def answers(program):
    """Run shell commands and return the JSON documents that they print."""
    if shutil.which("curl") is None:
        pytest.skip("no curl on PATH")
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    decoder, text, found = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].lstrip()
    return found


@pytest.mark.parametrize("versions", [None, 4_000, -3])
def test_the_curl_commands_of_a_view_read_the_same(node, versions):
    """At the same version, which they work out from the head themselves."""
    builder = ViewBuilder(node, function=SIZE)
    builder.versions = versions
    builder.read()
    assert answers(dict(builder._programs)["curl"]) == [[str(builder.result.value)]]
    builder.close()


def test_the_curl_commands_of_an_item_read_the_same(node):
    """With a key that has quotes, and a struct as value."""
    builder = TableItemBuilder(node, owner="0xcafe")
    builder.key, builder.versions = "alice", 4_500
    builder.read()
    [found] = answers(dict(builder._programs)["curl"])
    assert int(found["registered_at"]) == builder.result.value["registered_at"]
    builder.key, builder.versions = "it's", None
    assert answers(dict(builder._programs)["curl"])[0]["error_code"] == "table_item_not_found"
    builder.close()


@pytest.mark.parametrize("versions", ["2026-05-01..2026-06-01/3", "4000:-1/4", [300, 4_500]])
def test_many_versions_are_not_for_curl(node, versions):
    """There is a reason in its place, which says what to use instead."""
    builder = ViewBuilder(node, function=SIZE)
    builder.versions = versions
    assert isinstance(dict(builder._programs)["curl"], NoProgram)
    builder.close()


@pytest.mark.parametrize("kind", ["view", "item", "keys"])
def test_a_read_is_cancelled(kind):
    """Cancel ends a read of many versions at once, the result before stays, and no thread outlives the form."""

    def threads():
        return [thread for thread in threading.enumerate() if thread.name == "toolkit-form"]

    ledger = embedded.Ledger.with_history(seed=7, versions=300, cache=True)
    with embedded.serve(ledger) as url, faulty(url) as faults, toolkit.connect(faults.node_url) as node:
        if kind == "view":
            builder = ViewBuilder(node, function=SIZE)
        else:
            builder = TableItemBuilder(node, owner="0xcafe")
            builder.key, builder.key_range = "alice", "0:-1"
        builder.read()
        first = builder.result
        faults.latency_s = 0.5
        builder.versions = "0:-1"
        what = "keys" if kind == "keys" else "read"
        builder._handle_msg({"content": {"data": {"method": "custom", "content": {"do": what}}}, "buffers": []})
        end = time.monotonic() + 60
        while not builder.busy and time.monotonic() < end:
            time.sleep(0.005)
        assert builder.busy
        builder.cancel()
        assert not builder.busy
        assert builder._status.text == "Cancelled."
        builder._wait()
        assert builder.result is first
        assert builder._stale
        builder.close()
    assert threads() == []


def test_forms_opened_and_closed_leave_nothing(node):
    """No widget model and no thread stays behind, whatever was read."""
    before = set(Widget.get_manager_state()["state"])
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    request = toolkit.SimulationRequest(call, sender="0xa11ce")
    for _ in range(10):
        SimulationBuilder(node, request=request).close()
        for builder in (ViewBuilder(node, function=SIZE), TableItemBuilder(node, owner="0xcafe")):
            builder.read()
            builder.close()
    assert set(Widget.get_manager_state()["state"]) == before
    assert not [thread for thread in threading.enumerate() if thread.name == "toolkit-form"]
