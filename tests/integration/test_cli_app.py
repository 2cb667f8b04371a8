"""`ledger-toolkit app` before it starts anything: what it refuses, in one line; a browser test opens it."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from toolkit.cli import _app, main


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


def test_the_page_that_leads_to_the_server_is_not_blank(monkeypatch, tmp_path, capsys):
    """A browser shows it until the server answers, which starts a kernel first."""
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    server = SimpleNamespace(port=1, identity_provider=SimpleNamespace(token=tmp_path.name))
    _app._opened(server, tmp_path, browser=True)
    page = tmp_path / "open.html"
    assert opened == [page.as_uri()]
    assert "<p>Starting" in page.read_text("utf-8")
    assert f"token={tmp_path.name}" in capsys.readouterr().out
