"""`start` and `serve`: a node in a thread, served by uvicorn on loopback."""

from __future__ import annotations

import atexit
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from toolkit.embedded.http._app import CheckedApp, FaultyApp, create_app
from toolkit.embedded.http._connections import IDLE_TIMEOUT_S, Connections, Hosts, bounded_protocol
from toolkit.embedded.http._faults import Faults
from toolkit.embedded.http._node import Access, EmbeddedNode, Limits
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from toolkit.embedded._ledger import Ledger

__all__ = ["Server", "serve", "start"]

_LOOPBACK = "127.0.0.1"
_START_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 5.0
_BACKLOG = 2048


class Server:
    """A running node; it stops on `stop`, at the end of a ``with`` block, or when the interpreter exits.

    Servers are created by `start`.

    Attributes
    ----------
    url : str
        Base URL, which ends in ``/v1``.
    faults : Faults
        Latency and faults; can be changed while the node runs.
    node : EmbeddedNode
        The node that is served.

    Raises
    ------
    InputError
        If the node cannot listen on the address and port.
    """

    def __init__(self, node: EmbeddedNode, *, faults: Faults, host: str, port: int) -> None:
        self.node = node
        self.faults = faults
        self._socket = _listen(host, port)
        bound_port = self._socket.getsockname()[1]
        shown_host = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown_host}:{bound_port}/v1"
        self.connections = Connections(node.limits)
        app = FaultyApp(create_app(node), node, faults)
        config = uvicorn.Config(
            CheckedApp(app, node, Hosts(host, node.access.host_names)),
            http=bounded_protocol(AutoHTTPProtocol, self.connections),
            # Larger than the node's own limit, which must apply first.
            h11_max_incomplete_event_size=2 * node.limits.header_bytes,
            ws="none",
            log_config=None,  # the program configures logging, and stdout may be missing
            log_level="critical",
            access_log=False,
            lifespan="off",
            timeout_keep_alive=IDLE_TIMEOUT_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="embedded-node", daemon=True
        )
        self._started = threading.Event()
        self._thread.start()
        self._wait_until_started()
        atexit.register(self.stop)

    def __repr__(self) -> str:
        return f"<Server {self.url} of {self.node.ledger!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the node and free the port; has no effect on a stopped node."""
        atexit.unregister(self.stop)
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(_STOP_TIMEOUT_S)
        self._socket.close()

    def _wait_until_started(self) -> None:
        waited = 0.0
        while not self._server.started:
            if not self._thread.is_alive() or waited > _START_TIMEOUT_S:
                self._socket.close()
                raise InputError(f"the embedded node did not start on {self.url} within {_START_TIMEOUT_S:g} s")
            self._started.wait(0.005)
            waited += 0.005


def start(
    ledger: Ledger,
    *,
    port: int = 0,
    host: str = _LOOPBACK,
    brand: str = "APTOS",
    limits: Limits | None = None,
    faults: Faults | None = None,
    access: Access | None = None,
) -> Server:
    """Serve a ledger over HTTP, in a separate thread.

    Parameters
    ----------
    ledger : Ledger
        The ledger; it may grow while it is served.
    port : int, default 0
        Port to listen on; 0 selects a free one.
    host : str, default "127.0.0.1"
        Address to listen on. Any address other than loopback exposes the node to the network.
    brand : str, default "APTOS"
        Part of the names of ledger headers.
    limits : Limits, optional
        Limits of requests.
    faults : Faults, optional
        Latency and faults, for tests and courses.
    access : Access, optional
        Access rules.

    Returns
    -------
    Server
        Stop it with ``stop()``; it also stops when the interpreter exits.

    Raises
    ------
    InputError
        If the node cannot listen on the address and port, or the brand is not valid.

    Examples
    --------
    >>> from toolkit import embedded
    >>> with embedded.start(embedded.Ledger()) as server:
    ...     server.url.endswith("/v1")
    True
    """
    node = EmbeddedNode(ledger, brand=brand, limits=limits, access=access)
    return Server(node, faults=faults or Faults(), host=host, port=port)


@contextmanager
def serve(
    ledger: Ledger,
    *,
    port: int = 0,
    host: str = _LOOPBACK,
    brand: str = "APTOS",
    limits: Limits | None = None,
    faults: Faults | None = None,
    access: Access | None = None,
) -> Iterator[str]:
    """Serve a ledger over HTTP during a ``with`` block.

    Parameters
    ----------
    ledger, port, host, brand, limits, faults, access
        As for `start`.

    Yields
    ------
    str
        Base URL, which ends in ``/v1``.

    Raises
    ------
    InputError
        If the node cannot listen on the address and port, or the brand is not valid.

    Examples
    --------
    >>> from toolkit import embedded
    >>> with embedded.serve(embedded.Ledger()) as url:
    ...     url.startswith("http://127.0.0.1:")
    True
    """
    with start(ledger, port=port, host=host, brand=brand, limits=limits, faults=faults, access=access) as server:
        yield server.url


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    listener.set_inheritable(False)
    return listener
