"""Commands for studies and runs, for the embedded node, and for grading a class."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from toolkit._present.text import plural, version_span
from toolkit.cli import _console as console

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.gas._study import Run


_MAX_CACHED_VERSIONS = 20_000  # the longest history that `node` stores in the user's cache folder


def demo(
    out: Annotated[Path, Option(metavar="FOLDER", help="Where to write the run and the report.")] = Path("demo"),
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Run the demo study on the embedded node and write its report. Requires no network and no keys.

    Examples
    --------
    ledger-toolkit demo --out demo
    """
    from toolkit import reports
    from toolkit.gas._sentences import brief_lines
    from toolkit.gas._study import Study

    if not quiet:
        print("Building an embedded ledger of 5,000 versions and studying ten calls on it ...", file=sys.stderr)
    run = Study.load("demo").run(out / "run", fresh=True, progress=not quiet)
    written = reports.write(run, out / "report.html")
    if as_json:
        _print_run(run, {"report": str(written)}, as_json=True)
        return
    lines = [*brief_lines(run.steps, len(run.study.calls)), *(f"note: {note}" for note in _notes(run))]
    lines += [_counts_text(run), f"Report: {written}", "Next: ledger-toolkit study new study.toml"]
    console.print_text("\n".join(lines))


def node(
    *,
    port: Annotated[int, Option(min=0, max=65535, help="TCP port on 127.0.0.1; 0 picks a free one.")] = 8080,
    seed: Annotated[int, Option(help="Seed of the history.")] = 7,
    versions: Annotated[int, Option(min=200, max=1_000_000, help="Number of ledger versions in the history.")] = 5_000,
) -> None:
    """Serve the embedded ledger on 127.0.0.1 until Ctrl-C. Its gas comes from a model, not from a Move VM.

    Examples
    --------
    ledger-toolkit node --port 8080
    ledger-toolkit node --port 0 --versions 500
    """
    import threading

    from toolkit import embedded

    ledger = embedded.Ledger.with_history(seed=seed, versions=versions, cache=versions <= _MAX_CACHED_VERSIONS)
    try:
        with embedded.serve(ledger, port=port) as url:
            print(f"Embedded ledger node (model gas): {url}", flush=True)
            print(f"Ledger versions {ledger.oldest_version:,} to {ledger.head:,}. Stop with Ctrl-C.", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        raise typer.Exit(130) from None  # Ctrl-C is the usual way to stop, so no message is printed


def study_run(
    study: console.StudyArgument,
    *,
    out: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Run to create, continue or extend; runs/NAME for NAME.toml by default."),
    ] = None,
    fresh: Annotated[bool, Option("--fresh", help="Start over: replace the run in the folder, of any study.")] = False,
    executor: Annotated[str | None, Option(help="threads:8, processes:4 or tcp://host:8786 (Dask).")] = None,
    max_tasks: Annotated[int, Option(min=1, help="Maximum number of tasks in flight.")] = 8,
    nodes: console.StudyNodeOption = None,
    use_api_key: console.UseKeyOption = False,
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Run a study and write its observations. Repeat the command to continue an interrupted run.

    If the study ends at the head, a complete run is extended: new versions are added, and simulations are repeated.

    Examples
    --------
    ledger-toolkit study run demo --out runs/demo
    ledger-toolkit study run study.toml
    ledger-toolkit study run study.toml --out runs/one --node mainnet
    """
    from toolkit.gas._gate import rules_of

    loaded = console.loaded_study(study, nodes, use_api_key=use_api_key)
    out = out or Path("runs") / Path(study).stem
    run = loaded.run(out, executor=executor, max_tasks=max_tasks, fresh=fresh, progress=not quiet)
    _print_run(run, {"run": str(out)}, as_json=as_json)
    if as_json:
        return
    limits = rules_of(study=run.study)
    limit = "" if limits.threshold or limits.own else " --fail-over 2%"  # which would replace those of the study
    print(f"Next: ledger-toolkit report {quote(str(out))} --out report.html")
    print(f"      ledger-toolkit compare OTHER_RUN {quote(str(out))}{limit}")


def report(
    run: Annotated[Path, Argument(help="Folder of a run.")],
    out: Annotated[Path, Option(metavar="FILE", help="File to write: .html, .md or .json.")] = Path("report.html"),
    *,
    markdown: Annotated[bool, Option("--markdown", help="Print a short report for a pull request.")] = False,
    as_json: console.JsonOption = False,
) -> None:
    """Write the report of a run, or print a short version for a pull request.

    With --json, the report is still written; what is printed is its name.

    Examples
    --------
    ledger-toolkit report runs/demo --out report.html
    ledger-toolkit report runs/demo --markdown >> "$GITHUB_STEP_SUMMARY"
    """
    from toolkit import reports
    from toolkit.gas._study import Run

    if markdown:
        from toolkit.reports._to_markdown import render_markdown

        print(render_markdown(reports.build(Run.load(run))), end="")
        return
    written = reports.write(Run.load(run), out)
    console.print_done(f"Report: {written}", as_json=as_json, report=str(written))


def _print_run(run: Run, extra: Mapping[str, str], *, as_json: bool) -> None:
    """Print the result of a run: steps, calls that were not judged, and counts."""
    from toolkit._present.text import visible
    from toolkit.gas._compare import verdict_within
    from toolkit.gas._sentences import earlier_sentence, unjudged_sentences
    from toolkit.gas._verdict_sentences import within_text

    lines, judged = run.explain().splitlines(), verdict_within(run)
    counts = run.manifest["counts"]
    said = earlier_sentence(run.earlier, counts["observations"]) if run.earlier else None
    if as_json:
        facts = {"title": run.study.title, "earlier": said, "counts": counts, "rows_digest": run.digest}
        facts |= {"resumed_rows": run.manifest["resumed_rows"], "steps": console.records(run.steps), "words": lines}
        facts |= {"verdict": judged and judged[1].verdict}
        facts |= {"not_judged": unjudged_sentences(run.coverage.unjudged, visible), "notes": _notes(run)}
        console.print_json({**facts, **extra})
        return
    nothing_new = run.earlier is not None and run.earlier.rows == counts["observations"]
    if nothing_new:
        lines = []
    for line in [said, *lines] if said else lines:
        console.print_text(visible(line, 400))
    if silent := counts.get("unanswered", 0):
        print(f"{plural(silent, 'call')} got no response; repeat the command to read them")
    for note in () if nothing_new else _notes(run):
        console.print_text(f"note: {visible(note, 400)}")
    if judged is not None:
        console.print_text(within_text(judged[1]))
    print(_counts_text(run))


def _notes(run: Run) -> list[str]:
    """Return changes to the plan, such as versions that do not exist yet, and calls that failed at every version."""
    return [*(note for node in run.record.nodes for note in node.notes), *run.notes]


def _counts_text(run: Run) -> str:
    """Return the number of steps, observations and failures of a run, the versions observed, and its folder."""
    from toolkit.gas._observations import failures_of

    counts, resumed = run.manifest["counts"], run.manifest["resumed_rows"]
    earlier = f", {resumed:,} from an earlier attempt" if resumed and run.manifest.get("attempts") else ""
    lost = failures_of(run.observations, run.steps).counts or {"failed": 0}
    how = ", ".join(f"{count:,} {word}" for word, count in lost.items())
    observations = f"{plural(counts['observations'], 'observation')} ({how}){earlier}"
    versions = run.observations["ledger_version"]
    at = f" at {version_span(versions.min(), versions.max())}" if len(versions) else ""
    return f"{plural(len(run.steps), 'step')} in {observations}{at}: {run.path}"


def study_new(
    file: Annotated[Path, Argument(help="File to write; it must not exist yet.")] = Path("study.toml"),
    as_json: console.JsonOption = False,
) -> None:
    """Write a commented study file to start from. It runs unchanged on the embedded node.

    Examples
    --------
    ledger-toolkit study new
    ledger-toolkit study new vault.toml
    """
    from toolkit.gas._study_file import write_starter

    written = write_starter(file)
    lines = f"Study: {written}\nNext: ledger-toolkit study plan {quote(str(written))}"
    console.print_done(lines, as_json=as_json, study=str(written))


def study_plan(
    study: console.StudyArgument,
    *,
    out: console.OutOption = None,
    nodes: console.StudyNodeOption = None,
    use_api_key: console.UseKeyOption = False,
    as_json: console.JsonOption = False,
) -> None:
    """Print how many requests a study would send, how long it would take and what is pruned, without running it.

    Examples
    --------
    ledger-toolkit study plan study.toml
    ledger-toolkit study plan study.toml --out plan.csv
    """
    plan = console.loaded_study(study, nodes, use_api_key=use_api_key).plan()
    if out is not None:
        console.print_rows(plan.to_frame(), out, as_json=as_json)
    elif as_json:
        console.print_json(plan.document())
    else:
        console.print_text(f"{plan}\nNext: ledger-toolkit study run {quote(study)}")


def study_schema(
    out: Annotated[Path | None, Option(metavar="FILE", help="File to write, such as study.schema.json.")] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Print the JSON Schema of study files, which editors use for validation and completion.

    The schema is always JSON. --json affects only the message about the file of --out.

    Examples
    --------
    ledger-toolkit study schema --out study.schema.json
    """
    from toolkit.gas._study import Study

    text = json.dumps(Study.json_schema(), indent=1, ensure_ascii=True)
    if out is None:
        print(text)
        return
    console.write_text(text + "\n", out)
    console.print_done(f"Schema: {out}", as_json=as_json, schema=str(out))


def grade(  # noqa: PLR0917 - typer makes options of them
    folder: Annotated[Path, Argument(help="Folder with one folder of notebooks per student.")],
    out: Annotated[
        Path | None, Option(metavar="FOLDER", help="Where to write grades.csv, grades.html and feedback.")
    ] = None,
    exercises: Annotated[
        Path | None, Option(metavar="FILE", help="File of exercises, as written by 'make class SEED=...'.")
    ] = None,
    jobs: Annotated[int | None, Option(min=1, help="Notebooks to run at once; by default, one per processor.")] = None,
    seconds: Annotated[float, Option(min=1, help="Time limit per notebook, in seconds.")] = 120.0,
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Grade the notebooks of a class. Each runs in its own process, with your rights: use a container for an exam.

    If a student's notebook is broken or never ends, the student's row states the reason.

    Examples
    --------
    ledger-toolkit grade submitted --out grades
    ledger-toolkit grade submitted --exercises build/class/exercises.json --json
    """
    from toolkit.teaching import grade as graded

    frame = graded(folder, out=out, exercises=exercises, jobs=jobs, seconds=seconds, progress=not quiet)
    if out is None or as_json:
        console.print_frame(frame, as_json=as_json, whole=True)
    else:
        console.print_done(f"{plural(len(frame), 'student')}: {out / 'grades.html'}", as_json=False)
