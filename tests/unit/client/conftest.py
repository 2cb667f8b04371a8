"""`server` misbehaves on demand, `transport` closes what it opened; the environment's credentials and proxies are out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.client.hostile import HostileServer, hostile_server
from toolkit.client.transport import SessionTransport

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def shared_server() -> Iterator[HostileServer]:
    with hostile_server() as server:
        yield server


@pytest.fixture
def server(shared_server: HostileServer, monkeypatch: pytest.MonkeyPatch) -> HostileServer:
    """Return the server with nothing seen yet."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NETRC", "LEDGER_TOOLKIT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    shared_server.seen.clear()
    shared_server.released.clear()
    return shared_server


@pytest.fixture
def transport() -> Iterator[SessionTransport]:
    transport = SessionTransport(api_key="topsecret", timeout_s=0.3)
    yield transport
    transport.close()
