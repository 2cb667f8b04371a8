"""The table item builder, by setting and reading its traits: tables of an account, keys, items at versions."""

from __future__ import annotations

import json

import msgspec
import pandas as pd
import pytest

import toolkit
from tests.unit.widgets.conftest import executed, page
from toolkit.widgets import TableItemBuilder
from toolkit.widgets._messages import Status

RECORDS = {"key_type": "0x1::string::String", "value_type": "0xcafe::registry::Record"}


@pytest.fixture(scope="module")
def node():
    """Return the embedded node."""
    with toolkit.connect() as made:
        yield made


@pytest.fixture(scope="module")
def handle(node):
    """Return the handle of the registry's table."""
    return node.contract("0xcafe::registry").handle()


@pytest.fixture
def builder(node):
    """Return a builder, closed after the test."""
    made = TableItemBuilder(node)
    yield made
    made.close()


def type_in(builder, **changes):
    """Edit the draft as the browser does, and look up what it asks for."""
    draft = msgspec.to_builtins(builder._draft) | {"seq": builder._draft.seq + 1} | changes
    draft["lead"] = "raw" if "raw" in changes else "fields" if "arguments" in changes else draft["lead"]
    builder._handle_msg({"content": {"data": {"method": "update", "state": {"_draft": draft}}}, "buffers": []})
    press(builder, "look")


def press(builder, what, **more):
    """Do what a button of the browser does, and wait for it."""
    builder._handle_msg({"content": {"data": {"method": "custom", "content": {"do": what} | more}}, "buffers": []})
    builder._wait()


def spec(builder, name):
    """Return the field of a key of the draft, None if it is not drawn."""
    return {key: field for key, field in builder._spec.fields if key}.get(name)


def test_nothing_is_asked_before_a_button_is_pressed(memory):
    """Neither making the form nor filling it asks the node anything."""
    with toolkit.Node("http://127.0.0.1:1/v1", transport=memory) as node:
        builder = TableItemBuilder(node, owner="0xcafe", handle="0x5")
        builder.key_type, builder.value_type, builder.key = "0xcafe::m::S", "u64", "{}"
        builder.request = toolkit.TableItemRequest(5, key_type="u64", value_type="u64")
        builder.versions = "0:-1/5"
        assert memory.asked == []
        builder.close()


def test_a_table_of_an_account(builder, node, handle):
    """The account's tables are listed with their types; the key has a field of its type; the item is decoded."""
    type_in(builder, owner="0xcafe")
    assert spec(builder, "table").options == (
        ("0", "registry::Registry, records: Table<String, Record>"),
        ("", "another table, by handle"),
    )
    assert (builder.handle, builder.key_type, builder.value_type) == (handle, *RECORDS.values())
    assert builder._findings.notes["owner"] == "= registry"
    assert spec(builder, "arguments").fields[0][1].type == "String"
    type_in(builder, arguments=["alice"])
    assert builder.key == "alice"
    assert builder.request == toolkit.TableItemRequest("alice", **RECORDS)
    press(builder, "read")
    assert builder.result == node.table_item(handle, "alice", **RECORDS)
    assert builder._status == Status("good", "Found at version 4,999")
    assert "1,767,334,464" in page(builder, "Item")
    assert json.loads(builder.result.to_frame()["value"].map(json.dumps)[0])["owner"].endswith("a11ce")
    assert repr(builder) == f"TableItemBuilder(Node('embedded'), item alice of table 0x{handle[2:8]}…{handle[-4:]})"


def test_the_types_come_from_the_declaration_in_python_too(builder, handle):
    """Owner and key are enough for `read`; a handle of the owner's tables names one."""
    builder.owner, builder.key = "0xcafe", "alice"
    builder.read()
    assert builder.result.handle == handle
    builder.owner, builder.handle = "0x1", ""
    builder.check()
    assert builder.value_type == "0x1::object::Object<0x1::fungible_asset::Metadata>"
    assert builder.key == ""  # "alice" is not a TypeInfo
    other = builder._now.tables["0x1"][1].declared
    builder.handle = other.handle
    assert (builder.key_type, builder.value_type) == ("0x1::nonce_validation::NonceKey", "u64")


def test_another_table_can_be_typed_beside_those_of_the_account(builder, handle):
    """Once it is chosen, the handle can be cleared and typed: the first table does not come back by itself."""
    type_in(builder, owner="0xcafe")
    type_in(builder, table="")
    type_in(builder, handle="")
    assert (builder._draft.table, builder.handle) == ("", "")
    type_in(builder, handle=handle)
    assert builder._draft.table == "0"


def test_a_key_that_is_a_struct_is_a_group(builder):
    """Fields, JSON and the request say the same."""
    builder.owner = "0x1"
    builder.handle = builder.node.resource("0x1", "0x1::nonce_validation::NonceHistory")["nonce_table"]["handle"]
    builder.check()
    [field] = [field for _, field in spec(builder, "arguments").fields]
    names = [name for name, _ in field.fields]
    type_in(builder, arguments=[dict.fromkeys(names, "7") | {names[0]: "0x7"}])
    assert builder.errors == {}
    assert set(builder.request.key) == set(names)
    builder.key = json.dumps(dict.fromkeys(names, 8) | {names[0]: "0x8"})
    assert set(builder._draft.arguments[0].values()) == {"0x8", "8"}
    builder.read()
    assert builder._status.text == "No item with this key at version 4,999"


@pytest.mark.parametrize(
    ("entries", "path", "said"),
    [
        ({"handle": "zz"}, "handle", "not a table handle"),
        ({"key_type": "u6"}, "key_type", "did you mean `u64`"),
        ({"value_type": ""}, "value_type", "enter a Move type"),
        ({"key": "x"}, "raw", "expected u64"),
        ({"key": ""}, "arguments.0", "enter a whole number: 0 to"),
        ({"owner": "zz"}, "owner", "is not an address"),
        ({"versions": "9:1"}, "plan", "write the older version first"),
        ({"versions": 99_999}, "version", "does not exist yet"),
    ],
)
def test_a_wrong_entry_is_said_at_its_field(builder, entries, path, said):
    """While it is typed; reading asks for nothing more."""
    builder.handle, builder.key_type, builder.value_type, builder.key = "0x5", "u64", "u64", "5"
    assert builder.errors == {}
    for name, value in entries.items():
        setattr(builder, name, value)
    builder.read()
    assert list(builder.errors) == [path]
    assert said in builder.errors[path]
    assert len(builder.errors[path]) < 400


def test_a_wrong_type_of_values_is_said_there(builder, handle):
    """What the node cannot decode as that type."""
    builder.handle, builder.key_type, builder.value_type, builder.key = handle, "String", "u64", "alice"
    builder.read()
    assert "deserialize" in builder.errors["value_type"]


def test_no_item_is_an_answer(builder, recwarn):
    """Not an error: a sentence, and a frame of one row; over versions the rows say missing."""
    builder.owner, builder.key = "0xcafe", "nobody"
    builder.read()
    assert (builder.errors, builder._status.kind) == ({}, "hint")
    assert "No item with this key at version 4,999" in page(builder, "No item")
    assert builder.result[["key", "presence"]].values.tolist() == [["nobody", "missing"]]
    assert builder._origin == "version 4,999 (the head), ledger time 2026-06-28 22:04:48 UTC"
    builder.versions = "0:-1/5"
    builder.read()
    assert builder._status == Status("hint", "No item with this key at any of 5 versions")
    assert builder.result["presence"].tolist() == ["missing"] * 5
    assert not [one for one in builder._pages if one.title == "Failed"]
    assert not recwarn.list


def test_items_over_versions_are_described(builder):
    """A time is not drawn as a quantity, and stands beside its number; versions without an item are named."""
    builder.owner, builder.key, builder.versions = "0xcafe", "alice", "0:-1/9"
    builder.read()
    options = {"owner": "0xcafe", "versions": "0:-1/9", "flatten": True, "times": True, "progress": False}
    expected = toolkit.fetch_table_items(builder.node, builder.handle, ["alice"], **options)
    pd.testing.assert_frame_equal(builder.result, expected)
    shown = page(builder, "Outcome")
    assert "missing at version 0" in shown
    assert "value.registered_at: 1,767,334,464 (2026-01-02 06:14:24 UTC) at each of 8 versions" in shown
    assert "value.owner: 0xa11ce at each of 8 versions" in shown
    assert "found at 8 of 9 versions" in shown
    assert builder._status == Status("good", "9 reads, versions 0 to 4,999; found at 8")
    press(builder, "keys")  # the message beside Read stays
    assert builder._status.text.endswith("found at 8")
    assert builder._stale == ""
    builder.key = "bob"
    assert builder._stale
    builder.key, builder.versions = "alice", "0:10/6"
    builder.read()
    there = builder.result.loc[builder.result["presence"] == "present", "ledger_version"].tolist()
    assert f"found at {len(there)} of 6 versions" in page(builder, "Outcome")


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ("4000:4999/50", "last found at 4,978"),
        ("4990:4999", "deleted at version 4,998"),
        ([4998, 4999], "deleted by version 4,998"),  # seen at earlier versions, which are not in the frame
    ],
)
def test_the_version_of_a_deletion_is_said_only_if_it_was_read(builder, versions, said):
    """It is exact if the version before was read too; the first version read without an item may be later."""
    builder.owner, builder.key, builder.versions = "0xcafe", "birch-768", versions
    builder.read()
    gone = builder.result["presence"] == "deleted"
    assert gone.sum() == (1 if versions == "4000:4999/50" else 2)
    assert f"({said})" in page(builder, "Outcome")


def test_keys_that_transactions_changed(builder, node):
    """They are listed, the last changed first; choosing one fills the field."""
    builder.owner, builder.key_range = "0xcafe", "-200:"
    press(builder, "keys")
    frames = toolkit.fetch_transactions(node, "-200:", progress=False)
    expected = toolkit.table_keys(frames, builder.handle, key_type="0x1::string::String")
    assert sorted(builder.found_keys["key"]) == sorted(expected["key"])
    assert builder.found_keys["last_version"].is_monotonic_decreasing
    [fold] = [field for _, field in builder._spec.fields if field.label.startswith("Find keys")]
    buttons = fold.fields[3][1].buttons
    assert buttons[3].text.startswith(f"{builder.found_keys['key'].iloc[3]} (")
    press(builder, "pick", number=3)
    assert builder.request.key == builder.found_keys["key"].iloc[3]
    press(builder, "pick", number="x")
    builder.key_range = "0:5"
    builder.list_keys()
    [fold] = [field for _, field in builder._spec.fields if field.label.startswith("Find keys")]
    assert "0 keys changed in 6 transactions" in fold.fields[1][1].hint
    type_in(builder, owner="", table="", handle="0x" + "5c" * 32)
    [fold] = [field for _, field in builder._spec.fields if field.label.startswith("Find keys")]
    assert not fold.fields[1][1].hint  # of another table


def test_the_filter_searches_all_found_keys(builder):
    """The list shows 100 keys, but a key below them is found, and its button chooses it."""
    builder.owner, builder.key_range = "0xcafe", "0:-1"
    builder.list_keys()
    place = builder.found_keys["key"].tolist().index("alice")
    assert place > 100

    def shown():
        [fold] = [field for _, field in builder._spec.fields if field.label.startswith("Find keys")]
        return dict(fold.fields)["key_filter"].hint, [one.number for one in getattr(fold.fields[-1][1], "buttons", ())]

    assert shown()[1] == list(range(100))
    type_in(builder, key_filter=" ALI ce")
    assert shown() == (f"1 of {len(builder.found_keys)} keys", [place])
    press(builder, "pick", number=place)
    assert builder.request.key == "alice"
    type_in(builder, key_filter="no such key")
    assert shown()[1] == []


def test_keys_need_a_table(builder):
    """A missing account and an invalid plan are each reported at their field."""
    builder.list_keys()
    assert set(builder.errors) == {"owner"}
    builder.owner, builder.key_range = "0xcafe", "9000:9010"
    builder.list_keys()
    assert "this node has versions 0 to 4,999" in builder.errors["key_range"]
    builder.key_range = "x"
    builder.list_keys()
    assert "is not understood" in builder.errors["key_range"]


@pytest.mark.parametrize("versions", [None, 4_000, "4000:-1/4", [300, 4_500]])
@pytest.mark.parametrize("key", ["alice", 'it\'s "5"'])
def test_the_python_reads_the_same(builder, key, versions):
    """Executed, the program reads the equal item or frame."""
    builder.owner, builder.key, builder.versions = "0xcafe", key, versions
    builder.read()
    if isinstance(builder.result, pd.DataFrame) and (versions is None or isinstance(versions, int)):
        with pytest.raises(toolkit.NotFound, match="table_item_not_found"):
            executed(builder)
        return
    if key != "alice":
        assert builder.result["presence"].tolist() == ["missing"] * len(builder.result)
        return
    names = executed(builder)
    if isinstance(builder.result, pd.DataFrame):
        pd.testing.assert_frame_equal(names["frame"], builder.result)
    else:
        assert names["item"] == builder.result


def test_json_and_curl(builder, handle):
    """The body as the node reads it; the commands name table and version."""
    builder.handle, builder.key_type, builder.value_type, builder.key = handle, "u128", "u64", str(2**100)
    builder.versions = -3
    shown = dict(builder._programs)
    assert json.loads(shown["JSON"]) == {"key_type": "u128", "value_type": "u64", "key": str(2**100)}
    assert f"$URL/tables/{handle}/item?ledger_version=$VERSION" in shown["curl"]
    assert "VERSION=$(( HEAD - 2 ))" in shown["curl"]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (toolkit.TableItemRequest("5", key_type="String", value_type="u8"), '"5"'),
        (toolkit.TableItemRequest("", key_type="String", value_type="u8"), '""'),
        (toolkit.TableItemRequest(b"\x01", key_type="vector<u8>", value_type="u8"), "0x01"),
        (toolkit.TableItemRequest({"a": [1, None]}, key_type="0x5::m::S", value_type="u8"), '{"a": [1, null]}'),
        (toolkit.TableItemRequest(2**200, key_type="u256", value_type="u8"), str(2**200)),
    ],
)
def test_a_request_comes_out_as_it_went_in(builder, request_, text):
    """Keys of every form; the text is one that is read as the same key."""
    builder.handle = "0x5"
    builder.request = request_
    assert builder.request == request_
    assert builder.key.strip('"') == text.strip('"')
    builder.versions = 5
    assert builder.request == request_


def test_an_account_without_tables(builder):
    """The note says so; the handle can be typed."""
    type_in(builder, owner="0xb0b")
    assert "0xb0b" in builder._findings.notes["owner"]
    assert spec(builder, "table") is None
    assert builder._draft.table == ""


@pytest.mark.parametrize("owner", ["", "zzz", "0xb0b"])
def test_without_a_table_only_the_account_is_wrong(builder, owner):
    """What the account would give is not missing; with a handle, its types are."""
    builder.owner = owner
    builder.read()
    assert builder.errors.keys() == {"owner"}
    assert builder.result is None
    builder.handle = "0x1"
    assert builder.errors.keys() >= {"key_type", "value_type"}


def test_another_node_forgets_tables_and_keys(builder):
    """Entries stay; what the node before said is gone."""
    builder.owner = "0xcafe"
    builder.list_keys()
    with toolkit.connect() as other:
        builder.node = other
        assert (builder.found_keys, builder._now.tables) == (None, {})
        builder.key = "alice"
        builder.read()
        assert builder.result.value["registered_at"] == 1767334464


# regressions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "then"), [("0x1", "0xcafe"), ("0xcafe", "0x1"), ("0xcafe", "0xfa17"), ("0x1", "0xfa17")]
)
def test_the_key_of_a_table_of_another_account_is_blank(builder, first, then):
    """A key's field has entries of its own type only: the struct that was one cannot be read as text."""
    type_in(builder, owner=then)
    alone = builder._draft.arguments
    type_in(builder, owner=first)
    type_in(builder, owner=then)
    assert builder._draft.arguments == alone
    assert spec(builder, "table") is not None
    assert builder._status.kind != "error"


def test_keys_of_another_table_are_not_offered(node, handle):
    """Keys are listed without one typed; they go with the table: another one, or another type of keys, has none."""
    changes = [{"owner": "0xbad"}, {"handle": "0x" + "1" * 64}, {"key_type": "address"}]
    for change in changes:
        builder = TableItemBuilder(node, owner="0xcafe")
        builder.list_keys()
        assert len(builder.found_keys)
        press(builder, "pick", number=0)
        builder.read()
        assert len(builder.found_keys)
        assert builder._now.place == handle
        for name, value in change.items():
            setattr(builder, name, value)
        assert builder.found_keys is None
        press(builder, "pick", number=0)  # of a list that was drawn before
        builder.close()


def test_keys_of_a_table_that_was_left_meanwhile_are_not_offered(node, monkeypatch):
    """If the table is changed while its keys are searched, they are not shown."""
    builder = TableItemBuilder(node, owner="0xcafe")

    def fetch(*given, **options):
        builder.handle = "0x" + "1" * 64
        return toolkit.fetch_transactions(*given, **options)

    monkeypatch.setattr("toolkit.widgets._table_item_builder.fetch_transactions", fetch)
    builder.list_keys()
    assert builder.found_keys is None
    builder.close()
