"""`Ledger`: a small ledger in memory. Publish contracts, commit transactions, read any version back."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from toolkit.embedded.chain import Chain
from toolkit.embedded.execution import execute, run_view
from toolkit.embedded.framework.account import Account
from toolkit.embedded.framework.aptos_coin import CORE_RESOURCES
from toolkit.embedded.framework.configuration import COIN_TO_FUNGIBLE_ASSET, GasSchedule
from toolkit.embedded.groups import read_resource
from toolkit.embedded.milestones import Milestone
from toolkit.embedded.outcomes import VmError
from toolkit.embedded.payloads import run_executable
from toolkit.embedded.publishing import GovernanceScript, Package
from toolkit.embedded.schedule import Schedule, released_schedule
from toolkit.embedded.standins import stand_in_signature
from toolkit.embedded.state import resource_key, table_key
from toolkit.embedded.transaction import Transaction
from toolkit.errors import InputError
from toolkit.move import (
    FunctionId,
    ModuleId,
    StructTag,
    parse_address,
    parse_table_handle,
    parse_type_tag,
    wire_address,
)
from toolkit.move.bcs import decode_bcs, encode_bcs
from toolkit.wire.bcs_payloads import EncodedEntryFunction
from toolkit.wire.transactions import RawTransaction, SignedTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from toolkit.embedded.code import BoundFunction
    from toolkit.embedded.contract import Module
    from toolkit.embedded.definition import Definition
    from toolkit.embedded.milestones import MilestoneKind
    from toolkit.embedded.session import Session
    from toolkit.embedded.transaction import Block, CommittedTransaction, Output
    from toolkit.move import TypeTag
    from toolkit.wire.bcs_payloads import EncodedPayload
    from toolkit.wire.headers import LedgerState

__all__ = ["Ledger"]

OCTAS_PER_APT = 100_000_000

#: Accounts of a fresh ledger, with what they hold (octas): alice, bob, and the two that govern.
DEFAULT_ACCOUNTS: dict[str, int] = {
    "0x1": 10_000 * OCTAS_PER_APT,
    "0xa550c18": 1_000_000 * OCTAS_PER_APT,
    "0xa11ce": 10_000 * OCTAS_PER_APT,
    "0xb0b": 10_000 * OCTAS_PER_APT,
}
_GENESIS = datetime(2026, 1, 1, tzinfo=UTC)
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULT_MAX_GAS = 200_000
_PUBLISHING_MAX_GAS = 1_000_000  # what one APT buys at the default price: bytecode is long, and stored by the byte
_DEFAULT_PRICE = 100
_EXPIRES_AFTER_S = 600


class Ledger:
    """A ledger in memory: versioned state, blocks, contracts written in Python, gas by the on-chain schedule.

    Its gas is a documented model (`toolkit.embedded.meter`), not a Move VM.

    Parameters
    ----------
    chain_id : int, default 4
        u8; 4 is what test networks use.
    seed : int, default 0
        Enters every hash and address, so equal seeds and commits give equal ledgers.
    window : int, optional
        How many versions of history stay readable; all by default.
    release : str, default "v1.41.1"
        Release whose gas schedule holds at genesis.
    features : collection of int, optional
        Feature flags that are on at genesis: by default 60, by which the gas coin has a fungible asset as its pair.
    accounts : mapping of str to int, optional
        Accounts that exist from the start, with what they hold in octas.
    genesis_time : datetime, optional
        Start of ledger time; 2026-01-01 UTC by default.
    block_time : timedelta, default 1 s
        Ledger time from one block to the next.
    epoch_time : timedelta, default 2 h
        Length of an epoch.

    Examples
    --------
    >>> from toolkit import embedded
    >>> ledger = embedded.Ledger()
    >>> done = ledger.commit("0x1::aptos_account::transfer", "0xb0b", 100, sender="0xa11ce")
    >>> done.success
    True
    """

    def __init__(
        self,
        *,
        chain_id: int = 4,
        seed: int = 0,
        window: int | None = None,
        release: str = "v1.41.1",
        features: Collection[int] = (COIN_TO_FUNGIBLE_ASSET,),
        accounts: Mapping[str, int] | None = None,
        genesis_time: datetime = _GENESIS,
        block_time: timedelta = timedelta(seconds=1),
        epoch_time: timedelta = timedelta(hours=2),
    ) -> None:
        if window is not None and window < 1:
            raise InputError(f"window: at least 1 version must stay readable, got {window}")
        held = DEFAULT_ACCOUNTS if accounts is None else {"0x1": DEFAULT_ACCOUNTS["0x1"], **accounts}
        self._next_time_us = (genesis_time - _UNIX_EPOCH) // timedelta(microseconds=1)
        self._block_us = block_time // timedelta(microseconds=1)
        self._open = False
        self._milestones: list[Milestone] = []
        self.chain = Chain(
            chain_id=chain_id,
            seed=seed,
            schedule=released_schedule(release),
            features=features,
            genesis_time_us=self._next_time_us,
            epoch_us=epoch_time // timedelta(microseconds=1),
            accounts=[(parse_address(address), octas) for address, octas in held.items()],
            window=window,
        )

    @classmethod
    def with_history(cls, seed: int = 7, versions: int = 5_000, *, window: int | None = None) -> Ledger:
        """Return a ledger with a history worth studying; `milestones` tells the truth about it.

        Names are registered at ``0xcafe::registry``, orders come and go at ``0xb00c::order_book``, the vault at
        ``0xfa17::vault`` is upgraded to cheaper code and so is the feed that ``0xde5c::desk`` calls, and governance
        changes the gas schedule (once tenfold), a feature flag, and the framework together with the schedule.

        Parameters
        ----------
        seed : int, default 7
            Equal seeds give equal ledgers on every platform.
        versions : int, default 5_000
            Versions 0 to ``versions - 1``; at least 200.
        window : int, optional
            How many versions stay readable; all by default.

        Raises
        ------
        InputError
            If `versions` is too small to hold the history.
        """
        from toolkit.embedded.history import seeded_ledger

        return seeded_ledger(cls, seed=seed, versions=versions, window=window)

    def __repr__(self) -> str:
        return f"<Ledger chain_id={self.chain.chain_id} versions {self.oldest_version}..{self.head}>"

    # -- what is there -------------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """The latest ledger version."""
        return self.chain.head

    @property
    def oldest_version(self) -> int:
        """The oldest ledger version that is still readable."""
        return self.chain.oldest_version

    @property
    def milestones(self) -> tuple[Milestone, ...]:
        """What changed the cost or meaning of calls, oldest first.

        In a seeded history these are all the steps in the gas of a steady view, but for ``0xb00c::order_book``, whose
        gas moves with orders as well: at the versions of its ``place``, each a change of ``state``.
        """
        return tuple(self._milestones)

    @property
    def state(self) -> LedgerState:
        """The state of the head, as a node's headers show it."""
        return self.chain.ledger_state()

    def transaction(self, version: int) -> CommittedTransaction:
        """Return the transaction of a readable version."""
        return self.chain.transaction(self._readable(version))

    def block_of(self, version: int) -> Block:
        """Return the block a readable version belongs to."""
        return self.chain.block_of(self._readable(version))

    def version_at(self, time: datetime) -> int:
        """Return the first readable version at or after a time.

        Raises
        ------
        InputError
            If the ledger ends before that time.
        """
        wanted = (time - _UNIX_EPOCH) // timedelta(microseconds=1)
        blocks = self.chain.blocks
        index = bisect_left(blocks, wanted, key=lambda block: block.timestamp_us)
        if index == len(blocks):
            raise InputError(f"the ledger's time ends at {self.state.timestamp:%Y-%m-%d %H:%M}, before {time}")
        return blocks[index].first_version

    def resource(self, address: str, tag: str, version: int | None = None) -> dict[str, Any] | None:
        """Return a resource as Python values, or None where there is none.

        Parameters
        ----------
        address : str
            Address it is stored under.
        tag : str
            Its type.
        version : int, optional
            Ledger version to read; the head by default.
        """
        at = self._readable(version)
        kind = parse_type_tag(tag)
        if not isinstance(kind, StructTag):
            raise InputError(f"a resource has a struct type, got {tag!r}")
        code = self.chain.code_at(at)
        data = read_resource(self.chain.state, code, parse_address(address), kind, at)
        if data is None:
            return None
        decoded: dict[str, Any] = decode_bcs(code.layout(str(kind)), data)
        return decoded

    def table_item(self, handle: str, key: Any, *, key_type: str, value_type: str, version: int | None = None) -> Any:
        """Return a table item as a Python value, or None where there is none."""
        at = self._readable(version)
        code = self.chain.code_at(at)
        encoded = encode_bcs(code.layout(key_type), key)
        value = self.chain.state.read(table_key(parse_table_handle(handle), encoded), at)
        return None if value is None else decode_bcs(code.layout(value_type), value.data)

    def view(
        self,
        function: str,
        arguments: Sequence[Any] = (),
        type_arguments: Sequence[str] = (),
        version: int | None = None,
    ) -> tuple[list[Any], int]:
        """Run a view function.

        Parameters
        ----------
        function : str
            ``0xcafe::registry::size``.
        arguments, type_arguments : sequence
            Python values and types.
        version : int, optional
            Ledger version to read; the head by default.

        Returns
        -------
        tuple
            Python values returned, and gas units used (a model's).

        Raises
        ------
        InputError
            If there is no such view, its arguments do not fit, or it aborts.
        """
        at = self._readable(version)
        try:
            bound, tags = self._bound(function, type_arguments, at)
            if not bound.function.mark.is_view:
                raise InputError(f"{function} is no view function")
            plain = [decode_bcs(layout, data) for layout, data in _encoded(bound, function, arguments)]
            return run_view(self.chain.snapshot(at), bound, plain, tags)
        except VmError as error:
            raise InputError(f"view {function} at version {at}: {error.vm_status}") from None

    # -- what happens --------------------------------------------------------------------------------------

    @contextmanager
    def block(self, *, time: datetime | None = None, epilogue: bool = True) -> Iterator[None]:
        """Commit everything inside as one block.

        Parameters
        ----------
        time : datetime, optional
            Ledger time of the block; one block time after the last by default.
        epilogue : bool, default True
            End it with a block epilogue; False for a state checkpoint, as blocks ended in former years.
        """
        if self._open:
            raise InputError("a block is open already: blocks do not nest")
        if time is not None:
            self.wait_until(time)
        self.chain.begin_block(self._next_time_us)
        self._open = True
        try:
            yield
        finally:
            self._open = False
            self.chain.end_block("block_epilogue_transaction" if epilogue else "state_checkpoint_transaction")
            self._next_time_us += self._block_us

    def wait_until(self, time: datetime) -> None:
        """Let ledger time pass: the next block is at `time`."""
        wanted = (time - _UNIX_EPOCH) // timedelta(microseconds=1)
        if wanted < self._next_time_us:
            raise InputError(f"ledger time does not run backwards: it is past {time}")
        self._next_time_us = wanted

    def commit(
        self,
        function: str,
        *arguments: Any,
        sender: str,
        type_arguments: Sequence[str] = (),
        secondary_signers: Sequence[str] = (),
        fee_payer: str | None = None,
        max_gas_amount: int = _DEFAULT_MAX_GAS,
        gas_unit_price: int = _DEFAULT_PRICE,
    ) -> CommittedTransaction:
        """Run an entry function as a transaction, and commit what came of it, success or not.

        Parameters
        ----------
        function : str
            ``0xcafe::registry::register``.
        *arguments : Any
            Python values, signers left out.
        sender : str
            Address that signs.
        type_arguments : sequence of str, optional
            Types.
        secondary_signers : sequence of str, optional
            Further addresses that sign.
        fee_payer : str, optional
            Address that pays in the sender's place.
        max_gas_amount : int, default 200_000
            Gas units.
        gas_unit_price : int, default 100
            Octas per gas unit.

        Returns
        -------
        CommittedTransaction
            With its version, success, vm_status and gas_used.

        Raises
        ------
        InputError
            If the arguments do not fit, or a check before execution fails (such as a balance too low for the
            fee): nothing is committed then.
        """
        bound, tags = self._bound(function, type_arguments, self.head)
        call = EncodedEntryFunction(
            FunctionId.parse(function), tags, tuple(data for _, data in _encoded(bound, function, arguments))
        )
        transaction = self.prepare(
            call,
            sender=sender,
            secondary_signers=secondary_signers,
            fee_payer=fee_payer,
            max_gas_amount=max_gas_amount,
            gas_unit_price=gas_unit_price,
        )
        return self.commit_transaction(transaction)

    def commit_transaction(self, transaction: Transaction) -> CommittedTransaction:
        """Run a whole transaction and commit what came of it; see `commit`."""
        return self._commit(transaction, run_executable)

    def fund(self, address: str, octas: int = 1_000 * OCTAS_PER_APT) -> CommittedTransaction:
        """Mint the gas coin to an address, making its account on the way."""
        return self.commit("0x1::aptos_coin::mint", parse_address(address), octas, sender=CORE_RESOURCES)

    def set_gas_schedule(self, schedule: Schedule | str) -> CommittedTransaction:
        """Replace the gas schedule by a governance transaction.

        Parameters
        ----------
        schedule : Schedule or str
            A schedule, or the release that published one (``"v1.41.1"``).
        """
        blob = self._schedule_blob(schedule)
        return self.commit("0x1::gas_schedule::set_gas_schedule", blob, sender="0x1", max_gas_amount=2_000_000)

    def set_features(self, *, enable: Sequence[int] = (), disable: Sequence[int] = ()) -> CommittedTransaction:
        """Switch features of the framework on or off by a governance transaction.

        Parameters
        ----------
        enable, disable : sequence of int
            Numbers of features, 0 to 1023. Feature 60 is the one that changes what runs here: the gas coin's pair.
        """
        return self.commit("0x1::features::change_feature_flags", list(enable), list(disable), sender="0x1")

    def govern(
        self,
        *upgrades: type[Module],
        schedule: Schedule | str | None = None,
        enable: Sequence[int] = (),
        disable: Sequence[int] = (),
    ) -> CommittedTransaction:
        """Do several things of governance in one transaction, as the script of a release's proposal does.

        Parameters
        ----------
        *upgrades : type of Module
            Next versions of framework modules, all at 0x1.
        schedule : Schedule or str, optional
            Gas schedule to set, or the release that published one.
        enable, disable : sequence of int
            Features to switch, as `set_features` does.

        Returns
        -------
        CommittedTransaction
            Of a script; its bytecode stands for what it does.

        Raises
        ------
        InputError
            If an upgrade would break what relies on the code before, or the script fails.
        """
        package = self._package(upgrades, None) if upgrades else None
        if package is not None and package.owner != "0x1":
            at = wire_address(package.owner)
            raise InputError(f"governance upgrades modules at 0x1, got one at {at}: use publish for that")
        blob = None if schedule is None else self._schedule_blob(schedule)
        script = GovernanceScript(package, blob, tuple(enable), tuple(disable))
        transaction = self.prepare(script.call(), sender="0x1", max_gas_amount=2_000_000)
        committed = self._commit(transaction, script.run, definitions=package.definitions if package else ())
        if not committed.success:
            raise InputError(f"the governance script failed at version {committed.version}: {committed.vm_status}")
        return committed

    def publish(self, *contracts: type[Module], package: str | None = None) -> CommittedTransaction:
        """Publish contracts of one address as a package, or upgrade it.

        An address that has no coins to pay with is funded first, in a transaction of its own.

        Parameters
        ----------
        *contracts : type of Module
            Contract classes, all at one address.
        package : str, optional
            Name of the package; by default that of the package with the first contract's module, if there is
            one, else that module's name. An upgrade leaves the package's other modules as they are.

        Raises
        ------
        InputError
            If the contracts are not at one address, call a module that is not published, an upgrade would break
            what relies on the code before, or publishing fails.
        """
        ready = self._package(contracts, package)
        if self.view("0x1::coin::balance", [ready.owner], ["0x1::aptos_coin::AptosCoin"])[0][0] < OCTAS_PER_APT:
            self.fund(ready.owner)
        transaction = self.prepare(ready.call(), sender=ready.owner, max_gas_amount=_PUBLISHING_MAX_GAS)
        committed = self._commit(transaction, ready.run, definitions=ready.definitions)
        if not committed.success:
            raise InputError(f"publishing {ready.name} failed at version {committed.version}: {committed.vm_status}")
        return committed

    def retract(self, module: str) -> CommittedTransaction:
        """Delete a module by a governance transaction; public networks cannot do that.

        Parameters
        ----------
        module : str
            ``0xcafe::trial``.
        """
        wanted = ModuleId.parse(module)
        return self.commit("0x1::code::retract_module", wanted.address, wanted.name, sender="0x1")

    def prepare(
        self,
        payload: EncodedPayload,
        *,
        sender: str,
        secondary_signers: Sequence[str] = (),
        fee_payer: str | None = None,
        max_gas_amount: int = _DEFAULT_MAX_GAS,
        gas_unit_price: int = _DEFAULT_PRICE,
    ) -> Transaction:
        """Fill in what a transaction of `sender` needs besides its payload: sequence number, expiration, signature."""
        address = parse_address(sender)
        kind = self.chain.code_at(self.head).struct(Account.Account, ())
        value = self.chain.state.read(resource_key(address, kind.tag), self.head)
        sequence_number = 0 if value is None else int(decode_bcs(kind.layout, value.data)["sequence_number"])
        raw = RawTransaction(
            sender=address,
            sequence_number=sequence_number,
            payload=payload,
            max_gas_amount=max_gas_amount,
            gas_unit_price=gas_unit_price,
            expiration_timestamp_secs=self._next_time_us // 1_000_000 + _EXPIRES_AFTER_S,
            chain_id=self.chain.chain_id,
        )
        signature = stand_in_signature(
            self.chain,
            address,
            sequence_number,
            others=[parse_address(signer) for signer in secondary_signers],
            fee_payer=None if fee_payer is None else parse_address(fee_payer),
        )
        return Transaction(SignedTransaction(raw, signature))

    def simulate(self, transaction: Transaction, *, check_keys: bool = False) -> Output:
        """Execute a transaction at the head without committing it.

        Parameters
        ----------
        transaction : Transaction
        check_keys : bool, default False
            Whether public keys must be those of the accounts, as a node checks; what `prepare` makes has stand-ins.
        """
        return execute(self.chain.snapshot(self.head), transaction, check_keys=check_keys)

    def mark(self, version: int, kind: MilestoneKind, text: str) -> None:
        """Remember that the transaction of a version changed what calls cost or do; see `milestones`."""
        self._milestones.append(Milestone(version, kind, text))

    def digest(self) -> str:
        """Return a digest of everything readable: transactions, writes, events."""
        hashed = hashlib.sha3_256()
        for version in range(self.oldest_version, self.head + 1):
            transaction = self.chain.transaction(version)
            output = transaction.output
            hashed.update(f"{transaction.hash}{output.vm_status}{tuple(output.charges)}".encode())
            for key, value in output.writes.items():
                hashed.update(repr((tuple(key), value)).encode())
            for event in output.events:
                hashed.update(event.type.encode() + event.data)
        return hashed.hexdigest()

    # -- inside --------------------------------------------------------------------------------------------

    def _readable(self, version: int | None) -> int:
        if version is None:
            return self.head
        if not self.oldest_version <= version <= self.head:
            raise InputError(
                f"version {version} is not readable: this ledger keeps {self.oldest_version} to {self.head}"
            )
        return version

    def _schedule_blob(self, schedule: Schedule | str) -> bytes:
        chosen = released_schedule(schedule) if isinstance(schedule, str) else schedule
        code = self.chain.code_at(self.head)
        return encode_bcs(code.struct(GasSchedule.GasScheduleV2, ()).layout, chosen.to_resource())

    def _package(self, contracts: Sequence[type[Module]], name: str | None) -> Package:
        def packages(address: str) -> list[dict[str, Any]]:
            registry = self.resource(address, "0x1::code::PackageRegistry")
            return [] if registry is None else list(registry["packages"])

        return Package.of(contracts, name, self.chain.code_at(self.head), packages)

    def _bound(
        self, function: str, type_arguments: Sequence[str], version: int
    ) -> tuple[BoundFunction, tuple[TypeTag, ...]]:
        wanted = FunctionId.parse(function)
        tags = tuple(parse_type_tag(text) for text in type_arguments)
        try:
            return self.chain.code_at(version).function(wanted.address, wanted.module, wanted.name, tags), tags
        except VmError as error:
            raise InputError(f"{function} at version {version}: {error.message}") from None

    def _commit(
        self,
        transaction: Transaction,
        body: Callable[[Session, Transaction], None],
        *,
        definitions: tuple[Definition, ...] = (),
    ) -> CommittedTransaction:
        if not self._open:
            with self.block():
                return self._commit(transaction, body, definitions=definitions)
        output = execute(self.chain.snapshot(self.head), transaction, body)
        if output.discarded:
            sender = wire_address(transaction.raw.sender)
            raise InputError(f"the transaction of {sender} was refused before it ran: {output.vm_status}")
        published = definitions if output.success else ()
        return self.chain.append("user_transaction", output, request=transaction, published=published)


def _encoded(bound: BoundFunction, function: str, arguments: Sequence[Any]) -> list[tuple[Any, bytes]]:
    """Pair each argument's layout with its BCS bytes."""
    if len(arguments) != len(bound.parameters):
        kinds = ", ".join(kind.text for kind in bound.parameter_kinds)
        raise InputError(f"{function} takes {len(bound.parameters)} arguments ({kinds}), got {len(arguments)}")
    return [(layout, encode_bcs(layout, value)) for layout, value in zip(bound.parameters, arguments, strict=True)]
