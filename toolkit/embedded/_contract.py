"""Contracts as Python classes: modules, entry and view functions, and the ABI derived from them.

A contract declares its types in annotations and accesses the ledger through the methods of `Module`. Every access is
charged. Everything that a contract stores is encoded to bytes, so no Python object outlives the call.

The bytecode of a module consists of metadata, which names its error constants as compilers do, and a digest of its ABI
and its declared revision, extended to a modelled size. It does not depend on Python's code objects and is therefore
the same on every Python version.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import re
import typing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from toolkit._present.messages import declared_at, running_at
from toolkit.embedded._code import DeclaredStructs, crossing_type, struct_constraints, wrong_argument, wrong_field
from toolkit.embedded._compiler import NO_STATE, ContractRange, FrameworkModule, code_digest
from toolkit.embedded._definitions import MAGIC, PRIVATE, Definition, Function, FunctionMark, modelled_bytecode
from toolkit.embedded._meter import CONTRACT_BLOCKS, FRAMEWORK_BLOCKS
from toolkit.embedded._vm_status import AbortCode, MoveAbort
from toolkit.embedded.types import (
    ABILITIES,
    Enum,
    Event,
    Struct,
    Table,
    TypeArgument,
    check_signer,
    is_framework,
    is_signer,
    is_struct,
    move_type,
    parse_abilities,
    resolve_annotations,
    signer_of,
)
from toolkit.errors import ContractError, InputError
from toolkit.move import decode_module_abi, parse_address, parse_type_tag
from toolkit.move._ids import check_identifier, wire_address
from toolkit.move._type_tags import wire_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from toolkit.embedded._session import Session
    from toolkit.embedded._values import MoveType
    from toolkit.embedded.types import signer


_F = TypeVar("_F", bound="Callable[..., Any]")
_M = TypeVar("_M", bound="Module")
_R = TypeVar("_R", bound="Struct")
_E = TypeVar("_E")
_T = TypeVar("_T")

# An abort code that Move's `error` module makes has a category above the 16 bits of its reason, and at most 24 bits.
_REASON_BITS = 16
_ABORT_CODE_BITS = 24
_SCRIPT_BYTES = 240
# By bytecode.
_SCRIPTS: dict[bytes, StandInScript] = {}

UNSPECIFIED_ABORT_CODE = 0xCA26CBD9BE0B0000
"""Abort code of a Move ``assert!`` without a code: ``make_abort_code(0)`` in the compiler's ``well_known.rs``."""

next_revision: ContextVar[Callable[[str, str], int] | None] = ContextVar("next_revision", default=None)
"""Returns the revision for a module's address and name if the class statement has none; set by ``%%contract``."""


def _marked(function: _F, **changes: Any) -> _F:
    """Mark a method and charge for each call; further decorators update the first mark."""
    mark: FunctionMark | None = getattr(function, "move_mark", None)
    if mark is not None:
        function.move_mark = replace(mark, **changes)  # type: ignore[attr-defined]  # read by `_define`
        return function

    @functools.wraps(function)
    def called(self: Module, *arguments: Any) -> Any:
        meter = self.session.meter
        meter.charge_code(self.blocks)
        meter.charge("instr.call.base")
        meter.charge("instr.call.per_arg", len(arguments))
        return function(self, *arguments)

    called.move_mark = FunctionMark(**changes)  # type: ignore[attr-defined]  # read by `_define`
    return called  # type: ignore[return-value]  # same signature as the method it wraps


def _without_brackets(decorator: _F) -> _F:
    """Return a decorator that raises InputError if it is written with parentheses, as in ``@view()``."""

    @functools.wraps(decorator)
    def checked(*arguments: Any, **options: Any) -> Any:
        if options or len(arguments) != 1 or not inspect.isfunction(arguments[0]):
            raise InputError(f"write @{decorator.__name__} without parentheses, on the line above a function")
        return decorator(arguments[0])

    return typing.cast("_F", checked)


@_without_brackets
def entry(function: _F) -> _F:
    """Mark a method as an entry function: transactions may call it.

    It is public unless it is also marked with `friend` or `private`.

    Examples
    --------
    >>> from toolkit.embedded import Module, entry, signer, u64
    >>> class Shop(Module, address="0x5407"):
    ...     @entry
    ...     def pay(self, account: signer, amount: u64) -> None: ...
    >>> Shop.definition.functions["pay"].to_abi()["params"]
    ['&signer', 'u64']
    """
    return _marked(function, is_entry=True)


@_without_brackets
def view(function: _F) -> _F:
    """Mark a method as a public view function: it reads the ledger and returns values.

    Examples
    --------
    >>> from toolkit.embedded import Module, u64, view
    >>> class Shop(Module, address="0x5407"):
    ...     @view
    ...     def price(self) -> u64:
    ...         return 3
    >>> Shop.definition.functions["price"].to_abi()["return"]
    ['u64']
    """
    return _marked(function, is_view=True)


@_without_brackets
def public(function: _F) -> _F:
    """Mark a method as a public function: other modules may call it through `Module.use`.

    Examples
    --------
    >>> from toolkit.embedded import Module, public, u64
    >>> class Shop(Module, address="0x5407"):
    ...     @public
    ...     def price(self) -> u64:
    ...         return 3
    >>> Shop.definition.functions["price"].to_abi()["visibility"]
    'public'
    """
    return _marked(function, visibility="public")


@_without_brackets
def friend(function: _F) -> _F:
    """Mark a method as a friend function: the friends of its module may call it through `Module.use`.

    With `entry`, transactions may call it too.

    Examples
    --------
    >>> from toolkit.embedded import Module, friend, u64
    >>> class Shop(Module, address="0x5407", friends=["desk"]):
    ...     @friend
    ...     def discount(self) -> u64:
    ...         return 3
    >>> abi = Shop.definition.abi
    >>> abi.friends, abi.function("discount").visibility
    (('0x5407::desk',), 'friend')
    """
    return _marked(function, visibility="friend")


@_without_brackets
def private(function: _F) -> _F:
    """Mark a method as a private function: other modules cannot call it.

    Methods without a mark are private too; `private` is for entry functions, which are public otherwise.

    Examples
    --------
    >>> from toolkit.embedded import Module, entry, private, signer
    >>> class Shop(Module, address="0x5407"):
    ...     @private
    ...     @entry
    ...     def close(self, account: signer) -> None: ...
    >>> abi = Shop.definition.abi.function("close")
    >>> abi.visibility, abi.is_entry
    ('private', True)
    """
    return _marked(function, visibility="private")


class Code:
    """Base class of modules and scripts, with the methods that abort and charge."""

    _location: typing.ClassVar[str] = ""
    """Module id in the message of an abort; empty for a script."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def abort(self, code: AbortCode | int) -> NoReturn:
        """Abort the execution with `code`; its writes are discarded.

        Raises
        ------
        MoveAbort
            Always; the node returns the abort code and its reason.
        """
        self.session.meter.charge("instr.abort")
        reason = code if isinstance(code, AbortCode) else self._named(code)
        self.session.failure = MoveAbort(self._location, reason)
        raise self.session.failure

    def _named(self, code: int) -> AbortCode:
        """Return an abort code with the name and the description that the module declares."""
        return AbortCode(code, "")

    def require(self, condition: object, code: AbortCode | int) -> None:
        """Abort with `code` unless `condition` is true."""
        self.session.meter.charge("instr.br_false")
        if condition is True:
            return
        if condition is not False and not is_framework(type(self)):
            raise ContractError(f"a condition must be a bool, got {condition!r:.80}")
        if not condition:
            self.abort(code)

    def check_assertion(self, condition: object, message: AbortCode | str | int | None = None) -> None:
        """Abort unless `condition` is true; `message` is the code or text after the comma of an ``assert``."""
        code = message if isinstance(message, AbortCode | int) else AbortCode(UNSPECIFIED_ABORT_CODE, message or "")
        self.require(condition, code)

    def charge_turn(self) -> None:
        """Charge for an iteration of a ``while`` loop."""
        self.session.meter.charge_turn(element=False)

    def each(self, elements: Iterable[_E]) -> Iterator[_E]:
        """Yield the elements of a vector and charge for each iteration, as a plain ``for`` loop does.

        A plain ``for`` loop charges nothing if the source of the code is not available, as with ``python -``.
        """
        reads = not isinstance(elements, range | ContractRange)  # a range has no elements that are read
        for element in elements:
            self.session.meter.charge_turn(element=reads)
            yield element

    def charge(self, parameter: str, times: int = 1) -> None:
        """Charge a gas schedule parameter `times` times, for VM work that the Python code does not show."""
        self.session.meter.charge(parameter, int(times))

    def type_name(self, argument: TypeArgument) -> str:
        """Return a type argument as text, as the REST API prints it."""
        self.session.meter.charge("aptos_framework.type_info.type_name.base")
        return wire_type(argument)


class Module(Code):
    """Base class of contracts.

    ``class Registry(Module, address="0xcafe")`` is published as ``0xcafe::registry``. A method named ``init_module``
    with one signer runs once, when the module is first published. A subclass of a published module is its next
    version: ``class Cheaper(Vault, revision=2)`` has the address and name of ``Vault``.

    Parameters
    ----------
    address : str
        Address at which the module is published. Pass all parameters as keywords in the class statement.
    name : str, optional
        Name of the module; the class name in snake case by default.
    revision : int, default 1
        Part of the bytecode digest. Increase it for an upgrade that changes the code but not the ABI.
    code_bytes : int, optional
        Size of the bytecode in bytes; by default, a size modelled from the ABI.
    uses : sequence of Module classes, optional
        Modules at other addresses, outside the framework, that the module calls. Its package lists their packages as
        dependencies.
    friends : sequence of str, optional
        Names of modules at the same address that may call functions marked with `friend`.

    Raises
    ------
    InputError
        If the class has no address, an annotation is not a Move type, or a friend is not the name of another module.
        The error is raised when the class is defined.

    Examples
    --------
    >>> from toolkit.embedded import Ledger, Module, Resource, entry, signer, u64, view
    >>> class Counter(Module, address="0xc0de"):
    ...     class Count(Resource):
    ...         value: u64
    ...
    ...     def init_module(self, account: signer) -> None:
    ...         self.move_to(account, Counter.Count(value=0))
    ...
    ...     @entry
    ...     def increment(self, account: signer) -> None:
    ...         with self.borrow_mut(Counter.Count, "0xc0de") as count:
    ...             count.value += 1
    ...
    ...     @view
    ...     def value(self) -> u64:
    ...         return self.borrow(Counter.Count, "0xc0de").value
    >>> ledger = Ledger()
    >>> published = ledger.publish(Counter)
    >>> done = ledger.commit("0xc0de::counter::increment", sender="0xb0b")
    >>> ledger.view("0xc0de::counter::value")[0]
    [1]
    """

    definition: Definition
    replaced: typing.ClassVar[tuple[type[Module], ...]] = ()
    """Classes that this class replaced in upgrades of ledgers of this process."""
    blocks: typing.ClassVar[int]
    """Number of basic blocks of Move code that are charged for each operation."""

    def __init_subclass__(
        cls,
        *,
        address: str | None = None,
        name: str | None = None,
        revision: int | None = None,
        code_bytes: int | None = None,
        uses: Sequence[type[Module]] | None = None,
        friends: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        what = f"class {cls.__name__}(Module)"
        if kwargs:
            raise InputError(
                f"{what}: {next(iter(kwargs))} is not an option of a contract; the options are "
                f"address, name, revision, code_bytes, uses and friends{declared_at(cls.__name__)}"
            )
        super().__init_subclass__()
        before: Definition | None = getattr(cls, "definition", None)
        full_address = _address(cls, address, before)
        _check_methods(cls)
        module_name = name or (before.name if before is not None and address is None else _snake_case(cls.__name__))
        structs, errors = _members(cls, f"{wire_address(full_address)}::{module_name}")
        declared = DeclaredStructs(structs.values())
        if declared.recursive is not None:
            raise _field_error(*declared.recursive, "the struct contains itself, which Move does not allow")
        functions = {
            method: _function(cls, method, function, function.move_mark, declared)
            for method, function in inspect.getmembers(cls, inspect.isfunction)
            if hasattr(function, "move_mark")
        }
        choose_revision = next_revision.get()
        if revision is None and choose_revision is not None:
            revision = choose_revision(full_address, module_name)
        elif revision is None:
            revision = 1 if before is None else before.revision
        if friends is None:
            friends = () if before is None else before.friends
        if module_name in map(check_identifier, friends):
            raise InputError(f"{what}: friends must be other modules, got the module's own name {module_name}")
        used = frozenset() if before is None else before.uses
        if uses is not None:
            used = frozenset((one.definition.address, one.definition.name) for one in uses)
        abi_json = {
            "address": wire_address(full_address),
            "name": module_name,
            "friends": [f"{wire_address(full_address)}::{friend}" for friend in friends],
            "exposed_functions": [function.to_abi() for function in functions.values() if function.mark.is_exposed],
            "structs": [_struct_abi(struct) for _, struct in sorted(structs.items())],
        }
        groups = {one.__name__: one.move_group for one in structs.values() if one.move_group is not None}
        cls.replaced = ()
        cls.definition = Definition(
            contract=cls,
            address=full_address,
            name=module_name,
            functions=functions,
            structs=structs,
            revision=revision,
            abi=decode_module_abi(abi_json),
            abi_json=abi_json,
            bytecode=modelled_bytecode(abi_json, revision, code_bytes, errors, groups),
            uses=used,
            friends=tuple(friends),
            errors=errors,
        )
        cls._location = cls.definition.wire_id
        cls.blocks = FRAMEWORK_BLOCKS if cls.definition.is_system else CONTRACT_BLOCKS
        if not cls.__module__.startswith("toolkit."):  # as written in Move, and checked by a test
            check_abilities(cls.__name__, structs.values(), functions.values(), declared)
            # Now, because a file can change after it was run.
            code_digest(cls)  # type: ignore[arg-type]  # classes are hashable

    def __init__(self, session: Session) -> None:
        object.__setattr__(self, "session", session)

    def _named(self, code: int) -> AbortCode:
        plain = super()._named(code)
        declared = self.definition.errors.get(_reason(plain.code))
        return plain if declared is None else replace(declared, code=plain.code)

    def __setattr__(self, name: str, _: object) -> None:
        raise InputError(f"self.{name} cannot be set: {NO_STATE}{running_at()}")

    # -- resources -----------------------------------------------------------------------------------------

    def exists(self, resource: type[Struct], at: str, *type_arguments: TypeArgument) -> bool:
        """Return True if a `resource` exists under the address `at`."""
        self.session.meter.charge_code(self.blocks)
        return self.session.resource_exists(resource, at, type_arguments)

    def borrow(self, resource: type[_R], at: str, *type_arguments: TypeArgument) -> _R:
        """Return a read-only copy of the `resource` under `at`. For a mutable copy, use ``copy.deepcopy``."""
        self.session.meter.charge_code(self.blocks)
        return self.session.borrow(self._own(resource), at, type_arguments)

    def borrow_mut(self, resource: type[_R], at: str, *type_arguments: TypeArgument) -> AbstractContextManager[_R]:
        """Return a context manager that yields the `resource` under `at` and stores its changes on exit."""
        self.session.meter.charge_code(self.blocks)
        return self.session.borrow_mut(self._own(resource), at, type_arguments)

    def move_to(self, account: signer, value: Struct, *type_arguments: TypeArgument) -> None:
        """Store a new resource under the signer's address."""
        _check_value(value)
        self._own(type(value))
        if not self.definition.is_system:
            check_signer(account)
        self.session.meter.charge_code(self.blocks)
        self.session.move_to(account, value, type_arguments)

    def move_from(self, resource: type[_R], at: str, *type_arguments: TypeArgument) -> _R:
        """Remove the `resource` under the address `at` and return it."""
        self.session.meter.charge_code(self.blocks)
        return self.session.move_from(self._own(resource), at, type_arguments)

    def new_table(self) -> Table[Any, Any]:
        """Return a new, empty table to store in a field of a resource."""
        return Table(self.session.new_address())

    def new_event_handle(self, account: signer) -> Any:
        """Return a new `EventHandle` for an account, to store in a field of a resource.

        The handle receives the account's next creation number. To create a handle for an object, call
        ``self.use(ObjectModule).new_event_handle(object)``. See `EventHandle` for an example.
        """
        return self.session.new_event_handle(account if self.definition.is_system else check_signer(account))

    def own_signer(self) -> signer:
        """Return the signer of the publishing account, which a Move module would obtain from a ``SignerCapability``."""
        return signer_of(self.definition.address)

    # -- everything else -----------------------------------------------------------------------------------

    def emit(self, event: Event, *type_arguments: TypeArgument) -> None:
        """Emit a module event, which has no handle."""
        _check_value(event)
        self.session.meter.charge_code(2 * self.blocks)
        self.session.emit(event, type_arguments)

    def emit_event(self, handle: Any, event: Struct, *type_arguments: TypeArgument) -> None:
        """Emit an event to a handle, which gives the event a key and a sequence number.

        Parameters
        ----------
        handle : EventHandle
            A new handle, or the handle of a resource that is borrowed with `borrow_mut`.
        event : Struct
            The event, with the abilities drop and store.
        *type_arguments : TypeArgument
            Type arguments of a generic event.

        Raises
        ------
        InputError
            If the handle is a copy, such as a handle from `borrow`, because its counter would not be stored.
        """
        _check_value(event)
        self.session.meter.charge_code(3 * self.blocks)
        self.session.emit_event(handle, event, type_arguments)

    def use(self, module: type[_M]) -> _M:
        """Return the published version of another module, whose functions can then be called.

        A module at another address, outside the framework, must be declared: ``class Desk(Module, uses=[PriceFeed])``.

        Raises
        ------
        InputError
            If the module is not declared. Calls raise it if the function is private, or if it is a friend function and
            this module is not a friend. Framework methods without a decorator can be called.
        """
        used, own = module.definition, self.definition
        if not (used.is_system or used.address == own.address or (used.address, used.name) in own.uses):
            raise InputError(
                f"{own.wire_id} calls {used.wire_id} without declaring it: write uses=[{module.__name__}] in the class "
                "line, so that its package lists the dependency"
            )
        found = self.session.module(module)
        if (used.address, used.name) == (own.address, own.name) or own.is_system:
            return found
        if used.is_system:
            return typing.cast("_M", FrameworkModule(found))
        return typing.cast("_M", _Used(found, own))  # has the methods of the module that may be called

    def _own(self, resource: type[_R]) -> type[_R]:
        """Return `resource`, or raise InputError if another module defines it: only that module may access it."""
        if not is_struct(resource):
            raise InputError(f"expected a resource class, got {resource!r:.80}{running_at()}")
        if resource.move_module != self.definition.wire_id:
            raise InputError(
                f"{self.definition.wire_id} cannot access {resource.move_module}::{resource.__name__}: only the module "
                "that defines a resource can; call a function of that module instead"
            )
        return resource


def _check_value(value: object) -> None:
    """Raise InputError unless a value is an instance of a struct."""
    if not isinstance(value, Struct):
        hint = f"; write {value.__name__}(...) with its fields" if isinstance(value, type) else ""
        raise InputError(f"expected a struct value, got {value!r:.80}{hint}{running_at()}")


class _Used:
    """A module as other code calls it: only friends can call friend functions, nobody can call private functions."""

    __slots__ = ("_caller", "_module")

    def __init__(self, module: Module, caller: Definition | None) -> None:
        self._module = module
        self._caller = caller

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if inspect.ismethod(value):
            mark: FunctionMark = getattr(value, "move_mark", PRIVATE)
            definition = self._module.definition
            caller = self._caller
            friends = {(definition.address, name) for name in definition.friends}
            is_friend = caller is not None and (caller.address, caller.name) in friends
            if mark.visibility == "private" or (mark.visibility == "friend" and not is_friend):
                who = "a script" if caller is None else caller.wire_id
                raise InputError(
                    f"{who} cannot call {definition.wire_id}::{name}, which is {mark.visibility}: "
                    "mark it with @public, or with @friend and list the caller in friends=[...] in the class statement"
                )
        return value


class ScriptContext(Code):
    """The first parameter of a script: `use` returns modules; the other methods work as in `Module`."""

    def use(self, module: type[_M]) -> _M:
        """Return the published version of a module, whose public functions can then be called."""
        found = self.session.module(module)
        return typing.cast("_M", FrameworkModule(found) if module.definition.is_system else _Used(found, None))


@dataclass(frozen=True, slots=True, eq=False)
class StandInScript:
    """A script declared with `script`, which embedded ledgers run for transactions with its stand-in bytecode.

    Parameters
    ----------
    name : str
        Name of the Python function.
    function : Function
        Its signature, under the name ``main``, as returned by nodes.
    body : callable
        The Python function.
    bytecode : bytes
        A digest of the name and the signature, used in place of compiled code.

    Examples
    --------
    >>> from toolkit.embedded import script, signer, u64
    >>> @script
    ... def nothing(run, account: signer, amount: u64) -> None: ...
    >>> nothing.name, nothing.abi["params"], len(nothing.bytecode)
    ('nothing', ['&signer', 'u64'], 240)
    """

    name: str
    function: Function
    body: Callable[..., Any]
    bytecode: bytes

    @property
    def abi(self) -> dict[str, Any]:
        """The signature as returned by nodes."""
        return self.function.to_abi()


def script(function: Callable[..., Any]) -> StandInScript:
    """Declare a script: code that is part of a transaction and runs once.

    Embedded ledgers in this process run the function whenever a transaction contains its `StandInScript.bytecode`: a
    simulated `toolkit.Script`, the payload of a multisig account, or a script passed to `Ledger.commit`. Other bytecode
    is rejected, as on a node.

    Parameters
    ----------
    function : callable
        Its first parameter is the execution: ``run.use(Coin)`` returns a module, whose functions do the work;
        ``run.abort``, ``run.require``, ``run.each`` and ``run.charge`` work as in `Module`. The other parameters are
        type arguments, signers and arguments, in this order, annotated as in contracts. A script returns nothing.

    Returns
    -------
    StandInScript

    Raises
    ------
    InputError
        If an annotation is missing or not a Move type, or the function returns values.

    Examples
    --------
    >>> from toolkit.embedded import APTOS_COIN, Coin, Ledger, address, script, signer, u64
    >>> @script
    ... def pay_both(run, account: signer, first: address, second: address, amount: u64) -> None:
    ...     for receiver in run.each([first, second]):
    ...         run.use(Coin).transfer(APTOS_COIN, account, receiver, amount)
    >>> Ledger().commit(pay_both, "0x1", "0xb0b", 5, sender="0xa11ce").output.vm_status
    'Executed successfully'
    """
    mark = FunctionMark("public", is_entry=True)
    signature = _function(ScriptContext, function.__name__, function, mark, DeclaredStructs(()))
    if signature.returns:
        raise InputError(f"script {function.__name__}: a script must not return a value")
    signature = replace(signature, name="main")
    name = f"{function.__module__}.{function.__qualname__}"
    text = json.dumps([name, signature.to_abi()], sort_keys=True, separators=(",", ":"))
    bytecode = MAGIC + hashlib.shake_256(text.encode()).digest(_SCRIPT_BYTES - len(MAGIC))
    declared = StandInScript(name=function.__name__, function=signature, body=function, bytecode=bytecode)
    _SCRIPTS[bytecode] = declared
    return declared


def find_script(bytecode: bytes) -> StandInScript | None:
    """Return the script most recently declared with a bytecode, or None if the bytecode is unknown."""
    return _SCRIPTS.get(bytecode)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _address(cls: type[Module], given: str | None, before: Definition | None) -> str:
    """Return the canonical address of a contract class: the given address, or that of the class it extends."""
    name = cls.__name__
    if given is not None:
        try:
            return parse_address(given)
        except InputError as error:
            raise InputError(f"class {name}(Module): {error}{declared_at(name)}") from None
    if before is None:
        problem = f"class {name}(Module) has no address: write class {name}(Module, address='0xcafe')"
        raise InputError(f"{problem}{declared_at(name)}")
    return before.address


def _members(cls: type[Module], wire_id: str) -> tuple[dict[str, type[Struct]], dict[int, AbortCode]]:
    """Return the structs of a class by name and its error constants by reason; make the class own its structs."""
    structs: dict[str, type[Struct]] = {}
    errors: dict[int, AbortCode] = {}
    for owner in reversed(cls.__mro__):
        for member in vars(owner).values():
            if isinstance(member, AbortCode) and member.name:
                errors[_reason(member.code)] = member
            if isinstance(member, type) and issubclass(member, Struct):
                structs[member.__name__] = member
                if owner is cls:
                    member.move_module = wire_id
                    member.move_namespace = cls  # type: ignore[attr-defined]  # read by `Struct.move_fields`
    return structs, errors | {_reason(one.code): one for one in _declared_errors(cls)}


def _reason(code: int) -> int:
    """Return the reason of an abort code, without the category; error constants are declared by reason."""
    return code if code >= 1 << _ABORT_CODE_BITS else code % (1 << _REASON_BITS)


def _declared_errors(cls: type[Module]) -> Iterator[AbortCode]:
    """Yield the abort codes in ``errors = {...}``, whose keys are names or numbers and whose values are sentences."""
    declared = getattr(cls, "errors", {})
    if not isinstance(declared, dict):
        expected = f"{cls.__name__}.errors must be a dict from names or numbers of constants to sentences"
        raise InputError(f"{expected}; got {declared!r:.80}")
    names = {value: name for name, value in inspect.getmembers(cls, lambda one: type(one) is int)}
    for key, text in declared.items():
        code = getattr(cls, key, None) if isinstance(key, str) else key
        if not isinstance(code, int) or not isinstance(text, str):
            raise InputError(
                f"{cls.__name__}.errors[{key!r:.80}]: expected the name or number of a constant of the class, such as "
                f"E_SMALL = 1, with a sentence; got {text!r:.80}{declared_at(cls.__name__)}"
            )
        yield AbortCode(code, text, key if isinstance(key, str) else names.get(code, f"E{code}"))


def check_abilities(
    name: str, structs: Iterable[type[Struct]], functions: Iterable[Function], declared: DeclaredStructs
) -> None:
    """Raise InputError if a field or a type argument lacks an ability that it must have."""
    for struct in structs:
        problem = wrong_field(declared, struct)
        if problem is not None:
            raise _field_error(struct, *problem)
    for function in functions:
        for kind in (*function.parameters, *function.returns):
            wrong = wrong_argument(declared, parse_type_tag(kind.text, abi=True), function.constraints)
            if wrong is not None:
                raise _Source(name, function.name).error(wrong)


# Attributes that every contract needs, even if its code does not name them. A contract may define a function with the
# name of another method of `Module`, such as `exists`, because Move allows that.
_RESERVED = {
    "_location",
    "_named",
    "_own",
    "abort",
    "blocks",
    "charge_turn",
    "check_assertion",
    "definition",
    "each",
    "move_compiled",
    "replaced",
    "require",
    "session",
}


def _check_methods(cls: type[Module]) -> None:
    """Raise InputError if a class has a constructor, or a method that Move does not allow."""
    for name, member in vars(cls).items():
        function = inspect.unwrap(member) if inspect.isfunction(member) else None
        if function is None:
            continue
        mark: FunctionMark = getattr(member, "move_mark", PRIVATE)
        returned = function.__annotations__.get("return")
        problem = ""
        if name == "__init__":
            problem = (
                "a contract has no state of its own: write init_module(self, account: signer) and store a Resource "
                "with self.move_to"
            )
        elif name in _RESERVED:
            problem = f"every contract has an attribute {name}, which this function would replace: choose another name"
        elif name == "init_module" and mark is not PRIVATE:
            problem = "init_module runs only when the module is first published: remove its decorator"
        elif name == "init_module" and len(inspect.signature(function).parameters) != 2:  # noqa: PLR2004 - self and the signer
            problem = "init_module takes one signer: write def init_module(self, account: signer) -> None"
        elif mark.is_view and returned in {None, "None"}:
            problem = "a view function must return a value: write its type, such as -> u64"
        elif mark.is_entry and returned not in {None, "None"}:
            problem = "an entry function must not return a value: write -> None, and return the value from a view"
        if problem:
            raise _Source(cls.__name__, name).error(problem)


class _Source(NamedTuple):
    """A method or a script as messages name it; for a script, `cls` is empty."""

    cls: str
    name: str

    def __str__(self) -> str:
        return f"{self.cls}.{self.name}" if self.cls else f"script {self.name}"

    def error(self, problem: object, at: str = "") -> InputError:
        """Return the error for a problem, with the line of the method or of its parameter `at`."""
        path = [one for one in (*self, at) if one]
        return InputError(f"{self}: {problem}{declared_at(*path)}")

    def convert(self, name: str, convert: Callable[[Any], _T], kind: Any) -> _T:
        """Return the result of `convert` for an annotation; add the parameter and the line to its errors."""
        try:
            return convert(kind)
        except InputError as error:
            what = "returned value" if name == "return" else f"parameter {name}"
            raise InputError(str(self.error(error, name)).replace(": ", f", {what}: ", 1)) from None


def _function(
    cls: type[Code], name: str, function: Callable[..., Any], mark: FunctionMark, declared: DeclaredStructs
) -> Function:
    """Return the signature of a method as a Move function, and add its structs to `declared`."""
    method = _Source("" if cls is ScriptContext else cls.__name__, name)
    function = inspect.unwrap(function)
    annotations = resolve_annotations(function, cls, str(method))
    _check_parameters(method, function, annotations)
    returned = annotations.pop("return", None)
    checked = not is_framework(cls)
    parameter_type = return_type = functools.partial(move_type, checked=checked)
    if mark.is_entry:
        parameter_type = functools.partial(crossing_type, by="a transaction cannot pass", checked=checked)
    elif mark.is_view:
        parameter_type = functools.partial(crossing_type, by="a caller of a view cannot pass", checked=checked)
    if mark.is_view:
        return_type = functools.partial(crossing_type, by="a view cannot return", checked=checked)
    constraints: list[tuple[str, ...]] = []
    parameters: dict[str, MoveType] = {}
    signers = 0
    for one, kind in annotations.items():
        if TypeArgument in (kind, getattr(kind, "__origin__", None)) and not signers and not parameters:
            constraints.append(method.convert(one, _constraints, kind))
        elif not is_signer(kind):
            parameters[one] = method.convert(one, parameter_type, kind)
            declared.add(kind)
        elif parameters:
            first = next(iter(parameters))
            raise method.error(f"signer parameters must come before the others: move {one} before {first}", one)
        elif mark.is_view:
            raise method.error(f"a view function cannot take a signer: write {one}: address", one)
        else:
            signers += 1
    returns = []
    for kind in _returned_kinds(returned):
        returns.append(method.convert("return", return_type, kind))
        declared.add(kind)
    return Function(
        name=name,
        mark=mark,
        constraints=tuple(constraints),
        signers=signers,
        parameters=tuple(parameters.values()),
        returns=tuple(returns),
    )


def _returned_kinds(annotation: Any) -> tuple[Any, ...]:
    if annotation in {None, type(None)}:
        return ()
    return typing.get_args(annotation) if typing.get_origin(annotation) is tuple else (annotation,)


def _check_parameters(method: _Source, function: Callable[..., Any], annotations: Mapping[str, Any]) -> None:
    """Raise InputError unless a method has the parameters of a Move function: self, then annotated parameters."""
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].name in annotations:
        raise method.error("the first parameter must be self, without an annotation")
    for one in parameters[1:]:
        name, problem = one.name, ""
        if one.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            problem = f"parameter {one}: Move has positional parameters only; write a name for each"
        elif name not in annotations:
            problem = f"parameter {name} has no type: write {name}: u64, or another Move type"
        elif one.default is not inspect.Parameter.empty:
            problem = f"parameter {name} has a default value, which Move does not support: callers pass every argument"
        if problem:
            raise method.error(problem, name)


def _constraints(kind: Any) -> tuple[str, ...]:
    """Return the abilities of ``Annotated[TypeArgument, "drop store"]``, in the order that nodes use."""
    texts = [mark for mark in getattr(kind, "__metadata__", ()) if isinstance(mark, str)]
    return tuple(sorted(parse_abilities(" ".join(texts)), key=ABILITIES.index))


def _struct_abi(struct: type[Struct]) -> dict[str, Any]:
    variants = struct.move_variants if issubclass(struct, Enum) else {}
    # The Move compiler adds this field to a struct without fields.
    fields = [] if variants else _fields_abi(struct) or [{"name": "dummy_field", "type": "bool"}]
    return {
        "name": struct.__name__,
        "is_native": False,
        "is_event": issubclass(struct, Event),
        "is_enum": bool(variants),
        "abilities": list(struct.move_abilities),
        "generic_type_params": [{"constraints": list(one)} for one in struct_constraints(struct)],
        "fields": fields,
        "variants": [{"name": name, "fields": _fields_abi(variant)} for name, variant in variants.items()],
    }


def _fields_abi(struct: type[Struct]) -> list[dict[str, str]]:
    fields = []
    for name, kind in struct.move_fields().items():
        try:
            fields.append({"name": name, "type": move_type(kind).text})
        except InputError as error:
            raise _field_error(struct, name, error) from None
    return fields


def _field_error(struct: type[Struct], field: str, problem: object) -> InputError:
    """Return the error for a field, with the line of the field."""
    path = struct.__qualname__.rpartition("<locals>.")[2].split(".")
    return InputError(f"{'.'.join(path)}, field {field}: {problem}{declared_at(*path, field)}")
