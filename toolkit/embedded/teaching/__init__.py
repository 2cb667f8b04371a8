"""Contracts to learn from: a name registry, an order book, a vault that gets cheaper, gold, a module taken back."""

from __future__ import annotations

from toolkit.embedded.teaching.gold import Gold
from toolkit.embedded.teaching.order_book import OrderBook
from toolkit.embedded.teaching.registry import Registry
from toolkit.embedded.teaching.trial import Trial
from toolkit.embedded.teaching.vault import CheaperVault, Vault

__all__ = ["CheaperVault", "Gold", "OrderBook", "Registry", "Trial", "Vault"]
