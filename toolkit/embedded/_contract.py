"""Contracts as Python classes: modules, entry and view functions, and the ABI derived from them.

A contract declares its types in annotations and accesses the ledger through the methods of `Module`. Every access is
charged. Everything that a contract stores is encoded to bytes, so no Python object outlives the call. Contracts are a
model of what a Move contract does to a ledger: their functions are ordinary Python functions, run as they are.

The bytecode of a module consists of metadata, which names its error constants as compilers do, and a digest of its ABI
and its declared revision, extended to a modelled size. It does not depend on Python's code objects and is therefore
the same on every Python version.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import re
import typing
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from toolkit.embedded._definitions import (
    MAGIC,
    PRIVATE,
    Definition,
    Function,
    FunctionMark,
    check_method,
    function_of,
    modelled_bytecode,
    struct_abi,
)
from toolkit.embedded._meter import CONTRACT_BLOCKS, FRAMEWORK_BLOCKS
from toolkit.embedded._primitives import Address, TypedInteger, check_signer, signer_of
from toolkit.embedded._vm_status import AbortCode, MoveAbort, VmError
from toolkit.embedded.types import (
    Event,
    Struct,
    Table,
    TypeArgument,
    is_framework,
    is_signer,
    is_struct,
    move_type,
    resolve_annotations,
)
from toolkit.errors import ContractError, InputError
from toolkit.move import decode_module_abi, parse_address
from toolkit.move._ids import check_identifier, wire_address
from toolkit.move._type_tags import wire_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolkit.embedded._session import Lent, Session
    from toolkit.embedded.types import signer


_F = TypeVar("_F", bound="Callable[..., Any]")
_M = TypeVar("_M", bound="Module")
_R = TypeVar("_R", bound="Struct")
_E = TypeVar("_E")

# An abort code that Move's `error` module makes has a category above the 16 bits of its reason, and at most 24 bits.
_REASON_BITS = 16
_ABORT_CODE_BITS = 24
_SCRIPT_BYTES = 240
# By bytecode.
_SCRIPTS: dict[bytes, StandInScript] = {}

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
        try:
            return function(self, *arguments)
        except VmError as error:
            error.location = error.location or f"{self.definition.wire_id}::{function.__name__}"
            raise

    called.move_mark = FunctionMark(**changes)  # type: ignore[attr-defined]  # read by `_define`
    return called  # type: ignore[return-value]  # same signature as the method it wraps


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


class ContractCode:
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
        if not condition:
            self.abort(code)

    def each(self, elements: Iterable[_E]) -> Iterator[_E]:
        """Yield the elements of a vector and charge for each iteration; a plain ``for`` loop charges nothing."""
        reads = not isinstance(elements, range)  # a range has no elements that are read
        for element in elements:
            self.session.meter.charge_turn(element=reads)
            yield element

    def charge(self, parameter: str, times: int = 1) -> None:
        """Charge a gas schedule parameter `times` times, for VM work that the Python code does not show."""
        if times < 0:
            raise ContractError(f"times must not be negative, got {times}")
        self.session.meter.charge(parameter, int(times))

    def type_name(self, argument: TypeArgument) -> str:
        """Return a type argument as text, as the REST API prints it."""
        self.session.meter.charge("aptos_framework.type_info.type_name.base")
        return wire_type(argument)


class Module(ContractCode):
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
    ) -> None:
        what = f"class {cls.__name__}(Module)"
        super().__init_subclass__()
        before: Definition | None = getattr(cls, "definition", None)
        if address is not None:
            full_address = parse_address(address)
        elif before is not None:  # the next version of the class that it extends
            full_address, name = before.address, name or before.name
        else:
            raise InputError(f"{what} has no address: pass address='0xcafe' in the class statement")
        module_name = name or _snake_case(cls.__name__)
        for method, member in vars(cls).items():
            if inspect.isfunction(member):
                check_method(cls, method, member)
        structs, errors = _members(cls, f"{wire_address(full_address)}::{module_name}")
        functions = {
            method: function_of(cls, method, member, member.move_mark, where=f"{cls.__name__}.{method}")
            for method, member in inspect.getmembers(cls, inspect.isfunction)
            if hasattr(member, "move_mark")
        }
        choose_revision = next_revision.get()
        if revision is None and choose_revision is not None:
            revision = choose_revision(full_address, module_name)
        used: frozenset[tuple[str, str]] = frozenset()
        if before is not None:
            friends, used = before.friends if friends is None else friends, before.uses
            revision = before.revision if revision is None else revision
        friends, revision = friends or (), 1 if revision is None else revision
        if uses is not None:
            used = frozenset((one.definition.address, one.definition.name) for one in uses)
        if module_name in map(check_identifier, friends):
            raise InputError(f"{what}: friends must be other modules, got the module's own name {module_name}")
        abi_json = {
            "address": wire_address(full_address),
            "name": module_name,
            "friends": [f"{wire_address(full_address)}::{friend}" for friend in friends],
            "exposed_functions": [function.to_abi() for function in functions.values() if function.mark.is_exposed],
            "structs": [struct_abi(struct) for _, struct in sorted(structs.items())],
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
        if not cls.__module__.startswith("toolkit."):
            # Now, because a file can change after it was run.
            code_digest(cls)  # type: ignore[arg-type]  # classes are hashable

    def __init__(self, session: Session) -> None:
        object.__setattr__(self, "session", session)

    def _named(self, code: int) -> AbortCode:
        plain = super()._named(code)
        declared = self.definition.errors.get(_reason(plain.code))
        return plain if declared is None else replace(declared, code=plain.code)

    def __setattr__(self, name: str, _: object) -> None:
        raise ContractError(f"self.{name} cannot be set: a contract has no state of its own; use a Resource")

    # -- resources -----------------------------------------------------------------------------------------

    def exists(self, resource: type[Struct], at: str, *type_arguments: TypeArgument) -> bool:
        """Return True if a `resource` exists under the address `at`."""
        self.session.meter.charge_code(self.blocks)
        return self.session.resource_exists(resource, at, type_arguments)

    def borrow(self, resource: type[_R], at: str, *type_arguments: TypeArgument) -> _R:
        """Return a read-only copy of the `resource` under `at`. For a copy that can change, use ``copy.deepcopy``."""
        self.session.meter.charge_code(self.blocks)
        return self.session.borrow(self._own(resource), at, type_arguments)

    def borrow_mut(self, resource: type[_R], at: str, *type_arguments: TypeArgument) -> Lent[_R]:
        """Return a context manager that yields the `resource` under `at` and stores its changes on exit."""
        self.session.meter.charge_code(self.blocks)
        return self.session.borrow_mut(self._own(resource), at, type_arguments)

    def move_to(self, account: signer, value: Struct, *type_arguments: TypeArgument) -> None:
        """Store a new resource under the signer's address."""
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
        self.session.meter.charge_code(2 * self.blocks)
        self.session.emit(event, type_arguments)

    def emit_event(self, handle: Any, event: Struct, *type_arguments: TypeArgument) -> None:
        """Emit an event to a handle, which gives the event a key and a sequence number.

        Parameters
        ----------
        handle : EventHandle
            A new handle, or the handle of a resource that is borrowed with `borrow_mut`.
        event : Struct
            The event.
        *type_arguments : TypeArgument
            Type arguments of a generic event.

        Raises
        ------
        ContractError
            If the handle is read-only, such as a handle from `borrow`, because its counter would not be stored.
        """
        self.session.meter.charge_code(3 * self.blocks)
        self.session.emit_event(handle, event, type_arguments)

    def use(self, module: type[_M]) -> _M:
        """Return the published version of another module, whose functions can then be called.

        A module at another address, outside the framework, must be declared: ``class Desk(Module, uses=[PriceFeed])``.

        Raises
        ------
        ContractError
            If the module is not declared. Calls raise it if the function is private, or if it is a friend function and
            this module is not a friend. Framework methods without a decorator can be called.
        """
        used, own = module.definition, self.definition
        if not (used.is_system or used.address == own.address or (used.address, used.name) in own.uses):
            raise ContractError(
                f"{own.wire_id} calls {used.wire_id} without declaring it: write uses=[{module.__name__}] in the class "
                "line, so that its package lists the dependency"
            )
        found = self.session.module(module)
        if (used.address, used.name) == (own.address, own.name) or own.is_system:
            return found
        return typing.cast("_M", LinkedModule(found, own))  # has the methods of the module that may be called

    def _own(self, resource: type[_R]) -> type[_R]:
        """Return `resource`, or raise ContractError if another module defines it: only that module may access it."""
        if not is_struct(resource):
            raise ContractError(f"expected a resource class, got {resource!r:.80}")
        if resource.move_module != self._location:
            raise ContractError(
                f"{self._location} cannot access {resource.move_module}::{resource.__name__}: only the module "
                "that defines a resource can; call a function of that module instead"
            )
        return resource


class ScriptContext(ContractCode):
    """The first parameter of a script: `use` returns modules; the other methods work as in `Module`."""

    def use(self, module: type[_M]) -> _M:
        """Return the published version of a module, whose public functions can then be called."""
        found = self.session.module(module)
        return typing.cast("_M", LinkedModule(found, None))


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
    is rejected, unless it only makes calls in a row, as the script of a `toolkit.Batch` does.

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
    signature = function_of(ScriptContext, "main", function, mark, where=f"script {function.__name__}")
    if signature.returns:
        raise InputError(f"script {function.__name__}: a script must not return a value")
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
    names = {value: name for name, value in inspect.getmembers(cls, lambda one: type(one) is int)}
    for key, text in getattr(cls, "errors", {}).items():
        code = getattr(cls, key, None) if isinstance(key, str) else key
        if not isinstance(code, int) or not isinstance(text, str):
            raise InputError(
                f"{cls.__name__}.errors[{key!r:.80}]: expected the name or number of a constant of the class, such as "
                f"E_SMALL = 1, with a sentence; got {text!r:.80}"
            )
        yield AbortCode(code, text, key if isinstance(key, str) else names.get(code, f"E{code}"))


# -- modules as the code of other modules and of scripts calls them --------------------------------------------------


class LinkedModule:
    """A module as other code calls it; arguments and results are converted, and signers must be signers.

    Parameters
    ----------
    module : Module
        The instance whose methods run.
    caller : Definition or None
        The calling module; None for a script.
    """

    __slots__ = ("_caller", "_module")

    def __init__(self, module: Any, caller: Definition | None) -> None:
        self._module = module
        self._caller = caller

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        contract: Any = type(self._module)  # classes are hashable
        if not inspect.isfunction(getattr(contract, name, None)):
            return value
        definition: Definition = contract.definition
        # Undecorated functions of the framework can be called, but not what all contracts inherit, such as borrow_mut.
        own = [vars(cls) for cls in contract.__mro__ if "definition" in vars(cls)]
        if not definition.is_system or not any(name in members for members in own):
            self._check_visible(definition, name, getattr(value, "move_mark", PRIVATE))
        takes, finish = _signature(contract, name)
        # The framework computes with plain values; other contracts receive values of the declared types.
        pass_on = _plain if definition.is_system else _unchanged

        def called(*arguments: Any, **options: Any) -> Any:
            given = [pass_on(takes.get(index, _unchanged)(one)) for index, one in enumerate(arguments)]
            named = {name: pass_on(takes.get(name, _unchanged)(one)) for name, one in options.items()}
            return finish(value(*given, **named))

        return called

    def _check_visible(self, definition: Definition, name: str, mark: FunctionMark) -> None:
        """Raise ContractError unless the caller may call a function."""
        caller = self._caller
        friends = {(definition.address, friend) for friend in definition.friends}
        is_friend = caller is not None and (caller.address, caller.name) in friends
        if mark.visibility == "private" or (mark.visibility == "friend" and not is_friend):
            who = "a script" if caller is None else caller.wire_id
            raise ContractError(
                f"{who} cannot call {definition.wire_id}::{name}, which is {mark.visibility}: "
                "mark it with @public, or with @friend and list the caller in friends=[...] in the class statement"
            )


@functools.cache
def _signature(contract: Any, name: str) -> tuple[dict[int | str, Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return what a call checks: arguments by place and by name, and the result."""
    function = inspect.unwrap(getattr(contract, name))
    hints = resolve_annotations(function, contract, f"{contract.__name__}.{name}")
    is_system = contract.definition.is_system
    takes: dict[int | str, Callable[[Any], Any]] = {}
    for index, parameter in enumerate(list(inspect.signature(function).parameters)[1:]):
        if is_signer(hints.get(parameter)):
            takes[index] = takes[parameter] = functools.partial(check_signer, name=parameter)
        elif not is_system:
            takes[index] = takes[parameter] = _take(hints.get(parameter))
    returned = hints.get("return")
    return takes, signer_of if is_signer(returned) else _take(returned)


def _take(kind: Any) -> Callable[[Any], Any]:
    """Return the function that checks a value of an annotation; helpers may have annotations that are not Move's."""
    if TypeArgument not in (kind, getattr(kind, "__origin__", None)):
        with suppress(InputError):
            return move_type(kind).take or _unchanged
    return _unchanged


def _unchanged(value: Any) -> Any:
    return value


def _plain(value: Any) -> Any:
    """Return a value in the form that the framework uses."""
    if isinstance(value, TypedInteger):
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return str(value) if type(value) is not Address and isinstance(value, Address) else value


# -- digests of the Python code of contracts: two classes with one digest run the same code --------------------------


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


def function_changes(old: type, new: type) -> tuple[list[str], list[str], list[str]]:
    """Return the names of the functions that an upgrade of a contract class adds, removes and changes."""
    before, after = (
        {
            name: _code(member)
            for owner in reversed(contract.__mro__)
            if "definition" in vars(owner)
            for name, member in vars(owner).items()
            if inspect.isfunction(member)
        }
        for contract in (old, new)
    )
    changed = [name for name in after if name in before and before[name] != after[name]]
    return [name for name in after if name not in before], [name for name in before if name not in after], changed


def _code(member: Any) -> str | None:
    """Return the code of a method or the value of a constant; None for other members, which are in the ABI."""
    function = inspect.unwrap(getattr(member, "__func__", None) or getattr(member, "fget", None) or member)
    if not inspect.isfunction(function):
        return repr(member) if isinstance(member, bool | int | float | str | bytes) else None
    try:
        return ast.unparse(ast.parse(dedent(inspect.getsource(function))))
    except (OSError, SyntaxError):
        return function.__code__.co_code.hex() + repr(function.__code__.co_consts)
