"""An execution on one version of the state, with its reads, writes and events; every access is charged."""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from toolkit._present.messages import running_at
from toolkit.embedded._code import CodeSet, StructType, decode_group, encode_group, read_resource
from toolkit.embedded._compiler import compiled
from toolkit.embedded._meter import CONTRACT_BLOCKS, VALUE_UNITS, Meter, Schedule, whole_pages
from toolkit.embedded._state import StateKey, StateValue, VersionedState, resource_key, struct_tag_bytes
from toolkit.embedded._time_limit import DEFAULT_TIMEOUT_S, TimeLimitReached
from toolkit.embedded._values import READ_ONLY, Loan, MoveType, created
from toolkit.embedded._vm_status import AbortCode, MoveAbort, VmError
from toolkit.embedded.types import Struct, is_framework
from toolkit.errors import ContractError, InputError, SchemaError
from toolkit.move import StructTag, TypeTag, decode_bcs, encode_bcs, parse_address
from toolkit.move._ids import address_from_bytes, address_to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.embedded._definitions import Contract, Definition

_M = TypeVar("_M", bound="Contract")
_R = TypeVar("_R", bound="Struct")
_V = TypeVar("_V")

# Abort codes of the native table functions; they have no names.
_ALREADY_EXISTS = AbortCode(0x6407, "")
_NOT_FOUND = AbortCode(0x6507, "")


_HANDLE_BYTES = 48  # BCS of the key, 8 + 32 bytes, and of the sequence number, 8


class LedgerSnapshot(NamedTuple):
    """The ledger at one version, as an execution reads it."""

    state: VersionedState
    version: int
    code: CodeSet
    schedule: Schedule
    timestamp_us: int
    chain_id: int
    # Seconds that contract code may take (None: no limit), and the error that ends it.
    timeout_s: float | None = DEFAULT_TIMEOUT_S
    timeout_error: Callable[[float], Exception] = TimeLimitReached


class TableTypes(NamedTuple):
    """The key and item types of a table, as the REST API prints them."""

    key: str
    value: str


class EventKey(NamedTuple):
    """The key of an event handle: the address that created the handle, and the creation number at that address."""

    address: str
    creation_number: int


class EmittedEvent(NamedTuple):
    """An event: its type as the REST API prints it, its BCS bytes, and its key and number if it has a handle."""

    type: str
    data: bytes
    key: EventKey | None = None
    sequence_number: int = 0

    @property
    def size(self) -> int:
        """Number of bytes charged: type and data, and for an event with a handle also key and sequence number."""
        type_tag_bytes = 1 + len(struct_tag_bytes(self.type))
        return type_tag_bytes + len(self.data) + (0 if self.key is None else _HANDLE_BYTES)


def load_value(kind: MoveType, plain: Any, session: Session) -> Any:
    """Convert a decoded value to the value that contract code uses."""
    return plain if kind.lift is None else kind.lift(session, plain)


def store_value(kind: MoveType, value: Any) -> Any:
    """Check a value from contract code and convert it to a value that can be encoded; it is copied or moved."""
    return lowered(kind, value if kind.take is None else kind.take(value))


def lowered(kind: MoveType, value: Any) -> Any:
    """Convert a checked value from contract code to a value that can be encoded."""
    return value if kind.lower is None else kind.lower(value)


class Session:
    """An execution, which reads one version of the state and collects writes and events.

    Parameters
    ----------
    snapshot : LedgerSnapshot
        The ledger version to read; the execution does not change its state.
    meter : Meter
        Meter that is charged for every access.
    seed : bytes, default b""
        Seed from which new addresses (table handles, objects) are derived.

    Attributes
    ----------
    code : CodeSet
        The published modules, including modules that the execution publishes.
    """

    def __init__(self, snapshot: LedgerSnapshot, meter: Meter, *, seed: bytes = b"") -> None:
        self.meter = meter
        self.snapshot = snapshot
        self.code = snapshot.code
        self.writes: dict[StateKey, bytes | None] = {}
        self.events: list[EmittedEvent] = []
        # Types of keys and items by handle, of the tables that are written.
        self.tables: dict[str, TableTypes] = {}
        self._seed = seed
        self._addresses = 0
        self._loaded: set[StateKey | tuple[StateKey, str]] = set()  # a member of a group by its tag
        self._modules: dict[type, Any] = {}
        self._linked: set[str] = set()
        self._borrows_mutably = False
        self.loan: Loan | None = None  # the loan of values that are read
        # Resources and tables that are borrowed mutably: a second borrow would lose one of the two changes.
        self._borrowed: set[Any] = set()
        self.undropped: dict[int, Any] = {}
        self.failure: VmError | None = None  # the abort that ends the execution, even if it is caught
        # Handles to which events can be emitted, by identity: their counters are stored.
        self._handles: dict[int, Any] = {}

    def rollback(self) -> None:
        """Discard all writes and events; works even if the execution was interrupted at an arbitrary point."""
        self.writes.clear()
        self.events.clear()
        self.undropped.clear()
        self._borrowed.clear()
        self.loan, self._borrows_mutably = None, False

    # -- modules -------------------------------------------------------------------------------------------

    def module(self, module: type[_M]) -> _M:
        """Return an instance of a contract's published code, linked once per execution."""
        known = self._modules.get(module)
        if known is None:
            wanted = module.definition
            definition = self.code.modules.get((wanted.address, wanted.name))
            if definition is None:
                raise VmError("LINKER_ERROR", f"Linker Error: Module {wanted.wire_id} doesn't exist")
            known = self._modules[module] = self.link(definition)
        return cast("_M", known)  # an instance of `module` or of its next version

    def link(self, definition: Definition) -> Any:
        """Return an instance of a module; charge for loading its code unless it is a system module."""
        if definition.wire_id not in self._linked:
            self._linked.add(definition.wire_id)
            if not definition.is_system:  # system modules are free, as on chain
                self.meter.charge("txn.dependency_per_module")
                self.meter.charge("txn.dependency_per_byte", len(definition.bytecode))
        return compiled(definition.contract)(self)

    def new_address(self) -> str:
        """Return a new address, derived from the transaction."""
        self.meter.charge("aptos_framework.transaction_context.generate_unique_address.base")
        self._addresses += 1
        return address_from_bytes(hashlib.sha3_256(self._seed + self._addresses.to_bytes(8, "little")).digest())

    # -- raw state -----------------------------------------------------------------------------------------

    def peek(self, key: StateKey) -> bytes | None:
        """Return stored bytes without charging."""
        if key in self.writes:
            return self.writes[key]
        value = self.committed(key)
        return None if value is None else value.data

    def committed(self, key: StateKey) -> StateValue | None:
        """Return the value that a key had before this execution, without charging."""
        return self.snapshot.state.read(key, self.snapshot.version)

    def committed_resource(self, at: str, tag: StructTag) -> bytes | None:
        """Return the bytes that a resource had before this execution, without charging."""
        return read_resource(self.snapshot.state, self.code, at, tag, self.snapshot.version)

    def _write(self, key: StateKey, data: bytes | None) -> None:
        if data is None and self.committed(key) is None:
            self.writes.pop(key, None)  # created and deleted in one execution: no change
        else:
            self.writes[key] = data
            self.meter.written(key)

    # -- resources -----------------------------------------------------------------------------------------

    def resource_exists(self, resource: type[Struct], at: str, arguments: tuple[TypeTag, ...]) -> bool:
        """Return True if a resource exists."""
        return self._read(at, self._resource("exists", resource, arguments)) is not None

    def borrow(self, resource: type[_R], at: str, arguments: tuple[TypeTag, ...]) -> _R:
        """Return a read-only copy of a resource."""
        kind = self._resource("imm_borrow_global", resource, arguments, at)
        return self._lent(Loan(READ_ONLY), lambda: self._fetch(resource, at, kind))

    def borrow_mut(self, resource: type[_R], at: str, arguments: tuple[TypeTag, ...]) -> AbstractContextManager[_R]:
        """Return a context manager that yields a resource and stores its changes."""
        kind = self._resource("mut_borrow_global", resource, arguments, at)
        return self.borrowed(
            (str(parse_address(at)), kind.tag),
            lambda loan: self._lent(loan, lambda: self._fetch(resource, at, kind)),
            # The fields were checked when they were assigned.
            lambda changed: self._store(at, kind, self._encode_plain(kind.layout, lowered(kind.kind, changed))),
            always=is_framework(resource),
        )

    def move_to(self, account: str, value: Struct, arguments: tuple[TypeTag, ...]) -> None:
        """Store a new resource."""
        kind = self._resource("move_to", type(value), arguments)
        if self._read(account, kind) is not None:
            raise VmError("RESOURCE_ALREADY_EXISTS", f"Failed to move resource {kind.kind.text} into {account}")
        self._store(account, kind, self._encode(kind, value))

    def move_from(self, resource: type[_R], at: str, arguments: tuple[TypeTag, ...]) -> _R:
        """Delete a resource and return it."""
        kind = self._resource("move_from", resource, arguments, at)
        value = self._fetch(resource, at, kind)
        self._store(at, kind, None)
        return value if is_framework(resource) else created(value)

    def _resource(
        self, instruction: str, resource: type[Struct], arguments: tuple[TypeTag, ...], at: str | None = None
    ) -> StructType:
        """Charge for an instruction and return the struct type of its resource, which must have the ability key.

        The resource under `at` must not be borrowed already.
        """
        self.meter.charge(f"instr.{instruction}_generic.base" if arguments else f"instr.{instruction}.base")
        kind = self.code.struct(resource, arguments)
        if "key" not in kind.abilities:
            raise InputError(f"{kind.kind.text} must have the ability key to be stored under an address{running_at()}")
        if at is not None and self._borrowed and not is_framework(resource):
            self.check_not_borrowed((str(parse_address(at)), kind.tag), kind.kind.text)
        return kind

    def _fetch(self, resource: type[_R], at: str, kind: StructType) -> _R:
        data = self._read(at, kind)
        if data is None:
            # The text of the VM does not name the resource's type.
            raise VmError("MISSING_DATA", f"Failed to borrow global resource from {address_to_bytes(at).hex()}")
        plain = self.code.decoded(kind.kind.text, data) if is_framework(resource) else decode_bcs(kind.layout, data)
        value: _R = load_value(kind.kind, plain, self)
        return value

    def _read(self, at: str, kind: StructType) -> bytes | None:
        """Return a resource's bytes; reading a member of a group reads the whole group."""
        address = str(parse_address(at))  # text as keys have it, not an `Address`
        if kind.group is None:
            key = resource_key(address, kind.tag)
            data = self.peek(key)
            if key not in self._loaded:
                self._loaded.add(key)
                self.meter.charge_read(len(data or b""), key)
            return data
        key = StateKey("group", address, kind.group)
        whole = self.peek(key)
        data = decode_group(whole).get(kind.tag)
        if (key, kind.tag) not in self._loaded:
            self._loaded.add((key, kind.tag))
            first = key not in self._loaded
            self._loaded.add(key)
            self.meter.charge_read(len(data or b"") + (len(whole or b"") if first else 0), key)
        return data

    def _store(self, at: str, kind: StructType, data: bytes | None) -> None:
        """Write a resource; writing a member of a group writes the whole group."""
        address = str(parse_address(at))  # text as keys have it, not an `Address`
        if kind.group is None:
            self._write(resource_key(address, kind.tag), data)
            return
        key = StateKey("group", address, kind.group)
        members = decode_group(self.peek(key))
        if data is None:
            members.pop(kind.tag, None)
        else:
            members[kind.tag] = data
        self._write(key, encode_group(members))

    def _encode(self, kind: StructType, value: Any) -> bytes:
        return self._encode_plain(kind.layout, store_value(kind.kind, value))

    def _encode_plain(self, layout: Any, plain: Any) -> bytes:
        try:
            return encode_bcs(layout, plain)
        except SchemaError as error:
            # A VM would have stopped at the number that is out of range.
            raise VmError("ARITHMETIC_ERROR", str(error)) from None

    # -- tables: what the methods of `Table` call --------------------------------------------------------------

    def item_key(self, verb: str, handle: str, key_kind: MoveType, key: Any) -> StateKey:
        """Return the state key of a table item; charge for the table function that needs it."""
        data = self._encode_plain(self.code.layout(key_kind.text), store_value(key_kind, key))
        self.meter.charge_code(CONTRACT_BLOCKS)
        self.meter.charge(f"table.{verb}_box.base")
        self.meter.charge(f"table.{verb}_box.per_byte_serialized", len(data))
        return StateKey("table", handle, data)

    def load_item(self, key: StateKey) -> bytes | None:
        """Return an item's bytes; charge the first load as execution, because table functions are native."""
        data = self.peek(key)
        if key not in self._loaded:
            self._loaded.add(key)
            self.meter.charge("table.common.load.base_new")
            if data is not None:
                self.meter.charge("table.common.load.per_byte", whole_pages(len(data)))
        return data

    def item(self, key: StateKey, kind: MoveType, loan: Loan | None = None) -> Any:
        """Return a table item as part of a loan; abort if it does not exist."""
        data = self.load_item(key)
        if data is None:
            raise MoveAbort("0x1::table", _NOT_FOUND)
        return self._lent(loan, lambda: load_value(kind, decode_bcs(self.code.layout(kind.text), data), self))

    def check_new_item(self, key: StateKey) -> None:
        """Abort if the table item already exists."""
        if self.load_item(key) is not None:
            raise MoveAbort("0x1::table", _ALREADY_EXISTS)

    def write_item(self, key: StateKey, key_kind: MoveType, kind: MoveType, value: Any, *, checked: bool) -> None:
        """Store a table item; `checked` is true for a borrowed item, whose parts were checked when they changed."""
        self.tables[key.owner] = TableTypes(key_kind.text, kind.text)
        plain = lowered(kind, value) if checked else store_value(kind, value)
        self._write(key, self._encode_plain(self.code.layout(kind.text), plain))

    def delete(self, key: StateKey) -> None:
        """Delete a stored value."""
        self._write(key, None)

    # -- borrowing -----------------------------------------------------------------------------------------

    def borrowed(
        self, what: Any, read: Callable[[Loan], _V], write: Callable[[_V], None], *, always: bool = True
    ) -> AbstractContextManager[_V]:
        """Return a context manager that yields the result of `read`; the event handles in it accept events.

        Parameters
        ----------
        what : object
            Identifies the resource or table, which nothing else can access inside the ``with`` block.
        read : callable
            Takes a loan and returns the value as part of it.
        write : callable
            Stores the value.
        always : bool, default True
            Whether to store the value even if nothing in it was changed.
        """
        loan = Loan()
        before, self._borrows_mutably = self._borrows_mutably, True
        try:
            value = read(loan)
        finally:
            self._borrows_mutably = before

        return self._lending(what, value, loan, lambda: write(value) if always or loan.changed else None)

    @contextmanager
    def _lending(self, what: Any, value: _V, loan: Loan, store: Callable[[], None]) -> Iterator[_V]:
        # Separate from `borrowed`, which reads in the contract's own call, so that errors of reading name that line.
        self._borrowed.add(what)
        try:
            yield value
        finally:
            self._borrowed.discard(what)
            loan.end()
        store()

    def check_not_borrowed(self, what: Any, name: str) -> None:
        """Raise ContractError if a resource or table is currently borrowed with `borrow_mut`."""
        if what in self._borrowed:
            raise ContractError(
                f"{name} is already borrowed mutably and cannot be accessed until that with block ends: use the "
                f"borrowed value, or end the block first"
            )

    def _lent(self, loan: Loan | None, read: Callable[[], _V]) -> _V:
        """Return the result of `read` as part of a loan."""
        before, self.loan = self.loan, loan
        try:
            return read()
        finally:
            self.loan = before

    # -- events --------------------------------------------------------------------------------------------

    def new_event_handle(self, owner: str) -> Any:
        """Return a new event handle for an account and increment the account's creation number."""
        account: Any = self.link(self.code.modules["0x1", "account"])
        return self.add_handle(account.new_event_handle(owner))

    def add_handle(self, handle: Any) -> Any:
        """Allow events to be emitted to a handle, and return the handle; counters of other handles are not stored."""
        self._handles[id(handle)] = handle
        return handle

    def load_handle(self, handle: Any) -> Any:
        """Return a handle that was read from state; it accepts events if its resource is borrowed mutably."""
        return self.add_handle(handle) if self._borrows_mutably else handle

    def emit_event(self, handle: Any, event: Struct, arguments: tuple[TypeTag, ...]) -> None:
        """Record an event with a handle and increment the handle's counter."""
        if id(handle) not in self._handles:
            raise InputError(
                "events cannot be emitted to a copy of a handle, because the copy's counter is not stored: borrow the "
                "handle's resource with borrow_mut and emit inside the with block"
            )
        identifier = handle.guid.id
        key = EventKey(str(parse_address(identifier.addr)), identifier.creation_num)
        self.emit(event, arguments, key, handle.counter)
        handle.counter += 1

    def emit(self, event: Struct, arguments: tuple[TypeTag, ...], key: EventKey | None = None, number: int = 0) -> None:
        """Record an event with a handle, or a module event if `key` is None."""
        kind = self.code.struct(type(event), arguments)
        if not kind.abilities >= {"drop", "store"}:
            raise InputError(f"{kind.kind.text} must have the abilities drop and store to be an event{running_at()}")
        data = self._encode(kind, event)
        self.meter.charge("aptos_framework.event.write_to_event_store.base")
        units = len(data) + VALUE_UNITS * (1 + len(type(event).move_fields()))
        self.meter.charge("aptos_framework.event.write_to_event_store.per_abstract_memory_unit", units)
        emitted = EmittedEvent(kind.kind.text, data, key, number)
        self.events.append(emitted)
        self.meter.written(emitted)
