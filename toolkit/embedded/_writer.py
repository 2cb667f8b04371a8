"""Writing a ledger: blocks, transactions, contracts, governance; simulations and profiles."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.embedded._chain import MAX_CHAIN_ID, Chain, Milestone, Settings
from toolkit.embedded._contract import StandInScript, find_script
from toolkit.embedded._execution import MAX_VIEW_GAS, NO_PAYER, execute, run_executable, run_view
from toolkit.embedded._meter import Schedule, released_schedule
from toolkit.embedded._profile import ProfilingMeter, profile_of
from toolkit.embedded._publishing import ContractPackage, GovernanceScript
from toolkit.embedded._reader import (
    UNIX_EPOCH,
    LedgerReader,
    check_number,
    encode_arguments,
)
from toolkit.embedded._time_limit import DEFAULT_TIMEOUT_S
from toolkit.embedded._transaction import Transaction, TransactionKind, not_a_call, placeholder_signature
from toolkit.embedded._vm_status import EXECUTED, VmError, failure_sentence
from toolkit.embedded.framework import DEFAULT_ACCOUNTS
from toolkit.embedded.framework._coin import CORE_RESOURCES, OCTAS_PER_APT
from toolkit.embedded.framework._configuration import CURRENT_FEATURES, GasSchedule
from toolkit.errors import Aborted, InputError
from toolkit.move import FunctionId, encode_bcs, parse_address, parse_type_tag
from toolkit.move._ids import ModuleId, wire_address
from toolkit.wire import (
    EntryFunction,
    Multisig,
    RawTransaction,
    Script,
    SignedTransaction,
    SimulationRequest,
    ViewFunction,
)
from toolkit.wire._bcs_requests import EncodedEntryFunction, EncodedPayloadV2, encoded_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from toolkit.embedded._chain import MilestoneKind
    from toolkit.embedded._contract import Module
    from toolkit.embedded._definitions import Definition
    from toolkit.embedded._profile import GasProfile
    from toolkit.embedded._session import Session
    from toolkit.embedded._transaction import CommittedTransaction, Output
    from toolkit.move import Layout
    from toolkit.wire import LedgerState
    from toolkit.wire._bcs_requests import EncodedPayload


_GENESIS = datetime(2026, 1, 1, tzinfo=UTC)
_DEFAULT_MAX_GAS = 200_000
_PUBLISHING_MAX_GAS = 1_000_000  # one APT at the default price: storage of bytecode is charged by the byte
_DEFAULT_PRICE = 100
_EXPIRES_AFTER_S = 600
_ORDERLESS_EXPIRES_AFTER_S = 50


class _Options(NamedTuple):
    """Options of a call that is not a request, which has its own."""

    sender: str | None = None
    secondary_signers: Sequence[str] = ()
    fee_payer: str | None = None
    max_gas_amount: int | None = None
    gas_unit_price: int | None = None


class LedgerWriter(LedgerReader):
    """The writing methods of a ledger; parameters as for `Ledger`, which adds histories and files."""

    _open = False  # whether a block is open

    def __init__(
        self,
        *,
        chain_id: int = 4,
        seed: int = 0,
        window: int | None = None,
        release: Schedule | str = "v1.41.1",
        features: Collection[int] = CURRENT_FEATURES,
        accounts: Mapping[str, int] | None = None,
        genesis_time: datetime = _GENESIS,
        block_time: timedelta = timedelta(seconds=1),
        epoch_time: timedelta = timedelta(hours=2),
        decoded_tables: bool = True,
        enum_variants: bool = False,
        execution_timeout_s: float | None = DEFAULT_TIMEOUT_S,
        raise_on_failure: bool = False,
        fund_new_senders: bool = False,
    ) -> None:
        if window is not None and window < 1:
            raise InputError(f"window must be at least 1 version, got {window}")
        if not 1 <= chain_id <= MAX_CHAIN_ID:
            raise InputError(f"chain_id must be 1 to {MAX_CHAIN_ID}, got {chain_id}")
        if epoch_time <= timedelta(0) or block_time < timedelta(0) or genesis_time < UNIX_EPOCH:
            raise InputError(
                "epoch_time must be positive, block_time not negative, and genesis_time not before 1970; got "
                f"{epoch_time}, {block_time} and {genesis_time}"
            )
        balances = DEFAULT_ACCOUNTS if accounts is None else {"0x1": DEFAULT_ACCOUNTS["0x1"], **accounts}
        self.raise_on_failure = bool(raise_on_failure)
        self.fund_new_senders = bool(fund_new_senders)
        start_us = (genesis_time - UNIX_EPOCH) // timedelta(microseconds=1)
        settings = Settings(
            chain_id=chain_id,
            seed=seed.to_bytes(16, "little", signed=True),
            genesis_time_us=start_us,
            epoch_us=epoch_time // timedelta(microseconds=1),
            window=window,
            decoded_tables=bool(decoded_tables),
            enum_variants=bool(enum_variants),
        )
        chain = Chain(settings, start_us, block_time // timedelta(microseconds=1))
        chain.begin_at_genesis(
            released_schedule(release) if isinstance(release, str) else release,
            features,
            [(parse_address(address), octas) for address, octas in balances.items()],
        )
        super().__init__(chain)
        self.execution_timeout_s = execution_timeout_s

    @property
    def execution_timeout_s(self) -> float | None:
        """Time limit of a view or a transaction in seconds; None for no limit. Can be set."""
        return self.chain.execution_timeout_s

    @execution_timeout_s.setter
    def execution_timeout_s(self, seconds: float | None) -> None:
        given: Any = seconds
        if given is not None and (type(given) not in {int, float} or not given > 0):
            raise InputError(f"execution_timeout_s must be a number of seconds above 0, or None; got {seconds!r:.80}")
        self.chain.execution_timeout_s = seconds

    # -- writing -------------------------------------------------------------------------------------------

    @contextmanager
    def block(self, *, time: datetime | None = None, epilogue: bool = True) -> Iterator[None]:
        """Return a context manager: the transactions committed inside form one block.

        Parameters
        ----------
        time : datetime, optional
            Ledger time of the block; one block time after the previous block by default.
        epilogue : bool, default True
            Whether the block ends with a block epilogue; False for a state checkpoint, as in older blocks.

        Raises
        ------
        InputError
            If another block is open, or `time` is before the next block's.
        """
        if self._open:
            raise InputError("blocks cannot be nested: another block is open")
        if time is not None:
            self.wait_until(time)
        self.chain.begin_block(self.chain.next_time_us)
        self._open = True
        try:
            yield
        finally:
            self._open = False
            self.chain.end_block(TransactionKind.BLOCK_EPILOGUE if epilogue else TransactionKind.STATE_CHECKPOINT)
            self.chain.next_time_us += self.chain.block_us

    def wait_until(self, time: datetime) -> None:
        """Set the ledger time of the next block.

        Parameters
        ----------
        time : datetime
            With a time zone.

        Raises
        ------
        InputError
            If `time` is earlier than the next block would be.
        """
        time_us = (time - UNIX_EPOCH) // timedelta(microseconds=1)
        if time_us < self.chain.next_time_us:
            next_time = UNIX_EPOCH + timedelta(microseconds=self.chain.next_time_us)
            raise InputError(f"time must be at or after the next block's, {next_time}, got {time}")
        self.chain.next_time_us = time_us

    def commit(
        self,
        function: str | StandInScript,
        *arguments: Any,
        sender: str,
        type_arguments: Sequence[str] = (),
        secondary_signers: Sequence[str] = (),
        fee_payer: str | None = None,
        max_gas_amount: int = _DEFAULT_MAX_GAS,
        gas_unit_price: int = _DEFAULT_PRICE,
        check: bool | None = None,
    ) -> CommittedTransaction:
        """Run an entry function or a script as a transaction and commit its output, whether it succeeds or fails.

        Parameters
        ----------
        function : str or StandInScript
            Function id, such as ``0xcafe::registry::register``, or a script declared with `script`.
        *arguments : object
            Python values, without signers.
        sender : str
            Address that signs.
        type_arguments : sequence of str, optional
            Move types.
        secondary_signers : sequence of str, optional
            Further addresses that sign.
        fee_payer : str, optional
            Address that pays the fee; the sender by default.
        max_gas_amount : int, default 200_000
            Gas units.
        gas_unit_price : int, default 100
            Octas per gas unit.
        check : bool, optional
            Whether a transaction that fails raises `Aborted`; by default the ledger's ``raise_on_failure``.

        Returns
        -------
        CommittedTransaction
            With its version, success, vm_status and gas_used.

        Raises
        ------
        Aborted
            If the transaction fails and `check` is true. It is committed all the same.
        ContractError
            If the contract does something that Move does not allow, or its Python code fails; nothing is committed.
        InputError
            If the function does not exist, the arguments do not fit, or a check before execution fails (such as a
            balance below the fee); nothing is committed.
        """
        call: EncodedPayload
        if isinstance(function, StandInScript):
            script = Script(function.bytecode, type_arguments=type_arguments, arguments=arguments)
            call = encoded_payload(script, None, self._layouts(script))
        else:
            bound, tags = self._bound(function, type_arguments, self.head)
            encoded = encode_arguments(bound, function, arguments)
            call = EncodedEntryFunction(FunctionId.parse(function), tags, encoded)
        self._fund_new(sender if fee_payer is None else fee_payer)
        transaction = self.prepare(
            call,
            sender=sender,
            secondary_signers=secondary_signers,
            fee_payer=fee_payer,
            max_gas_amount=max_gas_amount,
            gas_unit_price=gas_unit_price,
        )
        return self._checked(self.commit_transaction(transaction), check)

    def execute(
        self,
        call: EntryFunction | Script | Multisig | SimulationRequest,
        *,
        sender: str | None = None,
        secondary_signers: Sequence[str] = (),
        fee_payer: str | None = None,
        max_gas_amount: int | None = None,
        gas_unit_price: int | None = None,
        check: bool | None = None,
    ) -> CommittedTransaction:
        """Commit a call as a transaction, with the effects that `Node.simulate` predicts.

        `commit` does the same given a function name and arguments. No keys are needed, and keys in a request are
        ignored. Nothing can be committed over HTTP.

        Parameters
        ----------
        call : EntryFunction, Script, Multisig or SimulationRequest
            For example ``contract.increment.call(1)``. A script must be declared with `script`.
        sender : str
            Address that sends the transaction; part of a SimulationRequest, like the options below.
        secondary_signers : sequence of str, optional
            Further addresses that sign.
        fee_payer : str, optional
            Address that pays the fee; the sender by default.
        max_gas_amount : int, default 200_000
            Gas units.
        gas_unit_price : int, default 100
            Octas per gas unit.
        check : bool, optional
            Whether a transaction that fails raises `Aborted`; by default the ledger's ``raise_on_failure``.

        Returns
        -------
        CommittedTransaction
            With its version, success, vm_status, gas_used, events and changes. A call that fails is committed too. Its
            gas can exceed that of a simulation by one unit, because a simulation without a signature is smaller.

        Raises
        ------
        Aborted
            If the transaction fails and `check` is true. It is committed all the same.
        ContractError
            If the contract does something that Move does not allow, or its Python code fails; nothing is committed.
        InputError
            If `call` is not a call, the function does not exist, the arguments do not fit, or a check before execution
            fails (such as a balance below the fee); nothing is committed.

        Examples
        --------
        >>> import toolkit
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger()
        >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
        >>> ledger.execute(call, sender="0xa11ce")
        <CommittedTransaction version 2: 0x1::aptos_account::transfer, succeeded, 65 gas units>
        """
        options = _Options(sender, secondary_signers, fee_payer, max_gas_amount, gas_unit_price)
        return self._checked(self.commit_transaction(self._requested(call, options, committed=True)), check)

    def _fund_new(self, address: str) -> None:
        """Fund the payer of a transaction that has no account, if the ledger is asked to."""
        if self.fund_new_senders and not self.resource(address, "0x1::account::Account"):
            self.fund(address)

    def _checked(self, committed: CommittedTransaction, check: bool | None) -> CommittedTransaction:  # noqa: FBT001 - only passed on
        """Return a transaction, or raise Aborted if it failed and that is asked for."""
        if committed.success or not (self.raise_on_failure if check is None else check):
            return committed
        raise Aborted(failure_sentence(committed.vm_status), committed.vm_status, committed)

    def advance(self, blocks: int = 1, *, time: datetime | None = None, seconds: float | None = None) -> LedgerState:
        """Commit blocks without transactions, to advance ledger time, versions and epochs.

        Parameters
        ----------
        blocks : int, default 1
            Number of blocks. Each is two versions and one block time.
        time : datetime, optional
            Ledger time of the first of these blocks, with a time zone; by default one block time after the last block.
        seconds : float, optional
            Instead of `time`: seconds of ledger time from the last block to the first of these.

        Returns
        -------
        LedgerState
            State of the new head.

        Raises
        ------
        InputError
            If `blocks` is not an int of at least 1, another block is open, `time` is before the next block's, or
            `seconds` is not above 0 or is given with `time`.

        Examples
        --------
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger()
        >>> ledger.advance(blocks=60).version
        120
        >>> f"{ledger.state.timestamp:%H:%M:%S}"
        '00:00:59'
        >>> f"{ledger.advance(seconds=3600).timestamp:%H:%M:%S}"
        '01:00:59'
        """
        if type(blocks) is not int or blocks < 1:  # a bool is an int
            raise InputError(f"blocks must be an int of at least 1, got {blocks!r:.80}")
        if seconds is not None:
            if time is not None or not seconds > 0:
                raise InputError(f"pass time= or seconds= above 0, got {time!r} and {seconds!r:.80}")
            time = self.state.timestamp + timedelta(seconds=seconds)
            self.chain.next_time_us = min(self.chain.next_time_us, (time - UNIX_EPOCH) // timedelta(microseconds=1))
        for _ in range(blocks):
            with self.block(time=time):
                time = None
        return self.state

    def commit_transaction(self, transaction: Transaction) -> CommittedTransaction:
        """Run a prepared transaction and commit its output.

        Parameters
        ----------
        transaction : Transaction
            Such as one returned by `prepare`.

        Returns
        -------
        CommittedTransaction

        Raises
        ------
        InputError
            If a check before execution fails. Nothing is committed.
        """
        return self._commit(transaction, run_executable)

    def fund(self, address: str, octas: int = 1_000 * OCTAS_PER_APT) -> CommittedTransaction:
        """Mint the gas coin to an address and create its account if necessary.

        Parameters
        ----------
        address : str
        octas : int, default 1_000 APT
            Amount to mint.

        Returns
        -------
        CommittedTransaction
        """
        return self.commit("0x1::aptos_coin::mint", parse_address(address), octas, sender=CORE_RESOURCES)

    def set_gas_schedule(self, schedule: Schedule | str) -> CommittedTransaction:
        """Replace the gas schedule in a governance transaction.

        Parameters
        ----------
        schedule : Schedule or str
            A schedule, or the name of a release, such as ``"v1.41.1"``.

        Returns
        -------
        CommittedTransaction

        Raises
        ------
        InputError
            If the release is not known.
        """
        blob = self._schedule_blob(schedule)
        return self.commit("0x1::gas_schedule::set_gas_schedule", blob, sender="0x1", max_gas_amount=2_000_000)

    def set_features(self, *, enable: Sequence[int] = (), disable: Sequence[int] = ()) -> CommittedTransaction:
        """Switch features of the framework on or off in a governance transaction.

        Parameters
        ----------
        enable, disable : sequence of int
            Numbers of features, 0 to 1023. Only features 60, 64, 65 and 91 have an effect; see `Ledger`.

        Returns
        -------
        CommittedTransaction
        """
        return self.commit("0x1::features::change_feature_flags", list(enable), list(disable), sender="0x1")

    def govern(
        self,
        *upgrades: type[Module],
        schedule: Schedule | str | None = None,
        enable: Sequence[int] = (),
        disable: Sequence[int] = (),
    ) -> CommittedTransaction:
        """Upgrade the framework, set the gas schedule and switch features in one transaction, like a release script.

        Parameters
        ----------
        *upgrades : type of Module
            Next versions of framework modules, all at 0x1.
        schedule : Schedule or str, optional
            Gas schedule to set, or the name of a release.
        enable, disable : sequence of int
            Features to switch on and off; see `set_features`.

        Returns
        -------
        CommittedTransaction
            Its payload is a script whose bytecode is a digest of the changes.

        Raises
        ------
        InputError
            If a module is not at 0x1, an upgrade is not compatible, or the script fails.
        """
        package = self._package(upgrades, None) if upgrades else None
        if package is not None and package.owner != "0x1":
            at = wire_address(package.owner)
            raise InputError(f"governance upgrades must be at 0x1, got a module at {at}: use publish instead")
        blob = None if schedule is None else self._schedule_blob(schedule)
        script = GovernanceScript(package, blob, tuple(enable), tuple(disable))
        transaction = self.prepare(script.call(), sender="0x1", max_gas_amount=2_000_000)
        committed = self._commit(transaction, script.run, definitions=package.definitions if package else ())
        if not committed.success:
            raise InputError(f"the governance script failed at version {committed.version}: {committed.vm_status}")
        return committed

    def publish(self, *contracts: type[Module], package: str | None = None) -> CommittedTransaction:
        """Publish contracts of one address as a package, or upgrade them.

        An address with less than 1 APT is funded first, in a separate transaction.

        Parameters
        ----------
        *contracts : type of Module
            Contract classes, all at one address.
        package : str, optional
            Name of the package; by default that of the published package with the first contract's module, or else
            the name of that module. An upgrade does not change the package's other modules.

        Returns
        -------
        CommittedTransaction

        Raises
        ------
        InputError
            If the contracts are not at one address, a module they use is not published, an upgrade is not compatible,
            or publishing fails.
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
        """Delete a module in a governance transaction, which public networks do not support.

        Parameters
        ----------
        module : str
            Module id, such as ``0xcafe::trial``.

        Returns
        -------
        CommittedTransaction

        Raises
        ------
        InputError
            If `module` is not a module id.
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
        """Return a transaction of `sender` with sequence number, expiration and placeholder signatures filled in.

        Parameters
        ----------
        payload : EncodedPayload
            Payload of the transaction.
        sender, secondary_signers, fee_payer, max_gas_amount, gas_unit_price
            As for `commit`.

        Returns
        -------
        Transaction
        """
        address = parse_address(sender)
        account = self.resource(address, "0x1::account::Account")
        sequence_number = 0 if account is None else account["sequence_number"]
        orderless = isinstance(payload, EncodedPayloadV2) and payload.replay_protection_nonce is not None
        expires_after_s = _ORDERLESS_EXPIRES_AFTER_S if orderless else _EXPIRES_AFTER_S
        raw = RawTransaction(
            sender=address,
            sequence_number=sequence_number,
            payload=payload,
            max_gas_amount=max_gas_amount,
            gas_unit_price=gas_unit_price,
            expiration_timestamp_secs=self.chain.next_time_us // 1_000_000 + expires_after_s,
            chain_id=self.chain.chain_id,
        )
        signature = placeholder_signature(
            self.chain.digest,
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
            Such as one returned by `prepare`.
        check_keys : bool, default False
            Whether to check that public keys are those of the accounts, as a node does; `prepare` adds placeholders.

        Returns
        -------
        Output
        """
        return execute(self.chain.snapshot(self.head), transaction, check_keys=check_keys)

    def profile(
        self,
        call: ViewFunction | EntryFunction | Script | Multisig | SimulationRequest,
        *,
        sender: str | None = None,
        secondary_signers: Sequence[str] = (),
        fee_payer: str | None = None,
        max_gas_amount: int | None = None,
        gas_unit_price: int | None = None,
        version: int | None = None,
    ) -> GasProfile:
        """Return what a call spends its gas on, by function and by kind of charge. Nothing is committed.

        Parameters
        ----------
        call : ViewFunction, EntryFunction, Script, Multisig or SimulationRequest
            For example ``contract.increment.call(1)`` or ``contract.value.call()``.
        sender, secondary_signers, fee_payer, max_gas_amount, gas_unit_price
            As for `execute`; not for views.
        version : int, optional
            Ledger version at which a view is run; the head by default. Other calls always run at the head.

        Returns
        -------
        GasProfile
            With ``to_frame()``, ``to_folded()``; `toolkit.plots.gas_by_function` draws it. A call that fails has a
            profile too.

        Raises
        ------
        InputError
            As `execute` and `view` do, or if an option does not belong to the kind of call.

        Examples
        --------
        >>> import toolkit
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger.with_history(versions=200)
        >>> call = toolkit.EntryFunction("0xb00c::order_book::place", [True, 100, 5])
        >>> profile = ledger.profile(call, sender="0xa11ce")
        >>> profile.gas_used == toolkit.connect(ledger).simulate(call, sender="0xa11ce").gas_used
        True
        >>> profile.to_frame(by="function")["function"][0]
        '0xb00c::order_book::place'
        """
        options = _Options(sender, secondary_signers, fee_payer, max_gas_amount, gas_unit_price)
        if isinstance(call, ViewFunction):
            if options != _Options():
                raise InputError(f"{call.function} is a view function, which has no sender, signers and gas options")
            return self._view_profile(call, self._readable(version))
        if version is not None:
            raise InputError("version is for view functions: transactions are profiled at the head")
        transaction = self._requested(call, options, committed=False)
        raw, snapshot = transaction.raw, self.chain.snapshot(self.head)
        meter = ProfilingMeter(snapshot.schedule, max_gas_units=raw.max_gas_amount, gas_unit_price=raw.gas_unit_price)
        output = execute(snapshot, transaction, meter=meter)
        self._check_accepted(transaction, output)
        name = getattr(getattr(transaction.executable, "function", None), "wire", "a script")
        outcome = (output.success, output.vm_status, output.charges.total_charge_gas_units)
        return profile_of(meter, name, outcome, version=self.head, tables={**self.chain.tables, **output.tables})

    def _view_profile(self, call: ViewFunction, version: int) -> GasProfile:
        name = FunctionId.parse(call.function).wire
        bound, tags, plain = self._view_call(name, call.arguments, call.type_arguments, version)
        snapshot = self.chain.snapshot(version)
        meter = ProfilingMeter(snapshot.schedule, max_gas_units=MAX_VIEW_GAS, root="view")
        success, status = True, EXECUTED
        try:
            run_view(snapshot, bound, plain, tags, meter=meter)
        except VmError as error:
            success, status = False, error.vm_status
        outcome = (success, status, meter.charges().total_charge_gas_units)
        return profile_of(meter, name, outcome, version=version, tables=self.chain.tables)

    def mark(self, version: int, kind: MilestoneKind, text: str) -> None:
        """Record that the transaction of a version changed the cost or the result of calls; see `milestones`."""
        self.chain.milestones.append(Milestone(version, kind, text))

    # -- internals -----------------------------------------------------------------------------------------

    def _requested(self, call: Any, options: _Options, *, committed: bool) -> Transaction:
        """Return the transaction of a call or request; one that is not committed has the signature of a simulation."""
        if isinstance(call, ViewFunction):
            function = FunctionId.parse(call.function).wire
            raise InputError(f"{function} is a view function, which commits nothing: use ledger.view or node.view")
        if isinstance(call, SimulationRequest):
            if options != _Options():
                raise InputError("a SimulationRequest has its own sender, signers and gas: pass them to the request")
            request = call
        elif isinstance(call, EntryFunction | Script | Multisig):
            if options.sender is None:
                raise InputError("pass sender=, the account that sends the transaction; no key is needed")
            request = SimulationRequest(call, **options._asdict())
        else:
            method = "execute" if committed else "profile"
            raise InputError(not_a_call(call, method, is_name=isinstance(call, str | StandInScript)))
        if request.fee_payer is not None and parse_address(request.fee_payer) == NO_PAYER:
            raise InputError(f"fee_payer {NO_PAYER} pays for simulations only: pass an account that has coins")
        inner = request.payload.transaction_payload if isinstance(request.payload, Multisig) else request.payload
        payload = encoded_payload(request.payload, None, None if inner is None else self._layouts(inner))
        if committed:
            self._fund_new(request.sender if request.fee_payer is None else request.fee_payer)
        prepared = self.prepare(
            payload,
            sender=request.sender,
            secondary_signers=request.secondary_signers,
            fee_payer=request.fee_payer,
            max_gas_amount=_DEFAULT_MAX_GAS if request.max_gas_amount is None else request.max_gas_amount,
            gas_unit_price=_DEFAULT_PRICE if request.gas_unit_price is None else request.gas_unit_price,
        )
        if committed:
            return prepared
        return Transaction(SignedTransaction(prepared.raw, request.signature_to_send()))

    def _layouts(self, call: EntryFunction | Script) -> tuple[Layout, ...]:
        """Return the layouts of the parameters of a call at the head, without signers."""
        if isinstance(call, EntryFunction):
            function = FunctionId.parse(call.function).wire
            bound, _ = self._bound(function, call.type_arguments, self.head)
            if not bound.function.mark.is_entry:
                raise InputError(f"{function} is not an entry function: transactions cannot call it")
            check_number(function, bound, call.arguments)
            return bound.parameters
        declared = find_script(bytes.fromhex(call.bytecode.removeprefix("0x")))
        if declared is None:
            raise InputError("the bytecode is not that of a script declared with toolkit.embedded.script")
        tags = tuple(map(parse_type_tag, call.type_arguments))
        try:
            bound = self.chain.code_at(self.head).script(declared.function, tags)
        except VmError as error:
            raise InputError(f"script {declared.name}: {error.view_message}") from None
        check_number(f"script {declared.name}", bound, call.arguments)
        return bound.parameters

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
        self._check_accepted(transaction, output)
        published = definitions if output.success else ()
        code = self.chain.code_at(self.head)
        for after in published:
            before = code.modules.get((after.address, after.name))
            if before is not None and before.contract not in {after.contract, *after.contract.replaced}:
                after.contract.replaced += (before.contract,)
        return self.chain.append(TransactionKind.USER, output, request=transaction, published=published)

    def _check_accepted(self, transaction: Transaction, output: Output) -> None:
        """Raise InputError if a transaction failed a check before execution."""
        if output.discarded:
            sender, payer = wire_address(transaction.raw.sender), wire_address(transaction.payer)
            poor = output.vm_status == "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE"
            hint = f"; ledger.fund({payer!r}) gives {payer} coins for the fee" if poor else ""
            raise InputError(f"the transaction of {sender} failed a check before execution: {output.vm_status}{hint}")
