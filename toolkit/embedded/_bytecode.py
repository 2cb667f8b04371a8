"""Bytecode of contracts: metadata that names the error constants, a digest of ABI and revision, a modelled size.

Also digests of Python code: two classes with one digest run the same code.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
import json
import linecache
import sys
from functools import cache, lru_cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from toolkit.move._bcs import Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.embedded._vm_status import AbortCode

_FRAMEWORK = "toolkit.embedded.framework"

# Modelled size of compiled code, bytes: of a module, and what each function, struct and field adds.
_MODULE_BYTES, _FUNCTION_BYTES, _STRUCT_BYTES, _FIELD_BYTES = 110, 80, 80, 20
MAGIC = bytes.fromhex("a11ceb0b0700000a")
_METADATA_TABLE = 0x10
_METADATA_KEY = b"aptos::metadata_v1"
_MIN_DIGEST_BYTES = 32


def modelled_bytecode(
    abi: dict[str, Any], revision: int, code_bytes: int | None, errors: Mapping[int, AbortCode]
) -> bytes:
    """Return metadata and the digest of ABI and revision, extended to the modelled size of the code."""
    text = json.dumps([abi, revision], sort_keys=True, separators=(",", ":"))
    structs = abi["structs"]
    size = code_bytes or (
        _MODULE_BYTES
        + _FUNCTION_BYTES * len(abi["exposed_functions"])
        + _STRUCT_BYTES * len(structs)
        + _FIELD_BYTES * sum(len(one["fields"]) for struct in structs for one in (struct, *struct["variants"]))
    )
    start = MAGIC + (_metadata(errors) if errors else b"")
    return start + hashlib.shake_256(text.encode()).digest(max(size - len(start), _MIN_DIGEST_BYTES))


def _metadata(errors: Mapping[int, AbortCode]) -> bytes:
    """Return the header and the only table of compiled code whose metadata names error constants by their values.

    The metadata is ``RuntimeModuleMetadataV1`` in BCS: a map of errors, and empty maps of attributes.
    """
    value, table, start = Writer(), Writer(), Writer()
    value.uleb128(len(errors))
    for reason, error in sorted(errors.items()):
        value.u64(reason)
        value.string(error.name)
        value.string(error.description)
    value.uleb128(0)
    value.uleb128(0)
    table.bytes(_METADATA_KEY)
    table.bytes(value.getvalue())
    for number in (1, _METADATA_TABLE, 0, len(table.getvalue())):  # one table: its kind, offset and size
        start.uleb128(number)
    return bytes(start.getvalue() + table.getvalue())


# -- digests of Python code: two classes with one digest run the same code --------------------------------------------


# Attributes of a contract class that its publishing sets: the digest must not depend on when it is computed.
_NOT_CODE = {"definition", "move_compiled", "replaced"}


@cache
def code_digest(contract: type) -> bytes:
    """Return a digest of the Python code of a contract class.

    It covers the methods and constants of the class and of the contracts that it extends, and the constants and
    functions of the file or notebook that they use. Comments, docstrings and layout do not count. The digest is the
    same on every Python version if the source is known, as it is in files and in notebooks. The framework is not
    covered: like the meter, it belongs to the release.
    """
    seen: set[FunctionType] = set()
    owners = [one for one in contract.__mro__ if "definition" in vars(one)]
    parts = [_class_code(one, seen) for one in owners if not one.__module__.startswith(_FRAMEWORK)]
    return hashlib.sha256(repr(parts).encode()).digest()


def _class_code(cls: type, seen: set[FunctionType]) -> list[Any]:
    """Return the functions, constants and nested classes of a class, by name."""
    found: list[Any] = []
    for name, member in sorted(vars(cls).items()):
        value = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        if isinstance(value, FunctionType):
            found.append((name, _function_code(inspect.unwrap(value), seen)))
        elif isinstance(value, type) and value.__qualname__.startswith(f"{cls.__qualname__}."):
            found.append((name, _class_code(value, seen)))
        elif not name.startswith("__") and name not in _NOT_CODE and _is_constant(value):
            found.append((name, repr(value)))
    return found


def _function_code(function: Any, seen: set[FunctionType]) -> list[Any]:
    """Return the syntax tree of a function, and the constants and functions that it uses."""
    seen.add(function)
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    node = declarations("".join(lines)).get((code.co_name, code.co_firstlineno))
    used: list[Any] = []
    scope = dict(function.__globals__)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not assigned yet, like the class that is being defined
            continue
    for name in sorted({*_globals_of(code), *code.co_freevars}):
        value = scope.get(name)
        if _is_constant(value):
            used.append((name, repr(value)))
        elif isinstance(value, FunctionType) and not value.__module__.startswith("toolkit.") and value not in seen:
            used.append((name, _function_code(value, seen)))
    return [_plain_code(code) if node is None else _plain_tree(node), used]


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, bool | int | float | str | bytes)


def _globals_of(code: CodeType) -> set[str]:
    """Return the global names that a function uses, with the functions and comprehensions inside it."""
    found = {str(one.argval) for one in dis.get_instructions(code) if one.opname in {"LOAD_GLOBAL", "LOAD_NAME"}}
    return found.union(*(_globals_of(one) for one in code.co_consts if isinstance(one, CodeType)))


@lru_cache(maxsize=64)
def declarations(source: str) -> dict[tuple[str, int], ast.AST]:
    """Return the functions of a source by name and first line; none if it is not Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    return {
        (one.name, min([one.lineno, *(decorator.lineno for decorator in one.decorator_list)])): one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef)
    }


def _plain_tree(node: Any) -> Any:
    """Return a syntax tree without positions and docstrings, the same on every Python version."""
    if isinstance(node, list):
        return [_plain_tree(one) for one in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    kept = {name: value for name, value in fields.items() if name not in {"ctx", "kind", "type_comment"}}
    return [
        type(node).__name__,
        [(name, _plain_tree(value)) for name, value in kept.items() if value is not None and value != []],
    ]


def _plain_code(code: CodeType) -> Any:
    """Return the compiled code of a function whose source is not known."""
    constants = [_plain_code(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return [sys.version_info[:2], code.co_code.hex(), code.co_names, constants]
