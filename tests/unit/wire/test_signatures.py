"""Signatures: every shape read, sent under the wire's names, zero-padded."""

from __future__ import annotations

import json

import pytest

from toolkit.errors import InputError, SchemaError
from toolkit.wire import (
    AbstractSignature,
    Ed25519Signature,
    FeePayerSignature,
    IndexedSignature,
    MultiAgentSignature,
    MultiEd25519Signature,
    MultiKeySignature,
    NoAccountSignature,
    PublicKey,
    Signature,
    SingleKeySignature,
    SingleSenderSignature,
    zero_padded,
)
from toolkit.wire._signatures import (
    UnknownSignature,
    bitmap_of,
    is_zero_padded,
    parse_account_signature,
    parse_signature,
)

KEY = "0x" + "11" * 32
SIGNED = "0x" + "22" * 64
K1_KEY = PublicKey("0x04" + "33" * 64, type="secp256k1_ecdsa")
R1_KEY = PublicKey("0x04" + "44" * 64, type="secp256r1_ecdsa")
KEYLESS = PublicKey(b"\x03iss\x20" + bytes(32), type="keyless")
FEDERATED = PublicKey(bytes(32) + b"\x03iss\x20" + bytes(32), type="federated_keyless")
SLH = PublicKey(bytes(32), type="slh_dsa__sha2_128s")
REAL = {
    "ed25519": Ed25519Signature(KEY, signature=SIGNED),
    "multi_ed25519": MultiEd25519Signature([KEY, KEY], threshold=1, signatures=[SIGNED], bitmap="0x40000000"),
    "single_key": SingleKeySignature(K1_KEY, signature=Signature(SIGNED, type="secp256k1_ecdsa")),
    "multi_key": MultiKeySignature(
        [PublicKey(KEY), K1_KEY, R1_KEY],
        signatures_required=2,
        signatures=[
            IndexedSignature(0, signature=Signature(SIGNED)),
            IndexedSignature(1, signature=Signature(SIGNED, type="secp256k1_ecdsa")),
        ],
    ),
    "abstract": AbstractSignature("0x1::auth::check", auth_data="0x00" + "20" + "55" * 32 + "03" + "666666"),
    "derivable": AbstractSignature("0x1::auth::check", auth_data="0x0101550377777702" + "abcd"),
}
NONE = NoAccountSignature()


@pytest.mark.parametrize("name", sorted(REAL))
def test_account_signatures_read_back(name: str) -> None:
    """JSON out and in is the identity, alone and inside the multi-account shapes."""
    account = REAL[name]
    assert parse_account_signature(json.dumps(account.to_wire()).encode()) == account
    agent = MultiAgentSignature(account, secondary_signer_addresses=["0x5"], secondary_signers=[account])
    payer = FeePayerSignature(NONE, fee_payer_address="0x0", fee_payer_signer=account)
    for signature in (agent, payer):
        assert parse_signature(signature.to_wire()) == signature


@pytest.mark.parametrize("name", sorted(REAL))
def test_single_sender_is_told_by_its_shape(name: str) -> None:
    """The wrapper and the account signature share `type`, the outer wins: the fields tell which it was."""
    signature = SingleSenderSignature(REAL[name])
    wire = signature.to_wire()
    assert wire["type"] == "single_sender"
    assert parse_signature(wire) == signature


def test_single_sender_with_nothing_or_with_a_nested_sender() -> None:
    """A type alone is not a signature; a nested sender is taken at its word."""
    assert parse_signature({"type": "single_sender"}) == SingleSenderSignature(NONE)
    nested = {"type": "single_sender", "sender": REAL["single_key"].to_wire()}
    assert parse_signature(nested) == SingleSenderSignature(REAL["single_key"])
    assert isinstance(parse_signature({"type": "single_sender", "x": 1}), UnknownSignature)


def test_single_sender_of_no_known_shape_keeps_its_json() -> None:
    """A bitmap without keys is of no known kind."""
    content = {"type": "single_sender", "bitmap": "0x80000000", "signatures": []}
    assert SingleSenderSignature.from_wire(content) == UnknownSignature(content)


def test_both_names_of_the_abstract_signature_are_read_and_the_wires_is_sent() -> None:
    """The service's description says abstraction_signature, the wire abstract_signature."""
    wire = REAL["abstract"].to_wire()
    assert wire["type"] == "abstract_signature"
    assert parse_account_signature(wire | {"type": "abstraction_signature"}) == REAL["abstract"]
    only_hex = parse_account_signature({"type": "abstraction_signature", "signature": "0x00"})
    assert only_hex == AbstractSignature(None, auth_data="0x00")


def test_both_shapes_of_the_multi_key_signature_are_read_and_the_wires_is_sent() -> None:
    """A plain list with `threshold` is read; indexed with `signatures_required` is sent."""
    wire = REAL["multi_key"].to_wire()
    described = {
        "type": "multi_key_signature",
        "public_keys": wire["public_keys"],
        "signatures": [entry["signature"] for entry in wire["signatures"]],
        "threshold": 2,
    }
    read = parse_account_signature(described)
    assert read == REAL["multi_key"]
    assert read.to_wire() == wire
    assert set(wire) == {"type", "public_keys", "signatures", "signatures_required"}


@pytest.mark.parametrize(
    ("key", "kind", "length"),
    [
        (PublicKey(KEY), "ed25519", 64),
        (K1_KEY, "secp256k1_ecdsa", 64),
        (R1_KEY, "web_authn", 68),
        (KEYLESS, "keyless", 250),
        (FEDERATED, "keyless", 250),
        (SLH, "slh_dsa__sha2_128s", 7856),
    ],
)
def test_zero_signature_fits_its_key(key: PublicKey, kind: str, length: int) -> None:
    """Each kind of key has its kind of zeros, of the right length."""
    zero = key.zero_signature()
    assert (zero.type, len(zero.value) // 2 - 1) == (kind, length)
    assert zero.is_zero
    assert is_zero_padded(SingleKeySignature(key))
    assert is_zero_padded(MultiKeySignature([key, key], signatures_required=2))


@pytest.mark.parametrize("name", sorted(REAL))
def test_zero_padding_keeps_the_shape(name: str) -> None:
    """Keys, indices, bitmap and lengths stay; only signatures become zeros."""
    account = REAL[name]
    assert not is_zero_padded(account)
    padded = zero_padded(account)
    assert is_zero_padded(padded)
    assert type(padded) is type(account)
    assert len(json.dumps(padded.to_wire())) == len(json.dumps(account.to_wire()))
    whole = FeePayerSignature(
        account,
        secondary_signer_addresses=["0x5"],
        secondary_signers=[account],
        fee_payer_address="0x6",
        fee_payer_signer=account,
    )
    zeros = zero_padded(whole)
    assert (zeros.sender, zeros.secondary_signers, zeros.fee_payer_signer) == (padded, (padded,), padded)
    assert (zeros.fee_payer_address, zeros.secondary_signer_addresses) == ("0x6", ("0x5",))


def test_one_signature_that_is_not_zeros_is_seen() -> None:
    """Wherever it hides."""
    zero = Ed25519Signature(KEY)
    assert is_zero_padded(MultiAgentSignature(zero, secondary_signer_addresses=["0x5"], secondary_signers=[NONE]))
    for hidden in (
        MultiAgentSignature(zero, secondary_signer_addresses=["0x5"], secondary_signers=[REAL["ed25519"]]),
        FeePayerSignature(zero, fee_payer_address="0x5", fee_payer_signer=REAL["multi_key"]),
        SingleSenderSignature(REAL["abstract"]),
        UnknownSignature({"type": "x"}),
    ):
        assert not is_zero_padded(hidden)


def test_multi_ed25519_defaults_to_zeros_for_every_key() -> None:
    """In JSON, a node takes as many signatures as keys, and the bitmap matches."""
    signature = MultiEd25519Signature([KEY, KEY, KEY], threshold=2)
    assert len(signature.signatures) == 3
    assert signature.bitmap == "0xe0000000"
    assert is_zero_padded(signature)


def test_bitmap_counts_from_the_most_significant_bit() -> None:
    """Key 0 is 0x80."""
    assert bitmap_of([0, 8, 31], length=4) == bytes.fromhex("80800001")


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Ed25519Signature("0x11"), "expected 32 bytes of an ed25519 public key, got 1: '0x11'"),
        (lambda: Ed25519Signature(KEY, signature="0x22"), "expected 64 bytes of an ed25519 signature, got 1"),
        (lambda: PublicKey("0x11", type="secp256k1_ecdsa"), "expected 65 bytes of a public key of type"),
        (lambda: PublicKey(KEY, type="rsa"), "PublicKey.type: expected 'ed25519', 'secp256k1_ecdsa'"),
        (lambda: PublicKey("0x", type="keyless"), "expected 1 to 16,384 bytes of a public key of type keyless, got 0"),
        (lambda: PublicKey(b"\x01", type="keyless"), "expected the BCS of a keyless public key, got '0x01': byte"),
        (
            lambda: PublicKey(b"\x03iss\x20" + bytes(33), type="keyless"),
            "expected the end of the data; trailing bytes: 1",
        ),
        (
            lambda: PublicKey(b"\x03iss\x20" + bytes(32), type="federated_keyless"),
            "expected the BCS of a federated_keyless public key, got",
        ),
        (
            lambda: Signature(b"", type="web_authn"),
            "expected 1 to 16,384 bytes of a signature of type web_authn, got 0",
        ),
        (lambda: MultiEd25519Signature([], threshold=1), "expected 1 to 32 public keys, got 0"),
        (lambda: MultiEd25519Signature([KEY] * 33, threshold=1), "expected 1 to 32 public keys, got 33"),
        (
            lambda: MultiEd25519Signature([KEY], threshold=2),
            "threshold: expected 1 to 1, the number of public keys, got 2",
        ),
        (lambda: MultiEd25519Signature([KEY], threshold=1, bitmap="0x80"), "expected 4 bytes of the bitmap of a"),
        (
            lambda: MultiEd25519Signature([KEY], threshold=1, signatures=[SIGNED] * 2),
            "expected at most one signature per key (1), got 2",
        ),
        (lambda: MultiKeySignature([], signatures_required=1), "expected 1 to 32 public keys, got 0"),
        (lambda: MultiKeySignature([KEY], signatures_required=0), "signatures_required: expected 1 to 1, the number"),
        (
            lambda: REAL["multi_key"].replace(signatures=REAL["multi_key"].signatures[::-1]),
            "expected strictly increasing signature",
        ),
        (
            lambda: MultiAgentSignature(NONE, secondary_signer_addresses=[], secondary_signers=[]),
            "expected at least one secondary signer",
        ),
        (
            lambda: FeePayerSignature(
                NONE, fee_payer_address="0x1", fee_payer_signer=NONE, secondary_signer_addresses=["0x2"]
            ),
            "expected one secondary signer per address (1), got 0",
        ),
        (lambda: NoAccountSignature(x=1), "NoAccountSignature does not have this field"),
        (lambda: zero_padded(UnknownSignature({"type": "x"})), "the unknown type 'x' cannot be zero-padded"),
        (lambda: zero_padded(AbstractSignature(None, auth_data="0x05")), "authentication data"),
    ],
)
def test_misshapen_signatures_are_refused(build, text: str) -> None:
    """The structural checks a node makes, made before anything is sent."""
    with pytest.raises(InputError) as raised:
        build()
    assert text in str(raised.value)


@pytest.mark.parametrize("data", ["0x", "0x00", "0x00000000", "0x" + "00" * 99])
def test_authentication_data_of_zeros_alone_is_zero_padded(data: str) -> None:
    """Whatever its length, it is nobody's: the node may judge its shape."""
    signature = AbstractSignature("0x1::auth::check", auth_data=data)
    assert zero_padded(signature) == signature
    assert is_zero_padded(SingleSenderSignature(signature))


@pytest.mark.parametrize(
    "content",
    [
        {"type": "ed25519_signature"},
        {"type": "ed25519_signature", "public_key": 5, "signature": SIGNED},
        {"type": "multi_agent_signature", "sender": None, "secondary_signer_addresses": [], "secondary_signers": []},
        {"type": "fee_payer_signature", "sender": {}, "secondary_signer_addresses": 5},
        {"type": "multi_ed25519_signature", "public_keys": [KEY], "signatures": [], "threshold": "1", "bitmap": "0x"},
        b"null",
    ],
)
def test_a_known_type_of_another_shape_is_a_schema_error(content) -> None:
    """Answers are checked as strictly as requests."""
    with pytest.raises(SchemaError):
        parse_signature(content)


def test_unknown_kinds_keep_their_json() -> None:
    """A signature of a future kind does not stop the reading of its transaction."""
    content = {"type": "quantum_signature", "x": [1]}
    assert parse_signature(content).to_wire() == content
    assert parse_account_signature(content).to_wire() == content


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (Ed25519Signature, "is missing public_key"),
        (
            lambda: Ed25519Signature(bytes(32), bytes(64), 3),
            "takes each of its fields at most once: public_key, signature",
        ),
        (
            lambda: Ed25519Signature(bytes(32), public_key=bytes(32)),
            "takes each of its fields at most once: public_key, signature",
        ),
    ],
)
def test_arguments_are_taken_as_python_takes_them(make, problem: str) -> None:
    """A missing argument, one too many and one given twice are errors, as for any function."""
    with pytest.raises(TypeError, match=problem):
        make()
