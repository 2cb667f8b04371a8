"""Events of handles over HTTP: the two endpoints that find them, and the client's typed frames."""

from __future__ import annotations

import pytest
import requests

import toolkit
from tests.unit.embedded.test_event_handles import BELL, Bell
from toolkit import embedded
from toolkit.move import parse_address
from toolkit.move._bcs import Reader

HANDLE = f"{BELL}::bell::Rings/second"


@pytest.fixture(scope="module")
def url():
    ledger = embedded.Ledger()
    ledger.publish(Bell)
    for times in (1, 29):
        ledger.commit(f"{BELL}::bell::ring", times, sender="0xb0b")
    with embedded.serve(ledger) as address:
        yield address


@pytest.fixture(scope="module")
def get(url):
    with requests.Session() as session:
        yield lambda place, **options: session.get(f"{url}/accounts/{BELL}/events/{place}", timeout=10, **options)


def _numbers(answer):
    return [int(event["sequence_number"]) for event in answer.json()]


@pytest.mark.parametrize("place", [HANDLE, "3"])
def test_events_are_found_by_handle_and_by_number(get, place):
    """Each has version, guid, sequence number, type and data, as on the recorded node."""
    assert get(place, params={"limit": 1, "start": 0}).json() == [
        {
            "version": "8",
            "guid": {"creation_number": "3", "account_address": BELL},
            "sequence_number": "0",
            "type": f"{BELL}::bell::Ring",
            "data": {"n": "0"},
        }
    ]


def test_pages_begin_at_start_and_else_end_at_the_latest_event(get):
    """25 events by default, oldest first; without a start the latest ones."""
    assert _numbers(get("3")) == list(range(5, 30))
    assert _numbers(get("3", params={"limit": 2})) == [28, 29]
    assert _numbers(get("3", params={"start": 27, "limit": 200})) == [27, 28, 29]
    assert _numbers(get("3", params={"start": 30})) == []
    assert _numbers(get("2")) == _numbers(get("77")) == []


def test_events_in_bcs_are_events_with_versions(get):
    """A vector of version and event; variant 0 is an event of a handle."""
    reader = Reader(get(HANDLE, params={"limit": 1}, headers={"accept": "application/x-bcs"}).content)
    assert [reader.uleb128(), reader.u64(), reader.uleb128(), reader.u64()] == [1, 11, 0, 3]
    assert (reader.address(), reader.u64()) == (parse_address(BELL), 29)


@pytest.mark.parametrize(
    ("place", "status", "code", "text"),
    [
        (f"{BELL}::bell::Rings/none", 404, "struct_field_not_found", "Struct Field not found by Address(0xbe11), "),
        (f"{BELL}::bell::None/first", 404, "resource_not_found", "Resource not found by Address(0xbe11), "),
        (
            "0x1::account::Account/sequence_number",
            400,
            "invalid_input",
            "Deserialization error, field(sequence_number)",
        ),
        ("u64/first", 400, "web_framework_error", "failed to parse path `event_handle`"),
        ("-1", 400, "web_framework_error", "failed to parse path `creation_number`"),
        ("3?limit=0", 400, "invalid_input", "Given limit value (0) must not be zero"),
        ("3?start=x", 400, "web_framework_error", "failed to parse parameter `start`"),
    ],
)
def test_wrong_requests_are_answered_as_on_a_node(get, place, status, code, text):
    """Status, error code and text."""
    answer = get(place)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert answer.json()["message"].startswith(text)


@pytest.mark.parametrize("encoding", ["json", "bcs"])
def test_frames_of_simulations_and_transactions_have_key_and_number(url, encoding):
    """The typed frames are the same from JSON and from BCS."""
    call = toolkit.EntryFunction(f"{BELL}::bell::ring", arguments=[2])
    with toolkit.connect(url, encoding=encoding) as node:
        events = node.simulate(call, sender="0xb0b").events
        committed = toolkit.fetch_transactions(node, versions="8:8", progress=False).events
    rings = events[events["type"].str.endswith("::Ring")]
    assert rings[["creation_number", "sequence_number"]].values.tolist() == [[3, 30], [3, 31]]
    assert set(rings["account_address"]) == {"0x" + "be11".rjust(64, "0")}
    assert committed[["creation_number", "sequence_number"]].values.tolist() == [[3, 0], [0, 0]]
