"""Requests, responses, signatures and transactions of the REST API in JSON and BCS, without I/O.

You build `ViewFunction`, `TableItemRequest` and `SimulationRequest`; the other classes appear in results.
`SignedTransaction` is the BCS form of a transaction.

Names are imported on first use, so that importing the package is fast and reading a header does not import pydantic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit._present.names import imported_on_use as _imported_on_use

if TYPE_CHECKING:
    from toolkit.wire._bcs_requests import RawTransaction as RawTransaction
    from toolkit.wire._bcs_requests import SignedTransaction as SignedTransaction
    from toolkit.wire._gas import FeeStatement as FeeStatement
    from toolkit.wire._gas import GasBreakdown as GasBreakdown
    from toolkit.wire._gas import GasSchedule as GasSchedule
    from toolkit.wire._headers import LedgerState as LedgerState
    from toolkit.wire._requests import EntryFunction as EntryFunction
    from toolkit.wire._requests import Multisig as Multisig
    from toolkit.wire._requests import Script as Script
    from toolkit.wire._requests import SimulationRequest as SimulationRequest
    from toolkit.wire._requests import TableItemRequest as TableItemRequest
    from toolkit.wire._requests import ViewFunction as ViewFunction
    from toolkit.wire._responses import AccountInfo as AccountInfo
    from toolkit.wire._responses import BlockInfo as BlockInfo
    from toolkit.wire._responses import GasPriceEstimate as GasPriceEstimate
    from toolkit.wire._responses import NodeInfo as NodeInfo
    from toolkit.wire._signatures import AbstractSignature as AbstractSignature
    from toolkit.wire._signatures import AccountSignature as AccountSignature
    from toolkit.wire._signatures import Ed25519Signature as Ed25519Signature
    from toolkit.wire._signatures import FeePayerSignature as FeePayerSignature
    from toolkit.wire._signatures import IndexedSignature as IndexedSignature
    from toolkit.wire._signatures import MultiAgentSignature as MultiAgentSignature
    from toolkit.wire._signatures import MultiEd25519Signature as MultiEd25519Signature
    from toolkit.wire._signatures import MultiKeySignature as MultiKeySignature
    from toolkit.wire._signatures import NoAccountSignature as NoAccountSignature
    from toolkit.wire._signatures import PublicKey as PublicKey
    from toolkit.wire._signatures import Signature as Signature
    from toolkit.wire._signatures import SingleKeySignature as SingleKeySignature
    from toolkit.wire._signatures import SingleSenderSignature as SingleSenderSignature
    from toolkit.wire._signatures import TransactionSignature as TransactionSignature
    from toolkit.wire._signatures import zero_padded as zero_padded
    from toolkit.wire._transactions import UserTransaction as UserTransaction

# Public names by module, separated by spaces.
_HOMES = {
    "_bcs_requests": "RawTransaction SignedTransaction",
    "_gas": "FeeStatement GasBreakdown GasSchedule",
    "_headers": "LedgerState",
    "_requests": "EntryFunction Multisig Script SimulationRequest TableItemRequest ViewFunction",
    "_responses": "AccountInfo BlockInfo GasPriceEstimate NodeInfo",
    "_signatures": (
        "AbstractSignature AccountSignature Ed25519Signature FeePayerSignature IndexedSignature MultiAgentSignature "
        "MultiEd25519Signature MultiKeySignature NoAccountSignature PublicKey Signature SingleKeySignature "
        "SingleSenderSignature TransactionSignature zero_padded"
    ),
    "_transactions": "UserTransaction",
}
__getattr__, __dir__, __all__ = _imported_on_use(__name__, _HOMES)
