"""Committed transactions in BCS: what was sent, and what the ledger says that it did.

The form is ``TransactionOnChainData`` of a node: version, transaction, transaction info, events, accumulator root hash
and write set. Values have the metadata of their slots, which the JSON form lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.client._http import PreparedCall, path
from toolkit.errors import InputError, SchemaError
from toolkit.move._bcs import Reader
from toolkit.vm._bcs import read_tag
from toolkit.vm._results import SUCCESS, EmittedEvent, Fee, Status, Write
from toolkit.vm._types import ModuleId
from toolkit.wire._aborts import VM_STATUS_NAMES
from toolkit.wire._bcs_forms import read_index
from toolkit.wire._bcs_requests import SIGNED_TRANSACTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client._http import Answer
    from toolkit.client._reads import Reads
    from toolkit.vm._state import Metadata, StateValue
    from toolkit.wire import SignedTransaction

BCS = "application/x-bcs"
FEE_STATEMENT = "0x1::transaction_fee::FeeStatement"
_USER_TRANSACTION = 0
_RAW = 2  # state keys that are just bytes
# Write operations: kind, whether a value follows, and whether metadata follows.
_OPERATIONS = (
    ("create", True, False),
    ("modify", True, False),
    ("delete", False, False),
    ("create", True, True),
    ("modify", True, True),
    ("delete", False, True),
)


@dataclass(frozen=True)
class Committed:
    """A committed user transaction.

    Attributes
    ----------
    version : int
    transaction : bytes
        BCS of the signed transaction.
    signed : SignedTransaction
    status : Status
    gas_used : int
        In gas units.
    events : list of EmittedEvent
    writes : dict of bytes to Write
        By state key, in the order of the ledger.
    """

    version: int
    transaction: bytes
    signed: SignedTransaction
    status: Status
    gas_used: int
    events: list[EmittedEvent]
    writes: dict[bytes, Write]

    @property
    def fee(self) -> Fee | None:
        """Parts of the fee, from the fee statement; None if there is none (before 2023)."""
        return fee_of(self.events)

    @classmethod
    def from_bcs(cls, data: bytes) -> Committed:
        """Decode a committed transaction.

        Raises
        ------
        InputError
            If it is not a user transaction, such as the metadata of a block.
        SchemaError
            If the data is not a committed transaction.
        """
        reader = Reader(data)
        version = reader.u64()
        if reader.uleb128() != _USER_TRANSACTION:
            raise InputError(
                f"version {version:,} is not a user transaction; only user transactions can be replayed. In "
                "toolkit.fetch_transactions(node, versions), these are the transactions with a sender"
            )
        start = reader.position
        signed = SIGNED_TRANSACTION.read(reader)
        transaction = data[start : reader.position]
        gas_used, status = _read_info(reader)
        events = [_read_event(reader) for _ in range(reader.length())]
        reader.bytes()  # accumulator root hash
        read_index(reader, 1, "write set")
        writes = dict(_read_write(reader) for _ in range(reader.length()))
        return cls(version, transaction, signed, status, gas_used, events, writes)


def fee_of(events: Sequence[EmittedEvent]) -> Fee | None:
    """Return the parts of the fee that a fee statement reports; None if there is none."""
    for event in reversed(events):
        if event.type == FEE_STATEMENT:
            numbers = [int.from_bytes(event.data[at : at + 8], "little") for at in range(8, 40, 8)]
            return Fee(*numbers)
    return None


def prepare_committed(node: Reads, version: int) -> PreparedCall[Committed]:
    """Prepare the read of a committed transaction in BCS."""
    asked = f"transaction of version {version:,} in BCS"

    def read(answer: Answer) -> Committed:
        found = Committed.from_bcs(answer.bcs(asked))
        if found.version != version:
            raise SchemaError(f"{asked}: expected version {version:,}, got {found.version:,}")
        return found

    request = node.request("GET", path("transactions", "by_version", version), accept=BCS)
    return PreparedCall(request, asked, read, version)


def _read_info(reader: Reader) -> tuple[int, Status]:
    read_index(reader, 1, "transaction info")
    gas_used, status = reader.u64(), _read_status(reader)
    for _ in range(3):  # hashes of the transaction, the events and the changes
        reader.bytes()
    for _ in range(2):  # of a state checkpoint, and of auxiliary information
        if reader.bool():
            reader.bytes()
    return gas_used, status


def _read_status(reader: Reader) -> Status:
    match read_index(reader, 5, "execution status"):
        case 0:
            return SUCCESS
        case 1:
            return Status("out_of_gas", "OUT_OF_GAS")
        case 2:
            location, code = _read_location(reader), reader.u64()
            name, description = (reader.string(), reader.string()) if reader.bool() else (None, None)
            return Status("abort", code, location, reason=name, description=description)
        case 3:
            return Status("execution_failure", None, _read_location(reader), reader.u16(), reader.u16())
    number = reader.u64() if reader.bool() else None
    return Status("miscellaneous_error", None if number is None else VM_STATUS_NAMES.get(number, str(number)))


def _read_location(reader: Reader) -> str:
    if read_index(reader, 2, "abort location"):
        return "script"
    return str(ModuleId(reader.fixed(32), reader.string()))


def _read_event(reader: Reader) -> EmittedEvent:
    key, number = None, 0
    if read_index(reader, 2, "event") == 0:
        key, number = reader.fixed(40), reader.u64()
    return EmittedEvent(str(read_tag(reader)), key, number, reader.bytes())


def _read_key(reader: Reader) -> bytes:
    start = reader.position
    if read_index(reader, 3, "state key") != _RAW:  # an access path or a table item: an address or a handle first
        reader.fixed(32)
    reader.bytes()
    return reader.data[start : reader.position]


def _read_metadata(reader: Reader) -> Metadata:
    if read_index(reader, 2, "metadata"):
        return reader.u64(), reader.u64(), reader.u64()
    return reader.u64(), 0, reader.u64()


def _read_write(reader: Reader) -> tuple[bytes, Write]:
    key = _read_key(reader)
    op, has_value, has_metadata = _OPERATIONS[read_index(reader, len(_OPERATIONS), "write operation")]
    value = reader.bytes() if has_value else None
    return key, Write(op, value, _read_metadata(reader) if has_metadata else None)


def read_state_value(data: bytes) -> StateValue:
    """Decode a stored value with the metadata of its slot, as the endpoint of raw state values returns it.

    Raises
    ------
    SchemaError
        If the data is not a stored value.
    """
    reader = Reader(data)
    variant = read_index(reader, 2, "state value")
    value = reader.bytes()
    metadata = _read_metadata(reader) if variant else None
    reader.end()
    return value, metadata


# What two executions are compared by: a node does not say at which instruction a failure of another kind happened.
def comparable(status: Status) -> Status:
    """Return a status without what the ledger does not record."""
    match status.kind:
        case "abort":
            return Status("abort", status.code, status.location, reason=status.reason, description=status.description)
        case "execution_failure":
            return Status("execution_failure", None, status.location, status.function, status.offset)
        case "success" | "out_of_gas":
            return Status(status.kind)
    return Status(status.kind, status.code)
