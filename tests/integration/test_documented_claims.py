"""What the documentation says of the fetch functions is true."""

from __future__ import annotations

import toolkit
from toolkit.client._transport import SessionTransport


def test_the_fetch_functions_send_over_the_engine(node, monkeypatch):
    """As the documentation says: the transport of single calls sends what a fetch needs to know, not its calls."""
    sent = []
    send = SessionTransport.send
    monkeypatch.setattr(SessionTransport, "send", lambda self, request: sent.append(request) or send(self, request))
    transfer = toolkit.SimulationRequest(
        toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 1]), sender="0xa11ce"
    )
    handle = node.view("0xcafe::registry::handle").value
    text, record = "0x1::string::String", "0xcafe::registry::Record"
    for fetch in (
        lambda: toolkit.fetch_views(node, toolkit.ViewFunction("0xcafe::registry::size"), "0:-1/60"),
        lambda: toolkit.fetch_transactions(node, "0:-1/60"),
        lambda: toolkit.fetch_simulations(node, [transfer] * 60),
        lambda: toolkit.fetch_table_items(node, handle, [f"k{n}" for n in range(60)], key_type=text, value_type=record),
    ):
        del sent[:]
        fetch()
        assert len(sent) < 30
