"""Study files: what they take, and what each mistake is told as."""

from __future__ import annotations

import inspect
from operator import attrgetter

import pytest

import toolkit
from tests.unit.client.fakes import URL, FakeNode
from toolkit.client._node import Node
from toolkit.client._versions import FindSteps
from toolkit.errors import StudyError
from toolkit.gas._study import Call, Study
from toolkit.wire import EntryFunction, Script, SimulationRequest, ViewFunction

GOOD = """
title = "Good"
node = "mainnet"
[versions]
plan = "0:-1/200"
[[call]]
label = "supply"
view = "0x1::coin::supply"
type_arguments = ["0x1::aptos_coin::AptosCoin"]
[[call]]
label = "transfer"
simulate = "0x1::aptos_account::transfer"
sender = "0xa11ce"
arguments = ["0xb0b", 100]
[[call]]
label = "registrations"
committed = "0xcafe::registry::register"
"""


@pytest.fixture
def load(tmp_path):
    """Write a study file and load it."""

    def write_and_load(text):
        place = tmp_path / "study.toml"
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Study.load(place)

    return write_and_load


def edited(old, new):
    assert old in GOOD
    return GOOD.replace(old, new, 1)


class TestGoodStudies:
    """What a study says."""

    def test_a_file_is_read(self, load):
        """Title, node, plan and the three kinds of call."""
        study = load(GOOD)
        assert (study.title, study.nodes, study.versions.plan) == ("Good", ("mainnet",), "0:-1/200")
        assert [call.name for call in study.calls] == ["supply", "transfer", "registrations"]
        assert [call.source for call in study.calls] == ["view@version", "simulate@now", "committed"]
        assert study.calls[0].request == ViewFunction(
            "0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"]
        )
        assert study.calls[1].request == SimulationRequest(
            EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100]),
            sender="0xa11ce",
            gas_unit_price=100,
        )

    @pytest.mark.parametrize(
        ("old", "new", "name", "found"),
        [
            ('node = "mainnet"', 'nodes = ["mainnet", "testnet"]', "nodes", ("mainnet", "testnet")),
            ('node = "mainnet"', "", "nodes", ("embedded",)),
            ('"0:-1/200"', "[1, 5, -1]", "versions.plan", [1, 5, -1]),
            ('plan = "0:-1/200"', 'find_steps = "0:-1"\ninitial = 9', "versions.search", FindSteps("0:-1", initial=9)),
        ],
    )
    def test_nodes_and_versions_have_other_forms(self, load, old, new, name, found):
        """Several networks, or the embedded node if none is named; a list of versions, or a search."""
        assert attrgetter(name)(load(edited(old, new))) == found

    def test_a_call_without_a_label_is_named_by_its_function(self, load):
        """The label is for people, so the address is left out."""
        assert load(edited('label = "supply"', "")).calls[0].name == "coin::supply"

    def test_the_document_makes_the_same_study(self, load):
        """What a run stores gives the study again, digest included."""
        study = load(GOOD)
        again = Study.from_document(study.document())
        assert again.calls[1].request == study.calls[1].request
        assert again.digest == study.digest
        assert again.document() == study.document()

    def test_the_digest_tells_studies_apart(self, load):
        """Every part that is run is in the digest."""
        digests = {
            load(text).digest
            for text in (
                GOOD,
                edited("200", "201"),
                edited("mainnet", "testnet"),
                edited("100]", "101]"),
                edited("a11ce", "a11cf"),
            )
        }
        assert len(digests) == 5

    def test_python_and_file_make_the_same_calls(self, load):
        """The same requests have the same fingerprints, however the study was written."""
        made = Study(
            calls={
                "supply": ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"]),
                "transfer": SimulationRequest(
                    EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100]), sender="0xa11ce"
                ),
                "registrations": {"committed": "0xcafe::registry::register"},
            },
            versions="0:-1/200",
            node="mainnet",
            title="Good",
        )
        assert [call.fingerprint for call in made.calls] == [call.fingerprint for call in load(GOOD).calls]

    def test_fingerprints_do_not_depend_on_the_label(self):
        """A renamed call is the same call; another argument is another."""
        one = Call(label="a", view="0x1::m::f", arguments=(1,))
        assert one.fingerprint == Call(label="b", view="0x1::m::f", arguments=(1,)).fingerprint
        assert one.fingerprint == Call(label="b", view="0x01::m::f", arguments=("1",)).fingerprint
        assert one.fingerprint != Call(label="a", view="0x1::m::f", arguments=(2,)).fingerprint
        assert Call(view="0x1::m::f").fingerprint != Call(committed="0x1::m::f").fingerprint

    def test_versions_take_every_form_of_python(self):
        """Text, lists, ranges and searches."""
        call = [ViewFunction("0x1::m::f")]
        assert Study(calls=call, versions=[1, 2]).versions.plan == [1, 2]
        assert Study(calls=call, versions=range(0, 10, 5)).versions.plan == [0, 5]
        assert Study(calls=call, versions=FindSteps("0:9", initial=3)).versions.search == FindSteps("0:9", initial=3)

    def test_a_node_in_hand_is_taken(self):
        """A Node is named without credentials, and is the one the study runs on."""
        node = Node(URL.replace("http://", "http://user:secret@"), transport=FakeNode())
        study = Study(calls=[ViewFunction("0x1::m::f")], node=node)
        assert study.nodes == (URL,)
        assert "secret" not in str(study.document()) + repr(study)

    def test_the_demo_ships(self):
        """`demo` is a study that needs no file, with the three kinds of call."""
        demo = Study.load("demo")
        assert demo.nodes == ("embedded",)
        assert {call.source for call in demo.calls} == {"view@version", "simulate@now", "committed"}


MISTAKES = [
    # what was written, what the text must name
    pytest.param("title = ", "not TOML", id="not TOML"),
    pytest.param(GOOD.encode() + b"\xff", "not UTF-8", id="not UTF-8"),
    pytest.param(
        edited('title = "Good"', "titel = 1"), "`titel` is not a key of a study file; did you mean `title`", id="key"
    ),
    pytest.param(edited('title = "Good"', "title = 5"), "`title`", id="title is a number"),
    pytest.param(edited("[[call]]", "[[calls]]"), "`calls` is not a key of a study file", id="calls"),
    pytest.param(edited("[versions]", "[version]"), "`version` is not a key", id="version"),
    pytest.param(edited('plan = "0:-1/200"', ""), "versions: give either plan or find_steps", id="neither"),
    pytest.param(edited('200"', '200"\nfind_steps = "0:-1"'), "versions: give either plan or find_steps", id="both"),
    pytest.param(edited("plan", "plna"), "versions: `plna` is not a key here; did you mean `plan`", id="plan key"),
    pytest.param(
        edited("0:-1/200", "0-1"),
        "versions: version plan '0-1' is not understood; the forms are",
        id="plan",
    ),
    pytest.param(
        edited('plan = "0:-1/200"', 'find_steps = "0:-1/5"'), "versions: FindSteps takes a plain range", id="search"
    ),
    pytest.param(
        edited('plan = "0:-1/200"', 'find_steps = "0:-1"\ninitial = 1'), "versions: .*initial=1", id="initial"
    ),
    pytest.param(
        edited('plan = "0:-1/200"', 'find_steps = "0:-1"\ninitial = "x"'), "versions, `initial`", id="no number"
    ),
    pytest.param(
        edited("view = ", "veiw = "),
        r"call 1 \('supply'\): `veiw` is not a key here; did you mean `view`",
        id="view key",
    ),
    pytest.param(
        edited('view = "0x1::coin::supply"', ""),
        r"call 1 \('supply'\): give exactly one of view, simulate, committed",
        id="none",
    ),
    pytest.param(edited("view = ", 'committed = "0x1::m::f"\nview = '), r"call 1 .*got view and committed", id="two"),
    pytest.param(
        edited("0x1::coin::supply", "0x1::supply"), r"call 1 \('supply'\), `view`: .*0x1::supply", id="function id"
    ),
    pytest.param(edited("0x1::coin::supply", "coin::supply::x"), r"call 1 \('supply'\), `view`: .*coin", id="address"),
    pytest.param(
        edited('AptosCoin"]', 'AptosCoin<"]'), r"call 1 \('supply'\), `type_arguments.1`: .*AptosCoin<", id="type"
    ),
    pytest.param(
        edited('sender = "0xa11ce"', ""), r"call 2 \('transfer'\), `sender`: a simulation requires one", id="no sender"
    ),
    pytest.param(edited("0xa11ce", "alice"), r"call 2 \('transfer'\), `sender`: .*alice", id="sender"),
    pytest.param(
        edited('sender = "0xa11ce"', 'sender = "0x1"\ngas_unit_price = -1'),
        r"call 2 \('transfer'\), `gas_unit_price`: .*got -1",
        id="price",
    ),
    pytest.param(
        edited('label = "registrations"', 'fee_payer = "0x1"'),
        "call 3, `fee_payer`: only simulate calls can have this key",
        id="sender of none",
    ),
    pytest.param(edited('"transfer"', '"supply"'), r"call 2 \('supply'\) has the same label", id="label twice"),
    pytest.param(edited("100]", "1.5]"), r"call 2 \('transfer'\), `arguments.2`: .*1.5", id="a float"),
    pytest.param(
        edited('arguments = ["0xb0b", 100]', "arguments = 5"),
        r"call 2 \('transfer'\), `arguments`: expected a list, got 5",
        id="arguments",
    ),
    pytest.param(
        edited('node = "mainnet"', 'node = "mainnet"\nnodes = ["testnet"]'), "either node or nodes", id="node and nodes"
    ),
    pytest.param(edited('node = "mainnet"', "node = 5"), "node: node must be a str", id="node is a number"),
    pytest.param(GOOD[: GOOD.index("[[call]]")], "a study must have at least one call", id="no calls"),
    pytest.param(
        GOOD
        + '[[call]]\nlabel = "again"\nview = "0x01::coin::supply"\ntype_arguments = ["0x1::aptos_coin::AptosCoin"]\n',
        r"call 4 \('again'\) has the same request as call 1 \('supply'\)",
        id="request twice",
    ),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES)
def test_a_mistake_is_told_with_its_place(load, text, words):
    """One StudyError: the file, the place in it, what is wrong; one line, no traceback words of a library."""
    with pytest.raises(StudyError, match=words) as caught:
        load(text)
    told = str(caught.value)
    assert "study.toml" in told
    assert "\n" not in told
    assert "pydantic" not in told
    assert len(told) < 500


class TestOtherMistakes:
    """What is not a matter of the file's content."""

    def test_a_missing_file_names_those_that_ship(self, tmp_path):
        """The refusal says what could be loaded instead."""
        with pytest.raises(StudyError, match=r"No such file.*study new .*`demo` is a study in the package"):
            Study.load(tmp_path / "none.toml")

    def test_a_folder_is_no_study(self, tmp_path):
        """A folder is refused as such."""
        with pytest.raises(StudyError, match="directory"):
            Study.load(tmp_path)

    def test_a_huge_file_is_not_read(self, tmp_path):
        """A study is small; a database dump is not one."""
        place = tmp_path / "big.toml"
        place.write_bytes(b"#" * 1_000_001)
        with pytest.raises(StudyError, match="larger than 1,000,000 bytes"):
            Study.load(place)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"calls": "0x1::m::f"}, r"got '0x1::m::f'; write \['0x1::m::f'\]"),
            *(({"calls": calls}, f"got {type(calls).__name__}") for calls in (5, None, {1, 2})),
            ({"calls": ["0x1::m::f", b"0x1::m::g"]}, "call 2: expected a function id, a ViewFunction.*got bytes"),
            ({"calls": {"x": 5}}, "call 'x': expected a function id, a ViewFunction.*got int"),
            ({"calls": {"x": SimulationRequest(Script(b"\x01"), sender="0x1")}}, "scripts, batches"),
            (
                {
                    "calls": {
                        "x": SimulationRequest(EntryFunction("0x1::m::f"), sender="0x1", replay_protection_nonce=5)
                    }
                },
                "only",
            ),
            ({"calls": ["0x1::m::f"], "titel": "x"}, "`titel` is not a key here"),
            *(
                (
                    {"calls": ["0x1::m::f"], "versions": versions},
                    f"versions: expected a version plan .*, got {versions}",
                )
                for versions in (5, None, 1.5)
            ),
        ],
    )
    def test_what_a_study_cannot_keep_is_refused(self, options, words):
        """By place and type: calls, versions, scripts and fields that it does not store, and misspelt options."""
        with pytest.raises(StudyError, match=words):
            Study(**options)

    def test_a_function_is_a_call(self):
        """As text, or as a ViewFunction."""
        assert Study(calls=["0x1::m::f"]).calls == Study(calls=[ViewFunction("0x1::m::f")]).calls


def test_help_on_a_study_is_plain():
    """The signature tells names and types as a reader writes them."""
    told = str(inspect.signature(Study))
    assert "requests_per_second: 'float | None' = None" in told
    assert "Annotated" not in told


def test_thresholds_and_waivers_are_made_in_python():
    """The types that the docstrings name are public."""
    waiver = toolkit.Waiver(call="a", reason="known", expires="2026-12-31")
    study = Study(calls={"a": {"view": "0x1::m::f"}}, thresholds=toolkit.Threshold(percent=2), waivers=[waiver])
    assert (study.thresholds, study.waivers) == (toolkit.Threshold.of("2%"), (waiver,))


def test_bytes_are_arguments_of_a_study():
    """Bytes as arguments survive being written down, with the same fingerprint."""
    study = Study(calls=[ViewFunction("0x1::m::f", arguments=[b"\xff\x00"])])
    again = Study.from_document(study.document())
    assert again.calls[0].fingerprint == study.calls[0].fingerprint


def test_a_study_and_its_run_are_shown_in_a_line_and_a_table():
    """Title, number of calls, versions and node; text of a study file is escaped."""
    bad = "<img src=x onerror=alert(1)>"
    study = Study(title=bad, calls={bad: "0x1::chain_id::get"}, versions="0:-1/2", node="https://u:pw@node.test/v1")
    assert repr(study) == f"Study({bad!r}, 1 call, versions 0:-1/2, https://node.test/v1)" == str(study)
    assert repr(Study.load("demo")).endswith("10 calls, versions search for steps in 0:-1, embedded)")
    html = study._repr_html_()
    assert "<img" not in html
    assert "pw" not in html
    run = Study(title=bad, calls=["0x1::chain_id::get"], versions="0:-1/2").run(progress=False)
    assert "<img" not in run._repr_html_()
    assert "complete" in run._repr_html_()
