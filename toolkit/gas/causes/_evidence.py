"""What causes and timelines are derived from: reads, each made once per node, and the packages of module ids."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from toolkit._present.messages import shorten
from toolkit._present.text import visible
from toolkit.client._node_errors import ABSENT
from toolkit.errors import InputError, NodeError, NodeUnreachable, NotFound, SchemaError, ToolkitError
from toolkit.move import parse_address, parse_type_tag
from toolkit.move._ids import check_identifier
from toolkit.wire import GasSchedule, enabled_features

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolkit.client._abis import Known
    from toolkit.client._node import Node
    from toolkit.move import Layout, ModuleId

__all__ = [
    "FEATURES",
    "FRAMEWORK",
    "REGISTRY",
    "SCHEDULE",
    "UNREAD",
    "Dependencies",
    "Evidence",
    "Package",
    "dependencies",
    "packages_of",
    "reason",
]

FRAMEWORK = "0x1"
FEATURES = "0x1::features::Features"
SCHEDULE = "0x1::gas_schedule::GasScheduleV2"
UNREAD = (NodeError, NodeUnreachable, SchemaError)
"""Raised by a read that the node does not offer, or answers in a form that cannot be used."""

REGISTRY = "0x1::code::PackageRegistry"
_MAX_PACKAGES = 200
"""Packages that are followed from one module; a registry that names more is malicious or damaged."""
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


class Package(NamedTuple):
    """One package of an address: its upgrade number, its modules, and the packages it depends on."""

    address: str
    name: str
    upgrade_number: int
    modules: frozenset[str]
    needs: tuple[tuple[str, str], ...]


class Dependencies(NamedTuple):
    """The packages that a called module needs at one version.

    Attributes
    ----------
    own : Package
        The package that contains the module.
    others : tuple of Package
        Its dependencies, direct and indirect.
    complete : bool
        False if a dependency was not found.
    """

    own: Package
    others: tuple[Package, ...]
    complete: bool

    @property
    def packages(self) -> tuple[Package, ...]:
        """All packages, the module's own first."""
        return (self.own, *self.others)

    def distance(self, module: ModuleId) -> int | None:
        """Return the position in `packages` of the one that contains a module, 0 for the own; None if none does."""
        holds = (package.address == module.address and module.name in package.modules for package in self.packages)
        return next((place for place, held in enumerate(holds) if held), None)


def packages_of(data: Any, address: str) -> tuple[Package, ...]:
    """Read the registry of an address.

    Parameters
    ----------
    data : mapping
        The resource, in Python form.
    address : str
        Canonical address that stores it.

    Raises
    ------
    SchemaError
        If it does not have the documented shape.
    """
    try:
        return tuple(
            Package(
                address,
                str(entry["name"]),
                int(entry["upgrade_number"]),
                frozenset(check_identifier(str(module["name"]), "module name") for module in entry["modules"]),
                tuple((parse_address(need["account"]), str(need["package_name"])) for need in entry["deps"]),
            )
            for entry in data["packages"]
        )
    except (TypeError, KeyError, ValueError, InputError) as error:
        text = f"{REGISTRY} of {address} does not have the documented shape ({shorten(error)}); got {shorten(data)}"
        raise SchemaError(text) from None


def dependencies(called: ModuleId, registry: Callable[[str], tuple[Package, ...]]) -> Dependencies | None:
    """Find the dependencies of the package of a called module.

    Parameters
    ----------
    called : ModuleId
    registry : callable
        Returns the packages of an address at one version; empty if it has none.

    Returns
    -------
    Dependencies or None
        None if no package of the module's address contains it.
    """
    own = next((package for package in registry(called.address) if called.name in package.modules), None)
    if own is None:
        return None
    found = {(own.address, own.name): own}
    waiting, complete = deque(own.needs), True
    while waiting:
        needed = waiting.popleft()
        if needed in found:
            continue
        package = next((one for one in registry(needed[0]) if one.name == needed[1]), None)
        if package is None or len(found) >= _MAX_PACKAGES:
            complete = False
            continue
        found[needed] = package
        waiting.extend(package.needs)
    return Dependencies(own, tuple(found.values())[1:], complete)
