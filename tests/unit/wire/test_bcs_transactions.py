"""Transactions, views and signatures in BCS: identity both ways, requests to bytes."""

from __future__ import annotations

import pytest

from toolkit.errors import InputError, SchemaError
from toolkit.move import Address, Bool, Bytes, FunctionId, OptionOf, String, UInt, VectorOf, parse_type_tag
from toolkit.move._bcs import Reader, Writer
from toolkit.wire import (
    AbstractSignature,
    Ed25519Signature,
    EntryFunction,
    FeePayerSignature,
    IndexedSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    Multisig,
    NoAccountSignature,
    PublicKey,
    RawTransaction,
    Script,
    Signature,
    SignedTransaction,
    SimulationRequest,
    SingleKeySignature,
    SingleSenderSignature,
    ViewFunction,
)
from toolkit.wire._bcs_requests import (
    FUNCTION_CALL,
    EncodedEntryFunction,
    EncodedModuleBundle,
    EncodedMultisig,
    EncodedPayloadV2,
    EncodedScript,
    ScriptArgument,
    decode_view_answer,
    encode_view_request,
    signed_transaction,
)
from toolkit.wire._signatures import ACCOUNT_SIGNATURE, UnknownSignature

KEY = "0x" + "11" * 32
SIGNED = "0x" + "22" * 64
KEYS = [
    PublicKey(KEY),
    PublicKey("0x04" + "33" * 64, type="secp256k1_ecdsa"),
    PublicKey("0x04" + "44" * 64, type="secp256r1_ecdsa"),
    PublicKey(b"\x03iss\x20" + bytes(32), type="keyless"),
    PublicKey(bytes(32) + b"\x03iss\x20" + bytes(32), type="federated_keyless"),
    PublicKey(bytes(32), type="slh_dsa__sha2_128s"),
]
OPEN_ID = Signature(
    # certificate by OpenID, JWT header, expiry, ephemeral P-256 key, WebAuthn signature by it
    b"\x01\x01\xaa\x02{}\x03sub\x01\xbb" + bytes(31) + b"\x01\x03aud" + b"\x02{}" + bytes(8) + b"\x01\x01\xcc"
    b"\x01\x00\x40" + bytes(64) + b"\x01\xdd\x02{}",
    type="keyless",
)
ACCOUNTS = [
    Ed25519Signature(KEY, signature=SIGNED),
    MultiEd25519Signature([KEY, KEY, KEY], threshold=2, signatures=[SIGNED, SIGNED], bitmap="0xa0000000"),
    *(SingleKeySignature(key) for key in KEYS),
    SingleKeySignature(KEYS[3], signature=OPEN_ID),
    MultiKeySignature(KEYS, signatures_required=3),
    MultiKeySignature(
        [PublicKey(KEY)] * 9, signatures_required=1, signatures=[IndexedSignature(8, signature=Signature(SIGNED))]
    ),
    MultiKeySignature([PublicKey(KEY)], signatures_required=1, bitmap="0x80000000"),
    NoAccountSignature(),
    AbstractSignature("0x1::auth::check", auth_data="0x00" + "01aa" + "02bbbb"),
    AbstractSignature("0x1::auth::check", auth_data="0x01" + "01aa" + "02bbbb" + "03cccccc"),
]
CALL = EncodedEntryFunction(FunctionId.parse("0x1::m::f"), (parse_type_tag("vector<u8>"),), (b"\x01", b""))
SCRIPT = EncodedScript(
    b"\xa1\x1c",
    (),
    (
        *(ScriptArgument(f"{sign}{bits}", 1) for sign in "ui" for bits in (8, 16, 32, 64, 128, 256)),
        ScriptArgument("i256", -(2**255)),
        ScriptArgument("u256", 2**256 - 1),
        ScriptArgument("address", "0x1"),
        ScriptArgument("bytes", b"\x00"),
        ScriptArgument("bool", True),  # the value itself
        ScriptArgument("serialized", b"\x01\x02"),
    ),
)
PAYLOADS = [
    CALL,
    SCRIPT,
    EncodedModuleBundle((b"a", b"")),
    EncodedMultisig("0x9"),
    EncodedMultisig("0x9", CALL),
    EncodedMultisig("0x9", SCRIPT),
    EncodedPayloadV2(CALL, None, 2**64 - 1),
    EncodedPayloadV2(SCRIPT, "0x9", None),
    EncodedPayloadV2(None, "0x9", 0),
]
FILL = {"sequence_number": 7, "max_gas_amount": 2_000, "gas_unit_price": 100, "expiration_timestamp_secs": 9}


def raw(payload=CALL) -> RawTransaction:
    return RawTransaction("0xa11ce", 7, payload, 2_000, 100, 1_800_000_000, 4)


@pytest.mark.parametrize("account", ACCOUNTS, ids=lambda account: type(account).__name__)
def test_every_signature_comes_back(account) -> None:
    """Alone, as a transaction's, and inside the multi-account shapes."""
    writer = Writer()
    ACCOUNT_SIGNATURE.write(writer, account)
    reader = Reader(writer.getvalue())
    assert ACCOUNT_SIGNATURE.read(reader) == account
    reader.end()
    plain = isinstance(account, Ed25519Signature | MultiEd25519Signature)
    for signature in (
        account if plain else SingleSenderSignature(account),
        MultiAgentSignature(account, secondary_signer_addresses=["0x5"], secondary_signers=[account]),
        FeePayerSignature(account, fee_payer_address="0x0", fee_payer_signer=account),
    ):
        signed = SignedTransaction(raw(), signature)
        data = signed.to_bcs()
        assert SignedTransaction.from_bcs(data).signature == signature
        assert SignedTransaction.from_bcs(data).to_bcs() == data


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: type(payload).__name__)
def test_every_payload_comes_back(payload) -> None:
    """Old and new form, with and without what is optional."""
    data = raw(payload).to_bcs()
    assert RawTransaction.from_bcs(data).payload == payload
    assert RawTransaction.from_bcs(data).to_bcs() == data


def test_no_signature_at_all_is_a_single_senders() -> None:
    """The transaction authenticator does not have a variant for a missing signature."""
    data = SignedTransaction(raw(), NoAccountSignature()).to_bcs()
    assert data.endswith(b"\x04\x04")
    assert SignedTransaction.from_bcs(data).signature == SingleSenderSignature(NoAccountSignature())


def test_truncated_and_longer_bytes_are_refused() -> None:
    """At every cut, and with a byte more."""
    data = SignedTransaction(raw(SCRIPT), ACCOUNTS[1]).to_bcs()
    for cut in range(len(data)):
        with pytest.raises(SchemaError):
            SignedTransaction.from_bcs(data[:cut])
    with pytest.raises(SchemaError, match="expected the end of the data"):
        SignedTransaction.from_bcs(data + b"\x00")


@pytest.mark.parametrize(
    ("variant", "text"),
    [(b"\x05", "the payload is encrypted"), (b"\x06", "expected transaction payload index 0 to 5, got 6")],
)
def test_payloads_that_cannot_be_read_say_so(variant: bytes, text: str) -> None:
    """With the byte they stand at."""
    data = bytearray(raw().to_bcs())
    data[40:41] = variant
    with pytest.raises(SchemaError, match=f"byte 40: {text}"):
        RawTransaction.from_bcs(bytes(data))


@pytest.mark.parametrize(
    ("tail", "text"),
    [
        (b"\x05", "expected transaction authenticator index 0 to 4, got 5"),
        (b"\x04\x06", "expected account authenticator index 0 to 5, got 6"),
        (b"\x04\x02\x06", "expected public key index 0 to 5, got 6"),
        (b"\x00\x01\x11\x40" + bytes(64), "expected 32 bytes of an ed25519 public key, got 1"),
        (b"\x01\x02\x11\x11\x00", "a multi-ed25519 key of n * 32 + 1 bytes, got length 2"),
        (
            b"\x04\x03\x01\x00\x20" + bytes(32) + b"\x01\x00\x01\x80",
            "expected one signature per set bit of `bitmap` (1)",
        ),
        (b"\x04\x05" + bytes(32) + b"\x01m\x01f\x02", "expected variant 0 or 1 of abstract authentication data, got 2"),
    ],
)
def test_authenticators_that_cannot_be_read_say_so(tail: bytes, text: str) -> None:
    """Never anything but the package's own error."""
    with pytest.raises(SchemaError) as raised:
        SignedTransaction.from_bcs(raw().to_bcs() + tail)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: SignedTransaction(raw(), UnknownSignature({"type": "x"})).to_bcs(), "has no BCS form"),
        (
            lambda: SignedTransaction(raw(), SingleSenderSignature(AbstractSignature(None, auth_data="0x00"))).to_bcs(),
            "without `function_info` has no BCS form",
        ),
        (lambda: raw(EncodedScript(b"", (), (ScriptArgument("u7", 1),))).to_bcs(), "unknown script argument kind 'u7'"),
        (lambda: raw(EncodedScript(b"", (), (ScriptArgument("u8", 256),))).to_bcs(), "expected u8 as an int in 0..255"),
        (
            lambda: raw(EncodedEntryFunction(CALL.function, (parse_type_tag("T0", abi=True),))).to_bcs(),
            "only allowed in ABIs",
        ),
    ],
)
def test_what_has_no_bcs_form_is_refused(build, text: str) -> None:
    """With the reason."""
    with pytest.raises((InputError, SchemaError)) as raised:
        build()
    assert text in str(raised.value)


def test_signing_messages_differ_by_shape() -> None:
    """Each shape signs a prefix of its own; multi-account shapes sign the addresses too."""
    agent = MultiAgentSignature(ACCOUNTS[0], secondary_signer_addresses=["0x5"], secondary_signers=[ACCOUNTS[0]])
    payer = FeePayerSignature(ACCOUNTS[0], fee_payer_address="0x6", fee_payer_signer=ACCOUNTS[0])
    single, many, paid = (
        SignedTransaction(raw(), signature).signing_message() for signature in (ACCOUNTS[0], agent, payer)
    )
    bare = raw().to_bcs()
    assert single[32:] == bare
    assert many[32:] == b"\x00" + bare + b"\x01" + bytes(31) + b"\x05"
    assert paid[32:] == b"\x01" + bare + b"\x00" + bytes(31) + b"\x06"
    assert single[:32] != many[:32] == paid[:32]


LAYOUTS = (Address(), UInt(64), Bytes(), String(), OptionOf(UInt(8)), VectorOf(Bool()))
ARGUMENTS = ("0xb0b", "100", "0x0102", "hé", None, [True])
ENCODED = (
    bytes(30) + b"\x0b\x0b",
    (100).to_bytes(8, "little"),
    b"\x02\x01\x02",
    b"\x03h\xc3\xa9",
    b"\x00",
    b"\x01\x01",
)


def test_a_simulation_request_becomes_a_signed_transaction() -> None:
    """Arguments are encoded by layout, numbers filled in, the signature is the one that JSON would carry."""
    request = SimulationRequest(EntryFunction("0x1::m::f", arguments=ARGUMENTS), sender="0x2", gas_unit_price=150)
    signed = signed_transaction(request, chain_id=4, layouts=LAYOUTS, **FILL)
    assert signed.raw.payload == EncodedEntryFunction(FunctionId.parse("0x1::m::f"), (), ENCODED)
    assert (signed.raw.gas_unit_price, signed.raw.sequence_number, signed.raw.chain_id) == (150, 7, 4)
    assert SignedTransaction.from_bcs(signed.to_bcs()).raw == signed.raw


def test_a_nonce_makes_the_second_payload_form() -> None:
    """Orderless: the largest sequence number, the nonce in the payload; a multisig address goes there too."""
    request = SimulationRequest(Multisig("0x9"), sender="0x2", replay_protection_nonce=5)
    signed = signed_transaction(request, chain_id=4, **FILL)
    assert signed.raw.sequence_number == 2**64 - 1
    assert signed.raw.payload == EncodedPayloadV2(None, "0x9", 5)
    plain = signed_transaction(request.replace(replay_protection_nonce=None), chain_id=4, **FILL)
    assert plain.raw.payload == EncodedMultisig("0x9")


def test_script_arguments_name_their_kind() -> None:
    """Simple ones by kind, all others as serialized BCS; without layouts all are BCS already."""
    request = SimulationRequest(Script("0xa1", arguments=ARGUMENTS), sender="0x2")
    payload = signed_transaction(request, chain_id=4, layouts=LAYOUTS, **FILL).raw.payload
    assert isinstance(payload, EncodedScript)
    assert [argument.kind for argument in payload.arguments] == ["address", "u64", "bytes", *["serialized"] * 3]
    assert payload.arguments[1] == ScriptArgument("u64", 100)
    encoded = SimulationRequest(Script("0xa1", arguments=ENCODED), sender="0x2")
    bare = signed_transaction(encoded, chain_id=4, **FILL).raw.payload
    assert bare == EncodedScript(b"\xa1", (), tuple(ScriptArgument("serialized", data) for data in ENCODED))


@pytest.mark.parametrize(
    ("arguments", "layouts", "text"),
    [
        (["0xb0b"], None, "arguments[0]: without an ABI, arguments must be BCS bytes, got '0xb0b'"),
        ([1, 2], [UInt(8)], "expected 1 argument (without signers), got 2"),
        ([256], [UInt(8)], "arguments[0]"),
        (["x"], [UInt(64)], "arguments[0]"),
    ],
)
def test_arguments_that_cannot_be_encoded_are_refused(arguments, layouts, text: str) -> None:
    """By position, before anything is sent."""
    with pytest.raises(InputError) as raised:
        encode_view_request(ViewFunction("0x1::m::f", arguments=arguments), layouts)
    assert text in str(raised.value)


def test_view_requests_and_answers_come_back() -> None:
    """A request is a function call; an answer a count and values without lengths."""
    call = ViewFunction("0x1::m::f", type_arguments=["u8"], arguments=ARGUMENTS)
    reader = Reader(encode_view_request(call, LAYOUTS))
    request = FUNCTION_CALL.read(reader)
    reader.end()
    assert request == EncodedEntryFunction(FunctionId.parse("0x1::m::f"), (parse_type_tag("u8"),), ENCODED)
    answer = b"\x02\x05" + bytes(15) + b"\x02\xc3\xa9"
    assert decode_view_answer(answer, [UInt(128), String()]) == [5, "é"]
    for layouts, text in (
        ([UInt(128)], "expected 1 return value, got 2"),
        ([UInt(8)] * 2, "expected the end of the data"),
    ):
        with pytest.raises(SchemaError, match=text):
            decode_view_answer(answer, layouts)
