"""The nine views of the recorded sweep: every value and gas figure, and every step with its version and cause."""

from __future__ import annotations

import json
from collections import Counter

import pytest

import toolkit
from tests.conformance.plain_values import plain_value, records
from tests.conformance.recorded_node import RecordedNode

STEPS = {
    "total": {56: "code", 158: "code", 179: "schedule"},
    "sum": {56: "code", 158: "code", 179: "schedule", 239: "state", 269: "state", 305: "state"},
    "find": {56: "code", 68: "state", 202: "state"},
    "weighed": {56: "code", 137: "code", 179: "schedule"},
    "work": {56: "code", 179: "schedule"},
    "gold_of": {56: "code", 131: "state", 179: "schedule"},
    "fresh": {158: "code"},
    "balance": {32: "state", 179: "schedule"},
    "supply": {179: "schedule"},
}
"""Version and cause of every step, by what the index of the recordings says was done there."""

WORDS = {
    32: "0x1::aptos_account::transfer",
    56: "published the called module",
    68: "item 3 of",
    131: "0x1::fungible_asset::ConcurrentSupply",
    137: "upgraded module 0x5312c76580194734d0aeac1dc9c670e647d6ff8cb4ae9c0a9570b3d7cb98d5e1::weights, a dependency",
    158: "upgraded the called module",
    179: "117 of 508 parameters changed, every one ×10",
    202: "deleted item 3 of",
    239: "::lab::put",
    269: "::lab::put",
    305: "::lab::put",
}
"""Words of the explanation of each of these."""


@pytest.fixture(scope="session")
def calls(recordings) -> dict[str, toolkit.ViewFunction]:
    """Return the nine calls by the function's name."""
    found = {}
    for exchange in recordings.files["sweep"]:
        sent = exchange.sent
        call = toolkit.ViewFunction(
            sent["function"], type_arguments=sent["type_arguments"], arguments=sent["arguments"]
        )
        found[sent["function"].split("::")[-1]] = call
    assert list(found) == list(STEPS)
    return found


@pytest.fixture(scope="session")
def recorded(recordings):
    """Return the recorded exchange of each call and version."""
    return {
        (exchange.sent["function"].split("::")[-1], int(exchange.path.partition("=")[2])): exchange
        for exchange in recordings.files["sweep"]
    }


def gas_of(exchange) -> int | None:
    text = exchange.answer_headers.get("x-aptos-gas-used")
    return None if text is None or exchange.status != 200 else int(text)


def test_every_view_has_the_recorded_gas_and_value(node, calls, recorded):
    """2,844 rows: gas, value as JSON, status and error code are the recorded ones."""
    frame = toolkit.fetch_views(node, calls, versions="0:-1", typed=False, progress=False)
    assert len(frame) == len(recorded) == 2_844
    counts: Counter[str] = Counter()
    for row in records(frame):
        exchange = recorded[row["call"], row["ledger_version"]]
        if exchange.status == 200:
            (value,) = exchange.json
            assert json.loads(row["value"]) == value, exchange
            assert row["gas_used"] == gas_of(exchange), exchange
            counts["answered"] += 1
        else:
            wanted = exchange.json
            assert row["error_code"] == wanted["error_code"], exchange
            assert wanted["message"][:100].split("\n")[0] in row["error_message"], exchange
            counts["refused"] += 1
    assert counts == {"answered": 2_076, "refused": 768}


@pytest.mark.parametrize("name", STEPS)
def test_values_are_typed_by_the_abi(name, node, recordings, calls, recorded):
    """Each view's column has the value by its type, and null if the view failed."""
    call = calls[name]
    abi = recordings.history.function(call.function, 315)
    (kind,) = (text.replace("T0", "0x1::aptos_coin::AptosCoin") for text in abi["return"])
    frame = toolkit.fetch_views(node, call, versions="0:-1", progress=False)
    assert len(frame) == 316
    for row in records(frame):
        exchange = recorded[name, row["ledger_version"]]
        value = exchange.json[0] if exchange.status == 200 else None
        structs = lambda outer, at=row["ledger_version"]: recordings.history.struct(outer, at)  # noqa: E731
        wanted = None if value is None else _cell(plain_value(kind, value, structs))
        assert row["value"] == wanted, exchange


def _cell(value):
    """Return what a frame shows: integers of more than 64 bits inside a struct are text."""
    if isinstance(value, dict):
        return {name: str(item) if name == "wide" else item for name, item in value.items()}
    return value


def test_the_steps_of_the_index_are_those_of_the_recording(recorded):
    """Reading every version gives the versions of the index, so the study is compared with the truth."""
    found = {}
    for name in STEPS:
        levels = [(recorded[name, version].status, gas_of(recorded[name, version])) for version in range(316)]
        found[name] = [version for version in range(1, 316) if levels[version] != levels[version - 1]]
    assert found == {name: list(steps) for name, steps in STEPS.items()}


@pytest.fixture(scope="session")
def study(recordings, recorded_node, calls):
    """Return the run of a step search over the nine views, and the node it asked."""
    fresh = RecordedNode(recorded_node.exchanges, recordings.history)
    with fresh.serving(), toolkit.connect(fresh.url, cache=None) as client:
        run = toolkit.Study(node=client, calls=calls, versions=toolkit.FindSteps("0:-1")).run(progress=False)
        yield run.steps.sort_values(["label", "version_after"]), fresh


def test_a_study_finds_every_step_with_its_cause(study):
    """24 of 24 steps, each at its very transaction and with the cause of the index, and no other."""
    steps, _ = study
    found = {}
    for row in records(steps):
        found.setdefault(row["label"], {})[row["version_after"]] = row["cause"]
        assert row["exact"]
        assert row["version_before"] == row["version_after"] - 1
    assert found == STEPS
    assert sum(map(len, STEPS.values())) == len(steps) == 24
    print(dict(Counter(steps["cause"])))  # counts in the output


@pytest.mark.parametrize("versions", ["0:-1/11", [0, 170, 178, 179, 180, 315]], ids=str)
def test_a_plan_finds_the_steps_of_the_search(versions, study, recordings, recorded_node, calls):
    """Whichever versions are planned: the same transactions and causes, within the further requests of the plan."""
    searched, _ = study
    fresh = RecordedNode(recorded_node.exchanges, recordings.history)
    with fresh.serving(), toolkit.connect(fresh.url, cache=None) as client:
        planned = toolkit.Study(node=client, calls=calls, versions=versions)
        plan, run = planned.plan(), planned.run(progress=False)
    steps = run.steps.sort_values(["label", "version_after"])
    told = [name for name in steps.columns if name != "node"]
    assert records(steps[told]) == records(searched[told])
    views = [one for one in fresh.received if one.path.startswith("/v1/view") and one.exchange]
    further = run.manifest["nodes"][0]["further_requests"]
    twice = 2 * int(steps["exact"].sum())  # both ends of each exact step are read again
    assert len(views) == len(run.observations) + further + twice
    assert len(run.observations) == plan.requests[1]
    assert 0 < further <= plan.further_requests


def test_each_cause_names_what_was_done(study, recordings):
    """The explanation says what the transaction did, and hash, sender and function are the transaction's."""
    steps, _ = study
    for row in records(steps):
        version = row["version_after"]
        transaction = recordings.history.transactions[version]
        assert WORDS[version] in row["explanation"], row
        assert row["transaction_hash"] == transaction["hash"]
        assert row["transaction_type"] == "user_transaction"
        assert int(row["transaction_sender"], 16) == int(transaction["sender"], 16)
        function = transaction["payload"].get("function")
        assert row["transaction_function"] == function if function else row["transaction_function"] is None


def test_gas_around_each_step_is_recorded(study, recorded):
    """Gas and success before and after each step are the recorded ones; success is null if nothing ran."""
    steps, _ = study
    for row in records(steps):
        for side in ("before", "after"):
            exchange = recorded[row["label"], row[f"version_{side}"]]
            ran = exchange.status == 200 or exchange.json["vm_error_code"] is not None
            assert row[f"gas_{side}"] == gas_of(exchange), row
            assert row[f"success_{side}"] == (exchange.status == 200 if ran else None), row


def test_the_search_reads_a_part_of_the_versions(study):
    """The study asks for less than half of the 2,844 answers, and for nothing that the node does not offer."""
    _, node = study
    views = [one for one in node.received if one.path.startswith("/v1/view") and one.exchange]
    assert len(views) < 2_844 / 2
    # Neither what time it is nor the bytecode, of which causes name the changed functions, was recorded.
    others = [one for one in node.unanswered if "/experimental/state_values/raw" not in one.path]
    assert [one for one in others if b"timestamp::now" not in one.body] == []
    print(f"{len(views)} of 2,844 views read")  # counts in the output


def test_versions_have_the_times_of_their_blocks(node, calls, recordings):
    """`times=True` fills each version's time from its block; the recorded transactions have the same. Genesis has none."""
    frame = toolkit.fetch_views(node, calls["supply"], versions="0:-1", times=True, progress=False)
    wanted = [int(one.get("timestamp", 0)) or None for one in recordings.history.transactions]
    assert [_microseconds(row["ledger_timestamp"]) for row in records(frame)] == wanted


def _microseconds(time) -> int | None:
    return None if time is None else round(time.timestamp() * 1_000_000)


@pytest.mark.parametrize("seconds", [0, 1, 8, 26, 52])
def test_a_time_is_the_first_version_at_it(seconds, node, recordings):
    """`version_at` finds the first version whose block is at or after a time; genesis has no time."""
    stamps = [int(one.get("timestamp", 0)) for one in recordings.history.transactions]
    wanted = next(version for version, stamp in enumerate(stamps) if stamp and stamp >= seconds * 1_000_000)
    assert node.version_at(f"1970-01-01T00:00:{seconds:02d}Z") == wanted


def test_the_schedules_around_the_step(node, recordings):
    """The diff of the schedules at 178 and 179 is the 117 parameters whose recorded values differ, each times ten."""
    before, after = (
        {
            entry["key"]: int(entry["val"])
            for entry in recordings.history.resource("0x1", SCHEDULE, at)["data"]["entries"]
        }
        for at in (178, 179)
    )
    wanted = {name: (before[name], value) for name, value in after.items() if before[name] != value}
    assert len(wanted) == 117
    assert all(new == 10 * old for old, new in wanted.values())
    found = records(toolkit.schedule_diff(node.gas_schedule(178), node.gas_schedule(179)))
    assert {row["name"]: (row["before"], row["after"]) for row in found} == wanted
    assert records(toolkit.schedule_diff(node.gas_schedule(179), node.gas_schedule(315))) == []


SCHEDULE = "0x1::gas_schedule::GasScheduleV2"
