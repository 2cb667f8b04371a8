"""When a failed request is repeated, and after how long: pure decisions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.fakes import refused
from toolkit.client._http import Answer, RetryPolicy, retry_after_s
from toolkit.client._node_errors import refusal

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_waits_double_up_to_the_cap():
    """Without luck the waits are base, twice that, and so on, never above the cap."""
    policy = RetryPolicy(base_s=0.25, cap_s=1.5)
    waits = [policy.wait_s(repeat=repeat, chance=1.0) for repeat in range(1, 6)]
    assert waits == [0.25, 0.5, 1.0, 1.5, 1.5]


@given(repeat=st.integers(1, 40), chance=st.floats(0, 1, exclude_max=True))
def test_jitter_keeps_a_wait_between_half_and_whole(repeat, chance):
    """Whatever the chance, a wait lies in [0.5, 1] of the step it belongs to."""
    policy = RetryPolicy()
    whole = min(policy.cap_s, policy.base_s * 2 ** (repeat - 1))
    assert whole / 2 <= policy.wait_s(repeat=repeat, chance=chance) <= whole


def test_what_the_node_asks_for_holds_where_it_is_longer():
    """Retry-After lengthens a wait and never shortens it."""
    policy = RetryPolicy(base_s=1.0)
    assert policy.wait_s(repeat=1, chance=0.0, asked_s=7.0) == 7.0
    assert policy.wait_s(repeat=1, chance=0.0, asked_s=0.0) == 0.5


@pytest.mark.parametrize("status", [None, 429, 502, 503, 504])
def test_outages_are_repeated_until_the_attempts_are_used_up(status):
    """No answer, 429 and gateway errors are tried `attempts` times in all."""
    policy = RetryPolicy(attempts=3)
    assert [policy.may_repeat(status, repeat=repeat) for repeat in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 411, 413, 415, 501, 507, 301])
def test_refusals_are_not_repeated(status):
    """What the node refuses once it refuses again."""
    assert not RetryPolicy().may_repeat(status, repeat=1)


def test_a_500_is_repeated_once():
    """An internal error may be a hiccup, but not twice."""
    policy = RetryPolicy(attempts=5)
    assert policy.may_repeat(500, repeat=1, text="storage hiccup")
    assert not policy.may_repeat(500, repeat=2, text="storage hiccup")


@pytest.mark.parametrize("text", ["Failed to deserialize table item retrieved from DB", "DESERIALISING failed"])
def test_a_500_that_cannot_deserialise_is_never_repeated(text):
    """The stored bytes stay what they are."""
    assert not RetryPolicy().may_repeat(500, repeat=1, text=text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 30 ", 30.0),
        ("0" * 5000 + "8", 8.0),
        ("9" * 9, 31_622_400.0),
        ("9" * 5000, 31_622_400.0),
    ],
)
def test_retry_after_in_seconds(text, seconds):
    """The number form is seconds; spaces do not matter, and nothing is longer than 366 days."""
    assert retry_after_s(text) == seconds


def test_retry_after_by_its_name_in_any_case():
    """Header names are compared ignoring case."""
    assert Answer(429, {"content-type": "x", "RETRY-AFTER": "3"}, b"").retry_after_s == 3.0


def test_retry_after_as_a_date_counts_from_now():
    """The date form is turned into seconds; a date that has passed is no wait."""
    assert retry_after_s("Fri, 31 Dec 9999 23:59:59 GMT", now=NOW) == 31_622_400.0
    later = format_datetime(NOW + timedelta(seconds=90), usegmt=True)
    assert retry_after_s(later, now=NOW) == 90.0
    assert retry_after_s(later, now=NOW + timedelta(hours=1)) == 0.0


def test_retry_after_without_a_zone_is_utc():
    """A date with zone -0000 carries no zone, which means UTC."""
    assert retry_after_s("Fri, 01 May 2026 12:00:10 -0000", now=NOW) == 10.0


OF_ANOTHER_AGE = ["Fri, 01 May 99999999999999999999 12:00:00 GMT", "Fri, 01 May 2026 12:00:00 +9999999999999999"]
"""Dates that no clock can hold."""


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "1.5", "inf", "nan", "٣", "Fri, 99 May 2026 12:00:00 GMT", *OF_ANOTHER_AGE]
)
def test_an_unreadable_retry_after_counts_as_none(text):
    """A gateway may send anything: what cannot be read is left out."""
    assert retry_after_s(text, now=NOW) is None


def test_no_retry_after_is_none():
    """Without the header nothing was asked for."""
    assert Answer(429, {}, b"").retry_after_s is None


@given(st.text(alphabet=st.characters(codec="latin-1"), max_size=40))
def test_no_retry_after_text_breaks_the_reading(text):
    """Whatever the header holds, the answer is a wait of 0 or more, or None."""
    seconds = retry_after_s(text, now=NOW)
    assert seconds is None or seconds >= 0


def test_a_wait_that_is_asked_for_is_told():
    """A Retry-After beyond the budget is no reason to wait, so its length is for the reader."""
    assert "the node asked clients to wait 100 s" in str(refusal("x", refused(429, "rate_limited", retry_after="100")))
    assert "asked clients to wait" not in str(refusal("x", refused(429, "rate_limited")))
