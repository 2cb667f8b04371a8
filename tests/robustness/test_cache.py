"""Answers of another chain, or of a backend that lags behind, are not served from the cache later."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace

import pytest

import toolkit
from toolkit.errors import LedgerChanged

SIZE = toolkit.ViewFunction("0xcafe::registry::size")


@pytest.mark.fault("an answer with another chain's headers", "rejected, and never cached for this chain")
@pytest.mark.parametrize("chain", ["77", None], ids=["other chain", "no chain"])
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_an_answer_of_another_chain_is_not_served_as_one_of_this(proxy, tmp_path, chain, many):
    """A value that came with another chain's headers, or with none, is asked for again by the next session."""

    def other(request, answer):
        strange = replace(answer.with_headers(chain_id=chain), body=b'["666"]')
        return strange if request.path == "/v1/view" and request.query["ledger_version"] == "101" else None

    expected = nullcontext() if chain is None else pytest.raises(LedgerChanged)
    with toolkit.connect(proxy.url, cache=tmp_path / "answers") as node:
        truth = node.at(100).view(SIZE).value
        proxy.change = other
        if many:
            frames = []
            with expected:
                frames.append(toolkit.fetch_views(node, SIZE, versions=[100, 101, 102], progress=False))
            assert [666 in frame["value"].tolist() for frame in frames] == [True] * (chain is None)
        else:
            with expected:
                assert node.at(101).view(SIZE).value == 666
    proxy.change = None
    with toolkit.connect(proxy.url, cache=tmp_path / "answers") as node:
        frame = toolkit.fetch_views(node, SIZE, versions=[100, 101], progress=False)
    with toolkit.connect(proxy.url, cache=None) as node:
        assert frame["value"].tolist() == [truth, node.at(101).view(SIZE).value]


@pytest.mark.fault("a 404 from a backend whose head is below the requested version", "the 404 is not cached")
def test_a_404_of_a_lagging_backend_is_not_served_again(proxy, tmp_path):
    """An item that a lagging backend did not have is there once a backend that has the version answers."""
    record = {"key_type": "0x1::string::String", "value_type": "0xcafe::registry::Record"}
    missing = {"message": "no such item", "error_code": "table_item_not_found", "vm_error_code": None}

    def lagging(request, answer):
        if request.path.endswith("/item"):
            return replace(answer.with_headers(ledger_version="1000"), status=404, body=json.dumps(missing).encode())
        return None

    with toolkit.connect(proxy.url, cache=tmp_path / "answers") as node:
        handle = node.view("0xcafe::registry::handle").value
        proxy.change = lagging
        with pytest.raises(toolkit.NotFound):
            node.at(1_400).table_item(handle, key="alice", **record)
    proxy.change = None
    with toolkit.connect(proxy.url, cache=tmp_path / "answers") as node:
        assert node.at(1_400).table_item(handle, key="alice", **record).value
