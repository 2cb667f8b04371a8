"""Balance changes of a transaction, of coins and fungible assets per owner, from its events and state changes."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError, ToolkitError
from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import BALANCES
from toolkit.move import parse_address, parse_type_tag
from toolkit.move._json_text import parse_json
from toolkit.wire import FeePayerSignature, transaction_rows
from toolkit.wire._u64 import parse_u64

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from toolkit.wire import UserTransaction

__all__ = ["APT", "APT_METADATA", "Stores", "balance_frame"]

APT = "0x1::aptos_coin::AptosCoin"
APT_METADATA = "0xa"
_COIN_STORE = re.compile(r"0x1::coin::CoinStore<(.+)>")
_SHAPE_ERRORS = (KeyError, TypeError, AttributeError, ToolkitError)
"""Errors of events and stores of another shape, on other chains; such events are ignored."""
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
        columns = (changes[name] for name in ("address", "resource_type", "data"))
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


def balance_frame(transaction: UserTransaction) -> pd.DataFrame:
    """Return one row per owner and asset whose balance a transaction changes, fees included.

    Parameters
    ----------
    transaction : UserTransaction
        Simulated or committed.

    Returns
    -------
    DataFrame
        Columns of `BALANCES`, sorted by owner, then asset.

    Notes
    -----
    ``change`` is deposited - withdrawn - fee. The fee is gas used times price, less the storage refund; no
    event reports it. Deposits and withdrawals are those of the coin and fungible asset events, which have the account
    or the store. If the transaction did not write the store of an event, the owner is the address of the store.

    Each movement counts once, also on nodes that report it twice: a coin event of an account whose coin store was not
    written is left out if a fungible asset event has the same owner and amount, and a last movement that is exactly the
    fee of the payer is the fee.
    """
    _, changes, events = transaction_rows([transaction])
    stores = Stores(changes)
    moved: dict[tuple[str, str], _Movement] = {}
    for owner, asset, standard, amount in _counted_once(list(_movements(events, stores)), transaction, stores):
        movement = moved.setdefault((owner, asset), _Movement(standard))
        if amount >= 0:
            movement.deposited += amount
        else:
            movement.withdrawn -= amount
    _add_fee(transaction, stores, moved)
    for (owner, asset), movement in moved.items():
        movement.after = _after(owner, asset, stores)
    return rows_frame(BALANCES, _columns(moved))


def _counted_once(found: list[_Moved], transaction: UserTransaction, stores: Stores) -> Iterator[_Moved]:
    """Yield the movements without second reports of one of them, as some nodes emit."""
    split = transaction.gas_breakdown()
    fee = None if split is None else (_payer(transaction), APT_METADATA, "fungible asset", -split.net_octas)
    if found and found[-1] == fee and found[-1][3]:
        found = found[:-1]
    assets = Counter((owner, amount) for owner, _, standard, amount in found if standard == "fungible asset")
    for owner, asset, standard, amount in found:
        if standard == "coin" and (owner, asset) not in stores.coins and assets[owner, amount] > 0:
            assets[owner, amount] -= 1
            continue
        yield owner, asset, standard, amount


def _movements(events: dict[str, list[Any]], stores: Stores) -> Iterator[_Moved]:
    """Yield (owner, asset, standard, signed amount) for each event that moves a balance."""
    columns = (events[name] for name in ("type", "account_address", "creation_number", "data"))
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


def _add_fee(transaction: UserTransaction, stores: Stores, moved: dict[tuple[str, str], _Movement]) -> None:
    split = transaction.gas_breakdown()
    payer = _payer(transaction)
    # Transactions before 2023 have no FeeStatement: their fee was gas used times price, including storage.
    fee = transaction.gas_used * transaction.gas_unit_price if split is None else split.net_octas
    if payer == "0x0" or (split is None and not fee):
        return
    as_coin = (payer, APT) in stores.coins or split is None
    key = (payer, APT if as_coin else APT_METADATA)
    moved.setdefault(key, _Movement("coin" if as_coin else "fungible asset")).fee += fee


def _payer(transaction: UserTransaction) -> str:
    try:
        signature = transaction.signature
    except InputError:
        signature = None
    if isinstance(signature, FeePayerSignature):
        return parse_address(signature.fee_payer_address)
    return parse_address(transaction.sender)


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
