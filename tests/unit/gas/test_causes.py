"""Why gas moved: by what the transaction wrote, by what differs between the ends, or not known."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.fakes import URL, FakeNode, answer, function, module, refused, struct, user_transaction
from tests.unit.gas.observed import cause_of
from toolkit.client._node import Node
from toolkit.gas._calls import Call
from toolkit.gas._cause_sentences import explanation_text
from toolkit.gas._observations import Cause
from toolkit.gas._steps import Step
from toolkit.gas.causes import _finding as finding
from toolkit.gas.causes._evidence import Evidence
from toolkit.gas.causes._facts import Role
from toolkit.gas.causes._finding import causes_of
from toolkit.move import decode_module_abi

FUNCTION = "0xca11::m::count"
ALICE, BOB = "0xa11ce", "0xb0b"
HANDLE = "0x" + "0" * 63 + "7"
BEFORE = "9"
SCHEDULE = "GET /accounts/0x1/resource/0x1%3A%3Agas_schedule%3A%3AGasScheduleV2"
M = module("m", address="0xca11", functions=[function("count")])
NEWER = module("m", address="0xca11", functions=[function("count", ["u8"]), function("new")], code="0x02")


def step(before=9, after=10, **more):
    known = {
        "node": "n",
        "label": "a",
        "fingerprint": "f",
        "source": "view@version",
        "gas_before": 1,
        "gas_after": 2,
        "success_before": True,
        "success_after": True,
        "error_before": None,
        "error_after": None,
    }
    return Step(version_before=before, version_after=after, **(known | more))


def both(path, before, after):
    """Answer a path by version: one value at 9 and one later; None means that it does not exist."""

    def tell(query, _):
        found = before if query["ledger_version"] == BEFORE else after
        missing = "module_not_found" if "/module/" in path else "resource_not_found"
        return refused(404, missing) if found is None else answer(found)

    return {f"GET {path}": tell}


def resource_path(tag, address="0x1"):
    return f"/accounts/{address}/resource/{tag.replace(':', '%3A')}"


def held(tag, before, after=None, *, address="0x1"):
    """A resource as it stood at 9 and later; unchanged where only one is given."""
    sides = [None if data is None else {"type": tag, "data": data} for data in (before, after or before)]
    return both(resource_path(tag, address), *sides)


def schedules(before, after=None):
    def data(entries):
        return {"feature_version": "1", "entries": [{"key": name, "val": str(val)} for name, val in entries.items()]}

    return held("0x1::gas_schedule::GasScheduleV2", data(before), data(after or before))


_TABLE = struct("Table", {"handle": "address"}, generic_type_params=[{"constraints": []}] * 2)
TABLES = both("/accounts/0x1/module/table", *[module("table", structs=[_TABLE])] * 2)


def features(before, after=None):
    return held("0x1::features::Features", {"features": before}, {"features": after or before})


def package(name, *modules, number=0, needs=()):
    return {
        "name": name,
        "upgrade_number": str(number),
        "modules": [{"name": each} for each in modules],
        "deps": [{"account": at, "package_name": needed} for at, needed in needs],
    }


def registry(address, before, after=None):
    sides = [None if packages is None else {"packages": packages} for packages in (before, after or before)]
    return held("0x1::code::PackageRegistry", *sides, address=address)


OWN = package("mine", "m", "helper", needs=[("0xdeb", "lib")])
LIB = package("lib", "math", needs=[("0x1", "framework")])
FRAMEWORK = package("framework", "coin")
REGISTRIES = registry("0xca11", [OWN]) | registry("0xdeb", [LIB]) | registry("0x1", [FRAMEWORK])
QUIET = schedules({"a": 1}) | features("0x") | REGISTRIES | both("/accounts/0xca11/module/m", M, M)


def resource(tag, address="0x5", data=None):
    written = {"type": tag, "data": data or {}}
    return {"address": address, "state_key_hash": "0x1", "type": "write_resource", "data": written}


def written(name="m", address="0xca11"):
    abi = module(name, address=address)["abi"]
    data = {"bytecode": "0x02", "abi": abi}
    return {"address": address, "state_key_hash": "0x1", "type": "write_module", "data": data}


def changed(name, address):
    """A module that is other code at 10 than at 9."""
    newer = module(name, address=address, code="0x02")
    return both(f"/accounts/{address}/module/{name}", module(name, address=address), newer)


def item(handle=HANDLE, key="0x01"):
    return {
        "state_key_hash": "0x1",
        "handle": handle,
        "key": key,
        "value": "0x02",
        "data": None,
        "type": "write_table_item",
    }


COIN = "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>"
PAYMENT = [
    resource("0x1::account::Account", ALICE),
    resource(COIN, ALICE),
    resource("0x1::coin::CoinInfo<0x1::aptos_coin::AptosCoin>", "0x1"),
    item(
        "0x1b854694ae746cdbd8d44186ca4929b2b337df21d1c74633be19b2710552fdca",
        "0x0619dc29a0aac8fa146714058e8dd6d2d0f3bdf5f6331907bf91f3acd81e6935",
    ),
]
"""What a transaction of alice writes to pay for its gas, on ledgers with coins."""

STORE = "0x" + "5" * 64
PAYMENT_IN_ASSETS = [
    resource("0x1::fungible_asset::ConcurrentSupply", "0xa"),
    resource("0x1::fungible_asset::Metadata", "0xa"),
    resource("0x1::fungible_asset::FungibleStore", STORE, {"metadata": {"inner": "0xa"}}),
    resource("0x1::object::ObjectCore", STORE, {"owner": ALICE}),
]
"""The same on ledgers whose gas coin is a fungible asset."""


def said(explanation):
    """Return an explanation in words."""
    return explanation_text(explanation)


def exact(*changes, routes=None, function=FUNCTION, gas=(1, 2), **transaction):
    """Return the cause of an exact step whose transaction, by alice, wrote `changes`."""
    told = user_transaction(10, **({"type": "user_transaction", "changes": list(changes)} | transaction))
    fake = FakeNode({"GET /transactions/by_version/10": answer(told)} | QUIET | (routes or {}))
    one = step(gas_before=gas[0], gas_after=gas[1])
    return cause_of(one, Node(URL, transport=fake), function)


class TestSchedule:
    """A step at a transaction that wrote what gas costs."""

    TAG = "0x1::gas_schedule::GasScheduleV2"

    def test_the_parameters_that_changed_are_told(self):
        """Old, new and ratio of the parameter, and the transaction: hash, type, sender and function."""
        cause = exact(resource(self.TAG, "0x1"), *PAYMENT, routes=schedules({"a": 10, "b": 7}, {"a": 100, "b": 7}))
        assert cause.cause == "schedule"
        assert tuple(cause.found) == ("schedule",)
        assert "1 of 2 parameters changed, a from 10 to 100 (×10)" in said(cause)
        assert cause.transaction.hash == f"0x{10:064x}"
        assert cause.transaction.type == "user_transaction"
        assert cause.transaction.sender == "0x" + "0" * 59 + "a11ce"
        assert cause.transaction.function == "0x1::aptos_account::transfer"
        assert said(cause).startswith("transaction 10 (0x1::aptos_account::transfer by 0xa11ce) changed the gas")

    def test_a_uniform_change_is_said_as_such(self):
        """Every parameter tenfold is one fact, not many; that small figures move by less is explained."""
        routes = schedules({"a": 10, "b": 7, "c": 0}, {"a": 100, "b": 70, "c": 0})
        cause = exact(resource(self.TAG, "0x1"), routes=routes, gas=(1, 4))
        assert "2 of 3 parameters changed, every one ×10" in said(cause)
        [change] = cause.found[Cause.SCHEDULE]
        assert (change.price_ratio, change.rounded) == (10, True)
        [change] = exact(resource(self.TAG, "0x1"), routes=routes, gas=(3, 30)).found[Cause.SCHEDULE]
        assert not change.rounded

    @pytest.mark.parametrize(
        "write",
        [resource("0x1::gas_schedule::GasScheduleV2", "0x1"), written(), resource("0x1::features::Features", "0x1")],
        ids=["schedule", "code", "flags"],
    )
    def test_what_is_written_as_it_was_is_no_cause(self, write):
        """A write that changes nothing cannot have moved gas; the other writes are named."""
        assert exact(write, resource("0xca11::m::Book"), *PAYMENT).cause == "state"

    def test_storage_gas_belongs_to_the_schedule(self):
        """The curves of storage gas are prices too; the fields that differ are named."""
        tag = "0x1::storage_gas::StorageGasConfig"
        cause = exact(
            resource(tag, "0x1"), routes=held(tag, {"curve": "1", "other": "2"}, {"curve": "3", "other": "2"})
        )
        assert cause.cause == "schedule"
        assert "0x1::storage_gas::StorageGasConfig (curve)" in said(cause)

    @pytest.mark.parametrize(
        ("tag", "kind"), [("0x1::gas_schedule::GasScheduleV2", "schedule"), ("0x1::features::Features", "config")]
    )
    def test_what_cannot_be_read_is_still_the_cause(self, tag, kind):
        """The write is a fact; what it changed is reported as unknown, with the reason."""
        refusal = {f"GET {resource_path(tag)}": refused(403, "api_disabled", "not here")}
        cause = exact(resource(tag, "0x1"), routes=refusal)
        assert cause.cause == kind
        assert "what changed is not known: the node answered 403 api_disabled: not here" in said(cause)

    def test_somebody_elses_resource_of_that_type_is_state(self):
        """Only the framework's own schedule is charged by."""
        assert exact(resource(self.TAG, BOB)).cause == "state"


class TestCode:
    """A step at a transaction that wrote modules."""

    def test_the_called_module_is_named_with_its_functions(self):
        """What was added and what changed; the package registry and the payment are bookkeeping."""
        routes = both("/accounts/0xca11/module/m", M, NEWER)
        cause = exact(written(), resource("0x1::code::PackageRegistry", "0xca11"), *PAYMENT, routes=routes)
        assert cause.cause == "code"
        [change] = cause.found[Cause.CODE]
        assert (change.module.role, change.code, change.ran) == (Role.CALLED, None, None)
        assert "added new; changed count" in said(cause)

    @pytest.mark.parametrize(
        ("name", "address", "more", "words"),
        [
            pytest.param(
                "math", "0xdeb", {}, "0xdeb::math, a dependency of the called module 0xca11::m", id="dependency"
            ),
            pytest.param("coin", "0x1", {}, "0x1::coin, a dependency of the called", id="dependency of a dependency"),
            pytest.param("helper", "0xca11", {}, "in the called module's own package mine", id="same package"),
            pytest.param(
                "odd",
                "0x9",
                {},
                "not a declared dependency of 0xca11::m but the only change found",
                id="a stranger, by elimination",
            ),
            pytest.param(
                "odd",
                "0x9",
                registry("0xca11", None),
                "possibly a dependency of 0xca11::m, which no package registry lists",
                id="no registry",
            ),
            pytest.param(
                "odd",
                "0x9",
                held("0x1::code::PackageRegistry", {"packages": 5}, address="0xca11"),
                "0x9::odd",
                id="a registry of another shape",
            ),
        ],
    )
    def test_another_module_is_named_with_its_role(self, name, address, more, words):
        """By the registries of packages: what the called module needs, what is in its package, or what is not known."""
        cause = exact(written(name, address), *PAYMENT, routes=changed(name, address) | more)
        assert cause.cause == "code"
        assert words in said(cause)

    def test_a_stranger_is_not_the_cause_where_something_else_was_written(self):
        """A module that no dependency leads to is not claimed beside state that was written."""
        cause = exact(written("odd", "0x9"), resource("0xca11::m::Book"), *PAYMENT, routes=changed("odd", "0x9"))
        assert cause.cause == "state"
        assert "0x9::odd" not in said(cause)

    @pytest.mark.parametrize("listed", [{}, registry("0xca11", None)], ids=["another package", "no registry"])
    def test_a_stranger_that_the_call_runs_is_the_cause(self, listed):
        """Code runs without a declared dependency, too: function values, and assets that dispatch to it."""
        changes = [written("odd", "0x9"), written("helper"), resource("0x5::other::Thing"), *PAYMENT]
        told = user_transaction(10, type="user_transaction", changes=changes)
        routes = QUIET | changed("odd", "0x9") | changed("helper", "0xca11") | listed
        node = Node(URL, transport=FakeNode({"GET /transactions/by_version/10": answer(told)} | routes))
        ran = frozenset({FUNCTION, "0x9::odd::price"})
        cause = finding._explanation(step(), Evidence(node), Call.of(FUNCTION), ran)
        assert cause.cause == "code"
        odd, more = cause.found[Cause.CODE]
        assert (odd.module.id.wire, odd.module.role, odd.ran) == ("0x9::odd", Role.RUN, {"price"})
        assert more.count == 1

    def test_the_set_up_of_a_new_module_belongs_to_its_publication(self):
        """Resources and tables that `init_module` makes are not causes of their own."""
        tag = "0xca11::m::Book"
        abi = module("m", address="0xca11", structs=[struct("Book", {"orders": "u64"}, abilities=["key"])])
        routes = both("/accounts/0xca11/module/m", None, abi)
        filled = resource(tag, "0xca11", {"orders": {"handle": HANDLE}})
        cause = exact(written(), filled, item(), *PAYMENT, routes=routes)
        assert cause.cause == "code"
        assert "published the called module 0xca11::m" in said(cause)

    def test_an_upgrade_that_moves_state_is_mixed(self):
        """New code and the called module's own state, written by one transaction, are two causes."""
        routes = both("/accounts/0xca11/module/m", M, NEWER)
        cause = exact(written(), resource("0xca11::m::Book", "0xca11"), routes=routes)
        assert cause.cause == "mixed"
        assert tuple(cause.found) == ("code", "state")

    def test_a_deleted_module_is_told_as_deleted(self):
        """What it depended on is known from the version before."""
        deletion = {"address": "0xca11", "state_key_hash": "0x1", "type": "delete_module", "module": "0xca11::m"}
        gone = registry("0xca11", [OWN], [package("mine")])
        cause = exact(deletion, routes=both("/accounts/0xca11/module/m", M, None) | gone)
        assert (cause.cause, "deleted the called module 0xca11::m" in said(cause)) == ("code", True)

    def test_a_change_that_was_taken_back_is_still_seen(self):
        """Neighbours at which the module is as before do not hide that it is another one at the step."""
        told = user_transaction(10, type="user_transaction", changes=[written()])
        at = {"10": NEWER}
        fake = FakeNode(
            QUIET
            | {
                "GET /transactions/by_version/10": answer(told),
                "GET /accounts/0xca11/module/m": lambda query, _: answer(at.get(query["ledger_version"], M)),
            }
        )
        node = Node(URL, transport=fake)
        node.abis.prepare("0xca11", "m", range(1_000))
        assert node.abis.at(10).lookup("0xca11", "m").digest == node.abis.at(9).lookup("0xca11", "m").digest
        assert cause_of(step(), node, FUNCTION).cause == "code"

    def test_an_abi_of_the_callers_own_does_not_hide_a_change(self):
        """Supplied ABIs hold at every version; what the node has does not."""
        told = user_transaction(10, type="user_transaction", changes=[written()])
        routes = QUIET | {"GET /transactions/by_version/10": answer(told)} | both("/accounts/0xca11/module/m", M, NEWER)
        node = Node(URL, transport=FakeNode(routes), abis={("0xca11", "m"): decode_module_abi(M)})
        assert cause_of(step(), node, FUNCTION).cause == "code"

    def test_a_framework_upgrade_names_the_nearest_and_counts_the_rest(self):
        """A hundred modules at once: the called one first, then its own package's, then what it needs, then a number."""
        many = [written(f"a{n:03}", "0x1") for n in range(100)] + [
            written("helper"),
            written("math", "0xdeb"),
            written(),
        ]
        routes = registry("0x1", [package("framework", *(f"a{n:03}" for n in range(100)))])
        routes |= changed("helper", "0xca11") | changed("math", "0xdeb") | both("/accounts/0xca11/module/m", M, NEWER)
        for n in range(100):
            routes |= changed(f"a{n:03}", "0x1")
        fake = FakeNode(
            QUIET
            | routes
            | {"GET /transactions/by_version/10": answer(user_transaction(10, type="user_transaction", changes=many))}
        )
        cause = cause_of(step(), Node(URL, transport=fake), FUNCTION)
        told = said(cause).partition(") ")[2].split(" and ")
        assert told[0].startswith("upgraded the called module 0xca11::m")
        assert "0xca11::helper" in told[1]
        assert "0xdeb::math" in told[2]
        assert told[3] == "wrote 100 more modules"
        assert len([place for place, *_ in fake.asked if "/module/" in place]) < 30


class TestConfig:
    """A step at a transaction that wrote on-chain configuration."""

    TAG = "0x1::features::Features"

    def test_feature_flags_are_named(self):
        """Which went on and which off, by number and name where it is known."""
        routes = features("0x04" + "00" * 20, "0x" + "00" * 8 + "02" + "00" * 11 + "01")
        cause = exact(resource(self.TAG, "0x1"), *PAYMENT, routes=routes)
        assert cause.cause == "config"
        assert (
            "switched on feature flags 65 OPERATIONS_DEFAULT_TO_FA_APT_STORE, 160 (unknown flag) and "
            "switched off feature flag 2 TREAT_FRIEND_AS_PRIVATE" in said(cause)
        )

    def test_other_settings_are_named_with_the_fields_that_changed(self):
        """Any configuration of the framework."""
        tag = "0x1::staking_config::StakingConfig"
        routes = held(tag, {"rewards_rate": "1", "minimum": "5"}, {"rewards_rate": "2", "minimum": "5"})
        cause = exact(resource(tag, "0x1"), *PAYMENT, routes=routes)
        assert cause.cause == "config"
        assert "changed the configuration 0x1::staking_config::StakingConfig (rewards_rate)" in said(cause)

    def test_several_kinds_are_mixed_with_their_parts(self):
        """Schedule, code and flags at once, as a governance script writes them: all are named."""
        routes = schedules({"a": 1}, {"a": 2}) | both("/accounts/0xca11/module/m", M, NEWER) | features("0x00", "0x02")
        writes = [resource("0x1::gas_schedule::GasScheduleV2", "0x1"), written(), resource(self.TAG, "0x1"), *PAYMENT]
        cause = exact(*writes, routes=routes)
        assert cause.cause == "mixed"
        assert tuple(cause.found) == ("schedule", "code", "config")
        for words in (
            "changed the gas schedule",
            "and it upgraded the called module",
            "switched on feature flag 1 CODE",
        ):
            assert words in said(cause)

    def test_voting_is_no_part_of_what_a_proposal_changes(self):
        """A governance script writes its ballots too; they are state of somebody else."""
        ballots = [resource("0x1::voting::VotingForum<0x1::governance_proposal::GovernanceProposal>", "0x1"), item()]
        cause = exact(resource(self.TAG, "0x1"), *ballots, routes=features("0x00", "0x02"))
        assert cause.cause == "config"


class TestState:
    """A step at a transaction that wrote resources and table items."""

    @pytest.mark.parametrize(
        ("writes", "told", "left_out"),
        [
            pytest.param(
                [resource("0xcafe::book::Book"), item(), *PAYMENT],
                "wrote 0xcafe::book::Book of 0x5, item 0x01 of table 0x7",
                "CoinStore",
                id="resources by account, items by table",
            ),
            pytest.param(
                [resource("0xcafe::book::Book"), *PAYMENT_IN_ASSETS],
                "0xcafe::book::Book",
                "0x1::",
                id="a payment in assets",
            ),
            pytest.param(
                [resource(COIN, BOB), *PAYMENT],
                "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin> of 0xb0b",
                "0xa11ce,",
                id="somebody else's balance",
            ),
            pytest.param(
                [resource("0xcafe::book::Book"), resource("0xca11::m::Book", "0xca11"), *PAYMENT],
                "wrote 0xca11::m::Book of 0xca11",
                "cafe",
                id="what the called module keeps",
            ),
        ],
    )
    def test_what_was_written_is_named_and_the_payment_left_out(self, writes, told, left_out):
        """The gas coin's store of the sender is what it costs; other state is not claimed beside the module's own."""
        cause = exact(*writes)
        assert cause.cause == "state"
        assert told in said(cause)
        assert left_out not in said(cause).partition(") ")[2]

    def test_who_pays_for_another_is_bookkeeping_too(self):
        """The fee payer's balance, as the signature names him."""
        signature = {
            "type": "fee_payer_signature",
            "sender": {"type": "no_account_signature"},
            "secondary_signer_addresses": [],
            "secondary_signers": [],
            "fee_payer_address": BOB,
            "fee_payer_signer": {"type": "no_account_signature"},
        }
        cause = exact(resource("0xcafe::book::Book"), resource(COIN, BOB), signature=signature)
        assert "CoinStore" not in said(cause)

    @pytest.mark.parametrize(
        ("kind", "key", "words"),
        [
            ("u64", "0x0500000000000000", "wrote item 5 of 0xca11::m::Book.orders"),
            ("address", "0x" + "a11ce".zfill(64), "wrote item 0xa11ce of 0xca11::m::Book.orders"),
        ],
    )
    def test_an_item_of_its_own_table_is_named_by_resource_field_and_key(self, kind, key, words):
        """The handle leads to the resource, the module's ABI to the type of the key; addresses are short."""
        orders = struct("Book", {"orders": f"0x1::table::Table<{kind}, u64>"}, abilities=["key"])
        routes = both("/accounts/0xca11/module/m", *[module("m", address="0xca11", structs=[orders])] * 2) | TABLES
        routes |= held("0xca11::m::Book", {"orders": {"handle": "0x7"}}, address="0xca11")
        cause = exact(item(key=key), item("0x" + "0" * 63 + "8"), *PAYMENT, routes=routes)
        assert cause.cause == "state"
        assert words in said(cause)
        assert "table" not in said(cause)

    def test_many_writes_are_grouped_and_counted(self):
        """One type at many accounts is one thing; the first few things are named, the rest is a number."""
        cause = exact(*(resource("0xcafe::m::S", f"0x{n + 1}") for n in range(9)))
        assert "wrote 0xcafe::m::S of 9 accounts" in said(cause)
        cause = exact(*(resource(f"0xcafe::m{n}::S") for n in range(9)))
        assert "and 6 more" in said(cause)

    def test_a_payment_alone_is_state_and_said_as_such(self):
        """Where only balances were written, they are the state that changed."""
        cause = exact(*PAYMENT)
        assert cause.cause == "state"
        assert "nothing else was written" in said(cause)

    def test_a_balance_that_is_taken_away_is_no_payment(self):
        """Who turns coins into assets deletes a store: that is what the transaction does."""
        gone = {"address": ALICE, "state_key_hash": "0x1", "type": "delete_resource", "resource": COIN}
        cause = exact(gone, *PAYMENT_IN_ASSETS, function="0x1::coin::balance")
        assert cause.cause == "state"
        assert said(cause).endswith(" deleted 0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin> of 0xa11ce")

    def test_a_kind_of_change_that_is_not_known_is_told_as_one(self):
        """A newer node may write something that this toolkit does not know."""
        cause = exact({"type": "write_something", "state_key_hash": "0x1"}, *PAYMENT)
        assert "wrote a change of an unknown kind, write_something" in said(cause)

    def test_the_clock_alone_is_state(self):
        """A view of the time steps with a block."""
        writes = [
            resource("0x1::block::BlockResource", "0x1"),
            resource("0x1::timestamp::CurrentTimeMicroseconds", "0x1"),
        ]
        assert "CurrentTimeMicroseconds" in said(exact(*writes))

    def test_nothing_written_is_unexplained(self):
        """No writes, no cause; never `state`."""
        cause = exact()
        assert (cause.cause, tuple(cause.found)) == ("unexplained", ())

    @pytest.mark.parametrize(
        "refusal",
        [
            refused(403, "api_disabled"),
            refused(404, "transaction_not_found"),
            refused(410, "version_pruned"),
            answer("odd"),
        ],
    )
    def test_without_the_read_a_cause_is_unknown(self, refusal):
        """A node that does not offer the transaction leaves the cause unknown, with the reason."""
        cause = exact(routes={"GET /transactions/by_version/10": refusal})
        assert cause.cause == "unknown"
        assert "could not be read" in said(cause)

    def test_hostile_text_is_harmless(self):
        """What a transaction says of itself cannot steer a terminal."""
        cause = exact(routes={}, payload={"type": "entry_function_payload", "function": "0x1::m::\u202ef", "x": "\x1b"})
        assert "\x1b" not in said(cause)
        assert "\u202e" not in said(cause)


class TestIntervals:
    """Only the ends are known."""

    @staticmethod
    def between(routes=None, *, without=()):
        """Return the cause of a step somewhere from 9 to 50, and the node that was asked."""
        kept = {path: told for path, told in (QUIET | (routes or {})).items() if path not in without}
        fake = FakeNode(kept)
        cause = cause_of(step(9, 50), Node(URL, transport=fake), FUNCTION)
        assert cause.transaction is None
        assert not [place for place, *_ in fake.asked if "transactions" in place]
        return cause

    @pytest.mark.parametrize(
        ("routes", "cause", "words"),
        [
            pytest.param(
                schedules({"a": 10}, {"a": 20}),
                "schedule",
                "in between, the ledger changed its gas schedule: ",
                id="schedule",
            ),
            pytest.param(
                features("0x00", "0x02"),
                "config",
                "feature flag 1 CODE_DEPENDENCY_CHECK",
                id="flags by number and name",
            ),
            pytest.param(
                registry("0xdeb", [LIB], [LIB | {"upgrade_number": "2"}]),
                "code",
                "upgraded a dependency, lib (0xdeb), twice",
                id="a dependency, by the upgrades of its package",
            ),
            pytest.param(
                registry("0xca11", [OWN], [OWN | {"upgrade_number": "1"}]),
                "code",
                "upgraded the called module's own package, mine (0xca11), once",
                id="another module of the own package",
            ),
            pytest.param(
                registry("0xca11", [package("other", "n")]),
                "unknown",
                "no package registry names 0xca11::m",
                id="dependencies that are not known",
            ),
            pytest.param(
                held("0x1::features::Features", None), "unexplained", "", id="a ledger without flags has none on"
            ),
            pytest.param(
                {},
                "unexplained",
                "the gas schedule, the feature flags, 0xca11::m",
                id="nothing that was compared differs",
            ),
        ],
    )
    def test_what_differs_between_the_ends_is_the_cause(self, routes, cause, words):
        """What changed, and no transaction; where nothing differs it is unexplained, never state."""
        found = self.between(routes)
        assert found.cause == cause
        assert words in said(found)

    def test_parameters_that_only_came_are_no_cause(self):
        """New parameters do not move the gas of existing operations; they are mentioned, not blamed."""
        cause = self.between(schedules({"a": 10}, {"a": 10, "b": 3}))
        assert cause.cause == "unexplained"
        assert "the prices of the gas schedule (1 parameter added" in said(cause)
        assert "find_steps" not in said(cause)  # that is said once, of all steps

    def test_a_called_module_that_differs_is_the_cause(self):
        """Upgraded, published where it was not there before, or deleted."""
        path = "/accounts/0xca11/module/m"
        assert "upgraded the called module 0xca11::m (added new" in said(self.between(both(path, M, NEWER)))
        assert "published the called module" in said(self.between(both(path, None, M)))
        assert "deleted the called module" in said(self.between(both(path, M, None)))
        assert self.between(both(path, M, NEWER)).cause == "code"

    def test_both_are_mixed(self):
        """Nothing tells which of the two it was."""
        cause = self.between(schedules({"a": 1}, {"a": 2}) | both("/accounts/0xca11/module/m", M, NEWER))
        assert (cause.cause, tuple(cause.found)) == ("mixed", ("schedule", "code"))

    @pytest.mark.parametrize(
        "path",
        [
            f"GET {resource_path('0x1::gas_schedule::GasScheduleV2')}",
            f"GET {resource_path('0x1::features::Features')}",
            f"GET {resource_path('0x1::code::PackageRegistry', '0xca11')}",
        ],
    )
    def test_without_the_reads_it_is_unknown(self, path):
        """One read that is refused, and nothing else differs: unknown, with the reason."""
        cause = self.between({path: refused(403, "api_disabled", "no such luck")})
        assert cause.cause == "unknown"
        assert "403 api_disabled: no such luck" in said(cause)

    def test_what_could_not_be_read_is_said_beside_what_was_found(self):
        """A schedule that differs stands, with what else is not known."""
        refusal = {f"GET {resource_path('0x1::features::Features')}": refused(403, "api_disabled")}
        cause = self.between(schedules({"a": 1}, {"a": 2}) | refusal)
        assert cause.cause == "schedule"
        assert "could not be read: the feature flags" in said(cause)


class TestNode:
    """Differences that are the node's own, not the ledger's; nothing is asked."""

    @pytest.mark.parametrize(
        ("told", "words"),
        [
            ({"build_before": "abc", "build_after": "def"}, "build of the node changed from abc to def"),
            ({"build_before": "abc", "build_after": None}, "from abc to an unnamed build"),
            ({"error_before": "version_pruned", "gas_before": None}, "version 9 has been pruned from this node"),
            ({"error_after": "api_disabled", "gas_after": None}, "rejected one of the two reads (api_disabled)"),
        ],
    )
    def test_it_is_the_cause(self, told, words):
        """Another build, the pruning horizon, or the node's own rules."""
        fake = FakeNode()
        cause = cause_of(step(**told), Node(URL, transport=fake), FUNCTION)
        assert cause.cause == "node"
        assert words in said(cause)
        assert fake.asked == []


def test_steps_share_their_reads():
    """Calls that step at one version ask for its transaction and schedule once, though all ask at once."""
    told = user_transaction(10, type="user_transaction", changes=[resource("0x1::gas_schedule::GasScheduleV2", "0x1")])

    def slow(*_):
        time.sleep(0.05)
        return answer(told)

    fake = FakeNode({"GET /transactions/by_version/10": slow} | QUIET | schedules({"a": 1}, {"a": 2}))
    steps = [step(fingerprint=f"f{n}") for n in range(20)]
    node = Node(URL, transport=fake, max_in_flight=8)
    found = causes_of(steps, node, {one.fingerprint: Call.of(FUNCTION) for one in steps})
    assert [found[one].cause for one in steps] == ["schedule"] * 20
    assert len(fake.sent("GET /transactions/by_version/10")) == 1
    assert len(fake.sent(f"GET {resource_path('0x1::gas_schedule::GasScheduleV2')}")) == 2


def test_of_very_many_steps_the_largest_are_looked_into(monkeypatch):
    """Explaining a call that changes at every version does not cost several sweeps; the remaining causes are `unknown`."""
    monkeypatch.setattr("toolkit.gas.causes._finding.MAX_STEPS", 3)
    steps = [step(version, version + 7, gas_after=2 + version) for version in range(8)]
    steps.append(step(9, 10, gas_after=None, error_after="invalid_input"))
    found = causes_of(steps, Node(URL, transport=FakeNode(QUIET)), {"f": Call.of(FUNCTION)})
    assert len(found) == 9
    left = [one for one in steps if "not searched for" in said(found[one])]
    assert left == steps[:6]
    assert {found[one].cause for one in left} == {"unknown"}


ODD_KEYS = [
    "type",
    "data",
    "packages",
    "name",
    "entries",
    "features",
    "abi",
    "handle",
    "modules",
    "structs",
    "fee_payer_address",
]
ALL_CHANGES = [
    resource("0x1::gas_schedule::GasScheduleV2", "0x1"),
    resource("0x1::features::Features", "0x1"),
    resource("0x1::staking_config::StakingConfig", "0x1"),
    resource("0xca11::m::Book", "0xca11"),
    written(),
    written("odd", "0x9"),
    item(),
    *PAYMENT,
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.sampled_from(["", "0x1", "1", "0x1::m::S", "\u202e", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(ODD_KEYS), inner, max_size=4),
    max_leaves=12,
)
ODD_CHANGES = st.builds(
    lambda kind, inner: {"type": kind, "address": "0x1", "state_key_hash": "0x1", "module": "0x1::a b", "data": inner},
    st.sampled_from(["write_resource", "write_module", "delete_module", "delete_resource", "later"]),
    JSON,
)


@given(
    changes=st.lists(ODD_CHANGES | st.sampled_from(ALL_CHANGES), max_size=6),
    answers=st.lists(JSON | st.builds(lambda inner: {"type": "x", "data": inner}, JSON), min_size=1, max_size=5),
    signature=JSON,
)
def test_nothing_a_node_answers_ends_the_search_for_causes(changes, answers, signature):
    """Whatever JSON stands where a schedule, a registry, a module or a change should: each step has a cause."""
    told = user_transaction(10, type="user_transaction", changes=changes, signature=signature)

    class Odd(FakeNode):
        def send(self, request):
            if "/resource/" in request.url or "/module/" in request.url:
                return answer(answers[len(request.url) % len(answers)])
            return super().send(request)

    node = Node(URL, transport=Odd({"GET /transactions/by_version/10": answer(told)}), max_in_flight=1)
    for one in (step(), step(9, 50)):
        cause = cause_of(one, node, FUNCTION)
        assert cause.cause in {"schedule", "code", "config", "state", "mixed", "node", "unexplained", "unknown"}
        assert said(cause).isprintable()


def test_modules_that_cannot_be_read_are_not_equal():
    """If the node does not serve modules, nothing is claimed about the called one."""
    schedule = answer({"type": "x", "data": {"feature_version": "1", "entries": [{"key": "a", "val": "1"}]}})
    fake = FakeNode({SCHEDULE: schedule, "GET /accounts/0x1/module/m": refused(403, "api_disabled")})
    cause = cause_of(step(9, 50), Node(URL, transport=fake), "0x1::m::f")
    assert cause.cause == "unknown"
    assert "nor the called module changed" not in said(cause)


def test_an_upgrade_is_not_told_as_a_publication_without_reading():
    """If the node does not serve modules, a write is reported as a write."""
    written = {
        "address": "0x1",
        "state_key_hash": "0x1",
        "type": "write_module",
        "data": {"bytecode": "0x02", "abi": module("m")["abi"]},
    }
    transaction = user_transaction(10, type="user_transaction", changes=[written])
    fake = FakeNode(
        {
            "GET /transactions/by_version/10": answer(transaction),
            "GET /accounts/0x1/module/m": refused(403, "api_disabled"),
        }
    )
    cause = cause_of(step(9, 10), Node(URL, transport=fake), "0x1::m::f")
    assert cause.cause == "code"
    assert "published" not in said(cause)
