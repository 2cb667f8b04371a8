"""Scripts written in Python: declared, committed, simulated over HTTP, run by multisig accounts, and refused."""

from __future__ import annotations

import pytest
import requests

import toolkit
from toolkit import embedded
from toolkit.embedded import (
    APTOS_COIN,
    Coin,
    Object,
    Option,
    TypeArgument,
    address,
    script,
    signer,
    u8,
    u64,
    vector,
)
from toolkit.embedded._execution import execute
from toolkit.embedded._transaction import encode_stored
from toolkit.embedded.framework._fungible_asset import FungibleAsset
from toolkit.errors import InputError, InvalidRequest
from toolkit.wire._bcs_requests import EncodedMultisig, EncodedScript, ScriptArgument

ALICE, BOB = "0xa11ce", "0xb0b"
E_TOO_MANY = embedded.invalid_argument(7, "too many receivers")


@script
def pay_all(run, account: signer, receivers: vector[address], amount: u64) -> None:
    run.require(len(receivers) <= 3, E_TOO_MANY)
    for receiver in run.each(receivers):
        run.use(Coin).transfer(APTOS_COIN, account, receiver, amount)


@script
def two_pay(run, first: signer, second: signer, amount: u64) -> None:
    run.use(Coin).transfer(APTOS_COIN, first, "0x1", amount)
    run.use(Coin).transfer(APTOS_COIN, second, "0x1", amount)


@script
def kinds(  # noqa: PLR0917 - one of each kind
    run, coin: TypeArgument, small: u8, raw: bytes, maybe: Option[u64], asset: Object[FungibleAsset.Metadata]
) -> None:
    run.use(Coin).name(coin)
    run.charge("instr.add", u64(small) // len(raw))


@pytest.fixture
def ledger():
    return embedded.Ledger()


@pytest.fixture
def node(ledger):
    with embedded.serve(ledger) as url, toolkit.connect(url, cache=None) as client:
        yield client


def paid(bytecode=pay_all.bytecode, receivers=("0x1", BOB), amount=5, **options):
    return toolkit.Script(bytecode, arguments=[list(receivers), str(amount)], **options)


def test_a_script_is_committed_and_printed_with_its_signature(ledger, node):
    """Its writes, events and gas are those of the modules that it calls; the payload has the ABI and the arguments."""
    done = ledger.commit(pay_all, ["0x1", BOB], 5, sender=ALICE)
    assert (done.output.vm_status, done.output.charges.total_charge_gas_units > 0) == ("Executed successfully", True)
    printed = requests.get(f"{node.url}/transactions/by_version/{done.version}", timeout=10).json()
    payload = printed["payload"]
    assert payload["code"]["bytecode"] == f"0x{pay_all.bytecode.hex()}"
    assert payload["code"]["abi"] == {
        "name": "main",
        "visibility": "public",
        "is_entry": True,
        "is_view": False,
        "generic_type_params": [],
        "params": ["&signer", "vector<address>", "u64"],
        "return": [],
    }
    assert payload["arguments"] == [["0x1", "0xb0b"], "5"]
    assert [event["type"] for event in printed["events"]][-1] == "0x1::transaction_fee::FeeStatement"
    assert len(printed["events"]) == 5  # two withdrawals, two deposits, the fee


def test_a_script_is_simulated(node):
    """The same bytecode over HTTP; more receivers cost more."""
    one = node.simulate(paid(receivers=[BOB]), sender=ALICE)
    three = node.simulate(paid(receivers=[BOB, "0x1", BOB]), sender=ALICE)
    assert [one.success, three.success] == [True, True]
    assert three.gas_used > one.gas_used


def test_signers_and_type_arguments(ledger, node):
    """Two signers are the sender and the secondary signer; a type argument is passed before them."""
    done = ledger.commit(two_pay, 3, sender=ALICE, secondary_signers=[BOB])
    assert done.output.success
    apt = ["0x1::aptos_coin::AptosCoin"]
    assert ledger.commit(kinds, 4, b"ab", None, "0xa", sender=ALICE, type_arguments=apt).output.success
    simulated = node.simulate(
        toolkit.Script(kinds.bytecode, type_arguments=apt, arguments=[4, "0x6162", {"vec": ["1"]}, "0xa"]), sender=ALICE
    )
    assert simulated.success


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (paid(receivers=[BOB] * 4), "Move abort: code 0x10007"),
        (toolkit.Script(two_pay.bytecode, arguments=["3"]), "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH"),
        (
            toolkit.Script(kinds.bytecode, arguments=[4, "0x61", {"vec": []}, "0xa"]),
            "NUMBER_OF_TYPE_ARGUMENTS_MISMATCH",
        ),
        (
            toolkit.Script(kinds.bytecode, type_arguments=["0x1::no::No"], arguments=[4, "0x61", {"vec": []}, "0xa"]),
            "LINKER_ERROR",
        ),
        (
            toolkit.Script(
                kinds.bytecode,
                type_arguments=["0x1::aptos_coin::AptosCoin"],
                arguments=[4, "0x61", {"vec": []}, "0x77"],
            ),
            "Move abort in 0x1::object: EOBJECT_DOES_NOT_EXIST(0x60002)",
        ),
        (
            toolkit.Script(
                kinds.bytecode, type_arguments=["0x1::aptos_coin::AptosCoin"], arguments=[4, "0x", {"vec": []}, "0xa"]
            ),
            "Execution failed in script at code offset 0",
        ),
    ],
    ids=["abort", "signers", "number of types", "unknown type", "object", "division"],
)
def test_a_script_that_fails(node, request_, status):
    """Aborts and other failures are located in the script, without the name of the code."""
    result = node.simulate(request_, sender=ALICE)
    assert not result.success
    assert result.vm_status.startswith(status)


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (paid(bytecode=pay_all.bytecode[:-1] + b"\0"), "script bytecode"),
        (toolkit.Script(pay_all.bytecode, arguments=[]), "expected 2 arguments"),
        (toolkit.Script(pay_all.bytecode, arguments=[["0x1"], 5]), "arguments[1]"),
    ],
    ids=["unknown", "number", "type"],
)
def test_a_script_that_a_node_refuses(node, request_, named):
    """Unknown bytecode, and arguments that do not fit the signature."""
    with pytest.raises(InvalidRequest) as caught:
        node.simulate(request_, sender=ALICE)
    assert caught.value.error_code == "invalid_input"
    assert named in str(caught.value)


def test_arguments_in_bcs_are_decoded_by_the_signature(ledger):
    """A typed argument and a serialized one are equal; bytes that do not fit fail; unknown bytecode cannot be read."""

    def status(*arguments, code=pay_all.bytecode):
        request = toolkit.SimulationRequest(toolkit.Script(code), sender=ALICE)
        transaction = ledger._transaction(request, EncodedScript(code, (), arguments))
        return execute(ledger.chain.snapshot(ledger.head), transaction).vm_status

    none, five = ScriptArgument("serialized", b"\0"), ScriptArgument("u64", 5)
    assert (
        status(none, five)
        == status(none, ScriptArgument("serialized", (5).to_bytes(8, "little")))
        == "Executed successfully"
    )
    assert status(none, ScriptArgument("u8", 5)) == "FAILED_TO_DESERIALIZE_ARGUMENT"
    assert status(none) == "NUMBER_OF_ARGUMENTS_MISMATCH"
    assert status(none, five, code=b"\xa1\x1c\xeb\x0b").startswith("CODE_DESERIALIZATION_ERROR\n")


def test_a_multisig_account_runs_a_script(ledger):
    """As the transaction's own payload and as one stored on chain, signed by the account."""
    created = ledger.commit("0x1::multisig_account::create_with_owners", [BOB], 1, [], [], sender=ALICE)
    assert created.output.success, created.output.vm_status
    account = next(key.owner for key in created.output.writes if "MultisigAccount" in str(key.name))
    ledger.fund(account)
    payload = EncodedScript(
        pay_all.bytecode, (), (ScriptArgument("serialized", b"\1" + bytes(31) + b"\1"), ScriptArgument("u64", 7))
    )
    for _ in range(2):
        proposed = ledger.commit(
            "0x1::multisig_account::create_transaction", account, encode_stored(payload), sender=ALICE
        )
        assert proposed.output.success, proposed.output.vm_status
    before = ledger.view("0x1::coin::balance", [account], ["0x1::aptos_coin::AptosCoin"])[0][0]
    for inner in (payload, None):
        request = toolkit.SimulationRequest(toolkit.Multisig(account), sender=ALICE)
        done = ledger._commit(ledger._transaction(request, EncodedMultisig(account, inner)))
        kinds_of = [event.type for event in done.output.events]
        assert "0x1::multisig_account::TransactionExecutionSucceeded" in kinds_of
    after = ledger.view("0x1::coin::balance", [account], ["0x1::aptos_coin::AptosCoin"])[0][0]
    assert before - after == 14


def test_bytecode_follows_name_and_signature():
    """It does not depend on the code of the function; the latest function of a name runs."""

    def declare(result):
        @script
        def again(run, account: signer) -> None:
            run.abort(result)

        return again

    old, new = declare(1), declare(2)
    assert old.bytecode == new.bytecode != pay_all.bytecode
    ledger = embedded.Ledger()
    assert ledger.commit(old, sender=ALICE).vm_status == "Move abort: code 0x2"


def test_a_function_that_cannot_be_a_script():
    """A missing annotation, a Python type, a returned value; and a wrong number of arguments of `commit`."""

    def missing(run, amount): ...

    with pytest.raises(InputError, match="script missing: parameter amount"):
        script(missing)

    def wrong(run, amount: dict) -> None: ...
    def returns(run) -> u64: ...

    for function in (wrong, returns):
        with pytest.raises(InputError, match=function.__name__):
            script(function)
    with pytest.raises(InputError, match=r"script pay_all: .*\(vector<address>, u64\).*\b0$"):
        embedded.Ledger().commit(pay_all, sender=ALICE)
