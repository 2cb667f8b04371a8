"""Compiling contract classes when they are published: Python that behaves as Move.

The source of each method is checked (`_checks`) and rewritten, so that

- each turn of a loop and each call is charged,
- a number in the source is an integer that takes the width of what it is used with,
- a name that is assigned a part of another value has a copy,
- a list is a vector, ``len`` of a text counts bytes, and ``assert`` aborts.

Integers with a width check themselves (`_integers`), as do borrowed, copied and moved values (`_values`), so code whose
source is not known, such as that of ``python -``, is checked when it runs; its ``while`` loops are not charged. The
framework and the contracts of the seeded history, which belong to the node, are not rewritten.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import hashlib
import inspect
import linecache
import sys
import types
import typing
from typing import TYPE_CHECKING, Any

from toolkit.embedded._checks import ALLOWED_BUILTINS, FunctionSource, check_contract, check_function
from toolkit.embedded._values import U64, Integer, Value, Vector, named_copy
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.types import (
    Address,
    Table,
    TypeArgument,
    check_signer,
    is_framework,
    is_signer,
    move_type,
    resolve_annotations,
    signer_of,
)
from toolkit.errors import ContractError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


# -- what contract code sees in place of builtins ------------------------------------------------------------------


class ContractRange:
    """A range whose numbers have the width of its bounds."""

    def __init__(self, *bounds: Any) -> None:
        kind = next((type(one) for one in bounds if isinstance(one, Integer) and type(one) is not Integer), Integer)
        self._range = range(*(int(kind.of(one)) for one in bounds))
        self._kind = kind

    def __iter__(self) -> Iterator[Integer]:
        kind = self._kind
        return (int.__new__(kind, number) for number in self._range)

    def __reversed__(self) -> Iterator[Integer]:
        kind = self._kind
        return (int.__new__(kind, number) for number in reversed(self._range))

    def __len__(self) -> int:
        return len(self._range)

    def __contains__(self, number: Any) -> bool:
        return int(number) in self._range


def _len(value: Any) -> Any:
    """Return the length of a vector, or the number of bytes of a text."""
    return U64(len(value.encode()) if isinstance(value, str) else len(value))


def _sum(values: Iterable[Any], start: Any = None) -> Any:
    return sum(values, Integer(0) if start is None else start)


def _enumerate(values: Iterable[Any], start: Any = 0) -> Iterator[tuple[Any, Any]]:
    return ((U64(index), value) for index, value in enumerate(values, start))


def _list(values: Iterable[Any] = ()) -> Vector:
    found = Vector(kind=getattr(values, "kind", None))
    found.extend(values)
    return found


def _sorted(values: Iterable[Any], **options: Any) -> Vector:
    return Vector(sorted(values, **options), getattr(values, "kind", None))


_REPLACED: dict[str, Any] = {
    "range": ContractRange,
    "len": _len,
    "sum": _sum,
    "enumerate": _enumerate,
    "list": _list,
    "sorted": _sorted,
}
_BUILTINS = {name: getattr(builtins, name) for name in ALLOWED_BUILTINS if hasattr(builtins, name)}
_BUILTINS |= {"__build_class__": builtins.__build_class__, "AssertionError": AssertionError}

# Names of the helpers in rewritten code, which no source can have.
_BODY = "<body>"
_VECTOR, _COPY, _NUMBER, _TAKE = "<vector>", "<copy>", "<number {}>", "<take {}>"


# -- rewriting -------------------------------------------------------------------------------------------------------


class _Rewriter(ast.NodeTransformer):
    """Rewrites the body of a function.

    Parameters
    ----------
    run : str
        Name of the parameter that is the execution: ``self``.
    typed : callable
        Returns what checks a value of an annotation, None if it is not a Move type.
    scope : dict
        Global names of the function, to which the helpers are added.
    """

    def __init__(self, run: str, typed: Callable[[ast.expr], Any], scope: dict[str, Any]) -> None:
        self._run = run
        self._typed = typed
        self._scope = scope
        scope[_VECTOR], scope[_COPY] = Vector, named_copy

    def _name(self, name: str, at: ast.AST) -> ast.expr:
        return ast.copy_location(ast.Name(name, ast.Load()), at)

    def _call(self, name: str, argument: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Call(self._name(name, argument), [argument], []), argument)

    def _method(self, name: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
        method = ast.copy_location(ast.Attribute(self._name(self._run, at), name, ast.Load()), at)
        return ast.copy_location(ast.Call(method, arguments, []), at)

    def _charged(self, iterated: ast.expr) -> ast.expr:
        """Charge the turns of a loop, unless they are already."""
        if isinstance(iterated, ast.GeneratorExp) or any(
            isinstance(one, ast.Attribute) and one.attr == "each" for one in ast.walk(iterated)
        ):
            return iterated
        return self._method("each", [iterated], iterated)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is not int:
            return node
        name = _NUMBER.format(node.value)
        self._scope[name] = int.__new__(Integer, node.value)
        return self._name(name, node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node  # its parts are text

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.body = [self.visit(one) for one in node.body]  # patterns keep their numbers
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._charged(node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(self._method("charge_turn", [], node)), node))
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._charged(node.iter)
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return self._call(_VECTOR, node) if isinstance(node.ctx, ast.Load) else node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        return self._call(_VECTOR, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        # Builtins that go through a whole vector: their turns are charged as those of a loop.
        whole = {"sum", "sorted", "list", "any", "all"} | ({"min", "max"} if len(node.args) == 1 else set())
        if isinstance(node.func, ast.Name) and node.func.id in whole and node.args:
            node.args[0] = self._charged(node.args[0])
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        is_place = isinstance(node.value, ast.Attribute | ast.Subscript | ast.Name)
        if is_place and all(isinstance(one, ast.Name) for one in node.targets):
            node.value = self._call(_COPY, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        value = self.visit(node.value)
        take = self._typed(node.annotation)
        if take is not None:
            name = _TAKE.format(ast.unparse(node.annotation))
            self._scope[name] = take
            value = self._call(name, value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        arguments = [node.test, *([] if node.msg is None else [node.msg])]
        return ast.copy_location(ast.Expr(self._method("check_assertion", arguments, node)), node)


def _rewritten(source: FunctionSource, typed: Callable[[ast.expr], Any]) -> Any:
    """Return the function of a source, rewritten; one whose source is not known only has other builtins."""
    function = source.function
    code = function.__code__
    scope = dict(function.__globals__)
    scope["__builtins__"] = _BUILTINS
    scope |= {name: value for name, value in _REPLACED.items() if name not in function.__globals__}
    if source.tree is not None:
        tree = copy.deepcopy(source.tree)
        # Its own name is not a name in it: a method `sum` calls the builtin `sum`.
        tree.name, tree.decorator_list, tree.returns = _BODY, [], None
        for one in tree.args.args:
            one.annotation = None
        rewriter = _Rewriter(tree.args.args[0].arg, typed, scope)
        tree.body = [rewriter.visit(one) for one in tree.body]
        # Names of the scopes around the function, and the class of `super()`, are variables of a function around it.
        module = ast.parse(f"def around({', '.join(code.co_freevars)}): pass")
        typing.cast("ast.FunctionDef", module.body[0]).body = [tree]
        ast.fix_missing_locations(module)
        outer = compile(module, code.co_filename, "exec", dont_inherit=True, optimize=0).co_consts[0]
        made_code = next(one for one in outer.co_consts if isinstance(one, types.CodeType) and one.co_name == _BODY)
        code = made_code.replace(co_name=code.co_name, co_qualname=code.co_qualname)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    made = types.FunctionType(
        code, scope, function.__name__, function.__defaults__, tuple(cells[name] for name in code.co_freevars)
    )
    return functools.update_wrapper(made, function)


# -- classes ---------------------------------------------------------------------------------------------------------


def is_of_node(cls: type) -> bool:
    """Return whether a contract belongs to the node: the framework and the contracts of the seeded history."""
    return cls.__module__.startswith("toolkit.embedded.")


def compiled(contract: Any) -> Any:
    """Return a contract class, whose methods have been checked and rewritten; it is done once.

    Raises
    ------
    ContractError
        If Move's compiler would refuse the contract, with all its lines.
    """
    if "move_compiled" not in vars(contract):  # asked at each link of a module, so looked up first
        for cls in reversed(contract.__mro__):
            if "definition" in vars(cls) and not is_of_node(cls) and "move_compiled" not in vars(cls):
                _compile(cls)
        contract.move_compiled = True
    return contract


def _compile(cls: Any) -> None:
    sources = {
        name: _source(inspect.unwrap(member)) for name, member in vars(cls).items() if inspect.isfunction(member)
    }
    check_contract(cls, sources)
    for name, source in sources.items():
        setattr(cls, name, _method(cls, name, source))
    cls.move_compiled = True  # of a class that is extended, too


def compiled_script(function: Any) -> Any:
    """Return the function of a script, checked and rewritten."""
    source = _source(function)
    check_function(source)
    return _rewritten(source, lambda _: None)


@functools.lru_cache(maxsize=64)
def _declarations(source: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Return the functions of a source by name and first line; none if it is not Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    found = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    return {(one.name, min([one.lineno, *(part.lineno for part in one.decorator_list)])): one for one in found}


def _source(function: Any) -> FunctionSource:
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    return FunctionSource(function, _declarations("".join(lines)).get((code.co_name, code.co_firstlineno)))


def _take(kind: Any, *, by_reference: bool) -> Callable[[Any], Any] | None:
    """Return what checks a value of a parameter or result, None if its annotation is not a Move type."""
    if kind is TypeArgument or getattr(kind, "__origin__", None) is TypeArgument:
        return None
    try:
        found = move_type(kind)
    except InputError:
        return None
    take = found.take
    if take is None or not by_reference:
        return take

    def shared(value: Any) -> Any:
        """Check a value; what a function of the same module gets is a reference."""
        if isinstance(value, Value | Vector | Table):
            return value
        return take(value)

    return shared


def _method(cls: Any, name: str, source: FunctionSource) -> Any:
    """Return a method that is charged when it is called, and checks what it gets and returns."""
    original = vars(cls)[name]
    mark = getattr(original, "move_mark", None)
    hints = source.hints(cls)
    function = _rewritten(source, lambda annotation: _take(source.evaluate(annotation, cls), by_reference=False))
    parameters = list(inspect.signature(source.function).parameters)[1:]
    takes = [_take(hints.get(one), by_reference=mark is None) for one in parameters]
    returned = hints.get("return")
    several = typing.get_args(returned) if typing.get_origin(returned) is tuple else None
    results = [_take(one, by_reference=mark is None) for one in several or (returned,)]
    # A method whose name starts with an underscore is an inline function, which Move copies into its caller.
    is_inline = name.startswith("_") or name == "init_module"
    location = f"{cls.definition.wire_id}::{name}"

    def called(self: Any, *arguments: Any) -> Any:
        if not is_inline:
            meter = self.session.meter
            meter.charge_code(self.blocks)
            meter.charge("instr.call.base")
            meter.charge("instr.call.per_arg", len(arguments))
        if len(arguments) != len(takes):
            raise ContractError(f"{name} takes {len(takes)} arguments, got {len(arguments)}")
        given = [one if take is None else take(one) for take, one in zip(takes, arguments, strict=True)]
        try:
            result = function(self, *given)
        except VmError as error:
            error.location = error.location or location
            self.session.failure = error
            raise
        if several is not None:
            if not isinstance(result, tuple | list) or len(result) != len(results):
                raise ContractError(f"{name} returns {len(results)} values, got {result!r:.80}")
            return tuple(one if take is None else take(one) for take, one in zip(results, result, strict=True))
        return result if results[0] is None else results[0](result)

    functools.update_wrapper(called, original)
    called.__wrapped__ = source.function  # type: ignore[attr-defined]  # what messages and digests show
    return called


# -- digests of Python code: two classes with one digest run the same code ---------------------------------------------


# Attributes of a contract class that its publishing sets: the digest must not depend on when it is computed.
_NOT_CODE = {"definition", "move_compiled", "replaced"}


@functools.cache
def code_digest(contract: type) -> bytes:
    """Return a digest of the Python code of a contract class.

    It covers the methods and constants of the class and of the contracts that it extends, and the constants of the file
    or notebook that they use. Comments, docstrings and layout do not count. The digest is the same on every Python
    version if the source is known, as it is in files and in notebooks. The framework is not covered: like the meter, it
    belongs to the release.
    """
    owners = [one for one in contract.__mro__ if "definition" in vars(one) and not is_framework(one)]
    return hashlib.sha256(repr(list(map(_class_code, owners))).encode()).digest()


def _class_code(cls: type) -> list[Any]:
    """Return the functions, constants and nested classes of a class, by name."""
    found: list[Any] = []
    for name, member in sorted(vars(cls).items()):
        value = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        if isinstance(value, types.FunctionType):
            found.append((name, _function_code(_source(inspect.unwrap(value)))))
        elif isinstance(value, type) and value.__qualname__.startswith(f"{cls.__qualname__}."):
            found.append((name, _class_code(value)))
        elif not name.startswith("__") and name not in _NOT_CODE and _is_constant(value):
            found.append((name, repr(value)))
    return found


def _function_code(source: FunctionSource) -> list[Any]:
    """Return the syntax tree of a function, and the constants outside it that it uses."""
    code, tree, scope = source.function.__code__, source.tree, source.scope()
    names = set(code.co_names) if tree is None else {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
    used = [(name, repr(scope[name])) for name in sorted(names & scope.keys()) if _is_constant(scope[name])]
    return [_plain_code(code) if tree is None else _plain_tree(tree), used]


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, bool | int | float | str | bytes)


def _plain_tree(node: Any) -> Any:
    """Return a syntax tree without positions and docstrings, the same on every Python version."""
    if isinstance(node, list):
        return [_plain_tree(one) for one in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if name not in {"ctx", "kind", "type_comment"}}
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return [
        type(node).__name__,
        [(name, _plain_tree(value)) for name, value in fields.items() if value not in (None, [])],
    ]


def _plain_code(code: types.CodeType) -> Any:
    """Return the compiled code of a function whose source is not known."""
    constants = [_plain_code(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return [sys.version_info[:2], code.co_code.hex(), code.co_names, constants]


# -- the framework, as contracts see it ------------------------------------------------------------------------------


class FrameworkModule:
    """A module of the framework as a contract calls it: numbers and results are converted, signers checked."""

    __slots__ = ("_module",)

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if not inspect.ismethod(value):
            return value
        module: Any = type(self._module)  # classes are hashable
        convert = _conversion(module, name)
        return lambda *arguments, **options: convert(value, arguments, options)


@functools.cache
def _conversion(module: Any, name: str) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
    function = inspect.unwrap(getattr(module, name))
    hints = resolve_annotations(function, module, f"{module.__name__}.{name}")
    parameters = list(inspect.signature(function).parameters)[1:]
    signers = [(index, one) for index, one in enumerate(parameters) if is_signer(hints.get(one))]
    returned = hints.get("return")
    result = None if returned in {None, type(None)} else _result(returned)

    def convert(method: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        for index, one in signers:
            if index < len(arguments):
                check_signer(arguments[index], one)
        found = method(*map(_plain, arguments), **{key: _plain(value) for key, value in options.items()})
        return found if result is None else result(found)

    return convert


def _result(kind: Any) -> Callable[[Any], Any] | None:
    if is_signer(kind):
        return signer_of
    return _take(kind, by_reference=False)


def _plain(value: Any) -> Any:
    """Return a value as the framework has it."""
    if isinstance(value, Integer):
        return int(value)
    if isinstance(value, Vector):
        return [_plain(one) for one in value]
    return str(value) if type(value) is not Address and isinstance(value, Address) else value
