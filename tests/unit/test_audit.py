"""What CI says of known vulnerabilities: found ones fail it, and what could not be asked is never called clean."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "audit.py"
GOOD = {"name": "requests", "version": "2.34.2", "vulns": []}
SKIPPED = {"name": "six", "skip_reason": "Dependency not found"}
BAD = {"name": "old", "version": "1", "vulns": [{"id": "CVE-2026-1", "fix_versions": ["2"]}]}


@pytest.fixture
def audit():
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize(
    ("first", "found", "code", "words"),
    [
        ([GOOD], [GOOD], 0, "0 known vulnerabilities in 1 packages"),
        ([GOOD], [GOOD, BAD], 1, "old 1: CVE-2026-1, fixed in 2"),
        ([GOOD], [GOOD, SKIPPED], 0, "NOT ASKED about 1 packages: six"),
        ([{**SKIPPED, "name": "requests"}], [], 0, r"NOT ASKED. .* did not answer for 2 packages \(it knows none"),
        ("name not resolved", [], 0, r"NOT ASKED. .* did not answer for 2 packages \(name not resolved"),
    ],
)
def test_what_was_not_asked_is_not_clean(audit, first, found, code, words, tmp_path, monkeypatch, capsys):  # noqa: PLR0917
    """One package is asked about first; if nothing is known of it, the others are not asked about."""
    answers = iter([first, found])
    monkeypatch.setattr(audit, "dependencies", lambda _: next(answers))
    lock = tmp_path / "lock.txt"
    lock.write_text("requests==2.34.2\nsix==1\n")
    assert audit.main(lock) == code
    assert re.search(words, capsys.readouterr().out)
