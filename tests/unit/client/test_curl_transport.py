"""The header lines that libcurl hands over, read into headers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.client._engine import _headers

ANSWER = [b"HTTP/1.1 200 OK\r\n", b"Content-Type: application/json\r\n", b"X-Gas:  7 \r\n", b"\r\n"]


def test_names_are_lowered_and_values_stripped():
    """As the seam promises."""
    assert _headers(ANSWER) == {"content-type": "application/json", "x-gas": "7"}


def test_only_the_last_answer_counts():
    """What a proxy or a 100-continue said before is forgotten; a trailer after the empty line is no header."""
    before = [b"HTTP/1.1 100 Continue\r\n", b"X-Early: 1\r\n", b"\r\n"]
    assert _headers([*before, *ANSWER, b"X-Late: 1\r\n"]) == _headers(ANSWER)


def test_repeated_headers_are_joined():
    """In the order they came, whatever the case of the name."""
    lines = [b"HTTP/2 200\r\n", b"A: 1\r\n", b"a: 2\r\n", b"\r\n"]
    assert _headers(lines) == {"a": "1, 2"}


@given(st.lists(st.binary(max_size=300)))
def test_any_bytes_are_read(lines):
    """A hostile head gives text headers or none, never an error; reading it twice gives the same."""
    head = [b"HTTP/1.1 200 OK\r\n", *lines]
    found = _headers(head)
    assert all(isinstance(text, str) for pair in found.items() for text in pair)
    assert _headers(head) == found
