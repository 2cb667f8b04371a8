"""`explain()` of every recorded simulation that fails: why, and what the sender must change."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.conformance.recorded_requests import request_of
from toolkit.errors import InputError, NodeError, SchemaError

ADVICE = {
    "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE": "max_gas_amount",
    "INVALID_AUTH_KEY": "key",
    "TRANSACTION_EXPIRED": "expiration",
    "GAS_UNIT_PRICE_BELOW_MIN_BOUND": "gas_unit_price",
    "GAS_UNIT_PRICE_ABOVE_MAX_BOUND": "gas_unit_price",
    "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND": "max_gas_amount",
    "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS": "max_gas_amount",
    "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH": "signer",
    "SIGNERS_CONTAIN_DUPLICATES": "signer",
    "SEQUENCE_NUMBER_TOO_NEW": "sequence number",
    "NONCE_ALREADY_USED": "nonce",
    "Out of gas": "max_gas_amount",
    "ACCOUNT_NOT_MULTISIG": "multisig",
    "LINKER_ERROR": "module.*0x1::nope|0x1::nope.*module",
    "Execution failed in": "resource",
    "0x1::table: 0x6507": "key|item|not found",
    "0x1::fungible_asset: EINSUFFICIENT_BALANCE": "0x1::fungible_asset.*EINSUFFICIENT_BALANCE",
    "0x1::account: EMALFORMED_AUTHENTICATION_KEY": "0x1::account.*EMALFORMED_AUTHENTICATION_KEY.*invalid argument",
    "0x1::type_info: E_NATIVE_FUN_NOT_AVAILABLE": "0x1::type_info.*E_NATIVE_FUN_NOT_AVAILABLE",
    "lab: E_TOO_BIG": "::lab.*E_TOO_BIG.*0x7",
}
"""What a status contains, and what the line of the reason must say: the part of the request to change, or the code's
own reason."""


@pytest.fixture(scope="session")
def failures(recordings, node, abis) -> list[Any]:
    """Return the results of all recorded simulations that fail."""
    found = []
    for exchange in recordings.simulations:
        try:
            result = node.simulate(request_of(exchange, abis(exchange.head or 315)))
        except (InputError, SchemaError, NodeError, KeyError, TypeError):
            continue  # refused as such, see test_recorded_simulations
        if exchange.status == 200 and not result.success:
            found.append((exchange, result))
    return found


def reason(text: str) -> str:
    """Return the line that says why; empty if there is none."""
    return next((line for line in text.splitlines() if line.startswith("Why: ")), "")


@pytest.mark.parametrize("status", ADVICE)
def test_it_says_what_to_change(status, failures):
    """The reason names the part of the request that is wrong, or what the code says of it."""
    found = [result for _, result in failures if status in result.vm_status]
    assert found
    for result in found:
        assert re.search(ADVICE[status], reason(result.explain())), result.explain()


def test_it_says_what_a_sender_without_balance_can_do(failures):
    """With the estimates on, such a sender cannot afford any gas at all; a fee payer or another sender can."""
    (result,) = [one for exchange, one in failures if (exchange.group, exchange.place) == ("simulations", 78)]
    assert result.vm_status == "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"
    assert re.search("cannot afford any gas.*fee_payer.*lower limit.*another sender", reason(result.explain()))


def test_every_failure_is_of_a_known_kind(failures):
    """51 simulations fail in 20 ways, and each is described by one of the texts above."""
    kinds = [[status for status in ADVICE if status in result.vm_status] for _, result in failures]
    assert [len(found) for found in kinds] == [1] * 51
    assert {found[0] for found in kinds} == set(ADVICE)
    print(f"{len(failures)} failures of {len(ADVICE)} kinds")  # counts in the output


def test_it_says_what_happened_and_what_it_costs(failures):
    """Each explanation starts with the call, has the node's status, and the fee or that nothing would be charged."""
    for exchange, result in failures:
        text = result.explain()
        assert text.splitlines()[0].endswith("would fail."), exchange
        first = result.vm_status.split("\n")[0].split("0x34bf7e")[0][:60]
        assert first in text, exchange
        wanted = (
            "nothing would be charged" if result.gas is None else f"{result.gas.total_charge_gas_units} gas units at"
        )
        assert wanted in text, exchange
