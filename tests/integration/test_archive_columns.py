"""Columns of an archive: one per field and type, whatever partitions, syncs and executors its rows came from."""

from __future__ import annotations

import pyarrow as pa
import pytest

import toolkit
from toolkit import embedded
from toolkit.archive._folder import Folder, Partition
from toolkit.archive._manifest import ArchiveManifest, StoredTable
from toolkit.embedded import Event, Module, Struct, entry, signer, u8, u64, u128, vector, view
from toolkit.wire import LedgerState

EVENTS = {"placed": "0x9001::shop::Placed"}
VIEWS = {"prices": "0x9001::shop::prices", "orders": "0x9001::shop::orders", "large": "0x9001::shop::large"}


class Shop(Module, address="0x9001", name="shop"):
    """A shop with lists of every kind."""

    class Order(Struct, abilities="copy drop store"):
        """An order."""

        number: u64
        lots: vector[u8]

    class Placed(Event):
        """Orders that were placed together."""

        numbers: vector[u64]
        large: vector[u128]
        orders: vector[Shop.Order]

    @entry
    def place(self, account: signer, count: u64) -> None:
        """Place so many orders."""
        numbers = []
        large = []
        orders = []
        for number in range(count):
            numbers.append(number)
            large.append(2**100)
            orders.append(Shop.Order(number=number, lots=[1, 2]))
        self.emit(Shop.Placed(numbers=numbers, large=large, orders=orders))

    @view
    def prices(self) -> vector[u64]:
        """Return a list."""
        return [1, 2]

    @view
    def orders(self) -> vector[Shop.Order]:
        """Return a list of structs with lists."""
        return [Shop.Order(number=1, lots=[1, 2])]

    @view
    def large(self) -> vector[u128]:
        """Return a list of wide integers."""
        return [2**100]


@pytest.fixture(scope="module")
def shop():
    """Return a node whose ledger has 250 orders."""
    ledger = embedded.Ledger()
    ledger.publish(Shop)
    ledger.fund("0xabc", 10**14)
    for number in range(250):
        ledger.execute(toolkit.EntryFunction("0x9001::shop::place", [number % 4]), sender="0xabc")
    with embedded.serve(ledger) as url, toolkit.connect(url, cache=None) as node:
        yield node


def test_lists_have_one_column_in_every_archive(shop, tmp_path):
    """Partitions, daily syncs and workers: the columns and rows of the fetch functions."""
    options = {"events": EVENTS, "views": VIEWS, "every": 10, "progress": False}
    archives = [
        toolkit.sync(shop, tmp_path / "one", "0:299", **options),
        toolkit.sync(shop, tmp_path / "parts", "0:299", partition=100, **options),
        toolkit.sync(shop, tmp_path / "threads", "0:299", partition=100, executor="threads:3", **options),
    ]
    for last in (20, 150, 151, 299):
        daily = toolkit.sync(shop, tmp_path / "daily", f"0:{last}", partition=100, **options)
    expected = toolkit.fetch_events(shop, EVENTS["placed"], "0:299", progress=False)
    fields = ["numbers", "large", "orders"]
    for archive in (*archives, daily):
        names = archive.scan("placed").schema.names
        assert [name for name in names if name not in expected.columns] == []
        rows = archive.scan("placed").to_table().to_pylist()
        assert len(rows) == len(expected) > 90
        for field in fields:
            assert [row[field] for row in rows] == expected[field].tolist()
        counted = archive.sql("select count(numbers) as n, count(large) as l, count(orders) as o from placed")
        assert counted.iloc[0].tolist() == [len(rows)] * 3
        for name in VIEWS:
            values = [one for one in archive.scan(name).schema.names if one.startswith("value")]
            assert values == ["value"]
            assert (
                archive.scan(name).to_table()["value"].null_count
                == archives[0].scan(name).to_table()["value"].null_count
            )
        assert {tuple(one) for one in archive.sql("from prices where value is not null")["value"]} == {(1, 2)}


def test_columns_that_differ_in_case_are_both_readable(tmp_path):
    """As Arrow names them, and in SQL with a number and a warning; Move distinguishes case."""
    manifest = ArchiveManifest(
        chain_id=4,
        first=0,
        last=-1,
        partition=100,
        every=1,
        tables=(StoredTable("t", event_type="0x1::a::B"),),
        node="n",
    )
    folder = Folder(tmp_path)
    folder.make_folders(manifest)
    folder.write_manifest(manifest)
    rows = pa.table({"ledger_version": pa.array([5, 6], pa.uint64()), "Price": [1, 2], "price": ["a", "b"]})
    folder.add(manifest, Partition({"t": rows}, None, LedgerState(4, 10, 0, None, 0, 0, 0)), 99)
    archive = toolkit.Archive(tmp_path)
    assert archive.scan("t").to_table()["price"].to_pylist() == ["a", "b"]
    with pytest.warns(UserWarning, match="Price, price"):
        found = archive.sql("""select "Price", price_1 from t where price_1 = 'b'""")
    assert found.to_numpy().tolist() == [[2, "b"]]


def test_a_connection_of_the_caller_has_the_tables_during_the_query(shop, tmp_path):
    """With the caller's own tables, and what the caller allows."""
    duckdb = pytest.importorskip("duckdb", reason="needs DuckDB, of the extra archive")
    archive = toolkit.sync(shop, tmp_path, "0:99", progress=False)
    with duckdb.connect() as connection:
        connection.execute("create table wanted as select 5 as version")
        query = "select ledger_version as v from transactions join wanted on version = ledger_version"
        assert archive.sql(query, connection=connection)["v"].tolist() == [5]
        assert connection.sql("show tables").fetchall() == [("wanted",)]


def test_an_archive_that_stays_open_sees_what_was_added(shop, tmp_path):
    """Through every method, and for what reads its node."""
    kept = toolkit.sync(shop, tmp_path, "0:99", progress=False)
    first = kept.node
    assert kept.node is first
    toolkit.sync(shop, tmp_path, "0:199", progress=False)
    fresh = toolkit.Archive(tmp_path)
    assert kept.node.ledger().version == fresh.node.ledger().version == 199
    for read in (
        lambda one: one.events_of(EVENTS["placed"], "150:199"),
        lambda one: toolkit.fetch_events(one, EVENTS["placed"], "150:199", progress=False),
        lambda one: one.transactions("150:199").balance_changes,
        lambda one: one.sql("from transactions order by 1"),
    ):
        assert read(kept).equals(read(fresh))
