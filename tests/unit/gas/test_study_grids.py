"""Parameter grids: one call times lists of arguments, type arguments and senders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import StudyError
from toolkit.gas._study import Study

F = "0x1::m::f"
ALICE, BOB = "0xa11ce", "0xb0b"


def study(*calls):
    return Study(calls=list(calls))


def labels(*calls):
    return [call.name for call in study(*calls).calls]


def test_a_grid_is_every_combination():
    """Arguments times types times senders; the last list varies fastest."""
    made = study(
        {
            "label": "f",
            "simulate": F,
            "grid": {"arguments": [[1], [2]], "type_arguments": [["u8"], ["u64"]], "sender": [ALICE, BOB]},
        }
    ).calls
    assert [(call.arguments, call.type_arguments, call.sender) for call in made] == [
        ((one,), (kind,), sender) for one in (1, 2) for kind in ("u8", "u64") for sender in (ALICE, BOB)
    ]
    assert len({call.fingerprint for call in made}) == 8


def test_without_placeholders_the_values_stand_behind_the_label():
    """Each call has a label of its own, and so a row of its own."""
    grid = {"arguments": [["alice", 1], ["bob", 2]]}
    assert labels({"label": "record", "view": F, "grid": grid}) == ["record [alice, 1]", "record [bob, 2]"]
    both = {"arguments": [[1]], "type_arguments": [["u8"]]}
    assert labels({"label": "one", "view": F, "grid": both}) == ["one [1; u8]"]
    assert labels({"view": F, "grid": grid}) == ["m::f(alice, 1)", "m::f(bob, 2)"]


def test_placeholders_name_the_calls():
    """Whole lists, one entry, the sender."""
    grid = {"arguments": [["alice", 1], ["bob", 2]], "sender": [ALICE]}
    call = {"label": "{arguments.0} by {sender} ({arguments})", "simulate": F, "grid": grid}
    assert labels(call) == ["alice by 0xa11ce (alice, 1)", "bob by 0xa11ce (bob, 2)"]


def test_braces_in_a_label_without_a_grid_are_text():
    """Only a grid fills placeholders."""
    assert labels({"label": "{arguments}", "view": F}) == ["{arguments}"]


def test_long_values_are_cut_and_the_labels_still_differ():
    """A number tells them apart."""
    long = "x" * 100
    found = labels({"label": "f", "view": F, "grid": {"arguments": [[long + "1"], [long + "2"]]}})
    assert [name[-3:] for name in found] == [" #1", " #2"]
    assert all(len(name) < 60 for name in found)
    assert labels({"label": "f {arguments.0}", "view": F, "grid": {"arguments": [[1, 2], [1, 3]]}}) == [
        "f 1 #1",
        "f 1 #2",
    ]


def test_the_document_of_a_grid_is_its_calls():
    """What a run stores holds every call, and gives the same study again."""
    made = study({"label": "f", "view": F, "grid": {"arguments": [[1], [2]]}})
    again = Study.from_document(made.document())
    assert [call["label"] for call in made.document()["call"]] == ["f [1]", "f [2]"]
    assert again.digest == made.digest


def test_thresholds_of_a_grid_are_those_of_each_call():
    """So are all other keys."""
    made = study({"view": F, "thresholds": {"percent": 5}, "grid": {"arguments": [[1], [2]]}})
    assert [call.thresholds.percent for call in made.calls] == [5, 5]


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=2), min_size=1, max_size=6, unique_by=tuple))
def test_labels_and_fingerprints_are_unique(arguments):
    """Whatever different arguments a grid has."""
    made = study({"label": "f", "view": F, "grid": {"arguments": arguments}}).calls
    assert len({call.name for call in made}) == len({call.fingerprint for call in made}) == len(arguments)


MISTAKES = [
    pytest.param(
        {"grid": {}}, r"call 1 \('f'\), `grid`: a grid must have arguments, type_arguments or sender", id="empty"
    ),
    pytest.param({"grid": {"arguments": []}}, "`grid`: a grid must have", id="no values"),
    pytest.param({"grid": 5}, "`grid`: expected a table, got 5", id="no table"),
    pytest.param(
        {"grid": {"argumets": [[1]]}}, "`grid`: `argumets` is not a key here; did you mean `arguments`", id="key"
    ),
    pytest.param(
        {"grid": {"arguments": [1, 2]}}, "`grid.arguments.1`: expected a list, got 1", id="values are no lists"
    ),
    pytest.param(
        {"arguments": [1], "grid": {"arguments": [[1]]}}, "`arguments` is set in both the call and its grid", id="twice"
    ),
    pytest.param(
        {"grid": {"arguments": [[1], [1]]}}, "two calls in its grid have the same (label|request)", id="the same values"
    ),
    pytest.param(
        {"grid": {"sender": [ALICE]}},
        r"^call 1 \('f'\), grid entry 1, `sender`: only simulate",
        id="sender of a view",
    ),
    pytest.param(
        {"grid": {"arguments": [[1.5]]}}, "grid entry 1, `arguments.1`: Move does not have floating", id="a float"
    ),
    pytest.param(
        {"grid": {"arguments": [[1]] * 40, "type_arguments": [["u8"]] * 40}},
        "this grid has 1,600 calls; the maximum is 1,000",
        id="too many",
    ),
]


@pytest.mark.parametrize(("keys", "words"), MISTAKES)
def test_a_mistake_in_a_grid_is_told_with_its_place(keys, words):
    """The call, the entry of the grid, the key."""
    with pytest.raises(StudyError, match=words):
        study({"label": "f", "view": F, **keys})


def test_many_grids_are_bounded():
    """A study of more than ten thousand calls is divided by its writer."""
    calls = [
        {
            "label": f"f{n}",
            "view": F,
            "type_arguments": [f"0x1::t::T{n}"],
            "grid": {"arguments": [[k] for k in range(1_000)]},
        }
        for n in range(11)
    ]
    with pytest.raises(StudyError, match="at most 10,000 calls"):
        study(*calls)
