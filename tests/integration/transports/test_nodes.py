"""A whole node over real sockets: whose key goes where, and what a gateway's page becomes."""

from __future__ import annotations

import pickle

import pytest

import toolkit
from toolkit.errors import NodeError

SECRET = "sesame-123"  # noqa: S105 - invented


def test_a_login_in_the_url_is_sent_by_every_road(server):
    """Single calls, sweeps and copies of the node carry it; url, name, repr, errors and pickle do not."""
    url = server.url("fine").replace("//", f"//user:{SECRET}@")
    with toolkit.connect(url, cache=None) as node, node.with_share(2) as copy:
        texts = [node.url, node.name, repr(node), str(pickle.dumps(node))]
        for ask in (node.ledger, copy.ledger):
            with pytest.raises((NodeError, toolkit.SchemaError)) as caught:
                ask()
            texts += [str(caught.value), repr(caught.value)]
        texts += [str(outcome) for _, outcome in node.many([node.prepare_block(version) for version in range(3)])]
    assert not [text for text in texts if SECRET in text]
    assert set(server.authorizations()) == {"Basic dXNlcjpzZXNhbWUtMTIz"}
    assert len(server.authorizations()) >= 5


def test_a_login_in_the_url_comes_before_the_key_of_the_environment(server, monkeypatch):
    """What is written out is meant; a key that is given comes before both."""
    monkeypatch.setenv("LEDGER_TOOLKIT_API_KEY", "of-the-environment")
    url = server.url("fine").replace("//", "//user:pass@")
    for options in ({}, {"api_key": SECRET}):
        with toolkit.connect(url, **options) as node, pytest.raises((NodeError, toolkit.SchemaError)):
            node.ledger()
    assert server.authorizations() == ["Basic dXNlcjpwYXNz", f"Bearer {SECRET}"]
