"""The headers of an answer: the state of the node's head, gas used, cursor. No I/O.

Every value may come from a gateway rather than the node: what is no plain decimal number in range counts
as absent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AnswerHeaders", "LedgerState", "chain_id_of", "ledger_headers", "parse_headers", "timestamp_from_us"]

_U8_MAX = 2**8 - 1
_U64_MAX = 2**64 - 1
_U64_DIGITS = 20
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A brand is one header token of modest length; the suffix says which header carries it.
_BRAND = re.compile(r"x-([a-z0-9]+(?:-[a-z0-9]+)*)-ledger-oldest-version", re.IGNORECASE)
_BRAND_MAX_LENGTH = 64
_CHAIN_ID = re.compile(r"x-[a-z0-9]+(?:-[a-z0-9]+)*-chain-id", re.IGNORECASE)
_CURSOR_MAX_LENGTH = 4096
_LEDGER = (
    "chain-id",
    "ledger-version",
    "ledger-oldest-version",
    "ledger-timestampusec",
    "epoch",
    "block-height",
    "oldest-block-height",
)
"""Headers that tell the head, without their brand; in the order of `LedgerState`."""


@dataclass(frozen=True, slots=True)
class LedgerState:
    """The state of a node's ledger at its head when it answered.

    Parameters
    ----------
    chain_id : int
        Chain id, u8 (1 is mainnet, 2 testnet).
    version : int
        Latest ledger version of the node, not the version that was read.
    oldest_version : int
        Oldest ledger version that is not pruned.
    timestamp : datetime
        Time of the latest block, UTC, with microseconds.
    epoch : int
        Current epoch.
    block_height, oldest_block_height : int
        Latest block, and the oldest that is not pruned.
    """

    chain_id: int
    version: int
    oldest_version: int
    timestamp: datetime
    epoch: int
    block_height: int
    oldest_block_height: int

    @property
    def timestamp_us(self) -> int:
        """Time of the latest block in microseconds since 1970-01-01 UTC."""
        return (self.timestamp - _UNIX_EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AnswerHeaders:
    """What the headers of one answer say.

    Parameters
    ----------
    ledger : LedgerState or None
        The node's head; None where a header is missing or no number in range (errors often carry none).
    gas_used : int or None
        Gas units of a view or a simulation.
    cursor : str or None
        Where the next page of a cursor-paginated answer starts.
    brand : str or None
        The maker's token in the header names, upper case (``APTOS``).
    """

    ledger: LedgerState | None
    gas_used: int | None
    cursor: str | None
    brand: str | None


def parse_headers(headers: Mapping[str, str], *, brand: str | None = None) -> AnswerHeaders:
    """Read the documented headers of an answer, whatever the brand in their names.

    Parameters
    ----------
    headers : mapping of str to str
        Header names in any case, and their values.
    brand : str, optional
        The brand, where it is known already; otherwise it is taken from ``X-<brand>-Ledger-Oldest-Version``.

    Returns
    -------
    AnswerHeaders
        Values that are no plain decimal number in range count as absent.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    known = brand or _find_brand(lowered)
    if known is None:
        return AnswerHeaders(None, None, None, None)
    prefix = f"x-{known.lower()}-"
    cursor = lowered.get(prefix + "cursor")
    return AnswerHeaders(
        ledger=_ledger_state(lowered, prefix),
        gas_used=_number(lowered.get(prefix + "gas-used")),
        cursor=cursor if cursor and len(cursor) <= _CURSOR_MAX_LENGTH else None,
        brand=known.upper(),
    )


def chain_id_of(headers: Mapping[str, str]) -> int | None:
    """Return the chain id of an answer, also if other headers of `LedgerState` are missing; None if it has none."""
    lowered = {name.lower(): value for name, value in headers.items() if name[-9:].lower() == "-chain-id"}
    found = next((value for name, value in lowered.items() if _CHAIN_ID.fullmatch(name)), None)
    if len(lowered) > 1:  # a gateway's own header beside the node's
        brand = _find_brand({name.lower(): value for name, value in headers.items()})
        found = lowered.get(f"x-{brand}-chain-id", found)
    number = _number(found)
    return number if number is not None and number <= _U8_MAX else None


def ledger_headers(state: LedgerState, *, brand: str = "APTOS", gas_used: int | None = None) -> dict[str, str]:
    """Return the headers a node sends with an answer.

    Parameters
    ----------
    state : LedgerState
        The node's head.
    brand : str, default "APTOS"
        The maker's token in the header names.
    gas_used : int, optional
        Gas units, on successful views and simulations.

    Returns
    -------
    dict of str to str
        Header names in the upper case of the node's OpenAPI document.
    """
    prefix = f"X-{brand}-"
    headers = {
        prefix + "CHAIN-ID": str(state.chain_id),
        prefix + "LEDGER-VERSION": str(state.version),
        prefix + "LEDGER-OLDEST-VERSION": str(state.oldest_version),
        prefix + "LEDGER-TIMESTAMPUSEC": str(state.timestamp_us),
        prefix + "EPOCH": str(state.epoch),
        prefix + "BLOCK-HEIGHT": str(state.block_height),
        prefix + "OLDEST-BLOCK-HEIGHT": str(state.oldest_block_height),
    }
    if gas_used is not None:
        headers[prefix + "GAS-USED"] = str(gas_used)
    return headers


def timestamp_from_us(microseconds: int) -> datetime | None:
    """Return the UTC time, or None past the year 9999 where `datetime` ends."""
    try:
        return _UNIX_EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def _find_brand(lowered: Mapping[str, str]) -> str | None:
    for name in lowered:
        match = _BRAND.fullmatch(name) if name.endswith("-ledger-oldest-version") else None
        if match is not None and len(match[1]) <= _BRAND_MAX_LENGTH:
            return match[1]
    return None


def _number(text: str | None) -> int | None:
    if text is None or len(text) > _U64_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    value = int(text)
    return value if value <= _U64_MAX else None


def _ledger_state(lowered: Mapping[str, str], prefix: str) -> LedgerState | None:
    texts = [lowered.get(name, "") for name in _ledger_names(prefix)]
    return _state(*texts) if max(map(len, texts)) <= _U64_DIGITS else None


@lru_cache(maxsize=16)
def _ledger_names(prefix: str) -> tuple[str, ...]:
    return tuple(prefix + name for name in _LEDGER)


@lru_cache(maxsize=256)
def _state(*texts: str) -> LedgerState | None:
    """Read the texts of the headers `_LEDGER`; a head comes with many answers, so it is read once."""
    chain_id, *numbers = (_number(text) for text in texts)
    version, oldest_version, timestamp_us, epoch, block_height, oldest_block_height = numbers
    timestamp = None if timestamp_us is None else timestamp_from_us(timestamp_us)
    if (
        chain_id is None
        or chain_id > _U8_MAX
        or version is None
        or oldest_version is None
        or timestamp is None
        or epoch is None
        or block_height is None
        or oldest_block_height is None
    ):
        return None
    return LedgerState(chain_id, version, oldest_version, timestamp, epoch, block_height, oldest_block_height)
