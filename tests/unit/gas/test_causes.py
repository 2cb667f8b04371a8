"""Why gas moved: by what the transaction wrote, by what differs between the ends, or not known."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, function, module, refused, user_transaction
from toolkit.client.node import Node
from toolkit.gas.cause import cause_of
from toolkit.gas.schedules import schedule_words
from toolkit.gas.steps import Step
from toolkit.wire.gas import GasSchedule

FUNCTION = "0x1::m::count"
SCHEDULE_PATH = "GET /accounts/0x1/resource/0x1%3A%3Agas_schedule%3A%3AGasScheduleV2"
M_PATH = "GET /accounts/0x1/module/m"
M = module("m", functions=[function("count")])


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


def schedule(a, b=7, version=1):
    entries = [{"key": "a", "val": str(a)}, {"key": "b", "val": str(b)}]
    return answer({"type": "x", "data": {"feature_version": str(version), "entries": entries}})


def resource(tag, address="0x5"):
    return {"address": address, "state_key_hash": "0x1", "type": "write_resource", "data": {"type": tag, "data": {}}}


def written(name="m", address="0x1"):
    abi = module(name, address=address)["abi"]
    data = {"bytecode": "0x02", "abi": abi}
    return {"address": address, "state_key_hash": "0x1", "type": "write_module", "data": data}


ITEM = {
    "state_key_hash": "0x1",
    "handle": "0x" + "0" * 63 + "7",
    "key": "0x01",
    "value": "0x02",
    "data": None,
    "type": "write_table_item",
}
PAYMENT = [
    resource("0x1::account::Account", "0xa11ce"),
    resource("0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>", "0xa11ce"),
]


def exact(*changes, routes=None):
    """Return the cause of an exact step whose transaction wrote `changes`."""
    transaction = user_transaction(10, type="user_transaction", changes=list(changes))
    fake = FakeNode(
        {
            "GET /transactions/by_version/10": answer(transaction),
            SCHEDULE_PATH: lambda query, _: schedule(10 if query["ledger_version"] == "9" else 100),
            M_PATH: lambda query, _: answer(
                M
                if query["ledger_version"] == "9"
                else module("m", functions=[function("count", ["u8"]), function("new")], code="0x2")
            ),
        }
        | (routes or {})
    )
    return cause_of(step(), Node(URL, transport=fake), FUNCTION)


class TestExactSteps:
    """The transaction at the step is read."""

    def test_a_written_schedule_is_the_cause(self):
        """Old, new and ratio of the parameter, and the transaction's hash."""
        cause = exact(resource("0x1::gas_schedule::GasScheduleV2", "0x1"), *PAYMENT)
        assert cause.kind == "schedule"
        assert "a from 10 to 100 (x10)" in cause.explanation
        assert cause.transaction_hash == f"0x{10:064x}"
        assert "0x1::aptos_account::transfer" in cause.explanation

    def test_storage_gas_belongs_to_the_schedule(self):
        """The curves of storage gas are prices too."""
        assert exact(resource("0x1::storage_gas::StorageGasConfig", "0x1")).kind == "schedule"

    def test_a_written_module_is_the_cause(self):
        """The called module, what was added and what changed; the package registry is bookkeeping."""
        cause = exact(written(), resource("0x1::code::PackageRegistry"), *PAYMENT)
        assert cause.kind == "code"
        assert "upgraded the called module 0x1::m (added new; changed count)" in cause.explanation

    def test_another_module_is_named_as_such(self):
        """A dependency is no called module; one that was not there before was published."""
        cause = exact(written("dep", "0x9"))
        assert cause.kind == "code"
        assert "published a module 0x9::dep" in cause.explanation

    def test_configuration_is_the_cause(self):
        """Feature flags and other settings of 0x1."""
        cause = exact(resource("0x1::features::Features", "0x1"), *PAYMENT)
        assert cause.kind == "config"
        assert "0x1::features::Features" in cause.explanation

    def test_state_is_named(self):
        """Resources and table items that were written, the payment left out."""
        cause = exact(resource("0xcafe::book::Book"), ITEM, *PAYMENT)
        assert cause.kind == "state"
        assert "::book::Book of " in cause.explanation
        assert "an item of table 0x" in cause.explanation
        assert "CoinStore" not in cause.explanation

    def test_many_writes_are_counted(self):
        """The first few are named, the rest is a number."""
        cause = exact(*(resource(f"0xcafe::m{n}::S") for n in range(9)))
        assert "and 5 more" in cause.explanation

    def test_several_kinds_are_mixed(self):
        """Schedule and code at once: both are told."""
        cause = exact(resource("0x1::gas_schedule::GasScheduleV2"), written())
        assert cause.kind == "mixed"
        assert "changed the gas schedule" in cause.explanation
        assert "upgraded the called module" in cause.explanation

    def test_a_payment_alone_is_state(self):
        """Where only balances were written, they are the state that changed."""
        cause = exact(*PAYMENT)
        assert cause.kind == "state"
        assert "CoinStore" in cause.explanation

    def test_nothing_written_is_unexplained(self):
        """No writes, no cause; never `state`."""
        assert exact().kind == "unexplained"

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
        assert cause.kind == "unknown"
        assert "not to be had" in cause.explanation


class TestIntervals:
    """Only the ends are known."""

    @staticmethod
    def between(*, schedules=(10, 10), modules=(M, M), routes=None):
        def first(query):
            return query["ledger_version"] == "9"

        fake = FakeNode(
            {
                SCHEDULE_PATH: lambda query, _: schedule(schedules[not first(query)]),
                M_PATH: lambda query, _: (
                    refused(404, "module_not_found") if (found := modules[not first(query)]) is None else answer(found)
                ),
            }
            | (routes or {})
        )
        cause = cause_of(step(9, 50), Node(URL, transport=fake), FUNCTION)
        assert cause.transaction_hash is None
        return cause, fake

    def test_a_schedule_that_differs_is_the_cause(self):
        """What changed between the ends, and no transaction."""
        cause, fake = self.between(schedules=(10, 20))
        assert (cause.kind, "between versions 9 and 50" in cause.explanation) == ("schedule", True)
        assert not [place for place, *_ in fake.asked if "transactions" in place]

    def test_a_module_that_differs_is_the_cause(self):
        """Upgraded, or published where it was not there before."""
        other = module("m", code="0x02")
        assert "was upgraded" in self.between(modules=(M, other))[0].explanation
        assert "was published" in self.between(modules=(None, M))[0].explanation
        assert self.between(modules=(M, other))[0].kind == "code"

    def test_both_are_mixed(self):
        """Nothing tells which of the two it was."""
        assert self.between(schedules=(1, 2), modules=(None, M))[0].kind == "mixed"

    def test_neither_is_unexplained(self):
        """Nothing that was compared differs: unexplained, never state."""
        cause, _ = self.between()
        assert cause.kind == "unexplained"
        assert "not located" in cause.explanation

    def test_without_the_reads_it_is_unknown(self):
        """No schedule to be had: unknown, with the reason."""
        cause, _ = self.between(routes={SCHEDULE_PATH: refused(403, "api_disabled")})
        assert cause.kind == "unknown"


def test_another_build_of_the_node_is_the_cause():
    """Readings by two binaries tell about the binaries; nothing is asked."""
    fake = FakeNode()
    cause = cause_of(step(build_before="abc", build_after="def"), Node(URL, transport=fake), FUNCTION)
    assert cause.kind == "node"
    assert "from abc to def" in cause.explanation
    assert fake.asked == []


class TestScheduleWords:
    """schedule_words"""

    @pytest.mark.parametrize(
        ("before", "after", "words"),
        [
            ({"a": 1}, {"a": 1}, "no parameter differs"),
            ({"a": 10, "b": 1}, {"a": 15, "b": 1}, "1 of 2 parameters changed, a from 10 to 15 (x1.5)"),
            ({"a": 1, "b": 2, "c": 3}, {"a": 10, "b": 20, "c": 3}, "2 of 3 parameters changed, every one x10"),
            ({"a": 1, "b": 2}, {"a": 2, "b": 3}, "2 of 2 parameters changed, a from 1 to 2, b from 2 to 3"),
            ({"a": 0}, {"a": 5}, "1 of 1 parameters changed, a from 0 to 5"),
            ({"a": 1}, {"a": 1, "b": 2}, "1 added and 0 removed"),
            ({"a": 1, "b": 2}, {"b": 2}, "0 added and 1 removed"),
        ],
    )
    def test_what_changed_is_said_shortly(self, before, after, words):
        """Uniform changes as a ratio, few by name, additions and removals by number."""
        assert schedule_words(GasSchedule(1, before), GasSchedule(1, after)) == words

    def test_many_different_changes_name_some(self):
        """Three by name stand for all."""
        words = schedule_words(
            GasSchedule(1, {f"p{n}": 1 for n in range(9)}), GasSchedule(1, {f"p{n}": n + 2 for n in range(9)})
        )
        assert words.startswith("9 of 9 parameters changed, among them p0 from 1 to 2, p1 ")
        assert words.count("from") == 3

    def test_a_feature_version_alone_is_a_change(self):
        """The version decides which code charges."""
        assert schedule_words(GasSchedule(1, {"a": 1}), GasSchedule(2, {"a": 1})) == "feature version 1 to 2"
