"""Commands that read a range of a ledger as a table: transactions, events, resources, balances."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli._console import (
    JsonOption,
    NodeOption,
    OutOption,
    QuietOption,
    VersionsOption,
    check_suffix,
    connected,
    print_rows,
)
from toolkit.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["balances", "events", "resources", "transactions"]

_RECENT = "-100:"
RangeOption = Annotated[
    str, typer.Option("--versions", help="Version plan, such as 0:-1; the last 100 versions by default.")
]


class TransactionRows(StrEnum):
    """The frames of transactions, by attribute."""

    transactions = "transactions"
    changes = "changes"
    events = "events"


_SHOWN = {
    "transactions": ("ledger_version", "timestamp", "type", "success", "sender", "function", "gas_used", "error_code"),
    "changes": ("ledger_version", "change_index", "type", "address", "resource_type", "module", "handle"),
    "events": ("ledger_version", "event_index", "type", "account_address", "data"),
}
"""Columns that are printed; files and JSON have all."""


def transactions(  # noqa: PLR0917 - typer makes options of parameters
    versions: RangeOption = _RECENT,
    frame: Annotated[TransactionRows, typer.Option(help="Rows to print or write.")] = TransactionRows.transactions,
    out: OutOption = None,
    where: NodeOption = "embedded",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read committed transactions, or their state changes or events.

    A version that cannot be read is a row with an error_code, and the exit code is 0. The terminal shows the main
    columns; --out and --json have all of them.
    """
    check_suffix(out)
    with connected(where) as reached:
        from toolkit.client._fetch import fetch_transactions

        found = fetch_transactions(reached, versions, progress=not quiet)
    print_rows(getattr(found, frame.value), out, as_json=as_json, columns=_SHOWN[frame.value])


def events(  # noqa: PLR0917 - typer makes options of parameters
    event_type: Annotated[str, typer.Argument(metavar="TYPE", help="address::module::Event")],
    versions: RangeOption = _RECENT,
    out: OutOption = None,
    where: NodeOption = "embedded",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read the events of a type, with one typed column per field.

    A version that cannot be read is a row with an error_code, and the exit code is 0. The terminal does not show the
    hash and the guid; --out and --json have them.
    """
    check_suffix(out)
    with connected(where) as reached:
        from toolkit.client._fetch import fetch_events

        found = fetch_events(reached, event_type, versions, progress=not quiet)
    hidden = {"hash", "account_address", "creation_number", "sequence_number"}
    print_rows(found, out, as_json=as_json, columns=[name for name in found.columns if name not in hidden])


def resources(  # noqa: PLR0917 - typer makes options of parameters
    address: Annotated[str, typer.Argument(help="Account or object that has the resource.")],
    tag: Annotated[str, typer.Argument(metavar="TYPE", help="address::module::Resource, with its type arguments.")],
    versions: VersionsOption = None,
    out: OutOption = None,
    where: NodeOption = "embedded",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read a resource at the head or at many ledger versions, with one typed column per field.

    A version at which it does not exist or cannot be read is a row with an error_code, and the exit code is 0.
    """
    check_suffix(out)
    with connected(where) as reached:
        from toolkit.client._fetch import fetch_resources

        found = fetch_resources(reached, address, tag, versions, progress=not quiet)
    hidden = {"address", "head_version"}
    print_rows(found, out, as_json=as_json, columns=[name for name in found.columns if name not in hidden])


def balances(  # noqa: PLR0917 - typer makes options of parameters
    versions: RangeOption = _RECENT,
    owner: Annotated[list[str] | None, typer.Option(help="Account to show; may be repeated. All by default.")] = None,
    asset: Annotated[
        str | None, typer.Option(help="Coin type, or the metadata address of a fungible asset; all by default.")
    ] = None,
    out: OutOption = None,
    where: NodeOption = "embedded",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read how transactions changed balances, in base units, the fees included: a row per owner and asset."""
    check_suffix(out)
    with connected(where) as reached:
        from toolkit.client._fetch import fetch_transactions

        found = fetch_transactions(reached, versions, progress=not quiet)
    unread = int(found.transactions["error_code"].notna().sum())
    rows = _of(found.balance_changes, owner, asset)
    columns = [name for name in rows.columns if name != "hash"]
    print_rows(rows, out, as_json=as_json, columns=columns, unread=unread)


def _of(frame: pd.DataFrame, owners: list[str] | None, asset: str | None) -> pd.DataFrame:
    """Return the rows of some owners and of one asset."""
    from toolkit.frames._display import address

    if owners:
        frame = frame[frame["owner"].isin([address(one) for one in owners])]
    if asset is not None:
        try:
            wanted = address(asset)
        except InputError as error:
            raise InputError(f"--asset {asset}: expected a coin type or an address ({error})") from None
        frame = frame[frame["asset"] == wanted]
    return frame.reset_index(drop=True)
