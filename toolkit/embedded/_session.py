"""An execution on one version of the state, with its reads, writes and events; every access is charged."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from toolkit.embedded._code import CodeSet, StructType, decode_group, encode_group, read_resource
from toolkit.embedded._meter import CONTRACT_BLOCKS, VALUE_UNITS, Meter, Schedule, whole_pages
from toolkit.embedded._state import StateKey, StateValue, VersionedState, resource_key
from toolkit.embedded._vm_status import AbortCode, MoveAbort, VmError
from toolkit.embedded.types import READ_ONLY, Access, MoveType, Struct, freeze, is_framework
from toolkit.errors import ContractError, SchemaError
from toolkit.move import StructTag, TypeTag, decode_bcs, encode_bcs, parse_address
from toolkit.move._ids import address_from_bytes, address_to_bytes
from toolkit.wire._on_chain import EmittedEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.embedded._contract import Module
    from toolkit.embedded._definitions import Definition

_M = TypeVar("_M", bound="Module")
_R = TypeVar("_R", bound="Struct")
_V = TypeVar("_V")

_NOT_FOUND = AbortCode(0x6507, "")  # of a native table function


class LedgerSnapshot(NamedTuple):
    """The ledger at one version, as an execution reads it."""

    state: VersionedState
    version: int
    code: CodeSet
    schedule: Schedule
    timestamp_us: int
    chain_id: int


class TableTypes(NamedTuple):
    """The key and item types of a table, as the REST API prints them."""

    key: str
    value: str


def load_value(kind: MoveType, plain: Any, session: Session) -> Any:
    """Convert a decoded value to the value that contract code uses."""
    return plain if kind.lift is None else kind.lift(session, plain)


def store_value(kind: MoveType, value: Any) -> Any:
    """Check a value from contract code and convert it to a value that can be encoded."""
    taken = value if kind.take is None else kind.take(value)
    return taken if kind.lower is None else kind.lower(taken)


class Lent(Generic[_V]):
    """A context manager that yields a borrowed value and stores it; inside the block, nothing else can access it.

    It has no attributes: what is assigned to it without a block would be lost.

    Parameters
    ----------
    borrowed : set
        What is borrowed in the execution.
    what : object
        Identifies the resource or table item.
    value : object
        The value.
    store : callable
        Stores the value.
    """

    __slots__ = ("_parts",)

    def __init__(self, borrowed: set[Any], what: Any, value: _V, store: Callable[[_V], None]) -> None:
        self._parts = borrowed, what, value, store

    def __enter__(self) -> _V:
        borrowed, what, value, _ = self._parts
        borrowed.add(what)
        return value

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        borrowed, what, value, store = self._parts
        borrowed.discard(what)
        if kind is None:
            store(value)
        if isinstance(value, Struct):
            freeze(value)


def _is_write(value: Any, before: bytes, after: bytes) -> bool:
    """Return True if a value has changed, or if a field was assigned, which is a write even of an equal value."""
    return before != after or (isinstance(value, Struct) and value.move_access is Access.CHANGED)


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
        self.access = Access.OWN  # of the values that are being read
        # Resources and table items that are borrowed mutably: a second borrow would lose one of the two changes.
        self._borrowed: set[Any] = set()
        self.failure: VmError | None = None  # the abort that ends the execution, even if the contract catches it

    def rollback(self) -> None:
        """Discard all writes and events."""
        self.writes.clear()
        self.events.clear()

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
        linked = definition.contract(self)
        self.meter.linked(linked)
        return linked

    def new_address(self) -> str:
        """Return a new address, derived from the transaction."""
        self.meter.charge("aptos_framework.transaction_context.generate_unique_address.base")
        self._addresses += 1
        return address_from_bytes(hashlib.sha3_256(self._seed + self._addresses.to_bytes(8, "little")).digest())

    # -- raw state -----------------------------------------------------------------------------------------

    def _peek(self, key: StateKey) -> bytes | None:
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

    def write(self, key: StateKey, data: bytes | None) -> None:
        """Store bytes; None deletes a value."""
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
        return self._fetch("imm_borrow_global", resource, at, arguments, Access.READ_ONLY)[2]

    def borrow_mut(self, resource: type[_R], at: str, arguments: tuple[TypeTag, ...]) -> Lent[_R]:
        """Return a context manager that yields a resource and stores its changes."""
        kind, data, value = self._fetch("mut_borrow_global", resource, at, arguments, Access.BORROWED)

        def store(value: _R) -> None:
            changed = self._encode(kind.layout, kind.kind, value)
            if _is_write(value, data, changed):
                self._store(at, kind, changed)

        return Lent(self._borrowed, (parse_address(at), kind.tag), value, store)

    def move_to(self, account: str, value: Struct, arguments: tuple[TypeTag, ...]) -> None:
        """Store a new resource."""
        kind = self._resource("move_to", type(value), arguments)
        if self._read(account, kind) is not None:
            raise VmError("RESOURCE_ALREADY_EXISTS", f"Failed to move resource {kind.kind.text} into {account}")
        self._store(account, kind, self._encode(kind.layout, kind.kind, value))

    def move_from(self, resource: type[_R], at: str, arguments: tuple[TypeTag, ...]) -> _R:
        """Delete a resource and return it."""
        kind, _, value = self._fetch("move_from", resource, at, arguments, Access.OWN)
        self._store(at, kind, None)
        return value

    def _resource(self, instruction: str, resource: type[Struct], arguments: tuple[TypeTag, ...]) -> StructType:
        """Charge for an instruction and return the struct type of its resource, which must have the ability key."""
        self.meter.charge(f"instr.{instruction}_generic.base" if arguments else f"instr.{instruction}.base")
        kind = self.code.struct(resource, arguments)
        if "key" not in resource.move_declared().move_abilities:
            raise ContractError(f"{kind.kind.text} must have the ability key to be stored under an address")
        return kind

    def _fetch(
        self, instruction: str, resource: type[_R], at: str, arguments: tuple[TypeTag, ...], access: Access
    ) -> tuple[StructType, bytes, _R]:
        """Return the type, the bytes and the value of a resource, which must exist and must not be borrowed."""
        kind, framework = self._resource(instruction, resource, arguments), is_framework(resource)
        if self._borrowed and not framework:
            self._check_not_borrowed((parse_address(at), kind.tag), kind.kind.text)
        data = self._read(at, kind)
        if data is None:
            # The text of the VM does not name the resource's type.
            raise VmError("MISSING_DATA", f"Failed to borrow global resource from {address_to_bytes(at).hex()}")
        plain = self.code.decoded(kind.kind.text, data) if framework else decode_bcs(kind.layout, data)
        return kind, data, self._load(kind.kind, plain, access)

    def _load(self, kind: MoveType, plain: Any, access: Access) -> Any:
        """Convert a decoded value to the value that contract code uses."""
        before, self.access = self.access, access
        try:
            return load_value(kind, plain, self)
        finally:
            self.access = before

    def _slot(self, at: str, kind: StructType) -> StateKey:
        """Return the key under which a resource is stored: its own, or that of its group."""
        address = str(parse_address(at))  # text as keys have it, not an `Address`
        return resource_key(address, kind.tag) if kind.group is None else StateKey("group", address, kind.group)

    def _read(self, at: str, kind: StructType) -> bytes | None:
        """Return a resource's bytes; reading a member of a group reads the whole group."""
        item: Any
        item = key = self._slot(at, kind)
        data, shared = self._peek(key), 0
        if kind.group is not None:
            item, shared = (key, kind.tag), 0 if key in self._loaded else len(data or b"")
            data = decode_group(data).get(kind.tag)
        if item not in self._loaded:
            self._loaded.update((key, item))
            self.meter.charge_read(shared + len(data or b""), key)
        return data

    def _store(self, at: str, kind: StructType, data: bytes | None) -> None:
        """Write a resource; writing a member of a group writes the whole group."""
        key = self._slot(at, kind)
        if kind.group is not None:
            members = decode_group(self._peek(key)) | {kind.tag: data}
            data = encode_group({tag: one for tag, one in members.items() if one is not None})
        self.write(key, data)

    def _encode(self, layout: Any, kind: MoveType, value: Any) -> bytes:
        try:
            return encode_bcs(layout, store_value(kind, value))
        except SchemaError as error:
            # A VM would have stopped at the number that is out of range.
            raise VmError("ARITHMETIC_ERROR", str(error)) from None

    # -- tables: what the methods of `Table` call --------------------------------------------------------------

    def item_key(self, verb: str, handle: str, key_kind: MoveType, key: Any) -> StateKey:
        """Return the state key of a table item; charge for the table function that needs it."""
        data = self._encode(self.code.layout(key_kind.text), key_kind, key)
        self.meter.charge_code(CONTRACT_BLOCKS)
        self.meter.charge(f"table.{verb}_box.base")
        self.meter.charge(f"table.{verb}_box.per_byte_serialized", len(data))
        return StateKey("table", handle, data)

    def load_item(self, key: StateKey) -> bytes | None:
        """Return an item's bytes; charge the first load as execution, because table functions are native."""
        self._check_not_borrowed(key, "an item of this table")
        data = self._peek(key)
        if key not in self._loaded:
            self._loaded.add(key)
            self.meter.charge("table.common.load.base_new")
            if data is not None:
                self.meter.charge("table.common.load.per_byte", whole_pages(len(data)))
        return data

    def item(self, key: StateKey, kind: MoveType, access: Access) -> Any:
        """Return a table item; abort if it does not exist."""
        return self._load(kind, decode_bcs(self.code.layout(kind.text), self._item_bytes(key)), access)

    def item_mut(self, key: StateKey, key_kind: MoveType, kind: MoveType) -> Lent[Any]:
        """Return a context manager that yields a table item and stores its changes; abort if it does not exist."""
        layout, data = self.code.layout(kind.text), self._item_bytes(key)
        value = self._load(kind, decode_bcs(layout, data), Access.BORROWED)
        if not isinstance(value, Struct | list):
            raise ContractError(f"an item of type {kind.text} cannot be changed in place: use upsert")

        def store(value: Any) -> None:
            if _is_write(value, data, self._encode(layout, kind, value)):
                self.write_item(key, key_kind, kind, value)

        return Lent(self._borrowed, key, value, store)

    def write_item(self, key: StateKey, key_kind: MoveType, kind: MoveType, value: Any) -> None:
        """Store a table item."""
        self.tables[key.owner] = TableTypes(key_kind.text, kind.text)
        self.write(key, self._encode(self.code.layout(kind.text), kind, value))

    def _item_bytes(self, key: StateKey) -> bytes:
        data = self.load_item(key)
        if data is None:
            raise MoveAbort("0x1::table", _NOT_FOUND)
        return data

    # -- borrowing -----------------------------------------------------------------------------------------

    def _check_not_borrowed(self, what: Any, name: str) -> None:
        """Raise ContractError if a resource or table item is currently borrowed with `borrow_mut`."""
        if what in self._borrowed:
            raise ContractError(
                f"{name} is already borrowed mutably and cannot be accessed until that with block ends: use the "
                f"borrowed value, or end the block first"
            )

    # -- events --------------------------------------------------------------------------------------------

    def new_event_handle(self, owner: str) -> Any:
        """Return a new event handle for an account and increment the account's creation number."""
        account: Any = self.link(self.code.modules["0x1", "account"])
        return account.new_event_handle(owner)

    def emit_event(self, handle: Any, event: Struct, arguments: tuple[TypeTag, ...]) -> None:
        """Record an event with a handle and increment the handle's counter."""
        if handle.move_access is Access.READ_ONLY:
            raise ContractError(f"the counter of this event handle would not be stored: {READ_ONLY}")
        identifier = handle.guid.id
        key = int(identifier.creation_num).to_bytes(8, "little") + address_to_bytes(identifier.addr)
        self.emit(event, arguments, key, handle.counter)
        handle.counter += 1

    def emit(self, event: Struct, arguments: tuple[TypeTag, ...], key: bytes | None = None, number: int = 0) -> None:
        """Record an event with a handle, or a module event if `key` is None."""
        kind = self.code.struct(type(event), arguments)
        data = self._encode(kind.layout, kind.kind, event)
        self.meter.charge("aptos_framework.event.write_to_event_store.base")
        units = len(data) + VALUE_UNITS * (1 + len(type(event).move_fields()))
        self.meter.charge("aptos_framework.event.write_to_event_store.per_abstract_memory_unit", units)
        emitted = EmittedEvent(kind.kind.text, data, key, number)
        self.events.append(emitted)
        self.meter.written(emitted)
