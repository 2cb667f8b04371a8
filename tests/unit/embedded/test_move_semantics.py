"""Contracts in Python fail where Move fails: what each line does in Move, from recordings or the Move book.

`PROBES` run; `REFUSED` are refused when the contract is published, as by Move's compiler; `DIFFERENCES` are the lines
of "What differs from Move" in the reference, each with the contract that shows it.
"""

from __future__ import annotations

import itertools
import linecache
import re
import textwrap
from pathlib import Path

import pytest

import toolkit
from toolkit.embedded import Ledger
from toolkit.errors import Aborted, ContractError

_HEAD = "from __future__ import annotations\nimport copy, random, time\nfrom typing import Generic\nfrom toolkit.embedded import *\nfrom toolkit.embedded import Ledger, types\n"
_STATE = """
class Lab(Module, address="0x1ab"):
    class Point(Struct):
        x: u64

    class Ticket(Struct, abilities="store"):
        price: u64

    class Holder(Struct, abilities="store"):
        ticket: Lab.Ticket

    class Box(Resource):
        n: u64
        small: u8
        delta: i64
        items: vector[u64]
        points: vector[Lab.Point]
        ticket: Option[Lab.Ticket]
        best: Lab.Point
        table: Table[u64, u64]

    class Told(Event):
        n: u64

    E_NO = invalid_argument(1, "No")

    def init_module(self, account: signer) -> None:
        self.move_to(account, Lab.Box(n=5, small=250, delta=-7, items=[1, 2, 3], points=[], ticket=None,
                                      best=Lab.Point(x=1), table=self.new_table()))

    @view
    def state(self) -> tuple[u64, u8, i64, vector[u64], vector[Lab.Point], Lab.Point]:
        b = self.borrow(Lab.Box, "0x1ab")
        return b.n, b.small, b.delta, b.items, b.points, b.best
"""
_NUMBERS = itertools.count()


def define(body: str, *, known: bool = True) -> type:
    """Return the contract with another member; its source is known as that of a cell, or not as that of ``python -``."""
    source = _HEAD + _STATE + "\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    name = f"<lab {next(_NUMBERS)}>"
    if known:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict = {"__name__": "__main__"}
    exec(compile(source, name, "exec", dont_inherit=True), scope)  # noqa: S102 - what a notebook does
    return scope["Lab"]


def published(body: str, *, known: bool = True) -> Ledger:
    """Return a ledger with the contract."""
    ledger = Ledger()
    ledger.publish(define(body, known=known))
    return ledger


def view(signature: str, line: str) -> str:
    """Return the source of a view; `line` is its body."""
    return f"@view\ndef f(self{signature}:\n" + textwrap.indent(line, "    ")


def entry(line: str) -> str:
    """Return the source of an entry function that changes the box of the module."""
    inside = textwrap.indent(line, "        ")
    return (
        f"@entry\ndef f(self, account: signer) -> None:\n    with self.borrow_mut(Lab.Box, '0x1ab') as box:\n{inside}"
    )


ARITHMETIC = {
    # Recorded: types_calls.json (sum, fail_signed); the others have the texts of the same VM.
    "u64 overflow": (", a: u64, b: u64) -> u64", "return a + b", (2**64 - 1, 1), "Addition overflow"),
    "i8 overflow": (", a: i8, b: i8) -> i8", "return a + b", (127, 1), "Addition overflow"),
    "i8 underflow": (", a: i8, b: i8) -> i8", "return a + b", (-100, -29), "Addition overflow"),
    "an intermediate result": (", a: u8, b: u8) -> u8", "return (a + b) // 2", (255, 255), "Addition overflow"),
    "u64 underflow": (", a: u64, b: u64) -> u64", "return a - b + b", (1, 2), "Subtraction overflow"),
    "a comparison of an underflow": (", a: u64, b: u64) -> bool", "return a - b >= 0", (1, 2), "Subtraction overflow"),
    "a product": (", a: u64, b: u64) -> u64", "return a * b", (2**63, 2), "Multiplication overflow"),
    "division by zero": (", a: u64, b: u64) -> u64", "return a // b", (1, 0), "Division by zero"),
    "remainder by zero": (", a: u64, b: u64) -> u64", "return a % b", (1, 0), "Integer remainder by zero"),
    "i64 division truncates": (", a: i64, b: i64) -> i64", "return a // b", (-7, 2), [-3]),
    "i64 remainder has the dividend's sign": (", a: i64, b: i64) -> i64", "return a % b", (-7, 2), [-1]),
    "the smallest i8 negated": (", a: i8) -> i8", "return -a", (-128,), "Negation overflow"),
    "the smallest i8 by -1": (", a: i8) -> i8", "return a // -1", (-128,), "Division overflow"),
    "a shift loses bits": (", a: u8) -> u8", "return a << u8(1)", (255,), [254]),
    "a shift by the width": (", a: u8, b: u8) -> u8", "return a << b", (1, 8), "Shift Left overflow"),
    "a shift right by the width": (", a: u64, b: u8) -> u64", "return a >> b", (1, 64), "Shift Right overflow"),
    "a cast that fits": (", a: u64) -> u8", "return u8(a)", (255,), [255]),
    "a cast that does not": (", a: u64) -> u8", "return u8(a)", (256,), "Cannot cast u64(256) to u8"),
    "a cast of a negative number": (", a: i64) -> u64", "return u64(a)", (-1,), "Cannot cast i64(-1) to u64"),
    "and, or, xor": (", a: u8, b: u8) -> vector[u8]", "return [a & b, a | b, a ^ b]", (12, 10), [b"\x08\x0e\x06"]),
    "a number has the width of its operand": (", a: u8) -> u8", "return a + 1", (255,), "Addition overflow"),
    "a number that does not fit": (", a: u8) -> bool", "return a + 256 > a", (1,), "256 is not a u8"),
    "a counter": (", a: u64) -> u64", "n = 0\nfor i in range(a):\n    n += i\nreturn n", (5,), [10]),
    "a counter below zero": (") -> u64", "n = 0\nn = n - 1\nreturn 1", (), "Subtraction overflow"),
    "a number with a type": (") -> u8", "n: u8 = 255\nreturn n + 1", (), "Addition overflow"),
    "a difference of 256 bits": (", a: u256) -> u256", "return a - 1", (0,), "Subtraction overflow"),
    "a sum of a vector": (", v: vector[u64]) -> u64", "return sum(v)", ([2**64 - 1, 3],), "Addition overflow"),
    "an element out of range": (", v: vector[u64], i: u64) -> u64", "return v[i]", ([1, 2], 2), "sub status 1"),
    "an element of an empty vector": (", v: vector[u64], i: u64) -> u64", "return v[i]", ([], 0), "sub status 1"),
    "the index before the first": (", v: vector[u64], i: u64) -> u64", "return v[i - 1]", ([1], 0), "Subtraction"),
    "pop of an empty vector": (", v: vector[u64]) -> u64", "return v.pop()", ([],), "sub status 2"),
    "remove beyond the end": (", v: vector[u64]) -> u64", "return v.pop(3)", ([1],), "EINDEX_OUT_OF_BOUNDS (0x20000)"),
    "a slice beyond the end": (", v: vector[u64]) -> vector[u64]", "return v[1:4]", ([1],), "EINVALID_SLICE_RANGE"),
    "a slice": (", v: vector[u64]) -> vector[u64]", "return v[1:2]", ([1, 2, 3],), [[2]]),
    "an element of a list": (") -> u64", "return [1, 2][2]", (), "sub status 1"),
    "a text has bytes": (", s: String) -> u64", "return len(s)", ("ü",), [2]),
    "a missing resource": (") -> u64", "return self.borrow(Lab.Box, '0x7').n", (), "Failed to borrow global resource"),
    "a missing item": (") -> u64", "return self.borrow(Lab.Box, '0x1ab').table.borrow(7)", (), "0x6507"),
    "a recursion without end": (", n: u64) -> u64", "return self.f(n + 1)", (0,), "EXECUTION_STACK_OVERFLOW"),
    "an assertion": (") -> u64", "assert 1 > 2\nreturn 1", (), "0xca26cbd9be0b0000"),
    "an assertion with a code": (
        ") -> u64",
        "assert 1 > 2, self.E_NO\nreturn 1",
        (),
        "No: E_NO (0x10001) in 0x1ab::lab",
    ),
    "an address is equal in any form": (", a: address) -> bool", "return a == '0x01ab'", ("0x1ab",), [True]),
    "an Option": (", a: Option[u64]) -> u64", "return 7 if a is None else a", (None,), [7]),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_what_a_view_computes(name):
    """The value, or the failure with its text."""
    signature, line, arguments, expected = ARITHMETIC[name]
    ledger = published(view(signature, line))
    if isinstance(expected, list):
        assert ledger.view("0x1ab::lab::f", arguments)[0] == expected
        return
    with pytest.raises(Aborted, match=re.escape(expected)):
        ledger.view("0x1ab::lab::f", arguments)


CHANGES = {
    "a field overflows": ("box.small += 10", "Addition overflow"),
    "a field is overwritten by a wider number": ("box.small = box.n", "box.small must be u8, got u64"),
    "an appended value is a copy": (
        "box.points.append(box.best)\nbox.best.x += 1\nbox.points.append(box.best)",
        {4: [{"x": 1}, {"x": 2}], 5: {"x": 2}},
    ),
    "a constructed value is a copy": ("p = Lab.Point(x=3)\nbox.best = p\np.x += 1", {5: {"x": 3}}),
    "a list in a struct is a copy": ("v = [7]\nbox.items = v\nv.append(8)", {3: [7]}),
    "a removed element is the contract's own": ("last = box.items.pop()\nbox.n = last", {0: 3, 3: [1, 2]}),
    "a name has a copy": ("v = box.items\nv.append(4)", "this name holds a copy, as in Move"),
    "a copy of one's own can be changed": (
        "v = copy.copy(box.items)\nv.append(4)\nbox.n = len(v)",
        {0: 4, 3: [1, 2, 3]},
    ),
    "division of a stored i64": ("box.delta = box.delta // 2", {2: -3}),
    "the resource is borrowed twice": (
        "with self.borrow_mut(Lab.Box, '0x1ab') as other:\n    other.n += 1\nbox.n += 1",
        "0x1ab::lab::Box is already borrowed mutably",
    ),
    "the resource is read while it is borrowed": ("box.n = self.borrow(Lab.Box, '0x1ab').n + 1", "borrowed mutably"),
    "the resource is moved away while it is borrowed": (
        "self.move_from(Lab.Box, '0x1ab').unpack()",
        "already borrowed mutably",
    ),
    "a table is used while an item of it is borrowed": (
        "box.table.add(1, 1)\nwith box.table.borrow_mut(1) as item:\n    box.table.add(2, item)",
        "an item of this table is already borrowed mutably",
    ),
    "a value without drop is dropped": ("Lab.Ticket(price=3)", "a Ticket was not used, but it lacks the ability drop"),
    "a value without drop is taken apart": ("(box.n,) = Lab.Ticket(price=3).unpack()", {0: 3}),
    "a value without drop is stored": ("box.ticket = Lab.Ticket(price=3)", {0: 5}),
    "a value without drop is overwritten": (
        "box.ticket = Lab.Ticket(price=3)\nbox.ticket = None",
        "Box.ticket cannot be overwritten: its value lacks the ability drop",
    ),
    "a value without copy is stored twice": (
        "t = Lab.Ticket(price=3)\nbox.ticket = t\nbox.n = t.price",
        "this Ticket was moved, so its price cannot be read",
    ),
    "a value without copy is moved out of what is borrowed": (
        "box.ticket = Lab.Ticket(price=3)\nLab.Holder(ticket=box.ticket)",
        "this Ticket cannot be moved out of a borrowed value",
    ),
    "a range has the width of its bounds": ("for i in range(box.small, 255):\n    box.small = i", {1: 254}),
    "a loop changes the elements": (
        "box.points.append(Lab.Point(x=1))\nfor p in box.points:\n    p.x += 1",
        {4: [{"x": 2}]},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_transaction_changes(name):
    """What it stores; nothing if it fails or does what Move's compiler would refuse."""
    line, expected = CHANGES[name]
    ledger = Ledger()
    error = ""
    try:
        ledger.publish(define(entry(line)))
        ledger.execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0xb0b", check=True)
    except (Aborted, ContractError) as caught:
        error = str(caught)
    if isinstance(expected, dict):
        assert not error
        state = ledger.view("0x1ab::lab::state")[0]
        assert {index: state[index] for index in expected} == expected
        return
    assert expected in error
    if "0x1ab::lab" in str(ledger.contracts):
        assert ledger.view("0x1ab::lab::state")[0][:4] == [5, 250, -7, [1, 2, 3]]


REFUSED = {
    "import": (view(") -> u64", "import os\nreturn 1"), "a contract cannot import"),
    "random": (view(") -> u64", "return random.randrange(3)"), "a contract cannot use the module random"),
    "a function behind a module": (
        view(") -> u64", "return random.os.getpid()"),
        "a contract cannot use the module random",
    ),
    "a ledger": (view(") -> u64", "return Ledger().head"), "Ledger is not part of the contract"),
    "the maker of signers": (
        view(") -> u64", "return 1 if types.signer_of('0x1') == '0x1' else 2"),
        "a contract cannot use types.signer_of",
    ),
    "time": (view(") -> u64", "return time.time_ns()"), "a contract cannot use the module time"),
    "open": (view(") -> u64", "open('/etc/passwd')\nreturn 1"), "Move has no open; a contract has no files"),
    "print": (view(") -> u64", "print(1)\nreturn 1"), "Move has no print; emit an event"),
    "try": (view(") -> u64", "try:\n    return 1\nexcept Exception:\n    return 2"), "an abort cannot be caught"),
    "raise": (view(") -> u64", "raise ValueError"), "write self.abort(E_CODE)"),
    "dict": (view(") -> u64", "return {}['a']"), "Move has no dicts"),
    "global": (view(") -> u64", "global random\nreturn 1"), "a contract has no state of its own"),
    "a field of self": (entry("self.total = 1"), "self.total cannot be set"),
    "a field of the class": (entry("Lab.total = 1"), "Lab.total cannot be set"),
    "a function that does not exist": (entry("self.new_tabel()"), "did you mean `new_table`?"),
    "a function of another module": (
        view(") -> u64", "return self.use(Timestamp).now_second()"),
        "Timestamp has no function now_second; did you mean `now_seconds`",
    ),
    "a name that does not exist": (view(") -> u64", "return amonut"), "amonut is not defined"),
    "a misspelt field": (entry("box.nn = 1"), "Box has no field nn; did you mean `n`?"),
    "a misspelt field of a value": (view(") -> u64", "return Lab.Point(y=1).x"), "Point has no field y"),
    "a missing field": (view(") -> u64", "return Lab.Point().x"), "Point(...) is missing x"),
    "too many arguments": (view(") -> u64", "return self.f(1)"), "self.f takes 0 arguments, got 1"),
    "a view that writes": (
        entry("box.n = 1").replace("@entry", "@view").replace("account: signer) -> None", "a: u64) -> u64"),
        "a view only reads, but self.borrow_mut writes",
    ),
    "a view that calls what writes": (
        view(") -> u64", "self.g()\nreturn 1") + "\n\ndef g(self) -> None:\n    self.emit(Lab.Told(n=1))",
        "a view only reads, but self.g writes",
    ),
    "an event without drop": (entry("self.emit(Lab.Ticket(price=1))"), "Ticket lacks the ability drop"),
    "a value that is no resource": (entry("self.move_to(account, Lab.Point(x=1))"), "Point lacks the ability key"),
    "a signer from text": (entry("self.move_to('0xa11ce', Lab.Point(x=1))"), "move_to takes the signer"),
    "an address as a signer": (
        "def g(self, who: signer) -> None: ...\n" + view(", a: address) -> u64", "self.g(a)\nreturn 1"),
        "who of self.g must be a signer, got address",
    ),
    "a change of what is read": (
        view(") -> u64", "b = self.borrow(Lab.Box, '0x1ab')\nb.n = 1\nreturn 1"),
        "b.n cannot be changed: borrow returns a copy",
    ),
    "an element of what is read": (
        view(") -> u64", "self.borrow(Lab.Box, '0x1ab').items.append(1)\nreturn 1"),
        "cannot be changed: borrow returns a copy",
    ),
    "a number that does not fit": (view(") -> u8", "return 256"), "f must return u8 (0 to 255), got 256"),
    "a negative argument": (
        "def g(self, n: u64) -> u64:\n    return n\n" + view(") -> u64", "return self.g(-5)"),
        "n of self.g must be u64 (0 to 18446744073709551615), got -5",
    ),
    "two widths": (view(", a: u64, b: u8) -> u64", "return a + b"), "u64 + u8: both operands must have the same type"),
    "two widths compared": (
        view(", a: u64, b: u8) -> bool", "return a < b"),
        "u64 < u8: both operands must have the same type",
    ),
    "a result of another width": (view(", a: u8) -> u64", "return a"), "f must return u64, got u8"),
    "a bool as a number": (view(", a: bool) -> u64", "return a + 1"), "a bool is not a number"),
    "a number as a bool": (view(", a: u64) -> bool", "return a"), "f must return bool, got u64"),
    "a number as a condition": (
        view(", a: u64) -> u64", "return 1 if a else 2"),
        "a condition must be a bool: write a != 0",
    ),
    "a vector as a condition": (view(", v: vector[u64]) -> u64", "return 1 if v else 2"), "write len(v) > 0"),
    "a fraction": (view(") -> u64", "return 1.5"), "Move has no fractions"),
    "a division": (view(", a: u64) -> u64", "return a / 2"), "write // instead of /"),
    "a negative unsigned number": (view(", a: u64) -> u64", "return -a & 255"), "u64 has no negative values"),
    "a power": (view(", a: u64) -> u64", "return 2 ** a"), "Move has no power operator"),
    "a complement": (view(", a: u64) -> u64", "return ~a"), "Move has no operator ~"),
    "a negative index": (view(", v: vector[u64]) -> u64", "return v[-1]"), "write v[len(v) - 1]"),
    "borrow_mut without with": (
        "@entry\ndef f(self, account: signer) -> None:\n    self.borrow_mut(Lab.Box, account)",
        "needs a with block: with self.borrow_mut(Lab.Box, account) as value:",
    ),
    "reflection": (view(") -> u64", "return self.borrow(Lab.Box, '0x1').__class__"), "Move has no reflection"),
    "a function of the file": (view(") -> u64", "return define(1)"), "define is not defined"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_compiler_refuses(name):
    """When the contract is published, with its line; nothing is published."""
    body, message = REFUSED[name]
    ledger = Ledger()
    with pytest.raises(ContractError) as caught:
        ledger.publish(define(body))
    assert message in str(caught.value)
    assert re.search(r"\(line \d+\)$", str(caught.value))
    assert not ledger.contracts


def test_all_that_is_wrong_is_said_at_once():
    """A line each, in the order of the source."""
    with pytest.raises(ContractError) as caught:
        Ledger().publish(define(view(") -> u64", "import os\nprint(1)\nreturn 1.5")))
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == ["Lab.f"] * 3


def test_every_turn_and_every_call_costs():
    """100,000 turns of a plain loop cost a thousand times what 100 cost, and a call costs too."""
    body = (
        view(", n: u64) -> u64", "t = 0\nfor i in range(n):\n    t += 1\nreturn t")
        + "\n@view\ndef w(self, n: u64) -> u64:\n    t: u64 = 0\n    while t < n:\n        t += 1\n    return t"
        + "\n@view\ndef c(self, n: u64) -> u64:\n    return self.one() + self.one()"
        + "\n@view\ndef p(self, n: u64) -> u64:\n    return 2"
        + "\ndef one(self) -> u64:\n    return 1"
    )
    ledger = published(body)

    def gas(name, n):
        return ledger.view(f"0x1ab::lab::{name}", [n])[1]

    for name in ("f", "w"):
        assert 900 < (gas(name, 100_000) - gas(name, 0)) / max(gas(name, 100) - gas(name, 0), 1) < 1_300

    def charged(name):
        charges = ledger.profile(toolkit.ViewFunction(f"0x1ab::lab::{name}", [1])).charges
        return sum(one.internal_gas for one in charges if one.category != "rounding")

    assert charged("c") > charged("p")


def test_a_loop_without_end_runs_out_of_gas():
    """Before the time limit, if the gas is small."""
    ledger = published("@entry\ndef f(self, account: signer) -> None:\n    while True:\n        pass")
    done = ledger.execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0xb0b", max_gas_amount=200)
    assert (done.vm_status, done.gas_used) == ("Out of gas", 200)


def test_a_signer_cannot_be_made():
    """Neither by calling its class nor from text; the framework asks for one too."""
    for line, message in {
        "self.use(Coin).transfer(APTOS_COIN, '0xa11ce', '0xb0b', 1)": "account must be a signer, got '0xa11ce'",
        "self.new_event_handle('0xa11ce')": "account must be a signer, got '0xa11ce'",
    }.items():
        ledger = published(entry(line))
        with pytest.raises(ContractError, match=re.escape(message)):
            ledger.execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0xb0b")


def test_an_error_of_python_is_an_error_of_the_contract():
    """With its line, on the ledger and over HTTP; never an internal error of the node."""
    ledger = published(view(") -> u64", "return 'a' + 1"))
    for call in (lambda: ledger.view("0x1ab::lab::f"), lambda: toolkit.connect(ledger).view("0x1ab::lab::f")):
        with pytest.raises((ContractError, toolkit.NodeError), match=r"TypeError: .*\(line \d+\)") as caught:
            call()
        assert getattr(caught.value, "status", 400) == 400


def test_an_abort_that_is_caught_still_ends_the_transaction():
    """Code whose source is not known is not refused for `try`; the abort counts all the same."""
    body = entry("try:\n    box.n = 777\n    self.abort(self.E_NO)\nexcept:\n    pass")
    ledger = published(body, known=False)
    assert "E_NO" in ledger.execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0xb0b").vm_status
    assert ledger.view("0x1ab::lab::state")[0][0] == 5


def value(signature: str, line: str, *arguments, known: bool = True):
    """Return what a view returns."""
    return published(view(signature, line), known=known).view("0x1ab::lab::f", arguments)[0]


def gas_of(line: str, *, known: bool = True) -> int:
    """Return the gas of a view with a body."""
    return published(view(") -> u64", line), known=known).view("0x1ab::lab::f")[1]


def executed(line: str):
    """Return the state after an entry function."""
    ledger = published(entry(line))
    ledger.execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0x1ab", check=True)
    return ledger.view("0x1ab::lab::state")[0]


def _depth() -> int:
    body = view(", n: u64) -> u64", "return 0 if n == 0 else self.f(n - 1) + 1")
    ledger = published(body)
    assert ledger.view("0x1ab::lab::f", [100])[0] == [100]
    with pytest.raises(Aborted, match="EXECUTION_STACK_OVERFLOW"):
        ledger.view("0x1ab::lab::f", [1_000])
    return 1


DIFFERENCES = {
    "Division": lambda: value(", a: u64) -> u64", "return a // 2 + a % 2", 7) == [4],
    "Casts": lambda: value(", a: u64) -> u8", "return u8(a)", 7) == [7],
    "Numbers without a width": lambda: value(") -> u256", "n = 2 * 9223372036854775808 * 2\nreturn n") == [2**65],
    "Constant powers": lambda: value(") -> u64", "return 10 ** 8") == [10**8],
    "Copies of parts": lambda: executed("v = copy.copy(box.items)\nv.append(1)\nbox.n = len(v)")[0] == 4,
    "Loops over vectors": lambda: (
        executed("box.points.append(Lab.Point(x=1))\nfor p in box.points:\n    p.x = 9")[4] == [{"x": 9}]
    ),
    "Methods of the same contract": lambda: (
        published(entry("self.g(box)") + "\n\ndef g(self, box: Lab.Box) -> None:\n    box.n += 1")
        .execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0xb0b")
        .success
    ),
    "Read-only borrows": lambda: (
        value(") -> u64", "b = self.borrow(Lab.Box, '0x1ab')\nreturn b.n + self.borrow(Lab.Box, '0x1ab').n") == [10]
    ),
    "Tables": lambda: (
        published(
            "@entry\ndef f(self, account: signer) -> None:\n    self.borrow(Lab.Box, '0x1ab').table.add(1, 2)\n"
            "    self.move_from(Lab.Box, '0x1ab').unpack()"
        )
        .execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0xb0b")
        .success
    ),
    "Signers as addresses": lambda: (
        published(entry("box.table.upsert(1, 1 if account == '0xb0b' else 0)"))
        .execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0xb0b")
        .success
    ),
    "The contract's own signer": lambda: (
        published(entry("self.use(Coin).transfer(APTOS_COIN, self.own_signer(), account, 5)"))
        .execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0xb0b")
        .success
    ),
    "Inline functions": lambda: (
        published(view(") -> u64", "return self._g()") + "\n\ndef _g(self) -> u64:\n    return 1").view(
            "0x1ab::lab::f"
        )[1]
        == gas_of("return 1")
    ),
    "Vectors": lambda: (
        value(", v: vector[u64]) -> vector[u64]", "return sorted([x + 1 for x in v])", [3, 1]) == [[2, 4]]
    ),
    "Gas of arithmetic": lambda: gas_of("return 1") == gas_of("return 1 + 2 * 3 - 4"),
    "Depth of calls": _depth,
    "Cases of a match": lambda: (
        value(", a: u64) -> u64", "match a:\n    case 1:\n        return 1\nreturn 2", 3) == [2]
    ),
    "Locations of failures": lambda: (
        "at code offset 0"
        in published(entry("box.small += 10")).execute(toolkit.EntryFunction("0x1ab::lab::f"), sender="0xb0b").vm_status
    ),
    "Code without a source": lambda: (
        gas_of("t = 0\nwhile t < 100000:\n    t += 1\nreturn 1", known=False) < 5
        and value(", a: u64, b: u64) -> u64", "return a * b", 2, 3, known=False) == [6]
    ),
    "Time": lambda: Ledger().execution_timeout_s == 5,
}


@pytest.mark.parametrize(
    ("signature", "body", "argument", "expected"),
    [
        ("value: T0) -> u64", "return value.x", {"x": 1}, 1),
        ("value: vector[T0]) -> T0", "return value[0]", [{"x": 1}], {"x": 1}),
        ("value: Option[T0]) -> u64", "return value.x", {"x": 1}, 1),
        ("value: Option[T0]) -> Option[T0]", "return value", None, None),
        ("value: Pair[T0]) -> u64", "return value.both[1].x", {"both": [{"x": 1}, {"x": 2}]}, 2),
        ("value: Pair[T0]) -> Pair[T0]", "return value", {"both": [{"x": 1}]}, {"both": [{"x": 1}]}),
    ],
)
def test_a_struct_as_a_type_argument_is_its_class(signature, body, argument, expected):
    """Values of a type parameter have fields, also inside vectors, options and other structs."""
    struct = "class Pair(Struct, Generic[T0]):\n    both: vector[T0]\n\n"
    ledger = published(struct + view(f", kind: TypeArgument, {signature}", body))
    assert ledger.view("0x1ab::lab::f", [argument], ["0x1ab::lab::Point"])[0] == [expected]


_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "contracts.md"


def test_the_list_of_differences_is_complete():
    """Each line of the reference has a contract here, and each contract a line."""
    section = _PAGE.read_text(encoding="utf-8").partition("## What differs from Move")[2].partition("\n## ")[0]
    assert re.findall(r"^\| \*\*(.+?)\*\*", section, re.MULTILINE) == list(DIFFERENCES)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_what_the_reference_says(name):
    """What a contract does here and not in Move."""
    assert DIFFERENCES[name]()
