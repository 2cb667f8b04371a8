"""Labels of calls that nobody named, and runs, snapshots and rules that name a call by its function."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit
from toolkit.errors import StudyError
from toolkit.gas._labels import Called, default_labels
from toolkit.gas._snapshot import check_snapshot, compare_snapshot, read_snapshot, snapshot_text, taken
from toolkit.gas._study import Study

VAULT, SUPPLY = "0xfa17::vault::share_price", "0x1::coin::supply"
COIN = "0x1::aptos_coin::AptosCoin"
LONG = "0x" + "ab" * 31 + "01", "0x" + "ab" * 31 + "02"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([Called(VAULT)], ["vault::share_price"]),
        ([Called(VAULT), Called(SUPPLY, (COIN,))], ["vault::share_price", "coin::supply"]),
        ([Called(f"{one}::vault::f") for one in ("0xa", "0xb")], ["0xa::vault::f", "0xb::vault::f"]),
        (
            [Called(SUPPLY, (one,)) for one in (COIN, "0xcafe::usd::Usd")],
            ["coin::supply<AptosCoin>", "coin::supply<Usd>"],
        ),
        (
            [Called(SUPPLY, (one,)) for one in ("0x1::a::T", "0x2::a::T")],
            ["coin::supply<0x1::a::T>", "coin::supply<0x2::a::T>"],
        ),
        ([Called(VAULT, (), ("1", x)) for x in "ab"], ["vault::share_price(a)", "vault::share_price(b)"]),
        ([Called(VAULT, sender=x) for x in ("0xa", "0xb")], ["vault::share_price by 0xa", "vault::share_price by 0xb"]),
        (
            [Called(VAULT, kind=x) for x in ("view", "committed")],
            ["vault::share_price [view]", "vault::share_price [committed]"],
        ),
        (
            [Called(VAULT, mark=x) for x in "aba"],
            ["vault::share_price #1", "vault::share_price #2", "vault::share_price #1"],
        ),
        ([Called("script")], ["script"]),
    ],
)
def test_a_label_says_what_differs(calls, expected):
    """And nothing that all calls of the function have in common."""
    assert default_labels(calls) == expected


@given(
    st.lists(
        st.builds(
            Called,
            st.sampled_from([VAULT, SUPPLY, f"{LONG[0]}::vault::share_price"]),
            st.lists(st.sampled_from([COIN, "0x2::aptos_coin::AptosCoin"]), max_size=2).map(tuple),
            st.lists(st.sampled_from([*LONG, "x" * 99, "x" * 98 + "y"]), max_size=2).map(tuple),
            st.sampled_from(["", *LONG]),
            st.sampled_from(["view", "committed"]),
            st.sampled_from("ab"),
        )
    )
)
def test_two_calls_never_have_the_same_label(calls):
    """Equal calls have; none is long enough to hold an address."""
    labels = dict(zip(calls, default_labels(calls, {"vault::share_price"}), strict=True))
    assert len(set(labels.values())) == len(labels)
    assert "vault::share_price" not in labels.values()
    assert all(len(label) < 60 for label in labels.values())


def study(label: str = "", **more: object) -> Study:
    return Study(title="vault", versions="3500:3502", calls=[{"view": VAULT, "label": label}], **more)


def test_a_run_under_other_labels_is_compared_and_continued(tmp_path):
    """Its label is the whole function; calls are matched by what they are, and its rows stay as they are."""
    before = study(VAULT).run(tmp_path / "run", progress=False)
    now = study(thresholds="2%", waivers=[{"call": VAULT, "reason": "known", "expires": "2999-01-01"}]).run(
        progress=False
    )
    found = toolkit.compare(before.at(3501), now)
    assert found.calls[["label", "kind"]].to_numpy().tolist() == [["vault::share_price", "changed"]]
    (waived,) = found.gate(study=now.study).waived
    assert waived.label == "vault::share_price"
    again = study().run(tmp_path / "run", progress=False)
    assert again.earlier is not None
    assert set(again.observations["label"]) == {call.name for call in again.study.calls} == {VAULT}
    with pytest.raises(StudyError, match="a run of another study"):
        study("price").run(tmp_path / "run", progress=False)


def test_a_snapshot_under_other_labels_is_checked(tmp_path):
    """Its lines have the whole function, as have the limits of a study's waivers."""
    path = tmp_path / "gas.snap.toml"
    path.write_text(snapshot_text(taken(study(VAULT).run(progress=False))))
    found = compare_snapshot(read_snapshot(path), study().run(progress=False))
    assert found.calls[["label", "kind"]].to_numpy().tolist() == [["vault::share_price", "unchanged"]]
    assert check_snapshot(found).passed
