"""What somebody who writes a contract for the first time gets wrong, and what the message says to write."""

from __future__ import annotations

import linecache
import textwrap

import pytest

import toolkit
from toolkit import embedded
from toolkit.embedded import Ledger, Module, Resource, entry, signer, u64, view
from toolkit.errors import Aborted, ContractError, InputError

_HEAD = "from __future__ import annotations\nfrom toolkit.embedded import *\n"


def define(body: str, name: str = "<cell>") -> dict:
    """Run source as a cell of a notebook does: it has lines and no file."""
    source = _HEAD + textwrap.dedent(body).lstrip("\n")
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), scope)  # noqa: S102 - what a notebook does
    return scope


MEMBERS = {
    "def pay(self, account: signer, amount: u46) -> None: ...": ("Shop.pay, amount", "did you mean `u64`"),
    "def pay(self, account: signer, amount: int) -> None: ...": (
        "Shop.pay, parameter amount",
        "int is not a Move type",
    ),
    "def pay(self, account: signer, names: list[u64]) -> None: ...": ("Shop.pay, parameter names", "vector[T]"),
    "def pay(self, account: signer, name: String | None) -> None: ...": ("Shop.pay, parameter name", "Option[T]"),
    "def pay(self, account: signer, names: vector) -> None: ...": ("Shop.pay, parameter names", "vector[u64]"),
    "def pay(self, account: signer, name: vector[u64, u64]) -> None: ...": ("Shop.pay, name", "vector[u64, u64]"),
    "def pay(self, account: signer, amount) -> None: ...": ("Shop.pay", "parameter amount has no type"),
    "def pay(self, account: signer, amount: u64 = 3) -> None: ...": ("Shop.pay", "parameter amount has a default"),
    "def pay(self, amount: u64, account: signer) -> None: ...": ("Shop.pay, parameter account", "before the other"),
    "def pay(account: signer) -> None: ...": ("Shop.pay", "the first parameter must be self"),
    "def pay(self, account: signer) -> u64: ...": ("Shop.pay", "must not return a value"),
    "def pay(self, account: signer, other: Option[signer]) -> None: ...": ("Shop.pay, parameter other", "a signer"),
    "def pay(self, account: signer, items: Table[u64, u64]) -> None: ...": ("Shop.pay, parameter items", "a table"),
    "def pay(self, account: signer, parts: vector[Shop.Part]) -> None: ...": ("Shop.pay, parameter parts", "a table"),
    "def pay(self, account: signer, till: Shop.Till) -> None: ...": ("Shop.pay, parameter till", "the resource Till"),
}


@pytest.mark.parametrize(("member", "parts"), MEMBERS.items())
def test_a_wrong_entry_function_is_an_error_when_the_class_is_defined(member, parts):
    """The message names the method and the parameter; rights such as tables and resources cannot be arguments."""
    head = (
        "class Shop(Module, address='0x5407'):\n"
        "    class Till(Resource):\n        n: u64\n"
        "    class Part(Struct):\n        items: Table[u64, u64]\n"
    )
    with pytest.raises(InputError) as caught:
        define(f"{head}    @entry\n    {member}")
    assert str(caught.value).startswith(parts[0])
    assert parts[1] in str(caught.value)


CLASSES = {
    "class Shop(Module, address='0x5407'):\n    class Till(Resource):\n        kept: float": ("struct Till, field kept", "float"),
    "class Shop(Module, address='0x5407'):\n    class Till(Resource):\n        kept: u64 = 0": ("struct Till", "field kept"),
    "class Shop(Module, address='0x5407'):\n    @view\n    def price(self):\n        return 3": ("Shop.price", "-> u64"),
    "class Shop(Module, address='0x5407'):\n    @view\n    def price(self, a: signer) -> u64: ...": ("Shop.price, parameter a", "a: address"),
    "class Shop(Module, address='0x5407'):\n    def __init__(self):\n        self.kept = 3": ("Shop.__init__", "init_module"),
    "class Shop(Module, address='0x5407'):\n    def init_module(self) -> None: ...": ("Shop.init_module", "one signer"),
    "class Shop(Module, address='0x5407'):\n    @view\n    def blocks(self) -> u64:\n        return 3": ("Shop.blocks", "another name"),
    "class Shop(Module):\n    pass": ("class Shop(Module)", "address='0xcafe'"),
    "class Shop(Module, address='shop'):\n    pass": ("not an address: 'shop'", "hex digits"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "parts"), CLASSES.items())
def test_other_mistakes_are_errors_when_the_class_is_defined(body, parts):
    """Fields, views, constructors, the first function, and the class statement."""
    with pytest.raises(InputError) as caught:
        define(body)
    assert str(caught.value).startswith(parts[0])
    assert parts[1] in str(caught.value)


def test_an_unknown_option_of_the_class_statement_is_an_error():
    with pytest.raises(TypeError, match="adress"):
        define("class Shop(Module, address='0x5407', adress='0x5408'):\n    pass")


def test_a_wrong_returned_value_names_the_function():
    """On the ledger and over HTTP."""
    ledger = Ledger()
    ledger.publish(
        define("class W(Module, address='0x5407'):\n    @view\n    def f(self) -> u64:\n        return 'three'")["W"]
    )
    with pytest.raises(ContractError, match=r"0x5407::w::f: .*\bu64\b.*'three'"):
        ledger.view("0x5407::w::f")
    with pytest.raises(toolkit.NodeError, match=r"0x5407::w::f: .*\bu64\b.*'three'"):
        toolkit.connect(ledger).contract("0x5407::w").f()


def test_generic_types_still_have_their_parameter():
    """A bare vector is refused, vector[T0] is not."""
    done = define(
        "class W(Module, address='0x5407'):\n    @public\n    def f(self, t: TypeArgument, x: vector[T0]) -> Option[T0]: ..."
    )
    assert done["W"].definition.functions["f"].to_abi()["params"] == ["vector<T0>"]


def test_a_refused_upgrade_shows_both_signatures():
    """And says what can be done."""
    ledger = Ledger()
    head = "class W(Module, address='0x5407'):\n    "
    ledger.publish(define(head + "@view\n    def f(self) -> u64: ...")["W"])
    for body, message in {
        "@view\n    def f(self) -> String: ...": "published: <FunctionAbi public view f(): u64>; now: <FunctionAbi public view f(): 0x1::string::String>",
        "@public\n    def f(self) -> u64: ...": "published: <FunctionAbi public view f(): u64>; now: <FunctionAbi public f(): u64>",
        "...": "function f is missing",
    }.items():
        with pytest.raises(InputError) as caught:
            ledger.publish(define(head + body)["W"])
        assert message in str(caught.value)


def test_a_simulation_is_not_executed():
    """The message has the call that commits it."""
    ledger = Ledger()
    account = toolkit.connect(ledger).contract("0x1::aptos_account")
    simulation = account.transfer("0xb0b", 5, sender="0xa11ce")
    for take in (ledger.execute, ledger.profile):
        with pytest.raises(InputError, match=r"EntryFunction.*simulation\.request"):
            take(simulation)
        with pytest.raises(InputError, match=r"ledger\.commit"):
            take("0x1::coin::balance")


class Till(Module, address="0x7111"):
    """A contract with the mistakes that only show when it runs."""

    class Coins(Resource):
        count: u64

    class Roll(embedded.Struct):
        n: u64

    class Box(Resource):
        items: embedded.Table[u64, u64]
        coins: Till.Roll

    def init_module(self, account: signer) -> None:
        self.move_to(account, Till.Coins(count=0))

    @view
    def nothing(self) -> u64: ...

    @view
    def text(self) -> u64:
        return "three"

    @view
    def missing(self) -> u64:
        return self.borrow(Till.Coins, "0x1").count

    @entry
    def refuse(self, account: signer) -> None:
        self.require(False, "no")

    @entry
    def by_name(self, account: signer) -> None:
        self.borrow("Coins", "0x7111")

    @entry
    def emits_a_class(self, account: signer) -> None:
        self.emit(Till.Coins)

    @entry
    def a_list_as_table(self, account: signer) -> None:
        self.move_to(account, Till.Box(items=[], coins=Till.Roll(n=1)))

    @entry
    def a_number_as_struct(self, account: signer) -> None:
        self.move_to(account, Till.Box(items=self.new_table(), coins=1))

    @entry
    def counts_a_table(self, account: signer) -> None:
        len(self.new_table())

    @entry
    def indexes_a_table(self, account: signer) -> None:
        self.new_table()["tea"] = 3


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.publish(Till)
    return ledger


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("nothing", ContractError, "0x7111::till::nothing: expected u64, got None"),
        ("text", ContractError, "0x7111::till::text: expected u64, got 'three'"),
        ("missing", Aborted, "Execution failed in 0x7111::till::missing"),
    ],
)
def test_a_wrong_view_says_what_is_wrong(ledger, function, error, message):
    """Values of another type are not returned, and failures name the function that failed."""
    with pytest.raises(error, match=message.replace(".", r"\.")):
        ledger.view(f"0x7111::till::{function}")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("by_name", ContractError, "expected a resource class, got 'Coins' (test_writing_contracts.py, line "),
        ("emits_a_class", ContractError, "emits_a_class"),
        ("a_list_as_table", ContractError, "expected a table, got []; write self.new_table() (test_"),
        ("a_number_as_struct", ContractError, "expected Roll, got 1 (test_"),
        ("counts_a_table", ContractError, "TypeError"),
        ("indexes_a_table", ContractError, "TypeError"),
        ("refuse", InputError, "abort code must be an int or an AbortCode, got 'no'"),
    ],
)
def test_a_wrong_entry_function_says_what_is_wrong(ledger, function, error, message):
    """Each is a mistake that the documentation of other languages suggests."""
    head = ledger.head
    with pytest.raises(error) as caught:
        ledger.commit(f"0x7111::till::{function}", sender="0xb0b")
    assert message in str(caught.value)
    assert ledger.head == head + 2  # the block, without the transaction


def test_an_upgrade_needs_a_new_revision():
    """With the ABI and the revision that are published the bytecode would be the same, so nobody could see it."""
    ledger = Ledger()
    first = define("class Shop(Module, address='0x5407'):\n    @view\n    def price(self) -> u64:\n        return 3")[
        "Shop"
    ]
    again = define("class Shop(Module, address='0x5407'):\n    @view\n    def price(self) -> u64:\n        return 4")[
        "Shop"
    ]
    ledger.publish(first)
    ledger.publish(first)
    with pytest.raises(InputError, match=r"0x5407::shop\b.*revision=2"):
        ledger.publish(again)


def test_a_sender_without_coins_is_told_how_to_get_some(ledger):
    """The status of a node is not enough for somebody who just made up an address."""
    with pytest.raises(InputError, match=r"INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE; ledger\.fund\('0x1234'\) adds"):
        ledger.commit("0x7111::till::refuse", sender="0x1234")


def test_addresses_are_compared_as_in_move():
    """`account == "0x5407"` is true for that account, however many zeros the text has."""
    body = """
    class R(Resource):
        owner: address
        others: vector[address]
        by_owner: Table[address, u64]

    def init_module(self, account: signer) -> None:
        self.require(account == "0x5407" and "0x05407" == account and account != "0x5408", 1)
        self.move_to(account, W.R(owner=account, others=["0x7", account], by_owner=self.new_table()))
        self.borrow(W.R, account).by_owner.add(account, 3)

    @entry
    def f(self, account: signer) -> None:
        self.require(account == "0xb0b" and account != "bob" and account != 7, 2)

    @view
    def g(self, who: address, thing: Option[address]) -> tuple[bool, bool, bool, u64, address]:
        r = self.borrow(W.R, "0x5407")
        return who == "0x5407", r.owner == who and thing == r.owner, "0x5407" in r.others, r.by_owner.borrow(who), who
    """
    ledger = Ledger()
    ledger.publish(define(f"class W(Module, address='0x5407'):{body}")["W"])
    assert ledger.commit("0x5407::w::f", sender="0xb0b").success
    values = ledger.view("0x5407::w::g", ["0x5407", "0x5407"])[0]
    assert values == [True, True, True, 3, "0x" + "5407".zfill(64)]
    assert type(values[-1]) is str
    answer = toolkit.connect(ledger).contract("0x5407::w").g("0x5407", "0x5407")
    assert list(answer) == values


def test_types_have_help():
    """`help(u64)` and `u64?` describe the type, not int."""
    for name in ("u8", "i256", "address", "signer", "String", "vector", "Option"):
        assert getattr(embedded, name).__doc__.split("\n")[0].endswith((".", ">."))
    assert "0 to 2^64 - 1" in u64.__doc__
    assert {"Module", "entry", "view", "u64", "signer", "Table"} <= set(dir(embedded))
