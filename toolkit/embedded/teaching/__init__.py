"""Contracts to learn from: names, an order book, a vault that gets cheaper, gold and its price, a module taken back."""

from __future__ import annotations

from toolkit.embedded.teaching.gold import Gold
from toolkit.embedded.teaching.order_book import OrderBook
from toolkit.embedded.teaching.price_feed import CheaperPriceFeed, Desk, PriceFeed
from toolkit.embedded.teaching.registry import Registry
from toolkit.embedded.teaching.trial import Trial
from toolkit.embedded.teaching.vault import CheaperVault, Vault

__all__ = [
    "CheaperPriceFeed",
    "CheaperVault",
    "Desk",
    "Gold",
    "OrderBook",
    "PriceFeed",
    "Registry",
    "Trial",
    "Vault",
]
