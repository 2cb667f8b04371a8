"""Commands that read a node, at one version or over a range, and that write (sync) and query (sql) archives."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from toolkit._present.tables import terminal_width
from toolkit._present.text import plural
from toolkit.cli import _console as console
from toolkit.cli._console import Texts
from toolkit.errors import InputError, NodeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from toolkit.client._node import Node

ArgumentsArgument = Annotated[
    Texts, Argument(help="Arguments, as JSON or plain text. Write a String of digits as '\"5\"'.")
]
_RECENT = "-100:"
RangeOption = Annotated[str, Option("--versions", help="Version plan, such as 0:-1.")]


# The frames of an account, and of transactions that are simulated or committed, by attribute.
Listed = StrEnum("Listed", ["balances", "modules", "resources"])
Rows = StrEnum("Rows", ["transactions", "changes", "events", "balance_changes", "failures"])


def info(
    name: Annotated[str | None, Argument(metavar="NODE", help="Node, instead of --node.")] = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
) -> None:
    """Print the chain, head and oldest version of a node.

    Examples
    --------
    ledger-toolkit info
    ledger-toolkit info mainnet
    """
    with console.connected(name or where) as reached:
        answer = reached.info()
    ledger = {"ledger_version": answer.ledger.version, "ledger_timestamp": answer.ledger.timestamp}
    ledger |= _facts(answer.ledger, "chain_id oldest_version epoch block_height")
    facts = {"node": reached.name, **ledger, "node_role": answer.node_role, "build": answer.git_hash}
    console.print_facts(facts, as_json=as_json)


def _facts(found: Any, names: str) -> dict[str, Any]:
    """Return attributes by name. The names are separated by spaces."""
    return {name: getattr(found, name) for name in names.split()}


def probe(
    where: Annotated[str, Argument(metavar="NODE", help=console.NODES)] = "embedded",
    as_json: console.JsonOption = False,
) -> None:
    """Check with about 20 requests which operations a node supports, before a study relies on them.

    Examples
    --------
    ledger-toolkit probe https://api.mainnet.aptoslabs.com/v1
    """
    with console.connected(where) as reached:
        console.print_facts(reached.probe().facts(), as_json=as_json)


def module(
    name: Annotated[str, Argument(metavar="MODULE", help="address::module")],
    ledger_version: console.VersionOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
) -> None:
    """Print the functions, structs and errors of a module, with their Move signatures.

    Examples
    --------
    ledger-toolkit module 0xcafe::registry
    """
    with console.connected(where) as reached:
        contract = reached.contract(name, ledger_version=console.version(reached, ledger_version))
        if not as_json:
            console.print_text(contract)
            return
        from toolkit.client._contracts import module_content

        console.print_json(module_content(contract))


def account(  # noqa: PLR0917 - typer makes options of parameters
    address: Annotated[
        str | None, Argument(help="Account, contract or object. Without it, list those of the embedded node.")
    ] = None,
    asset: Annotated[Texts, Option(help="Additional coin type or asset address to read; may be repeated.")] = None,
    ledger_version: console.VersionOption = None,
    frame: Annotated[Listed, Option(help="Rows to write to --out.")] = Listed.balances,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
) -> None:
    """Print what is stored at an address: modules, resources, and exact balances in whole coins.

    Without an address, print the accounts and contracts of the embedded node.

    Examples
    --------
    ledger-toolkit account 0xa11ce
    ledger-toolkit account 0xcafe --ledger-version 1000
    ledger-toolkit account 0xcafe --frame resources --out resources.csv
    """
    if address is None:
        if where != "embedded" or out is not None:
            raise InputError("account requires an ADDRESS, except to print the accounts of the embedded node")
        from toolkit.client._http import embedded_ledger

        ledger = embedded_ledger()
        if as_json:
            contracts = [asdict(one) for one in ledger.contracts]
            console.print_json({"accounts": [asdict(one) for one in ledger.accounts], "contracts": contracts})
        else:
            _print_known(ledger)
        return
    with console.connected(where) as reached:
        wanted = console.address(reached, address, "ADDRESS")
        version = console.version(reached, ledger_version)
        found = reached.account(wanted, assets=asset or (), ledger_version=version)
        frames: dict[str, pd.DataFrame | None] = dict.fromkeys(Listed)
        for what in Listed:
            with suppress(NodeError):  # the node does not list it; the account's notes report this
                frames[what.value] = getattr(found, what.value)
    facts = {"node": reached.name, "address": found.address, "kind": found.kind.value}
    facts |= _facts(found, "ledger_version sequence_number authentication_key")
    if out is not None:
        if (rows := frames[frame]) is None:
            raise InputError(f"the node does not list the {frame} of {found.address}: {'; '.join(found.notes)}")
        console.print_rows(rows, out, as_json=as_json)
        return
    if as_json:
        parts = {name: None if listed is None else console.records(listed) for name, listed in frames.items()}
        console.print_json({**facts, **parts, "notes": list(found.notes)})
        return
    from toolkit.frames import show

    notes = {f"not read ({place})": note for place, note in enumerate(found.notes, 1)}
    console.print_facts(facts | notes, as_json=False)
    for name, columns in _ACCOUNT_COLUMNS.items():
        listed = frames[name]
        if listed is not None and len(listed):
            shown = show(listed, rows=_MAX_LISTED, columns=columns)
            print(f"\n{name}\n{shown.fitted(terminal_width(piped=True))}")


def _print_known(ledger: Any) -> None:
    """Print the contracts of the embedded node, and the accounts that have a name or sent a transaction."""
    console.print_table(
        [(one.contract, f"{one.version:,}", one.about) for one in ledger.contracts],
        head=("contract", "version", "about"),
        right={1},
    )
    used = [one for one in ledger.accounts if one.name or one.sequence_number]
    print()
    console.print_table(
        [(one.address, one.name, f"{one.octas:,}", f"{one.sequence_number:,}") for one in used],
        head=("address", "name", "octas", "sequence number"),
        right={2, 3},
    )
    print(f"and {plural(len(ledger.accounts) - len(used), 'account')} that never sent a transaction (--json lists all)")


_MAX_LISTED = 200  # rows, some screens; --out writes all
_ACCOUNT_COLUMNS = {
    "balances": ["symbol", "amount", "balance", "standard", "asset"],
    "modules": ["name", "package", "entry_functions", "view_functions", "structs", "size_bytes"],
    "resources": ["resource_type", "json_bytes"],
}


def view(  # noqa: PLR0917 - typer makes options of parameters
    function: console.FunctionArgument,
    arguments: ArgumentsArgument = None,
    types: console.TypesOption = None,
    ledger_version: console.VersionOption = None,
    versions: console.VersionsOption = None,
    times: console.TimesOption = None,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Run a view function at one ledger version or at many.

    With --versions or --out, failed reads are rows with an error_code, and the exit code is 0.

    Examples
    --------
    ledger-toolkit view 0xcafe::registry::record_of alice
    ledger-toolkit view 0x1::coin::supply -t 0x1::aptos_coin::AptosCoin
    ledger-toolkit view 0xcafe::registry::size --ledger-version 1000
    ledger-toolkit view 0xcafe::registry::size --versions 0:-1/50 --out size.csv
    """
    from toolkit.wire import ViewFunction

    values = [console.argument(text) for text in arguments or ()]
    with console.connected(where) as reached, _hinting(arguments or (), plans=versions is None):
        version = console.version(reached, ledger_version)
        values = _with_addresses(reached, function, values, version)
        call = ViewFunction(function, type_arguments=tuple(types or ()), arguments=values)
        if _one_version(ledger_version, versions, out):
            result = reached.view(call, ledger_version=version)
            facts: dict[str, Any] = {"node": reached.name, "function": result.call.function}
            facts |= {"values": list(result.values), "types": list(result.types)}
            facts |= _facts(result, "typing gas_used ledger_version")
            facts["head_version"] = result.ledger.version if result.ledger else None
            console.print_facts(facts, as_json=as_json)
            return
        from toolkit.client._fetch import fetch_views

        wanted = version if versions is None else versions
        frame = fetch_views(reached, call, versions=wanted, times=times, progress=not quiet)
    console.print_rows(frame, out, as_json=as_json, hidden=_hidden(frame, times), versions=frame["ledger_version"])


@contextmanager
def _hinting(arguments: Sequence[str], *, plans: bool) -> Iterator[None]:
    """If a call does not accept its arguments, say what one may be: a plan without its option."""
    try:
        yield
    except InputError as error:
        plan = next(filter(console.PLAN, arguments), None)
        if plan and plans:
            raise InputError(f"{error}; pass versions as --versions {plan}") from None
        raise


def _with_addresses(node: Node, function: str, values: list[Any], version: int | None) -> list[Any]:
    """Return arguments with addresses for the names of accounts, where the function takes an address."""
    names = {place for place, value in enumerate(values) if isinstance(value, str) and not value.startswith("0x")}
    if not names:
        return values
    from toolkit.client._abis import function_abi

    abi = None
    with suppress(NodeError):  # the node does not serve modules, or the call reports the reason
        abi = function_abi(function, node.abis.at(node.version_or_head(version)))
    takes = [str(tag) == "address" for tag in abi.parameters] if abi else []
    places = names & {place for place, is_address in enumerate(takes) if is_address}
    return [
        console.address(node, value, f"argument {place + 1}") if place in places else value
        for place, value in enumerate(values)
    ]


def table_item(  # noqa: PLR0917 - typer makes options of parameters
    handle: Annotated[str, Argument(help="Table handle: 32 bytes in hex.")],
    key: Annotated[str, Argument(help="Key, as JSON or plain text. Write a String of digits as '\"5\"'.")],
    key_type: Annotated[str | None, Option(help="Move type of the keys.")] = None,
    value_type: Annotated[str | None, Option(help="Move type of the values.")] = None,
    owner: Annotated[str | None, Option(help="Account whose resource contains the table; replaces both types.")] = None,
    ledger_version: console.VersionOption = None,
    versions: console.VersionsOption = None,
    times: console.TimesOption = None,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Read an item of a table at one ledger version or at many. A node cannot list the keys of a table.

    With --versions or --out, failed reads are rows with an error_code, and the exit code is 0.

    Examples
    --------
    ledger-toolkit table-item HANDLE alice --owner 0xcafe
    """
    if owner is None and (key_type is None or value_type is None):
        wanted = "--key-type and --value-type, or --owner, the account whose resource contains the table"
        raise InputError(f"table-item requires {wanted}")
    wanted = console.argument(key)
    types: dict[str, Any] = {"key_type": key_type, "value_type": value_type}
    with console.connected(where) as reached:
        types["owner"] = owner and console.address(reached, owner, "--owner")
        version = console.version(reached, ledger_version)
        if _one_version(ledger_version, versions, out):
            item = reached.table_item(handle, wanted, ledger_version=version, **types)
            facts = {"node": reached.name, **_facts(item, "handle key value ledger_version")}
            console.print_facts(facts, as_json=as_json)
            return
        from toolkit.client._fetch import fetch_table_items

        at: Any = version if versions is None else versions
        frame = fetch_table_items(reached, handle, [wanted], versions=at, times=times, progress=not quiet, **types)
    console.print_rows(frame, out, as_json=as_json, hidden=_hidden(frame, times), versions=frame["ledger_version"])


def simulate(  # noqa: PLR0917 - typer makes options of parameters
    function: console.FunctionArgument,
    sender: Annotated[str, Option(help="Account that sends the transaction; no key is needed.")],
    arguments: ArgumentsArgument = None,
    types: console.TypesOption = None,
    request: Annotated[
        Path | None, Option(metavar="FILE", help="JSON file with other fields of toolkit.SimulationRequest.")
    ] = None,
    frame: Annotated[Rows | None, Option(help="Rows to write to --out.")] = None,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
) -> None:
    """Simulate an entry function at the node's head. Nothing is signed, submitted or stored.

    If the transaction would fail, the exit code is still 0, and --json prints "success": false.

    Examples
    --------
    ledger-toolkit simulate 0xcafe::registry::register carol --sender 0xb0b
    ledger-toolkit simulate 0xfa17::vault::deposit 500 --sender 0xa11ce --json
    """
    if frame is not None and out is None:
        raise InputError("--frame requires --out: it selects the rows that --out writes")
    rows = frame or Rows.transactions
    from toolkit.wire import EntryFunction, SimulationRequest

    values = [console.argument(text) for text in arguments or ()]
    with console.connected(where) as reached, _hinting(arguments or (), plans=False):
        values = _with_addresses(reached, function, values, None)
        call = EntryFunction(function, type_arguments=tuple(types or ()), arguments=values)
        sent_by = console.address(reached, sender, "--sender")
        result = reached.simulate(SimulationRequest(call, **(_fields(request) | {"sender": sent_by})))
        if out is not None:
            console.write_frame(_rows(result, rows), out)
        if not as_json:
            console.print_text(result.explain())
            if out is not None:
                print(f"{plural(len(_rows(result, rows)), 'row')} of {rows}: {out}")
            return
        facts = {"node": reached.name, **_facts(result, "success vm_status gas_used affordable_max_gas ledger_version")}
        facts["gas"] = None if result.gas is None else asdict(result.gas)
        facts |= {"changes": len(result.changes), "events": len(result.events)}
        console.print_json(facts if out is None else facts | {"out": str(out)})


def replay(
    where: Annotated[str, Argument(metavar="NODE", help=console.NODES)],
    version: Annotated[int, Argument(help="Ledger version of a user transaction.")],
    out: Annotated[
        Path | None, Option(metavar="FILE", help="HTML page to write, with gas by function, changes and events.")
    ] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Run a committed transaction again on the state before it, and compare it with the ledger.

    The node must serve the state of the version before. The exit code is 0 even if the replay differs: --json prints
    "verified": false.

    Examples
    --------
    ledger-toolkit replay mainnet 3000000000 --out page.html
    """
    from toolkit.fork._fork import check_bytecode

    with console.connected(where) as reached:
        check_bytecode(reached)
        found = reached.fork(version - 1).replay(version)
        if out is not None:
            from toolkit.reports._replay import write_replay

            write_replay(found, out)
        if not as_json:
            console.print_text(found.explain())
            if out is not None:
                print(f"page: {out}")
            return
        facts = {"node": reached.name, **_facts(found, "ledger_version function verified has_metadata")}
        facts["gas"] = found.gas_rows()
        facts["differences"] = len(found.differences)
        console.print_json(facts if out is None else facts | {"out": str(out)})


def _fields(file: Path | None) -> dict[str, Any]:
    """Return the request fields in the file of ``--request``, which options override."""
    if file is None:
        return {}
    from toolkit.wire import SimulationRequest

    found = console.argument(file.read_text("utf-8-sig", errors="replace"))
    names = [name for name in SimulationRequest.model_fields if name != "payload"]
    if not isinstance(found, dict) or not found.keys() <= set(names):
        raise InputError(f"--request {file}: must be a JSON object whose fields are among {', '.join(names)}")
    return found


def _one_version(ledger_version: str | None, versions: str | None, out: Path | None) -> bool:
    if ledger_version is not None and versions is not None:
        raise InputError("give either --ledger-version or --versions, not both")
    return versions is None and out is None


# Columns to print, the most important first: a narrow terminal leaves out the last. Files and JSON have all columns.
_BALANCES = ("ledger_version", "owner", "asset", "change", "balance_after", "fee_octas", "ledger_timestamp")
_SHOWN = {
    "transactions": ("ledger_version", "error_code", "success", "function", "gas_used", "timestamp", "sender", "type"),
    "changes": ("ledger_version", "type", "address", "resource_type", "handle", "module"),
    "events": ("ledger_version", "type", "data"),
    "balance_changes": _BALANCES,
    "failures": ("function", "abort_name", "count", "calls", "abort_reason"),
}


def transactions(  # noqa: PLR0917 - typer makes options of parameters
    versions: RangeOption = _RECENT,
    frame: Annotated[Rows, Option(help="Rows to print or write.")] = Rows.transactions,
    address: console.AddressOption = None,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Read committed transactions, or their state changes or events.

    A version that cannot be read becomes a row with an error_code, and the exit code is 0. The terminal output has only
    the main columns; --out and --json include all of them.

    Examples
    --------
    ledger-toolkit transactions --versions -100:
    ledger-toolkit transactions --versions 0:-1 --frame changes --out rows.csv
    ledger-toolkit transactions --address 0xcafe::registry --frame failures
    """
    with console.connected(where) as reached:
        from toolkit.client._fetch import fetch_transactions

        found = fetch_transactions(reached, versions, progress=not quiet)
        rows = _named(reached, _rows(found, frame), address)  # balance changes read state
    read = found.transactions["ledger_version"]
    console.print_rows(rows, out, as_json=as_json, columns=_SHOWN[frame], versions=read)


def events(  # noqa: PLR0917 - typer makes options of parameters
    event_type: Annotated[str, Argument(metavar="TYPE", help="address::module::Event")],
    versions: RangeOption = _RECENT,
    address: console.AddressOption = None,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Read the events of one type, with a typed column per field.

    A version that cannot be read becomes a row with an error_code, and the exit code is 0. The terminal output omits
    the index, hash and guid; --out and --json include them.

    Examples
    --------
    ledger-toolkit events 0x1::transaction_fee::FeeStatement --versions -100:
    ledger-toolkit events 0xcafe::registry::Released --versions 0:-1 --out r.csv
    """
    with console.connected(where) as reached:
        from toolkit.client._fetch import fetch_events, plan_versions

        plan, _ = plan_versions(reached, versions, state=False)
        found = _named(reached, fetch_events(reached, event_type, plan.versions, progress=not quiet), address)
    hidden = ("event_index", "hash", "account_address", "creation_number", "sequence_number")
    console.print_rows(found, out, as_json=as_json, hidden=hidden, versions=plan.versions)


def resources(  # noqa: PLR0917 - typer makes options of parameters
    address: Annotated[str, Argument(help="Account or object that owns the resource.")],
    tag: Annotated[str, Argument(metavar="TYPE", help="address::module::Resource, with any type arguments.")],
    ledger_version: console.VersionOption = None,
    versions: console.VersionsOption = None,
    times: console.TimesOption = None,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Read a resource at one ledger version or at many, with a typed column per field.

    A version at which the resource does not exist or cannot be read becomes a row with an error_code, and the exit code
    is 0.

    Examples
    --------
    ledger-toolkit resources 0x1 0x1::chain_id::ChainId
    ledger-toolkit resources 0xa11ce 0x1::account::Account --versions 0:-1/50
    """
    _one_version(ledger_version, versions, out)
    with console.connected(where) as reached:
        at: Any = console.version(reached, ledger_version) if versions is None else versions
        from toolkit.client._fetch import fetch_resources

        owner = console.address(reached, address, "ADDRESS")
        found = fetch_resources(reached, owner, tag, at, times=times, progress=not quiet)
    read = found["ledger_version"]
    console.print_rows(found, out, as_json=as_json, hidden=("address", *_hidden(found, times)), versions=read)


def balances(  # noqa: PLR0917 - typer makes options of parameters
    versions: RangeOption = _RECENT,
    owner: Annotated[Texts, Option("--owner", "--address", help="Account to show; may be repeated.")] = None,
    out: console.OutOption = None,
    where: console.NodeOption = "embedded",
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Read the balance changes of transactions in base units, fees included: one row per transaction, owner and asset.

    Examples
    --------
    ledger-toolkit balances --versions -100:
    ledger-toolkit balances --owner 0xa11ce --versions 0:-1 --out balances.csv
    """
    with console.connected(where) as reached:
        from toolkit.client._fetch import fetch_transactions

        found = fetch_transactions(reached, versions, progress=not quiet)
        frame = found.balance_changes  # may read the state before a change
    unread = int(found.transactions["error_code"].notna().sum())
    if owner:
        owners = [console.address(reached, one, "--owner") for one in owner]
        frame = frame[frame["owner"].isin(owners)].reset_index(drop=True)
    read = found.transactions["ledger_version"]
    console.print_rows(frame, out, as_json=as_json, columns=_BALANCES, unread=unread, versions=read)


def _hidden(frame: pd.DataFrame, times: bool | None) -> tuple[str, ...]:
    """Return the columns of reads that are not printed: the head is the same for all, and so is its time."""
    timed = times or len(set(frame.loc[frame["ledger_timestamp"].notna(), "ledger_version"])) > 1
    return ("head_version", "status") if timed else ("head_version", "status", "ledger_timestamp")


def _rows(found: Any, rows: Rows) -> Any:
    """Return one of the frames of simulated or committed transactions."""
    return found.failures() if rows == Rows.failures else getattr(found, rows.value)


def _named(node: Node, frame: pd.DataFrame, name: str | None) -> pd.DataFrame:
    """Return the rows that mention the account, module, function or type in ``--address``."""
    from toolkit.frames._addresses import involving

    return frame if name is None else involving(frame, console.address_of_name(node, name) or name)


# archives ------------------------------------------------------------------------------------------------------------

_NAMED = "NAME={}; may be repeated."


def sync(  # noqa: PLR0917 - typer makes options of parameters
    where: Annotated[str, Argument(metavar="NODE", help=console.NODES)],
    out: Annotated[Path, Option(metavar="FOLDER", help="Archive to create or extend.")],
    versions: Annotated[str | None, Option(help="Range, such as 0:-1; by default, all new versions.")] = None,
    table: Annotated[Texts, Option(help="Table: transactions, events, changes or balances (not by default).")] = None,
    event: Annotated[Texts, Option(help="Table of one event type, " + _NAMED.format("TYPE"))] = None,
    view: Annotated[Texts, Option(help="Table of a view without arguments, " + _NAMED.format("FUNCTION"))] = None,
    every: Annotated[
        int | None, Option(min=1, help="Read views at versions that are multiples of this number; by default, 100.")
    ] = None,
    files: Annotated[str | None, Option(metavar="URL", help="URL for the files, such as s3://bucket/ledger.")] = None,
    executor: Annotated[str | None, Option(help="Workers: threads:8, processes:4 or tcp://host:8786 (Dask).")] = None,
    as_json: console.JsonOption = False,
    quiet: console.QuietOption = False,
) -> None:
    """Store committed transactions as Parquet files, or add new versions.

    Repeat the command to continue an interrupted sync. The first sync determines the tables.

    Examples
    --------
    ledger-toolkit sync embedded --out archive
    ledger-toolkit sync mainnet --out archive --versions -100000: --table events
    """
    from toolkit.archive._sync import sync as store

    events, views = _by_name("--event", event), _by_name("--view", view)
    with console.connected(where) as node:
        options: dict[str, Any] = {"tables": table, "events": events, "views": views, "every": every}
        options |= {"files": files, "executor": executor, "progress": not quiet}
        state = store(node, out, versions, **options).state()
    if as_json:
        console.print_json({"out": str(out), "tables": console.records(state)})
    else:
        console.print_frame(state, as_json=False)


def sql(
    archive: Annotated[Path, Argument(help="Folder of an archive.")],
    query: Annotated[str, Argument(help="Query over the archive's tables, in DuckDB SQL.")],
    files: Annotated[str | None, Option(metavar="URL", help="URL of the files, as given to sync.")] = None,
    out: console.OutOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Query an archive in SQL. Requires the extra [archive].

    The query sees the archive's tables and nothing else: no files, no databases, no network.

    Examples
    --------
    ledger-toolkit sql archive "select avg(gas_used) from transactions"
    ledger-toolkit sql archive "from events limit 1000" --out events.parquet
    """
    from toolkit.archive._archive import Archive

    found = Archive(archive, files=files).sql(query)
    console.print_rows(found, out, as_json=as_json, columns=list(found.columns))


def _by_name(option: str, given: list[str] | None) -> dict[str, str]:
    """Return the values of a NAME=VALUE option by name."""
    pairs = [text.partition("=") for text in given or ()]
    for text, (name, mark, value) in zip(given or (), pairs, strict=True):
        if not (name and mark and value):
            raise InputError(f"{option}: expected NAME=VALUE, got {text!r:.80}")
    if len({name for name, *_ in pairs}) < len(pairs):
        raise InputError(f"{option}: expected each NAME only once, got {', '.join(name for name, *_ in pairs)}")
    return {name: value for name, _, value in pairs}
