"""The base class of all builders: it applies events to the form's state, shows the state, and runs jobs."""

from __future__ import annotations

import contextvars
import dataclasses
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
from toolkit.client._fetch import resolved_plan
from toolkit.errors import InputError, ToolkitError
from toolkit.widgets import _messages as parts
from toolkit.widgets import _state as events
from toolkit.widgets._fields import has_times, is_time
from toolkit.widgets._html import Html, code, pairs, paragraph, safe
from toolkit.widgets._messages import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolkit.client._node import Node


_NOTE = "This is a picture of the form. Run the cell to use it."
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
    _status = shown(parts.Status())
    _heard = Unicode().tag(sync=True)  # id of the last message that was handled: a browser without answers says so
    _displayed = False

    def close(self) -> None:
        """Remove all observers, and remove the widget from the page."""
        self.on_msg(self._on_message, remove=True)
        self.unobserve_all()
        self.layout.close()
        super().close()

    def _on_message(self, _widget: object, content: object, _buffers: object) -> None:
        message = parts.message_of(content)
        if message is not None:
            self._do(message)
            self._heard = message.id

    def _do(self, message: parts.Message) -> None:
        """React to a message of the browser."""
        raise NotImplementedError

    def _say(self, kind: str, words: str) -> None:
        """Show a message beside the buttons; `kind` is hint, good, mixed, bad or error."""
        self._status = parts.Status(kind, cleaned(words))

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
        data = dict((bundle[0] if isinstance(bundle, tuple) else bundle) or {}) | {"text/html": _LIVE}
        data.pop("text/plain", None)  # the picture has it: a terminal prints it once
        display(data, raw=True)  # type: ignore[no-untyped-call]
        display(self._bundle(), raw=True, display_id=self._key)  # type: ignore[no-untyped-call]

    def _paint(self) -> None:
        """Store the current picture in all cells that show the widget."""
        if self._displayed:
            from IPython.display import update_display

            update_display(self._bundle(), raw=True, display_id=self._key)  # type: ignore[no-untyped-call]


def picture(
    title: str, facts: Iterable[tuple[str, Any]], program: str, inside: Iterable[str], *, caption: str = "Entries"
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
    inside : iterable of str
        Result pages, or pictures of forms, whose note is moved to the end.
    caption : str, default "Entries"
        Caption of the table of facts; visible on sites that remove style sheets.
    """
    pages, note = "".join(inside), paragraph(_NOTE)
    text = code(program, "The request as Python") if program else ""
    body = f"<strong>{safe(title)}</strong>{pairs(facts, caption)}{pages.replace(note, '')}{text}{note}"
    return f'<div class="ltk ltk-picture">{body}</div>'


_MAX_TOGETHER = 8  # requests that a form sends in parallel: public nodes throttle a client that sends more
_JOIN_S = 2.0  # how long `Builder.close` waits for an abandoned thread, which ends at once unless it is connecting


def source_of(*names: str) -> str:
    """Return the text of files of this folder, joined."""
    folder = Path(__file__).parent
    return "\n".join((folder / name).read_text("utf-8") for name in names)


def words_of(error: Exception) -> str:
    """Return the message of an error of the toolkit; of any other, also its class, since nobody expected it."""
    return str(error) if isinstance(error, ToolkitError) else f"{type(error).__name__}: {error}"


class GivenUpError(Exception):
    """The job that this thread runs has been abandoned, so it must not change anything."""


class _Worker(threading.Thread):
    """A thread that runs jobs of a `Background` until none is waiting; ``node`` is the one that its job uses."""

    def __init__(self, background: Background, *, looks_up: bool) -> None:
        super().__init__(name="toolkit-form", daemon=True)
        self.background, self.looks_up = background, looks_up
        self.node: Node | None = None
        self.given_up = False
        self.running = ""
        self.waiting: dict[str, Callable[[], None]] = {}

    def run(self) -> None:
        while (job := self.background.next_job(self)) is not None:
            job()


def is_given_up() -> bool:
    """Return whether this thread runs a job that was abandoned."""
    thread = threading.current_thread()
    return isinstance(thread, _Worker) and thread.given_up


def asked_node(default: Node) -> Node:
    """Return the node for this thread; for a job, a copy whose connections are closed to abandon it."""
    thread = threading.current_thread()
    return thread.background.node_of(thread) if isinstance(thread, _Worker) else default


class Background:
    """Runs one job at a time, and one look-up beside it, over connections that are closed to abandon them.

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
        self._workers: dict[bool, _Worker] = {}  # by whether they run look-ups
        self._ending: list[_Worker] = []

    def node_of(self, worker: _Worker) -> Node:
        """Return the node that a job uses: a copy that is created on first use, since creating it opens files.

        Raises `GivenUpError` in an abandoned job. An interrupted job gets the closed node, so that it cannot continue.
        """
        if worker.given_up:
            raise GivenUpError
        with self._lock:
            if worker.node is None:
                if self._copy is None:
                    try:
                        self._copy = self._shared.with_share(1)
                    except InputError:  # a custom transport
                        self._copy = self._shared
                worker.node = self._copy
            return worker.node

    def start(self, name: str, job: Callable[[], object], *, looks_up: bool = False) -> None:
        """Run a job, after those of its kind that have been started; it replaces a waiting job of the same name.

        Parameters
        ----------
        name : str
            Name of the job. While a job with this name is running, it is not started again, but a look-up is: what it
            looks up has changed.
        job : callable
            Called without arguments.
        looks_up : bool, default False
            Whether the job is a look-up, which does not wait for other jobs.
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
            worker = self._workers.get(looks_up)
            if worker is None:
                worker = self._workers[looks_up] = _Worker(self, looks_up=looks_up)
                worker.start()
            if looks_up or name != worker.running:
                # At the end: what was started before it, such as the look-up on which it builds, runs first.
                worker.waiting.pop(name, None)
                worker.waiting[name] = run

    def next_job(self, worker: _Worker) -> Callable[[], None] | None:
        """Return the next job for a thread, or None to end the thread."""
        with self._lock:
            worker.node, worker.running = None, next(iter(worker.waiting), "")
            if worker.waiting:
                return worker.waiting.pop(worker.running)
            if not worker.given_up:
                del self._workers[worker.looks_up]
            return None

    def give_up(self, *, report: bool = False) -> bool:
        """Drop waiting jobs and end the requests of running ones; return whether a job was running.

        Running jobs are abandoned. With `report`, only look-ups are: a job may still report the results it has.
        """
        with self._lock:
            running, copy, self._copy = list(self._workers.values()), self._copy, None
            for worker in running:
                worker.waiting.clear()
                if worker.looks_up or not report:
                    worker.given_up = True
                    del self._workers[worker.looks_up]
                    self._ending = [*(one for one in self._ending if one.is_alive()), worker]
        if copy is not None and copy is not self._shared:
            copy.close()
        return bool(running)

    @property
    def idle(self) -> bool:
        """Whether no job is running or waiting."""
        with self._lock:
            return not self._workers

    def wait(self) -> None:
        """Wait until no job is running or waiting."""
        while not self.idle:
            with self._lock:  # it is held while a worker starts, and one that has not started cannot be joined
                workers = list(self._workers.values())
            for worker in workers:
                worker.join()

    def close(self) -> None:
        """Abandon all jobs, wait for the threads to end, and close the connections."""
        self.give_up()
        for worker in list(self._ending):
            if worker is not threading.current_thread():
                worker.join(_JOIN_S)


class Builder(Pictured):
    """A form whose controls are in ``form.js``. A builder defines its state and the actions of its buttons.

    A subclass sets the class attributes below and implements `_needs_look`, `_checked_words`, `_origin_of`,
    `_result_pages` and `_programs_of`; its state implements what follows from the entries. A button in
    `_form.actions` runs the method of the same name in the background; any other button calls a method
    ``_do_<name>(message)``.

    Several threads may use a form: the kernel's thread, and those of `_background`, which run jobs. Each changes the
    state with `_apply`; code that reads the state first does so in ``with self._locked()``, where it must not send
    requests. A job reads through `_asked`; `cancel` ends its requests, and from then on the job cannot change the form.

    Parameters
    ----------
    node : Node
    request : object, optional
        Initial content of the form.
    """

    _esm = source_of("common.js", "form.js")
    _css = source_of("form.css")

    _form: ClassVar[parts.About]
    _empty: ClassVar[Any]  # the state of an empty form
    _mirrored: ClassVar[tuple[str, ...]] = ()  # traits that mirror entries: setting one is an edit
    _result_name: ClassVar[str] = "result"  # the trait that holds the last result
    _listed: ClassVar[dict[str, str]] = {}  # traits that a saved notebook shows with the first page, by label
    _holder: Any = None  # the workbench that shows the form
    _held_as: str = ""  # its attribute for the form

    request: Any = traitlets.Any(allow_none=True)
    errors = Dict(read_only=True)
    python = Unicode(read_only=True)

    # What the browser shows; only `_draft`, the entries, is also written by it.
    _about = shown(None)
    _spec = shown(parts.Group())
    _draft = shown(None).tag(from_json=lambda content, form: form._typed(content))  # noqa: SLF001 - a part of the form
    _findings = shown(parts.FieldMessages())
    _pages = shown(())
    _serial = Int(0).tag(sync=True)  # number of the result: two results may have equal pages
    _stale = Unicode().tag(sync=True)  # why the result does not match the entries
    _origin = Unicode().tag(sync=True)  # ledger version and time of the result
    _programs = shown(())
    _hits = shown(parts.Hits())
    _progress = shown(parts.Progress())

    def __init__(self, node: Node, *, request: Any = None) -> None:
        self._node, self._background = node, Background(node, self._report)
        self._lock = threading.RLock()
        self._at_work: list[threading.Thread] = []
        self._setting = True  # whether traits are being set that follow from the state
        self._now: Any = dataclasses.replace(self._empty, node=node, names=known_names(node))
        super().__init__(_draft=self._now.entries, _about=self._about_node())
        self._setting = False
        self.on_msg(self._on_message)
        self.observe(self._on_entry, names=list(self._mirrored))
        if request is None:
            self._apply(events.Edited(self._now.entries))
        else:
            self.request = request

    def __repr__(self) -> str:
        return f"{type(self).__name__}(Node({self.node.name!r}), {self._subject() or 'no request yet'})"

    def _picture(self) -> str:
        origin = [str(paragraph(f"{self._stale or 'From'}: {self.node.name}, {self._origin}"))] if self._origin else []
        pages = [page.html for page in self._pages[:1]]
        for page in self._pages[1:]:
            pages += [f"<p><strong>{safe(page.title)}</strong></p>", page.html] if page.kept else []
        about = [(name, value) for name, value in self._facts() if value]
        return picture(self._form.title, about, self.python, [*origin, *pages])

    @property
    def node(self) -> Node:
        """The form's node. Setting another node preserves the entries and removes the result."""
        return self._node

    @node.setter
    def node(self, node: Node) -> None:
        if node is self._node:
            return
        self._end_work()
        with self._locked():
            self._node, self._background = node, Background(node, self._report)
            self._about = self._about_node()
            self._forget_node()
            self._apply(events.Moved(node, known_names(node)))

    def _about_node(self) -> parts.About:
        named = sorted(known_names(self.node).items(), key=lambda one: one[1].lower())
        accounts = tuple((short_addresses(address), name) for address, name in named)
        return replace(self._form, node=self.node.name, accounts=accounts)

    def _forget_node(self) -> None:
        """Forget what was read from the previous node and is not a part of the state."""

    def close(self) -> None:
        """Cancel requests in progress, remove all observers, and remove the form from the page."""
        if self.comm is None:  # closed already, or refused by the constructor
            return
        self._end_work()
        super().close()

    # what a builder defines ------------------------------------------------------------------------------

    def _needs_look(self, *, good: bool, again: bool) -> bool:
        """Return whether a check must send requests; `good` states whether the entries are valid so far."""
        raise NotImplementedError

    def _checked_words(self) -> str:
        """Return the message to show after a successful check."""
        raise NotImplementedError

    def _programs_of(self, request: Any) -> parts.Programs:
        """Return programs that send the request, by name, including ``Python``."""
        raise NotImplementedError

    def _result_pages(self, answer: Any) -> list[parts.Page]:
        """Return the pages of an answer."""
        raise NotImplementedError

    def _origin_of(self, answer: Any) -> str:
        """Return the origin of an answer: ledger version and time."""
        raise NotImplementedError

    def _facts(self) -> list[tuple[str, Any]]:
        """Return the labels and values that the picture in saved notebooks shows."""
        return [(label, self._now.named(getattr(self, name), " {}")) for label, name in self._listed.items()]

    def _subject(self) -> str | None:
        """Return a short description of what the request calls."""
        return None if self.request is None else str(self.request)

    # the state -------------------------------------------------------------------------------------------

    def _apply(self, event: events.Event) -> Any:
        """Change the state by an event, show it, and return it."""
        with self._locked():
            return self._change(event)

    def _change(self, event: events.Event) -> Any:
        before = self._now
        try:
            self._now = events.step(before, event)
        except Exception as error:
            if not isinstance(event, events.Edited):
                raise
            # The form must read the next edit, whatever was typed.
            problem = f"entries could not be read ({type(error).__name__}: {error!s:.200})"
            self._now = before.unreadable(event.entries, problem)
        self._show(before)
        return self._now

    def _say(self, kind: str, words: str) -> None:
        self._apply(events.Said(kind, words))

    def _note(self, **facts: Any) -> None:
        """Change attributes of the state from which nothing else follows."""
        self._apply(events.Noted(facts))

    def _learn(self, **facts: Any) -> Any:
        """Store what a look-up found in attributes of the state, read the entries again, and return the state."""
        return self._apply(events.Learned(facts))

    def _refuse(self, path: str, words: str) -> None:
        """Show an error at a field until the next edit; an error at the path ``node`` appears beside the buttons."""
        self._apply(events.Refused(path, words))

    def _show(self, before: events.FormState) -> None:
        """Set the traits that follow from the state."""
        answered = self._now.answer is not before.answer
        pages = self._answer_pages() if answered else self._pages
        now = self._now
        read = now.findings is not before.findings or now.code_note != before.code_note
        with self._without_feedback(), self.hold_sync():
            self._status, self._findings, self._progress, self._hits = now.status, now.messages, now.progress, now.hits
            self._stale, self._serial, self._pages = now.stale, now.serial, pages
            self.set_trait("errors", now.errors)
            self.set_trait("error", "; ".join(f"{name}: {text}" for name, text in now.errors.items()))
            self.set_trait("busy", now.busy)
            if answered:
                self._origin = "" if now.answer is None else self._origin_of(now.answer)
                self.set_trait(self._result_name, now.result)
            if read or not self._spec.fields:
                for name in self._mirrored:
                    setattr(self, name, now.trait(name))
                self._spec, self._draft, self.request = now.fields, now.entries, now.request
                made: parts.Programs = {} if now.request is None else self._programs_of(now.request)
                self._programs = () if now.code_note == events.UNFILLED else tuple(made.items())
                self.set_trait("python", "" if now.code_note else made.get("Python", ""))
        if answered:
            self._paint()
        if read and self._holder is not None:
            self._holder._write_link()  # noqa: SLF001 - the widget that this form is a part of

    def _answer_pages(self) -> tuple[parts.Page, ...]:
        """Return the pages of the last result."""
        answer, recent = self._now.answer, self._now.recent
        try:
            made = [] if answer is None else self._result_pages(answer)
        except ToolkitError as error:
            self._now = self._now.saying("error", str(error))
            return self._pages  # type: ignore[no-any-return]
        if made and answer.facts and len(recent) > 1:
            from toolkit.widgets._results import recent_page  # here: a form opens sooner without pandas

            made.append(parts.Page("Recent", recent_page([facts for _, facts in recent]), len(recent)))
        if made:
            path, owner = (f".{self._held_as}", "workbench") if self._held_as else ("", "form")
            where = Html(f"In Python: <code>{path}.{self._result_name}</code> of this {owner}")
            made[0] = replace(made[0], html=f"{made[0].html}{paragraph(where, 'note ltk-python')}")
        return tuple(made)

    def _paint(self) -> None:
        super()._paint()
        if self._holder is not None:
            self._holder._paint()  # noqa: SLF001 - the widget that this form is a part of

    def _typed(self, content: object) -> Any:
        """Return the draft that the browser sent; if it is invalid, show an error and return the current draft."""
        try:
            return msgspec.convert(content, type(self._now.entries))
        except msgspec.ValidationError as error:
            self._now = self._now.unreadable(self._now.entries, f"entries could not be read: {error}")
            self._show(self._now)
            return self._draft

    @observe("_draft")
    def _on_draft(self, _change: object) -> None:
        with self._locked():
            if self._setting:
                return
            if self._draft.seq > self._now.entries.seq:
                self._apply(events.Edited(self._draft, typed=True))
            else:  # an edit that came with an earlier message, or that a change from Python has superseded
                with self._without_feedback():
                    self._draft = self._now.entries

    def _on_entry(self, change: Any) -> None:
        with self._locked():
            if not self._setting:
                self._apply(events.Entered(change["name"], change["new"]))

    def _edit(self, **entries: Any) -> None:
        """Change entries from Python."""
        with self._locked():
            now = self._now.entries
            self._apply(events.Edited(replace(now, **entries, seq=now.seq + 1)))

    @observe("request")
    def _on_request(self, _change: object) -> None:
        with self._locked():
            if not self._setting:
                self._apply(events.Filled(self.request))

    @validate("request")
    def _fill_again(self, proposal: Any) -> Any:
        """Fill the form again if the request is unchanged, since traitlets does not notify of an equal value."""
        with self._locked():
            if not self._setting and proposal["value"] == self.request:
                self._apply(events.Filled(proposal["value"]))
        return proposal["value"]

    @contextmanager
    def _without_feedback(self) -> Iterator[None]:
        """Set traits without triggering updates of the other traits."""
        before, self._setting = self._setting, True
        try:
            yield
        finally:
            self._setting = before

    @contextmanager
    def _locked(self) -> Iterator[None]:
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

    @property
    def _asked(self) -> Node:
        """The node for this thread; for a job, a copy whose connections `cancel` closes."""
        return asked_node(self.node)

    @property
    def _idle(self) -> bool:
        """Whether nothing runs in the background."""
        return self._background.idle

    def _wait(self) -> None:
        """Wait until nothing runs in the background."""
        self._background.wait()

    def cancel(self) -> None:
        """Cancel the form's background requests; earlier results are kept.

        A request in progress ends at once, or within the node's ``timeout_s`` if it is still connecting. Its result is
        discarded. Methods called from Python, such as ``simulate()``, do not run in the background.
        """
        with self._lock:
            if self._background.give_up():
                self._drop_given_up()
                self._change(events.Said("hint", "Cancelled."))

    def _drop_given_up(self) -> None:
        """Forget the threads of abandoned jobs."""
        self._at_work = [one for one in self._at_work if not (isinstance(one, _Worker) and one.given_up)]
        self._change(events.Noted({"busy": bool(self._at_work)}))

    def _end_work(self) -> None:
        """Abandon all jobs in progress and close their connections."""
        self.cancel()
        self._background.close()
        with self._lock:
            self._drop_given_up()
            self._change(events.Noted({"progress": parts.Progress()}))

    def _report(self, error: Exception) -> None:
        """Show an unexpected error."""
        with suppress(GivenUpError):
            self._say("error", words_of(error))

    @contextmanager
    def _busy_while(self, words: str) -> Iterator[None]:
        """Set `busy` and show a message while the block runs, which may send requests."""
        thread = threading.current_thread()
        with self._locked():
            self._at_work.append(thread)
            self._note(busy=True)
            if words:
                self._say("hint", f"{words}\N{HORIZONTAL ELLIPSIS}")
            said = self._now.status
        try:
            yield
        finally:
            with self._locked():
                self._at_work.remove(thread)
                if words and self._now.status is said:
                    self._say("hint", "")
                self._note(busy=bool(self._at_work))

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
            for done, _ in enumerate(as_completed([pool.submit(run, job) for job in jobs]), start=1):
                self._note(progress=parts.Progress(f"{done} of {len(jobs)}", done, len(jobs)))
        self._note(progress=parts.Progress())

    # messages of the browser -----------------------------------------------------------------------------

    def _handle_msg(self, msg: dict[str, Any]) -> None:
        with self._lock:
            super()._handle_msg(msg)

    def _do(self, message: parts.Message) -> None:
        if message.draft is not None and (draft := self._typed(message.draft)).seq > self._now.entries.seq:
            self._draft = draft
        run = getattr(self, f"_do_{message.do}", None)
        if run is not None:
            run(message)
        elif message.do in dict(self._form.actions):
            self._background.start(message.do, getattr(self, message.do))

    def _do_time(self, _message: parts.Message) -> None:
        self._background.start("time", self._find_version, looks_up=True)

    def _do_look(self, _message: parts.Message) -> None:
        def look() -> None:
            seq = self._now.entries.seq
            try:
                with self._busy_while(""):
                    self._find_version()  # of a link, which may have a date
                    self._look()
            finally:
                self._note(looked_at=seq)

        self._background.start("look", look, looks_up=True)

    def _do_stop(self, _message: parts.Message) -> None:
        self.cancel()

    def _do_again(self, message: parts.Message) -> None:
        """Fill the form with the entries of an earlier call."""
        with self._locked():
            if 0 <= message.number < len(self._now.recent):
                self._apply(events.Edited(self._now.with_entries(self._now.recent[message.number][0]).entries))

    # checks ----------------------------------------------------------------------------------------------

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

    def _check(self, *, again: bool = False) -> bool:
        """Check the entries, set `errors`, and return whether all are valid.

        The code at the head is read if it is not known, or if `again` is true.
        """
        if not self._find_version():
            return False
        good = not self._apply(events.Pressed()).errors
        if not self._needs_look(good=good, again=again):
            return good
        self._look()
        with self._locked():
            now = self._now
            if now.errors:
                self._say("error", now.errors.get("node") or now.count_words)
            return not now.errors

    def _find_version(self) -> bool:
        """Read which versions the node has, and those of typed times; return False on failure."""
        now = self._now
        path = getattr(now.entries, "versions_field", "")
        typed = getattr(now.entries, path, "").strip()
        if not typed:
            return True
        with suppress(ToolkitError):  # what the node does not have is also refused later
            self._learn(ledger=self._asked.ledger())
        try:
            known = is_time if path == "version" else has_times
            if known(typed) and typed not in now.plans:
                self._learn(plans={**now.plans, typed: resolved_plan(self._asked, typed)[0]})
        except ToolkitError as error:
            self._refuse(path if isinstance(error, InputError) else "node", str(error))
            return False
        return True

    def _look(self) -> None:
        """Read from the node what the check of the entries needs."""
