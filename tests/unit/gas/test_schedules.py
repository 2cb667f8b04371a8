"""Gas schedules side by side: every difference a row, exact; uniform changes said as such."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit
from toolkit import plots
from toolkit.embedded._meter import released_schedule
from toolkit.errors import InputError
from toolkit.gas._schedules import schedule_diff, schedule_words
from toolkit.wire import GasSchedule

U64 = st.integers(0, 2**64 - 1)
ENTRIES = st.dictionaries(st.sampled_from("abcdefgh"), U64)


def released(release):
    """Return a published schedule."""
    found = released_schedule(release)
    return GasSchedule(found.feature_version, found.entries)


class TestDiff:
    """schedule_diff"""

    def test_columns_have_types_and_units(self):
        """uint64 values, an exact change of either sign, a ratio; units in the data dictionary."""
        frame = schedule_diff(GasSchedule(1, {"a": 1}), GasSchedule(1, {"a": 2}))
        assert frame.dtypes.astype(str).to_dict() == {
            "name": "string",
            "kind": "string",
            "before": "uint64[pyarrow]",
            "after": "uint64[pyarrow]",
            "change": "i128",
            "ratio": "double[pyarrow]",
        }
        assert "internal gas units" in toolkit.describe(frame).set_index("column").loc["before", "unit"]

    @given(ENTRIES, ENTRIES)
    def test_the_rows_turn_one_schedule_into_the_other(self, before, after):
        """Nothing is missing, nothing is rounded: the differences applied to one side give the other."""
        frame = schedule_diff(GasSchedule(1, before), GasSchedule(2, after))
        made = dict(before)
        for row in frame.itertuples():
            if row.kind == "removed":
                del made[row.name]
            else:
                made[row.name] = int(row.after)
            assert (row.kind == "added") == (row.name not in before)
            if row.kind == "changed":
                assert int(row.before) + int(row.change) == int(row.after)
        assert made == after

    def test_the_ends_of_u64_are_exact(self):
        """The largest possible change, in both directions; a value that was 0 does not have a ratio."""
        frame = schedule_diff(GasSchedule(1, {"a": 0, "b": 2**64 - 1}), GasSchedule(1, {"a": 2**64 - 1, "b": 0}))
        assert frame["change"].tolist() == [2**64 - 1, -(2**64) + 1]
        assert frame["ratio"].isna().tolist() == [True, False]

    def test_equal_schedules_give_an_empty_frame(self):
        """With all columns and types."""
        frame = schedule_diff(GasSchedule(1, {"a": 1}), GasSchedule(2, {"a": 1}))
        assert (len(frame), list(frame.columns)) == (0, ["name", "kind", "before", "after", "change", "ratio"])

    def test_the_published_tenfold_step(self):
        """Between v1.41.0 and v1.41.1 459 parameters change, each by exactly ten, and none comes or goes."""
        frame = schedule_diff(released("v1.41.0"), released("v1.41.1"))
        assert len(frame) == 459
        assert set(frame["kind"]) == {"changed"}
        assert (frame["ratio"] == 10).all()
        assert (frame["after"] == frame["before"] * pd.array([10], dtype="uint64[pyarrow]")[0]).all()
        assert frame["name"].is_monotonic_increasing

    def test_the_published_history_from_end_to_end(self):
        """Over many releases at once, added parameters are counted, and the ratio of most is named."""
        before, after = released("v1.15.2"), released("v1.48.0")
        kinds = schedule_diff(before, after)["kind"].value_counts().to_dict()
        assert kinds == {"changed": 401, "added": 82}
        assert schedule_words(before, after) == (
            "401 of 438 parameters changed, 398 of them ×10; 82 parameters added; gas feature version 20 to 52"
        )

    def test_versions_instead_of_schedules_are_refused(self):
        """The text says what to give."""
        with pytest.raises(InputError, match=r"node.gas_schedule\(version\), got int"):
            schedule_diff(1_000, 2_000)

    def test_the_frame_is_what_the_figure_takes(self):
        """plots.schedule_changes draws it."""
        import matplotlib.pyplot as plt

        axes = plots.schedule_changes(schedule_diff(released("v1.41.0"), released("v1.41.1")))
        plt.close(axes.figure)


class TestScheduleWords:
    """schedule_words"""

    @pytest.mark.parametrize(
        ("before", "after", "words"),
        [
            ({"a": 1}, {"a": 1}, "no parameter differs"),
            ({"a": 10, "b": 1}, {"a": 15, "b": 1}, "1 of 2 parameters changed, a from 10 to 15 (×1.5)"),
            ({"a": 1, "b": 2, "c": 3}, {"a": 10, "b": 20, "c": 3}, "2 of 3 parameters changed, every one ×10"),
            ({"a": 1, "b": 2}, {"a": 2, "b": 3}, "2 of 2 parameters changed, a from 1 to 2 (×2), b from 2 to 3 (×1.5)"),
            ({"a": 0}, {"a": 5}, "1 of 1 parameters changed, a from 0 to 5"),
            ({"a": 1}, {"a": 1, "b": 2}, "1 parameter added (b), no price changed"),
            ({"a": 1, "b": 2}, {"b": 2}, "1 parameter removed (a)"),
        ],
    )
    def test_what_changed_is_said_shortly(self, before, after, words):
        """Uniform changes as a ratio, few by name, additions and removals by number."""
        assert schedule_words(GasSchedule(1, before), GasSchedule(1, after)) == words

    def test_many_different_changes_name_some(self):
        """Three by name stand for all."""
        words = schedule_words(
            GasSchedule(1, {f"p{n}": 1 for n in range(9)}), GasSchedule(1, {f"p{n}": n + 2 for n in range(9)})
        )
        assert words.startswith("9 of 9 parameters changed, among them p0 from 1 to 2 (×2), p1 ")
        assert words.count("from") == 3

    def test_a_feature_version_alone_is_a_change(self):
        """The version decides which code charges."""
        assert schedule_words(GasSchedule(1, {"a": 1}), GasSchedule(2, {"a": 1})) == "gas feature version 1 to 2"
