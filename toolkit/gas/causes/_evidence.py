"""The reads that causes and timelines are derived from, each made once per node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from toolkit._present.text import visible
from toolkit.client._reads import ABSENT
from toolkit.errors import NodeError, NodeUnreachable, NotFound, SchemaError, ToolkitError
from toolkit.gas.causes._packages import REGISTRY, Dependencies, Package, dependencies, packages_of
from toolkit.move import parse_type_tag
from toolkit.wire import GasSchedule, enabled_features

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolkit.client._abis import Known
    from toolkit.client._node import Node
    from toolkit.move import Layout, ModuleId

__all__ = ["FEATURES", "FRAMEWORK", "SCHEDULE", "UNREAD", "Evidence", "reason"]

FRAMEWORK = "0x1"
FEATURES = "0x1::features::Features"
SCHEDULE = "0x1::gas_schedule::GasScheduleV2"
UNREAD = (NodeError, NodeUnreachable, SchemaError)
"""Raised by a read that the node does not offer, or answers in a form that cannot be used."""

_MAX_REASON = 120
T = TypeVar("T")


class Evidence:
    """Reads from one node the data that causes are derived from. Instances can be shared by threads.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._results: dict[tuple[Any, ...], Any] = {}

    def transaction(self, version: int) -> Any:
        """Return the transaction of a version."""
        return self._once(("transaction", version), lambda: self._node.transaction(version))

    def schedule(self, version: int) -> GasSchedule:
        """Return the gas schedule at a version."""
        found: GasSchedule | None = self.resource(FRAMEWORK, SCHEDULE, version)
        if found is None:
            raise SchemaError(f"the ledger has no {SCHEDULE} at version {version}")
        return found

    def resource(self, address: str, tag: str, version: int) -> Any:
        """Return a resource at a version: its JSON, or packages, or a gas schedule; None if it does not exist."""
        return self._once(
            ("resource", address, tag, version),
            lambda: _resource_of(address, tag, self._node.resource_json(address, tag, version)),
        )

    def read_resources(self, wanted: Iterable[tuple[str, str, int]]) -> None:
        """Read resources by address, tag and version, all at once; `resource` then returns each, or raises.

        Raises
        ------
        LedgerChanged, ClosedError
            If the node serves another ledger, or is closed.
        """
        missing = [key for key in dict.fromkeys(wanted) if ("resource", *key) not in self._results]
        for place, outcome in self._node.many([self._node.prepare_resource(*key) for key in missing]):
            key = missing[place]
            self._results["resource", *key] = _usable(key, outcome)

    def features(self, version: int) -> frozenset[int]:
        """Return the feature flags that are on at a version; empty if the framework does not have flags."""
        data = self.resource(FRAMEWORK, FEATURES, version)
        return frozenset() if data is None else enabled_features(data)

    def packages(self, address: str, version: int) -> tuple[Package, ...]:
        """Return the packages of an address at a version."""
        return self.resource(address, REGISTRY, version) or ()

    def dependencies(self, called: ModuleId, version: int) -> Dependencies | None:
        """Return the packages that a module needs at a version; None if no package contains it."""
        return dependencies(called, lambda address: self.packages(address, version))

    def module(self, module: ModuleId, version: int) -> Known:
        """Return a module at a version; see `AbiStore.read`."""
        return self._once(
            ("module", module, version), lambda: self._node.abis.read(module.address, module.name, version)
        )

    def layout(self, text: str, version: int) -> Layout:
        """Return the layout of a type at a version."""
        return self._node.abis.at(version).layout(parse_type_tag(text))

    @property
    def reads(self) -> int:
        """Number of reads so far. An answer that was stored counts, a request that was repeated counts once."""
        return len(self._results)

    def _once(self, key: tuple[Any, ...], read: Callable[[], T]) -> T:
        """Read once; a failed read is not repeated either."""
        if key not in self._results:
            try:
                self._results[key] = read()
            except UNREAD as error:
                self._results[key] = error
        result: T | ToolkitError = self._results[key]
        if isinstance(result, ToolkitError):
            raise result
        return result


def reason(error: Exception) -> str:
    """Return in a few words why a read failed."""
    if isinstance(error, NodeError):
        code = f" {visible(error.error_code, 40)}" if error.error_code else ""
        return f"the node answered {error.status}{code}: {visible(error.message, _MAX_REASON)}"
    if isinstance(error, NodeUnreachable):
        return "the node did not answer"
    return visible(error, 2 * _MAX_REASON)


def _resource_of(address: str, tag: str, data: Any) -> Any:
    """Return a resource as far as causes need it: the packages of an address have their sources, which are large."""
    if data is None:
        return None
    if tag == REGISTRY:
        return packages_of(data, address)
    return GasSchedule.from_resource(data) if tag == SCHEDULE else data


def _usable(key: tuple[str, str, int], outcome: Any) -> Any:
    """Return what a read returned, or the error that says why it cannot be used; other errors are raised."""
    if isinstance(outcome, NotFound) and outcome.error_code in ABSENT:
        return None
    if isinstance(outcome, UNREAD):
        return outcome
    if isinstance(outcome, ToolkitError):
        raise outcome
    try:
        return _resource_of(key[0], key[1], outcome[0])
    except SchemaError as error:
        return error
