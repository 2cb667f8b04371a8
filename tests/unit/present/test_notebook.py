"""HTML of notebooks that MathJax leaves alone."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from toolkit._present.notebook import literal, show_frames_as_tables

IN_IPYTHON = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
import toolkit
import pandas as pd
def html(frame):
    return shell.display_formatter.format(frame)[0].get("text/html", "")
own, other = pd.DataFrame({"a": ["$x$"]}), pd.DataFrame({"a": ["$x$"]})
own.attrs["toolkit"] = {"a": {"unit": "none"}}
assert "mathjax_ignore" in html(own) and "mathjax_ignore" in html(own.head(1)[["a"]])
assert "mathjax_ignore" not in html(other) and "$x$" in html(other)
assert pd.get_option("display.html.use_mathjax") is True
coins = pd.DataFrame({"gas_used": [1_234_567, 2], "owner": "0x" + "ab" * 32}, index=pd.Index(["f", "g"], name="function"))
coins.attrs["toolkit"] = {"gas_used": {"unit": "gas units", "meaning": "gas of <the call>"}}
shown = html(coins)
assert all(part in shown for part in ("1,234,567", ">gas units<", "gas of &lt;the call&gt;", "0xabab", ">function<", ">g<"))
assert "ab" * 32 not in shown
assert "10 of 100 rows" in html(pd.concat([coins] * 50)) and "... " not in html(pd.concat([coins] * 30))
toolkit.set_display(False)
assert "1234567" in html(coins) and "gas units" not in html(coins) and "jax_ignore" in html(coins)
toolkit.set_display(True)
wide = pd.DataFrame({"supply": pd.array([2**100], dtype="u128")})
assert f"{2**100:,}" in html(wide) and "1,234" not in html(pd.DataFrame({"n": [1_234]}))
with pd.option_context("display.notebook_repr_html", False):
    assert html(own) == ""
steps = pd.DataFrame({"fingerprint": ["f"], "label": ["sell"], "version_after": [1234], "cause": ["code"]})
steps = steps.assign(explanation="why", gas_after=5_000, time=None)
steps.attrs["toolkit"] = {"label": {"source": "study"}}
shown = html(steps)
names = ("label", "version_after", "cause", "explanation", "gas_after", "fingerprint")
places = [shown.index(f">{name}<") for name in names]
assert places == sorted(places) and "5,000" in shown and ">1,234<" in shown and ">time<" not in shown
with pd.option_context("display.notebook_repr_html", False):
    assert html(steps) == ""
shell.display_formatter.formatters["text/html"].for_type(pd.DataFrame, lambda frame: "mine")
toolkit._show_frames_as_tables(toolkit.show)
assert html(own) == "mine"
"""

IN_A_TERMINAL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.display_formatter.active_types = ["text/plain"]  # as in a terminal
import toolkit
import pandas as pd
def text(frame):
    data, _ = shell.display_formatter.format(frame)
    assert list(data) == ["text/plain"]
    return data["text/plain"]
own, other = pd.DataFrame({"gas_used": [1_234_567]}), pd.DataFrame({"gas_used": [1_234_567]})
own.attrs["toolkit"] = {"gas_used": {"unit": "gas units"}}
assert text(own) == repr(toolkit.show(own)) != repr(own) and text(other) == repr(other)
toolkit.set_display(False)
assert text(own) == repr(own)
"""


def test_html_is_in_an_element_that_mathjax_skips():
    """Both versions of MathJax know the classes."""
    assert literal("<p>$x$</p>") == '<div class="mathjax_ignore tex2jax_ignore"><p>$x$</p></div>'


def test_ipython_shows_frames_of_the_toolkit_without_mathematics():
    """Frames of others, options of pandas and a formatter of the user's own are left as they are."""
    subprocess.run([sys.executable, "-c", IN_IPYTHON], check=True)


def test_ipython_in_a_terminal_prints_frames_of_the_toolkit_like_show():
    """Pandas omits the middle columns of wide frames, where the values are."""
    subprocess.run([sys.executable, "-c", IN_A_TERMINAL], check=True)


def test_nothing_happens_outside_of_ipython():
    """A plain interpreter has no formatter to change."""
    show_frames_as_tables(lambda *_: "table")
    assert "mathjax_ignore" not in pd.DataFrame({"a": [1]})._repr_html_()


@pytest.mark.parametrize("shell", [SimpleNamespace(), SimpleNamespace(display_formatter=None)])
def test_a_host_whose_shell_shows_nothing_can_import_the_toolkit(monkeypatch, shell):
    """As in Solara's server, which replaces `get_ipython`."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    show_frames_as_tables(lambda *_: "")
