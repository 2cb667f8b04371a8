"""`Ledger`: a ledger in memory that publishes contracts, commits transactions and reads any version."""

from __future__ import annotations

import gc
import hashlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from toolkit import wire
from toolkit._present.messages import shorten
from toolkit._present.tables import Listing
from toolkit._present.text import plural
from toolkit.embedded import _execution as execution
from toolkit.embedded import _history as history
from toolkit.embedded._chain import MAX_CHAIN_ID, Chain, Milestone, Settings
from toolkit.embedded._code import BoundFunction, CodeSet, check_upgrade, read_resource
from toolkit.embedded._contract import Module, StandInScript, find_script, function_changes
from toolkit.embedded._meter import Schedule, released_schedule
from toolkit.embedded._primitives import signer_of
from toolkit.embedded._profile import GasProfile, ProfilingMeter, profile_of
from toolkit.embedded._saved import from_cache, read_ledger, write_ledger
from toolkit.embedded._session import Session, store_value
from toolkit.embedded._state import StateKey
from toolkit.embedded._transaction import Transaction, TransactionKind, placeholder_signature
from toolkit.embedded._vm_status import EXECUTED, VmError
from toolkit.embedded.framework import DEFAULT_ACCOUNTS, FRAMEWORK_PACKAGE
from toolkit.embedded.framework._coin import CORE_RESOURCES, OCTAS_PER_APT
from toolkit.embedded.framework._configuration import CURRENT_FEATURES, Code, Features, GasSchedule, package_metadata
from toolkit.errors import Aborted, InputError
from toolkit.move import FunctionId, StructTag, decode_bcs, encode_bcs, parse_address, parse_type_tag
from toolkit.move._ids import wire_address
from toolkit.move._json_text import U64_MAX
from toolkit.move._values import decode_argument, encode_argument
from toolkit.wire import Batch, EntryFunction, LedgerState, Multisig, Script, SimulationRequest, ViewFunction
from toolkit.wire._bcs_requests import EncodedEntryFunction, encoded_payload, payload_parts
from toolkit.wire._requests import SimulatedPayload, called_by

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from toolkit.embedded._definitions import Definition
    from toolkit.embedded._transaction import CommittedTransaction, LedgerBlock, Output
    from toolkit.move import Layout
    from toolkit.wire._bcs_requests import EncodedPayload


UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LedgerAccount:
    """An account of a ledger, as listed by `Ledger.accounts`.

    Parameters
    ----------
    address : str
        Address in short form, such as ``0xa11ce``.
    name : str
        A name such as ``alice`` or ``framework``, or the modules that the account has published; otherwise empty.
    octas : int
        Balance of the gas coin, including the paired fungible asset.
    sequence_number : int
        Number of transactions that the account has sent.

    Examples
    --------
    >>> from toolkit.embedded import Ledger
    >>> ledger = Ledger()
    >>> ledger.accounts[0]
    LedgerAccount(address='0x1', name='framework', octas=1000000000000, sequence_number=0)
    """

    address: str
    name: str
    octas: int
    sequence_number: int


@dataclass(frozen=True, slots=True)
class PublishedContract:
    """A published module, as listed by `Ledger.contracts`.

    Parameters
    ----------
    contract : str
        Module id, such as ``0xcafe::registry``.
    about : str
        First line of the docstring of its class.
    views, entries : tuple of str
        Names of its view functions, and of the functions that transactions may call.
    version : int
        Ledger version at which this code was published.

    Examples
    --------
    >>> from toolkit.embedded import Ledger, Module, u64, view
    >>> class Shop(Module, address="0x5407"):
    ...     "A shop."
    ...
    ...     @view
    ...     def price(self) -> u64:
    ...         return 7
    >>> ledger = Ledger()
    >>> published = ledger.publish(Shop)
    >>> ledger.contracts[-1]
    PublishedContract(contract='0x5407::shop', about='A shop.', views=('price',), entries=(), version=5)
    """

    contract: str
    about: str
    views: tuple[str, ...]
    entries: tuple[str, ...]
    version: int


_FRAMEWORK = ("0x1", FRAMEWORK_PACKAGE)
_SCRIPT_MAGIC = bytes.fromhex("a11ceb0b07000009")
_SCRIPT_BYTES = 400


class ContractPackage(NamedTuple):
    """Contracts at one address that are published together.

    Parameters
    ----------
    name : str
        Name of the package.
    owner : str
        Canonical address.
    definitions : tuple of Definition
        Modules to publish.
    modules : tuple of Definition
        All modules of the package: published modules that are not upgraded, then `definitions`.
    deps : tuple of (canonical address, package name)
        Packages that this package depends on.
    code : CodeSet
        Modules that are already published.
    """

    name: str
    owner: str
    definitions: tuple[Definition, ...]
    modules: tuple[Definition, ...]
    deps: tuple[tuple[str, str], ...]
    code: CodeSet

    @classmethod
    def of(cls, contracts: Sequence[type[Module]], name: str | None, ledger: Ledger) -> ContractPackage:
        """Return a package of contract classes after checking them against the published modules.

        Parameters
        ----------
        contracts : sequence of Module classes
            Contracts to publish.
        name : str, optional
            Name of the package. By default, the name of the published package that contains the first module, or else
            the name of the first module.
        ledger : Ledger
            The ledger to publish on.

        Raises
        ------
        InputError
            If no contract is given, the contracts are not at one address, a module they use is not published, or an
            upgrade is not compatible or has the same bytecode as the published module.
        """
        code = ledger.chain.code_at(ledger.head)
        if wrong := [one for one in contracts if not hasattr(one, "definition")]:
            raise InputError(f"expected classes of contracts, such as class Shop(Module), got {shorten(wrong[0])}")
        definitions = tuple(contract.definition for contract in contracts)
        if not definitions:
            raise InputError("expected at least one contract class, got none")
        owner = definitions[0].address
        if any(definition.address != owner for definition in definitions):
            addresses = ", ".join(sorted({wire_address(definition.address) for definition in definitions}))
            raise InputError(f"expected contracts at one address, got {addresses}: publish each address separately")
        for definition in definitions:
            published = code.modules.get((owner, definition.name))
            if published is not None:
                check_upgrade(published, definition)
                if definition.contract is not published.contract and definition.bytecode == published.bytecode:
                    raise InputError(
                        f"{published.wire_id} is already published with this ABI and revision {published.revision}: "
                        f"the upgrade needs revision={published.revision + 1} in the class statement"
                    )
        registered = _packages(ledger, owner)
        name = name or _package_with(definitions[0].name, registered) or definitions[0].name
        written = {definition.name for definition in definitions}
        before = (module["name"] for package in registered if package["name"] == name for module in package["modules"])
        modules = (*(code.modules[owner, module] for module in before if module not in written), *definitions)
        deps = {} if owner == "0x1" else {_FRAMEWORK: None}  # an ordered set
        for address, module in sorted(set().union(*(definition.uses for definition in modules))):
            needed = _package_with(module, _packages(ledger, address))
            if needed is None:
                used = f"{wire_address(address)}::{module}"
                user = next(one.wire_id for one in modules if (address, module) in one.uses)
                raise InputError(f"{user} uses {used}, which is not published: publish {used} first")
            deps[address, needed] = None
        return cls(name, owner, definitions, modules, tuple(deps), code)

    def call(self) -> EntryFunction:
        """Return the call of the publishing transaction."""
        metadata = self.code.struct(Code.PackageMetadata, ())
        described = store_value(metadata.kind, package_metadata(self.name, self.modules, 0, self.deps))
        codes = [one.bytecode for one in self.definitions]
        return EntryFunction("0x1::code::publish_package_txn", [encode_bcs(metadata.layout, described), codes])

    def run(self, session: Session, _: Transaction) -> None:
        """Write the code, register the package, and run ``init_module`` of new modules."""
        registry = session.module(Code)
        registry.publish_package(self.owner, self.name, self.modules, written=self.definitions, deps=self.deps)
        for definition in self.definitions:
            session.writes[StateKey("module", definition.address, definition.name)] = definition.bytecode
        session.code = self.code.with_modules(self.definitions)
        for definition in self.definitions:
            initialize = getattr(definition.contract, "init_module", None)
            if initialize is not None and (definition.address, definition.name) not in self.code.modules:
                body = partial(initialize, session.link(definition))
                execution.call_contract(session, f"{definition.wire_id}::init_module", body, [signer_of(self.owner)])


def _packages(ledger: Ledger, address: str) -> list[dict[str, Any]]:
    """Return the packages in the ``PackageRegistry`` of an address."""
    registry = ledger.resource(address, "0x1::code::PackageRegistry")
    return [] if registry is None else registry["packages"]


def _package_with(module: str, registered: Sequence[dict[str, Any]]) -> str | None:
    """Return the name of the registered package that contains a module, or None."""
    return next((known["name"] for known in registered if module in {m["name"] for m in known["modules"]}), None)


_GENESIS = datetime(2026, 1, 1, tzinfo=UTC)
_DEFAULT_MAX_GAS = 200_000
_GOVERNANCE_MAX_GAS = 2_000_000
_PUBLISHING_MAX_GAS = 1_000_000  # one APT at the default price: storage of bytecode is charged by the byte
_DEFAULT_PRICE = 100
_EXPIRES_AFTER_S = 600
_MAX_SECONDS = 10**10  # of an advance: times beyond the year 9999 cannot be shown
_ORDERLESS_EXPIRES_AFTER_S = 50


def _request_of(call: Any, **options: Any) -> SimulationRequest:
    """Return the request for a call and its options; return a `SimulationRequest` unchanged."""
    if isinstance(call, ViewFunction):
        function = FunctionId.parse(call.function).wire
        raise InputError(f"{function} is a view function, which commits nothing: use ledger.view or node.view")
    if isinstance(call, SimulationRequest):
        if any(one is not None and one != () for one in options.values()):
            raise InputError("a SimulationRequest already has a sender, signers and gas: set them in the request")
    elif not isinstance(call, SimulatedPayload):
        is_simulation = isinstance(getattr(call, "request", None), SimulationRequest)
        hint = "pass simulation.request" if is_simulation else "ledger.commit takes a function and its arguments"
        raise InputError(
            f"expected an EntryFunction, Script, Multisig, Batch or SimulationRequest, got {call!r:.80}; {hint}"
        )
    elif options["sender"] is None:
        raise InputError("pass sender=, the account that sends the transaction; no key is needed")
    request = call if isinstance(call, SimulationRequest) else SimulationRequest(call, **options)
    if request.fee_payer is not None and parse_address(request.fee_payer) == execution.NO_PAYER:
        raise InputError(f"fee_payer {execution.NO_PAYER} works in simulations only: pass an account with coins")
    return request


def check_number(function: str, bound: BoundFunction, arguments: Sequence[Any]) -> None:
    """Raise InputError if the number of arguments is not the number of parameters."""
    if len(arguments) != len(bound.parameters):
        types = ", ".join(kind.text for kind in bound.parameter_kinds)
        expected = plural(len(bound.parameters), "argument") + (f" ({types})" if types else "")
        raise InputError(f"{function}: expected {expected}, got {len(arguments)}")


@contextmanager
def _young_collections_only() -> Iterator[None]:
    """Let the garbage collector examine only new objects, because a growing history is never garbage.

    Full collections would scan the whole history repeatedly and take a tenth of the build time.
    """
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], 1_000_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Ledger:
    """A ledger in memory, with versioned state, blocks, contracts written in Python, and an on-chain gas schedule.

    Gas comes from a documented cost model, not from a Move VM.

    Parameters
    ----------
    chain_id : int, default 4
        Chain id, 1 to 255; local test networks use 4.
    seed : int, default 0
        Part of the input of every hash and every derived address. Equal seeds and equal commits give equal ledgers.
    window : int, optional
        Number of most recent versions to keep; by default, all. Older blocks are pruned.
    release : str or Schedule, default "v1.41.1"
        Release whose gas schedule is set at genesis, or a schedule, such as the schedule of another ledger.
    features : collection of int, optional
        Feature flags that are on at genesis. The default is the set of flags that public networks have on and that have
        an effect here: 60 pairs the gas coin with a fungible asset, 64 and 65 make new accounts and transfers use the
        asset, and 91 makes every address an account.
    accounts : mapping of str to int, optional
        Accounts that exist at genesis besides 0x1, with their balances in octas. By default, these are a minting
        account, alice (0xa11ce) and bob (0xb0b).
    genesis_time : datetime, optional
        Start of ledger time; 2026-01-01 UTC by default.
    block_time : timedelta, default 1 s
        Ledger time between blocks.
    epoch_time : timedelta, default 2 h
        Length of an epoch.
    decoded_tables : bool, default True
        Whether changes to table items have decoded keys and values, as on public nodes. If False, their ``data`` is
        null, as on nodes without a table indexer.
    enum_variants : bool, default False
        Whether ABIs list the variants of enums, as nodes have done since 2026. If False, a client cannot determine the
        types of the fields of enum values.
    raise_on_failure : bool, default False
        Whether `execute` and `commit` raise `Aborted` if a transaction fails; ``check=`` overrides this for one call.
        Also an attribute.
    fund_new_senders : bool, default False
        Whether an account that does not exist receives 1,000 APT before it first pays a fee. Also an attribute.

    Raises
    ------
    InputError
        If the window is below 1, or the chain id, a time, the release or an address is not valid.

    Examples
    --------
    >>> from toolkit import embedded
    >>> ledger = embedded.Ledger()
    >>> done = ledger.commit("0x1::aptos_account::transfer", "0xb0b", 100, sender="0xa11ce")
    >>> done.success
    True
    """

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
        raise_on_failure: bool = False,
        fund_new_senders: bool = False,
    ) -> None:
        if window is not None and window < 1:
            raise InputError(f"window must be at least 1 version, got {window}")
        if not 1 <= chain_id <= MAX_CHAIN_ID:
            raise InputError(f"chain_id must be from 1 to {MAX_CHAIN_ID}, got {chain_id}")
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
        schedule = released_schedule(release) if isinstance(release, str) else release
        funded = [(parse_address(address), octas) for address, octas in balances.items()]
        self.chain = Chain(settings, start_us, block_time // timedelta(microseconds=1))
        self.chain.begin_at_genesis(schedule, features, funded)

    def __repr__(self) -> str:
        return f"<Ledger chain_id={self.chain.chain_id} versions {self.oldest_version}..{self.head}>"

    @property
    def head(self) -> int:
        """The latest ledger version."""
        return self.chain.head

    @property
    def oldest_version(self) -> int:
        """The oldest ledger version that is still readable."""
        return self.chain.oldest_version

    @property
    def milestones(self) -> Listing[Milestone]:
        """Transactions that changed the cost or the result of calls, oldest first: tuple of Milestone.

        In a seeded history, the milestones explain every step in the gas of views, except in ``0xb00c::order_book``:
        there, each order that is placed also changes the gas (cause ``state``).
        """
        return Listing(self.chain.milestones)

    @property
    def accounts(self) -> Listing[LedgerAccount]:
        """The accounts at the head with their balances, named accounts first: tuple of LedgerAccount.

        Notebooks and ``print`` show them as a table. Objects, such as stores of fungible assets, are not listed.
        """
        names, found = self.chain.account_names(), []
        for address in self.chain.state.owners():
            account = self.resource(address, "0x1::account::Account")
            if account is not None:
                octas = self.view("0x1::coin::balance", [address], ["0x1::aptos_coin::AptosCoin"])[0][0]
                sent = account["sequence_number"]
                found.append(LedgerAccount(wire_address(address), names.get(address, ""), octas, sent))
        return Listing(sorted(found, key=lambda one: (not one.name, int(one.address, 16))))

    @property
    def contracts(self) -> Listing[PublishedContract]:
        """The modules published at the head, except the framework at 0x1: tuple of PublishedContract.

        Notebooks and ``print`` show them as a table.

        Examples
        --------
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger.with_history(versions=200)
        >>> [one.contract for one in ledger.contracts][:3]
        ['0x901d::gold', '0xb00c::order_book', '0xcafe::registry']
        >>> ledger.contracts[2].views
        ('handle', 'record_of', 'size')
        """
        head = self.head
        found = []
        for (address, name), definition in self.chain.code_at(head).modules.items():
            if address == "0x1":
                continue
            about = (definition.contract.__doc__ or "").strip().partition("\n")[0]
            functions = definition.functions.values()
            views = tuple(one.name for one in functions if one.mark.is_view)
            entries = tuple(one.name for one in functions if one.mark.is_entry)
            version, _ = self.chain.state.read_stamped(StateKey("module", address, name), head)
            found.append(PublishedContract(definition.wire_id, about, views, entries, version))
        return Listing(sorted(found, key=lambda one: one.contract))

    @property
    def state(self) -> LedgerState:
        """State of the ledger at the head, as the response headers of a node report it."""
        return self.chain.ledger_state()

    def transaction(self, version: int) -> CommittedTransaction:
        """Return the transaction of a ledger version.

        Raises
        ------
        InputError
            If the version is above the head or pruned.
        """
        return self.chain.transaction(self._readable(version))

    def block_of(self, version: int) -> LedgerBlock:
        """Return the block that contains a ledger version.

        Raises
        ------
        InputError
            If the version is above the head or pruned.
        """
        return self.chain.block_of(self._readable(version))

    def resource(self, address: str, tag: str, version: int | None = None) -> dict[str, Any] | None:
        """Return a resource as Python values, or None if it does not exist.

        Parameters
        ----------
        address : str
            Address the resource is stored under.
        tag : str
            Type of the resource, such as ``0x1::account::Account``.
        version : int, optional
            Ledger version to read; the head by default.

        Returns
        -------
        dict of str to object, or None

        Raises
        ------
        InputError
            If the version is above the head or pruned, or `tag` is not a struct type.
        """
        at = self._readable(version)
        kind = parse_type_tag(tag)
        if not isinstance(kind, StructTag):
            raise InputError(f"the type of a resource must be a struct, got {tag!r}")
        code = self.chain.code_at(at)
        data = read_resource(self.chain.state, code, parse_address(address), kind, at)
        if data is None:
            return None
        decoded: dict[str, Any] = decode_bcs(code.layout(str(kind)), data)
        return decoded

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
            Function id, such as ``0xcafe::registry::size``.
        arguments : sequence, optional
            Python values.
        type_arguments : sequence of str, optional
            Move types.
        version : int, optional
            Ledger version to read; the head by default.

        Returns
        -------
        values : list
            Returned values, as Python values.
        gas_used : int
            Gas units used, according to the gas model.

        Raises
        ------
        Aborted
            If the view aborts or its execution fails.
        InputError
            If the version is above the head or pruned, the function is not a view function, the arguments do not match
            its parameters, or it returns a value that does not have the declared type.

        Examples
        --------
        >>> from toolkit import embedded
        >>> embedded.Ledger().view("0x1::chain_id::get")[0]
        [4]
        """
        at = self._readable(version)
        bound, plain = self._view_call(function, arguments, type_arguments, at)
        try:
            return execution.run_view(self.chain.snapshot(at), bound, plain)
        except VmError as error:
            raise Aborted(f"view {function} at version {at:,}: {error.vm_status}", error.vm_status) from None

    def digest(self) -> str:
        """Return 64 hex digits: a digest of all transactions that are not pruned, with their writes and events."""
        hashed = hashlib.sha3_256()
        for transaction in self.chain.transactions:
            output = transaction.output
            hashed.update(f"{transaction.hash}{output.vm_status}{tuple(output.charges)}".encode())
            for key, value in output.writes.items():
                hashed.update(repr((tuple(key), value)).encode())
            for event in output.events:
                hashed.update(event.type.encode() + event.data)
        return hashed.hexdigest()

    def _readable(self, version: int | None) -> int:
        if version is None:
            return self.head
        if not self.oldest_version <= version <= self.head:
            raise InputError(
                f"version must be from {self.oldest_version:,} to {self.head:,} on this ledger, got {version:,}"
            )
        return version

    def _bound(self, function: str, types: Sequence[str], version: int) -> BoundFunction:
        wanted = FunctionId.parse(function)
        tags = tuple(map(parse_type_tag, types))
        try:
            return self.chain.code_at(version).function(wanted.address, wanted.module, wanted.name, tags)
        except VmError as error:
            raise InputError(f"{function} at version {version:,}: {error.message}") from None

    def _view_call(
        self, function: str, arguments: Sequence[Any], type_arguments: Sequence[str], version: int
    ) -> tuple[BoundFunction, list[Any]]:
        """Return a view function and its decoded arguments.

        Arguments may have any form that a node accepts.
        """
        bound = self._bound(function, type_arguments, version)
        if not bound.function.mark.is_view:
            raise InputError(f"{function} is not a view function")
        check_number(function, bound, arguments)
        plain = [
            decode_argument(layout, encode_argument(layout, value, where=f"{function}: arguments[{place}]"))
            for place, (layout, value) in enumerate(zip(bound.parameters, arguments, strict=True))
        ]
        return bound, plain

    # -- writing -------------------------------------------------------------------------------------------

    @contextmanager
    def block(self, *, time: datetime | None = None, epilogue: bool = True) -> Iterator[None]:
        """Return a context manager; the transactions committed inside its ``with`` block form one block.

        Parameters
        ----------
        time : datetime, optional
            Ledger time of the block; one block time after the previous block by default.
        epilogue : bool, default True
            Whether the block ends with a block epilogue; False for a state checkpoint, as in older blocks.

        Raises
        ------
        InputError
            If another block is open, or `time` is earlier than the default.
        """
        if self._open:
            raise InputError("blocks cannot be nested: another block is open")
        if time is not None:
            time_us = (time - UNIX_EPOCH) // timedelta(microseconds=1)
            if time_us < self.chain.next_time_us:
                next_time = UNIX_EPOCH + timedelta(microseconds=self.chain.next_time_us)
                raise InputError(f"time must not be before {next_time}, the default for the next block; got {time}")
            self.chain.next_time_us = time_us
        self.chain.begin_block(self.chain.next_time_us)
        self._open = True
        try:
            yield
        finally:
            self._open = False
            self.chain.end_block(TransactionKind.BLOCK_EPILOGUE if epilogue else TransactionKind.STATE_CHECKPOINT)
            self.chain.next_time_us += self.chain.block_us

    def commit(
        self,
        function: str | StandInScript,
        *arguments: Any,
        sender: str,
        type_arguments: Sequence[str] = (),
        secondary_signers: Sequence[str] = (),
        fee_payer: str | None = None,
        max_gas_amount: int | None = None,
        gas_unit_price: int | None = None,
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
            Address that sends and signs the transaction.
        type_arguments : sequence of str, optional
            Move types.
        secondary_signers : sequence of str, optional
            Other addresses that sign the transaction.
        fee_payer : str, optional
            Address that pays the fee; the sender by default.
        max_gas_amount : int, default 200_000
            Maximum number of gas units that the transaction may use.
        gas_unit_price : int, default 100
            Octas per gas unit.
        check : bool, optional
            Whether a transaction that fails raises `Aborted`; by default, the ledger's ``raise_on_failure``.

        Returns
        -------
        CommittedTransaction
            Its attributes include `version`, `success`, `vm_status` and `gas_used`.

        Raises
        ------
        Aborted
            If the transaction fails and `check` (or its default) is true. The transaction is committed nevertheless.
        ContractError
            If the contract breaks a rule of the model, or its Python code fails; nothing is committed.
        InputError
            If the function does not exist or is not an entry function, the arguments do not match its parameters, or a
            check before execution fails (such as a balance below the fee); nothing is committed.
        """
        call: EntryFunction | Script
        if isinstance(function, StandInScript):
            call = Script(function.bytecode, type_arguments=type_arguments, arguments=arguments)
        else:
            call = EntryFunction(function, arguments, type_arguments=type_arguments)
        return self.execute(
            call,
            sender=sender,
            secondary_signers=secondary_signers,
            fee_payer=fee_payer,
            max_gas_amount=max_gas_amount,
            gas_unit_price=gas_unit_price,
            check=check,
        )

    def execute(
        self,
        call: EntryFunction | Script | Multisig | Batch | SimulationRequest,
        *,
        sender: str | None = None,
        secondary_signers: Sequence[str] = (),
        fee_payer: str | None = None,
        max_gas_amount: int | None = None,
        gas_unit_price: int | None = None,
        check: bool | None = None,
    ) -> CommittedTransaction:
        """Commit a call as a transaction, with the effects that `Node.simulate` predicts.

        `commit` does the same, but takes a function id and the arguments. No keys are needed, and keys in a request are
        ignored. Nothing can be committed over HTTP.

        Parameters
        ----------
        call : EntryFunction, Script, Multisig, Batch or SimulationRequest
            For example ``contract.increment.call(1)``. A script must be declared with `script`, or only make calls in a
            row.
        sender : str, optional
            Address that sends the transaction; required unless `call` is a SimulationRequest, which already contains
            the sender, signers, fee payer and gas.
        secondary_signers : sequence of str, optional
            Other addresses that sign the transaction.
        fee_payer : str, optional
            Address that pays the fee; the sender by default.
        max_gas_amount : int, default 200_000
            Maximum number of gas units that the transaction may use.
        gas_unit_price : int, default 100
            Octas per gas unit.
        check : bool, optional
            Whether a transaction that fails raises `Aborted`; by default, the ledger's ``raise_on_failure``.

        Returns
        -------
        CommittedTransaction
            A call that fails is committed too. The transaction can use one gas unit more than its simulation, because a
            simulation without a signature has fewer bytes.

        Raises
        ------
        Aborted
            If the transaction fails and `check` (or its default) is true. The transaction is committed nevertheless.
        ContractError
            If the contract breaks a rule of the model, or its Python code fails; nothing is committed.
        InputError
            If `call` is not a call, the function does not exist, the arguments do not match its parameters, or a check
            before execution fails (such as a balance below the fee); nothing is committed.

        Examples
        --------
        >>> import toolkit
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger()
        >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
        >>> ledger.execute(call, sender="0xa11ce")
        <CommittedTransaction version 2: 0x1::aptos_account::transfer, succeeded, 65 gas units>
        """
        request = _request_of(
            call,
            sender=sender,
            secondary_signers=secondary_signers,
            fee_payer=fee_payer,
            max_gas_amount=max_gas_amount,
            gas_unit_price=gas_unit_price,
        )
        payload = self._payload(request)  # first, because it is checked
        payer = request.sender if request.fee_payer is None else request.fee_payer
        if self.fund_new_senders and not self.resource(payer, "0x1::account::Account"):
            self.fund(payer)
        committed = self._commit(self._transaction(request, payload))
        if committed.success or not (self.raise_on_failure if check is None else check):
            return committed
        raise Aborted(committed.vm_status, committed.vm_status, committed)

    def advance(self, blocks: int = 1, *, time: datetime | None = None, seconds: float | None = None) -> LedgerState:
        """Commit blocks without user transactions, to advance ledger time, versions and epochs.

        Parameters
        ----------
        blocks : int, default 1
            Number of blocks. Each block adds two versions and advances ledger time by one block time.
        time : datetime, optional
            Ledger time of the first new block, with a time zone; by default, one block time after the last block.
        seconds : float, optional
            Seconds of ledger time between the last block and the first new block; an alternative to `time`. On a new
            ledger, which has no blocks, they are added to the time of the first block.

        Returns
        -------
        LedgerState
            State of the new head.

        Raises
        ------
        InputError
            If `blocks` is not an int of at least 1, another block is open, `time` is earlier than the default,
            `seconds` is not above 0 or more than 10^10 (about 300 years), or both `seconds` and `time` are given.

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
            if time is not None:
                raise InputError(f"pass time= or seconds=, not both; got time={time} and seconds={seconds!r:.80}")
            if not 0 < seconds <= _MAX_SECONDS:
                raise InputError(f"seconds must be above 0 and at most 10^10, got {seconds!r:.80}")
            first = UNIX_EPOCH + timedelta(microseconds=self.chain.next_time_us)
            time = (self.state.timestamp if self.head else first) + timedelta(seconds=seconds)
            self.chain.next_time_us = min(self.chain.next_time_us, (time - UNIX_EPOCH) // timedelta(microseconds=1))
        for _ in range(blocks):
            with self.block(time=time):
                time = None
        return self.state

    def fund(self, address: str, octas: int = 1_000 * OCTAS_PER_APT) -> CommittedTransaction:
        """Mint the gas coin to an address, and create the account if necessary.

        Parameters
        ----------
        address : str
            Address that receives the coins.
        octas : int, default 100_000_000_000
            Amount to mint, in octas; 1,000 APT by default.

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
        return self.commit(
            "0x1::gas_schedule::set_gas_schedule", blob, sender="0x1", max_gas_amount=_GOVERNANCE_MAX_GAS
        )

    def set_features(self, *, enable: Sequence[int] = (), disable: Sequence[int] = ()) -> CommittedTransaction:
        """Switch features of the framework on or off in a governance transaction.

        Parameters
        ----------
        enable, disable : sequence of int, default ()
            Feature numbers from 0 to 1023. Only features 60, 64, 65 and 91 have an effect; see `Ledger`.

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
        enable, disable : sequence of int, default ()
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
        enable, disable = tuple(enable), tuple(disable)
        package = ContractPackage.of(upgrades, None, self) if upgrades else None
        definitions = package.definitions if package else ()
        if package and package.owner != "0x1":
            at = wire_address(package.owner)
            raise InputError(f"governance upgrades modules at 0x1 only, got a module at {at}: use publish instead")
        blob = b"" if schedule is None else self._schedule_blob(schedule)

        def run(session: Session, transaction: Transaction) -> None:
            if package:
                package.run(session, transaction)
            if blob:
                session.module(GasSchedule).set_gas_schedule("0x1", blob)
            if enable or disable:
                session.module(Features).change_feature_flags("0x1", list(enable), list(disable))

        # The bytecode of the script is a digest of its actions.
        actions = b"".join(definition.bytecode for definition in definitions) + blob
        actions += repr((enable, disable)).encode()
        digest = hashlib.shake_256(actions).digest(_SCRIPT_BYTES - len(_SCRIPT_MAGIC))
        request = SimulationRequest(Script(_SCRIPT_MAGIC + digest), sender="0x1", max_gas_amount=_GOVERNANCE_MAX_GAS)
        transaction = self._transaction(request, encoded_payload(request.payload, None, None))
        committed = self._commit(transaction, run, definitions=definitions)
        if not committed.success:
            raise InputError(f"the governance script failed at version {committed.version:,}: {committed.vm_status}")
        return committed

    def publish(self, *contracts: type[Module], package: str | None = None) -> CommittedTransaction:
        """Publish the contracts of one address as a package, or upgrade them.

        If the address holds less than 1 APT, a separate transaction funds it first.

        Parameters
        ----------
        *contracts : type of Module
            Contract classes, all at one address.
        package : str, optional
            Name of the package. By default, the name of the published package that contains the first contract, or else
            the name of that contract's module. An upgrade does not change the other modules of the package.

        Returns
        -------
        CommittedTransaction

        Raises
        ------
        InputError
            If no contract is given, the contracts are not at one address, a module they use is not published, an
            upgrade is not compatible, or publishing fails.
        """
        ready = ContractPackage.of(contracts, package, self)
        if self.view("0x1::coin::balance", [ready.owner], ["0x1::aptos_coin::AptosCoin"])[0][0] < OCTAS_PER_APT:
            self.fund(ready.owner)
        request = SimulationRequest(ready.call(), sender=ready.owner, max_gas_amount=_PUBLISHING_MAX_GAS)
        transaction = self._transaction(request, self._payload(request))
        committed = self._commit(transaction, ready.run, definitions=ready.definitions)
        if not committed.success:
            raise InputError(f"publishing {ready.name} failed at version {committed.version:,}: {committed.vm_status}")
        return committed

    def profile(
        self,
        call: ViewFunction | EntryFunction | Script | Multisig | Batch | SimulationRequest,
        *,
        sender: str | None = None,
        version: int | None = None,
    ) -> GasProfile:
        """Return the gas that a call uses, by function and by kind of charge, without committing anything.

        Parameters
        ----------
        call : ViewFunction, EntryFunction, Script, Multisig, Batch or SimulationRequest
            For example ``contract.increment.call(1)`` or ``contract.value.call()``.
        sender : str, optional
            Address that sends the transaction; not allowed for a view or a SimulationRequest.
        version : int, optional
            Ledger version at which a view is run; the head by default. Other calls always run at the head.

        Returns
        -------
        GasProfile
            A call that fails has a profile too. `toolkit.plots.gas_by_function` draws profiles.

        Raises
        ------
        InputError
            If `execute` or `view` would not accept the call, or an option does not apply to the kind of call.

        Examples
        --------
        >>> import toolkit
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger.with_history(versions=200)
        >>> call = toolkit.EntryFunction("0xb00c::order_book::place", [True, 100, 5])
        >>> profile = ledger.profile(call, sender="0xa11ce")
        >>> profile.gas_used == toolkit.connect(ledger).simulate(call, sender="0xa11ce").gas_used
        True
        """
        if isinstance(call, ViewFunction):
            if sender is not None:
                raise InputError(f"{call.function} is a view function, which has no sender: leave out sender=")
            return self._view_profile(call, self._readable(version))
        if version is not None:
            raise InputError("version applies to view functions only: transactions are profiled at the head")
        request = _request_of(call, sender=sender)
        signed = self._transaction(request, self._payload(request)).signed
        transaction = Transaction(replace(signed, signature=request.signature_to_send()))
        raw, snapshot = transaction.raw, self.chain.snapshot(self.head)
        meter = ProfilingMeter(snapshot.schedule, max_gas_units=raw.max_gas_amount, gas_unit_price=raw.gas_unit_price)
        output = execution.execute(snapshot, transaction, meter=meter)
        self._check_accepted(transaction, output)
        called = transaction.executable
        name = called.function.wire if isinstance(called, EncodedEntryFunction) else "a script"
        return profile_of(meter, name, (output.success, output.vm_status), self.head)

    def _view_profile(self, call: ViewFunction, version: int) -> GasProfile:
        name = FunctionId.parse(call.function).wire
        bound, plain = self._view_call(name, call.arguments, call.type_arguments, version)
        snapshot = self.chain.snapshot(version)
        meter = ProfilingMeter(snapshot.schedule, max_gas_units=execution.MAX_VIEW_GAS, root="view")
        success, status = True, EXECUTED
        try:
            execution.run_view(snapshot, bound, plain, meter=meter)
        except VmError as error:
            success, status = False, error.vm_status
        return profile_of(meter, name, (success, status), version)

    def function_changes(
        self, address: str, name: str, before: int, after: int
    ) -> tuple[list[str], list[str], list[str]] | None:
        """Return the names of the functions of a module that were added, removed and changed between two versions.

        None if the module does not exist at both versions.
        """
        ends = [self.chain.code_at(self._readable(version)).modules.get((address, name)) for version in (before, after)]
        contracts = [found.contract for found in ends if found is not None]
        return function_changes(*contracts) if len(contracts) == len(ends) else None

    # -- internals -----------------------------------------------------------------------------------------

    def _payload(self, request: SimulationRequest) -> EncodedPayload:
        """Return the payload of a request, whose arguments are checked against the published modules."""
        inner = called_by(request.payload)
        if isinstance(inner, Batch):
            from toolkit.embedded._straight import compose_batch  # late: it imports the machine

            return compose_batch(self.chain.code_at(self.head), inner, 1 + len(request.secondary_signers))
        layouts = None if inner is None else self._layouts(inner)
        return encoded_payload(request.payload, request.replay_protection_nonce, layouts)

    def _transaction(self, request: SimulationRequest, payload: EncodedPayload) -> Transaction:
        """Return a transaction with sequence number, expiration and placeholder signatures filled in.

        A payload with a nonce has the sequence number that represents "none".
        """
        sender, payer = parse_address(request.sender), request.fee_payer
        account = execution.find_account(self.chain.snapshot(self.head), sender)
        sequence_number, expires_after_s = 0 if account is None else account["sequence_number"], _EXPIRES_AFTER_S
        if payload_parts(payload).nonce is not None:  # the largest number represents that there is none
            sequence_number, expires_after_s = U64_MAX, _ORDERLESS_EXPIRES_AFTER_S
        raw = wire.RawTransaction(
            sender=sender,
            sequence_number=sequence_number,
            payload=payload,
            max_gas_amount=_DEFAULT_MAX_GAS if request.max_gas_amount is None else request.max_gas_amount,
            gas_unit_price=_DEFAULT_PRICE if request.gas_unit_price is None else request.gas_unit_price,
            expiration_timestamp_secs=self.chain.next_time_us // 1_000_000 + expires_after_s,
            chain_id=self.chain.chain_id,
        )
        signature = placeholder_signature(
            self.chain.digest,
            sender,
            sequence_number,
            others=[parse_address(signer) for signer in request.secondary_signers],
            fee_payer=None if payer is None else parse_address(payer),
        )
        return Transaction(wire.SignedTransaction(raw, signature))

    def _layouts(self, call: EntryFunction | Script) -> tuple[Layout, ...] | None:
        """Return the layouts of a call's parameters at the head, without signers; None if its arguments are BCS."""
        if isinstance(call, EntryFunction):
            function = FunctionId.parse(call.function).wire
            bound = self._bound(function, call.type_arguments, self.head)
            if not bound.function.mark.is_entry:
                raise InputError(f"{function} is not an entry function: transactions cannot call it")
            check_number(function, bound, call.arguments)
            return bound.parameters
        code, bytecode = self.chain.code_at(self.head), bytes.fromhex(call.bytecode.removeprefix("0x"))
        declared = find_script(bytecode)
        try:
            if declared is None:
                from toolkit.embedded._straight import read_straight, script_layouts  # late: it imports the machine

                read_straight(code, bytecode)
                return None if call.serialized else tuple(script_layouts(code, bytecode) or ())
            if call.serialized:
                return None
            bound = code.script(declared.function, tuple(map(parse_type_tag, call.type_arguments)))
        except VmError as error:
            where = "unknown bytecode" if declared is None else f"script {declared.name}"
            hint = "; declare the script with toolkit.embedded.script" if declared is None else ""
            raise InputError(f"{where}: {error.view_message}{hint}") from None
        check_number(f"script {declared.name}", bound, call.arguments)
        return bound.parameters

    def _schedule_blob(self, schedule: Schedule | str) -> bytes:
        chosen = released_schedule(schedule) if isinstance(schedule, str) else schedule
        code = self.chain.code_at(self.head)
        return encode_bcs(code.struct(GasSchedule.GasScheduleV2, ()).layout, chosen.to_resource())

    def _commit(
        self,
        transaction: Transaction,
        body: Callable[[Session, Transaction], None] = execution.run_executable,
        *,
        definitions: tuple[Definition, ...] = (),
    ) -> CommittedTransaction:
        if not self._open:
            with self.block():
                return self._commit(transaction, body, definitions=definitions)
        output = execution.execute(self.chain.snapshot(self.head), transaction, body)
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
            hint = f"; ledger.fund({payer!r}) adds coins for the fee" if poor else ""
            raise InputError(f"the transaction from {sender} was rejected before execution: {output.vm_status}{hint}")

    @classmethod
    def with_history(
        cls,
        seed: int = 7,
        versions: int = 5_000,
        *,
        window: int | None = None,
        decoded_tables: bool = True,
        cache: bool = False,
    ) -> Self:
        """Return a ledger with a seeded history; `milestones` lists the events that changed gas.

        Accounts register names at ``0xcafe::registry`` and place orders at ``0xb00c::order_book``. The vault at
        ``0xfa17::vault`` is upgraded to cheaper code, and so is the price feed that ``0xde5c::desk`` calls. Governance
        switches on a feature, changes the gas schedule three times (once, all costs rise tenfold), and upgrades the
        framework together with the last of these changes.

        Parameters
        ----------
        seed : int, default 7
            Equal seeds give equal ledgers on every platform.
        versions : int, default 5_000
            Number of versions in the history, at least 200; the head is ``versions - 1``.
        window : int, optional
            Number of most recent versions to keep; by default, all. Older blocks are pruned.
        decoded_tables : bool, default True
            See `Ledger`.
        cache : bool, default False
            Whether to store the history in the user's cache folder and read it from there, which is about ten times as
            fast as building it. The ledger is the same. ``LEDGER_TOOLKIT_CACHE`` selects a different folder.

        Returns
        -------
        Ledger

        Raises
        ------
        InputError
            If `versions` is below 200.

        Examples
        --------
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger.with_history(versions=200)
        >>> ledger.head, ledger.milestones[-1].kind.value
        (199, 'mixed')
        """
        if versions < history.MIN_VERSIONS:
            raise InputError(f"versions must be at least {history.MIN_VERSIONS} to contain all events, got {versions}")
        build = partial(cls._seeded, seed, versions, window=window, decoded_tables=decoded_tables)
        with _young_collections_only():
            if not cache:
                return build()
            return cls._of(from_cache(lambda: build().chain, seed, versions, window, bool(decoded_tables)))

    @classmethod
    def _seeded(cls, seed: int, versions: int, *, window: int | None, decoded_tables: bool) -> Self:
        """Build the ledger of `with_history`."""
        ledger = cls(
            seed=seed,
            window=window,
            release=history.FIRST_RELEASE,
            features=(),
            accounts=history.ACCOUNTS,
            genesis_time=history.START,
            block_time=history.SPAN * history.VERSIONS_PER_BLOCK / versions,
            epoch_time=history.EPOCH_TIME,
            decoded_tables=decoded_tables,
        )
        history.History(ledger, seed, versions).commit()
        return ledger

    def copy(self, version: int | None = None) -> Ledger:
        """Return a copy of the ledger up to a version; what is committed to one is not on the other.

        Parameters
        ----------
        version : int, optional
            Last version of the copy; the head by default.

        Raises
        ------
        InputError
            If a block is open, or the version does not exist or is pruned.

        Examples
        --------
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger.with_history(versions=200)
        >>> past = ledger.copy(100)
        >>> past.head, past.fund("0xb0b").version > 100, ledger.head
        (100, True, 199)
        """
        if self._open:
            raise InputError("a ledger cannot be copied while a block is open; copy it after the block")
        return self._of(self.chain.copy(self._readable(version)))

    # -- files ---------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the whole ledger to a file that `load` can read.

        The file contains only data: the state, transactions, events and blocks that are not pruned, and a list of the
        published modules. It contains no code, so loading it requires the classes of your own contracts.

        Parameters
        ----------
        path : path-like
            File to write, such as ``"class.ledger"``. It is replaced if it exists; its folder must exist.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If a block is open, or the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from toolkit import embedded
        >>> ledger = embedded.Ledger()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     embedded.Ledger.load(ledger.save(Path(folder) / "empty.ledger")).digest() == ledger.digest()
        True
        """
        if self._open:
            raise InputError("a ledger cannot be saved while a block is open; save it after the block")
        return write_ledger(self.chain, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, contracts: Iterable[type[Module]] = ()) -> Self:
        """Load a ledger from a file written by `save`; it behaves like the saved ledger.

        Loading runs no code from the file, so it is safe to load someone else's file.

        Parameters
        ----------
        path : path-like
            File of a saved ledger.
        contracts : iterable of type of Module, optional
            Classes of the published modules; not needed for the framework and the contracts of `with_history`. A class
            includes the classes that it extends and the classes that it replaced on a ledger in this process. In a new
            process, pass all other earlier versions too, or first publish all versions on a new ledger. The code of
            these classes runs when the ledger is used. It must be the code that was published.

        Returns
        -------
        Ledger

        Raises
        ------
        InputError
            If the file cannot be read, is damaged, is not a saved ledger, or has the format of another release; or if
            the class of a module is not given or has different code.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from toolkit.embedded import Ledger, Module, u64, view
        >>> class Shop(Module, address="0x5407"):
        ...     @view
        ...     def price(self) -> u64:
        ...         return 3
        >>> ledger = Ledger()
        >>> published = ledger.publish(Shop)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = Ledger.load(ledger.save(Path(folder) / "shop.ledger"), contracts=[Shop])
        >>> again.view("0x5407::shop::price")[0]
        [3]
        """
        return cls._of(read_ledger(path, contracts))

    @classmethod
    def _of(cls, chain: Chain) -> Self:
        """Return a ledger that uses an existing chain."""
        ledger = cls.__new__(cls)
        ledger.chain = chain
        ledger.raise_on_failure = ledger.fund_new_senders = False
        return ledger
