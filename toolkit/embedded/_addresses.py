"""Addresses and signers as contracts see them. Only the ledger makes signers, so `toolkit.embedded.types` does not."""

from __future__ import annotations

from typing import Any, Self

from toolkit.errors import ContractError, InputError
from toolkit.move import parse_address


class Address(str):
    """An address as contracts see it; it equals every string that spells the same address, such as ``"0xcafe"``."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other) is True or not isinstance(other, str):
            return str.__eq__(self, other)
        try:
            return not isinstance(other, Address) and other.startswith("0x") and parse_address(other) == str(self)
        except InputError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class Signer(Address):
    """A signer of the running transaction, which only the ledger can create.

    A signer can be used as an address, and is stored as an address.
    """

    __slots__ = ()

    def __new__(cls, address: str, right: object = None) -> Self:
        """Return a signer; only the ledger has the `right` that is required."""
        if right is not _RIGHT:
            raise ContractError("a contract cannot create a signer: only the signers of the transaction can sign")
        return str.__new__(cls, address)


_RIGHT = object()


def signer_of(address: str) -> Signer:
    """Return the signer of an account."""
    return Signer(address, _RIGHT)


def check_signer(value: Any, name: str = "account") -> Signer:
    """Return a value after checking that it is a signer.

    Raises
    ------
    ContractError
        If the value is not a signer, for example an address.
    """
    if not isinstance(value, Signer):
        raise ContractError(
            f"{name} must be a signer, got {value!r:.80}: only the signers of the transaction can sign, not an address"
        )
    return value
