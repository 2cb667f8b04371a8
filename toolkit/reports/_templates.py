"""The templates of reports, the content that they share, and the escaping of text in each format.

In HTML, `chain` escapes text from users and the chain. In Markdown, `code` puts such text in code spans; in sentences
that quote it, `prose` puts only the words there that may be markup.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from toolkit._present.files import replacing
from toolkit._present.text import ELLIPSIS, number, plural, short_addresses, version_range, visible
from toolkit.errors import InputError
from toolkit.gas import _sentences as sentences
from toolkit.gas._observations import Source
from toolkit.gas._series import MODEL_NOTICE
from toolkit.plots._style import CAUSE_MARKS, INK, PAGE_COLOURS
from toolkit.reports._data import ReportData, headline, notes

if TYPE_CHECKING:
    from pathlib import Path


@cache
def environment() -> Environment:
    """Return the Jinja environment of the templates, with filters for text and numbers."""
    made = Environment(
        loader=PackageLoader("toolkit.reports"),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "chain": chain,
        "code": code,
        "gas": sentences.gas_text,
        "number": number,
        "prose": prose,
        "plural": plural,
        "visible": visible,
    }
    made.globals |= {
        "chain": chain,
        "change_name": sentences.change_name,
        "kind_texts": sentences.kind_texts,
        "code": code,
        "cause_styles": _cause_styles(),
        "evidence_text": sentences.evidence_text,
        "max_explanation": sentences.MAX_EXPLANATION,
        "max_note": sentences.MAX_NOTE,
        "max_groups": sentences.MAX_GROUPS,
        "model_notice": MODEL_NOTICE,
        "others_text": sentences.others_text,
        "prose": prose,
        "short_change": sentences.short_change,
        "source_labels": {source: source.label for source in Source},
        "stratum_text": sentences.stratum_text,
        "version_range": version_range,
        "versions_text": sentences.versions_text,
    }
    return made


def _cause_styles() -> str:
    """Return CSS rules with the colours of causes."""
    colours = {cause: PAGE_COLOURS[mark.colour or INK].variable for cause, mark in CAUSE_MARKS.items()}
    return "\n".join(f".cause.{cause} {{ --c: var(--{colour}); }}" for cause, colour in colours.items())


def put(target: Path, text: str, what: str) -> None:
    """Write a page; raise InputError that starts with `what` if it cannot be written."""
    try:
        with replacing(target, parents=True) as file:
            file.write(text.encode())
    except OSError as error:
        why = error.strerror or error
        raise InputError(
            f"{what}: {visible(target)} cannot be written ({why}); choose a file in a writable folder"
        ) from error


def content(data: ReportData, name: sentences.Renderer, prose: sentences.Renderer | None = None) -> dict[str, Any]:
    """Return the content for the templates of all formats; `name` and `prose` escape text as in `headline`."""
    return {
        "data": data,
        "facts": data.provenance,
        "dates": data.dates,
        "headline": headline(data, name, prose),
        "not_steps": sentences.not_steps_sentences(data.committed, name),
        "notes": notes(data, name, prose),
    }


def code(text: object, limit: int = 300, /) -> str:
    """Return text from users or the chain, with short addresses, as a code span, which no renderer interprets.

    A pipe becomes a broken bar, because no escape for pipes in tables works in all renderers.
    """
    shown = visible(short_addresses(str(text)), limit).strip().replace("|", "¦") or " "
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


_WORD = re.compile(r"([('\"]*)(.*?(?:\(\))?)(['\"),.:;%?!]*)$")  # with the punctuation around it
# Letters, a name such as record_of, or a number or date: Markdown and GitHub make nothing else of these.
_PLAIN = re.compile(r"([^\W\d_]+(['-][^\W\d_]+)*|[^\W_]+(_[^\W_]+)+|[+\u2212\u00d7]?\d[\d,.:-]*)?")


def prose(text: object, limit: int = 300, /) -> str:
    """Return a sentence that may quote users or the chain; each word that may be markup is a code span.

    So is a word in backticks. A longer sentence ends between words.
    """
    whole = short_addresses(str(text))
    shown, more = visible(whole, limit).split(), ""
    if len(whole) > limit and len(shown) > 1:
        shown, more = shown[:-1], f" {ELLIPSIS}"
    parts = (_WORD.findall(word)[0] for word in shown)
    words = (f"{a}{word if _PLAIN.fullmatch(word) else code(word.strip('`'), len(word))}{b}" for a, word, b in parts)
    return " ".join(words) + more


def chain(text: object, limit: int = 300) -> Markup:
    """Escape text from users or the chain for HTML, with short addresses, and isolate its text direction.

    Long names break after ``::``.
    """
    return Markup("<bdi>{}</bdi>").format(visible(short_addresses(str(text)), limit)).replace("::", Markup("::<wbr>"))
