"""What MathJax of JupyterLab makes of dollar signs from the chain: nothing, in frames and results of the toolkit."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

SOURCE = """
import pandas as pd
import toolkit
from IPython.display import HTML, display
from toolkit._present.notebook import facts_html

def show(name, thing):
    display(HTML(f"<hr id='{name}'>"))
    display(thing)

frame = toolkit.fetch_views(toolkit.connect(), toolkit.ViewFunction(function="0x1::chain_id::get"), versions=[1, 2])
frame["text"] = pd.array(["$x^2$"] * 2, dtype="string")
class Result:
    def _repr_html_(self):
        return facts_html("call $x^2$", [("value", r"$x^2$ $$y$$ \\(z\\) &#36;w&#36;")])
show("frame", frame)
show("result", Result())
show("mathematics", pd.DataFrame({"text": ["$x^2$"]}))
"""


def test_dollar_signs_from_the_chain_are_no_mathematics(notebook):
    """Frames and results show the dollars; a frame of the user's own is typeset as before."""
    page = notebook(SOURCE, name="mathematics")
    outputs = page.locator(".jp-OutputArea-child")
    outputs.filter(has=page.locator("mjx-container")).first.wait_for(timeout=120_000)  # MathJax has been loaded and ran
    typeset = {}
    for name in ("frame", "result", "mathematics"):
        after = page.locator(f".jp-OutputArea-child:has(#{name}) + .jp-OutputArea-child")
        typeset[name] = after.locator("mjx-container").count() > 0
        assert typeset[name] or "$x^2$" in after.inner_text()
    assert typeset == {"frame": False, "result": False, "mathematics": True}
