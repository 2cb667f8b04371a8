"""Fixtures over the embedded node: one ledger and one server for the whole session."""

from __future__ import annotations

import subprocess

import pytest

import toolkit
from toolkit import embedded
from toolkit.cli import main


@pytest.fixture(scope="session")
def ledger() -> embedded.Ledger:
    """Return the seeded ledger of 5,000 versions, which is built once; tests only read it."""
    return embedded.Ledger.with_history(seed=7, versions=5_000, cache=True)


@pytest.fixture(scope="session")
def url(ledger):
    """Return the URL of a real HTTP server over the seeded ledger."""
    with embedded.serve(ledger, port=0) as address:
        yield address


@pytest.fixture
def command(monkeypatch, capsys):
    """Return a function that runs the command line in this process, in a folder: a start of Python takes seconds."""

    def run(*arguments: str, cwd=None) -> subprocess.CompletedProcess:
        with monkeypatch.context() as patch:
            if cwd is not None:
                patch.chdir(cwd)
            code = main(arguments)
        told = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, told.out, told.err)

    return run


@pytest.fixture
def node(url):
    """Return a client of the seeded ledger."""
    with toolkit.connect(url) as client:
        yield client
