"""Text from the chain that would steer a terminal, a page or a spreadsheet."""

from __future__ import annotations

import csv
import inspect
import pickle
import traceback
import unicodedata
import warnings

import msgspec
import pandas as pd
import pytest

import toolkit
from tests.unit.client.fakes import URL, FakeNode, answer, function, module, struct
from tests.unit.plots import synthetic_run
from tests.unit.plots.synthetic_hostile import HOSTILE
from toolkit import errors
from toolkit._present.tables import csv_table
from toolkit._present.text import HIDDEN
from toolkit.cli._console import write_frame
from toolkit.dtypes import to_arrow
from toolkit.gas._sentences import step_lines
from toolkit.move import ErrorAbi, decode_module_abi

NASTY = "a\x1b[2Jb\x07\x9b\u202ec\u2066d\u200fe\u200bf\ufeffg\ud800h\u2028i\r\x00"
FORMULAS = ["\n=cmd()", " =cmd()", "\uff1dcmd()", "|calc", "%0A", "=cmd|'/c calc'!A1", "\t=1", "+1", "@x"]


def hidden_in(text):
    return {char for char in text.replace("\n", "") if unicodedata.category(char) in HIDDEN}


def every_error():
    """Return an error of each class of the tree, made with hostile text."""
    for name in errors.__all__:
        one = getattr(errors, name)
        if issubclass(one, errors.ToolkitError):  # the warning quotes these
            yield one(NASTY, status=400) if issubclass(one, errors.NodeError) else one(NASTY)


@pytest.mark.fault("control, bidirectional and zero-width characters or lone surrogates in an error's text", "escaped")
@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: type(error).__name__)
def test_no_error_carries_characters_that_steer_a_terminal(error):
    """In the message, its notes, its traceback and its copy from another process."""
    error.add_note(NASTY)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert str(copy) == str(error)
    for text in (str(error), str(copy), repr(error), "".join(traceback.format_exception(error))):
        assert "\\x1b[2J" in text
        assert "\\u202e" in text
        assert hidden_in(text) == set()


@pytest.mark.fault("hostile labels and node names in a run's steps", "`Run.explain()` escapes them, one line each")
def test_steps_in_words_carry_no_hidden_characters():
    """A label cannot begin a line of its own."""
    steps = synthetic_run.steps(rename=HOSTILE)
    other = steps.assign(node=NASTY.replace("\ud800", ""))
    lines = step_lines(pd.concat([steps, other], ignore_index=True))
    assert hidden_in("".join(lines)) == set()
    assert not any("\n" in line or line.startswith("# next line") for line in lines)
    assert any("\\u202eevil" in line for line in lines)


@pytest.mark.fault(
    "text that a spreadsheet would run as a formula, in a command's output file or a report", "stays text"
)
def test_no_writer_of_csv_leaves_a_formula(tmp_path):
    """Both writers, headings included; negative numbers stay numbers."""
    frame = pd.DataFrame(
        {
            "text": pd.array(FORMULAS, dtype="string[pyarrow]"),
            "=heading": pd.array([-(2**100)] * len(FORMULAS), dtype="i128"),
            "change": pd.array([-5] * len(FORMULAS), dtype="int64[pyarrow]"),
        }
    )
    write_frame(frame, tmp_path / "x.csv")
    written = (tmp_path / "x.csv").read_bytes().decode()
    for text in (written, csv_table(to_arrow(frame))):
        head, *rows = csv.reader(text.splitlines(keepends=True))
        assert head == ["text", "'=heading", "change"]
        assert [row[0].replace("\r", "") for row in rows] == [f"'{one}" for one in FORMULAS]
        assert {tuple(row[1:]) for row in rows} == {(str(-(2**100)), "-5")}


@pytest.mark.fault("`$...$` in the HTML of results, plans and comparisons", "wrapped in an element that MathJax skips")
def test_html_of_results_is_not_for_mathjax():
    """Results of calls, plans, comparisons: each says so in its outermost element."""
    from toolkit._present.notebook import facts_html
    from toolkit.gas._compare import compare

    run = synthetic_run.observations(rename=HOSTILE)
    shown = [facts_html("x", [("value", "$x^2$")]), compare(run, run)._repr_html_()]
    with toolkit.connect() as node:
        shown.append(node.view("0x1::chain_id::get")._repr_html_())
        study = toolkit.Study.model_validate(
            {"title": "$x$", "calls": [{"view": "0x1::chain_id::get"}], "versions": "-5:"}
        )
        shown.append(study.plan()._repr_html_())
    assert all(html.startswith('<div class="mathjax_ignore') for html in shown)


@pytest.mark.fault(
    "hostile names, types and error texts in a module's ABI", "escaped in tables, documentation and messages"
)
def test_a_hostile_module_cannot_steer_what_shows_it():
    """Its names are neither markup nor control characters, and none of them is called by being shown."""
    evil = f"<img src=x onerror=alert(1)>{NASTY.replace(chr(0xD800), '')}"
    functions = [
        function(evil, [evil, "u64"], [evil]),
        function("_repr_html_", [], ["u8"]),
        function("_ipython_display_", [], ["u8"]),
        function("fine", ["u8"], ["u8"], visibility=evil, is_view=False),
    ]
    structs = [struct(evil, {evil: evil}, abilities=[evil], generic_type_params=[{"constraints": [evil]}])]
    abi = decode_module_abi(module("shop", address="0xcafe", functions=functions, structs=structs))
    abi = msgspec.structs.replace(abi, errors=(ErrorAbi(1, evil, evil),))
    transport = FakeNode()
    contract = toolkit.Node(URL, transport=transport, abis={("0xcafe", "shop"): abi}).contract("0xcafe::shop")
    html = contract._repr_html_() + contract[evil]._repr_html_() + contract.fine._repr_html_()
    assert "<img" not in html
    shown = [str(contract), repr(contract), repr(contract[evil]), contract[evil].__doc__, contract.fine.__doc__, html]
    shown.append(str(inspect.signature(contract[evil])))
    for attempt in (lambda: contract.fine(1), lambda: contract[evil](1)):
        with pytest.raises(toolkit.InputError) as caught:
            attempt()
        shown.append(str(caught.value))
    with pytest.raises(AttributeError) as unknown:
        _ = contract.other
    shown.append(str(unknown.value))
    assert "\\x1b[2J" in str(contract)
    assert [hidden_in(text) for text in shown] == [set()] * len(shown)
    assert [path for path, *_ in transport.asked] == ["GET "]


LONG = "T" * 60_000
LONG_TYPES = {
    "a name": f"0xcafe::m::{LONG}",
    "type arguments": f"0xcafe::m::Many<{'u8, ' * 15_000}u8>",
    "nested": "vector<" * 60 + f"0xcafe::m::{LONG}" + ">" * 60,
    "an object": f"0x1::object::Object<0xcafe::m::{LONG}>",
    "a function": f"|{'u8, ' * 15_000}u8|",
    "not a type": "0x1::" + "?" * 60_000,
    "beyond the limit": f"0xcafe::m::{LONG * 4}",
}


@pytest.mark.fault(
    "a type or name with tens of thousands of characters in an answer", "the message has at most 1,700 characters"
)
@pytest.mark.parametrize("kind", LONG_TYPES)
@pytest.mark.parametrize("encoding", ["json", "bcs"])
def test_a_message_that_quotes_a_long_type_is_short(kind, encoding):
    """Views, arguments, struct fields, resources, events and contracts: all quote types and names of the ABI."""
    of = LONG_TYPES[kind]
    many = [{"constraints": []}] * 15_001
    shop = module(
        "m",
        address="0xcafe",
        functions=[function("f", [], [of]), function("g", [of], ["u8"]), function("h", ["0xcafe::m::Some"], ["u8"])],
        structs=[
            struct("Many", {LONG: "u8"}, generic_type_params=many),
            struct(LONG, {"a": of}),
            struct("Some", {LONG: "u8", f"b{LONG}": "u8"}),
        ],
    )
    routes = {f"GET /accounts/{cafe}/module/m": answer(shop) for cafe in ("0xcafe", f"0x{'cafe':0>64}")}
    node = toolkit.Node(URL, transport=FakeNode(routes | {"POST /view": answer([{"a": 1}], gas=3)}), encoding=encoding)
    messages = []
    for read in (
        lambda: node.view("0xcafe::m::f", ledger_version=5),
        lambda: node.view("0xcafe::m::g", [{"a": 1}], ledger_version=5),
        lambda: node.view("0xcafe::m::g", [1, 2], ledger_version=5),
        lambda: node.view("0xcafe::m::h", [{"a": 1}], ledger_version=5),
        lambda: node.contract("0xcafe::m").g(1),
        lambda: toolkit.fetch_views(node, "0xcafe::m::f", [5], progress=False),
        lambda: toolkit.fetch_resources(node, "0x1", of, [5], progress=False),
        lambda: toolkit.fetch_events(node, of, versions=[5], progress=False),
    ):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                read()
        except toolkit.ToolkitError as error:
            messages.append(str(error))
    assert len(messages) >= 4
    assert max(map(len, messages)) <= 1_700


def test_every_message_has_a_bound():
    """Whatever an error quotes; its copy from another process has the same message."""
    for error in (errors.InputError("x" * 200_000), errors.NodeError("x" * 200_000, status=400)):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
        assert str(error) == str(copy) == "x" * 8_000 + "… (192,000 more characters)"
