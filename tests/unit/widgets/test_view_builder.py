"""The view builder, by setting and reading its traits: reads at the head, at a version and over versions."""

from __future__ import annotations

import base64
import json
import re
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

import toolkit
from tests.unit.widgets.conftest import executed, page
from tests.unit.widgets.test_simulation_builder import press, type_in
from toolkit._present.text import in_whole_coins
from toolkit.errors import InputError
from toolkit.widgets import (
    GasExplorer,
    SimulationBuilder,
    TableItemBuilder,
    ViewBuilder,
    _readings,
    _table_item_builder,
)
from toolkit.widgets._changes import Known
from toolkit.widgets._fields import Findings
from toolkit.widgets._messages import Status
from toolkit.widgets._readings import ViewDraft, read_versions, write_versions
from toolkit.widgets._results import frame_words, value_html
from toolkit.widgets._state import OUTDATED

SIZE = "0xcafe::registry::size"
RECORD = toolkit.ViewFunction("0xcafe::registry::record_of", ["alice"])
SUPPLY = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])


@pytest.fixture(scope="module")
def node():
    """Return the embedded node."""
    with toolkit.connect() as made:
        yield made


@pytest.fixture
def builder(node):
    """Return a builder, closed after the test."""
    made = ViewBuilder(node)
    yield made
    made.close()


# which versions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("versions", "draft"),
    [
        (None, {"at": "head"}),
        (4000, {"at": "version", "version": "4000"}),
        (np.uint64(7), {"at": "version", "version": "7"}),
        (-1, {"at": "version", "version": "-1"}),
        ("0:-1/50", {"at": "plan", "plan": "0:-1/50"}),
        ("2026-05-01..2026-06-01/20", {"at": "plan", "plan": "2026-05-01..2026-06-01/20"}),
        ([5, 7, -1], {"at": "plan", "plan": "5, 7, -1"}),
        ([5], {"at": "plan", "plan": "5:5"}),
    ],
)
def test_versions_and_their_draft(versions, draft):
    """What the fetch functions take is written into the fields, and read from them as the same versions."""
    assert write_versions(versions) == draft
    found = Findings()
    read = read_versions(ViewDraft(**draft), found)
    assert found.good
    assert write_versions(read) == draft


@pytest.mark.parametrize(
    ("at", "typed", "said"),
    [
        ("plan", "200:100", "the version plan runs from 200 down to 100; write the older version first"),
        ("plan", "-5:-9", "write the older version first"),
        ("plan", "0:-1/0", "step and number of versions must be 1 or more"),
        ("plan", "0:99999999", "100,000,000 versions, more than 50,000,000"),
        ("plan", "yesterday", "'yesterday' is not understood"),
        ("plan", "1,000 4,000", "'1,000 4,000' is not understood"),
        ("plan", "1,0000", "write digits without commas"),
        ("plan", "\U0001f389", "'\U0001f389' is not understood"),
        ("version", "\U0001f389", "got '\U0001f389'"),
        ("version", "0000", "expected a ledger version"),
        ("version", "0:-1", "expected a ledger version, such as 4000"),
        ("version", str(2**64), "expected a whole number from 0 to 2^63 - 1"),
    ],
)
def test_a_wrong_plan_is_said_while_it_is_typed(at, typed, said):
    """The sentence is that of the plan's parser, at the field."""
    found = Findings()
    assert read_versions(ViewDraft(at=at, **{at: typed}), found) is None
    assert said in found.errors[at]


@pytest.mark.parametrize(
    ("at", "typed", "versions", "note"),
    [
        ("plan", "1,000, 4,000", [1000, 4000], "= versions 1,000 and 4,000"),
        ("plan", "1,000:4,000/2", "1000:4000/2", "= 2 of versions 1,000 to 4,000"),
        ("plan", "0:-1", "0:-1", "= 5,000 versions, 0 to 4,999"),
        ("plan", "0:-1/50", "0:-1/50", "= 50 of versions 0 to 4,999"),
        ("plan", "4990:4999:3", "4990:4999:3", "= 4 of versions 4,990 to 4,999"),
        ("plan", "0:9999/5", "0:9999/5", "versions 5,000 to 9,999 do not exist yet; reading to 4,999, the latest"),
        ("plan", "9999", None, "version 9,999 does not exist yet: this node has versions 0 to 4,999"),
        ("version", "4 000", 4000, None),
        ("version", "9,999", None, "version 9,999 does not exist yet: this node has versions 0 to 4,999"),
        ("version", "-9999", None, "before version 0"),
        ("version", "9" * 20, None, "does not exist yet: this node has versions 0 to 4,999"),
        ("version", "-5", -5, "= version 4,995"),
        ("plan", "9" * 20, None, "does not exist yet: this node has versions 0 to 4,999"),
        ("plan", "-5", "-5", "= version 4,995"),
        ("plan", "-1000:", "-1000:", "= 1,000 versions, 4,000 to 4,999"),
        ("plan", "-1000:/20", "-1000:/20", "= 20 of versions 4,000 to 4,999"),
        ("plan", "1,000, -5", [1000, -5], "= versions 1,000 and 4,995"),
        ("plan", "2026-06-28..2026-07-10", "2026-06-28..2026-07-10", "= 28 versions, 4,972 to 4,999; 2026-07-10"),
        ("plan", "2026-06-01..2026-06-28/20", "2026-06-01..2026-06-28/20", "= 20 of versions "),
        ("plan", "2026-06-28", "2026-06-28", "= version 4,971"),
        ("plan", "2026-06-28, 1,000, -5", "2026-06-28, 1000, -5", "= versions 4,971, 1,000 and 4,995"),
        ("version", "2026-06-28", 4971, "= 4,971"),
        ("plan", "2027-01-01", None, "2027-01-01 00:00:00 UTC is after"),
    ],
)
def test_a_field_of_versions_says_what_was_understood_when_it_is_left(builder, at, typed, versions, note):
    """The head is known by then: a missing version is an error, and a clipped range gets a note."""
    builder.request = RECORD
    type_in(builder, at=at, **{at: typed})
    press(builder, "time")
    shown = builder.errors if versions is None else builder._findings.notes
    if note is None:
        assert at not in shown
    else:
        assert note in shown[at]
    assert versions is None or builder.versions == versions
    assert list(builder.errors) == ([at] if versions is None else [])


@pytest.mark.parametrize(
    ("typed", "errors", "note"),
    [
        ("2026-06-28..2026-07-10", 0, "= 28 versions, 4,972 to 4,999"),
        ("2027-01-01..2027-02-01", 1, None),
        ("2026-06-28", 1, "= version 4,971"),
        ("2027-01-01", 1, None),
    ],
)
def test_dates_of_a_study_are_looked_up_and_one_error_is_counted_once(builder, typed, errors, note):
    """The error is at the field that is shown, also if the node found it."""
    form = toolkit.widgets.GasExplorer(builder.node)
    type_in(form, function=SIZE, span=typed)
    press(form, "time")
    form.close()
    assert list(form.errors) == ["span"] * errors
    assert (note or "") in form._findings.notes.get("span", "")


def test_two_reads_have_a_difference_and_a_failed_one_is_marked_in_its_row(builder):
    """Two versions are named one by one, not as a range."""
    builder.function, builder.versions = SIZE, [1000, 4000]
    builder.read()
    assert builder._origin == "versions 1,000 and 4,000"
    assert "(+387)" in page(builder, "Figure")
    builder.versions = [1000, 9999]
    builder.read()
    assert '<span class="ltk-bad">failed</span>' in page(builder, "Rows")


# reading -------------------------------------------------------------------------------------------------------------


def test_nothing_is_asked_before_a_button_is_pressed(memory):
    """Neither making the form nor filling it asks the node anything."""
    with toolkit.Node("http://127.0.0.1:1/v1", transport=memory) as node:
        builder = ViewBuilder(node, function=SIZE)
        builder.versions = "2026-05-01..2026-06-01/20"
        builder.request = RECORD
        builder.versions = 5
        assert memory.asked == []
        builder.close()


def test_the_head(builder):
    """A read without versions: value with its type, gas, version and time; one request made from the entries."""
    builder.function = SIZE
    builder.read()
    assert builder.request == toolkit.ViewFunction(SIZE)
    assert builder.result == builder.node.view(SIZE)
    shown = page(builder, "Value")
    for words in (">u64</code>", "652", "21 gas units", "Model gas"):
        assert words in shown
    assert builder._origin == "version 4,999 (the head), ledger time 2026-06-28 22:04:48 UTC"
    assert builder._status.text == "Returned 1 value at version 4,999, 21 gas units"
    assert not builder._stale
    builder.versions = 10
    assert builder._stale


def test_a_version(builder):
    """One version, also counted from the head; the result names it and its time."""
    builder.request, builder.versions = RECORD, 4000
    builder.read()
    assert builder.result == builder.node.at(4000).view(RECORD)
    shown = page(builder, "Value")
    assert "<code>1,767,334,464</code>" in shown
    assert re.search(r'title="0x0+a11ce">0xa11ce</code> alice', shown)
    assert re.fullmatch(r"version 4,000, ledger time 2026-05-\d\d .* UTC", builder._origin)
    builder.versions = -2
    builder.read()
    assert builder.result.ledger_version == 4998


def test_a_plan(builder):
    """A plan gives the frame of `fetch_views`, a figure with words, rows, and the failed versions in words."""
    builder.function, builder.versions = SIZE, "0:-1/9"
    builder.read()
    expected = toolkit.fetch_views(builder.node, SIZE, "0:-1/9", flatten=True, times=True, progress=False)
    pd.testing.assert_frame_equal(builder.result, expected)
    assert [(one.title, one.count) for one in builder._pages] == [("Figure", None), ("Rows", 9), ("Not available", 1)]
    assert builder._status == Status("good", "9 reads, versions 0 to 4,999; 1 not available")
    shown = page(builder, "Figure")
    words = re.search(r'alt="([^"]*)"', shown)[1]
    assert "value: 81 at version 624, 652 at version 4,999; 8 different values from 81 to 652" in words
    assert "gas: 3 gas units at version 624, 21 gas units at version 4,999; 2 different values from 3 to 21" in words
    assert base64.b64decode(re.search(r"base64,([^\"]*)", shown)[1]).startswith(b"\x89PNG")
    assert "Model gas" in shown
    assert "can&#x27;t be found" in page(builder, "Not available")
    assert "invalid_input" in page(builder, "Not available")
    assert "1,249" in page(builder, "Rows")
    assert "ledger version" in page(builder, "Rows")


def test_structs_over_a_plan_have_a_column_per_field(builder):
    """The numbers among them are described, a time with its date."""
    builder.request, builder.versions = RECORD, "4000:4002"
    builder.read()
    said = "value.registered_at: 1,767,334,464 (2026-01-02 06:14:24 UTC) at every version"
    assert said in page(builder, "Figure")


def test_a_plan_that_is_clipped_is_said(builder, recwarn):
    """What the fetch functions warn of is in the page; nothing is written below the cell."""
    builder.function, builder.versions = SIZE, "4990:6000:5"
    builder.read()
    assert len(builder.result) == 2
    assert "versions 5,000 to 6,000 do not exist yet; reading to 4,999" in page(builder, "Figure")
    assert not recwarn.list


def test_versions_before_the_function_existed_did_not_fail(node, recwarn):
    """The code at the last one does not have it. The Gas form says the same in the same colour."""
    builder = ViewBuilder(node, function="0xfa17::vault::share_price")
    for version, number in ((5, 5), (-4990, 10)):
        builder.versions = version
        builder.read()
        words = f"Not available at version {number}: module 0xfa17::vault can't be found"
        assert (builder._status, builder.errors) == (Status("hint", words), {})
    builder.versions = "0:40/10"
    builder.read()
    study = GasExplorer(node)
    study.study = toolkit.Study(calls=["0xfa17::vault::share_price"], versions="0:40/10", node=node)
    study.run()
    for form in (builder, study):
        assert form._status.kind == "good"
        assert "4 not available" in form._status.text
        assert [(one.title, one.count) for one in form._pages if one.kept] == [("Not available", 4)]
        assert "can&#x27;t be found" in form._picture()
    builder.function, builder.arguments, builder.versions = "0xcafe::registry::record_of", '["elm-828"]', "4000:-1/5"
    builder.read()  # it aborts until the name is registered
    assert builder._status.kind == "mixed"
    assert [(one.title, one.count) for one in builder._pages if one.kept] == [("Failed", 4)]
    assert "(2026-06-25 07:40:48 UTC)" in builder._pages[1].html
    builder.close()
    study.close()


def test_none_of_the_versions_had_the_function(node):
    """It is not available there, as at a single version."""
    builder = ViewBuilder(node, function="0xfa17::vault::share_price")
    builder.versions = "5:8"
    builder.read()
    assert builder._status == Status("hint", "4 reads, versions 5 to 8; 4 not available")
    builder.close()


def test_an_overflow_names_the_function_and_marks_the_amount(builder):
    """The function itself is not wrong."""
    builder.request = toolkit.ViewFunction("0xfa17::vault::preview", [2**64 - 1])
    builder.read()
    assert builder.errors == {"arguments.0": "Multiplication overflow in 0xfa17::vault::preview"}


def test_code_of_before_stays_for_a_time_after_the_head(builder):
    """As for any other wrong entry, it is out of date."""
    builder.function = SIZE
    builder.check()
    builder._edit(at="version", version="2027-01-01")
    assert not builder.check()
    assert builder._findings.code_note == OUTDATED
    assert dict(builder._programs)["Python"]


def test_an_account_is_no_function(node):
    """The search says that it has no contracts; the zero address has no name, so a word does not become it."""
    builder = ViewBuilder(node)
    for query in ("alice", "0xa11ce"):
        builder._search(query)
        assert builder._hits.error == f"{query!r} is an account without contracts"
    builder._search("0xcafe")
    assert (builder._hits.error, bool(builder._hits.hits)) == ("", True)
    assert Findings(names=builder._now.names).address("nobody") is None
    builder.close()


def test_all_versions_failed(builder, recwarn):
    """An abort everywhere: the status is bad, every read is a row, nothing is drawn."""
    builder.request, builder.versions = RECORD.replace(arguments=("nobody",)), "4000:4005"
    builder.read()
    assert builder._status == Status("bad", "6 reads, versions 4,000 to 4,005; 6 failed")
    assert "Nobody registered this name" in page(builder, "Failed")
    assert "4,000 to 4,005" in page(builder, "Failed")
    assert "<img" not in page(builder, "Outcome")
    assert not recwarn.list


@pytest.mark.parametrize(
    ("request_", "versions", "path", "said"),
    [
        (RECORD.replace(arguments=("nobody",)), None, "arguments.0", "Nobody registered this name"),
        (toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0xdead::m::S"]), None, "type_arguments.0", "exist"),
        (
            toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::account::Account"]),
            None,
            "type_arguments.0",
            "b",
        ),
        (toolkit.ViewFunction("0x1::coin::supply", type_arguments=["u64"]), None, "function", "Move abort"),
        (RECORD, 99_999, "version", "version 99,999 does not exist yet: this node has versions 0 to 4,999"),
        (RECORD, "9000:9010", "plan", "this node has versions 0 to 4,999"),
        (RECORD.replace(arguments=("alice", 5)), None, "arguments", "expected 1 argument (0x1::string::String), got 2"),
        (RECORD.replace(function="0xcafe::registry::record"), None, "function", "did you mean `record_of`?"),
        (
            RECORD.replace(function="0xcafe::registry::register"),
            None,
            "function",
            "not a view function",
        ),
    ],
)
def test_a_failure_is_said_at_the_field_that_caused_it(builder, request_, versions, path, said):
    """In a sentence; mending the entry clears it."""
    builder.request, builder.versions = request_, versions
    builder.read()
    assert list(builder.errors) == [path]
    assert said in builder.errors[path]
    assert builder._status.kind in {"bad", "error"}
    assert builder.result is None
    builder.versions = 4_000
    builder.request = RECORD
    builder.read()
    assert builder.errors == {}
    assert builder.result.ledger_version == 4000


def test_missing_entries(builder):
    """Read on an empty form names what is needed; nothing is asked."""
    builder.read()
    assert "address::module::function" in builder.errors["function"]
    builder.function = SIZE
    builder._draft = replace(builder._draft, seq=builder._draft.seq + 1, at="plan", plan="")
    builder.read()
    assert list(builder.errors) == ["plan"]
    assert "0:-1/50" in builder.errors["plan"]


def test_a_request_comes_out_as_it_went_in(builder):
    """Arguments that JSON cannot say stay; versions do not change with the request."""
    builder.versions = "0:-1/50"
    builder.request = request = toolkit.ViewFunction("0x1::m::f", [b"\x01\x02", 2**128], type_arguments=["u8"])
    assert builder.request == request
    assert builder.function == "0x1::m::f"
    assert builder.versions == "0:-1/50"
    builder.type_arguments = "u16"
    assert builder.request == request.replace(type_arguments=("u16",))


# programs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("versions", [None, 4_000, -3, "4000:-1/4", [100, 4_500, -1], "2026-05-01..2026-06-01/3"])
@pytest.mark.parametrize("request_", [RECORD, SUPPLY], ids=["arguments", "types"])
def test_the_python_reads_the_same(builder, request_, versions):
    """Executed, the program makes the equal call and gets the equal answer, for every kind of versions."""
    builder.request, builder.versions = request_, versions
    builder.read()
    names = executed(builder)
    assert names["call"] == builder.request
    if isinstance(builder.result, pd.DataFrame):
        pd.testing.assert_frame_equal(names["frame"], builder.result)
    else:
        assert names["result"] == builder.result


def test_json_and_study(builder):
    """The body as the node reads it, and a call of a study with the source view."""
    builder.request = toolkit.ViewFunction("0x1::features::is_enabled", [5])
    builder.check()
    shown = dict(builder._programs)
    assert json.loads(shown["JSON"]) == {
        "function": "0x1::features::is_enabled",
        "type_arguments": [],
        "arguments": ["5"],
    }
    study = f'[study]\nname = "x"\nversions = "0:-1/3"\n\n{shown["Study"]}\n'
    assert 'view = "0x1::features::is_enabled"' in study
    assert "arguments = [5]" in study


# display -------------------------------------------------------------------------------------------------------------


def test_values_are_shown_whole_and_escaped():
    """Numbers are grouped, bytes are hex, containers are lines of fields; what is long is folded; nothing is markup."""
    known = Known()
    assert value_html(2**64, known) == "<code>18,446,744,073,709,551,616</code>"
    assert value_html(value=True, known=known) == "<code>true</code>"
    assert value_html(b"\x01\xff", known) == "<code>0x01ff</code>"
    assert "none" in value_html(None, known)
    assert "&lt;script&gt;" in value_html("<script>", known)
    assert "&lt;b&gt;" in value_html({"a": ["<b>", 2**70]}, known)
    assert value_html("x" * 1000, known).startswith("<details")


def test_rows_of_an_amount_have_coins_and_times(builder):
    """Coins replace octas if the asset is known; each version has its ledger time, and the head is not a column."""
    apt = "0x1::aptos_coin::AptosCoin"
    builder.request = toolkit.ViewFunction("0x1::coin::balance", ["0xa11ce"], type_arguments=[apt])
    builder.versions = "4998:4999"
    builder.read()
    assert builder.result["ledger_timestamp"].notna().all()
    rows, octas = page(builder, "Rows"), int(builder.result["value"].iloc[-1])
    assert "in APT" in rows
    assert in_whole_coins(octas, 8) in rows
    assert f"{builder.result['ledger_timestamp'].iloc[-1]:%Y-%m-%d %H:%M:%S}" in rows
    assert "head_version" not in rows
    pd.testing.assert_frame_equal(executed(builder)["frame"], builder.result)


def test_a_saved_notebook_has_the_answer(builder):
    """The picture of the form has entries, program, value and figure; repr says what is asked."""
    builder.function, builder.versions = SIZE, "4000:-1/3"
    assert repr(builder) == "ViewBuilder(Node('embedded'), 0xcafe::registry::size)"
    builder.read()
    html = builder._bundle()["text/html"]
    assert '<img class="ltk-plot"' in html
    assert "&#x27;4000:-1/3&#x27;" in html
    assert "fetch_views(" in html


def test_words_of_an_empty_answer():
    """A frame in which no version answered has no numbers and no words about values."""
    frame = pd.DataFrame(
        {
            "ledger_version": pd.array([5], dtype="uint64[pyarrow]"),
            "value": pd.array([None], dtype="uint64[pyarrow]"),
            "gas_used": pd.array([None], dtype="uint64[pyarrow]"),
            "error_code": pd.array(["unreachable"], dtype="string[pyarrow]"),
        }
    )
    assert frame_words(frame) == ["1 read, version 5; 1 failed"]


# regressions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "versions",
    [
        [],
        {},
        range(0),
        b"12",
        True,
        1.5,
        [1, "a"],
        [True],
        10**30,
        pytest.param(object(), id="an object"),
        toolkit.FindSteps("0:-1"),
    ],
    ids=repr,
)
def test_versions_that_are_none_are_refused(builder, versions):
    """Text that is not a version, a list of versions or a plan is an error; the versions stay as they were."""
    builder.versions = 5
    with pytest.raises(InputError, match=r"^versions: "):
        builder.versions = versions
    assert builder.versions == 5


def test_a_search_for_steps_is_led_to_the_explorer(builder):
    """`fetch_views` takes one, this form does not: the message says what does."""
    with pytest.raises(InputError, match="use GasExplorer"):
        builder.versions = toolkit.FindSteps("0:-1")
    assert builder.versions is None


def test_versions_of_other_types_are_those_that_they_hold(builder):
    """A tuple and an array of versions are read as a list, an ascending range as a plan."""
    given = [((5, 7), [5, 7]), (np.array([1, 2]), [1, 2]), (range(20, 0, -10), [20, 10]), (range(0, 99, 10), "0:90:10")]
    for versions, shown in given:
        builder.versions = versions
        assert builder.versions == shown
        assert builder.errors == {}


def test_forms_at_work_at_once_leave_the_warnings_filters(node, monkeypatch):
    """Two forms that read in the background, the first ending first, do not change the filters of the process."""
    inside, leave = {}, {}

    def held(name, fetch):
        inside[name], leave[name] = threading.Event(), threading.Event()

        def run(*given, **options):
            inside[name].set()
            assert leave[name].wait(30)
            return fetch(*given, **options)

        return run

    monkeypatch.setattr(_readings, "fetch_views", held("views", toolkit.fetch_views))
    monkeypatch.setattr(_table_item_builder, "fetch_transactions", held("keys", toolkit.fetch_transactions))
    views, items = ViewBuilder(node, function=SIZE), TableItemBuilder(node, owner="0xcafe")
    views.versions, items.key, items.key_range = "0:99999/3", "alice", "-50:99999"
    before, show = list(warnings.filters), warnings.showwarning
    views._on_message(None, {"do": "read"}, None)
    assert inside["views"].wait(30)
    items._do_keys({})
    assert inside["keys"].wait(30)
    leave["views"].set()
    views._wait()
    leave["keys"].set()
    items._wait()
    assert (warnings.filters, warnings.showwarning) == (before, show)
    assert "do not exist yet; reading to 4,999" in page(views, "Figure")
    assert len(items.found_keys)
    views.close()
    items.close()


def test_a_function_of_a_contract_opens_in_the_form_that_takes_it(node):
    """Each form opens with a function of its kind, by position or name, and refuses another with a sentence."""
    coin = node.contract("0x1::coin")
    for form in (
        ViewBuilder(node, coin.supply),
        ViewBuilder(node, function=coin.supply),
        GasExplorer(node, coin.supply),
    ):
        assert form.function == "0x1::coin::supply"
        form.close()
    for make, given, said in [
        (
            SimulationBuilder,
            coin.supply,
            "accepts entry functions only; 0x1::coin::supply is a view function, use View",
        ),
        (
            ViewBuilder,
            coin.transfer,
            "accepts view functions only; 0x1::coin::transfer is an entry function, use Sim",
        ),
        (
            GasExplorer,
            coin.transfer,
            "GasExplorer accepts view functions only; 0x1::coin::transfer is an entry function",
        ),
        (ViewBuilder, coin.deposit, "ViewBuilder accepts view functions only; 0x1::coin::deposit is neither"),
        (ViewBuilder, RECORD, "function: expected address::module::function, or a function of a contract"),
    ]:
        with pytest.raises(InputError, match=re.escape(said)):
            make(node, given)
    with pytest.raises(InputError, match="expected either a function or a request, got both"):
        ViewBuilder(node, coin.supply, request=RECORD)


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ("0x1::aptos_coin::AptosCoi", "0x1::aptos_coin::AptosCoi: the module has no struct `AptosCoi`; did you mean"),
        ("vector<0x1::nomod::X>", "the module 0x1::nomod does not exist"),
        ("0x1::coin::CoinStore<0x1::aptos_coin::A>", "0x1::aptos_coin::A: the module has no struct `A`; it has the"),
    ],
)
def test_a_type_argument_that_does_not_exist_is_named_at_its_field(node, types, words):
    """Checking and reading say so before the function is blamed; another type is not blamed for it."""
    builder = ViewBuilder(node, "0x1::coin::supply")
    builder.type_arguments = types
    assert not builder.check()
    assert list(builder.errors) == ["type_arguments.0"]
    assert words in builder.errors["type_arguments.0"]
    builder.type_arguments = "0x1::aptos_coin::AptosCoin"
    assert builder.errors == {}
    assert builder.check()
    builder.close()
