"""Causes against nodes that offer less, change their build, or answer with gaps: said as such, never guessed."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
from msgspec import to_builtins

import toolkit
from toolkit.client._http import Answer
from toolkit.client._node import Node
from toolkit.client._transport import SessionTransport
from toolkit.dtypes import to_arrow
from toolkit.errors import ClosedError
from toolkit.gas._calls import Call
from toolkit.gas._cause_sentences import explanation_text
from toolkit.gas._steps import steps_of
from toolkit.gas.causes._finding import causes_of
from toolkit.gas.runs._completion import provenance
from toolkit.gas.runs._store import RunStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.client._http import Request

SUPPLY = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
SIZE = toolkit.ViewFunction("0xcafe::registry::size")
PRICE = toolkit.ViewFunction("0xfa17::vault::share_price")
DEPTH = toolkit.ViewFunction("0xb00c::order_book::depth")


class Gate:
    """A transport with a gate that may answer in the node's place, or change the node's answer."""

    def __init__(
        self,
        refuse: Callable[[str, dict[str, list[str]]], tuple[int, str] | None] = lambda *_: None,
        *,
        build: str | None = None,
    ) -> None:
        self._node = SessionTransport(timeout_s=10)
        self._refuse = refuse
        self._build = build

    def send(self, request: Request) -> Answer:
        where = urlsplit(request.url)
        refused = self._refuse(where.path, parse_qs(where.query))
        if refused is not None:
            status, code = refused
            return Answer(status, {}, json.dumps({"message": "closed", "error_code": code}).encode())
        answer = self._node.send(request)
        if self._build is not None and where.path == "/v1":
            return replace(answer, body=json.dumps(json.loads(answer.body) | {"git_hash": self._build}).encode())
        return answer

    def close(self) -> None:
        self._node.close()


def closed(*parts: str) -> Callable[[str, Any], tuple[int, str] | None]:
    """Refuse every path that holds one of the parts."""
    return lambda path, _: (403, "api_disabled") if any(part in path for part in parts) else None


@pytest.fixture
def through(url):
    """Return a way to make nodes behind gates; they are closed at the end."""
    made: list[Node] = []

    def make(gate: Gate) -> Node:
        made.append(Node(url, transport=gate, cache=None, max_in_flight=1))
        return made[-1]

    yield make
    for node in made:
        node.close()


def steps_between(node: Node, call: toolkit.ViewFunction, versions: Any) -> pd.DataFrame:
    """Return the steps of a study of one call."""
    return toolkit.Study(node=node, calls={"call": call}, versions=versions).run(progress=False).steps


def mark(ledger, text: str) -> int:
    """Return the version at which the history says something happened."""
    return next(one.version for one in ledger.milestones if text in one.text)


def unread_between(low: int, high: int) -> Callable[[str, Any], tuple[int, str] | None]:
    """Give no answer to views strictly between two versions, so that their steps cannot be bisected."""

    def refuse(path: str, query: dict[str, list[str]]) -> tuple[int, str] | None:
        inside = path.endswith("/view") and low < int(query["ledger_version"][0]) < high
        return (503, "internal_error") if inside else None

    return refuse


class TestUnresolved:
    """Intervals whose versions are not answered: the ends are compared."""

    @pytest.fixture(autouse=True)
    def _no_waits(self, monkeypatch):
        monkeypatch.setattr("toolkit.client._http.RetryPolicy.wait_s", lambda *_, **__: 0.0)

    @pytest.mark.parametrize(
        "case",
        [
            (SUPPLY, ["tenfold"], "schedule", "every one ×10"),
            (PRICE, ["vault upgraded"], "code", "upgraded the called module 0xfa17::vault"),
            (PRICE, ["vault upgraded", "tenfold"], "mixed", "upgraded the called module"),
        ],
    )
    def test_what_differs_between_the_ends_is_the_cause(self, through, ledger, case):
        """Schedule, code, or both; no transaction is claimed."""
        call, around, kind, words = case
        events = [mark(ledger, text) for text in around]
        ends = [events[0] - 9, events[-1] + 9]
        steps = steps_between(through(Gate(unread_between(*ends))), call, ends)
        assert steps["cause"].tolist() == [kind]
        assert not steps["exact"].any()
        assert words in steps["explanation"].tolist()[0]
        assert steps["transaction_hash"].isna().all()

    def test_growth_between_the_ends_is_unexplained(self, through, node, ledger):
        """State is never claimed without its transaction; with it, the same step is its state."""
        last = mark(ledger, "closed its day") - 1
        first = next(
            v
            for v in range(last, 0, -1)
            if ledger.view(DEPTH.function, version=v)[1] < ledger.view(DEPTH.function, version=last)[1]
        )
        ends = [max(first - 30, mark(ledger, "tenfold")), last]
        assert steps_between(through(Gate(unread_between(*ends))), DEPTH, ends)["cause"].tolist() == ["unexplained"]
        located = steps_between(node, DEPTH, ends)
        assert (located["cause"].tolist(), located["version_after"].tolist()) == (["state"], [first + 1])


def test_two_builds_of_a_node_do_not_compare(through, ledger):
    """A difference between readings by two builds is attributed to the node, whatever the transaction between them did."""
    at = mark(ledger, "tenfold")
    runs = []
    for build, version in (("one", at - 1), ("two", at)):
        node = through(Gate(build=build))
        study = toolkit.Study(node=node, calls={"size": SIZE}, versions=[version])
        runs.append(study.run(progress=False).observations)
    steps = steps_of(to_arrow(pd.concat(runs, ignore_index=True)))
    causes = causes_of(steps, through(Gate()), {steps[0].fingerprint: Call.of(SIZE)})
    assert [cause.cause for cause in causes.values()] == ["node"]
    assert "from one to two" in explanation_text(causes[steps[0]])


def test_outages_leave_intervals_and_break_nothing(through, ledger):
    """Versions that never answer: the steps around them are exact, the one among them is an interval with its cause."""
    at = mark(ledger, "tenfold")

    def out(path: str, query: dict[str, list[str]]) -> tuple[int, str] | None:
        version = int(query.get("ledger_version", ["0"])[0])
        return (500, "internal_error") if path.endswith("/view") and version in {at - 1, at, at + 1} else None

    gate = Gate(out)
    steps = steps_between(through(gate), PRICE, toolkit.FindSteps("0:-1"))
    found = steps.set_index("version_after")
    assert found.loc[at + 2, "version_before"] == at - 2
    assert found.loc[at + 2, "cause"] == "schedule"
    others = found.drop(at + 2)
    assert others["exact"].all()
    assert set(others["cause"]) == {"code"}


def test_a_run_that_goes_on_with_another_build_says_so(through, ledger, tmp_path):
    """Readings before and after the node's upgrade are kept apart: steps between them have the cause `node`."""
    at = mark(ledger, "tenfold")

    def stops(path: str, query: dict[str, list[str]]) -> None:
        if path.endswith("/view") and int(query["ledger_version"][0]) >= at:
            until = time.monotonic() + 30
            while RunStore(tmp_path / "run").rows() < 10 and time.monotonic() < until:
                time.sleep(0.02)
            raise ClosedError("the node is being upgraded")

    calls, versions = {"size": SIZE}, [*range(at - 10, at), at + 1]
    broken = toolkit.Study(node=through(Gate(stops, build="one")), calls=calls, versions=versions)
    with pytest.raises(ClosedError):
        broken.run(tmp_path / "run", progress=False)
    again = toolkit.Study(node=through(Gate(build="two")), calls=calls, versions=versions)
    run = again.run(tmp_path / "run", progress=False)
    rows = run.observations.sort_values("ledger_version")
    assert rows["node_build"].tolist() == ["one"] * 10 + ["two"]
    assert run.steps["cause"].tolist() == ["node"]
    assert "from one to two" in run.steps["explanation"].tolist()[0]


def test_provenance_of_a_node_that_refuses_the_reads_is_unknown(through) -> None:
    """Neither schedule nor code is guessed, and nothing is raised."""
    node = through(Gate(closed("/resource/", "/module/")))
    told = provenance(node, first=0, last=299, functions=["0xfa17::vault::share_price"])
    assert to_builtins(told) == {
        "gas_schedule": {"first": None, "last": None},
        "modules": {"0xfa17::vault": {"first": None, "last": None}},
    }
