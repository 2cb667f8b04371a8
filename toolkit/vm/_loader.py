"""Modules of the state, each loaded and paid for once per transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.vm import _features as flags
from toolkit.vm import _types as t
from toolkit.vm._compile import CompiledFunction, compile_function
from toolkit.vm._errors import MoveError
from toolkit.vm._layouts import Layouts
from toolkit.vm._module import Module, read_module
from toolkit.vm._state import module_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.vm._code import FunctionDefinition, StructDefinition
    from toolkit.vm._environment import Environment
    from toolkit.vm._gas import Meter


MAX_TAG_COST = 5_000  # of nodes and of the bytes of addresses and names
_TAG_NODE = 100


class Loader:
    """Finds modules, functions and structs by name.

    Parameters
    ----------
    environment : Environment
        With the state before the transaction: code that it publishes does not run in it.
    staged : sequence of Module, optional
        Modules to use instead of those of the state.

    Attributes
    ----------
    visited : set of ModuleId
        Modules that have been paid for.
    """

    def __init__(self, environment: Environment, staged: Sequence[Module] = ()) -> None:
        self.environment = environment
        self.schedule = environment.schedule
        self.features = environment.features
        self.lazy = flags.LAZY_LOADING in self.features
        self.visited: set[t.ModuleId] = set()
        self.layouts = Layouts(self.schedule.layouts, self.struct)
        self._modules = {module.id: module for module in staged}
        self._tag_costs: dict[t.Type, int] = {}

    def staged(self, modules: Sequence[Module]) -> Loader:
        """Return a loader that also has modules that are being published."""
        loader = Loader(self.environment, modules)
        loader.visited = self.visited
        return loader

    def find(self, module: t.ModuleId) -> Module | None:
        """Return a module; None if it does not exist."""
        found = self._modules.get(module)
        if found is None:
            stored = self.environment.base.get(module_key(module))
            if stored is None:
                return None
            try:
                found = read_module(stored[0])
            except MoveError as error:
                raise MoveError("UNEXPECTED_DESERIALIZATION_ERROR", error.message) from None
            self._modules[module] = found
        return found

    def module(self, module: t.ModuleId) -> Module:
        """Return a module.

        Raises
        ------
        MoveError
            If it does not exist.
        """
        found = self.find(module)
        if found is None:
            where = f"{module.address.hex()}::{module.name}"
            raise MoveError("LINKER_ERROR", f"Linker Error: Module {where} doesn't exist")
        return found

    def visit(self, module: t.ModuleId, meter: Meter) -> None:
        """Charge the loading of a module at its first use."""
        if module.special or module in self.visited:
            return
        size = self.module(module).size
        self.visited.add(module)
        meter.charge_module(module, size, "old")

    def visit_lazily(self, modules: Iterable[t.ModuleId], meter: Meter) -> None:
        """Charge the loading of modules, unless all have been charged at the start."""
        if self.lazy:
            for module in modules:
                self.visit(module, meter)

    def load(self, modules: Sequence[t.ModuleId], meter: Meter) -> None:
        """Charge the loading of modules: with all that they depend on, unless loading is lazy."""
        if self.lazy:
            self.visit_lazily(modules, meter)
        else:
            self.visit_all(modules, meter)

    def visit_all(self, roots: Sequence[t.ModuleId], meter: Meter) -> None:
        """Charge modules and all that they depend on: each before its dependencies, and these before its friends.

        The order counts: it is that of the log, and decides at which module gas runs out.
        """
        stack = list(reversed(roots))
        while stack:
            module = stack.pop()
            if module.special or module in self.visited:
                continue
            self.visit(module, meter)
            found = self.module(module)
            stack += reversed((*found.dependencies, *found.friends))

    def function(self, module: t.ModuleId, name: str) -> FunctionDefinition:
        """Return a function.

        Raises
        ------
        MoveError
            If the module or the function does not exist.
        """
        found = self.module(module).functions.get(name)
        if found is None:
            message = f"Function {module}::{name} does not exist"
            raise MoveError("FUNCTION_RESOLUTION_FAILURE", message)
        return found

    def struct(self, kind: t.Struct) -> StructDefinition:
        """Return the definition of a struct.

        Raises
        ------
        MoveError
            If the module or the struct does not exist.
        """
        found = self.module(kind.module).structs.get(kind.name)
        if found is None:
            message = f"Struct {kind.module}::{kind.name} does not exist"
            raise MoveError("TYPE_RESOLUTION_FAILURE", message)
        return found

    def named_abort(self, module: t.ModuleId, code: int) -> tuple[str, str] | None:
        """Return the name and the description that a module gives an abort code, if it can be read."""
        try:
            found = self.find(module)
        except MoveError:
            return None
        return None if found is None else found.named_abort(code)

    def code(self, function: FunctionDefinition, types: tuple[t.Type, ...]) -> CompiledFunction:
        """Return a function as it runs."""
        return compile_function(function, types, self.schedule)

    def check_tag(self, kind: t.Type) -> None:
        """Check that a type is small enough to become a type tag.

        Raises
        ------
        MoveError
            If it is too large.
        """
        if kind not in self._tag_costs:
            self._tag_cost(kind, 0)

    def _tag_cost(self, kind: t.Type, spent: int) -> int:
        """Count the cost of a tag from what has been spent on; a struct that was seen before is counted in one step."""

        def spend(amount: int) -> None:
            nonlocal spent
            spent += amount
            if spent > MAX_TAG_COST:
                message = f"Exceeded maximum type tag limit of {MAX_TAG_COST} when charging {amount}"
                raise MoveError("TYPE_TAG_LIMIT_EXCEEDED", message)

        spend(_TAG_NODE)
        if kind in self._tag_costs:
            spend(self._tag_costs[kind])
            return spent
        before = spent
        for part in kind.parts:
            spent = self._tag_cost(part, spent)
        if isinstance(kind, t.Struct):
            spend(32 + len(kind.module.name) + len(kind.name))
            self._tag_costs[kind] = spent - before
        return spent

    def abilities(self, kind: t.Type) -> int:
        """Return the abilities of values of a type."""
        return t.abilities(kind, self.struct)

    def check_constraints(self, types: Sequence[t.Type], constraints: Sequence[int]) -> None:
        """Check type arguments of a caller against the constraints of the type parameters, also inside them.

        Raises
        ------
        MoveError
            If there are too few or too many, or one lacks an ability.
        """
        if len(types) != len(constraints):
            raise MoveError("NUMBER_OF_TYPE_ARGUMENTS_MISMATCH")
        for kind, constraint in zip(types, constraints, strict=True):
            if isinstance(kind, t.Struct):
                definition = self.struct(kind)
                self.check_constraints(kind.arguments, [one.abilities for one in definition.type_parameters])
            elif isinstance(kind, t.Vector):
                self.check_constraints((kind.element,), (0,))
            if constraint & ~self.abilities(kind):
                raise MoveError("CONSTRAINT_NOT_SATISFIED")
