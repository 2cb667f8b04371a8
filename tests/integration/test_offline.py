"""Sessions without a node: connect once, keep a file, read it on the train. And BCS tells what JSON tells."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pandas as pd
import pytest

import toolkit
from toolkit import embedded

APT = "0x1::aptos_coin::AptosCoin"
SUPPLY = toolkit.ViewFunction("0x1::coin::supply", type_arguments=[APT])
RECORD = {"key_type": "0x1::string::String", "value_type": "0xcafe::registry::Record"}
VERSIONS = [150, 200, 250, 299]


def nobody_listens(url: str) -> bool:
    """Tell whether a connection to the URL's port is refused."""
    parts = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname, parts.port)) != 0


class Session:
    """What one session with a node read, kept in a file; the node is gone."""

    def __init__(self, place, encoding: str) -> None:
        self.place, self.encoding = place, encoding
        ledger = embedded.Ledger.with_history(seed=7, versions=300, cache=True)
        with embedded.serve(ledger, port=0) as self.url, self.connect(offline=False) as node:
            self.ledger = node.ledger()
            self.handle = node.view("0xcafe::registry::handle", ledger_version=299).value
            self.read = self.all_reads(node)
        assert nobody_listens(self.url)

    def connect(self, *, offline: bool = True) -> toolkit.Node:
        """Return a client of the node, with the file."""
        return toolkit.connect(self.url, cache=self.place, encoding=self.encoding, offline=offline)

    def all_reads(self, node) -> dict[str, object]:
        """Read one of everything that is kept."""
        past = node.at(299)
        return {
            "supply": past.view(SUPPLY),
            "item": past.table_item(self.handle, key="alice", **RECORD),
            "resource": past.resource("0xb0b", f"0x1::coin::CoinStore<{APT}>"),
            "schedule": past.gas_schedule(),
            "module": past.module("0xcafe", "registry"),
            "block": node.block(250),
            "transaction": node.transaction(250),
            "views": toolkit.fetch_views(node, {"supply": SUPPLY}, versions=VERSIONS, progress=False),
            "items": toolkit.fetch_table_items(
                node, self.handle, keys=["alice", "nobody"], **RECORD, versions=VERSIONS, progress=False
            ),
        }


@pytest.fixture(scope="module", params=["json", "bcs"])
def session(request, tmp_path_factory):
    return Session(tmp_path_factory.mktemp("kept") / "answers.sqlite3", request.param)


@pytest.fixture
def offline(session):
    with session.connect() as node:
        yield node


def test_everything_that_was_read_is_read_again(session, offline):
    """Values, items, resources, schedules, modules, blocks and transactions: equal, with no server running."""
    again = session.all_reads(offline)
    for name in ("supply", "item"):
        one, two = session.read[name], again[name]
        assert (two.value, two.ledger_version, two.ledger) == (one.value, one.ledger_version, one.ledger)
    assert again["supply"].gas_used == session.read["supply"].gas_used
    assert again["supply"].types == ("0x1::option::Option<u128>",)
    for name in ("resource", "schedule", "module", "block", "transaction"):
        assert again[name] == session.read[name], name
    for name in ("views", "items"):
        pd.testing.assert_frame_equal(again[name], session.read[name])


class TestEncodings:
    """`encoding="bcs"` gives what `encoding="json"` gives."""

    @pytest.fixture
    def both(self, url):
        with (
            toolkit.connect(url, encoding="json", cache=None) as json_node,
            toolkit.connect(url, encoding="bcs", cache=None) as bcs_node,
        ):
            yield json_node, bcs_node

    def test_sweeps_are_equal(self, both):
        """Whole frames, failures included."""
        calls = {"supply": SUPPLY}
        frames = [toolkit.fetch_views(node, calls, versions="0:-1/60", progress=False) for node in both]
        pd.testing.assert_frame_equal(*frames)
        handle = both[0].view("0xcafe::registry::handle").value
        items = [
            toolkit.fetch_table_items(
                node, handle, keys=["alice", "nobody"], **RECORD, versions="0:-1/20", progress=False
            )
            for node in both
        ]
        pd.testing.assert_frame_equal(*items)
