"""Write a report to a file: build, render, then move into place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit._present.files import replacing
from toolkit._present.text import visible
from toolkit.errors import InputError
from toolkit.reports import to_html, to_json, to_markdown
from toolkit.reports.data import build

if TYPE_CHECKING:
    from toolkit.reports.data import RunLike

__all__ = ["write"]

RENDERERS = {
    ".html": to_html.render,
    ".htm": to_html.render,
    ".md": to_markdown.render,
    ".json": to_json.render,
}


def write(run: RunLike, path: str | Path) -> Path:
    """Write the report of a run; the ending of `path` says as what.

    The file appears whole or not at all: it is written beside its place, then moved.

    Parameters
    ----------
    run : RunLike
        A `toolkit.Run`.
    path : str or Path
        Ends in ``.html``, ``.md`` or ``.json``. Folders that are missing are made.

    Returns
    -------
    Path
        Where the report is.

    Raises
    ------
    InputError
        If the ending is none of these, or the place cannot be written or is a folder, a named pipe or a device.
    SchemaError
        If a frame of the run lacks a column.
    """
    target = Path(path)
    render = RENDERERS.get(target.suffix.lower())
    if render is None:
        ending = visible(repr(target.suffix), 40) if target.suffix else "no ending"
        raise InputError(f"report: a path ending in .html, .md or .json is expected, got {ending} ({visible(path)})")
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
