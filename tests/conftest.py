"""Shared fixtures; none is automatic."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of recorded answers beside the repository, or skip with the reason."""
    if not SHARED_DATA.is_dir():
        pytest.skip("recorded answers are not beside this checkout (../shared/data)")
    return SHARED_DATA
