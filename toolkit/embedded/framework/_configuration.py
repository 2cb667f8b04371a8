"""The chain and its configuration: time, chain id, epochs and blocks, gas schedule, features, fees and packages.

The modules are ``0x1::timestamp``, ``chain_id``, ``reconfiguration``, ``block``, ``gas_schedule``, ``features``,
``transaction_fee`` and ``code``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolkit.embedded._contract import Module, entry, public, view
from toolkit.embedded._state import StateKey
from toolkit.embedded._vm_status import not_found, out_of_range, permission_denied
from toolkit.embedded.framework._values import EventModule, event_handle
from toolkit.embedded.types import *
from toolkit.move import decode_bcs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.embedded._definitions import Definition
    from toolkit.embedded._meter import Schedule


MICROSECONDS = 1_000_000


class Timestamp(Module, address="0x1"):
    """Ledger time.

    Examples
    --------
    >>> from toolkit.embedded import Ledger
    >>> ledger = Ledger()
    >>> ledger.view("0x1::timestamp::now_seconds")[0]
    [0]
    """

    class CurrentTimeMicroseconds(Resource):
        """Time of the current block, in microseconds since 1970."""

        microseconds: u64

    @view
    def now_microseconds(self) -> u64:
        """Return ledger time in microseconds."""
        return self.borrow(Timestamp.CurrentTimeMicroseconds, "0x1").microseconds

    @view
    def now_seconds(self) -> u64:
        """Return ledger time in seconds."""
        return self.now_microseconds() // MICROSECONDS

    def set_time(self, microseconds: u64) -> None:
        """Set ledger time."""
        if not self.exists(Timestamp.CurrentTimeMicroseconds, "0x1"):
            self.move_to("0x1", Timestamp.CurrentTimeMicroseconds(microseconds=microseconds))
            return
        with self.borrow_mut(Timestamp.CurrentTimeMicroseconds, "0x1") as now:
            now.microseconds = microseconds


class ChainId(Module, address="0x1"):
    """The chain id."""

    class ChainId(Resource):
        """The chain id."""

        id: u8

    @view
    def get(self) -> u8:
        """Return the chain id."""
        return self.borrow(ChainId.ChainId, "0x1").id

    def initialize(self, chain_id: u8) -> None:
        """Set the chain id, once."""
        self.move_to("0x1", ChainId.ChainId(id=chain_id))


class Stake(Module, address="0x1"):
    """Validators, which embedded ledgers do not have."""

    VALIDATOR_STATUS_INACTIVE = 4

    @view
    def get_validator_state(self, pool_address: address) -> u64:
        """Return the validator state of a pool, which is always 4 (inactive)."""
        return self.VALIDATOR_STATUS_INACTIVE


class Reconfiguration(Module, address="0x1"):
    """Epochs and their start."""

    class NewEpochEvent(Struct, abilities="drop store"):
        """An epoch began (event with a handle)."""

        epoch: u64

    class NewEpoch(NewEpochEvent, Event):
        """An epoch began."""

    class Configuration(Resource):
        """The current epoch."""

        epoch: u64
        last_reconfiguration_time: u64
        events: EventModule.EventHandle[Reconfiguration.NewEpochEvent]

    @public
    def current_epoch(self) -> u64:
        """Return the current epoch."""
        return self.borrow(Reconfiguration.Configuration, "0x1").epoch

    def initialize(self) -> None:
        """Start epoch 0."""
        start = Reconfiguration.Configuration(epoch=0, last_reconfiguration_time=0, events=event_handle("0x1", 2))
        self.move_to("0x1", start)

    def begin(self, epoch: u64, microseconds: u64) -> None:
        """Start an epoch."""
        with self.borrow_mut(Reconfiguration.Configuration, "0x1") as current:
            current.epoch = epoch
            current.last_reconfiguration_time = microseconds
        self.emit(Reconfiguration.NewEpoch(epoch=epoch))


class Block(Module, address="0x1"):
    """Blocks and the length of an epoch."""

    class NewBlockEvent(Struct):
        """A block began (event with a handle)."""

        hash: address
        epoch: u64
        round: u64
        height: u64
        previous_block_votes_bitvec: bytes
        proposer: address
        failed_proposer_indices: vector[u64]
        time_microseconds: u64

    class NewBlock(NewBlockEvent, Event):
        """A block began."""

    class UpdateEpochIntervalEvent(Struct, abilities="drop store"):
        """The length of an epoch was changed."""

        old_epoch_interval: u64
        new_epoch_interval: u64

    class BlockResource(Resource):
        """The current block."""

        height: u64
        epoch_interval: u64
        new_block_events: EventModule.EventHandle[Block.NewBlockEvent]
        update_epoch_interval_events: EventModule.EventHandle[Block.UpdateEpochIntervalEvent]

    @view
    def get_current_block_height(self) -> u64:
        """Return the height of the current block."""
        return self.borrow(Block.BlockResource, "0x1").height

    @view
    def get_epoch_interval_secs(self) -> u64:
        """Return the length of an epoch, in seconds."""
        return self.borrow(Block.BlockResource, "0x1").epoch_interval // MICROSECONDS

    def initialize(self, epoch_interval: u64) -> None:
        """Store block 0."""
        start = Block.BlockResource(
            height=0,
            epoch_interval=epoch_interval,
            new_block_events=event_handle("0x1", 3),
            update_epoch_interval_events=event_handle("0x1", 4),
        )
        self.move_to("0x1", start)

    def block_prologue(self, started: Block.NewBlock) -> None:
        """Start a block: set its height and the ledger time."""
        with self.borrow_mut(Block.BlockResource, "0x1") as block:
            block.height = started.height
            block.new_block_events.counter += 1
        self.use(Timestamp).set_time(started.time_microseconds)
        self.emit(started)


_FEATURES = 1024  # far above the largest feature of the framework; bounds the stored bits

# Size of a compressed manifest, which a digest of the name of the package replaces.
_MANIFEST_BYTES = 150

# Size of the packages at 0x1 with their sources on public networks, which publishing reads.
_FRAMEWORK_SOURCE_BYTES = 496_000


class GasSchedule(Module, address="0x1"):
    """The gas schedule."""

    class GasEntry(Struct):
        """A parameter and its value."""

        key: String
        val: u64

    class GasScheduleV2(Resource, abilities="copy drop store key"):
        """The whole gas schedule."""

        feature_version: u64
        entries: vector[GasSchedule.GasEntry]

    ENOT_FRAMEWORK = permission_denied(3, "The signer is not the framework")

    @entry
    def set_gas_schedule(self, aptos_framework: signer, gas_schedule_blob: bytes) -> None:
        """Replace the gas schedule; this needs the framework's signer, which only governance has."""
        self.require(aptos_framework == "0x1", self.ENOT_FRAMEWORK)
        kind = self.session.code.struct(GasSchedule.GasScheduleV2, ())
        self.charge("aptos_framework.util.from_bytes.base")
        self.charge("aptos_framework.util.from_bytes.per_byte", len(gas_schedule_blob))
        plain = decode_bcs(kind.layout, gas_schedule_blob)
        with self.borrow_mut(GasSchedule.GasScheduleV2, "0x1") as schedule:
            schedule.feature_version = plain["feature_version"]
            schedule.entries = [GasSchedule.GasEntry(**entry) for entry in plain["entries"]]

    def initialize(self, schedule: Schedule) -> None:
        """Set the initial gas schedule."""
        plain = schedule.to_resource()
        entries = [GasSchedule.GasEntry(**entry) for entry in plain["entries"]]
        self.move_to("0x1", GasSchedule.GasScheduleV2(feature_version=plain["feature_version"], entries=entries))


class Features(Module, address="0x1"):
    """Feature flags of the framework; only `CURRENT_FEATURES` have an effect on the embedded ledger."""

    # Numbers of features, as on public networks. The first one pairs coins with fungible assets.
    COIN_TO_FUNGIBLE_ASSET = 60
    # An account without a coin store receives the gas coin as its fungible asset.
    NEW_ACCOUNTS_DEFAULT_TO_FA_APT_STORE = 64
    # ``aptos_account::transfer`` moves the fungible asset only.
    OPERATIONS_DEFAULT_TO_FA_APT_STORE = 65
    # Restricts what a signer may do: without effect on the embedded ledger, but looked up.
    PERMISSIONED_SIGNER = 84
    # Every address is an account, and its first transaction creates the resource.
    DEFAULT_ACCOUNT_RESOURCE = 91

    class Features(Resource):
        """One bit per feature; in each byte, the least significant bit comes first."""

        features: bytes

    EFRAMEWORK_SIGNER_NEEDED = permission_denied(1, "The provided signer has not a framework address.")
    ENO_SUCH_FEATURE = out_of_range(99, "This ledger knows features 0 to 1023.")

    @view
    def is_enabled(self, feature: u64) -> bool:
        """Return True if a feature is on."""
        bits = int.from_bytes(self.borrow(Features.Features, "0x1").features, "little")
        return bool(bits >> feature & 1)

    @entry
    def change_feature_flags(self, framework: signer, enable: vector[u64], disable: vector[u64]) -> None:
        """Switch features on and off; this needs the framework's signer, which only governance has.

        The change applies from the next transaction, as on older networks. On current networks, it applies from the
        next epoch.
        """
        self.require(framework == "0x1", self.EFRAMEWORK_SIGNER_NEEDED)
        with self.borrow_mut(Features.Features, "0x1") as flags:
            bits = int.from_bytes(flags.features, "little")
            for feature in self.each(enable):
                bits |= self._bit(feature)
            for feature in self.each(disable):
                bits &= ~self._bit(feature)
            flags.features = bits.to_bytes(max(len(flags.features), -(-bits.bit_length() // 8)), "little")

    def _bit(self, feature: int) -> int:
        """Return the bit of a feature; abort if the number is too large, because a simulation can pass any number."""
        self.require(feature < _FEATURES, self.ENO_SUCH_FEATURE)
        return 1 << feature

    def initialize(self, enabled: Iterable[int]) -> None:
        """Set the initial features."""
        self.move_to("0x1", Features.Features(features=b""))
        self.change_feature_flags("0x1", list(enabled), [])


CURRENT_FEATURES = (
    Features.COIN_TO_FUNGIBLE_ASSET,
    Features.NEW_ACCOUNTS_DEFAULT_TO_FA_APT_STORE,
    Features.OPERATIONS_DEFAULT_TO_FA_APT_STORE,
    Features.DEFAULT_ACCOUNT_RESOURCE,
)
"""The features that have an effect on the embedded ledger; public networks have all of them on."""


class TransactionFee(Module, address="0x1"):
    """Transaction fees."""

    class FeeStatement(Event):
        """The parts of a fee, in gas units or, if the field name says so, in octas."""

        total_charge_gas_units: u64
        execution_gas_units: u64
        io_gas_units: u64
        storage_fee_octas: u64
        storage_fee_refund_octas: u64


class CopyableAny(Module, address="0x1"):
    """Values with their types."""

    class Any(Struct):
        """A value with the name of its type."""

        type_name: String
        data: bytes


class Code(Module, address="0x1"):
    """Published packages."""

    class UpgradePolicy(Struct):
        """Upgrade policy of a package: 1 compatible, 2 immutable."""

        policy: u8

    class PackageDep(Struct):
        """A dependency of a package."""

        account: address
        package_name: String

    class ModuleMetadata(Struct):
        """A module of a package."""

        name: String
        source: bytes
        source_map: bytes
        extension: Option[CopyableAny.Any]

    class PackageMetadata(Struct):
        """A package."""

        name: String
        upgrade_policy: Code.UpgradePolicy
        upgrade_number: u64
        source_digest: String
        manifest: bytes
        modules: vector[Code.ModuleMetadata]
        deps: vector[Code.PackageDep]
        extension: Option[CopyableAny.Any]

    class PackageRegistry(Resource, abilities="drop key store"):
        """The packages of an address."""

        packages: vector[Code.PackageMetadata]

    class PublishPackage(Event):
        """A package was published or upgraded."""

        code_address: address
        is_upgrade: bool

    EPACKAGE_DEP_MISSING = not_found(5, "Dependency could not be resolved to any published package.")

    @entry
    def publish_package_txn(self, owner: signer, metadata_serialized: bytes, code: vector[bytes]) -> None:
        """Abort: the embedded ledger cannot read bytecode; `Ledger.publish` calls `publish_package` instead."""
        self.abort(permission_denied(7, "This ledger's contracts are Python classes: use Ledger.publish"))

    def publish_package(
        self,
        owner: signer,
        package: str,
        modules: Sequence[Definition],
        *,
        written: Sequence[Definition],
        deps: Sequence[tuple[str, str]],
    ) -> None:
        """Add a package to the registry of an address, or record an upgrade.

        Parameters
        ----------
        owner : str
            Canonical address.
        package : str
            Name of the package.
        modules : sequence of Definition
            All modules of the package.
        written : sequence of Definition
            Modules whose code the transaction writes.
        deps : sequence of (canonical address, package name)
            Packages that this package depends on.
        """
        for definition in written:
            self.charge("aptos_framework.code.request_publish.per_byte", len(definition.bytecode))
        self.charge("aptos_framework.code.request_publish.base")
        for account, needed in deps:
            if account == "0x1":  # the registry of public networks contains the framework's sources
                self.session.meter.charge_io("txn.storage_io_per_state_byte_read", _FRAMEWORK_SOURCE_BYTES)
            self.require(self._has_package(account, needed), self.EPACKAGE_DEP_MISSING)
        if not self.exists(Code.PackageRegistry, owner):
            self.move_to(owner, Code.PackageRegistry(packages=[]))
        with self.borrow_mut(Code.PackageRegistry, owner) as registry:
            before = [known for known in registry.packages if known.name == package]
            number = before[0].upgrade_number + 1 if before else 0
            others = [known for known in registry.packages if known.name != package]
            registry.packages = [*others, package_metadata(package, modules, number, deps)]
        self.emit(Code.PublishPackage(code_address=owner, is_upgrade=bool(before)))

    def _has_package(self, account: str, package: str) -> bool:
        if not self.exists(Code.PackageRegistry, account):
            return False
        return any(known.name == package for known in self.borrow(Code.PackageRegistry, account).packages)

    @entry
    def retract_module(self, aptos_framework: signer, owner: address, name: String) -> None:
        """Delete a module; this needs the framework's signer, which only governance has.

        Public networks do not have this function. It shows how calls fail after a module has been deleted.
        """
        self.require(aptos_framework == "0x1", GasSchedule.ENOT_FRAMEWORK)
        self.session.write(StateKey("module", owner, name), None)
        with self.borrow_mut(Code.PackageRegistry, owner) as registry:
            for package in registry.packages:
                package.modules = [module for module in package.modules if module.name != name]


def package_metadata(
    name: str, modules: Sequence[Definition], upgrade_number: int, deps: Sequence[tuple[str, str]]
) -> Code.PackageMetadata:
    """Return the metadata of a package, as stored in a registry."""
    described = [Code.ModuleMetadata(name=one.name, source=b"", source_map=b"", extension=None) for one in modules]
    digest = hashlib.sha3_256(b"".join(definition.bytecode for definition in modules)).hexdigest().upper()
    return Code.PackageMetadata(
        name=name,
        upgrade_policy=Code.UpgradePolicy(policy=1),
        upgrade_number=upgrade_number,
        source_digest=digest,
        manifest=hashlib.shake_256(name.encode()).digest(_MANIFEST_BYTES),
        modules=described,
        deps=[Code.PackageDep(account=account, package_name=package) for account, package in deps],
        extension=None,
    )
