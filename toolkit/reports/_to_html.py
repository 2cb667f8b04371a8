"""A report as one HTML page without scripts or external content, light or dark as the system of the reader."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from toolkit._present.data import csv_table
from toolkit._present.numbers import number, octas_as_apt, version_range
from toolkit._present.text import visible
from toolkit.dtypes import to_arrow
from toolkit.gas._sentences import (
    CAUSE_LABELS,
    MAX_EXPLANATION,
    MAX_GROUPS,
    SOURCE_LABELS,
    short_change,
    unjudged_sentences,
    weightiest,
)
from toolkit.plots._style import CAUSE_MARKS
from toolkit.reports import _figures as figures
from toolkit.reports._data import failure_kind, headline, no_steps, place_cell
from toolkit.reports._provenance import digest_text, schedule_text

if TYPE_CHECKING:
    from toolkit.gas._steps import StepChange
    from toolkit.reports._data import ReportData

__all__ = ["render"]

MAX_CSV_ROWS = 50_000
"""Rows of a frame in the page; a browser cannot open much larger pages, and the Parquet files have all rows."""
_HASH_ENDS = 10


def render(data: ReportData) -> str:
    """Return a report as the text of an HTML page.

    Parameters
    ----------
    data : ReportData

    Returns
    -------
    str
        Equal for equal data, byte for byte.
    """
    environment = Environment(
        loader=PackageLoader("toolkit.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "apt": octas_as_apt,
        "chain": _chain,
        "digest": digest_text,
        "number": number,
        "short_hash": _short_hash,
        "visible": visible,
    }
    return environment.get_template("report.html.j2").render(
        data=data,
        facts=data.provenance,
        groups=weightiest(data.events, MAX_GROUPS),
        headline=_safe(headline(data, _chain)),
        unjudged=_safe(unjudged_sentences(data.unjudged, _chain)),
        no_steps=no_steps(data),
        figures=_figures(data),
        downloads=_downloads(data),
        cause_labels=CAUSE_LABELS,
        cause_colours={cause.value: figures.COLOURS[mark.colour] for cause, mark in CAUSE_MARKS.items()},
        source_labels=SOURCE_LABELS,
        explanation=partial(_chain, limit=MAX_EXPLANATION),
        change_cell=_change_cell,
        failure_kind=failure_kind,
        place=place_cell,
        schedule_text=schedule_text,
        version_range=version_range,
    )


def _chain(text: object, limit: int = 300) -> Markup:
    """Escape text from users or the chain, and isolate its direction of writing."""
    return Markup("<bdi>{}</bdi>").format(visible(text, limit))


def _safe(sentences: list[str]) -> list[Markup]:
    """Mark sentences as HTML whose foreign text `_chain` has escaped."""
    return [Markup(sentence) for sentence in sentences]  # noqa: S704 - escaped by _chain  # nosec B704


def _change_cell(change: StepChange) -> Markup:
    return _safe([short_change(change, _chain)])[0]


def _short_hash(text: str) -> str:
    """Return the ends of a hash, which are what people compare."""
    return text if len(text) <= 2 * _HASH_ENDS else f"{text[:_HASH_ENDS]}…{text[2 - _HASH_ENDS :]}"


def _figures(data: ReportData) -> dict[str, object]:
    moving = dict.fromkeys(call.label for call in data.calls if call.first_version != call.last_version)
    labels = list(dict.fromkeys([*data.changed, *moving]))
    shown = labels[: figures.MAX_CALLS]
    return {
        "overview": figures.overview(data),
        "before_after": figures.before_after(data) if data.changed else None,
        "spent_on": figures.spent_on(data) if data.splits else None,
        "calls": [(label, figures.one_call(data, label, place)) for place, label in enumerate(shown)],
        "left_out": len(labels) - len(shown),
    }


def _downloads(data: ReportData) -> list[dict[str, object]]:
    """Return the frames as CSV in data URIs; the page only names a frame that is too large."""
    return [
        {
            "name": f"{name}.csv",
            "rows": len(frame),
            "uri": _data_uri(csv_table(to_arrow(frame))) if len(frame) <= MAX_CSV_ROWS else None,
        }
        for name, frame in (("observations", data.observations), ("steps", data.steps))
    ]


def _data_uri(text: str) -> str:
    body = base64.b64encode(text.encode()).decode("ascii")
    return str(escape(f"data:text/csv;charset=utf-8;base64,{body}"))
