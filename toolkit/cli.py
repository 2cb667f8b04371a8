"""The command ``ledger-toolkit``: parse, call one public function, print.

Exit codes: 0 done; 1 kept for a failed gate; 2 the command, a study file or a value cannot be used; 3 the node
refused; 4 the node did not answer; 130 interrupted. Results go to stdout, errors to stderr in one line.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolkit import __version__
from toolkit.errors import NodeError, NodeUnreachable, ToolkitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.client.node import Node
    from toolkit.gas.run import Run

__all__ = ["app", "main"]

JSON_FORMAT = 1
"""Number of the shape that ``--json`` prints; it goes up when the shape changes."""

BAD_INPUT, REFUSED, UNREACHABLE, INTERRUPTED = 2, 3, 4, 130

app = typer.Typer(
    name="ledger-toolkit",
    help="Typed frames, gas studies and an embedded node for the REST interface of a Move ledger.",
    epilog="Exit codes: 0 done, 2 bad input, 3 the node refused, 4 no answer, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
study_app = typer.Typer(help="Run gas studies.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(study_app, name="study")

NodeOption = Annotated[
    str, typer.Option("--node", help="embedded, mainnet, testnet, devnet, local, or an http(s) URL.", show_default=True)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; errors are one line on stderr."""
    try:
        code = app(args=arguments, prog_name="ledger-toolkit", standalone_mode=False)
    except ToolkitError as error:
        return _fail(_code_of(error), str(error))
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "interrupted")
    except BrokenPipeError:
        # The reader of our output went away: what it read stands, and there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        # What typer raises for a wrong command line has no public base class, but tells its own text.
        words = getattr(error, "format_message", None)
        if words is None:
            raise
        return _fail(BAD_INPUT, f"{words()} Try --help." if words() else "Try --help.")
    return code if isinstance(code, int) else 0


def _fail(code: int, text: str) -> int:
    from toolkit.frames.text import visible

    print(f"ledger-toolkit: error: {visible(text, 1000)}", file=sys.stderr)
    return code


def _code_of(error: ToolkitError) -> int:
    if isinstance(error, NodeUnreachable):
        return UNREACHABLE
    return REFUSED if isinstance(error, NodeError) else BAD_INPUT


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the run and the report.")] = Path("demo"),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the demo study against the embedded node and write its report. Needs no network and no keys."""
    from toolkit import reports
    from toolkit.gas.store import RunStore
    from toolkit.gas.study import Study

    study = Study.load("demo")
    RunStore(out / "run").discard(study.title)
    run = study.run(out / "run", progress=not quiet)
    report = reports.write(run, out / "report.html")
    _print_run(run, as_json, {"report": str(report)})
    if not as_json:
        print(f"Report: {report}")


@app.command()
def node(
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port on 127.0.0.1; 0 takes a free one.")] = 8080,
    seed: Annotated[int, typer.Option(help="Seed of the history.")] = 7,
    versions: Annotated[int, typer.Option(min=100, max=1_000_000, help="Ledger versions of the history.")] = 5_000,
    window: Annotated[int | None, typer.Option(min=1, help="Versions kept; older ones are pruned.")] = None,
) -> None:
    """Serve the embedded ledger on loopback until Ctrl-C. Its gas is a model, not a Move VM's."""
    import threading

    from toolkit import embedded

    ledger = embedded.Ledger.with_history(seed=seed, versions=versions, window=window)
    with embedded.serve(ledger, port=port) as url:
        print(f"Embedded ledger node (model gas): {url}", flush=True)
        print(f"Ledger versions {ledger.oldest_version} to {ledger.head}. Stop with Ctrl-C.", flush=True)
        threading.Event().wait()


@app.command()
def info(where: NodeOption = "embedded", as_json: JsonOption = False) -> None:
    """Tell what a node is and which ledger versions it holds."""
    with _connected(where) as reached:
        answer = reached.info()
        facts = {
            "node": reached.name,
            "chain_id": answer.ledger.chain_id,
            "ledger_version": answer.ledger.version,
            "oldest_version": answer.ledger.oldest_version,
            "ledger_timestamp": answer.ledger.timestamp,
            "epoch": answer.ledger.epoch,
            "block_height": answer.ledger.block_height,
            "node_role": answer.node_role,
            "build": answer.git_hash,
        }
    _print_facts(facts, as_json)


@app.command()
def view(
    function: Annotated[str, typer.Argument(help="address::module::function")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments: JSON, or plain text.")] = None,
    types: Annotated[list[str] | None, typer.Option("--type", "-t", help="A type argument; repeat it.")] = None,
    ledger_version: Annotated[int | None, typer.Option(min=0, help="Version to read; the head by default.")] = None,
    where: NodeOption = "embedded",
    as_json: JsonOption = False,
) -> None:
    """Run a view function."""
    with _connected(where) as reached:
        result = reached.view(
            function,
            type_arguments=types or (),
            arguments=[_argument(text) for text in arguments or ()],
            ledger_version=ledger_version,
        )
        facts = {
            "node": reached.name,
            "function": result.call.function,
            "values": list(result.values),
            "types": list(result.types),
            "typing": result.typing,
            "gas_used": result.gas_used,
            "ledger_version": result.ledger_version,
            "head_version": result.ledger.version if result.ledger else None,
        }
    _print_facts(facts, as_json)


@study_app.command("run")
def study_run(
    study: Annotated[str, typer.Argument(help="A TOML file, or demo.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; one that was broken off there is continued.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a study and write its observations."""
    from toolkit.gas.study import Study

    _print_run(Study.load(study).run(out, progress=not quiet), as_json, {"run": str(out)})


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[Path, typer.Option(help="File to write: .html, .md or .json.")] = Path("report.html"),
    as_json: JsonOption = False,
) -> None:
    """Write the report of a run."""
    from toolkit import reports
    from toolkit.gas.run import Run

    written = reports.write(Run.open(run), out)
    if as_json:
        _print_json({"report": str(written)})
    else:
        print(f"Report: {written}")


def _connected(where: str) -> Node:
    from toolkit.client.connect import connect

    return connect(where)


def _argument(text: str) -> Any:
    """Read an argument as JSON where it is JSON; else it is text, so that addresses and names need no quotes."""
    try:
        return json.loads(text, parse_float=_no_float, parse_constant=_no_float)
    except ValueError:
        return text


def _no_float(text: str) -> str:
    """Keep a number with a fraction as text: Move has none, and a float would round it."""
    return text


def _print_run(run: Run, as_json: bool, extra: Mapping[str, str]) -> None:
    """Tell what a run found: the steps first, then the counts."""
    from toolkit.gas.words import step_words

    lines = step_words(run.steps)
    if as_json:
        _print_json({"title": run.study.title, "counts": run.manifest["counts"], "steps": lines, **extra})
        return
    from toolkit.frames.text import visible

    for line in lines:
        print(visible(line, 400))
    counts = run.manifest["counts"]
    print(f"{counts['observations']} observations, {counts['failures']} of them failed calls: {run.path}")


def _print_facts(facts: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        _print_json(facts)
        return
    from toolkit.frames.text import visible

    width = max(len(name) for name in facts)
    for name, value in facts.items():
        shown = json.dumps(_plain(value), ensure_ascii=False) if isinstance(value, list | dict) else _plain(value)
        print(f"{name:<{width}}  {visible(shown, 2000)}")


def _print_json(content: Mapping[str, Any]) -> None:
    """Print ASCII only, so that text from the chain cannot steer a terminal."""
    print(json.dumps({"format": JSON_FORMAT, **_plain(dict(content))}, indent=1, ensure_ascii=True))


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it; integers beyond 2^53 become text, since many readers would round them."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)
    return value
