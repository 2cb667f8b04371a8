"""The cell magic ``%%contract``, which publishes the contract classes in a cell, or upgrades them."""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from toolkit import embedded
from toolkit._present.messages import did_you_mean
from toolkit._present.text import listed
from toolkit.client._contracts import Contract
from toolkit.client._http import embedded_ledger
from toolkit.client._node import connect
from toolkit.embedded._contract import next_revision
from toolkit.errors import ContractError, InputError
from toolkit.teaching._answers import CELL_SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.embedded import Ledger, Module


_MODULE = "contract_cell"


def add_contract_cell(shell: Any) -> None:
    """Register ``%%contract`` in an IPython shell, for ``%load_ext toolkit``."""

    def contract(line: str, cell: str) -> Contract:
        """Publish the contract class in the cell on a ledger, and return the contract as an object.

        ``%%contract NAME`` uses the ledger in the variable NAME; without a name, it uses the notebook's only ledger, or
        else the ledger of ``toolkit.connect()``. The contract is assigned to a variable with the name of its module.
        Running the cell again with different code upgrades the contract to its next revision. Names from
        toolkit.embedded, such as Module, entry, view and u64, need no import, and types defined in the class need no
        quotes. The published code sees the notebook's variables as they were when the cell ran.
        """
        return _run(shell, f"%%contract {line}", cell, _ledger(shell.user_ns, line.strip()))

    shell.register_magic_function(contract, "cell", "contract")


def _ledger(variables: Mapping[str, Any], name: str) -> Ledger:
    """Return the ledger in a variable; without a name, the only ledger, or else that of ``toolkit.connect()``."""
    own = {variable: value for variable, value in variables.items() if not variable.startswith("_")}
    ledgers = {variable: value for variable, value in own.items() if isinstance(value, embedded.Ledger)}
    if name:
        if name not in variables:
            hint = did_you_mean(name, list(ledgers)) or f"write {name} = Ledger()"
            raise InputError(f"the notebook has no variable {name}; {hint}")
        if name not in ledgers:
            raise InputError(f"{name} must be a toolkit.embedded.Ledger, got {type(variables[name]).__name__}")
        return ledgers[name]
    if len({id(ledger) for ledger in ledgers.values()}) > 1:
        several = f"the notebook has {len(ledgers)} ledgers: {listed(list(ledgers), 6)}"
        raise InputError(f"{several}; name the one to use, such as %%contract {next(iter(ledgers))}")
    return next(iter(ledgers.values()), None) or embedded_ledger()


def contracts_in(source: str, file: str, ledger: Ledger) -> list[type[Module]]:
    """Return the contract classes in a cell's source, numbered as revisions of the ledger's contracts.

    Parameters
    ----------
    source : str
        Code that uses only its own names and those of toolkit.embedded.
    file : str
        Name for the source in tracebacks.
    """
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    return _contracts(source, file, {}, ledger)[0]


def _contracts(
    source: str, file: str, variables: Mapping[str, Any], ledger: Ledger
) -> tuple[list[type[Module]], dict[str, Any]]:
    """Run a cell's source in a separate module; return its contracts and all new names.

    A contract that is already published with different code becomes its next revision.
    """
    tree = ast.parse(source, file)
    module = ModuleType(_MODULE)
    names = {name: getattr(embedded, name) for name in dir(embedded)}
    vars(module).update(names | dict(variables) | {"__name__": _MODULE})
    before = dict(vars(module))
    code = compile(source, file, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    published = ledger.chain.code_at(ledger.head).modules

    def revision(address: str, name: str) -> int:
        former = published.get((address, name))
        return 1 if former is None else former.revision + (not same_code(former.contract, source))

    token = next_revision.set(revision)
    sys.modules[_MODULE] = module  # where annotations find the names of the cell
    try:
        exec(code, vars(module))  # noqa: S102 - a cell of the user's own notebook
    finally:
        next_revision.reset(token)
        del sys.modules[_MODULE]
    new = {name: value for name, value in vars(module).items() if before.get(name) is not value}
    classes = [new.get(one.name) for one in tree.body if isinstance(one, ast.ClassDef)]
    contracts = [one for one in classes if isinstance(one, type) and issubclass(one, embedded.Module)]
    for one in contracts:
        setattr(one, CELL_SOURCE, source)
    return contracts, new


def _run(shell: Any, head: str, cell: str, ledger: Ledger) -> Contract:
    """Run a cell, publish its contract classes, assign the contracts to variables, and return the last one."""
    source = f"# {head}\n{shell.transform_cell(cell)}"  # so that line numbers in errors count from the top of the cell
    number = len(shell.user_ns.get("In", ())) - 1
    file = shell.compile.cache(source, number, raw_code=f"{head}\n{cell}")
    found, new = _contracts(source, file, shell.user_ns, ledger)
    if not found:
        raise InputError("the cell defines no contract; expected a class such as Counter(Module, address='0xc0de')")
    names = [contract.definition.name for contract in found]
    if taken := [name for name in names if not isinstance(shell.user_ns.get(name), Contract | None)]:
        raise InputError(f"the contract would replace the variable {taken[0]}; rename the variable or the class")
    lines = {one.name: one.lineno for one in ast.parse(source).body if isinstance(one, ast.ClassDef)}
    for address in dict.fromkeys(contract.definition.address for contract in found):
        _publish(ledger, [one for one in found if one.definition.address == address], lines)
    node = connect(ledger)
    contracts = {name: node.contract(one.definition.wire_id) for name, one in zip(names, found, strict=True)}
    shell.user_ns.update(new | contracts)
    return contracts[names[-1]]


def is_published(ledger: Ledger, contract: type[Module]) -> bool:
    """Return whether a contract is published with the source of its cell."""
    definition = contract.definition
    before = ledger.chain.code_at(ledger.head).modules.get((definition.address, definition.name))
    return before is not None and same_code(before.contract, vars(contract)[CELL_SOURCE])


def same_code(contract: type[Module], source: str) -> bool:
    """Return whether a contract comes from a cell with this source, ignoring comments and formatting."""
    own = vars(contract).get(CELL_SOURCE)
    return own is not None and ast.dump(ast.parse(own)) == ast.dump(ast.parse(source))


def _publish(ledger: Ledger, contracts: list[type[Module]], lines: Mapping[str, int]) -> None:
    """Publish those contracts at one address whose code is new, and print the outcome for each contract."""
    published = ledger.chain.code_at(ledger.head).modules
    changed = []
    for contract in contracts:
        if is_published(ledger, contract):
            print(f"{contract.definition.wire_id} is already published with this code")  # noqa: T201 - the output of the cell
        else:
            changed.append(contract)
    if not changed:
        return
    try:
        done = ledger.publish(*changed)
    except InputError as error:
        if isinstance(error, ContractError):  # its message already includes line numbers
            raise
        raise InputError(f"{error} (line {lines[changed[0].__name__]})") from None
    for contract in changed:
        definition = contract.definition
        what = "upgraded to" if (definition.address, definition.name) in published else "published as"
        text = f"{definition.wire_id} is {what} revision {definition.revision} at version {done.version:,}"
        print(text)  # noqa: T201 - the output of the cell
