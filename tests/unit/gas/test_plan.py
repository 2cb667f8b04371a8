"""The plan of a study: requests, time and what cannot be read, before anything of it is sent."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import toolkit
from tests.unit.client.fakes import FakeNode, refused
from toolkit import embedded
from toolkit.client._node import Node
from toolkit.errors import InputError, StudyError
from toolkit.frames._schema import PLAN
from toolkit.gas._observations import Source
from toolkit.gas._study import Study
from toolkit.gas.plan._estimate import CallEstimate, NodeEstimate, Plan
from toolkit.gas.plan._plan import pages_of, resolve

SIZE = {"view": "0xcafe::registry::size"}
MOVE = {"simulate": "0x1::aptos_account::transfer", "sender": "0xa11ce", "arguments": ["0xb0b", 100]}
REGISTER = {"committed": "0xcafe::registry::register"}


@pytest.fixture(scope="module")
def url():
    """Serve a short ledger whose first 600 versions or so are pruned."""
    ledger = embedded.Ledger.with_history(seed=7, versions=1_000, window=400, cache=True)
    with embedded.serve(ledger, port=0) as address:
        yield address


@pytest.fixture
def node(url):
    with toolkit.connect(url) as client:
        yield client


def node_plan(**changes):
    """Return a plan of one view at 1,000 versions."""
    call = CallEstimate("a", Source.VIEW, 0, 999, 1_000, 1_000)
    plan = NodeEstimate("n", None, False, 4, 999, 0, 0.1, 64, None, 0, 0, 0, (call,), ())
    return replace(plan, **changes)


def requests_of(plan):
    return {call.label: (call.requests, call.requests_most) for call in plan.nodes[0].calls}


def test_each_kind_of_call_has_its_requests(node):
    """A view one per version, a simulation one, committed transactions one per hundred."""
    study = Study(node=node, calls={"view": SIZE, "move": MOVE, "log": REGISTER}, versions="700:899")
    plan = study.plan()
    assert requests_of(plan) == {"view": (200, 200), "move": (1, 1), "log": (2, 2)}
    assert plan.requests == (203, 203)


@pytest.mark.parametrize(
    ("versions", "further"),
    [
        ("700:899", 0),  # every version is read
        ("700:899/50", 150),
        ("700:899:3", 132),  # up to version 898
        ([700, 720, 710, 720], 18),
        ([990], 0),
        ("700:", 0),
        ([700, 10**9], 400),  # as many as are made for one call
        (toolkit.FindSteps("700:"), 0),  # it has its own limit
    ],
)
def test_a_plan_says_how_many_requests_locate_steps_at_most(node, versions, further):
    """As many as versions between those of the plan, and 400 for each view; none for other calls."""
    study = Study(
        node=node, calls={"view": SIZE, "two": {"view": "0xb00c::order_book::depth"}, "move": MOVE}, versions=versions
    )
    plan = study.plan()
    assert [call.further_requests for call in plan.nodes[0].calls] == [further, further, 0]
    assert plan.further_requests == plan.document()["further_requests"] == 2 * further
    said = f"at most {2 * further:,} more requests"
    assert (said in repr(plan)) is (said in plan._repr_html_()) is (further > 0)


def test_a_search_has_a_least_and_a_most(node):
    """The grid at least, the limit at most; a range with fewer versions than the limit bounds it too."""
    search = toolkit.FindSteps("700:", initial=9, max_requests=50)
    assert requests_of(Study(node=node, calls={"view": SIZE}, versions=search).plan()) == {"view": (9, 50)}
    search = toolkit.FindSteps("990:", initial=5, max_requests=50)
    assert requests_of(Study(node=node, calls={"view": SIZE}, versions=search).plan()) == {"view": (5, 10)}


def test_the_plan_is_what_the_run_then_sends(node):
    """The observations of the run are as many as were planned."""
    study = Study(node=node, calls={"view": SIZE, "move": MOVE}, versions="700:999/37")
    assert study.plan().requests == (38, 38)
    assert len(study.run(progress=False).observations) == 38


def test_nothing_of_the_study_is_sent():
    """A node that would refuse every call of the study plans it all the same."""
    modules = ("GET /accounts/0xcafe/module/registry", "GET /accounts/0x1/module/aptos_account")
    fake = FakeNode({module: refused(403, "forbidden") for module in modules})
    plan = Study(node=Node("http://node.test/v1", transport=fake), calls={"view": SIZE, "move": MOVE}).plan()
    assert plan.requests[0] > 0
    assert {where for where, _, _ in fake.asked} <= {"GET ", *modules}


def test_what_is_pruned_is_told(node):
    """A range is clipped, listed versions are kept and counted; both are in the notes of the node."""
    oldest = node.ledger().oldest_version
    clipped = Study(node=node, calls={"view": SIZE}, versions="0:899").plan()
    assert clipped.notes == (f"{node.name}: versions 0 to {oldest - 1} are pruned; reading from {oldest}",)
    assert requests_of(clipped) == {"view": (900 - oldest, 900 - oldest)}
    listed = Study(node=node, calls={"view": SIZE}, versions=[5, 700, 9_999]).plan()
    assert f"1 of 3 listed versions: pruned, the oldest is {oldest}" in listed.notes[0]
    assert "1 of 3 listed versions: above the head 999" in listed.notes[1]


def test_versions_that_cannot_be_read_at_all_are_refused(node):
    """There is nothing to plan."""
    with pytest.raises(InputError, match=r"this node has versions \d+ to 999"):
        Study(node=node, calls={"view": SIZE}, versions="0:99").plan()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        pytest.param(SIZE | {"arguments": [1]}, "0xcafe::registry::size: expected 0 arguments, got 1", id="view"),
        pytest.param(SIZE | {"type_arguments": ["u8"]}, "expected 0 type arguments, got 1", id="type arguments"),
        pytest.param(
            MOVE | {"arguments": ["0xb0b", "many"]}, r"aptos_account::transfer arguments\[1\]", id="simulation"
        ),
    ],
)
def test_arguments_that_do_not_fit_are_told_before_anything_is_written(node, tmp_path, call, text):
    """Plan and run name the call, and the folder is free for the study once it is put right."""
    study = Study(node=node, calls={"other": REGISTER, "one": call}, versions="990:999")
    for ask in (study.plan, lambda: study.run(tmp_path / "run", progress=False)):
        with pytest.raises(StudyError, match=f"call 'one': .*{text}.* \\(checked against the code at version 999"):
            ask()
    assert not (tmp_path / "run").exists()


def test_all_calls_that_cannot_be_made_are_named_at_once(node, tmp_path):
    """A view, a simulation and committed transactions, each with its label and what may be meant; nothing is read."""
    calls = {
        "fits": SIZE,
        "typo": {"view": "0xcafe::registry::sise"},
        "module": {"simulate": "0xcafe::registri::register", "sender": "0xa11ce", "arguments": ["x"]},
        "log": {"committed": "0xcafe::registry::registr"},
        "kind": {"committed": "0xcafe::registry::size"},
    }
    study = Study(node=node, calls=calls, versions="700:999")
    for ask in (study.plan, lambda: study.run(tmp_path / "run", progress=False)):
        with pytest.raises(StudyError, match="4 of 5 calls cannot be made") as caught:
            ask()
        lines = str(caught.value).splitlines()[1:]
        assert [line.partition(":")[0] for line in lines] == [
            "call 'typo'",
            "call 'module'",
            "call 'log'",
            "call 'kind'",
        ]
        assert "did you mean `size`?" in lines[0]
        assert "did you mean `registry`?" in lines[1]
        assert "did you mean `register`?" in lines[2]
        assert "this is a view function, not an entry function" in lines[3]
    assert not (tmp_path / "run").exists()


def test_a_call_that_fits_the_code_of_some_versions_only_is_run(url):
    """A view that an upgrade adds, and one of a module that was deleted meanwhile, have rows with errors elsewhere."""
    ledger = embedded.Ledger.with_history(seed=7, versions=1_000, cache=True)
    with embedded.serve(ledger) as address, toolkit.connect(address) as client:
        calls = {
            "new": {"view": "0xfa17::vault::preview", "arguments": [5]},
            "old": {"view": "0xcafe::trial::greeting"},
        }
        rows = Study(node=client, calls=calls, versions="0:-1/40").run(progress=False).observations
    failed = rows["error_code"].notna()
    assert {name: 0 < failed[rows["label"] == name].sum() < 40 for name in calls} == {"new": True, "old": True}


def test_committed_transactions_may_have_a_range_of_their_own(node):
    """It is resolved and clipped like the plan's."""
    study = Study(node=node, calls={"log": {**REGISTER, "versions": "100:-101"}, "view": SIZE}, versions="900:")
    call, oldest = study.plan().nodes[0].calls[0], node.ledger().oldest_version
    assert (call.first, call.last, call.requests) == (oldest, 899, 3)
    resolved = resolve(study, node)
    assert resolved.range_of(study.calls[0]) == (oldest, 899)
    assert resolved.notes == (f"log: versions 100 to {oldest - 1} are pruned; reading from {oldest}",)


def test_only_the_own_range_of_committed_transactions_is_read(node):
    """Rows outside of it are not kept, though another call reads those pages."""
    calls = {
        "part": {**REGISTER, "versions": "900:"},
        "all": {"committed": "0xb00c::order_book::place"},
    }
    rows = Study(node=node, calls=calls, versions="600:").run(progress=False).observations
    assert rows[rows["label"] == "part"]["ledger_version"].min() >= 900
    assert rows[rows["label"] == "all"]["ledger_version"].min() < 900


def test_calls_of_committed_transactions_share_their_pages(node):
    """Two functions over one range are looked for in the same pages, which are sent once."""
    calls = {"one": REGISTER, "two": {"committed": "0xb00c::order_book::place"}}
    plan = Study(node=node, calls=calls, versions="700:899").plan()
    assert [call.requests for call in plan.nodes[0].calls] == [2, 2]
    assert plan.requests == (2, 2)


def test_ranges_apart_are_read_without_what_lies_between(node):
    """Two ranges of a hundred versions are two pages."""
    calls = {
        "early": {**REGISTER, "versions": "700:799"},
        "late": {"committed": "0xb00c::order_book::place", "versions": "900:999"},
    }
    study = Study(node=node, calls=calls, versions="990:999")
    assert study.plan().requests == (2, 2)
    run = study.run(progress=False)
    assert run.observations["ledger_version"].between(700, 799).sum() > 0
    assert run.observations["ledger_version"].between(900, 999).sum() > 0
    assert not run.observations["ledger_version"].between(800, 899).any()


def test_a_page_that_fails_is_a_row_of_each_call_it_may_hold():
    """A node that offers no list of transactions leaves a run of rows that say so."""
    offered = {"/transactions", "/accounts/0xcafe/module/registry", "/accounts/0x1/module/m"}
    fake = FakeNode({f"GET {path}": refused(403, "api_disabled") for path in offered})
    calls = {"log": REGISTER, "late": {"committed": "0x1::m::f", "versions": "950:960"}}
    study = Study(node=Node("http://node.test/v1", transport=fake), calls=calls, versions="801:1000")
    rows = study.run(progress=False).observations
    told = sorted(zip(rows["label"], rows["ledger_version"], rows["error_code"], strict=True))
    assert told == [("late", 950, "api_disabled"), ("log", 801, "api_disabled"), ("log", 901, "api_disabled")]


@pytest.mark.parametrize(
    ("ranges", "pages"),
    [
        ([], []),
        ([(0, 0)], [(0, 1)]),
        ([(0, 249)], [(0, 100), (100, 100), (200, 50)]),
        ([(50, 120), (0, 99)], [(0, 100), (100, 21)]),
        ([(0, 9), (500, 509)], [(0, 10), (500, 10)]),
        ([(0, 500), (100, 200)], [(0, 100), (100, 100), (200, 100), (300, 100), (400, 100), (500, 1)]),
    ],
)
def test_pages_hold_every_version_once(ranges, pages):
    """Whatever the ranges share."""
    assert pages_of(ranges) == pages


def test_the_time_rests_on_the_pace_the_latency_or_the_machine():
    """The slowest of the three counts."""
    assert node_plan(pace=10.0).seconds == (100.0, 100.0)
    assert node_plan(in_flight=10).seconds == (10.0, 10.0)
    assert node_plan(latency_s=0.0001).seconds == (0.5, 0.5)
    assert node_plan(pace=10.0, rounds=5, latency_s=2.0).seconds == (100.0, 110.0)


def test_the_words_say_what_the_time_rests_on():
    """Measured or asked for."""
    assert "(10 requests per second; the configured pace)" in repr(Plan("t", (node_plan(pace=10.0),)))
    assert "(100 requests per second; 100.0 ms measured for one response)" in repr(
        Plan("t", (node_plan(in_flight=10),))
    )


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        (0, "about 1 s"),
        (90, "about 1.5 min"),
        (36_000, "about 10 h"),
        (1_000_000, "about 11.6 days"),
    ],
)
def test_durations_are_told_as_people_do(requests, words):
    """In the unit that fits."""
    call = replace(node_plan().calls[0], requests=requests, requests_most=requests)
    assert f"time: {words} (" in repr(Plan("t", (node_plan(pace=1.0, calls=(call,)),)))


def test_several_nodes_are_summed():
    """Requests and time of one node after the other."""
    plan = Plan("t", (node_plan(pace=10.0), node_plan(pace=20.0, notes=("x",))))
    assert plan.requests == (2_000, 2_000)
    assert plan.seconds == (150.0, 150.0)
    assert plan.notes == ("n: x",)


def test_the_frame_and_the_document_say_the_same(node):
    """One row per call; the document is JSON."""
    plan = Study(node=node, calls={"view": SIZE, "move": MOVE}, versions="700:799").plan()
    frame = plan.to_frame()
    assert list(frame.columns) == PLAN.names
    assert frame["requests"].tolist() == [100, 1]
    document = json.loads(json.dumps(plan.document()))
    assert document["requests"] == [101, 101]
    assert [call["label"] for call in document["nodes"][0]["calls"]] == ["view", "move"]


def test_hostile_labels_are_harmless():
    """In text and in HTML."""
    call = replace(node_plan().calls[0], label="<script>\x1b[31m")
    plan = Plan("<b>\x1b", (node_plan(calls=(call,)),))
    for text in (repr(plan), plan._repr_html_()):
        assert "\x1b" not in text
    assert "<script>" not in plan._repr_html_()
    assert "Plan of &lt;b&gt;" in plan._repr_html_()


def test_a_pace_is_measured_by_one_answer_only():
    """A second one would wait for the pace, and the wait would be taken for latency."""
    fake = FakeNode()
    study = Study(node=Node("http://node.test/v1", transport=fake, requests_per_second=1_000), calls={"view": SIZE})
    assert study.plan().nodes[0].pace == 1_000
    assert len(fake.sent("GET ")) == 2
