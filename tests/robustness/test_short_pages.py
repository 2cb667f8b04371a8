"""Pages of committed transactions that are short, holed, mixed or missing: nothing is lost, doubled or wrong."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import toolkit
from toolkit.client._http import RetryPolicy

CALLS = {"register": {"committed": "0xcafe::registry::register"}}
VERSIONS = "0:399"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "wait_s", lambda *_, **__: 0.0)


def transactions_changed(change):
    """Change the list of transactions of each page; every other answer passes."""

    def changed(request, answer):
        if request.path != "/v1/transactions" or answer.status != 200:
            return None
        return replace(answer, body=json.dumps(change(request, json.loads(answer.body))).encode())

    return changed


def study(url):
    return toolkit.Study(node=url, calls=CALLS, versions=VERSIONS)


def gas_of(run):
    good = run.observations[run.observations["error_code"].isna()]
    return dict(zip(good["ledger_version"].tolist(), good["gas_used"].tolist(), strict=True))


@pytest.fixture(scope="module")
def whole(honest):
    """Return the run on the honest node."""
    return study(f"http://{honest[0]}:{honest[1]}").run(progress=False)


def cut_to(size):
    return transactions_changed(lambda _, page: page[:size])


CHANGES = {
    "a node limit of 25": cut_to(25),
    "one transaction an answer": cut_to(1),
    "reversed order": transactions_changed(lambda _, page: page[::-1]),
    "each transaction twice": transactions_changed(lambda _, page: page + page),
    "transactions of other versions beside": transactions_changed(
        lambda _, page: (
            [{**page[0], "version": "1400"}, *page, {**page[0], "version": "3"}][: len(page) + 2]
            if int(page[0]["version"]) > 3
            else page
        )
    ),
}


@pytest.mark.fault("a page that is too short or out of order", "reading continues until every version has been read")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_committed_transaction_is_lost(proxy, whole, connect, change):
    """The run has the rows of the honest node, with the same digest."""
    versions = "360:399" if change is CHANGES["one transaction an answer"] else VERSIONS
    proxy.change = change
    node = connect(proxy.url)
    run = toolkit.Study(node=node, calls=CALLS, versions=versions).run(progress=False)
    assert run.complete
    assert run.observations["error_code"].isna().all()
    assert gas_of(run) == {at: gas for at, gas in gas_of(whole).items() if at >= int(versions.partition(":")[0])}
    if versions == VERSIONS:
        assert run.digest == whole.digest
        frame = toolkit.fetch_transactions(node, versions=versions, progress=False).transactions
        assert frame["ledger_version"].tolist() == list(range(400))
        assert frame["error_code"].isna().all()


@pytest.mark.fault(
    "versions that a page always leaves out", "a failure row for exactly these versions; read again later"
)
def test_a_gap_is_a_row_and_is_read_again_by_the_same_command(proxy, whole, tmp_path):
    """A complete run with missing versions names them; the same command reads them, and nothing else, again."""
    gap = range(310, 322)
    proxy.change = transactions_changed(lambda _, page: [one for one in page if int(one["version"]) not in gap])
    run = study(proxy.url).run(tmp_path, progress=False)
    assert run.complete
    failed = run.observations[run.observations["error_code"].notna()]
    assert failed["ledger_version"].tolist() == [310]
    assert failed["error_message"].str.startswith("transactions 310 to 321 were not read: ").all()
    assert run.manifest["nodes"][0]["committed_read"]["missing"] == [[310, 321]]
    assert run.manifest["counts"]["unanswered"] == 1
    assert gas_of(run) == {at: gas for at, gas in gas_of(whole).items() if at not in gap}

    proxy.change, before = None, len(proxy.requests)
    again = study(proxy.url).run(tmp_path, progress=False)
    pages = [request.query for request in proxy.requests[before:] if request.path == "/v1/transactions"]
    assert pages == [{"start": "310", "limit": "12"}]
    assert again.complete
    assert (again.digest, gas_of(again)) == (whole.digest, gas_of(whole))
    assert "missing" not in again.manifest["nodes"][0]["committed_read"]


@pytest.mark.fault("pages that fail: no answer, an error, or invalid JSON", "the same command reads them again")
@pytest.mark.parametrize("status", [503, 403, 200])
def test_failed_pages_are_read_again_by_the_same_command(proxy, whole, tmp_path, status):
    """Two of four pages fail, in any way: each gives a row, and later only those pages are read."""

    def fail(request, answer):
        if request.path == "/v1/transactions" and request.query["start"] in {"100", "300"}:
            return replace(answer, status=status, body=b"<html>not now</html>")
        return None

    proxy.change = fail
    run = study(proxy.url).run(tmp_path, progress=False)
    failed = run.observations[run.observations["error_code"].notna()]
    assert failed["ledger_version"].tolist() == [100, 300]
    assert failed["error_message"].str.contains(r"transactions [13]00 to [13]99 were not read: ").all()
    proxy.change, before = None, len(proxy.requests)
    again = study(proxy.url).run(tmp_path, progress=False)
    starts = {request.query["start"] for request in proxy.requests[before:] if request.path == "/v1/transactions"}
    assert starts == {"100", "300"}
    assert again.digest == whole.digest


@pytest.mark.fault("a node that returns the same page for ever", "the versions are reported missing after two requests")
def test_a_node_that_repeats_itself_ends(proxy, connect):
    """Whatever is asked, the first page comes: the others are missing."""
    first = []

    def same(_, page):
        first.append(page)
        return min(first, key=lambda one: int(one[0]["version"]))

    proxy.change = transactions_changed(same)
    node = connect(proxy.url, max_in_flight=1)
    frame = toolkit.fetch_transactions(node, versions="0:299", progress=False).transactions
    assert frame["ledger_version"].tolist() == list(range(300))
    assert frame["error_code"].isna().tolist() == [True] * 100 + [False] * 200
    assert len([one for one in proxy.requests if one.path == "/v1/transactions"]) == 5


def test_a_run_killed_between_blocks_of_pages_reads_only_what_is_missing(proxy, whole, tmp_path):
    """What is noted as missing stays noted while it is read again: an attempt that is broken off loses nothing."""
    proxy.change = transactions_changed(lambda _, page: [one for one in page if int(one["version"]) not in {310, 350}])
    study(proxy.url).run(tmp_path, progress=False)
    boom = transactions_changed(lambda request, page: page if request.query["start"] == "310" else None)
    proxy.change = lambda request, answer: b"" if request.query.get("start") == "350" else boom(request, answer)
    second = study(proxy.url).run(tmp_path, progress=False)
    assert second.manifest["nodes"][0]["committed_read"]["missing"] == [[350, 350]]
    proxy.change = None
    assert study(proxy.url).run(tmp_path, progress=False).digest == whole.digest


def test_a_malformed_transaction_of_one_call_does_not_keep_another_from_being_complete(proxy, whole, tmp_path):
    """Two committed calls, and one transaction that cannot be read: a row of each, and both are read again."""

    def malformed(_, page):
        return [{**one, "gas_used": "many"} if int(one["version"]) == victim else one for one in page]

    victim = max(gas_of(whole))
    proxy.change = transactions_changed(malformed)
    two = toolkit.Study(
        node=proxy.url, calls=CALLS | {"other": {"committed": "0xb00c::order_book::place"}}, versions=VERSIONS
    )
    run = two.run(tmp_path, progress=False)
    assert run.complete
    failed = run.observations[run.observations["error_code"].notna()]
    assert failed["ledger_version"].tolist() == [victim] * 2
    proxy.change = None
    again = two.run(tmp_path, progress=False)
    assert again.observations["error_code"].isna().all()
    assert again.observations.query("label == 'register'")["gas_used"].tolist() == list(gas_of(whole).values())


@pytest.mark.fault(
    "a committed transaction that a node never returns", "`explain()` names the range that could not be read"
)
def test_what_could_not_be_read_is_said(proxy, whole):
    """The run's words count the transactions that were read, and name the range that was not."""
    missing = str(whole.observations["ledger_version"].iloc[0])
    proxy.change = transactions_changed(lambda _, page: [one for one in page if one["version"] != missing])
    run = study(proxy.url).run(progress=False)
    assert f"in {len(whole.observations) - 1} committed transactions, as far as they can be compared" in run.explain()
    assert "register: 1 range of versions could not be read" in run.explain()
    assert "could not be read" not in whole.explain()
