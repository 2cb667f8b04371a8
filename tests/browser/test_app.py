"""`ledger-toolkit app`: the workbench in a browser through Voila, for this user alone and without other hosts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

COMMAND = [sys.executable, "-m", "toolkit", "app", "--no-browser"]


def status(url, **headers):
    """Return the status of a GET, redirects not followed."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    try:
        with urllib.request.build_opener(Stay).open(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.usefixtures("voila")
def test_the_workbench_opens_and_simulates(browser, shots, axe, tmp_path):
    """The printed address shows it, light or dark; no other host is asked, other visitors are refused, Ctrl-C ends all."""
    from playwright.sync_api import expect

    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\w{48}", server.stdout.readline())[0]
            page, asked = context.new_page(), []
            page.on("request", lambda request: asked.append(request.url))
            page.goto(address, wait_until="commit")
            starting = page.locator("#starting")
            expect(starting).to_be_visible(timeout=120_000)
            page.wait_for_function(
                "() => document.getElementById('rendered_cells')?.style.display === ''", timeout=120_000
            )
            blank = (
                "!document.querySelector('.ltk-workbench') && !document.querySelector('#starting').checkVisibility()"
            )
            assert not page.evaluate(blank)  # Voila shows the cells before they are drawn
            page.get_by_label("Sender", exact=True).fill("0xa11ce", timeout=120_000)
            expect(starting).to_be_hidden()
            page.get_by_role("combobox", name="Function").fill("0x1::aptos_account::transfer")
            page.get_by_label("to address").fill("0xb0b")
            page.get_by_label("amount u64").fill("100")
            page.get_by_label("amount u64").press("Control+Enter")
            expect(page.get_by_text("Success", exact=True)).to_be_visible()
            expect(page.locator(".ltk-facts")).to_contain_text("4,999")
            assert "token" not in page.url
            page.get_by_role("tab", name="View", exact=True).click()
            view = page.get_by_role("tabpanel", name="View")
            view.get_by_role("combobox", name="Function").fill("0xfa17::vault::balance_of")
            view.get_by_label("account address").fill("bob")
            page.keyboard.press("Tab")
            expect(view.get_by_label("account address")).to_have_value("0xb0b")
            # The simulation's address is there already; the view's form has the name until the field is left.
            page.wait_for_function(
                "() => JSON.parse(decodeURIComponent(location.hash.slice(1))).forms.view.arguments[0] === '0xb0b'"
            )
            closed = []
            page.on("websocket", lambda socket: socket.on("close", lambda: closed.append(socket.url)))
            page.reload()  # what was typed is in the address, in all tabs
            expect(view.get_by_label("account address")).to_have_value("0xb0b", timeout=120_000)
            page.get_by_role("tab", name="Simulation", exact=True).click()
            expect(page.get_by_label("amount u64")).to_have_value("100", timeout=120_000)
            page.get_by_label("amount u64").press("Control+Enter")
            expect(page.get_by_text("Success", exact=True)).to_be_visible()
            page.screenshot(path=shots / "app.png")
            assert axe(page) == []
            page.emulate_media(color_scheme="dark")  # the page follows the browser
            expect(page.locator("body")).to_have_css("background-color", "rgb(17, 17, 17)")
            page.screenshot(path=shots / "app-dark.png")
            assert axe(page) == []
            page.wait_for_timeout(31_000)  # Jupyter looks every 30 s whether a page is still there
            assert closed == []
            here = address.partition("?")[0]
            others = [url for url in asked if not url.startswith((here, here.replace("http", "ws"), "blob:", "data:"))]
            assert others == []
            assert len(asked) > 20
            assert status(here) == 302  # to the page that says where the token is
            other = browser.new_context()
            visitor = other.new_page()
            assert visitor.goto(here).status == 403
            expect(visitor.get_by_text("ledger-toolkit app")).to_be_visible()
            assert visitor.locator("input").count() == 0
            other.close()
            assert status(address, Host="evil.example") == 403
            assert status(here + "voila/files/workbench.ipynb") in {302, 403}
            server.send_signal(signal.SIGINT)
            server.wait(120)
            page.get_by_label("amount u64").press("Control+Enter")
            expect(page.locator(".ltk-status.ltk-error:visible")).to_contain_text("what you type here is lost")
        finally:
            context.close()
            server.send_signal(signal.SIGINT)
            _, errors = server.communicate(timeout=120)
    assert server.returncode == 130
    # The other visitors', above; the POST with which the page that was reloaded ends its kernel is not refused.
    refused = ("Blocking ", "403 GET ", "wrote error: 'Forbidden'")
    assert [line for line in errors.splitlines() if not line.startswith(refused)] == []
    assert list(tmp_path.glob("*ledger*")) + list(tmp_path.glob("voila_*")) == []
