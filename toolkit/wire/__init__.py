"""What crosses the wire, without I/O: requests, answers, headers, errors, transactions in BCS.

Names are imported on first use, so that reading a header does not load pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.wire.answers import (
        GenericChange,
        GenericTransaction,
        MalformedTransaction,
        UserTransaction,
        decode_events,
        decode_page,
        decode_simulation,
        decode_transactions,
        iterate_transactions,
    )
    from toolkit.wire.bcs_payloads import (
        EncodedEntryFunction,
        EncodedModuleBundle,
        EncodedMultisig,
        EncodedPayloadV2,
        EncodedScript,
        ScriptArgument,
    )
    from toolkit.wire.bcs_requests import (
        decode_view_answer,
        decode_view_request,
        encode_arguments,
        encode_view_answer,
        encode_view_request,
        signed_transaction,
    )
    from toolkit.wire.errors import ERROR_CODES, ErrorBody, decode_error_body
    from toolkit.wire.gas import FeeStatement, GasBreakdown, GasSchedule
    from toolkit.wire.headers import AnswerHeaders, LedgerState, ledger_headers, parse_headers
    from toolkit.wire.keys import PublicKey, Signature
    from toolkit.wire.node import (
        AccountInfo,
        Block,
        GasPriceEstimate,
        NodeInfo,
        decode_account,
        decode_block,
        decode_gas_price_estimate,
        decode_node_info,
    )
    from toolkit.wire.payloads import EntryFunction, ModuleBundle, Multisig, Script, UnknownPayload, parse_payload
    from toolkit.wire.requests import SimulationRequest, TableItemRequest, ViewFunction, canonical_request
    from toolkit.wire.rows import Rows, checked_rows, transaction_batches, transaction_rows
    from toolkit.wire.signature_reader import parse_account_signature, parse_signature
    from toolkit.wire.signatures import (
        AbstractSignature,
        Ed25519Signature,
        FeePayerSignature,
        IndexedSignature,
        MultiAgentSignature,
        MultiEd25519Signature,
        MultiKeySignature,
        NoAccountSignature,
        SingleKeySignature,
        SingleSenderSignature,
        UnknownSignature,
    )
    from toolkit.wire.transactions import RawTransaction, SignedTransaction
    from toolkit.wire.zero_padding import is_zero_padded, zero_padded

_MODULES = {
    "answers": (
        "GenericChange",
        "GenericTransaction",
        "MalformedTransaction",
        "UserTransaction",
        "decode_events",
        "decode_page",
        "decode_simulation",
        "decode_transactions",
        "iterate_transactions",
    ),
    "bcs_payloads": (
        "EncodedEntryFunction",
        "EncodedModuleBundle",
        "EncodedMultisig",
        "EncodedPayloadV2",
        "EncodedScript",
        "ScriptArgument",
    ),
    "bcs_requests": (
        "decode_view_answer",
        "decode_view_request",
        "encode_arguments",
        "encode_view_answer",
        "encode_view_request",
        "signed_transaction",
    ),
    "errors": ("ERROR_CODES", "ErrorBody", "decode_error_body"),
    "gas": ("FeeStatement", "GasBreakdown", "GasSchedule"),
    "headers": ("AnswerHeaders", "LedgerState", "ledger_headers", "parse_headers"),
    "keys": ("PublicKey", "Signature"),
    "node": (
        "AccountInfo",
        "Block",
        "GasPriceEstimate",
        "NodeInfo",
        "decode_account",
        "decode_block",
        "decode_gas_price_estimate",
        "decode_node_info",
    ),
    "payloads": ("EntryFunction", "ModuleBundle", "Multisig", "Script", "UnknownPayload", "parse_payload"),
    "requests": ("SimulationRequest", "TableItemRequest", "ViewFunction", "canonical_request"),
    "rows": ("Rows", "checked_rows", "transaction_batches", "transaction_rows"),
    "signature_reader": ("parse_account_signature", "parse_signature"),
    "signatures": (
        "AbstractSignature",
        "Ed25519Signature",
        "FeePayerSignature",
        "IndexedSignature",
        "MultiAgentSignature",
        "MultiEd25519Signature",
        "MultiKeySignature",
        "NoAccountSignature",
        "SingleKeySignature",
        "SingleSenderSignature",
        "UnknownSignature",
    ),
    "transactions": ("RawTransaction", "SignedTransaction"),
    "zero_padding": ("is_zero_padded", "zero_padded"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ERROR_CODES",
    "AbstractSignature",
    "AccountInfo",
    "AnswerHeaders",
    "Block",
    "Ed25519Signature",
    "EncodedEntryFunction",
    "EncodedModuleBundle",
    "EncodedMultisig",
    "EncodedPayloadV2",
    "EncodedScript",
    "EntryFunction",
    "ErrorBody",
    "FeePayerSignature",
    "FeeStatement",
    "GasBreakdown",
    "GasPriceEstimate",
    "GasSchedule",
    "GenericChange",
    "GenericTransaction",
    "IndexedSignature",
    "LedgerState",
    "MalformedTransaction",
    "ModuleBundle",
    "MultiAgentSignature",
    "MultiEd25519Signature",
    "MultiKeySignature",
    "Multisig",
    "NoAccountSignature",
    "NodeInfo",
    "PublicKey",
    "RawTransaction",
    "Rows",
    "Script",
    "ScriptArgument",
    "Signature",
    "SignedTransaction",
    "SimulationRequest",
    "SingleKeySignature",
    "SingleSenderSignature",
    "TableItemRequest",
    "UnknownPayload",
    "UnknownSignature",
    "UserTransaction",
    "ViewFunction",
    "canonical_request",
    "checked_rows",
    "decode_account",
    "decode_block",
    "decode_error_body",
    "decode_events",
    "decode_gas_price_estimate",
    "decode_node_info",
    "decode_page",
    "decode_simulation",
    "decode_transactions",
    "decode_view_answer",
    "decode_view_request",
    "encode_arguments",
    "encode_view_answer",
    "encode_view_request",
    "is_zero_padded",
    "iterate_transactions",
    "ledger_headers",
    "parse_account_signature",
    "parse_headers",
    "parse_payload",
    "parse_signature",
    "signed_transaction",
    "transaction_batches",
    "transaction_rows",
    "zero_padded",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
