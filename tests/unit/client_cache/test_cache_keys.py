"""Keys: equal requests have equal keys, different ones different keys, and nothing can be read from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.client._cache import key

TEXTS = st.text(max_size=8)
REQUESTS = st.tuples(
    st.integers(0, 255),
    st.integers(0, 2**64 - 1),
    st.sampled_from(["GET", "POST"]),
    st.text(max_size=12),
    st.none() | st.binary(max_size=12),
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
)


def key_of(request):
    """Take the key of a request given as a tuple."""
    *positional, kind, build, accept, owner = request
    return key(*positional, content_type=kind, build=build, accept=accept, owner=owner)


@given(REQUESTS, REQUESTS)
def test_two_requests_share_a_key_only_when_they_are_the_same(left, right):
    """Keys are equal exactly when the requests are."""
    assert (key_of(left) == key_of(right)) == (left == right)


@given(REQUESTS, st.integers(0, 8), st.data())
def test_every_part_of_a_request_counts(request, part, data):
    """Changing any one part changes the key."""
    other = list(request)
    other[part] = data.draw(REQUESTS)[part]
    assert (key_of(request) == key_of(other)) == (request == tuple(other))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (b"1", b'"1"'),
        (b"[1,2]", b"[2,1]"),
        (b"[]", b"{}"),
        (b"\x01", b"01"),
        (b"", None),
        (b"None", None),
        ("e\u0301".encode(), "\u00e9".encode()),
    ],
)
def test_bodies_that_look_alike_have_different_keys(left, right):
    """A number is not its text, order in arrays counts, and an empty body is not none."""
    assert key(1, 2, "POST", "/view", left) != key(1, 2, "POST", "/view", right)


def test_parts_do_not_run_into_each_other():
    """The end of one part and the start of the next cannot be shifted."""
    assert key(1, 23, "GET", "/a") != key(12, 3, "GET", "/a")
    assert key(1, 2, "GET", "/a", build="b", accept=None) != key(1, 2, "GET", "/a", build=None, accept="b")
    assert key(1, 2, "GET", "/a", accept="b") != key(1, 2, "GET", "/a", owner="b")
    assert key(1, 2, "GET", "/a") != key(1, 2, "GET/", "a")


def test_a_key_is_short_and_says_nothing():
    """A key is a digest of fixed size."""
    made = key(1, 2, "POST", "/view", b"secret" * 100)
    assert len(made) == 20
    assert b"secret" not in made
