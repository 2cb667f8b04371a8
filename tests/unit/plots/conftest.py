"""Figures are drawn without a window, and closed after each test that asks for `figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def figures() -> Iterator[None]:
    """Draw with the Agg backend; close every figure afterwards."""
    mpl.use("agg")
    yield
    plt.close("all")
