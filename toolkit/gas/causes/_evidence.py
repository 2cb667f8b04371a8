"""The data behind causes and timelines: reads, each made once per node; packages; the writes of transactions.

Writes are classified by how they can affect gas.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.messages import shorten
from toolkit._present.text import short_addresses, visible
from toolkit.client._http import served_ledger
from toolkit.client._node_errors import ABSENT
from toolkit.errors import InputError, NodeError, NodeUnreachable, NotFound, SchemaError, ToolkitError, Unsupported
from toolkit.fork._state import NO_RESULT, NodeState, StateSource
from toolkit.gas._findings import ChangingTransaction
from toolkit.gas.causes._facts import FEATURES, SCHEDULE
from toolkit.move import Layout, decode_bcs, parse_address, parse_type_tag
from toolkit.move._ids import ModuleId, address_to_bytes, check_identifier
from toolkit.move._json_text import parse_json
from toolkit.move._values import tables_in
from toolkit.vm import CodeChanges, Module, code_changes
from toolkit.vm._state import module_key
from toolkit.vm._types import ModuleId as VmModuleId
from toolkit.wire import GasSchedule, SimulationRequest, ViewFunction
from toolkit.wire._gas import enabled_features
from toolkit.wire._headers import timestamp_from_us
from toolkit.wire._rows import transaction_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolkit.client._abis import ModuleLookup
    from toolkit.client._node import Node
    from toolkit.client._progress import Progress
    from toolkit.gas._calls import Call

FRAMEWORK = "0x1"
# Raised by a read that the node does not offer, or whose answer has an unusable form.
UNREAD = (NodeError, NodeUnreachable, SchemaError)

REGISTRY = "0x1::code::PackageRegistry"
# Packages that are followed from one module; a registry that names more is malicious or damaged.
_MAX_PACKAGES = 200
# Characters of a node's message in an explanation, which is one sentence.
_MAX_REASON = 120
_SCHEDULE = ("0x1::gas_schedule::GasSchedule", "0x1::storage_gas::")
_CONFIG = (FEATURES, "0x1::version::Version", "0x1::chain_id::ChainId", "0x1::transaction_validation::")
_CONFIG_NAMES = ("Config", "Configuration")
# State that the chain maintains: clock, blocks, epochs, the list of packages.
_UPKEEP = (
    "0x1::block::",
    REGISTRY,
    "0x1::randomness::PerBlockRandomness",
    "0x1::reconfiguration::",
    "0x1::stake::ValidatorPerformance",
    "0x1::timestamp::",
    "0x1::transaction_fee::",
)
_COIN = "0x1::aptos_coin::AptosCoin"
_ACCOUNT = ("0x1::account::Account", f"0x1::coin::CoinStore<{_COIN}>")
_COIN_INFO = f"0x1::coin::CoinInfo<{_COIN}>"
# Metadata object of the gas coin as a fungible asset; it has the supply too.
_METADATA = "0xa"
_STORE = "0x1::fungible_asset::FungibleStore"
_OBJECT = "0x1::object::ObjectCore"
# Table item with the supply of the gas coin on public networks; each payment of gas writes it.
_SUPPLY_ITEM = (
    "0x1b854694ae746cdbd8d44186ca4929b2b337df21d1c74633be19b2710552fdca",
    bytes.fromhex("0619dc29a0aac8fa146714058e8dd6d2d0f3bdf5f6331907bf91f3acd81e6935"),
)
# Bytes of a key of unknown type that are shown: enough to distinguish keys.
_MAX_KEY_BYTES = 8
# Fields inside the table types of the framework, which mean nothing to a reader. The keys of `buckets` are hashes.
_WRAPPERS = frozenset({"inner", "buckets"})
# Resources of a module without type parameters that are searched for tables, at one read each.
_MAX_RESOURCES = 8


class Ran(NamedTuple):
    """The outcome of a call that was executed, and the ids of the functions that ran."""

    success: bool
    gas_used: int
    functions: frozenset[str]


class Evidence:
    """Reads the data that causes are derived from, on one node. Threads can share an instance.

    Parameters
    ----------
    node : Node
    progress : Progress, optional
        Shows how many resources have been read.
    """

    def __init__(self, node: Node, progress: Progress | None = None) -> None:
        self._node, self._progress = node, progress
        self._results: dict[tuple[Any, ...], Any] = {}
        self._locks: dict[tuple[Any, ...], Lock] = {}

    def transaction(self, version: int) -> Any:
        """Return the transaction at a version."""
        return self._once(("transaction", version), lambda: self._node.transaction(version))

    def schedule(self, version: int) -> GasSchedule:
        """Return the gas schedule at a version."""
        found: GasSchedule | None = self.resource(FRAMEWORK, SCHEDULE, version)
        if found is None:
            raise SchemaError(f"the ledger has no {SCHEDULE} at version {version:,}")
        return found

    def resource(self, address: str, tag: str, version: int) -> Any:
        """Return a resource at a version, as JSON, packages or a gas schedule; None if it does not exist."""
        return self._once(
            ("resource", address, tag, version),
            lambda: _resource_of(address, tag, self._node.resource_json(address, tag, version)),
        )

    def read_resources(self, wanted: Iterable[tuple[str, str, int]]) -> None:
        """Read resources by address, tag and version, all at once. Then, `resource` returns each or raises its error.

        Raises
        ------
        LedgerChanged, ClosedError
            If the node serves another ledger, or is closed.
        """
        missing = [key for key in dict.fromkeys(wanted) if ("resource", *key) not in self._results]
        if self._progress is not None:
            self._progress.expect(len(missing))
        for place, outcome in self._node.many([self._node.prepare_resource(*key) for key in missing]):
            self._results["resource", *missing[place]] = _usable(missing[place], outcome)
            if self._progress is not None:
                self._progress.advance(1)

    def features(self, version: int) -> frozenset[int]:
        """Return the feature flags that are on at a version; empty if the framework does not have flags."""
        data = self.resource(FRAMEWORK, FEATURES, version)
        return frozenset() if data is None else enabled_features(data)

    def packages(self, address: str, version: int) -> tuple[CodePackage, ...]:
        """Return the packages of an address at a version."""
        return self.resource(address, REGISTRY, version) or ()

    def dependencies(self, called: ModuleId, version: int) -> Dependencies | None:
        """Return the packages that a module needs at a version; None if no package contains it."""
        return dependencies(called, lambda address: self.packages(address, version))

    def module(self, module: ModuleId, version: int) -> ModuleLookup:
        """Return a module at a version; see `AbiStore.read`."""
        read = self._node.abis.read
        found: ModuleLookup = self._once(
            ("module", module, version), lambda: read(module.address, module.name, version)
        )
        return found

    @property
    def has_python_contracts(self) -> bool:
        """Whether contracts are the Python classes of an embedded ledger of this process."""
        return served_ledger(self._node.url) is not None

    def code_changes(self, module: ModuleId, before: int, after: int) -> CodeChanges | None:
        """Return the functions of a module that differ between two versions; None if either code is not served."""
        if (ledger := served_ledger(self._node.url)) is not None:
            found = ledger.function_changes(module.address, module.name, before, after)
            # Methods also use what is outside of them: if none differs, which functions changed is not known.
            return CodeChanges(*map(tuple, found)) if found and any(found) else None
        old, new = (self.code(module, version) for version in (before, after))
        return None if old is None or new is None else code_changes(old, new)

    def execute(self, call: Call, version: int, *, max_gas: int) -> Ran | None:
        """Execute a call at a version; None if that cannot be done, or the gas limit or a check ends it."""
        request, ledger = call.request, served_ledger(self._node.url)
        assert isinstance(request, ViewFunction | SimulationRequest)  # noqa: S101 - of calls with a step
        with suppress(*NO_RESULT):
            if ledger is not None:
                if isinstance(request, ViewFunction):
                    profile = ledger.profile(request, version=version)
                else:  # transactions run at the head only
                    profile = ledger.copy(version).profile(request)
                return Ran(profile.success, profile.gas_used, profile.functions)
            from toolkit.fork._fork import Fork, run_call  # it imports the machine, which most studies need not

            done = run_call(Fork(self._node, version), request, max_gas=max_gas)
            if done.status.kind not in {"discard", "out_of_gas"}:
                return Ran(done.status.success, done.gas_used, done.functions)
        return None

    def code(self, module: ModuleId, version: int) -> Module | None:
        """Return the bytecode of a module at a version; None if the node does not serve it."""
        key = module_key(VmModuleId(address_to_bytes(module.address), module.name))
        found = self._once(("code", module, version), lambda: NodeState(StateSource(self._node), version)(key))
        try:
            return None if found is None else Module.from_bytes(found[0])
        except (SchemaError, InputError, Unsupported):
            return None

    def layout(self, text: str, version: int) -> Layout:
        """Return the layout of a type at a version."""
        return self._node.abis.at(version).layout(parse_type_tag(text))

    @property
    def reads(self) -> int:
        """Number of reads so far. Cached responses count, and a repeated request counts once."""
        return len(self._results)

    def _once(self, key: tuple[Any, ...], read: Callable[[], Any]) -> Any:
        """Read once, whichever thread asks first; a failed read is not repeated either."""
        with self._locks.setdefault(key, Lock()):
            if key not in self._results:
                try:
                    self._results[key] = read()
                except UNREAD as error:
                    self._results[key] = error
        result = self._results[key]
        if isinstance(result, ToolkitError):
            raise result
        return result


def reason(error: Exception) -> str:
    """Return, in a few words, why a read failed."""
    if isinstance(error, NodeError):
        code = f" {visible(error.error_code, 40)}" if error.error_code else ""
        return f"the node answered {error.status}{code}: {visible(error.message, _MAX_REASON)}"
    if isinstance(error, NodeUnreachable):
        return "the node did not respond"
    return visible(error, 2 * _MAX_REASON)


def _resource_of(address: str, tag: str, data: Any) -> Any:
    """Return the parts of a resource that causes need; a package registry also holds large source texts."""
    if data is None:
        return None
    if tag == REGISTRY:
        return packages_of(data, address)
    return GasSchedule.from_resource(data) if tag == SCHEDULE else data


def _usable(key: tuple[str, str, int], outcome: Any) -> Any:
    """Return the result of a read, or the error that says why it is unusable; other errors are raised."""
    if isinstance(outcome, NotFound) and outcome.error_code in ABSENT:
        return None
    if isinstance(outcome, UNREAD):
        return outcome
    if isinstance(outcome, ToolkitError):
        raise outcome
    try:
        return _resource_of(key[0], key[1], outcome[0])
    except SchemaError as error:
        return error


class CodePackage(NamedTuple):
    """One package of an address: its upgrade number, its modules, and the packages it depends on."""

    address: str
    name: str
    upgrade_number: int
    modules: frozenset[str]
    needs: tuple[tuple[str, str], ...]


class Dependencies(NamedTuple):
    """The packages that a called module needs at one version.

    Attributes
    ----------
    own : CodePackage
        The package that contains the module.
    others : tuple of CodePackage
        Its dependencies, direct and indirect.
    complete : bool
        False if a dependency was not found.
    """

    own: CodePackage
    others: tuple[CodePackage, ...]
    complete: bool

    @property
    def packages(self) -> tuple[CodePackage, ...]:
        """All packages, the module's own first."""
        return (self.own, *self.others)

    def distance(self, module: ModuleId) -> int | None:
        """Return the position in `packages` of the package that contains a module, 0 for its own; None if none does."""
        holds = (package.address == module.address and module.name in package.modules for package in self.packages)
        return next((place for place, held in enumerate(holds) if held), None)


def packages_of(data: Any, address: str) -> tuple[CodePackage, ...]:
    """Decode the package registry of an address.

    Parameters
    ----------
    data : mapping
        The resource, as Python objects.
    address : str
        Canonical address that stores the registry.

    Raises
    ------
    SchemaError
        If the resource does not have the documented shape.
    """
    try:
        return tuple(_package_of(entry, address) for entry in data["packages"])
    except (TypeError, KeyError, ValueError, InputError) as error:
        text = f"{REGISTRY} of {address} does not have the documented shape ({shorten(error)}); got {shorten(data)}"
        raise SchemaError(text) from None


def _package_of(entry: Mapping[str, Any], address: str) -> CodePackage:
    modules = frozenset(check_identifier(str(module["name"]), "module name") for module in entry["modules"])
    needs = tuple((parse_address(need["account"]), str(need["package_name"])) for need in entry["deps"])
    return CodePackage(address, str(entry["name"]), int(entry["upgrade_number"]), modules, needs)


def dependencies(called: ModuleId, registry: Callable[[str], tuple[CodePackage, ...]]) -> Dependencies | None:
    """Find the dependencies of the package of a called module.

    Parameters
    ----------
    called : ModuleId
    registry : callable
        Returns the packages of an address at one version; empty if it has none.

    Returns
    -------
    Dependencies or None
        None if no package of the module's address contains it.
    """
    own = next((package for package in registry(called.address) if called.name in package.modules), None)
    if own is None:
        return None
    found = {(own.address, own.name): own}
    waiting, complete = deque(own.needs), True
    while waiting:
        needed = waiting.popleft()
        if needed in found:
            continue
        package = next((one for one in registry(needed[0]) if one.name == needed[1]), None)
        if package is None or len(found) >= _MAX_PACKAGES:
            complete = False
            continue
        found[needed] = package
        waiting.extend(package.needs)
    return Dependencies(own, tuple(found.values())[1:], complete)


class StateWrite(NamedTuple):
    """One state change; fields that do not apply to its kind are None."""

    kind: str
    address: str | None
    resource: str | None
    module: str | None
    handle: str | None
    key: bytes | None
    data: str | None

    @property
    def deleted(self) -> bool:
        """Whether the change is a deletion."""
        return self.kind.startswith("delete")

    @property
    def document(self) -> Any:
        """The written value as parsed JSON; None for a deletion or if it cannot be parsed."""
        with suppress(SchemaError):
            return None if self.data is None else parse_json(self.data, "data")
        return None


@dataclass(frozen=True)
class Written:
    """The writes of one transaction, and who paid for it.

    Attributes
    ----------
    writes : tuple of StateWrite
    payers : frozenset of str
        Canonical addresses of sender and fee payer.
    by : ChangingTransaction
    """

    writes: tuple[StateWrite, ...]
    payers: frozenset[str]
    by: ChangingTransaction

    @classmethod
    def of(cls, transaction: Any) -> Written:
        """Return the writes of a decoded transaction."""
        rows, changes, _ = transaction_rows([transaction])
        columns = ("type", "address", "resource_type", "module", "handle", "key", "data")
        writes = tuple(StateWrite(*row) for row in zip(*(changes[name] for name in columns), strict=True))
        names = ("version", "hash", "type", "sender", "function", "payload_type")
        stamp = rows["timestamp_us"][0]
        time = None if stamp is None else timestamp_from_us(stamp)  # genesis has none
        by = ChangingTransaction(**{name: rows[name][0] for name in names}, time=time)
        return cls(writes, frozenset({by.sender, rows["fee_payer"][0]} - {None}), by)

    @cached_property
    def modules(self) -> tuple[ModuleId, ...]:
        """Modules written or deleted.

        Raises
        ------
        SchemaError
            If a change names something that is not a module.
        """
        try:
            return tuple(ModuleId.parse(write.module) for write in self.writes if write.module is not None)
        except InputError as error:
            raise SchemaError(f"a change in transaction {self.by.hash} does not name a module: {error}") from None

    @cached_property
    def schedule(self) -> tuple[str, ...]:
        """Resources of the gas schedule that were written."""
        return self._framework(lambda tag: tag.startswith(_SCHEDULE))

    @cached_property
    def config(self) -> tuple[str, ...]:
        """Resources of on-chain configuration that were written."""
        rest = self._framework(lambda tag: not tag.startswith(_SCHEDULE + _UPKEEP))
        return tuple(tag for tag in rest if tag.startswith(_CONFIG) or tag.partition("<")[0].endswith(_CONFIG_NAMES))

    @cached_property
    def upkeep(self) -> tuple[StateWrite, ...]:
        """Writes of every transaction or block, such as the balances and sequence numbers of payers."""
        # Gas is paid from fungible stores, too, and changes the supply of the object of the gas coin.
        stores, objects = ([one for one in self.writes if one.resource == tag] for tag in (_STORE, _OBJECT))
        of_coin = {one.address for one in stores if _address_at(one.document, "metadata", "inner") == _METADATA}
        owned = {one.address for one in objects if _address_at(one.document, "owner") in self.payers}
        own_stores = frozenset({*(of_coin & owned), _METADATA})
        return tuple(write for write in self.writes if not write.deleted and self._is_upkeep(write, own_stores))

    @cached_property
    def state(self) -> tuple[StateWrite, ...]:
        """All other writes of resources and table items."""
        named = {*self.schedule, *self.config}
        state = [write for write in self.writes if write.module is None and write not in self.upkeep]
        return tuple(write for write in state if not (write.address == FRAMEWORK and write.resource in named))

    def _framework(self, wanted: Callable[[str], bool]) -> tuple[str, ...]:
        tags = [write.resource for write in self.writes if write.resource and write.address == FRAMEWORK]
        return tuple(dict.fromkeys(filter(wanted, tags)))

    def _is_upkeep(self, write: StateWrite, own_stores: frozenset[str | None]) -> bool:
        tag = write.resource
        if tag is None:
            return (write.handle, write.key) == _SUPPLY_ITEM
        if tag.startswith(_UPKEEP) or tag == _COIN_INFO:
            return True
        if write.address in own_stores and tag.startswith("0x1::"):
            return True
        return tag in _ACCOUNT and write.address in self.payers


def _address_at(document: Any, *names: str) -> str | None:
    """Return the address at a path of a JSON document in canonical form; None if the document has no address there."""
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    try:
        return parse_address(document) if isinstance(document, str) else None
    except InputError:
        return None


class TypedTable(NamedTuple):
    """A table, named by the resource and field that contain it; `key_type` is None if no ABI declares it."""

    resource: str
    field: str
    key_type: str | None


def tables_of(called: ModuleId, written: Written, evidence: Evidence, version: int) -> dict[str, TypedTable]:
    """Find the tables in resources of the called module at its own address, and in resources that were written.

    Parameters
    ----------
    called : ModuleId
    written : Written
        The transaction's writes.
    evidence : Evidence
    version : int
        Version of that transaction.

    Returns
    -------
    dict of str to TypedTable
        Tables by canonical handle; resources that cannot be read are omitted.
    """
    found: dict[str, TypedTable] = {}
    for write in written.writes:
        if write.resource is not None:
            found |= _tables_in(write.resource, write.document, evidence, version)
    abi = None
    with suppress(*UNREAD):
        abi = evidence.module(called, version).abi
    keyed = [one for one in abi.structs if "key" in one.abilities and not one.generic_type_params] if abi else []
    for struct in keyed[:_MAX_RESOURCES]:
        tag = f"{called}::{struct.name}"
        with suppress(*UNREAD):
            found |= _tables_in(tag, evidence.resource(called.address, tag, version), evidence, version)
    return found


def key_text(write: StateWrite, table: TypedTable | None, evidence: Evidence, version: int) -> str:
    """Return the key of a written table item: decoded, with short addresses, if its type is known, else hexadecimal."""
    key = write.key or b""
    if table is not None and table.key_type is not None:
        with suppress(*UNREAD, InputError):
            value = decode_bcs(evidence.layout(table.key_type, version), key)
            return visible(short_addresses(value if table.key_type == "address" else repr(value)), 60)
    return f"0x{key.hex()}" if len(key) <= _MAX_KEY_BYTES else f"0x{key[:_MAX_KEY_BYTES].hex()}…"


def _tables_in(tag: str, document: Any, evidence: Evidence, version: int) -> dict[str, TypedTable]:
    if not _has_handle(document):  # before the modules of its types are looked up
        return {}
    try:
        declared = list(tables_in(evidence.layout(tag, version), document))
    except (*UNREAD, InputError):
        return {}
    found = {}
    for table in declared:
        names = [name for name in table.field.split(".") if name not in _WRAPPERS]
        hashed = "buckets" in table.field.split(".")
        found[table.handle] = TypedTable(tag.partition("<")[0], ".".join(names), None if hashed else table.key_type)
    return found


def _has_handle(document: Any) -> bool:
    """Return whether a part of a JSON document has a field `handle`, as every table does."""
    if isinstance(document, dict):
        return "handle" in document or any(map(_has_handle, document.values()))
    return isinstance(document, list) and any(map(_has_handle, document))
