"""Versioned state against a plain copy of every version."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from toolkit.embedded._state import StateKey, StateValue, VersionedState, resource_key, state_key_bytes, state_key_hash
from toolkit.move import parse_address

KEYS = [resource_key("0x1", "0x1::m::A"), resource_key("0x2", "0x1::m::A"), StateKey("table", f"0x{'1' * 64}", b"k")]
WRITES = st.lists(st.dictionaries(st.sampled_from(KEYS), st.none() | st.binary(max_size=3), max_size=3), max_size=30)


def _value(data: bytes | None) -> StateValue | None:
    return None if data is None else StateValue(data, 0, 0)


def _fill(history) -> tuple[VersionedState, list[dict]]:
    state, copies, current = VersionedState(), [], {}
    for version, writes in enumerate(history):
        state.write(version, {key: _value(data) for key, data in writes.items()})
        current = current | writes
        copies.append(current)
    return state, copies


@given(WRITES)
def test_every_version_reads_as_it_was(history):
    """Reading any key at any version gives what a full copy of that version holds."""
    state, copies = _fill(history)
    for version, copy in enumerate(copies):
        for key in KEYS:
            assert state.read(key, version) == _value(copy.get(key))


@given(WRITES, st.integers(0, 30))
def test_pruning_changes_nothing_that_stays_readable(history, oldest):
    """After pruning, versions from the oldest on read the same, and no value is kept needlessly."""
    state, copies = _fill(history)
    oldest = min(oldest, max(0, len(copies) - 1))
    state.prune(oldest)
    for version, copy in list(enumerate(copies))[oldest:]:
        for key in KEYS:
            assert state.read(key, version) == _value(copy.get(key))
    later = sum(len(writes) for writes in history[oldest + 1 :])
    assert len(state) <= later + len(KEYS)


@given(WRITES)
def test_keys_of_an_owner_are_those_with_a_value(history):
    """Listing an address shows exactly the keys that exist at that version, in one order."""
    state, copies = _fill(history)
    for version, copy in enumerate(copies):
        expected = [key for key in KEYS[:1] if copy.get(key) is not None]
        assert list(state.keys_of("0x1", version)) == expected


def _recorded_changes(folder):
    """Yield every recorded change that has its real hash."""
    for path in sorted(folder.glob("*.json")):
        body = json.loads(path.read_text())
        changes = body.get("changes", [body]) if isinstance(body, dict) else []
        yield from (change for change in changes if change.get("state_key_hash", "").startswith("0x"))


def _key_of(change):
    if "handle" in change:
        return StateKey("table", change["handle"], bytes.fromhex(change["key"][2:]))
    address = parse_address(change["address"])
    if change["type"] == "write_module":
        return StateKey("module", address, change["data"]["abi"]["name"])
    tag = change["resource"] if change["type"] == "delete_resource" else change["data"]["type"]
    return resource_key(address, tag)


def test_state_keys_hash_as_public_networks_print_them(shared_data):
    """Hashes equal those recorded, resource by resource and item by item (members of groups have their group's)."""
    alone = grouped = 0
    for change in _recorded_changes(shared_data / "node/recorded"):
        if state_key_hash(_key_of(change)) == change["state_key_hash"]:
            alone += 1
        else:
            group = StateKey("group", parse_address(change["address"]), "0x1::object::ObjectGroup")
            assert state_key_hash(group) == change["state_key_hash"], change
            grouped += 1
    assert (alone, grouped) == (9, 11)


def test_keys_of_different_kinds_never_collide():
    """A module, a resource and a table item of one owner have different keys."""
    owner = f"0x{'5' * 64}"
    keys = [StateKey("module", owner, "m"), resource_key(owner, "0x1::m::A"), StateKey("table", owner, b"m")]
    assert len({state_key_bytes(key) for key in keys}) == 3
