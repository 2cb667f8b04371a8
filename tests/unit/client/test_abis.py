"""The ABI store: few look-ups, right at every version."""

from __future__ import annotations

import json
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.fakes import URL, FakeNode, function, module, refused, struct
from toolkit.client._abis import AbiStore, CachedByModules
from toolkit.client._node import Node
from toolkit.client._node_errors import refusal
from toolkit.errors import SchemaError, VersionPruned
from toolkit.move import StructOf, UInt, Untyped, decode_module_abi, parse_type_tag


class Chain:
    """Modules by the versions they were published at; every fetch is recorded."""

    def __init__(self, **history):
        self.history = {name: sorted(states.items()) for name, states in history.items()}
        self.fetched = []

    def fetch(self, address, name, version):
        self.fetched.append((name, version))
        current = None
        for since, state in self.history.get(name, ()):
            if since <= version:
                current = state
        return None if current is None else json.dumps(current).encode()


def coin(*names, code="0x01", fields=None):
    return module(
        "coin", functions=[function(name) for name in names], structs=[struct("S", fields or {"a": "u64"})], code=code
    )


def names_at(store, version, name="coin"):
    abi = store.at(version).module_abi("0x1", name)
    return None if abi is None else [one.name for one in abi.exposed_functions]


def test_a_sweep_over_two_upgrades_asks_a_few_dozen_times():
    """1,000 versions with two upgrades: bisection finds both, and no read of the sweep asks again."""
    chain = Chain(coin={0: coin("one"), 333: coin("two", code="0x02"), 700: coin("three", code="0x03")})
    store = AbiStore(chain.fetch)
    store.prepare("0x1", "coin", range(1_000))
    prepared = len(chain.fetched)
    found = {version: names_at(store, version) for version in range(1_000)}
    assert found == {v: ["one"] if v < 333 else ["two"] if v < 700 else ["three"] for v in range(1_000)}
    assert len(chain.fetched) == prepared <= 2 + 2 * ceil(log2(1_000))


def test_a_module_that_never_changes_costs_two_fetches():
    """Equal ends stand for all between."""
    chain = Chain(coin={0: coin("one")})
    store = AbiStore(chain.fetch)
    store.prepare("0x1", "coin", range(0, 1_000_000, 7))
    assert all(names_at(store, version) == ["one"] for version in range(0, 999_999, 99_991))
    assert len(chain.fetched) == 2


def test_a_sweep_of_any_length_is_prepared_at_once():
    """The bisection looks at what differs only: a billion versions take as long as a hundred."""
    chain = Chain(coin={0: coin("one"), 777_777_777: coin("two", code="0x02")})
    store = AbiStore(chain.fetch)
    store.prepare("0x1", "coin", range(10**9))
    assert len(chain.fetched) <= 2 + ceil(log2(10**9))
    assert (names_at(store, 777_777_776), names_at(store, 777_777_777)) == (["one"], ["two"])


@given(upgrades=st.sets(st.integers(1, 999), max_size=6), order=st.permutations(range(0, 1_000, 37)))
def test_every_version_gets_its_own_module(upgrades, order):
    """Wherever the upgrades are and in any order of reads, each version gets its module."""
    states = {0: coin("v0", code="0x00")} | {v: coin(f"v{v}", code=f"{v:#06x}") for v in upgrades}
    chain = Chain(coin=states)
    store = AbiStore(chain.fetch)
    for version in order:
        current = max(since for since in states if since <= version)
        assert names_at(store, version) == [f"v{current}"]


def test_a_module_is_absent_before_it_is_published():
    """Absence is known like a state of its own, and bisected the same way."""
    chain = Chain(coin={500: coin("one")})
    store = AbiStore(chain.fetch)
    store.prepare("0x1", "coin", range(1_000))
    prepared = len(chain.fetched)
    assert names_at(store, 499) is None
    assert names_at(store, 500) == ["one"]
    assert names_at(store, 0) is None
    assert len(chain.fetched) == prepared <= 2 + ceil(log2(1_000))


def test_a_module_with_the_same_abi_but_other_code_is_another_state():
    """The digest is over the bytecode too: same functions, other code, is seen as an upgrade."""
    chain = Chain(coin={0: coin("one", code="0x01"), 10: coin("one", code="0x02")})
    store = AbiStore(chain.fetch)
    assert store.at(9).lookup("0x1", "coin").digest != store.at(10).lookup("0x1", "coin").digest
    assert names_at(store, 9) == names_at(store, 10)


def test_a_version_outside_of_what_is_known_is_asked_for():
    """Nothing is taken for granted beyond the last look-up."""
    chain = Chain(coin={0: coin("one"), 101: coin("two", code="0x02")})
    store = AbiStore(chain.fetch)
    store.prepare("0x1", "coin", range(101))
    assert names_at(store, 101) == ["two"]


def test_an_override_needs_no_node():
    """An ABI the caller gives holds at every version."""
    chain = Chain()
    store = AbiStore(chain.fetch, overrides={("0x1", "coin"): decode_module_abi(coin("mine"))})
    store.prepare("0x1", "coin", range(100))
    assert names_at(store, 0) == names_at(store, 10**9) == ["mine"]
    assert chain.fetched == []


def test_a_module_without_a_readable_abi_is_there_without_one():
    """A node that cannot parse its own bytecode answers a null ABI: no ABI, but a digest."""
    chain = Chain(coin={0: {"bytecode": "0x01", "abi": None}})
    known = AbiStore(chain.fetch).at(5).lookup("0x1", "coin")
    assert known.abi is None
    assert known.digest is not None


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"abi": 5}', b'{"abi": {"name": "x"}}', b"\xff"])
def test_an_answer_that_is_no_module_is_a_schema_error(body):
    """A failed lookup is an error, not an absent module."""
    with pytest.raises(SchemaError):
        AbiStore(lambda *_: body).at(5).lookup("0x1", "coin")


def test_preparing_leaves_refusals_to_the_reads():
    """A pruned end does not stop the sweep before it began; the read itself reports it."""

    def fetch(address, name, version):
        raise refusal("module", refused(410, "version_pruned"))

    store = AbiStore(fetch)
    store.prepare("0x1", "coin", range(10))
    with pytest.raises(VersionPruned):
        names_at(store, 3)


def test_layouts_follow_an_upgrade():
    """A struct that gained a field is resolved again; before the upgrade, the old layout applies."""
    old, new = coin(fields={"a": "u64"}), coin(fields={"a": "u64", "b": "u8"}, code="0x02")
    store = AbiStore(Chain(coin={0: old, 50: new}).fetch)
    tag = parse_type_tag("0x1::coin::S")
    assert store.at(10).layout(tag) == StructOf(tag, (("a", UInt(64)),))
    assert store.at(60).layout(tag) == StructOf(tag, (("a", UInt(64)), ("b", UInt(8))))
    assert store.at(20).layout(tag) == StructOf(tag, (("a", UInt(64)),))


def test_layouts_follow_an_upgrade_of_a_nested_module():
    """A change of a struct two modules away is seen as well."""
    outer = module("outer", structs=[struct("Outer", {"inner": "0x1::inner::Inner"})])
    old, new = (
        module("inner", structs=[struct("Inner", {"x": "u8"})]),
        module("inner", structs=[struct("Inner", {"x": "u16"})], code="0x02"),
    )
    store = AbiStore(Chain(outer={0: outer}, inner={0: old, 50: new}).fetch)
    tag, inner = parse_type_tag("0x1::outer::Outer"), parse_type_tag("0x1::inner::Inner")
    assert store.at(49).layout(tag) == StructOf(tag, (("inner", StructOf(inner, (("x", UInt(8)),))),))
    assert store.at(50).layout(tag) == StructOf(tag, (("inner", StructOf(inner, (("x", UInt(16)),))),))


def test_equal_modules_share_one_layout():
    """A sweep resolves a type once per state of its modules, not once per version."""
    store = AbiStore(Chain(coin={0: coin("one")}).fetch)
    tag = parse_type_tag("0x1::coin::S")
    store.prepare("0x1", "coin", range(100))
    assert len({id(store.at(version).layout(tag)) for version in range(100)}) == 1


def test_what_is_made_from_modules_is_made_once_per_state_of_them():
    """Over 100 versions with an upgrade of a module that was asked for it is made twice; of another one, never."""
    chain = Chain(coin={0: coin("one"), 50: coin("two", code="0x02")}, other={0: coin("x"), 30: coin("y", code="0x03")})
    store = AbiStore(chain.fetch)
    made = CachedByModules(store, lambda abis: [one.name for one in abis.module_abi("0x1", "coin").exposed_functions])
    store.prepare("0x1", "coin", range(100))
    found = [made.at(version)[1] for version in range(100)]
    assert found == [["one"]] * 50 + [["two"]] * 50
    assert len({id(one) for one in found}) == 2
    assert made.at(10)[1] is found[0]
    assert {name for name, _ in chain.fetched} == {"coin"}


def test_what_is_made_from_a_layout_follows_the_modules_of_the_layout():
    """A struct two modules away counts as asked for."""
    outer = module("outer", structs=[struct("Outer", {"inner": "0x1::inner::Inner"})])
    old, new = (
        module("inner", structs=[struct("Inner", {"x": kind})], code=code)
        for kind, code in (("u8", "0x01"), ("u16", "0x02"))
    )
    store = AbiStore(Chain(outer={0: outer}, inner={0: old, 50: new}).fetch)
    tag = parse_type_tag("0x1::outer::Outer")
    made = CachedByModules(store, lambda abis: str(abis.layout(tag)))
    store.at(0).layout(tag)  # the layout may be known already
    assert "UInt(bits=8)" in made.at(49)[1]
    assert "UInt(bits=16)" in made.at(50)[1]


def test_what_cannot_be_made_is_tried_again():
    """An error is not remembered."""
    store = AbiStore(Chain().fetch)
    made = CachedByModules(store, lambda abis: 1 // abis.version)
    with pytest.raises(ZeroDivisionError):
        made.at(0)[1]
    assert made.at(1)[1] == 1


def test_a_type_without_a_module_is_untyped():
    """Absence gives a layout that says so, and is remembered as absence: the published module is found later."""
    store = AbiStore(Chain(coin={50: coin("one")}).fetch)
    tag = parse_type_tag("0x1::coin::S")
    assert isinstance(store.at(10).layout(tag), Untyped)
    assert isinstance(store.at(60).layout(tag), StructOf)


def test_a_module_is_the_same_however_its_address_is_written():
    """Any spelling of an address finds the override and what is known."""
    abi = decode_module_abi(module("m"))
    node = Node(URL, transport=FakeNode(), abis={("0x01", "m"): abi})
    assert node.module("0x1", "m", ledger_version=5) == abi
    assert node.module("0x0001", "m", ledger_version=5) == abi
