"""What a gateway repeats of the key, closed nodes, waits that are asked for, Ctrl-C, and hosts that are not ASCII."""

from __future__ import annotations

import threading

import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, function, module, refused
from toolkit.client.batch import run_in_threads
from toolkit.client.fetch import fetch_views
from toolkit.client.node import Node
from toolkit.client.node_errors import refusal
from toolkit.errors import ClosedError, Forbidden
from toolkit.wire import ViewFunction

M = module("m", functions=[function("run", [], [])])
RUN = ViewFunction("0x1::m::run")
KEY = 'se"same/456'


def a_node(reply, url=URL, **options):
    fake = FakeNode({"GET /accounts/0x1/module/m": answer(M), "POST /view": reply})
    return Node(url, transport=fake, **options)


@pytest.mark.parametrize(
    "options", [{"api_key": KEY}, {"url": "http://me:se%22same%2F456@node.test/v1"}], ids=["key", "password"]
)
@pytest.mark.parametrize("shown", [KEY, "se%22same%2F456"])
def test_a_key_that_a_gateway_repeats_is_masked(options, shown):
    """Neither text, message nor frame has it; what else the gateway says stands."""
    node = a_node(refused(401, "unauthorized", "x" * 250 + f"invalid API key: {shown}, sorry"), **options)
    with pytest.raises(Forbidden) as caught:
        node.view(RUN, ledger_version=5)
    frame = fetch_views(node, RUN, versions=[5], progress=False)
    for text in (str(caught.value), caught.value.message, frame["error_message"][0]):
        assert "invalid API key: ***, sorry" in text
        assert "same" not in text


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


def test_a_view_that_returns_nothing_is_a_row():
    """An answer of no values is a frame without a value column, one call or many."""
    node = a_node(answer([], gas=3))
    frame = fetch_views(node, RUN, versions=[5, 6], progress=False)
    assert len(frame) == 2
    assert not [name for name in frame.columns if name.startswith("value")]
    assert frame["gas_used"].tolist() == [3, 3]
    assert node.view(RUN, ledger_version=5).to_frame()["ledger_version"].tolist() == [5]
    assert fetch_views(node, RUN, versions=[5], typed=False, progress=False)["value"].tolist() == ["[]"]


def test_a_wait_that_is_asked_for_is_told():
    """A Retry-After beyond the budget is no reason to wait, so its length is for the reader."""
    assert "the node asks to wait 100 s" in str(refusal("x", refused(429, "rate_limited", retry_after="100")))
    assert "asks to wait" not in str(refusal("x", refused(429, "rate_limited")))


def test_an_interrupt_does_not_wait_for_what_is_in_flight():
    """Ctrl-C comes through while a request hangs."""
    gate, began = threading.Event(), threading.Event()

    def read(task):
        if task:
            began.set()
            gate.wait(20)
        else:
            began.wait(20)

    def interrupt(_):
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            list(run_in_threads([0, 1], read, in_flight=2, advance=interrupt))
        assert not gate.is_set()
        assert any(thread.name.startswith("toolkit-fetch") for thread in threading.enumerate())
    finally:
        gate.set()
