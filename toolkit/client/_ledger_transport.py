"""The transport to a ledger in this process, without a socket; forks of an embedded node use it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolkit.client import _http as http
from toolkit.client._http import Answer, Request
from toolkit.errors import ClosedError

if TYPE_CHECKING:
    from toolkit.embedded import Ledger


class LedgerTransport:
    """Transport to a ledger in this process: the thread that sends a request also handles it.

    Parameters
    ----------
    ledger : Ledger
        The ledger, which may grow while the transport is in use.
    """

    def __init__(self, ledger: Ledger) -> None:
        from toolkit.embedded.http._node import EmbeddedNode, answer_request

        self._answer_request = answer_request
        self._node = EmbeddedNode(ledger)
        self._closed = False

    def send(self, request: Request) -> Answer:
        """Handle one request.

        Raises
        ------
        ClosedError
            If the transport is closed.
        """
        if self._closed:
            raise ClosedError(http.CLOSED)
        parts = urlsplit(request.url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        status, lines, body = self._answer_request(self._node, request.method, target, request.headers, request.body)
        headers = http.lowered((name.decode("latin-1"), value.decode("latin-1")) for name, value in lines)
        return Answer(status, headers, body)

    def close(self) -> None:
        """Reject further requests: they raise ClosedError."""
        self._closed = True
