"""Steps of committed transactions on the embedded node: the upgrade of an entry function, and a history with more."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from msgspec import structs

import toolkit
from tests.unit.gas.committed_ledger import HOME, Shop, short_case, story
from toolkit import embedded, reports
from toolkit.embedded import entry, signer, u64
from toolkit.frames._columns import plain_columns
from toolkit.gas.runs._store import RunStore


def run_of(ledger, folder, *names, versions="0:-1"):
    """Return the run of a study of entry functions of the shop."""
    with embedded.serve(ledger) as url, toolkit.connect(url) as node:
        calls = {name: {"committed": f"{HOME}::shop::{name}"} for name in names}
        return toolkit.Study(title="shop", node=node, calls=calls, versions=versions).run(folder, progress=False)


def rows(frame, *names):
    """Return columns of a frame as tuples."""
    return list(zip(*plain_columns(frame, names).values(), strict=True))


@pytest.fixture(scope="module")
def case():
    """Return the ledger of an upgrade from 38 to 332 gas units, which tests only read, and the version of the upgrade."""
    return short_case()


@pytest.fixture(scope="module")
def upgraded(case, tmp_path_factory):
    """Return the run over the upgrade, and its version."""
    ledger, version = case
    return run_of(ledger, tmp_path_factory.mktemp("case") / "run", "sell"), version


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return the run over the whole story, and the story."""
    what = story()
    return run_of(what.ledger, tmp_path_factory.mktemp("story") / "run", "sell", "note"), what


def test_an_upgrade_of_an_entry_function_is_a_step_with_its_cause(upgraded):
    """One step, at the version of the upgrade, from 38 to 332 gas units, by code."""
    run, version = upgraded
    names = ("version_before", "version_after", "exact", "gas_before", "gas_after", "cause", "part")
    assert rows(run.steps, *names) == [(version - 1, version, True, 38, 332, "code", "execution")]
    assert run.explain().splitlines()[1] == (
        "  sell: from 38 to 332 gas units (×8.7: execution +293 to +295; nearest 40 transactions before, 40 after)"
    )
    assert f"upgraded module {HOME}::shop" in run.explain()
    # The last sale before the upgrade is three versions earlier.
    assert rows(run.levels, "version_first", "version_last", "gas_first", "gas_last")[0][1:] == (version - 3, 38, 38)


@pytest.mark.usefixtures("no_figures")
def test_the_report_of_committed_calls_alone_answers_in_its_first_lines(upgraded, tmp_path):
    """Which call, where, by how much and why, in HTML, Markdown and JSON; no call is reported as unchanged."""
    run, version = upgraded
    answer = f"sell: ×8.7 at version {version:,} (2026-01-01), when code was upgraded."
    content = json.loads(reports.write(run, tmp_path / "report.json").read_text("utf-8"))
    assert content["headline"][0] == answer
    assert content["headline"][1].startswith("Gas changed for 1 of 1 call read at ledger versions ")
    assert content["events"][0]["changes"][0]["parts"][0]["low"] == 293
    page = reports.write(run, tmp_path / "report.html").read_text("utf-8")
    text = reports.write(run, tmp_path / "report.md").read_text("utf-8")
    assert (
        page.index("×8.7 at version") < page.index("<svg") < page.index("execution +293 to +295") < page.index("<main>")
    )
    assert "| `sell` | 38 | 332 | ×8.7: execution +293 to +295; " in text
    for report in (page, text):
        assert "Nothing changed" not in report
        assert "not judged" not in report


def test_compare_and_the_gate_judge_the_upgrade(upgraded):
    """The rise of the fee fails the gate with its cause; a run that has nothing new cannot be judged."""
    run, version = upgraded
    found = toolkit.compare(f"{run.path}@{version - 1}", run.path)
    names = ("gas_before", "gas_after", "fee_before", "fee_after", "cause", "count_before", "count_after")
    assert rows(found.changed, *names) == [(38, 332, 3_800, 33_200, "code", 40, 40)]
    gate = found.gate("2%")
    assert (gate.verdict, gate.judged, gate.not_judged) == ("failed", 1, ())
    assert (gate.regressions[0].label, gate.regressions[0].limit.percent) == ("sell", 2)
    assert toolkit.compare(run.path, run.path).gate("2%").verdict == "could not judge"


class GiftShop(Shop, revision=2, name="shop", code_bytes=4_000):
    """Every note costs a little more than the one before; a gift costs far more."""

    @entry
    def note(self, account: signer, key: u64) -> None:
        """Write a note; key 50 is a gift."""
        with self.borrow_mut(Shop.Till, HOME) as till:
            till.sold += 1
            self.charge("instr.call.base", 4_000 + 100 * till.sold + 20_000 * (key == 50))


def test_a_single_transaction_of_a_way_has_a_level_where_gas_grows(tmp_path):
    """It is what the transaction cost: a line needs two."""
    ledger = embedded.Ledger()
    ledger.publish(Shop)
    ledger.publish(GiftShop)
    for key in range(100):
        ledger.commit(f"{HOME}::shop::note", key, sender="0xb0b")
    run = run_of(ledger, tmp_path / "run", "note")
    assert not run.growth.empty
    [(count, first, last)] = rows(run.levels[run.levels["count"] == 1], "count", "gas_first", "gas_last")
    assert (count, first) == (1, last)


def test_too_few_transactions_after_the_step_are_not_judged(tmp_path):
    """Three transactions after an upgrade do not show a level; the report says that they could not be compared."""
    ledger, version = short_case(after=3)
    run = run_of(ledger, tmp_path / "run", "sell")
    assert run.steps.empty
    first, second = run.explain().splitlines()
    assert first == "no step was found in 43 committed transactions, as far as they can be compared"
    assert (
        second == f"sell: the change at version {version:,} cannot be judged: only 3 transactions on one side, gas 332."
    )
    [few] = run.record.committed_series[0].few
    assert (few.changes, few.count, few.mean) == ((version,), 3, 332)
    content = json.loads(reports.write(run, tmp_path / "report.json").read_text("utf-8"))
    assert content["headline"][0].startswith("No gas change was found, as far as it can be compared: ")
    assert content["headline"][1] == second


def test_an_upgrade_between_two_runs_is_judged_by_what_each_run_read(case, tmp_path):
    """Each side has its own timeline: the rise is found although neither run saw the upgrade."""
    ledger, version = case
    before = run_of(ledger, tmp_path / "before", "sell", versions=f"8:{version - 3}")
    after = run_of(ledger, tmp_path / "after", "sell", versions=f"{version + 3}:-1")
    assert before.timeline.empty
    assert after.timeline.empty
    found = toolkit.compare(before, after)
    assert rows(found.calls, "fee_before", "fee_after") == [(3_800, 33_200)]
    assert found.gate("2%").verdict == "failed"


def test_what_nobody_called_or_read_since_an_upgrade_between_two_runs_never_passes(case, tmp_path):
    """Nobody called the new code, or the timeline of a side was not read: the gate cannot judge."""
    ledger, version = short_case(after=0)
    before = run_of(ledger, tmp_path / "before", "sell", versions=f"8:{version - 3}")
    after = run_of(ledger, tmp_path / "after", "sell", versions=f"8:{version}")
    gate = toolkit.compare(before, after).gate("1000%")
    assert (gate.verdict, gate.judged) == ("could not judge", 0)
    assert str(version) in gate.not_judged[0].reason
    found = toolkit.compare(before, after)
    assert rows(found.calls, "kind", "count_after") == [("not compared", 0)]
    assert found.calls[["gas_after", "version_after", "change"]].isna().all(axis=None)  # of a call before the upgrade
    ledger, version = short_case(after=3)
    few = toolkit.compare(before, run_of(ledger, tmp_path / "few", "sell", versions=f"{version}:-1"))
    assert rows(few.calls, "kind", "count_after") == [("not compared", 3)]
    assert few.calls[["gas_before", "gas_after", "change", "change_percent"]].isna().all(axis=None)
    assert few.calls["not_judged"].notna().all()
    ledger, version = case
    before = run_of(ledger, tmp_path / "old", "sell", versions=f"8:{version - 3}")
    after = run_of(ledger, tmp_path / "new", "sell", versions=f"{version + 3}:-1")
    for unread, other in ((before, after), (after, before)):
        store = RunStore(unread.path)
        manifest = store.manifest()
        [call] = manifest.nodes[0].committed_series
        silent = structs.replace(manifest.nodes[0], committed_series=(replace(call, timeline_read=False),))
        store.write_manifest(structs.replace(manifest, nodes=(silent,)))
        pair = (unread.path, other.path) if unread is before else (other.path, unread.path)
        assert toolkit.compare(*pair).gate("1000%").verdict == "could not judge"
        store.write_manifest(manifest)


@pytest.mark.parametrize(("limit", "verdict"), [("5%", "FAILED"), ("1000%", "PASSED")])
@pytest.mark.usefixtures("no_figures")
def test_a_report_of_a_study_with_limits_begins_with_the_verdict(case, tmp_path, limit, verdict):
    """Before the upgrade and since, in all formats."""
    ledger, _ = case
    call = {"sell": {"committed": f"{HOME}::shop::sell"}}
    study = toolkit.Study(node=toolkit.connect(ledger), calls=call, versions="0:-1", thresholds=limit)
    run = study.run(tmp_path / "run", progress=False)
    page = reports.write(run, tmp_path / "report.html").read_text("utf-8")
    text = reports.write(run, tmp_path / "report.md").read_text("utf-8")
    assert page.index("<h1>") < page.index(f">{verdict}<") < page.index("<h2")
    assert text.startswith(f"**{verdict}**")
    content = json.loads(reports.write(run, tmp_path / "report.json").read_text("utf-8"))
    assert content["gate"]["verdict"] == verdict.lower()


def test_a_report_of_a_study_without_a_change_could_not_judge(case, tmp_path):
    """Limits are judged before and after a change, and this run does not contain one."""
    ledger, version = case
    call = {"sell": {"committed": f"{HOME}::shop::sell"}}
    calm = toolkit.Study(node=toolkit.connect(ledger), calls=call, versions=f"{version + 3}:-1", thresholds="5%")
    text = reports.write(calm.run(tmp_path / "calm", progress=False), tmp_path / "calm.md").read_text("utf-8")
    assert text.startswith("**COULD NOT JUDGE**")


def test_the_story_has_exactly_its_steps(told):
    """An upgrade of one function, a schedule that moves all kinds; growth and the shift of the mix are not steps."""
    run, what = told
    found = {
        (label, kind, after, cause)
        for label, kind, after, cause in rows(run.steps, "label", "stratum", "version_after", "cause")
    }
    assert found == {
        ("sell", "succeeding", what.upgrade, "code"),
        ("sell", "succeeding", what.schedule, "schedule"),
        ("sell", "failing, abort code 7", what.schedule, "schedule"),
        ("note", "no new slots", what.schedule, "schedule"),
        ("note", "1 new slot", what.schedule, "schedule"),
    }
    assert set(run.steps["part"]) == {"execution"}
    assert set(run.growth["label"]) == {"note"}
    assert set(run.mix["label"]) == {"note"}
    before, after = rows(run.mix, "version_before", "version_after")[0]
    assert before - 10 <= what.mix <= after + 10


def test_figures_draw_levels_and_one_mark_per_kind(told):
    """A line for each kind of transaction, which steps at the change; parts of one kind share a mark."""
    run, what = told
    axes = toolkit.plots.gas_by_version(run.observations, steps=run.steps, levels=run.levels)
    lines = [line for line in axes.lines if line.get_gid() == "level-line"]
    assert len(lines) == 4
    marks = [line for line in axes.lines if str(line.get_gid()).startswith("change-")]
    assert sum(len(line.get_xdata()) for line in marks) == 5
    names = {text.get_text() for text in axes.texts if text.get_gid() == "end-label"}
    assert "sell, succeeding" in names
    assert any(str(what.schedule) in text.get_text().replace(",", "") for text in axes.texts)
    change = toolkit.plots.gas_change(run.steps)
    labels = [label.get_text() for label in change.get_yticklabels()]
    assert any(label.startswith("sell · execution") and "succeeding" in label for label in labels)


def test_an_incomplete_run_says_that_it_did_not_judge(upgraded, tmp_path):
    """Until the analysis is stored, no call is reported as unchanged."""
    run, _ = upgraded
    folder = tmp_path / "incomplete"
    shutil.copytree(run.path, folder)
    store = RunStore(folder)
    with store.locked():
        store.write_manifest(structs.replace(store.manifest(), complete=False))
    found = toolkit.Run.open(folder)
    assert found.steps.empty
    [unjudged] = found.coverage.unjudged
    assert (unjudged.label, unjudged.readings, unjudged.min_gas, unjudged.max_gas) == ("sell", 80, 38, 332)
    assert "not complete" in unjudged.reason


def test_what_a_tenfold_schedule_did_to_deposits_is_what_their_transactions_say(tmp_path):
    """Totals are means of the transactions compared, parts of one change add up, and no level is what nobody paid."""
    calls = {"deposit": "0xfa17::vault::deposit", "place": "0xb00c::order_book::place"}
    versions = {name: {"committed": function, "versions": "2000:-1"} for name, function in calls.items()}
    run = toolkit.Study(calls=versions, versions=[4000]).run(tmp_path / "run", progress=False)
    paid = run.observations.dropna(subset=["execution_gas_units"])
    steps = run.steps
    deposits = paid[(paid["label"] == "deposit") & (paid["storage_fee_octas"] == 0)]
    near = deposits[deposits["ledger_version"].between(2_252, 3_501)]
    [step] = steps[steps["stratum"].eq("no new slots") & steps["part"].eq("execution")].to_dict("records")
    assert (step["count_before"], step["total_before"]) == (len(near), pytest.approx(near["gas_used"].mean()))
    assert step["change_percent"] == pytest.approx(922.7, abs=0.1)
    assert len(step["uncertain"]) > 0
    for level in run.levels.itertuples():
        there = paid["ledger_version"].between(level.version_first, level.version_last)
        gas = paid.loc[there & (paid["label"] == level.label), "gas_used"]
        assert gas.min() <= min(level.gas_first, level.gas_last) <= max(level.gas_first, level.gas_last) <= gas.max()
    after = run.levels[(run.levels["label"] == "place") & (run.levels["version_first"] > 4_248)]
    assert (after[["gas_first", "gas_last"]] <= 308).all(axis=None)
