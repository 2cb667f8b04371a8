"""Simulations in BCS, by signature, for multisig accounts and with nonces, on the embedded node."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
import requests

import toolkit
from toolkit import embedded
from toolkit.embedded._execution import execute
from toolkit.embedded._meter import release_names, released_schedule
from toolkit.move import Address, FunctionId, UInt, encode_bcs, parse_address
from toolkit.wire import (
    Ed25519Signature,
    FeePayerSignature,
    MultiAgentSignature,
    Multisig,
    NoAccountSignature,
    PublicKey,
    RawTransaction,
    Signature,
    SignedTransaction,
    SingleKeySignature,
    SingleSenderSignature,
)
from toolkit.wire._bcs_requests import EncodedEntryFunction, EncodedMultisig, EncodedPayloadV2, EncodedScript

BCS_IN = {"Content-Type": "application/x.aptos.signed_transaction+bcs"}
NONE = NoAccountSignature()
REFUSED = "Simulated transactions must not have a valid signature"


@pytest.fixture(scope="module")
def ledger():
    return embedded.Ledger()


@pytest.fixture(scope="module")
def url(ledger):
    with embedded.serve(ledger) as served:
        yield served


def _transfer(amount=100) -> EncodedEntryFunction:
    arguments = (encode_bcs(Address(), "0xb0b"), encode_bcs(UInt(64), amount))
    return EncodedEntryFunction(FunctionId.parse("0x1::aptos_account::transfer"), (), arguments)


def _raw(payload=None, *, sender="0xa11ce", **changes) -> RawTransaction:
    fields = {
        "sender": sender,
        "sequence_number": 0,
        "payload": payload or _transfer(),
        "max_gas_amount": 200_000,
        "gas_unit_price": 100,
        "expiration_timestamp_secs": 32_503_680_000,
        "chain_id": 4,
    }
    return RawTransaction(**(fields | changes))


def _post(url, signed, headers=None, **query):
    return requests.post(
        f"{url}/transactions/simulate", data=signed.to_bcs(), headers=BCS_IN | (headers or {}), params=query, timeout=10
    )


def _simulate(url, raw, signature=NONE, **query):
    answer = _post(url, SignedTransaction(raw, signature), **query)
    assert answer.status_code == 200, answer.text
    return answer.json()[0]


# -- BCS -------------------------------------------------------------------------------------------------------


def test_a_signed_transaction_in_bcs_is_simulated(url):
    """The answer repeats what was sent; its hash is the chain's hash of those bytes."""
    signed = SignedTransaction(_raw(), NONE)
    simulated = _post(url, signed).json()[0]
    assert simulated["success"], simulated["vm_status"]
    assert simulated["payload"]["arguments"] == ["0xb0b", "100"]
    salt = hashlib.sha3_256(b"APTOS::Transaction").digest()
    assert simulated["hash"] == f"0x{hashlib.sha3_256(salt + bytes([0]) + signed.to_bcs()).hexdigest()}"


def test_json_and_bcs_of_one_request_give_one_answer(url):
    """The client's JSON body and its BCS form are simulated alike."""
    request = toolkit.SimulationRequest(
        toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", "100"]), sender="0xa11ce"
    )
    body = request.body(
        sequence_number=0, max_gas_amount=200_000, gas_unit_price=100, expiration_timestamp_secs=32_503_680_000
    )
    by_json = requests.post(f"{url}/transactions/simulate", json=body, timeout=10).json()[0]
    by_bcs = _simulate(url, _raw())
    assert by_json["signature"] == {"type": "single_sender"}  # as a node prints an absent signature
    assert by_json == by_bcs


def test_another_chain_is_refused_by_its_id(url):
    """BCS carries a chain id, and it must be the node's."""
    simulated = _simulate(url, _raw(chain_id=1))
    assert (simulated["success"], simulated["vm_status"], simulated["gas_used"]) == (False, "BAD_CHAIN_ID", "0")


def test_estimates_apply_to_bcs_requests_too(url):
    """The options are in the query, for every form of the body."""
    simulated = _simulate(
        url, _raw(gas_unit_price=1, max_gas_amount=1), estimate_gas_unit_price="true", estimate_max_gas_amount="true"
    )
    assert (simulated["success"], simulated["gas_unit_price"]) == (True, "100")


def test_a_missing_module_or_function_fails_at_the_intrinsic_cost(url):
    """In BCS nothing is looked up before execution: the failure is the transaction's."""
    for name, status in (
        ("0x9::m::f", "LINKER_ERROR\nExecution failed with message: Linker Error: Module "),
        ("0x1::coin::nothing", "FUNCTION_RESOLUTION_FAILURE"),
        ("0x1::coin::deposit", "NUMBER_OF_TYPE_ARGUMENTS_MISMATCH"),
    ):
        simulated = _simulate(url, _raw(EncodedEntryFunction(FunctionId.parse(name), (), (b"\x01",))))
        assert (simulated["success"], simulated["gas_used"]) == (False, "28")
        assert simulated["vm_status"].startswith(status)
        assert simulated["payload"]["arguments"] == ["0x01"]  # shown as bytes: there is nothing to read them by


def test_a_script_ends_as_bytecode_that_cannot_be_read(url):
    """What is not a script is what a node calls malformed."""
    simulated = _simulate(url, _raw(EncodedScript(bytes.fromhex("a11ceb0b030000"))))
    assert simulated["vm_status"].startswith("CODE_DESERIALIZATION_ERROR\n")
    assert simulated["payload"] == {
        "code": {"bytecode": "0xa11ceb0b030000", "abi": None},
        "type_arguments": [],
        "arguments": [],
        "type": "script_payload",
    }


# -- signatures ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys():
    ed25519 = pytest.importorskip(
        "cryptography.hazmat.primitives.asymmetric.ed25519", reason="needs cryptography, of the test extra"
    )
    return [ed25519.Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2, 3)]


def _public(key) -> bytes:
    return key.public_key().public_bytes_raw()


def _refused(url, raw, signature) -> bool:
    answer = _post(url, SignedTransaction(raw, signature))
    if answer.status_code == 200:
        return False
    assert (answer.status_code, answer.json()["message"]) == (400, REFUSED)
    return True


def test_a_valid_ed25519_signature_is_refused_and_any_other_accepted(url, keys):
    """Signed by the key it names: 400. Zeros, another key's signature, another message: simulated."""
    raw, key = _raw(), keys[0]
    message = SignedTransaction(raw, NONE).signing_message()
    good = key.sign(message)
    assert _refused(url, raw, Ed25519Signature(_public(key), signature=good))
    assert _refused(
        url, raw, SingleSenderSignature(SingleKeySignature(PublicKey(_public(key)), signature=Signature(good)))
    )
    assert not _refused(url, raw, Ed25519Signature(_public(key)))
    assert not _refused(url, raw, Ed25519Signature(_public(keys[1]), signature=good))
    assert not _refused(url, raw, Ed25519Signature(_public(key), signature=key.sign(message + b"x")))


def test_several_signers_are_refused_only_if_all_signed(url, keys):
    """Multi-agent and fee payer: one zero signature among good ones makes it a simulation."""
    raw = _raw()
    publics = [_public(key) for key in keys]

    def shape(kind, signatures):
        sender, other, payer = (Ed25519Signature(k, signature=s) for k, s in zip(publics, signatures, strict=True))
        fields = {"secondary_signer_addresses": ["0xb0b"], "secondary_signers": [other]}
        if kind is FeePayerSignature:
            fields |= {"fee_payer_address": "0xb0b", "fee_payer_signer": payer}
        return kind(sender, **fields)

    zeros = [bytes(64)] * 3
    for kind in (MultiAgentSignature, FeePayerSignature):
        message = SignedTransaction(raw, shape(kind, zeros)).signing_message()
        good = [key.sign(message) for key in keys]
        assert _refused(url, raw, shape(kind, good))
        assert not _refused(url, raw, shape(kind, [good[0], bytes(64), good[2]]))


def test_a_public_key_must_be_the_accounts(url, ledger, keys):
    """The key an address was made from runs; another's is a prologue failure; without a key nothing is checked."""
    own = f"0x{hashlib.sha3_256(_public(keys[0]) + bytes(1)).hexdigest()}"
    ledger.fund(own)
    raw = replace(_raw(), sender=parse_address(own))
    assert _simulate(url, raw, Ed25519Signature(_public(keys[0])))["success"]
    assert _simulate(url, raw, NONE)["success"]
    for signature in (
        Ed25519Signature(_public(keys[1])),
        SingleSenderSignature(SingleKeySignature(PublicKey(_public(keys[0])))),  # the same key by another scheme
    ):
        refused = _simulate(url, raw, signature)
        assert (refused["success"], refused["vm_status"]) == (False, "INVALID_AUTH_KEY")
        assert (refused["gas_used"], refused["changes"], refused["events"]) == ("0", [], [])
    # an account that does not exist yet has its address as its key; too poor to pay, but past the key's check
    newcomer = f"0x{hashlib.sha3_256(_public(keys[2]) + bytes(1)).hexdigest()}"
    unknown = replace(raw, sender=parse_address(newcomer))
    told = [_simulate(url, unknown, Ed25519Signature(_public(key)))["vm_status"] for key in (keys[2], keys[1])]
    assert told == ["INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE", "INVALID_AUTH_KEY"]


def test_the_keys_of_all_signers_are_checked(url, ledger, keys):
    """Secondary signers and a fee payer with a key of somebody else: refused before anything runs."""
    own, other = (f"0x{hashlib.sha3_256(_public(key) + bytes(1)).hexdigest()}" for key in keys[:2])
    ledger.fund(own)
    ledger.fund(other)
    raw = replace(_raw(), sender=parse_address(own))
    right, wrong = Ed25519Signature(_public(keys[1])), Ed25519Signature(_public(keys[2]))
    first = Ed25519Signature(_public(keys[0]))
    for second, expected in (
        (right, "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH"),
        (wrong, "INVALID_AUTH_KEY"),
        (NONE, "NUMBER"),
    ):
        both = MultiAgentSignature(first, secondary_signer_addresses=[other], secondary_signers=[second])
        assert _simulate(url, raw, both)["vm_status"].startswith(expected)
    for payer, success in ((right, True), (wrong, False), (NONE, True)):
        paid = FeePayerSignature(first, fee_payer_address=other, fee_payer_signer=payer)
        assert _simulate(url, raw, paid)["success"] is success


def test_an_account_signature_shows_as_single_sender(url, keys):
    """The wrapper's type wins over the account signature's, as on a real node."""
    shown = _simulate(url, _raw(), SingleSenderSignature(SingleKeySignature(PublicKey(_public(keys[0])))))["signature"]
    assert shown["type"] == "single_sender"
    assert shown["public_key"] == {"value": f"0x{_public(keys[0]).hex()}", "type": "ed25519"}


# -- several signers, nonces, multisig ---------------------------------------------------------------------------


def test_secondary_signers_reach_the_function():
    """A function of two signers gets both, in order; with one signer too few it does not run."""
    from toolkit.embedded import Event, Module, address, entry, signer

    class Pair(Module, address="0x9a12"):
        class Met(Event):
            first: address
            second: address

        @entry
        def meet(self, first: signer, second: signer) -> None:
            self.emit(Pair.Met(first=first, second=second))

    ledger = embedded.Ledger()
    ledger.publish(Pair)
    call = EncodedEntryFunction(FunctionId.parse("0x9a12::pair::meet"))
    both = MultiAgentSignature(NONE, secondary_signer_addresses=["0xb0b"], secondary_signers=[NONE])
    with embedded.serve(ledger) as url:
        met = _simulate(url, _raw(call), both)
        alone = _simulate(url, _raw(call))
    assert met["events"][0]["data"] == {"first": "0xa11ce", "second": "0xb0b"}
    assert met["signature"]["secondary_signer_addresses"] == ["0xb0b"]
    assert alone["vm_status"] == "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH"


def test_a_fee_payer_without_coins_is_refused_and_nobody_is_not(url):
    """A real payer's balance is checked; payer 0x0 only estimates."""

    def paid_by(payer):
        return FeePayerSignature(NONE, fee_payer_address=payer, fee_payer_signer=NONE)

    poor = _simulate(url, _raw(), paid_by("0x777"))
    assert (poor["vm_status"], poor["gas_used"]) == ("INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE", "0")
    free = _simulate(url, _raw(), paid_by("0x0"))
    plain = _simulate(url, _raw())
    assert free["success"]
    assert free["events"][-1]["data"]["execution_gas_units"] == plain["events"][-1]["data"]["execution_gas_units"]


def test_a_nonce_works_once():
    """A committed orderless transaction uses its nonce up until it expires; another nonce is free."""
    ledger = embedded.Ledger()
    call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 5])
    done = ledger.execute(toolkit.SimulationRequest(call, sender="0xa11ce", replay_protection_nonce=77))
    assert done.success
    expires = done.request.raw.expiration_timestamp_secs
    with embedded.serve(ledger) as url:
        used, free = (
            _simulate(url, _raw(EncodedPayloadV2(_transfer(), None, nonce), expiration_timestamp_secs=expires))
            for nonce in (77, 78)
        )
    assert used["vm_status"] == "NONCE_ALREADY_USED"
    assert (free["success"], free["sequence_number"], free["replay_protection_nonce"]) == (True, "0", "78")
    assert free["payload"]["type"] == "entry_function_payload"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"max_gas_amount": 0}, "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"),
        ({"max_gas_amount": 1}, "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"),
        ({"max_gas_amount": 20_000_001}, "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND"),
        ({"gas_unit_price": 0}, "GAS_UNIT_PRICE_BELOW_MIN_BOUND"),
        ({"gas_unit_price": 99}, "GAS_UNIT_PRICE_BELOW_MIN_BOUND"),
        ({"gas_unit_price": 99_999_999_999}, "GAS_UNIT_PRICE_ABOVE_MAX_BOUND"),
        ({"sequence_number": 99_999}, "SEQUENCE_NUMBER_TOO_NEW"),
        ({"sequence_number": 2**63}, "SEQUENCE_NUMBER_TOO_BIG"),
        ({"expiration_timestamp_secs": 0}, "TRANSACTION_EXPIRED"),
        # Several faults: gas before time, time before the chain, the chain before the sequence number, that before money.
        ({"gas_unit_price": 0, "expiration_timestamp_secs": 0}, "GAS_UNIT_PRICE_BELOW_MIN_BOUND"),
        ({"expiration_timestamp_secs": 0, "chain_id": 1}, "TRANSACTION_EXPIRED"),
        ({"chain_id": 1, "sequence_number": 9}, "BAD_CHAIN_ID"),
        ({"sequence_number": 9, "gas_unit_price": 10**10}, "SEQUENCE_NUMBER_TOO_NEW"),
        ({"gas_unit_price": 10**10}, "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE"),
    ],
)
def test_a_transaction_is_checked_in_the_order_of_a_node(url, changes, status):
    """The first rule that is broken is the status; nothing is charged."""
    refused = _simulate(url, _raw(**changes))
    assert (refused["success"], refused["vm_status"], refused["gas_used"]) == (False, status, "0")


@pytest.mark.parametrize("release", sorted({release_names()[0], release_names()[len(release_names()) // 2], "v1.41.1"}))
def test_limits_of_gas_and_price_are_those_of_the_schedule(release):
    """At both bounds of maximum gas and price a transaction passes the check, one unit further it does not."""
    schedule = released_schedule(release)
    lowest = -(-schedule["txn.min_transaction_gas_units"] // schedule.scaling)
    highest, cheapest = schedule["txn.maximum_number_of_gas_units"], schedule["txn.min_price_per_gas_unit"]
    dearest = schedule["txn.max_price_per_gas_unit"]
    ledger = embedded.Ledger(release=release, accounts={"0xa11ce": 2**62, "0xb0b": 1})

    def status(gas, price):
        call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 5])
        request = toolkit.SimulationRequest(call, sender="0xa11ce", max_gas_amount=gas, gas_unit_price=price)
        transaction = ledger._transaction(request, ledger._payload(request))
        return execute(ledger.chain.snapshot(ledger.head), transaction).vm_status

    assert status(highest, cheapest) == status(highest, dearest) == "Executed successfully"
    assert status(lowest, dearest) == "Out of gas"
    assert status(lowest - 1, dearest) == "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"
    assert status(highest + 1, cheapest) == "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND"
    assert status(highest, dearest + 1) == "GAS_UNIT_PRICE_ABOVE_MAX_BOUND"
    if cheapest:
        assert status(highest, cheapest - 1) == "GAS_UNIT_PRICE_BELOW_MIN_BOUND"


def test_signers_must_differ():
    """A sender among the secondary signers is refused before anything else."""
    twice = MultiAgentSignature(NONE, secondary_signer_addresses=["0xa11ce"], secondary_signers=[NONE])
    with embedded.serve(embedded.Ledger()) as url:
        refused = _simulate(url, _raw(gas_unit_price=0), twice)
    assert (refused["vm_status"], refused["gas_used"]) == ("SIGNERS_CONTAIN_DUPLICATES", "0")


def test_an_orderless_transaction_expires_soon():
    """61 s after ledger time is accepted, as recorded from a node, 101 s is not."""
    ledger = embedded.Ledger()
    now = ledger.view("0x1::timestamp::now_seconds")[0][0]
    payload = EncodedPayloadV2(_transfer(), None, 5)
    with embedded.serve(ledger) as url:
        status = [_simulate(url, _raw(payload, expiration_timestamp_secs=now + s))["vm_status"] for s in (61, 100, 101)]
    assert status == ["Executed successfully", "Executed successfully", "TRANSACTION_EXPIRATION_TOO_FAR_IN_FUTURE"]


def test_changes_are_in_the_order_of_their_keys(url):
    """JSON has the changes in the order of the write set in BCS: by address, then by what is stored there."""
    changes = _simulate(url, _raw())["changes"]
    addresses = [int(change["address"], 16) for change in changes if "address" in change]
    assert len(addresses) > 2
    assert addresses == sorted(addresses)


@pytest.fixture(scope="module")
def shared_account():
    """Return a ledger with a two-of-two account that holds coins and has one payload put to the vote."""
    ledger = embedded.Ledger()
    done = ledger.commit("0x1::multisig_account::create_with_owners", ["0xb0b"], 2, [], [], sender="0xa11ce")
    account = next(key.owner for key in done.output.writes if "multisig_account::MultisigAccount" in str(key.name))
    ledger.fund(account)
    call = _transfer(5)
    payload = embedded_payload(call)
    assert ledger.commit("0x1::multisig_account::create_transaction", account, payload, sender="0xa11ce").success
    return ledger, account, call


def _store_of(account: str) -> str:
    """Return the address of an account's store of octas, as JSON has it."""
    from toolkit.embedded.framework._object import derived_object_address
    from toolkit.move._ids import wire_address

    return wire_address(derived_object_address(account, "0xa"))


def embedded_payload(call) -> bytes:
    """Return a call as multisig accounts store it."""
    from toolkit.embedded._transaction import encode_stored

    return encode_stored(call)


def test_a_multisig_payload_runs_once_enough_owners_agree(shared_account):
    """Votes are counted; the stored payload and the equal given one run as the account, another does not."""
    ledger, account, call = shared_account

    def ask(payload, sender="0xa11ce"):
        with embedded.serve(ledger) as url:
            number = ledger.view("0x1::account::get_sequence_number", [sender])[0][0]
            return _simulate(url, _raw(EncodedMultisig(account, payload), sender=sender, sequence_number=number))

    assert ask(None)["vm_status"] == "MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS"
    assert ledger.commit("0x1::multisig_account::approve_transaction", account, 1, sender="0xb0b").success
    stored, given = ask(None), ask(call)
    assert stored["success"], stored["vm_status"]
    assert stored["events"][-2]["type"] == "0x1::multisig_account::TransactionExecutionSucceeded"
    assert stored["events"][0]["data"]["store"] == given["events"][0]["data"]["store"] == _store_of(account)
    assert stored["payload"] == {"multisig_address": stored["payload"]["multisig_address"], "type": "multisig_payload"}
    assert given["payload"]["transaction_payload"]["function"] == "0x1::aptos_account::transfer"
    assert ask(_transfer(6))["vm_status"] == "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH"
    ledger.fund("0x515")
    assert ask(None, sender="0x515")["vm_status"] == "NOT_MULTISIG_OWNER"


def test_a_failing_multisig_payload_is_told_by_an_event():
    """The transaction succeeds; the payload's writes are undone and its abort is in the event."""
    fresh = embedded.Ledger()
    done = fresh.commit("0x1::multisig_account::create_with_owners", [], 1, [], [], sender="0xa11ce")
    account = next(key.owner for key in done.output.writes if "multisig_account::MultisigAccount" in str(key.name))
    fresh.commit("0x1::multisig_account::create_transaction", account, embedded_payload(_transfer(5)), sender="0xa11ce")
    with embedded.serve(fresh) as url:
        simulated = _simulate(url, _raw(EncodedMultisig(account), sequence_number=2))
    assert simulated["success"]
    failed = simulated["events"][-2]
    assert failed["type"] == "0x1::multisig_account::TransactionExecutionFailed"
    assert failed["data"]["execution_error"] == {
        "abort_location": "0x1::fungible_asset",
        "error_code": str(0x10004),
        "error_type": "MoveAbort",
    }


def test_a_multisig_payload_in_json(url):
    """With and without an inner payload; an account that is not a multisig account is refused."""
    request = toolkit.SimulationRequest(Multisig("0xb0b"), sender="0xa11ce")
    body = request.body(
        sequence_number=0, max_gas_amount=200_000, gas_unit_price=100, expiration_timestamp_secs=32_503_680_000
    )
    simulated = requests.post(f"{url}/transactions/simulate", json=body, timeout=10).json()[0]
    assert simulated["vm_status"] == "ACCOUNT_NOT_MULTISIG"
    assert simulated["payload"] == {"multisig_address": "0xb0b", "type": "multisig_payload"}
