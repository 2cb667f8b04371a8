"""Where a node is: network names and base URLs. Pure; no I/O."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from urllib.parse import urlsplit, urlunsplit

from toolkit.errors import InputError

__all__ = ["NETWORKS", "base_url", "environment_key", "is_loopback", "login_of", "redacted_url"]

NETWORKS = {
    "mainnet": "https://api.mainnet.aptoslabs.com/v1",
    "testnet": "https://api.testnet.aptoslabs.com/v1",
    "devnet": "https://api.devnet.aptoslabs.com/v1",
    "local": "http://127.0.0.1:8080/v1",
}
"""Public fullnode addresses by name. Source: the published SDKs' network tables."""

_CREDENTIALS = re.compile(r"//[^/@]*@")


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
        raise InputError(f"a node is named by text, got a {type(target).__name__}")
    if target in NETWORKS:
        return NETWORKS[target]
    told = _CREDENTIALS.sub("//", target)
    choices = f"expected one of embedded, {', '.join(NETWORKS)}, or an http(s) URL"
    try:
        parts = urlsplit(target.strip())
        host, _ = parts.hostname, parts.port  # a bad port raises here, not at the first request
    except ValueError as error:
        raise InputError(f"node {told!r} is not a usable URL ({error}); {choices}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise InputError(f"node {told!r} is neither a known network nor an http(s) URL; {choices}")
    if parts.query or parts.fragment:
        raise InputError(f"node {told!r} has a query or fragment; give the base URL only")
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


def login_of(url: str) -> str | None:
    """Return the ``user:password`` in a URL as it stands there, None where there is none."""
    return urlsplit(url).netloc.rpartition("@")[0] or None


def is_loopback(url: str) -> bool:
    """Tell whether `url` points at this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
