"""Another ledger in the place of the node's while it is read: it is noticed, and no row of it is stored."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import toolkit
from toolkit.client import _reads
from toolkit.client._http import RetryPolicy
from toolkit.errors import LedgerChanged, RunStopped, StudyError

DEPTH = toolkit.ViewFunction("0xb00c::order_book::depth")
REGISTER = {"committed": "0xcafe::registry::register"}
VERSIONS = "0:1499/150"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "wait_s", lambda *_, **__: 0.0)
    monkeypatch.setattr(_reads, "_PAUSES_S", (0.0,) * 5)


@pytest.fixture
def replaced(proxy, other_ledger):
    """Return a function that puts the other ledger in the node's place after a number of requests."""

    def after(requests):
        def change(request, _):
            if request.number == requests:
                proxy.upstream = other_ledger

        proxy.change = change

    return after


def study(node, calls=None, versions=VERSIONS, **more):
    return toolkit.Study(node=node, calls=calls or {"depth": DEPTH}, versions=versions, **more)


def other_chain(_, answer):
    """Return an answer of chain 77, in its headers and in its body."""
    return replace(answer.with_headers(chain_id="77"), body=answer.body.replace(b'"chain_id":4', b'"chain_id":77'))


def rows_of(run):
    """Return what a run holds, without when it was read."""
    columns = ["ledger_version", "gas_used", "success", "value_digest", "error_code"]
    return set(map(tuple, run.observations[columns].astype(str).to_numpy().tolist()))


@pytest.fixture(scope="module")
def whole(honest):
    """Return the run on the honest node."""
    return study(f"http://{honest[0]}:{honest[1]}").run(progress=False)


@pytest.mark.fault("answers with another chain id, from some request on", "the run stops; none of those rows is stored")
@pytest.mark.fault("a single answer with another chain id", "the run stops")
@pytest.mark.parametrize(
    ("strange", "executor"),
    [(range(101, 10_000), None), (range(101, 10_000), "threads:2"), (range(101, 10_000), "processes:2"), ([122], None)],
    ids=["all", "all, in threads", "all, in processes", "one backend behind a balancer"],
)
def test_another_chain_stops_a_run(proxy, tmp_path, whole, strange, executor):
    """Once the first ledger is back, the same command completes the run."""
    proxy.change = lambda request, answer: other_chain(request, answer) if request.number in strange else None
    with pytest.raises(RunStopped, match=r"expected .*chain id 4.* 77.*run the same study"):
        study(proxy.url).run(tmp_path, executor=executor, progress=False)
    assert rows_of(toolkit.Run.open(tmp_path)) <= rows_of(whole)
    proxy.change = None
    run = study(proxy.url).run(tmp_path, progress=False)
    assert (run.complete, run.digest) == (True, whole.digest)


@pytest.mark.fault(
    "another ledger with the same chain id, from some request on", "the run stops; none of that ledger's rows is stored"
)
@pytest.mark.parametrize("what", ["views", "views in threads", "committed"])
def test_another_history_stops_a_run(proxy, honest, tmp_path, replaced, what):
    """The chain id is the same: the anchor transaction tells. Rows since the last good check are dropped."""
    executor = "threads:2" if what == "views in threads" else None

    def run(url, out):
        calls, versions = ({"paid": REGISTER}, "0:799") if what == "committed" else ({"depth": DEPTH}, VERSIONS)
        return study(url, calls, versions).run(out, executor=executor, progress=False)

    replaced(8 if what == "committed" else 120)
    with pytest.raises(RunStopped, match=r"expected transaction [\d,]+ to be 0x[0-9a-f]+, (got 0x|but it is missing)"):
        run(proxy.url, tmp_path / "run")
    with pytest.raises(StudyError, match=r"has a run of another ledger: .*Choose another folder"):
        run(proxy.url, tmp_path / "run")
    there = run(f"http://{honest[0]}:{honest[1]}", tmp_path / "there")
    assert rows_of(toolkit.Run.open(tmp_path / "run")) <= rows_of(there)
    proxy.change, proxy.upstream = None, honest
    assert run(proxy.url, tmp_path / "run").digest == there.digest


def test_answers_of_the_other_ledger_leave_the_cache(proxy, honest, tmp_path, replaced, connect):
    """With one cache file for both runs: the second run, on the first ledger, does not meet the other one's answers."""
    replaced(120)
    node = connect(proxy.url, cache=tmp_path / "cache")
    with pytest.raises(RunStopped, match="serves another ledger"):
        study(node).run(tmp_path / "run", progress=False)
    proxy.change, proxy.upstream = None, honest
    there = study(f"http://{honest[0]}:{honest[1]}").run(progress=False)
    assert study(node).run(tmp_path / "run", progress=False).digest == there.digest


@pytest.mark.fault("a node replaced during a fetch", "LedgerChanged, instead of a frame that mixes both ledgers")
@pytest.mark.parametrize(
    "fetch",
    [
        lambda node: toolkit.fetch_views(node, DEPTH, versions=VERSIONS, progress=False),
        lambda node: toolkit.fetch_transactions(node, versions="0:799", progress=False),
    ],
    ids=["views", "transactions"],
)
@pytest.mark.parametrize("same_chain", [True, False])
def test_a_fetch_never_mixes_two_ledgers(proxy, replaced, connect, fetch, same_chain):
    """By the chain id of each answer, and by the anchor at the end."""
    replaced(10)
    if not same_chain:
        proxy.change = lambda request, answer: other_chain(request, answer) if request.number > 10 else None
    with pytest.raises(LedgerChanged, match="another ledger"):
        fetch(connect(proxy.url))


@pytest.mark.fault("a node replaced between two fetches", "LedgerChanged, instead of cached rows mixed with new ones")
def test_a_second_fetch_does_not_meet_cached_answers_of_another_ledger(proxy, other_ledger, connect):
    """A local network that is restarted behind the same URL has the same chain id."""
    node = connect(proxy.url, cache="default")
    toolkit.fetch_views(node, DEPTH, versions="0:1499/20", progress=False)
    proxy.upstream = other_ledger
    for versions in ("0:1499/40", "0:999/20"):
        with pytest.raises(LedgerChanged, match="another ledger"):
            toolkit.fetch_views(node, DEPTH, versions=versions, progress=False)
    again = toolkit.fetch_views(connect(proxy.url, cache="default"), DEPTH, versions="0:1499/40", progress=False)
    there = toolkit.fetch_views(connect(proxy.url, cache=None), DEPTH, versions="0:1499/40", progress=False)
    assert again["gas_used"].tolist() == there["gas_used"].tolist()


@pytest.mark.fault("a single call to a node whose chain id changed", "LedgerChanged, until you reconnect")
def test_a_single_call_says_that_the_chain_changed(proxy, connect):
    """A new connection reads the other chain."""
    node = connect(proxy.url)
    node.view(DEPTH)
    proxy.change = other_chain
    with pytest.raises(LedgerChanged, match=r"expected chain id 4, .* got 77"):
        node.view(DEPTH)
    assert connect(proxy.url).view(DEPTH).ledger.chain_id == 77


@pytest.mark.fault("a backend that lags the others by a few versions", "accepted as the same ledger")
def test_a_backend_that_lags_is_no_other_ledger(proxy, whole):
    """Every third answer has a head and an oldest version of another backend."""

    def lag(request, answer):
        if request.path == "/v1" or "x-aptos-ledger-version" not in answer.headers or request.number % 3:
            return None
        return answer.with_headers(ledger_version="1490")

    proxy.change = lag
    run = study(proxy.url).run(progress=False)
    assert (run.complete, run.digest) == (True, whole.digest)


@pytest.mark.fault("a head or oldest version that goes back and stays there", "the run stops")
@pytest.mark.parametrize(
    ("header", "name"), [({"ledger_version": "700"}, "a head of 1,499"), ({"ledger_oldest_version": "3"}, "an oldest")]
)
def test_a_head_or_oldest_version_that_goes_back_stops_a_run(proxy, tmp_path, header, name):
    """The anchor may be there all the same, such as after a restore from a backup."""

    def older(request, answer):
        start = {"ledger_oldest_version": "5"} if request.number < 120 else {"ledger_oldest_version": "5"} | header
        changed = answer.with_headers(**start)
        if request.path == "/v1":
            document = json.loads(answer.body) | {"oldest_ledger_version": "5"}
            changed = replace(changed, body=json.dumps(document).encode())
        return changed

    proxy.change = older
    with pytest.raises(RunStopped, match=f"expected {name}.* or later, got (700|3)"):
        study(proxy.url, versions="5:1499/250").run(tmp_path, progress=False)
    assert not toolkit.Run.open(tmp_path).complete


@pytest.mark.fault("a node that does not serve transactions", "the run's notes say how its ledger was checked instead")
@pytest.mark.parametrize("status", [403, 404])
def test_without_transactions_the_run_says_how_it_was_checked(proxy, status):
    """By chain id, head and oldest version; a chain that changes still stops the run."""

    def refuse(request, answer):
        if "/transactions" in request.path:
            return replace(answer, status=status, body=b"<html>no</html>")
        return other_chain(request, answer) if request.number > refuse.limit else None

    proxy.change, refuse.limit = refuse, 10_000
    run = study(proxy.url).run(progress=False)
    assert run.complete
    assert run.manifest["nodes"][0]["anchor"] is None
    (note,) = (note for note in run.manifest["nodes"][0]["notes"] if "same ledger" in note)
    assert re.search(
        r"transaction 1,\d\d\d could not be read, so only the chain id, the head and the oldest version", note
    )
    refuse.limit = len(proxy.requests) + 100
    with pytest.raises(RunStopped, match=r"chain id 4, .* got 77"):
        study(proxy.url).run(progress=False)


@pytest.mark.fault(
    "the node serves another ledger during a timeline", "LedgerChanged; no row of either ledger is returned"
)
@pytest.mark.parametrize("requests", [8, 40, 90])
def test_a_timeline_of_two_ledgers_is_never_returned(proxy, replaced, connect, requests):
    """Noticed at the end at the latest."""
    replaced(requests)
    with pytest.raises(LedgerChanged):
        toolkit.timeline(connect(proxy.url), modules=["0xfa17::vault"])
