"""The embedded ledger: versioned state, contracts written in Python, a gas model, and a node that serves it over HTTP.

`Ledger` stores transactions and state in memory; `serve` and `start` serve its REST API on loopback. Contracts are
subclasses of `Module`. Everything needed to write them can be imported from here: the decorators `entry`, `view`,
`public`, `friend` and `private`; the base classes `Struct`, `Resource`, `Event` and `Enum`; the Move types for
annotations (also in `toolkit.embedded.types`); abort codes; and the framework modules that contracts call most often.
The methods of `Module` read and write resources: `exists`, `borrow`, `borrow_mut`, `move_to`, `move_from`.

Names are imported on first use. A program that uses a ledger without a node therefore never imports a web server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit._present.names import imported_on_use as _imported_on_use

if TYPE_CHECKING:
    from toolkit.embedded import types as types
    from toolkit.embedded._chain import Milestone as Milestone
    from toolkit.embedded._contract import Module as Module
    from toolkit.embedded._contract import StandInScript as StandInScript
    from toolkit.embedded._contract import entry as entry
    from toolkit.embedded._contract import friend as friend
    from toolkit.embedded._contract import private as private
    from toolkit.embedded._contract import public as public
    from toolkit.embedded._contract import script as script
    from toolkit.embedded._contract import view as view
    from toolkit.embedded._ledger import Ledger as Ledger
    from toolkit.embedded._ledger import LedgerAccount as LedgerAccount
    from toolkit.embedded._ledger import PublishedContract as PublishedContract
    from toolkit.embedded._profile import GasProfile as GasProfile
    from toolkit.embedded._transaction import CommittedTransaction as CommittedTransaction
    from toolkit.embedded._transaction import LedgerBlock as LedgerBlock
    from toolkit.embedded._transaction import LedgerChange as LedgerChange
    from toolkit.embedded._transaction import LedgerEvent as LedgerEvent
    from toolkit.embedded._vm_status import AbortCode as AbortCode
    from toolkit.embedded._vm_status import already_exists as already_exists
    from toolkit.embedded._vm_status import invalid_argument as invalid_argument
    from toolkit.embedded._vm_status import invalid_state as invalid_state
    from toolkit.embedded._vm_status import not_found as not_found
    from toolkit.embedded._vm_status import out_of_range as out_of_range
    from toolkit.embedded._vm_status import permission_denied as permission_denied
    from toolkit.embedded._vm_status import resource_exhausted as resource_exhausted
    from toolkit.embedded.framework._account import Account as Account
    from toolkit.embedded.framework._coin import APTOS_COIN as APTOS_COIN
    from toolkit.embedded.framework._coin import Coin as Coin
    from toolkit.embedded.framework._configuration import Timestamp as Timestamp
    from toolkit.embedded.framework._fungible_asset import FungibleAsset as FungibleAsset
    from toolkit.embedded.framework._fungible_asset import PrimaryFungibleStore as PrimaryFungibleStore
    from toolkit.embedded.framework._object import OBJECT_GROUP as OBJECT_GROUP
    from toolkit.embedded.framework._object import ObjectModule as ObjectModule
    from toolkit.embedded.framework._values import EventHandle as EventHandle
    from toolkit.embedded.http._faults import Fault as Fault
    from toolkit.embedded.http._faults import Faults as Faults
    from toolkit.embedded.http._faults import parse_fault as parse_fault
    from toolkit.embedded.http._faults import parse_latency as parse_latency
    from toolkit.embedded.http._faults import parse_schedule as parse_schedule
    from toolkit.embedded.http._node import Limits as Limits
    from toolkit.embedded.http._server import Server as Server
    from toolkit.embedded.http._server import serve as serve
    from toolkit.embedded.http._server import start as start
    from toolkit.embedded.types import *  # noqa: F403 - its `__all__` is what contracts are written with
    from toolkit.errors import Aborted as Aborted
    from toolkit.errors import ContractError as ContractError

_HOMES = {
    "_chain": "Milestone",
    "_compiler": "ContractError",
    "_contract": "Module StandInScript entry friend private public script view",
    "framework._account": "Account",
    "framework._configuration": "Timestamp",
    "framework._coin": "APTOS_COIN Coin",
    "framework._fungible_asset": "FungibleAsset PrimaryFungibleStore",
    "framework._object": "OBJECT_GROUP ObjectModule",
    "framework._values": "EventHandle",
    "http._faults": "Fault Faults parse_fault parse_latency parse_schedule",
    "http._node": "Limits",
    "http._server": "Server serve start",
    "_ledger": "Aborted Ledger LedgerAccount PublishedContract",
    "_profile": "GasProfile",
    "_transaction": "CommittedTransaction LedgerBlock LedgerChange LedgerEvent",
    "types": (
        "types T0 T1 Enum Event Object Option Resource String Struct Table TypeArgument address i8 i16 i32 i64 i128 "
        "i256 signer u8 u16 u32 u64 u128 u256 vector"
    ),
    "_vm_status": (
        "AbortCode already_exists invalid_argument invalid_state not_found out_of_range permission_denied "
        "resource_exhausted"
    ),
}
"""Public names by module, separated by spaces."""
__getattr__, __dir__, __all__ = _imported_on_use(__name__, _HOMES)
