"""Balance changes of transactions, per owner and asset, from their events and state changes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from toolkit.dtypes import to_arrow, to_pandas
from toolkit.errors import ToolkitError
from toolkit.frames._columns import plain_columns
from toolkit.frames._schema import BALANCES
from toolkit.move import parse_address, parse_type_tag
from toolkit.move._ids import address_from_bytes, address_to_bytes
from toolkit.move._json_text import U64_MAX, parse_json, parse_u64
from toolkit.move._type_tags import wire_type
from toolkit.wire._gas import APT, APT_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd


_STORES = (
    r"^0x1::(coin::CoinStore<.+>|fungible_asset::(FungibleStore|ConcurrentFungibleBalance)|object::Object(Core|Group))$"
)
_COIN_STORE = re.compile(r"0x1::coin::CoinStore<(.+)>")
_CHANGE_COLUMNS = ("address", "resource_type", "data")
_EVENT_COLUMNS = ("type", "account_address", "creation_number", "data")
_FEE_COLUMNS = ("gas_used", "gas_unit_price", "total_charge_gas_units", "storage_fee_refund_octas")
# Errors of events and stores of another shape, on other chains; such events are ignored.
_SHAPE_ERRORS = (KeyError, TypeError, AttributeError, ToolkitError)
_Columns = dict[str, list[Any]]
_Moved = tuple[str, str, str, int]  # owner, asset, standard and signed amount of a movement
# A resource before a transaction: the transaction's request or version, the address, and the resource's type.
Slot = tuple[Any, str, str]

_FUNGIBLE = "0x1::fungible_asset::"
_FUNGIBLE_STORE, _OBJECT_CORE = f"{_FUNGIBLE}FungibleStore", "0x1::object::ObjectCore"
_STORE_DELETION = "0x1::fungible_asset::FungibleStoreDeletion"
_OBJECT_TRANSFERS = ("0x1::object::Transfer", "0x1::object::TransferEvent")

_DEPOSITS = ("coin::CoinDeposit", "coin::DepositEvent", "fungible_asset::Deposit", "fungible_asset::DepositEvent")
_DIRECTION = {f"0x1::{name}": 1 for name in _DEPOSITS}
_DIRECTION |= {name.replace("Deposit", "Withdraw"): -1 for name in _DIRECTION}


class _Event(NamedTuple):
    """An event of a transaction; `data` is its parsed JSON."""

    kind: str
    account: str
    number: int
    data: Any

    @property
    def store(self) -> str | None:
        """Store of a deposit or withdrawal of a fungible asset; None for other events."""
        if self.kind not in _DIRECTION:
            return None
        if "store" in self.data:
            return parse_address(self.data["store"])
        return self.account if self.kind.startswith(_FUNGIBLE) else None


@dataclass(slots=True)
class _Movement:
    """The sums of the movements of one owner and asset."""

    standard: str
    deposited: int = 0
    withdrawn: int = 0
    fee: int = 0
    known: bool = True  # false if an amount that no event reports could not be read

    @property
    def net(self) -> int:
        return self.deposited - self.withdrawn

    def add(self, amount: int) -> None:
        """Add a signed amount."""
        if amount >= 0:
            self.deposited += amount
        else:
            self.withdrawn -= amount


class Stores:
    """The coin and fungible stores among resources, with their owners, assets and balances.

    Parameters
    ----------
    changes : dict of str to list
        Columns ``address``, ``resource_type`` (canonical) and ``data`` (JSON), such as a transaction's writes. A
        resource without data was deleted.
    """

    def __init__(self, changes: Mapping[str, Sequence[Any]]) -> None:
        self.handles: dict[tuple[str, int], str] = {}
        self.coins: dict[tuple[str, str], int] = {}
        self.assets: dict[str, tuple[str, int]] = {}
        self.owners: dict[str, str] = {}
        self.deleted: set[tuple[str, str]] = set()  # coin stores that were deleted, by account and coin
        self.gone: set[str] = set()  # objects that were deleted
        self._concurrent: dict[str, int] = {}
        columns = (changes.get(name, ()) for name in _CHANGE_COLUMNS)
        for address, resource, text in zip(*columns, strict=True):
            if resource is not None:
                with suppress(*_SHAPE_ERRORS):
                    self._note(address, resource, text)
        for store, amount in self._concurrent.items():  # the balance of the store itself is then 0
            if store in self.assets:
                asset, balance = self.assets[store]
                self.assets[store] = asset, balance + amount

    def take(self, before: Stores, events: Sequence[_Event], earlier: Mapping[str, str]) -> None:
        """Add what the state before the transaction and the events contain about deleted stores.

        Parameters
        ----------
        before : Stores
        events : sequence of _Event
        earlier : mapping of str to str
            Owners of stores that earlier transactions wrote. A store may outlive the object core that names its owner.
        """
        self.handles = before.handles | self.handles
        removed = self.gone | (self.owners.keys() - self.assets.keys())
        for store in removed & before.assets.keys():
            self.assets[store] = before.assets[store][0], 0
        received: dict[str, str] = {}
        for event in events:
            if event.kind in _OBJECT_TRANSFERS:
                with suppress(*_SHAPE_ERRORS):
                    received[parse_address(event.data["object"])] = parse_address(event.data["to"])
        held = self.assets.keys() | before.assets.keys()
        known = {store: earlier[store] for store in held & earlier.keys()}
        self.owners = known | before.owners | received | self.owners
        for event in events:
            if event.kind == _STORE_DELETION:
                with suppress(*_SHAPE_ERRORS):
                    store, asset, owner = (parse_address(event.data[name]) for name in ("store", "metadata", "owner"))
                    self.assets[store], self.owners[store] = (asset, 0), owner

    def of(self, owner: str, asset: str) -> dict[str, int]:
        """Return the balances of the fungible stores of an owner and an asset, by address."""
        held = ((store, balance) for store, (kind, balance) in self.assets.items() if kind == asset)
        return {store: balance for store, balance in held if self.owners.get(store, store) == owner}

    def _note(self, address: str, resource: str, text: str | None) -> None:
        coin = _COIN_STORE.fullmatch(resource)
        kind = str(parse_type_tag(coin[1])) if coin else ""
        if text is None:
            if kind:
                self.deleted.add((address, kind))
            elif resource == "0x1::object::ObjectGroup":
                self.gone.add(address)
            return
        data = parse_json(text, "data")
        if kind:
            self.coins[address, kind] = parse_u64(data["coin"]["value"], "coin.value")
            for name in ("deposit_events", "withdraw_events"):
                number = parse_u64(data[name]["guid"]["id"]["creation_num"], "creation_num")
                self.handles[address, number] = kind
        elif resource == _FUNGIBLE_STORE:
            self.assets[address] = parse_address(data["metadata"]["inner"]), parse_u64(data["balance"], "balance")
        elif resource == "0x1::fungible_asset::ConcurrentFungibleBalance":
            self._concurrent[address] = parse_u64(data["balance"]["value"], "balance.value")
        elif resource == _OBJECT_CORE:
            self.owners[address] = parse_address(data["owner"])


def balance_frame(
    transactions: pd.DataFrame,
    changes: pd.DataFrame,
    events: pd.DataFrame,
    *,
    by: str,
    identity: Sequence[str] = (),
    read: Callable[[Sequence[Slot]], Sequence[str | None]] | None = None,
) -> pd.DataFrame:
    """Return one row per transaction, owner and asset whose balance the transaction changes, fees included.

    Parameters
    ----------
    transactions, changes, events : DataFrame
        Frames returned by `transaction_frames`, of simulated or committed transactions.
    by : {"request", "ledger_version"}
        Column that identifies a transaction in the three frames.
    identity : sequence of str
        Columns of `transactions` that precede the others.
    read : callable, optional
        Returns resources as JSON text, as they were before the transactions; None for resources that do not exist or
        are not known. It is called at most once, for amounts that the transactions do not contain: the balances of
        deleted stores, and fees paid from two stores.

    Returns
    -------
    DataFrame
        Columns of `identity`, then those of `BALANCES`. Rows are sorted by transaction, owner and asset.

    Notes
    -----
    ``change`` is deposited - withdrawn - fee. The fee is gas used times price, minus the storage refund; no event
    reports it. Deposits and withdrawals come from the coin and fungible asset events, which include the account or the
    store; the guid of an event from before module events is the store. The owner of a store is the owner after the
    transaction, or the last one known if its object no longer exists. If the owner is not known, it is the address of
    the store.

    Some movements have no event. A coin store that is converted to the paired fungible asset is deleted: its row ends
    with a balance of 0, and the row of the asset begins with the same amount. A store that changes hands moves its
    balance from one owner to the other. The content of a deleted store is read from the state before the
    transaction; ``change`` is null if that state cannot be read.

    Each movement counts once, even on nodes that report it twice: a coin event of an account whose coin store was not
    written is ignored if a fungible asset event has the same owner and amount, and a last movement that exactly equals
    the payer's fee is the fee.
    """
    transactions = transactions.rename(columns={"timestamp": "ledger_timestamp"})
    writes, emissions = to_arrow(changes), to_arrow(events)
    moving = pa.array([*_DIRECTION, *_OBJECT_TRANSFERS, _STORE_DELETION], type=emissions["type"].type)
    written = _grouped(writes.filter(pc.match_substring_regex(writes["resource_type"], _STORES)), by, _CHANGE_COLUMNS)
    emitted = _grouped(emissions.filter(pc.is_in(emissions["type"], value_set=moving)), by, _EVENT_COLUMNS)
    heads = plain_columns(transactions, [*dict.fromkeys([by, *identity, "type", "sender", "fee_payer", *_FEE_COLUMNS])])
    parts: list[tuple[_Fee | None, Stores, list[_Event]]] = []
    slots: list[list[Slot]] = []
    for values in zip(*heads.values(), strict=True):
        head = dict(zip(heads, values, strict=True))
        parts.append((_fee_of(head), Stores(written.get(head[by], {})), _parsed(emitted.get(head[by], {}))))
        slots.append([(head[by], *slot) for slot in _not_said(*parts[-1])])
    wanted = [slot for some in slots for slot in some]
    texts = iter(read(wanted) if wanted and read is not None else ())
    moved: list[dict[tuple[str, str], _Movement]] = []
    owners: dict[str, str] = {}  # of stores that earlier transactions wrote; simulations do not follow each other
    seen: dict[tuple[str, str], set[str]] = {}  # the stores of an owner and asset
    for part, some in zip(parts, slots, strict=True):
        held = [(address, kind, next(texts, None)) for _, address, kind in some]
        before = Stores(dict(zip(_CHANGE_COLUMNS, zip(*held, strict=True), strict=True)) if held else {})
        moved.append(_moved(*part, before, owners))
        if by == "ledger_version":
            owners |= part[1].owners
            for store, (asset, _) in part[1].assets.items():
                seen.setdefault((owners.get(store, store), asset), set()).add(store)
    found: list[dict[str, Any]] = []
    places: list[int] = []
    for place, (movements, (_, stores, _)) in enumerate(zip(moved, parts, strict=True)):
        rows = list(_rows(movements, stores, seen))
        found += rows
        places += [place] * len(rows)
    table, given = BALANCES.table_of_rows(found), to_arrow(transactions)
    for name in reversed(identity):
        table = table.add_column(0, given.schema.field(name), given[name].take(pa.array(places, type=pa.int64())))
    return to_pandas(table)


def _grouped(table: pa.Table, by: str, names: Sequence[str]) -> dict[Any, _Columns]:
    """Return the columns of each transaction, keyed by request or version."""
    columns = [table[name].to_pylist() for name in (by, *names)]
    groups: dict[Any, _Columns] = {}
    for key, *values in zip(*columns, strict=True):
        group = groups.setdefault(key, {name: [] for name in names})
        for name, value in zip(names, values, strict=True):
            group[name].append(value)
    return groups


def _parsed(events: _Columns) -> list[_Event]:
    """Return the events of a transaction with parsed data. Data that is not JSON is ignored."""
    found = []
    for kind, account, number, text in zip(*(events.get(name, ()) for name in _EVENT_COLUMNS), strict=True):
        with suppress(*_SHAPE_ERRORS):
            found.append(_Event(kind, account, number, parse_json(text, "data")))
    return found


def _not_said(fee: _Fee | None, stores: Stores, events: Sequence[_Event]) -> Iterator[tuple[str, str]]:
    """Yield the resources whose state before a transaction is needed because the transaction does not contain it."""
    coins = list(stores.deleted)
    if fee is not None and _from_two_stores(fee, stores):
        coins.append((fee.payer, APT))
    for account, coin in coins:
        yield account, f"0x1::coin::CoinStore<{coin}>"
    for store in dict.fromkeys(store for store, amount in _by_store(events) if amount):
        if store not in stores.assets:
            yield store, _FUNGIBLE_STORE
        if store not in stores.assets or store not in stores.owners:
            yield store, _OBJECT_CORE


def _by_store(events: Sequence[_Event]) -> Iterator[tuple[str, int]]:
    """Yield the fungible store and the signed amount of each event that moves a fungible asset."""
    for event in events:
        with suppress(*_SHAPE_ERRORS):
            if (store := event.store) is not None:
                yield store, _DIRECTION[event.kind] * parse_u64(event.data["amount"], "amount")


def _moved(
    fee: _Fee | None, stores: Stores, events: Sequence[_Event], before: Stores, earlier: Mapping[str, str]
) -> dict[tuple[str, str], _Movement]:
    """Return the movements of one transaction, by owner and asset."""
    stores.take(before, events, earlier)
    moved: dict[tuple[str, str], _Movement] = {}
    for owner, asset, standard, amount in _counted_once(list(_movements(events, stores)), fee, stores):
        moved.setdefault((owner, asset), _Movement(standard)).add(amount)
    _add_conversions(stores, before, moved)
    _add_transfers(events, stores, moved)
    _add_fee(fee, stores, before, moved)
    return moved


def _add_conversions(stores: Stores, before: Stores, moved: dict[tuple[str, str], _Movement]) -> None:
    """Add the balances of deleted coin stores to the paired fungible assets, which no event reports."""
    for owner, coin in sorted(stores.deleted):
        ended = moved.setdefault((owner, coin), _Movement("coin"))
        held = before.coins.get((owner, coin))
        amount = None if held is None else held + ended.net
        if amount == 0:
            continue
        begun = moved.setdefault((owner, _paired(owner, coin, stores)), _Movement("fungible asset"))
        if amount is None:
            ended.known = begun.known = False
        else:
            ended.add(-amount)
            begun.add(amount)


def _paired(owner: str, coin: str, stores: Stores) -> str:
    """Return the fungible asset that a coin of an owner was converted to; its address is derived from the coin."""
    # The address of a named object is derived from its creator, its name, and this byte.
    seed = address_to_bytes(APT_METADATA) + wire_type(parse_type_tag(coin)).encode() + b"\xfe"
    derived = APT_METADATA if coin == APT else address_from_bytes(hashlib.sha3_256(seed).digest())
    return derived if stores.of(owner, derived) else "unknown"


def _add_transfers(events: Sequence[_Event], stores: Stores, moved: dict[tuple[str, str], _Movement]) -> None:
    """Add the balances of stores whose objects changed hands, from the first owner to the last."""
    givers: dict[str, str] = {}
    for event in events:
        if event.kind in _OBJECT_TRANSFERS:
            with suppress(*_SHAPE_ERRORS):
                givers.setdefault(parse_address(event.data["object"]), parse_address(event.data["from"]))
    net: Counter[str] = Counter()
    for store, amount in _by_store(events) if givers else ():
        net[store] += amount
    for store, giver in givers.items():
        owner = stores.owners.get(store)
        if store in stores.assets and owner not in {None, giver}:
            asset, after = stores.assets[store]
            held = after - net[store]
            for who, amount in ((giver, -held), (str(owner), held)) if held else ():
                moved.setdefault((who, asset), _Movement("fungible asset")).add(amount)


@dataclass(frozen=True, slots=True)
class _Fee:
    """The payer and the amount of a transaction's fee; `split` is false without a fee statement."""

    payer: str
    octas: int
    split: bool


def _fee_of(head: dict[str, Any]) -> _Fee | None:
    """Return the fee of a transaction, or None if nobody pays a fee."""
    payer = head["fee_payer"] or head["sender"]
    if head["type"] != "user_transaction" or payer is None or head["gas_used"] is None:
        return None
    units, price = head["total_charge_gas_units"], head["gas_unit_price"]
    if units is None:  # transactions before 2023 have no fee statement: their fee includes storage
        return _Fee(payer, head["gas_used"] * price, split=False)
    return _Fee(payer, units * price - head["storage_fee_refund_octas"], split=True)


def _counted_once(found: list[_Moved], fee: _Fee | None, stores: Stores) -> Iterator[_Moved]:
    """Yield each movement once, because some nodes report a movement twice."""
    charge = (fee.payer, APT_METADATA, "fungible asset", -fee.octas) if fee is not None and fee.split else None
    if found and found[-1] == charge and found[-1][3]:
        found = found[:-1]
    assets = Counter((owner, amount) for owner, _, standard, amount in found if standard == "fungible asset")
    for owner, asset, standard, amount in found:
        stored = (owner, asset) in stores.coins or (owner, asset) in stores.deleted
        if standard == "coin" and not stored and assets[owner, amount] > 0:
            assets[owner, amount] -= 1
            continue
        yield owner, asset, standard, amount


def _movements(events: Sequence[_Event], stores: Stores) -> Iterator[_Moved]:
    """Yield (owner, asset, standard, signed amount) for each event that moves a balance."""
    for event in events:
        kind, account, number, data = event
        if kind in _DIRECTION:
            with suppress(*_SHAPE_ERRORS):
                amount = _DIRECTION[kind] * parse_u64(data["amount"], "amount")
                if (store := event.store) is not None:
                    asset, standard = stores.assets.get(store, ("unknown", 0))[0], "fungible asset"
                    owner = stores.owners.get(store, store)
                elif "coin_type" in data:
                    owner, asset, standard = (
                        parse_address(data["account"]),
                        str(parse_type_tag(data["coin_type"])),
                        "coin",
                    )
                else:
                    owner, asset, standard = account, stores.handles.get((account, number), "unknown"), "coin"
                if amount or asset != "unknown":  # nodes report a movement of nothing without touching the store
                    yield owner, asset, standard, amount


def _from_two_stores(fee: _Fee, stores: Stores) -> bool:
    """Return whether the payer's coin store and fungible store were both written, so that either may have paid."""
    return bool(stores.of(fee.payer, APT_METADATA)) and (fee.payer, APT) in stores.coins


def _add_fee(fee: _Fee | None, stores: Stores, before: Stores, moved: dict[tuple[str, str], _Movement]) -> None:
    if fee is None or fee.payer == "0x0" or (not fee.split and not fee.octas):
        return
    coins, asset = (fee.payer, APT), (fee.payer, APT_METADATA)
    shares = {coins if coins in stores.coins or not fee.split else asset: fee.octas}
    known = True
    if _from_two_stores(fee, stores):
        known = coins in before.coins
        paid = fee.octas
        if known:
            paid = before.coins[coins] + (moved[coins].net if coins in moved else 0) - stores.coins[coins]
        shares = {coins: paid, asset: fee.octas - paid}
    for place, octas in shares.items():
        if octas or len(shares) == 1 or not known:
            movement = moved.setdefault(place, _Movement("coin" if place == coins else "fungible asset"))
            movement.fee += octas
            movement.known = movement.known and known


def _after(owner: str, asset: str, stores: Stores, seen: Mapping[tuple[str, str], set[str]]) -> int | None:
    """Return the balance of an owner after a transaction, or None if it is not known.

    Any number of fungible stores may belong to one owner, and nodes cannot list them. The written ones are taken for
    all if they include the primary store, and no other transaction wrote further ones.
    """
    if (owner, asset) in stores.coins:
        return stores.coins[owner, asset]
    if (owner, asset) in stores.deleted:
        return 0
    held = stores.of(owner, asset)
    if not held or seen.get((owner, asset), set()) - held.keys():
        return None
    if owner not in held and primary_store(owner, asset) not in held:
        return None
    return total if (total := sum(held.values())) <= U64_MAX else None


def primary_store(owner: str, asset: str) -> str:
    """Return the address of the primary store of an owner and an asset: an object derived from both."""
    seed = address_to_bytes(owner) + address_to_bytes(asset) + b"\xfc"
    return address_from_bytes(hashlib.sha3_256(seed).digest())


def _rows(
    moved: dict[tuple[str, str], _Movement], stores: Stores, seen: Mapping[tuple[str, str], set[str]]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a transaction, sorted by owner and asset."""
    for (owner, asset), movement in sorted(moved.items(), key=itemgetter(0)):
        yield {
            "owner": owner,
            "asset": asset,
            "standard": movement.standard,
            "deposited": movement.deposited,
            "withdrawn": movement.withdrawn,
            "fee_octas": movement.fee if movement.fee < 2**63 else None,  # more than all coins; `change` is exact
            "change": movement.net - movement.fee if movement.known else None,
            "balance_after": _after(owner, asset, stores, seen),
        }
