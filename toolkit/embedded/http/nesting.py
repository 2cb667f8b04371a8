"""How deep requests in BCS may nest: a node counts the named containers it enters, and stops at a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import SchemaError
from toolkit.move import FunctionType, StructTag, Vector
from toolkit.wire import EncodedEntryFunction, EncodedMultisig, EncodedPayloadV2, EncodedScript

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.move import TypeTag
    from toolkit.wire import EncodedPayload

__all__ = ["check_transaction_nesting", "check_view_nesting"]

_VIEW_LIMIT = 8
_TRANSACTION_LIMIT = 16
_ABOVE_VIEW = 1  # the request itself
_ABOVE_CALL = 4  # signed transaction, raw transaction, payload, call
_ABOVE_WRAPPED_CALL = 6  # a multisig payload or the newer form of payloads puts two more around a call


def check_view_nesting(tags: Iterable[TypeTag]) -> None:
    """Check the type arguments of a view request.

    Raises
    ------
    SchemaError
        If they nest too deep.
    """
    _check(tags, _VIEW_LIMIT - _ABOVE_VIEW)


def check_transaction_nesting(payload: EncodedPayload) -> None:
    """Check the type arguments of a signed transaction's payload.

    Raises
    ------
    SchemaError
        If they nest too deep.
    """
    above: int = _ABOVE_WRAPPED_CALL
    call: EncodedPayload | None = payload
    if isinstance(payload, EncodedMultisig):
        call = payload.payload
    elif isinstance(payload, EncodedPayloadV2):
        call = payload.executable
    else:
        above = _ABOVE_CALL
    if isinstance(call, EncodedEntryFunction | EncodedScript):
        _check(call.type_arguments, _TRANSACTION_LIMIT - above)


def _check(tags: Iterable[TypeTag], limit: int) -> None:
    if any(_containers(tag) > limit for tag in tags):
        raise SchemaError("exceeded max container depth while entering: TypeTag")


def _containers(tag: TypeTag) -> int:
    """Count the named containers on the longest way into a type: each tag, and a struct's record and address."""
    if isinstance(tag, Vector):
        return 1 + _containers(tag.element)
    if isinstance(tag, StructTag):
        return 2 + max(map(_containers, tag.type_arguments), default=1)
    if isinstance(tag, FunctionType):
        return 3 + max((_containers(one) for one in (*tag.arguments, *tag.results)), default=0)
    return 1
