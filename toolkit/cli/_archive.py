"""Commands of archives: sync stores committed transactions on disk, sql queries them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli._console import (
    JsonOption,
    OutOption,
    QuietOption,
    connected,
    print_frame,
    print_json,
    print_rows,
    records,
)
from toolkit.errors import InputError

_NAMED = "NAME={}; may be repeated."


def sync(  # noqa: PLR0917 - typer makes options of parameters
    where: Annotated[str, typer.Argument(metavar="NODE", help="A network's name or an http(s) URL.")],
    out: Annotated[Path, typer.Option(help="Folder of the archive; created, or extended.")],
    versions: Annotated[
        str | None, typer.Option(help="Range of versions, such as 0:-1; by default what is new, up to the head.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help="Table to store: transactions, events, changes, balances; all but the last by default."),
    ] = None,
    event: Annotated[
        list[str] | None, typer.Option(help="Typed table of one event type, " + _NAMED.format("TYPE"))
    ] = None,
    view: Annotated[
        list[str] | None, typer.Option(help="Table of a view without arguments, " + _NAMED.format("FUNCTION"))
    ] = None,
    every: Annotated[int | None, typer.Option(min=1, help="Read views at its multiples; 100 by default.")] = None,
    files: Annotated[
        str | None, typer.Option(metavar="URL", help="Store of the Parquet files, such as s3://bucket/ledger.")
    ] = None,
    executor: Annotated[
        str | None, typer.Option(help="Workers that read and write: processes:4, threads:8, or a Dask scheduler.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Store committed transactions as Parquet files, or add the versions that are new.

    The same command continues what was interrupted. The tables are those of the first sync.

    Examples
    --------
    ledger-toolkit sync embedded --out archive
    ledger-toolkit sync mainnet --out archive --versions -100000: --event fees=0x1::transaction_fee::FeeStatement
    """
    from toolkit.archive._sync import sync as store

    events, views = _named("--event", event), _named("--view", view)
    with connected(where) as node:
        archive = store(
            node,
            out,
            versions,
            tables=table,
            events=events,
            views=views,
            every=every,
            files=files,
            executor=executor,
            progress=not quiet,
        )
        state = archive.state()
    if as_json:
        print_json({"out": str(out), "tables": records(state)})
    else:
        print_frame(state, as_json=False)


def sql(
    archive: Annotated[Path, typer.Argument(help="Folder that sync has filled.")],
    query: Annotated[str, typer.Argument(help="A query over the tables of the archive, in DuckDB's SQL.")],
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query an archive in SQL; needs the extra `archive`, which is DuckDB.

    Examples
    --------
    ledger-toolkit sql archive "select function, avg(gas_used) from transactions group by 1"
    ledger-toolkit sql archive "from events where type like '0x1::coin::%'" --out coins.parquet
    """
    from toolkit.archive._archive import Archive

    found = Archive(archive).sql(query)
    print_rows(found, out, as_json=as_json, columns=list(found.columns))


def _named(option: str, given: list[str] | None) -> dict[str, str]:
    """Return the values of an option by their names."""
    pairs = [text.partition("=") for text in given or ()]
    for text, (name, mark, value) in zip(given or (), pairs, strict=True):
        if not (name and mark and value):
            raise InputError(f"{option}: expected NAME=VALUE, got {text!r:.80}")
    if len({name for name, *_ in pairs}) < len(pairs):
        raise InputError(f"{option}: each name must be given once")
    return {name: value for name, _, value in pairs}
