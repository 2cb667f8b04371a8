"""Write reports and comparisons to files. This module renders HTML; other modules render the other formats.

A page is a single file without external content, and follows the reader's light or dark mode. Its only script saves the
page's data as CSV. The content security policy allows this script by its digest.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from toolkit._present.tables import csv_table
from toolkit._present.text import visible
from toolkit.dtypes import to_arrow
from toolkit.errors import InputError
from toolkit.gas._sentences import weightiest
from toolkit.gas._series import series_of
from toolkit.gas._verdict_sentences import comparison_text
from toolkit.plots import _style as style
from toolkit.plots import gas_breakdown, gas_by_version
from toolkit.plots._gas_breakdown import MAX_BARS, breakdown
from toolkit.plots._gas_by_version import by_scale
from toolkit.plots._labels import figure_text
from toolkit.plots._style import CAUSE_MARKS, INK, PAGE_COLOURS, page_colours
from toolkit.plots._time import known_times
from toolkit.reports import _to_programs as to_programs
from toolkit.reports._data import ReportData, build
from toolkit.reports._templates import chain, content, environment, put
from toolkit.reports._to_markdown import comparison_markdown, render_markdown
from toolkit.reports._verdict import verdict_content, verdict_html

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Gate
    from toolkit.gas._paired import PairedComparison
    from toolkit.gas._study import Run

    Sized = tuple[Markup, Markup]  # a figure for wide pages, and for narrow ones


MAX_CSV_ROWS = 200_000  # about 2 MB in the page; larger frames are in the Parquet files of the run
_HASH_ENDS = 10  # characters at each end, with 0x


def render(data: ReportData) -> str:
    """Return a report as the text of an HTML page.

    Parameters
    ----------
    data : ReportData

    Returns
    -------
    str
        The page, which is identical for equal data.
    """
    script = resources.files("toolkit.reports").joinpath("templates", "report.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            content(data, chain),
            script=Markup(script),  # noqa: S704 - a file of the package
            script_digest=digest,
            figures=_figures(data),
            downloads=_downloads(data),
            cause_colours={cause: PAGE_COLOURS[mark.colour or INK].variable for cause, mark in CAUSE_MARKS.items()},
            page_colours=page_colours,
            short_hash=_short_hash,
            verdict=verdict_content(data.verdict[1]) if data.verdict else None,
        )
    )


def _short_hash(text: str) -> str:
    """Return the first and last digits of a hash, which are what people compare."""
    return text if len(text) <= 2 * _HASH_ENDS else f"{text[:_HASH_ENDS]}…{text[2 - _HASH_ENDS :]}"


def _figures(data: ReportData) -> dict[str, object]:
    moving = dict.fromkeys(call.label for call in data.calls if call.first_version != call.last_version)
    shown = list(dict.fromkeys([*data.changed, *moving]))
    together = overview_calls(data)
    return {
        "overview": _overview(data, together) if together else None,
        "spent_on": spent_on(data) if len(data.paid) else [],
        "overview_calls": len(together),
        "calls": [
            (name, _svg(f"call{place}", (4.5, 2.6), f"Gas of {name} by ledger version", _by_version(data, [name])))
            for place, name in enumerate(shown[:MAX_CALLS])
        ],
        "left_out": len(shown[MAX_CALLS:]),
    }


def _downloads(data: ReportData) -> list[dict[str, object]]:
    """Return the frames as compressed files embedded in the page. A frame that is too large has no file."""
    return [
        {
            "name": f"{name}.csv",
            "rows": len(frame),
            "uri": _data_uri(csv_table(to_arrow(frame))) if len(frame) <= MAX_CSV_ROWS else None,
        }
        for name, frame in (("observations", data.observations), ("steps", data.steps))
    ]


def _data_uri(text: str) -> str:
    """Return text as a compressed data URI. Equal text gives an equal URI: the time of compression is omitted."""
    body = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")
    return f"data:application/gzip;base64,{body}"


# reports as files ----------------------------------------------------------------------------------------------------


RENDERERS = {".html": render, ".htm": render, ".md": render_markdown, ".json": to_programs.render}
COMPARISON_FORMATS: dict[str, Callable[[Comparison | PairedComparison, Gate | None], str]] = {
    "text": lambda comparison, gate: comparison_text(comparison, gate) + "\n",
    "markdown": comparison_markdown,
    "html": verdict_html,
    "json": to_programs.comparison_json,
    "github": to_programs.comparison_annotations,
}


def write(run: Run, path: str | Path) -> Path:
    """Write the report on a run as HTML, Markdown or JSON, depending on the suffix of `path`.

    The file is written atomically. An HTML report is a single file that embeds its compressed data; frames of more than
    200,000 rows are omitted. Markdown reports are short enough for a pull request.

    Parameters
    ----------
    run : Run
    path : str or Path
        File name ending in ``.html``, ``.md`` or ``.json``. Missing folders are created.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    InputError
        If the suffix is not one of these, or the file cannot be written, for example because `path` is a folder.
    StudyError
        If a file of the run is damaged.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit import reports
    >>> study = toolkit.Study(calls={"count": "0xcafe::registry::size"}, versions="3000:3001")
    >>> run = study.run(progress=False)
    >>> reports.write(run, run.path / "report.html").name
    'report.html'
    """
    target = Path(path)
    rendered = RENDERERS.get(target.suffix.lower())
    if rendered is None:
        ending = visible(repr(target.suffix), 40) if target.suffix else "no ending"
        raise InputError(f"report: expected a path ending in .html, .md or .json, got {ending} ({visible(path)})")
    put(target, rendered(build(run)), "report")
    return target


# figures --------------------------------------------------------------------------------------------------------------


MAX_MARKED = 2  # changes with marks in the first figure: lines, causes, and reads without a result are kinds enough
MAX_CALLS = 40  # with a separate figure: browsers cannot open a page with hundreds of figures

# Widths of figures in inches: on a screen, and on a phone, where a wide figure would have to be shrunk or scrolled.
_WIDE, _NARROW = 9.4, 4.4


def overview_calls(data: ReportData) -> tuple[str, ...]:
    """Return the calls of the first figures, at most `MAX_NAMED`: those that change most, and then others."""
    by_weight = [change.label for group in data.largest for change in group.changes]
    moving = [call.label for call in data.calls if call.first_version != call.last_version]
    kept = list(dict.fromkeys([*by_weight, *moving, *data.labels]))[: style.MAX_NAMED]
    return tuple(label for label in data.labels if label in kept)


def _scales(data: ReportData, labels: Sequence[str]) -> list[list[str]]:
    """Return the calls in groups whose gas is of one scale."""
    groups = by_scale(series_of(data.observations, labels))
    scales = [list(dict.fromkeys(series.label for series in group)) for group in groups]
    return sorted(scales, key=len, reverse=True)


def _overview(data: ReportData, labels: Sequence[str]) -> Sized:
    """Draw calls, each scale on its own axes, with the largest changes only: each call has a figure with all below."""
    groups = weightiest([group for group in data.events if not group.is_drift], MAX_MARKED)
    at = {(group.version_before, group.version_after) for group in groups}
    ends = zip(data.steps["version_before"], data.steps["version_after"], strict=True)
    few = replace(data, steps=data.steps[np.array([pair in at for pair in ends], dtype=np.bool_)])
    scales = _scales(data, labels)
    # The lines of one call have the names of its strata, so its own name is above them.
    panels = [_by_version(few, part, title=figure_text(part[0], 48) if len(part) == 1 else "") for part in scales]
    height = sum(max(3.2, 1.6 + 0.2 * len(part)) for part in scales)

    def draw(name: str, width: float) -> Markup:
        return _svg(f"overview{name}", (width, height), "Gas of the calls by ledger version", *panels)

    return _sized(draw)


def _sized(draw: Callable[[str, float], Markup]) -> Sized:
    """Draw a figure in both widths, given a suffix for its name and the width."""
    return draw("", _WIDE), draw("-narrow", _NARROW)


def _by_version(data: ReportData, labels: Sequence[str], title: str = "") -> Callable[[Axes], object]:
    """Return a function that draws calls by version, with steps, and levels of committed transactions."""
    levels = data.levels if data.committed else None
    # These calls may have fewer than two known times, even if the run has more.
    observations, steps = (one[one["label"].isin(labels)] for one in (data.observations, data.steps))
    times, _ = known_times(observations, steps, None)

    x = "both" if len(data.dates.versions) and len(times) else "version"
    shown: dict[str, Any] = {"steps": data.steps, "levels": levels, "x": x, "title": title}
    shown |= {"calls": labels, "colors": _colours(data, labels)}
    return lambda ax: gas_by_version(data.observations, ax=ax, **shown)


def _colours(data: ReportData, labels: Sequence[str]) -> dict[str, str] | None:
    """Return the colours of calls, which are the same in the whole page; with several nodes, figures choose them."""
    if len(data.provenance.nodes) > 1:
        return None
    places = {label: place for place, label in enumerate(dict.fromkeys([*overview_calls(data), *data.labels]))}
    return {label: style.PALETTE[places[label] % len(style.PALETTE)] for label in labels}


def spent_on(data: ReportData) -> list[Sized]:
    """Draw what gas was spent on. If storage dwarfs the other parts, it has a separate figure."""
    split = breakdown(data.paid)
    dwarfed = split["storage"].max() > style.DWARFS * (split["execution"] + split["io"]).max()

    def draw(parts: Sequence[str], name: str, width: float) -> Markup:
        rows = min(int((split[list(parts)].sum(axis=1) > 0).sum()), MAX_BARS)
        size = (width, 1.3 + (0.4 if width == _WIDE else 0.5) * max(rows, 1))
        alt = f"Gas of simulations and committed transactions: {' and '.join(parts)}"
        wanted = None if len(parts) == len(style.PART_COLOURS) else parts
        return _svg(
            f"split{parts[0]}{name}", size, alt, lambda ax: gas_breakdown(data.paid, parts=wanted, ax=ax, title="")
        )

    every = (["execution", "io"], ["storage"]) if dwarfed else (list(style.PART_COLOURS),)
    return [_sized(partial(draw, parts)) for parts in every]


def _svg(name: str, size: tuple[float, float], alt: str, *draw: Callable[[Axes], object]) -> Markup:
    """Draw a figure as a single ``<svg>`` element."""
    return Markup(style.inline_svg(name, size, alt, *draw))  # noqa: S704 - matplotlib escapes text
