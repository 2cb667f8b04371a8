"""Checksums of a run's files: bytes that changed on the disk are noticed before they are read as something else.

A part carries its checksum in its own Parquet metadata, since it is written alone and often. ``run.json`` carries its
own and that of ``steps.parquet``.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from typing import TYPE_CHECKING, Any

from toolkit.dtypes.tables import write_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

__all__ = ["bytes_checksum", "check_part", "manifest_checksum", "part_bytes"]

_SIZE = 16
_KEY = "ledger-toolkit.checksum"
_EMPTY = b"0" * 2 * _SIZE
_MARK = b"blake2b-128:"
_CHECKSUM = re.compile(_MARK + rb"([0-9a-f]{32})")


def bytes_checksum(data: bytes | bytearray) -> str:
    """Return the checksum of bytes: 32 hex digits."""
    return hashlib.blake2b(data, digest_size=_SIZE).hexdigest()


def manifest_checksum(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest's content, without its own entry, whatever the spaces and order of its text."""
    content = {name: entry for name, entry in manifest.items() if name != "checksum"}
    return bytes_checksum(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def part_bytes(frame: pd.DataFrame) -> bytes:
    """Return a frame as the bytes of a Parquet file that carries its own checksum.

    The checksum is that of the file with zeros in the checksum's place. To other readers it is an entry of the
    file's metadata like any other.
    """
    file = io.BytesIO()
    write_frame(frame, file, metadata={_KEY: (_MARK + _EMPTY).decode()})
    data = bytearray(file.getvalue())
    place = data.rindex(_MARK) + len(_MARK)
    data[place : place + len(_EMPTY)] = bytes_checksum(data).encode()
    return bytes(data)


def check_part(data: bytes) -> None:
    """Check a part's bytes against the checksum in them; a part without one, of another writer, is not checked.

    Raises
    ------
    ValueError
        If they do not match.
    """
    place = data.rfind(_MARK)
    found = _CHECKSUM.match(data, place) if place >= 0 else None
    if found is None:
        return
    empty = bytearray(data)
    empty[found.start(1) : found.end(1)] = _EMPTY
    if bytes_checksum(empty).encode() != found[1]:
        raise ValueError("its bytes do not match their checksum")
