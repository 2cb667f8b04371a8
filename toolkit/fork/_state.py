"""The state of a node at a version, as the machine reads it: by state key, on demand.

A node that serves raw state values gives each value with the metadata of its slot. From any other node, resources,
modules and table items are read, groups are put together from the resources of an account, and metadata is not known.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.client._abis import bytecode_of
from toolkit.client._http import PreparedCall, path
from toolkit.client._node_errors import ABSENT, NO_ITEM
from toolkit.client._reads import send_all
from toolkit.errors import (
    Forbidden,
    InputError,
    InvalidRequest,
    NodeError,
    NodeUnreachable,
    NotFound,
    SchemaError,
    ToolkitError,
    Unsupported,
)
from toolkit.move import parse_address
from toolkit.move._bcs import Reader
from toolkit.move._ids import address_from_bytes, wire_address
from toolkit.vm._bcs import read_struct_tag
from toolkit.vm._errors import MoveError
from toolkit.vm._module import read_module
from toolkit.vm._state import Group, module_key, resource_key
from toolkit.vm._types import FRAMEWORK, Struct, struct
from toolkit.wire._bcs_forms import whole
from toolkit.wire._on_chain import STATE_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, MutableMapping

    from toolkit.client._reads import Reads
    from toolkit.vm._state import StateValue

_T = TypeVar("_T")
# Why one execution among many has no result. That a node was closed or serves another ledger ends them all.
NO_RESULT = (InputError, NodeError, NodeUnreachable, SchemaError, Unsupported)
BCS = "application/x-bcs"
CHAIN_ID = resource_key(FRAMEWORK, struct("0x1::chain_id::ChainId"))
_ACCESS_PATH, _TABLE_ITEM = 0, 1
MAX_LEARNED = 500  # keys that are read ahead because earlier transactions read them


class StateSource:
    """Reads state values of a node at any version.

    Attributes
    ----------
    node : Reads
    """

    def __init__(self, node: Reads) -> None:
        self.node = node
        self._is_raw: bool | None = None

    def is_raw(self, version: int) -> bool:
        """Return whether the node serves raw state values, and so metadata; asks it once.

        Raises
        ------
        NodeError, NodeUnreachable
            If the node does not answer, or has pruned the version.
        """
        if self._is_raw is None:
            try:
                self.node.one(self.node.prepare_state_value(CHAIN_ID, version))
            except (NotFound, Forbidden, InvalidRequest) as error:
                if error.error_code == "version_not_found":
                    raise
                self._is_raw = False
            else:
                self._is_raw = True
        return self._is_raw

    def prepare(self, key: bytes, version: int) -> PreparedCall[StateValue]:
        """Prepare the read of a state value, except that of a group on a node without raw state values."""
        node = self.node
        if self.is_raw(version):
            return _converted(node.prepare_state_value(key, version), partial(whole, STATE_VALUE))
        kind, address, what = parse_key(key)
        if kind is KeyKind.ITEM:
            return _converted(node.prepare_raw_item(f"0x{address.hex()}", what, version), lambda value: (value, None))
        where, query = ("accounts", wire_address(address_from_bytes(address))), {"ledger_version": version}
        if kind is KeyKind.MODULE:
            asked = f"module {parse_address('0x' + address.hex())}::{what} at version {version:,}"
            request = node.request("GET", path(*where, "module", what), query=query)
            return PreparedCall(request, asked, lambda answer: (bytecode_of(answer.body, asked), None), version)
        asked = f"resource {what} of 0x{address.hex()} at version {version:,}"
        request = node.request("GET", path(*where, "resource", str(what)), query=query, accept=BCS)
        return PreparedCall(request, asked, lambda answer: (answer.bcs(asked), None), version)

    def group(self, key: bytes, version: int, state: NodeState) -> StateValue | None:
        """Put a resource group together from the resources of its address."""
        _, address, wanted = parse_key(key)
        group, start = Group(None), None
        where = path("accounts", wire_address(address_from_bytes(address)), "resources")
        asked = f"resources of 0x{address.hex()} at version {version:,} in BCS"
        while True:
            query = {"ledger_version": version, "start": start}
            request = self.node.request("GET", where, query=query, accept=BCS)
            call = PreparedCall(request, asked, lambda answer: (answer.bcs(asked), answer.parsed.cursor))
            found = _present(self.node, call)
            if found is None:
                return None
            for tag, data in Group(found[0]).members.items():  # all resources have the form of a group
                if _group_of(read_struct_tag(Reader(tag)), state) is wanted:
                    group.members[tag] = data
            start = found[1]
            if start is None:
                break
        value = group.encoded()
        return None if value is None else (value, None)


class NodeState:
    """The state of a node at a version, read on demand and at most once.

    Parameters
    ----------
    source : StateSource
    version : int
    """

    def __init__(self, source: StateSource, version: int) -> None:
        self.source, self.version = source, version
        self._values: MutableMapping[Any, StateValue | None] = {}  # by what `mark` returns
        self.asked: dict[bytes, None] = {}  # keys that were read, in order

    @property
    def has_metadata(self) -> bool:
        """Whether the node serves the metadata of slots, on which refunds and fees of existing slots depend."""
        return self.source.is_raw(self.version)

    def __call__(self, key: bytes) -> StateValue | None:
        """Return the value and the metadata under a state key; None if it is absent."""
        self.asked[key] = None
        mark = self.mark(key)
        if mark not in self._values:
            if is_group(key) and not self.has_metadata:
                value = self.source.group(key, self.version, self)
            else:
                value = _present(self.source.node, self.source.prepare(key, self.version))
            self._values[mark] = value
        return self._values[mark]

    def mark(self, key: bytes) -> Hashable:
        """Return what identifies the value under a key among the reads of several states."""
        return key, self.version

    def known(self, key: bytes) -> bool:
        """Return whether a value has been read."""
        return self.mark(key) in self._values

    def store(self, key: bytes, value: StateValue | None) -> None:
        """Note a value that has been read ahead."""
        self._values[self.mark(key)] = value


class LearnedKeys(OrderedDict[bytes, None]):
    """The keys that executions have read lately: the next ones read them ahead."""

    def learn(self, keys: Iterable[bytes]) -> None:
        """Add keys, and forget the oldest."""
        for key in keys:
            self[key] = None
            self.move_to_end(key)
        while len(self) > MAX_LEARNED:
            self.popitem(last=False)


def prefetch(wanted: Iterable[tuple[NodeState, Iterable[bytes]]]) -> None:
    """Read the values under many keys of many states at once; what fails is read again, and fails, when it is used.

    Groups on a node without raw state values are left out, because they take several reads.
    """
    tasks: dict[Hashable, tuple[NodeState, bytes]] = {}
    for state, keys in wanted:
        missing = [key for key in keys if not state.known(key)]
        with suppress(NodeError, NodeUnreachable, SchemaError):  # which the first use raises
            raw = not missing or state.has_metadata
            tasks |= {state.mark(key): (state, key) for key in missing if raw or not is_group(key)}
    if not tasks:
        return
    reads = list(tasks.values())
    node = reads[0][0].source.node
    for place, outcome in send_all(node, reads, lambda task: task[0].source.prepare(task[1], task[0].version)):
        state, key = reads[place]
        if not isinstance(outcome, ToolkitError):
            state.store(key, outcome)
        elif _is_absent(outcome):
            state.store(key, None)


def _is_absent(error: ToolkitError) -> bool:
    return isinstance(error, NotFound) and error.error_code in ABSENT | {NO_ITEM}


def _present(node: Reads, call: PreparedCall[_T]) -> _T | None:
    try:
        return node.one(call)
    except NotFound as error:
        if not _is_absent(error):
            raise
        return None


def _converted(call: PreparedCall[bytes], convert: Callable[[bytes], StateValue]) -> PreparedCall[StateValue]:
    finish = call.finish
    return PreparedCall(call.request, call.asked, lambda answer: convert(finish(answer)), call.pinned)


class KeyKind(Enum):
    """What a state key leads to."""

    ITEM = auto()
    MODULE = auto()
    RESOURCE = auto()
    GROUP = auto()


def parse_key(key: bytes) -> tuple[KeyKind, bytes, Any]:
    """Return what a state key leads to, its address or table handle, and the name, struct or key of an item."""
    source = Reader(key, 33)
    if key[0] == _TABLE_ITEM:
        return KeyKind.ITEM, key[1:33], source.bytes()
    source.length()
    kind = (KeyKind.MODULE, KeyKind.RESOURCE, KeyKind.GROUP)[source.u8()]
    if kind is KeyKind.MODULE:
        source.fixed(32)
        return kind, key[1:33], source.string()
    return kind, key[1:33], read_struct_tag(source)


def is_group(key: bytes) -> bool:
    return key[0] == _ACCESS_PATH and parse_key(key)[0] is KeyKind.GROUP


def is_module(key: bytes) -> bool:
    return key[0] == _ACCESS_PATH and parse_key(key)[0] is KeyKind.MODULE


def _group_of(kind: Struct, state: NodeState) -> Struct | None:
    """Return the resource group that a struct is a member of, from the metadata of its module."""
    code = state(module_key(kind.module))
    if code is None:
        return None
    try:
        return read_module(code[0]).group(kind.name)
    except MoveError:
        return None
