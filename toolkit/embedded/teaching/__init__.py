"""Contracts for courses: a name registry, an order book, a vault with a cheaper upgrade, gold with a price feed."""

from __future__ import annotations

from toolkit.embedded.teaching._gold import CheaperPriceFeed, Desk, Gold, PriceFeed
from toolkit.embedded.teaching._order_book import OrderBook
from toolkit.embedded.teaching._registry import Registry, Trial
from toolkit.embedded.teaching._vault import CheaperVault, Vault

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
