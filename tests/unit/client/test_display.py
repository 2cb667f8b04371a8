"""Results in a notebook: what they show, and that text from the chain can only be read, never run."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import toolkit
from tests.unit.client.fakes import URL, FakeNode, answer, function, ledger, module, user_transaction
from toolkit._present.notebook import facts_html
from toolkit.client._fetch import fetch_simulations, fetch_transactions
from toolkit.client._node import Node, Probe
from toolkit.wire import EntryFunction, GasBreakdown, SimulationRequest

SCRIPT = "<img src=x onerror=alert(1)>"
HANDLE = "0x" + "0" * 61 + "abc"
M = module(
    "m",
    functions=[
        function("name", [], ["0x1::string::String"]),
        function("pay", ["&signer"], is_entry=True, is_view=False),
    ],
)


class Page(HTMLParser):
    """What a browser would see: tags, attribute names and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def harmless(html: str) -> Page:
    """Check that only our own tags are there, balanced, and return the page."""
    page = Page(html)
    assert set(page.tags) <= {"div", "strong", "table", "tr", "th", "td", "span", "style", "br"}
    assert page.attributes <= {"class", "style", "title"}
    assert page.open == []
    return page


def node_with(routes):
    return Node(URL, transport=FakeNode({"GET /accounts/0x1/module/m": answer(M)} | routes))


def test_a_view_shows_value_type_gas_and_version():
    """The four facts a reader asks for, each once."""
    node = node_with({"POST /view": answer(["alice"], gas=12)})
    page = harmless(node.view("0x1::m::name", ledger_version=77)._repr_html_())
    assert page.texts[0] == "0x1::m::name"
    assert page.texts[1:] == [
        "value",
        "alice",
        "type",
        "0x1::string::String",
        "gas",
        "12 gas units",
        "ledger version read",
        "77",
    ]


def test_a_node_that_tells_no_gas_shows_none():
    """What is not known is left out, never shown as None."""
    html = node_with({"POST /view": answer(["alice"])}).view("0x1::m::name")._repr_html_()
    assert "gas" not in Page(html).texts
    assert "None" not in html


def test_keys_and_values_of_items_are_escaped():
    """A key or value with markup, quotes and direction marks stays on its line."""
    node = node_with({f"POST /tables/{HANDLE}/item": answer(f"{SCRIPT}\u202eevil\n")})
    item = node.table_item(HANDLE, key=SCRIPT, key_type="0x1::string::String", value_type="0x1::string::String")
    page = harmless(item._repr_html_())
    assert page.texts[0] == "item of table 0xabc"
    assert SCRIPT in page.texts
    assert f"{SCRIPT}\\u202eevil\\n" in page.texts


@pytest.mark.parametrize("success", [True, False])
def test_a_simulation_tells_its_words_escaped(success):
    """Status and explanation come from the chain: markup in them is text."""
    status = "Executed successfully" if success else f"Move abort in 0x1::m: E_X(0x10001): {SCRIPT}"
    simulated = user_transaction(success=success, vm_status=status)
    node = node_with({"POST /transactions/simulate": answer([simulated]), "GET /accounts/0xa11ce": account(7)})
    sim = node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce")
    page = harmless(sim._repr_html_())
    assert status in page.texts
    assert any("9 gas units at 100 octas each" in text for text in page.texts)
    assert any("Nothing was signed" in text for text in page.texts)


def test_batches_tell_their_sizes():
    """Not every row of every frame: how many there are, how many would fail, and how many have no result."""
    simulated = user_transaction()
    node = node_with({"POST /transactions/simulate": answer([simulated]), "GET /accounts/0xa11ce": account(7)})
    calls = [SimulationRequest(EntryFunction("0x1::m::pay", arguments=given), sender="0xa11ce") for given in ([], [1])]
    frames = fetch_simulations(node, calls, progress=False)
    said = "2 rows, 0 would fail, 1 without a result"
    assert repr(frames) == f"SimulationFrames(transactions: {said}, changes: 1 row, events: 1 row)"
    page = harmless(frames._repr_html_())
    assert page.texts[:3] == ["SimulationFrames", "transactions", said]
    assert {"user_transaction", "input_error", "2 rows; 1 of 2 failed (1 input_error)"} <= set(page.texts)


def test_aborts_and_reads_without_a_result_are_told_apart():
    """An aborted call has a result, so it is not a failed read; an unknown outcome is not a failure either."""
    node = toolkit.connect()
    frames = fetch_transactions(node, "4000:4100", progress=False)
    failed = int((~frames.transactions["success"]).sum())
    assert failed == 6
    assert f"101 rows, {failed} failed on the ledger, changes" in repr(frames)
    taken = SimulationRequest(EntryFunction("0xcafe::registry::register", arguments=["alice"]), sender="0xb0b")
    assert "1 row, 1 would fail, changes" in repr(fetch_simulations(node, [taken], progress=False))
    with pytest.warns(UserWarning, match=" 0xcafe::registry::Registered") as told:
        fetch_transactions(node, "4902", progress=False).events_of("0xcafe::registry::Register")
    assert "0x00" not in str(told[0].message)


def test_a_probe_is_a_table_of_what_was_found():
    """Names of what is offered as words; what the node calls itself is text."""
    page = harmless(Probe(SCRIPT, 4, 9, 0, 0, True, True, {"module": True, "block": False}, 5)._repr_html_())
    assert page.texts[0].startswith("probe of <img")
    assert page.texts[-2:] == ["does_not_offer", "block"]


def account(number: int):
    """Return the answer of an account read."""
    return answer({"sequence_number": str(number), "authentication_key": "0x" + "0" * 64}, head=ledger())


def test_long_values_are_cut():
    """A megabyte in a value does not become a megabyte of page, and the names are escaped as the values are."""
    html = facts_html(SCRIPT * 1_000, [(SCRIPT, "x" * 1_000_000), ("none", None)])
    page = harmless(html)
    assert len(html) < 3_000
    assert SCRIPT in page.texts
    assert "none" not in page.texts


# what one line shows ----------------------------------------------------------------------------------------------------


def test_a_node_says_what_it_last_saw():
    """Its name; the chain and the head after an answer; no request is sent to show it, and no credentials are in it."""
    there = FakeNode({"POST /view": answer(["5"])})
    node = Node("http://user:hunter2@node.test/v1", transport=there, api_key="sk-secret", name="mine")
    assert repr(node) == "Node('mine')"
    assert "not read yet" in node._repr_html_()
    assert there.asked == []
    node.ledger()
    assert repr(node) == "Node('mine', chain_id=4, head=1000)"
    asked = len(there.asked)
    page = harmless(node._repr_html_())
    assert "http://node.test/v1" in page.texts
    for text in (repr(node), str(node), node._repr_html_()):
        assert "hunter2" not in text
        assert "secret" not in text
    assert len(there.asked) == asked


SHORT = {
    "view": lambda node: node.view("0x1::m::name", ledger_version=77),
    "ledger": lambda node: node.ledger(),
    "module": lambda node: node.module("0x1", "m"),
    "function": lambda node: node.module("0x1", "m").function("pay"),
    "simulation": lambda node: node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce"),
    "gas": lambda node: node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce").gas,
    "request": lambda node: node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce").request,
    "transaction": lambda node: node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce").transaction,
    "snapshot": lambda node: node.at(5),
    "probe": lambda _: Probe(SCRIPT, 4, 9, 0, 0, True, True, {"module": True, "block": False}, 5),
}


@pytest.mark.parametrize("what", SHORT)
def test_a_result_is_one_short_line(what):
    """Never a wall of text, never control characters of the chain, and nothing is read to show it."""
    routes = {
        "POST /view": answer(["a\u202e\n\x1b[31m" + "x" * 5_000], gas=3),
        "POST /transactions/simulate": answer([user_transaction(vm_status="bad\u202e\n" + "y" * 5_000)]),
        "GET /accounts/0xa11ce": answer({"sequence_number": "7", "authentication_key": "0x" + "1" * 64}),
    }
    node = node_with(routes)
    result = SHORT[what](node)
    asked = len(node._connection._transport.asked)
    text = repr(result)
    assert len(text) < 420
    assert text.isprintable()
    if hasattr(result, "_repr_html_"):
        page = harmless(result._repr_html_())
        assert not any("\u202e" in one for one in page.texts)
    assert len(node._connection._transport.asked) == asked


def test_lines_say_what_matters():
    """The exact texts of those that users see most."""
    routes = {"POST /view": answer(["alice"], gas=1_200)}
    node = node_with(routes)
    assert (
        repr(node.view("0x1::m::name", ledger_version=77))
        == "<ViewResult 0x1::m::name: 'alice', 1,200 gas units, version 77>"
    )
    assert repr(node.module("0x1", "m")) == "<ModuleAbi 0x1::m: 1 view, 1 entry function, 0 structs>"
    assert repr(node.module("0x1", "m").function("pay")) == "<FunctionAbi public entry pay(&signer)>"
    assert "epoch=7" in repr(node.ledger())
    assert "datetime" not in repr(node.ledger())
    split = {"execution_gas_units": 5, "io_gas_units": 3, "storage_fee_octas": 43_000, "storage_fee_refund_octas": 0}
    gas = GasBreakdown(total_charge_gas_units=438, gas_unit_price=100, **split)
    split = "execution 5 gas units, io 3 gas units, storage 43,000 octas>"
    assert repr(gas) == f"<GasBreakdown 438 gas units at 100 octas, 43,800 octas: {split}"
    assert repr(EntryFunction("0x1::m::pay")) == "EntryFunction(function='0x1::m::pay')"
    assert repr(EntryFunction("0x1::m::pay", arguments=[5])) == "EntryFunction(function='0x1::m::pay', arguments=(5,))"
