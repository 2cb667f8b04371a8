"""Digests of the Python code of contracts: two classes with one digest run the same code."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
from textwrap import dedent
from typing import Any

from toolkit.embedded.types import is_framework

# Constants of a contract class that its publishing sets: the digest must not depend on when it is computed.
_NOT_CODE = {"_location", "blocks"}


@functools.cache
def code_digest(contract: type) -> bytes:
    """Return a digest of the methods and constants of a contract class and of the contracts that it extends.

    Comments and layout do not count, nor does what methods use from outside of the class. Without a source, as with
    ``python -``, the bytecode counts, which differs between Python versions. The framework is not covered, because like
    the meter it belongs to the release.
    """
    owners = [one for one in contract.__mro__ if "definition" in vars(one) and not is_framework(one)]
    code = [(name, _code(value)) for owner in owners for name, value in sorted(vars(owner).items())]
    return hashlib.sha256(repr([part for part in code if part[0] not in _NOT_CODE]).encode()).digest()


def _code(member: Any) -> str | None:
    """Return the code of a method or the value of a constant; None for other members, which are in the ABI."""
    function = inspect.unwrap(getattr(member, "__func__", None) or getattr(member, "fget", None) or member)
    if not inspect.isfunction(function):
        return repr(member) if isinstance(member, bool | int | float | str | bytes) else None
    try:
        return ast.unparse(ast.parse(dedent(inspect.getsource(function))))
    except (OSError, SyntaxError):
        return function.__code__.co_code.hex() + repr(function.__code__.co_consts)
