"""Write reports and comparisons to files. This module renders HTML; other modules render the other formats.

A page is a single file without external content, and follows the reader's light or dark mode. Its only script saves the
page's data as CSV. The content security policy allows this script by its digest.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
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
from toolkit.plots._gas_breakdown import MAX_BARS, breakdown, dwarfed
from toolkit.plots._gas_by_version import by_scale
from toolkit.plots._style import page_colours
from toolkit.plots._time import known_times
from toolkit.reports import _to_programs as to_programs
from toolkit.reports._data import ReportData, build
from toolkit.reports._templates import chain, content, environment, put
from toolkit.reports._to_markdown import render_markdown
from toolkit.reports._verdict import verdict_content, verdict_html, verdict_markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Gate
    from toolkit.gas._paired import PairedComparison
    from toolkit.gas._study import Run


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
            page_colours=page_colours,
            short_hash=_short_hash,
            verdict=verdict_content(*data.verdict) if data.verdict else None,
        )
    )


def _short_hash(text: str) -> str:
    """Return the first and last digits of a hash, which are what people compare."""
    return text if len(text) <= 2 * _HASH_ENDS else f"{text[:_HASH_ENDS]}…{text[2 - _HASH_ENDS :]}"


def _figures(data: ReportData) -> dict[str, object]:
    overview = overview_calls(data)
    scales = by_scale(series_of(data.observations, overview)) if overview else []
    parts = sorted((list(dict.fromkeys(one.label for one in scale)) for scale in scales), key=len, reverse=True)
    # A call whose changes are all in the first figures has no other figure; nor has one whose line would be flat.
    moving = {call.label for call in data.calls if call.min_gas != call.max_gas} | {*data.changed}
    moving -= {label for part in parts if len(part) <= MAX_TOGETHER for label in part}
    shown = sorted((label for label in data.labels if label in moving), key=lambda label: label not in data.changed)
    colours = _colours(data, overview)
    return {
        "overview": _overview(data, parts, colours),
        "overview_calls": len(overview),
        "calls": [
            (name, _by_version(data, [name], data.steps, colours, (f"call{place}", _height(data, [name]))))
            for place, name in enumerate(shown[:MAX_CALLS])
        ],
        "left_out": len(shown[MAX_CALLS:]),
        "spent_on": spent_on(data) if len(data.paid) else [],
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
    "markdown": verdict_markdown,
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
MAX_TOGETHER = 3  # calls in a figure that is read with all their changes
MAX_CALLS = 40  # with a separate figure: browsers cannot open a page with hundreds of figures

# Inches: the width of a phone, so that text has its size there, and of a third of a screen.
_WIDTH, _HEIGHT = 3.6, 2.6


def overview_calls(data: ReportData) -> tuple[str, ...]:
    """Return the calls of the first figures, at most `MAX_NAMED`: those that change most, and then others."""
    by_weight = [change.label for group in data.largest for change in group.changes]
    moving = [call.label for call in data.calls if call.first_version != call.last_version]
    # A simulation at the head, after the versions of the plan, would leave them a part of the axis.
    rest = [call.label for call in data.calls if data.span is None or call.first_version <= data.span[1]]
    kept = list(dict.fromkeys([*by_weight, *moving, *rest]))[: style.MAX_NAMED]
    return tuple(label for label in data.labels if label in kept)


def _overview(
    data: ReportData, parts: Sequence[Sequence[str]], colours: Mapping[str, str] | None
) -> list[tuple[str, Markup]]:
    """Draw calls in parts of one scale; of many in a figure, the largest changes only, as each has its own below."""
    groups = weightiest([group for group in data.events if not group.is_drift], MAX_MARKED)
    at = {(group.version_before, group.version_after) for group in groups}
    ends = zip(data.steps["version_before"], data.steps["version_after"], strict=True)
    few = data.steps[np.array([pair in at for pair in ends], dtype=np.bool_)]
    height = max((_height(data, part) for part in parts), default=_HEIGHT)
    figures = []
    for place, part in enumerate(parts):
        steps = data.steps if len(part) <= MAX_TOGETHER else few
        name = part[0] if len(part) == 1 else f"{len(part)} calls"
        figures.append((name, _by_version(data, part, steps, colours, (f"overview{place}", height))))
    return figures


def _height(data: ReportData, labels: Sequence[str]) -> float:
    """Return the height of a figure in inches, with room for a legend if it has several lines."""
    strata = data.levels.groupby("label")["stratum"].nunique()
    lines = sum(max(strata.get(label, 0), 1) for label in labels)
    return _HEIGHT + 0.2 * lines * (lines > 1)


def _by_version(
    data: ReportData,
    labels: Sequence[str],
    steps: pd.DataFrame,
    colours: Mapping[str, str] | None,
    svg: tuple[str, float],
) -> Markup:
    """Draw calls by version, with steps, and levels of committed transactions; `svg` is the name and the height."""
    # Of these steps and all observations, fewer than two times may be known, even if the timeline has more.
    times, _ = known_times(data.observations, steps, None)
    shown: dict[str, Any] = {
        "steps": steps,
        "levels": data.levels if data.committed else None,
        "x": "both" if len(data.dates.versions) and len(times) else "version",
        "calls": labels,
        "colors": colours and {label: colours[label] for label in labels},
    }
    alt = f"Gas of {labels[0] if len(labels) == 1 else f'{len(labels)} calls'} by ledger version"
    return _svg(svg[0], (_WIDTH, svg[1]), alt, gas_by_version, data.observations, **shown)


def _colours(data: ReportData, overview: Sequence[str]) -> dict[str, str] | None:
    """Return the colours of calls, which are the same in the whole page; with several nodes, figures choose them."""
    if len(data.provenance.nodes) > 1:
        return None
    labels = dict.fromkeys([*overview, *data.labels])
    return {label: style.PALETTE[place % len(style.PALETTE)] for place, label in enumerate(labels)}


def spent_on(data: ReportData) -> list[Markup]:
    """Draw what gas was spent on. If storage dwarfs the other parts, it has a separate figure."""
    split = breakdown(data.paid)
    apart = dwarfed(split)
    figures = []
    for parts in (["execution", "io"], ["storage"]) if apart else (list(style.PART_COLOURS),):
        rows = min(int((split[parts].sum(axis=1) > 0).sum()), MAX_BARS)
        size = (_WIDTH, 1.3 + 0.5 * max(rows, 1))
        alt = f"Gas of simulations and committed transactions: {' and '.join(parts)}"
        figures.append(_svg(f"split{parts[0]}", size, alt, gas_breakdown, data.paid, parts=parts if apart else None))
    return figures


def _svg(
    name: str, size: tuple[float, float], alt: str, draw: Callable[..., Axes], frame: pd.DataFrame, **shown: Any
) -> Markup:
    """Draw a figure as a single ``<svg>`` element."""
    svg = style.inline_svg(name, size, alt, lambda ax: draw(frame, ax=ax, title="", **shown))
    return Markup(svg)  # noqa: S704 - matplotlib escapes text
