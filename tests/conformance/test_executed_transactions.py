"""Executed transactions and resources in BCS, as a real node answered them: read, written again to the same bytes."""

from __future__ import annotations

import gzip
import json

import pytest

from toolkit.errors import InputError
from toolkit.fork._replay import COMMITTED, read_committed
from toolkit.move._bcs import Reader
from toolkit.vm._state import Group
from toolkit.wire._bcs_forms import encoded, whole

FILES = ("oracle/simulations", "batches/batches", "batches/more", "batches/endpoints")
ON_CHAIN = b"\0"  # what a single committed transaction starts with, but neither a simulation nor an item of a list


@pytest.fixture(scope="module")
def exchanges(shared_data):
    """Return (path, answer in bytes) of the recorded answers in BCS, and JSON answers by path."""
    in_bcs, in_json = [], {}
    for name in FILES:
        with gzip.open(shared_data / f"{name}.jsonl.gz", "rt") as lines:
            for one in map(json.loads, lines):
                answer = one["answer"] or {}
                if one["status"] == 200 and "hex" in answer:
                    in_bcs.append((one["path"], bytes.fromhex(answer["hex"])))
                elif one["status"] == 200 and one["path"].startswith("/v1/transactions/by_version/"):
                    in_json[name, one["path"]] = json.loads(answer["text"])
    return in_bcs, in_json


def test_simulations_and_lists_are_written_to_the_same_bytes(exchanges):
    count = 0
    for path, data in exchanges[0]:
        if path.startswith("/v1/transactions/simulate"):
            found = whole(COMMITTED, ON_CHAIN + data)
            assert encoded(COMMITTED, found) == ON_CHAIN + data
            count += 1
        elif path.startswith("/v1/accounts/") and path.partition("?")[0].endswith("/transactions"):
            reader = Reader(data)
            for _ in range(reader.length()):
                start = reader.position
                inner = Reader(ON_CHAIN + data[start:])
                found = COMMITTED.read(inner)
                size = inner.position - len(ON_CHAIN)
                assert encoded(COMMITTED, found) == ON_CHAIN + reader.fixed(size)
                count += 1
            reader.end()
    assert count >= 60


def test_committed_transactions_say_what_the_json_says(exchanges):
    """Outcome, gas, events and writes; what is not a user transaction is refused."""
    in_bcs, in_json = exchanges
    by_path = {path: answer for (_, path), answer in in_json.items()}
    refused = compared = 0
    for path, data in in_bcs:
        if not path.startswith("/v1/transactions/by_version/"):
            continue
        version = int(path.rpartition("/")[2])
        try:
            found = read_committed(data)
        except InputError:
            refused += 1
            continue
        assert found.version == version
        assert encoded(COMMITTED, found) == data
        if (told := by_path.get(path)) is not None and told["hash"] == f"0x{found.transaction_hash.hex()}":
            assert (str(found.gas_used), found.status.success) == (told["gas_used"], told["success"])
            assert [one.type for one in found.events] == [one["type"] for one in told["events"]]
            compared += 1
    assert refused >= 3
    assert compared >= 1


def test_resources_of_an_account_have_the_form_of_a_group(exchanges):
    """A resource group is put together from them where a node does not serve raw state values."""
    count = 0
    for path, data in exchanges[0]:
        if path.partition("?")[0].endswith("/resources") and data != b"\0":
            assert Group(data).encoded() == data
            count += 1
    assert count >= 8
