"""Response headers: the state of the node's ledger, the gas used and the cursor.

A gateway may set any of them. A number that is malformed or out of range is therefore treated as absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from toolkit._present.notebook import facts_html

_U8_MAX = 2**8 - 1
_MAX_DIGITS = 19  # of 2^63 - 1
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The brand is the part of the header name before this suffix.
_BRAND = re.compile(r"x-([a-z0-9]+(?:-[a-z0-9]+)*)-ledger-oldest-version", re.IGNORECASE)
_BRAND_MAX_LENGTH = 64  # real ones have at most 10
_CHAIN_ID = re.compile(r"x-[a-z0-9]+(?:-[a-z0-9]+)*-chain-id", re.IGNORECASE)
_CURSOR_MAX_LENGTH = 4096  # a state key in hex has a few hundred
# Headers of the ledger state without their brand, in the order of the fields of `LedgerState`.
_LEDGER = """
chain-id ledger-version ledger-oldest-version ledger-timestampusec epoch block-height oldest-block-height
""".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True, repr=False)
class LedgerState:
    """The state of a node's ledger when it sent a response.

    Parameters
    ----------
    chain_id : int
        Chain id, u8 (1 is mainnet, 2 is testnet).
    version : int
        The head, which is the node's latest ledger version, not the version that was read.
    oldest_version : int
        Oldest ledger version that has not been pruned.
    timestamp : datetime
        Time of the latest block, UTC, with microseconds.
    epoch : int
        Current epoch.
    block_height, oldest_block_height : int
        Heights of the latest block and of the oldest block that has not been pruned.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from toolkit.wire import LedgerState
    >>> state = LedgerState(4, 4_999, 0, datetime(2026, 6, 28, tzinfo=UTC), 90, 995, 0)
    >>> state.version, state.timestamp_us
    (4999, 1782604800000000)
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

    def __repr__(self) -> str:
        return (
            f"LedgerState(chain_id={self.chain_id}, version={self.version}, oldest_version={self.oldest_version}, "
            f"timestamp='{self.timestamp:%Y-%m-%dT%H:%M:%S}Z', epoch={self.epoch}, block_height={self.block_height})"
        )

    def _repr_html_(self) -> str:
        facts = [
            ("chain id", self.chain_id),
            ("head", self.version),
            ("oldest version", self.oldest_version),
            ("time of the latest block", f"{self.timestamp:%Y-%m-%d %H:%M:%S} UTC"),
            ("epoch", self.epoch),
            ("block height", self.block_height),
        ]
        return facts_html(f"ledger at version {self.version:,}", facts)


@dataclass(frozen=True, slots=True)
class AnswerHeaders:
    """The documented headers of one response.

    Parameters
    ----------
    ledger : LedgerState or None
        State of the node's ledger; None if a header is missing or is not a number in range, as in many error responses.
    gas_used : int or None
        Gas units used by a view or a simulation.
    cursor : str or None
        Cursor of the next page, in a paginated response.
    brand : str or None
        The vendor part of the header names, in upper case (``APTOS``).
    chain_id : int or None
        Chain id, even if other headers of the ledger state are missing.

    Examples
    --------
    >>> from toolkit.wire._headers import parse_headers
    >>> headers = parse_headers({"X-Aptos-Chain-Id": "4", "X-Aptos-Gas-Used": "12"})
    >>> headers.chain_id, headers.ledger is None
    (4, True)
    """

    ledger: LedgerState | None
    gas_used: int | None
    cursor: str | None
    brand: str | None
    chain_id: int | None = None


def parse_headers(headers: Mapping[str, str]) -> AnswerHeaders:
    """Parse the documented headers of a response, whatever brand their names contain.

    Parameters
    ----------
    headers : mapping of str to str
        Header values by name. The case of the names is ignored.

    Returns
    -------
    AnswerHeaders
        The brand is taken from the header name ``X-<brand>-Ledger-Oldest-Version``; without it, only the chain id is
        read. A number that is malformed or out of range is treated as absent.

    Examples
    --------
    >>> parse_headers({"X-Aptos-Ledger-Oldest-Version": "0", "X-Aptos-Gas-Used": "7"}).gas_used
    7
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    if (known := _find_brand(lowered)) is None:
        return AnswerHeaders(None, None, None, None, _chain_id(lowered))
    prefix = f"x-{known.lower()}-"
    cursor = lowered.get(prefix + "cursor")
    texts = [lowered.get(prefix + name, "") for name in _LEDGER]
    ledger = _state(*texts) if max(map(len, texts)) <= _MAX_DIGITS else None
    return AnswerHeaders(
        ledger=ledger,
        gas_used=_number(lowered.get(prefix + "gas-used")),
        cursor=cursor if cursor and len(cursor) <= _CURSOR_MAX_LENGTH else None,
        brand=known.upper(),
        chain_id=_chain_id(lowered, prefix) if ledger is None else ledger.chain_id,
    )


def ledger_headers(state: LedgerState, *, brand: str = "APTOS", gas_used: int | None = None) -> dict[str, str]:
    """Return the headers that a node sends with a response.

    Parameters
    ----------
    state : LedgerState
        State of the node's ledger.
    brand : str, default "APTOS"
        The vendor part of the header names.
    gas_used : int, optional
        Gas units used, for successful views and simulations.

    Returns
    -------
    dict of str to str
        Header values by name. Names are in upper case, as in the node's OpenAPI document.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> state = LedgerState(1, 500, 0, datetime(2026, 1, 1, tzinfo=UTC), 3, 20, 0)
    >>> parse_headers(ledger_headers(state)).ledger == state
    True
    """
    values = dict(zip(_LEDGER, ledger_numbers(state), strict=True))
    if gas_used is not None:
        values["gas-used"] = gas_used
    return {f"X-{brand}-{name.upper()}": str(value) for name, value in values.items()}


def ledger_numbers(state: LedgerState) -> tuple[int, ...]:
    """Return the fields of a ledger state as nodes send them: in their order, with the time in microseconds."""
    head = state.chain_id, state.version, state.oldest_version, state.timestamp_us
    return *head, state.epoch, state.block_height, state.oldest_block_height


def timestamp_from_us(microseconds: int) -> datetime | None:
    """Convert microseconds since 1970-01-01 UTC to a UTC time, or return None after the year 9999."""
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


def _chain_id(lowered: Mapping[str, str], prefix: str = "") -> int | None:
    """Return the chain id from the header with the given prefix, or else from that of any brand."""
    text = lowered.get(prefix + "chain-id") if prefix else None
    if text is None:
        text = next((value for name, value in lowered.items() if _CHAIN_ID.fullmatch(name)), None)
    number = _number(text)
    return number if number is not None and number <= _U8_MAX else None


def _number(text: str | None) -> int | None:
    if text is None or len(text) > _MAX_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    value = int(text)
    return value if value < 2**63 else None  # columns of versions and gas are int64


@lru_cache(maxsize=256)
def _state(*texts: str) -> LedgerState | None:
    """Parse header values as a ledger state; cached, because many responses have the same state."""
    numbers = [number for text in texts if (number := _number(text)) is not None]
    if len(numbers) < len(_LEDGER) or numbers[0] > _U8_MAX:
        return None
    chain_id, version, oldest_version, timestamp_us, *epoch_and_heights = numbers
    timestamp = timestamp_from_us(timestamp_us)
    return None if timestamp is None else LedgerState(chain_id, version, oldest_version, timestamp, *epoch_and_heights)
