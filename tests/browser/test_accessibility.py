"""What axe-core finds on the builders: filled, answered and failing, light and dark, 1280 and 400 px wide.

It does not press keys: `test_forms` does, since a page without findings may still be one that no keyboard can use.
"""

from __future__ import annotations

import pytest

import toolkit

pytestmark = pytest.mark.browser

TRANSFER = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])


def simulation(node, state):
    """A transfer: filled, simulated, and one that would fail."""
    form = toolkit.widgets.SimulationBuilder(node)
    form.request = toolkit.SimulationRequest(TRANSFER, sender="0xa11ce")
    if state == "failing":
        form.arguments = '["0xb0b", 99999999999999999999]'
        form.check()
        form.request = toolkit.SimulationRequest(TRANSFER, sender="0xa11ce", sequence_number=1)
    if state != "filled":
        form.simulate()
    return form


def view(node, state):
    """A view over versions: filled, answered with a figure, and one that aborts, with a wrong plan."""
    form = toolkit.widgets.ViewBuilder(node, request=toolkit.ViewFunction("0xcafe::registry::record_of", ["alice"]))
    form.versions = "4000:-1/9"
    if state == "failing":
        form.arguments = '["nobody"]'
        form.read()
        form.versions = "200:100"
    elif state == "answered":
        form.read()
    else:
        form.check()
    return form


def workbench(node, state):
    """The workbench on its first tab; failing is a node that cannot be used."""
    bench = toolkit.widgets.Workbench(None if state == "filled" else node)
    if state == "answered":
        bench.refresh()
        bench.simulation_builder.request = toolkit.SimulationRequest(TRANSFER, sender="0xa11ce")
    if state == "failing":
        bench.refresh()
        bench.connect("ftp://host")
    return bench


def gas(node, state):
    """A study of two calls: filled with one that is not complete, with a step found, and one that fits no version."""
    supply = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    other = toolkit.ViewFunction("0xcafe::registry::size", [7] if state == "failing" else [])
    study = toolkit.Study(calls=[supply, other], versions="3495:3505", node=node)
    form = toolkit.widgets.GasExplorer(node, study=study)
    if state == "filled":
        form._do_add({})
        form.check()
    else:
        form.run()
    return form


def table_item(node, state):
    """An item with the keys that transactions changed: filled, answered over versions, and one with wrong entries."""
    form = toolkit.widgets.TableItemBuilder(node, owner="0xcafe")
    form.key, form.key_range = "alice", "-50:"
    form.list_keys()
    if state == "failing":
        form.handle, form.key_type, form.versions = "0xzz", "u6", "x"
    if state != "filled":
        form.versions = "0:-1/9"
        form.read()
    return form


BUILDERS = {
    "simulation": simulation,
    "table_item": table_item,
    "view": view,
    "workbench": workbench,
    "gas": gas,
}
"""A function per builder: it returns the builder in one of the states."""


@pytest.mark.parametrize("state", ["filled", "answered", "failing"])
@pytest.mark.parametrize("name", BUILDERS)
def test_nothing_is_found_on_a_builder(bare, node, axe, shots, *, name, state):
    """No rule of WCAG 2.2 AA is broken, contrast included; nothing is wider than the page."""
    builder = BUILDERS[name](node, state)
    shown = bare(builder)
    shown.settled()
    shown.page.evaluate("document.querySelectorAll('.ltk details').forEach((one) => (one.open = true))")
    for theme, width in (("light", 1280), ("dark", 400)):  # colours depend on the theme alone, the order on the width
        shown.look(theme, width)
        shown.page.screenshot(path=shots / f"{name}_{state}_{theme}_{width}.png", full_page=True)
        assert axe(shown.page) == [], (theme, width)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    builder.close()
