"""``0x1::multisig_account``: accounts that execute transactions once enough owners have approved them."""

from __future__ import annotations

from typing import Any

from toolkit.embedded._contract import Module, entry, view
from toolkit.embedded._vm_status import (
    MoveAbort,
    VmError,
    invalid_argument,
    invalid_state,
    not_found,
    permission_denied,
)
from toolkit.embedded.framework._account import Account
from toolkit.embedded.framework._coin import APTOS_COIN, Coin
from toolkit.embedded.framework._configuration import Timestamp
from toolkit.embedded.types import *


class MultisigAccount(Module, address="0x1"):
    """Multisig accounts and the transactions that their owners vote on."""

    class Vote(Struct):
        """The vote of an owner."""

        owner: address
        approved: bool

    class MultisigTransaction(Struct):
        """A proposed payload with its votes."""

        payload: bytes
        votes: vector[MultisigAccount.Vote]
        creator: address
        creation_time_secs: u64

    class MultisigAccount(Resource):
        """A multisig account."""

        owners: vector[address]
        num_signatures_required: u64
        transactions: Table[u64, MultisigAccount.MultisigTransaction]
        last_executed_sequence_number: u64
        next_sequence_number: u64

    class CreateTransaction(Event):
        """An owner proposed a payload."""

        multisig_account: address
        creator: address
        sequence_number: u64
        transaction: MultisigAccount.MultisigTransaction

    class VoteCast(Event):
        """An owner voted."""

        multisig_account: address
        owner: address
        sequence_number: u64
        approved: bool

    class ExecutionError(Struct):
        """The error of a failed payload."""

        abort_location: String
        error_type: String
        error_code: u64

    class TransactionExecutionSucceeded(Event):
        """A payload was executed successfully."""

        multisig_account: address
        executor: address
        sequence_number: u64
        transaction_payload: bytes
        num_approvals: u64

    class TransactionExecutionFailed(TransactionExecutionSucceeded):
        """The execution of a payload failed; its writes were undone."""

        execution_error: MultisigAccount.ExecutionError

    EDUPLICATE_OWNER = invalid_argument(1, "Owner list cannot contain the same address more than once")
    EACCOUNT_NOT_MULTISIG = invalid_state(2002, "Specified account is not a multisig account")
    ENOT_OWNER = permission_denied(2003, "Account executing this operation is not an owner of the multisig account")
    EPAYLOAD_CANNOT_BE_EMPTY = invalid_argument(4, "Transaction payload cannot be empty")
    ETRANSACTION_NOT_FOUND = not_found(2006, "Transaction with specified id cannot be found")
    EINVALID_SIGNATURES_REQUIRED = invalid_argument(
        11, "Number of signatures required must be more than zero and at most the total number of owners"
    )

    @entry
    def create_with_owners(
        self,
        owner: signer,
        additional_owners: vector[address],
        num_signatures_required: u64,
        metadata_keys: vector[String],
        metadata_values: vector[bytes],
    ) -> None:
        """Create a multisig account that the signer and other owners share; the metadata is ignored."""
        owners = [owner, *additional_owners]
        self.require(len(set(owners)) == len(owners), self.EDUPLICATE_OWNER)
        self.require(0 < num_signatures_required <= len(owners), self.EINVALID_SIGNATURES_REQUIRED)
        created = self.session.new_address()
        self.use(Account).create_account(created)
        self.use(Coin).register(APTOS_COIN, created)
        account = MultisigAccount.MultisigAccount(
            owners=owners,
            num_signatures_required=num_signatures_required,
            transactions=self.new_table(),
            last_executed_sequence_number=0,
            next_sequence_number=1,
        )
        self.move_to(created, account)

    @entry
    def create_transaction(self, owner: signer, multisig_account: address, payload: bytes) -> None:
        """Propose a payload, which the proposer approves at the same time."""
        self.require(payload, self.EPAYLOAD_CANNOT_BE_EMPTY)
        self._check_owner(owner, multisig_account)
        proposed = MultisigAccount.MultisigTransaction(
            payload=payload,
            votes=[MultisigAccount.Vote(owner=owner, approved=True)],
            creator=owner,
            creation_time_secs=self.use(Timestamp).now_seconds(),
        )
        with self.borrow_mut(MultisigAccount.MultisigAccount, multisig_account) as account:
            number = account.next_sequence_number
            account.transactions.add(number, proposed)
            account.next_sequence_number += 1
        event = MultisigAccount.CreateTransaction(
            multisig_account=multisig_account, creator=owner, sequence_number=number, transaction=proposed
        )
        self.emit(event)

    @entry
    def approve_transaction(self, owner: signer, multisig_account: address, sequence_number: u64) -> None:
        """Vote for a payload."""
        self._vote(owner, multisig_account, sequence_number, approved=True)

    @entry
    def reject_transaction(self, owner: signer, multisig_account: address, sequence_number: u64) -> None:
        """Vote against a payload."""
        self._vote(owner, multisig_account, sequence_number, approved=False)

    @view
    def owners(self, multisig_account: address) -> vector[address]:
        """Return the owners of a multisig account."""
        return self.borrow(MultisigAccount.MultisigAccount, multisig_account).owners

    @view
    def num_signatures_required(self, multisig_account: address) -> u64:
        """Return the number of required approvals."""
        return self.borrow(MultisigAccount.MultisigAccount, multisig_account).num_signatures_required

    @view
    def next_sequence_number(self, multisig_account: address) -> u64:
        """Return the sequence number of the next proposed payload."""
        return self.borrow(MultisigAccount.MultisigAccount, multisig_account).next_sequence_number

    @view
    def last_resolved_sequence_number(self, multisig_account: address) -> u64:
        """Return the sequence number of the last executed payload."""
        return self.borrow(MultisigAccount.MultisigAccount, multisig_account).last_executed_sequence_number

    @view
    def get_transaction(self, multisig_account: address, sequence_number: u64) -> MultisigTransaction:
        """Return a proposed payload."""
        transactions = self._account(multisig_account).transactions
        self.require(transactions.contains(sequence_number), self.ETRANSACTION_NOT_FOUND)
        return transactions.borrow(sequence_number)

    @view
    def can_be_executed(self, multisig_account: address, sequence_number: u64) -> bool:
        """Return True if a payload is the next one and has enough approvals."""
        account = self._account(multisig_account)
        is_next = sequence_number == account.last_executed_sequence_number + 1
        return is_next and self._approvals(multisig_account, sequence_number) >= account.num_signatures_required

    def find_problem(self, executor: address, multisig_account: address, payload: bytes | None) -> str | None:
        """Return the status name of the problem that prevents executing the next payload, or None.

        Parameters
        ----------
        executor : address
            Sender of the transaction.
        multisig_account : address
            Address of the multisig account.
        payload : bytes, optional
            Payload of the transaction, which must equal the stored one.
        """
        if not self.exists(MultisigAccount.MultisigAccount, multisig_account):
            return "ACCOUNT_NOT_MULTISIG"
        account = self._account(multisig_account)
        number = account.last_executed_sequence_number + 1
        if executor not in account.owners:
            return "NOT_MULTISIG_OWNER"
        if not account.transactions.contains(number):
            return "MULTISIG_TRANSACTION_NOT_FOUND"
        if self._approvals(multisig_account, number) < account.num_signatures_required:
            return "MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS"
        stored = account.transactions.borrow(number).payload
        return None if payload in {None, stored} else "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH"

    def next_payload(self, multisig_account: address) -> bytes:
        """Return the stored payload that is executed next."""
        account = self._account(multisig_account)
        return account.transactions.borrow(account.last_executed_sequence_number + 1).payload

    def record_success(self, executor: address, multisig_account: address, payload: bytes) -> None:
        """Record that the next payload was executed successfully."""
        resolved = self._resolve(executor, multisig_account, payload)
        self.emit(MultisigAccount.TransactionExecutionSucceeded(**resolved))

    def record_failure(self, executor: address, multisig_account: address, payload: bytes, error: VmError) -> None:
        """Record that the execution of the next payload failed."""
        resolved = self._resolve(executor, multisig_account, payload)
        described = MultisigAccount.ExecutionError(
            abort_location=error.location,
            error_type="MoveAbort" if isinstance(error, MoveAbort) else "VMError",
            error_code=error.code.code if isinstance(error, MoveAbort) else error.vm_error_code,
        )
        self.emit(MultisigAccount.TransactionExecutionFailed(**resolved, execution_error=described))

    def _resolve(self, executor: str, multisig_account: str, payload: bytes) -> dict[str, Any]:
        """Remove the next payload; return the fields that the events of both outcomes share."""
        with self.borrow_mut(MultisigAccount.MultisigAccount, multisig_account) as account:
            account.last_executed_sequence_number += 1
            number = account.last_executed_sequence_number
            approvals = self._approvals(multisig_account, number)
            account.transactions.remove(number)
        return {
            "multisig_account": multisig_account,
            "executor": executor,
            "sequence_number": number,
            "transaction_payload": payload,
            "num_approvals": approvals,
        }

    def _vote(self, owner: str, multisig_account: str, sequence_number: int, *, approved: bool) -> None:
        self._check_owner(owner, multisig_account)
        transactions = self._account(multisig_account).transactions
        self.require(transactions.contains(sequence_number), self.ETRANSACTION_NOT_FOUND)
        with transactions.borrow_mut(sequence_number) as proposed:
            others = [vote for vote in self.each(proposed.votes) if vote.owner != owner]
            proposed.votes = [*others, MultisigAccount.Vote(owner=owner, approved=approved)]
        event = MultisigAccount.VoteCast(
            multisig_account=multisig_account, owner=owner, sequence_number=sequence_number, approved=approved
        )
        self.emit(event)

    def _approvals(self, multisig_account: str, sequence_number: int) -> int:
        account = self._account(multisig_account)
        if not account.transactions.contains(sequence_number):
            return 0
        votes = account.transactions.borrow(sequence_number).votes
        return sum(vote.approved and vote.owner in account.owners for vote in self.each(votes))

    def _check_owner(self, owner: str, multisig_account: str) -> None:
        self.require(owner in self._account(multisig_account).owners, self.ENOT_OWNER)

    def _account(self, multisig_account: str) -> MultisigAccount:
        self.require(self.exists(MultisigAccount.MultisigAccount, multisig_account), self.EACCOUNT_NOT_MULTISIG)
        return self.borrow(MultisigAccount.MultisigAccount, multisig_account)
