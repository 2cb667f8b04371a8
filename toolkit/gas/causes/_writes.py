"""What one transaction wrote, sorted by what it can mean for gas, and the resources that own the written tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.text import short_addresses, visible
from toolkit.errors import InputError, SchemaError
from toolkit.gas.causes._evidence import UNREAD
from toolkit.move import ModuleId, StructTag, decode_bcs, parse_address, parse_table_handle, parse_type_tag
from toolkit.move._json_text import parse_json
from toolkit.wire import transaction_rows
from toolkit.wire._headers import timestamp_from_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from toolkit.gas.causes._evidence import Evidence

__all__ = ["Table", "Write", "Written", "key_text", "tables_of"]

_FRAMEWORK = "0x1"
_SCHEDULE = ("0x1::gas_schedule::GasSchedule", "0x1::storage_gas::")
_CONFIG = (
    "0x1::features::Features",
    "0x1::version::Version",
    "0x1::chain_id::ChainId",
    "0x1::transaction_validation::",
)
_CONFIG_NAMES = ("Config", "Configuration")
_UPKEEP = (
    "0x1::block::",
    "0x1::code::PackageRegistry",
    "0x1::randomness::PerBlockRandomness",
    "0x1::reconfiguration::",
    "0x1::stake::ValidatorPerformance",
    "0x1::timestamp::",
    "0x1::transaction_fee::",
)
"""State that the chain maintains: clock, blocks, epochs, the list of packages."""
_COIN = "0x1::aptos_coin::AptosCoin"
_ACCOUNT = ("0x1::account::Account", f"0x1::coin::CoinStore<{_COIN}>")
_COIN_INFO = f"0x1::coin::CoinInfo<{_COIN}>"
_METADATA = "0xa"
"""Metadata object of the gas coin as a fungible asset; it has the supply too."""
_STORE = "0x1::fungible_asset::FungibleStore"
_OBJECT = "0x1::object::ObjectCore"
_SUPPLY_ITEM = (
    "0x1b854694ae746cdbd8d44186ca4929b2b337df21d1c74633be19b2710552fdca",
    bytes.fromhex("0619dc29a0aac8fa146714058e8dd6d2d0f3bdf5f6331907bf91f3acd81e6935"),
)
"""Table item with the supply of the gas coin on public networks; each payment of gas writes it."""
_MAX_DEPTH = 8
_MAX_KEY_BYTES = 8
_WRAPPERS = frozenset({"inner", "buckets"})
"""Fields inside the table types of the framework, which mean nothing to a reader."""
_PLAIN = frozenset({("0x1", "table"), ("0x1", "table_with_length")})
"""Modules of tables whose items have the keys that users gave; other tables hash keys into buckets."""
_MAX_RESOURCES = 8


class Write(NamedTuple):
    """One state change; the fields that do not belong to its kind are None."""

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
        return None if self.data is None else _parsed(self.data)


@dataclass(frozen=True)
class Written:
    """The writes of one transaction, and who paid for it.

    Attributes
    ----------
    writes : tuple of Write
    payers : frozenset of str
        Canonical addresses of sender and fee payer.
    facts : dict
        The transaction's row: ``type``, ``hash``, ``sender``, ``function``, ``payload_type``, ``timestamp_us``.
    """

    writes: tuple[Write, ...]
    payers: frozenset[str]
    facts: dict[str, Any]

    @classmethod
    def of(cls, transaction: Any) -> Written:
        """Read a decoded transaction."""
        rows, changes, _ = transaction_rows([transaction])
        columns = ("type", "address", "resource_type", "module", "handle", "key", "data")
        writes = tuple(Write(*row) for row in zip(*(changes[name] for name in columns), strict=True))
        facts = {name: rows[name][0] for name in ("type", "hash", "sender", "function", "payload_type", "timestamp_us")}
        return cls(writes, frozenset(_payers(transaction, facts["sender"])), facts)

    @property
    def time(self) -> datetime | None:
        """Time of the transaction; None if it has none, as genesis."""
        stamp = self.facts["timestamp_us"]
        return None if stamp is None else timestamp_from_us(stamp)

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
            raise SchemaError(f"a change of transaction {self.facts['hash']} does not name a module: {error}") from None

    @cached_property
    def schedule(self) -> tuple[str, ...]:
        """Resources of the gas schedule that were written."""
        return self._framework(lambda tag: tag.startswith(_SCHEDULE))

    @cached_property
    def config(self) -> tuple[str, ...]:
        """Resources of on-chain configuration that were written."""
        return self._framework(_is_config)

    @cached_property
    def upkeep(self) -> tuple[Write, ...]:
        """What every transaction or block writes: balances and sequence numbers of payers, clock, packages."""
        own_stores = self._gas_stores()
        return tuple(
            write
            for write in self.writes
            if not write.deleted
            and (
                (write.handle, write.key) == _SUPPLY_ITEM
                or (write.resource is not None and self._is_upkeep(write.resource, write.address, own_stores))
            )
        )

    @cached_property
    def state(self) -> tuple[Write, ...]:
        """Everything else: resources and table items."""
        named = {*self.schedule, *self.config}
        return tuple(
            write
            for write in self.writes
            if write.module is None
            and write not in self.upkeep
            and not (write.address == _FRAMEWORK and write.resource in named)
        )

    def _framework(self, wanted: Any) -> tuple[str, ...]:
        tags = [write.resource for write in self.writes if write.resource and write.address == _FRAMEWORK]
        return tuple(dict.fromkeys(tag for tag in tags if wanted(tag)))

    def _is_upkeep(self, tag: str, address: str | None, own_stores: frozenset[str | None]) -> bool:
        if tag.startswith(_UPKEEP) or tag == _COIN_INFO:
            return True
        if address in own_stores and tag.startswith("0x1::"):
            return True
        return tag in _ACCOUNT and address in self.payers

    def _gas_stores(self) -> frozenset[str | None]:
        """Return the fungible stores that gas is paid from, and the object of the gas coin, whose supply changes."""
        stores = {
            write.address
            for write in self.writes
            if write.resource == _STORE and _padded(_field(_field(write.document, "metadata"), "inner")) == _METADATA
        }
        owned = {
            write.address
            for write in self.writes
            if write.resource == _OBJECT and _padded(_field(write.document, "owner")) in self.payers
        }
        return frozenset({*(stores & owned), _METADATA})


def _struct_of(tag: str) -> tuple[str, str]:
    """Return module and struct name of a struct tag, without type arguments."""
    module, _, name = tag.partition("<")[0].rpartition("::")
    return module, name


def _is_config(tag: str) -> bool:
    if tag.startswith(_SCHEDULE + _UPKEEP):
        return False
    return tag.startswith(_CONFIG) or _struct_of(tag)[1].endswith(_CONFIG_NAMES)


def _payers(transaction: Any, sender: str | None) -> Sequence[str]:
    """Return who may have paid: the sender, and the fee payer if the signature names one."""
    raw = getattr(transaction, "signature_raw", None)
    other = None if raw is None else _padded(_field(_parsed(bytes(raw)), "fee_payer_address"))
    return [address for address in (sender, other) if address is not None]


def _parsed(text: str | bytes) -> Any:
    """Return JSON as Python values; None if the parser rejects it."""
    try:
        return parse_json(text, "data")
    except SchemaError:
        return None


def _field(document: Any, name: str) -> Any:
    return document.get(name) if isinstance(document, dict) else None


def _padded(address: Any) -> str | None:
    """Return an address of a JSON document in canonical form; None if it is not an address."""
    try:
        return parse_address(address) if isinstance(address, str) else None
    except InputError:
        return None


class Table(NamedTuple):
    """A table by the resource and field that contain it; `key_type` is None if no ABI declares it."""

    resource: str
    field: str
    key_type: str | None


def tables_of(called: ModuleId, written: Written, evidence: Evidence, version: int) -> dict[str, Table]:
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
    dict of str to Table
        By canonical handle; resources that cannot be read are left out.
    """
    found: dict[str, Table] = {}
    for write in written.writes:
        if write.resource is not None:
            found |= _tables_in(write.resource, write.document, evidence, version)
    for tag in _own_resources(called, evidence, version):
        try:
            document = evidence.resource(called.address, tag, version)
        except UNREAD:
            continue
        found |= _tables_in(tag, document, evidence, version)
    return found


def key_text(write: Write, table: Table | None, evidence: Evidence, version: int) -> str:
    """Return the key of a written table item: decoded if its type is known, addresses short, else hexadecimal."""
    key = write.key or b""
    if table is not None and table.key_type is not None:
        try:
            layout = evidence.layout(table.key_type, version)
            value = decode_bcs(layout, key)
            text = value if str(table.key_type) == "address" else repr(value)
            return visible(short_addresses(text), 60)
        except (*UNREAD, InputError):
            pass
    return f"0x{key.hex()}" if len(key) <= _MAX_KEY_BYTES else f"0x{key[:_MAX_KEY_BYTES].hex()}…"


def _own_resources(called: ModuleId, evidence: Evidence, version: int) -> list[str]:
    """Return the resource types of a module that have no type parameters."""
    try:
        abi = evidence.module(called, version).abi
    except UNREAD:
        return []
    structs = [] if abi is None else [s for s in abi.structs if "key" in s.abilities and not s.generic_type_params]
    return [f"{called}::{struct.name}" for struct in structs[:_MAX_RESOURCES]]


def _tables_in(tag: str, document: Any, evidence: Evidence, version: int) -> dict[str, Table]:
    found = {}
    for handle, path in _handles(document, ()):
        field = ".".join(name for name in path if name not in _WRAPPERS)
        found[handle] = Table(tag.partition("<")[0], field, _key_type(tag, path, evidence, version))
    return found


def _handles(document: Any, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the table handles in a document, each with its path."""
    if len(path) > _MAX_DEPTH or not isinstance(document, dict):
        return
    for name, value in document.items():
        if name == "handle" and isinstance(value, str):
            try:
                yield parse_table_handle(value), path
            except InputError:
                continue
        else:
            yield from _handles(value, (*path, str(name)))


def _key_type(tag: str, path: tuple[str, ...], evidence: Evidence, version: int) -> str | None:
    """Return the key type of a table that is a field of a resource, as declared by the ABI of its module."""
    module, struct = _struct_of(tag)
    try:
        abi = evidence.module(ModuleId.parse(module), version).abi
        declared = None if abi is None else abi.struct(struct)
        texts = [field.type for field in declared.fields if field.name == path[0]] if declared and path else []
        kind = parse_type_tag(texts[0], abi=True) if texts else None
    except (*UNREAD, InputError):
        return None
    if not isinstance(kind, StructTag) or (kind.address, kind.module) not in _PLAIN:
        return None
    return str(kind.type_arguments[0])
