"""Contracts as objects: methods from the ABI, their signatures, documentation and messages; tables of a module."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import toolkit
from tests.unit.client.fakes import URL, FakeNode, answer, function, info, ledger, module, refused, struct
from toolkit.client._contracts import module_content
from toolkit.errors import InputError, NotAtPast, NotFound

ROOT = Path(__file__).resolve().parents[3]
HEAD = ledger(1_000)
FUNCTIONS = [
    function("price", ["address", "u64"], ["u64", "bool"]),
    function("size", [], ["u64"]),
    function("worth", ["&0x1::object::Object<T0>"], ["u64"], generic_type_params=[{"constraints": ["store", "key"]}]),
    function("buy", ["&signer", "u64"], is_entry=True, is_view=False),
    function("swap", ["&signer", "&signer"], is_entry=True, is_view=False, visibility="private"),
    function("mint", ["u64"], ["0xcafe::shop::Item"], is_view=False, visibility="friend"),
    function("import", [], ["u8"]),
    function("at", [], ["u8"]),
    function("_repr_html_", [], ["u8"]),
]
STRUCTS = [
    struct("Item", {"price": "u64", "next": "0xcafe::shop::Item"}, abilities=["store"]),
    struct("Sold", {"item": "0xcafe::shop::Item"}, is_event=True, abilities=["drop", "store"]),
    struct("Shelf", {}, is_enum=True, abilities=["key"])
    | {"variants": [{"name": "Full", "fields": [{"name": "count", "type": "u8"}]}, {"name": "Empty"}]},
]
SHOP = "/accounts/0xcafe/module/shop"


def fake(functions=FUNCTIONS, structs=STRUCTS, **routes):
    found = answer(module("shop", address="0xcafe", functions=functions, structs=structs), head=HEAD)
    modules = [module("shop", address="0xcafe"), module("bank", address="0xcafe"), {"bytecode": "0x01", "abi": None}]
    return FakeNode(
        {
            f"GET {SHOP}": found,
            "GET /accounts/0xcafe/modules": answer(modules, head=HEAD),
            "POST /view": lambda *_: answer(["7", True], head=HEAD, gas=3),
        }
        | routes,
        head=HEAD,
    )


def shop_of(transport):
    return toolkit.Node(URL, transport=transport).contract("0xcafe::shop")


@pytest.fixture
def transport():
    return fake()


@pytest.fixture
def shop(transport):
    return shop_of(transport)


def test_a_contract_reads_one_module(transport, shop):
    """Nothing is read but the head and the module, and no property reads more."""
    dir(shop)
    repr(shop)
    str(shop)
    shop._repr_html_()
    assert inspect.signature(shop.price)
    assert shop.buy.__doc__
    assert [path for path, *_ in transport.asked] == ["GET ", f"GET {SHOP}"]


def test_a_view_of_several_values_returns_a_tuple(transport, shop):
    """Values are Python values of the declared types, arguments are sent as the ABI wants them."""
    assert shop.price("0xb0b", 5) == (7, True)
    body = transport.asked[-1][2]
    assert body["function"] == "0xcafe::shop::price"
    assert body["arguments"][1] == "5"


def test_names_are_offered_if_python_can_write_them(shop):
    """Completion lists functions and the object's own names; the others are items."""
    names = dir(shop)
    assert {"price", "size", "buy", "mint", "abi", "at", "id", "node", "ledger_version"} <= set(names)
    assert "import" not in names
    assert "_repr_html_" not in names
    assert names == sorted(set(names))
    assert shop["import"].id == "0xcafe::shop::import"
    assert shop["at"].id == "0xcafe::shop::at"
    assert shop["_repr_html_"].id == "0xcafe::shop::_repr_html_"
    assert "Functions" in shop._repr_html_()
    assert set(shop) == {one["name"] for one in FUNCTIONS}
    assert "price" in shop
    assert "prise" not in shop


def test_a_wrong_name_suggests_the_right_one(shop):
    """As an attribute and as an item, with the functions that exist."""
    text = r"0xcafe::shop has no function 'prise'; did you mean `price`\? Its functions: price, size, worth"
    with pytest.raises(AttributeError, match=text):
        _ = shop.prise
    with pytest.raises(InputError, match=text):
        _ = shop["prise"]
    assert not hasattr(shop, "anything")


@pytest.mark.parametrize("private", ["_ipython_display_", "_ipython_canary_method_should_not_exist_", "__array__"])
def test_the_abi_decides_nothing_that_python_asks_for(private):
    """A view named like a hook of IPython or Python is not found as one."""
    shop = shop_of(fake([function(private, [], ["u8"])]))
    with pytest.raises(AttributeError, match="use contract"):
        getattr(shop, private)


def test_signatures_are_those_of_the_abi(shop):
    """`inspect.signature` has the Move types without the signers, and the options of the kind of function."""
    assert str(inspect.signature(shop.price)) == "(arg0: address, arg1: u64, /) -> (u64, bool)"
    assert str(inspect.signature(shop.size)) == "() -> u64"
    assert str(inspect.signature(shop.buy)) == "(arg0: u64, /, *, sender, **options) -> Simulation"
    assert "type_arguments" in inspect.signature(shop.worth).parameters
    assert shop.abi.function("worth").signature == "worth<T0: store + key>(&0x1::object::Object<T0>): u64"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("price", ["price(address, u64): (u64, bool)", "View function of 0xcafe::shop.", "price.over(versions, ...)"]),
        ("worth", ["Type arguments, as type_arguments=[...]: T0: store + key."]),
        ("buy", ["buy(&signer, u64)", "Entry function of", "Arguments, by position: u64.", "nothing is signed, subm"]),
        ("swap", ["Private entry function of", "sender=... and, as secondary_signers=[...], 1 more."]),
        ("mint", ["Friend function of", "neither a view nor an entry function"]),
    ],
)
def test_help_is_made_from_the_abi(shop, name, parts):
    """`help()` shows signature, kind, visibility, constraints and how to call it."""
    shown = pydoc.plain(pydoc.render_doc(shop[name]))
    assert [part for part in parts if part not in shown] == []


def test_a_function_that_a_node_cannot_call_says_so(shop):
    """With who can call it, and which functions can be called."""
    with pytest.raises(InputError, match=r"friends.*\bbuy\b"):
        shop.mint(5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda shop: shop.price("0xb0b"), r"expected 2 arguments.*the signature is price\(address, u64\)"),
        (
            lambda shop: shop.price("0xb0b", "five"),
            r"price arguments\[1\].*u64.*the signature is price\(address, u64\)",
        ),
        (
            lambda shop: shop.worth("0xb0b"),
            r"expected 1 type argument, got 0; .*AptosCoin; the signature is worth<T0: store \+ key>",
        ),
        (lambda shop: shop.buy(5), r"pass sender=, the account.*buy\(&signer, u64\)"),
        (lambda shop: shop.buy("0xb0b", 5, sender="0x1"), r"expected 1 argument \(u64\), got 2"),
        (lambda shop: shop.buy(5, sender="0x1", amount=5), r"amount"),
    ],
)
def test_arguments_that_do_not_fit_are_found_before_anything_is_sent(transport, shop, call, text):
    """The message has the Move signature."""
    sent = len(transport.asked)
    with pytest.raises(InputError, match=text):
        call(shop)
    assert len(transport.asked) == sent


def test_calls_and_requests_are_data(shop):
    """They are what `fetch_views`, `fetch_simulations` and studies take."""
    assert shop.price.call("0xb0b", 5) == toolkit.ViewFunction("0xcafe::shop::price", ["0xb0b", 5])
    assert shop.buy.call(5) == toolkit.EntryFunction("0xcafe::shop::buy", [5])
    request = shop.buy.request(5, sender="0xb0b", max_gas_amount=9)
    assert request == toolkit.SimulationRequest(shop.buy.call(5), sender="0xb0b", max_gas_amount=9)


def test_a_pinned_contract_has_the_abi_of_its_version():
    """A function that did not exist then is not one of its functions; the state is that of the version."""
    early = answer(module("shop", address="0xcafe", functions=[function("size", [], ["u64"])]), head=HEAD)
    late = answer(module("shop", address="0xcafe", functions=FUNCTIONS), head=HEAD)
    shop = shop_of(
        transport := fake(**{f"GET {SHOP}": lambda query, _: early if query["ledger_version"] == "5" else late})
    )
    past = shop.at(5)
    assert "price" in shop
    assert set(past) == {"size"}
    with pytest.raises(AttributeError, match=r"'price'.*\b5\b"):
        _ = past.price
    with pytest.raises(InputError, match=r"'price'.*\b5\b"):
        shop.price.at(5, "0xb0b", 5)
    shop.price.at(900, "0xb0b", 5)
    assert transport.asked[-1][1] == {"ledger_version": "900"}
    assert repr(past).endswith("1 view, 0 entry functions, 0 structs, ledger_version=5>")


def test_a_pinned_contract_does_not_simulate(transport, shop):
    """A node simulates at its head only; the request can be made."""
    past = shop.at(5)
    sent = len(transport.asked)
    with pytest.raises(NotAtPast, match=r"head.*\b5\b"):
        past.buy(5, sender="0xb0b")
    assert past.buy.request(5, sender="0xb0b") == shop.buy.request(5, sender="0xb0b")
    assert len(transport.asked) == sent


def test_over_is_the_typed_frame_of_fetch_views(shop):
    """Versions first, then the arguments as in a call."""
    frame = shop.price.over([998, 999], "0xb0b", 5, progress=False)
    assert frame["ledger_version"].tolist() == [998, 999]
    assert frame["value_0"].tolist() == [7, 7]
    assert str(frame.dtypes["value_0"]) == "uint64[pyarrow]"


def test_a_clipped_plan_is_a_warning():
    """The versions that cannot be read are left out."""
    head = ledger(1_000, oldest=900)
    shop = shop_of(fake(**{"GET ": answer(info(head), head=head)}))
    with pytest.warns(UserWarning, match="900"):
        frame = shop.price.over("0:1000:100", "0xb0b", 5, progress=False)
    assert frame["ledger_version"].tolist() == [900, 1_000]


@pytest.mark.parametrize(
    ("wanted", "kind", "text"),
    [
        ("0xcafe", InputError, "expected a module, .*, got '0xcafe'; 0xcafe has the modules shop, bank"),
        ("0xcafe::shop::price", InputError, "got the function '0xcafe::shop::price'; write 0xcafe::shop"),
        ("cafe", InputError, "got 'cafe'"),
        ("0xcafe::shoq", NotFound, r"0xcafe::shoq does not exist at version 1,000 .*; did you mean `shop`\?"),
        ("0xcafe::teahouse", NotFound, "0xcafe::teahouse does not exist .*; 0xcafe has the modules shop, bank"),
        (5, InputError, "module id must be a string"),
    ],
)
def test_what_is_not_a_module_says_what_there_is(wanted, kind, text):
    """An account or a function instead of a module, or a name that is misspelt."""
    absent = refused(404, "module_not_found", head=HEAD)
    paths = {f"GET /accounts/0xcafe/module/{name}": absent for name in ("shoq", "teahouse")}
    with pytest.raises(kind, match=text):
        toolkit.Node(URL, transport=fake(**paths)).contract(wanted)


@pytest.mark.parametrize(
    "told",
    [refused(403, "forbidden", head=HEAD), answer({"bytecode": "0x01", "abi": None}, head=HEAD)],
    ids=["modules are not offered", "the node cannot read the code"],
)
def test_a_node_without_the_abi_says_what_to_do(told):
    """The module is not missing: the calls remain, or the ABI is passed."""
    transport = fake(**{f"GET {SHOP}": told})
    with pytest.raises(InputError, match=r"the ABI of 0xcafe::shop.*abis="):
        shop_of(transport)
    abi = toolkit.move.decode_module_abi(module("shop", address="0xcafe", functions=FUNCTIONS))
    node = toolkit.Node(URL, transport=transport, abis={("0xcafe", "shop"): abi})
    assert node.contract("0xcafe::shop").size.call().function.endswith("::shop::size")


@pytest.mark.parametrize("listing", [refused(403, "forbidden", head=HEAD), answer({"no": "list"}, head=HEAD)])
def test_a_node_that_does_not_list_modules_still_says_that_one_is_missing(listing):
    """The suggestion is left out."""
    routes = {"GET /accounts/0xcafe/modules": listing}
    transport = fake(**routes, **{"GET /accounts/0xcafe/module/shoq": refused(404, "module_not_found", head=HEAD)})
    with pytest.raises(NotFound, match=r"0xcafe::shoq\b.*\b1,000\b") as caught:
        toolkit.Node(URL, transport=transport).contract("0xcafe::shoq")
    assert (caught.value.status, caught.value.error_code) == (404, "module_not_found")


def test_the_tables_show_functions_and_structs(shop):
    """Views first, then what is simulated, then the rest; the module's own types by their names."""
    assert str(shop).splitlines() == [
        f"0xcafe::shop at ledger version 1,000 of {URL}",
        "",
        "Functions",
        "  name         kind           signature",
        "  _repr_html_  view           (): u8",
        "  at           view           (): u8",
        "  import       view           (): u8",
        "  price        view           (address, u64): (u64, bool)",
        "  size         view           (): u64",
        "  worth        view           <T0: store + key>(&0x1::object::Object<T0>): u64",
        "  buy          entry          (&signer, u64)",
        "  swap         private entry  (&signer, &signer)",
        "  mint         friend         (u64): Item",
        "",
        "Structs",
        "  name   kind           abilities    fields",
        "  Item   struct         store        price: u64, next: Item",
        "  Sold   event          drop, store  item: Item",
        "  Shelf  enum resource  key          Full { count: u8 }, Empty",
    ]
    content = json.loads(json.dumps(module_content(shop)))
    assert content["functions"][3] == {
        "kind": "view",
        "signature": "price(address, u64): (u64, bool)",
        "name": "price",
        "visibility": "public",
        "is_entry": False,
        "is_view": True,
        "generic_type_params": [],
        "params": ["address", "u64"],
        "return": ["u64", "bool"],
    }
    assert content["structs"][2]["variants"][0] == {"name": "Full", "fields": [{"name": "count", "type": "u8"}]}


def test_a_comment_of_several_lines_is_one_line_of_the_table():
    """Descriptions are comments of the source, which often have line breaks."""
    error = toolkit.move.ErrorAbi(3, "E_CLOSED", "The shop is closed.\n  - On Sundays.\x1b[2J")
    abi = toolkit.move.ModuleAbi("0xcafe", "shop", errors=(error,))
    shop = toolkit.Node(URL, transport=fake(), abis={("0xcafe", "shop"): abi}).contract("0xcafe::shop")
    assert str(shop).splitlines()[2:] == [
        "Errors",
        "  code  name      description",
        "  3     E_CLOSED  The shop is closed. - On Sundays.\\x1b[2J",
    ]
    assert module_content(shop)["errors"] == ({"code": 3, "name": "E_CLOSED", "description": error.description},)


def test_contracts_are_shown_without_pandas():
    """It takes longer to import than all the rest; only frames need it."""
    code = (
        "import sys, toolkit; from toolkit.client._contracts import Contract; node = toolkit.Node('http://node.test/v1');"
        "abi = toolkit.move.decode_module_abi({'address': '0x1', 'name': 'm', 'structs': [], 'exposed_functions': []});"
        "shown = str(Contract(node, abi, abi_version=1)); assert 'pandas' not in sys.modules, shown"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_contract_can_be_copied_and_pickled():
    """Looking up names does not fail before the object has its state."""
    with toolkit.connect() as node:
        registry = node.contract("0xcafe::registry")
        assert copy.copy(registry).id == registry.id
        with pickle.loads(pickle.dumps(registry)).node as again:  # noqa: S301  # our own bytes
            assert again.contract(registry.id).abi == registry.abi
