"""Typed frames of several transactions from a node in memory: types by version, failures, hostile payloads."""

from __future__ import annotations

import json
import pickle

import pandas as pd
import pytest

from tests.unit.client.fakes import URL, V2_EVENT, FakeNode, answer, ledger, module, refused, struct, user_transaction
from toolkit.client._fetch import fetch_events, fetch_resources, fetch_transactions
from toolkit.client._node import Node
from toolkit.errors import FailedReadsWarning, InputError, InvalidRequest, SchemaError
from toolkit.frames._columns import plain_columns
from toolkit.wire import EntryFunction

pytestmark = pytest.mark.filterwarnings("error")

MOVED = "0x1::m::Moved"
PURSE = "0x1::m::Purse"
PLACE = "GET /accounts/0xa11ce/resource/0x1%3A%3Am%3A%3APurse"
FIELDS = {"old": {"amount": "u64"}, "new": {"amount": "u128", "by": "address"}}
UPGRADE = 110
"""Version from which `m` declares the new fields."""


def code(query, _):
    fields = FIELDS["new" if int(query["ledger_version"]) >= UPGRADE else "old"]
    structs = [struct("Moved", fields), struct("Purse", fields)]
    return answer(module("m", structs=structs, code="0x02" if fields is FIELDS["new"] else "0x01"))


def data(version):
    new = {"amount": str(2**100), "by": "0xb0b"}
    return new if version >= UPGRADE else {"amount": str(2**64 - 1)}


def transaction(version, **more):
    event = {"guid": V2_EVENT, "sequence_number": "0", "type": MOVED, "data": data(version)}
    change = {
        "type": "write_resource",
        "address": "0xa11ce",
        "state_key_hash": "0x01",
        "data": {"type": PURSE, "data": data(version)},
    }
    return user_transaction(version, type="user_transaction", events=[event], changes=[change], **more)


def page(query, _):
    start, limit = int(query["start"]), int(query["limit"])
    return answer([transaction(version) for version in range(start, start + limit)])


def resource(query, _):
    version = int(query["ledger_version"])
    if version < 102:
        return refused(404, "resource_not_found", "nothing there", head=ledger())
    return answer({"type": PURSE, "data": data(version)})


def node_with(**routes):
    named = {"GET /transactions": page, "GET /accounts/0x1/module/m": code, PLACE: resource} | routes
    fake = FakeNode(named)
    return Node(URL, transport=fake), fake


def rows(frame: pd.DataFrame, *names: str) -> list[tuple]:
    return list(zip(*plain_columns(frame, list(names)).values(), strict=True))


BOB = "0x" + "0" * 61 + "b0b"


@pytest.mark.parametrize("read", ["events", "resources", "fetch_events", "fetch_resources"])
def test_types_are_those_of_each_version(read):
    """A field that an upgrade widens holds both; one that it adds is null before."""
    node, _ = node_with()
    frames = fetch_transactions(node, "105:115", progress=False)
    frame = {
        "events": lambda: frames.events_of(MOVED),
        "resources": lambda: frames.resources(PURSE),
        "fetch_events": lambda: fetch_events(node, MOVED, "105:115", progress=False),
        "fetch_resources": lambda: fetch_resources(node, "0xa11ce", PURSE, "105:115", progress=False),
    }[read]()
    assert str(frame["amount"].dtype) == "u128"
    assert rows(frame, "ledger_version", "amount", "by") == [
        (at, 2**100, BOB) if at >= UPGRADE else (at, 2**64 - 1, None) for at in range(105, 116)
    ]


def test_modules_are_looked_up_by_bisection():
    """A range of a thousand versions with one upgrade needs few look-ups."""
    node, fake = node_with()
    fetch_events(node, MOVED, "0:999", progress=False)
    assert len(fake.sent("GET /accounts/0x1/module/m")) < 30


def test_a_field_that_narrows_has_a_column_per_type():
    """Values that do not fit the newest type are not lost: each type has its column, and a warning says from when."""

    def narrowed(query, _):
        new = int(query["ledger_version"]) >= UPGRADE
        structs = [struct("Moved", {"amount": "u8" if new else "u64"})]
        return answer(module("m", structs=structs, code="0x02" if new else "0x01"))

    def small(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        found = []
        for version in range(start, start + limit):
            one = transaction(version)
            one["events"][0]["data"] = {"amount": 5 if version >= UPGRADE else "300"}
            found.append(one)
        return answer(found)

    node, _ = node_with(**{"GET /transactions": small, "GET /accounts/0x1/module/m": narrowed})
    text = r"0x1::m::Moved changes type .* amount\[u64\] \(first at version 108\), amount\[u8\] \(.* version 110\)"
    for read in (
        lambda: fetch_events(node, MOVED, "108:111", progress=False),
        lambda: fetch_transactions(node, "108:111", progress=False).events_of(MOVED),
    ):
        with pytest.warns(UserWarning, match=text):
            frame = read()
        assert [str(frame[name].dtype) for name in ("amount[u64]", "amount[u8]")] == [
            "uint64[pyarrow]",
            "uint8[pyarrow]",
        ]
        assert rows(frame, "amount[u64]", "amount[u8]") == [(300, None)] * 2 + [(None, 5)] * 2


BENT = [{"amount": "-1"}, {"amount": "x"}, {}, [], None, "text", {"amount": {"vec": []}}]


@pytest.mark.parametrize("bad", BENT)
def test_a_hostile_event_costs_its_own_row(bad):
    """It is named by version and index; all other events are read. Without columns for failures it is raised."""

    def bent(query, _):
        found = json.loads(page(query, None).body)
        found[2]["events"].insert(0, {**found[2]["events"][0], "type": "0x1::m::Other", "data": {}})
        found[2]["events"][1]["data"] = bad
        return answer(found)

    node, _ = node_with(**{"GET /transactions": bent})
    with pytest.warns(FailedReadsWarning, match=r"1 of 5 events.*schema_error.*event 1 of version 102"):
        frame = fetch_events(node, MOVED, "100:104", progress=False)
    assert rows(frame, "ledger_version", "event_index", "amount", "error_code") == [
        (at, 0, 2**64 - 1, None) if at != 102 else (102, 1, None, "schema_error") for at in range(100, 105)
    ]
    assert "event 1 of version 102" in frame["error_message"][2]
    with pytest.raises(SchemaError, match="event 1 of version 102"):
        fetch_transactions(node, "100:104", progress=False).events_of(MOVED)


@pytest.mark.parametrize("bad", BENT)
def test_a_hostile_resource_costs_its_own_row(bad):
    """The other versions and the other account are read; a single read raises."""

    def bent(query, _):
        return resource(query, _) if query["ledger_version"] != "104" else answer({"type": PURSE, "data": bad})

    other = PLACE.replace("0xa11ce", "0xb0b")
    node, _ = node_with(**{PLACE: bent, other: resource})
    with pytest.warns(FailedReadsWarning, match=r"1 of 6 resources.*schema_error.*\b104\b"):
        frame = fetch_resources(node, ["0xa11ce", "0xb0b"], PURSE, "103:105", progress=False)
    assert frame["error_code"].dropna().to_dict() == {1: "schema_error"}
    assert plain_columns(frame, ["amount"])["amount"] == [2**64 - 1, None, *[2**64 - 1] * 4]
    with pytest.raises(SchemaError):
        node.resource("0xa11ce", PURSE, ledger_version=104)


def test_a_hostile_module_costs_the_rows_that_need_it():
    """Rows between versions with the same module are typed; the one at which something else comes is a failure."""

    def bent(query, _):
        return answer({"abi": 5}) if query["ledger_version"] == "112" else code(query, _)

    for read, what in (
        (lambda node: fetch_events(node, MOVED, "108:112", progress=False), "events"),
        (lambda node: fetch_resources(node, "0xa11ce", PURSE, "108:112", progress=False), "resources"),
    ):
        node, _ = node_with(**{"GET /accounts/0x1/module/m": bent})
        with pytest.warns(FailedReadsWarning, match=rf"1 of 5 {what} failed \(schema_error\)"):
            frame = read(node)
        assert frame["error_code"].dropna().to_dict() == {4: "schema_error"}
        assert plain_columns(frame, ["amount"])["amount"] == [2**64 - 1] * 2 + [2**100] * 2 + [None]


def test_the_newest_type_is_that_of_the_newest_version_of_all_accounts():
    """An account whose resource ended before an upgrade does not give its old type to the others."""

    def ended(query, _):
        return (
            refused(404, "resource_not_found", head=ledger())
            if int(query["ledger_version"]) > 108
            else resource(query, _)
        )

    node, _ = node_with(**{PLACE.replace("0xa11ce", "0xb0b"): ended})
    frame = fetch_resources(node, ["0xa11ce", "0xb0b"], PURSE, [108, 112], progress=False)
    assert str(frame["amount"].dtype) == "u128"
    assert rows(frame, "amount", "error_code") == [
        (2**64 - 1, None),
        (2**100, None),
        (2**64 - 1, None),
        (None, "resource_not_found"),
    ]


def test_versions_that_cannot_be_read_are_rows():
    """A failed page and a malformed transaction are rows with an error code, in the order of versions."""

    def partly(query, _):
        if int(query["start"]) >= 300:
            return refused(400, "invalid_input", "no such page", head=ledger())
        found = [
            transaction(version) for version in range(int(query["start"]), int(query["start"]) + int(query["limit"]))
        ]
        found[1]["gas_used"] = "many"
        return answer(found)

    node, _ = node_with(**{"GET /transactions": partly})
    frame = fetch_events(node, MOVED, [150, 151, 152, 300, 301], progress=False)
    codes = [None, "schema_error", None, "invalid_input", "invalid_input"]
    assert rows(frame, "ledger_version", "error_code") == list(zip([150, 151, 152, 300, 301], codes, strict=True))
    assert frame["amount"].isna().tolist() == [code is not None for code in codes]


def test_a_malformed_change_does_not_cost_an_event():
    """Only what is asked for is read."""

    def partly(query, _):
        found = json.loads(page(query, None).body)
        found[0]["changes"][0]["address"] = "nowhere"
        return answer(found)

    node, _ = node_with(**{"GET /transactions": partly})
    assert fetch_events(node, MOVED, [150, 151], progress=False)["error_code"].isna().all()


def test_a_missing_resource_is_a_row():
    """With the node's error code; the others are typed."""
    node, fake = node_with()
    frame = fetch_resources(node, "0xa11ce", PURSE, "100:103", progress=False)
    assert rows(frame, "ledger_version", "amount", "status", "error_code") == [
        (100, None, 404, "resource_not_found"),
        (101, None, 404, "resource_not_found"),
        (102, 2**64 - 1, None, None),
        (103, 2**64 - 1, None, None),
    ]
    assert len(fake.sent(PLACE)) == 4


def test_an_event_type_that_is_misspelt_is_suggested():
    """By the events that there are."""
    node, _ = node_with(**{"GET /accounts/0x1/module/m": refused(403, "forbidden", "no modules")})
    with pytest.warns(UserWarning, match="0x1::m::Mooved.*0x1::m::Moved"):
        assert len(fetch_events(node, "0x1::m::Mooved", "100:101", progress=False)) == 0


def test_a_node_without_modules_is_read_without_a_check():
    """No type is known there, so the node itself says which resources exist."""
    gone = refused(404, "resource_not_found", "nothing there", head=ledger())
    without = {"GET /accounts/0x1/module/m": refused(403, "forbidden", "no modules")}
    node, fake = node_with(**without, **{PLACE.replace("Purse", "Purze"): gone})
    with pytest.warns(FailedReadsWarning, match=r"\b2 reads of resources"):
        frame = fetch_resources(node, "0xa11ce", "0x1::m::Purze", "103:104", progress=False)
    assert frame["error_code"].tolist() == ["resource_not_found"] * 2
    assert len(fake.sent("GET /accounts/0x1/module/m")) == 1


@pytest.mark.parametrize("tag", ["u64", "vector<u8>", "nonsense", "", 5])
def test_a_type_that_is_no_struct_is_refused_before_anything_is_sent(tag):
    """A resource is a struct. An event may have any type, but text that is not a type is refused."""
    node, fake = node_with()
    with pytest.raises(InputError):
        fetch_resources(node, "0x1", tag, "0:10", progress=False)
    if tag not in PLAIN:
        with pytest.raises(InputError):
            fetch_events(node, tag, "0:10", progress=False)
    assert fake.asked == []


def test_the_state_before_follows_from_the_range_or_is_read():
    """Only the state before the first write of an unbroken range is read; a failed read is a row."""
    node, fake = node_with()
    frame = fetch_transactions(node, [100, 101, 103, 104], progress=False).diff()
    asked = sorted(int(query["ledger_version"]) for query, _ in fake.sent(PLACE))
    assert asked == [99, 102]
    old = json.dumps(data(0), separators=(",", ":"))
    assert rows(frame, "ledger_version", "before", "after") == [
        (100, None, old),
        (101, old, old),
        (103, old, old),
        (104, old, old),
    ]
    broken, _ = node_with(**{PLACE: refused(410, "version_pruned", "gone", head=ledger())})
    frame = fetch_transactions(broken, [103, 104], progress=False).diff()
    assert rows(frame, "ledger_version", "before", "error_code") == [(103, None, "version_pruned"), (104, old, None)]


def test_a_member_that_a_later_write_of_its_group_leaves_out_is_read():
    """A resource that its group no longer lists was deleted: its last write is not the state before."""

    def grouped(query, _):
        found = json.loads(page(query, None).body)
        other = {"type": "write_resource", "address": "0xa11ce", "state_key_hash": "0x01"}
        for one in found:
            if one["version"] == "104":
                one["changes"] = [other | {"data": {"type": "0x1::m::Other", "data": {}}}]
        return answer(found)

    gone = refused(404, "resource_not_found", "nothing there", head=ledger())
    there = {PLACE: lambda query, _: gone if query["ledger_version"] == "104" else resource(query, _)}
    other = {PLACE.replace("Purse", "Other"): gone}
    node, _ = node_with(**{"GET /transactions": grouped}, **there, **other)
    frame = fetch_transactions(node, "103:105", progress=False).diff()
    found = {
        (row.ledger_version, row.resource_type[-5:]): (pd.isna(row.before), pd.isna(row.after))
        for row in frame.itertuples()
        if row.ledger_version > 103
    }
    ended, begun = (False, True), (True, False)
    assert found == {(104, "Purse"): ended, (104, "Other"): begun, (105, "Purse"): begun, (105, "Other"): ended}


def test_frames_survive_a_pickle():
    """The frames are data; reading on needs a node that can be connected to again."""
    node, _ = node_with()
    frames = fetch_transactions(node, "100:101", progress=False)
    events = frames.events_of(MOVED)
    copy = pickle.loads(pickle.dumps(frames))  # noqa: S301 - our own bytes
    pd.testing.assert_frame_equal(copy.events_of(MOVED), events)
    pd.testing.assert_frame_equal(copy.balance_changes, frames.balance_changes)
    with pytest.raises(InputError, match="this TransactionFrames was unpickled"):
        copy.diff()


PLAIN = {
    "u64": ("5", 5),
    "u128": (str(2**100), 2**100),
    "bool": (False, False),
    "address": ("0xb0b", f"0x{0xB0B:064x}"),
    "vector<u64>": (["1", "2"], [1, 2]),
    "vector<u8>": ("0x0102", b"\x01\x02"),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_events_of_any_type_are_read(kind):
    """An event may be a number, a bool, an address, bytes, text or a list: one column, as its type says."""
    given, expected = PLAIN[kind]
    event = {"guid": V2_EVENT, "sequence_number": "3", "type": kind, "data": given}
    found = [user_transaction(version, type="user_transaction", events=[event]) for version in (100, 101)]
    node, _ = node_with(**{"GET /transactions": answer(found)})
    frame = fetch_events(node, kind, "100:101", progress=False)
    assert rows(frame, "ledger_version", "error_code") == [(100, None), (101, None)]
    assert list(map(_plain, frame["data"])) == [expected] * 2
    typed = fetch_transactions(node, "100:101", progress=False).events_of(kind)
    assert list(map(_plain, typed["data"])) == [expected] * 2


def _plain(value):
    return list(value) if hasattr(value, "__len__") and not isinstance(value, bytes | str) else value


@pytest.mark.parametrize("kind", ["signer", "&u64", "T0"])
def test_types_that_no_event_has_are_refused(kind):
    """A signer cannot be stored, and neither can a reference."""
    node, _ = node_with()
    with pytest.raises(InputError):
        fetch_events(node, kind, "100:101", progress=False)


@pytest.mark.parametrize("modules", [refused(403, "api_disabled"), refused(404, "web_framework_error")])
def test_an_argument_refused_without_types_says_what_to_pass(modules):
    """A node with the three operations only: text for wide integers, or the ABI."""
    refusal = refused(400, "invalid_input", "parse arguments[0] failed", head=ledger())
    routes = {"POST /view": refusal, "POST /transactions/simulate": refusal, "GET /accounts/0x1/module/m": modules}
    routes["GET /accounts/0xa11ce"] = answer({"sequence_number": "7", "authentication_key": "0x" + "0" * 64})
    node, _ = node_with(**routes)
    for call in (
        lambda: node.view("0x1::m::f", [5]),
        lambda: node.simulate(EntryFunction("0x1::m::f", [5]), sender="0xa11ce"),
    ):
        with pytest.raises(InvalidRequest, match=r"\bu64\b.*abis="):
            call()
    with pytest.raises(InvalidRequest) as without:
        node.view("0x1::m::f")
    assert "abis=" not in str(without.value)
