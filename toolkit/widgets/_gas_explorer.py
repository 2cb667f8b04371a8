"""A form that builds a gas study, runs it in the background and shows the figure, the steps and their causes.

The form edits one call at a time; the state holds the others. A study that is set from Python is preserved, except for
what is edited.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Literal, Self

import pandas as pd
from msgspec.structs import replace
from traitlets import Instance

from toolkit._present.text import listed, plural, short_addresses, visible
from toolkit.client._versions import FindSteps, VersionPlan, listed_versions
from toolkit.errors import InputError, StudyError, ToolkitError
from toolkit.gas._calls import Call
from toolkit.gas._observations import Failure, Source, failures_of
from toolkit.gas._study import Run, Study
from toolkit.gas._study_file import VersionChoice
from toolkit.gas.plan._estimate import estimate
from toolkit.gas.runs._runner import run_study
from toolkit.move import Address
from toolkit.move._ids import parse_address, wire_address
from toolkit.widgets import _functions as functions
from toolkit.widgets import _messages as parts
from toolkit.widgets._fields import Findings, read_leaf, validated
from toolkit.widgets._form import is_given_up
from toolkit.widgets._html import origin
from toolkit.widgets._programs import connect_line, format_expression
from toolkit.widgets._readings import read_plan
from toolkit.widgets._results import is_one_version, reason_of, run_pages, version_words
from toolkit.widgets._state import Answer, Answered, Noted, Pressed
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction
from toolkit.wire._aborts import Abort

if TYPE_CHECKING:
    from toolkit.client._contracts import ContractFunction
    from toolkit.client._node import Node


Reads = Literal["view", "committed", "simulate"]  # the keys of a study file that name a function
_READS_LABELS: dict[Reads, str] = {
    "view": "a view function, at each version",
    "committed": "committed transactions of an entry function",
    "simulate": "a simulated entry function, at the head",
}
_CALLED: tuple[Reads, ...] = ("view", "simulate")
# A change that was undone between two readings is not seen: the plan says what it reads.
_PLANS = {
    "search": "a sample, then exactly where gas changes",
    "these": "these versions, then exactly where gas changes",
}
# The versions of committed transactions that a link from another tab reads: a public ledger has billions of them.
SAMPLE = "0:-1/200"
# Keys of a call that have a field.
_SHOWN = {*_READS_LABELS, "label", "type_arguments", "arguments", "sender", "versions"}
_OF_SENDER = ("INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE", "SENDING_ACCOUNT")  # parts of names of statuses
_KEPT = ("title", "requests_per_second", "thresholds", "waivers")  # settings of a study that have no field
_MAX_LISTED = 10  # calls that a saved notebook lists above the result
_UPDATE_S = 0.25  # between two updates of the progress: more would not be noticed
_MAX_UNASKED = 20_000  # requests of a run that starts without confirmation: some minutes on a public network


# what is typed -------------------------------------------------------------------------------------------------------


class StudyDraft(functions.FunctionDraft, frozen=True):
    """Entries for a study: those of one call, at the position ``chosen``, and of the study.

    In a link, ``calls`` holds every call as JSON; an incomplete call is an empty string.
    """

    label: str = ""
    source: Reads = "view"
    sender: str = ""
    range: str = ""
    chosen: str = "0"
    plan: Literal["search", "these"] = "search"
    span: str = "0:-1"
    calls: tuple[str, ...] = ("",)

    @property
    def versions_field(self) -> str:
        """The name of the field of the versions."""
        return "span"

    @property
    def kind(self) -> functions.FunctionKind:
        """The kind of functions that the form accepts."""
        return "view" if self.source == "view" else "entry"


def _typed(call: Call | None) -> dict[str, Any]:
    """Return the entries of a call's fields; empty if the call is None."""
    typed: dict[str, Any] = dict.fromkeys(("function", "raw", "label", "sender", "range"), "")
    typed |= {"type_arguments": (), "source": "view"}
    if call is None:
        return typed
    payload: Any = call.request.payload if isinstance(call.request, SimulationRequest) else call.request
    sender = "" if call.sender is None else wire_address(parse_address(call.sender))
    typed |= {"label": call.label, "source": call.kind, "sender": sender, "range": call.versions or ""}
    return typed | functions.write_call(payload)


def _read_call(
    draft: StudyDraft, last: Call | None, found: Findings, known: functions.ResolvedCall | None = None
) -> Call | None:
    """Return the call in the fields, or None; errors and missing entries are added to `found`.

    `last` is the call that the fields had before; what has no field is taken from it.
    """
    written, committed = _typed(last), draft.source == "committed"
    if committed:
        draft = replace(draft, raw="", type_arguments=tuple(name for name in draft.type_arguments if name.strip()))
    if last is not None and written == {name: getattr(draft, name) for name in written}:
        return last
    mine = Findings(names=found.names)
    model: Any = ViewFunction if draft.source == "view" else EntryFunction
    made = functions.read_call(draft, model, mine, call=known)
    values: dict[str, Any] = {"label": draft.label.strip()}
    if draft.source == "simulate" or (committed and draft.sender.strip()):
        values["sender"] = read_leaf(Address(), draft.sender, "sender", mine)
    if committed and draft.range.strip():
        values["versions"] = draft.range.strip()
        validated(partial(VersionPlan.parse, draft.range), mine, "range")
    found.add(mine)
    if made is None or not mine.good:
        return None
    values |= {draft.source: draft.function.strip(), "type_arguments": made.type_arguments, "arguments": made.arguments}
    before = {} if last is None else last.model_dump(mode="json", exclude_defaults=True)
    hidden = before.keys() - _SHOWN if draft.source in before else before.keys() & {"thresholds"}
    values |= {name: before[name] for name in hidden}
    return validated(partial(Call.model_validate, values), found, "range" if committed else "function")


@dataclass(frozen=True, kw_only=True)
class StudyState(functions.FunctionState):
    """The state of a `GasExplorer`.

    Attributes
    ----------
    calls : tuple of Call or None
        The calls of the study; None for an incomplete one. The fields show the one at ``entries.chosen``.
    given : Study or None
        The study that filled the form. Its settings without a field are preserved.
    warned : str
        Digest of the study whose run needs many requests and waits for a second press of Run.
    """

    entries: StudyDraft = field(default_factory=StudyDraft)
    calls: tuple[Call | None, ...] = (None,)
    given: Study | None = None
    warned: str = ""

    def read(self, before: Self, *, typed: bool = False) -> Self:
        """Return the state with what follows from its entries."""
        now, chosen = self, self.entries.chosen
        if typed and chosen != before.entries.chosen:
            if before.call_in_fields(Findings(names=self.names)) is None:
                now = dataclasses.replace(self, entries=replace(self.entries, chosen=before.entries.chosen))
                now = now.saying("error", INCOMPLETE)
            else:
                now = self.choosing(int(chosen))
        found = Findings(names=self.names)
        now = now.with_function(before, found, typed=typed)
        call = now.call_in_fields(found)
        if call is not None:
            place = int(now.entries.chosen)
            now = dataclasses.replace(now, calls=(*now.calls[:place], call, *now.calls[place + 1 :]))
        versions = now.read_versions(found)
        request = None if call is None or versions is None or not found.good else now.study(versions, found)
        return dataclasses.replace(now, findings=found, request=request or self.request, fields=now.controls)

    def study(self, versions: VersionChoice, found: Findings) -> Study | None:
        """Return the study of the calls; None if they do not make one."""
        last = self.given
        values: dict[str, Any] = {} if last is None else {name: getattr(last, name) for name in _KEPT}
        try:
            return Study(calls=list(self.calls), versions=versions, node=self.node, **values)
        except InputError as error:
            found.errors["label"] = str(error)
            return None

    def call_in_fields(self, found: Findings) -> Call | None:
        """Return the call that the fields make, or None."""
        known = None if self.entries.source not in _CALLED else self.leading
        return _read_call(self.entries, self.calls[int(self.entries.chosen)], found, known)

    def known(self, draft: StudyDraft) -> tuple[functions.ResolvedFunction | None, functions.ResolvedCall | None]:
        """Return the function and call that a draft names; committed transactions have no arguments."""
        function, call = super().known(draft)
        return function, call if draft.source in _CALLED else None

    def written(self, request: Study | None) -> Self:
        """Return the state with the calls and entries of a study."""
        made = dataclasses.replace(self.with_entries(StudyDraft()), calls=(None,), given=request, call=None)
        if request is None:
            return made
        plan, span = _typed_versions(request.versions)
        entries = replace(made.entries, plan=plan, span=span)
        made = dataclasses.replace(made, entries=entries, calls=request.calls or (None,))
        if self.node is not None and request.nodes != (self.node.name,):
            names = ", ".join(visible(name, 60) for name in request.nodes)
            here = visible(self.node.name, 60)
            made = made.saying("hint", f"The study is for {names}; this form reads from {here}.")
        return made.choosing(0)

    def choosing(self, place: int) -> Self:
        """Return the state with the fields of another call."""
        place = min(max(place, 0), len(self.calls) - 1)
        typed = _typed(self.calls[place]) | {"chosen": str(place), "arguments": (), "lead": "raw", "of": ""}
        return dataclasses.replace(self, entries=replace(self.entries, **typed))

    def with_calls(self, calls: tuple[Call | None, ...], place: int) -> Self:
        """Return the state with other calls and the fields of one of them, before it is read."""
        return dataclasses.replace(self.with_entries(self.entries), calls=calls).choosing(place)

    def saved(self) -> StudyDraft:
        """Return what a link keeps of the form."""
        given = [call and call.model_dump(mode="json", exclude_defaults=True) for call in self.calls]
        calls = tuple(json.dumps(one, ensure_ascii=False) if one else "" for one in given)
        kept: StudyDraft = replace(super().saved(), calls=calls)
        return kept

    def restored(self, kept: Mapping[str, Any]) -> Self:
        """Return the state with the entries of a link, which may be damaged or written by hand."""
        made = super().restored(kept)
        chosen, saved = made.entries.chosen, made.entries.calls
        try:
            calls = tuple(Call.model_validate(json.loads(one)) if one else None for one in saved)
        except (InputError, RecursionError, TypeError, ValueError) as error:
            raise InputError(f"the link does not fit this form: {error!s:.200}") from None
        if chosen not in map(str, range(len(calls))):
            counted = f"it selects call {chosen!r:.40}, but has {plural(len(calls), 'call')}"
            raise InputError(f"the link does not fit this form: {counted}")
        return dataclasses.replace(made, entries=replace(made.entries, calls=("",)), calls=calls)

    def read_versions(self, found: Findings) -> VersionChoice | None:
        """Return the versions of the study, or None; errors and missing entries are added to `found`."""
        draft, last = self.entries, None if self.given is None else self.given.versions
        typed = draft.span.strip()
        if self.at_head:  # the fields of the versions are not shown
            return last or VersionChoice(find_steps="0:-1")
        if not typed:
            found.missing["span"] = "enter versions, such as 0:-1"
            return None
        mine = Findings(ledger=self.ledger, plans=self.plans)
        plan: Any = read_plan(typed, mine, "span")
        found.add(mine)
        if plan is None:
            return None
        if last is not None and (draft.plan, draft.span) == _typed_versions(last):
            return last
        if draft.plan == "search" and not _is_span(plan):
            found.errors["span"] = "a sample needs a range, such as 0:-1; for others, choose `these versions` below"
            return None
        bounds: dict[str, Any] = {} if last is None else {"initial": last.initial, "max_requests": last.max_requests}
        written = {"plan": plan} if draft.plan == "these" else {"find_steps": plan, **bounds}
        return validated(partial(VersionChoice, **written), found, "span")

    def blamed(self, call: Call, status: str) -> str:
        """Return the path of the entry that the status of a failed simulation concerns; empty if it is not known."""
        abort = Abort.find(status)
        if abort is None:
            return "sender" if any(name in status for name in _OF_SENDER) else ""
        amount = functions.amount_of(call.function, call.type_arguments, call.arguments)
        place = amount[0] if amount is not None and (abort.module, abort.code) in functions.BALANCE_TOO_LOW else None
        if len(call.arguments) == 1 and abort.sentence:
            place = 0  # a single argument decides what the contract refuses
        return "function" if place is None else f"arguments.{place}" if self.entries.arguments else "arguments"

    @property
    def at_head(self) -> bool:
        """Whether all calls are simulations, which run at the head only."""
        chosen = int(self.entries.chosen)
        others = [call for place, call in enumerate(self.calls) if place != chosen]
        return self.entries.source == "simulate" and all(call and call.kind == "simulate" for call in others)

    @property
    def wanted(self) -> str | None:
        """What the entries ask for."""
        return None if self.request is None else self.request.digest

    @property
    def controls(self) -> parts.Group:
        """The controls of the form."""
        draft = self.entries
        example = "0x1::coin::supply" if draft.source == "view" else "0x1::aptos_account::transfer"
        committed = draft.source == "committed"
        sender = "leave empty to include all senders; an address" if committed else "no key is needed; an address"
        own = f"leave empty to use the study's; {SAMPLE} reads 200 pages of 100 transactions, and some near each change"
        span = "0:-1 for all; also 100:200, or dates, 2026-05-01..2026-06-01"
        span += "" if draft.plan == "search" else ", or 100, 200, 300"
        if committed:
            span += ". Reads all committed transactions in between; for a sample, use Versions of this call"
        sends, when = ("source", ("simulate", "committed")), ("source", ("committed",))
        several = len(self.calls) > 1
        labelled = several or draft.label or "label" in self.findings.errors
        inside = parts.group(
            ("source", parts.select("Gas of", _READS_LABELS)),
            *self.function_fields(example, unknown_when=("source", _CALLED)),
            ("sender", parts.mono("Sender", sender, sends, placeholder="0xa11ce", names=True)),
            ("range", parts.mono("Versions of this call", own, when, hinted=True)),
            *([("label", parts.Text("Label", hint="leave empty to use the function's name"))] if labelled else []),
            label=f"Call {int(draft.chosen) + 1}" if several else "",
        )
        calls = enumerate(self.calls)
        names = {at: f"{at + 1}. {short_addresses(made.name) if made else 'new call'}" for at, made in calls}
        remove = parts.Actions("Remove", do="drop", buttons=(parts.Button("Remove this call"),))
        versions = [("span", parts.mono("Versions", span, hinted=True)), ("plan", parts.select("Read", _PLANS))]
        return parts.group(
            *([("chosen", parts.select("Call to edit", names))] if several else []),
            ("", inside),
            ("", parts.Actions("Add", do="add", buttons=(parts.Button("Add a call"),))),
            *([("", remove)] if several else []),
            *([] if self.at_head else versions),
        )


INCOMPLETE = "Complete or remove this call first."


def _is_span(typed: Any) -> bool:
    """Return whether a plan is a range of more than one version."""
    if not isinstance(typed, str) or listed_versions(typed):
        return False
    plan = VersionPlan.parse(typed)
    return plan.is_range and plan.first != plan.last


def _typed_versions(choice: VersionChoice) -> tuple[str, str]:
    written = choice.written
    span = ", ".join(map(str, written)) if isinstance(written, list) else written or "0:-1"
    return "these" if choice.search is None else "search", span


def _study_as_python(study: Study, node: Node) -> str:
    """Return a Python program that creates the same study, runs it, prints the findings and writes a report."""
    document, search = study.document(), study.versions.search
    versions = repr(study.versions.plan)
    if search is not None:
        plain = search == FindSteps(search.versions)
        versions = f"toolkit.FindSteps({search.versions!r})" if plain else f"toolkit.{search!r}"
    calls = []
    for call in study.calls:
        given = call.model_dump(mode="json", exclude_defaults=True) | {call.kind: _typed(call)["function"]}
        calls.append(repr(given if len(given) > 1 or call.kind != "view" else given["view"]))
    fields = [f"calls=[{', '.join(calls)}]", f"versions={versions}", "node=node"]
    kept = zip(_KEPT, ("title", "requests_per_second", "thresholds", "waiver"), strict=True)
    given = {name: document[key] for name, key in kept if key in document}
    fields += [f"{name}={value!r}" for name, value in given.items() if value != Study.model_fields[name].default]
    made = format_expression(f"toolkit.Study({', '.join(fields)})")
    results = 'run = study.run()\nprint(run.explain())\ntoolkit.reports.write(run, "report.html")'
    return f"import toolkit\n\n{connect_line(node)}\nstudy = {made}\n{results}"


# the form ------------------------------------------------------------------------------------------------------------


class _StoppedError(Exception):
    """The user stopped the run."""


class GasExplorer(functions.FunctionBuilder):
    """Choose calls and ledger versions to see where and why the gas of the calls changes.

    Neither constructing the form nor setting its traits makes a request. In a browser, the study runs in the background
    and can be stopped; the observations stored by then can be used. If a run needs more than 20,000 requests, the
    form first shows their number, and you press Run again to confirm. From Python, `run` starts without confirmation
    and returns when the run is complete.

    Parameters
    ----------
    node : Node
        Node from which the study reads; available as ``node``.
    function : str or ContractFunction, optional
        View function of the first call, such as ``"0x1::coin::supply"`` or ``node.contract("0x1::coin").supply``.
    study : Study, optional
        Initial content of the form.

    Attributes
    ----------
    study : Study or None
        The study built from the last valid entries. Set it to fill the form. Settings that the form does not show, such
        as thresholds, are preserved; the study's node is replaced by the form's node.
    errors : dict of str to str
        Error messages by field, such as ``function`` or ``arguments.1``. Errors in other calls and in the study as a
        whole have the key ``chosen``. Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that creates and runs the same study; empty while `study` is None. Read only.
    result : Run or None
        The last run: ``result.steps``, ``result.observations``, ``result.explain()``. A run that was stopped is not
        ``complete``. Read only.
    busy : bool
        True while a run or a request is in progress. Read only.

    Raises
    ------
    InputError
        If both `function` and `study` are given, or `function` belongs to a contract but is not a view function.
    traitlets.TraitError
        If `study` is not a `Study`.

    Examples
    --------
    >>> import toolkit
    >>> explorer = toolkit.widgets.GasExplorer(toolkit.connect())
    >>> supply = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    >>> explorer.study = toolkit.Study(calls=[supply], versions=toolkit.FindSteps("3000:4000", initial=5))
    >>> explorer.run()
    >>> explorer.result.steps["version_after"].tolist()
    [3502]
    >>> explorer.close()
    """

    _form = parts.About(
        "Explore gas",
        "Finds the versions at which the gas of a call changes, and why. Choose a function, then press Run.",
        actions=(("run", "Run"), ("check", "Count requests")),
        code_below=True,
    )
    _empty = StudyState()
    _mirrored = ("function", "type_arguments", "arguments")

    request = Instance(Study, allow_none=True)
    result = Instance(Run, allow_none=True, read_only=True)

    def __init__(
        self, node: Node, function: str | ContractFunction | None = None, *, study: Study | None = None
    ) -> None:
        self._stopping: threading.Event | None = None  # of the run in progress
        self._shown_at = 0.0  # when its progress was shown last
        super().__init__(node, function, request=study)

    def _forget_node(self) -> None:
        self._stopping = None
        super()._forget_node()

    # the study -------------------------------------------------------------------------------------------

    @property
    def study(self) -> Study | None:
        """The study built from the last valid entries."""
        return self.request

    @study.setter
    def study(self, study: Study | None) -> None:
        self.request = study

    def _programs_of(self, request: Study) -> parts.Programs:
        return {"Python": _study_as_python(request, self.node), "Study": request.to_toml()}

    def _result_pages(self, answer: Answer) -> list[parts.Page]:
        return run_pages(answer.result, partial(self._now.named, beside=" {}"))

    def _facts(self) -> list[tuple[str, Any]]:
        if self.study is None:
            return []
        calls = listed([short_addresses(call.name) for call in self.study.calls], _MAX_LISTED)
        draft = self._now.entries
        versions = [] if self._now.at_head else [("Versions", draft.span), ("Read", _PLANS[draft.plan])]
        return [("Calls", calls), *versions]

    def _origin_of(self, answer: Answer) -> str:
        run = answer.result
        at_head = run.observations["source"] == Source.SIMULATE
        read, simulated = (run.observations["ledger_version"][chosen] for chosen in (~at_head, at_head))
        spans = [plan.committed_span for plan in run.record.nodes if plan.committed_span and run.complete]
        if spans:  # of a range of transactions, all versions were read
            read = pd.concat([read, pd.Series([end for span in spans for end in span])])
        at = "no version" if run.observations.empty else version_words(simulated if read.empty else read)
        further = _further_reads(run)
        at += f", with {plural(further, 'read')} to locate the steps" if further else ""
        at += "" if read.empty or simulated.empty else f"; simulated at {version_words(simulated)}"
        return origin(at, run.record.finished_at, of="read")

    def _choose(self, calls: tuple[Call | None, ...], place: int) -> None:
        """Show the fields of one of these calls."""
        now = self._now
        status = now.status if now.busy else parts.Status()
        self._learn(calls=calls, entries=now.with_calls(calls, place).entries, strict=False, refused={}, status=status)

    def _open_call(self, call: Call, versions: str = "") -> None:
        """Select a call, adding it to the study if it is missing; `versions` are those of a study without calls."""
        with self._locked():
            calls = [made for made in self._now.calls if made is not None]
            known = [made.fingerprint for made in calls]
            if call.fingerprint not in known:
                calls.append(call)
            self._choose(tuple(calls), [*known, call.fingerprint].index(call.fingerprint))
            if versions and not known:
                self._edit(plan="these", span=versions)
            if 0 < len(known) < len(calls):
                self._say("hint", f"Added as call {len(calls)} of the study.")

    # actions -------------------------------------------------------------------------------------------

    def check(self) -> bool:
        """Check every call against the code at the node's head, and show how many requests a run would send.

        Returns
        -------
        bool
            True if the study can be run; otherwise the reasons are in `errors`.
        """
        return self._count_requests() is not None

    def _count_requests(self) -> int | None:
        """Check every call, and return the least number of requests of a run; None if the study cannot be run."""
        with self._busy_while("Checking"):
            study = self.study if self._check(again=True) else None
            if study is None:
                return None
            try:
                plan = estimate(study.on_node(self._asked))
            except ToolkitError as error:
                self._blame_study(error)
                return None
            least, most = plan.requests
            most += plan.further_requests
            further = "" if least == most else f", and more around each step, up to {most:,}"
            notes = [f" {note[:1].upper()}{note[1:]}." for node in plan.nodes for note in node.notes]
            words = f"Every call fits its function. A run sends {plural(least, 'request')}{further}.{''.join(notes)}"
            self._say("hint" if notes else "good", words)
            return least

    def run(self) -> None:
        """Check the entries, run the study and show the result; sets `errors` and `result`.

        Raises
        ------
        InputError
            If a run is already in progress.
        """
        with self._locked():
            if self._stopping is not None:
                raise InputError("a run is already in progress; wait for it to end, or stop it with cancel()")
            stopping = self._stopping = threading.Event()
        try:
            with self._busy_while("Running"):
                found = self._find_version()  # the head may have moved
                study = self.study if found and not self._apply(Pressed()).errors else None
                if study is not None:
                    self._note(unfinished=True)
                    self._run(study, stopping)
        finally:
            with self._lock:
                if self._stopping is stopping:
                    self._stopping = None
                    self._change(Noted({"progress": parts.Progress()}))

    def cancel(self) -> None:
        """Stop a run and the form's other requests; the observations stored by then are in `result`.

        Requests in progress end at once, or within the node's ``timeout_s`` if they are still connecting.
        """
        with self._lock:
            if self._stopping is None:
                super().cancel()
                return
            self._stopping.set()
            self._background.give_up(report=True)
            self._drop_given_up()

    def _run(self, study: Study, stopping: threading.Event) -> None:
        folder, failure = Path(mkdtemp(prefix="ledger-toolkit-run-")), None
        try:
            run_study(study.on_node(self._asked), folder, progress=partial(self._show_progress, stopping))
        except (ToolkitError, _StoppedError, KeyboardInterrupt) as error:
            failure = error
        run = None
        try:
            run = Run(folder, temporary=True)
        except StudyError:  # it ended before the first row
            shutil.rmtree(folder, ignore_errors=True)
        if run is not None:
            self._apply(Answered(Answer(result=run, asked=study.digest)))
        if run is not None and run.complete:
            with self._locked():
                self._mark_failure(run)
                self._say(*_outcome(run))
            self._remember()
        elif isinstance(failure, ToolkitError) and not stopping.is_set():
            self._blame_study(failure)
        else:
            count = plural(0 if run is None else len(run.observations), "observation")
            self._say("bad", f"Stopped after {count}{'.' if run is None else ', which the result contains.'}")
        if isinstance(failure, KeyboardInterrupt):
            raise failure

    def _mark_failure(self, run: Run) -> None:
        """Show why the simulation in the fields would fail at the entry that its status concerns."""
        call, rows = self._now.calls[int(self._now.entries.chosen)], run.observations
        if call is None or call.kind != "simulate":
            return
        lost = rows[(rows["fingerprint"] == call.fingerprint) & ~rows["success"].fillna(value=True).astype(bool)]
        for row in lost[lost["error_code"].isna()].tail(1).to_dict("records"):
            path = self._now.blamed(call, row["vm_status"])
            if path:
                self._refuse(path, f"{reason_of(row)}.")

    def _show_progress(self, stopping: threading.Event, what: str, done: int, total: int) -> None:
        """Show how far a run is, and end it if it has been stopped or abandoned."""
        if stopping.is_set() or is_given_up():
            raise _StoppedError
        now = time.monotonic()
        if now >= self._shown_at + _UPDATE_S:
            self._shown_at = now
            about = f" of about {total:,} calls read" if what == "observing" else f" of {total:,} ({what})"
            if total:  # a run begins before it knows what it reads
                self._note(progress=parts.Progress(f"{done:,}{about}", done, total))

    def _blame_study(self, error: ToolkitError) -> None:
        """Show why a study cannot be run, at its calls, at its versions, or beside the buttons."""
        places: dict[Any, str] = {StudyError: "chosen", InputError: "span"}
        self._refuse(places.get(type(error), "node"), short_addresses(str(error)))

    def _run_unless_long(self) -> None:
        """Run the study; if it needs many requests, only after Run has been pressed a second time."""
        least, study = self._count_requests(), self.study
        if least is None or study is None:
            return
        if least > _MAX_UNASKED and study.digest != self._now.warned:
            self._note(warned=study.digest)
            again = f"Press Run again to start it, or choose fewer versions; {SAMPLE} reads a sample."
            self._say("error", f"A run sends at least {plural(least, 'request')}. {again}")
            return
        self.run()

    # messages of the browser ----------------------------------------------------------------------------

    def _do_run(self, _message: parts.Message) -> None:
        self._background.start("run", self._run_unless_long)

    def _do_add(self, _message: parts.Message) -> None:
        with self._locked():
            now = self._now
            if now.call_in_fields(Findings(names=now.names)) is None:
                self._say("error", INCOMPLETE)
                return
            self._choose((*now.calls, None), len(now.calls))

    def _do_drop(self, _message: parts.Message) -> None:
        with self._locked():
            calls, place = self._now.calls, int(self._now.entries.chosen)
            self._choose((*calls[:place], *calls[place + 1 :]) or (None,), place - 1)


def _further_reads(run: Run) -> int:
    """Return how many reads located steps between the versions of a run; they are not observations."""
    return sum(node.further_requests or 0 for node in run.record.nodes)


def _outcome(run: Run) -> tuple[str, str]:
    """Return the kind of message and the words that describe a complete run."""
    frame, steps = run.observations, run.steps
    count, errors = plural(len(frame), "observation"), frame["error_code"].dropna()
    if 0 < len(errors) == len(frame):
        return "bad", f"No successful read in {count}: {visible(errors.mode().iloc[0], 80)}."
    if frame.empty:
        return "hint", "No transactions were found in these versions."
    at = len(steps["version_after"].unique())
    where = f" at {plural(at, 'version')}" if at != len(steps) else ""
    further = _further_reads(run)
    more = f" and {plural(further, 'further read')}" if further else ""
    words = f"{plural(len(steps), 'step') if at else 'No steps'} in gas{where}, from {count}{more}"
    lost = failures_of(frame, steps)
    kind = "mixed" if {Failure.READ, Failure.SIMULATION} & lost.rows.keys() else "good"
    if is_one_version(frame):
        gas = frame["gas_used"].iloc[0]
        what = plural(int(gas), "gas unit") if len(frame) == 1 and not pd.isna(gas) else count
        words = f"{what} at {version_words(frame['ledger_version'])}"
    since = [f"{version:,}" for version in lost.available_since]
    before = f" before version{'s'[: len(since) - 1]} {listed(since, 3)}"
    for how, rows in lost.rows.items():
        words += f"; {len(rows):,} {how}{before if how is Failure.NOT_AVAILABLE else ''}"
    return kind, f"{words}."
