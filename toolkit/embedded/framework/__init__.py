"""The modules of the framework at 0x1 that clients and courses need, written as contracts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.embedded._contract import Module
from toolkit.embedded.framework import _configuration, _multisig_account  # noqa: F401 - all others are imported by it
from toolkit.embedded.framework._account import Account, NonceValidation
from toolkit.embedded.framework._coin import APTOS_COIN, CORE_RESOURCES, OCTAS_PER_APT, AptosCoin, Coin
from toolkit.embedded.types import is_framework
from toolkit.move import parse_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.embedded._chain import Settings
    from toolkit.embedded._meter import Schedule
    from toolkit.embedded._session import Session

__all__ = ["ACCOUNT_NAMES", "DEFAULT_ACCOUNTS", "FRAMEWORK", "FRAMEWORK_PACKAGE", "genesis"]

FRAMEWORK_PACKAGE = "AptosFramework"
"""Name of the package that contains all framework modules."""

DEFAULT_ACCOUNTS: dict[str, int] = {
    "0x1": 10_000 * OCTAS_PER_APT,
    "0xa550c18": 1_000_000 * OCTAS_PER_APT,
    "0xa11ce": 10_000 * OCTAS_PER_APT,
    "0xb0b": 10_000 * OCTAS_PER_APT,
}
"""Accounts of a new ledger and their balances in octas: governance, the minting account, alice and bob."""

ACCOUNT_NAMES = {
    "0x1": "framework",
    parse_address("0xa550c18"): "minting",
    parse_address("0xa11ce"): "alice",
    parse_address("0xb0b"): "bob",
}
"""Names of the accounts of every new ledger, by canonical address."""

FRAMEWORK = tuple(sorted(filter(is_framework, Module.__subclasses__()), key=lambda one: one.__name__))
"""The modules published at genesis."""


def genesis(
    session: Session,
    *,
    settings: Settings,
    schedule: Schedule,
    features: Iterable[int],
    accounts: Sequence[tuple[str, int]],
) -> None:
    """Write the initial state: time, chain id, gas schedule, features, the gas coin, and accounts.

    Parameters
    ----------
    session : Session
        An execution without charges.
    settings : Settings
        Settings of the chain, such as the chain id and the length of an epoch.
    schedule : Schedule
        The initial gas schedule.
    features : iterable of int
        Numbers of the features that are on.
    accounts : sequence of (address, octas)
        Accounts to create, with their balances.
    """
    session.module(_configuration.Timestamp).set_time(0)
    session.module(_configuration.ChainId).initialize(settings.chain_id)
    session.module(_configuration.Reconfiguration).initialize()
    session.module(NonceValidation).initialize()
    session.module(_configuration.Block).initialize(settings.epoch_us)
    session.module(_configuration.GasSchedule).initialize(schedule)
    session.module(_configuration.Features).initialize(features)
    coins = session.module(Coin)
    coins.initialize(APTOS_COIN, "0x1", "Aptos Coin", "APT", 8)
    coins.create_pairing(APTOS_COIN)
    mint, create_account = session.module(AptosCoin).mint, session.module(Account).create_account
    for address, octas in accounts:
        create_account(address)
        mint(CORE_RESOURCES, address, octas)
    definitions = tuple(module.definition for module in FRAMEWORK)
    registry = session.module(_configuration.Code)
    registry.publish_package("0x1", FRAMEWORK_PACKAGE, definitions, written=definitions, deps=())
