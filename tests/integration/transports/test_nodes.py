"""A whole node over real sockets: whose key goes where, and what a gateway's page becomes."""

from __future__ import annotations

import logging
import pickle

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


def test_a_login_in_the_url_is_in_nothing_that_lasts(tmp_path, caplog):
    """Neither in frames, nor in observations, logs or the cache file."""
    caplog.set_level(logging.DEBUG)
    call = toolkit.ViewFunction("0x1::chain_id::get")
    with toolkit.embedded.serve(toolkit.embedded.Ledger.with_history(versions=200, cache=True), port=0) as url:
        with toolkit.connect(url.replace("//", f"//user:{SECRET}@"), cache=tmp_path / "kept.sqlite3") as node:
            frame = toolkit.fetch_views(node, call, versions="10:20", progress=False)
            run = toolkit.Study(node=node, calls=[call], versions="10:20").run(tmp_path / "run", progress=False)
            node.cache.flush()
        assert frame["error_code"].isna().all()
        assert set(run.observations["node"]) == {url}
    kept = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    logged = [record.getMessage() for record in caplog.records]
    assert len(kept) >= 3
    assert not [text for text in [*kept, *logged, frame.to_csv(), run.observations.to_csv()] if SECRET in text]


def test_a_login_in_the_url_comes_before_the_key_of_the_environment(server, monkeypatch):
    """What is written out is meant; a key that is given comes before both."""
    monkeypatch.setenv("LEDGER_TOOLKIT_API_KEY", "of-the-environment")
    url = server.url("fine").replace("//", "//user:pass@")
    for options in ({}, {"api_key": SECRET}):
        with toolkit.connect(url, **options) as node, pytest.raises((NodeError, toolkit.SchemaError)):
            node.ledger()
    assert server.authorizations() == ["Basic dXNlcjpwYXNz", f"Bearer {SECRET}"]
