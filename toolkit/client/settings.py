"""The settings of a node as a caller writes them, checked before anything is built from them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from toolkit.errors import InputError
from toolkit.move import ModuleAbi

__all__ = ["checked_abis", "checked_count", "checked_encoding", "checked_limit", "checked_text"]


def checked_encoding(encoding: object) -> None:
    """Refuse what is no encoding."""
    if not isinstance(encoding, str) or encoding not in {"json", "bcs"}:
        raise InputError(f"encoding is json or bcs, got {encoding!r:.80}")


def checked_count(name: str, value: Any, most: int) -> int:
    """Return a number of things, from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= most:
        raise InputError(f"{name} is 1 or more, a whole number up to {most:,}, got {value!r:.80}")
    return int(value)


def checked_limit(name: str, value: Any, most: float, unit: str) -> float:
    """Return a limit above 0, at most `most` of its unit."""
    number: Any = None if isinstance(value, bool) or not isinstance(value, Real) else value
    if number is None or not 0 < number <= most:  # false for nan too
        raise InputError(f"{name} is a number above 0 and up to {most:,.0f} {unit}, got {value!r:.80}")
    return float(number)


def checked_text(name: str, value: object) -> None:
    """Refuse what is neither text nor left out; the value is not shown, it may be a secret."""
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name} is text, got a {type(value).__name__}")


def checked_abis(abis: Any) -> dict[tuple[str, str], ModuleAbi]:
    """Return ABIs by (address, module name) that a caller supplies, none where they are left out."""
    if abis is None:
        return {}
    if not isinstance(abis, Mapping):
        raise InputError(f"abis is a mapping of (address, module name) to ModuleAbi, got a {type(abis).__name__}")
    for key, abi in abis.items():
        if not isinstance(key, tuple) or [type(part) for part in key] != [str, str]:
            raise InputError(f"abis: a key is (address, module name), two texts, got {key!r:.80}")
        if not isinstance(abi, ModuleAbi):
            raise InputError(
                f"abis[{key!r:.80}] is a ModuleAbi, got a {type(abi).__name__}; "
                "toolkit.move.decode_module_abi reads one from a node's answer"
            )
    return dict(abis)
