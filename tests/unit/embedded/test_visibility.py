"""Who may call a function, and what type arguments must be able to do: visibility, friends, constraints."""

from __future__ import annotations

from typing import Annotated, Generic

import pytest

from toolkit import embedded
from toolkit.embedded import (
    T0,
    Module,
    Resource,
    Struct,
    TypeArgument,
    entry,
    friend,
    private,
    public,
    signer,
    u64,
    view,
)
from toolkit.errors import ContractError, InputError


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
    with pytest.raises(InputError, match=r"0x7111::desk .*0x7111::till::secret.*private"):
        ledger.view("0x7111::desk::peek")
    with pytest.raises(InputError, match=r"0x5712::stranger .*0x7111::till::discount.*friend"):
        ledger.view("0x5712::stranger::discount")
    with pytest.raises(InputError, match="0x5713::desk cannot call"):
        ledger.view("0x5713::desk::discount")


def test_transactions_call_entry_functions_of_any_visibility(ledger):
    """Other functions are not entry functions; methods without a mark do not exist for them."""
    for name in ("settle", "close", "pay"):
        assert ledger.commit(f"0x7111::till::{name}", sender="0xb0b").success
    with pytest.raises(InputError, match="not an entry function"):
        ledger.commit("0x7111::till::price", sender="0xb0b")
    with pytest.raises(InputError, match="does not exist"):
        ledger.commit("0x7111::till::secret", sender="0xb0b")


def test_a_friend_is_the_name_of_another_module():
    """Friends are at the same address, so a name is enough."""
    with pytest.raises(InputError, match=r"\bfriends\b"):
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


def test_constraints_are_in_the_abi(vaults):
    """A model does not check them."""
    abi = Vaults.definition.abi
    assert abi.function("name_of").generic_type_params[0].constraints == ("copy", "store")
    assert abi.struct("Box").generic_type_params[0].constraints == ("store",)
    assert vaults.view(f"{VAULTS}::name_of", [], ["u64"])[0] == [True]
    assert vaults.commit(f"{VAULTS}::fill", 3, sender="0xb0b", type_arguments=["u64"]).success


def test_only_structs_with_key_are_stored():
    """A resource has the ability key."""

    class Plain(Module, address="0x7115"):
        class Part(Struct):
            n: u64

        @entry
        def store(self, account: signer) -> None:
            self.move_to(account, Plain.Part(n=1))

    ledger = embedded.Ledger()
    ledger.publish(Plain)
    with pytest.raises(ContractError, match="ability key"):
        ledger.commit("0x7115::plain::store", sender="0xb0b")


def test_unknown_words_are_refused():
    """In abilities and constraints."""
    with pytest.raises(InputError, match="copy, drop, store, key; got 'sore'"):
        type("Odd", (Struct,), {}, abilities="key sore")
    with pytest.raises(InputError, match="got 'sore'"):
        type("Odd", (Struct,), {}, constraints={"T0": "sore"})
