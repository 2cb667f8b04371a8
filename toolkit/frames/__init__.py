"""Typed DataFrames from decoded responses, without I/O. Frames that are passed in are never modified.

What modules that do not need pandas use is imported on first use: importing this package is fast.
"""

from __future__ import annotations

from lazy_loader import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
