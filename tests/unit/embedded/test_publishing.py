"""Packages: dependencies declared and registered, upgrades that keep the rest, governance in one script."""

from __future__ import annotations

import pytest

from toolkit import embedded
from toolkit.embedded import Module, u64, view
from toolkit.embedded.framework._coin import UnflaggedCoin
from toolkit.embedded.teaching import CheaperPriceFeed, Desk, PriceFeed, Registry
from toolkit.errors import InputError
from toolkit.move import parse_address


class Two(Module, address="0x77", revision=1):
    """One of a package of two."""

    @view
    def two(self) -> u64:
        """Return 2."""
        return 2


class Three(Module, address="0x77"):
    """The other."""

    @view
    def five(self) -> u64:
        """Return 2 + 3: modules of one address need no declaration."""
        return self.use(Two).two() + 3


class DearerTwo(Two, revision=2):
    """The next version of one of them."""


class Sly(Module, address="0x517"):
    """Calls a module it did not declare."""

    @view
    def price(self) -> u64:
        """Return the feed's price."""
        return self.use(PriceFeed).price()


def _packages(ledger, address):
    return ledger.resource(address, "0x1::code::PackageRegistry")["packages"]


def test_a_module_that_was_not_declared_cannot_be_called():
    """The text names both modules and what to write."""
    ledger = embedded.Ledger()
    ledger.publish(PriceFeed)
    ledger.publish(Sly)
    with pytest.raises(InputError, match=r"0x517::sly calls 0xfeed::price_feed .* uses=\[PriceFeed\]"):
        ledger.view("0x517::sly::price")


def test_a_dependency_must_be_published_first():
    """Publishing names what is missing, and nothing is committed."""
    ledger = embedded.Ledger()
    head = ledger.head
    with pytest.raises(InputError, match=r"0xde5c::desk .*0xfeed::price_feed"):
        ledger.publish(Desk)
    assert ledger.head == head


def test_dependencies_are_registered_by_package():
    """Every package needs the framework; one that calls another's module needs that package too."""
    ledger = embedded.Ledger()
    ledger.publish(PriceFeed, package="Prices")
    ledger.publish(Desk)
    deps = [(dep["account"], dep["package_name"]) for dep in _packages(ledger, "0xde5c")[0]["deps"]]
    assert deps == [("0x1", "AptosFramework"), (parse_address("0xfeed"), "Prices")]
    assert _packages(ledger, "0x1")[0]["deps"] == []


def test_upgrading_one_module_keeps_the_package():
    """Number and digest change, the other module stays, the dependent's own package is untouched."""
    ledger = embedded.Ledger()
    ledger.publish(Two, Three, package="Numbers")
    (before,) = _packages(ledger, "0x77")
    done = ledger.publish(DearerTwo)
    (after,) = _packages(ledger, "0x77")
    assert [before["upgrade_number"], after["upgrade_number"]] == [0, 1]
    assert before["source_digest"] != after["source_digest"]
    assert {module["name"] for module in after["modules"]} == {"two", "three"}
    assert [str(key.name) for key in done.output.writes if key.kind == "module"] == ["two"]
    assert ledger.view("0x77::three::five")[0] == [5]


def test_a_dependents_answer_follows_the_upgrade():
    """The desk asks whatever version of the feed is published: same answer, less gas."""
    ledger = embedded.Ledger()
    ledger.publish(PriceFeed)
    ledger.publish(Desk)
    before = ledger.view("0xde5c::desk::quote", [10])
    ledger.publish(CheaperPriceFeed)
    after = ledger.view("0xde5c::desk::quote", [10])
    assert before[0] == after[0]
    assert after[1] < before[1]
    assert _packages(ledger, "0xde5c")[0]["upgrade_number"] == 0


def test_governance_does_several_things_in_one_transaction():
    """Code, schedule and features change at one version, by a script that the wire shows as one."""
    ledger = embedded.Ledger(release="v1.41.0", features=())
    done = ledger.govern(UnflaggedCoin, schedule="v1.41.1", enable=[60, 5])
    names = {str(key.name) for key in done.output.writes}
    assert {"coin", "0x1::gas_schedule::GasScheduleV2", "0x1::features::Features"} <= names
    assert ledger.view("0x1::features::is_enabled", [5])[0] == [True]
    assert _packages(ledger, "0x1")[0]["upgrade_number"] == 1
    assert ledger.govern(disable=[5]).request.executable.code != done.request.executable.code
    with pytest.raises(InputError, match="ENO_SUCH_FEATURE"):
        ledger.govern(enable=[5_000])


def test_governance_upgrades_the_framework_only():
    """Contracts at other addresses are their owners' to upgrade."""
    ledger = embedded.Ledger()
    ledger.publish(Registry)
    with pytest.raises(InputError, match=r"\b0x1 .*\b0xcafe\b"):
        ledger.govern(Registry)
