"""Bytes of one or many transactions to answer structs: typed in one pass, unknown kinds by a slower road."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw

from toolkit.errors import SchemaError
from toolkit.wire.integers import clip, is_u64
from toolkit.wire.structs import (
    BlockEpilogueTransaction,
    BlockMetadataTransaction,
    Change,
    DeleteModule,
    DeleteResource,
    DeleteTableItem,
    Event,
    GenericChange,
    GenericTransaction,
    GenesisTransaction,
    KnownChange,
    KnownTransaction,
    PendingTransaction,
    StateCheckpointTransaction,
    Transaction,
    UserTransaction,
    ValidatorTransaction,
    WriteModule,
    WriteResource,
    WriteTableItem,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BlockEpilogueTransaction",
    "BlockMetadataTransaction",
    "Change",
    "DeleteModule",
    "DeleteResource",
    "DeleteTableItem",
    "Event",
    "GenericChange",
    "GenericTransaction",
    "GenesisTransaction",
    "PendingTransaction",
    "SimulatedTransaction",
    "StateCheckpointTransaction",
    "Transaction",
    "UserTransaction",
    "ValidatorTransaction",
    "WriteModule",
    "WriteResource",
    "WriteTableItem",
    "collector_paused",
    "decode_events",
    "decode_simulation",
    "decode_transactions",
    "iterate_transactions",
    "split_transactions",
]

#: A simulation answers a user transaction that was never committed.
SimulatedTransaction = UserTransaction

_T = TypeVar("_T")

_MANY: msgspec.json.Decoder[list[KnownTransaction]] = msgspec.json.Decoder(list[KnownTransaction])
_ONE: msgspec.json.Decoder[KnownTransaction] = msgspec.json.Decoder(KnownTransaction)
# A simulated transaction has no `type` key; outside a union msgspec does not ask for one.
_SIMULATED: msgspec.json.Decoder[list[UserTransaction]] = msgspec.json.Decoder(list[UserTransaction])
_ONE_SIMULATED: msgspec.json.Decoder[UserTransaction] = msgspec.json.Decoder(UserTransaction)
_CHANGE: msgspec.json.Decoder[KnownChange] = msgspec.json.Decoder(KnownChange)
_EVENTS: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[Event])
_RAW_LIST: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])
_RAW_OBJECT: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
_KNOWN_TRANSACTIONS = frozenset(str(kind.__struct_config__.tag) for kind in KnownTransaction.__args__)
_KNOWN_CHANGES = frozenset(str(kind.__struct_config__.tag) for kind in KnownChange.__args__)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector: a batch makes many objects, all of them alive until its end."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def decode_transactions(body: bytes | Raw) -> list[Transaction]:
    """Read the transactions of an answer.

    Parameters
    ----------
    body : bytes or msgspec.Raw
        JSON array of transactions, or one transaction.

    Returns
    -------
    list of Transaction
        In the order of the answer; an unknown ``type`` gives a `GenericTransaction` or `GenericChange`.

    Raises
    ------
    SchemaError
        If it is no JSON, or a known kind lacks what it must have.
    """
    with collector_paused():
        if not _is_array(body):
            return [_decode_transaction(body)]
        try:
            return list(_MANY.decode(body))
        except msgspec.ValidationError:
            raws = _decode(_RAW_LIST, body)
            return [_decode_transaction(raw, place) for place, raw in enumerate(raws)]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _schema_error(error) from error


def split_transactions(body: bytes | Raw) -> list[Raw]:
    """Return the undecoded transactions of an answer: the elements of its array, or the one object.

    Raises
    ------
    SchemaError
        If it is not JSON.
    """
    return _decode(_RAW_LIST, body) if _is_array(body) else [Raw(body)]


def iterate_transactions(body: bytes | Raw) -> Iterator[Transaction]:
    """Read the transactions of an answer one by one, so that only one is alive at a time.

    Parameters
    ----------
    body : bytes or msgspec.Raw
        JSON array of transactions, or one transaction.

    Yields
    ------
    Transaction
        As `decode_transactions` gives them.

    Raises
    ------
    SchemaError
        If it is no JSON, or a known kind lacks what it must have.
    """
    if not _is_array(body):
        yield _decode_transaction(body)
        return
    raws = _decode(_RAW_LIST, body)
    for place, raw in enumerate(raws):
        yield _decode_transaction(raw, place)


def decode_simulation(body: bytes | Raw) -> list[UserTransaction]:
    """Read the answer of a simulation: an array of one transaction, which has no ``type`` key.

    Parameters
    ----------
    body : bytes or msgspec.Raw
        JSON array, or one transaction.

    Returns
    -------
    list of UserTransaction
        In the order of the answer.

    Raises
    ------
    SchemaError
        If it is no JSON or has another shape.
    """
    try:
        if not _is_array(body):
            return [_ONE_SIMULATED.decode(body)]
        return _SIMULATED.decode(body)
    except msgspec.ValidationError:
        raws = _decode(_RAW_LIST, body) if _is_array(body) else [body]
        return [_rebuild(_ONE_SIMULATED, _decode(_RAW_OBJECT, raw)) for raw in raws]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _schema_error(error) from error


def decode_events(body: bytes | Raw) -> list[Event]:
    """Read an array of events, as the events endpoints answer.

    Raises
    ------
    SchemaError
        If it is no JSON or has another shape.
    """
    return _decode(_EVENTS, body)


def _is_array(body: bytes | Raw) -> bool:
    return bytes(memoryview(body)[:64]).lstrip()[:1] == b"["


def _decode(decoder: msgspec.json.Decoder[_T], body: bytes | Raw) -> _T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _schema_error(error) from error


def _schema_error(error: Exception) -> SchemaError:
    return SchemaError(f"the answer does not have the documented shape: {clip(error)}")


def _decode_transaction(body: bytes | Raw, place: int = 0) -> Transaction:
    try:
        return _ONE.decode(body)
    except msgspec.ValidationError:
        pass  # of an unknown kind, with a change of one, or misshapen: look closer
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _schema_error(error) from error
    try:
        return _decode_other(body)
    except SchemaError as error:
        raise SchemaError(f"transactions[{place}]: {error}") from error


def _decode_other(body: bytes | Raw) -> Transaction:
    fields = _decode(_RAW_OBJECT, body)
    kind = _text(fields.get("type"))
    if kind in _KNOWN_TRANSACTIONS:
        return _rebuild(_ONE, fields)
    version = _text(fields.get("version"))
    return GenericTransaction(
        type=kind,
        version_text=version if is_u64(version) else None,
        hash=_text(fields.get("hash")),
        raw=bytes(body),
    )


def _rebuild(decoder: msgspec.json.Decoder[_T], fields: dict[str, Raw]) -> _T:
    """Decode a transaction whose changes may be of unknown kinds: those apart, the rest typed as ever."""
    changes = [_decode_change(raw) for raw in _decode(_RAW_LIST, fields.get("changes", Raw(b"[]")))]
    transaction: Any = _decode(decoder, msgspec.json.encode(fields | {"changes": Raw(b"[]")}))
    if changes:
        transaction.changes = changes
    return transaction  # type: ignore[no-any-return]  # what the decoder gave, with its changes put back


def _decode_change(body: Raw) -> Change:
    try:
        return _CHANGE.decode(body)
    except msgspec.ValidationError as error:
        content = _decode(_RAW_OBJECT, body)
        kind = _text(content.get("type"))
        if kind in _KNOWN_CHANGES:
            raise _schema_error(error) from error
        return GenericChange(kind, bytes(body))


def _text(raw: Raw | None) -> str | None:
    """Return a raw JSON string as text, None for anything else."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
