"""Report data says what the run says."""

from __future__ import annotations

import dataclasses
from functools import cache

import pandas as pd
import pytest

from tests.unit.gas.observed import plan
from tests.unit.plots import synthetic_run
from toolkit._present.text import visible
from toolkit.gas._observations import Cause, Failure
from toolkit.gas._sentences import lead_sentence, others_text, short_change, weightiest
from toolkit.gas._steps import PartChange, StepChange, StepGroup
from toolkit.gas.committed._steps import StoragePrices
from toolkit.reports import build
from toolkit.reports._data import ReportData, headline, notes


def run(**options) -> synthetic_run.Run:
    """The made-up run."""
    return synthetic_run.Run(synthetic_run.observations(**options), synthetic_run.steps(**options))


@cache
def built() -> ReportData:
    """The data of the made-up run, which tests only read."""
    return build(run())


def test_events_gather_the_calls_that_changed_at_one_version_for_one_cause() -> None:
    """The tenfold schedule step is one event of five calls, largest first, in the order they begin."""
    data = built()
    places = [(event.version_after, event.cause, len(event.changes)) for event in data.events]
    assert places == [
        (2_400, "state", 1),  # it begins first, at 125
        (1_807, "code", 1),
        (2_503, "schedule", 5),
        (3_900, "state", 1),
        (3_204, "code", 1),
        (3_901, "schedule", 5),
        (4_950, "state", 1),
    ]
    assert [event.exact for event in data.events] == [False, True, True, False, True, True, False]


def test_headline_says_which_when_how_much_and_why() -> None:
    """The first sentences answer the question the report is for; what limits it follows once, in the notes."""
    first, second = headline(built(), visible)
    assert first == "5 of 10 calls: ×10 at version 2,503, when the gas schedule changed."
    assert (
        second == "Gas changed for 5 of 10 calls read at ledger versions 0 to 4,999; 2 without a change; "
        "2 read only once (no history); 1 not compared."
    )
    assert notes(built(), visible) == [
        (
            "Committed transactions were observed but not compared, because the run is not complete; run its study into "
            "its folder to have them judged: 52 of registrations (gas from 60 to 606)."
        ),
        (
            "Simulations run only at the latest version, so they have no history: transfer 100 (gas 998); "
            "register a taken name (gas 93, would fail)."
        ),
    ]


@pytest.mark.parametrize(
    ("changes", "cause", "ratio", "sentence"),
    [
        ([(4, 36)], "schedule", 10, "a: ×9 at version 7 (2026-05-06), when the gas schedule rose tenfold."),
        ([(4, 36), (10, 100)], "schedule", 2.5, "2 of 5 calls: ×9 to ×10 at version 7 (2026-05-06), when the gas schedule rose (×2.5)."),
        ([(10, 5), (10, 20)], "mixed", None, "2 of 5 calls: −50 % to ×2 at version 7 (2026-05-06), for several causes."),
        ([(None, 3)], "code", None, "a: becomes available at version 7 (2026-05-06), when code was published."),
        ([(3, None)], "unexplained", None, "a: starts to fail at version 7 (2026-05-06); no cause was found."),
        ([(3, 3)], "unknown", None, "a: same gas, different outcome at version 7 (2026-05-06)."),
    ],
)  # fmt: skip
def test_the_lead_is_the_largest_change(changes, cause, ratio, sentence) -> None:
    """Magnitude, date and cause; of several calls the least and the most."""
    found = tuple(StepChange(label, "view@version", 1, *sides) for label, sides in zip("abc", changes, strict=False))
    time = pd.Timestamp("2026-05-06T10:00:00Z")
    group = StepGroup(6, 7, True, Cause.of(cause), "", None, found, time=time, price_ratio=ratio)
    assert lead_sentence(group, 5, visible) == sentence
    assert "between versions 1 and 7" in lead_sentence(
        dataclasses.replace(group, exact=False, version_before=1), 5, visible
    )


def test_a_headline_without_a_sure_step_says_its_doubt() -> None:
    """If every step is doubtful, the doubt is part of the sentence; else the sure steps alone make it."""
    part = PartChange("execution", 10, 20, 9, 11)
    doubtful = StepChange("a", "committed", 1, 10, 20, parts=(part,), uncertain=("it is night",))
    sure = StepChange("b", "committed", 1, 10, 40, parts=(part,))
    group = StepGroup(6, 7, True, Cause.CODE, "", None, (doubtful,))
    assert "it is night" in lead_sentence(group, 5, visible)
    both = lead_sentence(dataclasses.replace(group, changes=(doubtful, sure)), 5, visible)
    assert both.startswith("b (1 more call uncertain): ×4 ")
    assert "it is night" not in both


def test_a_range_of_several_kinds_of_transaction_names_none_of_them() -> None:
    """The headline gives a kind its own factor, or names the call alone; the row counts the other kinds."""
    part = PartChange("execution", 10, 20, 9, 11)
    one = StepChange("a", "committed", 1, 10, 100, parts=(part,), stratum="succeeding")
    two = StepChange("a", "committed", 1, 10, 97, parts=(part,), stratum="failing")
    unsure = StepChange("a", "committed", 1, 10, 99, parts=(part,), stratum="both", uncertain=("it is night",))
    group = StepGroup(6, 7, True, Cause.CODE, "", None, (one,))
    assert lead_sentence(group, 5, visible).startswith("a (succeeding): ×10 at")
    group = dataclasses.replace(group, changes=(one, two))
    assert lead_sentence(group, 5, visible).startswith("a: ×9.7 to ×10 at")
    group = dataclasses.replace(group, changes=(one, two, unsure, dataclasses.replace(two, label="b")))
    assert lead_sentence(group, 5, visible).startswith(
        "2 of 5 calls (1 more transaction kind uncertain): ×9.7 to ×10 at"
    )
    kinds, calls = others_text(group).removeprefix("and ").split(" and ")
    assert (kinds, calls) == ("2 more transaction kinds (×9.7, uncertain: ×9.9)", "1 more call (×9.7)")
    two_kinds = dataclasses.replace(
        group, changes=(one, *(dataclasses.replace(one, label="b", stratum=s) for s in "xy"))
    )
    assert others_text(two_kinds) == "and 1 more call with 2 transaction kinds (×10)"
    parts = (one, dataclasses.replace(one, gas_after=97), dataclasses.replace(unsure, stratum="succeeding"))
    group = dataclasses.replace(group, changes=parts)  # of one kind of transaction
    assert lead_sentence(group, 5, visible).startswith("a (1 more part of its gas uncertain): ")
    assert others_text(group) == "and 2 more parts of its gas (×9.7, uncertain: ×9.9)"


def test_the_headline_and_the_count_agree_on_what_is_uncertain() -> None:
    """Both are of the same changes: a call is uncertain if each of its changes is."""
    data = built()
    group = data.largest[0]
    some, *others = group.changes
    unsure = dataclasses.replace(some, uncertain=("it is night",))
    alone = dataclasses.replace(data, events=(dataclasses.replace(group, changes=(unsure, *others)),))
    first, second = headline(alone, visible)
    assert first.startswith("4 of 10 calls (1 more call uncertain): ")
    assert second.startswith("Gas changed for 5 of 10 calls (1 of them uncertain) ")


def test_of_too_many_changes_the_weightiest_are_told_in_order() -> None:
    """A report of many changes keeps those that weigh most, all calls together, by version."""
    data = built()
    assert [event.version_after for event in weightiest(data.events, 3)] == [2_400, 2_503, 3_901]
    born = next(event for event in data.events if event.version_after == synthetic_run.BORN)
    assert born.weight == 0


def test_headline_of_an_unresolved_change_names_the_interval() -> None:
    """A change that could not be narrowed is reported as between two versions."""
    assert "between versions 2,500 and 2,525" in headline(build(run(resolved=False)), visible)[0]


def test_headline_of_a_quiet_run_says_nothing_changed() -> None:
    """No steps, no change; and one version alone cannot show any."""
    quiet = run()
    none = dataclasses.replace(quiet, steps=quiet.steps.iloc[:0])
    assert headline(build(none), visible) == [
        (
            "No gas change was found: 7 calls read at ledger versions 0 to 4,999; 2 read only once (no history); "
            "1 not compared."
        )
    ]
    once = dataclasses.replace(none, observations=quiet.observations.query("ledger_version == 0"))
    assert "cannot show a gas change" in headline(build(once), visible)[0]


def test_calls_are_summed_up_exactly() -> None:
    """First, last, least and most gas, steps and failures of each call."""
    calls = {call.label: call for call in built().calls}
    book = calls["order book depth"]
    assert (book.first_gas, book.last_gas, book.min_gas, book.max_gas) == (7, 56, 7, 70)
    assert (book.steps, book.failures, book.readings) == (3, 74, 208)
    assert calls["register a taken name"].failures == 1
    assert calls["names registered"].steps == 35


def test_gas_of_a_call_is_that_of_its_successes() -> None:
    """A transaction that fails early is not a fall in gas; a call that always fails has only the gas of its failures."""
    quiet = run()
    chosen = quiet.observations["label"] == "order book depth"
    observations = quiet.observations.copy()
    last = observations[chosen & observations["gas_used"].notna()].index[-1]
    observations.loc[last, ["gas_used", "success"]] = [1, False]
    calls = {call.label: call for call in build(dataclasses.replace(quiet, observations=observations)).calls}
    book, taken = calls["order book depth"], calls["register a taken name"]
    assert (book.last_gas, book.min_gas, book.failures) == (56, 7, 75)
    assert taken.first_gas == taken.last_gas is not None


def test_the_order_of_calls_is_the_studys() -> None:
    """However the parts of a run were written, the report has the order of the study."""
    study = synthetic_run.Study(calls=(synthetic_run.Call("vault total"), synthetic_run.Call("chain id")))
    mixed = dataclasses.replace(run(), study=study)
    shuffled = dataclasses.replace(mixed, observations=mixed.observations.sample(frac=1, random_state=3))
    assert [call.label for call in build(shuffled).calls][:2] == ["vault total", "chain id"]


def test_splits_keep_octas_and_units_apart() -> None:
    """Fee, refund and net are octas; storage in units is the fee at the price."""
    success, failure = built().splits
    assert (success.gas_used, success.storage_fee_octas, success.storage_gas_units) == (998, 40_000, 400)
    assert success.net_octas == 94_200
    assert not failure.success
    assert failure.vm_status == synthetic_run.ABORT


def test_failures_are_grouped_by_code_and_executions_by_status() -> None:
    """What the node refused, what failed on the ledger and what would fail are told apart."""
    found = {group.failure: group for group in built().failures}
    refused = found.pop(Failure.NOT_AVAILABLE)
    assert (refused.error_code, refused.status, refused.count) == ("invalid_input", 400, 74)
    assert (refused.first_version, refused.last_version) == (0, 1_806)
    assert {kind: group.labels for kind, group in found.items()} == {
        Failure.SIMULATION: ("register a taken name",),
        Failure.TRANSACTION: ("registrations",),
    }
    assert {group.error_code for group in found.values()} == {synthetic_run.ABORT}
    assert refused.kind == "not available (HTTP 400)"


def test_calls_that_fail_with_different_messages_have_rows_of_their_own() -> None:
    """A row quotes the message of its own calls; versions in it do not make another row; rare ones share a row."""
    frame = synthetic_run.observations()
    failed = frame.index[frame["error_code"] == "invalid_input"]
    texts = {place: f"no function f{row % 6}x at version {place}" for row, place in enumerate(failed)}
    labels = {place: f"call {row % 6}" for row, place in enumerate(failed)}
    frame["error_message"] = pd.Series(texts).reindex(frame.index)
    frame["label"] = pd.Series(labels).reindex(frame.index).fillna(frame["label"])
    failures = build(dataclasses.replace(run(), observations=frame)).failures
    refused = [group for group in failures if group.failure in {Failure.READ, Failure.NOT_AVAILABLE}]
    assert [group.count for group in failures] == sorted((group.count for group in failures), reverse=True)
    assert sorted((group.labels, group.example.split()[2]) for group in refused) == [
        ((f"call {number}",), f"f{number}x") for number in range(6)
    ]
    assert sum(group.count for group in refused) == 74
    frame["error_message"] = pd.Series({place: f"x{place}" for place in failed}).reindex(frame.index)
    failures = build(dataclasses.replace(run(), observations=frame)).failures
    refused = [group for group in failures if group.failure in {Failure.READ, Failure.NOT_AVAILABLE}]
    assert [group.count for group in failures] == sorted((group.count for group in failures), reverse=True)
    assert [group.count for group in refused] == [62, *[1] * 12]
    assert refused[0].example == ""


def test_the_largest_integers_are_exact() -> None:
    """No float is on the way of gas, up to the largest value of its column; products exceed int64 and are exact."""
    frame = synthetic_run.observations()
    top = 2**63 - 1
    big = frame.assign(gas_used=frame["gas_used"].where(frame["gas_used"].isna(), top))
    data = build(dataclasses.replace(run(), observations=big))
    assert {call.max_gas for call in data.calls} == {top}
    assert data.splits[0].gas_used == top
    assert data.splits[0].net_octas == top * 100 - data.splits[0].storage_fee_refund_octas


def test_frames_of_the_run_are_not_changed() -> None:
    """Building leaves the run's frames as they were."""
    made = run()
    before = made.observations.copy(), made.steps.copy()
    build(made)
    assert made.observations.equals(before[0])
    assert made.steps.equals(before[1])


def test_what_identifies_the_run_is_listed() -> None:
    """Its study, and when it was read; nothing else of the manifest."""
    started = pd.Timestamp("2026-05-06T10:00:00Z").to_pydatetime()
    record = synthetic_run.record(complete=False, study_digest="ab", started_at=started, finished_at=started)
    data = build(dataclasses.replace(run(), record=record))
    assert not data.complete
    assert data.provenance.manifest == (
        ("study digest", "ab"),
        ("read", "2026-05-06 10:00 UTC"),
    )


def test_an_empty_run_is_a_report_too() -> None:
    """A run with no rows yet says so, rather than failing."""
    made = run()
    empty = dataclasses.replace(made, observations=made.observations.iloc[:0], steps=made.steps.iloc[:0])
    data = build(empty)
    assert data.calls == ()
    assert data.provenance.last_version is None


def test_calls_that_start_to_answer_have_no_percentage() -> None:
    """A call that becomes available is described in words."""
    born = next(event for event in built().events if event.version_after == synthetic_run.BORN)
    assert short_change(born.changes[0], visible).startswith("available from here, at ")


def test_dates_are_those_of_one_ledger() -> None:
    """Known times are exact, times between them are marked; several nodes or a test ledger give no times."""
    frame = synthetic_run.observations()
    dates = built().dates
    first, last = (frame[frame["source"] == "committed"]["ledger_version"].agg(how) for how in ("min", "max"))
    assert (dates.of(int(first)), dates.of(int(first) + 1)) == ("2026-05-01", "≈ 2026-05-01")
    assert (dates.of(int(last) + 1), dates.between(0, int(last))) == ("", "until 2026-05-01")
    both = pd.concat([frame, frame.assign(node="another")])
    early = frame.assign(ledger_timestamp=frame["ledger_timestamp"] - pd.Timedelta(days=20_000))
    for other in (both, early):
        assert build(dataclasses.replace(run(), observations=other)).dates.of(int(first)) == ""


def test_kinds_of_committed_transactions_know_the_slots_if_the_run_knows_the_prices() -> None:
    """40,000 octas a slot: the fees of two and of no slot are kinds of their own."""
    frame = synthetic_run.observations()
    fees = frame["storage_fee_octas"].where(frame["source"] != "committed", 81_000)
    frame = frame.assign(storage_fee_octas=fees)
    node = plan(node="embedded", storage_prices=StoragePrices((0, 100), (40_000, 20_000)))
    paid = build(synthetic_run.Run(frame, synthetic_run.steps(), record=synthetic_run.record(nodes=(node,)))).paid
    slots = paid[paid["source"] == "committed"].groupby(paid["ledger_version"] < 100)["slots_created"].unique()
    assert {early: set(found) for early, found in slots.items()} == {True: {2}, False: {4}}
    assert "slots_created" not in build(synthetic_run.Run(frame, synthetic_run.steps())).paid
