"""Checks the arguments of the client's public functions, and calls against the code on the ledger.

A call is checked against the modules at the newest version to be read, which a sweep looks up anyway. Only if the call
does not fit them are the modules at other versions looked up, because the call may fit an older version.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from toolkit._present.messages import MAX_NAMED, cut_text, did_you_mean, shorten
from toolkit._present.text import listed, visible
from toolkit.client._abis import AbisAt, ModuleLookup, encode_arguments, first_of_each
from toolkit.client._node_errors import extended
from toolkit.errors import InputError, InvalidRequest, NodeError, NodeUnreachable, SchemaError
from toolkit.move import FunctionAbi, ModuleAbi, TypeTag, parse_address, parse_type_tag
from toolkit.move._ids import ModuleId, wire_address
from toolkit.move._type_tags import Primitive, StructTag, Vector, wire_type
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction
from toolkit.wire._aborts import VM_STATUS_CODES
from toolkit.wire._models import function_id

if TYPE_CHECKING:
    from toolkit.client._reads import Reads


# Characters of an argument in the name of a call; an address has 66.
_MAX_ARGUMENT = 80
_MAX_NAME = 80  # characters of a name that is not trusted
_NOT_A_VIEW = VM_STATUS_CODES["INVALID_MAIN_FUNCTION_SIGNATURE"]  # an answer to a view request
_PACKAGES = "0x1::code::PackageRegistry"
_UNKNOWN_TYPES = (
    "the types of the arguments are unknown, because the node does not offer the module; pass u64 and wider integers "
    'as text, such as "5", or the ABI to toolkit.connect(..., abis=...)'
)
# Maximum number of functions, structs or modules that a message lists.
_MAX_LISTED = 20
# Maximum number of calls that a message lists: one mistake may be in every call of a grid.
_MAX_PROBLEMS = 20


def check_encoding(encoding: object) -> None:
    """Raise InputError unless the value is ``json`` or ``bcs``."""
    if not isinstance(encoding, str) or encoding not in {"json", "bcs"}:
        raise InputError(f"encoding must be 'json' or 'bcs', got {encoding!r:.80}")


def check_count(name: str, value: Any, maximum: int) -> int:
    """Return a whole number from 1 to `maximum` as an int; raise InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= maximum:
        raise InputError(f"{name} must be a whole number from 1 to {maximum:,}, got {value!r:.80}")
    return int(value)


def check_limit(name: str, value: Any, maximum: float, unit: str) -> float:
    """Return a number above 0 and up to `maximum` as a float; raise InputError for anything else."""
    number: Any = None if isinstance(value, bool) or not isinstance(value, Real) else value
    if number is None or not 0 < number <= maximum:  # false for nan too
        raise InputError(f"{name} must be a number above 0 and up to {maximum:,.0f} {unit}, got {value!r:.80}")
    return float(number)


def check_texts(**given: object) -> None:
    """Raise InputError unless all values are text or None; the message does not show them, as they may be secret."""
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise InputError(f"{name} must be a str, got {type(value).__name__}")


def check_abis(abis: Any) -> dict[tuple[str, str], ModuleAbi]:
    """Return ABIs by (address, module name); raise InputError if they are not a mapping of that kind."""
    given = {} if abis is None else abis
    if not isinstance(given, Mapping) or not all(
        isinstance(key, tuple) and [type(part) for part in key] == [str, str] and isinstance(abi, ModuleAbi)
        for key, abi in given.items()
    ):
        raise InputError(
            "abis must be a mapping of (address, module name) to ModuleAbi, as returned by "
            f"toolkit.move.decode_module_abi; got {abis!r:.80}"
        )
    return dict(given)


def named_calls(calls: Any) -> dict[str, ViewFunction]:
    """Return view calls by name: the caller's name or the function id, with arguments if it occurs more than once.

    The function ids of a sequence contain short addresses, because they become part of column names.
    """
    if isinstance(calls, str | ViewFunction):
        call = _view("calls", calls)
        return {call.function: call}
    if isinstance(calls, Mapping):
        if wrong := [name for name in calls if not isinstance(name, str)]:
            raise InputError(f"call names must be strings, got {wrong[0]!r:.80}")
        named = {name: _view(f"call {name!r:.80}", call) for name, call in calls.items()}
    else:
        if isinstance(calls, bytes) or not isinstance(calls, Iterable):
            _view("calls", calls)
        listed = [_view(f"call {place}", given) for place, given in enumerate(calls)]
        often, named = Counter(call.function for call in listed), {}
        for place, call in enumerate(listed):
            name = function_id(call.function).wire if often[call.function] == 1 else _with_arguments(call)
            named[name if name not in named else f"{name} #{place}"] = call
    if not named:
        raise InputError("fetch_views needs at least one call")
    return named


def _with_arguments(call: ViewFunction) -> str:
    """Return a call as a user would write it; long arguments are truncated."""
    types = f"<{', '.join(call.type_arguments)}>" if call.type_arguments else ""
    texts = [one if isinstance(one, str) else json.dumps(one, default=shorten) for one in call.arguments]
    return f"{function_id(call.function).wire}{types}({', '.join(visible(text, _MAX_ARGUMENT) for text in texts)})"


def listed_keys(keys: Any) -> list[Any]:
    """Return the keys of table items as a list; raise InputError for a single key."""
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        raise InputError(f"keys must be a list of keys, got {keys!r:.80}; write one key as [key]")
    return list(keys)


def listed_addresses(address: Any) -> list[str]:
    """Return one or more addresses as a list, each in the canonical form that frames use."""
    if isinstance(address, bytes | Mapping) or not isinstance(address, Iterable):
        raise InputError(f"address must be a str or a list of str, got {address!r:.80}")
    return [parse_address(one) for one in ([address] if isinstance(address, str) else address)]


def struct_tag(name: str, text: Any) -> StructTag:
    """Return the type of a resource or event, which is a struct or an enum."""
    tag = None if isinstance(text, str) and text.isidentifier() else parse_type_tag(text)
    if not isinstance(tag, StructTag):
        raise InputError(f"{name} must be a struct such as 0x1::account::Account, got {text!r:.80}")
    return tag


def event_tag(text: Any) -> TypeTag:
    """Return the type of an event: a struct, or any other type that can be stored, such as ``u64``.

    Raises
    ------
    InputError
        If `text` is not the type of a value.
    """
    tag = parse_type_tag(text)
    if isinstance(tag, Primitive | Vector | StructTag) and str(tag) != "signer":
        return tag
    raise InputError(f"event_type must be the type of a value, such as 0x1::coin::CoinDeposit or u64, got {text!r:.80}")


def listed_requests(requests: Any) -> list[SimulationRequest]:
    """Return simulation requests as a list; a single request becomes a list of one."""
    from toolkit.wire._models import WireModel

    if isinstance(requests, SimulationRequest):
        return [requests]
    if isinstance(requests, str | bytes | Mapping | WireModel) or not isinstance(requests, Iterable):
        raise InputError(f"requests must be a list of toolkit.SimulationRequest, got {requests!r:.80}")
    listed = list(requests)
    for place, one in enumerate(listed):
        if not isinstance(one, SimulationRequest):
            got = type(one).__name__
            raise InputError(f"request {place}: expected toolkit.SimulationRequest(payload, sender=...), got {got}")
    return listed


# by the code that is called ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why a call does not fit the code at a version; `absent` is the module if it does not exist."""

    text: str
    absent: ModuleId | None = None


def readable(versions: Sequence[int], *, oldest: int, head: int) -> Sequence[int]:
    """Return the versions of a plan that a node has, sorted and without duplicates."""
    if isinstance(versions, range):
        rising = versions if versions.step > 0 else versions[::-1]
        return rising[bisect_left(rising, oldest) : bisect_right(rising, head)]
    return sorted({version for version in versions if oldest <= version <= head})


def check_calls(node: Reads, calls: Mapping[str, ViewFunction], versions: Sequence[int]) -> None:
    """Raise an InputError that lists every call that fits the code at none of the sorted versions."""
    found = {name: problem for name, call in calls.items() if (problem := call_problem(node, call, versions))}
    if found:
        raise InputError(*(found.values() if len(calls) == 1 else problem_lines(found, len(calls))))


def problem_lines(problems: Mapping[str, str], of: int) -> list[str]:
    """Return the lines of a message about calls that cannot be made: their number, then one line per call."""
    lines = [f"call {name!r}: {text}" for name, text in islice(problems.items(), _MAX_PROBLEMS)]
    more = [f"and {len(problems) - len(lines):,} more"] if len(problems) > len(lines) else []
    return [f"{len(problems):,} of {of:,} calls cannot be made:", *lines, *more]


def call_problem(
    node: Reads, call: ViewFunction | EntryFunction, versions: Sequence[int], *, arguments: bool = True
) -> str | None:
    """Return why a call does not fit the code at the given versions or at the head.

    Parameters
    ----------
    node : Node
    call : ViewFunction or EntryFunction
    versions : sequence of int
        Sorted versions that the node has.
    arguments : bool, default True
        Whether to check the arguments too, and not only the function.

    Returns
    -------
    str or None
        The problem at the newest version, or at the head if the module does not exist at the newest version. None if
        the call fits the code at one of the versions or at the head, or if this is not known: the node does not offer
        modules, a lookup fails, or `versions` is empty.
    """

    def problem(abis: AbisAt) -> _Problem | None:
        found = function_of(call, abis)
        if isinstance(found, _Problem):
            runs = found.absent is None and isinstance(call, ViewFunction) and _answers(node, call, abis.version)
            return None if runs else found
        if found is None or not arguments:
            return None
        try:
            encode_arguments(found, call.type_arguments, call.arguments, abis, where=function_id(call.function).wire)
        except InputError as error:
            return _Problem(str(error))
        return None

    return _problem_of_all(node, problem, versions)


def check_struct(node: Reads, name: str, tag: TypeTag, versions: Sequence[int]) -> None:
    """Raise InputError if the type of a resource or event exists at none of the given sorted versions.

    Without this check, a misspelt event type would produce an empty frame after all pages have been read. Only the
    type's own module is looked up. A type argument is checked only if it belongs to the same module.
    """
    outer = next(structs_of(tag), None)
    if outer is None:
        return

    def problem(abis: AbisAt) -> _Problem | None:
        abis.lookup(outer.address, outer.module)
        found = next((one for struct in structs_of(tag) if (one := unknown_struct(struct, abis)) is not None), None)
        return found and _Problem(f"{name}: {found.text}", found.absent)

    if (text := _problem_of_all(node, problem, versions)) is not None:
        raise InputError(text)


def _problem_of_all(node: Reads, problem: Callable[[AbisAt], _Problem | None], versions: Sequence[int]) -> str | None:
    """Return the problem at the newest version or the head; None if any version or the head has none, or if unknown."""
    if not versions:
        return None
    try:
        abis = node.abis.at(versions[-1])
        if (newest := problem(abis)) is None:
            return None
        starts = {at for key in abis.digests for at in first_of_each(partial(node.abis.digest, key), versions)}
        if newest.absent is not None:
            starts |= {*_code_changes(node, newest.absent, versions)}
        # From the last of these versions on, the modules are the same as at the newest version.
        if any(problem(node.abis.at(at)) is None for at in sorted(starts)[-2::-1]):
            return None
        head = max(node.ledger().version, versions[-1])
        at_head = problem(node.abis.at(head)) if head > versions[-1] else newest
        if at_head is None:
            return None  # nothing is misspelt: the versions are older than the code
        found, version = (at_head, head) if newest.absent else (newest, versions[-1])
        text = _described(node, found, version)
    except (NodeError, NodeUnreachable, SchemaError):
        return None  # the reads report it, row by row
    more = "" if len(versions) == 1 else f"; invalid at all {len(versions):,} versions to read"
    return f"{text} (checked against the code at version {version:,}{more})"


def entry_function(node: Reads, call: EntryFunction, abis: AbisAt) -> FunctionAbi | None:
    """Return the ABI of an entry function, None if the node offers no ABIs; raise InputError if it does not exist."""
    found = function_of(call, abis)
    if isinstance(found, _Problem):
        text = _described(node, found, abis.version)
        raise InputError(f"{text} (checked against the code at version {abis.version:,})")
    return found


def explained(
    node: Reads, call: ViewFunction | EntryFunction, ledger_version: int | None, error: InvalidRequest
) -> InvalidRequest:
    """Return the error of a call; the message lists the functions that exist, or says that no types are known."""
    version = error.ledger.version if ledger_version is None and error.ledger else ledger_version
    text = None
    if version is not None and error.vm_error_code in {None, _NOT_A_VIEW}:
        with suppress(NodeError, NodeUnreachable, SchemaError):
            abis = node.abis.at(version)
            text = missing_function(node, call, abis)
            if text is None and call.arguments and function_of(call, abis) is None:
                text = _UNKNOWN_TYPES
    return error if text is None else extended(error, text)


def missing_function(node: Reads, call: ViewFunction | EntryFunction, abis: AbisAt) -> str | None:
    """Return why the function of a call cannot be called at a version; None if it can, or if this is not known."""
    found = function_of(call, abis)
    return _described(node, found, abis.version) if isinstance(found, _Problem) else None


def _described(node: Reads, problem: _Problem, version: int) -> str:
    """Return the text of a problem; if a module is absent, the text lists the modules of its account."""
    absent = problem.absent
    return problem.text + ("" if absent is None else similar_modules(node, absent.address, absent.name, version))


def function_of(call: ViewFunction | EntryFunction, abis: AbisAt) -> _Problem | FunctionAbi | None:
    """Return the ABI of a call's function, or why it cannot be called; None if the node does not offer its module."""
    function = function_id(call.function)
    known = abis.lookup(function.address, function.module)
    if known.abi is None:
        return _absent(function.wire, function.module_id, known)
    kind, found = "view" if isinstance(call, ViewFunction) else "entry", known.abi.function(function.name)
    # Nodes refuse what is not a view; old ones do not say which functions are views, but a view returns something.
    if found is not None and (found.is_entry if kind == "entry" else found.return_ or not found.is_entry):
        return found
    names = [one.name for one in known.abi.exposed_functions if getattr(one, f"is_{kind}")]
    if found is None:
        what, misspelt, module = f"the module has no function `{function.name}`", function.name, "it"
    else:
        what, misspelt, module = "this is not an entry function", "", "its module"
        if found.is_view:
            what = "this is a view function, not an entry function"
        if kind == "view":
            what = "this is an entry function, not a view function: simulate it"
    return _Problem(f"{function.wire}: {what}" + _choices(misspelt, f"{kind} functions", names, of=module))


def _absent(what: str, module: ModuleId, known: ModuleLookup) -> _Problem | None:
    """Return a problem if a module is known not to exist, else None, such as on a node that does not offer modules."""
    return _Problem(f"{what}: the module {module.wire} does not exist", module) if known.is_absent else None


def _choices(name: str, what: str, names: Sequence[str], *, of: str) -> str:
    """Return the end of a message about a name: similar names, and all available names."""
    names = [visible(one, _MAX_NAME) for one in names]
    meant = did_you_mean(name, names)
    if not names:
        return f"; {of} has no {what}"
    which = f"{of} has the {what} {listed(names, _MAX_LISTED)}"
    return f"; {meant} {which[:1].upper()}{which[1:]}" if meant else f"; {which}"


def _answers(node: Reads, call: ViewFunction, version: int) -> bool:
    """Return whether a node runs a view function that its module's ABI does not list, such as a private function."""
    try:
        node.one(node.prepare_view(call, version))
    except InputError:  # it exists, and its arguments do not fit
        return False
    except InvalidRequest as error:
        return error.vm_error_code not in {None, _NOT_A_VIEW}
    return True


def structs_of(tag: TypeTag) -> Iterator[StructTag]:
    """Yield the structs of a type, including its type arguments."""
    if isinstance(tag, Vector):
        yield from structs_of(tag.element)
    elif isinstance(tag, StructTag):
        yield tag
        for inner in tag.type_arguments:
            yield from structs_of(inner)


def unknown_struct(tag: StructTag, abis: AbisAt) -> _Problem | None:
    """Return why a struct does not exist; None if it does, or if its module was not looked up."""
    module = ModuleId(tag.address, tag.module)
    if (tag.address, tag.module) not in abis.digests:
        return None
    known, shown = abis.lookup(tag.address, tag.module), cut_text(wire_type(tag), MAX_NAMED)
    if known.abi is None:
        return _absent(shown, module, known)
    if known.abi.struct(tag.name) is not None:
        return None
    names = [struct.name for struct in known.abi.structs]
    text = f"{shown}: the module has no struct `{cut_text(tag.name, MAX_NAMED)}`"
    if known.abi.function(tag.name) is not None:
        text += ", only a function of this name"
    return _Problem(text + _choices(tag.name, "structs", names, of="it"))


def similar_modules(node: Reads, address: str, name: str, version: int) -> str:
    """Return the end of a message about a missing module: the modules of its account, if the node lists them."""
    try:
        first_page, _ = node.account_page(address, "modules", version)
        names = [one.abi.name for one in first_page if one.abi is not None]
        return _choices(name, "modules", names, of=wire_address(address))
    except (NodeError, NodeUnreachable, SchemaError):
        return ""


def _code_changes(node: Reads, module: ModuleId, versions: Sequence[int]) -> list[int]:
    """Return the versions at which the packages of a module's account change, if the node can delete modules.

    Only on such a node can a module that exists at neither end of a plan have existed in between; public networks
    cannot delete modules. The module is looked up at the returned versions so that the ABI store knows it there.
    """
    code = node.abis.at(versions[-1]).module_abi("0x1", "code")
    if code is None or code.function("retract_module") is None:
        return []

    @cache
    def packages(version: int) -> str:
        return repr(node.resource_json(module.address, _PACKAGES, version))

    changes = first_of_each(packages, versions)
    for at in changes:
        node.abis.read(module.address, module.name, at)
    return changes


def _view(place: str, call: Any) -> ViewFunction:
    """Return a view call; a string names a function that is called without arguments."""
    if isinstance(call, str):
        try:
            return ViewFunction(call)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    if not isinstance(call, ViewFunction):
        hint = "; only Study takes calls as mappings" if isinstance(call, Mapping) else ""
        raise InputError(
            f"{place}: expected '0x1::module::function' or toolkit.ViewFunction('0x1::module::function', [...]), "
            f"got {call!r:.80}{hint}"
        )
    return call
