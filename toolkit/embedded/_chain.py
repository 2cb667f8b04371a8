"""The chain behind a ledger: versions, blocks, epochs, time and the pruning window.

`toolkit.embedded.Ledger` is the public class; `Chain` stores what a ledger commits.
"""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec

from toolkit.embedded._code import CodeSet
from toolkit.embedded._execution import run_unmetered
from toolkit.embedded._meter import FREE, Schedule
from toolkit.embedded._session import LedgerSnapshot, Session, TableTypes
from toolkit.embedded._state import StateKey, StateValue, VersionedState, resource_key
from toolkit.embedded._transaction import CommittedTransaction, LedgerBlock, Output, Transaction, TransactionKind
from toolkit.embedded._vm_status import EXECUTED
from toolkit.embedded.framework import ACCOUNT_NAMES, FRAMEWORK, genesis
from toolkit.embedded.framework._configuration import Block as BlockModule
from toolkit.embedded.framework._configuration import GasSchedule, Reconfiguration
from toolkit.move import decode_bcs
from toolkit.move._ids import address_from_bytes
from toolkit.wire import LedgerState
from toolkit.wire._headers import timestamp_from_us
from toolkit.wire._on_chain import SUCCESS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from toolkit.embedded._definitions import Definition

_NOTHING = Output(status=SUCCESS, vm_status=EXECUTED, charges=FREE, writes={}, events=())


MAX_CHAIN_ID = 255  # of a u8
Nonnegative = Annotated[int, msgspec.Meta(ge=0)]


class Settings(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The settings of a chain, which are also the first fields of a saved ledger.

    Parameters
    ----------
    chain_id : int
        A u8.
    seed : bytes
        16 bytes that are part of the input of every hash.
    genesis_time_us, epoch_us : int
        Time of genesis and length of an epoch, in microseconds.
    window : int, optional
        Number of most recent versions to keep; by default, all versions are kept.
    decoded_tables : bool
        Whether changes to table items contain decoded keys and values.
    enum_variants : bool
        Whether ABIs list the variants of enums.
    """

    chain_id: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHAIN_ID)]
    seed: Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
    genesis_time_us: Nonnegative
    epoch_us: Annotated[int, msgspec.Meta(ge=1)]
    window: Annotated[int, msgspec.Meta(ge=1)] | None
    decoded_tables: bool
    enum_variants: bool


class MilestoneKind(StrEnum):
    """The kind of change that a milestone made."""

    SCHEDULE = "schedule"
    CODE = "code"
    CONFIG = "config"
    STATE = "state"
    MIXED = "mixed"
    """Several of these changes in one transaction."""


@dataclass(frozen=True, slots=True)
class Milestone:
    """A transaction that changed the cost or the result of calls.

    Parameters
    ----------
    version : int
        Ledger version of the transaction.
    kind : MilestoneKind
        What changed. Each kind equals its text, such as ``"code"``.
    text : str
        A one-sentence description.

    Examples
    --------
    >>> from toolkit.embedded import Milestone
    >>> Milestone(3, "code", "0xcafe::registry published").kind == "code"
    True
    """

    version: int
    kind: MilestoneKind
    text: str


class Chain:
    """Versions, blocks and state; empty until `begin_at_genesis` is called or a saved ledger is loaded."""

    def __init__(self, settings: Settings, next_time_us: int, block_us: int) -> None:
        self.settings = settings
        # Time of the next block, and between blocks, microseconds.
        self.next_time_us = next_time_us
        self.block_us = block_us
        self.milestones: list[Milestone] = []
        self.chain_id = settings.chain_id
        self.state = VersionedState()
        self.transactions: list[CommittedTransaction] = []
        self.blocks: list[LedgerBlock] = []
        # Held while the chain grows, and by a node while it answers a request.
        self.lock = threading.RLock()
        self.by_hash: dict[str, int] = {}
        # Types of the tables written so far, by handle; a node without a table indexer does not know them.
        self.tables: dict[str, TableTypes] = {}
        # Transactions as JSON, by version, once a node was asked for them: they never change, and are often read again.
        self.rendered: dict[int, msgspec.Raw] = {}
        self.oldest_version = 0
        # The published modules, and the version from which each set is published.
        self.codes: list[CodeSet] = []
        self.code_versions: list[int] = []
        self._schedules: dict[int, Schedule] = {}

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """The latest ledger version."""
        return self.oldest_version + len(self.transactions) - 1

    def ledger_state(self) -> LedgerState:
        """Return the ledger state that response headers report for the head."""
        block, oldest = self.blocks[-1], self.blocks[0]
        time = timestamp_from_us(block.timestamp_us)
        if time is None:
            raise OverflowError("ledger time is after the year 9999")
        versions = self.head, self.oldest_version
        return LedgerState(self.chain_id, *versions, time, block.epoch, block.height, oldest.height)

    def transaction(self, version: int) -> CommittedTransaction:
        """Return the transaction at a version that has not been pruned."""
        return self.transactions[version - self.oldest_version]

    def block_of(self, version: int) -> LedgerBlock:
        """Return the block that contains a version that has not been pruned."""
        return self.blocks[bisect_right(self.blocks, version, key=lambda block: block.first_version) - 1]

    def account_names(self) -> dict[str, str]:
        """Return the names of accounts at the head by canonical address: those of a new ledger, and modules."""
        names = dict(ACCOUNT_NAMES)
        for address, module in self.code_at(self.head).modules:
            if address != "0x1":
                names[address] = f"{names[address]}, {module}" if address in names else module
        return {
            address: name
            for address, name in names.items()
            if self.state.read(resource_key(address, "0x1::account::Account"), self.head) is not None
        }

    def code_at(self, version: int) -> CodeSet:
        """Return the modules published at a version."""
        return self.codes[bisect_right(self.code_versions, version) - 1]

    def schedule_at(self, version: int) -> Schedule:
        """Return the on-chain gas schedule at a version."""
        kind = self.codes[0].struct(GasSchedule.GasScheduleV2, ())
        stamp, value = self.state.read_stamped(resource_key("0x1", kind.tag), version)
        schedule = self._schedules.get(stamp)
        if schedule is None:
            data = b"" if value is None else value.data
            schedule = self._schedules[stamp] = Schedule.from_resource(decode_bcs(kind.layout, data))
        return schedule

    def snapshot(self, version: int) -> LedgerSnapshot:
        """Return the snapshot of the ledger that an execution at a version reads."""
        code, schedule = self.code_at(version), self.schedule_at(version)
        time_us = self.transaction(version).timestamp_us
        return LedgerSnapshot(self.state, version, code, schedule, time_us, self.chain_id)

    def digest(self, *parts: bytes | str | int) -> bytes:
        """Return 32 bytes that depend on the seed and `parts`."""
        encoded = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
        data = b"".join(len(one).to_bytes(4, "little") + one for one in encoded)
        return hashlib.sha3_256(self.settings.seed + data).digest()

    def copy(self, version: int) -> Chain:
        """Return the chain up to a version that has not been pruned; the copy grows on its own."""
        with self.lock:
            block = self.block_of(version)
            next_us = self.next_time_us if version == self.head else block.timestamp_us + self.block_us
            chain = Chain(self.settings, next_us, self.block_us)
            chain.oldest_version = self.oldest_version
            chain.milestones += [one for one in self.milestones if one.version <= version]
            chain.blocks += [one for one in self.blocks if one.first_version < block.first_version]
            chain.blocks.append(msgspec.structs.replace(block, last_version=min(version, block.last_version)))
            chain.tables |= self.tables
            for first, code in zip(self.code_versions, self.codes, strict=True):
                if first <= version:
                    chain.add_code(first, code)
            for written, key, value in self.state.written_before(self.oldest_version):
                chain.state.write(written, {key: value})
            for committed in self.transactions[: version - self.oldest_version + 1]:
                chain.add(committed)
        return chain

    # -- growing -------------------------------------------------------------------------------------------

    def append(
        self,
        kind: TransactionKind,
        output: Output,
        *,
        label: str = "",
        request: Transaction | None = None,
        published: tuple[Definition, ...] = (),
    ) -> CommittedTransaction:
        """Commit an output as the next version; without a request, the transaction's hash depends on `label`."""
        with self.lock:
            version, code = self.head + 1, self.codes[-1]
            if published:
                code = code.with_modules(published)
            for key, value in output.writes.items():
                if key.kind == "module" and value is None:
                    code = code.without_module(key.owner, str(key.name))
            if code is not self.codes[-1]:
                self.add_code(version, code)
            block = self.blocks[-1]
            if version != block.last_version:
                self.blocks[-1] = msgspec.structs.replace(block, last_version=version)
            hash_ = f"0x{self.digest(label, version).hex()}" if request is None else request.hash
            committed = CommittedTransaction(version, kind, hash_, output, block.timestamp_us, request, code)
            if self.settings.decoded_tables:
                self.tables.update(output.tables)
            self.add(committed)
        return committed

    def add(self, committed: CommittedTransaction) -> None:
        """Add a transaction and its writes; its block and its modules must already have been added."""
        self.state.write(committed.version, committed.output.writes)
        self.by_hash[committed.hash] = committed.version
        self.transactions.append(committed)

    def add_code(self, version: int, code: CodeSet) -> None:
        """Replace the published modules, starting at a version."""
        self.codes.append(code)
        self.code_versions.append(version)

    def begin_block(self, timestamp_us: int) -> None:
        """Open a block with the given time and commit its metadata transaction."""
        before = self.blocks[-1]
        version, height = self.head + 1, before.height + 1
        epoch = 1 + (timestamp_us - self.settings.genesis_time_us) // self.settings.epoch_us
        digest = self.digest("block", height)
        started = BlockModule.NewBlock(
            hash=address_from_bytes(digest),
            epoch=epoch,
            round=height,
            height=height,
            previous_block_votes_bitvec=b"\x80",
            proposer=address_from_bytes(self.digest("proposer", height % 4)),
            failed_proposer_indices=[],
            time_microseconds=timestamp_us,
        )
        snapshot = self.snapshot(self.head)

        def prologue(session: Session) -> None:
            session.module(BlockModule).block_prologue(started)
            if epoch != before.epoch:
                session.module(Reconfiguration).begin(epoch, timestamp_us)

        output = run_unmetered(snapshot, prologue, seed=digest)
        with self.lock:
            self.blocks.append(LedgerBlock(height, f"0x{digest.hex()}", timestamp_us, epoch, version, version))
            self.append(TransactionKind.BLOCK_METADATA, output, label="metadata")

    def end_block(self, kind: TransactionKind) -> None:
        """Close the block with a checkpoint or epilogue transaction, then prune blocks outside the window."""
        with self.lock:
            self.append(kind, _NOTHING, label="checkpoint")
            self.prune()

    def prune(self) -> None:
        """Drop the blocks outside the window, but never the latest block."""
        window = self.settings.window
        if window is None:
            return
        first = self.head - window + 1
        outside = bisect_left(self.blocks, first, hi=len(self.blocks) - 1, key=lambda block: block.first_version)
        oldest = self.blocks[outside].first_version
        for dropped in self.transactions[: oldest - self.oldest_version]:
            self.by_hash.pop(dropped.hash, None)
            self.rendered.pop(dropped.version, None)
        del self.blocks[:outside], self.transactions[: oldest - self.oldest_version]
        self.oldest_version = oldest
        self.state.prune(oldest)

    # -- the first versions --------------------------------------------------------------------------------

    def begin_at_genesis(
        self, schedule: Schedule, features: Collection[int], accounts: Sequence[tuple[str, int]]
    ) -> None:
        """Commit version 0, with the framework's code and its first resources.

        Parameters
        ----------
        schedule : Schedule
            The initial gas schedule.
        features : collection of int
            Numbers of the features that are on.
        accounts : sequence of (address, octas)
            Accounts to create, with their balances.
        """
        definitions = tuple(module.definition for module in FRAMEWORK)
        code = CodeSet({}, enum_variants=self.settings.enum_variants).with_modules(definitions)
        self.add_code(0, code)
        snapshot = LedgerSnapshot(self.state, -1, code, schedule, 0, self.chain_id)
        body = partial(genesis, settings=self.settings, schedule=schedule, features=features, accounts=accounts)
        output = run_unmetered(snapshot, body, seed=self.digest("genesis"))
        modules = {StateKey("module", one.address, one.name): StateValue(one.bytecode, 0, 0) for one in definitions}
        self.blocks.append(LedgerBlock(0, f"0x{self.digest('block', 0).hex()}", 0, 0, 0, 0))
        output = output._replace(writes={**modules, **output.writes})
        self.append(TransactionKind.GENESIS, output, label="genesis")
