"""Forks of embedded nodes, whose contracts are Python: their own executions, with the interface of `Fork`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from toolkit.client._http import served_ledger
from toolkit.client._ledger_transport import LedgerTransport
from toolkit.errors import InputError
from toolkit.fork._fork import Fork, ForkSimulation
from toolkit.fork._schedule import proposed_schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.fork._replay import Replay
    from toolkit.wire import Batch, EntryFunction, GasSchedule, SimulationRequest

_NO_REPLAY = (
    "the contracts of an embedded node are Python, not bytecode, so a replay cannot be verified; simulate the call on "
    "node.fork(version - 1)"
)


def fork_of(node: Any, ledger_version: int | None = None) -> Fork:
    """Return a fork of a node; see `Node.fork`."""
    ledger = served_ledger(node.url)
    return Fork(node, ledger_version) if ledger is None else EmbeddedFork(node, ledger, ledger_version)


def check_bytecode(node: Any) -> None:
    """Raise InputError for an embedded node, on which nothing can be replayed."""
    if served_ledger(node.url) is not None:
        raise InputError(_NO_REPLAY)


class _EmbeddedSimulation(ForkSimulation):
    """A simulation on a fork of an embedded node, whose executions are profiles."""

    def _gas_of_calls(self) -> list[tuple[int, int]]:
        if self.profile is None:
            raise InputError(f"the batch was discarded before it ran: {self.vm_status}")
        calls: Any = self.request.payload
        found: list[tuple[int, int]] = self.profile.gas_of_calls(len(calls.calls))
        return found


class EmbeddedFork(Fork):
    """A copy of an embedded ledger up to a version, with the interface of `Fork`.

    `publish` takes classes of contracts. Gas is the model of the embedded node, as are the profiles.
    """

    def __init__(self, node: Any, ledger: Any, ledger_version: int | None = None) -> None:
        self._source = node
        self._base = node.version_or_head(None) if ledger_version is None else node.past_version(ledger_version)
        self._copy = ledger.copy(self._base)
        name = f"fork of {node.name} at version {self._base:,}"
        self.node = type(node)("http://fork.invalid/v1", transport=LedgerTransport(self._copy), name=name)

    @property
    def ledger_version(self) -> int:
        """Version of the fork's head."""
        return int(self._copy.head)

    @property
    def base_version(self) -> int:
        """Version of the node that was forked."""
        return int(self._base)

    def simulate(
        self, request: SimulationRequest | EntryFunction | Batch, *, sender: str | None = None, **options: Any
    ) -> ForkSimulation:
        """Run a transaction on the fork's state, and forget what it did; see `Fork.simulate`."""
        found = self.node.simulate(request, sender=sender, **options)
        values = {one.name: getattr(found, one.name) for one in fields(found)}
        profile = None
        with suppress(InputError):  # a transaction that is discarded has no profile
            profile = self._copy.profile(found.request)
        return _EmbeddedSimulation(**values, profile=profile)

    def execute(
        self, request: SimulationRequest | EntryFunction | Batch, *, sender: str | None = None, **options: Any
    ) -> ForkSimulation:
        """Run a transaction on the fork's state, and keep what it did; see `Fork.execute`."""
        done = self.simulate(request, sender=sender, **options)
        if done.gas is not None:  # else it was discarded
            self._copy.execute(done.request, check=False)
        return done

    def replay(self, ledger_version: int) -> Replay:  # noqa: ARG002 - of the interface
        """Raise InputError: what a replay verifies, bytecode, does not exist here."""
        raise InputError(_NO_REPLAY)

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
