"""Why a transaction fails, in words, and what its sender can change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.move import parse_address
from toolkit.wire._aborts import Abort
from toolkit.wire._requests import with_estimates

if TYPE_CHECKING:
    from toolkit.wire import SimulationRequest, UserTransaction

_EXECUTION = re.compile(
    r"Execution failed in (?P<function>\S{1,400}) \(on instruction (?P<instruction>\w+)[^\n]{0,200}?\) at code offset"
)
_PLACE = re.compile(r"resource (?:from|at|to|into) (?:0x)?([0-9a-f]{1,64})\b")
_MODULE = re.compile(r"\bModule (?:0x)?([0-9a-f]{1,64})::(\w{1,200}) doesn't exist")
_BELOW_MIN_GAS = "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"
_LINKER = "LINKER_ERROR"
# What a status of the VM means, by the text that it contains.
_STATUS = {
    "Out of gas": "it ran out of gas; raise max_gas_amount",
    "INVALID_AUTH_KEY": (
        "the public key is not the key of its account; check public_key, secondary_public_keys and "
        "fee_payer_public_key, or leave the keys out"
    ),
    "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE": (
        "the payer cannot afford max_gas_amount at this price; lower max_gas_amount, or set a fee_payer"
    ),
    "GAS_UNIT_PRICE_BELOW_MIN_BOUND": (
        "gas_unit_price is below the minimum of the network; raise it, or leave it out to have it estimated"
    ),
    "GAS_UNIT_PRICE_ABOVE_MAX_BOUND": (
        "gas_unit_price is above the maximum of the network; lower it, or leave it out to have it estimated"
    ),
    "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND": "max_gas_amount is above the maximum of the network; lower it",
    _BELOW_MIN_GAS: "max_gas_amount is below the minimum of a transaction of this size; raise it",
    "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH": (
        "the function takes another number of signers than the transaction has; check secondary_signers"
    ),
    "SIGNERS_CONTAIN_DUPLICATES": (
        "one address is among the signers more than once; list each of secondary_signers once, and not the sender"
    ),
    "SEQUENCE_NUMBER_TOO_OLD": "the sequence number was used already; leave it out to have it filled in",
    "SEQUENCE_NUMBER_TOO_NEW": "the sequence number is ahead of the account's; leave it out to have it filled in",
    "NONCE_ALREADY_USED": "the replay protection nonce was used already; pass another replay_protection_nonce",
    "TRANSACTION_EXPIRATION_TOO_FAR_IN_FUTURE": (
        "the expiration is too far ahead: with a nonce at most 60 s after the ledger's time; leave it out to have it "
        "filled in"
    ),
    "TRANSACTION_EXPIRED": "the expiration is before the ledger's time; leave it out to have it filled in",
    "SENDING_ACCOUNT_DOES_NOT_EXIST": "the sender's account does not exist",
    "ACCOUNT_NOT_MULTISIG": "multisig_address is not a multisig account; check the address",
    _LINKER: "the transaction needs a module that does not exist; check function and type arguments",
}
_MISSING_RESOURCE = frozenset(
    {"MoveFrom", "MoveFromGeneric", "ImmBorrowGlobal", "ImmBorrowGlobalGeneric"}
    | {"MutBorrowGlobal", "MutBorrowGlobalGeneric"}
)
_PRESENT_RESOURCE = frozenset({"MoveTo", "MoveToGeneric"})


def abort_parts(vm_status: str) -> tuple[str | None, str]:
    """Return the contract's own sentence about a Move abort, and module, name, category and reason.

    The second is empty if the status is not an abort.
    """
    abort = Abort.find(vm_status)
    if abort is None:
        return None, ""
    code, category = abort.code, abort.category
    kind = f", category {code >> 16 & 0xFF} ({category}), reason {code & 0xFFFF}" if category else ""
    kind += f", {abort.native}" if abort.native else ""
    where = f" in {abort.module}" if abort.module else ""
    name = f" {abort.name}" if abort.name else ""
    aborted = f"the code{where} aborted:{name} code {code:#x}{kind}"
    return abort.sentence, aborted


def failure_reason(request: SimulationRequest, transaction: UserTransaction) -> str | None:
    """Return why a simulated transaction fails and what to change; None if the status is not a known one."""
    status = transaction.vm_status
    sentence, aborted = abort_parts(status)
    if found := (f"{sentence} ({aborted})" if sentence else aborted) or _execution_words(status):
        return found
    known = next((name for name in _STATUS if name in status), None)
    if known == _BELOW_MIN_GAS and with_estimates(request).estimate_max_gas_amount:
        return (
            f"the sender {request.sender} can afford no gas: the node estimated max_gas_amount="
            f"{transaction.max_gas_amount} from its balance at {transaction.gas_unit_price} octas each; set a "
            "fee_payer, a lower limit (max_gas_amount and gas_unit_price) that the balance covers, or another sender"
        )
    missing = _MODULE.search(status) if known == _LINKER else None
    if missing is not None:
        module = f"{parse_address('0x' + missing[1])}::{missing[2]}"
        return f"the module {module}, which the transaction needs, does not exist; check function and type arguments"
    return None if known is None else _STATUS[known]


def _execution_words(status: str) -> str | None:
    """Return a failed instruction in words; None if the status is not one."""
    match = _EXECUTION.search(status)
    if match is None:
        return None
    place = _PLACE.search(status, match.end())
    where = f" at {parse_address('0x' + place[1])}" if place else ""
    where += f": instruction {match['instruction']} of {match['function']} failed"
    if match["instruction"] in _MISSING_RESOURCE:
        return f"the resource that the code reads or moves does not exist{where}"
    if match["instruction"] in _PRESENT_RESOURCE:
        return f"the resource that the code creates exists already{where}"
    return f"instruction {match['instruction']} of {match['function']} failed"
