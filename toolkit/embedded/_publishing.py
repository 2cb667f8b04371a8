"""Publishing of contract classes and governance scripts: the payloads of their transactions and their effects."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.embedded._code import check_upgrade
from toolkit.embedded._compiler import compiled
from toolkit.embedded._execution import call_contract
from toolkit.embedded._session import store_value
from toolkit.embedded._state import module_key
from toolkit.embedded.framework import FRAMEWORK_PACKAGE
from toolkit.embedded.framework._configuration import Code, Features, GasSchedule, package_metadata
from toolkit.embedded.types import signer_of
from toolkit.errors import InputError
from toolkit.move import Bytes, FunctionId, encode_bcs
from toolkit.move._ids import wire_address
from toolkit.wire._bcs_requests import EncodedEntryFunction, EncodedScript

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.embedded._code import CodeSet
    from toolkit.embedded._contract import Module
    from toolkit.embedded._definitions import Definition
    from toolkit.embedded._session import Session
    from toolkit.embedded._transaction import Transaction

    Registries = Callable[[str], Sequence[dict[str, Any]]]


_FRAMEWORK = ("0x1", FRAMEWORK_PACKAGE)
_SCRIPT_MAGIC = bytes.fromhex("a11ceb0b07000009")
_SCRIPT_BYTES = 400


class ContractPackage(NamedTuple):
    """Contracts of one address that are published together.

    Parameters
    ----------
    name : str
        Name of the package.
    owner : str
        Canonical address.
    definitions : tuple of Definition
        Modules to publish.
    unchanged : tuple of Definition
        Modules that the published package already has and that are not upgraded.
    deps : tuple of (canonical address, package name)
        Packages that this one depends on.
    code : CodeSet
        Modules that are already published.
    """

    name: str
    owner: str
    definitions: tuple[Definition, ...]
    unchanged: tuple[Definition, ...]
    deps: tuple[tuple[str, str], ...]
    code: CodeSet

    @classmethod
    def of(
        cls, contracts: Sequence[type[Module]], name: str | None, code: CodeSet, packages: Registries
    ) -> ContractPackage:
        """Return the package of contract classes, checked against the published modules.

        Parameters
        ----------
        contracts : sequence of Module classes
            Contracts to publish.
        name : str, optional
            Name of the package; by default that of the published package with the first module, or else the name of
            the first module.
        code : CodeSet
            Modules that are already published.
        packages : callable
            Returns the packages in the ``PackageRegistry`` of an address.

        Raises
        ------
        InputError
            If the contracts are not at one address, a module they use is not published, a type lacks an ability, or
            an upgrade is not compatible or has the revision of the published code.
        """
        definitions = tuple(compiled(contract).definition for contract in contracts)
        if len({definition.address for definition in definitions}) != 1:
            addresses = ", ".join(sorted({wire_address(definition.address) for definition in definitions})) or "none"
            raise InputError(f"expected contracts of one address, got {addresses}: publish each address separately")
        for definition in definitions:
            before = code.modules.get((definition.address, definition.name))
            if before is not None:
                check_upgrade(before, definition)
                _check_revision(before, definition)
        owner = definitions[0].address
        registered = packages(owner)
        name = name or _package_with(definitions[0].name, registered) or definitions[0].name
        written = {definition.name for definition in definitions}
        unchanged = tuple(
            code.modules[owner, module["name"]]
            for package in registered
            if package["name"] == name
            for module in package["modules"]
            if module["name"] not in written
        )
        deps = _dependencies((*unchanged, *definitions), owner, packages)
        return cls(name, owner, definitions, unchanged, deps, code)

    def call(self) -> EncodedEntryFunction:
        """Return the payload of the publishing transaction."""
        metadata = self.code.struct(Code.PackageMetadata, ())
        modules = (*self.unchanged, *self.definitions)
        described = store_value(metadata.kind, package_metadata(self.name, modules, 0, self.deps))
        arguments = (
            encode_bcs(Bytes(), encode_bcs(metadata.layout, described)),
            encode_bcs(
                self.code.layout("vector<vector<u8>>"), [definition.bytecode for definition in self.definitions]
            ),
        )
        return EncodedEntryFunction(FunctionId("0x1", "code", "publish_package_txn"), (), arguments)

    def run(self, session: Session, transaction: Transaction) -> None:
        """Write the code, register the package, and run ``init_module`` of new modules."""
        del transaction
        modules = (*self.unchanged, *self.definitions)
        registry = session.module(Code)
        registry.publish_package(self.owner, self.name, modules, written=self.definitions, deps=self.deps)
        for definition in self.definitions:
            session.writes[module_key(definition.address, definition.name)] = definition.bytecode
        session.code = self.code.with_modules(self.definitions)
        for definition in self.definitions:
            initialize = getattr(definition.contract, "init_module", None)
            if initialize is not None and (definition.address, definition.name) not in self.code.modules:
                body = partial(initialize, session.link(definition))
                call_contract(session, f"{definition.wire_id}::init_module", body, [signer_of(self.owner)])


class GovernanceScript(NamedTuple):
    """Several governance actions in one transaction, like the script of a release proposal.

    Parameters
    ----------
    package : ContractPackage, optional
        Framework modules to upgrade.
    schedule : bytes, optional
        Gas schedule to set, as BCS.
    enable, disable : tuple of int
        Feature flags to switch.
    """

    package: ContractPackage | None
    schedule: bytes | None
    enable: tuple[int, ...]
    disable: tuple[int, ...]

    def call(self) -> EncodedScript:
        """Return the payload of the transaction: a script whose bytecode is a digest of its actions."""
        modules = () if self.package is None else self.package.definitions
        actions = b"".join(definition.bytecode for definition in modules) + (self.schedule or b"")
        actions += repr((self.enable, self.disable)).encode()
        return EncodedScript(_SCRIPT_MAGIC + hashlib.shake_256(actions).digest(_SCRIPT_BYTES - len(_SCRIPT_MAGIC)))

    def run(self, session: Session, transaction: Transaction) -> None:
        """Run all actions."""
        if self.package is not None:
            self.package.run(session, transaction)
        if self.schedule is not None:
            session.module(GasSchedule).set_gas_schedule("0x1", self.schedule)
        if self.enable or self.disable:
            session.module(Features).change_feature_flags("0x1", list(self.enable), list(self.disable))


def _check_revision(before: Definition, after: Definition) -> None:
    """Raise InputError if another class has the bytecode that is published: the upgrade could not be seen."""
    if after.contract is not before.contract and after.bytecode == before.bytecode:
        raise InputError(
            f"{after.wire_id} is published already with this ABI and revision {before.revision}, and the bytecode is "
            f"made of both: write revision={before.revision + 1} in the class line of the upgrade"
        )


def _package_with(module: str, registered: Sequence[dict[str, Any]]) -> str | None:
    """Return the name of the registered package that contains a module, or None."""
    return next((known["name"] for known in registered if module in {m["name"] for m in known["modules"]}), None)


def _dependencies(definitions: Sequence[Definition], owner: str, packages: Registries) -> tuple[tuple[str, str], ...]:
    """Return the packages that modules depend on: the framework, and those of the modules they declare."""
    found = {} if owner == "0x1" else {_FRAMEWORK: None}
    for address, module in sorted(set().union(*(definition.uses for definition in definitions))):
        name = _package_with(module, packages(address))
        if name is None:
            raise InputError(
                f"{definitions[0].wire_id} uses {wire_address(address)}::{module}, which is not published: "
                "publish it first"
            )
        found[address, name] = None
    return tuple(found)
