"""Balance changes of transactions, of coins and fungible assets per owner, from their events and state changes."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from toolkit.dtypes import to_arrow, to_pandas
from toolkit.errors import ToolkitError
from toolkit.frames._columns import plain_columns
from toolkit.frames._schema import BALANCES
from toolkit.move import parse_address, parse_type_tag
from toolkit.move._json_text import parse_json, parse_u64

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

__all__ = ["APT", "APT_METADATA", "Stores", "balance_frame"]

APT = "0x1::aptos_coin::AptosCoin"
APT_METADATA = "0xa"
_STORES = r"^0x1::(coin::CoinStore<.+>|fungible_asset::(FungibleStore|ConcurrentFungibleBalance)|object::ObjectCore)$"
_COIN_STORE = re.compile(r"0x1::coin::CoinStore<(.+)>")
_CHANGE_COLUMNS = ("address", "resource_type", "data")
_EVENT_COLUMNS = ("type", "account_address", "creation_number", "data")
_HEAD_COLUMNS = (
    "type",
    "sender",
    "fee_payer",
    "gas_used",
    "gas_unit_price",
    "total_charge_gas_units",
    "storage_fee_refund_octas",
)
_USER_TRANSACTION = "user_transaction"
_SHAPE_ERRORS = (KeyError, TypeError, AttributeError, ToolkitError)
"""Errors of events and stores of another shape, on other chains; such events are ignored."""
_Columns = dict[str, list[Any]]
_Moved = tuple[str, str, str, int]
"""Owner, asset, standard and signed amount of a movement."""

_DIRECTION = {
    "0x1::coin::CoinDeposit": 1,
    "0x1::coin::CoinWithdraw": -1,
    "0x1::coin::DepositEvent": 1,
    "0x1::coin::WithdrawEvent": -1,
    "0x1::fungible_asset::Deposit": 1,
    "0x1::fungible_asset::Withdraw": -1,
    "0x1::fungible_asset::DepositEvent": 1,
    "0x1::fungible_asset::WithdrawEvent": -1,
}


@dataclass(slots=True)
class _Movement:
    """Sums of one owner and asset."""

    standard: str
    deposited: int = 0
    withdrawn: int = 0
    fee: int = 0
    after: int | None = None


class Stores:
    """The coin and fungible stores among resources, with their owners, assets and balances.

    Parameters
    ----------
    changes : dict of str to list
        Columns ``address``, ``resource_type`` (canonical) and ``data`` (JSON), such as those of a transaction's writes.
    """

    def __init__(self, changes: Mapping[str, Sequence[Any]]) -> None:
        self.handles: dict[tuple[str, int], str] = {}
        self.coins: dict[tuple[str, str], int] = {}
        self.assets: dict[str, tuple[str, int]] = {}
        self.owners: dict[str, str] = {}
        self._concurrent: dict[str, int] = {}
        columns = (changes.get(name, ()) for name in _CHANGE_COLUMNS)
        for address, resource, text in zip(*columns, strict=True):
            if resource is not None and text is not None:
                with suppress(*_SHAPE_ERRORS):
                    self._note(address, resource, parse_json(text, "data"))
        for store, amount in self._concurrent.items():  # the balance of the store itself is then 0
            if store in self.assets:
                asset, balance = self.assets[store]
                self.assets[store] = asset, balance + amount

    def _note(self, address: str, resource: str, data: Any) -> None:
        coin = _COIN_STORE.fullmatch(resource)
        if coin:
            kind = _canonical(coin[1])
            self.coins[address, kind] = parse_u64(data["coin"]["value"], "coin.value")
            for name in ("deposit_events", "withdraw_events"):
                number = parse_u64(data[name]["guid"]["id"]["creation_num"], "creation_num")
                self.handles[address, number] = kind
        elif resource == "0x1::fungible_asset::FungibleStore":
            self.assets[address] = parse_address(data["metadata"]["inner"]), parse_u64(data["balance"], "balance")
        elif resource == "0x1::fungible_asset::ConcurrentFungibleBalance":
            self._concurrent[address] = parse_u64(data["balance"]["value"], "balance.value")
        elif resource == "0x1::object::ObjectCore":
            self.owners[address] = parse_address(data["owner"])


def balance_frame(
    transactions: pd.DataFrame, changes: pd.DataFrame, events: pd.DataFrame, *, by: str, identity: Sequence[str] = ()
) -> pd.DataFrame:
    """Return one row per transaction, owner and asset whose balance the transaction changes, fees included.

    Parameters
    ----------
    transactions, changes, events : DataFrame
        As `transaction_frames` returns them, of simulated or committed transactions.
    by : {"request", "ledger_version"}
        Column that identifies a transaction in the three frames.
    identity : sequence of str
        Columns of `transactions` that precede the others.

    Returns
    -------
    DataFrame
        Columns of `BALANCES` after those of `identity`; by transaction, then owner, then asset.

    Notes
    -----
    ``change`` is deposited - withdrawn - fee. The fee is gas used times price, less the storage refund; no
    event reports it. Deposits and withdrawals are those of the coin and fungible asset events, which have the account
    or the store. If the transaction did not write the store of an event, the owner is the address of the store.

    Each movement counts once, also on nodes that report it twice: a coin event of an account whose coin store was not
    written is left out if a fungible asset event has the same owner and amount, and a last movement that is exactly the
    fee of the payer is the fee.
    """
    written = _grouped(_rows_of_stores(changes), by, _CHANGE_COLUMNS)
    emitted = _grouped(_rows_of_movements(events), by, _EVENT_COLUMNS)
    heads = plain_columns(transactions, [*dict.fromkeys([by, *identity, *_HEAD_COLUMNS])])
    places: list[int] = []
    rows: dict[str, list[Any]] = {name: [] for name in BALANCES.names}
    for place, values in enumerate(zip(*heads.values(), strict=True)):
        head = dict(zip(heads, values, strict=True))
        moved = _moved(head, written.get(head[by], {}), emitted.get(head[by], {}))
        places += [place] * len(moved)
        for name, column in _columns(moved).items():
            rows[name] += column
    table = BALANCES.table(rows)
    given = to_arrow(transactions)
    for name in reversed(identity):
        table = table.add_column(0, given.schema.field(name), given[name].take(pa.array(places, type=pa.int64())))
    return to_pandas(table)


def _rows_of_stores(changes: pd.DataFrame) -> pa.Table:
    """Return the writes of stores and of their owners."""
    table = to_arrow(changes)
    return table.filter(pc.match_substring_regex(table["resource_type"], _STORES))


def _rows_of_movements(events: pd.DataFrame) -> pa.Table:
    """Return the events that move a balance."""
    table = to_arrow(events)
    return table.filter(pc.is_in(table["type"], value_set=pa.array(list(_DIRECTION), type=table["type"].type)))


def _grouped(table: pa.Table, by: str, names: Sequence[str]) -> dict[Any, _Columns]:
    """Return the columns of each transaction, by its request or version."""
    columns = [table[name].to_pylist() for name in (by, *names)]
    groups: dict[Any, _Columns] = {}
    for key, *values in zip(*columns, strict=True):
        group = groups.setdefault(key, {name: [] for name in names})
        for name, value in zip(names, values, strict=True):
            group[name].append(value)
    return groups


def _moved(head: dict[str, Any], changes: _Columns, events: _Columns) -> dict[tuple[str, str], _Movement]:
    """Return the movements of one transaction, by owner and asset."""
    stores = Stores(changes)
    fee = _fee_of(head)
    moved: dict[tuple[str, str], _Movement] = {}
    for owner, asset, standard, amount in _counted_once(list(_movements(events, stores)), fee, stores):
        movement = moved.setdefault((owner, asset), _Movement(standard))
        if amount >= 0:
            movement.deposited += amount
        else:
            movement.withdrawn -= amount
    _add_fee(fee, stores, moved)
    for (owner, asset), movement in moved.items():
        movement.after = _after(owner, asset, stores)
    return moved


@dataclass(frozen=True, slots=True)
class _Fee:
    """Who pays the fee of a transaction, and how much; `split` is false without a fee statement."""

    payer: str
    octas: int
    split: bool


def _fee_of(head: dict[str, Any]) -> _Fee | None:
    """Return the fee of a transaction, None if nobody pays one."""
    payer = head["fee_payer"] or head["sender"]
    if head["type"] != _USER_TRANSACTION or payer is None or head["gas_used"] is None:
        return None
    units, price = head["total_charge_gas_units"], head["gas_unit_price"]
    if units is None:  # transactions before 2023 have no fee statement: their fee includes storage
        return _Fee(payer, head["gas_used"] * price, split=False)
    return _Fee(payer, units * price - head["storage_fee_refund_octas"], split=True)


def _counted_once(found: list[_Moved], fee: _Fee | None, stores: Stores) -> Iterator[_Moved]:
    """Yield the movements without second reports of one of them, as some nodes emit."""
    charge = (fee.payer, APT_METADATA, "fungible asset", -fee.octas) if fee is not None and fee.split else None
    if found and found[-1] == charge and found[-1][3]:
        found = found[:-1]
    assets = Counter((owner, amount) for owner, _, standard, amount in found if standard == "fungible asset")
    for owner, asset, standard, amount in found:
        if standard == "coin" and (owner, asset) not in stores.coins and assets[owner, amount] > 0:
            assets[owner, amount] -= 1
            continue
        yield owner, asset, standard, amount


def _movements(events: dict[str, list[Any]], stores: Stores) -> Iterator[_Moved]:
    """Yield (owner, asset, standard, signed amount) for each event that moves a balance."""
    columns = (events.get(name, ()) for name in _EVENT_COLUMNS)
    for kind, account, number, text in zip(*columns, strict=True):
        direction = _DIRECTION.get(kind)
        if direction is not None:
            with suppress(*_SHAPE_ERRORS):
                yield _movement(direction, parse_json(text, "data"), account, number, stores)


def _movement(direction: int, data: Any, account: str, number: int, stores: Stores) -> _Moved:
    amount = direction * parse_u64(data["amount"], "amount")
    if "store" in data:
        store = parse_address(data["store"])
        asset = stores.assets.get(store, ("unknown", 0))[0]
        return stores.owners.get(store, store), asset, "fungible asset", amount
    if "coin_type" in data:
        return parse_address(data["account"]), _canonical(data["coin_type"]), "coin", amount
    return account, stores.handles.get((account, number), "unknown"), "coin", amount


def _canonical(coin_type: str) -> str:
    """Return a coin type in canonical form, so that those of events and stores are equal."""
    return str(parse_type_tag(coin_type))


def _add_fee(fee: _Fee | None, stores: Stores, moved: dict[tuple[str, str], _Movement]) -> None:
    if fee is None or fee.payer == "0x0" or (not fee.split and not fee.octas):
        return
    as_coin = (fee.payer, APT) in stores.coins or not fee.split
    key = (fee.payer, APT if as_coin else APT_METADATA)
    moved.setdefault(key, _Movement("coin" if as_coin else "fungible asset")).fee += fee.octas


def _after(owner: str, asset: str, stores: Stores) -> int | None:
    if (owner, asset) in stores.coins:
        return stores.coins[owner, asset]
    held = [
        balance for store, (kind, balance) in stores.assets.items() if kind == asset and _owns(owner, store, stores)
    ]
    return held[0] if len(held) == 1 else None


def _owns(owner: str, store: str, stores: Stores) -> bool:
    return stores.owners.get(store, store) == owner


def _columns(moved: dict[tuple[str, str], _Movement]) -> dict[str, list[Any]]:
    rows = sorted(moved.items())
    return {
        "owner": [owner for (owner, _), _ in rows],
        "asset": [asset for (_, asset), _ in rows],
        "standard": [movement.standard for _, movement in rows],
        "deposited": [movement.deposited for _, movement in rows],
        "withdrawn": [movement.withdrawn for _, movement in rows],
        "fee_octas": [movement.fee for _, movement in rows],
        "change": [movement.deposited - movement.withdrawn - movement.fee for _, movement in rows],
        "balance_after": [movement.after for _, movement in rows],
    }
