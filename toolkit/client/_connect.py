"""`connect`: open a node by name or URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit._present.same_name import same_name_problem
from toolkit.client._node import Node
from toolkit.client._warnings import warn_caller

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from toolkit.client._calls import Encoding
    from toolkit.client._http import Ledger
    from toolkit.move import ModuleAbi


def connect(
    target: str | Ledger = "embedded",
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
    """Connect to a ledger node. No request is sent until the first call.

    Parameters
    ----------
    target : str or Ledger, default "embedded"
        ``embedded`` (an in-process node with a seeded history of 5,000 ledger versions, which starts with the first
        call of `connect` and stops at exit), ``mainnet``, ``testnet``, ``devnet``, ``local`` (127.0.0.1:8080), an
        http(s) URL with or without ``/v1``, or a `toolkit.embedded.Ledger`, which is served on this machine until exit.
    api_key : str, optional
        Sent as a bearer token to that host only. By default the environment variable ``LEDGER_TOOLKIT_API_KEY``, unless
        the URL has a user name and password. Pass an empty string to send none.
    encoding : {"json", "bcs"}, default "json"
        Encoding of views, table items and simulations whose types are known; values are equal either way. Calls that
        nodes accept in BCS only, such as those with an argument whose type is a type parameter, are always sent in BCS.
    max_in_flight : int, default 64
        Maximum number of requests that the fetch functions send at once.
    requests_per_second : float, optional
        Maximum number of requests started per second.
    cache : "default", path or None
        Where answers to pinned reads are stored: by default on disk for a public node, and in memory for a node on this
        machine or its local network. A path names a file; None stores nothing.
    cache_name : str, optional
        Answers are stored per host. Nodes with the same `cache_name` share their answers instead: use it for hosts of
        the same chain that you trust equally.
    offline : bool, default False
        Never send requests: reads that are not in the cache raise `OfflineMiss`. The head is the last one seen.
    archive : bool, default False
        Read pruned versions from the archive that the node advertises, if its URL is https.
    timeout_s : float, default 30.0
        Timeout in seconds for connecting and for each wait for data. A request that takes ten times as long in total
        fails and is not retried.
    abis : mapping of (address, module name) to ModuleAbi, optional
        ABIs that take precedence over those of the node.

    Returns
    -------
    Node

    Raises
    ------
    InputError
        If `target` is neither a network name, a valid URL nor a ledger, or an option is invalid.

    Warns
    -----
    UserWarning
        If the unrelated distribution `toolkit`, which installs a package of the same name, is also installed.

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect()
    >>> node.ledger().chain_id
    4
    >>> from toolkit.embedded import Ledger
    >>> toolkit.connect(Ledger(chain_id=7)).ledger().chain_id
    7
    """
    given = locals()  # the parameters, which are those of the node
    if problem := same_name_problem():
        warn_caller(problem)
    return Node(**given)
