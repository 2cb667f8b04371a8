"""Archives: named in the text, followed on request only, by https only, and without the key elsewhere."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import URL, answer, get, refused
from toolkit.client._connection import Connection
from toolkit.client._http import Answer
from toolkit.client._node import Node
from toolkit.client._node_errors import refusal
from toolkit.errors import VersionPruned

ARCHIVE = "https://archive.test/v1"


class Road:
    """A transport that answers the same to everything and notes what was asked."""

    def __init__(self, reply):
        self.reply = reply
        self.asked = []

    def send(self, request):
        self.asked.append(request.url)
        return self.reply

    def close(self):
        self.asked.append("closed")


def pruned(archive=None, header=None):
    given = refused(410, "version_pruned", "Ledger version(5) has been pruned")
    headers = dict(given.headers) | ({"X-Aptos-Archival-Endpoint": header} if header else {})
    body = given.body if archive is None else given.body[:-1] + f',"archival_endpoint":"{archive}"}}'.encode()
    return Answer(410, headers, body)


def test_the_text_names_the_archive():
    """A pruned read says where the version may still be read, and how to go there."""
    error = refusal("view x", pruned(archive=ARCHIVE))
    assert isinstance(error, VersionPruned)
    assert error.archive == ARCHIVE
    assert "archive=True" in str(error)


@pytest.mark.parametrize(
    "named", ["http://archive.test/v1", "ftp://archive.test", "javascript:alert(1)", "https://", "x" * 500, ""]
)
def test_only_https_archives_count(named):
    """Only an absolute https URL is an archive."""
    assert refusal("x", pruned(archive=named)).archive is None


def test_the_header_counts_too_and_credentials_are_dropped():
    """A gateway's header names an archive as a body does; user names in it are left out."""
    assert refusal("x", pruned(header="https://me:secret@archive.test")).archive == ARCHIVE


def test_an_archive_is_followed_on_request_only():
    """Without archive=True the refusal stands; with it the same path is read there."""
    here, there = Road(pruned(archive=ARCHIVE)), Road(answer(["7"]))
    plain = Connection(URL, here)
    with pytest.raises(VersionPruned):
        get(plain, "/view", asked="x", query={"ledger_version": 5})
    following = Connection(URL, here, archive=lambda _: there)
    assert get(following, "/view", asked="x", query={"ledger_version": 5}).status == 200
    assert there.asked == [f"{ARCHIVE}/view?ledger_version=5"]


def test_an_archive_that_refuses_leaves_the_first_answer():
    """If the archive does not have the version either, the error is the node's own."""
    following = Connection(URL, Road(pruned(archive=ARCHIVE)), archive=lambda _: Road(refused(401, "x", "no")))
    with pytest.raises(VersionPruned):
        get(following, "/view", asked="x")


@pytest.mark.parametrize(("archive", "goes"), [("https://node.test/archive/v1", True), (ARCHIVE, False)])
@pytest.mark.parametrize("url", ["https://node.test/v1", "https://me:SECRET@node.test/v1"])
def test_secrets_go_to_the_same_site_only(archive, goes, url, monkeypatch):
    """An archive elsewhere is asked without the key, and without the login."""
    opened = []

    def open_transport(credentials, **options):
        opened.append((credentials.api_key, credentials.login))
        return Road(answer({"type": "0x1::m::R", "data": {}}))

    monkeypatch.setattr("toolkit.client._node._open_transport", open_transport)
    key = None if "@" in url else "SECRET"
    with Node(url, api_key=key, archive=True, transport=Road(pruned(archive=archive))) as node:
        node.resource("0x1", "0x1::m::R", ledger_version=5)
    sent = (key, None) if key else (None, "me:SECRET")
    assert opened == [sent if goes else (None, None)]
