"""Fields named by the source, units, all fields of a generic function, signers, named accounts, and the last calls."""

from __future__ import annotations

import re

import pytest

import toolkit
from toolkit import embedded
from toolkit.embedded.types import u64

pytestmark = pytest.mark.browser


class Pair(embedded.Module, address="0xbeef"):
    @embedded.entry
    def both(self, first: embedded.signer, second: embedded.signer, amount: u64) -> None:
        """Take two signers."""


@pytest.fixture
def page(bare):
    """Return a page with a builder on a node that has the contract."""
    ledger = embedded.Ledger.with_history(cache=True)
    ledger.publish(Pair)
    with toolkit.connect(ledger) as node:
        builder = toolkit.widgets.SimulationBuilder(node)
        yield bare(builder).page
        builder.close()


def test_fields_say_what_they_are(page, shots):
    """Names, units and whole coins, a field per signer, open type arguments, accounts by name, and calls side by side."""
    from playwright.sync_api import expect

    function = page.get_by_role("combobox", name="Function")
    sender = page.get_by_label("Sender", exact=True)
    sender.fill("0xa11ce")
    expect(page.locator(".ltk").get_by_text("= alice").first).to_be_visible()
    accounts = page.locator(f"#{sender.get_attribute('list')} option")
    assert "alice" in accounts.evaluate_all("all => all.map((one) => one.label || one.textContent)")

    function.fill("0xbeef::pair::both")
    expect(page.get_by_label(re.compile("^amount"))).to_be_visible()  # as the contract names it
    expect(page.get_by_role("group", name="Secondary signers").get_by_label(re.compile("Address"))).to_have_count(1)
    page.screenshot(path=shots / "named_signers.png")

    function.fill("0x1::coin::transfer")
    expect(page.get_by_label("coin_type")).to_be_visible()
    expect(page.get_by_label("amount u64")).to_be_visible()  # before the type is typed
    expect(page.locator("[aria-invalid=true]")).to_have_count(0)
    page.get_by_label("coin_type").fill("0x1::aptos_coin::AptosCoin")
    page.get_by_label("to address").fill("0xb0b")
    expect(page.get_by_text("in octas (1 APT = 100,000,000)")).to_be_visible()
    page.get_by_label("amount u64").fill("250000000")
    expect(page.get_by_text("= 2.5 APT")).to_be_visible()
    page.screenshot(path=shots / "named_units.png")

    for amount in ("250000000", "1"):
        page.get_by_label("amount u64").fill(amount)
        page.get_by_label("amount u64").press("Control+Enter")
        expect(page.locator(".ltk-status")).to_have_text(re.compile("Success"))
        expect(page.locator(".ltk-answer")).to_have_attribute("open", "")
    page.get_by_role("tab", name="Recent (2)").click()
    recent = page.get_by_role("tabpanel", name="Recent")
    expect(recent).to_contain_text("Call 2")
    page.screenshot(path=shots / "named_recent.png")
    recent.get_by_role("button", name="Fill in again").first.click()
    expect(page.get_by_label("amount u64")).to_have_value("250000000")
