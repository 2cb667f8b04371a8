"""Frames for reading: `toolkit.show`, `toolkit.address`, and frames in notebooks."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit
from toolkit import address, show
from toolkit._present.text import MINUS, distinct_addresses
from toolkit.errors import InputError
from toolkit.frames._display import FIRST
from toolkit.frames._schema import FRAMES

LONG = [f"0x{'ab' * 16}{place:02x}{'cd' * 15}" for place in range(3)]
DIGITS = st.text("0123456789abcdef", min_size=1, max_size=64)


@given(st.lists(DIGITS, max_size=12))
def test_shortened_addresses_differ_as_the_addresses_do(digits):
    """However alike they are at both ends."""
    addresses = sorted({address(one) for one in digits})
    short = distinct_addresses(addresses)
    assert len({short(one) for one in addresses}) == len(addresses)


def test_addresses_that_share_both_ends_are_told_apart():
    """Three addresses that differ in the middle only have three forms in a table, in text too."""
    frame = pd.DataFrame({"owner": LONG, "type": [f"0x1::object::Object<{one}::coin::Coin>" for one in LONG]})
    table = show(frame)
    assert len({row[0] for row in table.rows}) == len({row[1] for row in table.rows}) == 3
    assert all(row[0] in row[1] for row in table.rows)


def test_addresses_are_spelt_as_people_write_them():
    """Without padding, as forms and sentences spell them; a long one keeps a zero at its beginning."""
    long = "0x0" + "ab" * 31 + "c"
    column = [address("0xa11ce"), "0x1", f"{address('0xcafe')}::m::T<{LONG[0]}>", "0xb0b", address("0x0a"), long]
    table = show(pd.DataFrame({"owner": column}))
    assert [row[0] for row in table.rows] == [
        *("0xa11ce", "0x1", "0xcafe::m::T<0xababab…cdcd>", "0xb0b", "0xa", "0x0ababa…babc"),
    ]


def test_bytes_keep_their_zeros():
    """32 bytes are shortened in the middle; the same bytes as text are an address."""
    keys = [b"\x03zoe", b"\x00" * 30 + b"\x0b\x0b", b"\x00" * 29 + b"\x01\x0b\x0b", bytes(range(32)), bytes(40), None]
    frame = pd.DataFrame({"key": pd.array(keys, dtype="binary[pyarrow]")})
    assert [row[0] for row in show(frame).rows] == [
        *("0x037a6f65", "0x00000000…000b0b", "0x00000000…010b0b", "0x000102…1e1f", "0x" + "00" * 40, ""),
    ]
    assert show(pd.DataFrame({"data": ['{"module_name":"0x037a6f65000000000000"}']})).rows == (
        ('{"module_name":"0x037a6f65000000000000"}',),
    )


def test_digests_are_short():
    """The first 12 digits are enough to compare rows."""
    assert show(pd.DataFrame({"fingerprint": ["0123456789abcdef" * 2]})).rows == (("0123456789ab…",),)


class Terminal(io.StringIO):
    """An output that says it is a terminal."""

    def isatty(self):
        return True


def test_text_has_the_columns_that_fit_in_a_terminal(monkeypatch):
    """The note names the others; HTML, and text in a file, has all columns."""
    frame = pd.DataFrame({"first": ["word " * 6] * 2, "second": ["y" * 50] * 2, "gas": [123_456_789] * 2})
    monkeypatch.setenv("COLUMNS", "56")  # a kernel inherits it, too
    monkeypatch.setattr("sys.stdout", object())  # a program may replace it by what has no more than `write`
    whole = repr(show(frame))
    assert "not shown" not in whole
    for of_the_process in (True, False):  # a pipe, for which COLUMNS is set, or a terminal
        monkeypatch.setattr("sys.stdout", sys.__stdout__ if of_the_process else Terminal())
        lines = repr(show(frame)).splitlines()
        assert max(map(len, lines)) <= 56
        assert "not shown: gas" in lines[-1]
    assert ">gas<" in show(frame)._repr_html_()


def test_times_of_another_zone_have_their_offset():
    """A time without one is UTC."""
    time = pd.Series(pd.to_datetime(["2026-05-01T12:00Z"]))
    frame = pd.DataFrame({"utc": time, "tokyo": time.dt.tz_convert("Asia/Tokyo")})
    assert show(frame).rows[0] == ("2026-05-01 12:00:00", "2026-05-01 21:00:00+0900")


def test_numbers_are_for_reading():
    """Numbers have separators and a minus sign, chain ids have none, missing values are empty."""
    frame = pd.DataFrame(
        {
            "ledger_version": pd.array([1234567, 1234568], dtype="uint64[pyarrow]"),
            "octas": pd.array([2**70, None], dtype="u128"),
            "chain_id": [1000, 2000],
            "change": [-1234, 5],
            "expiration_timestamp_secs": [1767226200, 1],
            "at": [datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), None],
            "ok": [True, False],
            "nothing": [None, None],
            "parts": [["a", 2], None],
        }
    )
    table = show(frame)
    names = ("ledger_version", "octas", "change", "at", "ok", "parts", "chain_id", "expiration_timestamp_secs")
    assert table.columns == names
    first = (
        "1,234,567",
        f"{2**70:,}",
        f"{MINUS}1,234",
        "2026-01-02 03:04:05",
        "True",
        '["a", 2]',
        "1000",
        "1767226200",
    )
    assert table.rows == (first, ("1,234,568", "", "5", "", "False", "", "2000", "1"))
    assert table.note == "2 rows; without values: nothing"


def test_frames_begin_with_what_they_are_about():
    """A terminal of 80 columns has them; a user's choice of columns keeps its order, but for identifiers."""
    for kind, begin in FIRST.items():
        if (schema := FRAMES.get(kind)) is not None:
            assert set(begin) - {"amount"} <= set(schema.names), kind
        names = [*reversed(begin), "fingerprint", "note"]
        assert show(pd.DataFrame([["x"] * len(names)], columns=names)).columns == (*begin, "note", "fingerprint")
    assert show(pd.DataFrame([[1, 2, 3]], columns=["hash", "cause", "label"])).columns == ("cause", "label", "hash")


def test_the_position_of_the_only_request_is_last():
    """With several requests, the column is first."""
    frame = pd.DataFrame([[0, "x", 1]] * 2, columns=["request", "type", "gas_used"])
    assert show(frame).columns == ("type", "gas_used", "request")
    assert show(frame.assign(request=[0, 1])).columns[0] == "request"


def test_fields_of_a_resource_are_not_identifiers():
    """A resource's own sequence number stays where it is."""
    frame = pd.DataFrame([[1, 2]], columns=["sequence_number", "value"])
    assert show(frame).columns == ("value", "sequence_number")
    frame.attrs["toolkit"] = {"sequence_number": {"typing": "abi"}}
    assert show(frame).columns == ("sequence_number", "value")


@pytest.mark.parametrize(("rows", "first", "last"), [(2, 1, 1), (5, 3, 2), (20, 10, 10)])
def test_long_frames_show_both_ends(rows, first, last):
    """The first and the last rows, a row of ellipses, and the number of rows."""
    table = show(pd.DataFrame({"n": range(100)}), rows=rows)
    assert [row[0] for row in table.rows] == [*map(str, range(first)), "…", *map(str, range(100 - last, 100))]
    assert table.note == f"{rows} of 100 rows"


def test_a_line_of_ellipses_stands_for_several_rows():
    """In the place of one row, it would tell less than the row."""
    assert [row[0] for row in show(pd.DataFrame({"n": range(6)}), rows=5).rows] == [*"012345"]
    assert show(pd.DataFrame({"n": range(6)}), rows=5).note == "6 rows"
    assert show(pd.DataFrame({"n": range(7)}), rows=5).note == "5 of 7 rows"


def test_a_row_that_failed_says_so_in_80_columns():
    """Wide values come after whether there are any, and after the numbers of other calls or fields."""
    struct = pd.ArrowDtype(pa.struct([("owner", pa.string()), ("registered_at", pa.uint64())]))
    frame = pd.DataFrame(
        {
            "call": ["record", "record", "size"],
            "ledger_version": [0, 1666, 1666],
            "value[record]": pd.Series([None, {"owner": "0xa11ce", "registered_at": 1767334464}, None], dtype=struct),
            "value[size]": pd.array([None, None, 3], dtype="uint64[pyarrow]"),
            "gas_used": pd.array([None, 3, 3], dtype="int64[pyarrow]"),
            "status": pd.array([400, None, None], dtype="uint16[pyarrow]"),
            "error_code": ["invalid_input", None, None],
            "vm_error_code": pd.array([None, None, None], dtype="uint64[pyarrow]"),
            "error_message": ["module 0xcafe::registry can't be found", None, None],
        }
    )
    table = show(frame)
    assert table.columns == (
        *(
            "call",
            "ledger_version",
            "value[size]",
            "gas_used",
            "error_code",
            "value[record]",
            "error_message",
            "status",
        ),
    )
    head = table.fitted(80).splitlines()[0]
    assert "error_code" in head
    assert "value[record]" in head
    assert show(frame.drop(columns="error_message")).columns[2] == "value[record]"


def test_parts_of_a_committed_call_are_told_apart():
    """In 80 columns, with their gas, cause and version, and whole labels; what is uncertain is counted.

    Rows that look the same without it have the stratum instead of the version.
    """
    names = FIRST["steps"]
    rows = [("registrations", part, 3502, 5, 50, "schedule", 900.0) for part in ("execution", "io", "storage")]
    known = dict(
        zip(
            ("label", "part", "version_after", "gas_before", "gas_after", "cause"),
            zip(*rows, strict=True),
            strict=False,
        )
    )
    known["uncertain"] = [[], ["few"], None]
    strata = ["succeeding, 1 new slot", "failing, " * 6, "succeeding, 2 new slots"]
    frame = pd.DataFrame(known | {"stratum": strata, "explanation": ["because " * 20] * 3}).reindex(columns=names)
    lines = show(frame).fitted(80).splitlines()
    assert lines[0].split() == ["label", "part", "gas_before", "gas_after", "cause", "version_after"]
    parts = ("execution", "io", "storage")
    assert [line.split() for line in lines[1:4]] == [
        ["registrations", part, "5", "50", "schedule", "3,502"] for part in parts
    ]
    alike = show(frame.assign(part="io")).fitted(80).splitlines()
    assert [line.split()[5][:4] for line in alike[:4]] == ["stra", "succ", "fail", "succ"]
    assert {line.split()[0] for line in alike[1:4]} == {"registrations"}
    assert max(map(len, [*lines, *alike])) <= 80
    assert "1 of 3 uncertain" in show(frame).note
    assert "uncertain" in show(frame).columns


def test_a_note_refers_to_columns_that_the_table_has():
    """Those left out in narrow terminals, and those not chosen, are not there to see."""
    steps = pd.DataFrame([["x"] * len(FIRST["steps"])] * 2, columns=FIRST["steps"]).assign(uncertain=[["few"], []])
    failed = pd.DataFrame({"call": ["a", "b"], "error_code": ["bad", None], "error_message": ["why " * 30, None]})
    for frame, name in ((steps.assign(explanation="because " * 20), "uncertain"), (failed, "error_message")):
        chosen = [column for column in frame.columns if column != name]
        for table in (show(frame), show(frame, columns=chosen)):
            for width in (24, 80, 200, 10_000):
                text = table.fitted(width)
                there = name in text.splitlines()[0].split()
                assert (f"see {name}" in " ".join(text.split())) == there
        assert f"see {name}" in show(frame).note
        assert "see" not in show(frame, columns=chosen).note


STUDY = toolkit.Study(
    calls={
        "vault share price": "0xfa17::vault::share_price",
        "registrations": {"committed": "0xcafe::registry::register", "versions": "3400:3600"},
    },
    versions="3400:3600/3",
)


def _batch(node):
    """Return simulations that succeed, abort, are refused and cannot be made."""
    functions = [("register", "ann", {}), ("register", "alice", {}), ("register", "bob", {"sequence_number": 0})]
    requests = [
        toolkit.SimulationRequest(
            toolkit.EntryFunction(f"0xcafe::registry::{name}", [argument]), sender="0xb0b", **options
        )
        for name, argument, options in [*functions, ("absent", "zoe", {})]
    ]
    return toolkit.fetch_simulations(node, requests, progress=False)


def test_rows_that_failed_are_counted():
    """Also transactions that the machine refused or aborted; a key without an item is an answer."""
    node = toolkit.connect()
    batch = _batch(node)
    assert "3 of 4 failed (1 input_error)" in show(batch.transactions).note
    assert {"E_TAKEN", "SEQUENCE_NUMBER_TOO_OLD"} <= {row[1] for row in show(batch.failures()).rows}
    columns = show(batch.transactions).columns
    assert columns[columns.index("success") + 1] == "error_code"
    assert columns.index("error_message") < 20  # HTML has these
    handle = node.view("0xcafe::registry::handle").value
    items = toolkit.fetch_table_items(node, handle, ["alice", "nobody"], owner="0xcafe", progress=False)
    assert items["error_code"].dropna().tolist() == ["table_item_not_found"]
    assert "failed" not in show(items).note


def test_rows_are_told_apart_in_80_columns():
    """By their kind, version, stratum, part and source; what a table holds is there too."""
    node = toolkit.connect()
    run = STUDY.run(progress=False)
    handle = node.view("0xcafe::registry::handle").value
    read = {"versions": [1000, 4999], "owner": "0xcafe", "progress": False}
    written = toolkit.fetch_transactions(node, "4700:4720", progress=False)
    failing = toolkit.Study(calls={"vault share price": "0xfa17::vault::share_price"}, versions=[9, 3400])
    failing = failing.run(progress=False)
    batch = _batch(node)
    frames = {
        ("kind", "gas_after"): toolkit.compare(run.at(3450), run.at(3590)).calls,
        ("label", "part", "gas_before", "gas_after", "cause", "version_after"): run.steps,
        ("stratum", "version_first", "gas_first", "gas_last"): run.levels,
        ("value", "ledger_version", "presence"): toolkit.fetch_table_items(node, handle, ["alice", "nobody"], **read),
        ("key", "value", "deleted"): written.table_items(handle, owner="0xcafe"),
        ("ledger_version", "source", "gas_used"): run.observations,
        ("ledger_version", "gas_used", "success", "error_code"): failing.observations,
        ("request", "success", "error_code", "abort_name", "gas_used"): batch.transactions,
        ("request", "address", "resource_type", "data"): batch.changes,
        ("request", "address", "resource_type", "fields_changed"): batch.diff(),
    }
    for wanted, frame in frames.items():
        lines = show(frame).fitted(80).splitlines()
        assert set(wanted) <= {*lines[0].split()}
        assert max(map(len, lines)) <= 80


def test_html_wraps_what_a_frame_is_about():
    """Other sentences have one line, so that rows stay low, and are whole on hover; chosen columns are wrapped."""
    frame = pd.DataFrame([["x"] * len(FIRST["steps"])], columns=FIRST["steps"])
    because = "because " * 60
    html = show(frame.assign(explanation=because))._repr_html_()
    assert f">{because}<" in html
    assert "ellipsis" not in html
    words = "word " * 20
    html = show(frame.assign(error_before=words))._repr_html_()
    assert "ellipsis" in html
    assert f'title="{words}"' in html
    assert "ellipsis" not in show(frame.assign(error_before=words), columns=["error_before"])._repr_html_()
    assert "ellipsis" not in show(pd.DataFrame({"kind": ["code"], "note": [words]}))._repr_html_()


def test_a_long_unit_is_no_reason_for_a_wide_column():
    """It is wrapped; a short one stays on its line."""
    frame = pd.DataFrame({"before": [1], "change": [2]})
    frame.attrs["toolkit"] = {"before": {"unit": "internal gas units, unless the name says otherwise"}}
    assert "display:inline-block" in show(frame)._repr_html_()
    frame.attrs["toolkit"] = {"change": {"unit": "gas units"}}
    assert "display:inline-block" not in show(frame)._repr_html_()


def test_a_failure_without_a_name_has_its_reason():
    """A successful transaction does not show its status."""
    frame = pd.DataFrame(
        {
            "success": [True, False, False, False, None],
            "abort_name": [None, "E_TAKEN", None, None, None],
            "abort_reason": [None, "The name is taken", "code 7", None, None],
            "vm_status": ["Executed successfully", "Move abort", "Move abort", "Out of gas", None],
        },
        index=[0, 0, 1, 2, 3],
    )
    frame.attrs["toolkit"] = {name: {} for name in frame.columns}
    assert [row[1] for row in show(frame).rows] == ["", "E_TAKEN", "code 7", "Out of gas", ""]
    assert frame["abort_name"].isna().sum() == 4
    assert "abort_name" not in show(frame.iloc[:1]).columns
    assert [row[0] for row in show(frame.drop(columns="success"), columns=["abort_name"]).rows] == [
        "",
        "E_TAKEN",
        "",
        "",
        "",
    ]


def test_chosen_columns_keep_their_order():
    """Also those without values; an unknown one is named with those that exist."""
    frame = pd.DataFrame({"a": [1], "b": [None]})
    assert show(frame, columns=["b", "a"]).columns == ("b", "a")
    with pytest.raises(InputError, match=r"'c'.*a, b"):
        show(frame, columns=["c"])
    for rows in (1, 0, True, 2.5):
        with pytest.raises(InputError, match=r"^rows .*\b2\b"):
            show(frame, rows=rows)
    with pytest.raises(InputError, match=r"^frame .*DataFrame.*list"):
        show([1])


def test_hostile_text_is_harmless():
    """Markup is escaped, mathematics is not typeset, and control characters are visible."""
    table = show(pd.DataFrame({"<b>": ["<script>alert(1)</script>", "a\u202eb $x$"]}))
    html = table._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    assert "mathjax_ignore" in html
    assert "\u202e" not in html
    assert "\u202e" not in repr(table)


def test_empty_frames_are_shown():
    """No rows, no columns: what there is."""
    assert repr(show(pd.DataFrame({"a": []}))).endswith("[0 rows]")
    assert show(pd.DataFrame()).rows == ()


def test_levels_of_the_index_with_a_name_are_columns():
    """What a groupby leaves behind is shown; row numbers of a filter are not."""
    frame = pd.DataFrame({"function": ["f", "g"], "gas": [1, 2]})
    assert show(frame.set_index("function")).columns == ("function", "gas")
    assert show(frame.groupby("function").sum(), columns=["gas"]).rows == (("f", "1"), ("g", "2"))
    assert show(frame[frame["gas"] > 1]).columns == ("function", "gas")
    assert show(frame.pivot_table(index="function", values="gas", aggfunc=["min", "max"])).columns == (
        *("function", "min gas", "max gas"),
    )


def test_one_row_is_counted_as_one():
    """The note of a table with a single row is in the singular."""
    assert repr(show(pd.DataFrame({"a": [1]}))).endswith("[1 row]")


def test_the_note_counts_the_rows_that_failed():
    """With the number of rows by error code."""
    frame = pd.DataFrame({"ledger_version": [1, 2, 3], "error_code": ["gone", "bad", "bad"]})
    assert "3 of 3 failed (2 bad, 1 gone)" in repr(show(frame))
    assert "3 of 3 failed" in show(frame)._repr_html_()
    frame.loc[0, "error_code"] = None
    assert "2 of 3 failed (2 bad)" in show(frame).note
    assert "1 of 3 failed" in show(frame.assign(error_code=None, success=[True, False, None])).note
    assert "failed" not in repr(show(frame.iloc[:1]))
    assert "failed" not in repr(show(frame.iloc[:0]))


def test_a_column_that_does_not_exist_has_what_may_be_meant():
    """And the columns that there are."""
    frame = pd.DataFrame({"ledger_version": [1], "value": [2]})
    with pytest.raises(InputError, match=r"'ledger_versoin'.*`ledger_version`"):
        show(frame, columns=["ledger_versoin"])


def test_what_a_row_is_about_stands_in_its_column():
    """A table item has no resource type, and a block no function; the frame itself keeps its nulls."""
    frame = pd.DataFrame({"resource_type": ["0x1::m::T", None, None], "handle": [None, LONG[0], None]})
    assert [row[0] for row in show(frame).rows] == ["0x1::m::T", "", ""]  # not a frame of the toolkit
    frame.attrs["toolkit"] = {"resource_type": {}, "handle": {}}
    assert [row[0] for row in show(frame, columns=["resource_type"]).rows] == ["0x1::m::T", "table 0xababab…cdcd", ""]
    assert frame["resource_type"].isna().sum() == 2
    blocks = pd.DataFrame({"function": ["0x1::m::f", None], "type": ["user_transaction", "genesis_transaction"]})
    blocks.attrs["toolkit"] = {"function": {}, "type": {}}
    assert [row[0] for row in show(blocks).rows] == ["0x1::m::f", "genesis_transaction"]


def test_columns_with_nothing_to_read_come_late_or_not_at_all():
    """Empty lists do not count as values; times of a few versions come after what was read."""
    frame = pd.DataFrame({"ledger_timestamp": [None, None, pd.Timestamp(0, tz="UTC")], "value": [1, 2, 3]})
    frame["parts"] = [[], None, []]
    frame["type_arguments"] = ["", None, ""]
    table = show(frame)
    assert table.columns == ("value", "ledger_timestamp")
    assert table.note == "3 rows; without values: parts, type_arguments"
    assert show(frame.iloc[1:]).columns[0] == "ledger_timestamp"
    assert show(frame.assign(parts=[["a"], [], []])).rows[1][1] == ""


def test_an_empty_vector_of_the_ledger_is_a_value():
    """An empty list of the toolkit's own is not."""
    frame = pd.DataFrame({"value": [[], None], "uncertain": [[], None]})
    frame.attrs["toolkit"] = {"value": {"typing": "abi"}, "uncertain": {"typing": "schema"}}
    assert show(frame).columns == ("value",)
    assert show(frame).rows == (("[]",), ("",))


def test_the_version_of_a_batch_comes_late():
    """It is the head in all rows; what tells them apart is their request."""
    frame = pd.DataFrame({"request": [0, 1], "ledger_version": [9, 9], "data": ["a", "b"]})
    assert show(frame).columns == ("request", "data", "ledger_version")
    assert show(frame.assign(request=0)).columns == ("ledger_version", "data", "request")


def test_html_has_as_many_columns_as_pandas_shows():
    """The note names the others; chosen columns are all shown, in a terminal too."""
    frame = pd.DataFrame([[1] * 30], columns=[f"n{place}" for place in range(30)])
    html = show(frame)._repr_html_()
    assert html.count("<th") == 20
    assert "not shown: n20, n21, n22, n23, n24 and 5 more" in html
    chosen = show(frame, columns=list(frame.columns))
    assert chosen._repr_html_().count("<th") == 30
    assert "not shown" not in chosen.fitted(80)
