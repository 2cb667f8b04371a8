"""Tables to frames and back, in memory and in Parquet; the data dictionary."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from toolkit import dtypes
from toolkit.dtypes import _arrow
from toolkit.errors import InputError, SchemaError

FLAT = {
    "version": pa.array([1, None, 2**64 - 1], pa.uint64()),
    "change": pa.array([-(2**63), None, 5], pa.int64()),
    "small": pa.array([1, None, 255], pa.uint8()),
    "ok": [True, None, False],
    "text": ["a", None, ""],
    "data": pa.array([b"a", None, b""], pa.binary()),
    "time": pa.array([1, None, 2], pa.timestamp("us", "UTC")),
    "ratio": pa.array([0.5, None, 1.0], pa.float64()),
    "nothing": pa.nulls(3),
    "u128": dtypes.wide_from_ints([0, None, 2**128 - 1], dtypes.u128()),
    "u256": dtypes.wide_from_ints([2**256 - 1, None, 2**255], dtypes.u256()),
    "i128": dtypes.wide_from_ints([-(2**127), None, -1], dtypes.i128()),
    "i256": dtypes.wide_from_ints([-(2**255), None, 1], dtypes.i256()),
}
NESTED = {
    "list": pa.array([["1"], None, []], pa.list_(pa.string())),
    "struct": pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}]),
    "list_of_structs": pa.array([[{"a": 1}], [], None]),
    "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "decimal": pa.array([None, None, None], pa.decimal128(38, 0)),
}
FACTS = {"unit": "octas", "source": "abi 0x1::coin", "typing": "abi"}


def table(columns):
    """A table whose first field says what is known of it."""
    made = pa.table(columns)
    return made.set_column(0, made.schema.field(0).with_metadata(FACTS), made.column(0))


def test_every_column_is_arrow_backed():
    """Text is `string`, wide integers their own dtype, all else ArrowDtype; facts go to attrs."""
    frame = dtypes.to_pandas(table(FLAT))
    for name, dtype in frame.dtypes.items():
        expected = pd.StringDtype("pyarrow") if name == "text" else name if name in _arrow.KINDS else pd.ArrowDtype
        assert isinstance(dtype, expected) if expected is pd.ArrowDtype else dtype == expected
    assert frame.attrs == {"toolkit": {"version": FACTS}}
    json.dumps(frame.attrs)


@pytest.mark.parametrize("write", [partial(dtypes.write_parquet, wide="native"), pd.DataFrame.to_parquet])
@pytest.mark.parametrize("read", [dtypes.read_parquet, pd.read_parquet])
@pytest.mark.parametrize("rows", [3, 0])
def test_flat_frames_survive_parquet_both_ways(tmp_path, write, read, rows):
    """Our writer and pandas', our reader and pandas': values, nulls, dtypes and attrs are the same."""
    frame = dtypes.to_pandas(table(FLAT)).iloc[:rows]
    write(frame, tmp_path / "flat.parquet")
    back = read(tmp_path / "flat.parquet")
    assert_frame_equal(back, frame)
    assert back.attrs == frame.attrs


@pytest.mark.parametrize("write", [dtypes.write_parquet, pd.DataFrame.to_parquet])
@pytest.mark.parametrize("rows", [3, 0])
def test_nested_frames_survive_parquet(tmp_path, write, rows):
    """Lists, structs, fixed bytes and decimals come back with their dtypes, even from pandas' own writer."""
    frame = dtypes.to_pandas(table({**FLAT, **NESTED})).iloc[:rows]
    write(frame, tmp_path / "nested.parquet")
    back = dtypes.read_parquet(tmp_path / "nested.parquet")
    assert_frame_equal(back, frame)
    assert back.attrs == frame.attrs


@pytest.mark.parametrize("levels", [["u256"], ["u128", "i256"], ["u8", "u128"]])
@pytest.mark.parametrize("wide", ["text", "native"])
def test_an_index_of_wide_integers_survives(levels, wide):
    """Alone, and beside other levels."""
    frame = dtypes.to_pandas(table(FLAT))
    frame = frame.set_index([name for name in levels if name in frame.columns])
    back = dtypes.to_pandas(dtypes.to_arrow(frame, wide=wide))
    assert back.index.tolist() == frame.index.tolist()


def test_frames_in_memory_are_read_by_duckdb_and_polars():
    """Wide columns are text there, and the others what they are: nobody reads bytes in silence."""
    duckdb, polars = (
        pytest.importorskip("duckdb", reason="needs duckdb, of the test extra"),
        pytest.importorskip("polars", reason="needs polars, of the test extra"),
    )
    frame = pd.DataFrame({"version": pd.array([1, 2], "uint64[pyarrow]"), "supply": pd.array([2**100, None], "u128")})
    assert duckdb.sql("select version, supply::UHUGEINT from frame").fetchall() == [(1, 2**100), (2, None)]
    for read in (polars.from_pandas(frame), polars.DataFrame(frame)):
        assert read["supply"].cast(polars.Int128).to_list() == [2**100, None]


def test_plain_pandas_reads_nested_files_as_objects(tmp_path):
    """A nested file of ours does not stop plain pandas, as one of its own does."""
    dtypes.write_parquet(dtypes.to_pandas(table(NESTED)), tmp_path / "nested.parquet")
    assert {str(dtype) for dtype in pd.read_parquet(tmp_path / "nested.parquet").dtypes} == {"object"}


def test_plain_pandas_reads_wide_columns_as_text(tmp_path):
    """What is written by default keeps its digits in pandas without this package's reader."""
    dtypes.write_parquet(dtypes.to_pandas(table(FLAT)), tmp_path / "flat.parquet")
    assert pd.read_parquet(tmp_path / "flat.parquet")["u256"].dropna().tolist() == [str(2**256 - 1), str(2**255)]


def test_frames_of_users_come_back_as_they_were(tmp_path):
    """numpy dtypes, named and multiple indexes, categories and other attrs survive as well."""
    frame = pd.DataFrame({"n": [1, 2], "f": [0.5, None], "c": pd.Categorical(["a", "b"]), "s": ["x", None]})
    frame.index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["one", "two"])
    frame.attrs = {"note": "mine"}
    assert_frame_equal(dtypes.to_pandas(dtypes.to_arrow(frame)), frame)
    dtypes.write_parquet(frame, tmp_path / "mine.parquet")
    back = dtypes.read_parquet(tmp_path / "mine.parquet")
    assert_frame_equal(back, frame)
    assert back.attrs == frame.attrs


def test_table_and_frame_are_the_same_data():
    """to_arrow(to_pandas(table)) has the table's columns and field metadata."""
    made = table({**FLAT, **NESTED})
    back = dtypes.to_arrow(dtypes.to_pandas(made))
    assert back.schema.field("version").metadata == {key.encode(): value.encode() for key, value in FACTS.items()}
    for name in made.column_names:
        assert back[name].to_pylist() == made[name].to_pylist()


def test_columns_can_be_chosen(tmp_path):
    """Reading some columns reads those; a missing one is named with what there is."""
    dtypes.write_parquet(dtypes.to_pandas(table(FLAT)), tmp_path / "flat.parquet")
    back = dtypes.read_parquet(tmp_path / "flat.parquet", columns=["u128", "text"])
    assert list(back.columns) == ["u128", "text"]
    with pytest.raises(InputError, match=r"'u128'.*'absent'"):
        dtypes.read_parquet(tmp_path / "flat.parquet", columns=["absent"])


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    """A refused frame leaves the old file and no half of a new one."""
    path = tmp_path / "a.parquet"
    path.write_bytes(b"old")
    with pytest.raises(SchemaError, match="no common Arrow type"):
        dtypes.write_parquet(pd.DataFrame({"a": pd.Series([1, "x", b"y"], dtype=object)}), path)
    with pytest.raises(InputError, match="unique strings"):
        dtypes.write_parquet(pd.DataFrame({1: [1]}), path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]
    assert path.read_bytes() == b"old"
    with pytest.raises(InputError, match="Parquet"):
        dtypes.read_parquet(path)


def test_columns_named_twice_are_refused():
    """Arrow allows two columns of one name; a frame with attrs by column does not."""
    with pytest.raises(InputError, match="more than once"):
        dtypes.to_pandas(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))


def test_describe_is_the_data_dictionary():
    """One row a column: type, unit, source, typing, nulls."""
    found = dtypes.describe(dtypes.to_pandas(table({**FLAT, **NESTED}))).set_index("column")
    assert found.loc["version"].drop("meaning").tolist() == ["uint64", *FACTS.values(), 1]
    assert found.loc["u256", "type"] == "u256"
    assert found.loc["list", "type"].startswith("list<")
    assert pd.isna(found.loc["text", "unit"])
    field = pa.field("gas", pa.int64(), metadata={"meaning": "gas of the call"})
    found = dtypes.describe(dtypes.to_pandas(pa.table([[1]], pa.schema([field]))))
    assert found["meaning"].tolist() == ["gas of the call"]
    assert dtypes.describe(pd.DataFrame()).shape == (0, 7)
    for what in (5, None, pd.Series([1])):
        with pytest.raises(InputError, match=r"^frame .*DataFrame"):
            dtypes.describe(what)


@pytest.mark.parametrize("name", list(_arrow.KINDS))
def test_parquet_statistics_are_in_number_order(tmp_path, name):
    """min and max of each row group are those of the numbers, so filters on bytes are right."""
    kind = _arrow.KINDS[name]
    values = [5, kind.high, kind.low, 2**100, 2**64, *([-1, -(2**90)] if kind.signed else [])]
    dtypes.write_parquet(pd.DataFrame({"v": pd.array(values, dtype=name)}), tmp_path / "s.parquet", wide="native")
    column = pq.ParquetFile(tmp_path / "s.parquet").metadata.row_group(0).column(0)
    assert column.physical_type == "FIXED_LEN_BYTE_ARRAY"
    ends = [int.from_bytes(data, "big") + kind.low for data in (column.statistics.min, column.statistics.max)]
    assert ends == [kind.low, kind.high]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(values=st.lists(st.none() | st.integers(-(2**255), 2**255 - 1), max_size=20))
def test_any_column_survives_parquet(tmp_path, values):
    """Generated i256 columns reload exactly, with plain pandas too."""
    frame = pd.DataFrame({"v": pd.array(values, dtype="i256")})
    dtypes.write_parquet(frame, tmp_path / "g.parquet")
    assert_frame_equal(dtypes.read_parquet(tmp_path / "g.parquet"), frame)
    dtypes.write_parquet(frame, tmp_path / "g.parquet", wide="native")
    assert_frame_equal(dtypes.read_parquet(tmp_path / "g.parquet"), frame)
    assert_frame_equal(pd.read_parquet(tmp_path / "g.parquet"), frame)


def test_duckdb_reads_native_wide_columns_as_bytes(tmp_path):
    """DuckDB needs no extension: a u128 is 16 bytes, exact as UHUGEINT, and its order is number order."""
    duckdb = pytest.importorskip("duckdb", minversion="2.0", reason="older releases do not read hexadecimal numbers")
    values = [2**128 - 1, 5, 2**64, None]
    path = tmp_path / "d.parquet"
    dtypes.write_parquet(pd.DataFrame({"v": pd.array(values, dtype="u128")}), path, wide="native")
    relation = duckdb.read_parquet(str(path)).filter("v is not null").order("v")
    rows = relation.project("typeof(v), ('0x' || hex(v))::UHUGEINT").fetchall()
    assert rows == [("BLOB", 5), ("BLOB", 2**64), ("BLOB", 2**128 - 1)]


def test_polars_reads_native_wide_columns_as_bytes(tmp_path):
    """Polars reads the same bytes."""
    polars = pytest.importorskip("polars", reason="polars is not installed")
    path = tmp_path / "p.parquet"
    dtypes.write_parquet(pd.DataFrame({"v": pd.array([2**200, None], dtype="u256")}), path, wide="native")
    read = polars.read_parquet(path)["v"]
    storage = read.ext.storage() if hasattr(read, "ext") else read
    assert storage.to_list() == [(2**200).to_bytes(32, "big"), None]


SUPPLY = pd.DataFrame(
    {
        "ledger_version": pd.array([1, 2, 3], dtype="uint64[pyarrow]"),
        "supply": pd.array([10**26 + 1, None, 7], dtype="u128"),
        "change": pd.array([-(10**26), 5, None], dtype="i128"),
        "hash": pd.array([2**256 - 1, 0, 1], dtype="u256"),
    }
)


def test_duckdb_casts_text_to_its_widest_integers(tmp_path):
    """The recipe of the documentation: UHUGEINT and HUGEINT are exact, and so is a sum of HUGEINT."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    path = tmp_path / "supply.parquet"
    dtypes.write_parquet(SUPPLY, path)
    relation = duckdb.read_parquet(str(path))
    assert relation.project("supply::UHUGEINT, change::HUGEINT, hash").fetchall() == [
        (10**26 + 1, -(10**26), str(2**256 - 1)),
        (None, 5, "0"),
        (7, None, "1"),
    ]
    assert relation.aggregate("sum(supply::HUGEINT)").fetchall() == [(10**26 + 8,)]


def test_polars_casts_text_to_int128(tmp_path):
    """The recipe of the documentation, from a file and from an Arrow table."""
    polars = pytest.importorskip("polars", reason="polars is not installed")
    path = tmp_path / "supply.parquet"
    dtypes.write_parquet(SUPPLY, path)
    for read in (polars.read_parquet(path), polars.from_arrow(dtypes.to_arrow(SUPPLY, wide="text"))):
        column = read["supply"].cast(polars.Int128)
        assert (column.to_list(), column.sum()) == ([10**26 + 1, None, 7], 10**26 + 8)


def test_decimals_are_read_by_duckdb_polars_and_pyarrow(tmp_path):
    """Numbers of up to 38 digits are decimals everywhere, and wide integers again for this package."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    path = tmp_path / "supply.parquet"
    frame = SUPPLY.drop(columns="hash")
    dtypes.write_parquet(frame, path, wide="decimal")
    expected = [Decimal(10**26 + 1), None, Decimal(7)]
    assert pq.read_table(path)["supply"].type == pa.decimal128(38, 0)
    assert [row for (row,) in duckdb.read_parquet(str(path)).project("supply").fetchall()] == expected
    assert polars.read_parquet(path)["supply"].to_list() == expected
    assert_frame_equal(dtypes.read_parquet(path), frame)


@pytest.mark.parametrize("value", [10**38, -(10**38)])
def test_longer_numbers_are_not_written_as_decimals(tmp_path, value):
    """A number of 39 digits is refused with its row and the form that works; one of 38 is written."""
    frame = pd.DataFrame({"v": pd.array([10**38 - 1, value], dtype="i256")})
    with pytest.raises(SchemaError, match=r"column 'v', row 1: -?10+ .*wide=\"text\"") as caught:
        dtypes.write_parquet(frame, tmp_path / "v.parquet", wide="decimal")
    assert (caught.value.column, caught.value.rows, list(tmp_path.iterdir())) == ("v", (1,), [])
    dtypes.write_parquet(frame.head(1), tmp_path / "v.parquet", wide="decimal")
    assert dtypes.read_parquet(tmp_path / "v.parquet")["v"].tolist() == [10**38 - 1]


@pytest.mark.parametrize("wide", ["text", "decimal", "native"])
def test_wide_columns_keep_dtype_index_and_metadata(tmp_path, wide):
    """Whatever the form in the file, the frame that is read is the one that was written."""
    frame = SUPPLY.drop(columns="hash").set_index(pd.Index(["a", "b", "c"], name="of"))
    frame.attrs["toolkit"] = {"supply": {"unit": "octas", "source": "coin"}}
    dtypes.write_parquet(frame, tmp_path / "v.parquet", wide=wide)
    back = dtypes.read_parquet(tmp_path / "v.parquet")
    assert_frame_equal(back, frame)
    assert back.attrs == frame.attrs
    assert_frame_equal(dtypes.to_pandas(dtypes.to_arrow(frame, wide=wide)), frame)


def test_the_form_of_wide_columns_is_checked():
    """An unknown form is an error that names the three."""
    with pytest.raises(InputError, match=r"^wide: .*'float'"):
        dtypes.to_arrow(SUPPLY, wide="float")


@pytest.mark.parametrize("text", ["x", "1e3", "-1", str(2**128), "01"])
def test_text_marked_as_wide_is_checked(tmp_path, text):
    """A file of others that claims to have wide integers, and has something else, is not read as numbers."""
    marked = pa.schema([pa.field("v", pa.string(), metadata={"wide": "u128"})])
    pq.write_table(pa.table({"v": ["1", text]}, schema=marked), tmp_path / "v.parquet")
    with pytest.raises(SchemaError, match=r"column 'v'.*row 1"):
        dtypes.read_parquet(tmp_path / "v.parquet")


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (pa.array([1]), "u128"),
        (pa.array([1.5]), "u128"),
        (pa.array([b"1"]), "u128"),
        (pa.array([["1"]]), "i256"),
        (pa.array([{"a" * 10_000: 1}]), "u256"),
        (pa.array(["1"]), "u512"),
        (pa.array(["1"]), b"\xff"),
    ],
)
def test_a_column_marked_as_wide_that_is_not_is_an_error(tmp_path, column, name):
    """It is read as neither text nor another number; the message is short."""
    marked = pa.schema([pa.field("v", column.type, metadata={"wide": name})])
    pq.write_table(pa.table([column], schema=marked), tmp_path / "v.parquet")
    with pytest.raises(SchemaError, match=r"column 'v': .*\bu128\b") as caught:
        dtypes.read_parquet(tmp_path / "v.parquet")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("column", [pa.array(["1", None, "1"]).dictionary_encode(), pa.nulls(3)])
def test_text_in_another_encoding_is_wide(tmp_path, column):
    """Other tools encode repeated text as a dictionary, and a column without values as nulls."""
    marked = pa.schema([pa.field("v", column.type, metadata={"wide": "u128"})])
    pq.write_table(pa.table([column], schema=marked), tmp_path / "v.parquet")
    back = dtypes.read_parquet(tmp_path / "v.parquet")["v"]
    assert (str(back.dtype), back.isna().tolist()) == ("u128", column.is_null().to_pylist())


def test_a_selection_has_metadata_of_its_own_at_little_cost(monkeypatch):
    """pandas copies attrs with every selection: the facts are copied as text, without the general deep copy."""

    def general_copy(*_):
        pytest.fail("the metadata of columns went through copy.deepcopy")

    fields = [pa.field(name, pa.uint64(), metadata={"unit": "gas", "typing": "schema"}) for name in ("before", "after")]
    frame = dtypes.to_pandas(pa.table([[1], [2]], pa.schema(fields)))
    monkeypatch.setattr("toolkit.dtypes._tables.deepcopy", general_copy)
    part = frame[["before"]]
    assert part.attrs == frame.attrs
    part.attrs["toolkit"]["before"]["unit"] = "octas"
    assert frame.attrs["toolkit"]["before"]["unit"] == part["before"].attrs["toolkit"]["after"]["unit"] == "gas"
    assert type(pickle.loads(pickle.dumps(frame)).attrs["toolkit"]) is dict  # noqa: S301
