"""A node to talk to, and a snapshot of it at one ledger version: the verbs of the toolkit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakSet

from toolkit.client.abis import AbiStore
from toolkit.client.cache import AnswerCache, Keeper
from toolkit.client.companion import Companion
from toolkit.client.connection import Connection
from toolkit.client.context import Context
from toolkit.client.credentials import NO_CREDENTIALS, Credentials
from toolkit.client.http import base_url, environment_key, login_of, redacted_url
from toolkit.client.item_calls import PreparedItems
from toolkit.client.probing import Probe, probe
from toolkit.client.retry import Pace
from toolkit.client.settings import checked_abis, checked_count, checked_encoding, checked_limit, checked_text
from toolkit.client.simulation_calls import prepare_simulation
from toolkit.client.transport import SessionTransport
from toolkit.client.versions import as_version, as_version_or_head, moment
from toolkit.client.view_calls import PreparedViews
from toolkit.errors import InputError, NotAtPast, SchemaError
from toolkit.move import decode_json, parse_type_tag, wire_type

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import date, datetime
    from types import TracebackType
    from typing import Self

    from toolkit.client.context import Encoding
    from toolkit.client.http import Transport
    from toolkit.client.prepared import Prepared
    from toolkit.client.results import Simulation, TableItem, ViewResult
    from toolkit.client.same_ledger import LedgerAnchor
    from toolkit.errors import ToolkitError
    from toolkit.move import ModuleAbi
    from toolkit.wire import (
        AccountInfo,
        BlockInfo,
        EntryFunction,
        GasPriceEstimate,
        GasSchedule,
        LedgerState,
        NodeInfo,
        SimulationRequest,
        ViewFunction,
    )

__all__ = ["Node", "Snapshot"]

T = TypeVar("T")

_MOST_IN_FLIGHT = 10_000
_LONGEST_S = 86_400
_FASTEST = 1_000_000


class Node:
    """A ledger node. Reads, runs view functions and simulates; never signs, never submits.

    What `toolkit.connect` returns. Usable from several threads, and as a context manager.

    Parameters
    ----------
    target : str, default "embedded"
        A network's name or a URL, as `connect` takes it. A user name and password in it are sent to that host where
        there is no API key, and are part of nothing else: `url` does not have them, and a pickle does not, so that a
        worker process sends none.
    api_key : str, optional
        Sent as a bearer token, to this node's host only. By default ``LEDGER_TOOLKIT_API_KEY`` of the environment,
        unless the URL has a user name and password; an empty text is none at all.
    encoding : {"json", "bcs"}, default "json"
        How views and table items travel where their types are known; values are equal either way.
    max_in_flight : int, default 64
        Most requests at once of the fetch functions.
    requests_per_second : float, optional
        Most requests started per second.
    cache : "default", path or None
        Where answers to pinned reads are stored: on disk for a public node, in memory for one on this machine or its
        network (throw-away ledgers reuse ids), in the file that is named, or nowhere.
    cache_name : str, optional
        Answers are stored for the host that gave them (scheme, host and port). Nodes with the same `cache_name` share
        theirs instead: use it for hosts of one chain that you trust equally.
    offline : bool, default False
        Never ask the node: what is not kept raises `OfflineMiss`. The head is the one last seen.
    archive : bool, default False
        Read pruned versions from the archive that the node advertises, if it names one by https. The API key goes
        there only where the archive is the same site.
    timeout_s : float, default 30.0
        Limit in seconds for connecting, and for each wait for bytes. After ten times as long a request ends, complete
        or not, and is not repeated.
    abis : mapping of (address, module name) to ModuleAbi, optional
        ABIs to use instead of the node's, for modules whose ABI it does not give.
    transport : Transport, optional
        Another road to the network, for tests; its answers are kept only where `cache` names a file.
    name : str, optional
        What frames and reports call the node; its URL without credentials by default.
    """

    def __init__(
        self,
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
        transport: Transport | None = None,
        name: str | None = None,
    ) -> None:
        checked_encoding(encoding)
        max_in_flight = checked_count("max_in_flight", max_in_flight, _MOST_IN_FLIGHT)
        timeout_s = checked_limit("timeout_s", timeout_s, _LONGEST_S, "seconds")
        if requests_per_second is not None:
            requests_per_second = checked_limit("requests_per_second", requests_per_second, _FASTEST, "per second")
        checked_text("api_key", api_key)
        checked_text("name", name)
        checked_text("cache_name", cache_name)
        abis = checked_abis(abis)
        if target == "embedded":
            from toolkit.client.http import embedded_url

            target, api_key, name = embedded_url(), "", name or "embedded"  # it knows no keys, so it gets none
        url = base_url(target)
        login, url = login_of(url), redacted_url(url)
        if api_key is None and login is None:  # what is written out comes before the environment
            api_key = environment_key()
        api_key = api_key or None
        credentials = Credentials(api_key, login, unsent=bool(api_key is login is None and environment_key()))
        self._settings: dict[str, Any] | None = None
        if transport is None:
            self._settings = {
                "target": url,
                "encoding": encoding,
                "max_in_flight": max_in_flight,
                "requests_per_second": requests_per_second,
                "cache": cache,
                "cache_name": cache_name,
                "offline": offline,
                "archive": archive,
                "timeout_s": timeout_s,
                "abis": abis,
                "name": name,
            }
        self._credentials = credentials
        self.url = url
        self.name = name or url
        self.max_in_flight = max_in_flight
        self._timeout_s = timeout_s
        self.requests_per_second = requests_per_second
        self.probed: Probe | None = None
        self._shares: WeakSet[Node] = WeakSet()
        engine, pace = None, Pace(requests_per_second)
        if transport is not None and cache == "default":
            cache = None  # a road of the caller's own may lead anywhere: what it answers is not kept with the rest
        if transport is None:
            from toolkit.client.engine import BulkEngine

            transport = SessionTransport(api_key=api_key, login=login, timeout_s=timeout_s)
            engine = BulkEngine(
                api_key=api_key, login=login, timeout_s=timeout_s, max_in_flight=max_in_flight, pace=pace
            )
        self._keeper = Keeper(url, AnswerCache.for_node(url, cache), offline=offline, shared=cache_name)
        self._connection = Connection(
            url,
            transport,
            engine=engine,
            keeper=self._keeper,
            pace=pace,
            max_in_flight=max_in_flight,
            archive=self._archive_road if archive else None,
            credentials=credentials,
        )
        self._companion = Companion(self._connection)
        self.abis = AbiStore(
            self._companion.module_answer, overrides=abis, kept_versions=self._companion.module_versions
        )
        self._context = Context(self._connection, self._companion, self.abis, encoding)
        self.anchor: LedgerAnchor | None = None
        """What the ledger is recognised by that the last fetch or run read, see `LedgerAnchor.taken`."""

    def __repr__(self) -> str:
        return f"Node({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings, not the sockets, and no secret.

        A node that was given an API key takes the one of the environment where it is unpickled. A login is lost: what
        the other side has in its environment was not meant for this host.
        """
        if self._settings is None:
            raise TypeError("a Node over a transport of your own cannot be pickled")
        return _rebuilt, (self._settings, self._credentials.api_key is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release sockets; the node cannot be used afterwards, and calls in progress raise ClosedError."""
        self._connection.close()
        for copy in list(self._shares):
            copy.close()

    def _archive_road(self, archive: str) -> Transport:
        """Return a transport to an archive, with the secrets only where it is the same site."""
        here, there = urlsplit(self.url), urlsplit(archive)
        same = (here.scheme, here.hostname, here.port) == (there.scheme, there.hostname, there.port)
        mine = self._credentials if same else NO_CREDENTIALS
        return SessionTransport(api_key=mine.api_key, login=mine.login, timeout_s=self._timeout_s)

    # the three operations -------------------------------------------------------------------------------------

    def view(
        self,
        function: str | ViewFunction,
        *,
        type_arguments: Sequence[str] = (),
        arguments: Sequence[Any] = (),
        ledger_version: int | None = None,
    ) -> ViewResult:
        """Run a view function.

        Parameters
        ----------
        function : str or ViewFunction
            ``0x1::coin::supply``, or a whole call (then without the other arguments).
        type_arguments : sequence of str
            Move types.
        arguments : sequence
            Python values, encoded by the function's ABI.
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
            If the node refuses; `VersionPruned` for a version it no longer holds.
        NodeUnreachable
            If no answer came, or none for the module's ABI. `fetch_views` reads views without their types then.

        Notes
        -----
        Source: ``POST /v1/view``; gas from the ``Gas-Used`` header.
        """
        return self._read(self.prepare_view(_view_function(function, type_arguments, arguments), ledger_version))

    def table_item(
        self, handle: str, *, key: Any, key_type: str, value_type: str, ledger_version: int | None = None
    ) -> TableItem:
        """Read one item of a table.

        Parameters
        ----------
        handle : str
            Table handle: hex of 32 bytes.
        key : object
            In the toolkit's Python form of `key_type`.
        key_type, value_type : str
            Move types.
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        TableItem

        Raises
        ------
        NotFound
            If there is no such item; a wrong key type gives the same answer.
        InputError, SchemaError
            If a type cannot be read, or key or value do not fit theirs.

        Notes
        -----
        Source: ``POST /v1/tables/{table_handle}/item``. A node cannot list the keys of a table.
        """
        version = as_version_or_head(ledger_version)
        ready = self.prepare_items(handle, key=key, key_type=key_type, value_type=value_type)
        return self._read(ready.at(version))

    def _read(self, call: Prepared[T]) -> T:
        """Perform a call; types that could not be looked up are an error: a single read has no later to do so."""
        if call.untyped is not None:
            raise call.untyped.with_traceback(None)
        return self._connection.perform(call)

    def simulate(
        self, request: SimulationRequest | EntryFunction, *, sender: str | None = None, **options: Any
    ) -> Simulation:
        """Run a transaction on the node's head without signing, submitting or storing it.

        Parameters
        ----------
        request : SimulationRequest or EntryFunction
            A whole request, or a payload with `sender` and `options`.
        sender : str, optional
            Sending account; no key is needed.
        **options
            Further fields of `SimulationRequest`, by their names.

        Returns
        -------
        Simulation
            Also where the transaction would fail: see ``success`` and ``vm_status``.

        Raises
        ------
        InputError, SchemaError
            If the request does not fit the function's ABI.
        NodeError
            If the node refuses the request as such.

        Notes
        -----
        Source: ``POST /v1/transactions/simulate``. Sequence number and expiration (ledger time + 600 s) are
        filled from the node where the request leaves them open; price and max gas are then the node's estimates.
        """
        from toolkit.wire import SimulationRequest

        if not isinstance(request, SimulationRequest):
            if sender is None:
                raise InputError("simulate needs sender=, the account whose transaction is tried; no key is needed")
            request = SimulationRequest(request, sender=sender, **options)
        elif sender is not None or options:
            raise InputError("simulate got a whole SimulationRequest and further options; put them into the request")
        return self._connection.perform(prepare_simulation(self._context, request))

    def with_share(self, tasks: int) -> Node:
        """Return a node of these settings with sockets of its own and 1/`tasks` of rate and requests in flight.

        Closing this node closes the copy, which ends what it has in progress.
        """
        self._connection.check_open()
        if self._settings is None:
            raise InputError("a Node over a transport of your own cannot be copied")
        rate, login = self._settings["requests_per_second"], self._credentials.login
        shared = {
            **self._settings,
            "target": self.url.replace("//", f"//{login}@", 1) if login else self.url,
            "requests_per_second": rate / tasks if rate else None,
            "max_in_flight": max(1, self.max_in_flight // tasks),
        }
        copy = Node(**shared, api_key=self._credentials.api_key or "")
        self._shares.add(copy)
        if self._connection.closing:  # by another thread, meanwhile
            copy.close()
        return copy

    @property
    def cache(self) -> AnswerCache | None:
        """The answers to pinned reads that are kept, with ``stats()`` and ``clear()``; None where none are."""
        self._connection.check_open()
        return self._keeper.cache

    def fresh(self, *, repeats: bool = True) -> AbstractContextManager[None]:
        """Return a block in which this thread gets nothing from the cache; without `repeats` requests are sent once."""
        return self._connection.fresh(repeats=repeats)

    def expect_chain(self, chain_id: int) -> None:
        """Make every answer of another chain id raise `LedgerChanged`, the first one too."""
        self._connection.expect_chain(chain_id, "node")

    def many(self, calls: Iterable[Prepared[T] | ToolkitError]) -> Generator[tuple[int, T | ToolkitError], None, None]:
        """Send many prepared calls at once and yield (position, result or error) as they come; errors are passed on."""
        return self._connection.perform_many(calls)

    def at(self, ledger_version: int) -> Snapshot:
        """Return the node as it stood at a ledger version; negative numbers count from the head, -1 being the head."""
        version = as_version(ledger_version, least=-(2**64))
        if version < 0:
            version += self.ledger().version + 1
        if version < 0:
            raise InputError(f"there is no version {ledger_version}: counting from the head goes below 0")
        return Snapshot(self, version)

    def prepare_view(self, call: ViewFunction, ledger_version: int | None = None) -> Prepared[ViewResult]:
        """Make a view ready to be sent, alone or with many others."""
        return self.prepare_views(call).at(as_version_or_head(ledger_version))

    def prepare_views(self, call: ViewFunction) -> PreparedViews:
        """Make a view ready to be sent at many versions by its ``at(version)``: much of the work is then done once."""
        return PreparedViews(self._context, call)

    def prepare_items(self, handle: str, *, key: Any, key_type: str, value_type: str) -> PreparedItems:
        """Make the read of a table item ready to be sent, at one or many versions by its ``at(version)``."""
        return PreparedItems(self._context, handle, key, key_type=key_type, value_type=value_type)

    def prepare_block(self, ledger_version: int) -> Prepared[BlockInfo]:
        """Make the read of the block that holds a version ready to be sent."""
        return self._companion.prepare_block(as_version(ledger_version))

    def prepare_transactions(self, start: int, limit: int) -> Prepared[tuple[list[Any], LedgerState | None]]:
        """Make the read of a page of committed transactions ready to be sent; its result has the node's head too."""
        return self._companion.prepare_transactions(as_version(start), limit)

    # companion reads ------------------------------------------------------------------------------------------

    def info(self) -> NodeInfo:
        """Return the node's own description. Source: ``GET /v1``."""
        return self._companion.info()

    def ledger(self) -> LedgerState:
        """Return the state of the ledger at the node's head. Source: ``GET /v1``."""
        return self.info().ledger

    def module(self, address: str, name: str, *, ledger_version: int | None = None) -> ModuleAbi | None:
        """Return a module's ABI as it stood at a version, None where there was no such module."""
        given = as_version_or_head(ledger_version)
        version = self.ledger().version if given is None else given
        return self.abis.at(version).module_abi(address, name)

    def resource(self, address: str, tag: str, *, ledger_version: int | None = None) -> Any:
        """Return a resource in the toolkit's Python form. Source: ``GET /v1/accounts/{address}/resource/{type}``."""
        parsed, version = parse_type_tag(tag), as_version_or_head(ledger_version)
        data, head = self._companion.resource_document(address, wire_type(parsed), version)
        read = head if version is None else version
        if read is None:
            return data
        try:
            return decode_json(self.abis.at(read).layout(parsed), data, where=tag)
        except SchemaError as error:
            self._credentials.mask_error(error)
            raise

    def account(self, address: str, *, ledger_version: int | None = None) -> AccountInfo:
        """Return sequence number and authentication key of an account."""
        return self._companion.account(address, as_version_or_head(ledger_version))

    def block(self, ledger_version: int) -> BlockInfo:
        """Return the block that holds a version. Source: ``GET /v1/blocks/by_version/{version}``."""
        return self._companion.block(as_version(ledger_version))

    def transaction(self, ledger_version: int) -> Any:
        """Return the committed transaction of a version, decoded. Source: ``GET /v1/transactions/by_version/...``."""
        return self.transaction_and_head(ledger_version)[0]

    def transaction_and_head(self, ledger_version: int) -> tuple[Any, LedgerState | None]:
        """Return what `transaction` does and the node's head when it answered, if the answer has it."""
        return self._companion.transaction(as_version(ledger_version))

    def transactions(self, start: int, limit: int = 100) -> list[Any]:
        """Return a page of committed transactions, decoded. Source: ``GET /v1/transactions?start=&limit=``.

        The node may give fewer than `limit`; `fetch_transactions` reads on.
        """
        return self._companion.transactions(as_version(start), limit)

    def gas_price(self) -> GasPriceEstimate:
        """Return the node's price estimates, in octas per gas unit. Source: ``GET /v1/estimate_gas_price``."""
        return self._companion.gas_price()

    def gas_schedule(self, ledger_version: int | None = None) -> GasSchedule:
        """Return the on-chain gas schedule.

        Parameters
        ----------
        ledger_version : int, optional
            Version whose state is read; the head by default.

        Returns
        -------
        GasSchedule
            With ``feature_version`` and ``entries``, each parameter's value by name.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node does not tell it.

        See Also
        --------
        toolkit.schedule_diff : Compares two of them.

        Notes
        -----
        Source: resource ``0x1::gas_schedule::GasScheduleV2`` of ``0x1``.
        """
        return self._companion.gas_schedule(as_version_or_head(ledger_version))

    def probe(self) -> Probe:
        """Find out what the node really answers, with about 20 requests.

        Returns
        -------
        Probe
            The oldest ledger version a view answers at, not only what the headers claim; whether gas is told, and
            the same each time; which companion reads the node offers. Version plans of this node start from what
            was found.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node does not even tell its ledger.
        """
        before = self._connection.sent
        with self.fresh():
            found = probe(self)
        self.probed = replace(found, requests=self._connection.sent - before)
        return self.probed

    def oldest_readable(self, ledger: LedgerState) -> int:
        """Return the oldest version that plans start from: as the ledger claims, or as a probe has found."""
        found = self.probed.oldest_readable if self.probed else None
        return ledger.oldest_version if found is None else max(ledger.oldest_version, found)

    def version_at(self, time: str | date) -> int:
        """Return the first ledger version at or after a time, by bisection on block times.

        Parameters
        ----------
        time : str, datetime or date
            ISO 8601; UTC where no offset is given.

        Returns
        -------
        int

        Raises
        ------
        InputError
            If the time is no date, lies after the node's head, or before the oldest version the node holds.
        """
        when, ledger = moment(time), self.ledger()
        found = self.first_from(when, ledger)
        if found > ledger.version:
            raise InputError(f"{when.isoformat()} lies after this node's head, {ledger.timestamp.isoformat()}")
        if found < 0:
            oldest = self.block(ledger.oldest_version).block_timestamp
            of = f" of {oldest.isoformat()}" if oldest else ""
            raise InputError(
                f"{when.isoformat()} lies before version {ledger.oldest_version}{of}, the oldest this node holds; "
                "read from there, or ask an archive node"
            )
        return found

    def first_from(self, time: datetime, ledger: LedgerState) -> int:
        """Return what `version_at` does within a ledger; -1 before its oldest version, head + 1 after its head."""
        return self._companion.first_from(time, ledger)


def _rebuilt(settings: dict[str, Any], had_key: bool) -> Node:  # noqa: FBT001 - called by pickle alone
    return Node(**settings, api_key=(had_key and environment_key()) or "")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A node as it stood at one ledger version: the same reads, all pinned.

    Attributes
    ----------
    node : Node
    ledger_version : int
    """

    node: Node
    ledger_version: int

    def view(
        self,
        function: str | ViewFunction,
        *,
        type_arguments: Sequence[str] = (),
        arguments: Sequence[Any] = (),
    ) -> ViewResult:
        """Run a view function on the state of this version; see `Node.view`."""
        return self.node.view(
            function, type_arguments=type_arguments, arguments=arguments, ledger_version=self.ledger_version
        )

    def table_item(self, handle: str, *, key: Any, key_type: str, value_type: str) -> TableItem:
        """Read a table item as it stood at this version; see `Node.table_item`."""
        return self.node.table_item(
            handle, key=key, key_type=key_type, value_type=value_type, ledger_version=self.ledger_version
        )

    def module(self, address: str, name: str) -> ModuleAbi | None:
        """Return a module's ABI as it stood at this version."""
        return self.node.module(address, name, ledger_version=self.ledger_version)

    def resource(self, address: str, tag: str) -> Any:
        """Return a resource as it stood at this version."""
        return self.node.resource(address, tag, ledger_version=self.ledger_version)

    def gas_schedule(self) -> GasSchedule:
        """Return the gas schedule as it stood at this version."""
        return self.node.gas_schedule(self.ledger_version)

    def simulate(self, *_: object, **__: object) -> Simulation:
        """Raise NotAtPast: the service simulates at its head only."""
        raise NotAtPast(
            f"a node simulates at its head only, not at version {self.ledger_version}. Other roads: node.simulate(); "
            "view functions at past versions carry gas too (fetch_views); committed transactions tell what was "
            "really charged (fetch_transactions); a local session of the chain's own command line forks past state"
        )


def _view_function(
    function: str | ViewFunction, type_arguments: Sequence[str], arguments: Sequence[Any]
) -> ViewFunction:
    from toolkit.wire import ViewFunction

    if isinstance(function, ViewFunction):
        if type_arguments or arguments:
            raise InputError("view got a whole ViewFunction and further arguments; put them into the ViewFunction")
        return function
    return ViewFunction(function, type_arguments=tuple(type_arguments), arguments=tuple(arguments))
