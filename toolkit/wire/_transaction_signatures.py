"""Signatures of transactions: of one account, of several, or with a fee payer. This package only sends zeros.

To add a kind, write its class and add it to the union and to the table of indices below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pydantic import model_validator

from toolkit.errors import InputError
from toolkit.wire._account_signatures import (
    ACCOUNT,
    AbstractSignature,
    AccountSignature,
    Ed25519Signature,
    Field,
    MultiEd25519Signature,
    MultiKeySignature,
    NoAccountSignature,
    SignatureModel,
    SingleKeySignature,
    UnknownSignature,
    parse_account_signature,
    signature_form,
)
from toolkit.wire._bcs_forms import ADDRESS, Form, variants
from toolkit.wire._models import AddressText, parse_by_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.move._bcs import Writer
    from toolkit.wire._models import JsonObject


_ADDRESS = Field(ADDRESS)
_AGENTS = {
    "sender": ACCOUNT,
    "secondary_signer_addresses": _ADDRESS.many(),
    "secondary_signers": ACCOUNT.many(),
}


class MultiAgentSignature(SignatureModel):
    """Signatures of a sender and of secondary signers.

    Parameters
    ----------
    sender : AccountSignature
        Signature of the sender.
    secondary_signer_addresses : sequence of str
        Addresses of the secondary signers.
    secondary_signers : sequence of AccountSignature
        Their signatures, in the same order.

    Raises
    ------
    InputError
        If no secondary signer is given, or not one signature per address.

    Examples
    --------
    >>> from toolkit.wire import MultiAgentSignature, NoAccountSignature
    >>> nobody = NoAccountSignature()
    >>> signature = MultiAgentSignature(
    ...     nobody, secondary_signer_addresses=["0xb0b"], secondary_signers=[nobody]
    ... )
    >>> signature.secondary_signer_addresses
    ('0x0000000000000000000000000000000000000000000000000000000000000b0b',)
    """

    type: ClassVar[str] = "multi_agent_signature"
    _fields = _AGENTS

    sender: AccountSignature
    secondary_signer_addresses: tuple[AddressText, ...]
    secondary_signers: tuple[AccountSignature, ...]

    def __init__(
        self,
        sender: AccountSignature,
        *,
        secondary_signer_addresses: Sequence[str],
        secondary_signers: Sequence[AccountSignature],
        **unknown: Any,
    ) -> None:
        self._fill(locals())

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_pairs(self.secondary_signer_addresses, self.secondary_signers)
        if not self.secondary_signers:
            raise InputError("expected at least one secondary signer in a multi-agent signature")
        return self


class FeePayerSignature(SignatureModel):
    """Signatures of a sender, of secondary signers and of the account that pays the fee.

    Parameters
    ----------
    sender : AccountSignature
        Signature of the sender.
    fee_payer_address : str
        Address of the account that pays; ``0x0`` charges nobody.
    fee_payer_signer : AccountSignature
        Signature of the account that pays.
    secondary_signer_addresses : sequence of str, default ()
        Addresses of the secondary signers.
    secondary_signers : sequence of AccountSignature, default ()
        Their signatures, in the same order.

    Raises
    ------
    InputError
        If an address cannot be used, or there is not one signature per secondary signer.

    Examples
    --------
    >>> from toolkit.wire import FeePayerSignature, NoAccountSignature
    >>> nobody = NoAccountSignature()
    >>> FeePayerSignature(nobody, fee_payer_address="0xb0b", fee_payer_signer=nobody).fee_payer_address
    '0x0000000000000000000000000000000000000000000000000000000000000b0b'
    """

    type: ClassVar[str] = "fee_payer_signature"
    _fields = _AGENTS | {"fee_payer_address": _ADDRESS, "fee_payer_signer": ACCOUNT}

    sender: AccountSignature
    secondary_signer_addresses: tuple[AddressText, ...] = ()
    secondary_signers: tuple[AccountSignature, ...] = ()
    fee_payer_address: AddressText
    fee_payer_signer: AccountSignature

    def __init__(
        self,
        sender: AccountSignature,
        *,
        fee_payer_address: str,
        fee_payer_signer: AccountSignature,
        secondary_signer_addresses: Sequence[str] = (),
        secondary_signers: Sequence[AccountSignature] = (),
        **unknown: Any,
    ) -> None:
        self._fill(locals())

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_pairs(self.secondary_signer_addresses, self.secondary_signers)
        return self


class SingleSenderSignature(SignatureModel):
    """The signature of one account as that of a transaction. Nodes print it in JSON, but only accept it in BCS.

    Parameters
    ----------
    sender : AccountSignature
        Signature of the account.

    Raises
    ------
    InputError
        If `sender` is not an account signature.

    Examples
    --------
    >>> from toolkit.wire import NoAccountSignature, SingleSenderSignature
    >>> SingleSenderSignature(NoAccountSignature()).to_wire()["type"]
    'single_sender'
    """

    type: ClassVar[str] = "single_sender"
    _fields = {"sender": ACCOUNT}  # noqa: RUF012  # a class variable of the base

    sender: AccountSignature

    def __init__(self, sender: AccountSignature, **unknown: Any) -> None:
        self._fill(locals())

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> SingleSenderSignature | UnknownSignature:
        """Return the signature of a JSON object.

        Nodes merge the account signature into the object, whose ``type`` is then that of the transaction signature; so
        the kind of the account signature is found from its fields.
        """
        sender: AccountSignature
        if isinstance(content.get("sender"), dict):
            sender = parse_account_signature(content["sender"])
        elif "function_info" in content or "auth_data" in content:
            sender = AbstractSignature.from_wire(content)
        elif "public_keys" in content:
            several = MultiEd25519Signature if "bitmap" in content else MultiKeySignature
            sender = several.from_wire(content)
        elif "public_key" in content:
            one = Ed25519Signature if isinstance(content["public_key"], str) else SingleKeySignature
            sender = one.from_wire(content)
        elif set(content) == {"type"}:
            sender = NoAccountSignature()
        else:
            return UnknownSignature(content)
        return cls(sender)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form that nodes print: the fields of the account signature with the outer type."""
        return self.sender.to_wire() | {"type": self.type}

    def authentication_key(self) -> bytes | None:
        return self.sender.authentication_key()

    @property
    def has_json_form(self) -> bool:
        """Whether nodes accept the JSON form: never."""
        return False


TransactionSignature = (
    Ed25519Signature
    | MultiEd25519Signature
    | MultiAgentSignature
    | FeePayerSignature
    | SingleSenderSignature
    | NoAccountSignature
    | UnknownSignature
)

# In the order of their indices in BCS.
_KINDS: tuple[type[SignatureModel], ...] = (
    Ed25519Signature,
    MultiEd25519Signature,
    MultiAgentSignature,
    FeePayerSignature,
    SingleSenderSignature,
)
_READERS = {kind.type: kind.from_wire for kind in (*_KINDS, NoAccountSignature)}  # type: ignore[attr-defined]  # each has a type
_KNOWN_SIGNATURE = variants("transaction authenticator", *map(signature_form, _KINDS))

_S = TypeVar("_S", bound=SignatureModel)


def _write_signature(writer: Writer, signature: TransactionSignature) -> None:
    if isinstance(signature, NoAccountSignature | UnknownSignature):
        signature = SingleSenderSignature(signature)  # in BCS, an absent signature is that of a single sender
    _KNOWN_SIGNATURE.write(writer, signature)


SIGNATURE = Form(_KNOWN_SIGNATURE.read, _write_signature)


def parse_signature(json: JsonObject) -> TransactionSignature:
    """Decode the signature of a transaction.

    Parameters
    ----------
    json : mapping, bytes or msgspec.Raw
        The JSON object, parsed or not.

    Returns
    -------
    TransactionSignature
        An `UnknownSignature` with the JSON if the ``type`` is unknown.

    Raises
    ------
    SchemaError
        If the JSON is not an object, or does not have the documented shape of its type.

    Examples
    --------
    >>> parse_signature(b'{"type": "no_account_signature"}')
    NoAccountSignature()
    """
    return parse_by_type(json, _READERS, UnknownSignature, "signature")  # type: ignore[no-any-return]  # by table


def zero_padded(signature: _S) -> _S:
    """Return a signature of the same shape, keys and addresses with zeros in place of every signature.

    Parameters
    ----------
    signature : TransactionSignature or AccountSignature
        Any signature.

    Returns
    -------
    signature of the same class

    Raises
    ------
    InputError
        If the kind is unknown, or the authentication data of an abstract signature is not BCS.

    Examples
    --------
    >>> from toolkit.wire import Ed25519Signature
    >>> real = Ed25519Signature(bytes(32), signature=b"s" * 64)
    >>> is_zero_padded(real), is_zero_padded(zero_padded(real))
    (False, True)
    """
    return signature.zero_padded()


def is_zero_padded(signature: SignatureModel) -> bool:
    """Return whether every signature in a transaction or account signature is zeros or absent.

    Parameters
    ----------
    signature : TransactionSignature or AccountSignature
        Any signature; the result is False for one of an unknown kind.

    Returns
    -------
    bool

    Examples
    --------
    >>> from toolkit.wire import Ed25519Signature
    >>> from toolkit.wire._transaction_signatures import is_zero_padded
    >>> key = bytes(32)
    >>> is_zero_padded(Ed25519Signature(key)), is_zero_padded(Ed25519Signature(key, signature=bytes([1]) * 64))
    (True, False)
    """
    try:
        return signature.zero_padded() == signature
    except InputError:
        return False


def _check_pairs(addresses: Sequence[object], signers: Sequence[object]) -> None:
    if len(addresses) != len(signers):
        raise InputError(
            f"expected one secondary signer per address, got {len(signers)} for {len(addresses)} addresses"
        )
