"""Reading a ledger: transactions, blocks, resources, table items and views at any version that is not pruned."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from toolkit.embedded._code import read_resource
from toolkit.embedded._execution import run_view
from toolkit.embedded._state import table_key
from toolkit.embedded._vm_status import VmError
from toolkit.errors import InputError
from toolkit.move import (
    FunctionId,
    StructTag,
    decode_bcs,
    encode_bcs,
    parse_address,
    parse_table_handle,
    parse_type_tag,
)
from toolkit.move._type_tags import SIGNED, UNSIGNED
from toolkit.wire import EncodedScript, ScriptArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.embedded._chain import Chain
    from toolkit.embedded._code import BoundFunction, CodeSet
    from toolkit.embedded._contract import StandInScript
    from toolkit.embedded._transaction import CommittedTransaction, LedgerBlock
    from toolkit.embedded.types import MoveType
    from toolkit.move import Layout, TypeTag
    from toolkit.wire import LedgerState

__all__ = ["UNIX_EPOCH", "LedgerReader", "Milestone", "MilestoneKind", "encode_arguments", "encode_script"]
__all__ += ["script_arguments"]

# Kinds of script arguments by Move type; other values are sent as BCS.
_SCRIPT_KINDS = {text: text for text in ("bool", "address", *UNSIGNED, *SIGNED)} | {"vector<u8>": "bytes"}


UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MilestoneKind(StrEnum):
    """The kind of change that a milestone made."""

    SCHEDULE = "schedule"
    CODE = "code"
    CONFIG = "config"
    STATE = "state"
    MIXED = "mixed"
    """Several of them in one transaction."""


@dataclass(frozen=True, slots=True)
class Milestone:
    """A transaction that changed the cost or the result of calls; studies are tested against milestones.

    Parameters
    ----------
    version : int
        Ledger version of the transaction.
    kind : MilestoneKind
        What changed; equal to its text, such as ``"code"``.
    text : str
        Description, one sentence.
    """

    version: int
    kind: MilestoneKind
    text: str


class LedgerReader:
    """The reading methods of a ledger; `Ledger` adds the writing ones.

    Parameters
    ----------
    chain : Chain
        Versions, blocks and state.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._milestones: list[Milestone] = []

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
    def milestones(self) -> tuple[Milestone, ...]:
        """Transactions that changed the cost or the result of calls, oldest first: tuple of Milestone.

        In a seeded history these are all the steps in the gas of a view, except those of ``0xb00c::order_book``: its
        gas also changes with each order, at the versions of ``place``, which are changes of ``state``.
        """
        return tuple(self._milestones)

    @property
    def state(self) -> LedgerState:
        """State of the head, as the headers of a node report it."""
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
            or it aborts.

        Examples
        --------
        >>> from toolkit import embedded
        >>> embedded.Ledger().view("0x1::chain_id::get")[0]
        [4]
        """
        at = self._readable(version)
        try:
            bound, tags = self._bound(function, type_arguments, at)
            if not bound.function.mark.is_view:
                raise InputError(f"{function} is not a view function")
            plain = [decode_bcs(layout, data) for layout, data in encode_arguments(bound, function, arguments)]
            return run_view(self.chain.snapshot(at), bound, plain, tags)
        except VmError as error:
            raise InputError(f"view {function} at version {at}: {error.vm_status}") from None

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


def encode_arguments(bound: BoundFunction, function: str, arguments: Sequence[Any]) -> list[tuple[Any, bytes]]:
    """Return the layout and the BCS bytes of each argument."""
    _check_number(function, bound.parameter_kinds, arguments)
    return [(layout, encode_bcs(layout, value)) for layout, value in zip(bound.parameters, arguments, strict=True)]


def _check_number(function: str, kinds: Sequence[MoveType], arguments: Sequence[Any]) -> None:
    if len(arguments) != len(kinds):
        names = ", ".join(kind.text for kind in kinds)
        raise InputError(f"{function}: expected {len(kinds)} arguments ({names}), got {len(arguments)}")


def encode_script(
    code: CodeSet, script: StandInScript, type_arguments: Sequence[str], arguments: Sequence[Any]
) -> EncodedScript:
    """Return the payload of a declared script.

    Raises
    ------
    InputError
        If the number of arguments or type arguments is wrong, or a type does not exist.
    SchemaError
        If an argument does not fit its type.
    """
    tags = tuple(parse_type_tag(text) for text in type_arguments)
    try:
        kinds = code.script_parameters(script.function, tags)
    except VmError as error:
        raise InputError(f"script {script.name}: {error.view_message}") from None
    _check_number(f"script {script.name}", kinds, arguments)
    layouts = [code.layout(kind.text) for kind in kinds]
    return EncodedScript(script.bytecode, tags, script_arguments(kinds, layouts, arguments))


def script_arguments(
    kinds: Sequence[MoveType], layouts: Sequence[Layout], values: Sequence[Any]
) -> tuple[ScriptArgument, ...]:
    """Return values as arguments of a script: typed if BCS has a kind for the type, serialized otherwise."""
    found = []
    for kind, layout, value in zip(kinds, layouts, values, strict=True):
        data = encode_bcs(layout, value)
        typed = _SCRIPT_KINDS.get(kind.text)
        if typed is None:
            found.append(ScriptArgument("serialized", data))
        else:
            found.append(ScriptArgument(typed, decode_bcs(layout, data)))
    return tuple(found)
