"""Thresholds and waivers: what they take, and what is over them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError, StudyError
from toolkit.gas._rules import Threshold, Waiver, read_waivers
from toolkit.gas._study import Study

WAIVER = {"call": "a", "reason": "known", "expires": "2026-12-31"}
VIEW = {"label": "a", "view": "0x1::m::f"}


@pytest.mark.parametrize(
    ("given_as", "units", "percent"),
    [
        ("2%", None, 2.0),
        (" 2.5 % ", None, 2.5),
        ("0%", None, 0.0),
        ("50", 50, None),
        (50, 50, None),
        (0, 0, None),
        (["2%", 50], 50, 2.0),
        ({"gas_units": 5, "percent": 1}, 5, 1.0),
        (Threshold(percent=3), None, 3.0),
    ],
)
def test_a_threshold_takes_every_form(given_as, units, percent):
    """Percent, units, both, a table."""
    found = Threshold.of(given_as)
    assert (found.gas_units, found.percent) == (units, percent)


@pytest.mark.parametrize(
    "given_as",
    [
        "",
        -1,
        "-2%",
        "two",
        "2 %%",
        "nan%",
        "1e3%",
        True,
        None,
        2.5,
        [],
        ["2%", "3%"],
        {},
        {"percent": -1},
        {"percent": float("nan")},
        {"percent": float("inf")},
        {"gas_units": 1.5},
        {"gas_units": True},
        {"units": 5},
    ],
)
def test_what_is_no_threshold_is_refused(given_as):
    """Nothing is guessed."""
    with pytest.raises(InputError, match="threshold"):
        Threshold.of(given_as)


@pytest.mark.parametrize(
    ("threshold", "before", "after", "over"),
    [
        ("2%", 100, 102, None),
        ("2%", 100, 103, "2 %"),
        ("0%", 100, 101, "0 %"),
        ("0%", 100, 100, None),
        ("2%", 100, 50, None),
        ("2%", 0, 1, "2 %"),
        ("2%", 0, 0, None),
        ("50", 100, 150, None),
        ("50", 100, 151, "50 gas units"),
        ("1", 1, 3, "1 gas unit"),
        (["2%", 50], 10_000, 10_060, "50 gas units"),
        (["2%", 50], 100, 110, "2 %"),
        ("0.1%", 1_000, 1_001, None),
        ("0.1%", 2**64 - 1_001, 2**64 - 1, None),
    ],
)
def test_a_rise_over_any_limit_is_over(threshold, before, after, over):
    """The limit itself is not over; a fall never is; from nothing every rise is."""
    limit = Threshold.of(threshold).exceeded(before, after)
    assert (limit and str(limit)) == over


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0, 10_000))
def test_percent_is_exact(before, rise, tenths):
    """No rounding of floats on either side of the limit."""
    over = Threshold.of(f"{tenths / 10}%").exceeded(before, before + rise)
    assert (over is not None) == (1_000 * rise > tenths * before)


def test_a_waiver_holds_through_its_last_day():
    """The day after, it no longer does."""
    waiver = Waiver.model_validate(WAIVER)
    assert waiver.holds(date(2026, 12, 31))
    assert not waiver.holds(date(2027, 1, 1))


@pytest.mark.parametrize(
    ("waiver", "words"),
    [
        ({"expires": 20261231}, r"waiver 1 \('a'\), `expires`: expected a date such as 2026-12-31, got 20261231"),
        ({"expires": "soon"}, r"waiver 1 \('a'\), `expires`"),
        ({"expires": None}, r"`expires`: expected a date"),
        ({"reason": ""}, r"waiver 1 \('a'\), `reason`"),
        ({"reson": "x"}, r"waiver 1 \('a'\): `reson` is not a key here; did you mean `reason`"),
        ({"call": ""}, "waiver 1, `call`"),
    ],
)
def test_a_mistake_in_a_waiver_is_told_with_its_place(waiver, words):
    """A waiver without a reason or a date is refused."""
    with pytest.raises(StudyError, match=words):
        read_waivers([WAIVER | waiver])


def test_waivers_are_a_list_of_different_calls():
    """One waiver per call."""
    with pytest.raises(StudyError, match="earlier waiver for the same call"):
        read_waivers([WAIVER, WAIVER])
    with pytest.raises(StudyError, match="expected a list"):
        read_waivers({"call": "a"})
    with pytest.raises(StudyError, match="waiver 1: expected a table"):
        read_waivers([5])


def test_a_study_carries_them_and_its_digest_does_not():
    """Thresholds, waivers and the pace may change while a run goes on: they change nothing that is observed."""
    bare = Study(calls=[VIEW])
    full = Study(
        calls=[VIEW | {"thresholds": {"gas_units": 5}}], thresholds="2%", waivers=[WAIVER], requests_per_second=20
    )
    assert full.digest == bare.digest
    again = Study.from_document(full.document())
    assert again.document() == full.document()
    assert (again.thresholds, again.waivers, again.requests_per_second) == (full.thresholds, full.waivers, 20)
    assert again.calls[0].thresholds == Threshold(gas_units=5)
    assert set(bare.document()) == {"title", "nodes", "versions", "call"}


@pytest.mark.parametrize("pace", [0, -1, float("nan"), float("inf"), "fast"])
def test_a_pace_is_above_0(pace):
    """Anything else is refused by name."""
    with pytest.raises(StudyError, match="`requests_per_second`"):
        Study(calls=[VIEW], requests_per_second=pace)


def test_a_waiver_of_a_study_names_one_of_its_calls():
    """A misspelt label is refused with those that there are."""
    with pytest.raises(StudyError, match=r"waiver 1 \('sise'\): it matches no call of the study"):
        Study(calls=[VIEW | {"label": "size"}], waivers=[WAIVER | {"call": "sise"}])
