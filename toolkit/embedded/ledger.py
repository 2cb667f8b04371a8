"""`Ledger`: a small ledger in memory. Publish contracts, commit transactions, read any version back."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from toolkit.embedded.chain import Chain
from toolkit.embedded.execution import execute, run_executable
from toolkit.embedded.framework import DEFAULT_ACCOUNTS
from toolkit.embedded.framework.account import Account
from toolkit.embedded.framework.coin import CORE_RESOURCES, OCTAS_PER_APT
from toolkit.embedded.framework.configuration import COIN_TO_FUNGIBLE_ASSET, GasSchedule
from toolkit.embedded.history import seeded_ledger
from toolkit.embedded.meter import Schedule, released_schedule
from toolkit.embedded.publishing import ContractPackage, GovernanceScript
from toolkit.embedded.reader import UNIX_EPOCH, LedgerReader, Milestone, encode_arguments
from toolkit.embedded.state import resource_key
from toolkit.embedded.transaction import Transaction, stand_in_signature
from toolkit.errors import InputError
from toolkit.move import (
    FunctionId,
    ModuleId,
    decode_bcs,
    encode_bcs,
    parse_address,
    wire_address,
)
from toolkit.wire import EncodedEntryFunction, RawTransaction, SignedTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from toolkit.embedded.contract import Definition, Module
    from toolkit.embedded.reader import MilestoneKind
    from toolkit.embedded.session import Session
    from toolkit.embedded.transaction import CommittedTransaction, Output
    from toolkit.wire import EncodedPayload

__all__ = ["Ledger"]

_GENESIS = datetime(2026, 1, 1, tzinfo=UTC)
_DEFAULT_MAX_GAS = 200_000
_PUBLISHING_MAX_GAS = 1_000_000  # what one APT buys at the default price: bytecode is long, and stored by the byte
_DEFAULT_PRICE = 100
_EXPIRES_AFTER_S = 600


class Ledger(LedgerReader):
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
        self._next_time_us = (genesis_time - UNIX_EPOCH) // timedelta(microseconds=1)
        self._block_us = block_time // timedelta(microseconds=1)
        self._open = False
        chain = Chain(
            chain_id=chain_id,
            seed=seed,
            schedule=released_schedule(release),
            features=features,
            genesis_time_us=self._next_time_us,
            epoch_us=epoch_time // timedelta(microseconds=1),
            accounts=[(parse_address(address), octas) for address, octas in held.items()],
            window=window,
        )
        super().__init__(chain)

    @classmethod
    def with_history(cls, seed: int = 7, versions: int = 5_000, *, window: int | None = None) -> Ledger:
        """Return a ledger with a history worth studying; `milestones` tells the truth about it.

        Names are registered at ``0xcafe::registry``, orders come to ``0xb00c::order_book``, the vault at
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
        return seeded_ledger(cls, seed=seed, versions=versions, window=window)

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
        wanted = (time - UNIX_EPOCH) // timedelta(microseconds=1)
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
            FunctionId.parse(function), tags, tuple(data for _, data in encode_arguments(bound, function, arguments))
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

    # -- inside --------------------------------------------------------------------------------------------

    def _schedule_blob(self, schedule: Schedule | str) -> bytes:
        chosen = released_schedule(schedule) if isinstance(schedule, str) else schedule
        code = self.chain.code_at(self.head)
        return encode_bcs(code.struct(GasSchedule.GasScheduleV2, ()).layout, chosen.to_resource())

    def _package(self, contracts: Sequence[type[Module]], name: str | None) -> ContractPackage:
        def packages(address: str) -> list[dict[str, Any]]:
            registry = self.resource(address, "0x1::code::PackageRegistry")
            return [] if registry is None else list(registry["packages"])

        return ContractPackage.of(contracts, name, self.chain.code_at(self.head), packages)

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
