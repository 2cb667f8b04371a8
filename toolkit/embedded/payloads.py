"""Running what a transaction's payload says: an entry function, by itself or for a multisig account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.embedded.framework.multisig_account import MultisigAccount
from toolkit.embedded.session import load_value
from toolkit.embedded.vm_status import VmError
from toolkit.errors import SchemaError
from toolkit.move import Reader, decode_bcs
from toolkit.wire import EncodedEntryFunction, EncodedScript
from toolkit.wire._bcs_payloads import read_function_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.embedded.code import BoundFunction
    from toolkit.embedded.session import Session
    from toolkit.embedded.transaction import Executable, Transaction

__all__ = ["call_function", "lift_arguments", "run_executable"]


def run_executable(session: Session, transaction: Transaction) -> None:
    """Run a transaction's payload.

    Raises
    ------
    VmError
        If it cannot be run, or fails.
    """
    if transaction.multisig_address is not None:
        _run_for_multisig(session, transaction, transaction.multisig_address)
    elif transaction.executable is not None:
        _run(session, transaction.executable, transaction.signers)


def lift_arguments(session: Session, function: BoundFunction, plain: Sequence[Any]) -> list[Any]:
    """Turn decoded arguments into what contract code handles."""
    kinds = function.parameter_kinds
    return [load_value(kind, value, session) for kind, value in zip(kinds, plain, strict=True)]


def call_function(session: Session, function: BoundFunction, arguments: Sequence[Any]) -> Any:
    """Call a contract's method; Python's own arithmetic errors are the VM's."""
    module = session.link(function.definition)
    try:
        return getattr(module, function.function.name)(*arguments)
    except (ZeroDivisionError, OverflowError) as error:
        location = f"{function.definition.wire_id}::{function.function.name}"
        raise VmError("ARITHMETIC_ERROR", str(error), location=location) from None


def _run(session: Session, executable: Executable, signers: Sequence[str]) -> None:
    if isinstance(executable, EncodedScript):
        # Scripts are bytecode, and there is no VM here: they end as bytecode that a VM cannot read.
        raise VmError("CODE_DESERIALIZATION_ERROR")
    wanted = executable.function
    bound = session.code.function(wanted.address, wanted.module, wanted.name, executable.type_arguments)
    if not bound.function.mark.is_entry:
        raise VmError("EXECUTE_ENTRY_FUNCTION_CALLED_ON_NON_ENTRY_FUNCTION")
    if len(executable.arguments) != len(bound.parameters):
        raise VmError("NUMBER_OF_ARGUMENTS_MISMATCH")
    if bound.function.signers not in {0, len(signers)}:
        raise VmError("NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH")
    try:
        plain = list(map(decode_bcs, bound.parameters, executable.arguments))
    except SchemaError:
        raise VmError("FAILED_TO_DESERIALIZE_ARGUMENT") from None
    arguments = [*executable.type_arguments, *signers[: bound.function.signers]]
    call_function(session, bound, [*arguments, *lift_arguments(session, bound, plain)])


def _run_for_multisig(session: Session, transaction: Transaction, address: str) -> None:
    """Run a payload as a multisig account: the one given, or the next one stored on chain.

    The transaction succeeds even where the payload fails: an event says so, and what it wrote is undone.
    """
    multisig = session.module(MultisigAccount)
    executor = transaction.raw.sender
    stored = multisig.next_payload(address)
    executable = transaction.executable or _decoded(stored)
    keep = session.checkpoint()
    try:
        _run(session, executable, (address,))
    except VmError as error:
        if error.status == "OUT_OF_GAS":
            raise
        session.restore(keep)
        multisig.record_failure(executor, address, stored, error)
    else:
        multisig.record_success(executor, address, stored)


def _decoded(stored: bytes) -> EncodedEntryFunction:
    """Read a stored payload: BCS of a multisig transaction payload."""
    try:
        reader = Reader(stored)
        if reader.uleb128() != 0:
            raise VmError("CODE_DESERIALIZATION_ERROR")
        call = read_function_call(reader)
        reader.end()
    except SchemaError:
        raise VmError("FAILED_TO_DESERIALIZE_ARGUMENT", "Failed to deserialize multisig payload") from None
    return call
