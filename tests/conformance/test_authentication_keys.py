"""Authentication keys as the published Python SDK derives them, for every scheme it knows."""

from __future__ import annotations

import pytest

from toolkit.wire import (
    Ed25519Signature,
    MultiEd25519Signature,
    MultiKeySignature,
    NoAccountSignature,
    PublicKey,
    SingleKeySignature,
    SingleSenderSignature,
)

pytest.importorskip("aptos_sdk", reason="needs aptos-sdk, of the test extra")


@pytest.fixture(scope="module")
def keys():
    from aptos_sdk import ed25519

    return [ed25519.PrivateKey.from_str(f"0x{number:064x}", strict=False).public_key() for number in (1, 2, 3)]


@pytest.fixture(scope="module")
def secp256k1():
    from aptos_sdk import secp256k1_ecdsa

    return secp256k1_ecdsa.PrivateKey.from_str(f"0x{7:064x}", strict=False).public_key()


def _address(key):
    from aptos_sdk.account_address import AccountAddress

    return AccountAddress.from_key(key).address


def _bytes(key):
    return key.to_crypto_bytes()


def test_one_ed25519_key(keys):
    """The oldest scheme: the key and a zero byte."""
    assert Ed25519Signature(_bytes(keys[0])).authentication_key() == _address(keys[0])


def test_several_ed25519_keys(keys):
    """The threshold is part of what is hashed."""
    from aptos_sdk.ed25519 import MultiPublicKey

    publics = [_bytes(key) for key in keys]
    made = [MultiEd25519Signature(publics, threshold=n).authentication_key() for n in (1, 2)]
    assert made == [_address(MultiPublicKey(keys, n)) for n in (1, 2)]
    assert made[0] != made[1]


def test_one_typed_key(keys, secp256k1):
    """A typed key has an address of its own, whatever its kind."""
    from aptos_sdk.asymmetric_crypto_wrapper import PublicKey as Wrapped

    for key, kind in ((keys[0], "ed25519"), (secp256k1, "secp256k1_ecdsa")):
        typed = SingleKeySignature(PublicKey(_raw(key, kind), type=kind))
        assert typed.authentication_key() == _address(Wrapped(key))
        assert SingleSenderSignature(typed).authentication_key() == _address(Wrapped(key))


def test_several_typed_keys(keys, secp256k1):
    """Keys of several kinds and how many must sign."""
    from aptos_sdk.asymmetric_crypto_wrapper import MultiPublicKey

    typed = [PublicKey(_bytes(keys[0])), PublicKey(_raw(secp256k1, "secp256k1_ecdsa"), type="secp256k1_ecdsa")]
    made = MultiKeySignature(typed, signatures_required=2).authentication_key()
    assert made == _address(MultiPublicKey([keys[0], secp256k1], 2))


def test_no_key_no_authentication_key():
    """There is nothing to compare for a signer without a key."""
    assert NoAccountSignature().authentication_key() is None


def _raw(key, kind):
    """Return a key's own bytes; the SDK hands out secp256k1 keys in the node's uncompressed form."""
    data = _bytes(key)
    return b"\x04" + data if kind == "secp256k1_ecdsa" and len(data) == 64 else data
