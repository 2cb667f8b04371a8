"""Keys: equal requests have equal keys, different ones different keys, and nothing can be read from them."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.client._cache import key

TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
REQUESTS = st.tuples(
    st.integers(0, 255),
    st.integers(0, 2**64 - 1),
    st.sampled_from(["GET", "POST"]),
    st.text(max_size=12),
    VALUES | st.binary(max_size=12),
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
)


def key_of(request):
    """Take the key of a request given as a tuple."""
    *positional, build, accept, owner = request
    return key(*positional, build=build, accept=accept, owner=owner)


def canonical(request):
    """Say what a request is, in a way that tells bytes from text and 1 from true."""
    return json.dumps(
        [{"bytes": part.hex()} if isinstance(part, bytes) else [part] for part in request], sort_keys=True
    )


def shuffled(value, source):
    """Return the same JSON value with the names of its objects in another order."""
    if isinstance(value, dict):
        names = list(value)
        source.shuffle(names)
        return {name: shuffled(value[name], source) for name in names}
    if isinstance(value, list):
        return [shuffled(item, source) for item in value]
    return value


@given(REQUESTS, REQUESTS)
def test_two_requests_share_a_key_only_when_they_are_the_same(left, right):
    """Keys are equal exactly when the requests are."""
    assert (key_of(left) == key_of(right)) == (canonical(left) == canonical(right))


@given(REQUESTS, st.integers(0, 7), st.data())
def test_every_part_of_a_request_counts(request, part, data):
    """Changing any one part changes the key."""
    other = list(request)
    other[part] = data.draw(REQUESTS)[part]
    assert (key_of(request) == key_of(other)) == (canonical(request) == canonical(other))


@given(VALUES, st.integers())
def test_the_order_of_names_in_json_does_not_count(value, seed):
    """An object is the same request in whatever order its names stand."""
    assert key(1, 2, "POST", "/view", value) == key(1, 2, "POST", "/view", shuffled(value, random.Random(seed)))


@given(VALUES)
def test_json_on_the_wire_is_the_value_it_spells(value):
    """Bytes that are said to be JSON have the key of their value, however they are spaced; other bytes have not."""
    wire = json.dumps(value, indent=1).encode()
    said = key(1, 2, "POST", "/view", wire, content_type="application/json; charset=utf-8")
    assert said == key(1, 2, "POST", "/view", value)
    assert said != key(1, 2, "POST", "/view", wire, content_type="application/x.aptos.view_function+bcs")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, "1"),
        (1, True),
        (0, False),
        (None, "null"),
        ([1, 2], [2, 1]),
        ([], {}),
        ([[1], 2], [1, [2]]),
        (b"[1]", [1]),
        (b"\x01", "01"),
        (b"", None),
        ("e\u0301", "\u00e9"),
    ],
)
def test_bodies_that_look_alike_have_different_keys(left, right):
    """A number is not its text, bytes are not the JSON they spell, order in arrays counts."""
    assert key(1, 2, "POST", "/view", left) != key(1, 2, "POST", "/view", right)


def test_parts_do_not_run_into_each_other():
    """The end of one part and the start of the next cannot be shifted."""
    assert key(1, 23, "GET", "/a") != key(12, 3, "GET", "/a")
    assert key(1, 2, "GET", "/a", build="b", accept=None) != key(1, 2, "GET", "/a", build=None, accept="b")
    assert key(1, 2, "GET", "/a", accept="b") != key(1, 2, "GET", "/a", owner="b")
    assert key(1, 2, "GET", "/a") != key(1, 2, "GET/", "a")


def test_a_key_is_short_and_says_nothing():
    """A key is a digest of fixed size."""
    made = key(1, 2, "POST", "/view", {"arguments": ["secret" * 100]})
    assert len(made) == 20
    assert b"secret" not in made
