"""Commands that compare runs, snapshots and gas schedules, list changes in a range, and forecast gas."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from toolkit._present.tables import terminal_width
from toolkit._present.text import plural
from toolkit.cli import _console as console
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.gas._compare import Comparison
    from toolkit.gas._gate import Gate
    from toolkit.gas._paired import PairedComparison

REGRESSED = 1  # exit code of a gate that found a regression; no other command returns it
NOT_JUDGED = 6  # exit code of a gate without a regression that could not judge every call, or judged none


# The formats of a comparison. Each value is the lowercase name.
Format = StrEnum("Format", ["TEXT", "MARKDOWN", "HTML", "JSON", "GITHUB"])
_ROWS = {".csv", ".parquet", ".jsonl", ".xlsx"}  # extensions of files that contain one row per call
_BY_ENDING = {".md": Format.MARKDOWN, ".html": Format.HTML, ".json": Format.JSON, ".txt": Format.TEXT}
_VERDICT, _REPLAY = "Verdict", "Replay"  # panels of options in the help
WaiversOption = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="TOML file with [[waiver]] entries to use instead of the study's.",
        rich_help_panel=_VERDICT,
    ),
]
AllowOption = Annotated[
    bool,
    Option(
        "--allow-unjudged",
        help="Exit with 0 if no call regressed, even if some could not be judged.",
        rich_help_panel=_VERDICT,
    ),
]
JunitOption = Annotated[
    Path | None, Option("--junit", metavar="FILE", help="JUnit XML file to write, with one test case per call.")
]


def compare(  # noqa: PLR0917 - typer makes options of parameters
    before: Annotated[
        str, Argument(help="Folder of a run, or DIR@VERSION; with --code or --schedule, a node, a study file or a run.")
    ],
    after: Annotated[str | None, Argument(help="Folder of a run, or DIR@VERSION.")] = None,
    fail_over: Annotated[
        console.Texts,
        Option(
            metavar="LIMIT",
            help="Maximum increase per call: 2%, or 50 (gas units); may be repeated.",
            rich_help_panel=_VERDICT,
        ),
    ] = None,
    study: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Study with thresholds and waivers; by default, the second run's.",
            rich_help_panel=_VERDICT,
        ),
    ] = None,
    waivers: WaiversOption = None,
    source: Annotated[
        str | None, Option(help="view@version, simulate@version, simulate@now or committed; A,B compares two sources.")
    ] = None,
    form: Annotated[Format | None, Option("--format", help="Format; by default, from the extension of --out.")] = None,
    out: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="File to write: .html, .md, .json or .txt; rows of calls: .csv, .parquet, .jsonl or .xlsx.",
        ),
    ] = None,
    junit: JunitOption = None,
    code: Annotated[
        Path | None,
        Option(
            help="Compiled package, build/Name: replay transactions with it before it is deployed.",
            rich_help_panel=_REPLAY,
        ),
    ] = None,
    schedule: Annotated[
        console.Texts,
        Option(
            help="NAME=VALUE or PATTERN=xFACTOR: replay transactions at these prices; may be repeated.",
            rich_help_panel=_REPLAY,
        ),
    ] = None,
    function: Annotated[
        console.Texts,
        Option(help="Function whose transactions are replayed; may be repeated.", rich_help_panel=_REPLAY),
    ] = None,
    last: Annotated[
        int, Option(min=1, help="Number of transactions of each function to replay.", rich_help_panel=_REPLAY)
    ] = 100,
    versions: Annotated[
        str, Option(help="Range in which to look for them, from its end.", rich_help_panel=_REPLAY)
    ] = "-100000:",
    *,
    allow_unjudged: AllowOption = False,
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Compare two runs, or a run at two versions; with a limit, judge whether a call regressed.

    The limit is --fail-over, or the thresholds of the study. Exit code 1: a call regressed; 6: a call could not be
    judged; without a limit, 0.

    With --code or --schedule, compare committed transactions as they were with the same transactions under a package or
    prices that are not deployed.

    Examples
    --------
    ledger-toolkit compare runs/before runs/after --fail-over 2%
    ledger-toolkit compare runs/before runs/after --out verdict.html
    ledger-toolkit compare study.toml --code build/OrderBook --fail-over 2%
    """
    from toolkit.gas._forecast import read_schedule
    from toolkit.gas._gate import rules_of
    from toolkit.gas._sentences import label_text
    from toolkit.gas._study import Study
    from toolkit.gas._study_file import label_lines, read_waiver_file
    from toolkit.gas._verdict_sentences import gate_lines

    rows = out is not None and form is None and not as_json and out.suffix.lower() in _ROWS
    form = Format.TEXT if rows else _format(form, out, as_json=as_json)
    rules = Study.load(study) if study else None
    excused = None if waivers is None else read_waiver_file(waivers)
    comparison: Comparison | PairedComparison
    gate = None
    if code is not None or schedule:
        if after is not None or source is not None:
            raise InputError("--code and --schedule take one node, study or run, and no --source")
        from toolkit.gas._paired import compare_under

        prices = read_schedule(schedule, _no_version) if schedule else None
        comparison = compare_under(
            before, code=code, gas_schedule=prices, functions=function, last=last, versions=versions, progress=not quiet
        )
        # Without limits, too: a transaction that succeeded and fails under the change is a regression.
        gate = comparison.gate(fail_over or None, study=rules, waivers=excused)
        table = comparison.transactions
    else:
        if after is None:
            raise InputError(
                "compare requires two runs, or a run at two versions (RUN@1000 RUN@2000), or --code or --schedule"
            )
        from toolkit.gas import _compare as comparisons

        pair: Any = source.split(",") if source and "," in source else source
        # A printed comparison includes its warnings.
        comparison = (comparisons.compared if out is None else comparisons.compare)(before, after, source=pair)
        table = comparison.calls
        rules = rules or comparison.study
        limits = rules_of(fail_over or None, rules, excused)
        if limits.threshold is not None or limits.own:
            gate = comparison.gate(fail_over or None, study=rules, waivers=excused)
        elif junit is not None:
            raise InputError("--junit requires limits: give --fail-over, or --study with a study that has thresholds")
        else:
            not_judged = "not judged: no limit was given; --fail-over 5% makes it a gate"
            comparison = replace(comparison, notes=(*comparison.notes, not_judged))
    if gate is not None:
        gate = replace(gate, unjudged_allowed=allow_unjudged)
    of_labels = label_lines(study) if study is not None and form is Format.GITHUB else {}
    lines = {("", label): number for label, number in of_labels.items()}
    if out is None:
        _print_written(form, comparison, gate, study, lines)
    else:
        if rows:
            console.write_frame(table, out)
        else:
            console.write_text(_written(form, comparison, gate, study, lines), out)
        console.print_text("\n".join([f"Comparison: {out}", *(gate_lines(gate, label_text) if gate else [])]))
    _end(comparison, gate, junit)


def _no_version(text: str) -> Any:
    raise InputError(f"--schedule: expected NAME=VALUE, such as 'instr.*=x10', got {text}")


def _written(
    form: Format,
    comparison: Comparison | PairedComparison,
    gate: Gate | None,
    file: Path | None,
    lines: Mapping[tuple[str, str], int],
) -> str:
    """Return a comparison as text in a format. Annotations refer to `file`, and to its `lines` by node and label."""
    from toolkit.reports._to_html import COMPARISON_FORMATS
    from toolkit.reports._to_programs import comparison_annotations

    if form is Format.GITHUB:
        return comparison_annotations(comparison, gate, file=None if file is None else str(file), lines=lines)
    return COMPARISON_FORMATS[form](comparison, gate)


def _print_written(form: Format, comparison: Comparison | PairedComparison, gate: Gate | None, *places: Any) -> None:
    """Print a comparison. Only text is adapted to the terminal."""
    from toolkit.gas._verdict_sentences import comparison_text

    if form is Format.TEXT:
        print(comparison_text(comparison, gate, width=terminal_width()))
    else:
        print(_written(form, comparison, gate, *places), end="")


def _end(comparison: Comparison | PairedComparison, gate: Gate | None, junit: Path | None) -> None:
    """Write the file of ``--junit``, and exit with the exit code of the gate."""
    from toolkit.reports._to_programs import comparison_junit

    if gate is None:
        return
    if junit is not None:
        console.write_text(comparison_junit(comparison, gate).decode(), junit)
    if gate.regressions:
        raise typer.Exit(REGRESSED)
    if not gate.passed:
        raise typer.Exit(NOT_JUDGED)


def snapshot(
    study: Annotated[str, Argument(help="TOML file of a study, demo, or the folder of a run.")],
    out: Annotated[Path, Option(metavar="FILE", help="Snapshot file.")] = Path("gas-snapshot.toml"),
    *,
    check: Annotated[bool, Option("--check", help="Compare with the file. Exit codes are as for compare.")] = False,
    diff: Annotated[bool, Option("--diff", help="Print what changed since the file, and why.")] = False,
    allow_unjudged: AllowOption = False,
    max_age: Annotated[
        float, Option(min=0, help="Maximum age in days of a run that --check judges.", rich_help_panel=_VERDICT)
    ] = 1,
    waivers: WaiversOption = None,
    form: Annotated[Format | None, Option("--format", help="Output format of --check.")] = None,
    junit: JunitOption = None,
    nodes: console.StudyNodeOption = None,
    use_api_key: console.UseKeyOption = False,
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Write the gas of a study's calls to a snapshot file, or compare it with one.

    An increase above the thresholds of the study fails --check with exit code 1; without thresholds, any increase does.

    Examples
    --------
    ledger-toolkit snapshot study.toml
    ledger-toolkit snapshot study.toml --check
    """
    from toolkit._present.text import visible
    from toolkit.gas import _snapshot as snapshots
    from toolkit.gas._findings import Kind
    from toolkit.gas._study import Run
    from toolkit.gas._study_file import read_waiver_file

    if check and diff:
        raise InputError("give either --check or --diff, not both; --check also prints what changed")
    if not check and (junit is not None or waivers is not None or form is not None):
        raise InputError("--junit, --waivers and --format require --check")
    if how := {".html": "html", ".md": "markdown"}.get(out.suffix.lower()):
        raise InputError(f"--out {out}: --out is the snapshot file; for a page, use --check --format {how} > {out}")
    form = _format(form, None, as_json=as_json)
    before = snapshots.read_snapshot(out) if check or diff else None
    excused = None if waivers is None else read_waiver_file(waivers)
    if not (is_run := Path(study).is_dir()):
        asked = console.loaded_study(study, nodes, use_api_key=use_api_key)
        show = not quiet
        run = snapshots.run_again(asked, before, progress=show) if before else asked.run(progress=show)
    elif nodes:
        raise InputError(f"--node applies only to studies, but {study} is a run, which has already been read")
    else:
        run = Run.load(study)
    if before is None:
        made = snapshots.taken(run)
        console.write_text(snapshots.snapshot_text(made), out)
        text = f"Snapshot: {out} ({plural(len(made.lines), 'call')})"
        notes = [f"note: {visible(note, 400)}" for plan in run.record.nodes for note in plan.notes]
        text = "\n".join([text, *notes, *snapshots.pending_lines(made, run)])
        console.print_done(text, as_json=as_json, snapshot=str(out), calls=len(made.lines))
        return
    comparison = snapshots.compare_snapshot(before, run, str(out))
    limit = timedelta(days=max_age) if is_run else None  # a study was read just now
    gate = snapshots.check_snapshot(comparison, excused, max_age=limit) if check else None
    if gate is not None:
        gate = replace(gate, unjudged_allowed=allow_unjudged)
    _print_written(form, comparison, gate, out, before.places)
    outdated = (Kind.CHANGED, Kind.ADDED, Kind.REMOVED)
    differ = {kind: count for kind, count in comparison.counts.items() if kind in outdated and count}
    if form is Format.TEXT and gate is not None and gate.passed and differ:
        told = ", ".join(f"{plural(count, 'call')} {kind}" for kind, count in differ.items())
        print(f"{out} is out of date: {told}. Write the snapshot again.")
    _end(comparison, gate, junit)


def _format(form: Format | None, out: Path | None, *, as_json: bool) -> Format:
    """Return the format of a comparison, from the options or else from the extension of ``--out``."""
    if as_json and form not in {None, Format.JSON}:
        raise InputError(f"give either --json or --format {form}, not both")
    found = Format.JSON if as_json else form or (Format.TEXT if out is None else _BY_ENDING.get(out.suffix.lower()))
    if found is None:
        endings = ", ".join([*_BY_ENDING, *sorted(_ROWS)])
        raise InputError(f"--out {out}: expected a name that ends in one of {endings}; otherwise, give --format")
    return found


def schedule(
    before: console.VersionArgument,
    after: Annotated[
        str | None, Argument(help="Ledger version or date; the head by default.", callback=console.check_version)
    ] = None,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
) -> None:
    """Compare the gas schedules of two ledger versions: a summary, then the parameters that differ.

    Examples
    --------
    ledger-toolkit schedule 3501 3502
    ledger-toolkit schedule 2026-05-01 --out schedule.csv
    """
    from toolkit._present.text import times, visible
    from toolkit.frames._columns import plain_rows
    from toolkit.gas._schedules import schedule_diff, schedule_words

    with console.connected(where) as reached:
        head = reached.ledger().version
        versions = [head if text is None else console.version(reached, text) for text in (before, after)]
        sides = [reached.gas_schedule(version) for version in versions]
    frame, words = schedule_diff(*sides), schedule_words(*sides)
    both = [
        {"ledger_version": version, "feature_version": side.feature_version, "parameters": len(side.entries)}
        for version, side in zip(versions, sides, strict=True)
    ]
    facts = {"node": reached.name, "before": both[0], "after": both[1], "summary": words}
    text = visible(f"Gas schedule from version {versions[0]:,} to {versions[1]:,} on {reached.name}: {words}.", 600)
    console.print_found(facts, [text], frame, out, as_json=as_json)
    if out is None and len(frame) and not as_json:
        factors: Any = [None if row["ratio"] is None else times(row["ratio"]) for row in plain_rows(frame, ["ratio"])]
        console.print_frame(frame.assign(ratio=factors)[["name", "before", "after", "ratio"]], as_json=False)


def timeline(  # noqa: PLR0917 - typer makes options of parameters
    versions: Annotated[str, Option(help="Range of versions, such as 0:-1, or dates.")] = "0:-1",
    module: Annotated[console.Texts, Option(help="Module whose code to track; may be repeated.")] = None,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    quiet: console.QuietOption = False,
    as_json: console.JsonOption = False,
) -> None:
    """List every change to the gas schedule, the configuration and the code of modules in a range of versions.

    Examples
    --------
    ledger-toolkit timeline --module 0xfa17::vault
    ledger-toolkit timeline --versions 0:2000 --out timeline.csv
    """
    from toolkit.gas import _timeline as timelines
    from toolkit.gas._sentences import timeline_lines

    with console.connected(where) as reached:
        for name in module or ():  # at the head: no module is ever removed
            reached.contract("::".join(name.split("::")[:2]))
        found = timelines.found_timeline(reached, versions, modules=module or (), progress=not quiet)
    frame = timelines.timeline_frame(found)
    about = ("first", "last", "modules", "requests", "unread", "not_seen")
    facts = {"node": reached.name, **{key: frame.attrs[key] for key in about}}
    console.print_found(facts, timeline_lines(found, reached.name), frame, out, as_json=as_json)


def forecast(
    run: Annotated[str, Argument(help="Folder of a run.")],
    schedule: Annotated[
        list[str],
        Option(help="NAME=VALUE or PATTERN=xFACTOR, such as 'instr.*=x10' (may be repeated), or a ledger version."),
    ],
    out: console.OutOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Execute the calls of a run again under another gas schedule, on their state, and print what they cost.

    The terminal output has only the total of each call; --out and --json include its parts.

    Examples
    --------
    ledger-toolkit forecast runs/demo --schedule 'instr.*=x10'
    """
    from toolkit._present.text import relative_change, signed
    from toolkit.frames._columns import plain_rows
    from toolkit.gas import _forecast as forecasts
    from toolkit.gas._study import Run

    opened = Run.load(run)

    def of_version(version: str) -> Any:
        with console.connected(opened.study.nodes[0]) as node:
            return node.gas_schedule(console.version(node, version))

    frame = forecasts.forecast(opened, forecasts.read_schedule(schedule, of_version))
    console.print_found({}, [], frame, out, as_json=as_json)
    if out is None and not as_json:
        total = frame.loc[frame["part"] == "total", ["label", "now", "forecast", "change", "outcome", "reason"]]
        texts: Any = [
            f"{signed(row['change'])} ({relative_change(row['now'], row['forecast'])})"
            if row["change"]
            else row["change"]
            for row in plain_rows(total, ["now", "forecast", "change"])
        ]
        console.print_frame(total.assign(change=texts), as_json=False)
