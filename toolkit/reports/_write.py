"""Reports and comparisons in their formats, and reports as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit._present.files import replacing
from toolkit._present.text import visible
from toolkit.errors import InputError
from toolkit.gas._sentences import comparison_text
from toolkit.reports import _to_html as to_html
from toolkit.reports import _to_json as to_json
from toolkit.reports import _to_markdown as to_markdown
from toolkit.reports._data import build

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.gas._comparison import Comparison
    from toolkit.gas._gate import Gate
    from toolkit.reports._data import RunLike

__all__ = ["COMPARISON_FORMATS", "write"]


def _comparison_text(comparison: Comparison, gate: Gate | None = None) -> str:
    return comparison_text(comparison, gate) + "\n"


RENDERERS = {
    ".html": to_html.render,
    ".htm": to_html.render,
    ".md": to_markdown.render,
    ".json": to_json.render,
}
COMPARISON_FORMATS: dict[str, Callable[[Comparison, Gate | None], str]] = {
    "text": _comparison_text,
    "markdown": to_markdown.comparison_markdown,
    "json": to_json.comparison_json,
}
"""Functions that render a comparison, by name of the format."""


def write(run: RunLike, path: str | Path) -> Path:
    """Write the report of a run as HTML, Markdown or JSON, by the ending of `path`.

    The file is written completely or not at all.

    Parameters
    ----------
    run : RunLike
        A `toolkit.Run`.
    path : str or Path
        Ends in ``.html``, ``.md`` or ``.json``. Missing folders are created.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the ending is another one, or the file cannot be written: it is a folder, a named pipe or a device, say.
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
    _put(target, render(build(run)))
    return target


def _put(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as file:
            file.write(text.encode())
    except OSError as error:
        raise InputError(
            f"report: {visible(target)} cannot be written ({error.strerror or error}); "
            f"name a file in a folder that can be written to"
        ) from error
