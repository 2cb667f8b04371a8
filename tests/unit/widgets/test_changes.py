"""State changes and events as trees: what differs, in the unit of its asset; what is equal is folded."""

from __future__ import annotations

import re
from html import unescape

import pytest

import toolkit
from toolkit.client._accounts import Asset
from toolkit.widgets._changes import (
    GAS_COIN,
    Known,
    changes_page,
    events_page,
    read_known,
    time_words,
    with_layouts,
)

GOLD = f"0x{'6f' * 32}"
KNOWN = Known({one: Asset(one, "coin", "Aptos Coin", "APT", 8) for one in GAS_COIN})
STORE = f"0x{'5e' * 32}"
HANDLE = f"0x{'5c' * 32}"


def run(jobs):
    for job in jobs:
        job()


def words(page):
    """Return the text of a page, folded parts in brackets."""
    page = re.sub(r"<details class=.ltk-fold[^>]*><summary>", "[", page)
    return unescape(re.sub(r"<[^>]*>", " ", page.replace("</details>", "]").replace("<wbr>", ""))).split()


def text(page):
    return " ".join(words(page))


def write(kind, data, address="0xa"):
    return {
        "address": address,
        "state_key_hash": "0x02",
        "data": {"type": kind, "data": data},
        "type": "write_resource",
    }


def compared(simulation, changes, before, known=None):
    """Return the page of changes whose state before is given, as JSON or BCS."""
    outcome = simulation(changes=changes)
    diff = outcome.changes.assign(before=before)
    return changes_page(outcome, known or KNOWN, diff, links=False)


def test_equal_fields_are_folded_and_numbers_have_their_difference(simulation):
    """Different fields are open, equal fields are in one fold; text of digits is a number only if its type says so."""
    page = compared(
        simulation, [write("0x1::m::R", {"n": 112, "s": "2025", "kept": "1"})], ['{"n":100,"s":"2024","kept":"1"}']
    )
    assert "n 100 \u2192 112 (+12)" in text(page)
    assert "s 2024 \u2192 2025 [1 equal field kept 1 ]" in text(page)


def test_a_single_field_that_differs_has_its_path(simulation):
    """Structs with one difference have no line of their own; others have one."""
    before = '{"supply":{"aggregator":{"vec":[]},"integer":{"vec":[{"limit":"9","value":3}]}}}'
    after = {"supply": {"aggregator": {"vec": []}, "integer": {"vec": [{"limit": "9", "value": 4}]}}}
    assert "supply.integer.value 3 \u2192 4 (+1)" in text(compared(simulation, [write("0x1::m::R", after)], [before]))


@pytest.mark.parametrize(
    ("kind", "before", "after", "difference"),
    [
        (
            "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>",
            '{"coin":{"value":"5"}}',
            {"coin": {"value": "3005"}},
            "+0.00003 APT",
        ),
        (
            "0x1::fungible_asset::FungibleStore",
            '{"metadata":{"inner":"0xa"},"balance":"3000"}',
            {"metadata": {"inner": "0xa"}, "balance": "0"},
            "−0.00003 APT",
        ),
        (
            "0x1::fungible_asset::FungibleStore",
            f'{{"metadata":{{"inner":"{GOLD}"}},"balance":"0"}}',
            {"metadata": {"inner": GOLD}, "balance": "1234567"},
            "+1,234.567 GOLD",
        ),
        (
            "0x1::fungible_asset::FungibleStore",
            '{"metadata":{"inner":"0xb"},"balance":"0"}',
            {"metadata": {"inner": "0xb"}, "balance": "7"},
            "+7 base units of 0xb",
        ),
    ],
)
def test_amounts_are_in_the_unit_of_their_asset(simulation, kind, before, after, difference):
    """A balance and its difference name the asset; without decimals they are base units of it, never a bare number."""
    known = Known(KNOWN.assets | {GOLD: Asset(GOLD, "fungible asset", "Gold", "GOLD", 3)})
    page = compared(simulation, [write(kind, after)], [before], known)
    assert f"( {difference} )" in text(page)
    assert f"{difference} " in text(page)[: text(page).index("\u2192")]  # beside the name of the resource


def test_an_asset_that_calls_itself_apt_is_not_shown_as_apt():
    """Anybody may choose the symbol of another asset: only APT itself is named so."""
    known = Known(KNOWN.assets | {GOLD: Asset(GOLD, "fungible asset", "Aptos Coin", "APT", 8)})
    assert known.words(5, GOLD) == "5 base units of 0x6f6f6f\N{HORIZONTAL ELLIPSIS}6f6f"
    assert known.words(10**8, "0xa") == "1 APT"


def test_created_deleted_and_equal_state_says_so(simulation):
    """Each state item has a mark; those that are written as they were come last, and are closed."""
    changes = [
        write("0x1::m::Same", {"a": "1"}),
        write("0x1::m::New", {"a": "1"}),
        {"address": "0xa", "state_key_hash": "0x03", "resource": "0x1::m::Gone", "type": "delete_resource"},
    ]
    page = compared(simulation, changes, ['{"a":"1"}', None, '{"a":"9"}'])
    kinds = re.findall(r'data-kind="([^"]*)"( open)?', page)
    assert kinds == [("created", " open"), ("deleted", " open"), ("written, unchanged", "")]
    assert "deleted 0xa 0x1::m::Gone a 9" in text(page)


def test_items_of_unknown_types_are_not_compared(simulation):
    """The bytes before are shown as bytes; a decoded key is a value."""
    item = {"state_key_hash": "0x01", "handle": HANDLE, "key": "0x07", "value": "0x01", "type": "write_table_item"}
    decoded = {"key": "7", "key_type": "u64", "value": "1", "value_type": "u64"}
    for data, key in ((None, "0x07"), (decoded, "7")):
        page = compared(simulation, [item | {"data": data}], ["0x00"])
        assert f"item {key} of table 0x5c5c5c" in text(page)
        assert "Before (BCS of an unknown type): 0x00" in text(page)
        assert "\u2192" not in page


def test_only_an_item_that_exists_can_be_read_at_other_versions(simulation):
    """One that the simulation creates is at no version of the ledger."""
    item = {"state_key_hash": "0x01", "handle": HANDLE, "key": "0x07", "value": "0x01", "type": "write_table_item"}
    outcome = simulation(changes=[item])
    for before, there in (("0x00", True), (None, False)):
        page = changes_page(outcome, KNOWN, outcome.changes.assign(before=[before]), links=True)
        assert ('data-send="item"' in page) is there


def test_a_transfer_on_a_node_is_read_with_its_types():
    """Sequence numbers are integers by their type, coins amounts; the page names accounts that are known."""
    with toolkit.connect() as node:
        call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
        simulation = node.simulate(call, sender="0xa11ce")
        names = {toolkit.address("0xb0b"): "bob"}
        known = with_layouts(read_known(node, simulation, names, run), node, simulation, run)
        page = text(changes_page(simulation, known, simulation.diff(), links=True))
        assert re.search(r"sequence_number \d+ \u2192 \d+ \(\+1\)", page)
        assert "0xb0b bob 0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin> +0.000001 APT" in page
        assert "storage_fee_octas 0 storage" in text(events_page(simulation, known))
    assert "18,446,744,073,709,551,615" in Known().leaf("n", str(2**64 - 1), toolkit.move.UInt(64), None)


def test_enums_vectors_and_options_are_followed(simulation):
    """Items by their place, what was added marked, an Option as its value or none."""
    before = '{"v":["a","b"],"o":{"vec":[]},"e":{"__variant__":"A","x":1}}'
    page = compared(
        simulation,
        [write("0x1::m::R", {"v": ["a", "c", "d"], "o": {"vec": ["5"]}, "e": {"__variant__": "B", "y": 2}})],
        [before],
    )
    shown = text(page)
    assert "v 1 b \u2192 c created 2 d o" in shown
    assert shown.count("equal field") == 1
    assert "[1 equal field v 0 a ]" in shown
    assert "o none \u2192 5" in shown
    assert "e __variant__ A \u2192 B deleted x 1 created y 2" in shown


def test_a_thousand_changes_stay_small(simulation):
    """More are cut, which the page says; the frame has them all."""
    changes = [write("0x1::m::R", {"n": place, "kept": "x"}, hex(place + 1)) for place in range(1_200)]
    page = compared(simulation, changes, ['{"n":0,"kept":"x"}'] * 1_200)
    assert page.count('class="ltk-state"') == 1_000
    assert page.count(" open>") == 12
    assert "The first 1,000 of 1,200 changes." in page
    assert len(page) < 1_000_000


TIME = "2026-01-02 06:14:24 UTC"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("registered_at", 1_767_334_464, TIME),
        ("locked_until_secs", 1_767_334_464, TIME),
        ("timestamp", 1_767_334_464_000, TIME),
        ("timestamp.microseconds", 1_767_334_464_000_000, TIME),
        ("timeout_secs", 86_400, ""),
        ("amount", 1_767_334_464, ""),
        ("created_at_version", 1_767_334_464, ""),
        ("registered_at", 2**64 - 1, ""),
        ("registered_at", 0, ""),
    ],
)
def test_a_time_is_a_name_and_a_number(name, value, said):
    """A number that only looks like a time, and a time that is only a span or a mark for never, remain numbers."""
    assert time_words(name, value) == said
