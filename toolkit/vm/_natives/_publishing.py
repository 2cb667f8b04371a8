"""Natives of ``code``: they take the request; the modules are published after the payload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.vm._natives._registry import NativeCall, native

if TYPE_CHECKING:
    from toolkit.vm._values import Value

_ALREADY_REQUESTED = 0x30000


@dataclass(frozen=True)
class PublishRequest:
    """Modules that a transaction asks to publish.

    Attributes
    ----------
    address : bytes
        Where they go.
    names : set of str
        Names that the package has registered.
    codes : list of bytes
    allowed : dict of bytes to set of str, or None
        Modules that they may depend on by account; an empty name allows all of the account. None allows everything.
    """

    address: bytes
    names: set[str]
    codes: list[bytes]
    allowed: dict[bytes, set[str]] | None


class Requests:
    """The request of a session."""

    def __init__(self) -> None:
        self.request: PublishRequest | None = None
        self.closed = False  # once modules are being published


def _request(call: NativeCall, address: bytes, names: Value, allowed: Value | None, codes: Value) -> None:
    name = "aptos_framework.code.request_publish"
    per_byte = call.price(f"{name}.per_byte")
    call.charge(call.price(f"{name}.base"))
    for code in codes:
        call.charge(per_byte * len(code))
    dependencies: dict[bytes, set[str]] | None = None
    if allowed is not None:
        dependencies = {}
        for account, module in allowed:
            if account not in dependencies:
                call.charge(per_byte * 32)
            call.charge(per_byte * len(module[0]))
            dependencies.setdefault(account, set()).add(module[0].decode("utf-8", "replace"))
    for one in names:
        call.charge(per_byte * len(one[0]))
    requests = call.context(Requests)
    if requests.request is not None or requests.closed:
        raise call.abort(_ALREADY_REQUESTED)
    expected = {one[0].decode("utf-8", "replace") for one in names}
    requests.request = PublishRequest(address, expected, [bytes(code) for code in codes], dependencies)


@native("0x1::code::request_publish")
def request_publish(call: NativeCall, address: bytes, names: Value, codes: Value, _: int) -> None:
    """Request that modules be published."""
    _request(call, address, names, None, codes)


@native("0x1::code::request_publish_with_allowed_deps")
def request_publish_with_deps(
    call: NativeCall, address: bytes, names: Value, allowed: Value, codes: Value, _: int
) -> None:
    """Request the same, with the modules that they may depend on."""
    _request(call, address, names, allowed, codes)
