"""Published vectors of signed transactions: bytes to values and back, values to bytes, signatures over the bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

from toolkit.move import FunctionId, parse_address, parse_type_tag
from toolkit.wire import Ed25519Signature, RawTransaction, SignedTransaction
from toolkit.wire._bcs_requests import EncodedEntryFunction, EncodedModuleBundle, EncodedScript, ScriptArgument

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.move import TypeTag

KINDS = ("entry_function", "script", "module")
ARGUMENT_KINDS = {"U8": "u8", "U64": "u64", "U128": "u128", "Address": "address", "U8Vector": "bytes", "Bool": "bool"}


def vectors(folder: Path, kind: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((folder / "vectors" / f"signed_txn_bcs.{kind}_payload.json").read_bytes())
    return loaded


def tag_text(tag: Any) -> str:
    """Spell a type tag of the vectors' own JSON as text."""
    if isinstance(tag, str):
        return tag
    if "vector" in tag:
        return f"vector<{tag_text(tag['vector'])}>"
    struct = tag["struct"]
    inner = ", ".join(map(tag_text, struct["type_args"]))
    return f"0x{struct['address']}::{struct['module']}::{struct['name']}" + (f"<{inner}>" if inner else "")


def tags(texts: list[Any]) -> tuple[TypeTag, ...]:
    return tuple(parse_type_tag(tag_text(tag)) for tag in texts)


def script_argument(argument: dict[str, Any]) -> ScriptArgument:
    ((name, value),) = argument.items()
    kind = ARGUMENT_KINDS[name]
    if kind.startswith("u"):
        return ScriptArgument(kind, int(value))
    if kind == "address":
        return ScriptArgument(kind, parse_address(value))
    return ScriptArgument(kind, bytes.fromhex(value) if kind == "bytes" else value)


def payload(content: dict[str, Any]) -> Any:
    """Build a payload from the vectors' own JSON."""
    ((name, value),) = content.items()
    if name == "ModuleBundle":
        return EncodedModuleBundle(tuple(bytes.fromhex(code["code"]) for code in value["codes"]))
    if name == "Script":
        arguments = tuple(map(script_argument, value["args"]))
        return EncodedScript(bytes.fromhex(value["code"]), tags(value["ty_args"]), arguments)
    function = FunctionId("0x" + value["module"]["address"], value["module"]["name"], value["function"])
    return EncodedEntryFunction(function, tags(value["ty_args"]), tuple(map(bytes.fromhex, value["args"])))


def raw_transaction(content: dict[str, Any]) -> RawTransaction:
    numbers = ("sequence_number", "max_gas_amount", "gas_unit_price", "expiration_timestamp_secs", "chain_id")
    return RawTransaction(
        sender=parse_address(content["sender"]),
        payload=payload(content["payload"]),
        **{name: int(content[name]) for name in numbers},
    )


@pytest.mark.parametrize("kind", KINDS)
def test_signed_transactions_come_back_byte_for_byte(
    shared_data: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading and writing is the identity, and the fields built from JSON give the bytes before the authenticator."""
    found = vectors(shared_data, kind)
    for vector in found:
        data = bytes.fromhex(vector["signed_txn_bcs"])
        signed = SignedTransaction.from_bcs(data)
        assert signed.to_bcs() == data
        raw = raw_transaction(vector["raw_txn"])
        assert raw == signed.raw
        bare = raw.to_bcs()
        assert data.startswith(bare)
        assert RawTransaction.from_bcs(bare) == raw
        assert len(data) - len(bare) == 1 + 33 + 65  # variant, ed25519 key, signature
    with capsys.disabled():
        print(f"\n  wire, signed transactions: {len(found)} vectors of {kind} payloads")
    assert len(found) == 67


def test_signatures_are_over_the_signing_message(shared_data: Path) -> None:
    """The vectors' own key signs `signing_message` to the vectors' own signature."""
    for kind in KINDS:
        for vector in vectors(shared_data, kind):
            signed = SignedTransaction.from_bcs(bytes.fromhex(vector["signed_txn_bcs"]))
            key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(vector["private_key"]))
            assert isinstance(signed.signature, Ed25519Signature)
            assert "0x" + key.sign(signed.signing_message()).hex() == signed.signature.signature
