"""The language of docstrings, comments, messages and documents: a word list that catches what plain English does not need."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What is avoided, and what to write instead. The list is a smoke detector: reading is what counts (CONTRIBUTING.md).
AVOIDED = {
    r"\b(?:is|are|was|were) no (?!longer|more|less)[a-z]+": "'is not a ...', or name what is missing",
    r"\banew\b": "'again'",
    r"\b[Rr]oads?\b": "'connection', 'path' or the name of the thing",
    r"\bto be had\b|\bis had\b": "'available'",
    r"\b[Tt]old\b|\b[Tt]ells?\b|\b[Tt]elling\b": "'reports', 'says', 'states' or 'shows'",
    r"\bhand(?:s|ed)? on\b": "'passes'",
    r"\bstands? (?:at|on|beside|above|below|here|there|in for)\b": "'is', 'uses' or the verb meant",
    r"\bas it (?:lies|stands)\b": "'unchanged'",
    r"\bof its own accord\b|\bby themselves\b": "'automatically'",
    r"\bof no use\b|\bno use\b": "'cannot help'",
    r"\bmay hang\b.*\bhere\b": "a sentence with its subject",
    r"\bbroken off\b": "'interrupted' or 'stopped'",
    r"\bon the way\b": "name the step",
    r"\bthat is to say\b|\bwhatsoever\b|\bthereof\b|\bhitherto\b|\bwhence\b": "plain words",
}
PATTERN = re.compile("|".join(f"(?:{pattern})" for pattern in AVOIDED))
CONSTANT = re.compile(r"^_?(?:MOST|LONGEST|FASTEST|LEAST|SHORTEST)_", re.MULTILINE)


def python_texts(path: Path) -> list[tuple[int, str]]:
    """Return the string constants and comments of a module with their lines."""
    source = path.read_text("utf-8")
    texts = [
        (node.lineno, node.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    comments = (token for token in tokenize.generate_tokens(io.StringIO(source).readline))
    return texts + [(token.start[0], token.string) for token in comments if token.type == tokenize.COMMENT]


def document_texts(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a Markdown file, or of a notebook's Markdown cells."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text("utf-8"))["cells"]
        lines = [line for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"]]
    else:
        lines = path.read_text("utf-8").splitlines()
    return list(enumerate(lines, 1))


def findings(texts: list[tuple[int, str]]) -> list[str]:
    return [f"line {line}: {match[0]!r}" for line, text in texts for match in PATTERN.finditer(text)]


# Texts that stay: VM status of transactions in the seeded history, whose digest is pinned.
PINNED = {"There is no open order of that id"}

PACKAGES = sorted({path.relative_to(ROOT / "toolkit").parts[0] for path in (ROOT / "toolkit").rglob("*.py")})


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_avoid_the_words_of_the_list(package):
    """Docstrings, messages and comments contain none of the avoided phrases; constants are MAX_, MIN_ and DEFAULT_."""
    place = ROOT / "toolkit" / package
    found = []
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        name = path.relative_to(ROOT)
        texts = [(line, text) for line, text in python_texts(path) if text not in PINNED]
        found += [f"{name} {each}" for each in findings(texts)]
        found += [f"{name}: constant {match[0]!r}" for match in CONSTANT.finditer(path.read_text("utf-8"))]
    assert found == [], "\n".join(["avoided phrases:", *found])


DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "data/README.md",
    "data/samples/README.md",
    "tests/README.md",
    "tests/benchmarks/README.md",
]
DOCUMENTS += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
DOCUMENTS += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "notebooks").rglob("*.ipynb"))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_avoid_the_words_of_the_list(document):
    """Documents and notebooks contain none of the avoided phrases."""
    assert findings(document_texts(ROOT / document)) == []


@pytest.mark.parametrize(("text", "caught"), [("There is no module.", True), ("It is no longer used.", False)])
def test_the_list_catches_a_phrase(text, caught):
    """The check can fail: an avoided phrase is found, a harmless one is not."""
    assert bool(findings([(1, text)])) == caught


def test_every_entry_of_the_list_is_a_pattern():
    """Every avoided phrase names what to write instead."""
    assert all(re.compile(pattern) and instead for pattern, instead in AVOIDED.items())
