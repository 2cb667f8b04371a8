"""The edges of the client: what people and hostile nodes get wrong, and what the client says."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, function, ledger, module, refused, struct, user_transaction
from toolkit.client.fetch import fetch_table_items, fetch_views
from toolkit.client.http import Answer
from toolkit.client.node import Node
from toolkit.client.node_errors import refusal
from toolkit.client.versions import FindSteps, resolve_versions
from toolkit.errors import InputError, SchemaError
from toolkit.move import decode_module_abi
from toolkit.wire import EntryFunction, ViewFunction

HANDLE = "0x" + "0" * 61 + "abc"


def test_a_numpy_array_is_a_list_of_versions():
    """An array of integers is a list of versions."""
    assert list(resolve_versions(np.array([4, 5]), head=1_000).versions) == [4, 5]
    assert list(resolve_versions(np.arange(0, 10, 4, dtype=np.uint64), head=1_000).versions) == [0, 4, 8]


def test_a_plan_of_too_many_versions_is_refused_before_it_is_made(monkeypatch):
    """The size of a plan is checked before its versions are spelled out."""
    monkeypatch.setattr("toolkit.client.versions._MAX_VERSIONS", 1_000)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="200,000 versions"):
            resolve_versions("0:1000000000/200000", head=10**9)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_a_plan_in_the_future_is_not_read_as_the_head():
    """Dates that lie after the head are refused, not read as the head."""
    fake = FakeNode({"POST /view": answer(["1"]), "GET /accounts/0x1/module/m": refused(403, "api_disabled")})
    node = Node(URL, transport=fake)
    with pytest.raises(InputError):
        fetch_views(node, ViewFunction("0x1::m::f"), versions="2099-01-01..2099-02-01", progress=False)


@pytest.mark.parametrize("options", [{"versions": 5}, {"versions": "0:9", "initial": "3"}])
def test_find_steps_refuses_other_types(options):
    """Other types than text and ints are refused with a text."""
    with pytest.raises(InputError):
        FindSteps(**options)


def test_a_listed_version_above_the_head_does_not_lose_the_other_items():
    """A version that does not exist is a row, and the items of the others keep their type."""
    purse = module("m", structs=[struct("Purse", {"total": "u128"})])
    head = ledger()

    def unless_above(value):
        def found(query, _):
            above = int(query["ledger_version"]) > head.version
            return refused(404, "version_not_found", head=head) if above else answer(value)

        return found

    fake = FakeNode(
        {"GET /accounts/0x1/module/m": unless_above(purse), f"POST /tables/{HANDLE}/item": unless_above({"total": "5"})}
    )
    frame = fetch_table_items(
        Node(URL, transport=fake),
        HANDLE,
        keys=["a"],
        key_type="0x1::string::String",
        value_type="0x1::m::Purse",
        versions=[5, 5_000],
        progress=False,
    )
    assert frame["error_code"].fillna("-").tolist() == ["-", "version_not_found"]


def test_version_at_ends_where_a_node_answers_other_blocks():
    """A node that answers other blocks than those asked for ends in an error, not in a loop."""
    block = {
        "block_height": "1",
        "block_hash": "0x0",
        "block_timestamp": "1",
        "first_version": "0",
        "last_version": "0",
        "transactions": None,
    }
    fake = FakeNode(head=ledger())

    class Endless(Exception):  # noqa: N818 - it only ends the test
        pass

    def blocks(*_):
        if len(fake.asked) > 100:
            raise Endless
        return answer(block)

    fake.routes |= {f"GET /blocks/by_version/{n}": blocks for n in range(1_001)}
    with pytest.raises(SchemaError):
        Node(URL, transport=fake).version_at("2026-01-01")


def test_a_hostile_message_is_harmless_in_the_text():
    """The error's text is short and shows hidden characters; `.message` is what came, cut with a mark."""
    message = "\x1b[2J\u202eabort" + "x" * 100_000
    error = refusal("view x", refused(400, "invalid_input", message))
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
    assert len(str(error)) < 5_000
    assert error.message == message[:2_000] + "… (98,010 more characters)"


def test_an_account_that_may_not_be_read_does_not_stop_a_simulation():
    """Companion reads that answer 403 are done without."""
    fake = FakeNode(
        {
            "GET /accounts/0xa11ce": refused(403, "api_disabled"),
            "GET /accounts/0x1/module/m": refused(403, "api_disabled"),
            "POST /transactions/simulate": answer([user_transaction()]),
        }
    )
    assert Node(URL, transport=fake).simulate(EntryFunction("0x1::m::pay", arguments=[]), sender="0xa11ce").success


def test_one_page_of_a_gateway_does_not_end_typing():
    """A single 404 page of a gateway costs the typing of one answer, not of all later ones."""
    pages = iter([Answer(404, {"Content-Type": "text/html"}, b"<html>routing</html>")])
    m = module("m", functions=[function("f", [], ["u64"])])
    fake = FakeNode({"POST /view": answer(["5"]), "GET /accounts/0x1/module/m": lambda *_: next(pages, answer(m))})
    node = Node(URL, transport=fake)
    node.view("0x1::m::f", ledger_version=5)
    assert node.view("0x1::m::f", ledger_version=6).typing == "abi"


def test_a_module_is_the_same_however_its_address_is_written():
    """Any spelling of an address finds the override and what is known."""
    abi = decode_module_abi(module("m"))
    node = Node(URL, transport=FakeNode(), abis={("0x01", "m"): abi})
    assert node.module("0x1", "m", ledger_version=5) == abi
    assert node.module("0x0001", "m", ledger_version=5) == abi


def test_bcs_stands_back_where_a_parameter_is_not_known():
    """Where a parameter's type is not known the call goes as JSON."""
    m = module("m", functions=[function("f", ["0x9::q::Q"], ["u64"])])
    fake = FakeNode({"POST /view": answer(["5"]), "GET /accounts/0x1/module/m": answer(m)})
    node = Node(URL, transport=fake, encoding="bcs")
    assert node.view("0x1::m::f", arguments=[{"a": 1}], ledger_version=5).value == 5
    assert fake.accepted[-1] == "application/json"


@pytest.mark.parametrize("key_type", ["0x1::string::String", "0x9::q::Q"])
def test_text_that_is_no_utf8_is_the_callers_mistake(key_type):
    """A lone surrogate is told as text that cannot be sent."""
    with pytest.raises(InputError):
        Node(URL, transport=FakeNode()).table_item(
            HANDLE, key="\ud800", key_type=key_type, value_type="u8", ledger_version=5
        )
