"""Widgets that build and run requests in a notebook. All state is in traits; constructing a widget makes no request.

Names are imported on first use, so that the first form opens without importing pandas and the gas study packages.
"""

from __future__ import annotations

from lazy_loader import attach_stub as _attach_stub

import toolkit.widgets._requirements  # noqa: F401 - first, so that a missing package is an error that names its extra

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
