"""The checks before a transaction runs, and the snapshot of the ledger that they and executions read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.embedded.framework.account import Account, NonceValidation
from toolkit.embedded.framework.aptos_coin import APTOS_COIN
from toolkit.embedded.framework.coin import Coin
from toolkit.embedded.framework.multisig_account import MultisigAccount
from toolkit.embedded.meter import FreeMeter
from toolkit.embedded.session import Session
from toolkit.embedded.state import resource_key
from toolkit.embedded.transaction import encode_stored
from toolkit.move import address_to_bytes, decode_bcs
from toolkit.wire import authentication_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.embedded.code import CodeSet
    from toolkit.embedded.schedule import Schedule
    from toolkit.embedded.state import VersionedState
    from toolkit.embedded.transaction import Transaction

__all__ = ["NOBODY", "LedgerSnapshot", "find_refusal"]

#: The fee payer of a simulation that charges nobody.
NOBODY = "0x0"
_MICROSECONDS = 1_000_000


class LedgerSnapshot(NamedTuple):
    """One version of the ledger, as an execution reads it."""

    state: VersionedState
    version: int
    code: CodeSet
    schedule: Schedule
    timestamp_us: int
    chain_id: int


def find_refusal(snapshot: LedgerSnapshot, transaction: Transaction, *, check_keys: bool) -> str | None:
    """Return the status name of the first check a transaction fails, or None.

    Parameters
    ----------
    snapshot : LedgerSnapshot
    transaction : Transaction
    check_keys : bool
        Whether public keys must be those of the accounts; a signer without one passes, as in a node's simulation.
    """
    return next((status for failed, status in _checks(snapshot, transaction, check_keys) if failed), None)


def _checks(snapshot: LedgerSnapshot, transaction: Transaction, check_keys: bool) -> Iterator[tuple[bool, str]]:  # noqa: FBT001 - only passed on
    """Yield the checks in order: whether it fails, and the status it fails with."""
    raw, schedule = transaction.raw, snapshot.schedule
    price, gas = raw.gas_unit_price, raw.max_gas_amount
    yield transaction.size > schedule["txn.max_transaction_size_in_bytes"], "EXCEEDED_MAX_TRANSACTION_SIZE"
    yield gas > schedule["txn.maximum_number_of_gas_units"], "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND"
    too_little = gas * schedule.scaling < schedule["txn.min_transaction_gas_units"]
    yield too_little, "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"
    yield price < schedule["txn.min_price_per_gas_unit"], "GAS_UNIT_PRICE_BELOW_MIN_BOUND"
    yield price > schedule["txn.max_price_per_gas_unit"], "GAS_UNIT_PRICE_ABOVE_MAX_BOUND"
    yield raw.chain_id != snapshot.chain_id, "BAD_CHAIN_ID"
    yield raw.expiration_timestamp_secs * _MICROSECONDS <= snapshot.timestamp_us, "TRANSACTION_EXPIRED"
    yield check_keys and _has_foreign_key(snapshot, transaction), "INVALID_AUTH_KEY"
    if transaction.nonce is not None:
        yield _nonce_used(snapshot, raw.sender, transaction.nonce), "NONCE_ALREADY_USED"
    else:
        expected = _sequence_number(snapshot, raw.sender)
        yield raw.sequence_number < expected, "SEQUENCE_NUMBER_TOO_OLD"
        yield raw.sequence_number > expected, "SEQUENCE_NUMBER_TOO_NEW"
    if transaction.multisig_address is not None:
        problem = _multisig_problem(snapshot, transaction, transaction.multisig_address)
        yield problem is not None, problem or ""
    too_poor = transaction.payer != NOBODY and not _can_pay(snapshot, transaction.payer, gas * price)
    yield too_poor, "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE"


def _account(snapshot: LedgerSnapshot, address: str) -> dict[str, Any] | None:
    """Return an account, or None before its first transaction."""
    kind = snapshot.code.struct(Account.Account, ())
    value = snapshot.state.read(resource_key(address, kind.tag), snapshot.version)
    return None if value is None else dict(decode_bcs(kind.layout, value.data))


def _sequence_number(snapshot: LedgerSnapshot, address: str) -> int:
    account = _account(snapshot, address)
    return 0 if account is None else int(account["sequence_number"])


def _has_foreign_key(snapshot: LedgerSnapshot, transaction: Transaction) -> bool:
    """Tell whether a signer's public key is not the one of its account."""
    for address, signature in transaction.authenticators():
        key = authentication_key(signature)
        if key is not None:
            account = _account(snapshot, address)
            if key != (address_to_bytes(address) if account is None else account["authentication_key"]):
                return True
    return False


def _can_pay(snapshot: LedgerSnapshot, address: str, octas: int) -> bool:
    """Tell whether an account holds so much: nearly always its coins alone do, so they are looked at first."""
    kind = snapshot.code.struct(Coin.CoinStore, (APTOS_COIN,))
    value = snapshot.state.read(resource_key(address, kind.tag), snapshot.version)
    coins = 0 if value is None else int(decode_bcs(kind.layout, value.data)["coin"]["value"])
    return coins >= octas or _free_session(snapshot).module(Coin).balance(APTOS_COIN, address) >= octas


def _nonce_used(snapshot: LedgerSnapshot, sender: str, nonce: int) -> bool:
    now = snapshot.timestamp_us // _MICROSECONDS
    return _free_session(snapshot).module(NonceValidation).is_used(sender, nonce, now)


def _multisig_problem(snapshot: LedgerSnapshot, transaction: Transaction, address: str) -> str | None:
    given = None if transaction.executable is None else encode_stored(transaction.executable)
    module = _free_session(snapshot).module(MultisigAccount)
    return module.find_problem(transaction.raw.sender, address, given)


def _free_session(snapshot: LedgerSnapshot) -> Session:
    return Session(snapshot.state, snapshot.version, snapshot.code, FreeMeter(snapshot.schedule), seed=b"")
