"""A ledger node, with views, table items, simulations, and the other reads of the REST API."""

from __future__ import annotations

import inspect
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit
from weakref import ref

from toolkit._present.notebook import facts_html
from toolkit._present.same_name import same_name_problem
from toolkit._present.text import utc, visible
from toolkit.client import _http as http
from toolkit.client._arguments import check_abis, check_count, check_encoding, check_limit, check_texts, explained
from toolkit.client._cache import NodeCache, open_cache
from toolkit.client._calls import Encoding, PreparedItem, PreparedView, TableItem, ViewResult
from toolkit.client._connection import Connection
from toolkit.client._reads import Reads
from toolkit.client._versions import as_version_or_head, moment
from toolkit.client._warnings import warn_caller
from toolkit.errors import InputError, InvalidRequest, NodeError, ToolkitError
from toolkit.wire import Batch, EntryFunction, Multisig, Script, SimulationRequest, ViewFunction

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from toolkit.client._accounts import Account, Asset
    from toolkit.client._contracts import Contract
    from toolkit.client._engine import BulkEngine
    from toolkit.client._http import Ledger, RetryPolicy, Transport
    from toolkit.client._simulation import Simulation
    from toolkit.fork._fork import Fork, ForkSimulation
    from toolkit.move import ModuleAbi

_MAX_IN_FLIGHT = 10_000  # more than any machine has sockets
_MAX_TIMEOUT_S = 86_400  # a day: a larger number is a mistake in the unit
_MAX_RATE = 1_000_000  # far above what one process sends


P = ParamSpec("P")
T = TypeVar("T")


class Node(Reads):
    """A ledger node: reads state, runs view functions and simulates transactions; never signs or submits.

    Created by `toolkit.connect`. A node is thread-safe and can be used as a context manager.

    Parameters
    ----------
    target : str or Ledger, default "embedded"
        The name of a network, a URL or a ledger, as for `connect`. A user name and password in a URL are sent to that
        host if there is no API key. Neither `url` nor a pickle contains them.
    api_key : str, optional
        Sent as a bearer token to this node's host (see `archive` for the archive node). By default, the value of the
        environment variable ``LEDGER_TOOLKIT_API_KEY``, unless the URL has a user name and password; an empty string
        sends none.
    encoding : {"json", "bcs"}, default "json"
        Encoding of views and table items whose types are known, and of simulation requests (their responses are always
        JSON). The values are the same either way. Calls that nodes accept only in BCS, such as calls with an argument
        whose type is a type parameter, are always sent in BCS.
    max_in_flight : int, default 64
        Maximum number of requests that the fetch functions send at once.
    requests_per_second : float, optional
        Maximum number of requests started per second.
    cache : "default", path or None
        Where responses to pinned reads are stored. By default, on disk for a public node, and in memory for a node on
        this machine or its network. A path names a file; None stores nothing. Because ledgers are reset and reuse chain
        ids, a session compares the hash of one transaction with the file before it uses a response from the file.
    cache_name : str, optional
        Responses are stored per host (scheme, host and port). Nodes with the same `cache_name` share their responses
        instead: use it for hosts of the same chain that you trust equally.
    offline : bool, default False
        Never send requests: reads that are not in the cache raise `OfflineMiss`. The head is the last one seen.
    archive : bool, default False
        Read pruned versions from the archive node that the node advertises, if its URL is https. The API key is sent to
        the archive node only if it has the same host and port.
    timeout_s : float, default 30.0
        Timeout in seconds for connecting and for each wait for data. A request that takes ten times as long in total
        fails and is not retried.
    abis : mapping of (address, module name) to ModuleAbi, optional
        ABIs that take precedence over the node's.
    transport : Transport, optional
        Replaces HTTP, for tests. Its responses are stored only if `cache` names a file.
    name : str, optional
        Name of the node in frames and reports. By default, its URL without credentials.
    retry : RetryPolicy, optional
        Replaces the default retry policy, for tests; also used by copies and pickles.
    sleep : callable (seconds), optional
        Replaces the wait before a request of `transport` is retried, for tests.
    clock : callable, optional
        Replaces the clock for pauses after outages, for tests; also used by copies and pickles.

    Raises
    ------
    InputError
        If `target` is neither a known name nor a usable URL, or a setting is not valid.

    Examples
    --------
    >>> import toolkit
    >>> with toolkit.Node() as node:
    ...     node.ledger().chain_id
    4
    """

    def __init__(
        self,
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
        transport: Transport | None = None,
        name: str | None = None,
        retry: RetryPolicy | None = None,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_encoding(encoding)
        max_in_flight = check_count("max_in_flight", max_in_flight, _MAX_IN_FLIGHT)
        timeout_s = check_limit("timeout_s", timeout_s, _MAX_TIMEOUT_S, "seconds")
        if requests_per_second is not None:
            requests_per_second = check_limit("requests_per_second", requests_per_second, _MAX_RATE, "per second")
        check_texts(api_key=api_key, name=name, cache_name=cache_name)
        abis = check_abis(abis)
        if (embedded := http.embedded_node(target)) is not None:
            target, api_key, name = embedded[0], "", name or embedded[1]  # it does not need a key
        url = http.base_url(target)  # type: ignore[arg-type]  # it refuses what is not a str
        login, url = http.login_of(url), http.redacted_url(url)
        if api_key is None and login is None:  # what the caller writes comes before the environment
            api_key = http.environment_key()
        api_key = api_key or None
        unsent = bool(api_key is login is None and http.environment_key())
        credentials = http.Credentials(api_key, login, unsent=unsent, proxies=http.proxy_logins())
        # Connects to the node again. Neither secrets nor sockets are part of it, because pickles contain it.
        self._connect_again = partial(
            Node,
            target=url,
            name=name,
            encoding=encoding,
            max_in_flight=max_in_flight,
            requests_per_second=requests_per_second,
            cache=cache,
            cache_name=cache_name,
            offline=offline,
            archive=archive,
            timeout_s=timeout_s,
            abis=abis,
            retry=retry,
            clock=clock,
        )
        self._owns_transport = transport is None
        self.max_in_flight, self.requests_per_second, self._timeout_s = max_in_flight, requests_per_second, timeout_s
        self.probed: Probe | None = None
        # Not a WeakSet: a worker thread may add a copy while another thread closes them.
        self._shares: dict[int, ref[Node]] = {}
        pace = http.Pace(requests_per_second)
        if transport is not None and cache == "default":
            cache = None  # the caller's transport may lead anywhere: its answers are not mixed with others
        connection = Connection(
            url,
            transport or _open_transport(credentials, timeout_s=timeout_s, max_in_flight=max_in_flight, pace=pace),
            cache=NodeCache(url, open_cache(url, cache), offline=offline, shared=cache_name),
            retry=retry,
            pace=pace,
            max_in_flight=max_in_flight,
            archive=self._archive_transport if archive else None,
            credentials=credentials,
            sleep=sleep,
            clock=clock,
        )
        super().__init__(connection, name=name or url, encoding=encoding, abis=abis, clock=clock)
        if self._owns_transport:
            self.reconnect = _reconnected, (self._connect_again, api_key is not None)

    def __repr__(self) -> str:
        head = self._connection.newest
        known = "" if head is None else f", chain_id={head.chain_id}, head={head.version}"
        return f"Node({visible(self.name)!r}{known})"

    def _repr_html_(self) -> str:
        head = self._connection.newest
        seen = None if head is None else f"{head.version:,} of {utc(head.timestamp)}"
        facts = [
            ("URL", self.url if self.url != self.name else None),
            ("chain id", None if head is None else head.chain_id),
            ("head, as last seen", seen),
            ("oldest version", None if head is None else head.oldest_version),
            ("", "not read yet" if head is None else None),
            ("encoding", self.encoding if self.encoding != "json" else None),
            ("", "closed" if self._connection.closing.is_set() else None),
        ]
        return facts_html(f"node {self.name}", facts)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.reconnect is None:
            raise TypeError("a Node with a custom transport cannot be pickled")
        return self.reconnect

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release sockets. The node cannot be used afterwards, and calls in progress raise ClosedError."""
        self._connection.close()
        for share in list(self._shares.values()):
            if (copy := share()) is not None:
                copy.close()

    def _archive_transport(self, archive: str) -> Transport | BulkEngine:
        """Return a transport to an archive node, with credentials only if it has this node's host and port."""
        here, there = urlsplit(self.url), urlsplit(archive)
        same = (here.scheme, here.hostname, here.port) == (there.scheme, there.hostname, there.port)
        credentials = self._connection.credentials if same else http.NO_CREDENTIALS
        return _open_transport(credentials, timeout_s=self._timeout_s)

    # the three operations -------------------------------------------------------------------------------------

    def view(
        self,
        function: str | ViewFunction,
        arguments: Sequence[Any] = (),
        *,
        type_arguments: Sequence[str] = (),
        ledger_version: int | None = None,
    ) -> ViewResult:
        """Run a view function.

        Parameters
        ----------
        function : str or ViewFunction
            Function id, such as ``0x1::coin::supply``; or a complete call, in which case the other arguments are
            omitted.
        arguments : sequence, default ()
            Python values, encoded according to the function's ABI.
        type_arguments : sequence of str, default ()
            Move types.
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        ViewResult

        Raises
        ------
        InputError, SchemaError
            If the call does not fit the function's ABI.
        NodeError
            If the node returns an error; `VersionPruned` if it no longer has the version.
        NodeUnreachable
            If the node does not respond, or does not return the module's ABI. In the latter case, `fetch_views` can
            still read the view, untyped.

        Notes
        -----
        Source: ``POST /v1/view``; gas from the ``Gas-Used`` header.

        Examples
        --------
        >>> import toolkit
        >>> node = toolkit.connect()
        >>> node.view("0x1::chain_id::get").value
        4
        """
        if not isinstance(function, ViewFunction):
            function = ViewFunction(function, arguments, type_arguments=type_arguments)
        elif type_arguments or arguments:
            raise InputError("view got a ViewFunction and other arguments; put the arguments into the ViewFunction")
        try:
            return self.one(PreparedView(self, function).at(as_version_or_head(ledger_version)))
        except InvalidRequest as error:
            raise explained(self, function, ledger_version, error) from None

    def table_item(
        self,
        handle: str,
        key: Any,
        *,
        key_type: str | None = None,
        value_type: str | None = None,
        owner: str | None = None,
        ledger_version: int | None = None,
    ) -> TableItem:
        """Read one item of a table.

        Parameters
        ----------
        handle : str
            Table handle: 0x and 1 to 64 hex digits.
        key : object
            Key, as a Python value of `key_type`.
        key_type, value_type : str, optional
            Move types. By default, the types that a resource of `owner` declares for the table.
        owner : str, optional
            Account or object whose resource holds the table. The resource is read only if a type is not given.
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        TableItem

        Raises
        ------
        NotFound
            If the item does not exist. Nodes respond the same way to a wrong key type.
        InputError, SchemaError
            If a type cannot be parsed, the key or the value does not fit its type, or a type is neither given nor
            declared in a resource of `owner`.
        NodeError, NodeUnreachable
            If the node returns another error or does not respond.

        Notes
        -----
        Source: ``POST /v1/tables/{table_handle}/item``. A node cannot list the keys of a table.

        Examples
        --------
        >>> import toolkit
        >>> node = toolkit.connect()
        >>> handle = node.resource("0xcafe", "0xcafe::registry::Registry")["records"]["handle"]
        >>> node.table_item(handle, "alice", owner="0xcafe").value["registered_at"]
        1767334464
        """
        # Here and below: imported on use, since `connect` does not wait for what only some sessions need.
        from toolkit.client._accounts import declared_types

        version = as_version_or_head(ledger_version)
        key_type, value_type = declared_types(self, handle, key_type, value_type, owner=owner, version=version)
        return self.one(PreparedItem(self, handle, key=key, key_type=key_type, value_type=value_type).at(version))

    def simulate(
        self,
        request: str | SimulationRequest | EntryFunction | Script | Multisig | Batch,
        arguments: Sequence[Any] = (),
        *,
        type_arguments: Sequence[str] = (),
        sender: str | None = None,
        **options: Any,
    ) -> Simulation:
        """Run a transaction at the node's head without signing, submitting or storing it.

        Parameters
        ----------
        request : str, SimulationRequest, EntryFunction, Script, Multisig or Batch
            Function id of an entry function, such as ``0x1::aptos_account::transfer``; or a payload to combine with
            `sender` and `options`; or a complete request.
        arguments : sequence, default ()
            Python values, without the signers. Only with a function id.
        type_arguments : sequence of str, default ()
            Move types. Only with a function id.
        sender : str, optional
            Sending account; no key is needed.
        **options
            Further fields of `SimulationRequest`, by name.

        Returns
        -------
        Simulation
            Returned even if the transaction would fail: see ``success`` and ``vm_status``.

        Raises
        ------
        InputError, SchemaError
            If the request does not fit the function's ABI.
        NodeError
            If the node rejects the request itself.
        NodeUnreachable
            If the node does not respond.

        Notes
        -----
        Source: ``POST /v1/transactions/simulate``. A missing sequence number or expiration is filled in from the node
        (expiration: ledger time + 600 s, or + 50 s with a replay protection nonce, for which nodes accept at most 60
        s). A missing gas price or max gas amount is estimated by the node.

        Examples
        --------
        >>> import toolkit
        >>> node = toolkit.connect()
        >>> node.simulate("0x1::aptos_account::transfer", ["0x2", 100], sender="0x1").success
        True
        """
        from toolkit.client._simulation import simulate

        if isinstance(request, str):
            request = EntryFunction(request, arguments, type_arguments=type_arguments)
        elif type_arguments or arguments:
            raise InputError("simulate takes arguments only with a function id; put them into the payload")
        if not isinstance(request, SimulationRequest):
            if sender is None:
                raise InputError(
                    "simulate needs sender=, the account that would send the transaction; no key is needed"
                )
            request = SimulationRequest(request, sender=sender, **options)
        elif sender is not None or options:
            raise InputError("simulate got a SimulationRequest and other options; put the options into the request")
        return simulate(self, request)

    def compose(self, batch: Batch, *, signers: int = 1, ledger_version: int | None = None) -> Script:
        """Compose a batch to the script that `simulate` sends, from the modules on the node.

        Parameters
        ----------
        batch : Batch
        signers : int, default 1
            Number of signers: the sender and the secondary signers.
        ledger_version : int, optional
            Version of the modules; the head by default.

        Returns
        -------
        Script
            Its arguments are serialized. It can be simulated, and sent by other programs.

        Raises
        ------
        InputError
            If the calls do not fit the functions or each other; the message names the call and the argument.
        SchemaError
            If an argument does not fit its parameter.
        NodeError, NodeUnreachable
            If a module cannot be read.

        Examples
        --------
        >>> import toolkit
        >>> batch = toolkit.Batch([toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])])
        >>> [one.hex()[-4:] for one in toolkit.connect().compose(batch).arguments]
        ['0b0b', '0000']
        """
        from toolkit.client._batch import script_of

        version = self.version_or_head(ledger_version)
        return script_of(self, batch, signers=signers, ledger_version=version)

    def fork(self, ledger_version: int | None = None) -> Fork:
        """Return a fork: the state at a version, on which calls run that nobody else sees.

        State is read when it is needed. Any account may send, calls build on each other, and code and gas schedule can
        be changed.

        Parameters
        ----------
        ledger_version : int, optional
            Version whose state is forked; the head by default. Negative numbers count from the head.

        Returns
        -------
        Fork

        Raises
        ------
        InputError
            If `ledger_version` is not a ledger version.
        NodeError, NodeUnreachable
            If the head is needed and the node does not report it.

        See Also
        --------
        toolkit.replay : Replays many committed transactions.

        Notes
        -----
        Source: ``POST /v1/experimental/state_values/raw``; on a node that does not offer it, resources, modules and
        table items, without the metadata that refunds depend on. The contracts of an embedded node are Python: its
        forks run them, and cannot replay.

        Examples
        --------
        >>> import toolkit
        >>> fork = toolkit.connect().fork(2_251)
        >>> call = toolkit.EntryFunction("0xb00c::order_book::place", [True, 100, 5])
        >>> fork.execute(call, sender="0xa11ce").success, fork.ledger_version > fork.base_version
        (True, True)
        """
        from toolkit.fork._fork import fork_of

        return fork_of(self, ledger_version)

    def simulations_at(
        self, tasks: Sequence[tuple[SimulationRequest, int]]
    ) -> Iterator[tuple[int, ForkSimulation | ToolkitError]]:
        """Simulate requests, each on a fork of a version, and yield (position, result or error) by version."""
        from toolkit.fork._sweep import simulate_at_versions

        return simulate_at_versions(self, tasks)

    def at(self, ledger_version: int) -> Snapshot:
        """Return a snapshot: the node at one ledger version.

        No request is sent for a version of 0 or more: if the node does not have it, the first read raises `NotFound`,
        or `VersionPruned`.

        Parameters
        ----------
        ledger_version : int
            Negative numbers count from the head: -1 is the head.

        Returns
        -------
        Snapshot

        Raises
        ------
        InputError
            If `ledger_version` is not a ledger version, or counts back beyond version 0.
        NodeError, NodeUnreachable
            If the number is negative and the node does not report its head.

        Examples
        --------
        >>> import toolkit
        >>> toolkit.connect().at(100).view("0x1::chain_id::get").ledger_version
        100
        """
        return Snapshot(self, self.past_version(ledger_version))

    def contract(self, module: str, *, ledger_version: int | None = None) -> Contract:
        """Return a module as an object with its functions as methods.

        Parameters
        ----------
        module : str
            ``address::module``.
        ledger_version : int, optional
            Version whose ABI and state are read; the head by default.

        Returns
        -------
        Contract

        Raises
        ------
        InputError
            If `module` is not a module id, or the node returns no ABI for it.
        NotFound
            If the module does not exist.
        NodeError, NodeUnreachable
            If the node returns another error or does not respond.

        Examples
        --------
        >>> import toolkit
        >>> registry = toolkit.connect().contract("0xcafe::registry")
        >>> registry
        <Contract 0xcafe::registry: 3 views, 3 entry functions, 4 structs>
        >>> registry.size.at(4_000), registry.at(4_000).size()
        (521, 521)
        """
        from toolkit.client._contracts import contract_of

        return contract_of(self, module, as_version_or_head(ledger_version))

    def account(self, address: str, *, assets: Iterable[str] = (), ledger_version: int | None = None) -> Account:
        """Return what is stored at an address: modules, resources, coins and fungible assets.

        Parameters
        ----------
        address : str
            Address of an account, contract or object.
        assets : iterable of str, optional
            Coin types, or addresses of fungible assets, whose balances are also read. A node cannot list an account's
            fungible asset stores, so by default only the gas coin and assets paired with the account's coins are read.
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        Account
            Has `sequence_number` and `authentication_key`, the frames `modules`, `resources` and `balances`, and
            ``notes`` on what the node does not offer. Some nodes give every address a sequence number; on these, an
            address that stores nothing has the kind ``nothing``.

        Raises
        ------
        NotFound
            If nothing is stored at the address and the node reports this.
        InputError
            If the address or an asset is not valid.
        NodeError, NodeUnreachable, SchemaError
            If the node returns another error, does not respond, or sends a response that cannot be decoded.

        Notes
        -----
        Source: ``GET /v1/accounts/{address}``, and all pages of its ``/resources`` and ``/modules``: about 6 requests,
        plus 3 for each further asset.

        Examples
        --------
        >>> import toolkit
        >>> node = toolkit.connect()
        >>> gold = node.view("0x901d::gold::metadata").value
        >>> node.account("0x901d", assets=[gold]).balances["symbol"].tolist()
        ['APT', 'GOLD']
        """
        from toolkit.client._accounts import read_account

        return read_account(self, address, as_version_or_head(ledger_version), assets)

    def asset(self, asset: str, *, ledger_version: int | None = None) -> Asset:
        """Return the name, symbol and decimals of a coin or fungible asset.

        Parameters
        ----------
        asset : str
            Coin type, or the address of the fungible asset's metadata.
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        Asset
            Its ``decimals`` are None if the ledger has no such asset.

        Raises
        ------
        InputError
            If `asset` is neither a coin type nor an address.
        NodeError, NodeUnreachable, SchemaError
            If the node returns an error, does not respond, or sends a response that cannot be decoded.

        Examples
        --------
        >>> import toolkit
        >>> apt = toolkit.connect().asset("0x1::aptos_coin::AptosCoin")
        >>> apt.symbol, apt.decimals
        ('APT', 8)
        """
        from toolkit.client._accounts import read_asset

        return read_asset(self, asset, self.version_or_head(ledger_version))

    # many calls -------------------------------------------------------------------------------------------------

    def with_share(self, tasks: int) -> Node:
        """Return a copy of the node with its own sockets and 1/`tasks` of its rate and its requests in flight.

        Closing this node closes the copy and cancels its requests.

        Raises
        ------
        InputError
            If the node was created with a custom transport, which cannot be copied.
        """
        self._connection.check_open()
        if not self._owns_transport:
            raise InputError("a Node with a custom transport cannot be copied")
        credentials, rate = self._connection.credentials, self.requests_per_second
        copy = self._connect_again(
            target=self.url.replace("//", f"//{credentials.login}@", 1) if credentials.login else self.url,
            api_key=credentials.api_key or "",
            requests_per_second=rate / tasks if rate else None,
            max_in_flight=max(1, self.max_in_flight // tasks),
        )
        self._shares[id(copy)] = ref(copy)
        if self._connection.closing.is_set():  # by another thread, meanwhile
            copy.close()
        return copy

    # versions ---------------------------------------------------------------------------------------------------

    def probe(self) -> Probe:
        """Check which operations the node supports, using about 20 requests.

        Returns
        -------
        Probe
            The oldest ledger version at which a view can be run, which can differ from the oldest version in the
            response headers; whether views report gas, and whether repeated views report the same gas; and which other
            reads the node offers. Version plans for this node then start at the oldest version found.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node does not report the state of its ledger.
        """
        before = self._connection.here.sent
        with self.fresh():
            found = probe(self)
        self.probed = replace(found, requests=self._connection.here.sent - before)
        self.probed_oldest = found.oldest_readable
        return self.probed

    def version_at(self, time: str | date) -> int:
        """Return the first ledger version at or after a time, by bisection on block times.

        Parameters
        ----------
        time : str, datetime or date
            ISO 8601 text, or a datetime; UTC if it has no offset.

        Returns
        -------
        int

        Raises
        ------
        InputError
            If the time cannot be parsed, is after the node's head, or is before the node's oldest version.
        NodeError, NodeUnreachable
            If the node does not offer blocks, or does not respond.

        Examples
        --------
        >>> import toolkit
        >>> node = toolkit.connect()
        >>> node.version_at(node.ledger().timestamp) <= node.ledger().version
        True
        """
        when, ledger = moment(time), self.ledger()
        found = self.first_from([when], ledger)[0]
        if found > ledger.version:
            raise InputError(f"{utc(when)} is after the time of the head, {utc(ledger.timestamp)}")
        if found < 0:
            oldest = self.block(ledger.oldest_version).block_timestamp
            of = f" of {utc(oldest)}" if oldest else ""
            raise InputError(
                f"{utc(when)} is before version {ledger.oldest_version:,}{of}, the oldest that this node has; "
                "read from there, or ask an archive node"
            )
        return found


def _open_transport(
    credentials: http.Credentials, *, timeout_s: float, max_in_flight: int = 1, pace: http.Pace | None = None
) -> Transport | BulkEngine:
    """Return the transport to a node: over libcurl if pycurl is installed, else over `requests`."""
    try:
        from toolkit.client._engine import BulkEngine
    except ImportError:
        from toolkit.client._transport import SessionTransport

        return SessionTransport(credentials, timeout_s=timeout_s)
    return BulkEngine(credentials, timeout_s=timeout_s, max_in_flight=max_in_flight, pace=pace)


def _reconnected(connect_again: Callable[..., Node], had_key: bool) -> Node:  # noqa: FBT001 - called with positions by pickle
    """Connect to a node again, with its settings, which do not contain secrets.

    If the node had an API key, the key is taken from the environment. A user name and password in the URL are lost, and
    the key in the environment is not sent instead, because it was not meant for this host.
    """
    return connect_again(api_key=(had_key and http.environment_key()) or "")


def _pinned(read: Callable[Concatenate[Node, P], T]) -> Callable[Concatenate[Snapshot, P], T]:
    """Return the counterpart in `Snapshot` of a method of `Node`, which reads at the version of the snapshot."""

    def pinned(self: Snapshot, /, *given: P.args, **options: P.kwargs) -> T:
        return read(self.node, *given, **options, ledger_version=self.ledger_version)  # type: ignore[arg-type]

    signature = inspect.signature(read)
    kept = [one for name, one in signature.parameters.items() if name != "ledger_version"]
    pinned.__name__, pinned.__qualname__ = read.__name__, f"Snapshot.{read.__name__}"
    pinned.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    summary = str(read.__doc__).partition("\n")[0]
    pinned.__doc__ = f"{summary}\n\n        Reads state at the snapshot's version; see `Node.{read.__name__}`."
    return pinned


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A node pinned to one ledger version, with the same read methods. Returned by `Node.at`.

    Attributes
    ----------
    node : Node
    ledger_version : int

    Examples
    --------
    >>> import toolkit
    >>> past = toolkit.connect().at(100)
    >>> past.view("0x1::chain_id::get").value, past.gas_schedule().feature_version > 0
    (4, True)
    """

    node: Node
    ledger_version: int

    view = _pinned(Node.view)
    table_item = _pinned(Node.table_item)
    module = _pinned(Node.module)
    contract = _pinned(Node.contract)
    resource = _pinned(Node.resource)
    account = _pinned(Node.account)
    gas_schedule = _pinned(Node.gas_schedule)

    def simulate(self, *_: object, **__: object) -> Simulation:
        """Raise NotAtPast: nodes simulate only at their head.

        Raises
        ------
        NotAtPast
            Always; the message suggests alternatives.
        """
        from toolkit.client._simulation import not_at_past

        raise not_at_past(self.ledger_version)


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
        Sent as a bearer token to the node's host, and to an archive node only if it has the same host and port. By
        default, the value of the environment variable ``LEDGER_TOOLKIT_API_KEY``, unless the URL has a user name and
        password. Pass an empty string to send none.
    encoding : {"json", "bcs"}, default "json"
        Encoding of views and table items whose types are known, and of simulation requests (their responses are always
        JSON). The values are the same either way. Calls that nodes accept only in BCS, such as calls with an argument
        whose type is a type parameter, are always sent in BCS.
    max_in_flight : int, default 64
        Maximum number of requests that the fetch functions send at once.
    requests_per_second : float, optional
        Maximum number of requests started per second.
    cache : "default", path or None
        Where responses to pinned reads are stored: by default on disk for a public node, and in memory for a node on
        this machine or its local network. A path names a file; None stores nothing. Responses in a file are used only
        if the hash of one transaction shows that the node still has the ledger from which they come.
    cache_name : str, optional
        Responses are stored per host. Nodes with the same `cache_name` share their responses instead: use it for hosts
        of the same chain that you trust equally.
    offline : bool, default False
        Never send requests: reads that are not in the cache raise `OfflineMiss`. The head is the last one seen.
    archive : bool, default False
        Read pruned versions from the archive node that the node advertises, if its URL is https.
    timeout_s : float, default 30.0
        Timeout in seconds for connecting and for each wait for data. A request that takes ten times as long in total
        fails and is not retried.
    abis : mapping of (address, module name) to ModuleAbi, optional
        ABIs that take precedence over the node's.

    Returns
    -------
    Node

    Raises
    ------
    InputError
        If `target` is not a network name, a valid URL or a ledger, or an option is invalid.

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
    if problem := same_name_problem():
        warn_caller(problem)
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


# A view of the framework without arguments: it answers at every version that can be read.
_VIEW = ViewFunction("0x1::timestamp::now_microseconds")
# The state key of ``0x1::chain_id::ChainId`` at ``0x1``, which every ledger has.
_FRAMEWORK = bytes(31) + b"\x01"
_CHAIN_ID_KEY = b"\0" + _FRAMEWORK + b"\x33\x01" + _FRAMEWORK + b"\x08chain_id\x07ChainId\x00"
_REPEATS = 3  # enough to see that gas varies
# Bisection steps for the oldest version; the answer is then within a thousandth of the range.
_MAX_HALVINGS = 10


@dataclass(frozen=True, slots=True, repr=False)
class Probe:
    """What a node supports, as determined by `Node.probe`.

    Attributes
    ----------
    node : str
    chain_id : int
    head, claimed_oldest : int
        The head and the oldest version that the node reports.
    oldest_readable : int or None
        Lowest version at which a view returned a result; None if none did. Below it, up to a thousandth of the range
        may be readable too.
    gas_header : bool
        Whether responses to views report the gas used.
    gas_stable : bool or None
        Whether repeated reads at one version report the same gas; None if `gas_header` is False.
    offers : dict of str to bool
        For each read beyond the three core operations, by name, whether the node offers it.
    requests : int
        Number of requests that were sent, without repeats.

    Examples
    --------
    >>> import toolkit
    >>> probe = toolkit.connect().probe()
    >>> probe.oldest_readable, probe.gas_header, probe.offers["module"]
    (0, True, True)
    """

    node: str
    chain_id: int
    head: int
    claimed_oldest: int
    oldest_readable: int | None
    gas_header: bool
    gas_stable: bool | None
    offers: dict[str, bool]
    requests: int = 0

    def facts(self) -> dict[str, Any]:
        """Return the attributes by name; reads are split into two lists, ``offers`` and ``does_not_offer``."""
        return asdict(self) | {
            "offers": [name for name, there in self.offers.items() if there],
            "does_not_offer": [name for name, there in self.offers.items() if not there],
        }

    def __repr__(self) -> str:
        there = [name for name, offered in self.offers.items() if offered]
        oldest = "no version" if self.oldest_readable is None else f"versions {self.oldest_readable:,} to {self.head:,}"
        gas = "gas not reported" if not self.gas_header else "stable gas" if self.gas_stable else "varying gas"
        text = f"chain {self.chain_id}, views run at {oldest}, {gas}, {len(there)} of {len(self.offers)} other reads"
        return visible(f"<Probe of {self.node}: {text}>", 300)

    def _repr_html_(self) -> str:
        facts = [(name, ", ".join(one) if isinstance(one, list) else one) for name, one in self.facts().items()]
        return facts_html(f"probe of {self.node}", [fact for fact in facts if fact[1] != ""])


def probe(node: Reads) -> Probe:
    """Probe a node; see `Node.probe`."""

    def answers(ask: Callable[[], Any]) -> Any:
        """Return the result, or None if the node returns an error."""
        try:
            return ask()
        except NodeError:
            return None

    def readable(version: int) -> bool:
        return answers(lambda: node.one(node.prepare_view(_VIEW, version))) is not None

    ledger = node.ledger()
    head = ledger.version
    seen = [answers(lambda: node.one(node.prepare_view(_VIEW, head))) for _ in range(_REPEATS)]
    gas = [result.gas_used if result else None for result in seen]
    further: dict[str, Callable[[], Any]] = {
        "node info": lambda: node.info().node_role or None,  # the role is not in the headers of POST operations
        "module": lambda: node.module("0x1", "timestamp", ledger_version=head),
        "resource": lambda: node.resource("0x1", "0x1::timestamp::CurrentTimeMicroseconds", ledger_version=head),
        "account": lambda: node.one(node.prepare_account("0x1")),
        "block by version": lambda: node.block(head),
        "transaction by version": lambda: node.transaction(head),
        "transactions by page": lambda: node.transactions(head, 1),
        "gas price estimate": node.gas_price,
        "raw state values": lambda: node.one(node.prepare_state_value(_CHAIN_ID_KEY, head)),
    }
    offers = {name: answers(ask) is not None for name, ask in further.items()}
    known = None not in gas
    return Probe(
        node=node.name,
        chain_id=ledger.chain_id,
        head=head,
        claimed_oldest=ledger.oldest_version,
        oldest_readable=_oldest(readable, ledger.oldest_version, head) if seen[0] else None,
        gas_header=known,
        gas_stable=len(set(gas)) == 1 if known else None,
        offers=offers,
    )


def _oldest(readable: Callable[[int], bool], claimed: int, head: int) -> int:
    """Return the oldest readable version, by bisection between the claimed oldest version and the head."""
    low, high = claimed, claimed if readable(claimed) else head
    for _ in range(_MAX_HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (low, middle) if readable(middle) else (middle, high)
    return high
