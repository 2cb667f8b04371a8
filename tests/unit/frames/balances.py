"""The balance changes of decoded transactions."""

from __future__ import annotations

import pandas as pd

from toolkit.frames import _balances
from toolkit.frames._transactions import transaction_frames


def balance_frame(*transactions, identity=(), read=None) -> pd.DataFrame:
    """Return the balance changes of transactions, simulated or committed; the column ``request`` is the position."""
    requests = range(len(transactions))
    return _balances.balance_frame(
        *transaction_frames(transactions, requests=requests), by="request", identity=identity, read=read
    )
