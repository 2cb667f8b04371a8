"""Publishing contract classes: what the transaction says, and what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolkit.embedded.code import check_upgrade
from toolkit.embedded.framework.configuration import Code, package_metadata
from toolkit.embedded.session import store_value
from toolkit.embedded.state import module_key
from toolkit.errors import InputError
from toolkit.move import FunctionId
from toolkit.move.bcs import encode_bcs
from toolkit.move.layout import Bytes
from toolkit.wire.bcs_payloads import EncodedEntryFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.embedded.code import CodeSet
    from toolkit.embedded.contract import Module
    from toolkit.embedded.definition import Definition
    from toolkit.embedded.session import Session
    from toolkit.embedded.transaction import Transaction

__all__ = ["Package"]


class Package(NamedTuple):
    """Contracts of one address, ready to be published together.

    Parameters
    ----------
    name : str
        Name of the package.
    owner : str
        Canonical address.
    definitions : tuple of Definition
        Its modules.
    code : CodeSet
        What is published before.
    """

    name: str
    owner: str
    definitions: tuple[Definition, ...]
    code: CodeSet

    @classmethod
    def of(cls, contracts: Sequence[type[Module]], name: str | None, code: CodeSet) -> Package:
        """Check contracts against what is published already.

        Raises
        ------
        InputError
            If they are not of one address, or an upgrade would break what relies on the code before.
        """
        definitions = tuple(contract.definition for contract in contracts)
        if len({definition.address for definition in definitions}) != 1:
            raise InputError("publish contracts of one address together; give at least one")
        for definition in definitions:
            before = code.modules.get((definition.address, definition.name))
            if before is not None:
                check_upgrade(before, definition)
        return cls(name or definitions[0].name, definitions[0].address, definitions, code)

    def call(self) -> EncodedEntryFunction:
        """Return the call that the publishing transaction carries."""
        metadata = self.code.struct(Code.PackageMetadata, ())
        described = store_value(metadata.kind, package_metadata(self.name, self.definitions, 0))
        modules = [definition.bytecode for definition in self.definitions]
        arguments = (
            encode_bcs(Bytes(), encode_bcs(metadata.layout, described)),
            encode_bcs(self.code.layout("vector<vector<u8>>"), modules),
        )
        return EncodedEntryFunction(FunctionId("0x1", "code", "publish_package_txn"), (), arguments)

    def run(self, session: Session, transaction: Transaction) -> None:
        """Write the code, register the package, and initialise modules that are new."""
        del transaction
        session.module(Code).publish_package(self.owner, self.name, self.definitions)
        for definition in self.definitions:
            session.writes[module_key(definition.address, definition.name)] = definition.bytecode
        session.code = self.code.with_modules(self.definitions)
        for definition in self.definitions:
            initialize = getattr(definition.contract, "init_module", None)
            if initialize is not None and (definition.address, definition.name) not in self.code.modules:
                initialize(session.link(definition), self.owner)
