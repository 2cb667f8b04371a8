"""Packages as recorded in ``0x1::code::PackageRegistry``, and which of them a called module needs."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.messages import shorten
from toolkit.errors import InputError, SchemaError
from toolkit.move import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.move import ModuleId

__all__ = ["REGISTRY", "Dependencies", "Package", "dependencies", "packages_of"]

REGISTRY = "0x1::code::PackageRegistry"
_MAX_PACKAGES = 200
"""Packages that are followed from one module; a registry that names more is malicious or damaged."""


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
                frozenset(str(module["name"]) for module in entry["modules"]),
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
