"""The pytest fixture ``ledger``; pytest finds it where the distribution is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from toolkit.embedded import Ledger


@pytest.fixture
def ledger() -> Ledger:
    """Return a new embedded ledger for a test of contracts.

    A transaction that fails raises `Aborted`, except with ``check=False``; a sender without an account is funded.
    """
    from toolkit.embedded import Ledger  # imported on use: most tests of a project need no ledger

    return Ledger(raise_on_failure=True, fund_new_senders=True)
