"""A node at one ledger version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import NotAtPast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.client._accounts import Account
    from toolkit.client._contracts import Contract
    from toolkit.client._node import Node  # for typing only: Node.at returns a Snapshot
    from toolkit.client._results import Simulation, TableItem, ViewResult
    from toolkit.move import ModuleAbi
    from toolkit.wire import GasSchedule, ViewFunction


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A node at one ledger version: the same reads, all of them pinned. `Node.at` returns one.

    Attributes
    ----------
    node : Node
    ledger_version : int

    Examples
    --------
    >>> import toolkit
    >>> past = toolkit.connect().at(100)
    >>> past.view("0x1::chain_id::get").value, past.gas_schedule().feature_version > 0
    (4, True)
    """

    node: Node
    ledger_version: int

    def view(
        self,
        function: str | ViewFunction,
        arguments: Sequence[Any] = (),
        *,
        type_arguments: Sequence[str] = (),
    ) -> ViewResult:
        """Run a view function on the state of this version; see `Node.view`.

        Raises
        ------
        InputError, SchemaError, NodeError, NodeUnreachable
            As `Node.view` does.
        """
        return self.node.view(function, arguments, type_arguments=type_arguments, ledger_version=self.ledger_version)

    def table_item(
        self,
        handle: str,
        key: Any,
        *,
        key_type: str | None = None,
        value_type: str | None = None,
        owner: str | None = None,
    ) -> TableItem:
        """Read a table item at this version; see `Node.table_item`.

        Raises
        ------
        NotFound, InputError, SchemaError, NodeError, NodeUnreachable
            As `Node.table_item` does.
        """
        return self.node.table_item(
            handle,
            key,
            key_type=key_type,
            value_type=value_type,
            owner=owner,
            ledger_version=self.ledger_version,
        )

    def module(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module at this version; see `Node.module`.

        Raises
        ------
        NodeError, NodeUnreachable
            As `Node.module` does.
        """
        return self.node.module(address, name, ledger_version=self.ledger_version)

    def contract(self, module: str) -> Contract:
        """Return a module at this version as an object whose methods are its functions; see `Node.contract`.

        Raises
        ------
        InputError, NotFound, NodeError, NodeUnreachable
            As `Node.contract` does.
        """
        return self.node.contract(module, ledger_version=self.ledger_version)

    def resource(self, address: str, tag: str) -> Any:
        """Return a resource at this version; see `Node.resource`.

        Raises
        ------
        NotFound, InputError, SchemaError, NodeError, NodeUnreachable
            As `Node.resource` does.
        """
        return self.node.resource(address, tag, ledger_version=self.ledger_version)

    def account(self, address: str, *, assets: Iterable[str] = ()) -> Account:
        """Return what an address has at this version; see `Node.account`.

        Raises
        ------
        NotFound, InputError, NodeError, NodeUnreachable, SchemaError
            As `Node.account` does.
        """
        return self.node.account(address, assets=assets, ledger_version=self.ledger_version)

    def gas_schedule(self) -> GasSchedule:
        """Return the gas schedule at this version; see `Node.gas_schedule`.

        Raises
        ------
        NodeError, NodeUnreachable
            As `Node.gas_schedule` does.
        """
        return self.node.gas_schedule(self.ledger_version)

    def simulate(self, *_: object, **__: object) -> Simulation:
        """Raise NotAtPast: a node simulates at its head only.

        Raises
        ------
        NotAtPast
            Always; the message names alternatives.
        """
        raise NotAtPast(
            f"a node simulates at its head only, not at version {self.ledger_version}. Alternatives: node.simulate(); "
            "view functions at past versions, which report gas too (fetch_views); committed transactions, with the gas "
            "that was charged (fetch_transactions); a local fork of past state by the chain's own command line"
        )
