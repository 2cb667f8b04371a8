"""A whole node over real sockets: whose key goes where, and what a gateway's page becomes."""

from __future__ import annotations

import pytest

import toolkit
from toolkit.errors import InvalidRequest, NodeError

SECRET = "sesame-123"  # noqa: S105 - invented


def test_the_key_of_the_environment_is_used(server, monkeypatch):
    """LEDGER_TOOLKIT_API_KEY reaches the node as a bearer token, and its repr does not show it."""
    monkeypatch.setenv("LEDGER_TOOLKIT_API_KEY", SECRET)
    with toolkit.connect(server.url("fine")) as node:
        assert SECRET not in repr(node)
        with pytest.raises((NodeError, toolkit.SchemaError)) as caught:
            node.ledger()
    assert server.authorizations()[0] == f"Bearer {SECRET}"
    assert SECRET not in str(caught.value)


def test_a_page_where_json_belongs_is_told_as_that(server):
    """A gateway's HTML with an error status gives the class of the status, without tags in the text."""
    with toolkit.connect(server.url("page")) as node, pytest.raises((NodeError, toolkit.SchemaError)) as caught:
        node.ledger()
    assert not isinstance(caught.value, InvalidRequest)
    assert "<html" not in str(caught.value).lower()
