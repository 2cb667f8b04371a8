"""The command ``ledger-toolkit``: parse, call one public function, print.

Exit codes: 0 done; 1 a call regressed (compare); 2 the command, a study file or a value cannot be used; 3 the node
refused; 4 the node did not answer; 5 a run was broken off by its machine or its workers, as by a full disk, and the
same command goes on; 6 a gate could not judge a call (compare); 130 interrupted; 141 the reader of the output went
away. Results go to stdout, errors to stderr in one line.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit import __version__
from toolkit.cli import calls, comparing, schedules, studies, study_files
from toolkit.errors import LedgerChanged, NodeError, NodeUnreachable, RunStopped, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["app", "main"]

BAD_INPUT, REFUSED, UNREACHABLE, STOPPED, INTERRUPTED, UNHEARD = 2, 3, 4, 5, 130, 141

app = typer.Typer(
    name="ledger-toolkit",
    help="Typed frames, gas studies and an embedded node for the REST interface of a Move ledger.",
    epilog="Exit codes: 0 done (rows that failed, and simulations that would fail, are answers), 1 a call regressed "
    "(compare), 2 bad input, 3 the node refused, 4 no answer, 5 a run was broken off and the same command goes on, "
    "6 a gate could not judge (compare), 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
study_app = typer.Typer(help="Write, plan and run gas studies.", no_args_is_help=True, rich_markup_mode=None)
study_app.command("new")(study_files.study_new)
study_app.command("plan")(study_files.study_plan)
study_app.command("schema")(study_files.study_schema)
study_app.command("run")(studies.study_run)
study_app.command("merge")(studies.study_merge)
app.command()(studies.demo)
app.command()(studies.node)
app.command()(calls.info)
app.command()(calls.probe)
app.command()(calls.view)
app.command("table-item")(calls.table_item)
app.command()(calls.simulate)
app.add_typer(study_app, name="study")
app.command()(studies.report)
app.command()(comparing.compare)
app.command()(schedules.schedule)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; errors are one line on stderr."""
    warnings.showwarning = _warn
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # text from a chain may not fit the terminal's encoding
            reconfigure(errors="backslashreplace")
    try:
        code = app(args=arguments, prog_name="ledger-toolkit", standalone_mode=False)
        sys.stdout.flush()
    except ToolkitError as error:
        return _fail(_code_of(error), str(error))
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "interrupted")
    except BrokenPipeError:
        return _unheard()
    except SystemExit as stop:  # so typer ends where it meets a broken pipe itself
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        return _unheard()
    except Exception as error:
        # What typer raises for a wrong command line has no public base class, but tells its own text.
        words = getattr(error, "format_message", None)
        if words is None:
            raise
        return _fail(BAD_INPUT, f"{words()} Try --help.")
    return code if isinstance(code, int) else 0


def _unheard() -> int:
    """End as other commands do whose reader went away: not well, for a verdict may be unread, nor as a regression."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return UNHEARD


def _fail(code: int, text: str) -> int:
    from toolkit._present.text import visible

    print(f"ledger-toolkit: error: {visible(text, 1000)}", file=sys.stderr)
    return code


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning, such as a clipped version plan, as one line."""
    from toolkit._present.text import visible

    print(f"ledger-toolkit: note: {visible(message, 400)}", file=sys.stderr)


def _code_of(error: ToolkitError) -> int:
    if isinstance(error, NodeUnreachable):
        return UNREACHABLE
    if isinstance(error, RunStopped | LedgerChanged):
        return STOPPED
    return REFUSED if isinstance(error, NodeError) else BAD_INPUT
