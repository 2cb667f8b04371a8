"""What one transaction wrote, sorted by what it can mean for gas. Pure: decoded transaction in, writes out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import InputError, SchemaError
from toolkit.move import ModuleId, parse_address
from toolkit.move._json_text import parse_json
from toolkit.wire import transaction_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Write", "Written", "struct_of"]

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
"""What the chain keeps by itself: clock, blocks, epochs, the list of packages."""
_COIN = "0x1::aptos_coin::AptosCoin"
_ACCOUNT = ("0x1::account::Account", f"0x1::coin::CoinStore<{_COIN}>")
_COIN_INFO = f"0x1::coin::CoinInfo<{_COIN}>"
_METADATA = "0xa"
"""Metadata of the gas coin as a fungible asset: its supply is there too."""
_STORE = "0x1::fungible_asset::FungibleStore"
_OBJECT = "0x1::object::ObjectCore"
_SUPPLY_ITEM = (
    "0x1b854694ae746cdbd8d44186ca4929b2b337df21d1c74633be19b2710552fdca",
    bytes.fromhex("0619dc29a0aac8fa146714058e8dd6d2d0f3bdf5f6331907bf91f3acd81e6935"),
)
"""The item that counts the gas coin's supply on public networks; whoever pays for gas writes it."""


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
        """Whether it took something away."""
        return self.kind.startswith("delete")

    @property
    def document(self) -> Any:
        """What was written, as parsed JSON; None where it was deleted, or cannot be read."""
        return None if self.data is None else _parsed(self.data)


@dataclass(frozen=True)
class Written:
    """What one transaction wrote, and who paid for it.

    Attributes
    ----------
    writes : tuple of Write
    payers : frozenset of str
        Canonical addresses of sender and fee payer.
    facts : dict
        The transaction's row: ``type``, ``hash``, ``sender``, ``function``, ``payload_type``.
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
        facts = {name: rows[name][0] for name in ("type", "hash", "sender", "function", "payload_type")}
        return cls(writes, frozenset(_payers(transaction, facts["sender"])), facts)

    @cached_property
    def modules(self) -> tuple[ModuleId, ...]:
        """Modules written or deleted.

        Raises
        ------
        SchemaError
            If a change names something that is no module.
        """
        try:
            return tuple(ModuleId.parse(write.module) for write in self.writes if write.module is not None)
        except InputError as error:
            raise SchemaError(f"a change of transaction {self.facts['hash']} names no module: {error}") from None

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
        """What every transaction or block writes: balances and sequence numbers of who pays, clock, packages."""
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
        told = {*self.schedule, *self.config}
        return tuple(
            write
            for write in self.writes
            if write.module is None
            and write not in self.upkeep
            and not (write.address == _FRAMEWORK and write.resource in told)
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
        """Return the fungible stores from which gas is paid, and the gas coin's own object, whose supply it changes."""
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


def struct_of(tag: str) -> tuple[str, str]:
    """Split the text of a struct tag into module and struct name, type arguments left out."""
    module, _, name = tag.partition("<")[0].rpartition("::")
    return module, name


def _is_config(tag: str) -> bool:
    if tag.startswith(_SCHEDULE + _UPKEEP):
        return False
    return tag.startswith(_CONFIG) or struct_of(tag)[1].endswith(_CONFIG_NAMES)


def _payers(transaction: Any, sender: str | None) -> Sequence[str]:
    """Return who may have paid: the sender, and the fee payer where the signature names one."""
    raw = getattr(transaction, "signature_raw", None)
    other = None if raw is None else _padded(_field(_parsed(bytes(raw)), "fee_payer_address"))
    return [address for address in (sender, other) if address is not None]


def _parsed(text: str | bytes) -> Any:
    """Return JSON as Python values; None for what is none, nests too deep, or holds a number of thousands of digits."""
    try:
        return parse_json(text, "data")
    except SchemaError:
        return None


def _field(document: Any, name: str) -> Any:
    return document.get(name) if isinstance(document, dict) else None


def _padded(address: Any) -> str | None:
    """Return an address of a JSON document in canonical form, None where it is none."""
    try:
        return parse_address(address) if isinstance(address, str) else None
    except InputError:
        return None
