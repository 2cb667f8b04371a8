"""A report, `explain()`, the closing words of a run and the gate claim nothing about what was not judged."""

from __future__ import annotations

import json
import re

import pytest

import toolkit
from toolkit import embedded, reports
from toolkit.cli import main
from toolkit.embedded import Module, Resource, entry, signer, u64, view


class Counter(Module, address="0xc0de", name="counter"):
    """Counts cheaply."""

    class Count(Resource):
        value: u64

    def init_module(self, account: signer) -> None:
        self.move_to(account, Counter.Count(value=0))

    @entry
    def bump(self, account: signer) -> None:
        with self.borrow_mut(Counter.Count, "0xc0de") as count:
            count.value += 1

    @view
    def one(self) -> u64:
        return 1


class CostlierCounter(Counter, address="0xc0de", name="counter", revision=2):
    """Counts as before and reads more for it."""

    @entry
    def bump(self, account: signer) -> None:
        for _ in range(4_000):
            self.borrow(Counter.Count, "0xc0de")
        super().bump(account)


@pytest.fixture(scope="module")
def costlier():
    """Serve a ledger on which an entry function became costlier; return its URL and the two levels of gas."""
    ledger = embedded.Ledger()
    for address in ("0xc0de", "0xa11ce"):
        ledger.fund(address)
    levels = []
    for module in (Counter, CostlierCounter):
        ledger.publish(module)
        levels.append([ledger.commit("0xc0de::counter::bump", sender="0xa11ce").gas_used for _ in range(5)][-1])
    assert levels[1] > levels[0]
    with embedded.serve(ledger) as url:
        yield url, levels


STUDY = """
title = "Costlier"
node = "{url}"
[versions]
plan = "{first}:-1"
[thresholds]
percent = 2
[[call]]
label = "bump"
committed = "0xc0de::counter::bump"
versions = "0:-1"
{more}
"""
VIEW = '[[call]]\nlabel = "one"\nview = "0xc0de::counter::one"\n'
SENTENCE = (
    "Committed transactions were observed but not compared, because there are fewer than 16 transactions of each kind: "
    "10 of bump (gas from "
)


def made(costlier, folder, more=""):
    """Run a study of the committed calls, and of `more`, from where the module exists."""
    place = folder / "study.toml"
    first = 10 if more else 0
    place.write_text(STUDY.format(url=costlier[0], first=first, more=more))
    return toolkit.Study.load(place).run(folder / "run", progress=False)


@pytest.fixture(scope="module")
def runs(costlier, tmp_path_factory):
    """Return the runs of the committed calls, alone and with a view."""
    return {more: made(costlier, tmp_path_factory.mktemp("run"), more) for more in ("", VIEW)}


@pytest.mark.parametrize("more", ["", VIEW], ids=["committed alone", "with a view"])
@pytest.mark.parametrize("ending", ["html", "md", "json"])
@pytest.mark.fault(
    "an entry function that became costlier, with too few committed transactions",
    "the report says that it was not judged",
)
@pytest.mark.usefixtures("no_figures")
def test_a_report_says_what_was_not_judged(costlier, runs, tmp_path, more, ending):
    """Not that nothing changed, above a chart with two levels."""
    run = runs[more]
    assert set(run.observations.query("source == 'committed'")["gas_used"]) >= set(costlier[1])
    text = reports.write(run, tmp_path / f"report.{ending}").read_text("utf-8")
    plain = re.sub(r"<[^>]+>|`", "", text)
    assert SENTENCE in plain
    assert "othing changed" not in plain
    assert "No call" not in plain
    if ending == "json":
        assert {call["label"]: call["judged"] for call in json.loads(text)["calls"]} == {"bump": False} | (
            {"one": True} if more else {}
        )
    elif more or ending == "html":
        assert "not compared" in plain.replace(SENTENCE, "")
    assert ("No gas change was found: 1 call read" in plain) == bool(more)


@pytest.mark.fault(
    "a study of committed transactions, run and compared",
    "`study run` says what was not judged; `compare` exits with 6",
)
def test_the_command_line_says_what_was_not_judged(costlier, tmp_path, capsys, monkeypatch):
    """The closing words of a run, and a gate that could not judge, until the source is named or waived."""
    run = made(costlier, tmp_path, VIEW)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert main(["study", "run", "study.toml", "--out", "run", "--quiet"]) == 0
    printed = capsys.readouterr().out
    assert "Nothing new was read." in printed
    assert SENTENCE not in printed
    assert main(["study", "run", "study.toml", "--out", "run", "--quiet", "--fresh"]) == 0
    printed = capsys.readouterr().out
    assert SENTENCE in printed
    assert "no view's gas, success or error changed" in printed
    assert SENTENCE in run.explain()
    assert main(["study", "run", "study.toml", "--out", "run", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_judged"][0].startswith(SENTENCE)
    assert main(["compare", "run", "run"]) == 6
    assert "gate COULD NOT JUDGE 1 call; 1 call judged" in capsys.readouterr().out
    assert main(["compare", "run", "run", "--source", "view@version"]) == 0
    assert main(["compare", "run", "run", "--source", "committed"]) == 6
    (tmp_path / "waivers.toml").write_text(
        '[[waiver]]\nsource = "committed"\nreason = "steps come later"\nexpires = 2999-12-31\n'
    )
    assert main(["compare", "run", "run", "--waivers", "waivers.toml"]) == 0
    assert "waived: bump: " in capsys.readouterr().out


@pytest.mark.fault("a comparison at a version before a run's simulations", "the gate cannot judge them: exit code 6")
def test_simulations_that_are_left_out_are_not_passed(costlier, tmp_path, capsys, monkeypatch):
    """They stand at the head, so a run as it stood before has none."""
    simulated = '[[call]]\nlabel = "sim"\nsimulate = "0xc0de::counter::bump"\nsender = "0xa11ce"\n'
    place = tmp_path / "study.toml"
    text = STUDY.format(url=costlier[0], first=10, more=VIEW + simulated)
    place.write_text(
        text.replace('[[call]]\nlabel = "bump"\ncommitted = "0xc0de::counter::bump"\nversions = "0:-1"\n', "")
    )
    toolkit.Study.load(place).run(tmp_path / "run", progress=False)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "run", "run"]) == 0
    assert main(["compare", "run@12", "run@13"]) == 6
    assert "not judged: sim: " in capsys.readouterr().out
    assert main(["compare", "run@12", "run@13", "--source", "view@version"]) == 0
