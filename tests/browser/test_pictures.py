"""The pictures of the forms in the documentation: `LEDGER_TOOLKIT_SHOTS=data/figures pytest tests/browser/test_pictures.py`."""

from __future__ import annotations

import re

import pytest

import toolkit
from toolkit import widgets

pytestmark = pytest.mark.browser

TRANSFER = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
REGISTER = toolkit.SimulationRequest(toolkit.EntryFunction("0xcafe::registry::register", ["zoe"]), sender="0xb0b")
STUDY = toolkit.Study(calls={"share price": "0xfa17::vault::share_price"}, versions=toolkit.FindSteps("2000:3600"))


@pytest.fixture
def form(node, request):
    """Return the form of a class, which is closed after the test."""
    made = getattr(widgets, request.param)(node)
    yield made
    made.close()


def filled(form):
    """Fill in a form and return the name of its button."""
    if isinstance(form, widgets.SimulationBuilder):
        form.request = REGISTER
        return "Simulate"
    if isinstance(form, widgets.ViewBuilder):
        form.call = toolkit.ViewFunction("0xfa17::vault::share_price")
        return "Run"
    if isinstance(form, widgets.TableItemBuilder):
        return None
    form.study = STUDY
    return "Run"


@pytest.mark.parametrize(
    ("form", "picture"),
    [("SimulationBuilder", "form_simulation"), ("ViewBuilder", "form_view"), ("GasExplorer", "form_gas")],
    indirect=["form"],
)
def test_a_form_and_its_result_are_one_picture(form, picture, bare, shots):
    """Filled in and run: the picture shows the outcome."""
    from playwright.sync_api import expect

    button = filled(form)
    shown = bare(form, width=860)
    shown.page.get_by_role("button", name=button, exact=True).first.click()
    expect(shown.page.get_by_role("status").first).to_contain_text(re.compile("Success|found|returned|Done|gas"), timeout=120_000)
    shown.settled()
    shown.page.screenshot(path=shots / f"{picture}.png", full_page=True)
