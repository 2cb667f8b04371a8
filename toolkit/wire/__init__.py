"""Requests, responses, signatures and transactions of the REST API in JSON and BCS, without I/O.

You build `ViewFunction`, `TableItemRequest` and `SimulationRequest`; the other classes appear in results.
`SignedTransaction` is the BCS form of a transaction.

Names are imported on first use, so that importing the package is fast and reading a header does not import pydantic.
"""

from __future__ import annotations

from lazy_loader import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
