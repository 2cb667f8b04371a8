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
    "def pay(self, account: signer, amount: u46) -> None: ...": "Shop.pay: u46 is not defined; did you mean `u64` or `u16`? (line 5)",
    "def pay(self, account: signer, amount: int) -> None: ...": (
        "Shop.pay, parameter amount: int is not a Move type; write u64, or another type from u8 to u256 or i8 to i256, because Move "
        "integers have a size (line 5)"
    ),
    "def pay(self, account: signer, names: list[u64]) -> None: ...": (
        "Shop.pay, parameter names: list[u64] is not a Move type; write vector[T] (line 5)"
    ),
    "def pay(self, account: signer, name: String | None) -> None: ...": (
        "Shop.pay, parameter name: String | None is not a Move type; write Option[T] for a value that may be missing "
        "(line 5)"
    ),
    "def pay(self, account: signer, amount) -> None: ...": (
        "Shop.pay: parameter amount has no type: write amount: u64, or another Move type (line 5)"
    ),
    "def pay(self, account: signer, amount: u64 = 3) -> None: ...": (
        "Shop.pay: parameter amount has a default value, which Move does not support: callers pass every argument (line 5)"
    ),
    "def pay(self, amount: u64, account: signer) -> None: ...": (
        "Shop.pay: signer parameters must come before the others: move account before amount (line 5)"
    ),
    "def pay(account: signer) -> None: ...": (
        "Shop.pay: the first parameter must be self, without an annotation (line 5)"
    ),
    "def pay(self, account: signer) -> u64: ...": (
        "Shop.pay: an entry function must not return a value: write -> None, and return the value from a view (line 5)"
    ),
}


@pytest.mark.parametrize(("member", "message"), MEMBERS.items())
def test_a_wrong_entry_function_is_an_error_with_its_line(member, message):
    """The message names the method, the parameter, what to write, and the line of the cell."""
    with pytest.raises(InputError) as caught:
        define(f"class Shop(Module, address='0x5407'):\n    @entry\n    {member}")
    assert str(caught.value) == message


def test_other_mistakes_in_a_class_are_errors_with_their_line():
    """Fields, views, constructors, the first function, and the class statement."""
    for body, message in {
        "class Shop(Module, address='0x5407'):\n    class Till(Resource):\n        kept: float": (
            "Shop.Till, field kept: float is not a Move type; write u64 in a smaller unit, such as octas, because Move has no "
            "fractions (line 5)"
        ),
        "class Shop(Module, address='0x5407'):\n    @view\n    def price(self):\n        return 3": (
            "Shop.price: a view function must return a value: write its type, such as -> u64 (line 5)"
        ),
        "class Shop(Module, address='0x5407'):\n    def __init__(self):\n        self.kept = 3": (
            "Shop.__init__: a contract has no state of its own: write init_module(self, account: signer) and store a "
            "Resource with self.move_to (line 4)"
        ),
        "class Shop(Module, address='0x5407'):\n    def init_module(self) -> None: ...": (
            "Shop.init_module: init_module takes one signer: write "
            "def init_module(self, account: signer) -> None (line 4)"
        ),
        "class Shop(Module, address='0x5407'):\n    @view\n    def blocks(self) -> u64:\n        return 3": (
            "Shop.blocks: every contract has an attribute blocks, which this function would replace: choose another name "
            "(line 5)"
        ),
        "class Shop(Module, address='0x5407'):\n    def require(self) -> bool:\n        return True": (
            "Shop.require: every contract has an attribute require, which this function would replace: choose another name "
            "(line 4)"
        ),
        "class Shop(Module):\n    pass": (
            "class Shop(Module) has no address: write class Shop(Module, address='0xcafe') (line 3)"
        ),
        "class Shop(Module, adress='0x5407'):\n    pass": (
            "class Shop(Module): adress is not an option of a contract; the options are address, name, revision, code_bytes, uses and friends (line 3)"
        ),
        "class Shop(Module, address='shop'):\n    pass": (
            "class Shop(Module): not an address: 'shop'; expected 0x and 1 to 64 hex digits (line 3)"
        ),
    }.items():
        with pytest.raises(InputError) as caught:
            define(body)
        assert str(caught.value) == message


IN_A_CLASS = {
    "@view\ndef f(self) -> vector: ...": "W.f, returned value: vector needs an element type, such as vector[u64] (line 5)",
    "@view\ndef f(self) -> Option: ...": "W.f, returned value: Option needs a type, such as Option[u64] (line 5)",
    "@view\ndef f(self, x: vector) -> u64: ...": "W.f, parameter x: vector needs an element type, such as vector[u64]",
    "class B(Resource):\n    x: vector": "W.B, field x: vector needs an element type, such as vector[u64] (line 5)",
    "class B(Resource):\n    x: Table": "W.B, field x: Table needs a key type and a value type, such as Table[address, u64]",
    "class B(Resource):\n    x = 0": "W.B: field x has no type: write x: u64",
    "class B(Resource):\n    x: u64 = 0": (
        "W.B: field x has a default value, which Move does not support: write B(x=...) instead (line 5)"
    ),
    "@view\ndef f(self) -> Table[u64, u64]: ...": "W.f, returned value: a view cannot return a table",
    "@view\ndef f(self) -> signer: ...": "W.f, returned value: a view cannot return a signer as a value: write address",
    "class B(Resource):\n    x: u64\n@entry\ndef f(self, x: W.B) -> None: ...": (
        "W.f, parameter x: a transaction cannot pass the resource B: take its address, and borrow it (line 7)"
    ),
    "@view\ndef f(self, x: vector[u64, u64]) -> u64: ...": (
        "W.f, x: vector[u64, u64] is not a Move type; vector, Option and Object take one type in brackets"
    ),
    "@view\ndef f(self, x: map[u64, u64]) -> u64: ...": "W.f, x: map[u64, u64] is not a Move type; write Table[K, V]",
    "@view\ndef f(self, x: SimpleMap[u64, u64]) -> u64: ...": "W.f: SimpleMap is not defined; write Table[K, V] (line 5)",
    "@view()\ndef f(self) -> u64: ...": "write @view without parentheses",
    "@entry\ndef f(self, a: signer, b: Option[signer]) -> None: ...": (
        "W.f, parameter b: a transaction cannot pass a signer as a value: write address"
    ),
    "class B(Struct, abilities='store'):\n    t: Table[u64, u64]\n@entry\ndef f(self, x: vector[W.B]) -> None: ...": (
        "W.f, parameter x: a transaction cannot pass a table, because its items are stored separately: use one of its items (line 7)"
    ),
    "class B(Resource):\n    x: u64\n@view\ndef f(self, x: Option[W.B]) -> u64: ...": (
        "W.f, parameter x: a caller of a view cannot pass the resource B"
    ),
    "@view\ndef f(self, a: signer) -> u64: ...": "W.f: a view function cannot take a signer: write a: address (line 5)",
    "@view\ndef f(self) -> vector[Option[signer]]: ...": "W.f, returned value: a view cannot return a signer",
    "@view\ndef f(self) -> tuple[u64, vector[Table[u64, u64]]]: ...": "W.f, returned value: a view cannot return a table",
    "class B(Resource):\n    x: vector[signer]": (
        "W.B, field x: B has the ability key, so its fields must have store: vector<signer> does not; a signer cannot be "
        "stored: write address (line 5)"
    ),
    "class B(Resource):\n    x: Table[u64, signer]": "signer lacks store; a signer cannot be stored: write address (line 5)",
    "class B(Struct):\n    x: Table[u64, u64]": "Table<u64, u64> does not; write class B(Struct, abilities='store') (line 5)",
    "class B(Event):\n    x: Table[u64, u64]": "the fields of an event must be copyable",
    "class A(Resource):\n    x: u64\nclass B(Resource):\n    a: Table[u64, A]": (
        "0x5407::w::A lacks store; declare that struct with abilities='store', not as a Resource (line 7)"
    ),
    "class B(Struct):\n    x: vector[B]": "W.B, field x: the struct contains itself, which Move does not allow (line 5)",
    "@entry()\ndef f(self) -> None: ...": "write @entry without parentheses",
}


@pytest.mark.parametrize(("body", "message"), IN_A_CLASS.items())
def test_an_annotation_that_could_only_fail_later_is_an_error_of_the_class(body, message):
    """Types without their element, resources as arguments, tables as answers, and fields without a type."""
    with pytest.raises(InputError) as caught:
        define("class W(Module, address='0x5407'):\n" + textwrap.indent(body, "    "))
    assert message in str(caught.value)


def test_a_wrong_returned_value_is_shown_with_its_line():
    """On the ledger and over HTTP."""
    ledger = Ledger()
    ledger.publish(
        define("class W(Module, address='0x5407'):\n    @view\n    def f(self) -> u64:\n        return 'three'")["W"]
    )
    with pytest.raises(ContractError, match=r"0x5407::w::f: expected u64, got 'three' \(line 6\)"):
        ledger.view("0x5407::w::f")
    with pytest.raises(toolkit.NodeError, match=r"0x5407::w::f: expected u64, got 'three' \(line 6\)"):
        toolkit.connect(ledger).contract("0x5407::w").f()


def test_types_that_move_allows_are_not_refused():
    """Structs that are stored may hold tables; functions that only contracts call may pass tables and signers."""
    body = """
    class Part(Struct, abilities="store"):
        items: Table[u64, u64]
    class Crate(Struct, Generic[T0]):
        content: Option[T0]
    class Whole(Resource):
        part: Part
        parts: vector[Part]
        by_key: Table[u64, Table[u64, Part]]
        crates: Crate[Crate[u64]]
    class Passing(Struct, abilities="drop"):
        who: vector[signer]
    @public
    def f(self, one: signer, others: vector[signer], items: Table[u64, u64]) -> signer: ...
    @view
    def g(self, whole: Object[Whole]) -> Crate[address]: ...
    """
    contract = define(f"from typing import Generic\nclass W(Module, address='0x5407'):{body}")["W"]
    assert Ledger().publish(contract).success


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
        "@view\n    def f(self) -> String: ...": "different signature (published: public view f(): u64; now: public view f(): String). Its callers",
        "@public\n    def f(self) -> u64: ...": "published: public view f(): u64; now: public f(): u64",
        "...": "function f is missing. Its callers rely on it: keep it as published",
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
        with pytest.raises(InputError, match=r"expected an EntryFunction, .*; pass its request, simulation\.request"):
            take(simulation)
        with pytest.raises(InputError, match=r"ledger\.commit takes a function and its arguments"):
            take("0x1::coin::balance")


def test_a_contract_in_a_file_has_the_name_of_the_file_in_its_errors():
    """Lines of a file without its name would not be found."""
    with pytest.raises(InputError, match=r"write u64, .* \(test_writing_contracts\.py, line \d+\)$"):

        class Shop(Module, address="0x5407"):
            @view
            def price(self) -> int: ...


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
        ("missing", Aborted, "Failed to borrow global resource from 0*1 in 0x7111::till::missing"),
    ],
)
def test_a_wrong_view_says_what_is_wrong(ledger, function, error, message):
    """Values of another type are not returned, and failures name the function that failed."""
    with pytest.raises(error, match=message.replace(".", r"\.")):
        ledger.view(f"0x7111::till::{function}")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("by_name", InputError, "expected a resource class, got 'Coins' (test_writing_contracts.py, line "),
        ("emits_a_class", InputError, "; write Coins(...) with its fields (test_writing_contracts.py, line "),
        ("a_list_as_table", InputError, "expected a table, got []; write self.new_table() (test_"),
        ("a_number_as_struct", InputError, "expected a value of Till.Roll, got 1; write Till.Roll(...) (test_"),
        ("counts_a_table", InputError, "a table cannot be counted, iterated or indexed: use contains, borrow"),
        ("indexes_a_table", InputError, "a table cannot be counted, iterated or indexed"),
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
    with pytest.raises(InputError, match=r"0x5407::shop is already published .* revision=2"):
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


COPIES = """
import copy

class W(Module, address='0x5407'):
    class Point(Struct):
        x: u64

    class Mode(Enum):
        class On:
            level: u64
        class Off: ...

    class B(Resource):
        n: u64
        points: vector[Point]
        best: Option[Point]
        raw: vector[u8]
        mode: Mode
        items: Table[u64, Point]

    def init_module(self, account: signer) -> None:
        point = W.Point(x=1)
        self.move_to(account, W.B(n=1, points=[point, point], best=point, raw=[1], mode=W.Mode.On(level=1), items=self.new_table()))
        self.borrow(W.B, account).items.add(7, point)

    @view
    def own(self) -> tuple[u64, u64, vector[u8], u64]:
        b = self.borrow(W.B, "0x5407")
        point, points, raw = copy.copy(b.best), copy.deepcopy(b.points), list(b.raw)
        point.x += 1
        points[0].x += 2
        points.pop()
        raw.append(2)
        return point.x, points[0].x, raw + b.raw, len(b.points)

    @view
    def change(self) -> u64:
        b = self.borrow(W.B, "0x5407")
        {line}
        return 1
"""
"""A contract with every kind of field, and a view that changes what `borrow` returns."""


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("b.n += 1", "b.n"),
        ("b.points[0].x = 5", "b.points[0].x"),
        ("b.best.x = 5", "b.best.x"),
        ("b.items.borrow(7).x = 5", "b.items.borrow(7).x"),
        ("b.mode.assign(W.Mode.Off())", "b.mode"),
        ("b.mode.level = 2", "b.mode.level"),
        ("b.points.append(W.Point(x=3))", "b.points"),
        ("b.points[0] = W.Point(x=3)", "b.points[0]"),
        ("b.raw += [3]", "b.raw"),
        ("b.raw.sort()", "b.raw"),
    ],
)
def test_what_borrow_returns_cannot_be_changed(line, what):
    """The change would be lost without a word, so Move's compiler refuses it; the message has the line."""
    with pytest.raises(ContractError) as caught:
        Ledger().publish(define(COPIES.replace("{line}", line))["W"])
    message = f"W.change: {what} cannot be changed: borrow returns a copy; use borrow_mut to change it (line 40)"
    assert str(caught.value) == message


def test_what_is_reached_in_other_ways_cannot_be_changed_either():
    """A helper gets a reference; only the running contract knows that it was borrowed read-only."""
    ledger = Ledger()
    body = COPIES.replace("{line}", "self.raise_first(b.points)")
    ledger.publish(
        define(f"{body}\n    def raise_first(self, points: vector[Point]) -> None:\n        points[0].x += 1")["W"]
    )
    for change in (lambda: ledger.view("0x5407::w::change"), toolkit.connect(ledger).contract("0x5407::w").change):
        with pytest.raises((ContractError, toolkit.NodeError), match="borrow returns a copy") as caught:
            change()
        assert str(caught.value).count("line 44") == 1


def test_copies_of_what_borrow_returns_can_be_changed():
    """As local variables of Move can; the stored value stays."""
    ledger = Ledger()
    ledger.publish(define(COPIES.replace("{line}", "pass"))["W"])
    assert ledger.view("0x5407::w::own")[0] == [2, 3, b"\x01\x02\x01", 2]
    assert ledger.view("0x5407::w::change")[0] == [1]


def test_types_have_help():
    """`help(u64)` and `u64?` describe the type, not int."""
    for name in ("u8", "i256", "address", "signer", "String", "vector", "Option"):
        assert getattr(embedded, name).__doc__.split("\n")[0].endswith((".", ">."))
    assert "0 to 2^64 - 1" in u64.__doc__
    assert {"Module", "entry", "view", "u64", "signer", "Table"} <= set(dir(embedded))
