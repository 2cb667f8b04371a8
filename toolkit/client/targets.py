"""Where a node is: network names and base URLs. Pure; no I/O."""

from __future__ import annotations

import os
import re
import socket
from difflib import get_close_matches
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit, urlunsplit

from toolkit.errors import InputError

__all__ = [
    "NETWORKS",
    "base_url",
    "environment_key",
    "is_nearby",
    "is_public_network",
    "login_of",
    "redacted_url",
    "told",
]

NETWORKS = {
    "mainnet": "https://api.mainnet.aptoslabs.com/v1",
    "testnet": "https://api.testnet.aptoslabs.com/v1",
    "devnet": "https://api.devnet.aptoslabs.com/v1",
    "local": "http://127.0.0.1:8080/v1",
}
"""Public fullnode addresses by name. Source: the published SDKs' network tables."""

_SCHEME = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]*:[/\\]+)?")
_EXTRAS = re.compile(r"[?#]")
_BELOW_BASE = re.compile(r"/v1/(?:-|accounts|blocks|estimate_gas_price|spec|tables|transactions|view)(?:/|$)")
_NEARBY_NAMES = ("localhost", "local")


def base_url(target: str) -> str:
    """Turn a network name or an http(s) URL into the base URL that ends in ``/v1``.

    Parameters
    ----------
    target : str
        ``mainnet``, ``testnet``, ``devnet``, ``local``, or an http(s) URL with or without ``/v1`` and trailing slash.

    Returns
    -------
    str
        The URL every path of the service is appended to.

    Raises
    ------
    InputError
        If `target` is neither a known name nor an http(s) URL with a host.
    """
    if not isinstance(target, str):
        raise InputError(f"a node is named by text, got {type(target).__name__}")
    if target in NETWORKS:
        return NETWORKS[target]
    shown = repr(told(target))
    choices = f"expected one of embedded, {', '.join(NETWORKS)}, or an http(s) URL"
    try:
        parts = urlsplit(target.strip())
        host, _ = parts.hostname, parts.port  # a bad port raises here, not at the first request
    except ValueError:  # its text may hold a part of a password
        raise InputError(f"node {shown} is not a usable URL: host or port cannot be read; {choices}") from None
    if parts.scheme not in {"http", "https"} or not host:
        meant = get_close_matches(target.strip().lower(), ["embedded", *NETWORKS], n=1)
        hint = f"; did you mean {meant[0]!r}?" if meant else ""
        raise InputError(f"node {shown} is neither a known network nor an http(s) URL; {choices}{hint}")
    if parts.query or parts.fragment:
        raise InputError(f"node {shown} has a query or fragment; give the base URL only")
    if "@" in parts.path:
        raise InputError(f"node {shown} has '@' after its host; in a user name or password write / as %2F, ? as %3F")
    if _BELOW_BASE.search(parts.path):
        raise InputError(f"node {shown} goes on after /v1; give the base URL only, up to and with /v1")
    path = parts.path.rstrip("/")
    if not path.endswith("/v1"):
        path += "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def environment_key() -> str | None:
    """Return the API key of the environment, None where there is none."""
    return os.environ.get("LEDGER_TOOLKIT_API_KEY") or None


def redacted_url(url: str) -> str:
    """Return `url` without user name and password, for texts, frames and reports."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def is_public_network(target: str) -> bool:
    """Return whether a name or URL that `base_url` accepts is that of a public network of `NETWORKS`, over TLS."""
    url = base_url(target) if target != "embedded" else ""
    return url.startswith("https:") and redacted_url(url) in NETWORKS.values()


def login_of(url: str) -> str | None:
    """Return the ``user:password`` in a URL as it stands there, None where there is none."""
    return urlsplit(url).netloc.rpartition("@")[0] or None


def told(target: str) -> str:
    """Return what a text may show of `target`, which need not be a URL: no login, no query, no fragment."""
    start = _SCHEME.match(target)
    scheme = start.group() if start else ""
    login, _, rest = target[len(scheme) :].rpartition("@")
    # With a ? before the @ either may be the secret's, so neither side is shown.
    return scheme + ("..." if _EXTRAS.search(login) else _EXTRAS.split(rest)[0])


def is_nearby(url: str) -> bool:
    """Tell whether `url` points at this machine or its own network, where ledgers are thrown away and begun anew.

    Loopback, private, link-local and unspecified addresses in any spelling, and names that end in ``.localhost`` or
    ``.local``. No name is looked up.
    """
    host = (urlsplit(url).hostname or "").removesuffix(".")
    try:
        address = ip_address(host)
    except ValueError:
        try:
            address = ip_address(socket.inet_aton(host))  # 127.1 and 2130706433 are addresses too
        except (OSError, ValueError):
            return host.rpartition(".")[2] in _NEARBY_NAMES
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_private or address.is_loopback or address.is_link_local or address.is_unspecified
