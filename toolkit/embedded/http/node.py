"""The node behind the handlers: a ledger, its limits, and what every endpoint asks it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.embedded.execution import MAX_VIEW_GAS
from toolkit.embedded.http.answers import ApiError, Call
from toolkit.embedded.http.parsing import query_u64
from toolkit.errors import InputError
from toolkit.wire.headers import ledger_headers

if TYPE_CHECKING:
    from toolkit.embedded.ledger import Ledger

__all__ = ["Limits", "Node"]

_BRAND = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9]+(-[A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a node bounds.

    Parameters
    ----------
    body_bytes : int
        Largest body of a POST, bytes.
    view_gas : int
        Gas units one view may use.
    page : int
        Most transactions in one answer.
    """

    body_bytes: int = 8 * 1024 * 1024
    view_gas: int = MAX_VIEW_GAS
    page: int = 100


class Node:
    """One node serving one ledger.

    Parameters
    ----------
    ledger : Ledger
        What is served.
    brand : str, default "APTOS"
        The maker's token in header names.
    limits : Limits, optional
        What is bounded.

    Raises
    ------
    InputError
        If the brand cannot be part of a header's name.
    """

    def __init__(self, ledger: Ledger, *, brand: str = "APTOS", limits: Limits | None = None) -> None:
        if _BRAND.fullmatch(brand) is None:
            raise InputError(f"brand {brand!r}: expected up to 64 letters, digits and inner hyphens, such as APTOS")
        self.ledger = ledger
        self.chain = ledger.chain
        self.brand = brand
        self.limits = limits or Limits()
        self._headers: tuple[tuple[int, int], list[tuple[bytes, bytes]]] | None = None

    def headers(self, gas_used: int | None = None) -> list[tuple[bytes, bytes]]:
        """Return the ledger headers of the head, in lower case as HTTP servers send them."""
        with self.chain.lock:
            stamp = (self.chain.head, self.chain.oldest_version)
            known = self._headers
            if known is None or known[0] != stamp:
                texts = ledger_headers(self.chain.ledger_state(), brand=self.brand)
                encoded = [(name.lower().encode(), text.encode()) for name, text in texts.items()]
                known = self._headers = (stamp, encoded)
        if gas_used is None:
            return known[1]
        return [*known[1], (f"x-{self.brand.lower()}-gas-used".encode(), str(gas_used).encode())]

    def version(self, call: Call) -> int:
        """Return the ledger version a request reads: the one in its query, or the head.

        Raises
        ------
        ApiError
            404 above the head, 410 below what is kept.
        """
        wanted = query_u64(call, "ledger_version")
        if wanted is None:
            return self.chain.head
        if wanted > self.chain.head:
            raise ApiError(404, "version_not_found", f"Ledger version not found by Ledger version({wanted})")
        if wanted < self.chain.oldest_version:
            raise ApiError(410, "version_pruned", f"Ledger version({wanted}) has been pruned")
        return wanted
