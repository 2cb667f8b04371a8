"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from toolkit.client.node import Node
    from toolkit.gas.study import Study

__all__ = [
    "JsonOption",
    "NodeOption",
    "OutOption",
    "QuietOption",
    "StudyNodeOption",
    "TypesOption",
    "UseKeyOption",
    "VersionOption",
    "VersionsOption",
    "connected",
    "loaded_study",
]

NodeOption = Annotated[
    str, typer.Option("--node", help="embedded, mainnet, testnet, devnet, local, or an http(s) URL.", show_default=True)
]
StudyNodeOption = Annotated[
    list[str] | None,
    typer.Option("--node", help="Read from this node instead of the study's; repeat it for several. Gets the API key."),
]
UseKeyOption = Annotated[
    bool,
    typer.Option("--use-api-key", help="Send LEDGER_TOOLKIT_API_KEY to the hosts that the study file names by URL."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text; integers beyond 2^53 are text.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")]
TypesOption = Annotated[list[str] | None, typer.Option("--type", "-t", help="A type argument; repeat it.")]
VersionOption = Annotated[int | None, typer.Option(min=0, help="Version to read; the head by default.")]
VersionsOption = Annotated[str | None, typer.Option(help="A version plan, such as 0:-1/200: one row per version.")]
OutOption = Annotated[
    Path | None, typer.Option(help="Write the rows to a .parquet, .csv or .jsonl file; folders are made.")
]


def connected(where: str) -> Node:
    """Connect to the node that ``--node`` names."""
    from toolkit.client.connect import connect

    return connect(where)


def loaded_study(source: str, nodes: list[str] | None, *, use_api_key: bool) -> Study:
    """Load the study of a command; nodes that the command line names get the API key like those of other commands."""
    from toolkit.gas.study import Study

    return Study.load(source, nodes=nodes or None, use_api_key=use_api_key or bool(nodes))
