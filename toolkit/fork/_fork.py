"""A fork: executions on a node's state at a version, with changes that nobody else sees."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

from toolkit._present.notebook import facts_html
from toolkit._present.text import listed, plural, visible
from toolkit.client._batch import call_frame
from toolkit.client._http import EMBEDDED_FORK, served_ledger
from toolkit.client._ledger_transport import LedgerTransport
from toolkit.client._simulation import Simulation
from toolkit.errors import InputError, ToolkitError
from toolkit.fork._ledger import GAS_SCHEDULE, TIMESTAMP, ForkLedger, ForkTransport, call_framework
from toolkit.fork._package import Package, metadata_of
from toolkit.fork._replay import Replay, replay_one
from toolkit.fork._schedule import changed_schedule, proposed_schedule, read_schedule
from toolkit.fork._state import NodeState, StateSource, is_module
from toolkit.frames._schema import FORK_BATCH_GAS
from toolkit.move import encode_bcs, parse_type_tag
from toolkit.move._ids import address_to_bytes
from toolkit.vm._state import Group, module_key
from toolkit.vm._types import Struct, from_tag
from toolkit.wire import Batch, EntryFunction, ViewFunction

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from toolkit.client._calls import ViewResult
    from toolkit.vm import Execution, View
    from toolkit.vm._results import Trace
    from toolkit.vm._state import StateValue
    from toolkit.wire import GasSchedule, SimulationRequest

_CREATE_ACCOUNT = "0x1::account::create_account_if_does_not_exist"
_MINT = "0x1::transaction_fee::mint_and_refund"
_PUBLISH = "0x1::code::publish_package_txn"
_MAX_NAMED = 3  # modules in a message
_MAX_SECONDS = 10**10  # times beyond the year 9999 cannot be shown
_NO_BYTECODE = (
    "an embedded node has no bytecode to replay; for past state, use node.fork(version) in Python, in the process that "
    "has the Ledger"
)


@dataclass(frozen=True, repr=False)
class ForkSimulation(Simulation):
    """The outcome of a transaction that ran on a fork: a simulation, with the execution itself.

    Attributes
    ----------
    profile : Profile, GasProfile or None
        Gas by function, and the call tree; on an embedded node, that of its model. None if the transaction was
        discarded before it ran on an embedded node.
    unknown : tuple of str
        Parts of the gas that are not exact, because the node does not serve the metadata of slots: ``storage``,
        ``refund``. Empty on a node that serves raw state values.
    """

    profile: Any = field(kw_only=True, repr=False, compare=False)
    unknown: tuple[str, ...] = field(kw_only=True, default=())
    _execution: Execution | None = field(kw_only=True, default=None, repr=False, compare=False)
    # Of a batch: execution and io gas before its calls, of each, and after them.
    _gas_of_calls: Sequence[tuple[int, int]] = field(kw_only=True, default=(), repr=False, compare=False)

    @classmethod
    def of(cls, found: Simulation, **more: Any) -> Self:
        """Return a simulation with what the fork knows of it."""
        return cls(**{one.name: getattr(found, one.name) for one in fields(found)}, **more)

    @property
    def trace(self) -> Trace:
        """The instructions that ran, one by one.

        Raises
        ------
        InputError
            If the simulation was unpickled.
        """
        if self._execution is None:
            raise InputError("an unpickled simulation has no trace; simulate again, or read `trace` before pickling")
        return self._execution.trace

    def gas_by_call(self) -> pd.DataFrame:
        """Return the gas of each call of a batch, as it ran here.

        Gas is less than additive: the first call that uses a resource or a table item pays for loading it, and later
        ones use it for almost nothing. Modules are loaded before the first call.

        Returns
        -------
        DataFrame
            ``call``: position in the batch, null in the first and last row. ``function``: its function;
            ``transaction`` for what is charged before the calls, ``changes`` for what is written at the end (on an
            embedded node, writes count with the call). ``execution_gas``, ``io_gas``: internal gas, exact. Storage fees
            are in `gas`.

        Raises
        ------
        InputError
            If the payload is not a batch, or it was discarded before it ran.
        """
        batch, found = self._batch(), self._gas_of_calls
        if not found:
            raise InputError(f"the batch was discarded before it ran: {self.vm_status}")
        not_reached = [(0, 0)] * (len(batch.calls) + 2 - len(found))
        return call_frame(batch, [*found[:-1], *not_reached, found[-1]], FORK_BATCH_GAS)

    def _lines(self, *about: Any) -> list[str]:
        what = f"Not exact: {', '.join(self.unknown)}; the node does not serve the metadata of slots."
        return super()._lines(*about) + [what] * bool(self.unknown)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_execution": None}


class Fork:
    """A node's state at a version, on which any call can run. Created by `Node.fork`.

    State is read from the node when it is needed, and cached as other pinned reads. What is executed, published or set
    is stored in the fork only, each time as one more version. Transactions run in the Move machine, `toolkit.vm`, from
    prologue to epilogue.

    Parameters
    ----------
    node : Node
    ledger_version : int, optional
        Version whose state is forked; the head by default.

    Attributes
    ----------
    node : Node
        A node that reads from this fork: contracts, resources, table items and views, with the methods of any node.

    Examples
    --------
    >>> import toolkit
    >>> fork = toolkit.connect().fork(2_251)
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0x2", 100])
    >>> done = fork.execute(call, sender="0x1")
    >>> balance = toolkit.ViewFunction("0x1::coin::balance", ["0x2"], type_arguments=["0x1::aptos_coin::AptosCoin"])
    >>> done.success, fork.view(balance).value
    (True, 100)
    """

    def __init__(self, node: Any, ledger_version: int | None = None, *, state: NodeState | None = None) -> None:
        version = node.ledger().version if ledger_version is None else node.past_version(ledger_version)
        self._source = node
        # One that was read ahead, of the same version.
        self._state = state or NodeState(StateSource(node), version)
        self._ledger = ForkLedger(self._state)
        self._transport = ForkTransport(self._ledger)
        name = f"fork of {node.name} at version {version:,}"
        # Calls in BCS: a fork has the bytecode of every type, so it need not guess from JSON.
        # By the class of the node, because the client's module imports this package.
        self.node: Any = type(node)("http://fork.invalid/v1", transport=self._transport, name=name, encoding="bcs")

    @property
    def ledger_version(self) -> int:
        """Version of the fork's head: that of the forked state, and one more for each change."""
        return self._ledger.version

    @property
    def base_version(self) -> int:
        """Version of the node whose state was forked."""
        return self._state.version

    def __repr__(self) -> str:
        more = self.ledger_version - self.base_version
        changes = f", {plural(more, 'change')}" if more else ""
        return visible(f"<Fork of {self._source.name} at version {self.base_version:,}{changes}>", 200)

    def _repr_html_(self) -> str:
        facts = [("version", self.base_version), ("changes", self.ledger_version - self.base_version)]
        return facts_html(f"fork of {self._source.name}", facts)

    # calls ------------------------------------------------------------------------------------------------------

    def simulate(
        self,
        request: str | SimulationRequest | EntryFunction | Batch,
        arguments: Sequence[Any] = (),
        *,
        type_arguments: Sequence[str] = (),
        sender: str | None = None,
        **options: Any,
    ) -> ForkSimulation:
        """Run a transaction on the fork's state, and forget what it did.

        Parameters
        ----------
        request, arguments, type_arguments, sender, **options
            As for `Node.simulate`. Any account may be the sender; no key is needed.

        Returns
        -------
        ForkSimulation
            The result of `Node.simulate`, with `profile` and `trace`.

        Raises
        ------
        InputError, SchemaError
            If the request does not fit the function's ABI.
        Unsupported
            If the code needs something that the machine does not implement.
        NodeError, NodeUnreachable
            If state cannot be read from the node; `VersionPruned` if it no longer has the version.
        """
        found = self.node.simulate(request, arguments, type_arguments=type_arguments, sender=sender, **options)
        execution = self._transport.executions.pop(found.transaction.hash)
        unknown = () if self._state.has_metadata else ("storage", "refund")
        ran = isinstance(found.request.payload, Batch) and execution.status.kind != "discard"
        calls = execution.gas_of_calls() if ran else ()
        return ForkSimulation.of(
            found, profile=execution.profile, unknown=unknown, _execution=execution, _gas_of_calls=calls
        )

    def execute(
        self,
        request: str | SimulationRequest | EntryFunction | Batch,
        arguments: Sequence[Any] = (),
        *,
        type_arguments: Sequence[str] = (),
        sender: str | None = None,
        **options: Any,
    ) -> ForkSimulation:
        """Run a transaction on the fork's state, and keep what it did for the calls that follow.

        Parameters and errors are those of `simulate`. A transaction that fails is kept too, as on a ledger: its fee is
        charged. One that is discarded changes nothing.

        Returns
        -------
        ForkSimulation
        """
        done = self.simulate(request, arguments, type_arguments=type_arguments, sender=sender, **options)
        assert done._execution is not None  # noqa: S101, SLF001 - of this module, and just made
        writes = done._execution.writes  # noqa: SLF001
        if done._execution.status.kind != "discard":  # noqa: SLF001
            self._ledger.commit(
                {key: None if one.value is None else (one.value, one.metadata) for key, one in writes.items()}
            )
        return done

    def view(
        self,
        function: str | ViewFunction,
        arguments: Sequence[Any] = (),
        *,
        type_arguments: Sequence[str] = (),
    ) -> ViewResult:
        """Run a view function on the fork's state; see `Node.view`."""
        return self.node.view(function, arguments, type_arguments=type_arguments)  # type: ignore[no-any-return]

    def replay(self, ledger_version: int) -> Replay:
        """Run a committed transaction on the fork's state, and compare it with the ledger.

        The transaction of version V ran on the state of version V - 1. On another state, or after changes to the fork,
        the differences show what the state, the code or the schedule makes of it.

        Parameters
        ----------
        ledger_version : int

        Returns
        -------
        Replay

        Raises
        ------
        InputError
            If the version is not a user transaction.
        Unsupported
            If the machine does not implement something that the transaction needs.
        NodeError, NodeUnreachable, SchemaError
            If the transaction or state cannot be read.
        """
        version = self._source.past_version(ledger_version)
        return replay_one(self._source, version, self._state, self._ledger.at(self.ledger_version))

    # changes ----------------------------------------------------------------------------------------------------

    def publish(
        self, package: str | os.PathLike[str] | bytes | Iterable[bytes], *, metadata: bytes | None = None
    ) -> ForkSimulation:
        """Publish or upgrade a package, as a transaction of the account for which it was compiled.

        Parameters
        ----------
        package : path, bytes or iterable of bytes
            The folder that the compiler leaves, ``build/Name``, with ``bytecode_modules/*.mv`` and
            ``package-metadata.bcs``; or the bytes of modules.
        metadata : bytes, optional
            Contents of ``package-metadata.bcs``. For bytes of modules it is made from the packages of the ledger.

        Returns
        -------
        ForkSimulation
            Of ``0x1::code::publish_package_txn``, which also checks compatibility with what is published.

        Raises
        ------
        InputError
            If the package cannot be read, or publishing fails; the message has the status.
        """
        found = Package.read(package, metadata)
        data = found.metadata
        if data is None:
            data = metadata_of(found, self._ledger, self._transport.abis(self.ledger_version))
        call = EntryFunction(_PUBLISH, arguments=[data, list(found.codes)])
        done = self.execute(call, sender=found.address, max_gas_amount=self._ledger.max_gas)
        if not done.success:
            raise InputError(f"the package of {found.address} cannot be published: {done.vm_status}")
        return done

    def fund(self, address: str, amount: int) -> None:
        """Mint gas coins into an account, which is created if it does not exist.

        Parameters
        ----------
        address : str
        amount : int
            In octas.

        Raises
        ------
        InputError
            If the framework of the ledger does not mint, or `amount` is not a u64.
        """
        if type(amount) is not int or not 0 < amount < 1 << 64:
            raise InputError(f"amount: expected an int from 1 to 2^64 - 1 octas, got {amount!r:.60}")
        where = address_to_bytes(address)
        self._call(_CREATE_ACCOUNT, where)
        self._call(_MINT, where, amount.to_bytes(8, "little"))

    def _call(self, function: str, *arguments: bytes) -> None:
        self._ledger.commit(call_framework(self._ledger.at(self.ledger_version), function, arguments))

    def advance(self, *, seconds: float) -> None:
        """Move the time of the ledger forward.

        Raises
        ------
        InputError
            If `seconds` is not positive, or more than 10^10, about 300 years.
        """
        if not 0 < seconds <= _MAX_SECONDS:
            raise InputError(f"seconds: expected a positive number up to 10^10, got {seconds!r:.60}")
        now = self._ledger.timestamp_us() + round(seconds * 1_000_000)
        self._set(TIMESTAMP, now.to_bytes(8, "little"))

    def _set(self, key: bytes, value: bytes | None) -> None:
        before = self._ledger.at(self.ledger_version)(key)
        metadata = None if before is None else before[1]
        self._ledger.commit({key: None if value is None else (value, metadata)})

    @property
    def gas_schedule(self) -> GasSchedule:
        """The gas schedule. Assign a `GasSchedule`, or a mapping of parameters or patterns to values or factors.

        Such as ``{"instr.add": 1_000}`` or ``{"instr.*": "x10"}``.
        """
        return read_schedule(self._ledger.value(GAS_SCHEDULE))

    @gas_schedule.setter
    def gas_schedule(self, schedule: GasSchedule | Mapping[str, int | str]) -> None:
        self._set(GAS_SCHEDULE, changed_schedule(self._ledger.value(GAS_SCHEDULE), schedule))

    def set_resource(self, address: str, tag: str, value: Any) -> None:
        """Set or remove a resource, without running code.

        Parameters
        ----------
        address : str
        tag : str
            Struct tag.
        value : object
            Python value of the type, or its BCS as bytes; None removes the resource.

        Raises
        ------
        InputError, SchemaError
            If the type does not exist, or the value does not fit it.
        """
        kind = parse_type_tag(tag)
        parsed = from_tag(kind)
        if not isinstance(parsed, Struct):
            raise InputError(f"tag: expected a struct, got {tag}")
        if value is not None and not isinstance(value, bytes):
            value = encode_bcs(self._transport.abis(self.ledger_version).layout(kind), value)
        key, member = self._ledger.place(address, parsed, self.ledger_version)
        if member is not None:
            found = self._ledger.at(self.ledger_version)(key)
            group = Group(None if found is None else found[0])
            group.members.pop(member, None)
            if value is not None:
                group.members[member] = value
            value = group.encoded()
        self._set(key, value)


def replaced_code(fork: Fork, code: Any) -> tuple[dict[bytes, bytes], dict[bytes, StateValue]]:
    """Publish a package on a fork, and return its modules by state key and what else publishing created.

    Raises
    ------
    InputError
        If the package cannot be read or published, or none of its modules replaces one of the ledger.
    """
    package, read = Package.read(code), fork._ledger.at(fork.ledger_version)  # noqa: SLF001 - of this module
    modules = {module_key(module.id): data for module, data in zip(package.modules, package.codes, strict=True)}
    if not any(read(key) for key in modules):
        names = listed((str(module.id) for module in package.modules), _MAX_NAMED)
        raise InputError(
            f"none of the modules of the package ({names}) is on this ledger at version {fork.base_version:,}, so it "
            f"replaces no code; compile it for the address of the published package, not for {package.address}"
        )
    done = fork.publish(code)._execution  # noqa: SLF001
    assert done is not None  # noqa: S101 - just made
    created = {
        key: (one.value, one.metadata)
        for key, one in done.writes.items()
        if one.op == "create" and one.value is not None and not is_module(key)
    }
    return modules, created


def run_call(fork: Fork, call: ViewFunction | SimulationRequest, *, max_gas: int) -> Execution | View:
    """Run a call on a fork with a gas limit; a lower one of the call itself stays.

    Raises
    ------
    InputError, SchemaError
        If the call does not fit the function's ABI.
    NodeError
        If the function does not exist, or state cannot be read.
    Unsupported
        If the code needs something that the machine does not implement.
    """
    if isinstance(call, ViewFunction):
        body = fork.node.prepare_view(call).request.body
        return fork._transport.run_view(body, fork.ledger_version, max_gas=max_gas)  # noqa: SLF001 - of this module
    limit = max_gas if call.max_gas_amount is None else min(max_gas, call.max_gas_amount)
    done = fork.simulate(call.model_copy(update={"max_gas_amount": limit}))._execution  # noqa: SLF001
    assert done is not None  # noqa: S101 - just made
    return done


# Forks of embedded nodes, whose contracts are Python: their own executions, with the interface of `Fork`.


def fork_of(node: Any, ledger_version: int | None = None) -> Fork:
    """Return a fork of a node; see `Node.fork`."""
    if (ledger := served_ledger(node.url)) is not None:
        return EmbeddedFork(node, ledger, ledger_version)
    check_bytecode(node)
    return Fork(node, ledger_version)


def check_bytecode(node: Any) -> None:
    """Raise InputError for an embedded node, in this process or another."""
    build = None
    with suppress(ToolkitError):  # a node that offers only the three POST operations has no build
        build = node.info().git_hash
    if (build or "").startswith("embedded"):
        raise InputError(_NO_BYTECODE)


class EmbeddedFork(Fork):
    """A copy of an embedded ledger up to a version, with the interface of `Fork`.

    `publish` takes classes of contracts. Gas is the model of the embedded node, as are the profiles.
    """

    def __init__(self, node: Any, ledger: Any, ledger_version: int | None = None) -> None:
        self._source = node
        self._base = node.version_or_head(None) if ledger_version is None else node.past_version(ledger_version)
        self._copy = ledger.copy(self._base)
        name = f"fork of {node.name} at version {self._base:,}"
        self.node = type(node)(EMBEDDED_FORK, transport=LedgerTransport(self._copy), name=name)

    @property
    def ledger_version(self) -> int:
        """Version of the fork's head."""
        return int(self._copy.head)

    @property
    def base_version(self) -> int:
        """Version of the node that was forked."""
        return int(self._base)

    def simulate(self, request: Any, arguments: Sequence[Any] = (), **options: Any) -> ForkSimulation:
        """Run a transaction on the fork's state, and forget what it did; see `Fork.simulate`."""
        found = self.node.simulate(request, arguments, **options)
        profile, calls = None, ()
        with suppress(InputError):  # a transaction that is discarded has no profile
            profile = self._copy.profile(found.request)
            if isinstance(batch := found.request.payload, Batch):
                calls = profile.gas_of_calls(len(batch.calls))
        return ForkSimulation.of(found, profile=profile, _gas_of_calls=calls)

    def execute(self, request: Any, arguments: Sequence[Any] = (), **options: Any) -> ForkSimulation:
        """Run a transaction on the fork's state, and keep what it did; see `Fork.execute`."""
        done = self.simulate(request, arguments, **options)
        if done.gas is not None:  # else it was discarded
            self._copy.execute(done.request, check=False)
        return done

    def replay(self, ledger_version: int) -> Replay:  # noqa: ARG002 - of the interface
        """Raise InputError: what a replay verifies, bytecode, does not exist here."""
        raise InputError(_NO_BYTECODE)

    def publish(self, package: Any, *, metadata: bytes | None = None) -> Any:
        """Publish a class of a contract, or several; return the committed transaction.

        Raises
        ------
        InputError
            If they cannot be published.
        """
        if metadata is not None or isinstance(package, str | bytes):
            raise InputError("on an embedded node, publish takes classes of contracts")
        return self._copy.publish(*(package if isinstance(package, list | tuple) else (package,)))

    def fund(self, address: str, amount: int) -> None:
        """Mint gas coins into an account; see `Fork.fund`."""
        self._copy.fund(address, amount)

    def advance(self, *, seconds: float) -> None:
        """Move the time of the ledger forward, by a block."""
        self._copy.advance(seconds=seconds)

    @property
    def gas_schedule(self) -> GasSchedule:
        """The gas schedule; assign to it as to that of `Fork`."""
        found: GasSchedule = self.node.gas_schedule()
        return found

    @gas_schedule.setter
    def gas_schedule(self, schedule: GasSchedule | Mapping[str, int | str]) -> None:
        whole = proposed_schedule(self.gas_schedule, schedule)
        entries = [{"key": name, "val": value} for name, value in whole.entries.items()]
        kind = type(self._copy.chain.schedule_at(self._copy.head))
        self._copy.set_gas_schedule(kind.from_resource({"feature_version": whole.feature_version, "entries": entries}))

    def set_resource(self, address: str, tag: str, value: Any) -> None:  # noqa: ARG002 - of the interface
        """Raise InputError: the contracts of an embedded node own their resources."""
        raise InputError("resources of an embedded node are set by contracts; publish one, or use Ledger.govern")
