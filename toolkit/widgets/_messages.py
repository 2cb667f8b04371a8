"""The messages between browser and kernel: the parts of a form, what is shown around them, and what is requested.

Each trait that the browser reads is one of these records, or a list of them; apart from the edits of a form's draft,
the browser sends only `Message`.
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
    """Something that the browser draws."""

    label: str = ""
    when: When = None
    type: str = ""
    hint: str = ""


class Text(Part, frozen=True):
    """A text field, with several lines if it has ``rows``; ``search`` suggests functions, ``names`` accounts."""

    mono: bool = False
    rows: int = 0
    placeholder: str = ""
    search: bool = False
    names: bool = False


class Switch(Part, frozen=True):
    """A checkbox."""


class Select(Part, frozen=True):
    """A choice of one value; each option is a value and its label."""

    options: tuple[tuple[str, str], ...] = ()
    short: bool = False


class Button(Struct, frozen=True):
    """A button that sends ``place`` with the message of its part."""

    text: str
    place: int = -1


class Actions(Part, frozen=True):
    """Buttons that send the message ``do``."""

    do: str = ""
    buttons: tuple[Button, ...] = ()


class Group(Part, frozen=True):
    """Parts by the key of their drafts; an empty key stands for the draft of the group itself.

    ``shared`` has parts by name, which `Use` draws: they are sent once.
    """

    fields: tuple[tuple[Step, Part], ...] = ()
    fold: bool = False
    filled: bool = False
    plain: bool = False
    columns: bool = False
    inline: bool = False
    shared: dict[str, Part] = {}


class Rows(Part, frozen=True):
    """A list of equal parts, to which the browser adds ``blank``, unless it has ``exactly`` so many, with ``hints``."""

    item: Part = Part()
    blank: Any = ""
    exactly: int | None = None
    hints: tuple[str, ...] = ()


class Use(Part, frozen=True):
    """A part of ``shared``."""

    use: str = ""


def mono(label: str, hint: str = "", when: When = None, **about: Any) -> Text:
    """Return a text in a fixed-width font."""
    return Text(label, hint=hint, when=when, mono=True, **about)


def group(*fields: tuple[Step, Part], label: str = "", **about: Any) -> Group:
    """Return a group of these parts."""
    return Group(label, fields=fields, **about)


def select(label: str, options: dict[Any, str], **about: Any) -> Select:
    """Return a choice; `options` maps values to words."""
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


# what is shown around them -------------------------------------------------------------------------------------------


class Status(Struct, frozen=True):
    """A sentence next to the buttons; ``kind`` is hint, good, bad or error."""

    kind: str = "hint"
    text: str = ""


class Found(Struct, frozen=True):
    """Sentences by the path of their field; ``strict`` if untouched fields are required too.

    ``outdated`` if the form is not a valid request; ``seq`` is the number of the edit that was read.
    """

    errors: dict[str, str] = {}
    missing: dict[str, str] = {}
    notes: dict[str, str] = {}
    strict: bool = False
    outdated: bool = False
    seq: int = 0


class Hits(Struct, frozen=True):
    """Names and signatures of functions that a search found, and how many there are; modules end in ``::``."""

    query: str = ""
    hits: tuple[tuple[str, str], ...] = ()
    error: str = ""
    total: int = 0


class Progress(Struct, frozen=True):
    """What is being counted, in words and numbers; empty if nothing is."""

    text: str = ""
    done: int = 0
    total: int = 0


class Starter(Struct, frozen=True):
    """A field above the form that fills it in: the key of its draft, and the message of its button."""

    key: str
    do: str
    summary: str
    label: str
    placeholder: str
    text: str


class Words(Struct, frozen=True):
    """Texts of the page that differ between forms; ``copy`` has the texts of the copy buttons by program."""

    form: str = "The entries"
    result: str = "Result"
    note: str = "nothing is signed or submitted"
    none: str = "No function fits."
    recent: str = "Used last, or begin at"
    outdated: str = "This code is out of date: the form is not a valid request."
    waits: str = "Waiting for the node\N{HORIZONTAL ELLIPSIS}"
    code: str = "The request as code"
    copy: dict[str, str] = {}


class About(Struct, frozen=True):
    """What the browser shows around the fields.

    ``actions`` are the messages and texts of the buttons, the first of which Ctrl+Enter presses; ``late``, the titles
    of pages that are completed when they are opened; ``look``, the keys of the draft whose edit makes the browser send
    ``look``, by default the keys of a function; ``accounts``, the addresses and names of accounts that the ledger
    names.
    """

    title: str
    actions: tuple[tuple[str, str], ...]
    node: str = ""
    accounts: tuple[tuple[str, str], ...] = ()
    words: Words = Words()
    starter: Starter | None = None
    late: tuple[str, ...] = ()
    look: tuple[str, ...] = ()


class NodeShown(Struct, frozen=True):
    """The node of a workbench, and the name of its network if it can be chosen by name."""

    name: str = ""
    target: str = ""


# what the browser asks -----------------------------------------------------------------------------------------------


class Message(Struct, frozen=True):
    """A message from the browser: ``do`` names the action, and the rest are its arguments."""

    do: str
    draft: dict[str, Any] | None = None
    query: str = ""
    place: int = -1
    name: str = ""
    tab: str = ""
    target: str = ""


def message_of(content: object) -> Message | None:
    """Return the message of a browser; None if it is not one."""
    try:
        return msgspec.convert(content, Message)
    except msgspec.ValidationError:
        return None


def shown(value: Any) -> Any:
    """Return a trait that the browser reads: a record, or a list of them."""
    return traitlets.Any(value).tag(sync=True, to_json=lambda held, _widget: msgspec.to_builtins(held))
