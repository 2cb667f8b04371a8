"""The node that serves a ledger, and its limits."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.embedded._execution import MAX_VIEW_GAS
from toolkit.embedded._meter import Meter
from toolkit.embedded.http._messages import ApiError, HttpCall, query_value, u64
from toolkit.errors import InputError
from toolkit.wire._headers import ledger_headers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from toolkit.embedded._ledger import Ledger
    from toolkit.embedded._session import LedgerSnapshot

# Fewer than the requests that wait for them, because each takes time from the thread that answers the others.
_WORKERS = 4
# Gas units of execution that contract code may use in the thread that serves all requests: loops that use as much run
# for some 30 ms.
_MAX_INLINE_GAS = 1_000
# Part of a header's name: up to 64 letters, digits and inner hyphens.
_BRAND = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9]+(-[A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an embedded node.

    Parameters
    ----------
    body_bytes : int, default 8 MiB
        Maximum size of a POST body, in bytes.
    view_gas : int, default 2_000_000
        Maximum number of gas units that a view may use.
    page : int, default 100
        Maximum number of transactions in one response.

    Examples
    --------
    >>> Limits(page=10).page
    10
    """

    body_bytes: int = 8 * 1024 * 1024
    view_gas: int = MAX_VIEW_GAS
    page: int = 100


class Postponed(BaseException):
    """Contract code takes too long for the thread that answers all requests.

    It is not an `Exception`, so that contracts do not catch it.
    """


class InlineMeter(Meter):
    """The meter of contract code in the thread that answers all requests; long executions raise `Postponed`."""

    __slots__ = ()

    def _spend(self, amount: int, operation: str) -> None:
        super()._spend(amount, operation)
        if self._execution > _MAX_INLINE_GAS * self.schedule.scaling:
            raise Postponed


class EmbeddedNode:
    """A node that serves a ledger.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    brand : str, default "APTOS"
        Part of the names of ledger headers.
    limits : Limits, optional
        Limits on requests.
    host_names : collection of str, optional
        Other host names to accept.

    Raises
    ------
    InputError
        If the brand cannot be part of a header name.
    """

    def __init__(
        self, ledger: Ledger, *, brand: str = "APTOS", limits: Limits | None = None, host_names: Collection[str] = ()
    ) -> None:
        if _BRAND.fullmatch(brand) is None:
            raise InputError(f"brand must be up to 64 letters, digits and inner hyphens, such as APTOS; got {brand!r}")
        self.ledger = ledger
        self.chain = ledger.chain
        self.brand = brand
        self.limits = limits or Limits()
        self.host_names = host_names
        # Threads start on use.
        self.workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="embedded-node-worker")
        self._headers: list[tuple[bytes, bytes]] = []
        self._headers_of = (-1, -1)  # head and oldest version for which `_headers` was made

    def headers(self, gas_used: int | None = None, cursor: str | None = None) -> list[tuple[bytes, bytes]]:
        """Return the ledger headers of the head, with names in lower case."""
        with self.chain.lock:
            versions = (self.chain.head, self.chain.oldest_version)
            if self._headers_of != versions:
                texts = ledger_headers(self.chain.ledger_state(), brand=self.brand)
                self._headers = [(name.lower().encode(), text.encode()) for name, text in texts.items()]
                self._headers_of = versions
            headers = list(self._headers)
        brand = self.brand.lower()
        for name, value in (("gas-used", gas_used), ("cursor", cursor)):
            if value is not None:
                headers.append((f"x-{brand}-{name}".encode(), str(value).encode()))
        return headers

    @contextmanager
    def execution(self, call: HttpCall, version: int) -> Iterator[tuple[LedgerSnapshot, type[Meter]]]:
        """Yield the snapshot on which contract code inside the ``with`` block runs, and the class of its meter.

        A call first runs in the thread that serves all requests, because passing it to another thread would take longer
        than most calls. If it uses much gas, `Postponed` is raised, and it runs again in a worker without the lock. The
        node can then answer other requests in the meantime. Contract code changes nothing here, so running it twice has
        no visible effect. Code that uses no gas is not interrupted.
        """
        snapshot = self.chain.snapshot(version)
        if not call.in_worker:
            yield snapshot, InlineMeter
            return
        self.chain.lock.release()
        try:
            yield snapshot, Meter
        finally:
            self.chain.lock.acquire()
            self.check_kept(version)  # if it was pruned meanwhile, the reads may have been incomplete

    def version(self, call: HttpCall) -> int:
        """Return the ledger version that a request reads: the version in its query, or the head.

        Raises
        ------
        ApiError
            404 if the version is above the head, 410 if it is pruned.
        """
        wanted = query_value(call, "ledger_version", u64)
        if wanted is None:
            return self.chain.head
        if wanted > self.chain.head:
            raise ApiError(404, "version_not_found", f"Ledger version not found by Ledger version({wanted})")
        self.check_kept(wanted)
        return wanted

    def check_kept(self, version: int) -> None:
        """Raise `ApiError` if a version is pruned."""
        if version < self.chain.oldest_version:
            raise ApiError(410, "version_pruned", f"Ledger version({version}) has been pruned")
