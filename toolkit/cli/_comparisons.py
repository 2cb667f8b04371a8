"""Commands that compare: two runs, with a gate; gas schedules; the versions of a range; a run with other prices."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolkit.cli._options import JsonOption, NodeOption, OutOption, connected
from toolkit.cli._output import check_suffix, print_frame, print_json, records, write_frame, write_text
from toolkit.errors import InputError

if TYPE_CHECKING:
    from toolkit.client._node import Node
    from toolkit.gas._comparison import Comparison
    from toolkit.gas._gate import Gate

__all__ = ["NOT_JUDGED", "REGRESSED", "compare", "forecast", "schedule", "timeline"]

REGRESSED = 1
"""Exit code of a gate that found a regression; no other command returns it."""

NOT_JUDGED = 6
"""Exit code of a gate that found no regression, but could not judge a call that is not waived."""

_BY_ENDING = {".md": "markdown", ".json": "json", ".txt": "text"}


class Format(StrEnum):
    """The formats of a comparison."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def compare(  # noqa: PLR0917 - typer makes options of parameters
    before: Annotated[str, typer.Argument(help="Folder of a run, or DIR@VERSION for the run up to a ledger version.")],
    after: Annotated[str, typer.Argument(help="Folder of a run, or DIR@VERSION.")],
    fail_over: Annotated[
        list[str] | None,
        typer.Option(
            help="Maximum rise of a call: 2%, 50 (gas units), or p90:5% (a quantile). May be repeated; each counts."
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(help="Study file with thresholds and waivers; by default the study of the second run."),
    ] = None,
    waivers: Annotated[
        Path | None, typer.Option(help="TOML file of [[waiver]] entries, instead of those of the study.")
    ] = None,
    allow_cause: Annotated[
        list[str] | None,
        typer.Option(
            help="Cause that may raise gas: schedule or state; a rise with any other step still fails. May be repeated."
        ),
    ] = None,
    allow_removed: Annotated[
        list[str] | None,
        typer.Option(help="Label or pattern of a call that may be missing in the second run. May be repeated."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Compare view@version, simulate@now or committed only; FIRST,SECOND compares two of them."),
    ] = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="By default that of the ending of --out, or text.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write: .md, .json or .txt.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs, or a run at two versions. Exit code 1: a call regressed; 6: a call could not be judged."""
    from toolkit.gas._comparison import compare as compared
    from toolkit.gas._study import Study
    from toolkit.reports._write import COMPARISON_FORMATS

    written = _format(form, out, as_json=as_json)
    pair: Any = source.split(",") if source and "," in source else source
    rules = Study.load(study) if study else None
    with warnings.catch_warnings():
        if out is None:
            warnings.simplefilter("ignore")  # the output includes them
        comparison = compared(before, after, source=pair)
    rules = rules or comparison.study
    named = {"causes": allow_cause, "removed": allow_removed}
    gate = _judged(comparison, fail_over, rules, waivers, {name: given for name, given in named.items() if given})
    text = COMPARISON_FORMATS[written](comparison, gate)
    if out is None:
        print(text, end="")
    else:
        write_text(text, out)
        verdict = "" if gate is None else f"; gate {gate.verdict if gate.passed else gate.verdict.upper()}"
        print(f"Comparison: {out}{verdict}")
    if gate is not None and not gate.passed:
        raise typer.Exit(REGRESSED if gate.regressions else NOT_JUDGED)


def _format(form: Format | None, out: Path | None, *, as_json: bool) -> str:
    if as_json and form not in {None, Format.JSON}:
        raise InputError(f"give either --json or --format {form}, not both")
    if as_json:
        return "json"
    if form is not None:
        return form.value
    if out is None:
        return "text"
    found = _BY_ENDING.get(out.suffix.lower())
    if found is None:
        raise InputError(f"--out {out}: the name must end in {', '.join(_BY_ENDING)}, or --format must be given")
    return found


def _judged(
    comparison: Comparison, fail_over: list[str] | None, study: Any, waivers: Path | None, allow: Any
) -> Gate | None:
    """Return the verdict of a gate by the given limits; None if nothing sets a limit."""
    from toolkit.gas._gate import Rules
    from toolkit.gas._study_file import read_waiver_file

    excused = None if waivers is None else read_waiver_file(waivers)
    threshold = fail_over or None
    if not Rules.of(threshold, study, excused, allow).has_limits:
        return None
    return comparison.gate(threshold, study=study, waivers=excused, allow=allow)


def schedule(  # noqa: PLR0917 - typer makes options of parameters
    before: Annotated[str, typer.Argument(help="Ledger version, or a date such as 2026-05-01.")],
    after: Annotated[str | None, typer.Argument(help="Ledger version or date; the head by default.")] = None,
    whole: Annotated[bool, typer.Option("--all", help="Print every parameter that differs.")] = False,
    out: OutOption = None,
    where: NodeOption = "embedded",
    as_json: JsonOption = False,
) -> None:
    """Compare the gas schedules of two ledger versions: a summary, then the parameters that differ."""
    from toolkit._present.text import visible
    from toolkit.gas._schedules import schedule_diff, schedule_words

    check_suffix(out)
    with connected(where) as reached:
        versions = [_version(reached, before), _version(reached, after)]
        sides = [reached.gas_schedule(version) for version in versions]
        name = reached.name
    frame, words = schedule_diff(*sides), schedule_words(*sides)
    if out is not None:
        write_frame(frame, out)
    if as_json:
        both = [
            {"ledger_version": version, "feature_version": side.feature_version, "parameters": len(side.entries)}
            for version, side in zip(versions, sides, strict=True)
        ]
        print_json({"node": name, "before": both[0], "after": both[1], "summary": words, "rows": records(frame)})
        return
    print(visible(f"Gas schedule from version {versions[0]} to {versions[1]} on {name}: {words}.", 600))
    if out is not None:
        print(f"{len(frame)} rows: {out}")
    elif len(frame):
        print_frame(frame, as_json=False, whole=whole)


def timeline(
    versions: Annotated[str, typer.Option(help="Range of versions, such as 0:-1, or dates.")] = "0:-1",
    module: Annotated[
        list[str] | None, typer.Option(help="Module whose code and dependencies are looked at; may be repeated.")
    ] = None,
    out: OutOption = None,
    where: NodeOption = "embedded",
    as_json: JsonOption = False,
) -> None:
    """List every change of gas schedule, configuration and code of modules in a range of versions."""
    from toolkit.gas._sentences import timeline_lines
    from toolkit.gas._timeline import Timeline
    from toolkit.gas._timeline import timeline as found_in

    check_suffix(out)
    with connected(where) as reached:
        frame = found_in(reached, versions, modules=module or ())
        name = reached.name
    if out is not None:
        write_frame(frame, out)
    if as_json:
        about = ("first", "last", "modules", "requests", "unread", "not_seen")
        rows = {"out": str(out)} if out is not None else {"rows": records(frame)}
        print_json({"node": name, **{key: frame.attrs[key] for key in about}, **rows})
        return
    for line in timeline_lines(Timeline.from_frame(frame), name):
        print(line)
    if out is not None:
        print(f"{len(frame)} rows: {out}")


def forecast(  # noqa: PLR0917 - typer makes options of parameters
    run: Annotated[str, typer.Argument(help="Folder of a run.")],
    schedule: Annotated[
        list[str],
        typer.Option(
            help="NAME=VALUE or PATTERN=xFACTOR, such as 'instr.*=x10', also several times; or a JSON file of a gas "
            "schedule or of such pairs; or a ledger version whose schedule is read."
        ),
    ],
    where: Annotated[
        str | None, typer.Option("--node", help="Where schedules are read, instead of the nodes of the run.")
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="Print every part; by default the totals.")] = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what the calls of a run would cost under another gas schedule, as intervals."""
    from toolkit.gas._forecast import forecast as forecasted
    from toolkit.gas._forecast import read_schedule
    from toolkit.gas._study import Run

    check_suffix(out)
    opened = Run.open(run)
    with ExitStack() as stack:
        reached = None if where is None else stack.enter_context(connected(where))

        def of_version(version: str) -> Any:
            node = reached or stack.enter_context(connected(opened.study.nodes[0]))
            return node.gas_schedule(_version(node, version))

        frame = forecasted(opened, read_schedule(schedule, of_version), node=reached)
    if out is not None:
        write_frame(frame, out)
        print(f"{len(frame)} rows: {out}")
        return
    shown = frame if whole or as_json else frame[frame["part"] == "total"]
    columns = ["label", "part", "now", "low", "high", "reasons"]
    print_frame(shown[columns] if not as_json else shown, as_json=as_json, whole=whole)


def _version(node: Node, text: str | None) -> int:
    """Return a ledger version from its text, or the first one at or after a date; the head for None."""
    if text is None:
        return node.ledger().version
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return node.version_at(text)
    except InputError as error:
        raise InputError(f"expected a ledger version or a date, got {text!r}: {error}") from None
