"""What is typed in a workbench as the fragment of a link, which opens it again; no key is ever in it."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


_MAX_CHARACTERS = 100_000  # of a fragment that is read; browsers keep about as many
_MAX_BYTES = 1_000_000  # of what it unpacks to
# Parts of drafts that are not in a link: signatures and keys, and what follows from the rest.
_LEFT_OUT = frozenset({"seq", "arguments", "lead", "signature", "signature_json", "sender_key", "fee_payer_key"})


class Link(Struct, frozen=True):
    """An open tab: its name, the name of the network if it has one, and what differs from an empty form."""

    tab: str
    target: str = ""
    draft: dict[str, Any] = {}


def write_link(tab: str, target: str, draft: Any) -> str:
    """Return a draft as the fragment of a link."""
    typed, blank = msgspec.to_builtins(draft), msgspec.to_builtins(type(draft)())
    differing = {name: value for name, value in typed.items() if value != blank[name] and name not in _LEFT_OUT}
    if "secondary" in differing:
        differing["secondary"] = [{"address": one["address"]} for one in differing["secondary"]]
    content = msgspec.json.encode(Link(tab, target, differing))
    return base64.urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")


def read_link(fragment: str, tabs: Sequence[str]) -> Link:
    """Return the content of a fragment; `tabs` are those that there are.

    Raises
    ------
    InputError
        If it is not one that `write_link` wrote.
    """
    fragment = fragment[:_MAX_CHARACTERS]
    try:
        packed = base64.b64decode(fragment + "=" * (-len(fragment) % 4), altchars=b"-_", validate=True)
        content = zlib.decompressobj().decompress(packed, _MAX_BYTES)
        link = msgspec.json.decode(content, type=Link)
    except (ValueError, zlib.error):  # DecodeError of msgspec is one
        link = Link("")
    if link.tab not in tabs:
        raise InputError("the link is not complete, or not one of this workbench")
    return link
