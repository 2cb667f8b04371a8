"""Decoding of answers: a body that cannot be decoded is not cached, and fails its own row with a reason."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import (
    HEAD_TRANSACTION,
    URL,
    FakeNode,
    answer,
    function,
    info,
    ledger,
    module,
    user_transaction,
)
from toolkit.client._fetch import fetch_table_items, fetch_transactions, fetch_views
from toolkit.client._http import Answer
from toolkit.client._node import Node
from toolkit.errors import FailedReadsWarning, NodeError, SchemaError
from toolkit.wire import ViewFunction
from toolkit.wire._headers import ledger_headers

M = module("m", functions=[function("count", [], ["u64"])])
COUNT = ViewFunction("0x1::m::count")
HANDLE = "0x" + "0" * 61 + "abc"
BODIES = [b"<html>login</html>", b'["5"', b'{"a":1}', b""]
ROUTES = {
    "GET /accounts/0x1/module/m": answer(M),
    "GET /accounts/0x1/resource/0x1%3A%3Am%3A%3AR": answer({"type": "0x1::m::R", "data": {"a": "1"}}),
    "GET /transactions/by_version/500": answer(user_transaction(500) | {"type": "user_transaction"}),
    "GET /blocks/by_version/500": answer(
        {
            "block_height": "50",
            "block_hash": "0x1",
            "block_timestamp": "1777593600000000",
            "first_version": "500",
            "last_version": "509",
            "transactions": None,
        }
    ),
    "POST /view": answer(["5"]),
    f"POST /tables/{HANDLE}/item": answer("7"),
    f"POST /tables/{HANDLE}/raw_item": Answer(
        200, ledger_headers(ledger()) | {"Content-Type": "application/x-bcs"}, b"\7"
    ),
}
READS = {
    "GET /accounts/0x1/module/m": lambda node: node.module("0x1", "m", ledger_version=500),
    "GET /accounts/0x1/resource/0x1%3A%3Am%3A%3AR": lambda node: node.resource("0x1", "0x1::m::R", ledger_version=500),
    "GET /transactions/by_version/500": lambda node: node.transaction(500),
    "GET /blocks/by_version/500": lambda node: node.block(500),
    "POST /view": lambda node: node.view(COUNT, ledger_version=500),
    f"POST /tables/{HANDLE}/item": lambda node: node.table_item(
        HANDLE, key="a", key_type="0x1::string::String", value_type="u64", ledger_version=500
    ),
    f"POST /tables/{HANDLE}/raw_item": lambda node: node.one(node.prepare_raw_item(HANDLE, b"\1", 500)),
}


def bad(body, kind="text/html"):
    """Return a 200 with the headers of a node and a body of somebody else."""
    return Answer(200, ledger_headers(ledger()) | {"Content-Type": kind}, body)


def a_node(routes=None, **options):
    fake = FakeNode(ROUTES | HEAD_TRANSACTION | (routes or {}))
    return Node(URL, transport=fake, **options), fake


@pytest.mark.parametrize(
    ("where", "body"),
    # A module answer without an ABI is one: a node that cannot parse its own bytecode leaves it out.
    [(where, body) for where in READS for body in BODIES if body != b'{"a":1}' or "/module/" not in where],
)
def test_an_answer_that_cannot_be_read_is_not_kept(tmp_path, where, body):
    """The node stumbles once; the next session on the same file asks again and gets the answer."""
    node, _ = a_node({where: bad(body)}, cache=tmp_path / "kept")
    with node, pytest.raises(SchemaError):
        READS[where](node)
    for count in (1, 0):
        node, fake = a_node(cache=tmp_path / "kept")
        with node:
            assert READS[where](node) is not None
        assert len(fake.sent(where)) == count


@pytest.mark.parametrize("body", BODIES)
def test_among_many_it_is_not_kept_either(tmp_path, body):
    """The same for a sweep: the next one asks for the versions that stumbled."""
    routes = {"POST /view": lambda query, _: bad(body) if query["ledger_version"] == "502" else answer(["5"])}
    node, _ = a_node(routes, cache=tmp_path / "kept")
    with node:
        found = dict(node.many(node.prepare_view(COUNT, version) for version in range(500, 504)))
    assert [type(found[place]).__name__ for place in range(4)] == ["ViewResult"] * 2 + ["SchemaError", "ViewResult"]
    node, fake = a_node(cache=tmp_path / "kept")
    with node:
        assert fetch_views(node, COUNT, versions="500:503", progress=False)["value"].tolist() == [5] * 4
    assert [query["ledger_version"] for query, _ in fake.sent("POST /view")] == ["502"]


def test_a_bad_description_does_not_replace_the_one_that_is_kept(tmp_path):
    """An offline session knows the head from the last description that was one."""
    with a_node(cache=tmp_path / "kept")[0] as node:
        node.ledger()
    node, _ = a_node({"GET ": bad(b"<html>")}, cache=tmp_path / "kept")
    with node, pytest.raises(SchemaError):
        node.ledger()
    with a_node(cache=tmp_path / "kept", offline=True)[0] as node:
        assert node.ledger().version == int(info(ledger())["ledger_version"])


@pytest.mark.parametrize("body", [b"[{}]", b'{"a":1}', b"[]"])
def test_a_page_without_transactions_is_rows_that_say_so(body):
    """Each version that was asked for is a row with its version and an error code."""
    node, _ = a_node({"GET /transactions": bad(body)})
    rows = fetch_transactions(node, versions="5:7", progress=False).transactions
    assert rows["ledger_version"].tolist() == [5, 6, 7]
    assert rows["error_code"].tolist() == ["schema_error"] * 3


@pytest.mark.fault("a view's answer that is not JSON", "one failure row; the other calls are read")
@pytest.mark.parametrize("encoding", ["json", "bcs"])
@pytest.mark.parametrize("typed", [True, False])
def test_a_page_in_a_sweep_costs_its_own_row(encoding, typed):
    """Version 7 meets a gateway; the nine others are in the frame, and the row of 7 says what came."""

    def view(query, _):
        if query["ledger_version"] == "7":
            return bad(b"<html>login</html>")
        if encoding == "json":
            return answer(["5"])
        return bad(b"\1" + (5).to_bytes(8, "little"), "application/x-bcs")

    node, _ = a_node({"POST /view": view}, encoding=encoding)
    frame = fetch_views(node, COUNT, versions="0:9", typed=typed, progress=False)
    assert frame["ledger_version"].tolist() == list(range(10))
    assert frame["error_code"].dropna().to_dict() == {7: "schema_error"}
    assert "HTML page: 'login'; is http://node.test/v1" in frame["error_message"][7]
    assert "0x1::m::count" in frame["error_message"][7]
    assert frame["value"].dropna().tolist() == [5 if typed else '"5"'] * 9


@pytest.mark.parametrize("encoding", ["json", "bcs"])
def test_a_page_among_table_items_costs_its_own_row(encoding):
    """The same for items, with the item's name in the text."""
    good = answer("7") if encoding == "json" else bad((7).to_bytes(8, "little"), "application/x-bcs")
    where = f"POST /tables/{HANDLE}/item"
    node, _ = a_node({where: lambda _, body: bad(b"<html>") if body["key"] == "b" else good}, encoding=encoding)
    types = {"key_type": "0x1::string::String", "value_type": "u64"}
    frame = fetch_table_items(node, HANDLE, keys=["a", "b"], **types, versions=[5, 6], progress=False)
    assert frame["error_code"].dropna().to_dict() == {2: "schema_error", 3: "schema_error"}
    assert frame["error_message"].dropna().str.contains("item 'b' of table").all()
    assert frame["value"].dropna().tolist() == [7, 7]


@pytest.mark.parametrize("typed", [True, False])
def test_a_value_that_does_not_fit_is_a_row_with_what_was_expected(typed):
    """Where the ABI promises bytes, something else costs its own row, with a warning; a single read raises."""
    pair = function("pair", [], ["bool", "vector<u8>"])
    routes = {
        "GET /accounts/0x1/module/m": answer(module("m", functions=[pair])),
        "POST /view": lambda query, _: answer([True, "0x01" if query["ledger_version"] != "503" else "998993"]),
    }
    node, _ = a_node(routes)
    call = ViewFunction("0x1::m::pair")
    with pytest.warns(FailedReadsWarning, match=r"1 of 6 views.*schema_error.*'998993'"):
        frame = fetch_views(node, call, versions="500:505", typed=typed, progress=False)
    assert frame["error_code"].dropna().to_dict() == {3: "schema_error"}
    assert frame["error_message"][3].startswith("0x1::m::pair return value 1:")
    columns = ["value_0", "value_1"] if typed else ["value"]
    assert frame[columns].notna().all(axis=1).tolist() == [True, True, True, False, True, True]
    with pytest.raises(SchemaError, match="return value 1"):
        node.view(call, ledger_version=503)


def test_in_bcs_the_bytes_that_do_not_fit_are_told():
    """What came where a bool was promised; for a table item too."""
    routes = {
        "GET /accounts/0x1/module/m": answer(module("m", functions=[function("count", [], ["bool"])])),
        "POST /view": bad(b"\1\7", "application/x-bcs"),
        f"POST /tables/{HANDLE}/item": bad(b"\7", "application/x-bcs"),
    }
    node, _ = a_node(routes, encoding="bcs")
    with pytest.warns(FailedReadsWarning, match=r"::count return value 0.*\\x01\\x07"):
        fetch_views(node, COUNT, versions=[500], progress=False)
    types = {"key_type": "u8", "value_type": "bool"}
    with pytest.warns(FailedReadsWarning, match=r"item 2 of table .*\\x07"):
        fetch_table_items(node, HANDLE, keys=[2], **types, versions=[500], progress=False)


@pytest.mark.parametrize("status", [202, 203, 204, 206])
def test_a_status_other_than_200_is_no_value(status, tmp_path):
    """A gateway that accepted the call, or sent a part of the answer, did not answer it: single, bulk and cached."""
    odd = {"7": status}
    routes = {"POST /view": lambda query, _: answer(["5"], status=odd.get(query["ledger_version"], 200))}
    for _ in range(2):
        node, _ = a_node(routes, cache=tmp_path / "answers.sqlite3")
        frame = fetch_views(node, COUNT, versions="6:8", progress=False)
        assert frame["error_code"].dropna().to_dict() == {1: f"http_{status}"}
        assert frame["value"].dropna().tolist() == [5, 5]
        with pytest.raises(NodeError, match=f"the node answered {status}") as caught:
            node.view(COUNT, ledger_version=7)
        assert caught.value.status == status
        node.close()


def test_a_module_answer_that_cannot_be_read_costs_its_own_rows():
    """The module is read once more at each version for which no neighbour tells; where a page comes, that is a row."""
    routes = {
        "GET /accounts/0x1/module/m": lambda query, _: bad(b"<html>") if query["ledger_version"] == "9" else answer(M)
    }
    node, _ = a_node(routes)
    frame = fetch_views(node, COUNT, versions="0:9", progress=False)
    assert frame["error_code"].dropna().to_dict() == {9: "schema_error"}
    assert frame["value"].dropna().tolist() == [5] * 9
