"""Modules as objects: each function is a method, whose signature and documentation come from the ABI."""

from __future__ import annotations

import inspect
from contextlib import suppress
from html import escape
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from toolkit._present.messages import MAX_NAMED, cut_text, did_you_mean
from toolkit._present.notebook import literal
from toolkit._present.tables import html_table, text_table
from toolkit._present.text import distinct_addresses, listed, plural, short_addresses, visible
from toolkit.client._abis import encode_arguments
from toolkit.client._arguments import similar_modules
from toolkit.client._simulation import Simulation, not_at_past, simulate
from toolkit.errors import InputError, NodeError, NodeUnreachable, NotFound, SchemaError
from toolkit.move import FieldAbi, FunctionAbi, GenericParam, ModuleAbi, StructAbi, parse_address
from toolkit.move._ids import ModuleId, wire_address
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.client._versions import FindSteps, Versions


_Call = TypeVar("_Call", ViewFunction, EntryFunction)

_MAX_NAMED = 12  # what fits into a message
_MAX_CELL = 600  # a signature with generic types stays whole
_MAX_DOC = 2_000  # a line of a docstring, of text that is not trusted
_NOT_FOUND_STATUS = 404  # as if the node had answered


class Contract:
    """A module on a node, with its functions as methods. Returned by `Node.contract` and `Snapshot.contract`.

    Calling a view function returns its value; calling an entry function simulates it. Nothing is ever signed or
    submitted. If a function's name is a Python keyword or an attribute of this class, use subscript syntax:
    ``contract["import"]``.

    Attributes
    ----------
    node : Node
    id : str
        ``address::module``.
    abi : ModuleAbi
        Functions, structs and errors, at `ledger_version` or at the node's head when this object was created.
    ledger_version : int or None
        The version whose state is read; None reads the head.

    Notes
    -----
    For a view function ``f``,

    - ``contract.f(*arguments)`` returns its value, or a tuple if there are several;
    - ``contract.f.at(ledger_version, *arguments)`` returns its value at a version;
    - ``contract.f.over(versions, *arguments)`` returns a frame as `fetch_views` does, and accepts its options
      ``flatten``, ``times`` and ``progress``;
    - ``contract.f.call(*arguments)`` returns the `ViewFunction`, for `Node.view`, `fetch_views` and studies.

    For an entry function ``g``,

    - ``contract.g(*arguments, sender=...)`` returns a simulation at the node's head, and accepts the fields of
      `SimulationRequest` as further options;
    - ``contract.g.request(*arguments, sender=...)`` returns the `SimulationRequest`, for `fetch_simulations`;
    - ``contract.g.call(*arguments)`` returns the `EntryFunction`.

    Pass arguments as Python values, without the signers, and by position, because ABIs do not contain parameter names.
    Arguments are checked against the ABI before anything is sent. Pass type arguments by keyword:
    ``type_arguments=["u64"]``. ``help(contract.f)`` documents a single function; ``print(contract)`` prints the tables
    that a notebook displays.

    Examples
    --------
    >>> import toolkit
    >>> book = toolkit.connect().contract("0xb00c::order_book")
    >>> book.depth.at(25), book.at(25).depth()
    (0, 0)
    >>> book.place(True, 100, 5, sender="0xa11ce").success
    True
    """

    def __init__(self, node: Node, abi: ModuleAbi, *, abi_version: int, ledger_version: int | None = None) -> None:
        self.node, self.abi = node, abi
        self.id = f"{wire_address(abi.address)}::{abi.name}"
        self.ledger_version, self._abi_version = ledger_version, abi_version
        self._functions = {function.name: function for function in abi.exposed_functions}

    def at(self, ledger_version: int) -> Contract:
        """Return the contract pinned to the ABI and the state at one ledger version.

        Parameters
        ----------
        ledger_version : int
            Negative numbers count from the head: -1 is the head.

        Returns
        -------
        Contract

        Raises
        ------
        InputError
            If `ledger_version` is not a ledger version.
        NotFound
            If the module does not exist at that version.
        NodeError, NodeUnreachable
            If the version or the module cannot be read.
        """
        return contract_of(self.node, self.id, self.node.past_version(ledger_version))

    def __getattr__(self, name: str) -> Any:
        # Python and IPython look for names with a leading underscore to find out what an object can do: a contract must
        # not decide what they find. An object that is being unpickled does not have `_functions` yet.
        if name.startswith("_"):
            raise AttributeError(
                f"a Contract has no attribute {name!r}; if it is a function of the module, use contract[{name!r}]"
            )
        if name not in self._functions:
            raise AttributeError(self._unknown(name))
        return _method(self, self._functions[name])

    def __getitem__(self, name: str) -> Any:
        if name not in self._functions:
            raise InputError(self._unknown(name))
        return _method(self, self._functions[name])

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the functions."""
        return iter(self._functions)

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __dir__(self) -> list[str]:
        own = {"abi", "at", "id", "ledger_version", "node"}
        plain = {name for name in self._functions if name.isidentifier() and not name.startswith("_")}
        return sorted(own | {name for name in plain if not iskeyword(name)})

    def __repr__(self) -> str:
        kinds = [_kind(function) for function in self.abi.exposed_functions]
        counts = f"{plural(kinds.count('view'), 'view')}, "
        counts += f"{plural(sum('entry' in kind for kind in kinds), 'entry function')}, "
        counts += plural(len(self.abi.structs), "struct")
        pinned = "" if self.ledger_version is None else f", ledger_version={self.ledger_version}"
        return f"<Contract {self._title()}: {counts}{pinned}>"

    def __str__(self) -> str:
        lines = [f"{self._title()} {self._where()}"]
        for title, head, rows in _sections(self.abi):
            lines += ["", title, *text_table(rows, head=head, indent="  ")]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<strong>{escape(self._title())}</strong> {escape(self._where())}"]
        for title, head, rows in _sections(self.abi):
            cells = [[f"<code>{escape(cell)}</code>" for cell in row] for row in rows]
            summary = f"<summary>{escape(title)}</summary>"
            parts.append(f"<details open>{summary}{html_table(cells, head=head)}</details>")
        return literal("".join(parts))

    def _title(self) -> str:
        return visible(short_addresses(self.id))

    def _where(self) -> str:
        return f"at ledger version {self._abi_version:,} of {visible(self.node.name, 120)}"

    def _unknown(self, name: object) -> str:
        """Return the message for a function that does not exist."""
        names = [visible(known, 80) for known in self._functions]
        meant = f"; {asked}" if (asked := did_you_mean(str(name), names)) else "."
        have = f"Its functions: {listed(names, _MAX_NAMED)}." if names else "It has no functions that can be called."
        version = "" if self.ledger_version is None else f" at version {self.ledger_version:,}"
        return f"{self.id} has no function {visible(repr(name), 80)}{version}{meant} {have}"


class ContractFunction:
    """A function of a contract. Functions that a node cannot call are direct instances of this class.

    Attributes
    ----------
    id : str
        ``address::module::function``.
    abi : FunctionAbi
    """

    def __init__(self, contract: Contract, abi: FunctionAbi) -> None:
        self._contract, self.abi = contract, abi
        self.id = f"{contract.id}::{abi.name}"
        self.__name__ = abi.name
        self.__doc__ = self._documentation()

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raise an error that says who can call the function.

        Raises
        ------
        InputError
            Always.
        """
        who = {"public": "other modules", "friend": "friends of its module"}.get(self.abi.visibility, "its own module")
        names = [visible(one.name, 80) for one in _ordered(self._contract.abi) if one.is_view or one.is_entry]
        raise InputError(
            f"{self.id} is neither a view nor an entry function: only {who} can call it. "
            f"Views and entry functions: {listed(names, _MAX_NAMED) or 'none'}"
        )

    @property
    def __signature__(self) -> inspect.Signature:
        kinds = inspect.Parameter
        places = [
            kinds(f"arg{place}", kinds.POSITIONAL_ONLY, annotation=_MoveText(kind))
            for place, kind in enumerate(_parameters(self.abi))
        ]
        options = [kinds("sender", kinds.KEYWORD_ONLY)] * isinstance(self, ContractEntry)
        options += [kinds("type_arguments", kinds.KEYWORD_ONLY)] * bool(self.abi.generic_type_params)
        options += [kinds("options", kinds.VAR_KEYWORD)] * isinstance(self, ContractEntry)
        returned = "Simulation" if isinstance(self, ContractEntry) else _returns(self.abi)
        return inspect.Signature([*places, *options], return_annotation=_MoveText(returned))

    def __repr__(self) -> str:
        signature = short_addresses(f"{self._contract.id}::{self.abi.signature}")
        return f"<{_kind(self.abi)} function {visible(signature, 400)}>"

    def _repr_html_(self) -> str:
        title, *lines = (self.__doc__ or "").splitlines()
        paragraphs = "".join(f"<br>{escape(line)}" for line in lines if line)
        return literal(f"<code>{escape(title)}</code>{paragraphs}")

    # The part of the documentation that depends on the kind of function.
    _USAGE = "\nIt is neither a view nor an entry function, so a node cannot call it."

    def _documentation(self) -> str:
        arguments, signers = _parameters(self.abi), len(self.abi.params) - len(_parameters(self.abi))
        lines = [self.abi.signature, "", f"{_kind(self.abi).capitalize()} function of {self._contract.id}.", ""]
        lines.append(f"Arguments, by position: {', '.join(arguments) or 'none'}.")
        if self.abi.generic_type_params:
            lines.append(f"Type arguments, as type_arguments=[...]: {_generics(self.abi.generic_type_params)}.")
        if signers > 1:
            lines.append(f"Signers: sender=... and, as secondary_signers=[...], {signers - 1} more.")
        more = "..., " if arguments else ""
        parts = {"more": more, "end": more[:-2], "further": more and ", ..."}
        usage = self._USAGE.format(name=self.abi.name, returns=_returns(self.abi), **parts)
        return "\n".join(visible(line, _MAX_DOC) for line in [*lines, *usage.splitlines()])

    def _checked(self, kind: type[_Call], arguments: Sequence[Any], type_arguments: Sequence[str]) -> _Call:
        """Create a call; raise an error that quotes the function's signature if the arguments do not fit the ABI."""
        call, contract = kind(self.id, arguments, type_arguments=type_arguments), self._contract
        abis = contract.node.abis.at(contract._abi_version)  # noqa: SLF001 - of the same module
        try:
            encode_arguments(self.abi, call.type_arguments, call.arguments, abis, where=self.id)
        except (InputError, SchemaError) as error:
            raise type(error)(f"{error}; the signature is {cut_text(self.abi.signature, MAX_NAMED)}") from None
        return call


class ContractView(ContractFunction):
    """A view function of a contract.

    Attributes
    ----------
    id : str
        ``address::module::function``.
    abi : FunctionAbi
    """

    def __call__(self, *arguments: Any, type_arguments: Sequence[str] = ()) -> Any:
        """Run the view and return its value; a tuple if it returns several.

        Raises
        ------
        InputError, SchemaError
            If the arguments do not fit the function.
        NodeError, NodeUnreachable
            In the same cases as `Node.view`.
        """
        call = self.call(*arguments, type_arguments=type_arguments)
        return self._contract.node.view(call, ledger_version=self._contract.ledger_version).value

    def at(self, ledger_version: int, *arguments: Any, type_arguments: Sequence[str] = ()) -> Any:
        """Run the view at one ledger version and return its value.

        Raises
        ------
        InputError, SchemaError
            If the arguments do not fit the function at that version.
        NotFound
            If the module does not exist at that version.
        NodeError, NodeUnreachable
            In the same cases as `Node.view`.
        """
        return self._contract.at(ledger_version)[self.abi.name](*arguments, type_arguments=type_arguments)

    def over(
        self, versions: Versions | FindSteps, *arguments: Any, type_arguments: Sequence[str] = (), **options: Any
    ) -> pd.DataFrame:
        """Run the view at many ledger versions.

        Parameters
        ----------
        versions : version plan or FindSteps
            As in `fetch_views`.
        *arguments
            Arguments of the function, as Python values.
        type_arguments : sequence of str, optional
            Move types.
        **options
            ``flatten``, ``times``, ``typed`` and ``progress``, as in `fetch_views`.

        Returns
        -------
        DataFrame
            The frame that `fetch_views` returns, in which a failed read is a row.

        Raises
        ------
        InputError, SchemaError, NodeError, NodeUnreachable, LedgerChanged
            In the same cases as `fetch_views`.
        """
        # Imported on use: it imports pandas, which takes longer than showing a contract.
        from toolkit.client._fetch import fetch_views

        call = self.call(*arguments, type_arguments=type_arguments)
        return fetch_views(self._contract.node, call, versions, **options)

    def call(self, *arguments: Any, type_arguments: Sequence[str] = ()) -> ViewFunction:
        """Return the call without sending it.

        Raises
        ------
        InputError, SchemaError
            If the arguments do not fit the function.
        """
        return self._checked(ViewFunction, arguments, type_arguments)

    _USAGE = """Returns: {returns}.

{name}({end}) returns the value, {name}.at(ledger_version{further}) the value at a version,
{name}.over(versions{further}) a frame, {name}.call({end}) the ViewFunction."""


class ContractEntry(ContractFunction):
    """An entry function of a contract. It is simulated, never submitted.

    Attributes
    ----------
    id : str
        ``address::module::function``.
    abi : FunctionAbi
    """

    def __call__(
        self, *arguments: Any, sender: str | None = None, type_arguments: Sequence[str] = (), **options: Any
    ) -> Simulation:
        """Simulate the call at the node's head. Nothing is signed, submitted or stored.

        Raises
        ------
        InputError, SchemaError
            If the arguments do not fit the function, or an option is not a field of `SimulationRequest`.
        NotAtPast
            If the contract is pinned to a version: a node simulates at its head only.
        NodeError, NodeUnreachable
            In the same cases as `Node.simulate`.
        """
        contract = self._contract
        request = self.request(*arguments, sender=sender, type_arguments=type_arguments, **options)
        if contract.ledger_version is not None:
            raise not_at_past(contract.ledger_version)
        return simulate(contract.node, request)

    def request(
        self, *arguments: Any, sender: str | None = None, type_arguments: Sequence[str] = (), **options: Any
    ) -> SimulationRequest:
        """Return the request without sending it.

        Parameters
        ----------
        *arguments
            Python values, without the signers.
        sender : str
            Account that would send the transaction; no key is needed.
        type_arguments : sequence of str, optional
            Move types.
        **options
            Further fields of `SimulationRequest`, by name.

        Returns
        -------
        SimulationRequest

        Raises
        ------
        InputError, SchemaError
            If the arguments do not fit the function, or an option is not a field of `SimulationRequest`.
        """
        if sender is None:
            raise InputError(
                f"{self.id} is an entry function: pass sender=, the account that would send the transaction; "
                f"no key is needed. The signature is {self.abi.signature}"
            )
        return SimulationRequest(self.call(*arguments, type_arguments=type_arguments), sender=sender, **options)

    def call(self, *arguments: Any, type_arguments: Sequence[str] = ()) -> EntryFunction:
        """Return the payload without sending it.

        Raises
        ------
        InputError, SchemaError
            If the arguments do not fit the function.
        """
        return self._checked(EntryFunction, arguments, type_arguments)

    _USAGE = """Returns: a Simulation.

{name}({more}sender=...) simulates it at the node's head; nothing is signed, submitted or stored.
{name}.request({more}sender=...) returns the SimulationRequest,
{name}.call({end}) the EntryFunction."""


def contract_of(node: Node, module: str, ledger_version: int | None = None) -> Contract:
    """Return a module of a node as an object; see `Node.contract`."""
    wanted = _module_id(node, module, ledger_version)
    version = node.version_or_head(ledger_version)
    known = node.abis.at(version).lookup(wanted.address, wanted.name)
    if known.abi is not None:
        return Contract(node, known.abi, abi_version=version, ledger_version=ledger_version)
    if not known.is_absent:
        raise InputError(
            f"{node.name} does not offer the ABI of {wanted.wire}; call its functions with node.view and "
            "node.simulate, or pass the ABI to toolkit.connect(..., abis=...)"
        )
    raise absent_module(node, wanted, version)


def absent_module(node: Node, wanted: ModuleId, version: int) -> NotFound:
    """Return the error for a module that does not exist at a version, with the modules that may be meant."""
    similar = similar_modules(node, wanted.address, wanted.name, version)
    return NotFound(
        f"module {wanted.wire} does not exist at version {version:,} of {node.name}{similar}",
        status=_NOT_FOUND_STATUS,
        error_code="module_not_found",
    )


def _module_id(node: Node, module: Any, ledger_version: int | None) -> ModuleId:
    """Return the id of a module; raise InputError, with a suggestion, for an account or a function."""
    try:
        return ModuleId.parse(module)
    except InputError:
        if not isinstance(module, str) or not module or "<" in module or module.count("::") == 1:
            raise
    shown, similar = visible(module, 200), ""
    if "::" in module:
        write = visible("::".join(module.split("::")[:2]), 200)
        raise InputError(f"expected a module, got the function {shown!r}; write {write}")
    with suppress(InputError, NodeError, NodeUnreachable, SchemaError):
        similar = similar_modules(node, parse_address(module), "", node.version_or_head(ledger_version))
    raise InputError(f"expected a module, such as 0x1::coin, got {shown!r}{similar}")


def _method(contract: Contract, abi: FunctionAbi) -> ContractFunction:
    return (ContractView if abi.is_view else ContractEntry if abi.is_entry else ContractFunction)(contract, abi)


class _MoveText(str):
    """A Move type as an annotation, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return visible(self, 400)


# tables --------------------------------------------------------------------------------------------------------------


def module_content(contract: Contract) -> dict[str, Any]:
    """Return the functions, structs and errors of a contract as JSON values."""
    abi = contract.abi
    functions = [{"kind": _kind(one), "signature": one.signature} | msgspec.to_builtins(one) for one in _ordered(abi)]
    structs = [{"kind": _struct_kind(one)} | msgspec.to_builtins(one) for one in abi.structs]
    about = {"node": contract.node.name, "module": contract.id, "ledger_version": contract._abi_version}  # noqa: SLF001
    return about | {"functions": functions, "structs": structs, "errors": msgspec.to_builtins(abi.errors)}


def _sections(abi: ModuleAbi) -> list[tuple[str, tuple[str, ...], list[list[str]]]]:
    """Return the title, column names and rows of each nonempty table; omit the module's id from its own types."""
    functions = [[one.name, _kind(one), one.signature[len(one.name) :]] for one in _ordered(abi)]
    structs = [
        [f"{one.name}{_brackets(one.generic_type_params)}", _struct_kind(one), ", ".join(one.abilities), _members(one)]
        for one in abi.structs
    ]
    errors = [[str(one.code), one.name, " ".join(one.description.split())] for one in abi.errors]
    tables = [
        ("Functions", ("name", "kind", "signature"), functions),
        ("Structs", ("name", "kind", "abilities", "fields"), structs),
        ("Errors", ("code", "name", "description"), errors),
    ]
    own = f"{wire_address(abi.address)}::{abi.name}::"
    texts = [cell.replace(own, "") for _, _, rows in tables for row in rows for cell in row]
    short: Callable[[str], str] = distinct_addresses(texts)
    return [
        (title, head, [[visible(short(cell.replace(own, "")), _MAX_CELL) for cell in row] for row in rows])
        for title, head, rows in tables
        if rows
    ]


def _ordered(abi: ModuleAbi) -> list[FunctionAbi]:
    """Return the functions: views, then entry functions, then functions that only modules can call."""
    return sorted(abi.exposed_functions, key=lambda one: (not one.is_view, not one.is_entry, one.name))


def _kind(function: FunctionAbi) -> str:
    """Return the kind of a function: ``view``, ``entry``, ``private entry``, ``public``, ``friend``."""
    if function.is_view:
        return "view"
    if function.is_entry:
        return "entry" if function.visibility == "public" else f"{function.visibility} entry"
    return function.visibility


def _struct_kind(struct: StructAbi) -> str:
    if struct.is_event:
        return "event"
    if "key" in struct.abilities:
        return "enum resource" if struct.is_enum else "resource"
    return "enum" if struct.is_enum else "struct"


def _members(struct: StructAbi) -> str:
    """Return the fields of a struct, or the variants of an enum with their fields, as text."""
    if struct.variants:
        shown = [(one.name, _fields(one.fields)) for one in struct.variants]
        return ", ".join(f"{name} {{ {fields} }}" if fields else name for name, fields in shown)
    return _fields(struct.fields)


def _fields(fields: Sequence[FieldAbi]) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in fields)


def _generics(parameters: Sequence[GenericParam]) -> str:
    return ", ".join(
        f"{'phantom ' if one.is_phantom else ''}T{place}{': ' if one.constraints else ''}{' + '.join(one.constraints)}"
        for place, one in enumerate(parameters)
    )


def _brackets(parameters: Sequence[GenericParam]) -> str:
    return f"<{_generics(parameters)}>" if parameters else ""


def _parameters(function: FunctionAbi) -> list[str]:
    """Return the types of the arguments that a caller passes, as written in the ABI, even if they cannot be parsed."""
    return [text for text in function.params if text not in {"signer", "&signer"}]


def _returns(function: FunctionAbi) -> str:
    results = ", ".join(function.return_)
    return results if len(function.return_) == 1 else f"({results})" if results else "nothing"
