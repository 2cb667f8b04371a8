"""README and the pages of the documentation are true: their code runs, their outputs are those shown, their links exist."""

from __future__ import annotations

import json
import re
import sys

import matplotlib.pyplot as plt
import pytest

from tests.integration.documents import PAGES, ROOT, blocks, is_shown, reader, run

sys.path.insert(0, str(ROOT / "docs"))
from build import loaded_from_elsewhere, sources

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
GENERATED = {"reference/commands.md", "reference/study-keys.md", "gallery/index"}


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


def test_links_between_pages_exist():
    """Relative links of README lead to files, those of the pages to pages of the site."""
    site = {str(place) for place in sources()} | GENERATED
    broken = []
    for page in PAGES:
        for target in LINK.findall((ROOT / page).read_text("utf-8")):
            if page == "README.md":
                found = (ROOT / target).exists()
            else:
                place = (ROOT / page).parent / target
                found = str(place.resolve().relative_to(ROOT / "docs")) in site
            broken += [] if found else [f"{page}: {target}"]
    assert broken == []


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
