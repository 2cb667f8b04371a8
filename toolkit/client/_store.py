"""Stored transactions, which fetch functions and studies can read instead of a node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.client._reads import Reads
    from toolkit.client._transaction_data import TransactionFrames
    from toolkit.client._versions import Versions


class TransactionStore(ABC):
    """Committed transactions that were stored earlier; `toolkit.Archive` is one implementation."""

    @property
    @abstractmethod
    def node(self) -> Reads:
        """The node that reads from the store."""

    @abstractmethod
    def transactions(self, versions: Versions) -> TransactionFrames:
        """Return transactions, as `fetch_transactions` does."""

    @abstractmethod
    def events_of(self, event_type: str, versions: Versions) -> pd.DataFrame:
        """Return the events of a type, as `fetch_events` does."""
