"""The state of a form, and the events that change it. Nothing here sends a request or uses a widget.

A form is one frozen `FormState`. `step` returns the state after an event. Everything that the browser shows, and every
trait, is made from the state.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
from msgspec import structs

from toolkit._present.text import cleaned
from toolkit.errors import InputError
from toolkit.move import parse_address
from toolkit.widgets._fields import Findings
from toolkit.widgets._messages import FieldMessages, Group, Hits, Progress, Status, label_of

_MAX_RECENT = 5  # results that are compared: more columns are hard to read
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{1,64}\b(?!::)")  # not the account of a module or type
UNFILLED = "Complete the form to get the code."
OUTDATED = "This code is out of date: the form is not a valid request."
FAILS = "This code would fail"

State = TypeVar("State", bound="FormState")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A result, and what is needed to show it.

    Attributes
    ----------
    result : object
        What the form's trait holds.
    asked : object
        What it is the result of: the ``wanted`` of the state when it was requested.
    facts : mapping of str to object
        What is compared with the facts of other results; empty if it is not compared.
    """

    result: Any
    asked: Any
    facts: Mapping[str, Any] = field(default_factory=dict)


# events --------------------------------------------------------------------------------------------------------------


class Edited(NamedTuple):
    """Entries were changed, in the browser if ``typed`` is true, else from Python."""

    entries: Any
    typed: bool = False


class Entered(NamedTuple):
    """A trait that mirrors an entry was set."""

    name: str
    value: Any


class Filled(NamedTuple):
    """A request was set, which fills the form."""

    request: Any


class Restored(NamedTuple):
    """A link was opened, which holds these entries."""

    kept: Mapping[str, Any]


class Learned(NamedTuple):
    """Attributes of the state have new values, from which fields and findings follow: a look-up was answered."""

    facts: Mapping[str, Any]


class Noted(NamedTuple):
    """Attributes of the state have new values, from which nothing else follows."""

    facts: Mapping[str, Any]


class Pressed(NamedTuple):
    """A button was pressed that needs complete entries: from now on, missing ones are errors."""


class Refused(NamedTuple):
    """The node refused the request, because of the entry at ``path``, or at the path ``node`` of none of them."""

    path: str
    words: str


class Answered(NamedTuple):
    """A result arrived, or None removes the last one."""

    answer: Answer | None


class Said(NamedTuple):
    """The message beside the buttons changed; ``kind`` is hint, good, mixed, bad or error."""

    kind: str
    words: str


class Moved(NamedTuple):
    """The form has another node, whose accounts have these names."""

    node: Any
    names: Mapping[str, str]


Event = Edited | Entered | Filled | Restored | Learned | Noted | Pressed | Refused | Answered | Said | Moved


# the state -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FormState:
    """Everything that a form knows and shows.

    Attributes
    ----------
    entries : struct
        What is in the fields. ``seq`` counts edits.
    node : Node
        The node that requests are for. It is not asked anything here.
    names : mapping of str to str
        Names of accounts by canonical address.
    ledger : LedgerState or None
        The ledger when the field of the versions was left last.
    plans : mapping of str to ResolvedPlan
        The versions of times that were typed.
    request : object
        The request of the last valid entries.
    made_from : struct
        The entries that made the request. Later, a look-up may find errors in them.
    findings : Findings
        What was found in the entries.
    fields : Group
        The controls.
    strict : bool
        Whether missing entries are errors.
    looked : mapping of str to str
        Errors found on the node, by path, until the next look-up.
    looked_at : int
        The edit that was the last when the last look-up began that has ended.
    refused : mapping of str to str
        Why the node refused the request, by path, until the next edit.
    status : Status
        The message beside the buttons.
    busy : bool
        Whether a job is in progress.
    progress : Progress
        How far the job is.
    hits : Hits
        What the last search found.
    answer : Answer or None
        The last result.
    unfinished : bool
        Whether a later run gave no result.
    serial : int
        Number of the result.
    recent : tuple
        Entries that gave a result, and the facts of the result.
    """

    entries: Any
    node: Any = None
    names: Mapping[str, str] = field(default_factory=dict)
    ledger: Any = None
    plans: Mapping[str, Any] = field(default_factory=dict)
    request: Any = None
    made_from: Any = None
    findings: Findings = field(default_factory=Findings)
    fields: Group = field(default_factory=Group)
    strict: bool = False
    looked: Mapping[str, str] = field(default_factory=dict)
    looked_at: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)
    status: Status = field(default_factory=Status)
    busy: bool = False
    progress: Progress = field(default_factory=Progress)
    hits: Hits = field(default_factory=Hits)
    answer: Any = None
    unfinished: bool = False
    serial: int = 0
    recent: tuple[tuple[Any, Mapping[str, Any]], ...] = ()

    # what a builder defines

    def read(self, before: Self, *, typed: bool = False) -> Self:
        """Return the state with what follows from its entries: their completion, the request, findings and fields.

        Parameters
        ----------
        before : FormState
            The state before the event.
        typed : bool, default False
            Whether the entries come from the browser.
        """
        raise NotImplementedError

    def written(self, request: Any) -> Self:
        """Return the state with the entries of a request, or empty entries for None, before they are read."""
        raise NotImplementedError

    def entered(self, name: str, value: Any) -> Any:
        """Return the entries after a trait that mirrors one of them was set."""
        return structs.replace(self.entries, **{name: value})

    def trait(self, name: str) -> Any:
        """Return the value of a trait that mirrors an entry."""
        return getattr(self.entries, name)

    @property
    def wanted(self) -> Any:
        """What the entries ask for; a result of anything else is out of date."""
        return self.request

    @property
    def has_call(self) -> bool:
        """Whether the entries have a call whose gas can be studied."""
        return False

    def forgotten(self) -> Self:
        """Return the state without what was read from the node."""
        return self

    def saved(self) -> Any:
        """Return what a link keeps of the form, as a struct of the class of `entries`."""
        return self.entries

    def restored(self, kept: Mapping[str, Any]) -> Self:
        """Return the state with the entries of a link, before they are read.

        Raises
        ------
        InputError
            If they do not fit the form.
        """
        try:
            blank = type(self.entries)()
            return self.with_entries(msgspec.convert(msgspec.to_builtins(blank) | dict(kept), type(blank)))
        except msgspec.ValidationError as error:
            raise InputError(f"the link does not fit this form: {error}") from None

    # what the browser shows

    def with_entries(self, entries: Any) -> Self:
        """Return the state with other entries, which supersede those that the browser has."""
        return dataclasses.replace(self, entries=structs.replace(entries, seq=self.entries.seq + 1))

    def unreadable(self, entries: Any, problem: str) -> Self:
        """Return the state after an edit that could not be read."""
        findings = Findings(errors={"form": f"the {problem}"})
        made = dataclasses.replace(self, entries=entries, findings=findings)
        return made.saying("error", f"The {problem}. Undo the last edit.")

    def saying(self, kind: str, words: str) -> Self:
        """Return the state with a message beside the buttons; `kind` is hint, good, mixed, bad or error."""
        return dataclasses.replace(self, status=Status(kind, cleaned(words)))

    def named(self, words: str, beside: str = " ({})") -> str:
        """Return a message in which each account that has a name is followed by it, as `beside` says."""

        def name_of(match: re.Match[str]) -> str:
            name = self.names.get(parse_address(match[0]))
            known = name is None or words[match.end() :].startswith(f" {name}")
            return match[0] if known else f"{match[0]}{beside.format(name)}"

        return _ADDRESS.sub(name_of, words)

    @property
    def result(self) -> Any:
        """The last result."""
        return None if self.answer is None else self.answer.result

    @property
    def errors(self) -> dict[str, str]:
        """All error messages by path, including those for missing entries once they are errors."""
        required = self.findings.missing if self.strict or self.request is not None else {}
        return self.findings.errors | dict(self.looked) | required | dict(self.refused)

    @property
    def code_note(self) -> str:
        """Why the entries cannot be written as code; empty if they can."""
        wrong = self.findings.errors | dict(self.looked) | dict(self.refused)
        if self.findings.good and not self.looked:
            return ""
        if self.request is None or not wrong:
            return UNFILLED
        if self.made_from.seq != self.entries.seq:
            return OUTDATED
        label = label_of(self.fields, next(iter(wrong)).partition(".")[0])
        return f"{FAILS}: see {label}." if label else f"{FAILS}."

    @property
    def messages(self) -> FieldMessages:
        """The messages at the fields."""
        found, wrong = self.findings, self.findings.errors | dict(self.looked) | dict(self.refused)
        seq = self.entries.seq
        return FieldMessages(wrong, found.missing, found.notes, self.strict, self.code_note, seq, self.looked_at)

    @property
    def stale(self) -> str:
        """Why the result is not that of the entries; empty if it is."""
        if self.answer is None:
            return ""
        if not self.findings.good or self.answer.asked != self.wanted:
            return "From before your last change"
        return "From an earlier run" if self.unfinished else ""

    @property
    def count_words(self) -> str:
        """How many entries are wrong or missing."""
        count = len(self.errors)
        return f"{count} {'entry needs' if count == 1 else 'entries need'} attention."


def step(state: State, event: Event) -> State:
    """Return the state after an event."""
    made = _stepped(state, event)
    if made.stale and not made.busy and made.status == state.status and not state.stale:
        made = dataclasses.replace(made, status=Status())  # it is that of the result
    is_made = made.findings.good or isinstance(event, Filled)
    return dataclasses.replace(made, made_from=made.entries) if is_made else made


def _stepped(state: State, event: Event) -> State:  # noqa: PLR0911, C901 - one case per event
    status = state.status if state.busy else Status()
    match event:
        case Edited(entries, typed):
            made = dataclasses.replace(state, entries=entries, refused={}, status=status)
            return made.read(state, typed=typed)
        case Entered(name, value):
            made = dataclasses.replace(state, refused={}, status=status)
            return made.with_entries(state.entered(name, value)).read(state)
        case Filled(request):
            made = dataclasses.replace(state, strict=False, refused={}, status=Status(), request=request)
            return made.written(request).read(state)
        case Restored(kept):
            made = dataclasses.replace(state, strict=False, refused={}, status=Status())
            return made.restored(kept).read(state)
        case Learned(facts):
            made = dataclasses.replace(state, **facts).read(state)
            # The entries were taken for a request before the code was known, and are not one.
            premature = state.findings.good and not made.findings.good and not made.findings.errors
            return dataclasses.replace(made, request=None) if premature else made
        case Noted(facts):
            return dataclasses.replace(state, **facts)
        case Pressed():
            made = dataclasses.replace(state, strict=True, refused={}).read(state)
            return made.saying("error", made.count_words) if made.errors else made
        case Refused(path, words):
            made = dataclasses.replace(state, refused={**state.refused, path: state.named(words)})
            return made.saying("error", made.refused[path] if path == "node" else made.count_words)
        case Answered(answer):
            compared = [] if answer is None or not answer.facts else [(state.entries, answer.facts)]
            others = [one for one in state.recent if answer is None or one[1] != answer.facts]
            recent = (*others, *compared)[-_MAX_RECENT:]
            made = dataclasses.replace(state, recent=recent, serial=state.serial + 1)
            return dataclasses.replace(made, answer=answer, unfinished=False, strict=False)
        case Said(kind, words):
            return state.saying(kind, words)
        case Moved(node, names):
            made = dataclasses.replace(state, node=node, names=names, looked={}, refused={}, recent=(), status=Status())
            made = dataclasses.replace(made, ledger=None, plans={})
            return step(made.forgotten().read(state), Answered(None))
