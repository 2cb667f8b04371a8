"""`ledger-toolkit app` before it starts anything: what it refuses, in one line; a browser test opens it."""

from __future__ import annotations

import socket

import pytest

from toolkit.cli import main


@pytest.fixture
def refused(capsys):
    """Return a function that runs the command and returns the line of its error."""

    def run(*arguments):
        assert main(["app", "--no-browser", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return err

    return run


def test_without_voila_it_says_what_to_install(refused, monkeypatch):
    """The extra is named."""
    monkeypatch.setattr("toolkit.cli._app.find_spec", lambda _: None)
    assert "pip install 'ledger-toolkit[app]'" in refused()


def test_a_node_that_cannot_be_named_is_refused_before_the_server_starts(refused):
    """As by every command."""
    assert "ftp" in refused("--node", "ftp://host")


def test_a_port_in_use_is_said(refused):
    """Another one can be chosen; nothing is stopped or shared."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot listen on port {port}" in refused("--port", port)
