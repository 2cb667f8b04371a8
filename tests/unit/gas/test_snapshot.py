"""Snapshots: one short file that says what the calls of a study cost, read back exactly, also after anyone edited it."""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import replace
from functools import cache

import pytest

from tests.unit.gas.observed import change_manifest
from toolkit import EntryFunction, FindSteps, Run, Study
from toolkit._present.text import visible
from toolkit.embedded import Ledger, Module, Resource, entry, signer, u64, vector, view
from toolkit.errors import StudyError, ToolkitError
from toolkit.gas._observations import Cause
from toolkit.gas._snapshot import _side as side_of_snapshot
from toolkit.gas._snapshot import check_snapshot, compare_snapshot, read_snapshot, run_again, snapshot_text, taken
from toolkit.gas._verdict_sentences import Why, comparison_text
from toolkit.gas.committed._fees import More, Verdict

SIZE, PRICE = "0xcafe::registry::size", "0xfa17::vault::share_price"
HOSTILE = 'a "b" \\ \u202e # [nodes.view]'
CALLS = {
    "size": {"view": SIZE},
    HOSTILE: {"view": PRICE},
    "missing": {"view": "0xcafe::registry::record_of", "arguments": ["nobody"]},
    "transfer": {"simulate": "0x1::aptos_account::transfer", "sender": "0xa11ce", "arguments": ["0xb0b", 100]},
    "taken": {"simulate": "0xcafe::registry::register", "sender": "0xb0b", "arguments": ["alice"]},
    "registrations": {"committed": "0xcafe::registry::register", "versions": "4900:4999"},
}
COMMITTED = {"source": "committed", "reason": "nothing ran since", "expires": "2999-01-01"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run views, simulations and committed transactions on the embedded node."""
    study = Study(title="Watched", calls=CALLS, versions=FindSteps("3400:-1"))
    return study.run(tmp_path_factory.mktemp("run") / "x", progress=False)


@pytest.fixture(scope="module")
def text(run):
    return snapshot_text(taken(run))


@pytest.fixture
def edited(text, tmp_path):
    """Write the snapshot with a replacement; return its path."""

    def edit(*pairs):
        changed = text
        for old, new in pairs:
            assert old in changed
            changed = changed.replace(old, new, 1)
        (tmp_path / "s.toml").write_text(changed, "utf-8")
        return tmp_path / "s.toml"

    return edit


def test_a_snapshot_has_a_line_for_each_call(run, text):
    """Sorted, with the schedule that was in force; the bytes are the same for the same run."""
    lines = text.splitlines()
    assert len([line for line in lines if line.startswith('"')]) == len(CALLS)
    views = lines[lines.index("[nodes.view]") + 1 : lines.index("[nodes.simulate]") - 1]
    assert views == sorted(views)
    assert '"size" = 21' in lines
    assert '"missing" = { fails = "invalid_input" }' in lines
    [paid] = [line for line in lines if line.startswith('"registrations" = { gas = ')]
    assert "price = 100" in paid
    assert "fees = [" in paid
    assert "feature_version = 49" in lines
    assert snapshot_text(taken(Run.open(run.path))) == text


def test_a_snapshot_with_a_byte_order_mark_is_read(text, tmp_path):
    """Editors of Windows write one."""
    path = tmp_path / "marked.toml"
    path.write_text(text, encoding="utf-8-sig")
    assert snapshot_text(read_snapshot(path)) == text


def test_entries_of_two_nodes_have_their_own_lines(text, tmp_path):
    """A label is on both, with and without quotes; an error names the line of the damaged entry."""
    head, table = text.split("[[nodes]]")
    other = re.sub('node = "[^"]*"', 'node = "other"', table).replace('"size" = 21', "size=21")
    path = tmp_path / "two.toml"
    path.write_text(f"{head}[[nodes]]{table}[[nodes]]{other}")
    found, lines = read_snapshot(path), path.read_text().splitlines()
    first, second = (found.places[node.node, "size"] for node in found.nodes)
    assert (lines[first - 1], lines[second - 1]) == ('"size" = 21', "size=21")
    assert ("", "size") not in found.places
    for number in (first, second):
        damaged = [*lines]
        damaged[number - 1] = 'size = "x"'
        path.write_text("\n".join(damaged))
        with pytest.raises(StudyError, match=f"line {number}, "):
            read_snapshot(path)


def test_a_snapshot_comes_back_exactly(run, text, edited):
    """Also a label with quotes, brackets and characters that a reader would not see."""
    assert "\u202e" not in text
    found = read_snapshot(edited())
    assert snapshot_text(found) == text
    assert {line.label for line in found.lines} == set(CALLS)
    lines = text.splitlines()
    assert found.places.keys() == {(node, label) for label in CALLS for node in (found.nodes[0].node, "")}
    for (_, label), number in found.places.items():
        assert label[:4].replace('"', '\\"')[:3] in lines[number - 1]
    comparison = compare_snapshot(found, run)
    # No transaction of the committed call ran since the snapshot was taken.
    assert len(comparison.unchanged) == len(comparison.calls) - 1 == len(CALLS) - 1
    assert [one.source for one in check_snapshot(comparison).not_judged] == ["committed"]
    assert check_snapshot(comparison, [COMMITTED]).passed
    assert f"{len(CALLS) - 1} unchanged" in comparison_text(comparison)


def test_a_rise_since_the_snapshot_fails_and_is_explained(run, edited):
    """The steps of the run after the version of the snapshot, with their cause."""
    found = read_snapshot(edited(('"size" = 21', '"size" = 3'), ("ledger_version = 4999", "ledger_version = 3450")))
    comparison = compare_snapshot(found, run)
    gate = check_snapshot(comparison)
    assert [(one.label, one.gas_before, one.gas_after) for one in gate.regressions] == [("size", 3, 21)]
    text = comparison_text(comparison, gate)
    assert [(step.version_after, step.cause) for step in comparison.steps] == [(3502, Cause.SCHEDULE)]
    assert text.count("size: at version 3,502") == 1
    assert comparison.warnings == ()  # committed transactions were read to 4,999 on both sides


def test_the_rules_of_the_study_hold(run, edited):
    """Thresholds give the tolerance; waivers excuse."""
    found = read_snapshot(edited(('"size" = 21', '"size" = 3'), ("ledger_version = 4999", "ledger_version = 3450")))
    for options in (
        {"thresholds": "600%", "waivers": [COMMITTED]},
        {"waivers": [{"call": "si*", "reason": "known", "expires": "2999-01-01"}, COMMITTED]},
    ):
        compared = compare_snapshot(found, with_rules(run, **options))
        assert check_snapshot(compared).passed, options
    gone = compare_snapshot(read_snapshot(edited(('"size" = 21', '"size" = 21\n"old" = 5'))), run)
    assert [one.label for one in check_snapshot(gone).regressions] == ["old"]
    assert "removed: old" in comparison_text(gone)


def with_rules(run, **options):
    """Return the run, whose study has other rules."""
    other = Run.open(run.path)
    other.__dict__["study"] = Study(title="Watched", calls=CALLS, versions=FindSteps("3400:-1"), **options)
    return other


def shop(purchases, *, with_income=True):
    """Return a ledger with a shop and its purchases."""

    class Shop(Module, address="0x5407"):
        class Till(Resource):
            sales: vector[u64]

        def init_module(self, account: signer) -> None:
            self.move_to(account, Shop.Till(sales=[]))

        @entry
        def buy(self, account: signer, amount: u64) -> None:
            with self.borrow_mut(Shop.Till, "0x5407") as till:
                till.sales.append(amount)

        if with_income:

            @view
            def income(self) -> u64:
                return sum(self.each(self.borrow(Shop.Till, "0x5407").sales))

        @view
        def count(self) -> u64:
            return len(self.borrow(Shop.Till, "0x5407").sales)

    ledger = Ledger(fund_new_senders=True)
    ledger.publish(Shop)
    for _ in range(purchases):
        ledger.execute(EntryFunction("0x5407::shop::buy", [100]), sender="0xc057")
    return ledger


def shop_study(ledger, versions="-1", **calls):
    refused = {"simulate": "0x5407::shop::buy", "sender": "0xc058", "arguments": [1]}
    calls = {"count": {"view": "0x5407::shop::count"}, "refused": refused} | calls
    return Study(calls=calls, versions=versions, node=ledger, thresholds="2%")


def test_a_function_that_is_gone_is_a_regression_with_its_reason(tmp_path):
    """The reason is the one that a plan of the study gives, not the code of the node's error."""
    income = {"view": "0x5407::shop::income"}
    before = taken(shop_study(shop(2), income=income).run(tmp_path, progress=False))
    gate = check_snapshot(
        compare_snapshot(before, run_again(shop_study(shop(2, with_income=False), income=income), before))
    )
    [found] = gate.regressions
    assert (found.label, found.why) == ("income", Why.GONE)
    assert "0x5407::shop::income: the module has no function `income`" in found.reason
    assert "count" in found.reason


def test_a_call_that_fails_as_before_is_counted_and_skipped(tmp_path):
    """It never ran, so it is refused, not aborted."""
    study = shop_study(shop(2))
    before = taken(study.run(tmp_path, progress=False))
    found = compare_snapshot(before, run_again(study, before))
    gate = check_snapshot(found)
    assert (gate.passed, gate.judged, gate.not_judged) == (True, 1, ())
    assert [(one.label, one.verdict) for one in gate.without_baseline] == [("refused", Verdict.FAILS_AS_LISTED)]
    assert repr(gate).splitlines()[0] == "gate passed; 1 call judged; 1 failing as before"
    assert [one.why for one in gate.without_baseline] == [Why.FAILS_AS_LISTED]
    assert "refused" not in {row.call[0] for row in found.shown(visible, gate).unchanged}
    assert [note.count("refused") for note in gate.notes] == [1]
    [cells] = [row.cells for row in found.shown(visible).unchanged if row.call[0] == "refused"]
    assert cells[1] == cells[2] == "refused (INSUFFICIENT_BALANCE_FO…)"


def test_committed_calls_of_a_plan_of_one_version_say_what_was_read(tmp_path):
    """The head alone does not show them, and a snapshot without transactions stays without them, whatever runs later."""
    ledger = shop(2)
    paid = {"committed": "0x5407::shop::buy"}
    study = shop_study(ledger, paid=paid)
    run = study.run(tmp_path, progress=False)
    before = taken(run)
    [note] = run.record.nodes[0].notes
    assert note.startswith(f"paid: the plan reads only the transaction at version {ledger.head:,}")
    assert list(study.plan().notes) == [f"{run.record.nodes[0].node}: {note}"]
    for _ in range(10):
        ledger.execute(EntryFunction("0x5407::shop::buy", [100]), sender="0xc057")
    [one] = check_snapshot(compare_snapshot(before, run_again(study, before))).not_judged
    assert one.reason.startswith(f"the plan reads only the transaction at version {ledger.head:,}")
    longer = shop_study(ledger, paid=paid | {"versions": "0:-1"})
    [one] = check_snapshot(compare_snapshot(before, run_again(longer, before))).not_judged
    assert one.label == "paid"
    assert one.reason.endswith(More.SNAPSHOT)


def test_committed_transactions_are_judged_by_what_ran_since(run, text, edited):
    """The snapshot has the distribution of an earlier version; what ran since is compared with it."""
    [line] = [one for one in taken(run).lines if one.label == "registrations"]
    assert sum(count for _, count in line.cost.fees) > 8
    half = [(fee // 2, count) for fee, count in line.cost.fees]
    whole = read_snapshot(edited())
    for fees, verdict in ((line.cost.fees, "passed"), (half, "failed")):
        older = replace(line, cost=line.cost.model_copy(update={"fees": fees, "last": 4899}))
        rest = [one for one in whole.lines if one.label != "registrations"]
        snapshot = replace(whole, lines=(*rest, older))
        found = compare_snapshot(snapshot, with_rules(run, thresholds="5%"))
        assert check_snapshot(found).verdict == verdict
        [paid] = found.calls[found.calls["source"] == "committed"].itertuples()
        assert (paid.gas_before, paid.gas_after) == (line.cost.gas, round(paid.gas_after))  # as the file has it
        assert paid.change == paid.gas_after - paid.gas_before


@pytest.fixture(scope="module")
def registered():
    """Return a function that gives the run of committed calls and a plan of views: each is read once for all tests."""

    @cache
    def read(versions, plan="3490:3500/3"):
        calls = {"size": {"view": SIZE}, "register": {"committed": "0xcafe::registry::register", "versions": versions}}
        return Study(calls=calls, versions=plan, thresholds="5%").run(progress=False)

    return read


@pytest.mark.fault("a snapshot checked at once", "no committed call is judged on transactions that it has counted")
@pytest.mark.parametrize(
    ("before", "plan", "after", "above"),
    [
        ("4000:-1", "3490:3500/3", "4000:-1", 4999),
        ("4000:4200", "-1", "4000:4200", 4200),
        ("3000:3600", "3490:3500/3", "3000:3550", 3600),
    ],
)
def test_a_committed_call_ends_at_its_own_version(registered, before, plan, after, above):
    """Wherever the plan of the views ends; transactions are not judged against themselves."""
    old = taken(registered(before, plan))
    assert [line.cost.last for line in old.lines if line.label == "register"] == [above]
    found = compare_snapshot(old, registered(after, plan))
    gate = check_snapshot(found)
    assert (gate.verdict, gate.judged) == ("could not judge", 1)
    [one] = gate.not_judged
    assert one.reason.startswith(f"nobody called it after version {above:,}")
    assert found.calls.set_index("label").at["register", "version_before"] == above


def test_a_committed_call_has_its_own_range_and_causes(registered):
    """Views end at 4,000 on both sides; the schedule changed after the last transaction of the snapshot."""
    old = taken(registered("2400:3400", "4000"))
    found = compare_snapshot(old, registered("2400:3600", "4000"))
    [row] = found.changed.itertuples()
    assert (row.label, row.version_before, row.cause) == ("register", 3400, Cause.SCHEDULE)
    assert 3502 < row.version_after <= 3600
    assert [step.version_after for step in found.steps] == [3502]


def test_a_snapshot_is_of_the_last_version_that_it_read(registered):
    """For views or transactions, a run whose head is below the snapshot is of another ledger, or older."""
    old = taken(registered("4000:-1"))
    assert old.reached == {"embedded": 4999}
    later = taken(registered("4000:-1", "4000"))
    assert later.reached == old.reached
    found = compare_snapshot(old, registered("4000:-1", "4000"))
    assert found.about[1].startswith(": embedded, version 4,999")
    assert not [note for note in found.warnings if "4,000" in note and "schedule" not in note]
    paid = [line for line in old.lines if line.source == "committed"]
    more = tuple(replace(line, cost=line.cost.model_copy(update={"last": 5005})) for line in paid)
    ahead = replace(old, lines=(*(line for line in old.lines if line not in paid), *more))
    assert compare_snapshot(ahead, registered("4000:-1")).unlike.keys() == {"embedded"}


def test_all_transactions_of_a_ledger_that_began_again_are_new():
    """Also of a call whose range in the snapshot ends below the head of the new ledger."""
    paid = {"committed": "0x5407::shop::buy"}
    calls = {"all": paid | {"versions": "0:-1"}, "first": paid | {"versions": "0:50", "success": True}}
    before = taken(shop_study(shop(30), **calls).run(progress=False))
    found = compare_snapshot(before, shop_study(shop(20), **calls).run(progress=False))
    counts = found.calls.set_index("label")["count_after"]
    assert (counts["all"], found.unlike) == (20, {})
    assert 0 < counts["first"] < 20


def test_a_snapshot_without_last_versions_is_read(run, edited):
    """As they were written before: its views are judged; of committed calls, nobody can tell what is new."""
    found = read_snapshot(edited(("last = 4999, ", "")))
    gate = check_snapshot(compare_snapshot(found, run))
    [one] = gate.not_judged
    assert (one.label, one.why) == ("registrations", Why.NOT_COMPARED)
    assert "write the snapshot again" in one.reason
    assert gate.judged > 0


def test_another_gas_schedule_is_named(run, edited):
    """A difference that nobody's contract made."""
    schedule = next(facts.schedule for facts in taken(run).nodes)
    found = read_snapshot(edited((schedule, "0" * 32), ("feature_version = 49", "feature_version = 42")))
    note = compare_snapshot(found, run).warnings[-1]
    assert note.startswith("the gas schedule differs (feature version 42 before, 49 now)")


def test_a_run_that_lacks_answers_makes_no_snapshot(run, tmp_path, monkeypatch):
    """A call would be missing, and the next check would call it new."""
    import shutil

    shutil.copytree(run.path, tmp_path / "x")
    change_manifest(tmp_path / "x", complete=False)
    with pytest.raises(StudyError, match="requires a complete run"):
        taken(Run.open(tmp_path / "x"))
    silent = Run.open(run.path)
    frame = silent.observations.copy()
    frame.loc[frame["label"] == "transfer", "error_code"] = "http_503"
    silent.__dict__["observations"] = frame
    with pytest.raises(StudyError, match=r"call 'transfer' got no response \(http_503\)"):
        taken(silent)


@pytest.mark.fault(
    "a hand-edited snapshot with values of the wrong type", "exit code 2, with the line and the expected value"
)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 1", "format = 2", "`format`: expected 1, got 2"),
        ("format = 1\n", "", "`format`: this key is required"),
        ("title = ", "name = ", "`name` is not a key here; the keys are format, nodes, title"),
        ('title = "Watched"', "title = 5", "`title`: expected text, got 5"),
        ("[[nodes]]", "[nodes]", "`nodes`: expected a list, got"),
        ("chain_id = 4", 'chain_id = "4"', r"`nodes\.1\.chain_id`: expected a valid integer, got '4'"),
        ("chain_id = 4", "chain_id = 256", "expected a number less than or equal to 255, got 256"),
        ("chain_id = 4\n", "", r"`nodes\.1\.chain_id`: this key is required"),
        ("model = true", "model = 1", r"`nodes\.1\.model`: expected a valid boolean, got 1"),
        ("[nodes.view]", "[nodes.views]", "`views` is not a key here; did you mean `view`"),
        ('"size" = 21', '"size" = -1', r"line \d+, 'size': expected a number greater than or equal to 0, got -1"),
        ('"size" = 21', '"size" = 1.5', r"line \d+, 'size': expected a valid integer, got 1\.5"),
        ('"size" = 21', '"size" = true', "'size': expected a valid integer, got True"),
        ('"size" = 21', '"size" = 9223372036854775808', "'size': expected a number less than or equal to"),
        ('"size" = 21', '"size" = 21\n"size" = 15', r"not TOML: Cannot overwrite a value \(at line [12][0-9]"),
        ('"size" = 21', '"size" = { gas = 5 }', "'size', `fails`: this key is required"),
        ("{ gas = 4390", "{ gas = 1.5 #", "not TOML"),
        ("last = 4999", "last = -1", "'registrations', `last`: expected a number greater than or equal to 0, got -1"),
        (", since = ", ", number = ", r"line \d+, 'registrations': `number` is not a key here"),
        ("fees = [[", "fees = [[5, 10000001], [", "`fees`: expected at most 10,000,000 transactions, got 10,000,0"),
        ("fees = [[", "fees = [[9223372036854775808, 1], [", "expected a number less than or equal to"),
        ("failed = 4", "failed = 10000001", "'registrations', `failed`: expected a number less than or equal to"),
        ("price = 100", "price = 10000000001", "'registrations', `price`: expected a number less than or equal to"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(edited, old, new, message):
    """What was expected and what was got, so that whoever edited the file can mend it."""
    with pytest.raises(StudyError, match=message):
        read_snapshot(edited((old, new)))


@pytest.mark.fault("a snapshot with changed, missing or repeated bytes", "a clear error, or a valid snapshot")
def test_any_bytes_are_a_snapshot_or_a_clear_error(text, tmp_path):
    """Nothing else: 300 files with random damage."""
    chance, path, messages = random.Random(7), tmp_path / "s.toml", []
    for _ in range(300):
        content = bytearray(text.encode())
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(content))
            content[place : place + chance.randint(0, 9)] = bytes(chance.choices(b'[]{}="\\\n#.,-019azZ\x00\xff', k=3))
        path.write_bytes(bytes(content))
        try:
            read_snapshot(path)
        except ToolkitError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all(str(path) in message and "\n" not in message for message in messages)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a." * 200 + b"b = 1", b"x = [" * 2_000, b"#" * 1_000_001])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    """Empty, binary, deep, or too large."""
    (tmp_path / "s.toml").write_bytes(content)
    with pytest.raises(StudyError, match=r"s\.toml"):
        read_snapshot(tmp_path / "s.toml")


def test_each_node_has_its_own_fees(run, text, tmp_path):
    """A function is called on several nodes of a study; another name for the only node is not another node."""
    path, mark = tmp_path / "s.toml", next(call.fingerprint for call in run.study.calls if call.source == "committed")

    def stored(node):
        return side_of_snapshot("s", read_snapshot(path), run.study).ran(mark, node).fees(100)

    path.write_text(text)
    assert stored("elsewhere").counted() == stored("embedded").counted() == [(438_500, 7), (439_300, 10)]
    head, table = text.split("[[nodes]]")
    other = table.replace('"embedded"', '"other"', 1).replace("[[438500, 7], [439300, 10]]", "[[5, 17]]")
    path.write_text(f"{head}[[nodes]]{table}[[nodes]]{other}")
    assert stored("embedded").counted() == [(438_500, 7), (439_300, 10)]
    assert stored("other").counted() == [(5, 17)]


def test_no_warning_escapes(run, edited):
    """What a comparison would warn of is in its own warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare_snapshot(read_snapshot(edited(("chain_id = 4", "chain_id = 5"))), run)
