"""Comparisons of committed transactions as they were with the same transactions under code that is not deployed."""

from __future__ import annotations

import json
import re

import pytest

import toolkit
from tests.unit.fork import small_node
from tests.unit.vm import small_ledger as small
from toolkit.cli import main
from toolkit.errors import InputError
from toolkit.gas._paired import Pair
from toolkit.gas._verdict_sentences import Why
from toolkit.vm import _code as code
from toolkit.vm._module import write_module

COUNTER = "0xcafe::counter"
BUMP, LOOP, STOP = f"{COUNTER}::bump", f"{COUNTER}::loop", f"{COUNTER}::stop"
CALLS = [("start",), *[("bump", small.ALICE)] * 4, ("stop",), ("loop", small.u64(50)), ("bump", small.ALICE)]


def counter_without(name):
    """Return the module `counter`, in which a function aborts at once."""
    functions = [
        code.FunctionDefinition(**{**vars(one), "code": (small.op("LdU64", 9), small.op("Abort"))})
        if one.name == name
        else one
        for one in small.counter_functions()
    ]
    views = small.metadata(get=1, text=1, endless=1, deep=1)
    return write_module(small.COUNTER, functions=functions, structs=[small.VALUE], metadata=views, version=8)


def package(folder, module):
    (folder / "bytecode_modules").mkdir(parents=True)
    (folder / "bytecode_modules" / "counter.mv").write_bytes(module)
    (folder / "package-metadata.bcs").write_bytes(b"\x01\x07counter")
    return folder


@pytest.fixture
def served():
    with small_node.node(CALLS).serving() as one:
        yield one


@pytest.fixture
def node(served):
    with toolkit.connect(served.url, cache=None) as one:
        yield one


def under(node, functions=BUMP, **change):
    return toolkit.compare(node, functions=functions, versions="0:-1", progress=False, **change)


def test_the_last_transactions_are_paired_exactly(node):
    found = under(node, gas_schedule={"instr.add": "x100"}, last=3)
    row = found.calls.iloc[0]
    assert (row["transactions"], row["judged"], row["dearer"]) == (3, 3, 3)
    pairs = found.transactions
    assert pairs["ledger_version"].tolist() == [8, 10, 16]
    assert pairs["verified"].all()
    assert row["change_least"] == row["change_median"] == row["change_most"] == pairs["change"].iloc[0] > 0
    changed = toolkit.replay(node, [16], gas_schedule={"instr.add": "x100"}, progress=False)
    assert pairs["gas_after"].iloc[2] == changed["changed_gas_used"].iloc[0]
    failed = found.gate("0%")
    assert (failed.verdict, failed.judged) == ("failed", 1)
    [worst] = failed.regressions
    assert worst.limit == toolkit.Threshold.of("0%")
    assert 0 < worst.fee_before < worst.fee_after
    assert (worst.why, worst.figures["over"], worst.figures["judged"]) == (Why.PAIRS_RISE, 3, 3)
    one = under(node, gas_schedule={"instr.add": "x100"}, last=1).gate("0%")
    assert re.match(r"1 of 1 transaction rises", one.regressions[0].reason)
    pooled = under(node, gas_schedule={"instr.add": "x100"}, last=3, executor="threads:2")
    assert pooled.transactions.equals(found.transactions)
    assert found.gate("1000000%").passed
    assert found.gate().passed


def test_code_under_which_a_transaction_fails_regresses_without_limits(node, tmp_path):
    found = under(node, [BUMP, LOOP, STOP], code=package(tmp_path / "Counter", counter_without("bump")))
    assert found.counts[Pair.FAILS] == 5
    gate = found.gate()
    assert [one.label for one in gate.regressions] == [BUMP]
    assert gate.judged == 2
    assert "code 9" in gate.regressions[0].reason or " 9" in gate.regressions[0].reason
    stop = found.transactions.set_index("label").loc[STOP]
    assert (stop["pair"], stop["change"]) == (Pair.SAME, 0)


def test_a_call_that_only_fails_is_not_judged(node):
    """A call that never ran successfully never passes, whatever a failure costs; next to other calls it is a note."""
    gate = under(node, STOP, gas_schedule={"instr.*": "x1"}).gate("0%")
    assert (gate.verdict, gate.judged, [one.why for one in gate.not_judged]) == (
        "could not judge",
        0,
        [Why.PAIRS_FAIL_ALIKE],
    )
    both = under(node, [STOP, BUMP], gas_schedule={"instr.*": "x1"}).gate("0%")
    assert (both.verdict, both.judged, len(both.notes)) == ("passed", 1, 1)


def test_a_transaction_that_failed_and_succeeds_now_is_counted_apart(node, tmp_path):
    functions = [
        code.FunctionDefinition(**{**vars(one), "code": (small.op("Ret"),)}) if one.name == "stop" else one
        for one in small.counter_functions()
    ]
    views = small.metadata(get=1, text=1, endless=1, deep=1)
    module = write_module(small.COUNTER, functions=functions, structs=[small.VALUE], metadata=views, version=8)
    found = under(node, STOP, code=package(tmp_path / "Counter", module))
    assert found.calls["succeeds_now"].tolist() == [1]
    assert found.gate("0%").passed


def test_what_is_not_verified_is_never_judged(node, served):
    """An unverified replay is counted with its reason; with most of them unverified, the gate cannot judge."""
    for sent in served.sent[1:4]:
        sent.gas_used += 1
    found = under(node, gas_schedule={"instr.add": "x100"}, last=5)
    row = found.calls.iloc[0]
    assert (row["transactions"], row["judged"], row["not_judged"]) == (5, 2, 3)
    assert row["reasons"].startswith("3: ")
    judged = found.transactions[found.transactions["pair"] != Pair.NOT_JUDGED]
    assert judged["verified"].all()
    gate = found.gate("2%")
    assert (gate.verdict, gate.judged) == ("could not judge", 0)
    assert [one.label for one in gate.not_judged] == [BUMP]
    waived = found.gate("2%", waivers=[{"call": BUMP, "reason": "known", "expires": "2999-01-01"}])
    assert (waived.verdict, len(waived.waived)) == ("could not judge", 1)
    few = under(node, gas_schedule={"instr.add": "x100"}, last=2).gate("2%")
    assert few.verdict == "failed"


def test_nobody_called_it_or_nothing_of_it_changes(node, tmp_path):
    silent = under(node, f"{COUNTER}::fill", gas_schedule={"instr.add": "x2"}).gate("2%")
    assert silent.verdict == "could not judge"
    assert silent.not_judged[0].why is Why.NOT_CALLED
    same = under(node, code=package(tmp_path / "Same", small_node.counter_with(1)))
    assert same.calls["same"].tolist() == [5]
    assert same.gate("0%").passed


def test_the_search_ends_where_the_replaced_code_was_published(node, served, tmp_path):
    """Transactions before ran under other code; the difference would not be that of the change alone."""
    key = small_node.module_key(small.COUNTER)
    served.sent[3].writes.append((key, "modify", small.counter_code(), None))
    published = served.versions[3]
    found = under(node, gas_schedule={"instr.add": "x2"})
    assert (found.calls["published_at"].tolist(), len(found.transactions)) == ([1], 5)  # the first block has all of it
    found = under(node, code=package(tmp_path / "Counter", small_node.counter_with(5)))
    assert found.calls["published_at"].tolist() == [published]
    assert (found.transactions["ledger_version"] > published).all()
    assert found.warnings


def test_bad_requests_are_refused_before_anything_is_replayed(node, served, tmp_path):
    elsewhere = write_module(small.t.ModuleId(bytes(31) + b"\x77", "counter"), functions=[], structs=[], version=8)
    with pytest.raises(InputError, match="0x77"):
        under(node, code=[elsewhere])
    with pytest.raises(InputError, match="no_such"):
        under(node, gas_schedule={"no_such": 1})
    with pytest.raises(InputError, match="functions"):
        toolkit.compare(node, gas_schedule={"instr.add": 1})
    with pytest.raises(InputError, match="last"):
        under(node, gas_schedule={"instr.add": 1}, last=0)
    with pytest.raises(InputError, match="after"):
        toolkit.compare(node, node, gas_schedule={"instr.add": 1})
    with pytest.raises(InputError, match="bytecode_modules"):
        under(node, code=tmp_path)
    with pytest.raises(InputError, match="bytecode"):
        toolkit.compare(toolkit.connect(), functions=BUMP, gas_schedule={"instr.add": 1})


def test_a_study_gives_the_calls_their_labels_and_its_limits(node):
    study = toolkit.Study(
        calls={
            "bumps": {"committed": BUMP},
            "by nobody": {"committed": BUMP, "sender": "0x9"},
            "read": f"{COUNTER}::get",
        },
        node=node,
        thresholds="2%",
    )
    found = toolkit.compare(study, gas_schedule={"instr.add": "x100"}, versions="0:-1", progress=False)
    assert found.calls["label"].tolist() == ["bumps", "by nobody"]
    assert found.calls["transactions"].tolist() == [5, 0]
    gate = found.gate()
    assert [one.label for one in gate.regressions] == ["bumps"]
    assert [one.label for one in gate.not_judged] == ["by nobody"]
    assert any("read" in note for note in found.warnings)


def test_the_command_exits_as_gates_do(served, tmp_path, capsys):
    """0: passed; 1: a call regressed; 6: a call could not be judged."""
    base = ["compare", served.url, "--versions", "0:-1", "--quiet"]

    def run(*more):
        ended = main([*base, *more])
        return ended, capsys.readouterr().out

    dear, folder = ["--schedule", "instr.add=x100"], package(tmp_path / "Counter", small_node.counter_with(1))
    code_, text = run("--function", BUMP, *dear, "--fail-over", "2%")
    assert code_ == 1
    assert "gate FAILED: 1 regression; 1 call judged" in text
    assert run("--function", BUMP, "--code", str(folder), "--fail-over", "2%")[0] == 0
    assert run("--function", f"{COUNTER}::fill", *dear, "--fail-over", "2%")[0] == 6
    junit = tmp_path / "gas.xml"
    code_, text = run("--function", BUMP, *dear, "--fail-over", "2%", "--json", "--junit", str(junit))
    shown = json.loads(text)
    assert (code_, shown["gate"]["verdict"], shown["counts"][Pair.DEARER]) == (1, "failed", 5)
    assert "<failure" in junit.read_text()
    for name, start in (("verdict.html", "<!DOCTYPE html>"), ("verdict.md", "**FAILED**")):
        assert run("--function", BUMP, *dear, "--fail-over", "2%", "--out", str(tmp_path / name))[0] == 1
        page = (tmp_path / name).read_text().replace("<wbr>", "")  # where a long name may break
        assert page.startswith(start)
        assert BUMP in page
        assert "dearer" in page
    rows = tmp_path / "pairs.csv"
    assert run("--function", BUMP, *dear, "--fail-over", "2%", "--out", str(rows))[0] == 1
    assert len(rows.read_text().splitlines()) == 6
