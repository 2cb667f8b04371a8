"""What fetch functions and studies read instead of a node: transactions that were stored before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.client._transaction_data import TransactionFrames
    from toolkit.client._versions import Versions


class TransactionStore(ABC):
    """Committed transactions that were read before; `toolkit.Archive` is one."""

    @property
    @abstractmethod
    def node(self) -> Node:
        """A node that answers from the store."""

    @abstractmethod
    def transactions(self, versions: Versions) -> TransactionFrames:
        """Return transactions, as `fetch_transactions` does."""

    @abstractmethod
    def events_of(self, event_type: str, versions: Versions) -> pd.DataFrame:
        """Return the events of a type, as `fetch_events` does."""
