"""The command schedule: the gas schedules of two ledger versions."""

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
    before: Annotated[str, typer.Argument(help="Ledger version, or a date such as 2026-05-01.")],
    after: Annotated[str | None, typer.Argument(help="Ledger version or date; the head by default.")] = None,
    whole: Annotated[bool, typer.Option("--all", help="Print every parameter that differs.")] = False,
    out: OutOption = None,
    where: NodeOption = "embedded",
    as_json: JsonOption = False,
) -> None:
    """Compare the gas schedules of two ledger versions: a summary, then the parameters that differ."""
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
