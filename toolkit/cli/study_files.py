"""Commands around study files: study new, study plan, study schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.options import JsonOption, StudyNodeOption, UseKeyOption, loaded_study
from toolkit.cli.output import print_json, write_text

__all__ = ["study_new", "study_plan", "study_schema"]


def study_new(
    file: Annotated[Path, typer.Argument(help="File to write, such as study.toml; one that exists is left alone.")],
    as_json: JsonOption = False,
) -> None:
    """Write a commented study file to start from. It runs as it is, against the embedded node."""
    from toolkit.gas.study_file import write_starter

    written = write_starter(file)
    if as_json:
        print_json({"study": str(written)})
    else:
        print(f"Study: {written}")
        print(f"Next: ledger-toolkit study plan {written}")


def study_plan(
    study: Annotated[str, typer.Argument(help="A TOML file, or demo.")],
    *,
    nodes: StudyNodeOption = None,
    use_api_key: UseKeyOption = False,
    as_json: JsonOption = False,
) -> None:
    """Tell how many requests a study sends, how long it takes and what is pruned, without sending them."""
    plan = loaded_study(study, nodes, use_api_key=use_api_key).plan()
    if as_json:
        print_json(plan.document())
    else:
        print(plan)


def study_schema(
    out: Annotated[Path | None, typer.Option(help="File to write, such as study.schema.json.")] = None,
) -> None:
    """Print the JSON Schema of study files, by which an editor checks and completes them."""
    from toolkit.gas.study import Study

    text = json.dumps(Study.json_schema(), indent=1, ensure_ascii=True)
    if out is None:
        print(text)
    else:
        write_text(text + "\n", out)
        print(f"Schema: {out}")
