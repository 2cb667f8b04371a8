"""Reading a ledger: transactions, blocks, resources, table items and views at any version that is not pruned."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from toolkit._present.tables import Listing
from toolkit.embedded._code import read_resource
from toolkit.embedded._execution import returned_text, run_view
from toolkit.embedded._state import module_key, table_key
from toolkit.embedded._vm_status import VmError, failure_sentence
from toolkit.embedded.framework import ACCOUNT_NAMES
from toolkit.errors import Aborted, InputError, SchemaError
from toolkit.move import FunctionId, StructTag, decode_bcs, encode_bcs, parse_address, parse_type_tag
from toolkit.move._ids import parse_table_handle, wire_address
from toolkit.move._values import decode_argument, encode_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.embedded._chain import Chain, Milestone
    from toolkit.embedded._code import BoundFunction
    from toolkit.embedded._transaction import CommittedTransaction, LedgerBlock
    from toolkit.move import TypeTag
    from toolkit.wire import LedgerState


UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LedgerAccount:
    """An account of a ledger, as `Ledger.accounts` lists it.

    Parameters
    ----------
    address : str
        Short form, such as ``0xa11ce``.
    name : str
        A name such as ``alice`` or ``framework``, or the modules that the account published; empty for others.
    octas : int
        Balance of the gas coin, including its fungible asset.
    sequence_number : int
        Number of transactions that the account sent.

    Examples
    --------
    >>> from toolkit.embedded import Ledger
    >>> ledger = Ledger()
    >>> ledger.accounts[0]
    LedgerAccount(address='0x1', name='framework', octas=1000000000000, sequence_number=0)
    """

    address: str
    name: str
    octas: int
    sequence_number: int


@dataclass(frozen=True, slots=True)
class PublishedContract:
    """A published module, as `Ledger.contracts` lists it.

    Parameters
    ----------
    contract : str
        Module id, such as ``0xcafe::registry``.
    about : str
        First line of its docstring.
    views, entries : tuple of str
        Names of its view functions, and of the functions that transactions call.
    version : int
        Ledger version at which this code was published.

    Examples
    --------
    >>> from toolkit.embedded import Ledger, Module, u64, view
    >>> class Shop(Module, address="0x5407"):
    ...     "A shop."
    ...
    ...     @view
    ...     def price(self) -> u64:
    ...         return 7
    >>> ledger = Ledger()
    >>> published = ledger.publish(Shop)
    >>> ledger.contracts[-1]
    PublishedContract(contract='0x5407::shop', about='A shop.', views=('price',), entries=(), version=5)
    """

    contract: str
    about: str
    views: tuple[str, ...]
    entries: tuple[str, ...]
    version: int


class LedgerReader:
    """The reading methods of a ledger; `Ledger` adds the writing ones.

    Parameters
    ----------
    chain : Chain
        Versions, blocks and state.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain

    def __repr__(self) -> str:
        return f"<Ledger chain_id={self.chain.chain_id} versions {self.oldest_version}..{self.head}>"

    @property
    def head(self) -> int:
        """The latest ledger version."""
        return self.chain.head

    @property
    def oldest_version(self) -> int:
        """The oldest ledger version that is still readable."""
        return self.chain.oldest_version

    @property
    def milestones(self) -> Listing[Milestone]:
        """Transactions that changed the cost or the result of calls, oldest first: tuple of Milestone.

        In a seeded history, these are all the steps in the gas of views, except for ``0xb00c::order_book``, whose gas
        also changes with each order that is placed (cause ``state``).
        """
        return Listing(self.chain.milestones)

    @property
    def accounts(self) -> Listing[LedgerAccount]:
        """The accounts at the head with their balances, those with a name first: tuple of LedgerAccount.

        Notebooks and ``print`` show them as a table. Objects, such as stores of fungible assets, are not listed.
        """
        names = dict(ACCOUNT_NAMES)
        for address, module in self.chain.code_at(self.head).modules:
            if address != "0x1":
                names[address] = f"{names[address]}, {module}" if address in names else module
        found = []
        for address in self.chain.state.owners():
            account = self.resource(address, "0x1::account::Account")
            if account is not None:
                octas = self.view("0x1::coin::balance", [address], ["0x1::aptos_coin::AptosCoin"])[0][0]
                sent = account["sequence_number"]
                found.append(LedgerAccount(wire_address(address), names.get(address, ""), octas, sent))
        return Listing(sorted(found, key=lambda one: (not one.name, int(one.address, 16))))

    @property
    def contracts(self) -> Listing[PublishedContract]:
        """The modules published at the head, without those of the framework at 0x1: tuple of PublishedContract.

        Notebooks and ``print`` show them as a table.

        Examples
        --------
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger.with_history(versions=200)
        >>> [one.contract for one in ledger.contracts][:3]
        ['0x901d::gold', '0xb00c::order_book', '0xcafe::registry']
        >>> ledger.contracts[2].views
        ('handle', 'record_of', 'size')
        """
        head = self.head
        found = []
        for (address, name), definition in self.chain.code_at(head).modules.items():
            if address == "0x1":
                continue
            marks = {function.name: function.mark for function in definition.functions.values()}
            version, _ = self.chain.state.read_stamped(module_key(address, name), head)
            found.append(
                PublishedContract(
                    contract=definition.wire_id,
                    about=(definition.contract.__doc__ or "").strip().partition("\n")[0],
                    views=tuple(name for name, mark in marks.items() if mark.is_view),
                    entries=tuple(name for name, mark in marks.items() if mark.is_entry),
                    version=version,
                )
            )
        return Listing(sorted(found, key=lambda one: one.contract))

    @property
    def state(self) -> LedgerState:
        """State of the ledger at the head, as the headers of a node report it."""
        return self.chain.ledger_state()

    def transaction(self, version: int) -> CommittedTransaction:
        """Return the transaction of a ledger version.

        Raises
        ------
        InputError
            If the version is above the head or pruned.
        """
        return self.chain.transaction(self._readable(version))

    def block_of(self, version: int) -> LedgerBlock:
        """Return the block that contains a ledger version.

        Raises
        ------
        InputError
            If the version is above the head or pruned.
        """
        return self.chain.block_of(self._readable(version))

    def version_at(self, time: datetime) -> int:
        """Return the first version of the first block at or after a time.

        Parameters
        ----------
        time : datetime
            With a time zone.

        Returns
        -------
        int

        Raises
        ------
        InputError
            If the time is after the last block.
        """
        wanted = (time - UNIX_EPOCH) // timedelta(microseconds=1)
        blocks = self.chain.blocks
        index = bisect_left(blocks, wanted, key=lambda block: block.timestamp_us)
        if index == len(blocks):
            raise InputError(f"time must be at or before the head's, {self.state.timestamp:%Y-%m-%d %H:%M}, got {time}")
        return blocks[index].first_version

    def resource(self, address: str, tag: str, version: int | None = None) -> dict[str, Any] | None:
        """Return a resource as Python values, or None if it does not exist.

        Parameters
        ----------
        address : str
            Address the resource is stored under.
        tag : str
            Type of the resource, such as ``0x1::account::Account``.
        version : int, optional
            Ledger version to read; the head by default.

        Returns
        -------
        dict of str to object, or None

        Raises
        ------
        InputError
            If the version is above the head or pruned, or `tag` is not a struct type.
        """
        at = self._readable(version)
        kind = parse_type_tag(tag)
        if not isinstance(kind, StructTag):
            raise InputError(f"the type of a resource must be a struct, got {tag!r}")
        code = self.chain.code_at(at)
        data = read_resource(self.chain.state, code, parse_address(address), kind, at)
        if data is None:
            return None
        decoded: dict[str, Any] = decode_bcs(code.layout(str(kind)), data)
        return decoded

    def table_item(self, handle: str, key: Any, *, key_type: str, value_type: str, version: int | None = None) -> Any:
        """Return a table item as a Python value, or None if it does not exist.

        Parameters
        ----------
        handle : str
            Handle of the table.
        key : object
            Python value of the key.
        key_type, value_type : str
            Move types of key and value.
        version : int, optional
            Ledger version to read; the head by default.

        Returns
        -------
        object or None

        Raises
        ------
        InputError
            If the version is above the head or pruned.
        SchemaError
            If the key is not of `key_type`, or the item is not of `value_type`.
        """
        at = self._readable(version)
        code = self.chain.code_at(at)
        encoded = encode_bcs(code.layout(key_type), key)
        value = self.chain.state.read(table_key(parse_table_handle(handle), encoded), at)
        return None if value is None else decode_bcs(code.layout(value_type), value.data)

    def view(
        self,
        function: str,
        arguments: Sequence[Any] = (),
        type_arguments: Sequence[str] = (),
        version: int | None = None,
    ) -> tuple[list[Any], int]:
        """Run a view function.

        Parameters
        ----------
        function : str
            Function id, such as ``0xcafe::registry::size``.
        arguments : sequence, optional
            Python values.
        type_arguments : sequence of str, optional
            Move types.
        version : int, optional
            Ledger version to read; the head by default.

        Returns
        -------
        values : list
            Python values returned.
        gas_used : int
            Gas units, from the gas model.

        Raises
        ------
        InputError
            If the version is above the head or pruned, the function is not a view function, its arguments do not fit,
            it aborts, or it returns a value that is not of its type.

        Examples
        --------
        >>> from toolkit import embedded
        >>> embedded.Ledger().view("0x1::chain_id::get")[0]
        [4]
        """
        at = self._readable(version)
        bound, tags, plain = self._view_call(function, arguments, type_arguments, at)
        try:
            values, gas_used = run_view(self.chain.snapshot(at), bound, plain, tags)
        except VmError as error:
            status = error.vm_status
            raise Aborted(f"view {function} at version {at}: {failure_sentence(status)}", status) from None
        try:
            for layout, value in zip(bound.returns, values, strict=True):
                encode_bcs(layout, value)
        except SchemaError as error:
            shown = returned_text(bound, values)
            raise InputError(f"view {function} did not return a value of its type: {error}; {shown}") from None
        return values, gas_used

    def digest(self) -> str:
        """Return a digest of all transactions that are not pruned, with their writes and events, as 64 hex digits."""
        hashed = hashlib.sha3_256()
        for version in range(self.oldest_version, self.head + 1):
            transaction = self.chain.transaction(version)
            output = transaction.output
            hashed.update(f"{transaction.hash}{output.vm_status}{tuple(output.charges)}".encode())
            for key, value in output.writes.items():
                hashed.update(repr((tuple(key), value)).encode())
            for event in output.events:
                hashed.update(event.type.encode() + event.data)
        return hashed.hexdigest()

    def _readable(self, version: int | None) -> int:
        if version is None:
            return self.head
        if not self.oldest_version <= version <= self.head:
            raise InputError(f"version must be {self.oldest_version} to {self.head} on this ledger, got {version}")
        return version

    def _bound(
        self, function: str, type_arguments: Sequence[str], version: int
    ) -> tuple[BoundFunction, tuple[TypeTag, ...]]:
        wanted = FunctionId.parse(function)
        tags = tuple(parse_type_tag(text) for text in type_arguments)
        try:
            return self.chain.code_at(version).function(wanted.address, wanted.module, wanted.name, tags), tags
        except VmError as error:
            raise InputError(f"{function} at version {version}: {error.message}") from None

    def _view_call(
        self, function: str, arguments: Sequence[Any], type_arguments: Sequence[str], version: int
    ) -> tuple[BoundFunction, tuple[TypeTag, ...], list[Any]]:
        """Return a view function, its type arguments and its arguments, which may have any form that a node accepts."""
        bound, tags = self._bound(function, type_arguments, version)
        if not bound.function.mark.is_view:
            raise InputError(f"{function} is not a view function")
        check_number(function, bound, arguments)
        plain = [
            decode_argument(layout, encode_argument(layout, value, where=f"{function}: arguments[{place}]"))
            for place, (layout, value) in enumerate(zip(bound.parameters, arguments, strict=True))
        ]
        return bound, tags, plain


def encode_arguments(bound: BoundFunction, function: str, arguments: Sequence[Any]) -> tuple[bytes, ...]:
    """Return the BCS bytes of each argument."""
    check_number(function, bound, arguments)
    return tuple(map(encode_bcs, bound.parameters, arguments))


def check_number(function: str, bound: BoundFunction, arguments: Sequence[Any]) -> None:
    """Raise InputError unless a call has as many arguments as its function has parameters."""
    if len(arguments) != len(bound.parameters):
        names = ", ".join(kind.text for kind in bound.parameter_kinds)
        raise InputError(f"{function}: expected {len(bound.parameters)} arguments ({names}), got {len(arguments)}")
