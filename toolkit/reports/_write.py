"""Reports and comparisons in their formats, and reports as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from toolkit._present.data import csv_table
from toolkit._present.files import replacing
from toolkit._present.messages import shorten
from toolkit._present.text import visible
from toolkit.dtypes import to_arrow
from toolkit.errors import InputError
from toolkit.gas._sentences import comparison_text
from toolkit.reports import _to_html as to_html
from toolkit.reports import _to_markdown as to_markdown
from toolkit.reports import _to_programs as to_programs
from toolkit.reports._data import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pandas as pd

    from toolkit.gas._comparison import Comparison
    from toolkit.gas._gate import Gate
    from toolkit.reports._data import RunLike

__all__ = ["COMPARISON_FORMATS", "write"]


_CSV_ROWS = 50_000


def _comparison_text(comparison: Comparison, gate: Gate | None = None) -> str:
    return comparison_text(comparison, gate) + "\n"


RENDERERS = {
    ".html": to_html.render,
    ".htm": to_html.render,
    ".md": to_markdown.render,
    ".json": to_programs.render,
}
COMPARISON_FORMATS: dict[str, Callable[[Comparison, Gate | None], str]] = {
    "text": _comparison_text,
    "markdown": to_markdown.comparison_markdown,
    "json": to_programs.comparison_json,
    "github": to_programs.comparison_annotations,
}
"""Functions that render a comparison, by name of the format."""


def write(run: RunLike, path: str | Path, *, csv: Literal["inside", "beside"] = "inside") -> Path:
    """Write the report of a run as HTML, Markdown or JSON, by the ending of `path`.

    Each file is written completely or not at all.

    Parameters
    ----------
    run : RunLike
        A `toolkit.Run`.
    path : str or Path
        Ends in ``.html``, ``.md`` or ``.json``. Missing folders are created.
    csv : {"inside", "beside"}, default "inside"
        Where a page has its data: compressed in the page, which is then one file (frames of more than 200,000 rows are
        left out), or in files beside it, such as ``report.observations.csv`` and ``report.steps.csv``. Pages only.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the ending or `csv` is another one, or a file cannot be written: it is a folder or a device, say.
    SchemaError
        If a column is missing in a frame of the run.
    StudyError
        If a part of the run is damaged.
    """
    target = Path(path)
    render = RENDERERS.get(target.suffix.lower())
    if render is None:
        ending = visible(repr(target.suffix), 40) if target.suffix else "no ending"
        raise InputError(f"report: expected a path ending in .html, .md or .json, got {ending} ({visible(path)})")
    if csv not in {"inside", "beside"} or (csv == "beside" and render is not to_html.render):
        raise InputError(f"report: csv must be 'inside', or for a page 'beside', got {shorten(csv)}")
    data = build(run)
    if csv == "inside":
        _put(target, [render(data)])
        return target
    names = {name: f"{target.stem}.{name}.csv" for name in ("observations", "steps")}
    for name, beside in names.items():
        _put(target.with_name(beside), _csv_parts(getattr(data, name)))
    _put(target, [to_html.render(data, beside=names)])
    return target


def _csv_parts(frame: pd.DataFrame) -> Iterator[str]:
    """Return a frame as CSV in parts, so that a large one is not in memory as text."""
    for start in range(0, max(len(frame), 1), _CSV_ROWS):
        part = csv_table(to_arrow(frame.iloc[start : start + _CSV_ROWS]))
        yield part if start == 0 else part.partition("\r\n")[2]


def _put(target: Path, parts: Iterable[str]) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as file:
            file.writelines(part.encode() for part in parts)
    except OSError as error:
        raise InputError(
            f"report: {visible(target)} cannot be written ({error.strerror or error}); "
            f"name a file in a folder that can be written to"
        ) from error
