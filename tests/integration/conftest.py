"""Fixtures over the embedded node: one ledger and one server for the whole session."""

from __future__ import annotations

import pytest

import toolkit
from toolkit import embedded


@pytest.fixture(scope="session")
def ledger() -> embedded.Ledger:
    """Return the seeded ledger of 5,000 versions; tests only read it."""
    return embedded.Ledger.with_history(seed=7, versions=5_000)


@pytest.fixture(scope="session")
def url(ledger):
    """Return the URL of a real HTTP server over the seeded ledger."""
    with embedded.serve(ledger, port=0) as address:
        yield address


@pytest.fixture
def node(url):
    """Return a client of the seeded ledger."""
    with toolkit.connect(url) as client:
        yield client
