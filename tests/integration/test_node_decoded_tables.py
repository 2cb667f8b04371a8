"""Changes of table items over HTTP: decoded as on public nodes, or as nodes without a table indexer show them."""

from __future__ import annotations

import pytest
import requests

import toolkit
from toolkit import embedded
from toolkit.embedded import Module, Resource, String, Struct, Table, address, entry, signer, u64, u128


class Shelf(Module, address="0x5e1f"):
    """Books by place, their number by owner."""

    class Place(Struct):
        row: u64
        owner: address

    class Book(Struct):
        title: String
        pages: u128

    class Books(Resource):
        books: Table[Shelf.Place, Shelf.Book]
        counts: Table[String, u64]

    def init_module(self, account: signer) -> None:
        self.move_to(account, Shelf.Books(books=self.new_table(), counts=self.new_table()))
        self.borrow(Shelf.Books, account).counts.add("all", 0)

    @entry
    def put(self, account: signer, row: u64, title: String) -> None:
        books = self.borrow(Shelf.Books, "0x5e1f")
        books.books.upsert(Shelf.Place(row=row, owner=account), Shelf.Book(title=title, pages=2**100))
        books.counts.contains("all")

    @entry
    def take(self, account: signer, row: u64) -> None:
        self.borrow(Shelf.Books, "0x5e1f").books.remove(Shelf.Place(row=row, owner=account))


def _served(**options):
    ledger = embedded.Ledger(**options)
    published = ledger.publish(Shelf).version
    versions = [
        ledger.commit("0x5e1f::shelf::put", 7, "Faust", sender="0xb0b").version,
        ledger.commit("0x5e1f::shelf::take", 7, sender="0xb0b").version,
    ]
    ledger.commit("0x5e1f::shelf::put", 8, "Emma", sender="0xb0b")
    return ledger, published, versions


def _items(url, version):
    answer = requests.get(f"{url}/transactions/by_version/{version}", timeout=10).json()
    return [change for change in answer["changes"] if change["type"].endswith("_table_item")]


KEY = {"row": "7", "owner": "0xb0b"}
PLACE, BOOK = "0x5e1f::shelf::Place", "0x5e1f::shelf::Book"


def test_written_and_deleted_items_are_decoded():
    """A write has key, key_type, value and value_type; a deletion has the first two."""
    ledger, published, (put, take) = _served()
    with embedded.serve(ledger) as url:
        written = next(item for item in _items(url, put) if item["key"].startswith("0x07"))
        deleted = next(item for item in _items(url, take) if item["key"].startswith("0x07"))
        created = _items(url, published)
    assert written["type"] == "write_table_item"
    assert written["data"] == {
        "key": KEY,
        "key_type": PLACE,
        "value": {"title": "Faust", "pages": str(2**100)},
        "value_type": BOOK,
    }
    assert deleted["type"] == "delete_table_item"
    assert deleted["data"] == {"key": KEY, "key_type": PLACE}
    assert "value" not in deleted
    assert [item["data"]["key_type"] for item in created] == ["0x1::string::String"]


def test_without_a_table_indexer_data_is_null():
    """`decoded_tables=False` leaves the bytes of keys and values."""
    ledger, published, versions = _served(decoded_tables=False)
    with embedded.serve(ledger) as url:
        items = [item for version in (published, *versions) for item in _items(url, version)]
    assert len(items) >= 3
    assert {item["data"] for item in items} == {None}


@pytest.mark.parametrize("decoded", [True, False])
def test_the_client_reads_both_forms(decoded):
    """The frame of changes has the types of decoded items; simulations are decoded like transactions."""
    ledger, _, (put, _) = _served(decoded_tables=decoded)
    call = toolkit.EntryFunction("0x5e1f::shelf::put", arguments=[9, "Ulysses"])
    with embedded.serve(ledger) as url, toolkit.connect(url) as node:
        committed = toolkit.fetch_transactions(node, versions=[put], progress=False).changes
        simulated = node.simulate(call, sender="0xb0b").changes
    for frame in (committed, simulated):
        place = frame[frame["key"].map(lambda key: isinstance(key, bytes) and len(key) == 40)]
        assert len(place) == 1
        types = place[["key_type", "value_type"]].dropna().values.tolist()
        assert types == (
            [[f"0x{'5e1f'.rjust(64, '0')}::shelf::{name}" for name in ("Place", "Book")]] if decoded else []
        )


def test_a_table_that_a_simulation_creates_is_not_decoded():
    """A node's indexer learns a table only when it is committed."""

    class Boxes(Module, address="0xb0c5"):
        class Box(Resource):
            items: Table[u64, u64]

        @entry
        def make(self, account: signer) -> None:
            self.move_to(account, Boxes.Box(items=self.new_table()))
            self.borrow(Boxes.Box, account).items.add(1, 2)

    ledger = embedded.Ledger()
    ledger.publish(Boxes)
    with embedded.serve(ledger) as url:
        body = {
            "sender": "0xb0b",
            "sequence_number": "0",
            "max_gas_amount": "200000",
            "gas_unit_price": "100",
            "expiration_timestamp_secs": str(2**33),
            "payload": {
                "type": "entry_function_payload",
                "function": "0xb0c5::boxes::make",
                "type_arguments": [],
                "arguments": [],
            },
            "signature": {"type": "no_account_signature"},
        }
        answer = requests.post(f"{url}/transactions/simulate", json=body, timeout=10).json()
        assert answer[0]["success"], answer
        committed = ledger.commit("0xb0c5::boxes::make", sender="0xb0b")
        items = [change for change in answer[0]["changes"] if change["type"] == "write_table_item"]
        assert [item["data"] for item in items if item["value"] == "0x0200000000000000"] == [None]
        assert any(item["data"]["value"] == "2" for item in _items(url, committed.version))
