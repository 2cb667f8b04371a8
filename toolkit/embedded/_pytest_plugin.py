"""The pytest fixture ``ledger``, which pytest finds if the distribution is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from toolkit.embedded import Ledger


@pytest.fixture
def ledger() -> Ledger:
    """Return a new embedded ledger for tests of contracts.

    A transaction that fails raises `Aborted`, except with ``check=False``. A sender without an account is funded.
    """
    from toolkit.embedded import Ledger  # imported on use: most tests of a project need no ledger

    return Ledger(raise_on_failure=True, fund_new_senders=True)
