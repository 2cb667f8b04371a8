"""Frames of view calls and table items: typed, inferred, flattened, failed."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError, InvalidRequest, NodeUnreachable, SchemaError
from toolkit.frames._calls import Failure, TableItemRecord, ViewRecord, item_frame, view_frame
from toolkit.frames._schema import VIEWS
from toolkit.move import AbiMap, EnumOf, StructOf, UInt, decode_module_abi, parse_type_tag, resolve_layout

ABIS = AbiMap.of(
    [
        decode_module_abi(
            {
                "address": "0x1",
                "name": "m",
                "exposed_functions": [],
                "structs": [
                    {"name": "Purse", "fields": [{"name": "total", "type": "u128"}, {"name": "open", "type": "bool"}]}
                ],
            }
        )
    ]
)
TAIL = ["gas_used", "status", "error_code", "vm_error_code", "error_message"]
HEAD = ["ledger_version", "ledger_timestamp", "head_version"]
MOVED = Failure(400, "invalid_input", "Move abort", 4016)


def layout(text):
    return resolve_layout(parse_type_tag(text), ABIS)


def record(*values, types=("u64",), version=5, call=None, failure=None):
    """Return a view record; without `types`, the ABI is unknown, and a failure has no values."""
    layouts = tuple(layout(kind) for kind in types) if types is not None else None
    if failure is not None:
        return ViewRecord(call, version, None, None, None, None, None, failure)
    raw = json.dumps(values[0], default=str)
    return ViewRecord(call, version, 1_000, 12, values, layouts, raw, None)


def plain(series):
    return [None if value is None or value is pd.NA else value for value in series.tolist()]


class TestViews:
    """view_frame"""

    def test_columns_stand_in_their_documented_order(self):
        """Version, time, head, then the value, gas and how a failed call failed."""
        assert list(view_frame([record(5)]).columns) == [*HEAD, "value", *TAIL]
        assert list(view_frame([record(5)], named=True).columns) == ["call", *HEAD, "value", *TAIL]
        assert list(view_frame([record(5, True, types=("u64", "bool"))]).columns) == [
            *HEAD,
            "value_0",
            "value_1",
            *TAIL,
        ]

    @given(st.lists(st.none() | st.integers(0, 2**64 - 1), min_size=1))
    def test_u64_values_are_exact(self, values):
        """Successes keep every digit, failures are null between them."""
        frame = view_frame([record(failure=MOVED) if value is None else record(value) for value in values])
        assert plain(frame["value"]) == values
        if any(value is not None for value in values):
            assert str(frame["value"].dtype) == "uint64[pyarrow]"

    @pytest.mark.parametrize(("kind", "bits"), [("u128", 128), ("u256", 256)])
    def test_wide_values_are_exact(self, kind, bits):
        """u128 and u256 keep every digit and are Python ints again."""
        values = [0, 1, 2**64, 2**bits - 1]
        frame = view_frame([record(value, types=(kind,)) for value in values])
        assert str(frame["value"].dtype) == kind
        assert plain(frame["value"]) == values

    @pytest.mark.parametrize(
        ("kind", "value", "dtype"),
        [
            ("bool", True, "bool[pyarrow]"),
            ("u8", 255, "uint8[pyarrow]"),
            ("address", "0x1", None),
            ("vector<u8>", b"\x00\xff", "binary[pyarrow]"),
            ("vector<u64>", [1, 2**64 - 1], None),
            ("0x1::option::Option<u64>", None, "uint64[pyarrow]"),
        ],
    )
    def test_each_type_has_its_column(self, kind, value, dtype):
        """The Arrow type is that of the Move type; values come back as they went in."""
        frame = view_frame([record(value, types=(kind,))])
        got = frame["value"].tolist()[0]
        assert (None if got is pd.NA else list(got) if isinstance(value, list) else got) == value
        assert dtype is None or str(frame["value"].dtype) == dtype

    def test_structs_flatten_on_request(self):
        """One column per field, named value.field; a failed call is null in each."""
        records = [record({"total": 2**128 - 1, "open": True}, types=("0x1::m::Purse",)), record(failure=MOVED)]
        frame = view_frame(records, flatten=True)
        assert list(frame.columns) == [*HEAD, "value.total", "value.open", *TAIL]
        assert int(frame["value.total"].tolist()[0]) == 2**128 - 1
        assert plain(frame["value.open"]) == [True, None]
        assert "value" in view_frame(records).columns

    @pytest.mark.parametrize("kind", ["0x1::m::Purse", "0x1::option::Option<0x1::m::Purse>"])
    def test_a_flattened_field_has_its_own_type(self, kind):
        """A u128 of a struct is a u128 column once it is one of its own, also where some structs are missing."""
        records = [record({"total": 2**128 - 1, "open": True}, types=(kind,)), record(failure=MOVED)]
        frame = view_frame(records, flatten=True)
        assert (str(frame["value.total"].dtype), str(frame["value.open"].dtype)) == ("u128", "bool[pyarrow]")
        assert plain(frame["value.total"]) == [2**128 - 1, None]
        assert frame.attrs["toolkit"]["value.total"]["typing"] == "abi"

    def test_failures_are_rows_with_their_reason(self):
        """Status, code, VM number and message of the node; gas and value are null."""
        frame = view_frame([record(5), record(failure=MOVED, version=6)])
        row = frame.iloc[1]
        assert (row["ledger_version"], row["status"], row["error_code"]) == (6, 400, "invalid_input")
        assert (row["vm_error_code"], row["error_message"]) == (4016, "Move abort")
        assert pd.isna(row["value"])
        assert pd.isna(row["gas_used"])
        assert frame["status"].isna().tolist() == [True, False]

    def test_untyped_gives_json_text(self):
        """typed=False takes calls of any types in one column."""
        frame = view_frame([record(5), record(True, types=("bool",)), record(failure=MOVED)], typed=False)
        assert plain(frame["value"]) == ["5", "true", None]

    def test_calls_of_different_types_have_a_column_each(self):
        """Each column has the type of its call, null in the rows of the others, also if a call never answered."""
        records = [
            record(5, call="a", version=1),
            record(2**128 - 1, True, types=("u128", "bool"), call="b", version=1),
            record(failure=MOVED, call="c", version=1),
        ]
        frame = view_frame(records, named=True, layouts={"c": (layout("0x1::m::Purse"),)})
        assert list(frame.columns) == ["call", *HEAD, "value[a]", "value_0[b]", "value_1[b]", "value[c]", *TAIL]
        assert [str(frame[name].dtype) for name in ("value[a]", "value_0[b]")] == ["uint64[pyarrow]", "u128"]
        assert plain(frame["value[a]"]) == [5, None, None]
        assert [None if pd.isna(one) else int(one) for one in frame["value_0[b]"]] == [None, 2**128 - 1, None]
        assert plain(frame["value[c]"]) == [None] * 3
        flat = view_frame(records, flatten=True, layouts={"c": (layout("0x1::m::Purse"),)})
        assert {"value[c].total", "value[c].open"} <= set(flat.columns)

    def test_calls_of_one_type_share_a_column(self):
        """Also if one of them has rows without types, as after an outage, or never answered."""
        records = [record(5, call="a"), record(6, call="b"), record("7", types=None, call="b"), record(8, call="c")]
        assert "value" in view_frame(records, named=True).columns
        failing = [record(5, call="a"), record(failure=MOVED, call="b")]
        assert "value" in view_frame(failing, layouts={"b": (layout("u64"),)}).columns

    def test_a_call_whose_type_changes_has_a_column_per_type(self):
        """Typed exactly, from the oldest to the newest, null in the rows of the others; a failed call is null in all."""
        records = [
            record(True, types=("bool",), call="a", version=9),
            record(failure=MOVED, call="a", version=5),
            record(5, call="a", version=1),
            record(2**100, call="a", types=("u128",), version=4),
        ]
        frame = view_frame(records)
        names = ["value[u64]", "value[u128]", "value[bool]"]
        assert list(frame.columns) == [*HEAD, *names, *TAIL]
        assert [str(frame[name].dtype) for name in names] == ["uint64[pyarrow]", "u128", "bool[pyarrow]"]
        assert [plain(frame[name]) for name in names] == [
            [None, None, 5, None],
            [None, None, None, 2**100],
            [True, None, None, None],
        ]
        assert "null in the rows of the other types" in frame.attrs["toolkit"]["value[u64]"]["meaning"]
        mixed = view_frame([*records, record("x", types=("0x1::string::String",), call="b")], named=True)
        assert [name for name in mixed if name.startswith("value")] == [
            "value[a][u64]",
            "value[a][u128]",
            "value[a][bool]",
            "value[b]",
        ]

    def test_each_value_of_a_call_has_columns_of_its_own_types(self):
        """A value that an upgrade adds is null before it; one that does not change has one column."""
        records = [
            record(5, version=1),
            record(6, True, types=("u64", "bool"), version=2),
            record(7, "0x1", types=("u64", "address"), version=3),
        ]
        frame = view_frame(records)
        assert plain(frame["value_0"]) == [5, 6, 7]
        assert plain(frame["value_1[bool]"]) == [None, True, None]
        assert plain(frame["value_1[address]"]) == [None, None, "0x1"]

    def test_a_struct_of_the_same_name_shares_a_column_if_it_can(self):
        """A new variant of an enum needs no second column; fields that changed do."""
        tag = parse_type_tag("0x1::m::Mode")
        off, on = ("Off", ()), ("On", (("level", UInt(8)),))
        old, new = EnumOf(tag, (off,)), EnumOf(tag, (off, on))
        values = [{"__variant__": "Off"}, {"__variant__": "On", "level": 3}]
        shared = [ViewRecord("a", at, 9, 1, (values[at],), ((old, new)[at],), "") for at in (0, 1)]
        assert view_frame(shared)["value"].tolist() == [
            {"__variant__": "Off", "level": None},
            {"__variant__": "On", "level": 3},
        ]
        structs = [StructOf(tag, (("n", UInt(64)),)), StructOf(tag, (("n", UInt(64)), ("m", UInt(8))))]
        changed = [ViewRecord("a", 0, 9, 1, ({"n": 1},), (structs[0],), "")]
        changed += [ViewRecord("a", 1, 9, 1, ({"n": 2, "m": 3},), (structs[1],), "")]
        frame = view_frame(changed, flatten=True)
        assert [name for name in frame if name.startswith("value")] == [
            "value[0x1::m::Mode].n",
            "value[0x1::m::Mode #2].n",
            "value[0x1::m::Mode #2].m",
        ]
        assert plain(frame["value[0x1::m::Mode #2].n"]) == [None, 2]

    def test_without_types_the_longest_answer_has_a_column_per_value(self):
        """One value, then two."""
        frame = view_frame([record(1, types=None), record(1, 2, types=None)])
        assert [plain(frame[name]) for name in ("value_0", "value_1")] == [[1, 1], [None, 2]]

    @pytest.mark.parametrize(
        ("values", "shown"),
        [
            pytest.param(["18446744073709551616"], ["18446744073709551616"], id="digits stay text"),
            pytest.param(["5", True, {"a": 1}], ['"5"', "true", '{"a":1}'], id="types that disagree"),
            pytest.param([1.5], ["1.5"], id="a fraction"),
            pytest.param([[1.5]], ["[1.5]"], id="a fraction in a list"),
            pytest.param([{"a": {"b": 1.5}}], ['{"a":{"b":1.5}}'], id="a fraction in an object"),
        ],
    )
    def test_inferred_values_are_text_that_keeps_their_digits(self, values, shown):
        """A column of no single JSON type, or of floats, which would round exact numbers, has each value as JSON."""
        frame = view_frame([*(record(value, types=None) for value in values), record(failure=MOVED)])
        assert str(frame["value"].dtype) == "string"
        assert plain(frame["value"]) == [*shown, None]
        assert "inferred" in str(frame.attrs["toolkit"])

    def test_a_value_that_does_not_fit_names_column_and_row(self):
        """Whoever made the record, a u8 column takes no 300."""
        with pytest.raises(SchemaError, match="column 'value'") as caught:
            view_frame([record(5, types=("u8",)), record(300, types=("u8",))])
        assert caught.value.rows == (1,)

    def test_no_records_give_an_empty_frame_with_its_columns(self):
        """Nothing asked is not nothing known."""
        frame = view_frame([])
        assert list(frame.columns) == [*HEAD, "value", *TAIL]
        assert len(frame) == 0

    def test_the_records_are_not_changed(self):
        """A frame is built beside its records."""
        value = {"total": 1, "open": True}
        view_frame([record(value, types=("0x1::m::Purse",))], flatten=True)
        assert value == {"total": 1, "open": True}


class TestItems:
    """item_frame"""

    def test_key_first_value_after_the_versions(self):
        """Columns stand in their documented order, both typed."""
        records = [TableItemRecord("alice", 5, 1_000, 2**128 - 1), TableItemRecord("bob", 5, 1_000, None, MOVED)]
        frame = item_frame(records, key_layout=layout("0x1::string::String"), value_layout=layout("u128"))
        assert list(frame.columns) == ["key", *HEAD, "value", "presence", *TAIL[1:]]
        assert plain(frame["key"]) == ["alice", "bob"]
        assert plain(frame["value"]) == [2**128 - 1, None]
        assert str(frame["value"].dtype) == "u128"
        assert plain(frame["error_code"]) == [None, "invalid_input"]

    @pytest.mark.parametrize("total", [3, "3"])
    def test_a_key_may_be_a_struct(self, total):
        """Struct keys are columns like any other, with numbers as ints or, as a request takes them, as text."""
        records = [TableItemRecord({"total": total, "open": False}, 5, None, 7)]
        frame = item_frame(records, key_layout=layout("0x1::m::Purse"), value_layout=layout("u64"))
        assert frame["key"].tolist() == [{"total": "3", "open": False}]
        assert plain(frame["value"]) == [7]

    def test_keys_of_the_type_of_another_version_are_as_given(self):
        """A key that does not fit the newest type does not fail the whole frame."""
        keys = [{"total": 3, "open": False}, {"sum": 2**70}]
        records = [TableItemRecord(key, 5, None, 7) for key in keys]
        frame = item_frame(records, key_layout=layout("0x1::m::Purse"), value_layout=layout("u64"))
        assert [key["sum"] for key in frame["key"]] == [None, str(2**70)]

    def test_an_item_whose_type_changes_has_a_column_per_type(self):
        """As a view; the records have the types of their versions."""
        kinds = [layout("0x1::m::Purse"), layout("u64")]
        records = [TableItemRecord(1, 6, None, 7, layout=kinds[1])]
        records += [TableItemRecord(1, 5, None, {"total": 1, "open": True}, layout=kinds[0])]
        frame = item_frame(records, key_layout=layout("u8"), value_layout=kinds[1])
        assert plain(frame["value[u64]"]) == [7, None]
        assert plain(frame["value[0x1::m::Purse]"]) == [None, {"total": "1", "open": True}]


class TestFailures:
    """Failure.of"""

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            pytest.param(
                InvalidRequest("text", status=400, error_code="invalid_input", message="abort", vm_error_code=4016),
                Failure(400, "invalid_input", "abort", 4016),
                id="a refusal",
            ),
            pytest.param(
                InvalidRequest("text", status=502, message=""),
                Failure(502, "http_502", "text"),
                id="a gateway without a code",
            ),
            pytest.param(NodeUnreachable("cut"), Failure(None, "unreachable", "cut"), id="no answer"),
            pytest.param(SchemaError("bad"), Failure(None, "schema_error", "bad"), id="a value that does not fit"),
        ],
    )
    def test_what_a_row_says_of_an_error(self, error, expected):
        """Status, code, message and VM number of the node; a status or a code of our own where it gave none."""
        assert Failure.of(error) == expected

    def test_each_code_of_our_own_is_in_the_dictionary(self):
        """The caller's mistakes, the node's answers and missing answers have different codes, each in the data dictionary."""
        errors = [InputError("bad"), SchemaError("bad"), NodeUnreachable("gone"), InvalidRequest("t", status=400)]
        codes = [Failure.of(error).error_code for error in errors]
        assert codes == ["input_error", "schema_error", "unreachable", "http_400"]
        (column,) = [column for column in VIEWS if column.name == "error_code"]
        assert all(code.rstrip("0123456789") in column.meaning for code in codes)


def test_missing_deleted_and_pruned_are_three_things():
    """An item seen earlier and gone is deleted; one never seen is missing; below the horizon nothing is known."""
    gone = Failure(404, "table_item_not_found", "")
    pruned = Failure(410, "version_pruned", "")
    cut = Failure(None, "unreachable", "")
    records = [
        TableItemRecord("a", 1, 9, None, pruned),
        TableItemRecord("a", 2, 9, None, gone),
        TableItemRecord("a", 3, 9, 5),
        TableItemRecord("a", 4, 9, None, gone),
        TableItemRecord("b", 4, 9, None, gone),
        TableItemRecord("b", 5, 9, None, cut),
    ]
    frame = item_frame(records, key_layout=layout("0x1::string::String"), value_layout=layout("u64"))
    assert frame["presence"].fillna("-").tolist() == ["pruned", "missing", "present", "deleted", "missing", "-"]


def test_an_enum_without_variants_is_named_in_attrs():
    """Numbers inside such a value stay text; the column's meaning says why, and a column of known type has none."""
    from toolkit.frames._columns import typed_column
    from toolkit.move import Untyped, VectorOf

    why = "the ABI of 0x1::m::Mode does not list the enum's variants"
    values = [[{"__variant__": "Fast", "speed": "5"}]]
    layout = VectorOf(Untyped(parse_type_tag("0x1::m::Mode"), why))
    field, array = typed_column("mode", layout, values, source="view", typing="abi")
    assert '"5"' in str(array.to_pylist()) or "'5'" in str(array.to_pylist())
    assert field.metadata[b"meaning"].decode() == f"as in the node's JSON, numbers above 32 bits as text: {why}"
    known, _ = typed_column("n", UInt(64), [5], source="view", typing="abi")
    assert b"meaning" not in known.metadata
