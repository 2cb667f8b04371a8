"""When a failed request is repeated, and after how long: pure decisions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.fakes import refused
from toolkit.client._http import Answer, RetryPolicy, retry_after_s
from toolkit.client._node_errors import refusal
from toolkit.errors import NodeUnreachable

BUSY = Answer(503, {}, b"")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_waits_double_up_to_the_cap():
    """Without luck the waits are base, twice that, and so on, never above the cap."""
    policy = RetryPolicy(attempts=9, base_s=0.25, cap_s=1.5)
    waits = [policy.pause_s(BUSY, repeat=repeat, chance=1.0) for repeat in range(1, 6)]
    assert waits == [0.25, 0.5, 1.0, 1.5, 1.5]


@given(repeat=st.integers(1, 40), chance=st.floats(0, 1, exclude_max=True))
def test_jitter_keeps_a_wait_between_half_and_whole(repeat, chance):
    """Whatever the chance, a wait lies in [0.5, 1] of the step it belongs to."""
    policy = RetryPolicy(attempts=50)
    whole = min(policy.cap_s, policy.base_s * 2 ** (repeat - 1))
    assert whole / 2 <= policy.pause_s(BUSY, repeat=repeat, chance=chance) <= whole


def test_what_the_node_asks_for_holds_where_it_is_longer():
    """Retry-After lengthens a wait and never shortens it."""
    policy = RetryPolicy(base_s=1.0)
    assert policy.pause_s(Answer(503, {"retry-after": "7"}, b""), repeat=1, chance=0.0) == 7.0
    assert policy.pause_s(Answer(503, {"retry-after": "0"}, b""), repeat=1, chance=0.0) == 0.5


@pytest.mark.parametrize(
    ("status", "text", "repeats"),
    [
        *((status, "", [True, True, False]) for status in (None, 429, 502, 503, 504)),
        *((status, "", [False] * 3) for status in (400, 401, 403, 404, 405, 410, 411, 413, 415, 501, 507, 301)),
        (500, "storage hiccup", [True, False, False]),
        (500, "Failed to deserialize table item retrieved from DB", [False] * 3),
        (500, "DESERIALISING failed", [False] * 3),
    ],
)
def test_what_may_pass_is_repeated(status, text, repeats):
    """No answer, 429 and gateway errors until the attempts are used up; an internal error once; refusals never."""
    policy = RetryPolicy(attempts=3)
    outcome = NodeUnreachable("cut off") if status is None else Answer(status, {}, text.encode())
    pauses = [policy.pause_s(outcome, repeat=repeat, chance=0.0) for repeat in (1, 2, 3)]
    assert [pause is not None for pause in pauses] == repeats


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 30 ", 30.0),
        ("0" * 5000 + "8", 8.0),
        ("9" * 9, 31_622_400.0),
        ("9" * 5000, 31_622_400.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 31_622_400.0),
        ("Fri, 01 May 2026 12:01:30 GMT", 90.0),
        ("Fri, 01 May 2026 11:01:30 GMT", 0.0),
        ("Fri, 01 May 2026 12:00:10 -0000", 10.0),
        *((text, None) for text in ("", "soon", "-5", "1.5", "inf", "nan", "٣", "Fri, 99 May 2026 12:00:00 GMT")),
        ("Fri, 01 May 99999999999999999999 12:00:00 GMT", None),
        ("Fri, 01 May 2026 12:00:00 +9999999999999999", None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_retry_after_is_seconds_or_a_date(text, seconds):
    """A wait is at most 366 days, and 0 for a date in the past; an invalid value is None."""
    assert retry_after_s(text, now=NOW) == seconds


def test_retry_after_by_its_name_in_any_case():
    """Header names are compared ignoring case; without the header nothing was asked for."""
    assert Answer(429, {"content-type": "x", "RETRY-AFTER": "3"}, b"").retry_after_s == 3.0
    assert Answer(429, {}, b"").retry_after_s is None


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Thu, 01 Jan 2015 00:00:00 GMT", 90.0),
        ("Fri, 31 Dec 2100 00:00:00 GMT", 0.0),
        ("soon", 0.0),
        ("", 0.0),
    ],
)
def test_a_date_is_counted_from_that_of_the_response(date, seconds):
    """The clock of this machine may be wrong; without a date of the response, it is what there is."""
    answer = Answer(503, {"retry-after": "Thu, 01 Jan 2015 00:01:30 GMT", "date": date}, b"")
    assert answer.retry_after_s == seconds


@given(st.text(alphabet=st.characters(codec="latin-1"), max_size=40))
def test_no_retry_after_text_breaks_the_reading(text):
    """Whatever the header holds, the answer is a wait of 0 or more, or None."""
    seconds = retry_after_s(text, now=NOW)
    assert seconds is None or seconds >= 0


def test_a_wait_that_is_asked_for_is_told():
    """A Retry-After beyond the budget is not a reason to wait, so its length is for the reader."""
    assert "100 s" in str(refusal("x", refused(429, "rate_limited", retry_after="100")))
    assert "asked clients to wait" not in str(refusal("x", refused(429, "rate_limited")))
