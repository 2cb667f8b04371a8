"""A closed node."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, function, module
from toolkit.client._node import Node
from toolkit.errors import ClosedError
from toolkit.wire import ViewFunction

RUN = ViewFunction("0x1::m::run")


M = module("m", functions=[function("run", [], [])])


def a_node(reply, url=URL, **options):
    fake = FakeNode({"GET /accounts/0x1/module/m": answer(M), "POST /view": reply})
    return Node(url, transport=fake, **options)


@pytest.mark.parametrize("cache", [None, "file"])
def test_a_closed_node_says_so_whatever_is_asked(tmp_path, cache):
    """Pinned reads, sweeps and the cache's own figures."""
    node = a_node(answer([]), cache=cache and tmp_path / cache)
    node.view(RUN, ledger_version=5)
    node.close()
    for use in (
        lambda: node.view(RUN, ledger_version=5),
        lambda: list(node.many([])),
        lambda: node.cache,
        node.ledger,
    ):
        with pytest.raises(ClosedError, match="node client is closed"):
            use()
