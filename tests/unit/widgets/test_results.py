"""The pages of a simulation, and the small pieces of HTML they are made of."""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

import toolkit
from toolkit.client._accounts import Asset
from toolkit.plots._style import PAGE_COLOURS, PART_COLOURS
from toolkit.widgets import _results
from toolkit.widgets._changes import GAS_COIN, Known
from toolkit.widgets._html import Html, pairs, safe, short_id, table
from toolkit.widgets._programs import format_expression, programs
from toolkit.widgets._results import _history_figure
from toolkit.widgets._simulation_builder import Failure
from toolkit.wire._gas import APT

KNOWN = Known({one: Asset(one, "coin", "Aptos Coin", "APT", 8) for one in GAS_COIN})

HOSTILE = "<img src=x onerror=alert(1)>'\"&</td>\u202e\x1b[0m"
FEE = {"total_charge_gas_units", "execution_gas_units", "io_gas_units", "storage_fee_octas", "storage_fee_refund_octas"}


class Elements(HTMLParser):
    """Collects elements, attributes and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.open, self.text = [], [], [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag != "wbr":  # the one element of ours that has no end
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def fee_event(**fields):
    data = dict.fromkeys(FEE, "0") | fields
    return {
        "guid": {"creation_number": "0", "account_address": "0x0"},
        "sequence_number": "0",
        "type": "0x1::transaction_fee::FeeStatement",
        "data": data,
    }


def shown(simulation, title, *, model=False, **about):
    """Return the HTML of the page with a title."""
    made = _results.simulation_pages(simulation, KNOWN, model=model, **about)
    return next(one.html for one in made if one.title == title)


def test_the_pages_come_in_order_with_their_counts(simulation, node):
    """Outcome, gas, state changes and events; the balances and the node's answer are with the outcome."""
    made = _results.simulation_pages(simulation(), KNOWN, model=True)
    assert {one.title: one.count for one in made} == {"Outcome": None, "Gas": None, "Changes": 2, "Events": 1}
    assert "Balance changes" in made[0].html
    assert "The response as JSON" in made[0].html


def test_everything_a_node_says_is_escaped(simulation, node):
    """No text of an answer becomes an element, an attribute or an invisible character."""
    guid = {"creation_number": "7", "account_address": "0xa"}
    changes = [
        {
            "address": "0xa",
            "state_key_hash": HOSTILE,
            "data": {"type": HOSTILE, "data": {HOSTILE: HOSTILE * 20}},
            "type": "write_resource",
        },
        {"address": "0x1", "state_key_hash": "", "module": HOSTILE, "type": "delete_module"},
    ]
    events = [{"guid": guid, "sequence_number": "0", "type": HOSTILE, "data": {"note": HOSTILE * 20}}]
    outcome = simulation(vm_status=HOSTILE, changes=changes, events=events, success=False)
    failure = Failure(HOSTILE, HOSTILE, "", 7).to_html()
    pages = _results.simulation_pages(outcome, KNOWN, model=True, failure=failure)
    for page in (one.html for one in pages):
        elements = Elements(page)
        assert not elements.open
        assert "img" not in elements.tags
        assert not any(name.startswith("on") for name in elements.attributes)
        assert "\u202e" not in page
        assert "\x1b" not in page
    assert "\\u202e" in pages[0].html


def test_the_outcome_is_in_words(simulation):
    """Whether it would succeed, the reason first if not, what is paid, and how to get at the frames."""
    text = Elements(shown(simulation(), "Outcome")).text
    assert "Success 0x1::aptos_account::transfer from 0xa11ce" in text
    assert "Cost0.000041 APT (41 gas units at 100 octas)" in text
    failure = Failure("There are no coins", "code 0x10006").to_html()
    failed = Elements(shown(simulation(success=False), "Outcome", failure=failure)).text
    assert failed.startswith("Would fail There are no coins.code 0x10006What it doesCall")


def test_the_gas_page_splits_the_total(simulation):
    """Parts in gas units, storage by the price, and the fee in octas."""
    event = fee_event(
        total_charge_gas_units="450",
        execution_gas_units="40",
        io_gas_units="10",
        storage_fee_octas="40000",
        storage_fee_refund_octas="1000",
    )
    text = Elements(shown(simulation(gas_used="450", events=[event]), "Gas", model=False)).text
    assert "Storage40089\u202f%" in text
    assert "Charged450" in text
    assert "Storage refund0.00001 APT" in text
    assert "Net0.00044 APT" in text
    assert "Model gas" not in text


def test_the_parts_of_gas_have_the_colours_of_the_figures():
    """On light and on dark pages."""
    sheet = (files("toolkit.widgets") / "form.css").read_text()
    for place, part in enumerate(("execution", "io", "storage")):
        colour = PART_COLOURS[part]
        assert f"--ltk-part{place}: light-dark({colour}, {PAGE_COLOURS[colour].dark});" in sheet


def test_the_gas_page_says_what_its_numbers_are(simulation):
    """A model's gas is called one; parts that do not add up and a missing split are said."""
    page = shown(simulation(), "Gas", model=True)
    assert "<summary>Model gas: the embedded node is not a Move VM</summary>" in page
    odd = fee_event(total_charge_gas_units="500", execution_gas_units="40")
    assert "do not add up" in shown(simulation(events=[odd]), "Gas", model=False)
    for total, rounded in (("50", False), ("49", True)):  # rounding is a reason only if there is a difference
        made = fee_event(total_charge_gas_units=total, execution_gas_units="40", io_gas_units="10")
        assert ("rounded up" in shown(simulation(events=[made]), "Gas")) is rounded
    assert "discarded before it ran" in shown(simulation(events=[], gas_used="0"), "Gas", model=False)


def test_a_free_price_has_no_storage_part(simulation):
    """At a price of 0 nothing is divided by it."""
    event = fee_event(total_charge_gas_units="50", execution_gas_units="40", io_gas_units="10")
    assert (
        "Storage00\u202f%" in Elements(shown(simulation(gas_unit_price="0", events=[event]), "Gas", model=False)).text
    )


@pytest.mark.parametrize(("versions", "gaps"), [([4, 5, 6], 0), ([4, 5, 9, 20], 2)])
def test_only_reads_of_adjacent_versions_are_joined(versions, gaps):
    """Nothing is drawn where nothing was read; each read is a point."""
    frame = pd.DataFrame({"ledger_version": versions, "value": range(len(versions))})
    points, line = _history_figure(frame, "what", model=False).axes[0].lines
    assert [int(one) for one in points.get_xdata()] == versions
    assert (points.get_linewidth(), points.get_marker()) == (0, "o")
    assert (line.get_drawstyle(), int(np.isnan(line.get_xdata()).sum())) == ("steps-post", gaps)


def test_a_line_ends_at_reads_that_succeeded():
    """A failed read is a cross: no line leads to it, or across it."""
    frame = pd.DataFrame({"ledger_version": [7, 8, 9, 10, 11, 12], "value": [None, 1, 2, None, 3, None]})
    points, line, crosses = _history_figure(frame, "what", model=False).axes[0].lines
    assert points.get_xdata().tolist() == [8, 9, 11]
    assert crosses.get_xdata().tolist() == [7, 10, 12]
    assert (crosses.get_ydata().tolist(), crosses.get_clip_on()) == ([0, 0, 0], False)  # on the axis: not a value
    assert [None if np.isnan(one) else int(one) for one in line.get_xdata()] == [8, 9, None, 11]


@pytest.mark.parametrize(("model", "title"), [(True, "Model gas (gas units)"), (False, "Gas used (gas units)")])
def test_the_gas_of_a_model_is_called_so(model, title):
    """In the figure of a form, as in all figures."""
    frame = pd.DataFrame({"ledger_version": [4, 5], "value": [1, 2], "gas_used": [7, 9]})
    assert _history_figure(frame, "what", model=model).axes[-1].get_title(loc="left") == title


def test_safe_writes_out_what_cannot_be_seen():
    """Markup is escaped once; direction marks, control characters and endless text become harmless."""
    assert safe("<b>&\u202e\x00\n") == "&lt;b&gt;&amp;\\u202e\\x00\n"
    assert safe(Html("<b>")) == "<b>"
    assert safe(None) == "\N{EN DASH}"
    assert safe("x" * 30_000).endswith("... (30,000 characters)")


def test_long_ids_are_cut_in_the_middle_and_whole_in_the_tooltip():
    """Leading zeros go; what stays can be told apart, and copied from the tooltip."""
    assert short_id("0x" + "a11ce".zfill(64)).endswith(">0xa11ce</code>")
    handle = "0x" + "5c" * 32
    assert f'title="{handle}"' in short_id(handle)
    assert "0x5c5c5c\N{HORIZONTAL ELLIPSIS}5c5c" in short_id(handle)
    assert short_id(None) == "\N{EN DASH}"


def test_tables_name_their_headings():
    """Screen readers get captions, row headings and column headings."""
    assert '<th scope="row">a</th>' in pairs([("a", 1)], "names")
    page = table({"n": "number", "name": ""}, [(1, "x")], "rows")
    assert "<caption>rows</caption>" in page
    assert '<th scope="col" class="ltk-number">n</th>' in page
    assert '<td class="ltk-number">1</td><td>x</td>' in page


@pytest.mark.parametrize(
    "source",
    [
        "f('a')",
        "toolkit.SimulationRequest(toolkit.EntryFunction('0x1::a::b', arguments=['x' , {'k': [1, None], 'l': ()}]), s=True)",
        "f(['" + "x" * 90 + "', {'\u00e9': [" + ", ".join(["12345678"] * 20) + "]}], b=g(h(i=1)))",
    ],
)
def test_breaking_lines_keeps_the_meaning(source):
    """However narrow, the laid out expression is the same program."""
    for width in (10, 40, 78):
        assert ast.dump(ast.parse(format_expression(source, width=width))) == ast.dump(ast.parse(source))


def test_the_python_names_a_node_without_its_password(node):
    """Credentials of a URL never reach the snippet."""
    node.name, node.url = "mine", "https://user:secret@node.example/v1"
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    text = programs(toolkit.SimulationRequest(call, sender="0x1"), node)["Python"]
    assert "toolkit.connect('https://node.example/v1')" in text
    assert "secret" not in text


def test_the_json_says_where_open_numbers_come_from(node):
    """What the node estimates, what is the toolkit's default, and what the request says itself."""
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    request = toolkit.SimulationRequest(call, sender="0x1", sequence_number=7, estimate_gas_unit_price=False)
    made = programs(request, node, ["0xb0b", "100"])
    text = made["JSON"]
    assert "/transactions/simulate?estimate_max_gas_amount=true" in made["curl"]
    assert re.search(r'"sequence_number": "7"', text)
    assert '"max_gas_amount": "<estimated by the node>"' in text
    assert '"gas_unit_price": "<the toolkit\'s default>"' in text
    assert '"100"' in text


def test_amounts_of_recent_calls_are_in_whole_coins():
    """Differences are in whole coins too; equal values do not show one."""
    facts = [KNOWN.fact("Cost", units, APT) | {"Gas used": gas} for units, gas in ((7_500, 75), (20_000_000_000, 75))]
    assert _results.recent_page(facts).count("<td>75</td>") == 2
    shown = _results.recent_page(facts)
    assert "Cost, APT" in shown
    assert "<td>0.000075</td><td><b>200</b> (+199.999925)</td>" in shown
    assert KNOWN.fact("Cost", 5, "0x2::unknown::Coin") == {"Cost": 5}
