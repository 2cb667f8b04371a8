"""What Move's compiler refuses, found in the source of a contract when it is published.

Types are followed as far as annotations say them: parameters, fields, results, and the names that they are assigned to.
A value of which nothing is known is checked when the contract runs.
"""

from __future__ import annotations

import ast
import copy as copying
import inspect
import types
import typing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolkit._present.messages import did_you_mean, place
from toolkit.embedded._vm_status import AbortCode
from toolkit.embedded.types import (
    Enum,
    Object,
    Struct,
    Table,
    TypeArgument,
    alias_kind,
    integer_class,
    is_signer,
    resolve_annotations,
    shown,
    u64,
)
from toolkit.errors import ContractError, InputError
from toolkit.move import StructTag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALLOWED_BUILTINS = frozenset(
    {"all", "any", "bool", "bytes", "enumerate", "isinstance", "len", "list", "max", "min", "range", "reversed"}
    | {"sorted", "str", "sum", "super", "tuple", "zip", "None", "True", "False"}
)

_NO_IMPORTS = "a contract imports nothing: name the contracts that it uses in uses=[...], import them above the class"
_NO_STATE = "a contract has no state of its own: store it in a Resource"
_READ_ONLY = "cannot be changed: borrow returns a copy; use borrow_mut to change it"

# What to write instead of builtins, whose names are separated by spaces.
_INSTEAD = {
    "print": "emit an event to report something",
    "open": "a contract has no files: store data in a Resource",
    "input": "a contract has no input: take an argument",
    "eval exec": "a contract runs no text as code",
    "dict": "use a Table, or a vector of structs",
    "set": "use a Table, or a vector",
    "float": "use integers of a smaller unit: Move has no fractions",
    "int": "write u64(...) or another type of integers",
    "abs": "write x if x >= 0 else -x",
    "pow": "multiply: Move has no powers",
    "divmod": "write // and %",
    "round": "use // to divide: Move has no fractions",
    "hash": "Python's hash differs from run to run",
    "id": "a value has no identity in Move",
    "type": "write the type",
    "getattr setattr": "name the field: Move has no reflection",
    "iter next": "write a for loop",
    "map": "write a comprehension",
    "filter": "write a comprehension with if",
}
_INSTEAD_OF_NAMES = {name: text for names, text in _INSTEAD.items() for name in names.split()}

# Why nodes of a syntax tree, whose class names are separated by spaces, are refused.
_REFUSED = {
    "Import ImportFrom": _NO_IMPORTS,
    "Try TryStar": "an abort cannot be caught in Move: check the condition before, with contains or exists",
    "Raise": "write self.abort(E_CODE): Move has no exceptions",
    "Global Nonlocal": _NO_STATE,
    "FunctionDef": "Move has no functions inside functions: write a method without a decorator",
    "AsyncFunctionDef Await": "Move has no async functions",
    "ClassDef": "structs are declared in the class of the contract",
    "Yield YieldFrom": "Move has no generators: return a vector",
    "Delete": "use pop for an element, remove for an item of a table, and move_from for a resource",
    "Dict DictComp": "Move has no dicts: use a Table, or a vector of structs",
    "Set SetComp": "Move has no sets: use a Table, or a vector",
    "Starred": "Move passes every value by itself",
}
_REFUSED_NODES = {name: text for names, text in _REFUSED.items() for name in names.split()}

# Methods of `self`; everything else must be declared in the class.
_OF_SELF = frozenset(
    {"abort", "borrow", "borrow_mut", "charge", "definition", "each", "emit", "emit_event", "exists", "move_from"}
    | {"move_to", "new_event_handle", "new_table", "own_signer", "require", "type_name", "use"}
)
_WRITES = frozenset(
    {"borrow_mut", "emit", "emit_event", "move_from", "move_to", "new_event_handle", "new_table", "own_signer"}
)
_TABLE_WRITES = frozenset({"add", "borrow_mut", "remove", "upsert"})
_VECTOR_WRITES = frozenset({"append", "assign", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"})
_OF_VALUES = frozenset(["assign", "unpack"])


@dataclass(frozen=True)
class FunctionSource:
    """A function of a contract, and its syntax tree; None if the source is not known."""

    function: Any
    tree: ast.FunctionDef | None

    def hints(self, cls: Any) -> dict[str, Any]:
        """Return the annotations by name; none if a helper has one that is not of Move."""
        try:
            return resolve_annotations(self.function, cls, self.function.__qualname__)
        except (AttributeError, InputError):
            return {}

    def evaluate(self, annotation: ast.expr, cls: Any) -> Any:
        """Return the type that an annotation inside the function names, None if it is not known."""
        named = types.FunctionType((lambda: None).__code__, self.function.__globals__)
        named.__annotations__ = {"value": ast.unparse(annotation)}
        named.__module__ = self.function.__module__
        try:
            return resolve_annotations(named, cls, self.function.__qualname__)["value"]
        except (AttributeError, InputError):
            return None

    def scope(self) -> dict[str, Any]:
        """Return the names outside the function with their values."""
        found = dict(self.function.__globals__)
        for name, cell in zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        return found


@dataclass
class _Found:
    """What was found in a function: problems with their lines, places that write, methods of `self` that it calls."""

    problems: list[tuple[int, str]] = field(default_factory=list)
    writes: list[tuple[int, str]] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)


def check_contract(cls: Any, sources: Mapping[str, FunctionSource]) -> None:
    """Check the methods of a contract.

    Raises
    ------
    ContractError
        With everything that Move's compiler would refuse, a line each.
    """
    messages: list[tuple[str, int, str]] = []
    found = {name: _Checker(source, cls).run() for name, source in sources.items() if source.tree is not None}
    for name, one in found.items():
        problems = list(one.problems)
        if getattr(getattr(vars(cls)[name], "move_mark", None), "is_view", False):
            problems += [(line, f"a view only reads, but {what}") for line, what in _writes_of(name, found)]
        file = sources[name].function.__code__.co_filename
        messages += [(file, line, f"{cls.__name__}.{name}: {problem}") for line, problem in problems]
    _raise(messages)


def check_function(source: FunctionSource) -> None:
    """Check the function of a script, as `check_contract` does."""
    if source.tree is None:
        return
    file, name = source.function.__code__.co_filename, source.function.__name__
    _raise([(file, line, f"script {name}: {problem}") for line, problem in _Checker(source, None).run().problems])


def _raise(messages: list[tuple[str, int, str]]) -> None:
    lines = dict.fromkeys(f"{text}{place(file, line)}" for file, line, text in sorted(messages, key=lambda one: one[1]))
    if lines:
        raise ContractError("\n".join(lines))


def _writes_of(name: str, found: Mapping[str, _Found], seen: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """Yield the lines of a function that write, or that call a method that does."""
    one = found.get(name)
    if one is None or name in seen:
        return
    yield from one.writes
    for method, line in one.calls.items():
        if next(_writes_of(method, found, seen | {name}), None) is not None:
            yield line, f"self.{method} writes"


class _Unknown:
    """The type of a value of which nothing is known."""

    def __repr__(self) -> str:
        return "unknown"


_UNKNOWN = _Unknown()
_NUMBER = "a number without a width"


class _Checker:
    """Follows the types through a function, statement by statement."""

    def __init__(self, source: FunctionSource, cls: Any) -> None:
        self._source = source
        self._cls = cls
        self.tree: ast.FunctionDef = typing.cast("ast.FunctionDef", source.tree)
        self.found = _Found()
        self._scope = source.scope()
        hints = source.hints(cls) if cls is not None else {}
        names = [one.arg for one in self.tree.args.args]
        self._run = names[0]
        self._types: dict[str, Any] = {name: _known(hints.get(name)) for name in names}
        self._returned = _known(hints.get("return"))
        self._read_only: set[str] = set()
        self._opened: set[ast.expr] = set()  # calls of borrow_mut in a with statement
        self._locals = set(names) | {
            one.id for one in ast.walk(self.tree) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
        }
        self._locals |= {
            name
            for one in ast.walk(self.tree)
            for name in (getattr(one, "name", None), getattr(one, "rest", None), getattr(one, "arg", None))
            if isinstance(one, ast.MatchAs | ast.MatchStar | ast.MatchMapping | ast.arg) and name
        }

    def run(self) -> _Found:
        """Check the function and return what was found."""
        self._block(self.tree.body)
        return self.found

    def _problem(self, node: ast.AST, text: str) -> None:
        self.found.problems.append((getattr(node, "lineno", self.tree.lineno), text))

    # -- statements ----------------------------------------------------------------------------------------

    def _block(self, statements: list[ast.stmt]) -> None:
        for one in statements:
            self._statement(one)

    def _statement(self, node: ast.stmt) -> None:  # noqa: C901, PLR0912 - one per kind
        if isinstance(node, ast.Delete) and all(isinstance(one, ast.Name) for one in node.targets):
            return  # a parameter that is not used
        if (refused := _REFUSED_NODES.get(type(node).__name__)) is not None:
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
                    self._check_same(node, self._types[name], self._type(value), f"{name} is")
            case ast.AugAssign(target=target, op=operation, value=value):
                loaded = copying.copy(target)
                loaded.ctx = ast.Load()
                whole = ast.copy_location(ast.BinOp(loaded, operation, value), node)
                self._assign(target, self._type(whole), value, changes=True)
            case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
                self._bind(target, _element(self._type(iterated)), iterated)
                self._block([*body, *orelse])
            case ast.While(test=test, body=body, orelse=orelse) | ast.If(test=test, body=body, orelse=orelse):
                self._condition(test)
                self._block([*body, *orelse])
            case ast.With(items=items, body=body):
                for one in items:
                    self._with(one)
                self._block(body)
            case ast.Return(value=value):
                if value is not None:
                    self._check_same(value, self._returned, self._type(value), f"{self.tree.name} returns")
            case ast.Assert(test=test, msg=msg):
                self._condition(test)
                if msg is not None:
                    self._type(msg)
            case ast.Match(subject=subject, cases=cases):
                self._type(subject)
                for case in cases:
                    self._block(case.body)
            case ast.Expr(value=value):
                if not isinstance(value, ast.Constant):
                    self._type(value)
            case _:
                pass  # pass, break and continue

    def _with(self, item: ast.withitem) -> None:
        call = item.context_expr
        self._opened.add(call)
        kind = self._type(call)
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "borrow_mut"):
            self._problem(call, "only borrow_mut is used in a with statement")
        elif isinstance(item.optional_vars, ast.Name):
            self._types[item.optional_vars.id] = kind
            self._read_only.discard(item.optional_vars.id)

    def _assign(self, target: ast.expr, kind: Any, value: ast.expr, *, changes: bool = False) -> None:
        if isinstance(target, ast.Name):
            if changes and target.id in self._read_only and _element(kind) is not _UNKNOWN:
                self._problem(target, f"{target.id} {_READ_ONLY}")
            self._bind(target, kind, value, is_change=changes)
        elif isinstance(target, ast.Tuple):
            for one in target.elts:
                self._assign(one, _UNKNOWN, value)
        else:
            if isinstance(target, ast.Attribute) and self._is_self(target.value):
                self._problem(target, f"self.{target.attr} cannot be set: {_NO_STATE}")
                return
            expected = self._type(target)
            if self._is_read_only(target):
                self._problem(target, f"{ast.unparse(target)} {_READ_ONLY}")
            elif isinstance(self._static(_root(target)), type):
                self._problem(target, f"{ast.unparse(target)} cannot be set: a contract has no state but its resources")
            self._check_same(target, expected, kind, f"{ast.unparse(target)} is")

    def _bind(self, target: ast.expr, kind: Any, value: ast.expr, *, is_change: bool = False) -> None:
        if isinstance(target, ast.Name):
            known = self._types.get(target.id, _UNKNOWN)
            # A number without a width keeps what is known of the name; a name with two types is not followed.
            self._types[target.id] = known if kind is _NUMBER and target.id in self._types else kind
            if not is_change:
                (self._read_only.add if self._is_read_only(value) else self._read_only.discard)(target.id)
        elif isinstance(target, ast.Tuple):
            for one in target.elts:
                self._bind(one, _UNKNOWN, value)

    # -- expressions ---------------------------------------------------------------------------------------

    def _type(self, node: ast.expr) -> Any:  # noqa: C901, PLR0911, PLR0912 - one per kind
        """Check an expression and return its type, `_UNKNOWN` if it is not known."""
        if (refused := _REFUSED_NODES.get(type(node).__name__)) is not None:
            self._problem(node, refused)
            return _UNKNOWN
        match node:
            case ast.Constant(value=value):
                return self._constant(node, value)
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
                if isinstance(operation, ast.Invert):
                    self._problem(node, "Move has no operator ~: write x ^ MASK")
                cls = integer_class(kind)
                if isinstance(operation, ast.USub) and cls is not None and not cls.low:
                    self._problem(node, f"{cls.move_name} has no negative values: {ast.unparse(node)}")
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
            case ast.ListComp() | ast.GeneratorExp():
                for generator in node.generators:
                    self._bind(generator.target, _element(self._type(generator.iter)), generator.iter)
                    for test in generator.ifs:
                        self._condition(test)
                self._type(node.elt)
                return _UNKNOWN
            case ast.Lambda(body=body):
                self._type(body)
                return _UNKNOWN
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._type(child)
                return _UNKNOWN

    def _constant(self, node: ast.Constant, value: Any) -> Any:
        if isinstance(value, float | complex):
            self._problem(node, f"Move has no fractions: {value}; use integers of a smaller unit, such as octas")
        return bool if isinstance(value, bool) else _NUMBER if isinstance(value, int) else _UNKNOWN

    def _check_name(self, node: ast.Name) -> None:
        name = node.id
        if name in self._locals or (name in ALLOWED_BUILTINS and name not in self._scope):
            return
        if name not in self._scope:
            known = [*self._locals, *ALLOWED_BUILTINS, *(one for one in self._scope if not one.startswith("_"))]
            instead = _INSTEAD_OF_NAMES.get(name)
            what = f"Move has no {name}" if instead else f"{name} is not defined"
            instead = instead or did_you_mean(name, known) or "declare it in the contract"
            self._problem(node, f"{what}; {instead}")
        elif not _is_allowed(self._scope[name]):
            value = self._scope[name]
            if isinstance(value, types.ModuleType):
                problem = f"a contract cannot use {name}: what it does is not part of the ledger"
            elif callable(value):
                problem = f"{name} is not part of the contract: write it as a method without a decorator"
            else:
                problem = f"{name} is a {type(value).__name__}: a contract reads constants only; store it in a Resource"
            self._problem(node, problem)

    def _attribute(self, node: ast.Attribute) -> Any:
        name = node.attr
        if self._is_self(node.value):
            return self._of_self(node)
        static = self._static(node.value)
        if static is not None:
            self._type(node.value)
            is_module = isinstance(static, types.ModuleType) and _is_allowed(static)  # others are reported by name
            if is_module and not _is_allowed(getattr(static, name, None)):
                self._problem(node, f"a contract cannot use {ast.unparse(node)}: it is not part of the ledger")
            elif not hasattr(static, name):
                known = [one for one in dir(static) if not one.startswith("_")]
                self._problem(
                    node,
                    f"{ast.unparse(node)} does not exist; {did_you_mean(name, known) or 'declare it in the contract'}",
                )
            return _type_of(getattr(static, name, None))
        kind = self._type(node.value)
        if name.startswith(("__", "_", "move_")):
            self._problem(node, f"{ast.unparse(node)} is not a field: Move has no reflection")
        if (
            isinstance(kind, type)
            and issubclass(kind, Struct)
            and kind.move_declared() is kind
            and not issubclass(kind, Enum)
        ):
            fields = kind.move_fields()
            if name not in fields and name not in _OF_VALUES and not hasattr(kind, name):
                hint = did_you_mean(name, fields) or f"its fields are {', '.join(fields) or 'none'}"
                self._problem(node, f"{kind.__name__} has no field {name}; {hint}")
            return fields.get(name, _UNKNOWN)
        if typing.get_origin(kind) is Table and not hasattr(Table, name):
            self._problem(node, f"a table has no {name}; {did_you_mean(name, dir(Table)) or 'use contains and borrow'}")
        return _UNKNOWN

    def _of_self(self, node: ast.Attribute) -> Any:
        name = node.attr
        members = {} if self._cls is None else {one for one in dir(self._cls) if not hasattr(object, one)}
        if name in _OF_SELF or (name in members and name not in {"session", "blocks"}):
            return _type_of(getattr(self._cls, name, None))
        known = [*_OF_SELF, *(one for one in members if not one.startswith(("move_", "_")))]
        hint = did_you_mean(name, known) or "declare it in the class of the contract"
        self._problem(node, f"self.{name} does not exist; {hint}")
        return _UNKNOWN

    def _call(self, node: ast.Call) -> Any:
        given = [self._type(one) for one in node.args]
        for one in node.keywords:
            self._type(one.value)
        function = node.func
        static = self._static(function)
        if isinstance(static, type) and issubclass(static, Struct):
            self._type(function)
            return self._construction(node, static)
        if integer_class(static) is not None:
            return static
        if isinstance(function, ast.Name):
            self._check_name(function)
            return u64 if function.id == "len" and "len" not in self._scope else _UNKNOWN
        if not isinstance(function, ast.Attribute):
            self._type(function)
            return _UNKNOWN
        self._attribute(function)
        if function.attr == "borrow_mut" and node not in self._opened:
            self._problem(node, f"write: with {ast.unparse(node)} as value: and change it inside the block")
        if self._is_self(function.value):
            return self._method(node, function.attr, given)
        return self._method_of(node, function)

    def _construction(self, node: ast.Call, struct: type[Struct]) -> Any:
        if issubclass(struct, Enum) and struct.move_declared() is struct:
            return struct
        expected = struct.move_fields()
        for one in node.keywords:
            if one.arg is None:
                return struct.move_declared()
            if one.arg not in expected:
                hint = did_you_mean(one.arg, expected) or f"its fields are {', '.join(expected) or 'none'}"
                self._problem(one.value, f"{struct.__name__} has no field {one.arg}; {hint}")
                continue
            self._check_same(one.value, expected[one.arg], self._quiet(one.value), f"{struct.__name__}.{one.arg} is")
        missing = [name for name in expected if name not in {one.arg for one in node.keywords}]
        if node.args:
            fields = ", ".join(f"{name}=..." for name in expected)
            self._problem(node, f"fields are passed by name: {struct.__name__}({fields})")
        elif missing:
            self._problem(node, f"{struct.__name__}(...) needs {', '.join(missing)} as well")
        return struct.move_declared()

    def _method(self, node: ast.Call, name: str, given: list[Any]) -> Any:  # noqa: PLR0911 - one per kind
        """Return the type of a call of a method of `self`."""
        if name in _WRITES:
            self.found.writes.append((node.lineno, f"self.{name} writes"))
        first = self._static(node.args[0]) if node.args else None
        if name in {"borrow", "borrow_mut", "move_from", "exists"}:
            return self._resource(node, name, first)
        if name in {"move_to", "emit", "emit_event"}:
            self._check_abilities(node, name, given)
            return _UNKNOWN
        if name == "require" and node.args:
            self._check_condition(node.args[0], given[0])
            return _UNKNOWN
        if name == "each" and given:
            return given[0]
        if name == "use":
            return _UNKNOWN
        function = _function_of(self._cls, name)
        if not inspect.isfunction(function) or name in _OF_SELF:
            return _UNKNOWN
        self.found.calls.setdefault(name, node.lineno)
        return self._called(node, function, given, f"self.{name}")

    def _called(self, node: ast.Call, function: Any, given: list[Any], what: str) -> Any:
        parameters = list(inspect.signature(function).parameters)[1:]
        hints = FunctionSource(function, None).hints(self._cls)
        if node.keywords:
            self._problem(node, f"{what}: Move passes arguments by position")
        elif len(given) != len(parameters):
            self._problem(node, f"{what} takes {len(parameters)} arguments, got {len(given)}")
        for one, name, kind in zip(node.args, parameters, given, strict=False):
            expected = _known(hints.get(name))
            self._check_same(one, expected, kind, f"{name} of {what} is")
            if is_signer(expected) and kind is not _UNKNOWN and not is_signer(kind):
                self._problem(one, f"{name} of {what} is a signer, got {shown(kind)}: an address cannot sign")
        return _known(hints.get("return"))

    def _resource(self, node: ast.Call, name: str, resource: Any) -> Any:
        if not (isinstance(resource, type) and issubclass(resource, Struct)):
            return _UNKNOWN
        if "key" not in resource.move_abilities:
            self._problem(
                node,
                f"{resource.__name__} lacks the ability key, so it is not stored under an address: write "
                f"class {resource.__name__}(Resource)",
            )
        return bool if name == "exists" else resource

    def _check_abilities(self, node: ast.Call, name: str, given: list[Any]) -> None:
        place_of_value = 0 if name == "emit" else 1
        kind = given[place_of_value] if len(given) > place_of_value else _UNKNOWN
        if name == "move_to" and given and given[0] is not _UNKNOWN and not is_signer(given[0]):
            self._problem(node, f"move_to takes the signer of the account, got {shown(given[0])}")
        elif name == "move_to" and node.args and isinstance(node.args[0], ast.Constant):
            self._problem(node, f"move_to takes the signer of the account, got {ast.unparse(node.args[0])}")
        if not (isinstance(kind, type) and issubclass(kind, Struct)):
            return
        wanted = ("key",) if name == "move_to" else ("drop", "store")
        missing = [one for one in wanted if one not in kind.move_abilities]
        if missing:
            base = "Resource" if name == "move_to" else "Event"
            self._problem(
                node,
                f"self.{name}: {kind.__name__} lacks the ability {missing[0]}: write class {kind.__name__}({base})",
            )

    def _method_of(self, node: ast.Call, function: ast.Attribute) -> Any:
        """Return the type of a call of a method of a value: a table, a vector, another module."""
        kind, name = self._quiet(function.value), function.attr
        # Items of a table are stored apart, so a table can be changed through what is borrowed read-only.
        if name in _VECTOR_WRITES and typing.get_origin(kind) is not Table and self._is_read_only(function.value):
            self._problem(node, f"{ast.unparse(function.value)} {_READ_ONLY}")
        if typing.get_origin(kind) is Table:
            _, value = typing.get_args(kind)
            if name in _TABLE_WRITES:
                self.found.writes.append((node.lineno, f"{ast.unparse(function)} writes"))
            return bool if name == "contains" else value if name not in {"add", "upsert"} else _UNKNOWN
        if alias_kind(kind) is not None and name == "pop":
            return _element(kind)
        used = function.value
        if (
            isinstance(used, ast.Call)
            and isinstance(used.func, ast.Attribute)
            and used.func.attr == "use"
            and used.args
        ):
            return self._of_module(node, self._static(used.args[0]), name)
        return _UNKNOWN

    def _of_module(self, node: ast.Call, module: Any, name: str) -> Any:
        member = _function_of(module, name)
        if module is not None and member is None:
            known = [one for one in dir(module) if not one.startswith("_")]
            hint = did_you_mean(name, known) or "see its documentation"
            self._problem(node, f"{module.__name__} has no function {name}; {hint}")
        if not inspect.isfunction(member):
            return _UNKNOWN
        return _known(FunctionSource(member, None).hints(module).get("return"))

    def _subscript(self, node: ast.Subscript, value: ast.expr, index: ast.expr) -> Any:
        if self._static(node) is not None or isinstance(self._static(value), type):
            return _UNKNOWN
        kind = self._type(value)
        if typing.get_origin(kind) is Table:
            self._problem(node, "a table is not indexed: use contains, borrow, add, upsert and remove with a key")
        if isinstance(index, ast.Slice):
            for one in (index.lower, index.upper, index.step):
                if one is not None:
                    self._type(one)
            return kind
        self._type(index)
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
            of = ast.unparse(value)
            self._problem(node, f"Move has no negative indices: write {of}[len({of}) - {ast.unparse(index.operand)}]")
        return _element(kind)

    def _operation(self, node: ast.BinOp) -> Any:
        left, right = self._type(node.left), self._type(node.right)
        if isinstance(node.op, ast.Div):
            self._problem(node, "Move divides integers without a fraction: write // in place of /")
            return _UNKNOWN
        if isinstance(node.op, ast.Pow) and not (
            isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
        ):
            self._problem(node, "Move has no powers: multiply")
        if left is bool or right is bool:
            self._problem(node, f"a bool is not a number: {ast.unparse(node)}")
            return _UNKNOWN
        if isinstance(node.op, ast.LShift | ast.RShift):
            return left
        self._check_operands(node, _symbol(ast.BinOp(_NAME, node.op, _NAME)), left, right)
        return left if integer_class(left) is not None else right if left in (_NUMBER, _UNKNOWN) else left

    def _check_operands(self, node: ast.AST, symbol: str, left: Any, right: Any) -> None:
        one, other = integer_class(left), integer_class(right)
        if one is not None and other is not None and one is not other:
            wider = one if one.bits >= other.bits else other
            what = f"{one.move_name} {symbol} {other.move_name}"
            self._problem(node, f"{what}: both must have one type: write {wider.move_name}(...) to cast")

    def _comparison(self, node: ast.AST, left: ast.expr, operations: list[ast.cmpop], others: list[ast.expr]) -> Any:
        kinds = [self._type(one) for one in (left, *others)]
        for place_of, operation in enumerate(operations):
            if isinstance(operation, ast.Is | ast.IsNot):
                other = others[place_of]
                if not (isinstance(other, ast.Constant) and other.value is None):
                    self._problem(node, "values have no identity in Move: write == in place of is")
            elif not isinstance(operation, ast.In | ast.NotIn):
                symbol = _symbol(ast.Compare(_NAME, [operation], [_NAME]))
                self._check_operands(node, symbol, kinds[place_of], kinds[place_of + 1])
        return bool

    def _condition(self, node: ast.expr) -> None:
        self._check_condition(node, self._type(node))

    def _check_condition(self, node: ast.expr, kind: Any) -> None:
        text, found = ast.unparse(node), alias_kind(kind)
        name = "" if found is None else found.name or found.text
        if kind is _NUMBER or integer_class(kind) is not None:
            self._problem(node, f"a condition must be a bool: write {text} != 0")
        elif kind is bytes or name in {"vector", "String"}:
            self._problem(node, f"a condition must be a bool: write len({text}) > 0")
        elif name == "Option":
            self._problem(node, f"a condition must be a bool: write {text} is not None")

    def _check_same(self, node: ast.AST, expected: Any, kind: Any, what: str) -> None:
        """Report a value of another integer type, or a bool for a number; other types are checked when it runs."""
        wanted, got = integer_class(expected), integer_class(kind)
        number = _number(node)
        if wanted is not None and number is not None and not wanted.low <= number <= wanted.high:
            self._problem(node, f"{what} {wanted.move_name}, {wanted.low} to {wanted.high}, got {number}")
        if wanted is not None and (kind is bool or (got is not None and got is not wanted)):
            cast = "" if kind is bool else f": write {wanted.move_name}(...) to cast it"
            self._problem(node, f"{what} {wanted.move_name}, got {shown(kind)}{cast}")
        elif expected is bool and (got is not None or kind is _NUMBER):
            self._problem(node, f"{what} bool, got {'a number' if kind is _NUMBER else shown(kind)}: write != 0")

    # -- places --------------------------------------------------------------------------------------------

    def _quiet(self, node: ast.expr) -> Any:
        """Return the type of an expression that has been checked."""
        before = len(self.found.problems), len(self.found.writes)
        kind = self._type(node)
        del self.found.problems[before[0] :], self.found.writes[before[1] :]
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
        """Return the class, contract or constant that an expression names, None for a value of the run."""
        match node:
            case ast.Name(id=name) if name not in self._locals:
                return self._scope.get(name)
            case ast.Attribute(value=value, attr=name) if self._is_self(value):
                found = getattr(self._cls, name, None)
                return found if isinstance(found, type) else None
            case ast.Attribute(value=value, attr=name):
                owner = self._static(value)
                return None if owner is None else getattr(owner, name, None)
            case ast.Subscript(value=value):
                owner = self._static(value)
                return owner if isinstance(owner, type) else None
        return None


_NAME = ast.Name("x", ast.Load())


def _symbol(operation: ast.expr) -> str:
    """Return how an operation on two names is written."""
    return ast.unparse(operation).split()[1]


def _known(annotation: Any) -> Any:
    """Return an annotation that is a Move type, `_UNKNOWN` for others, such as those of helpers."""
    is_struct = isinstance(annotation, type) and issubclass(annotation, Struct)
    is_move = annotation is bool or annotation is bytes or is_struct or alias_kind(annotation) is not None
    return annotation if is_move or typing.get_origin(annotation) is Table else _UNKNOWN


def _function_of(contract: Any, name: str) -> Any:
    """Return a member of a contract without its wrapper, None if it does not have it."""
    member: Any = getattr(contract, name, None)
    return inspect.unwrap(member) if inspect.isfunction(member) else member


def _number(node: ast.AST) -> int | None:
    """Return the number that an expression of the source is, None for other expressions."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _number(operand)
            return None if number is None else -number
    return None


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def _element(kind: Any) -> Any:
    """Return the type of the elements of a vector."""
    found = alias_kind(kind)
    if found is None or found.text != "vector":
        return _UNKNOWN
    return typing.get_args(kind.__origin__)[0]


def _type_of(value: Any) -> Any:
    """Return the type of a constant."""
    if isinstance(value, bool):
        return bool
    return _NUMBER if isinstance(value, int) else _UNKNOWN


def _is_allowed(value: Any) -> bool:
    """Return whether a contract may use a value from outside: constants, types, contracts, and copying."""
    if isinstance(value, tuple):
        return all(map(_is_allowed, value))
    if value is None or isinstance(value, bool | int | str | bytes | AbortCode | StructTag | float):
        return True
    if isinstance(value, types.ModuleType):
        return value.__name__ in {"copy", "toolkit", "toolkit.embedded", "toolkit.embedded.types"}
    if isinstance(value, type):
        return issubclass(value, Struct) or hasattr(value, "definition") or value in {Table, Object, TypeArgument}
    home = getattr(value, "__module__", "")
    is_ours = home.startswith("toolkit.embedded.framework") or home == AbortCode.__module__
    return is_ours or value is copying.copy or value is copying.deepcopy or alias_kind(value) is not None
