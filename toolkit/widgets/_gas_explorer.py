"""A form that makes a gas study, runs it in the background and shows what moved gas: figure, steps and their causes."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from traitlets import Instance, observe, validate

from toolkit._present.text import plural, short_addresses, visible
from toolkit.errors import InputError, StudyError, ToolkitError
from toolkit.gas._steps import step_groups
from toolkit.gas._study import Run, Study
from toolkit.gas.plan._estimate import Plan, estimate
from toolkit.gas.runs._runner import run_study
from toolkit.widgets import _study_draft as drafts
from toolkit.widgets._fields import Findings
from toolkit.widgets._form import Background, GivenUpError, _shell, _Worker, is_given_up
from toolkit.widgets._function_form import FunctionForm
from toolkit.widgets._html import Html, code, origin
from toolkit.widgets._messages import About, Group, Message, Progress, Words
from toolkit.widgets._results import run_pages, version_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.client._contracts import ContractFunction
    from toolkit.client._node import Node
    from toolkit.gas._calls import Call
    from toolkit.widgets._functions import FunctionKind, ResolvedCall, ResolvedFunction


_UPDATE_S = 0.25  # between two updates of the progress: the eye does not follow more
_PLAN = "Plan"  # title of the page with the plan
_MAX_UNASKED = 20_000  # requests of a run that starts when Run is pressed once: some minutes on a public network


class _StoppedError(Exception):
    """The reader stopped the run."""


class GasExplorer(FunctionForm):
    """Choose calls and ledger versions, watch their gas, and see at which versions it steps and why.

    Neither constructing the form nor setting its traits makes a request. In a browser, a run goes on in the background
    and can be stopped; what was read until then can be used. For more than 20,000 requests, the plan is shown first,
    and you press Run again to confirm. From Python, `run` does not ask, and returns when the run is complete.

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
        thresholds, stays part of the study; its node becomes the one of the form.
    errors : dict of str to str
        Error messages by field, such as ``function`` or ``arguments.1``; those of other calls, and of the study as a
        whole, are at ``chosen``. Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that makes and runs an equal study; empty without a study. Read only.
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
    _blank = drafts.StudyDraft()
    _mirrored = ("function", "type_arguments", "arguments")
    _result_name = "result"
    _pictured = frozenset({"Figure", "Steps"})

    request = Instance(Study, allow_none=True)
    study = Instance(Study, allow_none=True)
    result = Instance(Run, allow_none=True, read_only=True)

    def __init__(
        self, node: Node, function: str | ContractFunction | None = None, *, study: Study | None = None
    ) -> None:
        self._given = drafts.Given()
        self._hidden = ""
        self._plan: Plan | None = None
        self._clock = time.monotonic
        self._update_after = 0.0
        self._stopping = threading.Event()
        self._closed = False
        super().__init__(node, function, request=study)

    def _forget_node(self) -> None:
        self._plan = None
        super()._forget_node()

    # the study -------------------------------------------------------------------------------------------

    @observe("study")
    def _on_study(self, _change: object) -> None:
        if self.study is not self.request:
            self.request = self.study

    @validate("study")
    def _fill_with_study(self, proposal: Any) -> Any:
        """Fill the form with the study that it has already, as `_fill_again` does with a request."""
        if not self._setting and proposal["value"] == self.study:
            self.request = proposal["value"]
        return proposal["value"]

    @observe("request")
    def _on_made(self, _change: object) -> None:
        if self._plan is not None:
            self._plan = None
            self._pages = tuple(page for page in self._pages if page[0] != _PLAN)
        if self.study is not self.request:
            self.study = self.request

    def _write_draft(self, request: Study | None) -> drafts.StudyDraft:
        self._given, self._hidden = drafts.Given.of(request), drafts.hidden_parts(request)
        if request is not None and request.nodes != (self.node.name,):
            names = ", ".join(visible(name, 60) for name in request.nodes)
            self._say("hint", f"The study names {names}; this form reads from {visible(self.node.name, 60)}.")
        return self._given.draft

    def _read_draft(
        self, draft: drafts.StudyDraft, found: Findings, *, typed: bool
    ) -> tuple[drafts.StudyDraft, Study | None]:
        before = self._taken
        draft = draft.chosen_after(before if typed else draft)
        if draft.chosen != before.chosen or len(draft.calls) != len(before.calls):
            before = replace(before, function=draft.function)  # the arguments are those of the function shown now
            self._call = self._known(draft)[1]
        draft = self._read_function(draft, found, typed=typed, before=before)
        chosen = drafts.read_study_call(draft.call, self._given, found) if found.good else None
        draft = replace(draft, wrong="" if chosen is not None else found.wrong or "it is not complete")
        draft = draft.with_calls(
            [draft.call if n == draft.chosen else one for n, one in enumerate(draft.calls)], draft.chosen
        )
        calls = [chosen if place == draft.chosen else self._other(call) for place, call in enumerate(draft.calls)]
        return draft, drafts.read_study(draft, calls, self._given, self.node, found)

    def _other(self, draft: drafts.CallDraft) -> Call | None:
        """Return a call that is not chosen; None if it was not complete when it was."""
        return None if draft.wrong else drafts.read_study_call(draft, self._given, Findings())

    def _kind_of(self, draft: drafts.StudyDraft) -> FunctionKind:
        return draft.function_kind

    def _known(self, draft: drafts.StudyDraft) -> tuple[ResolvedFunction | None, ResolvedCall | None]:
        function, call = super()._known(draft)
        return function, call if draft.takes_arguments else None

    def _fields(self, draft: drafts.StudyDraft) -> Group:
        return drafts.form_fields(draft, self._function, self._call, self._hidden)

    def _python_of(self, request: Study) -> str:
        return drafts.study_as_python(request, self.node)

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
            True if the study can be run; else `errors` says why not.
        """
        with self._busy_while("Checking"):
            study = self.study if self._check() else None
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

    def close(self) -> None:
        """Stop a run and discard its result, then remove the form from the page and all observers."""
        self._closed = True
        super().close()

    def _open_call(self, call: Call) -> None:
        """Choose a call; it is added to the study unless the study has an equal one. The other entries stay.

        Of committed transactions a sample is read, unless somebody chose versions: on a public network the whole ledger
        has billions of them.
        """
        with self._state():
            draft, sampled = self._draft, call
            calls = [draft.call if place == draft.chosen else one for place, one in enumerate(draft.calls)]
            if call.reads_committed and call.versions is None and draft.is_whole_ledger:
                sampled = call.model_copy(update={"versions": drafts.SAMPLE})
            known = {call.fingerprint, sampled.fingerprint}
            read = [self._other(one) for one in calls]
            equal = [place for place, one in enumerate(read) if one is not None and one.fingerprint in known]
            if not equal:
                added, calls = drafts.write_study_call(sampled), [one for one in calls if one.function.strip()]
                names = {one.label.strip() or one.function.strip() for one in calls}
                if added.function in names:  # labels must differ
                    labels = (f"{added.function} {number}" for number in range(2, len(names) + 3))
                    added = replace(added, label=next(label for label in labels if label not in names))
                calls, equal = [*calls, added], [len(calls)]
            self._edit(draft.with_calls(calls, equal[0]))
            if self._draft.range == drafts.SAMPLE:
                self._say("hint", f"A sample of the transactions is read, {drafts.SAMPLE}: see Only some transactions.")

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
        if not isinstance(threading.current_thread(), _Worker):  # a job may have been stopped before this
            self._stopping.clear()
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
        if study is None or not self._found.good or self._plan is not None or not drafts.may_be_long(study):
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
        self._edit(self._draft.with_calls([*calls, drafts.CallDraft()], len(calls)))

    def _do_drop(self, message: Message) -> None:
        left = [call for place, call in enumerate(self._draft.calls) if place != message.place]
        self._edit(self._draft.with_calls(left, self._draft.chosen - (0 <= message.place < self._draft.chosen)))

    # pages ---------------------------------------------------------------------------------------------

    def _show_pages(self, **_about: Any) -> None:
        _on_main_thread(self._draw_pages)

    def _draw_pages(self) -> None:
        if self._closed:
            return
        try:
            made = self._pages_now()
        except ToolkitError as error:
            self._say("error", str(error))
            return
        self._pages = tuple((title, str(html)) for title, html in made.items())

    def _pages_now(self) -> dict[str, Html]:
        """Return the pages of the last run, or of one in progress, and of the plan."""
        made = {} if self.result is None else run_pages(self.result, self._reached_by())
        return made | ({} if self._plan is None else {_PLAN: code(repr(self._plan), _PLAN)})


def _on_main_thread(run: Callable[[], object]) -> None:
    """Run a function that draws: in a notebook's main thread, since matplotlib's settings are global."""
    loop = getattr(getattr(_shell(), "kernel", None), "io_loop", None)
    if loop is None or threading.current_thread() is threading.main_thread():
        run()
    else:
        loop.add_callback(run)


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
