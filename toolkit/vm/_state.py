"""State: keys, the base that is read, the overlay of a transaction's writes, and the session that runs on both.

The base never changes. A session collects resources, table items and events while code runs; its changes go to the
overlay, which the next session of the transaction reads through. What is a creation and what a modification is
decided against the base, so squashing the sessions of a transaction needs no rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from toolkit.errors import SchemaError
from toolkit.move._bcs import Reader, uleb128
from toolkit.vm._bcs import listed, read_struct_tag, struct_tag_bytes, text_bytes
from toolkit.vm._errors import MoveError
from toolkit.vm._values import Global
from toolkit.wire._on_chain import Metadata
from toolkit.wire._state_keys import GROUP, MODULE, RESOURCE, access_key, storage_form
from toolkit.wire._state_keys import item_key as item_key  # noqa: PLC0414 - exported with the other keys

if TYPE_CHECKING:
    from toolkit.vm._layouts import Layout
    from toolkit.vm._types import ModuleId, Struct, Type

StateValue: TypeAlias = tuple[bytes, Metadata | None]
Read: TypeAlias = Callable[[bytes], "tuple[bytes, Any] | None"]

_T = TypeVar("_T")
_SESSION_SALT = hashlib.sha3_256(b"APTOS::SessionId").digest()


def module_key(module: ModuleId) -> bytes:
    """Return the state key of a module's code."""
    return access_key(module.address, MODULE + module.address + text_bytes(module.name))


def resource_key(address: bytes, kind: Struct) -> bytes:
    """Return the state key of a resource."""
    return access_key(address, RESOURCE + struct_tag_bytes(kind))


def group_key(address: bytes, kind: Struct) -> bytes:
    """Return the state key of a resource group."""
    return access_key(address, GROUP + struct_tag_bytes(kind))


def write_order(key: bytes) -> tuple[int, bytes]:
    """Sort keys as write sets are sorted: by address and path, then table items by handle and key."""
    return key[0], storage_form(key)[1:]


class ReadError(Exception):
    """The caller's `read` failed, with the error that it has. Else that could be taken for one of the machine."""


class Base:
    """The state before a transaction, read on demand and at most once.

    Attributes
    ----------
    replaced : dict of bytes to bytes
        Other values for keys that are read and have one.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._cache: dict[bytes, StateValue | None] = {}
        self.replaced: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> StateValue | None:
        """Return the value and the metadata under a key."""
        if key not in self._cache:
            try:
                found = self._read(key)
            except Exception as error:  # noqa: BLE001 - of whatever source the caller reads
                raise ReadError(error) from None
            value = None if found is None else (self.replaced.get(key, bytes(found[0])), found[1] and tuple(found[1]))
            self._cache[key] = value
        return self._cache[key]


class Overlay:
    """A base with changes."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.changes: dict[bytes, Change] = {}

    def get(self, key: bytes) -> StateValue | None:
        """Return the value and the metadata under a key, as changed."""
        if key in self.changes:
            change = self.changes[key]
            return None if change.value is None else (change.value, change.metadata)
        return self.base.get(key)

    def after(self, values: dict[bytes, Change]) -> Overlay:
        """Return a copy to which the changes of a session are added."""
        overlay = Overlay(self.base)
        overlay.changes = dict(self.changes)
        overlay.apply(values)
        return overlay

    def apply(self, values: dict[bytes, Change]) -> None:
        """Add the changes of a session; a slot that neither existed nor remains is not a change."""
        for key, change in values.items():
            if change.value is None and self.base.get(key) is None:
                self.changes.pop(key, None)
                continue
            before = self.base.get(key)
            metadata = self.changes[key].metadata if key in self.changes else before and before[1]
            # The node forgets the metadata of an aggregator that was never read.
            self.changes[key] = change._replace(metadata=None if change.kind is WriteKind.DELTA else metadata or None)

    def operation(self, key: bytes) -> str:
        """Return whether a change creates, modifies or deletes."""
        if self.changes[key].value is None:
            return "delete"
        return "modify" if self.base.get(key) is not None else "create"


class WriteKind(Enum):
    """What is written. Charges are ordered by it."""

    VALUE = auto()
    CODE = auto()
    #: Only aggregators in the value have changed.
    DELAYED = auto()
    #: An old aggregator.
    AGGREGATOR = auto()
    #: An aggregator that was never read, whose write nobody pays.
    DELTA = auto()


class Change(NamedTuple):
    """A new value of a state key, or None, and its metadata."""

    value: bytes | None
    kind: WriteKind = WriteKind.VALUE
    metadata: Metadata | None = None


class Event(NamedTuple):
    """An event in order of emission; `key` is None for module events."""

    type: Type
    key: bytes | None
    sequence_number: int
    data: bytes


class Group:
    """The members of a resource group: BCS of their struct tags to their values."""

    def __init__(self, data: bytes | None) -> None:
        self.size = len(data or b"")
        self.members: dict[bytes, bytes] = {}
        if data is not None:
            source = Reader(data)
            for _ in range(source.length()):
                start = source.position
                read_struct_tag(source)
                tag = data[start : source.position]
                self.members[tag] = source.bytes()

    def encoded(self) -> bytes | None:
        """Return the group's value; None if it has no members. BCS maps are sorted by the bytes of their keys."""
        if not self.members:
            return None
        return listed(tag + uleb128(len(value)) + value for tag, value in sorted(self.members.items()))


def session_hash(session_id: bytes) -> bytes:
    """Return the hash of a session, from the BCS of its id."""
    return hashlib.sha3_256(_SESSION_SALT + session_id).digest()


class Slot(NamedTuple):
    """A resource of the session: its cell, and where it is stored."""

    cell: Global
    layout: Layout
    key: bytes  # of the resource, or of its group
    tag: bytes | None  # in the group


class Session:
    """What code has touched: resources, groups, table items, events, and the contexts of natives.

    Attributes
    ----------
    state : Overlay
    hash : bytes
        From which table handles and unique addresses are derived.
    counter : int
        Byte of the monotonic counter that tells the sessions of a transaction apart.
    unbiasable : bool
        Whether the code may use randomness.
    resources : dict
        By address and type.
    groups : dict
        By state key.
    items : dict
        Table items by handle and key.
    events : list of Event
    """

    def __init__(self, state: Overlay, session_hash: bytes, counter: int = 5) -> None:
        self.state = state
        self.hash = session_hash
        self.counter = counter
        self.unbiasable = False
        self.resources: dict[tuple[bytes, Struct], Slot] = {}
        self.groups: dict[bytes, Group] = {}
        self.items: dict[tuple[bytes, bytes], tuple[Global, Layout]] = {}
        self.events: list[Event] = []
        self._contexts: dict[Any, Any] = {}

    def context(self, kind: Callable[[], _T]) -> _T:
        """Return the session's object of a class; made on first use."""
        if kind not in self._contexts:
            self._contexts[kind] = kind()
        return self._contexts[kind]  # type: ignore[no-any-return]

    def load(self, address: bytes, kind: Struct, layout: Layout, group: Struct | None) -> tuple[Slot, int]:
        """Load a resource for the first time; return it, and how many bytes were loaded.

        Raises
        ------
        MoveError
            If the stored bytes do not decode.
        """
        if group is None:
            key, tag = resource_key(address, kind), None
            found = self.state.get(key)
            data = found and found[0]
            size = len(data or b"")
        else:
            key, tag = group_key(address, group), struct_tag_bytes(kind)
            whole = self._group(key)
            data = whole[0].members.get(tag)
            size = len(data or b"") + whole[1]
        value = None if data is None else layout.decode(data)
        slot = Slot(Global(value), layout, key, tag)
        self.resources[address, kind] = slot
        return slot, size

    def _group(self, key: bytes) -> tuple[Group, int]:
        """Return a group, and its size if it is loaded for the first time."""
        if key in self.groups:
            return self.groups[key], 0
        found = self.state.get(key)
        try:
            group = self.groups[key] = Group(found and found[0])
        except SchemaError as error:
            raise MoveError("FAILED_TO_DESERIALIZE_RESOURCE", str(error)) from None
        return group, group.size

    def load_item(self, handle: bytes, key: bytes, layout: Layout) -> tuple[Global, int | None]:
        """Return a table item, and the bytes that were loaded; None if it was loaded before."""
        held = self.items.get((handle, key))
        if held is not None:
            return held[0], None
        found = self.state.get(item_key(handle, key))
        cell = Global(None if found is None else layout.decode(found[0]))
        self.items[handle, key] = cell, layout
        return cell, len(found[0]) if found else 0

    def changes(self) -> dict[bytes, Change]:
        """Return the changes by state key.

        Raises
        ------
        MoveError
            If a value cannot be serialized.
        """
        changes: dict[bytes, Change] = {}
        groups: dict[bytes, bool] = {}  # whether only aggregators have changed
        for slot in self.resources.values():
            if not _changed(slot.cell):
                continue
            data = _encoded(slot.layout, slot.cell[0])
            if slot.tag is None:
                changes[slot.key] = Change(data, WriteKind.DELAYED if _only_delayed(slot.cell) else WriteKind.VALUE)
            else:
                members = self.groups[slot.key].members
                if data is None:
                    members.pop(slot.tag, None)
                else:
                    members[slot.tag] = data
                groups[slot.key] = groups.get(slot.key, True) and _only_delayed(slot.cell)
        for key, delayed in groups.items():
            changes[key] = Change(self.groups[key].encoded(), WriteKind.DELAYED if delayed else WriteKind.VALUE)
        for (handle, key), (cell, layout) in self.items.items():
            if _changed(cell):
                changes[item_key(handle, key)] = Change(_encoded(layout, cell[0]))
        for contributed in self._contexts.values():
            if isinstance(contributed, Contribution):
                changes.update(contributed.changes(self.state))
        return changes


class Contribution:
    """A context of natives that changes the state at the end of a session."""

    def changes(self, state: Overlay) -> dict[bytes, Change]:
        """Return the changes by state key."""
        raise NotImplementedError


def _only_delayed(cell: Global) -> bool:
    return cell.delayed and not cell.dirty and cell.existed and cell[0] is not None


def _changed(cell: Global) -> bool:
    if cell.existed:
        return cell.dirty or cell.delayed or cell[0] is None
    return cell[0] is not None


def _encoded(layout: Layout, value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        return layout.encode(value)
    except MoveError as error:
        raise MoveError("VALUE_SERIALIZATION_ERROR", error.message) from None
