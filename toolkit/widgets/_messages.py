"""Messages between the browser and the kernel: the controls of a form, the text around them, and the user's actions.

Each trait that the browser reads is one of these records, or a list of them. Apart from edits of a form's draft, the
browser sends only `Message`.
"""

from __future__ import annotations

from typing import Any

import msgspec
import traitlets
from msgspec import Struct

Step = str | int
When = tuple[str, tuple[Any, ...]] | None  # a key of the draft and its values for which a part is shown

# parts of a form -----------------------------------------------------------------------------------------------------


class Part(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag=str.lower):
    """A control, or a group of controls, that the browser draws."""

    label: str = ""
    when: When = None
    type: str = ""
    hint: str = ""


class Text(Part, frozen=True):
    """A text field, multi-line if it has ``rows``. With ``search`` it suggests functions, with ``names`` accounts.

    ``offers`` has values with their names: the name of one, once it is left, becomes the value, as that of an account.
    With ``hinted``, errors do not repeat the hint, which stays below them.
    """

    mono: bool = False
    rows: int = 0
    placeholder: str = ""
    search: bool = False
    names: bool = False
    offers: tuple[tuple[str, str], ...] = ()
    hinted: bool = False


class Switch(Part, frozen=True):
    """A checkbox; ``unset`` is its state while its value is None."""

    unset: bool = False


class Select(Part, frozen=True):
    """A choice between values; each option is a value and its label."""

    options: tuple[tuple[str, str], ...] = ()
    short: bool = False


class Button(Struct, frozen=True):
    """A button, which sends ``number`` with the message of its `Actions`."""

    text: str
    number: int = -1


class Actions(Part, frozen=True):
    """Buttons that send the message ``do``."""

    do: str = ""
    buttons: tuple[Button, ...] = ()


class Group(Part, frozen=True):
    """Parts with the keys of their drafts. A part with an empty key has the draft of the group itself."""

    fields: tuple[tuple[Step, Part], ...] = ()
    fold: bool = False
    filled: bool = False
    plain: bool = False
    inline: bool = False


class Rows(Part, frozen=True):
    """A list of identical parts. The user can add a ``blank`` one unless ``exactly`` fixes their number.

    If it is, ``hints`` and ``labels`` may have a hint and a label for each part.
    """

    item: Part = Part()
    blank: Any = ""
    exactly: int | None = None
    hints: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


def mono(label: str, hint: str = "", when: When = None, **about: Any) -> Text:
    """Return a text field in a fixed-width font."""
    return Text(label, hint=hint, when=when, mono=True, **about)


def group(*fields: tuple[Step, Part], label: str = "", **about: Any) -> Group:
    """Return a group of these fields."""
    return Group(label, fields=fields, **about)


def select(label: str, options: dict[Any, str], **about: Any) -> Select:
    """Return a choice; `options` maps values to labels."""
    return Select(label, options=tuple((str(value), words) for value, words in options.items()), **about)


def blank_of(part: Part) -> Any:
    """Return the draft of an untouched part."""
    match part:
        case Switch():
            return False
        case Select():
            return part.options[0][0] if part.options else ""
        case Rows():
            return []
        case Group():
            return {step: blank_of(inner) for step, inner in part.fields}
    return ""


def label_of(part: Part, key: str) -> str:
    """Return the label of the part with a key in a group or the groups in it; empty if there is none."""
    fields = part.fields if isinstance(part, Group) else ()
    return next(filter(None, (inner.label if step == key else label_of(inner, key) for step, inner in fields)), "")


# what is shown around them -------------------------------------------------------------------------------------------


class Status(Struct, frozen=True):
    """A message beside the buttons; ``kind`` is hint, good, mixed, bad or error."""

    kind: str = "hint"
    text: str = ""


class FieldMessages(Struct, frozen=True):
    """Messages by field path. If ``strict`` is true, empty fields that nobody has edited are errors too.

    ``code_note`` says why the code is not that of the entries, or is empty; ``seq`` is the number of the last edit that
    was read, and ``looked`` that of the last edit that a completed look-up has seen.
    """

    errors: dict[str, str] = {}
    missing: dict[str, str] = {}
    notes: dict[str, str] = {}
    strict: bool = False
    code_note: str = ""
    seq: int = 0
    looked: int = 0


class Page(Struct, frozen=True):
    """A page of a result: its title, its HTML, and the number of things it lists, if it is a list.

    ``failed`` is how many of these failed, if not all did. Saved notebooks show the first page and those with ``kept``.
    """

    title: str
    html: str
    count: int | None = None
    failed: int = 0
    kept: bool = False


class NoProgram(Struct, frozen=True):
    """Why a request cannot be written in some language, in the place of the text."""

    reason: str


Programs = dict[str, str | NoProgram]  # requests as text to copy, by title


class Hits(Struct, frozen=True):
    """Names and signatures of the functions that a search found, and their total number; modules end in ``::``."""

    query: str = ""
    hits: tuple[tuple[str, str], ...] = ()
    error: str = ""
    total: int = 0


class Progress(Struct, frozen=True):
    """The progress of a job, in words and numbers; empty if nothing is in progress."""

    text: str = ""
    done: int = 0
    total: int = 0


class About(Struct, frozen=True):
    """What the browser shows around the fields.

    ``purpose`` is what an empty form says it is for. ``actions`` holds the messages and labels of the buttons;
    Ctrl+Enter presses the first one. ``late`` holds the titles of pages that are completed only when they are opened.
    ``look`` holds the keys of the draft whose edits make the browser send the message ``look``, by default those of a
    function. ``accounts`` holds the addresses and names of accounts that have a name on the ledger. ``code_below`` is
    whether the code is below the fields if there is a result: for a form with few fields and a long result.
    """

    title: str
    purpose: str
    actions: tuple[tuple[str, str], ...]
    node: str = ""
    accounts: tuple[tuple[str, str], ...] = ()
    late: tuple[str, ...] = ()
    look: tuple[str, ...] = ()
    code_below: bool = False


class NodeShown(Struct, frozen=True):
    """The name of a workbench's node, and the name of its network if the user can choose it by name."""

    name: str = ""
    target: str = ""


# what the browser asks -----------------------------------------------------------------------------------------------


class Message(Struct, frozen=True):
    """A message from the browser: ``do`` names the action, and the other fields are its arguments.

    ``id`` identifies the message: the trait ``_heard`` has it once the message has been handled.
    """

    do: str
    id: str = ""
    draft: dict[str, Any] | None = None
    query: str = ""
    number: int = -1
    name: str = ""
    tab: str = ""
    target: str = ""


def message_of(content: object) -> Message | None:
    """Return the content of a browser message as a `Message`; None if it is not valid."""
    try:
        return msgspec.convert(content, Message)
    except msgspec.ValidationError:
        return None


def shown(value: Any) -> Any:
    """Return a trait that the browser reads: a record, or a list of records; their `Html` is sent as text."""
    return traitlets.Any(value).tag(sync=True, to_json=lambda held, _widget: msgspec.to_builtins(held, enc_hook=str))
