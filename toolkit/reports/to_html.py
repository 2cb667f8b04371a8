"""Report data as one self-contained HTML page: no scripts, nothing fetched, light or dark as the reader's system is."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from toolkit._present.text import visible
from toolkit.gas.judged import unjudged_words
from toolkit.reports import csv_data, figures, words

if TYPE_CHECKING:
    from toolkit.reports.data import ReportData

__all__ = ["render"]


def render(data: ReportData) -> str:
    """Return the report as the text of an HTML page.

    Parameters
    ----------
    data : ReportData
        What the report says.

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
    environment.filters |= {"chain": _chain, "visible": visible, "gas": words.gas, "apt": words.apt}
    # _chain escapes what is not ours
    sentences = [Markup(text) for text in words.headline(data, _chain)]  # noqa: S704  # nosec B704 - escaped by _chain
    unjudged = [Markup(text) for text in unjudged_words(data.unjudged, _chain)]  # noqa: S704  # nosec B704 - likewise
    return environment.get_template("report.html.j2").render(
        data=data,
        facts=data.provenance,
        headline=sentences,
        unjudged=unjudged,
        words=words,
        figures=_figures(data),
        downloads=_downloads(data),
    )


def _chain(text: object, limit: int = 300) -> Markup:
    """Escape text from users or the chain, and keep its direction of writing to itself."""
    return Markup("<bdi>{}</bdi>").format(visible(text, limit))


def _figures(data: ReportData) -> dict[str, object]:
    moving = dict.fromkeys(call.label for call in data.calls if call.first_version != call.last_version)
    labels = list(dict.fromkeys([*data.changed, *moving]))
    shown = labels[: figures.MOST_CALLS]
    return {
        "overview": figures.overview(data),
        "before_after": figures.before_after(data) if data.changed else None,
        "spent_on": figures.spent_on(data) if data.splits else None,
        "calls": [(label, figures.one_call(data, label, place)) for place, label in enumerate(shown)],
        "left_out": len(labels) - len(shown),
    }


def _downloads(data: ReportData) -> list[dict[str, object]]:
    """Frames as CSV in data URIs; a frame too large for a page is only spoken of."""
    return [
        {
            "name": f"{name}.csv",
            "rows": len(frame),
            "uri": _data_uri(csv_data.to_csv(frame)) if len(frame) <= csv_data.MOST_ROWS else None,
        }
        for name, frame in (("observations", data.observations), ("steps", data.steps))
    ]


def _data_uri(text: str) -> str:
    body = base64.b64encode(text.encode()).decode("ascii")
    return str(escape(f"data:text/csv;charset=utf-8;base64,{body}"))
