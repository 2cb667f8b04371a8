"""What an archive makes of answers that are not as they should be, and of types that change."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, user_transaction
from toolkit.archive._archive import Archive
from toolkit.archive._columns import with_columns_of
from toolkit.archive._folder import Folder, Partition
from toolkit.archive._manifest import ArchiveManifest, StoredTable
from toolkit.archive._sync import sync
from toolkit.client._fetch import fetch_transactions
from toolkit.client._node import Node
from toolkit.errors import InputError, SchemaError
from toolkit.wire import LedgerState

FEES = "0x1::transaction_fee::FeeStatement"


def committed(version, **more):
    return user_transaction(version, type="user_transaction") | more


def node_with(bent):
    """Return a node whose transactions are as `bent` returns them for a version; None leaves one out."""

    def one(version):
        return bent(version) if version in {3, 4} else committed(version)

    def page(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        made = map(one, range(start, start + limit))
        return answer([transaction for transaction in made if transaction is not None])

    return Node(URL, transport=FakeNode({"GET /transactions": page}))


def test_malformed_and_unknown_transactions_are_stored_as_they_came(tmp_path):
    """With the whole text, as rows with a problem; through the archive they are the same rows again."""
    unknown = {"type": "a_future_transaction", "version": "4", "more": [1]}
    node = node_with(lambda version: committed(3, gas_used="many") if version == 3 else unknown)
    archive = sync(node, tmp_path, "0:9", progress=False)
    found = archive.transactions("0:-1").transactions
    assert found["error_code"].fillna("").tolist() == [""] * 3 + ["schema_error"] + [""] * 6
    assert found["raw"].notna().tolist() == [False] * 3 + [True, True] + [False] * 5
    assert '"many"' in found["raw"][3]
    events = archive.events_of(FEES)
    assert events["ledger_version"].tolist() == list(range(10))
    assert events["error_message"].notna().tolist() == [False] * 3 + [True, True] + [False] * 5


@pytest.mark.parametrize("bent", [{"gas_used": str(2**64 - 1)}, {"timestamp": str(2**64 - 1)}, {"gas_used": "-1"}])
def test_a_number_that_no_column_holds_is_a_row_of_its_own(tmp_path, bent):
    """All other transactions of the range are read and stored."""
    node = node_with(lambda version: committed(version, **bent) if version == 3 else committed(version))
    fetched = fetch_transactions(node, "0:9", progress=False).transactions
    stored = sync(node, tmp_path, "0:9", progress=False).transactions("0:-1").transactions
    for found in (fetched, stored):
        assert found["error_code"].fillna("").tolist() == [""] * 3 + ["schema_error"] + [""] * 6
        assert found["raw"].notna().sum() == 1


@pytest.mark.parametrize("options", [{"every": np.int64(5)}, {"every": 0}, {"partition": 5}, {"partition": 1e4}])
def test_sizes_are_whole_numbers(tmp_path, options):
    with pytest.raises(InputError, match="partition must be"):
        sync(node_with(committed), tmp_path, "0:9", progress=False, **options)


def test_a_version_that_the_node_leaves_out_is_not_lost(tmp_path):
    """Nothing of its partition is stored, so a later sync reads it."""
    with pytest.raises(SchemaError, match="omits versions 3 to 4"):
        sync(node_with(lambda _: None), tmp_path, "0:9", progress=False)
    assert repr(Archive(tmp_path)) == "Archive: no versions of chain 4 yet"
    assert len(sync(node_with(committed), tmp_path, "0:9", progress=False).transactions("0:-1").transactions) == 10


TYPES = [pa.uint8(), pa.uint64(), pa.struct([("a", pa.uint8())]), pa.uint8(), pa.struct([("b", pa.string())])]


def test_a_column_whose_type_changes_has_one_column_per_type(tmp_path):
    """In every file a column has one type, so that all readers can read all files; nothing is cast or lost."""
    values = [7, 2**40, {"a": 1}, 8, {"b": "x"}]
    manifest = ArchiveManifest(
        chain_id=4,
        first=0,
        last=-1,
        partition=100,
        every=1,
        tables=(StoredTable("price", event_type="0x1::a::B"),),
        node="n",
    )
    folder = Folder(tmp_path)
    folder.make_folders(manifest)
    folder.write_manifest(manifest)
    head = LedgerState(4, 10, 0, None, 0, 0, 0)
    for place, (value, kind) in enumerate(zip(values, TYPES, strict=True)):
        last = 60 * place + 59  # the second file has rows of two types
        rows = pa.table({"ledger_version": pa.array([last], pa.int64()), "value": pa.array([value], kind)})
        manifest = folder.add(manifest, Partition({"price": rows}, None, head), last)
    archive = Archive(tmp_path)
    names = ["ledger_version", "value", "value[uint64]", "value[#2]", "value[#3]"]
    assert archive.scan("price").schema.names == names
    rows = archive.scan("price").to_table().to_pylist()
    assert [next(row[name] for name in names[1:] if row[name] is not None) for row in rows] == values
    assert archive.sql(
        'select count(*) as n, count(value) as a, count("value[#3]") as b from price'
    ).to_numpy().tolist() == [[5, 2, 1]]


def test_wide_integers_are_not_taken_for_text():
    """Both are text in the files; the mark of the column says which."""
    wide = pa.field("value", pa.string(), metadata={"wide": "u128"})
    before = pa.schema([pa.field("value", pa.string())])
    assert with_columns_of(before, pa.schema([wide])).names == ["value", "value[u128]"]
