"""Whole transactions in BCS: raw, signed, and what a signature signs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from toolkit.move.bcs import Reader, Writer
from toolkit.wire.bcs_payloads import read_payload, write_payload
from toolkit.wire.bcs_signatures import read_signature, write_signature
from toolkit.wire.signatures import FeePayerSignature, MultiAgentSignature

if TYPE_CHECKING:
    from toolkit.wire.bcs_payloads import EncodedPayload
    from toolkit.wire.signatures import TransactionSignature

__all__ = ["RawTransaction", "SignedTransaction"]

_RAW_PREFIX = hashlib.sha3_256(b"APTOS::RawTransaction").digest()
_RAW_WITH_DATA_PREFIX = hashlib.sha3_256(b"APTOS::RawTransactionWithData").digest()


@dataclass(frozen=True, slots=True)
class RawTransaction:
    """A transaction without its signature.

    Parameters
    ----------
    sender : str
        Canonical address.
    sequence_number : int
        u64; 2^64 - 1 where a nonce makes the transaction orderless.
    payload : EncodedPayload
        What to run.
    max_gas_amount : int
        Gas units at most.
    gas_unit_price : int
        Octas per gas unit.
    expiration_timestamp_secs : int
        Seconds since 1970-01-01 UTC.
    chain_id : int
        u8.
    """

    sender: str
    sequence_number: int
    payload: EncodedPayload
    max_gas_amount: int
    gas_unit_price: int
    expiration_timestamp_secs: int
    chain_id: int

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read one where `reader` stands.

        Raises
        ------
        SchemaError
            If the bytes are none.
        """
        return cls(
            sender=reader.address(),
            sequence_number=reader.u64(),
            payload=read_payload(reader),
            max_gas_amount=reader.u64(),
            gas_unit_price=reader.u64(),
            expiration_timestamp_secs=reader.u64(),
            chain_id=reader.u8(),
        )

    def write(self, writer: Writer) -> None:
        """Append this transaction.

        Raises
        ------
        InputError, SchemaError
            If a number is out of its range, or a part has no BCS form.
        """
        writer.address(self.sender)
        writer.u64(self.sequence_number)
        write_payload(writer, self.payload)
        writer.u64(self.max_gas_amount)
        writer.u64(self.gas_unit_price)
        writer.u64(self.expiration_timestamp_secs)
        writer.u8(self.chain_id)

    @classmethod
    def from_bcs(cls, data: bytes) -> Self:
        """Read a raw transaction that is all of `data`.

        Raises
        ------
        SchemaError
            If it is none, or bytes follow.
        """
        reader = Reader(data)
        raw = cls.read(reader)
        reader.end()
        return raw

    def to_bcs(self) -> bytes:
        """Return the BCS bytes.

        Raises
        ------
        InputError, SchemaError
            If a number is out of its range, or a part has no BCS form.
        """
        writer = Writer()
        self.write(writer)
        return writer.getvalue()


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """A transaction with its signature, as the simulate endpoint takes it in BCS.

    Parameters
    ----------
    raw : RawTransaction
        What is signed.
    signature : TransactionSignature
        Zeros or nothing, where this package made it.
    """

    raw: RawTransaction
    signature: TransactionSignature

    @classmethod
    def from_bcs(cls, data: bytes) -> Self:
        """Read a signed transaction that is all of `data`.

        Parameters
        ----------
        data : bytes
            BCS.

        Returns
        -------
        SignedTransaction
            ``.to_bcs()`` of it gives `data` again.

        Raises
        ------
        SchemaError
            If it is none, or bytes follow.
        """
        reader = Reader(data)
        signed = cls(RawTransaction.read(reader), read_signature(reader))
        reader.end()
        return signed

    def to_bcs(self) -> bytes:
        """Return the BCS bytes.

        Raises
        ------
        InputError, SchemaError
            If a number is out of its range, or a part has no BCS form.
        """
        writer = Writer()
        self.raw.write(writer)
        write_signature(writer, self.signature)
        return writer.getvalue()

    def signing_message(self) -> bytes:
        """Return the bytes that every signer of this transaction signs: a hash prefix and the BCS."""
        raw = self.raw.to_bcs()
        if not isinstance(self.signature, MultiAgentSignature | FeePayerSignature):
            return _RAW_PREFIX + raw
        writer = Writer()
        writer.uleb128(1 if isinstance(self.signature, FeePayerSignature) else 0)
        writer.fixed(raw)
        writer.uleb128(len(self.signature.secondary_signer_addresses))
        for address in self.signature.secondary_signer_addresses:
            writer.address(address)
        if isinstance(self.signature, FeePayerSignature):
            writer.address(self.signature.fee_payer_address)
        return _RAW_WITH_DATA_PREFIX + writer.getvalue()
