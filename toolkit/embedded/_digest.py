"""Digests of the Python code of contracts: two classes with one digest run the same code."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import linecache
import types
from typing import Any

from toolkit.embedded.types import is_framework

# Attributes of a contract class that its publishing sets: the digest must not depend on when it is computed.
_NOT_CODE = {"_location", "blocks", "definition", "replaced"}


@functools.cache
def code_digest(contract: type) -> bytes:
    """Return a digest of the Python code of a contract class.

    The digest covers the methods and constants of the class and of the contracts that it extends, and the constants
    that they use from the file or notebook. Comments, docstrings and layout do not count. Without a source, as with
    ``python -``, it covers the bytecode, which differs between Python versions. The framework is not covered, because
    like the meter it belongs to the release.
    """
    owners = [one for one in contract.__mro__ if "definition" in vars(one) and not is_framework(one)]
    return hashlib.sha256(repr(list(map(_class_code, owners))).encode()).digest()


def _class_code(cls: type) -> list[Any]:
    """Return the name and the code or value of each function, constant and nested class of a class."""
    found: list[Any] = []
    for name, member in sorted(vars(cls).items()):
        value = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        if isinstance(value, types.FunctionType):
            found.append((name, _function_code(inspect.unwrap(value))))
        elif isinstance(value, type) and value.__qualname__.startswith(f"{cls.__qualname__}."):
            found.append((name, _class_code(value)))
        elif not name.startswith("__") and name not in _NOT_CODE and _is_constant(value):
            found.append((name, repr(value)))
    return found


def _function_code(function: Any) -> list[Any]:
    """Return the code of a function, and the constants outside it that it uses."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    tree = _declarations("".join(lines)).get((code.co_name, code.co_firstlineno))
    scope = dict(function.__globals__)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if cell != types.CellType():  # assigned
            scope[name] = cell.cell_contents
    if tree is None:
        names, text = {*code.co_names, *code.co_freevars}, code.co_code.hex() + repr(code.co_consts)
    else:
        names, text = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}, ast.unparse(tree)
    return [text, [(name, repr(scope[name])) for name in sorted(names & scope.keys()) if _is_constant(scope[name])]]


@functools.lru_cache(maxsize=64)
def _declarations(source: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Return the functions in a source without docstrings, by name and first line; none if it is not Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    found = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.FunctionDef):
            if ast.get_docstring(one, clean=False) is not None:
                one.body = one.body[1:] or [ast.Pass()]
            found[one.name, min([one.lineno, *(part.lineno for part in one.decorator_list)])] = one
    return found


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, bool | int | float | str | bytes)
