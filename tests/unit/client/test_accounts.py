"""What an address has: kinds, pages, balances that count once, and what a node does not offer."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from urllib.parse import unquote

import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, function, ledger, module, refused
from toolkit import Node
from toolkit.client._accounts import AccountKind
from toolkit.errors import Forbidden, InputError, NotFound, SchemaError
from toolkit.move import parse_address
from toolkit.move._ids import address_to_bytes
from toolkit.wire._headers import ledger_headers

APT, METADATA = "0x1::aptos_coin::AptosCoin", "0x1::fungible_asset::Metadata"
ME = parse_address("0xa11ce")
USD = "0xbeef::usd::USD"
GOLD = parse_address("0x901d")
KEY = "0x" + 64 * "1"


def primary(owner: str, asset: str) -> str:
    """Return the address of a primary store."""
    data = address_to_bytes(parse_address(owner)) + address_to_bytes(parse_address(asset)) + b"\xfc"
    return "0x" + hashlib.sha3_256(data).hexdigest()


def coin_store(kind: str, value: int) -> dict:
    """Return a coin store as nodes print it."""
    return {"type": f"0x1::coin::CoinStore<{kind}>", "data": {"coin": {"value": str(value)}, "frozen": False}}


def fungible_store(owner: str, asset: str, balance: int, *, concurrent: int | None = None) -> list[dict]:
    """Return the resources of a store of a fungible asset."""
    found = [
        {
            "type": "0x1::fungible_asset::FungibleStore",
            "data": {"metadata": {"inner": asset}, "balance": str(balance), "frozen": False},
        },
        {"type": "0x1::object::ObjectCore", "data": {"owner": owner}},
    ]
    if concurrent is not None:
        data = {"balance": {"value": str(concurrent), "max_value": str(2**64 - 1)}}
        found.append({"type": "0x1::fungible_asset::ConcurrentFungibleBalance", "data": data})
    return found


def info(symbol: str, decimals: object) -> dict:
    return {"name": f"{symbol} of a test", "symbol": symbol, "decimals": decimals}


class Ledger(FakeNode):
    """A node with the resources of some addresses, and assets with their decimals."""

    def __init__(self, resources: dict[str, list[dict]], *, pairs: dict[str, str] | None = None, routes=None) -> None:
        super().__init__(routes)
        self.resources = {parse_address(owner): list(found) for owner, found in resources.items()}
        self.assets = {
            ("0x1", f"0x1::coin::CoinInfo<{APT}>"): info("APT", 8),
            ("0xa", METADATA): info("APT", 8),
            ("0xbeef", f"0x1::coin::CoinInfo<{USD}>"): info("USD", 6),
            ("0x901d", METADATA): info("GOLD", 0),
        }
        self.pairs = pairs or {}
        paired = function("paired_metadata", [], ["0x1::option::Option<0x1::object::Object<u8>>"])
        paired["generic_type_params"] = [{"constraints": []}]
        self.routes["GET /accounts/0x1/module/coin"] = answer(module("coin", functions=[paired]))
        self.routes["POST /view"] = self.view

    def view(self, _query, body):
        found = self.pairs.get(body["type_arguments"][0])
        return answer([{"vec": [] if found is None else [{"inner": found}]}], gas=1)

    def send(self, request):
        parts = unquote(request.url.removeprefix(URL)).partition("?")[0].split("/")
        if f"{request.method} {'/'.join(parts)}" not in self.routes and parts[1:2] == ["accounts"]:
            self.asked.append((f"{request.method} {'/'.join(parts)}", {}, None))
            owner = parse_address(parts[2])
            if len(parts) == 3:
                return answer({"sequence_number": "7", "authentication_key": KEY})
            if parts[3] == "resources":
                return answer(self.resources.get(owner, []))
            if parts[3] == "modules":
                return answer([])
            if parts[3] == "resource":
                found = self.assets.get((hex(int(owner, 16)), parts[4]))
                return refused(404, "resource_not_found") if found is None else answer({"type": "x", "data": found})
        return super().send(request)


def account_of(resources, address="0xa11ce", *, assets=(), **more):
    """Return an account of a ledger with these resources."""
    return Node(URL, transport=Ledger(resources, **more)).account(address, assets=assets)


def balances(account) -> list[tuple]:
    """Return the balances as tuples."""
    frame = account.balances[["symbol", "standard", "balance", "amount"]]
    return [tuple(row) for row in frame.astype(object).itertuples(index=False)]


# balances --------------------------------------------------------------------------------------------------------------


def test_coins_are_exact_by_the_decimals_of_each():
    """Octas and millionths are in one exact column, up to the largest u64."""
    account = account_of({"0xa11ce": [coin_store(APT, 2**64 - 1), coin_store(USD, 1)]})
    assert balances(account) == [
        ("APT", "coin", 2**64 - 1, Decimal("184467440737.09551615")),
        ("USD", "coin", 1, Decimal("0.000001")),
    ]
    assert str(account.balances["balance"].dtype) == "uint64[pyarrow]"
    assert account.balances["asset"].tolist()[:2] == [APT, f"0x{0xBEEF:064x}::usd::USD"]


def test_a_migrated_coin_counts_once():
    """Its store is deleted, and the balance is in the primary store of the paired asset."""
    store = primary("0xa11ce", "0xa")
    account = account_of({"0xa11ce": [], store: fungible_store("0xa11ce", "0xa", 500_000_000)})
    assert balances(account) == [("APT", "fungible asset", 500_000_000, Decimal(5))]
    assert account.balances["store"].tolist() == [store]


def test_a_coin_beside_its_paired_asset_is_two_rows_that_add_up():
    """Neither contains the other, as the sum of the node's own balance would."""
    store, paired = primary("0xa11ce", GOLD), fungible_store("0xa11ce", GOLD, 3)
    pairs = {f"0x{0xBEEF:064x}::usd::USD": GOLD, USD: GOLD}
    account = account_of({"0xa11ce": [coin_store(USD, 4)], store: paired}, pairs=pairs)
    assert balances(account) == [("USD", "coin", 4, Decimal("0.000004")), ("GOLD", "fungible asset", 3, Decimal(3))]
    assert int(account.balances["balance"].sum()) == 7


def test_a_concurrent_balance_is_the_balance():
    """The store itself then says 0."""
    store = primary("0xa11ce", "0xa")
    account = account_of({store: fungible_store("0xa11ce", "0xa", 0, concurrent=9)})
    assert balances(account) == [("APT", "fungible asset", 9, Decimal("0.00000009"))]


def test_an_asset_that_is_asked_for_has_a_row():
    """Also if the account has none of the asset; an asset that is not requested is left out."""
    store = primary("0xa11ce", GOLD)
    resources = {"0xa11ce": [], store: fungible_store("0xa11ce", GOLD, 12)}
    assert balances(account_of(resources)) == []
    assert balances(account_of(resources, assets=["0x901d"])) == [("GOLD", "fungible asset", 12, Decimal(12))]
    nothing = account_of({}, assets=["0x901d", USD])
    assert [(row[0], row[2]) for row in balances(nothing)] == [("USD", 0), ("GOLD", 0)]


def test_an_asset_that_is_not_held_has_no_store():
    """A coin is as a fungible asset; an empty store that exists has its address."""
    assert account_of({}, assets=["0x901d", USD]).balances["store"].isna().tolist() == [True, True]
    assert account_of({"0xa11ce": [coin_store(USD, 0)]}, assets=[USD]).balances["store"].tolist() == [ME]


def test_an_asset_that_does_not_exist_is_noted():
    """Such as one whose name is misspelt; nothing more is read for it."""
    there = Ledger({})
    account = Node(URL, transport=there).account("0xa11ce", assets=["0x901d", USD, "0xbeef::usd::USDD", "0x901e"])
    assert account.balances["balance"].tolist() == [0, 0, 0, 0]
    misspelt = (f"CoinInfo of {parse_address('0xbeef')}::usd::USDD", f"Metadata of {parse_address('0x901e')}")
    assert account.notes == tuple(f"the ledger has no {one} at version 1,000" for one in misspelt)
    assert sum(call == "POST /view" for call, *_ in there.asked) == 1


@pytest.mark.parametrize(
    ("vec", "paired"),
    [([], []), ([GOLD], ["GOLD"]), ([{"inner": GOLD}], ["GOLD"]), ([{"inner": 5}], None), ([1, 2], None), (5, None)],
)
@pytest.mark.parametrize("abi", [False, True])
def test_a_paired_asset_is_read_without_abis(vec, paired, abi):
    """A node without modules gives the pair as JSON; a value of another shape is a note."""
    there = Ledger({"0xa11ce": [coin_store(USD, 4)], primary("0xa11ce", GOLD): fungible_store("0xa11ce", GOLD, 3)})
    there.routes["POST /view"] = answer([{"vec": vec}], gas=1)
    if not abi:
        there.routes["GET /accounts/0x1/module/coin"] = refused(403, "api_disabled", "not here", head=ledger())
    account = Node(URL, transport=there).account("0xa11ce", assets=[USD])
    assert account.balances["symbol"].tolist() == ["USD", *(paired or [])]
    assert len(account.notes) == (paired is None)
    assert all(
        note.startswith(
            f"it is not known whether a fungible asset is paired with {parse_address('0xbeef')}::usd::USD: "
        )
        for note in account.notes
    )


def test_a_store_at_the_derived_address_that_is_of_another_asset_is_not_counted():
    """A node cannot pass one asset off as another."""
    store = primary("0xa11ce", "0xa")
    assert balances(account_of({store: fungible_store("0xa11ce", GOLD, 12)})) == []


@pytest.mark.parametrize("decimals", [None, -1, "8", True, 256, 1.5])
def test_decimals_that_are_none_leave_the_amount_missing(decimals):
    """The base units are there."""
    there = Ledger({"0xa11ce": [coin_store(USD, 4)]})
    there.assets["0xbeef", f"0x1::coin::CoinInfo<{USD}>"] = info("USD", decimals)
    account = Node(URL, transport=there).account("0xa11ce")
    assert account.balances["amount"].isna().tolist() == [True]
    assert account.balances["balance"].tolist() == [4]


def test_the_asset_itself_can_be_asked():
    """Symbol and decimals, for scaling a frame of changes."""
    node = Node(URL, transport=Ledger({}))
    assert (node.asset(APT).decimals, node.asset("0x901d").symbol, node.asset("0x5").decimals) == (8, "GOLD", None)
    for wrong in ("u64", "nonsense", "vector<u8>"):
        with pytest.raises(InputError):
            node.asset(wrong)


# kinds -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resources", "kind"),
    [
        ([], AccountKind.NOTHING),
        ([{"type": "0x1::m::R", "data": {}}], AccountKind.ACCOUNT),
        ([{"type": "0x1::account::Account", "data": {"authentication_key": KEY}}], AccountKind.ACCOUNT),
        ([{"type": "0x1::account::Account", "data": {"authentication_key": "0x" + 64 * "0"}}], "resource account"),
        ([{"type": "0x1::multisig_account::MultisigAccount", "data": {}}], AccountKind.MULTISIG_ACCOUNT),
        ([{"type": "0x1::object::ObjectCore", "data": {"owner": "0x5"}}], AccountKind.OBJECT),
        (fungible_store("0x5", GOLD, 4), AccountKind.FUNGIBLE_STORE),
    ],
)
def test_kinds(resources, kind):
    """What an address is follows from its resources."""
    account = account_of({"0xa11ce": resources})
    assert account.kind == kind
    assert kind in repr(account)
    assert (account.sequence_number, account.authentication_key, account.ledger_version) == (7, KEY, 1_000)


def test_the_balance_of_a_store_object_is_of_its_owner():
    """The store's address is the one that was asked for."""
    (row,) = account_of({"0xa11ce": fungible_store("0x5", GOLD, 4)}).balances[["store", "owner"]].values.tolist()
    assert row == [ME, "0x5"]


def test_an_object_of_an_older_node_has_no_sequence_number():
    """Such nodes answer that the account does not exist, but list the resources of the object."""
    there = Ledger({"0xa11ce": [{"type": "0x1::object::ObjectCore", "data": {"owner": "0x5"}}]})
    there.routes["GET /accounts/0xa11ce"] = refused(404, "account_not_found", head=ledger())
    account = Node(URL, transport=there).account("0xa11ce")
    assert (account.kind, account.sequence_number, account.ledger_version) == ("object", None, 1_000)


def test_where_nothing_is_older_nodes_say_so():
    """NotFound, as before."""
    with pytest.raises(NotFound, match="account_not_found"):
        Node(URL, transport=FakeNode()).account("0xdead")


# pages and refusals -----------------------------------------------------------------------------------------------------


def paged(pages: list[list[dict]], *, cursors: list[str | None]):
    """Return a route that gives pages by their cursor."""

    def page(query, _body):
        place = cursors.index(query["start"]) + 1 if "start" in query else 0
        headers = dict(ledger_headers(ledger()))
        assert query["ledger_version"] == "1000"
        if cursors[place] is not None:
            headers["X-Aptos-Cursor"] = cursors[place]
        return type(answer(0))(200, headers, json.dumps(pages[place]).encode())

    return page


def test_all_pages_are_read_at_one_version():
    """The cursor of each answer starts the next page; the head that the account was read at is pinned."""
    there = Ledger({})
    pages = [[coin_store(APT, 1)], [coin_store(USD, 2)], [{"type": "0x1::m::R", "data": {"x": "3"}}]]
    there.routes["GET /accounts/0xa11ce/resources"] = paged(pages, cursors=["0a", "0b", None])
    code = [module("m"), module("n", functions=[function("f"), function("g", is_entry=True, is_view=False)])]
    there.routes["GET /accounts/0xa11ce/modules"] = paged([[one] for one in code], cursors=["0c", None])
    account = Node(URL, transport=there).account("0xa11ce")
    assert len(account.resources) == 3
    assert account.modules[["name", "view_functions", "entry_functions", "size_bytes"]].values.tolist() == [
        ["m", 0, 0, 1],
        ["n", 1, 1, 1],
    ]
    assert account.resources["data"].tolist()[2] == '{"x":"3"}'


@pytest.mark.parametrize("cursors", [["0a", "0a"], ["0a", "0b"]])
def test_pages_without_end_are_an_error(cursors):
    """A cursor that repeats, or a page without anything, does not read for ever."""
    there = Ledger({})
    pages = [[coin_store(APT, 1)], [] if cursors[1] == "0b" else [coin_store(APT, 1)]]
    there.routes["GET /accounts/0xa11ce/resources"] = paged(pages, cursors=cursors)
    with pytest.raises(SchemaError, match="the pages do not end"):
        Node(URL, transport=there).account("0xa11ce")


@pytest.mark.parametrize("body", [{}, [1], [{"type": 5, "data": {}}], [{"type": "0x1::m::R"}], [{"data": {}}], "x"])
def test_an_answer_of_another_shape_is_a_schema_error(body):
    """It names what was read."""
    there = Ledger({}, routes={"GET /accounts/0xa11ce/resources": answer(body)})
    with pytest.raises(SchemaError, match=r"resources .*\b0xa11ce\b.*\b1,000\b"):
        Node(URL, transport=there).account("0xa11ce")


def test_a_node_that_does_not_list_says_so():
    """The account is there with what the node offers; the rest raises the refusal, and the table has it."""
    there = Ledger({"0xa11ce": []})
    for what in ("resources", "modules"):
        there.routes[f"GET /accounts/0xa11ce/{what}"] = refused(403, "api_disabled", "not here", head=ledger())
    account = Node(URL, transport=there).account("0xa11ce")
    assert (account.sequence_number, account.kind) == (7, "unknown")
    assert len(account.notes) == 2
    for what in ("resources", "modules", "balances"):
        with pytest.raises(Forbidden, match="not here"):
            getattr(account, what)
    assert "modules not listed" in repr(account)
    assert account._repr_html_().count("api_disabled") == 2


def test_a_node_without_accounts_refuses():
    """As before: a refusal that is not about the account is raised."""
    there = FakeNode({"GET /accounts/0xa11ce": refused(403, "api_disabled", head=ledger())})
    with pytest.raises(Forbidden, match="account 0xa11ce"):
        Node(URL, transport=there).account("0xa11ce")


def test_texts_of_the_chain_are_only_read():
    """A name with markup or invisible characters is escaped in the table, and in one line of text."""
    there = Ledger({"0xa11ce": [coin_store(USD, 4)]})
    bad = "<script>alert(1)</script>\u202e\n"
    there.assets["0xbeef", f"0x1::coin::CoinInfo<{USD}>"] = {"name": bad, "symbol": bad, "decimals": 2}
    account = Node(URL, transport=there).account("0xa11ce")
    html = account._repr_html_()
    assert "<script" not in html
    assert "\u202e" not in html
    assert "\n" not in repr(account)
    before = len(there.asked)
    repr(account), account._repr_html_(), account.resources
    assert len(there.asked) == before  # nothing is read to show it
