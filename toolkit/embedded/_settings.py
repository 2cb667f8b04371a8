"""The settings of a chain."""

from __future__ import annotations

from typing import Annotated

import msgspec

MAX_CHAIN_ID = 255  # of a u8
Nonnegative = Annotated[int, msgspec.Meta(ge=0)]


class Settings(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The settings of a chain, which are also the first fields of a saved ledger.

    Parameters
    ----------
    chain_id : int
        A u8.
    seed : bytes
        16 bytes that are part of the input of every hash.
    genesis_time_us, epoch_us : int
        Time of genesis and length of an epoch, in microseconds.
    window : int, optional
        Number of most recent versions to keep; by default, all versions are kept.
    decoded_tables : bool
        Whether changes to table items contain decoded keys and values.
    enum_variants : bool
        Whether ABIs list the variants of enums.
    """

    chain_id: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHAIN_ID)]
    seed: Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
    genesis_time_us: Nonnegative
    epoch_us: Annotated[int, msgspec.Meta(ge=1)]
    window: Annotated[int, msgspec.Meta(ge=1)] | None
    decoded_tables: bool
    enum_variants: bool
