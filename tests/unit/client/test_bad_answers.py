"""A 200 whose body is no answer: it is never kept, costs its own row only, and what it was is told."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, function, info, ledger, module, user_transaction
from toolkit.client.fetch import fetch_transactions, fetch_views
from toolkit.client.node import Node
from toolkit.client.transport import Answer
from toolkit.errors import SchemaError
from toolkit.wire.headers import ledger_headers
from toolkit.wire.requests import ViewFunction

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
    "GET /blocks/by_version/500": lambda node: node._companion.block(500),
    "POST /view": lambda node: node.view(COUNT, ledger_version=500),
    f"POST /tables/{HANDLE}/item": lambda node: node.table_item(
        HANDLE, key="a", key_type="0x1::string::String", value_type="u64", ledger_version=500
    ),
    f"POST /tables/{HANDLE}/raw_item": lambda node: node._companion.raw_item(HANDLE, b"\1", 500),
}


def bad(body, kind="text/html"):
    """Return a 200 with the headers of a node and a body of somebody else."""
    return Answer(200, ledger_headers(ledger()) | {"Content-Type": kind}, body)


def a_node(routes=None, **options):
    fake = FakeNode(ROUTES | (routes or {}))
    return Node(URL, transport=fake, **options), fake


@pytest.mark.parametrize("where", READS)
@pytest.mark.parametrize("body", BODIES)
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
    assert rows["version"].tolist() == [5, 6, 7]
    assert rows["error_code"].tolist() == ["schema_error"] * 3
