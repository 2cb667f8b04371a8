"""Fields of functions: all at once, signers, names from published source, units of amounts, named accounts."""

from __future__ import annotations

import gzip
from types import SimpleNamespace

import pytest

import toolkit
from tests.unit.widgets.test_simulation_builder import press, type_in
from toolkit.client._fetch import resolved_plan
from toolkit.embedded import Ledger, Module, entry, signer
from toolkit.embedded.types import u64
from toolkit.errors import NotFound
from toolkit.move import AbiMap, parse_type_tag, resolve_layout
from toolkit.widgets import SimulationBuilder, ViewBuilder, _functions
from toolkit.widgets._functions import Packages, parameter_names, published_packages

SOURCE = """
module 0xbeef::pair {
    // public entry fun both(wrong: u8)
    public entry fun both<C: key>(first: &signer,
        second: &signer, /* how much, in (octas) */ amount: u64, _unused: u64) acquires Store {}
    fun alone() {}
}
"""


class Pair(Module, address="0xbeef"):
    @entry
    def both(self, first: signer, second: signer, amount: u64, more: u64) -> None:
        """Take two signers."""


@pytest.fixture(scope="module")
def node():
    """Return a node of a ledger with a contract that takes two signers."""
    ledger = Ledger.with_history(versions=300, cache=True)
    ledger.publish(Pair)
    with toolkit.connect(ledger) as made:
        yield made


@pytest.fixture
def form(node):
    """Return a function that opens a simulation of a function as a browser does."""
    opened = []

    def show(function):
        opened.append(SimulationBuilder(node, function))
        press(opened[-1], "look")
        return opened[-1]

    yield show
    for one in opened:
        one.close()


def call_of(form):
    """Return the fields of the call, which have no label of their own."""
    return next(part.fields for _, part in form._spec.fields if not part.label)


def fields_of(form, title):
    """Return the fields of a part of the form by their key."""
    parts = [part for _, part in call_of(form) if part.label == title]
    return dict(parts[0].fields)


def test_all_fields_of_a_generic_function_are_there_at_once(form):
    """Arguments can be typed before the type argument; what is typed stays when it is known, and nothing is an error."""
    made = form("0x1::coin::transfer")
    assert [part.type for part in fields_of(made, "Arguments").values()] == ["address", "u64"]
    assert made._draft.type_arguments == ("",)
    assert made.errors == {}
    type_in(made, arguments=["0xb0b", ""])
    type_in(made, sender="0xa11ce", type_arguments=["0x1::aptos_coin::AptosCoin"])
    press(made, "look")
    assert made._draft.arguments == ("0xb0b", "")
    assert made.request is None
    type_in(made, arguments=["0xb0b", "5"])
    assert made.request.payload.type_arguments == ("0x1::aptos_coin::AptosCoin",)
    assert made.request.payload.arguments == ("0xb0b", 5)


def test_a_missing_type_is_no_error_and_a_field_of_it_is_json(node):
    """Until it is known."""
    made = ViewBuilder(node, "0x1::coin::name")
    press(made, "look")
    assert made._findings.errors == {}
    assert list(made._findings.missing) == ["type_arguments.0"]
    made.close()
    layout = resolve_layout(parse_type_tag("vector<T0>", abi=True), AbiMap())
    assert _functions._fields.field(layout, "x").item.hint == "JSON"


def test_an_amount_has_its_unit_and_is_said_in_whole_coins(form):
    """By the coin type once it is typed; APT needs no type. Other integers have their range."""
    made = form("0x1::coin::transfer")
    assert fields_of(made, "Arguments")[1].hint == "0 to 18,446,744,073,709,551,615"
    type_in(made, type_arguments=["0x1::aptos_coin::AptosCoin"])
    press(made, "look")
    assert fields_of(made, "Arguments")[1].hint == "in octas (1 APT = 100,000,000)"
    type_in(made, arguments=["0xb0b", "123456789"])
    assert made._findings.notes["arguments.1"] == "= 1.23456789 APT"
    type_in(made, arguments=["0xb0b", "x"])
    assert "arguments.1" not in made._findings.notes
    for typed, units in (("1 APT", "for 1 APT enter 100000000"), ("1.5", "150000000"), ("x", "for 1 APT enter")):
        type_in(made, arguments=["0xb0b", typed])
        assert units in made.errors["arguments.1"]
    several = form("0x1::aptos_account::batch_transfer")
    type_in(several, arguments=[["0xb0b", "0xb0b"], ["100000000", "5"]])
    assert several._findings.notes["arguments.1.0"] == "= 1 APT"
    assert several._findings.notes["arguments.1.1"] == "= 0.00000005 APT"
    assert several._now.argument_words([["0xb0b"], [5]]).count("0xb0b bob") == 1
    plain = form("0x1::aptos_account::transfer")
    assert fields_of(plain, "Arguments")[1].hint == "in octas (1 APT = 100,000,000)"


def test_a_date_becomes_the_last_version_at_or_before_it(node):
    """When it is left, or when the form is run; a time after the head is refused where it was typed."""
    form = ViewBuilder(node, "0x1::chain_id::get")
    day = f"{node.ledger().timestamp:%Y-%m-%d}"
    type_in(form, at="version", version=day)
    assert (list(form.errors), form.python) == (["version"], "")
    press(form, "time")
    [then] = resolved_plan(node, [day])[0].versions
    assert form.versions == then
    assert form._draft.version == day
    assert form._findings.notes["version"].startswith(f"= {then:,}, ")
    type_in(form, version=f"{day} 00:00")
    form.read()
    assert form.result.ledger_version == then
    type_in(form, version="2999-01-01")
    form.read()
    assert "2999-01-01" in form.errors["version"]
    form.close()


def test_a_balance_that_a_view_returns_is_said_in_whole_coins(node):
    """Its asset is the type argument, or the metadata that is an argument."""
    form = ViewBuilder(node, "0x1::coin::balance")
    form.type_arguments, form.arguments = "0x1::aptos_coin::AptosCoin", '["0xa11ce"]'
    form.read()
    assert f"= {form.result.value / 10**8:,.8f}".rstrip("0") in form._pages[0].html
    form.function = "0x1::coin::is_balance_at_least"
    form.arguments = '["0xa11ce", 1]'
    form.read()
    assert "APT" not in form._pages[0].html
    form.close()


def test_a_transfer_that_the_balance_does_not_cover_says_both(node):
    """What the sender, who is typed by name, has; and the amount, where the error stands."""
    form = SimulationBuilder(node, "0x1::aptos_account::transfer")
    form.sender, form.arguments = "bob", f'["0xa11ce", {10**14}]'
    form.simulate()
    balance = node.view("0x1::coin::balance", ["0xb0b"], type_arguments=["0x1::aptos_coin::AptosCoin"]).value
    words = form.errors["arguments.1"]
    assert f"bob has {balance / 10**8:,.8f}".rstrip("0") in words
    assert "1,000,000 APT" in words
    assert dict(form._programs)["Study"].startswith("[[call]]")
    form.close()


def test_each_signer_of_the_abi_has_a_field(form):
    """The sender is the first; the others are required, and go when another function is chosen."""
    made = form("0xbeef::pair::both")
    assert len(made._draft.secondary) == 1
    type_in(made, sender="0xa11ce", arguments=["1", "2"])
    assert made.request is None
    assert made.errors == {}
    signers = [{"address": "0xb0b", "key": {"shape": "none", "key": "", "type": "ed25519", "json": ""}}]
    type_in(made, secondary=signers)
    assert len(made.request.secondary_signers) == 1
    made.simulate()
    assert made.simulation.success
    type_in(made, secondary=[signers[0] | {"address": ""}])
    type_in(made, function="0x1::aptos_account::transfer")
    assert made._draft.secondary == ()


def test_arguments_are_named_as_in_the_published_source(form, monkeypatch):
    """Signers are left out; without a source, labels say what the types are."""
    monkeypatch.setattr(_functions, "declared_names", lambda *_: _functions.UNNAMED)
    made = form("0xbeef::pair::both")
    assert [part.label for part in fields_of(made, "Arguments").values()] == ["Number 1", "Number 2"]
    published = Packages({"pair": "Pair"}, {"pair": SOURCE.replace("<C: key>", "")})
    monkeypatch.setattr(_functions, "published_packages", lambda _node, _address: published)
    made = form("0xbeef::pair::both")
    assert [part.label for part in fields_of(made, "Arguments").values()] == ["amount", "unused"]


def test_arguments_keep_their_names_when_the_code_is_read_again(form):
    """As a check and a run do."""
    made = form("0xfa17::vault::deposit")
    assert fields_of(made, "Arguments")[0].label == "amount"
    made.sender, made.arguments = "0xa11ce", "[5]"
    assert made.check()
    assert fields_of(made, "Arguments")[0].label == "amount"


def test_names_of_parameters():
    """Comments, type parameters and line breaks do not matter; a function that does not exist gives no names."""
    assert parameter_names(SOURCE, "both") == (("C",), ("first", "second", "amount", "unused"))
    assert parameter_names(SOURCE, "alone") == ((), ())
    assert parameter_names(SOURCE, "missing") == ((), ())
    assert parameter_names("fun f(a: Table<u8, vector<u8>>, mut b: |u8|bool)", "f") == ((), ("a", "b"))
    assert parameter_names("fun f<phantom A: copy + drop, B>()", "f") == (("A", "B"), ())


def test_type_parameters_are_named_as_in_the_source(form, monkeypatch):
    """In their fields, and in the types of the arguments until a type is entered; else they are numbered."""

    def shown(made):
        types = dict.fromkeys(part.labels for _, part in call_of(made) if part.label == "Type arguments")
        return next(iter(types)), [part.type for part in fields_of(made, "Arguments").values()]

    made = form("0x1::object::transfer")
    assert shown(made) == (("kind",), ["Object<kind>", "address"])
    type_in(made, type_arguments=["0x1::object::ObjectCore"])
    press(made, "look")
    assert shown(made)[1] == ["Object", "address"]
    monkeypatch.setattr(_functions, "declared_names", lambda *_: _functions.UNNAMED)
    monkeypatch.setattr(_functions, "published_packages", lambda *_: Packages({}, {}))
    assert shown(form("0x1::object::transfer")) == (("Type argument",), ["Object<T0>", "address"])


def test_integers_of_a_call_are_written_with_separators(form):
    """As the form writes them; an amount of a known asset in whole coins."""
    made = form("0xfa17::vault::deposit")
    assert made._now.argument_words([1_000_000]) == "amount: 1,000,000"
    assert form("0x1::aptos_account::transfer")._now.argument_words(["0xb0b", "1000000"]).endswith("amount: 0.01 APT")


def test_published_sources_are_read_from_the_registry():
    """Modules without source, or with one that cannot be unpacked, are left out, as is all of it without a registry."""
    packed = gzip.compress(SOURCE.encode())
    modules = [
        {"name": "pair", "source": packed},
        {"name": "hex", "source": "0x" + packed.hex()},
        {"name": "none", "source": b""},
        {"name": "broken", "source": packed[:20]},
    ]
    registry = {"packages": [{"name": "Pairs", "modules": modules}]}
    found = published_packages(SimpleNamespace(resource=lambda *_: registry), "0x1")
    assert found.names["pair"] == "Pairs"
    assert found.sources.pop("none", "") == ""
    assert found.sources == {"pair": SOURCE, "hex": SOURCE}

    def absent(*_):
        raise NotFound("no resource", status=404)

    assert published_packages(SimpleNamespace(resource=absent), "0x1") == ({}, {})


def test_accounts_that_the_ledger_names_are_offered(form):
    """By the address that they fill in; a ledger elsewhere has names for the framework."""
    made = form("0x1::aptos_account::transfer")
    assert ("0xa11ce", "alice") in made._about.accounts
    sender = dict(call_of(made))["sender"]
    assert sender.names
    assert fields_of(made, "Arguments")[0].names
    with toolkit.connect("http://127.0.0.1:1/v1") as elsewhere:
        other = SimulationBuilder(elsewhere)
        assert ("0x1", "framework") in other._about.accounts
        assert "alice" not in dict(other._about.accounts).values()
        other.close()


@pytest.mark.parametrize(
    ("query", "name", "words"),
    [
        ("both", "0xbeef::pair::both", "(amount: u64, more: u64)"),
        ("register", "0xcafe::registry::register", "(name: String)"),
        ("0xbeef", "0xbeef::pair::", "package pair, 1 function"),
        ("", "0xbeef::", "pair"),
    ],
)
def test_contracts_of_the_known_accounts_are_found(form, query, name, words):
    """By any word, with package and argument names; for an empty query, the accounts that have contracts."""
    made = form("0x1::aptos_account::transfer")
    press(made, "search", query=query)
    assert dict(made._hits.hits)[name] == words


def test_a_search_counts_the_functions_of_the_other_kind(form):
    """A form that accepts entry functions says how many view functions match, or which one does."""
    made = form("0x1::aptos_account::transfer")
    press(made, "search", query="share_price")
    assert (made._hits.hits, "0xfa17::vault::share_price" in made._hits.error) == ((), True)
    press(made, "search", query="qqqqq")
    assert made._hits.hits == ()


def test_what_the_search_found_stays_at_the_field():
    """A part of a name is not a function id: the field says which function it matches, or of which other kind."""
    made = ViewBuilder(toolkit.connect())
    for typed, words in (("vault::dep", "0xfa17::vault::deposit"), ("share_pr", "0xfa17::vault::share_price")):
        made.function = typed
        press(made, "search", query=typed)
        assert words in made.errors["function"]
    made.function = "share"
    assert made.errors["function"].startswith("not a function id")
    made.close()


@pytest.mark.parametrize("query", ["trasnfer", "0x1::coin::trasnfer", "aptos_acount"])
def test_a_mistyped_name_is_answered_with_the_nearest(form, query):
    """Names of functions and of modules, as for accounts."""
    made = form("0x1::aptos_account::transfer")
    press(made, "search", query=query)
    assert made._hits.hits == ()
    assert ("`aptos_account`" if "acount" in query else "`transfer`") in made._hits.error


def test_the_transfers_of_wallets_come_first(form, monkeypatch):
    """Then those of the contracts beside the framework, and then the rest of the framework."""
    monkeypatch.setattr(_functions, "_RECENT", {})
    made = form("0xfa17::vault::deposit")
    press(made, "search", query="transfer")
    found = [name for name, _ in made._hits.hits]
    assert found[0] == "0x1::aptos_account::transfer"
    assert found.index("0xcafe::registry::transfer") < found.index("0x1::coin::transfer")
