"""Options of several commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from toolkit.client._node import Node
    from toolkit.gas._study import Study

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
    typer.Option("--node", help="Node to read instead of that of the study; may be repeated. It gets the API key."),
]
UseKeyOption = Annotated[
    bool,
    typer.Option("--use-api-key", help="Send LEDGER_TOOLKIT_API_KEY to hosts that the study file names by URL."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; integers beyond 2^53 are text.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Do not show a progress bar.")]
TypesOption = Annotated[list[str] | None, typer.Option("--type", "-t", help="Type argument; may be repeated.")]
VersionOption = Annotated[int | None, typer.Option(min=0, help="Ledger version to read; the head by default.")]
VersionsOption = Annotated[str | None, typer.Option(help="Version plan, such as 0:-1/200; one row per version.")]
OutOption = Annotated[
    Path | None, typer.Option(help="Write the rows to a .parquet, .csv or .jsonl file; folders are created.")
]


def connected(where: str) -> Node:
    """Connect to the node of ``--node``."""
    from toolkit.client._connect import connect

    return connect(where)


def loaded_study(source: str, nodes: list[str] | None, *, use_api_key: bool) -> Study:
    """Load the study of a command. Nodes that are named on the command line get the API key, as in other commands."""
    from toolkit.gas._study import Study

    return Study.load(source, nodes=nodes or None, use_api_key=use_api_key or bool(nodes))
