"""Shards: every version and call in exactly one of them, and the same on every machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.gas.observed import plan
from toolkit.client._versions import FindSteps
from toolkit.errors import InputError, StudyError
from toolkit.gas._study import Study
from toolkit.gas.plan._plan import WHOLE, Shard
from toolkit.gas.plan._resolve import check_shardable
from toolkit.wire import ViewFunction

VIEW = ViewFunction("0x1::m::count")


@given(st.integers(1, 40), st.integers(0, 200), st.integers(1, 7))
def test_shards_divide_versions_and_calls(of, count, step):
    """Together they have each version once, in order, in runs of nearly the same length; and each call once."""
    shards = [Shard(number, of) for number in range(1, of + 1)]
    for versions in (range(0, count * step, step), [place * step for place in range(count)]):
        slices = [shard.slice(versions) for shard in shards]
        assert [version for some in slices for version in some] == list(versions)
        assert max(map(len, slices)) - min(map(len, slices)) <= 1
    for place in range(50):
        assert sum(shard.has(place) for shard in shards) == 1


@pytest.mark.parametrize(("given_", "read"), [(None, WHOLE), ((2, 5), (2, 5)), (" 2/5", (2, 5)), ([1, 1], WHOLE)])
def test_shards_are_written_in_two_ways(given_, read):
    """As a pair or as text."""
    assert Shard.parse(given_) == read


@pytest.mark.parametrize("wrong", ["0/5", "6/5", (0, 0), "2", "a/b", (1.0, 2), (True, 2), 7, "1/2/3", "-1/2"])
def test_what_is_no_shard_is_refused(wrong):
    """With the form, or with the numbers that there are."""
    with pytest.raises(InputError, match="shard"):
        Shard.parse(wrong)


@pytest.mark.parametrize("versions", ["0:-1", "-10:", "0:-1/5", "5:", [1, -1], FindSteps("0:-1"), "-1"])
def test_versions_that_count_from_the_head_are_refused(versions):
    """The head moves from machine to machine; the text gives the numbers to write."""
    with pytest.raises(
        StudyError,
        match=r"counts from the head, which moves; write .* such as 0:9 \(http://node.test/v1 has versions 0 to 99 now",
    ):
        check_shardable(Study(calls=[VIEW], versions=versions).specification(), [plan()])


@pytest.mark.parametrize("versions", ["0:9", "0:9/5", "0:9:2", [1, 2], FindSteps("0:9"), "2026-05-01..2026-06-01"])
def test_versions_that_are_the_same_everywhere_pass(versions):
    """Numbers, and dates, unless something was clipped on this machine."""
    study = Study(calls=[VIEW], versions=versions)
    check_shardable(study.specification(), [plan()])
    with pytest.raises(StudyError, match="must read the same versions, but versions 0 to 4 are pruned; write bounds"):
        check_shardable(study.specification(), [plan(notes=("versions 0 to 4 are pruned",))])


def test_simulations_need_no_versions():
    """They run at the head, wherever it is."""
    study = Study(calls=[{"simulate": "0x1::m::pay", "sender": "0x1"}], versions="0:-1")
    check_shardable(study.specification(), [plan()])
