"""The base class of all builders: a draft that the browser edits and Python reads, findings, pages and programs."""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import anywidget
import msgspec
import traitlets
from msgspec.structs import replace
from traitlets import Bool, Dict, Int, Unicode, observe, validate

from toolkit._present.text import cleaned, short_addresses
from toolkit.client._accounts import known_names
from toolkit.client._http import served_ledger
from toolkit.errors import InputError, ToolkitError
from toolkit.widgets._fields import Findings
from toolkit.widgets._html import Html, code, pairs, paragraph, safe
from toolkit.widgets._messages import About, Found, Group, Hits, Message, Progress, Status, message_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolkit.client._node import Node


_NOTE = "This is a picture of the form with its last result. Run the cell to use the form."
# The text of the output that holds the widget. Viewers without a kernel skip it: the next output has the picture.
_LIVE = "<!-- the form -->"


class Pictured(anywidget.AnyWidget):
    """A widget that notebooks also store as a picture, which is updated with each result.

    JupyterLab either draws a widget or reports that its model was not found; it does not fall back to another MIME type
    of the same output. The picture is therefore a separate output, which the style sheet hides while the widget is
    present.
    """

    error = Unicode(read_only=True)
    busy = Bool(default_value=False, read_only=True).tag(sync=True)

    _key = Unicode().tag(sync=True)  # identifies the picture, which the browser hides
    _status = shown(Status())
    _displayed = False

    def close(self) -> None:
        """Remove all observers, and remove the widget from the page."""
        self.on_msg(self._on_message, remove=True)
        self.unobserve_all()
        self.layout.close()
        super().close()

    def _on_message(self, _widget: object, content: object, _buffers: object) -> None:
        """React to a message of the browser."""
        raise NotImplementedError

    def _say(self, kind: str, words: str) -> None:
        """Show a message beside the buttons; `kind` is hint, good, bad or error."""
        self._status = Status(kind, cleaned(words))

    def _picture(self) -> str:
        """Return the widget as HTML that needs neither the kernel nor a script."""
        raise NotImplementedError

    def _bundle(self) -> dict[str, str]:
        page = f'<style>{self._css}</style><div data-ltk-of="{self._key}">{self._picture()}</div>'
        return {"text/html": page, "text/plain": repr(self)}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        self._key, self._displayed = self.model_id or "", True
        # Import what results and programs need ahead of time, so that no key press waits 0.6 s for it.
        ahead = threading.Timer(2, import_module, ("toolkit.widgets._gas_explorer",))
        ahead.daemon = True
        ahead.start()
        bundle = self._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        display(dict(data or {}) | {"text/html": _LIVE}, raw=True)  # type: ignore[no-untyped-call]
        display(self._bundle(), raw=True, display_id=self._key)  # type: ignore[no-untyped-call]

    def _paint(self) -> None:
        """Store the current picture in all cells that show the widget."""
        if self._displayed:
            from IPython.display import update_display

            update_display(self._bundle(), raw=True, display_id=self._key)  # type: ignore[no-untyped-call]


def picture(
    title: str, facts: Iterable[tuple[str, Any]], program: str, parts: Iterable[str], *, caption: str = "Entries"
) -> str:
    """Return a form as HTML that does not need the kernel, for saved notebooks.

    Parameters
    ----------
    title : str
        Title of the form.
    facts : iterable of (str, object)
        Labels and entries.
    program : str
        The request as Python code.
    parts : iterable of str
        Result pages, or pictures of forms, whose note is moved to the end.
    caption : str, default "Entries"
        Caption of the table of facts; visible on sites that remove style sheets.
    """
    shown, note = "".join(parts), paragraph(_NOTE)
    text = code(program, "The request as Python") if program else ""
    body = f"<strong>{safe(title)}</strong>{pairs(facts, caption)}{shown.replace(note, '')}{text}{note}"
    return f'<div class="ltk ltk-picture">{body}</div>'


_MAX_RECENT = 5  # results that are compared: more columns are hard to read
_MAX_TOGETHER = 8  # requests that a form sends in parallel: public nodes throttle a client that sends more
_JOIN_S = 2.0  # how long `Form.close` waits for an abandoned thread, which ends at once unless it is connecting


def source_of(*names: str) -> str:
    """Return the text of files of this folder, joined."""
    folder = Path(__file__).parent
    return "\n".join((folder / name).read_text("utf-8") for name in names)


class GivenUpError(Exception):
    """The job that this thread runs has been abandoned, so it must not change anything."""


class _Worker(threading.Thread):
    """A thread that runs a `Background`'s jobs until no job is waiting."""

    def __init__(self, background: Background, job: Callable[[], None]) -> None:
        super().__init__(name="toolkit-form", daemon=True)
        self.background = background
        self.given_up = False
        self._job: Callable[[], None] | None = job

    def run(self) -> None:
        while self._job is not None:
            self._job()
            self._job = self.background.next_job(self)


def is_given_up() -> bool:
    """Return whether this thread runs a job that was abandoned."""
    thread = threading.current_thread()
    return isinstance(thread, _Worker) and thread.given_up


class Background:
    """Runs jobs in a thread, one after another, over its own connections, which are closed to abandon a job.

    A node with a custom transport cannot be copied. An abandoned job that waits for such a node, or is still
    connecting, ends with `GivenUpError` at the node's timeout.

    Parameters
    ----------
    node : Node
    failed : callable (Exception)
        Called with the exception if a job fails.
    """

    def __init__(self, node: Node, failed: Callable[[Exception], None]) -> None:
        self._shared, self._failed = node, failed
        self._lock = threading.Lock()
        self._copy: Node | None = None
        self._interrupted = False
        self._worker: _Worker | None = None
        self._running = ""
        self._waiting: dict[str, Callable[[], None]] = {}
        self._ending: list[_Worker] = []

    @property
    def node(self) -> Node:
        """The node that jobs use. It is created on first use, since creating it opens files.

        Raises `GivenUpError` in an abandoned job. An interrupted job gets the closed node, so that it cannot continue.
        """
        if is_given_up():
            raise GivenUpError
        with self._lock:
            if self._copy is None:
                try:
                    self._copy = self._shared.with_share(1)
                except InputError:  # a custom transport
                    self._copy = self._shared
            return self._copy

    def start(self, name: str, job: Callable[[], object], *, again: bool = False) -> None:
        """Run a job once all earlier jobs have ended; it replaces a waiting job of the same name.

        Parameters
        ----------
        name : str
            Name of the job.
        job : callable
            Called without arguments.
        again : bool, default False
            Whether to queue the job even if a job with this name is running.
        """
        context = contextvars.copy_context()  # it names the cell to which the kernel sends updates

        def run() -> None:
            try:
                context.run(job)
            except GivenUpError:
                pass
            except Exception as error:  # noqa: BLE001  # a form must not remain busy, whatever happened
                self._failed(error)

        with self._lock:
            if name == self._running and not again:
                return
            if self._worker is not None:
                self._waiting[name] = run
                return
            self._worker, self._running = _Worker(self, run), name
            self._worker.start()

    def next_job(self, worker: _Worker) -> Callable[[], None] | None:
        """Return the next job for a thread, or None to end the thread."""
        with self._lock:
            self._ending = [one for one in self._ending if one.is_alive()]
            if worker is not self._worker:
                return None
            if self._interrupted:
                self._copy, self._interrupted = None, False
            if not self._waiting:
                self._worker, self._running = None, ""
                return None
            self._running = next(iter(self._waiting))
            return self._waiting.pop(self._running)

    def give_up(self) -> bool:
        """Drop waiting jobs and close the connections of the running job; return whether a job was running."""
        with self._lock:
            worker, copy = self._worker, self._copy
            self._waiting.clear()
            self._running = ""
            if worker is None:
                return False
            worker.given_up = True
            self._ending.append(worker)
            self._worker = self._copy = None
            self._interrupted = False
        if copy is not None and copy is not self._shared:
            copy.close()
        return True

    def interrupt(self) -> None:
        """Drop waiting jobs and end the running job's requests; the job may still report the results it has."""
        with self._lock:
            self._waiting.clear()
            copy, self._interrupted = self._copy, self._worker is not None
            if not self._interrupted:
                self._copy = None
        if copy is not None and copy is not self._shared:
            copy.close()

    @property
    def idle(self) -> bool:
        """Whether no job is running or waiting."""
        with self._lock:
            return self._worker is None

    def wait(self) -> None:
        """Wait until the thread that runs jobs has ended, if there is one."""
        with self._lock:
            worker = self._worker
        if worker is not None:
            worker.join()

    def close(self) -> None:
        """Abandon all jobs, wait for the threads to end, and close the connections."""
        self.give_up()
        self.interrupt()
        for worker in list(self._ending):
            if worker is not threading.current_thread():
                worker.join(_JOIN_S)


class Form(Pictured):
    """A form whose controls are in ``form.js``. A builder defines the fields and the actions of its buttons.

    A subclass sets the class attributes below and implements `_read_draft`, `_write_draft`, `_fields`, `_needs_look`,
    `_checked_words`, `_origin_of`, `_result_pages` and `_programs_of`. A button in `_form.actions` runs the method of
    the same name in the background; any other button calls a method ``_do_<name>(message)``.

    Several threads may use a form: the kernel's thread, and those of `_backgrounds`, which run jobs. Code that reads
    and then changes the form's state does so in ``with self._state()``, where it must not send requests. A job reads
    through `_asked`; `cancel` ends its requests, and from then on the job cannot change the form.

    Parameters
    ----------
    node : Node
    request : object, optional
        Initial content of the form.
    """

    _esm = source_of("common.js", "form.js")
    _css = source_of("form.css")

    _form: ClassVar[About]
    _blank: ClassVar[Any]  # the draft of an empty form, a frozen struct with ``seq``, which counts edits
    _mirrored: ClassVar[tuple[str, ...]] = ()  # traits that are also keys of the draft: setting one is an edit
    _result_name: ClassVar[str] = "result"  # the trait that holds the last result
    _in_python: ClassVar[dict[str, str]] = {}  # suffixes that lead from the result to a page's content, by title
    _pictured: ClassVar[frozenset[str]] = frozenset()  # titles of the pages that a saved notebook shows
    _holder: Any = None  # the workbench that shows the form

    request: Any = traitlets.Any(allow_none=True)
    errors = Dict(read_only=True)
    python = Unicode(read_only=True)

    # What the browser shows; only `_draft` is also written by it.
    _about = shown(None)
    _spec = shown(Group())
    _draft = shown(None).tag(from_json=lambda content, form: form._typed(content))  # noqa: SLF001 - a part of the form
    _findings = shown(Found())
    _pages = shown(())
    _serial = Int(0).tag(sync=True)  # number of the result: two results may have equal pages
    _stale = Unicode().tag(sync=True)  # why the result does not match the entries
    _origin = Unicode().tag(sync=True)  # node, ledger version and time of the result
    _programs = shown(())
    _hits = shown(Hits())
    _progress = shown(Progress())

    def __init__(self, node: Node, *, request: Any = None) -> None:
        self._node = node
        self._lock = threading.RLock()
        self._backgrounds = self._made_backgrounds()
        self._at_work: list[threading.Thread] = []
        self._setting = True
        self._strict = False
        self._answered_for: Any = None  # the read or request that gave the result
        self._unfinished = False  # whether a later run gave no result
        self._recent: list[tuple[Any, dict[str, Any]]] = []  # drafts that gave a result, and its facts
        self._blamed: dict[str, str] = {}
        self._look_errors: dict[str, str] = {}  # errors found on the node, until the next look-up
        self._names = known_names(node)
        self._found = Findings()
        self._taken = self._blank
        super().__init__(_draft=self._blank, _about=self._about_node())
        self._setting = False
        self.on_msg(self._on_message)
        self.observe(self._on_entry, names=list(self._mirrored))
        if request is None:
            self._take(self._draft)
        else:
            self.request = request

    def __repr__(self) -> str:
        return f"{type(self).__name__}(Node({self.node.name!r}), {self._subject() or 'no request yet'})"

    def _picture(self) -> str:
        origin = [str(paragraph(f"{self._stale or 'From'}: {self._origin}"))] if self._origin else []
        pages = [(title, html) for title, html in self._pages if title.partition(" (")[0] in self._pictured]
        parts = [f"<h4>{title}</h4>{html}" for title, html in pages]
        about = [(name, value) for name, value in self._facts() if value]
        return picture(self._form.title, about, self.python, [*origin, *parts])

    @property
    def node(self) -> Node:
        """The form's node. Setting another node preserves the entries and removes the result."""
        return self._node

    @node.setter
    def node(self, node: Node) -> None:
        if node is self._node:
            return
        self._end_work()
        with self._state():
            self._node = node
            self._backgrounds = self._made_backgrounds()
            self._forget_node()
            self._about = self._about_node()
            self._take(self._draft)

    def _about_node(self) -> About:
        ledger = served_ledger(self.node.url)
        accounts = () if ledger is None else [(short_addresses(one.address), one.name) for one in ledger.accounts]
        return replace(self._form, node=self.node.name, accounts=tuple(one for one in accounts if one[1]))

    def _forget_node(self) -> None:
        """Forget the previous node's responses."""
        self._names = known_names(self._node)
        self._blamed, self._look_errors, self._recent = {}, {}, []
        self._say("hint", "")
        self._show_result(None)

    def close(self) -> None:
        """Cancel requests in progress, remove all observers, and remove the form from the page."""
        if self.comm is None:  # closed already, or refused by the constructor
            return
        self._end_work()
        super().close()

    # what a builder defines ------------------------------------------------------------------------------

    def _read_draft(self, draft: Any, found: Findings, *, typed: bool) -> tuple[Any, Any]:
        """Return the completed draft and its request, which is None if an entry is invalid or missing.

        Parameters
        ----------
        draft : struct
            The entries.
        found : Findings
            Receives errors, missing entries and notes.
        typed : bool
            Whether the draft comes from the browser.
        """
        raise NotImplementedError

    def _write_draft(self, request: Any) -> Any:
        """Return the draft for a request, or the empty draft for None."""
        raise NotImplementedError

    def _fields(self, draft: Any) -> Group:
        """Return the controls that the browser draws for a draft."""
        raise NotImplementedError

    def _read_strictly(self) -> bool:
        """Read the entries, treating empty ones as errors; return whether all are valid, and show a message if not."""
        with self._state():
            self._strict, self._blamed = True, {}
            self._take(self._draft)
            if self.errors:
                self._say("error", self._count_words())
            return not self.errors

    def _check(self, *, again: bool = False) -> bool:
        """Check the entries, set `errors`, and return whether all are valid.

        The code at the head is read if it is not known, or if `again` is true.
        """
        good = self._read_strictly()
        if self._needs_look(good=good, again=again):
            self._look()
            with self._state():
                if self.errors:
                    self._say("error", self.errors.get("node") or self._count_words())
                return not self.errors
        return good

    def _needs_look(self, *, good: bool, again: bool) -> bool:
        """Return whether a check must send requests; `good` states whether the entries are valid so far."""
        raise NotImplementedError

    def _checked_words(self) -> str:
        """Return the message to show after a successful check."""
        raise NotImplementedError

    def _programs_of(self, request: Any) -> dict[str, str]:
        """Return programs that send the request, by name, including ``Python``."""
        raise NotImplementedError

    def _result_pages(self, result: Any, /, **about: Any) -> dict[str, str]:
        """Return the pages of a result by title."""
        raise NotImplementedError

    def _compared(self, _result: Any) -> dict[str, Any]:
        """Return the facts in which a result is compared with earlier results; empty if it is not compared."""
        return {}

    def _origin_of(self, result: Any) -> str:
        """Return the origin of a result: node, ledger version and time."""
        raise NotImplementedError

    def _facts(self) -> list[tuple[str, Any]]:
        """Return the labels and values that the picture in saved notebooks shows."""
        return []

    def _subject(self) -> str | None:
        """Return a short description of what the request calls."""
        return None if self.request is None else str(self.request)

    def _wanted(self) -> Any:
        """Return what the entries ask for; a result for anything else is out of date."""
        return self.request

    def _entered(self, draft: Any, name: str, value: Any) -> Any:
        """Return the draft after a trait in `_mirrored` has been set."""
        return replace(draft, **{name: value})

    def _trait_of(self, name: str, draft: Any) -> Any:
        """Return the value of a trait in `_mirrored` for a draft."""
        return getattr(draft, name)

    def _start_over(self) -> None:
        """Clear the messages about the last draft before a new request is shown."""
        self._strict, self._blamed = False, {}
        self._say("hint", "")

    # the draft -------------------------------------------------------------------------------------------

    def _typed(self, content: object) -> Any:
        """Return the draft that the browser sent; if it is invalid, show an error and return the current draft."""
        try:
            return msgspec.convert(content, type(self._blank))
        except msgspec.ValidationError as error:
            self._found = Findings(errors={"form": f"the entries could not be read: {error}"})
            self._show_findings()
            self._say("error", f"The entries could not be read: {error}. Undo the last edit.")
            return self._draft

    @observe("_draft")
    def _on_draft(self, _change: object) -> None:
        with self._state():
            if self._setting:
                return
            if self._draft.seq > self._taken.seq:
                self._edited()
                self._take(self._draft, typed=True)
            else:  # an edit that came with an earlier message, or that a change from Python has superseded
                with self._without_feedback():
                    self._draft = self._taken

    def _on_entry(self, change: Any) -> None:
        with self._state():
            if self._setting:
                return
            self._edited()
            self._edit(self._entered(self._draft, change["name"], change["new"]))

    def _edit(self, draft: Any) -> None:
        """Show a draft that was changed in Python."""
        self._take(replace(draft, seq=self._draft.seq + 1))

    @observe("request")
    def _on_request(self, _change: object) -> None:
        with self._state():
            if not self._setting:
                self._fill(self.request)

    @validate("request")
    def _fill_again(self, proposal: Any) -> Any:
        """Fill the form again if the request is unchanged, since traitlets does not notify of an equal value."""
        with self._state():
            if not self._setting and proposal["value"] == self.request:
                self._fill(proposal["value"])
        return proposal["value"]

    def _fill(self, request: Any) -> None:
        self._start_over()
        self._edit(self._write_draft(request))

    def _edited(self) -> None:
        """Clear the node's messages about the entries before an edit."""
        self._blamed = {}
        if not self.busy:
            self._say("hint", "")

    def _take(self, draft: Any, *, typed: bool = False) -> None:
        """Read a draft, set the request and show the findings; `typed` states if the draft is from the browser."""
        found = Findings(names=self._names)
        with self._state(), self._without_feedback(), self.hold_sync():
            try:
                draft, request = self._read_draft(draft, found, typed=typed)
                spec = self._fields(draft)
                for name in self._mirrored:
                    setattr(self, name, self._trait_of(name, draft))
            except GivenUpError:
                raise
            except Exception as error:  # noqa: BLE001  # the form must read the next edit, whatever was typed
                request, spec = None, self._spec
                problem = f"entries could not be read ({type(error).__name__}: {error!s:.200})"
                found.errors["form"] = f"the {problem}"
                self._say("error", f"The {problem}. Undo the last edit.")
            self._found, self._taken = found, draft
            self._spec, self._draft = spec, draft
            if request is not None:
                self.request = request
            self._show_findings()
            made = {} if self.request is None else self._programs_of(self.request)
            self._programs = tuple(made.items())
            self.set_trait("python", "" if self._outdated else made.get("Python", ""))
        if self._holder is not None:
            self._holder._write_link()  # noqa: SLF001 - the widget that this form is a part of

    def _restore(self, typed: dict[str, Any]) -> None:
        """Fill the form with the entries from a link.

        Raises
        ------
        InputError
            If the entries do not fit the form.
        """
        try:
            draft = msgspec.convert(msgspec.to_builtins(self._blank) | typed, type(self._blank))
        except msgspec.ValidationError as error:
            raise InputError(f"the link does not fit this form: {error}") from None
        with self._state():
            self._start_over()
            self._edit(draft)

    @property
    def _outdated(self) -> bool:
        """Whether the programs are out of date because the entries are not a valid request."""
        return not self._found.good or bool(self._look_errors)

    @contextmanager
    def _without_feedback(self) -> Iterator[None]:
        """Set traits without triggering updates of the other traits."""
        before, self._setting = self._setting, True
        try:
            yield
        finally:
            self._setting = before

    @contextmanager
    def _state(self) -> Iterator[None]:
        """Hold the lock on the form's state while the block reads and changes it.

        Raises
        ------
        GivenUpError
            In the thread of an abandoned job.
        """
        with self._lock:
            if is_given_up():
                raise GivenUpError
            yield

    # what runs in the background -------------------------------------------------------------------------

    def _made_backgrounds(self) -> list[Background]:
        """Create a `Background` for buttons, and another for searches, which need not wait for them."""
        self._background, self._searches = Background(self._node, self._report), Background(self._node, self._report)
        return [self._background, self._searches]

    @property
    def _asked(self) -> Node:
        """The node for this thread; for a job, a copy whose connections `cancel` closes."""
        thread = threading.current_thread()
        return thread.background.node if isinstance(thread, _Worker) else self.node

    @property
    def _idle(self) -> bool:
        """Whether nothing runs in the background."""
        return all(background.idle for background in self._backgrounds)

    def _wait(self) -> None:
        """Wait until nothing runs in the background."""
        while not self._idle:
            for background in self._backgrounds:
                background.wait()

    def cancel(self) -> None:
        """Cancel the form's background requests; earlier results are kept.

        A request in progress ends at once, or within the node's ``timeout_s`` if it is still connecting. Its result is
        discarded. Methods called from Python, such as ``simulate()``, do not run in the background.
        """
        with self._lock:
            self._searches.give_up()
            if self._background.give_up():
                self._say("hint", "Cancelled.")
                self._drop_given_up()

    def _drop_given_up(self) -> None:
        self._at_work = [one for one in self._at_work if not (isinstance(one, _Worker) and one.given_up)]
        self.set_trait("busy", value=bool(self._at_work))

    def _end_work(self) -> None:
        """Abandon all jobs in progress and close their connections."""
        self.cancel()
        for background in self._backgrounds:
            background.close()
        with self._lock:
            self._drop_given_up()
            self._progress = Progress()

    def _report(self, error: Exception) -> None:
        """Show an unexpected error."""
        with suppress(GivenUpError), self._state():
            self._say("error", f"{type(error).__name__}: {error}")

    # messages of the browser ----------------------------------------------------------------------------

    def _handle_msg(self, msg: dict[str, Any]) -> None:
        with self._lock:
            super()._handle_msg(msg)

    def _on_message(self, _widget: object, content: object, _buffers: object) -> None:
        message = message_of(content)
        if message is None:
            return
        if message.draft is not None and (draft := self._typed(message.draft)).seq > self._taken.seq:
            self._draft = draft
        run = getattr(self, f"_do_{message.do}", None)
        if run is not None:
            run(message)
        elif message.do in dict(self._form.actions):
            self._background.start(message.do, getattr(self, message.do))

    def check(self) -> bool:
        """Check the entries against the ABI at the node's head, and set `errors`.

        Returns
        -------
        bool
            True if the entries form a request that fits the ABI. If the node does not return the module's ABI,
            arguments are not checked.

        Notes
        -----
        Source: ``GET /v1`` and ``GET /v1/accounts/{address}/module/{name}``; ABIs are cached.
        """
        with self._busy_while("Checking"):
            good = self._check(again=True)
            if good:
                self._say("good", self._checked_words())
        return good

    def _look(self) -> None:
        """Read from the node what the check of the entries needs."""

    def _do_look(self, _message: Message) -> None:
        def look() -> None:
            with self._busy_while(""):
                self._look()

        self._background.start("look", look, again=True)

    def _do_stop(self, _message: Message) -> None:
        self.cancel()

    @contextmanager
    def _busy_while(self, words: str) -> Iterator[None]:
        """Set `busy` and show a message while the block runs, which may send requests."""
        thread = threading.current_thread()
        with self._state():
            self._at_work.append(thread)
            self.set_trait("busy", value=True)
            if words:
                self._say("hint", f"{words}\N{HORIZONTAL ELLIPSIS}")
            said = self._status
        try:
            yield
        finally:
            with self._state():
                self._at_work.remove(thread)
                if words and self._status is said:
                    self._say("hint", "")
                self.set_trait("busy", value=bool(self._at_work))

    def _together(self, jobs: Sequence[Callable[[], object]]) -> None:
        """Run jobs that send requests in parallel, and show how many have ended.

        Errors of the toolkit are suppressed; code that needs a missing result reports it.
        """

        def run(job: Callable[[], object]) -> None:
            with suppress(ToolkitError):
                job()

        if not jobs:
            return
        with ThreadPoolExecutor(min(len(jobs), _MAX_TOGETHER)) as pool:
            for done, _ in enumerate(as_completed([pool.submit(run, job) for job in jobs])):
                with self._state():
                    self._progress = Progress(f"{done + 1} of {len(jobs)}", done + 1, len(jobs))
        self._progress = Progress()

    # display --------------------------------------------------------------------------------------------

    def _blame(self, path: str, words: str) -> None:
        """Show an error at a field until the next edit; an error at the path ``node`` appears beside the buttons."""
        with self._state():
            self._blamed[path] = words
            self._show_findings()
            if path == "node":
                self._say("error", words)

    def _count_words(self) -> str:
        count = len(self.errors)
        return f"{count} {'entry needs' if count == 1 else 'entries need'} attention."

    def _show_findings(self) -> None:
        found = self._found
        errors = found.errors | self._look_errors | self._blamed
        required = found.missing if self._strict or self.request is not None else {}
        self.set_trait("errors", errors | required)
        self.set_trait("error", "; ".join(f"{name}: {text}" for name, text in self.errors.items()))
        self._findings = Found(errors, found.missing, found.notes, self._strict, self._outdated, self._taken.seq)
        self._show_stale()

    def _show_result(self, result: Any, asked: Any = None) -> None:
        """Set and show the result of `asked`; None removes the current result."""
        with self._state():
            self._answered_for, self._unfinished = asked, False
            if facts := {} if result is None else self._compared(result):
                self._recent = [*self._recent, (self._taken, facts)][-_MAX_RECENT:]
            self._origin = "" if result is None else self._origin_of(result)
            self._serial += 1
            self.set_trait(self._result_name, result)
            self._show_pages()
            self._show_stale()

    def _await_result(self) -> None:
        """Mark the current result as out of date, because a new one has been requested."""
        with self._state():
            self._unfinished = True
            self._show_stale()

    def _show_pages(self, **about: Any) -> None:
        """Show the last result; `about` is passed to `_result_pages`."""
        result = getattr(self, self._result_name)
        try:
            made = {} if result is None else self._result_pages(result, **about)
        except ToolkitError as error:
            self._say("error", str(error))
            return
        if made and len(self._recent) > 1:
            from toolkit.widgets._results import recent_page  # here: a form opens sooner without pandas

            made |= {f"Recent ({len(self._recent)})": recent_page([facts for _, facts in self._recent])}
        pages = []
        for title, html in made.items():
            rest = self._in_python.get(title.partition(" (")[0])
            note = Html(f"In Python: <code>.{self._result_name}{rest}</code> of this form")
            pages.append((title, str(html) if rest is None else html + paragraph(note)))
        self._pages = tuple(pages)
        self._paint()

    def _do_again(self, message: Message) -> None:
        """Fill the form with the entries of an earlier call."""
        if 0 <= message.place < len(self._recent):
            self._edited()
            self._edit(self._recent[message.place][0])

    def _show_stale(self) -> None:
        stale = "From an earlier run" if self._unfinished else ""
        if not self._found.good or self._answered_for != self._wanted():
            stale = "From before your last change"
        self._stale = "" if getattr(self, self._result_name) is None else stale

    def _paint(self) -> None:
        super()._paint()
        if self._holder is not None:
            self._holder._paint()  # noqa: SLF001 - the widget that this form is a part of
