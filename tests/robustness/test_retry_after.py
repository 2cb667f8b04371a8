"""What a node that asks for a wait gets: silence, from every call, and a run that says when to go on."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

import toolkit
from tests.unit.client.fakes import URL, Script, answer, get, refused
from tests.unit.client.test_connection import Clock, connected
from toolkit.cli import main
from toolkit.client._connection import Connection
from toolkit.client._http import MAX_RETRY_AFTER_S, Answer, Pace, PreparedCall, RetryPolicy, not_sent, resume_time
from toolkit.errors import RateLimited, RunStopped, Unavailable

SIZE = toolkit.ViewFunction("0xcafe::registry::size")
TIME = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC"
GOOD = answer({"fine": True})


def limited(after, *, status=429, answered=0):
    """Return a change of the proxy's answers: views beyond the first ones are refused with a Retry-After."""
    seen = []

    def change(request, honest):
        if not request.path.endswith("/view"):
            return honest if not seen[answered:] else type(honest)(status, {"retry-after": after}, b"")
        seen.append(request)
        return None if len(seen) <= answered else type(honest)(status, {"retry-after": after}, b"")

    change.views = seen
    return change


@pytest.mark.fault(
    "a 429 or 503 whose Retry-After exceeds the retry budget",
    "nothing is sent until then; each remaining call is a row that says when",
)
@pytest.mark.parametrize("after", ["3600", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_long_wait_ends_the_calls_that_are_left(proxy, after):
    """500 calls cost one round of requests, for each form of the wait."""
    proxy.change = limited(after)
    node = toolkit.connect(proxy.url, cache=None, max_in_flight=8)
    frame = toolkit.fetch_views(node, SIZE, versions=range(100, 600), progress=False)
    assert len(frame) == 500
    assert frame["status"].eq(429).all()
    assert len(proxy.change.views) <= 8
    unsent = frame["error_message"][frame["error_code"] == "rate_limited"]
    assert len(unsent) >= 492
    assert unsent.str.fullmatch(rf"not sent: the node asked clients to back off until {TIME} \(Retry-After\)").all()
    requests = len(proxy.requests)
    with pytest.raises(
        RateLimited, match=rf"not sent because .* until {TIME}.*; retry then, or call connect\(\) again"
    ):
        node.view(SIZE, ledger_version=100)
    assert len(proxy.requests) == requests


@pytest.mark.fault("a node asks a study to wait for an hour", "the run stops and says when to resume; rows are kept")
@pytest.mark.parametrize("executor", [None, "threads:2"])
def test_a_study_stops_and_goes_on_later(proxy, tmp_path, executor):
    """RunStopped with the time; later the same study completes with the rows of an undisturbed one.

    The rows of the last seconds, for which the node could not be asked about its ledger, are read again.
    """
    proxy.change = limited("3600", answered=250)
    study = {"calls": {"size": SIZE}, "versions": "100:499"}
    with (
        toolkit.connect(proxy.url, cache=None, max_in_flight=8) as node,
        pytest.raises(RunStopped, match=rf"accepts no requests until {TIME} .*run the same study"),
    ):
        toolkit.Study(node=node, **study).run(tmp_path / "run", progress=False, executor=executor)
    kept = len(toolkit.Run.open(tmp_path / "run").observations)
    assert kept >= 100
    assert len(proxy.change.views) <= 250 + 8 * 2
    proxy.change = None
    with toolkit.connect(proxy.url, cache=None) as node:
        run = toolkit.Study(node=node, **study).run(tmp_path / "run", progress=False)
        whole = toolkit.Study(node=node, **study).run(tmp_path / "whole", progress=False)
    assert run.manifest["attempts"] == 2
    # What nobody could confirm after the 429 is read again; here, more than half was confirmed before.
    assert kept >= run.manifest["resumed_rows"] >= (70 if executor is None else 0)
    assert run.digest == whole.digest


def test_on_the_command_line_it_is_one_line_and_code_5(proxy, tmp_path, capsys):
    """As for every run that its circumstances have stopped."""
    place = tmp_path / "study.toml"
    place.write_text(
        f'title = "t"\nnode = "{proxy.url}"\n[versions]\nplan = "100:499"\n'
        '[[call]]\nlabel = "size"\nview = "0xcafe::registry::size"\n'
    )
    proxy.change = limited("3600", answered=100)
    assert main(["study", "run", str(place), "--out", str(tmp_path / "run"), "--quiet"]) == 5
    words = capsys.readouterr().err
    assert re.search(rf"accepts no requests until {TIME}", words)
    assert "Traceback" not in words


def test_a_wait_within_the_budget_holds_for_every_call():
    """After one 429 with 7 s, the next call waits for what is left of them; then nothing is waited."""
    clock = Clock()
    pace = Pace(None, clock)
    connection = Connection(URL, Script(refused(429, "x", retry_after="7"), GOOD), sleep=clock.sleep, pace=pace)
    pace.hold(7.0, budget_s=60.0)
    get(connection, "/x", asked="x")
    assert clock.slept == [7.0, 7.0]
    get(connection, "/x", asked="x")
    assert clock.slept == [7.0, 7.0]


def test_waits_without_an_answer_between_them_share_one_budget():
    """A node that asks for 20 s again and again is left alone when 60 s are used up; an answer begins a new count."""
    clock = Clock()
    pace = Pace(None, clock)
    for _ in range(3):
        pace.hold(20.0, budget_s=60.0)
        assert (pace.paused_s(), pace.refused_s()) == (20.0, 0.0)
        clock.sleep(20.0)
    pace.hold(20.0, budget_s=60.0)
    assert (pace.paused_s(), pace.refused_s()) == (0.0, 20.0)
    clock.sleep(20.0)
    pace.answered()
    pace.hold(20.0, budget_s=60.0)
    assert (pace.paused_s(), pace.refused_s()) == (20.0, 0.0)


def test_the_pace_counts_pauses_in():
    """With a rate, the next turn is after the pause, and the turns after it are a gap apart."""
    clock = Clock()
    pace = Pace(10.0, clock)
    pace.hold(5.0, budget_s=60.0)
    assert [pace.turn_s() for _ in range(3)] == pytest.approx([5.0, 5.1, 5.2])


def test_a_single_call_is_not_sent_either():
    """Until the wait is over; then the node is asked again."""
    connection, transport, clock = connected(refused(503, "x", retry_after="3600"), GOOD)
    with pytest.raises(Unavailable, match=rf"the node asked clients to wait 3600 s; retry after {TIME}"):
        get(connection, "/x", asked="x")
    with pytest.raises(RateLimited, match=r"^y: not sent"):
        get(connection, "/y", asked="y")
    assert len(transport.requests) == 1
    clock.sleep(3600)
    assert get(connection, "/y", asked="y") is GOOD


def test_calls_over_threads_are_rows_too():
    """Without an engine each call that is not sent is an outcome, not the end of the run."""
    connection = Connection(URL, Script(refused(429, "x", retry_after="3600")), max_in_flight=1)
    calls = [PreparedCall(connection.request("GET", f"/{n}"), f"call {n}", lambda found: found) for n in range(5)]
    outcomes = dict(connection.perform_many(calls))
    assert {type(outcome) for outcome in outcomes.values()} == {RateLimited}
    assert sum("not sent" in str(outcome) for outcome in outcomes.values()) == 4


def test_only_429_and_503_speak_for_the_whole_node():
    """Another status with a Retry-After is about its own request."""
    headers = {"retry-after": "7"}

    def paused_s(answer: Answer) -> float:
        pace = Pace(None, clock=lambda: 0.0)
        pace.note_answer(answer, budget_s=60.0)
        return pace.paused_s()

    assert [paused_s(Answer(status, headers, b"")) for status in (429, 503, 500, 502, 404, 200)] == [7.0, 7.0] + [0] * 4
    assert paused_s(Answer(429, {}, b"")) == 0
    assert paused_s(Answer(429, {"retry-after": "0"}, b"")) == 0


def test_times_are_told_in_utc_and_never_too_early():
    """The second in which the wait ends counts as a whole one; the longest wait has a date too."""
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert resume_time(7.0, now=now) == "2026-05-01 12:00:08 UTC"
    assert resume_time(MAX_RETRY_AFTER_S, now=now).startswith(f"{now + timedelta(days=366):%Y-%m-%d}")
    assert not_sent("x", 5.0).retry_after_s == 5.0
    assert RetryPolicy().budget_s == 60.0
