"""The balance changes of one decoded transaction."""

from __future__ import annotations

import pandas as pd

from toolkit.frames import _balances
from toolkit.frames._transactions import transaction_frames


def balance_frame(transaction) -> pd.DataFrame:
    """Return the balance changes of a transaction, simulated or committed."""
    return _balances.balance_frame(*transaction_frames([transaction], requests=[0]), by="request")
