"""`connect`: from a name or URL to a node; starts the embedded one on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.client.node import Node

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from toolkit.client.calls import Encoding
    from toolkit.move import ModuleAbi

__all__ = ["connect"]


def connect(
    target: str = "embedded",
    *,
    api_key: str | None = None,
    encoding: Encoding = "json",
    max_in_flight: int = 64,
    requests_per_second: float | None = None,
    cache: str | os.PathLike[str] | None = "default",
    cache_name: str | None = None,
    offline: bool = False,
    archive: bool = False,
    timeout_s: float = 30.0,
    abis: Mapping[tuple[str, str], ModuleAbi] | None = None,
) -> Node:
    """Connect to a ledger node. Nothing is sent until something is asked.

    Parameters
    ----------
    target : str, default "embedded"
        ``embedded`` (an in-process node with a seeded history of 5,000 ledger versions, started on demand and
        stopped at exit), ``mainnet``, ``testnet``, ``devnet``, ``local`` (127.0.0.1:8080), or an http(s) URL
        with or without ``/v1``.
    api_key : str, optional
        Sent as a bearer token to that host only. By default ``LEDGER_TOOLKIT_API_KEY`` of the environment, unless the
        URL has a user name and password; an empty text is none at all.
    encoding : {"json", "bcs"}, default "json"
        How views and table items travel where their types are known; values are equal either way.
    max_in_flight : int, default 64
        Most requests at once of the fetch functions.
    requests_per_second : float, optional
        Most requests started per second.
    cache : "default", path or None
        Where answers to pinned reads are stored: on disk for a public node, in memory for one on this machine or
        its network, in the file that is named, or nowhere.
    cache_name : str, optional
        Answers are stored for the host that gave them. Nodes with the same `cache_name` share theirs instead: use it
        for hosts of one chain that you trust equally.
    offline : bool, default False
        Never ask the node: what is not kept raises `OfflineMiss`. The head is the one last seen.
    archive : bool, default False
        Read pruned versions from the archive that the node advertises, if it names one by https.
    timeout_s : float, default 30.0
        Limit in seconds for connecting, and for each wait for bytes. After ten times as long a request ends, complete
        or not, and is not repeated.
    abis : mapping of (address, module name) to ModuleAbi, optional
        ABIs to use instead of the node's.

    Returns
    -------
    Node

    Raises
    ------
    InputError
        If `target` is neither a known name nor a usable URL, or a setting cannot be used.

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect()
    >>> node.ledger().chain_id
    4
    """
    return Node(
        target,
        api_key=api_key,
        encoding=encoding,
        max_in_flight=max_in_flight,
        requests_per_second=requests_per_second,
        cache=cache,
        cache_name=cache_name,
        offline=offline,
        archive=archive,
        timeout_s=timeout_s,
        abis=abis,
    )
