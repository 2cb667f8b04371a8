"""A node in a pickle: its settings go along, sockets and secrets never."""

from __future__ import annotations

import copy
import pickle

import pytest

from tests.unit.client.fakes import URL, FakeNode, ledger, module
from toolkit.client._node import Node, connect
from toolkit.errors import ClosedError, InputError, NodeError, NodeUnreachable, OfflineMiss, SchemaError
from toolkit.move import decode_module_abi

KEY = "topsecret-0123456789"
LOOPBACK = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _no_key_around(monkeypatch):
    monkeypatch.delenv("LEDGER_TOOLKIT_API_KEY", raising=False)


def settings_of(node: Node) -> dict:
    """Return what a pickle of the node holds."""
    return node.__reduce__()[1][0].keywords


def test_settings_come_back_and_the_key_does_not():
    """URL, name, encoding and limits equal those of the first node; the bytes do not contain the key."""
    with Node(LOOPBACK, api_key=KEY, encoding="bcs", max_in_flight=7, requests_per_second=2.5, name="mine") as node:
        data = pickle.dumps(node)
        settings = settings_of(node)
    assert KEY.encode() not in data
    with pickle.loads(data) as again:  # noqa: S301 - our own bytes
        assert (again.url, again.name, again.max_in_flight) == (LOOPBACK, "mine", 7)
        assert settings_of(again) == settings
        assert settings["encoding"] == "bcs"


def test_the_other_side_takes_the_key_from_its_environment(monkeypatch):
    """A node that had a key gets the one of where it is unpickled, and only such a node does."""
    seen = []

    made = Node.__init__

    def noted(node, target="embedded", *, api_key=None, **settings):
        seen.append(api_key)
        made(node, target, api_key=api_key, **settings)

    with Node(LOOPBACK, api_key=KEY) as keyed, Node(LOOPBACK) as plain:
        pickles = pickle.dumps(keyed), pickle.dumps(plain)
    monkeypatch.setenv("LEDGER_TOOLKIT_API_KEY", "of the other side")
    monkeypatch.setattr(Node, "__init__", noted)
    for data in pickles:
        pickle.loads(data).close()  # noqa: S301 - our own bytes
    assert seen == ["of the other side", ""]


def test_a_key_of_the_environment_is_not_written_either(monkeypatch):
    """`connect` finds the key by itself; the pickle has none of it."""
    monkeypatch.setenv("LEDGER_TOOLKIT_API_KEY", KEY)
    with connect(LOOPBACK) as node:
        assert KEY.encode() not in pickle.dumps(node)


def test_given_abis_and_the_cache_go_along(tmp_path):
    """The other side knows the same modules and keeps answers in the same file."""
    given = decode_module_abi(module("m"))
    with Node(LOOPBACK, abis={("0x1", "m"): given}, cache=tmp_path / "a.sqlite3", offline=True) as node:
        data = pickle.dumps(node)
    with pickle.loads(data) as again:  # noqa: S301 - our own bytes
        assert again.abis.at(5).module_abi("0x1", "m") == given
        settings = settings_of(again)
        assert (settings["cache"], settings["offline"]) == (tmp_path / "a.sqlite3", True)


def test_a_node_over_a_transport_of_ones_own_says_why_it_cannot():
    """What the caller brought may be anything."""
    with pytest.raises(TypeError, match="custom transport"):
        pickle.dumps(Node(URL, transport=FakeNode()))


def kinds(of: type) -> list[type]:
    """Return a class of errors and all below it."""
    return [of, *(kind for child in of.__subclasses__() for kind in kinds(child))]


@pytest.mark.parametrize("kind", kinds(NodeError))
def test_a_refusal_comes_back_from_a_pickle_as_it_was(kind):
    """Class, text and every field: what a process pool hands back is what was raised."""
    told = {"status": 410, "error_code": "version_pruned", "message": "gone", "vm_error_code": 3, "ledger": ledger()}
    error = kind("view at 5: gone", **told, retry_after_s=1.5, archive="https://a.test/v1")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is kind
    assert (again.args, vars(again)) == (error.args, vars(error))
    assert str(copy.copy(error)) == str(error)


@pytest.mark.parametrize("kind", [InputError, SchemaError, NodeUnreachable, OfflineMiss, ClosedError])
def test_other_errors_come_back_too(kind):
    """Errors without a status pickle by themselves, fields included."""
    error = SchemaError("no", column="a", rows=[3]) if kind is SchemaError else kind("no")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), again.args, vars(again)) == (kind, error.args, vars(error))
