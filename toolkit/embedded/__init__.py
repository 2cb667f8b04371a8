"""The embedded ledger: versioned state, contracts written in Python, a gas model, and a node that serves it over HTTP.

`Ledger` stores transactions and state in memory; `serve` and `start` serve its REST API on loopback. Contracts are
subclasses of `Module`. Everything needed to write them can be imported from here: the decorators `entry`, `view`,
`public`, `friend` and `private`; the base classes `Struct`, `Resource`, `Event` and `Enum`; the Move types for
annotations (also in `toolkit.embedded.types`); abort codes; and the framework modules that contracts call most often.
The methods of `Module` read and write resources: `exists`, `borrow`, `borrow_mut`, `move_to`, `move_from`.

Names are imported on first use. A program that uses a ledger without a node therefore never imports a web server.
"""

from __future__ import annotations

from lazy_loader import attach_stub as _attach_stub

from toolkit.errors import Aborted as Aborted
from toolkit.errors import ContractError as ContractError

__getattr__, _, _lazy = _attach_stub(__name__, __file__)
__all__ = sorted(["Aborted", "ContractError", *_lazy])  # noqa: PLE0605 - a list


def __dir__() -> list[str]:
    return list(__all__)
