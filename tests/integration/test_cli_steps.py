"""`ledger-toolkit study run`: what it tells of steps, to people and to programs."""

from __future__ import annotations

import pytest

from toolkit.cli import main


@pytest.fixture
def study(url, tmp_path):
    """Write a study of one call that steps when the vault is published, upgraded, and at the tenfold schedule."""
    place = tmp_path / "study.toml"
    place.write_text(
        f'node = "{url}"\n[versions]\nfind_steps = "0:-1"\n[[call]]\nlabel = "price"\nview = "0xfa17::vault::share_price"\n'
    )
    return place


def test_steps_are_told_in_words(study, tmp_path, capsys):
    """The cause once, the call below it, by how much."""
    assert main(["study", "run", str(study), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].split(" ")[-1] for line in lines[:6:2]] == ["code", "code", "schedule"]
    assert lines[1:6:2] == [
        "  price: available from here, at 12 gas units",
        "  price: from 12 to 4 gas units (−66.7 %)",
        "  price: from 4 to 36 gas units (×9)",
    ]
