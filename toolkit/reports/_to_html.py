"""A report as one HTML page without external content, light or dark as the system of the reader.

The page has one script, which saves its data as CSV, and which its content security policy names by digest.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from toolkit._present.data import csv_table
from toolkit._present.numbers import number, octas_as_apt, version_range
from toolkit._present.text import visible
from toolkit.dtypes import to_arrow
from toolkit.gas._sentences import (
    CAUSE_LABELS,
    MAX_EXPLANATION,
    MAX_GROUPS,
    SOURCE_LABELS,
    not_steps_sentences,
    short_change,
    unjudged_sentences,
    weightiest,
)
from toolkit.gas._series import MODEL_NOTICE
from toolkit.gas._steps import ALL_TRANSACTIONS
from toolkit.plots._style import CAUSE_MARKS
from toolkit.reports import _figures as figures
from toolkit.reports._data import failure_kind, headline, no_steps, place_cell, same_series
from toolkit.reports._provenance import digest_text, schedule_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.gas._steps import StepChange
    from toolkit.reports._data import ReportData

__all__ = ["render"]

MAX_CSV_ROWS = 200_000
"""Rows of a frame in the page, about 2 MB; larger frames are written beside the page, and are in the Parquet files."""
_HASH_ENDS = 10


def render(data: ReportData, *, beside: Mapping[str, str] | None = None) -> str:
    """Return a report as the text of an HTML page.

    Parameters
    ----------
    data : ReportData
    beside : mapping of str to str, optional
        For ``observations`` and ``steps`` the name of a CSV file beside the page, which is linked instead of being in
        the page.

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
    script = resources.files("toolkit.reports").joinpath("templates", "report.js").read_text("utf-8")
    return environment.get_template("report.html.j2").render(
        data=data,
        script=Markup(script),  # noqa: S704 - a file of the package  # nosec B704
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        facts=data.provenance,
        model_notice=MODEL_NOTICE,
        groups=weightiest(data.events, MAX_GROUPS),
        headline=_safe(headline(data, _chain)),
        unjudged=_safe(unjudged_sentences(data.unjudged, _chain)),
        not_steps=_safe(not_steps_sentences(data.committed, _chain)),
        no_steps=no_steps(data),
        figures=_figures(data),
        downloads=_downloads(data, beside or {}),
        cause_labels=CAUSE_LABELS,
        cause_colours={cause.value: figures.COLOURS[mark.colour] for cause, mark in CAUSE_MARKS.items()},
        source_labels=SOURCE_LABELS,
        explanation=partial(_chain, limit=MAX_EXPLANATION),
        change_cell=_change_cell,
        call_kind=_call_kind,
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


def _call_kind(change: StepChange) -> str:
    """Return the kind of committed transactions of a change, if the call has several."""
    return "" if change.stratum in {"", ALL_TRANSACTIONS} else change.stratum


def _short_hash(text: str) -> str:
    """Return the ends of a hash, which are what people compare."""
    return text if len(text) <= 2 * _HASH_ENDS else f"{text[:_HASH_ENDS]}…{text[2 - _HASH_ENDS :]}"


def _figures(data: ReportData) -> dict[str, object]:
    moving = dict.fromkeys(call.label for call in data.calls if call.first_version != call.last_version)
    groups = same_series(data, list(dict.fromkeys([*data.changed, *moving])))
    shown = groups[: figures.MAX_CALLS]
    return {
        "overview": figures.overview(data),
        "before_after": figures.before_after(data) if data.changed else None,
        "spent_on": figures.spent_on(data) if data.splits else None,
        "calls": [(labels, figures.one_call(data, labels[0], place)) for place, labels in enumerate(shown)],
        "left_out": sum(map(len, groups[len(shown) :])),
    }


def _downloads(data: ReportData, beside: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the frames as files beside the page or compressed in it; of one that is too large the name alone."""
    return [
        {
            "name": f"{name}.csv",
            "rows": len(frame),
            "beside": beside.get(name),
            "uri": _data_uri(csv_table(to_arrow(frame))) if name not in beside and len(frame) <= MAX_CSV_ROWS else None,
        }
        for name, frame in (("observations", data.observations), ("steps", data.steps))
    ]


def _data_uri(text: str) -> str:
    """Return text compressed, as a URI; equal text gives an equal URI, since the time of compression is left out."""
    body = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")
    return f"data:application/gzip;base64,{body}"
