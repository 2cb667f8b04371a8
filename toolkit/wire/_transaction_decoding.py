"""Decode transactions: a response of known kinds in one pass, unknown and malformed ones one by one."""

from __future__ import annotations

import gc
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw

from toolkit._present.messages import shorten
from toolkit.errors import SchemaError
from toolkit.move._json_text import decode_with, elements, is_u64
from toolkit.wire import _transactions as wire

if TYPE_CHECKING:
    from collections.abc import Iterator


_T = TypeVar("_T")

_MANY: msgspec.json.Decoder[list[wire.KnownTransaction]] = msgspec.json.Decoder(list[wire.KnownTransaction])
_ONE: msgspec.json.Decoder[wire.KnownTransaction] = msgspec.json.Decoder(wire.KnownTransaction)
# A simulated transaction does not have the key `type`; outside a union msgspec does not require it.
_SIMULATED: msgspec.json.Decoder[list[wire.UserTransaction]] = msgspec.json.Decoder(list[wire.UserTransaction])
_ONE_SIMULATED: msgspec.json.Decoder[wire.UserTransaction] = msgspec.json.Decoder(wire.UserTransaction)
_CHANGE: msgspec.json.Decoder[wire.KnownChange] = msgspec.json.Decoder(wire.KnownChange)
_RAW_OBJECT: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
_TEXT: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_KNOWN_TRANSACTIONS = frozenset(str(kind.__struct_config__.tag) for kind in wire.KnownTransaction.__args__)
_KNOWN_CHANGES = frozenset(str(kind.__struct_config__.tag) for kind in wire.KnownChange.__args__)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable the garbage collector; decoding creates many objects, none of which are garbage before it ends."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def decode_transactions(body: bytes | Raw) -> list[wire.Transaction]:
    """Decode the transactions of a response.

    Parameters
    ----------
    body : bytes or msgspec.Raw
        JSON array of transactions, or one transaction.

    Returns
    -------
    list of Transaction
        In the order of the response. A transaction or change of an unknown ``type`` is a `GenericTransaction` or
        `GenericChange`.

    Raises
    ------
    SchemaError
        If the body is not JSON, or a transaction of a known type does not have the documented shape; `decode_page`
        returns a `MalformedTransaction` instead.

    Examples
    --------
    >>> [transaction] = decode_transactions(b'[{"type": "a_future_transaction", "version": "7"}]')
    >>> transaction.type, transaction.version_text
    ('a_future_transaction', '7')
    """
    with collector_paused():
        if not _is_array(body):
            return [_decode_transaction(body)]
        found = _all_known(body)
        if found is None:
            found = [_decode_transaction(raw, place) for place, raw in enumerate(_elements(body))]
        return found


def decode_page(body: bytes | Raw) -> list[wire.Transaction]:
    """Decode a page of committed transactions; a malformed transaction does not affect the others.

    Parameters
    ----------
    body : bytes or msgspec.Raw
        JSON array of transactions.

    Returns
    -------
    list of Transaction
        In the order of the response. A transaction without the documented shape or without a version is a
        `MalformedTransaction`.

    Raises
    ------
    SchemaError
        If the body is not a JSON array.

    Examples
    --------
    >>> [transaction] = decode_page(b'[{"type": "user_transaction", "version": "500", "hash": "0x0"}]')
    >>> transaction.version_text, transaction.problem[:35]
    ('500', 'transactions[0]: the answer does no')
    """
    with collector_paused():
        found = _all_known(body) if _is_array(body) else None
        if found is None:
            found = [_decoded_or_marked(raw) for raw in _elements(body)]
        return [one if is_u64(getattr(one, "version_text", None)) else _without_version(one) for one in found]


def _without_version(transaction: wire.Transaction) -> wire.Transaction:
    """Return a malformed transaction for one without a version; an unknown kind may have none."""
    if isinstance(transaction, wire.MalformedTransaction):
        return transaction
    if isinstance(transaction, wire.GenericTransaction) and transaction.type is not None:
        return transaction
    text = None if isinstance(transaction, wire.PendingTransaction) else transaction.version_text
    return malformed(transaction, f"expected a transaction with a `version` of digits, got {shorten(text)}")


def _decoded_or_marked(raw: Raw) -> wire.Transaction:
    try:
        return _decode_transaction(raw)
    except SchemaError as error:
        return malformed(bytes(raw), str(error))


def malformed(transaction: bytes | wire.Transaction, problem: str) -> wire.MalformedTransaction:
    """Return a malformed transaction with the fields that can be read.

    Parameters
    ----------
    transaction : bytes or Transaction
        The transaction as JSON, or as it was decoded before the problem was found.
    problem : str
        What is wrong.

    Returns
    -------
    MalformedTransaction
    """
    if isinstance(transaction, bytes):
        body = transaction
    else:
        body = transaction.raw if isinstance(transaction, wire.GenericTransaction) else msgspec.json.encode(transaction)
    fields: dict[str, Raw] = {}
    payload: dict[str, Raw] = {}
    with suppress(SchemaError):
        fields = decode_with(_RAW_OBJECT, body)
    with suppress(SchemaError):
        payload = decode_with(_RAW_OBJECT, fields.get("payload", Raw(b"{}")))
        payload = decode_with(_RAW_OBJECT, payload.get("transaction_payload", Raw(b"null"))) | payload
    version = _text(fields.get("version"))
    return wire.MalformedTransaction(
        type=_text(fields.get("type")),
        version_text=version if is_u64(version) else None,
        hash=_text(fields.get("hash")),
        function=_text(payload.get("function")),
        raw=body,
        problem=problem,
    )


def decode_simulation(body: bytes | Raw) -> list[wire.UserTransaction]:
    """Decode the response of a simulation: an array of one transaction, which does not have the key ``type``.

    Parameters
    ----------
    body : bytes or msgspec.Raw
        JSON array, or one transaction.

    Returns
    -------
    list of UserTransaction
        In the order of the response.

    Raises
    ------
    SchemaError
        If the body is not JSON or does not have this shape.

    Examples
    --------
    >>> from toolkit.wire._transaction_decoding import decode_simulation
    >>> body = (
    ...     b'[{"version": "9", "hash": "0x0", "gas_used": "5", "success": true, "vm_status": "ok", "sender": "0x1"'
    ...     b', "sequence_number": "0", "max_gas_amount": "9", "gas_unit_price": "100"'
    ...     b', "expiration_timestamp_secs": "0", "payload": {"type": "entry_function_payload"}}]'
    ... )
    >>> decode_simulation(body)
    [<UserTransaction version 9: from 0x1, succeeded, 5 gas units, 0 changes, 0 events>]
    """
    with suppress(SchemaError):
        return decode_with(_SIMULATED, body) if _is_array(body) else [decode_with(_ONE_SIMULATED, body)]
    raws = _elements(body) if _is_array(body) else [body]
    return [_rebuild(_ONE_SIMULATED, _decode(_RAW_OBJECT, raw)) for raw in raws]


def _all_known(body: bytes | Raw) -> list[wire.Transaction] | None:
    """Decode an array in one pass; return None if one of the transactions is of an unknown kind or malformed."""
    try:
        return [*decode_with(_MANY, body)]
    except SchemaError:
        return None


def _elements(body: bytes | Raw) -> list[Raw]:
    try:
        return elements(body)
    except SchemaError as error:
        raise _shape_error(error) from None


def _is_array(body: bytes | Raw) -> bool:
    return bytes(memoryview(body)[:64]).lstrip()[:1] == b"["


def _decode(decoder: msgspec.json.Decoder[_T], body: bytes | Raw) -> _T:
    try:
        return decode_with(decoder, body)
    except SchemaError as error:
        raise _shape_error(error) from None


def _shape_error(error: SchemaError) -> SchemaError:
    return SchemaError(f"the answer does not have the documented shape: {error}")


def _decode_transaction(body: bytes | Raw, place: int = 0) -> wire.Transaction:
    with suppress(SchemaError):  # an unknown kind, a change of an unknown kind, or malformed
        return decode_with(_ONE, body)
    try:
        return _decode_other(body)
    except SchemaError as error:
        raise SchemaError(f"transactions[{place}]: {error}") from None


def _decode_other(body: bytes | Raw) -> wire.Transaction:
    fields = _decode(_RAW_OBJECT, body)
    kind = _text(fields.get("type"))
    if kind in _KNOWN_TRANSACTIONS:
        return _rebuild(_ONE, fields)
    version = _text(fields.get("version"))
    return wire.GenericTransaction(
        type=kind,
        version_text=version if is_u64(version) else None,
        hash=_text(fields.get("hash")),
        raw=bytes(body),
    )


def _rebuild(decoder: msgspec.json.Decoder[_T], fields: dict[str, Raw]) -> _T:
    """Decode a transaction with changes of unknown kinds: first the changes one by one, then the rest."""
    changes = [_decode_change(raw) for raw in _elements(fields.get("changes", Raw(b"[]")))]
    transaction: Any = _decode(decoder, msgspec.json.encode(fields | {"changes": Raw(b"[]")}))
    if changes:
        transaction.changes = changes
    return transaction  # type: ignore[no-any-return]  # the result of the decoder


def _decode_change(body: Raw) -> wire.Change:
    try:
        return decode_with(_CHANGE, body)
    except SchemaError as error:
        content = _decode(_RAW_OBJECT, body)
        kind = _text(content.get("type"))
        if kind in _KNOWN_CHANGES:
            raise _shape_error(error) from None
        return wire.GenericChange(kind, bytes(body))


def _text(raw: Raw | None) -> str | None:
    """Return the text of a JSON string, None for anything else."""
    if raw is None:
        return None
    try:
        return decode_with(_TEXT, raw)
    except SchemaError:
        return None
