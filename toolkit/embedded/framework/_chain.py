"""``0x1::timestamp``, ``chain_id``, ``reconfiguration`` and ``block``: time, chain id, epochs and blocks."""

from __future__ import annotations

from toolkit.embedded import Event, Module, Resource, Struct, address, public, u8, u64, vector, view
from toolkit.embedded.framework._values import EventModule, event_handle

__all__ = ["Block", "ChainId", "Reconfiguration", "Stake", "Timestamp"]

MICROSECONDS = 1_000_000


class Timestamp(Module, address="0x1"):
    """Ledger time."""

    class CurrentTimeMicroseconds(Resource):
        """Time of the current block, microseconds since 1970."""

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
    """Validators; an embedded ledger has none."""

    VALIDATOR_STATUS_INACTIVE = 4

    @view
    def get_validator_state(self, pool_address: address) -> u64:
        """Return the state of a pool's validator: 4, inactive."""
        del pool_address
        return self.VALIDATOR_STATUS_INACTIVE


class Reconfiguration(Module, address="0x1"):
    """Epochs."""

    class NewEpoch(Event):
        """An epoch began."""

        epoch: u64

    class NewEpochEvent(Struct, abilities="drop store"):
        """An epoch began (event with a handle)."""

        epoch: u64

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
    """Blocks."""

    class NewBlock(Event):
        """A block began."""

        hash: address
        epoch: u64
        round: u64
        height: u64
        previous_block_votes_bitvec: bytes
        proposer: address
        failed_proposer_indices: vector[u64]
        time_microseconds: u64

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

    class UpdateEpochIntervalEvent(Struct, abilities="drop store"):
        """The length of epochs changed."""

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
        """Return the length of an epoch, seconds."""
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
        """Start a block: set height and time."""
        with self.borrow_mut(Block.BlockResource, "0x1") as block:
            block.height = started.height
            block.new_block_events.counter += 1
        self.use(Timestamp).set_time(started.time_microseconds)
        self.emit(started)
