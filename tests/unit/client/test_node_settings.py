"""What a node is made from: `Node` and `connect` take the same, and refuse the same."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import toolkit
from tests.integration.transports.servers import Server, serving
from tests.unit.client.fakes import module
from toolkit.client._http import NETWORKS, PreparedCall, RetryPolicy
from toolkit.client._node import Node, _open_transport, connect
from toolkit.errors import InputError, NodeUnreachable
from toolkit.move import decode_module_abi

URL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _no_key_around(monkeypatch):
    monkeypatch.delenv("LEDGER_TOOLKIT_API_KEY", raising=False)


@pytest.mark.parametrize(
    ("target", "url"),
    [("mainnet", NETWORKS["mainnet"]), ("http://127.0.0.1:9", URL), ("http://127.0.0.1:9/v1/", URL), (URL, URL)],
)
def test_a_node_takes_names_and_urls_as_connect_does(target, url):
    """Network names, and URLs with or without /v1."""
    with Node(target, cache=None) as node, connect(target, cache=None) as connected:
        assert (node.url, node.name) == (connected.url, connected.name) == (url, url)


def test_a_node_without_a_target_is_the_embedded_one():
    """By default, and by name."""
    with toolkit.Node() as node, toolkit.Node("embedded") as named:
        assert node.name == named.name == "embedded"
        assert node.ledger().chain_id == named.ledger().chain_id == 4


def test_a_node_takes_all_that_connect_takes():
    """Same names, same defaults."""
    taken = inspect.signature(Node).parameters
    for name, option in inspect.signature(connect).parameters.items():
        assert (taken[name].default, taken[name].kind) == (option.default, option.kind)


@pytest.mark.parametrize("target", ["mainet", "127.0.0.1:9", "", None, 5])
def test_a_target_that_is_none_is_refused_by_both(target):
    """A misspelt name is not taken for a URL, which would fail at the first request."""
    for make in (Node, connect):
        with pytest.raises(
            InputError, match=r"node must be a str or a toolkit.embedded.Ledger|http\(s\) URL"
        ) as caught:
            make(target)
        assert str(caught.value).count("URL") <= 1
        assert ("did you mean `mainnet`?" in str(caught.value)) is (target == "mainet")


@pytest.mark.parametrize("copied", [lambda node: node.with_share(2), lambda node: pickle.loads(pickle.dumps(node))])  # noqa: S301 - its own
def test_copies_have_the_retry_policy(copied):
    """Two attempts, and not five."""
    retry = RetryPolicy(attempts=2, base_s=0.01)
    with (
        serving(Server()) as server,
        Node(f"http://127.0.0.1:{server.port}", cache=None, retry=retry) as node,
        copied(node) as copy,
        pytest.raises(NodeUnreachable),
    ):
        copy.one(PreparedCall(copy.request("GET", "/cut"), "cut", lambda answer: answer))
    assert len(server.seen) == 2


def test_the_key_of_the_environment_is_for_both(monkeypatch):
    """Unless the URL has a login, or none is wanted at all."""
    monkeypatch.setenv("LEDGER_TOOLKIT_API_KEY", "of-the-environment")
    keys = []

    def open_transport(credentials, **options):
        keys.append(credentials.api_key)
        return _open_transport(credentials, **options)

    monkeypatch.setattr("toolkit.client._node._open_transport", open_transport)
    for make in (Node, connect):
        for target, given, key in (
            (URL, None, "of-the-environment"),
            (URL, "mine", "mine"),
            (URL, "", None),
            ("http://a:b@127.0.0.1:9", None, None),
            ("embedded", None, None),
        ):
            with make(target, api_key=given) as node, node.with_share(2):
                assert keys == [key, key]
            keys.clear()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("max_in_flight", value) for value in ("a", None, 1.5, 10**30, True, 0)),
        *(("timeout_s", value) for value in (None, "3", float("inf"), 1e300, float("nan"), 0, -1, True, 10**400)),
        *(("requests_per_second", value) for value in ("5", float("nan"), float("inf"), 0, True, [])),
        *(("api_key", value) for value in (5, b"key", "a\nb")),
        *(("encoding", value) for value in ("xml", [], None)),
        *(("abis", value) for value in (5, [], {"0x1::m": None}, {("0x1", "m"): {}}, {("0x1", "m"): None})),
        *(("abis", {key: decode_module_abi(module("m"))}) for key in ("0x1::m", ("0x1",), ("0x1", 5), 5)),
        ("name", 5),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(setting, value):
    """Before anything is built from it, and the text names the setting."""
    with pytest.raises(InputError, match=setting):
        Node(URL, **{setting: value})


def test_settings_may_be_numpy_numbers():
    """They become plain ones."""
    given = {("0x1", "m"): decode_module_abi(module("m"))}
    with Node(
        URL, max_in_flight=np.int64(3), timeout_s=np.float32(2), requests_per_second=np.int8(5), abis=given
    ) as node:
        assert (type(node.max_in_flight), node.requests_per_second) == (int, 5.0)
