"""The slow and obvious way from a transaction in a node's JSON to its BCS bytes, with nothing of the package in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

#: Parameter types of a function by its id.
Parameters = Callable[[str], list[str]]
#: A struct by its module's address, module and name, as the ABI has it; None if there is none.
Structs = Callable[[str], "dict[str, Any] | None"]


def no_structs(_: str) -> None:
    """Look up no struct."""


def bound(kind: str, given: list[str]) -> str:
    """Return a type with its type parameters filled in."""
    return re.sub(r"\bT(\d+)\b", lambda match: given[int(match[1])], kind)


def signed_bytes(
    document: dict[str, Any], parameters: Parameters, chain_id: int, structs: Structs = no_structs
) -> bytes:
    """Return a signed transaction that is sent in JSON as it would be sent in BCS.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is none, or has a part that the tests have no use for, such as a script with arguments.
    """
    nonce = document.get("replay_protection_nonce")
    raw = address(document["sender"]) + u64(document["sequence_number"])
    raw += payload(document["payload"], None if nonce is None else u64(nonce), parameters, structs)
    raw += b"".join(u64(document[name]) for name in ("max_gas_amount", "gas_unit_price", "expiration_timestamp_secs"))
    return raw + bytes([chain_id]) + transaction_signature(document["signature"])


def uleb(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def u64(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"a u64 is text: {text!r}")
    return int(text).to_bytes(8, "little")


def address(text: str) -> bytes:
    return int(text, 16).to_bytes(32, "big")


def raw_bytes(text: str) -> bytes:
    if not text.startswith("0x"):
        raise ValueError(f"bytes start with 0x: {text!r}")
    return bytes.fromhex(text[2:])


def sized(data: bytes) -> bytes:
    return uleb(len(data)) + data


def sequence(items: list[bytes]) -> bytes:
    return uleb(len(items)) + b"".join(items)


def payload(
    document: dict[str, Any], nonce: bytes | None, parameters: Parameters, structs: Structs = no_structs
) -> bytes:
    """Return a payload, of the second version if it has a nonce."""
    match document["type"]:
        case "entry_function_payload":
            called = call(document, parameters, structs)
            return b"\x02" + called if nonce is None else b"\x04\x00\x01" + called + b"\x00\x00\x01" + nonce
        case "multisig_payload" if nonce is None:
            inner = document.get("transaction_payload")
            ran = b"\x00" if inner is None else b"\x01\x00" + call(inner, parameters, structs)
            return b"\x03" + address(document["multisig_address"]) + ran
    raise ValueError(document["type"])


def call(document: dict[str, Any], parameters: Parameters, structs: Structs = no_structs) -> bytes:
    """Return the call of an entry or view function."""
    where, module, name = document["function"].split("::")
    given = document["type_arguments"]
    wanted = [text for text in parameters(document["function"]) if text not in ("&signer", "signer")]
    wanted = [bound(text, given) for text in wanted]
    pairs = list(zip(wanted, document["arguments"], strict=True))
    if any(kind.startswith("0x1::object::Object<") and isinstance(one, dict) for kind, one in pairs):
        raise ValueError("an Object that is the argument itself is text")
    arguments = [sized(value(*pair, structs)) for pair in pairs]
    tags = sequence([type_tag(text) for text in given])
    return address(where) + sized(module.encode()) + sized(name.encode()) + tags + sequence(arguments)


PRIMITIVES = {"bool": 0, "u8": 1, "u64": 2, "u128": 3, "address": 4, "signer": 5, "u16": 8, "u32": 9, "u256": 10}
PRIMITIVES |= {"i8": 12, "i16": 13, "i32": 14, "i64": 15, "i128": 16, "i256": 17}
"""Primitive types with their tags."""


def split_type(text: str) -> tuple[str, list[str]]:
    """Return a type without its type arguments, and these."""
    outer, bracket, inner = text.partition("<")
    given: list[str] = []
    depth = 0
    for character in inner.removesuffix(">") if bracket else "":
        depth += (character == "<") - (character == ">")
        if not given or (character == "," and depth == 0):
            given.append("")
        if character != "," or depth > 0:
            given[-1] += character
    return outer.strip(), [one.strip() for one in given]


def type_tag(text: str) -> bytes:
    """Return the tag of a type."""
    outer, given = split_type(text)
    if outer in PRIMITIVES:
        return bytes([PRIMITIVES[outer]])
    if outer == "vector":
        return b"\x06" + type_tag(given[0])
    where, module, name = outer.split("::")
    tags = sequence([type_tag(one) for one in given])
    return b"\x07" + address(where) + sized(module.encode()) + sized(name.encode()) + tags


def value(kind: str, given: Any, structs: Structs = no_structs) -> bytes:  # noqa: PLR0911  # one case per kind
    """Return a value by its type's text in the ABI, from the JSON that a node accepts or prints."""
    outer, types = split_type(kind)
    bits = re.fullmatch(r"([ui])(8|16|32|64|128|256)", kind)
    if bits:
        return int(given).to_bytes(int(bits[2]) // 8, "little", signed=bits[1] == "i")
    if kind == "bool":
        return bytes([given])
    if kind == "address" or kind.startswith("0x1::object::Object<"):
        return address(given["inner"] if isinstance(given, dict) else given)
    if kind == "0x1::string::String":
        return sized(given.encode())
    if kind == "vector<u8>":
        return sized(raw_bytes(given))
    if outer == "0x1::option::Option":
        items = given["vec"]
        return sequence(
            [value(types[0], item, structs) for item in (raw_bytes(items) if isinstance(items, str) else items)]
        )
    if outer == "vector":
        return sequence([value(types[0], item, structs) for item in given])
    struct = structs(outer)
    if struct is None:
        raise ValueError(kind)
    fields, start = struct["fields"], b""
    if struct.get("is_enum"):
        name = given.get("__variant__") or next(iter(given))
        given = given if "__variant__" in given else given[name]
        place = [one["name"] for one in struct["variants"]].index(name)
        fields, start = struct["variants"][place]["fields"], uleb(place)
    return start + b"".join(value(bound(one["type"], types), given[one["name"]], structs) for one in fields)


def transaction_signature(document: dict[str, Any]) -> bytes:
    """Return the signature of a whole transaction."""
    signers = [address(text) for text in document.get("secondary_signer_addresses", [])]
    seconds = [account_signature(one) for one in document.get("secondary_signers", [])]
    match document["type"]:
        case "ed25519_signature" | "multi_ed25519_signature":
            return account_signature(document)
        case "multi_agent_signature":
            return b"\x02" + account_signature(document["sender"]) + sequence(signers) + sequence(seconds)
        case "fee_payer_signature":
            sender = account_signature(document["sender"])
            payer = address(document["fee_payer_address"]) + account_signature(document["fee_payer_signer"])
            return b"\x03" + sender + sequence(signers) + sequence(seconds) + payer
    return b"\x04" + account_signature(document)


def account_signature(document: dict[str, Any]) -> bytes:
    """Return the signature of one account."""
    match document["type"]:
        case "ed25519_signature":
            return b"\x00" + sized(raw_bytes(document["public_key"])) + sized(raw_bytes(document["signature"]))
        case "multi_ed25519_signature":
            keys = b"".join(raw_bytes(key) for key in document["public_keys"]) + bytes([document["threshold"]])
            signatures = b"".join(raw_bytes(one) for one in document["signatures"])
            return b"\x01" + sized(keys) + sized(signatures + raw_bytes(document["bitmap"]))
        case "no_account_signature":
            return b"\x04"
    raise ValueError(document["type"])
