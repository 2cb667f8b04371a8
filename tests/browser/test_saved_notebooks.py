"""Saved notebooks with forms, opened again without the kernel that made them."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.browser

SOURCE = """import toolkit

call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
form = toolkit.widgets.SimulationBuilder(toolkit.connect(), request=toolkit.SimulationRequest(call, sender="0xa11ce"))
form"""


@pytest.mark.parametrize("classic", [False, True], ids=["JupyterLab", "Notebook 7"])
def test_a_reopened_notebook_shows_the_last_result(notebook, lab, browser, shots, classic):
    """Simulate and save; without the kernel, and in a new one, the picture with the result is there, and no error.

    Notebook 7, too, leaves single keys to the form: no cell is cut or added.
    """
    from playwright.sync_api import expect

    name = f"reopened{int(classic)}"
    view = notebook(SOURCE, name=name, classic=classic, strict=False)
    picture = view.locator(".ltk-picture")
    view.get_by_role("button", name="Simulate", exact=True).click()
    expect(view.locator(".ltk-inside").get_by_text("Success", exact=True)).to_be_visible()
    expect(picture).to_be_hidden()
    view.wait_for_timeout(1_600)  # after which a picture without its form appears
    expect(picture).to_be_hidden()
    view.keyboard.press("Control+s")
    saved = lab.folder / f"work/{name}.ipynb"
    expect(view.locator(".jp-InputPrompt").first).to_have_text("[1]:")
    for _ in range(300):
        if "Would succeed" in saved.read_text("utf-8") or "Success" in saved.read_text("utf-8"):
            break
        view.wait_for_timeout(100)
    outputs = json.loads(saved.read_text("utf-8"))["cells"][0]["outputs"]
    lab.end_kernels(view)
    if classic:
        view.close()

    again = lab.show(browser, name, classic=classic, reload=True)
    again.set_viewport_size({"width": 1200, "height": 900})
    shown = again.locator(".ltk-picture")
    expect(shown).to_be_visible(timeout=120_000)
    expect(shown).to_contain_text("From: embedded, version 4,999")
    expect(shown).to_contain_text("Success")
    again.wait_for_timeout(3_000)
    again.screenshot(path=shots / f"{name}.png")
    expect(again.get_by_text("model not found")).to_be_hidden()
    expect(again.get_by_text("Loading widget")).to_be_hidden()
    if classic:  # `test_simulation_builder` presses keys in JupyterLab
        again.locator(".jp-Notebook .cm-content").first.click()
        again.keyboard.press("Control+Enter")
        again.get_by_role("button", name="Simulate", exact=True).wait_for()
        cells = again.locator(".jp-Notebook .jp-Cell").count()
        lab.press(again, ("x", "b"))
        expect(again.get_by_role("button", name="Simulate", exact=True)).to_be_visible()
        assert again.locator(".jp-Notebook .jp-Cell").count() == cells
        again.close()
    assert [list(one["data"]) for one in outputs][1] == ["text/html", "text/plain"]
