"""A form that makes a gas study, runs it in the background and shows what moved gas: figure, steps and their causes.

The call that is chosen has its fields at the top of the draft, the list ``calls`` has all of them. What is not edited
keeps the value that the form was filled with, so that every study comes out as it went in.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import msgspec
from msgspec.structs import replace
from traitlets import Instance, observe

from toolkit._present.text import plural, short_addresses, visible
from toolkit.errors import InputError, StudyError, ToolkitError
from toolkit.gas._calls import Call
from toolkit.gas._steps import step_groups
from toolkit.gas._study import Run, Study
from toolkit.gas._study_file import VersionChoice
from toolkit.gas.plan._estimate import Plan, estimate
from toolkit.gas.runs._runner import run_study
from toolkit.move import parse_address
from toolkit.move._ids import wire_address
from toolkit.widgets._fields import Findings, validated
from toolkit.widgets._form import Background, GivenUpError, is_given_up
from toolkit.widgets._functions import (
    FunctionDraft,
    FunctionForm,
    function_fields,
    parse_arguments,
    read_types,
    write_call,
)
from toolkit.widgets._html import code, origin
from toolkit.widgets._messages import About, Group, Message, Picks, Progress, Text, Words, group, mono, select
from toolkit.widgets._programs import connect_line, format_expression
from toolkit.widgets._readings import parse_plan, plan_words
from toolkit.widgets._results import run_pages, version_words
from toolkit.wire import SimulationRequest, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.client._contracts import ContractFunction
    from toolkit.client._node import Node
    from toolkit.widgets._functions import FunctionKind, ResolvedCall, ResolvedFunction


Reads = Literal["view", "committed", "simulate"]  # the keys of a study file that name a function
_READS_LABELS: dict[Reads, str] = {
    "view": "View function, at each version",
    "committed": "Committed transactions of an entry function",
    "simulate": "Simulation of an entry function, at the head",
}
_CALLED: tuple[Reads, ...] = ("view", "simulate")
_PLANS = {"search": "Find every step (as few as needed)", "these": "These versions"}
SAMPLE = "0:-1/200"  # versions of committed transactions that nobody has chosen: as many pages, evenly spaced
_DEFAULT_TITLE = str(Study.model_fields["title"].default)
_KEY = re.compile(r"`(\w+)(?:\.(\d+))?`(?:: |, )")
_OF_A_CALL = re.compile(r"call (\d+)")
_PATHS = {"versions": "range"} | dict.fromkeys(_READS_LABELS, "function")  # keys of a call whose field is called so
# Keys of a call that the form does not show, by what the call reads.
_KEPT: dict[Reads, set[str]] = {
    "view": {"thresholds"},
    "committed": {"thresholds", "success"},
    "simulate": {"thresholds", "fee_payer", "gas_unit_price", "max_gas_amount"},
}
_HIDDEN = {"thresholds": "thresholds", "requests_per_second": "the pace"}
_UPDATE_S = 0.25  # between two updates of the progress: the eye does not follow more
_PLAN = "Plan"  # title of the page with the plan
_MAX_UNASKED = 20_000  # requests of a run that starts when Run is pressed once: some minutes on a public network


# what is typed -------------------------------------------------------------------------------------------------------


class CallDraft(FunctionDraft, frozen=True):
    """What is typed about one call. ``kept`` has what the form does not show; ``wrong`` is why it is not complete."""

    label: str = ""
    source: Reads = "view"
    sender: str = ""
    range: str = ""
    kept: dict[str, Any] = msgspec.field(default_factory=dict)
    wrong: str = ""


class StudyDraft(CallDraft, frozen=True):
    """What is typed about a study; the fields of a call are those of the chosen one."""

    title: str = ""
    chosen: int = 0
    calls: tuple[CallDraft, ...] = (CallDraft(),)
    plan: Literal["search", "these"] = "search"
    span: str = "0:-1"

    @property
    def call(self) -> CallDraft:
        """The call that is chosen."""
        return CallDraft(**{name: getattr(self, name) for name in _CALL_TEXTS})

    @property
    def listed(self) -> list[CallDraft]:
        """All calls, the chosen one as its fields are now."""
        return [self.call if place == self.chosen else one for place, one in enumerate(self.calls)]

    def with_calls(self, calls: Sequence[CallDraft], chosen: int) -> StudyDraft:
        """Return the draft with other calls, one of which is chosen; without calls it has a blank one."""
        listed = tuple(calls) or (CallDraft(),)
        place = min(max(chosen, 0), len(listed) - 1)
        shown = {name: getattr(listed[place], name) for name in _CALL_TEXTS}
        return replace(self, calls=listed, chosen=place, **shown)

    def chosen_after(self, before: StudyDraft) -> StudyDraft:
        """Bring the list of calls in step with the fields of the chosen one, or show another that was chosen."""
        place = before.chosen if len(before.calls) == len(self.calls) else self.chosen
        calls = replace(self, chosen=place).listed
        return self.with_calls(calls, self.chosen if 0 <= self.chosen < len(calls) else place)


_CALL_TEXTS = tuple(name for name in CallDraft.__struct_fields__ if name != "seq")


def _hidden_parts(study: Study | None) -> str:
    """Return what a study has and the form does not show, as a sentence; empty if there is nothing."""
    if study is None:
        return ""
    found = [words for name, words in _HIDDEN.items() if getattr(study, name) is not None]
    found += [plural(len(study.waivers), "waiver")] if study.waivers else []
    kept = sorted({name.replace("_", " ") for call in study.calls for name in _write_call(call).kept})
    found += [f"{', '.join(kept)} of calls"] if kept else []
    bounds, usual = ((one.initial, one.max_requests) for one in (study.versions, VersionChoice(plan=[0])))
    found += ["the bounds of the search"] if bounds != usual else []
    return f"Not shown here, and part of the study: {'; '.join(found)}." if found else ""


class Given(NamedTuple):
    """The study that a form was filled with, and its draft: what is not edited stays as it is there."""

    study: Study | None = None
    draft: StudyDraft = StudyDraft()

    @classmethod
    def of(cls, study: Study | None) -> Given:
        """Write the draft of a study; that of None is blank."""
        if study is None:
            return cls()
        written = study.versions.written
        span = ", ".join(map(str, written)) if isinstance(written, list) else written or "0:-1"
        plan: Any = "these" if study.versions.search is None else "search"
        title = "" if study.title == _DEFAULT_TITLE else study.title
        draft = StudyDraft(title=title, plan=plan, span=span)
        return cls(study, draft.with_calls([_write_call(call) for call in study.calls], 0))

    def call(self, draft: CallDraft) -> Call | None:
        """Return the call whose draft shows the same."""
        pairs = () if self.study is None else zip(self.draft.calls, self.study.calls, strict=True)
        return next((call for written, call in pairs if _shown(written) == _shown(draft)), None)


def _shown(call: CallDraft) -> CallDraft:
    """Return what the form shows of a call: two that show the same are equal here."""
    types = tuple(name for name in call.type_arguments if name.strip())
    return replace(call, type_arguments=types, arguments=(), lead="raw", wrong="", seq=0)


def _write_call(call: Call) -> CallDraft:
    """Return the draft of a call."""
    request = call.request.payload if isinstance(call.request, SimulationRequest) else call.request
    source = next(name for name in _READS_LABELS if getattr(call, name) is not None)
    return CallDraft(
        **write_call(request),  # type: ignore[arg-type]  # a study simulates entry functions only
        label=call.label,
        source=source,
        sender="" if call.sender is None else wire_address(parse_address(call.sender)),
        range=call.versions or "",
        kept=call.model_dump(mode="json", include=_KEPT[source], exclude_none=True, exclude_defaults=True),
    )


def _read_call(draft: CallDraft, given: Given, found: Findings) -> Call | None:
    """Return the call of a draft; `found` receives a sentence for each field that does not fit or is missing."""
    name, committed = draft.function.strip(), draft.source == "committed"
    if not name:
        found.missing["function"] = "expected a function, such as 0x1::coin::supply"
        return None
    unfiltered = committed and not any(typed.strip() for typed in draft.type_arguments)
    values: dict[str, Any] = {
        "label": draft.label.strip(),
        draft.source: name,
        "type_arguments": () if unfiltered else read_types(draft.type_arguments, found),
        "arguments": () if committed else parse_arguments(draft.raw, found),
        "sender": None if draft.source == "view" else draft.sender.strip(),
        "versions": draft.range.strip() if committed else None,
    }
    if draft.source == "simulate" and not values["sender"]:
        found.missing["sender"] = "expected an address, such as 0xa11ce; no key is needed"
    if not found.good:
        return None
    if (call := given.call(draft)) is not None:
        return call
    values["arguments"] = [_without_null(value) for value in values["arguments"]]
    kept = {key: value for key, value in draft.kept.items() if key in _KEPT[draft.source]}
    values = {key: value for key, value in (values | kept).items() if value not in (None, (), [], "")}
    mine = Findings()
    made = validated(partial(Call.model_validate, values), mine, "", _PATHS)
    for path, words in mine.errors.items():
        if path or not (match := _KEY.match(words)):
            found.errors[path or "function"] = words
        else:  # about several keys, one of which is named
            place = f".{int(match[2]) - 1}" if match[2] else ""
            found.errors[f"{_PATHS.get(match[1], match[1])}{place}"] = words[match.end() :]
    return made


def _without_null(value: Any) -> Any:
    """Return an argument with the form of an Option without a value that a study file can have."""
    if value is None:
        return {"vec": []}
    if isinstance(value, dict):
        return {name: _without_null(one) for name, one in value.items()}
    return [_without_null(one) for one in value] if isinstance(value, list | tuple) else value


def _read_versions(draft: StudyDraft, given: Given, found: Findings) -> VersionChoice | None:
    """Return the versions of a draft."""
    last, typed = None if given.study is None else given.study.versions, draft.span.strip()
    if last is not None and (draft.plan, draft.span) == (given.draft.plan, given.draft.span):
        return last
    if not typed:
        found.missing["span"] = "expected versions, such as 0:-1, which is all of them"
        return None
    plan: Any = validated(partial(parse_plan, typed), found, "span")
    if plan is None:
        return None
    if draft.plan == "these":
        found.notes["span"] = f"= {plan_words(plan)}"
        return validated(partial(VersionChoice, plan=plan), found, "span")
    bounds: dict[str, Any] = {} if last is None else {"initial": last.initial, "max_requests": last.max_requests}
    return validated(partial(VersionChoice, find_steps=typed, **bounds), found, "span")


def _read_study(
    draft: StudyDraft, calls: Sequence[Call | None], given: Given, node: Node, found: Findings
) -> Study | None:
    """Return the study of a draft and its calls, which are None if they are not complete."""
    for place, (call, one) in enumerate(zip(calls, draft.calls, strict=True)):
        if call is None and place != draft.chosen:
            found.errors.setdefault("chosen", f"call {place + 1} is not complete: {one.wrong or 'choose it'}")
    mine = Findings()
    versions = _read_versions(draft, given, mine)
    found.add(mine)
    if versions is None or not found.good or None in calls:
        return None
    last = given.study
    values: dict[str, Any] = {} if last is None else {name: getattr(last, name) for name in (*_HIDDEN, "waivers")}
    values["title"] = draft.title if draft.title.strip() else _DEFAULT_TITLE
    try:
        return Study(calls=list(calls), versions=versions, node=node, **values)
    except InputError as error:
        places = [int(number) - 1 for number in _OF_A_CALL.findall(str(error))]
        found.errors["label" if draft.chosen in places else "chosen"] = str(error)
        return None


def _study_as_python(study: Study, node: Node) -> str:
    """Return a Python program that makes an equal study, runs it and prints what was found."""
    document = study.document()
    versions = repr(study.versions.plan) if study.versions.search is None else f"toolkit.{study.versions.search!r}"
    calls = ", ".join(_call_as_python(call) for call in study.calls)
    fields = [f"title={study.title!r}"] if study.title != _DEFAULT_TITLE else []
    fields += ["node=node", f"versions={versions}", f"calls=[{calls}]"]
    keys = {name: name for name in _HIDDEN} | {"waivers": "waiver"}
    fields += [f"{name}={document[key]!r}" for name, key in keys.items() if key in document]
    made = format_expression(f"toolkit.Study({', '.join(fields)})")
    return f"import toolkit\n\n{connect_line(node)}\nstudy = {made}\nrun = study.run()\nprint(run.explain())"


def _call_as_python(call: Call) -> str:
    if isinstance(call.request, ViewFunction) and not call.label and call.thresholds is None:
        return call.request.to_python().replace(repr(call.request.function), repr(_write_call(call).function))
    return repr(call.model_dump(mode="json", exclude_defaults=True, exclude_none=True))


# the form ------------------------------------------------------------------------------------------------------------


class _StoppedError(Exception):
    """The reader stopped the run."""


class GasExplorer(FunctionForm):
    """Choose calls and ledger versions, watch their gas, and see at which versions it steps and why.

    Neither constructing the form nor setting its traits makes a request. In a browser, a run goes on in the background
    and can be stopped; what was read until then can be used. For more than 20,000 requests, the plan is shown first,
    and you press Run again to confirm. From Python, `run` starts without asking, and returns when the run is complete.

    Parameters
    ----------
    node : Node
        Where the study reads; available as ``node``.
    function : str or ContractFunction, optional
        View function of the first call, such as ``"0x1::coin::supply"`` or ``node.contract("0x1::coin").supply``.
    study : Study, optional
        Initial content of the form.

    Attributes
    ----------
    study : Study or None
        The study made from the last valid entries. Set it to fill the form. What the form does not show, such as
        thresholds, stays part of the study; its node is replaced by that of the form.
    errors : dict of str to str
        Error messages by field, such as ``function`` or ``arguments.1``; those of other calls, and of the study as a
        whole, are at ``chosen``. Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that creates and runs an equal study; empty without a study. Read only.
    result : Run or None
        The last run: ``result.steps``, ``result.observations``, ``result.explain()``. A run that was stopped is not
        ``complete``. Read only.
    busy : bool
        True while a run or a request is in progress. Read only.

    Raises
    ------
    InputError
        If both `function` and `study` are given, or `function` is a contract's function that is not a view function.
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

    _form = About(
        "Explore gas",
        actions=(("run", "Run"), ("check", "Check")),
        words=Words(
            form="The study",
            code="The study as a program",
            copy={"Study": "Copy the study file"},
        ),
    )
    _blank = StudyDraft()
    _mirrored = ("function", "type_arguments", "arguments")
    _pictured = frozenset({"Figure", "Steps"})
    _in_python: ClassVar[dict[str, str]] = {"Figure": ".observations", "Steps": ".steps", "Explain": ".explain()"}

    request = Instance(Study, allow_none=True)
    result = Instance(Run, allow_none=True, read_only=True)

    def __init__(
        self, node: Node, function: str | ContractFunction | None = None, *, study: Study | None = None
    ) -> None:
        self._given = Given()
        self._hidden = ""
        self._plan: Plan | None = None
        self._clock = time.monotonic
        self._update_after = 0.0
        self._stopping = threading.Event()
        super().__init__(node, function, request=study)

    def _forget_node(self) -> None:
        self._plan = None
        super()._forget_node()

    # the study -------------------------------------------------------------------------------------------

    @property
    def study(self) -> Study | None:
        """The study made from the last valid entries."""
        return self.request

    @study.setter
    def study(self, study: Study | None) -> None:
        self.request = study

    @observe("request")
    def _on_study(self, _change: object) -> None:
        if self._plan is not None:
            self._plan = None
            self._pages = tuple(page for page in self._pages if page[0] != _PLAN)

    def _write_draft(self, request: Study | None) -> StudyDraft:
        self._given, self._hidden = Given.of(request), _hidden_parts(request)
        if request is not None and request.nodes != (self.node.name,):
            names = ", ".join(visible(name, 60) for name in request.nodes)
            self._say("hint", f"The study names {names}; this form reads from {visible(self.node.name, 60)}.")
        return self._given.draft

    def _read_draft(self, draft: StudyDraft, found: Findings, *, typed: bool) -> tuple[StudyDraft, Study | None]:
        before = self._taken
        draft = draft.chosen_after(before if typed else draft)
        if draft.chosen != before.chosen or len(draft.calls) != len(before.calls):
            before = replace(before, function=draft.function)  # the arguments are those of the function shown now
            self._call = self._known(draft)[1]
        draft = self._read_function(draft, found, typed=typed, before=before)
        chosen = _read_call(draft.call, self._given, found) if found.good else None
        draft = replace(draft, wrong="" if chosen is not None else found.wrong or "it is not complete")
        draft = draft.with_calls(draft.listed, draft.chosen)
        calls = [chosen if place == draft.chosen else self._other(call) for place, call in enumerate(draft.calls)]
        return draft, _read_study(draft, calls, self._given, self.node, found)

    def _other(self, draft: CallDraft) -> Call | None:
        """Return a call that is not chosen; None if it was not complete when it was."""
        return None if draft.wrong else _read_call(draft, self._given, Findings())

    def _kind_of(self, draft: StudyDraft) -> FunctionKind:
        return "view" if draft.source == "view" else "entry"

    def _known(self, draft: StudyDraft) -> tuple[ResolvedFunction | None, ResolvedCall | None]:
        function, call = super()._known(draft)
        return function, call if draft.source in _CALLED else None

    def _fields(self, draft: StudyDraft) -> Group:
        example = "0x1::coin::supply" if draft.source == "view" else "0x1::aptos_account::transfer"
        sender = "an address, no key is needed; of committed transactions it may be empty: all accounts"
        part = f"may be empty: those of the study; {SAMPLE} is a sample"
        called, sent = ("source", _CALLED), ("source", ("simulate", "committed"))
        inside = group(
            ("source", select("Reads", _READS_LABELS)),
            *function_fields(self._function, self._call, placeholder=example, units=self._units, unknown_when=called),
            ("sender", mono("Sender", sender, sent, placeholder="0xa11ce", names=True)),
            ("range", mono("In the versions", part, ("source", ("committed",)))),
            ("label", Text("Label", hint="may be empty: the name of the function")),
        )
        span = mono("Versions", "0:-1 is all; 0:-1/200, 100:200, 2026-05-01..2026-06-01/20, or 100, 200, 300")
        return group(
            ("", group(("plan", select("Read at", _PLANS)), ("span", span), label="Versions")),
            ("chosen", Picks("Calls")),
            ("", group(("", inside), label=f"Call {draft.chosen + 1}")),
            ("title", Text("Title", placeholder=_DEFAULT_TITLE)),
            *([("", Group(self._hidden, plain=True))] if self._hidden else []),
        )

    def _python_of(self, request: Study) -> str:
        return _study_as_python(request, self.node)

    def _programs_of(self, request: Study) -> dict[str, str]:
        return {"Python": self._python_of(request), "Study": request.to_toml()}

    def _origin_of(self, result: Run) -> str:
        versions = result.observations["ledger_version"]
        time = result.record.finished_at
        return origin(self.node, "no version" if versions.empty else version_words(versions), time)

    def _facts(self) -> list[tuple[str, Any]]:
        if self.study is None:
            return []
        calls = ", ".join(short_addresses(call.name) for call in self.study.calls)
        return [("Study", self.study.title), ("Calls", visible(calls, 300)), ("Versions", self.study.versions.words)]

    def _subject(self) -> str | None:
        return None if self.study is None else repr(self.study)

    def __repr__(self) -> str:
        return f"GasExplorer(Node({self.node.name!r}), {self._subject() or 'no study yet'})"

    def _wanted(self) -> str | None:
        return None if self.study is None else self.study.digest

    # actions -------------------------------------------------------------------------------------------

    def check(self) -> bool:
        """Check every call against the code of the node, and show what a run would send and how long it would take.

        Returns
        -------
        bool
            True if the study can be run; otherwise `errors` states the reasons.
        """
        with self._busy_while("Checking"):
            study = self.study if self._check(again=True) else None
            if study is None:
                return False
            try:
                plan = estimate(study.specification(self._asked))
            except ToolkitError as error:
                self._blame_study(error)
                return False
            least, most = plan.requests
            requests = plural(most, "request") if least == most else f"{least:,} to {plural(most, 'request')}"
            words = f"Every call fits its function. A run sends {requests}."
            notes = [note for node in plan.nodes for note in node.notes]
            with self._state():
                self._plan = plan
                self._say("hint" if notes else "good", " ".join([words, *(f"{_sentence(note)}." for note in notes)]))
                self._show_pages()
            return True

    def run(self) -> None:
        """Check the entries, run the study and show the result; sets `errors` and `result`.

        Raises
        ------
        InputError
            If a run is in progress.
        """
        if not self._running.locked():
            self._stopping.clear()
        with self._running_alone():
            self._run()

    def _run(self) -> None:
        with self._busy_while("Running"):
            with self._state():
                study = self.study if self._read_strictly() else None
                if study is None:
                    return
                self._plan = None
                self._update_after = 0.0
                self._await_result()
                self._progress = Progress("starting")
            self._run_into(Path(mkdtemp(prefix="ledger-toolkit-run-")), study)

    def cancel(self) -> None:
        """Stop a run and any other requests of the form; what was read until then is in `result`.

        Requests in progress end at once, or within the node's ``timeout_s`` if they are still connecting.
        """
        self._stopping.set()
        self._runs.interrupt()
        super().cancel()

    def _open_call(self, call: Call) -> None:
        """Choose a call; it is added to the study unless the study has an equal one. The other entries stay.

        Of committed transactions a sample is read, unless somebody chose versions: on a public network the whole ledger
        has billions of them.
        """
        with self._state():
            draft, sampled = self._draft, call
            if call.reads_committed and call.versions is None and (draft.plan, draft.span) == ("search", "0:-1"):
                sampled = call.model_copy(update={"versions": SAMPLE})
            known = {call.fingerprint, sampled.fingerprint}
            calls = [one for one in draft.listed if one.function.strip()]
            read = [self._other(one) for one in calls]
            equal = [place for place, one in enumerate(read) if one is not None and one.fingerprint in known]
            if not equal:
                calls, equal = [*calls, _write_call(sampled)], [len(calls)]
            self._edit(draft.with_calls(calls, equal[0]))
            if self._draft.range == SAMPLE:
                self._say("hint", f"A sample of the transactions is read, {SAMPLE}: see In the versions.")

    def _chosen_call(self) -> Call:
        """Return the call that is chosen.

        Raises
        ------
        InputError
            If its form is not a valid call.
        """
        call = self._other(self._draft.call)
        if call is None:
            raise InputError(f"call {self._draft.chosen + 1} is not complete: {self._draft.wrong}")
        return call

    def _made_backgrounds(self) -> list[Background]:
        """Make what runs jobs: a run has one of its own, so that functions are looked up meanwhile."""
        self._runs, self._running = Background(self._node, self._report), threading.Lock()
        return [*super()._made_backgrounds(), self._runs]

    @contextmanager
    def _running_alone(self) -> Iterator[None]:
        """Refuse a second run while the block runs; one that was given up has the lock of the node before."""
        running = self._running
        if not running.acquire(blocking=False):
            raise InputError("a run is in progress; cancel() stops it")
        try:
            yield
        finally:
            running.release()
            if not is_given_up():
                self._progress = Progress()

    def _run_into(self, folder: Path, study: Study) -> None:
        failure: BaseException | None = None
        try:
            run_study(study.specification(self._runs.node), folder, progress=partial(self._note))
        except (ToolkitError, _StoppedError, KeyboardInterrupt) as error:
            failure = error
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if is_given_up():
            shutil.rmtree(folder, ignore_errors=True)
            raise GivenUpError
        run = None
        try:
            run = Run(folder, temporary=True)
        except StudyError:  # it ended before the first row
            shutil.rmtree(folder, ignore_errors=True)
        count = plural(0 if run is None else len(run.observations), "reading")
        if run is None:
            self._show_pages()
        else:
            self._show_result(run, study.digest)
        if run is not None and run.complete:
            self._say(*_outcome(run))
            self._remember()
        elif self._stopping.is_set() or not isinstance(failure, ToolkitError):
            self._say("bad", f"Stopped after {count}." if run is None else f"Stopped after {count}; they can be used.")
        else:
            self._blame_study(failure)
        if isinstance(failure, KeyboardInterrupt):
            raise failure

    def _blame_study(self, error: ToolkitError) -> None:
        """Show why a study cannot be run: at its calls, at its versions, or beside the buttons."""
        words = short_addresses(str(error))
        if self._stopping.is_set():
            self._say("bad", "Stopped.")
        elif type(error) in {StudyError, InputError}:
            self._blame("chosen" if type(error) is StudyError else "span", words)
            self._say("error", self._count_words())
        else:
            self._blame("node", words)

    def _note(self, what: str, done: int, total: int) -> None:
        """Show the progress, at most 4 times a second; ends the run if that was asked for."""
        if self._stopping.is_set() or is_given_up():
            raise _StoppedError
        now = self._clock()
        if now < self._update_after:
            return
        self._update_after = now + _UPDATE_S
        words = f"{done:,} of about {total:,} calls read" if what == "observing" else f"{what}: {done:,} of {total:,}"
        self._progress = Progress(words, done, total)

    # messages of the browser ----------------------------------------------------------------------------

    def _do_run(self, message: Message) -> None:
        if self._running.locked():
            return
        self._stopping.clear()
        if self._function is None and self._found.good:  # the fields of its arguments are not shown yet
            self._do_look(message)
        self._runs.start("run", self._run_unless_long)

    def _run_unless_long(self) -> None:
        with suppress(InputError), self._running_alone():  # refused
            if not self._asks_first():
                self._run()

    def _asks_first(self) -> bool:
        """Return whether a run sends so many requests that the plan is shown and Run is to be pressed again."""
        study = self.study
        if study is None or not self._found.good or self._plan is not None:
            return False
        with self._busy_while("Checking"):
            try:
                plan = estimate(study.specification(self._runs.node))
            except ToolkitError:
                return False  # the run says why
            least, _ = plan.requests
            if least <= _MAX_UNASKED:
                return False
            with self._state():
                self._plan = plan
                again = "Press Run again to start it, or choose fewer versions; 0:-1/200 reads a sample."
                self._say("error", f"A run sends {plural(least, 'request')}: see the plan. {again}")
                self._show_pages()
        return True

    def _do_add(self, _message: Message) -> None:
        calls = self._draft.calls
        self._edit(self._draft.with_calls([*calls, CallDraft()], len(calls)))

    def _do_drop(self, message: Message) -> None:
        left = [call for place, call in enumerate(self._draft.calls) if place != message.place]
        self._edit(self._draft.with_calls(left, self._draft.chosen - (0 <= message.place < self._draft.chosen)))

    # pages ---------------------------------------------------------------------------------------------

    def _show_pages(self, **_about: Any) -> None:
        """Show the last run, and the plan, which needs no run."""
        super()._show_pages()
        if self._plan is not None:
            self._pages = (*self._pages, (_PLAN, str(code(repr(self._plan), _PLAN))))

    def _result_pages(self, result: Run, **_about: Any) -> dict[str, str]:
        return dict(run_pages(result))


def _outcome(run: Run) -> tuple[str, str]:
    """Return the kind and the words of a complete run's outcome; a reading with an error is not an answer."""
    errors = run.observations["error_code"].dropna()
    count, failed = plural(len(run.observations), "reading"), len(errors)
    if failed and failed == len(run.observations):
        return "bad", f"No answer in {count}: {visible(errors.mode().iloc[0], 80)}."
    more = f"; {failed:,} failed" if failed else ""
    return "good", f"{plural(len(step_groups(run.steps)), 'step')} found in {count}{more}."


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:]
