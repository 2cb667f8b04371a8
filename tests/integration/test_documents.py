"""README and the pages of the documentation are true: their code runs, their outputs are those shown, their links lead to files."""

from __future__ import annotations

import json
import re
import sys

import matplotlib.pyplot as plt
import pytest

from tests.integration.documents import PAGES, ROOT, blocks, is_shown, reader, run

sys.path.insert(0, str(ROOT / "docs"))
from build import loaded_from_elsewhere

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks((ROOT / page).read_text("utf-8"))])
def test_the_code_of_a_page_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    """In its order, in one session, on the embedded node."""
    monkeypatch.setattr(plt, "show", lambda: None)
    with reader(tmp_path):
        done = run(page)
    for block, printed in done:
        assert is_shown(block, printed), (
            f"{page}, line {block.line}: run python -m tests.integration.documents {page}\n{printed}"
        )


def test_links_lead_to_files():
    """Also where nothing is built, such as on a code host; the build of the site checks that they lead to pages."""
    linked = [(page, target) for page in PAGES for target in LINK.findall((ROOT / page).read_text("utf-8"))]
    assert len(linked) > 100
    assert [(page, target) for page, target in linked if not ((ROOT / page).parent / target).exists()] == []


def test_every_page_is_in_a_table_of_contents():
    """A page that no toctree names cannot be found."""
    listed = set()
    for page in PAGES[1:]:
        text = (ROOT / page).read_text("utf-8")
        for body in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            folder = (ROOT / page).parent
            listed |= {
                (folder / line.strip()).with_suffix(".md") for line in body.splitlines() if line[:1] not in {":", ""}
            }
    pages = {ROOT / page for page in PAGES[1:]} - {ROOT / "docs" / "index.md"}
    assert [str(page.relative_to(ROOT)) for page in sorted(pages - listed)] == []


@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").rglob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_have_no_stored_traceback(notebook):
    """The site shows the outputs as they are stored."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    failed = [
        cell["source"] for cell in cells for output in cell.get("outputs", ()) if output["output_type"] == "error"
    ]
    assert failed == []


def test_no_page_loads_anything_from_another_host():
    """Neither sources nor notebooks; `docs/build.py` looks through what it has built."""
    files = [path for path in (ROOT / "docs").rglob("*") if path.suffix in {".md", ".rst", ".css", ".js", ".html"}]
    files += (ROOT / "notebooks").rglob("*.ipynb")
    assert loaded_from_elsewhere(files) == []
