"""The command ``ledger-toolkit``: it parses arguments, calls one public function and prints the result.

`EXIT_CODES` lists the exit codes. Results are printed to stdout, and errors to stderr, one line per problem; with
``--debug`` or ``LEDGER_TOOLKIT_DEBUG=1``, the traceback is printed first.
"""

from __future__ import annotations

import errno
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, reduce
from itertools import groupby
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from toolkit._present.messages import DEBUG, debugging, whole_traceback
from toolkit._present.same_name import same_name_problem
from toolkit.cli import _app as workbench_app
from toolkit.cli import _calls as calls
from toolkit.cli import _comparisons as comparisons
from toolkit.cli import _studies as studies
from toolkit.cli._console import PLAN, print_text
from toolkit.errors import (
    InputError,
    InvalidRequest,
    LedgerChanged,
    NodeError,
    NodeUnreachable,
    NotFound,
    RunStopped,
    ToolkitError,
)

try:
    from toolkit import __version__
except ImportError as error:  # another distribution has replaced toolkit/__init__.py
    raise SystemExit(f"ledger-toolkit: error: {same_name_problem() or error}") from None

__all__ = ["app", "main"]

BAD_INPUT, REFUSED, UNREACHABLE, STOPPED, INTERNAL, INTERRUPTED, UNHEARD = 2, 3, 4, 5, 70, 130, 141
EXIT_CODES = """\b
Exit codes:
  0    success, even if rows failed or a simulated transaction would fail
  1    a call regressed (compare, snapshot --check)
  2    bad input, also if the node found it, such as a name that does not exist;
       or a file that cannot be read or written
  3    the node rejected a valid request (aborted view, pruned version, no access)
  4    the node does not respond
  5    stopped early (full disk, out of memory, lost worker, a node that asks for
       a long wait: repeat the command), or the node's ledger was replaced
  6    a gate could not judge a call, or judged none
  70   internal error
  130  interrupted
  141  the reader of the output closed it"""
# Errors of the machine, not of the command or its files.
_EXHAUSTED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
_MIN_FAILED = 4000  # of the VM's status codes, those of a function that ran and failed; others say that it cannot run
# What pydantic says of a value, and what a user reads.
_PLAIN_WORDS = (
    (": Value error, ", ": "),
    ("Input should be a valid integer, unable to parse string as an integer", "expected a whole number"),
    ("Input should be a valid number, unable to parse string as a number", "expected a number"),
)
_CHOICES = {"form", "frame"}  # parameters whose values the help lists
_debug: ContextVar[bool] = ContextVar("debug", default=False)


class _InterruptedError(Exception):
    """Replaces KeyboardInterrupt, for which typer would exit without a message."""


class _Group(TyperGroup):
    """A command group that lists its commands by subject and preserves the message of a KeyboardInterrupt."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands below their panels' titles, which typer would do only with rich."""
        listed: list[Any] = [self.commands[name] for name in self.list_commands(ctx)]
        for title, commands in groupby(listed, lambda one: one.rich_help_panel or "Commands"):
            with formatter.section(title):
                formatter.write_dl([(one.name, one.get_short_help_str()) for one in commands])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command. The nearest name to "gate", the word of the documentation, would be that of another one."""
        if args[:1] == ["gate"] and "compare" in self.commands:
            ctx.fail("No such command 'gate'. Did you mean 'compare' or 'snapshot --check'?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise _InterruptedError(str(stop) or "interrupted") from stop


class _Command(TyperCommand):
    """A command whose help names values after their parameters, as in --sender SENDER, not after Python's types.

    The options of a panel have their own list, which typer would write only with rich.
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        one: Any
        for one in self.params:
            if one.param_type_name == "argument":
                one.display_type_rich = lambda **_: ""  # typer would write Python's type after the name
            if one.metavar is None and not getattr(one, "is_flag", False) and one.name not in _CHOICES:
                one.metavar = max(one.opts, key=len).rpartition("-")[2].upper()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options of each panel, and the other options."""
        listed: dict[str, list[Any]] = {}
        for one in self.get_params(ctx):
            title = "Arguments" if one.param_type_name == "argument" else getattr(one, "rich_help_panel", None)
            if record := one.get_help_record(ctx):
                listed.setdefault(title or "Options", []).append(record)
        for title in sorted(listed, key="Options".__eq__):
            with formatter.section(title):
                formatter.write_dl(listed[title])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage without typer's braces around required arguments."""
        return [re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]


app = typer.Typer(
    name="ledger-toolkit",
    cls=_Group,
    help="Typed frames, gas studies and an embedded node for the REST interface of a Move ledger.",
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
study_app = typer.Typer(help="Write, plan and run gas studies.", rich_markup_mode=None)
app.add_typer(study_app, name="study", rich_help_panel="Measure gas")


def _add(group: typer.Typer, command: Callable[..., None], name: str | None = None, panel: str | None = None) -> None:
    """Add a command. Its help is its docstring, with the examples after the options."""
    about, _, examples = (inspect.getdoc(command) or "").partition("\n\nExamples\n--------\n")
    lines = ["\b", "Examples:", *(f"  {line}" for line in examples.splitlines())]
    # The whole first paragraph: typer would truncate the command's summary after 45 characters.
    short = about.partition("\n\n")[0]
    epilog = "\n".join(lines)
    group.command(name, cls=_Command, help=about, short_help=short, epilog=epilog, rich_help_panel=panel)(command)


for _name in ("new", "plan", "schema", "run"):
    _add(study_app, getattr(studies, f"study_{_name}"), _name)
_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Start": (studies.demo, calls.info, calls.probe, workbench_app.app, studies.node),
    "Read": (calls.account, calls.module, calls.view, calls.table_item, calls.resources),
    "Read transactions": (calls.transactions, calls.events, calls.balances, calls.sync, calls.sql),
    "Execute": (calls.simulate, calls.replay),
    "Teach": (studies.grade,),
    "Measure gas": (  # last, because typer lists groups, such as study, after commands
        *(studies.report, comparisons.compare, comparisons.snapshot),
        *(comparisons.schedule, comparisons.timeline, comparisons.forecast),
    ),
}
for _panel, _commands in _PANELS.items():
    for _command in _commands:
        _add(app, _command, panel=_panel)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, Option("--debug", help=f"Print the traceback of an error, as with {DEBUG}=1.")] = False,
) -> None:
    if debug:
        _debug.set(True)
    if version:
        print(__version__)
        raise typer.Exit
    _help_without_command(context)


@study_app.callback(invoke_without_command=True)
def _study(context: typer.Context) -> None:
    _help_without_command(context)


def _help_without_command(context: typer.Context) -> None:
    """If a group is called without a command, print its help and exit with code 0."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


@cache
def _root_command() -> Any:
    """Return the command made of `app`, once for all calls of `main` in a process: it takes 40 ms to make."""
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Errors are printed to stderr.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command-line arguments; by default, those of the process.

    Returns
    -------
    int

    Examples
    --------
    >>> from toolkit.cli import main
    >>> main(["node", "--port", "http"])
    2
    """
    warnings.showwarning = _warn
    _debug.set(debugging())
    given = list(sys.argv[1:] if arguments is None else arguments)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if None in streams:  # a file or socket opened later must not reuse the descriptor of a closed stream
        while (descriptor := os.open(os.devnull, os.O_RDWR)) < len(streams):
            pass
        os.close(descriptor)
    for stream in streams[1:]:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # the terminal's encoding may lack characters in text from the chain
            reconfigure(errors="backslashreplace")
    try:
        _check_utf8(given)
        code = _root_command()(args=given, prog_name="ledger-toolkit", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        return _unheard()
    except SystemExit as stop:  # raised by typer for a broken pipe, and after completions
        if isinstance(stop.__context__, BrokenPipeError):
            return _unheard()
        code = stop.code or 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - every error has an exit code and one line
        return _fail(error, given)
    return code if isinstance(code, int) else 0


def _check_utf8(arguments: Sequence[str]) -> None:
    """Raise InputError for an argument that is not UTF-8, which Python would decode to lone surrogates."""
    for place, text in enumerate(arguments, start=1):
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(f"argument {place} is not UTF-8: {text!r}; rename the file, or encode the text in UTF-8")


def _unheard() -> int:
    """Return the exit code for output that its reader closed: not 0 or 1, because a verdict may be unread."""
    _drop_output()
    return UNHEARD


def _drop_output() -> None:
    """Redirect stdout to the null device, so that Python does not fail to flush buffered output at exit."""
    with suppress(AttributeError, OSError, ValueError):  # stdout may be None, or not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: BaseException, given: Sequence[str]) -> int:
    """Print the lines of an error, after its traceback with ``--debug``, and return its exit code."""
    from toolkit._present.text import visible

    code, lines = _meaning(error, given)
    if sys.stderr is None:
        return code
    if _debug.get():
        print("\n".join(whole_traceback(error)), file=sys.stderr)
    start = "\n" if code == INTERRUPTED and sys.stderr.isatty() else ""  # after the terminal's ^C or a progress bar
    # Line breaks separate the lines of a list of problems; one within a line is text from elsewhere, and escaped.
    print_text(f"{start}ledger-toolkit: " + "\n  ".join(visible(line, 1000) for line in lines), sys.stderr)
    return code


def _meaning(error: BaseException, given: Sequence[str]) -> tuple[int, list[str]]:
    """Return the exit code and the lines of the message for an error."""
    if isinstance(error, _InterruptedError | KeyboardInterrupt):
        return INTERRUPTED, [str(error) or "interrupted"]
    if isinstance(error, ToolkitError):
        code = BAD_INPUT
        if isinstance(error, NodeUnreachable):
            code = UNREACHABLE
        elif isinstance(error, RunStopped | LedgerChanged):
            code = STOPPED
        elif isinstance(error, NodeError) and not _is_bad_input(error):
            code = REFUSED
        first, *further = map(str, error.args or [""])
        return code, [f"error: {first}", *further]
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"cannot use {os.fsdecode(error.filename)}: "
        if error.filename is None and error.errno and error.strerror == os.strerror(error.errno):
            _drop_output()  # a system error without a file name comes from the output, not from a file
            place = "cannot write the output: "
        code = STOPPED if error.errno in _EXHAUSTED else BAD_INPUT
        return code, [f"error: {place}{error.strerror or error}"]
    if isinstance(error, MemoryError):
        return STOPPED, ["error: out of memory; read fewer rows at once, or end other processes"]
    # The errors of typer have no public base class, but a method that formats their text.
    if hasattr(error, "format_message"):
        said = reduce(lambda text, pair: text.replace(*pair), _PLAIN_WORDS, error.format_message().removesuffix("."))
        return BAD_INPUT, [f"error: {said}{'' if said.endswith('?') else '.'} {_advice(error, given)}"]
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    return INTERNAL, [f"internal error: {what}; please report this line and the command ({DEBUG}=1 adds a traceback)"]


def _is_bad_input(error: NodeError) -> bool:
    """Return whether the node found the mistake: a name that does not exist, or an argument that does not fit.

    The toolkit finds some of these mistakes itself, depending on the command, and the exit code must not depend on it.
    """
    found = isinstance(error, InvalidRequest | NotFound) and bool(error.error_code)
    return found and (error.vm_error_code or 0) < _MIN_FAILED


def _advice(error: Any, given: Sequence[str]) -> str:
    """Return what to do about a wrong command line: a version plan is often given without its option."""
    context = getattr(error, "ctx", None)
    if context is None:
        return "Try --help."
    plan = next(filter(PLAN, given), None)
    options = {option for one in context.command.params for option in one.opts}
    unknown, commands = getattr(error, "option_name", None) or "", {one.name for one in study_app.registered_commands}
    has_plan = "--versions" in options
    usage = f"{' '.join(context.get_usage().split())}; see" if isinstance(context.command, _Command) else "See"
    if context.parent is not None and usage == "See":
        usage = f"The commands are {', '.join(sorted(context.command.commands))}; see"
    hints = {
        f"Pass the versions as --versions {plan}": plan is not None and has_plan and "--versions" not in given,
        "Write -- before the arguments if one is negative": unknown[1:].isdigit(),
        "Write arguments after the function, without an option": unknown.startswith("--arg"),
        'To simulate at many versions, write a study with at = "version"': unknown == "--versions" and not has_plan,
        f"Write ledger-toolkit study {given[0]}": context.parent is None and given[0] in commands,
    }
    return next((text for text, applies in hints.items() if applies), f"{usage} {context.command_path} --help.")


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning, such as about a clipped version plan, as one line."""
    if sys.stderr is None:
        return
    from toolkit._present.text import visible

    print_text(f"ledger-toolkit: note: {visible(message, 400)}", sys.stderr)
