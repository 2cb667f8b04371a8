"""Build the documentation site into ``build/docs/html``, offline: ``python docs/build.py``.

Sphinx reads a copy of the sources, so that nothing is generated among them: the pages of this folder, the notebooks,
the pages that other files of the repository are, and the pages that come from code.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
OUT = ROOT / "build" / "docs"
ELSEWHERE = {
    "CHANGELOG.md": "project/changes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "data/README.md": "reference/columns.md",
    "data/figures": "figures",
    "data/samples/README.md": "project/samples.md",
    "notebooks": "course/notebooks",
}
"""Files and folders of the repository that are pages, or that pages show, and where they are on the site."""
LOADS = re.compile(
    r"""(?:<(?:script|link|img|iframe|source|embed|object)\b[^>]*\b(?:src|srcset|href|data)=\\?["']"""
    r"""|(?:url\(|@import)\s*["']?|\b(?:fetch|import|importScripts)\(\s*["'`])(?:https?:)?$"""
)
"""What stands before the ``//`` of an address that a browser loads by itself."""


def sources() -> dict[Path, Path]:
    """Return the files that Sphinx reads: place in the copy, place in the repository."""
    found = {path.relative_to(DOCS): path for path in DOCS.rglob("*") if path.is_file()}
    found = {place: path for place, path in found.items() if place.parts[0] not in {"gallery", "__pycache__"}}
    for place, target in ELSEWHERE.items():
        origin = ROOT / place
        if origin.is_file():
            found[Path(target)] = origin
        for path in origin.rglob("*"):
            if (
                path.suffix in {".ipynb", ".md", ".png", ".svg"}
                and not {"checkpoint", "solutions"} & set(re.split(r"\W", str(path.relative_to(origin))))
                and not path.match("course/*.ipynb")
            ):  # `lessons` makes these
                found[target / path.relative_to(origin)] = path
    return found


def command_line() -> str:
    """Return the page of the command line: what ``--help`` says, command by command."""
    import typer
    from typer.cli import get_docs_for_click

    from toolkit.cli import app

    group = typer.main.get_command(app)
    text = get_docs_for_click(
        obj=group, ctx=typer.Context(group), name="ledger-toolkit", title="All commands and options"
    )
    text = text.replace("\b\n", "")  # which keeps click from filling a paragraph
    text = re.sub(r"\*\*Commands\*\*:\n\n(?:\* .*\n)+", "", text)  # cut summaries; the contents of the page list them
    for title, language in (("Examples", "bash"), ("Exit codes", "text")):
        block = rf"**{title}**:\n\n```{language}\n\1```\n"
        text = re.sub(rf"^{title}:\n((?:  .*\n)+)", block, text, flags=re.MULTILINE)
    return text


def lessons() -> dict[str, str]:
    """Return the lessons as pages: as for students, but what a lesson asks to predict is folded, not missing."""
    sys.path.insert(0, str(ROOT / "notebooks"))
    from make_course import pages

    return pages()


def stage(folder: Path) -> None:
    """Bring the copy up to date; files that did not change keep their time, so that Sphinx reads only the others."""
    wanted = sources()
    for place, origin in wanted.items():
        target = folder / place
        if not target.exists() or target.stat().st_mtime != origin.stat().st_mtime:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(origin, target)
    generated = {folder / "reference" / "commands.md": command_line()}
    generated |= {folder / "course" / "notebooks" / "course" / name: text for name, text in lessons().items()}
    for target, text in generated.items():
        if not target.exists() or target.read_text("utf-8") != text:
            target.write_text(text, "utf-8")
    for path in folder.rglob("*"):
        if path.suffix in {".md", ".ipynb"} and path not in generated and path.relative_to(folder) not in wanted:
            path.unlink()
    remove_stale(folder)


def remove_stale(folder: Path) -> None:
    """Remove what earlier builds generated for names and scripts that are gone."""
    pages = "".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"^   ([\w.]+)$", pages, re.MULTILINE))
    for stub in (folder / "reference" / "api").glob("*.rst"):
        if not {stub.stem, stub.stem.rpartition(".")[2]} & listed:
            stub.unlink()
    scripts, copies = (
        {path.relative_to(place) for path in place.rglob("*.py")} for place in (DOCS / "gallery", folder / "gallery")
    )
    if copies - scripts:
        shutil.rmtree(folder / "gallery")


def loaded_from_elsewhere(files: Iterable[Path]) -> list[str]:
    """Return where pages, styles and scripts load something from another host, which an offline site must not."""
    found = []
    for path in files:
        *before, _ = path.read_text("utf-8").split("//")  # a host follows each
        found += [f"{path}: {part[-80:]}//" for part in before if LOADS.search(part[-300:])]
    return found


def write_texts(html: Path) -> None:
    """Write the text of each page as a script: `site.js` takes excerpts from it if the site is opened from a file."""
    texts = {}
    for page in html.rglob("*.html"):
        if found := re.search(r"<article\b.*?>(.*)</article>", page.read_text("utf-8"), re.DOTALL):
            shown = re.sub(
                r"<(script|style)\b.*?</\1>|<a class=\"headerlink\".*?</a>|<[^>]+>", " ", found[1], flags=re.DOTALL
            )
            texts[str(page.relative_to(html).with_suffix(""))] = " ".join(shown.split())
    (html / "_static" / "pages.js").write_text(f"window.PAGES = {json.dumps(texts)};\n", "utf-8")


def main(arguments: list[str]) -> int:
    """Build the site; a warning is an error, and so is what a page loads from another host."""
    # The trees of all pages stay: the garbage collector would look through them again and again, a tenth of the time.
    gc.set_threshold(100_000)
    from sphinx.cmd.build import main as sphinx

    out = Path(arguments[0]) if arguments else OUT
    os.environ["LEDGER_TOOLKIT_GALLERY"] = str(DOCS / "gallery")
    stage(out / "source")
    quiet = (
        [] if sys.stdout.isatty() else ["-q"]
    )  # a terminal shows how far Sphinx is, elsewhere `conf.py` prints its stages
    options = ["-W", "--keep-going", "-n", *quiet, "-j", "2", "-d", str(out / "doctrees")]
    failed = sphinx([*options, str(out / "source"), str(out / "html")])
    html = out / "html"
    write_texts(html)
    loading = loaded_from_elsewhere([*html.rglob("*.html"), *html.rglob("*.css"), *html.glob("_static/*.js")])
    for line in loading:
        print(f"error: loaded from another host: {line}")
    if failed or loading:
        return failed or 1
    print(f"The site is {html / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
