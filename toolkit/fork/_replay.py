"""Replays: a committed transaction runs again on the state before it, and is compared with what the ledger says."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from toolkit._present.notebook import literal
from toolkit._present.tables import text_table
from toolkit._present.text import number, plural, short_addresses, visible
from toolkit.errors import NodeError, NodeUnreachable, SchemaError
from toolkit.fork._committed import Committed, comparable, fee_of, prepare_committed
from toolkit.fork._state import KeyKind, NodeState, parse_key, prefetch
from toolkit.move._ids import address_from_bytes
from toolkit.vm import Execution, execute
from toolkit.vm._results import NO_FEE
from toolkit.wire._bcs_requests import EncodedEntryFunction, payload_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from toolkit.client._reads import Reads
    from toolkit.vm import Status
    from toolkit.vm._results import Write
    from toolkit.vm._state import Read
    from toolkit.vm._trace import Profile, Trace

_MAX_HEX = 200  # digits of a value in a frame of differences
_MAX_SHOWN = 12  # differences in the words of a replay
# Parts of the gas, in gas units or octas, by the fields of a fee.
PARTS = (
    ("execution", "gas units", "execution_gas_units"),
    ("io", "gas units", "io_gas_units"),
    ("storage", "octas", "storage_fee_octas"),
    ("refund", "octas", "storage_fee_refund_octas"),
)


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
    committed : Committed
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
    Not reproduced: code that asks how many items the whole state has (Unsupported), and keyless signatures, which the
    ledger has checked. Aggregators that other transactions of a block change at the same time, and randomness, are
    read from the state before the transaction.

    Examples
    --------
    >>> import toolkit
    >>> toolkit.connect("mainnet").fork(3_000_000_000).replay(3_000_000_001).verified  # doctest: +SKIP
    True
    """

    committed: Committed
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

        rows = [
            {"what": one.what, "place": one.place, "committed": one.committed, "replayed": one.replayed}
            for one in self._differences()
        ]
        return frame_of_rows(REPLAY_DIFFERENCES, rows)

    @property
    def gas(self) -> pd.DataFrame:
        """One row per part of the gas: ``part``, ``unit``, ``committed``, ``replayed`` and ``difference``."""
        from toolkit.frames._columns import frame_of_rows
        from toolkit.frames._schema import REPLAY_GAS

        return frame_of_rows(REPLAY_GAS, self.gas_rows())

    def gas_rows(self) -> list[dict[str, Any]]:
        """Return the rows of `gas`."""
        committed, replayed = self.committed.fee, fee_of(self.execution.events)
        rows: list[dict[str, Any]] = []
        for part, unit, name in PARTS:
            pair = [None if fee is None else getattr(fee, name) for fee in (committed, replayed)]
            rows.append({"part": part, "unit": unit, "committed": pair[0], "replayed": pair[1]})
        pair = [self.committed.gas_used, self.execution.gas_used]
        rows.append({"part": "total", "unit": "gas units", "committed": pair[0], "replayed": pair[1]})
        for row in rows:
            known = row["committed"] is not None and row["replayed"] is not None
            row["difference"] = row["replayed"] - row["committed"] if known else None
        return rows

    @property
    def profile(self) -> Profile:
        """Gas by function, and the call tree. The transaction runs once more to measure it."""
        return self._logged().profile

    @property
    def trace(self) -> Trace:
        """The instructions that ran, one by one. The transaction runs once more to record them."""
        return self._logged().trace

    def _logged(self) -> Execution:
        assert self._read is not None  # noqa: S101 - set by `replay_one`
        return execute(self.committed.transaction, self._read, log=True, transaction_index=self.index)

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
        return "\n".join(visible(short_addresses(line), 400) for line in lines)

    def __repr__(self) -> str:
        state = "verified" if self.verified else f"{plural(sum(1 for _ in self._differences()), 'difference')}"
        return visible(f"<Replay of version {self.ledger_version:,}: {self.function or 'a script'}, {state}>", 200)

    def _repr_html_(self) -> str:
        title, _, rest = self.explain().partition("\n")
        return literal(f"<strong>{escape(title)}</strong><pre>{escape(rest)}</pre>")


def called_function(committed: Committed) -> str | None:
    """Return the function that a transaction calls; None for a script or a stored payload."""
    executable = payload_parts(committed.signed.raw.payload).executable
    return executable.function.wire if isinstance(executable, EncodedEntryFunction) else None


def status_words(status: Status) -> str:
    """Return how a transaction ended, in words."""
    if status.success:
        return "succeeded"
    where = "" if status.location is None else f" in {status.location}"
    return f"failed ({status.kind} {status.code if status.code is not None else ''}{where})"


def differences(committed: Committed, execution: Execution, *, metadata: bool) -> Iterator[Difference]:
    """Yield what an execution did differently than the ledger.

    Parameters
    ----------
    committed : Committed
    execution : Execution
    metadata : bool
        Whether the metadata of slots is known, and compared.
    """
    pair = comparable(committed.status), comparable(execution.status)
    if pair[0] != pair[1]:
        yield Difference("status", None, *map(status_words, pair))
    if committed.gas_used != execution.gas_used:
        yield Difference("gas_used", None, str(committed.gas_used), str(execution.gas_used))
    fee = committed.fee
    if fee is not None:
        own = fee_of(execution.events) or NO_FEE
        for part, _, name in PARTS:
            amounts = getattr(fee, name), getattr(own, name)
            if amounts[0] != amounts[1]:
                yield Difference(part, None, *map(str, amounts))
    for at, sides in enumerate(zip_longest(committed.events, execution.events)):
        if sides[0] != sides[1]:
            one = sides[0] or sides[1]
            texts = [
                None if side is None else _shortened(f"{side.sequence_number} {side.data.hex()}") for side in sides
            ]
            yield Difference("event", f"{at}: {one.type}", *texts)
    yield from _write_differences(committed.writes, execution.writes, metadata=metadata)


def _write_differences(
    committed: Mapping[bytes, Write], replayed: Mapping[bytes, Write], *, metadata: bool
) -> Iterator[Difference]:
    for key in dict.fromkeys([*committed, *replayed]):
        pair = [writes.get(key) for writes in (committed, replayed)]
        if not metadata:
            pair = [None if write is None else write._replace(metadata=None) for write in pair]
        if pair[0] != pair[1]:
            yield Difference("write", key_text(key), *map(_write_text, pair))


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
    execution = execute(committed.transaction, read, transaction_index=index)
    return Replay(committed, execution, state.has_metadata, index, read)
