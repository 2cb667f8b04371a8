"""What parts hold: digests, steps, versions, whatever the order and division of the rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.gas.observed import NOW, manifest, plan, row, table
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._steps import OUTCOME_COLUMNS, steps_of
from toolkit.gas.runs import _store as module
from toolkit.gas.runs._manifest import Manifest
from toolkit.gas.runs._scan import (
    LEFT_OUT,
    compared_rows,
    count_failures,
    outcomes_read,
    rows_digest,
    versions_read,
    with_messages,
)
from toolkit.gas.runs._store import RunStore

NODE = "http://node.test/v1"
ROWS = [
    row(1, 10),
    row(2, 2**63 - 1, value_digest="ab"),
    row(3, error="http_503"),
    row(4, None, value_digest=""),
    row(1, 7, label="b", vm_status="é\n", source="committed", ledger_timestamp=NOW),
]


def stored(path, *writes, **more):
    """Return a run with one write after another."""
    store = RunStore(path)
    store.create(manifest(calls=("a", "b"), **more))
    for rows in writes:
        store.add(table(*rows))
    return store


def test_the_digest_depends_on_the_rows_alone(tmp_path, monkeypatch):
    """One part or five, in any order, the same rows have the same digest."""
    whole = rows_digest(stored(tmp_path / "whole", ROWS))
    monkeypatch.setattr(module, "PART_ROWS", 1)
    parts = stored(tmp_path / "parts", *[[one] for one in reversed(ROWS)])
    assert len(parts.part_files()) == len(ROWS)
    assert rows_digest(parts) == whole


def test_more_rows_than_a_part_has_have_a_digest(tmp_path):
    """Rows of two parts are one column, whether they were written at once or one after another."""
    rows = [row(version) for version in range(module.PART_ROWS + 1)]
    parts = stored(tmp_path / "parts", rows[:-1], rows[-1:])
    assert len(parts.part_files()) == 2
    assert rows_digest(parts) == rows_digest(stored(tmp_path / "whole", rows))


def test_the_digest_leaves_out_when_and_by_what_a_row_was_read(tmp_path):
    """Another head, clock, port, version of this package or prose of an error: the same digest."""
    other = {
        "node": "http://127.0.0.1:4711/v1",
        "head_version": 99,
        "error_message": "try again",
        "observed_at": NOW + timedelta(days=1),
        "toolkit_version": "9",
    }
    assert set(other) == set(LEFT_OUT)
    again = stored(tmp_path / "b", [one | other for one in ROWS], nodes=(plan(node=other["node"]),))
    assert rows_digest(again) == rows_digest(stored(tmp_path / "a", ROWS))


@pytest.fixture(scope="module")
def digest_of_rows(tmp_path_factory):
    """Return the digest of a run with the rows."""
    return rows_digest(stored(tmp_path_factory.mktemp("rows"), ROWS))


@pytest.mark.parametrize("column", [name for name in OBSERVATIONS.names if name not in LEFT_OUT])
def test_the_digest_sees_every_other_column(tmp_path, digest_of_rows, column):
    """A change of one cell, or a null in place of a zero or an empty text, is another digest."""
    changed = {
        "chain_id": 9,
        "model": True,
        "success": False,
        "orderless": False,
        "ledger_version": 9,
        "status": 9,
        "ledger_timestamp": NOW + timedelta(microseconds=1),
    }.get(column, "x" if OBSERVATIONS.arrow.field(column).type == "string" else 9)
    assert rows_digest(stored(tmp_path / "b", [ROWS[0] | {column: changed}, *ROWS[1:]])) != digest_of_rows
    empty = {str: "", int: 0, bool: False}.get(type(changed))
    if column not in {"label", "fingerprint", "source", "chain_id", "ledger_version", "model"} and empty is not None:
        sides = [stored(tmp_path / str(at), [row(1) | {column: cell}]) for at, cell in enumerate((empty, None))]
        assert rows_digest(sides[0]) != rows_digest(sides[1])


def test_the_digest_sees_a_missing_and_a_doubled_row(tmp_path):
    """No row more, no row less."""
    digests = [
        rows_digest(stored(tmp_path / str(n), rows)) for n, rows in enumerate((ROWS, ROWS[1:], [*ROWS, ROWS[0]]))
    ]
    assert len(set(digests)) == 3
    assert rows_digest(stored(tmp_path / "none")) != digests[0]


def test_texts_are_told_apart_by_their_borders(tmp_path):
    """The same letters over two cells, divided elsewhere, are other rows."""
    one = [row(1, value_digest="ab"), row(2, value_digest="c")]
    two = [row(1, value_digest="a"), row(2, value_digest="bc")]
    assert rows_digest(stored(tmp_path / "a", one)) != rows_digest(stored(tmp_path / "b", two))


def test_versions_are_found_by_call_and_node(tmp_path):
    """Sorted, and of the node that is asked for."""
    store = stored(tmp_path, [row(7), row(3)], [row(5), row(9, node="http://other.test/v1"), row(4, label="b")])
    found = {mark: versions.tolist() for mark, versions in versions_read(store, NODE).items()}
    assert found == {"a-print": [3, 5, 7], "b-print": [4]}
    assert versions_read(stored(tmp_path / "none"), NODE) == {}


def test_outcomes_of_a_search_come_back(tmp_path):
    """Gas, success and error; None where no answer came; other calls are left out."""
    store = stored(tmp_path, [row(1, 10), row(2, error="x"), row(3, error="http_503"), row(4, label="b")])
    assert outcomes_read(store, NODE, ["a-print"]) == {"a-print": {1: (10, True, None), 2: (None, None, "x"), 3: None}}


def test_failures_are_counted(tmp_path):
    """Rows with an error code."""
    assert count_failures(stored(tmp_path, ROWS)) == 1


OUTCOMES = st.sampled_from([10, 20, None, "refused", "http_503"])


@given(
    st.lists(st.tuples(OUTCOMES, st.sampled_from("ab"), st.sampled_from(["n", "m"])), max_size=15), st.integers(1, 9)
)
def test_steps_are_those_of_neighbours(tmp_path_factory, given_rows, part):
    """For any reads in any parts, there is one step wherever two neighbouring answers of a call differ."""
    rows = [
        row(
            place,
            *([] if isinstance(what, str) else [what]),
            label=label,
            node=node,
            **({"error": what} if isinstance(what, str) else {}),
        )
        for place, (what, label, node) in enumerate(given_rows)
    ]
    store = RunStore(tmp_path_factory.mktemp("run"))
    store.create(manifest(calls=("a", "b"), nodes=(plan(node="n"), plan(node="m"))))
    for start in range(0, len(rows), part):
        store.add(table(*rows[start : start + part]))
    expected = []
    for node, label in product("nm", "ab"):
        mine = [one for one in rows if (one["node"], one["label"]) == (node, label) and one["error_code"] != "http_503"]
        outcomes = [(one["ledger_version"], tuple(one[name] for name in OUTCOME_COLUMNS)) for one in mine]
        expected += [(node, label, *one, *two) for one, two in pairwise(outcomes) if one[1] != two[1]]
    found = steps_of(compared_rows(store))
    assert [(one.node, one.label, *(end for ends in one.outcomes.items() for end in ends)) for one in found] == expected


def test_only_views_have_steps(tmp_path):
    """Committed transactions differ in their arguments, so their gas tells no step."""
    store = stored(tmp_path, [row(1, 10, source="committed"), row(2, 99, source="committed")])
    assert steps_of(compared_rows(store)) == steps_of(compared_rows(stored(tmp_path / "none"))) == []


def test_messages_are_read_at_the_ends_of_steps_alone(tmp_path):
    """They may all differ, and a million of them do not fit in memory; further observations bring their own."""
    said = [row(at, error="invalid_input", error_message=f"{at} is pruned") for at in (1, 2, 3)]
    store = stored(tmp_path, [*said, row(9, 10)])
    rows = compared_rows(store)
    assert "error_message" not in rows.column_names
    [step] = with_messages(store, steps_of(rows))
    assert (step.error_message_before, step.error_message_after) == ("3 is pruned", None)
    further = row(8, error="invalid_input", error_message="8 is pruned")
    [step] = with_messages(store, [replace(step, version_before=8)], [further])
    assert step.error_message_before == "8 is pruned"


def test_steps_are_in_the_order_of_the_study_however_parts_are_divided(tmp_path, monkeypatch):
    """The call that the study names first comes first, though its rows are in the last part."""
    monkeypatch.setattr(module, "PART_ROWS", 1)
    store = stored(tmp_path, *[[row(version, version, label=label)] for label in "ba" for version in (1, 2)])
    assert [step.label for step in steps_of(compared_rows(store))] == ["a", "b"]


def test_the_order_of_rows_is_read_once_for_many_writes(tmp_path, monkeypatch):
    """``run.json`` has timelines that may be long, and is decoded again only after it was written."""
    store, read = stored(tmp_path), []
    monkeypatch.setattr(
        module.Manifest, "of_text", lambda text, of_text=Manifest.of_text: read.append(1) or of_text(text)
    )
    for version in range(5):
        store.add(table(row(version)))
    assert len(read) == 1
    store.write_manifest(manifest(calls=("b", "a")))
    store.add(table(row(9, label="b")))
    assert store.observations()["label"].tolist() == ["b", *"aaaaa"]
