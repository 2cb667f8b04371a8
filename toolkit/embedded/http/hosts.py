"""The hosts and origins a node answers, so that no web page reaches it through the reader's browser.

A page of another site can let its own name resolve to 127.0.0.1 (DNS rebinding); the browser then sends that name in
`Host`. A request of another site's page without that trick carries the site in `Origin`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

from toolkit.embedded.http.messages import ApiError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from ipaddress import IPv4Address, IPv6Address

__all__ = ["Hosts"]

_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9._-]{1,253}))(?::\d{0,5})?", re.ASCII)
_ORIGIN = re.compile(r"https?://(?P<authority>[^/]+)")
_CACHED = 64
_SHOWN = 80


class Hosts:
    """Decides which `Host` and `Origin` headers are answered.

    Loopback addresses, ``localhost`` and the address the node listens on always are; a node that listens on all
    addresses also answers any IP address, which needs no DNS.

    Parameters
    ----------
    bound : str
        Address or name the node listens on.
    names : collection of str, optional
        Further host names to answer, without a port.
    """

    def __init__(self, bound: str, names: Collection[str] = ()) -> None:
        self._names = {"localhost", bound.lower(), *(name.lower() for name in names)}
        address = _address(bound)
        self._any_address = address is not None and address.is_unspecified
        self.knows = lru_cache(_CACHED)(self._knows)

    def problem(self, headers: Sequence[tuple[bytes, bytes]], http_version: str) -> ApiError | None:
        """Return why a request is refused, or None if it is answered.

        Parameters
        ----------
        headers : sequence of (bytes, bytes)
            Names in lower case and values, as ASGI has them.
        http_version : str
            ``1.0`` needs no `Host`.

        Returns
        -------
        ApiError or None
            400 without exactly one `Host`; 403 for another site's name.
        """
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 and (hosts or http_version != "1.0"):
            return ApiError(400, "web_framework_error", "expected one `Host` header", with_ledger=False)
        for host in hosts:
            if not self.knows(host):
                return _refused("Host", host, "requests for loopback addresses, localhost and the names it was given")
        for name, value in headers:
            if name == b"origin" and not self._is_own_origin(value):
                return _refused("Origin", value, "pages of this machine")
        return None

    def _is_own_origin(self, value: bytes) -> bool:
        match = _ORIGIN.fullmatch(value.decode("latin-1").lower())
        return match is not None and self.knows(match["authority"].encode("latin-1"))

    def _knows(self, authority: bytes) -> bool:
        match = _AUTHORITY.fullmatch(authority.decode("latin-1").strip().lower())
        if match is None:
            return False
        host = match["v6"] or match["name"].removesuffix(".")
        if host in self._names or host.endswith(".localhost"):
            return True
        address = _address(host)
        return address is not None and (address.is_loopback or self._any_address)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _refused(name: str, value: bytes, answered: str) -> ApiError:
    shown = value[:_SHOWN].decode("latin-1")
    message = f"`{name}: {shown}` is refused: this embedded node answers {answered} only"
    return ApiError(403, "web_framework_error", message, with_ledger=False)
