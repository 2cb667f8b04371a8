"""The reads that causes are derived from, each made once per node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from toolkit._present.text import visible
from toolkit.client._reads import ABSENT
from toolkit.errors import NodeError, NodeUnreachable, NotFound, SchemaError, ToolkitError
from toolkit.gas.causes._packages import REGISTRY, Dependencies, Package, dependencies, packages_of
from toolkit.move import parse_type_tag
from toolkit.wire import enabled_features

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.client._abis import Known
    from toolkit.client._node import Node
    from toolkit.move import Layout, ModuleId
    from toolkit.wire import GasSchedule

__all__ = ["FEATURES", "FRAMEWORK", "UNREAD", "Evidence", "reason"]

FRAMEWORK = "0x1"
FEATURES = "0x1::features::Features"
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
        return self._once(("schedule", version), lambda: self._node.gas_schedule(version))

    def resource(self, address: str, tag: str, version: int) -> Any:
        """Return a resource at a version; None if it does not exist."""
        return self._once(("resource", address, tag, version), lambda: self._resource(address, tag, version))

    def features(self, version: int) -> frozenset[int]:
        """Return the feature flags that are on at a version; empty if the framework does not have flags."""
        data = self.resource(FRAMEWORK, FEATURES, version)
        return frozenset() if data is None else enabled_features(data)

    def packages(self, address: str, version: int) -> tuple[Package, ...]:
        """Return the packages of an address at a version."""
        data = self.resource(address, REGISTRY, version)
        return () if data is None else packages_of(data, address)

    def dependencies(self, called: ModuleId, version: int) -> Dependencies | None:
        """Return the packages that a module needs at a version; None if no package contains it."""
        return dependencies(called, lambda address: self.packages(address, version))

    def module(self, module: ModuleId, version: int) -> Known:
        """Return a module at a version; see `AbiStore.read`."""
        return self._node.abis.read(module.address, module.name, version)

    def layout(self, text: str, version: int) -> Layout:
        """Return the layout of a type at a version."""
        return self._node.abis.at(version).layout(parse_type_tag(text))

    def _resource(self, address: str, tag: str, version: int) -> Any:
        try:
            return self._node.resource(address, tag, ledger_version=version)
        except NotFound as error:
            if error.error_code not in ABSENT:
                raise
            return None

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
