"""The command that compares gas schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.options import JsonOption, NodeOption, OutOption, connected
from toolkit.cli.output import check_suffix, print_frame, print_json, records, write_frame
from toolkit.errors import InputError

if TYPE_CHECKING:
    from toolkit.client.node import Node

__all__ = ["schedule"]


def schedule(  # noqa: PLR0917 - typer makes options of parameters
    before: Annotated[str, typer.Argument(help="A ledger version, or a date such as 2026-05-01.")],
    after: Annotated[str | None, typer.Argument(help="The same; the node's head by default.")] = None,
    whole: Annotated[bool, typer.Option("--all", help="Print every parameter that differs.")] = False,
    out: OutOption = None,
    where: NodeOption = "embedded",
    as_json: JsonOption = False,
) -> None:
    """Compare the gas schedules of two ledger versions: what changed, in words, then parameter by parameter."""
    from toolkit._present.text import visible
    from toolkit.gas.schedules import schedule_diff, schedule_words

    check_suffix(out)
    with connected(where) as reached:
        versions = [_version(reached, before), _version(reached, after)]
        sides = [reached.gas_schedule(version) for version in versions]
        name = reached.name
    frame, words = schedule_diff(*sides), schedule_words(*sides)
    if out is not None:
        write_frame(frame, out)
    if as_json:
        told = [
            {"ledger_version": version, "feature_version": side.feature_version, "parameters": len(side.entries)}
            for version, side in zip(versions, sides, strict=True)
        ]
        print_json({"node": name, "before": told[0], "after": told[1], "summary": words, "rows": records(frame)})
        return
    print(visible(f"Gas schedule from version {versions[0]} to {versions[1]} on {name}: {words}.", 600))
    if out is not None:
        print(f"{len(frame)} rows: {out}")
    elif len(frame):
        print_frame(frame, as_json=False, whole=whole)


def _version(node: Node, text: str | None) -> int:
    """Read a ledger version, or find the first one at or after a date."""
    if text is None:
        return node.ledger().version
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return node.version_at(text)
    except InputError as error:
        raise InputError(f"{text!r} is no ledger version, and as a date: {error}") from None
