"""Reads of state at the head, at a version or over a version plan: their fields, their form, and the view form."""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import pandas as pd
import traitlets
from msgspec.structs import replace
from traitlets import Instance

from toolkit._present.text import both, plural, version_span
from toolkit.client._accounts import returned_asset
from toolkit.client._arguments import missing_function
from toolkit.client._fetch import block_times, fetch_views, resolved_plan
from toolkit.client._simulation import abort_parts
from toolkit.client._versions import (
    FindSteps,
    VersionPlan,
    Versions,
    as_version,
    listed_versions,
    plain_versions,
    resolve_versions,
)
from toolkit.client._warnings import collected_warnings
from toolkit.errors import FailedReadsWarning, InputError, InvalidRequest, NodeError, ToolkitError
from toolkit.move import FunctionId, parse_type_tag
from toolkit.move._type_tags import wire_type
from toolkit.widgets import _functions as functions
from toolkit.widgets._changes import Known
from toolkit.widgets._fields import LEAST_VERSION, Findings, from_start, has_times, read_version, unreadable, validated
from toolkit.widgets._form import Builder
from toolkit.widgets._html import has_model_gas, origin
from toolkit.widgets._messages import About, Group, Page, Part, Programs, mono, select
from toolkit.widgets._programs import connect_line, curl_lines, format_expression, request_as_study
from toolkit.widgets._results import brief, failures, frame_outcome, frame_pages, version_words, view_pages
from toolkit.widgets._state import Answer, Answered, FormState
from toolkit.wire import ViewFunction
from toolkit.wire._aborts import Abort

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from toolkit.client._calls import ViewResult
    from toolkit.client._node import Node


READ_ACTIONS = (("read", "Read"),)
_MANY = "0:-1/50 for 50 of all, 100:200 for each; also dates, 2026-05-01..2026-06-01/20, or 100, 200, 300"
_ABORTED, _MISSING_DATA, _ARITHMETIC_ERROR = 4016, 4008, 4017  # status codes of the VM
_ANY_HEAD = 10**20  # for checks without a node: above all that can be typed


# which versions ------------------------------------------------------------------------------------------------------


_AT = {"head": "the head, the latest version", "version": "one version", "plan": "many versions"}
VERSION_FIELDS: tuple[tuple[str, Part], ...] = (
    ("at", select("Read at", _AT)),
    ("version", mono("Version", "a version or a date; -1 is the head", ("at", ("version",)), placeholder="4000")),
    ("plan", mono("Versions", _MANY, ("at", ("plan",)), placeholder=functions.SAMPLE, hinted=True)),
)


class ViewDraft(functions.FunctionDraft, frozen=True):
    """Entries for a view."""

    @property
    def kind(self) -> functions.FunctionKind:
        """The kind of functions that the form accepts."""
        return "view"


def read_versions(draft: functions.ValuesDraft, found: Findings) -> Versions | None:
    """Return the versions that a draft selects: None for the head, an int for one version, or a version plan.

    Parameters
    ----------
    draft : ValuesDraft
    found : Findings
        Receives errors and missing entries, including the messages of the plan's parser.
    """
    if draft.at == "head":
        return None
    if draft.at == "version":
        return read_version(draft.version, found)
    typed = draft.plan.strip()
    if not typed:
        found.missing["plan"] = f"enter versions, such as {functions.SAMPLE}"
        return None
    return read_plan(typed, found, "plan")


def read_plan(typed: str, found: Findings, path: str) -> Versions | None:
    """Return the plan that was typed into a field, or None; a note says what was understood and what is not there."""
    ledger = found.ledger
    plan = validated(partial(parse_plan, typed), found, path)
    notes: Sequence[str] = ()
    if isinstance(plan, list):
        missing = (unreadable(version, ledger) for version in plan)
        known = plan if ledger is None else [from_start(version, ledger) for version in plan]
        notes = [f"= {_listed(known)}", *filter(None, missing)][:2]
    elif plan is not None and ledger is not None:
        resolved = found.plans.get(typed)
        times_alone = ".." not in typed and has_times(typed)
        if ".." not in typed and not times_alone:  # times are looked up when the field is left
            resolve = partial(resolve_versions, plan, head=ledger.version, oldest=ledger.oldest_version)
            resolved = validated(resolve, found, path)
            if resolved is None:
                return None
        if resolved is not None:
            words = _listed(resolved.versions) if times_alone else _span(resolved.versions)
            notes = [f"= {words}", *resolved.notes]
    if notes:
        found.notes[path] = "; ".join(notes)
    return plan


def _listed(versions: Sequence[int]) -> str:
    """Return some versions, one by one."""
    return f"version{'s' * (len(versions) > 1)} {both([f'{version:,}' for version in versions])}"


def _span(versions: Sequence[int]) -> str:
    """Return how many versions there are, the first and the last; "of" if some in between are left out."""
    first, last, count = versions[0], versions[-1], len(versions)
    if first == last or count <= last - first:
        return f"{count:,} of " * (first != last) + version_span(first, last)
    return f"{count:,} versions, {first:,} to {last:,}"


def parse_plan(typed: str) -> Versions:
    """Check the text of a version plan, and return it without thousands marks, or as a list if it lists versions."""
    listed = listed_versions(typed)
    if listed is not None:
        numbers = [as_version(one, least=LEAST_VERSION) for one in listed if isinstance(one, int)]
        return numbers if len(numbers) == len(listed) else plain_versions(typed)
    plan = VersionPlan.parse(typed)
    first, last = plan.first, plan.last
    # The length of such a plan does not depend on the head, so it is checked before a node is asked.
    if isinstance(first, int) and isinstance(last, int) and (first < 0) == (last < 0):
        resolve_versions(plan, head=_ANY_HEAD)
    return plain_versions(typed)


def checked_versions(versions: Any) -> Versions | None:
    """Check versions set from Python: None, a string, an int, or several ints.

    Raises
    ------
    InputError
        If `versions` has another type, is empty, or contains a value that is not a whole number.
    """
    if versions is None or isinstance(versions, str):
        return versions
    if isinstance(versions, FindSteps):
        raise InputError("versions: this form cannot search for steps; use GasExplorer or toolkit.fetch_views")
    if isinstance(versions, range) and len(versions) > 1 and versions.step > 0 and versions[0] >= 0:
        return f"{versions[0]}:{versions[-1]}:{versions.step}"
    try:
        if not hasattr(versions, "__iter__"):
            return as_version(versions, least=LEAST_VERSION)
        listed = (
            [] if isinstance(versions, bytes | dict) else [as_version(one, least=LEAST_VERSION) for one in versions]
        )
    except InputError as error:
        raise InputError(f"versions: {error}") from None
    if not listed:
        raise InputError(f"versions: expected None, one or more versions, or a version plan, got {versions!r:.80}")
    return listed


def write_versions(versions: Any) -> dict[str, Any]:
    """Return the draft for versions: None for the head, an int for one version, or a version plan."""
    if versions is None:
        return {"at": "head"}
    if isinstance(versions, str):
        return {"at": "plan", "plan": versions}
    if hasattr(versions, "__index__"):
        return {"at": "version", "version": str(int(versions))}
    listed = ", ".join(str(one) for one in versions)
    return {"at": "plan", "plan": listed if "," in listed else f"{listed}:{listed}"}


# the form ------------------------------------------------------------------------------------------------------------


class Wanted(NamedTuple):
    """What a form reads. The result of a form is out of date once its entries describe another read.

    Attributes
    ----------
    request : ViewFunction or TableItemRequest
        The view, or the key and types of the item.
    versions : version plan, int or None
        The result of `read_versions`.
    place : str
        Handle of the table; empty for a view.
    """

    request: Any
    versions: Versions | None
    place: str = ""

    @property
    def single(self) -> bool:
        """Whether a single version is read."""
        return self.versions is None or isinstance(self.versions, int)


@dataclass(frozen=True, kw_only=True)
class Reading(Answer):
    """The result of a read.

    Attributes
    ----------
    result : object
        A `ViewResult` or `TableItem`; for several versions, a DataFrame.
    asked : Wanted
    time : datetime or None
        Time of the version that was read; None if it is not known or several versions were read.
    notes : tuple of str
        Notes about clipped versions, and warnings.
    unavailable : bool
        Whether the reads without a result are of versions whose code does not have the function yet.
    """

    time: datetime | None = None
    notes: tuple[str, ...] = ()
    unavailable: bool = False


@dataclass(frozen=True, kw_only=True)
class ReadState(FormState):
    """The state of a form that reads.

    Attributes
    ----------
    versions : version plan, int or None
        The versions of the last valid entries.
    place : str
        Handle of the table; empty for a view.
    """

    versions: Versions | None = None
    place: str = ""

    @property
    def wanted(self) -> Wanted:
        """What the entries ask for."""
        return Wanted(self.request, self.versions, self.place)

    def with_versions(self, found: Findings) -> Self:
        """Return the state with the versions that its entries select; invalid ones leave those of before."""
        mine = Findings(ledger=self.ledger, plans=self.plans)
        versions = read_versions(self.entries, mine)
        found.add(mine)
        return dataclasses.replace(self, versions=versions) if mine.good else self

    def entered(self, name: str, value: Any) -> Any:
        """Return the entries after a trait was set."""
        if name == "versions":
            return replace(self.entries, **write_versions(value))
        return super().entered(name, value)

    def trait(self, name: str) -> Any:
        """Return the value of a trait; invalid `versions` are returned as typed."""
        if name != "versions":
            return super().trait(name)
        found, draft = Findings(ledger=self.ledger, plans=self.plans), self.entries
        versions = read_versions(draft, found)
        return versions if found.good else getattr(draft, draft.at)


class ReadBuilder(Builder):
    """A form that reads state at the head, at a version or over a version plan. Builders define the reads."""

    versions: Any = traitlets.Any(allow_none=True)
    result: Any = traitlets.Any(allow_none=True, read_only=True)

    # what a builder defines ------------------------------------------------------------------------------

    def _read_one(self, node: Node, wanted: Wanted, version: int | None) -> Any:
        """Return the result at a version, or at the head for None. Must not touch traits: it may run in a thread."""
        raise NotImplementedError

    def _read_many(self, node: Node, wanted: Wanted, versions: Sequence[int]) -> pd.DataFrame:
        """Return a frame over versions. Must not touch traits: it may run in a thread."""
        raise NotImplementedError

    def _one_pages(self, reading: Reading) -> list[Page]:
        """Return the pages of a single result."""
        raise NotImplementedError

    def _compared(self, wanted: Wanted, result: Any) -> dict[str, Any]:
        """Return the facts in which a single result is compared with others; empty if it is not compared."""
        raise NotImplementedError

    def _outcome(self, reading: Reading) -> tuple[str, str]:
        """Return the kind of message and the words that describe the outcome of a read."""
        return frame_outcome(reading.result, unavailable=reading.unavailable)

    def _is_unavailable(self, _node: Node, _wanted: Wanted, _frame: pd.DataFrame) -> bool:
        """Return whether all failed reads are of versions whose code does not have what is read yet."""
        return False

    def _cause_of(self, error: ToolkitError) -> str:
        """Return the path of the field that caused an error, or ``node`` if no field did."""
        raise NotImplementedError

    def _amount(self, _wanted: Wanted) -> tuple[Known, str | None]:
        """Return what is known of assets and names, and the asset whose amount is read, if any."""
        return Known(names=self._now.names), None

    # reading ---------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Check the entries, read the state and show the result; sets `errors` and `result`."""
        with self._busy_while("Reading"):
            wanted = self._now.wanted if self._check() else None
            if wanted is None or wanted.request is None:
                return
            self._note(unfinished=True)
            path = "plan"
            try:
                node = self._asked
                plan = None if wanted.single else resolved_plan(node, wanted.versions)[0]
                path = "function"
                with collected_warnings() as said:
                    if plan is None:
                        at = wanted.versions
                        version = node.at(at).ledger_version if isinstance(at, int) else None
                        result = self._read_one(node, wanted, version)
                    else:
                        result = self._read_many(node, wanted, plan.versions)
                    time = _time_of(node, result)
                unavailable = plan is not None and self._is_unavailable(node, wanted, result)
            except ToolkitError as error:
                self._fail(error, path)
                return
            told = dict.fromkeys(text for kind, text in said if not issubclass(kind, FailedReadsWarning))
            notes = () if plan is None else (*plan.notes, *told)
            facts = self._compared(wanted, result) if wanted.single else {}
            about: dict[str, Any] = {"time": time, "notes": notes, "unavailable": unavailable, "facts": facts}
            reading = Reading(result=result, asked=wanted, **about)
            with self._locked():
                self._apply(Answered(reading))
                self._say(*self._outcome(reading))

    def _fail(self, error: ToolkitError, path: str) -> None:
        """Show a failure at the field that caused it; `path` is the field for errors in the entries."""
        words = str(error)
        if isinstance(error, NodeError) and error.error_code in {"version_not_found", "version_pruned"}:
            at = self._now.entries.at
            path = "node" if at == "head" else at
            at_version = self._now.versions if path == "version" else None
            if at_version is not None:
                words = unreadable(at_version, error.ledger) or words
        elif path != "plan" or not isinstance(error, InputError):
            path = self._cause_of(error)
            if isinstance(error, NodeError) and path != "node":
                words = error.message or words
                if error.vm_error_code == _ARITHMETIC_ERROR:  # the message does not say of what
                    words = f"{words} in {self._subject()}"
        sentence, aborted = abort_parts(Abort.find(words))
        with self._locked():
            self._refuse(path, sentence or words)
            if path != "node":
                self._say("bad", f"Read failed: {self._now.refused[path]}{f' ({aborted})' if sentence else ''}")

    # what the form is about ------------------------------------------------------------------------------

    @traitlets.validate("versions")
    def _check_versions(self, proposal: Any) -> Versions | None:
        return checked_versions(proposal["value"])

    def _read_statement(self, name: str, one: str, many: str) -> str:
        """Return the Python statement that reads: `one` of the node, or else `many` of the toolkit."""
        wanted = self._now.wanted
        if not wanted.single:
            many = f"toolkit.{many}, versions={wanted.versions!r}, flatten=True, times=True)"
            return f"frame = {format_expression(many)}"
        reader = "node" if wanted.versions is None else f"node.at({wanted.versions})"
        return f"{name} = {format_expression(f'{reader}.{one}')}"

    def _facts(self) -> list[tuple[str, Any]]:
        versions = self._now.versions
        return [*super()._facts(), ("Read at", "the head" if versions is None else versions)]

    def _origin_of(self, reading: Reading) -> str:
        result = reading.result
        if not isinstance(result, pd.DataFrame):
            version, newest = result.ledger_version, None if result.ledger is None else result.ledger.version
        elif reading.asked.single:  # an item that does not exist
            version, newest = result["ledger_version"].iloc[0], result["head_version"].iloc[0]
        else:
            return origin(version_words(result["ledger_version"]), None)
        return origin(f"version {version:,}{' (the head)' if version == newest else ''}", reading.time)

    def _result_pages(self, reading: Reading) -> list[Page]:
        if reading.asked.single:
            return self._one_pages(reading)
        known, asset = self._amount(reading.asked)
        about: dict[str, Any] = {"what": self._subject() or "value", "model": has_model_gas(self.node)}
        about |= {"notes": reading.notes, "unavailable": reading.unavailable}
        return frame_pages(reading.result, known, asset=asset, **about)


def _time_of(node: Node, result: Any) -> datetime | None:
    """Return the time of the version that was read; None if it is not known, or for several versions."""
    if isinstance(result, pd.DataFrame):
        times = result["ledger_timestamp"].dropna()
        return times.iloc[0] if len(result) == len(times) == 1 else None
    if result.ledger is not None and result.ledger.version == result.ledger_version:
        return result.ledger.timestamp  # type: ignore[no-any-return]
    with suppress(ToolkitError):
        return block_times(node, [result.ledger_version], show=False).get(result.ledger_version)
    return None


@dataclass(frozen=True, kw_only=True)
class ViewState(functions.FunctionState, ReadState):
    """The state of a `ViewBuilder`."""

    entries: ViewDraft = field(default_factory=ViewDraft)

    def read(self, before: functions.FunctionState, *, typed: bool = False) -> Self:
        """Return the state with what follows from its entries."""
        found = Findings(names=self.names)
        now = self.with_function(before, found, typed=typed)
        request = functions.read_call(now.entries, ViewFunction, found, last=self.request, call=now.leading)
        request = request if found.good and request is not None else self.request
        now = now.with_versions(found)
        fields = Group(fields=(*now.function_fields("0x1::coin::supply"), *VERSION_FIELDS))
        return dataclasses.replace(now, request=request, findings=found, fields=fields)

    def written(self, request: ViewFunction | None) -> Self:
        """Return the state with the entries of a request; the versions are kept."""
        typed = {} if request is None else functions.write_call(request)
        kept = {name: getattr(self.entries, name) for name in ("seq", "at", "version", "plan")}
        return dataclasses.replace(self.with_entries(ViewDraft(**kept, **typed)), call=None)

    @property
    def has_call(self) -> bool:
        """Whether the entries have a call whose gas can be studied."""
        return self.request is not None and self.findings.good and not self.looked


def _is_missing(node: Node, wanted: Wanted, version: int) -> bool:
    """Return whether the code at a version does not have the function of a view."""
    with suppress(ToolkitError):
        return missing_function(node, wanted.request, node.abis.at(version)) is not None
    return False


class ViewBuilder(functions.FunctionBuilder, ReadBuilder):
    """Run a view function at the node's head, at a ledger version, or over many versions.

    Neither constructing the form nor setting its traits makes a request. In a browser, entering a function reads its
    ABI, so that each argument has its own field; from Python, `check` and `read` read the ABI.

    Parameters
    ----------
    node : Node
        Node that runs the views; available as ``node``.
    function : str or ContractFunction, optional
        The initial view function, such as ``"0x1::coin::supply"`` or ``node.contract("0x1::coin").supply``.
    request : ViewFunction, optional
        Initial content of the form.

    Raises
    ------
    InputError
        If both `function` and `request` are given, or `function` belongs to a contract but is not a view function.

    Attributes
    ----------
    function : str
        View function, as typed: ``address::module::function``.
    type_arguments : str
        Type arguments, as typed: Move types, one per line or separated by commas.
    arguments : str
        Arguments, as typed: a JSON array.
    versions : int, str, list of int or None
        None reads the head, an int reads one version, and a str or list is a version plan, as for `fetch_views`.
        Setting any other value raises `InputError`.
    request : ViewFunction or None
        The call built from the last valid entries. Set it to fill the form.
    errors : dict of str to str
        Error messages by field, such as ``plan`` or ``arguments.1``; ``node`` holds the error that the node returned.
        Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that performs the same read; empty while `request` is None. Read only.
    result : ViewResult, DataFrame or None
        The last result. For a version plan, it is a frame with one column per struct field. It is kept if a later read
        is cancelled or fails (see `errors`). Read only.
    busy : bool
        True while a request is in progress. Read only.

    Examples
    --------
    >>> import toolkit
    >>> builder = toolkit.widgets.ViewBuilder(toolkit.connect(), function="0xcafe::registry::size")
    >>> builder.versions = 4_000
    >>> builder.read()
    >>> builder.result.value
    521

    With a version plan, the result is a frame:

    >>> builder.versions = "1000:-1/3"
    >>> builder.read()
    >>> builder.result["value"].tolist()
    [134, 391, 652]

    A view function of a contract opens in a form:

    >>> size = builder.node.contract("0xcafe::registry").size
    >>> toolkit.widgets.ViewBuilder(builder.node, size).function
    '0xcafe::registry::size'
    """

    _form = About(
        "Run a view function",
        "Shows what a view function returns, at one version or at many. Choose a function, then press Read.",
        actions=READ_ACTIONS,
    )
    _empty = ViewState()
    _mirrored = ("function", "type_arguments", "arguments", "versions")
    _listed: ClassVar[dict[str, str]] = {"Function": "function", "Arguments": "arguments"}

    request = Instance(ViewFunction, allow_none=True)

    # what is read ----------------------------------------------------------------------------------------

    def _read_one(self, node: Node, wanted: Wanted, version: int | None) -> ViewResult:
        self._look_up_asset(node, returned_asset(wanted.request))
        return node.view(wanted.request, ledger_version=version)

    def _read_many(self, node: Node, wanted: Wanted, versions: Sequence[int]) -> pd.DataFrame:
        self._look_up_asset(node, returned_asset(wanted.request))
        return fetch_views(node, wanted.request, versions, flatten=True, times=True, progress=False)

    def _is_unavailable(self, node: Node, wanted: Wanted, frame: pd.DataFrame) -> bool:
        lost = failures(frame)["ledger_version"]
        read = frame["ledger_version"].drop(lost.index)
        if lost.empty or (not read.empty and lost.max() > read.min()):
            return False
        # Upgrades keep public functions, so one that is missing at a version was missing at all before.
        return _is_missing(node, wanted, int(lost.max()))

    def _fail(self, error: ToolkitError, path: str) -> None:
        """Show a failure; that the code at one version does not have a function of the head yet is none."""
        now, node = self._now, self._asked
        if isinstance(error, InvalidRequest) and now.call is not None and isinstance(now.versions, int):
            with suppress(ToolkitError):
                version = node.at(now.versions).ledger_version
                if _is_missing(node, now.wanted, version):
                    self._say("hint", f"Not available at version {version:,}: {error.message}")
                    return
        super()._fail(error, path)

    def _cause_of(self, error: ToolkitError) -> str:
        """Return the path of the field that an error concerns."""
        if not isinstance(error, InvalidRequest):
            return "function" if isinstance(error, InputError) else "node"
        # A single argument decides which resource is read, and what the contract refuses.
        entries = self._now.entries
        alone = len(entries.arguments) == 1 and isinstance(entries.arguments[0], str)
        if alone and error.vm_error_code in {_ABORTED, _MISSING_DATA, _ARITHMETIC_ERROR}:
            return "arguments.0"
        if error.vm_error_code == _ARITHMETIC_ERROR:
            return "arguments"
        missing_type = error.vm_error_code == _MISSING_DATA and entries.type_arguments
        return "type_arguments.0" if missing_type else "function"

    def _outcome(self, reading: Reading) -> tuple[str, str]:
        self._remember()
        if not reading.asked.single:
            return super()._outcome(reading)
        result: ViewResult = reading.result
        gas = "" if result.gas_used is None else f", {plural(result.gas_used, 'gas unit')}"
        return "good", f"Returned {plural(len(result.values), 'value')} at version {result.ledger_version:,}{gas}"

    # what the form is about ------------------------------------------------------------------------------

    def _programs_of(self, request: ViewFunction) -> Programs:
        expression = request.to_python().replace(repr(request.function), repr(self._subject()))
        read = self._read_statement("result", "view(call)", "fetch_views(node, call")
        body = request.to_wire() | {"function": FunctionId.parse(request.function).wire}
        body["type_arguments"] = [wire_type(parse_type_tag(name)) for name in request.type_arguments]
        if (encoded := self._now.encoded(request.arguments)) is not None:
            body["arguments"] = list(encoded)
        return {
            "Python": f"import toolkit\n\n{connect_line(self.node)}\ncall = {format_expression(expression)}\n{read}",
            "curl": curl_lines(self.node, "view", body, self._now.versions),
            "JSON": json.dumps(body, indent=2, ensure_ascii=False),
            "Study": request_as_study(request),
        }

    def _subject(self) -> str | None:
        """Return the function's name with the short form of its address."""
        return None if self.request is None else FunctionId.parse(self.request.function).wire

    # display ---------------------------------------------------------------------------------------------

    def _amount(self, wanted: Wanted) -> tuple[Known, str | None]:
        return Known(self._now.assets, self._now.names), returned_asset(wanted.request)

    def _one_pages(self, reading: Reading) -> list[Page]:
        known, asset = self._amount(reading.asked)
        return view_pages(reading.result, known, asset=asset, model=has_model_gas(self.node))

    def _compared(self, wanted: Wanted, result: ViewResult) -> dict[str, Any]:
        call, (known, asset) = wanted.request, self._amount(wanted)
        value = result.values[0] if len(result.values) == 1 else result.values
        return {
            "Function": FunctionId.parse(call.function).wire,
            "Arguments": self._now.argument_words(call.arguments),
            **(known.fact("Value", value, asset) if type(value) is int else {"Value": brief(value)}),
            "Gas used": result.gas_used,
            "Version": f"{result.ledger_version:,}",
        }
