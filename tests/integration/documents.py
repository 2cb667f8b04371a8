"""What README and the pages of `docs` show is run: their Python, their commands, and the outputs below them.

`python -m tests.integration.documents docs/how-to/sweep.md ...` writes the outputs that are not true any more.
A page is one session in a folder of its own, in the order of its blocks:

- `python` is run, and `ipython` as a cell with magics. `bash` is run line by line: `ledger-toolkit` in this process, `python FILE` in its own, and of other programs only the name is checked.
- `text` below a block is its output: what it prints, then the value of its last line. `...` matches anything.
- `toml`, `yaml` and `python` with a file name in a comment on the first line are written to that file.
- `<!-- not run: reason -->` above a block skips it.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from IPython.core.interactiveshell import InteractiveShell

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)(?P<skip><!-- not run: [^\n]+ -->\n+ *)?```(?P<language>python|ipython|bash|text|toml|yaml)\n"
    r"(?P<body>.*?)^ *```$(?P<gap>\n*)",
    re.DOTALL | re.MULTILINE,
)
NAMED = re.compile(r"# ([\w./-]+\.(?:toml|yaml|yml|py))\n")
OTHER_PROGRAMS = {"make", "pip", "conda", "jupyter", "python", "cd", "export", "curl", "voila"}
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
DISPLAY = ("display.width", 100, "display.max_columns", 8, "display.max_colwidth", 28, "display.max_rows", 10)


@dataclass
class Block:
    """A fenced block of a page, with the output that the page shows for it."""

    language: str
    body: str
    line: int
    skipped: bool
    shown: str | None = None
    span: tuple[int, int] = (0, 0)


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page that are run, each with its output."""
    found: list[Block] = []
    end = None
    for match in FENCE.finditer(text):
        indent = match["indent"]
        body = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        if match["language"] == "text":
            if found and end == match.start():
                found[-1].shown, found[-1].span = body, match.span("body")
            end = None
            continue
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(match["language"], body, line, skipped=bool(match["skip"])))
        end = match.end()
    return found


def run_python(body: str, names: dict[str, object], place: str) -> None:
    """Run a block as a cell of a notebook: the value of its last line is printed."""
    linecache.cache[place] = (len(body), None, body.splitlines(keepends=True), place)  # errors name lines of the block
    *rest, last = ast.parse(body).body
    if not isinstance(last, ast.Expr):
        rest, last = [*rest, last], None
    exec(compile(ast.Module(rest, []), place, "exec"), names)  # noqa: S102 - of this repository
    value = last and eval(compile(ast.Expression(last.value), place, "eval"), names)  # noqa: S307 - of this repository
    if value is not None:
        print(value if hasattr(value, "_repr_html_") else repr(value))


def run_command(line: str) -> None:
    """Run a line of a shell; an exit code other than 0 is an error unless the line ends with `|| true`."""
    from toolkit.cli import main

    words = shlex.split(line.removesuffix("|| true"), comments=True)
    if words[:1] == ["python"] and Path(words[1]).exists():
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        settings = os.environ | {"PATH": path, "COLUMNS": "80"}
        done = subprocess.run(
            [sys.executable, *words[1:]], env=settings, stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout, end="")
        assert done.returncode == 0 or line.endswith("|| true"), f"exit code {done.returncode}: {line}"
        return
    if not words or words[0] in OTHER_PROGRAMS:
        if words and words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), line
        return
    assert words[0] == "ledger-toolkit", f"unknown program: {line}"
    with mock.patch.dict(os.environ, COLUMNS="80"):  # as in a terminal
        code = main(words[1:])
    assert code == 0 or line.endswith("|| true"), f"exit code {code}: {line}"


def run(page: str) -> list[tuple[Block, str]]:
    """Run a page in the current folder and return its blocks with their outputs."""
    names: dict[str, object] = {"__name__": "__main__"}
    shell: InteractiveShell | None = None
    done = []
    for block in blocks((ROOT / page).read_text("utf-8")):
        printed = io.StringIO()
        if named := NAMED.match(block.body):
            Path(named[1]).parent.mkdir(parents=True, exist_ok=True)
            Path(named[1]).write_text(block.body, "utf-8")
        elif not block.skipped and block.language in {"python", "ipython", "bash"}:
            try:
                with contextlib.redirect_stdout(printed):
                    if block.language == "python":
                        run_python(block.body, names, f"{page}:{block.line}")
                    elif block.language == "ipython":  # its own shell, so that its magics are not those of another page
                        shell = shell or InteractiveShell(user_ns=names)
                        shell.run_cell(block.body).raise_error()
                    else:
                        for line in block.body.replace("\\\n", " ").splitlines():
                            run_command(line)
            except Exception as problem:
                problem.add_note(f"{page}, line {block.line}:\n{block.body}")
                raise
        done.append((block, printed.getvalue()))
    return done


def is_shown(block: Block, printed: str) -> bool:
    """Return whether the output on the page is that of the block."""
    return block.shown is None or block.skipped or doctest.OutputChecker().check_output(block.shown, printed, LIKE)


@contextlib.contextmanager
def reader(folder: Path):
    """Run in a folder as a reader does: figures without a window, frames of a fixed width."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with mpl.rc_context({"backend": "agg"}), pd.option_context(*DISPLAY):
            yield
    finally:
        os.chdir(before)
        plt.close("all")


def rewrite(page: str) -> None:
    """Replace the outputs of a page that are not what its blocks print."""
    with tempfile.TemporaryDirectory() as folder, reader(Path(folder)):
        done = run(page)
    text = (ROOT / page).read_text("utf-8")
    for block, printed in reversed(done):
        if not is_shown(block, printed):
            start, end = block.span
            lines = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
            text = text[:start] + lines + "\n" + text[end:]
    (ROOT / page).write_text(text, "utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:] or PAGES:
        rewrite(each)
