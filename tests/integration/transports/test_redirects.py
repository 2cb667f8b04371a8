"""Redirects are not followed by either transport: the key stays at the node, and the error names the new address."""

from __future__ import annotations

import pytest

from tests.integration.transports.conftest import KEY
from toolkit.client._http import Answer, Request
from toolkit.client._node_errors import refusal


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_is_an_answer(server, other, transport, method, code):
    """Nothing is sent to the other site, nor again to the same one."""
    request = Request(
        method, server.url("redirect", code=code, to=other.url("fine")), b"x" if method == "POST" else None
    )
    assert transport.send(request).status == code
    assert len(server.seen) == 1
    assert other.seen == []
    assert server.authorizations() == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    ("to", "shown"),
    [
        ("https://node.test/v1", "https://node.test/v1"),
        ("https://user:hunter2@node.test/v1?key=abc", "https://node.test/v1"),
        ("/elsewhere", "/elsewhere"),
        ("gopher://x/\x1b[31m" + "a" * 5000, "gopher://x/\\x1b[31maaa"),
    ],
)
def test_the_error_names_the_new_address(to, shown):
    """Without login and query, short and without control characters; and it says what to do."""
    error = refusal("node info", Answer(302, {"location": to}, b"moved"), url="http://node.test/v1")
    assert f"it redirects to '{shown}" in str(error)
    assert "is http://node.test/v1 the URL of a node?" in str(error)
    assert "hunter2" not in str(error)
    assert "\x1b" not in str(error)
    assert len(str(error)) < 500
