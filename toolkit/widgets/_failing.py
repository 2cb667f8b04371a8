"""Why a simulation would fail, in the words of the form: the reason, the field that it is about, and remedies."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from toolkit import move
from toolkit._present.text import short_addresses
from toolkit.client._failures import abort_parts, failure_reason
from toolkit.errors import ToolkitError
from toolkit.frames._balances import APT, APT_METADATA
from toolkit.widgets._html import Html, paragraph, safe

if TYPE_CHECKING:
    from toolkit.client._node import Node
    from toolkit.client._simulation import Simulation
    from toolkit.widgets._functions import ResolvedCall
    from toolkit.widgets._known import Known
    from toolkit.widgets._simulation_draft import SimulationDraft


# The field that caused a failure, by what the status contains; the second if the first is not shown.
_CAUSES = {
    "SEQUENCE_NUMBER": ("sequence_number", "replay"),
    "NONCE": ("replay_protection_nonce", "replay"),
    "TRANSACTION_EXP": ("expiration_timestamp_secs",),
    "MAX_GAS_UNITS": ("max_gas_amount", "estimate_max_gas_amount"),
    "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE": ("max_gas_amount", "estimate_max_gas_amount"),
    "Out of gas": ("max_gas_amount", "estimate_max_gas_amount"),
    "GAS_UNIT_PRICE": ("gas_unit_price", "estimate_gas_unit_price"),
    "SENDING_ACCOUNT": ("sender",),
    "INVALID_AUTH_KEY": ("sender_key.shape",),
    "NUMBER_OF_SIGNER": ("secondary",),
    "SIGNERS_CONTAIN": ("secondary",),
    "NOT_MULTISIG": ("multisig_address",),
    "LINKER_ERROR": ("function",),
    "Move abort": ("function",),
}
# Statuses of a payer whose balance does not cover the maximum.
_CANNOT_PAY = ("INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE", "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS")
# What the form calls the parameters that messages for Python name.
_LABELS = {
    "secondary_public_keys": "the keys of Secondary signers",
    "fee_payer_public_key": "Fee payer signs with",
    "public_key": "Sender signs with",
    "secondary_signers": "Secondary signers",
    "max_gas_amount": "Max gas amount",
    "gas_unit_price": "Gas unit price",
    "fee_payer": "Fee payer",
    "replay_protection_nonce": "Nonce",
    "multisig_address": "Multisig account",
}
_PARAMETER = re.compile(rf"\b(?:{'|'.join(_LABELS)})\b")
# What a sentence of a contract is about, by words in it: the one argument of that type.
_ABOUT: dict[str, tuple[type, ...]] = {
    r"amount|value|price|balance|quantity|number|size|small|large|zero|minimum|maximum": (move.UInt, move.Int),
    r"name|string|text|title": (move.String,),
    r"address|account|recipient|receiver|owner": (move.Address, move.ObjectOf),
}


class Failure(Struct, frozen=True):
    """Why a simulation would fail.

    Attributes
    ----------
    words : str
        The reason: the contract's own sentence, if it has one.
    detail : str
        Status and code.
    path : str
        The field that it is about; empty if none is shown.
    remedies : tuple of (str, str)
        What the form can do about it: its name, and the text of its button.
    """

    words: str
    detail: str
    path: str = ""
    remedies: tuple[tuple[str, str], ...] = ()

    def to_html(self) -> Html:
        """Return the reason as a headline, the detail in small print, and buttons of the remedies."""
        buttons = "".join(
            f'<button type="button" class="ltk-small" data-send="remedy" data-name="{name}">{safe(text)}</button> '
            for name, text in self.remedies
        )
        head = f'<strong class="ltk-title">{safe(self.words)}.</strong>'
        return Html(f"{head}{paragraph(self.detail)}{buttons and f'<p>{buttons}</p>'}")


def failure_of(
    simulation: Simulation, draft: SimulationDraft, call: ResolvedCall | None, known: Known, node: Node
) -> Failure | None:
    """Return why a simulation would fail, None if it would not; reads the balance of an account that cannot pay."""
    if simulation.success:
        return None
    status = simulation.vm_status
    sentence, aborted = abort_parts(status)
    cause = next((paths for words, paths in _CAUSES.items() if words in status), ())
    path = next((path for path in cause if draft.shows(path)), "")
    if any(words in status for words in _CANNOT_PAY):
        return _cannot_pay(simulation, draft, known, node, path)
    if sentence:
        return Failure(sentence[:1].upper() + sentence[1:], aborted, _about(sentence, call) or path)
    reason = failure_reason(simulation.request, simulation.transaction) or status
    words = _PARAMETER.sub(lambda found: _LABELS[found[0]], reason)
    return Failure(words[:1].upper() + words[1:], "" if words == status else f"Status: {status}", path)


def _about(sentence: str, call: ResolvedCall | None) -> str:
    """Return the path of the argument that a sentence is about: the only one of a type that it speaks of."""
    layouts = () if call is None else call.layouts
    for words, kinds in _ABOUT.items():
        places = [place for place, layout in enumerate(layouts) if isinstance(layout, kinds)]
        if len(places) == 1 and re.search(rf"\b(?:{words})", sentence.lower()):
            return f"arguments.{places[0]}"
    return ""


def _cannot_pay(simulation: Simulation, draft: SimulationDraft, known: Known, node: Node, path: str) -> Failure:
    """Return what the payer has and what is needed, and how to remedy it."""
    request, transaction = simulation.request, simulation.transaction
    payer = request.fee_payer or request.sender
    price, most = transaction.gas_unit_price, transaction.max_gas_amount
    balance: Any = None
    with suppress(ToolkitError):
        balance = node.view("0x1::coin::balance", [payer], type_arguments=[APT]).value
    has = "less" if balance is None else known.words(balance, APT_METADATA)
    name = known.names.get(payer) or short_addresses(payer)
    needs = f"{known.words(most * price, APT_METADATA)}: {most:,} gas units at {price:,} octas each"
    words = f"{name} has {has} and needs up to {needs}"
    remedies = []
    if balance is not None and price and 0 < balance // price < most:
        remedies.append((f"most{balance // price}", f"Lower the maximum to {balance // price:,} gas units"))
    if not draft.has_fee_payer:
        remedies.append(("payer", "Let another account pay"))
    return Failure(words, f"Status: {simulation.vm_status}", path, tuple(remedies))
