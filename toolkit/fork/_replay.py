"""Replays: a committed transaction runs again on the state before it, and is compared with what the ledger says.

What it says is read as ``TransactionOnChainData`` of a node, in BCS: version, transaction, transaction info, events,
accumulator root hash and write set. Values have the metadata of their slots, which the JSON form lacks.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from toolkit._present.notebook import literal
from toolkit._present.tables import text_table
from toolkit._present.text import distinct_addresses, number, plural, visible
from toolkit.client._http import PreparedCall, path
from toolkit.errors import InputError, NodeError, NodeUnreachable, SchemaError
from toolkit.fork._state import BCS, KeyKind, NodeState, parse_key, prefetch
from toolkit.move._ids import address_from_bytes
from toolkit.vm import Execution, Status, execute
from toolkit.vm._bcs import read_tag, tag_bytes
from toolkit.vm._results import NO_FEE, Fee
from toolkit.vm._types import parse
from toolkit.wire._bcs_forms import BcsForm, versioned, whole
from toolkit.wire._bcs_requests import EncodedEntryFunction, payload_parts
from toolkit.wire._on_chain import ExecutedTransaction, executed_transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from toolkit.client._http import Answer
    from toolkit.client._reads import Reads
    from toolkit.vm._results import Profile, Trace
    from toolkit.vm._state import Read
    from toolkit.wire._on_chain import EmittedEvent, Write

_MAX_HEX = 200  # digits of a value in a frame of differences
_MAX_SHOWN = 12  # differences in the words of a replay
# Parts of the gas, in gas units or octas, by the fields of a fee.
PARTS = (
    ("execution", "gas units", "execution_gas_units"),
    ("io", "gas units", "io_gas_units"),
    ("storage", "octas", "storage_fee_octas"),
    ("refund", "octas", "storage_fee_refund_octas"),
)


FEE_STATEMENT = "0x1::transaction_fee::FeeStatement"
# Type tags of events as the machine writes them: they may nest deeper than those that people write.
_TYPE_TEXT = BcsForm(lambda reader: str(read_tag(reader)), lambda writer, text: writer.fixed(tag_bytes(parse(text))))
# A node says first that the transaction is committed, not pending.
COMMITTED = versioned("transaction data", executed_transaction(_TYPE_TEXT))
_NOT_PENDING = b"\0"
_KIND_AT = 9  # offset of the kind of the transaction, after that byte and the version
_USER_TRANSACTION = b"\0"


def read_committed(data: bytes) -> ExecutedTransaction:
    """Decode a committed transaction.

    Raises
    ------
    InputError
        If it is not a user transaction, such as the metadata of a block.
    SchemaError
        If the data is not a committed transaction.
    """
    if data.startswith(_NOT_PENDING) and data[_KIND_AT : _KIND_AT + 1] not in {_USER_TRANSACTION, b""}:
        version = int.from_bytes(data[1:_KIND_AT], "little")
        raise InputError(
            f"version {version:,} is not a user transaction; only user transactions can be replayed. In "
            "toolkit.fetch_transactions(node, versions), these are the transactions with a sender"
        )
    found: ExecutedTransaction = whole(COMMITTED, data)
    return found


def fee_of(events: Sequence[EmittedEvent]) -> Fee | None:
    """Return the parts of the fee that a fee statement reports; None if there is none."""
    for event in reversed(events):
        if event.type == FEE_STATEMENT:
            numbers = [int.from_bytes(event.data[at : at + 8], "little") for at in range(8, 40, 8)]
            return Fee(*numbers)
    return None


def prepare_committed(node: Reads, version: int) -> PreparedCall[ExecutedTransaction]:
    """Prepare the read of a committed transaction in BCS."""
    asked = f"transaction of version {version:,} in BCS"

    def read(answer: Answer) -> ExecutedTransaction:
        found = read_committed(answer.bcs(asked))
        if found.version != version:
            raise SchemaError(f"{asked}: expected version {version:,}, got {found.version:,}")
        return found

    request = node.request("GET", path("transactions", "by_version", version), accept=BCS)
    return PreparedCall(request, asked, read, version)


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


@dataclass(frozen=True, slots=True)
class Difference:
    """What a replay did differently.

    Attributes
    ----------
    what : str
        ``status``, ``gas_used``, ``execution``, ``io``, ``storage``, ``refund``, ``event`` or ``write``.
    place : str or None
        Type of the event, or what is written.
    committed, replayed : str or None
        None if only the other side has it.
    """

    what: str
    place: str | None
    committed: str | None
    replayed: str | None


@dataclass(frozen=True, repr=False)
class Replay:
    """A committed transaction that ran again. Returned by `Fork.replay`.

    Attributes
    ----------
    committed : ExecutedTransaction
        What the ledger says: ``transaction`` (BCS), ``status``, ``gas_used``, ``events`` and ``writes``.
    execution : Execution
        What the machine did.
    has_metadata : bool
        Whether the node serves the metadata of slots. Without it, storage fees and refunds of slots that exist are not
        known, and metadata is not compared.
    index : int or None
        Index of the transaction in its block; None if the node does not offer blocks.

    Notes
    -----
    Code that asks how many items the whole state has raises `Unsupported`. Keyless signatures are not checked again. If
    other transactions of the block change an aggregator or use randomness, the replay reads the values from before the
    transaction.

    Examples
    --------
    >>> import toolkit
    >>> toolkit.connect("mainnet").fork(3_000_000_000).replay(3_000_000_001).verified  # doctest: +SKIP
    True
    """

    committed: ExecutedTransaction
    execution: Execution
    has_metadata: bool = True
    index: int | None = None
    _read: Read | None = field(default=None, repr=False, compare=False)

    @property
    def ledger_version(self) -> int:
        """Version of the committed transaction."""
        return self.committed.version

    @property
    def function(self) -> str | None:
        """The function called; None for a script or a stored payload."""
        return called_function(self.committed)

    @property
    def verified(self) -> bool:
        """Whether status, gas by part, events and writes are those of the ledger."""
        return next(self._differences(), None) is None

    @property
    def differences(self) -> pd.DataFrame:
        """One row per difference; empty if the replay is verified.

        Columns: ``what``, ``place``, ``committed``, ``replayed``. Values are BCS in hex.
        """
        from toolkit.frames._columns import frame_of_rows
        from toolkit.frames._schema import REPLAY_DIFFERENCES

        return frame_of_rows(REPLAY_DIFFERENCES, [asdict(one) for one in self._differences()])

    @property
    def gas(self) -> pd.DataFrame:
        """One row per part of the gas: ``part``, ``unit``, ``committed``, ``replayed`` and ``difference``."""
        from toolkit.frames._columns import frame_of_rows
        from toolkit.frames._schema import REPLAY_GAS

        return frame_of_rows(REPLAY_GAS, self.gas_rows())

    def gas_rows(self) -> list[dict[str, Any]]:
        """Return the rows of `gas`."""
        committed, replayed = fee_of(self.committed.events), fee_of(self.execution.events)
        rows = []
        for part, unit, name in (*PARTS, ("total", "gas units", "")):
            first, second = getattr(committed, name, None), getattr(replayed, name, None)
            if not name:
                first, second = self.committed.gas_used, self.execution.gas_used
            difference = None if first is None or second is None else second - first
            rows.append({"part": part, "unit": unit, "committed": first, "replayed": second, "difference": difference})
        return rows

    @property
    def profile(self) -> Profile:
        """Gas by function, and the call tree. The transaction runs once more to measure it."""
        return self._logged().profile

    @property
    def trace(self) -> Trace:
        """The instructions that ran, one by one. The transaction runs once more to record them."""
        return self._logged().trace

    @property
    def functions(self) -> frozenset[str]:
        """Ids of the functions that ran."""
        return self.execution.functions

    def _logged(self) -> Execution:
        assert self._read is not None  # noqa: S101 - set by `replay_one`
        return execute(self.committed.signed.to_bcs(), self._read, log=True, transaction_index=self.index)

    def _differences(self) -> Iterator[Difference]:
        return differences(self.committed, self.execution, metadata=self.has_metadata)

    def explain(self) -> str:
        """Describe the transaction, whether the replay is verified, and the gas by part."""
        called, sender = self.function or "a script", self.committed.signed.raw.sender
        found = list(self._differences())
        outcome = "verified: status, gas, events and writes are those of the ledger"
        if found:
            kinds = Counter(one.what for one in found)
            outcome = "not verified: " + ", ".join(plural(count, f"different {what}") for what, count in kinds.items())
        lines = [
            f"Version {self.ledger_version:,}: {called} from {sender}, {status_words(self.committed.status)}.",
            f"Replayed on the state of version {self.ledger_version - 1:,}, {outcome}.",
        ]
        rows = self.gas_rows()
        cells = [
            (one["part"], one["unit"], *(number(one[name]) for name in ("committed", "replayed", "difference")))
            for one in rows
        ]
        lines += text_table(cells, head=("part", "unit", "committed", "replayed", "difference"), numbers_from=2)
        if not self.has_metadata:
            lines.append("The node does not serve the metadata of slots: storage fees and refunds may differ.")
        for one in found[:_MAX_SHOWN]:
            place = f" {one.place}" if one.place else ""
            lines.append(f"{one.what}{place}: committed {one.committed}, replayed {one.replayed}")
        short = distinct_addresses(lines)  # of two values that differ, both ends may be the same
        return "\n".join(visible(short(line), 400) for line in lines)

    def __repr__(self) -> str:
        state = "verified" if self.verified else f"{plural(sum(1 for _ in self._differences()), 'difference')}"
        return visible(f"<Replay of version {self.ledger_version:,}: {self.function or 'a script'}, {state}>", 200)

    def _repr_html_(self) -> str:
        title, _, rest = self.explain().partition("\n")
        return literal(f"<strong>{escape(title)}</strong><pre>{escape(rest)}</pre>")


def called_function(committed: ExecutedTransaction) -> str | None:
    """Return the function that a transaction calls; None for a script or a stored payload."""
    executable = payload_parts(committed.signed.raw.payload).executable
    return executable.function.wire if isinstance(executable, EncodedEntryFunction) else None


def status_words(status: Status) -> str:
    """Return how a transaction ended, in words."""
    if status.success:
        return "succeeded"
    where = "" if status.location is None else f" in {status.location}"
    return f"failed ({status.kind} {status.code if status.code is not None else ''}{where})"


def differences(committed: ExecutedTransaction, execution: Execution, *, metadata: bool) -> Iterator[Difference]:
    """Yield what an execution did differently than the ledger.

    Parameters
    ----------
    committed : ExecutedTransaction
    execution : Execution
    metadata : bool
        Whether the metadata of slots is known, and compared.
    """
    pair = comparable(committed.status), comparable(execution.status)
    if pair[0] != pair[1]:
        yield Difference("status", None, *map(status_words, pair))
    amounts = [("gas_used", committed.gas_used, execution.gas_used)]
    if (fee := fee_of(committed.events)) is not None:
        own = fee_of(execution.events) or NO_FEE
        amounts += [(part, getattr(fee, name), getattr(own, name)) for part, _, name in PARTS]
    for part, one, other in amounts:
        if one != other:
            yield Difference(part, None, str(one), str(other))
    for at, sides in enumerate(zip_longest(committed.events, execution.events)):
        if sides[0] != sides[1]:
            kind = (sides[0] or sides[1]).type
            texts = [
                None if side is None else _shortened(f"{side.sequence_number} {side.data.hex()}") for side in sides
            ]
            yield Difference("event", f"{at}: {kind}", *texts)
    for key in dict.fromkeys([*committed.writes, *execution.writes]):
        written = [writes.get(key) for writes in (committed.writes, execution.writes)]
        if not metadata:
            written = [None if write is None else write._replace(metadata=None) for write in written]
        if written[0] != written[1]:
            yield Difference("write", key_text(key), *map(_write_text, written))


def _shortened(digits: str) -> str:
    return digits if len(digits) <= _MAX_HEX else f"{digits[:_MAX_HEX]}... ({len(digits)} digits)"


def _write_text(write: Write | None) -> str | None:
    if write is None:
        return None
    value = "" if write.value is None else f" 0x{_shortened(write.value.hex())}"
    about = "" if write.metadata is None else f" {list(write.metadata)}"
    return f"{write.op}{value}{about}"


def key_text(key: bytes) -> str:
    """Return what a state key stands for."""
    kind, address, what = parse_key(key)
    if kind is KeyKind.ITEM:
        return f"item 0x{what.hex()} of table 0x{address.hex()}"
    where = address_from_bytes(address)
    return f"module {where}::{what}" if kind is KeyKind.MODULE else f"{kind.name.lower()} {what} of {where}"


def replay_one(node: Reads, version: int, state: NodeState, read: Read) -> Replay:
    """Replay one committed transaction on a state; see `Fork.replay`."""
    committed = node.one(prepare_committed(node, version))
    index = None
    with suppress(NodeError, NodeUnreachable, SchemaError):  # only the monotonic counter needs it
        index = version - node.block(version).first_version
    prefetch([(state, committed.writes)])
    execution = execute(committed.signed.to_bcs(), read, transaction_index=index)
    return Replay(committed, execution, state.has_metadata, index, read)
