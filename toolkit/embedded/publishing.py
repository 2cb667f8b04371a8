"""Publishing contract classes, and what governance does in one script: what the transactions say and what they do."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.embedded.code import check_upgrade
from toolkit.embedded.framework import FRAMEWORK_PACKAGE
from toolkit.embedded.framework.configuration import Code, Features, GasSchedule, package_metadata
from toolkit.embedded.session import store_value
from toolkit.embedded.state import module_key
from toolkit.errors import InputError
from toolkit.move import Bytes, FunctionId, encode_bcs, wire_address
from toolkit.wire import EncodedEntryFunction, EncodedScript

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.embedded.code import CodeSet
    from toolkit.embedded.contract import Definition, Module
    from toolkit.embedded.session import Session
    from toolkit.embedded.transaction import Transaction

    Registries = Callable[[str], Sequence[dict[str, Any]]]

__all__ = ["ContractPackage", "GovernanceScript"]

_FRAMEWORK = ("0x1", FRAMEWORK_PACKAGE)
_SCRIPT_MAGIC = bytes.fromhex("a11ceb0b07000009")
_SCRIPT_BYTES = 400


class ContractPackage(NamedTuple):
    """Contracts of one address, ready to be published together.

    Parameters
    ----------
    name : str
        Name of the package.
    owner : str
        Canonical address.
    definitions : tuple of Definition
        Modules to be written.
    kept : tuple of Definition
        Modules the package has already and keeps as they are.
    deps : tuple of (canonical address, package name)
        Packages it needs.
    code : CodeSet
        What is published before.
    """

    name: str
    owner: str
    definitions: tuple[Definition, ...]
    kept: tuple[Definition, ...]
    deps: tuple[tuple[str, str], ...]
    code: CodeSet

    @classmethod
    def of(
        cls, contracts: Sequence[type[Module]], name: str | None, code: CodeSet, packages: Registries
    ) -> ContractPackage:
        """Check contracts against what is published already.

        Parameters
        ----------
        contracts : sequence of Module classes
            What is to be published.
        name : str, optional
            Name of the package; by default that of the package which has the first module already, else the
            first module's name.
        code : CodeSet
            What is published.
        packages : callable
            The packages registered at an address, as its ``PackageRegistry`` lists them.

        Raises
        ------
        InputError
            If they are not of one address, call a module that is not published, or an upgrade would break what
            relies on the code before.
        """
        definitions = tuple(contract.definition for contract in contracts)
        if len({definition.address for definition in definitions}) != 1:
            raise InputError("publish contracts of one address together; give at least one")
        for definition in definitions:
            before = code.modules.get((definition.address, definition.name))
            if before is not None:
                check_upgrade(before, definition)
        owner = definitions[0].address
        registered = packages(owner)
        name = name or _package_with(definitions[0].name, registered) or definitions[0].name
        written = {definition.name for definition in definitions}
        kept = tuple(
            code.modules[owner, module["name"]]
            for package in registered
            if package["name"] == name
            for module in package["modules"]
            if module["name"] not in written
        )
        deps = _dependencies((*kept, *definitions), owner, packages)
        return cls(name, owner, definitions, kept, deps, code)

    def call(self) -> EncodedEntryFunction:
        """Return the call that the publishing transaction carries."""
        metadata = self.code.struct(Code.PackageMetadata, ())
        modules = (*self.kept, *self.definitions)
        described = store_value(metadata.kind, package_metadata(self.name, modules, 0, self.deps))
        arguments = (
            encode_bcs(Bytes(), encode_bcs(metadata.layout, described)),
            encode_bcs(
                self.code.layout("vector<vector<u8>>"), [definition.bytecode for definition in self.definitions]
            ),
        )
        return EncodedEntryFunction(FunctionId("0x1", "code", "publish_package_txn"), (), arguments)

    def run(self, session: Session, transaction: Transaction) -> None:
        """Write the code, register the package, and initialise modules that are new."""
        del transaction
        modules = (*self.kept, *self.definitions)
        registry = session.module(Code)
        registry.publish_package(self.owner, self.name, modules, written=self.definitions, deps=self.deps)
        for definition in self.definitions:
            session.writes[module_key(definition.address, definition.name)] = definition.bytecode
        session.code = self.code.with_modules(self.definitions)
        for definition in self.definitions:
            initialize = getattr(definition.contract, "init_module", None)
            if initialize is not None and (definition.address, definition.name) not in self.code.modules:
                initialize(session.link(definition), self.owner)


class GovernanceScript(NamedTuple):
    """Several things that governance does in one transaction, as the scripts of a release's proposal do.

    Parameters
    ----------
    package : ContractPackage, optional
        Modules of the framework to be upgraded.
    schedule : bytes, optional
        Gas schedule to be set, BCS.
    enable, disable : sequence of int
        Feature flags to be switched.
    """

    package: ContractPackage | None
    schedule: bytes | None
    enable: tuple[int, ...]
    disable: tuple[int, ...]

    def call(self) -> EncodedScript:
        """Return the script that the transaction carries; its bytecode is a digest of what it does, drawn out."""
        modules = () if self.package is None else self.package.definitions
        told = b"".join(definition.bytecode for definition in modules) + (self.schedule or b"")
        told += repr((self.enable, self.disable)).encode()
        return EncodedScript(_SCRIPT_MAGIC + hashlib.shake_256(told).digest(_SCRIPT_BYTES - len(_SCRIPT_MAGIC)))

    def run(self, session: Session, transaction: Transaction) -> None:
        """Do it all."""
        if self.package is not None:
            self.package.run(session, transaction)
        if self.schedule is not None:
            session.module(GasSchedule).set_gas_schedule("0x1", self.schedule)
        if self.enable or self.disable:
            session.module(Features).change_feature_flags("0x1", list(self.enable), list(self.disable))


def _package_with(module: str, registered: Sequence[dict[str, Any]]) -> str | None:
    """Return the name of the registered package that has a module."""
    return next((known["name"] for known in registered if module in {m["name"] for m in known["modules"]}), None)


def _dependencies(definitions: Sequence[Definition], owner: str, packages: Registries) -> tuple[tuple[str, str], ...]:
    """Return the packages that modules need: the framework, and those of the modules they declare."""
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
