"""The pictures of the forms in the documentation.

``LEDGER_TOOLKIT_SHOTS=data/figures pytest tests/browser/test_pictures.py`` makes them again.
"""

from __future__ import annotations

import re

import pytest

import toolkit
from toolkit import widgets
from toolkit.wire import TableItemRequest

pytestmark = pytest.mark.browser

PRICE = toolkit.ViewFunction("0xfa17::vault::share_price")
REGISTER = toolkit.SimulationRequest(toolkit.EntryFunction("0xcafe::registry::register", ["zoe"]), sender="0xb0b")
STUDY = toolkit.Study(calls={"share price": "0xfa17::vault::share_price"}, versions=toolkit.FindSteps("2000:3600"))


DONE = re.compile("Success|[Ff]ound|read|Returned|observation")


@pytest.fixture
def form(node, request):
    """Return the form of a class, which is closed after the test."""
    made = getattr(widgets, request.param)(node)
    yield made
    made.close()


def fill(form):
    """Fill in a form."""
    if isinstance(form, widgets.SimulationBuilder):
        form.request = REGISTER
    elif isinstance(form, widgets.ViewBuilder):
        form.request, form.versions = PRICE, "0:-1/40"
    elif isinstance(form, widgets.TableItemBuilder):
        form.owner, form.handle = "0xcafe", form.node.view("0xcafe::registry::handle").value
        form.request = TableItemRequest("alice", key_type="String", value_type="0xcafe::registry::Record")
    elif isinstance(form, widgets.GasExplorer):
        form.study = STUDY
    else:
        form.selected, form.view_builder.request = "view", PRICE
        form.refresh()


@pytest.mark.parametrize(
    ("form", "picture"),
    [
        ("SimulationBuilder", "form_simulation"),
        ("ViewBuilder", "form_view"),
        ("GasExplorer", "form_gas"),
        ("TableItemBuilder", "form_table"),
        ("Workbench", "form_workbench"),
    ],
    indirect=["form"],
)
def test_a_form_and_its_result_are_one_picture(form, picture, bare, shots):
    """Filled in and run: the picture shows the outcome."""
    from playwright.sync_api import expect

    fill(form)
    shown = bare(form, width=860)
    shown.page.get_by_role("button", name=re.compile("^(Simulate|Read|Run)$")).click()
    expect(shown.page.get_by_role("status").filter(has_text=DONE)).to_be_visible(timeout=120_000)
    shown.settled()
    shown.page.locator(".ltk").first.screenshot(path=shots / f"{picture}.png")
