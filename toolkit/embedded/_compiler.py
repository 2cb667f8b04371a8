"""Compile contract classes when they are published, so that their Python code behaves like Move.

The source of each method is checked and rewritten. The check rejects what Move's compiler rejects. It follows the types
that annotations state for parameters, fields and results, and the names to which their values are assigned. Values of
unknown type are checked when the contract runs. The source is rewritten so that

- each loop iteration and each call is charged,
- a number in the source takes the width of the integer that it is used with,
- a name to which a part of another value is assigned holds a copy,
- a list is a vector, ``len`` of a string counts bytes, and ``assert`` aborts.

The values in `_values` check each operation: integers with a width, and borrowed, copied and moved values. Code without
an available source, such as the input of ``python -``, is therefore still checked when it runs, but its loops are not
charged. The framework and the contracts of the seeded history belong to the node and are not rewritten.
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit._present.messages import did_you_mean, place
from toolkit._present.text import plural
from toolkit.embedded._values import U64, Integer, Value, Vector, named_copy
from toolkit.embedded._vm_status import AbortCode, VmError
from toolkit.embedded.types import (
    Address,
    Enum,
    Object,
    Struct,
    Table,
    TypeArgument,
    alias_kind,
    check_signer,
    integer_class,
    is_framework,
    is_signer,
    is_struct,
    move_type,
    resolve_annotations,
    shown,
    signer_of,
    u64,
)
from toolkit.errors import ContractError, InputError
from toolkit.move import StructTag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


ALLOWED_BUILTINS = frozenset(
    {"all", "any", "bool", "bytes", "enumerate", "isinstance", "len", "list", "max", "min", "range", "reversed"}
    | {"sorted", "str", "sum", "super", "tuple", "zip", "None", "True", "False"}
)

NO_STATE = "a contract has no state of its own; store the value in a Resource"
_READ_ONLY = "cannot be changed: borrow returns a copy; use borrow_mut to change it"
_NO_FRACTIONS = "use integers of a smaller unit, such as octas"


def _by_word(texts: dict[str, str]) -> dict[str, str]:
    """Return a dict that maps each word of the keys to the key's text."""
    return {word: text for words, text in texts.items() for word in words.split()}


# What to write instead of a builtin.
_INSTEAD = _by_word(
    {
        "print": "emit an event to report something",
        "open input": "a contract has no files and no input: store data in a Resource, or take it as an argument",
        "dict set": "use a Table, or a vector",
        "float round": _NO_FRACTIONS,
        "int": "write u64(...) or another integer type",
        "abs": "write x if x >= 0 else -x",
        "pow divmod": "multiply, or write // and %",
        "getattr setattr type id hash eval exec": "name the field or the type: Move has no reflection",
        "iter next map filter": "write a for loop or a comprehension",
    }
)

# Why nodes of a syntax tree are rejected, by the names of their classes.
_REFUSED = _by_word(
    {
        "Import ImportFrom": "a contract cannot import modules: import them above the class, and list the contracts "
        "that it calls in uses=[...]",
        "Try TryStar": "an abort cannot be caught in Move: check the condition beforehand, with contains or exists",
        "Raise": "write self.abort(E_CODE): Move has no exceptions",
        "Global Nonlocal": NO_STATE,
        "FunctionDef": "Move has no functions inside functions: write a method without a decorator",
        "AsyncFunctionDef Await": "Move has no async functions",
        "ClassDef": "declare structs in the contract's class, outside its methods",
        "Yield YieldFrom": "Move has no generators: return a vector",
        "Delete": "del removes names only: use pop for an element, remove for a table item, move_from for a resource",
        "Dict DictComp": "Move has no dicts: use a Table, or a vector of structs",
        "Set SetComp": "Move has no sets: use a Table, or a vector",
        "Starred": "Move has no unpacking with *: write each value",
    }
)

# Methods of `self`; everything else must be declared in the class.
_WRITES = {"borrow_mut", "emit", "emit_event", "move_from", "move_to", "new_event_handle", "new_table", "own_signer"}
_OF_SELF = _WRITES | {"abort", "borrow", "charge", "definition", "each", "exists", "require", "type_name", "use"}
_TABLE_WRITES = {"add", "borrow_mut", "remove", "upsert"}
_VECTOR_WRITES = {"append", "assign", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}


@dataclass(frozen=True)
class FunctionSource:
    """A function of a contract, and its syntax tree, which is None if the source is not available."""

    function: Any
    tree: ast.FunctionDef | None

    def hints(self, cls: Any) -> dict[str, Any]:
        """Return the annotations by name, or an empty dict if a helper has an annotation that is not a Move type."""
        try:
            return resolve_annotations(self.function, cls, self.function.__qualname__)
        except (AttributeError, InputError):
            return {}

    def evaluate(self, annotation: ast.expr, cls: Any) -> Any:
        """Return the type that an annotation inside the function names, or None if it is not a Move type."""
        named = types.FunctionType((lambda: None).__code__, self.function.__globals__)
        named.__annotations__ = {"value": ast.unparse(annotation)}
        named.__module__, named.__qualname__ = self.function.__module__, self.function.__qualname__
        return FunctionSource(named, None).hints(cls).get("value")

    def scope(self) -> dict[str, Any]:
        """Return the global and enclosing names that the function can read, with their values."""
        found = dict(self.function.__globals__)
        for name, cell in zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        return found


def check_contract(cls: Any, sources: Mapping[str, FunctionSource]) -> None:
    """Check the methods of a contract.

    Raises
    ------
    ContractError
        If Move's compiler would reject the contract; the message has one line for each problem.
    """
    messages: list[tuple[int, str]] = []
    found = {name: _Checker(source, cls) for name, source in sources.items() if source.tree is not None}
    for name, one in found.items():
        problems = list(one.problems)
        if getattr(getattr(vars(cls)[name], "move_mark", None), "is_view", False):
            problems += [(line, f"a view only reads, but {what}") for line, what in _writes_of(name, found)]
        messages += _located(sources[name], f"{cls.__name__}.{name}", problems)
    if messages:
        raise ContractError("\n".join(dict.fromkeys(text for _, text in sorted(messages, key=lambda one: one[0]))))


def _located(source: FunctionSource, name: str, problems: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the line number and the message of each problem."""
    file = source.function.__code__.co_filename
    return ((line, f"{name}: {problem}{place(file, line)}") for line, problem in problems)


def _writes_of(name: str, found: Mapping[str, _Checker], seen: tuple[str, ...] = ()) -> Iterator[tuple[int, str]]:
    """Yield (line, text) for each write of a function to the ledger, directly or through another method."""
    if name in seen or name not in found:
        return
    yield from found[name].writes
    for method, line in found[name].calls.items():
        if next(_writes_of(method, found, (*seen, name)), None) is not None:
            yield line, f"self.{method} writes"


_UNKNOWN = "an unknown type"
_NUMBER = "a number without a width"


class _Checker:
    """Checks a function, following the types statement by statement.

    Attributes
    ----------
    problems, writes : list of (int, str)
        Line numbers with what Move's compiler would reject, and line numbers with what writes to the ledger.
    calls : dict of str to int
        Methods of `self` that the function calls, with the line number of the first call.
    """

    def __init__(self, source: FunctionSource, cls: Any) -> None:
        self._source = source
        self._cls = cls
        self.tree: ast.FunctionDef = typing.cast("ast.FunctionDef", source.tree)
        self.problems: list[tuple[int, str]] = []
        self.writes: list[tuple[int, str]] = []
        self.calls: dict[str, int] = {}
        self._scope = source.scope()
        hints = source.hints(cls) if cls is not None else {}
        names = [one.arg for one in self.tree.args.args]
        self._run = names[0]
        self._types: dict[str, Any] = {name: _known(hints.get(name)) for name in names}
        self._returned = _known(hints.get("return"))
        self._read_only: set[str] = set()
        self._opened: set[ast.expr] = set()  # calls of borrow_mut in a with statement
        self._locals: set[str | None] = set()
        for one in ast.walk(self.tree):
            match one:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                    self._locals.add(name)
                case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
                    self._locals.add(name)
        self._block(self.tree.body)

    def _problem(self, node: ast.AST, text: str) -> None:
        self.problems.append((getattr(node, "lineno", self.tree.lineno), text))

    def _missing(self, node: ast.AST, what: str, name: str, known: Iterable[str], otherwise: str) -> None:
        """Report a name that does not exist; suggest a similar name, or else give the advice in `otherwise`."""
        self._problem(node, f"{what}; {did_you_mean(name, [*known]) or otherwise}")

    # -- statements ----------------------------------------------------------------------------------------

    def _block(self, statements: list[ast.stmt]) -> None:
        for one in statements:
            self._statement(one)

    def _statement(self, node: ast.stmt) -> None:  # noqa: C901, PLR0912 - one per kind
        if isinstance(node, ast.Delete) and all(isinstance(one, ast.Name) for one in node.targets):
            return  # a parameter that is not used
        if (refused := _REFUSED.get(type(node).__name__)) is not None:
            self._problem(node, refused)
            return
        match node:
            case ast.Assign(targets=targets, value=value):
                kind = self._type(value)
                for target in targets:
                    self._assign(target, kind, value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                self._types[name] = self._source.evaluate(annotation, self._cls) if self._cls else _UNKNOWN
                if value is not None:
                    self._check_same(node, self._types[name], self._type(value), f"{name} must be")
            case ast.AugAssign(target=target, op=operation, value=value):
                loaded = copy.copy(target)
                loaded.ctx = ast.Load()
                whole = ast.copy_location(ast.BinOp(loaded, operation, value), node)
                self._assign(target, self._type(whole), value, changes=True)
            case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
                self._assign(target, _element(self._type(iterated)), iterated)
                self._block([*body, *orelse])
            case ast.While(test=test, body=body, orelse=orelse) | ast.If(test=test, body=body, orelse=orelse):
                self._condition(test)
                self._block([*body, *orelse])
            case ast.With(items=items, body=body):
                for one in items:
                    self._with(one)
                self._block(body)
            case ast.Return(value=ast.expr() as value):
                self._check_same(value, self._returned, self._type(value), f"{self.tree.name} must return")
            case ast.Assert(test=test, msg=message):
                self._condition(test)
                if message is not None:
                    self._type(message)
            case ast.Match(subject=subject, cases=cases):
                self._type(subject)
                for case in cases:
                    self._block(case.body)
            case ast.Expr(value=value) if not isinstance(value, ast.Constant):
                self._type(value)

    def _with(self, item: ast.withitem) -> None:
        call, name = item.context_expr, item.optional_vars
        self._opened.add(call)
        kind = self._type(call)
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "borrow_mut"):
            self._problem(call, "only borrow_mut can be used in a with statement")
        elif isinstance(name, ast.Name):
            self._types[name.id] = kind
            self._read_only.discard(name.id)

    def _assign(self, target: ast.expr, kind: Any, value: ast.expr, *, changes: bool = False) -> None:  # noqa: C901 - one per kind
        match target:
            case ast.Name(id=name):
                if changes and name in self._read_only and _element(kind) is not _UNKNOWN:
                    self._problem(target, f"{name} {_READ_ONLY}")
                # A number without a width does not change the known type of a name.
                if kind is not _NUMBER or name not in self._types:
                    self._types[name] = kind
                if not changes:
                    (self._read_only.add if self._is_read_only(value) else self._read_only.discard)(name)
            case ast.Tuple(elts=parts):
                for one in parts:
                    self._assign(one, _UNKNOWN, value)
            case ast.Attribute(value=owner, attr=name) if self._is_self(owner):
                self._problem(target, f"self.{name} cannot be set: {NO_STATE}")
            case _:
                expected, text, root = self._type(target), ast.unparse(target), target
                while isinstance(root, ast.Attribute | ast.Subscript):
                    root = root.value
                if self._is_read_only(target):
                    self._problem(target, f"{text} {_READ_ONLY}")
                elif isinstance(self._static(root), type):
                    self._problem(target, f"{text} cannot be set: {NO_STATE}")
                self._check_same(target, expected, kind, f"{text} must be")

    # -- expressions ---------------------------------------------------------------------------------------

    def _type(self, node: ast.expr) -> Any:  # noqa: C901, PLR0911, PLR0912 - one per kind
        """Check an expression and return its type, or `_UNKNOWN`."""
        if (refused := _REFUSED.get(type(node).__name__)) is not None:
            self._problem(node, refused)
            return _UNKNOWN
        match node:
            case ast.Constant(value=value):
                if isinstance(value, float | complex):
                    self._problem(node, f"Move has no fractions, got {value}; {_NO_FRACTIONS}")
                return _type_of(value)
            case ast.Name(id=name):
                self._check_name(node)
                return self._types.get(name, _UNKNOWN) if name in self._locals else _type_of(self._scope.get(name))
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
            case ast.Subscript(value=value, slice=index):
                return self._subscript(node, value, index)
            case ast.BinOp():
                return self._operation(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._condition(operand)
                return bool
            case ast.UnaryOp(op=operation, operand=operand):
                kind = self._type(operand)
                cls = integer_class(kind)
                if isinstance(operation, ast.Invert):
                    self._problem(node, "Move has no operator ~: write x ^ MASK")
                elif isinstance(operation, ast.USub) and cls is not None and not cls.low:
                    self._problem(node, f"{cls.move_name} has no negative values, got {ast.unparse(node)}")
                return kind
            case ast.BoolOp(values=values):
                for one in values:
                    self._condition(one)
                return bool
            case ast.Compare(left=left, ops=operations, comparators=others):
                return self._comparison(node, left, operations, others)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._condition(test)
                kinds = [self._type(body), self._type(orelse)]
                return next((one for one in kinds if one is not _UNKNOWN and one is not _NUMBER), kinds[0])
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                for generator in node.generators:
                    self._assign(generator.target, _element(self._type(generator.iter)), generator.iter)
                    for test in generator.ifs:
                        self._condition(test)
                self._type(element)
                return _UNKNOWN
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._type(child)
        return _UNKNOWN

    def _check_name(self, node: ast.Name) -> None:
        name = node.id
        if name in self._locals or (name in ALLOWED_BUILTINS and name not in self._scope):
            return
        if name not in self._scope:
            if name in _INSTEAD:
                self._problem(node, f"Move has no {name}; {_INSTEAD[name]}")
                return
            outside = [one for one in self._scope if not one.startswith("_")]
            known = [*map(str, self._locals), *ALLOWED_BUILTINS, *outside]
            self._missing(node, f"{name} is not defined", name, known, "declare it in the contract")
        elif not _is_allowed(value := self._scope[name]):
            if isinstance(value, types.ModuleType):
                problem = f"a contract cannot use the module {name}: it is not part of the ledger"
            elif callable(value):
                problem = f"{name} is not part of the contract: write it as a method without a decorator"
            else:
                kind = type(value).__name__
                problem = f"{name} is of type {kind}, but a contract can read only constants: store it in a Resource"
            self._problem(node, problem)

    def _attribute(self, node: ast.Attribute) -> Any:  # noqa: C901 - one per kind of owner
        name, text = node.attr, ast.unparse(node)
        if self._is_self(node.value):
            members = {} if self._cls is None else {one for one in dir(self._cls) if not hasattr(object, one)}
            if name not in _OF_SELF and (name not in members or name in {"session", "blocks"}):
                known = [*_OF_SELF, *(one for one in members if not one.startswith(("move_", "_")))]
                self._missing(node, f"self.{name} does not exist", name, known, "declare it in the contract's class")
            return _type_of(getattr(self._cls, name, None))
        static = self._static(node.value)
        kind = self._type(node.value)
        # A module that is not allowed is reported by its name.
        is_allowed_module = isinstance(static, types.ModuleType) and _is_allowed(static)
        if static is not None:
            if not hasattr(static, name):
                self._missing(node, f"{text} does not exist", name, _public(static), "declare it in the contract")
            elif is_allowed_module and not _is_allowed(getattr(static, name)):
                self._problem(node, f"a contract cannot use {text}: it is not part of the ledger")
            return _type_of(getattr(static, name, None))
        if name.startswith(("_", "move_")):
            self._problem(node, f"{text} is not a field: Move has no reflection")
        alias = alias_kind(kind)
        if is_struct(kind) and kind.move_declared() is kind and not issubclass(kind, Enum):
            fields = kind.move_fields()
            if name not in fields and not hasattr(kind, name):
                otherwise = f"its fields are {', '.join(fields)}" if fields else "it has no fields"
                self._missing(node, f"{kind.__name__} has no field {name}", name, fields, otherwise)
            return fields.get(name, _UNKNOWN)
        if typing.get_origin(kind) is Table and not hasattr(Table, name):
            self._missing(node, f"a table has no method {name}", name, dir(Table), "use contains and borrow")
        elif alias is not None and alias.text in {"signer", "address"} and not hasattr(str, name):
            value = ast.unparse(node.value)
            self._problem(node, f"{value} has no {name}; the {alias.text} itself is an address: write {value}")
        return _UNKNOWN

    def _call(self, node: ast.Call) -> Any:
        given = [self._type(one) for one in node.args]
        for one in node.keywords:
            self._type(one.value)
        function = node.func
        static = self._static(function)
        if integer_class(static) is not None:
            return static
        if isinstance(function, ast.Name) and not is_struct(static):
            self._check_name(function)
            return u64 if function.id == "len" and "len" not in self._scope else _UNKNOWN
        self._type(function)
        if is_struct(static):
            return self._construction(node, static)
        if not isinstance(function, ast.Attribute):
            return _UNKNOWN
        if function.attr == "borrow_mut" and node not in self._opened:
            self._problem(node, f"borrow_mut needs a with block: with {ast.unparse(node)} as value: ...")
        if self._is_self(function.value):
            return self._method(node, function.attr, given)
        return self._method_of(node, function)

    def _construction(self, node: ast.Call, struct: type[Struct]) -> Any:
        declared = struct.move_declared()
        if (issubclass(struct, Enum) and declared is struct) or any(one.arg is None for one in node.keywords):
            return declared
        name, expected = struct.__name__, struct.move_fields()
        for one in node.keywords:
            if one.arg in expected:
                self._check_same(one.value, expected[one.arg], self._quiet(one.value), f"{name}.{one.arg} must be")
            else:
                otherwise = f"its fields are {', '.join(expected)}" if expected else "it has no fields"
                self._missing(one.value, f"{name} has no field {one.arg}", str(one.arg), expected, otherwise)
        missing = [one for one in expected if one not in {given.arg for given in node.keywords}]
        if node.args:
            fields = ", ".join(f"{one}=..." for one in expected)
            self._problem(node, f"fields must be passed by name: write {name}({fields})")
        elif missing:
            self._problem(node, f"{name}(...) is missing {', '.join(missing)}")
        return declared

    def _method(self, node: ast.Call, name: str, given: list[Any]) -> Any:
        """Check a call of a method of `self` and return the type of its result."""
        if name in _WRITES:
            self.writes.append((node.lineno, f"self.{name} writes"))
        match name:
            case "borrow" | "borrow_mut" | "move_from" | "exists" if given:
                resource = self._static(node.args[0])
                self._check_abilities(node, name, resource, ("key",))
                return bool if name == "exists" else resource if is_struct(resource) else _UNKNOWN
            case "move_to" if given:
                if (given[0] is not _UNKNOWN and not is_signer(given[0])) or isinstance(node.args[0], ast.Constant):
                    self._problem(node, f"move_to takes the signer of the account, got {ast.unparse(node.args[0])}")
                self._check_abilities(node, name, given[-1], ("key",))
            case "emit" | "emit_event" if given:
                self._check_abilities(node, name, given[-1], ("drop", "store"))
            case "require" if given:
                self._check_condition(node.args[0], given[0])
            case "each" if given:
                return given[0]
        function = _function_of(self._cls, name)
        if not inspect.isfunction(function) or name in _OF_SELF:
            return _UNKNOWN
        self.calls.setdefault(name, node.lineno)
        return self._called(node, function, given, f"self.{name}")

    def _called(self, node: ast.Call, function: Any, given: list[Any], what: str) -> Any:
        parameters = list(inspect.signature(function).parameters)[1:]
        hints = FunctionSource(function, None).hints(self._cls)
        if node.keywords:
            self._problem(node, f"{what}: arguments must be passed by position, as in Move")
        elif len(given) != len(parameters):
            self._problem(node, f"{what} takes {plural(len(parameters), 'argument')}, got {len(given)}")
        for one, name, kind in zip(node.args, parameters, given, strict=False):
            expected = _known(hints.get(name))
            self._check_same(one, expected, kind, f"{name} of {what} must be")
            if is_signer(expected) and kind is not _UNKNOWN and not is_signer(kind):
                self._problem(one, f"{name} of {what} must be a signer, got {shown(kind)}: an address cannot sign")
        return _known(hints.get("return"))

    def _check_abilities(self, node: ast.Call, method: str, kind: Any, wanted: Iterable[str]) -> None:
        lacks = [one for one in wanted if is_struct(kind) and one not in kind.move_abilities]
        if lacks:
            name, base = kind.__name__, "Resource" if lacks == ["key"] else "Event"
            self._problem(node, f"self.{method}: {name} lacks the ability {lacks[0]}: write class {name}({base})")

    def _method_of(self, node: ast.Call, function: ast.Attribute) -> Any:
        """Check a call of a method of a table, a vector or another module, and return the type of its result."""
        kind, name = self._quiet(function.value), function.attr
        if typing.get_origin(kind) is Table:
            # Its items are stored separately, so a table can be changed even if it was borrowed read-only.
            if name in _TABLE_WRITES:
                self.writes.append((node.lineno, f"{ast.unparse(function)} writes"))
            return bool if name == "contains" else _UNKNOWN if name in {"add", "upsert"} else typing.get_args(kind)[1]
        if name in _VECTOR_WRITES and self._is_read_only(function.value):
            self._problem(node, f"{ast.unparse(function.value)} {_READ_ONLY}")
        match function.value:
            case ast.Call(func=ast.Attribute(attr="use"), args=[used, *_]) if (
                module := self._static(used)
            ) is not None:
                member = _function_of(module, name)
                if member is None:
                    what = f"{module.__name__} has no function {name}"
                    self._missing(node, what, name, _public(module), "see its documentation")
                if inspect.isfunction(member):
                    return _known(FunctionSource(member, None).hints(module).get("return"))
        return _element(kind) if name == "pop" else _UNKNOWN

    def _subscript(self, node: ast.Subscript, value: ast.expr, index: ast.expr) -> Any:
        if self._static(node) is not None or isinstance(self._static(value), type):
            return _UNKNOWN
        kind = self._type(value)
        if typing.get_origin(kind) is Table:
            self._problem(node, "a table cannot be indexed: use contains, borrow, add, upsert and remove with a key")
        self._type(index)
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
            of = ast.unparse(value)
            self._problem(node, f"Move has no negative indices: write {of}[len({of}) - {ast.unparse(index.operand)}]")
        return kind if isinstance(index, ast.Slice) else _element(kind)

    def _operation(self, node: ast.BinOp) -> Any:
        left, right = self._type(node.left), self._type(node.right)
        constants = isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
        if isinstance(node.op, ast.Div):
            self._problem(node, "Move has integer division only: write // instead of /")
            return _UNKNOWN
        if isinstance(node.op, ast.Pow) and not constants:
            self._problem(node, "Move has no power operator: write a product")
        if bool in {left, right}:
            self._problem(node, f"a bool is not a number and cannot be used in {ast.unparse(node)}")
            return _UNKNOWN
        if isinstance(node.op, ast.LShift | ast.RShift):
            return left
        self._check_operands(node, ast.BinOp(_NAME, node.op, _NAME), left, right)
        return left if integer_class(left) is not None else right if left in (_NUMBER, _UNKNOWN) else left

    def _comparison(self, node: ast.AST, left: ast.expr, operations: list[ast.cmpop], others: list[ast.expr]) -> Any:
        kinds = [self._type(one) for one in (left, *others)]
        for number, operation in enumerate(operations):
            if not isinstance(operation, ast.Is | ast.IsNot | ast.In | ast.NotIn):
                operator = ast.Compare(_NAME, [operation], [_NAME])
                self._check_operands(node, operator, kinds[number], kinds[number + 1])
            elif isinstance(operation, ast.Is | ast.IsNot) and ast.unparse(others[number]) != "None":
                self._problem(node, "values have no identity in Move: write == instead of is")
        return bool

    def _check_operands(self, node: ast.AST, operation: ast.expr, left: Any, right: Any) -> None:
        one, other = integer_class(left), integer_class(right)
        if one is not None and other is not None and one is not other:
            wider = one if one.bits >= other.bits else other
            what = f"{one.move_name} {ast.unparse(operation).split()[1]} {other.move_name}"
            self._problem(node, f"{what}: both operands must have the same type; cast with {wider.move_name}(...)")

    def _condition(self, node: ast.expr) -> None:
        self._check_condition(node, self._type(node))

    def _check_condition(self, node: ast.expr, kind: Any) -> None:
        alias = alias_kind(kind)
        instead = ""
        if kind is _NUMBER or integer_class(kind) is not None:
            instead = "{} != 0"
        elif kind is bytes or (alias is not None and (alias.name or alias.text) in {"vector", "String"}):
            instead = "len({}) > 0"
        elif alias is not None and alias.name == "Option":
            instead = "{} is not None"
        if instead:
            self._problem(node, f"a condition must be a bool: write {instead.format(ast.unparse(node))}")

    def _check_same(self, node: ast.AST, expected: Any, kind: Any, what: str) -> None:
        """Report a different integer type, or a bool in place of a number; other types are checked at run time."""
        wanted, got, number = integer_class(expected), integer_class(kind), _number(node)
        if wanted is not None and number is not None and not wanted.low <= number <= wanted.high:
            self._problem(node, f"{what} {wanted.move_name} ({wanted.low} to {wanted.high}), got {number}")
        if wanted is not None and (kind is bool or (got is not None and got is not wanted)):
            cast = "" if kind is bool else f"; cast it with {wanted.move_name}(...)"
            self._problem(node, f"{what} {wanted.move_name}, got {shown(kind)}{cast}")
        elif expected is bool and (got is not None or kind is _NUMBER):
            self._problem(node, f"{what} bool, got {'a number' if kind is _NUMBER else shown(kind)}: write != 0")

    # -- places --------------------------------------------------------------------------------------------

    def _quiet(self, node: ast.expr) -> Any:
        """Return the type of an expression without reporting its problems again."""
        before = len(self.problems), len(self.writes)
        kind = self._type(node)
        del self.problems[before[0] :], self.writes[before[1] :]
        return kind

    def _is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self._run

    def _is_read_only(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._read_only
            case ast.Attribute(value=value) | ast.Subscript(value=value):
                return self._is_read_only(value)
            case ast.Call(func=ast.Attribute(attr="each"), args=[one]):
                return self._is_read_only(one)
            case ast.Call(func=ast.Attribute(value=value, attr="borrow")):
                return self._is_self(value) or typing.get_origin(self._quiet(value)) is Table
        return False

    def _static(self, node: ast.expr) -> Any:
        """Return the class, contract or constant that an expression names, or None for a run-time value."""
        match node:
            case ast.Name(id=name) if name not in self._locals:
                return self._scope.get(name)
            case ast.Attribute(value=value, attr=name) if self._is_self(value):
                found = getattr(self._cls, name, None)
                return found if isinstance(found, type) else None
            case ast.Attribute(value=value, attr=name):
                return getattr(self._static(value), name, None)
            case ast.Subscript(value=value):
                owner = self._static(value)
                return owner if isinstance(owner, type) else None
        return None


_NAME = ast.Name("x", ast.Load())


def _known(annotation: Any) -> Any:
    """Return an annotation if it is a Move type, otherwise `_UNKNOWN`; helper methods may have other annotations."""
    is_move = annotation in (bool, bytes) or is_struct(annotation) or alias_kind(annotation) is not None
    return annotation if is_move or typing.get_origin(annotation) is Table else _UNKNOWN


def _function_of(contract: Any, name: str) -> Any:
    """Return a contract's member without its wrapper, or None if the contract has no such member."""
    member: Any = getattr(contract, name, None)
    return inspect.unwrap(member) if inspect.isfunction(member) else member


def _public(owner: Any) -> list[str]:
    return [one for one in dir(owner) if not one.startswith("_")]


def _number(node: ast.AST) -> int | None:
    """Return the value of a number in the source, or None for any other expression."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand) if (number := _number(operand)) is not None:
            return -number
    return None


def _element(kind: Any) -> Any:
    """Return the element type of a vector, or `_UNKNOWN` for any other type."""
    found = alias_kind(kind)
    return typing.get_args(kind.__origin__)[0] if found is not None and found.text == "vector" else _UNKNOWN


def _type_of(value: Any) -> Any:
    """Return the type of a constant, as far as the check distinguishes it."""
    return bool if isinstance(value, bool) else _NUMBER if isinstance(value, int) else _UNKNOWN


def _is_allowed(value: Any) -> bool:
    """Return True if a contract may use a value from outside: a constant, a type, a contract, or a copy function."""
    if isinstance(value, tuple):
        return all(map(_is_allowed, value))
    if isinstance(value, types.ModuleType):
        return value.__name__ in {"copy", "toolkit", "toolkit.embedded", "toolkit.embedded.types"}
    if isinstance(value, type):
        return issubclass(value, Struct) or hasattr(value, "definition") or value in {Table, Object, TypeArgument}
    is_constant = value is None or isinstance(value, bool | int | str | bytes | AbortCode | StructTag | float)
    home = getattr(value, "__module__", "")
    is_ours = home.startswith("toolkit.embedded.framework") or home == AbortCode.__module__
    return is_constant or is_ours or value is copy.copy or value is copy.deepcopy or alias_kind(value) is not None


# -- what contract code sees in place of builtins ------------------------------------------------------------------


class ContractRange:
    """A range whose numbers have the width of its bounds."""

    def __init__(self, *bounds: Any) -> None:
        kind = next((type(one) for one in bounds if isinstance(one, Integer) and type(one) is not Integer), Integer)
        self._range = range(*(int(kind.of(one)) for one in bounds))
        self._number = functools.partial(int.__new__, kind)

    def __iter__(self) -> Iterator[Integer]:
        return map(self._number, self._range)

    def __reversed__(self) -> Iterator[Integer]:
        return map(self._number, reversed(self._range))

    def __len__(self) -> int:
        return len(self._range)


def _list(values: Iterable[Any] = ()) -> Vector:
    found = Vector(kind=getattr(values, "kind", None))
    found.extend(values)
    return found


_REPLACED: dict[str, Any] = {
    "range": ContractRange,
    # The length of a vector, or the number of bytes of a text.
    "len": lambda value: U64(len(value.encode()) if isinstance(value, str) else len(value)),
    "sum": lambda values, start=None: sum(values, Integer(0) if start is None else start),
    "enumerate": lambda values, start=0: ((U64(index), value) for index, value in enumerate(values, start)),
    "list": _list,
    "sorted": lambda values, **options: Vector(sorted(values, **options), getattr(values, "kind", None)),
}
for _name in ("len", "sum", "enumerate", "sorted"):
    _REPLACED[_name].__qualname__ = _name  # errors of wrong arguments name the function
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
        Name of the first parameter, usually ``self``.
    typed : callable
        Returns the function that checks a value of an annotation, or None if the annotation is not a Move type.
    scope : dict
        The function's globals, to which the helpers are added.
    """

    def __init__(self, run: str, typed: Callable[[ast.expr], Any], scope: dict[str, Any]) -> None:
        self._run = run
        self._typed = typed
        self._scope = scope
        scope[_VECTOR], scope[_COPY] = Vector, named_copy

    def _call(self, name: str, argument: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [argument], []), argument)

    def _method(self, name: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
        method = ast.Attribute(ast.Name(self._run, ast.Load()), name, ast.Load())
        return ast.copy_location(ast.Call(method, arguments, []), at)

    def _charged(self, iterated: ast.expr) -> ast.expr:
        """Make a loop charge for its iterations, unless it already does."""
        attributes = (one.attr for one in ast.walk(iterated) if isinstance(one, ast.Attribute))
        if isinstance(iterated, ast.GeneratorExp) or "each" in attributes:
            return iterated
        return self._method("each", [iterated], iterated)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is not int:
            return node
        name = _NUMBER.format(node.value)
        self._scope[name] = int.__new__(Integer, node.value)
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node  # its parts are text

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.body = [self.visit(one) for one in node.body]  # patterns keep their numbers
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        return node

    def visit_For(self, node: ast.For | ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._charged(node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(self._method("charge_turn", [], node)), node))
        return node

    visit_comprehension = visit_For

    def visit_List(self, node: ast.List | ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        is_target = isinstance(node, ast.List) and not isinstance(node.ctx, ast.Load)
        return node if is_target else self._call(_VECTOR, node)

    visit_ListComp = visit_List  # noqa: N815 - the name that `ast` calls

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        # Builtins that visit a whole vector are charged as a loop is.
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
    """Return a rewritten function; if its source is not available, only the builtins are replaced."""
    function = source.function
    code = function.__code__
    scope = dict(function.__globals__)
    scope["__builtins__"] = _BUILTINS
    scope |= {name: value for name, value in _REPLACED.items() if name not in function.__globals__}
    if source.tree is not None:
        tree = copy.deepcopy(source.tree)
        # A function cannot refer to itself by its name: in a method `sum`, `sum` is the builtin.
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
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(code, scope, function.__name__, function.__defaults__, closure)
    return functools.update_wrapper(made, function)


# -- classes ---------------------------------------------------------------------------------------------------------


def compiled(contract: Any) -> Any:
    """Return a contract class; check and rewrite its methods on the first call.

    Raises
    ------
    ContractError
        If Move's compiler would reject the contract; the message lists every problem with its line.
    """
    if "move_compiled" not in vars(contract):  # looked up first, because each link of a module asks
        for cls in reversed(contract.__mro__):  # the classes that it extends, too
            is_of_node = cls.__module__.startswith("toolkit.embedded.")  # the framework or the seeded history
            if "definition" in vars(cls) and not is_of_node and "move_compiled" not in vars(cls):
                functions = {name: member for name, member in vars(cls).items() if inspect.isfunction(member)}
                sources = {name: _source(inspect.unwrap(function)) for name, function in functions.items()}
                check_contract(cls, sources)
                for name, source in sources.items():
                    setattr(cls, name, _method(cls, name, source))
                cls.move_compiled = True
        contract.move_compiled = True
    return contract


def compiled_script(function: Any) -> Any:
    """Return the function of a script after checking and rewriting it like a contract's method."""
    source = _source(function)
    problems = [] if source.tree is None else _Checker(source, None).problems
    if problems:
        raise ContractError("\n".join(text for _, text in _located(source, f"script {function.__name__}", problems)))
    return _rewritten(source, lambda _: None)


@functools.lru_cache(maxsize=64)
def _declarations(source: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Return the functions in a source by name and first line, or an empty dict if the source is not Python."""
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
    """Return the function that checks a parameter or result, or None if its annotation is not a Move type."""
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
        """Check a value; functions of the same module receive references to structs, vectors and tables."""
        if isinstance(value, Value | Vector | Table):
            return value
        return take(value)

    return shared


def _method(cls: Any, name: str, source: FunctionSource) -> Any:
    """Return a method that charges for each call and checks its arguments and results."""
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
            raise ContractError(f"{name} takes {plural(len(takes), 'argument')}, got {len(arguments)}")
        given = [one if take is None else take(one) for take, one in zip(takes, arguments, strict=True)]
        try:
            result = function(self, *given)
        except VmError as error:
            error.location = error.location or location
            self.session.failure = error
            raise
        if several is not None:
            if not isinstance(result, tuple | list) or len(result) != len(results):
                raise ContractError(f"{name} must return {plural(len(results), 'value')}, got {result!r:.80}")
            return tuple(one if take is None else take(one) for take, one in zip(results, result, strict=True))
        return result if results[0] is None else results[0](result)

    functools.update_wrapper(called, original)
    called.__wrapped__ = source.function  # type: ignore[attr-defined]  # what messages and digests show
    return called


# -- digests of Python code: two classes with one digest run the same code ---------------------------------------------


# Attributes of a contract class that its publishing sets: the digest must not depend on when it is computed.
_NOT_CODE = {"_location", "blocks", "definition", "move_compiled", "replaced"}


@functools.cache
def code_digest(contract: type) -> bytes:
    """Return a digest of the Python code of a contract class.

    The digest covers the methods and constants of the class and of the contracts that it extends, and the constants
    that they use from the file or notebook. Comments, docstrings and layout do not count. If the source is available,
    as in files and notebooks, the digest is the same on every Python version. The framework is not covered, because
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
            source = _source(inspect.unwrap(value))
            code, tree, scope = source.function.__code__, source.tree, source.scope()
            # The syntax tree of the function, and the constants outside it that it uses.
            names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)} if tree else set(code.co_names)
            used = [(name, repr(scope[name])) for name in sorted(names & scope.keys()) if _is_constant(scope[name])]
            found.append((name, [_plain_code(code) if tree is None else _plain_tree(tree), used]))
        elif isinstance(value, type) and value.__qualname__.startswith(f"{cls.__qualname__}."):
            found.append((name, _class_code(value)))
        elif not name.startswith("__") and name not in _NOT_CODE and _is_constant(value):
            found.append((name, repr(value)))
    return found


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, bool | int | float | str | bytes)


def _plain_tree(node: Any) -> Any:
    """Return a syntax tree without positions and docstrings; it is the same on every Python version."""
    if isinstance(node, list):
        return [_plain_tree(one) for one in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if name not in {"ctx", "kind", "type_comment"}}
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    plain = [(name, _plain_tree(value)) for name, value in fields.items() if value not in (None, [])]
    return [type(node).__name__, plain]


def _plain_code(code: types.CodeType) -> Any:
    """Return the compiled code of a function whose source is not available, as comparable values."""
    constants = [_plain_code(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return [sys.version_info[:2], code.co_code.hex(), code.co_names, constants]


# -- the framework, as contracts see it ------------------------------------------------------------------------------


class FrameworkModule:
    """A framework module as contracts call it: arguments and results are converted, and signers are checked."""

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
    result: Callable[[Any], Any] | None = None
    if returned not in {None, type(None)}:
        result = signer_of if is_signer(returned) else _take(returned, by_reference=False)

    def convert(method: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        for index, one in signers:
            if index < len(arguments):
                check_signer(arguments[index], one)
        found = method(*map(_plain, arguments), **{key: _plain(value) for key, value in options.items()})
        return found if result is None else result(found)

    return convert


def _plain(value: Any) -> Any:
    """Return a value in the form that the framework uses."""
    if isinstance(value, Integer):
        return int(value)
    if isinstance(value, Vector):
        return [_plain(one) for one in value]
    return str(value) if type(value) is not Address and isinstance(value, Address) else value
