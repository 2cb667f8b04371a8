"""Who may call a function, and what types must be able to do: visibility, friends, abilities, constraints."""

from __future__ import annotations

from typing import Annotated, Generic

import pytest

from toolkit import embedded
from toolkit.embedded import (
    T0,
    Enum,
    Event,
    EventHandle,
    Module,
    Object,
    Option,
    Resource,
    Struct,
    Table,
    TypeArgument,
    entry,
    friend,
    private,
    public,
    signer,
    u64,
    vector,
    view,
)
from toolkit.embedded._code import CodeSet, abilities_of
from toolkit.embedded._contract import check_abilities
from toolkit.embedded.framework import FRAMEWORK
from toolkit.errors import ContractError, InputError
from toolkit.move import parse_type_tag


class Till(Module, address="0x7111", friends=["desk"]):
    """Every visibility, with and without entry."""

    @public
    def price(self) -> u64:
        return self.secret() + 1

    @friend
    def discount(self) -> u64:
        return 5

    @entry
    @friend
    def settle(self, account: signer) -> None: ...

    @private
    @entry
    def close(self, account: signer) -> None: ...

    @entry
    def pay(self, account: signer) -> None: ...

    def secret(self) -> u64:
        return 2


class Desk(Module, address="0x7111"):
    """A friend."""

    @view
    def offer(self) -> u64:
        return self.use(Till).price() + 10 - self.use(Till).discount()

    @view
    def peek(self) -> u64:
        return self.use(Till).secret()


class Stranger(Module, address="0x5712", uses=[Till]):
    """A module at another address."""

    @view
    def price(self) -> u64:
        return self.use(Till).price()

    @view
    def discount(self) -> u64:
        return self.use(Till).discount()


class Namesake(Module, address="0x5713", name="desk", uses=[Till]):
    """A module elsewhere with the name of the friend."""

    @view
    def discount(self) -> u64:
        return self.use(Till).discount()


@pytest.fixture(scope="module")
def ledger():
    ledger = embedded.Ledger()
    ledger.publish(Till, Desk)
    ledger.publish(Stranger)
    ledger.publish(Namesake)
    return ledger


def test_the_abi_lists_public_friend_and_entry_functions():
    """A private function is listed only if transactions may call it; the order of marks is free."""
    abi = Till.definition.abi
    assert {one.name: (one.visibility, one.is_entry) for one in abi.exposed_functions} == {
        "price": ("public", False),
        "discount": ("friend", False),
        "settle": ("friend", True),
        "close": ("private", True),
        "pay": ("public", True),
    }
    assert abi.friends == ("0x7111::desk",)


def test_modules_call_what_they_may(ledger):
    """Public functions of all modules, friend functions of those that name them, private ones of none."""
    assert ledger.view("0x7111::desk::offer")[0] == [8]
    assert ledger.view("0x5712::stranger::price")[0] == [3]
    with pytest.raises(InputError, match="0x7111::desk cannot call 0x7111::till::secret, which is private"):
        ledger.view("0x7111::desk::peek")
    with pytest.raises(InputError, match="0x5712::stranger cannot call 0x7111::till::discount, which is friend"):
        ledger.view("0x5712::stranger::discount")
    with pytest.raises(InputError, match="0x5713::desk cannot call"):
        ledger.view("0x5713::desk::discount")


def test_transactions_call_entry_functions_of_any_visibility(ledger):
    """Other functions are not entry functions; methods without a mark do not exist for them."""
    for name in ("settle", "close", "pay"):
        assert ledger.commit(f"0x7111::till::{name}", sender="0xb0b").success
    assert "NON_ENTRY" in ledger.commit("0x7111::till::price", sender="0xb0b").vm_status
    with pytest.raises(InputError, match="does not exist"):
        ledger.commit("0x7111::till::secret", sender="0xb0b")


def test_a_friend_is_the_name_of_another_module():
    """Friends are at the same address, so a name is enough."""
    with pytest.raises(InputError, match="friends must be other modules"):
        type("Own", (Module,), {}, address="0x1a", friends=["own"])
    with pytest.raises(InputError, match="0x1::coin"):
        type("Own", (Module,), {}, address="0x1a", friends=["0x1::coin"])


def test_an_upgrade_may_change_friend_functions_and_friends():
    """Only public and entry functions must stay as they are."""

    class First(Module, address="0x7112", name="till", friends=["desk"]):
        @friend
        def helper(self) -> u64:
            return 1

        @private
        @entry
        def close(self, account: signer) -> None: ...

    class Second(Module, address="0x7112", name="till", friends=["office"]):
        @private
        @entry
        def close(self, account: signer) -> None: ...

    class Third(Module, address="0x7112", name="till"):
        pass

    ledger = embedded.Ledger()
    ledger.publish(First)
    ledger.publish(Second)
    with pytest.raises(InputError, match="function close is missing"):
        ledger.publish(Third)


class Vaults(Module, address="0x7113"):
    """Generic structs and functions with constraints."""

    class Token(Struct, abilities="store"):
        n: u64

    class Ticket(Struct, abilities="drop"):
        n: u64

    class Box(Resource, Generic[T0], constraints={"T0": "store"}):
        content: T0

    class Label(Struct, Generic[T0], abilities="drop copy store"):
        n: u64

    class Wrapped(Struct, Generic[T0]):
        value: T0

    class Either(Enum, Generic[T0]):
        class Left: ...

        class Right:
            value: T0

    @view
    def name_of(self, kind: Annotated[TypeArgument, "store copy"]) -> bool:
        return True

    @entry
    def fill(self, kind: TypeArgument, account: signer, content: T0) -> None:
        self.move_to(account, Vaults.Box(content=content), kind)


@pytest.fixture(scope="module")
def vaults():
    ledger = embedded.Ledger()
    ledger.publish(Vaults)
    return ledger


VAULTS = "0x7113::vaults"


@pytest.mark.parametrize(
    ("kind", "abilities"),
    [
        ("u64", "copy drop store"),
        ("signer", "drop"),
        ("vector<address>", "copy drop store"),
        ("vector<signer>", "drop"),
        (f"vector<{VAULTS}::Token>", "store"),
        ("0x1::string::String", "copy drop store"),
        (f"0x1::option::Option<{VAULTS}::Ticket>", "drop"),
        (f"0x1::object::Object<{VAULTS}::Box<u64>>", "copy drop store"),
        (f"{VAULTS}::Box<u64>", "key"),
        (f"{VAULTS}::Box<{VAULTS}::Ticket>", ""),
        (f"{VAULTS}::Label<{VAULTS}::Token>", "copy drop store"),  # phantom
        (f"{VAULTS}::Wrapped<{VAULTS}::Token>", "store"),
        (f"{VAULTS}::Wrapped<{VAULTS}::Label<{VAULTS}::Token>>", "copy drop store"),
        (f"{VAULTS}::Either<{VAULTS}::Ticket>", "drop"),
        ("0x1::coin::Coin<0x1::aptos_coin::AptosCoin>", "store"),
        (f"0x1::table::Table<u64, {VAULTS}::Token>", "store"),
        (f"0x1::event::EventHandle<{VAULTS}::Ticket>", "store"),
        ("0x7113::nothing::Here", ""),
    ],
)
def test_abilities_of_a_type(vaults, kind, abilities):
    """Those of the struct, as far as the type arguments that it holds have them."""
    code = vaults.chain.code_at(vaults.head)
    assert abilities_of(code, parse_type_tag(kind)) == frozenset(abilities.split())


def test_constraints_are_in_the_abi_and_checked_on_calls(vaults):
    """The VM refuses a type argument that lacks an ability."""
    abi = Vaults.definition.abi
    assert abi.function("name_of").generic_type_params[0].constraints == ("copy", "store")
    assert abi.struct("Box").generic_type_params[0].constraints == ("store",)
    assert abi.struct("Label").generic_type_params[0].constraints == ()
    assert vaults.view(f"{VAULTS}::name_of", [], ["u64"])[0] == [True]
    with pytest.raises(InputError, match=r"T0 must have copy, store; 0x7113::vaults::Token lacks copy"):
        vaults.view(f"{VAULTS}::name_of", [], [f"{VAULTS}::Token"])
    assert vaults.commit(f"{VAULTS}::fill", 3, sender="0xb0b", type_arguments=["u64"]).success
    refused = vaults.commit(f"{VAULTS}::fill", {"n": 3}, sender="0xb0b", type_arguments=[f"{VAULTS}::Ticket"])
    assert not refused.success
    assert refused.vm_status.startswith("CONSTRAINT_NOT_SATISFIED")


def _published(**structs):
    namespace = {"__module__": __name__, "__annotations__": {}} | structs
    contract = type("Wrong", (Module,), namespace, address="0x7114")
    return embedded.Ledger().publish(contract)


class NoStore(Struct, abilities="drop copy"):
    n: u64


class NoDrop(Struct, abilities="store"):
    n: u64


def _holding(kind, base=Resource, **options):
    return type("Holder", (base,), {"__annotations__": {"held": kind}, "__module__": __name__}, **options)


@pytest.mark.parametrize(
    ("structs", "message"),
    [
        ({"NoStore": NoStore, "Holder": _holding(NoStore)}, "field held: Holder has the ability key, so its fields"),
        ({"NoStore": NoStore, "Holder": _holding(Table[u64, NoStore])}, "type argument 1 of 0x1::table::Table must"),
        ({"NoDrop": NoDrop, "Holder": _holding(Table[NoDrop, u64])}, r"type argument 0 of 0x1::table::Table must have"),
        ({"NoDrop": NoDrop, "Holder": _holding(EventHandle[NoDrop])}, "must have drop, store; .*NoDrop lacks drop"),
        ({"NoDrop": NoDrop, "Holder": _holding(vector[NoDrop], Struct)}, "ability copy, .*; write class"),
        ({"NoDrop": NoDrop, "Holder": _holding(Option[NoDrop], Event)}, "has the ability drop, so its fields must .*"),
        ({"Holder": _holding(Object[NoStore], Struct), "NoStore": NoStore}, None),
    ],
)
def test_fields_are_checked_when_a_module_is_defined(structs, message):
    """As by a verifier: the fields of a struct have its abilities, type arguments those that are required."""
    if message is None:
        assert _published(**structs).success
    else:
        with pytest.raises(InputError, match=message):
            _published(**structs)


def test_values_are_used_as_their_abilities_allow():
    """Resources have key, events drop and store, and an item that upsert replaces drop."""

    class Used(Module, address="0x7115"):
        class Plain(Struct):
            n: u64

        class Kept(Struct, abilities="store"):
            n: u64

        class Kepts(Resource):
            kept: Table[u64, Used.Kept]

        def init_module(self, account: signer) -> None:
            self.move_to(account, Used.Kepts(kept=self.new_table()))

        @entry
        def put(self, account: signer) -> None:
            self.borrow(Used.Kepts, "0x7115").kept.upsert(1, Used.Kept(n=1))

    class Wrong(Used, address="0x7115", name="wrong"):
        @entry
        def store(self, account: signer) -> None:
            self.move_to(account, Used.Plain(n=1))

        @entry
        def tell(self, account: signer) -> None:
            self.emit(Used.Kept(n=1))

    ledger = embedded.Ledger()
    with pytest.raises(ContractError) as caught:
        ledger.publish(Wrong)
    assert [line.partition(" (")[0] for line in str(caught.value).splitlines()] == [
        "Wrong.store: self.move_to: Plain lacks the ability key: write class Plain(Resource)",
        "Wrong.tell: self.emit: Kept lacks the ability drop: write class Kept(Event)",
    ]
    ledger.publish(Used)
    with pytest.raises(InputError, match="ability drop"):
        ledger.commit("0x7115::used::put", sender="0xb0b")


def test_the_framework_satisfies_the_checks():
    """Its modules are defined without them."""
    definitions = [module.definition for module in FRAMEWORK]
    code = CodeSet({}).with_modules(definitions)
    for definition in definitions:
        check_abilities(definition.name, definition.structs.values(), definition.functions.values(), code)


def test_unknown_words_are_refused():
    """In abilities and constraints."""
    with pytest.raises(InputError, match="copy, drop, store, key; got 'sore'"):
        type("Odd", (Struct,), {}, abilities="key sore")
    with pytest.raises(InputError, match=r"constraints must be empty: .*'T0'"):
        type("Odd", (Struct,), {}, constraints={"T0": "store"})
