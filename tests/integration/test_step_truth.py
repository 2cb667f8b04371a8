"""The demo study against the truth: a dense sweep of the ledger itself says where every step is, its history says why."""

from __future__ import annotations

import pytest

import toolkit
from tests.faults import faulty
from tests.integration.truth import Outcome, dense_steps, true_kind
from toolkit import embedded
from toolkit.frames._columns import plain_columns
from toolkit.gas._observations import Source
from toolkit.gas._steps import Step
from toolkit.gas._study import Call
from toolkit.gas.causes._finding import causes_of
from toolkit.move import parse_type_tag

TOLD = [
    "label",
    "version_after",
    "gas_before",
    "success_before",
    "error_before",
    "gas_after",
    "success_after",
    "error_after",
]


def searched(ledger, out, *, calls=None):
    """Run the demo study's views over HTTP; return the run and the requests that the server counted."""
    demo = toolkit.Study.load("demo")
    views = [call for call in calls or demo.calls if call.source == Source.VIEW]
    with embedded.serve(ledger) as url, faulty(url) as counting, toolkit.connect(counting.node_url) as node:
        study = toolkit.Study(title=demo.title, node=node, calls=views, versions=demo.versions)
        return study.run(out, progress=False), len(counting.requests)


def found_steps(run):
    """Return what a run found, as `dense_steps` tells it, by label."""
    columns = plain_columns(run.steps, TOLD)
    found = {call.name: {} for call in run.study.calls}
    for label, version, *sides in zip(*columns.values(), strict=True):
        found[label][version] = (Outcome(*sides[:3]), Outcome(*sides[3:]))
    return found


@pytest.fixture(scope="module")
def demo(ledger, tmp_path_factory):
    """Run the demo study once; (run, requests)."""
    return searched(ledger, tmp_path_factory.mktemp("truth") / "run")


@pytest.fixture(scope="module")
def run(demo):
    """Return the demo study's run."""
    return demo[0]


@pytest.fixture(scope="module")
def truth(ledger, run):
    """Return the true steps of each call, by label."""
    return {call.name: dense_steps(ledger, call) for call in run.study.calls}


def test_every_step_is_found_exactly_and_nothing_else(run, truth):
    """Versions, gas, success and error of every step on both sides, for every call; no step more, none less."""
    assert run.steps["exact"].all()
    assert found_steps(run) == truth
    assert all(truth.values())


@pytest.mark.parametrize("versions", ["0:-1/33", "around"])
def test_the_same_steps_and_causes_whichever_versions_are_planned(run, ledger, versions, tmp_path):
    """Even plans, and a list of versions around each step: every step of the search, with its cause and its words.

    The readings are those of the plan; what locates the steps is beside them, and no more than the plan says.
    """
    if versions == "around":
        ends = {0, ledger.head, *run.steps["version_after"]}
        versions = sorted({min(max(0, at + by), ledger.head) for at in ends for by in (-7, 5)})
    with (
        embedded.serve(ledger) as url,
        faulty(url) as counting,
        toolkit.connect(counting.node_url, cache=None) as node,
    ):
        study = toolkit.Study(node=node, calls=list(run.study.calls), versions=versions)
        plan = study.plan()
        before = len(counting.requests)
        found = study.run(tmp_path / "run", progress=False)
    columns = [name for name in run.steps.columns if name != "node"]
    assert plain_columns(found.steps, columns) == plain_columns(run.steps, columns)
    assert len(found.observations) == plan.requests[1]
    further = found.manifest["nodes"][0]["further_requests"]
    assert 0 < further <= plan.further_requests
    assert len(counting.requests) - before >= plan.requests[1] + further
    assert "locate" not in found.explain()


def test_the_search_costs_less_than_a_twentieth_of_a_sweep(demo, ledger):
    """Every request that the server got, for causes too, against one per version and call."""
    run, requests = demo
    assert requests < 0.05 * len(run.study.calls) * (ledger.head + 1)


def test_every_cause_is_the_true_one(run, ledger):
    """The history marks its own changes; every other step comes from ordinary transactions, so its cause is `state`."""
    told = plain_columns(run.steps, ["version_after", "cause"])
    assert told["cause"] == [true_kind(ledger, version) for version in told["version_after"]]


def test_every_kind_that_a_ledger_can_cause_is_there(run, ledger):
    """Schedule, code, configuration, state, and several at once; each mark that moves a call of the study is found."""
    assert set(run.steps["cause"]) == {"schedule", "code", "config", "state", "mixed"}
    steps = set(plain_columns(run.steps, ["version_after"])["version_after"])
    assert {mark.kind for mark in ledger.milestones if mark.version in steps} == {
        "schedule",
        "code",
        "config",
        "state",
        "mixed",
    }


def test_the_transaction_of_every_step_is_told(run, ledger):
    """Hash, type, sender and function, as the ledger has them."""
    names = ["version_after", "transaction_hash", "transaction_type", "transaction_sender", "transaction_function"]
    columns = plain_columns(run.steps, names)
    for version, told_hash, kind, sender, function in zip(*columns.values(), strict=True):
        transaction = ledger.transaction(version)
        payload = transaction.request.raw.payload
        called = getattr(payload, "function", None)  # a script has none
        assert (told_hash, kind) == (transaction.hash, "user_transaction")
        assert sender == transaction.request.raw.sender
        assert function == (None if called is None else str(called))


def test_state_that_is_named_was_written_by_that_transaction(run, ledger):
    """For each step of ordinary life, the ledger's own writes hold the resource that is named first."""
    rows = run.steps[run.steps["cause"] == "state"]
    for version, words in zip(rows["version_after"], rows["explanation"], strict=True):
        named = words.partition(" wrote ")[2].partition(" of ")
        tag = named[0] if "::" in named[0] else named[2].partition(".")[0]
        written = {key.name for key in ledger.transaction(int(version)).output.writes if key.kind == "resource"}
        assert str(parse_type_tag(tag)) in written
    assert len(rows) > 10


@pytest.mark.parametrize(
    ("label", "text", "kind", "words"),
    [
        (
            "vault share price",
            "0xfa17::vault upgraded",
            "code",
            "upgraded the called module 0xfa17::vault",
        ),
        (
            "desk quote",
            "0xfeed::price_feed upgraded",
            "code",
            "upgraded module 0xfeed::price_feed, a dependency of the called module 0xde5c::desk",
        ),
        ("APT supply", "feature 60 on", "config", "switched on feature flag 60 COIN_TO_FUNGIBLE_ASSET_MIGRATION"),
        ("names registered", "tenfold", "schedule", "459 of 512 parameters changed, every one ×10"),
        ("record of alice", "alice registered", "state", "item 'alice' of 0xcafe::registry::Registry.records"),
        ("order book depth", "closed its day", "state", "0xb00c::order_book::Book of 0xb00c"),
        ("APT supply", "one governance script", "mixed", "upgraded the called module 0x1::coin"),
    ],
)
def test_each_event_is_explained_in_its_own_words(run, ledger, label, text, kind, words):  # noqa: PLR0917 - one table
    """What changed, by name: functions, dependency, flag, ratio, item."""
    at = next(mark.version for mark in ledger.milestones if text in mark.text)
    step = run.steps[run.steps["label"] == label].set_index("version_after").loc[at]
    assert step["cause"] == kind
    assert words in step["explanation"]


def test_a_mixed_cause_has_its_parts(run):
    """Both parts are named, without what every governance script also writes."""
    mixed = run.steps[run.steps["cause"] == "mixed"]
    assert [list(parts) for parts in mixed["cause_parts"]] == [["schedule", "code"]] * len(mixed)
    others = run.steps[run.steps["cause"] != "mixed"]
    assert [list(parts) for parts in others["cause_parts"]] == [[kind] for kind in others["cause"]]


@pytest.fixture(scope="module")
def other_ledger():
    """Return a ledger of another seed and length."""
    return embedded.Ledger.with_history(seed=1, versions=1_000, cache=True)


def test_another_history_holds_too(other_ledger, tmp_path):
    """Another seed and length: every step exact, with its true cause."""
    run, _ = searched(other_ledger, tmp_path / "run")
    assert found_steps(run) == {call.name: dense_steps(other_ledger, call) for call in run.study.calls}
    told = plain_columns(run.steps, ["version_after", "cause"])
    assert told["cause"] == [true_kind(other_ledger, version) for version in told["version_after"]]


APT = "0x1::aptos_coin::AptosCoin"
OTHERS = [
    {"view": "0x1::coin::balance", "type_arguments": [APT], "arguments": ["0x7adea"]},  # moves to the paired asset
    {"view": "0x1::coin::balance", "type_arguments": [APT], "arguments": ["0xa11ce"]},
    {"view": "0xb00c::order_book::open_orders_of", "arguments": ["0x7ade3"]},
    {"view": "0xfa17::vault::balance_of", "arguments": ["0x7ade3"]},
    {"view": "0xcafe::trial::greeting"},  # deleted on the way
    {"view": "0xfeed::price_feed::price"},
]


@pytest.mark.parametrize("call", OTHERS, ids=lambda call: call["view"].partition("::")[2])
def test_calls_outside_of_the_demo_have_their_true_causes_too(other_ledger, call):
    """Every step of the dense sweep itself, however found: its cause is what the history did, or ordinary life."""
    one = Call.of(call)
    steps = [
        Step("n", one.name, one.fingerprint, Source.VIEW, version - 1, version, *before_after(sides))
        for version, sides in dense_steps(other_ledger, one).items()
    ]
    with toolkit.connect(other_ledger) as node:
        causes = causes_of(steps, node, {one.fingerprint: one})
    assert [causes[step].cause for step in steps] == [true_kind(other_ledger, step.version_after) for step in steps]
    assert steps


def before_after(sides):
    """Return gas, success and error before and after, in the order of a `Step`."""
    return [value for pair in zip(*sides, strict=True) for value in pair]
